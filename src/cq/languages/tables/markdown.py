"""Markdown: headings as symbols; a section reaches to the next heading of the same or a higher level."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from cq.syntax.excerpt import clip
from cq.syntax.language import Draft, Language
from cq.syntax.tree import Captures, Node, child_at, end_of, field_of, kind_of, start_of

if TYPE_CHECKING:
    from cq.syntax.collect import Collector


class Markdown(Language):
    def on_document(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        collector.remarks.append((end_of(node), "end", ""))

    def on_heading(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """The level waits in `depth` until `finish`, which knows where the section ends."""
        text, start, end = collector.text, start_of(node), end_of(node)
        content, marker = field_of(node, "heading_content"), child_at(node, 0)
        if content is None or marker is None:
            return
        name_start, name_end = start_of(content), end_of(content)
        name = text[name_start:name_end].rstrip()
        if kind_of(marker).startswith("atx_h"):
            level = int(kind_of(marker)[5])
            # `## Title ##`: the grammar leaves the closing marks in the content.
            bare = name.rstrip(b"#")
            name = bare.rstrip() if bare.endswith((b" ", b"\t")) else name
        else:
            level = 1 if text[name_end:end].lstrip().startswith(b"=") else 2
        if name:
            end = start + len(text[start:end].rstrip())
            draft = Draft("heading", clip(name, 0, len(name), 200), start, end, name_start, name_start + len(name), end)
            draft.signature = clip(text, start, max(draft.name_end, end_of(marker)), 200)
            draft.depth = level
            collector.symbols.append(draft)

    def finish(self, collector: Collector) -> None:
        text = collector.text
        kept = self._outside_blocks(collector)
        starts = [draft.start for draft in kept] + [collector.remarks[0][0] if collector.remarks else collector.span[1]]
        # Where the text before the next heading ends, blank lines off.
        ends = [start + len(text[start:stop].rstrip()) for start, stop in pairwise(starts)]
        open_ones: list[Draft] = []
        for number, draft in enumerate(kept):
            while open_ones and open_ones[-1].depth >= draft.depth:
                section = open_ones.pop()
                section.end = section.body_end = ends[number - 1]
            open_ones.append(draft)
        for section in open_ones:
            section.end = section.body_end = ends[-1]
        for draft in kept:
            draft.depth = 0
        collector.symbols = kept

    def _outside_blocks(self, collector: Collector) -> list[Draft]:
        blocks = sorted((start, end) for start, end, _ in collector.spans)
        kept, at, inside = [], 0, 0
        for draft in sorted(collector.symbols, key=lambda d: d.start):
            while at < len(blocks) and blocks[at][0] <= draft.start:
                inside = max(inside, blocks[at][1])
                at += 1
            if draft.start >= inside:
                kept.append(draft)
        return kept
