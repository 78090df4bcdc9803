"""What changed in a tree, as definitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cq.model.errors import UsageError
from cq.model.facts import is_looked_up
from cq.model.history import Change
from cq.snapshot.relations import Relations
from cq.snapshot.target import Definition

if TYPE_CHECKING:
    from cq.snapshot.snapshot import Snapshot


def find_changes(snapshot: Snapshot, since: str) -> dict[str, Change]:
    """What in the work tree differs from a revision, by path; UsageError where git cannot say."""
    from cq.source.checkout import GitError
    from cq.source.git import find_changes

    if snapshot.index.revision is not None:
        raise UsageError("--changed is about the work tree, --as-of about a revision", hint="give one or the other")
    try:
        return find_changes(snapshot.root, since)
    except GitError as error:
        hint = "it needs a git repository and a revision of it"
        raise UsageError(f"--changed {since}: {error}", hint=hint) from None


def find_changed(relations: Relations, changed: dict[str, Change]) -> tuple[list[Definition], int]:
    """The innermost definition of every changed line, and of both lines around a gap; and how many lines of code
    belong to none."""
    found: dict[tuple[str, int, int], Definition] = {}
    loose = 0
    for path in sorted(changed):
        held = relations.hold(path)
        if held is None:
            continue
        spans = [
            (held.lines.line(symbol.start), held.lines.line(max(symbol.end - 1, 0)), Definition(held, document, number))
            for document, symbols in enumerate(held.symbols)
            for number, symbol in enumerate(symbols)
            if symbol.body_start >= 0 or is_looked_up(symbol, symbols)
        ]
        code = {held.lines.line(start) for references in held.references for _, start, _, _ in references}
        innermost: dict[int, Definition] = {}  # by line; what stands inside comes later
        for start, end, row in spans:
            innermost.update(dict.fromkeys(range(start, end + 1), row))
        change = changed[path]
        loose += sum(1 for line in change.lines if line in code and line not in innermost)
        inside = [innermost[line] for line in change.lines if line in innermost]
        for line in change.gaps:
            inside += [row for start, end, row in spans if start <= line < end][-1:]
        found |= {row.key: row for row in inside}
    return list(found.values()), loose


def find_defined(relations: Relations, paths: Sequence[str]) -> list[Definition]:
    """What files define at root level, what others are meant to use first."""
    found: list[Definition] = []
    for path in paths:
        held = relations.hold(path)
        for document, symbols in enumerate(held.symbols if held is not None else ()):
            rows = [number for number, symbol in enumerate(symbols) if symbol.parent < 0 and symbol.body_start >= 0]
            found += [Definition(held, document, number) for number in rows if held is not None]
    return sorted(found, key=lambda row: (row.file.role == "test", row.symbol.name.startswith("_"), row.key))
