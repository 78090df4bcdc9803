"""Code of the table languages, made from their other facts: who defines what, what a call is on, what is imported.
Every definition has an entry, by which others find it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cq.language import describe
from cq.model.code import (
    Bind,
    Code,
    Defined,
    Definition,
    Entry,
    Imported,
    Name,
    OnReceiver,
    Parameter,
    Site,
    Value,
)
from cq.model.facts import KIND_GROUPS, Call, Import

if TYPE_CHECKING:
    from cq.syntax.language import Draft

_CALLABLE = frozenset({"function", "method"})
_HOLDERS = frozenset({"class", "type", "module"})
_ANY = (Parameter("_", "*"),)  # what a definition takes is not asked


def build_table_code(language: str, drafts: Sequence[Draft], calls: Sequence[Call], imports: Sequence[Import]) -> Code:
    has_prototypes = describe(language).has_prototypes
    definitions: list[Definition] = []
    binds: list[Bind] = []
    entries: list[Entry] = []
    called = {call.name for call in calls} | {call.receiver for call in calls}
    classes: dict[str, int] = {}
    holders: list[int] = []  # per symbol the definition whose code holds what is inside it
    for number, draft in enumerate(drafts):
        group = KIND_GROUPS.get(draft.kind, "other")
        scope = holders[draft.parent] if draft.parent >= 0 else -1
        # A prototype only announces what is defined elsewhere.
        is_definition = draft.body_start >= 0 if has_prototypes else group in _CALLABLE
        is_definition = (is_definition and group in _CALLABLE) or (group in _HOLDERS and draft.body_start >= 0)
        holders.append(number if is_definition else scope)
        start = draft.head if draft.head >= 0 else draft.start
        if is_definition:
            kind = "function" if group in _CALLABLE else "class"
            # Go's `func (t T) M` and Lua's `function M.g` stand at root level and are members all the same.
            owner = draft.qualified_name.rpartition(".")[0] if draft.parent < 0 else ""
            scope = classes.get(owner, scope)
            is_member = owner != "" and scope < 0
            modifiers = (*draft.modifiers, "member") if is_member else draft.modifiers
            definitions.append(
                Definition(
                    kind, draft.name, number, scope, draft.name_start, _ANY if kind == "function" else (),
                    bases=tuple(map(Name, draft.bases)), modifiers=modifiers,
                )
            )  # fmt: skip
            if kind == "class":
                classes.setdefault(draft.qualified_name, number)
            entries.append(Entry("definition", draft.name, draft.name_start))
            if not is_member:
                binds.append(Bind(scope, draft.name, Defined(draft.name_start), start))
        elif draft.kind in ("variable", "parameter", "constant") and draft.name in called:
            binds.append(Bind(scope, draft.name, None, start))
    for item in imports:
        scope = holders[item.scope] if item.scope >= 0 else -1
        binds += [Bind(scope, b.local, Imported(0, item.module, b.imported), item.start) for b in item.bindings]
        if not item.bindings:
            binds.append(Bind(scope, "*", Imported(0, item.module, "*"), item.start))
    sites = [
        Site(
            holders[call.scope] if call.scope >= 0 else -1, call.start, call.end, _callee(call),
            kind=call.kind, name=call.name,
        )
        for call in calls
    ]  # fmt: skip
    binds.sort(key=lambda bind: bind.start)
    return Code(language, tuple(definitions), tuple(binds), sites=tuple(sites), entries=tuple(entries))


def _callee(call: Call) -> Value:
    if not call.name or call.kind in ("super", "import"):
        return None
    return OnReceiver(call.receiver, call.name) if call.receiver else Name(call.name)
