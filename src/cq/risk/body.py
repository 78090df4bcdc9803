"""The code of one function as statements in their order, nested as they run, made of typed code."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from cq.model.code import (
    BaseForm,
    Bind,
    Branch,
    Code,
    Definition,
    Exit,
    Operated,
    ParameterOf,
    SeenIn,
    Site,
    Store,
    Value,
    find_inner,
)

MAX_EVENTS = 20_000  # of one function; what stands behind them is not followed


class Raised(NamedTuple):
    start: int
    value: Value


Event = Bind | Store | Site | Exit | Raised


class Group(NamedTuple):
    """Branches of which one runs, or none where `is_whole` is not set."""

    branches: tuple[tuple[Value, Block], ...]
    is_whole: bool


class Loop(NamedTuple):
    condition: Value
    body: Block
    start: int
    end: int


class Protected(NamedTuple):
    body: Block
    handlers: tuple[Block, ...]


class Asserted(NamedTuple):
    condition: Value


Item = Event | Group | Loop | Protected | Asserted
Block = list["Item"]


class Body(NamedTuple):
    block: Block
    is_cut: bool


class Bodies:
    """The bodies of a document's functions, each made when it is asked for."""

    def __init__(self, code: Code) -> None:
        self.code = code
        spans = sorted(made.anonymous[1:] for made in code.definitions if made.anonymous)
        self._spans = spans
        self._starts = [start for start, _ in spans]
        self._made: dict[int, Body] = {}
        self._events: dict[tuple[int, int], list[tuple[int, int, Event]]] = {}
        self._branches: dict[tuple[int, int], list[Branch]] = {}
        for bind in code.binds:
            match bind.value:
                case ParameterOf():
                    pass
                case SeenIn(scope=scope, offset=offset, value=value):  # where it is assigned, whoever has the name
                    moved = msgspec.structs.replace(bind, value=value, start=offset)
                    self._add(scope, offset + 1, 2, moved, offset)
                case _:
                    self._add(bind.scope, bind.start, 2, bind)
        for store in code.stores:
            self._add(store.scope, store.since if store.since >= 0 else store.start + 1, 3, store, store.start)
        for site in code.sites:
            self._add(site.scope, site.end, 1, site, site.start)
        for leave in code.exits:
            self._add(leave.scope, leave.end, 4, leave, leave.start)
        for scope, start, value in code.raises:
            self._add(scope, _end_of(value, start), 4, Raised(start, value), start)
        for branch in code.branches:
            self._branches.setdefault((branch.scope, self._find_span(branch.start)), []).append(branch)
        for events in self._events.values():
            events.sort(key=_order)

    def get(self, definition: Definition | None) -> Body:
        """None for the code of the module itself."""
        number = -1 if definition is None else definition.start
        if number not in self._made:
            if definition is None:
                key = (-1, -1)
            elif definition.anonymous:
                key = (definition.scope, definition.anonymous[1])
            else:
                key = (definition.symbol, -1)
            self._made[number] = _nest(self._events.get(key, []), self._branches.get(key, []))
        return self._made[number]

    def _add(self, scope: int, place: int, rank: int, event: Event, inside: int | None = None) -> None:
        span = self._find_span(place if inside is None else inside)
        self._events.setdefault((scope, span), []).append((place, rank, event))

    def _find_span(self, offset: int) -> int:
        return next(self.find_spans(offset), -1)

    def find_spans(self, offset: int) -> Iterator[int]:
        """Where the functions without a name begin that hold an offset, from the inside out."""
        at = bisect_right(self._starts, offset) - 1
        while at >= 0:
            start, end = self._spans[at]
            if start <= offset < end:
                yield start
            at -= 1
            if at < 0 or offset - self._spans[at][0] > 200_000:
                break


def _end_of(value: Value, start: int) -> int:
    return value if isinstance(value, int) else start + 1  # inside the branch that begins with it


def _order(row: tuple[int, int, Event]) -> tuple[int, int]:
    return row[0], row[1]


def _nest(events: list[tuple[int, int, Event]], branches: Sequence[Branch]) -> Body:
    is_cut = len(events) > MAX_EVENTS
    events = events[:MAX_EVENTS]
    asked: set[int] = set()
    for _, _, event in events:
        for value in _values_of(event):
            _find_calls(value, asked)
    for branch in branches:
        if branch.kind in ("if", "case", "loop", "assert"):  # what is entered, or caught, nobody else asks for
            _find_calls(branch.value, asked)
    # A call that something else asks for runs when that does.
    kept = [row for row in events if not (isinstance(row[2], Site) and row[2].end in asked)]
    ordered = sorted(branches, key=lambda b: (b.start, -b.end, b.kind in ("loop", "assert")))
    block = _Nester(kept, ordered).nest()
    return Body(block, is_cut)


def _values_of(event: Event) -> Iterable[Value]:
    match event:
        case Bind() | Exit() | Raised():
            return (event.value,)
        case Store():
            return event.base, event.value, event.key
        case Site():
            return event.callee, *event.args, *(value for _, value in event.keywords)


def _find_calls(value: Value, found: set[int]) -> None:
    todo = [value]
    while todo:
        current = todo.pop()
        if isinstance(current, int):
            found.add(current)
        elif isinstance(current, BaseForm):
            todo += find_inner(current)


class _Nester:
    """Puts events into branches by place."""

    def __init__(self, events: Sequence[tuple[int, int, Event]], branches: Sequence[Branch]) -> None:
        self._events, self._branches = events, branches
        self._event = self._branch = 0

    def nest(self) -> Block:
        return self._read(1 << 62)

    def _read(self, end: int, depth: int = 0) -> Block:
        """Everything up to a place."""
        block: Block = []
        while True:
            event = self._events[self._event] if self._event < len(self._events) else None
            branch = self._branches[self._branch] if self._branch < len(self._branches) else None
            place = event[0] if event is not None else end
            if branch is not None and branch.start < end and (event is None or branch.start < place):
                self._branch += 1
                self._open(block, branch, depth)
            elif event is not None and place <= end:
                self._event += 1
                block.append(event[2])
            else:
                return block

    def _open(self, block: Block, branch: Branch, depth: int) -> None:
        if depth > 60:
            return
        match branch.kind:
            case "if" | "case" if branch.tried >= 0:
                self._open_group(block, branch, depth)
            case "if" | "case":
                block.append(Group(((branch.value, self._read(branch.end, depth + 1)),), False))
            case "loop":
                block.append(Loop(branch.value, self._read(branch.end, depth + 1), branch.start, branch.end))
            case "assert":
                block += self._read(branch.end, depth + 1)
                block.append(Asserted(branch.value))
            case "with":
                block += self._read(branch.end, depth + 1)
            case "try":
                self._open_try(block, branch, depth)
            case _:
                block += self._read(branch.end, depth + 1)

    def _open_group(self, block: Block, first: Branch, depth: int) -> None:
        branches = [(first.value, self._read(first.end, depth + 1))]
        is_whole, last = False, first
        while not is_whole and (following := self._peek(first)) is not None:
            # What the head of an `elif` does stands between the branches; it is asked for with its condition.
            self._branch += 1
            is_whole = following.kind == "if" and _is_rest(following.value, last.value)
            branches.append((None if is_whole else following.value, self._read(following.end, depth + 1)))
            last = following
        if last.kind == "case":
            is_whole = isinstance(last.value, Operated) and last.value.right == "_"
        block.append(Group(tuple(branches), is_whole))

    def _peek(self, first: Branch) -> Branch | None:
        branch = self._branches[self._branch] if self._branch < len(self._branches) else None
        same = branch is not None and branch.kind == first.kind and branch.tried == first.tried
        return branch if same else None

    def _open_try(self, block: Block, branch: Branch, depth: int) -> None:
        """What runs where nothing is raised stands behind it, and so does the `finally`."""
        body = self._read(branch.end, depth + 1)
        handlers: list[Block] = []
        while self._branch < len(self._branches):
            following = self._branches[self._branch]
            if following.tried != branch.start or following.kind not in ("except", "except*"):
                break
            self._branch += 1
            handlers.append(self._read(following.end, depth + 1))
        block.append(Protected(body, tuple(handlers)))


def _is_rest(value: Value, last: Value) -> bool:
    """Whether this is the condition of an `else` behind a branch with that condition."""
    if not (isinstance(value, Operated) and value.operator == "not" and value.right is None):
        return False
    asked = value.left
    return asked == last or (isinstance(asked, Operated) and asked.operator == "or" and asked.right == last)


def walk(block: Block) -> Iterator[Item]:
    """Every item, the outer before the inner."""
    for item in block:
        yield item
        match item:
            case Group():
                for _, inner in item.branches:
                    yield from walk(inner)
            case Loop():
                yield from walk(item.body)
            case Protected():
                for inner in (item.body, *item.handlers):
                    yield from walk(inner)
            case _:
                pass
