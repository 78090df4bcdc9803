"""What the standard library of Rust gives: `known/std.toml`, which says how it is written."""

from __future__ import annotations

import msgspec

from cq.language import load_known
from cq.languages.rust.signatures import read_type
from cq.model.code import FunctionType, Value


class StdKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    types: tuple[str, ...] = ()
    parameters: int = 1
    impls: tuple[str, ...] | None = None  # None: under its own name
    gives: dict[str, tuple[str, ...]] = {}
    hands: dict[str, tuple[str, ...]] = {}


class Std(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    crates: frozenset[str]
    primitives: frozenset[str]
    prelude: frozenset[str]
    macros: frozenset[str]
    attributes: frozenset[str]
    transparent: frozenset[str]
    common_methods: frozenset[str]
    gives: dict[str, tuple[str, ...]]
    kinds: dict[str, StdKind]

    def find_impls(self, kind: str) -> tuple[str, ...]:
        """The names under which impls for a kind stand."""
        known = self.kinds.get(kind)
        return (kind,) if known is None or known.impls is None else known.impls

    def count_parameters(self, kind: str) -> int:
        return self.kinds[kind].parameters if kind in self.kinds else 1


STD = load_known("rust", "std", Std)
KINDS = {name: kind for kind, each in STD.kinds.items() for name in each.types}


def _by_method(table: dict[str, tuple[str, ...]]) -> dict[str, Value]:
    return {method: read_type(written.encode()) for written, methods in table.items() for method in methods}


_COMMON = _by_method(STD.gives)
_GIVEN = {kind: _by_method(each.gives) for kind, each in STD.kinds.items()}
_HANDED = {kind: _by_method(each.hands) for kind, each in STD.kinds.items()}


def find_given(kind: str, method: str) -> Value:
    """What a method of a kind gives; None where the standard library has no such method, or any type may have it."""
    return _GIVEN.get(kind, {}).get(method) or _COMMON.get(method)


def find_handed(kind: str, method: str, number: int) -> Value:
    """What a method hands to a parameter of the closure that is passed to it."""
    taken = _HANDED.get(kind, {}).get(method)
    return taken.parameters[number] if isinstance(taken, FunctionType) and number < len(taken.parameters) else None
