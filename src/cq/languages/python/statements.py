"""What Python's statements do: what they import, bind and store, what they run without a call, where they branch."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from cq.languages.python.definitions import VALUE_TEXT, DefinitionReader
from cq.model.code import (
    Augmented,
    Caught,
    Element,
    Entered,
    Imported,
    Integer,
    Iterated,
    Literals,
    Operated,
    Seen,
    Slice,
    Value,
)
from cq.syntax.branches import add_try
from cq.syntax.code import MAX_ELEMENTS
from cq.syntax.language import IN_CLASS, ROLE_NUMBER, Draft
from cq.syntax.tree import (
    Captures,
    Node,
    all_children_of,
    child_at,
    children_of,
    end_of,
    field_of,
    fields_of,
    is_named,
    kind_id_of,
    kind_of,
    start_of,
)

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

_ASSIGNMENT = ROLE_NUMBER["assignment"]
_IMPORT = ROLE_NUMBER["import"]
_EQUALS = ord("=")


class StatementReader(DefinitionReader):
    # -- imports ---------------------------------------------------------------------------------

    def on_import(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        start, end = start_of(node), end_of(node)
        collector.spans.append((start, end, _IMPORT))
        named = [self._split_alias(collector, child) for child in fields_of(node, "name")]
        if not kind:
            for module, local, name in named:
                if module:
                    # `import a.b` binds `a`; `import a.b as c` binds the module a.b.
                    bound = local or module.split(".")[0]
                    bindings = [(bound, "*", start_of(name), end_of(name), False)]
                    collector.add_import("import", module, start, end, bindings)
                    collector.code.binds.append((end, start, bound, Imported(0, module if local else bound, "*"), -1))
            return
        source = field_of(node, "module_name")
        module = "__future__" if kind == "future" else ""
        if source is not None:
            module = collector.fold(start_of(source), end_of(source)).replace(" ", "")
        level = len(module) - len(module.lstrip("."))
        module = module.lstrip(".")
        bindings = [(local or name, name, start_of(at), end_of(at), False) for name, local, at in named]
        is_star = not named and any(kind_of(child) == "wildcard_import" for child in children_of(node))
        for local, name in [("*", "*")] if is_star else [binding[:2] for binding in bindings]:
            collector.code.binds.append((end, start, local, Imported(level, module, name), -1))
        collector.add_import("star" if is_star else "from", module, start, end, bindings, level=level)

    def _split_alias(self, collector: Collector, node: Node) -> tuple[str, str, Node]:
        """(imported, local or "", node of the name that is bound)."""
        if kind_of(node) == "aliased_import":
            name, alias = field_of(node, "name"), field_of(node, "alias")
            if name is not None and alias is not None:
                return collector.write(name), collector.write(alias), alias
        return collector.write(node), "", node

    def on_scoped(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """`global`, `nonlocal`."""
        remarks = [(start_of(child), collector.write(child), kind) for child in children_of(node)]
        collector.remarks += remarks
        collector.code.foreign += remarks

    # -- what happens to values ------------------------------------------------------------------

    def on_flow(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        handler = _FLOWS.get(kind)
        if handler is not None:
            handler(self, collector, node)
            return
        value, code, start = child_at(node, 0), collector.code, start_of(node)
        if value is not None and kind_of(value) == "comment":
            value = None
        collector.add_flow(self, kind, node, None, value)
        if kind == "return" and value is not None:
            code.returns.append((start, self.value(collector, value)))
        elif kind == "raise" and value is not None:
            code.raises.append((start, self.value(collector, value)))
        elif kind == "yield":
            found = self.value(collector, value)
            if collector.text.startswith(b"yield from", start):
                self._add_iteration(collector, value, found)
                found = Iterated(found)
            code.yields.append((start, found))

    def _add_iteration(self, collector: Collector, node: Node | None, value: Value) -> None:
        if node is not None and kind_of(node) in _RECEIVERS:
            collector.code.runs.append((start_of(node), "iter", value))

    def each_run(self, collector: Collector, kind: str, nodes: list[Node]) -> None:
        """What runs a method of an object without a call; not of literals, and of what is no name or call."""
        targets, receivers, runs = collector.targets, self.receiver_ids, collector.code.runs
        for node in nodes:
            if kind in ("item", "in"):
                self._add_key(collector, kind, node)
            receiver = node if kind == "truth" else child_at(node, -1 if kind == "in" else 0)
            if receiver is not None and kind == "with" and kind_of(receiver) == "as_pattern":
                receiver = child_at(receiver, 0)
            if receiver is None or kind_id_of(receiver) not in receivers:
                continue
            operation = kind
            if kind == "item":
                start = start_of(node)
                is_deleted = collector.text.startswith(b"del ", max(0, start - 4))
                operation = "[]=" if (start, end_of(node)) in targets else "del" if is_deleted else "[]"
            elif kind in ("operator", "compare", "unary"):
                operator = next((child for child in all_children_of(node) if not is_named(child)), None)
                operation = "" if operator is None else kind_of(operator)
                operation = f"unary{operation}" if kind == "unary" else operation
            if operation in _RUNS and (value := self.value(collector, receiver)) is not None:
                runs.append((start_of(node), operation, value))

    def _add_key(self, collector: Collector, kind: str, node: Node) -> None:
        """`a[key]` and `key in a` may ask for the hash of the key."""
        parts, receivers = children_of(node), self.receiver_ids
        holder, key = (parts[0], parts[1]) if kind == "item" and len(parts) == 2 else (parts[-1], parts[0])
        if len(parts) == 2 and kind_id_of(key) in receivers and kind_id_of(holder) in receivers:
            value = self.value(collector, key)
            if value is not None:
                place = Element(self.value(collector, holder), (value,))
                collector.code.runs.append((start_of(node), f"key {kind}", place))

    @cached_property
    def receiver_ids(self) -> frozenset[int | None]:
        return frozenset(map(self.grammar.find_kind, _RECEIVERS))

    def each_assignment(self, collector: Collector, kind: str, nodes: list[Node]) -> None:
        text, ids = collector.text, self.ids
        identifier, assignment = ids["identifier"], ids["assignment"]
        for node in nodes:
            parts = all_children_of(node)
            annotation: Node | None = None
            if len(parts) == 3 and text[start_of(parts[1])] == _EQUALS:
                target, value = parts[0], parts[2]
            else:  # with an annotation, or with comments or errors inside
                target, value, annotation = (field_of(node, name) for name in ("left", "right", "type"))
            if target is None:
                continue
            start, end = start_of(node), end_of(node)
            if kind_id_of(target) != identifier:
                collector.targets.add((start_of(target), end_of(target)))
            if value is not None:
                source = self._find_source(collector, value) if kind_id_of(value) == assignment else value
                collector.add_flow(self, "assign", node, target, source)
                self.bind(collector, target, node, self.value(collector, source), end, source=value)
            if annotation is not None:
                name, kind = collector.excerpt(target), collector.excerpt(annotation)
                collector.flows.append((start, end, "annotate", name, kind, "type", start_of(annotation)))
                collector.code.types[start] = self.value(collector, annotation)
                if value is None:
                    self.bind(collector, target, node, None, end)

    def _find_source(self, collector: Collector, value: Node) -> Node:
        """What is assigned in the end: `a = b = c`. The links of a chain are asked from the outside in."""
        known, chain, source = collector.code.sources, list[int](), value
        while kind_of(source) == "assignment":
            inner = known.get(start_of(source)) or field_of(source, "right")
            if inner is None:
                break
            chain.append(start_of(source))
            source = inner
        known.update(dict.fromkeys(chain, source))
        return source

    def _augment(self, collector: Collector, node: Node) -> None:
        target, operator, right = (field_of(node, name) for name in ("left", "operator", "right"))
        if target is not None and kind_of(target) == "identifier":
            collector.marks[start_of(target)] = _ASSIGNMENT
            if collector.write(target) == "__all__":
                collector.public.append((start_of(node), end_of(node)))
        if target is not None and operator is not None and right is not None:
            base, value = self.value(collector, target), self.value(collector, right)
            if kind_of(operator) == "+=" and not isinstance(value, (str, int, Literals)) and value is not None:
                base = Augmented(base, value)  # jobs += [f]
            collector.code.runs.append((start_of(node), kind_of(operator), base))

    def _walrus(self, collector: Collector, node: Node) -> None:
        target, value = field_of(node, "name"), field_of(node, "value")
        if target is not None and value is not None:
            collector.add_flow(self, "assign", node, target, value)
            self.bind(collector, target, node, self.value(collector, value), end_of(node), source=value)

    # -- branches --------------------------------------------------------------------------------

    def each_branch(self, collector: Collector, kind: str, nodes: list[Node]) -> None:
        code = collector.code
        for node in nodes:
            match kind:
                case "if":
                    self._read_if(collector, node)
                case "while":
                    code.add_branch("loop", node, self.condition(collector, field_of(node, "condition")))
                case "assert":
                    code.add_branch("assert", node, self.condition(collector, child_at(node, 0)))
                case "try":
                    add_try(code, node, lambda clause: self._read_caught(collector, clause))
                case "with":
                    self._read_with(collector, node)
                case _:
                    value, body = self.value(collector, field_of(node, "subject")), field_of(node, "body")
                    for clause in () if body is None else children_of(body):
                        if kind_of(clause) == "case_clause":
                            code.add_branch("case", clause, value)

    def _read_if(self, collector: Collector, node: Node) -> None:
        """`elif` is asked when nothing above it held, `else` runs where nothing did."""
        asked: Value = None
        group = start_of(node) if self.is_detailed else -1
        for clause in (node, *fields_of(node, "alternative")):
            if kind_of(clause) == "else_clause":
                collector.code.add_branch("if", field_of(clause, "body"), Operated("not", asked, None), group)
                continue
            value = self.condition(collector, field_of(clause, "condition"))
            collector.code.add_branch("if", field_of(clause, "consequence"), value, group)
            asked = value if clause is node else Operated("or", asked, value)

    def _read_caught(self, collector: Collector, clause: Node) -> Value:
        caught = field_of(clause, "value")
        if caught is not None and kind_of(caught) == "as_pattern":
            caught = child_at(caught, 0)
        return self.value(collector, caught)

    def _read_with(self, collector: Collector, node: Node) -> None:
        """The body once for everything that is entered."""
        body = field_of(node, "body")
        for clause in children_of(node):
            for item in children_of(clause) if kind_of(clause) == "with_clause" else ():
                value = field_of(item, "value") if kind_of(item) == "with_item" else None
                if value is not None and kind_of(value) == "as_pattern":
                    value = child_at(value, 0)
                if value is not None:
                    collector.code.add_branch("with", body, self.value(collector, value))

    def _loop(self, collector: Collector, node: Node) -> None:
        """`for x in xs`, in a comprehension too."""
        target, value = field_of(node, "left"), field_of(node, "right")
        if target is None or value is None:
            return
        iterated = self.value(collector, value)
        self._add_iteration(collector, value, iterated)
        if kind_of(node) == "for_statement":
            collector.code.add_branch("loop", node)
            self.bind(collector, target, node, Iterated(iterated), end_of(target), written=target)
            return
        whole, before = collector.ancestors.holder(node) or node, len(collector.symbols)
        first, element = start_of(whole), Iterated(iterated)
        if first in collector.code.looped:
            element = Seen(start_of(node), element)  # `for row in rows for cell in row`
        collector.code.looped.add(first)
        self.bind(collector, target, whole, element, first, end_of(whole), written=node)
        for draft in collector.symbols[before:]:
            draft.modifiers = ("comprehension",)

    def _as_pattern(self, collector: Collector, node: Node) -> None:
        """`with x() as y`, `except E as e`, `case P as q`."""
        alias, value = field_of(node, "alias"), child_at(node, 0)
        if alias is None or value is None:
            return
        target = child_at(alias, 0) or alias
        collector.add_flow(self, "assign", node, target, value)
        before = collector.text[max(0, start_of(node) - 8) : start_of(node)].rstrip()
        is_caught = before.endswith((b"except", b"except*"))
        bound = None if kind_of(value) == "case_pattern" else self.value(collector, value)
        bound = Caught(bound) if is_caught else Entered(bound)
        self.bind(collector, target, node, bound, end_of(node), written=target)

    def _catch(self, collector: Collector, node: Node) -> None:
        start, end, value = start_of(node), end_of(node), field_of(node, "value") or child_at(node, 0)
        if value is None or kind_of(value) == "block":
            collector.flows.append((start, end, "catch", "", "", "", -1))
            return
        if kind_of(value) == "as_pattern":
            value = child_at(value, 0) or value
        for kind in children_of(value) if kind_of(value) == "tuple" else [value]:
            written = collector.excerpt(kind), self.value_kind(kind)
            collector.flows.append((start, end, "catch", "", *written, start_of(kind)))

    def _case(self, collector: Collector, node: Node) -> None:
        """`case Point(x=a)` binds a, `case [first, *rest]` both; a dotted name is a value. Inner patterns match too."""
        todo = list(children_of(node))
        while todo:
            current = todo.pop()
            kind, children = kind_of(current), children_of(current)
            bound: Node | None = None
            if kind == "dotted_name" and len(children) == 1:
                bound = children[0] if collector.write(current) != "_" else None
            elif kind == "splat_pattern" and children:
                bound = children[-1]
            elif kind == "as_pattern" and len(children) > 1 and kind_of(children[-1]) == "identifier":
                bound = children[-1]
                todo += children[:-1]
            elif kind in ("class_pattern", "keyword_pattern"):
                todo += children[1:]
            elif kind in ("list_pattern", "tuple_pattern", "dict_pattern", "union_pattern"):
                todo += children
            if bound is not None:
                self.bind(collector, bound, bound, None, end_of(current))

    # -- targets ---------------------------------------------------------------------------------

    def bind(
        self,
        collector: Collector,
        target: Node,
        statement: Node,
        value: Value,
        start: int,
        inner: int = -1,
        *,
        written: Node | None = None,
        source: Node | None = None,
    ) -> None:
        """What every name, attribute and element of a target gets, from a place on; `a, *b = x` by position up to the
        star. Names become symbols, shown as `written`, or as the statement; `finish` keeps the first of each scope.
        A lambda as the source is a function of the target's name."""
        code, first, shown = collector.code, start_of(statement), statement if written is None else written
        todo: list[tuple[Node, Value]] = [(target, value)]
        while todo:
            node, value = todo.pop()
            kind = kind_of(node)
            if kind == "identifier":
                self._add_variable(collector, node, shown, source if node is target else None)
                code.binds.append((start, first, collector.write(node), value, inner))
            elif kind == "attribute":
                base, name = field_of(node, "object"), field_of(node, "attribute")
                if base is not None and name is not None:
                    self._add_field(collector, node, name, shown)
                    code.stores.append((first, self.value(collector, base), collector.write(name), value, None, start))
            elif kind == "subscript":
                base, key = field_of(node, "value"), field_of(node, "subscript")
                if base is not None and key is not None:
                    held = self.value(collector, base)
                    code.stores.append((first, held, None, value, self.value(collector, key), start))
            elif kind == "as_pattern_target":
                todo += [(child, value) for child in children_of(node)[:1]]
            elif kind in _PATTERNS:
                starred = False
                children = children_of(node)[:MAX_ELEMENTS]
                for number, child in enumerate(children):
                    behind = number - len(children)  # counted from the end: -1 is the last
                    if kind_of(child) == "list_splat_pattern":
                        starred = True
                        rest = Slice(value, (number, behind + 1 if behind < -1 else None))
                        todo += [(inner_child, rest) for inner_child in children_of(child)]
                    else:
                        todo.append((child, Element(value, (Integer(behind if starred else number),))))

    def _add_variable(self, collector: Collector, name: Node, shown: Node, source: Node | None) -> None:
        start, first, last = start_of(name), start_of(shown), end_of(shown)
        draft = Draft("variable", collector.write(name), first, last, start, end_of(name), head=first,
                      signature=collector.excerpt(shown, VALUE_TEXT))  # fmt: skip
        body = field_of(source, "body") if source is not None and kind_of(source) == "lambda" else None
        if body is not None:
            draft.kind = "function"
            draft.body_start, draft.body_end, draft.scope_start = start_of(body), end_of(body), start_of(body)
        elif draft.name.isupper():
            draft.kind = "constant"
        if draft.name == "__all__":
            collector.public.append((first, last))
        collector.marks[start] = _ASSIGNMENT
        collector.symbols.append(draft)

    def _add_field(self, collector: Collector, node: Node, name: Node, shown: Node) -> None:
        """`self.x = …` in a method defines a field of the class; other attributes are uses."""
        at, start = start_of(name), start_of(shown)
        collector.marks[at] = _ASSIGNMENT
        if collector.text[start_of(node) : at] in (b"self.", b"cls."):
            collector.symbols.append(
                Draft("field", collector.write(name), start, end_of(shown), at, end_of(name), head=start,
                      signature=collector.excerpt(shown, VALUE_TEXT), owner=IN_CLASS)
            )  # fmt: skip


_FLOWS: dict[str, Callable[[StatementReader, Collector, Node], None]] = {
    "augment": StatementReader._augment,
    "walrus": StatementReader._walrus,
    "for": StatementReader._loop,
    "as": StatementReader._as_pattern,
    "catch": StatementReader._catch,
    "case": StatementReader._case,
}
_RECEIVERS = frozenset({
    "identifier", "attribute", "call", "subscript", "parenthesized_expression", "binary_operator",
})  # fmt: skip
_RUNS = frozenset(
    ["with", "[]", "[]=", "+", "-", "*", "/", "//", "%", "|", "&", "^", "@", "**", "<<", ">>", "<", ">", "<=",
     ">=", "==", "!=", "in", "unary-", "unary+", "unary~", "format", "truth", "del"]
)  # fmt: skip
_PATTERNS = frozenset(
    {"pattern_list", "tuple_pattern", "list_pattern", "list_splat_pattern", "tuple", "list", "parenthesized_expression",
     "expression_list", "as_pattern_target"}
)  # fmt: skip
