"""JSON: keys as symbols. Also what all keyed data shares: how many keys are read, how deep, and which have chunks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cq.model.code import Dictionary, Listing, Text, Value
from cq.syntax.code import MAX_ELEMENTS
from cq.syntax.excerpt import clip
from cq.syntax.language import Draft, Language
from cq.syntax.tree import Captures, Node, Tree, children_of, end_of, field_of, kind_of, start_of

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

# Configuration is shallow and small; what goes beyond is data, of which the first keys tell enough.
MAX_KEY_DEPTH = 6
MAX_KEYS = 20_000
# Recovery from a bracket that is never closed costs the square of the depth it stands at.
MAX_NESTING = 1000
_BLANK = b" \t\r\n"
_STRING = re.compile(rb'"(?:[^"\\\n]|\\.)*"')
_RUN = re.compile(rb"[\[{]+|[\]}]+")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


class KeyedData(Language):
    """`a.b.c` is key c of key b of key a. Where a file holds several values (a list, JSON lines, several YAML
    documents), each is a symbol named by its number, so that `0.name` and `1.name` stay apart."""

    def parse(self, text: bytes, ranges: tuple[tuple[int, int], ...] = ()) -> Tree | None:
        own = b"".join(text[start:end] for start, end in ranges) if ranges else text
        return None if self.is_too_deep(own) else super().parse(text, ranges)

    def is_too_deep(self, text: bytes) -> bool:
        """Whether brackets outside strings nest deeper than any document people write."""
        if text.count(b"[") + text.count(b"{") <= MAX_NESTING:
            return False
        depth = 0
        for run in _RUN.finditer(_STRING.sub(b"", text).translate(None, _NO_BRACKETS)):
            size = run.end() - run.start()
            depth = depth + size if run[0][0] in b"[{" else max(0, depth - size)
            if depth > MAX_NESTING:
                return True
        return False

    def on_key(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        name, value = captures["name"][0], captures.get("value")
        self.add_key(collector, node, name, value[0] if value else None)

    def add_key(self, collector: Collector, node: Node, name: Node, value: Node | None) -> Draft | None:
        text, start, end = collector.text, start_of(name), end_of(name)
        node_end = end_of(node)
        while text[node_end - 1] in _BLANK and node_end > end:
            node_end -= 1
        holds = value is not None and kind_of(value) in self.containers
        signature = clip(text, start_of(node), end if holds else node_end, 120)
        if text[start : start + 1] in (b'"', b"'") and end - start > 1:
            start, end = start + 1, end - 1
        if start >= end:
            return None
        draft = Draft("key", clip(text, start, end, 200), start_of(node), node_end, start, end)
        draft.signature = signature
        if value is not None and holds:
            draft.body_start, draft.body_end = start_of(value), min(end_of(value), node_end)
        if text[draft.end : draft.end + 1] == b",":
            draft.end += 1
        collector.symbols.append(draft)
        return draft

    def on_item(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        text, start, end = collector.text, start_of(node), end_of(node)
        end = start + len(text[start:end].rstrip())
        if start < end:
            draft = Draft(kind or "item", "", start, end, start, start, start, end)
            draft.signature = clip(text, start, end, 80)
            if text[end : end + 1] == b",":
                draft.end += 1
            collector.symbols.append(draft)

    def finish(self, collector: Collector) -> None:
        # An item stands before the key that begins and ends with it; later sorts keep that order.
        drafts = sorted(collector.symbols, key=lambda d: (d.start, -d.end, d.name_start, bool(d.name)))
        alone = sum(draft.kind == "document" for draft in drafts) == 1
        kept: list[Draft] = []
        ends: list[int] = []  # of the open keys
        counts = [0] * (MAX_KEY_DEPTH + 1)  # of the items at every depth
        for draft in drafts:
            if alone and draft.kind == "document":
                continue
            while ends and ends[-1] <= draft.start:
                ends.pop()
            depth = len(ends)
            if depth >= MAX_KEY_DEPTH:
                continue
            if len(kept) == MAX_KEYS:
                break
            if not draft.name:
                draft.kind, draft.name = "key", str(counts[depth])
                counts[depth] += 1
                counts[depth + 1] = 0
            if draft.body_start >= 0:
                ends.append(draft.end)
            kept.append(draft)
        collector.symbols = kept

    def finish_nested(self, collector: Collector) -> None:
        # A value on the line of its key is read with it; one with lines of its own bears a body, hence a chunk.
        find = collector.text.find
        for draft in collector.symbols:
            if draft.body_start >= 0 and find(b"\n", draft.name_end, draft.body_end) < 0:
                draft.body_start = draft.body_end = -1


class Json(KeyedData):
    def on_setting(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """What tells how modules are found: tsconfig.json, package.json."""
        name, value = captures["name"][0], captures["value"][0]
        label = collector.slice(start_of(name) + 1, end_of(name) - 1)
        if label in _SETTINGS:
            collector.code.binds.append((end_of(node), start_of(node), label, _value(collector, value, 0), -1))

    def wants_code(self, collector: Collector) -> bool:
        return bool(collector.code.binds)


def _value(collector: Collector, node: Node, depth: int) -> Value:
    """Strings, lists and objects, as cq.model.code has them."""
    kind = kind_of(node)
    if kind == "string":
        return Text(collector.slice(start_of(node) + 1, end_of(node) - 1))
    if depth > MAX_KEY_DEPTH or kind not in ("object", "array"):
        return None
    children = [child for child in children_of(node)[:MAX_ELEMENTS] if kind_of(child) != "comment"]
    if kind == "array":
        return Listing("list", tuple([_value(collector, child, depth + 1) for child in children]))
    keys: list[Value] = []
    values: list[Value] = []
    for pair in children:
        key, value = field_of(pair, "key"), field_of(pair, "value")
        if key is not None and value is not None:
            keys.append(_value(collector, key, depth + 1))
            values.append(_value(collector, value, depth + 1))
    return Dictionary(tuple(keys), tuple(values))


_SETTINGS = frozenset(
    {"compilerOptions", "extends", "name", "exports", "imports", "main", "module", "types", "typings", "source"}
)
