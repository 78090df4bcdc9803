"""What a change of a definition breaks for who uses it: parameters, bases, kinds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from cq.language import describe
from cq.model.code import Parameter
from cq.model.errors import UsageError
from cq.snapshot.signatures import find_parameters, parse_signature, takes_receiver

if TYPE_CHECKING:
    from cq.snapshot.pairing import Side
    from cq.snapshot.relations import Relations

FUNCTIONS = ("function", "method")
MOST_TYPE = 60  # characters of a type that are shown


def read_parameters(relations: Relations, side: Side) -> tuple[Parameter, ...] | None:
    """As its code has them, without the receiver; None where that is not known."""
    row = side.row
    found = find_parameters(relations, row)
    if found is None:
        try:
            found = parse_signature(row.symbol.signature.removeprefix("async "), _language(side), row.symbol.name)
        except UsageError:
            return None
    found = found[1:] if found and takes_receiver(row) else found
    return tuple(_as_meant(parameter) for parameter in found)


def _as_meant(parameter: Parameter) -> Parameter:
    """`def f(__value)` said before there was a slash that nobody passes it by name."""
    name = parameter.name
    if parameter.kind == "" and name.startswith("__") and not name.endswith("__"):
        return msgspec.structs.replace(parameter, kind="/")
    return parameter


def find_breaking(
    old: Side,
    new: Side,
    was: Sequence[Parameter] | None,
    now: Sequence[Parameter] | None,
    renamed: Callable[[str], str],
) -> list[str]:
    """Why who uses the old one may fail with the new one, as half sentences; in the order of the signature. `renamed`
    says a text with the names that definitions have now."""
    one, other = old.row.symbol, new.row.symbol
    if (one.kind_group in FUNCTIONS) != (other.kind_group in FUNCTIONS) or (
        one.kind_group != other.kind_group and "class" in (one.kind_group, other.kind_group)
    ):
        return [f"it was a {one.kind} and is a {other.kind}"]
    found: list[str] = []
    if was is not None and now is not None and one.kind_group in FUNCTIONS:
        found += _compare_parameters(was, now, by_name=describe(_language(new)).receiver == "first")
    if one.kind_group == "value" and one.parent < 0 and old.code != new.code:
        found.append("its value changed")
    if gone := [base for base in one.bases if base not in other.bases and renamed(base) not in other.bases]:
        found.append(f"base {gone[0]!r} removed" if len(gone) == 1 else f"bases {', '.join(gone)} removed")
    before, after = _find_result(one.signature), _find_result(other.signature)
    if before and after and spell_type(renamed(before)) != spell_type(after):
        found.append(f"it returned {_cut(before)} and returns {_cut(after)}")
    if "async" in other.modifiers and "async" not in one.modifiers:
        found.append("it became async")
    elif "async" in one.modifiers and "async" not in other.modifiers:
        found.append("it is async no more")
    return found


def _compare_parameters(was: Sequence[Parameter], now: Sequence[Parameter], *, by_name: bool) -> Iterator[str]:
    """`by_name`: arguments may be given by name, as in Python."""
    kinds = {parameter.kind for parameter in now}
    places = {p.name: at for at, p in enumerate(p for p in now if p.kind in ("", "/"))}
    old_places = [p for p in was if p.kind in ("", "/")]
    names = {p.name: p for p in now}
    if not by_name:
        # Names mean nothing to who calls it: only how many there are, and which may be left out.
        new_places = [p for p in now if p.kind in ("", "/")]
        needed, taken = sum(not p.optional for p in new_places), len(new_places)
        if len(old_places) > taken and "*" not in kinds:
            gone = old_places[taken]
            yield f"parameter `{gone.name}` removed" if gone.name not in names else "fewer parameters"
        if needed > sum(not p.optional for p in old_places):
            added = [p.name for p in new_places if not p.optional and p.name not in {o.name for o in old_places}]
            yield f"parameter `{added[0]}` added and required" if added else "a parameter became required"
        return
    for at, parameter in enumerate(was):
        name, kind = parameter.name, parameter.kind
        if kind in ("*", "**"):
            if kind not in kinds:
                yield f"`{kind}{name}` removed"
            continue
        other = names.get(name)
        if other is None or other.kind in ("*", "**"):
            swallowed = (kind == "k" and "**" in kinds) or (kind == "/" and "*" in kinds)
            renamed = kind == "/" and len(places) > at
            if not swallowed and not renamed:
                yield f"parameter `{name}` removed"
            continue
        if kind in ("", "/") and other.kind == "k":
            yield f"parameter `{name}` became keyword-only"
        elif kind in ("", "k") and other.kind == "/":
            yield f"parameter `{name}` became positional-only"
        elif kind in ("", "/") and places.get(name) != old_places.index(parameter):
            yield f"parameter `{name}` moved"
        if parameter.optional and not other.optional:
            yield f"parameter `{name}` became required"
        elif parameter.optional and other.optional and _says_other(parameter.default, other.default):
            yield f"default of `{name}` changed"
    known = {p.name for p in was}
    for parameter in now:
        if parameter.name not in known and not parameter.optional and parameter.kind not in ("*", "**"):
            replaces = parameter.kind == "/" and len(old_places) > places[parameter.name]
            if not replaces:
                yield f"parameter `{parameter.name}` added and required"


def _says_other(one: object, other: object) -> bool:
    """Whether two defaults differ for certain; a place inside of a value is no part of what it says."""
    if type(one) is not type(other):
        return True
    return one != other and not hasattr(one, "start")


def spell_type(text: str) -> str:
    """The same for a type however it is written: `t.Optional["List[A]"]`, `typing.List[A] | None`, `None | list[A]`."""
    text = re.sub(r"""["'\s]""", "", text)
    text = re.sub(r"[^\W\d]\w*\.(?=[^\W\d])", "", text)
    return _spell(text)


def _spell(text: str) -> str:
    members: list[str] = []
    for part in _cut_at(text, "|"):
        name, bracket, inside = part.partition("[")
        if not bracket or not inside.endswith("]"):
            members.append(name.lower() if name.lower() in _PLAIN else part)
            continue
        arguments = [_spell(each) for each in _cut_at(inside[:-1], ",")]
        if name in ("Union", "Optional"):
            members += [each.strip() for argument in arguments for each in _cut_at(argument, "|")]
            members += ["None"] if name == "Optional" else []
        else:
            members.append(f"{name.lower() if name.lower() in _PLAIN else name}[{', '.join(arguments)}]")
    return " | ".join(sorted(set(members)))


_PLAIN = frozenset({"list", "dict", "tuple", "set", "frozenset", "type"})


def _cut_at(text: str, sign: str) -> list[str]:
    """At each sign that stands in no brackets."""
    parts, depth, start = list[str](), 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "([{<") - (letter in ")]}>")
        if letter == sign and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


def _cut(text: str) -> str:
    return text if len(text) <= MOST_TYPE else f"{text[:MOST_TYPE]}…"


def _find_result(signature: str) -> str:
    """What stands behind the parameters, "" where nothing does."""
    depth = 0
    for at, letter in enumerate(signature):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == ")" and depth == 0:
            return signature[at + 1 :].strip().removeprefix("->").removeprefix(":").strip(" :{")
    return ""


def _language(side: Side) -> str:
    return side.row.file.documents[side.row.document].language
