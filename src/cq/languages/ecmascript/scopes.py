"""Where the functions, classes and names of a document belong, found when all of it has been read.

Types are bound under `<name>`, exports that are called differently inside under `export name`, `module.exports` under
`export =`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple

from cq.model.code import (
    NOWHERE,
    AliasOf,
    CallEnd,
    Choice,
    Defined,
    Element,
    Entry,
    Imported,
    Lambda,
    Name,
    Parameter,
    ParameterOf,
    SeenIn,
    Typed,
    Value,
    label_type,
)
from cq.syntax.code import MAX_ELEMENTS
from cq.syntax.language import Draft

if TYPE_CHECKING:
    from cq.syntax.collect import Collector


class WrittenFunction(NamedTuple):
    """A function as it stands in the text, before it is known which definition it is."""

    end: int
    body_start: int
    parameters: tuple[Parameter, ...]
    patterns: tuple[tuple[int, str, Value], ...]  # offset, name, value: what patterns among the parameters bind
    type: Value
    value: Value  # of a body that is an expression
    is_arrow: bool
    this: Value  # its declared type
    name: str  # by which a function expression knows itself


class WrittenClass(NamedTuple):
    """A class, interface, enum or namespace, or a type that is written as an object."""

    kind: Literal["class", "interface", "enum", "namespace"]
    bases: tuple[Value, ...] = ()
    implemented: tuple[Value, ...] = ()
    parameters: tuple[tuple[str, Value], ...] = ()  # of the type


class DocumentNotes:
    """What is kept of a document until all of it has been read."""

    def __init__(self) -> None:
        self.functions: dict[int, WrittenFunction] = {}  # by start
        self.classes: dict[int, WrittenClass] = {}  # by where their bodies begin
        self.signatures: dict[int, tuple[tuple[Parameter, ...], Value]] = {}  # name start -> those without a body
        self.bound: set[int] = set()  # body starts of functions that their definition binds to a name
        self.entries: dict[int, Value] = {}  # start of a function in an object literal -> what `this` is in it
        self.methods: set[int] = set()  # starts of functions in `A.prototype = {…}`
        self.assigned: list[tuple[int, int, str, Value]] = []  # start, end, name, value
        self.required: set[int] = set()  # starts of `require` and `import` whose bindings are read with them
        self.made: set[str] = set()  # names behind `new`
        self.derived: dict[str, Value] = {}  # functions whose prototype is put under another's: `util.inherits(A, B)`
        self.prototypes: dict[CallEnd, Name] = {}  # `A.prototype = call`: the call -> A
        self.tests: list[tuple[int, int, int]] = []  # `T extends U ? A : B`: span of U, end of A
        self.inferred: list[tuple[int, str]] = []  # `infer U` in one of these

    def derive(self, derived: Value, base: Value, *, is_whole: bool = False) -> None:
        """Puts a function under another; or, where they are not whole, one's prototype under the other's."""
        if isinstance(derived, str) and isinstance(base, str):
            if is_whole:
                self.derived[derived] = base
            elif derived.endswith(_PROTOTYPE) and base.endswith(_PROTOTYPE):
                self.derived[derived.removesuffix(_PROTOTYPE)] = Name(base.removesuffix(_PROTOTYPE))


class NestedSpans:
    """Spans that nest, each known by its start, and which lies in which."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        self._spans = sorted(spans, key=lambda span: (span[0], -span[1]))
        self.parents: dict[int, int] = {}
        stack: list[tuple[int, int]] = []
        for start, end in self._spans:
            while stack and stack[-1][1] <= start:
                stack.pop()
            self.parents[start] = stack[-1][0] if stack else -1
            stack.append((start, end))

    def find(self, offsets: Iterable[int]) -> list[int]:
        """For ascending offsets the start of the innermost span around each, -1 outside of all."""
        found: list[int] = []
        stack: list[tuple[int, int]] = []
        at = 0
        for offset in offsets:
            while at < len(self._spans) and self._spans[at][0] <= offset:
                while stack and stack[-1][1] <= self._spans[at][0]:
                    stack.pop()
                stack.append(self._spans[at])
                at += 1
            while stack and stack[-1][1] <= offset:
                stack.pop()
            found.append(stack[-1][0] if stack else -1)
        return found

    def rise(self, start: int, kept: Collection[int]) -> int:
        """The span itself, or the first around it that is kept."""
        while start >= 0 and start not in kept:
            start = self.parents[start]
        return start


class Placement:
    """Gives every function of a document its definition and every name its scope."""

    def __init__(self, collector: Collector, notes: DocumentNotes, type_kinds: Collection[str]) -> None:
        self._collector, self._code, self._notes, self._type_kinds = collector, collector.code, notes, type_kinds
        holding = [draft for draft in collector.symbols if draft.scope_start >= 0]
        self._named = {draft.body_start: draft for draft in holding if draft.kind in FUNCTIONS}
        self._classes = self._define_classes(holding)
        spans = [(start, written.end) for start, written in notes.functions.items()]
        self._spans = NestedSpans([*spans, *((start, draft.body_end) for start, draft in self._classes.items())])
        self._anonymous: dict[int, WrittenFunction] = {}
        self._declared: dict[tuple[int, str], int] = {}  # function and name -> where the name is declared
        self._these = [found.start() for found in _THIS_WORD.finditer(collector.text, *collector.span)]

    def place(self) -> None:
        prototypes = self._find_prototypes()
        self._place_inferred()
        for start in sorted(self._notes.functions):
            self._place_function(start, self._notes.functions[start], prototypes)
        if self._anonymous:
            self._hide_definitions()
            self._place_results()
        if self._anonymous or self._notes.assigned:
            self._place_names()
        self._define_signatures()
        self._bind_exports()
        self._code.add_anonymous(self._collector)

    def _place_inferred(self) -> None:
        """`infer U` is known to the end of what holds where the test does: `T extends Promise<infer U> ? U : …`."""
        tests, inferred = self._notes.tests, sorted(self._notes.inferred)
        known_to = {start: end for start, _, end in tests}
        holders = NestedSpans((start, end) for start, end, _ in tests).find(start for start, _ in inferred)
        for (_, name), start in zip(inferred, holders, strict=True):
            if start >= 0:
                self._code.binds.append((start, start, label_type(name), AliasOf(None), known_to[start]))

    def _define_classes(self, drafts: list[Draft]) -> dict[int, Draft]:
        """By where their bodies begin."""
        code = self._code
        found: dict[int, Draft] = {}
        for draft in drafts if self._notes.classes else ():
            at, written = draft.body_start, self._notes.classes.get(draft.body_start)
            if written is None or draft.kind not in _CLASSES or draft.head in code.definitions:
                continue
            found[at] = draft
            implemented = tuple(("implements", value) for value in written.implemented)
            code.definitions[draft.head] = (written.kind, (), None, written.bases, implemented)
            code.binds += [(at, at, label_type(name), AliasOf(value), -1) for name, value in written.parameters]
            for base in (*written.bases, *written.implemented):
                name = base.base if isinstance(base, Element) else base
                if isinstance(name, str):
                    code.entries.append(Entry("heir", name.rpartition(".")[2], draft.head))
        return found

    def _find_prototypes(self) -> set[str]:
        """Functions that are made with `new`, or get methods through their prototype."""
        notes = self._notes
        for call in self._collector.calls:
            end, way, name, arguments = CallEnd(call[1]), call[3], call[5], call[11]
            if name in _DERIVING and len(arguments) == 2:
                notes.derive(*arguments, is_whole=name != "setPrototypeOf")
            elif end in notes.prototypes:  # `A.prototype = new B()`, `A.prototype = Object.create(B.prototype)`
                made = notes.prototypes[end]
                if way == "new" and not arguments:
                    notes.derive(made, call[10], is_whole=True)
                elif name == "create" and arguments:
                    notes.derive(Name(f"{made}{_PROTOTYPE}"), arguments[0])
        found = set(notes.derived) | notes.made
        for _, base, name, _, _, _ in self._code.stores:
            if isinstance(base, str) and base.endswith(_PROTOTYPE):
                found.add(base.removesuffix(_PROTOTYPE))
            elif isinstance(base, str) and name == "prototype":
                found.add(base)
        return found

    def _place_function(self, start: int, written: WrittenFunction, prototypes: set[str]) -> None:
        code, notes = self._code, self._notes
        draft = self._named.get(written.body_start)
        is_method = draft is not None and start not in notes.entries and self._spans.parents[start] in self._classes
        name = "" if draft is None else draft.name
        key, kind, parameters = start, "function", written.parameters
        bases: tuple[Value, ...] = ()
        has_this = is_method  # whether the receiver is its first parameter
        this: Value = None if written.this is None else Typed(written.this, None)
        is_bound = draft is not None and (is_method or written.body_start in notes.bound)
        if draft is not None and is_bound:
            key = code.renamed[start] = draft.head
            if not is_method:
                self._declared[self._spans.rise(self._spans.parents[start], notes.functions), name] = key
                if name in prototypes and not written.is_arrow:
                    kind, has_this = "prototype", True
                    bases = (notes.derived[name],) if name in notes.derived else ()
                    for base in bases:
                        if isinstance(base, str):
                            code.entries.append(Entry("heir", base.rpartition(".")[2], start))
        elif draft is not None and not written.is_arrow:
            on_prototype = draft.kind == "method" and name.rpartition(".")[0] in prototypes
            has_this = on_prototype or start in notes.methods
        if has_this:
            parameters = (_THIS, *parameters)
        if is_bound:
            code.definitions[key] = (kind, parameters, written.type, bases, ())
            if written.value is not None:
                # Before the body: where that is a function itself, what is returned is not returned by it.
                code.returns.append((written.body_start - 1, written.value))
        else:
            code.lambdas[start] = (written.end, written.body_start, parameters, written.value)
            code.results[start] = written.type
            this = notes.entries.get(start, this) if draft is not None else this
        inner, place = -1, (written.body_start, written.body_start)
        if draft is None:
            self._anonymous[start] = written
            inner, place = written.end, (start, start)
            code.binds += [(*place, p.name, ParameterOf(start, number), inner) for number, p in enumerate(parameters)]
        if not has_this and not written.is_arrow and self._says_this(start, written.end):
            code.binds.append((*place, "this", this, inner))
        for parameter in parameters:
            self._declared[start, parameter.name] = start
        for at, name, value in written.patterns:
            self._declared[start, name] = at
            seen = (*place, name, SeenIn(NOWHERE, at, value), inner) if draft is None else (at, at, name, value, -1)
            code.binds.append(seen)
        if (
            written.name and (start, written.name) not in self._declared
        ):  # `function f(f) { f(); }` calls what it is given
            code.binds.append((*place, written.name, Defined(key) if is_bound else Lambda(key), inner))

    def _says_this(self, start: int, end: int) -> bool:
        return bisect_left(self._these, start) < bisect_left(self._these, end)

    def _hide_definitions(self) -> None:
        """What is defined in a function without a name is known in it only."""
        code = self._code
        bodies = {start: self._named.get(written.body_start) for start, written in self._notes.functions.items()}
        for start, draft in (*bodies.items(), *self._classes.items()):
            around = self._spans.parents[start]
            if draft is not None and draft.head in code.definitions and around in self._anonymous:
                is_type = code.definitions[draft.head][0] in self._type_kinds
                code.unbound.add(draft.head)
                label = label_type(draft.name) if is_type else draft.name
                code.binds.append((around, around, label, Defined(draft.head), self._anonymous[around].end))

    def _place_names(self) -> None:
        """What a function without a name declares is known in it only; assignments bind where a name is declared."""
        code, spans, functions, declared = self._code, self._spans, self._notes.functions, self._declared
        binds = sorted(code.binds, key=lambda bind: bind[1])
        code.binds = []
        for bind, owner in zip(binds, spans.find(bind[1] for bind in binds), strict=True):
            owner = spans.rise(owner, functions)
            _, start, name, value, inner = bind
            if inner < 0:
                declared.setdefault((owner, name), start)
                if owner in self._anonymous and start != owner:
                    bind = (owner, owner, name, SeenIn(NOWHERE, start, value), self._anonymous[owner].end)
            code.binds.append(bind)
        assigned = sorted(self._notes.assigned, key=lambda assignment: assignment[0])
        owners = spans.find(assignment[0] for assignment in assigned)
        for (start, end, name, value), owner in zip(assigned, owners, strict=True):
            here = owner = spans.rise(owner, functions)
            while (owner, name) not in declared and owner >= 0:
                owner = spans.rise(spans.parents[owner], functions)
            place = declared.get((owner, name))
            if place is None:
                continue
            if owner in self._anonymous:
                code.binds.append((owner, owner, name, SeenIn(NOWHERE, start, value), self._anonymous[owner].end))
            elif owner == here:
                code.binds.append((end, start, name, value, -1))
            else:
                code.is_shared = True
                code.binds.append((end, place, name, SeenIn(NOWHERE, start, value), -1))

    def _place_results(self) -> None:
        """What a function without a name returns is no result of the function around it; nor is what it yields."""
        code, functions = self._code, self._notes.functions
        for places in (code.returns, code.yields):
            places.sort(key=lambda place: place[0])
            kept: list[tuple[int, Value]] = []
            for place, owner in zip(places, self._spans.find(start for start, _ in places), strict=True):
                owner = self._spans.rise(owner, functions)
                if owner not in self._anonymous:
                    kept.append(place)
                elif places is code.returns:
                    end, body_start, parameters, value = code.lambdas[owner]
                    code.lambdas[owner] = (end, body_start, parameters, _add_option(value, place[1]))
            places[:] = kept

    def _define_signatures(self) -> None:
        """Functions without a body count where none with one follows: `f(a: A): X; f(b: B): Y; f(c) {…}`."""
        if not self._notes.signatures:
            return
        drafts = [draft for draft in self._collector.symbols if draft.kind in FUNCTIONS]
        drafts.sort(key=lambda draft: (draft.head, draft.name_start))
        definitions = self._code.definitions
        for draft, following in zip(drafts, [*drafts[1:], None], strict=True):
            signature = self._notes.signatures.get(draft.name_start)
            if signature is None or draft.head in definitions:
                continue
            if following is None or (following.name, following.kind) != (draft.name, draft.kind):
                parameters, kind = signature
                this = () if draft.kind == "function" else (_THIS,)
                definitions[draft.head] = ("function", (*this, *parameters), kind, (), ())

    def _bind_exports(self) -> None:
        exports, code = self._collector.exports, self._code
        if exports:
            self._collector.public.append((0, 0))
        bound = {bind[2] for bind in code.binds}
        for start, name, exported, end, module, _ in exports:
            label = f"export {'=' if exported == 'export=' else exported}"
            if module:
                code.binds.append((end, start, label, Imported(0, module, name), -1))
            elif exported != name and label not in bound:
                code.binds.append((end, start, label, Name(name), -1))


def _add_option(value: Value, other: Value) -> Value:
    """With one more thing that a function may return."""
    if value is None:
        return other
    if not isinstance(value, Choice):
        return Choice((value, other))
    return Choice((*value.options, other)) if len(value.options) < MAX_ELEMENTS - 1 else value


FUNCTIONS = frozenset({"function", "method", "constructor", "accessor", "component"})
_CLASSES = frozenset({"class", "interface", "type", "enum", "namespace"})
_DERIVING = frozenset({"inherits", "setPrototypeOf", "__extends"})  # functions that put one under another
_PROTOTYPE = ".prototype"
_THIS = Parameter("this")
_THIS_WORD = re.compile(rb"this")
