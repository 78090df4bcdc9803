"""Rust: items at every depth, what patterns bind, and what the token trees of macros hold."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from cq.languages.rust.code import (
    FORMATTING,
    IN_BLOCK,
    IN_NEXT_BLOCK,
    SLICE,
    Keywords,
    bind_pattern,
    close_binds,
    join_format,
    read_arguments,
    read_asked,
    read_callee,
    read_callee_path,
    read_literal,
    read_signature,
    read_type,
    read_value,
)
from cq.model.code import (
    Bounds,
    CallEnd,
    Element,
    Entry,
    Imported,
    Iterated,
    MethodOf,
    Name,
    Parameter,
    Typed,
    Unwrapped,
    Value,
)
from cq.model.facts import Argument
from cq.syntax.branches import add_if
from cq.syntax.collect import DEFINED
from cq.syntax.excerpt import clip
from cq.syntax.language import ARG_TEXT, CALLEE_TEXT, MAX_ARGS, ROLE_NUMBER, Draft, Language
from cq.syntax.tree import (
    Captures,
    Node,
    all_children_of,
    child_at,
    child_count_of,
    children_of,
    end_of,
    field_of,
    kind_id_of,
    kind_of,
    start_of,
)

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

_ASSIGNMENT = ROLE_NUMBER["assignment"]
_CALL = ROLE_NUMBER["call"]
_DECORATOR = ROLE_NUMBER["decorator"]
_IMPORT = ROLE_NUMBER["import"]
_LABEL = ROLE_NUMBER["label"]
_REFERENCE = ROLE_NUMBER["reference"]
_TYPE = ROLE_NUMBER["type"]
_VALUE_TEXT = 120
_PATH_TEXT = 1000  # a path of nested use lists longer than this is not expanded further
_MAX_WRAPS = 8  # `&(x.await?)`: so many layers are looked through, so that `x????…` stays linear

_WORDS = frozenset({"async", "const", "unsafe", "extern", "mut", "static", "default", "auto", "gen", "safe"})
_VISIBILITY = re.compile(r"(pub\b(?:\s*\([^)]*\))?|crate\b)\s*")
_INNER_DOC = re.compile(rb"\{\s*(?=//!|/\*!)")
_DOC_ATTRIBUTE = re.compile(r"#\[\s*doc\s*=\s*r?(#*)\"(.*)\"\1\s*\]", re.DOTALL)
_MACRO_ITEM = re.compile(rb"\bmacro[ \t]+([A-Za-z_]\w*)\s*(\([^(){}]*\)\s*)?\{")
_MACRO_LEAD = re.compile(rb"[ \t]*(?:(pub\b(?:\s*\([^)]*\))?)\s+)?\Z")
_BRACE = re.compile(rb"[{}]|//[^\n]*|/\*.*?\*/|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\\n]|\\.)'", re.DOTALL)

_LAST_NAME = re.compile(rb"(?<![\w\x80-\xff])([A-Za-z_\x80-\xff][\w\x80-\xff]*)\Z")
_RAW_NAME = re.compile(rb"r#(?=[A-Za-z_\x80-\xff])(?<!\w..)")  # what it begins with is searched fast
_PLAIN_ARGUMENT = re.compile(r"&?(?:mut )?(?:[A-Za-z_]\w*(?:(?:\.|::)(?!await\b)\w+)*|\d\w*)|\"[^\"\\\n]*\"", re.ASCII)
_PLAIN_ARGUMENTS = re.compile(rf"\((?:{_PLAIN_ARGUMENT.pattern})(?:, (?:{_PLAIN_ARGUMENT.pattern}))*\)".encode())
_WRAPPED = frozenset(
    {"try_expression", "await_expression", "reference_expression", "parenthesized_expression", "unary_expression"}
)
_STATEMENTS = frozenset(
    {"let_declaration", "expression_statement", "empty_statement", "attribute_item", "inner_attribute_item",
     "line_comment", "block_comment"}
)  # fmt: skip
_PANICS = frozenset({"panic", "unreachable", "todo", "unimplemented"})
_PATTERN_MACROS = frozenset({"matches", "assert_matches", "debug_assert_matches"})
_CALLABLE_TRAITS = frozenset({b"Fn", b"FnMut", b"FnOnce", b"AsyncFn", b"AsyncFnMut", b"AsyncFnOnce"})
# The grammar reads these words as identifiers inside a token tree.
_LOOSE_WORDS = frozenset({b"else", b"in", b"move", b"ref", b"dyn", b"extern", b"box", b"yield", b"try"})

# What a token of a macro can mean for a call; 0 is everything else, which ends an expression.
_NAME, _HEAD, _VALUE, _NUMBER, _DOT, _PATH, _BANG, _TREE, _LESS, _MORE, _MORE_MORE, _QUESTION, _AWAIT, _COMMA, _HASH, \
    _ARROW, _INTRO, _IF, _QUOTE, _SEMICOLON, _EQUALS, _PREFIX, _MUT, _PIPE, _RANGE, _COMMENT = range(1, 27)  # fmt: skip
_NAMED_TOKENS = {
    "identifier": _NAME, "self": _HEAD, "super": _HEAD, "crate": _HEAD, "primitive_type": _HEAD, "metavariable": _HEAD,
    "string_literal": _VALUE, "raw_string_literal": _VALUE, "char_literal": _VALUE, "boolean_literal": _VALUE,
    "integer_literal": _NUMBER, "float_literal": _NUMBER, "token_tree": _TREE, "token_repetition": _TREE,
    "mutable_specifier": _MUT, "line_comment": _COMMENT, "block_comment": _COMMENT,
}  # fmt: skip
_PLAIN_TOKENS = {
    ".": _DOT, "::": _PATH, "!": _BANG, "<": _LESS, ">": _MORE, ">>": _MORE_MORE, "?": _QUESTION, "await": _AWAIT,
    ",": _COMMA, "#": _HASH, "=>": _ARROW, "if": _IF, "'": _QUOTE, ";": _SEMICOLON, "=": _EQUALS, "&": _PREFIX,
    "*": _PREFIX, "-": _PREFIX, "|": _PIPE, "||": _PIPE, "..": _RANGE, "default": _NAME, "union": _NAME,
    **dict.fromkeys(("fn", "let", "struct", "enum", "trait", "mod", "impl", "type", "use", "pub"), _INTRO),
}  # fmt: skip
_JOINTS = frozenset({_DOT, _PATH})
_STOPS = frozenset({_COMMA, _SEMICOLON})
_PASSED = frozenset({_QUESTION, _DOT, _AWAIT})  # behind a call whose result they open
_LITERAL_KINDS = frozenset({"string", "number", "boolean"})
_VALUES = frozenset({_HEAD, _VALUE, _NUMBER, _AWAIT})
_PATH_TOKENS = frozenset({_NAME, _HEAD, _DOT, _PATH, _NUMBER})
_CHAIN_TOKENS = _PATH_TOKENS | {_TREE, _BANG, _QUESTION, _AWAIT, _LESS, _MORE, _VALUE}
_Summary = tuple[tuple[Argument, ...], int, tuple[str, ...]]
_Values = tuple[Value, ...]
_Arguments = tuple[_Summary, _Values, Keywords]  # what is written, values by position and by name


class Rust(Language):
    argument_kinds = {
        "string_literal": "string", "raw_string_literal": "string", "char_literal": "string",
        "integer_literal": "number", "float_literal": "number", "negative_literal": "number",
        "boolean_literal": "boolean", "unit_expression": "null", "identifier": "name", "self": "name",
        "field_expression": "attribute", "scoped_identifier": "attribute", "call_expression": "call",
        "macro_invocation": "call", "array_expression": "array", "tuple_expression": "array",
        "struct_expression": "object", "closure_expression": "function",
    }  # fmt: skip
    root_kinds = {
        "use_declaration": "import", "extern_crate_declaration": "import", "expression_statement": "expression",
        "macro_invocation": "expression", "attribute_item": "attribute",
    }  # fmt: skip
    comment_kinds = ("line_comment", "block_comment")
    doc_prefixes = (b"///", b"/**")
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

    @cached_property
    def tokens(self) -> dict[int, int]:
        found = {self.grammar.find_kind(name): token for name, token in _NAMED_TOKENS.items()}
        found |= {self.grammar.find_sign(name): token for name, token in _PLAIN_TOKENS.items()}
        return {number: token for number, token in found.items() if number is not None}

    @cached_property
    def wrapped_ids(self) -> frozenset[int]:
        return frozenset(number for name in _WRAPPED if (number := self.grammar.find_kind(name)))

    def chunk_kind(self, node: Node) -> str:
        kind = super().chunk_kind(node)
        first = child_at(node, 0) if kind_of(node) == "use_declaration" else None
        return "export" if first is not None and kind_of(first) == "visibility_modifier" else kind

    # -- definitions -----------------------------------------------------------------------------

    def on_symbol(self, collector: Collector, kind: str, node: Node, captures: Captures) -> Draft | None:
        name = field_of(node, "type" if kind == "impl" else "name")
        if name is None and kind == "namespace":
            name = next((child for child in children_of(node) if kind_of(child) == "extern_modifier"), None)
        if name is None:
            return None
        start, end, name_start, name_end = start_of(node), end_of(node), start_of(name), end_of(name)
        if name_start == name_end:
            return None  # the parser made up what is missing
        draft = Draft(kind, collector.slice(name_start, name_end), start, end, name_start, name_end, head=start)
        if kind == "type_parameter":
            draft.signature = _excerpt(collector.text, start, end, _VALUE_TEXT)
        elif kind == "field":
            annotation = field_of(node, "type")
            if annotation is None:
                return None
            self._add_annotation(collector, start, end, draft.name, annotation)
            collector.remarks.append((start, draft.name, collector.slice(start_of(annotation), end_of(annotation))))
            draft.signature = _excerpt(collector.text, start, end, _VALUE_TEXT)
        elif kind == "constant":
            self._add_constant(collector, node, draft)
        elif kind == "impl":
            self._add_impl(collector, node, name, draft)
        elif kind == "macro":
            draft.body_start, draft.body_end, draft.scope_start = name_end, end, start
            draft.signature = collector.fold(start, name_end)
        else:
            body = field_of(node, "body") if kind != "enum_member" else None
            if body is None and kind_of(node) == "function_item":
                return None
            if body is not None and collector.text[start_of(body) : start_of(body) + 1] == b"{":
                draft.body_start, draft.body_end, draft.scope_start = start_of(body), end_of(body), start
                draft.signature = collector.fold(start, start_of(body)).rstrip(" ,")
                if kind == "function":
                    self._add_tail(collector, body)
            else:
                draft.signature = collector.fold(start, end).rstrip(" ,;")
                if kind == "function":
                    draft.scope_start = start
            if kind == "trait":
                bounds = field_of(node, "bounds")
                if bounds is not None:
                    draft.bases = self._types(collector, bounds)
            elif kind == "module" and body is None:
                binding = (draft.name, "*", name_start, name_end, False)
                module = draft.name.removeprefix("r#")
                collector.add_import("mod", module, start, end, [binding])
                collector.code.binds.append((end, start - 1, module, Imported(0, f"mod {module}", "*"), -1))
        if kind != "type_parameter" and name_start > start:
            head = collector.text[start:name_start]
            draft.modifiers, draft.exported = _read_head(head if kind != "impl" else head.partition(b"impl")[0])
            if kind == "constant" and "mut" in draft.modifiers:
                draft.kind = "variable"
        elif kind == "namespace":
            draft.modifiers = ("extern",)
        if draft.body_start >= 0 and _INNER_DOC.match(collector.text, draft.body_start):
            draft.doc = self._inner_doc(collector, draft.body_start + 1)
        collector.symbols.append(draft)
        self._add_definition(collector, kind, draft)
        return draft

    def _add_definition(self, collector: Collector, kind: str, draft: Draft) -> None:
        code, start = collector.code, draft.start
        if kind == "macro" or kind == "module":
            if kind == "macro" or draft.body_start >= 0:
                code.definitions[start] = ("macro" if kind == "macro" else "mod", (), None, (), ())
            if kind == "macro":
                code.entries.append(Entry("macro", draft.name, start))
        elif kind in _DEFINED:
            known = read_signature(kind, draft.signature)
            code.definitions[start] = known
            if kind == "impl":
                code.entries.append(Entry("impl of type", _impl_name(known[2], known[4]), start))
                if known[3]:
                    code.entries.append(Entry("impl of trait", _impl_name(known[3][0], ()), start))

    def _add_constant(self, collector: Collector, node: Node, draft: Draft) -> None:
        """Consts and statics open a scope: their initializer is code of their own."""
        kind, value = field_of(node, "type"), field_of(node, "value")
        start, end = start_of(node), end_of(node)
        signature_end = end
        if kind is not None:
            self._add_annotation(collector, start, end, draft.name, kind)
        if value is not None:
            draft.scope_start = start
            if end_of(value) - start_of(value) > ARG_TEXT:
                signature_end = start_of(value)
            self._add_assignment(collector, node, draft.name, value)
        draft.signature = collector.fold(start, signature_end).rstrip(" ;=")

    def _add_impl(self, collector: Collector, node: Node, kind: Node, draft: Draft) -> None:
        """`impl<T> fmt::Display for &Foo<T>` is `Foo` with the base `fmt::Display`: its methods read `Foo.fmt`."""
        body, trait = field_of(node, "body"), field_of(node, "trait")
        for _ in range(_MAX_WRAPS):
            inner = field_of(kind, "type") or field_of(kind, "trait")
            inner = field_of(kind, "name") if kind_of(kind) == "scoped_type_identifier" else inner
            if inner is None or kind_of(kind) in ("tuple_type", "array_type", "function_type"):
                break
            kind = inner
        draft.name_start, draft.name_end = start_of(kind), end_of(kind)
        draft.name = clip(collector.text, start_of(kind), end_of(kind), ARG_TEXT)
        end = draft.end
        if body is not None:
            end = start_of(body)
            draft.body_start, draft.body_end, draft.scope_start = end, end_of(body), draft.start
        draft.signature = collector.fold(draft.start, end).rstrip(" ,;")
        if trait is not None and collector.text[start_of(trait) - 1 : start_of(trait)] != b"!":
            draft.bases = (collector.fold(start_of(trait), end_of(trait)),)

    def _types(self, collector: Collector, bounds: Node) -> tuple[str, ...]:
        return tuple(
            collector.fold(start_of(child), end_of(child))
            for child in children_of(bounds)
            if kind_of(child) not in ("lifetime", "line_comment", "block_comment")
        )

    def _add_tail(self, collector: Collector, body: Node) -> None:
        """The last expression of a body is what it returns; a loop has no value."""
        for index in range(child_count_of(body) - 1, max(child_count_of(body) - 4, -1), -1):
            value = child_at(body, index)
            kind = "" if value is None else kind_of(value)
            if value is None or kind in ("line_comment", "block_comment"):
                continue
            if kind == "expression_statement":
                if collector.text[end_of(value) - 1 : end_of(value)] != b"}":
                    return
                value = child_at(value, 0) or value
            elif kind in _STATEMENTS or kind.endswith(("_item", "_definition", "_declaration")):
                return
            if kind_of(value) not in ("while_expression", "for_expression", "loop_expression"):
                self._add_return(collector, value, value)
            return

    def on_parameter(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        start, end = start_of(node), end_of(node)
        if kind == "self":
            name_start = end - 4
            if not collector.text.startswith(b"self", max(start, name_start)):
                return
            modifiers = ("mut",) if b"mut" in collector.text[start:name_start] else ()
            collector.symbols.append(
                Draft("parameter", "self", start, end, name_start, end, head=start, modifiers=modifiers,
                      signature=_excerpt(collector.text, start, end, _VALUE_TEXT))
            )  # fmt: skip
            return
        pattern: Node | None = node
        if kind == "closure":
            if kind_of(node) == "parameter":
                return
        else:
            pattern = field_of(node, "pattern")
            if pattern is None:
                return
            annotation = field_of(node, "type")
            if annotation is not None:
                self._add_annotation(collector, start, end, _text(collector, pattern).removeprefix("r#"), annotation)
        signature = _excerpt(collector.text, start, end, _VALUE_TEXT)
        modifiers = ("mut",) if collector.text.startswith(b"mut ", start) else ()
        # `|(a, b)|`, `Point { x, .. }: Point`: every name is a parameter.
        names = [pattern] if kind_of(pattern) in ("identifier", "self") else _bound_names(collector, pattern)
        for name in names:
            name_start, name_end = start_of(name), end_of(name)
            if name_start == name_end:
                continue
            collector.marks[name_start] = DEFINED
            span = (start, end) if len(names) == 1 else (name_start, name_end)
            collector.symbols.append(
                Draft("parameter", collector.slice(name_start, name_end), *span, name_start, name_end, head=span[0],
                      signature=signature, modifiers=modifiers)
            )  # fmt: skip

    def on_bind(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """A name in a pattern; one in capitals (`None`, `MAX`) is a constant or a variant, not a binding."""
        start, end = start_of(node), end_of(node)
        if start == end or 65 <= collector.text[start] <= 90 or collector.marks.get(start) == DEFINED:
            return
        name = collector.slice(start, end)
        collector.symbols.append(Draft("variable", name, start, end, start, end, head=start, signature=name))

    def on_let(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        target = field_of(node, "pattern")
        if target is None:
            return
        annotation, value = field_of(node, "type"), field_of(node, "value")
        text, start, end = collector.text, start_of(node), end_of(node)
        name_start, name_end = start_of(target), end_of(target)
        name = _text(collector, target).removeprefix("r#")
        if annotation is not None:
            self._add_annotation(collector, start, end, name, annotation)
        if value is not None:
            self._add_assignment(collector, node, name, value)
        bound = None if value is None else read_value(collector, value)
        if annotation is not None:
            bound = Typed(read_type(text[start_of(annotation) : end_of(annotation)]), bound)
        bind_pattern(collector, target, bound, end, start, IN_BLOCK)
        if kind_of(target) != "identifier" or name_start == name_end:
            return
        signature = _excerpt(text, start, end, _VALUE_TEXT)
        draft = Draft("variable", name, start, end, name_start, name_end, head=start, signature=signature)
        if b"mut" in text[start:name_start]:
            draft.modifiers = ("mut",)
        if value is not None and kind_of(value) == "closure_expression":
            body = field_of(value, "body")
            if body is not None:
                draft.kind = "function"
                draft.body_start, draft.body_end, draft.scope_start = start_of(body), end_of(body), start_of(value)
                draft.signature = collector.fold(start, start_of(body))
                if kind_of(body) == "block":
                    self._add_tail(collector, body)
                else:
                    self._add_return(collector, body, body)
        collector.symbols.append(draft)

    # -- calls -----------------------------------------------------------------------------------

    def each_call(self, collector: Collector, kind: str, nodes: list[Node]) -> None:
        if kind == "macro":
            for node in nodes:
                callee = field_of(node, "macro")
                tree = next((child for child in children_of(node) if kind_of(child) == "token_tree"), None)
                if callee is not None and tree is not None:
                    self._add_macro(collector, node, callee, tree)
        elif kind == "new":
            for node in nodes:
                callee, body = field_of(node, "name"), field_of(node, "body")
                if callee is not None and body is not None:
                    self._add_literal(collector, node, callee, body)
        else:
            self._add_calls(collector, nodes)

    def _add_calls(self, collector: Collector, nodes: list[Node]) -> None:
        text, marks, calls = collector.text, collector.marks, collector.calls
        for node in nodes:
            # Fields are looked up here: a query that captures them costs the square of a chain's length.
            parts = all_children_of(node)
            if len(parts) == 2:
                callee, arguments = parts
            else:
                callee, arguments = field_of(node, "function"), field_of(node, "arguments")
                if callee is None or arguments is None:
                    continue
            first, last, end = start_of(callee), end_of(callee), end_of(node)
            known = _read_plain_callee(text[first:last]) if last - first < _SHORT else None
            if known is not None:
                raw, name, receiver, target = known
                name_start = last - len(name)
            else:
                raw, name, receiver, name_start = self._split_callee(collector, callee, first, last)
                target = read_callee(text, first, last, name, name_start, "call")
                if target is None:
                    target = self._callee_value(collector, callee, name)
            if name_start >= 0:
                marks[name_start] = _CALL
            summary, args = _NO_SUMMARY, ()
            if end - last > 2:
                # Most calls pass a few plain names and literals, and the same again: no nodes are needed for those.
                plain = _read_plain_arguments(text[last:end]) if end - last < ARG_TEXT else None
                if plain is not None:
                    summary, args = plain[:2]
                else:
                    summary = self.summarize_arguments(collector, arguments)
                    args = read_arguments(collector, arguments, end)[:_MAX_VALUES]
            elif name == "collect" and kind_of(callee) == "generic_function":
                kinds = field_of(callee, "type_arguments")
                if kinds is not None:
                    args = (Typed(read_type(text[start_of(kinds) + 1 : end_of(kinds) - 1]), None),)
            calls.append((first, end, name_start, "call", raw, name, receiver, *summary, target, args, ()))

    def _split_callee(self, collector: Collector, callee: Node, first: int, last: int) -> tuple[str, str, str, int]:
        """Its text, its last name, what stands before that, and where the name begins."""
        text = collector.text
        raw = name = receiver = ""
        if last - first <= CALLEE_TEXT:
            raw = text[first:last].decode("utf-8", "replace")
            if "\n" in raw:
                raw = " ".join(raw.split())
            receiver, _, name = raw.rpartition(".")
            if not name.isidentifier():
                receiver, _, name = raw.rpartition("::")
        if name.isidentifier() and name.isascii():
            return raw, name, receiver.rstrip(), last - len(name)
        raw = raw or clip(text, first, last, CALLEE_TEXT)
        name, name_start = self._last_name(collector, callee)
        return raw, name, _receiver(collector, first, name_start), name_start

    def _callee_value(self, collector: Collector, callee: Node, name: str) -> Value:
        """A method on what is no plain name or call."""
        if kind_of(callee) == "generic_function":
            callee = field_of(callee, "function") or callee
        if kind_of(callee) != "field_expression":
            return read_value(collector, callee)
        base = field_of(callee, "value")
        value = None if base is None else read_value(collector, base)
        return None if value is None else MethodOf(value, name)

    def _last_name(self, collector: Collector, callee: Node) -> tuple[str, int]:
        """`a::b::<T>` and `a.b::<T>` are called b; `f(1)` and `a[0]` have no name."""
        if kind_of(callee) == "generic_function":
            callee = field_of(callee, "function") or callee
        found = _LAST_NAME.search(collector.text, max(start_of(callee), end_of(callee) - 256), end_of(callee))
        return ("", -1) if found is None else (found[1].decode("utf-8", "replace"), found.start(1))

    def call_target(self, collector: Collector, call: Node) -> str:
        callee = field_of(call, "function")
        if callee is not None:
            return _text(collector, callee)
        callee = field_of(call, "macro")
        if callee is not None:
            return _text(collector, callee) + "!"
        callee = field_of(call, "name")
        return "" if callee is None else _text(collector, callee)

    @cached_property
    def value_ids(self) -> dict[int, str]:
        # A struct literal is a Call of kind `new`: as a value it is a call, which starts where that Call starts.
        return {number: "call" if kind == "object" else kind for number, kind in self.argument_ids.items()}

    def value_kind(self, node: Node) -> str:
        return self.value_ids.get(kind_id_of(node), "other")

    def summarize_arguments(self, collector: Collector, node: Node) -> _Summary:
        text, kinds = collector.text, self.argument_ids
        summaries: list[Argument] = []
        positional = 0
        for child in children_of(node):
            kind, value = kinds.get(kind_id_of(child)), child
            if kind is None:
                if kind_of(child) == "attribute_item":
                    continue
                value = self._unwrap(child)
                kind = kinds.get(kind_id_of(value), "other")
            elif kind == "comment":
                continue
            positional += 1
            if positional <= MAX_ARGS:
                start, end = start_of(child), end_of(child)
                depth = self.shape_depth(value) if kind in _NESTED else 0
                summaries.append(Argument(kind, _excerpt(text, start, end, ARG_TEXT), "", depth))
        return tuple(summaries), positional, ()

    def _unwrap(self, node: Node) -> Node:
        """`&mut f().await?` -> `f()`: the value that the wrappers are about."""
        wrapped = self.wrapped_ids
        for _ in range(_MAX_WRAPS):
            if kind_id_of(node) not in wrapped:
                break
            inner = field_of(node, "value") or child_at(node, 0)
            if inner is None:
                break
            node = inner
        return node

    def _add_literal(self, collector: Collector, node: Node, callee: Node, body: Node) -> None:
        """`Point { x: 1, y }`: a `new` with its fields as keywords, each also an assignment to `Point.x`."""
        owner = _text(collector, callee)
        text = collector.text
        args: list[Argument] = []
        keywords: list[tuple[str, Value]] = []
        for child in children_of(body):
            start, end = start_of(child), end_of(child)
            if kind_of(child) == "field_initializer":
                field, value = field_of(child, "field"), field_of(child, "value")
                if field is None or value is None:
                    continue
                name = collector.slice(start_of(field), end_of(field))
                collector.marks[start_of(field)] = _ASSIGNMENT
            elif kind_of(child) == "shorthand_field_initializer":
                value = child_at(child, child_count_of(child) - 1) if child_count_of(child) else None
                if value is None:
                    continue
                name = collector.slice(start_of(value), end_of(value))
            elif kind_of(child) == "base_field_initializer":
                if len(args) < MAX_ARGS:
                    args.append(Argument("spread", clip(text, start, end, ARG_TEXT), "", 0, True))
                continue
            else:
                continue
            source = self._unwrap(value)
            self._add_assignment(collector, child, f"{owner}.{name}", value)
            keywords.append((name, read_value(collector, value)))
            if len(args) < MAX_ARGS:
                kind = self.argument_ids.get(kind_id_of(source), "other")
                depth = self.shape_depth(source) if kind in _NESTED else 0
                args.append(Argument(kind, _text(collector, value, ARG_TEXT), name, depth))
        summary = (tuple(args), 0, tuple([name for name, _ in keywords]))
        given = (summary, (), tuple(keywords))
        self._append_call(collector, "new", callee, self._last_of_path(callee), end_of(node), given)

    def _last_of_path(self, path: Node) -> Node:
        """The node of the last name: `a::B::<T>` -> B."""
        for _ in range(_MAX_WRAPS):
            if not child_count_of(path):
                break
            path = field_of(path, "name") or field_of(path, "type") or path
        return path

    def _append_call(
        self, collector: Collector, kind: str, callee: Node, name: Node, end: int, given: _Arguments, role: int = _CALL
    ) -> None:
        self._append_span(collector, kind, start_of(callee), end_of(callee), name, end, given, role)

    def _append_span(
        self, collector: Collector, kind: str, start: int, callee_end: int, name: Node, end: int, given: _Arguments,
        role: int = _CALL,
    ) -> None:  # fmt: skip
        name_start = start_of(name)
        receiver = _receiver(collector, start, name_start)
        callee = _excerpt(collector.text, start, callee_end, CALLEE_TEXT - 1) + ("!" if kind == "macro" else "")
        word = collector.slice(name_start, end_of(name))
        if word.startswith("r#"):
            word, name_start = word[2:], name_start + 2
        if word:
            collector.marks[name_start] = role
        else:
            name_start, receiver = -1, ""  # the parser made up a name
        target = read_callee(collector.text, start, callee_end, word, name_start, kind)
        summary, args, keywords = given
        if kind == "macro" and word in FORMATTING:
            args = join_format(args, dict(keywords))
        collector.calls.append((start, end, name_start, kind, callee, word, receiver, *summary, target, args, keywords))

    # -- macros and attributes ---------------------------------------------------------------------

    def _add_macro(self, collector: Collector, node: Node, callee: Node, tree: Node) -> None:
        name = self._last_of_path(callee)
        start, end = start_of(node), end_of(node)
        given, inner = self._open_tree(collector, tree)
        self._append_call(collector, "macro", callee, name, end, given)
        word = collector.calls[-1][5]
        if word in _PANICS:
            collector.flows.append((start, end, "raise", "", f"{_text(collector, callee)}!", "call", start))
        if inner is not None:
            self._read_tokens(collector, *inner, word in _PATTERN_MACROS)

    def on_tokens(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        _, inner = self._open_tree(collector, node)
        if inner is not None:
            self._read_tokens(collector, *inner, False)

    def _open_tree(self, collector: Collector, tree: Node) -> tuple[_Arguments, tuple[list[Node], list[int]] | None]:
        """The arguments that a token tree holds, and its tokens unless there is nothing to find among them."""
        text, start, end = collector.text, start_of(tree), end_of(tree)
        if end - start == 2:
            return _NO_ARGUMENTS, None
        plain = _read_plain_arguments(text[start:end]) if end - start < ARG_TEXT else None
        if plain is not None:
            return plain, None
        tokens, children = self.tokens, all_children_of(tree)
        kinds = [tokens.get(kind_id_of(child), 0) for child in children]
        return self._read_token_arguments(text, children, kinds), (children, kinds)

    def _read_tokens(self, collector: Collector, children: list[Node], kinds: list[int], is_match: bool) -> None:
        """Calls, labels and ranges among the tokens of a macro; each token is looked at once.

            assert_eq!(foo(x), bar.baz::<T>(), vec![a::b(1)])

        A name is called when a `(` tree follows it, or `!` and any tree. What stands before `=>`, and what
        `matches!` has behind its comma, is a pattern and calls nothing.
        """
        text, marks, calls = collector.text, collector.marks, collector.calls
        # tokens, whether a pattern begins behind the first comma, whether this is one already
        todo: list[tuple[list[Node], list[int], bool, bool]] = [(children, kinds, is_match, False)]
        while todo:
            children, kinds, is_match, quiet = todo.pop()
            chain = name_start = callee_end = -1  # of the expression that the last token ended
            name: Node | None = None
            joint = last = angle = 0
            intro = pending = False
            arm, arm_todo, guard, guard_todo = len(calls), len(todo), -1, -1
            for child, token in zip(children, kinds, strict=True):
                if token == _COMMENT:
                    continue
                if angle:
                    angle += (token == _LESS) - (token == _MORE) - 2 * (token == _MORE_MORE)
                    if angle <= 0:
                        angle, callee_end, joint = 0, end_of(child), 0
                elif token == _NAME:
                    start, end = start_of(child), end_of(child)
                    word = text[start:end] if end - start < 7 else b""
                    if last == _QUOTE:
                        marks[start] = _LABEL
                        chain, name = -1, None
                    elif word in _LOOSE_WORDS:
                        chain, name, pending = -1, None, word == b"dyn"
                    else:
                        if last == _RANGE:
                            marks[start] = _REFERENCE
                        if not joint or chain < 0:
                            chain, intro = start, pending
                        name, name_start, callee_end, pending = child, start, end, False
                    joint = 0
                elif token == _TREE:
                    start = start_of(child)
                    opener = text[start]
                    hushed = quiet or last == _HASH
                    given, inner = self._open_tree(collector, child)
                    is_macro = last == _BANG
                    called = name is not None and not joint and not intro and not hushed
                    if called and not is_macro:
                        called = opener == 40 and text[name_start:callee_end] not in _CALLABLE_TRAITS
                    if name is not None and called:
                        kind = "macro" if is_macro else "call"
                        self._append_span(collector, kind, chain, callee_end, name, end_of(child), given)
                    elif opener == 123 or last == _HASH:
                        chain = -1
                    elif chain < 0:
                        chain = start
                    if inner is not None:
                        todo.append((*inner, called and is_macro and calls[-1][5] in _PATTERN_MACROS, hushed))
                    name, joint, pending = None, 0, False
                    if opener == 123:
                        arm, arm_todo, guard = len(calls), len(todo), -1
                elif token in _JOINTS:
                    if chain < 0 and token == _PATH:
                        chain, name = start_of(child), None
                    joint = token if chain >= 0 else 0
                    if token == _DOT:
                        name = None
                elif token in _VALUES:
                    if not joint:
                        chain = start_of(child)
                    name, joint, pending, intro = None, 0, False, False
                elif token == _LESS and joint == _PATH and name is not None:
                    angle = 1
                elif (token == _BANG and name is not None and not joint) or (token == _QUESTION and name is None):
                    joint = 0
                else:
                    if token == _ARROW:
                        # Everything since the last arm was its pattern, up to the `if` of a guard.
                        self._forget(collector, arm, len(calls) if guard < 0 else guard)
                        for index in range(arm_todo, len(todo) if guard < 0 else guard_todo):
                            todo[index] = (*todo[index][:3], True)
                        arm, arm_todo, guard = len(calls), len(todo), -1
                    elif token in _STOPS:
                        arm, arm_todo, guard = len(calls), len(todo), -1
                        quiet = quiet or (is_match and token == _COMMA)
                    elif token == _IF:
                        guard, guard_todo = len(calls), len(todo)
                        quiet = quiet and not is_match
                    chain, name, joint, pending = -1, None, 0, token == _INTRO
                last = token

    def _forget(self, collector: Collector, first: int, last: int) -> None:
        for call in collector.calls[first:last]:
            collector.marks.pop(call[2], None)
        del collector.calls[first:last]

    def _read_token_arguments(self, text: bytes, children: list[Node], kinds: list[int]) -> _Arguments:
        """The arguments of a macro, cut at its commas; `x = 1` is a keyword."""
        args: list[Argument] = []
        values: list[Value] = []
        keywords: list[tuple[str, Value]] = []
        last = len(kinds) - 1
        first = 1
        while first < last:
            try:
                cut = kinds.index(_COMMA, first, last)
            except ValueError:
                cut = last
            start, stop, first = first, cut, cut + 1
            while start < stop and kinds[start] == _COMMENT:
                start += 1
            while start < stop and kinds[stop - 1] == _COMMENT:
                stop -= 1
            if start == stop:
                continue
            name = ""
            if stop - start > 2 and kinds[start + 1] == _EQUALS and kinds[start] == _NAME:
                name = text[start_of(children[start]) : end_of(children[start])].decode("utf-8", "replace")
                start += 2
            value: Value = None
            if len(args) < MAX_ARGS:
                begin, end = start_of(children[start]), end_of(children[stop - 1])
                kind = self._token_kind(text, children[start:stop], kinds[start:stop])
                value = _read_token_value(text, kind, children[start:stop], kinds[start:stop])
                depth = 0
                if kind in _NESTED:
                    outer = _OPENS.search(text, begin, end)
                    depth = 2 if outer is not None and _OPENS.search(text, outer.end(), end) is not None else 1
                args.append(Argument(kind, _excerpt(text, begin, end, ARG_TEXT), name, depth))
            if name:
                keywords.append((name, value))
            else:
                values.append(value)
        summary = (tuple(args), len(values), tuple([name for name, _ in keywords]))
        return summary, tuple(values[:_MAX_VALUES]), tuple(keywords)

    def _token_kind(self, text: bytes, part: list[Node], kinds: list[int]) -> str:
        first = 0
        while first < len(kinds) - 1 and kinds[first] in (_PREFIX, _MUT, _BANG):
            first += 1
        head = part[first]
        if first == len(kinds) - 1:
            if kinds[first] == _TREE:
                return "object" if text[start_of(head)] == 123 else "array"
            # `default` is a keyword to the grammar here, and mostly a name.
            return "name" if kinds[first] == _NAME else self.argument_ids.get(kind_id_of(head), "other")
        if kinds[first] == _PIPE or text[start_of(head) : end_of(head)] == b"move":
            return "function"
        seen = set(kinds[first:])
        if seen <= _PATH_TOKENS:
            return "attribute"
        if seen <= _CHAIN_TOKENS and kinds[first] != _TREE:
            if kinds[-1] == _TREE and text[start_of(part[-1])] == 123 and _BANG not in seen:
                return "object"
            return "call" if kinds[-1] in (_TREE, _QUESTION, _AWAIT) else "attribute" if kinds[-1] == _NAME else "other"
        return "other"

    def on_decorator(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """`#[path::name(args)]` calls name; `#[derive(A, b::C)]` calls A and C, and is no call itself."""
        callee, args = child_at(node, 0), field_of(node, "arguments")
        if callee is None:
            return
        start, end = start_of(node), end_of(node)
        collector.spans.append((start, end, _DECORATOR))
        word = collector.text[start_of(callee) : end_of(callee)]
        if word == b"doc" and args is None:
            return
        if word != b"derive" or args is None:
            given = _NO_ARGUMENTS if args is None else self._open_tree(collector, args)[0]
            self._append_call(collector, "decorator", callee, self._last_of_path(callee), end, given, _DECORATOR)
            return
        entry, name = -1, None
        for child in all_children_of(args):
            token = self.tokens.get(kind_id_of(child), 0)
            if token in _PATH_TOKENS:
                entry = start_of(child) if entry < 0 else entry
                name = child if token == _NAME else name
            else:
                if name is not None:
                    end = end_of(name)
                    self._append_span(collector, "decorator", entry, end, name, end, _NO_ARGUMENTS, _DECORATOR)
                entry, name = -1, None

    # -- imports ---------------------------------------------------------------------------------

    def on_import(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        start, end, tree = start_of(node), end_of(node), field_of(node, _IMPORTED[kind])
        if tree is None:
            return
        collector.spans.append((start, end, _IMPORT))
        if kind == "crate":
            alias = field_of(node, "alias") or tree
            module = _name(collector, tree)
            binding = (_name(collector, alias), "*", start_of(alias), end_of(alias), False)
            collector.add_import("import", module, start, end, [binding])
            collector.code.binds.append((end, start, binding[0], Imported(0, f"::{module}", "*"), -1))
            return
        passes_on = collector.text.startswith((b"pub", b"crate"), start)
        kind = "reexport" if passes_on else "use"
        modules, stars = self._expand(collector, tree)
        binds = collector.code.binds
        for module, bindings in modules.items():
            collector.add_import(kind, module, start, end, bindings)
            binds += [(end, start, local, Imported(0, module, name), -1) for local, name, *_ in bindings]
            if passes_on:
                for local, imported, first, last, _ in bindings:
                    collector.exports.append((first, imported, local, last, module, False))
        for module, first, last in stars:
            collector.add_import("reexport" if passes_on else "star", module, start, end, [])
            binds.append((end, start, "*", Imported(0, module, "*"), -1))
            if passes_on:
                collector.exports.append((first, "*", "*", last, module, False))

    def _expand(
        self, collector: Collector, tree: Node
    ) -> tuple[dict[str, list[tuple[str, str, int, int, bool]]], list[tuple[str, int, int]]]:
        """The bindings of a use tree by module, and its globs.

        `use a::{self, b::{c as d}, e::*}` binds a to a itself, d to c of a::b, and has a glob of a::e.
        """
        modules: dict[str, list[tuple[str, str, int, int, bool]]] = {}
        stars: list[tuple[str, int, int]] = []
        todo = [(tree, "")]
        while todo:
            node, prefix = todo.pop()
            kind = kind_of(node)
            alias = None
            if kind == "use_as_clause":
                alias, path = field_of(node, "alias"), field_of(node, "path")
                if alias is None or path is None:
                    continue
                node, kind = path, kind_of(path)
            if kind == "use_list" or kind == "scoped_use_list":
                path, members = field_of(node, "path"), field_of(node, "list")
                if path is not None:
                    prefix = _join(prefix, _path_text(collector, path))
                members = node if kind == "use_list" else members
                if members is not None and len(prefix) < _PATH_TEXT:
                    todo += [(member, prefix) for member in reversed(children_of(members))]
            elif kind == "use_wildcard":
                path = child_at(node, 0)
                module = prefix if path is None else _join(prefix, _path_text(collector, path))
                stars.append((module, start_of(node), end_of(node)))
            elif kind in ("identifier", "self", "super", "crate", "scoped_identifier"):
                name = field_of(node, "name") or node
                path = field_of(node, "path") if kind == "scoped_identifier" else None
                imported = _name(collector, name)
                module = prefix if path is None else _join(prefix, _path_text(collector, path))
                if imported == "self" and module:
                    imported = ""
                elif not module:
                    module = _path_text(collector, node)
                    imported = ""
                bound = alias or name
                local = _name(collector, alias) if alias is not None else imported or module.rpartition("::")[2]
                modules.setdefault(module, []).append((local, imported or "*", start_of(bound), end_of(bound), False))
        return modules, stars

    # -- flows -----------------------------------------------------------------------------------

    def on_flow(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        if kind == "return":
            value = child_at(node, 0)
            if value is None:
                collector.add_flow(self, "return", node, None, None)
            else:
                self._add_return(collector, node, value)
            return
        if kind == "augment" or kind == "store":
            target, value = field_of(node, "left"), field_of(node, "right")
            if target is None:
                return
            written = field_of(target, "field") if kind_of(target) == "field_expression" else target
            if written is not None and kind_of(written) in ("identifier", "field_identifier"):
                collector.marks[start_of(written)] = _ASSIGNMENT
            if kind == "store" and value is not None:
                self._add_assignment(collector, node, _text(collector, target), value)
            return
        field = _VALUE_FIELDS.get(kind)
        value = child_at(node, 0) if field is None else field_of(node, field)
        if value is None:
            return
        if kind == "assign":
            target = field_of(node, "pattern")
            if target is not None:
                self._add_assignment(collector, node, _text(collector, target), value)
                found = read_value(collector, value)
                bind_pattern(collector, target, found, end_of(node), start_of(node), IN_NEXT_BLOCK)
        elif kind == "result":
            self._add_annotation(collector, start_of(value), end_of(value), "return", value)
        else:
            # `f()?` may end the function with the error of f: a raise whose target is `?`.
            self._append_flow(collector, "raise" if kind == "try" else kind, node, "?" if kind == "try" else "", value)

    def each_branch(self, collector: Collector, kind: str, nodes: list[Node]) -> None:
        for node in nodes:
            condition = field_of(node, "condition")
            value = None if condition is None else read_asked(collector, condition)
            if kind == "loop":
                collector.code.add_branch("loop", node, value)
            else:
                add_if(collector.code, node, value)

    def on_loop(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """`for x in v`: x is an item of v."""
        body, value = field_of(node, "body"), field_of(node, "value")
        target = field_of(node, "pattern")
        if body is not None and value is not None and target is not None:
            item = Iterated(read_value(collector, value))
            bind_pattern(collector, target, item, start_of(body), start_of(node), end_of(body))

    def on_match(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        matched, body = field_of(node, "value"), field_of(node, "body")
        if matched is None or body is None:
            return
        value = read_value(collector, matched)
        for arm in children_of(body):
            pattern = field_of(arm, "pattern") if kind_of(arm) == "match_arm" else None
            if pattern is not None:
                collector.code.add_branch("case", arm, value)
            if pattern is not None and _BINDS.search(collector.text, start_of(pattern), end_of(pattern)):
                bind_pattern(collector, pattern, value, start_of(pattern), start_of(arm), end_of(arm))

    def _add_assignment(self, collector: Collector, node: Node, target: str, value: Node) -> None:
        self._append_flow(collector, "assign", node, target, value)

    def _append_flow(self, collector: Collector, kind: str, node: Node, target: str, value: Node) -> None:
        value_kind, text = self.value_ids.get(kind_id_of(value)), ""
        if value_kind is None:
            value = self._unwrap(value)
            value_kind = self.value_ids.get(kind_id_of(value), "other")
        if value_kind == "call":
            text = self.call_target(collector, value)
        elif value_kind == "name" or value_kind == "attribute":
            text = _text(collector, value)
        collector.flows.append((start_of(node), end_of(node), kind, target, text, value_kind, start_of(value)))

    def _add_annotation(self, collector: Collector, start: int, end: int, target: str, kind: Node) -> None:
        collector.flows.append((start, end, "annotate", target, _text(collector, kind), "type", start_of(kind)))

    def _add_return(self, collector: Collector, node: Node, value: Node) -> None:
        """`return Err(e)` and a last `Err(e)` return and raise e."""
        self._append_flow(collector, "return", node, "", value)
        if kind_of(value) == "call_expression" and collector.text.startswith(b"Err(", start_of(value)):
            args = field_of(value, "arguments")
            error = None if args is None else child_at(args, 0)
            if error is not None:
                self._append_flow(collector, "raise", node, "", error)

    # -- the whole document ----------------------------------------------------------------------

    def is_doc_comment(self, comment: bytes) -> bool:
        # `////` and `/***` are plain comments, `/**/` is empty; `//!` is about what holds it.
        return comment.startswith(self.doc_prefixes) and not comment.startswith((b"////", b"/***", b"/**/"))

    def clean_doc(self, comment: str) -> str:
        if comment.startswith("//"):
            return comment[3:].removeprefix(" ").rstrip()
        lines = comment[3:].removesuffix("*/").rstrip().splitlines()
        starred = all(line.lstrip().startswith("*") for line in lines[1:] if line.strip())
        clean = [lines[0].strip()] if lines else []
        for line in lines[1:]:
            line = line.strip()
            clean.append(line.removeprefix("*").removeprefix(" ") if starred else line)
        return "\n".join(clean).strip("\n").rstrip()

    def _inner_doc(self, collector: Collector, offset: int) -> str:
        """The `//!` lines a body begins with."""
        comments, text = collector.comments, collector.text
        at = bisect_left(comments, (offset, 0))
        parts = []
        while at < len(comments):
            start, end = comments[at]
            if text[offset:start].strip() or not text.startswith((b"//!", b"/*!"), start):
                break
            parts.append(self.clean_doc(collector.slice(start, end)))
            offset = end
            at += 1
        return "\n".join(parts)

    def finish(self, collector: Collector) -> None:
        text, end = collector.text, 0
        if b"macro " in text:
            for found in _MACRO_ITEM.finditer(text, *collector.span):
                if found.start() >= end:
                    end = self._add_macro_item(collector, found)
        if b"r#" in text:
            self._drop_raw_marks(collector)
        self._add_fields(collector)
        close_binds(collector)

    def _add_fields(self, collector: Collector) -> None:
        """Named fields are parameters of their struct."""
        definitions = collector.code.definitions
        structs = sorted(
            (draft.head, draft.end) for draft in collector.symbols
            if draft.kind in ("struct", "union") and draft.body_start >= 0 and draft.head in definitions
        )  # fmt: skip
        fields: dict[int, list[Parameter]] = {}
        at = 0
        for offset, name, kind in sorted(collector.remarks):
            while at < len(structs) and structs[at][1] <= offset:
                at += 1
            if at < len(structs) and structs[at][0] <= offset:
                fields.setdefault(structs[at][0], []).append(
                    Parameter(name.removeprefix("r#"), "", read_type(kind.encode()))
                )
        for start, parameters in fields.items():
            known = definitions[start]
            definitions[start] = (known[0], tuple(parameters), *known[2:])

    def _add_macro_item(self, collector: Collector, found: re.Match[bytes]) -> int:
        """`pub macro name(…) { … }`, which the grammar does not know; returns where it ends."""
        text, start = collector.text, found.start()
        line = text.rfind(b"\n", 0, start) + 1
        lead = _MACRO_LEAD.match(text[line:start])
        at = bisect_right(collector.comments, (start, start)) - 1
        if lead is None or (at >= 0 and collector.comments[at][1] > start):
            return start
        start = line + lead.start(1) if lead[1] else start
        body, depth, end = found.end() - 1, 0, collector.span[1]
        for brace in _BRACE.finditer(text, body, end):
            depth += (brace[0] == b"{") - (brace[0] == b"}")
            if not depth:
                end = brace.end()
                break
        modifiers, exported = _read_head(text[start : found.start()])
        collector.calls = [call for call in collector.calls if not start <= call[0] < body]
        collector.symbols.append(
            Draft(
                "macro", found[1].decode(), start, end, found.start(1), found.end(1), body, end, start, start,
                collector.fold(start, body), modifiers, exported=exported,
            )
        )  # fmt: skip
        return end

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
            if draft.body_start < 0 and draft.kind in _HEADS:
                open_heads.append(index)
            if draft.decorators:
                self._read_attributes(collector, draft)
            if draft.kind == "impl":
                # The name of an impl is a use of the type.
                marks[draft.name_start] = _TYPE
        self._place_imports(collector)

    def _place_imports(self, collector: Collector) -> None:
        """Paths of imports inside inline modules, as seen from the file (`%`); files that `#[path]` names."""
        modules = [draft for draft in collector.symbols if draft.kind == "module"]
        if not modules:
            return
        named = {draft.head: _path_attribute(draft) for draft in modules if draft.body_start < 0 and draft.decorators}
        inline = [draft for draft in modules if draft.body_start >= 0]
        binds = collector.code.binds
        for number, bind in enumerate(binds):
            value = bind[3]
            if not isinstance(value, Imported):
                continue
            start = bind[1]
            around = [d.name.removeprefix("r#") for d in inline if d.body_start <= start < d.body_end]
            module = value.module
            if module.startswith("mod "):
                if path := named.get(start + 1):
                    module = f"path {path}"
                elif around:
                    module = f"mod {'/'.join((*around, module[4:]))}"
            elif around:
                head, *rest = module.split("::")
                while head == "super" and around:
                    around.pop()
                    head, *rest = ["self", *rest] if not rest or rest[0] != "super" else rest
                if head == "self":
                    module = "::".join(("%", *around, *rest))
                elif head == "super":
                    module = "::".join((head, *rest))
            if module != value.module:
                binds[number] = (*bind[:3], Imported(value.level, module, value.name), bind[4])

    def _read_attributes(self, collector: Collector, draft: Draft) -> None:
        found, docs = [], False
        for attribute in draft.decorators:
            if _DOC_ATTRIBUTE.fullmatch(attribute):
                docs = True
            else:
                found.append(attribute.removeprefix("#[").removesuffix("]").strip())
        draft.decorators = tuple(found)
        for name in found:
            if name.startswith("proc_macro"):
                derived = _DERIVED.match(name)
                name = draft.name if derived is None else derived[1]
                collector.code.entries.append(Entry("macro", name, draft.head))
        if docs:
            draft.doc = self._doc_of_leads(collector, draft.start, draft.head)
        if draft.kind == "macro" and any(name.startswith("macro_export") for name in found):
            draft.exported = True

    def _doc_of_leads(self, collector: Collector, start: int, end: int) -> str:
        leads = []
        for spans in (collector.comments, collector.attributes):
            leads += spans[bisect_left(spans, (start, 0)) : bisect_left(spans, (end, 0))]
        parts = []
        for first, last in sorted(leads):
            source = collector.slice(first, last)
            if match := _DOC_ATTRIBUTE.fullmatch(source):
                parts.append(match[2].strip())
            elif self.is_doc_comment(collector.text[first : first + 8]):
                parts.append(self.clean_doc(source))
        return "\n".join(parts)


_VALUE_FIELDS = {"assign": "value", "result": "return_type"}
_IMPORTED = {"use": "argument", "crate": "name"}  # the field that says what is imported
_NESTED = frozenset({"call", "array", "object"})
_DEFINED = frozenset({"function", "impl", "struct", "union", "enum", "enum_member", "trait", "constant", "type"})
_NO_SUMMARY: _Summary = ((), 0, ())
_NO_ARGUMENTS: _Arguments = (_NO_SUMMARY, (), ())
_MAX_VALUES = 100  # of one call
_DERIVED = re.compile(r"proc_macro_derive\s*\(\s*(\w+)")
_OPENS = re.compile(rb"[(\[{]")
_BINDS = re.compile(rb"(?<![\w:.'\"])[a-z_]\w*(?!\w*(?:::|!|\())")


def _read_token_value(text: bytes, kind: str, part: list[Node], kinds: list[int]) -> Value:
    """The value of an argument of a macro; calls in it are found among the same tokens."""
    first = 0
    while first < len(kinds) - 1 and kinds[first] in (_PREFIX, _MUT):
        first += 1
    if kind == "call":
        last = len(kinds) - 1 - kinds[::-1].index(_TREE) if _TREE in kinds else 0
        call = CallEnd(end_of(part[last]))
        rest = set(kinds[last + 1 :])
        return call if not rest else Unwrapped(call) if _QUESTION in rest and rest <= _PASSED else None
    if kind not in ("name", "attribute") and kind not in _LITERAL_KINDS:
        return None  # a tree in trees, which is not copied once for every level
    piece = text[start_of(part[first]) : end_of(part[-1])]
    return read_literal(piece) if kind in _LITERAL_KINDS else read_callee_path(b"".join(piece.split()))


def _path_attribute(draft: Draft) -> str:
    for attribute in draft.decorators:
        if found := re.fullmatch(r'path\s*=\s*"([^"\\]*)"', attribute):
            return found[1]
    return ""


def _impl_name(kind: Value, generics: Keywords) -> str:
    """The last name of a type; `*` for one that stands for any."""
    while isinstance(kind, Element) or (isinstance(kind, Bounds) and kind.types):
        kind = kind.base if isinstance(kind, Element) else kind.types[0]
    if kind == SLICE:
        return "[T]"
    if not isinstance(kind, str):
        return "()"
    return "*" if any(name == kind for name, _ in generics) else kind.rpartition("::")[2]


_HEADS = frozenset({"function", "method", "struct", "enum_member", "constant", "variable", "type", "module"})


_SHORT = 60
_PLAIN_CALLEE = re.compile(rb"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*(?:\.[A-Za-z_]\w*)*")


@lru_cache(maxsize=1 << 14)
def _read_plain_callee(callee: bytes) -> tuple[str, str, str, Value] | None:
    """Text, name, receiver and value of `a::b`, `a.b.c`; None for anything less plain."""
    if _PLAIN_CALLEE.fullmatch(callee) is None:
        return None
    raw = callee.decode()
    receiver, _, name = raw.rpartition("." if "." in raw else "::")
    return raw, name, receiver, read_callee(callee, 0, len(callee), name, len(callee) - len(name), "call")


@lru_cache(maxsize=1 << 14)
def _read_plain_arguments(source: bytes) -> _Arguments | None:
    """Of `(a, &b.c, "d", 1)`; None for anything less plain."""
    if _PLAIN_ARGUMENTS.fullmatch(source) is None:
        return None
    args: list[Argument] = []
    values: list[Value] = []
    for found in _PLAIN_ARGUMENT.finditer(source.decode("utf-8", "replace")):
        argument = found[0]
        word = argument.removeprefix("&").removeprefix("mut ")
        if word[0] == '"':
            kind = "string"
        elif word[0].isdigit():
            kind = "number"
        elif word == "true" or word == "false":
            kind = "boolean"
        else:
            kind = "attribute" if "." in word or "::" in word else "name"
        args.append(Argument(kind, argument))
        values.append(Name(word) if kind in ("name", "attribute") else read_literal(word.encode()))
    return (tuple(args[:MAX_ARGS]), len(args), ()), tuple(values), ()


@lru_cache(maxsize=1024)
def _read_head(head: bytes) -> tuple[tuple[str, ...], bool]:
    """Modifiers of a definition from what stands before its name, and whether it is public without limits."""
    source = " ".join(head.decode("utf-8", "replace").split())
    modifiers, exported = [], False
    if match := _VISIBILITY.match(source):
        modifiers.append(match[1].replace("pub (", "pub("))
        exported = match[1] == "pub"
        source = source[match.end() :]
    words = source.split()
    if words and words[-1] == "const":
        words.pop()  # the keyword of a const item, not a modifier
    modifiers += [word for word in words if word in _WORDS]
    return tuple(modifiers), exported


def _bound_names(collector: Collector, pattern: Node) -> list[Node]:
    """Every name that the pattern of a parameter binds, in source order."""
    found, todo = [], [pattern]
    while todo:
        node = todo.pop()
        kind = kind_of(node)
        if kind == "identifier" or kind == "shorthand_field_identifier":
            if kind != "identifier" or not 65 <= collector.text[start_of(node)] <= 90:
                found.append(node)
        elif kind == "tuple_struct_pattern":
            todo += reversed(children_of(node)[1:])
        elif kind in _PATTERNS:
            todo += reversed(children_of(node))
    return found


_PATTERNS = frozenset(
    {"tuple_pattern", "slice_pattern", "struct_pattern", "field_pattern", "ref_pattern", "mut_pattern", "or_pattern",
     "reference_pattern", "captured_pattern"}
)  # fmt: skip


def _text(collector: Collector, node: Node, limit: int = CALLEE_TEXT) -> str:
    return _excerpt(collector.text, start_of(node), end_of(node), limit)


def _excerpt(text: bytes, start: int, end: int, limit: int) -> str:
    """`clip`, less the folding where there is nothing to fold."""
    if end - start <= limit:
        piece = text[start:end]
        if b"\n" not in piece and b"  " not in piece and b"\t" not in piece:
            return piece.decode("utf-8", "replace")
    return clip(text, start, end, limit)


def _receiver(collector: Collector, first: int, name_start: int) -> str:
    if name_start <= first:
        return ""
    return _excerpt(collector.text, first, name_start, CALLEE_TEXT).removesuffix("r#").rstrip(".:").rstrip()


def _name(collector: Collector, node: Node) -> str:
    return collector.slice(start_of(node), end_of(node)).removeprefix("r#")


def _path_text(collector: Collector, node: Node) -> str:
    return "".join(collector.fold(start_of(node), end_of(node)).split()).replace("r#", "")


def _join(prefix: str, path: str) -> str:
    return f"{prefix}::{path}" if prefix else path
