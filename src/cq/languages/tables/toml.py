"""TOML: keys and tables as symbols; `[a.b]` and `a.b = 1` are both named b, under a."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cq.languages.tables.json import KeyedData
from cq.model.code import Text
from cq.syntax.excerpt import clip
from cq.syntax.language import Draft
from cq.syntax.tree import Node, children_of, end_of, kind_of, start_of

if TYPE_CHECKING:
    from cq.syntax.collect import Collector


class Toml(KeyedData):
    def wants_code(self, collector: Collector) -> bool:
        return bool(collector.code.binds)

    def add_key(self, collector: Collector, node: Node, name: Node, value: Node | None) -> Draft | None:
        parts = [name]
        while kind_of(parts[0]) == "dotted_key":
            parts[:1] = children_of(parts[0])
        if kind_of(node) == "table" and collector.slice(start_of(name), end_of(name)) in ("package", "lib"):
            _bind_name(collector, node, name)
        elif kind_of(node) == "table" and b"dependencies" in collector.text[start_of(name) : end_of(name)]:
            _bind_dependencies(collector, node, [collector.slice(start_of(p), end_of(p)).strip("\"'") for p in parts])
        draft = super().add_key(collector, node, parts[-1], value)
        if draft is None:
            return None
        if len(parts) > 1:
            # Dotted while it is nested; `finish_nested` keeps the last part.
            draft.name = ".".join(clip(collector.text, start_of(p), end_of(p), 200).strip("\"'") for p in parts)
        if kind_of(node) != "pair":
            # The grammar lets a table run to the next header; comments before that belong to what follows.
            close = collector.text.find(b"\n", end_of(name), end_of(node))
            head = collector.text[end_of(name) : close if close >= 0 else end_of(node)]
            draft.end = end_of(name) + len(head) - len(head.lstrip().lstrip(b"]"))
            draft.signature = clip(collector.text, draft.start, draft.end, 120)
            draft.body_start = draft.end
            for child in reversed(children_of(node)):
                if kind_of(child) == "pair":
                    draft.end = max(draft.end, end_of(child))
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
        pairs = [children_of(pair) for pair in children_of(table) if kind_of(pair) == "pair"]
        entries = [
            (collector.slice(start_of(pair[0]), end_of(pair[0])), pair[1])
            for pair in pairs
            if len(pair) == 2 and kind_of(pair[1]) == "inline_table"
        ]
    elif len(path) > 1 and path[-2].endswith("dependencies"):  # [dependencies.foo]
        entries = [(path[-1], table)]
    else:
        return
    for name, entry in entries:
        for pair in children_of(entry):
            children = children_of(pair) if kind_of(pair) == "pair" else []
            if len(children) == 2 and collector.slice(start_of(children[0]), end_of(children[0])) == "package":
                text = Text(collector.slice(start_of(children[1]), end_of(children[1])).strip("\"'"))
                label = name.strip("\"'").replace("-", "_")
                collector.code.binds.append((end_of(pair), start_of(pair), f"{kind} {label}", text, -1))


def _bind_name(collector: Collector, table: Node, name: Node) -> None:
    """What a Cargo.toml calls its crate is bound as `package` or `lib`: paths of Rust begin with it. The file that the
    library begins with is bound as `lib path`."""
    label = collector.slice(start_of(name), end_of(name))
    labels = {"name": label, "path": "lib path"} if label == "lib" else {"name": label}
    for pair in children_of(table):
        children = children_of(pair) if kind_of(pair) == "pair" else []
        key = collector.slice(start_of(children[0]), end_of(children[0])) if len(children) == 2 else ""
        if key in labels and kind_of(children[1]) == "string":
            text = Text(collector.slice(start_of(children[1]), end_of(children[1])).strip("\"'"))
            collector.code.binds.append((end_of(pair), start_of(pair), labels[key], text, -1))
