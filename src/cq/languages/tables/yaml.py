"""YAML: keys as symbols, in block and in flow style."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cq.languages.tables.json import KeyedData
from cq.syntax.language import Draft
from cq.syntax.tree import Node, child_at, child_count_of, field_of

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

# The grammar keeps its block indents in a buffer of fixed size and writes past it at 254 levels, which ends the
# process. A column can hold a mapping and a sequence, so 100 open columns are at most 200 levels.
MAX_COLUMNS = 100
# Documents of one stream hang in a list that costs the square of its length to walk.
MAX_DOCUMENTS = 5000
_INDENT = re.compile(rb"(?m)^[ \t?:-]*")
_LONG_INDENT = re.compile(rb"(?m)^[ \t?:-]{%d}" % MAX_COLUMNS)
_MARKER = re.compile(rb"[?:-](?=[ \t]|$)")


class Yaml(KeyedData):
    def is_too_deep(self, text: bytes) -> bool:
        if super().is_too_deep(text) or text.count(b"\n---") + text.count(b"\n...") > MAX_DOCUMENTS:
            return True
        # Columns of open blocks rise strictly, so without a long indent there cannot be many.
        if not _LONG_INDENT.search(text):
            return False
        columns: list[int] = []
        for indent in _INDENT.finditer(text):
            start, end = indent.span()
            for column in [*(marker.start() - start for marker in _MARKER.finditer(text, start, end)), end - start]:
                while columns and columns[-1] >= column:
                    columns.pop()
                columns.append(column)
                if len(columns) > MAX_COLUMNS:
                    return True
        return False

    def add_key(self, collector: Collector, node: Node, name: Node, value: Node | None) -> Draft | None:
        value = field_of(node, "value")
        if value is not None and child_count_of(value):
            # An anchor or a tag may stand before the value itself.
            value = child_at(value, child_count_of(value) - 1)
        return super().add_key(collector, node, name, value)
