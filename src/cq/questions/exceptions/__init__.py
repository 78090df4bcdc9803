"""What is raised, what catches it, and what nobody catches along the calls, each with one way as its witness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, NamedTuple

import msgspec

from cq.answers.options import Option, Options, Paged
from cq.answers.page import Page, count_tokens, take
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
from cq.model.edge import Candidate, show_name
from cq.model.errors import UsageError
from cq.questions.exceptions.handlers import Handler
from cq.questions.exceptions.ways import MAX_NODES, MAX_STEPS, Code, Escape, Site, Ways, is_aside
from cq.snapshot.bodies import find_holder
from cq.snapshot.relations import Relations, linked, note_uncovered
from cq.snapshot.target import Definition, describe_target, find_targets, say_nothing

if TYPE_CHECKING:
    from cq.snapshot.snapshot import Snapshot

MAX_DEPTH = 12
_STATUSES = ("uncaught", "leaves", "open", "caught", "handled", "again", "value")


class ExceptionsOptions(Options, frozen=True):
    """Of a definition, of a path or module, or (`target` empty) of the whole tree. `depth` counts calls, both ways."""

    examples: ClassVar[str] = """\
  cq exceptions                        of the whole repository
  cq exceptions src/app                of the files below a directory
  cq exceptions django.db.models       of a module or package
  cq exceptions QuerySet.get           what may leave a function, and who catches it"""

    target: Annotated[
        str, Option("a definition, a path or a module (default: all)", "", "TARGET|PATH", argument=True, place="part")
    ] = ""
    depth: Annotated[int, Option("how many calls are followed (default: 6)", metavar="N")] = 6
    page: Paged = Page(40)

    def check(self) -> None:
        self.page.check()
        if not 1 <= self.depth <= MAX_DEPTH:
            raise UsageError(f"--depth {self.depth} is out of range", hint=f"it is 1 to {MAX_DEPTH}")


@linked
def ask(snapshot: Snapshot, options: ExceptionsOptions) -> Answer:
    """What nobody catches first, then handlers that hide things, then everything else raised and caught."""
    relations = snapshot.relations
    options.check()
    targets: list[Definition] = []
    paths, part = relations.find_part(options.target)
    if not part and options.target:
        targets = [find_holder(row) for row in find_targets(relations.files, options.target)]
        if not targets:
            return say_nothing(relations.files, "exceptions", options.target)
        paths = part = [targets[0].file.path]
    ways = Ways(relations, options.depth)
    inside = _find_inside(relations, targets)
    raised: list[Site] = []
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
    answer = _make_answer(relations, options, ways, targets, raised, handled, escapes, passed)
    return msgspec.structs.replace(answer, degraded=tuple(note_uncovered(relations, "exceptions", part, "exceptions")))


class _Caught(NamedTuple):
    code: Code
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
            place = relations.documents.find_place(row.file.path, row.document, number)
            nodes += [place] if place is not None else []
    return _Inside(tuple(dict.fromkeys(nodes)), False)


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
    ways: Ways,
    targets: list[Definition],
    raised: list[Site],
    handled: list[_Caught],
    escapes: list[Escape],
    passed: int,
) -> Answer:
    open_sites = [site for site in raised if site.status in ("uncaught", "leaves", "open")]
    groups: dict[str, list[Site | _Caught | Escape]] = {title: [] for title in _TITLES}
    groups["escapes"] += escapes
    if not targets:
        groups["uncaught"] += sorted(open_sites, key=_order_site)
    groups["raised"] += sorted((s for s in raised if targets or s not in open_sites), key=_order_site)
    for caught in sorted(
        handled, key=lambda item: (item.code.role in ("test", "doc"), item.code.path, item.handler.start)
    ):
        flag = next((name for name in ("bare", "empty", "broad") if name in caught.flags), "handlers")
        groups[flag].append(caught)
    rows = [(name, item) for name, items in groups.items() for item in items]

    def make(row: tuple[str, Site | _Caught | Escape]) -> Finding:
        item = row[1]
        if isinstance(item, Escape):
            return _describe_escape(relations, ways, item)
        return _describe_site(item) if isinstance(item, Site) else _describe_handler(item)

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
        insight=Insight(describe_target(targets) if targets else None, slices, budget=budget)
        if targets or found
        else None,
        sections=sections,
        truncated=tuple(cut),
    )


def _order_site(site: Site) -> tuple[bool, int, bool, bool, str, int]:
    """Sources first; what certainly goes up before what only may; abstract methods, which raise by design, last."""
    return (
        is_aside(site.node), _STATUSES.index(site.status), site.kind.key == "NotImplementedError",
        site.doubt, site.code.path, site.raised.start,
    )  # fmt: skip


_SAYS = {
    "uncaught": "nothing catches it on the way to {top}",
    "leaves": "leaves {scope}, which nothing here is known to call",
    "open": "not followed to its end",
    "caught": "caught by callers",
    "handled": "caught at {where}",
    "again": "raises again what it caught",
    "value": "an error as a value",
}


def _describe_site(site: Site) -> Finding:
    code, raised = site.code, site.raised
    scope = show_name(code.scope(raised.start))
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
    what = f"{raised.kind} {site.kind.label or raised.name or 'it'}"
    what = raised.name if raised.kind in ("panic", "unwrap") else what
    doubt = " (may be)" if site.doubt and site.status == "uncaught" else ""
    message = f"{what} in {scope or 'the module'}: {says}{doubt}"
    return Finding("raised", message, code.file.locate(raised.start, raised.end), details=details)


def _describe_handler(item: _Caught) -> Finding:
    code, handler = item.code, item.handler
    types = ", ".join(named.name for named in handler.types)
    details = ExceptionDetails(
        handler.kind, types, show_name(code.scope(handler.start)), code.language, code.role, flags=item.flags
    )
    line = code.file.line_at(handler.start).strip()
    words = f" ({', '.join(item.flags)})" if item.flags else ""
    return Finding("handler", f"{line}{words}", code.file.locate(handler.start, handler.end), details=details)


def _describe_escape(relations: Relations, ways: Ways, escape: Escape) -> Finding:
    site = escape.origin
    code, raised = site.code, site.raised
    status, up, caught, doubt = ways.climb(escape.node, site.kind, is_aside(escape.node))
    what, scope = site.kind.label or raised.name or "something", show_name(code.scope(raised.start))
    says = {
        "caught": f"caught by callers, at {', '.join(caught[:2])}",
        "leaves": "nothing here is known to call it",
        "open": "callers not followed to their end",
    }.get(status, f"uncaught on the way to {up[-1].partition(' ')[0]}" if up else "uncaught")
    details = ExceptionDetails(
        raised.kind, what, scope, code.language, code.role, status, caught[:5],
        (*reversed(up), *escape.down), ("maybe_caught",) if doubt or site.doubt else (),
    )  # fmt: skip
    through = f" through {len(escape.down)} call{'s' * (len(escape.down) != 1)}" if escape.down else ""
    message = (
        f"{what} may leave {escape.node.shown_name or 'the module'}, raised in {scope or 'the module'}{through}; {says}"
    )
    return Finding("escape", message, code.file.locate(raised.start, raised.end), details=details)
