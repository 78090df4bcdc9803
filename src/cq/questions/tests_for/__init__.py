"""Which tests to run after a change: those that reach it, the likeliest to fail first."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec

from cq.answers.edges import Least
from cq.answers.options import Option, Options, Paged
from cq.answers.page import Page, count_tokens, take
from cq.answers.unlinked import note_unlinked
from cq.model.answer import SCHEMA_VERSION, Answer, Finding, Insight, Run, Section, Slice, TestDetails, Truncation
from cq.model.errors import UsageError
from cq.model.status import Degraded
from cq.questions.tests_for.ranking import Ranked, find_tests
from cq.snapshot.changes import find_changed, find_changes, find_defined
from cq.snapshot.relations import Relations, check_walk, linked, say_doubt
from cq.snapshot.target import Definition, describe_target, find_file, find_part, find_targets, say_nothing

if TYPE_CHECKING:
    from cq.snapshot.snapshot import Snapshot

MAX_DEFINED = 50  # definitions of a path or of a change whose tests are looked for
MAX_NAMED = 3  # definitions whose calls that no link knows are told
_BY = ("links", "class", "file")


class TestsForOptions(Options, frozen=True):
    """Of targets (a path or module is all that it defines), or of the definitions that changed lines belong to."""

    __test__ = False

    examples: ClassVar[str] = """\
  cq tests-for QuerySet.get                    which tests run it, the likeliest to fail first
  cq tests-for --changed main                  of what differs from a branch
  pytest $(cq tests-for --changed --format pytest)
  cq tests-for src/app.py --untested           what no test reaches"""

    targets: Annotated[
        tuple[str, ...],
        Option("a definition, a path or a module", "target", "TARGET", argument=True, place="part"),
    ] = ()
    since: Annotated[
        str | None, Option("what differs from REV (default: HEAD)", "changed", metavar="REV", bare="HEAD")
    ] = None
    untested: Annotated[bool, Option("list the definitions that no test reaches")] = False
    depth: Annotated[int, Option("how many steps (default: 6)", metavar="N")] = 6
    least: Least = 0.0
    page: Paged = Page(20)

    def check(self) -> None:
        if not self.targets and self.since is None:
            raise UsageError("tests of what?", hint="give a TARGET, or --changed for what differs from the last commit")
        self.page.check()
        check_walk(self.depth, (), self.least)


@linked
def ask(snapshot: Snapshot, options: TestsForOptions) -> Answer:
    """By how near and certain the way from a test is, and by names and places."""
    relations = snapshot.relations
    options.check()
    changes = find_changes(snapshot, options.since) if options.since is not None else {}
    rows, _ = find_changed(relations, changes)
    twins: list[Definition] = []
    parts: list[str] = []
    for text in options.targets:
        twins = [] if find_file(relations.files, text) else find_targets(relations.files, text)
        part = [] if twins else find_part(relations.files, relations.paths(), text)
        if not twins and not part:
            return say_nothing(relations.files, "tests-for", text)
        rows += twins[:1]
        parts += part
    rows += find_defined(relations, parts)
    chosen = rows[:MAX_DEFINED]
    query = ", ".join(options.targets) or "changed lines"
    run = Run(generation=relations.files.generation)
    if not chosen:
        said = f"nothing that differs from {options.since} is code" if not parts else f"{query} defines nothing"
        event = Degraded("tests-for", "info", "changed", said)
        return Answer(SCHEMA_VERSION, "tests-for", run, {"query": query}, degraded=(event,))
    if options.untested:
        return _find_untested(relations, options, query, chosen, rows)
    found = find_tests(relations, chosen, depth=options.depth, least=options.least)
    shown, budget, cut = take(found.tests, options.page, lambda each: _describe(relations, each))
    by = Counter(_BY[each.around] if each.reached is not None else "name" for each in found.tests)
    files, named = {each.test.path for each in found.tests}, len(found.tests) - found.reached
    slices = {"tests": Slice(found.reached, f"tests reach it within {options.depth} calls")}
    slices |= {"nearby": Slice(named, "tests of what is around it, or called like it")} if named else {}
    slices |= {"files": Slice(len(files), "files of tests")}
    sections = (Section("Tests", "tests", len(found.tests), tuple(shown)),) if shown else ()
    events = () if found.reached else (_say_missing(query),)
    return Answer(
        SCHEMA_VERSION,
        "tests-for",
        run,
        {"query": query, "definitions": len(rows), "depth": options.depth, "by": dict(sorted(by.items()))},
        found=len(found.tests),
        insight=Insight(
            describe_target(twins) if len(rows) == 1 and twins else None,
            slices,
            budget=msgspec.structs.replace(budget, used=count_tokens(sections, options.page.measure) + 150),
        ),
        sections=sections,
        degraded=(*events, *note_unlinked(relations, "tests-for", rows[:MAX_NAMED])),
        truncated=(*_cut(rows), *found.truncated, *cut),
    )


def _find_untested(
    relations: Relations, options: TestsForOptions, query: str, chosen: list[Definition], rows: list[Definition]
) -> Answer:
    """Which of the definitions no test reaches by links; a property of links, not a proof that nothing runs them."""
    code = [row for row in chosen if row.file.role != "test" and row.symbol.kind_group in ("function", "method")]
    lost = [
        row
        for row in code
        if not find_tests(relations, [row], depth=options.depth, least=options.least, widens=False).reached
    ]
    shown, budget, cut = take(lost, options.page, _describe_untested)
    sections = (Section("Untested", "untested", len(lost), tuple(shown)),) if shown else ()
    return Answer(
        SCHEMA_VERSION,
        "tests-for",
        Run(generation=relations.files.generation),
        {"query": query, "definitions": len(code), "depth": options.depth},
        found=len(lost),
        insight=Insight(
            None,
            {"untested": Slice(len(lost), f"of {len(code)} functions are reached by no test")},
            budget=msgspec.structs.replace(budget, used=count_tokens(sections, options.page.measure) + 150),
        ),
        sections=sections,
        truncated=(*_cut(rows), *cut),
    )


def _describe(relations: Relations, each: Ranked) -> Finding:
    test, item = each.test, each.reached
    held = relations.hold(test.path)
    location = held.locate(test.start, test.start + 1) if held is not None else None
    if item is None:
        details = TestDetails(test.name, test.runner, test.argument, "name")
        return Finding("test", f"{test.name} (by its name)", location, each.score, 0.0, details)
    if not item.path:  # the test itself is what is asked about
        details = TestDetails(test.name, test.runner, test.argument, "links", 0, "resolved")
        return Finding("test", f"{test.name} (is itself a test)", location, each.score, item.confidence, details)
    statuses = {link.status for link in item.path}
    status = next((status for status in ("unresolved", "ambiguous") if status in statuses), "resolved")
    first = item.path[0]
    by = _BY[each.around]
    what = "it" if by == "links" else f"its {by}"
    steps = "" if item.distance == 1 else f", {item.distance} calls"
    message = f"{test.name} (reaches {what} at {relations.place(first)}{steps}{say_doubt(status)})"
    details = TestDetails(
        test.name, test.runner, test.argument, by, item.distance, status, relations.say_path(item.path)
    )
    return Finding("test", message, location, each.score, item.confidence, details)


def _describe_untested(row: Definition) -> Finding:
    return Finding("untested", f"{row.symbol.kind} {row.symbol.qualified_name}", row.location)


def _say_missing(query: str) -> Degraded:
    message = f"no test is linked to {query}: these are called like it, or test what is around it"
    return Degraded("tests-for", "warning", "GRAPH_MISSING", message)


def _cut(rows: list[Definition]) -> list[Truncation]:
    over = len(rows) - MAX_DEFINED
    return [Truncation("tests-for", "definitions", MAX_DEFINED, len(rows), over)] if over > 0 else []
