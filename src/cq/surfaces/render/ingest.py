"""What was taken from an index that another program made."""

from __future__ import annotations

from cq.indexing.ingest import IngestReport
from cq.surfaces.render import one_line, render_block, render_heading

_SHOWN = 20


def render_ingest(report: IngestReport) -> str:
    parts = [
        render_heading(f"{report.taken:,} of {report.documents:,} documents taken", 1),
        f"{report.calls:,} calls mean one of {report.definitions:,} definitions.",
    ]
    if report.stale or report.unknown:
        parts.append(f"Left out: {report.stale:,} whose text has changed, {report.unknown:,} of no file here.")
    if report.conflicts:
        rows = [one_line(f"{row.place}: {row.theirs}, not {row.ours}") for row in report.first_conflicts[:_SHOWN]]
        more = f"The first {len(rows)} of {report.conflicts:,}." if report.conflicts > len(rows) else ""
        parts += [render_heading(f"{report.conflicts:,} calls that cq was sure of and the index says otherwise")]
        parts += [render_block(rows), *([more] if more else [])]
    return "\n\n".join(parts) + "\n"
