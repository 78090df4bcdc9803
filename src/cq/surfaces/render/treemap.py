"""Sizes as a picture: rectangles whose areas are the sizes, each as near to a square as its neighbours let it be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from cq.surfaces.render import one_line, show_path

_WIDTH, _HEIGHT = 1200.0, 640.0
_LETTER = 7.2  # the width of one
_SHADES = 10
_Box = tuple[float, float, float, float]


def draw_treemap(rows: Sequence[tuple[str, int, float]], link: Callable[[str], str], base: str = "") -> str:
    """SVG of (name, size, heat from 0 to 1), the largest first. What has no size is left out. `base` is what all names
    begin with."""
    sized = [row for row in rows if row[1] > 0]
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" class="treemap"'
        ' font-family="monospace" font-size="12" role="img">'
    ]
    boxes = _lay_out([float(size) for _, size, _ in sized], (0.0, 0.0, _WIDTH, _HEIGHT))
    for (name, size, heat), (x, y, width, height) in zip(sized, boxes, strict=True):
        label = show_path(one_line(name))
        shown = label.removeprefix(f"{base}/").removeprefix(f"{base}:") if base else label
        room = int((width - 8) / _LETTER)
        shown = shown if len(shown) <= room else f"{shown[: max(room - 1, 0)]}…"
        shade = min(int(heat * _SHADES), _SHADES - 1)
        title = f"{label}: {size:,}, heat {heat:.2f}"
        out.append(f'<a href="{escape(link(name))}"><title>{escape(title)}</title>')
        out.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" class="h{shade}"'
            f' fill="hsl({210 - 20 * shade},60%,{85 - 3 * shade}%)" stroke="white"/>'
        )
        if height >= 18 and room >= 3:
            out.append(f'<text x="{x + 4:.1f}" y="{y + 15:.1f}">{escape(shown)}</text>')
        if height >= 36 and room >= len(f"{size:,}"):
            out.append(f'<text x="{x + 4:.1f}" y="{y + 31:.1f}" class="size">{size:,}</text>')
        out.append("</a>")
    return "\n".join([*out, "</svg>"]) + "\n"


def _lay_out(sizes: Sequence[float], room: _Box) -> list[_Box]:
    """Row by row along the shorter side; a row takes the next size as long as that makes its worst box no flatter."""
    boxes: list[_Box] = []
    x, y, width, height = room
    left, at = sum(sizes), 0
    while at < len(sizes):
        scale = width * height / left if left else 0.0
        side = min(width, height)
        end, best = at + 1, _find_worst(sizes[at : at + 1], side, scale)
        while end < len(sizes) and (worst := _find_worst(sizes[at : end + 1], side, scale)) <= best:
            end, best = end + 1, worst
        total = sum(sizes[at:end])
        depth = total * scale / side if side else 0.0
        along = 0.0
        for size in sizes[at:end]:
            length = side * size / total
            if width >= height:
                boxes.append((x, y + along, depth, length))
            else:
                boxes.append((x + along, y, length, depth))
            along += length
        if width >= height:
            x, width = x + depth, max(width - depth, 0.0)
        else:
            y, height = y + depth, max(height - depth, 0.0)
        left, at = left - total, end
    return boxes


def _find_worst(row: Sequence[float], side: float, scale: float) -> float:
    total = sum(row) * scale
    if not total or not side:
        return float("inf")
    thick = total / side
    return max(max(size * scale / thick / thick, thick * thick / (size * scale)) for size in row)
