"""An answer as text: the answer first, every path once."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from cq.answers.words import count_first
from cq.model.answer import (
    READS,
    Answer,
    ApiDetails,
    BlameDetails,
    CallDetails,
    ChangeDetails,
    CountDetails,
    DeadDetails,
    DiagnosticDetails,
    EffectDetails,
    ExceptionDetails,
    FactDetails,
    Finding,
    HoverDetails,
    Insight,
    MatchDetails,
    NamesDetails,
    NodeDetails,
    PackDetails,
    ReferenceDetails,
    RiskDetails,
    RouteDetails,
    Section,
    ServerDetails,
    SourceDetails,
    TestDetails,
    ViolationDetails,
)
from cq.questions.find.layout import show_query
from cq.surfaces.render import one_line, render_block, render_heading, show_path
from cq.surfaces.render.read import render_rows
from cq.surfaces.render.terminal import fit_width, highlight, highlight_hit, show_place

_INDENT = "  "
_SHOWN_EVENTS = 6


def render_answer(answer: Answer, *, card: bool = False) -> str:
    """The answer first: what it is about in a line or two, then the findings, each file once. What is known beside it
    follows with `card`; what was left out or not done always."""
    return join_blocks(
        [block for part in answer.parts for block in render_part(part, card=card)]
        + ([] if answer.parts == (answer,) else [render_notes(answer)])
    )


def render_part(answer: Answer, *, card: bool = False) -> list[list[str]]:
    """What one target has for an answer."""
    return [render_head(answer), *render_body(answer, card=card), *render_end(answer, card=card)]


def join_blocks(blocks: Iterable[list[str]]) -> str:
    """With a blank line between them."""
    return "\n\n".join("\n".join(fit_width(block)) for block in blocks if block) + "\n"


def render_head(answer: Answer) -> list[str]:
    """What is asked about, and the answer in a sentence."""
    insight = answer.insight
    if insight is None:
        return render_nothing(answer)
    rows: list[str] = []
    target = insight.target
    if target is not None and not any(
        section.kind in _TELLS_TARGET and not section.aside for section in answer.sections
    ):
        where = target.location
        place = show_place(where.path, where.start_line, where.start_col)
        rows.append(f"{target.kind} {one_line(target.name)} {place}")
    if target is not None and target.of > 1 and target.others:
        rest = target.of - 1 - len(target.others)
        more = [f"{rest} more"] if rest > 0 else []
        others = ", ".join([*(f"{show_path(o.path)}:{o.line} {one_line(o.name)}" for o in target.others), *more])
        rows.append(f"{target.index} of {target.of}, {target.reason}; others: {others}")
    counts = [count_first(part.total, part.what) for part in insight.neighborhood.values() if part.total]
    counts = counts or [count_first(part.total, part.what) for part in [*insight.neighborhood.values()][:1]]
    if said := insight.headline or "; ".join(counts):
        return [*rows, one_line(said)]
    return rows if answer.found else [*rows, *render_nothing(answer)]


def render_body(answer: Answer, *, card: bool = False) -> list[list[str]]:
    """The sections; one that holds all there is needs no title."""
    sections = [section for section in answer.sections if card or not section.aside]
    lone = len(sections) == 1 and sections[0].total <= count_shown(sections[0]) and not sections[0].note
    return [render_section(section, titled=not lone) for section in sections]


def render_end(answer: Answer, *, card: bool = False) -> list[list[str]]:
    """The card where it is asked for; what was left out or not done, and where the rest is."""
    blocks = [[render_heading("Card"), *_render_card(answer, answer.insight)]] if card and answer.insight else []
    return [*blocks, render_notes(answer, card=card)]


def render_plain(answer: Answer) -> str:
    """`path:line:col: text`, one per line, for pipes and editors; counts as they are."""
    return "".join(
        f"{show_path(where.path)}:{where.start_line}:{where.start_col}: {finding.message}\n"
        if (where := finding.location) is not None
        else f"{finding.message}\n"
        for finding in find_rows(answer)
        if finding.location is not None or isinstance(finding.details, CountDetails)
    )


def render_arguments(answer: Answer, runner: str) -> str:
    """What a program that runs tests is given to run these, a word a line."""
    tests = [
        finding.details
        for section in answer.sections
        for finding in section.findings
        if isinstance(finding.details, TestDetails)
    ]
    own = "jest" if runner == "vitest" else runner  # the same files, for either
    words = [test.argument for test in tests if test.runner == own]
    if own == "jest" and words:
        files = [
            finding.location.path
            for section in answer.sections
            for finding in section.findings
            if isinstance(finding.details, TestDetails) and finding.details.runner == own and finding.location
        ]
        # `%s` in a title stands for what a table of cases says.
        escaped = [re.sub(r"([.*+?^$()|{}\[\]\\])", r"\\\1", title) for title in dict.fromkeys(words)]
        titles = "|".join(re.sub(r"%[sdifjop#]|\\\$[A-Za-z_]\w*", ".*", title) for title in escaped)
        words = [*files, "-t", f"^(?:{titles})$"]
    return "".join(f"{word}\n" for word in dict.fromkeys(words))


def find_rows(answer: Answer) -> list[Finding]:
    """The findings themselves, without counts and commands: the rows of jsonl."""
    return [
        finding
        for part in answer.parts
        for section in part.sections
        for finding in section.findings
        if isinstance(finding.details, _SITES) or section.kind == "counts"
    ]


def render_source(answer: Answer) -> str:
    """Nothing but the source, or the lines of the outline."""
    return "".join(
        finding.details.source if isinstance(finding.details, SourceDetails) else f"{finding.message}\n"
        for part in answer.parts
        for section in part.sections
        for finding in section.findings
    )


_SITES = (
    MatchDetails, CallDetails, NodeDetails, SourceDetails, HoverDetails, ReferenceDetails, DiagnosticDetails,
    ExceptionDetails, EffectDetails, FactDetails, ServerDetails, TestDetails, RiskDetails, RouteDetails, ChangeDetails,
    ViolationDetails, ApiDetails, DeadDetails, PackDetails,
)  # fmt: skip


def _render_card(answer: Answer, insight: Insight) -> list[str]:
    rows: list[str] = []
    if insight.target is not None and insight.target.signature:
        rows.append(f"signature   {insight.target.signature}")
    if insight.neighborhood:
        parts = [count_first(part.total, part.what) for part in insight.neighborhood.values() if part.total]
        rows += [f"around it   {'; '.join(parts)}"] if parts else []
    if insight.risk is not None:
        drivers = f": {'; '.join(insight.risk.drivers)}" if insight.risk.drivers else ""
        rows.append(f"risk        {insight.risk.level}{drivers}")
    if insight.confidence is not None:
        said = insight.confidence
        rows.append(f"confidence  {said.bucket}: {said.evidence}, {said.score:g}")
    state = insight.degradation
    done = {"scan": state.scan, "scope": state.scope, "facts": state.enrichment, "language servers": state.lsp}
    lacking = ", ".join(f"{stage} {how}" for stage, how in done.items() if how != "ok")
    rows += [f"not done    {lacking}"] if lacking else []
    budget = insight.budget
    if budget is not None:
        limit = f" of {budget.tokens:,}" if budget.tokens else ""
        rows.append(f"cost        about {budget.used:,}{limit} tokens; {answer.run.elapsed_ms:,.0f} ms")
    return [_INDENT + one_line(row) for row in rows]


def render_nothing(answer: Answer) -> list[str]:
    query = show_query(answer.summary.get("query", ""))
    how = " or ".join(_MODES.get(mode, str(mode)) for mode in answer.summary.get("mode_chain", ()))
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


_MODES = {"identifier": "a name", "literal": "text", "regex": "a regular expression"}


def count_shown(section: Section) -> int:
    """The findings that are places, without counts and commands."""
    shown = sum(1 for finding in section.findings if isinstance(finding.details, _SITES))
    return shown or sum(1 for finding in section.findings if finding.stable_id)  # nodes of a neighborhood


def render_section(section: Section, *, titled: bool = True) -> list[str]:
    """A path stands once, whatever is found in its file; what has no place comes first."""
    shown, notes = count_shown(section), [section.note] if section.note else []
    status = _find_status(section)
    link = _find_link(section)
    link = link if shown > 1 or link in _TITLES_SAY else ""
    notes += [status] if status == "possible" and shown > 1 else []
    notes += [link] if link and link not in _TITLES_SAY else []
    lines: list[str] = []
    if titled or notes:
        count = f" ({f'{shown} of ' if 0 < shown < section.total else ''}{section.total:,})" if section.total else ""
        said = f" {show_path(one_line('; '.join(notes)))}" if notes else ""
        lines.append(render_heading(section.title + count) + said)
    files: dict[str, list[Finding]] = {}
    is_ordered = section.kind in _ORDERED
    for number, finding in enumerate(section.findings):
        if finding.location is None and not is_ordered:
            lines.append(_INDENT + show_path(one_line(finding.message)))
        else:
            key = f"{number}" if is_ordered or finding.location is None else finding.location.path
            files.setdefault(key, []).append(finding)
    for findings in files.values():
        rows = findings if not link else [_leave_out(finding, f" ({link})") for finding in findings]
        lines += _render_file(sorted(rows, key=_find_line), status)
    return lines


# The title of their section says so.
_TITLES_SAY = frozenset({"inherits", "overrides"})


def _find_link(section: Section) -> str:
    """What links the definitions of a section to its target, where it is the same of all: said once."""
    edges = {d.edge for f in section.findings if isinstance(d := f.details, NodeDetails)}
    ends = {finding.message.rpartition(" (")[2] for finding in section.findings}
    if len(edges) != 1 or len(ends) != 1:
        return ""
    link = ends.pop().removesuffix(")")
    return link if link.partition(",")[0] in edges else ""


def _leave_out(finding: Finding, end: str) -> Finding:
    return msgspec.structs.replace(finding, message=finding.message.removesuffix(end))


def _find_line(finding: Finding) -> tuple[int, int]:
    where = finding.location
    return (where.start_line, where.start_col) if where else (0, 0)


# Sections that tell one thing after the other, and those that say themselves what the target is.
_ORDERED = frozenset({"path", "cycle", "steps", "target_tldr", "rank"})
_TELLS_TARGET = frozenset({"source", "contracts", "definitions"})


def _find_status(section: Section) -> str:
    """What is said once if it holds of all calls or references of a section."""
    statuses = {d.status for f in section.findings if isinstance(d := f.details, (CallDetails, ReferenceDetails))}
    return statuses.pop() if len(statuses) == 1 else ""


def _render_file(findings: list[Finding], status: str) -> list[str]:
    """What is found in one file: on one line where it is one, else below its path."""
    first = findings[0]
    if first.location is None:
        return [_INDENT + show_path(one_line(first.message))]
    path = first.location.path
    if len(findings) == 1:
        return render_finding(first, show_place(path, first.location.start_line, first.location.start_col), "", status)
    rows = [show_place(path)]
    for finding in findings:
        if finding.location is not None:
            line, col = finding.location.start_line, finding.location.start_col
            rows += render_finding(finding, show_place(path, line, col, named=False), _INDENT, status)
    return rows


def render_finding(finding: Finding, place: str, indent: str, status: str = "") -> list[str]:
    """`place` as it is to be shown; `status` is what need not be said of each."""
    where, details, text = finding.location, finding.details, finding.message
    if isinstance(details, CallDetails):
        # How the index itself came to know is in JSON; that someone else said so is worth a word.
        by = "".join(f" by {source}" for source in details.evidence if source.startswith(("lsp.", "scip")))
        doubt = f" {details.status}" if details.status not in ("certain", status) else ""
        what = f" {details.call_kind}" if details.call_kind in READS else ""
        caller = f" ({details.caller})" if details.caller else ""
        rows = [f"{indent}{place}{doubt}{what}{by}{caller}: {show_hit(finding, details.language)}"]
        for step in details.witness:
            at = show_place(step.location.path, step.location.start_line, step.location.start_col)
            rows.append(f"{indent}{_INDENT}{at} {one_line(step.says)}")
        return [*rows, f"{indent}{_INDENT}{details.no_witness}"] if details.no_witness else rows
    if isinstance(details, RiskDetails):
        scope = f" ({details.scope})" if details.scope else ""
        rows = [f"{indent}{place}{scope}: {one_line(text)}"]
        for step in details.witness if finding.category == "steps" else ():
            at = show_place(step.location.path, step.location.start_line, step.location.start_col)
            rows.append(f"{indent}{_INDENT}{at} {one_line(step.says)}")
        return rows + ([f"{indent}{_INDENT}fix: {details.fix}"] if finding.category == "steps" else [])
    if isinstance(details, ReferenceDetails):
        doubt = f" {details.status}" if details.status not in ("certain", status) else ""
        scope = f" ({details.scope})" if details.scope else ""
        return [f"{indent}{place}{doubt}{scope}: {show_hit(finding, details.language)}"]
    if isinstance(details, DiagnosticDetails):
        code = f" {details.code}" if details.code else ""
        return [f"{indent}{place} {details.severity}, {details.source}{code}: {one_line(text)}"]
    if isinstance(details, HoverDetails):
        return _render_contract(indent + place, details, text)
    if isinstance(details, ServerDetails) and details.text:
        rows = [f"{place}: {one_line(text)}", *(f"{_INDENT}| {line}".rstrip() for line in details.text.splitlines())]
        return [indent + row for row in rows]
    if isinstance(details, PackDetails):
        changed = " changed," if details.is_changed else ""
        head = f"{indent}{place} {details.relation} {one_line(details.name)}:{changed} {one_line(details.why)}"
        if not details.language:
            return [head, f"{indent}{_INDENT}{one_line(details.source)}"]
        more = [f"more: {details.more}"] if details.why.endswith(("in short", "its beginning")) else []
        return [head, render_block(highlight(details.source, details.language).split("\n"), details.language), *more]
    if isinstance(details, SourceDetails):
        return _render_source(place, where.end_line if where else 0, details)
    if isinstance(details, NamesDetails | BlameDetails):
        return [f"{indent}{place}: {text}", *(f"{indent}{_INDENT}{row}" for row in render_rows(details))]
    if not isinstance(details, MatchDetails):
        return [f"{indent}{place}: {one_line(text)}"]
    scope = f" ({details.scope})" if details.scope else ""
    kind = "" if finding.category in _TITLED else f" {finding.category}"
    head = f"{indent}{place}{kind}{scope}"
    if not details.context:
        return [f"{head}: {show_hit(finding, details.language)}"]
    numbered = enumerate(details.context, details.context_line)
    rows = [f"{indent}{_INDENT}{number:>5} {line}".rstrip() for number, line in numbered]
    return [head, *rows]


def show_hit(finding: Finding, language: str) -> str:
    """The line it stands on; on a terminal coloured, with the hit marked."""
    line = finding.message
    text = line.strip()
    if finding.location is None:
        return text
    start = finding.location.start_col - 1 - (len(line) - len(line.lstrip()))
    match = finding.details.match if isinstance(finding.details, MatchDetails) else ""
    return highlight_hit(text, language, start, len(match))


def _render_contract(place: str, details: HoverDetails, text: str) -> list[str]:
    """The contract as its source wrote it, then the documentation, each line by itself."""
    rows = [f"{place} {details.symbol_kind} {details.name}, by {details.source}".replace("  ", " ")]
    rows += [f"  {line}" for line in text.splitlines()]
    rows += [f"  returns {details.returns}"] if details.returns and details.returns not in text else []
    rows += [f"  | {line}".rstrip() for line in details.doc.strip().splitlines()]
    return [rows[0], *(_INDENT + row for row in rows[1:])]


def _render_source(place: str, last: int, details: SourceDetails) -> list[str]:
    source = highlight("\n".join(details.source.splitlines()), details.language)
    name = f" {one_line(details.name)}" if details.name else ""
    rows = [f"{place} to line {last}{name}", render_block(source.split("\n"), details.language)]
    return [*rows, f"read on: cq read {details.more}"] if details.more else rows


_TITLED = frozenset({"definition", "callsite", "import", "from_import"})


def render_notes(answer: Answer, *, card: bool = False) -> list[str]:
    """What was left out or not done, and where the rest is."""
    rows = [f"{event.severity}: {event.message}" for event in answer.degraded[:_SHOWN_EVENTS]]
    more = len(answer.degraded) - _SHOWN_EVENTS
    rows += [f"{more} more notes in --format json"] if more > 0 else []
    budget = answer.insight.budget if answer.insight else None
    if budget is not None and budget.pages > 1:
        found = f" ({answer.found:,} found)" if answer.found > budget.total else ""
        page = f", page {budget.page} of {budget.pages}" if budget.page > 1 else ""
        rest = f"; --page {budget.page + 1} shows more" if budget.page < budget.pages else ""
        rows.append(f"{budget.shown:,} of {budget.total:,} shown{found}{page}{rest}")
    rows += [
        f"capped: {cut.cap} at {cut.limit:,} of {cut.observed:,}"
        + ("; there is no room for what lies farther" if cut.cap == "depth" else f"; {cut.omitted:,} counted only")
        for cut in answer.truncated
        # A preview says itself of how many it is.
        if cut.scope.rpartition(".")[2] != "answer" and cut.cap != "preview"
    ]
    rows += [f"more: cq artifact get {artifact.id}" for artifact in answer.artifacts if artifact.kind in _WORTH_A_LINE]
    return list(map(one_line, rows))


_WORTH_A_LINE = frozenset({"cross_language"})
