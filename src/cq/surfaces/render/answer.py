"""An answer as text. Source lines stand in indented blocks, which Markdown shows as they are."""

from __future__ import annotations

from cq.answers.page import SMALL
from cq.model.answer import (
    READS,
    Answer,
    CallDetails,
    DiagnosticDetails,
    EffectDetails,
    ExceptionDetails,
    FactDetails,
    Finding,
    HoverDetails,
    Insight,
    MatchDetails,
    NodeDetails,
    ReferenceDetails,
    RiskDetails,
    Section,
    ServerDetails,
    SourceDetails,
)
from cq.questions.find.layout import show_query
from cq.surfaces.render import one_line, render_block, render_heading, show_path
from cq.surfaces.render.terminal import highlight, show_place

_INDENT = "    "
_SHOWN_EVENTS = 6


def render_answer(answer: Answer) -> str:
    """At most about a hundred lines for a default question."""
    lines: list[str] = []
    if answer.insight is not None:
        small = answer.insight.budget is not None and 0 < answer.insight.budget.tokens < SMALL
        lines += [] if small else [render_heading("Insight Card"), *_render_card(answer, answer.insight), ""]
    else:
        lines += [*render_nothing(answer), ""]
    for section in answer.sections:
        lines += [*render_section(section), ""]
    lines += render_notes(answer)
    return "\n".join(lines).rstrip("\n") + "\n"


def render_card(answer: Answer) -> list[str]:
    """The card and what was left out or not done, without headings."""
    card = _render_card(answer, answer.insight) if answer.insight else render_nothing(answer)
    return [*card, *render_notes(answer)[1:]]


def render_plain(answer: Answer) -> str:
    """`path:line:col: text`, one per line, for pipes and editors."""
    return "".join(
        f"{show_path(where.path)}:{where.start_line}:{where.start_col}: {finding.message}\n"
        for section in answer.sections
        for finding in section.findings
        if (where := finding.location) is not None and isinstance(finding.details, _SITES)
    )


def find_rows(answer: Answer) -> list[Finding]:
    """The findings themselves, without counts and commands: the rows of jsonl."""
    return [
        finding for section in answer.sections for finding in section.findings if isinstance(finding.details, _SITES)
    ]


def render_source(answer: Answer) -> str:
    """Nothing but the source, or the lines of the outline."""
    return "".join(
        finding.details.source if isinstance(finding.details, SourceDetails) else f"{finding.message}\n"
        for section in answer.sections
        for finding in section.findings
    )


_SITES = (
    MatchDetails, CallDetails, NodeDetails, SourceDetails, HoverDetails, ReferenceDetails, DiagnosticDetails,
    ExceptionDetails, EffectDetails, FactDetails, ServerDetails, RiskDetails,
)  # fmt: skip


def _render_card(answer: Answer, insight: Insight) -> list[str]:
    rows: list[str] = []
    target = insight.target
    if target is not None:
        of = f" ({target.index} of {target.of}: {target.reason})" if target.of > 1 else ""
        rows.append(f"target      {target.kind} {target.name}{of}")
        where = target.location
        place = f"{show_path(where.path)}:{where.start_line}:{where.start_col}"
        rows.append(f"            {place}: {target.signature}")
        if target.others:
            more = f" and {target.of - 1 - len(target.others)} more" if target.of > 1 + len(target.others) else ""
            named = (f"{show_path(other.path)}:{other.line} {other.name}" for other in target.others)
            rows.append(f"others      {', '.join(named)}{more}")
    if insight.neighborhood:
        parts = [f"{part.total} {part.what}" for part in insight.neighborhood.values() if part.total]
        rows += [f"around it   {'; '.join(parts)}"] if parts else []
    if insight.risk is not None:
        drivers = f": {'; '.join(insight.risk.drivers)}" if insight.risk.drivers else ""
        rows.append(f"risk        {insight.risk.level}{drivers}")
    if insight.confidence is not None:
        said = insight.confidence
        rows.append(f"confidence  {said.bucket}: {said.evidence}, {said.score:g}")
    state = insight.degradation
    rows.append(f"done        scan {state.scan}, scope {state.scope}, enrichment {state.enrichment}, lsp {state.lsp}")
    if insight.budget is not None:
        rows.append(f"shown       {_render_budget(answer)}")
    return [_INDENT + one_line(row) for row in rows]


def _render_budget(answer: Answer) -> str:
    budget = answer.insight.budget if answer.insight else None
    if budget is None:
        return ""
    page = f", page {budget.page} of {budget.pages}" if budget.pages > 1 else ""
    limit = f" of {budget.tokens:,}" if budget.tokens else ""
    found = f" listed, {answer.found:,} found" if answer.found > budget.total else ""
    cost = f"about {budget.used:,}{limit} tokens; {answer.run.elapsed_ms:,.0f} ms"
    return f"{budget.shown} of {budget.total:,}{found}{page}; {cost}"


def render_nothing(answer: Answer) -> list[str]:
    query = show_query(answer.summary.get("query", ""))
    how = " then ".join(answer.summary.get("mode_chain", ()))
    if any(event.category == "timeout" for event in answer.degraded):
        return [f"stopped before anything was found: {query!r}"]
    rows = [f"nothing found: {query!r}" + (f" as {how}" if how else "")]
    if answer.summary.get("total"):
        rows.append(f"{answer.summary['total']:,} mentions of other kinds or languages are left out")
    if answer.summary.get("not_searched"):
        skipped = ", ".join(f"{count:,} {reason}" for reason, count in answer.summary["not_searched"].items())
        rows.append(f"files that are not indexed: {skipped}")
    if answer.suggestions:
        rows.append(f"near names: {', '.join(answer.suggestions)}")
    return rows


def render_section(section: Section) -> list[str]:
    shown = sum(1 for finding in section.findings if isinstance(finding.details, _SITES))
    shown = shown or sum(1 for finding in section.findings if finding.stable_id)  # nodes of a neighborhood
    title = section.title
    if section.total:
        title += f" ({shown} of {section.total:,})" if shown else f" ({section.total:,})"
    lines = [render_heading(title) + (f" {section.note}" if section.note else "")]
    for finding in section.findings:
        lines += render_finding(finding)
    return lines


def render_finding(finding: Finding) -> list[str]:
    where, details = finding.location, finding.details
    if where is None:
        return [_INDENT + show_path(one_line(finding.message))]
    place = show_place(where.path, where.start_line, where.start_col)
    text = finding.message
    if isinstance(details, CallDetails):
        caller = f" ({details.caller})" if details.caller else ""
        # How the index itself came to know is in JSON; that someone else said so is worth a word.
        by = "".join(f" by {source}" for source in details.evidence if source.startswith(("lsp.", "scip")))
        what = f" {details.call_kind}" if details.call_kind in READS else ""
        rows = [f"{_INDENT}{place} {details.status}{what}{by}{caller}: {text.strip()}"]
        for step in details.witness:
            at = show_place(step.location.path, step.location.start_line, step.location.start_col)
            rows.append(f"{_INDENT}  {at} {one_line(step.says)}")
        return [*rows, f"{_INDENT}  {details.no_witness}"] if details.no_witness else rows
    if isinstance(details, RiskDetails):
        scope = f" ({details.scope})" if details.scope else ""
        rows = [f"{_INDENT}{place}{scope} {one_line(text)}"]
        for step in details.witness if finding.category == "steps" else ():
            at = show_place(step.location.path, step.location.start_line, step.location.start_col)
            rows.append(f"{_INDENT}  {at} {one_line(step.says)}")
        return rows + ([f"{_INDENT}  fix: {details.fix}"] if finding.category == "steps" and details.fix else [])
    if isinstance(details, ReferenceDetails):
        scope = f" ({details.scope})" if details.scope else ""
        return [f"{_INDENT}{place} {details.status}, {' '.join(details.sources)}{scope}: {text.strip()}"]
    if isinstance(details, DiagnosticDetails):
        code = f" {details.code}" if details.code else ""
        return [f"{_INDENT}{place} {details.severity}, {details.source}{code}: {one_line(text)}"]
    if isinstance(details, HoverDetails):
        return _render_contract(place, details, text)
    if isinstance(details, ServerDetails) and details.text:
        rows = [f"{place}: {one_line(text)}", *(f"  | {line}".rstrip() for line in details.text.splitlines())]
        return [_INDENT + row for row in rows]
    if isinstance(details, SourceDetails):
        return [*_render_source(place, where.end_line, details)]
    if not isinstance(details, MatchDetails):
        return [f"{_INDENT}{place}: {one_line(text)}"]
    scope = f" ({details.scope})" if details.scope else ""
    kind = "" if finding.category in _TITLED else f" {finding.category}"
    head = f"{_INDENT}{place}{kind}{scope}"
    if not details.context:
        return [f"{head}: {text.strip()}"]
    numbered = enumerate(details.context, details.context_line)
    rows = [f"{_INDENT}  {number:>5} {line}".rstrip() for number, line in numbered]
    return [head, *rows]


def _render_contract(place: str, details: HoverDetails, text: str) -> list[str]:
    """The contract as its source wrote it, then the documentation, each line by itself."""
    rows = [f"{place} {details.symbol_kind} {details.name}, by {details.source}".replace("  ", " ")]
    rows += [f"  {line}" for line in text.splitlines()]
    rows += [f"  returns {details.returns}"] if details.returns and details.returns not in text else []
    rows += [f"  | {line}".rstrip() for line in details.doc.strip().splitlines()]
    return [_INDENT + row for row in rows]


def _render_source(place: str, last: int, details: SourceDetails) -> list[str]:
    source = highlight("\n".join(details.source.splitlines()), details.language)
    rows = [f"{place} to line {last}", render_block(source.split("\n"), details.language)]
    rows += [f"read on: cq read {details.more}"] if details.more else []
    return rows + [f"also: {other.kind} {other.name} {other.path}:{other.line}" for other in details.others]


_TITLED = frozenset({"definition", "callsite", "import", "from_import"})


def render_notes(answer: Answer) -> list[str]:
    """What was left out or not done, and where the rest is."""
    rows = [f"{event.severity}: {event.message}" for event in answer.degraded[:_SHOWN_EVENTS]]
    more = len(answer.degraded) - _SHOWN_EVENTS
    rows += [f"{more} more notes in --format json"] if more > 0 else []
    rows += [
        f"capped: {cut.cap} at {cut.limit:,} of {cut.observed:,}"
        + ("; there is no room for what lies farther" if cut.cap == "depth" else f"; {cut.omitted:,} counted only")
        for cut in answer.truncated
        # A preview says itself of how many it is.
        if cut.scope.rpartition(".")[2] != "answer" and cut.cap != "preview"
    ]
    rows += [f"more: cq artifact get {artifact.id}" for artifact in answer.artifacts if artifact.kind in _WORTH_A_LINE]
    return [render_heading("Notes"), *(_INDENT + one_line(row) for row in rows)] if rows else []


_WORTH_A_LINE = frozenset({"cross_language"})
