"""What a change can break: all that depends on a definition, and call sites that a new signature would not fit."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cq.features.graph import describe_link, describe_target, find_centers, walk_from
from cq.features.page import Page, count_tokens, take
from cq.features.relations import CALLS, KINDS, Relations, check_walk
from cq.features.target import Definition, find_file, find_part, find_targets, say_nothing
from cq.model.answer import SCHEMA_VERSION, Answer, Finding, Insight, NodeDetails, Risk, Run, Section, Slice, Truncation
from cq.model.code import Parameter
from cq.model.edge import Candidate, Edge
from cq.model.errors import UsageError
from cq.model.facts import Call
from cq.source.role import find_role
from cq.syntax import extract_facts

MAX_DEFINED = 50  # definitions of a path or module that are followed


class ImpactOptions(msgspec.Struct, frozen=True):
    """Of targets (a path or module is all that it defines), or of the definitions that changed lines belong to
    (`changed`: path -> lines)."""

    targets: tuple[str, ...] = ()
    changed: dict[str, tuple[int, ...]] = {}
    depth: int = 3
    edges: tuple[str, ...] = KINDS
    least: float = 0.0
    page: Page = Page(40)

    def check(self) -> None:
        self.page.check()
        check_walk(self.depth, self.edges, self.least)


def find_impact(relations: Relations, options: ImpactOptions) -> Answer:
    """By distance, then confidence, with one witness path each; tests apart, since they are to be run."""
    options.check()
    rows = _find_changed(relations, options.changed)
    parts: list[str] = []  # files that are targets as a whole
    for text in options.targets:
        found = [] if find_file(relations.files, text) else find_targets(relations.files, text)[:1]
        part = [] if found else find_part(relations.files, relations.paths(), text)
        if not found and not part:
            return say_nothing(relations.files, "impact", text)
        rows += found
        parts += part
    defined = _find_defined(relations, parts)
    rows += defined[:MAX_DEFINED]
    if not rows and not parts:
        return Answer(
            SCHEMA_VERSION, "impact", Run(generation=relations.files.generation), {"query": "nothing changed"}
        )
    centers = [*find_centers(relations, rows), *(Candidate(path, 0, "") for path in parts[:MAX_DEFINED])]
    found = walk_from(relations, centers, "dependents", options.depth, options.edges, options.least)
    inside = set(parts)
    reached = [item for item in found.nodes if item.distance and item.node.path not in inside]
    reached.sort(key=lambda item: (find_role(item.node.path) == "test", item.distance, -item.confidence, item.node))
    shown, budget, cut = take(reached, options.page, relations.describe)
    tests = [
        finding for finding in shown if isinstance(finding.details, NodeDetails) and finding.details.role == "test"
    ]
    code = [finding for finding in shown if finding not in tests]
    in_tests = sum(1 for item in reached if find_role(item.node.path) == "test")
    sections = tuple(
        section
        for section in (
            Section("Changed", "changed", len(rows), tuple(map(_describe_row, rows[:10]))),
            Section("Dependents", "dependents", len(reached) - in_tests, tuple(code)),
            Section("Tests", "tests", in_tests, tuple(tests)),
        )
        if section.findings
    )
    files = {item.node.path for item in reached}
    direct = sum(1 for item in reached if item.distance == 1)
    drivers = [f"{direct} direct dependents"] if direct else []
    drivers += [f"{len(files)} files"] if len(files) > 5 else []
    drivers += ["no test is known to reach it"] if not in_tests else []
    level = "high" if direct > 20 or len(files) > 20 else "medium" if direct > 3 or not in_tests else "low"
    return Answer(
        SCHEMA_VERSION,
        "impact",
        Run(generation=relations.files.generation),
        {"query": ", ".join(options.targets) or "changed lines", "definitions": len(rows), "depth": options.depth},
        found=len(reached),
        insight=Insight(
            describe_target(rows) if rows and not parts else None,
            {
                "dependents": Slice(len(reached), f"definitions within {options.depth}"),
                "files": Slice(len(files), "files"),
            },
            Risk(level, tuple(drivers), {"direct": direct, "dependents": len(reached), "tests": in_tests}),
            budget=msgspec.structs.replace(budget, used=count_tokens(sections, options.page.measure) + 150),
        ),
        sections=sections,
        truncated=(*_cut_defined(len(defined)), *found.truncated, *cut),
        edges=tuple(describe_link(relations, link) for link in found.links),
    )


def _find_changed(relations: Relations, changed: dict[str, tuple[int, ...]]) -> list[Definition]:
    """The innermost definition of every changed line; lines at root level belong to none."""
    found: dict[tuple[str, int, int], Definition] = {}
    for path in sorted(changed):
        held = relations.hold(path)
        if held is None:
            continue
        for line in changed[path]:
            offset = held.lines.offset(line)
            inside = [
                Definition(held, document, number)
                for document, symbols in enumerate(held.symbols)
                for number, symbol in enumerate(symbols)
                if symbol.body_start >= 0 and held.lines.line(symbol.start) <= line and offset < symbol.end
            ]
            if inside:
                found[inside[-1].key] = inside[-1]
    return list(found.values())


def _find_defined(relations: Relations, paths: Sequence[str]) -> list[Definition]:
    """What files define at root level, what others are meant to use first."""
    found: list[Definition] = []
    for path in paths:
        held = relations.hold(path)
        for document, symbols in enumerate(held.symbols if held is not None else ()):
            rows = [number for number, symbol in enumerate(symbols) if symbol.parent < 0 and symbol.body_start >= 0]
            found += [Definition(held, document, number) for number in rows if held is not None]
    return sorted(found, key=lambda row: (row.file.role == "test", row.symbol.name.startswith("_"), row.key))


def _cut_defined(count: int) -> list[Truncation]:
    over = count - MAX_DEFINED
    return [Truncation("impact", "definitions", MAX_DEFINED, count, over)] if over > 0 else []


def _describe_row(row: Definition) -> Finding:
    return Finding("changed", f"{row.symbol.kind} {row.symbol.qualified_name}", row.location)


class SignatureOptions(msgspec.Struct, frozen=True):
    target: str
    to: str
    page: Page = Page(40)


def find_signature_impact(relations: Relations, options: SignatureOptions) -> Answer:
    """Per call site whether a new signature takes the call: breaks, ambiguous, ok; in this order."""
    options.page.check()
    named = find_targets(relations.files, options.target)
    rows = [row for row in named if row.symbol.kind_group in _FUNCTIONS]
    rows = rows or [maker for row in named for maker in _find_constructors(row)]  # a class is called by it
    if not rows:
        what = named[0].symbol if named else None
        message = f"{what.kind} {what.qualified_name} has no signature: it is no function" if what else ""
        return say_nothing(relations.files, "sig-impact", options.target, message)
    row = rows[0]
    language = row.file.documents[row.document].language
    new = parse_signature(options.to, language, row.symbol.name)
    old = parse_signature(row.symbol.signature.removeprefix("async "), language, row.symbol.name)
    node = relations.node(row)
    verdicts: list[tuple[int, Edge, Call, str, str]] = []
    for edge in relations.edges.find_into(node):
        call = relations.call(edge)
        if edge.kind in CALLS and call is not None:
            verdict, reason = check_call(call, old, new, bound=_is_bound(relations, row, call))
            if verdict == "breaks" and not _is_certain(relations, edge, node):
                verdict, reason = "ambiguous", f"{reason}; but it may mean another definition"
            verdicts.append((_ORDER.index(verdict), edge, call, verdict, reason))
    verdicts.sort(key=lambda item: (item[0], find_role(item[1].source.path) == "test", item[1].source, item[2].start))

    def make(item: tuple[int, Edge, Call, str, str]) -> Finding:
        _, edge, call, verdict, reason = item
        held = relations.hold(edge.source.path)
        place = max(call.name_start, call.start)
        details = NodeDetails(
            edge.source.name,
            "call",
            find_role(edge.source.path),
            1,
            edge.ref.status,
            edge.kind,
            verdict=verdict,
            reason=reason,
        )
        location = held.locate(place, call.end) if held else None
        line = held.line_at(place).strip() if held else ""
        return Finding(
            verdict,
            f"{verdict}: {reason}: {line}" if reason else f"{verdict}: {line}",
            location,
            edge.ref.confidence,
            edge.ref.confidence,
            details,
        )

    shown, budget, cut = take(verdicts, options.page, make)
    counts = {name: sum(1 for item in verdicts if item[3] == name) for name in _ORDER}
    sections = tuple(
        Section(name.capitalize(), name, counts[name], findings)
        for name in _ORDER
        if (findings := tuple(finding for finding in shown if finding.category == name))
    )
    drivers = tuple(f"{counts[name]} {name}" for name in ("breaks", "ambiguous") if counts[name])
    level = "high" if counts["breaks"] else "medium" if counts["ambiguous"] else "low"
    return Answer(
        SCHEMA_VERSION,
        "sig-impact",
        Run(generation=relations.files.generation),
        {"query": options.target, "from": row.symbol.signature, "to": options.to, **counts},
        found=len(verdicts),
        insight=Insight(
            describe_target(rows),
            {"call_sites": Slice(len(verdicts), "call sites")},
            Risk(level, drivers, counts),
            budget=msgspec.structs.replace(budget, used=count_tokens(sections, options.page.measure) + 150),
        ),
        sections=sections,
        truncated=tuple(cut),
    )


def _find_constructors(row: Definition) -> list[Definition]:
    symbols = row.file.symbols[row.document]
    return [
        Definition(row.file, row.document, number)
        for number, symbol in enumerate(symbols)
        if symbol.kind == "constructor" and symbol.parent == row.number
    ]


def _is_certain(relations: Relations, edge: Edge, node: Candidate) -> bool:
    """Whether a call means just this, be it that a class below may have it too: `self.f()`."""
    meant = relations.edges.find_call(edge.source.path, edge.source.document, edge.call)
    return edge.ref.status == "resolved" or meant.resolved == node


_ORDER = ("breaks", "ambiguous", "ok")
_FUNCTIONS = ("function", "method")
_SHAPES = {"python": "def {}: pass", "rust": "fn {} {{}}"}


def parse_signature(text: str, language: str, name: str) -> tuple[Parameter, ...]:
    """The parameters of `f(a, *, b=1)`, read by the language itself; UsageError for what is none."""
    head, bracket, rest = text.strip().partition("(")
    if not bracket or not rest.rstrip().rpartition(")")[1]:
        raise UsageError(f"{text!r} is not a signature", hint=f"e.g. '{name}(a, *, b=1)'")
    head = head.split()[-1] if head.split() else name
    head = head if head.isidentifier() else name
    source = _SHAPES.get(language, "function {} {{}}").format(f"{head}({rest}")
    facts = extract_facts(source.encode(), language)
    definitions = facts.code.definitions if facts.code is not None else ()
    if facts.problems or not definitions:
        raise UsageError(f"{text!r} is not a signature in {language}", hint=f"e.g. '{name}(a, *, b=1)'")
    return definitions[0].parameters


def check_call(call: Call, old: Sequence[Parameter], new: Sequence[Parameter], *, bound: bool) -> tuple[str, str]:
    """(verdict, reason). `bound`: the receiver takes the first parameter."""
    skip = 1 if bound else 0
    before, after = list(old)[skip:], list(new)[skip:]
    spread = [argument for argument in call.args if argument.spread or argument.kind == "spread"]
    star = any(not argument.text.startswith("**") for argument in spread) or call.arg_count > len(call.args)
    double = any(argument.text.startswith("**") for argument in spread)
    count = call.arg_count - sum(1 for argument in spread if not argument.name)
    by_place = [p for p in after if p.kind in ("", "/")]
    takes_rest, takes_keys = (any(p.kind == kind for p in after) for kind in ("*", "**"))
    names = {p.name for p in after if p.kind in ("", "k")}
    if count > len(by_place) and not takes_rest:
        return "breaks", f"{count} arguments by place, {len(by_place)} taken"
    unknown = [key for key in call.keywords if key not in names]
    if unknown and not takes_keys:
        return "breaks", f"no parameter {unknown[0]!r}"
    twice = [p.name for p in by_place[:count] if p.name in call.keywords]
    if twice:
        return "breaks", f"{twice[0]!r} is given twice"
    missing = [p.name for p in by_place[count:] if not p.optional and (p.name not in call.keywords or p.kind == "/")]
    missing += [p.name for p in after if p.kind == "k" and not p.optional and p.name not in call.keywords]
    if missing and not (star or double):
        return "breaks", f"{missing[0]!r} is not given"
    if missing or star:
        what = "* and **" if star and double else "*" if star else "**"
        return "ambiguous", f"what {what} passes is not known" + (
            f"; {missing[0]!r} must be among it" if missing else ""
        )
    if double and not takes_keys:
        return "ambiguous", "what ** passes is not known"
    was = [p.name for p in before if p.kind in ("", "/")][:count]
    now = [p.name for p in by_place][:count]
    for number, (one, other) in enumerate(zip(was, now, strict=False), 1):
        if one != other and (one in names or other in {p.name for p in before}):
            return "ambiguous", f"argument {number} was {one!r} and becomes {other!r}"
    return "ok", ""


def _is_bound(relations: Relations, row: Definition, call: Call) -> bool:
    """Whether the receiver fills the first parameter: a method called on an instance, and a constructor."""
    symbol, owner = row.symbol, row.parent
    if symbol.kind_group != "method" or owner is None or any(d.startswith("staticmethod") for d in symbol.decorators):
        return False
    if row.file.documents[row.document].language != "python":
        return False  # their receivers are no parameters in a call
    through_class = call.receiver.rpartition(".")[2] == owner.name
    return not through_class or any(d.startswith("classmethod") for d in symbol.decorators)
