"""Which file imports which: cycles whose every arrow is an import with its line, and what comes from outside."""

from __future__ import annotations

import re
import sys
from collections import Counter

import msgspec

from cq.features.page import Page, count_tokens, take
from cq.features.relations import Relations
from cq.features.target import find_part, module_name
from cq.graph.walk import find_cycles
from cq.model.answer import SCHEMA_VERSION, Answer, Finding, GraphEdge, Insight, Run, Section, Slice
from cq.model.location import Location


class ImportsOptions(msgspec.Struct, frozen=True):
    """Of the whole tree, or of one module (`module`: a path, or its dotted name)."""

    module: str = ""
    cycles: bool = False
    page: Page = Page(40)


class _Arrow(msgspec.Struct, frozen=True):
    source: str
    target: str  # a path, or the name of a module from outside
    location: Location
    external: bool
    type_only: bool


def find_imports(relations: Relations, options: ImportsOptions) -> Answer:
    options.page.check()
    arrows = _find_arrows(relations)
    inside = [arrow for arrow in arrows if not arrow.external]
    links: dict[str, dict[str, _Arrow]] = {}
    for arrow in inside:
        links.setdefault(arrow.source, {}).setdefault(arrow.target, arrow)
    # What only a type checker follows closes no cycle at run time.
    running = {source: [t for t, arrow in targets.items() if not arrow.type_only] for source, targets in links.items()}
    cycles = find_cycles(running, str)
    outside = Counter(arrow.target.partition(".")[0] for arrow in arrows if arrow.external)
    if options.module:
        rows = _of_module(relations, arrows, options.module)
        sections, found = rows, sum(len(section.findings) for section in rows)
    else:
        sections, found = _of_tree(links, cycles, outside, options.cycles)
    whole = sections
    shown, budget, cut = take(
        [f for section in sections for f in section.findings], options.page, lambda finding: finding
    )
    kept = set(map(id, shown))
    sections = tuple(
        msgspec.structs.replace(section, findings=findings)
        for section in sections
        if (findings := tuple(finding for finding in section.findings if id(finding) in kept))
    )
    slices = {
        "files": Slice(len(links), "files that import others here"),
        "cycles": Slice(len(cycles), "groups of files that import each other"),
        "external": Slice(len(outside), "packages from outside"),
    }
    if options.cycles:
        slices = {"cycles": slices["cycles"]}
    if options.module:
        slices = {section.kind: Slice(section.total, _SAID[section.kind]) for section in whole}
    budget = msgspec.structs.replace(budget, used=count_tokens(sections, options.page.measure) + 100)
    return Answer(
        SCHEMA_VERSION,
        "imports",
        Run(generation=relations.files.generation),
        {
            "query": options.module or ("cycles of imports" if options.cycles else "imports"),
            "arrows": len(inside),
            "cycles": len(cycles),
            "external": len(outside),
        },
        found=found,
        insight=Insight(None, slices, budget=budget) if found else None,
        sections=sections,
        truncated=tuple(cut),
        edges=tuple(
            GraphEdge(
                arrow.source, arrow.target, "imports", 1.0, "resolved", f"{arrow.source}:{arrow.location.start_line}"
            )
            for arrow in inside
            if not options.module or options.module in (arrow.source, arrow.target)
        ),
    )


_SAID = {"imports": "imports", "imported_by": "imports of it"}


def _find_arrows(relations: Relations) -> list[_Arrow]:
    arrows: list[_Arrow] = []
    for path in relations.paths():
        held = relations.hold(path)
        if held is None:
            continue
        for document, links in enumerate(relations.links(path)):
            if links is None:
                continue
            meant = {name: links.refs[number] for name, number in links.imports}
            for item in held.imports[document][0]:
                where = held.locate(item.start, item.end)
                typed = item.type_only or _is_for_types(held.text, item.start)
                seen: set[tuple[str, bool]] = set()
                for bound in item.bindings:
                    ref = meant.get(bound.local)
                    if ref is None:
                        continue
                    names = {(place.path, False) for place in ref.candidates if place.path != path}
                    if ref.status == "external" and ref.module:
                        names.add((ref.module, True))
                    for name, external in sorted(names - seen):
                        seen.add((name, external))
                        arrows.append(_Arrow(path, name, where, external, typed or bound.type_only))
    return arrows


_TYPE_CHECKING = re.compile(rb"[ \t]*if[ \t]+(?:typing\.|t\.)?TYPE_CHECKING[ \t]*:")


def _is_for_types(text: bytes, start: int) -> bool:
    """Whether a Python import stands below `if TYPE_CHECKING:`."""
    begin = text.rfind(b"\n", 0, start) + 1
    indent = start - begin
    while indent and begin:
        line_end, begin = begin, text.rfind(b"\n", 0, begin - 1) + 1
        line = text[begin:line_end]
        depth = len(line) - len(line.lstrip(b" \t"))
        if line.strip() and depth < indent:
            return _TYPE_CHECKING.match(line) is not None
    return False


def _of_tree(
    links: dict[str, dict[str, _Arrow]],
    cycles: list[tuple[list[str], list[str]]],
    outside: Counter[str],
    only_cycles: bool,
) -> tuple[tuple[Section, ...], int]:
    sections: list[Section] = []
    for number, (group, way) in enumerate(cycles, 1):
        rows = [
            Finding("cycle", f"{source} imports {target}", links[source][target].location)
            for source, target in zip(way, [*way[1:], way[0]], strict=True)
        ]
        more = f"one way round; {len(group)} files import each other" if len(group) > len(way) else ""
        sections.append(Section(f"Cycle {number}", "cycle", len(way), tuple(rows), note=more))
    if only_cycles:
        return tuple(sections), len(cycles)
    importers = Counter(target for targets in links.values() for target in targets)
    rows = [
        Finding("file", f"{count} files import {path}", count=count)
        for path, count in sorted(importers.items(), key=lambda item: (-item[1], item[0]))[:10]
    ]
    sections.insert(0, Section("Most Imported", "importers", len(importers), tuple(rows)))
    standard = sys.stdlib_module_names
    packages = [
        Finding(
            "package", f"{count} imports of {name}" + (" (standard library)" if name in standard else ""), count=count
        )
        for name, count in sorted(outside.items(), key=lambda item: (item[0] in standard, -item[1], item[0]))[:20]
    ]
    sections.append(Section("From Outside", "external", len(outside), tuple(packages)))
    return tuple(section for section in sections if section.findings), len(links) or len(outside)


def _of_module(relations: Relations, arrows: list[_Arrow], module: str) -> tuple[Section, ...]:
    linked = relations.paths()
    paths = {path for path in linked if module in (path, module_name(path))} or set(
        find_part(relations.files, linked, module)
    )
    imports = [a for a in arrows if a.source in paths]
    importers = [a for a in arrows if a.target in paths or (a.external and (a.target + ".").startswith(module + "."))]
    return tuple(
        Section(title, title.lower().replace(" ", "_"), len(rows), tuple(rows))
        for title, rows in (
            ("Imports", [Finding("import", f"imports {a.target}", a.location) for a in imports]),
            ("Imported By", [Finding("import", f"{a.source} imports {a.target}", a.location) for a in importers]),
        )
        if rows
    )
