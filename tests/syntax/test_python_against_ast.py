"""Python against the standard library's own parser, by position: what `ast` finds, we find; what we find more is named.

Every fifth file of Django. Positions are byte offsets on both sides.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache

from cq.languages.facts import extract_facts
from cq.model.facts import FileFacts
from cq.model.location import LineTable
from tests.support.samples import read_corpus

Span = tuple[int, int]


class Parsed:
    """One file, seen by both sides."""

    def __init__(self, path: str, text: bytes, tree: ast.Module) -> None:
        self.path, self.text, self.tree = path, text, tree
        self.starts = LineTable(text).starts
        self.facts: FileFacts = extract_facts(text, "python")
        # Before 3.12 `ast` guesses positions inside f-strings; what lies in one is compared by name.
        self.strings = [self.span(node) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]

    def start(self, node: ast.stmt | ast.expr | ast.arg) -> int:
        return self.starts[node.lineno - 1] + node.col_offset

    def span(self, node: ast.stmt | ast.expr) -> Span:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.start(node), self.starts[node.end_lineno - 1] + node.end_col_offset

    def in_string(self, start: int) -> bool:
        return any(first < start < last for first, last in self.strings)

    def nodes_outside_strings(self) -> Iterator[ast.AST]:
        todo: list[ast.AST] = [self.tree]
        while todo:
            node = todo.pop()
            if not isinstance(node, ast.JoinedStr):
                yield node
                todo += ast.iter_child_nodes(node)


@cache
def django() -> list[Parsed]:
    parsed: list[Parsed] = []
    for source in read_corpus("django", (".py",), step=5):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # invalid escapes in what we read are not ours
                tree = ast.parse(source.text)
        except (SyntaxError, ValueError):
            continue
        if b"\r" not in source.text:  # `ast` counts a lone \r as a line end
            parsed.append(Parsed(source.path, source.text, tree))
    return parsed


def compare(expected: Callable[[Parsed], set[Span]], found: Callable[[Parsed], set[Span]], *, at_least: int) -> None:
    """Equal sets in every file; a difference is shown with its source."""
    total = 0
    for parsed in django():
        theirs, ours = expected(parsed), found(parsed)
        total += len(theirs)
        for name, spans in (("missed", theirs - ours), ("unexplained", ours - theirs)):
            shown = [parsed.text[start : min(end, start + 80)].decode() for start, end in sorted(spans)[:5]]
            assert not spans, f"{parsed.path}: {name} {len(spans)}: {shown}"
    assert total >= at_least


_HEAD = re.compile(rb"(?:async[\s\\]+)?(?:def|class)[\s\\]+([\w\x80-\xff]+)")


def test_every_function_and_class_and_no_other():
    def expected(parsed: Parsed) -> set[Span]:
        kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        heads = (_HEAD.match(parsed.text, parsed.start(n)) for n in ast.walk(parsed.tree) if isinstance(n, kinds))
        return {head.span(1) for head in heads if head}

    def found(parsed: Parsed) -> set[Span]:
        bodies = [symbol for symbol in parsed.facts.symbols if symbol.body_start >= 0]
        # More than `ast` has: a lambda bound to a name is a function of that name.
        named = [symbol for symbol in bodies if not _HEAD.match(parsed.text, symbol.head)]
        assert all(b"lambda" in parsed.text[symbol.start : symbol.body_start] for symbol in named)
        return {(symbol.name_start, symbol.name_end) for symbol in bodies if symbol not in named}

    compare(expected, found, at_least=5_000)


def test_every_call():
    def expected(parsed: Parsed) -> set[Span]:
        return {parsed.span(node) for node in parsed.nodes_outside_strings() if isinstance(node, ast.Call)}

    def found(parsed: Parsed) -> set[Span]:
        # More than `ast` has: a decorator without parentheses is a call too (next test).
        return {
            (call.start, call.end)
            for call in parsed.facts.calls
            if parsed.text[call.end - 1 : call.end] == b")" and not parsed.in_string(call.start)
        }

    compare(expected, found, at_least=20_000)


def test_every_decorator_without_parentheses():
    def expected(parsed: Parsed) -> set[Span]:
        return {
            parsed.span(decorator)
            for node in ast.walk(parsed.tree)
            for decorator in getattr(node, "decorator_list", ())
            if not isinstance(decorator, ast.Call)
        }

    def found(parsed: Parsed) -> set[Span]:
        return {
            (call.start, call.end)
            for call in parsed.facts.calls
            if call.kind == "decorator" and parsed.text[call.end - 1 : call.end] != b")"
        }

    compare(expected, found, at_least=300)


def test_decorators_with_parentheses_are_told_from_other_calls():
    def expected(parsed: Parsed) -> set[Span]:
        return {
            parsed.span(decorator)
            for node in ast.walk(parsed.tree)
            for decorator in getattr(node, "decorator_list", ())
            if isinstance(decorator, ast.Call)
        }

    def found(parsed: Parsed) -> set[Span]:
        return {
            (call.start, call.end)
            for call in parsed.facts.calls
            if call.kind == "decorator" and parsed.text[call.end - 1 : call.end] == b")"
        }

    compare(expected, found, at_least=500)


def test_calls_inside_f_strings_by_name():
    total = 0
    for parsed in django():
        expected: Counter[str] = Counter()
        for node in parsed.nodes_outside_strings():
            strings = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.JoinedStr)]
            expected.update(_callee(inner) for string in strings for inner in ast.walk(string) if _is_call(inner))
        found = Counter(call.name for call in parsed.facts.calls if parsed.in_string(call.start))
        assert found == expected, parsed.path
        total += expected.total()
    assert total >= 4


def _is_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call)


def _callee(node: ast.AST) -> str:
    match node:
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            return name
        case _:
            return ""


def test_every_parameter():
    def expected(parsed: Parsed) -> set[Span]:
        nodes = (node for node in parsed.nodes_outside_strings() if isinstance(node, ast.arg))
        return {(start, start + len(node.arg.encode())) for node in nodes for start in [parsed.start(node)]}

    def found(parsed: Parsed) -> set[Span]:
        return {
            (symbol.name_start, symbol.name_end)
            for symbol in parsed.facts.symbols
            if symbol.kind == "parameter" and not parsed.in_string(symbol.start)
        }

    compare(expected, found, at_least=8_000)


def test_every_name_bound_at_module_level():
    total = 0
    for parsed in django():
        expected = set(_bound(parsed.tree.body))
        facts = parsed.facts
        found = {
            symbol.name for symbol in facts.symbols if symbol.parent < 0 and symbol.kind not in ("parameter", "lambda")
        }
        found |= {binding.local for item in facts.imports if item.scope < 0 for binding in item.bindings}
        # More than `ast` binds in the module: the variables of its comprehensions, which we keep with the scope
        # they are written in, and names of a `global` statement that only a function assigns.
        comprehended = {
            name.id
            for node in ast.walk(parsed.tree)
            if isinstance(node, ast.comprehension)
            for name in ast.walk(node.target)
            if isinstance(name, ast.Name)
        }
        globals_ = {name for node in ast.walk(parsed.tree) if isinstance(node, ast.Global) for name in node.names}
        assert expected <= found, f"{parsed.path}: missed {expected - found}"
        assert found <= expected | comprehended | globals_, f"{parsed.path}: {found - expected - comprehended}"
        total += len(expected)
    assert total >= 3_000


def _bound(body: list[ast.stmt]) -> Iterator[str]:
    """Names a module's statements bind, without what functions and classes keep to themselves."""
    todo: list[ast.AST] = list(body)
    while todo:
        node = todo.pop()
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
                continue
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from (alias.asname or alias.name.partition(".")[0] for alias in names if alias.name != "*")
            case ast.Name(id=name, ctx=ast.Store()) | ast.ExceptHandler(name=str(name)):
                yield name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                yield name
            case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                continue
            case _:
                pass
        todo += ast.iter_child_nodes(node)


def test_every_root_statement_is_one_chunk():
    total = 0
    for parsed in django():
        roots = {chunk.start: chunk for chunk in parsed.facts.chunks[1:] if chunk.parent < 0}
        starts: list[int] = []
        for statement in parsed.tree.body:
            decorators = getattr(statement, "decorator_list", [])
            start, end = parsed.span(statement)
            # A decorated definition begins with its first `@`.
            begin = parsed.text.rindex(b"@", 0, parsed.start(decorators[0])) if decorators else start
            assert begin in roots, f"{parsed.path}: no chunk for {parsed.text[begin : begin + 60]!r}"
            assert roots[begin].end >= end
            starts.append(begin)
            if isinstance(statement, ast.Import | ast.ImportFrom):
                assert roots[begin].kind == "import"
            elif isinstance(statement, ast.Expr):
                assert roots[begin].kind == "expression"
        # What no statement begins is a comment that stands alone.
        assert {roots[start].kind for start in roots.keys() - set(starts)} <= {"comment"}, parsed.path
        total += len(starts)
    assert total >= 4_000


def test_no_problems_in_what_ast_can_parse():
    broken = [(parsed.path, parsed.facts.problems[0]) for parsed in django() if parsed.facts.problems]
    assert broken == []
