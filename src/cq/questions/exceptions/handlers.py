"""What a document's code raises and what catches it, read off its facts; what a name means is for others to say.

A `Guard` protects a span of one function: the body of `try`, of `with`, or, where `finally` returns, all before it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from typing import NamedTuple

import msgspec

from cq.language import load_table
from cq.model.code import Branch, Caught, Code, Listing, Value
from cq.model.facts import Call, Flow
from cq.model.spans import Spans

_NAME = re.compile(r"[^\W\d][\w$]*(?:\.[^\W\d][\w$]*)*")
_TRACED = ".with_traceback"
_MAX_TEXT = 80  # of what stands for a class and is no name
_MAX_RETURNS = 2000  # looked at inside one `finally`
_BEFORE = 200  # bytes before the name of a method in which its dot stands


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `exceptions` of a language that raises by calls."""

    panics: frozenset[str] = frozenset()  # macros
    panicking_methods: frozenset[str] = frozenset()
    errors: frozenset[str] = frozenset()  # functions that make an error for a caller to pass on
    passes: str = ""  # the target of a flow that passes on the error of what it is made of


class Named(NamedTuple):
    """A dotted name as written, and where."""

    name: str
    start: int


class Handler(NamedTuple):
    """`types` without any catches everything. `reraises`: some way through it raises again what it caught."""

    kind: str  # except except* catch finally
    start: int
    end: int
    types: tuple[Named, ...] = ()
    empty: bool = False
    reraises: bool = False


class Guard(NamedTuple):
    """`manager` is the number of the call whose result `with` enters; `arguments` are the names it is given."""

    kind: str  # try with finally
    start: int
    end: int
    handlers: tuple[Handler, ...] = ()
    manager: int = -1
    arguments: tuple[Named, ...] = ()


class Raised(NamedTuple):
    """`call` is the number of the call that makes what is raised, -1 where it is no call."""

    kind: str  # raise throw panic unwrap error; reraise: what the handler around it caught
    start: int
    end: int
    name: str = ""  # "" where it is no name
    name_start: int = -1
    call: int = -1
    cause: bool = False


class Handlers(NamedTuple):
    """Of one document, each by start."""

    raised: tuple[Raised, ...] = ()
    guards: tuple[Guard, ...] = ()
    passed: tuple[int, ...] = ()


def find_handlers(text: bytes, code: Code, flows: Sequence[Flow], calls: Sequence[Call]) -> Handlers:
    reader = _Reader(text, code, flows, calls)
    return Handlers(tuple(reader.list_raised()), tuple(reader.list_guards()), tuple(reader.list_passed()))


class _Reader:
    def __init__(self, text: bytes, code: Code, flows: Sequence[Flow], calls: Sequence[Call]) -> None:
        self._text, self._code, self._flows, self._calls = text, code, flows, calls
        self._table = load_table(code.language, "exceptions", Table)
        self._at = {call.end: number for number, call in enumerate(calls)}
        self._outermost = {call.start: number for number, call in enumerate(calls)}  # calls are sorted by their spans
        self._clauses = [branch for branch in code.branches if branch.kind in ("except", "except*")]
        self._around = Spans((clause.start, clause.end, clause) for clause in self._clauses)
        # Functions without a name are no scopes, but what is raised in one is not raised by the handler around it.
        nameless = [each for each in code.definitions if each.anonymous]
        self._nameless = Spans((each.start, each.anonymous[2], each.start) for each in nameless)
        self._returns = [flow for flow in flows if flow.kind == "return"]
        self._types: dict[int, list[Named]] = {}  # start of a handler -> what it catches
        for flow in sorted(flows, key=lambda flow: flow.value_start):
            if flow.kind == "catch" and flow.value:
                self._types.setdefault(flow.start, []).append(Named(_say_type(flow.value), flow.value_start))
        self._aliases: dict[int, str] = {}  # start of a handler -> the name it gives to what it caught
        self._again: set[int] = set()  # the starts of handlers that raise what they caught

    def list_raised(self) -> list[Raised]:
        found = [self._read_raise(flow) for flow in self._flows if flow.kind == "raise" and not self._table.errors]
        found += [raised for call in self._calls if (raised := self._read_call(call)) is not None]
        return sorted(found, key=lambda raised: (raised.start, raised.end))

    def list_passed(self) -> Iterator[int]:
        """Where `f()?` passes an error on."""
        passes = self._table.passes
        return (flow.start for flow in self._flows if passes and flow.kind == "raise" and flow.target == passes)

    def list_guards(self) -> list[Guard]:
        """Behind `list_raised`, which tells what handlers raise again."""
        found: list[Guard] = []
        handlers: dict[int, list[Handler]] = {}
        for clause in self._clauses:
            handlers.setdefault(clause.tried, []).append(self._read_handler(clause))
        for branch in self._code.branches:
            if branch.kind == "try" and branch.start in handlers:
                found.append(Guard("try", branch.start, branch.end, tuple(handlers[branch.start])))
            elif branch.kind == "finally" and branch.tried >= 0 and self._leaves(branch):
                # `try: g() finally: return 1`: whatever g raised is gone.
                swallow = Handler("finally", branch.start, branch.end)
                found.append(Guard("finally", branch.tried, branch.start, (swallow,)))
            elif branch.kind == "with" and isinstance(branch.value, int) and branch.value in self._at:
                manager = self._at[branch.value]
                names = tuple(_find_names(self._code.sites[manager].args, self._calls[manager].start))
                found.append(Guard("with", branch.start, branch.end, (), manager, names))
        return sorted(found, key=lambda guard: (guard.start, -guard.end))

    def _read_raise(self, flow: Flow) -> Raised:
        text = self._text[flow.start : flow.end]
        handler = self._find_handler(flow)
        if flow.value_start < 0:
            return self._raise_again(flow, handler, Raised("raise", flow.start, flow.end))
        name, number = flow.value, -1
        last = flow.value_start + len(name.encode())
        if flow.value_kind == "call":
            number = self._outermost.get(flow.value_start, -1)
            last = self._calls[number].end if number >= 0 else last
        if name.endswith(_TRACED):  # `raise error.with_traceback(…)` raises what is in front of it
            name, number = name.removesuffix(_TRACED), self._at.get(flow.value_start + len(name) - len(_TRACED), -1)
            name = name if number < 0 else self._calls[number].callee
        name = "".join(name.split())
        is_name = _NAME.fullmatch(name) is not None
        cause = self._text[last : flow.end].split()[:1] == [b"from"]
        start = flow.value_start
        if number >= 0 and self._calls[number].name_start >= 0:
            start = self._calls[number].name_start - len(name.encode()) + len(self._calls[number].name.encode())
        kind = "raise" if text.startswith(b"raise") else "throw"
        raised = Raised(kind, flow.start, flow.end, name if is_name else "", start, number, cause)
        is_again = number < 0 and is_name and handler is not None and name == self._find_alias(handler)
        return self._raise_again(flow, handler, raised) if is_again else raised

    def _raise_again(self, flow: Flow, handler: Branch | None, raised: Raised) -> Raised:
        if handler is None:
            return raised
        self._again.add(handler.start)
        return raised._replace(kind="reraise")

    def _find_handler(self, flow: Flow) -> Branch | None:
        """The innermost handler of the same function."""
        clause = next(self._around.around(flow.start), None)
        return clause if clause is not None and self._is_own(clause, flow) else None

    def _is_own(self, branch: Branch, flow: Flow) -> bool:
        """Whether what stands in a branch runs in the same function."""
        return flow.scope == branch.scope and next(self._nameless.around(flow.start), -1) <= branch.start

    def _find_alias(self, clause: Branch) -> str:
        """The name that a handler gives to what it caught."""
        if clause.start not in self._aliases:
            binds, wanted = self._code.binds, Caught(clause.value)
            at = bisect_left(binds, clause.start, key=lambda bind: bind.start)
            inside = takewhile(lambda bind: bind.start < clause.end, islice(binds, at, None))
            self._aliases[clause.start] = next((bind.name for bind in inside if bind.value == wanted), "")
        return self._aliases[clause.start]

    def _read_handler(self, clause: Branch) -> Handler:
        kind = "catch" if self._text.startswith(b"catch", clause.start) else clause.kind
        types, is_again = tuple(self._types.get(clause.start, ())), clause.start in self._again
        return Handler(kind, clause.start, clause.end, types, clause.is_empty, is_again)

    def _leaves(self, branch: Branch) -> bool:
        """Whether a `return` of the same function stands in it."""
        at = bisect_left(self._returns, branch.start, key=lambda flow: flow.start)
        inside = takewhile(lambda flow: flow.start < branch.end, islice(self._returns, at, at + _MAX_RETURNS))
        return any(self._is_own(branch, flow) for flow in inside)

    def _read_call(self, call: Call) -> Raised | None:
        """A macro that panics, `x.unwrap()`, and `Err(…)`, which a caller may pass on."""
        table, name = self._table, call.name
        if call.kind == "macro" and name in table.panics:
            return Raised("panic", call.start, call.end, f"{name}!", call.start)
        before = max(call.name_start - _BEFORE, 0)
        if name in table.panicking_methods and self._text[before : call.name_start].rstrip().endswith(b"."):
            return Raised("unwrap", call.start, call.end, f".{name}()", call.name_start)
        if call.callee in table.errors:
            at = call.name_start + len(name)
            inside = self._text[at : call.end][: _MAX_TEXT + 1].decode("utf-8", "replace")
            inside = " ".join(inside.removeprefix("(").removesuffix(")").split())
            return Raised("error", call.start, call.end, inside, at + 1)
        return None


def _say_type(written: str) -> str:
    name = "".join(written.strip("()").split())
    return name if _NAME.fullmatch(name) else written[:_MAX_TEXT]


def _find_names(values: Sequence[Value], start: int) -> Iterator[Named]:
    """The names among arguments, and in tuples of them."""
    for value in values:
        for each in value.elements if isinstance(value, Listing) and value.kind == "tuple" else (value,):
            if isinstance(each, str):
                yield Named(each, start)
