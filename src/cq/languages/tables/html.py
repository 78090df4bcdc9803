"""HTML: elements that carry an id. Root elements are chunks; what stands in scripts and styles is read elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cq.syntax.excerpt import clip
from cq.syntax.language import Captures, Draft, Language

if TYPE_CHECKING:
    from tree_sitter import Node

    from cq.syntax.collect import Collector


class Html(Language):
    id = "html"
    label = "HTML"
    grammar_module = "tree_sitter_html"
    root_kinds = {"element": "expression", "script_element": "expression", "style_element": "expression"}

    def on_symbol(self, collector: Collector, kind: str, node: Node, captures: Captures) -> Draft | None:
        name, start, end = captures["name"][0], node.start_byte, node.end_byte
        tag_end = collector.text.find(b">", name.end_byte, min(end, name.end_byte + 400)) + 1
        draft = Draft(
            kind, collector.slice(name.start_byte, name.end_byte), start, end, name.start_byte, name.end_byte,
            signature=clip(collector.text, start, tag_end or name.end_byte, 120),
        )  # fmt: skip
        collector.symbols.append(draft)
        return draft
