"""What the text of a definition says of types, as findings: parameters, members, values, structure, guards, functions
that it hands over. Names in types are followed by links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from cq.answers.handed import Facts, say_predicate
from cq.model.answer import Candidate, Finding, NodeDetails, TypeDetails
from cq.model.edge import Candidate as Place
from cq.model.facts import Symbol
from cq.model.shape import Declared, Guard, ShapeParameter, TypeText, TypeTree
from cq.snapshot.shapes import KnownShapes, is_ambient, takes_function
from cq.snapshot.target import Definition

if TYPE_CHECKING:
    from cq.snapshot.relations import Relations

_KINDS = {"()": "callSignature", "new ()": "constructSignature"}


class TypeFacts:
    def __init__(self, relations: Relations, depth: int) -> None:
        self.relations, self.shapes, self.depth = relations, KnownShapes(relations), depth

    def describe(self, row: Definition) -> list[tuple[str, list[Finding]]]:
        """Of one definition, in sections; nothing in a language of which only links are known."""
        shape = self.shapes.find(row)
        if self.shapes.read_document(row.file.path, row.document) is None:
            return []
        declared = self._declare(row, shape)
        parts: list[tuple[str, list[Finding]]] = [("Declaration", [declared])]
        if shape is None:
            return parts
        parts.append(("Type Parameters", list(self._list_type_parameters(row, shape))))
        if shape.parameters is not None:
            parts.append(("Parameters", [self._describe_parameter(row, each) for each in shape.parameters]))
            parts.append(("Returns", list(self._describe_returned(row, shape))))
        typed = shape.type if shape.tree is None else None
        if typed is not None:
            parts.append(("Type", [self._typed(row, "type", row.symbol.name, typed)]))
        if shape.value:
            parts.append(("Value", [self._describe_value(row, shape)]))
        parts.append(("Referenced Types", self._list_referenced(row, shape)))
        if shape.tree is not None:
            parts.append(("Structure", list(self._list_structure(row, shape.tree))))
        parts.append(("Guards", [self._describe_guard(row, guard) for guard in self.shapes.find_guards(row)]))
        return parts

    # -- declarations ----------------------------------------------------------------------------

    def _declare(self, row: Definition, shape: Declared | None) -> Finding:
        symbol, facts = row.symbol, Facts()
        words = [word for word in symbol.modifiers if word not in ("exported", "default")]
        if "abstract" in words and symbol.kind_group == "class":
            facts["is_abstract"] = True
        if symbol.kind == "enum":
            facts |= {"is_const": "const" in words, "is_declare": is_ambient(row)}
        if shape is not None:
            for word in ("extends", "implements"):
                texts = tuple(each.text for each in getattr(shape, word))
                if texts:
                    facts[word] = texts
            if shape.predicate is not None:
                facts |= say_predicate(shape.predicate)
        facts["modifiers"] = symbol.modifiers
        details = TypeDetails("declaration", symbol.qualified_name, "syntax", facts=facts)
        return Finding("declaration", symbol.signature or symbol.name, row.location, details=details)

    def _list_type_parameters(self, row: Definition, shape: Declared) -> Iterator[Finding]:
        for each in shape.type_parameters:
            words = [*each.modifiers, each.name]
            words += ["extends", each.constraint] if each.constraint else []
            words += ["=", each.default] if each.default else []
            facts: Facts = {"constraint": each.constraint, "default": each.default, "modifiers": each.modifiers}
            details = TypeDetails("type_parameter", each.name, "syntax", facts={k: v for k, v in facts.items() if v})
            yield Finding("type_parameter", " ".join(words), row.location, details=details)

    def _describe_parameter(self, row: Definition, each: ShapeParameter) -> Finding:
        facts: Facts = {}
        for name in ("is_optional", "is_rest", "is_called"):
            if getattr(each, name):
                facts[name] = True
        if each.decorators:
            facts["decorators"] = each.decorators
        if takes_function(self.shapes, row, each):
            facts["takes_callback"] = True
        if each.predicate is not None:
            facts |= {"has_type_predicate": True, **say_predicate(each.predicate)}
        mark = "?" if each.is_optional else ""
        name = f"{'...' if each.is_rest else ''}{each.name}{mark}"
        name = "".join(f"@{decorator} " for decorator in each.decorators) + name
        said = [", called"] if each.is_called else []
        finding = self._typed(row, "parameter", each.name, each.type, facts, label=name, more="".join(said))
        place = row.file.locate(each.start, each.start + len(each.name.encode()))
        return Finding(finding.category, finding.message, place, details=finding.details)

    def _describe_returned(self, row: Definition, shape: Declared) -> Iterator[Finding]:
        facts: Facts = {"returns_function": True} if shape.returned else {}
        if shape.returns is not None:
            yield self._typed(row, "return", "return", shape.returns, facts, label="returns")
        elif shape.returned:
            message = f"returns a function: {shape.returned}"
            details = TypeDetails("return", "return", "syntax", shape.returned, facts=facts)
            yield Finding("return", message, row.location, details=details)

    def _typed(
        self, row: Definition, fact: str, name: str, written: TypeText | None, facts: Facts | None = None,
        *, label: str = "", more: str = "",
    ) -> Finding:  # fmt: skip
        places = self.shapes.resolve(row.file.path, row.document, written)
        resolved = tuple(self._candidate(place) for place in places)
        said = f": {written.text}" if written is not None else ""
        known = f" ({', '.join(self.relations.label(place) for place in places)})" if places else ""
        details = TypeDetails(
            fact,
            name,
            "links" if resolved else "syntax",
            "" if written is None else written.text,
            resolved,
            facts or {},
        )
        return Finding(fact, f"{label or name}{said}{more}{known}", row.location, details=details)

    def _candidate(self, place: Place) -> Candidate:
        row = self.shapes.find_row(place)
        if row is None:
            return Candidate(place.shown_name, "", place.path, 0)
        symbol_id = row.file.name_symbol(row.document, row.number)[0]
        return Candidate(row.symbol.qualified_name, row.symbol.kind, place.path, row.location.start_line, symbol_id)

    def _list_referenced(self, row: Definition, shape: Declared) -> list[Finding]:
        """Every type of the repository that the declaration names, by file and line."""
        written = [each.type for each in shape.parameters or ()] + [shape.returns, shape.type]
        written += [*shape.extends, *shape.implements]
        places = [place for each in written if each for place in self.shapes.resolve(row.file.path, row.document, each)]
        known = [other for place in dict.fromkeys(places) if (other := self.shapes.find_row(place)) is not None]
        known.sort(key=lambda other: (other.file.path, other.symbol.start))
        return [self._refer(other) for other in known if other.key != row.key]

    def _refer(self, row: Definition) -> Finding:
        symbol = row.symbol
        details = TypeDetails("referenced", symbol.qualified_name, "links", facts={"symbol_kind": symbol.kind})
        return Finding("referenced", f"{symbol.kind} {symbol.qualified_name}", row.location, details=details)

    def _describe_value(self, row: Definition, shape: Declared) -> Finding:
        facts: Facts = {"value": shape.value, "is_computed": shape.is_computed}
        details = TypeDetails("value", row.symbol.name, "syntax", shape.value, facts=facts)
        return Finding("value", f"{row.symbol.name} = {shape.value}", row.location, details=details)

    # -- structure -------------------------------------------------------------------------------

    def _list_structure(self, row: Definition, tree: TypeTree) -> Iterator[Finding]:
        """A row for every part down to the depth that was asked for, outer before inner."""
        todo: list[tuple[int, str, TypeTree]] = [(0, "", tree)]
        while todo:
            depth, role, each = todo.pop()
            facts: Facts = {"type_kind": each.kind, "depth": depth}
            if each.name:
                facts["name"] = each.name
            if each.modifiers:
                facts["modifiers"] = each.modifiers
            if each.parts and depth + 1 < self.depth + 1:
                facts["parts"] = tuple(inner.text for _, inner in each.parts)
            if each.omitted:
                facts["omitted"] = each.omitted
            name = f" {each.name}" if each.name and each.kind in ("utility", "mapped", "infer", "typeof") else ""
            marks = f" [{', '.join(each.modifiers)}]" if each.modifiers else ""
            lead = f"{'  ' * depth}{role}: " if role else ""
            more = f" (and {each.omitted} more parts)" if each.omitted else ""
            details = TypeDetails("structure", role or row.symbol.name, "syntax", each.text, facts=facts)
            kind = "" if each.kind in ("simple", "literal") and role else f"{each.kind}{name}{marks}: "
            message = f"{lead}{kind}{each.text}{more}"
            yield Finding("structure", message, row.location, details=details)
            if depth < self.depth:
                todo += [(depth + 1, part, inner) for part, inner in reversed(each.parts)]

    # -- guards and functions handed over ----------------------------------------------------------

    def _describe_guard(self, row: Definition, guard: Guard) -> Finding:
        facts: Facts = {"guard": guard.kind, "subject": guard.subject, "narrowed_to": guard.narrowed_to}
        if guard.is_return_type:
            facts["is_return_type_guard"] = True
        place = row.location if guard.is_return_type else row.file.locate(guard.start, guard.end)
        line = row.file.line_at(guard.start).strip()
        what = f"{guard.subject} is {guard.narrowed_to}" if guard.narrowed_to else guard.subject
        source = "links" if guard.call >= 0 else "syntax"
        details = TypeDetails("guard", guard.kind, source, guard.narrowed_to, facts=facts)
        return Finding("guard", f"{guard.kind}: {what}, in `{line[:100]}`", place, details=details)

    # -- members ---------------------------------------------------------------------------------

    def list_members(self, row: Definition) -> list[Definition]:
        """Everything that stands directly in a type, in the order of the source."""
        own = [
            Definition(row.file, row.document, number)
            for number, symbol in enumerate(row.siblings)
            if symbol.parent == row.number and symbol.kind not in ("parameter", "type_parameter")
        ]
        return sorted(own, key=lambda member: member.symbol.name_start)

    def describe_member(self, member: Definition, words: Iterable[str]) -> Finding:
        symbol, shape = member.symbol, self.shapes.find(member)
        facts: Facts = {"member_kind": find_member_kind(symbol), "source": "syntax"}
        modifiers = tuple(word for word in symbol.modifiers if word in _MODIFIERS)
        if modifiers:
            facts["modifiers"] = modifiers
        written = _write_type(symbol, shape)
        if written:
            facts["type"] = written
        said = list(words)
        if shape is not None and symbol.kind == "enum_member":
            facts |= {"value": shape.value, "is_computed": shape.is_computed}
        kind = find_member_kind(symbol) if symbol.kind == "accessor" else symbol.kind
        label = f"{' '.join((*modifiers, kind))} {symbol.qualified_name}"
        if symbol.kind == "enum_member":
            value = shape.value if shape is not None else ""
            label += f" = {value}" if value else " = ?"
            label += " (computed)" if shape is not None and shape.is_computed else ""
        elif written:
            label += f"{written if symbol.kind_group == 'method' and written.startswith('(') else f': {written}'}"
        symbol_id = member.file.name_symbol(member.document, member.number)[0]
        details = NodeDetails(symbol.qualified_name, symbol.kind, member.file.role, symbol_id=symbol_id, facts=facts)
        message = "; ".join([label, *said])
        return Finding("node", message, member.location, details=details)


def find_member_kind(symbol: Symbol) -> str:
    """One of the eight kinds of members of a class or interface; of anything else its own kind."""
    name, kind = symbol.name, symbol.kind
    if kind == "accessor":
        return "setter" if "set" in symbol.modifiers else "getter"
    if name in _KINDS and kind == "method":
        return _KINDS[name]
    if name.startswith("[") and kind == "property" and ":" in name:
        return "indexSignature"
    return "property" if kind in ("field", "property") else kind


_MODIFIERS = frozenset(
    {"public", "private", "protected", "static", "abstract", "readonly", "async", "override", "declare", "accessor"}
)


def _write_type(symbol: Symbol, shape: Declared | None) -> str:
    """What a member gives or holds: of a function its parameters and what it returns."""
    if shape is None:
        return ""
    if shape.parameters is None:
        return shape.type.text if shape.type is not None else ""
    kind = find_member_kind(symbol)
    listed = ", ".join(write_parameter(each) for each in shape.parameters)
    returned = shape.returns.text if shape.returns is not None else ""
    if kind == "getter":
        return returned
    if kind == "setter":
        first = shape.parameters[0].type if shape.parameters else None
        return first.text if first is not None else ""
    return f"({listed}){f': {returned}' if returned else ''}"


def write_parameter(each: ShapeParameter) -> str:
    name = f"{'...' if each.is_rest else ''}{each.name}{'?' if each.is_optional else ''}"
    return f"{name}: {each.type.text}" if each.type is not None else name
