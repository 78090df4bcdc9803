"""C: names are found inside declarators, whatever pointers, arrays and parameters stand around them."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING

from cq.syntax.excerpt import clip
from cq.syntax.language import Draft, Language
from cq.syntax.tree import (
    Captures,
    Node,
    Tree,
    child_at,
    children_of,
    end_of,
    field_of,
    fields_of,
    is_missing,
    kind_of,
    start_of,
)

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

VALUE_TEXT = 120
_SUFFIX = re.compile(r"\b(?:const|noexcept|override|final)\b|=\s*(0|default|delete)\b")
RECORDS = frozenset({"struct_specifier", "union_specifier", "enum_specifier", "class_specifier"})
FUNCTIONS = frozenset({"function", "method", "constructor", "destructor", "operator"})
POINTERS = frozenset({"pointer_declarator", "array_declarator", "reference_declarator"})


# `class API Name : Base {`, `JNIEXPORT int JNICALL name(`, and the two halves of
#     #ifdef __cplusplus
#     extern "C" {
#     #endif
_MACROS = re.compile(
    rb"(\b(?:class|struct|union)\s+)([A-Z][A-Z0-9_]*(?:\([^()\n]*\))?)"
    rb"(?=\s+[A-Za-z_][\w:]*\s*(?:final\s*)?(?::(?!:)|\{))"
    rb"|\bJNI(?:EXPORT|IMPORT|CALL)\b"
    rb"|#[ \t]*if(?:def[ \t]+|[ \t]+defined[ \t]*\(?[ \t]*)__cplusplus\b[^\n]*\n"
    rb"\s*(?:extern[ \t]+\"C\"[ \t]*\{|\}[^\n]*)\s*#[ \t]*endif[^\n]*"
)
_NOT_SPACE = re.compile(rb"\S")


class C(Language):
    def parse(self, text: bytes, ranges: tuple[tuple[int, int], ...] = ()) -> Tree | None:
        return super().parse(self.respelled(text), ranges)

    def respell(self, text: bytes) -> bytes:
        """Macros that no grammar sees through are blanked; facts read the true text."""
        return _MACROS.sub(_blank, text)

    # -- definitions -------------------------------------------------------------------------------

    def on_symbol(self, collector: Collector, kind: str, node: Node, captures: Captures) -> Draft | None:
        if kind == "function":
            return self._add_function(collector, node)
        if kind == "macro":
            return self._add_macro(collector, node)
        name = captures["name"][0] if "name" in captures else field_of(node, "name")
        if name is None:
            return None
        body = captures["body"][0] if "body" in captures else None
        return self.define(collector, kind, node, name, body)

    def define(self, collector: Collector, kind: str, node: Node, name: Node, body: Node | None = None) -> Draft:
        end = end_of(node)
        start = start_of(node)
        draft = Draft(kind, collector.slice(start_of(name), end_of(name)), start, end, start_of(name), end_of(name))
        attributes = collector.attributes
        at = bisect_left(attributes, (start, 0))
        while at < len(attributes) and attributes[at][0] == start:  # `[[nodiscard]] int f()`
            draft.decorators += (_attribute(collector.fold(*attributes[at])),)
            start = attributes[at][1]
            while collector.text[start : start + 1].isspace():
                start += 1
            at += 1
        draft.head = start
        if body is not None:
            draft.body_start, draft.body_end, draft.scope_start = start_of(body), end_of(body), start
            draft.signature = self.trim_signature(collector.fold(start, start_of(body)))
        elif kind in FUNCTIONS:
            draft.signature = self.trim_signature(collector.fold(start, end))
        else:
            draft.signature = clip(collector.text, start, end, VALUE_TEXT).removesuffix(";")
        self.rename(collector, draft, name)
        if draft.name:  # a name the parser only supposes is empty
            collector.symbols.append(draft)
        return draft

    def rename(self, collector: Collector, draft: Draft, name: Node) -> None:
        """For names that are more than a word."""

    def trim_signature(self, signature: str) -> str:
        return signature.rstrip().removesuffix("{").removesuffix(";").rstrip()

    def _add_macro(self, collector: Collector, node: Node) -> Draft | None:
        name = field_of(node, "name")
        if name is None:
            return None
        value, parameters = field_of(node, "value"), field_of(node, "parameters")
        draft = self.define(collector, "macro", node, name, value if parameters is not None else None)
        # The node runs to the start of the next line.
        draft.end = start_of(node) + len(collector.text[start_of(node) : end_of(node)].rstrip())
        if parameters is not None:
            draft.signature = collector.fold(start_of(node), end_of(parameters))
            draft.body_start = draft.body_start if value is not None else draft.end
            draft.body_end = draft.end
            draft.scope_start = draft.start
        else:
            draft.signature = clip(collector.text, draft.start, draft.end, VALUE_TEXT)
        return draft

    def _add_function(self, collector: Collector, node: Node) -> Draft | None:
        body, declarator = field_of(node, "body"), field_of(node, "declarator")
        name, function = find_name(declarator)
        if name is None:
            return None
        draft = self.define(collector, "function", node, name, body)
        self.read_modifiers(collector, draft, draft.name_start)
        parameters = field_of(function, "parameters") if function is not None and body is not None else None
        if parameters is not None:
            self.on_parameters(collector, parameters)
        return draft

    def on_parameters(self, collector: Collector, node: Node) -> None:
        for child in children_of(node):
            name, _ = find_name(field_of(child, "declarator"))
            if name is not None:
                self.define(collector, "parameter", child, name)

    def on_declared(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """All declarators of `int a = 1, *b, f(void);`: each spans the statement, each has its own signature."""
        declarators = fields_of(node, "declarator")
        whole = field_of(node, "type")
        for declarator in declarators:
            name, function = find_name(declarator)
            if name is None:
                continue
            if kind_of(name) == "structured_binding_declarator":
                for part in children_of(name):
                    self.define(collector, kind, node, part)
                continue
            draft = self.define(collector, "function" if function is not None and kind != "type" else kind, node, name)
            self.read_modifiers(collector, draft, start_of(declarators[0]))
            shape = field_of(whole, "body") if whole is not None and kind_of(whole) in RECORDS else None
            if len(declarators) > 1 or shape is not None:
                lead = start_of(shape) if shape is not None else start_of(declarators[0])
                own = clip(collector.text, start_of(declarator), end_of(declarator), VALUE_TEXT)
                draft.signature = f"{clip(collector.text, draft.head, lead, VALUE_TEXT)} {own}"
            if whole is not None and shape is not None and len(declarators) == 1 and field_of(whole, "name") is None:
                # `typedef struct { … } Name;` and `struct { … } field;`: the nameless type is known by this name.
                if kind == "type":
                    draft.kind = kind_of(whole).removesuffix("_specifier")
                draft.body_start, draft.body_end, draft.scope_start = start_of(shape), end_of(shape), draft.head
            if kind != "type" and draft.kind != "function" and {"const", "constexpr"} & set(draft.modifiers):
                inner = field_of(declarator, "declarator") if kind_of(declarator) == "init_declarator" else declarator
                if inner is not None and kind_of(inner) not in ("pointer_declarator", "reference_declarator"):
                    draft.kind = "constant"
            if draft.kind in ("variable", "constant") and len(declarators) == 1:
                self.bind_lambda(collector, draft, declarator)

    def bind_lambda(self, collector: Collector, draft: Draft, declarator: Node) -> None:
        """C has none."""

    def read_modifiers(self, collector: Collector, draft: Draft, lead: int) -> None:
        """Words before the name, for functions also behind the parameters; `const char *f()` is no const function."""
        found = list(self.find_modifiers(collector.text[draft.head : min(lead, draft.head + 400)]))
        if draft.kind in FUNCTIONS:
            found = [word for word in found if word not in ("const", "volatile")]
            behind = draft.signature.rpartition(")")[2]
            for match in _SUFFIX.finditer(behind):
                found.append({"0": "abstract", None: match[0]}.get(match[1], match[1]))
        draft.modifiers = tuple(dict.fromkeys(word for word in found if word != "typedef"))

    # -- calls and imports -------------------------------------------------------------------------

    def on_call(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        args = field_of(node, "arguments")
        collector.add_call(self, "call", start_of(node), end_of(node), captures["callee"][0], args)
        if collector.text.startswith(b"(", start_of(node)):  # `(*f)(x)` has no receiver
            call = collector.calls[-1]
            if call[6].strip("(* ") == "":
                collector.calls[-1] = (*call[:6], "", *call[7:])

    def callee_name(self, collector: Collector, callee: Node) -> Node | None:
        """`(*f)(x)` calls f."""
        inner: Node | None = callee
        while inner is not None and kind_of(inner) in ("parenthesized_expression", "pointer_expression"):
            inner = child_at(inner, 0)
        found = inner is not None and inner is not callee and kind_of(inner) == "identifier" and not is_missing(inner)
        return inner if found else None

    def on_import(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        module = captures["module"][0]
        end = start_of(node) + len(collector.text[start_of(node) : end_of(node)].rstrip())
        name = collector.slice(start_of(module), end_of(module)).strip('"<> ')
        collector.add_import("include", name, start_of(node), end, [])

    # -- the whole document ------------------------------------------------------------------------

    def finish_nested(self, collector: Collector) -> None:
        drafts = collector.symbols
        for draft in drafts:
            holder = drafts[draft.parent] if draft.parent >= 0 else None
            if holder is not None and holder.kind in (*FUNCTIONS, "macro") and draft.kind != "parameter":
                if draft.kind == "function" and draft.body_start < 0:
                    # `Type name(arg);` in a function is far more often a variable than a prototype.
                    draft.kind = "variable"
                elif draft.kind == "variable" and draft.start < holder.body_start:
                    draft.kind = "parameter"  # `int f(a) int a; { … }`
                continue
            draft.exported = draft.kind != "parameter" and self.is_visible(draft, holder)

    def is_visible(self, draft: Draft, holder: Draft | None) -> bool:
        return holder.exported if holder is not None else "static" not in draft.modifiers


def _blank(match: re.Match[bytes]) -> bytes:
    return match[1] + b" " * len(match[2]) if match[2] else _NOT_SPACE.sub(b" ", match[0])


def _attribute(text: str) -> str:
    """`[[nodiscard]]` -> nodiscard, `__attribute__((pure))` -> pure"""
    return text.removeprefix("__attribute__").strip("[]() ")


def find_name(declarator: Node | None) -> tuple[Node | None, Node | None]:
    """The name a declarator is about, and its function declarator when it names a function.

    `*f(int)` and `(f)(int)` name functions, `(*f)(int)` a pointer to one.
    """
    function = None
    while declarator is not None and kind_of(declarator) not in _NAMES:
        if kind_of(declarator) == "function_declarator":
            function = declarator
        elif kind_of(declarator) in POINTERS:
            function = None
        declarator = field_of(declarator, "declarator") or (
            child_at(declarator, 0) if kind_of(declarator) in _WRAPPERS else None
        )
    if declarator is not None and end_of(declarator) <= start_of(declarator):
        declarator = None
    return declarator, function


_NAMES = frozenset(
    {"identifier", "field_identifier", "type_identifier", "qualified_identifier", "destructor_name", "operator_name",
     "operator_cast", "template_function", "template_method", "structured_binding_declarator"}
)  # fmt: skip
_WRAPPERS = frozenset(
    {"parenthesized_declarator", "reference_declarator", "attributed_declarator", "variadic_declarator",
     "init_declarator", "pointer_declarator"}
)  # fmt: skip
