"""What names mean where they stand: by scopes, through imports, read off `self`, a class or a module."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence

from cq.graph.scopes import ANYWHERE, ROOT
from cq.graph.unit import Unit
from cq.model.code import (
    NULL,
    Bind,
    Choice,
    Defined,
    Element,
    Imported,
    MethodOf,
    Name,
    Operated,
    ParameterOf,
    Store,
    Text,
    Value,
    label_type,
)
from cq.model.edge import CONFIDENCE, Candidate, SymbolRef
from cq.model.facts import Binding, FileFacts, Import, Reference, Symbol
from cq.semantics.calls import LinkedCalls
from cq.semantics.documents import Documents
from cq.semantics.memory import Memory
from cq.semantics.mentions import BEHIND

MAX_BASES = 50  # classes that are asked for an attribute
_MEMBER = re.compile(rb"(?<!\.\.)\.\Z|::\Z")


class Meanings:
    """Asked by a place: a path, the number of a document in it, and a byte."""

    def __init__(self, documents: Documents, calls: LinkedCalls, memory: Memory) -> None:
        self._documents, self._calls, self.memory = documents, calls, memory
        self._entered: set[str] = set()  # modules whose names are being looked up: they may import one another

    def find_at(self, path: str, offset: int) -> SymbolRef | None:
        """What the name at a byte of a file means: of a call, or by the scopes around it; None: there is no name."""
        for document, calls in enumerate(self._documents.index.calls(path)):
            for number, call in enumerate(calls):
                if call.name_start <= offset < call.name_start + len(call.name.encode()):
                    return self._calls.find_call(path, document, number)
        for document, references in enumerate(self._documents.index.references(path)):
            for name, start, end, role in references:
                if start <= offset < end:
                    return self.find_name(path, document, name, start, role)
        return None

    def find_named(self, path: str, name: str) -> Iterator[tuple[int, int, int, SymbolRef | None]]:
        """(document, start, end, what it means) of every mention of a name in a file's code, one after the other. None
        for a name behind a dot that is not called, unless it is read off `self`, a class or a module."""
        for document, mentions in enumerate(self._documents.mentions(path)):
            for place in mentions.find(name):
                yield document, place.start, place.end, self._find_meaning(path, document, place)

    def find_all(self, path: str, first: int, last: int) -> Iterator[tuple[int, Reference, SymbolRef | None]]:
        """(document, mention, what it means) of every name in a stretch of a file's code that is no definition, in
        order; None as above."""
        for document, references in enumerate(self._documents.index.references(path)):
            for place in references:
                if first <= place.start and place.end <= last:
                    yield document, place, self._find_meaning(path, document, place)

    def _find_meaning(self, path: str, document: int, place: Reference) -> SymbolRef | None:
        name, start, _, role = place
        number = self._documents.call_numbers(path, document).get(start)
        if number is not None:
            return self._calls.find_call(path, document, number)
        if role == "attribute" or self._documents.mentions(path)[document].is_behind(place):
            return self.find_attribute(path, document, name, start)
        return self.find_name(path, document, name, start, role)

    def find_name(self, path: str, document: int, name: str, start: int, role: str) -> SymbolRef:
        """What a reference means by the scopes around it."""
        scope = self._documents.find_scope(path, document, start)
        return self._find_name(path, document, scope, name, start, role)

    def _find_name(self, path: str, document: int, scope: int, name: str, start: int, role: str) -> SymbolRef:
        unit = self._documents.unit(path, document) if self._documents.is_linked(path, document) else None
        if unit is None or role in ("attribute", "keyword"):
            return SymbolRef(name, "unresolved")
        if role == "import":
            return next((ref for _, ref in self._find_imported(path, document, name, start)), _unknown(name))
        binds = _find_binds(unit, scope, name, start, is_type=role == "type")
        find = self._documents.find_generic if role == "type" else self._documents.find_headed
        around = find(path, document, name, start)
        # `infer U` in the code of what has a parameter U hides that.
        if around is not None and not any(around.name_start < bind.start < around.end and bind.inner for bind in binds):
            return _known(name, Candidate(path, document, f"{around.qualified_name}.{name}"))
        places: dict[Candidate, None] = {}
        for bind in binds:
            value = bind.value
            if isinstance(value, Imported):
                for local, meant in self._documents.find_imports(path, document):
                    if local == name:
                        ref = self._documents.find_value(meant, value.name)
                        if len(binds) == 1:
                            return ref
                        places |= dict.fromkeys(ref.candidates)
            elif isinstance(value, Defined):
                places[Candidate(path, document, unit.qualified_names[unit.definitions[value.start].symbol])] = None
            else:
                places[Candidate(path, document, _name_bound(unit, bind, name))] = None
        if not places:
            return self._find_starred(path, document, name, from_outside=start == ANYWHERE)
        status = "resolved" if len(places) == 1 else "ambiguous"
        return SymbolRef(name, status, "scope", round(CONFIDENCE["scope"] / len(places), 3), tuple(places))

    def find_own(self, path: str, document: int, symbol: int) -> Candidate:
        """What a mention of a definition leads to: its place, or its name where it is a value or an alias of a type."""
        place = self._documents.find_place(path, document, symbol)
        if place is not None:
            return place
        own = self._documents.symbols(path)[document][symbol]
        unit = self._documents.unit(path, document)
        binds: Sequence[Bind] = ()
        if unit is not None:
            scope = self._documents.find_scope(path, document, own.name_start)
            binds = _find_binds(unit, scope, own.name, own.name_start, is_type=own.kind_group == "type")
            around = own.parent
            while around >= 0 and around not in unit.by_symbol:
                around = self._documents.symbols(path)[document][around].parent
            binds = [bind for bind in binds if bind.scope == around]  # else of another, which a field does not hide
        if unit is None or not binds:
            holder = unit.qualified_names.get(own.parent, "") if unit is not None else ""
            return Candidate(path, document, f"{holder}.{own.name}" if holder else own.qualified_name)
        return Candidate(path, document, _name_bound(unit, binds[0], own.name))

    def _find_imported(self, path: str, document: int, name: str, start: int) -> Iterator[tuple[Bind, SymbolRef]]:
        """What the import at a place binds, and what it means; then what the imports behind it do."""
        for bind, value, ref in self._documents.find_bound(path, document):
            # A binding starts where its statement ends.
            if bind.start >= start and name in (bind.name.removeprefix("export "), value.name):
                yield bind, ref

    def _find_starred(self, path: str, document: int, name: str, *, from_outside: bool) -> SymbolRef:
        """A name that only `from m import *` can bind or, for who imports the module, `export * from "m"`; the last one
        that has it wins. Each module is asked once: they may import one another in every way."""
        is_first, found = not self._entered, SymbolRef(name, "unresolved")
        for local, ref in reversed(self._documents.find_imports(path, document)):
            is_starred = local == "*" or (local == "export *" and from_outside)
            source = ref.resolved if is_starred else None
            home = self._documents.unit(source.path, source.document) if source is not None else None
            if source is None or home is None or home.path in self._entered:
                continue
            public = home.code.public
            if not {name, "*"} & set(public) if public is not None else name.startswith("_"):
                continue
            self._entered.add(home.path)
            found = self._find_name(source.path, source.document, ROOT, name, ANYWHERE, "reference")
            if found.status != "unresolved":
                break
        if is_first:
            self._entered.clear()
        return found

    def find_dotted(self, path: str, document: int, dotted: str, start: int) -> SymbolRef:
        """What `a.b.C` means at a byte: through imports, into modules and classes; `module` is set for what comes from
        outside. A name that nothing here binds is unresolved: it may be the language's own."""
        head, *rest = dotted.split(".")
        ref = self.find_name(path, document, head, start, "reference")
        for name in rest:
            place = ref.resolved
            if ref.status == "external":
                ref = SymbolRef(name, "external", ref.evidence, ref.confidence, module=f"{ref.module}.{name}")
            elif place is None:
                return _unknown(name)
            elif place.name:
                inner = Candidate(place.path, place.document, f"{place.name}.{name}")
                known = self._documents.find_symbol(inner) is not None
                ref = SymbolRef(name, "resolved", "scope", ref.confidence, (inner,)) if known else _unknown(name)
            else:
                ref = self.find_name(place.path, place.document, name, ANYWHERE, "reference")
                if ref.status == "unresolved" and place.path.endswith("/__init__.py"):
                    stem = place.path.removesuffix("__init__.py") + name
                    found = next((p for p in (f"{stem}.py", f"{stem}/__init__.py") if self._documents.links(p)), "")
                    ref = SymbolRef(name, "resolved", "import", 0.99, (Candidate(found, 0, ""),)) if found else ref
        return ref

    def find_names(
        self, path: str, document: int, facts: FileFacts, *, unknown: bool = False
    ) -> Iterator[tuple[Reference, int, SymbolRef]]:
        """Every name of a document that scopes bind, with the definition whose code it stands in and what it means.
        Of an import those names that are taken from the module, not those of the module. With `unknown`, names too
        that nothing here binds, and that no parameter bears."""
        if self._documents.unit(path, document) is None:
            return
        known, text = dict(self._documents.find_imports(path, document)), self._documents.index.text(path)
        parameters = _find_parameters(facts.symbols) if unknown else []
        bindings = [binding for item in facts.imports for binding in item.bindings]
        bindings.sort(key=lambda binding: binding.start)
        for reference in facts.references:
            name, start, _, role = reference
            if role in BEHIND and _MEMBER.search(text, max(start - 3, 0), start):
                continue  # of something: no scope binds it
            scope = self._documents.find_scope(path, document, start)
            if role == "import":
                at = bisect_right(bindings, start, key=lambda binding: binding.start) - 1
                local = bindings[at].local if at >= 0 and start < bindings[at].end else ""
                ref = known.get(local)
            else:
                ref = self._find_name(path, document, scope, name, start, role)
            if (ref is not None and ref.status != "unresolved") or (
                unknown
                and ref is not None  # of an import what it binds, not the words that name the module
                and role not in ("attribute", "keyword", "label")
                and not _has_parameter(parameters, facts.symbols, start, name)
            ):
                yield reference, scope, ref

    def find_import(self, path: str, document: int, number: int) -> tuple[str, str] | None:
        """The module as written, and its file ("" for none of the tree), that the first name of a callee comes from."""
        unit = self._documents.unit(path, document) if self._documents.is_linked(path, document) else None
        if unit is None:
            return None
        site = unit.code.sites[number]
        callee = site.callee.receiver if isinstance(site.callee, MethodOf) else site.callee
        if not isinstance(callee, str):
            return None
        name = callee.partition(".")[0]
        binds = unit.find(site.scope, name, site.start)
        imports = [bind.value for bind in binds if isinstance(bind.value, Imported)]
        if not imports or len(imports) < len(binds):
            return None
        meant = [ref for local, ref in self._documents.find_imports(path, document) if local == name]
        files = {place.path for ref in meant for place in ref.candidates}
        return "." * imports[0].level + imports[0].module, files.pop() if len(files) == 1 else ""

    def find_attribute(
        self, path: str, document: int, name: str, start: int, receiver: str | None = None
    ) -> SymbolRef | None:
        """What `receiver.name` means where the receiver is `self`, a class, a module, or a name whose one value has its
        class written beside it; else None."""
        if receiver is None:
            mentions = self._documents.mentions(path)[document]
            place = mentions.find_at(start)
            receiver = "" if place is None else mentions.find_receiver(place)
        unit = self._documents.unit(path, document) if receiver else None
        if unit is None or not self._documents.is_linked(path, document):
            return None
        symbols = self._documents.symbols(path)[document]
        scope = self._documents.find_scope(path, document, start)
        while scope >= 0 and scope not in unit.by_symbol:
            scope = symbols[scope].parent  # a function without a name
        head, _, fields = receiver.partition(".")
        binds = unit.find(scope, head, start)
        made = None
        if len(binds) == 1:
            # Of one name in one function, nearly all places mean the same.
            key = (Meanings.find_attribute, document, scope, binds[0].start, receiver)
            known = self.memory.known.setdefault(path, {})
            if key not in known:
                known[key] = self._find_read_off(unit, binds[0], start, fields)
            made = known[key]
        if made is not None:
            kind, evidence = made
            return self._find_member(kind, evidence, name) if kind is not None else None
        if fields:
            return None
        ref = self._find_name(path, document, scope, receiver, start, "reference")
        place = ref.resolved
        if place is None:
            return SymbolRef(name, "external", module=f"{ref.module}.{name}") if ref.status == "external" else None
        if place.name:
            return self._find_member(place, "scope", name)
        found = self.find_dotted(path, document, f"{receiver}.{name}", start)
        return found if found.candidates else None

    def _find_read_off(self, unit: Unit, bind: Bind, start: int, fields: str) -> tuple[Candidate | None, str] | None:
        """As `_find_class`, of the fields behind what is bound."""
        made = self._find_class(unit, bind, start)
        if made is None or not fields:
            return made
        kind = made[0]
        for field in fields.split("."):
            kind = None if kind is None else self._find_held(kind, field)
        return kind, "attribute"

    def _find_held(self, kind: Candidate, field: str) -> Candidate | None:
        """The class that the one assignment to a field of a class makes an instance of, or that its type names."""
        unit, number = self._documents.unit(kind.path, kind.document), self._documents.find_symbol(kind)
        if unit is None or not self._documents.is_linked(kind.path, kind.document) or number not in unit.by_symbol:
            return None
        places = [*unit.scopes.get(number, {}).get(field, ()), *unit.own_stores(number).get(field, ())]
        if len(places) != 1:
            return None
        made = self._find_class(unit, places[0], places[0].start)
        return None if made is None else made[0]

    def _find_class(self, unit: Unit, bind: Bind | Store, start: int) -> tuple[Candidate | None, str] | None:
        """The class of which a name holds an instance and how that is known; None for a name that is bound to no
        instance: an import, a class."""
        value, written = bind.value, bind.type
        if isinstance(value, ParameterOf):
            definition = unit.definitions[value.start]
            owner = unit.by_symbol.get(definition.scope)
            is_first = value.number == 0 and "static" not in definition.modifiers
            if owner is not None and owner.kind == "class" and is_first:
                return Candidate(unit.path, unit.document, unit.qualified_names[owner.symbol]), "mro"
            written = definition.parameters[value.number].type
        elif isinstance(value, int) and written is None:
            number = unit.site_at[value]
            links = self._documents.links_of(unit.path, unit.document)
            made = None if links is None else links.refs[links.calls[number]].resolved
            symbol = None if made is None else self._documents.symbol(made)
            is_class = symbol is not None and symbol.kind_group == "class"
            is_made = is_class or (links is not None and number in links.constructors)
            return (made, "constructor") if is_made else (None, "")
        elif written is None:
            return None
        dotted = _find_written(written)
        if not dotted or self._documents.find_generic(unit.path, unit.document, dotted, start):
            return None, ""
        return self.find_dotted(unit.path, unit.document, dotted, start).resolved, "annotation"

    def _find_member(self, kind: Candidate, evidence: str, name: str) -> SymbolRef | None:
        """In the class itself, else in its bases, the first before the others; None where nobody knows."""
        todo, seen = [kind], set[Candidate]()
        field: SymbolRef | None = None  # an accessor of a base goes before what `self.x = …` writes
        while todo and len(seen) < MAX_BASES:
            here = todo.pop(0)
            if here in seen:
                continue
            seen.add(here)
            inner = Candidate(here.path, here.document, f"{here.name}.{name}")
            found = SymbolRef(name, "resolved", evidence, CONFIDENCE[evidence], (inner,))
            if self._documents.find_symbol(inner) is not None:
                return found
            if field is None and inner.name in self._documents.fields(here.path, here.document):
                field = found
            links = self._documents.links_of(here.path, here.document)
            bases = [] if links is None else [links.refs[at] for owner, at in links.inherits if owner == here.name]
            if any(base.status != "resolved" for base in bases):
                return field
            todo += [base.candidates[0] for base in bases]
        return field

    def find_mentions(
        self, path: str, name: str, wanted: Collection[Candidate]
    ) -> Iterator[tuple[int, int, int, SymbolRef | None]]:
        """As `find_named`, of the name that some definitions have, and of those that the imports of a file give them
        where these surely mean one."""
        taken = {target: self._find_taken(path, target) for target in wanted if self._is_value(target)}
        renamed = (names for target in wanted for names in self._documents.find_renamed(path, target))
        others = {each for names in renamed for each in names}
        others |= {bind.name for binds in taken.values() for bind in binds}
        for local in (name, *sorted(others - {name})):
            for document, start, end, ref in self.find_named(path, local):
                for target, binds in taken.items():
                    if ref is None or target not in ref.candidates:
                        # A call of a value means what it holds: `render = make(); render()`.
                        ref = self._find_value(path, document, local, start, binds, target) or ref
                if local == name or (ref is not None and ref.resolved is not None):
                    yield document, start, end, ref

    def _is_value(self, target: Candidate) -> bool:
        """Whether a place is a value or an alias of a type, if only beside an interface of its name."""
        if self._documents.find_symbol(target) is None:
            return True
        unit = self._documents.unit(target.path, target.document)
        binds = () if unit is None else unit.scopes[ROOT].get(target.name, ())
        return any(not isinstance(bind.value, Defined | Imported) for bind in binds)

    def _find_taken(self, path: str, target: Candidate) -> list[Bind]:
        """The imports of a file that take a value by its name from the module that binds it."""
        found: list[Bind] = []
        for document in range(len(self._documents.links(path)) if "." not in target.name else 0):
            unit = self._documents.unit(path, document)
            for bind in () if unit is None else unit.code.binds:
                value, name = bind.value, target.name
                if unit is not None and isinstance(value, Imported) and value.name == name:
                    item = Import("from", value.module, 0, 0, ROOT, (Binding(name, name, 0, 0),), value.level)
                    sources = self._documents.find_sources(path, unit.language, [item])[0] or ()
                    found += [bind] if any(source.path == target.path for source in sources) else []
        return found

    def _find_value(
        self, path: str, document: int, name: str, start: int, taken: list[Bind], target: Candidate
    ) -> SymbolRef | None:
        """A name as the target, a value, where scopes say that it is bound there or taken from there."""
        unit, mentions = self._documents.unit(path, document), self._documents.mentions(path)[document]
        place = mentions.find_at(start)
        if unit is None or place is None or place.role == "keyword":
            return None
        if place.role == "import":
            bind = next((bind for bind, _ in self._find_imported(path, document, name, start)), None)
            return _known(name, target) if any(bind is each for each in taken) else None
        if mentions.is_behind(place):
            ref = self.find_attribute(path, document, name, start)
            return ref if ref is not None and target in ref.candidates else None
        scope = self._documents.find_scope(path, document, start)
        is_type = place.role == "type"
        if is_type and self._documents.find_generic(path, document, name, start):
            return None
        binds = _find_binds(unit, scope, name, start, is_type=is_type)
        own = (path, document) == (target.path, target.document)
        if not any(each is bind for bind in binds for each in taken) and not (
            own and any(_name_bound(unit, bind, name) == target.name for bind in binds)
        ):
            return None
        return _known(name, target)


def _find_binds(unit: Unit, scope: int, name: str, start: int, *, is_type: bool) -> Sequence[Bind]:
    """Types of TypeScript, Rust, … are bound apart from values, and one name may be both."""
    labels = (label_type(name), name) if is_type else (name, label_type(name))
    return next((binds for label in labels if (binds := unit.find(scope, label, start))), ())


def _name_bound(unit: Unit, bind: Bind, name: str) -> str:
    """What is known only in a function without a name, a comprehension or a loop is named by where that begins: outside
    of it, and as a type beside a value, the name may be another."""
    holder = unit.qualified_names.get(bind.scope, "") if bind.scope != ROOT else ""
    dotted = f"{holder}.{name}" if holder else name
    return f"{dotted}@{bind.start}:{bind.name}" if bind.inner else dotted


def _find_written(value: Value) -> str:
    """The one name that a type is, but for None: `Row`, `"Row"`, `Row | None`, `Optional[Row]`; else ""."""
    parts: Sequence[Value]
    match value:
        case Choice():
            parts = value.options
        case Operated(operator="|"):
            parts = (value.left, value.right)
        case Element(base="Optional" | "typing.Optional"):
            parts = value.keys
        case Text():
            parts = [Name(part.strip()) for part in value.value.split("|")]
        case _:
            parts = (value,)
    names = [part for part in parts if part not in (NULL, "None")]
    named = names[0] if len(names) == 1 else None
    if isinstance(named, Text):
        return named.value.strip()
    return named if isinstance(named, str) else ""


def _known(name: str, place: Candidate) -> SymbolRef:
    return SymbolRef(name, "resolved", "scope", CONFIDENCE["scope"], (place,))


def _unknown(name: str) -> SymbolRef:
    return SymbolRef(name, "unresolved")


_TYPE_PARAMETERS = re.compile(r"[<,]\s*(?:(?:const|in|out)\s+)*([\w$]+)")


def _find_parameters(symbols: Sequence[Symbol]) -> list[set[str]]:
    """By symbol the names of its parameters, those of types included."""
    found = [
        set(_TYPE_PARAMETERS.findall(symbol.signature)) if "<" in symbol.signature else set[str]() for symbol in symbols
    ]
    for symbol in symbols:
        if symbol.kind in ("parameter", "type_parameter") and symbol.parent >= 0:
            found[symbol.parent].add(symbol.name)
    return found


def _has_parameter(parameters: list[set[str]], symbols: Sequence[Symbol], start: int, name: str) -> bool:
    """Whether a definition around a place takes a parameter of that name, also one without code of its own."""
    number = bisect_right(symbols, start, key=lambda symbol: symbol.start) - 1
    while number >= 0:
        if start < symbols[number].end and name in parameters[number]:
            return True
        number = symbols[number].parent
    return False
