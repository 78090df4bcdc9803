"""Python for the linker: modules and packages, the order of bases, methods and properties, annotations, builtins."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from cq.graph.callers import MAX_CALLERS
from cq.graph.dialect import Dialect
from cq.graph.engine.cells import Cell, Remembered
from cq.graph.engine.view import View
from cq.graph.items import Written
from cq.graph.scopes import ANYWHERE, ROOT
from cq.graph.things import (
    UNKNOWN,
    Bound,
    Class,
    Container,
    External,
    Function,
    Instance,
    Module,
    Thing,
)
from cq.graph.values import EVERYTHING, IMPORT, NOTHING, PARAMETER, Values, join
from cq.model.code import (
    NULL,
    Attribute,
    Bind,
    Choice,
    Constant,
    Defined,
    Definition,
    Dictionary,
    Each,
    Element,
    Entered,
    Imported,
    Integer,
    Iterated,
    Joined,
    Lambda,
    Listing,
    Name,
    Operated,
    ResultOf,
    SeenIn,
    Site,
    Spread,
    Text,
    Value,
    split_receiver,
)
from cq.model.facts import Import

if TYPE_CHECKING:
    from cq.graph.link import Linker

_MAKING = "builtins.type.__call__"
# Methods of the language's own classes that run those of the classes below them: of this name, or that begin so.
_TEMPLATES = {
    "ast.NodeVisitor.visit": "visit_", "ast.NodeVisitor.generic_visit": "visit_", "ast.NodeTransformer.visit": "visit_",
    "ast.NodeTransformer.generic_visit": "visit_",
    "json.JSONEncoder.encode": "default", "json.JSONEncoder.iterencode": "default", "threading.Thread.start": "run",
    "multiprocessing.Process.start": "run", "html.parser.HTMLParser.feed": "handle_", "cmd.Cmd.onecmd": "do_",
}  # fmt: skip
MAX_ALIASES = 30  # steps from a name of a base to its class


class PythonDialect(Dialect):
    constructors = ("__init__", "__new__")
    made_constructors = ("__post_init__",)  # of a dataclass
    protocols: ClassVar[dict[str, str]] = {
        "iter": "__iter__", "next": "__next__", "aiter": "__aiter__",
        "enter": "__enter__", "aenter": "__aenter__", "item": "__getitem__", "call": "__call__",
        "+": "__add__", "-": "__sub__", "*": "__mul__", "/": "__truediv__", "//": "__floordiv__", "%": "__mod__",
        "|": "__or__", "&": "__and__", "^": "__xor__", "@": "__matmul__", "**": "__pow__", "<<": "__lshift__",
        ">>": "__rshift__",
    }  # fmt: skip
    callers: ClassVar[dict[str, int | str | tuple[int, ...]]] = {
        "builtins.map": 0, "builtins.filter": 0, "functools.reduce": 0, "builtins.sorted": "key", "builtins.max": "key",
        "builtins.min": "key", "builtins.iter": 0, "itertools.starmap": 0, "itertools.groupby": "key",
        "itertools.filterfalse": 0, "itertools.takewhile": 0, "itertools.dropwhile": 0, "threading.Thread": "target",
        "multiprocessing.Process": "target", "atexit.register": 0, "builtins.list().sort": "key",
        "collections.defaultdict": 0, "threading.Timer": 1, "re.sub": 1, "re.subn": 1, "functools.cmp_to_key": 0,
        "itertools.accumulate": 1, "heapq.nlargest": "key", "heapq.nsmallest": "key", "signal.signal": 1,
        "weakref.finalize": 1, "contextlib.ExitStack().callback": 0, "contextlib.AsyncExitStack().callback": 0,
        "contextlib.AsyncExitStack().push_async_callback": 0, "asyncio.to_thread": 0, "timeit.timeit": 0,
        "concurrent.futures.ThreadPoolExecutor().submit": 0, "concurrent.futures.ThreadPoolExecutor().map": 0,
        "concurrent.futures.ProcessPoolExecutor().submit": 0, "concurrent.futures.ProcessPoolExecutor().map": 0,
        "multiprocessing.Pool().map": 0, "json.dumps": "default", "json.loads": "object_hook",
        "bisect.insort": "key",
    }  # fmt: skip
    runs: ClassVar[dict[str, tuple[str, ...]]] = {
        "with": ("__enter__", "__exit__", "__aenter__", "__aexit__"),
        "iter": ("__iter__", "__next__", "__aiter__", "__anext__"),
        "[]": ("__getitem__",), "[]=": ("__setitem__",), "+=": ("__iadd__",),
        "-=": ("__isub__",), "|=": ("__ior__",), "&=": ("__iand__",), "*=": ("__imul__",), "<": ("__lt__",),
        ">": ("__gt__",), "<=": ("__le__",), ">=": ("__ge__",), "==": ("__eq__",), "!=": ("__ne__|__eq__",),
        "in": ("__contains__|__iter__",), "unary-": ("__neg__",), "unary+": ("__pos__",), "unary~": ("__invert__",),
        "format": ("__format__|__str__|__repr__",), "truth": ("__bool__|__len__",), "del": ("__delitem__",),
        **{sign: (name,) for sign, name in protocols.items() if not sign.isalpha()},
    }  # fmt: skip
    external_runs = frozenset({_MAKING, *_TEMPLATES})
    builtin_runs: ClassVar[dict[str, tuple[str, ...]]] = {
        f"builtins.{name}": (f"__{name}__",)
        for name in ("len", "repr", "iter", "next", "hash", "abs", "int", "float", "reversed", "round", "bytes", "dir")
    } | {
        "builtins.str": ("__str__|__repr__",), "builtins.print": ("__str__|__repr__",),
        "builtins.format": ("__format__|__str__|__repr__",), "builtins.bool": ("__bool__|__len__",),
        "contextlib.closing": ("close",), "contextlib.aclosing": ("aclose",),
        "contextlib.ExitStack().enter_context": ("__enter__", "__exit__"),
        "contextlib.AsyncExitStack().enter_async_context": ("__aenter__", "__aexit__"),
    }  # fmt: skip
    element_runs: ClassVar[dict[str, tuple[str, ...]]] = {
        "builtins.sum": ("__radd__", "__add__"), "builtins.sorted": ("__lt__",), "builtins.list().sort": ("__lt__",),
        "builtins.min": ("__lt__",), "builtins.max": ("__gt__|__lt__",),
    }  # fmt: skip
    sending = "send"
    has_open_modules = True
    missing_hook = "__getattr__"
    attribute_hooks = ("__set_name__",)
    class_hooks = ("__init_subclass__",)
    root_members = frozenset(dir(object))
    builtins = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__", "__path__", "__builtins__"}

    def __init__(self, paths: Iterable[str]) -> None:
        self._files: set[str] = set()
        self._folders: set[str] = set()
        self._projects = {"", "src", "lib", "python"}  # folders that modules are named from, wherever they are imported
        self._found: dict[tuple[str, str], str | None] = {}
        self._strings: dict[str, Value] = {}
        self._metaclasses: dict[Class, Remembered[Class | None]] = {}
        self._records: dict[Class, Remembered[bool]] = {}
        self._filled: dict[tuple[Class, str], Cell] = {}  # fields of records
        self._factories: dict[Class, Remembered[list[Thing]]] = {}
        self._made_up: dict[tuple[View, int], Each] = {}
        self._handed: dict[tuple[View, int, int | str], Site | None] = {}
        self._looked_up: dict[tuple[View, str], Thing | None] = {}  # in one lookup, None while it is being made
        for path in paths:
            folder, _, name = path.rpartition("/")
            if name.endswith((".py", ".pyi")):
                self._files.add(path)
                while folder and folder not in self._folders:
                    self._folders.add(folder)
                    folder = folder.rpartition("/")[0]
            if name in ("pyproject.toml", "setup.py", "setup.cfg"):
                folder = path.rpartition("/")[0]
                self._projects |= {folder, f"{folder}/src" if folder else "src"}

    # -- modules ---------------------------------------------------------------------------------

    def find_module(self, linker: Linker, unit: View, dotted: str) -> Thing | None:
        """The module of that name as the unit would import it; an External when the repository has none."""
        here = unit.path.rpartition("/")[0]
        key = (here, dotted)
        if key not in self._found:
            self._found[key] = self._find_path(here, dotted)
        path = self._found[key]
        if path is not None:
            return linker.module(path)
        top = dotted.partition(".")[0]
        if top != dotted and isinstance(self.find_module(linker, unit, top), Module):
            return None
        return linker.external(dotted)

    def _find_path(self, here: str, dotted: str) -> str | None:
        """Of a file, else of a folder. A module is named from a project's folder, or from the first folder above it
        that is no package; those are roots for what lies inside them only. The nearest root wins."""
        stem, top = dotted.replace(".", "/"), dotted.partition(".")[0]
        roots = list(self._projects)
        above = here
        while above:
            if above not in self._projects and (above == here or top not in sys.stdlib_module_names):
                roots.append(above)
            above = above.rpartition("/")[0]
        roots.sort(key=lambda root: (-_common(here, root), root))
        folder: str | None = None
        for root in roots:
            base = f"{root}/{stem}" if root else stem
            for path in (f"{base}/__init__.py", f"{base}.py", f"{base}/__init__.pyi", f"{base}.pyi"):
                if path in self._files and (root in self._projects or self._root_of(path) == root):
                    return path
            if folder is None and base in self._folders and root in self._projects:
                folder = base
        return folder

    def _root_of(self, path: str) -> str:
        folder = path.rpartition("/")[0]
        while folder and f"{folder}/__init__.py" in self._files:
            folder = folder.rpartition("/")[0]
        return folder

    def find_submodule(self, linker: Linker, folder: str, name: str) -> Thing | None:
        """`folder` may also be the path of a package's own file."""
        if folder in self._files:
            if not folder.endswith(("/__init__.py", "/__init__.pyi")):
                return None
            folder = folder.rpartition("/")[0]
        stem = f"{folder}/{name}" if folder else name
        for path in (f"{stem}/__init__.py", f"{stem}.py", f"{stem}.pyi"):
            if path in self._files:
                return linker.module(path)
        return linker.module(stem) if stem in self._folders else None

    def find_source(self, linker: Linker, unit: View, level: int, module: str) -> Thing | None:
        if not level:
            return self.find_module(linker, unit, module)
        folder = unit.path.rpartition("/")[0]
        for _ in range(level - 1):
            folder = folder.rpartition("/")[0]
        found: Thing | None = None
        if not module:
            package = f"{folder}/__init__.py" if folder else "__init__.py"
            return linker.module(package if package in self._files else folder)
        for name in module.split("."):
            found = self.find_submodule(linker, folder, name)
            if found is None:
                return None
            assert isinstance(found, Module)
            folder = found.path.removesuffix("/__init__.py")
        return found

    def find_sources(self, linker: Linker, unit: View, item: Import) -> list[tuple[Thing, bool]] | None:
        source = self.find_source(linker, unit, item.level, item.module)
        if source is None or isinstance(source, External):
            return [] if source is None else [(source, False)]
        assert isinstance(source, Module)
        found: list[Thing] = [] if item.kind == "from" else [source]
        for bound in item.bindings if item.kind == "from" else ():
            inner = self.find_submodule(linker, source.path, bound.imported)
            own = source.unit.bound(ROOT, bound.imported) if inner and source.unit is not None else ()
            # `from pkg import name`: what the package itself has under the name comes first, unless it imports it.
            is_own = any(not isinstance(bind.value, Imported) for bind in own)
            found.append(source if inner is None or is_own else inner)
        return [(thing, False) for thing in found if isinstance(thing, Module) and thing.path in self._files]

    def resolve_import(self, linker: Linker, unit: View, level: int, module: str, name: str) -> Values:
        source = self.find_source(linker, unit, level, module)
        if source is None:
            return linker.unknown
        if name == "*":
            return {source: 1}
        if isinstance(source, External):
            return {linker.external(f"{source.name}.{name}"): 1}
        assert isinstance(source, Module)
        if source.unit is unit:
            # `from . import x` in a package's own file: the name itself is what is being bound.
            inner = self.find_submodule(linker, source.path, name)
            return linker.unknown if inner is None else {inner: 1}
        return linker.members.of_module(source, name, 1)

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
        known = self._metaclasses.get(kind)
        if known is None:
            known = self._metaclasses[kind] = linker.remember(self._find_metaclass, linker, kind)
        return linker.recall(known)

    def _find_metaclass(self, linker: Linker, kind: Class) -> Class | None:
        for holder in linker.members.order(kind):
            keywords = holder.definition.keywords if isinstance(holder, Class) else ()
            value = next((value for name, value in keywords if name == "metaclass"), None)
            if value is not None and isinstance(holder, Class):
                found = self.find_static(linker, holder.unit, holder.definition.scope, value, holder.definition.start)
                if isinstance(found, Class) or holder is kind:
                    return found if isinstance(found, Class) else None
        return None

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
            if found is None and path[0] in self.builtins:
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
        return self.find_submodule(linker, module.path, name) if found is None else found

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
            source = self.find_source(linker, unit, star.level, star.module)
            if isinstance(source, Module) and source.unit is not unit:
                found = self._find_exported(linker, source, name, steps - 1)
                if found is not None:
                    return found
        return None

    def _find_imported(self, linker: Linker, unit: View, value: Imported, steps: int) -> Thing | None:
        name = value.name
        source = self.find_source(linker, unit, value.level, value.module)
        if name == "*" or source is None:
            return source
        if isinstance(source, External):
            return linker.external(f"{source.name}.{name}")
        assert isinstance(source, Module)
        if source.unit is unit:
            return self.find_submodule(linker, source.path, name)
        return self._find_exported(linker, source, name, steps)

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
                receiver = receiver.type.self_class if receiver.own else receiver.type
            return {linker.bind(function, receiver): 0}
        return {function: 0} if on_class else {linker.bind(function, receiver): 0}

    def read_field(self, linker: Linker, holder: Class, bind: Bind) -> Values:
        """Of an enumeration its own instances."""
        is_public = not bind.name.startswith("_")
        if is_public and any(type(k) is External and k.name.startswith("enum.") for k in linker.members.order(holder)):
            return {holder.instance: 0}
        found = linker.bound(holder.unit, bind)
        if bind.type is None or (found and UNKNOWN not in found) or not self._is_record(linker, holder):
            return found
        # A cell: a record may be made of fields of another, and that of this one's.
        cell = self._filled.get((holder, bind.name))
        if cell is None:
            home = holder.unit.home(holder.definition.scope)
            cell = Cell(home, PythonDialect._find_filled, self, linker, holder, bind.name)
            self._filled[holder, bind.name] = cell
        return join(found, linker.read(cell))

    def _is_record(self, linker: Linker, kind: Class) -> bool:
        """Whether the language writes a constructor that takes the fields of a class."""
        known = self._records.get(kind)
        if known is None:
            known = self._records[kind] = linker.remember(self._find_record, linker, kind)
        return linker.recall(known)

    def _find_record(self, linker: Linker, kind: Class) -> bool:
        unit, definition = kind.unit, kind.unit.contents(kind.definition)
        given = [
            self.find_static(linker, unit, definition.scope, value, definition.start)
            for value in (*definition.decorators, *definition.bases)
        ]
        return any(type(thing) is External and thing.name in _RECORDS for thing in given)

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
            if isinstance(holder, Class) and self._is_record(linker, holder):
                found |= dict.fromkeys(holder.unit.fields(holder.definition.symbol))
        return list(found)

    def find_factories(self, linker: Linker, kind: Class) -> list[Thing]:
        """`items: list = field(default_factory=make)`."""
        known = self._factories.get(kind)
        if known is None:
            known = self._factories[kind] = linker.remember(self._find_factories, linker, kind)
        return linker.recall(known)

    def _find_factories(self, linker: Linker, kind: Class) -> list[Thing]:
        found: list[Thing | None] = []
        for holder in linker.members.order(kind):
            if isinstance(holder, Class) and self._is_record(linker, holder):
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

    def find_handed(self, thing: External, unit: View, number: int, at: int | str) -> Site | None:
        key = (unit, number, at)
        if key not in self._handed:
            site = unit.sites[number]
            passed, keywords = self._find_passed(thing.name, site, at)
            self._handed[key] = Site(site.scope, site.start, -1, None, passed, keywords) if passed or keywords else None
        return self._handed[key]

    def _find_passed(
        self, name: str, site: Site, at: int | str
    ) -> tuple[tuple[Value, ...], tuple[tuple[str, Value], ...]]:
        """Arguments, by place and by keyword."""
        args, rest = site.args, site.args[1:]
        if at == "key":
            if name == "builtins.list().sort":
                receiver = split_receiver(site.callee)
                args = () if receiver is None else (receiver,)
            elif name in ("builtins.max", "builtins.min") and rest:
                args = (Listing("list", args),)
            return tuple([Iterated(value) for value in args[:1]]), ()
        if at == "target":
            return tuple([Spread(value) for name, value in site.keywords if name == "args"]), ()
        if at:
            return (), ()
        if name in ("functools.partial", "functools.partialmethod"):
            return rest, site.keywords
        if name in _PASSING:
            return rest, ()
        if name == "functools.reduce":
            elements = [Iterated(value) for value in rest[:1]]
            return (*(Choice((value, *rest[1:])) for value in elements), *elements), ()
        return (tuple([Iterated(value) for value in rest]), ()) if name in _TAKING else ((), ())

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
            return {found: 0} if isinstance(found, (Class, External)) else linker.unknown
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
            return {thing.instance: 0}
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

    # -- builtins --------------------------------------------------------------------------------

    def call_external(self, linker: Linker, thing: External, unit: View, number: int) -> Values | None:
        site = unit.sites[number]
        if thing.owner is not None:
            return self._call_container(linker, thing, thing.owner, unit, number)
        name, args = thing.name, list(site.args)
        if name == "builtins.super":
            return self._super(linker, unit, number)
        if name == _MAKING:
            return {kind.instance: PARAMETER for kind in self._find_made(linker, unit, site)} or None
        if name == "builtins.dict":
            if len(args) == 1 and not self._is_mapping(linker, unit, number):
                return self._held(linker, unit, number, Each("dict", Element(Iterated(args[0]), (Integer(1),))))
            keys = [None if key == "**" else Text(key) for key, _ in site.keywords]
            inner = [value for _, value in site.keywords]
            return self._held(linker, unit, number, Dictionary((*(None for _ in args), *keys), (*args, *inner)))
        if name == "builtins.globals" or (name in _NAMESPACES and not args and site.scope == ROOT):
            return {linker.module(unit.path): 1}
        if name == "collections.defaultdict" and args:
            return self._held(linker, unit, number, Each("dict", ResultOf(args[0])))
        if name in ("dataclasses.field", "attrs.field", "attr.field"):
            found = NOTHING
            for key, inner in site.keywords:
                given = linker.evaluate(unit, site.scope, inner, site.start) if key in _DEFAULTS else NOTHING
                found = join(found, given if key == "default" else linker.calls.called(given))
            return found or linker.unknown
        if not args:
            return self._held(linker, unit, number, Listing(_FILLED[name])) if name in _FILLED else None

        def value(at: int) -> Values:
            return linker.evaluate(unit, site.scope, args[at], site.start)

        if name == "builtins.getattr" and len(args) > 1:
            found = value(2) if len(args) > 2 else NOTHING
            for text in linker.containers.find_keys_of(unit, site.scope, args[1], site.start) or [None]:
                if isinstance(text, Text) and text.value.isidentifier():
                    found = join(found, linker.attribute(value(0), text.value))
                else:
                    found = join(found, linker.unknown)
                    begin = self._find_begin(linker, unit, site.scope, args[1], site.start)
                    if begin:
                        found = join(found, linker.members.find_begun(value(0), begin))
            return found
        if name == "builtins.object.__new__":
            return linker.made(value(0))
        if name == "builtins.type" and len(args) == 1:
            found = NOTHING
            for inner, level in value(0).items():
                found = join(found, linker.member(inner, "__class__", level))
            return found
        if name == "itertools.chain" and len(args) > 1:
            given = [Iterated(arg.value if isinstance(arg, Spread) else arg) for arg in args]
            return self._held(linker, unit, number, Each("list", Choice(tuple(given))))
        if name == "itertools.chain.from_iterable":
            return self._held(linker, unit, number, Each("list", Iterated(Iterated(args[0]))))
        if name in _EACH:
            return self._held(linker, unit, number, Each(_EACH[name], Iterated(args[0])))
        if name == "builtins.filter" and len(args) == 2:
            return self._held(linker, unit, number, Each("list", Iterated(args[1])))
        if name == "builtins.enumerate":
            pair = Listing("tuple", (Constant("int"), Iterated(args[0])))
            return self._held(linker, unit, number, Each("list", pair))
        if name == "builtins.zip":
            row = Listing("tuple", tuple([Iterated(arg) for arg in args]))
            return self._held(linker, unit, number, Each("list", row))
        if name in ("builtins.map", "itertools.starmap"):
            return self._held(linker, unit, number, Each("list", ResultOf(args[0])))
        if name == "functools.reduce":
            return linker.calls.called(value(0))
        if name in ("builtins.next", "builtins.max", "builtins.min", "builtins.sum"):
            if len(args) == 1 or name in ("builtins.next", "builtins.sum"):
                return linker.protocols.iterate(value(0))
            found = NOTHING
            for at in range(len(args)):
                found = join(found, value(at))
            return found
        if name in _SAME:
            return value(0)
        if name in _ENTERING:
            return linker.evaluate(unit, site.scope, Entered(args[0]), site.start)
        if name in ("typing.cast", "typing_extensions.cast") and len(args) == 2:
            return linker.make(unit, site.scope, args[0], site.start)
        if name in ("functools.partial", "functools.partialmethod"):
            return self._partial(linker, value(0), len(args) - 1)
        if name in ("builtins.staticmethod", "builtins.classmethod"):
            return self._partial(linker, value(0), int(name.endswith("classmethod")))
        if name == "builtins.property":
            return linker.unknown
        if name in ("importlib.import_module", "builtins.__import__"):
            found = NOTHING
            for text in linker.containers.find_keys_of(unit, site.scope, args[0], site.start) or [None]:
                source = self.find_module(linker, unit, text.value) if isinstance(text, Text) else None
                found = join(found, linker.unknown if source is None else {source: 1})
            return found
        text = args[0]
        if name == "builtins.eval" and isinstance(text, Text) and text.value.isidentifier():
            return linker.evaluate(unit, site.scope, Name(text.value), site.start)
        if name in ("builtins.vars", "builtins.eval"):
            return linker.unknown
        return None

    def _find_made(self, linker: Linker, unit: View, site: Site) -> list[Class]:
        """The classes that `super().__call__()` in a metaclass makes instances of."""
        method = linker.callers.method_around(unit, site.scope)
        return [] if method is None or method.owner is None else linker.callers.find_instances(method.owner)

    def find_ran(self, linker: Linker, thing: External, unit: View, number: int) -> Values:
        found, site = NOTHING, unit.sites[number]
        for kind in self._find_made(linker, unit, site) if thing.name == _MAKING else ():
            for name in self.constructors:
                found = join(found, linker.member(kind.instance, name, PARAMETER))
        name = _TEMPLATES.get(thing.name)
        if name is not None:
            given = linker.evaluate(unit, site.scope, _read_holder(site), site.start)
            held: Values = {inner: PARAMETER for inner in given if isinstance(inner, Instance)}
            is_begun = name.endswith("_")
            found = join(found, linker.members.find_begun(held, name) if is_begun else linker.attribute(held, name))
        return {method: PARAMETER for method in found if isinstance(method, (Bound, Function))}

    def _find_begin(self, linker: Linker, unit: View, scope: int, value: Value, position: int) -> str:
        """How a text begins that is put together: `"visit_" + kind`, also under a name."""
        if isinstance(value, str) and "." not in value:
            binds = unit.find(scope, value, position)
            value = binds[0].value if len(binds) == 1 else None
        match value:
            case Operated(operator="+", left=Text(value=begin)) | Joined(parts=(Text(value=begin), *_)):
                return begin
            case _:
                return ""

    def _is_mapping(self, linker: Linker, unit: View, number: int) -> bool:
        """Whether `dict(x)` copies a dictionary; else x has pairs."""
        site = unit.sites[number]
        given = linker.evaluate(unit, site.scope, site.args[0], site.start)
        return not any(isinstance(thing, Container) and thing.kind != "dict" for thing in given)

    def _held(self, linker: Linker, unit: View, number: int, value: Written) -> Values:
        return {linker.held(unit, number, value): 0}

    def _partial(self, linker: Linker, values: Values, skipped: int) -> Values:
        if values is EVERYTHING:
            return values
        found: Values = {}
        for thing, level in values.items():
            if isinstance(thing, Function):
                found[linker.bind(thing, None, skipped)] = level
            elif isinstance(thing, Bound) and thing.receiver is None:
                found[linker.bind(thing.function, None, thing.skipped + skipped)] = level
            else:
                found[thing] = level
        return found

    def _super(self, linker: Linker, unit: View, number: int) -> Values:
        site = unit.sites[number]
        method = unit.by_symbol.get(site.scope)
        while method is not None:
            holder = unit.by_symbol.get(method.scope)
            if holder is not None and holder.kind == "class" and method.kind == "function":
                break
            method = holder
        if method is None:
            return linker.unknown
        function = linker.thing(unit, method.start)
        assert isinstance(function, Function)
        receiver, kind = self.receiver(linker, function), function.owner
        if site.args:
            named = self.find_static(linker, unit, site.scope, site.args[0], site.start)
            kind = named if isinstance(named, Class) else None
        if receiver is None or kind is None:
            return linker.unknown
        return {linker.super_of(kind, receiver, function): 2}

    def _call_container(
        self, linker: Linker, thing: External, owner: Container, unit: View, number: int
    ) -> Values | None:
        name = thing.name.rpartition(".")[2]
        site = unit.sites[number]
        if name in ("get", "pop", "setdefault", "popleft", "__getitem__", "__next__"):
            key = site.args[0] if owner.kind == "dict" and site.args else None
            found = NOTHING
            for constant in linker.containers.find_keys_of(unit, site.scope, key, site.start) or [None]:
                found = join(found, linker.containers.elements(owner, constant))
            if len(site.args) > 1:
                found = join(found, linker.evaluate(unit, site.scope, site.args[1], site.start))
            return found
        if name == "popitem":
            pair = Listing("tuple", (Constant("str"), Element(_read_holder(site), (None,))))
            return self._held(linker, unit, number, pair)
        if name in ("copy", "difference", "intersection", "union", "symmetric_difference"):
            return {owner: 0}
        if owner.kind == "dict" and name in ("values", "items") and not owner.typed:
            inner = linker.containers.name_elements(owner)
            value = Each("list", Listing("tuple", (Constant("str"), inner)) if name == "items" else inner)
            value = self._made_up.setdefault((unit, number), value)
            return {linker.container("list", owner.unit, owner.scope, owner.position, value): 0}
        if owner.kind == "dict" and name == "values":
            return {linker.container("list", owner.unit, owner.scope, owner.position, owner.value, typed=True): 0}
        return linker.unknown if owner.kind in ("dict", "generator") or owner.typed else None


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


def _read_holder(site: Site) -> Value:
    """What the method that a call names is read off."""
    return site.callee.base if isinstance(site.callee, Attribute) else split_receiver(site.callee)


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


def _common(one: str, other: str) -> int:
    """How many folders two paths share."""
    count = 0
    for left, right in zip(one.split("/"), other.split("/"), strict=False):
        if left != right:
            break
        count += 1
    return count


_NAMESPACES = ("builtins.locals", "builtins.vars")
_RECORDS = frozenset({
    "dataclasses.dataclass", "dataclasses.dataclass()", "typing.NamedTuple", "attr.s", "attr.s()", "attr.define",
    "attr.define()", "attrs.define", "attrs.define()", "attrs.frozen", "attrs.frozen()",
})  # fmt: skip
_DEFAULTS = frozenset({"default", "default_factory", "factory"})
_DISPATCHERS = ("functools.singledispatch", "functools.singledispatchmethod")
# What decorators of the language give to a function: of singledispatch, of a property, of a cache.
_WRAPPED = frozenset({"register", "dispatch", "setter", "getter", "deleter", "cache_clear", "cache_info"})
_CLASS_METHODS = ("__new__", "__init_subclass__", "__class_getitem__")
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
_EACH: dict[str, Literal["list", "tuple", "set"]] = {
    "builtins.list": "list", "builtins.tuple": "tuple", "builtins.set": "set", "builtins.frozenset": "set",
    "builtins.sorted": "list", "builtins.reversed": "list", "builtins.iter": "list", "itertools.chain": "list",
    "collections.deque": "list",
}  # fmt: skip
# Functions that call their first argument: with elements of the others, with the others themselves.
_TAKING = frozenset({
    "builtins.map", "builtins.filter", "itertools.takewhile", "itertools.dropwhile", "itertools.filterfalse",
    "concurrent.futures.ThreadPoolExecutor().map", "concurrent.futures.ProcessPoolExecutor().map",
    "multiprocessing.Pool().map",
})  # fmt: skip
_PASSING = frozenset({
    "atexit.register", "asyncio.to_thread", "contextlib.ExitStack().callback",
    "concurrent.futures.ThreadPoolExecutor().submit", "concurrent.futures.ProcessPoolExecutor().submit",
})  # fmt: skip
_ENTERING = ("contextlib.ExitStack().enter_context", "contextlib.AsyncExitStack().enter_async_context")
# Made empty, to be filled.
_FILLED: dict[str, Literal["list", "set"]] = {
    "builtins.list": "list", "builtins.set": "set", "collections.deque": "list",
}  # fmt: skip
_SAME = frozenset({
    "copy.copy", "copy.deepcopy", "dataclasses.replace", "asyncio.run", "asyncio.create_task", "asyncio.wait_for",
    "asyncio.shield", "contextlib.closing", "weakref.proxy",
    # Decorators called by hand: `f = lru_cache()(g)`.
    "functools.lru_cache", "functools.lru_cache()", "functools.cache", "functools.wraps()", "abc.abstractmethod",
    "contextlib.contextmanager", "contextlib.asynccontextmanager",
})  # fmt: skip
