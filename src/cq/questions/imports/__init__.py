"""Which file imports which: cycles whose every arrow is an import with its line, and what comes from outside."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec

from cq.answers.options import Option, Options, Paged
from cq.answers.page import Page, count_tokens, take
from cq.graph.walk import find_cycles
from cq.model.answer import SCHEMA_VERSION, Answer, Finding, GraphEdge, Insight, NodeDetails, Run, Section, Slice
from cq.snapshot.arrows import Arrow, find_arrows
from cq.snapshot.relations import Relations, linked
from cq.snapshot.target import find_part, module_name, say_nothing
from cq.source.role import find_role

if TYPE_CHECKING:
    from cq.snapshot.snapshot import Snapshot


class ImportsOptions(Options, frozen=True):
    """Of the whole tree, or of one module (`module`: a path, or its dotted name)."""

    examples: ClassVar[str] = """\
  cq imports                      the most imported files, cycles, packages from outside
  cq imports --cycles             only the cycles; nothing found is exit 1
  cq imports --module django.db   what one module imports, and who imports it"""

    module: Annotated[str, Option("of one module: a path, or its dotted name", metavar="M")] = ""
    cycles: Annotated[bool, Option("only files that import each other")] = False
    page: Paged = Page(40)


@linked
def ask(snapshot: Snapshot, options: ImportsOptions) -> Answer:
    relations = snapshot.relations
    options.page.check()
    arrows = find_arrows(relations)
    inside = [arrow for arrow in arrows if not arrow.external]
    links: dict[str, dict[str, Arrow]] = {}
    for arrow in sorted(inside, key=lambda arrow: arrow.type_only):  # of two that name one file, the one that runs
        links.setdefault(arrow.source, {}).setdefault(arrow.target, arrow)
    # What only a type checker follows closes no cycle at run time.
    running = {source: [t for t, arrow in targets.items() if not arrow.type_only] for source, targets in links.items()}
    cycles = find_cycles(running, str)
    outside = Counter(arrow.package for arrow in arrows if arrow.external)
    standard = {arrow.package for arrow in arrows if arrow.external and arrow.standard}
    if options.module:
        around = _find_around(relations, arrows, options.module)
        inside = [arrow for rows in around for arrow in rows if not arrow.external]
        sections, found = _of_module(*around), sum(map(len, around))
        if not found:
            return _say_nothing(relations, options.module, outside)
    else:
        sections, found = _of_tree(links, cycles, outside, standard, options.cycles)
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
        ),
    )


def _say_nothing(relations: Relations, module: str, outside: Collection[str]) -> Answer:
    paths = relations.paths()
    names = sorted({*paths, *map(module_name, paths), *outside})
    known = bool(find_part(relations.files, paths, module))
    message = (
        f"{module} imports nothing, and nothing here imports it" if known else f"no module is called {module!r} here"
    )
    near = [] if known else get_close_matches(module, names, n=3)
    answer = say_nothing(relations.files, "imports", module, message)
    return msgspec.structs.replace(answer, suggestions=tuple(near))


_SAID = {"imports": "imports", "imported_by": "imports of it"}


def _of_tree(
    links: dict[str, dict[str, Arrow]],
    cycles: list[tuple[list[str], list[str]]],
    outside: Counter[str],
    standard: set[str],
    only_cycles: bool,
) -> tuple[tuple[Section, ...], int]:
    sections: list[Section] = []
    for number, (group, way) in enumerate(cycles, 1):
        rows = [
            _describe(links[source][target], f"{source} imports {target}", "cycle")
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
    packages = [
        Finding(
            "package", f"{count} imports of {name}" + (" (standard library)" if name in standard else ""), count=count
        )
        for name, count in sorted(outside.items(), key=lambda item: (item[0] in standard, -item[1], item[0]))[:20]
    ]
    sections.append(Section("From Outside", "external", len(outside), tuple(packages)))
    return tuple(section for section in sections if section.findings), len(links) or len(outside)


def _find_around(relations: Relations, arrows: list[Arrow], module: str) -> tuple[list[Arrow], list[Arrow]]:
    """What a module imports, and what imports it."""
    linked = relations.paths()
    paths = {path for path in linked if module in (path, module_name(path))} or set(
        find_part(relations.files, linked, module)
    )
    importers = [a for a in arrows if a.target in paths or (a.external and module in _names(a))]
    return [a for a in arrows if a.source in paths], importers


def _names(arrow: Arrow) -> Iterator[str]:
    """`os`, `os.path` of `import os.path`; `@scope/name` and `@scope/name/inside` of the same."""
    yield from (arrow.package, arrow.target)
    for found in re.finditer(r"::|[./]", arrow.target):
        yield arrow.target[: found.start()]


def _of_module(imports: list[Arrow], importers: list[Arrow]) -> tuple[Section, ...]:
    return tuple(
        Section(title, title.lower().replace(" ", "_"), len(rows), tuple(rows))
        for title, rows in (
            ("Imports", [_describe(a, f"imports {a.target}") for a in imports]),
            ("Imported By", [_describe(a, f"{a.source} imports {a.target}") for a in importers]),
        )
        if rows
    )


def _describe(arrow: Arrow, message: str, category: str = "import") -> Finding:
    status = "external" if arrow.external else "resolved"
    details = NodeDetails(arrow.target, "module", find_role(arrow.source), 1, status, "imports")
    return Finding(category, f"{message} (types only)" if arrow.type_only else message, arrow.location, details=details)
