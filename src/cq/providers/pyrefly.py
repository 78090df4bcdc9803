"""pyrefly: Python, for questions about one place. Its wheel comes with `cq[python]`.

It runs programs that a repository names: the interpreter of a virtual environment it finds, and whatever its own
configuration says. The first is turned off by naming another interpreter; where there is such a configuration anywhere
(it reads the one nearest to each file that it opens or imports), pyrefly is not asked unless the user trusts the
repository.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path, PurePath

from cq.model.provider import Coverage
from cq.opening import read_file
from cq.providers.programs import Detection, Tree, find_program, read_version
from cq.providers.registry import SERVER_KINDS, Provider, Site, serve
from cq.providers.session import ServerSpec, Session

_WHOLE_PROJECT = {"references", "implementation", "subtypes", "incoming_calls", "workspace_symbols"}
_SETTINGS = ("pyrefly.toml", "pyproject.toml")
_MAX_CONFIG = 1024 * 1024
# In TOML any letter of a key may be written as an escape.
_NAMES_PYREFLY = re.compile(rb"pyrefly|\\[uUx]", re.IGNORECASE)
# One comes when a document is opened; a burst of three more when every file has been indexed.
_REFRESHES = 4


def detect(site: Site) -> Detection:
    program = find_program("pyrefly", site.root)
    if program is None:
        return Detection(False, reason="not found", advice="pip install 'cq-code[python]'")
    found = read_version([program, "--version"], site.root)
    return Detection(
        found.available, found.version, (program, "lsp", "--workspace-indexing-limit", "100000"), found.reason
    )


def make_spec(site: Site, detection: Detection) -> ServerSpec:
    settings = {"pyrefly": {"typeCheckingMode": "default"}}  # not `auto`, which reads the settings of other checkers
    return ServerSpec(
        "pyrefly",
        detection.command,
        {"python": "python"},
        settings={"python": settings if site.trusted else settings | {"pythonPath": find_interpreter()}},
        unadvertised=frozenset({"diagnosticProvider"}),
        coverage=measure_coverage,
    )


def measure_coverage(session: Session, plane: str) -> Coverage:
    """Measured: 1 reference of 37 until it has indexed the project, which it tells nobody; 8 subtypes of 10 after."""
    if plane not in _WHOLE_PROJECT:
        return Coverage("complete")
    if session.signals["workspace/semanticTokens/refresh"] < _REFRESHES:
        return Coverage("partial", "pyrefly is still indexing")
    return Coverage("partial", "pyrefly does not say which files it has indexed")


def find_hazard(site: Site, tree: Tree) -> str:
    """Its configuration, which may name an interpreter or a build command to run."""
    what = tree.find_settings(site.root, _SETTINGS, _may_configure)
    return what and f"{what} may make pyrefly run programs; not asked in a repository that is not trusted"


def _may_configure(path: str) -> bool:
    if PurePath(path).name.lower() != "pyproject.toml":
        return True
    try:
        raw = read_file(path, _MAX_CONFIG + 1)
    except OSError:
        return True
    return len(raw) > _MAX_CONFIG or _NAMES_PYREFLY.search(raw) is not None


def find_interpreter() -> str:
    """The environment the user has activated, else the Python that runs cq; never one a repository brings."""
    active = Path(os.environ.get("VIRTUAL_ENV", "")) / "bin" / "python"
    return os.fspath(active) if active.is_absolute() and active.exists() else sys.executable


PROVIDER = Provider(
    "pyrefly",
    "pyrefly (Python)",
    10,
    ("python",),
    SERVER_KINDS,
    "pyrefly",
    detect,
    serve(make_spec),
    frozenset(
        {"definition", "declaration", "hover", "hints", "outgoing_calls", "supertypes", "document_symbols", "actions"}
    ),
    settings=_SETTINGS,
    hazard=find_hazard,
)
