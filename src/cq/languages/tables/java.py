"""Java, and what C#, Kotlin and PHP share with it: definitions that hold their annotations and modifiers."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from cq.model.facts import Argument
from cq.syntax.excerpt import clip
from cq.syntax.language import ARG_TEXT, MAX_ARGS, ROLE_NUMBER, Captures, Draft, Language, first_child

if TYPE_CHECKING:
    from tree_sitter import Node

    from cq.syntax.collect import Collector

VALUE_TEXT = 120
IMPORT = ROLE_NUMBER["import"]
TYPES = frozenset({"class", "interface", "enum", "record", "annotation_type", "struct", "trait", "object"})
VALUES = frozenset({"variable", "constant", "field", "property", "parameter", "type_parameter", "event"})


class Span(NamedTuple):
    """A callee that no single node covers: `a.b` of Java's `a.b(1)`."""

    start_byte: int
    end_byte: int
    type: str = ""


class Java(Language):
    id = "java"
    label = "Java"
    grammar_module = "tree_sitter_java"
    argument_kinds = {
        "string_literal": "string", "character_literal": "string", "decimal_integer_literal": "number",
        "hex_integer_literal": "number", "octal_integer_literal": "number", "binary_integer_literal": "number",
        "decimal_floating_point_literal": "number", "hex_floating_point_literal": "number",
        "unary_expression": "number", "true": "boolean", "false": "boolean",
        "null_literal": "null", "identifier": "name", "this": "name",
        "field_access": "attribute", "method_invocation": "call", "object_creation_expression": "call",
        "array_creation_expression": "array", "lambda_expression": "function",
        "method_reference": "function",
    }  # fmt: skip
    root_kinds = {"import_declaration": "import", "expression_statement": "expression"}
    modifier_words = frozenset(
        {"public", "protected", "private", "static", "final", "abstract", "default", "sealed", "non", "synchronized",
         "native", "strictfp", "transient", "volatile"}
    )  # fmt: skip
    doc_prefixes = (b"/**",)
    dot_attributes = True
    # Where the names of extended and implemented types stand.
    base_clauses: ClassVar[frozenset[str]] = frozenset({"superclass", "super_interfaces", "extends_interfaces"})
    wrapped_argument: ClassVar[bool] = False  # the grammar has a node around each argument

    # -- definitions -------------------------------------------------------------------------------

    def on_symbol(self, collector: Collector, kind: str, node: Node, captures: Captures) -> Draft | None:
        name = captures["name"][0] if "name" in captures else node.child_by_field_name("name")
        if name is None or name.end_byte <= name.start_byte:
            return None
        body = node.child_by_field_name("body")
        draft = self.define(collector, kind, node, name, body)
        if kind in TYPES:
            draft.bases = self.find_bases(collector, node)
        if body is not None:
            members = kind if kind == "record" else "parameter"
            for field in ("type_parameters", "parameters"):
                held = node.child_by_field_name(field)
                if held is not None:
                    kind = "type_parameter" if field == "type_parameters" else members
                    self.add_parameters(collector, held, kind.replace("record", "field"))
        return draft

    def define(
        self, collector: Collector, kind: str, node: Node, name: Node | Span, body: Node | Span | None = None,
        lead: int = -1,
    ) -> Draft:  # fmt: skip
        """`lead` is where annotations and modifiers end, when that is before the name."""
        start, end = node.start_byte, node.end_byte
        if lead < 0:
            lead = name.start_byte
        draft = Draft(kind, collector.slice(name.start_byte, name.end_byte), start, end, name.start_byte, name.end_byte)
        draft.head, draft.decorators = self.read_attributes(collector, start, lead)
        if body is not None:
            draft.body_start, draft.body_end = body.start_byte, body.end_byte
            draft.scope_start = draft.head
            draft.signature = self.trim_signature(collector.fold(draft.head, body.start_byte))
        elif kind in VALUES:
            draft.signature = clip(collector.text, draft.head, end, VALUE_TEXT).removesuffix(";")
        else:
            draft.signature = self.trim_signature(collector.fold(draft.head, end))
        draft.modifiers = self.find_modifiers(collector.text[draft.head : lead])
        if draft.name:  # a name the parser only supposes is empty
            collector.symbols.append(draft)
        return draft

    def read_attributes(self, collector: Collector, start: int, name_start: int) -> tuple[int, tuple[str, ...]]:
        """Where the definition goes on after the annotations it begins with, and all that stand before its name."""
        attributes, text = collector.attributes, collector.text
        head, last, found = start, start, []
        at = bisect_left(attributes, (start, 0))
        while at < len(attributes) and attributes[at][0] < name_start:
            first, end = attributes[at]
            at += 1
            if first < last:
                continue
            if not text[head:first].strip():
                head = end
            last = end
            found += self.split_attribute(collector.fold(first, end))
        while head > start and head < name_start and text[head : head + 1].isspace():
            head += 1
        return head, tuple(found)

    def split_attribute(self, attribute: str) -> list[str]:
        return [attribute.removeprefix("@")]

    def find_bases(self, collector: Collector, node: Node) -> tuple[str, ...]:
        found: list[Node] = []
        for clause in node.named_children:
            if clause.type in self.base_clauses:
                for base in clause.named_children:
                    found += base.named_children if base.type == "type_list" else [base]
        return tuple(collector.fold(base.start_byte, base.end_byte) for base in found if self.is_base(base))

    def is_base(self, node: Node) -> bool:
        return not node.is_extra

    def add_parameters(self, collector: Collector, node: Node, kind: str) -> None:
        for child in node.named_children:
            name = self.parameter_name(child)
            if name is not None:
                self.define(collector, kind, child, name)

    def parameter_name(self, node: Node) -> Node | None:
        if node.type == "spread_parameter":
            declarator = next((child for child in node.named_children if child.type == "variable_declarator"), None)
            return declarator.child_by_field_name("name") if declarator is not None else None
        if node.type == "type_parameter":
            return next((child for child in node.named_children if child.type == "type_identifier"), None)
        return node if node.type == "identifier" else node.child_by_field_name("name")

    def on_lambda(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        parameters = captures["params"][0]
        if parameters.type == "identifier":
            self.define(collector, "parameter", parameters, parameters)
        else:
            self.add_parameters(collector, parameters, "parameter")

    def on_variables(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """All declarators of `int a = 1, b;`: each spans the statement, each has its own signature."""
        declarators = self.find_declarators(node, captures)
        for declarator in declarators:
            name = declarator.child_by_field_name("name")
            if name is None:
                continue
            draft = self.define(collector, kind, node, name, None, declarators[0].start_byte)
            if self.is_constant(draft):
                draft.kind = "constant"
            if len(declarators) > 1:
                lead = clip(collector.text, draft.head, declarators[0].start_byte, VALUE_TEXT)
                draft.signature = (
                    f"{lead} {clip(collector.text, declarator.start_byte, declarator.end_byte, VALUE_TEXT)}"
                )

    def find_declarators(self, node: Node, captures: Captures) -> list[Node]:
        return node.children_by_field_name("declarator")

    def is_constant(self, draft: Draft) -> bool:
        return draft.kind == "field" and "static" in draft.modifiers and "final" in draft.modifiers

    # -- calls and imports ---------------------------------------------------------------------------

    def on_call(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        args, start, end = node.child_by_field_name("arguments"), node.start_byte, node.end_byte
        if kind:
            collector.add_call(self, kind, start, end, captures["callee"][0], args)
            return
        callee = node.child_by_field_name("name")
        if callee is None:
            return
        kind = "super" if collector.text.startswith(b"super.", start) else "call"
        collector.add_call(self, kind, start, end, Span(start, callee.end_byte), args)  # type: ignore[arg-type]
        if collector.text[callee.start_byte - 1 : callee.start_byte] == b">":  # `a.<T>f()` is sent to `a`
            call = collector.calls[-1]
            collector.calls[-1] = (*call[:6], call[6].rpartition(".<")[0], *call[7:])

    def callee_name(self, collector: Collector, callee: Node) -> Node | None:
        """`new ArrayList<String>()`, `new a.Box<T>()`"""
        if callee.type != "generic_type":
            return None
        inner = first_child(callee)
        if inner is not None and inner.type == "scoped_type_identifier":
            inner = inner.named_children[-1] if inner.named_child_count else None
        return None if inner is None or inner.is_missing else inner

    def summarize_arguments(
        self, collector: Collector, node: Node
    ) -> tuple[tuple[Argument, ...], int, tuple[str, ...]]:
        summaries: list[Argument] = []
        keywords: list[str] = []
        positional = 0
        for child in node.named_children:
            if child.is_extra:
                continue
            name, value = self.unwrap_argument(collector, child) if self.wrapped_argument else ("", child)
            if name:
                keywords.append(name)
            else:
                positional += 1
            if value is not None and len(summaries) < MAX_ARGS:
                kind = self.value_kind(value)
                depth = self.shape_depth(value) if kind in ("call", "array", "object") else 0
                text = clip(collector.text, value.start_byte, value.end_byte, ARG_TEXT)
                summaries.append(Argument(kind, text, name, depth, kind == "spread"))
        return tuple(summaries), positional, tuple(keywords)

    def value_kind(self, node: Node) -> str:
        kind = super().value_kind(node)
        if kind == "number" and (operand := first_child(node)) is not None:  # `-1` is a number, `!x` is not
            return "number" if super().value_kind(operand) == "number" else "other"
        return kind

    def unwrap_argument(self, collector: Collector, node: Node) -> tuple[str, Node | None]:
        """The keyword and the value of one wrapped argument."""
        name, children = node.child_by_field_name("name"), node.named_children
        return (
            "" if name is None else collector.slice(name.start_byte, name.end_byte),
            children[-1] if len(children) > (name is not None) else None,
        )

    def on_import(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """`import a.B;` binds B of a; `import static a.B.c;` binds c of a.B."""
        start, end = node.start_byte, node.end_byte
        collector.spans.append((start, end, IMPORT))
        children = [child for child in node.named_children if not child.is_extra]
        if not children:
            return
        path = collector.slice(children[0].start_byte, children[0].end_byte)
        if children[-1].type == "asterisk":
            collector.add_import("star", path, start, end, [])
            return
        module, _, name = path.rpartition(".")
        last = children[0].end_byte
        collector.add_import("from", module, start, end, [(name, name, last - len(name.encode()), last, False)])

    # -- the whole document --------------------------------------------------------------------------

    def finish_nested(self, collector: Collector) -> None:
        drafts = collector.symbols
        for draft in drafts:
            holder = drafts[draft.parent] if draft.parent >= 0 else None
            if draft.kind == "method" and holder is None:
                draft.kind = "function"
            draft.exported = draft.kind not in ("parameter", "type_parameter") and self.is_visible(draft, holder)

    def is_visible(self, draft: Draft, holder: Draft | None) -> bool:
        if holder is not None:
            if draft.kind == "enum_member" or (
                holder.kind == "record" and draft.kind == "field" and not draft.modifiers
            ):
                return holder.exported
            if holder.kind in ("interface", "annotation_type"):
                return "private" not in draft.modifiers and holder.exported
        return "public" in draft.modifiers


def split_list(text: str) -> list[str]:
    """The items of a bracketed list: `[A, B(1, 2)]` holds two."""
    items, depth, start = [], 0, 1
    for at, char in enumerate(text):
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        if (char == "," and depth == 1) or at == len(text) - 1:
            items.append(text[start:at].strip())
            start = at + 1
    return [item for item in items if item]
