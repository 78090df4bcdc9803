"""Python: classes, functions and every name that is bound, with its scope."""

from __future__ import annotations

import ast
import keyword
import re
from bisect import bisect_left
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Literal

import msgspec

from cq.model.code import (
    NULL,
    Augmented,
    Awaited,
    Boolean,
    BranchKind,
    CallEnd,
    Caught,
    Choice,
    Constant,
    Dictionary,
    Each,
    Element,
    Entered,
    Imported,
    Integer,
    Iterated,
    Joined,
    Lambda,
    Listing,
    Literals,
    Name,
    Operated,
    Parameter,
    ParameterOf,
    Seen,
    Sent,
    Slice,
    Spread,
    Text,
    Value,
    read_attribute,
    read_integer,
)
from cq.model.facts import Argument
from cq.syntax.code import MAX_ELEMENTS, MAX_NESTED
from cq.syntax.collect import Scopes
from cq.syntax.excerpt import clip
from cq.syntax.language import (
    ARG_TEXT,
    AT_ROOT,
    CALLEE_TEXT,
    IN_CLASS,
    MAX_ARGS,
    ROLE_NUMBER,
    Draft,
    Language,
)
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
    is_named,
    kind_id_of,
    kind_of,
    start_of,
    text_of,
)

if TYPE_CHECKING:
    from cq.syntax.code import Blocks
    from cq.syntax.collect import Collector

# what `summarize_arguments` says, then values by position and by keyword
_Arguments = tuple[tuple[Argument, ...], int, tuple[str, ...], tuple[Value, ...] | None, tuple[tuple[str, Value], ...]]
_CALL = ROLE_NUMBER["call"]
_ASSIGNMENT = ROLE_NUMBER["assignment"]
_DECORATOR = ROLE_NUMBER["decorator"]
_IMPORT = ROLE_NUMBER["import"]
_VALUE_TEXT = 120
_BINDINGS = frozenset({"variable", "constant", "field"})


class Python(Language):
    argument_kinds = {
        "string": "string", "concatenated_string": "string", "integer": "number", "float": "number",
        "unary_operator": "number", "true": "boolean", "false": "boolean", "none": "null", "identifier": "name",
        "attribute": "attribute", "call": "call", "list": "array", "tuple": "array", "set": "array",
        "list_comprehension": "array", "set_comprehension": "array", "generator_expression": "array",
        "dictionary": "object", "dictionary_comprehension": "object", "lambda": "function",
        "list_splat": "spread", "dictionary_splat": "spread", "keyword_argument": "keyword",
    }  # fmt: skip
    root_kinds = {
        "import_statement": "import", "import_from_statement": "import", "future_import_statement": "import",
        "expression_statement": "expression", "if_statement": "control", "for_statement": "control",
        "while_statement": "control", "try_statement": "control", "with_statement": "control",
        "match_statement": "control",
    }  # fmt: skip
    stub = ": ..."
    method_owners = frozenset({"class"})
    constructor_names = frozenset({"__init__", "__new__"})
    once_kinds = _BINDINGS
    dot_attributes = True
    has_code = True
    flat = True
    keywords = frozenset(word.encode() for word in keyword.kwlist)

    def on_symbol(self, collector: Collector, kind: str, node: Node, captures: Captures) -> Draft | None:
        if kind == "lambda":
            self._add_lambda(collector, node)
            return None
        if kind == "type":
            return self._add_type_alias(collector, node)
        name, body, parameters = field_of(node, "name"), field_of(node, "body"), None
        if kind == "function":
            parameters = field_of(node, "parameters")
        if name is None or body is None or (parameters is None and kind == "function"):
            return None
        start, end, name_start, name_end = start_of(node), end_of(node), start_of(name), end_of(name)
        body_start = start_of(body)
        text = collector.text
        draft = Draft(
            kind, text[name_start:name_end].decode("utf-8", "replace"), start, end, name_start, name_end,
            body_start, end_of(body), start, body_start,
        )  # fmt: skip
        head = text[start:body_start].rstrip()
        # The head ends with its colon, unless a comment stands between it and the body.
        head_end = start + len(head) - 1 if head.endswith(b":") else body_start
        draft.signature = collector.fold(start, head_end).removesuffix(":")
        if text[name_end : name_end + 1] == b"[":
            type_parameters = field_of(node, "type_parameters")
            if type_parameters is not None:
                self._add_type_parameters(collector, type_parameters)
        if kind == "class":
            bases, keywords = (), ()
            if text[name_end : name_end + 1] != b":":
                draft.bases = self._find_bases(collector, node)
                arguments = field_of(node, "superclasses")
                bases, keywords = self._argument_values(collector, arguments) if arguments else ((), ())
            collector.code.definitions[start] = ("class", (), None, bases, keywords)
        else:
            if text.startswith(b"async", start):
                draft.modifiers = ("async",)
            known = ()
            if parameters is not None and end_of(parameters) - start_of(parameters) > 2:
                known = self.on_parameters(collector, parameters)
            returned = field_of(node, "return_type") if b"->" in head else None
            kind_of_value = None if returned is None else self.value(collector, returned)
            collector.code.definitions[start] = ("function", known, kind_of_value, (), ())
        draft.doc = self._docstring(collector, body)
        collector.symbols.append(draft)
        return draft

    def _find_bases(self, collector: Collector, node: Node) -> tuple[str, ...]:
        bases = field_of(node, "superclasses")
        if bases is None:
            return ()
        return tuple(
            collector.fold(start_of(base), end_of(base))
            for base in children_of(bases)
            if kind_of(base) not in ("keyword_argument", "comment")
        )

    def on_parameters(self, collector: Collector, node: Node) -> tuple[Parameter, ...]:
        text, symbols = collector.text, collector.symbols
        found_parameters: list[Parameter] = []
        by_keyword = ""
        for child in children_of(node):
            start, end = start_of(child), end_of(child)
            # `a`, `a: int = 1`, `*args`, `**kw: int`: the name leads, whatever the node is called.
            found = _PARAMETER.match(text, start, end)
            if found is not None:
                name = found[1].decode("utf-8", "replace")
                if end - start == len(name):
                    symbols.append(Draft("parameter", name, start, end, start, end, -1, -1, start, -1, name))
                    found_parameters.append(Parameter(name, by_keyword))
                else:
                    signature = clip(text, start, end, _VALUE_TEXT)
                    symbols.append(
                        Draft("parameter", name, start, end, found.start(1), found.end(1), -1, -1, start, -1, signature)
                    )
                    stars = text[start : found.start(1)].count(b"*")
                    kind_of_value = field_of(child, "type")
                    default = None if stars else field_of(child, "value")
                    found_parameters.append(
                        Parameter(
                            name,
                            "*" * stars or by_keyword,
                            None if kind_of_value is None else self.value(collector, kind_of_value),
                            None if default is None else self.value(collector, default),
                            default is not None,
                        )
                    )
                    if stars == 1:
                        by_keyword = "k"
            elif text[start] == 42:  # a lone `*`
                by_keyword = "k"
            elif text[start] == 47:  # `/`
                found_parameters = [msgspec.structs.replace(p, kind="/") for p in found_parameters]
        return tuple(found_parameters)

    def _add_lambda(self, collector: Collector, node: Node) -> None:
        written = field_of(node, "parameters")
        parameters = () if written is None else self.on_parameters(collector, written)
        body = field_of(node, "body")
        if body is None:
            return
        start, end, code = start_of(node), end_of(node), collector.code
        code.lambdas[start] = (end, start_of(body), parameters, self.value(collector, body))
        for number, parameter in enumerate(parameters):
            code.binds.append((start, start, parameter.name, ParameterOf(start, number), end))

    def _add_type_parameters(self, collector: Collector, node: Node) -> None:
        for child in children_of(node):
            inner: Node | None = child
            while inner is not None and kind_of(inner) != "identifier":
                inner = child_at(inner, 0)
            if inner is not None:
                collector.symbols.append(
                    Draft("type_parameter", collector.slice(start_of(inner), end_of(inner)), start_of(child),
                          end_of(child), start_of(inner), end_of(inner),
                          signature=collector.fold(start_of(child), end_of(child)))
                )  # fmt: skip

    def _add_type_alias(self, collector: Collector, node: Node) -> Draft | None:
        name = field_of(node, "left")
        while name is not None and kind_of(name) != "identifier":
            for child in children_of(name):
                if kind_of(child) == "type_parameter":  # type P[T] = …
                    self._add_type_parameters(collector, child)
            name = child_at(name, 0)
        if name is None:
            return None
        draft = Draft(
            "type", collector.slice(start_of(name), end_of(name)), start_of(node), end_of(node),
            start_of(name), end_of(name), signature=clip(collector.text, start_of(node), end_of(node), _VALUE_TEXT),
        )  # fmt: skip
        collector.symbols.append(draft)
        right = field_of(node, "right")
        inner = None if right is None else child_at(right, 0)
        value = None if inner is None else self.value(collector, inner)
        collector.code.binds.append((end_of(node), start_of(node), draft.name, value, -1))
        return draft

    def _docstring(self, collector: Collector, body: Node) -> str:
        text = collector.text
        if not text.startswith(_STRING_STARTS, start_of(body)):  # a body that is not written yet begins with the end
            return ""
        first = child_at(body, 0)
        if first is not None and kind_of(first) == "comment":
            first = next((child for child in children_of(body) if kind_of(child) != "comment"), None)
        if first is None or kind_of(first) != "expression_statement":
            return ""
        string = child_at(first, 0)
        if string is None or kind_of(string) not in ("string", "concatenated_string"):
            return ""
        start, end = start_of(string), end_of(string)
        if _PLAIN_STRING.match(text, start):
            collector.docs.append((start, end))
        return _clean_docstring(collector.slice(start, end))

    def on_root(self, collector: Collector, root: Node) -> None:
        """A module's own docstring is nobody's; only where it lies is kept."""
        if kind_of(root) == "module" and child_count_of(root):
            self._docstring(collector, root)

    # -- decorators ------------------------------------------------------------------------------

    def on_decorated(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        definition = field_of(node, "definition")
        if definition is not None:
            collector.decorated[start_of(definition)] = start_of(node)

    def on_decorator(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        start, end = start_of(node), end_of(node)
        value = child_at(node, 0)
        collector.decorators.append((start, end if value is None else end_of(value)))
        if value is None:
            return
        collector.spans.append((start, end, _DECORATOR))
        collector.code.decorators.append((start, self.value(collector, value)))
        if kind_of(value) == "call":
            collector.decorator_calls.add(start_of(value))
        elif kind_of(value) in ("identifier", "attribute"):
            site = (self.value(collector, value), (), ())
            collector.add_call(self, "decorator", start_of(value), end_of(value), value, None, site)

    def each_call(self, collector: Collector, kind: str, nodes: list[Node]) -> None:
        """A loop without a call in it, wherever what is written was read before: there are millions."""
        text, marks, calls, clean = collector.text, collector.marks, collector.calls, collector.clean
        callees, lists = self.known_callees, self.known_lists
        for node in nodes:
            parts = all_children_of(node)
            start, end = start_of(node), end_of(node)
            if len(parts) != 2 or text[start] == _PARENTHESIS:
                self._add_odd_call(collector, node)
                continue
            callee, args = parts
            last, first = end_of(callee), start_of(args)
            written = text[start:last] if last - start <= CALLEE_TEXT else b""
            known = callees.get(written)
            if known is None:
                if not written:
                    self._add_odd_call(collector, node)
                    continue
                known = self._read_callee(collector, callee, written)
                if len(callees) >= _MAX_KNOWN:
                    callees.clear()
                callees[written] = known
            kind, raw, name, receiver, length, target = known
            name_start = -1
            if length:
                name_start = last - length
                marks[name_start] = _CALL
            value: Value = target
            if target is None or not clean:
                value = self.value(collector, callee)
            if kind == "public":
                kind = "call"
                collector.public.append((start, end))
            elif written == b"setattr":
                self._add_attribute(collector, start, args)
            if end - first == 2:
                calls.append((start, end, name_start, kind, raw, name, receiver, (), 0, (), value, (), ()))
                continue
            # What follows from the text alone is kept: the same few arguments are passed again and again. Around a
            # syntax error equal text may be parsed differently, and facts must not depend on what was read before.
            written = text[first:end] if clean and end - first <= ARG_TEXT else b""
            found = lists.get(written)
            if found is None:
                found = self._read_arguments(collector, args)
                if written:
                    if len(lists) >= _MAX_KNOWN:
                        lists.clear()
                    # Only what holds no call, lambda or comprehension is the same wherever it stands.
                    moves = b"(" in written[1:] or _PLACED.search(written)
                    lists[written] = (*found[:3], None, ()) if moves else found
            values, named = found[3:]
            if values is None:
                values, named = self._argument_values(collector, args)
            calls.append((start, end, name_start, kind, raw, name, receiver, *found[:3], value, values, named))

    def _add_odd_call(self, collector: Collector, node: Node) -> None:
        """With comments or errors inside, in parentheses, or very long."""
        # Fields are looked up here: a query that captures them costs the square of a chain's length.
        callee, args = field_of(node, "function"), field_of(node, "arguments")
        if callee is None or args is None:
            return
        text, start, end = collector.text, start_of(node), end_of(node)
        kind = "super" if text.startswith(b"super(", start) and end_of(callee) - start > 6 else "call"
        if text.startswith(_PUBLIC_CALLS, start):
            collector.public.append((start, end))
        values = _NOTHING if end_of(args) - start_of(args) <= 2 else self._argument_values(collector, args)
        collector.add_call(self, kind, start, end, callee, args, (self.value(collector, callee), *values))

    def _add_attribute(self, collector: Collector, start: int, args: Node) -> None:
        """`setattr(x, "name", value)` is `x.name = value`."""
        values, _ = self._argument_values(collector, args)
        name = values[1] if len(values) == 3 else None
        if isinstance(name, Text) and name.value.isidentifier():
            collector.code.stores.append((start, values[0], name.value, values[2], None, -1))

    @cached_property
    def known_callees(self) -> dict[bytes, tuple[str, str, str, str, int, Name | None]]:
        """By their text: kind, callee, name, receiver, bytes of the name, value; None where the node must say that."""
        return {}

    @cached_property
    def known_lists(self) -> dict[bytes, _Arguments]:
        """Argument lists by their text; without values where those depend on the place."""
        return {}

    def _read_callee(
        self, collector: Collector, callee: Node, written: bytes
    ) -> tuple[str, str, str, str, int, Name | None]:
        raw, name, receiver, name_start = collector.split_callee(self, callee)
        kind = "call"
        if written.startswith(b"super(") and len(written) > 6:
            kind = "super"
        elif written.startswith(_PUBLIC_CALLS):
            kind = "public"
        plain = kind_of(callee) == "identifier" or (kind_of(callee) == "attribute" and _DOTTED.fullmatch(written))
        target = Name(written.decode("utf-8", "replace")) if plain else None
        return kind, raw, name, receiver, end_of(callee) - name_start if name_start >= 0 else 0, target

    def _read_arguments(self, collector: Collector, node: Node) -> _Arguments:
        """`summarize_arguments` and `_argument_values` in one pass."""
        children = children_of(node)
        if len(children) > MAX_ELEMENTS or kind_id_of(node) == self.ids["generator_expression"]:
            return (*self.summarize_arguments(collector, node), *self._argument_values(collector, node))
        text, kinds, ids = collector.text, self.argument_ids, self.ids
        string, splat = ids["string"], ids["dictionary_splat"]
        args: list[Argument] = []
        keywords: list[str] = []
        values: list[Value] = []
        named: list[tuple[str, Value]] = []
        positional = 0
        for child in children:
            number, name = kind_id_of(child), ""
            kind = kinds.get(number, "other")
            if kind == "comment":
                continue
            if kind == "keyword":
                pair = children_of(child)
                if len(pair) != 2:  # with a comment or an error inside
                    return (*self.summarize_arguments(collector, node), *self._argument_values(collector, node))
                child = pair[1]
                name = text[start_of(pair[0]) : end_of(pair[0])].decode("utf-8", "replace")
                keywords.append(name)
                number = kind_id_of(child)
                kind = kinds.get(number, "other")
            else:
                positional += 1
            start, end = start_of(child), end_of(child)
            piece = text[start:end] if end - start <= ARG_TEXT else b"\n"
            # Most arguments are short and on one line: no folding to do.
            folded = b"\n" in piece
            excerpt = clip(text, start, end, ARG_TEXT) if folded else piece.decode("utf-8", "replace")
            if len(args) < MAX_ARGS:
                depth = self.shape_depth(child) if kind in _NESTED else 0
                args.append(Argument(kind, excerpt, name, depth, kind == "spread"))
            value: Value
            if kind == "name" and not folded:
                value = Name(excerpt) if excerpt else None
            elif number == string and not folded and piece[0] in _QUOTES:
                value = _string_value(piece)
            elif number == splat and not name:
                inner = child_at(child, 0)
                named.append(("**", None if inner is None else self.value(collector, inner)))
                continue
            else:
                value = self.value(collector, child)
            if name:
                named.append((name, value))
            else:
                values.append(value)
        return tuple(args), positional, tuple(keywords), tuple(values), tuple(named)

    @cached_property
    def ids(self) -> dict[str, int | None]:
        names = ("string", "dictionary_splat", "generator_expression", "identifier", "assignment", "call")
        return {name: self.grammar.find_kind(name) for name in names}

    def _argument_values(
        self, collector: Collector, node: Node
    ) -> tuple[tuple[Value, ...], tuple[tuple[str, Value], ...]]:
        """By position and by keyword; of a call or a class statement."""
        if kind_of(node) == "generator_expression":
            return (self.value(collector, node),), ()
        values: list[Value] = []
        keywords: list[tuple[str, Value]] = []
        for child in children_of(node)[:MAX_ELEMENTS]:
            kind = kind_of(child)
            if kind == "keyword_argument":
                name, value = field_of(child, "name"), field_of(child, "value")
                if name is not None and value is not None:
                    keywords.append((collector.slice(start_of(name), end_of(name)), self.value(collector, value)))
            elif kind == "dictionary_splat":
                inner = child_at(child, 0)
                keywords.append(("**", None if inner is None else self.value(collector, inner)))
            elif kind != "comment":
                values.append(self.value(collector, child))
        return tuple(values), tuple(keywords)

    # -- values ----------------------------------------------------------------------------------

    def value(self, collector: Collector, node: Node, depth: int = 0) -> Value:
        """See cq.model.code. What nests too deeply is unknown."""
        kind = kind_of(node)
        if kind == "call":
            return CallEnd(end_of(node))
        text, start, end = collector.text, start_of(node), end_of(node)
        if kind == "identifier":
            name = text[start:end].decode("utf-8", "replace")
            return Name(name) if name else None  # a name that the parser made up
        if kind == "string":
            piece = text[start:end]
            return self._joined_value(collector, node, depth) if _FORMATTED.match(piece) else _string_value(piece)
        if kind in _LITERALS:
            number = read_integer(text[start:end]) if kind == "integer" else None
            return _LITERALS[kind] if number is None else number
        if kind == "attribute" and _DOTTED.fullmatch(text, start, end):  # a chain of calls is looked at link by link
            return Name(text[start:end].decode("utf-8", "replace"))
        walk = _VALUES.get(kind)
        if walk is None or depth > MAX_NESTED:
            return None
        return walk(self, collector, node, depth + 1)

    def _values(self, collector: Collector, nodes: list[Node], depth: int) -> tuple[Value, ...]:
        return tuple(self.value(collector, node, depth) for node in nodes[:MAX_ELEMENTS] if kind_of(node) != "comment")

    def _joined_value(self, collector: Collector, node: Node, depth: int) -> Value:
        """`f"a{x}"`; one without a value in it is a plain text."""
        parts: list[Value] = []
        is_plain = True
        for part in children_of(node)[:MAX_ELEMENTS]:
            kind = kind_of(part)
            if kind == "string_content":
                piece = collector.text[start_of(part) : end_of(part)]
                parts.append(Text(piece.decode("utf-8", "replace")) if len(piece) < _STRING_TEXT else Constant("str"))
            elif kind == "interpolation":
                inner, is_plain = field_of(part, "expression"), False
                parts.append(None if inner is None or depth > MAX_NESTED else self.value(collector, inner, depth + 1))
        return Constant("str") if is_plain else Joined(tuple(parts))

    def _concatenated_value(self, collector: Collector, node: Node, depth: int) -> Value:
        """`"a" f"{b}"`."""
        parts = self._values(collector, children_of(node), depth)
        if not any(isinstance(part, Joined) for part in parts):
            return Constant("str")
        return Joined(tuple(one for part in parts for one in (part.parts if isinstance(part, Joined) else (part,))))

    def _attribute_value(self, collector: Collector, node: Node, depth: int) -> Value:
        base, name = field_of(node, "object"), field_of(node, "attribute")
        if base is None or name is None:
            return None
        value = self.value(collector, base, depth)
        return read_attribute(value, collector.slice(start_of(name), end_of(name)))

    def _sent_value(self, collector: Collector, node: Node, depth: int) -> Value:
        return Sent()

    def _inner_value(self, collector: Collector, node: Node, depth: int) -> Value:
        inner = next((child for child in children_of(node) if kind_of(child) != "comment"), None)
        return None if inner is None else self.value(collector, inner, depth)

    def _sequence_value(self, collector: Collector, node: Node, depth: int) -> Value:
        return Listing(_LISTINGS.get(kind_of(node), "tuple"), self._values(collector, children_of(node), depth))

    def _dictionary_value(self, collector: Collector, node: Node, depth: int) -> Value:
        keys: list[Value] = []
        values: list[Value] = []
        for pair in children_of(node)[:MAX_ELEMENTS]:
            if kind_of(pair) == "pair":
                key, value = field_of(pair, "key"), field_of(pair, "value")
                if key is not None and value is not None:
                    keys.append(self.value(collector, key, depth))
                    values.append(self.value(collector, value, depth))
            elif kind_of(pair) == "dictionary_splat":
                keys.append(None)
                values.append(self._inner_value(collector, pair, depth))
        return Dictionary(tuple(keys), tuple(values))

    def _comprehension_value(self, collector: Collector, node: Node, depth: int) -> Value:
        body = field_of(node, "body")
        if body is not None and kind_of(body) == "pair":
            body = field_of(body, "value")
        value = None if body is None else self.value(collector, body, depth)
        # The variables of a comprehension are known inside it.
        value = None if body is None else Seen(start_of(body), value)
        return Each(_COMPREHENSIONS[kind_of(node)], value)

    def _subscript_value(self, collector: Collector, node: Node, depth: int) -> Value:
        base = field_of(node, "value")
        value = None if base is None else self.value(collector, base, depth)
        keys = fields_of(node, "subscript")
        if value is None or not keys:
            return None
        if kind_of(keys[0]) == "slice":
            return Slice(value, self._slice_bounds(collector, keys[0]))
        return Element(value, self._values(collector, keys, depth))

    def _slice_bounds(self, collector: Collector, node: Node) -> tuple[int | None, int | None] | None:
        """None in it for a bound that there is none of; None for all where one is no number."""
        bounds: list[int | None] = [None, None]
        at = 0
        for child in all_children_of(node):
            if kind_of(child) == ":":
                at += 1
            elif kind_of(child) != "comment":
                value = self.value(collector, child)
                if not isinstance(value, Integer) or at > 1:
                    return None
                bounds[at] = value.value
        return bounds[0], bounds[1]

    def _sign_value(self, collector: Collector, node: Node, depth: int) -> Value:
        """`-1` is a number; what else a sign gives is what its operand gives."""
        value = self._inner_value(collector, node, depth)
        if isinstance(value, Integer) and collector.text[start_of(node)] == 45:
            return Integer(-value.value)
        return Operated(f"{chr(collector.text[start_of(node)])}x", value, None)

    def _choice_value(self, collector: Collector, node: Node, depth: int) -> Value:
        """`a or b`, `a if c else b`; `a and b` is b or false."""
        values = self._values(collector, children_of(node), depth)
        if kind_of(node) == "conditional_expression" and len(values) == 3:
            values = (values[0], values[2])
        return Choice(values)

    def _operator_value(self, collector: Collector, node: Node, depth: int) -> Value:
        left, right = field_of(node, "left"), field_of(node, "right")
        operator = field_of(node, "operator")
        if left is None or right is None or operator is None:
            return None
        return Operated(kind_of(operator), self.value(collector, left, depth), self.value(collector, right, depth))

    def _await_value(self, collector: Collector, node: Node, depth: int) -> Value:
        return Awaited(self._inner_value(collector, node, depth))

    def _splat_value(self, collector: Collector, node: Node, depth: int) -> Value:
        return Spread(self._inner_value(collector, node, depth))

    def _lambda_value(self, collector: Collector, node: Node, depth: int) -> Value:
        return Lambda(start_of(node))

    def _walrus_value(self, collector: Collector, node: Node, depth: int) -> Value:
        value = field_of(node, "value")
        return None if value is None else self.value(collector, value, depth)

    def each_forward(self, collector: Collector, kind: str, nodes: list[Node]) -> None:
        """`x: "list[Node]"`: an annotation that is written as a string is code."""
        for node in nodes:
            raw = collector.text[start_of(node) : end_of(node)]
            if _FORWARD.fullmatch(raw) and not _is_text(collector, node):
                collector.opaque.append((start_of(node) + 1, 1 - end_of(node), True))

    def _generic_value(self, collector: Collector, node: Node, depth: int) -> Value:
        """`list[int]` in an annotation."""
        children = children_of(node)
        if len(children) < 2:
            return None
        inner = self._values(collector, children_of(children[1]), depth)
        return Element(self.value(collector, children[0], depth), inner)

    def _union_value(self, collector: Collector, node: Node, depth: int) -> Value:
        return Choice(self._values(collector, children_of(node), depth))

    def summarize_arguments(
        self, collector: Collector, node: Node
    ) -> tuple[tuple[Argument, ...], int, tuple[str, ...]]:
        if kind_of(node) == "generator_expression":  # any(x for x in y)
            start, end = start_of(node), end_of(node)
            return (Argument("array", clip(collector.text, start, end, ARG_TEXT), "", self.shape_depth(node)),), 1, ()
        return super().summarize_arguments(collector, node)

    # -- imports ---------------------------------------------------------------------------------

    def on_import(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        start, end = start_of(node), end_of(node)
        collector.spans.append((start, end, _IMPORT))
        if not kind:
            for child in fields_of(node, "name"):
                module, local, name = self._split_alias(collector, child)
                if module:
                    # `import a.b` binds `a`; `import a.b as c` binds the module a.b.
                    imported = "*" if local else ""
                    bound = local or module.split(".")[0]
                    collector.add_import(
                        "import", module, start, end, [(bound, imported or "*", start_of(name), end_of(name), False)]
                    )
                    value = Imported(0, module if local else bound, "*")
                    collector.code.binds.append((end, start, bound, value, -1))
            return
        level = 0
        module = "__future__" if kind == "future" else ""
        source = field_of(node, "module_name")
        if source is not None:
            module = collector.fold(start_of(source), end_of(source)).replace(" ", "")
            level = len(module) - len(module.lstrip("."))
            module = module.lstrip(".")
        bindings = []
        for child in fields_of(node, "name"):
            imported, local, name = self._split_alias(collector, child)
            bindings.append((local or imported, imported, start_of(name), end_of(name), False))
            collector.code.binds.append((end, start, local or imported, Imported(level, module, imported), -1))
        star = not bindings and any(kind_of(child) == "wildcard_import" for child in children_of(node))
        if star:
            collector.code.binds.append((end, start, "*", Imported(level, module, "*"), -1))
        collector.add_import("star" if star else "from", module, start, end, bindings, level=level)

    def _split_alias(self, collector: Collector, node: Node) -> tuple[str, str, Node]:
        """(imported, local or "", node of the name that is bound)."""
        if kind_of(node) == "aliased_import":
            name, alias = field_of(node, "name"), field_of(node, "alias")
            if name is not None and alias is not None:
                return (
                    collector.slice(start_of(name), end_of(name)),
                    collector.slice(start_of(alias), end_of(alias)),
                    alias,
                )
        return collector.slice(start_of(node), end_of(node)), "", node

    # -- bindings and flows ----------------------------------------------------------------------

    def on_scoped(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        for child in children_of(node):
            remark = (start_of(child), collector.slice(start_of(child), end_of(child)), kind)
            collector.remarks.append(remark)
            collector.code.foreign.append(remark)

    def on_flow(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        handler = _FLOWS.get(kind)
        if handler is not None:
            handler(self, collector, node)
            return
        value = child_at(node, 0)
        if value is not None and kind_of(value) == "comment":
            value = None
        collector.add_flow(self, kind, node, None, value)
        if kind == "return" and value is not None:
            collector.code.returns.append((start_of(node), self.value(collector, value)))
        elif kind == "raise" and value is not None:
            collector.code.raises.append((start_of(node), self.value(collector, value)))
        elif kind == "yield":
            found = None if value is None else self.value(collector, value)
            if collector.text.startswith(b"yield from", start_of(node)):
                if value is not None and kind_of(value) in _RECEIVERS:
                    collector.code.runs.append((start_of(value), "iter", found))
                found = Iterated(found)
            collector.code.yields.append((start_of(node), found))

    def each_run(self, collector: Collector, kind: str, nodes: list[Node]) -> None:
        """What runs a method of an object without a call; not of literals, and of what is no name or call."""
        targets, receivers, runs = collector.targets, self.receiver_ids, collector.code.runs
        for node in nodes:
            receiver = node if kind == "truth" else children_of(node)[-1] if kind == "in" else child_at(node, 0)
            if receiver is not None and kind == "with" and kind_of(receiver) == "as_pattern":
                receiver = child_at(receiver, 0)
            if receiver is None or kind_id_of(receiver) not in receivers:
                continue
            operation = kind
            if kind == "item":
                start = start_of(node)
                is_deleted = collector.text.startswith(b"del ", max(0, start - 4))
                operation = "[]=" if (start, end_of(node)) in targets else "del" if is_deleted else "[]"
            elif kind in ("operator", "compare", "unary"):
                operator = next((child for child in all_children_of(node) if not is_named(child)), None)
                operation = "" if operator is None else kind_of(operator)
                operation = f"unary{operation}" if kind == "unary" else operation
            if operation in _RUNS and (value := self.value(collector, receiver)) is not None:
                runs.append((start_of(node), operation, value))

    @cached_property
    def receiver_ids(self) -> frozenset[int]:
        found = {self.grammar.find_kind(name) for name in _RECEIVERS}
        return frozenset(number for number in found if number is not None)

    def each_assignment(self, collector: Collector, kind: str, nodes: list[Node]) -> None:
        text, kinds, flows, ids = collector.text, self.argument_ids, collector.flows, self.ids
        identifier, call, assignment = ids["identifier"], ids["call"], ids["assignment"]
        for node in nodes:
            parts = all_children_of(node)
            if len(parts) != 3 or text[start_of(parts[1])] != _EQUALS or kind_id_of(parts[2]) == assignment:
                self._add_odd_assignment(collector, node)
                continue
            target, _, value = parts
            start, end, target_end, value_start = start_of(node), end_of(node), end_of(target), start_of(value)
            number = kind_id_of(value)
            value_kind, value_text, found = kinds.get(number, "other"), "", self.value(collector, value)
            if value_kind == "name" or value_kind == "attribute":
                value_text = clip(text, value_start, end_of(value), CALLEE_TEXT)
            elif number == call:
                value_text = clip(text, value_start, end_of(all_children_of(value)[0]), CALLEE_TEXT)
            if kind_id_of(target) == identifier:
                name = text[start:target_end].decode("utf-8", "replace")
                flows.append((start, end, "assign", name, value_text, value_kind, value_start))
                self._add_variable(collector, target, node, value)
                collector.code.binds.append((end, start, name, found, -1))
            else:
                collector.targets.add((start, target_end))
                target_text = clip(text, start, target_end, CALLEE_TEXT)
                flows.append((start, end, "assign", target_text, value_text, value_kind, value_start))
                self._bind(collector, target, node, value)
                self._add_bind(collector, target, node, found, end)

    def _add_odd_assignment(self, collector: Collector, node: Node) -> None:
        """With an annotation, or with comments, errors or another one inside."""
        target, value = field_of(node, "left"), field_of(node, "right")
        if target is None:
            return
        collector.targets.add((start_of(target), end_of(target)))
        if value is not None:
            source = self._find_source(collector, value)
            collector.add_flow(self, "assign", node, target, source)
            self._bind(collector, target, node, value)
            self._add_bind(collector, target, node, self.value(collector, source), end_of(node))
        annotation = field_of(node, "type")
        if annotation is not None:
            collector.flows.append(
                (
                    start_of(node), end_of(node), "annotate", _text(collector, target), _text(collector, annotation),
                    "type", start_of(annotation),
                )
            )  # fmt: skip
            self._bind(collector, target, node, None)
            collector.code.types[start_of(node)] = self.value(collector, annotation)
            if value is None:
                self._add_bind(collector, target, node, None, end_of(node))

    def _find_source(self, collector: Collector, value: Node) -> Node:
        """What is assigned in the end: `a = b = c`. The links of a chain are asked from the outside in."""
        known, chain, source = collector.code.sources, list[int](), value
        while kind_of(source) == "assignment":
            inner = known.get(start_of(source)) or field_of(source, "right")
            if inner is None:
                break
            chain.append(start_of(source))
            source = inner
        known.update(dict.fromkeys(chain, source))
        return source

    def _augment(self, collector: Collector, node: Node) -> None:
        target = field_of(node, "left")
        if target is not None and kind_of(target) == "identifier":
            collector.marks[start_of(target)] = _ASSIGNMENT
            if collector.text[start_of(target) : end_of(target)] == b"__all__":
                collector.public.append((start_of(node), end_of(node)))
        operator, right = field_of(node, "operator"), field_of(node, "right")
        if target is not None and operator is not None and right is not None:
            base, value = self.value(collector, target), self.value(collector, right)
            if kind_of(operator) == "+=" and not isinstance(value, (str, int, Literals)) and value is not None:
                base = Augmented(base, value)  # jobs += [f]
            collector.code.runs.append((start_of(node), kind_of(operator), base))

    def _bind_target(self, collector: Collector, node: Node) -> None:
        target, value = field_of(node, "left"), field_of(node, "right")
        if target is None or value is None:
            return
        before = len(collector.symbols)
        self._bind(collector, target, target if kind_of(node) == "for_statement" else node, None)
        iterated = self.value(collector, value)
        element: Value = Iterated(iterated)
        if kind_of(value) in _RECEIVERS:
            collector.code.runs.append((start_of(value), "iter", iterated))
        if kind_of(node) == "for_in_clause":
            for draft in collector.symbols[before:]:
                draft.modifiers = ("comprehension",)
            whole = collector.ancestors.holder(node) or node
            if start_of(whole) in collector.code.looped:
                element = Seen(start_of(node), element)  # `for row in rows for cell in row`
            collector.code.looped.add(start_of(whole))
            self._add_bind(collector, target, whole, element, start_of(whole), end_of(whole))
        else:
            collector.code.branches.append((start_of(node), "loop", end_of(node), None))
            self._add_bind(collector, target, node, element, end_of(target))

    def each_branch(self, collector: Collector, kind: str, nodes: list[Node]) -> None:
        for node in nodes:
            _BRANCHES[kind](self, collector, node)

    def _add_branch(self, collector: Collector, kind: BranchKind, node: Node | None, value: Value = None) -> None:
        if node is not None:
            collector.code.branches.append((start_of(node), kind, end_of(node), value))

    def _read_if(self, collector: Collector, node: Node) -> None:
        """`elif` is asked when nothing above it held, `else` runs where nothing did."""
        asked: Value = None
        for clause in (node, *fields_of(node, "alternative")):
            if kind_of(clause) == "else_clause":
                self._add_branch(collector, "if", field_of(clause, "body"), Operated("not", asked, None))
                continue
            condition = field_of(clause, "condition")
            value = None if condition is None else self.condition(collector, condition)
            self._add_branch(collector, "if", field_of(clause, "consequence"), value)
            asked = value if clause is node else Operated("or", asked, value)

    def _read_while(self, collector: Collector, node: Node) -> None:
        condition = field_of(node, "condition")
        self._add_branch(collector, "loop", node, None if condition is None else self.condition(collector, condition))

    def _read_assert(self, collector: Collector, node: Node) -> None:
        condition = child_at(node, 0)
        self._add_branch(collector, "assert", node, None if condition is None else self.condition(collector, condition))

    def _read_try(self, collector: Collector, node: Node) -> None:
        self._add_branch(collector, "try", field_of(node, "body"))
        for clause in children_of(node):
            kind = kind_of(clause)
            if kind == "except_clause":
                caught = field_of(clause, "value")
                if caught is not None and kind_of(caught) == "as_pattern":
                    caught = child_at(caught, 0)
                self._add_branch(collector, "except", clause, None if caught is None else self.value(collector, caught))
            elif kind == "finally_clause":
                self._add_branch(collector, "finally", clause)

    def _read_match(self, collector: Collector, node: Node) -> None:
        subject, body = field_of(node, "subject"), field_of(node, "body")
        value = None if subject is None else self.value(collector, subject)
        for clause in () if body is None else children_of(body):
            if kind_of(clause) == "case_clause":
                self._add_branch(collector, "case", clause, value)

    def condition(self, collector: Collector, node: Node, depth: int = 0) -> Value:
        """What must be true; an expression that is no condition of others is its value."""
        kind = kind_of(node)
        if depth > MAX_NESTED:
            return None
        if (
            kind == "parenthesized_expression"
            and child_count_of(node) == 1
            and (inner := child_at(node, 0)) is not None
        ):
            return self.condition(collector, inner, depth + 1)
        parts = all_children_of(node) if kind in _CONDITIONS else []
        if kind == "not_operator" and len(parts) == 2:
            return Operated("not", self.condition(collector, parts[1], depth + 1), None)
        if kind == "boolean_operator" and len(parts) == 3:
            left, right = (self.condition(collector, part, depth + 1) for part in parts[::2])
            return Operated(kind_of(parts[1]), left, right)
        if kind == "comparison_operator" and len(parts) == 3:  # not `a < b < c`
            return Operated(kind_of(parts[1]), *self._values(collector, parts[::2], depth + 1))
        return self.value(collector, node, depth)

    def _walrus(self, collector: Collector, node: Node) -> None:
        target, value = field_of(node, "name"), field_of(node, "value")
        if target is not None and value is not None:
            collector.add_flow(self, "assign", node, target, value)
            self._bind(collector, target, node, value)
            self._add_bind(collector, target, node, self.value(collector, value), end_of(node))

    def _as_pattern(self, collector: Collector, node: Node) -> None:
        """`with x() as y`, `except E as e`, `case P as q`."""
        alias, value = field_of(node, "alias"), child_at(node, 0)
        if alias is None or value is None:
            return
        target = child_at(alias, 0) or alias
        collector.add_flow(self, "assign", node, target, value)
        self._bind(collector, target, target, None)
        caught = collector.text[max(0, start_of(node) - 8) : start_of(node)].rstrip().endswith((b"except", b"except*"))
        bound = None if kind_of(value) == "case_pattern" else self.value(collector, value)
        self._add_bind(collector, target, node, Caught(bound) if caught else Entered(bound), end_of(node))

    def _catch(self, collector: Collector, node: Node) -> None:
        value = field_of(node, "value") or child_at(node, 0)
        if value is None or kind_of(value) == "block":
            collector.flows.append((start_of(node), end_of(node), "catch", "", "", "", -1))
            return
        if kind_of(value) == "as_pattern":
            value = child_at(value, 0) or value
        kinds = children_of(value) if kind_of(value) == "tuple" else [value]
        for kind in kinds:
            collector.flows.append(
                (start_of(node), end_of(node), "catch", "", _text(collector, kind), self.value_kind(kind),
                 start_of(kind))
            )  # fmt: skip

    def _case(self, collector: Collector, node: Node) -> None:
        """`case Point(x=a)` binds a, `case [first, *rest]` both; a dotted name is a value. Inner patterns match too."""
        todo = list(children_of(node))
        while todo:
            current = todo.pop()
            kind, children = kind_of(current), children_of(current)
            if kind == "dotted_name" and len(children) == 1:
                if collector.slice(start_of(current), end_of(current)) != "_":
                    self._bind(collector, children[0], children[0], None)
                    self._add_bind(collector, children[0], children[0], None, end_of(current))
            elif kind == "splat_pattern" and children:
                self._bind(collector, children[-1], children[-1], None)
            elif kind == "as_pattern" and len(children) > 1 and kind_of(children[-1]) == "identifier":
                self._bind(collector, children[-1], children[-1], None)
                todo += children[:-1]
            elif kind in ("class_pattern", "keyword_pattern"):
                todo += children[1:]
            elif kind in ("list_pattern", "tuple_pattern", "dict_pattern", "union_pattern"):
                todo += children

    def _add_bind(
        self, collector: Collector, target: Node, statement: Node, value: Value, start: int, inner: int = -1
    ) -> None:
        """What every name, attribute and element of a target gets; `a, *b = x` by position up to the star."""
        code, first = collector.code, start_of(statement)
        todo = [(target, value)]
        while todo:
            node, value = todo.pop()
            kind = kind_of(node)
            if kind == "identifier":
                code.binds.append((start, first, collector.slice(start_of(node), end_of(node)), value, inner))
            elif kind == "attribute":
                base, name = field_of(node, "object"), field_of(node, "attribute")
                if base is not None and name is not None:
                    path = collector.slice(start_of(name), end_of(name))
                    code.stores.append((first, self.value(collector, base), path, value, None, start))
            elif kind == "subscript":
                base, key = field_of(node, "value"), field_of(node, "subscript")
                if base is not None and key is not None:
                    held = self.value(collector, base)
                    code.stores.append((first, held, None, value, self.value(collector, key), start))
            elif kind == "as_pattern_target":
                todo += [(child, value) for child in children_of(node)[:1]]
            elif kind in _PATTERNS:
                starred = False
                children = children_of(node)[:MAX_ELEMENTS]
                for number, child in enumerate(children):
                    behind = number - len(children)  # counted from the end: -1 is the last
                    if kind_of(child) == "list_splat_pattern":
                        starred = True
                        rest = Slice(value, (number, behind + 1 if behind < -1 else None))
                        todo += [(inner_child, rest) for inner_child in children_of(child)]
                    else:
                        todo.append((child, Element(value, (Integer(behind if starred else number),))))

    def _bind(self, collector: Collector, target: Node, statement: Node, value: Node | None) -> None:
        """Every name the target binds becomes a draft; `finish` keeps the first of each scope."""
        todo = [target]
        while todo:
            node = todo.pop()
            kind = kind_of(node)
            if kind == "identifier":
                self._add_variable(collector, node, statement, value if node is target else None)
            elif kind == "attribute":
                self._add_field(collector, node, statement)
            elif kind in _PATTERNS:
                todo += reversed(children_of(node))

    def _add_variable(self, collector: Collector, name: Node, statement: Node, value: Node | None) -> None:
        start, end, first, last = start_of(name), end_of(name), start_of(statement), end_of(statement)
        draft = Draft(
            "variable", collector.slice(start, end), first, last, start, end,
            -1, -1, first, -1, clip(collector.text, first, last, _VALUE_TEXT),
        )  # fmt: skip
        if value is not None and kind_of(value) == "lambda":
            body = field_of(value, "body")
            if body is not None:
                draft.kind = "function"
                draft.body_start, draft.body_end = start_of(body), end_of(body)
                draft.scope_start = start_of(body)
        elif draft.name.isupper():
            draft.kind = "constant"
        if draft.name == "__all__":
            collector.public.append((first, last))
        collector.marks[start] = _ASSIGNMENT
        collector.symbols.append(draft)

    def _add_field(self, collector: Collector, node: Node, statement: Node) -> None:
        """`self.x = …` in a method defines a field of the class; other attributes are uses."""
        name = field_of(node, "attribute")
        if name is None:
            return
        collector.marks[start_of(name)] = _ASSIGNMENT
        if collector.text[start_of(node) : start_of(name)] in (b"self.", b"cls."):
            start, end = start_of(statement), end_of(statement)
            draft = Draft(
                "field", collector.slice(start_of(name), end_of(name)), start, end, start_of(name), end_of(name),
                -1, -1, start, -1, clip(collector.text, start, end, _VALUE_TEXT), owner=IN_CLASS,
            )  # fmt: skip
            collector.symbols.append(draft)

    # -- the whole document ----------------------------------------------------------------------

    def block_end(self, blocks: Blocks, start: int) -> int:
        text = blocks.text
        for _ in range(_MAX_WITHS):
            line, indent = blocks.find_line(start)
            if line + indent < start and blocks.follows(start, b":"):  # if x: y = 1
                found = text.find(b"\n", start)
                break
            if not indent:
                return -1
            # What a `with` holds always runs: its block goes on behind it.
            above = text.rfind(b"with ", max(0, line - _WITH_TEXT), line)
            head = text.rfind(b"\n", 0, above) + 1 if above >= 0 else -1
            dedent = _DEDENTS.get(indent) or _DEDENTS.setdefault(
                indent, re.compile(rb"\n[ \t]{0,%d}(?=[^\s#])" % (indent - 1))
            )
            if head < 0 or not _WITH.match(text, head, line) or dedent.search(text, above, line):
                found = blocks.find_next(dedent, start)
                break
            start = above
        else:
            return 0
        return found if found >= 0 else len(text)

    def finish(self, collector: Collector) -> None:
        decorators = sorted(collector.decorators)
        for draft in collector.symbols if decorators else ():
            whole = collector.decorated.get(draft.start)
            if whole is not None and draft.kind in ("function", "class"):
                first, last = bisect_left(decorators, (whole, 0)), bisect_left(decorators, (draft.start, 0))
                draft.decorators = tuple(collector.fold(start + 1, end) for start, end in decorators[first:last])
                draft.start = whole
        if collector.decorator_calls:
            collector.calls = [
                (*call[:3], "decorator", *call[4:])
                if call[0] in collector.decorator_calls and call[3] == "call"
                else call
                for call in collector.calls
            ]
        if collector.remarks:
            collector.symbols = _without_foreign(collector)
        collector.code.add_anonymous(collector)

    def finish_nested(self, collector: Collector) -> None:
        drafts = collector.symbols
        names = _public_names(collector)
        for draft in drafts:
            if draft.parent < 0:
                public = draft.name in names if names is not None else not draft.name.startswith("_")
                draft.exported = public and draft.kind != "parameter" and draft.modifiers != ("comprehension",)
            elif (
                draft.kind in ("variable", "constant")
                and drafts[draft.parent].kind == "class"
                and draft.modifiers != ("comprehension",)
            ):
                is_enum = any("Enum" in base or base.endswith("Flag") for base in drafts[draft.parent].bases)
                draft.kind = "enum_member" if is_enum else "field"
            if draft.decorators and draft.kind == "method":
                draft.kind = _decorated_kind(draft)
                draft.modifiers += tuple(word for name, word in _METHOD_MODIFIERS.items() if _has(draft, name))
            if draft.decorators and _has(draft, "overload"):
                draft.modifiers += ("overload",)
            if draft.kind != "parameter" and draft.name.startswith("_") and not draft.name.endswith("__"):
                draft.modifiers += ("private",)
        if names is not None:
            for name, (start, end) in sorted(names.items()):
                collector.exports.append((start, name, name, end, "", False))


def _text(collector: Collector, node: Node) -> str:
    return clip(collector.text, start_of(node), end_of(node), CALLEE_TEXT)


def _has(draft: Draft, word: str) -> bool:
    return any(d.partition("(")[0].rpartition(".")[2] == word for d in draft.decorators)


def _decorated_kind(draft: Draft) -> str:
    for decorator in draft.decorators:
        name = decorator.partition("(")[0]
        last = name.rpartition(".")[2]
        if last in ("property", "cached_property") or name.endswith((".setter", ".getter", ".deleter")):
            return "accessor"
    return draft.kind


def _without_foreign(collector: Collector) -> list[Draft]:
    """A scope assigns what it declares global or nonlocal; a global that nothing else binds it defines, at root."""
    names = {name for _, name, _ in collector.remarks}
    places: list[tuple[int, str, str | Draft]] = list(collector.remarks)
    places += [(d.name_start, d.name, d) for d in collector.symbols if d.name in names and d.kind in _BINDINGS]
    places.sort(key=itemgetter(0))
    owners = Scopes(collector.symbols).find([offset for offset, _, _ in places])
    declared = {
        (scope, name): word for scope, (_, name, word) in zip(owners, places, strict=True) if isinstance(word, str)
    }
    bound = {
        name for scope, (_, name, draft) in zip(owners, places, strict=True) if scope < 0 and isinstance(draft, Draft)
    }
    dropped: set[int] = set()
    for scope, (_, name, draft) in zip(owners, places, strict=True):
        word = declared.get((scope, name)) if isinstance(draft, Draft) else None
        if word == "global" and name not in bound and isinstance(draft, Draft):
            bound.add(name)
            draft.owner = AT_ROOT
        elif word:
            dropped.add(id(draft))
    return [draft for draft in collector.symbols if id(draft) not in dropped]


def _public_names(collector: Collector) -> dict[str, tuple[int, int]] | None:
    """The strings of `__all__ = …`, `+= …`, `.extend(…)` with the place that names them; None when there is none."""
    names: dict[str, tuple[int, int]] = {}
    for start, end in sorted(collector.public):
        try:
            tree = ast.parse(collector.slice(start, end))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for constant in ast.walk(tree):
            if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
                names.setdefault(constant.value, (start, end))
    return names if collector.public else None


def _clean_docstring(literal: str) -> str:
    """The text of a string literal as people read it: quotes off, common indent off. Escapes stay as written."""
    body = literal.lstrip("rRuUbBfF")
    for quote in ('"""', "'''", '"', "'"):
        if body.startswith(quote):
            body = body[len(quote) :].removesuffix(quote)
            break
    lines = body.expandtabs().splitlines()
    if not lines:
        return ""
    margin = min((len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()), default=0)
    return "\n".join([lines[0].strip(), *(line[margin:].rstrip() for line in lines[1:])]).strip("\n").rstrip()


def _is_text(collector: Collector, string: Node) -> bool:
    """Whether a string in an annotation names no type: `Literal["open"]`, and what follows the type in
    `Annotated[int, "metres"]`."""
    inner = string
    for outer in collector.ancestors.above(string):
        if kind_of(outer) not in ("type", "binary_operator", "type_parameter", "generic_type"):
            break
        if kind_of(outer) == "generic_type" and (name := child_at(outer, 0)) is not None and inner != name:
            word = (text_of(name) or b"").rpartition(b".")[2]
            first = child_at(inner, 0)
            if word == b"Literal" or (word == b"Annotated" and (first is None or end_of(first) < end_of(string))):
                return True
        inner = outer
    return False


def _string_value(raw: bytes) -> Value:
    """Short plain strings keep their text: they are keys, names of attributes, modules and types."""
    quote = raw[:1]
    if quote in (b"'", b'"') and len(raw) < _STRING_TEXT and raw[:3] != quote * 3 and b"\\" not in raw:
        return Text(raw[1:-1].decode("utf-8", "replace"))
    return Constant("bytes" if raw[:1] in b"bB" else "str")


# Names, and what may stand between them in a type: never a blank alone.
_FORWARD = re.compile(rb"""(["'])[ ]*(?:[^\W\d]\w*(?:[ ]*[][(),|."'][][(),|."' ]*|(?=\1)))+\1""")
_DEDENTS: dict[int, re.Pattern[bytes]] = {}

_PARENTHESIS, _EQUALS = ord("("), ord("=")
_NESTED = frozenset({"call", "array", "object"})
_PUBLIC_CALLS = (b"__all__.extend", b"__all__.append")
_NOTHING: tuple[tuple[Value, ...], tuple[tuple[str, Value], ...]] = ((), ())
_MAX_KNOWN = 100_000
_STRING_TEXT = 120
_QUOTES = b"\"'"
_FORMATTED = re.compile(rb"[rR]?[fF]")
_PLACED = re.compile(rb"\b(?:lambda|for)\b")  # what in a list of arguments depends on its place
_DOTTED = re.compile(rb"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_LITERALS = {
    "integer": Constant("int"), "float": Constant("float"),
    "true": Boolean(True), "false": Boolean(False), "none": NULL, "not_operator": Constant("bool"),
}  # fmt: skip
_VALUES = {
    "concatenated_string": Python._concatenated_value,
    "yield": Python._sent_value,
    "attribute": Python._attribute_value,
    "parenthesized_expression": Python._inner_value,
    "type": Python._inner_value,
    "list": Python._sequence_value,
    "tuple": Python._sequence_value,
    "set": Python._sequence_value,
    "expression_list": Python._sequence_value,
    "dictionary": Python._dictionary_value,
    "list_comprehension": Python._comprehension_value,
    "set_comprehension": Python._comprehension_value,
    "generator_expression": Python._comprehension_value,
    "dictionary_comprehension": Python._comprehension_value,
    "subscript": Python._subscript_value,
    "conditional_expression": Python._choice_value,
    "boolean_operator": Python._choice_value,
    "binary_operator": Python._operator_value,
    "unary_operator": Python._sign_value,
    "await": Python._await_value,
    "list_splat": Python._splat_value,
    "lambda": Python._lambda_value,
    "named_expression": Python._walrus_value,
    "generic_type": Python._generic_value,
    "union_type": Python._union_value,
}
_LISTINGS: dict[str, Literal["list", "set"]] = {"list": "list", "set": "set"}
_COMPREHENSIONS: dict[str, Literal["list", "set", "generator", "dict"]] = {
    "list_comprehension": "list", "set_comprehension": "set", "generator_expression": "generator",
    "dictionary_comprehension": "dict",
}  # fmt: skip
_RECEIVERS = frozenset({
    "identifier", "attribute", "call", "subscript", "parenthesized_expression", "binary_operator",
})  # fmt: skip
_RUNS = frozenset(
    ["with", "[]", "[]=", "+", "-", "*", "/", "//", "%", "|", "&", "^", "@", "**", "<<", ">>", "<", ">", "<=",
     ">=", "==", "!=", "in", "unary-", "unary+", "unary~", "format", "truth", "del"]
)  # fmt: skip
_WITH = re.compile(rb"[ \t]*(?:async )?with [^\n]*:[ \t]*\n")
_MAX_WITHS = 50  # inside one another; what stands deeper hides nothing
_WITH_TEXT = 1000  # that is searched for the head of a block
_METHOD_MODIFIERS = {"staticmethod": "static", "classmethod": "class", "abstractmethod": "abstract"}
_PARAMETER = re.compile(rb"[*\s]*([^\W\d][\w\x80-\xff]*|[\x80-\xff][\w\x80-\xff]*)")
_PLAIN_STRING = re.compile(rb"[rRuU]?[\"'(]")  # neither bytes nor formatted
_STRING_STARTS = tuple(bytes((byte,)) for byte in b"\"'rRuUbBfF#")  # a quote, a prefix, or a comment
_PATTERNS = frozenset(
    {"pattern_list", "tuple_pattern", "list_pattern", "list_splat_pattern", "tuple", "list", "parenthesized_expression",
     "expression_list", "as_pattern_target"}
)  # fmt: skip
_FLOWS = {
    "augment": Python._augment,
    "walrus": Python._walrus,
    "for": Python._bind_target,
    "as": Python._as_pattern,
    "catch": Python._catch,
    "case": Python._case,
}
_BRANCHES = {
    "if": Python._read_if,
    "while": Python._read_while,
    "assert": Python._read_assert,
    "try": Python._read_try,
    "match": Python._read_match,
}
_CONDITIONS = frozenset({"not_operator", "boolean_operator", "comparison_operator"})
