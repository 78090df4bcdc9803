"""A neighborhood as text: sections that hold something, each node with its place and signature."""

from __future__ import annotations

import msgspec

from cq.model.answer import Answer, Section
from cq.surfaces.render import one_line, render_heading, show_path
from cq.surfaces.render.answer import render_answer, render_finding

_INDENT = "    "


def render_neighborhood(answer: Answer) -> str:
    """About a hundred lines for a default question."""
    if not answer.found:
        return render_answer(msgspec.structs.replace(answer, sections=()))
    lines: list[str] = []
    for section in answer.sections:
        if not section.findings:
            continue
        lines += [*_render_section(section), ""]
        if section.kind == "target_tldr" and answer.key_findings:
            findings = (one_line(finding.message) for finding in answer.key_findings)
            lines += [render_heading("Key Findings"), *(f"{_INDENT}{text}" for text in findings), ""]
    caps = [
        f"capped: {cut.scope} {cut.cap} at {cut.limit:,} of {cut.observed:,}; {cut.omitted:,} counted only"
        for cut in answer.truncated
        if cut.cap != "preview"
    ]
    if caps:
        lines += [render_heading("Notes"), *(_INDENT + row for row in caps)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _render_section(section: Section) -> list[str]:
    title = section.title
    if section.total:
        shown = len(section.findings)
        title += f" ({shown} of {section.total:,})" if shown < section.total else f" ({section.total:,})"
    lines = [render_heading(title) + (f" {show_path(one_line(section.note))}" if section.note else "")]
    for finding in section.findings:
        lines += render_finding(finding)
    return lines
