"""What was taken from an index that another program made."""

from __future__ import annotations

from cq.indexing.ingest import IngestReport
from cq.model.evidence import TraceReport
from cq.surfaces.render import one_line, render_block, render_heading

_SHOWN = 20


def render_ingest(report: IngestReport | TraceReport) -> str:
    if isinstance(report, TraceReport):
        return "\n\n".join(tell_trace(report)) + "\n"
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


def tell_trace(report: TraceReport, level: int = 1) -> list[str]:
    """What ran beside what links say, in paragraphs below a heading of that level."""
    parts = [
        render_heading(f"{report.edges:,} pairs of definitions ran one another", level),
        f"Links are certain of {report.certain:,} and hold {report.possible:,} possible; they lack {report.lacking:,}. "
        f"{report.calls:,} calls are known to have run something.",
    ]
    if report.unknown or report.unplaced or report.elsewhere:
        parts.append(
            f"Of {report.rows:,} rows {report.unknown:,} are about files that are not here, {report.unplaced:,} about "
            f"definitions that do not begin there; at {report.elsewhere:,} no call stands."
        )
    if report.lacking:
        rows = [one_line(f"{row.place}: {row.caller or 'the module'} ran {row.callee}") for row in report.first_lacking]
        more = f"The first {len(rows)} of {report.lacking:,}." if report.lacking > len(rows) else ""
        parts += [render_heading("What ran and links lack"), render_block(rows), *([more] if more else [])]
    return parts
