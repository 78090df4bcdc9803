"""What comes in from outside: requests, commands, tasks, signals, and what handles each."""

from __future__ import annotations

import re
from collections import Counter
from fnmatch import translate
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec

from cq.answers.options import Option, Options, Paged
from cq.answers.page import Page, count_tokens, take
from cq.languages.routes import ROUTE_KINDS, RouteKind, load_frameworks
from cq.model.answer import SCHEMA_VERSION, Answer, Finding, Insight, RouteDetails, Run, Section, Slice
from cq.model.edge import Candidate
from cq.model.errors import UsageError, suggest
from cq.model.status import Degraded
from cq.snapshot.relations import Relations, linked, say_doubt
from cq.snapshot.routes import Route, find_routes
from cq.snapshot.target import Definition, describe_target, find_part, find_targets, say_nothing

if TYPE_CHECKING:
    from cq.snapshot.snapshot import Snapshot

_TITLES: dict[RouteKind, str] = {
    "http": "Requests", "websocket": "WebSockets", "graphql": "GraphQL", "cli": "Commands", "task": "Tasks",
    "schedule": "Scheduled", "signal": "Signals", "ffi": "Called From Other Languages",
}  # fmt: skip


class RoutesOptions(Options, frozen=True):
    """`pattern` is a part of a path, or all of it with `*`; `of` a handler, a file or a module."""

    examples: ClassVar[str] = """\
  cq routes                          every request, command, task and signal with its handler
  cq routes /users                   those whose path holds this; `*` fits anything
  cq routes --method POST            those of a method
  cq routes --of UserView.post       on which routes a handler is reached"""

    pattern: Annotated[
        str, Option("a part of a path or name; with `*` all of it", "pattern", "PATH-PATTERN", argument=True)
    ] = ""
    of: Annotated[
        str, Option("whose handler this is: a definition, a file or a module", metavar="TARGET", place="part")
    ] = ""
    method: Annotated[str, Option("only of this method, e.g. POST", metavar="METHOD")] = ""
    kind: Annotated[str, Option(f"only these: {', '.join(ROUTE_KINDS)}", metavar="KIND", choices=ROUTE_KINDS)] = ""
    page: Paged = Page(60)

    def check(self) -> None:
        self.page.check()
        if self.kind and self.kind not in ROUTE_KINDS:
            hint = suggest(self.kind, ROUTE_KINDS, f"kinds: {', '.join(ROUTE_KINDS)}")
            raise UsageError(f"there are no routes of kind {self.kind!r}", hint=hint)


@linked
def ask(snapshot: Snapshot, options: RoutesOptions) -> Answer:
    """By kind, then by path."""
    relations = snapshot.relations
    options.check()
    every = find_routes(relations)
    twins: list[Definition] = []
    rows = [route for route in every if _fits(route, options)]
    if options.of:
        paths = find_part(relations.files, relations.paths(), options.of)
        twins = [] if paths else find_targets(relations.files, options.of)
        if not paths and not twins:
            return say_nothing(relations.files, "routes", options.of)
        wanted = {relations.find_place(row) for row in twins[:1]}
        rows = [
            route
            for route in rows
            if route.handler is not None
            and (route.handler in wanted or route.handler.path in paths or _is_in(route, wanted))
        ]
    rows.sort(
        key=lambda route: (ROUTE_KINDS.index(route.kind), _is_test(relations, route), route.pattern, route.method)
    )
    shown, budget, cut = take(rows, options.page, lambda route: _describe(relations, route))
    counts = Counter(route.kind for route in rows)
    sections = tuple(
        Section(_TITLES[kind], kind, counts[kind], findings)
        for kind in ROUTE_KINDS
        if (findings := tuple(finding for finding in shown if finding.category == kind))
    )
    lost = sum(1 for route in rows if route.handler is None)
    slices = {kind: Slice(counts[kind], _SAID[kind]) for kind in ROUTE_KINDS if counts[kind]}
    slices |= {"unknown": Slice(lost, "whose handler is not known, or stands outside the repository")} if lost else {}
    budget = msgspec.structs.replace(budget, used=count_tokens(sections, options.page.measure) + 100)
    frameworks = Counter(route.framework for route in rows)
    return Answer(
        SCHEMA_VERSION,
        "routes",
        Run(generation=relations.files.generation),
        {
            "query": options.pattern or options.of or "routes",
            "frameworks": dict(sorted(frameworks.items())),
            "of": len(every),
        },
        found=len(rows),
        insight=Insight(describe_target(twins) if twins else None, slices, budget=budget) if rows else None,
        sections=sections,
        degraded=() if rows else (_say_none(snapshot, len(every)),),
        truncated=tuple(cut),
    )


_SAID: dict[RouteKind, str] = {
    "http": "requests", "websocket": "WebSocket handlers", "graphql": "fields of GraphQL", "cli": "commands",
    "task": "tasks", "schedule": "scheduled", "signal": "receivers of signals", "ffi": "called from other languages",
}  # fmt: skip


def _fits(route: Route, options: RoutesOptions) -> bool:
    if options.kind and route.kind != options.kind:
        return False
    if options.method and route.method not in (options.method.upper(), options.method.lower(), "*"):
        return False
    if "*" in options.pattern:
        return re.match(translate(options.pattern), route.pattern) is not None
    return options.pattern in route.pattern


def _is_in(route: Route, wanted: set[Candidate | None]) -> bool:
    """Whether the handler is a method of a class that is wanted."""
    handler = route.handler
    return handler is not None and any(
        each is not None
        and (each.path, each.document) == (handler.path, handler.document)
        and handler.name.startswith(f"{each.name}.")
        for each in wanted
    )


def _is_test(relations: Relations, route: Route) -> bool:
    held = relations.hold(route.path)
    return held is not None and held.role in ("test", "doc")


def _describe(relations: Relations, route: Route) -> Finding:
    held = relations.hold(route.path)
    location = held.locate(route.start, route.end) if held is not None else None
    row = relations.definition(route.handler) if route.handler is not None else None
    name = row.symbol.qualified_name if row is not None else route.handled_by
    way = " ".join(part for part in (route.method, route.pattern) if part)
    place = ""
    if row is not None and location is not None:
        own = row.location
        line = f":{own.start_line}" if own.path == location.path else f" in {own.path}:{own.start_line}"
        place = (
            ""
            if (own.path, own.start_line) == (location.path, location.start_line)
            else line.replace(":", " in line ", 1)
            if line.startswith(":")
            else line
        )
    through = f", through {', '.join(route.middleware)}" if route.middleware else ""
    typed = f"; takes {', '.join(route.takes)}" if route.takes else ""
    typed += f"; gives {route.gives}" if route.gives else ""
    unknown = " (handler not known)" if row is None else ""
    message = f"{way} → {name or '?'}{place}{unknown}{through}{typed} [{route.framework}]{say_doubt(route.status)}"
    details = RouteDetails(
        route.kind,
        route.framework,
        route.pattern,
        route.method,
        name,
        row.location.path if row is not None else "",
        row.location.start_line if row is not None else 0,
        row.file.name_symbol(row.document, row.number)[0] if row is not None else "",
        route.status,
        route.middleware,
        route.takes,
        route.gives,
    )
    confidence = 0.6 if route.status == "ambiguous" else 0.95
    return Finding(route.kind, message, location, confidence, confidence, details)


def _say_none(snapshot: Snapshot, known: int) -> Degraded:
    """Why nothing was found: no route is like that, or none of the frameworks that are known is used."""
    if known:
        return Degraded("routes", "info", "no_route", f"none of {known:,} routes is like that")
    languages = sorted(language for language in snapshot.files.count() if load_frameworks(language))
    if not languages:
        return Degraded("routes", "warning", "language", "no frameworks are known of the languages here")
    names = list(dict.fromkeys(each.name for language in languages for each in load_frameworks(language)))
    return Degraded("routes", "info", "no_framework", f"nothing here is put on a route of {', '.join(names)}")
