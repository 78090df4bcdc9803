"""Any language server named in `[providers.lsp.NAME]`.

The file comes with the repository, and a command in it is code of a stranger: only commands listed here are run
without the user's word.
"""

from __future__ import annotations

from cq.model.config import LanguageServer, ProvidersConfig
from cq.model.provider import Coverage
from cq.providers.planes import PLANES
from cq.providers.programs import Detection, find_program, read_version
from cq.providers.registry import SERVER_KINDS, Provider, Site, serve
from cq.providers.session import ServerSpec, Session

# program → how it tells its version, and what keeps it from writing into the repository
_KNOWN = {
    "clangd": (("--version",), ("--background-index=false",)),
    "gopls": (("version",), ()),
}
# Go fetches modules and the toolchain that a repository asks for, runs the latter, and has git say the state of the
# work tree, unless told not to.
ENV = {"GOTOOLCHAIN": "local", "GOPROXY": "off", "GOFLAGS": "-mod=readonly -buildvcs=false", "CGO_ENABLED": "0"}


def find_providers(config: ProvidersConfig) -> list[Provider]:
    return [_make_provider(name, server) for name, server in sorted(config.lsp.items())]


def _make_provider(name: str, server: LanguageServer) -> Provider:
    own = f"lsp.{name}"  # never the name of a provider that cq knows itself
    program_name, *rest = server.cmd

    def detect(site: Site) -> Detection:
        version, more = _KNOWN.get(program_name, ((), ())) if not rest else ((), ())
        if not version and not site.trusted:
            reason = "its command comes with the repository and is not run unless the user trusts it"
            return Detection(False, reason=reason)
        program = find_program(program_name, site.root)
        if program is None:
            return Detection(False, reason=f"{program_name} is not found", advice=f"install {program_name}")
        # Others have no flag that all of them know: that they answer `initialize` is the proof.
        found = read_version([program, *version], site.root) if version else Detection(True)
        return Detection(found.available, found.version, (program, *rest, *more), found.reason)

    def make_spec(site: Site, detection: Detection) -> ServerSpec:
        del site
        ids = {language: language for language in server.languages}
        return ServerSpec(own, detection.command, ids, env=ENV, coverage=_measure)

    label = f"{name} (configured)"
    return Provider(own, label, 90, server.languages, SERVER_KINDS, program_name, detect, serve(make_spec))


def _measure(session: Session, plane: str) -> Coverage:
    if session.progress:
        return Coverage("partial", "the server is still busy")
    if PLANES[plane].heavy:
        return Coverage("partial", "it is not known when this server has read everything")
    return Coverage("complete")
