"""ty: Python, for questions about the whole project. Its wheel comes with `cq[python]`."""

from __future__ import annotations

from cq.providers.programs import Detection, find_program, read_version
from cq.providers.registry import SERVER_KINDS, Provider, Site, serve
from cq.providers.session import ServerSpec


def detect(site: Site) -> Detection:
    program = find_program("ty", site.root)
    if program is None:
        return Detection(False, reason="not found", advice="pip install 'cq-code[python]'")
    found = read_version([program, "--version"], site.root)
    return Detection(found.available, found.version, (program, "server"), found.reason)


def make_spec(site: Site, detection: Detection) -> ServerSpec:
    del site
    return ServerSpec(
        "ty", detection.command, {"python": "python"}, unadvertised=frozenset({"diagnosticProvider"})
    )  # fmt: skip


PROVIDER = Provider(
    "ty",
    "ty (Python)",
    20,
    ("python",),
    SERVER_KINDS,
    "ty",
    detect,
    serve(make_spec),
    frozenset(
        {"references", "implementation", "subtypes", "incoming_calls", "workspace_symbols", "diagnostics", "tokens"}
    ),
)
