"""Python for the linker: the order of bases, methods and properties, records, decorators that dispatch."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from cq.graph.callers import MAX_CALLERS
from cq.graph.dialect import Dialect
from cq.graph.engine.cells import Answers, Cell
from cq.graph.engine.view import View
from cq.graph.scopes import ROOT
from cq.graph.things import UNKNOWN, Class, External, Function, Instance, Module, Thing
from cq.graph.values import IMPORT, NOTHING, PARAMETER, Values, join
from cq.languages.python.declarations import Declarations
from cq.languages.python.library import CONSTRUCTORS, KNOWN, MAKING, TEMPLATES, LibraryCalls, find_ran
from cq.languages.python.modules import Modules
from cq.model.code import Bind, Definition, Imported, Site, Spread, Value
from cq.model.facts import Import

if TYPE_CHECKING:
    from cq.graph.link import Linker


class PythonDialect(Dialect):
    constructors = CONSTRUCTORS
    made_constructors = ("__post_init__",)  # of a dataclass
    protocols: ClassVar[dict[str, str]] = {
        "iter": "__iter__", "next": "__next__", "aiter": "__aiter__",
        "enter": "__enter__", "aenter": "__aenter__", "item": "__getitem__", "call": "__call__",
        "+": "__add__", "-": "__sub__", "*": "__mul__", "/": "__truediv__", "//": "__floordiv__", "%": "__mod__",
        "|": "__or__", "&": "__and__", "^": "__xor__", "@": "__matmul__", "**": "__pow__", "<<": "__lshift__",
        ">>": "__rshift__",
    }  # fmt: skip
    callers: ClassVar[dict[str, int | str | tuple[int, ...]]] = KNOWN.list_callers()
    runs: ClassVar[dict[str, tuple[str, ...]]] = {
        "with": ("__enter__", "__exit__", "__aenter__", "__aexit__"),
        "iter": ("__iter__", "__next__", "__aiter__", "__anext__"),
        "[]": ("__getitem__",), "[]=": ("__setitem__",), "+=": ("__iadd__",),
        "-=": ("__isub__",), "|=": ("__ior__",), "&=": ("__iand__",), "*=": ("__imul__",), "<": ("__lt__",),
        ">": ("__gt__",), "<=": ("__le__",), ">=": ("__ge__",), "==": ("__eq__",), "!=": ("__ne__|__eq__",),
        "in": ("__contains__|__iter__",),
        "key item": ("__hash__", "__eq__"), "key in": ("__hash__", "__eq__"),
        "unary-": ("__neg__",), "unary+": ("__pos__",), "unary~": ("__invert__",),
        "format": ("__format__|__str__|__repr__",), "truth": ("__bool__|__len__",), "del": ("__delitem__",),
        **{sign: (name,) for sign, name in protocols.items() if not sign.isalpha()},
    }  # fmt: skip
    external_runs = frozenset({MAKING, *TEMPLATES})
    builtin_runs: ClassVar[dict[str, tuple[str, ...]]] = KNOWN.runs
    element_runs: ClassVar[dict[str, tuple[str, ...]]] = KNOWN.element_runs
    sending = "send"
    has_open_modules = True
    missing_hook = "__getattr__"
    attribute_hooks = ("__set_name__",)
    class_hooks = ("__init_subclass__",)
    root_members = frozenset(dir(object))
    common_members = KNOWN.common.union(
        *(dir(kind) for kind in (str, bytes, list, dict, set, int, float, type(iter(()))))
    )
    builtins = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__", "__path__", "__builtins__"}

    def __init__(self, linker: Linker, paths: Iterable[str]) -> None:
        self._modules = Modules(paths)
        self._declarations = Declarations(self._modules, self.builtins)
        self._library = LibraryCalls(self._modules, self._declarations)
        self._metaclasses = Answers(self._find_metaclass)
        self._records = Answers(self._find_record)
        self._factories = Answers(self._find_factories)
        self._filled: dict[tuple[Class, str], Cell] = {}  # fields of records

    # -- modules ---------------------------------------------------------------------------------

    def find_submodule(self, linker: Linker, folder: str, name: str) -> Thing | None:
        return self._modules.find_submodule(linker, folder, name)

    def find_sources(self, linker: Linker, unit: View, item: Import) -> list[tuple[Thing, bool]] | None:
        source = self._modules.find_source(linker, unit, item.level, item.module)
        if source is None or isinstance(source, External):
            return [] if source is None else [(source, False)]
        assert isinstance(source, Module)
        found: list[Thing] = [] if item.kind == "from" else [source]
        for bound in item.bindings if item.kind == "from" else ():
            inner = self._modules.find_submodule(linker, source.path, bound.imported)
            own = source.unit.bound(ROOT, bound.imported) if inner and source.unit is not None else ()
            # `from pkg import name`: what the package itself has under the name comes first, unless it imports it.
            is_own = any(not isinstance(bind.value, Imported) for bind in own)
            found.append(source if inner is None or is_own else inner)
        return [(thing, False) for thing in found if isinstance(thing, Module) and thing.path in self._modules.files]

    def resolve_import(self, linker: Linker, unit: View, level: int, module: str, name: str) -> Values:
        source = self._modules.find_source(linker, unit, level, module)
        if source is None:
            return linker.unknown
        if name == "*":
            return {source: 1}
        if isinstance(source, External):
            return {linker.external(f"{source.name}.{name}"): 1}
        assert isinstance(source, Module)
        if source.unit is unit:
            # `from . import x` in a package's own file: the name itself is what is being bound.
            inner = self._modules.find_submodule(linker, source.path, name)
            return linker.unknown if inner is None else {inner: 1}
        return linker.members.of_module(source, name, 1)

    # -- names and types -------------------------------------------------------------------------

    def find_static(self, linker: Linker, unit: View, scope: int, value: Value, position: int) -> Thing | None:
        return self._declarations.find_static(linker, unit, scope, value, position)

    def make(self, linker: Linker, unit: View, scope: int, kind: Value, position: int) -> Values:
        return self._declarations.make(linker, unit, scope, kind, position)

    def parse_type(self, text: str) -> Value:
        return self._declarations.parse_type(text)

    # -- classes ---------------------------------------------------------------------------------

    def order_bases(self, linker: Linker, kind: Class) -> tuple[Thing | None, ...]:
        """C3, as Python does it; where that has no answer, depth first."""
        definition = kind.definition
        bases = [
            self.find_static(linker, kind.unit, definition.scope, value, definition.start)
            for value in definition.bases
            if not isinstance(value, Spread)
        ]
        orders: list[list[Thing | None]] = [
            list(linker.members.order(base)) if isinstance(base, Class) else [base]
            for base in bases
            if base is not kind
        ]
        return (kind, *_merge([*orders, [base for base in bases if base is not kind]]))

    def find_metaclass(self, linker: Linker, kind: Class) -> Class | None:
        return self._metaclasses.find(linker, kind)

    def _find_metaclass(self, linker: Linker, kind: Class) -> Class | None:
        for holder in linker.members.order(kind):
            keywords = holder.definition.keywords if isinstance(holder, Class) else ()
            value = next((value for name, value in keywords if name == "metaclass"), None)
            if value is not None and isinstance(holder, Class):
                found = self.find_static(linker, holder.unit, holder.definition.scope, value, holder.definition.start)
                if isinstance(found, Class) or holder is kind:
                    return found if isinstance(found, Class) else None
        return None

    def receiver(self, linker: Linker, function: Function) -> Thing | None:
        owner, definition = function.owner, function.definition
        if owner is None or "static" in definition.modifiers or not definition.parameters:
            return None
        if "class" in definition.modifiers or definition.name in _CLASS_METHODS:
            return owner.self_class
        return owner.self_instance

    def access(self, linker: Linker, function: Function, receiver: Thing, *, on_class: bool) -> Values:
        modifiers = function.definition.modifiers
        if "accessor" in modifiers:
            return {function: 0} if on_class else linker.calls.give(function, receiver, None, -1, 1)
        if "static" in modifiers:
            return {function: 0}
        if "class" in modifiers:
            if isinstance(receiver, Instance):
                kind = receiver.type
                receiver = kind.self_class if receiver.own else kind.declared_class if receiver.declared else kind
            return {linker.bind(function, receiver): 0}
        return {function: 0} if on_class else {linker.bind(function, receiver): 0}

    def read_field(self, linker: Linker, holder: Class, bind: Bind) -> Values:
        """Of an enumeration its own instances."""
        is_public = not bind.name.startswith("_")
        if is_public and any(type(k) is External and k.name.startswith("enum.") for k in linker.members.order(holder)):
            return {holder.instance: 0}
        found = linker.bound(holder.unit, bind)
        if bind.type is None or (found and UNKNOWN not in found) or not self._records.find(linker, holder):
            return found
        # A cell: a record may be made of fields of another, and that of this one's.
        cell = self._filled.get((holder, bind.name))
        if cell is None:
            home = holder.unit.home(holder.definition.scope)
            cell = Cell(home, PythonDialect._find_filled, self, linker, holder, bind.name)
            self._filled[holder, bind.name] = cell
        return join(found, linker.read(cell))

    def _find_record(self, linker: Linker, kind: Class) -> bool:
        """Whether the language writes a constructor that takes the fields of a class."""
        unit, definition = kind.unit, kind.unit.contents(kind.definition)
        given = [
            self.find_static(linker, unit, definition.scope, value, definition.start)
            for value in (*definition.decorators, *definition.bases)
        ]
        return any(type(thing) is External and thing.name in KNOWN.records for thing in given)

    def _find_filled(self, linker: Linker, holder: Class, name: str) -> Values:
        """What calls that make a record pass for one of its fields. It is no method of the record."""
        found = NOTHING
        heirs = linker.callers.find_heirs(holder)
        for kind in (holder, *heirs):
            places = linker.documents.calls(kind.definition.name) or ()
            fields = self._find_fields(linker, kind)
            for unit, number in places if len(places) <= MAX_CALLERS and name in fields else ():
                site = unit.sites[number]
                at = fields.index(name)
                given = dict(site.keywords).get(name, site.args[at] if at < len(site.args) else None)
                if given is not None and kind in linker.link(unit, number):
                    for thing, level in linker.evaluate(unit, site.scope, given, site.start).items():
                        held = linker.bind(thing, None) if isinstance(thing, Function) else thing
                        found = join(found, {held: max(level, PARAMETER)})
        return found

    def _find_fields(self, linker: Linker, kind: Class) -> list[str]:
        """The names with a type that a record and the records above it have, in order."""
        found: dict[str, None] = {}
        for holder in reversed(linker.members.order(kind)):
            if isinstance(holder, Class) and self._records.find(linker, holder):
                found |= dict.fromkeys(holder.unit.fields(holder.definition.symbol))
        return list(found)

    def find_factories(self, linker: Linker, kind: Class) -> list[Thing]:
        """`items: list = field(default_factory=make)`."""
        return self._factories.find(linker, kind)

    def _find_factories(self, linker: Linker, kind: Class) -> list[Thing]:
        found: list[Thing | None] = []
        for holder in linker.members.order(kind):
            if isinstance(holder, Class) and self._records.find(linker, holder):
                unit, symbol = holder.unit, holder.definition.symbol
                for name in unit.fields(symbol):
                    ends = [bind.value for bind in unit.bound(symbol, name) if isinstance(bind.value, int)]
                    for site in (unit.sites[unit.site_at[end]] for end in ends if end in unit.site_at):
                        found += [
                            self.find_static(linker, unit, site.scope, value, site.start)
                            for key, value in site.keywords
                            if key in ("default_factory", "factory")
                        ]
        return [thing for thing in found if thing is not None]

    def keeps_decorated(self, thing: Thing) -> bool:
        return True

    def give_decorated(
        self, linker: Linker, thing: External, unit: View, definition: Definition, found: Values
    ) -> Values:
        """`@singledispatch` runs one of those that are registered with it."""
        if thing.name not in _DISPATCHERS:
            return {}
        given = dict(found)
        registering = f"{definition.name}.register"
        for site in (unit.sites[number] for number in unit.calls("register")):
            other = unit.decorated_at(site.end)
            if other is not None and site.callee == registering and other[0].scope == definition.scope:
                given[linker.bind(linker.thing(unit, other[0].start), None)] = PARAMETER
        return given

    def function_member(self, linker: Linker, function: Function | Class, name: str) -> Values | None:
        if isinstance(function, Function) and name in _WRAPPED and function.definition.decorators:
            return {linker.external(f"builtins.function().{name}"): IMPORT}
        return None

    # -- what the language's own functions do -----------------------------------------------------

    def call_external(self, linker: Linker, thing: External, unit: View, number: int) -> Values | None:
        return self._library.call(linker, thing, unit, number)

    def find_handed(self, thing: External, unit: View, number: int, at: int | str) -> Site | None:
        return self._library.find_handed(thing, unit, number, at)

    def find_ran(self, linker: Linker, thing: External, unit: View, number: int) -> Values:
        return find_ran(linker, thing, unit, number)


def _merge(orders: list[list[Thing | None]]) -> list[Thing | None]:
    merged: list[Thing | None] = []
    orders = [list(order) for order in orders if order]
    while orders:
        head: Thing | None = None
        for order in orders:
            head = order[0]
            if head is None or not any(head in other[1:] for other in orders):
                break
        else:
            # No order satisfies all: Python refuses such a class. Depth first, each once.
            rest = dict.fromkeys(thing for order in orders for thing in order)
            return merged + [thing for thing in rest if thing not in merged]
        merged.append(head)
        orders = [kept for order in orders if (kept := order[1:] if order[0] is head else order)]
    return merged


_DISPATCHERS = ("functools.singledispatch", "functools.singledispatchmethod")
# What decorators of the language give to a function: of singledispatch, of a property, of a cache.
_WRAPPED = frozenset({"register", "dispatch", "setter", "getter", "deleter", "cache_clear", "cache_info"})
_CLASS_METHODS = ("__new__", "__init_subclass__", "__class_getitem__")
