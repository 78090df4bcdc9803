"""Search beside what nobody here wrote: ripgrep for what matches, `ast` and `tokenize` for what a mention is."""

from __future__ import annotations

import ast
import io
import random
import re
import shutil
import subprocess
import sys
import tokenize
import warnings
from collections.abc import Iterator
from keyword import iskeyword
from pathlib import Path

import msgspec
import pytest
from tree_sitter import Node

from cq.answers.page import Page
from cq.languages.registry import get_language
from cq.model.source import SourceFile
from cq.questions.search.classify import Hit, classify
from cq.questions.search.scan import SearchOptions
from cq.workspace import Workspace
from tests.support.samples import read_corpus
from tests.support.search import hold

pytestmark = pytest.mark.slow

_WORD = re.compile(rb"(?<![\w.\x80-\xff])[A-Za-z_]\w*(?![\w\x80-\xff])")


def test_python_mentions_are_what_ast_and_tokenize_say():
    differences: list[str] = []
    checked = 0
    for source in read_corpus("django", (".py",), step=9):
        expected = _classes_of_python(source.text)
        if expected is None:
            continue
        for hit in _sample(source, 6):
            wanted = expected(hit.start)
            if wanted is None:
                continue
            checked += 1
            if hit.category not in wanted:
                differences.append(f"{source.path}:{_line(source, hit)} {hit.category}, expected {wanted}")
    assert checked >= 1000
    assert not differences, "\n".join(differences)


@pytest.mark.parametrize(
    ("corpus", "endings", "step"), [("rxjs", (".ts",), 2), ("zod", (".ts",), 2), ("ruff", (".rs",), 12)]
)
def test_other_mentions_are_what_the_tree_says(corpus: str, endings: tuple[str, ...], step: int):
    differences: list[str] = []
    checked = 0
    for source in read_corpus(corpus, endings, step=step):
        language = get_language(source.language)
        assert language is not None
        tree = language.parse(source.text)
        if tree is None or tree.root_node.has_error:
            continue
        for hit in _sample(source, 8):
            leaf = tree.root_node.descendant_for_byte_range(hit.start, hit.start + 1)
            wanted = _class_of_leaf(leaf) if leaf is not None else ""
            if not wanted:
                continue
            checked += 1
            if _COARSE.get(hit.category, "use") != wanted:
                differences.append(f"{source.path}:{_line(source, hit)} {hit.category}, expected {wanted}")
    assert checked >= 400
    assert not differences, "\n".join(differences)


_QUERIES = [
    ("get_or_create", "identifier"), ("queryset", "identifier"), ("QuerySet", "identifier"), ("e", "identifier"),
    ("models.Model", "identifier"), ("handle_(request|response)", "regex"), (r"def \w+_create\(", "regex"),
    (r"\bself\.\w+\s*=", "regex"), (r"^class \w+\(", "regex"), (r"[A-Z]{4,}_\d", "regex"), (r"é|ü", "regex"),
    ("can't", "literal"), ("->", "literal"), ("don’t", "literal"), ("://", "literal"), ("Ü", "literal"),
]  # fmt: skip


def test_every_match_that_ripgrep_finds_and_no_other(tmp_path: Path):
    rg = shutil.which("rg", path=str(Path(sys.executable).parent)) or shutil.which("rg")
    assert rg, "ripgrep comes with the development extra"
    root = tmp_path / "repo"
    for source in read_corpus("django", (".py", ".txt", ".js", ".html"), step=6):
        path = root / source.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(source.text)
    with Workspace.open(root, index_dir=tmp_path / "index") as workspace:
        indexed = {file.path for file in workspace.files()}
        for text, mode in _QUERIES:
            answer = workspace.search(
                SearchOptions(text, mode=mode, include_strings=True, enrich=False, profile="audit", page=Page(0, 0))
            )
            found = {
                (f.location.path, f.location.start_line, f.location.start)
                for section in answer.sections
                for f in section.findings
                if f.location is not None and f.stable_id
            }
            assert found == _ripgrep(rg, root, text, mode, indexed), text


def _ripgrep(rg: str, root: Path, text: str, mode: str, indexed: set[str]) -> set[tuple[str, int, int]]:
    options = {"identifier": ["-w", "-F"], "literal": ["-F"], "regex": []}[mode]
    done = subprocess.run(
        [rg, "--json", "--smart-case", "--no-config", *options, "--", text, "."],
        cwd=root,
        capture_output=True,
        check=False,
    )
    found: set[tuple[str, int, int]] = set()
    for line in done.stdout.splitlines():
        event = msgspec.json.decode(line)
        if event["type"] == "match":
            data = event["data"]
            path = data["path"]["text"].removeprefix("./")
            if path in indexed:
                base = data["absolute_offset"]
                found |= {(path, data["line_number"], base + part["start"]) for part in data["submatches"]}
    return found


def _sample(source: SourceFile, count: int) -> list[Hit]:
    """Some words of the file, wherever they stand: the same on every run."""
    spans = [found.span() for found in _WORD.finditer(source.text)]
    chosen = random.Random(source.path).sample(spans, min(count, len(spans)))
    return classify(hold(source), sorted(chosen))


def _line(source: SourceFile, hit: Hit) -> str:
    number = source.text.count(b"\n", 0, hit.start) + 1
    return f"{number}: {source.text[hit.start : hit.end].decode()}"


# -- Python -----------------------------------------------------------------------------------------


def _classes_of_python(text: bytes):
    """offset -> the categories that fit, None for a place that this version of Python cannot tell."""
    if b"\r" in text or not text.isascii():
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
        tokens = list(tokenize.tokenize(io.BytesIO(text).readline))
    except (SyntaxError, tokenize.TokenError):
        return None
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    by_name = dict(_walk(tree))
    docs = _find_docs(tree)
    spans = [
        (starts[t.start[0] - 1] + t.start[1], starts[t.end[0] - 1] + t.end[1], t)
        for t in tokens
        if t.type != tokenize.ENCODING
    ]

    def find(offset: int) -> set[str] | None:
        token = next((t for first, last, t in spans if first <= offset < last), None)
        if token is None:
            return None
        if token.type == tokenize.COMMENT:
            return {"comment"}
        if token.type == tokenize.STRING:
            if "f" in re.match(r"\w*", token.string)[0].lower():  # type: ignore[index]
                return None  # before 3.12 the code inside is not told apart
            return {"docstring"} if any(a <= token.start < b for a, b in docs) else {"string"}
        if token.type != tokenize.NAME:
            return {"string"} if "FSTRING" in tokenize.tok_name[token.type] else None
        if iskeyword(token.string) or token.string in ("match", "case", "type", "_"):
            return None
        return by_name.get(token.start, {"reference"})

    return find


def _find_docs(tree: ast.Module) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    found: list[tuple[tuple[int, int], tuple[int, int]]] = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.body:
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                found.append(((first.lineno, first.col_offset), (first.end_lineno or 0, first.end_col_offset or 0)))
    return found


_BOUND = {"definition", "assignment"}


def _walk(tree: ast.AST) -> Iterator[tuple[tuple[int, int], set[str]]]:
    """(line, column) of names -> what they are; later rows overrule earlier ones."""
    annotated: set[ast.AST] = set()
    for node in ast.walk(tree):
        for field in ("annotation", "returns"):
            inner = getattr(node, field, None)
            if isinstance(inner, ast.AST):
                annotated.update(ast.walk(inner))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield (node.lineno, node.col_offset), _BOUND if not isinstance(node.ctx, ast.Load) else {"reference"}
        elif isinstance(node, ast.Attribute):
            kind = _BOUND if not isinstance(node.ctx, ast.Load) else {"reference"}
            yield _last(node), kind
        elif isinstance(node, ast.arg):
            yield (node.lineno, node.col_offset), {"parameter"}
        elif isinstance(node, ast.keyword) and node.arg:
            yield (node.lineno, node.col_offset), {"keyword_argument"}
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            pass
    for node in annotated:
        if isinstance(node, (ast.Name, ast.Attribute)):
            yield _last(node), {"annotation"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
            yield _last(node.func), {"callsite"}
    for node in ast.walk(tree):
        for decorator in getattr(node, "decorator_list", ()):
            named = decorator.func if isinstance(decorator, ast.Call) else decorator
            if isinstance(named, (ast.Name, ast.Attribute)):
                yield _last(named), {"decorator"}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            kind = {"from_import" if isinstance(node, ast.ImportFrom) else "import"}
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                for column in range(200):
                    place = (line, column)
                    if (node.lineno, node.col_offset) <= place < (node.end_lineno or 0, node.end_col_offset or 0):
                        yield place, kind
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            word = {"FunctionDef": "def ", "AsyncFunctionDef": "async def ", "ClassDef": "class "}[type(node).__name__]
            yield (node.lineno, node.col_offset + len(word)), {"definition"}
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield (node.lineno, -1), {"assignment"}


def _last(node: ast.Name | ast.Attribute) -> tuple[int, int]:
    if isinstance(node, ast.Name):
        return node.lineno, node.col_offset
    return node.end_lineno or 0, (node.end_col_offset or 0) - len(node.attr)


# -- TypeScript and Rust: coarser, by the parents of a leaf ---------------------------------------------

_COARSE = {
    "definition": "binding", "parameter": "binding", "assignment": "binding", "callsite": "call", "decorator": "call",
    "import": "import", "from_import": "import", "comment": "comment", "docstring": "comment", "string": "string",
    "text": "text",
}  # fmt: skip
_DECLARATIONS = {
    "function_declaration", "class_declaration", "interface_declaration", "type_alias_declaration", "enum_declaration",
    "method_definition", "method_signature", "property_signature", "public_field_definition",
    "abstract_class_declaration",
    "function_item", "struct_item", "enum_item", "trait_item", "type_item", "const_item", "static_item", "mod_item",
    "function_signature", "function_signature_item", "macro_definition", "enum_variant", "field_declaration",
    "union_item",
    "type_parameter", "internal_module", "module", "associated_type", "generator_function_declaration",
}  # fmt: skip


def _class_of_leaf(leaf: Node) -> str:
    """ "" where the walk would need more than parents to tell, and for keywords."""
    node: Node | None = leaf
    if leaf.type in ("predefined_type", "primitive_type") or (not leaf.is_named and leaf.type.isidentifier()):
        return ""
    while node is not None:
        if "comment" in node.type:
            return "comment"
        if node.type in (
            "template_substitution",
            "token_tree",
            "macro_invocation",
            "attribute_item",
            "inner_attribute_item",
        ):
            return ""
        if (
            node.type == "string"
            and node.parent is not None
            and node.parent.type in ("import_statement", "export_statement")
        ):
            return "import"  # the module's name
        if node.type in ("string", "template_string", "string_literal", "raw_string_literal", "regex", "char_literal"):
            return "string"
        if leaf.type in ("crate", "super", "self"):
            return ""
        if node.type in ("import_statement", "use_declaration", "extern_crate_declaration", "export_clause"):
            return "import" if node.type != "export_clause" else ""
        node = node.parent
    parent = leaf.parent
    if parent is None or "identifier" not in leaf.type:
        return ""
    if parent.type in _DECLARATIONS and parent.child_by_field_name("name") == leaf:
        # Overloads share one symbol, so the type parameters of each but the body's are none of their own; and what
        # a type without a name holds is named by no one: `x: {key: string}`.
        return "" if parent.type in ("type_parameter", "property_signature") else "binding"
    if parent.type in ("call_expression", "new_expression"):
        callee = parent.child_by_field_name("function") or parent.child_by_field_name("constructor")
        return "call" if callee == leaf else "use"
    if parent.type == "member_expression" and parent.child_by_field_name("property") == leaf:
        above = parent.parent
        called = above is not None and above.type in ("call_expression", "new_expression")
        return "call" if called and above.children[0 if above.type == "call_expression" else 1] == parent else ""  # type: ignore[union-attr]
    if parent.type == "field_expression" and parent.child_by_field_name("field") == leaf:
        above = parent.parent
        return "call" if above is not None and above.type == "call_expression" and above.children[0] == parent else ""
    if leaf.type == "type_identifier" and parent.type in (
        "type_annotation",
        "type_arguments",
        "generic_type",
        "union_type",
    ):
        return "use"
    if parent.type == "arguments":
        return "use"
    return ""
