"""What a change can break: all that depends on a definition."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cq.features.graph import describe_link, describe_target, find_centers, walk_from
from cq.features.page import Page, count_tokens, take
from cq.features.relations import KINDS, Relations, check_walk
from cq.features.target import Definition, find_file, find_part, find_targets, say_nothing
from cq.model.answer import SCHEMA_VERSION, Answer, Finding, Insight, NodeDetails, Risk, Run, Section, Slice, Truncation
from cq.model.edge import Candidate
from cq.source.role import find_role

MAX_DEFINED = 50  # definitions of a path or module that are followed


class ImpactOptions(msgspec.Struct, frozen=True):
    """Of targets (a path or module is all that it defines), or of the definitions that changed lines belong to
    (`changed`: path -> lines)."""

    targets: tuple[str, ...] = ()
    changed: dict[str, tuple[int, ...]] = {}
    depth: int = 3
    edges: tuple[str, ...] = KINDS
    least: float = 0.0
    page: Page = Page(40)

    def check(self) -> None:
        self.page.check()
        check_walk(self.depth, self.edges, self.least)


def find_impact(relations: Relations, options: ImpactOptions) -> Answer:
    """By distance, then confidence, with one witness path each; tests apart, since they are to be run."""
    options.check()
    rows = _find_changed(relations, options.changed)
    parts: list[str] = []  # files that are targets as a whole
    for text in options.targets:
        found = [] if find_file(relations.files, text) else find_targets(relations.files, text)[:1]
        part = [] if found else find_part(relations.files, relations.paths(), text)
        if not found and not part:
            return say_nothing(relations.files, "impact", text)
        rows += found
        parts += part
    defined = _find_defined(relations, parts)
    rows += defined[:MAX_DEFINED]
    if not rows and not parts:
        return Answer(
            SCHEMA_VERSION, "impact", Run(generation=relations.files.generation), {"query": "nothing changed"}
        )
    centers = [*find_centers(relations, rows), *(Candidate(path, 0, "") for path in parts[:MAX_DEFINED])]
    found = walk_from(relations, centers, "dependents", options.depth, options.edges, options.least)
    inside = set(parts)
    reached = [item for item in found.nodes if item.distance and item.node.path not in inside]
    reached.sort(key=lambda item: (find_role(item.node.path) == "test", item.distance, -item.confidence, item.node))
    shown, budget, cut = take(reached, options.page, relations.describe)
    tests = [
        finding for finding in shown if isinstance(finding.details, NodeDetails) and finding.details.role == "test"
    ]
    code = [finding for finding in shown if finding not in tests]
    in_tests = sum(1 for item in reached if find_role(item.node.path) == "test")
    sections = tuple(
        section
        for section in (
            Section("Changed", "changed", len(rows), tuple(map(_describe_row, rows[:10]))),
            Section("Dependents", "dependents", len(reached) - in_tests, tuple(code)),
            Section("Tests", "tests", in_tests, tuple(tests)),
        )
        if section.findings
    )
    files = {item.node.path for item in reached}
    direct = sum(1 for item in reached if item.distance == 1)
    drivers = [f"{direct} direct dependents"] if direct else []
    drivers += [f"{len(files)} files"] if len(files) > 5 else []
    drivers += ["no test is known to reach it"] if not in_tests else []
    level = "high" if direct > 20 or len(files) > 20 else "medium" if direct > 3 or not in_tests else "low"
    return Answer(
        SCHEMA_VERSION,
        "impact",
        Run(generation=relations.files.generation),
        {"query": ", ".join(options.targets) or "changed lines", "definitions": len(rows), "depth": options.depth},
        found=len(reached),
        insight=Insight(
            describe_target(rows) if rows and not parts else None,
            {
                "dependents": Slice(len(reached), f"definitions within {options.depth}"),
                "files": Slice(len(files), "files"),
            },
            Risk(level, tuple(drivers), {"direct": direct, "dependents": len(reached), "tests": in_tests}),
            budget=msgspec.structs.replace(budget, used=count_tokens(sections, options.page.measure) + 150),
        ),
        sections=sections,
        truncated=(*_cut_defined(len(defined)), *found.truncated, *cut),
        edges=tuple(describe_link(relations, link) for link in found.links),
    )


def _find_changed(relations: Relations, changed: dict[str, tuple[int, ...]]) -> list[Definition]:
    """The innermost definition of every changed line; lines at root level belong to none."""
    found: dict[tuple[str, int, int], Definition] = {}
    for path in sorted(changed):
        held = relations.hold(path)
        if held is None:
            continue
        for line in changed[path]:
            offset = held.lines.offset(line)
            inside = [
                Definition(held, document, number)
                for document, symbols in enumerate(held.symbols)
                for number, symbol in enumerate(symbols)
                if symbol.body_start >= 0 and held.lines.line(symbol.start) <= line and offset < symbol.end
            ]
            if inside:
                found[inside[-1].key] = inside[-1]
    return list(found.values())


def _find_defined(relations: Relations, paths: Sequence[str]) -> list[Definition]:
    """What files define at root level, what others are meant to use first."""
    found: list[Definition] = []
    for path in paths:
        held = relations.hold(path)
        for document, symbols in enumerate(held.symbols if held is not None else ()):
            rows = [number for number, symbol in enumerate(symbols) if symbol.parent < 0 and symbol.body_start >= 0]
            found += [Definition(held, document, number) for number in rows if held is not None]
    return sorted(found, key=lambda row: (row.file.role == "test", row.symbol.name.startswith("_"), row.key))


def _cut_defined(count: int) -> list[Truncation]:
    over = count - MAX_DEFINED
    return [Truncation("impact", "definitions", MAX_DEFINED, count, over)] if over > 0 else []


def _describe_row(row: Definition) -> Finding:
    return Finding("changed", f"{row.symbol.kind} {row.symbol.qualified_name}", row.location)
