"""basedpyright: Python, where the user has it. Slower than the others and never required."""

from __future__ import annotations

from cq.model.provider import Coverage
from cq.providers.programs import Detection, find_program, read_version
from cq.providers.pyrefly import find_interpreter
from cq.providers.registry import SERVER_KINDS, Provider, Site, serve
from cq.providers.session import ServerSpec, Session


def detect(site: Site) -> Detection:
    program, server = find_program("basedpyright", site.root), find_program("basedpyright-langserver", site.root)
    if program is None or server is None:
        return Detection(False, reason="not found")
    found = read_version([program, "--version"], site.root)
    return Detection(found.available, found.version, (server, "--stdio"), found.reason)


def make_spec(site: Site, detection: Detection) -> ServerSpec:
    analysis = {"autoSearchPaths": True, "useLibraryCodeForTypes": True, "diagnosticMode": "openFilesOnly"}
    python = {"analysis": analysis}
    return ServerSpec(
        "basedpyright",
        detection.command,
        {"python": "python"},
        # It runs the interpreter of a virtual environment it finds in the repository, unless it is given another.
        settings={
            "basedpyright": python,
            "python": python if site.trusted else python | {"pythonPath": find_interpreter()},
        },
        unadvertised=frozenset({"diagnosticProvider"}),
        slow_start=True,
        coverage=measure_coverage,
    )


def measure_coverage(session: Session, plane: str) -> Coverage:
    if plane in ("references", "implementation", "incoming_calls", "workspace_symbols") and session.progress:
        return Coverage("partial", "basedpyright is still reading the project")
    return Coverage("complete")


PROVIDER = Provider(
    "basedpyright",
    "basedpyright (Python)",
    30,
    ("python",),
    SERVER_KINDS,
    "basedpyright",
    detect,
    serve(make_spec),
)
