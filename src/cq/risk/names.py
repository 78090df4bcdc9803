"""What names stand for outside of one run: by imports, by what modules bind, by classes and their bases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from cq.model.code import (
    Attribute,
    Bind,
    Choice,
    Constant,
    Defined,
    Definition,
    Element,
    Imported,
    Lambda,
    MethodOf,
    Name,
    Operated,
    SeenIn,
    Text,
    label_type,
)
from cq.model.code import Value as Form
from cq.model.edge import Candidate
from cq.risk.program import Callee, Document, Function, Program
from cq.risk.rules import OwnRules, Rules, load_rules
from cq.risk.run import MODULE, Run
from cq.risk.values import NOTHING, Closure, ParameterSource, Ref, Shape, Taint, Value

MAX_STATIC = 8  # steps from a name to what it stands for


class Names:
    """Over one program."""

    def __init__(self, program: Program, own_rules: OwnRules) -> None:
        self.program = program
        self._own_rules = own_rules
        self._rules: dict[str, Rules] = {}
        self._fields: dict[Closure, list[str]] = {}

    def rules_of(self, language: str) -> Rules:
        if language not in self._rules:
            self._rules[language] = load_rules(language, self._own_rules)
        return self._rules[language]

    def find_document(self, path: str, number: int) -> Document | None:
        return self.program.find_document(path, number)

    def find_callees(self, document: Document, number: int) -> Sequence[Callee]:
        return self.program.find_callees(document, number)

    def find_function(self, place: Candidate) -> Function | None:
        document = self.program.find_document(place.path, place.document)
        return None if document is None else document.find_function(place.name)

    def load_globals(self, document: Document) -> Mapping[str, Value]:
        raise NotImplementedError

    # -- names -------------------------------------------------------------------------------------------

    def find_outer(self, run: Run, name: str) -> Value:
        """A name that a function does not bind itself: of the functions around it, of the module, of the language."""
        function, document = run.function, run.document
        around = function.around
        while around is not None:
            binds = document.find_binds(around, name)
            if len(binds) == 1 and isinstance(binds[0].value, (Defined, Imported, Lambda)):
                return self.import_value(document, binds[0])
            if binds or name in around.parameters:
                source = ParameterSource(function.place, function.start, name)
                paths = self.find_paths(document, around.scope, Name(name))
                ref: Ref = ("p", name)
                run.state.objects.setdefault(ref, Shape(source=source))
                return Value(taints=(Taint(source, frozenset(), None),), refs=(ref,), paths=paths, origin=("p", name))
            around = around.around
        if function.definition is None:
            return self._find_builtin(document, name)
        return self.find_global(document, name)

    def find_global(self, document: Document, name: str) -> Value:
        """What a module has under a name when it is loaded."""
        binds = document.binds.get((-1, name), ())
        if not binds:
            return self._find_builtin(document, name)
        if len(binds) == 1 and isinstance(binds[0].value, (Defined, Imported, Lambda)):
            return self.import_value(document, binds[0])
        found = self.load_globals(document).get(name)
        if found is not None:
            return found._replace(taints=(), origin=())
        paths = self.find_paths(document, -1, Name(name))
        return Value(paths=paths)

    def _find_builtin(self, document: Document, name: str) -> Value:
        """Bound nowhere: the language's own, or what a star import brings."""
        for bind in document.starred:
            if isinstance(bind.value, Imported) and self.program.find_import(document, bind) is None:
                path = f"{bind.value.module}.{name}"
                rules = self.rules_of(document.language)
                if path in rules.sinks or path in rules.sources or path in rules.sanitizers:
                    return Value(paths=(rules.settle(path),))
        return Value(paths=(self.rules_of(document.language).settle(name),))

    def import_value(self, document: Document, bind: Bind) -> Value:
        """What a definition or an import binds."""
        match bind.value:
            case Defined(start=start) | Lambda(start=start):
                return Value(closures=(Closure(document.path, document.number, start),))
            case Imported() as imported:
                place = self.program.find_import(document, bind)
                if place is None:
                    return Value(paths=(self.rules_of(document.language).write_import(imported),))
                other = self.program.find_document(place.path, place.document)
                if other is None:
                    return NOTHING
                if place.name:
                    made = other.by_name.get(place.name)
                    return (
                        NOTHING if made is None else Value(closures=(Closure(place.path, place.document, made.start),))
                    )
                return self._import_from(other, imported.name)
            case _:
                return NOTHING

    def _import_from(self, document: Document, name: str) -> Value:
        """What a document offers under a name; the document itself, or what it gives as a whole."""
        exported = {"=": "export =", "default": "export default"}.get(name, f"export {name}")
        for known in (exported, name):
            if (-1, known) in document.binds:
                return self.find_global(document, known)
        return Value(paths=(f"{MODULE}{document.path}",)) if name in ("*", "=") else NOTHING

    def read_module(self, path: str, name: str) -> Value:
        """What `module.name` is: what the module binds, or the module of that name below it."""
        document = self.program.find_document(path, 0)
        if document is not None:
            found = self._import_from(document, name)
            if found != NOTHING:
                return found
        folder, _, file = path.rpartition("/")
        stem, dot, suffix = file.partition(".")
        if stem == "__init__":
            for below in (f"{name}{dot}{suffix}", f"{name}/{file}"):
                below = f"{folder}/{below}".lstrip("/")
                if self.program.find_document(below, 0) is not None:
                    return Value(paths=(f"{MODULE}{below}",))
        return NOTHING

    def find_paths(self, document: Document, scope: int, form: Form, steps: int = MAX_STATIC) -> tuple[str, ...]:
        """What an expression is called, by names and imports alone."""
        if steps <= 0 or form is None:
            return ()
        rules = self.rules_of(document.language)

        def extend(paths: Iterable[str], end: str) -> tuple[str, ...]:
            return tuple(dict.fromkeys(rules.settle(f"{path}{end}") for path in paths if len(path) < 140))

        if isinstance(form, str):
            head, *rest = form.split(".")
            found = self._find_head(document, scope, head, steps)
            for name in rest:
                found = extend(found, f".{name}")
            return found or ((f"?.{rest[-1]}",) if rest else ())
        if isinstance(form, int):
            site = document.site(form)
            if site is None:
                return ()
            return extend(self.find_paths(document, scope, site.callee, steps - 1), "()")
        match form:
            case Attribute(base=base, path=path):
                found = self.find_paths(document, scope, base, steps - 1)
                for name in path.split("."):
                    found = extend(found, f".{name}")
                return found
            case MethodOf(receiver=receiver, name=name):
                return extend(self.find_paths(document, scope, receiver, steps - 1), f".{name}")
            case Element(base=base):
                return self.find_paths(document, scope, base, steps - 1)
            case Choice(options=options):
                return tuple(path for each in options for path in self.find_paths(document, scope, each, steps - 1))[:4]
            case Operated(operator="|", left=left, right=right):
                both = (left, right)
                return tuple(path for each in both for path in self.find_paths(document, scope, each, steps - 1))[:4]
            case Text(value=text) if re.fullmatch(r"[\w.]+", text):
                return self.find_paths(document, scope, Name(text), steps - 1)
            case Imported():
                return (rules.write_import(form),)
            case _:
                return ()

    def _find_head(self, document: Document, scope: int, name: str, steps: int) -> tuple[str, ...]:
        at = scope
        for _ in range(20):
            binds = document.binds.get((at, name)) or document.inner_named.get((at, name), ())
            for bind in binds[:3]:
                if isinstance(bind.value, Imported):
                    place = self.program.find_import(document, bind)
                    if place is not None:
                        return self._find_far(place, bind.value, steps)
                    return (self.rules_of(document.language).write_import(bind.value),)
                if isinstance(bind.value, (Defined, Lambda, Constant)):
                    return ()
                value = bind.value.value if isinstance(bind.value, SeenIn) else bind.value
                found = self.find_paths(document, at, value, steps - 1)
                if found:
                    return found
            made = document.by_symbol.get(at)
            if binds or (made is not None and any(parameter.name == name for parameter in made.parameters)):
                if made is not None and not binds:
                    parameter = next(parameter for parameter in made.parameters if parameter.name == name)
                    found = self.find_paths(document, made.scope, parameter.type, steps - 1)
                    return tuple(self.rules_of(document.language).settle(f"{path}()") for path in found)
                return ()
            if at < 0 or made is None:
                break
            at = made.scope
        return (self.rules_of(document.language).settle(name),)

    def _find_far(self, place: Candidate, imported: Imported, steps: int) -> tuple[str, ...]:
        other = self.program.find_document(place.path, place.document)
        if other is None or place.name:
            return ()
        if imported.name in ("*", "="):
            return (f"{MODULE}{place.path}",)
        return self._find_head(other, -1, imported.name, steps - 1) if (-1, imported.name) in other.binds else ()

    # -- what functions are to the outside -----------------------------------------------------------------

    def find_type(self, function: Function, number: int) -> tuple[str, ...]:
        """What a parameter is an instance of, where its annotation or its class says so."""
        made = function.definition
        if made is None:
            return ()
        if number == 0 and function.takes_receiver and function.holder is not None:
            rules = self.rules_of(function.document.language)
            return tuple(rules.settle(f"{path}()") for path in self.find_bases(function.document, function.holder))[:4]
        return self._annotated(function.document, made.scope, made.parameters[number].type)

    def find_annotated(self, function: Function, kind: Form) -> tuple[str, ...]:
        return self._annotated(function.document, function.scope, kind)

    def _annotated(self, document: Document, scope: int, kind: Form) -> tuple[str, ...]:
        if kind is None:
            return ()
        rules = self.rules_of(document.language)
        found = self.find_paths(document, scope, kind)
        return tuple(rules.settle(f"{path}()") for path in found if not path.startswith("?."))

    def find_bases(self, document: Document, kind: Definition, steps: int = 6) -> list[str]:
        """What classes from outside a class extends, through those of the repository."""
        found: dict[str, None] = {}
        for base in kind.bases if steps else ():
            paths = self.find_paths(document, kind.scope, base)
            found.update(dict.fromkeys(path for path in paths if not path.startswith("?.")))
            below = self._find_class(document, kind.scope, base)
            if below is not None:
                found.update(dict.fromkeys(self.find_bases(*below, steps - 1)))
        return list(found)

    def _find_class(self, document: Document, scope: int, base: Form) -> tuple[Document, Definition] | None:
        if not isinstance(base, str):
            return None
        for bind in document.binds.get((-1, base.partition(".")[0]), document.binds.get((-1, label_type(base)), ())):
            value = self.import_value(document, bind)
            for closure in value.closures:
                other = self.program.find_document(closure.path, closure.document)
                made = None if other is None else other.definition_at.get(closure.start)
                if other is not None and made is not None and made.kind == "class":
                    return other, made
        del scope
        return None

    def find_fields(self, kind: Closure) -> Sequence[str]:
        """The fields that a class annotates, where calling it sets nothing else."""
        if kind not in self._fields:
            self._fields[kind] = []  # a class may extend itself in code that is broken
            self._fields[kind] = self._list_fields(kind)
        return self._fields[kind]

    def _list_fields(self, kind: Closure) -> list[str]:
        document = self.program.find_document(kind.path, kind.document)
        made = None if document is None else document.definition_at.get(kind.start)
        if document is None or made is None or made.kind != "class":
            return []
        above = [found for base in made.bases if (found := self._find_class(document, made.scope, base)) is not None]
        bases = [Closure(other.path, other.number, base.start) for other, base in above]
        inherited = [name for base in bases for name in self.find_fields(base)]
        paths = {path for form in made.bases for path in self.find_paths(document, made.scope, form)}
        for decorator in made.decorators:
            site = document.site(decorator) if isinstance(decorator, int) else None
            paths.update(self.find_paths(document, made.scope, decorator if site is None else site.callee))
        if not inherited and not paths & self.rules_of(document.language).records:
            return []
        own = [bind.name for bind in document.code.binds if bind.scope == made.symbol and bind.type is not None]
        return list(dict.fromkeys((*inherited, *own)))

    def find_accessor(self, kind: Closure, name: str, steps: int = 6) -> Function | None:
        """The property of a class, or of a base in the repository, that reading a name runs."""
        document = self.program.find_document(kind.path, kind.document)
        made = None if document is None else document.definition_at.get(kind.start)
        if document is None or made is None or not steps:
            return None
        found = document.find_member(made, name)
        if found is not None:
            holder = found.definition
            return found if holder is not None and "accessor" in holder.modifiers else None
        for base in made.bases:
            below = self._find_class(document, made.scope, base)
            if below is not None:
                other = Closure(below[0].path, below[0].number, below[1].start)
                found = self.find_accessor(other, name, steps - 1)
                if found is not None:
                    return found
        return None
