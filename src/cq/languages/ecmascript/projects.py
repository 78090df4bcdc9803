"""Projects of TypeScript and JavaScript: tsconfig.json and its like, with what they extend and refer to; packages and
their workspaces."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from posixpath import normpath
from typing import Any, cast

import msgspec

from cq.model.project import Project

MAX_EXTENDS = 20
MAX_BYTES = 1_000_000
MAX_PATTERNS = 200
_CONFIG = re.compile(r"(?:.*/)?(?:[tj]sconfig(?:\.[\w.-]+)?|[\w.-]+\.tsconfig)\.json")
_SOURCES = (".ts", ".tsx", ".mts", ".cts")
_SCRIPTS = (".js", ".jsx", ".mjs", ".cjs")
_DECLARED = (".d.ts", ".d.mts", ".d.cts")
_LEFT_OUT = ("node_modules", "bower_components", "jspm_packages")
_NOISE = re.compile(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_COMMA = re.compile(r'("(?:[^"\\\n]|\\.)*")|,(?=\s*[}\]])')
_Data = dict[str, Any]


def is_config(path: str) -> bool:
    return _CONFIG.fullmatch(path) is not None


def find_projects(paths: Collection[str], read: Callable[[str], bytes | None]) -> list[Project]:
    """By path. `read` gives the text of a file of the repository; nothing outside of it is looked at."""
    return _Finder(paths, read).find()


class _Finder:
    def __init__(self, paths: Collection[str], read: Callable[[str], bytes | None]) -> None:
        self._paths, self._read_text = set(paths), read
        self._known: dict[str, _Data | None] = {}
        self._broken: dict[str, str] = {}
        self._packages = {path.rpartition("/")[0]: path for path in paths if _ends(path, "package.json")}
        self._names: dict[str, str] = {}
        for folder, path in sorted(self._packages.items()):
            name = _get(self._load(path), "name", str)
            if name and "node_modules/" not in path:
                self._names.setdefault(name, folder)
        self._sources = sorted(path for path in paths if path.endswith((*_SOURCES, *_SCRIPTS)))

    def find(self) -> list[Project]:
        todo = sorted(path for path in self._paths if is_config(path) and "node_modules/" not in path)
        chains: dict[str, tuple[list[str], list[str]]] = {}
        references: dict[str, tuple[list[str], list[str]]] = {}
        for path in todo:  # grows
            chains[path] = self._follow(path)
            references[path] = self._find_references(path)
            todo += [each for each in (*chains[path][0], *references[path][0]) if each not in todo]
        extended = {each for chain, _ in chains.values() for each in chain}
        referenced = {each for found, _ in references.values() for each in found}
        by: dict[str, list[str]] = {}
        for path in sorted(todo):
            for each in references[path][0]:
                by.setdefault(each, []).append(path)
        return [
            self._make(path, chains[path], references[path], by.get(path, []), path in extended - referenced)
            for path in sorted(todo)
        ]

    def _make(
        self, path: str, chain: tuple[list[str], list[str]], references: tuple[list[str], list[str]],
        referenced_by: list[str], is_extended: bool,
    ) -> Project:  # fmt: skip
        folder = path.rpartition("/")[0]
        configs = [path, *chain[0]]
        options: dict[str, tuple[Any, str]] = {}  # what holds, and the folder of who says so
        for each in reversed(configs):
            own = _get(self._load(each), "compilerOptions", dict) or {}
            options |= {str(name): (value, each.rpartition("/")[0]) for name, value in own.items()}
        data = self._load(path) or {}
        is_solution = _get(data, "files", list) == [] and "include" not in data and bool(references[0] or references[1])
        is_base = is_extended and not is_solution and not _ends(path, "tsconfig.json") and "references" not in data
        problems = [*chain[1], *references[1]]
        if path in self._broken:
            problems.insert(0, self._broken[path])
        files = [] if is_solution or is_base else self._find_files(configs, options, folder, problems)
        package = self._find_package(folder)
        return Project(
            path,
            _get(self._load(package), "name", str) or folder.rpartition("/")[2] or "." if package else folder or ".",
            is_solution,
            is_base,
            options.get("composite", (False, ""))[0] is True,
            tuple(references[0]),
            tuple(referenced_by),
            tuple(chain[0]),
            tuple(files),
            _place(options, "outDir", folder),
            _place(options, "rootDir", folder),
            tuple(each for value in _texts(options.get("rootDirs", ((), ""))[0])
                  if (each := _join(options["rootDirs"][1], value)) is not None),
            tuple(_list_aliases(options)),
            tuple(_texts(options.get("customConditions", ((), ""))[0])),
            tuple(self._find_workspaces(folder, problems)),
            tuple(dict.fromkeys(problems)),
        )  # fmt: skip

    # -- what others say -------------------------------------------------------------------------

    def _follow(self, path: str) -> tuple[list[str], list[str]]:
        """What a configuration extends, the nearest first, and what of it is not here. What comes later in a list
        counts more, so it stands before the others."""
        chain: list[str] = []
        problems: list[str] = []
        todo = [path]
        while todo:
            here = todo.pop(0)
            found: list[str] = []
            for text in reversed(_texts((self._load(here) or {}).get("extends"))):
                target = self._find_extended(here.rpartition("/")[0], text)
                if target is None:
                    problems.append(f"extends {text!r}, which is not in the repository")
                elif target == path or target in chain:
                    problems.append(f"{here} extends {target}, which leads back" if target == path else "")
                else:
                    found.append(target)
            if len(chain) + len(found) > MAX_EXTENDS:
                problems.append(f"extends more than {MAX_EXTENDS} configurations")
                break
            chain += found
            todo = found + todo
        return chain, [problem for problem in problems if problem]

    def _find_extended(self, folder: str, text: str) -> str | None:
        """`./base`, `../tsconfig.base.json`, `@acme/config/tsconfig.lib.json`, `@tsconfig/node18`."""
        if text.startswith((".", "/")):
            base = _join(folder, text) if not text.startswith("/") else None
            return self._probe(base)
        parts = text.split("/")
        size = 2 if text.startswith("@") else 1
        name, inside = "/".join(parts[:size]), "/".join(parts[size:])
        homes = [f"{above}/node_modules/{name}".lstrip("/") for above in _above(folder)]
        homes += [self._names[name]] if name in self._names else []
        for home in homes:
            package = self._load(f"{home}/package.json".lstrip("/"))
            inner = inside or _get(package, "tsconfig", str) or "tsconfig.json"
            exported = _get(package, "exports", dict) or {}
            target = exported.get(f"./{inside}") if inside else exported.get(".")
            for each in (*_texts(target), inner):
                if (found := self._probe(_join(home, each))) is not None:
                    return found
        return None

    def _probe(self, base: str | None) -> str | None:
        if base is None:
            return None
        return next((each for each in (base, f"{base}.json", f"{base}/tsconfig.json") if each in self._paths), None)

    def _find_references(self, path: str) -> tuple[list[str], list[str]]:
        found: list[str] = []
        problems: list[str] = []
        for each in _get(self._load(path), "references", list) or []:
            text = _get(each, "path", str)
            base = _join(path.rpartition("/")[0], text) if text else None
            targets = () if base is None else (base, f"{base}/tsconfig.json".lstrip("/"))
            target = next((name for name in targets if name in self._paths), None)
            if target is not None and target != path:
                found.append(target)
            elif text:
                problems.append(f"refers to {text!r}, which is {'itself' if target else 'not in the repository'}")
        return list(dict.fromkeys(found)), problems

    def _find_package(self, folder: str) -> str:
        return self._packages.get(folder, "")

    def _find_workspaces(self, folder: str, problems: list[str]) -> Iterator[str]:
        """The configurations of the packages that npm, yarn or pnpm keep together here."""
        said = (self._load(self._packages.get(folder, "")) or {}).get("workspaces")
        patterns = _texts(_get(said, "packages", list) if isinstance(said, dict) else said)
        patterns += _read_pnpm(self._read_text(f"{folder}/pnpm-workspace.yaml".lstrip("/")))
        for pattern in patterns[:MAX_PATTERNS]:
            if pattern.startswith("!"):
                continue
            base = _join(folder, pattern)
            if base is None:
                problems.append(f"the workspace {pattern!r} leads out of the repository")
                continue
            test = _compile(base)
            refused = [_compile(each) for other in patterns if other[:1] == "!" and (each := _join(folder, other[1:]))]
            for inner in sorted(self._packages):
                config = f"{inner}/tsconfig.json"
                is_left_out = "node_modules" in inner.split("/") or any(each.fullmatch(inner) for each in refused)
                if inner and inner != folder and test.fullmatch(inner) and not is_left_out:
                    yield config if config in self._paths else self._packages[inner]

    # -- files -----------------------------------------------------------------------------------

    def _find_files(
        self, configs: Sequence[str], options: Mapping[str, tuple[Any, str]], folder: str, problems: list[str]
    ) -> list[str]:
        """What `files`, `include` and `exclude` leave; what these files import is not followed."""
        said: dict[str, tuple[list[str], str]] = {}
        for name in ("files", "include", "exclude"):
            for config in configs:
                listed = _get(self._load(config), name, list)
                if listed is not None:
                    said[name] = _texts(listed)[:MAX_PATTERNS], config.rpartition("/")[0]
                    break
        endings = _SOURCES
        if options.get("allowJs", (False, ""))[0] is True or configs[0].rpartition("/")[2].startswith("jsconfig"):
            endings += _SCRIPTS
        own: dict[str, None] = {}
        for text in said.get("files", ([], ""))[0]:
            path = _join(said["files"][1], text)
            if path is not None and path in self._paths:
                own[path] = None
            else:
                problems.append(f"names the file {text!r}, which is not in the repository")
        patterns, home = said.get("include", ([] if "files" in said else ["**/*"], folder))
        tests = [_compile_pattern(home, pattern, folder, False) for pattern in patterns]
        refused, base = said.get("exclude", (list(_LEFT_OUT), folder))
        out = _place(options, "outDir", folder)
        stops = [_compile_pattern(base, pattern, folder, True) for pattern in refused]
        if "exclude" not in said and out and out != ".":
            stops.append(_compile_pattern("", out, "", True))
        for path in self._sources:
            if not path.endswith(endings) or path in own or any(f"/{each}/" in f"/{path}" for each in _LEFT_OUT):
                continue
            if any(test is not None and test.match(path) for test in tests) and not any(
                stop is not None and stop.match(path) for stop in stops
            ):
                own[path] = None
        return sorted(path for path in own if not path.endswith(_DECLARED))

    def _load(self, path: str) -> _Data | None:
        """What a file of JSON with comments says, read once; None where it says nothing."""
        if not path or path not in self._paths:
            return None
        if path not in self._known:
            text = self._read_text(path)
            data: object = None
            if text is not None and len(text) <= MAX_BYTES:
                try:
                    data = msgspec.json.decode(_strip(text.decode("utf-8", "replace")))
                except (msgspec.DecodeError, RecursionError) as error:
                    self._broken[path] = f"is no JSON: {error}"
            self._known[path] = cast("_Data", data) if isinstance(data, dict) else None
        return self._known[path]


def _strip(text: str) -> str:
    """Without comments and commas at the end of lists."""
    plain = _NOISE.sub(lambda match: match[1] or " ", text.removeprefix("\ufeff"))
    return _COMMA.sub(lambda match: match[1] or "", plain)


def _read_pnpm(text: bytes | None) -> list[str]:
    """The patterns of `packages:` in pnpm-workspace.yaml, a list of one line each."""
    found: list[str] = []
    inside = False
    for line in (text or b"").decode("utf-8", "replace").splitlines()[:1000]:
        if re.match(r"\S", line) and not line.startswith(("-", "#")):
            inside = line.startswith("packages:")
        elif inside and (item := re.match(r"""\s*-\s*["']?([^"'#\s]+)""", line)) is not None:
            found.append(item[1])
    return found


def _list_aliases(options: Mapping[str, tuple[Any, str]]) -> Iterator[tuple[str, tuple[str, ...]]]:
    paths, folder = options.get("paths", ({}, ""))
    base, home = options.get("baseUrl", (".", folder))
    root = _join(home, base) if isinstance(base, str) else folder
    for pattern, targets in sorted(paths.items()) if isinstance(paths, dict) else ():
        joined = [_join(root or "", text) for text in _texts(targets)]
        yield str(pattern), tuple(each for each in joined if each is not None)


def _place(options: Mapping[str, tuple[Any, str]], name: str, folder: str) -> str:
    """A folder that an option names, "" for none in the repository."""
    value, home = options.get(name, ("", ""))
    if not isinstance(value, str) or not value:
        return ""
    if value.startswith("${configDir}"):
        value, home = f".{value.removeprefix('${configDir}')}", folder
    found = _join(home, value)
    return "." if found == "" else found or ""


@lru_cache(maxsize=1024)
def _compile_pattern(folder: str, pattern: str, project: str, is_refused: bool) -> re.Pattern[str] | None:
    """A pattern of `include` or `exclude`: a folder means all that is below it; None for what lies outside."""
    if pattern.startswith("${configDir}"):
        folder, pattern = project, f".{pattern.removeprefix('${configDir}')}"
    base = _join(folder, pattern)
    if base is None:
        return None
    if base == "":
        base = "**/*"
    if not is_refused and not set("*?.") & set(base.rpartition("/")[2]):
        base += "/**/*"  # a folder
    return re.compile(_translate(base) + (r"(?:/|\Z)" if is_refused else r"\Z"))


@lru_cache(maxsize=1024)
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(_translate(pattern))


def _translate(pattern: str) -> str:
    """Wildcards pass over names that begin with a dot."""
    parts: list[str] = []
    for part in pattern.split("/"):
        if part == "**":
            if not parts or parts[-1] != _ANY_FOLDERS:
                parts.append(_ANY_FOLDERS)
            continue
        words = "".join({"*": "[^/]*", "?": "[^/]"}.get(each, re.escape(each)) for each in re.sub(r"\*+", "*", part))
        parts.append(f"{'(?![.])' if part[:1] in '*?' else ''}{words}/")
    whole = "".join(parts)
    return whole[:-1] if whole.endswith("/") else f"{whole}[^/]+"


_ANY_FOLDERS = "(?:[^/.][^/]*/)*"


def _join(folder: str, path: str) -> str | None:
    """None for what lies above the repository."""
    if path.startswith("/"):
        return None
    joined = normpath(f"{folder}/{path}" if folder else path)
    return None if joined.startswith("..") else "" if joined == "." else joined


def _above(folder: str) -> Iterator[str]:
    yield folder
    while folder:
        folder = folder.rpartition("/")[0]
        yield folder


def _ends(path: str, name: str) -> bool:
    return path == name or path.endswith(f"/{name}")


def _get(data: object, name: str, kind: type) -> Any:
    """An entry of a table if it is of that kind, else None."""
    value = cast("_Data", data).get(name) if isinstance(data, dict) else None
    return value if isinstance(value, kind) else None


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [each for each in cast("list[object]", value) if isinstance(each, str)] if isinstance(value, list) else []
