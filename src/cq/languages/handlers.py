"""What a document's code raises and what catches it: the spans that `cq exceptions` compares. Pure syntax; what a name
means is for others to say.

A `Guard` protects a span of one function: the body of `try`, of `with`, or, where `finally` returns, all before it.
"""

from __future__ import annotations

import re
from functools import cache

import msgspec

from cq.language import load_table
from cq.languages.registry import get_language
from cq.syntax.language import CALLEE_TEXT
from cq.syntax.tree import (
    Ancestors,
    Node,
    Query,
    all_children_of,
    child_count_of,
    children_of,
    end_of,
    field_of,
    kind_of,
    root_of,
    start_of,
)

_DOTTED = re.compile(rb"[^\W\d][\w$]*(?:\s*\.\s*[^\W\d][\w$]*)*")
_PANICS = frozenset({"panic", "unreachable", "todo", "unimplemented", "assert", "assert_eq", "assert_ne"})
_UNWRAPS = frozenset({"unwrap", "expect", "unwrap_err", "expect_err"})
_NOTHING = frozenset({"pass_statement", "comment", "line_comment", "block_comment", "empty_statement"})
_FUNCTIONS = frozenset(
    {
        "function_definition", "lambda", "class_definition", "function_declaration", "function_expression",
        "arrow_function", "method_definition", "generator_function", "generator_function_declaration",
    }
)  # fmt: skip
MAX_STATES = 1024
MAX_NODES = 2000  # looked at inside one `finally`
MAX_UP = 200  # steps from a statement to the handler around it


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `exceptions` of a language."""

    query: str = ""
    words: tuple[str, ...] = ()


def may_raise(text: bytes, language: str) -> bool:
    """Whether a text can hold anything raised or a handler: most cannot, and need not be parsed."""
    table = load_table(language, "exceptions", Table)
    return table.query != "" and (not table.words or any(word.encode() in text for word in table.words))


class Named(msgspec.Struct, frozen=True, gc=False):
    """A dotted name as written, and where."""

    name: str
    start: int


class Handler(msgspec.Struct, frozen=True, gc=False):
    """`types` without any catches everything. `reraises`: some way through it raises again what it caught."""

    kind: str  # except except* catch finally
    start: int
    end: int
    types: tuple[Named, ...] = ()
    empty: bool = False
    reraises: bool = False


class Guard(msgspec.Struct, frozen=True, gc=False):
    """`manager` is the span of the call whose result `with` enters; its arguments are `arguments`."""

    kind: str  # try with finally
    start: int
    end: int
    handlers: tuple[Handler, ...] = ()
    manager: tuple[int, int] = (-1, -1)
    arguments: tuple[Named, ...] = ()


class Raised(msgspec.Struct, frozen=True, gc=False):
    """`call_end` is the end of the call that makes what is raised, -1 where it is no call."""

    kind: str  # raise throw panic unwrap error; reraise: what the handler around it caught
    start: int
    end: int
    name: str = ""  # "" where it is no name
    name_start: int = -1
    call_end: int = -1
    cause: bool = False


class Handlers(msgspec.Struct, frozen=True):
    """Of one document, each by start. `passed` are Rust's `?`."""

    raised: tuple[Raised, ...] = ()
    guards: tuple[Guard, ...] = ()
    yields: tuple[int, ...] = ()
    passed: tuple[int, ...] = ()


def find_handlers(text: bytes, language: str, ranges: tuple[tuple[int, int], ...] = ()) -> Handlers:
    """Total; a language without a query, and a text that cannot be parsed in time, have none."""
    spoken = get_language(language)
    source = load_table(language, "exceptions", Table).query
    tree = spoken.parse(text, ranges) if spoken is not None and source else None
    if tree is None:
        return Handlers()
    root = root_of(tree)
    found, _ = _query(language).find_captures(root)
    raised = [*_find_panics(text, found.get("panic", [])), *_find_unwraps(text, found.get("call", []))]
    guards: list[Guard] = []
    again: set[int] = set()  # handlers that raise what they caught, by start
    ancestors = Ancestors(root)
    for node in found.get("raise", []):
        handler = _handler_around(ancestors.around(start_of(node)))
        raised.append(_read_raise(text, node, handler))
        if handler is not None and raised[-1].kind == "reraise":
            again.add(start_of(handler))
    for node in found.get("try", []):
        guards += _read_try(text, node, again)
    for node in found.get("with", []):
        guards += _read_with(text, node)
    return Handlers(
        tuple(sorted(raised, key=lambda item: (item.start, item.end))),
        tuple(sorted(guards, key=lambda item: (item.start, -item.end))),
        tuple(sorted(start_of(node) for node in found.get("yield", []))),
        tuple(sorted(start_of(node) for node in found.get("pass", []))),
    )


@cache
def _query(language: str) -> Query:
    spoken = get_language(language)
    assert spoken is not None
    return spoken.grammar.compile(load_table(language, "exceptions", Table).query)


def _read_raise(text: bytes, node: Node, handler: Node | None) -> Raised:
    python = kind_of(node) == "raise_statement"
    cause = python and field_of(node, "cause") is not None
    values = [child for child in children_of(node)[:2] if kind_of(child) != "comment"]
    value = values[0] if values else None
    if value is None or value == field_of(node, "cause"):
        return Raised("raise" if handler is None else "reraise", start_of(node), end_of(node))
    kind = "raise" if python else "throw"
    call_end = -1
    # `raise error.with_traceback(…)` raises what is in front of it.
    while value is not None and kind_of(value) in ("call", "call_expression", "new_expression"):
        callee = field_of(value, "function") or field_of(value, "constructor")
        if (
            callee is not None
            and kind_of(callee) == "attribute"
            and text.endswith(b".with_traceback", start_of(callee), end_of(callee))
        ):
            value = field_of(callee, "object")
            continue
        call_end, value = end_of(value), callee
        break
    named = _name(text, value)
    name, start = (named.name, named.start) if named else ("", start_of(node))
    if call_end < 0 and name and name == _alias(text, handler):
        kind = "reraise"
    return Raised(kind, start_of(node), end_of(node), name, start, call_end, cause)


def _name(text: bytes, node: Node | None) -> Named | None:
    if node is None or kind_of(node) not in ("identifier", "attribute", "member_expression", "dotted_name"):
        return None
    piece = text[start_of(node) : end_of(node)][:CALLEE_TEXT]
    if not _DOTTED.fullmatch(piece):
        return None
    return Named("".join(piece.decode("utf-8", "replace").split()), start_of(node))


def _handler_around(around: list[Node]) -> Node | None:
    """The innermost handler of the same function."""
    for at in around[: -MAX_UP - 1 : -1]:
        if kind_of(at) in _FUNCTIONS:
            return None
        if kind_of(at) in ("except_clause", "catch_clause"):
            return at
    return None


def _alias(text: bytes, handler: Node | None) -> str:
    """The name that a handler gives to what it caught."""
    if handler is None:
        return ""
    value = field_of(handler, "value")
    if value is not None and kind_of(value) == "as_pattern":
        alias = field_of(value, "alias")
    else:
        alias = field_of(handler, "parameter")
    return "" if alias is None else text[start_of(alias) : end_of(alias)].decode("utf-8", "replace")


def _read_try(text: bytes, node: Node, again: set[int]) -> list[Guard]:
    body = field_of(node, "body")
    if body is None:
        return []
    handlers: list[Handler] = []
    last: Node | None = None
    for child in children_of(node):
        if kind_of(child) == "except_clause":
            handlers.append(_read_except(text, child, again))
        elif kind_of(child) == "catch_clause":
            block = field_of(child, "body")
            handlers.append(_make_handler(child, "catch", (), block, again))
        elif kind_of(child) == "finally_clause":
            last = child
    guards = [Guard("try", start_of(body), end_of(body), tuple(handlers))] if handlers else []
    if last is not None and _leaves(last):
        # `try: g() finally: return 1`: whatever g raised is gone.
        swallow = Handler("finally", start_of(last), end_of(last))
        guards.append(Guard("finally", start_of(node), start_of(last), (swallow,)))
    return guards


def _read_except(text: bytes, node: Node, again: set[int]) -> Handler:
    value = field_of(node, "value")
    block = children_of(node)[-1] if child_count_of(node) else None
    if value is not None and kind_of(value) == "as_pattern":
        value = children_of(value)[0] if child_count_of(value) else None
    types: list[Named] = []
    if value is not None:
        parts = children_of(value) if kind_of(value) in ("tuple", "parenthesized_expression") else [value]
        for part in parts:
            if kind_of(part) != "comment":
                excerpt = text[start_of(part) : end_of(part)][:80].decode("utf-8", "replace")
                types.append(_name(text, part) or Named(" ".join(excerpt.split()), start_of(part)))
    star = any(kind_of(child) in ("*", "except*") for child in all_children_of(node)[:2])
    return _make_handler(node, "except*" if star else "except", tuple(types), block, again)


def _make_handler(node: Node, kind: str, types: tuple[Named, ...], block: Node | None, again: set[int]) -> Handler:
    inside = children_of(block) if block is not None else []
    empty = all(_is_nothing(child) for child in inside)
    return Handler(kind, start_of(node), end_of(node), types, empty, start_of(node) in again)


def _is_nothing(node: Node) -> bool:
    """`pass`, `...`, a comment, a lone string."""
    if kind_of(node) == "expression_statement" and child_count_of(node) == 1:
        return kind_of(children_of(node)[0]) in ("ellipsis", "string")
    return kind_of(node) in _NOTHING


def _leaves(block: Node) -> bool:
    """Whether a `return` of the same function stands in it."""
    todo, looked = list(children_of(block)), 0
    while todo and looked < MAX_NODES:
        node = todo.pop()
        looked += 1
        if kind_of(node) == "return_statement":
            return True
        if kind_of(node) not in _FUNCTIONS and (kind_of(node).endswith(_HOLDERS) or kind_of(node) == "block"):
            todo += children_of(node)
    return False


_HOLDERS = ("_statement", "_clause", "_block", "_case", "_default", "_body")


def _read_with(text: bytes, node: Node) -> list[Guard]:
    body = field_of(node, "body")
    if body is None:
        return []
    guards: list[Guard] = []
    items = [item for child in children_of(node) if kind_of(child) == "with_clause" for item in children_of(child)]
    for item in items:
        value = field_of(item, "value") if kind_of(item) == "with_item" else None
        if value is not None and kind_of(value) == "as_pattern":
            value = children_of(value)[0] if child_count_of(value) else None
        if value is None or kind_of(value) != "call":
            continue
        arguments = field_of(value, "arguments")
        names: list[Named] = []
        for part in children_of(arguments) if arguments is not None else []:
            pieces = children_of(part) if kind_of(part) in ("tuple", "parenthesized_expression") else [part]
            names += [named for piece in pieces if (named := _name(text, piece)) is not None]
        span = (start_of(value), end_of(value))
        guards.append(Guard("with", start_of(body), end_of(body), (), span, tuple(names)))
    return guards


def _find_panics(text: bytes, nodes: list[Node]) -> list[Raised]:
    found: list[Raised] = []
    for node in nodes:
        macro = field_of(node, "macro")
        name = _word(text, macro)
        if macro is not None and name in _PANICS:
            found.append(Raised("panic", start_of(node), end_of(node), f"{name}!", start_of(macro)))
    return found


def _find_unwraps(text: bytes, nodes: list[Node]) -> list[Raised]:
    """`x.unwrap()`, which panics, and `Err(…)`, which a caller may pass on."""
    found: list[Raised] = []
    for node in nodes:
        callee = field_of(node, "function")
        if callee is None:
            continue
        field = field_of(callee, "field")
        word = _word(text, field) if field is not None else ""
        if word in _UNWRAPS:
            found.append(Raised("unwrap", start_of(callee), end_of(node), f".{word}()", end_of(callee) - len(word)))
        elif kind_of(callee) == "identifier" and _word(text, callee) == "Err":
            inside = text[end_of(callee) : end_of(node)][:81].decode("utf-8", "replace").strip("()")
            found.append(Raised("error", start_of(node), end_of(node), " ".join(inside.split()), end_of(callee) + 1))
    return found


def _word(text: bytes, node: Node | None) -> str:
    """The last name of a path."""
    if node is None or end_of(node) - start_of(node) > CALLEE_TEXT:
        return ""
    return text[start_of(node) : end_of(node)].rpartition(b"::")[2].decode("utf-8", "replace")
