"""TypeScript and JavaScript, with and without JSX: one reading, two grammars."""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from cq.languages.ecmascript.code import (
    NO_PATH,
    EcmaScriptCode,
    read_path,
    read_plain_values,
    read_type,
    substitute,
)
from cq.languages.ecmascript.reading import (
    DEFINED_EXPORT,
    DOC_MARK,
    DOTTED,
    EXPORT_HEAD,
    FROM,
    IMPORT_DEFAULT,
    IMPORT_HEAD,
    INNER_BRACKET,
    NAME,
    NAMESPACE,
    PLAIN_PARAMETER,
    QUOTES,
    REQUIRE,
    SCRIPT_NAME,
    VALUE_TEXT,
    WRAPPER,
    Summary,
    find_modifiers,
    find_names,
    is_data,
    read_key,
    read_specifiers,
    unquote,
    with_semicolon,
)
from cq.model.code import (
    NULL,
    AliasOf,
    Attribute,
    CallEnd,
    Constant,
    Defined,
    Dictionary,
    Imported,
    Iterated,
    Lambda,
    Name,
    Parameter,
    SuperObject,
    Typed,
    Value,
)
from cq.model.facts import Argument
from cq.syntax.collect import DEFINED
from cq.syntax.excerpt import clip
from cq.syntax.language import ARG_TEXT, CALLEE_TEXT, MAX_ARGS, ROLE_NUMBER, Draft
from cq.syntax.tree import (
    Captures,
    Node,
    Tree,
    all_children_of,
    child_at,
    children_of,
    end_of,
    field_of,
    has_error,
    is_error,
    is_missing,
    kind_id_of,
    kind_of,
    root_of,
    start_of,
)

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

# tail, text, name, receiver, kind of call, where the name begins, value
_Callee = tuple[str, str, str, str, str, int, Value]
ReadParameter = tuple[Parameter, tuple[tuple[int, str, Value], ...]]  # with what its pattern binds
_ASSIGNMENT = ROLE_NUMBER["assignment"]
_CALL = ROLE_NUMBER["call"]
_DECORATOR = ROLE_NUMBER["decorator"]
_IMPORT = ROLE_NUMBER["import"]
_OBJECT_DEPTH = 8  # properties deeper than this inside a named object are no symbols
_UNWRAP_DEPTH = 8
# `Draft.owner` of an object without code and of its properties, until `finish` knows where they stand.
_PLAIN_OBJECT = -2
_IN_CLASS = 0  # `Draft.owner` of what belongs to the class around its constructor


class EcmaScript(EcmaScriptCode):
    """Everything both grammars say the same way. A definition inside `export` or `declare` is widened in `finish`."""

    argument_kinds = {
        "string": "string", "template_string": "string", "number": "number", "true": "boolean", "false": "boolean",
        "null": "null", "undefined": "null", "identifier": "name", "this": "name", "super": "name",
        "member_expression": "attribute", "subscript_expression": "attribute", "call_expression": "call",
        "new_expression": "call", "array": "array", "object": "object", "function_expression": "function",
        "generator_function": "function", "arrow_function": "function", "spread_element": "spread",
    }  # fmt: skip
    root_kinds = {
        "import_statement": "import", "export_statement": "export", "expression_statement": "expression",
        **dict.fromkeys(
            ("if_statement", "for_statement", "for_in_statement", "while_statement", "do_statement", "try_statement",
             "switch_statement", "labeled_statement", "statement_block", "with_statement", "throw_statement"),
            "control",
        ),
    }  # fmt: skip
    doc_prefixes = (b"/**",)
    dot_attributes = True
    flat = True

    @cached_property
    def shapes(self) -> dict[int, str]:
        """What a value is, where that decides what its name means."""
        names = {
            "arrow_function": "arrow", "function_expression": "function", "generator_function": "function",
            "class": "class", "object": "object", "as_expression": "wrapped", "satisfies_expression": "wrapped",
            "non_null_expression": "wrapped", "parenthesized_expression": "wrapped", "type_assertion": "cast",
            "await_expression": "awaited", "call_expression": "call", "new_expression": "call",
        }  # fmt: skip
        numbers = ((self.grammar.find_kind(name), shape) for name, shape in names.items())
        return {number: shape for number, shape in numbers if number is not None}

    # -- definitions -----------------------------------------------------------------------------

    def on_symbol(self, collector: Collector, kind: str, node: Node, captures: Captures) -> Draft | None:
        name = field_of(node, "name") or field_of(node, "property")
        if name is None or end_of(name) == start_of(name):
            return None
        body = params = None
        if kind in _BODIED:
            body = field_of(node, "body")
            if kind in ("function", "method"):
                params = field_of(node, "parameters")
            if body is None or (params is None and kind in ("function", "method")):
                return None
        draft = self._add(collector, kind, start_of(node), end_of(node), name)
        if body is not None:
            draft.body_start, draft.body_end = start_of(body), end_of(body)
            draft.scope_start = draft.body_start
            draft.signature = self.trim_signature(collector.fold(draft.head, draft.body_start))
            if params is not None:
                self._read_function(collector, draft, node, params, body)
                return draft
        _READERS[kind](self, collector, draft, node)
        return draft

    def _add(self, collector: Collector, kind: str, start: int, end: int, name: Node) -> Draft:
        """A draft with its name, its decorators and what stands before the name; more is up to the caller."""
        text = collector.text
        label, name_start, name_end = read_key(text, start_of(name), end_of(name))
        draft = Draft(kind, label, start, end, name_start, name_end, head=start)
        prefix = text[start:name_start]
        if prefix:
            if b"@" in prefix:
                prefix = _take_decorators(collector, draft, name_start)
            draft.modifiers = find_modifiers(prefix)
        collector.symbols.append(draft)
        return draft

    def _read_function(self, collector: Collector, draft: Draft, node: Node, params: Node, body: Node) -> None:
        text = collector.text
        start, end = start_of(params), end_of(params)
        draft.scope_start = start
        if draft.kind == "method":
            if "get" in draft.modifiers or "set" in draft.modifiers:
                draft.kind = "accessor"
            elif draft.name == "constructor" and "static" not in draft.modifiers:
                draft.kind = "constructor"
        parameters = self._add_parameters(collector, params) if end - start > 2 else []
        generic = b"<" in text[draft.name_end : start]
        if generic:
            self._add_type_parameters(collector, node)
        self._add_return_type(collector, draft.name, end, draft.body_start)
        self.add_function(collector, node, body, parameters, generic=generic)
        if kind_of(node) != "method_definition":
            self.notes(collector).bound.add(draft.body_start)

    def _add_return_type(self, collector: Collector, name: str, start: int, end: int) -> None:
        """`(…): Promise<T> {`: what stands between the parameters and the body, by its colon."""
        gap = collector.text[start:end].removesuffix(b"=>") if end > start + 1 else b""
        before, colon, kind = gap.partition(b":")
        if colon and not before.strip() and kind.strip():
            at = start + len(before) + 1 + len(kind) - len(kind.lstrip())
            stop = at + len(kind.strip().removesuffix(b"=>").rstrip())
            collector.flows.append(
                (at, stop, "annotate", name, clip(collector.text, at, stop, CALLEE_TEXT), "type", at)
            )

    def _read_expression(self, collector: Collector, draft: Draft, node: Node) -> None:
        """`function name() {}` as a value; dropped in `finish` where it is bound to another name."""
        draft.kind = "function"
        draft.scope_start = draft.start

    def _read_class(self, collector: Collector, draft: Draft, node: Node) -> None:
        draft.kind = "class"
        body = field_of(node, "body")
        if body is None:
            draft.signature = clip(collector.text, draft.head, draft.end, VALUE_TEXT)
            return
        draft.body_start, draft.body_end = start_of(body), end_of(body)
        draft.scope_start = draft.body_start
        draft.signature = self.trim_signature(collector.fold(draft.head, draft.body_start))
        self._read_heritage(collector, draft, node)

    def _read_heritage(self, collector: Collector, draft: Draft, node: Node, kind: str = "class") -> None:
        text = collector.text
        gap = text[draft.name_end : draft.body_start]
        parameters: list[tuple[str, Value]] = []
        if b"<" in gap:
            self._add_type_parameters(collector, node)
            parameters = list(self.type_parameters(collector, node).items())
        values: list[Value] = []
        implemented: list[Value] = []
        self.notes(collector).classes[draft.body_start] = (kind, values, implemented, parameters)
        if b"extends" not in gap and b"implements" not in gap:
            return
        bases: list[str] = []
        for part in children_of(node):
            kind = kind_of(part)
            if kind == "extends_type_clause":
                bases += _fold_each(collector, children_of(part))
                values += [self.kind(collector, base) for base in children_of(part) if kind_of(base) != "comment"]
            elif kind == "class_heritage":
                clauses = children_of(part)
                for clause in clauses:
                    if kind_of(clause) == "implements_clause":
                        bases += _fold_each(collector, children_of(clause))
                        implemented += [self.kind(collector, base) for base in children_of(clause)]
                    elif kind_of(clause) == "extends_clause":
                        # The value and its type arguments stand side by side.
                        value = child_at(clause, 0)
                        if value is not None:
                            bases.append(collector.fold(start_of(value), end_of(clause)))
                            values.append(self.value(collector, value))
                    elif kind_of(clause) != "comment":
                        bases.append(collector.fold(start_of(clause), end_of(clause)))
                        values.append(self.value(collector, clause))
        draft.bases = tuple(bases)

    def _read_interface(self, collector: Collector, draft: Draft, node: Node) -> None:
        self._read_heritage(collector, draft, node, "interface")

    def _read_type(self, collector: Collector, draft: Draft, node: Node) -> None:
        """An alias holds its members and type parameters; one without either is a line like any other."""
        value = field_of(node, "value")
        if value is None:
            collector.symbols.pop()
            return
        generic = b"<" in collector.text[draft.name_end : draft.name_end + 8].lstrip()[:1]
        draft.end = with_semicolon(collector.text, draft.end)
        if generic or kind_of(value) == "object_type":
            draft.body_start, draft.body_end = start_of(value), end_of(value)
        if kind_of(value) == "object_type":
            draft.scope_start = draft.body_start
            parameters = list(self.type_parameters(collector, node).items()) if generic else []
            self.notes(collector).classes[draft.body_start] = ("interface", [], [], parameters)
            draft.signature = self.trim_signature(collector.fold(draft.head, draft.body_start))
        else:
            draft.signature = clip(collector.text, draft.head, draft.end, 2 * VALUE_TEXT).removesuffix(";")
            kind = self.kind(collector, value)
            self.bind(collector, draft.start, draft.end, f"<{draft.name}>", AliasOf(kind))
        if generic:
            self._add_type_parameters(collector, node)

    def _read_enum(self, collector: Collector, draft: Draft, node: Node) -> None:
        if b"const" in collector.text[draft.start : draft.name_start]:
            draft.modifiers += ("const",)
        body = field_of(node, "body")
        self.notes(collector).classes[draft.body_start] = ("enum", [], [], [])
        for member in children_of(body) if body is not None else ():
            if kind_of(member) != "comment" and not is_missing(member):
                name = field_of(member, "name") or member
                entry = self._add(collector, "enum_member", start_of(member), end_of(member), name)
                entry.signature = clip(collector.text, entry.start, entry.end, VALUE_TEXT)

    def _read_namespace(self, collector: Collector, draft: Draft, node: Node) -> None:
        body = field_of(node, "body")
        draft.end = with_semicolon(collector.text, draft.end)
        stop = draft.end
        if body is not None:
            stop = draft.body_start = draft.scope_start = start_of(body)
            draft.body_end = end_of(body)
            self.notes(collector).classes[draft.body_start] = ("namespace", [], [], [])
        draft.signature = self.trim_signature(collector.fold(draft.head, stop))
        if collector.text[draft.name_start - 1] not in QUOTES and "." in draft.name:
            # `namespace A.B`: called B, and A.B in full; `finish_nested` takes the path off the name.
            draft.name_start = draft.name_end - len(draft.name.rpartition(".")[2].strip().encode())

    def _read_field(self, collector: Collector, draft: Draft, node: Node) -> None:
        text = collector.text
        value = field_of(node, "value")
        self._annotate(collector, draft, node)
        draft.end = with_semicolon(text, draft.end)
        if value is None or not self._bind_value(collector, draft, value, "method"):
            if value is not None:
                self._add_assignment(collector, draft.start, draft.end, draft.name, value)
            known = field_of(node, "type")
            self.bind(
                collector, start_of(node), draft.end, draft.name,
                NULL if value is None else self.value(collector, value),
                None if known is None else self.kind(collector, known),
            )  # fmt: skip
        elif draft.scope_start < 0 or draft.kind == "class":
            self.bind(collector, start_of(node), draft.end, draft.name, self.value(collector, value))
        draft.signature = draft.signature or clip(text, draft.head, draft.end, VALUE_TEXT).removesuffix(";")

    def _read_property(self, collector: Collector, draft: Draft, node: Node) -> None:
        self._annotate(collector, draft, node)
        draft.signature = clip(collector.text, draft.head, draft.end, VALUE_TEXT)
        known = field_of(node, "type")
        if known is not None:
            self.bind(collector, draft.start, draft.end, draft.name, None, self.kind(collector, known))

    def _read_signature(self, collector: Collector, draft: Draft, node: Node) -> None:
        """A method or function without a body: overloads, abstract methods, members of an interface."""
        draft.kind = "function" if kind_of(node) == "function_signature" else "method"
        draft.end = with_semicolon(collector.text, draft.end)
        if "get" in draft.modifiers or "set" in draft.modifiers:
            draft.kind = "accessor"
        elif draft.name == "constructor" and draft.kind == "method":
            draft.kind = "constructor"
        draft.signature = self.trim_signature(collector.fold(draft.head, draft.end))
        result = field_of(node, "return_type")
        if result is not None:
            self._add_return_type(collector, draft.name, start_of(result), end_of(result))
        params = field_of(node, "parameters")
        read = [] if params is None else [self.read_parameter(collector, child, 0) for child in children_of(params)]
        parameters = [found[0] for found in read if found is not None and found[0].name != "this"]
        kind = None if result is None else self.kind(collector, result)
        if b"<" in collector.text[draft.name_end : draft.name_end + 1]:
            mapping = self.type_parameters(collector, node)
            kind = substitute(kind, mapping)
            parameters = [msgspec.structs.replace(p, type=substitute(p.type, mapping)) for p in parameters]
        self.notes(collector).signatures[draft.name_start] = (tuple(parameters), kind)

    def _annotate(self, collector: Collector, draft: Draft, node: Node) -> None:
        if collector.text[draft.name_end : draft.name_end + 4].lstrip(b"?!'\"] ")[:1] != b":":
            return
        annotation = field_of(node, "type")
        if annotation is not None:
            self._add_return_type(collector, draft.name, start_of(annotation), end_of(annotation))

    # -- parameters ------------------------------------------------------------------------------

    def on_nameless(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        params = field_of(node, "parameters")
        if params is None:
            return
        start = start_of(params)
        parameters = self._add_parameters(collector, params) if end_of(params) - start > 2 else []
        generic = b"<" in collector.text[start_of(node) : start]
        if generic:
            self._add_type_parameters(collector, node)
        body = field_of(node, "body")
        if body is not None:
            self.add_function(collector, node, body, parameters, generic=generic)

    def on_only(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """The parameter of `x => …`."""
        name = field_of(node, "parameter")
        if name is None:
            return
        start, end = start_of(name), end_of(name)
        label = collector.slice(start, end)
        collector.symbols.append(Draft("parameter", label, start, end, start, end, head=start, signature=label))
        body = field_of(node, "body")
        if body is not None:
            parameter = Parameter(label, optional=self.all_optional)
            self.add_function(collector, node, body, [(parameter, ())], generic=False)

    def _add_parameters(self, collector: Collector, params: Node) -> list[ReadParameter]:
        """As symbols, and as what code knows of them."""
        text, symbols, flows = collector.text, collector.symbols, collector.flows
        found: list[ReadParameter] = []
        position = 0
        for child in children_of(params):
            start, end = start_of(child), end_of(child)
            piece = text[start:end].decode("utf-8", "replace")
            plain = PLAIN_PARAMETER.fullmatch(piece)
            if plain is None:
                known = self.read_parameter(collector, child, position)
                if known is not None:
                    found.append(known)
                position += self._add_odd_parameter(collector, child, position)
                continue
            name, annotation = plain.groups()
            kind = read_type(annotation.rstrip().encode()) if annotation else None
            if kind is NO_PATH:
                written = field_of(child, "type")
                kind = None if written is None else self.kind(collector, written)
            optional = self.all_optional or piece[len(name) : len(name) + 1] == "?"
            found.append((Parameter(name, "", kind, None, optional), ()))
            if name == "this":
                continue
            position += 1
            name_end = start + (len(name) if name.isascii() else len(name.encode()))
            signature = clip(text, start, end, VALUE_TEXT) if "\n" in piece or len(piece) > VALUE_TEXT else piece
            symbols.append(Draft("parameter", name, start, end, start, name_end, head=start, signature=signature))
            if annotation:
                at = end - len(annotation.encode())
                flows.append((start, end, "annotate", name, clip(text, at, end, CALLEE_TEXT), "type", at))
        return found

    def _add_odd_parameter(self, collector: Collector, child: Node, position: int) -> int:
        """Defaults, rests, patterns, parameter properties; returns how many positions it takes."""
        text = collector.text
        start, end = start_of(child), end_of(child)
        if kind_of(child) in ("comment", "ERROR", "decorator"):
            return 0
        pattern = field_of(child, "pattern") or child
        while kind_of(pattern) in ("rest_pattern", "assignment_pattern"):
            inner = field_of(pattern, "left") or child_at(pattern, 0)
            if inner is None:
                return 1
            pattern = inner
        if kind_of(pattern) == "this" or is_missing(pattern):
            return 0
        at, stop = start_of(pattern), end_of(pattern)
        named = kind_of(pattern) == "identifier"
        # A pattern keeps its place in the list of parameters: `({a, b}, c)` is arg0 with a and b, then c.
        name = collector.slice(at, stop) if named else f"arg{position}"
        draft = Draft("parameter", name, start, end, at, stop, head=start)
        if text[start] == 64:
            _take_decorators(collector, draft, at)
        draft.signature = clip(text, draft.head, end, VALUE_TEXT)
        collector.symbols.append(draft)
        annotation = field_of(child, "type")
        if annotation is not None:
            self._add_return_type(collector, name, start_of(annotation), end_of(annotation))
        if not named:
            for inner, _ in find_names(pattern):
                self._add_binding(collector, "parameter", inner)
        elif draft.head < at and (words := find_modifiers(text[draft.head : at])):
            collector.symbols.append(
                Draft("field", name, start, end, at, stop, head=draft.head, signature=draft.signature,
                      modifiers=words, decorators=draft.decorators, owner=_IN_CLASS)
            )  # fmt: skip
            collector.code.stores.append((start, Name("this"), name, Name(name), None, -1))
            if annotation is not None:
                collector.code.types[start] = self.kind(collector, annotation)
        return 1

    def _add_binding(self, collector: Collector, kind: str, name: Node) -> None:
        start, end = start_of(name), end_of(name)
        label = collector.slice(start, end)
        collector.symbols.append(Draft(kind, label, start, end, start, end, head=start, signature=label))

    def _add_type_parameters(self, collector: Collector, node: Node) -> None:
        parameters = field_of(node, "type_parameters")
        for child in children_of(parameters) if parameters is not None else ():
            name = field_of(child, "name")
            if name is not None and end_of(name) > start_of(name):
                start, end = start_of(child), end_of(child)
                collector.symbols.append(
                    Draft("type_parameter", collector.slice(start_of(name), end_of(name)), start, end,
                          start_of(name), end_of(name), head=start, signature=collector.fold(start, end))
                )  # fmt: skip

    def on_bodiless(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        marks = collector.marks
        params = field_of(node, "parameters")
        for child in children_of(params) if params is not None else ():
            for name, _ in find_names(field_of(child, "pattern") or child):
                marks[start_of(name)] = DEFINED

    # -- bindings --------------------------------------------------------------------------------

    def on_declare(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        text = collector.text
        start, end = start_of(node), end_of(node)
        declarators = children_of(node)
        if len(declarators) > 1:
            declarators = [child for child in declarators if kind_of(child) == "variable_declarator"]
        alone = len(declarators) == 1
        constant = text.startswith(b"const", start)
        for declarator in declarators:
            first, last = start_of(declarator), end_of(declarator)
            span = (start, end) if alone else (first, last + (text[last : last + 1] == b","))
            name = NAME.match(text, first)
            name_end = name.end() if name else -1
            value = field_of(declarator, "value") if last > name_end else None
            if (
                value is not None
                and text[start_of(value)] in b"rai"
                and self._require(collector, declarator, value, span)
            ):
                continue
            if name is None:
                self._destructure(collector, declarator, value, span, start)
                continue
            draft = Draft("variable", name[0].decode("utf-8", "replace"), *span, first, name_end, head=start)
            collector.symbols.append(draft)
            if last == name_end:
                draft.signature = clip(text, *span, VALUE_TEXT).rstrip(",;")
                self.bind(collector, first, last, draft.name, NULL)
                continue
            if text[name_end] != 61:
                self._annotate(collector, draft, declarator)
            if value is None or not self._bind_value(collector, draft, value, "function"):
                draft.signature = clip(text, *span, VALUE_TEXT).rstrip(",;")
                literal = value is not None and self._add_assignment(collector, first, last, draft.name, value)
                if constant and literal:
                    draft.kind = "constant"
                self._bind_variable(collector, declarator, draft.name, value)
            elif draft.scope_start < 0:
                self._bind_variable(collector, declarator, draft.name, value)
            else:
                self.notes(collector).bound.add(draft.body_start)
            if constant and draft.kind == "variable" and draft.name.isupper():
                draft.kind = "constant"

    def _bind_variable(self, collector: Collector, declarator: Node, name: str, value: Node | None) -> None:
        start, end = start_of(declarator), end_of(declarator)
        at = start + len(name.encode())
        known = field_of(declarator, "type") if collector.text[at : at + 2] != b" =" else None
        found = NULL if value is None else self.value(collector, value)
        self.bind(collector, start, end, name, found, None if known is None else self.kind(collector, known))
        if isinstance(found, Dictionary):
            entries = self.notes(collector).entries
            entries |= {inner.start: Name(name) for inner in found.values if isinstance(inner, Lambda)}

    def _destructure(
        self, collector: Collector, declarator: Node, value: Node | None, span: tuple[int, int], head: int
    ) -> None:
        pattern = field_of(declarator, "name")
        if pattern is None:
            return
        text = collector.text
        known = field_of(declarator, "type")
        source = None if value is None else self.value(collector, value)
        if known is not None:
            source = Typed(self.kind(collector, known), source)
        for at, label, inner in self.destructure(collector, pattern, source):
            self.bind(collector, at, at, label, inner)
        signature = clip(text, *span, VALUE_TEXT).rstrip(",;")
        base = DOTTED.fullmatch(text, start_of(value), end_of(value)) if value is not None else None
        for name, key in find_names(pattern):
            first, last = start_of(name), end_of(name)
            label = collector.slice(first, last)
            collector.symbols.append(Draft("variable", label, *span, first, last, head=head, signature=signature))
            if base and key is not None and value is not None:
                source = f"{base[0].decode('utf-8', 'replace')}.{collector.slice(start_of(key), end_of(key))}"
                collector.flows.append((first, last, "assign", label, source, "attribute", start_of(value)))
        if value is not None and not base:
            target = clip(text, start_of(pattern), end_of(pattern), CALLEE_TEXT)
            self._add_assignment(collector, start_of(declarator), end_of(declarator), target, value)

    def _require(self, collector: Collector, declarator: Node, value: Node, span: tuple[int, int]) -> bool:
        """`const x = require("m")`, `const {a: b} = await import("m")`: bindings of an import and no variables."""
        text = collector.text
        found = REQUIRE.match(text, start_of(value), min(end_of(value), start_of(value) + 2000))
        if found is None or found.end() != end_of(value):
            return False
        module, member = found[2][1:-1].decode("utf-8", "replace"), found[3]
        pattern = field_of(declarator, "name")
        bindings = []
        for name, key in find_names(pattern) if pattern is not None else ():
            start, end = start_of(name), end_of(name)
            collector.marks[start] = _IMPORT
            imported = (
                "*" if name == pattern else collector.slice(start_of(key), end_of(key)) if key is not None else "*"
            )
            if member:
                imported = member.decode("utf-8", "replace") + (f".{imported}" if imported != "*" else "")
            bindings.append((collector.slice(start, end), imported, start, end, False))
        held = Constant("module")
        for at, label, inner in self.destructure(collector, pattern, held) if pattern is not None else ():
            names = [member.decode("utf-8", "replace")] if member else []
            names += [inner.path] if isinstance(inner, Attribute) else []
            first, _, rest = ".".join(names).partition(".")
            whole = Imported(0, module, first or ("=" if found[1] == b"require" else "*"))
            self.bind(collector, at, at, label, Attribute(whole, rest) if rest else whole)
        collector.decorated[-found.start(1)] = 1  # the call itself adds no second import
        kind = "require" if found[1] == b"require" else "dynamic"
        collector.add_import(kind, module, *span, bindings)
        return True

    def _bind_value(self, collector: Collector, draft: Draft, value: Node, kind: str) -> bool:
        """Makes the draft what its value is: a function, a class or an object that holds others. False for the rest."""
        shape = self.shapes.get(kind_id_of(value))
        if shape is None:
            return False
        closing = ""
        for _ in range(_UNWRAP_DEPTH):
            if shape == "call" and WRAPPER.match(collector.text, start_of(value)):
                # const Row = memo(forwardRef((props, ref) => …)): the function inside is what Row runs.
                inner = field_of(value, "arguments")
                closing += ")"
            elif shape == "wrapped":
                inner = value
            else:
                break
            inner = child_at(inner, 0) if inner is not None else None
            if inner is None:
                return False
            value, shape = inner, self.shapes.get(kind_id_of(inner))
        if shape is None or (closing and shape not in ("arrow", "function")):
            return False
        start = start_of(value)
        if shape == "object":
            return self._bind_object(collector, draft, value)
        body = field_of(value, "body")
        if shape not in ("arrow", "function", "class") or body is None:
            return False
        draft.body_start, draft.body_end = start_of(body), end_of(body)
        draft.signature = (
            self.trim_signature(
                collector.fold(draft.head if draft.start == draft.head else draft.start, draft.body_start)
            )
            + closing
        )
        draft.scope_start = start
        if shape != "arrow":
            collector.decorated[start] = -1
        if shape == "class":
            draft.kind, draft.scope_start = "class", draft.body_start
            name_end, draft.name_end = draft.name_end, start
            self._read_heritage(collector, draft, value)
            draft.name_end = name_end
            return True
        draft.kind = "component" if closing and draft.name[:1].isupper() else kind
        draft.modifiers += find_modifiers(collector.text[start : start + 16].partition(b"(")[0])
        result = field_of(value, "return_type")
        if result is not None:
            self._add_return_type(collector, draft.name, start_of(result), end_of(result))
        return True

    def _bind_object(self, collector: Collector, draft: Draft, value: Node) -> bool:
        """A named object holds its properties. One without code is data: inside a function it stays a plain value."""
        start, end = start_of(value), end_of(value)
        plain = is_data(collector.text, start, end)
        draft.body_start, draft.body_end = start, end
        draft.signature = self.trim_signature(collector.fold(draft.start, start))
        draft.owner = _PLAIN_OBJECT if plain else -1
        self._add_properties(collector, value, plain)
        return True

    def _add_properties(self, collector: Collector, value: Node, plain: bool) -> None:
        """Properties that are no functions (those match a pattern of their own). Data inside data has dotted names."""
        text = collector.text
        todo = [(value, "", 0)]
        while todo:
            holder, path, depth = todo.pop()
            for pair in children_of(holder):
                if kind_of(pair) != "pair":
                    continue
                inner = field_of(pair, "value")
                name = field_of(pair, "key")
                shape = None if inner is None else self.shapes.get(kind_id_of(inner))
                if name is None or is_missing(name) or inner is None or shape in ("arrow", "function", "class"):
                    continue
                draft = self._add(collector, "property", start_of(pair), end_of(pair), name)
                draft.modifiers, label = (), draft.name
                draft.owner = _PLAIN_OBJECT if plain else -1
                draft.signature = clip(text, draft.start, draft.end, VALUE_TEXT)
                draft.name = path + label
                if shape == "object" and depth < _OBJECT_DEPTH:
                    first, last = start_of(inner), end_of(inner)
                    if plain or is_data(text, first, last):
                        todo.append((inner, f"{path}{label}.", depth + 1))
                    else:
                        draft.body_start, draft.body_end = first, last
                        draft.signature = self.trim_signature(collector.fold(draft.start, first))
                        todo.append((inner, "", depth + 1))

    def on_pair(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        name, value = field_of(node, "key"), field_of(node, "value")
        if name is None or value is None:
            return
        draft = self._add(collector, "method", start_of(node), end_of(node), name)
        draft.modifiers = ()
        if not self._bind_value(collector, draft, value, "method"):
            collector.symbols.pop()

    # -- modules ---------------------------------------------------------------------------------

    def on_import(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        start, end = start_of(node), end_of(node)
        collector.spans.append((start, end, _IMPORT))
        text = _without_comments(collector, start, end)
        head = IMPORT_HEAD.match(text)
        source = FROM.search(text)
        if head is None or source is None:
            return
        type_only = head[1] is not None
        module = source[1][1:-1].decode("utf-8", "replace")
        bindings: list[tuple[str, str, int, int, bool]] = []
        at = head.end()
        default = IMPORT_DEFAULT.match(text, at)
        if default is not None:
            at = default.end()
            local = default[1].decode("utf-8", "replace")
            required = text[at : at + 1] == b"="
            imported = "*" if required else "default"
            bindings.append((local, imported, start + default.start(1), start + default.end(1), type_only))
            if required:
                self.bind(collector, start, end, local, Imported(0, module, "="))
                collector.add_import("require", module, start, end, bindings, type_only=type_only)
                return
        star = NAMESPACE.match(text, at)
        if star is not None:
            bindings.append(
                (star[1].decode("utf-8", "replace"), "*", start + star.start(1), start + star.end(1), type_only)
            )
        elif text[at : at + 1] == b"{":
            for local, imported, first, last, is_type in read_specifiers(text, at, start):
                bindings.append((local, imported, first, last, is_type or type_only))
        self._bind_imports(collector, module, start, end, bindings)
        kind = "namespace" if star else "from" if bindings or text[at : at + 1] == b"{" else "side_effect"
        collector.add_import(kind, module, start, end, bindings, type_only=type_only)

    def _bind_imports(
        self, collector: Collector, module: str, start: int, end: int, bindings: list[tuple[str, str, int, int, bool]]
    ) -> None:
        for local, imported, *_ in bindings:
            self.bind(collector, start, end, local, Imported(0, module, imported))

    def on_export(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        start, end = start_of(node), end_of(node)
        declaration = field_of(node, "declaration")
        if declaration is not None:
            collector.decorated[start_of(declaration)] = start
            return
        value = field_of(node, "value")
        if value is not None:
            self._export_default(collector, start, end, value)
            return
        text = _without_comments(collector, start, end)
        head = EXPORT_HEAD.match(text)
        if head is None:
            return
        at, type_only = head.end(), head[1] is not None
        if head[2] == b"=":
            inner = child_at(node, 0)
            if inner is not None:
                self.bind(collector, start, end, "export =", self.value(collector, inner))
            name = DOTTED.match(text, at)
            label = name[0].decode("utf-8", "replace") if name else ""
            collector.exports.append((start, label, "export=", end, "", False))
        elif text[at : at + 1] == b"*":
            source, star = FROM.search(text, at), NAMESPACE.match(text, at)
            if source is None:
                return
            module = source[1][1:-1].decode("utf-8", "replace")
            name = "*" if star is None else unquote(star[1])
            collector.spans.append((start, end, _IMPORT))
            collector.add_import("reexport", module, start, end, [], type_only=type_only)
            collector.exports.append((start, "*", name, end, module, type_only))
        elif text[at : at + 1] == b"{":
            self._export_names(collector, text, at, start, end, type_only)

    def _export_names(self, collector: Collector, text: bytes, at: int, start: int, end: int, type_only: bool) -> None:
        """`export {a as b}`, `export {a as b} from "m"`: nothing is bound here, the names pass through."""
        source = FROM.search(text, text.find(b"}", at) + 1)
        module = source[1][1:-1].decode("utf-8", "replace") if source else ""
        if source:
            collector.spans.append((start, end, _IMPORT))
            collector.add_import("reexport", module, start, end, [], type_only=type_only)
        for exported, name, first, last, is_type in read_specifiers(text, at, start):
            if exported != name:
                collector.marks[first] = DEFINED
            collector.exports.append((first, name, exported, last, module, is_type or type_only))

    def _export_default(self, collector: Collector, start: int, end: int, value: Node) -> None:
        """`export default …` of an expression; a function, class or object without a name is called `default`."""
        at = collector.text.find(b"default", start, start_of(value))
        draft = Draft("variable", "default", start, end, at, at + 7, head=start, exported=True,
                      modifiers=("exported", "default"))  # fmt: skip
        if at >= 0 and self._bind_value(collector, draft, value, "function"):
            draft.owner = -1
            collector.symbols.append(draft)
            collector.exports.append((at, "default", "default", at + 7, "", False))
            if draft.scope_start < 0:
                self.bind(collector, start, end, "default", self.value(collector, value))
            self.notes(collector).bound.add(draft.body_start)
            return
        self.bind(collector, start, end, "export default", self.value(collector, value))
        while self.shapes.get(kind_id_of(value)) == "wrapped" and (inner := child_at(value, 0)) is not None:
            value = inner
        dotted = DOTTED.fullmatch(collector.text, start_of(value), end_of(value))
        name = dotted[0].decode("utf-8", "replace") if dotted else "default"
        collector.exports.append((start, name, "default", end, "", False))

    def on_ambient(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """`declare …`; the body of `declare global` is a bare block."""
        start = start_of(node)
        for inner in children_of(node):
            if kind_of(inner) != "statement_block":
                if not is_error(inner):
                    collector.decorated[start_of(inner)] = start
                continue
            at = collector.text.find(b"global", start, start_of(inner))
            if at >= 0:
                self.notes(collector).classes[start_of(inner)] = ("namespace", [], [], [])
                collector.symbols.append(
                    Draft("namespace", "global", start, with_semicolon(collector.text, end_of(node)), at, at + 6,
                          start_of(inner), end_of(inner), start, start_of(inner), "declare global", ("declare",))
                )  # fmt: skip

    def on_alias(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """`import Short = Long.Name;` names what is there already."""
        children = children_of(node)
        if len(children) > 1 and not is_missing(children[0]):
            draft = self._add(collector, "variable", start_of(node), end_of(node), children[0])
            draft.end = with_semicolon(collector.text, draft.end)
            draft.signature = clip(collector.text, draft.start, draft.end, VALUE_TEXT).removesuffix(";")
            self.bind(collector, draft.start, draft.end, draft.name, self.value(collector, children[-1]))
            target = clip(collector.text, start_of(children[-1]), end_of(children[-1]), CALLEE_TEXT)
            collector.flows.append(
                (draft.start, draft.end, "assign", draft.name, target, "attribute", start_of(children[-1]))
            )

    # -- calls -----------------------------------------------------------------------------------

    def each_call(self, collector: Collector, kind: str, nodes: list[Node]) -> None:
        """The most frequent match: names come from slices, plain arguments too, and plain callees are read once."""
        text, marks, calls, callees = collector.text, collector.marks, collector.calls, self.known_callees
        # A query that captures the fields of a call costs the square of a chain's length.
        field, size = "constructor" if kind else "function", len(text)
        for node in nodes:
            callee = field_of(node, field)
            if callee is None:
                continue
            start = last = end_of(callee)
            first, end = start_of(callee), end_of(node)
            if last == size or text[last] != 40:
                args = field_of(node, "arguments")
                start = end if args is None else start_of(args)
            known = callees.get(text[first:last]) if last - first <= _PLAIN_CALLEE else None
            if known is not None:
                tail, written, name, receiver, way, at, target = known
                at += last
                marks[at] = _CALL
            else:
                tail, written, name, receiver, way, at, target = self._read_callee(collector, callee, first, last)
            if kind:
                way = kind
                if target == name:
                    self.notes(collector).made.add(name)
            elif start > last and text.startswith(b"?.", last):
                way = "optional"
            summary = _NO_ARGUMENTS
            values: tuple[Value, ...] = ()
            if end - start > 2:
                found = read_plain_values(text[start:end]) if end - start <= ARG_TEXT and text[start] == 40 else None
                if found is not None:
                    summary, values = found
                else:
                    args = field_of(node, "arguments")
                    if args is not None:
                        children = children_of(args)
                        summary = self._read_arguments(collector, args, children)
                        is_list = text[start_of(args)] == 40
                        values = (self.argument_values if is_list else self.template_values)(collector, children)
                if text[start] == 96:
                    way = "template"
                elif tail in _MODULE_CALLS:
                    self._read_module_call(collector, tail, first, start, end)
            start = start_of(node) if kind else first
            calls.append((start, end, at, way, written, name, receiver, *summary, target, values, ()))

    @cached_property
    def known_callees(self) -> dict[bytes, _Callee]:
        """Names with their attributes by their text; the name's place is counted from the end."""
        return {}

    def _read_callee(self, collector: Collector, callee: Node, first: int, last: int) -> _Callee:
        text = collector.text
        tail = written = text[max(first, last - CALLEE_TEXT) : last].decode("utf-8", "replace")
        if last - first > CALLEE_TEXT:
            written = clip(text, first, last, CALLEE_TEXT)
        elif "\n" in written:
            tail = written = " ".join(written.split())
        receiver, _, name = tail.rpartition(".")
        receiver = receiver.rstrip()
        name = name.lstrip()
        way = "call"
        if receiver[-1:] == "?":
            way = "optional"
        elif receiver == "super" or tail in _CALL_KINDS:
            way = _CALL_KINDS.get(tail, "super")
        plain = name.isidentifier() or SCRIPT_NAME.fullmatch(name) is not None
        if plain:
            at = last - (len(name) if name.isascii() else len(name.encode()))
            collector.marks[at] = _CALL
            receiver = receiver.rstrip("?!") if tail is written else clip(text, first, at, CALLEE_TEXT)
        else:
            name, at, receiver = self._read_odd_callee(collector, callee)
        if tail == "super":
            target: Value = SuperObject(is_called=True)
        elif tail is written and name == written and not receiver:
            target = Name(name)
        elif (
            at > 0
            and receiver[-1:] == ")"
            and (base := child_at(callee, 0)) is not None
            and kind_id_of(base) == self.call_id
        ):
            target, plain = Attribute(CallEnd(end_of(base)), name), False
        else:
            target = self.value(collector, callee)
            plain = plain and last - first <= _PLAIN_CALLEE and target == read_path(text[first:last])
        if plain and last - first <= _PLAIN_CALLEE and collector.clean:
            if len(self.known_callees) >= _MAX_KNOWN:
                self.known_callees.clear()
            self.known_callees[text[first:last]] = (tail, written, name, receiver, way, at - last, target)
        return tail, written, name, receiver, way, at, target

    def _read_module_call(self, collector: Collector, callee: str, first: int, start: int, end: int) -> None:
        """Calls that import or export: `import(…)`, `require(…)`, and what compilers write for `export {x} from`."""
        text = collector.text
        if callee == "Object.defineProperty":
            found = DEFINED_EXPORT.match(text, start)
            if found is not None and found[1] != b"__esModule":
                exported = found[1].decode("utf-8", "replace")
                collector.exports.append((first, exported, exported, end, "", False))
        elif -first not in collector.decorated and (found := REQUIRE.match(text, first, min(end, first + 2000))):
            module = found[2][1:-1].decode("utf-8", "replace")
            collector.add_import("require" if callee == "require" else "dynamic", module, first, end, [])

    def _read_arguments(self, collector: Collector, args: Node, children: list[Node]) -> Summary:
        text, kinds = collector.text, self.argument_ids
        if text[start_of(args)] == 96:
            return (Argument("string", clip(text, start_of(args), end_of(args), ARG_TEXT)),), 1, ()
        found: list[Argument] = []
        count = 0
        for child in children:
            kind = kinds.get(kind_id_of(child), "other")
            if kind == "comment":
                continue
            count += 1
            if count <= MAX_ARGS:
                first, last = start_of(child), end_of(child)
                if kind == "other" and text[first] == 45:
                    kind = "number"
                depth = 0
                if kind in _NESTED:
                    at = first if kind != "call" else text.find(b"(", first, last)
                    depth = 2 if INNER_BRACKET.match(text, at + 1, min(last - 1, at + _DEPTH_BYTES)) else 1
                found.append(Argument(kind, clip(text, first, last, ARG_TEXT), "", depth, kind == "spread"))
        return tuple(found), count, ()

    def _read_odd_callee(self, collector: Collector, callee: Node) -> tuple[str, int, str]:
        """Name, offset and receiver of `a["key"]()`, `a.b!()`, `(0, a.b)()`; no name where only a run can say it."""
        text = collector.text
        name: Node | None = None
        holder: Node | None = None
        for _ in range(_UNWRAP_DEPTH):
            kind = kind_of(callee)
            if kind == "subscript_expression":
                index = field_of(callee, "index")
                name = child_at(index, 0) if index is not None and kind_of(index) == "string" else None
                holder = field_of(callee, "object")
            elif kind == "member_expression":
                name, holder = field_of(callee, "property"), field_of(callee, "object")
            elif kind == "identifier":
                name = callee
            elif kind in _LOOSE_CALLEES and (children := children_of(callee)):
                callee = children[-1] if kind == "sequence_expression" else children[0]
                continue
            break
        receiver = "" if holder is None else clip(text, start_of(holder), end_of(holder), CALLEE_TEXT)
        if name is None or is_missing(name):
            return "", -1, receiver
        at = start_of(name)
        collector.marks[at] = _CALL
        return collector.slice(at, end_of(name)), at, receiver

    def on_decorator(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        for value in children_of(node):
            if is_error(value):
                continue
            collector.spans.append((start_of(node), end_of(node), _DECORATOR))
            if kind_of(value) == "call_expression":
                collector.decorator_calls.add(start_of(value))
            elif kind_of(value) in ("identifier", "member_expression"):
                site = (self.value(collector, value), (), ())
                collector.add_call(self, "decorator", start_of(value), end_of(value), value, None, site)
            collector.code.decorators.append((start_of(node), self.value(collector, value)))

    def on_jsx(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """`<Row a={1}/>` calls Row; `<div>` only says that the function around it draws something."""
        text = collector.text
        name = field_of(node, "name")
        if kind != "close":
            collector.remarks.append((start_of(node), "", "jsx"))
        if name is None:
            return
        first = start_of(name)
        if kind_of(name) == "identifier" and not text[first : first + 1].isupper():
            collector.marks[first] = DEFINED
        elif kind != "close" and kind_of(name) in ("identifier", "member_expression"):
            site = (self.value(collector, name), (None,), ())
            collector.add_call(self, "jsx", start_of(node), end_of(node), name, None)
            call = collector.calls[-1]
            collector.calls[-1] = (*call[:7], *self._read_attributes(collector, node), *site)

    def _read_attributes(self, collector: Collector, node: Node) -> Summary:
        """Attributes are keyword arguments; `{...rest}` is a spread."""
        text = collector.text
        found: list[Argument] = []
        names: list[str] = []
        spread = 0
        for child in children_of(node):
            if kind_of(child) == "jsx_expression":
                spread += 1
                inner = child_at(child, 0) or child
                found.append(Argument("spread", clip(text, start_of(inner), end_of(inner), ARG_TEXT), spread=True))
            elif kind_of(child) == "jsx_attribute":
                parts = children_of(child)
                if not parts:
                    continue
                names.append(collector.slice(start_of(parts[0]), end_of(parts[0])))
                value = parts[-1]
                if len(parts) == 1:
                    found.append(Argument("boolean", "", names[-1]))
                    continue
                if kind_of(value) == "jsx_expression":
                    value = child_at(value, 0) or value
                found.append(
                    Argument(self.value_kind(value), clip(text, start_of(value), end_of(value), ARG_TEXT), names[-1])
                )
        return tuple(found[:MAX_ARGS]), spread, tuple(names)

    # -- flows -----------------------------------------------------------------------------------

    def on_flow(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        if kind == "loop":
            collector.code.branches.append((start_of(node), "loop", end_of(node), None))
        elif kind == "assign" or kind == "for":
            target, right = field_of(node, "left"), field_of(node, "right")
            if target is not None and kind == "for":
                self._read_loop(collector, node, target, right)
            elif target is not None and right is not None:
                self._assign(collector, node, target, right)
        elif kind == "catch":
            self._catch(collector, node)
        else:
            value = child_at(node, 0)
            start, end = start_of(node), end_of(node)
            if value is None or kind_of(value) == "comment":
                collector.flows.append((start, end, kind, "", "", "", -1))
            else:
                self._add_assignment(collector, start, end, "", value, kind)
                if kind == "return":
                    collector.code.returns.append((start, self.value(collector, value)))
                elif kind == "yield":
                    found = self.value(collector, value)
                    delegated = collector.text[start + 5 : start + 7].strip() == b"*"
                    collector.code.yields.append((start, Iterated(found) if delegated else found))
                elif kind == "raise":
                    collector.code.raises.append((start, self.value(collector, value)))

    def _add_assignment(
        self, collector: Collector, start: int, end: int, target: str, value: Node, kind: str = "assign"
    ) -> bool:
        """One flow; True when the value is a literal. Casts, parentheses and `await` are looked through."""
        number = kind_id_of(value)
        if self.shapes.get(number) in _LOOKED_THROUGH:
            for _ in range(_UNWRAP_DEPTH):
                inner = child_at(value, 0) if self.shapes.get(number) in _LOOKED_THROUGH else None
                if inner is None:
                    break
                value, number = inner, kind_id_of(inner)
        value_kind = self.argument_ids.get(number, "other")
        first, source = start_of(value), ""
        if value_kind == "name" or value_kind == "attribute":
            source = clip(collector.text, first, end_of(value), CALLEE_TEXT)
        elif value_kind == "call":
            source = self.call_target(collector, value)
        elif value_kind == "other" and collector.text[first : first + 1] == b"-":
            value_kind = "number"
        collector.flows.append((start, end, kind, target, source, value_kind, first))
        return value_kind in _LITERALS

    def _assign(self, collector: Collector, node: Node, target: Node, value: Node) -> None:
        text = collector.text
        first, last = start_of(target), end_of(target)
        start, end = start_of(node), end_of(node)
        path = DOTTED.fullmatch(text, first, last) if last - first <= CALLEE_TEXT else None
        keyed = _KEYED_EXPORT.fullmatch(text, first, last) if path is None else None
        if path is None and keyed is None:
            for name, _ in find_names(target):
                collector.marks[start_of(name)] = _ASSIGNMENT
            self._add_assignment(collector, start, end, clip(text, first, last, CALLEE_TEXT), value)
            self.assign(collector, start, end, target, self.value(collector, value))
            return
        found_path = path[0] if path is not None else b"exports." + keyed[1] if keyed is not None else b""
        dotted = found_path.decode("utf-8", "replace")
        holder, _, name = dotted.rpartition(".")
        last = keyed.end(1) if keyed is not None else last
        name_start = last - len(name.encode())
        collector.marks[name_start] = _ASSIGNMENT
        draft = Draft("variable", name, start, with_semicolon(text, end), name_start, last, head=start)
        is_module = dotted == "module.exports"
        exported = is_module or holder in ("exports", "module.exports")
        if exported:
            self._export_assigned(collector, draft, value, is_module)
        shape = self.shapes.get(kind_id_of(value))
        if shape in ("arrow", "function", "class") or (shape == "object" and (is_module or name == "prototype")):
            self._bind_value(collector, draft, value, "function")
            self._name_assigned(draft, holder, exported, is_module, value, collector)
            collector.symbols.append(draft)
            found: Value = Defined(start) if shape == "class" else self.value(collector, value)
        else:
            found = self.value(collector, value)
            self._add_assignment(collector, start, end, dotted, value)
            if holder == "this":
                draft.kind, draft.owner = "field", _IN_CLASS
                draft.signature = clip(text, start, end, VALUE_TEXT)
                collector.symbols.append(draft)
        if exported:
            if text[end_of(value) - 6 : end_of(value)] != b"void 0":
                self.bind(collector, start, end, "export =" if is_module else f"export {name}", found)
        elif holder:
            raw = text[start_of(value) : start_of(value) + VALUE_TEXT]
            self.store(collector, start, end, holder, name, found, raw)
        else:
            self.notes(collector).assigned.append((start, end, name, found))

    def _name_assigned(
        self, draft: Draft, holder: str, exported: bool, is_module: bool, value: Node, collector: Collector
    ) -> None:
        """What `module.exports = …`, `exports.x = …`, `A.prototype.x = …`, `this.x = …` and `a.b = …` are called."""
        draft.owner = -1
        if is_module:
            own = field_of(value, "name")
            if own is not None:
                draft.name_start, draft.name_end = start_of(own), end_of(own)
                draft.name = collector.slice(draft.name_start, draft.name_end)
        elif holder == "this":
            draft.kind = "method" if draft.kind == "function" else draft.kind
            draft.owner = _IN_CLASS
        elif holder and not exported:
            if holder.endswith(".prototype") and draft.kind == "function":
                draft.kind = "method"
            draft.name = f"{holder.removesuffix('.prototype')}.{draft.name}"
        if is_module:
            draft.exported, draft.modifiers = True, ("exported", *draft.modifiers)

    def _export_assigned(self, collector: Collector, draft: Draft, value: Node, is_module: bool) -> None:
        """Exports of CommonJS; `exports.a = exports.b = void 0` only makes room for what follows."""
        text = collector.text
        first, last = start_of(value), end_of(value)
        start, end = draft.start, draft.end
        if text[last - 6 : last] == b"void 0":
            return
        dotted = DOTTED.fullmatch(text, first, last)
        if not is_module:
            name = dotted[0].decode("utf-8", "replace") if dotted else draft.name
            collector.exports.append((start, name, draft.name, end, "", False))
        elif kind_of(value) == "object":
            for child in children_of(value):
                key = field_of(child, "key") or field_of(child, "name")
                if key is None and kind_of(child) == "shorthand_property_identifier":
                    key = child
                if key is None:
                    continue
                exported = read_key(text, start_of(key), end_of(key))[0]
                source = field_of(child, "value")
                name = exported
                if source is not None and kind_of(source) == "identifier":
                    name = collector.slice(start_of(source), end_of(source))
                collector.exports.append((start_of(key), name, exported, end_of(key), "", False))
        else:
            own = field_of(value, "name")
            name = "exports"
            if own is not None or dotted is not None:
                at = start_of(own or value), end_of(own or value)
                name = collector.slice(*at)
            collector.exports.append((start, name, "export=", end, "", False))

    def _read_loop(self, collector: Collector, node: Node, target: Node, right: Node | None) -> None:
        """`for (const x of xs)` binds x; without `const` it assigns."""
        declared = field_of(node, "kind") is not None
        start, end = start_of(node), end_of(node)
        operator = field_of(node, "operator")
        source: Value = Constant("str")
        if operator is None or kind_of(operator) != "in":
            iterated = None if right is None else self.value(collector, right)
            source = None if right is None else Iterated(iterated)
            if right is not None and kind_of(right) in _ITERATED and iterated is not None:
                collector.code.runs.append((start_of(right), "iter", iterated))
        collector.code.branches.append((start, "loop", end, None))
        if declared:
            collector.code.binds += [
                (start, start, name, value, end) for _, name, value in self.destructure(collector, target, source)
            ]
        else:
            self.assign(collector, start, end, target, source)
        for name, _ in find_names(target):
            if declared:
                self._add_binding(collector, "variable", name)
            else:
                collector.marks[start_of(name)] = _ASSIGNMENT

    def _catch(self, collector: Collector, node: Node) -> None:
        parameter = field_of(node, "parameter")
        start, end = start_of(node), end_of(node)
        if parameter is None:
            collector.flows.append((start, end, "catch", "", "", "", -1))
            return
        for name, _ in find_names(parameter):
            self._add_binding(collector, "variable", name)
            collector.code.binds.append((start, start, collector.slice(start_of(name), end_of(name)), None, end))
        target = clip(collector.text, start_of(parameter), end_of(parameter), CALLEE_TEXT)
        collector.flows.append((start, end, "catch", target, "", "", -1))

    # -- the whole document ----------------------------------------------------------------------

    def clean_doc(self, comment: str) -> str:
        return DOC_MARK.sub("", comment.strip().removeprefix("/**").removesuffix("*/")).strip("\n \t")

    def finish(self, collector: Collector) -> None:
        outer_of = collector.decorated
        if outer_of:
            kept = []
            for draft in collector.symbols:
                outer = outer_of.get(draft.start)
                if outer is None and draft.head != draft.start:
                    outer = outer_of.get(draft.head)
                if outer is None:
                    draft.head = max(draft.head, draft.start)
                    kept.append(draft)
                elif outer >= 0:
                    _widen(collector, draft, outer)
                    kept.append(draft)
            collector.symbols = kept
        else:
            for draft in collector.symbols:
                draft.head = max(draft.head, draft.start)
        if any(draft.owner != -1 for draft in collector.symbols):
            collector.symbols = _settle_owners(collector.symbols)
        if collector.remarks:
            _find_components(collector)
        if collector.decorator_calls:
            collector.calls = [
                (*call[:3], "decorator", *call[4:])
                if call[0] in collector.decorator_calls and call[3] == "call"
                else call
                for call in collector.calls
            ]
        self.finish_code(collector)

    def finish_nested(self, collector: Collector) -> None:
        drafts = collector.symbols
        listed = {name for _, name, _, _, module, _ in collector.exports if not module}
        inner: set[int] = set()
        for draft in drafts:
            if "." in draft.name:
                own = collector.slice(draft.name_start, draft.name_end)
                draft.name = own if draft.name.endswith(f".{own}") else draft.name
            if draft.parent >= 0:
                if draft.exported:
                    inner.add(draft.name_start)
            elif draft.name in listed and not draft.exported and draft.kind not in ("parameter", "type_parameter"):
                draft.exported = True
                draft.modifiers = ("exported", *draft.modifiers)
            if draft.body_start < 0 and draft.kind in _OVERLOADED and not _is_ambient(drafts, draft):
                draft.modifiers += ("overload",)
        if inner:
            # What a namespace exports does not leave the document by itself.
            collector.exports = [export for export in collector.exports if export[0] not in inner]


class TypeScript(EcmaScript):
    def parse(self, text: bytes, ranges: tuple[tuple[int, int], ...] = ()) -> Tree | None:
        """What the grammar does not know is written so that it does, in a text that could not be parsed: offsets stay,
        and facts read the true text."""
        tree = super().parse(text, ranges)
        if tree is None or not has_error(root_of(tree)):
            return tree
        plain = _NEXT_SIGNATURE.sub(b";", _UNKNOWN.sub(_blank, text))
        other = super().parse(plain, ranges) if plain != text else None
        return other if other is not None and _measure_errors(other) < _measure_errors(tree) else tree


class JavaScript(EcmaScript):
    all_optional = True


# class Box<in out T>, the type of sql<{ id: number }>`SELECT id`, and type Help = `use \`this\``
_UNKNOWN = re.compile(
    rb"(?<=[<,])\s*(?:in\s+out|in|out)(?=\s+[\w$]+\s*(?:[,>=]|extends\b))"
    rb"|(?<=[\w$])<\{[^<>`{}]*\}>(?=`)|\\`|(?<=\bexport )type(?=\s*\*)"
)
# A line that ends what stands above it:
#   (a: A): B
#   <C>(c: C): B
_NEXT_SIGNATURE = re.compile(
    rb"(?<=[\w$>\])}\"'])(?<!=>)\n"
    rb"(?=(?:\s|/\*(?:[^*]|\*(?!/))*\*/|//[^\n]*\n)*(?:<[\s\w$]|new\s*[(<]|in\??:))"
)
_MAX_BROKEN = 10_000  # nodes with an error inside that are looked at


def _blank(match: re.Match[bytes]) -> bytes:
    return b" " * len(match[0])


def _measure_errors(tree: Tree) -> int:
    """How many bytes could not be parsed."""
    todo, size = [root_of(tree)], 0
    for _ in range(_MAX_BROKEN):
        if not todo:
            break
        node = todo.pop()
        if is_error(node) or is_missing(node):
            size += end_of(node) - start_of(node) + 1
        elif has_error(node):
            todo += all_children_of(node)
    return size


def _take_decorators(collector: Collector, draft: Draft, stop: int) -> bytes:
    """Gives the draft the decorators inside its head and returns the head without them."""
    found, pieces, cursor = [], [], draft.start
    at = bisect_left(collector.attributes, (draft.start, 0))
    while at < len(collector.attributes) and collector.attributes[at][0] < stop:
        start, end = collector.attributes[at]
        at += 1
        if start < cursor:
            continue
        pieces.append(collector.text[cursor:start])
        found.append(collector.fold(start + 1, end))
        cursor = end
    gap = collector.text[cursor:stop]
    draft.decorators = tuple(found)
    draft.head = cursor + len(gap) - len(gap.lstrip())
    return b" ".join((*pieces, gap))


def _without_comments(collector: Collector, start: int, end: int) -> bytes:
    """The slice with its comments blanked; offsets stay."""
    text = collector.text[start:end]
    if b"/" not in text or not collector.comments:
        return text
    at = bisect_left(collector.comments, (start, 0))
    while at < len(collector.comments) and collector.comments[at][0] < end:
        first, last = collector.comments[at][0] - start, min(collector.comments[at][1], end) - start
        text = text[:first] + b" " * (last - first) + text[last:]
        at += 1
    return text


def _fold_each(collector: Collector, nodes: list[Node]) -> list[str]:
    return [collector.fold(start_of(node), end_of(node)) for node in nodes if kind_of(node) != "comment"]


# -- the whole document ----------------------------------------------------------------------------


def _widen(collector: Collector, draft: Draft, outer: int) -> None:
    """Takes `export`, `default`, `declare` and decorators before them into the definition they belong to."""
    inner = draft.start if draft.start in collector.decorated else draft.head
    while (further := collector.decorated.get(outer, -1)) >= 0:
        outer = further
    prefix = collector.text[outer:inner]
    alone = draft.start == inner
    decorators = draft.decorators
    lead = Draft("", "", outer, inner, inner, inner, head=outer)
    if b"@" in prefix:
        prefix = _take_decorators(collector, lead, inner)
        draft.decorators = lead.decorators + decorators
    words = find_modifiers(prefix)
    if "exported" in words:
        draft.exported = True
        exported = "default" if "default" in words else draft.name
        type_only = draft.kind in ("interface", "type")
        collector.exports.append((draft.name_start, draft.name, exported, draft.name_end, "", type_only))
    draft.modifiers = words + draft.modifiers
    if alone:
        draft.start = outer
        if not decorators:
            draft.head = lead.head
        draft.signature = f"{collector.fold(lead.head, inner)} {draft.signature}"
    else:
        draft.head = draft.start


def _settle_owners(drafts: list[Draft]) -> list[Draft]:
    """Gives members set in a constructor to its class, once each, and keeps data objects inside functions whole."""
    ordered = sorted(drafts, key=lambda draft: (draft.name_start, draft.start, draft.owner))
    opened = sorted(
        ((d.start, -d.end, d.kind, d.head) for d in drafts if d.body_start >= 0 and (d.scope_start >= 0)),
    )
    members: set[tuple[int, str]] = set()
    waiting: list[tuple[tuple[int, str], Draft]] = []
    dropped: set[int] = set()
    stack: list[tuple[int, str, int]] = []
    at = 0
    for draft in ordered:
        offset = draft.name_start
        while at < len(opened) and opened[at][0] < offset:
            start, end, kind, head = opened[at]
            while stack and stack[-1][0] <= start:
                stack.pop()
            stack.append((-end, kind, head))
            at += 1
        while stack and stack[-1][0] <= offset:
            stack.pop()
        # A definition's own name lies inside its span.
        around = stack[:-1] if stack and stack[-1][2] == draft.head and draft.scope_start >= 0 else stack
        if draft.owner == _PLAIN_OBJECT:
            draft.owner = -1
            if around and around[-1][1] != "namespace":
                if draft.kind == "property":
                    dropped.add(id(draft))
                draft.body_start = draft.body_end = -1
        elif draft.owner == _IN_CLASS:
            if len(around) > 1 and around[-1][1] == "constructor" and around[-2][1] == "class":
                waiting.append(((around[-2][2], draft.name), draft))
            elif draft.body_start < 0:
                dropped.add(id(draft))
            else:
                draft.owner = -1
        elif around and around[-1][1] == "class" and draft.kind in ("field", "method", "accessor"):
            members.add((around[-1][2], draft.name))
    for member, draft in waiting:
        if member in members and draft.body_start < 0:
            dropped.add(id(draft))
        else:
            members.add(member)
            draft.owner = member[0]
    return [draft for draft in drafts if id(draft) not in dropped] if dropped else drafts


def _find_components(collector: Collector) -> None:
    """A function with a capital that draws JSX is a component; a class that does is a class that is one."""
    starts = sorted(entry[0] for entry in collector.remarks)
    for draft in collector.symbols:
        if draft.kind in ("function", "class") and draft.body_start >= 0 and draft.name[:1].isupper():
            at = bisect_left(starts, draft.body_start)
            if at < len(starts) and starts[at] < draft.body_end:
                if draft.kind == "class":
                    draft.modifiers += ("component",)
                else:
                    draft.kind = "component"
    collector.remarks.clear()


def _is_ambient(drafts: list[Draft], draft: Draft) -> bool:
    """Declared rather than defined: `declare`, `abstract`, or a member of an interface or a type."""
    if "abstract" in draft.modifiers:
        return True
    while True:
        if "declare" in draft.modifiers or draft.kind in ("interface", "type"):
            return True
        if draft.parent < 0:
            return False
        draft = drafts[draft.parent]
        if draft.kind in _FUNCTIONS:
            return False


_CALL_KINDS = {"super": "super", "import": "import"}
_KEYED_EXPORT = re.compile(rb"(?:module\.)?exports\[['\"]([\w$]+)['\"]\]")
_MODULE_CALLS = frozenset({"require", "import", "Object.defineProperty"})
_NO_ARGUMENTS: Summary = ((), 0, ())
_PLAIN_CALLEE = 80  # bytes of a callee that is kept
_MAX_KNOWN = 100_000
_NESTED = frozenset({"call", "array", "object"})
_DEPTH_BYTES = 400
_LOOSE_CALLEES = frozenset(
    {"non_null_expression", "parenthesized_expression", "sequence_expression", "instantiation_expression",
     "as_expression", "satisfies_expression"}
)  # fmt: skip
_ITERATED = frozenset({"identifier", "member_expression", "call_expression", "new_expression"})
_LOOKED_THROUGH = frozenset({"wrapped", "awaited"})
_LITERALS = frozenset({"string", "number", "boolean", "null"})
_BODIED = frozenset({"function", "method", "expression", "interface", "enum"})
_OVERLOADED = frozenset({"function", "method", "constructor"})
_FUNCTIONS = frozenset({"function", "method", "constructor", "accessor", "component"})
_READERS = {
    "expression": EcmaScript._read_expression,
    "class": EcmaScript._read_class,
    "class_expression": EcmaScript._read_class,
    "interface": EcmaScript._read_interface,
    "type": EcmaScript._read_type,
    "enum": EcmaScript._read_enum,
    "namespace": EcmaScript._read_namespace,
    "field": EcmaScript._read_field,
    "property": EcmaScript._read_property,
    "signature": EcmaScript._read_signature,
}
