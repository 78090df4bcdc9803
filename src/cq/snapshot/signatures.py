"""Signatures: their parameters, as the code of a definition has them or as somebody writes them, and which calls of a
definition another signature would not take."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from cq.language import describe
from cq.languages.facts import extract_facts
from cq.model.code import NULL, Name, Parameter, Site, Spread
from cq.model.edge import Candidate, Edge
from cq.model.errors import UsageError
from cq.model.facts import Call
from cq.source.role import find_role

if TYPE_CHECKING:
    from cq.snapshot.relations import Relations
    from cq.snapshot.target import Definition

VERDICTS = ("breaks", "ambiguous", "elsewhere", "ok")  # the worst first
ELSEWHERE = "; but it may mean another definition"


class Verdict(msgspec.Struct, frozen=True):
    edge: Edge
    call: Call
    verdict: str
    reason: str
    elsewhere: bool = False  # it would break, but may be a call of another definition

    @property
    def kind(self) -> str:
        """Of the section it stands in."""
        return "elsewhere" if self.elsewhere else self.verdict

    @property
    def order(self) -> tuple[int, bool, Candidate, int]:
        source = self.edge.source
        return VERDICTS.index(self.kind), find_role(source.path) == "test", source, self.call.start


def parse_signature(text: str, language: str, name: str) -> tuple[Parameter, ...]:
    """The parameters of `f(a, *, b=1)`, read by the language itself; UsageError for what is none."""
    hint = f"e.g. '{name}(a, *, b=1)'"
    head, bracket, rest = text.strip().rstrip(":").partition("(")
    if not bracket or not rest.rstrip().rpartition(")")[1]:
        raise UsageError(f"{text!r} is not a signature", hint=hint)
    head = head.split()[-1] if head.split() else name
    head = head if head.isidentifier() else name
    source = describe(language).signature.format(f"{head}({rest}")
    facts = extract_facts(source.encode(), language)
    definitions = [d for d in facts.code.definitions if d.kind == "function"] if facts.code is not None else []
    if facts.problems or not definitions:
        raise UsageError(f"{text!r} is not a signature in {language}", hint=hint)
    parameters = definitions[0].parameters
    names = [parameter.name for parameter in parameters if parameter.name]
    twice = next((other for at, other in enumerate(names) if other in names[:at]), None)
    if twice is not None:
        raise UsageError(f"{text!r} is not a signature: {twice!r} is there twice", hint=hint)
    places = [parameter for parameter in parameters if parameter.kind in ("", "/")]
    late = next((p.name for last, p in pairwise(places) if last.optional and not p.optional), None)
    if late is not None and describe(language).receiver == "first":
        raise UsageError(f"{text!r} is not a signature: {late!r} needs a default, as what stands before it", hint=hint)
    return parameters


def find_parameters(relations: Relations, row: Definition) -> tuple[Parameter, ...] | None:
    """As its code has them; None where that is not known."""
    codes = relations.documents.codes(row.file.path)
    code = codes[row.document] if row.document < len(codes) else None
    found = (one for one in (code.definitions if code is not None else ()) if one.symbol == row.number)
    return next((one.parameters for one in found if one.kind == "function"), None)


def judge_calls(
    relations: Relations, row: Definition, old: Sequence[Parameter], new: Sequence[Parameter]
) -> Iterator[Verdict]:
    """Of every call, and of every place that runs an accessor: the call sites that `cq calls` lists."""
    node = relations.find_place(row)
    if node is None:  # an overload without code: calls lead to what has the code
        return
    for edge in relations.referrers.find_into(node):
        verdict = _judge(relations, row, edge, old, new)
        if verdict is not None:
            yield verdict
    for read in relations.usages.find_reads(node):
        held = relations.hold(read.source.path)
        if held is None:
            continue
        edge = Edge("reads", read.source, read.ref, -1)
        call = relations.read_as_call(held, read)
        if takes_all(old, new):
            yield Verdict(edge, call, "ok", "")
        elif row.symbol.kind != "accessor" or read.kind == "update":
            how = {"read": "read", "write": "set"}.get(read.kind, "read and set")
            yield Verdict(
                edge, call, "ambiguous", f"it runs where an attribute is {how}: the language passes what it gets"
            )
        else:
            values = (NULL,) if read.kind == "write" else ()
            site = Site(call.scope, call.start, call.end, Name(call.callee), values)
            verdict, reason = check_call(site, old, new, bound=takes_receiver(row))
            if verdict == "breaks" and read.ref.certainty != "certain":
                yield Verdict(edge, call, "ambiguous", f"{reason}{ELSEWHERE}", elsewhere=True)
            else:
                yield Verdict(edge, call, verdict, reason)


def _judge(
    relations: Relations, row: Definition, edge: Edge, old: Sequence[Parameter], new: Sequence[Parameter]
) -> Verdict | None:
    """None for an edge that is no call."""
    call = relations.call(edge)
    source, target = edge.source, relations.node(row)
    if call is None:
        return None
    site = relations.documents.find_site(source.path, source.document, edge.call)
    if site is None:
        return Verdict(edge, call, "ambiguous", "what it passes is not known")
    bound = takes_receiver(row) and not passes_receiver(relations, row, edge, call)
    why = find_indirection(relations, row, edge, call, target)
    if why and takes_all(old, new):
        return Verdict(edge, call, "ok", "")
    if why:
        return Verdict(edge, call, "ambiguous", why)
    verdict, reason = check_call(site, old, new, bound=bound)
    if verdict == "breaks" and edge.kind == "usages":
        verdict, reason = "ambiguous", f"{reason}; but it runs what a decorator gives"
    elif verdict == "breaks" and not _is_certain(relations, edge, target):
        return Verdict(edge, call, "ambiguous", f"{reason}{ELSEWHERE}", elsewhere=True)
    return Verdict(edge, call, verdict, reason)


def find_indirection(relations: Relations, row: Definition, edge: Edge, call: Call, target: Candidate) -> str:
    """Why a call does not pass just what is written in it; "" where it does."""
    source, name = edge.source, row.symbol.name
    if edge.ref == relations.calls.find_handed(source.path, source.document, edge.call):
        return "it is handed over here: what it is called with is not known"
    made = relations.calls.find_constructor(source.path, source.document, edge.call)
    if call.name == name or name == "__call__" or (made is not None and target in made.candidates):
        return ""
    if call.callee in relations.documents.find_locals(source.path, target):
        return ""
    return f"it is called as {call.name or call.callee!r}: arguments may be given already"


def takes_receiver(row: Definition) -> bool:
    """Whether the first parameter is what a method is called on."""
    symbol, receiver = row.symbol, describe(row.file.documents[row.document].language).receiver
    if receiver == "self":
        return bool(re.search(r"\(\s*(?:&\s*)?(?:'\w+\s+)?(?:mut\s+)?self\b", symbol.signature))
    is_static = any(name.startswith("staticmethod") for name in symbol.decorators)
    return receiver == "first" and symbol.kind_group == "method" and row.parent is not None and not is_static


def passes_receiver(relations: Relations, row: Definition, edge: Edge, call: Call) -> bool:
    """Whether a call passes the receiver itself: `Base.save(self, row)`, `Row::len(&row)`, `super().__new__(cls)`."""
    symbol, receiver, source = row.symbol, call.receiver, edge.source
    if describe(row.file.documents[row.document].language).receiver == "self":
        return call.callee.removesuffix(call.name).endswith("::")
    if call.name != symbol.name or any(name.startswith("classmethod") for name in symbol.decorators):
        return False
    if symbol.name == "__new__" or receiver.startswith("type(") or receiver.endswith(".__class__"):
        return True
    around = relations.definition(source)
    if around is not None and any(name.startswith("classmethod") for name in around.symbol.decorators):
        language = around.file.documents[around.document].language
        own = parse_signature(around.symbol.signature.removeprefix("async "), language, around.symbol.name)
        if own and own[0].name == receiver:
            return True
    if not all(part.isidentifier() for part in receiver.split(".")):
        return False
    place = relations.meanings.find_dotted(source.path, source.document, receiver, call.start).resolved
    found = relations.symbol(place) if place is not None else None
    return found is not None and found.kind_group == "class"


def _is_certain(relations: Relations, edge: Edge, target: Candidate) -> bool:
    """Whether a call means just this, be it that a class below may have it too: `self.f()`."""
    meant = relations.calls.find_call(edge.source.path, edge.source.document, edge.call)
    return edge.ref.certainty == "certain" or meant.resolved == target


def check_call(site: Site, old: Sequence[Parameter], new: Sequence[Parameter], *, bound: bool) -> tuple[str, str]:
    """(verdict, reason). `bound`: the receiver takes the first parameter."""
    skip = 1 if bound else 0
    before, after = list(old)[skip:], list(new)[skip:]
    star = any(isinstance(value, Spread) for value in site.args)
    double = any(name == "**" for name, _ in site.keywords)
    count = sum(not isinstance(value, Spread) for value in site.args)
    keywords = [name for name, _ in site.keywords if name != "**"]
    by_place = [p for p in after if p.kind in ("", "/")]
    takes_rest, takes_keys = (any(p.kind == kind for p in after) for kind in ("*", "**"))
    names = {p.name for p in after if p.kind in ("", "k")}
    if count > len(by_place) and not takes_rest:
        return "breaks", f"{count} arguments by place, {len(by_place)} taken"
    unknown = [key for key in keywords if key not in names]
    if unknown and not takes_keys:
        return "breaks", f"no parameter {unknown[0]!r}"
    twice = [p.name for p in by_place[:count] if p.name in keywords and p.kind != "/"]
    if twice:
        return "breaks", f"{twice[0]!r} is given twice"
    if (star or double) and takes_all(before, after):
        return "ok", ""
    missing = [p.name for p in by_place[count:] if not p.optional and (p.name not in keywords or p.kind == "/")]
    missing += [p.name for p in after if p.kind == "k" and not p.optional and p.name not in keywords]
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


def takes_all(old: Sequence[Parameter], new: Sequence[Parameter]) -> bool:
    """Whether every call that the old signature takes means the same to the new one."""
    was, now = ([p for p in side if p.kind in ("", "/")] for side in (old, new))
    kinds, keys = {p.kind for p in old}, {p.name: p for p in new if p.kind in ("", "k")}
    for one, other in zip(was, now, strict=False):
        if (one.kind == "" and (one.name != other.name or other.kind == "/")) or (one.optional and not other.optional):
            return False
    named = {p.name: p for p in old if p.kind == "k"}
    more = now[len(was) :]
    added = [p for p in (*more, *(p for p in new if p.kind == "k")) if p.name not in named]
    if len(was) > len(now) or any(not p.optional for p in added):
        return False
    if not kinds & {"*", "**"} <= {p.kind for p in new} or ("*" in kinds and more) or ("**" in kinds and added):
        return False
    return all(name in keys and (keys[name].optional or not p.optional) for name, p in named.items())
