"""The options of `cq run` and `cq report`."""

from __future__ import annotations

import msgspec

from cq.model.plan import Plan


class RunOptions(msgspec.Struct, frozen=True):
    """A plan whose steps are asked over one generation of the index. `measure` is what the budget counts; `place` is
    what suggested commands must repeat to be about the same tree, quoted."""

    plan: Plan
    measure: str = "text"
    place: tuple[str, ...] = ()


class ReportOptions(msgspec.Struct, frozen=True):
    """A plan by its name (`preset`), for `function:…`, `class:…`, `module:…` or `path:…`."""

    preset: str
    target: str
    budget: int = 8000
    measure: str = "text"
    place: tuple[str, ...] = ()
