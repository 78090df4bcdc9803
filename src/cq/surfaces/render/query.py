"""The answer of `cq q`: each match with its place, text, captures and scope; then what was asked for around it."""

from __future__ import annotations

from collections import Counter

from cq.model.answer import Answer, Finding, LinkDetails, QueryDetails, Section
from cq.model.errors import UsageError
from cq.surfaces.render import one_line, render_block, render_heading, render_jsonl
from cq.surfaces.render.picture import draw_pairs

FORMATS = ("md", "json", "jsonl", "plain", "mermaid", "dot")


def render_query(answer: Answer, form: str) -> str:
    if form == "jsonl":
        rows = [
            {"section": section.kind, "finding": finding} for section in answer.sections for finding in section.findings
        ]
        return render_jsonl(rows)
    if form == "plain":
        return "".join(f"{_plain(finding)}\n" for finding in _matches(answer))
    if form in ("mermaid", "dot"):
        links = [d for s in answer.sections for f in s.findings if isinstance(d := f.details, LinkDetails)]
        if not any(section.kind.startswith("expand.") for section in answer.sections):
            raise UsageError(f"--format {form} draws what expand= finds", hint="add expand=callers or expand=callees")
        return _draw(links, form)
    return _page(answer)


def _matches(answer: Answer) -> tuple[Finding, ...]:
    return next((section.findings for section in answer.sections if section.kind == "matches"), ())


def _plain(finding: Finding) -> str:
    place = finding.location
    text = finding.details.match if isinstance(finding.details, QueryDetails) else finding.message
    where = f"{place.path}:{place.start_line}:{place.start_col}: " if place else ""
    return where + text.partition("\n")[0]


def _page(answer: Answer) -> str:
    budget = answer.insight.budget if answer.insight else None
    found, files = answer.found, answer.summary.get("files", 0)
    title = (
        "Nothing found" if not found else f"{found:,} {_plural(found, 'match')} in {files:,} {_plural(files, 'file')}"
    )
    parts = [render_heading(title, 1)]
    lines = [line for finding in _matches(answer) for line in _lines(finding)]
    if lines:
        parts.append(render_block(lines))
    if budget and budget.pages > 1:
        more = f"; `--page {budget.page + 1}` has more, `--all` everything" if budget.page < budget.pages else ""
        parts.append(f"{budget.shown:,} of {budget.total:,} shown, page {budget.page} of {budget.pages}{more}.")
    for section in answer.sections:
        if section.kind.startswith(("field.", "expand.")) or section.kind == "explain":
            parts += _section(section)
    notes = [
        f"{cut.omitted:,} more {cut.scope}, left out by {cut.cap}{cut.limit if cut.cap.endswith('=') else ''}."
        for cut in answer.truncated
    ]
    skipped = [event.message for event in answer.degraded if event.category == "language_skipped"]
    notes += [one_line(event.message) + "." for event in answer.degraded if event.category != "language_skipped"]
    if skipped:
        notes.append(
            "Left out: " + "; ".join(one_line(message.replace(" is left out", "")) for message in skipped) + "."
        )
    if notes:
        parts.append("\n".join(notes))
    return "\n\n".join(parts) + "\n"


def _lines(finding: Finding) -> list[str]:
    place, details = finding.location, finding.details
    if place is None or not isinstance(details, QueryDetails):
        return [one_line(finding.message)]
    name = f" {details.qualified_name}" if details.qualified_name else ""
    scope = f" in {details.scope}" if details.scope and not details.qualified_name else ""
    more = "".join(f" {key}={value}" for key, value in details.attributes.items())
    head = f"{place.path}:{place.start_line}:{place.start_col} {details.node}{name}{scope}{more}"
    text = details.match.split("\n")
    lines = [one_line(head), *(f"    {line}" for line in text)]
    if details.clipped and len(text) > 1:
        lines.append("    …")
    lines += [f"    ${capture.name} = {one_line(capture.text)}" for capture in details.captures]
    return lines


def _section(section: Section) -> list[str]:
    note = f" ({section.note})" if section.note else ""
    parts = [render_heading(f"{section.title}: {section.total:,}{note}")]
    lines: list[str] = []
    for finding in section.findings:
        place = finding.location
        where = f"{place.path}:{place.start_line}:{place.start_col} " if place else ""
        details = finding.details
        more = ""
        if isinstance(details, LinkDetails):
            more = f" depth {details.depth}" if details.depth > 1 else ""
            more += f" (1 of {details.candidates})" if details.candidates > 1 else ""
        lines.append(one_line(f"{where}{finding.message}{more}"))
    if lines:
        parts.append(render_block(lines))
    return parts


def _draw(links: list[LinkDetails], form: str) -> str:
    """Where a name stands in several files, its label says which."""
    pairs = [((link.source, link.source_path), (link.target, link.target_path)) for link in links]
    names = Counter(name for name, _ in dict.fromkeys(node for pair in pairs for node in pair))

    def label(node: tuple[str, str]) -> str:
        return f"{node[0]} ({node[1]})" if names[node[0]] > 1 and node[1] else node[0]

    return draw_pairs([(label(source), label(target), False) for source, target in pairs], form)


def _plural(count: int, word: str) -> str:
    return word if count == 1 else word + ("es" if word.endswith("ch") else "s")
