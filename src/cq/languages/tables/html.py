"""HTML: elements that carry an id. Root elements are chunks; what stands in scripts and styles is read elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cq.syntax.excerpt import clip
from cq.syntax.language import Draft, Language
from cq.syntax.tree import Captures, Node, end_of, start_of

if TYPE_CHECKING:
    from cq.syntax.collect import Collector


class Html(Language):
    def on_symbol(self, collector: Collector, kind: str, node: Node, captures: Captures) -> Draft | None:
        name, start, end = captures["name"][0], start_of(node), end_of(node)
        tag_end = collector.text.find(b">", end_of(name), min(end, end_of(name) + 400)) + 1
        draft = Draft(
            kind, collector.slice(start_of(name), end_of(name)), start, end, start_of(name), end_of(name),
            signature=clip(collector.text, start, tag_end or end_of(name), 120),
        )  # fmt: skip
        collector.symbols.append(draft)
        return draft
