"""Questions of `cq find` over fixtures, and what snapshots must hold."""

from __future__ import annotations

import ast
import random
import re
from pathlib import Path
from typing import Any

from cq import Workspace
from cq.features.files import HeldFile, IndexedFiles
from cq.features.find import FindOptions
from cq.features.find.snapshot import take_snapshot
from cq.model.find import FindAnswer
from cq.syntax import extract_facts, get_language
from tests.support.fixture import parse_fixture


def write_fixture(root: Path, snippet: str) -> None:
    for path, text in parse_fixture(snippet).files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def find_fixture(root: Path, snippet: str, query: str, **options: Any) -> FindAnswer:
    write_fixture(root, snippet)
    with Workspace.open(root, index_dir=root / ".index") as workspace:
        return workspace.find(FindOptions(query, **options))


def check_snapshot(root: Path, snippet: str, names: str, expected: str) -> None:
    """The snapshot of the definitions with these qualified names is exactly the text."""
    write_fixture(root, snippet)
    (path,) = parse_fixture(snippet).files
    with Workspace.open(root, index_dir=root / ".index") as workspace:
        workspace.refresh()
        with workspace._reading() as (reader, tree):
            file = IndexedFiles(reader, tree).get(path)
            assert file is not None
            spans = [(s.start, s.end) for s in file.symbols[0] if s.qualified_name in names.split()]
            assert take_snapshot(file, 0, spans) == expected.lstrip("\n")


def check_random_snapshots(root: Path, index: Path, languages: set[str], count: int, seed: int = 7) -> int:
    """Of random symbols: in full and as they stand, in text that parses; what they name and the file declares is
    declared, by an independent reading for Python; nothing is declared that nothing names. Returns how many."""
    chosen, done = random.Random(seed), 0
    with Workspace.open(root, index_dir=index) as workspace:
        workspace.refresh()
        with workspace._reading() as (reader, tree):
            files = IndexedFiles(reader, tree)
            paths = [file.path for file in reader.files(tree.id) if file.language in languages]
            while done < count:
                file = files.get(chosen.choice(paths))
                assert file is not None
                symbols = [
                    symbol
                    for symbol in file.symbols[0]
                    if symbol.body_start >= 0
                    or (symbol.parent < 0 and symbol.kind not in ("parameter", "type_parameter"))
                ]
                if symbols and not file.documents[0].problems:
                    _check_one(file, chosen.choice(symbols))
                done += 1
    return done


def _check_one(file: HeldFile, symbol: Any) -> None:
    chunk = file.chunks[0][symbol.chunk]
    span = (symbol.start, symbol.end) if symbol.body_start >= 0 else (chunk.start, chunk.end)
    shown, where = take_snapshot(file, 0, [span]), (file.path, symbol.qualified_name)
    assert file.text[span[0] : span[1]].decode() in shown, where
    language = get_language(file.language)
    assert language is not None
    tree = language.parse(shown.encode())
    assert tree is not None
    assert not tree.root_node.has_error, where
    lines = {line.strip() for line in file.text.decode().splitlines()}
    written = [line for line in shown.splitlines() if line.strip() not in {*lines, "", "..."}]
    # A stretch that begins or ends inside a line is still one of the source.
    assert all(line.strip() in file.text.decode() for line in written), (where, written)
    words = re.findall(r"[\w$]+", shown)
    facts = extract_facts(shown.encode(), file.language)
    statements = {s.start: s for s in facts.symbols if s.parent < 0}
    holders = set(symbol.qualified_name.split("."))
    if file.language == "python":
        _check_python(file, symbol, shown, where)
        roots = [s.name for s in statements.values() if s.kind_group in ("function", "class", "value")]
        alone = [name for name in roots if words.count(name) < 2 and name not in holders]
        # A statement is shown whole: what else a `try:` or an unpacking binds comes with it.
        assert all(not re.search(rf"^(?:def |class |@).*\b{name}\b", shown, re.MULTILINE) for name in alone), where


def _check_python(file: HeldFile, symbol: Any, shown: str, where: tuple[str, str]) -> None:
    whole, part = ast.parse(file.text), ast.parse(shown)
    line = file.lines.line(symbol.name_start)
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    found = [n for n in ast.walk(whole) if isinstance(n, kinds) and (n.name, n.lineno) == (symbol.name, line)]
    for target in found:
        nodes = list(ast.walk(target))
        used = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        bound = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
        bound |= {n.arg for n in nodes if isinstance(n, ast.arg)}
        bound |= {n.name for n in nodes if isinstance(n, kinds) and n is not target}
        bound |= {n.name for n in nodes if isinstance(n, ast.ExceptHandler) and n.name}
        bound |= _imported(nodes)
        around = [n for n in ast.walk(whole) if isinstance(n, kinds) and n.lineno < line <= (n.end_lineno or 0)]
        for holder in around:  # a name of a function around it is that function's, whatever the module calls so
            bound |= {n.id for n in ast.walk(holder) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            bound |= {n.arg for n in ast.walk(holder) if isinstance(n, ast.arg)}
            bound |= {n.name for n in ast.walk(holder) if isinstance(n, kinds)} | _imported(list(ast.walk(holder)))
        missing = (used - bound) & _declared(whole) - _declared(part)
        assert not missing, (where, missing)


def _declared(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for statement in tree.body:
        inner = isinstance(statement, ast.If | ast.Try | ast.With | ast.For | ast.While)
        nodes = list(ast.walk(statement)) if inner else [statement]
        names |= {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
        names |= _imported(nodes)
        for node in nodes:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            names |= {n.id for target in targets if target for n in ast.walk(target) if isinstance(n, ast.Name)}
    return names


def _imported(nodes: list[ast.AST]) -> set[str]:
    return {
        (alias.asname or alias.name).partition(".")[0]
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
