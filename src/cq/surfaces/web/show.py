"""Answers as what templates show: rows with their places, links between pages, source with its names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import Any, Self
from urllib.parse import quote, urlencode

import msgspec

from cq.model.answer import (
    Answer,
    BlameDetails,
    CallDetails,
    Finding,
    MatchDetails,
    NamesDetails,
    NodeDetails,
    PassedAt,
    ReferenceDetails,
    Section,
    SourceDetails,
)
from cq.model.location import Location
from cq.surfaces import printer
from cq.surfaces.render import show_path
from cq.surfaces.render.read import describe_name, show_day

MOST_DECORATED = 3000  # lines whose names are links, at once
_AROUND = 500  # of these in front of the line that is asked for


class Html(str):
    """Text that is markup already: templates escape everything else."""

    __slots__ = ()

    def __html__(self) -> Self:
        return self


def join(parts: Iterable[Html]) -> Html:
    return Html("".join(parts))


def link(page: str, **values: object) -> str:
    """The address of a page; what is empty is left out."""
    given = {key.rstrip("_"): value for key, value in values.items() if value not in ("", None, 0, (), False)}
    written = urlencode(given, doseq=True, safe="/:", quote_via=quote)
    return f"/{page}?{written}" if given else f"/{page}"


def link_place(path: str, line: int = 0, hash: str = "") -> str:
    return link("source", path=path, line=line, hash=hash) + (f"#L{line}" if line else "")


def mark(text: str) -> Html:
    """Source as it is; what shows nothing or turns the line round is spelled out and marked."""
    if text.isprintable():
        return Html(escape(text))
    return Html("".join(escape(c) if c.isprintable() or c in "\n\t" else _mark_one(c) for c in text))


def _mark_one(char: str) -> str:
    return f'<span class="odd" title="U+{ord(char):04X}">{escape(printer.escape(char))}</span>'


class Row(msgspec.Struct, frozen=True):
    """A finding: where it stands, what it says, and whether that is code."""

    text: str
    place: Location | None = None
    is_code: bool = False
    status: str = ""
    beside: str = ""  # the definition it stands in
    symbol: str = ""  # the address of the page about what it names
    steps: tuple[tuple[str, str, str], ...] = ()  # address, place, what is said there
    context: tuple[tuple[int, str], ...] = ()
    is_command: bool = False


class Group(msgspec.Struct, frozen=True):
    """Rows of one file, or of none."""

    path: str
    rows: tuple[Row, ...]


def group_rows(section: Section) -> list[Group]:
    """As text shows them: a path stands once, what has no place comes first, and order is kept where it tells."""
    groups: dict[str, list[Row]] = {}
    for finding in section.findings:
        if not isinstance(finding.details, SourceDetails | NamesDetails | BlameDetails):
            groups.setdefault(finding.location.path if finding.location else "", []).append(describe(finding))
    return [Group(path, tuple(rows)) for path, rows in sorted(groups.items(), key=lambda item: item[0] != "")]


def describe(finding: Finding) -> Row:
    details, where = finding.details, finding.location
    is_code = isinstance(details, CallDetails | MatchDetails | ReferenceDetails)
    beside = getattr(details, "caller", "") or getattr(details, "scope", "")
    symbol = ""
    if where is not None and (isinstance(details, NodeDetails) or finding.category in ("outline", "definition")):
        symbol = link("symbol", target=f"{where.path}:{where.start_line}:{where.start_col}")
    steps: list[tuple[str, str, str]] = []
    witness: tuple[Any, ...] = getattr(details, "witness", ())
    for step in witness:
        if isinstance(step, PassedAt):
            at = step.location
            steps.append((link_place(at.path, at.start_line), f"{show_path(at.path)}:{at.start_line}", step.says))
        elif len(witness) > 1:
            steps.append(("", "", str(step)))
    context: tuple[str, ...] = getattr(details, "context", ()) if isinstance(details, MatchDetails) else ()
    return Row(
        finding.message.strip() if is_code else finding.message,
        where,
        is_code,
        str(getattr(details, "status", "") or getattr(details, "verdict", "")),
        str(beside),
        symbol,
        tuple(steps),
        tuple(enumerate(context, details.context_line)) if isinstance(details, MatchDetails) else (),
        finding.category == "follow_up",
    )


def find_details(answer: Answer, kind: type) -> Any:
    return next(
        (row.details for section in answer.sections for row in section.findings if isinstance(row.details, kind)), None
    )


class Line(msgspec.Struct, frozen=True):
    number: int
    code: Html
    blame: str = ""  # where another commit begins
    title: str = ""


def find_window(lines: int, wanted: int) -> tuple[int, int]:
    """The first and last line whose names are links, of so many."""
    first = max(min(wanted - _AROUND, lines - MOST_DECORATED + 1), 1)
    return first, min(first + MOST_DECORATED - 1, lines)


def show_lines(source: str, first: int, names: NamesDetails | None, blame: BlameDetails | None) -> Iterator[Line]:
    """Line by line, the first of which has that number."""
    tokens: dict[int, list[tuple[int, int, str]]] = {}
    meant: dict[int, list[tuple[int, int, int]]] = {}
    for line, col, length, kind in names.tokens if names else ():
        tokens.setdefault(line, []).append((col - 1, col - 1 + length, kind))
    for number, name in enumerate(names.names if names else ()):
        meant.setdefault(name.line, []).append((name.col - 1, name.col - 1 + len(name.name), number))
    begins = {each.first: each for each in (blame.lines if blame else ())}
    for number, text in enumerate(source.split("\n"), first):
        code = _show_line(text.rstrip("\r"), tokens.get(number, []), meant.get(number, []), names)
        each = begins.get(number)
        if each is None:
            yield Line(number, code)
        elif each.commit:
            said = f"{show_day(each.time)} {each.author}"
            yield Line(number, code, said, f"{each.commit[:10]} {each.summary}")
        else:
            yield Line(number, code, "not committed yet")


def _show_line(
    text: str, tokens: list[tuple[int, int, str]], meant: list[tuple[int, int, int]], names: NamesDetails | None
) -> Html:
    """Names are links, be they inside a token; tokens are cut where names begin and end."""
    out: list[Html] = []
    at = 0
    for start, end, number in meant:
        if start < at:
            continue
        out += _paint(text, at, start, tokens)
        out.append(_link_name(names, number, join(_paint(text, start, end, tokens))))
        at = end
    return join([*out, *_paint(text, at, len(text), tokens)])


def _paint(text: str, start: int, end: int, tokens: list[tuple[int, int, str]]) -> list[Html]:
    out: list[Html] = []
    at = start
    for first, last, kind in tokens:
        first, last = max(first, start), min(last, end)
        if first >= last or first < at:
            continue
        out += [mark(text[at:first])] if at < first else []
        out.append(Html(f'<span class="t-{kind}">{mark(text[first:last])}</span>'))
        at = last
    return [*out, mark(text[at:end])] if at < end else out


def _link_name(names: NamesDetails | None, number: int, code: Html) -> Html:
    assert names is not None
    name = names.names[number]
    if not name.targets:
        if name.status != "external":
            return code
        return Html(f'<span class="external" title="from {escape(printer.escape(name.module))}">{code}</span>')
    target = names.targets[name.targets[0]]
    if name.status == "definition":
        address = link("symbol", target=f"{target.path}:{name.line}:{name.col}")
    else:
        address = link_place(target.path, target.line)
    said = escape(printer.escape(describe_name(name, names)))
    number = name.targets[0]
    return Html(f'<a class="n {name.status}" href="{escape(address)}" title="{said}" data-n="{number}">{code}</a>')
