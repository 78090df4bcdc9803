"""What others than our own resolution say that calls mean: language servers, indexes made by compilers. It completes
what we left open. Where we are sure of something else, an index that the user handed over outranks us and a language
server does not; either way that is a conflict, for people to look at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from cq.model.edge import MAX_CANDIDATES, Candidate, Links, SymbolRef

# How often an outside source is right where we were not sure (bench part `providers`).
CONFIDENCE = 0.97


OUTRANKING = ("scip",)
RAN = "trace"  # the source, and the evidence, of what was seen to run


class Statement(msgspec.Struct, frozen=True, gc=False):
    """One call, by document and its number there. A `target` in the repository, or the `module` outside of it that
    holds it. `constructor` is what the call runs where the target is a class. `ran`: the target was seen to run there,
    which says nothing about what else may."""

    document: int
    call: int
    target: Candidate | None = None
    module: str = ""
    constructor: Candidate | None = None
    ran: bool = False


class Ran(msgspec.Struct, frozen=True):
    """One definition that ran another, and whether links say so."""

    place: str
    caller: str
    callee: str


class TraceReport(msgspec.Struct, frozen=True):
    """What a recording of running programs shows, beside what links say. An edge is a definition that ran another."""

    rows: int = 0
    unknown: int = 0  # rows about files that are not here
    unplaced: int = 0  # rows of which no definition begins where they say
    elsewhere: int = 0  # rows of which no call stands there: an operator, a loop, an attribute
    calls: int = 0  # that something is now known to run at
    edges: int = 0
    certain: int = 0
    possible: int = 0
    lacking: int = 0
    first_lacking: tuple[Ran, ...] = ()


class Conflict(msgspec.Struct, frozen=True):
    """`ours` and `theirs` are sure of different things; ours stands, unless the source outranks us. Two sources can
    also contradict each other."""

    call: int
    source: str
    ours: str
    theirs: str


def merge_evidence(
    links: Links, said: Mapping[int, Sequence[tuple[str, Statement]]]
) -> tuple[Links, tuple[Conflict, ...]]:
    """The links with every open call closed that the sources agree on. `said`: by call, what each source says."""
    refs, calls, constructors, runs = list(links.refs), list(links.calls), dict(links.constructors), dict(links.runs)
    conflicts: list[Conflict] = []
    for call, statements in sorted(said.items()):
        if call >= len(calls):
            continue
        ran = dict.fromkeys(each.target for _, each in statements if each.ran and each.target is not None)
        if ran:
            _add_ran(links, refs, runs, call, ran)
            statements = [each for each in statements if not each[1].ran]
            if not statements:
                continue
        ref, (source, first) = refs[calls[call]], min(statements, key=lambda each: each[0])
        built = links.constructors.get(call)
        ours = "" if ref.status not in ("resolved", "external") else _name(ref.resolved, ref.module)
        same = {ours, *(_name(place, "") for place in (refs[built].candidates if built is not None else ()))}
        for other, statement in statements:
            theirs = _name(statement.target, statement.module)
            if ours and not (ref.status == "external" and statement.target is None) and theirs not in same:
                conflicts.append(Conflict(call, other, ours, theirs))
            elif not ours and theirs != _name(first.target, first.module):
                conflicts.append(Conflict(call, other, f"{_name(first.target, first.module)} for {source}", theirs))
        higher = [each for each in statements if each[0] in OUTRANKING]
        if higher and (not ours or any(each.call == call and each.source in OUTRANKING for each in conflicts)):
            source, first = higher[0]
        elif ours or any(conflict.call == call for conflict in conflicts):
            continue
        refs.append(_make_ref(ref.name, source, first.target, first.module))
        calls[call] = len(refs) - 1
        constructors.pop(call, None)
        if first.constructor is not None:
            refs.append(_make_ref(ref.name, source, first.constructor, ""))
            constructors[call] = len(refs) - 1
    made = msgspec.structs.replace(links, refs=tuple(refs), calls=tuple(calls), constructors=constructors, runs=runs)
    return made, tuple(conflicts)


def _add_ran(links: Links, refs: list[SymbolRef], runs: dict[int, int], call: int, ran: Iterable[Candidate]) -> None:
    """Beside what a call means and runs as far as links are sure, what was seen to run there."""
    numbers = [links.calls[call]] if call not in links.replaced else []
    numbers += [each[call] for each in (links.constructors, links.callbacks, links.runs) if call in each]
    sure = {links.refs[number].resolved for number in numbers}
    others = [target for target in ran if target not in sure]
    if not others:
        return
    name, known = refs[links.calls[call]].name, refs[links.runs[call]] if call in links.runs else None
    places = (*sorted(others), *(place for place in (known.candidates if known else ()) if place not in others))
    status = "resolved" if len(places) == 1 else "ambiguous"
    refs.append(
        SymbolRef(name, status, RAN, CONFIDENCE, places[:MAX_CANDIDATES], "", max(0, len(places) - MAX_CANDIDATES))
    )
    runs[call] = len(refs) - 1


def _make_ref(name: str, source: str, target: Candidate | None, module: str) -> SymbolRef:
    if target is None:
        return SymbolRef(name, "external", source, CONFIDENCE, (), module)
    return SymbolRef(name, "resolved", source, CONFIDENCE, (target,))


def _name(target: Candidate | None, module: str) -> str:
    """Overloads of a function are one: `f#2` is `f`."""
    return f"{target.path}:{target.name.partition('#')[0]}" if target is not None else f"outside: {module}"
