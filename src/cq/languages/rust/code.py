"""Rust for the linker: signatures, patterns and expressions reduced to the values of cq.model.code."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache, partial, reduce
from typing import TYPE_CHECKING, Literal

from cq.model.code import (
    Boolean,
    Bounds,
    CallEnd,
    Choice,
    ClosureParameter,
    Constant,
    Element,
    FunctionType,
    Indexed,
    Item,
    Iterated,
    Joined,
    Lambda,
    Listing,
    MethodOf,
    Name,
    NamedType,
    Operated,
    OperatorMethod,
    Parameter,
    PartOf,
    Seen,
    Text,
    TuplePart,
    Typed,
    Unwrapped,
    Value,
    read_attribute,
    read_integer,
)
from cq.syntax.branches import read_condition
from cq.syntax.code import MAX_NESTED
from cq.syntax.tree import (
    Node,
    all_children_of,
    child_at,
    child_count_of,
    children_of,
    end_of,
    field_of,
    kind_of,
    start_of,
)

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

IN_BLOCK = -2  # Bind.end until blocks are known: the end of the block around it
IN_NEXT_BLOCK = -3  # the end of the block that opens behind it: `if let`
_MAX_NAMES = 64  # of one pattern
_MAX_ARMS = 40
_TAIL_BYTES = 300  # of a callee: enough to see what the last method is called on

Keywords = tuple[tuple[str, Value], ...]
SLICE = Constant("slice")  # stands for the type of `[T]`, with T for its parameter


# -- signatures -------------------------------------------------------------------------------------

_TOKEN = re.compile(r"'[A-Za-z_]\w*(?!')|r#\w+|\w+|::|->|=>|\.\.=?|==|[^\s\w]")
_CLOSERS = {"(": ")", "[": "]", "<": ">", "{": "}"}
_CALLABLE = frozenset({"Fn", "FnMut", "FnOnce", "AsyncFn", "AsyncFnMut", "AsyncFnOnce"})


class _Reader:
    """Over the tokens of a signature or a type. Total: what it cannot read is None."""

    def __init__(self, source: str) -> None:
        self.tokens = _TOKEN.findall(source)
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, token: str) -> bool:
        if self.peek() == token:
            self.at += 1
            return True
        return False

    def skip_group(self) -> None:
        """Past the bracket that is next and everything in it."""
        depth = 0
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            self.at += 1
            depth += (token in "([{<") - (token in ")]}>") if len(token) == 1 else 0
            if depth <= 0:
                return

    def skip_to(self, *stops: str) -> None:
        while self.at < len(self.tokens) and self.peek() not in stops:
            if self.peek() in _CLOSERS:
                self.skip_group()
            else:
                self.at += 1

    def type(self, depth: int = 0) -> Value:
        token = self.peek()
        if depth > MAX_NESTED or not token:
            self.at += 1
            return None
        self.at += 1
        if token in ("&", "*", "mut", "const", "raw") or token[0] == "'":
            return self.type(depth + 1)
        if token == "(":
            parts = self._types(")", depth)
            return parts[0] if len(parts) == 1 else Listing("tuple", tuple(parts))
        if token == "[":
            inner = self.type(depth + 1)
            self.skip_to("]")
            self.take("]")
            return Element(SLICE, (inner,))
        if token in ("dyn", "impl"):
            return self.bounds(depth + 1)
        if token == "for":
            if self.peek() == "<":
                self.skip_group()
            return self.type(depth + 1)
        if token in ("unsafe", "extern"):
            return self.type(depth + 1)
        if token == "fn":
            return self._callable(depth)
        if token == "<":
            self.at -= 1
            self.skip_group()
            while self.take("::"):
                self.at += 1
            return None
        if token == "::":
            return self.type(depth + 1)
        if not (token[0].isalpha() or token[0] == "_") or token == "_":
            return None
        return self._path(token, depth)

    def _path(self, name: str, depth: int) -> Value:
        path = name.removeprefix("r#")
        parameters: list[Value] = []
        while True:
            if self.peek() == "<":
                self.at += 1
                parameters = self._types(">", depth)
            elif name in _CALLABLE and self.peek() == "(":
                return self._callable(depth)
            elif self.peek() == "::" and self.at + 1 < len(self.tokens):
                name = self.tokens[self.at + 1]
                self.at += 1
                if name != "<":
                    self.at += 1
                    path = f"{path}::{name.removeprefix('r#')}"
            else:
                break
        return Element(Name(path), tuple(parameters)) if parameters else Name(path)

    def _callable(self, depth: int) -> FunctionType:
        parameters: list[Value] = []
        if self.take("("):
            parameters = self._types(")", depth)
        result = self.type(depth + 1) if self.take("->") else Listing("tuple")
        return FunctionType(result, tuple(parameters))

    def _types(self, closer: str, depth: int) -> list[Value]:
        found: list[Value] = []
        while self.at < len(self.tokens) and not self.take(closer):
            token = self.peek()
            following = self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else ""
            if token[0] == "'" and following in (",", closer):
                self.at += 1  # a lifetime
            elif following in ("=", ":") and token.isidentifier():
                self.at += 2
                inner = self.bounds(depth + 1)
                found.append(NamedType(token, inner) if following == "=" else inner)
            else:
                found.append(self.type(depth + 1))
            before = self.at
            self.skip_to(",", closer)
            self.take(",")
            if self.at == before and self.peek() != closer:
                self.at += 1
        return found

    def bounds(self, depth: int = 0) -> Bounds | FunctionType:
        """`A + 'a + ?Sized + B<C>`; a lone type is itself a bound."""
        found: list[Value] = []
        while True:
            if self.take("?") or self.take("~"):
                self.type(depth + 1)
            elif self.peek()[:1] == "'":
                self.at += 1
            else:
                found.append(self.type(depth + 1))
            if not self.take("+"):
                break
        for kind in found:
            if isinstance(kind, FunctionType):
                return kind
        return Bounds(tuple([kind for kind in found if kind is not None]))

    def generics(self) -> list[tuple[str, Value]]:
        found: list[tuple[str, Value]] = []
        if not self.take("<"):
            return found
        while self.at < len(self.tokens) and not self.take(">"):
            token = self.peek()
            self.at += 1
            if token == "const":
                self.at += 1
            elif token[0] == "'":
                pass
            elif token.isidentifier():
                found.append((token, self.bounds() if self.take(":") else None))
            before = self.at
            self.skip_to(",", ">")
            self.take(",")
            if self.at == before and self.peek() != ">" and self.at < len(self.tokens):
                self.at += 1
        return found

    def where(self, known: list[tuple[str, Value]]) -> Keywords:
        """The parameters with the bounds that a where clause adds."""
        self.skip_to("where", "{")
        if not self.take("where"):
            return tuple(known)
        bounds = dict(known)
        while self.at < len(self.tokens) and self.peek() not in ("{", ";"):
            kind = self.type()
            if self.take(":"):
                added = self.bounds()
                if isinstance(kind, str) and kind in bounds:
                    old = bounds[kind]
                    if isinstance(old, Bounds) and isinstance(added, Bounds):
                        added = Bounds((*old.types, *added.types))
                    bounds[kind] = added
            self.skip_to(",", "{", ";")
            if not self.take(","):
                break
        return tuple(bounds.items())

    def fields(self, closer: str) -> tuple[Parameter, ...]:
        """Parameters of a function, or fields of a tuple struct: those are called 0, 1, …"""
        found: list[Parameter] = []
        while self.at < len(self.tokens) and not self.take(closer):
            while self.take("#"):
                self.skip_group()
            first = self.at
            self.skip_to(":", ",", closer)
            words = [
                word for word in self.tokens[first : self.at] if word not in ("mut", "ref", "&") and word[0] != "'"
            ]
            name = words[0].removeprefix("r#") if len(words) == 1 and words[0].isidentifier() else ""
            kind = None
            if self.take(":"):
                kind = self.type()
                self.skip_to(",", closer)
            elif words[:3] == [".", ".", "."] or words == ["..."]:
                name = ""
            if words:
                found.append(Parameter(name or "_", "", kind))
            self.take(",")
        return tuple(found)

    def places(self) -> tuple[Parameter, ...]:
        found: list[Parameter] = []
        while self.at < len(self.tokens) and not self.take(")"):
            while self.take("#"):
                self.skip_group()
            if self.take("pub") and self.peek() == "(":
                self.skip_group()
            found.append(Parameter(str(len(found)), "", self.type()))
            self.skip_to(",", ")")
            self.take(",")
        return tuple(found)


Signature = tuple[str, tuple[Parameter, ...], Value, tuple[Value, ...], Keywords]


@lru_cache(maxsize=1 << 13)
def read_signature(kind: str, source: str) -> Signature:
    """The definition that a head announces: kind, parameters or fields, type, bases, type parameters."""
    reader = _Reader(source)
    if kind == "function":
        reader.skip_to("fn")
        reader.at += 2
        generics = reader.generics()
        parameters = reader.fields(")") if reader.take("(") else ()
        result = reader.type() if reader.take("->") else Listing("tuple")
        return "function", parameters, result, (), reader.where(generics)
    if kind == "impl":
        reader.skip_to("impl")
        reader.at += 1
        generics = reader.generics()
        reader.take("!")
        target = reader.type()
        implemented: tuple[Value, ...] = ()
        if reader.take("for"):
            target, implemented = reader.type(), (target,)
        return "impl", (), target, implemented, reader.where(generics)
    if kind == "constant":
        reader.skip_to(":", "=")
        return "const", (), reader.type() if reader.take(":") else None, (), ()
    words = {"enum_member": "", "type": "type", "trait": "trait", "enum": "enum", "union": "union"}
    word = words.get(kind, "struct")
    if word:
        reader.skip_to(word)
        reader.at += 1
    reader.at += 1
    generics = reader.generics()
    if kind == "type":
        # An associated type without a value is as good as its bounds.
        bounds = reader.bounds() if reader.take(":") else None
        reader.skip_to("=")
        return "alias", (), reader.type() if reader.take("=") else bounds, (), tuple(generics)
    if kind == "trait":
        bases: tuple[Value, ...] = ()
        if reader.take(":"):
            found = reader.bounds()
            bases = found.types if isinstance(found, Bounds) else ()
        return "trait", (), None, bases, reader.where(generics)
    if kind == "enum":
        return "enum", (), None, (), reader.where(generics)
    parameters = ()
    if reader.take("("):
        parameters = reader.places()
    elif reader.take("{"):
        parameters = tuple(p for p in reader.fields("}"))
    return "variant" if kind == "enum_member" else "struct", parameters, None, (), reader.where(generics)


@lru_cache(maxsize=1 << 14)
def read_type(source: bytes) -> Value:
    return _Reader(source.decode("utf-8", "replace")).type()


# -- callees ----------------------------------------------------------------------------------------

_PLAIN_CALLEE = re.compile(rb"(?:r#)?[A-Za-z_]\w*(?:::(?:r#)?[A-Za-z_]\w*)*(?:\.\w+)*")
_ON_CALL = re.compile(rb"\)((?:\s*\?|\s*\.\s*await\b)*)\s*((?:\.\s*\w+\s*)*)\Z")
_TURBOFISH = re.compile(rb"::\s*<[^<>]*>")
_GENERIC = re.compile(rb"<[^<>]*>")
_QUALIFIED = re.compile(rb"<[^<>]*?(?:\bas\s+(?P<trait>[\w:]+)|(?P<type>[\w:]+))\s*>::(?P<rest>[\w:]+)")


@lru_cache(maxsize=1 << 13)
def read_path(text: bytes) -> str | None:
    """`a::B::<T>::c`, `B<T>` and `<B as C>::d` as plain paths."""
    text = b"".join(text.split()) if b" as " not in text else text
    for _ in range(4):
        if b"<" not in text:
            break
        found = _QUALIFIED.fullmatch(text)
        if found is not None:
            text = (found["trait"] or found["type"]) + b"::" + found["rest"]
            break
        text = _GENERIC.sub(b"", _TURBOFISH.sub(b"", text)) if not text.startswith(b"<") else _shrink(text)
    text = text.replace(b"r#", b"").removeprefix(b"::")
    return text.decode("utf-8", "replace") if _PLAIN_CALLEE.fullmatch(text) else None


def _shrink(text: bytes) -> bytes:
    """`<Foo<T> as Bar<U>>::x` without the innermost parameters."""
    return re.sub(rb"(\w)<[^<>]*>", rb"\1", text)


def read_callee(text: bytes, start: int, end: int, name: str, name_start: int, kind: str) -> Value:
    """What a call is on, from its text alone; None where the nodes must be asked."""
    if kind != "call":
        path = read_path(text[start:end])
        namespace = _NAMESPACES.get(kind)
        return None if path is None else Name(path) if namespace is None else Item(path, namespace)
    if end - start < _SHORT and (callee := _read_plain(text[start:end])):
        return callee
    before = text[max(start, name_start - _TAIL_BYTES) : name_start].rstrip()
    if before.endswith(b"::"):
        return read_callee_path(_TURBOFISH.sub(b"", text[start:end]) if text[end - 1] == 62 else text[start:end])
    if not before.endswith(b"."):
        return Name(name) if name_start == start else None
    before = before[:-1].rstrip()
    if text[start] == 40:
        return None
    if before.endswith(b")"):
        return MethodOf(CallEnd(max(start, name_start - _TAIL_BYTES) + len(before)), name)
    found = _ON_CALL.search(before) if b")" in before else None
    if found is not None:
        offset = CallEnd(max(start, name_start - _TAIL_BYTES) + found.start() + 1)
        value: Value = Unwrapped(offset) if b"?" in found[1] else offset
        fields = b"".join(found[2].split()).decode("utf-8", "replace").removeprefix(".")
        return MethodOf(read_attribute(value, fields) if fields else value, name)
    path = b"".join(before.split())
    if start >= name_start - _TAIL_BYTES and _PLAIN_CALLEE.fullmatch(path):
        return MethodOf(Name(path.decode("utf-8", "replace").replace("r#", "")), name)
    return None


def read_callee_path(text: bytes) -> Value:
    """A callee that is a path; behind a dot its last name is that of a method."""
    path = read_path(text)
    return None if path is None else Name(path)


Namespace = Literal["macro", "literal", "attribute"]
_NAMESPACES: dict[str, Namespace] = {"macro": "macro", "new": "literal", "decorator": "attribute"}
_SHORT = 60


@lru_cache(maxsize=1 << 14)
def _read_plain(callee: bytes) -> Value:
    if _PLAIN_CALLEE.fullmatch(callee) is None:
        return None
    written = callee.decode("utf-8", "replace").replace("r#", "")
    receiver, dot, name = written.rpartition(".")
    return MethodOf(Name(receiver), name) if dot else Name(written)


# -- expressions ------------------------------------------------------------------------------------

_SAME = frozenset({"reference_expression", "parenthesized_expression", "unary_expression", "await_expression"})
_CALLS = frozenset({"call_expression", "macro_invocation", "struct_expression"})
_WRITTEN = frozenset({
    "string_literal", "raw_string_literal", "char_literal", "integer_literal", "float_literal", "boolean_literal",
    "negative_literal",
})  # fmt: skip
_STRING = re.compile(rb'[bc]?r?(#*)"(.*)"\1', re.DOTALL)
_STRING_TEXT = 120
# A place in a format string: `{}`, `{0}`, `{name:?}`; what is written twice is a brace.
_PLACE = re.compile(r"\{\{|\}\}|\{(\w*)\s*(?::[^{}]*)?\}")
# Macros whose first text is a format string.
FORMATTING = frozenset({
    "format", "print", "println", "eprint", "eprintln", "write", "writeln", "panic", "format_args", "assert",
    "assert_eq", "assert_ne", "debug_assert", "todo", "unreachable", "unimplemented", "bail", "anyhow", "ensure",
    "trace", "debug", "info", "warn", "error", "log",
})  # fmt: skip
_OPERATORS = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "%": "rem", "&": "bitand", "|": "bitor", "^": "bitxor",
    "<<": "shl", ">>": "shr",
}  # fmt: skip


def read_value(collector: Collector, node: Node, depth: int = 0) -> Value:
    """See cq.model.code. What nests too deeply is unknown."""
    kind = kind_of(node)
    if kind in _CALLS:
        return CallEnd(end_of(node))
    text, start, end = collector.text, start_of(node), end_of(node)
    if kind == "identifier" or kind == "self":
        return Name(text[start:end].decode("utf-8", "replace").removeprefix("r#"))
    if kind in _WRITTEN:
        return read_literal(text[start:end])
    if kind == "range_expression":
        return Constant("Range")
    if depth > MAX_NESTED:
        return None
    if kind in _SAME:
        inner = field_of(node, "value") or child_at(node, 0)
        if inner is not None and kind_of(inner) == "mutable_specifier":
            inner = child_at(node, child_count_of(node) - 1)
        return None if inner is None else read_value(collector, inner, depth + 1)
    if kind == "field_expression":
        if end - start < 100 and _PLAIN_CALLEE.fullmatch(text, start, end):
            return Name(text[start:end].decode("utf-8", "replace"))
        base, name = field_of(node, "value"), field_of(node, "field")
        if base is None or name is None:
            return None
        return read_attribute(read_value(collector, base, depth + 1), collector.slice(start_of(name), end_of(name)))
    if kind in ("scoped_identifier", "generic_function"):
        return read_callee_path(text[start:end])
    if kind == "try_expression":
        inner = child_at(node, 0)
        return None if inner is None else Unwrapped(read_value(collector, inner, depth + 1))
    if kind == "closure_expression":
        return read_closure(collector, node, -1, 0, depth)
    if kind == "index_expression" and child_count_of(node) == 2:
        base, key = children_of(node)
        return Indexed(read_value(collector, base, depth + 1), kind_of(key) == "range_expression")
    if kind == "type_cast_expression":
        target = field_of(node, "type")
        return None if target is None else Typed(read_type(text[start_of(target) : end_of(target)]), None)
    if kind == "tuple_expression":
        return Listing("tuple", tuple([read_value(collector, child, depth + 1) for child in children_of(node)[:12]]))
    if kind == "array_expression":
        inner = child_at(node, 0)
        return Listing("list", (None if inner is None else read_value(collector, inner, depth + 1),))
    if kind == "binary_expression":
        left, operator = field_of(node, "left"), field_of(node, "operator")
        method = None if operator is None else _OPERATORS.get(kind_of(operator))
        if left is None or method is None:
            return Constant("bool")
        return OperatorMethod(method, read_value(collector, left, depth + 1))
    return _read_tail(collector, node, depth)


def read_literal(text: bytes) -> Value:
    """Short texts without escapes keep what they say."""
    first = text[:1]
    if text in (b"true", b"false"):
        return Boolean(text == b"true")
    if first.isdigit() or first == b"-":
        return read_integer(text) or Constant("float" if b"." in text else "int")
    if first == b"'":
        return Typed(Name("char"), None)
    found = _STRING.fullmatch(text) if len(text) < _STRING_TEXT else None
    if found is None or text[:1] == b"b" or (b"\\" in text and b"r" not in text[:2]):
        return Constant("str")
    return Text(found[2].decode("utf-8", "replace"))


def join_format(args: tuple[Value, ...], named: dict[str, Value]) -> tuple[Value, ...]:
    """The first text among the arguments is one with the values of its places: `format!("a{}{x}", y)`."""
    at = next((number for number, value in enumerate(args) if isinstance(value, Text)), -1)
    text = args[at] if at >= 0 else None
    if not isinstance(text, Text) or "{" not in text.value:
        return args
    parts: list[Value] = []
    places = iter(args[at + 1 :])
    last = 0
    for found in _PLACE.finditer(text.value):
        if found[1] is None:
            continue
        if found.start() > last:
            parts.append(Text(text.value[last : found.start()]))
        last, name = found.end(), found[1]
        if not name:
            parts.append(next(places, None))
        elif name.isdecimal():
            parts.append(args[at + 1 + int(name)] if len(name) < 4 and at + 1 + int(name) < len(args) else None)
        else:
            parts.append(named.get(name, Name(name)))
    if not parts:
        return args
    if last < len(text.value):
        parts.append(Text(text.value[last:]))
    return (*args[:at], Joined(tuple(parts)), *args[at + 1 :])


def read_asked(collector: Collector, node: Node) -> Value:
    """The condition of an `if`, a `while` or a guard: what must be true."""
    return read_condition(node, partial(_read_asked, collector))


def _read_asked(collector: Collector, node: Node, depth: int) -> Value:
    """`let pattern = value`, alone or in a chain; everything else is its value."""
    if kind_of(node) == "let_condition":
        value = field_of(node, "value")
        return None if value is None else Operated("matches", read_value(collector, value, depth + 1), None)
    if kind_of(node) == "let_chain":
        read, parts = partial(_read_asked, collector), all_children_of(node)[::2]
        asked = (read_condition(part, read, depth + 1) for part in parts)
        return reduce(lambda left, right: Operated("and", left, right), asked)
    return read_value(collector, node, depth)


def _read_tail(collector: Collector, node: Node, depth: int) -> Value:
    """Blocks and branches: what their last expressions are, each seen from where it stands."""
    kind = kind_of(node)
    if kind in ("unsafe_block", "async_block", "const_block", "labeled_block"):
        inner = child_at(node, child_count_of(node) - 1) if child_count_of(node) else None
        return None if inner is None else _read_tail(collector, inner, depth + 1)
    if kind == "block":
        tail = child_at(node, child_count_of(node) - 1) if child_count_of(node) else None
        if tail is not None and kind_of(tail) == "expression_statement":
            tail = child_at(tail, 0) if collector.text[end_of(tail) - 1] == 125 else None
        if tail is None or kind_of(tail).endswith(("_declaration", "_item", "comment", "_statement")):
            return None
        return Seen(start_of(tail), read_value(collector, tail, depth + 1))
    if kind == "if_expression":
        branches = [field_of(node, "consequence"), field_of(node, "alternative")]
        if branches[1] is None:
            return None
        inner = child_at(branches[1], 0) if kind_of(branches[1]) == "else_clause" else branches[1]
        values = [read_value(collector, b, depth + 1) for b in (branches[0], inner) if b is not None]
        return _choose(values)
    if kind == "match_expression":
        body = field_of(node, "body")
        values: list[Value] = []
        for arm in [] if body is None else children_of(body)[:_MAX_ARMS]:
            value = field_of(arm, "value") if kind_of(arm) == "match_arm" else None
            if value is not None:
                values.append(Seen(start_of(value), read_value(collector, value, depth + 1)))
        return _choose(values)
    return None


def _choose(values: list[Value]) -> Value:
    known = [v for v in values if v is not None and not (isinstance(v, Seen) and v.value is None)]
    return known[0] if len(known) == 1 else Choice(tuple(known)) if known else None


def read_closure(collector: Collector, node: Node, call_end: int, number: int, depth: int = 0) -> Value:
    """A closure, and what its parameters are where it is an argument of the call that ends at `call_end`."""
    start, end, code = start_of(node), end_of(node), collector.code
    body, patterns = field_of(node, "body"), field_of(node, "parameters")
    if body is None or patterns is None:
        return None
    if start not in code.lambdas:
        parameters: list[Parameter] = []
        for pattern in children_of(patterns):
            value: Value = ClosureParameter(CallEnd(call_end), number, len(parameters)) if call_end >= 0 else None
            if kind_of(pattern) == "parameter":
                kind, inner = field_of(pattern, "type"), field_of(pattern, "pattern")
                if kind is not None:
                    value = Typed(read_type(collector.text[start_of(kind) : end_of(kind)]), value)
                pattern = inner or pattern
            parameters.append(Parameter("_"))
            bind_pattern(collector, pattern, value, start, start, end)
        given = field_of(node, "return_type")
        if given is not None:
            value = Typed(read_type(collector.text[start_of(given) : end_of(given)]), None)
        else:
            value = Seen(start_of(body), read_value(collector, body, depth + 1))
        code.lambdas[start] = (end, start_of(body), tuple(parameters), value)
    return Lambda(start)


def read_arguments(collector: Collector, node: Node, end: int) -> tuple[Value, ...]:
    found: list[Value] = []
    for child in children_of(node):
        kind = kind_of(child)
        if kind == "closure_expression":
            found.append(read_closure(collector, child, end, len(found)))
        elif not kind.endswith("comment") and kind != "attribute_item":
            found.append(read_value(collector, child))
    return tuple(found)


# -- patterns ---------------------------------------------------------------------------------------

_SIMPLE_PATTERN = re.compile(rb"(?:&|ref\b|mut\b|\s)*((?:r#)?[a-z_]\w*)")
_ONE_INSIDE = re.compile(rb"([A-Za-z_][\w:]*)\(\s*(?:&|ref\b|mut\b|\s)*([a-z_]\w*)\s*\)")
_NO_NAMES = frozenset({b"_", b"true", b"false", b"self", b"crate", b"super"})


def bind_pattern(collector: Collector, node: Node, value: Value, start: int, statement: int, end: int) -> None:
    """Binds every name of a pattern to its part of the value, from `start` to `end`."""
    text, binds = collector.text, collector.code.binds
    first, last = start_of(node), end_of(node)
    if last - first < 100:
        found = _SIMPLE_PATTERN.fullmatch(text, first, last)
        if found is not None:
            if found[1] not in _NO_NAMES:
                binds.append((start, statement, found[1].decode().removeprefix("r#"), value, end))
            return
        found = _ONE_INSIDE.fullmatch(text, first, last)
        if found is not None:
            if found[2] not in _NO_NAMES:
                part = PartOf(value, found[1].decode(), "0")
                binds.append((start, statement, found[2].decode(), part, end))
            return
    names: dict[str, list[Value]] = {}
    todo: list[tuple[Node, Value, int]] = [(node, value, 0)]
    while todo and len(names) < _MAX_NAMES:
        inner, part, depth = todo.pop()
        if depth <= MAX_NESTED:
            todo += reversed(
                [(child, what, depth + 1) for child, what in _split_pattern(collector, inner, part, names)]
            )
    for name, values in names.items():
        binds.append((start, statement, name, values[0] if len(values) == 1 else Choice(tuple(values)), end))


def _split_pattern(
    collector: Collector, node: Node, value: Value, names: dict[str, list[Value]]
) -> Iterable[tuple[Node, Value]]:
    kind, text = kind_of(node), collector.text
    if kind == "identifier" or kind == "shorthand_field_identifier":
        word = text[start_of(node) : end_of(node)]
        if word and not 65 <= word[0] <= 90 and word not in _NO_NAMES:
            names.setdefault(word.decode("utf-8", "replace").removeprefix("r#"), []).append(value)
        return ()
    children = [child for child in children_of(node) if not kind_of(child).endswith("comment")]
    if kind in ("match_pattern", "or_pattern", "ref_pattern", "mut_pattern", "reference_pattern", "captured_pattern"):
        # A guard stands beside the pattern; `x @ P` binds x to the whole.
        kept = children[:1] if kind == "match_pattern" else children
        return [(child, value) for child in kept if kind_of(child) != "mutable_specifier"]
    if kind == "tuple_pattern":
        open_end = any(kind_of(child) == "remaining_field_pattern" for child in children)
        return [(c, None if open_end else TuplePart(value, n)) for n, c in enumerate(children)]
    if kind == "slice_pattern":
        return [(child, value if kind_of(child) == "captured_pattern" else Iterated(value)) for child in children]
    path = field_of(node, "type")
    if path is None:
        return ()
    written = read_path(text[start_of(path) : end_of(path)])
    if kind == "tuple_struct_pattern":
        rest = children[1:]
        cut = next((n for n, c in enumerate(rest) if kind_of(c) == "remaining_field_pattern"), len(rest))
        return [(c, PartOf(value, written, str(n)) if n < cut else None) for n, c in enumerate(rest)]
    if kind == "struct_pattern":
        found: list[tuple[Node, Value]] = []
        for child in children[1:]:
            name = field_of(child, "name") if kind_of(child) == "field_pattern" else None
            if name is not None:
                key = collector.slice(start_of(name), end_of(name)).removeprefix("r#")
                inner = field_of(child, "pattern") or name
                found.append((inner, PartOf(value, written, key)))
        return found
    return ()


# -- blocks -----------------------------------------------------------------------------------------


def close_binds(collector: Collector) -> None:
    """Gives the bindings of `let` and `if let` the end of their block, in one pass over the braces."""
    binds, text = collector.code.binds, collector.text
    waiting = sorted((bind[0], number) for number, bind in enumerate(binds) if bind[4] <= IN_BLOCK)
    if not waiting:
        return
    finish = collector.span[1]
    blocks: list[list[int]] = [[]]
    following: list[int] = []
    ends: dict[int, int] = {}
    at, (coming, _) = 0, waiting[0]
    offset = collector.span[0] - 1
    # A search for one byte is ten times as fast as a pattern.
    for piece in collector.paint().replace(b"}", b"{").split(b"{")[:-1]:
        offset += len(piece) + 1
        while coming <= offset:
            number = waiting[at][1]
            (blocks[-1] if binds[number][4] == IN_BLOCK else following).append(number)
            at += 1
            coming = waiting[at][0] if at < len(waiting) else finish + 1
        if text[offset] == 123:
            blocks.append(following)
            following = []
        elif len(blocks) > 1:
            ends.update(dict.fromkeys(blocks.pop(), offset))
    for number, bind in enumerate(binds):
        if bind[4] <= IN_BLOCK:
            binds[number] = (*bind[:4], ends.get(number, finish))
