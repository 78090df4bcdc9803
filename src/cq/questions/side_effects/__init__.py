"""What happens when a module is loaded: I/O, writes to what others share, the environment, registrations, and calls of
which nobody knows; told by the graph where it knows the callee, by tables of names where that comes from outside."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, ClassVar, NamedTuple

import msgspec

from cq.answers.options import Option, Options, Paged
from cq.answers.page import Page, count_tokens, take
from cq.language import describe
from cq.languages.effects import find_effect, load_effects
from cq.model.answer import SCHEMA_VERSION, Answer, EffectDetails, Finding, Insight, Run, Section, Slice, Truncation
from cq.model.code import Augmented, Branch, Code, Element, Imported
from cq.model.edge import Candidate, SymbolRef
from cq.model.facts import Call, Symbol
from cq.model.status import Degraded
from cq.questions.side_effects.loading import find_late
from cq.snapshot.bodies import Bodies
from cq.snapshot.files import HeldFile
from cq.snapshot.relations import Relations, linked, note_uncovered
from cq.snapshot.target import Definition, describe_target, find_targets, say_nothing

if TYPE_CHECKING:
    from cq.snapshot.snapshot import Snapshot

MAX_DEPTH = 4  # calls below one at root level whose code is looked at
MAX_NODES = 60  # definitions looked at below one call
MAX_LOOKED = 6000  # in one question
_TITLES = {
    "network": "Network", "process": "Processes and Other Code", "io": "Files and Streams",
    "environment": "Environment", "registration": "Registrations", "state": "Shared State",
    "import": "Modules Loaded for Their Effects",
    "unknown": "Calls of Unknown Effect", "pure": "Pure-Looking Calls",
}  # fmt: skip
_SAID = {
    "network": "of the network", "process": "of processes and other code", "io": "of files and streams",
    "environment": "of the environment", "registration": "registrations", "state": "writes to shared state",
    "import": "imports that bind nothing",
    "unknown": "calls of unknown effect", "pure": "pure-looking calls",
}  # fmt: skip
_OFTEN = 5
_AUGMENTING = frozenset(f"{sign}=" for sign in ("+", "-", "*", "/", "//", "%", "|", "&", "^", "@", "**", "<<", ">>"))
# Methods and functions that by their names hand something to somebody who keeps it.
_REGISTERING = re.compile(
    r"(?:un)?register(?:_\w+|[A-Z]\w*)?|connect|subscribe|add_(?:handler|listener|hook|command|url_rule|route|filter"
    r"|middleware|resource|argument|parser|type|plugin|renderer|extension)|addEventListener|addListener|on|once|use"
    r"|route|receiver|listens_for|task|shared_task|command|group|fixture|hookimpl|errorhandler|exception_handler"
    r"|before_request|after_request|simple_tag|inclusion_tag|filter|action|subscriber|event|on_event|middleware"
)
_OWN = frozenset({"module", "exports", "self", "this", "cls"})


class EffectsOptions(Options, frozen=True):
    """Of a path, a directory or a module; empty: of the whole tree. `pure` lists pure-looking calls as well."""

    examples: ClassVar[str] = """\
  cq side-effects                     of the whole repository, the strongest first
  cq side-effects src/app/config.py   of one file
  cq side-effects django.conf --pure  of a package, with calls that look pure"""

    path: Annotated[
        str, Option("a file, a directory or a module (default: all)", "", "PATH|MODULE", argument=True, place="part")
    ] = ""
    pure: Annotated[bool, Option("list what looks pure as well")] = False
    page: Paged = Page(40)


class _Effect(NamedTuple):
    effect: str
    what: str
    start: int
    end: int
    evidence: str
    through: tuple[str, ...] = ()
    shown: int = -1  # where the line begins that is shown: of a chain of calls, that of the name
    form: str = "call"


class _Row(NamedTuple):
    module: _Module
    found: _Effect


@linked
def ask(snapshot: Snapshot, options: EffectsOptions) -> Answer:
    """The strongest first; what looks pure is counted, and listed where asked for."""
    relations = snapshot.relations
    options.page.check()
    paths, part = relations.find_part(options.path)
    targets: list[Definition] = []
    if not part and options.path:
        targets = find_targets(relations.files, options.path)  # a definition: its module
        if not targets:
            return say_nothing(relations.files, "side-effects", options.path, f"no module is {options.path!r} here")
        paths = part = [targets[0].file.path]
    judge = _Judge(relations)
    rows = [_Row(module, found) for path in paths for module in judge.modules(path) for found in module.find()]
    modules = len({(row.module.path, row.module.document) for row in rows if row.found.effect != "pure"})
    often = Counter(_reason(row) for row in rows)
    rows.sort(
        key=lambda row: (*_rank(row, often), row.module.path, row.module.document, row.found.start, row.found.end)
    )
    listed = rows if options.pure else [row for row in rows if row.found.effect != "pure"]
    shown, budget, cut = take(listed, options.page, _describe)
    counts = {effect: sum(1 for row in rows if row.found.effect == effect) for effect in _TITLES}
    sections = [
        Section(_TITLES[effect], effect, counts[effect], findings)
        for effect in _TITLES
        if (findings := tuple(finding for finding in shown if finding.category == effect))
    ]
    if counts["pure"] and not options.pure:
        note = "counted only: --pure lists them"
        sections.append(Section(_TITLES["pure"], "pure", counts["pure"], collapsed=True, note=note))
    if judge.cut:
        cut.append(Truncation("side-effects", "definitions", MAX_LOOKED, MAX_LOOKED + judge.cut, judge.cut))
    slices = {effect: Slice(count, _SAID[effect]) for effect, count in counts.items()}
    slices["modules"] = Slice(modules, "modules that do more than define")
    budget = msgspec.structs.replace(budget, used=count_tokens(sections, options.page.measure) + 100)
    events = note_uncovered(relations, "side-effects", part, "effects")
    if not rows and not events:
        events.append(Degraded("side-effects", "info", "nothing", "loading it only defines things"))
    return Answer(
        SCHEMA_VERSION,
        "side-effects",
        Run(generation=relations.files.generation),
        {"query": options.path or "side effects", "modules": modules, **counts},
        found=len(listed),
        insight=Insight(describe_target(targets) if targets else None, slices, budget=budget)
        if targets or rows
        else None,
        sections=tuple(sections),
        degraded=tuple(events),
        truncated=tuple(cut),
    )


def _reason(row: _Row) -> tuple[str, str]:
    return row.found.effect, row.found.through[-1] if row.found.through else row.found.what


def _rank(row: _Row, often: Counter[tuple[str, str]]) -> tuple[bool, int, bool]:
    """Sources first, the strongest effect first; what happens over and over for one reason after what does not."""
    return row.module.role in ("test", "doc"), [*_TITLES].index(row.found.effect), often[_reason(row)] > _OFTEN


def _describe(row: _Row) -> Finding:
    module, found = row
    details = EffectDetails(
        found.effect, found.what, module.scope_name(found.start), module.language, module.role, found.evidence,
        found.through, found.form, module.is_conditional(found.start),
    )  # fmt: skip
    line = module.file.line_at(max(found.shown, found.start)).strip()
    through = f" ({found.through[-1]})" if found.through else ""
    location = module.file.locate(found.start, found.end)
    return Finding(found.effect, f"{line[:160]}{through}", location, details=details)


class _Module:
    """One document as it is loaded."""

    def __init__(self, judge: _Judge, file: HeldFile, document: int, code: Code) -> None:
        self.judge, self.file, self.path, self.document = judge, file, file.path, document
        self.role, self.code = file.role, code
        held, stored = file, file.documents[document]
        self.language = stored.language
        self.symbols: tuple[Symbol, ...] = held.symbols[document]
        self._bodies = Bodies(self.symbols)
        self._late = find_late(code, self.symbols, load_effects(self.language))
        self._holders: dict[str, set[int]] = {}
        self._imported: dict[str, str] = {}
        for bind in code.binds:
            self._holders.setdefault(bind.name, set()).add(bind.scope)
            if isinstance(bind.value, Imported):
                module, name = bind.value.module, bind.value.name
                self._imported[bind.name] = f"{module}.{name}" if name != "*" else module

    def find(self) -> Iterator[_Effect]:
        """Everything that happens, in no order."""
        written: list[tuple[int, int]] = []
        for start, base in self.writes:
            if self.is_loaded(start):
                written.append((start, start + len(base)))
                effect = self.judge_write(base, start)
                if effect:
                    yield _Effect(effect, base, start, start + len(base), "syntax", form="assignment")
        for item in self.file.imports[self.document][0]:
            if item.kind == "side_effect" and self.is_loaded(item.start):
                yield _Effect("import", item.module, item.start, item.end, "syntax", form="import")
        waited = {flow.value_start: flow for flow in self.file.flows[self.document] if flow.kind == "await"}
        called: list[tuple[int, int]] = []
        calls = self.file.calls[self.document]
        for number, call in enumerate(calls):
            at = max(call.name_start, call.start)
            if call.kind in ("import", "super") or not self.is_loaded(at):
                continue
            called.append((call.start, call.end))
            flow = waited.pop(call.start, None)
            form = "await" if flow is not None else "iife" if not call.name and call.callee[:1] == "(" else "call"
            yield self.judge.judge_call(self, number, call)._replace(form=form)
        for flow in waited.values():
            if self.is_loaded(flow.start):
                yield _Effect("unknown", f"await {flow.value}", flow.start, flow.end, "syntax", form="await")
        for start, end in self._find_environment():
            inside = any(first <= start < last for first, last in (*written, *called))
            if not inside and self.is_loaded(start):
                what = self.file.text[start:end].decode("utf-8", "replace")
                yield _Effect("environment", what, start, end, "syntax", form="read")

    @cached_property
    def writes(self) -> list[tuple[int, str]]:
        """(where, the dotted name that is written into) of every assignment to an attribute or an element."""
        found: list[tuple[int, str]] = []
        found += [(store.start, store.base) for store in self.code.stores if isinstance(store.base, str)]
        for _, start, operation, value in self.code.runs:
            target = value.target if isinstance(value, Augmented) else value
            if operation in _AUGMENTING and isinstance(target, Element) and isinstance(target.base, str):
                found.append((start, target.base))
            elif operation in _AUGMENTING and isinstance(target, str) and "." in target:
                found.append((start, target.rpartition(".")[0]))
        return sorted((start, base) for start, base in found if _is_dotted(base))

    def judge_write(self, base: str, start: int) -> str:
        """What an assignment into `base` is; "" where it stays at home: into what the module itself defines, when the
        module does it, into a local of a function."""
        head, dot, rest = base.partition(".")
        full = self._imported.get(head, head) + dot + rest
        if find_effect(full, self.language) == "environment":
            return "environment"
        holders, functions = self._holders.get(head, set[int]()), self.functions_around(start)
        if head in _OWN or any(number in holders or (number, head) in self._parameters for number in functions):
            return ""
        if functions or head in self._imported:
            return "state"
        return "" if -1 in holders or holders & self._classes else "state"

    def judge_own_call(self, call: Call) -> str:
        """Of a call that changes what it is called on, or, as `setattr` does, what it is given; "" for any other."""
        if call.name in load_effects(self.language).changing and _is_dotted(call.receiver):
            return self.judge_write(call.receiver, call.start) or "pure"
        if call.callee in ("setattr", "delattr") and call.args:
            base = call.args[0].text
            return self.judge_write(base, call.start) or "pure" if _is_dotted(base) else "state"
        return ""

    @cached_property
    def _parameters(self) -> set[tuple[int, str]]:
        return {(symbol.parent, symbol.name) for symbol in self.symbols if symbol.kind == "parameter"}

    def is_loaded(self, offset: int) -> bool:
        """Whether code runs as the module is loaded: at root level or in a class there, and under no guard."""
        if self.functions_around(offset):
            return False
        return not any(True for _ in self._late.around(offset))

    def is_conditional(self, offset: int) -> bool:
        return any(each.start <= offset < each.end and each.kind != "with" for each in self._branches)

    @cached_property
    def _branches(self) -> list[Branch]:
        return [each for each in self.code.branches if each.scope == -1]

    def scope_name(self, offset: int) -> str:
        return next((self.symbols[number].qualified_name for number in self._bodies.around(offset)), "")

    def functions_around(self, offset: int) -> list[int]:
        around = self._bodies.around(offset)
        return [number for number in around if self.symbols[number].kind_group in ("function", "method")]

    @cached_property
    def _classes(self) -> set[int]:
        return {number for number, symbol in enumerate(self.symbols) if symbol.kind_group == "class"}

    def _find_environment(self) -> Iterator[tuple[int, int]]:
        """Reads of `os.environ[…]`, `process.env.X`."""
        module, _, word = load_effects(self.language).environment.rpartition(".")
        before = f"{module}.".encode()
        references = self.file.references[self.document]
        if word and word in references.names:
            for name, start, end, _ in references:
                if name == word and self.file.text.endswith(before, 0, start):
                    yield start - len(before), end


class _Judge:
    """Says what calls do; keeps what it found for the length of one question."""

    def __init__(self, relations: Relations) -> None:
        self.relations = relations
        self.looked = self.cut = 0
        self._modules: dict[tuple[str, int], _Module | None] = {}
        self._known: dict[Candidate, tuple[str, tuple[str, ...]]] = {}

    def modules(self, path: str) -> list[_Module]:
        held = self.relations.hold(path)
        count = len(held.documents) if held is not None else 0
        return [module for number in range(count) if (module := self.module(path, number)) is not None]

    def module(self, path: str, document: int) -> _Module | None:
        key = (path, document)
        if key not in self._modules:
            held, codes = self.relations.hold(path), self.relations.documents.codes(path)
            code = codes[document] if document < len(codes) else None
            stored = held.documents[document] if held is not None else None
            # A block in a page of Markdown is shown, not loaded.
            shown = stored is None or (stored.segment is not None and stored.segment.kind == "fence")
            known = stored is not None and not shown and "effects" in describe(stored.language).offers
            self._modules[key] = _Module(self, held, document, code) if held and known and code is not None else None
        return self._modules[key]

    def judge_call(self, module: _Module, number: int, call: Call) -> _Effect:
        ref = self.relations.calls.find_call(module.path, module.document, number)
        start, end = call.start, min(call.end, call.start + 200)
        what = call.callee
        decorator = call.kind == "decorator"
        effect, evidence = _judge_name(ref, call, module.language)
        through: tuple[str, ...] = ()
        place = ref.resolved
        if decorator and what.partition("(")[0].rpartition(".")[2] in load_effects(module.language).pure_decorators:
            effect, evidence = "pure", "name"
        elif place is not None:
            made = self.relations.calls.find_constructor(module.path, module.document, number)
            found, through = self.judge_definition((made.resolved if made else None) or place)
            effect, evidence = found or "pure", "resolved"
            if effect == "state" and (decorator or _REGISTERING.fullmatch(call.name)):
                effect = "registration"
        elif effect in ("", "pure") and (changed := module.judge_own_call(call)):
            effect, evidence = changed, "syntax"
        elif not call.name and what.startswith("("):
            effect, evidence = "pure", "syntax"  # a function called where it is written: what it does stands for itself
        if not effect:
            effect, evidence = ("registration", "name") if _REGISTERING.fullmatch(call.name) else ("unknown", evidence)
        return _Effect(effect, what, start, end, evidence, through, call.name_start)

    def judge_definition(self, place: Candidate) -> tuple[str, tuple[str, ...]]:
        """The nearest effect of what a function does or calls, and the way to it; "" for none within some calls."""
        if place not in self._known:
            self._known[place] = self._look(place)
        return self._known[place]

    def _look(self, place: Candidate) -> tuple[str, tuple[str, ...]]:
        seen: dict[Candidate, tuple[str, ...]] = {place: ()}
        frontier = [place]
        for _ in range(MAX_DEPTH):
            ahead: list[Candidate] = []
            for here in frontier:
                if len(seen) > MAX_NODES or self.looked >= MAX_LOOKED:
                    self.cut += self.looked >= MAX_LOOKED
                    break
                self.looked += 1
                own = self._find_own(here)
                if own is not None:
                    effect, what, site = own
                    return effect, (*seen[here], f"{here.shown_name or here.path}: {what} at {site}")
                for edge in self.relations.referrers.find_out(here, possible=False):
                    target = edge.ref.resolved
                    if edge.kind == "calls" and target is not None and target not in seen:
                        step = f"{here.shown_name} calls {target.shown_name} at {self.relations.place(edge)}"
                        seen[target] = (*seen[here], step)
                        ahead.append(target)
            frontier = ahead
        return "", ()

    def _find_own(self, place: Candidate) -> tuple[str, str, str] | None:
        """The first effect in a function's own code: (effect, what, where)."""
        row, module = self.relations.definition(place), self.module(place.path, place.document)
        if row is None or module is None or row.symbol.kind_group not in ("function", "method"):
            return None
        symbol = row.symbol
        found: list[tuple[int, str, str]] = []
        for start, base in module.writes:
            if symbol.body_start <= start < symbol.body_end:
                effect = module.judge_write(base, start)
                found += [(start, effect, f"writes {base}")] if effect else []
        for bind in module.code.binds:  # after `global`; a binding counts from the end of its statement
            if bind.scope == -1 and symbol.body_start < bind.start <= symbol.body_end and not bind.inner:
                found.append((bind.start, "state", f"writes {bind.name}"))
        for edge in self.relations.referrers.find_out(place, possible=False):
            call = self.relations.call(edge)
            if call is None or edge.ref.status == "resolved":
                continue
            effect, _ = _judge_name(edge.ref, call, module.language)
            effect = (module.judge_own_call(call) if effect in ("", "pure") else "") or effect
            if effect not in ("", "pure", "unknown"):
                found.append((call.start, effect, f"calls {call.callee}"))
        if not found:
            return None
        start, effect, what = min(found)
        return effect, what, f"{place.path}:{module.file.lines.line(start)}"


def _judge_name(ref: SymbolRef, call: Call, language: str) -> tuple[str, str]:
    """(effect, evidence) by what a call is called; "" where that does not tell."""
    if ref.status != "external" or not ref.module:
        return "", "name"
    module = ref.module
    if call.name and module.rpartition(".")[2] != call.name and not call.callee.endswith(module.rpartition(".")[2]):
        module = f"{module}().{call.name}"
    effect = find_effect(module, language)
    kept = effect not in ("", "pure") and call.name.startswith("register")
    return "registration" if kept else "pure" if ".__version__" in module else effect, "external"


def _is_dotted(value: str) -> bool:
    return all(part.isidentifier() for part in value.split("."))
