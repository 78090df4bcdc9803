"""Swift: types, extensions, protocols and their members; what is `public` or `open` is exported."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cq.model.facts import Argument
from cq.syntax.collect import DEFINED
from cq.syntax.excerpt import clip
from cq.syntax.language import ARG_TEXT, MAX_ARGS, ROLE_NUMBER, Draft, Language
from cq.syntax.tree import (
    Captures,
    Node,
    all_children_of,
    child_at,
    child_count_of,
    children_of,
    end_of,
    field_of,
    fields_of,
    kind_id_of,
    kind_of,
    start_of,
)

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

_IMPORT = ROLE_NUMBER["import"]
_TYPES = frozenset({"class", "struct", "enum", "extension", "actor", "protocol"})
_VALUES = frozenset({"variable", "property", "constant"})
_SETTER = re.compile(rb"\b\w+\s*\(set\)")
_EFFECTS = re.compile(r"\)\s*(async)?\s*((?:re)?throws)?")


class Swift(Language):
    def on_symbol(self, collector: Collector, kind: str, node: Node, captures: Captures) -> Draft | None:
        text, start, end = collector.text, start_of(node), end_of(node)
        name = captures["name"][0] if "name" in captures else field_of(node, "name")
        if name is None or start_of(name) == end_of(name):
            return None
        if "kind" in captures:
            word = captures["kind"][0]
            kind = collector.slice(start_of(word), end_of(word))
        draft = Draft(
            kind,
            collector.slice(start_of(name), end_of(name)),
            start,
            end,
            start_of(name),
            end_of(name),
            head=start,
        )
        self._set_attributes(collector, draft, node)
        # `private(set) var` is not private.
        prefix = _SETTER.sub(b"", text[draft.head : start_of(name)])
        draft.modifiers = self.find_modifiers(prefix.rpartition(b" ")[0] if kind in _TYPES else prefix)
        if kind == "class" or kind == "actor":
            draft.modifiers = tuple(word for word in draft.modifiers if word != "class")
        body = self._body_of(node, kind)
        if body is not None:
            draft.body_start, draft.body_end, draft.scope_start = start_of(body), end_of(body), draft.head
        if kind in _VALUES or kind == "enum_member":
            draft.signature = clip(text, draft.head, draft.body_start if body is not None else end, 120).rstrip("; ")
        else:
            draft.signature = self.trim_signature(collector.fold(draft.head, draft.body_start if body else end))
        if kind in _TYPES:
            self._set_type(collector, draft, node)
        elif kind in ("function", "constructor", "accessor", "macro"):
            effects = _EFFECTS.search(draft.signature)
            draft.modifiers += tuple(word for word in effects.groups() if word) if effects else ()
            if body is not None:
                self.on_parameters(collector, node)
        elif kind == "variable" and "let" in draft.modifiers:
            draft.kind = "constant"
        if kind == "enum_member" and len(fields_of(node, "name")) > 1:
            # `case red, green`: each has the span of its name.
            draft.start, draft.end, draft.head = start_of(name), end_of(name), start_of(name)
            draft.signature = f"case {draft.name}"
        collector.symbols.append(draft)
        return draft

    def _set_attributes(self, collector: Collector, draft: Draft, node: Node) -> None:
        """`@objc public func f`: attributes are decorators; the definition begins behind those that come first."""
        modifiers = child_at(node, 0)
        if modifiers is None or kind_of(modifiers) != "modifiers":
            return
        leading = True
        for child in all_children_of(modifiers):
            if kind_of(child) == "attribute":
                draft.decorators += (collector.fold(start_of(child) + 1, end_of(child)),)
                if leading:
                    draft.head = end_of(child)
            else:
                leading = False
        if draft.head > draft.start:
            rest = collector.text[draft.head : draft.name_start]
            draft.head += len(rest) - len(rest.lstrip())

    def _body_of(self, node: Node, kind: str) -> Node | None:
        body = field_of(node, "body") or field_of(node, "computed_value")
        if body is None and (kind in _VALUES or kind == "accessor"):
            last = child_at(node, child_count_of(node) - 1) if child_count_of(node) else None
            if last is not None and kind_of(last) in ("willset_didset_block", "computed_property"):
                return last
        return body

    def _set_type(self, collector: Collector, draft: Draft, node: Node) -> None:
        draft.bases = tuple(
            collector.fold(start_of(child), end_of(child))
            for child in children_of(node)
            if kind_of(child) == "inheritance_specifier"
        )
        if draft.kind == "extension":
            # `extension A.B` is nested by the whole name; `finish_nested` keeps the last part.
            draft.name = draft.name.partition("<")[0].strip()
            draft.name_end = draft.name_start + len(draft.name.encode())
            draft.name_start = draft.name_end - len(draft.name.rpartition(".")[2].encode())

    def on_parameters(self, collector: Collector, node: Node) -> None:
        for child in children_of(node):
            name = field_of(child, "name") if kind_of(child) == "parameter" else None
            if name is not None and start_of(name) < end_of(name):
                start, end = start_of(child), end_of(child)
                collector.symbols.append(
                    Draft("parameter", collector.slice(start_of(name), end_of(name)), start, end, start_of(name),
                          end_of(name), signature=clip(collector.text, start, end, 120))
                )  # fmt: skip

    def on_operator(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        name = next((child for child in children_of(node) if kind_of(child) == "custom_operator"), None)
        if name is not None and start_of(name) < end_of(name):
            collector.symbols.append(
                Draft("operator", collector.slice(start_of(name), end_of(name)), start_of(node), end_of(node),
                      start_of(name), end_of(name), signature=collector.fold(start_of(node), end_of(node)))
            )  # fmt: skip

    # -- calls and imports -------------------------------------------------------------------------

    def on_call(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        callee = captures["callee"][0]
        if not kind:
            kind = "super" if collector.text.startswith(b"super.", start_of(callee)) else "call"
        collector.add_call(self, kind, start_of(node), end_of(node), callee, captures["args"][0])

    def callee_name(self, collector: Collector, callee: Node) -> Node | None:
        """`Box<Int>` is named before its type arguments."""
        names = [child for child in children_of(callee) if kind_of(child) == "type_identifier"]
        return names[-1] if names and kind_of(callee) == "user_type" else None

    def summarize_arguments(
        self, collector: Collector, node: Node
    ) -> tuple[tuple[Argument, ...], int, tuple[str, ...]]:
        """The suffix of a call holds the arguments in brackets and closures behind them."""
        text, kinds = collector.text, self.argument_ids
        summaries: list[Argument] = []
        keywords: list[str] = []
        positional = 0
        for part in children_of(node):
            for child in children_of(part) if kind_of(part) == "value_arguments" else (part,):
                name = ""
                value: Node | None = child
                if kind_of(child) == "value_argument":
                    label, value = field_of(child, "name"), field_of(child, "value")
                    if label is not None and start_of(label) < end_of(label):
                        name = collector.slice(start_of(label), end_of(label))
                elif kind_of(child) != "lambda_literal":
                    continue
                if value is None:
                    continue
                if name:
                    keywords.append(name)
                else:
                    positional += 1
                if len(summaries) < MAX_ARGS:
                    kind = kinds.get(kind_id_of(value), "other")
                    depth = self.shape_depth(value) if kind in ("call", "array", "object") else 0
                    summaries.append(Argument(kind, clip(text, start_of(value), end_of(value), ARG_TEXT), name, depth))
        return tuple(summaries), positional, tuple(keywords)

    def on_import(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """`import A`, `import A.B` and `import struct A.B`; only the last names one thing of a module."""
        path, start, end = captures["module"][0], start_of(node), end_of(node)
        collector.spans.append((start, end, _IMPORT))
        module = collector.fold(start_of(path), end_of(path)).replace(" ", "")
        before = collector.text[start : start_of(path)].split()
        if before[-1:] != [b"import"] and "." in module:
            module, _, name = module.rpartition(".")
            binding = (name, name, end_of(path) - len(name.encode()), end_of(path), False)
            collector.add_import("from", module, start, end, [binding])
        else:
            first = module.partition(".")[0]
            binding = (first, "*", start_of(path), start_of(path) + len(first.encode()), False)
            collector.add_import("import", module, start, end, [binding])

    # -- the whole document --------------------------------------------------------------------------

    def finish(self, collector: Collector) -> None:
        # A name the parser only supposes is no reference.
        supposed = (start for start, end in zip(collector.ref_starts, collector.ref_ends, strict=True) if start == end)
        collector.marks.update(dict.fromkeys(supposed, DEFINED))

    def finish_nested(self, collector: Collector) -> None:
        drafts = collector.symbols
        for draft in drafts:
            holder = drafts[draft.parent] if draft.parent >= 0 else None
            draft.exported = draft.kind != "parameter" and (
                "public" in draft.modifiers
                or "open" in draft.modifiers
                # Requirements, cases and members of a public extension are as public as what holds them.
                or (holder is not None and holder.exported and holder.kind in ("protocol", "extension", "enum")
                    and (holder.kind != "enum" or draft.kind == "enum_member"))
            )  # fmt: skip
            if draft.kind == "extension":
                draft.name = draft.name.rpartition(".")[2]
