"""Several questions of a plan, asked over one snapshot and merged; plans by name are reports."""

from cq.questions.run.options import ReportOptions, RunOptions

__all__ = ["ReportOptions", "RunOptions"]
