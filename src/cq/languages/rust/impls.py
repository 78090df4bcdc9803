"""Which impls a type has, and which methods they, its traits and what it points to give it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cq.graph.corpus import MAX_HOLDERS
from cq.graph.engine.cells import Remembered
from cq.graph.scopes import find_defined
from cq.graph.things import UNKNOWN, Class, External, Function, Thing
from cq.graph.values import ANNOTATION, IMPORT, INFERRED, MRO, NOTHING, PARAMETER, Values, join
from cq.languages.rust.items import MAX_STEPS
from cq.languages.rust.kinds import MAX_DEREFS
from cq.languages.rust.std import STD, find_given
from cq.languages.rust.things import Applied, Type, Variable, class_of
from cq.model.code import Bounds, Definition, Element, EntryKind, FunctionType, find_inner

if TYPE_CHECKING:
    from cq.languages.rust.linking import RustDialect

MAX_FAMILY = 16  # implementations of a trait's method that a call through the trait may mean


class Impls:
    def __init__(self, rust: RustDialect) -> None:
        self._rust, self._linker, self._kinds, self._things = rust, rust.linker, rust.kinds, rust.things
        self._targets: dict[Class, Remembered[Type]] = {}

    def _find_impls(self, kind: EntryKind, name: str) -> tuple[list[Class], bool]:
        """Impls as they are entered, and whether these are all."""
        return self._linker.know(self._read_impls, kind, name)

    def _read_impls(self, kind: EntryKind, name: str) -> tuple[list[Class], bool]:
        entered = self._linker.documents.entries(kind, name, MAX_HOLDERS)
        impls = [self._linker.thing(unit, d.start) for unit, d in entered or () if d.kind == "impl"]
        return [impl for impl in impls if isinstance(impl, Class)], entered is not None

    def find_target(self, impl: Class) -> Type:
        """The type that an impl is for."""
        known = self._targets.get(impl)
        if known is None:
            known = self._targets[impl] = Remembered[Type](None)  # `impl Foo<Self::X>`: what it sees of itself
            self._linker.fill(known, self._read_target, impl)
        return self._linker.recall(known)

    def _read_target(self, impl: Class) -> Type:
        definition = impl.unit.contents(impl.definition)
        return self._kinds.read(impl.unit, definition.symbol, definition.type, {})

    def find_trait(self, impl: Class) -> Type:
        return self._linker.know(self._read_trait, impl)

    def _read_trait(self, impl: Class) -> Type:
        bases = impl.unit.contents(impl.definition).bases
        kind = bases[0] if bases else None
        if isinstance(kind, Element):
            kind = kind.base
        found: list[Thing] = []
        if isinstance(kind, str):
            found = self._rust.items.find(impl.unit, impl.definition.scope, kind.split("::"), "type")
        return found[0] if found else None

    def list_of(self, kind: Class) -> Iterator[Class]:
        for impl in self._find_impls("impl of type", kind.definition.name)[0]:
            if class_of(self.find_target(impl)) is kind:
                yield impl

    def list_supers(self, trait: Class) -> list[Class]:
        """A trait and those it asks for."""
        found = [trait]
        for known in found:
            for bound in known.unit.contents(known.definition).bases:
                kind = class_of(self._kinds.read(known.unit, known.definition.symbol, bound, {}))
                if kind is not None and kind not in found and len(found) < MAX_STEPS:
                    found.append(kind)
        return found

    def _find_own(self, holder: Class, name: str, *, dotted: bool) -> Function | None:
        unit, symbol = holder.unit, holder.definition.symbol
        for start in find_defined(unit.bound(symbol, name)):
            thing = self._linker.thing(unit, start)
            if isinstance(thing, Function) and (not dotted or takes_self(thing.definition)):
                return thing
        return None

    def find(self, thing: Thing, name: str, *, dotted: bool, derefs: int = 0) -> Values:
        """Methods and associated functions of a type: its own, those of its traits, those of what it points to."""
        asked = (thing, name, dotted)
        return self._rust.lookups.find(asked, NOTHING, self._search, *asked, derefs)

    def _search(self, thing: Thing, name: str, dotted: bool, derefs: int) -> Values:
        if isinstance(thing, Variable):
            bound = self._kinds.find_bound(thing)
            if bound is not None and derefs < MAX_DEREFS:
                return self.find(bound, name, dotted=dotted, derefs=derefs + 1)
            return self._find_std(thing, name)
        if isinstance(thing, Applied) and thing.kind == "dyn":
            found = NOTHING
            for kind in thing.args:
                if kind is not None:
                    found = join(found, self.find(kind, name, dotted=dotted, derefs=derefs + 1))
            return {t: level for t, level in found.items() if t is not UNKNOWN and not isinstance(t, External)} or found
        kind = class_of(thing)
        if kind is None:
            return NOTHING
        if kind.definition.kind == "trait":
            found = self._find_family(kind, name, dotted=dotted)
            if found:
                return found
            for impl in self._find_impls("impl of type", kind.definition.name)[0]:
                own = self._find_own(impl, name, dotted=dotted)
                if own is not None and class_of(self.find_target(impl)) is kind:
                    return {own: MRO}
            return self.find_blanket(thing, name, dotted=dotted) or self._find_std(thing, name)
        traited: list[Function] = []
        traits: list[Class] = []
        outside: list[str] = []
        for impl in self.list_of(kind):
            own = self._find_own(impl, name, dotted=dotted)
            if own is not None:
                if not impl.definition.bases:
                    return {own: MRO}
                traited.append(own)
            elif impl.definition.bases:
                trait = self.find_trait(impl)
                if isinstance(trait, Class):
                    traits += [other for other in self.list_supers(trait) if other not in traits]
                elif isinstance(trait, External):
                    outside.append(trait.name.rpartition("::")[2])
        if traited:
            level = MRO if len(traited) == 1 else PARAMETER
            return dict.fromkeys(traited[:MAX_FAMILY], level)
        for trait in traits:
            own = self._find_own(trait, name, dotted=dotted)
            if own is not None:
                return {own: MRO}
        if not dotted:
            const = self._find_const(kind, name)
            if const:
                return const
        if dotted and ("Iterator" in outside) and find_given("Iterator", name) is not None:
            item = self._kinds.find_alias(thing, "Item")
            return {self._things.std_method(self._things.apply("Iterator", (item,)), name): MRO}
        if dotted and "Deref" in outside and derefs < MAX_DEREFS:
            target = self._kinds.find_alias(thing, "Target")
            if target is not None:
                found = self._linker.method({target: MRO}, name) if not isinstance(target, Variable) else NOTHING
                if found and UNKNOWN not in found:
                    return found
        return self.find_blanket(thing, name, dotted=dotted) or self._find_std(thing, name)

    def _find_const(self, kind: Class, name: str) -> Values:
        for impl in self.list_of(kind):
            for start in find_defined(impl.unit.bound(impl.definition.symbol, name)):
                return {self._linker.thing(impl.unit, start): MRO}
        return NOTHING

    def _find_family(self, trait: Class, name: str, *, dotted: bool) -> Values:
        """A trait's method, called where any type that implements it may stand: with all that take its place."""
        for known in self.list_supers(trait):
            own = self._find_own(known, name, dotted=dotted)
            if own is None:
                continue
            impls, complete = self._find_impls("impl of trait", known.definition.name)
            others: list[Function] = []
            for impl in impls:
                other = self._find_own(impl, name, dotted=dotted)
                if other is not None and self.find_trait(impl) is known:
                    others.append(other)
            found: Values = {own: ANNOTATION if complete else PARAMETER}
            found.update(dict.fromkeys(others[:MAX_FAMILY], PARAMETER))
            return found
        return NOTHING

    def find_blanket(self, thing: Thing, name: str, *, dotted: bool) -> Values:
        """`impl<T: Bound> Trait for T`, where the type has the bounds; of those of other crates nobody knows."""
        found: Values = {}
        for impl, own in self._list_given("*", name, dotted=dotted):
            bound = dict(impl.definition.keywords).get(str(impl.definition.type))
            level = INFERRED
            for part in find_inner(bound) if isinstance(bound, (Bounds, FunctionType)) else ():
                needed = self._kinds.read(impl.unit, impl.definition.symbol, part, {})
                needed_class = class_of(needed)
                if needed_class is None:
                    level = PARAMETER
                elif not self._implements(thing, needed_class):
                    break
            else:
                found[own] = level
        return found if len(found) == 1 else dict.fromkeys(found, PARAMETER)

    def _implements(self, thing: Thing, trait: Class) -> bool:
        kind = class_of(thing)
        if isinstance(thing, Variable):
            kind = class_of(self._kinds.find_bound(thing))
        if kind is None:
            return False
        if kind.definition.kind == "trait":
            return trait in self.list_supers(kind)
        return any(self.find_trait(impl) is trait for impl in self.list_of(kind))

    def _find_std(self, thing: Thing, name: str) -> Values:
        """What every type may have from the traits of the standard library, by derive or blanket impl."""
        if name in STD.common_methods:
            return {self._things.std_method(thing, name): IMPORT}
        return self._linker.unknown

    def find_extension(self, thing: Applied, name: str, *, dotted: bool) -> Values:
        """Methods that traits of the repository give to a type of the standard library."""
        found: list[Thing] = []
        for key in STD.find_impls(str(thing.kind)):
            found += [own for _, own in self._list_given(key, name, dotted=dotted)]
        return dict.fromkeys(found[:MAX_FAMILY], MRO if len(found) == 1 else PARAMETER)

    def _list_given(self, kind: str, name: str, *, dotted: bool) -> Iterator[tuple[Class, Function]]:
        """The methods of a name that traits of the repository give to types of a kind, each with its impl."""
        for impl in self._find_impls("impl of type", kind)[0]:
            trait = self.find_trait(impl)
            if isinstance(trait, Class):
                own = self._find_own(impl, name, dotted=dotted) or self._find_own(trait, name, dotted=dotted)
                if own is not None:
                    yield impl, own


def takes_self(definition: Definition) -> bool:
    return bool(definition.parameters) and definition.parameters[0].name == "self"
