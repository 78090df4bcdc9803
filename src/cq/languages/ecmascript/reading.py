"""How ECMAScript writes what the tree need not be asked for: names, modifiers, imports, plain arguments, patterns.

Patterns work on bytes of source that the parser has already accepted as what they look for.
"""

from __future__ import annotations

import re
from functools import lru_cache

from cq.model.facts import Argument
from cq.syntax.excerpt import clip
from cq.syntax.language import MAX_ARGS
from cq.syntax.tree import Node, children_of, end_of, field_of, kind_of, start_of

Summary = tuple[tuple[Argument, ...], int, tuple[str, ...]]  # arguments, how many by position, keyword names

VALUE_TEXT = 120
QUOTES = b"\"'`"

_WORD = rb"[A-Za-z_$\x80-\xff][\w$\x80-\xff]*"
_STRING = rb"(?:\"[^\"]*\"|'[^']*')"
_EITHER = rb"(" + _WORD + rb"|" + _STRING + rb")"

NAME = re.compile(_WORD)
SCRIPT_NAME = re.compile(r"#?[^\W\d][\w$]*|#?\$[\w$]*")
DOTTED = re.compile(_WORD + rb"(?:\.#?" + _WORD + rb")*")
# `name`, `name?: Type`: a parameter that needs no look at its nodes. With a `=` it may have a default or an arrow.
PLAIN_PARAMETER = re.compile(r"([^\W\d][\w$]*|\$[\w$]*)(?:\??\s*:\s*([^=]+)|\?)?")
IMPORT_HEAD = re.compile(rb"import\b\s*(type\b(?!\s*(?:from\b|,|=))\s*)?")
IMPORT_DEFAULT = re.compile(rb"(" + _WORD + rb")\s*(?:,\s*|(?=from\b)|(?==))")
NAMESPACE = re.compile(rb"\*\s*as\s+" + _EITHER)
FROM = re.compile(rb"(?:from|import|require\s*\()\s*(" + _STRING + rb")")
EXPORT_HEAD = re.compile(rb"export\b\s*(type\b\s*(?=[{*]))?(default\b|=|as\b)?\s*")
REQUIRE = re.compile(
    rb"(?:await\s+)?(require|import)\s*\(\s*(?:/\*.*?\*/\s*)?(" + _STRING + rb"|`[^`$]*`)\s*,?\s*\)"
    rb"(?:\.(" + _WORD + rb"))?\Z"
)  # fmt: skip
# Compilers write `Object.defineProperty(exports, "x", …)` for `export {x} from`.
DEFINED_EXPORT = re.compile(rb"\(\s*(?:module\.)?exports\s*,\s*[\"']([^\"']+)[\"']")
WRAPPER = re.compile(rb"(?:" + _WORD + rb"\.)?(?:memo|forwardRef)\b")
DOC_MARK = re.compile(r"(?m)^[ \t]*\*[ \t]?|[ \t\r]+$")
# Up to a bracket that stands outside strings: something nested.
INNER_BRACKET = re.compile(
    rb"(?:[^\"'`(\[{]++|\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'|`(?:[^`\\]|\\.)*+`)*+[(\[{]", re.DOTALL
)

# `type` is a mark in `{type A}` and a name in `{type as A}`.
_SPECIFIER = re.compile(
    rb"(?:(type)\s+(?!as\s+[^\s,]+\s*(?:,|$)))?" + _EITHER + rb"(?:\s+as\s+" + _EITHER + rb")?\s*(?:,|$)"
)
_PLAIN_ARGUMENT = re.compile(
    rb"\s*(?:(?P<string>\"[^\"\\\n]*\"|'[^'\\\n]*')|(?P<number>-?[0-9][\w.]*)"
    rb"|(?P<boolean>(?:true|false)(?![\w$.]))|(?P<null>(?:null|undefined)(?![\w$.]))"
    rb"|(?P<attribute>" + _WORD + rb"(?:\.#?" + _WORD + rb")+)|(?P<name>" + _WORD + rb"))\s*(?:,|\Z)"
)  # fmt: skip
_WORDS = re.compile(rb"[\w*]+")
_MODIFIERS = {
    b"export": "exported", b"*": "generator", b"function*": "generator",
    **{word.encode(): word for word in (
        "default", "declare", "abstract", "async", "static", "public", "private", "protected", "readonly", "override",
        "accessor", "get", "set",
    )},
}  # fmt: skip


def read_key(text: bytes, start: int, end: int) -> tuple[str, int, int]:
    """A name with its span: quotes are not part of it, and a computed name keeps its brackets unless it is a string."""
    first = text[start] if start < end else 0
    if first == 91:
        inner = text[start + 1 : end - 1]
        shift = len(inner) - len(inner.lstrip())
        inner = inner.strip()
        if inner[:1] not in (b"'", b'"', b"`"):
            return clip(text, start, end, VALUE_TEXT), start, end
        start, end = start + 1 + shift, start + 1 + shift + len(inner)
        first = text[start]
    if first in QUOTES and end - start > 2 and text[end - 1] == first:
        start, end = start + 1, end - 1
    return text[start:end].decode("utf-8", "replace"), start, end


def unquote(name: bytes) -> str:
    return name.decode("utf-8", "replace").strip("\"'")


@lru_cache(maxsize=1024)
def find_modifiers(prefix: bytes) -> tuple[str, ...]:
    found = (_MODIFIERS.get(word) for word in _WORDS.findall(prefix))
    return tuple(dict.fromkeys(word for word in found if word))


@lru_cache(maxsize=8192)
def read_plain_arguments(text: bytes) -> Summary | None:
    """Arguments that are names, paths and literals only, read off `(a, "b", 1)`; None for anything else."""
    found: list[Argument] = []
    at, end = 1, len(text) - 1
    while at < end:
        match = _PLAIN_ARGUMENT.match(text, at, end)
        if match is None or match.lastgroup is None:
            return None
        found.append(Argument(match.lastgroup, match[match.lastgroup].decode("utf-8", "replace")))
        at = match.end()
    return (tuple(found[:MAX_ARGS]), len(found), ()) if found else None


def with_semicolon(text: bytes, end: int) -> int:
    return end + 1 if text[end : end + 1] == b";" else end


def read_specifiers(text: bytes, at: int, shift: int) -> list[tuple[str, str, int, int, bool]]:
    """`{a, b as c, type D}` -> (outer name, inner name, span of the outer name, type only), braces at `at`."""
    close = text.find(b"}", at)
    inside = text[at + 1 : close if close >= 0 else len(text)]
    shift += at + 1
    found = []
    for match in _SPECIFIER.finditer(inside):
        group = 3 if match[3] else 2
        found.append(
            (unquote(match[group]), unquote(match[2]), shift + match.start(group), shift + match.end(group),
             match[1] is not None)
        )  # fmt: skip
    return found


def is_data(text: bytes, start: int, end: int) -> bool:
    """No function can stand in it: every one of them has a parenthesis or an arrow."""
    return text.find(b"(", start, end) < 0 and text.find(b"=>", start, end) < 0


def find_names(pattern: Node) -> list[tuple[Node, Node | None]]:
    """The identifiers a pattern binds, in order, with the key each is read from at the first level (`{key: name}`)."""
    found: list[tuple[Node, Node | None]] = []
    todo: list[tuple[Node, Node | None, int]] = [(pattern, None, 0)]
    while todo:
        node, key, depth = todo.pop()
        kind = kind_of(node)
        if kind == "identifier":
            if end_of(node) > start_of(node):
                found.append((node, key))
        elif kind == "shorthand_property_identifier_pattern":
            found.append((node, node if depth == 1 else None))
        elif kind == "pair_pattern":
            value = field_of(node, "value")
            if value is not None:
                todo.append((value, field_of(node, "key") if depth == 1 else None, depth))
        elif kind in ("assignment_pattern", "object_assignment_pattern"):
            left = field_of(node, "left")
            if left is not None:
                todo.append((left, key, depth))
        elif kind == "rest_pattern":
            todo += [(child, None, depth) for child in reversed(children_of(node))]
        elif kind in ("object_pattern", "array_pattern"):
            todo += [(child, None, depth + 1) for child in reversed(children_of(node))]
    return found
