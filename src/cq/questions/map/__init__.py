"""The repository as a map: how large its modules are, which depend on which, in what cycles, what would break them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec

from cq.answers.options import Exclude, Include, Inside, Option, Options
from cq.answers.page import Page, count_tokens, take
from cq.answers.words import count
from cq.graph.cycles import find_breaks
from cq.graph.walk import find_cycles, rank
from cq.model.answer import (
    SCHEMA_VERSION,
    Answer,
    DependencyDetails,
    Finding,
    GraphEdge,
    Insight,
    ModuleDetails,
    Run,
    Section,
    Slice,
    Truncation,
)
from cq.model.location import Location
from cq.model.status import Degraded
from cq.questions.map.links import Arrow, find_arrows, locate_sites
from cq.questions.map.modules import Module, find_modules
from cq.snapshot.relations import linked

if TYPE_CHECKING:
    from cq.snapshot.snapshot import Snapshot

BY, SIZES, HEATS = ("dir", "file", "definition"), ("lines", "symbols"), ("rank", "churn", "fan-in", "fan-out")
_CERTAIN, _POSSIBLE = 0.95, 0.3
_MOST_DRAWN = 2000  # dependencies of an answer: pictures draw fewer


class MapOptions(Options, frozen=True):
    """`by` dir: what lies in the directory that is mapped, directories as a whole. By definition: what stands at the
    root of a file, with what is in it."""

    examples: ClassVar[str] = """\
  cq map                               the directories of a repository: sizes, dependencies, cycles
  cq map --in src/app --by file        the files of one part
  cq map --in src/app/db.py --by definition
  cq map --heat churn                  what changes most
  cq map --in src --format svg         a picture of what depends on what"""

    inside: Inside = ()
    include: Include = ()
    exclude: Exclude = ()
    by: Annotated[str, Option("dir (default), file or definition", metavar="|".join(BY), choices=BY)] = "dir"
    size: Annotated[
        str, Option("what is large: lines (default) or symbols", metavar="|".join(SIZES), choices=SIZES)
    ] = "lines"
    heat: Annotated[
        str, Option("what is hot: rank (default), churn, fan-in or fan-out", metavar="|".join(HEATS), choices=HEATS)
    ] = "rank"
    page: Annotated[Page, Option(page=("limit", "budget", "page", "all"), group="answer")] = Page(40)


@linked
def ask(snapshot: Snapshot, options: MapOptions) -> Answer:
    answer, _ = snapshot.remember(options, lambda: (_make_map(snapshot, options), {}))
    return answer


def _make_map(snapshot: Snapshot, options: MapOptions) -> Answer:
    options.page.check()
    modules = find_modules(snapshot, options.inside, options.include, options.exclude, options.by)
    arrows = find_arrows(snapshot.relations, modules)
    links: dict[str, dict[str, int]] = {}
    for (source, target), arrow in arrows.items():
        if arrow.certain:
            links.setdefault(source, {})[target] = sum(arrow.certain.values())
    cycles = find_cycles({source: list(targets) for source, targets in links.items()}, str)
    heats, events = _find_heats(snapshot, options.heat, modules.by_name, arrows)
    hottest = max(heats.values(), default=0) or 1
    fan_in, fan_out = Counter(target for _, target in arrows), Counter(source for source, _ in arrows)
    rows = sorted(modules.by_name.values(), key=lambda module: (-_measure(module, options.size), module.name))

    def make(module: Module) -> Finding:
        heat = heats.get(module.name, 0)
        details = ModuleDetails(
            module.name, module.kind, module.lines, module.symbols, module.files, fan_in[module.name],
            fan_out[module.name], module.inside, round(heat / hottest, 4), options.heat, round(heat, 6),
        )  # fmt: skip
        size = count(_measure(module, options.size), options.size.removesuffix("s"))
        files = f", {count(module.files, 'file')}" if module.kind == "directory" else ""
        ways = f"; used by {fan_in[module.name]:,}, uses {fan_out[module.name]:,}"
        is_whole = module.name == module.path
        where = None if is_whole else Location(module.path, 0, 0, module.line, 1, module.line, 1)
        name = module.name.removeprefix(f"{module.path}:")
        return Finding("module", f"{name}: {size}{files}{ways}", where, details=details, count=module.lines)

    shown, budget, cut = take(rows, options.page, make)
    sections = [Section("Modules", "modules", len(rows), tuple(shown))]
    sections += _describe_cycles(snapshot, cycles, links, arrows)
    ordered = sorted(arrows.items(), key=lambda item: (-item[1].total, item[0]))
    listed = ordered[: options.page.size] if options.page.size else ordered
    if len(listed) < len(ordered):
        omitted = len(ordered) - len(listed)
        cut.append(Truncation("dependencies", "limit", len(listed), len(ordered), omitted))
    findings = tuple(_describe_arrow(snapshot, *pair, arrow) for pair, arrow in listed)
    sections.append(Section("Dependencies", "dependencies", len(arrows), findings))
    sections = [section for section in sections if section.findings]
    slices = {
        "modules": Slice(len(rows), "modules"),
        "dependencies": Slice(len(arrows), "dependencies between them"),
        "cycles": Slice(len(cycles), "groups of modules that depend on each other"),
    }
    return Answer(
        SCHEMA_VERSION,
        "map",
        Run(generation=snapshot.files.generation),
        {
            "query": " ".join(options.inside) or ".", "by": options.by, "size": options.size, "heat": options.heat,
            "modules": len(rows), "dependencies": len(arrows), "cycles": len(cycles),
        },
        found=len(rows),
        insight=Insight(
            None, slices,
            budget=msgspec.structs.replace(budget, used=count_tokens(sections, options.page.measure) + 100),
        )
        if rows
        else None,
        sections=tuple(sections),
        degraded=events,
        truncated=tuple(cut),
        edges=tuple(
            GraphEdge(
                source, target, max(arrow.kinds, key=lambda kind: (arrow.kinds[kind], kind)),
                _CERTAIN if arrow.certain else _POSSIBLE, "resolved" if arrow.certain else "ambiguous",
            )
            for (source, target), arrow in ordered[:_MOST_DRAWN]
        ),
    )  # fmt: skip


def _measure(module: Module, size: str) -> int:
    return module.symbols if size == "symbols" else module.lines


def _find_heats(
    snapshot: Snapshot, heat: str, modules: dict[str, Module], arrows: dict[tuple[str, str], Arrow]
) -> tuple[dict[str, float], tuple[Degraded, ...]]:
    if heat in ("fan-in", "fan-out"):
        return dict(Counter(pair[heat == "fan-in"] for pair in arrows)), ()
    if heat == "rank":
        numbers = {name: number for number, name in enumerate(sorted(modules))}
        pairs = [(numbers[source], numbers[target]) for (source, target), arrow in arrows.items() if arrow.certain]
        return dict(zip(sorted(modules), rank(len(numbers), pairs), strict=True)), ()
    history = snapshot.read_history()
    commits = Counter(
        name for commit in history.commits for name in {_find_home(path, modules) for path in commit} if name
    )
    if history.note or not history.commits:
        said = history.note or "there are no commits to read"
        return {}, (Degraded("map", "warning", "history", f"nothing is known of changes: {said}"),)
    return dict(commits), ()


def _find_home(path: str, modules: dict[str, Module]) -> str:
    """The module a file lies in: itself, or the nearest directory; "" for one that is not mapped."""
    while path and path not in modules:
        path = path.rpartition("/")[0]
    return path


def _describe_cycles(
    snapshot: Snapshot,
    cycles: list[tuple[list[str], list[str]]],
    links: dict[str, dict[str, int]],
    arrows: dict[tuple[str, str], Arrow],
) -> list[Section]:
    """A group each: the links whose removal leaves no cycle."""
    sections: list[Section] = []
    for number, (group, way) in enumerate(cycles, 1):
        cut, is_fewest = find_breaks(group, links)
        rows = [_describe_arrow(snapshot, *pair, arrows[pair], "break") for pair in cut]
        shortest = " → ".join([*way, way[0]])
        fewest = "the fewest dependencies" if is_fewest else "dependencies, perhaps not the fewest,"
        note = f"{count(len(group), 'module')}; one way round: {shortest}; {fewest} without which there is none:"
        sections.append(Section(f"Cycle {number}", "cycle", len(group), tuple(rows), note=note))
    return sections


def _describe_arrow(
    snapshot: Snapshot, source: str, target: str, arrow: Arrow, category: str = "dependency"
) -> Finding:
    sites = locate_sites(snapshot.relations, arrow)
    certain, possible = (dict(sorted(kinds.items())) for kinds in (arrow.certain, arrow.possible))
    said = [f"{number:,} {kind}" for kind, number in sorted(certain.items(), key=lambda item: (-item[1], item[0]))]
    said += [f"{number:,} {kind} possible" for kind, number in sorted(possible.items())]
    details = DependencyDetails(source, target, certain, possible, sites, arrow.total)
    first = f" ({sites[0]})" if sites else ""
    return Finding(category, f"{source} → {target}: {', '.join(said)}{first}", details=details, count=arrow.total)
