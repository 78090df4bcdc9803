"""Rust for the linker: crates and modules, paths and `use`, impls and traits, types with their parameters.

Items are found by paths alone; what a variable is follows from its type, written or inferred inside one function.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from cq.graph.corpus import MAX_HOLDERS
from cq.graph.dialect import Dialect, OwnForm
from cq.graph.engine.cells import Remembered
from cq.graph.engine.view import View
from cq.graph.items import Written, get_kind
from cq.graph.scopes import ROOT, find_defined
from cq.graph.things import UNKNOWN, Bound, Class, External, Function, Instance, Module, Native, OwnClass, Thing
from cq.graph.values import (
    ANNOTATION,
    ATTRIBUTE,
    EVERYTHING,
    IMPORT,
    INFERRED,
    MRO,
    NOTHING,
    PARAMETER,
    SCOPE,
    Values,
    join,
)
from cq.languages.rust.crates import Crates, join_path
from cq.languages.rust.std import (
    ATTRIBUTES,
    CLOSURE_TAKES,
    HOLDERS,
    KINDS,
    MACROS,
    PRELUDE,
    PRIMITIVES,
    STD_CRATES,
    STD_METHODS,
    TRANSPARENT,
    Shape,
    find_rule,
)
from cq.model.code import (
    Attribute,
    Bind,
    Bounds,
    ClosureParameter,
    Constant,
    Defined,
    Definition,
    Element,
    FunctionType,
    Imported,
    Indexed,
    Item,
    Lambda,
    Listing,
    MethodOf,
    NamedType,
    OperatorMethod,
    PartOf,
    Site,
    TuplePart,
    Typed,
    Unwrapped,
    Value,
    find_inner,
)

if TYPE_CHECKING:
    from cq.graph.link import Linker

MAX_STEPS = 24  # imports and aliases on the way to one item
MAX_DEPTH = 5  # of parameters inside parameters
MAX_FAMILY = 16  # implementations of a trait's method that a call through the trait may mean
MAX_DEREFS = 4
MAX_OPEN = 30  # lookups inside one another
MAX_GLOBS = 60  # modules that one name is looked for in, through `use m::*`

ARITIES = {"Map": 2, "Result": 2, "str": 0, "char": 0}  # parameters of a kind, where that is not one
Type = Thing | None
Env = dict[str, Type]  # what type parameters stand for
_MODULES = ("mod",)
_TYPES = frozenset({"struct", "enum", "union", "trait", "alias", "mod"})
_VALUES = frozenset({"function", "const", "struct", "variant"})


class Applied(Native):
    """A type with its parameters: a class of the repository, or one of the standard library's by its kind."""

    __slots__ = ("args", "kind")

    def __init__(self, dialect: Dialect, kind: Class | str, args: tuple[Type, ...]) -> None:
        super().__init__(dialect)
        self.kind, self.args = kind, args


class Variable(Native):
    """A type parameter where nobody said what it stands for: it has what its bounds have."""

    __slots__ = ("bound", "name", "scope", "unit")

    def __init__(self, dialect: Dialect, unit: View, scope: int, name: str, bound: Value) -> None:
        super().__init__(dialect)
        self.unit, self.scope, self.name, self.bound = unit, scope, name, bound


class StdMethod(External):
    """A method of the standard library on a receiver whose type is known."""

    __slots__ = ("method", "receiver")

    def __init__(self, name: str, method: str, receiver: Thing) -> None:
        super().__init__(name)
        self.method, self.receiver = method, receiver


class RustDialect(Dialect):
    core = "std"
    is_static = True

    def __init__(self, paths: Iterable[str]) -> None:
        self._crates = Crates(paths)
        self._applied: dict[tuple[Class | str, tuple[Type, ...]], Applied] = {}
        self._variables: dict[tuple[View, int, str], Variable] = {}
        self._methods: dict[tuple[Thing, str], StdMethod] = {}
        self._found: dict[tuple[View, int, str, str], Remembered[tuple[Thing, ...]]] = {}
        self._sources: dict[tuple[View, int], Remembered[list[Thing]]] = {}
        self._known: dict[tuple[Thing, str, bool], Remembered[Values]] = {}
        self._impls: dict[tuple[str, str], Remembered[tuple[list[Class], bool]]] = {}
        self._targets: dict[Class, Remembered[Type]] = {}
        self._traits: dict[Class, Remembered[Type]] = {}
        self._open: set[object] = set()  # lookups that are being made
        self._cuts = 0  # how often a lookup met itself, or went too deep: what it gave then is not remembered
        self._depth = 0  # of types being read

    # -- modules ---------------------------------------------------------------------------------

    def _module(self, linker: Linker, path: str | None) -> list[Thing]:
        if path is None:
            return []
        module = linker.module(path)
        return [module] if module.unit is not None else []

    def _crate(self, linker: Linker, unit: View, name: str) -> list[Thing]:
        return self._module(linker, self._crates.find(linker, unit.path, name))

    def _home(self, unit: View, scope: int) -> int:
        """The inline module around a scope, ROOT for the file itself."""
        while scope != ROOT:
            definition = unit.by_symbol.get(scope)
            if definition is None:
                return ROOT
            if definition.kind == "mod":
                return scope
            scope = definition.scope
        return ROOT

    def _here(self, linker: Linker, unit: View, scope: int) -> Thing:
        return linker.module(unit.path) if scope == ROOT else linker.thing(unit, unit.by_symbol[scope].start)

    def _above(self, linker: Linker, thing: Thing) -> list[Thing]:
        if isinstance(thing, Class):
            return [self._here(linker, thing.unit, self._home(thing.unit, thing.definition.scope))]
        return self._module(linker, self._crates.parent(linker, thing.path)) if isinstance(thing, Module) else []

    def resolve_import(self, linker: Linker, unit: View, level: int, module: str, name: str) -> Values:
        found = self._import(linker, unit, ROOT, module, name, "")
        return dict.fromkeys(found, IMPORT) if found else linker.unknown

    def _import(self, linker: Linker, unit: View, scope: int, module: str, name: str, space: str) -> list[Thing]:
        if module.startswith("mod "):
            return self._module(linker, self._crates.child(linker, unit.path, module[4:]))
        if module.startswith("path "):
            folder = unit.path.rpartition("/")[0]
            path = join_path(folder, module[5:])
            return self._module(linker, path if path in self._crates.files else None)
        segments = module.split("::")
        if name != "*":
            segments.append(name)
        return self._path(linker, unit, scope, segments, "type" if name == "*" else space)

    # -- paths -----------------------------------------------------------------------------------

    def _path(self, linker: Linker, unit: View, scope: int, segments: Sequence[str], space: str) -> list[Thing]:
        """What a path names, in the space of types, values or macros ("" for any)."""
        if len(segments) > MAX_STEPS:
            return []
        head, rest = segments[0], list(segments[1:])
        found = self._head(linker, unit, scope, head, rest, space if not rest else "type")
        if found is None:
            return []
        while rest:
            name = rest.pop(0)
            inner = space if not rest else "type"
            following: list[Thing] = []
            for thing in found:
                following += [other for other in self._inner(linker, thing, name, inner) if other not in following]
            found = following
        return found

    def _head(
        self, linker: Linker, unit: View, scope: int, head: str, rest: list[str], space: str
    ) -> list[Thing] | None:
        if head == "crate" or head == "$crate":
            return self._module(linker, self._crates.root(linker, unit.path))
        if head == "%":
            return [linker.module(unit.path)]
        if head == "self":
            found = [self._here(linker, unit, self._home(unit, scope))]
            while rest and rest[0] == "super":
                rest.pop(0)
                found = self._above(linker, found[0]) if found else []
            return found
        if head == "super":
            found = self._above(linker, self._here(linker, unit, self._home(unit, scope)))
            while rest and rest[0] == "super":
                rest.pop(0)
                found = self._above(linker, found[0]) if found else []
            return found
        if head == "Self":
            kind = self._self(linker, unit, scope)
            return [] if kind is None else [kind]
        if head == "":
            return self._crate(linker, unit, rest[0]) and self._crate(linker, unit, rest.pop(0)) if rest else []
        found = self._lookup(linker, unit, scope, head, space)
        if not found and space == "macro" and head not in MACROS:
            found = self._find_macros(linker, self._crates.root(linker, unit.path), head)
        if found:
            return found
        if space == "type":
            crate = self._crate(linker, unit, head)
            if crate:
                return crate
        outside = self._outside(unit, scope, head, space, is_head=bool(rest))
        return [linker.external(outside)] if outside else []

    def _find_macros(self, linker: Linker, root: str | None, name: str) -> list[Thing]:
        """`macro_rules!` of a crate, wherever they stand: exported ones are items of its root, and others are known
        in the text behind them."""
        return [
            linker.thing(unit, definition.start)
            for unit, definition in linker.documents.entries("macro", name, MAX_HOLDERS) or ()
            if self._crates.root(linker, unit.path) == root and definition.kind in ("macro", "function")
        ]

    def _outside(self, unit: View, scope: int, name: str, space: str, *, is_head: bool) -> str:
        """What needs no binding, and crates that the repository does not hold."""
        if name in STD_CRATES:
            return name
        if space == "macro":
            return f"std::{name}" if name in MACROS else ""
        if name in PRELUDE or (space != "value" and name in PRIMITIVES):
            return f"std::{name}"
        # Nothing of that name is in scope, so a path that begins with it begins with a crate.
        return name if is_head and space == "type" and name[:1].islower() else ""

    def _lookup(self, linker: Linker, unit: View, scope: int, name: str, space: str) -> list[Thing]:
        """A name as seen from a scope: items and imports of the functions around it, then those of its module."""
        while scope != ROOT:
            definition = unit.by_symbol.get(scope)
            if definition is None:
                scope = ROOT
                break
            if definition.kind == "mod":
                break
            if space == "type":
                unit.contents(definition)
                for known, bound in definition.keywords:
                    if known == name:
                        return [self._variable(unit, scope, name, bound)]
            if definition.kind not in ("impl", "trait", "enum"):
                found = self._scope_items(linker, unit, scope, name, space)
                if found:
                    return list(found)
            scope = definition.scope
        return list(self._scope_items(linker, unit, scope, name, space))

    def _scope_items(self, linker: Linker, unit: View, scope: int, name: str, space: str) -> tuple[Thing, ...]:
        """Items and imports of one module or function, then what its globs bring."""
        key = (unit, scope, name, space)
        known = self._found.get(key)
        if known is None:
            if key in self._open or len(self._open) > MAX_OPEN:
                self._cuts += 1
                return ()
            cuts = self._cuts
            self._open.add(key)
            known = linker.remember(self._find_items, linker, unit, scope, name, space)
            self._open.discard(key)
            if self._cuts == cuts:
                self._found[key] = known
        return linker.recall(known)

    def _find_items(self, linker: Linker, unit: View, scope: int, name: str, space: str) -> tuple[Thing, ...]:
        found = self._find_bound(linker, unit, scope, name, space)
        return tuple(self._find_globbed(linker, unit, scope, name, space) if found is None else found)

    def _find_globbed(self, linker: Linker, unit: View, scope: int, name: str, space: str) -> list[Thing]:
        # Modules may import all of one another: each is asked once, the nearest first.
        outside = ""
        seen = [(unit, scope)]
        for module in seen:
            for source in self._globs(linker, *module):
                if isinstance(source, External):
                    outside = outside or source.name
                    continue
                inner = (source.unit, ROOT) if isinstance(source, Module) and source.unit is not None else None
                if isinstance(source, Class):
                    if source.definition.kind != "mod":
                        found = self._inner(linker, source, name, space, is_glob=True)
                        if found:
                            return found
                        continue
                    inner = (source.unit, source.definition.symbol)
                if inner is not None and inner not in seen and len(seen) < MAX_GLOBS:
                    seen.append(inner)
                    found = self._find_bound(linker, *inner, name, space)
                    if found and not _is_below(*module, *inner):
                        found = [thing for thing in found if not _is_private(thing, *inner)]
                    if found:
                        return found
        # Nothing of the repository has the name, so a type or variant can only come from there.
        is_free = name[:1].isupper() and not self._outside(unit, scope, name, space, is_head=False)
        return [linker.external(f"{outside}::{name}")] if outside and is_free else []

    def _find_bound(self, linker: Linker, unit: View, scope: int, name: str, space: str) -> list[Thing] | None:
        """What a module or function defines or imports by name; None: globs may bring it."""
        own: list[Thing] = []
        imported: list[Thing] | None = None
        for bind in unit.bound(scope, name):
            value = bind.value
            if isinstance(value, Defined) and _is_in(unit.definitions[value.start].kind, space):
                own.append(self._thing(linker, unit, value.start))
            elif isinstance(value, Imported):
                found = self._import(linker, unit, scope, value.module, value.name, space)
                imported = imported or []
                imported += [thing for thing in found if thing not in imported and _fits(thing, space)]
        return own or imported

    def _globs(self, linker: Linker, unit: View, scope: int) -> list[Thing]:
        if not unit.stars():
            return []
        key = (unit, scope)
        known = self._sources.get(key)
        if known is None:
            if key in self._open:
                self._cuts += 1
                return []
            self._open.add(key)
            cuts = self._cuts
            known = linker.remember(self._find_globs, linker, unit, scope)
            self._open.discard(key)
            if self._cuts == cuts:
                self._sources[key] = known
        return linker.recall(known)

    def _find_globs(self, linker: Linker, unit: View, scope: int) -> list[Thing]:
        return [
            source
            for at, star in unit.stars()
            if at == scope
            for source in self._import(linker, unit, scope, star.module, "*", "type")
        ]

    def _thing(self, linker: Linker, unit: View, start: int) -> Class | Function:
        thing = linker.thing(unit, start)
        if isinstance(thing, Class) and thing.definition.kind == "variant" and thing.instance.type is thing:
            holder = linker.thing(unit, unit.by_symbol[thing.definition.scope].start)
            assert isinstance(holder, Class)
            thing.instance = holder.instance  # `E::A(x)` gives an E
        return thing

    def _inner(self, linker: Linker, thing: Thing, name: str, space: str, *, is_glob: bool = False) -> list[Thing]:
        """`thing::name`."""
        if isinstance(thing, External):
            return [linker.external(f"{thing.name}::{name}")]
        if isinstance(thing, Module):
            if thing.unit is None:
                return []
            found = self._scope_items(linker, thing.unit, ROOT, name, space)
            if not found and space in ("macro", "") and self._crates.root(linker, thing.path) == thing.path:
                return self._find_macros(linker, thing.path, name)
            return list(found)
        if isinstance(thing, Class):
            definition = thing.definition
            if definition.kind == "mod":
                return list(self._scope_items(linker, thing.unit, definition.symbol, name, space))
            if definition.kind == "alias":
                kind = self._type(linker, thing.unit, definition.symbol, definition.type, {})
                return [] if kind is None else self._inner(linker, kind, name, space)
            if definition.kind == "enum":
                variant = self._variant(linker, thing, name)
                if variant is not None:
                    return [variant]
            if is_glob:
                return []
            thing = thing.instance
        elif (kind := _class_of(thing)) is not None and kind.definition.kind == "enum":
            variant = self._variant(linker, kind, name)
            if variant is not None:
                return [variant]
        if isinstance(thing, Applied) and isinstance(thing.kind, str):
            extended = self._find_std_extension(linker, thing, name, dotted=False)
            return [own for own, _ in extended] if extended else [linker.external(f"std::{thing.kind}::{name}")]
        if space == "type":
            alias = self._find_alias(linker, thing, name)
            return [] if alias is None else [alias]
        return list(self._find_own_method(linker, thing, name, dotted=False))

    def _variant(self, linker: Linker, kind: Class, name: str) -> Thing | None:
        starts = find_defined(kind.unit.bound(kind.definition.symbol, name))
        return self._thing(linker, kind.unit, starts[0]) if starts else None

    # -- names in expressions --------------------------------------------------------------------

    def find_name(self, linker: Linker, unit: View, scope: int, name: str, position: int) -> Values:
        if "::" in name:
            path = name.split("::")
            found = self._path(linker, unit, scope, path, "value") or self._path(linker, unit, scope, path, "type")
            return self._as_values(linker, unit, found)
        at = scope
        while at != ROOT:
            definition = unit.by_symbol.get(at)
            if definition is None or definition.kind == "mod":
                break
            binds = unit.bound(at, name) if definition.kind == "function" else ()
            if binds:
                reached = [bind for bind in unit.reach(binds, position, at == scope) if _is_local(bind)]
                if reached:
                    found = NOTHING
                    for bind in reached:
                        found = join(found, linker.bound(unit, bind))
                    return found
            at = definition.scope
        if name == "Self":
            return self._as_values(linker, unit, self._path(linker, unit, scope, ["Self"], "value"))
        # Bases and types are asked for here too: no value has the name of a trait or an enum.
        found = self._lookup(linker, unit, scope, name, "value") or self._lookup(linker, unit, scope, name, "type")
        if not found:
            outside = self._outside(unit, scope, name, "value", is_head=False)
            found = [linker.external(outside)] if outside else []
        return self._as_values(linker, unit, found)

    def _find_item(self, linker: Linker, unit: View, scope: int, form: Item) -> Values:
        path, is_literal = form.path.split("::"), form.namespace == "literal"
        found = self._path(linker, unit, scope, path, "type" if is_literal else "macro")
        if is_literal and not found:
            found = self._path(linker, unit, scope, path, "value")
        if form.namespace == "attribute" and not found:
            return {linker.external(f"std::{path[-1]}"): SCOPE} if path[-1] in ATTRIBUTES else linker.unknown
        return self._as_values(linker, unit, found, literal=is_literal)

    def _as_values(self, linker: Linker, unit: View, found: Sequence[Thing], *, literal: bool = False) -> Values:
        values: Values = {}
        doubt = PARAMETER if len(found) > 1 and any(_is_declared(thing) for thing in found) else SCOPE
        for thing in found:
            level = max(SCOPE if getattr(thing, "unit", None) is unit else IMPORT, doubt)
            if isinstance(thing, Class) and thing.definition.kind in ("const", "alias"):
                scope, kind = thing.definition.scope, thing.unit.contents(thing.definition).type
                made = self._type(linker, thing.unit, scope, kind, {})
                if literal and made is not None:
                    made = _class_of(made) or made
                if made is not None:
                    values[made] = max(level, ANNOTATION if not literal else level)
            elif isinstance(thing, Instance):
                values[thing.type if thing.type.definition.kind != "trait" else thing] = max(level, MRO)
            elif isinstance(thing, Applied) and isinstance(thing.kind, Class):
                values[thing.kind] = max(level, MRO)
            elif isinstance(thing, External) and thing.name == "std::None":
                values[self.apply("Option", (None,))] = level
            else:
                values[thing] = level
        return values or linker.unknown

    # -- types -----------------------------------------------------------------------------------

    def find_static(self, linker: Linker, unit: View, scope: int, value: Value, position: int) -> Thing | None:
        found = self._path(linker, unit, scope, value.split("::"), "type") if isinstance(value, str) else []
        thing = found[0] if len(found) == 1 else None
        return _class_of(thing) or thing

    def make(self, linker: Linker, unit: View, scope: int, kind: Value, position: int) -> Values:
        found = self._type(linker, unit, scope, kind, {})
        return linker.unknown if found is None else {found: ANNOTATION}

    def apply(self, kind: Class | str, args: tuple[Type, ...]) -> Thing:
        if isinstance(kind, Class) and all(arg is None for arg in args):
            return kind.instance
        if any(_depth(arg) >= MAX_DEPTH for arg in args):
            args = tuple(None for _ in args)
        key = (kind, args)
        found = self._applied.get(key)
        if found is None:
            found = self._applied[key] = Applied(self, kind, args)
        return found

    def _variable(self, unit: View, scope: int, name: str, bound: Value) -> Variable:
        key = (unit, scope, name)
        found = self._variables.get(key)
        if found is None:
            found = self._variables[key] = Variable(self, unit, scope, name, bound)
        return found

    def _self(self, linker: Linker, unit: View, scope: int) -> Type:
        while scope != ROOT:
            definition = unit.by_symbol.get(scope)
            if definition is None:
                return None
            if definition.kind == "impl":
                impl = linker.thing(unit, definition.start)
                assert isinstance(impl, Class)
                return self._target(linker, impl)
            if definition.kind in ("trait", "struct", "enum", "union"):
                kind = linker.thing(unit, definition.start)
                assert isinstance(kind, Class)
                return kind.self_instance if definition.kind == "trait" else kind.instance
            scope = definition.scope
        return None

    def _type(self, linker: Linker, unit: View, scope: int, kind: Value, env: Env, steps: int = MAX_STEPS) -> Type:
        """A type as written, seen from a scope. Static: reads no cell."""
        if kind is None or steps <= 0:
            return None
        if self._depth > MAX_OPEN:
            self._cuts += 1  # `type A = Self::A;`
            return None
        self._depth += 1
        try:
            return self._read_type(linker, unit, scope, kind, env, steps)
        finally:
            self._depth -= 1

    def _read_type(self, linker: Linker, unit: View, scope: int, kind: Value, env: Env, steps: int) -> Type:
        args: tuple[Value, ...] = ()
        match kind:
            case Listing():
                parts = [self._type(linker, unit, scope, part, env, steps - 1) for part in kind.elements]
                return self.apply("tuple", tuple(parts))
            case FunctionType():
                given = (kind.result, *kind.parameters)
                return self.apply("fn", tuple(self._type(linker, unit, scope, part, env, steps - 1) for part in given))
            case Bounds():
                return self._bound(linker, unit, scope, kind.types, env, steps)
            case Element(base=Constant()):  # a slice
                return self.apply("Vec", (self._type(linker, unit, scope, kind.keys[0], env, steps - 1),))
            case Element():
                kind, args = kind.base, kind.keys
            case _:
                pass
        if not isinstance(kind, str):
            return None
        if kind in env:
            return env[kind]
        if kind == "Self":
            return self._self(linker, unit, scope)
        found = self._path(linker, unit, scope, kind.split("::"), "type")
        if len(found) != 1:
            return None
        thing = found[0]
        if isinstance(thing, Class):
            inner = tuple(
                self._type(linker, unit, scope, part, env, steps - 1)
                for part in args
                if not isinstance(part, NamedType)
            )
            if thing.definition.kind == "alias":
                names = [name for name, _ in thing.unit.contents(thing.definition).keywords]
                inner_env = dict(zip(names, inner, strict=False))
                return self._type(
                    linker, thing.unit, thing.definition.symbol, thing.definition.type, inner_env, steps - 1
                )
            if thing.definition.kind in ("mod", "variant", "const", "macro"):
                return None
            return self.apply(thing, inner)
        if isinstance(thing, External):
            return self._make_std(linker, unit, scope, thing, args, env, steps)
        return thing if isinstance(thing, (Instance, Native)) else None

    def _make_std(
        self, linker: Linker, unit: View, scope: int, thing: External, args: Sequence[Value], env: Env, steps: int
    ) -> Type:
        name = thing.name.rpartition("::")[2]

        def inner(at: int) -> Type:
            plain = [part for part in args if not isinstance(part, NamedType)]
            return self._type(linker, unit, scope, plain[at], env, steps - 1) if at < len(plain) else None

        if name in TRANSPARENT:
            return inner(0)
        if name in KINDS:
            kind = KINDS[name]
            if kind == "Iterator":
                for part in args:
                    if isinstance(part, NamedType) and part.name == "Item":
                        bounds = part.kind.types if isinstance(part.kind, Bounds) else ()
                        item = bounds[0] if len(bounds) == 1 else part.kind
                        return self.apply(kind, (self._type(linker, unit, scope, item, env, steps - 1),))
            return self.apply(kind, tuple(inner(at) for at in range(ARITIES.get(kind, 1))))
        return linker.external(f"{thing.name}()")

    def _bound(self, linker: Linker, unit: View, scope: int, bounds: Iterable[Value], env: Env, steps: int) -> Type:
        """What satisfies all bounds: the trait of the repository among them, or several."""
        found: list[Type] = []
        for bound in bounds:
            kind = self._type(linker, unit, scope, bound, env, steps - 1)
            if kind is not None and kind not in found:
                found.append(kind)
        own = [
            kind
            for kind in found
            if _class_of(kind) is not None or (isinstance(kind, Applied) and kind.kind == "Iterator")
        ]
        if len(own) > 1:
            return self.apply("dyn", tuple(own))
        return own[0] if own else found[0] if found else None

    # -- impls -----------------------------------------------------------------------------------

    def _find_impls(self, linker: Linker, kind: str, name: str) -> tuple[list[Class], bool]:
        """Impls as they are entered (see ENTRY_KINDS), and whether these are all."""
        known = self._impls.get((kind, name))
        if known is None:
            known = self._impls[kind, name] = linker.remember(self._read_impls, linker, kind, name)
        return linker.recall(known)

    def _read_impls(self, linker: Linker, kind: str, name: str) -> tuple[list[Class], bool]:
        entered = linker.documents.entries(kind, name, MAX_HOLDERS)
        impls = [linker.thing(unit, d.start) for unit, d in entered or () if d.kind == "impl"]
        return [impl for impl in impls if isinstance(impl, Class)], entered is not None

    def _target(self, linker: Linker, impl: Class) -> Type:
        """The type that an impl is for."""
        known = self._targets.get(impl)
        if known is None:
            known = self._targets[impl] = Remembered[Type](None)  # `impl Foo<Self::X>`: what it sees of itself
            linker.fill(known, self._find_target, linker, impl)
        return linker.recall(known)

    def _find_target(self, linker: Linker, impl: Class) -> Type:
        definition = impl.unit.contents(impl.definition)
        return self._type(linker, impl.unit, definition.symbol, definition.type, {})

    def _trait(self, linker: Linker, impl: Class) -> Type:
        known = self._traits.get(impl)
        if known is None:
            known = self._traits[impl] = linker.remember(self._find_trait, linker, impl)
        return linker.recall(known)

    def _find_trait(self, linker: Linker, impl: Class) -> Type:
        bases = impl.unit.contents(impl.definition).bases
        kind = bases[0] if bases else None
        if isinstance(kind, Element):
            kind = kind.base
        found: list[Thing] = []
        if isinstance(kind, str):
            found = self._path(linker, impl.unit, impl.definition.scope, kind.split("::"), "type")
        return found[0] if found else None

    def _impls_of(self, linker: Linker, kind: Class) -> Iterator[Class]:
        for impl in self._find_impls(linker, "impl of type", kind.definition.name)[0]:
            if _class_of(self._target(linker, impl)) is kind:
                yield impl

    def _supers(self, linker: Linker, trait: Class) -> list[Class]:
        """A trait and those it asks for."""
        found = [trait]
        for known in found:
            for bound in known.unit.contents(known.definition).bases:
                kind = _class_of(self._type(linker, known.unit, known.definition.symbol, bound, {}))
                if kind is not None and kind not in found and len(found) < MAX_STEPS:
                    found.append(kind)
        return found

    def order_bases(self, linker: Linker, kind: Class) -> tuple[Thing | None, ...]:
        if kind.definition.kind == "impl":
            trait = self._trait(linker, kind)
            return (kind, *(self._supers(linker, trait) if isinstance(trait, Class) else [trait]))
        if kind.definition.kind == "trait":
            return tuple(self._supers(linker, kind))
        return (kind,)

    def _own(self, linker: Linker, holder: Class, name: str, *, dotted: bool) -> Function | None:
        unit, symbol = holder.unit, holder.definition.symbol
        for start in find_defined(unit.bound(symbol, name)):
            thing = linker.thing(unit, start)
            if isinstance(thing, Function) and (not dotted or _takes_self(thing.definition)):
                return thing
        return None

    def _find_alias(self, linker: Linker, thing: Thing, name: str) -> Type:
        """An associated type."""
        kind = _class_of(thing)
        if kind is None:
            if isinstance(thing, Variable):
                bound = self._bound_of(linker, thing)
                return None if bound is None or isinstance(bound, Variable) else self._find_alias(linker, bound, name)
            if isinstance(thing, Applied) and thing.kind == "Iterator" and name == "Item":
                return thing.args[0]
            return None
        holders: Iterable[Class] = self._impls_of(linker, kind)
        if kind.definition.kind == "trait":
            holders = self._supers(linker, kind)
        for holder in holders:
            unit, symbol = holder.unit, holder.definition.symbol
            for start in find_defined(unit.bound(symbol, name)):
                definition = unit.definitions[start]
                if definition.kind == "alias":
                    unit.contents(definition)
                    env = self._env(linker, holder, thing)
                    return self._type(linker, unit, symbol, definition.type, env)
        return None

    def _bound_of(self, linker: Linker, variable: Variable) -> Type:
        holder = variable.unit.by_symbol.get(variable.scope)
        if holder is not None:
            variable.unit.contents(holder)
        if variable.bound is None or ("bound", variable) in self._open:
            return None
        self._open.add(("bound", variable))
        found = self._type(linker, variable.unit, variable.scope, variable.bound, {})
        self._open.discard(("bound", variable))
        return found

    def _env(self, linker: Linker, holder: Class, receiver: Type) -> Env:
        """What the type parameters of an impl, trait or class stand for, given a receiver."""
        definition = holder.definition
        env: Env = {}
        if definition.kind == "impl":
            value = definition.type
            if isinstance(receiver, Applied) and isinstance(value, Element):
                names = {name for name, _ in definition.keywords}
                for part, arg in zip(value.keys, receiver.args, strict=False):
                    if isinstance(part, str) and part in names and arg is not None:
                        env[part] = arg
            elif isinstance(value, str) and any(name == value for name, _ in definition.keywords):
                env[value] = receiver  # impl<T> Trait for T
        elif definition.kind == "trait":
            if receiver is not None:
                env["Self"] = receiver
        elif isinstance(receiver, Applied):
            names = (name for name, _ in definition.keywords)
            env.update((name, arg) for name, arg in zip(names, receiver.args, strict=False) if arg is not None)
        return env

    def _find_own_method(self, linker: Linker, thing: Thing, name: str, *, dotted: bool, derefs: int = 0) -> Values:
        """Methods and associated functions of a type: its own, those of its traits, those of what it points to."""
        key = (thing, name, dotted)
        known = self._known.get(key)
        if known is None:
            if key in self._open or len(self._open) > MAX_OPEN:
                self._cuts += 1
                return NOTHING
            self._open.add(key)
            cuts = self._cuts
            known = linker.remember(self._search_method, linker, thing, name, dotted, derefs)
            self._open.discard(key)
            if self._cuts == cuts:
                self._known[key] = known
        return linker.recall(known)

    def _search_method(self, linker: Linker, thing: Thing, name: str, dotted: bool, derefs: int) -> Values:
        if isinstance(thing, Variable):
            bound = self._bound_of(linker, thing)
            if bound is not None and derefs < MAX_DEREFS:
                return self._find_own_method(linker, bound, name, dotted=dotted, derefs=derefs + 1)
            return self._find_std(linker, thing, name)
        if isinstance(thing, Applied) and thing.kind == "dyn":
            found = NOTHING
            for kind in thing.args:
                if kind is not None:
                    found = join(found, self._find_own_method(linker, kind, name, dotted=dotted, derefs=derefs + 1))
            return {t: level for t, level in found.items() if t is not UNKNOWN and not isinstance(t, External)} or found
        kind = _class_of(thing)
        if kind is None:
            return NOTHING
        if kind.definition.kind == "trait":
            found = self._find_family(linker, kind, name, dotted=dotted)
            if found:
                return found
            for impl in self._find_impls(linker, "impl of type", kind.definition.name)[0]:
                own = self._own(linker, impl, name, dotted=dotted)
                if own is not None and _class_of(self._target(linker, impl)) is kind:
                    return {own: MRO}
            return self._find_blanket(linker, thing, name, dotted=dotted) or self._find_std(linker, thing, name)
        traited: list[Function] = []
        traits: list[Class] = []
        outside: list[str] = []
        for impl in self._impls_of(linker, kind):
            own = self._own(linker, impl, name, dotted=dotted)
            if own is not None:
                if not impl.definition.bases:
                    return {own: MRO}
                traited.append(own)
            elif impl.definition.bases:
                trait = self._trait(linker, impl)
                if isinstance(trait, Class):
                    traits += [other for other in self._supers(linker, trait) if other not in traits]
                elif isinstance(trait, External):
                    outside.append(trait.name.rpartition("::")[2])
        if traited:
            level = MRO if len(traited) == 1 else PARAMETER
            return dict.fromkeys(traited[:MAX_FAMILY], level)
        for trait in traits:
            own = self._own(linker, trait, name, dotted=dotted)
            if own is not None:
                return {own: MRO}
        if not dotted:
            const = self._find_const(linker, kind, name)
            if const:
                return const
        if dotted and ("Iterator" in outside) and find_rule("Iterator", name) is not None:
            item = self._find_alias(linker, thing, "Item")
            return {self._std_method(self.apply("Iterator", (item,)), name): MRO}
        if dotted and "Deref" in outside and derefs < MAX_DEREFS:
            target = self._find_alias(linker, thing, "Target")
            if target is not None:
                found = linker.method({target: MRO}, name) if not isinstance(target, Variable) else NOTHING
                if found and UNKNOWN not in found:
                    return found
        return self._find_blanket(linker, thing, name, dotted=dotted) or self._find_std(linker, thing, name)

    def _find_const(self, linker: Linker, kind: Class, name: str) -> Values:
        for impl in self._impls_of(linker, kind):
            for start in find_defined(impl.unit.bound(impl.definition.symbol, name)):
                return {linker.thing(impl.unit, start): MRO}
        return NOTHING

    def _find_family(self, linker: Linker, trait: Class, name: str, *, dotted: bool) -> Values:
        """A trait's method, called where any type that implements it may stand: with all that take its place."""
        for known in self._supers(linker, trait):
            own = self._own(linker, known, name, dotted=dotted)
            if own is None:
                continue
            impls, complete = self._find_impls(linker, "impl of trait", known.definition.name)
            others: list[Function] = []
            for impl in impls:
                other = self._own(linker, impl, name, dotted=dotted)
                if other is not None and self._trait(linker, impl) is known:
                    others.append(other)
            found: Values = {own: ANNOTATION if complete else PARAMETER}
            found.update(dict.fromkeys(others[:MAX_FAMILY], PARAMETER))
            return found
        return NOTHING

    def _find_blanket(self, linker: Linker, thing: Thing, name: str, *, dotted: bool) -> Values:
        """`impl<T: Bound> Trait for T`, where the type has the bounds; of those of other crates nobody knows."""
        found: Values = {}
        for impl in self._find_impls(linker, "impl of type", "*")[0]:
            own = self._own(linker, impl, name, dotted=dotted)
            trait = self._trait(linker, impl)
            if own is None and isinstance(trait, Class):
                own = self._own(linker, trait, name, dotted=dotted)
            if own is None or not isinstance(trait, Class):
                continue
            bound = dict(impl.definition.keywords).get(str(impl.definition.type))
            level = INFERRED
            for part in find_inner(bound) if isinstance(bound, (Bounds, FunctionType)) else ():
                needed = self._type(linker, impl.unit, impl.definition.symbol, part, {})
                needed_class = _class_of(needed)
                if needed_class is None:
                    level = PARAMETER
                elif not self._implements(linker, thing, needed_class):
                    break
            else:
                found[own] = level
        return found if len(found) == 1 else dict.fromkeys(found, PARAMETER)

    def _implements(self, linker: Linker, thing: Thing, trait: Class) -> bool:
        kind = _class_of(thing)
        if isinstance(thing, Variable):
            kind = _class_of(self._bound_of(linker, thing))
        if kind is None:
            return False
        if kind.definition.kind == "trait":
            return trait in self._supers(linker, kind)
        return any(self._trait(linker, impl) is trait for impl in self._impls_of(linker, kind))

    def _find_std(self, linker: Linker, thing: Thing, name: str) -> Values:
        """What every type may have from the traits of the standard library, by derive or blanket impl."""
        if name in STD_METHODS:
            return {self._std_method(thing, name): IMPORT}
        return linker.unknown

    def _find_std_extension(
        self, linker: Linker, thing: Applied, name: str, *, dotted: bool
    ) -> list[tuple[Function, int]]:
        """Methods that traits of the repository give to a type of the standard library."""
        found: list[tuple[Function, int]] = []
        for key in HOLDERS.get(str(thing.kind), (str(thing.kind),)):
            for impl in self._find_impls(linker, "impl of type", key)[0]:
                own = self._own(linker, impl, name, dotted=dotted)
                trait = self._trait(linker, impl)
                if own is None and isinstance(trait, Class):
                    own = self._own(linker, trait, name, dotted=dotted)
                if own is not None and isinstance(trait, Class):
                    found.append((own, MRO))
        return found if len(found) == 1 else [(own, PARAMETER) for own, _ in found[:MAX_FAMILY]]

    def _std_method(self, receiver: Thing, name: str) -> StdMethod:
        key = (receiver, name)
        found = self._methods.get(key)
        if found is None:
            kind = receiver.kind if isinstance(receiver, Applied) and isinstance(receiver.kind, str) else ""
            found = self._methods[key] = StdMethod(f"std::{kind}.{name}" if kind else f"std::{name}", name, receiver)
        return found

    # -- members ---------------------------------------------------------------------------------

    def find_member(self, linker: Linker, thing: Thing, name: str, level: int) -> Values:
        if isinstance(thing, OwnClass):
            thing = thing.type.self_instance
        if isinstance(thing, Class):
            thing = thing.instance  # a unit struct or variant is its own value
        found = self._find_field(linker, thing, name)
        return linker.unknown if found is None else {found: max(level, ATTRIBUTE)}

    def find_method(self, linker: Linker, thing: Thing, name: str, level: int) -> Values:
        if isinstance(thing, OwnClass):
            thing = thing.type.self_instance
        if isinstance(thing, Class):
            thing = thing.instance
        if isinstance(thing, Applied) and isinstance(thing.kind, str) and thing.kind not in ("dyn", "fn"):
            if find_rule(thing.kind, name) is None:
                extended = self._find_std_extension(linker, thing, name, dotted=True)
                if extended:
                    return {linker.bind(own, thing): max(level, at) for own, at in extended}
                blanket = NOTHING if name in STD_METHODS else self._find_blanket(linker, thing, name, dotted=True)
                if blanket:
                    return {linker.bind(own, thing): max(level, PARAMETER) for own in blanket}
            return {self._std_method(thing, name): max(level, IMPORT)}
        found = self._find_own_method(linker, thing, name, dotted=True)
        values: Values = {}
        for own, at in found.items():
            is_method = isinstance(own, Function)
            values[linker.bind(own, thing) if is_method else own] = max(level, at)
        return values or linker.unknown

    def _find_field(self, linker: Linker, thing: Thing, name: str, derefs: int = 0) -> Type:
        if isinstance(thing, Applied) and thing.kind == "tuple":
            return (
                thing.args[int(name)] if name.isdecimal() and len(name) < 10 and int(name) < len(thing.args) else None
            )
        kind = _class_of(thing)
        if kind is None or derefs > MAX_DEREFS:
            return None
        found = self._field(linker, kind, name, thing)
        if found is None and kind.definition.kind != "trait":
            target = self._find_alias(linker, thing, "Target")
            if target is not None:
                return self._find_field(linker, target, name, derefs + 1)
        return found

    def _field(self, linker: Linker, kind: Class, name: str, receiver: Type) -> Type:
        definition = kind.unit.contents(kind.definition)
        for parameter in definition.parameters:
            if parameter.name == name:
                env = self._env(linker, kind, receiver)
                if definition.kind == "variant" and isinstance(receiver, Applied) and isinstance(receiver.kind, Class):
                    env = self._env(linker, receiver.kind, receiver)
                return self._type(linker, kind.unit, definition.symbol, parameter.type, env)
        return None

    def find_parameter(self, linker: Linker, function: Function, number: int) -> Values:
        definition = function.definition
        parameter = definition.parameters[number]
        if parameter.name == "self" and not number:
            found = self._self(linker, function.unit, definition.scope)
            level = MRO
        else:
            scope = definition.symbol if definition.symbol >= 0 else definition.scope
            found, level = self._type(linker, function.unit, scope, parameter.type, {}), ANNOTATION
        return linker.unknown if found is None else {found: level}

    def receiver(self, linker: Linker, function: Function) -> Thing | None:
        if not _takes_self(function.definition):
            return None
        return self._self(linker, function.unit, function.definition.scope)

    # -- calls -----------------------------------------------------------------------------------

    def give(self, linker: Linker, thing: Thing, receiver: Thing | None, unit: View | None, number: int) -> Values:
        found: Type = None
        if isinstance(thing, Function):
            definition = thing.unit.contents(thing.definition)
            if definition.type is None:
                return linker.calls.returned(thing)  # a closure
            env = {} if thing.owner is None else self._env(linker, thing.owner, receiver)
            found = self._type(linker, thing.unit, definition.symbol, definition.type, env)
        elif isinstance(thing, Applied) and thing.kind == "fn":
            found = thing.args[0]
        elif isinstance(thing, Variable):
            bound = self._bound_of(linker, thing)
            found = bound.args[0] if isinstance(bound, Applied) and bound.kind == "fn" else None
        return linker.unknown if found is None else {found: ANNOTATION}

    def call_external(self, linker: Linker, thing: External, unit: View, number: int) -> Values | None:
        site = unit.sites[number]
        if isinstance(thing, StdMethod):
            return self._call_method(linker, thing, unit, site)
        holder, _, name = thing.name.rpartition("::")
        holder = holder.rpartition("::")[2]
        if name in ("Some", "Ok", "Err") and len(site.args) == 1:
            kind = "Option" if name == "Some" else "Result"
            return self._wrap(linker, kind, self._argument(linker, unit, site, 0), at=int(name == "Err"))
        if name == "new" and holder in TRANSPARENT and site.args:
            return self._argument(linker, unit, site, 0)
        if name in ("Borrowed", "Owned") and site.args:
            return self._argument(linker, unit, site, 0)
        if holder in KINDS and name in ("new", "with_capacity", "default", "from", "from_iter"):
            kind = KINDS[holder]
            if kind == "Cell" and site.args:
                return self._wrap(linker, kind, self._argument(linker, unit, site, 0))
            return {self.apply(kind, (None,) * ARITIES.get(kind, 1)): SCOPE}
        if name in ("take", "replace") and holder == "mem" and site.args:
            return self._argument(linker, unit, site, 0)
        if site.kind == "macro":
            kind = {"vec": "Vec", "format": "str"}.get(name)
            if kind:
                return {self.apply(kind, (None,) if kind == "Vec" else ()): SCOPE}
            return linker.unknown
        return None

    def _argument(self, linker: Linker, unit: View, site: Site, at: int) -> Values:
        if at >= len(site.args):
            return linker.unknown
        return linker.evaluate(unit, site.scope, site.args[at], site.start)

    def _wrap(self, linker: Linker, kind: str, values: Values, at: int = 0) -> Values:
        found: Values = {}
        for thing, level in values.items():
            inner = None if thing is UNKNOWN else _as_type(thing)
            args = (inner,) if kind not in ("Result", "Map") else (None, inner) if at else (inner, None)
            found[self.apply(kind, args)] = max(level, INFERRED if inner is not None else SCOPE)
        return EVERYTHING if values is EVERYTHING else found

    def _call_method(self, linker: Linker, thing: StdMethod, unit: View, site: Site) -> Values:
        """What a method of the standard library gives, by a table of shapes: see cq.languages.rust.std."""
        receiver = thing.receiver
        kind = receiver.kind if isinstance(receiver, Applied) and isinstance(receiver.kind, str) else ""
        rule = find_rule(kind, thing.method)
        if rule is None:
            return linker.unknown
        found = self._shape(linker, rule, receiver, unit, site)
        return found if found is not None else linker.unknown

    def _shape(self, linker: Linker, shape: Shape, receiver: Thing, unit: View, site: Site) -> Values | None:
        if shape == "same":
            return {receiver: SCOPE}
        args = receiver.args if isinstance(receiver, Applied) else ()
        if shape == "written":
            return self._collected(linker, args[0] if args else None, unit, site)
        if type(shape) is int:
            inner = args[shape] if shape < len(args) else None
            return None if inner is None else {inner: INFERRED}
        if type(shape) is str:
            if shape == "none":
                return None
            results = self._closure_results(linker, unit, site)
            if shape == "result":
                return results
            if shape == "flat":
                return self._items(linker, {args[0]: INFERRED}) if args and args[0] is not None else None
            inner_of = {"result.inner": "Option", "result.item": "Iterator"}.get(shape)
            return self._items(linker, results) if inner_of else None
        kind, *parts = shape
        columns: list[Values] = []
        for part in parts:
            if part == "other":
                given = self._argument(linker, unit, site, 0)
                columns.append(self._items(linker, given))
            elif part == "int":
                columns.append({linker.external("std::usize()"): SCOPE})
            else:
                columns.append(self._shape(linker, part, receiver, unit, site) or linker.unknown)
        first: list[tuple[Type, ...]] = [()]
        for column in columns:
            kinds = [None if thing is UNKNOWN else _as_type(thing) for thing in column][:3] or [None]
            first = [(*row, inner) for row in first for inner in kinds][:6]
        return {self.apply(kind, row): INFERRED for row in first}

    def _collected(self, linker: Linker, item: Type, unit: View, site: Site) -> Values | None:
        """`collect::<Vec<_>>()`: the hole is what is iterated."""
        if not site.args or not isinstance(site.args[0], Typed):
            return {self.apply("Collected", (item,)): INFERRED}
        made = self._type(linker, unit, site.scope, site.args[0].kind, {})
        return None if made is None else {self._fill(made, item): ANNOTATION}

    def _fill(self, made: Thing, item: Type) -> Thing:
        if isinstance(made, Applied) and isinstance(made.kind, str) and made.args and made.args[0] is None:
            if made.kind == "Map" and isinstance(item, Applied) and item.kind == "tuple" and len(item.args) == 2:
                return self.apply("Map", item.args)
            if made.kind in ("Vec", "Iterator"):
                return self.apply(made.kind, (item, *made.args[1:]))
            if made.kind in ("Option", "Result") and isinstance(item, Applied) and item.kind == made.kind:
                return self.apply(made.kind, (self.apply("Vec", item.args[:1]), *made.args[1:]))
        return made

    def _closure_results(self, linker: Linker, unit: View, site: Site) -> Values:
        found = NOTHING
        for value in site.args:
            if isinstance(value, Lambda):
                found = join(found, linker.calls.returned(linker.function(unit, value.start)))
            elif isinstance(value, str):
                for thing, level in linker.evaluate(unit, site.scope, value, site.start).items():
                    if isinstance(thing, Function):
                        found = join(found, self.give(linker, thing, None, None, -1))
                    elif isinstance(thing, Class):
                        found = join(found, {thing.instance: level})
        return found

    def _items(self, linker: Linker, values: Values) -> Values:
        """What iterating over values, or opening them, gives."""
        if values is EVERYTHING:
            return values
        found = NOTHING
        for thing, level in values.items():
            inner: Type = None
            if isinstance(thing, Applied) and isinstance(thing.kind, str):
                if thing.kind == "Map":
                    inner = self.apply("tuple", thing.args)
                elif thing.args and thing.kind not in ("tuple", "fn", "dyn"):
                    inner = thing.args[0]
                elif thing.kind == "dyn":
                    inner = next(
                        (k.args[0] for k in thing.args if isinstance(k, Applied) and k.kind == "Iterator"), None
                    )
            elif isinstance(thing, (Instance, Native)):
                inner = self._find_alias(linker, thing, "Item")
            found = join(found, linker.unknown if inner is None else {inner: max(level, INFERRED)})
        return found

    # -- operations ------------------------------------------------------------------------------

    def operate(self, linker: Linker, unit: View, scope: int, form: OwnForm, position: int) -> Values:
        match form:
            case MethodOf():
                return linker.method(linker.evaluate(unit, scope, form.receiver, position), form.name)
            case Item():
                return self._find_item(linker, unit, scope, form)
            case ClosureParameter():
                return self._closure(linker, unit, form)
            case PartOf():
                return self._part(linker, unit, scope, form, position)
            case Unwrapped():
                found = NOTHING
                for thing, level in linker.evaluate(unit, scope, form.value, position).items():
                    opened = isinstance(thing, Applied) and thing.kind in ("Option", "Result")
                    found = join(found, self._items(linker, {thing: level}) if opened else linker.unknown)
                return found
            case TuplePart():
                found = NOTHING
                for thing, level in linker.evaluate(unit, scope, form.value, position).items():
                    part = self._find_field(linker, thing, str(form.number)) if isinstance(thing, Applied) else None
                    found = join(found, linker.unknown if part is None else {part: max(level, INFERRED)})
                return found
            case Indexed():
                values = linker.evaluate(unit, scope, form.value, position)
                return self._index(linker, values, is_range=form.is_range)
            case OperatorMethod():
                return self._run_operator(linker, unit, scope, form, position)
            case _:
                return linker.unknown

    def cast(self, linker: Linker, unit: View, scope: int, form: Typed, position: int) -> Values:
        """A type may leave a hole, which the value fills: `let x: Vec<_> = …`."""
        made = self._type(linker, unit, scope, form.kind, {})
        if made is None:
            return linker.evaluate(unit, scope, form.value, position)
        found: Values = {made: ANNOTATION}
        if isinstance(made, Applied) and made.args and made.args[0] is None and form.value is not None:
            for thing, level in linker.evaluate(unit, scope, form.value, position).items():
                if isinstance(thing, Applied) and thing.args:
                    found = join(found, {self._fill(made, thing.args[0]): max(level, INFERRED)})
        return found

    def iterate(self, linker: Linker, unit: View, scope: int, value: Value, position: int) -> Values:
        return self._items(linker, linker.evaluate(unit, scope, value, position))

    def _run_operator(self, linker: Linker, unit: View, scope: int, form: OperatorMethod, position: int) -> Values:
        found = NOTHING
        for thing, level in linker.evaluate(unit, scope, form.receiver, position).items():
            if isinstance(thing, External):
                found = join(found, {thing: level})
                continue
            for method in linker.method({thing: level}, form.method):
                if isinstance(method, Bound) and isinstance(method.function, Function):
                    found = join(found, self.give(linker, method.function, method.receiver, None, -1))
        return found or linker.unknown

    def _index(self, linker: Linker, values: Values, *, is_range: bool) -> Values:
        found = NOTHING
        for thing, level in values.items():
            inner: Type = None
            if isinstance(thing, Applied) and thing.kind in ("Vec", "Map"):
                inner = thing if is_range else thing.args[-1]
            elif _class_of(thing) is not None:
                for method in self._find_own_method(linker, thing, "index", dotted=True):
                    if isinstance(method, Function):
                        for given in self.give(linker, method, thing, None, -1):
                            inner = None if given is UNKNOWN else given
            found = join(found, linker.unknown if inner is None else {inner: max(level, INFERRED)})
        return found

    def find_literal(self, linker: Linker, kind: str) -> Values:
        # Traits of the repository may give methods to texts.
        return {self.apply("str", ()): ANNOTATION} if kind == "str" else super().find_literal(linker, kind)

    def contain(self, linker: Linker, unit: View, scope: int, form: Written, position: int) -> Values:
        kinds: list[Type] = []
        for part in find_inner(form):
            known = [t for t in linker.evaluate(unit, scope, part, position) if t is not UNKNOWN]
            kinds.append(_as_type(known[0]) if len(known) == 1 else None)
        return {self.apply("tuple" if get_kind(form) == "tuple" else "Vec", tuple(kinds)): INFERRED}

    def _part(self, linker: Linker, unit: View, scope: int, form: PartOf, position: int) -> Values:
        inner, path = form.value, form.path
        if path is None:
            return linker.unknown
        found = NOTHING
        if path in ("Some", "Ok", "Err"):
            for thing, level in linker.evaluate(unit, scope, inner, position).items():
                kind: Type = None
                if isinstance(thing, Applied) and thing.kind in ("Option", "Result"):
                    at = int(path == "Err")
                    kind = thing.args[at] if at < len(thing.args) else None
                found = join(found, linker.unknown if kind is None else {kind: max(level, INFERRED)})
            return found
        for thing in self._path(linker, unit, scope, path.split("::"), "value") or self._path(
            linker, unit, scope, path.split("::"), "type"
        ):
            kind = _class_of(thing) if not isinstance(thing, Class) else thing
            if kind is None:
                continue
            receivers: list[Type] = [None]
            if _is_generic(linker, kind):
                receivers = list(linker.evaluate(unit, scope, inner, position))
            for receiver in receivers:
                part = self._field(linker, kind, form.field, receiver)
                if part is not None:
                    found = join(found, {part: ANNOTATION})
        return found or linker.unknown

    def _closure(self, linker: Linker, unit: View, form: ClosureParameter) -> Values:
        """What a closure's parameter is: the callee that it is passed to says so."""
        number, at = form.argument, form.number
        site_number = unit.site_at.get(form.call) if isinstance(form.call, int) else None
        if site_number is None:
            return linker.unknown
        site = unit.sites[site_number]
        found = NOTHING
        for thing, level in linker.link(unit, site_number).items():
            kind: Type = None
            if isinstance(thing, StdMethod):
                receiver = thing.receiver
                holder = receiver.kind if isinstance(receiver, Applied) and isinstance(receiver.kind, str) else ""
                shape = CLOSURE_TAKES.get((holder, thing.method), {}).get(at)
                if shape is not None:
                    given = self._shape(linker, shape, receiver, unit, site)
                    if given is not None:
                        found = join(found, given)
                        continue
                elif thing.method == "fold" and at == 0:
                    found = join(found, self._argument(linker, unit, site, 0))
                    continue
            else:
                kind = self._callback_type(linker, thing, number, at)
            found = join(found, linker.unknown if kind is None else {kind: max(level, ANNOTATION)})
        return found

    def _callback_type(self, linker: Linker, thing: Thing, number: int, at: int) -> Type:
        receiver: Thing | None = None
        function = thing
        if isinstance(thing, Bound):
            function, receiver = thing.function, thing.receiver
        if not isinstance(function, Function):
            return None
        parameters = function.definition.parameters
        number += receiver is not None
        if number >= len(parameters):
            return None
        env = {} if function.owner is None else self._env(linker, function.owner, receiver)
        scope = function.definition.symbol if function.definition.symbol >= 0 else function.definition.scope
        kind = parameters[number].type
        made = self._type(linker, function.unit, scope, kind, env)
        if isinstance(made, Variable) and made.unit is function.unit:
            made = self._type(linker, made.unit, made.scope, made.bound, env)
        if isinstance(made, Applied) and made.kind == "fn" and at + 1 < len(made.args):
            return made.args[at + 1]
        return None

    # -- by name ---------------------------------------------------------------------------------

    def is_method_call(self, site: Site) -> bool:
        # A path says what it means, or is not known. What any value may have is most likely not ours.
        return not isinstance(site.callee, (str, Item, Attribute)) and site.name not in STD_METHODS


def _takes_self(definition: Definition) -> bool:
    return bool(definition.parameters) and definition.parameters[0].name == "self"


def _is_local(bind: Bind) -> bool:
    """A variable or parameter; items and imports of a function are found by path."""
    return not isinstance(bind.value, (Defined, Imported))


def _is_in(kind: str, space: str) -> bool:
    if kind == "impl":
        return False
    if space == "type":
        return kind in _TYPES
    if space == "value":
        return kind in _VALUES
    return kind == "macro" if space == "macro" else True


def _fits(thing: Thing, space: str) -> bool:
    if not space or isinstance(thing, External):
        return True
    if isinstance(thing, Function):
        return space != "type"
    if isinstance(thing, Class):
        # Literals of variants are looked up among types.
        return _is_in(thing.definition.kind, space) or thing.definition.kind == "variant"
    return space == "type"


def _is_declared(thing: Thing) -> bool:
    """A method of a trait, whose other candidates are those that implement it."""
    return isinstance(thing, Function) and thing.owner is not None


def _is_private(thing: Thing, unit: View, scope: int) -> bool:
    """Whether a module's own item is for it and the modules inside it alone."""
    if not isinstance(thing, (Class, Function)) or thing.unit is not unit or thing.definition.scope != scope:
        return False
    words = thing.definition.modifiers
    return thing.definition.kind != "macro" and not any(word.startswith("pub") for word in words)


def _is_below(unit: View, scope: int, other: View, around: int) -> bool:
    """Whether a module stands inside another, or may do so: then it sees what is private there."""
    if unit is not other:
        folder, _, name = other.path.rpartition("/")
        stem = name.removesuffix(".rs")
        inside = folder if stem in ("mod", "lib", "main") else f"{folder}/{stem}" if folder else stem
        return around != ROOT or not inside or unit.path.startswith(f"{inside}/")
    while scope != around and scope in unit.by_symbol:
        scope = unit.by_symbol[scope].scope
    return scope == around


def _class_of(thing: Type) -> Class | None:
    if isinstance(thing, Instance):
        return thing.type
    return thing.kind if isinstance(thing, Applied) and isinstance(thing.kind, Class) else None


def _as_type(thing: Thing) -> Type:
    if isinstance(thing, Class):
        return thing.instance
    return thing if isinstance(thing, (Instance, Native, External)) else None


def _is_generic(linker: Linker, kind: Class) -> bool:
    definition = kind.definition
    if definition.kind == "variant":
        definition = kind.unit.by_symbol[definition.scope]
    return bool(definition.keywords)


def _depth(thing: Type) -> int:
    deepest, todo = 0, [(thing, 1)]
    while todo:
        inner, depth = todo.pop()
        if isinstance(inner, Applied) and depth <= MAX_DEPTH:
            deepest = max(deepest, depth)
            todo += [(arg, depth + 1) for arg in inner.args]
    return deepest
