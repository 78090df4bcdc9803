"""Rows about source: what its names mean, and who wrote its lines."""

from __future__ import annotations

from datetime import UTC, datetime

from cq.model.answer import Answer, BlameDetails, MeantName, NamesDetails
from cq.surfaces.render import one_line, show_path

_MOST_TARGETS = 3  # of a name, on a row


def render_rows(details: NamesDetails | BlameDetails) -> list[str]:
    """Each begins with its line: `12:5 run: certain db.py:1 run`, or `12-20 1a2b3c4d 2024-05-01 Ann: summary`."""
    if isinstance(details, NamesDetails):
        return [f"{name.line}:{name.col} {describe_name(name, details)}" for name in details.names]
    rows: list[str] = []
    for each in details.lines:
        last = each.first + each.count - 1
        place = f"{each.first}-{last}" if last > each.first else f"{each.first}"
        said = f"{each.commit[:10]} {show_day(each.time)} {one_line(each.author)}: {one_line(each.summary)}"
        rows.append(f"{place} {said if each.commit else 'not committed yet'}")
    return rows


def render_plain_rows(answer: Answer) -> str:
    """The same with the path in front, for pipes."""
    return "".join(
        f"{show_path(finding.location.path)}:{row}\n"
        for part in answer.parts
        for section in part.sections
        for finding in section.findings
        if finding.location is not None and isinstance(finding.details, NamesDetails | BlameDetails)
        for row in render_rows(finding.details)
    )


def describe_name(name: MeantName, details: NamesDetails) -> str:
    meant = [details.targets[number] for number in name.targets]
    said = ", ".join(f"{show_path(each.path)}:{each.line} {one_line(each.name)}" for each in meant[:_MOST_TARGETS])
    said += f", {len(meant) - _MOST_TARGETS} more" if len(meant) > _MOST_TARGETS else ""
    status = f"{name.status} {name.module}" if name.module else name.status
    return f"{one_line(name.name)}: {status}" + (f" {said}" if said and name.status != "definition" else "")


def show_day(time: int) -> str:
    """In Universal Time, so that it is the same everywhere; of a time that is no date nothing."""
    try:
        return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d")
    except (ValueError, OverflowError, OSError):
        return "?"
