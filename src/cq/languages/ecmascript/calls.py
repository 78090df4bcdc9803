"""Calls: their callees and arguments, decorators, and elements of JSX."""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from cq.languages.ecmascript.holders import UNWRAP_DEPTH
from cq.languages.ecmascript.values import NO_PATH, WORD, ValueReader, read_number, read_path
from cq.model.code import NULL, Attribute, CallEnd, Constant, Each, SuperObject, Text, Value
from cq.model.facts import Argument
from cq.syntax.code import MAX_ELEMENTS
from cq.syntax.collect import DEFINED
from cq.syntax.excerpt import clip
from cq.syntax.language import ARG_TEXT, CALLEE_TEXT, MAX_ARGS, NESTED, ROLE_NUMBER, KeptTexts
from cq.syntax.tree import (
    Captures,
    Node,
    child_at,
    children_of,
    end_of,
    field_of,
    is_error,
    is_missing,
    kind_id_of,
    kind_of,
    start_of,
)

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

Summary = tuple[tuple[Argument, ...], int, tuple[str, ...]]  # arguments, how many by position, keyword names
_CALL = ROLE_NUMBER["call"]
_NO_ARGUMENTS: Summary = ((), 0, ())
_PLAIN_CALLEE = 80  # bytes of a callee that is kept
_DEPTH_BYTES = 400
_SCRIPT_NAME = re.compile(r"#?[^\W\d][\w$]*|#?\$[\w$]*")
# Up to a bracket that stands outside strings: something nested.
_INNER_BRACKET = re.compile(
    rb"(?:[^\"'`(\[{]++|\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'|`(?:[^`\\]|\\.)*+`)*+[(\[{]", re.DOTALL
)
_PLAIN_ARGUMENT = re.compile(
    rb"\s*(?:(?P<string>\"[^\"\\\n]*\"|'[^'\\\n]*')|(?P<number>-?[0-9][\w.]*)"
    rb"|(?P<boolean>(?:true|false)(?![\w$.]))|(?P<null>(?:null|undefined)(?![\w$.]))"
    rb"|(?P<attribute>" + WORD + rb"(?:\.#?" + WORD + rb")+)|(?P<name>" + WORD + rb"))\s*(?:,|\Z)"
)  # fmt: skip


class Callee(NamedTuple):
    """What is called, as written and as a value."""

    written: str
    ending: str  # the last of what is written, on one line
    name: str
    receiver: str
    way: str  # the kind of call
    name_start: int  # -1: only a run can say what is called
    value: Value


class CallReader(ValueReader):
    def each_call(self, collector: Collector, kind: str, nodes: list[Node]) -> None:
        """The most frequent match: names come from slices, plain arguments too, and plain callees are read once."""
        text, marks, calls, callees = collector.text, collector.marks, collector.calls, self.known_callees
        # A query that captures the fields of a call costs the square of a chain's length.
        field, size = "constructor" if kind else "function", len(text)
        for node in nodes:
            callee = field_of(node, field)
            if callee is None:
                continue
            start = last = end_of(callee)
            first, end = start_of(callee), end_of(node)
            if last == size or text[last] != _PARENTHESIS:
                args = field_of(node, "arguments")
                start = end if args is None else start_of(args)
            known = callees.get(text[first:last]) if last - first <= _PLAIN_CALLEE else None
            if known is not None:
                written, ending, name, receiver, way, at, target = known
                at += last
                marks[at] = _CALL
            else:
                written, ending, name, receiver, way, at, target = self._read_callee(collector, callee)
            if kind:
                way = kind
                if target == name:
                    self.notes(collector).made.add(name)
            elif start > last and text.startswith(b"?.", last):
                way = "optional"
            summary, values = _NO_ARGUMENTS, ()
            if end - start > 2:
                is_short = end - start <= ARG_TEXT and text[start] == _PARENTHESIS
                plain = _read_plain(text[start:end]) if is_short else None
                if plain is not None:
                    summary, values = plain
                elif (args := field_of(node, "arguments")) is not None:
                    summary, values = self._read_arguments(collector, args)
                if text[start] == _BACKTICK:
                    way = "template"
                elif ending == "import" and self._is_type(collector, node):
                    if (required := self.find_required(collector, node)) is not None:
                        collector.add_import("dynamic", required.module, first, end, [], type_only=True)
                    continue
                elif ending in _MODULE_CALLS:
                    self._read_module_call(collector, node, ending, values)
            calls.append((start_of(node) if kind else first, end, at, way, written, name, receiver, *summary, target,
                          values, ()))  # fmt: skip

    def _is_type(self, collector: Collector, node: Node) -> bool:
        """Whether `import("m")` stands in a type: `let a: import("m").A`, `typeof import("m")`."""
        inner = node
        for around in collector.ancestors.above(node):
            kind = kind_of(around)
            if kind in ("as_expression", "satisfies_expression"):
                return start_of(inner) > start_of(around)
            if kind != "member_expression":
                return kind.endswith(_TYPES) or kind in _TYPE_PARTS
            inner = around
        return False

    @cached_property
    def known_callees(self) -> KeptTexts[bytes, Callee]:
        """Names with their attributes by their text; the name's place is counted from the end."""
        return KeptTexts()

    def _read_callee(self, collector: Collector, callee: Node) -> Callee:
        text, first, last = collector.text, start_of(callee), end_of(callee)
        ending = text[max(first, last - CALLEE_TEXT) : last].decode("utf-8", "replace")
        if "\n" in ending:
            ending = " ".join(ending.split())
        is_whole = last - first <= CALLEE_TEXT
        written = ending if is_whole else clip(text, first, last, CALLEE_TEXT)
        receiver, _, name = ending.rpartition(".")
        receiver, name = receiver.rstrip(), name.lstrip()
        way = "call"
        if receiver[-1:] == "?":
            way = "optional"
        elif receiver == "super" or ending == "super":
            way = "super"
        elif ending == "import":
            way = "import"
        is_plain = name.isidentifier() or _SCRIPT_NAME.fullmatch(name) is not None
        if is_plain:
            at = last - len(name.encode())
            collector.marks[at] = _CALL
            receiver = receiver.rstrip("?!") if is_whole else clip(text, first, at, CALLEE_TEXT)
        else:
            name, at, receiver = self._read_odd_callee(collector, callee)
        is_short = is_plain and last - first <= _PLAIN_CALLEE
        base = child_at(callee, 0) if at > 0 and receiver[-1:] == ")" else None
        if ending == "super":
            target: Value = SuperObject(is_called=True)
        elif base is not None and kind_id_of(base) == self.call_id:
            target, is_short = Attribute(CallEnd(end_of(base)), name), False
        else:
            target = self.value(collector, callee)
            is_short = is_short and target == read_path(text[first:last])
        found = Callee(written, ending, name, receiver, way, at, target)
        if is_short and collector.clean:
            self.known_callees.keep(text[first:last], found._replace(name_start=at - last))
        return found

    def _read_odd_callee(self, collector: Collector, callee: Node) -> tuple[str, int, str]:
        """Name, offset and receiver of `a["key"]()`, `a.b!()`, `(0, a.b)()`; no name where only a run can say it."""
        text = collector.text
        name: Node | None = None
        holder: Node | None = None
        for _ in range(UNWRAP_DEPTH):
            kind = kind_of(callee)
            if kind == "subscript_expression":
                index = field_of(callee, "index")
                name = child_at(index, 0) if index is not None and kind_of(index) == "string" else None
                holder = field_of(callee, "object")
            elif kind == "member_expression":
                name, holder = field_of(callee, "property"), field_of(callee, "object")
            elif kind == "identifier":
                name = callee
            elif kind in _LOOSE_CALLEES and (children := children_of(callee)):
                callee = children[-1] if kind == "sequence_expression" else children[0]
                continue
            break
        receiver = "" if holder is None else clip(text, start_of(holder), end_of(holder), CALLEE_TEXT)
        if name is None or is_missing(name):
            return "", -1, receiver
        at = start_of(name)
        collector.marks[at] = _CALL
        return collector.slice(at, end_of(name)), at, receiver

    def _read_module_call(self, collector: Collector, node: Node, callee: str, values: tuple[Value, ...]) -> None:
        """Calls that import or export: `import(…)`, `require(…)`, and what compilers write for `export {x} from`."""
        start, end = start_of(node), end_of(node)
        if callee != "Object.defineProperty":
            required = self.find_required(collector, node)
            if required is not None and start not in self.notes(collector).required:
                kind = "require" if callee == "require" else "dynamic"
                collector.add_import(kind, required.module, start, end, [])
            return
        match values:  # Object.defineProperty(exports, "x", …)
            case (("exports" | "module.exports"), Text(value=name), *_) if name != "__esModule":
                collector.exports.append((start, name, name, end, "", False))
            case _:
                pass

    def _read_arguments(self, collector: Collector, args: Node) -> tuple[Summary, tuple[Value, ...]]:
        text, kinds, children = collector.text, self.argument_ids, children_of(args)
        if text[start_of(args)] == _BACKTICK:
            # A tag gets the texts, then every value between them.
            holes = [child for child in children if kind_of(child) == "template_substitution"][:MAX_ELEMENTS]
            summary = (Argument("string", clip(text, start_of(args), end_of(args), ARG_TEXT)),), 1, ()
            return summary, (_TEXTS, *(self.first_value(collector, hole) for hole in holes))
        found: list[Argument] = []
        children = [child for child in children if kind_id_of(child) != self.comment_id]
        for child in children[:MAX_ARGS]:
            kind = kinds.get(kind_id_of(child), "other")
            first, last = start_of(child), end_of(child)
            if kind == "other" and text[first : first + 1] == b"-":
                kind = "number"
            depth = 0
            if kind in NESTED:
                at = first if kind != "call" else text.find(b"(", first, last)
                depth = 2 if _INNER_BRACKET.match(text, at + 1, min(last - 1, at + _DEPTH_BYTES)) else 1
            found.append(Argument(kind, clip(text, first, last, ARG_TEXT), "", depth, kind == "spread"))
        return (tuple(found), len(children), ()), self.values(collector, children)

    def on_decorator(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        for value in children_of(node):
            if not is_error(value):
                self.add_decorator(collector, node, value)

    # -- elements --------------------------------------------------------------------------------

    def on_jsx(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """`<Row a={1}/>` calls Row; `<div>` only says that the function around it draws something."""
        name = field_of(node, "name")
        if kind != "close":
            collector.remarks.append((start_of(node), "", "jsx"))
        if name is None:
            return
        first = start_of(name)
        if kind_of(name) == "identifier" and not collector.text[first : first + 1].isupper():
            collector.marks[first] = DEFINED
        elif kind != "close" and kind_of(name) in ("identifier", "member_expression"):
            site = (self.value(collector, name), (None,), ())
            collector.add_call(self, "jsx", start_of(node), end_of(node), name, None)
            call = collector.calls[-1]
            collector.calls[-1] = (*call[:7], *self._read_attributes(collector, node), *site)

    def _read_attributes(self, collector: Collector, node: Node) -> Summary:
        """Attributes are keyword arguments; `{...rest}` is a spread."""
        text = collector.text
        found: list[Argument] = []
        names: list[str] = []
        spread = 0
        for child in children_of(node):
            if kind_of(child) == "jsx_expression":
                spread += 1
                inner = child_at(child, 0) or child
                found.append(Argument("spread", clip(text, start_of(inner), end_of(inner), ARG_TEXT), spread=True))
            elif kind_of(child) == "jsx_attribute" and (parts := children_of(child)):
                names.append(collector.slice(start_of(parts[0]), end_of(parts[0])))
                value = parts[-1]
                if len(parts) == 1:
                    found.append(Argument("boolean", "", names[-1]))
                    continue
                if kind_of(value) == "jsx_expression":
                    value = child_at(value, 0) or value
                excerpt = clip(text, start_of(value), end_of(value), ARG_TEXT)
                found.append(Argument(self.value_kind(value), excerpt, names[-1]))
        return tuple(found[:MAX_ARGS]), spread, tuple(names)


@lru_cache(maxsize=8192)
def _read_plain(text: bytes) -> tuple[Summary, tuple[Value, ...]] | None:
    """Arguments that are names, paths and literals only, read off `(a, "b", 1)`; None for anything else."""
    found: list[Argument] = []
    values: list[Value] = []
    at, end = 1, len(text) - 1
    while at < end:
        match = _PLAIN_ARGUMENT.match(text, at, end)
        kind = None if match is None else match.lastgroup
        if match is None or kind is None or len(found) == MAX_ARGS:
            return None
        written = match[kind].decode("utf-8", "replace")
        path = read_path(match[kind]) if kind in ("name", "attribute") else NO_PATH
        found.append(Argument(kind, written))
        values.append(_read_literal(kind, written) if path is NO_PATH else path)
        at = match.end()
    return ((tuple(found), len(found), ()), tuple(values)) if found else None


def _read_literal(kind: str, text: str) -> Value:
    match kind:
        case "string":
            return Text(text[1:-1])
        case "number":
            return read_number(text) or Constant("int")
        case "boolean":
            return Constant("bool")
        case _:
            return NULL


_PARENTHESIS, _BACKTICK = ord("("), ord("`")
_TEXTS: Value = Each("list", Constant("str"))
_MODULE_CALLS = frozenset({"require", "import", "Object.defineProperty"})
_TYPES = ("_type", "_annotation")
_TYPE_PARTS = frozenset(
    {"type_alias_declaration", "type_arguments", "type_query", "index_type_query", "constraint", "default_type",
     "extends_type_clause", "implements_clause", "type_predicate", "asserts", "mapped_type_clause"}
)  # fmt: skip
_LOOSE_CALLEES = frozenset(
    {"non_null_expression", "parenthesized_expression", "sequence_expression", "instantiation_expression",
     "as_expression", "satisfies_expression"}
)  # fmt: skip
