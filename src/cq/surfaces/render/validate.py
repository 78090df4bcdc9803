"""The outcome of a check: what is wrong first, then what was looked at and the rates it shows."""

from __future__ import annotations

from cq.model.artifact import Validation
from cq.surfaces.render import one_line, render_block, render_heading, render_table
from cq.surfaces.render.ingest import tell_trace

_SHOWN = 40  # lines of findings


def render_validation(validation: Validation) -> str:
    total = sum(validation.counts.values())
    parts = [render_heading("Nothing wrong" if not total else f"{total:,} findings", 1)]
    if total:
        shown = validation.findings[:_SHOWN]
        parts.append(render_block([one_line(f"{item.code}  {item.where}: {item.what}") for item in shown]))
        if len(shown) < total:
            counts = ", ".join(f"{count:,} {code}" for code, count in validation.counts.items())
            parts.append(f"The first {len(shown)} of {total:,} ({counts}).")
    if validation.conflict_count:
        shown = validation.conflicts[:_SHOWN]
        parts.append(render_heading(f"{validation.conflict_count:,} calls that others read differently"))
        parts.append(render_block([one_line(f"{item.where}: {item.what}") for item in shown]))
    if validation.trace is not None:
        parts += tell_trace(validation.trace, 2)
    checked = ", ".join(f"{count:,} {name}" for name, count in validation.checked.items())
    parts.append(f"Checked {checked or 'nothing'}.")
    if validation.languages:
        rows = [
            [
                row.language,
                f"{row.files:,}",
                f"{row.problem_files:,}",
                _share(row.problem_files, row.files),
                f"{row.problems:,}",
            ]
            for row in validation.languages
        ]
        columns = ["language", "files", "with problems", "share", "problems"]
        parts += [render_heading("Problems by language"), render_table(columns, rows)]
    if validation.kind_groups:
        definitions = sum(validation.kind_groups.values())
        rows = [[group, f"{count:,}", _share(count, definitions)] for group, count in validation.kind_groups.items()]
        parts += [
            render_heading("Definitions by kind group"),
            render_table(["kind group", "definitions", "share"], rows),
        ]
    if validation.rates:
        rows = [
            [
                rate.language, rate.what, f"{rate.total:,}",
                *(_share(part, rate.total) for part in (
                    rate.resolved, rate.ambiguous, rate.external, rate.unresolved, rate.import_narrowed,
                )), f"{rate.capped:,}",
            ]
            for rate in validation.rates
        ]  # fmt: skip
        columns = ["language", "references", "total", "resolved", "ambiguous", "external", "unresolved", "imported"]
        parts += [render_heading("What references mean"), render_table([*columns, "capped"], rows)]
    return "\n\n".join(parts) + "\n"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"
