"""Text → Query. Every fault is found, not only the first; what cannot mean anything is never passed over."""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from cq.query import patterns, regex
from cq.query.faults import Fault, did_you_mean, fail
from cq.query.tree import Combine, Expression, Named, Not, Query, Stage, Token, make_and, make_or
from cq.query.vocabulary import (
    ATTRIBUTES,
    COMPARISONS,
    EXPANSIONS,
    GRAPH_EXPANSIONS,
    LANGUAGES,
    METAVARIABLE,
    STRICTNESS,
    TOKENS,
    TokenRule,
)

MAX_TEXT = 10_000
MAX_DEPTH = 32
MAX_NUMBER = 1_000_000
MAX_LIST = 50
MAX_GRAPH_DEPTH = 10
_KEY = re.compile(r"(\$+\w*|[A-Za-z_]\w*(?:\.\w+)?)(!=~|=~|!=|=)")
_TOKEN_AHEAD = re.compile(r"(?:^|[\s(])(?:(?:\$+\w+|[A-Za-z_][\w.]*)(?:!=~|=~|!=|=)|@\w)|\|\s*(?:filter|sort|limit)\b")
_WORD = re.compile(r"[^\s()|&]+|.", re.DOTALL)
_NAMED = re.compile(r"@([A-Za-z_][\w-]*)")
_POSITION = re.compile(r"[+-]?\d*n(?:[+-]\d+)?|\d+")
_GLOB = re.compile(r"\*|\?(?=.)")  # `empty?` is a name of Ruby
_STAGES = ("filter", "sort", "limit")


class PlainWords(msgspec.Struct, frozen=True):
    """A text without any token: words to search for."""

    text: str


class Parsed(NamedTuple):
    """As much of a query as could be read, and every fault that was met on the way."""

    query: Query | None
    places: dict[object, tuple[int, int]]  # a leaf, or a key -> where it stands in the text
    faults: list[Fault]


def parse(text: str) -> Query | PlainWords:
    """QueryError with every fault where the text is no query."""
    return find_words(text) or get_query(text)


def find_words(text: str) -> PlainWords | None:
    """The text itself, where no token is in it."""
    # A lone `@` is the name of a query that was not finished.
    return PlainWords(text.strip()) if text.strip().strip("@") and not _TOKEN_AHEAD.search(text) else None


def get_query(text: str) -> Query:
    parsed = read_query(text)
    if parsed.faults or parsed.query is None:
        raise fail(text, parsed.faults)
    return parsed.query


def read_query(text: str) -> Parsed:
    if len(text) > MAX_TEXT:
        return Parsed(None, {}, [Fault(MAX_TEXT, MAX_TEXT + 1, f"the query has more than {MAX_TEXT:,} characters")])
    parser = _Parser(text)
    query = parser.parse()
    if query is None and not parser.faults:
        parser.fault(0, 1, "the query is empty")
    return Parsed(query, parser.places, parser.faults)


def parse_expression(text: str) -> Expression:
    """Tokens alone, for `where`."""
    query = get_query(text)
    if query.stages or isinstance(query.body, Combine):
        return query
    return query.body


def parse_condition(text: str) -> Expression:
    """What stands between the parentheses of filter()."""
    parser = _Parser(text)
    condition = parser.condition()
    parser.skip()
    if parser.at < len(text):
        parser.fault(parser.at, len(text), "unexpected text behind the condition")
    if parser.faults or condition is None:
        raise fail(text, parser.faults or [Fault(0, 1, "the condition is empty")])
    return condition


class _Piece(NamedTuple):
    text: str
    start: int
    end: int
    quoted: bool


class _Modifier(NamedTuple):
    key: str
    name: str
    value: str
    place: int  # how many items stood before it
    start: int
    end: int


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0
        self.faults: list[Fault] = []
        self.places: dict[object, tuple[int, int]] = {}

    def fault(self, start: int, end: int, message: str, hint: str = "", example: str = "") -> None:
        self.faults.append(Fault(start, max(end, start + 1), message, hint, example))

    def skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def parse(self) -> Query | None:
        query = self.query()
        while self.at < len(self.text):
            self.fault(self.at, self.at + 1, f"unexpected {self.text[self.at]!r}", "there is no open parenthesis")
            self.at += 1
            self.query()
        return query

    def query(self) -> Query | None:
        """A set of groups and the stages behind it, up to the end or a closing parenthesis."""
        left = self.term()
        while True:
            self.skip()
            operator = self.text[self.at : self.at + 1]
            if operator not in ("|", "&", "-") or not operator:
                break
            start = self.at
            if operator == "|" and self.stage_ahead():
                break
            self.at += 1
            right = self.term(tight=operator != "&")
            if left is None or right is None:
                self.fault(start, start + 1, f"{operator!r} needs a query on both sides", "", "@deprecated & @public")
                left = left or right
            else:
                left = Query(Combine(operator, left, right))
        stages = self.stages()
        if left is None:
            return None
        return Query(left.body, (*left.stages, *stages)) if stages else left

    def stage_ahead(self) -> bool:
        return re.compile(r"\|\s*(?:filter\s*\(|sort\s*\(|limit\b)").match(self.text, self.at) is not None

    def term(self, *, tight: bool = False) -> Query | None:
        """One operand. `&` binds tighter than `|` and `-`, so an operand of those takes the `&`s behind it."""
        expression = self.either()
        left = None
        if expression is not None:
            left = expression if isinstance(expression, Query) else Query(expression)
        while tight:
            self.skip()
            if self.text[self.at : self.at + 1] != "&":
                break
            start = self.at
            self.at += 1
            right = self.term()
            if left is None or right is None:
                self.fault(start, start + 1, "'&' needs a query on both sides")
                return left or right
            left = Query(Combine("&", left, right))
        return left

    def either(self) -> Expression | None:
        groups = [self.group()]
        while self.keyword("or"):
            start = self.at - 2
            groups.append(self.group())
            if groups[-1] is None or groups[-2] is None:
                self.fault(start, start + 2, "'or' needs something on both sides")
        found = [group for group in groups if group is not None]
        return make_or(found) if found else None

    def group(self) -> Expression | None:
        items: list[Expression] = []
        modifiers: list[_Modifier] = []
        joined = -1
        while True:
            if self.keyword("and"):
                joined = self.at - 3
                if not items:
                    self.fault(joined, joined + 3, "'and' needs something on both sides")
                continue
            if not self.item_ahead():
                break
            joined = -1
            item = self.item(modifiers, len(items))
            if item is not None:
                items.append(item)
        if joined >= 0 and items:
            self.fault(joined, joined + 3, "'and' needs something on both sides")
        self.attach(items, modifiers)
        return make_and(items) if items else None

    def item_ahead(self) -> bool:
        self.skip()
        if self.at >= len(self.text) or self.text[self.at] in ")|&":
            return False
        if self.text[self.at] == "-" and re.compile(r"-[\s(@]|-$").match(self.text, self.at):
            return False
        return not self.keyword("or", take=False)

    def keyword(self, word: str, *, take: bool = True) -> bool:
        self.skip()
        if re.compile(rf"{word}(?=[\s(@]|$)").match(self.text, self.at) is None:
            return False
        if take:
            self.at += len(word)
        return True

    def item(self, modifiers: list[_Modifier], place: int) -> Expression | None:
        start = self.at
        if self.text[start] == "(":
            return self.parenthesis()
        if self.keyword("not"):
            self.skip()
            item = self.item([], 0) if self.item_ahead() else None
            if item is None:
                if not self.faults or self.faults[-1].start < start:
                    self.fault(start, start + 3, "'not' needs something behind it", "", "entity=function not name=~^_")
                return None
            return Not(item)
        if self.text[start] == "@":
            return self.named()
        if match := _KEY.match(self.text, start):
            return self.token(match, modifiers, place)
        word = _WORD.match(self.text, start)
        assert word is not None
        self.at = max(word.end(), start + 1)
        if word[0] == "explain":
            token = Token("explain", "true")
            self.places[token] = self.places["explain"] = (start, self.at)
            return token
        hint = f"did you mean name={word[0]}?" if re.fullmatch(r"[\w.]+", word[0]) else "every token is key=value"
        if word[0] in TOKENS:
            hint = f"it needs a value: {TOKENS[word[0]].example}"
        elif word[0][:1] in "'\"":
            hint = f"did you mean pattern={word[0]}…?"
        self.fault(start, self.at, f"unexpected word {word[0][:40]!r}", hint)
        return None

    def parenthesis(self) -> Expression | None:
        start = self.at
        self.at += 1
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fault(start, start + 1, f"nested more than {MAX_DEPTH} deep")
            self.at = len(self.text)
            return None
        before = len(self.faults)
        query = self.query()
        self.depth -= 1
        if self.text[self.at : self.at + 1] == ")":
            self.at += 1
        elif len(self.faults) == before:
            self.fault(start, start + 1, "this parenthesis is never closed", "expected ')'")
        if query is None:
            if len(self.faults) == before:
                self.fault(start, self.at, "there is nothing in these parentheses")
            return None
        return query if query.stages or isinstance(query.body, Combine) else query.body

    def named(self) -> Named | None:
        start = self.at
        match = _NAMED.match(self.text, start)
        if match is None:
            self.at += 1
            self.fault(start, self.at, "'@' needs the name of a query", "names are in [queries] of cq.toml")
            return None
        self.at = match.end()
        args: list[tuple[str, str]] = []
        if self.text[self.at : self.at + 1] == "(":
            opening = self.at
            self.at += 1
            while True:
                self.skip()
                if self.at >= len(self.text):
                    self.fault(opening, opening + 1, "this parenthesis is never closed", "expected ')'")
                    break
                if self.text[self.at] == ")":
                    self.at += 1
                    break
                name = re.compile(r"([A-Za-z_]\w*)\s*=").match(self.text, self.at)
                if name:
                    self.at = name.end()
                begin = self.at
                pieces = self.pieces(split=True, stop=",")
                if not pieces:
                    self.fault(begin, begin + 1, "an argument is empty")
                    self.at = max(self.at, begin + 1)
                else:
                    args.append((name[1] if name else "", pieces[0].text))
                self.skip()
                if self.text[self.at : self.at + 1] == ",":
                    self.at += 1
        item = Named(match[1], tuple(args))
        self.places[item] = (start, self.at)
        return item

    def pieces(self, *, split: bool, stop: str = "") -> list[_Piece]:
        """Quoted and bare text up to a blank: adjacent pieces are one value; with `split`, bare commas separate."""
        found: list[_Piece] = []
        current, start, quoted, depth = "", self.at, False, 0
        text = self.text
        while self.at < len(text):
            char = text[self.at]
            if char.isspace() or (char == ")" and depth == 0) or (stop and char in stop and depth == 0):
                break
            if char in "'\"":
                end = text.find(char, self.at + 1)
                if end < 0:
                    self.fault(self.at, len(text), "this quote is never closed", f"expected {char}")
                    self.at = len(text)
                    return []
                current += text[self.at + 1 : end]
                quoted = True
                self.at = end + 1
                continue
            if char == "," and split and depth == 0:
                found.append(_Piece(current, start, self.at, quoted))
                current, start, quoted = "", self.at + 1, False
            else:
                depth += (char == "(") - (char == ")")
                current += char
            self.at += 1
        if depth > 0:
            self.fault(start, self.at, "this parenthesis is never closed", "quote the value")
            return []
        if current or quoted:
            found.append(_Piece(current, start, self.at, quoted))
        elif found and not found[-1].quoted:
            found.append(_Piece("", start, self.at, False))  # `a,` lacks something; `'a',` is a list of one
        return found

    def token(self, match: re.Match[str], modifiers: list[_Modifier], place: int) -> Token | None:
        start, (key, op) = match.start(), match.groups()
        self.at = match.end()
        base, _, modifier = key.partition(".")
        rule = METAVARIABLE if key.startswith("$") else TOKENS.get(base)
        listed = rule is not None and rule.kind in ("patterns", "choices", "texts", "expansions") and not modifier
        values_at = self.at
        before = len(self.faults)
        pieces = self.pieces(split=listed)
        end = max(self.at, values_at)
        if rule is None:
            self.fault(start, match.end(1), f"unknown token {key!r}", did_you_mean(key, _all_keys()))
            return None
        if rule is METAVARIABLE and not patterns.METAVARIABLE.fullmatch(key):
            hint = "they are upper case: $X, $$OP, $$$ARGS"
            self.fault(start, match.end(1), f"{key!r} is not a metavariable", hint, rule.example)
            return None
        if len(self.faults) > before:
            return None
        if not pieces or not any(piece.text.strip() for piece in pieces):
            self.fault(start, match.end(), f"{key} needs a value", "", rule.example)
            return None
        if modifier:
            self.modifier(base, modifier, op, pieces[0], rule, modifiers, place, (start, end))
            return None
        if op != "=" and not (rule.kind == "name" and op == "=~") and rule is not METAVARIABLE:
            hint = f"write not {key}={pieces[0].text}" if op.startswith("!") else f"write {key}={pieces[0].text}"
            self.fault(start, match.end(), f"{key} does not take {op!r}", hint, rule.example)
            return None
        value = self.value(key, op, rule, pieces)
        if value is None:
            return None
        token = Token(key, value, op)
        self.places[token] = (start, end)
        self.places.setdefault(key, (start, end))
        return token

    def modifier(
        self, base: str, name: str, op: str, piece: _Piece, rule: TokenRule,
        modifiers: list[_Modifier], place: int, span: tuple[int, int],
    ) -> None:  # fmt: skip
        if name not in rule.modifiers:
            known = [f"{base}.{modifier}" for modifier in rule.modifiers]
            hint = did_you_mean(f"{base}.{name}", known) or (f"there are {', '.join(known)}" if known else "")
            self.fault(*span, f"unknown token '{base}.{name}'", hint)
            return
        value, fault = piece.text, ""
        if op != "=":
            fault = f"{base}.{name} does not take {op!r}"
        elif name == "strictness" and value not in STRICTNESS:
            fault = f"{value!r} is not one of {', '.join(STRICTNESS)}"
            self.fault(piece.start, piece.end, fault, did_you_mean(value, STRICTNESS))
            return
        elif name == "reverse" and value not in ("true", "false"):
            fault = f"{base}.reverse is true or false"
        elif name in ("selector", "field") and not re.fullmatch(r"\w+", value):
            fault = f"{value!r} is not the name of a {'node kind' if name == 'selector' else 'field'}"
        elif name == "stopBy" and re.fullmatch(r"\w+", value) and value not in ("end", "neighbor"):
            fault = f"{base}.stopBy is end, neighbor or code that a node can be, not {value!r}"
            self.fault(piece.start, piece.end, fault, did_you_mean(value, ("end", "neighbor")), rule.example)
            return
        elif name in ("context", "ofRule") or (name == "stopBy" and value not in ("end", "neighbor")):
            fault = patterns.find_fault(value)
        if fault:
            self.fault(piece.start, piece.end, fault, "", rule.example)
            return
        modifiers.append(_Modifier(base, name, value, place, *span))

    def attach(self, items: list[Expression], modifiers: list[_Modifier]) -> None:
        """A modifier belongs to the token of its key before it, else to the only one in its group."""
        for modifier in modifiers:
            tokens = [_strip_not(item) for item in items]
            own = [at for at, item in enumerate(tokens) if isinstance(item, Token) and item.key == modifier.key]
            before = [at for at in own if at < modifier.place]
            place = before[-1] if before else own[0] if len(own) == 1 else None
            if place is None and not own and modifier.key == "pattern" and modifier.name == "context":
                tokens.append(Token("pattern", ""))
                items.append(tokens[-1])
                place = len(items) - 1
            if place is None:
                what = f"there is no {modifier.key}= for it" if not own else f"it must stand behind its {modifier.key}="
                self.fault(modifier.start, modifier.end, f"{modifier.key}.{modifier.name}: {what}")
                continue
            token = tokens[place]
            assert isinstance(token, Token)
            if token.modifier(modifier.name):
                self.fault(modifier.start, modifier.end, f"{modifier.key}.{modifier.name} is given twice")
                continue
            added = tuple(sorted((*token.modifiers, (modifier.name, modifier.value))))
            changed: Expression = Token(token.key, token.value, token.op, added)
            self.places[changed] = self.places.get(token, (modifier.start, modifier.end))
            inner = items[place]
            while isinstance(inner, Not):
                inner, changed = inner.item, Not(changed)
            items[place] = changed

    def value(self, key: str, op: str, rule: TokenRule, pieces: list[_Piece]) -> str | tuple[str, ...] | None:
        """Checked and in its one form; None after a fault."""
        start, end = pieces[0].start, pieces[-1].end
        before = len(self.faults)
        text = pieces[0].text
        if rule.kind in ("patterns", "choices", "texts", "expansions"):
            parts = [piece.text.strip() for piece in pieces]
            if len(pieces) == 1 and not self.ends_with_comma(end):
                parts = patterns.split_list(text) if rule.kind in ("patterns", "expansions") else text.split(",")
            parts = [part.strip() for part in parts]
            if len(parts) > MAX_LIST:
                self.fault(start, end, f"{key} takes at most {MAX_LIST} values", "", rule.example)
                return None
            for part in parts:
                self.check_part(key, rule, part, start, end)
            return tuple(dict.fromkeys(parts)) if len(self.faults) == before else None
        fault, hint = "", ""
        if rule.kind in ("name", "metavariable"):
            if op.endswith("~"):
                fault = regex.find_fault(text)
            elif "\0" in text:
                fault = "a name holds no NUL"
            elif rule.kind == "name" and _GLOB.search(text) and "operator" not in text:
                fault = f"{key} takes a name or a regular expression, and {text!r} is a glob"
                hint = f"did you mean {key}=~'^{_read_glob(text)}$'?"
        elif rule.kind == "pattern":
            fault = patterns.find_fault(text)
        elif rule.kind == "number":
            if not re.fullmatch(r"\d{1,7}", text) or not (key == "limit") <= int(text) <= MAX_NUMBER:
                fault = f"{key} takes a number from {int(key == 'limit')} to {MAX_NUMBER:,}, not {text!r}"
            text = text.lstrip("0") or "0"
        elif rule.kind in ("bool", "choice"):
            if text not in rule.choices:
                fault = f"{key}: {text!r} is not one of {', '.join(rule.choices)}"
                hint = did_you_mean(text, rule.choices)
        elif rule.kind == "position":
            text = text.replace(" ", "")
            if not _POSITION.fullmatch(text) or text == "0" or len(text) > 12:
                fault = f"{text!r} is no position: a number from 1, or a formula like 2n+1"
        elif rule.kind == "text":
            fault = _find_path_fault(text)
            if key == "in" and _GLOB.search(text) and not fault:
                fault, hint = (
                    f"in= takes a directory or a file, and {text!r} is a glob",
                    f"did you mean globs='{text}'?",
                )
        if fault:
            self.fault(start, end, fault, hint, rule.example)
            return None
        return text

    def ends_with_comma(self, end: int) -> bool:
        return self.text[end : end + 1] == ","

    def check_part(self, key: str, rule: TokenRule, part: str, start: int, end: int) -> None:
        if rule.kind == "patterns":
            if fault := patterns.find_fault(part):
                self.fault(start, end, f"{key}: {fault}", "", rule.example)
            return
        if rule.kind == "texts":
            if fault := _find_path_fault(part):
                self.fault(start, end, f"{key}: {fault}", "", rule.example)
            return
        name = part
        if rule.kind == "expansions":
            match = re.fullmatch(r"(\w+)(?:\(\s*(\w*)\s*=?\s*(\w*)\s*\))?", part)
            name = match[1] if match else part
            if match and "(" in part and name in EXPANSIONS:
                depth = match[3]
                if match[2] != "depth" or not depth.isdigit() or not 1 <= int(depth) <= MAX_GRAPH_DEPTH:
                    message = f"{name} takes (depth=N) with N from 1 to {MAX_GRAPH_DEPTH}, not {part[len(name) :]!r}"
                    self.fault(start, end, message, "", rule.example)
                elif name not in GRAPH_EXPANSIONS and int(depth) > 1:
                    self.fault(start, end, f"{name} has no depth", "", rule.example)
        if name not in rule.choices:
            listed = "`cq languages` lists them" if key == "lang" else f"expected one of {', '.join(rule.choices)}"
            hint = did_you_mean(name, rule.choices) or listed
            message = f"{key}: {name!r} is not one of its values" if name else f"{key}: a value is empty"
            self.fault(start, end, message, hint, rule.example)

    # -- stages ----------------------------------------------------------------------------------

    def stages(self) -> list[Stage]:
        found: list[Stage] = []
        while True:
            self.skip()
            if self.text[self.at : self.at + 1] != "|":
                return found
            start = self.at
            self.at += 1
            self.skip()
            word = re.compile(r"\w*").match(self.text, self.at)
            assert word is not None
            if word[0] not in _STAGES:
                self.fault(
                    start,
                    word.end(),
                    f"unknown stage {word[0]!r}",
                    did_you_mean(word[0], _STAGES) or "after a stage only stages follow",
                )
                self.at = len(self.text)
                return found
            self.at = word.end()
            stage = self.stage(word[0], start)
            if stage is not None:
                found.append(stage)

    def stage(self, kind: str, start: int) -> Stage | None:
        example = "entity=class | filter(methods > 20) | sort(methods desc) | limit 5"
        self.skip()
        opened = self.text[self.at : self.at + 1] == "("
        if opened:
            self.at += 1
        stage = None
        if kind == "filter":
            condition = self.condition()
            stage = Stage("filter", condition=condition) if condition is not None else None
        elif kind == "sort":
            match = re.compile(r"\s*(\w+)(?:\s+(asc|desc))?").match(self.text, self.at)
            if match and match[1] in ATTRIBUTES:
                self.at = match.end()
                stage = Stage("sort", attribute=match[1], descending=match[2] == "desc")
                self.places.setdefault(("stage", match[1]), match.span(1))
            else:
                word = match[1] if match else ""
                self.fault(
                    self.at,
                    match.end(1) if match else self.at,
                    f"there is no attribute {word!r} to sort by",
                    did_you_mean(word, ATTRIBUTES),
                    example,
                )
        else:
            match = re.compile(r"\s*(\d{1,7})(?!\w)").match(self.text, self.at)
            if match and 1 <= int(match[1]) <= MAX_NUMBER:
                self.at = match.end()
                stage = Stage("limit", count=int(match[1]))
            else:
                self.fault(start, self.at + 1, f"limit takes a number from 1 to {MAX_NUMBER:,}", "", example)
        self.skip()
        if opened:
            if self.text[self.at : self.at + 1] == ")":
                self.at += 1
            elif stage is not None or self.at >= len(self.text):
                self.fault(start, self.at, f"{kind}( is never closed", "expected ')'", example)
                self.at = len(self.text)
                return None
        if stage is None:
            following = self.text.find("|", self.at)
            self.at = len(self.text) if following < 0 else following
            if not self.faults:
                self.fault(start, self.at, f"{kind} says nothing", "", example)
        return stage

    def condition(self) -> Expression | None:
        groups: list[Expression] = []
        while True:
            items: list[Expression] = []
            while True:
                item = self.comparison()
                if item is not None:
                    items.append(item)
                if item is None or not self.keyword("and"):
                    break
            if not items:
                break
            groups.append(make_and(items) if len(items) > 1 else items[0])
            if not self.keyword("or"):
                break
        return make_or(groups) if groups else None

    def comparison(self) -> Expression | None:
        example = "entity=function | filter(calls > 10 and name =~ ^get_)"
        self.skip()
        start = self.at
        if self.keyword("not"):
            item = self.comparison()
            return Not(item) if item is not None else None
        if self.text[self.at : self.at + 1] == "(":
            self.depth += 1
            if self.depth > MAX_DEPTH:
                self.fault(start, start + 1, f"nested more than {MAX_DEPTH} deep")
                return None
            self.at += 1
            item = self.condition()
            self.depth -= 1
            self.skip()
            if self.text[self.at : self.at + 1] == ")":
                self.at += 1
            else:
                self.fault(start, start + 1, "this parenthesis is never closed", "expected ')'", example)
            return item
        match = re.compile(r"(\w+)\s*(" + "|".join(map(re.escape, COMPARISONS)) + r")\s*").match(self.text, self.at)
        if match is None:
            word = re.compile(r"[^\s()]*").match(self.text, self.at)
            end = word.end() if word else self.at
            self.fault(self.at, end, "expected attribute, comparison and value", "", example)
            return None
        name, op = match.groups()
        self.at = match.end()
        pieces = self.pieces(split=False)
        if name not in ATTRIBUTES:
            self.fault(*match.span(1), f"there is no attribute {name!r}", did_you_mean(name, ATTRIBUTES), example)
            return None
        if not pieces:
            self.fault(*match.span(), f"{name} {op} needs a value", "", example)
            return None
        value, numeric = pieces[0].text, ATTRIBUTES[name][0]
        fault = hint = ""
        if numeric and (not re.fullmatch(r"\d{1,9}", value) or "~" in op):
            fault = f"{name} is a number; it cannot be compared by {op} with {value!r}"
        elif not numeric and op in (">", "<", ">=", "<="):
            fault = f"{name} is text: compare it with =, !=, =~ or !=~"
        elif op.endswith("~"):
            fault = regex.find_fault(value)
        elif name == "language" and value not in LANGUAGES:
            fault, hint = f"language: {value!r} is not one of its values", did_you_mean(value, LANGUAGES)
        if fault:
            self.fault(match.start(), pieces[0].end, fault, hint, example)
            return None
        self.places.setdefault(("stage", name), match.span(1))
        return Token(name, value, "=" if op == "==" else op)


def _strip_not(item: Expression) -> Expression:
    while isinstance(item, Not):
        item = item.item
    return item


def _read_glob(text: str) -> str:
    return re.escape(text).replace(r"\*", ".*").replace(r"\?", ".")


def _find_path_fault(text: str) -> str:
    if text.startswith("/") or ".." in text.split("/") or "\0" in text or "\\" in text:
        return f"{text!r} is not a path below the root, written with /"
    return "" if text else "it is empty"


def _all_keys() -> list[str]:
    return [*TOKENS, *(f"{key}.{name}" for key, rule in TOKENS.items() for name in rule.modifiers)]
