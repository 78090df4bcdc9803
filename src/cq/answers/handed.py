"""Functions that are handed to calls, as findings."""

from __future__ import annotations

from cq.model.answer import Finding, TypeDetails
from cq.model.shape import Predicate
from cq.snapshot.shapes import HandedOver, KnownShapes, say_handed

Facts = dict[str, "str | int | bool | tuple[str, ...]"]
# What takes a function and gives what it lets through.
_FILTERING = {"filter": "{}[]", "find": "{} | undefined", "findLast": "{} | undefined"}


def describe_handed(shapes: KnownShapes, item: HandedOver, *, outwards: bool) -> Finding:
    """`outwards`: as what the definition hands over; else as where it is handed over."""
    handed, held = item.handed, shapes.relations.hold(item.path)
    assert held is not None
    facts: Facts = {"callee": handed.callee, "parameter_index": handed.index, "bound_with_bind": handed.bound}
    if handed.attribute:
        facts["attribute"] = handed.attribute
    predicate = shapes.find_predicate(item.target)
    if predicate is not None:
        facts |= say_predicate(predicate)
        if handed.callee in _FILTERING and predicate.kind == "is" and predicate.type is not None:
            facts["narrowed_output_type"] = _FILTERING[handed.callee].format(predicate.type.text)
    name = shapes.relations.label(item.target) if outwards else held.line_at(handed.start).strip()[:160]
    details = TypeDetails("hands" if outwards else "handed", handed.name, "links", facts=facts)
    where = held.locate(handed.start, handed.end)
    return Finding(details.fact, f"{name}: {say_handed(handed)}", where, details=details)


def say_predicate(predicate: Predicate) -> Facts:
    found: Facts = {"predicate_kind": predicate.kind, "predicate_parameter": predicate.parameter}
    if predicate.type is not None:
        found["predicate_type"] = predicate.type.text
    return found
