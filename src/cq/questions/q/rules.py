"""Patterns and relations → rules of the matcher, for one language; or why the language cannot serve them.

A pattern means what the matcher makes of it alone. Only what it cannot read is helped: the head of a definition, a
pattern that needs code around it, what stands behind a `$$$` of a list, `$$OP`. A pattern that means nothing in the
language is refused with the place where reading it ends.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
from ast_grep_py import SgNode, SgRoot

from cq.language import describe, load_table
from cq.languages.registry import get_language
from cq.query.patterns import METAVARIABLE, find_kind
from cq.query.tree import And, Expression, Not, Or, Token
from cq.query.vocabulary import LANGUAGES, RELATIONS
from cq.syntax.tree import (
    Node,
    all_children_of,
    child_field_of,
    children_of,
    end_of,
    find_path,
    has_error,
    is_named,
    kind_of,
    root_of,
    start_of,
    walk,
)

Rule = dict[str, Any]

_NO_METAVARIABLE = re.compile(r"\$+[A-Z0-9_]*[a-z]\w*")
# What begins with such a word is a part of a statement, whatever the grammar makes of it alone: TypeScript takes
# `case $X: $$$` for a label, Rust `else { $$$ }` for a struct.
_CLAUSE = re.compile(r"(?:case|default|else|elif|elsif|catch|except|finally)\b(?!\s*=)")


class Patterns(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the table `patterns` of a language says of code with metavariables in it."""

    sigil: str = "$"  # what the matcher reads instead, where a `$` cannot be part of a name
    has_dollar_names: bool = False  # `$x` is a name of the program; elsewhere a dollar is only for metavariables
    # Where a pattern must stand to be what it looks like: Go takes `fmt.Println($A)` alone for something else.
    contexts: tuple[str, ...] = ()
    clauses: tuple[str, ...] = ()  # the same for parts of statements
    # How what means something else alone begins, and where it must stand: `a: 1` is a label, `private int $X` a local.
    frames: dict[str, str] = {}
    has_any_words: bool = False  # any words are code there: that a pattern parses says nothing
    wrappers: tuple[str, ...] = ()  # nodes that only wrap another: a statement around a call, decorators, `export`
    operators: tuple[str, ...] = ()
    # What may be missing behind a pattern, and what a metavariable may stand for where no name can.
    endings: tuple[str, ...] = ("", ";", " {}", "() {}", " = 1;", " {};")
    heads: dict[str, tuple[str, ...]] = {}  # `class $X`: keyword -> the kinds of node it begins
    compounds: dict[str, Compound] = {}  # `if $X:`: keyword -> the node; what else it holds may be anything


class Compound(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: str
    field: str


def _table(language: str) -> Patterns:
    return load_table(language, "patterns", Patterns)


_HEAD = re.compile(
    r"(?P<async>async\s+)?(?P<word>class|def|function|interface|enum|type|fn|struct|union|trait|impl|mod|func)\s+"
    r"(?P<name>\$?\w+)\s*(?:\(\s*\$\$\$_?\s*\))?\s*:?"
)
_COMPOUND = re.compile(r"(?P<word>if|while)\b\s*(?P<value>.+?)\s*:", re.DOTALL)
_SIGIL = re.compile(r"\$+(?=[A-Z_])|\$\$\$")
# Alone, Go and C take `f($A)` for a conversion or a type, and TypeScript takes `a: $V` for a label.
MISREAD = frozenset({"type_conversion_expression", "macro_type_specifier", "labeled_statement"})
_NO_GRAMMAR = "there is no grammar for patterns"
_PLAIN_TEXT = frozenset({"string_scalar", "text"})  # of YAML and HTML, where any words are something
_STAND_INS = ("'a'", '"a"', "1", "T")
_STATEMENTS = re.compile(r"(?<=[{:;]\s)___\w*(?=\s*\})")  # where a name alone is no statement
_LAST_LIST = re.compile(r"\s*\$\$\$\w*\s*$")
_OPEN_LIST = re.compile(r",\s*\$\$\$\w*\s*(?=[)\]}])")
_TWO_WORDS = re.compile(r"\s*([a-z]+)\s+[\w$]")
_OPERATOR = re.compile(r"(?<!\$)\$\$[A-Z_][A-Z0-9_]*(?![A-Za-z0-9_])")


class Unservable(Exception):
    """A language in which a pattern means nothing, and why; `at` is the character of `text` where reading it ends."""

    def __init__(self, reason: str, text: str = "", at: int = -1) -> None:
        super().__init__(f"{reason} at character {at + 1}" if at >= 0 else reason)
        self.reason, self.text, self.at = reason, text, at


def make_rule(item: Expression, language: str, *, entity: bool, loose: bool = False) -> Rule:
    """The rule of a group that is structure alone. On an entity, all= any= and not= speak of what it holds. `loose`
    takes a pattern that does not parse for what the matcher makes of it."""
    match item:
        case And():
            return {"all": [make_rule(part, language, entity=entity) for part in item.items]}
        case Or():
            return {"any": [make_rule(part, language, entity=entity) for part in item.items]}
        case Not():
            return {"not": make_rule(item.item, language, entity=entity)}
        case Token(key="pattern"):
            rule = _pattern_rule(item, language, loose=loose)
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
    """Unservable for a rule that the matcher refuses; of a language that it does not know it must not hear."""
    if not LANGUAGES.get(language):
        raise Unservable(_NO_GRAMMAR)
    try:
        find_nodes(SgRoot("", LANGUAGES[language]).root(), rule)
    except Exception as error:  # noqa: BLE001  its errors have no type of their own
        raise Unservable(_explain(error)) from None


@lru_cache(maxsize=1024)
def compile_rule(text: str, language: str, context: str = "", selector: str = "", strictness: str = "") -> Rule:
    """One pattern, or `kind=NAME`. Unservable with the reason where the language cannot take it."""
    if not LANGUAGES.get(language):
        raise Unservable(_NO_GRAMMAR)
    if kind := find_kind(text):
        rule: Rule = {"kind": kind}
    elif not _table(language).has_dollar_names and (wrong := _NO_METAVARIABLE.search(text)):
        raise Unservable(f"{wrong[0]} is not a metavariable: they are upper case")
    elif _OPERATOR.search(text):
        return _operator_rule(text, language, strictness)
    elif context or selector:
        rule = _context_rule(context or text, selector, strictness, language)
    else:
        return _text_rule(text, language, strictness)
    check_rule(rule, language)
    return rule


def find_fault(text: str, language: str) -> Unservable | None:
    try:
        compile_rule(text, language)
    except Unservable as fault:
        return fault
    return None


def is_clause(text: str) -> bool:
    """Whether it is a part of a statement, such as a `case`."""
    return _CLAUSE.match(text.strip()) is not None


def find_frames(text: str, language: str) -> tuple[str, ...]:
    """Where a pattern must stand that would mean something else alone."""
    return tuple(frame for begin, frame in _table(language).frames.items() if re.match(begin, text.lstrip()))


def reads_any_words(language: str) -> bool:
    """Whether any words are code in a language, as they are commands in a shell."""
    return bool(LANGUAGES.get(language)) and _table(language).has_any_words


def find_operator(text: str, language: str) -> tuple[str, ...]:
    """The operators that `$$OP` of a pattern stands for, longest first."""
    return tuple(sorted(_table(language).operators, key=len, reverse=True)) if _OPERATOR.search(text) else ()


def _pattern_rule(token: Token, language: str, *, loose: bool = False) -> Rule:
    assert isinstance(token.value, str)
    plain = not token.modifier("context") and not token.modifier("selector") and not find_kind(token.value)
    if loose and plain and LANGUAGES.get(language) and _find_unbalanced(token.value) < 0:
        with suppress(Unservable):
            return _pattern_rule(token, language)
        rule = _plain(token.value, token.modifier("strictness"))
        check_rule(rule, language)
        return rule
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
    kinds = _table(language).wrappers
    return {"any": [{"kind": kind} for kind in kinds]} if kinds else {}


def _unwrapped(rule: Rule, language: str) -> Rule:
    """The rule for a node or for what only wraps it."""
    wrapper = _wrapper(language)
    return {"any": [rule, {**wrapper, "has": {**rule, "stopBy": "neighbor"}}]} if wrapper else rule


def _operator_rule(text: str, language: str, strictness: str) -> Rule:
    operators = _table(language).operators
    if not operators:
        raise Unservable("its operators are not known: $$ cannot stand for one")
    if len(set(_OPERATOR.findall(text))) > 1:
        raise Unservable("one $$ operator in a pattern, not more")
    rules: list[Rule] = []
    with suppress(Unservable):
        rules = [_text_rule(_OPERATOR.sub(operator, text), language, strictness) for operator in operators]
    return {"any": rules} if rules else _text_rule(text, language, strictness)  # it stands for a node


def _context_rule(context: str, selector: str, strictness: str, language: str) -> Rule:
    if (fault := Reading(context, language).fault) is not None:
        raise fault
    return _plain(context, strictness, selector)


def _plain(text: str, strictness: str, selector: str = "") -> Rule:
    inner = {"context": text, "selector": selector, "strictness": strictness}
    return {"pattern": {key: value for key, value in inner.items() if value} if selector or strictness else text}


class Reading:
    """How the matcher reads a pattern: the one node it looks for, and the first thing about it that is no code."""

    def __init__(self, text: str, language: str) -> None:
        self.text = text
        self._sigil = _table(language).sigil
        root = SgRoot(_SIGIL.sub(lambda m: self._sigil * len(m[0]), text), LANGUAGES[language]).root()
        goal = root
        while (children := goal.children()) and (len(children) == 1 or _is_missing(children[1])):
            goal = children[0]
        several = goal is root and root.children() and root.kind() != "ERROR"
        self.goal = None if several else goal
        self.fault = self._find_fault(root)

    @property
    def kind(self) -> str:
        return self.goal.kind() if self.goal is not None else ""

    def _find_fault(self, root: SgNode) -> Unservable | None:
        nodes = [self.goal] if self.goal is not None else list(root.children())
        errors = [error for node in nodes for error in self._find_errors(node)]
        if self.goal is not None and not errors and not self.goal.text().strip("()[]{}'\"` "):
            errors = [self.goal]
        if self.goal is not None and not errors:
            plain = self.goal.kind() in _PLAIN_TEXT and not METAVARIABLE.fullmatch(self.text.strip())
            return Unservable("it is plain text there, not code") if plain else None
        unbalanced = _find_unbalanced(self.text)
        if unbalanced >= 0:
            return Unservable("it has a bracket or quote without its other half", self.text, unbalanced)
        if not errors:
            return Unservable("it is several nodes", self.text, nodes[1].range().start.index if len(nodes) > 1 else 0)
        error = min(errors, key=lambda node: node.range().end.index - node.range().start.index)
        while error.kind() == "ERROR" and error.children():
            error = error.children()[-1]  # up to here it was understood
        return Unservable("it does not parse", self.text, error.range().start.index)

    def _find_errors(self, node: SgNode) -> list[SgNode]:
        """In the order of the text. An error around a metavariable alone is none: `impl A { $$$ }`."""
        found: list[SgNode] = []
        todo = [node]
        while todo:
            node = todo.pop()
            if METAVARIABLE.fullmatch(node.text().replace(self._sigil, "$")):
                continue
            if node.kind() == "ERROR":
                found.append(node)
            todo += reversed(node.children())
        return found


def _is_missing(node: SgNode) -> bool:
    place = node.range()
    return place.start.index == place.end.index


def _find_unbalanced(text: str) -> int:
    """The first bracket or quote without its other half, -1 where there is none."""
    opened: list[tuple[str, int]] = []
    quote, begun = "", 0
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote and text[at - 1] != "\\" else quote
        elif char in "'\"`" and not (char == "'" and re.match(r"'\w+(?!')\b", text[at:])):  # a lifetime of Rust
            quote, begun = char, at
        elif char in "([{":
            opened.append((")]}"["([{".index(char)], at))
        elif char in ")]}" and (not opened or opened.pop()[0] != char):
            return at
    return begun if quote else opened[0][1] if opened else -1


def _text_rule(text: str, language: str, strictness: str) -> Rule:
    """What the matcher makes of it, and what else it means where that would be nothing."""
    reading = Reading(text, language)
    if clauses := _clause_rules(text.rstrip(), language, strictness):
        return clauses[0] if len(clauses) == 1 else {"any": clauses}
    fault = reading.fault
    if fault is None and _is_misread_keyword(text, language):
        fault = Unservable(f"nothing begins with `{text.split()[0]}` there", text, len(text) - len(text.lstrip()))
    head = _head_rule(text, language)
    choices = [head] if head is not None else []
    if fault is None:
        choices += _find_tails(text, ("{}", *_table(language).contexts), _plain(text, strictness), language, strictness)
    if fault is None and head is None and describe(language).is_indented and text.rstrip().endswith(":"):
        # The grammar takes it with an empty body, which no program has.
        choices.append(_text_rule(text + " $$$", language, strictness))
    framed = find_frames(text, language)
    if head is None and (framed or fault is not None or reading.kind in MISREAD):
        table = _table(language)
        frames = table.contexts if not is_clause(text) or not table.clauses else ()
        choices += _frame_rules(text, (*framed, *frames), language, strictness)
    if head is None and reading.fault is not None and _is_completed(text, language):
        choices.append(_plain(text, strictness))
    if not choices:
        choices = _quoted_rules(text, language, strictness)
    if not choices:
        raise fault or Unservable("it does not parse", text, 0)
    for rule in choices:
        check_rule(rule, language)
    return choices[0] if len(choices) == 1 else {"any": choices}


def _clause_rules(text: str, language: str, strictness: str) -> list[Rule]:
    """A part of a statement in every statement that has such parts: Go has three kinds of `case`. Where statements have
    a node around them, `$$$` would not stand for none."""
    rules: dict[tuple[str, str], list[Rule]] = {}
    for frame in _table(language).clauses if is_clause(text) else ():
        for part in dict.fromkeys((text, _LAST_LIST.sub("", text))):
            rule = _frame_rule(part, frame, language, strictness)
            if rule is not None and (part, rule["pattern"]["selector"]) not in rules:
                tails = _find_tails(part, (frame,), rule, language, strictness)
                rules[part, rule["pattern"]["selector"]] = tails
    return [rule for several in rules.values() for rule in several]


def _quoted_rules(text: str, language: str, strictness: str) -> list[Rule]:
    """`export * from $M` as `export * from "$M"`: where only a string can stand, the metavariable is what it holds."""
    rules: list[Rule] = []
    for name in dict.fromkeys(METAVARIABLE.findall(text)):
        for quote in ('"', "'"):
            quoted = text.replace(name, f"{quote}{name}{quote}") if not name.startswith("$$") else text
            if quoted != text and Reading(quoted, language).fault is None:
                rules.append(_plain(quoted, strictness))
        if rules:
            break
    return rules


def _find_tails(text: str, frames: tuple[str, ...], rule: Rule, language: str, strictness: str) -> list[Rule]:
    """The rule, and those for what it passes over: lists that end where a `$$$` is, or go on behind it."""
    choices: list[Rule] = []
    with suppress(Unservable):  # two `$$$` in a list: the matcher takes them as well as it can
        if (rooted := _find_rooted_tail(text, frames, language)) is not None:
            tail, top, context = rooted
            choices.append(_tail_rule(tail, top, context, language, strictness))
    choices.append(rule)
    shorter = _OPEN_LIST.sub("", text)
    if shorter != text:
        # The matcher wants the comma of `f($A, $$$B)` even where $$$B is nothing.
        with suppress(Unservable):
            choices.append(_text_rule(shorter, language, strictness))
    return choices


def _find_rooted_tail(text: str, frames: tuple[str, ...], language: str) -> tuple[_Tail, Node, str] | None:
    """The tail, the node of the pattern, and the code it stands in: the first that parses."""
    for frame in frames:
        context, start = frame.format(text), _place_in(frame)
        sample, body = _sample(context), _sample(text)
        root = _parse(sample, language)
        if root is None or has_error(root):
            continue
        tail = _find_tail(root, text, sample, start)
        span = _bytes(sample, start + len(body) - len(body.lstrip()), start + len(body.rstrip()))
        return None if tail is None else (tail, find_path(root, *span)[-1], context)
    return None


def _frame_rules(text: str, frames: tuple[str, ...], language: str, strictness: str) -> list[Rule]:
    """The pattern in the first context where it is one clean node that finds itself."""
    choices: list[Rule] = []
    for frame in frames:
        if choices and not frame.startswith("interface"):  # what may be a member of a class and of an interface is both
            continue
        if (rule := _frame_rule(text, frame, language, strictness)) is not None:
            choices += _find_tails(text, (frame,), rule, language, strictness)
    return choices


def _frame_rule(text: str, frame: str, language: str, strictness: str) -> Rule | None:
    context, start = frame.format(text), _place_in(frame)
    sample, body = _sample(context), _sample(text)
    root = _parse(sample, language)
    if root is not None and has_error(root):
        sample = _STATEMENTS.sub(lambda match: match[0][:-1] + ";", sample)
        root = _parse(sample, language)
    if root is None or has_error(root):
        return None
    first, last = start + len(body) - len(body.lstrip()), start + len(body.rstrip())
    span = _bytes(sample, first, last)
    node = find_path(root, *span)[-1]
    if (start_of(node), end_of(node)) != span or _is_misread_keyword(text, language, node):
        return None
    rule = _plain(context, strictness, kind_of(node))
    with suppress(Unservable):
        check_rule(rule, language)
        return rule if _finds(rule, sample, language, first, last) else None
    return None


def _is_misread_keyword(text: str, language: str, node: Node | None = None) -> bool:
    """Java reads `throws $E` as a declaration of $E, of a type that is called throws. Without a node, of the whole."""
    begin, own = _TWO_WORDS.match(text), get_language(language)
    if begin is None or own is None or own.grammar.find_sign(begin[1]) is None:
        return False
    node = _parse(_sample(text), language) if node is None else node
    while node is not None and (children := all_children_of(node)):
        node = children[0]
    return node is not None and is_named(node) and kind_of(node).endswith("identifier")


def _place_in(frame: str) -> int:
    return frame.format("\0").index("\0")


def _finds(rule: Rule, sample: str, language: str, first: int, last: int) -> bool:
    found = [node.range() for node in find_nodes(SgRoot(sample, LANGUAGES[language]).root(), rule)]
    # Without its semicolon, or with more behind it.
    return any(place.start.index == first and place.end.index >= last - 1 for place in found)


def _is_completed(text: str, language: str) -> bool:
    """Whether a pattern that does not parse is the beginning of code that does, and finds that code: `import { $$$ }
    from $M` lacks only that its $M is a string."""
    names = list(dict.fromkeys(METAVARIABLE.findall(text)))[:8]
    samples = [METAVARIABLE.sub("a", text)]
    for name in names:
        samples += [METAVARIABLE.sub(lambda m, n=name, s=s: s if m[0] == n else "a", text) for s in _STAND_INS]
    first, rule = len(text) - len(text.lstrip()), _plain(text, "")
    try:
        check_rule(rule, language)
    except Unservable:
        return False
    if _find_unbalanced(text) >= 0:
        return False
    for sample in dict.fromkeys(samples):
        for ending in _table(language).endings:
            whole = sample.rstrip() + ending
            if Reading(whole, language).fault is None and _finds(
                rule, whole, language, first, len(sample.rstrip())
            ):  # fmt: skip
                return True
    return False


def _head_rule(text: str, language: str) -> Rule | None:
    """`class Config`, `def $F($$$)`, `impl $T`, `if $X:`: a node whatever else it is made of."""
    text = text.strip()
    match = _HEAD.fullmatch(text)
    if match is None:
        match = _COMPOUND.fullmatch(text)
        compound = _table(language).compounds.get(match["word"]) if match else None
        if match is None or compound is None:
            return None
        inner = compile_rule(match["value"], language)
        return {"kind": compound.kind, "has": {"field": compound.field, "stopBy": "neighbor", **inner}}
    kinds = _table(language).heads.get(match["word"])
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


def _parse(text: str, language: str) -> Node | None:
    own = get_language(language)
    tree = own.parse(text.encode()) if own is not None else None
    return root_of(tree) if tree is not None else None


class _Tail(NamedTuple):
    """What stands behind the `$$$` of a list."""

    text: str  # the pattern without it
    name: str
    root: Node
    place: Node  # the list
    heads: int  # how much stands before the `$$$`
    parts: tuple[Node, ...]


def _find_tail(root: Node, text: str, sample: str, start: int) -> _Tail | None:
    """`f($$$A, $B)` takes as few as it can for $$$A and does not try again: it would miss `f(1, 2)`. Between
    statements, one thing may follow and another list behind it."""
    found: list[_Tail] = []
    offsets = {
        _bytes(sample, m.start() + start, 0)[0]: m for m in METAVARIABLE.finditer(text) if m[0].startswith("$$$")
    }
    todo = [root] if offsets else []
    while todo:
        node = todo.pop()
        children = children_of(node)
        todo += children
        many = [
            at
            for at, child in enumerate(children)
            if start_of(child) in offsets
            and _is_name(child, sample)
            and not child_field_of(node, at)  # the body of a `try` is no list of bodies
        ]
        if not many:
            continue
        match = offsets[start_of(children[many[0]])]
        commas = any(kind_of(child) == "," for child in all_children_of(node))
        if len(many) > 1 and (commas or many[-1] < len(children) - 1 or any(b - a > 2 for a, b in pairwise(many))):
            raise Unservable(f"{match[0]}: one $$$ in a list, not more")
        if len(many) == 1 and many[0] < len(children) - 1:
            end = len(sample.encode()[: end_of(children[-1])].decode()) - start
            shorter = text[: match.end()] + text[end:]
            found.append(_Tail(shorter, match[0].lstrip("$"), root, node, many[0], tuple(children[many[0] + 1 :])))
    if len(found) > 1:
        raise Unservable("one list with something behind its $$$, not more")
    return found[0] if found else None


def _tail_rule(tail: _Tail, top: Node, context: str, language: str, strictness: str) -> Rule:
    """The pattern without the tail, and the tail counted from the end of the list."""
    real: Rule = {"not": {"any": [{"kind": kind} for kind in _comment_kinds(language)]}}
    rules: list[Rule] = [_text_rule(tail.text, language, strictness)]
    for at, part in enumerate(tail.parts):
        child: Rule = {
            "all": [
                {"nthChild": {"position": len(tail.parts) - at, "reverse": True, "ofRule": real}},
                {"nthChild": {"position": f"n+{tail.heads + at + 1}", "ofRule": real}},
                _part_rule(part, tail.root, context, language),
            ],
            "stopBy": "neighbor",
        }
        if tail.place == top:
            rules.append({"has": child})
        elif tail.place in children_of(top):
            rules.append({"has": {"kind": kind_of(tail.place), "has": child, "stopBy": "neighbor"}})
        else:
            raise Unservable(f"$$${tail.name} must be the last of a list inside a list")
    return {"all": rules}


def _part_rule(part: Node, root: Node, context: str, language: str) -> Rule:
    """A thing of a list as what it is there: `k=1` is an argument of a call, and alone an assignment."""
    # In the order of the text, outer nodes first: the order in which a selector looks.
    node = next(node for node in walk(root) if is_named(node) and kind_of(node) == kind_of(part))
    text = context[_chars(context, start_of(part)) : _chars(context, end_of(part))]
    if node == part and not METAVARIABLE.fullmatch(text):
        return {"pattern": {"context": context, "selector": kind_of(part)}}
    return compile_rule(text, language)


def _chars(text: str, place: int) -> int:
    return len(_sample(text).encode()[:place].decode())


@lru_cache(maxsize=256)
def find_tail(text: str, language: str) -> tuple[str, int, Rule] | None:
    """The `$$$` of a pattern that is matched with what stands behind it, how much that is, and the rule for that."""
    with suppress(Unservable):
        if (rooted := _find_rooted_tail(text, ("{}", *_table(language).contexts), language)) is not None:
            tail, top, context = rooted
            return tail.name, len(tail.parts), _tail_rule(tail, top, context, language, "")
    return None


@lru_cache(maxsize=64)
def _comment_kinds(language: str) -> tuple[str, ...]:
    own = get_language(language)
    found: list[str] = []
    for kind in own.comment_kinds if own is not None else ():
        with suppress(Unservable):
            check_rule({"kind": kind}, language)
            found.append(kind)
    return tuple(found) or ("ERROR",)


def _bytes(text: str, first: int, last: int) -> tuple[int, int]:
    return len(text[:first].encode()), len(text[:last].encode())


def _is_name(node: Node, sample: str) -> bool:
    text = sample.encode()[start_of(node) : end_of(node)].rstrip(b"; ")
    return re.fullmatch(rb"___\w*", text) is not None


def _explain(error: Exception) -> str:
    """The innermost cause, without the stack that the matcher may add."""
    text = str(error).partition("Stack backtrace")[0]
    causes = re.findall(r"^\s*\d+: (.+)$", text, re.MULTILINE)
    return (causes[-1] if causes else text.strip().splitlines()[0]).strip().rstrip(".")[:200]
