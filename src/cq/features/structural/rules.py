"""Patterns and relations → rules of the matcher, for one language; or why the language cannot serve them.

What the matcher would pass over in silence is settled here: a pattern must parse in the language (alone, inside a
context it needs, or as the head of a definition) and find itself; `$$OP` becomes a choice of operators; what stands
behind a `$$$` is looked for from the end of its list.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from ast_grep_py import SgNode, SgRoot

from cq.query.patterns import METAVARIABLE, find_kind
from cq.query.tree import And, Expression, Not, Or, Token
from cq.query.vocabulary import ECMASCRIPT, LANGUAGES, RELATIONS
from cq.syntax import get_language

Rule = dict[str, Any]

# `$x` is a name of the program in these; elsewhere a dollar is only for metavariables.
_DOLLAR = frozenset({*ECMASCRIPT, "php", "shell"})
_NO_METAVARIABLE = re.compile(r"\$+[A-Z0-9_]*[a-z]\w*")
# Where a pattern must stand to be what it looks like: Go takes `fmt.Println($A)` alone for something else.
_CONTEXTS: dict[str, tuple[str, ...]] = {
    "go": ("package p\nfunc f() {{ {} }}", "package p\n{}"),
    "c": ("void f() {{ {}; }}", "void f() {{ {} }}"),
    "cpp": ("void f() {{ {}; }}", "void f() {{ {} }}"),
    "java": ("class C {{ void f() {{ {}; }} }}", "class C {{ void f() {{ {} }} }}", "class C {{ {} }}"),
    "csharp": ("class C {{ void f() {{ {}; }} }}", "class C {{ void f() {{ {} }} }}", "class C {{ {} }}"),
    "css": ("a {{ {} }}", "a {{ {}; }}"),
    "php": ("<?php {};", "<?php {}"),
    **dict.fromkeys(ECMASCRIPT, ("{}", "class C {{ {} }}", "({})")),
    "python": ("{}", "{}\ndef f(): pass"),
    "json": ("{}", "{{ {} }}"),
    "rust": ("{}", "fn f() {{ {} }}", "impl C {{ {} }}"),
}
# Nodes that only wrap another: a statement around a call, decorators or `export` around a definition.
_WRAPPERS: dict[str, tuple[str, ...]] = {
    "python": ("expression_statement", "decorated_definition"),
    **dict.fromkeys(ECMASCRIPT, ("expression_statement", "export_statement")),
    **dict.fromkeys(("rust", "go", "java", "c", "cpp", "csharp", "php"), ("expression_statement",)),
}
_FUNCTIONS = ("function_declaration", "generator_function_declaration", "function_expression")
_SCRIPT_HEADS: dict[str, tuple[str, ...]] = {"class": ("class_declaration", "class"), "function": _FUNCTIONS}
_TYPED_HEADS: dict[str, tuple[str, ...]] = {
    "class": ("class_declaration", "abstract_class_declaration", "class"),
    "function": _FUNCTIONS,
    "interface": ("interface_declaration",),
    "enum": ("enum_declaration",),
    "type": ("type_alias_declaration",),
}
_HEADS: dict[str, dict[str, tuple[str, ...]]] = {
    "python": {"class": ("class_definition",), "def": ("function_definition",)},
    **dict.fromkeys(("typescript", "tsx"), _TYPED_HEADS),
    **dict.fromkeys(("javascript", "jsx"), _SCRIPT_HEADS),
    "rust": {
        "fn": ("function_item", "function_signature_item"),
        "struct": ("struct_item",),
        "enum": ("enum_item",),
        "union": ("union_item",),
        "trait": ("trait_item",),
        "impl": ("impl_item",),
        "mod": ("mod_item",),
    },
    "go": {"func": ("function_declaration", "method_declaration")},
    "java": {
        "class": ("class_declaration",),
        "interface": ("interface_declaration",),
        "enum": ("enum_declaration",),
    },
}
_HEAD = re.compile(
    r"(?P<async>async\s+)?(?P<word>class|def|function|interface|enum|type|fn|struct|union|trait|impl|mod|func)\s+"
    r"(?P<name>\$?\w+)\s*(?:\(\s*\$\$\$_?\s*\))?\s*(?::\s*(?:\$\$\$_?)?|\{\s*\$\$\$_?\s*\})?"
)
# `if $X:` and `match $X { $$$ }`: language -> keyword -> the node and its field; what else it holds may be anything.
_PAIR = re.compile(r"""['"]?[\w$]+['"]?\s*:(?!:)""")
_COMPOUND = re.compile(r"(?P<word>if|while|match|switch)\b\s*(?P<value>.+?)\s*(?::|\{\s*\$\$\$_?\s*\})", re.DOTALL)
_COMPOUNDS: dict[str, dict[str, tuple[str, str]]] = {
    "python": {"if": ("if_statement", "condition"), "while": ("while_statement", "condition")},
    **{language: {"switch": ("switch_statement", "value")} for language in ECMASCRIPT},
    "rust": {"match": ("match_expression", "value")},
}
_ARITHMETIC = ("+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^", "<", ">", "<=", ">=", "==", "!=")
_OPERATORS: dict[str, tuple[str, ...]] = {
    "python": (*_ARITHMETIC, "//", "**", "@", "in", "not in", "is", "is not", "and", "or"),
    **dict.fromkeys(ECMASCRIPT, (*_ARITHMETIC, "**", "===", "!==", ">>>", "&&", "||", "??", "in", "instanceof")),
    **dict.fromkeys(("rust", "go", "java", "c", "cpp", "csharp", "php"), (*_ARITHMETIC, "&&", "||")),
}
_OPEN_LIST = re.compile(r",\s*\$\$\$\w*\s*(?=[)\]}])")
_OPERATOR = re.compile(r"(?<!\$)\$\$[A-Z_][A-Z0-9_]*(?![A-Za-z0-9_])")


class Unservable(Exception):
    """A language in which a pattern means nothing, and why."""


def make_rule(item: Expression, language: str, *, entity: bool) -> Rule:
    """The rule of a group that is structure alone. On an entity, all= any= and not= speak of what it holds."""
    match item:
        case And():
            return {"all": [make_rule(part, language, entity=entity) for part in item.items]}
        case Or():
            return {"any": [make_rule(part, language, entity=entity) for part in item.items]}
        case Not():
            return {"not": make_rule(item.item, language, entity=entity)}
        case Token(key="pattern"):
            rule = _pattern_rule(item, language)
            return _unwrapped(rule, language) if entity else rule
        case Token(key="all" | "not"):
            parts = [_place(compile_rule(text, language), entity=entity) for text in item.values]
            return {"all": parts} if item.key == "all" else {"not": parts[0]}
        case Token(key="any"):
            return {"any": [_place(rule, entity=entity) for rule in _compile_some(item.values, language)]}
        case Token(key="nthChild"):
            return _position_rule(item, language, entity=entity)
        case Token() if item.key in RELATIONS:
            return _relation_rule(item, language)
        case _:
            raise ValueError(f"not a structural condition: {item}")


def find_nodes(root: SgNode, rule: Rule) -> list[SgNode]:
    """Every node below that the rule matches, outer ones first."""
    config: Any = {"rule": rule}
    return root.find_all(config)


def check_rule(rule: Rule, language: str) -> None:
    """Unservable for a rule that the matcher refuses."""
    try:
        find_nodes(SgRoot("", LANGUAGES[language]).root(), rule)
    except Exception as error:  # noqa: BLE001  its errors have no type of their own
        raise Unservable(_explain(error)) from None


@lru_cache(maxsize=1024)
def compile_rule(text: str, language: str, context: str = "", selector: str = "", strictness: str = "") -> Rule:
    """One pattern, or `kind=NAME`. Unservable with the reason where the language cannot take it."""
    if not LANGUAGES.get(language):
        raise Unservable("there is no grammar for patterns")
    if kind := find_kind(text):
        rule: Rule = {"kind": kind}
    elif language not in _DOLLAR and (wrong := _NO_METAVARIABLE.search(text)):
        raise Unservable(f"{wrong[0]} is not a metavariable: they are upper case")
    elif _OPERATOR.search(text):
        return _operator_rule(text, language, strictness)
    elif context or selector:
        rule = _context_rule(context or text, selector, strictness, language)
    else:
        return _text_rule(text, language, strictness)
    check_rule(rule, language)
    return rule


def find_operator(text: str, language: str) -> tuple[str, ...]:
    """The operators that `$$OP` of a pattern stands for, longest first."""
    return tuple(sorted(_OPERATORS.get(language, ()), key=len, reverse=True)) if _OPERATOR.search(text) else ()


def _pattern_rule(token: Token, language: str) -> Rule:
    assert isinstance(token.value, str)
    return compile_rule(
        token.value, language, token.modifier("context"), token.modifier("selector"), token.modifier("strictness")
    )


def _compile_some(texts: tuple[str, ...], language: str) -> list[Rule]:
    """Alternatives that the language can take; those of other languages serve there."""
    rules: list[Rule] = []
    reasons: list[str] = []
    for text in texts:
        try:
            rules.append(compile_rule(text, language))
        except Unservable as reason:
            reasons.append(str(reason))
    if not rules:
        raise Unservable(reasons[0])
    return rules


def _place(rule: Rule, *, entity: bool) -> Rule:
    return {"has": {**rule, "stopBy": "end"}} if entity else rule


def _relation_rule(token: Token, language: str) -> Rule:
    assert isinstance(token.value, str)
    stop, field = token.modifier("stopBy") or "end", token.modifier("field")
    inner: Rule = compile_rule(token.value, language)
    if token.key in ("precedes", "follows"):
        inner = _unwrapped(inner, language)
    rule: Rule = {**inner, "stopBy": stop if stop in ("end", "neighbor") else compile_rule(stop, language)}
    if field:
        rule["field"] = field
    relation: Rule = {token.key: rule}
    if token.key in ("inside", "has"):
        return relation
    # A call that is a statement has no siblings itself: the statement around it has.
    wrapped: Rule = {"inside": {**_wrapper(language), **relation, "stopBy": "neighbor"}}
    return {"any": [relation, wrapped]} if _wrapper(language) else relation


def _position_rule(token: Token, language: str, *, entity: bool) -> Rule:
    position: Rule = {"position": int(token.text) if token.text.isdigit() else token.text}
    if token.modifier("reverse") == "true":
        position["reverse"] = True
    if of_rule := token.modifier("ofRule"):
        position["ofRule"] = compile_rule(of_rule, language)
    rule: Rule = {"nthChild": position}
    wrapper = _wrapper(language)
    if not entity or not wrapper:
        return rule
    # Decorators and `export` are part of a definition: its place is that of what holds them.
    bare: Rule = {"all": [rule, {"not": {"inside": {**wrapper, "stopBy": "neighbor"}}}]}
    return {"any": [bare, {"inside": {**wrapper, **rule, "stopBy": "neighbor"}}]}


def _wrapper(language: str) -> Rule:
    kinds = _WRAPPERS.get(language, ())
    return {"any": [{"kind": kind} for kind in kinds]} if kinds else {}


def _unwrapped(rule: Rule, language: str) -> Rule:
    """The rule for a node or for what only wraps it."""
    wrapper = _wrapper(language)
    return {"any": [rule, {**wrapper, "has": {**rule, "stopBy": "neighbor"}}]} if wrapper else rule


def _operator_rule(text: str, language: str, strictness: str) -> Rule:
    operators = _OPERATORS.get(language)
    if operators is None:
        raise Unservable("its operators are not known: $$ cannot stand for one")
    if len(set(_OPERATOR.findall(text))) > 1:
        raise Unservable("one $$ operator in a pattern, not more")
    return {"any": [_text_rule(_OPERATOR.sub(operator, text), language, strictness) for operator in operators]}


def _context_rule(context: str, selector: str, strictness: str, language: str) -> Rule:
    inner: Rule = {"context": context}
    if selector:
        inner["selector"] = selector
    if strictness:
        inner["strictness"] = strictness
    if (parsed := _parse(_sample(context), language)) is not None and parsed.has_error:
        raise Unservable(f"{context!r} does not parse")
    return {"pattern": inner}


def _text_rule(text: str, language: str, strictness: str) -> Rule:
    """The pattern alone, or in the first context where it is one clean node that finds itself."""
    head = _head_rule(text, language)
    if head is not None and not re.search(r"\$\$\$_?\s*\}?$", text.replace("($$$)", "").replace("($$$_)", "")):
        check_rule(head, language)
        return head
    if language == "python" and text.rstrip().endswith(":"):
        # The grammar takes it with an empty body, which no program has.
        return _text_rule(text + " $$$", language, strictness)
    frames = _CONTEXTS.get(language, ("{}",))
    if language in ECMASCRIPT and _PAIR.match(text):
        frames = ("({{ {} }})", *frames)  # alone, `a: 1` is a label
    reason = "it does not parse"
    for frame in frames:
        try:
            rule = _frame_rule(text, frame, language, strictness)
        except Unservable as error:
            reason = str(error)
            continue
        if rule is None:
            continue
        shorter = _OPEN_LIST.sub("", text)
        if shorter == text:
            return rule
        # The matcher wants the comma of `f($A, $$$B)` even where $$$B is nothing.
        return {"any": [rule, _text_rule(shorter, language, strictness)]}
    if head is not None:
        check_rule(head, language)
        return head
    raise Unservable(reason)


def _frame_rule(text: str, frame: str, language: str, strictness: str) -> Rule | None:
    context = frame.format(text)
    sample = _sample(context)
    start = frame.index("{}") - frame[: frame.index("{}")].count("{{")
    root = _parse(sample, language)
    word = frame == "{}" and re.fullmatch(r"\$?\w+", text.strip())  # a name alone is no program in Rust
    if root is None or (root.has_error and not word):
        return None
    body = _sample(text)
    first, last = start + len(body) - len(body.lstrip()), start + len(body.rstrip())
    inner: Rule = {"context": context}
    if frame != "{}":
        span = _bytes(sample, first, last)
        node = root.descendant_for_byte_range(*span)
        if node is None or (node.start_byte, node.end_byte) != span:
            return None
        inner["selector"] = node.type
    if strictness:
        inner["strictness"] = strictness
    tail = _find_tail(root, text, sample, start)
    rule: Rule = {"pattern": inner if len(inner) > 1 else text}
    if tail is not None:
        top = root.descendant_for_byte_range(*_bytes(sample, first, last))
        rule = _tail_rule(tail, top, context, language, strictness)
    check_rule(rule, language)
    for node in find_nodes(SgRoot(sample, LANGUAGES[language]).root(), rule):
        found = node.range()
        if found.start.index == first and found.end.index in (last, last - 1):  # without its semicolon
            return rule
    raise Unservable("it does not find itself")


def _head_rule(text: str, language: str) -> Rule | None:
    """`class Config`, `def $F($$$)`, `impl $T`, `if $X:`: a node whatever else it is made of."""
    text = text.strip()
    match = _HEAD.fullmatch(text)
    if match is None:
        match = _COMPOUND.fullmatch(text)
        kind, field = _COMPOUNDS.get(language, {}).get(match["word"], ("", "")) if match else ("", "")
        if match is None or not kind:
            return None
        value = match["value"].removeprefix("(").removesuffix(")") if kind == "switch_statement" else match["value"]
        inner = compile_rule(value, language)
        if kind == "switch_statement":
            inner = {"kind": "parenthesized_expression", "has": {**inner, "stopBy": "neighbor"}}
        return {"kind": kind, "has": {"field": field, "stopBy": "neighbor", **inner}}
    kinds = _HEADS.get(language, {}).get(match["word"])
    if kinds is None:
        return None
    field = "type" if match["word"] == "impl" else "name"
    rule: Rule = {"any": [{"kind": kind} for kind in kinds]}
    if match["name"] != "$_":
        rule["has"] = {"field": field, "stopBy": "neighbor", **_name_rule(match["name"])}
    if match["async"]:
        rule["regex"] = r"^(?:\w+\s+)*async\b"
    return rule


def _name_rule(name: str) -> Rule:
    return {"pattern": name} if name.startswith("$") else {"regex": f"^{name}$"}


def _sample(text: str) -> str:
    """The same length, with names in place of metavariables."""
    return METAVARIABLE.sub(lambda match: "_" * match[0].count("$") + (match[0].lstrip("$") or ""), text)


def _parse(text: str, language: str) -> Any:
    own = get_language(language)
    tree = own.parse(text.encode()) if own is not None else None
    return tree.root_node if tree is not None else None


class _Tail(NamedTuple):
    """What stands behind the `$$$` of a list."""

    text: str  # the pattern without it
    name: str
    place: Any  # the list
    heads: int  # how much stands before the `$$$`
    parts: tuple[Any, ...]


def _find_tail(root: Any, text: str, sample: str, start: int) -> _Tail | None:
    """`f($$$A, $B)` takes as few as it can for $$$A and does not try again: it would miss `f(1, 2)`. Between
    statements, one thing may follow and another list behind it."""
    found: list[_Tail] = []
    offsets = {_bytes(sample, m.start() + start)[0]: m for m in METAVARIABLE.finditer(text) if m[0].startswith("$$$")}
    todo = [root] if offsets else []
    while todo:
        node = todo.pop()
        children = node.named_children
        todo += children
        many = [at for at, child in enumerate(children) if child.start_byte in offsets and _is_name(child, sample)]
        if not many:
            continue
        match = offsets[children[many[0]].start_byte]
        commas = any(child.type == "," for child in node.children)
        if len(many) > 1 and (commas or many[-1] < len(children) - 1 or any(b - a > 2 for a, b in pairwise(many))):
            raise Unservable(f"{match[0]}: one $$$ in a list, not more")
        if len(many) == 1 and many[0] < len(children) - 1:
            end = len(sample.encode()[: children[-1].end_byte].decode()) - start
            shorter = text[: match.end()] + text[end:]
            found.append(_Tail(shorter, match[0].lstrip("$"), node, many[0], tuple(children[many[0] + 1 :])))
    if len(found) > 1:
        raise Unservable("one list with something behind its $$$, not more")
    return found[0] if found else None


def _tail_rule(tail: _Tail, top: Any, context: str, language: str, strictness: str) -> Rule:
    """The pattern without the tail, and the tail counted from the end of the list."""
    real: Rule = {"not": {"any": [{"kind": kind} for kind in _comment_kinds(language)]}}
    rules: list[Rule] = [_text_rule(tail.text, language, strictness)]
    for at, part in enumerate(tail.parts):
        child: Rule = {
            "all": [
                {"nthChild": {"position": len(tail.parts) - at, "reverse": True, "ofRule": real}},
                {"nthChild": {"position": f"n+{tail.heads + at + 1}", "ofRule": real}},
                _part_rule(part, context, language),
            ],
            "stopBy": "neighbor",
        }
        if tail.place == top:
            rules.append({"has": child})
        elif tail.place.parent == top:
            rules.append({"has": {"kind": tail.place.type, "has": child, "stopBy": "neighbor"}})
        else:
            raise Unservable(f"$$${tail.name} must be the last of a list inside a list")
    return {"all": rules}


def _part_rule(part: Any, context: str, language: str) -> Rule:
    """A thing of a list as what it is there: `k=1` is an argument of a call, and alone an assignment."""
    node = part
    while node.parent is not None:
        node = node.parent
    while node is not None and node.type != part.type:
        node = _next(node)
    text = context[_chars(context, part.start_byte) : _chars(context, part.end_byte)]
    if node == part and not METAVARIABLE.fullmatch(text):
        return {"pattern": {"context": context, "selector": part.type}}
    return compile_rule(text, language)


def _next(node: Any) -> Any:
    """In the order of the text, outer nodes first: the order in which a selector looks."""
    if node.named_child_count:
        return node.named_child(0)
    while node is not None and node.next_named_sibling is None:
        node = node.parent
    return node.next_named_sibling if node is not None else None


def _chars(text: str, place: int) -> int:
    return len(_sample(text).encode()[:place].decode())


@lru_cache(maxsize=256)
def count_tail(text: str, language: str) -> tuple[str, int]:
    """The `$$$` of a pattern that is matched with what stands behind it, and how much that is."""
    for frame in _CONTEXTS.get(language, ("{}",)):
        sample = _sample(frame.format(text))
        start = frame.index("{}") - frame[: frame.index("{}")].count("{{")
        root = _parse(sample, language)
        if root is not None and not root.has_error:
            tail = _find_tail(root, text, sample, start)
            return (tail.name, len(tail.parts)) if tail else ("", 0)
    return "", 0


@lru_cache(maxsize=64)
def _comment_kinds(language: str) -> tuple[str, ...]:
    own = get_language(language)
    found: list[str] = []
    for kind in own.comment_kinds if own is not None else ():
        with suppress(Unservable):
            check_rule({"kind": kind}, language)
            found.append(kind)
    return tuple(found) or ("ERROR",)


def _bytes(text: str, *places: int) -> tuple[int, ...]:
    return tuple(len(text[:place].encode()) for place in places)


def _is_name(node: Any, sample: str) -> bool:
    text = sample.encode()[node.start_byte : node.end_byte].rstrip(b"; ")
    return re.fullmatch(rb"___\w*", text) is not None


def _explain(error: Exception) -> str:
    """The innermost cause, without the stack that the matcher may add."""
    text = str(error).partition("Stack backtrace")[0]
    causes = re.findall(r"^\s*\d+: (.+)$", text, re.MULTILINE)
    return (causes[-1] if causes else text.strip().splitlines()[0]).strip().rstrip(".")[:200]
