"""Any language server named in `[providers.lsp.NAME]`.

The file comes with the repository, and a command in it is code of a stranger: only commands listed here are run
without the user's word.
"""

from __future__ import annotations

import msgspec

from cq.model.config import LanguageServer, ProvidersConfig
from cq.model.provider import Coverage
from cq.providers.planes import PLANES
from cq.providers.programs import Detection, find_program
from cq.providers.registry import Provider, Site, serve
from cq.providers.session import ServerSpec, Session

_KNOWN = {("gopls",), ("gopls", "serve"), ("clangd",), ("clangd", "--background-index")}
_KINDS = ("types", "diagnostics", "symbols", "references", "hierarchy", "tokens", "hints", "actions")
# Go fetches the toolchain a repository asks for, and runs it, unless told to stay with its own.
_ENV = {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly"}


def find_providers(config: ProvidersConfig) -> list[Provider]:
    return [_make_provider(name, server) for name, server in sorted(config.lsp.items())]


def _make_provider(name: str, server: LanguageServer) -> Provider:
    def detect(site: Site) -> Detection:
        if server.cmd not in _KNOWN and not site.trusted:
            reason = "its command comes with the repository and is not run unless the user trusts it"
            return Detection(False, reason=reason)
        program = find_program(server.cmd[0], site.root)
        if program is None:
            return Detection(False, reason=f"{server.cmd[0]} is not found", advice=f"install {server.cmd[0]}")
        # There is no flag for the version that every server has: that it answers `initialize` is the proof.
        return Detection(True, "", (program, *server.cmd[1:]))

    def make_spec(site: Site, detection: Detection) -> ServerSpec:
        spec = ServerSpec(
            name, detection.command, {language: language for language in server.languages}, env=_ENV, coverage=_measure
        )
        if site.trusted:
            spec = msgspec.structs.replace(spec, settings=server.settings, options=server.options)
        return spec

    return Provider(name, f"{name} (cq.toml)", 90, server.languages, _KINDS, server.cmd[0], detect, serve(make_spec))


def _measure(session: Session, plane: str) -> Coverage:
    if session.progress:
        return Coverage("partial", "the server is still busy")
    if PLANES[plane].heavy:
        return Coverage("partial", "it is not known when this server has read everything")
    return Coverage("complete")
