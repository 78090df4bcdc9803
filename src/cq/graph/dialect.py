"""What a language tells the linker: how modules are found, how members are reached, what its own types do.

A language that wants its calls resolved gives `Code` in its facts (see cq.model.code, filled in
cq/languages/<x>/facts.py with `has_code = True`) and a Dialect in cq/languages/<x>/linking.py, which its description
names. Everything else (scopes, flows, members, candidates) is the linker's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from cq.graph.items import Written, get_kind
from cq.graph.scopes import ROOT
from cq.graph.things import UNKNOWN, Class, Container, External, Function, Module, Thing
from cq.graph.values import SCOPE, join
from cq.model.code import (
    Bind,
    ClosureParameter,
    Definition,
    Element,
    Imported,
    Indexed,
    Item,
    Key,
    MethodOf,
    Name,
    OnReceiver,
    OperatorMethod,
    PartOf,
    ReturnOf,
    Site,
    SuperObject,
    Text,
    TuplePart,
    Typed,
    Unwrapped,
    Value,
    find_inner,
)
from cq.model.facts import Import

if TYPE_CHECKING:
    from cq.graph.engine.view import View
    from cq.graph.link import Linker
    from cq.graph.values import Values

MAX_IMPORTS = 10  # imports of imports that are followed to a value

# Forms that have a meaning in some languages alone: see Dialect.operate.
OwnForm = (
    SuperObject | ReturnOf | MethodOf | Item | Unwrapped | PartOf | TuplePart | Indexed | ClosureParameter
    | OperatorMethod | OnReceiver
)  # fmt: skip


class Dialect:
    """Defaults serve a language without modules, whose methods are simply members."""

    constructors: ClassVar[tuple[str, ...]] = ()  # the member that runs when a class is called
    base_constructor: ClassVar[str] = ""  # the name of a call that runs the constructor of a base, if it has one
    made_constructors: ClassVar[tuple[str, ...]] = ()  # what a constructor runs that the language writes itself
    # What an operation on an instance calls: iter next enter item call and operators, each a member's name.
    protocols: ClassVar[dict[str, str]] = {}
    runs: ClassVar[dict[str, tuple[str, ...]]] = {}  # operation of Code.runs -> the methods it runs; `a|b`: the first
    builtin_runs: ClassVar[dict[str, tuple[str, ...]]] = {}  # function -> the methods of its argument that it runs
    element_runs: ClassVar[dict[str, tuple[str, ...]]] = {}  # those of its elements, where no `key` is given
    # The language's own functions that call what they are given -> the argument, by position or keyword, or several.
    callers: ClassVar[dict[str, int | str | tuple[int, ...]]] = {}
    external_runs: ClassVar[frozenset[str]] = frozenset()  # functions of which `find_ran` knows what they run
    sending: ClassVar[str] = ""  # the method of a generator that hands something over to it
    has_open_modules: ClassVar[bool] = False  # whether others can assign to the variables of a module
    missing_hook: ClassVar[str] = ""  # the method that is asked for an attribute that there is none of
    attribute_hooks: ClassVar[tuple[str, ...]] = ()  # methods of what a class holds that run when it is defined
    class_hooks: ClassVar[tuple[str, ...]] = ()  # methods of the bases that run when a class is defined
    root_members: ClassVar[frozenset[str]] = frozenset()  # what every instance and class has from the language itself
    common_members: ClassVar[frozenset[str]] = frozenset()  # methods that values of the language have under those names
    builtins: ClassVar[frozenset[str]] = frozenset()  # names that need no binding
    core: ClassVar[str] = "builtins"  # the module of the language's own names
    own_kinds: ClassVar[dict[str, str]] = {}  # what the language calls the linker's own kinds of values: Array for list
    # A language whose types are written: names, members and results are found by its own rules (`find_name`,
    # `find_member`, `find_method`, `give`, `find_parameter`), and an unknown beside a known type is that type.
    is_static: ClassVar[bool] = False

    def __init__(self, linker: Linker, paths: Iterable[str]) -> None:
        """For one linker; `paths` are those of all files of the repository."""

    def resolve_import(self, linker: Linker, unit: View, level: int, module: str, name: str) -> Values:
        """What an import binds; `name` "*" is the module itself."""
        return linker.unknown

    @cached_property
    def implied_names(self) -> frozenset[str]:
        """Methods that run without a call of their name."""
        every = (*self.runs.values(), *self.builtin_runs.values(), *self.element_runs.values())
        return frozenset(name for names in every for each in names for name in each.split("|"))

    def find_origin(self, linker: Linker, unit: View, value: Imported) -> Thing | None:
        """What an import binds that is nothing to call: the type, or the module that binds the name to a value, along
        imports of it."""
        for _ in range(MAX_IMPORTS):
            found = self.resolve_import(linker, unit, value.level, value.module, "*")
            source = next(iter(found)) if len(found) == 1 else None
            if value.name == "*" or not isinstance(source, Module) or source.unit is None:
                break
            unit = source.unit
            binds = unit.bound(ROOT, value.name)
            imports = [bind.value for bind in binds if isinstance(bind.value, Imported)]
            if binds and not imports:
                return source
            if len(binds) != 1 or not imports:
                break
            value = imports[0]
        return None

    def find_sources(self, linker: Linker, unit: View, item: Import) -> list[tuple[Thing, bool]] | None:
        """The modules that an import names, of the repository or from outside, and whether for types alone; without
        those that are missing. None in languages whose imports name definitions."""
        return None

    def find_submodule(self, linker: Linker, folder: str, name: str) -> Thing | None:
        """A module inside a package or folder, reached as its attribute."""
        return None

    def order_bases(self, linker: Linker, kind: Class) -> tuple[Thing | None, ...]:
        """The class and what it inherits from, in the order of lookup; None for a base nobody knows."""
        return (kind, *(None for _ in kind.definition.bases))

    def find_metaclass(self, linker: Linker, kind: Class) -> Class | None:
        """The class of the repository that a class is an instance of."""
        return None

    def find_factories(self, linker: Linker, kind: Class) -> list[Thing]:
        """What is called for the fields of an instance when it is made."""
        return []

    def find_static(self, linker: Linker, unit: View, scope: int, value: Value, position: int) -> Thing | None:
        """What a value is by names, imports and aliases alone, without any flow; None: nobody knows."""
        return None

    def receiver(self, linker: Linker, function: Function) -> Thing | None:
        """What the first parameter of a method is; None for a function or a static method."""
        return None

    def access(self, linker: Linker, function: Function, receiver: Thing, *, on_class: bool) -> Values:
        """A function found as a member of a class, as the reader of the member gets it."""
        return {function: 0}

    def read_field(self, linker: Linker, holder: Class, bind: Bind) -> Values:
        """What an attribute is that the body of a class binds."""
        return linker.bound(holder.unit, bind)

    def find_name(self, linker: Linker, unit: View, scope: int, name: str, position: int) -> Values:
        return linker.unknown

    def find_member(self, linker: Linker, thing: Thing, name: str, level: int) -> Values:
        return linker.unknown

    def find_method(self, linker: Linker, thing: Thing, name: str, level: int) -> Values:
        """What `thing.name()` calls, where fields and methods are told apart."""
        return linker.unknown

    def find_parameter(self, linker: Linker, function: Function, number: int) -> Values:
        return linker.unknown

    def give(self, linker: Linker, thing: Thing, receiver: Thing | None, unit: View | None, number: int) -> Values:
        """What calling a function or a Native gives."""
        return linker.unknown

    def operate(self, linker: Linker, unit: View, scope: int, form: OwnForm, position: int) -> Values:
        """What forms mean that not every language has."""
        return linker.unknown

    def find_literal(self, linker: Linker, kind: str) -> Values:
        """A literal, of the type that the linker calls so: str, int."""
        return linker.literal(kind, self.core)

    def contain(self, linker: Linker, unit: View, scope: int, form: Written, position: int) -> Values:
        """A container as written."""
        return {linker.container(get_kind(form), unit, scope, position, form): SCOPE}

    def iterate(self, linker: Linker, unit: View, scope: int, value: Value, position: int) -> Values:
        """What iterating over a value gives."""
        found = linker.protocols.iterate(linker.evaluate(unit, scope, value, position))
        return join(found, linker.containers.items(unit, scope, value, position, [None]))

    def cast(self, linker: Linker, unit: View, scope: int, form: Typed, position: int) -> Values:
        """A value that is said to be of a type."""
        made = linker.make(unit, scope, form.kind, position)
        return made if made and UNKNOWN not in made else linker.evaluate(unit, scope, form.value, position)

    def is_method_call(self, site: Site) -> bool:
        """Whether a call that nobody knows may mean any method of its name."""
        return True

    def make(self, linker: Linker, unit: View, scope: int, kind: Value, position: int) -> Values:
        """Instances of a type as written in an annotation. Static: it must not read cells."""
        return linker.unknown

    def find_type_names(self, kinds: Iterable[Value]) -> list[Name]:
        """The names in annotations, each once."""
        found: dict[Name, None] = {}
        todo = list(kinds)
        while todo:
            kind = todo.pop()
            if isinstance(kind, str):
                found |= {kind: None} if kind else {}  # what the parser made up has no name
            elif isinstance(kind, Text):
                todo.append(self.parse_type(kind.value))
            elif isinstance(kind, Element) and isinstance(kind.base, str) and kind.base.rpartition(".")[2] == "Literal":
                todo.append(kind.base)  # `Literal["open"]` names no type
            elif kind is not None and not isinstance(kind, int):
                todo += find_inner(kind)
        return sorted(found)

    def parse_type(self, text: str) -> Value:
        """An annotation that is written as a string."""
        return None

    def find_exported(self, linker: Linker, unit: View, name: str) -> Values | None:
        """What a module has under a name; None when it has no such name."""
        return linker.members.exported(unit, name)

    def container_member(self, linker: Linker, container: Container, name: str, level: int) -> Values:
        """An attribute of a list, dictionary, …"""
        return {linker.external(f"builtins.{container.kind}().{name}", container): level}

    def find_entry(self, linker: Linker, container: Container, key: Key) -> Values | None:
        """What a container has under a constant key. None when the container is written out in the source; its elements
        then say what it holds."""
        return None

    def find_beside(self, linker: Linker, thing: Function | Class, name: str) -> Values | None:
        """What a module puts under a name beside what it gives as a whole: `module.exports = f; exports.name = …`."""
        return None

    def function_member(self, linker: Linker, function: Function | Class, name: str) -> Values | None:
        """An attribute that every function has; None: this one may have got it by an assignment."""
        return None

    def call_container(self, linker: Linker, container: Container) -> Values:
        """What a container gives that stands for a type of function."""
        return linker.unknown

    def find_passed(self, linker: Linker, function: Function, number: int) -> Values | None:
        """What a parameter of an anonymous function gets from the call that it is handed to; None where it is handed
        to none, which the text alone must say."""
        return None

    def find_handed(self, thing: External, unit: View, number: int, at: int | str) -> Site | None:
        """What the language's own function passes to one that a call hands it as that argument, as a call of it."""
        return None

    def find_ran(self, linker: Linker, thing: External, unit: View, number: int) -> Values:
        """Functions that a call of the language's own function runs, beside what it is given."""
        return {}

    def keeps_decorated(self, thing: Thing) -> bool:
        """Whether what a decorator gives takes the place of what it decorates."""
        return False

    def give_decorated(
        self, linker: Linker, thing: External, unit: View, definition: Definition, found: Values
    ) -> Values:
        """What a decorator from outside makes of a definition, where that is more than itself."""
        return {}

    def call_external(self, linker: Linker, thing: External, unit: View, number: int) -> Values | None:
        """What a call to the language's own function gives, where it passes values on; None: it does not."""
        return None


class Dialects(dict[str, Dialect]):
    """By language, made when first asked for: each looks at the paths of all files."""

    def __init__(self, find_kind: Callable[[str], type[Dialect]], linker: Linker, paths: Iterable[str]) -> None:
        super().__init__()
        self._find_kind, self._linker, self._paths = find_kind, linker, sorted(paths)
        self._made: dict[type[Dialect], Dialect] = {}

    def __missing__(self, language: str) -> Dialect:
        kind = self._find_kind(language)
        if kind not in self._made:
            self._made[kind] = kind(self._linker, self._paths)
        self[language] = self._made[kind]
        return self[language]

    def all(self) -> list[Dialect]:
        """Those that were asked for: whatever a linker holds comes from them."""
        return [*self._made.values()]
