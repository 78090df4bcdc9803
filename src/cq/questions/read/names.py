"""What every identifier of a stretch of source means, the classes of its tokens, and who wrote its lines."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cq.languages.registry import get_language
from cq.model.answer import Candidate as Meaning
from cq.model.answer import MeantName, NamesDetails
from cq.model.edge import Candidate, SymbolRef
from cq.snapshot.relations import Relations
from cq.snapshot.target import module_name
from cq.syntax.tokens import Token, find_tokens

if TYPE_CHECKING:
    from cq.snapshot.files import HeldFile
    from cq.snapshot.snapshot import Snapshot


def describe_names(snapshot: Snapshot, held: HeldFile, start: int, end: int, most: int) -> tuple[NamesDetails, int]:
    """Of the bytes from `start` to `end`, at most so many names (0: all); and how many there are. Without an index
    nothing is linked: names are unknown then, and tokens known."""
    targets: dict[Candidate, int] = {}
    meanings: list[Meaning] = []
    relations = snapshot.relations if snapshot.is_indexed else None

    def number(place: Candidate) -> int:
        if place not in targets:
            targets[place] = len(meanings)
            meanings.append(_describe(relations, place))
        return targets[place]

    found: list[MeantName] = []
    count = 0
    for first, last, status, ref in _find_names(relations, held, start, end):
        count += 1
        if most and count > most:
            continue
        where = held.locate(first, last)
        name = held.text[first:last].decode("utf-8", "replace")
        numbers = tuple(number(place) for place in ref.candidates)
        found.append(
            MeantName(
                where.start_line, where.start_col, name, status, numbers, ref.evidence, ref.confidence, ref.module
            )
        )  # fmt: skip
    tokens = tuple(_locate(held, _find_tokens(held, start, end)))
    return NamesDetails(held.language, held.hash, tuple(found), tuple(meanings), tokens), count


def _find_names(
    relations: Relations | None, held: HeldFile, start: int, end: int
) -> Iterator[tuple[int, int, str, SymbolRef]]:
    """(start, end, status, meaning), by place; of several for one place the definition."""
    found: dict[tuple[int, int], tuple[str, SymbolRef]] = {}
    for document, symbols in enumerate(held.symbols):
        for number, symbol in enumerate(symbols):
            if start <= symbol.name_start < symbol.name_end <= end:
                own = relations.meanings.find_own(held.path, document, number) if relations else None
                ref = SymbolRef(symbol.name, "resolved", "syntax", 1.0, (own,) if own else ())
                found.setdefault((symbol.name_start, symbol.name_end), ("definition", ref))
    if relations is not None:
        for _, place, ref in relations.meanings.find_all(held.path, start, end):
            known = ref if ref is not None and (ref.candidates or ref.status == "external") else None
            status = known.certainty if known is not None else "unknown"
            found.setdefault((place.start, place.end), (status, known or SymbolRef(place.name, "unresolved")))
    for (first, last), (status, ref) in sorted(found.items(), key=lambda item: item[0]):
        yield first, last, status, ref


def _describe(relations: Relations | None, place: Candidate) -> Meaning:
    row = relations.find_named(place) if relations is not None else None
    if row is None:  # a module, or a name that stands for a file as a whole
        return Meaning(place.shown_name or module_name(place.path), "" if place.name else "module", place.path, 1)
    line = row.location.start_line
    return Meaning(row.symbol.qualified_name, row.symbol.kind, place.path, line, row.file.name_symbol(*row.key[1:])[0])


def _find_tokens(held: HeldFile, start: int, end: int) -> Iterator[Token]:
    """Of the file, and of the documents in it in place of what the file says there."""
    language = get_language(held.language)
    own = find_tokens(language, held.text) if language is not None else []
    inside: list[Token] = []
    taken: list[tuple[int, int]] = []
    for document in held.documents:
        reader = get_language(document.language) if document.segment is not None else None
        if reader is not None and document.segment is not None:
            ranges = tuple(document.segment.ranges)
            taken += ranges
            inside += find_tokens(reader, held.text, ranges)
    taken.sort()

    def is_free(token: Token) -> bool:
        at = bisect_left(taken, (token.end, 0)) - 1
        return at < 0 or taken[at][1] <= token.start

    for token in sorted([*filter(is_free, own), *inside]) if inside else own:
        if token.end > start and token.start < end:
            yield Token(max(token.start, start), min(token.end, end), token.kind)


def _locate(held: HeldFile, tokens: Iterator[Token]) -> Iterator[tuple[int, int, int, str]]:
    """Line by line."""
    for start, end, kind in tokens:
        at = start
        while at < end:
            stop = held.text.find(b"\n", at, end)
            stop = end if stop < 0 else stop
            if at < stop:
                where = held.locate(at, stop)
                yield where.start_line, where.start_col, where.end_col - where.start_col, kind
            at = stop + 1
