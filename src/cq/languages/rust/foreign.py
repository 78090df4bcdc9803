"""What a definition is called on the other side of a language boundary: PyO3, wasm-bindgen, napi, the C ABI. Pure.

#[pyclass(name = "Hash")]        `Hash` for Python
struct PyHash { … }
#[pymethods]
impl PyHash {
    #[new]                       `Hash.__new__`
    fn new() -> Self { … }
    #[pyo3(name = "update")]     `Hash.update`
    fn update_bytes(&mut self) { … }
}
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from cq.model.facts import Symbol

# Words that a Rust file with exports holds at least one of.
MARKERS = ("pyfunction", "pyclass", "pymethods", "pymodule", "wasm_bindgen", "napi", "no_mangle", "export_name")
_PYTHON_NAME = re.compile(r'\bname\s*=\s*"([^"]+)"')
_JS_NAME = re.compile(r'\bjs_name\s*=\s*"?([\w$]+)')
_EXPORT_NAME = re.compile(r'\bexport_name\s*=\s*"([^"]+)"')
_TYPES = frozenset({"struct", "enum", "union"})
_ACCESSORS = re.compile(r"\b(?:getter|setter)(?:\((\w+)\))?")


class ForeignName(msgspec.Struct, frozen=True, order=True):
    """`symbol` is the number of the definition in its document; `name` is dotted for a member, "" for a module."""

    boundary: str  # pyo3 wasm_bindgen napi c
    name: str
    symbol: int
    module: str = ""  # of a module its own name, of a class the one that its attribute states


def find_foreign_names(symbols: Sequence[Symbol]) -> list[ForeignName]:
    """What a document of Rust offers to others, in its order."""
    types = {
        symbol.name: offered
        for number, symbol in enumerate(symbols)
        if symbol.kind in _TYPES and (offered := _offer(number, symbol)) is not None
    }
    found: list[ForeignName] = []
    for number, symbol in enumerate(symbols):
        offered = _offer(number, symbol)
        if offered is not None:
            found.append(offered)
        elif symbol.parent >= 0 and symbols[symbol.parent].kind == "impl" and symbol.kind == "method":
            found += _offer_member(number, symbol, symbols[symbol.parent], types)
    return found


def _offer(number: int, symbol: Symbol) -> ForeignName | None:
    if symbol.kind == "impl":
        return None
    marks = " ".join(symbol.decorators)
    if not marks:
        return None
    python = _PYTHON_NAME.search(marks)
    name = python[1] if python else symbol.name
    if _has(marks, "pymodule"):
        return ForeignName("pyo3", "", number, name)
    if _has(marks, "pyfunction") or (_has(marks, "pyclass") and symbol.kind in _TYPES):
        stated = re.search(r'\bmodule\s*=\s*"([^"]+)"', marks)
        return ForeignName("pyo3", name, number, stated[1] if stated else "")
    if _has(marks, "wasm_bindgen") and symbol.kind in (*_TYPES, "function"):
        renamed = _JS_NAME.search(marks)
        return ForeignName("wasm_bindgen", renamed[1] if renamed else symbol.name, number)
    if _has(marks, "napi") and symbol.kind in (*_TYPES, "function"):
        renamed = _JS_NAME.search(marks)
        own = symbol.name if symbol.kind in _TYPES else _camel(symbol.name)
        return ForeignName("napi", renamed[1] if renamed else own, number)
    if symbol.kind == "function" and (exported := _EXPORT_NAME.search(marks)):
        return ForeignName("c", exported[1], number)
    return ForeignName("c", symbol.name, number) if symbol.kind == "function" and _has(marks, "no_mangle") else None


def _offer_member(number: int, symbol: Symbol, block: Symbol, types: dict[str, ForeignName]) -> Iterable[ForeignName]:
    """A method of `#[pymethods] impl T`; one whose type stands in another file goes by the type's own name."""
    around, own = " ".join(block.decorators), " ".join(symbol.decorators)
    known = types.get(block.name)
    holder = known.name if known is not None else block.name.removeprefix("Py")
    if _has(around, "pymethods"):
        renamed = _PYTHON_NAME.search(own)
        accessor = _ACCESSORS.search(own)
        name = renamed[1] if renamed else symbol.name
        if accessor is not None and not renamed:
            name = accessor[1] or re.sub(r"^[gs]et_", "", symbol.name)
        if re.search(r"(?:^| )new\b", own):
            name = "__new__"
        yield ForeignName("pyo3", f"{holder}.{name}", number)
    for boundary in ("wasm_bindgen", "napi"):
        if _has(around, boundary) and (boundary == "wasm_bindgen" or _has(own, boundary)):
            renamed = _JS_NAME.search(own)
            name = "constructor" if "constructor" in own else symbol.name if boundary != "napi" else _camel(symbol.name)
            yield ForeignName(boundary, f"{holder}.{renamed[1] if renamed else name}", number)


def _has(marks: str, word: str) -> bool:
    return re.search(rf"(?<![\w]){word}\b", marks) is not None


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)
