"""What ECMAScript code does with values (cq.model.code): expressions, annotations, and names in their scopes.

Types are bound under `<name>`, exports that are called differently inside under `export name`, `module.exports` under
`export =`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from enum import Enum
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from cq.languages.ecmascript.reading import QUOTES, REQUIRE, Summary, read_key, read_plain_arguments
from cq.model.code import (
    NOWHERE,
    NULL,
    AliasOf,
    Attribute,
    Awaited,
    Bounds,
    CallEnd,
    Choice,
    Constant,
    Defined,
    Dictionary,
    Each,
    Element,
    Entry,
    FunctionType,
    Imported,
    Integer,
    Lambda,
    Listing,
    MemberType,
    Name,
    ObjectType,
    Parameter,
    ParameterOf,
    ReturnOf,
    SeenIn,
    Sent,
    Slice,
    Spread,
    SuperObject,
    Text,
    Typed,
    TypeOf,
    Value,
    read_attribute,
    replace_inner,
)
from cq.syntax.code import MAX_ELEMENTS, MAX_NESTED
from cq.syntax.language import Draft, Language
from cq.syntax.tree import Node, child_at, children_of, end_of, field_of, kind_id_of, kind_of, start_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cq.syntax.code import Blocks
    from cq.syntax.collect import Collector

_WORD = rb"[A-Za-z_$\x80-\xff][\w$\x80-\xff]*"
_PATH = re.compile(_WORD + rb"(?:[?!]?\.#?" + _WORD + rb")*")
_PATH_TEXT = 80
_STRING_TEXT = 120
_CREATED = re.compile(rb"(?:Object\.create\s*\(\s*([\w$.]+)\.prototype\b|new\s+([\w$.]+)\s*\(\s*\))")
_STR, _INT, _BOOL = Constant("str"), Constant("int"), Constant("bool")
_WORDS: dict[bytes, Value] = {
    b"null": NULL, b"undefined": NULL, b"true": _BOOL, b"false": _BOOL, b"super": SuperObject(),
}  # fmt: skip
_TYPES: dict[bytes, Value] = {
    b"string": _STR, b"number": _INT, b"boolean": _BOOL, b"bigint": _INT, b"symbol": Constant("symbol"),
    b"void": NULL, b"null": NULL, b"undefined": NULL, b"never": NULL, b"true": _BOOL, b"false": _BOOL,
    b"any": None, b"unknown": None, b"object": None, b"const": None,
}  # fmt: skip
_TEXTS: Value = Each("list", _STR)
_CONTAINERS = frozenset({b"Map", b"Set", b"Array", b"WeakMap", b"WeakSet", b"Promise"})


class NoPath(Enum):
    """Instead of a value: a text that is more than a name with its attributes."""

    NO_PATH = 0


NO_PATH = NoPath.NO_PATH


class Written(NamedTuple):
    """A function as it stands in the text, before it is known which definition it is."""

    end: int
    body_start: int
    parameters: tuple[Parameter, ...]
    patterns: tuple[tuple[int, str, Value], ...]  # offset, name, value: what patterns among the parameters bind
    type: Value
    value: Value  # of a body that is an expression
    is_arrow: bool
    this: Value  # its declared type
    name: str  # by which a function expression knows itself


class Notes:
    """Of one document, until `finish_code`."""

    def __init__(self) -> None:
        self.functions: dict[int, Written] = {}  # by start
        self.bound: set[int] = set()  # body starts of functions that their definition binds to a name
        self.entries: dict[int, Value] = {}  # start of a function in an object literal -> what `this` is in it
        self.methods: set[int] = set()  # starts of functions in `A.prototype = {…}`
        self.assigned: list[tuple[int, int, str, Value]] = []  # start, end, name, value
        # body start -> kind, what it extends, what it implements, its type parameters
        self.classes: dict[int, tuple[str, list[Value], list[Value], list[tuple[str, Value]]]] = {}
        self.signatures: dict[int, tuple[tuple[Parameter, ...], Value]] = {}  # name start -> those without a body
        self.derived: dict[str, Value] = {}  # `A.prototype = Object.create(B.prototype)`, `util.inherits(A, B)`
        self.made: set[str] = set()  # names behind `new`


class EcmaScriptCode(Language):
    """The part of a language that reads values; definitions and calls are told to it."""

    has_code = True
    type_kinds = frozenset({"interface"})
    # From what is assigned to the block that always runs it; functions are there before that.
    straight_kinds = frozenset({
        "identifier", "this", "property_identifier", "member_expression", "subscript_expression",
        "assignment_expression", "call_expression", "await_expression", "expression_statement", "variable_declarator",
        "lexical_declaration", "variable_declaration", "export_statement", "array_pattern", "object_pattern",
    })  # fmt: skip
    all_optional = False  # parameters may be left out

    def notes(self, collector: Collector) -> Notes:
        notes = collector.code.notes
        if notes is None:
            notes = collector.code.notes = Notes()
        assert isinstance(notes, Notes)
        return notes

    def block_end(self, blocks: Blocks, start: int) -> int:
        node = blocks.find_turn(start)
        if node is None:
            return -1
        return end_of(node) if kind_of(node) == "statement_block" else 0

    # -- expressions -----------------------------------------------------------------------------

    def value(self, collector: Collector, node: Node, depth: int = 0) -> Value:
        """See cq.model.code. What nests too deeply is unknown."""
        number = kind_id_of(node)
        walk = self.value_walks.get(number)
        if walk is None or number == self.member_id:
            start, end = start_of(node), end_of(node)
            found = read_path(collector.text[start:end]) if end - start <= _PATH_TEXT else NO_PATH
            if found is not NO_PATH:
                return found
        if walk is None or depth > MAX_NESTED:
            return None
        return walk(self, collector, node, depth + 1)

    @cached_property
    def call_id(self) -> int | None:
        return self.grammar.find_kind("call_expression")

    @cached_property
    def member_id(self) -> int | None:
        return self.grammar.find_kind("member_expression")

    @cached_property
    def annotation_id(self) -> int | None:
        return self.grammar.find_kind("type_annotation")

    @cached_property
    def comment_id(self) -> int | None:
        return self.grammar.find_kind("comment")

    @cached_property
    def arrow_id(self) -> int | None:
        return self.grammar.find_kind("arrow_function")

    @cached_property
    def value_walks(self) -> dict[int, Callable[[EcmaScriptCode, Collector, Node, int], Value]]:
        return self._by_kind(_VALUES)

    @cached_property
    def type_walks(self) -> dict[int, Callable[[EcmaScriptCode, Collector, Node, int], Value]]:
        return self._by_kind(_KINDS)

    def _by_kind(
        self, table: dict[str, Callable[[EcmaScriptCode, Collector, Node, int], Value]]
    ) -> dict[int, Callable[[EcmaScriptCode, Collector, Node, int], Value]]:
        numbers = ((self.grammar.find_kind(name), walk) for name, walk in table.items())
        return {number: walk for number, walk in numbers if number is not None}

    def argument_values(self, collector: Collector, nodes: list[Node]) -> tuple[Value, ...]:
        return self._values(collector, nodes, 0)

    def template_values(self, collector: Collector, nodes: list[Node]) -> tuple[Value, ...]:
        """What a tag gets: the texts, then every value between them."""
        holes = [node for node in nodes if kind_of(node) == "template_substitution"]
        return _TEXTS, *(self._inner_value(collector, node, 0) for node in holes[:MAX_ELEMENTS])

    def _values(self, collector: Collector, nodes: list[Node], depth: int) -> tuple[Value, ...]:
        kept = [node for node in nodes[:MAX_ELEMENTS] if kind_id_of(node) != self.comment_id]
        return tuple([self.value(collector, node, depth) for node in kept])

    def _call_value(self, collector: Collector, node: Node, depth: int) -> Value:
        start, end = start_of(node), end_of(node)
        if collector.text.startswith(b"require(", start):
            found = REQUIRE.match(collector.text, start, min(end, start + _PATH_TEXT))
            if found is not None and found.end() == end and found[3] is None:
                return Imported(0, found[2][1:-1].decode("utf-8", "replace"), "=")
        return CallEnd(end)

    def _new_value(self, collector: Collector, node: Node, depth: int) -> Value:
        """`new Map<string, Row>()` says what it holds."""
        name = child_at(node, 0)
        is_short = name is not None and end_of(name) - start_of(name) < _PATH_TEXT
        if name is not None and is_short and collector.text[start_of(name) : end_of(name)] in _CONTAINERS:
            kinds = field_of(node, "type_arguments")
            if kinds is not None:
                label = Name(collector.slice(start_of(name), end_of(name)))
                kind = Element(label, self._kinds(collector, children_of(kinds), depth))
                return Typed(kind, CallEnd(end_of(node)))
        return CallEnd(end_of(node))

    def _member_value(self, collector: Collector, node: Node, depth: int) -> Value:
        base, name = field_of(node, "object"), field_of(node, "property")
        if base is None or name is None:
            return None
        # A chain is as long as it likes: walk it here, not by recursion.
        names = [collector.slice(start_of(name), end_of(name))]
        while kind_of(base) == "member_expression":
            inner, name = field_of(base, "object"), field_of(base, "property")
            if inner is None or name is None:
                return None
            names.append(collector.slice(start_of(name), end_of(name)))
            base = inner
        if not all(names):
            return None  # the parser made one up
        return read_attribute(self.value(collector, base, depth), ".".join(reversed(names)))

    def _subscript_value(self, collector: Collector, node: Node, depth: int) -> Value:
        base, index = field_of(node, "object"), field_of(node, "index")
        if base is None or index is None:
            return None
        value, key = self.value(collector, base, depth), self.value(collector, index, depth)
        return None if value is None else Element(value, (key,))

    def _inner_value(self, collector: Collector, node: Node, depth: int) -> Value:
        inner = next((child for child in children_of(node) if kind_of(child) != "comment"), None)
        return None if inner is None else self.value(collector, inner, depth)

    def _last_value(self, collector: Collector, node: Node, depth: int) -> Value:
        children = children_of(node)
        return self.value(collector, children[-1], depth) if children else None

    def _cast_value(self, collector: Collector, node: Node, depth: int) -> Value:
        """`v as T`, `<T>v`; `v as const` is v."""
        children = children_of(node)
        if len(children) < 2:
            return self._inner_value(collector, node, depth)
        inner, kind = children[0], children[1]
        if kind_of(node) == "type_assertion":
            kinds = children_of(inner)
            inner, kind = kind, kinds[0] if kinds else kind
        known = self.kind(collector, kind, depth)
        value = self.value(collector, inner, depth)
        return value if known is None else Typed(known, value)

    def _await_value(self, collector: Collector, node: Node, depth: int) -> Value:
        return Awaited(self._inner_value(collector, node, depth))

    def _yield_value(self, collector: Collector, node: Node, depth: int) -> Value:
        return Sent()

    def _spread_value(self, collector: Collector, node: Node, depth: int) -> Value:
        return Spread(self._inner_value(collector, node, depth))

    def _array_value(self, collector: Collector, node: Node, depth: int) -> Value:
        return Listing("list", self._values(collector, children_of(node), depth))

    def _object_value(self, collector: Collector, node: Node, depth: int) -> Value:
        keys: list[Value] = []
        values: list[Value] = []
        entries = self.notes(collector).entries
        for child in children_of(node)[:MAX_ELEMENTS]:
            kind = kind_of(child)
            if kind == "pair":
                key, value = field_of(child, "key"), field_of(child, "value")
                if key is not None and value is not None:
                    entries.setdefault(start_of(value), None)
                    keys.append(self._key(collector, key))
                    values.append(self.value(collector, value, depth))
            elif kind == "shorthand_property_identifier":
                name = collector.slice(start_of(child), end_of(child))
                keys.append(Text(name))
                values.append(Name(name))
            elif kind == "method_definition":
                name = field_of(child, "name")
                entries.setdefault(start_of(child), None)
                if name is not None:
                    function: Value = Lambda(start_of(child))
                    if collector.text.startswith(b"get ", start_of(child)):
                        function = ReturnOf(function)
                    elif collector.text.startswith(b"set ", start_of(child)):
                        function = None
                    keys.append(self._key(collector, name))
                    values.append(function)
            elif kind == "spread_element":
                keys.append(None)
                values.append(self._inner_value(collector, child, depth))
        return Dictionary(tuple(keys), tuple(values))

    def _key(self, collector: Collector, node: Node) -> Value:
        name = read_key(collector.text, start_of(node), end_of(node))[0]
        if name[:1] == "[":
            return Name(name[1:-1]) if name[1:-1].isidentifier() else _STR  # [KEY] may be a constant
        return _read_number(name) or Text(name)

    def _choice_value(self, collector: Collector, node: Node, depth: int) -> Value:
        children = [field_of(node, field) for field in ("consequence", "alternative")]
        return Choice(tuple([self.value(collector, child, depth) for child in children if child is not None]))

    def _operator_value(self, collector: Collector, node: Node, depth: int) -> Value:
        left, right = field_of(node, "left"), field_of(node, "right")
        operator = field_of(node, "operator")
        if left is None or right is None or operator is None:
            return None
        if kind_of(operator) in ("||", "??", "||=", "??="):
            return Choice((self.value(collector, left, depth), self.value(collector, right, depth)))
        if kind_of(operator) == "&&":
            return self.value(collector, right, depth)
        return _BOOL if kind_of(operator)[:1] in "=!<>i" else None

    def _lambda_value(self, collector: Collector, node: Node, depth: int) -> Value:
        return Lambda(start_of(node))

    def _string_value(self, collector: Collector, node: Node, depth: int) -> Value:
        start, end = start_of(node), end_of(node)
        raw = collector.text[start + 1 : end - 1]
        if collector.text[start] == 96 or b"\\" in raw or len(raw) > _STRING_TEXT:
            return _STR
        return Text(raw.decode("utf-8", "replace"))

    def _number_value(self, collector: Collector, node: Node, depth: int) -> Value:
        return _read_number(collector.slice(start_of(node), end_of(node))) or _INT

    def _yes_value(self, collector: Collector, node: Node, depth: int) -> Value:
        return _BOOL if collector.text[start_of(node)] == 33 else None

    # -- types -----------------------------------------------------------------------------------

    def kind(self, collector: Collector, node: Node, depth: int = 0) -> Value:
        """A type as written."""
        number = kind_id_of(node)
        walk = self.type_walks.get(number)
        if walk is None or number == self.annotation_id:
            start, end = start_of(node), end_of(node)
            found = read_type(collector.text[start:end]) if end - start <= _PATH_TEXT else NO_PATH
            if found is not NO_PATH:
                return found
        if walk is None or depth > MAX_NESTED:
            return None
        return walk(self, collector, node, depth + 1)

    def _kinds(self, collector: Collector, nodes: list[Node], depth: int) -> tuple[Value, ...]:
        kept = [node for node in nodes[:MAX_ELEMENTS] if kind_id_of(node) != self.comment_id]
        return tuple([self.kind(collector, node, depth) for node in kept])

    def _inner_kind(self, collector: Collector, node: Node, depth: int) -> Value:
        inner = next((child for child in children_of(node) if kind_of(child) != "comment"), None)
        return None if inner is None else self.kind(collector, inner, depth)

    def _several_kinds(self, collector: Collector, node: Node, depth: int) -> Value:
        """`A | B | C` nests to the left, as deep as it is long."""
        found: list[Value] = []
        kind = kind_of(node)
        inner: Node | None = node
        while inner is not None and kind_of(inner) == kind and len(found) < MAX_ELEMENTS:
            children = [child for child in children_of(inner) if kind_of(child) != "comment"]
            found += [self.kind(collector, child, depth) for child in reversed(children[1:])]
            inner = children[0] if children else None
        if inner is not None:
            found.append(self.kind(collector, inner, depth))
        return (Choice if kind == "union_type" else Bounds)(tuple(reversed(found)))

    def _generic_kind(self, collector: Collector, node: Node, depth: int) -> Value:
        name, kinds = field_of(node, "name"), field_of(node, "type_arguments")
        if name is None or kinds is None:
            return self._inner_kind(collector, node, depth)
        return Element(self.kind(collector, name, depth), self._kinds(collector, children_of(kinds), depth))

    def _array_kind(self, collector: Collector, node: Node, depth: int) -> Value:
        return Element(Name("Array"), (self._inner_kind(collector, node, depth),))

    def _tuple_kind(self, collector: Collector, node: Node, depth: int) -> Value:
        return Listing("tuple", self._kinds(collector, children_of(node), depth))

    def _function_kind(self, collector: Collector, node: Node, depth: int) -> Value:
        result = field_of(node, "return_type") or field_of(node, "type")
        given = None if result is None else self.kind(collector, result, depth)
        taken: list[Value] = []
        params = field_of(node, "parameters")
        for child in children_of(params)[:MAX_ELEMENTS] if params is not None else ():
            if kind_of(child) == "comment" or collector.text.startswith(b"this", start_of(child)):
                continue
            annotation = field_of(child, "type")
            kind = None if annotation is None else self.kind(collector, annotation, depth)
            taken.append(Spread(kind) if collector.text.startswith(b"...", start_of(child)) else kind)
        mapping = self.type_parameters(collector, node)
        found = FunctionType(given, tuple(taken), kind_of(node).startswith("construct"))
        return substitute(found, mapping) if mapping else found

    def _object_kind(self, collector: Collector, node: Node, depth: int) -> Value:
        keys: list[Value] = []
        types: list[Value] = []
        for child in children_of(node)[:MAX_ELEMENTS]:
            kind = kind_of(child)
            name = field_of(child, "name")
            if kind == "property_signature" and name is not None:
                annotation = field_of(child, "type")
                known = None if annotation is None else self.kind(collector, annotation, depth)
                keys.append(self._key(collector, name))
                types.append(known)
            elif kind == "method_signature" and name is not None:
                keys.append(self._key(collector, name))
                types.append(self._function_kind(collector, child, depth))
            elif kind == "index_signature":
                annotation = field_of(child, "type")
                keys.append(_STR)
                types.append(None if annotation is None else self.kind(collector, annotation, depth))
            elif kind in ("call_signature", "construct_signature") and len(children_of(node)) == 1:
                return self._function_kind(collector, child, depth)
        return ObjectType(tuple(keys), tuple(types))

    def _query_kind(self, collector: Collector, node: Node, depth: int) -> Value:
        inner = child_at(node, 0)
        return TypeOf(None if inner is None else self.value(collector, inner, depth))

    def _lookup_kind(self, collector: Collector, node: Node, depth: int) -> Value:
        children = children_of(node)
        if len(children) < 2:
            return None
        raw = collector.text[start_of(children[1]) : end_of(children[1])]
        if raw[:1] not in (b"'", b'"'):
            return None
        return MemberType(self.kind(collector, children[0], depth), raw[1:-1].decode("utf-8", "replace"))

    def _literal_kind(self, collector: Collector, node: Node, depth: int) -> Value:
        raw = collector.text[start_of(node) : end_of(node)]
        return _TYPES.get(raw, _STR if raw[0] in QUOTES else _INT)

    def _yes_kind(self, collector: Collector, node: Node, depth: int) -> Value:
        return _BOOL

    def _text_kind(self, collector: Collector, node: Node, depth: int) -> Value:
        return _STR

    def type_parameters(self, collector: Collector, node: Node) -> dict[str, Value]:
        """`<T extends Row>`: T stands for Row."""
        parameters = field_of(node, "type_parameters")
        found: dict[str, Value] = {}
        for child in children_of(parameters)[:MAX_ELEMENTS] if parameters is not None else ():
            name, constraint = field_of(child, "name"), field_of(child, "constraint")
            if name is not None:
                kind = None if constraint is None else self._inner_kind(collector, constraint, 0)
                found[collector.slice(start_of(name), end_of(name))] = kind
        return found

    # -- functions -------------------------------------------------------------------------------

    def add_function(
        self,
        collector: Collector,
        node: Node,
        body: Node,
        parameters: list[tuple[Parameter, tuple[tuple[int, str, Value], ...]]],
        *,
        generic: bool,
    ) -> None:
        start, text = start_of(node), collector.text
        is_arrow = kind_id_of(node) == self.arrow_id
        value = None
        if is_arrow and text[start_of(body)] != 123:
            value = self.value(collector, body)
        kind = None
        if text.find(b":", start, start_of(body)) >= 0:
            result = field_of(node, "return_type")
            kind = None if result is None else self.kind(collector, result)
        this: Value = None
        known = [parameter for parameter, _ in parameters]
        if known and known[0].name == "this":
            this = known[0].type
            del known[0]
        if generic and (mapping := self.type_parameters(collector, node)):
            kind = substitute(kind, mapping)
            known = [
                msgspec.structs.replace(p, type=substitute(p.type, mapping)) if p.type is not None else p for p in known
            ]
        patterns = tuple(pattern for _, found in parameters for pattern in found)
        name = ""
        if text.startswith(b"function ", start) and (own := field_of(node, "name")) is not None:
            name = collector.slice(start_of(own), end_of(own))
        self.notes(collector).functions[start] = Written(
            end_of(node), start_of(body), tuple(known), patterns, kind, value, is_arrow, this, name
        )

    def read_parameter(
        self, collector: Collector, child: Node, number: int
    ) -> tuple[Parameter, tuple[tuple[int, str, Value], ...]] | None:
        """With the names that its pattern binds, as attributes of the parameter, which is called `(0)` then."""
        text = collector.text
        if kind_of(child) in ("comment", "ERROR", "decorator"):
            return None
        pattern = field_of(child, "pattern") or child
        default = field_of(child, "value")
        star = ""
        while kind_of(pattern) in ("rest_pattern", "assignment_pattern"):
            if kind_of(pattern) == "rest_pattern":
                star = "*"
            else:
                default = field_of(pattern, "right")
            inner = field_of(pattern, "left") or child_at(pattern, 0)
            if inner is None:
                return None
            pattern = inner
        annotation = field_of(child, "type")
        kind = None if annotation is None else self.kind(collector, annotation)
        value = None if default is None else self.value(collector, default)
        optional = default is not None or self.all_optional or kind_of(child) == "optional_parameter"
        if kind_of(pattern) in ("object_pattern", "array_pattern"):
            name = f"({number})"
            return Parameter(name, star, kind, value, optional), tuple(self.destructure(collector, pattern, Name(name)))
        name = text[start_of(pattern) : end_of(pattern)].decode("utf-8", "replace")
        return Parameter(name, star, kind, value, optional), ()

    def destructure(self, collector: Collector, pattern: Node, value: Value) -> Iterable[tuple[int, str, Value]]:
        """(offset, name, value) for every name that a pattern binds."""
        todo = [(pattern, value)]
        while todo:
            node, value = todo.pop()
            kind = kind_of(node)
            if kind in ("identifier", "shorthand_property_identifier_pattern"):
                name = collector.slice(start_of(node), end_of(node))
                if kind != "identifier":
                    value = read_attribute(value, name)
                yield start_of(node), name, value
            elif kind == "object_pattern":
                todo += [(child, value) for child in children_of(node)[:MAX_ELEMENTS]]
            elif kind == "pair_pattern":
                key, inner = field_of(node, "key"), field_of(node, "value")
                if key is not None and inner is not None:
                    name = read_key(collector.text, start_of(key), end_of(key))[0]
                    todo.append((inner, read_attribute(value, name)))
            elif kind in ("assignment_pattern", "object_assignment_pattern"):
                left, right = field_of(node, "left"), field_of(node, "right")
                if left is not None and right is not None:
                    default = self.value(collector, right)
                    if kind_of(left) == "shorthand_property_identifier_pattern":
                        name = collector.slice(start_of(left), end_of(left))
                        yield start_of(left), name, Choice((read_attribute(value, name), default))
                    else:
                        todo.append((left, Choice((value, default))))
            elif kind == "array_pattern":
                for number, child in enumerate(children_of(node)[:MAX_ELEMENTS]):
                    inner = None if value is None else Element(value, (Integer(number),))
                    if kind_of(child) == "rest_pattern" and value is not None:
                        inner = Slice(value, (number, None))
                    todo.append((child, inner))
            elif kind == "rest_pattern":
                todo += [(child, value) for child in children_of(node)]

    # -- what a document binds -------------------------------------------------------------------

    def bind(self, collector: Collector, start: int, end: int, name: str, value: Value, kind: Value = None) -> None:
        """A declaration: `start` is where it stands."""
        collector.code.binds.append((end, start, name, value, -1))
        if kind is not None:
            collector.code.types[start] = kind

    def assign(self, collector: Collector, start: int, end: int, target: Node, value: Value) -> None:
        """To what is no plain path: an element, an attribute of a call, a pattern."""
        kind = kind_of(target)
        if kind in ("member_expression", "subscript_expression"):
            base = field_of(target, "object")
            name, index = field_of(target, "property"), field_of(target, "index")
            holder = None if base is None else self.value(collector, base)
            if holder is None:
                return
            if name is not None:
                label = collector.slice(start_of(name), end_of(name))
                collector.code.stores.append((start, holder, label, value, None, end))
            elif index is not None:
                collector.code.stores.append((start, holder, None, value, self.value(collector, index), end))
        else:
            assigned = self.notes(collector).assigned
            assigned += [(at, end, name, inner) for at, name, inner in self.destructure(collector, target, value)]

    def store(
        self, collector: Collector, start: int, end: int, holder: str, name: str, value: Value, raw: bytes
    ) -> None:
        """`holder.name = value`."""
        stores, notes = collector.code.stores, self.notes(collector)
        if name == "prototype":
            created = _CREATED.match(raw)
            if created is not None:
                notes.derived[holder] = Name((created[1] or created[2]).decode("utf-8", "replace"))
            elif isinstance(value, Dictionary):
                for key, inner in zip(value.keys, value.values, strict=True):
                    if isinstance(key, Text):
                        stores.append((start, Name(f"{holder}.prototype"), key.value, inner, None, -1))
                        if isinstance(inner, Lambda):
                            notes.methods.add(inner.start)
        elif name == "__proto__":
            _derive(notes, Name(holder), value)
        stores.append((start, Name(holder), name, value, None, -1 if name == "prototype" else end))

    def finish_code(self, collector: Collector) -> None:
        """Gives every function its definition and every name its scope."""
        notes, code, text = self.notes(collector), collector.code, collector.text
        holding = [draft for draft in collector.symbols if draft.scope_start >= 0]
        named = {draft.body_start: draft for draft in holding if draft.kind in _FUNCTIONS}
        classes = self._define_classes(collector, notes, holding)
        spans = [(start, -written.end) for start, written in notes.functions.items()]
        spans += [(start, -draft.body_end) for start, draft in classes.items()]
        tree = _Tree(spans)
        anonymous: dict[int, Written] = {}
        declared: dict[tuple[int, str], int] = {}
        for call in collector.calls:
            name, args = call[5], call[11]
            if name in _DERIVING and len(args) == 2:
                _derive(notes, *args, is_whole=name != "setPrototypeOf")
        prototypes = self._find_prototypes(collector, notes)
        these = [found.start() for found in _THIS_WORD.finditer(text, *collector.span)]
        for start in sorted(notes.functions):
            written = notes.functions[start]
            draft = named.get(written.body_start)
            around = classes.get(tree.parents[start]) if start not in notes.entries else None
            parameters = written.parameters
            key = start
            this: Value = None if written.this is None else Typed(written.this, None)
            is_own = False
            if draft is not None and around is not None:
                key = code.renamed[start] = draft.head
                is_own = True
                parameters = (_THIS, *parameters)
                code.definitions[key] = ("function", parameters, written.type, (), ())
            elif draft is not None and written.body_start in notes.bound:
                key = code.renamed[start] = draft.head
                declared[tree.up(tree.parents[start], notes.functions), draft.name] = key
                kind = "function"
                bases: tuple[Value, ...] = ()
                if draft.name in prototypes and not written.is_arrow:
                    kind, is_own = "prototype", True
                    parameters = (_THIS, *parameters)
                    bases = tuple(base for name, base in notes.derived.items() if name == draft.name)
                code.definitions[key] = (kind, parameters, written.type, bases, ())
            else:
                is_method = draft is not None and draft.kind == "method" and draft.name.rpartition(".")[0] in prototypes
                if (is_method or (draft is not None and start in notes.methods)) and not written.is_arrow:
                    is_own = True
                    parameters = (_THIS, *parameters)
                code.lambdas[start] = (written.end, written.body_start, parameters, written.value)
                code.results[start] = written.type
                if draft is None:
                    anonymous[start] = written
                    for number, parameter in enumerate(parameters):
                        code.binds.append((start, start, parameter.name, ParameterOf(start, number), written.end))
                elif start in notes.entries:
                    this = notes.entries[start]
            if draft is not None and written.value is not None and start not in code.lambdas:
                # Before the body: where that is a function itself, what is returned is not returned by it.
                code.returns.append((written.body_start - 1, written.value))
            place = (start, start) if draft is None else (written.body_start, written.body_start)
            inner = written.end if draft is None else -1
            if not is_own and not written.is_arrow and bisect_left(these, start) < bisect_left(these, written.end):
                code.binds.append((*place, "this", this, inner))
            bound = {name for _, name, _ in written.patterns} | {parameter.name for parameter in parameters}
            if written.name and written.name not in bound:  # `function f(f) { f(); }` calls what it is given
                own = Defined(key) if key in code.definitions else Lambda(key)
                code.binds.append((*place, written.name, own, inner))
            for parameter in parameters:
                declared[start, parameter.name] = start
            for at, name, value in written.patterns:
                declared[start, name] = at
                if draft is None:
                    code.binds.append((start, start, name, SeenIn(NOWHERE, at, value), written.end))
                else:
                    code.binds.append((at, at, name, value, -1))
        self._hide_definitions(collector, tree, anonymous, named, classes)
        self._place_names(notes, collector, tree, anonymous, declared)
        self._place_results(collector, tree, anonymous)
        self._define_signatures(collector, notes)
        self._bind_exports(collector)
        code.add_anonymous(collector)

    def _define_classes(self, collector: Collector, notes: Notes, drafts: list[Draft]) -> dict[int, Draft]:
        """By where their bodies begin."""
        code = collector.code
        found: dict[int, Draft] = {}
        for draft in drafts if notes.classes else ():
            known = notes.classes.get(draft.body_start)
            if known is not None and draft.kind in _CLASSES and draft.head not in code.definitions:
                kind, bases, implemented, parameters = known
                keywords = tuple(("implements", value) for value in implemented)
                code.definitions[draft.head] = (kind, (), None, tuple(bases), keywords)
                found[draft.body_start] = draft
                at = draft.body_start
                code.binds += [(at, at, f"<{name}>", AliasOf(value), -1) for name, value in parameters]
                for base in (*bases, *implemented):
                    named = base.base if isinstance(base, Element) else base
                    if isinstance(named, str) and kind in ("class", "interface"):
                        code.entries.append(Entry("heir", named.rpartition(".")[2], draft.head))
        return found

    def _hide_definitions(
        self,
        collector: Collector,
        tree: _Tree,
        anonymous: dict[int, Written],
        named: dict[int, Draft],
        classes: dict[int, Draft],
    ) -> None:
        """What is defined in a function without a name is known in it only."""
        code = collector.code
        functions = self.notes(collector).functions
        bodies = {start: named.get(functions[start].body_start) for start in functions} if anonymous else {}
        for start, draft in (*bodies.items(), *(classes.items() if anonymous else ())):
            around = tree.parents[start]
            if draft is not None and draft.head in code.definitions and around in anonymous:
                label = f"<{draft.name}>" if code.definitions[draft.head][0] in self.type_kinds else draft.name
                code.unbound.add(draft.head)
                code.binds.append((around, around, label, Defined(draft.head), anonymous[around].end))

    def _find_prototypes(self, collector: Collector, notes: Notes) -> set[str]:
        """Functions that are made with `new`, or get methods through their prototype."""
        found = set(notes.derived) | notes.made
        for _, base, name, _, _, _ in collector.code.stores:
            if isinstance(base, str):
                if base.endswith(".prototype"):
                    found.add(base.removesuffix(".prototype"))
                elif name == "prototype":
                    found.add(base)
        return found

    def _place_names(
        self,
        notes: Notes,
        collector: Collector,
        tree: _Tree,
        anonymous: dict[int, Written],
        declared: dict[tuple[int, str], int],
    ) -> None:
        """What a function without a name declares is known in it only; assignments bind where a name is declared."""
        code = collector.code
        functions = notes.functions
        if not anonymous and not notes.assigned:
            return
        binds = sorted(code.binds, key=lambda bind: bind[1])
        owners = tree.find([bind[1] for bind in binds])
        code.binds = []
        for bind, owner in zip(binds, owners, strict=True):
            owner = tree.up(owner, functions)
            end, start, name, value, inner = bind
            if inner < 0:
                declared.setdefault((owner, name), start)
                if owner in anonymous and start != owner:
                    bind = (owner, owner, name, SeenIn(NOWHERE, start, value), anonymous[owner].end)
            code.binds.append(bind)
        notes.assigned.sort(key=lambda item: item[0])
        owners = tree.find([start for start, *_ in notes.assigned])
        for (start, end, name, value), owner in zip(notes.assigned, owners, strict=True):
            here = owner = tree.up(owner, functions)
            while (owner, name) not in declared and owner >= 0:
                owner = tree.up(tree.parents[owner], functions)
            place = declared.get((owner, name))
            if place is None:
                continue
            if owner in anonymous:
                code.binds.append((owner, owner, name, SeenIn(NOWHERE, start, value), anonymous[owner].end))
            elif owner == here:
                code.binds.append((end, start, name, value, -1))
            else:
                code.is_shared = True
                code.binds.append((end, place, name, SeenIn(NOWHERE, start, value), -1))

    def _place_results(self, collector: Collector, tree: _Tree, anonymous: dict[int, Written]) -> None:
        code = collector.code
        functions = self.notes(collector).functions
        if not anonymous:
            return
        for places in (code.returns, code.yields):
            places.sort(key=lambda place: place[0])
            kept: list[tuple[int, Value]] = []
            for place, owner in zip(places, tree.find([start for start, _ in places]), strict=True):
                owner = tree.up(owner, functions)
                if owner not in anonymous:
                    kept.append(place)
                elif places is code.returns:
                    end, body_start, parameters, value = code.lambdas[owner]
                    if value is None:
                        value = place[1]
                    elif not isinstance(value, Choice):
                        value = Choice((value, place[1]))
                    elif len(value.options) < MAX_ELEMENTS - 1:
                        value = Choice((*value.options, place[1]))
                    code.lambdas[owner] = (end, body_start, parameters, value)
            places[:] = kept

    def _define_signatures(self, collector: Collector, notes: Notes) -> None:
        """Functions without a body count where none with one follows: `f(a: A): X; f(b: B): Y; f(c) {…}`."""
        if not notes.signatures:
            return
        drafts = sorted(
            (d for d in collector.symbols if d.kind in _FUNCTIONS), key=lambda draft: (draft.head, draft.name_start)
        )
        code = collector.code
        for number, draft in enumerate(drafts):
            known = notes.signatures.get(draft.name_start)
            if known is None or draft.head in code.definitions:
                continue
            following = drafts[number + 1] if number + 1 < len(drafts) else None
            if following is not None and following.name == draft.name and following.kind == draft.kind:
                continue
            parameters, kind = known
            if draft.kind != "function":
                parameters = (_THIS, *parameters)
            code.definitions[draft.head] = ("function", parameters, kind, (), ())

    def _bind_exports(self, collector: Collector) -> None:
        code = collector.code
        if not collector.exports:
            return
        collector.public.append((0, 0))
        known = {bind[2] for bind in code.binds}
        for start, name, exported, end, module, _ in collector.exports:
            label = f"export {'=' if exported == 'export=' else exported}"
            if module:
                code.binds.append((end, start, label, Imported(0, module, name), -1))
            elif exported != name and label not in known:
                code.binds.append((end, start, label, Name(name), -1))


def _derive(notes: Notes, derived: Value, base: Value, *, is_whole: bool = False) -> None:
    """Two functions, or their prototypes."""
    if isinstance(derived, str) and isinstance(base, str):
        if is_whole:
            notes.derived[derived] = base
        elif derived.endswith(".prototype") and base.endswith(".prototype"):
            notes.derived[derived.removesuffix(".prototype")] = Name(base.removesuffix(".prototype"))


class _Tree:
    """Spans by their start, and which lies in which."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        self._spans = sorted(spans)
        self.parents: dict[int, int] = {}
        stack: list[tuple[int, int]] = []
        for start, end in self._spans:
            while stack and stack[-1][1] <= start:
                stack.pop()
            self.parents[start] = stack[-1][0] if stack else -1
            stack.append((start, -end))

    def find(self, offsets: list[int]) -> list[int]:
        """For ascending offsets the start of the innermost span around each, -1 outside of all."""
        found: list[int] = []
        stack: list[tuple[int, int]] = []
        at = 0
        for offset in offsets:
            while at < len(self._spans) and self._spans[at][0] <= offset:
                start, end = self._spans[at]
                while stack and stack[-1][1] <= start:
                    stack.pop()
                stack.append((start, -end))
                at += 1
            while stack and stack[-1][1] <= offset:
                stack.pop()
            found.append(stack[-1][0] if stack else -1)
        return found

    def up(self, start: int, kept: dict[int, Written]) -> int:
        """The span itself, or the first around it that is kept."""
        while start >= 0 and start not in kept:
            start = self.parents[start]
        return start


_PLAIN = frozenset({"name", "attribute"})


@lru_cache(maxsize=8192)
def read_plain_values(text: bytes) -> tuple[Summary, tuple[Value, ...]] | None:
    """Arguments that are names, paths and literals only, with their values; None for anything else."""
    summary = read_plain_arguments(text)
    if summary is None or summary[1] > len(summary[0]):
        return None
    values: list[Value] = []
    for argument in summary[0]:
        found = read_path(argument.text.encode()) if argument.kind in _PLAIN else NO_PATH
        values.append(_read_literal(argument.kind, argument.text) if found is NO_PATH else found)
    return summary, tuple(values)


def _read_literal(kind: str, text: str) -> Value:
    if kind == "string":
        return Text(text[1:-1])
    if kind == "number":
        return _read_number(text) or _INT
    return _BOOL if kind == "boolean" else NULL


def _read_number(text: str) -> Integer | None:
    """A short number in plain digits."""
    return Integer(int(text)) if text.isascii() and text.isdigit() and len(text) < 10 else None


def substitute(kind: Value, mapping: dict[str, Value], depth: int = 0) -> Value:
    """A type with its parameters replaced by what they extend."""
    if isinstance(kind, str):
        return mapping.get(kind, kind)
    if kind is None or isinstance(kind, int) or depth > MAX_NESTED:
        return kind
    return replace_inner(kind, lambda inner: substitute(inner, mapping, depth + 1))


@lru_cache(maxsize=8192)
def read_path(raw: bytes) -> Value | NoPath:
    """A name with its attributes; NO_PATH for everything else."""
    if not _PATH.fullmatch(raw):
        return NO_PATH
    if raw in _WORDS:
        return _WORDS[raw]
    if b"?" in raw or b"!" in raw:
        raw = raw.replace(b"?.", b".").replace(b"!.", b".")
    if raw.startswith(_EXPORTS):
        raw = b"export " + raw.removeprefix(b"module.").removeprefix(b"exports.")
    path = raw.decode("utf-8", "replace")
    return Attribute(SuperObject(), path[6:]) if raw.startswith(b"super.") else Name(path)


@lru_cache(maxsize=8192)
def read_type(raw: bytes) -> Value | NoPath:
    """A type that is but a name, with or without the colon before it; NO_PATH for everything else."""
    if raw[:1] == b":":
        raw = raw[1:].strip()
    if not _PATH.fullmatch(raw):
        return NO_PATH
    return _TYPES[raw] if raw in _TYPES else Name(raw.decode("utf-8", "replace"))


_THIS = Parameter("this")
_THIS_WORD = re.compile(rb"this")
_EXPORTS = (b"exports.", b"module.exports.")
# From what is assigned to the block that always runs it; functions are there before that.
_DERIVING = frozenset({"inherits", "setPrototypeOf", "__extends"})  # functions that put one under another
_FUNCTIONS = frozenset({"function", "method", "constructor", "accessor", "component"})
_CLASSES = frozenset({"class", "interface", "type", "enum", "namespace"})
_VALUES: dict[str, Callable[[EcmaScriptCode, Collector, Node, int], Value]] = {
    "call_expression": EcmaScriptCode._call_value,
    "new_expression": EcmaScriptCode._new_value,
    "member_expression": EcmaScriptCode._member_value,
    "subscript_expression": EcmaScriptCode._subscript_value,
    "parenthesized_expression": EcmaScriptCode._inner_value,
    "non_null_expression": EcmaScriptCode._inner_value,
    "satisfies_expression": EcmaScriptCode._inner_value,
    "instantiation_expression": EcmaScriptCode._inner_value,
    "as_expression": EcmaScriptCode._cast_value,
    "type_assertion": EcmaScriptCode._cast_value,
    "await_expression": EcmaScriptCode._await_value,
    "yield_expression": EcmaScriptCode._yield_value,
    "spread_element": EcmaScriptCode._spread_value,
    "array": EcmaScriptCode._array_value,
    "object": EcmaScriptCode._object_value,
    "ternary_expression": EcmaScriptCode._choice_value,
    "binary_expression": EcmaScriptCode._operator_value,
    "unary_expression": EcmaScriptCode._yes_value,
    "assignment_expression": EcmaScriptCode._last_value,
    "augmented_assignment_expression": EcmaScriptCode._operator_value,
    "sequence_expression": EcmaScriptCode._last_value,
    "arrow_function": EcmaScriptCode._lambda_value,
    "function_expression": EcmaScriptCode._lambda_value,
    "generator_function": EcmaScriptCode._lambda_value,
    "string": EcmaScriptCode._string_value,
    "template_string": EcmaScriptCode._string_value,
    "number": EcmaScriptCode._number_value,
}
_KINDS: dict[str, Callable[[EcmaScriptCode, Collector, Node, int], Value]] = {
    "type_annotation": EcmaScriptCode._inner_kind,
    "parenthesized_type": EcmaScriptCode._inner_kind,
    "readonly_type": EcmaScriptCode._inner_kind,
    "optional_type": EcmaScriptCode._inner_kind,
    "rest_type": EcmaScriptCode._inner_kind,
    "generic_type": EcmaScriptCode._generic_kind,
    "union_type": EcmaScriptCode._several_kinds,
    "intersection_type": EcmaScriptCode._several_kinds,
    "array_type": EcmaScriptCode._array_kind,
    "tuple_type": EcmaScriptCode._tuple_kind,
    "function_type": EcmaScriptCode._function_kind,
    "constructor_type": EcmaScriptCode._function_kind,
    "object_type": EcmaScriptCode._object_kind,
    "interface_body": EcmaScriptCode._object_kind,
    "type_query": EcmaScriptCode._query_kind,
    "lookup_type": EcmaScriptCode._lookup_kind,
    "literal_type": EcmaScriptCode._literal_kind,
    "template_literal_type": EcmaScriptCode._text_kind,
    "index_type_query": EcmaScriptCode._text_kind,
    "type_predicate": EcmaScriptCode._yes_kind,
    "type_predicate_annotation": EcmaScriptCode._yes_kind,
    "asserts_annotation": EcmaScriptCode._yes_kind,
}
