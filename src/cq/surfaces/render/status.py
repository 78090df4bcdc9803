"""The index itself as text: its summary, its status, its configuration, the doctor's findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from cq.model.answer import Finding, NodeDetails, Target
from cq.model.config import Configuration
from cq.model.status import Check, Freshness, Status
from cq.surfaces.render import one_line, render_heading, render_table

if TYPE_CHECKING:
    from cq.indexing.precise import PreciseReport
    from cq.indexing.refresh import Report

_IDEA = "cq find 'what you look for, in words'"
_MOST_MISTAKES = 10
_MOST_LANGUAGES = 30  # rows; a status is read at one glance


class Cost(msgspec.Struct, frozen=True):
    """What an indexing run took. Memory is the highest of the process, and of its largest worker beside it; 0
    where the system does not tell."""

    seconds: float
    peak_bytes: int
    worker_peak_bytes: int


def render_status(status: Status) -> str:
    """A page of at most 100 lines."""
    lines = [
        render_heading(f"Index of {one_line(status.root)}", 1),
        "",
        f"- {describe_freshness(status.freshness)}",
        f"- {_describe_files(status)}",
        f"- {_describe_counts(status.counts)}",
        f"- index: {one_line(status.index)}, {render_bytes(status.index_bytes)}"
        + (f", {status.index_bytes / status.bytes:.1f}× the source" if status.bytes > 100_000 else "")
        + (", temporary" if status.temporary else ""),
    ]
    if (vectors := status.embeddings) is not None:
        state = "ready" if vectors.ready else "not ready" if vectors.enabled else "off"
        reason = f": {vectors.reason}" if vectors.reason else f", {vectors.chunks:,} chunks"
        lines.append(f"- vectors {state}{reason} ({vectors.identity})")
        missing = [name for name, there in vectors.backends.items() if not there]
        why = f" ({vectors.backend_reason})" if vectors.backend_reason else ""
        rest = f"; not installed: {', '.join(missing)}" if missing else ""
        lines.append(f"- vectors are compared by {vectors.backend}{why}{rest}")
        if vectors.sent:
            sent = ", ".join(f"{tokens:,} by {one_line(name)}" for name, tokens in vectors.sent.items())
            price = f", {vectors.cost:.4f} at the configured price" if vectors.cost is not None else ""
            lines.append(f"- tokens counted by services so far: {sent}{price}")
        lines.append(f"- {one_line(vectors.leaves) or 'nothing leaves this machine'}")
    lines += _language_lines(status)
    lines += _skip_lines(status)
    lines += _mistake_lines(status)
    if status.degraded:
        lines += ["", render_heading("Degraded"), ""]
        lines += [f"- {event.severity}: {one_line(event.message)}" for event in status.degraded[:20]]
        lines += [f"- and {len(status.degraded) - 20} more"] if len(status.degraded) > 20 else []
    return "\n".join(lines) + "\n"


def render_welcome(status: Status, entry_points: Sequence[Target], most: Sequence[Finding]) -> str:
    """A first look: what is here, where it begins, what to ask. Every command can be pasted."""
    shares = [f"{row.language} {row.files:,}" for row in status.languages[:6]]
    more = len(status.languages) - 6
    lines = [
        render_heading(one_line(status.root), 1),
        "",
        f"{_count(status.files, 'file')}, {_count(status.lines, 'line')}: {', '.join(shares)}"
        + (f", {more} more" if more > 0 else ""),
        _describe_counts(status.counts),
        "",
    ]
    if entry_points:
        lines += [render_heading("Where it begins"), ""]
        lines += [
            f"    {row.location.path}:{row.location.start_line}: {one_line(row.signature)}" for row in entry_points
        ]
        lines.append("")
    if most:
        lines += [render_heading("What most of it depends on"), ""]
        lines += [
            f"    {row.location.path}:{row.location.start_line}: {one_line(row.message)}"
            for row in most
            if row.location
        ]
        lines.append("")
    details = most[0].details if most else None
    known = details.name if isinstance(details, NodeDetails) else ""
    name = known or (entry_points[0].name if entry_points else "NAME")
    path = entry_points[0].location.path if entry_points else "PATH"
    lines += [
        render_heading("What to ask"),
        "",
        f"    {f'cq search {name}':<40} where a name or text is defined, called, used",
        f"    {f'cq neighborhood {name}':<40} everything around it; `cq calls`, `cq impact` for more",
        f"    {_IDEA:<40} code about an idea",
        f"    {f'cq read {path}':<40} the outline of a file; with a name, its source",
        f"    {'cq init claude':<40} let an agent ask (cursor, vscode)",
        f"    {'cq --help':<40} every question",
    ]
    return "\n".join(lines) + "\n"


def render_summary(report: Report, status: Status, cost: Cost) -> str:
    """What an indexing run did, and what there is now."""
    did = f"{report.parsed:,} parsed, {report.reused:,} known text, {report.touched:,} touched but equal"
    worker = f" (+ {render_bytes(cost.worker_peak_bytes)} in the largest worker)" if cost.worker_peak_bytes else ""
    lines = [
        render_heading(f"Indexed {one_line(status.root)}", 1),
        "",
        f"- {report.added:,} added, {report.changed:,} changed, {report.removed:,} removed: {did}",
        f"- {_describe_files(status)}",
        f"- {_describe_counts(status.counts)}",
        f"- {cost.seconds:.2f} s,"
        + (f" peak memory {render_bytes(cost.peak_bytes)}{worker}," if cost.peak_bytes else "")
        + f" index {render_bytes(status.index_bytes)}, generation {status.freshness.generation}",
    ]
    lines += _language_lines(status)
    lines += _skip_lines(status)
    lines += _mistake_lines(status)
    if status.degraded:
        lines += ["", render_heading("Degraded"), ""]
        lines += [f"- {event.severity}: {one_line(event.message)}" for event in status.degraded[:20]]
    return "\n".join(lines) + "\n"


def render_precise(report: PreciseReport) -> str:
    """What language servers were asked about, and said."""
    rows = [
        [
            f"{row.source} ({row.version})",
            *(f"{number:,}" for number in (row.asked, row.resolved, row.external, row.unknown, row.failed)),
        ]
        for row in report.sources
    ]
    known = f", {report.known:,} files asked about before" if report.known else ""
    left = f", {report.left:,} left for the next time" if report.left else ""
    lines = ["", render_heading("Precise"), "", f"{report.calls:,} open calls{known}{left}"]
    columns = ["asked", "calls", "resolved here", "outside", "unknown", "no answer"]
    lines += ["", render_table(columns, rows)] if rows else []
    lines += [f"- {one_line(note)}" for note in report.notes]
    return "\n".join(lines) + "\n"


def render_config(config: Configuration) -> str:
    rows = [[setting.name, _show(setting.value), setting.source] for setting in config.settings]
    text = render_table(["setting", "value", "source"], rows) + "\n"
    return text + "".join(f"\nnote: {note}\n" for note in config.notes)


def render_checks(checks: Sequence[Check]) -> str:
    rows = [[check.area, check.name, check.state, one_line(check.detail)] for check in checks if not check.provider]
    lines = [render_table(["area", "check", "state", "found"], rows)]
    providers = [check for check in checks if check.provider]
    if providers:
        rows = [
            [check.name, check.state, ", ".join(row.languages), one_line(check.detail)]
            for check in providers
            if (row := check.provider)
        ]
        lines += ["", render_heading("Providers"), "", render_table(["provider", "state", "languages", "found"], rows)]
        offers = [(check.name, row.planes) for check in providers if (row := check.provider) and row.planes]
        lines += [""] if offers else []
        lines += [f"- {name} answers {', '.join(planes).replace('_', ' ')}" for name, planes in offers]
    advice = [check for check in checks if check.advice]
    if advice:
        lines += ["", render_heading("What to do"), ""]
        lines += [f"- {check.name}: {one_line(check.advice)}" for check in advice]
    return "\n".join(lines) + "\n"


def render_update(report: Report) -> str:
    """One line for one refresh of a watch."""
    parts = [f"{getattr(report, name)} {name}" for name in ("added", "changed", "removed") if getattr(report, name)]
    if report.rebuilt:
        parts.append(f"made anew: {report.rebuilt}")
    return f"generation {report.generation}: {', '.join(parts) or 'nothing changed'}"


def describe_freshness(freshness: Freshness) -> str:
    text = f"generation {freshness.generation}, "
    if freshness.check == "recent":
        text += "not checked: the last check is recent enough"
    elif not freshness.dirty:
        text += "up to date with the files on disk"
    else:
        pairs = ((freshness.added, "new"), (freshness.changed, "changed"), (freshness.removed, "gone"))
        text += "stale: " + ", ".join(f"{count} {word}" for count, word in pairs if count) + " since"
    return text + ("; another process is writing the next one" if freshness.busy else "")


def render_bytes(size: int) -> str:
    if size < 100_000:
        return f"{size / 1e3:,.1f} kB"
    return f"{size / 1e6:,.1f} MB" if size < 10e9 else f"{size / 1e9:,.1f} GB"


def _describe_files(status: Status) -> str:
    return f"{_count(status.files, 'file')}, {_count(status.lines, 'line')}, {render_bytes(status.bytes)}"


def _describe_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(
        _count(counts[name], name[:-1]) for name in ("symbols", "calls", "imports", "references", "chunks", "problems")
    )


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _language_lines(status: Status) -> list[str]:
    if not status.languages:
        return ["", "No file here is source code that cq reads."]
    shown, rest = status.languages[:_MOST_LANGUAGES], status.languages[_MOST_LANGUAGES:]
    rows = [
        [row.language, f"{row.files:,}", f"{row.lines:,}", f"{row.symbols:,}", ", ".join(row.capabilities) or "text"]
        for row in shown
    ]
    lines = [
        "",
        render_heading("Languages"),
        "",
        render_table(["language", "files", "lines", "symbols", "offers"], rows),
    ]
    return [*lines, f"and {len(rest)} more languages, {sum(row.files for row in rest):,} files"] if rest else lines


def _skip_lines(status: Status) -> list[str]:
    if not status.skipped:
        return []
    rows = [[reason.replace("_", " "), f"{count:,}"] for reason, count in status.skipped.items()]
    return ["", render_heading("Left out"), "", render_table(["reason", "count"], rows)]


def _mistake_lines(status: Status) -> list[str]:
    if not status.mistakes:
        return []
    rows = [
        [row.error, row.place, *(f"{n:,}" for n in (row.unlinked, row.incomplete, row.refreshes)), ", ".join(row.paths)]
        for row in status.mistakes[:_MOST_MISTAKES]
    ]
    columns = ["error", "at", "files not linked", "files linked in part", "refreshes that linked all", "files"]
    lines = ["", render_heading("Mistakes of cq"), "", render_table(columns, rows)]
    more = len(status.mistakes) - _MOST_MISTAKES
    return [*lines, *([f"and {more} more"] if more > 0 else []), "", "Please report them: they are bugs of cq."]


def _show(value: str | float | tuple[str, ...] | None) -> str:
    return " ".join(value) if isinstance(value, tuple) else str(value)
