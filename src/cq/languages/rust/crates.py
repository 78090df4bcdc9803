"""Which file a path of Rust begins in: crates and their manifests, the files of `mod name;`, the module above."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from cq.graph.scopes import ROOT
from cq.model.code import Bind, Text

if TYPE_CHECKING:
    from cq.graph.link import Linker

_OWN_CRATES = ("tests", "examples", "benches", "bin")  # folders whose files are crates of their own


class Crates:
    """Over the paths of a repository; what manifests say is read when first needed. No keys are recorded: another
    manifest relinks everything (indexing.link)."""

    def __init__(self, linker: Linker, paths: Iterable[str]) -> None:
        paths = set(paths)
        self._linker = linker
        self.files = {path for path in paths if path.endswith(".rs")}
        self._manifests = {path for path in paths if path.rpartition("/")[2] == "Cargo.toml"}
        self._named: dict[str, list[str]] | None = None  # by name: the files that libraries begin with
        self._placed: dict[str, str] | None = (
            None  # folder of a manifest -> the file that it says its library begins with
        )

    def root(self, path: str) -> str | None:
        """The file of the crate that a file belongs to."""
        folder, _, name = path.rpartition("/")
        parent, _, place = folder.rpartition("/")
        if name == "build.rs" or place in _OWN_CRATES:
            return path
        if parent.endswith(_OWN_CRATES) and name == "main.rs":
            return path
        placed = self._find_placed()
        while True:
            if folder in placed and name != "main.rs":
                return placed[folder]
            for stem in ("lib.rs", "main.rs"):
                root = f"{folder}/{stem}" if folder else stem
                if root in self.files:
                    return root
            if not folder:
                return None
            folder = folder.rpartition("/")[0]

    def parent(self, path: str) -> str | None:
        """The file of the module that a file's module stands in."""
        folder, _, name = path.rpartition("/")
        placed = self._find_placed().values()
        if name in ("lib.rs", "main.rs") or path in placed:
            return None
        if name == "mod.rs":
            folder = folder.rpartition("/")[0]
        prefix = f"{folder}/" if folder else ""
        roots = [root for root in placed if root.rpartition("/")[0] == folder]
        for candidate in (f"{prefix}mod.rs", f"{folder}.rs", *roots, f"{prefix}lib.rs", f"{prefix}main.rs"):
            if candidate in self.files and candidate != path:
                return candidate
        return None

    def child(self, path: str, names: str) -> str | None:
        """The file of `mod name;`; inline modules around it are folders."""
        folder, _, name = path.rpartition("/")
        stem = f"{folder}/" if folder else ""
        if name not in ("lib.rs", "main.rs", "mod.rs") and self.root(path) != path:
            stem = f"{stem}{name.removesuffix('.rs')}/"
        for candidate in (f"{stem}{names}.rs", f"{stem}{names}/mod.rs"):
            if candidate in self.files:
                return candidate
        return None

    def find(self, path: str, name: str) -> str | None:
        """The file that a crate of the repository begins with, the nearest of that name. A manifest may call it
        otherwise for its own code."""
        if self._named is None:
            self._named = {}
            placed = self._find_placed()
            roots = {path.removesuffix("src/lib.rs"): path for path in self.files if path.endswith("src/lib.rs")}
            roots |= {f"{folder}/" if folder else "": root for folder, root in placed.items()}
            for folder in sorted(roots):
                package = f"package {self._name_crate(folder, ('package',))}"
                for known in {self._name_crate(folder, ("lib", "package")), package}:
                    self._named.setdefault(known, []).append(roots[folder])
        package = self._find_renamed(path, name)
        roots = self._named.get(f"package {package}" if package else name, ())
        here = path.split("/")
        return min(roots, key=lambda root: (-_common(here, root.split("/")), root), default=None)

    def _find_renamed(self, path: str, name: str) -> str:
        """The package that the manifest of a file's crate, or that of the workspace around it, calls otherwise."""
        kind = "dependency"
        folder = path.rpartition("/")[0]
        while True:
            manifest = f"{folder}/Cargo.toml" if folder else "Cargo.toml"
            for table in (kind, "workspace"):
                for text in self._read(manifest, f"{table} {name}"):
                    return text.replace("-", "_")
            if manifest in self._manifests:
                kind = "workspace"  # further up stand the manifests of others
            if not folder:
                return ""
            folder = folder.rpartition("/")[0]

    def _name_crate(self, folder: str, tables: tuple[str, ...]) -> str:
        """What the manifest calls the library, else the folder."""
        for table in tables:
            for text in self._read(f"{folder}Cargo.toml", table):
                return text.replace("-", "_")
        return folder.rstrip("/").rpartition("/")[2].replace("-", "_")

    def _find_placed(self) -> dict[str, str]:
        if self._placed is None:
            self._placed = {}
            for manifest in sorted(self._manifests):
                folder = manifest.rpartition("/")[0]
                for text in self._read(manifest, "lib path"):
                    path = join_path(folder, text)
                    if path in self.files and not path.endswith("src/lib.rs"):
                        self._placed[folder] = path
        return self._placed

    def _read(self, manifest: str, name: str) -> Iterator[str]:
        unit = self._linker.documents.get(manifest) if manifest in self._manifests else None
        binds: Sequence[Bind] = unit.bound(ROOT, name) if unit is not None else ()
        yield from (bind.value.value for bind in binds if isinstance(bind.value, Text))


def join_path(folder: str, path: str) -> str:
    parts = folder.split("/") if folder else []
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count
