"""The exact source of a symbol, of a range of lines, or the outline of a file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec

from cq.answers.options import Option, Options, Whole
from cq.answers.page import Page, take
from cq.answers.words import cut_signature
from cq.model.answer import (
    EVIDENCE,
    SCHEMA_VERSION,
    Answer,
    BlameDetails,
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
from cq.model.history import Blamed
from cq.model.status import Degraded
from cq.snapshot.relations import note_unlinked
from cq.snapshot.target import Definition, describe_target, find_file, find_targets
from cq.source.checkout import GitError
from cq.source.git import find_authors

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
  cq read main --format plain            nothing but the source
  cq read src/app.py --links             what every name in it means, and where that is defined
  cq read src/app.py:10-40 --blame       which commit wrote which lines, and whose it was"""

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
    links: Annotated[bool, Option("the source, and what every name in it means")] = False
    blame: Annotated[bool, Option("the source, and who wrote its lines when")] = False
    page: Whole = Page(0)

    @property
    def shares(self) -> int:
        """How many parts of the answer share the budget."""
        return 1 + 3 * self.links + self.blame


def ask(snapshot: Snapshot, options: ReadOptions) -> Answer:
    """Source byte for byte; of a long one what the budget holds, and from where to read on."""
    files = snapshot.files
    options.page.check()
    text = options.target.strip()
    if found := _RANGE.match(text):
        return _read_range(snapshot, options, found["path"], int(found["first"]), int(found["last"] or 0))
    held = find_file(files, text)
    if held is not None:
        if options.shares > 1:
            return _read_range(snapshot, options, held.path, 1, 0)
        return _outline(files, options, held)
    targets = find_targets(files, text)
    if not targets:
        name = re.split(r"[.:>\s]+", text)[-1]
        run, summary = Run(generation=files.generation), {"query": text, "definitions": 0}
        return Answer(SCHEMA_VERSION, "read", run, summary, suggestions=tuple(files.near_names(name)))
    return _read_symbol(snapshot, options, targets)


def _read_symbol(snapshot: Snapshot, options: ReadOptions, targets: list[Definition]) -> Answer:
    chosen = targets[0]
    symbol, file = chosen.symbol, chosen.file
    target = describe_target(targets)
    finding, cut = _source(file, symbol.start, symbol.end, options, symbol.qualified_name, target.others)
    return _finish(snapshot, options, [finding], cut, target, {"definitions": len(targets)}, file)


def _read_range(snapshot: Snapshot, options: ReadOptions, path: str, first: int, last: int) -> Answer:
    file = snapshot.files.get(path)
    if file is None:
        raise UsageError(f"{path} is not indexed", hint="paths are named from the root")
    count = len(file.lines)
    last = min(last or count, count)
    if not 1 <= first <= last:
        raise UsageError(f"{path} has no lines {first}-{last}", hint=f"it has {count}")
    end = file.lines.starts[last] if last < count else len(file.text)
    finding, cut = _source(file, file.lines.offset(first), end, options)
    return _finish(snapshot, options, [finding], cut, None, {"lines": count}, file)


def _source(
    file: HeldFile, start: int, end: int, options: ReadOptions, name: str = "", others: tuple[Candidate, ...] = ()
) -> tuple[Finding, list[Truncation]]:
    """At least one line, however small the budget."""
    start = file.text.rfind(b"\n", 0, start) + 1  # with its indentation
    wanted, cut = end, list[Truncation]()
    budget = options.page.budget // options.shares
    room = budget * 4  # bytes
    if options.page.measure == "json":  # it escapes some of them, and has a card beside
        room -= min(room // 8 + 1200, room // 2)
    if room and end - start > room:
        end = file.text.rfind(b"\n", start, start + room) + 1
        end = end or (file.text.find(b"\n", start) + 1) or wanted
        lines = file.lines.line(max(wanted - 1, start)) - file.lines.line(end) + 1
        cut.append(Truncation("source", "budget", budget, (wanted - start) // 4, lines))
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
    return _answer(files, options, findings, cut, None, {"lines": len(file.lines), "symbols": len(rows)})


_NAME_TOKENS = 20  # that a name costs with what it means, about


def _finish(
    snapshot: Snapshot, options: ReadOptions, findings: list[Finding], cut: list[Truncation], target: Target | None,
    summary: dict[str, int], file: HeldFile,
) -> Answer:  # fmt: skip
    """The answer about source, with what was asked for beside it."""
    where = findings[0].location
    assert where is not None
    beside: list[Section] = []
    events: list[Degraded] = []
    if options.links:
        from cq.questions.read.names import describe_names

        most = options.page.budget * 3 // options.shares // _NAME_TOKENS
        details, count = describe_names(snapshot, file, where.start, where.end, most)
        if len(details.names) < count:
            cut.append(Truncation("links", "budget", most, count, count - len(details.names)))
        beside.append(Section("Names", "names", count, (Finding("names", f"{count:,} names", where, details=details),)))
    if options.blame:
        try:
            last = where.end_line - (where.end_col == 1 and where.end > where.start)
            lines = _cut_blame(find_authors(snapshot.root, file.path, file.text), where.start_line, last)
            details, message = BlameDetails(lines), f"{len({each.commit for each in lines}):,} commits"
            beside.append(Section("Blame", "blame", len(lines), (Finding("blame", message, where, details=details),)))
        except GitError as error:
            events.append(Degraded("blame", "warning", "git", f"nobody is named: {error}", file.path))
    answer = _answer(snapshot.files, options, findings, cut, target, summary)
    answer = msgspec.structs.replace(answer, sections=(*answer.sections, *beside), degraded=tuple(events))
    return note_unlinked(snapshot.indexed, answer) if options.links and snapshot.is_indexed else answer


def _cut_blame(lines: list[Blamed], first: int, last: int) -> tuple[Blamed, ...]:
    """Of these lines."""
    found: list[Blamed] = []
    for each in lines:
        start, end = max(each.first, first), min(each.first + each.count - 1, last)
        if start <= end:
            found.append(msgspec.structs.replace(each, first=start, count=end - start + 1))
    return tuple(found)


def _answer(
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
