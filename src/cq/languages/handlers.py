"""What a document's code raises and what catches it: the spans that `cq exceptions` compares. Pure syntax; what a name
means is for others to say.

A `Guard` protects a span of one function: the body of `try`, of `with`, or, where `finally` returns, all before it.
"""

from __future__ import annotations

import re
import warnings
from functools import cache
from typing import TYPE_CHECKING

import msgspec
from tree_sitter import Query, QueryCursor

from cq.language import load_table
from cq.languages.registry import get_language
from cq.syntax.ancestors import Ancestors
from cq.syntax.language import CALLEE_TEXT, PARSE_MICROS

if TYPE_CHECKING:
    from tree_sitter import Node


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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        cursor = QueryCursor(_query(language), match_limit=MAX_STATES, timeout_micros=PARSE_MICROS)
    found = cursor.captures(tree.root_node)
    raised = [*_find_panics(text, found.get("panic", [])), *_find_unwraps(text, found.get("call", []))]
    guards: list[Guard] = []
    again: set[int] = set()  # handlers that raise what they caught, by start
    ancestors = Ancestors(tree.root_node)
    for node in found.get("raise", []):
        handler = _handler_around(ancestors.around(node.start_byte))
        raised.append(_read_raise(text, node, handler))
        if handler is not None and raised[-1].kind == "reraise":
            again.add(handler.start_byte)
    for node in found.get("try", []):
        guards += _read_try(text, node, again)
    for node in found.get("with", []):
        guards += _read_with(text, node)
    return Handlers(
        tuple(sorted(raised, key=lambda item: (item.start, item.end))),
        tuple(sorted(guards, key=lambda item: (item.start, -item.end))),
        tuple(sorted(node.start_byte for node in found.get("yield", []))),
        tuple(sorted(node.start_byte for node in found.get("pass", []))),
    )


@cache
def _query(language: str) -> Query:
    spoken = get_language(language)
    assert spoken is not None
    return Query(spoken.grammar, load_table(language, "exceptions", Table).query)


def _read_raise(text: bytes, node: Node, handler: Node | None) -> Raised:
    python = node.type == "raise_statement"
    cause = python and node.child_by_field_name("cause") is not None
    values = [child for child in node.named_children[:2] if child.type != "comment"]
    value = values[0] if values else None
    if value is None or value == node.child_by_field_name("cause"):
        return Raised("raise" if handler is None else "reraise", node.start_byte, node.end_byte)
    kind = "raise" if python else "throw"
    call_end = -1
    # `raise error.with_traceback(…)` raises what is in front of it.
    while value is not None and value.type in ("call", "call_expression", "new_expression"):
        callee = value.child_by_field_name("function") or value.child_by_field_name("constructor")
        if (
            callee is not None
            and callee.type == "attribute"
            and text.endswith(b".with_traceback", callee.start_byte, callee.end_byte)
        ):
            value = callee.child_by_field_name("object")
            continue
        call_end, value = value.end_byte, callee
        break
    named = _name(text, value)
    name, start = (named.name, named.start) if named else ("", node.start_byte)
    if call_end < 0 and name and name == _alias(text, handler):
        kind = "reraise"
    return Raised(kind, node.start_byte, node.end_byte, name, start, call_end, cause)


def _name(text: bytes, node: Node | None) -> Named | None:
    if node is None or node.type not in ("identifier", "attribute", "member_expression", "dotted_name"):
        return None
    piece = text[node.start_byte : node.end_byte][:CALLEE_TEXT]
    if not _DOTTED.fullmatch(piece):
        return None
    return Named("".join(piece.decode("utf-8", "replace").split()), node.start_byte)


def _handler_around(around: list[Node]) -> Node | None:
    """The innermost handler of the same function."""
    for at in around[: -MAX_UP - 1 : -1]:
        if at.type in _FUNCTIONS:
            return None
        if at.type in ("except_clause", "catch_clause"):
            return at
    return None


def _alias(text: bytes, handler: Node | None) -> str:
    """The name that a handler gives to what it caught."""
    if handler is None:
        return ""
    value = handler.child_by_field_name("value")
    if value is not None and value.type == "as_pattern":
        alias = value.child_by_field_name("alias")
    else:
        alias = handler.child_by_field_name("parameter")
    return "" if alias is None else text[alias.start_byte : alias.end_byte].decode("utf-8", "replace")


def _read_try(text: bytes, node: Node, again: set[int]) -> list[Guard]:
    body = node.child_by_field_name("body")
    if body is None:
        return []
    handlers: list[Handler] = []
    last: Node | None = None
    for child in node.named_children:
        if child.type == "except_clause":
            handlers.append(_read_except(text, child, again))
        elif child.type == "catch_clause":
            block = child.child_by_field_name("body")
            handlers.append(_make_handler(child, "catch", (), block, again))
        elif child.type == "finally_clause":
            last = child
    guards = [Guard("try", body.start_byte, body.end_byte, tuple(handlers))] if handlers else []
    if last is not None and _leaves(last):
        # `try: g() finally: return 1`: whatever g raised is gone.
        swallow = Handler("finally", last.start_byte, last.end_byte)
        guards.append(Guard("finally", node.start_byte, last.start_byte, (swallow,)))
    return guards


def _read_except(text: bytes, node: Node, again: set[int]) -> Handler:
    value = node.child_by_field_name("value")
    block = node.named_children[-1] if node.named_child_count else None
    if value is not None and value.type == "as_pattern":
        value = value.named_children[0] if value.named_child_count else None
    types: list[Named] = []
    if value is not None:
        parts = value.named_children if value.type in ("tuple", "parenthesized_expression") else [value]
        for part in parts:
            if part.type != "comment":
                excerpt = text[part.start_byte : part.end_byte][:80].decode("utf-8", "replace")
                types.append(_name(text, part) or Named(" ".join(excerpt.split()), part.start_byte))
    star = any(child.type in ("*", "except*") for child in node.children[:2])
    return _make_handler(node, "except*" if star else "except", tuple(types), block, again)


def _make_handler(node: Node, kind: str, types: tuple[Named, ...], block: Node | None, again: set[int]) -> Handler:
    inside = block.named_children if block is not None else []
    empty = all(_is_nothing(child) for child in inside)
    return Handler(kind, node.start_byte, node.end_byte, types, empty, node.start_byte in again)


def _is_nothing(node: Node) -> bool:
    """`pass`, `...`, a comment, a lone string."""
    if node.type == "expression_statement" and node.named_child_count == 1:
        return node.named_children[0].type in ("ellipsis", "string")
    return node.type in _NOTHING


def _leaves(block: Node) -> bool:
    """Whether a `return` of the same function stands in it."""
    todo, looked = list(block.named_children), 0
    while todo and looked < MAX_NODES:
        node = todo.pop()
        looked += 1
        if node.type == "return_statement":
            return True
        if node.type not in _FUNCTIONS and (node.type.endswith(_HOLDERS) or node.type == "block"):
            todo += node.named_children
    return False


_HOLDERS = ("_statement", "_clause", "_block", "_case", "_default", "_body")


def _read_with(text: bytes, node: Node) -> list[Guard]:
    body = node.child_by_field_name("body")
    if body is None:
        return []
    guards: list[Guard] = []
    items = [item for child in node.named_children if child.type == "with_clause" for item in child.named_children]
    for item in items:
        value = item.child_by_field_name("value") if item.type == "with_item" else None
        if value is not None and value.type == "as_pattern":
            value = value.named_children[0] if value.named_child_count else None
        if value is None or value.type != "call":
            continue
        arguments = value.child_by_field_name("arguments")
        names: list[Named] = []
        for part in arguments.named_children if arguments is not None else []:
            pieces = part.named_children if part.type in ("tuple", "parenthesized_expression") else [part]
            names += [named for piece in pieces if (named := _name(text, piece)) is not None]
        span = (value.start_byte, value.end_byte)
        guards.append(Guard("with", body.start_byte, body.end_byte, (), span, tuple(names)))
    return guards


def _find_panics(text: bytes, nodes: list[Node]) -> list[Raised]:
    found: list[Raised] = []
    for node in nodes:
        macro = node.child_by_field_name("macro")
        name = _word(text, macro)
        if macro is not None and name in _PANICS:
            found.append(Raised("panic", node.start_byte, node.end_byte, f"{name}!", macro.start_byte))
    return found


def _find_unwraps(text: bytes, nodes: list[Node]) -> list[Raised]:
    """`x.unwrap()`, which panics, and `Err(…)`, which a caller may pass on."""
    found: list[Raised] = []
    for node in nodes:
        callee = node.child_by_field_name("function")
        if callee is None:
            continue
        field = callee.child_by_field_name("field")
        word = _word(text, field) if field is not None else ""
        if word in _UNWRAPS:
            found.append(Raised("unwrap", callee.start_byte, node.end_byte, f".{word}()", callee.end_byte - len(word)))
        elif callee.type == "identifier" and _word(text, callee) == "Err":
            inside = text[callee.end_byte : node.end_byte][:81].decode("utf-8", "replace").strip("()")
            found.append(Raised("error", node.start_byte, node.end_byte, " ".join(inside.split()), callee.end_byte + 1))
    return found


def _word(text: bytes, node: Node | None) -> str:
    """The last name of a path."""
    if node is None or node.end_byte - node.start_byte > CALLEE_TEXT:
        return ""
    return text[node.start_byte : node.end_byte].rpartition(b"::")[2].decode("utf-8", "replace")
