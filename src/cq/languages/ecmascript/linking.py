"""TypeScript and JavaScript for the linker: modules, classes and interfaces, types as written, the language's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from cq.graph.dialect import MAX_IMPORTS, Dialect, OwnForm
from cq.graph.engine.view import View
from cq.graph.items import Written
from cq.graph.scopes import ANYWHERE, ROOT, find_defined
from cq.graph.things import (
    APPLIED,
    UNKNOWN,
    Bound,
    Class,
    Container,
    External,
    Function,
    Instance,
    Module,
    OwnClass,
    Thing,
)
from cq.graph.values import ATTRIBUTE, IMPORT, MRO, NOTHING, PARAMETER, Values, join, raised
from cq.languages.ecmascript.modules import DECLARATIONS, Modules
from cq.model.code import (
    NULL,
    AliasOf,
    Attribute,
    Awaited,
    Bind,
    Bounds,
    Choice,
    Constant,
    Defined,
    Dictionary,
    Each,
    Element,
    FunctionType,
    Imported,
    Integer,
    Iterated,
    Key,
    Lambda,
    Listing,
    MemberType,
    Name,
    ObjectType,
    ParameterOf,
    ReturnOf,
    SeenIn,
    Site,
    Spread,
    SuperObject,
    Text,
    TypeOf,
    Value,
    split_receiver,
)
from cq.model.facts import Import

if TYPE_CHECKING:
    from cq.graph.link import Linker

MAX_STEPS = 30  # from a name to what it stands for
MAX_LOOKUPS = 500  # for one type or base: `type A = B | B; type B = C | C; …` doubles with every step
MAX_STORES = 10  # elements that are put under one key
MAX_DERIVED = 20  # classes that a call on an interface may mean

# Values and types that need no declaration.
_GLOBALS = """
AbortController AbortSignal AggregateError Array ArrayBuffer AsyncGenerator AsyncIterable AsyncIterator Atomics
Awaited BigInt BigInt64Array BigUint64Array Blob Boolean Buffer Capitalize CustomEvent DOMException DataView Date
Document Element Error EvalError Event EventSource EventTarget Exclude Extract File FinalizationRegistry Float32Array
Float64Array FormData Function Generator HTMLButtonElement HTMLCanvasElement HTMLDivElement HTMLElement
HTMLFormElement HTMLImageElement HTMLInputElement Headers Image InstanceType Int16Array Int32Array Int8Array Intl
Iterable IterableIterator Iterator JSON KeyboardEvent Map Math MessageChannel MouseEvent MutationObserver NoInfer Node
NodeJS NodeList NonNullable Number Object Omit Parameters Partial Performance Pick PointerEvent Promise PromiseLike
Proxy RangeError ReadableStream Readonly ReadonlyArray ReadonlyMap ReadonlySet Record ReferenceError Reflect RegExp
Request Required ResizeObserver Response ReturnType Set SharedArrayBuffer Storage String Symbol SyntaxError
TextDecoder TextEncoder TypeError URIError URL URLSearchParams Uint16Array Uint32Array Uint8Array Uint8ClampedArray
Uncapitalize Uppercase Lowercase WeakMap WeakRef WeakSet WebSocket Window Worker WritableStream XMLHttpRequest alert
arguments atob btoa cancelAnimationFrame clearImmediate clearInterval clearTimeout console crypto decodeURI
decodeURIComponent document encodeURI encodeURIComponent escape eval fetch global globalThis history import isFinite
isNaN localStorage location navigator parseFloat parseInt performance process queueMicrotask requestAnimationFrame
requestIdleCallback require screen sessionStorage setImmediate setInterval setTimeout structuredClone unescape window
__dirname __filename
"""

# Methods of arrays, maps, sets and promises that call their first argument with an element.
_CALLERS = (
    "map", "flatMap", "forEach", "filter", "some", "every", "find", "findIndex", "findLast", "sort", "then", "reduce",
    "reduceRight", "catch", "finally", "findLastIndex",
)  # fmt: skip
_EMITTERS = (
    "events.EventEmitter()", "node:events.EventEmitter()", "events()", "builtins.process", "builtins.document",
    "builtins.window", "builtins.EventTarget()", "events.EventEmitter", "node:events.EventEmitter", "events",
    "node:events", "builtins.EventTarget",
)  # fmt: skip
_LISTENING = ("on", "once", "addListener", "addEventListener", "prependListener")
_CALLING = ("setTimeout", "setInterval", "setImmediate", "queueMicrotask", "requestAnimationFrame", "Promise")


class Alias(NamedTuple):
    """A type that is called by a name: to be read where it stands."""

    unit: View
    scope: int
    type: Value


class TypeScriptDialect(Dialect):
    constructors = ("constructor",)
    base_constructor = "super"
    sending = "next"
    protocols: ClassVar[dict[str, str]] = {"iter": "[Symbol.iterator]", "next": "next"}
    runs: ClassVar[dict[str, tuple[str, ...]]] = {"iter": ("[Symbol.iterator]", "[Symbol.asyncIterator]")}
    callers: ClassVar[dict[str, int | str | tuple[int, ...]]] = {
        **{f"builtins.{kind}().{name}": 0 for kind in ("list", "map", "set", "promise") for name in _CALLERS},
        "builtins.promise().then": (0, 1),
        **{f"builtins.{kind}().forEach": 0 for kind in ("Map", "Set")},
        **{f"{holder}.{name}": 1 for holder in _EMITTERS for name in _LISTENING},
        "builtins.str().replace": 1,
        "builtins.str().replaceAll": 1,
        "builtins.Array.from": 1,
        "builtins.JSON.parse": 1,
        "builtins.JSON.stringify": 1,
        **{f"builtins.{name}": 0 for name in _CALLING},
    }
    builtins = frozenset(_GLOBALS.split())
    own_kinds: ClassVar[dict[str, str]] = {
        "list": "Array", "tuple": "Array", "dict": "Object", "set": "Set", "map": "Map", "promise": "Promise",
        "str": "String", "int": "Number", "float": "Number", "bool": "Boolean", "bytes": "Uint8Array",
        "generator": "Generator",
    }  # fmt: skip

    def __init__(self, paths: Iterable[str]) -> None:
        self._modules = Modules(paths)
        self._made_up: dict[tuple[View, int], Choice] = {}
        self._left = MAX_LOOKUPS

    # -- modules ---------------------------------------------------------------------------------

    def resolve_import(self, linker: Linker, unit: View, level: int, module: str, name: str) -> Values:
        path = self._modules.find(linker, unit.path, module)
        if path is None:
            return linker.unknown
        if not path:
            return {linker.external(module if name in ("*", "=", "default") else f"{module}.{name}"): IMPORT}
        source = linker.module(path)
        if name == "*" or source.unit is None:
            return {source: IMPORT}
        if name == "=":
            return self._whole(linker, source.unit) or {source: IMPORT}
        found = self._export(linker, source.unit, name, {source.unit})
        return linker.unknown if found is None else raised(found, IMPORT)

    def find_origin(self, linker: Linker, unit: View, value: Imported) -> Thing | None:
        name = value.name
        path = self._modules.find(linker, unit.path, value.module)
        source = linker.module(path).unit if path else None
        if source is None or name in ("*", "="):
            return None
        saved, self._left = self._left, MAX_LOOKUPS
        found = self._find_member(linker, source, name, {source}, as_type=True, steps=MAX_STEPS)
        self._left = saved
        if isinstance(found, Class):
            return found
        home = found.unit if isinstance(found, Alias) else self._find_home(linker, source, name, {source}, MAX_IMPORTS)
        return None if home is None or home.document else linker.module(home.path)

    def _find_home(self, linker: Linker, unit: View, name: str, seen: set[View], steps: int) -> View | None:
        """The module that binds an exported name to a value, along exports of it under the same name."""
        for bind in self._exports(unit, name) if steps else ():
            value = bind.value
            if isinstance(value, str) and bind.name.startswith("export ") and value.isidentifier():
                inner = unit.bound(ROOT, value)
                value = inner[0].value if len(inner) == 1 and value == name else None
            if not isinstance(value, Imported):
                return None if value is None else unit
            path = self._modules.find(linker, unit.path, value.module)
            source = linker.module(path).unit if path else None
            return source and self._find_home(linker, source, name, {source}, steps - 1) if value.name == name else None
        for inner in self._starred(linker, unit, name, seen) if steps else ():
            found = None if isinstance(inner, External) else self._find_home(linker, inner, name, seen, steps - 1)
            if found is not None:
                return found
        return None

    def find_sources(self, linker: Linker, unit: View, item: Import) -> list[tuple[Thing, bool]] | None:
        path = self._modules.find(linker, unit.path, item.module)
        if path is None:
            return []
        typed = (
            item.type_only
            or unit.path.endswith(DECLARATIONS)
            or path.endswith(DECLARATIONS)
            or (
                bool(item.bindings)
                and all(b.type_only or self._is_type(linker, path, b.imported) for b in item.bindings)
            )
        )
        return [(linker.module(path) if path else linker.external(item.module), typed)]

    def _is_type(self, linker: Linker, path: str, name: str) -> bool:
        """Whether a module has a type and nothing else under a name: the compiler leaves out such an import."""
        unit = linker.module(path).unit if path else None
        if unit is None or name == "*":
            return False
        saved, self._left = self._left, MAX_LOOKUPS
        found = self._find_member(linker, unit, name, {unit}, as_type=True, steps=MAX_STEPS)
        valued = self._find_member(linker, unit, name, {unit}, as_type=False, steps=MAX_STEPS)
        self._left = saved
        return _is_erased(found) and (valued is None or _is_erased(valued))

    def find_exported(self, linker: Linker, unit: View, name: str) -> Values | None:
        found = self._export(linker, unit, name, {unit})
        return None if found is None else raised(found, IMPORT)

    def _export(self, linker: Linker, unit: View, name: str, seen: set[View]) -> Values | None:
        binds = self._exports(unit, name)
        if binds:
            found = NOTHING
            for bind in binds:
                found = join(found, linker.bound(unit, bind))
            return found
        whole = self._whole(linker, unit)
        if whole is not None:
            return whole if name == "default" else linker.attribute(whole, name)
        for inner in self._starred(linker, unit, name, seen):
            if isinstance(inner, External):
                return {linker.external(f"{inner.name}.{name}"): IMPORT}
            found = self._export(linker, inner, name, seen)
            if found is not None:
                return found
        return None

    def _whole(self, linker: Linker, unit: View) -> Values | None:
        """`module.exports = …`."""
        binds = unit.bound(ROOT, "export =")
        if not binds:
            return None
        found = NOTHING
        for bind in binds:
            found = join(found, linker.bound(unit, bind))
        return found

    def _exports(self, unit: View, name: str, *, as_type: bool = False) -> Sequence[Bind]:
        """The bindings that leave a module under a name."""
        found = unit.bound(ROOT, f"export {name}")
        if not found and name in (unit.public() or ()):
            found = unit.bound(ROOT, f"<{name}>") if as_type else ()
            found = found or [bind for bind in unit.bound(ROOT, name) if not bind.inner]
        return found

    def _starred(self, linker: Linker, unit: View, name: str, seen: set[View]) -> Iterator[View | External]:
        """Where `export * from` may find a name; packages last, since nobody knows what they have."""
        outside: list[External] = []
        if name == "default":
            return
        for source in [bind.value for bind in unit.bound(ROOT, "export *")]:
            path = self._modules.find(linker, unit.path, source.module) if isinstance(source, Imported) else None
            inner = linker.module(path).unit if path else None
            if inner is not None and inner not in seen:
                seen.add(inner)
                yield inner
            elif path == "" and isinstance(source, Imported):
                outside.append(linker.external(source.module))
        yield from outside

    # -- names without flow ----------------------------------------------------------------------

    def find_static(self, linker: Linker, unit: View, scope: int, value: Value, position: int) -> Thing | None:
        saved, self._left = self._left, MAX_LOOKUPS
        found = self._find(linker, unit, scope, value, as_type=True)
        if isinstance(found, Alias):
            found = self._find(linker, *found, as_type=True)
        self._left = saved
        return None if isinstance(found, Alias) else found

    def _find(
        self, linker: Linker, unit: View, scope: int, value: Value, *, as_type: bool, steps: int = MAX_STEPS
    ) -> Thing | Alias | None:
        """What a name leads to by declarations, imports and aliases alone."""
        self._left -= 1
        if steps <= 0 or self._left < 0:
            return None
        match value:
            case str():
                return self._find_path(linker, unit, scope, value.split("."), as_type=as_type, steps=steps)
            case Defined():
                return linker.thing(unit, value.start)
            case Lambda():
                return linker.function(unit, value.start)
            case Element():
                return self._find(linker, unit, scope, value.base, as_type=as_type, steps=steps - 1)
            case SeenIn():
                return self._find(linker, unit, value.scope, value.value, as_type=as_type, steps=steps - 1)
            case AliasOf():
                return Alias(unit, scope, value.kind)
            case Imported():
                return self._find_imported(linker, unit, value, as_type=as_type, steps=steps - 1)
            case Attribute(base=Imported() as source, path=path):
                base = self._find_imported(linker, unit, source, as_type=as_type, steps=steps - 1)
                return self._find_inner(linker, base, path.split("."), as_type=as_type, steps=steps - 1)
            case _:
                return None

    def _find_path(
        self, linker: Linker, unit: View, scope: int, path: list[str], *, as_type: bool, steps: int
    ) -> Thing | Alias | None:
        found: Thing | Alias | None = None
        names = (f"<{path[0]}>", path[0]) if as_type and len(path) == 1 else (path[0],)
        for name in names:
            binds = unit.find(scope, name, ANYWHERE)
            for bind in binds:
                found = self._find(linker, unit, bind.scope, bind.value, as_type=as_type, steps=steps - 1)
                if found is not None:
                    break
            if binds:
                break
        else:
            if path[0] in self.builtins:
                found = linker.external(f"builtins.{path[0]}")
        return self._find_inner(linker, found, path[1:], as_type=as_type, steps=steps - 1)

    def _find_imported(
        self, linker: Linker, unit: View, value: Imported, *, as_type: bool, steps: int
    ) -> Thing | Alias | None:
        module, name = value.module, value.name
        path = self._modules.find(linker, unit.path, module)
        if path is None:
            return None
        if not path:
            return linker.external(module if name in ("*", "=", "default") else f"{module}.{name}")
        source = linker.module(path)
        if name == "*" or source.unit is None:
            return source
        if name == "=":
            found = self._find_whole(linker, source.unit, as_type=as_type, steps=steps)
            return source if found is None else found
        return self._find_member(linker, source.unit, name, {source.unit}, as_type=as_type, steps=steps)

    def _find_whole(self, linker: Linker, unit: View, *, as_type: bool, steps: int) -> Thing | Alias | None:
        for bind in unit.bound(ROOT, "export ="):
            return self._find(linker, unit, ROOT, bind.value, as_type=as_type, steps=steps - 1)
        return None

    def _find_member(
        self, linker: Linker, unit: View, name: str, seen: set[View], *, as_type: bool, steps: int
    ) -> Thing | Alias | None:
        if steps <= 0:
            return None
        for bind in self._exports(unit, name, as_type=as_type):
            found = self._find(linker, unit, ROOT, bind.value, as_type=as_type, steps=steps - 1)
            if found is not None:
                return found
        whole = self._find_whole(linker, unit, as_type=as_type, steps=steps)
        if whole is not None:
            return whole if name == "default" else self._find_inner(linker, whole, [name], as_type=as_type, steps=steps)
        for inner in self._starred(linker, unit, name, seen):
            if isinstance(inner, External):
                return linker.external(f"{inner.name}.{name}")
            found = self._find_member(linker, inner, name, seen, as_type=as_type, steps=steps - 1)
            if found is not None:
                return found
        return None

    def _find_inner(
        self, linker: Linker, found: Thing | Alias | None, path: list[str], *, as_type: bool, steps: int
    ) -> Thing | Alias | None:
        for name in path:
            if isinstance(found, External):
                found = linker.external(f"{found.name}.{name}")
            elif isinstance(found, Module):
                unit = found.unit
                found = unit and self._find_member(linker, unit, name, {unit}, as_type=as_type, steps=steps - 1)
            elif isinstance(found, Class):
                unit, symbol = found.unit, found.definition.symbol
                found = None
                for label in (f"<{name}>", name) if as_type else (name,):
                    for bind in unit.bound(symbol, label):
                        found = found or self._find(linker, unit, symbol, bind.value, as_type=as_type, steps=steps - 1)
            else:
                return None
        return found

    # -- classes ---------------------------------------------------------------------------------

    def order_bases(self, linker: Linker, kind: Class) -> tuple[Thing | None, ...]:
        """Depth first; declarations of the same name count as one."""
        saved, self._left = self._left, MAX_LOOKUPS
        unit, definition = kind.unit, kind.definition
        order: dict[Thing | None, None] = {kind: None}
        for start in find_defined(unit.bound(definition.scope, f"<{definition.name}>")):
            merged = linker.thing(unit, start)
            if isinstance(merged, Class) and merged is not kind:
                order[merged] = None
                for value in merged.definition.bases:
                    self._add_bases(linker, order, unit, definition.scope, value, as_type=True)
        for value in definition.bases:
            self._add_bases(linker, order, unit, definition.scope, value, as_type=definition.kind == "interface")
        self._left = saved
        return tuple(order)

    def _add_bases(
        self, linker: Linker, order: dict[Thing | None, None], unit: View, scope: int, value: Value, *, as_type: bool
    ) -> None:
        todo: list[tuple[View, int, Value]] = [(unit, scope, value)]
        for _ in range(MAX_STEPS):
            if not todo:
                return
            unit, scope, value = todo.pop()
            if isinstance(value, Bounds):
                todo += [(unit, scope, inner) for inner in reversed(value.types)]
                continue
            if isinstance(value, Element) and value.base in _SAME_MEMBERS and value.keys:
                todo.append((unit, scope, value.keys[0]))
                continue
            base = self._find(linker, unit, scope, value, as_type=as_type)
            if isinstance(base, Alias):
                todo.append((base.unit, base.scope, base.type))
            elif isinstance(base, Class):
                order.update(dict.fromkeys(linker.members.order(base)))
            else:
                order[base] = None

    def receiver(self, linker: Linker, function: Function) -> Thing | None:
        parameters = function.definition.parameters
        if function.owner is None or not parameters or parameters[0].name != "this":
            return None
        is_static = "static" in function.definition.modifiers
        return function.owner.self_class if is_static else function.owner.self_instance

    def access(self, linker: Linker, function: Function, receiver: Thing, *, on_class: bool) -> Values:
        definition, owner = function.definition, function.owner
        takes_this = bool(definition.parameters) and definition.parameters[0].name == "this"
        if "accessor" in definition.modifiers:
            return linker.calls.give(function, receiver, None, -1, int(takes_this))
        if not takes_this or owner is None:
            return {function: 0}
        found: Values = {linker.bind(function, receiver): 0}
        if isinstance(receiver, Instance) and (
            owner.definition.kind == "interface" or "abstract" in definition.modifiers
        ):
            for other in self._find_derived(linker, receiver.type):
                holder, binds, _, _ = linker.members.find(other, definition.name)
                for start in find_defined(binds):
                    thing = linker.thing(holder.unit, start) if isinstance(holder, Class) else None
                    if isinstance(thing, Function) and thing is not function:
                        found[linker.bind(thing, other.instance)] = PARAMETER
        return found

    def _find_derived(self, linker: Linker, kind: Class) -> list[Class]:
        """Classes that implement an interface or extend a class, also through others; none where there are many."""
        found: dict[Class, None] = {}
        todo = [kind]
        while todo:
            for unit, definition in linker.documents.entries("heir", todo.pop().definition.name) or ():
                derived = linker.thing(unit, definition.start)
                if isinstance(derived, Class) and derived not in found and self._implements(linker, derived, kind):
                    found[derived] = None
                    todo.append(derived)
                    if len(found) > MAX_DERIVED:
                        return []
        return [other for other in found if other.definition.kind != "interface"]

    def _implements(self, linker: Linker, kind: Class, base: Class) -> bool:
        for holder in linker.members.order(kind):
            if holder is base:
                return True
            if isinstance(holder, Class):
                for _, value in holder.definition.keywords:
                    thing = self.find_static(linker, holder.unit, holder.definition.scope, value, ANYWHERE)
                    if thing is base or (isinstance(thing, Class) and base in linker.members.order(thing)):
                        return True
        return False

    # -- types -----------------------------------------------------------------------------------

    def make(self, linker: Linker, unit: View, scope: int, kind: Value, position: int) -> Values:
        saved, self._left = self._left, MAX_LOOKUPS
        found = self._make(linker, unit, scope, kind, position, MAX_STEPS)
        self._left = saved
        return found

    def _make(self, linker: Linker, unit: View, scope: int, kind: Value, position: int, steps: int) -> Values:
        self._left -= 1
        if kind is None or isinstance(kind, int) or steps <= 0 or self._left < 0:
            return linker.unknown
        if isinstance(kind, str):
            if kind == "this":
                holder = unit.find_class(scope)
                thing = None if holder is None else linker.thing(unit, holder.start)
                return {thing.self_instance: 0} if isinstance(thing, Class) else linker.unknown
            return self._make_named(linker, unit, scope, kind, position, steps)
        match kind:
            case Constant():
                return NOTHING if kind == NULL else {linker.external(f"builtins.{kind.name}()"): 0}
            case Choice():
                return self._make_each(linker, unit, scope, kind.options, position, steps)
            case Bounds():
                found = NOTHING
                for inner in kind.types:
                    made = self._make(linker, unit, scope, inner, position, steps - 1)
                    # What is unknown in `A & B` takes nothing from what is known.
                    found = join(found, made if UNKNOWN not in made else NOTHING)
                return found or linker.unknown
            case Element():
                return self._make_generic(linker, unit, scope, kind, position, steps)
            case FunctionType():
                return {linker.container("function", unit, scope, position, kind, typed=True): 0}
            case ObjectType():
                return {linker.container("dict", unit, scope, position, kind, typed=True): 0}
            case Listing():
                element = self._made_up.setdefault((unit, id(kind)), Choice(kind.elements))
                return {linker.container("list", unit, scope, position, element, typed=True): 0}
            case TypeOf():
                thing = self._find(linker, unit, scope, kind.value, as_type=False)
                return {thing: 0} if isinstance(thing, (Class, Function, Module, External)) else linker.unknown
            case MemberType():
                found = NOTHING
                for thing in self._make(linker, unit, scope, kind.kind, position, steps - 1):
                    found = join(found, self._make_member(linker, thing, kind.name, steps - 1))
                return found
            case _:
                return linker.unknown

    def _make_each(
        self, linker: Linker, unit: View, scope: int, kinds: Iterable[Value], position: int, steps: int
    ) -> Values:
        found = NOTHING
        for kind in kinds:
            found = join(found, self._make(linker, unit, scope, kind, position, steps - 1))
        return found

    def _make_named(self, linker: Linker, unit: View, scope: int, name: Name, position: int, steps: int) -> Values:
        thing = self._find(linker, unit, scope, name, as_type=True)
        if isinstance(thing, Alias):
            return self._make(linker, thing.unit, thing.scope, thing.type, ANYWHERE, steps - 1)
        if isinstance(thing, Class):
            if thing.definition.kind == "enum":
                return {linker.external("builtins.int()"): 0}
            return {thing.instance: 0}
        return {linker.external(f"{thing.name}()"): 0} if isinstance(thing, External) else linker.unknown

    def _make_generic(self, linker: Linker, unit: View, scope: int, kind: Element, position: int, steps: int) -> Values:
        name, given = kind.base, kind.keys
        thing = self._find(linker, unit, scope, name, as_type=True) if isinstance(name, str) else None
        if not isinstance(thing, External) or not given:
            return self._make(linker, unit, scope, name, position, steps - 1)
        label = thing.name.removeprefix("builtins.")
        if label in _SAME_MEMBERS:
            return self._make(linker, unit, scope, given[0], position, steps - 1)
        if label in _HOLDERS:
            inner = given[:2][-1] if _HOLDERS[label] in ("map", "dict") else given[0]
            return {linker.container(_HOLDERS[label], unit, scope, position, inner, typed=True): 0}
        if label in ("InstanceType", "ReturnType"):
            found = NOTHING
            for inner in self._make(linker, unit, scope, given[0], position, steps - 1):
                if isinstance(inner, Class) and label == "InstanceType":
                    found = join(found, {inner.instance: 0})
                elif isinstance(inner, Function) and label == "ReturnType":
                    definition = inner.unit.contents(inner.definition)
                    made = self._make(linker, inner.unit, definition.scope, definition.type, ANYWHERE, steps - 1)
                    found = join(found, made)
                else:
                    found = join(found, linker.unknown)
            return found
        return {linker.external(f"{thing.name}()"): 0}

    def _make_member(self, linker: Linker, thing: Thing, name: str, steps: int) -> Values:
        """`T["name"]`."""
        if isinstance(thing, Container) and thing.typed and isinstance(thing.value, ObjectType):
            return self._make_property(linker, thing, thing.value, name, steps)
        if not isinstance(thing, Instance):
            return linker.unknown
        holder, binds, stores, _ = linker.members.find(thing.type, name)
        for member in (*binds, *stores):
            if isinstance(holder, Class) and member.type is not None:
                return self._make(linker, holder.unit, member.scope, member.type, member.start, steps)
        return linker.unknown

    def _make_property(self, linker: Linker, container: Container, kind: ObjectType, name: str, steps: int) -> Values:
        """Of a type written as an object."""
        for key, inner in zip(kind.keys, kind.types, strict=True):
            if key in (Text(name), _ANY_TEXT):
                return self._make(linker, container.unit, container.scope, inner, container.position, steps)
        return linker.unknown

    # -- operations ------------------------------------------------------------------------------

    def operate(self, linker: Linker, unit: View, scope: int, form: OwnForm, position: int) -> Values:
        match form:
            case ReturnOf():
                found = NOTHING
                for thing, level in linker.evaluate(unit, scope, form.function, position).items():
                    function = thing.function if isinstance(thing, Bound) else thing
                    receiver = thing.receiver if isinstance(thing, Bound) else None
                    if isinstance(function, Function):
                        found = join(found, raised(linker.calls.give(function, receiver, None, -1, 0), level))
                    else:
                        found = join(found, linker.unknown)
                return found
            case SuperObject():
                return self._super(linker, unit, scope, form)
            case _:
                return linker.unknown

    def _super(self, linker: Linker, unit: View, scope: int, form: SuperObject) -> Values:
        holder = unit.find_class(scope)
        kind = None if holder is None else linker.thing(unit, holder.start)
        if not isinstance(kind, Class):
            return linker.unknown
        if not form.is_called:
            method = linker.callers.method_around(unit, scope)
            is_static = method is not None and "static" in method.definition.modifiers
            return {linker.super_of(kind, kind.self_class if is_static else kind.self_instance): MRO}
        base = next(iter(linker.members.order(kind)[1:]), None)
        owner, binds, _, _ = linker.members.find(kind, "constructor", behind=True)
        starts = find_defined(binds[:1])
        if isinstance(owner, Class) and starts:
            return {linker.bind(linker.thing(owner.unit, starts[0]), kind.self_instance): MRO}
        return linker.unknown if base is None else {base: MRO}

    def container_member(self, linker: Linker, container: Container, name: str, level: int) -> Values:
        if container.kind == "dict":
            value = container.value
            if container.typed and isinstance(value, ObjectType):
                found = self._make_property(linker, container, value, name, MAX_STEPS)
            elif container.typed:
                found = linker.unknown if name in _OBJECT_METHODS else linker.containers.elements(container)
            else:
                found = linker.containers.elements(container, Text(name))
            # An object has the methods of all objects, unless it has its own, or may have got one by `...other`.
            is_open = not container.typed and isinstance(value, Dictionary) and None in value.keys
            if name not in _OBJECT_METHODS or is_open or any(value is not UNKNOWN for value in found):
                return raised(found, level)
        kind = "Function" if container.kind == "function" else f"{container.kind}()"
        return {linker.external(f"builtins.{kind}.{name}", container): level}

    def find_entry(self, linker: Linker, container: Container, key: Key) -> Values | None:
        """A property of an object as written, spread into it, or assigned to it in the same file."""
        unit, value = container.unit, container.value
        if not isinstance(value, Dictionary) or not isinstance(key, Text):
            return None
        found, name = NOTHING, key.value
        pairs = list(zip(value.keys, value.values, strict=True))
        written = [inner for at, inner in pairs if at == key or self._is_constant(linker, container, at, key)]
        for inner in written[-1:]:
            found = join(found, linker.evaluate(unit, container.scope, inner, container.position))
        spread = [inner for at, inner in pairs if at is None and not written]
        for inner in spread:
            values = linker.evaluate(unit, container.scope, inner, container.position)
            found = join(found, linker.attribute(values, name))
        stores = unit.stores(name)
        for store in stores:
            if container in linker.store_base(unit, store):
                found = join(found, linker.stored(unit, store))
        put = unit.items_under(key)
        for store in put[:MAX_STORES]:
            if container in linker.store_base(unit, store):
                found = join(found, linker.stored(unit, store))
        if not (written or spread or stores or put) or _ANY_TEXT in value.keys:
            found = join(found, linker.unknown)
        return raised(found, ATTRIBUTE)

    def _is_constant(self, linker: Linker, container: Container, at: Value, key: Key) -> bool:
        """Whether `{[KEY]: …}` has an entry under the key."""
        if not isinstance(at, str):
            return False
        known = linker.containers.find_keys_of(container.unit, container.scope, at, container.position)
        return known is not None and key in known

    def function_member(self, linker: Linker, function: Function | Class, name: str) -> Values | None:
        if name in ("call", "apply"):
            # `f.call(receiver, a)` passes a as the first parameter; of a method, `this` is one before it.
            parameters = function.definition.parameters
            own = bool(parameters) and parameters[0].name == "this"
            return {linker.bind(function, None, own + (-1 if name == "call" else APPLIED)): 0}
        if name in _FUNCTION_METHODS:
            return {linker.external(f"builtins.Function.{name}"): 0}
        return self.find_beside(linker, function, name)

    def find_beside(self, linker: Linker, thing: Function | Class, name: str) -> Values | None:
        if name == "prototype" and isinstance(thing, Class):
            return {thing.instance: 0}  # it has the methods of its instances
        unit, start = thing.unit, thing.definition.start
        merged = self._find_merged(thing, name)
        if merged is not None:
            return linker.bound(unit, merged)
        for bind in unit.bound(ROOT, "export ="):
            value = bind.value
            if isinstance(value, str):  # `module.exports = f`
                named = unit.bound(ROOT, value)
                value = named[0].value if len(named) == 1 else None
            if isinstance(value, (Defined, Lambda)) and value.start == start:
                binds = self._exports(unit, name)
                return linker.bound(unit, binds[0]) if binds else None
        return None

    def _find_merged(self, thing: Function | Class, name: str) -> Bind | None:
        """Of a name that is declared as a class, function or enum and as a namespace too: what the other one has."""
        unit, definition = thing.unit, thing.definition
        binds = unit.bound(definition.scope, definition.name) if definition.name else ()
        if len(binds) < 2:
            return None
        others = [unit.definitions[at] for at in find_defined(binds)]
        if len(others) < len(binds) or not any(other.kind == "namespace" for other in others):
            return None
        for other in sorted(others, key=lambda other: other is not definition):
            for bind in unit.bound(other.symbol, name):
                return bind if other is not definition else None
        return None

    def call_container(self, linker: Linker, container: Container) -> Values:
        kind = container.value
        if container.typed and isinstance(kind, FunctionType):
            return linker.make(container.unit, container.scope, kind.result, container.position)
        return linker.unknown

    # -- what the language's own functions do -----------------------------------------------------

    def call_external(self, linker: Linker, thing: External, unit: View, number: int) -> Values | None:
        site = unit.sites[number]
        name = thing.name
        if thing.owner is not None:
            return self._call_method(linker, thing.owner, name.rpartition(".")[2], unit, number)
        if name == "builtins.Function.bind":
            return self._bind(linker, unit, number)
        if name in ("builtins.Map().get", "builtins.WeakMap().get") and site.args and isinstance(site.callee, str):
            keys = linker.containers.find_keys_of(unit, site.scope, site.args[0], site.start) or [None]
            return linker.containers.items(unit, site.scope, split_receiver(site.callee), site.start, keys) or None
        made = self._contain(name, site)
        if made is not None:
            return {linker.held(unit, number, made): 0}
        if not site.args:
            return None
        first = site.args[0]
        if name == "builtins.require" and isinstance(first, Text):
            return self.resolve_import(linker, unit, 0, first.value, "=")
        if name in ("builtins.require", "builtins.import"):
            return linker.unknown
        return linker.evaluate(unit, site.scope, first, site.start) if name in _SAME_VALUE else None

    def _contain(self, name: str, site: Site) -> Written | None:
        """The container that one of the language's own functions gives."""
        if not site.args:
            return Listing("list") if name in _FILLED else None
        first = site.args[0]
        match name:
            case "builtins.import" if isinstance(first, Text):
                return Each("promise", Imported(0, first.value, "*"))
            case "builtins.Object.assign" if isinstance(first, Dictionary):
                return Dictionary((None,) * len(site.args), site.args)
            case "builtins.Object.keys":
                return Each("list", _ANY_TEXT)
            case "builtins.Map":
                return Each("map", Element(Iterated(first), (Integer(1),)))
            case "builtins.Object.values":
                return Each("list", Element(first, (None,)))
            case "builtins.Object.entries":
                return Each("list", Listing("list", (_ANY_TEXT, Element(first, (None,)))))
            case "builtins.Array.of":
                return Listing("list", site.args)
            case "builtins.Array.from" | "builtins.Set":
                return Each("list", Iterated(first))
            case "builtins.Promise" | "builtins.Promise.reject":
                return Each("promise", None)
            case "builtins.Promise.resolve":
                return Each("promise", Awaited(first))
            case "builtins.Promise.all":
                return Each("promise", Each("list", Awaited(Iterated(first))))
            case _:
                return None

    def _bind(self, linker: Linker, unit: View, number: int) -> Values:
        """`f.bind(receiver, a)` is f with its first parameters given."""
        site = unit.sites[number]
        found: Values = {}
        for thing, level in linker.evaluate(unit, site.scope, _base(site.callee), site.start).items():
            if isinstance(thing, Function):
                found[linker.bind(thing, None, max(0, len(site.args) - 1))] = level
            else:
                found[thing] = level
        return found

    def _call_method(self, linker: Linker, owner: Container, name: str, unit: View, number: int) -> Values | None:
        site = unit.sites[number]
        first = site.args[0] if site.args else None
        if owner.kind == "promise":
            if name == "then":
                return {linker.held(unit, number, Each("promise", Awaited(ReturnOf(first)))): 0}
            return {owner: 0}
        if owner.kind in ("function", "dict"):
            return linker.unknown
        if name in ("map", "flatMap"):
            given = ReturnOf(first)
            return {linker.held(unit, number, Each("list", given if name == "map" else Iterated(given))): 0}
        if name == "entries" and owner.kind == "list":
            pair = Listing("list", (Constant("int"), Iterated(_base(site.callee))))
            return {linker.held(unit, number, Each("list", pair)): 0}
        if name == "concat" and owner.kind == "list":
            parts = [Spread(part) for part in (_base(site.callee), *site.args)]
            return {linker.held(unit, number, Listing("list", tuple(parts))): 0}
        if name in _SAME_CONTAINER or (name == "values" and owner.kind != "map"):
            return {owner: 0}
        if name in _ONE_ELEMENT:
            return linker.containers.elements(owner)
        return linker.unknown if name in ("reduce", "entries", "values", "reduceRight") else None

    def find_passed(self, linker: Linker, function: Function, number: int) -> Values | None:
        unit = function.unit
        place = unit.handed(function.definition)
        if place is None:
            return None
        site, at = place
        found = NOTHING
        for thing, level in linker.link(unit, site).items():
            found = join(found, raised(self._pass(linker, thing, at, number), level))
        return found

    def _pass(self, linker: Linker, thing: Thing, at: int, number: int) -> Values:
        """What a function that is handed over as argument `at` gets for its parameter `number`."""
        if isinstance(thing, External) and thing.owner is not None:
            name = thing.name.rpartition(".")[2]
            is_element = number == (1 if name.startswith("reduce") else 0) or (number == 1 and name == "sort")
            return (
                linker.containers.elements(thing.owner)
                if name in _CALLERS and at == 0 and is_element
                else linker.unknown
            )
        skipped = 0
        if isinstance(thing, (Class, OwnClass)):
            kind = thing if isinstance(thing, Class) else thing.type
            holder, binds, _, _ = linker.members.find(kind, "constructor")
            starts = find_defined(binds[:1])
            if not isinstance(holder, Class) or not starts:
                return linker.unknown
            thing, skipped = linker.thing(holder.unit, starts[0]), 1
        elif isinstance(thing, Bound):
            thing, skipped = thing.function, thing.skipped if thing.receiver is None else 1
        if not isinstance(thing, Function):
            return linker.unknown
        unit, definition = thing.unit, thing.unit.contents(thing.definition)
        if at + skipped >= len(definition.parameters):
            return linker.unknown
        parameter = definition.parameters[at + skipped]
        found = NOTHING
        for made in self.make(linker, unit, definition.scope, parameter.type, ANYWHERE):
            kind = made.value if isinstance(made, Container) else None
            if isinstance(made, Container) and isinstance(kind, FunctionType) and len(kind.parameters) > number:
                found = join(found, linker.make(made.unit, made.scope, kind.parameters[number], made.position))
        if parameter.type is None:
            for place in unit.calls(parameter.name):
                site = unit.sites[place]
                binds = unit.find(site.scope, parameter.name, site.start) if site.callee == parameter.name else ()
                passed = site.args[number] if number < len(site.args) else None
                if any(bind.value == ParameterOf(definition.start, at + skipped) for bind in binds):
                    found = join(found, raised(linker.evaluate(unit, site.scope, passed, site.start), PARAMETER))
        return found or linker.unknown


def _is_erased(found: Thing | Alias | None) -> bool:
    return isinstance(found, Alias) or (isinstance(found, Class) and found.definition.kind == "interface")


def _base(callee: Value) -> Value:
    """What a method is called on."""
    if not isinstance(callee, Attribute):
        return split_receiver(callee)
    path = callee.path.rpartition(".")[0]
    return Attribute(callee.base, path) if path else callee.base


_FILLED = frozenset({"builtins.Set", "builtins.Array"})  # made empty, to be filled
_ANY_TEXT = Constant("str")  # the key of a computed property, and of `[key: string]: T`
# Types that have the members of what they are given.
_SAME_MEMBERS = frozenset(
    {"Partial", "Required", "Readonly", "NonNullable", "Omit", "Pick", "Extract", "Exclude", "NoInfer", "Awaited"}
)
_HOLDERS = {
    **dict.fromkeys(("Promise", "PromiseLike"), "promise"),
    **dict.fromkeys(("Array", "ReadonlyArray", "Iterable", "IterableIterator", "Iterator", "AsyncIterable",
                     "AsyncIterator"), "list"),
    **dict.fromkeys(("Generator", "AsyncGenerator"), "generator"),
    **dict.fromkeys(("Set", "ReadonlySet", "WeakSet"), "set"),
    **dict.fromkeys(("Map", "ReadonlyMap", "WeakMap"), "map"),
    "Record": "dict",
}  # fmt: skip
_SAME_VALUE = frozenset(
    {"builtins.Object.freeze", "builtins.Object.seal", "builtins.Object.assign", "builtins.Object.create",
     "builtins.structuredClone"}
)  # fmt: skip
_SAME_CONTAINER = frozenset(
    {"filter", "slice", "concat", "reverse", "sort", "splice", "flat", "fill", "toSorted", "toReversed", "with", "add"}
)
_ONE_ELEMENT = frozenset({"find", "findLast", "at", "pop", "shift", "get", "next"})
_FUNCTION_METHODS = frozenset({"call", "apply", "bind", "toString", "length", "name"})
_OBJECT_METHODS = frozenset({"hasOwnProperty", "toString", "valueOf", "isPrototypeOf", "propertyIsEnumerable"})
