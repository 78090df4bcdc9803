"""TypeScript and JavaScript for the linker: modules, classes and interfaces, types as written, the language's own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, assert_never

from cq.graph.dialect import Dialect, OwnForm
from cq.graph.engine.view import View
from cq.graph.members import MAX_ORDER
from cq.graph.scopes import ANYWHERE, ROOT, find_defined
from cq.graph.things import APPLIED, UNKNOWN, Bound, Class, Container, External, Function, Instance, Thing
from cq.graph.values import ATTRIBUTE, MRO, NOTHING, PARAMETER, Values, join, raised
from cq.languages.ecmascript.declarations import Alias, Declarations, is_erased
from cq.languages.ecmascript.exports import Exports
from cq.languages.ecmascript.library import ANY_TEXT, LIBRARY, call_function, find_passed
from cq.languages.ecmascript.modules import DECLARATIONS
from cq.model.code import (
    Bind,
    Choice,
    ClosureParameter,
    Defined,
    Dictionary,
    FunctionType,
    Imported,
    Indexed,
    Item,
    Key,
    Lambda,
    MethodOf,
    ObjectType,
    OnReceiver,
    OperatorMethod,
    PartOf,
    ReturnOf,
    SuperObject,
    Text,
    TuplePart,
    Unwrapped,
    Value,
    label_type,
)
from cq.model.facts import Import

if TYPE_CHECKING:
    from cq.graph.link import Linker

MAX_STORES = 10  # elements that are put under one key
MAX_DERIVED = 20  # classes that a call on an interface may mean


class TypeScriptDialect(Dialect):
    constructors = ("constructor",)
    base_constructor = "super"
    sending = "next"
    protocols: ClassVar[dict[str, str]] = {"iter": "[Symbol.iterator]", "next": "next"}
    runs: ClassVar[dict[str, tuple[str, ...]]] = {"iter": ("[Symbol.iterator]", "[Symbol.asyncIterator]")}
    callers: ClassVar[dict[str, int | str | tuple[int, ...]]] = LIBRARY.list_callers()
    builtins = LIBRARY.globals
    own_kinds: ClassVar[dict[str, str]] = LIBRARY.kinds

    def __init__(self, linker: Linker, paths: Iterable[str]) -> None:
        self._exports = Exports(paths)
        # Of tuple types what their elements may be: made once each, since values are known by their identity.
        self._unions: dict[tuple[View, int], Choice] = {}

    def _declarations(self, linker: Linker) -> Declarations:
        return Declarations(linker, self._exports, self._unions)

    # -- modules ---------------------------------------------------------------------------------

    def resolve_import(self, linker: Linker, unit: View, level: int, module: str, name: str) -> Values:
        return self._exports.evaluate_import(linker, unit, module, name)

    def find_exported(self, linker: Linker, unit: View, name: str) -> Values | None:
        return self._exports.evaluate(linker, unit, name)

    def find_origin(self, linker: Linker, unit: View, value: Imported) -> Thing | None:
        name, module = value.name, self._exports.find_module(linker, unit, value.module)
        source = None if module is None or isinstance(module, External) else module.unit
        if source is None or name in ("*", "="):
            return None
        found = self._declarations(linker).find_member(source, name, as_type=True)
        if isinstance(found, Class):
            return found
        home = found.unit if isinstance(found, Alias) else self._exports.find_home(linker, source, name)
        return None if home is None or home.document else linker.module(home.path)

    def find_sources(self, linker: Linker, unit: View, item: Import) -> list[tuple[Thing, bool]] | None:
        source = self._exports.find_module(linker, unit, item.module)
        if source is None:
            return []
        target = None if isinstance(source, External) else source
        is_declared = unit.path.endswith(DECLARATIONS) or (target is not None and target.path.endswith(DECLARATIONS))
        is_typed = (
            item.type_only
            or is_declared
            or (
                bool(item.bindings)
                and all(b.type_only or self._is_type(linker, target and target.unit, b.imported) for b in item.bindings)
            )
        )
        return [(source, is_typed)]

    def _is_type(self, linker: Linker, unit: View | None, name: str) -> bool:
        """Whether a module has a type and nothing else under a name: the compiler leaves out such an import."""
        if unit is None or name == "*":
            return False
        declarations = self._declarations(linker)
        if not is_erased(declarations.find_member(unit, name, as_type=True)):
            return False
        value = declarations.find_member(unit, name, as_type=False)
        return value is None or is_erased(value)

    # -- names and types -------------------------------------------------------------------------

    def find_static(self, linker: Linker, unit: View, scope: int, value: Value, position: int) -> Thing | None:
        declarations = self._declarations(linker)
        found = declarations.find(unit, scope, value)
        if isinstance(found, Alias):
            found = declarations.find(*found)
        return None if isinstance(found, Alias) else found

    def make(self, linker: Linker, unit: View, scope: int, kind: Value, position: int) -> Values:
        return self._declarations(linker).make(unit, scope, kind, position)

    # -- classes ---------------------------------------------------------------------------------

    def order_bases(self, linker: Linker, kind: Class) -> tuple[Thing | None, ...]:
        """Depth first; declarations of the same name count as one."""
        declarations = self._declarations(linker)
        unit, definition = kind.unit, kind.definition
        order: dict[Thing | None, None] = {kind: None}
        # No more than an order has room for: of thousands, each would list all of them.
        for start in find_defined(unit.bound(definition.scope, label_type(definition.name))[: MAX_ORDER + 2]):
            merged = linker.thing(unit, start)
            if isinstance(merged, Class) and merged is not kind:
                order[merged] = None
                for value in merged.definition.bases:
                    declarations.add_bases(order, unit, definition.scope, value, as_type=True)
        for value in definition.bases:
            declarations.add_bases(order, unit, definition.scope, value, as_type=definition.kind == "interface")
        return tuple(order)

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
            case (
                MethodOf() | Item() | Unwrapped() | PartOf() | TuplePart() | Indexed() | ClosureParameter()
                | OperatorMethod() | OnReceiver()
            ):  # fmt: skip
                return linker.unknown  # forms of other languages
            case _:
                assert_never(form)

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
                found = self._declarations(linker).make_property(container, value, name)
            elif container.typed:
                found = linker.unknown if name in LIBRARY.object_members else linker.containers.elements(container)
            else:
                found = linker.containers.elements(container, Text(name))
            # An object has the methods of all objects, unless it has its own, or may have got one by `...other`.
            is_open = not container.typed and isinstance(value, Dictionary) and None in value.keys
            if name not in LIBRARY.object_members or is_open or any(value is not UNKNOWN for value in found):
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
        if not (written or spread or stores or put) or ANY_TEXT in value.keys:
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
        if name in LIBRARY.function_members:
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
                binds = self._exports.list_binds(unit, name)
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
        return call_function(linker, thing, unit, number)

    def find_passed(self, linker: Linker, function: Function, number: int) -> Values | None:
        unit = function.unit
        place = unit.handed(function.definition)
        if place is None:
            return None
        site, at = place
        found = NOTHING
        for thing, level in linker.link(unit, site).items():
            found = join(found, raised(find_passed(linker, thing, at, number), level))
        return found
