"""Paths and callees of Rust, read from their text."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from cq.model.code import CallEnd, Item, MethodOf, Name, Unwrapped, Value, read_attribute

_TAIL_BYTES = 300  # of a callee: enough to see what the last method is called on
PLAIN_CALLEE = re.compile(rb"(?:r#)?[A-Za-z_]\w*(?:::(?:r#)?[A-Za-z_]\w*)*(?:\.\w+)*")
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
    return text.decode("utf-8", "replace") if PLAIN_CALLEE.fullmatch(text) else None


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
    if start >= name_start - _TAIL_BYTES and PLAIN_CALLEE.fullmatch(path):
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
    if PLAIN_CALLEE.fullmatch(callee) is None:
        return None
    written = callee.decode("utf-8", "replace").replace("r#", "")
    receiver, dot, name = written.rpartition(".")
    return MethodOf(Name(receiver), name) if dot else Name(written)
