"""Plans: read, checked, run step by step over whoever answers, merged into one answer. Knows no workspace."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, cast

import msgspec

from cq.answers.options import write_command
from cq.answers.page import Page, count_tokens
from cq.model.answer import (
    SCHEMA_VERSION,
    Answer,
    Budget,
    CountDetails,
    Finding,
    Insight,
    Run,
    Section,
    Slice,
    Target,
)
from cq.model.errors import CqError, UsageError
from cq.model.plan import Plan, Step
from cq.model.status import Degraded
from cq.questions.run.steps import find_plan, find_step, find_step_names, get_subject, list_written, type_of

MAX_BYTES = 256 * 1024
FIELDS = ("top", "target", "path", "name", "line", "found")
_TEMPLATE = re.compile(r"\{\{\s*(.*?)\s*\}\}")
_REFERENCE = re.compile(r"([\w-]+)\.(\w+)\Z")
_AT = re.compile(r"(?P<what>.*?) - at `\$(?P<where>.*)`\Z", re.DOTALL)
_STEP_AT = re.compile(r"\.steps\[(\d+)\]")
_QUOTED = re.compile(r"`([^`]*)`|'([^']*)'")
# Sections of an answer that are about asking, not about code.
_ASIDE = frozenset(
    {
        "target_tldr",
        "neighborhood_summary",
        "suggested_followups",
        "provenance",
        "followups",
        "diagnostics",
        "languages",
    }
)
_LEAST = 600  # tokens for a step, however many there are


class Outcome(msgspec.Struct, frozen=True):
    """One step: `done`, `skipped` or `failed` and why."""

    step: Step
    status: str
    reason: str = ""
    answer: Answer | None = None


def parse_plan(text: bytes, name: str = "the plan") -> Plan:
    """A plan as TOML; UsageError says what is wrong, where, and what may have been meant."""
    if len(text) > MAX_BYTES:
        raise UsageError(f"{name} is too large", hint=f"a plan has at most {MAX_BYTES:,} bytes")
    try:
        source = text.decode()
        data = tomllib.loads(source)
    except UnicodeDecodeError:
        raise UsageError(f"{name} is not UTF-8", hint="a plan is a TOML file") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{name} is not TOML: {error}", hint="see docs/run.md") from None
    except RecursionError:
        raise UsageError(f"{name} is nested too deeply", hint="see docs/run.md") from None
    return make_plan(data, name, source)


def make_plan(data: Any, name: str = "the plan", source: str = "") -> Plan:
    """A plan from plain data, checked: keys, values, names of steps and what they refer to."""
    try:
        plan = msgspec.convert(_list_single_words(data), find_plan(_find_types(data)))
    except msgspec.ValidationError as error:
        raise _explain(str(error), data, name, source) from None
    except RecursionError:
        raise UsageError(f"{name} is nested too deeply", hint="see docs/run.md") from None
    steps = [
        step if step.id else msgspec.structs.replace(step, id=f"s{number}") for number, step in enumerate(plan.steps, 1)
    ]
    known: list[str] = []
    for number, step in enumerate(steps):
        where, line = f"{name}, steps[{number}]", _line_of(source, number)
        if step.id in known:
            raise UsageError(f"{where}{line}: there is a step {step.id!r} already", hint="give it another id")
        for key, value in _texts(step):
            _check_references(value, f"{where}.{key}{line}", known)
        known.append(step.id)
    return Plan(tuple(steps), plan.title, plan.stop_on_error, plan.budget)


def _find_types(data: Any) -> tuple[str, ...]:
    """The types of steps that the plan names, so that no other question is imported. Never fewer than two: where there
    is but one, a step need not say its type."""
    steps = cast("dict[str, Any]", data).get("steps") if isinstance(data, dict) else None
    named = {_find_type(step) for step in cast("list[Any]", steps)} if isinstance(steps, list | tuple) else set[str]()
    names = find_step_names()
    known = [name for name in names if name in named]
    return tuple(known if len(known) > 1 else dict.fromkeys([*known, *names[-2:]]))


def _find_type(step: Any) -> str:
    return str(cast("dict[str, Any]", step).get("type")) if isinstance(step, dict) else ""


def _list_single_words(data: Any) -> Any:
    """The plan with `lang = "python"` read as `lang = ["python"]`, wherever a step takes several."""
    if not isinstance(data, dict) or not isinstance(steps := cast("dict[str, Any]", data).get("steps"), list | tuple):
        return data
    return {**data, "steps": [_list_single_word(step) for step in cast("list[Any]", steps)]}


def _list_single_word(step: Any) -> Any:
    name = _find_type(step)
    if name not in find_step_names():
        return step
    several = {field.encode_name for field in msgspec.structs.fields(find_step(name)) if field.default == ()}
    return {key: [value] if key in several and isinstance(value, str) else value for key, value in step.items()}


def command_of(step: Step, place: tuple[str, ...] = ()) -> str:
    """The step as a command line that shows all of it."""
    return write_command(type_of(step), list_written(step), place)


def run_plan(
    plan: Plan,
    ask: Callable[[Step, Page], Answer | str],
    *,
    command: str = "run",
    measure: str = "text",
    place: tuple[str, ...] = (),
    target: Target | None = None,
) -> Answer:
    """Asks step by step, in the order written; `ask` gives an answer, or why there is none."""
    share = max((plan.budget - _LEAST) // len(plan.steps), _LEAST) if plan.budget else 0
    outcomes: dict[str, Outcome] = {}
    stopped = ""
    for step in plan.steps:
        outcomes[step.id] = _run_step(step, ask, outcomes, stopped, Page(step.limit, share, measure=measure))
        if plan.stop_on_error and outcomes[step.id].status == "failed":
            stopped = stopped or step.id
    return _merge(plan, list(outcomes.values()), command, measure, place, target)


def _run_step(
    step: Step,
    ask: Callable[[Step, Page], Answer | str],
    outcomes: Mapping[str, Outcome],
    stopped: str,
    page: Page,
) -> Outcome:
    if stopped:
        return Outcome(step, "skipped", f"stopped after {stopped}, which failed")
    try:
        step = _fill(step, outcomes)
    except _Missing as missing:
        return Outcome(step, "skipped", str(missing))
    try:
        answer = ask(step, page)
    except CqError as error:
        return Outcome(step, "failed", str(error))
    return Outcome(step, "skipped", answer) if isinstance(answer, str) else Outcome(step, "done", "", answer)


class _Missing(Exception):
    """An input that an earlier step does not give, and why."""


def _fill(step: Step, outcomes: Mapping[str, Outcome]) -> Step:
    def give(match: re.Match[str]) -> str:
        found = _REFERENCE.match(match[1])
        assert found is not None  # checked with the plan
        earlier = outcomes[found[1]]
        if earlier.answer is None:
            raise _Missing(f"it needs {found[1]}, which was {earlier.status}")
        value = read_field(earlier.answer, found[2])
        if not value:
            raise _Missing(f"it needs {found[1]}.{found[2]}, and {found[1]} found none")
        return value

    changes: dict[str, Any] = {}
    for field in msgspec.structs.fields(step):
        value = getattr(step, field.name)
        if isinstance(value, str):
            changes[field.name] = _TEMPLATE.sub(give, value)
        elif isinstance(value, tuple):
            changes[field.name] = tuple(_TEMPLATE.sub(give, item) for item in value)
    return msgspec.structs.replace(step, **changes)


def read_field(answer: Answer, field: str) -> str:
    """What a later step may take from an answer; "" where it has none."""
    target = answer.insight.target if answer.insight else None
    wanted = _TOP.get(answer.command, ())
    places = [
        finding
        for section in _find_sections(answer)
        if not wanted or section.kind in wanted
        for finding in section.findings
        if finding.location
    ]
    top = places[0] if places else None
    where = top.location if top and top.location else target.location if target else None
    match field:
        case "found":
            return str(answer.found)
        case "target":
            return f"{target.location.path}:{target.name}" if target else ""
        case "name":
            details = top.details if top else None
            named = next((name for key in _NAMES if (name := getattr(details, key, ""))), "")
            return named or (target.name if target else "")
        case "path":
            return where.path if where else ""
        case "line":
            return str(where.start_line) if where else ""
        case _:
            return f"{where.path}:{where.start_line}:{where.start_col}" if where else ""


# Where the results stand in answers that begin with something else; how many sections there are depends on the budget.
_TOP = {"calls": ("call_sites",), "impact": ("dependents", "tests")}
_NAMES = ("qualified_name", "name", "caller", "scope", "subject")


def _merge(
    plan: Plan, outcomes: list[Outcome], command: str, measure: str, place: tuple[str, ...], target: Target | None
) -> Answer:
    rows = [_summarize(outcome) for outcome in outcomes]
    sections = [Section("Steps", "steps", len(rows), tuple(rows))]
    events: list[Degraded] = []
    for outcome in outcomes:
        step, answer = outcome.step, outcome.answer
        if outcome.status != "done":
            severity = "error" if outcome.status == "failed" else "warning"
            message = f"{step.id} ({type_of(step)}) {outcome.status}: {outcome.reason}"
            events.append(Degraded("plan", severity, outcome.status, message, step.id))
        if answer is not None:
            sections += [
                msgspec.structs.replace(section, title=f"{step.id}: {section.title}")
                for section in _find_sections(answer)
            ]
            events += [
                msgspec.structs.replace(event, stage=f"{step.id}.{event.stage}", message=f"{step.id}: {event.message}")
                for event in answer.degraded
            ]
    answers = [(outcome.step.id, outcome.answer) for outcome in outcomes if outcome.answer is not None]
    follow = [
        Finding("follow_up", command_of(o.step, place)) for o in outcomes if o.answer is not None and o.answer.found
    ]
    sections += [Section("In Full", "followups", 0, tuple(follow), aside=True)] if follow else []
    states = {status: sum(1 for o in outcomes if o.status == status) for status in ("done", "skipped", "failed")}
    fruitful = sum(1 for _, answer in answers if answer.found)
    slices = {
        "done": Slice(states["done"], "steps done"),
        "skipped": Slice(states["skipped"], "skipped"),
        "failed": Slice(states["failed"], "failed"),
    }
    shown = sum(len(section.findings) for section in sections[1:])
    budget = Budget(plan.budget, count_tokens(sections, measure) + 100, shown, shown)
    return Answer(
        SCHEMA_VERSION,
        command,
        Run(
            generation=max((answer.run.generation for _, answer in answers), default=0),
            stages_ms={name: answer.run.elapsed_ms for name, answer in answers},
        ),
        {
            "query": plan.title or f"{len(outcomes)} steps",
            **states,
            "steps": [
                {
                    "id": o.step.id,
                    "type": type_of(o.step),
                    "status": o.status,
                    **({"reason": o.reason} if o.reason else {}),
                    **({"found": o.answer.found, "summary": o.answer.summary} if o.answer is not None else {}),
                }
                for o in outcomes
            ],
        },
        found=fruitful,
        insight=Insight(target, slices, budget=budget),
        key_findings=tuple(
            row for row, o in zip(rows, outcomes, strict=True) if o.answer is not None and o.answer.found
        ),
        sections=tuple(sections),
        artifacts=tuple(ref for _, answer in answers for ref in answer.artifacts),
        degraded=tuple({(event.category, event.message): event for event in events}.values()),
        truncated=tuple(
            msgspec.structs.replace(cut, scope=f"{name}.{cut.scope}")
            for name, answer in answers
            for cut in answer.truncated
        ),
    )


def _find_sections(answer: Answer) -> list[Section]:
    return [section for section in answer.sections if section.kind not in _ASIDE and section.findings]


def _summarize(outcome: Outcome) -> Finding:
    """What came of a step, in one line of true counts."""
    step, answer = outcome.step, outcome.answer
    kind, asked = type_of(step), get_subject(step)
    head = (step.id if step.id == kind else f"{step.id} ({kind})") + (f" {asked}" if asked else "")
    if answer is None:
        return Finding("step", f"{head}: {outcome.status}: {outcome.reason}")
    slices = [f"{part.total:,} {part.what}" for part in answer.insight.neighborhood.values() if part.total] if (
        answer.insight) else []  # fmt: skip
    parts = slices[:6] or [f"{answer.found:,} found" if answer.found else "nothing found"]
    risk = answer.insight.risk if answer.insight else None
    parts += [f"risk {risk.level} ({', '.join(risk.drivers)})"] if risk and risk.drivers else []
    return Finding("step", f"{head}: {'; '.join(parts)}", details=CountDetails(answer.found), count=answer.found)


def _texts(step: Step) -> Iterator[tuple[str, str]]:
    for field in msgspec.structs.fields(step):
        value = getattr(step, field.name)
        for text in (value,) if isinstance(value, str) else value if isinstance(value, tuple) else ():
            yield field.encode_name, text


def _check_references(text: str, where: str, known: list[str]) -> None:
    for match in _TEMPLATE.finditer(text):
        place = f"{where}, character {match.start() + 1}"
        found = _REFERENCE.match(match[1])
        if found is None:
            raise UsageError(f"{place}: {match[0]} names no step", hint=f"write {{{{ID.FIELD}}}}: {', '.join(FIELDS)}")
        if found[1] not in known:
            raise UsageError(f"{place}: no earlier step is {found[1]!r}", hint=_suggest(found[1], known))
        if found[2] not in FIELDS:
            raise UsageError(f"{place}: a step has no {found[2]!r}", hint=_suggest(found[2], FIELDS))


def _explain(message: str, data: Any, name: str, source: str) -> UsageError:
    """msgspec's words with the place in the file and the nearest key."""
    found = _AT.match(message)
    what, where = (found["what"], found["where"]) if found else (message, "")
    at = _STEP_AT.match(where)
    number = int(at[1]) if at else -1
    step = data["steps"][number] if at else {}
    kind = _find_type(step)
    names = find_step_names()
    known = [field.encode_name for field in msgspec.structs.fields(find_step(kind) if kind in names else Plan)]
    place = f"{name}{', ' + where.lstrip('.') if where else ''}{_line_of(source, number)}"
    word = next((a or b for a, b in _QUOTED.findall(what)), "")
    if "unknown field" in what:
        return UsageError(f"{place}: there is no key {word!r}", hint=_suggest(word, [*known, "type"] if at else known))
    if "missing required field" in what:
        keys = f"one of {', '.join(names)}" if word == "type" else f"{kind if at else 'a plan'} needs it"
        return UsageError(f"{place}: the key {word!r} is missing", hint=keys)
    if where.endswith(".type") and not what.startswith("Expected"):
        return UsageError(f"{place}: there is no step {word!r}", hint=_suggest(word, names))
    return UsageError(f"{place}: {what[:1].lower()}{what[1:]}", hint="see docs/run.md")


def _suggest(word: str, known: Any) -> str:
    names = list(known)
    close = get_close_matches(word, names, n=1)
    listed = f"there are {', '.join(names)}" if names else "the first step can refer to none"
    return (f"did you mean {close[0]!r}? " if close else "") + listed


def _line_of(source: str, number: int) -> str:
    """Where a step begins in the text of a plan."""
    starts = [match.start() for match in re.finditer(r"(?m)^[ \t]*\[\[[ \t]*steps[ \t]*\]\]", source)]
    return f" (line {source.count(chr(10), 0, starts[number]) + 1})" if 0 <= number < len(starts) else ""
