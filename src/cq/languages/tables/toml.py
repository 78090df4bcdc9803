"""TOML: keys and tables as symbols; `[a.b]` and `a.b = 1` are both named b, under a."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cq.languages.tables.json import KeyedData
from cq.model.code import Text
from cq.syntax.excerpt import clip
from cq.syntax.language import Draft

if TYPE_CHECKING:
    from tree_sitter import Node

    from cq.syntax.collect import Collector


class Toml(KeyedData):
    id = "toml"
    label = "TOML"
    grammar_module = "tree_sitter_toml"
    containers = frozenset({"inline_table", "array"})
    doc_prefixes = (b"#",)
    stub = " = …"
    has_code = True

    def wants_code(self, collector: Collector) -> bool:
        return bool(collector.code.binds)

    def add_key(self, collector: Collector, node: Node, name: Node, value: Node | None) -> Draft | None:
        parts = [name]
        while parts[0].type == "dotted_key":
            parts[:1] = parts[0].named_children
        if node.type == "table" and collector.slice(name.start_byte, name.end_byte) in ("package", "lib"):
            _bind_name(collector, node, name)
        elif node.type == "table" and b"dependencies" in collector.text[name.start_byte : name.end_byte]:
            _bind_dependencies(collector, node, [collector.slice(p.start_byte, p.end_byte).strip("\"'") for p in parts])
        draft = super().add_key(collector, node, parts[-1], value)
        if draft is None:
            return None
        if len(parts) > 1:
            # Dotted while it is nested; `finish_nested` keeps the last part.
            draft.name = ".".join(clip(collector.text, p.start_byte, p.end_byte, 200).strip("\"'") for p in parts)
        if node.type != "pair":
            # The grammar lets a table run to the next header; comments before that belong to what follows.
            close = collector.text.find(b"\n", name.end_byte, node.end_byte)
            head = collector.text[name.end_byte : close if close >= 0 else node.end_byte]
            draft.end = name.end_byte + len(head) - len(head.lstrip().lstrip(b"]"))
            draft.signature = clip(collector.text, draft.start, draft.end, 120)
            draft.body_start = draft.end
            for child in reversed(node.named_children):
                if child.type == "pair":
                    draft.end = max(draft.end, child.end_byte)
                    break
            draft.body_end = draft.end
        return draft

    def finish_nested(self, collector: Collector) -> None:
        super().finish_nested(collector)
        for draft in collector.symbols:
            draft.name = clip(collector.text, draft.name_start, draft.name_end, 200)


def _bind_dependencies(collector: Collector, table: Node, path: list[str]) -> None:
    """`foo = { package = "bar" }`: what paths call foo is the crate bar, bound as `dependency foo`; what a workspace
    says for its members, as `workspace foo`."""
    kind = "workspace" if path[0] == "workspace" else "dependency"
    if path[-1].endswith("dependencies"):
        pairs = [pair.named_children for pair in table.named_children if pair.type == "pair"]
        entries = [
            (collector.slice(pair[0].start_byte, pair[0].end_byte), pair[1])
            for pair in pairs
            if len(pair) == 2 and pair[1].type == "inline_table"
        ]
    elif len(path) > 1 and path[-2].endswith("dependencies"):  # [dependencies.foo]
        entries = [(path[-1], table)]
    else:
        return
    for name, entry in entries:
        for pair in entry.named_children:
            children = pair.named_children if pair.type == "pair" else []
            if len(children) == 2 and collector.slice(children[0].start_byte, children[0].end_byte) == "package":
                text = Text(collector.slice(children[1].start_byte, children[1].end_byte).strip("\"'"))
                label = name.strip("\"'").replace("-", "_")
                collector.code.binds.append((pair.end_byte, pair.start_byte, f"{kind} {label}", text, -1))


def _bind_name(collector: Collector, table: Node, name: Node) -> None:
    """What a Cargo.toml calls its crate is bound as `package` or `lib`: paths of Rust begin with it. The file that the
    library begins with is bound as `lib path`."""
    label = collector.slice(name.start_byte, name.end_byte)
    labels = {"name": label, "path": "lib path"} if label == "lib" else {"name": label}
    for pair in table.named_children:
        children = pair.named_children if pair.type == "pair" else []
        key = collector.slice(children[0].start_byte, children[0].end_byte) if len(children) == 2 else ""
        if key in labels and children[1].type == "string":
            text = Text(collector.slice(children[1].start_byte, children[1].end_byte).strip("\"'"))
            collector.code.binds.append((pair.end_byte, pair.start_byte, labels[key], text, -1))
