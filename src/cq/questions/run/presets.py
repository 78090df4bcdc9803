"""Reports by name: each a plan for a function, a class, a module or a path."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import msgspec

from cq.model.errors import UsageError, suggest
from cq.model.plan import Plan, Step
from cq.snapshot.target import Definition, find_part, find_targets

if TYPE_CHECKING:
    from cq.snapshot.relations import Relations

KINDS = {"function": ("function", "method"), "class": ("class", "type"), "module": (), "path": ()}


class Subject(msgspec.Struct, frozen=True):
    """What a report is about: `name` as a TARGET or a path, `module` the file or files around it."""

    kind: str
    name: str
    module: str
    rows: tuple[Definition, ...] = ()

    @property
    def is_definition(self) -> bool:
        return bool(self.rows)


def parse_subject(text: str) -> tuple[str, str]:
    """`function:NAME` as (kind, name); UsageError for anything else."""
    kind, colon, name = text.partition(":")
    if not colon or not name.strip() or kind not in KINDS:
        close = get_close_matches(kind, KINDS, n=1) if colon and kind not in KINDS else []
        hint = (f"did you mean {close[0]!r}? " if close else "") + "e.g. function:save, class:Store, path:src/app"
        raise UsageError(f"--target {text!r} is no function:…, class:…, module:… or path:…", hint=hint)
    return kind, name.strip()


def find_subject(relations: Relations, kind: str, name: str) -> Subject | None:
    """The best that fits; None where nothing does."""
    if KINDS[kind]:
        rows = [row for row in find_targets(relations.files, name) if row.symbol.kind_group in KINDS[kind]]
        if not rows:
            return None
        path = rows[0].file.path
        return Subject(kind, f"{path}:{rows[0].symbol.qualified_name}", path, tuple(rows))
    return Subject(kind, name, name) if find_part(relations.files, relations.paths(), name) else None


def _step(name: str, **given: Any) -> Step:
    from cq.questions.run.steps import find_step

    return msgspec.convert({"type": name, **given}, find_step(name))


def _refactor_impact(about: Subject) -> list[Step]:
    if not about.is_definition:
        return [
            _step("impact", id="impact", target=[about.name]),
            _step("imports", id="imports", module=about.module),
            _step("exceptions", id="exceptions", target=about.name),
            _step("side-effects", id="effects", path=about.module),
        ]
    steps: list[Step] = [_step("calls", id="calls", target=about.name)] if about.kind == "function" else []
    return [
        *steps,
        _step("impact", id="impact", target=[about.name]),
        _step("neighborhood", id="around", target=about.name, no_lsp=True, slices=_AROUND[about.kind]),
        _step("exceptions", id="exceptions", target=about.name),
        _step("scopes", id="scopes", target=about.name),
    ]


_AROUND = {
    "function": ("callees", "references", "type_supertypes", "tests"),
    "class": ("callers", "children", "type_supertypes", "type_subtypes", "references", "tests"),
}


def _safety(about: Subject) -> list[Step]:
    steps: list[Step] = [
        _step("exceptions", id="exceptions", target=about.name, limit=15),
        _step("side-effects", id="effects", path=about.module),
    ]
    if about.is_definition:
        steps += [_step("scopes", id="scopes", target=about.name)]
        steps += [_step("bytecode", id="bytecode", target=about.name)] if about.module.endswith((".py", ".pyi")) else []
    elif about.kind == "path" and "'" not in about.module:
        query = f"entity=callsite name=~^(eval|exec)$ in='{about.module.rstrip('/')}'"
        steps.append(_step("q", id="dynamic", query=query))
    return steps


def _propagation(about: Subject) -> list[Step]:
    steps: list[Step] = [_step("impact", id="impact", target=[about.name], depth=5, limit=20)]
    if about.kind == "function":
        steps.append(_step("calls", id="calls", target=about.name, family=True))
    if about.is_definition:
        steps.append(_step("neighborhood", id="around", target=about.name, no_lsp=True, slices=("importers", "tests")))
    return [
        *steps,
        _step("imports", id="imports", module=about.module),
        _step("exceptions", id="exceptions", target=about.name),
    ]


def _dependencies(about: Subject) -> list[Step]:
    return [
        _step("imports", id="imports", module=about.module, limit=20),
        _step("imports", id="cycles", cycles=True),
        _step("side-effects", id="effects", path=about.module),
        _step("impact", id="impact", target=[about.name], depth=2),
    ]


PRESETS: dict[str, tuple[Callable[[Subject], list[Step]], str]] = {
    "refactor-impact": (_refactor_impact, "who calls it, what depends on it, what is around it, what may leave it"),
    "safety-reliability": (_safety, "what is raised and not caught, what loading does, what names it reaches"),
    "change-propagation": (_propagation, "how far a change goes: dependents, importers, tests"),
    "dependency-health": (_dependencies, "imports both ways, cycles, what loading does, dependents"),
}


def make_report(preset: str, about: Subject, budget: int) -> Plan:
    if preset not in PRESETS:
        hint = suggest(preset, PRESETS)
        raise UsageError(f"there is no report {preset!r}", hint=hint)
    return Plan(tuple(PRESETS[preset][0](about)), f"{preset} of {about.kind} {about.name}", budget=budget)
