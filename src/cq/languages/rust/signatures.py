"""Signatures and types of Rust, read from their text."""

from __future__ import annotations

import re
from functools import lru_cache

from cq.model.code import Bounds, Constant, Element, FunctionType, Listing, Name, NamedType, Parameter, Value
from cq.syntax.code import MAX_NESTED


def find_impl_name(kind: Value, generics: Keywords) -> str:
    """The last name of a type; `*` for one that stands for any."""
    while isinstance(kind, Element) or (isinstance(kind, Bounds) and kind.types):
        kind = kind.base if isinstance(kind, Element) else kind.types[0]
    if kind == SLICE:
        return "[T]"
    if not isinstance(kind, str):
        return "()"
    return "*" if any(name == kind for name, _ in generics) else kind.rpartition("::")[2]


Keywords = tuple[tuple[str, Value], ...]
SLICE = Constant("slice")  # stands for the type of `[T]`, with T for its parameter
_TOKEN = re.compile(r"'[A-Za-z_]\w*(?!')|r#\w+|\w+|::|->|=>|\.\.=?|==|[^\s\w]")
_CLOSERS = {"(": ")", "[": "]", "<": ">", "{": "}"}
_CALLABLE = frozenset({"Fn", "FnMut", "FnOnce", "AsyncFn", "AsyncFnMut", "AsyncFnOnce"})


class _TypeReader:
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
    reader = _TypeReader(source)
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
    return _TypeReader(source.decode("utf-8", "replace")).type()
