"""Queries over Django, against a walk of `ast` that shares nothing with them."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from bench.corpora import CorpusError, fetch
from cq import Workspace
from cq.model.answer import Answer

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*_FUNCTIONS, ast.ClassDef)


class Tree(NamedTuple):
    workspace: Workspace
    modules: dict[str, ast.Module]


@pytest.fixture(scope="module")
def django(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tree]:
    try:
        root = fetch("django")
    except (CorpusError, OSError) as error:
        pytest.skip(f"no corpus django: {error}")
    with Workspace.open(root, index_dir=tmp_path_factory.mktemp("index")) as workspace:
        modules: dict[str, ast.Module] = {}
        for file in workspace.files():
            if file.language == "python":
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try:
                        modules[file.path] = ast.parse((root / file.path).read_bytes())
                    except (SyntaxError, ValueError):
                        continue  # files that are broken on purpose
        yield Tree(workspace, modules)


def test_functions_by_name(django: Tree):
    def wanted(node: ast.AST, above: list[ast.AST]) -> bool:
        return (
            isinstance(node, _FUNCTIONS)
            and node.name.startswith("get_")
            and not isinstance(_scope(above), ast.ClassDef)
        )

    check(django, "entity=function name=~^get_ lang=python", wanted)


def test_methods_by_name(django: Tree):
    def wanted(node: ast.AST, above: list[ast.AST]) -> bool:
        return isinstance(node, _FUNCTIONS) and node.name.startswith("get_") and isinstance(_scope(above), ast.ClassDef)

    check(django, "entity=method name=~^get_ lang=python", wanted)


def test_calls_of_getattr_inside_classes(django: Tree):
    def wanted(node: ast.AST, above: list[ast.AST]) -> bool:
        return (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "getattr"
            and len(node.args) + len(node.keywords) == 2
            and any(isinstance(parent, ast.ClassDef) for parent in above)
        )

    check(django, "pattern='getattr($X, $Y)' inside='class $C' lang=python", wanted)


def test_functions_decorated_with_property(django: Tree):
    def wanted(node: ast.AST, _: list[ast.AST]) -> bool:
        return isinstance(node, _FUNCTIONS) and "property" in map(_last_name, node.decorator_list)

    check(django, "entity=function,method decorated_by=property lang=python", wanted)


def test_async_functions_that_await(django: Tree):
    def wanted(node: ast.AST, _: list[ast.AST]) -> bool:
        return isinstance(node, ast.AsyncFunctionDef) and any(isinstance(below, ast.Await) for below in ast.walk(node))

    check(django, "entity=function,method pattern='async def $F' has='await $X' lang=python", wanted)


def test_classes_with_many_methods(django: Tree):
    def wanted(node: ast.AST, _: list[ast.AST]) -> bool:
        return isinstance(node, ast.ClassDef) and sum(isinstance(item, _FUNCTIONS) for item in _own(node)) > 20

    check(django, "entity=class lang=python | filter(methods > 20)", wanted)


def test_functions_that_raise_value_error(django: Tree):
    def is_raise(node: ast.AST) -> bool:
        return isinstance(node, ast.Raise) and node.exc is not None and _last_name(node.exc) == "ValueError"

    def wanted(node: ast.AST, _: list[ast.AST]) -> bool:
        return isinstance(node, _FUNCTIONS) and any(map(is_raise, _own(node)))

    check(django, "entity=function,method raises=ValueError lang=python", wanted)


def check(tree: Tree, query: str, wanted: Callable[[ast.AST, list[ast.AST]], bool]) -> None:
    answer = tree.workspace.q(query, everything=True)
    found = {place for place in _places(answer) if place[0] in tree.modules}
    expected = {
        (path, *_start(node))
        for path, module in tree.modules.items()
        for node, above in _walk(module)
        if wanted(node, above)
    }
    assert len(expected) > 5
    assert found == expected


def _places(answer: Answer) -> set[tuple[str, int]]:
    found = [finding.location for finding in answer.sections[0].findings]
    assert len(found) == answer.found
    return {(place.path, place.start_line) for place in found if place}


def _start(node: ast.AST) -> tuple[int]:
    return (getattr(node, "lineno"),)  # noqa: B009  not every node has one


def _walk(module: ast.Module) -> Iterator[tuple[ast.AST, list[ast.AST]]]:
    todo: list[tuple[ast.AST, list[ast.AST]]] = [(module, [])]
    while todo:
        node, above = todo.pop()
        yield node, above
        todo += [(child, [*above, node]) for child in ast.iter_child_nodes(node)]


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """What stands in a function or class itself, not in one inside it."""
    todo = list(ast.iter_child_nodes(scope))
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, _SCOPES):
            todo += ast.iter_child_nodes(node)


def _scope(above: list[ast.AST]) -> ast.AST | None:
    return next((node for node in reversed(above) if isinstance(node, _SCOPES)), None)


def _last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Call):
        node = node.func
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
