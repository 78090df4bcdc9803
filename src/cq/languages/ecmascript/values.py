"""What expressions and types say, in the forms of cq.model.code: every kind of node has one handler."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from cq.languages.ecmascript.scopes import DocumentNotes
from cq.model.code import (
    NULL,
    Attribute,
    Bounds,
    CallEnd,
    Choice,
    Constant,
    Dictionary,
    Element,
    FunctionType,
    Imported,
    Integer,
    Lambda,
    Listing,
    MemberType,
    Name,
    ObjectType,
    ReturnOf,
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
from cq.syntax.excerpt import clip
from cq.syntax.reading import CodeReader
from cq.syntax.tree import Node, child_at, children_of, end_of, field_of, kind_id_of, kind_of, start_of

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

VALUE_TEXT = 120  # of an excerpt that shows what a name stands for
WORD = rb"[A-Za-z_$\x80-\xff][\w$\x80-\xff]*"
_PATH = re.compile(WORD + rb"(?:[?!]?\.#?" + WORD + rb")*")
_DOTTED = re.compile(WORD + rb"(?:\.#?" + WORD + rb")*")
_PATH_TEXT = 80
_STRING_TEXT = 120
_EXPORTS = (b"exports.", b"module.exports.")
_STR, _INT, _BOOL = Constant("str"), Constant("int"), Constant("bool")
_WORDS: dict[bytes, Value] = {
    b"null": NULL, b"undefined": NULL, b"true": _BOOL, b"false": _BOOL, b"super": SuperObject(),
}  # fmt: skip
_TYPES: dict[bytes, Value] = {
    b"string": _STR, b"number": _INT, b"boolean": _BOOL, b"bigint": _INT, b"symbol": Constant("symbol"),
    b"void": NULL, b"null": NULL, b"undefined": NULL, b"never": NULL, b"true": _BOOL, b"false": _BOOL,
    b"any": None, b"unknown": None, b"object": None,
}  # fmt: skip
_OF_PROMISES = frozenset({"then", "catch", "finally"})
_CONTAINERS = frozenset({"Map", "Set", "Array", "WeakMap", "WeakSet", "Promise"})


class NoPath(Enum):
    """Instead of a value: a text that is more than a name with its attributes."""

    NO_PATH = 0


NO_PATH = NoPath.NO_PATH


class BoundName(NamedTuple):
    """A name that a pattern binds, what it is bound to, and the key it is read from at the first level."""

    name: Node
    value: Value
    key: Node | None


class ModuleCall(NamedTuple):
    """`require("module")`, `await import("module")`, with or without `.member` behind it."""

    kind: str  # require import
    module: str
    member: str
    start: int


class ValueReader(CodeReader):
    """Reads values of nodes. No shorter than its handlers: the grammars have some fifty kinds of them."""

    def notes(self, collector: Collector) -> DocumentNotes:
        notes = collector.code.notes
        if notes is None:
            notes = collector.code.notes = DocumentNotes()
        assert isinstance(notes, DocumentNotes)
        return notes

    def value(self, collector: Collector, node: Node | None, depth: int = 0) -> Value:
        """An expression or a type. What nests too deeply is unknown."""
        if node is None:
            return None
        number = kind_id_of(node)
        walk = self.value_walks.get(number)
        if walk is None or number == self.member_id:
            start, end = start_of(node), end_of(node)
            path = read_path(collector.text[start:end]) if end - start <= _PATH_TEXT else NO_PATH
            if path is not NO_PATH:
                return path
        if walk is None or depth > MAX_NESTED:
            return None
        return walk(self, collector, node, depth + 1)

    @cached_property
    def value_walks(self) -> dict[int, Walk]:
        numbers = ((self.grammar.find_kind(name), walk) for name, walk in _WALKS.items())
        return {number: walk for number, walk in numbers if number is not None}

    @cached_property
    def call_id(self) -> int | None:
        return self.grammar.find_kind("call_expression")

    @cached_property
    def member_id(self) -> int | None:
        return self.grammar.find_kind("member_expression")

    # -- expressions -----------------------------------------------------------------------------

    def _call(self, collector: Collector, node: Node, depth: int) -> Value:
        if collector.text.startswith(b"require", start_of(node)):
            required = self.find_required(collector, node)
            if required is not None and not required.member:
                return Imported(0, required.module, "=")
        return CallEnd(end_of(node))

    def find_required(self, collector: Collector, node: Node | None) -> ModuleCall | None:
        member = ""
        if node is not None and kind_of(node) == "await_expression":
            node = child_at(node, 0)
        if node is not None and kind_of(node) == "member_expression":
            name, node = field_of(node, "property"), field_of(node, "object")
            member = "" if name is None else collector.write(name)
        if node is None or kind_id_of(node) != self.call_id:
            return None
        function, arguments = field_of(node, "function"), field_of(node, "arguments")
        if function is None or arguments is None:
            return None
        kind = collector.write(function)
        given = [child for child in children_of(arguments) if kind_id_of(child) != self.comment_id]
        if kind not in ("require", "import") or len(given) != 1 or kind_of(given[0]) not in _STRINGS:
            return None
        module = collector.slice(start_of(given[0]) + 1, end_of(given[0]) - 1)
        return None if "${" in module else ModuleCall(kind, module, member, start_of(function))

    def _find_type_module(self, collector: Collector, node: Node | None) -> str | None:
        """The module of `import("m")` in a type; an expression of that is a promise."""
        if node is None or not collector.text.startswith(b"import", start_of(node)):
            return None
        required = self.find_required(collector, node)
        return required.module if required is not None and required.kind == "import" else None

    def _new(self, collector: Collector, node: Node, depth: int) -> Value:
        """`new Map<string, Row>()` says what it holds."""
        made, types = CallEnd(end_of(node)), field_of(node, "type_arguments")
        name = None if types is None else self.value(collector, field_of(node, "constructor"))
        if types is None or name not in _CONTAINERS:
            return made
        return Typed(Element(name, self.values(collector, children_of(types), depth)), made)

    def _member(self, collector: Collector, node: Node, depth: int) -> Value:
        # A chain is as long as it likes: walk it here, not by recursion.
        names: list[str] = []
        base: Node | None = node
        while base is not None and kind_id_of(base) == self.member_id:
            name = field_of(base, "property")
            names.append("" if name is None else collector.write(name))
            base = field_of(base, "object")
        if base is None or not all(names):
            return None  # the parser made one up
        module = self._find_type_module(collector, base)
        # Off the text: in a type the grammar gives the first of several names as that of each.
        path = None if module is None else _DOTTED.fullmatch(collector.text, end_of(base) + 1, end_of(node))
        if module is not None and path is not None and names[-1] not in _OF_PROMISES:
            first, _, rest = path[0].decode("utf-8", "replace").partition(".")
            named = Imported(0, module, first)
            return Attribute(named, rest) if rest else named
        return read_attribute(self.value(collector, base, depth), ".".join(reversed(names)))

    def _subscript(self, collector: Collector, node: Node, depth: int) -> Value:
        base = self.value(collector, field_of(node, "object"), depth)
        index = field_of(node, "index")
        return None if base is None or index is None else Element(base, (self.value(collector, index, depth),))

    def _last(self, collector: Collector, node: Node, depth: int) -> Value:
        return self.value(collector, child_at(node, -1), depth)

    def _cast(self, collector: Collector, node: Node, depth: int) -> Value:
        """`v as T`; `v as const` is v."""
        return self._typed(self.value(collector, child_at(node, 1), depth), self.first_value(collector, node, depth))

    def _assertion(self, collector: Collector, node: Node, depth: int) -> Value:
        """`<T>v`."""
        types = child_at(node, 0)
        kind = None if types is None else self.first_value(collector, types, depth)
        return self._typed(kind, self.value(collector, child_at(node, 1), depth))

    def _typed(self, kind: Value, value: Value) -> Value:
        return value if kind is None else Typed(kind, value)

    def _array(self, collector: Collector, node: Node, depth: int) -> Value:
        return Listing("list", self.values(collector, children_of(node), depth))

    def _object(self, collector: Collector, node: Node, depth: int) -> Value:
        pairs: list[tuple[Value, Value]] = []
        entries = self.notes(collector).entries
        for child in children_of(node)[:MAX_ELEMENTS]:
            name = field_of(child, "key") or field_of(child, "name")
            match kind_of(child):
                case "pair" if name is not None and (value := field_of(child, "value")) is not None:
                    entries.setdefault(start_of(value), None)
                    pairs.append((self.key(collector, name), self.value(collector, value, depth)))
                case "shorthand_property_identifier":
                    label = collector.write(child)
                    pairs.append((Text(label), Name(label)))
                case "method_definition" if name is not None:
                    start = start_of(child)
                    entries.setdefault(start, None)
                    method: Value = Lambda(start)
                    if collector.text.startswith(b"get ", start):
                        method = ReturnOf(method)
                    elif collector.text.startswith(b"set ", start):
                        method = None
                    pairs.append((self.key(collector, name), method))
                case "spread_element":
                    pairs.append((None, self.first_value(collector, child, depth)))
                case _:
                    pass
        return Dictionary(tuple([key for key, _ in pairs]), tuple([value for _, value in pairs]))

    def key(self, collector: Collector, node: Node) -> Value:
        name = read_key(collector, node)[0]
        if name[:1] == "[":
            return Name(name[1:-1]) if name[1:-1].isidentifier() else _STR  # [KEY] may be a constant
        return read_number(name) or Text(name)

    def _ternary(self, collector: Collector, node: Node, depth: int) -> Value:
        options = [field_of(node, field) for field in ("consequence", "alternative")]
        return Choice(tuple([self.value(collector, option, depth) for option in options if option is not None]))

    def _binary(self, collector: Collector, node: Node, depth: int) -> Value:
        left, right = field_of(node, "left"), field_of(node, "right")
        operator = field_of(node, "operator")
        if left is None or right is None or operator is None:
            return None
        match kind_of(operator):
            case "||" | "??" | "||=" | "??=":
                return Choice((self.value(collector, left, depth), self.value(collector, right, depth)))
            case "&&":
                return self.value(collector, right, depth)
            case sign:
                return _BOOL if sign[0] in "=!<>i" else None

    def _unary(self, collector: Collector, node: Node, depth: int) -> Value:
        return _BOOL if collector.text[start_of(node)] == _NOT else None

    def _string(self, collector: Collector, node: Node, depth: int) -> Value:
        start, end = start_of(node), end_of(node)
        raw = collector.text[start + 1 : end - 1]
        if b"\\" in raw or len(raw) > _STRING_TEXT:
            return _STR
        return Text(raw.decode("utf-8", "replace"))

    def _text(self, collector: Collector, node: Node, depth: int) -> Value:
        return _STR

    def _number(self, collector: Collector, node: Node, depth: int) -> Value:
        return read_number(collector.write(node)) or _INT

    # -- patterns --------------------------------------------------------------------------------

    def find_bound(self, collector: Collector, pattern: Node | None, source: Value = None) -> Iterator[BoundName]:
        """The names that a pattern binds where it takes a value apart, in the order of the text."""
        todo: list[tuple[Node, Value, Node | None, int]] = [] if pattern is None else [(pattern, source, None, 0)]
        while todo:
            node, value, key, depth = todo.pop()
            match kind_of(node):
                case "identifier":
                    if end_of(node) > start_of(node):
                        yield BoundName(node, value, key)
                case "shorthand_property_identifier_pattern":
                    name = collector.write(node)
                    yield BoundName(node, read_attribute(value, name), node if depth == 1 else None)
                case "pair_pattern":
                    name, inner = field_of(node, "key"), field_of(node, "value")
                    if name is not None and inner is not None:
                        part = read_attribute(value, read_key(collector, name)[0])
                        todo.append((inner, part, name if depth == 1 else None, depth))
                case "assignment_pattern" | "object_assignment_pattern":
                    left, default = field_of(node, "left"), self.value(collector, field_of(node, "right"))
                    if left is None:
                        continue
                    if kind_of(left) == "shorthand_property_identifier_pattern":
                        value = read_attribute(value, collector.write(left))
                        yield BoundName(left, Choice((value, default)), left if depth == 1 else None)
                    else:
                        todo.append((left, Choice((value, default)), key, depth))
                case "rest_pattern" | "object_pattern" as kind:
                    inside = depth + (kind == "object_pattern")
                    todo += [(child, value, None, inside) for child in reversed(children_of(node))]
                case "array_pattern":
                    for number, child in reversed([*enumerate(children_of(node))]):
                        part = None if value is None else Element(value, (Integer(number),))
                        if kind_of(child) == "rest_pattern" and value is not None:
                            part = Slice(value, (number, None))
                        todo.append((child, part, None, depth + 1))
                case _:
                    pass

    # -- types -----------------------------------------------------------------------------------

    def _type_name(self, collector: Collector, node: Node, depth: int) -> Value:
        kind = read_type(collector.text[start_of(node) : end_of(node)])
        return None if kind is NO_PATH else kind

    def _alternatives(self, collector: Collector, node: Node, depth: int) -> Value:
        """`A | B | C` nests to the left, as deep as it is long."""
        found: list[Value] = []
        kind = kind_of(node)
        inner: Node | None = node
        while inner is not None and kind_of(inner) == kind and len(found) < MAX_ELEMENTS:
            children = [child for child in children_of(inner) if kind_id_of(child) != self.comment_id]
            found += [self.value(collector, child, depth) for child in reversed(children[1:])]
            inner = children[0] if children else None
        if inner is not None:
            found.append(self.value(collector, inner, depth))
        return (Choice if kind == "union_type" else Bounds)(tuple(reversed(found)))

    def _generic(self, collector: Collector, node: Node, depth: int) -> Value:
        name, types = field_of(node, "name"), field_of(node, "type_arguments")
        if name is None or types is None:
            return self.first_value(collector, node, depth)
        return Element(self.value(collector, name, depth), self.values(collector, children_of(types), depth))

    def _array_type(self, collector: Collector, node: Node, depth: int) -> Value:
        return Element(Name("Array"), (self.first_value(collector, node, depth),))

    def _tuple_type(self, collector: Collector, node: Node, depth: int) -> Value:
        return Listing("tuple", self.values(collector, children_of(node), depth))

    def _function_type(self, collector: Collector, node: Node, depth: int) -> Value:
        result = field_of(node, "return_type") or field_of(node, "type")
        params = field_of(node, "parameters")
        taken: list[Value] = []
        for child in children_of(params)[:MAX_ELEMENTS] if params is not None else ():
            pattern = field_of(child, "pattern")
            if pattern is not None and kind_of(pattern) != "this":
                kind = self.value(collector, field_of(child, "type"), depth)
                taken.append(Spread(kind) if kind_of(pattern) == "rest_pattern" else kind)
        is_constructor = kind_of(node).startswith("construct")
        function = FunctionType(self.value(collector, result, depth), tuple(taken), is_constructor)
        return substitute(function, self.find_constraints(collector, node))

    def _object_type(self, collector: Collector, node: Node, depth: int) -> Value:
        pairs: list[tuple[Value, Value]] = []
        members = children_of(node)
        for child in members[:MAX_ELEMENTS]:
            name, kind = field_of(child, "name"), field_of(child, "type")
            match kind_of(child):
                case "property_signature" if name is not None:
                    pairs.append((self.key(collector, name), self.value(collector, kind, depth)))
                case "method_signature" if name is not None:
                    pairs.append((self.key(collector, name), self._function_type(collector, child, depth)))
                case "index_signature":
                    clause = next((part for part in children_of(child) if kind_of(part) == "mapped_type_clause"), None)
                    key = None if clause is None else field_of(clause, "name")
                    known: dict[str, Value] = {} if key is None else {collector.write(key): None}
                    pairs.append((_STR, substitute(self.value(collector, kind, depth), known)))
                case "call_signature" | "construct_signature" if len(members) == 1:
                    return self._function_type(collector, child, depth)
                case _:
                    pass
        return ObjectType(tuple([key for key, _ in pairs]), tuple([kind for _, kind in pairs]))

    def _type_query(self, collector: Collector, node: Node, depth: int) -> Value:
        inner = child_at(node, 0)
        module = self._find_type_module(collector, inner)
        return TypeOf(self.value(collector, inner, depth) if module is None else Imported(0, module, "*"))

    def _lookup_type(self, collector: Collector, node: Node, depth: int) -> Value:
        """`T["name"]`."""
        holder, index = child_at(node, 0), child_at(node, 1)
        name = None if index is None else self.first_value(collector, index, depth)
        return MemberType(self.value(collector, holder, depth), name.value) if isinstance(name, Text) else None

    def _literal_type(self, collector: Collector, node: Node, depth: int) -> Value:
        raw = collector.text[start_of(node) : end_of(node)]
        return _TYPES.get(raw, _STR if raw[0] in QUOTES else _INT)

    def _truth_type(self, collector: Collector, node: Node, depth: int) -> Value:
        return _BOOL

    def find_constraints(self, collector: Collector, node: Node) -> dict[str, Value]:
        """`<T extends Row>`: T stands for Row."""
        parameters = field_of(node, "type_parameters")
        found: dict[str, Value] = {}
        for child in children_of(parameters)[:MAX_ELEMENTS] if parameters is not None else ():
            name, constraint = field_of(child, "name"), field_of(child, "constraint")
            if name is not None:
                kind = None if constraint is None else self.first_value(collector, constraint)
                found[collector.write(name)] = kind
        return found


Walk = Callable[[ValueReader, "Collector", Node, int], Value]
QUOTES = b"\"'`"
_NOT = ord("!")
_STRINGS = frozenset({"string", "template_string"})


def substitute(kind: Value, mapping: dict[str, Value], depth: int = 0) -> Value:
    """A type with its parameters replaced by what they extend."""
    if isinstance(kind, str):
        return mapping.get(kind, kind)
    if not mapping or kind is None or isinstance(kind, int) or depth > MAX_NESTED:
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
    """A type that is but a name; NO_PATH for everything else."""
    if not _PATH.fullmatch(raw):
        return NO_PATH
    return _TYPES[raw] if raw in _TYPES else Name(raw.decode("utf-8", "replace"))


def read_dotted(collector: Collector, node: Node) -> str:
    """A name with its attributes as written; "" for everything else."""
    found = _DOTTED.fullmatch(collector.text, start_of(node), end_of(node))
    return "" if found is None else found[0].decode("utf-8", "replace")


def read_number(text: str) -> Integer | None:
    """A short number in plain digits."""
    return Integer(int(text)) if text.isascii() and text.isdigit() and len(text) < 10 else None


def read_key(collector: Collector, node: Node) -> tuple[str, int, int]:
    """A name with its span: quotes are not part of it, and a computed name keeps its brackets unless it is a string."""
    if kind_of(node) == "computed_property_name":
        inner = child_at(node, 0)
        if inner is None or kind_of(inner) not in _STRINGS:
            start, end = start_of(node), end_of(node)
            return clip(collector.text, start, end, VALUE_TEXT), start, end
        node = inner
    start, end = start_of(node), end_of(node)
    if end - start > 2 and kind_of(node) in _STRINGS:
        start, end = start + 1, end - 1
    return collector.slice(start, end), start, end


_WALKS: dict[str, Walk] = {
    "call_expression": ValueReader._call,
    "new_expression": ValueReader._new,
    "member_expression": ValueReader._member,
    "subscript_expression": ValueReader._subscript,
    "parenthesized_expression": ValueReader.first_value,
    "non_null_expression": ValueReader.first_value,
    "satisfies_expression": ValueReader.first_value,
    "instantiation_expression": ValueReader.first_value,
    "as_expression": ValueReader._cast,
    "type_assertion": ValueReader._assertion,
    "await_expression": ValueReader.read_awaited,
    "yield_expression": ValueReader.read_sent,
    "spread_element": ValueReader.read_spread,
    "array": ValueReader._array,
    "object": ValueReader._object,
    "ternary_expression": ValueReader._ternary,
    "binary_expression": ValueReader._binary,
    "unary_expression": ValueReader._unary,
    "assignment_expression": ValueReader._last,
    "augmented_assignment_expression": ValueReader._binary,
    "sequence_expression": ValueReader._last,
    "arrow_function": ValueReader.read_lambda,
    "function_expression": ValueReader.read_lambda,
    "generator_function": ValueReader.read_lambda,
    "string": ValueReader._string,
    "template_string": ValueReader._text,
    "number": ValueReader._number,
    # types
    "type_identifier": ValueReader._type_name,
    "nested_type_identifier": ValueReader._type_name,
    "predefined_type": ValueReader._type_name,
    "type_annotation": ValueReader.first_value,
    "opting_type_annotation": ValueReader.first_value,
    "omitting_type_annotation": ValueReader.first_value,
    "adding_type_annotation": ValueReader.first_value,
    "parenthesized_type": ValueReader.first_value,
    "readonly_type": ValueReader.first_value,
    "optional_type": ValueReader.first_value,
    "rest_type": ValueReader.first_value,
    "generic_type": ValueReader._generic,
    "union_type": ValueReader._alternatives,
    "intersection_type": ValueReader._alternatives,
    "array_type": ValueReader._array_type,
    "tuple_type": ValueReader._tuple_type,
    "function_type": ValueReader._function_type,
    "constructor_type": ValueReader._function_type,
    "object_type": ValueReader._object_type,
    "interface_body": ValueReader._object_type,
    "type_query": ValueReader._type_query,
    "lookup_type": ValueReader._lookup_type,
    "literal_type": ValueReader._literal_type,
    "template_literal_type": ValueReader._text,
    "index_type_query": ValueReader._text,
    "type_predicate": ValueReader._truth_type,
    "type_predicate_annotation": ValueReader._truth_type,
    "asserts_annotation": ValueReader._truth_type,
}
