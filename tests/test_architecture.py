"""The rules of the house that a machine can check. A rule that fails names the file and what to do."""

from __future__ import annotations

import ast
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from importlinter.cli import lint_imports

from cq.language import all_languages
from cq.questions.table import QUESTIONS
from cq.surfaces.cli import COMMANDS, find_command

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "cq"
PURE = {"model", "syntax", "languages", "identity", "query", "graph", "risk"}
# What belongs to one layer: module -> the packages of cq that may import it.
RESERVED = {
    "sqlite3": {"store"},
    "argparse": {"surfaces"},
    "http": {"surfaces", "embed"},  # embed: hosted models are asked over it, and its failures caught
    "json": {"surfaces", "providers"},
}
# These segfault in the tree-sitter binding (facts are in byte offsets anyway).
CRASHING = {"start_point", "end_point", "progress_callback", "first_child_for_byte", "first_named_child_for_byte"}
# Each of these walks down from the root of the tree: in a loop over nodes, the square or the cube of a text.
WALKING = {
    "next_sibling", "prev_sibling", "next_named_sibling", "prev_named_sibling", "child_with_descendant",
    "descendant_for_byte_range", "named_descendant_for_byte_range",
}  # fmt: skip
GOES_ON = ["child_with_descendant"]  # asked of the last node of a path, it looks at the children of that one alone
TREE_MODULE = Path("syntax/tree.py")
# What only nodes, trees and cursors of tree-sitter have.
OF_NODES = WALKING | {
    "start_byte", "end_byte", "byte_range", "child_by_field_name", "children_by_field_name", "named_child",
    "named_children", "named_child_count", "kind_id", "root_node", "field_name_for_named_child", "is_extra",
    "is_missing", "has_error", "goto_first_child", "goto_next_sibling", "goto_parent", "id_for_node_kind",
}  # fmt: skip
BANNED_MODULES = {"utils", "common", "shared", "helpers", "base", "manager", "runtime", "contracts", "types"}
BANNED_CLASSES = re.compile(r"(V\d+|Dto|Payload|Impl|Factory|Manager)$")

MODULES = {path.relative_to(SOURCE): ast.parse(path.read_bytes()) for path in sorted(SOURCE.rglob("*.py"))}


def test_layers(capsys: pytest.CaptureFixture[str]):
    status = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    assert status == 0, capsys.readouterr().out


def test_every_pure_package_is_under_the_contract_against_io():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = {contract["type"]: contract for contract in config["tool"]["importlinter"]["contracts"]}
    existing = {f"cq.{name}" for name in PURE if (SOURCE / name).is_dir()}
    assert set(contracts["forbidden"]["source_modules"]) == existing


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_made_by_one_module(command: str):
    module, line = COMMANDS[command]
    name = "question" if command in QUESTIONS else command.replace("-", "_")
    assert module == f"cq.surfaces.cli.{name}"
    assert line
    assert not line.endswith(".")
    loaded = find_command(command)
    assert callable(loaded.configure)
    assert callable(loaded.run)


def test_no_empty_words_for_module_names():
    # A command's module or folder is called what people type: `cq types` is about types.
    commands = {name.replace("-", "_") for name in COMMANDS}
    named = [path for path in MODULES if commands.isdisjoint((path.stem, path.parent.name))]
    assert (
        _offenders(path for path in named if BANNED_MODULES & {part.removesuffix(".py") for part in path.parts}) == []
    )


def test_every_module_says_what_lives_in_it():
    assert _offenders(path for path, tree in MODULES.items() if not ast.get_docstring(tree)) == []


def test_no_pattern_suffix_on_class_names():
    classes = ((path, node) for path, node in _nodes(ast.ClassDef) if BANNED_CLASSES.search(node.name))
    assert [f"{path}: {node.name}" for path, node in classes] == []


def test_only_surfaces_print_and_read_the_command_line():
    def talks(node: ast.AST) -> bool:
        match node:
            case ast.Name(id="print") | ast.Attribute(value=ast.Name(id="sys"), attr="argv" | "stdout" | "stderr"):
                return True
            case _:
                return False

    outside = (
        path for path, node in _nodes(ast.AST) if talks(node) and path.parts[0] not in ("surfaces", "__main__.py")
    )
    assert _offenders(outside) == []


def test_databases_json_and_arguments_stay_in_their_layers():
    strays = [
        f"{path} imports {name}"
        for path, node in _nodes(ast.Import, ast.ImportFrom)
        for name in _imported(node)
        if name in RESERVED and path.parts[0] not in RESERVED[name]
    ]
    assert strays == []


def test_one_module_runs_git():
    def looks_for_git(node: ast.Call) -> bool:
        match node:
            case ast.Call(func=ast.Name(id="find_in_path" | "find_program"), args=[ast.Constant(value="git"), *_]):
                return True
            case _:
                return any(isinstance(each, ast.List) and _begins_with_git(each) for each in node.args)

    def _begins_with_git(words: ast.List) -> bool:
        return bool(words.elts) and isinstance(words.elts[0], ast.Constant) and words.elts[0].value == "git"

    assert _offenders(path for path, node in _nodes(ast.Call) if looks_for_git(node)) == ["source/git.py"]


# Words that also mean something else than a language, anywhere.
_COMMON_WORDS = {"json", "text"}  # forms of output and of a finding
# Where the id of a language is spelled outside its folder, and why.
SPELLED = {
    ("indexing/doctor.py", "python"): "the interpreter that cq runs in",
    ("indexing/doctor.py", "typescript"): "the name of a package",
    ("providers/basedpyright.py", "python"): "a server for this language",
    ("providers/bytecode.py", "python"): "of the interpreter that cq runs in",
    ("providers/hover.py", "rust"): "how rust-analyzer writes a name",
    ("providers/pyrefly.py", "python"): "a server for this language",
    ("providers/rust_analyzer.py", "rust"): "a server for this language",
    ("providers/session.py", "markdown"): "a word of the protocol",
    ("providers/symtables.py", "python"): "of the interpreter that cq runs in",
    ("providers/ty.py", "python"): "a server for this language",
    ("risk/guards.py", "sql"): "a kind of sink",
    ("risk/rules.py", "sql"): "a kind of sink",
    ("providers/typescript.py", "javascript"): "a server for this language",
    ("providers/typescript.py", "jsx"): "a server for this language",
    ("providers/typescript.py", "tsx"): "a server for this language",
    ("providers/typescript.py", "typescript"): "a server for this language",
    ("providers/typescript_api.py", "jsx"): "an option of the compiler",
    ("providers/typescript_api.py", "typescript"): "the name of a provider",
    ("questions/neighborhood/foreign.py", "c"): "the C ABI, a way between languages",
    ("surfaces/cli/completion.py", "shell"): "the argument of the command",
}  # fmt: skip


def test_a_language_is_spelled_only_in_its_folder():
    wanted = all_languages().keys() - _COMMON_WORDS
    strays = {
        (path.as_posix(), node.value)
        for path, node in _nodes(ast.Constant)
        if node.value in wanted and not (path.parts[0] == "languages" and len(path.parts) > 2)
    }
    assert strays == SPELLED.keys()


def test_the_folder_of_a_language_is_imported_only_by_its_description():
    outside = [
        f"{path} imports {name}"
        for path, node in _nodes(ast.ImportFrom)
        if path.parts[0] != "languages" and isinstance(node.module, str)
        if (name := node.module).startswith("cq.languages.") and (SOURCE / "languages" / name.split(".")[2]).is_dir()
    ]
    # It reads how Rust says what it is called by others: a bridge from one language to another.
    assert outside == ["questions/neighborhood/foreign.py imports cq.languages.rust.foreign"]


# Where something is opened that no repository and no argument names, and what that is.
OPENERS = {
    "opening.py": "the one place itself",
    "embed/__init__.py": "weights that are part of the program",
    "embed/minilm.py": "weights that are part of a package",
    "embed/weights/__init__.py": "weights that are part of the program",
    "language.py": "what is known of languages and their queries, part of the program",
    "store/database.py": "the schema, part of the program; locks and data files, made here",
    "store/lock.py": "the lock, and what is written",
    "store/kept.py": "what is written",
    "store/warm.py": "/proc",
    "store/artifacts.py": "what is written",
    "questions/export/scip.py": "what is written",
    "source/read.py": "directories, on the way to a file",
    "source/git.py": "what is written, in a directory of our own",
    "indexing/events.py": "/proc",
    "indexing/location.py": "the lock, and what is written",
    "providers/npm.py": "what is written",
    "surfaces/client.py": "the user's own settings; it imports next to nothing",
    "surfaces/daemon.py": "/proc, /dev/null, the daemon's own lock",
    "surfaces/cli/__init__.py": "/dev/null",
    "surfaces/cli/options.py": "/proc",
    "surfaces/mcp/stdio.py": "/dev/null",
    "surfaces/process.py": "/dev/null",
}


def test_files_that_somebody_names_are_opened_in_one_place():
    def opens(node: ast.Call) -> bool:
        match node.func:
            case ast.Name(id="open"):
                return True
            case ast.Attribute(attr="read_text" | "read_bytes"):
                return True
            case ast.Attribute(value=ast.Name(id="os" | "io" | "gzip" | "codecs"), attr="open"):
                return True
            case ast.Attribute(attr="open"):
                modes = [each.value for each in node.args if isinstance(each, ast.Constant)]
                return any(isinstance(mode, str) and re.fullmatch(r"[rwxa][bt+]*", mode) for mode in modes)
            case _:
                return False

    found = _offenders(path for path, node in _nodes(ast.Call) if opens(node))
    assert [path for path in found if path not in OPENERS] == []
    assert [path for path in OPENERS if path not in found] == []


def test_names_with_an_underscore_stay_in_their_file():
    strays = [
        f"{path} imports {alias.name} of {node.module}"
        for path, node in _nodes(ast.ImportFrom)
        for alias in node.names
        if alias.name.startswith("_") and not alias.name.startswith("__") and str(node.module).startswith("cq")
    ]
    assert strays == []


def test_documents_are_read_by_the_accessors_that_note_it():
    """The linker reads documents as views (cq.graph.engine.view): what was read without a note is a stale link after an
    edit."""
    # What documents are made of, and those who link all code of a document: that is linked again when it changes.
    makers = {f"graph/{name}.py" for name in ("unit", "scopes", "items", "names", "corpus")}
    own = {f"graph/{name}.py" for name in ("resolve", "links", "given")}
    readers = [
        path
        for path in MODULES
        if path.match("graph/*.py") or path.match("languages/*/*.py")
        if path.as_posix() not in makers
    ]
    strays: list[str] = []
    for path in readers:
        for node in ast.walk(MODULES[path]):
            match node:
                case ast.ImportFrom(module=str(module), names=names) if module.startswith("cq.graph."):
                    inner = module.startswith("cq.graph.engine.") and module not in (
                        "cq.graph.engine.view",
                        "cq.graph.engine.cells",
                    )
                    raw = module == "cq.graph.unit" and path.as_posix() not in own and "Unit" in {n.name for n in names}
                    strays += [f"{path} imports from {module}"] * (inner or raw)
                case ast.Attribute(attr="raw") if path.as_posix() not in own:
                    strays.append(f"{path} reads a document without a note")
                case ast.Attribute(attr="note" | "_note") | ast.Name(id="Keys"):
                    strays.append(f"{path} notes what it reads by hand")
                case _:
                    pass
    assert len(readers) > 30
    assert strays == []


def test_modules_and_classes_of_the_heart_are_short():
    heart = [path for path in MODULES if path.parts[0] in ("graph", "syntax", "languages", "semantics")]
    assert [path for path in heart if len((SOURCE / path).read_text("utf-8").splitlines()) > 600] == []
    classes = [(path, node) for path, node in _nodes(ast.ClassDef) if path in heart]
    long = [(path, node) for path, node in classes if (node.end_lineno or 0) - node.lineno >= 400]
    unexplained = [f"{path}: {node.name}" for path, node in long if "lines" not in (ast.get_docstring(node) or "")]
    assert len(classes) > 100
    assert unexplained == []


def test_nothing_that_crashes_the_binding():
    def name(node: ast.AST) -> str | None:
        match node:
            case ast.Attribute(attr=word) | ast.keyword(arg=word):
                return word
            case _:
                return None

    assert _offenders(path for path, node in _nodes(ast.Attribute, ast.keyword) if name(node) in CRASHING) == []


def test_one_module_knows_trees():
    """The type checker sees no attributes on a Node; this sees those that are asked of something it cannot type."""
    others = [(path, node) for path, node in _nodes(ast.Attribute) if path != TREE_MODULE]
    assert _offenders(path for path, node in others if node.attr in OF_NODES) == []
    imports = [(path, node) for path, node in _nodes(ast.Import, ast.ImportFrom) if "tree_sitter" in _imported(node)]
    assert _offenders(path for path, _ in imports) == [str(TREE_MODULE)]


def test_no_node_is_asked_for_what_is_around_it():
    """`exports.a = exports.a = … = 1` cost the cube of its length; `Ancestors` and `find_path` are how to ask."""
    inside = [node for path, node in _nodes(ast.Attribute) if path == TREE_MODULE]
    assert [node.attr for node in inside if node.attr in WALKING] == ["descendant_for_byte_range", *GOES_ON]
    assert "parent" not in {node.attr for node in inside}


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_commands_named_in_the_docs_exist(page: str):
    text = (ROOT / page).read_text()
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z-]+)", _code(text)))
    assert named
    assert named <= targets
    assert set(re.findall(r"(?<!from )(?<![\w/.-])cq ([a-z][a-z-]*)", _code(text))) <= set(COMMANDS)


def test_ci_runs_the_readmes_test_command():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "make check" in script.read_text()
    (prerequisites,) = re.findall(r"^check:(.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert "test" in prerequisites.split()
    assert "make test" in _code((ROOT / "README.md").read_text())


def _nodes(*kinds: type[ast.AST]) -> Iterator[tuple[Path, Any]]:
    for path, tree in MODULES.items():
        for node in ast.walk(tree):
            if isinstance(node, kinds):
                yield path, node


def _imported(node: ast.AST) -> list[str]:
    """Top-level packages that an import statement names."""
    match node:
        case ast.Import(names=names):
            return [alias.name.partition(".")[0] for alias in names]
        case ast.ImportFrom(module=str(module), level=0):
            return [module.partition(".")[0]]
        case _:
            return []


def _code(markdown: str) -> str:
    """The fenced blocks and inline code of a page."""
    return "\n".join(re.findall(r"```.*?```|`[^`\n]+`", markdown, re.DOTALL))


def _offenders(paths: Iterator[Path]) -> list[str]:
    return sorted({path.as_posix() for path in paths})
