"""C#: read as Java is; properties, events, operators and XML documentation are its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cq.languages.tables.java import IMPORT, TYPES, Java, split_list
from cq.syntax.collect import DEFINED
from cq.syntax.language import Draft
from cq.syntax.tree import (
    Captures,
    Node,
    Span,
    all_children_of,
    child_at,
    child_count_of,
    children_of,
    end_of,
    field_of,
    is_extra,
    is_missing,
    kind_of,
    start_of,
)

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

_REFERENCE = re.compile(
    r"<(?:see|seealso|paramref|typeparamref)\s+(?:cref|name|langword|href)=\"(?:[A-Z]:)?([^\"]*)\"\s*/>"
)
_NAMED = re.compile(r"<(?:param|typeparam|exception)\s+(?:name|cref)=\"([^\"]*)\"\s*>")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")


class CSharp(Java):
    def on_symbol(self, collector: Collector, kind: str, node: Node, captures: Captures) -> Draft | None:
        name: Node | Span | None = captures["name"][0] if "name" in captures else field_of(node, "name")
        parameters = field_of(node, "parameters")
        if name is None:
            name = _unnamed(collector, node, parameters)
        elif kind == "destructor":
            collector.marks[start_of(name)] = DEFINED
            name = Span(collector.text.rfind(b"~", start_of(node), start_of(name)), end_of(name))
        if name is None or end_of(name) <= start_of(name) or start_of(name) < 0:
            return None
        body = self._body(node)
        draft = self.define(collector, kind, node, name, body)
        if kind == "namespace":
            # `finish_nested` leaves `Shop` of `Acme.Shop`, which is the qualified name.
            draft.name_start = draft.name_end - len(draft.name.rpartition(".")[2].encode())
        for child in children_of(node) if kind in TYPES else ():
            if kind_of(child) == "parameter_list":
                parameters = child
                if body is None:
                    # `record P(int X);` holds its members in its head.
                    draft.body_start = draft.body_end = draft.end
                    draft.scope_start = draft.head
        if kind in TYPES:
            draft.bases = self.find_bases(collector, node)
        if draft.body_start >= 0:
            for held in [child for child in children_of(node) if kind_of(child) == "type_parameter_list"]:
                self.add_parameters(collector, held, "type_parameter")
            if parameters is not None:
                self.add_parameters(collector, parameters, "property" if kind == "record" else "parameter")
        return draft

    def _body(self, node: Node) -> Node | None:
        """`{ get; set; }` is no body; accessors with code are one, and so is `=> x`."""
        body = field_of(node, "body")
        if body is None:
            accessors = field_of(node, "accessors")
            if accessors is not None and any(field_of(a, "body") is not None for a in children_of(accessors)):
                return accessors
            value = field_of(node, "value")
            if value is not None and kind_of(value) == "arrow_expression_clause":
                return value
        return body

    def trim_signature(self, signature: str) -> str:
        return signature.rstrip().removesuffix(";").removesuffix("=>").rstrip()

    def split_attribute(self, attribute: str) -> list[str]:
        return split_list(attribute)

    def is_base(self, node: Node) -> bool:
        return kind_of(node) != "argument_list" and not is_extra(node)

    def find_bases(self, collector: Collector, node: Node) -> tuple[str, ...]:
        return tuple(base.partition("(")[0] for base in super().find_bases(collector, node))

    def parameter_name(self, node: Node) -> Node | None:
        if kind_of(node) == "identifier":  # the name of `params int[] rest`, whose type is its sibling
            return node
        if kind_of(node) in ("parameter", "type_parameter"):
            return field_of(node, "name")
        return None

    def on_lambda(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        parameters = captures["params"][0]
        if kind_of(parameters) == "implicit_parameter":
            self.define(collector, "parameter", parameters, parameters)
        else:
            self.add_parameters(collector, parameters, "parameter")

    def find_declarators(self, node: Node, captures: Captures) -> list[Node]:
        return [child for child in children_of(captures["list"][0]) if kind_of(child) == "variable_declarator"]

    def is_constant(self, draft: Draft) -> bool:
        return "const" in draft.modifiers

    # -- calls and imports -----------------------------------------------------------------------

    def on_call(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        start, end = start_of(node), end_of(node)
        if kind == "super":  # `: base(a)`
            word = collector.text.find(b"b", start, end), collector.text.find(b"t", start, end)
            first = min((at for at in word if at >= 0), default=start)
            collector.add_call(self, kind, first, end, Span(first, first + 4), captures["args"][0])
            return
        callee = captures["callee"][0]
        args = field_of(node, "arguments")
        if not kind:
            kind = "super" if collector.text.startswith(b"base.", start) else "call"
        collector.add_call(self, kind, start, end, callee, args)

    def callee_name(self, collector: Collector, callee: Node) -> Node | None:
        """`Get<int>(x)`, `a.Get<int>(x)`, `a?.Get<int>(x)`, `new List<int>()`"""
        node: Node | None = callee
        for _ in range(4):
            if node is None or kind_of(node) in ("", "identifier"):
                break
            if kind_of(node) == "generic_name":
                node = child_at(node, 0)
            else:
                node = field_of(node, "name") or (children_of(node)[-1] if child_count_of(node) else None)
        return None if node is None or kind_of(node) != "identifier" or is_missing(node) else node

    def on_import(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """`using A.B;` opens a namespace, `using static A.B;` a type; `using X = A.B;` names one."""
        start, end = start_of(node), end_of(node)
        collector.spans.append((start, end, IMPORT))
        alias, children = field_of(node, "name"), [c for c in children_of(node) if not is_extra(c)]
        if not children or (alias is not None and len(children) < 2):
            return
        module = collector.slice(start_of(children[-1]), end_of(children[-1]))
        if alias is None:
            collector.add_import("star", module, start, end, [])
        else:
            first, last = start_of(alias), end_of(alias)
            bindings = [(collector.slice(first, last), "*", first, last, False)]
            collector.add_import("import", module, start, end, bindings)

    # -- the whole document ------------------------------------------------------------------------

    def finish(self, collector: Collector) -> None:
        # A supposed identifier has a supposed word inside and is not missing itself: only its width tells.
        found = zip(collector.ref_starts, collector.ref_ends, strict=True)
        collector.marks.update((start, DEFINED) for start, end in found if start == end)

    def finish_nested(self, collector: Collector) -> None:
        super().finish_nested(collector)
        for draft in collector.symbols:
            if draft.kind == "namespace":
                draft.name = draft.name.rpartition(".")[2]
            if draft.doc and "<" in draft.doc:
                draft.doc = _plain(draft.doc)

    def is_visible(self, draft: Draft, holder: Draft | None) -> bool:
        if draft.kind == "namespace":
            return True
        if holder is not None and holder.kind == "record" and draft.kind == "property" and not draft.modifiers:
            return holder.exported
        return super().is_visible(draft, holder)


def _unnamed(collector: Collector, node: Node, parameters: Node | None) -> Span | None:
    """`operator +`, `operator int` and the indexer `this`."""
    if parameters is None:
        return None
    for child in all_children_of(node):
        if kind_of(child) in ("operator", "this"):
            last = start_of(parameters) if kind_of(child) == "operator" else end_of(child)
            return Span(start_of(child), start_of(child) + len(collector.text[start_of(child) : last].rstrip()))
    return None


def _plain(doc: str) -> str:
    """The text of an XML comment: references by their names, `name: what it is` for parameters, other tags off."""
    doc = _TAG.sub("", _NAMED.sub(r"\1: ", _REFERENCE.sub(r"\1", doc)))
    doc = doc.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return "\n".join(line.strip() for line in doc.splitlines() if line.strip())
