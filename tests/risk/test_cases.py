"""Small programs and where data goes in them, as tests/cases/risk-*.md say."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from cq.language import describe
from cq.questions.risk.program import TextProgram
from cq.risk.engine import Engine
from cq.risk.rules import SinkRule, load_rules
from tests.support.fixture import parse_fixture

PAGES = Path(__file__).parents[1] / "cases"
_BLOCK = re.compile(r"^## (?P<title>.*?)\n```(?P<language>\w+)\n(?P<code>.*?)```", re.DOTALL | re.MULTILINE)
_MARK = re.compile(r"(?:#|//)! (?P<kinds>[\w -]+?)(?P<bug>: bug.*)?$")
Told = set[tuple[str, int, str]]


def find_told(files: dict[str, str], language: str, *, is_strict: bool = False) -> Told:
    """(path, line, kind) of everything that is found."""
    program = TextProgram({path: (language, text.encode()) for path, text in files.items()})
    engine = Engine(program, is_strict=is_strict)
    engine.run_all(program.documents)
    rules = load_rules(language)
    found: Told = set()
    for flow in engine.flows.values():
        rule = rules.by_id[flow.rule]
        assert isinstance(rule, SinkRule)
        line = files[flow.place.path].encode()[: flow.place.start].count(b"\n") + 1
        found.add((flow.place.path, line, rule.kind))
    return found


def read_marks(files: dict[str, str]) -> Told:
    marks: Told = set()
    for path, text in files.items():
        for number, line in enumerate(text.split("\n"), 1):
            match = _MARK.search(line)
            if match is not None:
                marks |= {(path, number, kind) for kind in match["kinds"].split()}
    return marks


def read_cases() -> list[tuple[str, str, dict[str, str]]]:
    cases: list[tuple[str, str, dict[str, str]]] = []
    for page in sorted(PAGES.glob("risk-*.md")):
        blocks = list(_BLOCK.finditer(page.read_text("utf-8")))
        prelude = next(block["code"] for block in blocks if block["title"] == "prelude")
        for block in blocks:
            if block["title"] == "prelude":
                continue
            suffix = describe(block["language"]).suffixes[0]
            files = parse_fixture(block["code"]).files
            files = {f"main.{suffix}" if path == "main" else path: text for path, text in files.items()}
            first = next(iter(files))
            files[first] = prelude + files[first]
            cases.append((f"{page.stem}: {block['title']}", block["language"], files))
    return cases


CASES = read_cases()


@pytest.mark.parametrize(("language", "files"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_data_goes_where_the_page_says(language: str, files: dict[str, str]):
    told, marks = find_told(files, language), read_marks(files)
    assert told == marks, "\n".join(
        f"{'missed' if (path, line, kind) in marks else 'not meant'}: {kind} {files[path].splitlines()[line - 1]}"
        for path, line, kind in sorted(told ^ marks)
    )


@pytest.mark.parametrize(("language", "files"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_names_and_places_change_nothing(language: str, files: dict[str, str]):
    """Variables are called otherwise, functions stand farther apart."""
    if any(not path.endswith(".py") for path in files):
        changed = {path: f"\n\n{text}" for path, text in files.items()}
        assert find_told(changed, language) == read_marks(changed)
        return
    changed = {path: _rename(text).replace("\ndef ", "\n\n\n\ndef ") for path, text in files.items()}
    assert find_told(changed, language) == read_marks(changed)


def _rename(text: str) -> str:
    """With every variable of a function called otherwise that is no parameter and stands in no formatted text."""
    tree = ast.parse(text)
    bound = {
        node.id
        for function in ast.walk(tree)
        if isinstance(function, _FUNCTIONS)
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    kept = {node.arg for node in ast.walk(tree) if isinstance(node, (ast.arg, ast.keyword))}
    kept |= {
        inner.id
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name)
    }
    kept |= {
        target.id
        for node in tree.body
        for target in ast.walk(node)
        if isinstance(node, ast.Assign) and isinstance(target, ast.Name)
    }
    kept |= {name for node in ast.walk(tree) if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
    found = "|".join(sorted(re.escape(str(name)) for name in bound - kept))
    return (
        re.sub(rf"(?<![\w.'\"#])(?<!! )(?:{found})\b(?!['\"])", lambda match: f"{match[0]}_other", text)
        if found
        else text
    )


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
