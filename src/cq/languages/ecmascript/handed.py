"""Names that a call is given as arguments: they may be functions that it calls."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from cq.model.shape import Handed
from cq.syntax.excerpt import clip
from cq.syntax.tree import Node, child_at, children_of, end_of, field_of, kind_of, start_of

MAX_TEXT = 200
MAX_ARGUMENTS = 20
_AROUND = frozenset({"parenthesized_expression", "non_null_expression", "as_expression", "satisfies_expression"})


def find_handed(text: bytes, node: Node) -> Iterator[Handed]:
    """Of a call or of `new`."""
    callee = field_of(node, "function") or field_of(node, "constructor")
    given = field_of(node, "arguments")
    if callee is None or given is None:
        return
    name, receiver = _split(text, callee)
    for index, argument in enumerate(each for each in children_of(given) if kind_of(each) != "comment"):
        if index >= MAX_ARGUMENTS:
            return
        yield from _read(text, argument, Handed("", 0, 0, name, receiver, index, start_of(node)))


def find_handed_attribute(text: bytes, node: Node) -> Iterator[Handed]:
    """`onClick={save}`; an attribute does not say of which element it is."""
    name, value = child_at(node, 0), child_at(node, 1)
    inner = child_at(value, 0) if value is not None and kind_of(value) == "jsx_expression" else None
    if name is not None and inner is not None:
        yield from _read(text, inner, Handed("", 0, 0, "", "", -1, start_of(node), _write(text, name)))


def _read(text: bytes, node: Node, handed: Handed) -> Iterator[Handed]:
    """`handed` with the name that is given, where a name is."""
    node, bound = _unwrap(node), False
    if kind_of(node) == "call_expression":  # f.bind(this)
        inner = field_of(node, "function")
        word = field_of(inner, "property") if inner is not None and kind_of(inner) == "member_expression" else None
        held = field_of(inner, "object") if inner is not None and word is not None else None
        if word is None or held is None or _write(text, word) != "bind":
            return
        node, bound = _unwrap(held), True
    last = field_of(node, "property") if kind_of(node) == "member_expression" else node
    if last is None or kind_of(last) not in ("identifier", "property_identifier", "private_property_identifier"):
        return
    yield msgspec.structs.replace(handed, name=_write(text, node), start=start_of(last), end=end_of(last), bound=bound)


def _split(text: bytes, callee: Node) -> tuple[str, str]:
    callee = _unwrap(callee)
    if kind_of(callee) != "member_expression":
        return _write(text, callee), ""
    name, holder = field_of(callee, "property"), field_of(callee, "object")
    return "" if name is None else _write(text, name), "" if holder is None else _write(text, holder)


def _unwrap(node: Node) -> Node:
    while kind_of(node) in _AROUND and (inner := child_at(node, 0)) is not None:
        node = inner
    return node


def _write(text: bytes, node: Node) -> str:
    return clip(text, start_of(node), end_of(node), MAX_TEXT)
