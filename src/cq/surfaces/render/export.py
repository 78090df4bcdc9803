"""What an export wrote."""

from __future__ import annotations

from cq.model.artifact import ExportReport
from cq.surfaces.render import one_line, render_heading, render_table


def render_export(report: ExportReport) -> str:
    rows = [
        [artifact.name, f"{artifact.records:,}", f"{artifact.bytes:,}", f"{artifact.files:,}"]
        for artifact in report.artifacts
    ]
    parts = [
        render_heading(f"Exported to {one_line(report.out)}", 1),
        render_table(["artifact", "rows", "bytes", "files"], rows),
    ]
    notes = [
        f"- {artifact.name}: of rows too large for a line {artifact.truncated:,} were shortened,"
        f" {artifact.dropped:,} left out"
        for artifact in report.artifacts
        if artifact.truncated or artifact.dropped
    ]
    if notes:
        parts.append("\n".join(notes))
    return "\n\n".join(parts) + "\n"
