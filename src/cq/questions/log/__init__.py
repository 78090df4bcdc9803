"""The commits that changed one definition: its signature, its body, its name or its place, back to the one that made
it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from time import gmtime, strftime
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec

from cq.answers.options import OneTarget, Option, Options, PagedRows
from cq.answers.page import Page, count_tokens, take
from cq.answers.words import count
from cq.indexing.read import extract_source
from cq.model.answer import SCHEMA_VERSION, Answer, CommitDetails, Finding, Insight, Run, Section, Slice, Truncation
from cq.model.errors import UsageError
from cq.model.history import Commit
from cq.model.source import Problem, Skip
from cq.snapshot.files import HeldFile, hold_source
from cq.snapshot.pairing import Key, Pair, Side, list_sides, pair_moved
from cq.snapshot.target import describe_target, find_targets, say_nothing
from cq.source.checkout import GitError
from cq.source.read import decode
from cq.source.revision import Log, open_log

if TYPE_CHECKING:
    from cq.snapshot.snapshot import Snapshot

MAX_COMMITS = 500  # of one file that are looked at
MAX_FILES = 300  # of one commit that a definition may have come from


class LogOptions(Options, frozen=True):
    examples: ClassVar[str] = """\
  cq log QuerySet.get                what changed it, the newest first, through other names and places
  cq log QuerySet.get --introduced   the commit that made it"""

    target: OneTarget
    introduced: Annotated[bool, Option("only the commit that made it")] = False
    page: PagedRows = Page(40)


class _Change(msgspec.Struct, frozen=True):
    commit: Commit | None  # None: not committed yet
    details: CommitDetails


def ask(snapshot: Snapshot, options: LogOptions) -> Answer:
    """The newest first. A commit that changed only what the definition calls, or who calls it, is none of them."""
    files = snapshot.indexed
    options.page.check()
    rows = find_targets(files, options.target)
    if not rows:
        return say_nothing(files, "log", options.target)
    row = rows[0]
    key = next((key for key, side in list_sides(row.file, []).items() if side.row.key == row.key), None)
    if key is None:
        symbol = row.symbol
        message = f"{symbol.kind} {symbol.qualified_name} is a part of another definition: ask about that"
        return say_nothing(files, "log", options.target, message)
    revision = snapshot.index.revision
    try:
        with open_log(os.fspath(snapshot.root)) as log:
            walk = _Walk(log)
            changes = list(walk.run(revision.commit if revision else "HEAD", row.file, key, is_disk=revision is None))
    except GitError as error:
        raise UsageError(f"log: {error}", hint="it needs a git repository with commits") from None
    made = next((change for change in changes if "introduced" in change.details.changes), None)
    listed = [each for each in changes if each is made] if options.introduced else changes
    shown, budget, cut = take(listed, options.page, _describe)
    sections = (Section("Commits", "commits", len(listed), tuple(shown)),) if shown else ()
    said = count(sum(1 for change in changes if change.commit is not None), "commit")
    headline = f"{said} changed it" + (f"; {_name(made)} made it" if made is not None else "")
    return Answer(
        SCHEMA_VERSION,
        "log",
        Run(generation=files.generation),
        {"query": options.target, "commits": len(changes), "introduced": _hash(made)},
        found=len(listed),
        insight=Insight(
            describe_target(rows),
            {"commits": Slice(len(changes), "commits that changed it")},
            budget=msgspec.structs.replace(budget, used=count_tokens(sections, options.page.measure) + 80),
            headline=headline,
        ),
        sections=sections,
        truncated=(*walk.cut, *cut),
    )


def _hash(change: _Change | None) -> str:
    return change.commit.hash if change is not None and change.commit is not None else ""


def _name(change: _Change) -> str:
    return _hash(change)[:12] or "what is not committed yet"


class _Walk:
    """From one state of a definition to the one before, commit by commit."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.cut: list[Truncation] = []
        self._partial: dict[str, tuple[Problem, ...]] = {}

    def run(self, start: str, file: HeldFile, key: Key, *, is_disk: bool) -> Iterator[_Change]:
        side = list_sides(file, [])[key]
        if is_disk:
            (text,) = self.log.read([(start, file.path)])
            committed = self._find(file.path, text, key)
            if committed is None:
                yield _tell(None, ["introduced"], None, side)
                return  # it is new, or came from elsewhere: nothing is committed of it by this name
            if changes := _compare(committed, side):
                yield _tell(None, changes, committed, side)
            side = committed
        path, seen = file.path, set[tuple[str, str, Key]]()
        while (start, path, key) not in seen:
            seen.add((start, path, key))
            commits = self.log.find_commits(start, path, MAX_COMMITS)
            if len(commits) == MAX_COMMITS:
                self.cut.append(Truncation(path, "commits", MAX_COMMITS, MAX_COMMITS, 0))
            moved = None
            for commit, old, new in self._pair(commits, path, key):
                if new is None:
                    continue  # on another branch, or gone meanwhile
                if old is not None:
                    if changes := _compare(old, new):
                        yield _tell(commit, changes, old, new)
                    continue
                moved = self._find_earlier(commit, new)
                if moved is None or moved.old is None:
                    yield _tell(commit, ["introduced"], None, new)
                    return
                earlier = moved.old
                changes = ["renamed"] if earlier.name != new.name else []
                changes += ["moved"] if earlier.path != path else []
                yield _tell(commit, [*changes, *_compare(earlier, new)], earlier, new)
                start, path = commit.parents[0], earlier.path
                key = next(at for at, each in list_sides(earlier.row.file, []).items() if each.name == earlier.name)
                break
            if moved is None:
                return

    def _pair(
        self, commits: Sequence[Commit], path: str, key: Key
    ) -> Iterator[tuple[Commit, Side | None, Side | None]]:
        """Each commit with the definition before and after it."""
        for at in range(0, len(commits), 50):
            part = commits[at : at + 50]
            places = [(name, path) for commit in part for name in (commit.hash, *commit.parents)]
            texts = dict(zip(places, self.log.read(places), strict=True))
            for commit in part:
                new = self._find(path, texts[commit.hash, path], key)
                olds = [self._find(path, texts[name, path], key) for name in commit.parents]
                known = [old for old in olds if old is not None]
                # A merge changed nothing where one of its parents has it as it is.
                same = next((old for old in known if new is not None and old.text == new.text), None)
                yield commit, same or (known[0] if known else None), new

    def _find(self, path: str, text: bytes | None, key: Key) -> Side | None:
        return None if text is None else list_sides(self._hold(path, text), []).get(key)

    def _hold(self, path: str, text: bytes) -> HeldFile | None:
        source = decode(text, path)
        return None if isinstance(source, Skip) else hold_source(source, extract_source, self._partial)

    def _find_earlier(self, commit: Commit, made: Side) -> Pair | None:
        """What a definition was before a commit gave it another name or place."""
        if not commit.parents:
            return None
        paths = self.log.list_changed(commit.hash)
        if len(paths) > MAX_FILES:
            self.cut.append(Truncation(commit.hash[:12], "files", MAX_FILES, len(paths), len(paths) - MAX_FILES))
        # Its own file first: most that get another name stay where they are. Then those that are called like it.
        name = made.path.rpartition("/")[2]
        paths.sort(key=lambda path: (path != made.path, path.rpartition("/")[2] != name, path))
        paths = paths[:MAX_FILES]
        before = self.log.read([(commit.parents[0], path) for path in paths])
        after = self.log.read([(commit.hash, path) for path in paths])
        lost: list[Side] = []
        others: list[Side] = [made]
        for path, old, new in zip(paths, before, after, strict=True):
            left = list_sides(self._hold(path, old), []) if old is not None else {}
            right = list_sides(self._hold(path, new), []) if new is not None else {}
            lost += [side for key, side in left.items() if key not in right]
            own = (made.path, made.name)
            others += [side for key, side in right.items() if key not in left and (side.path, side.name) != own]
        return next((pair for pair in pair_moved(lost, others) if pair.new is made), None)


def _compare(old: Side, new: Side) -> list[str]:
    """What of a definition is another now, but for its name and place."""
    own = re.compile(rb"\b%s\b" % re.escape(old.row.symbol.name.encode()))
    text, code = (own.sub(new.row.symbol.name.encode(), part) for part in (old.text, old.code))
    if text == new.text:
        return []
    one, other = (" ".join(side.row.symbol.signature.split()) for side in (old, new))
    if own.sub(new.row.symbol.name.encode(), one.encode()) != other.encode():
        return ["signature"]
    return ["body"] if code != new.code else ["comments or format"]


def _tell(commit: Commit | None, changes: Sequence[str], old: Side | None, new: Side) -> _Change:
    details = CommitDetails(
        commit.hash if commit else "", commit.author if commit else "", commit.time if commit else 0,
        commit.subject if commit else "", tuple(changes), new.name, new.path,
        old_name=old.name if old and old.name != new.name else "",
        old_path=old.path if old and old.path != new.path else "",
    )  # fmt: skip
    return _Change(commit, details)


def _describe(change: _Change) -> Finding:
    details = change.details
    what = ", ".join(details.changes)
    if details.old_name or details.old_path:
        was = details.old_name or details.name
        what += f" (was {was}{f' in {details.old_path}' if details.old_path else ''})"
    if change.commit is None:
        return Finding("commit", f"not committed yet: {what}", details=details)
    day = strftime("%Y-%m-%d", gmtime(details.time))
    message = f"{details.commit[:12]} {day} {details.author}: {details.subject}   {what}"
    return Finding("commit", message, details=details, stable_id=details.commit)
