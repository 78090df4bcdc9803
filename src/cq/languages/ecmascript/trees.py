"""Types as written: their names, and their structure."""

from __future__ import annotations

from collections.abc import Collection

from cq.model.shape import TypeText, TypeTree
from cq.syntax.excerpt import clip
from cq.syntax.tree import (
    Node,
    child_at,
    children_of,
    end_of,
    field_of,
    kind_of,
    start_of,
    walk,
)

MAX_TEXT = 400
MAX_NAMES = 200  # of one type
MAX_DEPTH = 12
MAX_PARTS = 100  # of one level
MAX_NODES = 2000  # of one type
UTILITIES = frozenset({
    "Partial", "Required", "Readonly", "Record", "Pick", "Omit", "Exclude", "Extract", "NonNullable", "Parameters",
    "ConstructorParameters", "ReturnType", "InstanceType", "ThisParameterType", "OmitThisParameter", "ThisType",
    "Uppercase", "Lowercase", "Capitalize", "Uncapitalize", "Awaited", "NoInfer", "ReadonlyArray", "ReadonlyMap",
    "ReadonlySet", "TypedPropertyDescriptor",
})  # fmt: skip


def read_type(text: bytes, node: Node) -> TypeText:
    names: list[tuple[str, int]] = []
    for inner in walk(node, lambda each: kind_of(each) not in _NAMED):
        if len(names) >= MAX_NAMES:
            break
        kind = kind_of(inner)
        if kind in ("type_identifier", "nested_type_identifier"):
            names.append((_write(text, inner), start_of(inner)))
        elif kind == "member_expression" and text.startswith(b"import", start_of(inner)):
            last = field_of(inner, "property")  # import("./m").T
            if last is not None:
                names.append((_write(text, inner), start_of(last)))
        elif kind == "type_query" and (about := child_at(inner, 0)) is not None and kind_of(about) in _VALUES:
            names.append((_write(text, about), start_of(about)))
    bare = node
    while kind_of(bare) in _AROUND and (inside := child_at(bare, 0)) is not None:
        bare = inside
    is_function = kind_of(bare) in ("function_type", "constructor_type") or (
        kind_of(bare) == "union_type" and any(kind_of(each) == "function_type" for each in _flatten(bare))
    )
    return TypeText(_write(text, node), start_of(node), end_of(node), tuple(names), is_function)


_AROUND = ("parenthesized_type", "readonly_type")
_VALUES = ("identifier", "member_expression")
_NAMED = ("type_identifier", "nested_type_identifier", "type_query")


def read_tree(text: bytes, node: Node, own: Collection[str] = ()) -> TypeTree:
    """`own` are types that the document has itself: a utility type of one of these names is none."""
    return _Trees(text, own).read(node, 0)


class _Trees:
    def __init__(self, text: bytes, own: Collection[str]) -> None:
        self._text, self._own, self._left = text, own, MAX_NODES

    def read(self, node: Node, depth: int) -> TypeTree:
        whole = node
        while kind_of(node) in _AROUND and (inner := child_at(node, 0)) is not None:
            node = inner
        self._left -= 1
        kind, name, modifiers, found = self._look(node)
        written = _write(self._text, whole)
        if depth >= MAX_DEPTH or self._left <= 0:
            return TypeTree(kind, written, name, modifiers, omitted=len(found))
        parts = tuple((role, self.read(inner, depth + 1)) for role, inner in found[:MAX_PARTS])
        return TypeTree(kind, written, name, modifiers, parts, max(0, len(found) - MAX_PARTS))

    def _look(self, node: Node) -> tuple[str, str, tuple[str, ...], list[tuple[str, Node]]]:
        """The kind of a type, its name, its modifiers and the types that it is made of."""
        match kind_of(node):
            case "conditional_type":
                roles = (("check", "left"), ("extends", "right"), ("true", "consequence"), ("false", "alternative"))
                found = [(role, inner) for role, name in roles if (inner := field_of(node, name)) is not None]
                return "conditional", "", (), found
            case "union_type" | "intersection_type" as kind:
                members = [("member", inner) for inner in _flatten(node)]
                return kind.removesuffix("_type"), "", (), members
            case "template_literal_type":
                spans = [child_at(inner, 0) for inner in children_of(node) if kind_of(inner) == "template_type"]
                return "template", "", (), [("span", inner) for inner in spans if inner is not None]
            case "generic_type":
                name, given = field_of(node, "name"), field_of(node, "type_arguments")
                written = "" if name is None else _write(self._text, name)
                inner = [("argument", each) for each in _list(given)]
                is_utility = written in UTILITIES and written not in self._own
                return "utility" if is_utility else "simple", written, (), inner
            case "lookup_type":
                pair = _list(node)
                return "indexed", "", (), [*zip(("object", "index"), pair, strict=False)]
            case "index_type_query":
                return "keyof", "", (), [("of", each) for each in _list(node)]
            case "type_query":
                about = child_at(node, 0)
                return "typeof", "" if about is None else _write(self._text, about), (), []
            case "infer_type":
                bound = child_at(node, 0)
                return "infer", "" if bound is None else _write(self._text, bound), (), []
            case "object_type" if (clause := _find_mapped(node)) is not None:
                return self._look_mapped(node, clause)
            case "function_type" | "constructor_type":
                returned = field_of(node, "return_type") or field_of(node, "type")
                return "function", "", (), [] if returned is None else [("returns", returned)]
            case "tuple_type":
                return "tuple", "", (), [("element", _unwrap_element(each)) for each in _list(node)]
            case "array_type":
                return "array", "", (), [("element", each) for each in _list(node)]
            case "object_type":
                return "object", "", (), []
            case "literal_type":
                return "literal", "", (), []
            case _:
                return "simple", "", (), []

    def _look_mapped(self, node: Node, clause: Node) -> tuple[str, str, tuple[str, ...], list[tuple[str, Node]]]:
        """`{ -readonly [K in keyof T as N]?: V }`."""
        holder = next(each for each in children_of(node) if kind_of(each) == "index_signature")
        name, constraint, renamed = (field_of(clause, each) for each in ("name", "type", "alias"))
        annotation = field_of(holder, "type")
        value = None if annotation is None else child_at(annotation, 0)
        modifiers: list[str] = []
        before = self._text[start_of(holder) : start_of(clause)].decode("utf-8", "replace")
        if "readonly" in before:
            modifiers.append("-readonly" if before.lstrip().startswith("-") else "+readonly")
        kind = "" if annotation is None else kind_of(annotation)
        if kind == "omitting_type_annotation":
            modifiers.append("-?")
        elif kind in ("opting_type_annotation", "adding_type_annotation"):
            modifiers.append("+?")
        found = [("constraint", constraint), ("name", renamed), ("value", value)]
        written = "" if name is None else _write(self._text, name)
        return "mapped", written, tuple(modifiers), [(role, each) for role, each in found if each is not None]


def find_inferred(tree: TypeTree) -> tuple[str, ...]:
    """The names that `infer` binds in a type."""
    found: dict[str, None] = {}
    todo = [tree]
    while todo:
        each = todo.pop()
        if each.kind == "infer":
            found[each.name] = None
        todo += [inner for _, inner in reversed(each.parts)]
    return tuple(found)


def _find_mapped(node: Node) -> Node | None:
    for each in children_of(node):
        if kind_of(each) == "index_signature":
            return next((inner for inner in children_of(each) if kind_of(inner) == "mapped_type_clause"), None)
    return None


def _flatten(node: Node) -> list[Node]:
    """The members of `A | B | C`, which is a tree of pairs."""
    kind, found, todo = kind_of(node), list[Node](), [node]
    while todo:
        each = todo.pop()
        inner = child_at(each, 0) if kind_of(each) == "readonly_type" else None
        if (
            inner is not None and kind_of(inner) == kind
        ):  # readonly A[] | B, which the grammar takes for readonly of both
            each = inner
        if kind_of(each) == kind:
            todo += reversed(_list(each))
        else:
            found.append(each)
    return found


def _unwrap_element(node: Node) -> Node:
    annotation = field_of(node, "type") if kind_of(node) in ("required_parameter", "optional_parameter") else None
    return node if annotation is None else child_at(annotation, 0) or node


def _list(node: Node | None) -> list[Node]:
    return [] if node is None else [each for each in children_of(node) if kind_of(each) != "comment"]


def _write(text: bytes, node: Node) -> str:
    return clip(text, start_of(node), end_of(node), MAX_TEXT)
