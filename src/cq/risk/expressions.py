"""What expressions give: constants, texts, containers, attributes, choices, operations."""

from __future__ import annotations

from collections.abc import Sequence

from cq.model.code import (
    Attribute,
    Augmented,
    Awaited,
    Boolean,
    Caught,
    Choice,
    Constant,
    Defined,
    Dictionary,
    Each,
    Element,
    Entered,
    Imported,
    Integer,
    Item,
    Iterated,
    Joined,
    Lambda,
    Listing,
    MethodOf,
    Operated,
    Seen,
    SeenIn,
    Site,
    Slice,
    Spread,
    SuperObject,
    Text,
    Typed,
    Unwrapped,
)
from cq.model.code import Value as Form
from cq.risk.fold import fold
from cq.risk.sinks import Sinks
from cq.risk.values import (
    NOTHING,
    UNKNOWN,
    Closure,
    Key,
    Shape,
    State,
    Unknown,
    Value,
    blur,
    join,
    join_all,
    join_taints,
    literal,
    set_field,
)

MAX_EFFORT = 60_000  # expressions of one function that are evaluated, again in loops
MAX_NESTED = 90  # expressions inside one another


class Expressions(Sinks):
    def value(self, form: Form) -> Value:
        """What an expression gives."""
        if form is None:
            return NOTHING
        self.effort += 1
        if self._depth > MAX_NESTED or self.effort > MAX_EFFORT:
            self.is_cut = True
            return NOTHING
        self._depth += 1
        try:
            if isinstance(form, str):
                return self._name(form)
            if isinstance(form, int):
                return self._result(form)
            return self._form(form)
        finally:
            self._depth -= 1

    def _form(self, form: Form) -> Value:
        match form:
            case Text(value=const) | Integer(value=const) | Boolean(value=const):
                return literal(const)
            case Constant(name="None"):
                return literal(None)
            case Constant():
                return Value(is_literal=True)
            case Listing(elements=elements):
                return self._listing(form, elements)
            case Dictionary():
                return self._dictionary(form)
            case Each(element=element):
                return self._each(form, element)
            case Joined(parts=parts):
                return self._concatenate([self.value(part) for part in parts])
            case Attribute(base=base, path=path):
                found = self.value(base)
                for name in path.split("."):
                    found = self.read_attribute(found, name)
                return found
            case MethodOf(receiver=receiver, name=name):
                return self.read_attribute(self.value(receiver), name)
            case Element(base=base, keys=keys):
                return self._element(self.value(base), keys)
            case Slice(base=base, bounds=bounds):
                return self._slice(self.value(base), bounds)
            case Choice():
                return self._choice(form)
            case Operated():
                return self._operated(form)
            case Iterated(value=inner):
                return self.read_any(self.value(inner))
            case Entered(value=inner) | Awaited(value=inner) | Unwrapped(value=inner):
                return self.value(inner)
            case Spread(value=inner) | Typed(value=inner) | Seen(value=inner):
                return self.value(inner)
            case SeenIn() | Caught() | Augmented():
                return NOTHING
            case Lambda(start=start) | Defined(start=start):
                return Value(closures=(Closure(self.document.path, self.document.number, start),))
            case Imported():
                return Value(paths=(self.rules.write_import(form),))
            case SuperObject():
                return self.read_name("this")
            case Item():
                return NOTHING
            case _:
                return NOTHING

    def _name(self, form: str) -> Value:
        head, *rest = form.split(".")
        found = self.read_name(head)
        for name in rest:
            found = self.read_attribute(found, name)
        return found

    def read_name(self, name: str) -> Value:
        known = self.state.names.get(name)
        if known is not None:
            if known.taints and not known.origin:  # joined from several: from here on it is one
                known = self.state.names[name] = known._replace(origin=("v", (name, self.at[1])))
            return known
        made = self.function.definition
        binds = self.document.find_binds(self.function, name) if made is not None else ()
        if binds:
            is_defined = isinstance(binds[0].value, Defined)  # there before the statement that makes it
            return self.engine.import_value(self.document, binds[0]) if is_defined else NOTHING
        found = self.engine.find_outer(self, name)
        return self._read_source(found) if found.paths else found

    def _listing(self, form: Form, elements: Sequence[Form]) -> Value:
        fields: dict[Key, Value] = {}
        rest, size = NOTHING, 0
        for element in elements:
            value = self.value(element)
            if isinstance(element, Spread):
                rest, size = join(rest, self.read_any(value)) if rest != NOTHING else self.read_any(value), -1
            elif size >= 0 and size < 60:
                fields[size] = value
                size += 1
            else:
                rest, size = join(rest, value), -1
        shape = Shape(fields, rest, size)
        if size < 0:
            shape = blur(shape)
        ref = self._allocate(form, shape)
        return Value(refs=(ref,))

    def _dictionary(self, form: Dictionary) -> Value:
        shape = Shape()
        for key, element in zip(form.keys, form.values, strict=True):
            value = self.value(element)
            if key is None:
                for ref in value.refs:
                    inner = self.shape(ref)
                    for name, held in inner.fields.items():
                        shape = set_field(shape, name, held)
                    if inner.rest != NOTHING:
                        shape = set_field(shape, None, inner.rest)
                if value.taints:
                    shape = set_field(shape, None, Value(taints=value.taints))
                continue
            known = self.value(key)
            name = known.const if isinstance(known.const, (str, int)) else None
            shape = set_field(shape, name, value)
            if known.taints:
                shape = set_field(shape, None, Value(taints=known.taints))
        return Value(refs=(self._allocate(form, shape),))

    def _each(self, form: Each, element: Form) -> Value:
        if form.kind == "dict" and isinstance(element, Seen) and isinstance(element.value, Dictionary):
            return self.value(element.value)
        value = self.value(element)
        return Value(refs=(self._allocate(form, Shape(rest=value)),))

    def _concatenate(self, parts: Sequence[Value]) -> Value:
        text = ""
        for part in parts:
            if isinstance(part.const, (str, int)) and not isinstance(part.const, bool):
                text += str(part.const)
            else:
                break
        else:
            return literal(text) if len(text) < 4000 else Value(prefix=text[:200], is_literal=True)
        stop = next(part for part in parts if not isinstance(part.const, (str, int)))
        taints = join_taints(taint for part in parts for taint in self.deep(part))
        is_literal = all(part.is_literal for part in parts)
        return Value(prefix=(text + stop.prefix)[:200], taints=taints, is_literal=is_literal, paths=("text",))

    def _element(self, base: Value, keys: Sequence[Form]) -> Value:
        key = self.value(keys[0]) if len(keys) == 1 else NOTHING
        if (
            isinstance(base.const, str)
            and isinstance(key.const, int)
            and -len(base.const) <= key.const < len(base.const)
        ):
            return literal(base.const[key.const])
        found = self.field(base, key.const) if isinstance(key.const, (str, int)) else self.read_any(base)
        # A table of constants gives one of them, whoever chose it.
        paths = self._extend(base.paths, "[]")
        found = found._replace(paths=paths or found.paths)
        return self._read_source(found) if paths else found

    def _slice(self, base: Value, bounds: tuple[int | None, int | None] | None) -> Value:
        if isinstance(base.const, str) and bounds is not None:
            return literal(base.const[slice(*bounds)])
        if not base.refs:
            return base._replace(const=UNKNOWN, prefix="", origin=(), is_literal=base.is_literal)
        if len(base.refs) == 1 and bounds is not None:
            shape = self.shape(base.refs[0])
            if shape.size >= 0:
                kept = [shape.fields.get(at, NOTHING) for at in range(shape.size)][slice(*bounds)]
                fields: dict[Key, Value] = dict(enumerate(kept))
                ref = ("slice", *base.refs[0], bounds)[:9]
                self.state.objects[ref] = Shape(fields, NOTHING, len(kept))
                return Value(refs=(ref,), taints=base.taints)
        return Value(taints=join_taints((*base.taints, *self.read_any(base).taints)), refs=base.refs)

    def _choice(self, form: Choice) -> Value:
        if form.condition is None:
            return join_all([self.value(option) for option in form.options])
        held, found = self.state, list[Value]()
        outcomes: list[State] = []
        for option, wanted in zip(form.options, (True, False), strict=False):
            self.state = held.copy()
            self._assume(self.state, form.condition, wanted)
            if self.state.alive:
                found.append(self.value(option))
                self.state.alive = True
                outcomes.append(self.state)
        self.state = held
        for outcome in outcomes:
            held.objects.update((ref, shape) for ref, shape in outcome.objects.items() if ref not in held.objects)
        return join_all(found)

    def _operated(self, form: Operated) -> Value:
        if form.operator in ("and", "or", "??", "&&", "||"):
            return self._combine(form)
        left, right = self.value(form.left), self.value(form.right)
        known = fold(form.operator, left, right, form.right is None)
        if not isinstance(known, Unknown):
            return literal(known)
        match form.operator:
            case "+":
                if any(ref[0] != "p" for ref in (*left.refs, *right.refs)):  # of what comes in nobody knows: a text
                    shape = Shape(rest=join(self.read_any(left), self.read_any(right)))
                    return Value(refs=(self._allocate(form, shape),))
                return self._concatenate([left, right])
            case "%" if left.prefix or left.is_literal or left.paths == ("text",):
                before = left.prefix.partition("%")[0]
                taints = join_taints((*left.taints, *self.deep(right)))
                literal_all = left.is_literal and right.is_literal
                return Value(prefix=before, taints=taints, is_literal=literal_all, paths=("text",))
            case "/" if left.paths or left.refs or left.taints or right.taints:  # pathlib
                taints = join_taints((*left.taints, *right.taints))
                return Value(prefix=left.prefix, taints=taints, paths=left.paths)
            case "*" | "|" | "&" if left.taints or right.taints or left.refs or right.refs:
                refs = (*left.refs, *right.refs)[:4]
                return Value(taints=join_taints((*left.taints, *right.taints)), refs=refs)
            case _:
                return Value()  # a number, or true or false

    def _combine(self, form: Operated) -> Value:
        """`a and b`, `a or b`: the second is asked where the first leaves it open."""
        left = self.value(form.left)
        is_and = form.operator in ("and", "&&")
        if left.is_constant:
            if bool(left.const) is is_and and form.operator != "??":
                return self.value(form.right)
            return left
        held = self.state
        self.state = held.copy()
        self._assume(self.state, form.left, is_and)
        right = self.value(form.right) if self.state.alive else None
        held.objects.update((ref, shape) for ref, shape in self.state.objects.items() if ref not in held.objects)
        self.state = held
        if right is None:
            return left
        if is_and:  # where it is the first, it is false: nothing that harms
            return right._replace(const=UNKNOWN, is_literal=right.is_literal)
        return join(left, right)

    def _result(self, end: int) -> Value:
        known = self.results.get(end)
        if known is None:
            site = self.document.site(end)
            if site is None:
                return NOTHING
            self.results[end] = NOTHING  # code that is broken may name itself
            before, self.at = self.at, (site.start, site.end)
            known = self.results[end] = self._call(site)
            self.at = before
        return known

    def _call(self, site: Site) -> Value:
        raise NotImplementedError

    def _assume(self, state: State, condition: Form, wanted: bool) -> None:
        raise NotImplementedError
