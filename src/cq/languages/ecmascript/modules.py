"""Which file an ECMAScript import means: relative paths, tsconfig, packages and workspaces of the repository."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from posixpath import normpath
from typing import TYPE_CHECKING

from cq.graph.engine.cells import Answers
from cq.graph.scopes import ROOT
from cq.model.code import Dictionary, Listing, Text, Value

if TYPE_CHECKING:
    from cq.graph.link import Linker

ENDINGS = (".ts", ".tsx", ".d.ts", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs", ".vue", ".svelte", ".json")
# What TypeScript files call the files that will be made of others: `./a.js` is a.ts.
_WRITTEN_AS = {".js": (".ts", ".tsx", ".d.ts"), ".jsx": (".tsx",), ".mjs": (".mts",), ".cjs": (".cts",)}
DECLARATIONS = (".d.ts", ".d.mts", ".d.cts")  # files of types alone: nothing runs
_DECLARED_AS = {".js": ".d.ts", ".mjs": ".d.mts", ".cjs": ".d.cts"}
_BUILT = ("dist", "lib", "build", "out", "esm", "cjs", "es")
_CONDITIONS = ("source", "types", "import", "module", "require", "node", "browser", "default")
MAX_CONFIGS = 10  # that one import is looked up in
MAX_LEAVES = 20


class Modules:
    """Over the paths of a repository. What configuration says is read from its documents when first needed."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._files: set[str] = set()
        self._configs: dict[str, str] = {}  # folder -> tsconfig.json
        self._packages: dict[str, str] = {}  # folder -> package.json
        for path in sorted(paths):
            if path.endswith(ENDINGS):
                self._files.add(path)
                folder, _, name = path.rpartition("/")
                if name == "tsconfig.json" or (name == "jsconfig.json" and folder not in self._configs):
                    self._configs[folder] = path
                elif name == "package.json":
                    self._packages[folder] = path
        self._answers = Answers(self._find)

    def find(self, linker: Linker, path: str, module: str) -> str | None:
        """The path of the file; "" for what is outside the repository, None where there should be one and is none."""
        folder = path.rpartition("/")[0]
        found = self._answers.find(linker, (folder, module))
        if found and path.endswith(DECLARATIONS):
            stem, dot, ending = found.rpartition(".")
            declared = stem + _DECLARED_AS.get(dot + ending, "")
            if declared in self._files:  # `./a.js` in a.d.ts's folder: types know types
                return declared
        return found

    def _find(self, linker: Linker, asked: tuple[str, str]) -> str | None:
        folder, module = asked[0], asked[1].partition("?")[0]
        if module.startswith(".") or not module:
            aimed = _join(folder, module)
            return self._probe(aimed) or self._enter(linker, aimed) or self._find_in_roots(linker, folder, module)
        if module.startswith("#"):
            return self._find_inside(linker, folder, module) or self._find_mapped(linker, folder, module)
        return self._find_mapped(linker, folder, module) or self._find_package(linker, folder, module) or ""

    def _probe(self, base: str | None) -> str | None:
        """A file, with what an import leaves out."""
        if base is None:
            return None
        if base in self._files:
            return base
        for ending, others in _WRITTEN_AS.items():
            if base.endswith(ending):
                for other in others:
                    if base.removesuffix(ending) + other in self._files:
                        return base.removesuffix(ending) + other
        for prefix in (base, f"{base}/index" if base else "index"):
            for ending in ENDINGS:
                if prefix + ending in self._files:
                    return prefix + ending
        return None

    # -- configuration ---------------------------------------------------------------------------

    def _setting(self, linker: Linker, path: str, name: str) -> Value:
        """What a JSON document has under a name at its root."""
        unit = linker.documents.get(path)
        binds = () if unit is None else unit.bound(ROOT, name)
        return binds[0].value if binds else None

    def _find_mapped(self, linker: Linker, folder: str, module: str) -> str | None:
        """`paths` and `baseUrl` of the nearest tsconfig.json and of those behind it."""
        for config in self._list_configs(linker, folder):
            here = config.rpartition("/")[0]
            options = self._setting(linker, config, "compilerOptions")
            base = _text(_entry(options, "baseUrl"))
            mapped = _entry(options, "paths")
            if isinstance(mapped, Dictionary):
                best: tuple[int, list[str]] | None = None
                for key, targets in zip(mapped.keys, mapped.values, strict=True):
                    pattern = _text(key) or ""
                    inside = _match(pattern, module)
                    if inside is not None and (best is None or len(pattern) > best[0]):
                        best = len(pattern), [t.replace("*", inside) for t in map(_text, _list(targets)) if t]
                for target in best[1] if best else ():
                    aimed = _join(_join(here, base or ".") or "", target)
                    found = self._probe(aimed) or self._enter(linker, aimed)
                    if found is not None:
                        return found
            if base is not None:
                found = self._probe(_join(_join(here, base) or "", module))
                if found is not None:
                    return found
        return None

    def _find_in_roots(self, linker: Linker, folder: str, module: str) -> str | None:
        """`rootDirs`: folders that will lie one in the other's place."""
        aimed = _join(folder, module)
        if aimed is None:
            return None
        for config in self._list_configs(linker, folder):
            listed = _entry(self._setting(linker, config, "compilerOptions"), "rootDirs")
            texts = [text for text in map(_text, _list(listed)) if text]
            roots = [root for text in texts if (root := _join(config.rpartition("/")[0], text)) is not None]
            inside = next((aimed[len(root) + 1 :] for root in roots if aimed.startswith(f"{root}/")), None)
            for root in roots if inside is not None else ():
                found = self._probe(_join(root, inside)) if inside is not None else None
                if found is not None:
                    return found
        return None

    def _list_configs(self, linker: Linker, folder: str) -> Iterator[str]:
        """The nearest tsconfig.json, what it extends, of several the last first, and, where these say nothing, the
        projects that it refers to."""
        nearest = next((self._configs[above] for above in _above(folder) if above in self._configs), None)
        todo, later, seen = [nearest] if nearest is not None else [], list[str](), set[str]()
        while (todo or later) and len(seen) < MAX_CONFIGS:
            config = todo.pop(0) if todo else later.pop(0)
            if config in seen:
                continue
            seen.add(config)
            yield config
            here = config.rpartition("/")[0]
            further = [text for text in map(_text, _list(self._setting(linker, config, "extends"))) if text]
            found = [self._find_config(linker, here, text) for text in reversed(further)]
            todo = [path for path in found if path is not None] + todo
            if config == nearest:
                referred = [_text(_entry(each, "path")) for each in _list(self._setting(linker, config, "references"))]
                known = (self._find_config(linker, here, f"./{text}") for text in referred if text)
                later = [path for path in known if path is not None]

    def _find_config(self, linker: Linker, folder: str, text: str) -> str | None:
        """What `extends` or a reference names: a file, its folder, a file of a package of the repository."""
        inside = text
        if text.startswith("."):
            home = folder
        else:
            parts = text.split("/")
            size = 2 if text.startswith("@") else 1
            known = self._find_home(linker, folder, "/".join(parts[:size]))
            if known is None:
                return None
            home, inside = known, "/".join(parts[size:]) or "."
        base = _join(home, inside)
        names = () if base is None else (base, f"{base}.json", f"{base}/tsconfig.json".lstrip("/"))
        return next((path for path in names if path in self._files), None)

    def _find_home(self, linker: Linker, folder: str, name: str) -> str | None:
        """The folder of a package of the repository; of several of a name that which is nearest."""
        homes = [
            home
            for home, path in self._packages.items()
            if "node_modules/" not in path and self._setting(linker, path, "name") == Text(name)
        ]
        return max(homes, key=lambda home: _count_shared(home, folder), default=None)

    def _find_package(self, linker: Linker, folder: str, module: str) -> str | None:
        """A package of the same repository, by its name."""
        parts = module.split("/")
        size = 2 if module.startswith("@") else 1
        home = self._find_home(linker, folder, "/".join(parts[:size]))
        return None if home is None else self._enter(linker, home, "/".join(parts[size:]))

    def _find_inside(self, linker: Linker, folder: str, module: str) -> str | None:
        """`#name` of the nearest package.json."""
        for above in _above(folder):
            if above in self._packages:
                known = self._setting(linker, self._packages[above], "imports")
                return self._choose(above, _leaves(known, module))
        return None

    def _enter(self, linker: Linker, home: str | None, inside: str = "") -> str | None:
        """The file that a package gives for itself, or for a path in it."""
        if home is None or home not in self._packages:
            return None
        path = self._packages[home]
        targets = list(_leaves(self._setting(linker, path, "exports"), f"./{inside}" if inside else "."))
        if not inside:
            for name in ("source", "types", "typings", "module", "main"):
                targets += [text for text in (_text(self._setting(linker, path, name)),) if text]
        found = self._choose(home, targets)
        for base in (inside or "index", f"src/{inside or 'index'}"):
            found = found or self._probe(_join(home, base))
        return found

    def _choose(self, home: str, targets: Iterable[str]) -> str | None:
        """The first target that is there; what will be built stands in the folder of sources."""
        for target in targets:
            found = self._probe(_join(home, target))
            parts = normpath(target).split("/")
            if found is None and len(parts) > 1 and parts[0] in _BUILT:
                stems = (parts[1:], parts[2:]) if len(parts) > 2 and parts[1] in (*_BUILT, "types") else (parts[1:],)
                for stem in stems:
                    base = "/".join(stem)
                    for ending in DECLARATIONS:
                        base = base.removesuffix(ending)
                    found = found or self._probe(_join(home, f"src/{base}"))
            if found is not None:
                return found
        return None


def _count_shared(folder: str, other: str) -> int:
    """How many folders from the root on two of them have in common."""
    count = 0
    for first, second in zip(folder.split("/"), other.split("/"), strict=False):
        if first != second or not first:
            break
        count += 1
    return count


def _join(folder: str, path: str) -> str | None:
    """None for what lies above the repository."""
    joined = normpath(f"{folder}/{path}" if folder else path)
    return None if joined.startswith(("..", "/")) else "" if joined == "." else joined


def _above(folder: str) -> Iterator[str]:
    yield folder
    while folder:
        folder = folder.rpartition("/")[0]
        yield folder


def _match(pattern: str, module: str) -> str | None:
    """What the star of a pattern stands for; "" where there is none."""
    before, star, behind = pattern.partition("*")
    if not star:
        return "" if pattern == module else None
    if len(module) >= len(before) + len(behind) and module.startswith(before) and module.endswith(behind):
        return module[len(before) : len(module) - len(behind)]
    return None


def _leaves(known: Value, module: str) -> Iterator[str]:
    """Targets of `exports` or `imports` for a path, in the order of the conditions that we prefer."""
    if isinstance(known, Dictionary):
        keys = [_text(key) or "" for key in known.keys]
        if any(key.startswith((".", "#")) for key in keys):
            inside, best = "", None
            for key, target in sorted(zip(keys, known.values, strict=True), key=lambda item: -len(item[0])):
                found = _match(key, module)
                if found is not None:
                    inside, best = found, target
                    break
            yield from (text.replace("*", inside) for text in _strings(best))
            return
    if module == ".":
        yield from _strings(known)


def _strings(known: Value) -> Iterator[str]:
    todo = [known]
    for _ in range(MAX_LEAVES):
        if not todo:
            return
        value = todo.pop()
        if isinstance(value, Dictionary):
            found = {_text(key): inner for key, inner in zip(value.keys, value.values, strict=True)}
            # Conditions of a project's own (`@acme/source`) lead to its sources.
            own = [inner for name, inner in found.items() if name not in _CONDITIONS]
            todo += [found[name] for name in reversed(_CONDITIONS) if name in found] + own[::-1]
        elif isinstance(value, Listing):
            todo += reversed(value.elements)
        elif (text := _text(value)) is not None:
            yield text


def _entry(known: Value, name: str) -> Value:
    if isinstance(known, Dictionary):
        for key, value in zip(known.keys, known.values, strict=True):
            if key == Text(name):
                return value
    return None


def _list(known: Value) -> tuple[Value, ...]:
    return known.elements if isinstance(known, Listing) else (known,)


def _text(value: Value) -> str | None:
    return value.value if isinstance(value, Text) else None
