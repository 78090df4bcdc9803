"""The options of `cq run` and `cq report`."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import Meta

from cq.answers.options import Option, Options
from cq.model.plan import Plan
from cq.questions.run.presets import PRESETS


def _make_plan(data: Any) -> Plan:
    from cq.questions.run.plan import make_plan

    return make_plan(data)


class RunOptions(Options, frozen=True):
    """A plan whose steps are asked over one generation of the index. `measure` is what the budget counts; `place` is
    what suggested commands must repeat to be about the same tree, quoted."""

    examples: ClassVar[str] = """\
  cq run review.toml                                             the steps of a file
  cq run --step '{"type": "calls", "target": "save"}' \\
         --step '{"type": "impact", "target": "{{s1.target}}"}'    of the command line
  cq run --steps '[{"type": "imports", "cycles": true}]'         the same, as one list
  cq schema plan                                                 what a plan may say"""

    plan: Annotated[Plan, Option("the steps", json=dict[str, Any], parse=_make_plan)]
    measure: str = "text"
    place: tuple[str, ...] = ()


class ReportOptions(Options, frozen=True):
    """A plan by its name (`preset`), for `function:…`, `class:…`, `module:…` or `path:…`."""

    examples: ClassVar[str] = """\
  cq report refactor-impact --target function:QuerySet.get      before it is rewritten
  cq report safety-reliability --target path:src/app            what may go wrong there
  cq report change-propagation --target class:Store             how far a change goes
  cq report dependency-health --target module:app.db            imports, cycles, loading"""

    preset: Annotated[
        str,
        Option(
            "; ".join(f"{name}: {line}" for name, (_, line) in PRESETS.items()), metavar="PRESET", argument=True,
            choices=tuple(PRESETS),
        ),
    ]  # fmt: skip
    target: Annotated[
        str, Option("function:NAME, class:NAME, module:NAME or path:PATH", metavar="KIND:NAME", place="subject")
    ]
    budget: Annotated[
        int, Meta(ge=500, le=1_000_000), Option("of the whole answer (default: 8000)", metavar="TOKENS", group="answer")
    ] = 8000
    measure: str = "text"
    place: tuple[str, ...] = ()
