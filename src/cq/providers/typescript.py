"""TypeScript 7, the native compiler, over the Language Server Protocol: TypeScript and JavaScript without node.

It is fetched with the user's consent (`install`), or taken from the workspace where it is, byte for byte, the one
that would have been fetched. Its other plane, which resolves many positions at once, is in `typescript_api`.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from pathlib import Path, PurePosixPath

from cq.model.errors import ProviderError
from cq.model.provider import Coverage
from cq.opening import open_file
from cq.providers import npm
from cq.providers.planes import PLANES
from cq.providers.programs import Detection, find_program, read_version
from cq.providers.registry import SERVER_KINDS, Provider, Site, serve
from cq.providers.session import ServerSpec, Session
from cq.providers.typescript_api import resolve_definitions

VERSION = "7.0.2"
LANGUAGES = {
    "typescript": "typescript",
    "tsx": "typescriptreact",
    "javascript": "javascript",
    "jsx": "javascriptreact",
}
# platform → the integrity of its package, and the SHA-256 of the executable in it
_BUILDS = {
    "linux-x64": (
        "sha512-EYdf2cNg7rgCWJnxCdJ+F3V39O8ihb37eHAu1LK8oAFizgTQbPOK7zHHXbPt8rX24COqODXeI3sIf0fCXG7H/A==",
        "4f2de678286401759b3fb4475bafe35b8f32b4b3a07d92642bbf37eadc9b34a4",
    ),
    "linux-arm64": (
        "sha512-Qh4eU4/y3yDjnfjjyPYihMj5/ODIlmt+Bzu17OI+fiSRDW57QmU5SiN63exPRNJPKUzcc1INa1NXdrJ+MqHjUQ==",
        "f86e8070c267b12d6c119bf567cb82d8b245e9d93da1864bc7c603cea10a8b2f",
    ),
    "darwin-arm64": (
        "sha512-gowzar9MwS/aRWp6f3a4KUqzRjAZjOsmGNCM6LcTgXum+dBfgsBVMN+AgvOCCbguXyick6LJhpBszxMebJ8syA==",
        "a82f731365ad69d5c4c15f5e18fba4584bf3b7b839960172a76c3462b5114bf2",
    ),
    "darwin-x64": (
        "sha512-SZ9xZInqApNlNGc9s0W1VSsktYSOe9cFqNOIqmN1Gs8SmkjKZYFt017G4VwPxASInODuAdbTW7sXiFUf893RgA==",
        "76e4987d060ef8207875a53a73619ce665ff16fb2800c0d57a452e21c829bd7b",
    ),
}
_CPUS = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
_ADVICE = "cq doctor --install typescript"
_HINTS = {
    "parameterNames": {"enabled": "all"},
    "parameterTypes": {"enabled": True},
    "variableTypes": {"enabled": True},
    "propertyDeclarationTypes": {"enabled": True},
    "functionLikeReturnTypes": {"enabled": True},
    "enumMemberValues": {"enabled": True},
}
_CONFIGS = ("tsconfig.json", "jsconfig.json")


def install(tools: Path) -> Path:
    """Fetches the compiler for this machine into `tools` and shows that it runs; returns the executable."""
    package = find_build()
    if package is None:
        raise ProviderError(f"there is no TypeScript {VERSION} for {_name_platform()}")
    program = npm.install(package, tools) / "lib" / "tsc"
    found = _check(program, tools)
    if not found.available:
        raise ProviderError(f"TypeScript was fetched and does not run: {found.reason}")
    return program


def find_build() -> npm.Package | None:
    name = _name_platform()
    if name not in _BUILDS:
        return None
    return npm.Package(f"@typescript/typescript-{name}", VERSION, _BUILDS[name][0])


def detect(site: Site) -> Detection:
    """The fetched one, the workspace's own if it is the same, then one in the user's path; only the pinned version."""
    package = find_build()
    reason = "not installed"
    if package and site.tools and (folder := npm.find_package(site.tools, package)):
        found = _check(folder / "lib" / "tsc", site.root)
        if found.available:
            return found
        reason = found.reason
    if package:
        local = site.root / "node_modules" / package.name / "lib" / "tsc"
        if local.is_file() and _hash(local) == _BUILDS[_name_platform()][1]:
            return _check(local, site.root)
    if (program := find_program("tsc", site.root)) and (found := _check(Path(program), site.root)).available:
        return found
    return Detection(False, reason=reason, advice=_ADVICE if package else "")


def make_spec(site: Site, detection: Detection) -> ServerSpec:
    del site
    # Else it runs `npm install` for documents that belong to no project.
    still = {"disableAutomaticTypeAcquisition": True, "automaticTypeAcquisition": {"enabled": False}}
    settings = {**still, "tsserver": still, "inlayHints": _HINTS}
    return ServerSpec(
        "typescript",
        (*detection.command, "--lsp", "--stdio"),
        LANGUAGES,
        settings={"typescript": settings, "javascript": settings, "js/ts": settings},
        options=still,
        coverage=measure_coverage,
    )


def measure_coverage(session: Session, plane: str) -> Coverage:
    """A project-wide answer is as whole as the project the compiler could load."""
    if not PLANES[plane].heavy:
        return Coverage("complete")
    root = session.texts.root
    opened = [PurePosixPath(document.path) for document in list(session.texts.open.values())]
    if not all(
        any((root / folder / name).is_file() for folder in path.parents for name in _CONFIGS) for path in opened
    ):
        return Coverage("partial", "a file has no tsconfig.json: only files that are open or imported are searched")
    if (root / "package.json").is_file() and not (root / "node_modules").is_dir():
        return Coverage("partial", "there is no node_modules: what comes through packages is not found")
    return Coverage("complete")


def _check(program: Path, root: Path) -> Detection:
    found = read_version([os.fspath(program), "--version"], root)
    if found.available and found.version != f"Version {VERSION}":
        return Detection(False, found.version, reason=f"{found.version} is not {VERSION}")
    return Detection(found.available, VERSION, (os.fspath(program),), found.reason)


def _hash(path: Path) -> str:
    try:
        with open_file(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _name_platform() -> str:
    machine = platform.machine().lower()
    return f"{sys.platform}-{_CPUS.get(machine, machine)}"


PROVIDER = Provider(
    "typescript",
    "TypeScript 7 (TypeScript, JavaScript)",
    10,
    tuple(LANGUAGES),
    SERVER_KINDS,
    "tsc",
    detect,
    serve(make_spec),
    resolve=lambda site, detection, targets, budget: resolve_definitions(site.root, detection.command, targets, budget),
)
