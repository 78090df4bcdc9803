"""What statements do with values: assignments, loops, and what a function returns, yields or throws."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cq.languages.ecmascript.definitions import DefinitionReader, with_semicolon
from cq.languages.ecmascript.parameters import IN_CLASS
from cq.languages.ecmascript.values import VALUE_TEXT, read_dotted, read_key
from cq.model.code import Caught, Constant, Defined, Dictionary, Iterated, Lambda, Name, Text, Value
from cq.syntax.branches import add_if, add_try
from cq.syntax.excerpt import clip
from cq.syntax.language import CALLEE_TEXT, ROLE_NUMBER, Draft
from cq.syntax.tree import Captures, Node, child_at, children_of, end_of, field_of, kind_of, start_of

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

_ASSIGNMENT = ROLE_NUMBER["assignment"]


class StatementReader(DefinitionReader):
    def on_flow(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        match kind:
            case "for":
                self._read_loop(collector, node)
            case "assign":
                target, value = field_of(node, "left"), field_of(node, "right")
                if target is not None and value is not None and start_of(target) > start_of(node):
                    self.read_using(collector, node, target, value)
                elif target is not None and value is not None:
                    self._read_assignment(collector, node, target, value)
            case "catch":
                self._read_catch(collector, node)
            case _:
                self._read_result(collector, kind, node)

    def each_branch(self, collector: Collector, kind: str, nodes: list[Node]) -> None:
        code = collector.code
        for node in nodes:
            match kind:
                case "if":
                    add_if(code, node, self.condition(collector, field_of(node, "condition")))
                case "loop":
                    code.add_branch("loop", node, self.condition(collector, field_of(node, "condition")))
                case "try":
                    add_try(code, node, lambda _: None)
                case _:
                    value, body = self.value(collector, field_of(node, "value")), field_of(node, "body")
                    for case in children_of(body) if body is not None else ():
                        code.add_branch("case", case, value)

    def _read_result(self, collector: Collector, kind: str, node: Node) -> None:
        """`return`, `yield`, `throw`, `await`."""
        value, code = child_at(node, 0), collector.code
        start, end = start_of(node), end_of(node)
        if value is None or kind_of(value) == "comment":
            collector.flows.append((start, end, kind, "", "", "", -1))
            return
        self.add_assignment(collector, start, end, "", value, kind)
        match kind:
            case "return":
                code.returns.append((start, self.value(collector, value)))
            case "yield":
                found = self.value(collector, value)
                is_delegated = collector.text[start + 5 : start + 7].strip() == b"*"
                code.yields.append((start, Iterated(found) if is_delegated else found))
            case "raise":
                code.raises.append((start, self.value(collector, value)))
            case _:
                pass

    def _read_loop(self, collector: Collector, node: Node) -> None:
        """`for (const x of xs)` binds x; without `const` it assigns."""
        target, right, operator = field_of(node, "left"), field_of(node, "right"), field_of(node, "operator")
        if target is None:
            return
        start, end = start_of(node), end_of(node)
        source: Value = Constant("str")
        if operator is None or kind_of(operator) != "in":
            iterated = self.value(collector, right)
            source = None if right is None else Iterated(iterated)
            if right is not None and kind_of(right) in _ITERATED and iterated is not None:
                collector.code.runs.append((start_of(right), "iter", iterated))
        collector.code.add_branch("loop", node)
        if field_of(node, "kind") is None:
            self._assign(collector, start, end, target, source)
            return
        for name, value, _ in self.find_bound(collector, target, source):
            label = collector.write(name)
            collector.code.binds.append((start, start, label, value, end))
            self.add_binding(collector, "variable", name)

    def _read_catch(self, collector: Collector, node: Node) -> None:
        parameter = field_of(node, "parameter")
        start, end = start_of(node), end_of(node)
        for name, _, _ in self.find_bound(collector, parameter):
            self.add_binding(collector, "variable", name)
            label = collector.write(name)
            collector.code.binds.append((start, start, label, Caught(None), end))
        text = collector.text
        target = "" if parameter is None else clip(text, start_of(parameter), end_of(parameter), CALLEE_TEXT)
        collector.flows.append((start, end, "catch", target, "", "", -1))

    # -- assignments -----------------------------------------------------------------------------

    def _read_assignment(self, collector: Collector, node: Node, target: Node, value: Node) -> None:
        text = collector.text
        first, last = start_of(target), end_of(target)
        start, end = start_of(node), end_of(node)
        dotted = read_dotted(collector, target) if last - first <= CALLEE_TEXT else ""
        if not dotted and (key := self._find_exported_key(collector, target)) is not None:
            name, _, last = read_key(collector, key)
            dotted = f"exports.{name}"
        if not dotted:
            self.add_assignment(collector, start, end, clip(text, first, last, CALLEE_TEXT), value)
            self._assign(collector, start, end, target, self.value(collector, value))
            return
        holder, _, name = dotted.rpartition(".")
        name_start = last - len(name.encode())
        collector.marks[name_start] = _ASSIGNMENT
        draft = Draft("variable", name, start, with_semicolon(text, end), name_start, last, head=start)
        is_module = dotted == "module.exports"
        is_exported = is_module or holder in ("exports", "module.exports")
        if is_exported:
            self._export(collector, draft, value, is_module)
        shape = self.shape(value)
        if shape in ("arrow", "function", "class") or (shape == "object" and (is_module or name == "prototype")):
            self.bind_value(collector, draft, value, "function")
            self._name_assigned(collector, draft, holder, value, is_module, is_exported)
            collector.symbols.append(draft)
            found = Defined(start) if shape == "class" else self.value(collector, value)
        else:
            found = self.value(collector, value)
            self.add_assignment(collector, start, end, dotted, value)
            if holder == "this":
                draft.kind, draft.owner = "field", IN_CLASS
                draft.signature = clip(text, start, end, VALUE_TEXT)
                collector.symbols.append(draft)
        if is_exported:
            if not _is_void(collector, value):
                self.bind(collector, start, end, "export =" if is_module else f"export {name}", found)
        elif holder:
            self._store(collector, start, end, holder, name, found)
        else:
            self.notes(collector).assigned.append((start, end, name, found))

    def _find_exported_key(self, collector: Collector, target: Node) -> Node | None:
        """The key in `exports["name"]`."""
        holder, index = field_of(target, "object"), field_of(target, "index")
        if holder is None or index is None or kind_of(index) != "string":
            return None
        return index if read_dotted(collector, holder) in ("exports", "module.exports") else None

    def _name_assigned(
        self, collector: Collector, draft: Draft, holder: str, value: Node, is_module: bool, is_exported: bool
    ) -> None:
        """What `module.exports = …`, `exports.x = …`, `A.prototype.x = …`, `this.x = …` and `a.b = …` are called."""
        draft.owner = -1
        if is_module:
            own = field_of(value, "name")
            if own is not None:
                draft.name_start, draft.name_end = start_of(own), end_of(own)
                draft.name = collector.slice(draft.name_start, draft.name_end)
            draft.exported, draft.modifiers = True, ("exported", *draft.modifiers)
        elif holder == "this":
            draft.kind = "method" if draft.kind == "function" else draft.kind
            draft.owner = IN_CLASS
        elif holder and not is_exported:
            if holder.endswith(".prototype") and draft.kind == "function":
                draft.kind = "method"
            draft.name = f"{holder.removesuffix('.prototype')}.{draft.name}"

    def _export(self, collector: Collector, draft: Draft, value: Node, is_module: bool) -> None:
        """Exports of CommonJS; `exports.a = exports.b = void 0` only makes room for what follows."""
        start, end = draft.start, draft.end
        if _is_void(collector, value):
            return
        own = field_of(value, "name")
        dotted = read_dotted(collector, value)
        if not is_module:
            collector.exports.append((start, dotted or draft.name, draft.name, end, "", False))
        elif kind_of(value) != "object":
            name = dotted or "exports" if own is None else collector.write(own)
            collector.exports.append((start, name, "export=", end, "", False))
        else:
            for child in children_of(value):
                key, source = field_of(child, "key") or field_of(child, "name"), field_of(child, "value")
                if kind_of(child) == "shorthand_property_identifier":
                    key = child
                if key is not None:
                    name = exported = read_key(collector, key)[0]
                    if source is not None and kind_of(source) == "identifier":
                        name = collector.write(source)
                    collector.exports.append((start_of(key), name, exported, end_of(key), "", False))

    def _assign(self, collector: Collector, start: int, end: int, target: Node, value: Value) -> None:
        """To what is no plain path: an element, an attribute of a call, a pattern."""
        name, index = field_of(target, "property"), field_of(target, "index")
        if kind_of(target) in ("member_expression", "subscript_expression"):
            holder = self.value(collector, field_of(target, "object"))
            if holder is not None and name is not None:
                label = collector.write(name)
                collector.code.stores.append((start, holder, label, value, None, end))
            elif holder is not None and index is not None:
                collector.code.stores.append((start, holder, None, value, self.value(collector, index), end))
            return
        for name, inner, _ in self.find_bound(collector, target, value):
            at = start_of(name)
            collector.marks[at] = _ASSIGNMENT
            self.notes(collector).assigned.append((at, end, collector.slice(at, end_of(name)), inner))

    def _store(self, collector: Collector, start: int, end: int, holder: str, name: str, value: Value) -> None:
        """`holder.name = value`."""
        stores, notes = collector.code.stores, self.notes(collector)
        if name == "prototype":
            if isinstance(value, int):
                notes.prototypes[value] = Name(holder)
            elif isinstance(value, Dictionary):
                for key, inner in zip(value.keys, value.values, strict=True):
                    if isinstance(key, Text):
                        stores.append((start, Name(f"{holder}.prototype"), key.value, inner, None, -1))
                        if isinstance(inner, Lambda):
                            notes.methods.add(inner.start)
        elif name == "__proto__":
            notes.derive(Name(holder), value)
        stores.append((start, Name(holder), name, value, None, -1 if name == "prototype" else end))


def _is_void(collector: Collector, value: Node) -> bool:
    return collector.text.endswith(b"void 0", 0, end_of(value))


_ITERATED = frozenset({"identifier", "member_expression", "call_expression", "new_expression"})
