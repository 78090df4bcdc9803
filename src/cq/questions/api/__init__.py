"""What a package offers: every exported name with its declaration, how it is called here, and calls that cannot fit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec

from cq.answers.options import Option, Options, Paged
from cq.answers.page import Page, count_tokens, take
from cq.model.answer import SCHEMA_VERSION, Answer, ApiDetails, Finding, Insight, Run, Section, Slice
from cq.model.code import Site, Spread
from cq.model.edge import Candidate, Edge
from cq.model.errors import UsageError
from cq.model.status import Degraded
from cq.snapshot.exports import Offered, find_offered, order_names
from cq.snapshot.relations import Relations, linked
from cq.snapshot.signatures import check_call, find_indirection, find_parameters, passes_receiver, takes_receiver
from cq.snapshot.target import Definition, find_part, say_nothing
from cq.source.role import find_role

if TYPE_CHECKING:
    from cq.snapshot.snapshot import Snapshot

MAX_SITES = 200  # calls of one name that are looked at
MAX_WARNINGS = 5  # of one name
MAX_SHAPES = 6


class ApiOptions(Options, frozen=True):
    """Of a package, a directory or a file; of everything where none is named."""

    examples: ClassVar[str] = """\
  cq api                           what the repository offers, the shortest names first
  cq api src/shop                  one package
  cq api shop.orders --unused      what it offers and nothing here uses
  cq api --only-exports            names and declarations, without how they are called
  cq api --fail-on-warn            exit 3 where a call cannot fit"""

    part: Annotated[
        str, Option("a package, a directory or a file (default: all)", "", "PATH|PACKAGE", argument=True, place="part")
    ] = ""
    only_exports: Annotated[bool, Option("names and declarations alone")] = False
    unused: Annotated[bool, Option("only what nothing in the repository uses, tests aside")] = False
    page: Paged = Page(60)

    def check(self) -> None:
        self.page.check()
        if self.only_exports and self.unused:
            raise UsageError("--only-exports does not look at uses, --unused does", hint="leave one of them out")


class _Use(msgspec.Struct, frozen=True):
    """How a name is used here."""

    calls: int = 0
    sampled: int = 0
    shapes: tuple[tuple[str, int], ...] = ()
    users: int = 0  # files outside of tests, its own left out
    tests: int = 0
    warnings: tuple[tuple[str, str], ...] = ()  # where, why


@linked
def ask(snapshot: Snapshot, options: ApiOptions) -> Answer:
    """Names first that are shortest; a definition stands under the shortest of its names."""
    options.check()
    relations = snapshot.relations
    paths = set(find_part(relations.files, relations.paths(), options.part) if options.part else relations.paths())
    if not paths:
        return say_nothing(
            relations.files, "api", options.part, f"no package, directory or file is {options.part!r} here"
        )
    named = order_names(find_offered(relations, paths))
    rows = list(named.values())
    uses: dict[tuple[str, int, int], _Use] = {}
    if not options.only_exports:
        uses = {row[0].row.key: _find_use(relations, row[0].row) for row in rows}
    if options.unused:
        rows = [row for row in rows if not uses[row[0].row.key].users]
    warned = [row for row in rows if uses.get(row[0].row.key, _Use()).warnings]
    shown, budget, cut = take(rows, options.page, lambda row: _describe(relations, row, uses.get(row[0].row.key)))
    warnings = [finding for row in warned for finding in _warn(relations, row, uses[row[0].row.key])]
    sections = tuple(
        section
        for section in (
            Section("Calls That Cannot Fit", "warnings", len(warnings), tuple(warnings[: options.page.size or None])),
            Section("Unused" if options.unused else "Exports", "exports", len(rows), tuple(shown)),
        )
        if section.findings
    )
    slices = {"exports": Slice(len(rows), "exported names" + (" that nothing uses" if options.unused else ""))}
    deprecated = sum(1 for row in rows if _find_deprecation(row[0].row))
    slices |= {"deprecated": Slice(deprecated, "deprecated")} if deprecated else {}
    slices |= {"warnings": Slice(len(warnings), "calls that cannot fit")} if warnings else {}
    budget = msgspec.structs.replace(budget, used=count_tokens(sections, options.page.measure) + 100)
    return Answer(
        SCHEMA_VERSION,
        "api",
        Run(generation=relations.files.generation),
        {"query": options.part or "api", "exports": len(named), "warnings": len(warnings)},
        found=len(rows),
        insight=Insight(None, slices, budget=budget) if rows else None,
        sections=sections,
        degraded=()
        if rows
        else (
            Degraded("api", "info", "nothing", "everything that is offered is used" if named else "it offers nothing"),
        ),
        truncated=tuple(cut),
    )


def _find_use(relations: Relations, row: Definition) -> _Use:
    place = relations.named(row)
    edges = [*relations.referrers.find_into(place, possible=False)]
    edges += [edge for edge in relations.usages.find_usages_into(place, edges)]
    sure = [edge for edge in edges if edge.ref.resolved == place]
    own = row.file.path
    users = {edge.source.path for edge in sure if edge.source.path != own and edge.kind != "imports"}
    users |= {
        edge.source.path for edge in sure if edge.kind == "imports" and not edge.source.path.endswith("__init__.py")
    } - {own}
    tests = {path for path in users if find_role(path) in ("test", "doc")}
    sites = [edge for edge in sure if edge.call >= 0 and edge.kind in ("calls", "instantiates")]
    shapes: Counter[str] = Counter()
    warnings: list[tuple[str, str]] = []
    maker = _find_maker(relations, row)
    for edge in sites[:MAX_SITES]:
        site = relations.documents.find_site(edge.source.path, edge.source.document, edge.call)
        if site is None or site.kind == "decorator":
            continue
        shapes[_name_shape(site)] += 1
        why = _find_misfit(relations, row, maker, edge, site)
        if why and len(warnings) < MAX_WARNINGS:
            warnings.append((relations.place(edge), why))
    if row.symbol.kind_group == "value" and not users:
        users = {
            file.path
            for file in relations.files.users(row.symbol.name)
            if file.path != own and relations.is_named_in(file.path, row)
        }
        tests = {path for path in users if find_role(path) in ("test", "doc")}
    return _Use(
        len(sites), min(len(sites), MAX_SITES), tuple(shapes.most_common(MAX_SHAPES)), len(users - tests), len(tests),
        tuple(warnings),
    )  # fmt: skip


def _name_shape(site: Site) -> str:
    """`f(2, key, *)`: how many arguments by place, which by keyword, and spreads."""
    count = sum(not isinstance(value, Spread) for value in site.args)
    parts = [str(count)] if count else []
    parts += sorted(name for name, _ in site.keywords if name != "**")
    parts += ["*"] if any(isinstance(value, Spread) for value in site.args) else []
    parts += ["**"] if any(name == "**" for name, _ in site.keywords) else []
    return f"({', '.join(parts)})"


def _find_maker(relations: Relations, row: Definition) -> Definition | None:
    """What a call runs: the function itself, or the one constructor that a class defines."""
    if row.symbol.kind_group in ("function", "method"):
        return None if _is_overloaded(row) else row
    if row.symbol.kind_group != "class":
        return None
    made = [
        Definition(row.file, row.document, number)
        for number, symbol in enumerate(row.siblings)
        if symbol.parent == row.number and symbol.kind == "constructor"
    ]
    return made[0] if len(made) == 1 and made[0].symbol.name == "__init__" and not row.symbol.decorators else None


def _is_overloaded(row: Definition) -> bool:
    same = [symbol for symbol in row.siblings if symbol.qualified_name == row.symbol.qualified_name]
    return len(same) > 1 or bool(row.symbol.decorators)


def _find_misfit(relations: Relations, row: Definition, maker: Definition | None, edge: Edge, site: Site) -> str:
    """Why a call that surely means it cannot fit; "" where it fits, or nobody knows."""
    call = relations.call(edge)
    parameters = find_parameters(relations, maker) if maker is not None else None
    if maker is None or parameters is None or call is None or edge.ref.certainty != "certain":
        return ""
    node: Candidate = relations.node(row)
    if maker is row and find_indirection(relations, row, edge, call, node):
        return ""
    if maker is not row and (edge.kind != "instantiates" or call.name != row.symbol.name):
        return ""
    bound = maker is not row or (takes_receiver(row) and not passes_receiver(relations, row, edge, call))
    verdict, reason = check_call(site, parameters, parameters, bound=bound)
    return reason if verdict == "breaks" else ""


_DEPRECATED = re.compile(
    r"@deprecated|^\s*\.\. deprecated::|\bdeprecated (?:since|in favou?r)", re.IGNORECASE | re.MULTILINE
)


def _find_deprecation(row: Definition) -> str:
    """What says that a definition is on its way out."""
    for mark in row.symbol.decorators:
        if re.match(r"(?:[\w.]*\.)?(?:deprecat\w*|Deprecated|Obsolete)\b", mark):
            return mark
    found = _DEPRECATED.search(row.symbol.doc)
    if found is not None:
        return row.symbol.doc[found.start() :].splitlines()[0].strip()[:200]
    body = row.file.text[row.symbol.body_start : row.symbol.body_end] if row.symbol.body_start >= 0 else b""
    if row.symbol.kind_group in ("function", "method") and re.search(
        rb"\bPending?DeprecationWarning\b|\bDeprecationWarning\b", body[:600]
    ):
        return "warns of its deprecation"
    return ""


def _describe(relations: Relations, names: Sequence[Offered], use: _Use | None) -> Finding:
    first, row = names[0], names[0].row
    symbol = row.symbol
    deprecated = _find_deprecation(row)
    shapes = {shape: count for shape, count in use.shapes} if use is not None else {}
    parts = [f"{symbol.kind} {first.public}"]
    if symbol.signature and symbol.kind_group in ("function", "method", "class"):
        parts.append(" ".join(symbol.signature.split())[:160])
    if use is not None:
        many = f"{use.sampled} of {use.calls} looked at: " if use.sampled < use.calls else ""
        called = ", ".join(f"{shape} {count}x" for shape, count in use.shapes[:3])
        parts.append(f"{many}called {called}" if called else "")
        parts.append(f"used in {use.users} files" + (f" and {use.tests} of tests" if use.tests else ""))
    parts.append(f"deprecated: {deprecated}" if deprecated else "")
    also = tuple(each.public for each in names[1:6])
    parts.append(f"also {', '.join(also)}" if also else "")
    details = ApiDetails(
        first.public,
        symbol.kind,
        first.how,
        symbol.signature,
        row.file.name_symbol(row.document, row.number)[0],
        also,
        deprecated,
        use.calls if use is not None else 0,
        use.sampled if use is not None else 0,
        shapes,
        use.users if use is not None else 0,
        use.tests if use is not None else 0,
    )
    return Finding("export", "; ".join(part for part in parts if part), row.location, 1.0, 0.95, details)


def _warn(relations: Relations, names: Sequence[Offered], use: _Use) -> list[Finding]:
    found: list[Finding] = []
    for place, why in use.warnings:
        path, _, line = place.rpartition(":")
        held = relations.hold(path)
        start = held.lines.offset(int(line), 1) if held is not None and line.isdigit() else 0
        location = held.locate(start, start) if held is not None else None
        text = held.lines.text(int(line)).strip() if held is not None and line.isdigit() else b""
        said = text if isinstance(text, str) else text.decode("utf-8", "replace")
        details = ApiDetails(names[0].public, names[0].row.symbol.kind, names[0].how, warning=why)
        found.append(Finding("warning", f"{names[0].public}: {why}: {said[:120]}", location, 1.0, 0.95, details))
    return found
