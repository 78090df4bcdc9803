"""rust-analyzer: Rust, where it really runs. What it may say is decided by what it says of its own state.

Cargo runs programs that a repository names (wrappers, toolchains, build scripts). So rust-analyzer is given a
description of the crates made from their manifests, and starts cargo only where the user trusts the repository.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path, PurePosixPath
from typing import Any

from cq.model.provider import Coverage
from cq.model.source import Skip
from cq.providers.programs import Detection, Tree, find_program, read_version
from cq.providers.registry import SERVER_KINDS, Provider, Site, serve
from cq.providers.session import ServerSpec, Session
from cq.source.program import OUTSIDE
from cq.source.read import read_bytes

_MAX_MANIFESTS = 2000
_MAX_MANIFEST = 1024 * 1024
_SETTINGS = ("rust-analyzer.toml", ".rust-analyzer.toml")
_SYMBOLS = {"document_symbols", "workspace_symbols", "tokens", "runnables"}


def detect(site: Site) -> Detection:
    # rustup leaves a stub of this name in the path that only tells how to install it.
    program = find_program("rust-analyzer", site.root)
    if program is None:
        return Detection(False, reason="not found", advice="rustup component add rust-analyzer")
    found = read_version([program, "--version"], site.root)
    advice = "" if found.available else "rustup component add rust-analyzer"
    return Detection(found.available, found.version, (program,), found.reason, advice)


def make_spec(site: Site, detection: Detection) -> ServerSpec:
    options: dict[str, Any] = {
        "checkOnSave": False,
        "cargo": {"buildScripts": {"enable": site.trusted}},
        "procMacro": {"enable": site.trusted},
        "files": {"watcher": "client"},
    }
    sysroot = "" if site.trusted else find_sysroot(site.root)
    if not site.trusted:
        options["linkedProjects"] = [describe_crates(site.root, sysroot)]
    return ServerSpec(
        "rust-analyzer",
        detection.command,
        {"rust": "rust"},
        env={} if site.trusted else _keep_toolchain(sysroot),
        settings={"rust-analyzer": options},
        options=options,
        unadvertised=frozenset({"expandMacroProvider", "runnablesProvider"}),
        coverage=measure_coverage,
        ready=lambda session: session.server_status.get("quiescent") is True,
    )


def _keep_toolchain(sysroot: str) -> dict[str, str]:
    """It asks rustc about the target from inside the repository, where rustup takes the toolchain that a file there
    names, unless this does. Without one of the user's, what it finds by itself is not to be run either."""
    if sysroot:
        return {"RUSTUP_TOOLCHAIN": sysroot}
    return dict.fromkeys(("CARGO", "RUSTC"), f"{OUTSIDE}no-toolchain")


def find_hazard(site: Site, tree: Tree) -> str:
    """Settings in the repository go before ours, and may name a program to check with."""
    what = tree.find_settings(site.root, _SETTINGS, lambda _: True)
    return what and f"{what} may make rust-analyzer run programs; not asked in a repository that is not trusted"


def measure_coverage(session: Session, plane: str) -> Coverage:
    """`quiescent` and healthy: everything; a warning: only what needs no types; before that, nothing is whole."""
    status = session.server_status
    health = status.get("health")
    if status.get("quiescent") is not True:
        return Coverage("partial", "rust-analyzer is still reading the project")
    if health == "ok" or (health == "warning" and plane in _SYMBOLS):
        return Coverage("complete")
    message = str(status.get("message") or "no reason given").partition("\n")[0][:200]
    return Coverage("partial", f"rust-analyzer is not healthy: {message}")


def find_sysroot(root: Path) -> str:
    """Asked outside of the repository, which may name a toolchain of its own."""
    program = find_program("rustc", root)
    return read_version([program, "--print", "sysroot"], root).version if program else ""


def describe_crates(root: Path, sysroot: str) -> dict[str, Any]:
    """A `rust-project.json` of every crate of the repository, with the dependencies they have on each other."""
    crates: list[dict[str, Any]] = []
    named: dict[str, int] = {}  # library name → its crate
    wanted: list[set[str]] = []
    for folder, manifest in _find_manifests(root):
        package = _table(manifest, "package")
        if not isinstance(package.get("name"), str):
            continue
        name = str(package["name"]).replace("-", "_")
        edition = package.get("edition")
        needs = {
            str(key).replace("-", "_")
            for kind in ("dependencies", "dev-dependencies", "build-dependencies")
            for key in _table(manifest, kind)
        }
        library = str(_table(manifest, "lib").get("path") or "src/lib.rs")
        for path, is_library in ((library, True), *((each, False) for each in _find_binaries(root / folder))):
            full = os.path.normpath(root / folder / path)
            if not Path(full).is_file() or not full.startswith(f"{root}{os.sep}"):
                continue
            if is_library:
                named.setdefault(name, len(crates))
            crates.append({
                "display_name": name,
                "root_module": full,
                "edition": edition if edition in ("2015", "2018", "2021", "2024") else "2021",
                "is_workspace_member": True,
                "deps": [],
                "cfg": [],
                "env": {},
            })  # fmt: skip
            wanted.append(needs if is_library else needs | {name})
    for at, needs in enumerate(wanted):
        crates[at]["deps"] = [
            {"crate": named[name], "name": name} for name in sorted(needs) if name in named and named[name] != at
        ]
    project: dict[str, Any] = {"crates": crates}
    if sysroot:
        project |= {"sysroot": sysroot, "sysroot_src": f"{sysroot}/lib/rustlib/src/rust/library"}
    return project


def _find_manifests(root: Path) -> list[tuple[PurePosixPath, dict[str, Any]]]:
    found: list[tuple[PurePosixPath, dict[str, Any]]] = []
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in ("target", "node_modules") and name[0] != ".")
        if "Cargo.toml" not in files:
            continue
        relative = PurePosixPath(folder).relative_to(root)
        raw = read_bytes(os.fspath(root), os.fspath(relative / "Cargo.toml"), _MAX_MANIFEST)
        if not isinstance(raw, Skip):
            try:
                found.append((relative, tomllib.loads(raw.decode("utf-8", "replace"))))
            except (tomllib.TOMLDecodeError, RecursionError):
                continue
        if len(found) >= _MAX_MANIFESTS:
            break
    return found


def _find_binaries(folder: Path) -> list[str]:
    try:
        names = sorted(path.name for path in (folder / "src" / "bin").iterdir() if path.suffix == ".rs")
    except OSError:
        names = []
    return ["src/main.rs", *(f"src/bin/{name}" for name in names[:100])]


def _table(manifest: dict[str, Any], key: str) -> dict[str, Any]:
    value = manifest.get(key)
    return value if isinstance(value, dict) else {}


PROVIDER = Provider(
    "rust-analyzer",
    "rust-analyzer (Rust)",
    10,
    ("rust",),
    (*SERVER_KINDS, "macros", "runnables"),
    "rust-analyzer",
    detect,
    serve(make_spec),
    settings=_SETTINGS,
    hazard=find_hazard,
)
