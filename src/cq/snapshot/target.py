"""TARGET, the same everywhere: `path:line[:col]`, `path:Name`, `Name`, `Class.method`, `pkg.mod.Name`,
`symbol = A > b`, or an id of a definition, a chunk or a call site as answers and exports have it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from cq.identity import call_site_id, module_symbol_id
from cq.language import describe
from cq.model.answer import SCHEMA_VERSION, Answer, Candidate, Run, Target
from cq.model.errors import UsageError
from cq.model.facts import Symbol, is_looked_up
from cq.model.status import Degraded

if TYPE_CHECKING:
    from cq.model.location import Location
    from cq.model.neighborhood import ResolutionKind
    from cq.snapshot.files import Files, HeldFile

_PLACE = re.compile(r"(?P<path>.+?):(?P<line>\d+)(?::(?P<col>\d+))?\Z")
_NAMED = re.compile(r"(?P<path>[^:]+):(?P<name>[^:].*)\Z", re.DOTALL)
_SYMBOL = re.compile(r"(?:symbol\s*=\s*|(?=[^>]+ > ))(?P<chain>.+)\Z", re.DOTALL)  # `A > b` alone says as much
_ID = re.compile(r"sym1:[a-z]+:(?P<symbol>\w+)|ck64:v1:[^:]*:(?P<chunk>.+)|(?P<call>sha1:\w+)")
_VALUES = frozenset({"parameter", "type_parameter", "variable", "constant", "field", "property", "key", "enum_member"})
ROLE_ORDER = {"src": 0, "lib": 1, "generated": 2, "test": 3, "doc": 4}


class Definition(msgspec.Struct, frozen=True):
    """A symbol where it stands: file, document in the file, number in the document."""

    file: HeldFile
    document: int
    number: int

    @property
    def symbol(self) -> Symbol:
        return self.siblings[self.number]

    @property
    def siblings(self) -> Sequence[Symbol]:
        """All symbols of its document."""
        return self.file.symbols[self.document]

    @property
    def key(self) -> tuple[str, int, int]:
        return self.file.path, self.document, self.number

    @property
    def location(self) -> Location:
        return self.file.locate(self.symbol.name_start, self.symbol.name_end)

    @property
    def parent(self) -> Symbol | None:
        symbol = self.symbol
        return self.siblings[symbol.parent] if symbol.parent >= 0 else None

    @property
    def order(self) -> tuple[int, bool, int, str, bool, int]:
        """By what a definition says itself: sources before tests, code before values, outer before inner; of overloads
        in a file the one that has the code. `rank_twins` also knows who is called."""
        symbol = self.symbol
        role, is_value = ROLE_ORDER.get(self.file.role, 2), symbol.kind in _VALUES
        if symbol.kind == "heading":  # a README is no code, wherever it lies
            role = ROLE_ORDER["doc"]
        return role, is_value, symbol.depth, self.file.path, self.is_declared, symbol.name_start

    @property
    def is_declared(self) -> bool:
        """Whether it has no code of its own, or is an overload of what has it."""
        symbol = self.symbol
        return symbol.body_start < 0 or any(name.endswith("overload") for name in symbol.decorators)

    @property
    def is_stub(self) -> bool:
        """Whether it only says what another definition of its name does: in a file of declarations, with `...` for a
        body, below `if TYPE_CHECKING`."""
        symbol, text = self.symbol, self.file.text
        if self.is_declared or self.file.path.endswith(_DECLARING):
            return True
        if _ELLIPSIS.fullmatch(text, symbol.body_start, symbol.body_end):
            return True
        return _is_for_checkers(self.file, self.siblings, self.number)

    def is_called(self, dotted: str) -> bool:
        """Whether `a.b.c` names it: by the end of its qualified name behind the module's."""
        full = f"{module_name(self.file.path)}.{self.symbol.qualified_name}"
        return f".{full}".endswith(f".{dotted}")


_DECLARING = (".pyi", ".d.ts", ".d.mts", ".d.cts")
_ELLIPSIS = re.compile(rb"""\s*(?:(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"[^"\n]*"|'[^'\n]*')\s*)?\.\.\.\s*""", re.DOTALL)
_CHECKING = re.compile(rb"if\s+(?:\w+\.)?TYPE_CHECKING\s*:")


def _is_for_checkers(file: HeldFile, symbols: Sequence[Symbol], number: int) -> bool:
    """Whether it, or what holds it, stands below `if TYPE_CHECKING:` of Python."""
    while symbols[number].parent >= 0:
        number = symbols[number].parent
    text, start = file.text, symbols[number].start
    line = text.rfind(b"\n", 0, start) + 1
    if line == start or text[line:start].strip():
        return False
    while line > 0:  # the nearest line above that stands further to the left
        end, line = line - 1, text.rfind(b"\n", 0, line - 1) + 1
        code = text[line:end].lstrip()
        if code and end - line - len(code) < start - text.rfind(b"\n", 0, start) - 1 and code[:1] != b"#":
            return _CHECKING.match(code) is not None
    return False


def rank_twins(files: Files, rows: Iterable[Definition]) -> list[Definition]:
    """Definitions that a TARGET may all mean, the one that is meant most likely first, for every question the same:
    code before values, sources before tests, what most links surely lead to, what does a thing before what only
    declares it, outer before inner. Of hundreds of twins links are counted for those that are first without."""
    twins = sorted(rows, key=lambda row: row.order)
    if len(twins) < 2:
        return twins
    counts = {row.key: files.count_links(row) if at < MAX_COUNTED else (0, 0) for at, row in enumerate(twins)}
    groups: dict[tuple[str, str], list[Definition]] = {}
    for row in twins:
        module = module_name(row.file.path).removesuffix(".d")
        groups.setdefault((module, row.symbol.qualified_name), []).append(row)
    stubs: set[tuple[str, int, int]] = set()
    for group in groups.values():
        declared = {row.key for row in group if row.is_stub} if len(group) > 1 else set[tuple[str, int, int]]()
        if len(declared) < len(group):
            stubs |= declared
            most = max(counts[row.key] for row in group) if declared else (0, 0)
            # What leads to a stub means the code behind it.
            counts |= {row.key: max(most, counts[row.key]) for row in group}

    def order(row: Definition) -> tuple[object, ...]:
        certain, possible = counts[row.key]
        rank = 2 if row.symbol.kind in _VALUES else row.symbol.kind == "impl"  # a block of Rust is not the type itself
        # Who asks for a name means what the tests are about, not what they define, however often they call it.
        aside = ROLE_ORDER.get(row.file.role, 2) >= ROLE_ORDER["test"]
        return rank, aside, -certain, -possible, row.key in stubs, *row.order

    return sorted(twins, key=order)


class Resolution(msgspec.Struct, frozen=True):
    """What a TARGET means: definitions, the likeliest first, or a file as a whole. `kind` says by what."""

    kind: ResolutionKind
    rows: tuple[Definition, ...] = ()
    module: HeldFile | None = None
    events: tuple[Degraded, ...] = ()


def resolve_target(files: Files, text: str) -> Resolution:
    """As `find_targets`, but never an error: what cannot be found or read is an event, and a place that no definition
    holds is the file itself. A path or the dotted name of a module is that module."""
    text = text.strip()
    is_id = _ID.fullmatch(text) is not None
    place = _PLACE.match(text) if "::" not in text and not is_id else None
    named = _NAMED.match(text) if place is None and not is_id and not _SYMBOL.match(text) else None
    if held := find_file(files, text):
        return Resolution("file_symbol", module=held)
    path = (place or named or {"path": ""})["path"]
    held = files.get(path) if path else None
    if place is not None:
        if held is None:
            return _unresolved("unresolved", "error", "not_found", f"{path} is not indexed", text)
        try:
            rows = _find_at(files, path, int(place["line"]), int(place["col"] or 0))
        except UsageError as error:
            return _unresolved("invalid", "error", "invalid", error.message, text)
        if not rows:
            message = f"no definition stands at {text}: this is about the whole file"
            return _unresolved("file_anchor_unresolved", "warning", "not_found", message, text, held)
        return Resolution("anchor", tuple(rows), events=_say_ambiguous(rows, text))
    try:
        rows = find_targets(files, text if held or named is None else named["name"])
    except UsageError as error:
        return _unresolved("invalid", "error", "invalid", error.message, text)
    rows = _drop_blocks(rows)
    if named is not None and held is not None and rows:
        return Resolution("file_symbol", tuple(rows), events=_say_ambiguous(rows, text))
    lost: tuple[Degraded, ...] = ()
    if named is not None:
        why = f"{path} is not indexed" if held is None else f"{path} does not define {named['name']}"
        rows = rows or _drop_blocks(find_targets(files, named["name"]))
        lost = (Degraded(_STAGE, "warning", "not_found", f"{why}: looked for the name everywhere", text),)
    if rows:
        return Resolution("symbol_fallback", tuple(rows), events=(*lost, *_say_ambiguous(rows, text)))
    if named is None and (module := _find_module(files, text)) is not None:
        return Resolution("symbol_fallback", module=module)
    return _unresolved("unresolved", "error", "not_found", f"nothing is named {text!r} here", text)


_STAGE = "structural.target_resolution"
_MODULES = (
    ".py", "/__init__.py", ".pyi", ".ts", ".tsx", "/index.ts", ".js", "/index.js", ".mjs", ".jsx", ".rs", "/mod.rs",
    "/lib.rs", "/src/lib.rs",
)  # fmt: skip


def _unresolved(
    kind: ResolutionKind, severity: str, category: str, message: str, text: str, module: HeldFile | None = None
) -> Resolution:
    return Resolution(kind, module=module, events=(Degraded(_STAGE, severity, category, message, text),))


def _drop_blocks(rows: list[Definition]) -> list[Definition]:
    """Without the `impl` blocks of Rust, where a type of that name is meant."""
    return [row for row in rows if row.symbol.kind != "impl"] or rows


def _say_ambiguous(rows: list[Definition], text: str) -> tuple[Degraded, ...]:
    if len(rows) < 2:
        return ()
    chosen = rows[0]
    message = (
        f"1 of {len(rows)} that fit is shown: {chosen.symbol.kind} {chosen.file.path}:{chosen.location.start_line}"
    )
    return (Degraded(_STAGE, "warning", "ambiguous", message, text),)


def _find_module(files: Files, dotted: str) -> HeldFile | None:
    """The file that an import of the dotted name would read, from the root or its `src`."""
    stem = dotted.replace("::", "/").replace(".", "/")
    if not re.fullmatch(r"[\w/$-]+", stem):
        return None
    found = (files.get(f"{base}{stem}{ending}") for base in ("", "src/", "lib/") for ending in _MODULES)
    return next((held for held in found if held is not None), None)


def find_targets(files: Files, text: str) -> list[Definition]:
    """Best first; nothing found is an empty list, what cannot be read is a UsageError."""
    text = text.strip()
    if not text:
        raise UsageError("the target is empty", hint="give Name, Class.method, path:Name or path:line[:col]")
    if _ID.fullmatch(text):
        return [_get_named(files, text)]
    if found := _SYMBOL.match(text):
        return _find_chain(files, [part.strip() for part in found["chain"].split(">")], text)
    if (found := _PLACE.match(text)) and "::" not in text:
        return _find_at(files, found["path"], int(found["line"]), int(found["col"] or 0))[:1]
    if (found := _NAMED.match(text)) is not None:
        path, name = found["path"], found["name"].replace("::", ".")
        held = files.get(path)
        if held is None:
            raise UsageError(f"{path} is not indexed", hint="paths are named from the root, e.g. src/app.py:main")
        name, _, ordinal = name.partition("#")  # `f#2`: the second of that name, as links tell them apart
        rows = rank_twins(files, (row for row in _find_named(files, name) if row.file.path == held.path))
        exact = [row for row in rows if row.symbol.qualified_name == name]
        if ordinal.isdecimal():
            return sorted(exact, key=lambda row: row.symbol.start)[int(ordinal) - 1 :][:1]
        return exact or rows
    return _find_dotted(files, text.replace("::", "."))


MAX_OTHERS = 5
MAX_COUNTED = 200
CHOSEN = "the likeliest"


def describe_target(rows: Sequence[Definition]) -> Target:
    """The first of them, and the others as far as there is room."""
    row = rows[0]
    others = tuple(
        Candidate(other.symbol.qualified_name, other.symbol.kind, other.file.path, other.location.start_line)
        for other in rows[1 : MAX_OTHERS + 1]
    )
    return Target(
        row.symbol.qualified_name, row.symbol.kind, row.location, row.symbol.signature[:200],
        CHOSEN if others else "the only one that fits", 1, len(rows), *row.file.name_symbol(row.document, row.number),
        others,
    )  # fmt: skip


def find_same(rows: Sequence[Definition]) -> list[Definition]:
    """The first, and what is the same to who calls it: overloads, a getter and its setter, the branches of an `if`."""
    homes = [(row.file.path, row.document, row.symbol.qualified_name) for row in rows]
    same = [row for row, home in zip(rows, homes, strict=True) if home == homes[0]]
    return [row for row in same if len(same) == 1 or _find_lambda(row) == _find_lambda(same[0])]


def _find_lambda(row: Definition) -> int:
    """Where the function without a name begins that holds a definition: it gives what it holds no name of its own."""
    around = [
        other.start for other in row.siblings if other.kind == "lambda" and other.start < row.symbol.start < other.end
    ]
    return max(around, default=-1)


def find_point(files: Files, text: str) -> tuple[HeldFile, int] | None:
    """The byte that `path:line:col` names, where a name stands; None for every other TARGET."""
    found = find_byte(files, text)
    if found is None:
        return None
    held, offset = found
    return found if held.text[offset : offset + 1].isalnum() or held.text[offset : offset + 1] in (b"_", b"$") else None


def find_byte(files: Files, text: str) -> tuple[HeldFile, int] | None:
    """The byte that `path:line:col` names, whatever stands there."""
    found = _PLACE.match(text.strip())
    held = files.get(found["path"]) if found and found["col"] else None
    if found is None or held is None or not 1 <= int(found["line"]) <= len(held.lines):
        return None
    line, col = int(found["line"]), int(found["col"])
    return (held, held.lines.offset(line, col)) if col <= _count_columns(held, line) else None


def find_file(files: Files, text: str) -> HeldFile | None:
    """The file that a path means, or the id of a file as a whole."""
    if not _ID.fullmatch(text):
        return files.get(text) if text else None
    found = _find_id(files, text)
    return None if found is None or found[2] >= 0 else found[0]


def find_part(files: Files, paths: Sequence[str], text: str) -> list[str]:
    """The files that a path, a directory, the dotted name of a module or package or the id of a file means; none where
    it is no such."""
    if _ID.fullmatch(text):
        held = find_file(files, text)
        return [held.path] if held is not None else []
    name = text.rstrip("/") or "."
    if name == ".":
        return list(paths)
    found = [path for path in paths if path == name or path.startswith(name + "/")]
    return found or [path for path in paths if module_name(path) == name or module_name(path).startswith(name + ".")]


def last_name(target: str) -> str:
    """The name a TARGET ends with."""
    return target.replace("::", ".").replace(">", ".").rpartition(".")[2].rpartition(":")[2].strip()


def say_nothing(files: Files, command: str, target: str, message: str = "") -> Answer:
    """No definition fits: near names are suggested."""
    name = last_name(target)
    if not message and "/" in target and files.get(target) is not None:
        quoted = shlex.quote(target)
        message = f"{target} is a file: `cq impact {quoted}` and `cq imports --module {quoted}` are about files"
    event = Degraded(command, "info", "no_target", message or f"nothing is named {target!r} here", target)
    near = tuple(other for other in files.near_names(name) if other != name)
    if "." in target.replace("::", ".") and ":" not in target.replace("::", "."):  # of another owner, first
        rows = rank_twins(files, (Definition(*row) for row in files.definitions(name)))
        near = tuple(dict.fromkeys([*(row.symbol.qualified_name for row in rows[:MAX_OTHERS]), *near]))
    run = Run(generation=files.generation)
    return Answer(SCHEMA_VERSION, command, run, {"query": target}, degraded=(event,), suggestions=near)


def _get_named(files: Files, text: str) -> Definition:
    """The definition that bears the id, or whose code does; UsageError where there is none (any more)."""
    found = _find_id(files, text)
    if found is None:
        raise UsageError(
            f"nothing here has the id {text}", hint="an id is lost when the text it was made of changes: give the name"
        )
    if found[2] < 0:
        path = found[0].path
        raise UsageError(f"{text} is {path} as a whole, not a definition", hint=f"give path:Name or {path}:LINE")
    return Definition(*found)


def _find_id(files: Files, text: str) -> tuple[HeldFile, int, int] | None:
    """(file, document, number of the definition), the number -1 for a document as a whole. Ids are hashes that no table
    has: all files are gone through, but for a chunk, whose id tells its file. What people ask about comes first:
    sources before tests, and parameters and locals, more than half of all, only when nothing else has the id."""
    if text not in files.ids:
        files.ids[text] = _look_for_id(files, text)
    return files.ids[text]


def _look_for_id(files: Files, text: str) -> tuple[HeldFile, int, int] | None:
    wanted = _ID.fullmatch(text)
    assert wanted is not None
    if wanted["chunk"]:
        parts = wanted["chunk"].partition("#seg:")[0].split(":")
        held = next((held for end in range(len(parts), 0, -1) if (held := files.get(":".join(parts[:end])))), None)
        return None if held is None else _look_in(held, wanted, False)
    for inner in (False, True) if wanted["symbol"] else (False,):
        todo = sorted(files.candidates(None), key=lambda held: -ROLE_ORDER.get(held.role, 2))
        while todo:  # what has been looked at is not held on to
            if (found := _look_in(todo.pop(), wanted, inner)) is not None:
                return found
    return None


def _look_in(held: HeldFile, wanted: re.Match[str], inner: bool) -> tuple[HeldFile, int, int] | None:
    for document, symbols in enumerate(held.symbols):
        number = _find_in(held, document, symbols, wanted, inner)
        if number is not None:
            return held, document, number
    return None


def _find_in(
    held: HeldFile, document: int, symbols: Sequence[Symbol], wanted: re.Match[str], inner: bool
) -> int | None:
    """`inner`: among parameters and locals, else among the rest."""
    if wanted["call"]:
        for call in held.calls[document]:
            if call_site_id(held.locate(call.start, call.end), call.callee) == wanted[0]:
                return call.scope
        return None
    chunks = held.chunks[document]
    if wanted["chunk"]:
        number = next((at for at in range(len(chunks)) if held.name_chunk(document, at) == wanted[0]), None)
        while number is not None and number >= 0 and chunks[number].symbol < 0:
            number = chunks[number].parent  # of what is no definition, the one around it
        return number if number is None or number < 0 else chunks[number].symbol
    own = f"sym1:heur:{wanted['symbol']}"  # imported symbols have the same hash
    for number, symbol in enumerate(symbols):
        if is_looked_up(symbol, symbols) is not inner and held.name_symbol(document, number)[0] == own:
            return number
    path = held.identities[document].virtual_path if document else held.path
    return -1 if chunks and module_symbol_id(path, held.name_chunk(document, 0)) == own else None


def _find_dotted(files: Files, dotted: str) -> list[Definition]:
    return rank_twins(files, _find_named(files, dotted))


def _find_named(files: Files, dotted: str) -> list[Definition]:
    name = dotted.rpartition(".")[2]
    rows = [Definition(*row) for row in files.definitions(name)]
    if not rows and "." not in dotted:
        return list(_find_inner(files, name))
    return [row for row in rows if "." not in dotted or row.is_called(dotted)] or _find_on_value(files, dotted)


def _find_on_value(files: Files, dotted: str) -> list[Definition]:
    """`post_save.send`, where `post_save = ModelSignal()`: the method of the class that it is made of, or of the class
    that its type names, be it inherited. As the code writes it, so that it needs no links."""
    owner, _, name = dotted.rpartition(".")
    found: dict[tuple[str, int, int], Definition] = {}
    for row in [Definition(*row) for row in files.definitions(owner.rpartition(".")[2])] if owner else ():
        if row.symbol.kind_group != "value" or not row.is_called(owner):
            continue
        written = _MADE.match(row.file.text, row.symbol.name_end)
        kinds = [kind.decode() for kind in (written["made"], written["type"]) if kind] if written else []
        members = (_find_member(files, kind, name, row.file.path) for kind in kinds)
        found |= {each.key: each for each in next(filter(None, members), [])}
    return list(found.values())


# Behind its name: `: Type`, `= Class(`, `= new Class(`.
_MADE = re.compile(
    rb"\s*(?::\s*&?(?P<type>[\w.:]+)[^=\n]{0,100})?"
    rb"(?:=\s*(?:await\s+)?(?:new\s+)?(?P<made>[A-Za-z_][\w.]*)\s*(?:<[^()\n]{0,100}>)?\()?"
)
_MAX_BASES = 50  # classes whose bases are looked through


def _find_member(files: Files, kind: str, name: str, path: str) -> list[Definition]:
    """What a class, or the nearest of those it inherits from, defines under a name; of several classes of one name the
    one of that file."""
    todo, seen = [(kind, path)], set[str]()
    while todo and len(seen) < _MAX_BASES:
        written, near = todo.pop(0)
        simple = re.split(r"\.|::", re.split(r"[\[<(]", written)[0])[-1].strip()
        if not simple or simple in seen:
            continue
        seen.add(simple)
        rows = [Definition(*row) for row in files.definitions(simple)]
        rows = [row for row in rows if row.symbol.kind_group in ("class", "type")]
        rows = [row for row in rows if row.file.path == near] or rows
        members = [
            Definition(row.file, row.document, number)
            for row in rows
            for number, symbol in enumerate(row.siblings)
            if symbol.parent == row.number and symbol.name == name
        ]
        if members:
            return members
        todo += [(base, row.file.path) for row in rows for base in row.symbol.bases]
    return []


def _find_inner(files: Files, name: str) -> Iterator[Definition]:
    """`const Row = memo(function Inner() {})` is called Row by all others; people may know it by its inner name."""
    if not name.isidentifier() or len(name) < 3:
        return
    named = re.compile(rb"\bfunction\s*\*?\s*" + name.encode() + rb"\s*[(<]")
    for held in files.candidates((name,)):
        if named.search(held.text) is None or not any(
            describe(document.language).has_named_expressions for document in held.documents
        ):
            continue
        for document, symbols in enumerate(held.symbols):
            for number, symbol in enumerate(symbols):
                if symbol.body_start >= 0 and named.search(held.text, symbol.name_end, symbol.body_start):
                    yield Definition(held, document, number)


def _find_chain(files: Files, parts: list[str], text: str) -> list[Definition]:
    """`symbol = [path >] [Parent >] name`"""
    if not all(parts):
        raise UsageError(f"{text!r} has an empty part", hint="e.g. symbol = TokenService > validateToken")
    path = parts.pop(0) if len(parts) > 1 and ("/" in parts[0] or files.get(parts[0])) else ""
    dotted = ".".join(parts)
    rows = _find_named(files, dotted)
    return rank_twins(files, (row for row in rows if not path or row.file.path.startswith(path)))


def _find_at(files: Files, path: str, line: int, col: int) -> list[Definition]:
    """The definitions whose names stand there, else the innermost around it."""
    held = files.get(path)
    if held is None:
        raise UsageError(f"{path} is not indexed", hint="paths are named from the root")
    table = held.lines
    lines = len(table) - held.text.endswith(b"\n")
    if not 1 <= line <= lines:
        raise UsageError(f"{path} has no line {line}", hint=f"it has {lines}")
    if col > (columns := _count_columns(held, line)):
        raise UsageError(f"{path}:{line} has no column {col}", hint=f"it has {columns}")
    first = table.offset(line, col or 1)
    if not col:  # the line's own code: a decorator belongs to what it decorates
        code = table.text(line)
        first += len(code) - len(code.lstrip()) if code.strip() else 0
    last = first + 1 if col else (table.starts[line] if line < len(table) else len(held.text))
    named: list[Definition] = []
    around: list[Definition] = []
    values: list[Definition] = []
    for document, symbols in enumerate(held.symbols):
        for number, symbol in enumerate(symbols):
            row = Definition(held, document, number)
            if first <= symbol.name_start < last or symbol.name_start <= first < symbol.name_end:
                named.append(row)
            elif symbol.start <= first < symbol.end:
                if symbol.body_start >= 0:
                    around.append(row)
                elif symbol.kind != "lambda" and is_looked_up(symbol, symbols) and _find_lambda(row) < 0:
                    values.append(row)
    if not col:  # a line means code, or what is declared there: of a parameter, a local or `self.x = 1` the function
        holder = around[-1].key if around else None
        named = [
            row
            for row in named
            if row.symbol.body_start >= 0 or (is_looked_up(row.symbol, row.siblings) and _find_body(row) == holder)
        ]
        # In no body: of a local the constant that is made with the function around it, `const Row = make((row) => {`.
        named = [row for row in named if not values or row.symbol.body_start >= 0 or _find_lambda(row) < 0]
    else:
        named = [row for row in named if row.symbol.kind not in ("parameter", "type_parameter")] or named
    return named or around[-1:] or values[-1:]


def _count_columns(held: HeldFile, line: int) -> int:
    """That of the end of a line included, where the cursor of an editor may stand."""
    return len(held.lines.text(line).decode("utf-8", "replace").rstrip("\r\n")) + 1


def _find_body(row: Definition) -> tuple[str, int, int] | None:
    """The key of the definition whose body it is declared in."""
    number = row.symbol.parent
    while number >= 0 and row.siblings[number].body_start < 0:
        number = row.siblings[number].parent
    return (row.file.path, row.document, number) if number >= 0 else None


_PACKAGES = {"py": "__init__", "rs": "mod|lib"}  # the file that is its folder's module; `index` elsewhere


def module_name(path: str) -> str:
    """`src/app/db/__init__.py` is `app.db`."""
    stem = path.removeprefix("src/")
    found = re.fullmatch(r"(.+)\.(pyi?|rs|[cm]?[jt]sx?)", stem)
    package = "__init__|mod|index|lib"
    if found:
        stem, package = found[1], _PACKAGES.get(found[2][:2], "index")
    return re.sub(rf"/(?:{package})$", "", stem).replace("/", ".")
