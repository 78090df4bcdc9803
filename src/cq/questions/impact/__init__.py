"""What a change can break: all that depends on a definition."""

from __future__ import annotations

from collections import Counter
from posixpath import normpath
from textwrap import dedent
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec

from cq.answers.edges import Edges, Least
from cq.answers.options import Option, Options, Paged
from cq.answers.page import Page, count_tokens, take
from cq.answers.unlinked import note_unlinked
from cq.answers.words import count
from cq.graph.walk import Link, Reached
from cq.languages.facts import extract_facts
from cq.model.answer import (
    EVIDENCE,
    SCHEMA_VERSION,
    Answer,
    Finding,
    Insight,
    NodeDetails,
    Risk,
    Run,
    Section,
    Slice,
    Truncation,
)
from cq.model.edge import CONFIDENCE, Candidate
from cq.model.errors import UsageError
from cq.model.facts import Import
from cq.model.history import Change
from cq.model.status import Degraded
from cq.snapshot.changes import find_changed, find_changes, find_defined
from cq.snapshot.relations import KINDS, Relations, check_walk, linked
from cq.snapshot.target import (
    Definition,
    describe_target,
    find_file,
    find_part,
    find_targets,
    module_name,
    say_nothing,
)
from cq.snapshot.walks import describe_links, find_centers, walk_from
from cq.source.language import detect_language
from cq.source.role import find_role

if TYPE_CHECKING:
    from cq.snapshot.snapshot import Snapshot

MAX_DEFINED = 50  # definitions of a path or module that are followed
MAX_NAMED = 3  # definitions whose calls that no link knows are told
MAX_VALUES = 100  # constants and fields of changed lines: who names one is looked for in all files with its name


class ImpactOptions(Options, frozen=True):
    """Of targets (a path or module is all that it defines), or of the definitions that changed lines belong to, and
    those that are gone (`changed`: by path, or `since`: what differs from a revision)."""

    examples: ClassVar[str] = """\
  cq impact QuerySet.get               who depends on it, three steps far
  cq impact --changed                  of what differs from the last commit
  cq impact --changed main --depth 5   of what differs from a branch"""

    targets: Annotated[
        tuple[str, ...],
        Option("a definition, a path or a module", "target", "TARGET", argument=True, place="part"),
    ] = ()
    changed: dict[str, Change] | None = None
    depth: Annotated[int, Option("how many steps (default: 3)", metavar="N")] = 3
    edges: Edges = KINDS
    least: Least = 0.0
    page: Paged = Page(40)
    since: Annotated[
        str | None, Option("what differs from REV (default: HEAD)", "changed", metavar="REV", bare="HEAD")
    ] = None

    def check(self) -> None:
        if not self.targets and self.changed is None and self.since is None:
            raise UsageError(
                "impact of what?", hint="give a TARGET, or --changed for what differs from the last commit"
            )
        self.page.check()
        check_walk(self.depth, self.edges, self.least)


@linked
def ask(snapshot: Snapshot, options: ImpactOptions) -> Answer:
    """By distance, then confidence, with one witness path each; tests apart, since they are to be run."""
    relations = snapshot.relations
    options.check()
    changed = options.changed or {}
    if options.since is not None:
        changed = find_changes(snapshot, options.since)
    rows, loose = find_changed(relations, changed)
    values = [row for row in rows if row.symbol.body_start < 0]
    rows = [row for row in rows if row.symbol.body_start >= 0] + values[:MAX_VALUES]
    removed = _find_removed(relations, changed)
    left = [place for name in removed for place in _find_left(relations, name)]
    parts: list[str] = []  # files that are targets as a whole
    twins: list[Definition] = []
    for text in options.targets:
        twins = [] if find_file(relations.files, text) else find_targets(relations.files, text)
        found = twins[:1]
        part = [] if found else find_part(relations.files, relations.paths(), text)
        if not found and not part:
            return say_nothing(relations.files, "impact", text)
        rows += found
        parts += part
    defined = find_defined(relations, parts)
    rows += defined[:MAX_DEFINED]
    events = _note_changes(loose, removed, [change.note for change in changed.values() if change.note])
    if not rows and not parts and not left:
        said = "changed lines" if changed else "nothing changed"
        return Answer(
            SCHEMA_VERSION, "impact", Run(generation=relations.files.generation), {"query": said}, degraded=events
        )
    centers = [*find_centers(relations, rows), *(Candidate(path, 0, "") for path in parts[:MAX_DEFINED])]
    inside = set(parts)
    beside = _find_importing(relations, inside) if inside and "imports" in options.edges else []
    found = walk_from(relations, centers, "dependents", options.depth, options.edges, options.least, beside)
    reached = [item for item in found.nodes if item.distance and item.node.path not in inside]
    reached.sort(key=_rate)
    shown, budget, cut = take(
        [*left, *reached],
        options.page,
        lambda item: item if isinstance(item, Finding) else relations.describe(item),
    )
    broken = [finding for finding in shown if finding.category == "left"]
    shown = shown[len(broken) :]
    tests = [
        finding for finding in shown if isinstance(finding.details, NodeDetails) and finding.details.role == "test"
    ]
    code = [finding for finding in shown if finding not in tests]
    in_tests = sum(1 for item in reached if find_role(item.node.path) == "test")
    sections = tuple(
        section
        for section in (
            Section(
                "Changed",
                "changed",
                len(rows),
                tuple(map(_describe_row, rows[:10])),
                aside=len(rows) == 1 and not parts,
            ),
            Section("Removed, Still Named", "left", len(left), tuple(broken)),
            Section("Dependents", "dependents", len(reached) - in_tests, tuple(code)),
            Section("Tests", "tests", in_tests, tuple(tests)),
        )
        if section.findings
    )
    files = {item.node.path for item in reached}
    direct = sum(1 for item in reached if item.distance == 1)
    drivers = [f"{len(left)} places name what is gone"] if left else []
    drivers += [f"{direct} direct dependents"] if direct else []
    drivers += [f"{len(files)} files"] if len(files) > 5 else []
    is_tested = in_tests > 0 or any(find_role(path) == "test" for path in parts)
    unlinked = note_unlinked(relations, "impact", [row for row in rows if row.symbol.body_start >= 0][:MAX_NAMED])
    # A test may be among the calls that nothing is known of.
    drivers += ["no test is known to reach it"] if not is_tested and not unlinked else []
    level = "high" if left or direct > 20 or len(files) > 20 else "medium" if direct > 3 or not is_tested else "low"
    return Answer(
        SCHEMA_VERSION,
        "impact",
        Run(generation=relations.files.generation),
        {"query": ", ".join(options.targets) or "changed lines", "definitions": len(rows), "depth": options.depth},
        found=len(reached) + len(left),
        insight=Insight(
            describe_target(twins or rows) if len(rows) == 1 and not parts else None,
            {
                "dependents": Slice(len(reached), f"definitions within {count(options.depth, 'step')}"),
                "files": Slice(len(files), "files"),
            },
            Risk(level, tuple(drivers), {"direct": direct, "dependents": len(reached), "tests": in_tests}),
            budget=msgspec.structs.replace(budget, used=count_tokens(sections, options.page.measure) + 150),
        ),
        sections=sections,
        degraded=(*events, *unlinked),
        truncated=(
            *_cut("definitions", MAX_DEFINED, len(defined)),
            *_cut("values", MAX_VALUES, len(values)),
            *found.truncated,
            *cut,
        ),
        edges=describe_links(relations, found.links),
    )


def _rate(item: Reached[Candidate]) -> tuple[bool, int, float, bool, Candidate]:
    """Tests apart, at last; of the same distance and confidence code before documents."""
    role = find_role(item.node.path)
    return role == "test", item.distance, -item.confidence, role == "doc", item.node


class _Removed(msgspec.Struct, frozen=True):
    path: str
    kind: str
    name: str


def _find_removed(relations: Relations, changed: dict[str, Change]) -> list[_Removed]:
    """What lines that are gone defined, and their file no longer does."""
    found: dict[_Removed, None] = {}
    for path in sorted(changed):
        held = relations.hold(path)
        kept = {symbol.name for symbols in (held.symbols if held is not None else ()) for symbol in symbols}
        for text in changed[path].removed:
            # Values among the lines of a function look like those of a module.
            is_root = not text[:1].isspace()
            facts = extract_facts(dedent(text.decode("utf-8", "replace")).encode(), detect_language(path, text))
            for symbol in facts.symbols:
                is_named = symbol.kind_group in ("function", "class", "method", "type") and symbol.kind != "lambda"
                is_value = is_root and symbol.kind_group == "value" and symbol.parent < 0
                if symbol.name not in kept and (is_named or is_value):
                    found[_Removed(path, symbol.kind, symbol.name)] = None
    return list(found)[:MAX_DEFINED]


def _find_left(relations: Relations, removed: _Removed) -> list[Finding]:
    """Where code still names what is gone, and nothing else is known to be meant; imports of it first."""
    found: list[Finding] = []
    for file in relations.files.candidates((removed.name,)):
        held = relations.hold(file.path)
        for document, start, end, ref in relations.meanings.find_named(file.path, removed.name) if held else ():
            if held is None or (ref is not None and ref.candidates):
                continue
            items = [item for item in held.imports[document][0] if item.start <= start < item.end]
            language = held.documents[document].language
            is_import = any(_leads_to(relations, file.path, language, item, removed.path) for item in items)
            if not is_import and (items or (ref is not None and ref.status == "external")):
                continue
            details = NodeDetails(
                removed.name, removed.kind, held.role, 1, "resolved" if is_import else "ambiguous",
                "imports" if is_import else "usages",
            )  # fmt: skip
            doubt = "" if is_import else " (by name)"
            message = f"{removed.kind} {removed.name} of {removed.path}{doubt}: {held.line_at(start).strip()}"
            score = EVIDENCE["resolved" if is_import else "unresolved"]
            found.append(Finding("left", message, held.locate(start, end), score, score, details))
    return sorted(found, key=lambda finding: -(finding.confidence or 0))


def _leads_to(relations: Relations, path: str, language: str, item: Import, target: str) -> bool:
    """Whether an import names a file, be it gone."""
    sources = relations.documents.find_sources(path, language, [item])[0] or ()
    if relations.hold(target) is not None:
        return any(source.path == target for source in sources)
    beside = normpath(f"{path.rpartition('/')[0] or '.'}/{item.module}")
    named = f".{module_name(target)}"
    return target.startswith(f"{beside}.") or any(named.endswith(f".{source.module}") for source in sources)


def _note_changes(loose: int, removed: list[_Removed], notes: list[str]) -> tuple[Degraded, ...]:
    said = [f"{loose} changed lines stand in no definition: who loads their files depends on them"] if loose else []
    said += [f"no longer defined: {', '.join(f'{r.name} ({r.path})' for r in removed[:10])}"] if removed else []
    said += [f"of {count} changed files {note}" for note, count in sorted(Counter(notes).items())]
    return tuple(Degraded("impact", "info", "changed", message, "") for message in said)


def _find_importing(relations: Relations, inside: set[str]) -> list[Link[Candidate]]:
    """Of the files around those that are targets, which import one of them: the names that pass through a file mean
    what stands elsewhere, and are gone with the file all the same."""
    found: dict[Link[Candidate], None] = {}
    for path in relations.paths():
        held = relations.hold(path) if path not in inside else None
        for document, (items, _) in enumerate(held.imports if held is not None else ()):
            if held is None or not items:
                continue
            every = relations.documents.find_sources(path, held.documents[document].language, items)
            named = {source.path for sources in every for source in sources or ()} & inside
            source = Candidate(path, 0, "")  # the code blocks of a page are one
            found |= {
                Link(source, Candidate(target, 0, ""), "imports", CONFIDENCE["import"]): None
                for target in sorted(named)
            }
    return list(found)


def _cut(what: str, limit: int, count: int) -> list[Truncation]:
    return [Truncation("impact", what, limit, count, count - limit)] if count > limit else []


def _describe_row(row: Definition) -> Finding:
    return Finding("changed", f"{row.symbol.kind} {row.symbol.qualified_name}", row.location)
