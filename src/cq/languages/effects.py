"""What functions from outside a repository do when they are called: `known/effects.toml` of a language's folder."""

from __future__ import annotations

from functools import cache
from typing import Literal

import msgspec

from cq.language import load_known

Effect = Literal["network", "process", "io", "environment", "registration", "state", "unknown", "pure"]


class Effects(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`effects` are dotted names, meant with all below them; the longest decides. `module.Class()` is an instance."""

    environment: str = ""  # what reads the variables of the process
    # What is asked where a program begins or a type checker looks: one name, or two that are compared.
    guards: tuple[frozenset[str], ...] = ()
    has_late_fields: bool = False  # fields of a class get their values when an instance is made
    schemes: tuple[str, ...] = ()  # what may stand before a module's name and changes nothing
    changing: frozenset[str] = frozenset()  # methods that change what they are called on
    pure_decorators: frozenset[str] = frozenset()  # that only wrap or mark what they stand on
    effects: dict[Effect, tuple[str, ...]] = {}


def load_effects(language: str) -> Effects:
    return load_known(language, "effects", Effects)


def find_effect(name: str, language: str) -> Effect | Literal[""]:
    """The effect of a dotted name from outside; "" where the tables do not say."""
    for scheme in load_effects(language).schemes:
        name = name.removeprefix(scheme)
    table, at = _by_name(language), name
    while at:
        if at in table:
            return table[at]
        cut = max(at.rfind("."), at.rfind("()"))
        at = at[:cut] if cut > 0 else ""
    return ""


@cache
def _by_name(language: str) -> dict[str, Effect]:
    return {name: effect for effect, names in load_effects(language).effects.items() for name in names}
