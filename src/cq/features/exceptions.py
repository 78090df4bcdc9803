"""What is raised, what catches it, and what nobody catches along the calls, each with one way as its witness."""

from __future__ import annotations

import builtins
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from cq.features.bodies import Bodies
from cq.features.graph import describe_target
from cq.features.page import Page, count_tokens, take
from cq.features.relations import CALLS, POSSIBLE, Relations
from cq.features.target import Definition, find_part, find_targets, say_nothing
from cq.model.answer import (
    SCHEMA_VERSION,
    Answer,
    ExceptionDetails,
    Finding,
    Insight,
    Run,
    Section,
    Slice,
    Truncation,
)
from cq.model.edge import Candidate, Edge, SymbolRef
from cq.model.errors import UsageError
from cq.model.facts import Call
from cq.source.role import find_role
from cq.syntax.handlers import LANGUAGES, Guard, Handler, Handlers, Named, Raised, find_handlers, may_raise

MAX_DEPTH = 12
MAX_NODES = 400  # definitions below a target whose code is looked at
MAX_STEPS = 60_000  # callers looked at in one question
_STATUSES = ("uncaught", "leaves", "open", "caught", "handled", "again", "value")
_ASSERTING = frozenset({"assertRaises", "assertRaisesRegex", "assertRaisesMessage", "raises", "suppress"})
_MANAGING = ("contextmanager", "asynccontextmanager")

# Exceptions of the standard library that code often names -> what they are. Builtins are asked of Python itself.
_STANDARD = {
    "socket.error": "OSError", "select.error": "OSError", "os.error": "OSError", "shutil.Error": "OSError",
    "socket.timeout": "TimeoutError", "asyncio.TimeoutError": "TimeoutError", "socket.gaierror": "OSError",
    "concurrent.futures.TimeoutError": "TimeoutError", "asyncio.exceptions.TimeoutError": "TimeoutError",
    "asyncio.CancelledError": "BaseException", "asyncio.exceptions.CancelledError": "BaseException",
    "json.JSONDecodeError": "ValueError", "json.decoder.JSONDecodeError": "ValueError",
    "subprocess.SubprocessError": "Exception", "subprocess.CalledProcessError": "subprocess.SubprocessError",
    "subprocess.TimeoutExpired": "subprocess.SubprocessError", "binascii.Error": "ValueError",
    "decimal.DecimalException": "ArithmeticError", "decimal.InvalidOperation": "decimal.DecimalException",
    "zipfile.BadZipFile": "Exception", "tarfile.TarError": "Exception", "pickle.PickleError": "Exception",
    "pickle.PicklingError": "pickle.PickleError", "pickle.UnpicklingError": "pickle.PickleError",
    "queue.Empty": "Exception", "queue.Full": "Exception", "struct.error": "Exception", "re.error": "Exception",
    "configparser.Error": "Exception", "urllib.error.URLError": "OSError", "ssl.SSLError": "OSError",
    "urllib.error.HTTPError": "urllib.error.URLError", "http.client.HTTPException": "Exception",
    "sqlite3.Error": "Exception", "sqlite3.DatabaseError": "sqlite3.Error", "unittest.SkipTest": "Exception",
    "sqlite3.OperationalError": "sqlite3.DatabaseError", "sqlite3.IntegrityError": "sqlite3.DatabaseError",
    "dataclasses.FrozenInstanceError": "AttributeError", "argparse.ArgumentTypeError": "Exception",
    "argparse.ArgumentError": "Exception", "copy.Error": "Exception", "csv.Error": "Exception",
    "smtplib.SMTPException": "OSError", "contextlib.suppress": "object",
}  # fmt: skip


class ExceptionsOptions(msgspec.Struct, frozen=True):
    """Of a definition, of a path or module, or (`target` empty) of the whole tree. `depth` counts calls, both ways."""

    target: str = ""
    depth: int = 6
    page: Page = Page(40)

    def check(self) -> None:
        self.page.check()
        if not 1 <= self.depth <= MAX_DEPTH:
            raise UsageError(f"--depth {self.depth} is out of range", hint=f"it is 1 to {MAX_DEPTH}")


def find_exceptions(relations: Relations, options: ExceptionsOptions) -> Answer:
    """What nobody catches first, then handlers that hide things, then everything else raised and caught."""
    options.check()
    targets: list[Definition] = []
    paths = find_part(relations.paths(), options.target) if options.target else relations.paths()
    if not paths:
        targets = find_targets(relations.files, options.target)
        if not targets:
            return say_nothing(relations.files, "exceptions", options.target)
        paths = [targets[0].file.path]
    ways = _Ways(relations, options.depth)
    inside = _find_inside(relations, targets)
    raised: list[_Site] = []
    handled: list[_Caught] = []
    passed = 0
    for path in paths:
        for code in ways.find_codes(path):
            held = [item for item in code.handlers.raised if inside.holds(path, code.document, code.scope(item.start))]
            raised += [ways.follow(code, item) for item in held]
            for guard in code.handlers.guards:
                if guard.kind == "try" and inside.holds(path, code.document, code.scope(guard.start)):
                    handled += [_Caught(code, handler) for handler in guard.handlers]
            passed += sum(1 for at in code.handlers.passed if inside.holds(path, code.document, code.scope(at)))
    escapes = ways.find_escapes(inside.nodes) if targets else []
    return _make_answer(relations, options, ways, targets, raised, handled, escapes, passed)


class _Kind(NamedTuple):
    """A type of exception: a class of the repository, or a name. `known` is False for what could be anything."""

    label: str
    key: Candidate | str
    known: bool = True


class _Site(NamedTuple):
    """Something raised, and what becomes of it."""

    code: _Code
    raised: Raised
    kind: _Kind
    status: str
    caught_at: tuple[str, ...] = ()
    witness: tuple[str, ...] = ()
    doubt: bool = False


class _Caught(NamedTuple):
    code: _Code
    handler: Handler

    @property
    def flags(self) -> tuple[str, ...]:
        handler, types = self.handler, [named.name.rpartition(".")[2] for named in self.handler.types]
        python = handler.kind != "catch"
        flags = ["bare"] if python and not types else []
        flags += ["empty"] if handler.empty else []
        broad = python and (not types or "Exception" in types or "BaseException" in types)
        flags += ["broad"] if broad and not handler.reraises else []
        return (*flags, *(["reraises"] if handler.reraises else []))


class _Escape(NamedTuple):
    """An exception that may leave the target, raised at `site`, by the calls of `down`."""

    node: Candidate
    origin: _Site
    down: tuple[str, ...]


class _Inside:
    """The definitions a question is about; without targets every one is."""

    def __init__(self, nodes: Sequence[Candidate], all_: bool) -> None:
        self.nodes = nodes
        self._places = frozenset(nodes)
        self._all = all_

    def holds(self, path: str, document: int, name: str) -> bool:
        return self._all or Candidate(path, document, name) in self._places


def _find_inside(relations: Relations, targets: list[Definition]) -> _Inside:
    """A target with all that is defined in it."""
    if not targets:
        return _Inside((), True)
    row = targets[0]
    center = relations.node(row)
    nodes = [center]
    symbols = row.file.symbols[row.document]
    inner = {row.number}
    for number, symbol in enumerate(symbols):
        if symbol.parent in inner:
            inner.add(number)
            place = relations.edges.find_place(row.file.path, row.document, number)
            nodes += [place] if place is not None else []
    return _Inside(tuple(dict.fromkeys(nodes)), False)


class _Code:
    """One document: what it raises and catches, by the definition that does."""

    def __init__(self, relations: Relations, path: str, document: int) -> None:
        held = relations.hold(path)
        assert held is not None
        self.file, self.path, self.document = held, path, document
        stored = held.documents[document]
        self.language, self.role = stored.language, held.role
        ranges = stored.segment.ranges if stored.segment else ()
        self.handlers: Handlers = find_handlers(held.text, stored.language, ranges)
        self._relations = relations
        self._bodies = Bodies(held.symbols[document])
        self._names: dict[int, str] = {}
        self._guards: dict[str, tuple[list[int], list[Guard], list[int]]] | None = None
        self._calls: dict[int, int] | None = None

    def scope(self, offset: int) -> str:
        """The name, as links know it, of the innermost definition whose body holds an offset; "" for the module."""
        return next((name for number in self._bodies.around(offset) if (name := self._name(number))), "")

    def guards(self, offset: int) -> Iterable[Guard]:
        """Those of the same definition that protect a place, innermost first."""
        if self._guards is None:
            self._guards = {}
            for guard in self.handlers.guards:
                starts, guards, parents = self._guards.setdefault(self.scope(guard.start), ([], [], []))
                above = len(guards) - 1
                while above >= 0 and guards[above].end <= guard.start:
                    above = parents[above]
                starts.append(guard.start)
                guards.append(guard)
                parents.append(above)
        starts, guards, parents = self._guards.get(self.scope(offset), ([], [], []))
        at = bisect_right(starts, offset) - 1
        while at >= 0:
            if offset < guards[at].end:
                yield guards[at]
            at = parents[at]

    def call(self, end: int) -> tuple[int, Call] | None:
        """The call that ends there, with its number."""
        calls = self.file.calls[self.document]
        if self._calls is None:
            self._calls = {call.end: number for number, call in enumerate(calls)}
        number = self._calls.get(end)
        return None if number is None else (number, calls[number])

    def place(self, offset: int) -> str:
        return f"{self.path}:{self.file.lines.line(offset)}"

    def _name(self, number: int) -> str:
        if number not in self._names:
            place = self._relations.edges.find_place(self.path, self.document, number)
            self._names[number] = place.name if place is not None else ""
        return self._names[number]


class _Ways:
    """Follows exceptions along the calls; keeps what it has read for the length of one question."""

    def __init__(self, relations: Relations, depth: int) -> None:
        self.relations, self.depth = relations, depth
        self.steps = self.cut = self.lost = 0
        self._codes: dict[tuple[str, int], _Code | None] = {}
        self._callers: dict[Candidate, list[tuple[Edge, Call]]] = {}
        self._above: dict[Candidate | str, tuple[frozenset[Candidate | str], bool]] = {}
        self._types: dict[tuple[str, int, int], _Kind] = {}
        self._managers: dict[tuple[str, int, int], tuple[_Kind, ...]] = {}
        self._climbs: dict[tuple[Candidate, Candidate | str, bool], tuple[str, tuple[str, ...], tuple[str, ...], bool]]
        self._climbs = {}

    def find_codes(self, path: str) -> list[_Code]:
        """Of the documents of a file, those that raise or catch."""
        held = self.relations.hold(path)
        if held is None:
            return []
        found = [n for n, document in enumerate(held.documents) if may_raise(held.text, document.language)]
        return [code for number in found if (code := self.code(path, number)) is not None]

    def code(self, path: str, document: int) -> _Code | None:
        key = (path, document)
        if key not in self._codes:
            held = self.relations.hold(path)
            known = held is not None and held.documents[document].language in LANGUAGES
            self._codes[key] = _Code(self.relations, path, document) if known else None
        return self._codes[key]

    def follow(self, code: _Code, raised: Raised) -> _Site:
        """From where it is raised up to where it is caught, or to where nobody is left who could."""
        kind = self._find_kind(code, raised)
        if raised.kind in ("error", "reraise"):
            return _Site(code, raised, kind, "value" if raised.kind == "error" else "again")
        where, doubt = self._catch(code, raised.start, kind)
        if where:
            return _Site(code, raised, kind, "handled", (where,))
        node = Candidate(code.path, code.document, code.scope(raised.start))
        status, witness, caught, unsure = self.climb(node, kind, code.role == "test")
        return _Site(code, raised, kind, status, caught, witness, doubt or unsure)

    def climb(self, node: Candidate, kind: _Kind, tests: bool) -> tuple[str, tuple[str, ...], tuple[str, ...], bool]:
        """(status, witness, caught at, doubt): the shortest way up along which nothing catches it. Tests call what
        they like: they are followed only where the code is a test itself."""
        key = (node, kind.key, tests)
        if key not in self._climbs:
            self._climbs[key] = self._climb(node, kind, tests)
        return self._climbs[key]

    def _climb(self, node: Candidate, kind: _Kind, tests: bool) -> tuple[str, tuple[str, ...], tuple[str, ...], bool]:
        seen: dict[Candidate, tuple[tuple[str, ...], bool]] = {node: ((), False)}
        frontier, caught, deeper = [node], dict[str, None](), False
        for distance in range(self.depth + 1):
            ahead: list[Candidate] = []
            for here in frontier:
                way, doubt = seen[here]
                callers = self._find_callers(here, tests) if here.name else []
                if not callers:
                    status = "uncaught" if way or not here.name else "leaves"
                    return status, way, tuple(caught), doubt
                if distance == self.depth:
                    deeper = True
                    continue
                for edge, call in callers:
                    self.steps += 1
                    if self.steps > MAX_STEPS:
                        self.cut += 1
                        return "open", way, tuple(caught), True
                    code = self.code(edge.source.path, edge.source.document)
                    if edge.source in seen or code is None:
                        continue
                    where, unsure = self._catch(code, max(call.name_start, call.start), kind)
                    if where:
                        caught[where] = None
                        continue
                    label, site = self.relations.label, code.place(max(call.name_start, call.start))
                    step = f"{label(edge.source)} {edge.kind} {label(here)} at {site}"
                    seen[edge.source] = ((*way, step), doubt or unsure or edge.ref.status != "resolved")
                    ahead.append(edge.source)
            frontier = ahead
        if deeper:
            self.lost += 1
            return "open", (), tuple(caught), True
        return "caught", (), tuple(caught), False

    def find_escapes(self, nodes: Sequence[Candidate]) -> list[_Escape]:
        """What may leave each of the nodes, raised in it or by what it calls, by the shortest way."""
        calls: dict[Candidate, list[tuple[Candidate, _Code, int]]] = {}
        frontier = list(nodes)
        for _ in range(self.depth):
            ahead: list[Candidate] = []
            for node in frontier:
                if node in calls or len(calls) >= MAX_NODES:
                    self.cut += node not in calls
                    continue
                calls[node] = self._find_callees(node)
                ahead += [target for target, _, _ in calls[node] if target not in calls]
            frontier = list(dict.fromkeys(ahead))
        escapes: dict[Candidate, dict[Candidate | str, _Escape]] = {}
        for node in {*calls, *frontier}:
            escapes[node] = self._find_own(node)
        order = sorted(calls)
        for _ in range(self.depth):
            fresh: list[tuple[Candidate, _Escape]] = []
            for node in order:
                for target, code, at in calls[node]:
                    for key, escape in escapes.get(target, {}).items():
                        if key not in escapes[node] and not self._catch(code, at, escape.origin.kind)[0]:
                            label = self.relations.label
                            step = f"{label(node)} calls {label(target)} at {code.place(at)}"
                            fresh.append((node, _Escape(node, escape.origin, (step, *escape.down))))
            if not fresh:
                break
            for node, escape in fresh:
                escapes[node].setdefault(escape.origin.kind.key, escape)
        found: dict[tuple[Candidate, Candidate | str], _Escape] = {}
        for node in nodes:
            for key, escape in escapes.get(node, {}).items():
                found.setdefault((node, key), escape)
        return sorted(found.values(), key=lambda e: (nodes.index(e.node), len(e.down), e.origin.kind.label))

    def _find_own(self, node: Candidate) -> dict[Candidate | str, _Escape]:
        code = self.code(node.path, node.document)
        found: dict[Candidate | str, _Escape] = {}
        for raised in code.handlers.raised if code is not None else ():
            if code is None or raised.kind in ("error", "reraise") or code.scope(raised.start) != node.name:
                continue
            kind = self._find_kind(code, raised)
            where, doubt = self._catch(code, raised.start, kind)
            if not where:
                found.setdefault(kind.key, _Escape(node, _Site(code, raised, kind, "", doubt=doubt), ()))
        return found

    def _find_callees(self, node: Candidate) -> list[tuple[Candidate, _Code, int]]:
        code = self.code(node.path, node.document)
        if code is None:
            return []
        found: list[tuple[Candidate, _Code, int]] = []
        for edge in self.relations.edges.find_out(node, possible=False):
            call = self.relations.call(edge)
            if edge.kind in CALLS and call is not None and edge.ref.confidence > POSSIBLE:
                found += [(target, code, max(call.name_start, call.start)) for target in edge.ref.candidates]
        return found

    def _find_callers(self, node: Candidate, tests: bool) -> list[tuple[Edge, Call]]:
        if node not in self._callers:
            rows = [
                (edge, call)
                for edge in self.relations.edges.find_callers(node, possible=False)
                if edge.ref.confidence > POSSIBLE and (call := self.relations.call(edge)) is not None
            ]
            rows.sort(key=lambda row: (-row[0].ref.confidence, row[0].source, row[1].start))
            self._callers[node] = rows
        rows = self._callers[node]
        return rows if tests else [row for row in rows if find_role(row[0].source.path) != "test"]

    def _catch(self, code: _Code, offset: int, kind: _Kind) -> tuple[str, bool]:
        """(where it is caught, "" if it is not; whether something may have)."""
        doubt = False
        for guard in code.guards(offset):
            if guard.kind == "with":
                verdict = self._compare(kind, self._find_suppressed(code, guard))
                if verdict == "yes":
                    return f"{code.place(guard.manager[0])} with", doubt
                doubt = doubt or verdict == "maybe"
                continue
            for handler in guard.handlers:
                types = tuple(self._find_type(code, named) for named in handler.types)
                verdict = self._compare(kind, types) if types else "yes"
                group = handler.kind == "except*" and kind.key in ("ExceptionGroup", "BaseExceptionGroup")
                doubt = doubt or verdict == "maybe" or group
                if verdict == "yes":
                    if handler.reraises:
                        break
                    return f"{code.place(handler.start)} {handler.kind}", doubt
        return "", doubt

    def _compare(self, kind: _Kind, types: tuple[_Kind, ...]) -> str:
        above, is_open = self._find_above(kind)
        maybe = False
        for wanted in types:
            if wanted.key in above or wanted.key == "BaseException":
                return "yes"
            if wanted.key == "Exception" and is_open:
                return "yes"  # whatever it is, next to nothing is a BaseException alone
            maybe = maybe or is_open or not wanted.known
        return "maybe" if maybe else "no"

    def _find_above(self, kind: _Kind) -> tuple[frozenset[Candidate | str], bool]:
        """All it is an instance of, and whether there may be more."""
        if not kind.known:
            return frozenset((kind.key,)), True
        if kind.key not in self._above:
            found: set[Candidate | str] = set()
            is_open, todo = False, [kind.key]
            while todo and len(found) < 200:
                key = todo.pop()
                if key in found:
                    continue
                found.add(key)
                if isinstance(key, str):
                    real = getattr(builtins, key, None)
                    if isinstance(real, type):
                        found.update(base.__name__ for base in real.__mro__)
                    elif key in _STANDARD:
                        todo.append(_STANDARD[key])
                    else:
                        is_open = True
                    continue
                for edge in self.relations.edges.find_out(key, possible=False):
                    if edge.kind == "inherits":
                        place = edge.ref.resolved
                        outside = _outside(edge.ref)
                        todo += [place] if place is not None else [outside] if outside else []
                        is_open = is_open or (place is None and not outside)
            self._above[kind.key] = frozenset(found), is_open
        return self._above[kind.key]

    def _find_kind(self, code: _Code, raised: Raised) -> _Kind:
        if raised.kind in ("panic", "unwrap"):
            return _Kind("panic", "panic")
        if raised.call_end >= 0 and (found := code.call(raised.call_end)) is not None:
            kind = self._find_class(self.relations.edges.find_call(code.path, code.document, found[0]))
            if kind is not None:
                return kind
        if not raised.name:
            return _Kind("", "?", False)
        return self._find_type(code, Named(raised.name, raised.name_start))

    def _find_type(self, code: _Code, named: Named) -> _Kind:
        key = (code.path, code.document, named.start)
        if key not in self._types:
            ref = self.relations.edges.find_dotted(code.path, code.document, named.name, named.start)
            kind = self._find_class(ref)
            if kind is None and ref.status == "unresolved" and _is_exception(named.name):
                kind = _Kind(named.name, named.name)
            self._types[key] = kind or _Kind(named.name, f"?{named.name}", False)
        return self._types[key]

    def _find_class(self, ref: SymbolRef) -> _Kind | None:
        place = ref.resolved
        if place is not None:
            symbol = self.relations.symbol(place)
            return _Kind(place.name, place) if symbol is not None and symbol.kind_group == "class" else None
        outside = _outside(ref)
        return _Kind(outside, outside) if outside else None

    def _find_suppressed(self, code: _Code, guard: Guard) -> tuple[_Kind, ...]:
        """What a context manager does not let out: by its name, or by the code around its `yield` or in `__exit__`."""
        key = (code.path, code.document, guard.manager[0])
        if key not in self._managers:
            found = code.call(guard.manager[1])
            types: tuple[_Kind, ...] = ()
            if found is not None and found[1].name in _ASSERTING:
                types = tuple(self._find_type(code, named) for named in guard.arguments)
            elif found is not None:
                place = self.relations.edges.find_call(code.path, code.document, found[0]).resolved
                types = self._read_manager(place) if place is not None else ()
            self._managers[key] = types
        return self._managers[key]

    def _read_manager(self, place: Candidate) -> tuple[_Kind, ...]:
        row, code = self.relations.definition(place), self.code(place.path, place.document)
        if row is None or code is None:
            return ()
        found: list[_Kind] = []
        if row.symbol.kind_group == "class":
            leaving = {f"{place.name}.__exit__", f"{place.name}.__aexit__"}
            for flow in row.file.flows[row.document]:
                if flow.kind == "return" and row.file.text.startswith(b"True", max(flow.value_start, 0)):
                    found += [_Kind("BaseException", "BaseException")] if code.scope(flow.start) in leaving else []
        elif any(decorator.rpartition(".")[2].startswith(_MANAGING) for decorator in row.symbol.decorators):
            for at in code.handlers.yields:
                if code.scope(at) == place.name:
                    for guard in code.guards(at):
                        for handler in guard.handlers:
                            types = tuple(self._find_type(code, named) for named in handler.types)
                            found += () if handler.reraises else types or (_Kind("BaseException", "BaseException"),)
        return tuple(found)


def _outside(ref: SymbolRef) -> str:
    """The dotted name of what comes from outside, builtins without their module."""
    return ref.module.removeprefix("builtins.") if ref.status == "external" else ""


def _is_exception(name: str) -> bool:
    real = getattr(builtins, name, None)
    return isinstance(real, type) and issubclass(real, BaseException)


_TITLES = {
    "escapes": "Escapes",
    "uncaught": "Uncaught",
    "bare": "Bare Handlers",
    "empty": "Empty Handlers",
    "broad": "Broad Handlers",
    "raised": "Raised",
    "handlers": "Handlers",
}


def _make_answer(
    relations: Relations,
    options: ExceptionsOptions,
    ways: _Ways,
    targets: list[Definition],
    raised: list[_Site],
    handled: list[_Caught],
    escapes: list[_Escape],
    passed: int,
) -> Answer:
    open_sites = [site for site in raised if site.status in ("uncaught", "leaves", "open")]
    groups: dict[str, list[_Site | _Caught | _Escape]] = {title: [] for title in _TITLES}
    groups["escapes"] += escapes
    if not targets:
        groups["uncaught"] += sorted(open_sites, key=_order_site)
    groups["raised"] += sorted((s for s in raised if targets or s not in open_sites), key=_order_site)
    for caught in sorted(handled, key=lambda item: (item.code.role == "test", item.code.path, item.handler.start)):
        flag = next((name for name in ("bare", "empty", "broad") if name in caught.flags), "handlers")
        groups[flag].append(caught)
    rows = [(name, item) for name, items in groups.items() for item in items]

    def make(row: tuple[str, _Site | _Caught | _Escape]) -> Finding:
        item = row[1]
        if isinstance(item, _Escape):
            return _describe_escape(relations, ways, item)
        return _describe_site(item) if isinstance(item, _Site) else _describe_handler(item)

    shown, budget, cut = take(rows, options.page, make)
    first = (budget.page - 1) * options.page.size
    names = [name for name, _ in rows[first : first + len(shown)]]
    sections = tuple(
        Section(title, kind, len(groups[kind]), findings)
        for kind, title in _TITLES.items()
        if (findings := tuple(f for name, f in zip(names, shown, strict=True) if name == kind))
    )
    counts = {status: sum(1 for site in raised if site.status == status) for status in _STATUSES}
    flags = {name: sum(1 for item in handled if name in item.flags) for name in ("bare", "empty", "broad", "reraises")}
    slices = {
        "raised": Slice(len(raised), "places that raise"),
        "uncaught": Slice(len(open_sites), "that nothing here is sure to catch"),
        "handlers": Slice(len(handled), "handlers"),
        **{name: Slice(count, f"{name} handlers") for name, count in flags.items() if name != "reraises"},
        "escapes": Slice(len(escapes), "ways in which an exception may leave it"),
        "passed": Slice(passed, "`?` that pass an error on"),
    }
    if ways.cut:
        limit = MAX_STEPS if ways.steps > MAX_STEPS else MAX_NODES
        cut.append(Truncation("exceptions", "calls", limit, limit + ways.cut, ways.cut))
    if ways.lost:
        cut.append(Truncation("exceptions", "depth", options.depth, options.depth + 1, ways.lost))
    budget = msgspec.structs.replace(budget, used=count_tokens(sections, options.page.measure) + 150)
    found = len(raised) + len(handled) + len(escapes)
    return Answer(
        SCHEMA_VERSION,
        "exceptions",
        Run(generation=relations.files.generation),
        {
            "query": options.target or "exceptions",
            "raised": len(raised),
            "handlers": len(handled),
            "by_status": {status: count for status, count in counts.items() if count},
            **flags,
            "escapes": len(escapes),
            "passed": passed,
        },
        found=found,
        insight=Insight(describe_target(targets) if targets else None, slices, budget=budget) if found else None,
        sections=sections,
        truncated=tuple(cut),
    )


def _order_site(site: _Site) -> tuple[bool, int, bool, bool, str, int]:
    """Sources first; what certainly goes up before what only may; abstract methods, which raise by design, last."""
    return (
        site.code.role == "test", _STATUSES.index(site.status), site.kind.key == "NotImplementedError",
        site.doubt, site.code.path, site.raised.start,
    )  # fmt: skip


_SAYS = {
    "uncaught": "nothing catches it on the way to {top}",
    "leaves": "leaves {scope}, which nothing here calls",
    "open": "not followed to its end",
    "caught": "caught by callers",
    "handled": "caught at {where}",
    "again": "raises again what it caught",
    "value": "an error as a value",
}


def _describe_site(site: _Site) -> Finding:
    code, raised = site.code, site.raised
    scope = code.scope(raised.start)
    top = site.witness[-1].partition(" ")[0] if site.witness else "the top of the module"
    says = _SAYS[site.status].format(
        top=top, scope=scope or "the module", where=site.caught_at[0] if site.caught_at else ""
    )
    says += f", at {', '.join(site.caught_at[:2])}" if site.status == "caught" and site.caught_at else ""
    flags = [*(["cause"] if raised.cause else []), *(["maybe_caught"] if site.doubt else [])]
    flags += ["abstract"] if site.kind.key == "NotImplementedError" else []
    details = ExceptionDetails(
        raised.kind, site.kind.label or raised.name, scope, code.language, code.role, site.status,
        site.caught_at[:5], site.witness, tuple(flags),
    )  # fmt: skip
    what = site.kind.label or raised.name or "it"
    doubt = " (may be)" if site.doubt and site.status == "uncaught" else ""
    message = f"{raised.kind} {what} in {scope or 'the module'}: {says}{doubt}"
    return Finding("raised", message, code.file.locate(raised.start, raised.end), details=details)


def _describe_handler(item: _Caught) -> Finding:
    code, handler = item.code, item.handler
    types = ", ".join(named.name for named in handler.types)
    details = ExceptionDetails(
        handler.kind, types, code.scope(handler.start), code.language, code.role, flags=item.flags
    )
    line = code.file.line_at(handler.start).strip()
    words = f" ({', '.join(item.flags)})" if item.flags else ""
    return Finding("handler", f"{line}{words}", code.file.locate(handler.start, handler.end), details=details)


def _describe_escape(relations: Relations, ways: _Ways, escape: _Escape) -> Finding:
    site = escape.origin
    code, raised = site.code, site.raised
    status, up, caught, doubt = ways.climb(escape.node, site.kind, find_role(escape.node.path) == "test")
    what, scope = site.kind.label or raised.name or "something", code.scope(raised.start)
    says = {
        "caught": f"caught by callers, at {', '.join(caught[:2])}",
        "leaves": "nothing here calls it",
        "open": "callers not followed to their end",
    }.get(status, f"uncaught on the way to {up[-1].partition(' ')[0]}" if up else "uncaught")
    details = ExceptionDetails(
        raised.kind, what, scope, code.language, code.role, status, caught[:5],
        (*reversed(up), *escape.down), ("maybe_caught",) if doubt or site.doubt else (),
    )  # fmt: skip
    through = f" through {len(escape.down)} call{'s' * (len(escape.down) != 1)}" if escape.down else ""
    message = f"{what} may leave {escape.node.name or 'the module'}, raised in {scope or 'the module'}{through}; {says}"
    return Finding("escape", message, code.file.locate(raised.start, raised.end), details=details)
