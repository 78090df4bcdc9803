"""Rust: what its grammar's words mean, and what only a whole document tells."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cq.languages.rust.calls import CallReader
from cq.languages.rust.definitions import HEADS, MACRO_ITEM, TYPE, DefinitionReader
from cq.languages.rust.imports import ImportReader
from cq.languages.rust.patterns import close_binds
from cq.syntax.collect import DEFINED
from cq.syntax.tree import Node, child_at, kind_of

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

_RAW_NAME = re.compile(rb"r#(?=[A-Za-z_\x80-\xff])(?<!\w..)")  # what it begins with is searched fast


class Rust(ImportReader, CallReader, DefinitionReader):
    root_kinds = {
        "use_declaration": "import", "extern_crate_declaration": "import", "expression_statement": "expression",
        "macro_invocation": "expression", "attribute_item": "attribute",
    }  # fmt: skip
    comment_kinds = ("line_comment", "block_comment")
    method_owners = frozenset({"impl", "trait"})
    dot_attributes = True
    has_code = True
    flat = True
    keywords = frozenset(
        b"_ $ $crate abstract as async await become box break const continue crate do dyn else enum extern false final "
        b"fn for if impl in let loop macro macro_rules match mod move mut override priv pub ref return self static "
        b"struct super trait true try type typeof unsafe unsized use virtual where while yield".split()
    )
    word_bytes = b"_$"

    def chunk_kind(self, node: Node) -> str:
        kind = super().chunk_kind(node)
        first = child_at(node, 0) if kind_of(node) == "use_declaration" else None
        return "export" if first is not None and kind_of(first) == "visibility_modifier" else kind

    def finish(self, collector: Collector) -> None:
        text, end = collector.text, 0
        if b"macro " in text:
            for found in MACRO_ITEM.finditer(text, *collector.span):
                if found.start() >= end:
                    end = self.add_macro_item(collector, found)
        if b"r#" in text:
            self._drop_raw_marks(collector)
        self.add_fields(collector)
        close_binds(collector)

    def _drop_raw_marks(self, collector: Collector) -> None:
        """`r#type` is the name `type`: definitions, uses and calls agree on it, and on where it stands."""
        marks = collector.marks
        for found in _RAW_NAME.finditer(collector.text, *collector.span):
            role = marks.get(found.start())
            if role is not None:
                marks[found.end()] = role
            marks[found.start()] = DEFINED
        for draft in collector.symbols:
            if collector.text.startswith(b"r#", draft.name_start):
                draft.name, draft.name_start = draft.name.removeprefix("r#"), draft.name_start + 2

    def finish_nested(self, collector: Collector) -> None:
        drafts, marks = collector.symbols, collector.marks
        open_heads: list[int] = []  # definitions without a body that may hold parameters, fields or locals
        for index, draft in enumerate(drafts):
            while open_heads and drafts[open_heads[-1]].end <= draft.start:
                open_heads.pop()
            parent = draft.parent
            # The doc comment of what follows may still be a part of a head that is not finished.
            if open_heads and drafts[open_heads[-1]].depth >= draft.depth and draft.end <= drafts[open_heads[-1]].end:
                parent = open_heads[-1]
            if parent >= 0 and (parent != draft.parent or drafts[parent].depth + 1 != draft.depth):
                draft.parent, draft.depth = parent, drafts[parent].depth + 1
            if parent >= 0:
                holder = drafts[parent]
                if holder.kind == "namespace":
                    # What stands in an `extern` block is named as if it stood beside it.
                    prefix = drafts[holder.parent].qualified_name + "." if holder.parent >= 0 else ""
                else:
                    prefix = holder.qualified_name + "."
                draft.qualified_name = prefix + draft.name
            if draft.body_start < 0 and draft.kind in HEADS:
                open_heads.append(index)
            if draft.decorators:
                self.read_attributes(collector, draft)
            if draft.kind == "impl":
                # The name of an impl is a use of the type.
                marks[draft.name_start] = TYPE
        self.place_imports(collector)
