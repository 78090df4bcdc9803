"""The contract in a hover text: kind, signature, parameters, result, type. What has no shape stays text."""

from __future__ import annotations

import re

from cq.model.provider import Hover, Parameter

_FENCE = re.compile(r"```(\w*)[ \t]*\n(.*?)\n?```", re.DOTALL)
_KIND = re.compile(r"^\(([a-z][a-z ]{0,30})\)\s*")
# pyrefly writes `run: def run(self: Base, sql: str) -> int: ...`, ty `bound method Base.run(sql: str) -> int`,
# TypeScript `Base.run(sql: string): number`.
_FUNCTION = re.compile(r"\b(?:async\s+)?(?:def|function|fn|func)\b[\s\w.#$]*|^(?:bound method )?[\w.#$]+(?=[<(\[])")
# With bounds: a server quotes documentation, and from each of many brackets an end is looked for.
_LINK = re.compile(r"\[([^\]\n]{0,500})\]\(file:[^)\n]{0,4096}\)")
_GO_TO = re.compile(r"(?<!\n)\n+Go to \[[^\n]*$")
_PATH = re.compile(r"[\w:<>, &']+")
_WORD = re.compile(
    r"^(?:pub(?:\([^)]*\))?\s+|export\s+|declare\s+|async\s+)*"
    r"(class|interface|enum|type|struct|trait|const|let|var|module|namespace|def|function|fn|static|mod|impl)\b"
)
_OPEN, _CLOSE = "([{<", ")]}>"
_MAX_CODE = 4000


def parse_hover(text: str, start: int = -1, end: int = -1) -> Hover:
    # Links name places of this machine; pyrefly ends with a line of nothing else.
    text = _LINK.sub(r"\1", _GO_TO.sub("", text))
    fence = _FENCE.search(text)
    # rust-analyzer names the module in a block of its own, before the one that says what it is.
    if fence and fence[1] == "rust" and _PATH.fullmatch(fence[2].strip()):
        fence = _FENCE.search(text, fence.end()) or fence
    if fence is None:
        return Hover(text, doc=text.strip(), start=start, end=end)
    code, doc = fence[2].strip()[:_MAX_CODE], text[fence.end() :].strip().lstrip("-").strip()
    kind = ""
    if found := _KIND.match(code):
        kind, code = found[1], code[found.end() :]
    elif code.startswith("bound method "):
        kind = "method"
    elif found := _WORD.match(code):
        kind = {"def": "function", "fn": "function"}.get(found[1], found[1])
    head = _find_parameters(code)
    if head is None:
        return Hover(text, kind, type=_type_of(code), doc=doc, start=start, end=end)
    first, opening, closing = head
    parameters = tuple(_parse_parameter(each) for each in _split(code[opening + 1 : closing]))
    return Hover(
        text,
        kind,
        " ".join(code[first:].split()).removesuffix(": ..."),
        tuple(each for each in parameters if each.name),
        _returns(code[closing + 1 :]),
        doc=doc,
        start=start,
        end=end,
    )


def _find_parameters(code: str) -> tuple[int, int, int] | None:
    """Where the signature begins, and its parentheses; None for what is no function."""
    found = _FUNCTION.search(code)
    if found is None:
        return None
    depth = 0
    for at in range(found.end(), len(code)):
        char = code[at]
        if char == "(" and depth == 0:
            closing = _match(code, at)
            return (found.start(), at, closing) if closing >= 0 else None
        depth += (char in "<[") - (char in ">]")
        if depth == 0 and char in ":=\n":
            return None
    return None


def _match(code: str, opening: int) -> int:
    depth = 0
    for at in range(opening, len(code)):
        depth += (code[at] in "([{") - (code[at] in ")]}")
        if depth == 0:
            return at
    return -1


def _split(text: str) -> list[str]:
    """At the commas of the outermost level; `->` and `=>` close nothing."""
    parts, depth, begin = list[str](), 0, 0
    for at, char in enumerate(text):
        if char in _OPEN:
            depth += 1
        elif char in _CLOSE and not (char == ">" and at and text[at - 1] in "-="):
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
    return [*parts, text[begin:]]


def _parse_parameter(text: str) -> Parameter:
    text = " ".join(text.split())
    name, colon, rest = text.partition(":")
    default = ""
    if colon:
        rest, _, default = _at_equals(rest)
    else:
        name, _, default = _at_equals(name)
    return Parameter(name.strip(), rest.strip(), default.strip())


def _at_equals(text: str) -> tuple[str, str, str]:
    found = re.search(r"(?<![=!<>])=(?![=>])", text)
    return (text[: found.start()], "=", text[found.end() :]) if found else (text, "", "")


def _returns(text: str) -> str:
    text = " ".join(text.split())
    if text.startswith("->"):
        return text[2:].removesuffix(": ...").removesuffix(":").strip()
    if text.startswith(":"):
        return text[1:].strip()
    return ""


def _type_of(code: str) -> str:
    """Of a value: what stands behind its name and a colon. Code that is nothing but a type is that type."""
    code = code.partition("\n")[0]
    name, colon, rest = code.partition(":")
    if colon and not rest.startswith(":") and re.fullmatch(r"(?:[a-z]+\s+)*[\w.$#\[\]\"'?]+\s*", name):
        return _at_equals(rest)[0].strip()
    return code if not _WORD.match(code) else ""
