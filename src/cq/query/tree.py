"""A query as a value: tokens under `and`, `or` and `not`, sets of queries, stages. Its `str` parses back to it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

_BARE = re.compile(r"[\w.^$~*/:+\\?=<>!%-]+")


class Token(msgspec.Struct, frozen=True):
    """`key op value`. `value` is a tuple for keys that take a list. `modifiers` are `key.name=value`."""

    key: str
    value: str | tuple[str, ...]
    op: str = "="
    modifiers: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        if self.key == "explain" and self.value == "true":
            return self.key
        text = f"{self.key}{self.op}{quote(self.value)}"
        return " ".join([text, *(f"{self.key}.{name}={quote(value)}" for name, value in self.modifiers)])

    @property
    def text(self) -> str:
        return self.value if isinstance(self.value, str) else ",".join(self.value)

    @property
    def values(self) -> tuple[str, ...]:
        return (self.value,) if isinstance(self.value, str) else self.value

    def modifier(self, name: str) -> str:
        return next((value for key, value in self.modifiers if key == name), "")


class Named(msgspec.Struct, frozen=True):
    """`@name(args)`: a query of the configuration. An argument is (name, value), the name "" by position."""

    name: str
    args: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        if not self.args:
            return f"@{self.name}"
        args = ", ".join(f"{name}={quote(value)}" if name else quote(value) for name, value in self.args)
        return f"@{self.name}({args})"


class And(msgspec.Struct, frozen=True):
    items: tuple[Expression, ...]

    def __str__(self) -> str:
        return " ".join(_wrap(item, (Or, Query)) for item in self.items)


class Or(msgspec.Struct, frozen=True):
    items: tuple[Expression, ...]

    def __str__(self) -> str:
        return " or ".join(_wrap(item, (Query,)) for item in self.items)


class Not(msgspec.Struct, frozen=True):
    item: Expression

    def __str__(self) -> str:
        return f"not {_wrap(self.item, (And, Or, Query))}"


class Combine(msgspec.Struct, frozen=True):
    """Results of both (`&`), of either (`|`), of the first without the second (`-`)."""

    op: str
    left: Query
    right: Query

    def __str__(self) -> str:
        return f"{_operand(self.left)} {self.op} {_operand(self.right)}"


class Stage(msgspec.Struct, frozen=True):
    """`filter(condition)`, `sort(attribute desc)` or `limit N`."""

    kind: str
    condition: Expression | None = None
    attribute: str = ""
    descending: bool = False
    count: int = 0

    def __str__(self) -> str:
        if self.kind == "filter":
            return f"filter({_condition(self.condition)})"
        if self.kind == "sort":
            return f"sort({self.attribute}{' desc' if self.descending else ''})"
        return f"limit {self.count}"


class Query(msgspec.Struct, frozen=True):
    """What to find. Made by `parse` or by the functions of `cq.query`; every method gives a new one."""

    body: Expression | Combine
    stages: tuple[Stage, ...] = ()

    def __str__(self) -> str:
        return " | ".join([str(self.body), *map(str, self.stages)])

    def __and__(self, other: Query) -> Query:
        return Query(Combine("&", self, other))

    def __or__(self, other: Query) -> Query:
        return Query(Combine("|", self, other))

    def __sub__(self, other: Query) -> Query:
        return Query(Combine("-", self, other))

    def inside(self, pattern: str, *, stop_by: str = "", field: str = "") -> Query:
        return self.with_tokens(Token("inside", pattern, modifiers=_modifiers(stopBy=stop_by, field=field)))

    def has(self, pattern: str, *, stop_by: str = "", field: str = "") -> Query:
        return self.with_tokens(Token("has", pattern, modifiers=_modifiers(stopBy=stop_by, field=field)))

    def precedes(self, pattern: str, *, stop_by: str = "") -> Query:
        return self.with_tokens(Token("precedes", pattern, modifiers=_modifiers(stopBy=stop_by)))

    def follows(self, pattern: str, *, stop_by: str = "") -> Query:
        return self.with_tokens(Token("follows", pattern, modifiers=_modifiers(stopBy=stop_by)))

    def where(self, tokens: str) -> Query:
        """And this, written in the language: `where("decorated_by=property or name=~^_")`."""
        from cq.query.parse import parse_expression

        return self.with_tokens(parse_expression(tokens))

    def within(self, directory: str) -> Query:
        return self.with_tokens(Token("in", directory))

    def exclude(self, glob: str) -> Query:
        return self.with_tokens(Token("exclude", glob))

    def lang(self, *names: str) -> Query:
        return self.with_tokens(Token("lang", names))

    def expand(self, kind: str, *, depth: int = 1) -> Query:
        return self.with_tokens(Token("expand", (kind if depth == 1 else f"{kind}(depth={depth})",)))

    def fields(self, *names: str) -> Query:
        return self.with_tokens(Token("fields", names))

    def explain(self) -> Query:
        return self.with_tokens(Token("explain", "true"))

    def filter(self, condition: str) -> Query:
        from cq.query.parse import parse_condition

        return Query(self.body, (*self.stages, Stage("filter", condition=parse_condition(condition))))

    def sort(self, attribute: str, *, descending: bool = False) -> Query:
        return Query(self.body, (*self.stages, Stage("sort", attribute=attribute, descending=descending)))

    def limit(self, count: int) -> Query:
        return Query(self.body, (*self.stages, Stage("limit", count=count)))

    def narrowed(self, include: Iterable[str], exclude: Iterable[str], lang: Iterable[str]) -> Query:
        """Only in these files and languages."""
        tokens = [Token("globs", globs)] if (globs := tuple(include)) else []
        tokens += [Token("exclude", glob) for glob in exclude]
        tokens += [Token("lang", names)] if (names := tuple(lang)) else []
        return self.with_tokens(*tokens)

    def with_tokens(self, *more: Expression) -> Query:
        own = self if self.stages or isinstance(self.body, Combine) else self.body
        return Query(make_and([own, *more]))


Expression = Token | Named | And | Or | Not | Query


def make_and(items: Iterable[Expression]) -> Expression:
    """Flat, with the lists of `any` and `all` tokens joined: repeating one is how a list is written, too."""
    flat = [part for item in items for part in (item.items if isinstance(item, And) else (item,))]
    joined: list[Expression] = []
    lists: dict[str, int] = {}
    for item in flat:
        if isinstance(item, Token) and item.key in ("any", "all", "fields", "expand"):
            if item.key in lists:
                at = lists[item.key]
                first = joined[at]
                assert isinstance(first, Token)
                joined[at] = Token(item.key, tuple(dict.fromkeys((*first.values, *item.values))))
                continue
            lists[item.key] = len(joined)
        joined.append(item)
    return joined[0] if len(joined) == 1 else And(tuple(joined))


def make_or(items: Iterable[Expression]) -> Expression:
    flat = [part for item in items for part in (item.items if isinstance(item, Or) else (item,))]
    return flat[0] if len(flat) == 1 else Or(tuple(flat))


def find_tokens(expression: Expression | Combine) -> Iterator[Token | Named]:
    """Leaves, in the order of the text. Those of filter() are not among them."""
    todo: list[Expression | Combine] = [expression]
    while todo:
        item = todo.pop()
        if isinstance(item, Token | Named):
            yield item
        elif isinstance(item, And | Or):
            todo += reversed(item.items)
        elif isinstance(item, Not):
            todo.append(item.item)
        elif isinstance(item, Query):
            todo.append(item.body)
        else:
            todo += [item.right, item.left]


def quote(value: str | tuple[str, ...]) -> str:
    if isinstance(value, str):
        return value if _BARE.fullmatch(value) and value[0] != "~" else _quote_piece(value)
    if all(re.fullmatch(r"[\w.+-]+(\(depth=\d+\))?", part) for part in value):
        return ",".join(value)
    # A comma between quoted pieces separates; one that only ends the list keeps a single piece whole.
    return ",".join(map(_quote_piece, value)) + ("," if len(value) == 1 else "")


def _quote_piece(text: str) -> str:
    if "'" not in text:
        return f"'{text}'"
    if '"' not in text:
        return f'"{text}"'
    return "".join(f'"{part}"' if "'" in part else f"'{part}'" for part in re.findall(r"'+|[^']+", text))


def _wrap(item: Expression, kinds: tuple[type, ...]) -> str:
    return f"({item})" if isinstance(item, kinds) else str(item)


def _operand(query: Query) -> str:
    return f"({query})" if query.stages or isinstance(query.body, Combine) else str(query)


def _condition(item: Expression | None) -> str:
    match item:
        case Token():
            return f"{item.key} {item.op} {quote(item.value)}"
        case And():
            return " and ".join(
                f"({_condition(part)})" if isinstance(part, Or) else _condition(part) for part in item.items
            )
        case Or():
            return " or ".join(map(_condition, item.items))
        case Not():
            inner = _condition(item.item)
            return f"not ({inner})" if isinstance(item.item, And | Or) else f"not {inner}"
        case _:
            return ""


def _modifiers(**given: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in given.items() if value)
