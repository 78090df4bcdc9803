"""Query → Plan: names resolved, every group with one subject, every filter able to apply, literals to look up first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from cq.model.errors import QueryError
from cq.query import patterns
from cq.query.faults import Fault, did_you_mean, fail
from cq.query.parse import get_query, read_query
from cq.query.tree import (
    And,
    Combine,
    Expression,
    Named,
    Not,
    Or,
    Query,
    Stage,
    Token,
    find_tokens,
    make_and,
)
from cq.query.vocabulary import (
    ATTRIBUTES,
    ENTITY_LANGUAGES,
    FILE_TOKENS,
    LANGUAGE_NAMES,
    LINKED,
    OPTIONS,
    SCOPE_TOKENS,
    SCOPED,
    SHAPE_TOKENS,
    SHAPED,
    STRUCTURAL,
    TOKENS,
)

MAX_SELECTIONS = 64
MAX_EXPANSIONS = 64
MAX_TOKENS = 100  # every pattern is tried in every language
_PLACEHOLDER = re.compile(r"%\{([a-z_]\w*)(?:=([^{}]*))?\}")

# Texts that must be in a file for it to match: a word, all of some, any of some; None when nothing can be said.
Literals = str | tuple[str, tuple["Literals", ...]] | None


class Selection(msgspec.Struct, frozen=True):
    """One subject and what holds for it. `entities` or else `subject`: a pattern, all= or any= token."""

    entities: tuple[str, ...]
    subject: Token | None
    where: tuple[Expression, ...]
    languages: tuple[str, ...] | None  # those that lang= names; None is all
    metavariables: dict[str, str] = {}

    def __str__(self) -> str:
        what = f"entity={','.join(self.entities)}" if self.entities else str(self.subject)
        return " ".join([what, *(f"({item})" if isinstance(item, Or) else str(item) for item in self.where)])


class Union(msgspec.Struct, frozen=True):
    """`op` of two results: & | -."""

    op: str
    left: Node
    right: Node


class Refined(msgspec.Struct, frozen=True):
    """A result, of which only some files count, and what its stages leave of it."""

    source: Node
    where: tuple[Token, ...] = ()
    stages: tuple[Stage, ...] = ()


Node = Selection | Union | Refined


class Plan(msgspec.Struct, frozen=True):
    text: str  # the query in its one form
    root: Node
    fields: tuple[str, ...] = ("def",)
    expand: tuple[tuple[str, int], ...] = ()
    limit: int = 0  # 0: no limit
    explain: bool = False


def make_plan(query: str | Query, named: Mapping[str, str] | None = None) -> Plan:
    """QueryError with everything that is wrong with it."""
    text = query if isinstance(query, str) else str(query)
    parsed = read_query(text)
    planner = _Planner(text, parsed.places, parsed.faults, named or {})
    if parsed.query is None:
        raise fail(text, parsed.faults)
    return planner.plan(parsed.query)


def find_selections(node: Node) -> list[Selection]:
    """Every selection once, in the order of the text."""
    if isinstance(node, Selection):
        return [node]
    parts = [node.source] if isinstance(node, Refined) else [node.left, node.right]
    return [selection for part in parts for selection in find_selections(part)]


def find_literals(selection: Selection) -> Literals:
    """What the text of a file must hold for the selection to find anything in it."""
    items: list[Expression] = [*([selection.subject] if selection.subject else []), *selection.where]
    return _all_of(_literals(item) for item in items)


def find_attributes(node: Node) -> frozenset[str]:
    """What filters and sorts need to know of a match."""
    if isinstance(node, Selection):
        return frozenset()
    if isinstance(node, Union):
        return find_attributes(node.left) | find_attributes(node.right)
    own = [stage.attribute for stage in node.stages if stage.attribute]
    for stage in node.stages:
        if stage.condition is not None:
            own += [leaf.key for leaf in find_tokens(stage.condition) if isinstance(leaf, Token)]
    return find_attributes(node.source) | frozenset(own)


_GUARD_WORDS = {"typeof": "typeof", "instanceof": "instanceof", "array": "isArray", "exhaustive": "never"}


def _literals(item: Expression) -> Literals:
    match item:
        case Token(key="any"):
            return _any_of(_words(value) for value in item.values)
        case Token(key="pattern" | "all" | "inside" | "has" | "precedes" | "follows"):
            if item.modifier("strictness") in ("ast", "relaxed", "signature"):
                return None  # these may match other words than are written
            return _all_of(_words(value) for value in (item.modifier("context") or item.value, *item.values))
        case Token(key="raises" | "decorated_by" | "captures" | "defines", op="="):
            return _words(re.split(r"[.:]", item.text)[-1])
        case Token(key="guard") if item.text in _GUARD_WORDS:
            return _words(_GUARD_WORDS[item.text])
        case And():
            return _all_of(map(_literals, item.items))
        case Or():
            return _any_of(map(_literals, item.items))
        case _:
            return None


def _words(text: str | tuple[str, ...]) -> Literals:
    return _all_of(patterns.find_literals(text)) if isinstance(text, str) else None


def _all_of(parts: Iterable[Literals]) -> Literals:
    known = tuple(dict.fromkeys(part for part in parts if part is not None))
    return None if not known else known[0] if len(known) == 1 else ("all", known)


def _any_of(parts: Iterable[Literals]) -> Literals:
    found = tuple(dict.fromkeys(parts))
    return None if None in found or not found else found[0] if len(found) == 1 else ("any", found)


class _Planner:
    def __init__(
        self, text: str, places: dict[object, tuple[int, int]], faults: list[Fault], named: Mapping[str, str]
    ) -> None:
        self.text, self.places, self.faults, self.named = text, places, faults, named
        self.expansions = 0
        self.selections = 0

    def plan(self, query: Query) -> Plan:
        if sum(1 for _ in find_tokens(query.body)) > MAX_TOKENS:
            raise fail(self.text, [Fault(0, 1, f"the query has more than {MAX_TOKENS} tokens")])
        body, options = self.take_options(query)
        root = self.build(body, ())
        if root is not None and not isinstance(root, Refined):
            self.check_options(root, options)
        elif root is not None:
            self.check_options(root.source, options)
        if self.faults or root is None:
            raise fail(self.text, self.faults or [Fault(0, len(self.text), "there is nothing to find")])
        expand = tuple((name, int(depth or 1)) for name, depth in map(_split_expansion, options.get("expand", ())))
        return Plan(
            str(query),
            root,
            options.get("fields", ("def",)),
            expand,
            int(options.get("limit", ("0",))[0]),
            options.get("explain", ("false",))[0] == "true",
        )

    def fault(self, at: object, message: str, hint: str = "", example: str = "") -> None:
        key = at.key if isinstance(at, Token) else at
        start, end = self.places.get(at) or self.places.get(key) or (0, len(self.text))
        self.faults.append(Fault(start, end, message, hint, example))

    def take_options(self, query: Query) -> tuple[Query, dict[str, tuple[str, ...]]]:
        """expand=, fields=, limit= and explain stand at the top; anywhere else they would mean nothing."""
        items = query.body.items if isinstance(query.body, And) else (query.body,)
        own = [item for item in items if isinstance(item, Token) and item.key in OPTIONS]
        options: dict[str, tuple[str, ...]] = {}
        for token in own:
            if options.setdefault(token.key, token.values) != token.values:
                self.fault(token, f"{token.key} is given twice")
        rest = [item for item in items if not (isinstance(item, Token) and item.key in OPTIONS)]
        if not own:
            return query, options
        if not rest and self.faults:
            return query, options
        if not rest:
            self.fault(own[0], "there is nothing to find", "", TOKENS[own[0].key].example)
            return query, options
        body = rest[0] if len(rest) == 1 else And(tuple(item for item in rest if not isinstance(item, Combine)))
        return Query(body, query.stages), options

    def build(self, query: Query, inherited: tuple[str, ...]) -> Node | None:
        """`inherited` are the names of the queries around, so that none can hold itself."""
        if isinstance(query.body, Combine):
            left, right = self.build(query.body.left, inherited), self.build(query.body.right, inherited)
            node = Union(query.body.op, left, right) if left is not None and right is not None else None
        else:
            node = self.select(query.body, inherited)
        if query.stages and node is not None:
            self.check_stages(query.stages, node)
            return Refined(node, (), query.stages)
        return node

    def select(self, body: Expression, inherited: tuple[str, ...]) -> Node | None:
        items: list[Expression] = []
        nested: list[tuple[Query, tuple[str, ...]]] = []
        todo = [(item, inherited) for item in reversed(_conjuncts(body))]
        while todo:
            item, around = todo.pop()
            if isinstance(item, Named):
                query, around = self.resolve(item, around), (*around, item.name)
                if query is None:
                    continue
                if query.stages or isinstance(query.body, Combine):
                    nested.append((query, around))
                else:
                    todo += [(part, around) for part in reversed(_conjuncts(query.body))]
            elif isinstance(item, Query):
                nested.append((item, around))
            else:
                items.append(item)
        return self.refine(nested, items) if nested else self.choose_subject(items, inherited)

    def refine(self, nested: list[tuple[Query, tuple[str, ...]]], items: list[Expression]) -> Node | None:
        tokens = [item for item in items if isinstance(item, Token) and item.key in FILE_TOKENS]
        if len(nested) > 1 or len(tokens) < len(items):
            self.fault(
                None, "a set of results takes only in=, exclude=, globs= and lang= beside it", "join queries with & | -"
            )
            return None
        source = self.build(*nested[0])
        return None if source is None else Refined(source, tuple(tokens)) if tokens else source

    def choose_subject(self, items: list[Expression], inherited: tuple[str, ...]) -> Node | None:
        """The token that says what to find; an `or` of several subjects is the union of its groups."""
        entities = [item for item in items if isinstance(item, Token) and item.key == "entity"]
        subjects = [item for item in items if isinstance(item, Token) and item.key in ("pattern", "any", "all")]
        if not entities and not subjects:
            for at, item in enumerate(items):
                if isinstance(item, Or) and any(map(_names_subject, item.items)):
                    rest = [*items[:at], *items[at + 1 :]]
                    return self.union([make_and([branch, *rest]) for branch in item.items], inherited)
            self.explain_no_subject(items)
            return None
        if len({token.value for token in entities}) > 1:
            self.fault(entities[1], "entity is given twice", "several by comma: entity=function,method")
            return None
        subject = None if entities else subjects[0]
        where = [item for item in items if item not in entities and item is not subject]
        self.selections += 1
        if self.selections > MAX_SELECTIONS:
            if self.selections == MAX_SELECTIONS + 1:
                self.fault(None, f"the query comes to more than {MAX_SELECTIONS} groups")
            return None
        resolved = tuple(item for item in (self.inline(item, inherited) for item in where) if item is not None)
        selection = Selection(
            tuple(dict.fromkeys(value for token in entities for value in token.values)), subject, resolved, None
        )
        return self.check(selection)

    def union(self, branches: list[Expression], inherited: tuple[str, ...]) -> Node | None:
        nodes = [self.select(branch, inherited) for branch in branches]
        found = [node for node in nodes if node is not None]
        if len(found) < len(nodes):
            return None
        whole = found[0]
        for node in found[1:]:
            whole = Union("|", whole, node)
        return whole

    def inline(self, item: Expression, inherited: tuple[str, ...]) -> Expression | None:
        """Named queries below `or` and `not` are conditions there: without a subject of their own."""
        match item:
            case Named():
                query = self.resolve(item, inherited)
                if query is None:
                    return None
                if query.stages or isinstance(query.body, Combine):
                    self.fault(item, f"@{item.name} is a set of results, not a condition", "join it with & | -")
                    return None
                return self.inline(query.body, (*inherited, item.name))
            case Query():
                self.fault(None, "a set of results is not a condition", "join it with & | -")
                return None
            case Not():
                inner = self.inline(item.item, inherited)
                return None if inner is None else Not(inner)
            case And() | Or():
                parts = [part for part in (self.inline(part, inherited) for part in item.items) if part is not None]
                return type(item)(tuple(parts)) if parts else None
            case Token():
                return item

    def resolve(self, item: Named, inherited: tuple[str, ...]) -> Query | None:
        if item.name not in self.named:
            hint = did_you_mean(item.name, self.named) or "[queries] of cq.toml names them"
            self.fault(item, f"there is no query @{item.name}", hint)
            return None
        if item.name in inherited:
            self.fault(item, f"@{item.name} holds itself: {' > '.join((*inherited, item.name))}")
            return None
        self.expansions += 1
        if self.expansions > MAX_EXPANSIONS:
            if self.expansions == MAX_EXPANSIONS + 1:
                self.fault(item, f"the query comes to more than {MAX_EXPANSIONS} named queries")
            return None
        text = self.fill(item)
        if text is None:
            return None
        try:
            query = get_query(text)
        except QueryError as error:
            self.fault(item, f"in @{item.name}: {error.message}", error.hint)
            return None
        if any(isinstance(leaf, Token) and leaf.key in OPTIONS for leaf in find_tokens(query.body)):
            self.fault(item, f"in @{item.name}: expand=, fields=, limit= and explain belong to the query that is asked")
            return None
        self.places.setdefault(query, self.places.get(item, (0, len(self.text))))
        for leaf in find_tokens(query.body):
            self.places.setdefault(leaf, self.places.get(item, (0, len(self.text))))
        return query

    def fill(self, item: Named) -> str | None:
        """`%{name}` and `%{name=default}` replaced by the arguments."""
        template = self.named[item.name]
        names = list(dict.fromkeys(match[1] for match in _PLACEHOLDER.finditer(template)))
        values: dict[str, str] = {}
        for at, (name, value) in enumerate(item.args):
            key = name or (names[at] if at < len(names) else "")
            if key not in names or key in values:
                takes = f"it takes {', '.join(names)}" if names else "it takes none"
                self.fault(item, f"@{item.name}: no place for the argument {name or value!r}", takes)
                return None
            values[key] = value
        for match in _PLACEHOLDER.finditer(template):
            if match[1] not in values and match[2] is None:
                self.fault(item, f"@{item.name} needs the argument {match[1]!r}", f"@{item.name}({match[1]}=…)")
                return None
        return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[2] or ""), template)

    # -- checks ----------------------------------------------------------------------------------

    def explain_no_subject(self, items: list[Expression]) -> None:
        if self.faults:  # what was not understood may be what seems to be missing
            return
        tokens = [item for item in items if isinstance(item, Token)]
        at: object = tokens[0] if tokens else next((leaf for item in items for leaf in find_tokens(item)), None)
        if any(_names_subject(item.item) for item in items if isinstance(item, Not)):
            message = "'not' leaves out of something: it needs a subject beside it"
        else:
            message = "this says nothing about what to find: expected entity= or pattern="
        example = TOKENS[tokens[0].key].example if tokens and tokens[0].key in TOKENS else ""
        self.fault(at, message, "", example)

    def check(self, selection: Selection) -> Selection | None:
        before = len(self.faults)
        entities, where = selection.entities, selection.where
        leaves = [leaf for item in where for leaf in find_tokens(item)]
        tokens = [leaf for leaf in leaves if isinstance(leaf, Token)]
        for token in tokens:
            self.check_applies(token, entities)
        if selection.subject is not None:
            self.check_subject(selection.subject)
        for token in [*tokens, *([selection.subject] if selection.subject else [])]:
            if token.key == "pattern":
                self.check_context(token)
        languages = self.check_languages(entities, where, tokens)
        self.check_contradictions([item for item in where if isinstance(item, Token)])
        found = self.check_metavariables(selection, tokens)
        if len(self.faults) > before:
            return None
        return Selection(entities, selection.subject, where, languages, found)

    def check_applies(self, token: Token, entities: tuple[str, ...]) -> None:
        if token.key in OPTIONS:
            self.fault(token, f"{token.key} belongs to the whole query, not into a group")
        elif token.key == "entity":
            self.fault(token, "entity is given twice", "several by comma: entity=function,method")
        elif token.key.startswith("$"):
            return
        elif entities:
            wrong = [entity for entity in entities if entity not in TOKENS[token.key].entities]
            if wrong:
                rule = TOKENS[token.key]
                self.fault(
                    token,
                    f"{token.key} cannot filter entity={wrong[0]}",
                    f"it filters {', '.join(rule.entities)}",
                    rule.example,
                )
            if (
                token.key in STRUCTURAL
                and "module" in entities
                and token.key in ("inside", "precedes", "follows", "nthChild", "pattern")
            ):
                self.fault(token, f"{token.key} cannot filter entity=module: nothing stands around a module")
        elif not TOKENS[token.key].patterns:
            hint = "a capture is filtered by $X=~regex" if token.key == "name" else "it filters entities"
            self.fault(token, f"{token.key} cannot filter the matches of a pattern", hint, TOKENS[token.key].example)

    def check_subject(self, subject: Token) -> None:
        if any(word == text for text in subject.values for word in ("$$$", "$$$_")):
            self.fault(subject, f"{subject.text} matches everything")

    def check_context(self, token: Token) -> None:
        context, selector = token.modifier("context"), token.modifier("selector")
        if context and not selector:
            self.fault(
                token,
                "pattern.context needs pattern.selector",
                "",
                "pattern.context='{ \"$K\": $V }' pattern.selector=pair lang=json",
            )
        elif context and token.text and token.text not in context:
            self.fault(token, "the pattern does not stand in its pattern.context")
        if patterns.find_kind(token.text) and (context or selector or token.modifier("strictness")):
            self.fault(token, "kind= takes no context, selector or strictness")

    def check_languages(
        self, entities: tuple[str, ...], where: tuple[Expression, ...], tokens: list[Token]
    ) -> tuple[str, ...] | None:
        """Those that lang= leaves at the top of the group; a filter that none of them can serve is a fault."""
        languages: tuple[str, ...] | None = None
        for item in where:
            if isinstance(item, Token) and item.key == "lang" and "auto" not in item.values:
                named = tuple(dict.fromkeys(name for value in item.values for name in LANGUAGE_NAMES[value]))
                languages = named if languages is None else tuple(name for name in languages if name in named)
                if not languages:
                    self.fault(item, "no language is left: lang is given twice")
                    return None
        if languages is None:
            return None
        for entity in entities:
            serving = ENTITY_LANGUAGES.get(entity)
            if serving and not any(name in serving or name not in LINKED for name in languages):
                self.fault("entity", f"{languages[0]} has no {entity}", f"it is known in {', '.join(serving)}")
        for token in tokens:
            if token.key in SCOPE_TOKENS and not any(name in SCOPED for name in languages):
                self.fault(token, f"{token.key} is not known for {languages[0]}", f"it is for {', '.join(SCOPED)}")
            if token.key in SHAPE_TOKENS and not any(name in SHAPED for name in languages):
                self.fault(token, f"{token.key} is not known for {languages[0]}", f"it is for {', '.join(SHAPED)}")
        return languages

    def check_contradictions(self, tokens: list[Token]) -> None:
        values: dict[str, Token] = {}
        for token in tokens:
            if token.op == "=" and token.key in (
                "name",
                "scope",
                "has_cells",
                "takes_callback",
                "type_kind",
                "ambient",
            ):
                first = values.setdefault(token.key, token)
                if first.value != token.value and not _qualifies(first.text, token.text):
                    self.fault(token, f"{token.key} cannot be {first.text!r} and {token.text!r} at once")
            elif token.key in ("decorator_count_min", "decorator_count_max", "nthChild"):
                if token.key in values and values[token.key] != token:
                    self.fault(token, f"{token.key} is given twice")
                values[token.key] = token
            elif token.key == "in":
                first = values.setdefault("in", token)
                folders = [value.text.strip("/") + "/" for value in (first, token)]
                if not (folders[0].startswith(folders[1]) or folders[1].startswith(folders[0])):
                    self.fault(token, "no file is below both directories", "in=a or in=b")
        least, most = values.get("decorator_count_min"), values.get("decorator_count_max")
        if least and most and int(least.text) > int(most.text):
            self.fault(most, f"no number is at least {least.text} and at most {most.text}")
        scope = values.get("scope")
        if scope and scope.value == "toplevel":
            for token in tokens:
                if token.key == "captures":
                    self.fault(token, "a top-level function captures nothing", "scope=closure")

    def check_metavariables(self, selection: Selection, tokens: list[Token]) -> dict[str, str]:
        found: dict[str, str] = {}
        for token in _find_capturing(selection):
            for text in (*token.values, token.modifier("context")):
                for name, kind in patterns.find_metavariables(text).items():
                    if found.setdefault(name, kind) != kind:
                        self.fault(token, f"${name} and $$${name} cannot both be used")
        for token in tokens:
            if token.key.startswith("$"):
                name, dollars = token.key.lstrip("$"), token.key.count("$")
                kind = "multi" if dollars == 3 else "operator" if dollars == 2 else "single"
                if name.startswith("_") or not name:
                    self.fault(token, f"{token.key} captures nothing", "a name that does not begin with _ does")
                elif name not in found and self.faults:
                    continue
                elif name not in found:
                    known = [f"${word}" for word in found]
                    self.fault(
                        token,
                        f"no pattern beside it captures {token.key}",
                        did_you_mean(f"${name}", known),
                        "pattern='getattr($X, $Y)' $Y=~'^_'",
                    )
                elif found[name] != kind:
                    written = {"multi": "$$$", "operator": "$$", "single": "$"}[found[name]] + name
                    self.fault(token, f"the pattern has {written}, not {token.key}")
                elif kind == "operator" and not (selection.subject and token.key in selection.subject.text):
                    self.fault(token, f"{token.key} is captured only in the subject's pattern")
        return found

    def check_options(self, node: Node, options: Mapping[str, tuple[str, ...]]) -> None:
        kinds = {entity for selection in find_selections(node) for entity in selection.entities or ("pattern",)}
        if "expand" in options and kinds & {"callsite", "import", "decorator"}:
            what = sorted(kinds & {"callsite", "import", "decorator"})[0]
            self.fault(
                "expand",
                f"expand cannot go on from entity={what}",
                "it expands definitions, modules and the matches of a pattern",
                TOKENS["expand"].example,
            )
        if "decorated_functions" in options.get("fields", ()) and kinds != {"decorator"}:
            self.fault(
                "fields",
                "decorated_functions is a field of entity=decorator",
                "",
                "entity=decorator name=property fields=decorated_functions",
            )
        graph = [field for field in options.get("fields", ()) if field in ("callers", "callees", "decorators")]
        if graph and kinds & {"callsite", "import", "decorator", "module"}:
            self.fault("fields", f"{graph[0]} is a field of definitions", "", TOKENS["fields"].example)
        for name, _ in map(_split_expansion, options.get("expand", ())):
            if name in ("callers", "callees") and "module" in kinds:
                self.fault("expand", f"a module has no {name}", "", TOKENS["expand"].example)
            if name in ("scope", "bytecode_surface") and not kinds & {"function", "method", "pattern"}:
                self.fault("expand", f"{name} is of functions and methods", "", f"entity=function expand={name}")

    def check_stages(self, stages: tuple[Stage, ...], node: Node) -> None:
        kinds = {entity for selection in find_selections(node) for entity in selection.entities or ("pattern",)}
        for stage in stages:
            names = [stage.attribute] if stage.attribute else []
            if stage.condition is not None:
                names += [leaf.key for leaf in find_tokens(stage.condition) if isinstance(leaf, Token)]
            for name in names:
                if name not in ATTRIBUTES:  # only a query that was built can say so
                    self.fault(("stage", name), f"there is no attribute {name!r}", did_you_mean(name, ATTRIBUTES))
                    continue
                having = ATTRIBUTES[name][1]
                wrong = sorted(kind for kind in kinds if having is not None and kind not in having)
                if wrong and having:
                    what = "a pattern" if wrong[0] == "pattern" else wrong[0]
                    self.fault(
                        ("stage", name), f"a match of {what} has no {name!r}", f"{name} is of {', '.join(having)}"
                    )


def _find_capturing(selection: Selection) -> list[Token]:
    """The tokens whose metavariables a match shows: not those below `not`, nor in a group with other conditions."""
    items: list[Expression] = [selection.subject] if selection.subject else []
    items += [
        item
        for item in selection.where
        if all(leaf.key in STRUCTURAL for leaf in find_tokens(item) if isinstance(leaf, Token))
    ]
    found: list[Token] = []
    while items:
        item = items.pop(0)
        if isinstance(item, And | Or):
            items = [*item.items, *items]
        elif isinstance(item, Token) and item.key != "not":
            found.append(item)
    return found


def _conjuncts(body: Expression) -> tuple[Expression, ...]:
    return body.items if isinstance(body, And) else (body,)


def _names_subject(item: Expression) -> bool:
    return any(isinstance(leaf, Named) or leaf.key in ("entity", "pattern", "any", "all") for leaf in find_tokens(item))


def _qualifies(one: str, other: str) -> bool:
    return f".{one}".endswith(f".{other}") or f".{other}".endswith(f".{one}")


def _split_expansion(text: str) -> tuple[str, str]:
    name, _, rest = text.partition("(")
    return name, re.sub(r"\D", "", rest)
