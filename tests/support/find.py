"""Questions of `cq find` over fixtures, and what snapshots must hold."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cq import Workspace
from cq.languages.facts import extract_facts
from cq.languages.registry import get_language
from cq.model.find import FindAnswer
from cq.questions.find import FindOptions
from cq.questions.find.snapshot import take_snapshot
from cq.snapshot.files import HeldFile, IndexedFiles
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
        with workspace.index.reading() as (reader, tree):
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
        with workspace.index.reading() as (reader, tree):
            files = IndexedFiles(reader, tree)
            paths = [file.path for file in reader.files(tree.id) if file.language in languages]
            while done < count:
                file = files.get(chosen.choice(paths))
                assert file is not None
                symbols = [
                    symbol
                    for symbol in file.symbols[0]
                    if symbol.kind != "lambda"  # no result: it is part of what holds it
                    and (
                        symbol.body_start >= 0
                        or (symbol.parent < 0 and symbol.kind not in ("parameter", "type_parameter"))
                    )
                ]
                if symbols and not file.documents[0].problems:
                    _check_one(file, chosen.choice(symbols))
                done += 1
    return done


def _check_one(file: HeldFile, symbol: Any) -> None:
    chunk = file.chunks[0][symbol.chunk]
    span = (symbol.start, symbol.end) if symbol.body_start >= 0 else (chunk.start, chunk.end)
    shown, where = take_snapshot(file, 0, [span]), (file.path, symbol.qualified_name)
    assert not re.search(r"^[^#/]*[=(] *\{\n\s*\}", shown, re.MULTILINE) or re.search(
        r"^[^#/]*[=(] *\{\n\s*\}", file.text.decode(), re.MULTILINE
    ), (where, "a value is shown empty")
    assert file.text[span[0] : span[1]].decode() in shown, where
    language = get_language(file.language)
    assert language is not None
    tree = language.parse(shown.encode())
    assert tree is not None
    assert not tree.root_node.has_error, where
    lines = {line.strip() for line in file.text.decode().splitlines()}
    marked = re.sub(r"[ ]*(?:/\* \.\.\. (?:\d+ more lines )?\*/|# \.\.\. \d+ more lines)[ ]*[});,]*", "", shown)
    written = [line for line in marked.splitlines() if line.strip() not in {*lines, "", "..."}]
    # A stretch that begins or ends inside a line is still one of the source.
    assert all(line.strip() in file.text.decode() for line in written), (where, written)
    words = re.findall(r"[\w$]+", shown)
    facts = extract_facts(shown.encode(), file.language)
    statements = {s.start: s for s in facts.symbols if s.parent < 0}
    holders = set(symbol.qualified_name.split("."))
    if file.language == "python":
        _check_python(file, symbol, shown, where)
        roots = [s.name for s in statements.values() if s.kind_group in ("function", "class", "value")]
        # A class may be there for a field that `self` has of it.
        held = {s.name for s in facts.symbols if s.parent >= 0 and words.count(s.name) > 1}
        held = {facts.symbols[s.parent].name for s in facts.symbols if s.parent >= 0 and s.name in held}
        alone = [name for name in roots if words.count(name) < 2 and name not in holders | held]
        # A statement is shown whole: what else a `try:` or an unpacking binds comes with it.
        assert all(not re.search(rf"^(?:def |class |@).*\b{name}\b", shown, re.MULTILINE) for name in alone), where
    else:
        whole = language.parse(file.text)
        assert whole is not None
        _check_tree(whole.root_node, tree.root_node, span, holders, where)


# What the trees of TypeScript and Rust say by themselves: who declares a name, and where one is bound.
_IMPORTS = {"import_statement", "use_declaration", "extern_crate_declaration"}
_HEADS = {"export_statement", "lexical_declaration", "variable_declaration", "ambient_declaration"}
_NAMED = {
    "function_declaration", "generator_function_declaration", "class_declaration", "abstract_class_declaration",
    "interface_declaration", "type_alias_declaration", "enum_declaration", "variable_declarator", "function_signature",
    "function_item", "struct_item", "enum_item", "union_item", "trait_item", "type_item", "const_item", "static_item",
}  # fmt: skip
_NAMES = {"identifier", "type_identifier", "shorthand_property_identifier"}
_INNER = {"function_expression", "class", "type_parameter", "infer_type", "mapped_type_clause"}  # bind their own name
_BINDERS = {"pattern", "parameters", "parameter", "type_parameters", "name", "alias"}
_REFERRING = {"type", "value", "bounds", "return_type", "default_type", "constraint"}
_BOUND = {*_NAMES, "shorthand_field_identifier", "shorthand_property_identifier_pattern"}
_SCOPED = {"scoped_identifier", "scoped_type_identifier", "nested_type_identifier", "nested_identifier"}


def _check_tree(whole: Any, part: Any, span: tuple[int, int], holders: set[str], where: tuple[str, str]) -> None:
    inside = [node for node in _walk(whole) if span[0] <= node.start_byte and node.end_byte <= span[1]]
    around = [node for node in _walk(whole) if node.start_byte <= span[0] and span[1] <= node.end_byte]
    if any(node.type in ("mod_item", "internal_module", "module") for node in around):
        return  # names there are those of another module
    # Macros are text until they are expanded, and names after a dot or colons are somebody else's.
    used = {_text(node) for node in inside if node.type in _NAMES and not _is_foreign(node)}
    bound: set[str] = set()
    for node in (*inside, *around[1:]):
        for field in _BINDERS:
            child = node.child_by_field_name(field)
            if child is not None and (field != "name" or node.type in _NAMED | _INNER):
                bound |= {_text(name) for name in _walk(child, _REFERRING) if name.type in _BOUND}
    declared, shown = _find_declared(whole), _find_declared(part)
    missing = (used - bound) & declared.keys() - shown.keys()
    assert not missing, (where, missing)
    words = re.findall(rb"[\w$]+", part.text)
    for name, statement in shown.items():
        names = [other for other, held in shown.items() if held == statement]
        used_by = [other for other in names if words.count(other.encode()) > 1 or other in holders]
        assert used_by or statement.type in _IMPORTS or span[0] == 0, (where, f"nothing names {name}")


def _find_declared(root: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for statement in root.named_children:
        todo = [statement]
        while todo:
            node = todo.pop()
            if node.type in _IMPORTS:
                names = [child for child in _walk(node) if child.type == "identifier"]
                found |= {_text(child): statement for child in names if not _is_renamed(child)}
            elif node.type in _HEADS:
                todo += node.named_children
            elif node.type in _NAMED and (name := node.child_by_field_name("name")) is not None:
                found |= {_text(child): statement for child in _walk(name) if child.type in _NAMES}
    return found


def _is_renamed(node: Any) -> bool:
    """`a` of `a as b`, of `a::b` and of `a::*`: not what the statement binds."""
    parent = node.parent
    if parent.type == "use_wildcard":
        return True
    alias = parent.child_by_field_name("alias")
    path = parent.child_by_field_name("path")
    return (alias is not None and alias != node) or path == node or "path" in _fields_above(node)


def _fields_above(node: Any) -> set[str]:
    found: set[str] = set()
    while node.parent is not None and node.parent.type not in ("use_list", "use_declaration"):
        if node.parent.child_by_field_name("path") == node:
            found.add("path")
        node = node.parent
    return found


def _is_foreign(node: Any) -> bool:
    parent = node.parent
    if parent is None or parent.type in ("token_tree", "macro_invocation", "attribute", "pair"):
        return True
    return parent.type in _SCOPED and parent.named_children[0] != node


def _walk(node: Any, but: Iterable[str] = ()) -> list[Any]:
    """In order; without what stands in these fields."""
    found, todo = [], [node]
    while todo:
        node = todo.pop()
        found.append(node)
        left_out = [node.child_by_field_name(field) for field in but]
        todo += [child for child in reversed(node.named_children) if child not in left_out]
    return found


def _text(node: Any) -> str:
    return node.text.decode()


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
