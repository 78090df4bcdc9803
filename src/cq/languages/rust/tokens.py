"""What the token trees of macros and attributes hold: Rust does not parse them."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from cq.languages.rust.arguments import (
    MAX_VALUES,
    NESTED,
    NO_ARGUMENTS,
    ArgumentReader,
    Arguments,
    cut_excerpt,
    read_plain_arguments,
    read_text,
)
from cq.languages.rust.paths import read_callee_path
from cq.languages.rust.values import read_literal
from cq.model.code import CallEnd, Unwrapped, Value
from cq.model.facts import Argument
from cq.syntax.language import ARG_TEXT, MAX_ARGS, ROLE_NUMBER
from cq.syntax.tree import Captures, Node, all_children_of, child_at, end_of, field_of, kind_id_of, start_of

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

_OPENS = re.compile(rb"[(\[{]")
_DECORATOR = ROLE_NUMBER["decorator"]
_LABEL = ROLE_NUMBER["label"]
_REFERENCE = ROLE_NUMBER["reference"]
_PANICS = frozenset({"panic", "unreachable", "todo", "unimplemented"})
_PATTERN_MACROS = frozenset({"matches", "assert_matches", "debug_assert_matches"})
_CALLABLE_TRAITS = frozenset({b"Fn", b"FnMut", b"FnOnce", b"AsyncFn", b"AsyncFnMut", b"AsyncFnOnce"})
# The grammar reads these words as identifiers inside a token tree.
_LOOSE_WORDS = frozenset({b"else", b"in", b"move", b"ref", b"dyn", b"extern", b"box", b"yield", b"try"})
# What a token of a macro can mean for a call; 0 is everything else, which ends an expression.
_NAME, _HEAD, _VALUE, _NUMBER, _DOT, _PATH, _BANG, _TREE, _LESS, _MORE, _MORE_MORE, _QUESTION, _AWAIT, _COMMA, _HASH, \
    _ARROW, _INTRO, _IF, _QUOTE, _SEMICOLON, _EQUALS, _PREFIX, _MUT, _PIPE, _RANGE, _COMMENT = range(1, 27)  # fmt: skip
_NAMED_TOKENS = {
    "identifier": _NAME, "self": _HEAD, "super": _HEAD, "crate": _HEAD, "primitive_type": _HEAD, "metavariable": _HEAD,
    "string_literal": _VALUE, "raw_string_literal": _VALUE, "char_literal": _VALUE, "boolean_literal": _VALUE,
    "integer_literal": _NUMBER, "float_literal": _NUMBER, "token_tree": _TREE, "token_repetition": _TREE,
    "mutable_specifier": _MUT, "line_comment": _COMMENT, "block_comment": _COMMENT,
}  # fmt: skip
_PLAIN_TOKENS = {
    ".": _DOT, "::": _PATH, "!": _BANG, "<": _LESS, ">": _MORE, ">>": _MORE_MORE, "?": _QUESTION, "await": _AWAIT,
    ",": _COMMA, "#": _HASH, "=>": _ARROW, "if": _IF, "'": _QUOTE, ";": _SEMICOLON, "=": _EQUALS, "&": _PREFIX,
    "*": _PREFIX, "-": _PREFIX, "|": _PIPE, "||": _PIPE, "..": _RANGE, "default": _NAME, "union": _NAME,
    **dict.fromkeys(("fn", "let", "struct", "enum", "trait", "mod", "impl", "type", "use", "pub"), _INTRO),
}  # fmt: skip
_JOINTS = frozenset({_DOT, _PATH})
_STOPS = frozenset({_COMMA, _SEMICOLON})
_PASSED = frozenset({_QUESTION, _DOT, _AWAIT})  # behind a call whose result they open
_LITERAL_KINDS = frozenset({"string", "number", "boolean"})
_VALUES = frozenset({_HEAD, _VALUE, _NUMBER, _AWAIT})
_PATH_TOKENS = frozenset({_NAME, _HEAD, _DOT, _PATH, _NUMBER})
_CHAIN_TOKENS = _PATH_TOKENS | {_TREE, _BANG, _QUESTION, _AWAIT, _LESS, _MORE, _VALUE}


class TokenReader(ArgumentReader):
    @cached_property
    def tokens(self) -> dict[int, int]:
        found = {self.grammar.find_kind(name): token for name, token in _NAMED_TOKENS.items()}
        found |= {self.grammar.find_sign(name): token for name, token in _PLAIN_TOKENS.items()}
        return {number: token for number, token in found.items() if number is not None}

    def add_macro(self, collector: Collector, node: Node, callee: Node, tree: Node) -> None:
        name = self.last_of_path(callee)
        start, end = start_of(node), end_of(node)
        given, inner = self.open_tree(collector, tree)
        self.append_call(collector, "macro", callee, name, end, given)
        word = collector.calls[-1][5]
        if word in _PANICS:
            collector.flows.append((start, end, "raise", "", f"{read_text(collector, callee)}!", "call", start))
        if inner is not None:
            self._read_tokens(collector, *inner, word in _PATTERN_MACROS)

    def on_tokens(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        _, inner = self.open_tree(collector, node)
        if inner is not None:
            self._read_tokens(collector, *inner, False)

    def open_tree(self, collector: Collector, tree: Node) -> tuple[Arguments, tuple[list[Node], list[int]] | None]:
        """The arguments that a token tree holds, and its tokens unless there is nothing to find among them."""
        text, start, end = collector.text, start_of(tree), end_of(tree)
        if end - start == 2:
            return NO_ARGUMENTS, None
        plain = read_plain_arguments(text[start:end]) if end - start < ARG_TEXT else None
        if plain is not None:
            return plain, None
        tokens, children = self.tokens, all_children_of(tree)
        kinds = [tokens.get(kind_id_of(child), 0) for child in children]
        return self._read_token_arguments(text, children, kinds), (children, kinds)

    def _read_tokens(self, collector: Collector, children: list[Node], kinds: list[int], is_match: bool) -> None:
        """Calls, labels and ranges among the tokens of a macro; each token is looked at once.

            assert_eq!(foo(x), bar.baz::<T>(), vec![a::b(1)])

        A name is called when a `(` tree follows it, or `!` and any tree. What stands before `=>`, and what
        `matches!` has behind its comma, is a pattern and calls nothing.
        """
        text, marks, calls = collector.text, collector.marks, collector.calls
        # tokens, whether a pattern begins behind the first comma, whether this is one already
        todo: list[tuple[list[Node], list[int], bool, bool]] = [(children, kinds, is_match, False)]
        while todo:
            children, kinds, is_match, quiet = todo.pop()
            chain = name_start = callee_end = -1  # of the expression that the last token ended
            name: Node | None = None
            joint = last = angle = 0
            intro = pending = False
            arm, arm_todo, guard, guard_todo = len(calls), len(todo), -1, -1
            for child, token in zip(children, kinds, strict=True):
                if token == _COMMENT:
                    continue
                if angle:
                    angle += (token == _LESS) - (token == _MORE) - 2 * (token == _MORE_MORE)
                    if angle <= 0:
                        angle, callee_end, joint = 0, end_of(child), 0
                elif token == _NAME:
                    start, end = start_of(child), end_of(child)
                    word = text[start:end] if end - start < 7 else b""
                    if last == _QUOTE:
                        marks[start] = _LABEL
                        chain, name = -1, None
                    elif word in _LOOSE_WORDS:
                        chain, name, pending = -1, None, word == b"dyn"
                    else:
                        if last == _RANGE:
                            marks[start] = _REFERENCE
                        if not joint or chain < 0:
                            chain, intro = start, pending
                        name, name_start, callee_end, pending = child, start, end, False
                    joint = 0
                elif token == _TREE:
                    start = start_of(child)
                    opener = text[start]
                    hushed = quiet or last == _HASH
                    given, inner = self.open_tree(collector, child)
                    is_macro = last == _BANG
                    called = name is not None and not joint and not intro and not hushed
                    if called and not is_macro:
                        called = opener == 40 and text[name_start:callee_end] not in _CALLABLE_TRAITS
                    if name is not None and called:
                        kind = "macro" if is_macro else "call"
                        self.append_span(collector, kind, chain, callee_end, name, end_of(child), given)
                    elif opener == 123 or last == _HASH:
                        chain = -1
                    elif chain < 0:
                        chain = start
                    if inner is not None:
                        todo.append((*inner, called and is_macro and calls[-1][5] in _PATTERN_MACROS, hushed))
                    name, joint, pending = None, 0, False
                    if opener == 123:
                        arm, arm_todo, guard = len(calls), len(todo), -1
                elif token in _JOINTS:
                    if chain < 0 and token == _PATH:
                        chain, name = start_of(child), None
                    joint = token if chain >= 0 else 0
                    if token == _DOT:
                        name = None
                elif token in _VALUES:
                    if not joint:
                        chain = start_of(child)
                    name, joint, pending, intro = None, 0, False, False
                elif token == _LESS and joint == _PATH and name is not None:
                    angle = 1
                elif (token == _BANG and name is not None and not joint) or (token == _QUESTION and name is None):
                    joint = 0
                else:
                    if token == _ARROW:
                        # Everything since the last arm was its pattern, up to the `if` of a guard.
                        self._forget(collector, arm, len(calls) if guard < 0 else guard)
                        for index in range(arm_todo, len(todo) if guard < 0 else guard_todo):
                            todo[index] = (*todo[index][:3], True)
                        arm, arm_todo, guard = len(calls), len(todo), -1
                    elif token in _STOPS:
                        arm, arm_todo, guard = len(calls), len(todo), -1
                        quiet = quiet or (is_match and token == _COMMA)
                    elif token == _IF:
                        guard, guard_todo = len(calls), len(todo)
                        quiet = quiet and not is_match
                    chain, name, joint, pending = -1, None, 0, token == _INTRO
                last = token

    def _forget(self, collector: Collector, first: int, last: int) -> None:
        for call in collector.calls[first:last]:
            collector.marks.pop(call[2], None)
        del collector.calls[first:last]

    def _read_token_arguments(self, text: bytes, children: list[Node], kinds: list[int]) -> Arguments:
        """The arguments of a macro, cut at its commas; `x = 1` is a keyword."""
        args: list[Argument] = []
        values: list[Value] = []
        keywords: list[tuple[str, Value]] = []
        last = len(kinds) - 1
        first = 1
        for cut in [*(at for at in range(1, last) if kinds[at] == _COMMA), last]:
            start, stop, first = first, cut, cut + 1
            while start < stop and kinds[start] == _COMMENT:
                start += 1
            while start < stop and kinds[stop - 1] == _COMMENT:
                stop -= 1
            if start == stop:
                continue
            name = ""
            if stop - start > 2 and kinds[start + 1] == _EQUALS and kinds[start] == _NAME:
                name = text[start_of(children[start]) : end_of(children[start])].decode("utf-8", "replace")
                start += 2
            value: Value = None
            if len(args) < MAX_ARGS:
                begin, end = start_of(children[start]), end_of(children[stop - 1])
                kind = self._token_kind(text, children[start:stop], kinds[start:stop])
                value = _read_token_value(text, kind, children[start:stop], kinds[start:stop])
                depth = 0
                if kind in NESTED:
                    outer = _OPENS.search(text, begin, end)
                    depth = 2 if outer is not None and _OPENS.search(text, outer.end(), end) is not None else 1
                args.append(Argument(kind, cut_excerpt(text, begin, end, ARG_TEXT), name, depth))
            if name:
                keywords.append((name, value))
            else:
                values.append(value)
        summary = (tuple(args), len(values), tuple([name for name, _ in keywords]))
        return summary, tuple(values[:MAX_VALUES]), tuple(keywords)

    def _token_kind(self, text: bytes, part: list[Node], kinds: list[int]) -> str:
        first = 0
        while first < len(kinds) - 1 and kinds[first] in (_PREFIX, _MUT, _BANG):
            first += 1
        head = part[first]
        if first == len(kinds) - 1:
            if kinds[first] == _TREE:
                return "object" if text[start_of(head)] == 123 else "array"
            # `default` is a keyword to the grammar here, and mostly a name.
            return "name" if kinds[first] == _NAME else self.argument_ids.get(kind_id_of(head), "other")
        if kinds[first] == _PIPE or text[start_of(head) : end_of(head)] == b"move":
            return "function"
        seen = set(kinds[first:])
        if seen <= _PATH_TOKENS:
            return "attribute"
        if seen <= _CHAIN_TOKENS and kinds[first] != _TREE:
            if kinds[-1] == _TREE and text[start_of(part[-1])] == 123 and _BANG not in seen:
                return "object"
            return "call" if kinds[-1] in (_TREE, _QUESTION, _AWAIT) else "attribute" if kinds[-1] == _NAME else "other"
        return "other"

    def on_decorator(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """`#[path::name(args)]` calls name; `#[derive(A, b::C)]` calls A and C, and is no call itself."""
        callee, args = child_at(node, 0), field_of(node, "arguments")
        if callee is None:
            return
        start, end = start_of(node), end_of(node)
        collector.spans.append((start, end, _DECORATOR))
        word = collector.text[start_of(callee) : end_of(callee)]
        if word == b"doc" and args is None:
            return
        if word != b"derive" or args is None:
            given = NO_ARGUMENTS if args is None else self.open_tree(collector, args)[0]
            self.append_call(collector, "decorator", callee, self.last_of_path(callee), end, given, _DECORATOR)
            return
        entry, name = -1, None
        for child in all_children_of(args):
            token = self.tokens.get(kind_id_of(child), 0)
            if token in _PATH_TOKENS:
                entry = start_of(child) if entry < 0 else entry
                name = child if token == _NAME else name
            else:
                if name is not None:
                    end = end_of(name)
                    self.append_span(collector, "decorator", entry, end, name, end, NO_ARGUMENTS, _DECORATOR)
                entry, name = -1, None


def _read_token_value(text: bytes, kind: str, part: list[Node], kinds: list[int]) -> Value:
    """The value of an argument of a macro; calls in it are found among the same tokens."""
    first = 0
    while first < len(kinds) - 1 and kinds[first] in (_PREFIX, _MUT):
        first += 1
    if kind == "call":
        last = len(kinds) - 1 - kinds[::-1].index(_TREE) if _TREE in kinds else 0
        call = CallEnd(end_of(part[last]))
        rest = set(kinds[last + 1 :])
        return call if not rest else Unwrapped(call) if _QUESTION in rest and rest <= _PASSED else None
    if kind not in ("name", "attribute") and kind not in _LITERAL_KINDS:
        return None  # a tree in trees, which is not copied once for every level
    piece = text[start_of(part[first]) : end_of(part[-1])]
    return read_callee_path(b"".join(piece.split())) if kind in ("name", "attribute") else read_literal(piece)
