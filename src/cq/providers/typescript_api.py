"""TypeScript 7 over its own API (`tsc --api --async`): the declarations of many positions at once.

    replies = resolve_definitions(root, detection.command, [Target(document, offset), ...])

The API is named unstable, so the version is pinned, and every declaration is checked: the name that stands where it
is said to be must be the symbol's. The compiler is given our texts and, where a repository has no packages installed,
a configuration of our own; nothing is written to the disk.
"""

from __future__ import annotations

import os
import re
import time
from base64 import b64decode
from binascii import Error as Base64Error
from collections import deque
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import msgspec

from cq.model.provider import Coverage, Place, Reply
from cq.providers.answers import Target
from cq.providers.documents import Document, Texts, name_external
from cq.providers.positions import from_units, to_units
from cq.providers.rpc import Connection, Request, ServerError
from cq.providers.session import BUDGETS, Budget

PLANE = "definition"
_CALLBACKS = "readFile,fileExists,directoryExists"
_ID = "typescript"
_CONFIGS = ("tsconfig.json", "jsconfig.json")
_BUNDLER = {"module": "esnext", "moduleResolution": "bundler", "types": []}
_LOOSE = {**_BUNDLER, "allowJs": True, "jsx": "preserve", "target": "esnext", "noEmit": True, "skipLibCheck": True}
_ALIAS = 1 << 21
_AST_VERSION = 5
_NAMES = {79, 80}  # Identifier, PrivateIdentifier
_PROPERTY_ACCESS, _SOURCE_FILE = 212, 307
_BATCH, _WINDOW = 1000, 64
_MAX_DECLARATIONS = 25
_MAX_AST = 128 * 1024 * 1024
_TRIVIA = re.compile(rb"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_WORD = re.compile(rb"[\w$#]+|.?")
_BARE = "no node_modules: modules are resolved as a bundler would, without packages"


def resolve_definitions(
    root: Path, command: Sequence[str], targets: Sequence[Target], budget: Budget = BUDGETS["precise"]
) -> list[Reply[Place]]:
    """One reply per target, in order; each names every declaration of the symbol that stands there."""
    deadline = time.monotonic() + budget.total
    resolver = _Resolver(root, targets)
    try:
        resolver.start(command, budget, deadline)
        try:
            return resolver.resolve()
        finally:
            resolver.close()
    except ServerError as error:
        reason = Coverage("unresolved", str(error))
        return [Reply(_ID, PLANE, reason, timed_out=error.timed_out, failed=True)] * len(targets)


class _Project(NamedTuple):
    id: str
    files: frozenset[str]
    note: str


class _Tree(NamedTuple):
    """A file as the compiler parsed it: seven numbers a node, in pre-order, and the texts of its names."""

    nodes: memoryview[int]
    strings: bytes
    ends: memoryview[int]

    def node(self, index: int) -> tuple[int, int, int, int, int, int]:
        """kind, pos, end, next sibling, parent, data"""
        kind, pos, end, following, parent, data = self.nodes[index * 7 : index * 7 + 6]
        return kind, pos, end, following, parent, data

    def __len__(self) -> int:
        return len(self.nodes) // 7

    def name(self, data: int) -> str:
        if data >> 30 != 1:
            return ""
        number = data & 0xFFFFFF
        if number + 1 >= len(self.ends):
            return ""
        return self.strings[self.ends[number] : self.ends[number + 1]].decode("utf-8", "replace")


class _Resolver:
    def __init__(self, root: Path, targets: Sequence[Target]) -> None:
        self.texts = Texts(root)
        self.targets = targets
        self.documents = {self.texts.absolute(target.document): target.document for target in targets}
        self.texts.open |= self.documents
        self.overlays: dict[str, str] = {
            path: document.text.decode("utf-8") for path, document in self.documents.items()
        }
        # Embedded documents have a place of their own below the root; around it, there is the root once more, so that
        # what they import is found.
        virtual = {
            document.name.partition("/")[0] for document in self.documents.values() if document.name != document.path
        }
        self._shadows = tuple(f"{self.texts.root}/{name}/" for name in sorted(virtual))
        self._trees: dict[str, _Tree | None] = {}
        self._snapshot = 0

    def start(self, command: Sequence[str], budget: Budget, deadline: float) -> None:
        self._budget, self._deadline = budget, deadline
        callbacks = _CALLBACKS if self._shadows else "readFile"
        options = ("--api", "--async", "--cwd", os.fspath(self.texts.root), f"--callbacks={callbacks}")
        self._connection = Connection(
            (*command, *options),
            root=self.texts.root,
            answer=self._answer,
            notice=lambda _method, _params: None,
        )

    def close(self) -> None:
        # It ignores SIGTERM and knows no `exit`: it ends when its input does.
        self._connection.close(grace=0.2)

    def resolve(self) -> list[Reply[Place]]:
        projects = self._open()
        groups: dict[str, list[int]] = {}
        for number, target in enumerate(self.targets):
            groups.setdefault(self.texts.absolute(target.document), []).append(number)
        symbols: list[Any] = [None] * len(self.targets)
        where: dict[int, _Project] = {}
        batches: list[tuple[dict[str, Any], list[int]]] = []
        for path, numbers in sorted(groups.items()):
            project = projects.get(path)
            if project is None:
                continue
            document = self.documents[path]
            numbers = [number for number in numbers if self.targets[number].document.text == document.text]
            inner = [document.inner(self.targets[number].offset) for number in numbers]
            numbers = [number for number, offset in zip(numbers, inner, strict=True) if offset is not None]
            units = to_units(document.text, [offset for offset in inner if offset is not None])
            for at in range(0, len(numbers), _BATCH):
                params = {"project": project.id, "file": path, "positions": units[at : at + _BATCH]}
                batches.append((params, numbers[at : at + _BATCH]))
            where |= dict.fromkeys(numbers, project)
        results = self._ask("getSymbolsAtPositions", [params for params, _ in batches])
        for (params, numbers), found in zip(batches, results, strict=True):
            if isinstance(found, ServerError):  # one bad position fails all of its batch
                singles = [{**params, "positions": [position]} for position in params["positions"]]
                found = [_first(each) for each in self._ask("getSymbolsAtPositions", singles)]
            for number, symbol in zip(numbers, found if isinstance(found, list) else [], strict=False):
                symbols[number] = symbol
        self._follow_aliases(symbols, where)
        self._load_trees(symbols, where)
        return [self._reply(symbol, where.get(number)) for number, symbol in enumerate(symbols)]

    def _reply(self, symbol: Any, project: _Project | None) -> Reply[Place]:
        if project is None:
            return Reply(_ID, PLANE, Coverage("unresolved", "the file is in no project"))
        if isinstance(symbol, ServerError):
            return Reply(_ID, PLANE, Coverage("unresolved", str(symbol)), timed_out=symbol.timed_out, failed=True)
        if not isinstance(symbol, dict):
            return Reply(_ID, PLANE, Coverage("unresolved", "typescript knows nothing here"))
        if symbol.get("unresolved"):
            return Reply(_ID, PLANE, Coverage("unresolved", "the import leads nowhere"))
        places = [self._place(symbol, handle) for handle in _declarations(symbol)]
        found = sorted({place for place in places if place})
        dropped = len(places) - sum(place is not None for place in places)
        if not found:
            return Reply(_ID, PLANE, Coverage("unresolved", "the symbol has no declaration"), dropped=dropped)
        return Reply(_ID, PLANE, Coverage("complete", project.note), tuple(found), dropped)

    def _open(self) -> dict[str, _Project]:
        """The project of every document: of the nearest configuration that takes it, else one of our own."""
        wanted: dict[str, str] = {}  # configuration to open → what is to be known about it
        nearest: dict[str, str] = {}
        for path, document in sorted(self.documents.items()):
            if config := self._find_config(document):
                note = "" if self._has_packages(config) else _BARE
                opened = self._override(config) if note else config
                wanted[opened], nearest[path] = note, opened
        opened = self._update(openProjects=sorted(wanted))
        projects = {each: _Project(each, self._list_files(each), wanted[each]) for each in wanted if each in opened}
        found: dict[str, _Project] = {}
        for path in sorted(self.documents):
            own = projects.get(nearest.get(path, ""))
            holders = [own] if own else []
            holders += [projects[each] for each in sorted(projects)]
            if project := next((each for each in holders if path in each.files), None):
                found[path] = project
        # A configuration that only refers to others takes no file; the compiler finds the one that does.
        found |= self._open_files([path for path in nearest if path not in found])
        loose = [path for path in sorted(self.documents) if path not in found]
        if loose:
            config = os.fspath(self.texts.root / "tsconfig.cq-loose.json")
            options = {"compilerOptions": _LOOSE, "files": loose}
            self.overlays[config] = msgspec.json.encode(options).decode()
            if config in self._update(openProjects=[config]):
                note = "no tsconfig.json takes the file: " + _BARE
                project = _Project(config, self._list_files(config), note)
                found |= dict.fromkeys((path for path in loose if path in project.files), project)
        return found

    def _open_files(self, paths: list[str]) -> dict[str, _Project]:
        self._update(openFiles=paths)
        found: dict[str, _Project] = {}
        for path, result in zip(
            paths, self._ask("getDefaultProjectForFile", [{"file": path} for path in paths]), strict=True
        ):
            match result:
                case {"id": str(project)} if project.startswith(f"{self.texts.root}{os.sep}"):
                    note = "" if self._has_packages(project) else "no node_modules: packages are not found"
                    found[path] = _Project(project, frozenset(), note)
                case _:
                    continue
        return found

    def _update(self, **changes: list[str]) -> set[str]:
        if not any(changes.values()):
            return set()
        result = self._one("updateSnapshot", changes)
        match result:
            case {"snapshot": int(snapshot), "projects": list(projects)}:
                self._snapshot = snapshot
                return {each["id"] for each in projects if isinstance(each, dict) and isinstance(each.get("id"), str)}
            case _:
                raise ServerError("typescript opened no project")

    def _list_files(self, project: str) -> frozenset[str]:
        names = self._one("getSourceFileNames", {"project": project})
        return frozenset(name for name in names if isinstance(name, str)) if isinstance(names, list) else frozenset()

    def _find_config(self, document: Document) -> str:
        for folder in PurePosixPath(document.path).parents:
            for name in _CONFIGS:
                if (self.texts.root / folder / name).is_file():
                    return os.fspath(self.texts.root / folder / name)
        return ""

    def _has_packages(self, config: str) -> bool:
        folder = Path(config).parent
        inside = (folder, *(each for each in folder.parents if each.is_relative_to(self.texts.root)))
        return any((each / "node_modules").is_dir() for each in inside)

    def _override(self, config: str) -> str:
        """A configuration beside the one it extends, that is nowhere on the disk."""
        path = Path(config)
        options: dict[str, Any] = _BUNDLER | ({"allowJs": True} if path.name == "jsconfig.json" else {})
        target = os.fspath(path.with_name(f"{path.stem}.cq.json"))
        self.overlays[target] = msgspec.json.encode({"extends": f"./{path.name}", "compilerOptions": options}).decode()
        return target

    def _follow_aliases(self, symbols: list[Any], where: dict[int, _Project]) -> None:
        """Imports and re-exports, to what they finally name."""
        aliases: dict[tuple[str, int], Any] = {}
        for number, symbol in enumerate(symbols):
            if isinstance(symbol, dict) and _int(symbol, "flags") & _ALIAS:
                aliases.setdefault((where[number].id, _int(symbol, "id")), None)
        if not aliases:
            return
        unknown: dict[str, int] = {}
        for project in sorted({project for project, _ in aliases}):
            known = self._one("getWellKnownSymbols", {"project": project})
            unknown[project] = _int(known, "unknown") if isinstance(known, dict) else -1
        params = [{"project": project, "symbol": symbol} for project, symbol in aliases]
        for (project, number), found in zip(list(aliases), self._ask("getAliasedSymbol", params), strict=True):
            lost = isinstance(found, dict) and _int(found, "id") == unknown[project]
            aliases[project, number] = {"unresolved": True} if lost else found
        for number, symbol in enumerate(symbols):
            if isinstance(symbol, dict) and _int(symbol, "flags") & _ALIAS:
                symbols[number] = aliases[where[number].id, _int(symbol, "id")]

    def _load_trees(self, symbols: list[Any], where: dict[int, _Project]) -> None:
        """Those of the files of the root that hold declarations; libraries are named, not read."""
        wanted: dict[str, str] = {}
        for number, symbol in enumerate(symbols):
            for handle in _declarations(symbol):
                path = handle.split(".", 2)[2]
                if self.texts.find(self._real(path)) is not None:
                    wanted.setdefault(path, where[number].id)
        params = [{"project": project, "file": path} for path, project in wanted.items()]
        for path, found in zip(wanted, self._ask("getSourceFile", params), strict=True):
            self._trees[path] = _parse_tree(found)

    def _place(self, symbol: dict[str, Any], handle: str) -> Place | None:
        """A declaration, by the name in it."""
        index, _, path = handle.split(".", 2)
        document = self.texts.find(self._real(path))
        if document is None:
            return Place("", external=name_external(path)) if self.texts.is_outside(path) else None
        tree = self._trees.get(path)
        if tree is None or not 0 < int(index) < len(tree):
            return None
        kind, pos, _, _, _, _ = tree.node(int(index))
        if kind == _SOURCE_FILE:
            return Place(document.path, document.outer(0), document.outer(0))
        name = str(symbol.get("name", ""))
        found = _find_name(tree, int(index), name)
        if found is not None:
            start, end = from_units(document.text, [found - len(name.encode("utf-16-le")) // 2, found])
            if document.text[start:end].decode("utf-8", "replace") != name:
                return None
        else:  # a constructor, a default export, a function without a name: where it begins
            (begin,) = from_units(document.text, [pos])
            trivia = _TRIVIA.match(document.text, begin)
            start = trivia.end() if trivia else begin
            word = _WORD.match(document.text, start)
            end = word.end() if word else start
        return Place(document.path, document.outer(start), document.outer(end, end=True))

    def _one(self, method: str, params: dict[str, Any]) -> Any:
        (result,) = self._ask(method, [params])
        if isinstance(result, ServerError):
            raise result
        return result

    def _ask(self, method: str, many: Sequence[dict[str, Any]]) -> list[Any]:
        """In order, many at a time. There is no cancelling: a request that takes too long ends the process."""
        results: list[Any] = []
        flight: deque[Request] = deque()
        for params in (*many, *([None] * len(many))):
            if params is not None:
                snapshot = {"snapshot": self._snapshot} if method != "updateSnapshot" else {}
                flight.append(self._connection.request(method, {**snapshot, **params}))
            if flight and (params is None or len(flight) >= _WINDOW):
                left = min(self._budget.project_first, self._deadline - time.monotonic())
                try:
                    results.append(self._connection.wait(flight.popleft(), left))
                except ServerError as error:
                    if error.timed_out or not self._connection.alive:
                        self._connection.close(str(error))
                        raise
                    results.append(error)
        return results

    def _answer(self, method: str, params: Any) -> Any:
        """What it asks of the disk. Null leaves the answer to the disk."""
        if not isinstance(params, str):
            return NotImplemented
        if (text := self.overlays.get(params)) is not None:
            return {"content": text} if method == "readFile" else True
        real = self._real(params)
        if real == params:
            return None
        if method == "readFile":
            document = self.texts.find(real)
            return {"content": document.text.decode("utf-8") if document else None}
        if self.texts.is_outside(real):
            return False  # packages are found further up, at their own place
        return Path(real).is_file() if method == "fileExists" else Path(real).is_dir()

    def _real(self, path: str) -> str:
        """The file of the root that stands for one around an embedded document."""
        shadow = next((each for each in self._shadows if path.startswith(each)), "")
        return f"{self.texts.root}/{path[len(shadow) :]}" if shadow and path not in self.overlays else path


def _parse_tree(found: Any) -> _Tree | None:
    match found:
        case {"data": str(data)} if len(data) <= _MAX_AST:
            try:
                raw = b64decode(data, validate=True)
            except (Base64Error, ValueError):
                return None
        case _:
            return None
    head = _words(raw, 0, 44)
    if len(head) < 11 or head[0] >> 24 != _AST_VERSION:
        return None
    offsets, strings, extended, nodes = head[6], head[7], head[8], head[10]
    return _Tree(_words(raw, nodes, len(raw)), raw[strings:extended], _words(raw, offsets, strings))


def _words(raw: bytes, start: int, end: int) -> memoryview[int]:
    """A part that is numbers; it need not begin where a number of the whole would."""
    part = raw[start:end]
    return memoryview(part[: len(part) // 4 * 4]).cast("I")


def _find_name(tree: _Tree, index: int, name: str) -> int | None:
    """Where the name of a declaration ends: that of its own names which is the symbol's."""
    kind = tree.node(index)[0]
    child, found = index + 1, None
    while 0 < child < len(tree):
        of, _, end, following, parent, data = tree.node(child)
        if parent != index:
            break
        if of in _NAMES and tree.name(data) == name:
            found = end
            if kind != _PROPERTY_ACCESS:  # in `x.x = 1` the second is declared
                break
        child = following
    return found


def _declarations(symbol: Any) -> list[str]:
    handles = symbol.get("declarations") if isinstance(symbol, dict) else None
    if not isinstance(handles, list):
        return []
    fit = [each for each in handles if isinstance(each, str) and re.match(r"\d+\.\d+\./", each)]
    return fit[:_MAX_DECLARATIONS]


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else value


def _int(item: Any, key: str) -> int:
    value = item.get(key)
    return value if isinstance(value, int) else 0
