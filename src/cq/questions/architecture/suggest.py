"""Rules that hold today, as TOML: to begin with, not to keep."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

from cq.graph.walk import find_cycles
from cq.questions.architecture.check import Tie

MAX_PARTS = 30


def suggest_rules(paths: Sequence[str], ties: Mapping[str, Mapping[str, Tie]]) -> str:
    """Layers of the parts right below the package that holds most of the code; those of one cycle side by side as one
    group. "" where there are fewer than two parts, or where all depend on all."""
    top = _find_top(paths)
    parts = {path: _find_part(path, top) for path in paths if path.startswith(top)}
    names = sorted({part for part in parts.values() if part})
    if not 2 <= len(names) <= MAX_PARTS:
        return ""
    links: dict[str, set[str]] = {name: set() for name in names}
    for source, targets in ties.items():
        for target in targets:
            one, two = parts.get(source, ""), parts.get(target, "")
            if one and two and one != two:
                links[one].add(two)
    tangled = [group for group, _ in find_cycles(links, str) if len(group) > 1]
    home = {name: f"{group[0]}-and-{len(group) - 1}-more" for group in tangled for name in group}
    members: dict[str, list[str]] = defaultdict(list)
    for name in names:
        members[home.get(name, name)].append(name)
    below: dict[str, set[str]] = {name: set() for name in members}
    for one in names:
        below[home.get(one, one)] |= {home.get(two, two) for two in links[one]} - {home.get(one, one)}
    heights = _find_heights(members, below)
    layers: dict[int, list[str]] = defaultdict(list)
    for name, height in heights.items():
        layers[height].append(name)
    label = {name: _clean(name) for name in members}
    lines = ["[architecture.groups]"]
    for name, held in sorted(members.items()):
        places = ", ".join(f'"{top}{each}"' for each in held)
        lines.append(f"{label[name]} = [{places}]")
    rows = [" | ".join(label[name] for name in sorted(layers[height])) for height in sorted(layers, reverse=True)]
    if len(rows) > 1 or "|" in rows[0]:
        lines += ["", "[[architecture.rules]]", 'id = "layers"', 'kind = "layers"']
        lines += ['reason = "as it was when the rule was written"', "types = false", "layers = ["]
        lines += [f'  "{row}",' for row in rows]
        lines.append("]")
    if not _has_cycle({path for path, part in parts.items() if part}, ties):
        listed = ", ".join(f'"{label[name]}"' for name in sorted(members))
        lines += ["", "[[architecture.rules]]", 'id = "no-cycles"', 'kind = "acyclic"', 'level = "directory"']
        lines += ["types = false", f"groups = [{listed}]"]
    return "\n".join(lines) + "\n" if "[[architecture.rules]]" in lines else ""


def _has_cycle(inside: Collection[str], ties: Mapping[str, Mapping[str, Tie]]) -> bool:
    """Whether the directories of these files depend on each other in a cycle."""
    links: dict[str, set[str]] = defaultdict(set)
    for source in inside:
        for target in ties.get(source, {}):
            ends = source.rpartition("/")[0], target.rpartition("/")[0]
            if target in inside and ends[0] != ends[1]:
                links[ends[0]].add(ends[1])
    return bool(find_cycles(links, str))


def _find_top(paths: Sequence[str]) -> str:
    """The directory whose parts are to be kept apart: where the way down from the root first branches in earnest."""
    top = ""
    while True:
        counts = Counter(
            path[len(top) :].partition("/")[0] for path in paths if path.startswith(top) and "/" in path[len(top) :]
        )
        total = sum(1 for path in paths if path.startswith(top))
        if not counts:
            return top
        name, most = counts.most_common(1)[0]
        if most < 0.9 * total:
            return top
        top += f"{name}/"


def _find_part(path: str, top: str) -> str:
    """The directory or module right below; what initializes the package itself is of none."""
    rest = path[len(top) :]
    return rest.partition("/")[0] if not rest.startswith(("__init__.", "__main__.", "index.", "mod.", "lib.")) else ""


def _find_heights(members: Mapping[str, Sequence[str]], links: Mapping[str, set[str]]) -> dict[str, int]:
    """How long the longest way down from each is; there are no cycles left."""
    heights: dict[str, int] = {}
    todo = sorted(members)
    while todo:
        ready = [name for name in todo if links[name] <= heights.keys()]
        for name in ready or todo[:1]:
            heights[name] = 1 + max((heights.get(two, 0) for two in links[name]), default=0)
        todo = [name for name in todo if name not in heights]
    return heights


def _clean(name: str) -> str:
    stem = name.rpartition(".")[0] or name if "." in name else name
    text = "".join(char if char.isalnum() or char in "_-" else "-" for char in stem)
    return text if text[:1].isalpha() or text[:1] == "_" else f"_{text}"
