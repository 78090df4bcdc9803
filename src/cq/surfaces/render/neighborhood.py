"""A neighborhood as text: sections that hold something, each node with its place and signature."""

from __future__ import annotations

import msgspec

from cq.model.answer import Answer
from cq.surfaces.render import one_line, render_heading
from cq.surfaces.render.answer import join_blocks, render_end, render_part, render_section


def render_neighborhood(answer: Answer, *, card: bool = False) -> str:
    """About a hundred lines for a default question."""
    return join_blocks([block for part in answer.parts for block in render_one(part, card=card)])


def render_one(answer: Answer, *, card: bool = False) -> list[list[str]]:
    """Of one target."""
    if not answer.found:
        return render_part(msgspec.structs.replace(answer, sections=()))
    return [*render_around(answer, card=card), *render_end(msgspec.structs.replace(answer, degraded=()), card=card)]


def render_around(answer: Answer, *, card: bool = False) -> list[list[str]]:
    """What stands out comes behind the target."""
    blocks: list[list[str]] = []
    for section in answer.sections:
        if not section.findings or (section.aside and not card):
            continue
        blocks.append(render_section(section, titled=section.kind != "target_tldr"))
        if section.kind == "target_tldr" and answer.key_findings:
            findings = (one_line(finding.message) for finding in answer.key_findings)
            blocks.append([render_heading("Key Findings"), *(f"  {text}" for text in findings)])
    return blocks
