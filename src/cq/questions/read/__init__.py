"""The exact source of a symbol, of a range of lines, or the outline of a file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, ClassVar

from cq.answers.options import Option, Options, Whole
from cq.answers.page import Page, take
from cq.answers.words import cut_signature
from cq.model.answer import (
    EVIDENCE,
    SCHEMA_VERSION,
    Answer,
    Candidate,
    Confidence,
    Finding,
    Insight,
    Run,
    Section,
    SourceDetails,
    Target,
    Truncation,
    bucket,
)  # fmt: skip
from cq.model.errors import UsageError
from cq.snapshot.target import Definition, describe_target, find_file, find_targets

if TYPE_CHECKING:
    from cq.model.facts import Symbol
    from cq.snapshot.files import Files, HeldFile
    from cq.snapshot.snapshot import Snapshot

_RANGE = re.compile(r"(?P<path>.+):(?P<first>\d+)-(?P<last>\d*)\Z")
# What an outline leaves out.
_INNER = frozenset({"parameter", "type_parameter"})


class ReadOptions(Options, frozen=True):
    """`target` is a TARGET, `path:first-last`, `path:first-` to the end, or a path for its outline."""

    examples: ClassVar[str] = """\
  cq read QuerySet.get_or_create         a definition, as it stands
  cq read src/app.py                     the outline of a file
  cq read src/app.py:10-40               lines; `10-` reads to the end
  cq read main --format plain            nothing but the source"""

    target: Annotated[
        str,
        Option(
            "Name, Class.method, path:Name, path:first-last, or a path",
            metavar="TARGET",
            argument=True,
            place="file",
            several=True,
        ),
    ]
    page: Whole = Page(0)


def ask(snapshot: Snapshot, options: ReadOptions) -> Answer:
    """Source byte for byte; of a long one what the budget holds, and from where to read on."""
    files = snapshot.files
    options.page.check()
    text = options.target.strip()
    if found := _RANGE.match(text):
        return _read_range(files, options, found["path"], int(found["first"]), int(found["last"] or 0))
    held = find_file(files, text)
    if held is not None:
        return _outline(files, options, held)
    targets = find_targets(files, text)
    if not targets:
        name = re.split(r"[.:>\s]+", text)[-1]
        run, summary = Run(generation=files.generation), {"query": text, "definitions": 0}
        return Answer(SCHEMA_VERSION, "read", run, summary, suggestions=tuple(files.near_names(name)))
    return _read_symbol(files, options, targets)


def _read_symbol(files: Files, options: ReadOptions, targets: list[Definition]) -> Answer:
    chosen = targets[0]
    symbol, file = chosen.symbol, chosen.file
    target = describe_target(targets)
    finding, cut = _source(file, symbol.start, symbol.end, options, symbol.qualified_name, target.others)
    return _finish(files, options, [finding], cut, target, {"definitions": len(targets)})


def _read_range(files: Files, options: ReadOptions, path: str, first: int, last: int) -> Answer:
    file = files.get(path)
    if file is None:
        raise UsageError(f"{path} is not indexed", hint="paths are named from the root")
    count = len(file.lines)
    last = min(last or count, count)
    if not 1 <= first <= last:
        raise UsageError(f"{path} has no lines {first}-{last}", hint=f"it has {count}")
    end = file.lines.starts[last] if last < count else len(file.text)
    finding, cut = _source(file, file.lines.offset(first), end, options)
    return _finish(files, options, [finding], cut, None, {"lines": count})


def _source(
    file: HeldFile, start: int, end: int, options: ReadOptions, name: str = "", others: tuple[Candidate, ...] = ()
) -> tuple[Finding, list[Truncation]]:
    """At least one line, however small the budget."""
    start = file.text.rfind(b"\n", 0, start) + 1  # with its indentation
    wanted, cut = end, list[Truncation]()
    room = options.page.budget * 4  # bytes
    if options.page.measure == "json":  # it escapes some of them, and has a card beside
        room -= min(room // 8 + 1200, room // 2)
    if room and end - start > room:
        end = file.text.rfind(b"\n", start, start + room) + 1
        end = end or (file.text.find(b"\n", start) + 1) or wanted
        lines = file.lines.line(max(wanted - 1, start)) - file.lines.line(end) + 1
        cut.append(Truncation("source", "budget", options.page.budget, (wanted - start) // 4, lines))
    where = file.locate(start, end)
    more = f"{file.path}:{file.lines.line(end)}-{file.lines.line(max(wanted - 1, end))}" if end < wanted else ""
    source = file.text[start:end].decode("utf-8", "replace")
    return Finding("source", name, where, details=SourceDetails(source, file.language, name, more, others)), cut


def _outline(files: Files, options: ReadOptions, file: HeldFile) -> Answer:
    rows = [
        symbol
        for symbols in file.symbols
        for symbol in symbols
        if symbol.kind not in _INNER and (symbol.parent < 0 or symbols[symbol.parent].kind_group == "class")
    ]
    rows.sort(key=lambda symbol: symbol.start)

    def make(symbol: Symbol) -> Finding:
        text = "  " * symbol.depth + (cut_signature(symbol.signature) or f"{symbol.kind} {symbol.name}")
        return Finding("outline", text, file.locate(symbol.name_start, symbol.name_end))

    findings, _, cut = take(rows, options.page, make)
    return _finish(files, options, findings, cut, None, {"lines": len(file.lines), "symbols": len(rows)})


def _finish(
    files: Files, options: ReadOptions, findings: list[Finding], cut: list[Truncation], target: Target | None,
    summary: dict[str, int],
) -> Answer:  # fmt: skip
    score = EVIDENCE["syntax"]
    insight = Insight(target, confidence=Confidence("syntax", score, bucket(score)))
    title = "Source" if findings and findings[0].category == "source" else "Outline"
    return Answer(
        SCHEMA_VERSION, "read", Run(generation=files.generation), {"query": options.target, **summary},
        found=max(len(findings), 1), insight=insight, truncated=tuple(cut),
        sections=(Section(title, title.lower(), summary.get("symbols", 0), tuple(findings)),),
    )  # fmt: skip
