"""What names and annotations of Python mean by definitions, imports and aliases alone, without any flow of values."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from cq.graph.engine.view import View
from cq.graph.scopes import ANYWHERE, ROOT
from cq.graph.things import Class, External, Module, Thing
from cq.graph.values import NOTHING, Values, join
from cq.languages.python.modules import Modules
from cq.model.code import (
    NULL,
    Attribute,
    Choice,
    Constant,
    Defined,
    Element,
    Imported,
    Lambda,
    Name,
    Operated,
    SeenIn,
    Text,
    Value,
)

if TYPE_CHECKING:
    from cq.graph.link import Linker

MAX_ALIASES = 30  # steps from a name of a base to its class


class Declarations:
    def __init__(self, modules: Modules, builtins: Collection[str]) -> None:
        self._modules, self._builtins = modules, builtins
        self._strings: dict[str, Value] = {}
        self._looked_up: dict[tuple[View, str], Thing | None] = {}  # in one lookup, None while it is being made

    def find_static(
        self, linker: Linker, unit: View, scope: int, value: Value, position: int, steps: int = MAX_ALIASES
    ) -> Thing | None:
        """A class by names, imports and aliases alone: what bases are made of. None: nobody knows."""
        if steps <= 0:
            return None
        if isinstance(value, str):
            return self._find_named(linker, unit, scope, value.split("."), position, steps)
        if isinstance(value, int):
            number = unit.site_at.get(value)
            if number is None:
                return None
            callee = self.find_static(linker, unit, scope, unit.sites[number].callee, position, steps - 1)
            return linker.external(f"{callee.name}()") if isinstance(callee, External) else None
        match value:
            case Element():
                return self.find_static(linker, unit, scope, value.base, position, steps - 1)
            case SeenIn():
                return self.find_static(linker, unit, value.scope, value.value, value.offset, steps - 1)
            case Defined() | Lambda():
                return linker.thing(unit, value.start)
            case Imported():
                return self._find_imported(linker, unit, value, steps - 1)
            case Attribute():
                base = self.find_static(linker, unit, scope, value.base, position, steps - 1)
                return self._find_inner(linker, base, value.path.split("."), steps - 1)
            case _:
                return None

    def _find_named(
        self, linker: Linker, unit: View, scope: int, path: list[str], position: int, steps: int
    ) -> Thing | None:
        found: Thing | None = None
        binds = unit.find(scope, path[0], position)
        for bind in binds:
            if bind.value is not None:
                found = self.find_static(linker, unit, bind.scope, bind.value, bind.start - 1, steps - 1)
            if isinstance(found, (Class, Module)):
                break
        if not binds:
            found = self._find_starred(linker, unit, path[0], steps - 1)
            if found is None and path[0] in self._builtins:
                found = linker.external(f"builtins.{path[0]}")
        return self._find_inner(linker, found, path[1:], steps - 1)

    def _find_inner(self, linker: Linker, found: Thing | None, path: Sequence[str], steps: int) -> Thing | None:
        for name in path:
            if isinstance(found, External):
                found = linker.external(f"{found.name}.{name}")
            elif isinstance(found, Module):
                found = self._find_exported(linker, found, name, steps)
            elif isinstance(found, Class):
                unit, scope = found.unit, found.definition.symbol
                found = None
                for bind in unit.bound(scope, name):
                    found = self.find_static(linker, unit, scope, bind.value, bind.start, steps - 1)
            else:
                return None
        return found

    def _find_exported(self, linker: Linker, module: Module, name: str, steps: int) -> Thing | None:
        if steps <= 0:
            return None
        found = None if module.unit is None else self._look_up(linker, module.unit, name, steps)
        return self._modules.find_submodule(linker, module.path, name) if found is None else found

    def _look_up(self, linker: Linker, unit: View, name: str, steps: int) -> Thing | None:
        """What a module itself has under a name. Modules may import all of one another: in one lookup each is asked
        once, lest they be gone through in every order."""
        known, is_first = self._looked_up, not self._looked_up
        if (unit, name) in known:
            return known[unit, name]
        known[unit, name] = None
        try:
            found: Thing | None = None
            binds = unit.bound(ROOT, name)
            for bind in unit.reach(binds, ANYWHERE, is_own=False) if binds else ():
                if bind.value is not None:
                    found = self.find_static(linker, unit, ROOT, bind.value, bind.start - 1, steps - 1)
                if isinstance(found, (Class, Module)):
                    break
            if found is None and not binds:
                found = self._find_starred(linker, unit, name, steps - 1)
            known[unit, name] = found
            return found
        finally:
            if is_first:
                known.clear()

    def _find_starred(self, linker: Linker, unit: View, name: str, steps: int) -> Thing | None:
        for _, star in reversed(unit.stars()):
            source = self._modules.find_source(linker, unit, star.level, star.module)
            if isinstance(source, Module) and source.unit is not unit:
                found = self._find_exported(linker, source, name, steps - 1)
                if found is not None:
                    return found
        return None

    def _find_imported(self, linker: Linker, unit: View, value: Imported, steps: int) -> Thing | None:
        name = value.name
        source = self._modules.find_source(linker, unit, value.level, value.module)
        if name == "*" or source is None:
            return source
        if isinstance(source, External):
            return linker.external(f"{source.name}.{name}")
        assert isinstance(source, Module)
        if source.unit is unit:
            return self._modules.find_submodule(linker, source.path, name)
        return self._find_exported(linker, source, name, steps)

    # -- annotations -----------------------------------------------------------------------------

    def make(self, linker: Linker, unit: View, scope: int, kind: Value, position: int) -> Values:
        if isinstance(kind, str):
            return self._instances(linker, unit, scope, self.find_static(linker, unit, scope, kind, position))
        match kind:
            case Text():
                return self.make(linker, unit, scope, self.parse_type(kind.value), position)
            case Constant():
                return NOTHING if kind == NULL else linker.unknown
            case Choice():
                return self._make_all(linker, unit, scope, kind.options, position)
            case Operated(operator="|"):
                return self._make_all(linker, unit, scope, (kind.left, kind.right), position)
            case Attribute():
                return self._instances(linker, unit, scope, self.find_static(linker, unit, scope, kind, position))
            case Element():
                thing = self.find_static(linker, unit, scope, kind.base, position)
                if isinstance(thing, External) and kind.keys:  # not tuple[()]
                    return self._make_generic(linker, unit, scope, thing, kind.keys, position)
                return self._instances(linker, unit, scope, thing)
            case _:
                return linker.unknown

    def _make_all(self, linker: Linker, unit: View, scope: int, kinds: Sequence[Value], position: int) -> Values:
        found = NOTHING
        for kind in kinds:
            found = join(found, self.make(linker, unit, scope, kind, position))
        return found

    def _make_generic(
        self, linker: Linker, unit: View, scope: int, base: External, kinds: Sequence[Value], position: int
    ) -> Values:
        name = base.name.rpartition(".")[2]
        if name in _UNIONS:
            return self._make_all(linker, unit, scope, kinds, position)
        if name in _WRAPPERS:
            return self.make(linker, unit, scope, kinds[0], position)
        if name in ("Awaitable", "Coroutine"):
            return self.make(linker, unit, scope, kinds[-1], position)
        if name in ("Type", "type"):
            value = self.parse_type(kinds[0].value) if isinstance(kinds[0], Text) else kinds[0]
            found = self.find_static(linker, unit, scope, value, position)
            if isinstance(found, Class):
                return {found.declared_class: 0}
            return {found: 0} if isinstance(found, External) else linker.unknown
        if name in _MAPPINGS and len(kinds) == 2:
            return {linker.container("dict", unit, scope, position, kinds[1], typed=True): 0}
        if name in ("tuple", "Tuple") and len(kinds) > 1 and kinds[1] is not None:
            return {linker.external("builtins.tuple()"): 0}
        if name in _SEQUENCES:
            return {linker.container(_SEQUENCES[name], unit, scope, position, kinds[0], typed=True): 0}
        if name == "Literal":
            return {linker.external("builtins.str()"): 0}
        if name in _OPAQUE:
            return linker.unknown
        return {linker.external(f"{base.name}()"): 0}

    def _instances(self, linker: Linker, unit: View, scope: int, thing: Thing | None) -> Values:
        if isinstance(thing, Class):
            return {thing.declared: 0}
        if not isinstance(thing, External):
            return linker.unknown
        name = thing.name.rpartition(".")[2]
        if name == "Self":
            holder = unit.find_class(scope)
            kind = None if holder is None else linker.thing(unit, holder.start)
            return {kind.self_instance: 0} if isinstance(kind, Class) else linker.unknown
        if name in _OPAQUE or name in _UNIONS or thing.name.endswith(("TypeVar()", "NewType()")):
            return linker.unknown
        return {linker.external(f"{thing.name}()"): 0}

    def parse_type(self, text: str) -> Value:
        if text not in self._strings:
            try:
                self._strings[text] = _annotation(ast.parse(text.strip(), mode="eval").body)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                self._strings[text] = None
        return self._strings[text]


def _annotation(node: ast.expr) -> Value:
    match node:
        case ast.Name(id=name):
            return Name(name)
        case ast.Attribute(value=base, attr=name):
            inner = _annotation(base)
            return Name(f"{inner}.{name}") if isinstance(inner, str) else None
        case ast.Subscript(value=base, slice=ast.Tuple(elts=elements)):
            return Element(_annotation(base), tuple(map(_annotation, elements)))
        case ast.Subscript(value=base, slice=element):
            return Element(_annotation(base), (_annotation(element),))
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return Choice((_annotation(left), _annotation(right)))
        case ast.Constant(value=None):
            return NULL
        case ast.Constant(value=str(text)):
            return Text(text)
        case _:
            return None


_UNIONS = frozenset({"Union", "Optional"})
_WRAPPERS = frozenset({"Annotated", "ClassVar", "Final", "Required", "NotRequired", "ReadOnly", "InitVar"})
_MAPPINGS = frozenset({"dict", "Dict", "Mapping", "MutableMapping", "defaultdict", "DefaultDict", "OrderedDict"})
_SEQUENCES = {
    **dict.fromkeys(
        ("list", "List", "Sequence", "MutableSequence", "Iterable", "Iterator", "Collection", "deque", "Deque",
         "AsyncIterator", "AsyncIterable", "Reversible"), "list"),
    **dict.fromkeys(("set", "Set", "frozenset", "FrozenSet", "AbstractSet", "MutableSet"), "set"),
    **dict.fromkeys(("tuple", "Tuple"), "tuple"),
    **dict.fromkeys(
        ("Generator", "AsyncGenerator", "ContextManager", "AbstractContextManager", "AsyncContextManager",
         "AbstractAsyncContextManager"), "generator"),
}  # fmt: skip
_OPAQUE = frozenset({"Any", "Callable", "TypeVar", "ParamSpec", "object", "TypeGuard", "Concatenate", "Unpack"})
