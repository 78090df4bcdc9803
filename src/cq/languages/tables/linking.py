"""The table languages for the linker: what stands in the same file, what imports name, else candidates by name.

A single link only where the rules of the language leave no other; see cq.syntax.table_code for what is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from cq.graph.corpus import MAX_HOLDERS
from cq.graph.dialect import Dialect, OwnForm
from cq.graph.engine.cells import Answers
from cq.graph.engine.view import View
from cq.graph.scopes import ROOT, find_defined
from cq.graph.things import Class, Function, Thing
from cq.graph.values import IMPORT, MRO, NAME, PARAMETER, SCOPE, Values
from cq.language import all_languages, describe, load_table
from cq.model.code import Bind, Defined, Definition, Imported, OnReceiver, Site

if TYPE_CHECKING:
    from cq.graph.link import Linker


class Rules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the table `linking` of a language says."""

    has_single_functions: bool = False  # a function at root level is the only one of its name: none overloads it
    has_plain_members: bool = False  # a method of the class itself is meant, where nothing is inherited
    hides_inherited: bool = False  # also where something is: what the class has hides what bases have
    is_replaceable: bool = False  # anybody may define a name again
    is_hoisting: bool = False  # a block knows what stands below
    has_function_values: bool = False  # a function inside a function is a variable
    includes_paths: bool = False  # files are included by their paths, often from the folder of the one that includes
    has_folder_packages: bool = False  # the files of a folder are one module
    ignores_case: bool = False
    has_outside_members: bool = False  # what is called on a receiver may be defined outside its class
    has_static_files: bool = False  # what is static is known in its file only
    least_of_path: int = 0  # how many of the last names of a module are enough to know its file; 0: all


@cache
def _rules(language: str) -> Rules:
    return load_table(language, "linking", Rules)


@cache
def _suffixes(family: str) -> frozenset[str]:
    """Which files names may come from."""
    return frozenset(suffix for each in all_languages().values() if each.family == family for suffix in each.suffixes)


_SELF = frozenset({"this", "self", "$this", "Self", "static"})
_SEPARATORS = re.compile(r"[.\\/:]+")


class TablesDialect(Dialect):
    is_static = True

    def __init__(self, linker: Linker, paths: Iterable[str]) -> None:
        self._files: dict[str, list[str]] = {}  # last name without extension -> paths
        self._folders: dict[str, set[str]] = {}
        self._in_folder: dict[str, list[str]] = {}
        # The same for every call of a name in a file: one that is generated has hundreds of `x.String()` and `String`s.
        self._named = Answers(self._find_named)
        families = {each.family for each in all_languages().values() if "candidates" in each.offers}
        known = frozenset[str]().union(*map(_suffixes, families))
        for path in sorted(paths):
            folder, _, name = path.rpartition("/")
            stem, _, extension = name.rpartition(".")
            if extension in known:
                self._files.setdefault(stem, []).append(path)
                self._in_folder.setdefault(folder, []).append(path)
                if folder:
                    self._folders.setdefault(folder.rpartition("/")[2], set()).add(folder)

    # -- names -----------------------------------------------------------------------------------

    def find_name(self, linker: Linker, unit: View, scope: int, name: str, position: int) -> Values:
        at = scope
        while True:
            binds = unit.bound(at, name)
            holder = unit.by_symbol.get(at)
            is_class = holder is not None and holder.kind != "function"
            if holder is not None and not is_class and not _rules(unit.language).is_hoisting:
                binds = [bind for bind in binds if bind.start <= position]
            if binds and not (
                is_class and not describe(unit.language).has_implicit_members and _are_functions(unit, binds)
            ):
                return self._bound(linker, unit, holder, binds, name)
            if at == ROOT:
                break
            at = ROOT if holder is None else holder.scope
        for _, star in unit.stars():
            found = self._imported(linker, unit, star.module, name)
            if found:
                return dict.fromkeys(found, PARAMETER)
        if _rules(unit.language).has_folder_packages:
            found = self._in_package(linker, unit, name)
            if found:
                return dict.fromkeys(found, IMPORT if len(found) == 1 else PARAMETER)
        return self._by_name(linker, unit, name, on_receiver=False)

    def _bound(self, linker: Linker, unit: View, holder: Definition | None, binds: Sequence[Bind], name: str) -> Values:
        defined = [linker.thing(unit, start) for start in find_defined(binds)]
        imports = [bind.value for bind in binds if isinstance(bind.value, Imported)]
        if len(defined) + len(imports) < len(binds):
            return linker.unknown  # a variable of that name
        if imports:
            if defined or len(imports) > 1:
                return self._by_name(linker, unit, name, on_receiver=False)
            return self._import(linker, unit, imports[0].module, imports[0].name, name)
        certain = len(defined) == 1 and self._is_certain(unit, holder, defined[0])
        return dict.fromkeys(defined, SCOPE if certain else PARAMETER)

    def _is_certain(self, unit: View, holder: Definition | None, thing: Class | Function) -> bool:
        rules = _rules(unit.language)
        if "local" in thing.definition.modifiers:
            return True
        if rules.is_replaceable:
            return False
        if isinstance(thing, Class):
            return True
        if holder is None:
            return rules.has_single_functions
        if holder.kind == "function":
            return not rules.has_function_values
        return rules.has_plain_members and (not holder.bases or rules.hides_inherited)

    def operate(self, linker: Linker, unit: View, scope: int, form: OwnForm, position: int) -> Values:
        return self._find_on(linker, unit, scope, form) if isinstance(form, OnReceiver) else linker.unknown

    def _find_on(self, linker: Linker, unit: View, scope: int, form: OnReceiver) -> Values:
        receiver, name = form.receiver, form.name
        holder = unit.find_class(scope)
        if receiver in _SELF and holder is not None:
            found = self._members(linker, unit, holder, name)
            if found:
                certain = len(found) == 1 and self._is_certain(unit, holder, found[0])
                return dict.fromkeys(found, MRO if certain else PARAMETER)
            return self._by_name(linker, unit, name, on_receiver=True)
        head = re.split(r"\.|::|->|\\", receiver, maxsplit=1)[0]
        if not head.isidentifier():
            return self._by_name(linker, unit, name, on_receiver=True)
        at = scope
        binds: Sequence[Bind] = ()
        while not binds:
            binds = unit.bound(at, head)
            if at == ROOT:
                break
            inner = unit.by_symbol.get(at)
            at = ROOT if inner is None else inner.scope
        bound = binds[0].value if len(binds) == 1 else None
        if isinstance(bound, Imported):
            return self._on_import(linker, unit, bound, receiver == head, name)
        if isinstance(bound, Defined) and receiver == head:
            definition = unit.definitions[bound.start]
            found = self._members(linker, unit, definition, name) if definition.kind != "function" else []
            if found:
                certain = len(found) == 1 and self._is_certain(unit, definition, found[0])
                return dict.fromkeys(found, SCOPE if certain else PARAMETER)
        return self._by_name(linker, unit, name, on_receiver=True)

    def _on_import(self, linker: Linker, unit: View, bound: Imported, is_direct: bool, name: str) -> Values:
        """A name of something imported: of a module's file or folder, or of a class."""
        module, imported = bound.module, bound.name
        files = self._find_files(unit, module if imported == "*" else f"{module}/{imported}")
        files += [path for path in self._find_files(unit, module) if path not in files] if imported != "*" else []
        if not files:
            return {linker.external(f"{module}.{name}" if imported == "*" else f"{module}.{imported}.{name}"): IMPORT}
        found = [thing for path in files for thing in self._defined_in(linker, path, name, inside=True)]
        if not found:
            return self._by_name(linker, unit, name, on_receiver=True)
        rules = _rules(unit.language)
        is_one = len(files) == 1 or rules.has_folder_packages
        certain = is_direct and len(found) == 1 and is_one and not rules.is_replaceable
        return dict.fromkeys(found, IMPORT if certain else PARAMETER)

    # -- imports ---------------------------------------------------------------------------------

    def resolve_import(self, linker: Linker, unit: View, level: int, module: str, name: str) -> Values:
        if name == "*":
            found: dict[Thing, int] = {}
            for path in self._find_files(unit, module)[:1]:
                source = linker.module(path)
                if source.unit is not None:
                    found[source] = IMPORT
            return found or linker.unknown
        return self._import(linker, unit, module, name, name)

    def _import(self, linker: Linker, unit: View, module: str, imported: str, name: str) -> Values:
        found = self._imported(linker, unit, module, imported if imported != "*" else name)
        if found:
            certain = len(found) == 1 and not _rules(unit.language).is_replaceable
            return dict.fromkeys(found, IMPORT if certain else PARAMETER)
        if not self._find_files(unit, module) and not self._find_files(unit, f"{module}/{imported}"):
            return {linker.external(f"{module}.{imported}" if imported != "*" else module): IMPORT}
        return self._by_name(linker, unit, name, on_receiver=False)

    def _imported(self, linker: Linker, unit: View, module: str, name: str) -> list[Thing]:
        files = self._find_files(unit, f"{module}/{name}") or self._find_files(unit, module)
        found = [thing for path in files for thing in self._defined_in(linker, path, name, inside=False)]
        return found or [thing for path in files for thing in self._defined_in(linker, path, name, inside=True)]

    def _find_files(self, unit: View, module: str) -> list[str]:
        """Files of the repository that a module's name can mean: its path, or all of a folder."""
        rules, suffixes = _rules(unit.language), _suffixes(describe(unit.language).family)
        if rules.includes_paths:
            wanted = module.removeprefix("./")
            stem = wanted.rpartition("/")[2].rpartition(".")[0]
            return [path for path in self._files.get(stem, ()) if _ends(path, wanted)]
        parts = [part for part in _SEPARATORS.split(module) if part]
        if not parts:
            return []
        found: list[str] = []
        for path in self._files.get(parts[-1], ()) if not rules.has_folder_packages else ():
            stem, _, extension = path.rpartition(".")
            if extension in suffixes and self._agrees(rules, stem, parts):
                found.append(path)
        for folder in sorted(self._folders.get(parts[-1], ())):
            if self._agrees(rules, folder, parts):
                found += [path for path in self._in_folder[folder] if path.rpartition(".")[2] in suffixes]
        return found

    def _agrees(self, rules: Rules, path: str, parts: list[str]) -> bool:
        """Whether a path can be that of a module: folders above the sources stand before it, and some languages leave
        out the first names of a package."""
        there, wanted = path.split("/"), parts
        if rules.ignores_case:
            there, wanted = [part.lower() for part in there], [part.lower() for part in parts]
        count = 0
        for left, right in zip(reversed(there), reversed(wanted), strict=False):
            if left != right:
                break
            count += 1
        if count == len(wanted):
            return True
        return count == len(there) if rules.has_folder_packages else 0 < rules.least_of_path <= count

    def _defined_in(self, linker: Linker, path: str, name: str, *, inside: bool) -> list[Thing]:
        """What a file defines at root level; `inside` also what its classes and modules hold."""
        module = linker.module(path)
        unit = module.unit
        if unit is None or "candidates" not in describe(unit.language).offers:
            return []
        found: list[Thing] = []
        for definition in unit.defined(name):
            holder = unit.by_symbol.get(definition.scope)
            if definition.scope == ROOT or (inside and holder is not None and holder.kind != "function"):
                found.append(linker.thing(unit, definition.start))
        return found

    def _in_package(self, linker: Linker, unit: View, name: str) -> list[Thing]:
        """The other files of the folder are one package."""
        folder = unit.path.rpartition("/")[0]
        found: list[Thing] = []
        for path in self._in_folder.get(folder, ()):
            if path.endswith(describe(unit.language).suffix) and path != unit.path:
                things = self._defined_in(linker, path, name, inside=False)
                found += [
                    thing for thing in things
                    if isinstance(thing, (Class, Function)) and "member" not in thing.definition.modifiers
                ]  # fmt: skip
        return found

    # -- members and candidates ------------------------------------------------------------------

    def _members(self, linker: Linker, unit: View, holder: Definition, name: str) -> list[Class | Function]:
        return [linker.thing(unit, start) for start in find_defined(unit.bound(holder.symbol, name))]

    def _by_name(self, linker: Linker, unit: View, name: str, *, on_receiver: bool) -> Values:
        """Everything of that name that could be called so; near ones first, never a single link."""
        return self._named.find(linker, (unit, name, on_receiver))

    def _find_named(self, linker: Linker, asked: tuple[View, str, bool]) -> Values:
        unit, name, on_receiver = asked
        family = describe(unit.language).family
        folder = unit.path.rpartition("/")[0]
        found: Values = {}
        for other, definition in linker.documents.entries("definition", name, MAX_HOLDERS) or ():
            if describe(other.language).family == family and _may_mean(
                unit, other, definition, on_receiver=on_receiver
            ):
                is_near = other is unit or other.path.rpartition("/")[0] == folder
                found[linker.thing(other, definition.start)] = PARAMETER if is_near else NAME
        return found or linker.unknown

    def is_method_call(self, site: Site) -> bool:
        return False  # `_by_name` has said what there is


def _may_mean(unit: View, other: View, definition: Definition, *, on_receiver: bool) -> bool:
    holder = other.by_symbol.get(definition.scope)
    is_member = "member" in definition.modifiers or (holder is not None and holder.kind != "function")
    if holder is not None and holder.kind == "function":
        return False  # known inside that function only
    if on_receiver:
        return is_member or _rules(unit.language).has_outside_members
    if is_member and definition.kind == "function":
        return describe(unit.language).has_implicit_members
    return not ("static" in definition.modifiers and _rules(unit.language).has_static_files and other is not unit)


def _are_functions(unit: View, binds: Sequence[Bind]) -> bool:
    starts = find_defined(binds)
    return len(starts) == len(binds) and all(unit.definitions[start].kind == "function" for start in starts)


def _ends(path: str, end: str) -> bool:
    return path == end or path.endswith(f"/{end}")
