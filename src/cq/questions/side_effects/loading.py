"""Which code of a document does not run when it is loaded, beside the functions that have a name."""

from __future__ import annotations

from collections.abc import Sequence

from cq.languages.effects import Effects
from cq.model.code import Attribute, Code, Lambda, Operated, Text, Value
from cq.model.facts import Symbol
from cq.model.spans import Spans


def find_late(code: Code, symbols: Sequence[Symbol], effects: Effects) -> Spans[None]:
    """Functions that are not called where they stand, fields of instances, and what stands under a guard for programs
    or for type checkers."""
    called = {start for site in code.sites if (start := _find_function(site.callee)) >= 0}
    spans = [each.anonymous[1:] for each in code.definitions if each.anonymous and each.start not in called]
    spans += [(branch.start, branch.end) for branch in code.branches if _is_guarded(branch.value, effects.guards)]
    if effects.has_late_fields:
        fields = (symbol for symbol in symbols if symbol.kind == "field" and "static" not in symbol.modifiers)
        spans += [(symbol.head, symbol.end) for symbol in fields]
    return Spans((start, end, None) for start, end in spans)


def _find_function(callee: Value) -> int:
    """`(function () { … })()`, `(() => { … }).call(this)`: where the function starts, -1 for every other call."""
    if isinstance(callee, Attribute) and callee.path in ("call", "apply"):
        callee = callee.base
    return callee.start if isinstance(callee, Lambda) else -1


def _is_guarded(condition: Value, guards: Sequence[frozenset[str]]) -> bool:
    """`if __name__ == "__main__"`, `if TYPE_CHECKING`."""
    match condition:
        case str():
            return any({condition, condition.rpartition(".")[2]} & guard for guard in guards if len(guard) == 1)
        case Operated(operator="and"):
            return _is_guarded(condition.left, guards) or _is_guarded(condition.right, guards)
        case Operated(operator="==" | "===", left=left, right=right):
            said = (side.value if isinstance(side, Text) else side for side in (left, right))
            return frozenset(side for side in said if isinstance(side, str)) in guards
        case _:
            return False
