"""Sets of values on their way through the code: each with the weakest step on the best way it came."""

from __future__ import annotations

from cq.graph.things import TOP, Thing

# Indices into EVIDENCE of cq.model.edge.
SCOPE, IMPORT, MRO, CONSTRUCTOR, ANNOTATION, ATTRIBUTE, INFERRED, PASSED, ELEMENT, PARAMETER, NAME = range(11)

Values = dict[Thing, int]  # never changed once handed out
NOTHING: Values = {}
# What holds too much. Whatever is done with it gives it again, so that it does not matter when a set became too large.
EVERYTHING: Values = {TOP: NAME}


def join(left: Values, right: Values) -> Values:
    """Both; the left one itself when the right adds nothing. The surer way to a value counts."""
    if not left or right is EVERYTHING:
        return right
    if not right or left is right or left is EVERYTHING:
        return left
    grown: Values | None = None
    for thing, level in right.items():
        known = left.get(thing)
        if known is None or level < known:
            if grown is None:
                grown = dict(left)
            grown[thing] = level
    return left if grown is None else grown


def raised(values: Values, level: int) -> Values:
    """The same values, none surer than `level`."""
    for known in values.values():
        if known < level:
            return {thing: max(at, level) for thing, at in values.items()}
    return values
