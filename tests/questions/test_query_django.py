"""Queries over Django, against one walk of `ast` that shares nothing with them."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from bench.corpora import CorpusError, fetch
from cq import Workspace
from cq.questions.q import QueryOptions

pytestmark = pytest.mark.slow

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*_FUNCTIONS, ast.ClassDef)
Above = list[ast.AST]
Wanted = Callable[[ast.AST, Above], bool]


def _is_getter(node: ast.AST) -> bool:
    return isinstance(node, _FUNCTIONS) and node.name.startswith("get_")


def _is_function_getter(node: ast.AST, above: Above) -> bool:
    return _is_getter(node) and not isinstance(_scope(above), ast.ClassDef)


def _is_method_getter(node: ast.AST, above: Above) -> bool:
    return _is_getter(node) and isinstance(_scope(above), ast.ClassDef)


def _is_getattr_in_class(node: ast.AST, above: Above) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "getattr"
        and len(node.args) + len(node.keywords) == 2
        and any(isinstance(parent, ast.ClassDef) for parent in above)
    )


def _is_property(node: ast.AST, _: Above) -> bool:
    return isinstance(node, _FUNCTIONS) and "property" in map(_last_name, node.decorator_list)


def _awaits(node: ast.AST, _: Above) -> bool:
    return isinstance(node, ast.AsyncFunctionDef) and any(isinstance(below, ast.Await) for below in ast.walk(node))


def _has_many_methods(node: ast.AST, _: Above) -> bool:
    return isinstance(node, ast.ClassDef) and sum(isinstance(item, _FUNCTIONS) for item in _own(node)) > 20


def _raises_value_error(node: ast.AST, _: Above) -> bool:
    return isinstance(node, _FUNCTIONS) and any(
        isinstance(item, ast.Raise) and item.exc is not None and _last_name(item.exc) == "ValueError"
        for item in _own(node)
    )


CASES: dict[str, Wanted] = {
    "entity=function name=~^get_": _is_function_getter,
    "entity=method name=~^get_": _is_method_getter,
    "pattern='getattr($X, $Y)' inside='class $C'": _is_getattr_in_class,
    "entity=function,method decorated_by=property": _is_property,
    "entity=function,method pattern='async def $F' has='await $X'": _awaits,
    "entity=class | filter(methods > 20)": _has_many_methods,
    "entity=function,method raises=ValueError": _raises_value_error,
}


class Tree(NamedTuple):
    workspace: Workspace
    read: set[str]  # paths that `ast` can read
    expected: dict[str, list[tuple[str, int]]]


@pytest.fixture(scope="module")
def django(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tree]:
    try:
        root = fetch("django")
    except (CorpusError, OSError) as error:
        pytest.skip(f"no corpus django: {error}")
    with Workspace.open(root, index_dir=tmp_path_factory.mktemp("index")) as workspace:
        tree = Tree(workspace, set(), {query: [] for query in CASES})
        for file in workspace.files():
            if file.language != "python":
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    module = ast.parse((root / file.path).read_bytes())
                except (SyntaxError, ValueError):
                    continue  # files that are broken on purpose
            tree.read.add(file.path)
            for node, above in _walk(module):
                for query, wanted in CASES.items():
                    if wanted(node, above):
                        tree.expected[query].append((file.path, getattr(node, "lineno", 0)))
        yield tree


@pytest.mark.parametrize("query", CASES)
def test_equal_to_a_walk_of_ast(django: Tree, query: str):
    group, bar, stages = query.partition(" | ")
    answer = django.workspace.q(QueryOptions(f"{group} lang=python{bar}{stages}", everything=True))
    places = [finding.location for finding in answer.sections[0].findings]
    assert len(places) == answer.found
    found = sorted((place.path, place.start_line) for place in places if place and place.path in django.read)
    assert len(found) > 5
    assert found == sorted(django.expected[query])


def _walk(module: ast.Module) -> Iterator[tuple[ast.AST, Above]]:
    """Every node with those around it, outermost first; the list changes as the walk goes on."""
    above: Above = []
    todo: list[ast.AST | None] = [module]
    while todo:
        node = todo.pop()
        if node is None:
            above.pop()
            continue
        yield node, above
        above.append(node)
        todo.append(None)
        todo += ast.iter_child_nodes(node)


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """What stands in a function or class itself, not in one inside it."""
    todo = list(ast.iter_child_nodes(scope))
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, _SCOPES):
            todo += ast.iter_child_nodes(node)


def _scope(above: Above) -> ast.AST | None:
    return next((node for node in reversed(above) if isinstance(node, _SCOPES)), None)


def _last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Call):
        node = node.func
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
