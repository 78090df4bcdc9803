"""Follows exceptions along the calls: from where they are raised up to who catches them, and down to what may leave a
definition."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cq.language import describe
from cq.model.edge import Candidate, Edge, SymbolRef
from cq.model.facts import Call
from cq.model.spans import Spans
from cq.questions.exceptions.handlers import Guard, Handlers, Named, Raised, find_handlers
from cq.snapshot.bodies import Bodies
from cq.snapshot.relations import CALLS, POSSIBLE, Relations
from cq.source.role import find_role

MAX_NODES = 400  # definitions below a target whose code is looked at
MAX_STEPS = 60_000  # callers looked at in one question
_ASSERTING = frozenset({"assertRaises", "assertRaisesRegex", "assertRaisesMessage", "raises", "suppress"})
_BY_STATEMENT = ("raise", "throw", "reraise")
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
    "smtplib.SMTPException": "OSError",
}  # fmt: skip


class Kind(NamedTuple):
    """A type of exception: a class of the repository, or a name. `known` is False for what could be anything."""

    label: str
    key: Candidate | str
    known: bool = True


class Site(NamedTuple):
    """Something raised, and what becomes of it."""

    code: Code
    raised: Raised
    kind: Kind
    status: str
    caught_at: tuple[str, ...] = ()
    witness: tuple[str, ...] = ()
    doubt: bool = False

    @property
    def node(self) -> Candidate:
        return Candidate(self.code.path, self.code.document, self.code.scope(self.raised.start))


class Escape(NamedTuple):
    """An exception that may leave the target, raised at `site`, by the calls of `down`."""

    node: Candidate
    origin: Site
    down: tuple[str, ...]


class Code:
    """One document: what it raises and catches, by the definition that does."""

    def __init__(self, relations: Relations, path: str, document: int) -> None:
        held = relations.hold(path)
        assert held is not None
        self.file, self.path, self.document = held, path, document
        stored = held.documents[document]
        self.language, self.role = stored.language, held.role
        code, found = relations.documents.codes(path)[document], Handlers()
        if code is not None:
            found = find_handlers(held.text, code, held.flows[document], held.calls[document])
        self._relations = relations
        self._bodies = Bodies(held.symbols[document])
        self._names: dict[int, str] = {}
        # Of a call among the tokens of a macro, outside of what is known as a function, nobody knows who runs it.
        raised = tuple(item for item in found.raised if item.kind in _BY_STATEMENT or self.scope(item.start))
        self.handlers = found._replace(raised=raised)
        by_scope: dict[str, list[Guard]] = {}
        for guard in self.handlers.guards:
            by_scope.setdefault(self.scope(guard.start), []).append(guard)
        self._guards = {name: Spans((g.start, g.end, g) for g in guards) for name, guards in by_scope.items()}

    def scope(self, offset: int) -> str:
        """The name, as links know it, of the innermost definition whose body holds an offset; "" for the module."""
        return next((name for number in self._bodies.around(offset) if (name := self._name(number))), "")

    def guards(self, offset: int) -> Iterable[Guard]:
        """Those of the same definition that protect a place, innermost first."""
        spans = self._guards.get(self.scope(offset))
        return () if spans is None else spans.around(offset)

    def call(self, number: int) -> Call:
        return self.file.calls[self.document][number]

    def place(self, offset: int) -> str:
        return f"{self.path}:{self.file.lines.line(offset)}"

    def _name(self, number: int) -> str:
        if number not in self._names:
            place = self._relations.documents.find_place(self.path, self.document, number)
            self._names[number] = place.name if place is not None else ""
        return self._names[number]


class Ways:
    """Follows exceptions along the calls; keeps what it has read for the length of one question."""

    def __init__(self, relations: Relations, depth: int) -> None:
        self.relations, self.depth = relations, depth
        self.steps = self.cut = self.lost = 0
        self._codes: dict[tuple[str, int], Code | None] = {}
        self._callers: dict[Candidate, list[tuple[Edge, Call]]] = {}
        self._above: dict[Candidate | str, tuple[frozenset[Candidate | str], bool]] = {}
        self._types: dict[tuple[str, int, Named], Kind] = {}
        self._managers: dict[tuple[str, int, int], tuple[Kind, ...]] = {}  # by the number of the call
        self._climbs: dict[tuple[Candidate, Candidate | str, bool], tuple[str, tuple[str, ...], tuple[str, ...], bool]]
        self._climbs = {}

    def find_codes(self, path: str) -> list[Code]:
        """Of the documents of a file, those that raise or catch."""
        held = self.relations.hold(path)
        if held is None:
            return []
        found = (self.code(path, number) for number in range(len(held.documents)))
        return [code for code in found if code is not None]

    def code(self, path: str, document: int) -> Code | None:
        key = (path, document)
        if key not in self._codes:
            held = self.relations.hold(path)
            known = held is not None and "exceptions" in describe(held.documents[document].language).offers
            self._codes[key] = Code(self.relations, path, document) if known else None
        return self._codes[key]

    def follow(self, code: Code, raised: Raised) -> Site:
        """From where it is raised up to where it is caught, or to where nobody is left who could."""
        kind = self._find_kind(code, raised)
        if raised.kind in ("error", "reraise"):
            return Site(code, raised, kind, "value" if raised.kind == "error" else "again")
        where, doubt = self._catch(code, raised.start, kind)
        if where:
            return Site(code, raised, kind, "handled", (where,))
        node = Candidate(code.path, code.document, code.scope(raised.start))
        status, witness, caught, unsure = self.climb(node, kind, is_aside(node))
        return Site(code, raised, kind, status, caught, witness, doubt or unsure)

    def climb(self, node: Candidate, kind: Kind, tests: bool) -> tuple[str, tuple[str, ...], tuple[str, ...], bool]:
        """(status, witness, caught at, doubt): the shortest way up along which nothing catches it. Tests and examples
        call what they like: they are followed only where the code is such itself."""
        key = (node, kind.key, tests)
        if key not in self._climbs:
            self._climbs[key] = self._climb(node, kind, tests)
        return self._climbs[key]

    def _climb(self, node: Candidate, kind: Kind, tests: bool) -> tuple[str, tuple[str, ...], tuple[str, ...], bool]:
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

    def find_escapes(self, nodes: Sequence[Candidate]) -> list[Escape]:
        """What may leave each of the nodes, raised in it or by what it calls, by the shortest way."""
        calls: dict[Candidate, list[tuple[Candidate, Code, int]]] = {}
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
        escapes: dict[Candidate, dict[Candidate | str, Escape]] = {}
        for node in {*calls, *frontier}:
            escapes[node] = self._find_own(node)
        order = sorted(calls)
        for _ in range(self.depth):
            fresh: list[tuple[Candidate, Escape]] = []
            for node in order:
                for target, code, at in calls[node]:
                    for key, escape in escapes.get(target, {}).items():
                        if key not in escapes[node] and not self._catch(code, at, escape.origin.kind)[0]:
                            label = self.relations.label
                            step = f"{label(node)} calls {label(target)} at {code.place(at)}"
                            fresh.append((node, Escape(node, escape.origin, (step, *escape.down))))
            if not fresh:
                break
            for node, escape in fresh:
                escapes[node].setdefault(escape.origin.kind.key, escape)
        found: dict[tuple[Candidate, Candidate | str], Escape] = {}
        for node in nodes:
            for key, escape in escapes.get(node, {}).items():
                found.setdefault((node, key), escape)
        return sorted(found.values(), key=lambda e: (nodes.index(e.node), len(e.down), e.origin.kind.label))

    def _find_own(self, node: Candidate) -> dict[Candidate | str, Escape]:
        code = self.code(node.path, node.document)
        found: dict[Candidate | str, Escape] = {}
        for raised in code.handlers.raised if code is not None else ():
            if code is None or raised.kind in ("error", "reraise") or code.scope(raised.start) != node.name:
                continue
            kind = self._find_kind(code, raised)
            where, doubt = self._catch(code, raised.start, kind)
            if not where:
                found.setdefault(kind.key, Escape(node, Site(code, raised, kind, "", doubt=doubt), ()))
        return found

    def _find_callees(self, node: Candidate) -> list[tuple[Candidate, Code, int]]:
        code = self.code(node.path, node.document)
        if code is None:
            return []
        found: list[tuple[Candidate, Code, int]] = []
        for edge in self.relations.referrers.find_out(node, possible=False):
            call = self.relations.call(edge)
            if edge.kind in CALLS and call is not None and edge.ref.confidence > POSSIBLE:
                found += [(target, code, max(call.name_start, call.start)) for target in edge.ref.candidates]
        return found

    def _find_callers(self, node: Candidate, tests: bool) -> list[tuple[Edge, Call]]:
        if node not in self._callers:
            rows = [
                (edge, call)
                for edge in self.relations.referrers.find_callers(node, possible=False)
                if edge.ref.confidence > POSSIBLE and (call := self.relations.call(edge)) is not None
            ]
            rows.sort(key=lambda row: (-row[0].ref.confidence, row[0].source, row[1].start))
            self._callers[node] = rows
        rows = self._callers[node]
        return rows if tests else [row for row in rows if not is_aside(row[0].source)]

    def _catch(self, code: Code, offset: int, kind: Kind) -> tuple[str, bool]:
        """(where it is caught, "" if it is not; whether something may have)."""
        doubt = False
        for guard in code.guards(offset):
            if guard.kind == "with":
                verdict = self._compare(kind, self._find_suppressed(code, guard))
                if verdict == "yes":
                    return f"{code.place(code.call(guard.manager).start)} with", doubt
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

    def _compare(self, kind: Kind, types: tuple[Kind, ...]) -> str:
        above, is_open = self._find_above(kind)
        maybe = False
        for wanted in types:
            if wanted.key in above or wanted.key == "BaseException":
                return "yes"
            if wanted.key == "Exception" and is_open:
                return "yes"  # whatever it is, next to nothing is a BaseException alone
            maybe = maybe or is_open or not wanted.known
        return "maybe" if maybe else "no"

    def _find_above(self, kind: Kind) -> tuple[frozenset[Candidate | str], bool]:
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
                for edge in self.relations.referrers.find_out(key, possible=False):
                    if edge.kind == "inherits":
                        place = edge.ref.resolved
                        outside = _outside(edge.ref)
                        todo += [place] if place is not None else [outside] if outside else []
                        is_open = is_open or (place is None and not outside)
            self._above[kind.key] = frozenset(found), is_open
        return self._above[kind.key]

    def _find_kind(self, code: Code, raised: Raised) -> Kind:
        if raised.kind in ("panic", "unwrap"):
            return Kind("panic", "panic")
        if raised.call >= 0:
            kind = self._find_class(self.relations.calls.find_call(code.path, code.document, raised.call))
            if kind is not None:
                return kind
        if not raised.name:
            return Kind("", "?", False)
        return self._find_type(code, Named(raised.name, raised.name_start))

    def _find_type(self, code: Code, named: Named) -> Kind:
        key = (code.path, code.document, named)
        if key not in self._types:
            ref = self.relations.meanings.find_dotted(code.path, code.document, named.name, named.start)
            kind = self._find_class(ref)
            if kind is None and ref.status == "unresolved" and _is_exception(named.name):
                kind = Kind(named.name, named.name)
            self._types[key] = kind or Kind(named.name, f"?{named.name}", False)
        return self._types[key]

    def _find_class(self, ref: SymbolRef) -> Kind | None:
        place = ref.resolved
        if place is not None:
            symbol = self.relations.symbol(place)
            return Kind(place.name, place) if symbol is not None and symbol.kind_group == "class" else None
        outside = _outside(ref)
        return Kind(outside, outside) if outside else None

    def _find_suppressed(self, code: Code, guard: Guard) -> tuple[Kind, ...]:
        """What a context manager does not let out: by its name, or by the code around its `yield` or in `__exit__`."""
        key = (code.path, code.document, guard.manager)
        if key not in self._managers:
            if code.call(guard.manager).name in _ASSERTING:
                types = tuple(self._find_type(code, named) for named in guard.arguments)
            else:
                place = self.relations.calls.find_call(code.path, code.document, guard.manager).resolved
                types = self._read_manager(place) if place is not None else ()
            self._managers[key] = types
        return self._managers[key]

    def _read_manager(self, place: Candidate) -> tuple[Kind, ...]:
        row, code = self.relations.definition(place), self.code(place.path, place.document)
        if row is None or code is None:
            return ()
        found: list[Kind] = []
        if row.symbol.kind_group == "class":
            leaving = {f"{place.name}.__exit__", f"{place.name}.__aexit__"}
            for flow in row.file.flows[row.document]:
                if flow.kind == "return" and row.file.text.startswith(b"True", max(flow.value_start, 0)):
                    found += [Kind("BaseException", "BaseException")] if code.scope(flow.start) in leaving else []
        elif any(decorator.rpartition(".")[2].startswith(_MANAGING) for decorator in row.symbol.decorators):
            for flow in row.file.flows[row.document]:
                if flow.kind == "yield" and code.scope(flow.start) == place.name:
                    for guard in code.guards(flow.start):
                        for handler in guard.handlers:
                            types = tuple(self._find_type(code, named) for named in handler.types)
                            found += () if handler.reraises else types or (Kind("BaseException", "BaseException"),)
        return tuple(found)


def is_aside(node: Candidate) -> bool:
    """Code that runs the rest: tests, also those that Rust keeps in a module beside the code, and examples."""
    inner = node.path.endswith(".rs") and node.name.startswith(("tests.", "test."))
    return inner or find_role(node.path) in ("test", "doc")


def _outside(ref: SymbolRef) -> str:
    """The dotted name of what comes from outside, builtins without their module."""
    return ref.module.removeprefix("builtins.") if ref.status == "external" else ""


def _is_exception(name: str) -> bool:
    real = getattr(builtins, name, None)
    return isinstance(real, type) and issubclass(real, BaseException)
