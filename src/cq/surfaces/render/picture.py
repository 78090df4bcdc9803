"""A graph as a picture: Mermaid, DOT, or SVG drawn in layers. Labels are escaped, never read as markup."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from cq.model.answer import GraphEdge
from cq.surfaces.render import one_line, show_path

MAX_DRAWN = 300  # edges; beyond that a picture says nothing


class Picture:
    """Labels by number, and edges between them; dashed ones are only possible."""

    def __init__(self, pairs: Sequence[tuple[str, str, bool]]) -> None:
        names = dict.fromkeys(name for source, target, _ in pairs for name in (source, target))
        self.names = list(names)
        self.labels = [show_path(one_line(name)) for name in names]
        numbers = {name: number for number, name in enumerate(names)}
        kept: dict[tuple[int, int], bool] = {}
        for source, target, dashed in pairs[:MAX_DRAWN]:
            key = (numbers[source], numbers[target])
            kept[key] = kept.get(key, True) and dashed
        self.edges = [(source, target, dashed) for (source, target), dashed in kept.items()]


def draw(edges: Sequence[GraphEdge], form: str) -> str:
    """What depends on what: an arrow leads from the dependent to what it depends on."""
    return draw_pairs([(edge.source, edge.target, edge.status != "resolved") for edge in edges], form)


def draw_graph(edges: Sequence[GraphEdge], link: Callable[[str], str]) -> str:
    """As SVG, every node a link to the address that `link` gives of its name."""
    return draw_svg(Picture([(edge.source, edge.target, edge.status != "resolved") for edge in edges]), link)


def draw_pairs(pairs: Sequence[tuple[str, str, bool]], form: str) -> str:
    """(source, target, dashed) each."""
    picture = Picture(pairs)
    return {"mermaid": draw_mermaid, "dot": draw_dot, "svg": draw_svg}[form](picture)


def draw_mermaid(picture: Picture) -> str:
    lines = [f'  n{number}["{_quote(label)}"]' for number, label in enumerate(picture.labels)]
    lines += [f"  n{source} {'-.->' if dashed else '-->'} n{target}" for source, target, dashed in picture.edges]
    return "\n".join(["flowchart LR", *lines]) + "\n"


def draw_dot(picture: Picture) -> str:
    labels = [label.replace("\\", "\\\\").replace('"', '\\"') for label in picture.labels]
    lines = [f'  n{number} [label="{label}", shape=box];' for number, label in enumerate(labels)]
    styles = [" [style=dashed]" if dashed else "" for _, _, dashed in picture.edges]
    lines += [f"  n{s} -> n{t}{style};" for (s, t, _), style in zip(picture.edges, styles, strict=True)]
    return "\n".join(["digraph cq {", "  rankdir=LR;", *lines, "}"]) + "\n"


def draw_svg(picture: Picture, link: Callable[[str], str] | None = None) -> str:
    """Layers from left to right by distance from what depends on nothing drawn."""
    layers = _find_layers(len(picture.labels), picture.edges)
    rows: dict[int, int] = {}
    places: list[tuple[int, int]] = []
    for layer in layers:
        places.append((layer, rows.get(layer, 0)))
        rows[layer] = rows.get(layer, 0) + 1
    width = 20 + 320 * (max(layers, default=0) + 1)
    height = 20 + 44 * max(rows.values(), default=1)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        ' font-family="monospace" font-size="11">',
        '<defs><marker id="a" markerWidth="8" markerHeight="8" refX="7" refY="3" orient="auto">'
        '<path d="M0,0 L7,3 L0,6 z"/></marker></defs>',
    ]
    for source, target, dashed in picture.edges:
        (x1, y1), (x2, y2) = (_point(places[number]) for number in (source, target))
        style = ' stroke-dasharray="4 3"' if dashed else ""
        out.append(f'<line x1="{x1 + 280}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="gray"{style} marker-end="url(#a)"/>')
    for number, label in enumerate(picture.labels):
        x, y = _point(places[number])
        shown = label if len(label) <= 42 else "…" + label[-41:]
        box = f'<rect x="{x}" y="{y - 14}" width="280" height="28" rx="4" fill="white" stroke="black"/>'
        text = f'<text x="{x + 6}" y="{y + 4}">{escape(shown)}<title>{escape(label)}</title></text>'
        out += [box, text] if link is None else [f'<a href="{escape(link(picture.names[number]))}">{box}{text}</a>']
    return "\n".join([*out, "</svg>"]) + "\n"


def _point(place: tuple[int, int]) -> tuple[int, int]:
    return 20 + 320 * place[0], 30 + 44 * place[1]


def _find_layers(count: int, edges: list[tuple[int, int, bool]]) -> list[int]:
    """Longest way from a start, cycles cut by a bound on the rounds."""
    layers = [0] * count
    for _ in range(min(count, 20)):
        moved = False
        for source, target, _dashed in edges:
            if layers[target] <= layers[source] < 12:
                layers[target] = layers[source] + 1
                moved = True
        if not moved:
            break
    return layers


def _quote(label: str) -> str:
    # `#lt;` is a character of Mermaid's, and what begins with a backtick is read as Markdown.
    label = label.replace("#", "#35;").replace("`", "#96;")
    return label.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
