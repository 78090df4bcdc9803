"""What TypeScript and JavaScript say about types, guards, values of enums and functions handed over: read from one text
when a question asks."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from cq.language import read_query
from cq.languages.ecmascript.constants import evaluate, write_value
from cq.languages.ecmascript.guards import GuardReader
from cq.languages.ecmascript.handed import find_handed, find_handed_attribute
from cq.languages.ecmascript.trees import read_tree, read_type
from cq.model.shape import Declared, Guard, Handed, Predicate, ShapeParameter, Shapes, TypeParameter, TypeText
from cq.syntax.excerpt import clip
from cq.syntax.tree import (
    Node,
    Query,
    Tree,
    all_children_of,
    child_at,
    children_of,
    end_of,
    field_of,
    fields_of,
    kind_of,
    root_of,
    start_of,
    walk,
)

if TYPE_CHECKING:
    from cq.syntax.language import Language

MAX_TEXT = 400
_FUNCTIONS = frozenset({
    "function_declaration", "generator_function_declaration", "function_expression", "generator_function",
    "arrow_function", "method_definition", "class_declaration", "class", "abstract_class_declaration",
})  # fmt: skip
# What may stand between a comment and the declaration that it is about.
_HEAD = re.compile(
    rb"(?:\s*+(?:(?:export|default|const|let|var|async|static|declare|abstract|readonly|public|private|protected)\b"
    rb"|[\w$.]++\s*+=(?!=)))*+\s*+"
)
MAX_HEAD = 300  # bytes of it
MAX_TAGS = 200  # of one comment
MAX_TYPE = 2000  # bytes of a type in a comment
_WORDS = re.compile(r"[\w$]+")
_TAG = re.compile(rb"@(param|arg|argument|returns?|type|template)\b[ \t]*")
_PARAMETER = re.compile(rb"[ \t]*(\[)?[ \t]*([\w$]+)(?![\w$.])")
_JSDOC_NAME = re.compile(rb"""(?<![\w$.'"@])[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*""")
_IMPORTED = re.compile(rb"""import\(["'][^"']*["']\)\.""")


class ShapeReader:
    def __init__(self, language: Language) -> None:
        self._language = language

    @cached_property
    def query(self) -> Query:
        grammar, source = self._language.grammar, read_query("typescript", "shapes")
        if grammar.find_kind("interface_declaration") is not None:
            source += read_query("typescript", "shapes-typescript")
        if grammar.find_kind("jsx_attribute") is not None:
            source += read_query("typescript", "shapes-jsx")
        return grammar.compile(source)

    def read(self, text: bytes, ranges: tuple[tuple[int, int], ...] = ()) -> Shapes:
        """Nothing of a text that cannot be parsed."""
        tree = self._language.parse(text, ranges)
        return Shapes() if tree is None else _Reading(text, tree, self.query).read()


class _Reading:
    def __init__(self, text: bytes, tree: Tree, query: Query) -> None:
        self.text = text
        found, _ = query.find_captures(root_of(tree))
        self._found = {name: sorted(nodes, key=start_of) for name, nodes in found.items()}
        self._comments = [node for node in self._found.get("comment", ()) if text.startswith(b"/**", start_of(node))]
        self._ends = sorted(end_of(node) for node in self._comments)
        self._starts = {end_of(node): start_of(node) for node in self._comments}
        self._called = self._find_called()
        self._declared: dict[int, Declared] = {}

    def read(self) -> Shapes:
        own = frozenset(self._list_types())
        for node in self._found.get("callable", ()):
            self._read_callable(node)
        for node in self._found.get("type", ()):
            name = field_of(node, "name") or field_of(node, "body")
            if name is not None:
                self._declare(start_of(name), Declared(self._read_type_parameters(node), *self._read_heritage(node)))
        for node in self._found.get("alias", ()):
            name, value = field_of(node, "name"), field_of(node, "value")
            if name is not None and value is not None:
                tree = read_tree(self.text, value, own)
                shape = Declared(self._read_type_parameters(node), type=read_type(self.text, value), tree=tree)
                self._declare(start_of(name), shape)
        for node in self._found.get("enum", ()):
            self._read_enum(node)
        for node in self._found.get("value", ()):
            self._read_value(node)
        guards = GuardReader(self.text, self._found).read()
        guards += [
            Guard("assertion" if shape.predicate.kind == "asserts" else "user-defined", start, start + 1,
                  shape.predicate.parameter, shape.predicate.type.text if shape.predicate.type else "", True)
            for start, shape in self._declared.items() if shape.predicate is not None
        ]  # fmt: skip
        handed: list[Handed] = []
        for node in self._found.get("call", ()):
            handed += find_handed(self.text, node)
        for node in self._found.get("attribute", ()):
            handed += find_handed_attribute(self.text, node)
        guards.sort(key=lambda guard: (guard.start, guard.end, guard.kind))
        return Shapes(self._declared, tuple(guards), tuple(sorted(handed, key=lambda item: (item.start, item.index))))

    def _list_types(self) -> list[str]:
        """The names of types that the document has itself: `Partial` is then its own."""
        nodes = [node for what in ("type", "alias", "enum", "bound") for node in self._found.get(what, ())]
        names = [field_of(node, "alias") or field_of(node, "name") or child_at(node, 0) for node in nodes]
        return [self._write(name) for name in names if name is not None]

    def _declare(self, place: int, shape: Declared) -> None:
        self._declared.setdefault(place, shape)

    def _slice(self, node: Node) -> str:
        return self.text[start_of(node) : end_of(node)].decode("utf-8", "replace")

    def _write(self, node: Node) -> str:
        return clip(self.text, start_of(node), end_of(node), MAX_TEXT)

    # -- what can be called ----------------------------------------------------------------------

    def _read_callable(self, node: Node) -> None:
        name, body, params = field_of(node, "name"), field_of(node, "body"), field_of(node, "parameters")
        said = self._find_doc(node)
        listed = [] if params is None else children_of(params)
        if params is None and (only := field_of(node, "parameter")) is not None:
            listed = [only]  # x => …
        parameters = [found for child in listed if (found := self._read_parameter(child, said)) is not None]
        if body is not None and parameters:
            called = self._called.get(start_of(body), set[str]())
            parameters = [
                ShapeParameter(p.name, p.start, p.type, p.is_optional, p.is_rest, p.name in called, p.decorators,
                               p.predicate)
                for p in parameters
            ]  # fmt: skip
        written = field_of(node, "return_type") or field_of(node, "type")
        returns = said.get("returns") if written is None else self._read_annotation(written)
        predicate = None if written is None else self._read_predicate(written)
        if predicate is not None and predicate.kind == "asserts" and written is not None:
            names = predicate.type.names if predicate.type is not None else ()
            returns = TypeText(self._write(written).lstrip(": "), start_of(written), end_of(written), names)
        type_parameters = self._read_type_parameters(node) or tuple(TypeParameter(name) for name in said.templates)
        returned = ""
        if returns is not None and returns.is_function:
            returned = returns.text
        elif body is not None:
            returned = self._find_returned(body)
        shape = Declared(
            type_parameters, parameters=tuple(parameters), returns=returns, predicate=predicate, returned=returned
        )
        if body is not None:
            self._declare(start_of(body), shape)
        elif name is not None:
            self._declare(start_of(name), shape)
        elif kind_of(node) == "construct_signature":
            self._declare(start_of(node), shape)
        elif params is not None:
            self._declare(start_of(params), shape)

    def _read_parameter(self, node: Node, said: _Said) -> ShapeParameter | None:
        kind = kind_of(node)
        if kind == "comment":
            return None
        pattern = (
            field_of(node, "pattern") or (field_of(node, "left") if kind == "assignment_pattern" else None) or node
        )
        is_rest = kind_of(pattern) == "rest_pattern"
        bare = (child_at(pattern, 0) or pattern) if is_rest else pattern
        name, written = self._write(bare), field_of(node, "type")
        if name == "this":
            return None
        if written is not None and any(kind_of(each) in _PROPERTY for each in all_children_of(node)):
            self._declare(start_of(bare), Declared(type=self._read_annotation(written)))
        known = said.parameters.get(name) if written is None else None
        return ShapeParameter(
            name,
            start_of(bare),
            known[0] if known else None if written is None else self._read_annotation(written),
            kind in ("optional_parameter", "assignment_pattern")
            or field_of(node, "value") is not None
            or (known is not None and known[1]),
            is_rest,
            decorators=tuple(self._write(each).removeprefix("@") for each in fields_of(node, "decorator")),
            predicate=None if written is None else self._find_predicate(written),
        )

    def _read_annotation(self, node: Node) -> TypeText | None:
        """Of `: T`, also where that is a predicate."""
        inner = child_at(node, 0) if kind_of(node).endswith("annotation") else node
        return None if inner is None else read_type(self.text, inner)

    def _read_predicate(self, node: Node) -> Predicate | None:
        """Of what stands where a function says what it returns."""
        inner = child_at(node, 0) if kind_of(node).endswith("annotation") else node
        kind = "is"
        if inner is not None and kind_of(inner) == "asserts":
            inner, kind = child_at(inner, 0), "asserts"
        if inner is None:
            return None
        if kind_of(inner) == "type_predicate":
            name, about = field_of(inner, "name"), field_of(inner, "type")
            if name is not None:
                return Predicate(kind, self._write(name), about and read_type(self.text, about))
        return Predicate(kind, self._write(inner)) if kind == "asserts" else None

    def _find_predicate(self, node: Node) -> Predicate | None:
        """Of a parameter that is a function: `(item: T) => item is S`."""
        inner = child_at(node, 0)
        while inner is not None and kind_of(inner) in ("parenthesized_type", "union_type"):
            inner = next((child for child in children_of(inner) if kind_of(child) in _WRAPPED), None)
        returns = field_of(inner, "return_type") if inner is not None and kind_of(inner) == "function_type" else None
        return None if returns is None else self._read_predicate(returns)

    def _read_heritage(self, node: Node) -> tuple[tuple[TypeText, ...], tuple[TypeText, ...]]:
        """What a class or interface extends, and what it implements."""
        found: dict[str, list[TypeText]] = {"extends": [], "implements": []}
        for child in children_of(node):
            clauses = children_of(child) if kind_of(child) == "class_heritage" else [child]
            for clause in clauses:
                match kind_of(clause):
                    case "implements_clause":
                        found["implements"] += [read_type(self.text, each) for each in children_of(clause)]
                    case "extends_type_clause":
                        found["extends"] += [read_type(self.text, each) for each in children_of(clause)]
                    case "extends_clause" if (value := field_of(clause, "value")) is not None:
                        found["extends"].append(self._read_base(value))
                    case "identifier" | "member_expression" | "call_expression" if child is not clause:
                        found["extends"].append(self._read_base(clause))
                    case _:
                        pass
        return tuple(found["extends"]), tuple(found["implements"])

    def _read_base(self, node: Node) -> TypeText:
        written = self._write(node)
        names = ((written, start_of(node)),) if kind_of(node) in ("identifier", "member_expression") else ()
        return TypeText(written, start_of(node), end_of(node), names)

    def _read_type_parameters(self, node: Node) -> tuple[TypeParameter, ...]:
        listed = field_of(node, "type_parameters")
        found: list[TypeParameter] = []
        for child in children_of(listed) if listed is not None else ():
            name = field_of(child, "name")
            if kind_of(child) != "type_parameter" or name is None:
                continue
            bound, default = field_of(child, "constraint"), field_of(child, "value")
            words = [self._write(each) for each in all_children_of(child) if start_of(each) < start_of(name)]
            inner = [None if each is None else child_at(each, 0) for each in (bound, default)]
            texts = ["" if each is None else self._write(each) for each in inner]
            found.append(TypeParameter(self._write(name), texts[0], texts[1], tuple(words)))
        return tuple(found)

    def _find_called(self) -> dict[int, set[str]]:
        """By where a body begins: the parameters of its function that are called, in functions inside it too, but where
        a parameter of one of these hides them."""
        found: dict[int, set[str]] = {}
        functions: list[tuple[int, int, set[str]]] = []  # around the place: end, where the body begins, names
        todo = sorted((*self._found.get("callable", ()), *self._found.get("call", ())), key=start_of)
        for node in todo:
            while functions and functions[-1][0] <= start_of(node):
                functions.pop()
            body = field_of(node, "body")
            if body is not None:
                listed = field_of(node, "parameters") or field_of(node, "parameter")
                names = set() if listed is None else set(_WORDS.findall(self._slice(listed)))
                functions.append((end_of(node), start_of(body), names))
                continue
            name = self._find_callee(node)
            holder = next((each for each in reversed(functions) if name and name in each[2]), None)
            if holder is not None:
                found.setdefault(holder[1], set()).add(name)
        return found

    def _find_callee(self, node: Node) -> str:
        """The name that is called, also by `f.call(…)`; "" for what is no name."""
        callee = field_of(node, "function") or field_of(node, "constructor")
        if callee is not None and kind_of(callee) == "member_expression":
            method = field_of(callee, "property")
            is_run = method is not None and self._write(method) in ("call", "apply", "bind")
            callee = field_of(callee, "object") if is_run else None
        if callee is not None and kind_of(callee) == "non_null_expression":
            callee = child_at(callee, 0)
        return self._write(callee) if callee is not None and kind_of(callee) == "identifier" else ""

    def _find_returned(self, body: Node) -> str:
        """The function that a body returns, as its head is written; "" where it returns none that is written there."""
        if kind_of(body) in ("arrow_function", "function_expression"):
            return self._write_head(body)
        if kind_of(body) != "statement_block":
            return ""

        def enters(node: Node) -> bool:
            return kind_of(node) not in _FUNCTIONS or node == body

        inner: dict[str, Node] = {}
        for node in walk(body, enters):
            kind = kind_of(node)
            if kind in ("function_declaration", "generator_function_declaration", "variable_declarator"):
                name = field_of(node, "name")
                made = node if kind != "variable_declarator" else field_of(node, "value")
                if name is not None and made is not None and kind_of(made) in _FUNCTIONS:
                    inner[self._write(name)] = made
        for node in walk(body, enters):
            if kind_of(node) == "return_statement" and (value := child_at(node, 0)) is not None:
                while kind_of(value) in ("parenthesized_expression", "as_expression", "satisfies_expression"):
                    value = child_at(value, 0) or value
                if kind_of(value) == "identifier":
                    value = inner.get(self._write(value), value)
                if kind_of(value) in _FUNCTIONS and not kind_of(value).endswith(("class", "class_declaration")):
                    return self._write_head(value)
        return ""

    def _write_head(self, node: Node) -> str:
        """`(b: number) => number`, of a function with its body left out."""
        types, params = field_of(node, "type_parameters"), field_of(node, "parameters") or field_of(node, "parameter")
        written = field_of(node, "return_type")
        head = "" if params is None else self._write(params)
        head = head if head.startswith("(") else f"({head})"
        returns = "" if written is None else f" => {self._write(written).lstrip(': ')}"
        return f"{'' if types is None else self._write(types)}{head}{returns or ' => …'}"

    # -- values ----------------------------------------------------------------------------------

    def _read_value(self, node: Node) -> None:
        name, written = field_of(node, "name"), field_of(node, "type")
        if kind_of(node) == "index_signature":
            brackets = self.text.find(b"[", start_of(node), end_of(node))
            if brackets >= 0 and written is not None:
                self._declare(brackets, Declared(type=self._read_annotation(written)))
            return
        if name is None:
            return
        found = self._find_doc(node).get("type") if written is None else self._read_annotation(written)
        if found is not None:
            self._declare(start_of(name), Declared(type=found))

    def _read_enum(self, node: Node) -> None:
        body = field_of(node, "body")
        known: dict[str, float | str | None] = {}
        last: float | str | None = -1
        for member in children_of(body) if body is not None else ():
            if kind_of(member) == "comment":
                continue
            name, value = field_of(member, "name") or member, field_of(member, "value")
            if value is None:
                last = last + 1 if isinstance(last, (int, float)) else None
            else:
                last = evaluate(self.text, value, known)
            is_computed = value is not None and not _is_literal(value)
            known[self._write(name).strip("\"'`")] = last
            shape = Declared(value="" if last is None else write_value(last), is_computed=is_computed)
            self._declare(start_of(name), shape)
            if kind_of(name) in ("string", "computed_property_name"):
                self._declare(start_of(name) + 1, shape)

    # -- what comments say -----------------------------------------------------------------------

    def _find_doc(self, node: Node) -> _Said:
        """The types in the comment that a declaration stands under."""
        at = bisect_right(self._ends, start_of(node)) - 1
        if at < 0 or start_of(node) - self._ends[at] > MAX_HEAD:
            return _NOTHING
        if not _HEAD.fullmatch(self.text, self._ends[at], start_of(node)):
            return _NOTHING
        return _read_doc(self.text, self._starts[self._ends[at]], self._ends[at])


class _Said:
    """What one comment says of types."""

    def __init__(self) -> None:
        self.parameters: dict[str, tuple[TypeText, bool]] = {}
        self.types: dict[str, TypeText] = {}
        self.templates: list[str] = []

    def get(self, name: str) -> TypeText | None:
        return self.types.get(name)


_NOTHING = _Said()


def _read_doc(text: bytes, start: int, end: int) -> _Said:
    """`@param {User} [name]`, `@returns {User}`, `@type {User}`, `@template T`."""
    said = _Said()
    for tag in islice(_TAG.finditer(text, start, end), MAX_TAGS):
        word, at = tag[1].decode(), tag.end()
        if word == "template":
            line = text[at : text.find(b"\n", at, end) % (end + 1)].decode("utf-8", "replace")
            said.templates += re.findall(r"^[\w$]+|(?<=,)\s*[\w$]+", re.sub(r"^\{[^}]*\}\s*", "", line))
            said.templates = [name.strip() for name in said.templates]
            continue
        if text[at : at + 1] != b"{":
            continue
        close = _find_brace(text, at, min(end, at + MAX_TYPE))
        if close < 0:
            continue
        written = _read_jsdoc_type(text, at + 1, close)
        if word in ("param", "arg", "argument"):
            name = _PARAMETER.match(text, close + 1, end)
            if name is not None:
                is_optional = name[1] is not None or text[close - 1 : close] == b"="
                said.parameters.setdefault(name[2].decode("utf-8", "replace"), (written, is_optional))
        else:
            said.types.setdefault("returns" if word.startswith("return") else word, written)
    return said


def _read_jsdoc_type(text: bytes, start: int, end: int) -> TypeText:
    whole = text[start:end]
    imported = [match.span() for match in _IMPORTED.finditer(whole)]
    names = [
        (match[0].decode("utf-8", "replace"), start + match.start())
        for match in _JSDOC_NAME.finditer(whole)
        if not any(first <= match.start() < last - 1 for first, last in imported)
        and whole[match.end() : match.end() + 1] != b":"
    ]
    names += [
        (whole[first:last].decode("utf-8", "replace") + match[0].decode("utf-8", "replace"), start + last)
        for first, last in imported
        if (match := _JSDOC_NAME.match(whole[last:])) is not None
    ]
    said = clip(text, start, end, MAX_TEXT).removesuffix("=")
    is_function = "=>" in said or said.startswith(("function", "Function"))
    return TypeText(said, start, end, tuple(sorted(set(names), key=lambda item: item[1])), is_function)


def _find_brace(text: bytes, start: int, end: int) -> int:
    """Where the brace that opens at a place closes; -1 for none."""
    depth = 0
    for match in re.compile(rb"[{}]").finditer(text, start, end):
        depth += 1 if match[0] == b"{" else -1
        if not depth:
            return match.start()
    return -1


def _is_literal(node: Node) -> bool:
    if kind_of(node) == "unary_expression":
        inner = field_of(node, "argument")
        return inner is not None and kind_of(inner) == "number"
    return kind_of(node) in ("number", "string") or (kind_of(node) == "template_string" and not _has_hole(node))


def _has_hole(node: Node) -> bool:
    return any(kind_of(each) == "template_substitution" for each in children_of(node))


_PROPERTY = ("accessibility_modifier", "readonly", "override_modifier")  # constructor(private name: string)
_WRAPPED = ("function_type", "parenthesized_type", "union_type")
