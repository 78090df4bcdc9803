"""How many calls of small programs are found, and how many of the found are made: tests/cases/calls-*.md, by category.

Their labels are checked by running them: Python under a profile function, JavaScript with a line of its own in every
function that looks at the stack. A call that is made and not labelled is an error of the page, and fails the run.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from cq.graph.unit import Unit
from cq.languages.registry import get_language
from cq.source.language import detect_language
from tests.support.programs import Calls, Linked, Program, name_of, read_programs

if TYPE_CHECKING:
    from tree_sitter import Node

# Page -> precision and recall that are wanted of certain and possible edges.
PAGES = {"calls-python.md": (0.99, 0.97), "calls-javascript.md": (0.95, 0.90)}
SECONDS = 20  # for one program


def run(results: dict[str, Any]) -> None:
    results["tables"], results["goals"] = {}, []
    for page, (precision, recall) in PAGES.items():
        counts: dict[str, Counter[str]] = {}
        programs = read_programs(page)
        ran = Counter[str]()
        for program in programs:
            made = trace(program)
            if made is not None:
                surplus = made - program.expected
                assert not surplus, f"{page}: {program.category}: {program.title}: also made: {sorted(surplus)}"
                ran.update(labelled=len(program.expected), made=len(made))
            found, certain = Linked(program.files).find_calls()
            for name in (program.category, "all"):
                counts.setdefault(name, Counter()).update({
                    "programs": 1, "calls": len(program.expected), "found": len(found & program.expected),
                    "not made": len(found - program.expected), "certain": len(certain),
                    "certain, not made": len(certain - program.expected),
                })  # fmt: skip
        rows = [{"category": name, **_rates(count)} for name, count in sorted(counts.items())]
        results["tables"][f"{page}: {ran['made']} of {ran['labelled']} labels were seen to be called"] = rows
        every = _rates(counts["all"])
        results["goals"] += [
            _goal(f"{page}: precision at least {precision}", every["precision"], every["precision"] >= precision),
            _goal(f"{page}: recall at least {recall}", every["recall"], every["recall"] >= recall),
        ]


def _rates(count: Counter[str]) -> dict[str, Any]:
    found = count["found"] + count["not made"]
    return {
        **count,
        "precision": round(count["found"] / max(found, 1), 3),
        "recall": round(count["found"] / max(count["calls"], 1), 3),
    }


def _goal(goal: str, measured: float, met: bool) -> dict[str, Any]:
    return {"goal": goal, "measured": measured, "met": met}


def trace(program: Program) -> Calls | None:
    """The calls that running a program makes; None where nothing here runs it."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        is_python = "main.py" in program.files
        node = None if is_python else shutil.which("node")
        if not is_python and node is None:
            return None
        texts = program.files if is_python else {path: mark(path, text) for path, text in program.files.items()}
        for path, text in texts.items():
            place = root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        if is_python:
            done = _run([sys.executable, "-I", str(Path(__file__).with_name("trace_python.py")), str(root)])
            pairs = msgspec.json.decode(done.stdout, type=list[tuple[tuple[str, int, str], tuple[str, int, str]]])
            places = dict(_name_python(program.files))
            return {
                (caller, callee)
                for source, target in pairs
                for caller, callee in [_choose(program, places[source], places[target])]
            }
        main = next(path for path in program.files if path.startswith("main."))
        if main.endswith(".ts") and not _strips_types(str(node)):
            return None
        done = _run([str(node), "--no-warnings", *_FLAGS[main.endswith(".ts")], str(root / main)])
        return set(_read_stacks(root, program.files, texts, done.stderr))


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise AssertionError(done.stderr[-2000:])
    return done


def _choose(program: Program, callers: list[str], callees: list[str]) -> tuple[str, str]:
    """Two functions may begin on one line: then the one that is expected is meant."""
    pairs = [(caller, callee) for caller in callers for callee in callees]
    return next((pair for pair in pairs if pair in program.expected), pairs[0])


def _name_python(files: dict[str, str]) -> Iterator[tuple[tuple[str, int, str], list[str]]]:
    """Path, line and Python's own name of every function -> the names that pages give to what begins there."""
    found: dict[tuple[str, int, str], list[str]] = {}
    for path, text in files.items():
        found[path, 0, "<module>"] = [name_of(path, "")]
        seen = Counter[str]()
        todo: list[tuple[ast.AST, str, str]] = [(ast.parse(text), "", "")]
        while todo:
            node, holder, bound = todo.pop()
            inner: list[tuple[ast.AST, str, str]] = []
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
                own = getattr(node, "name", "<lambda>")
                name = ".".join(part for part in (holder, bound or own) if part)
                seen[name] += 1
                holder_name = name if seen[name] == 1 else f"{name}#{seen[name]}"
                line = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])
                found.setdefault((path, line, own), []).append(name_of(path, holder_name))
                # Defaults and decorators are code of what stands around.
                body = node.body if isinstance(node.body, list) else [node.body]
                outside = [*node.args.defaults, *node.args.kw_defaults] if not isinstance(node, ast.ClassDef) else []
                inner = [(child, holder_name, "") for child in body]
                inner += [(child, holder, "") for child in outside if child is not None]
            else:
                target = node.targets[0] if isinstance(node, ast.Assign) else None
                named = target.id if isinstance(target, ast.Name) else ""
                inner = [
                    (child, holder, named if isinstance(child, ast.Lambda) else "")
                    for child in ast.iter_child_nodes(node)
                ]
            todo += reversed(inner)
    yield from found.items()


# -- JavaScript -------------------------------------------------------------------------------------

_FUNCTIONS = ("function_declaration", "function_expression", "arrow_function", "method_definition")
_GENERATORS = ("generator_function", "generator_function_declaration")
_FLAGS = {False: (), True: ("--experimental-strip-types",)}
_FRAME = re.compile(r"at (?:.*?\()?(?:file://)?(/[^():]+):(\d+):(\d+)\)?$")
# A line per call: the places on the stack, from the function itself upward.
_LOOK = 'console.error("\\u0001" + new Error().stack.replaceAll("\\n", "\\u0002"))'


def mark(path: str, text: str) -> str:
    """The program with a look at the stack at the beginning of every function. Generators run later: not there."""
    source = text.encode()
    put: list[tuple[int, str]] = []
    for node, body in _find_functions(path, source):
        if node.type in _GENERATORS or source[node.start_byte : body.start_byte].lstrip().startswith(b"*"):
            continue
        if body.type == "statement_block":
            put.append((body.start_byte + 1, f"{_LOOK};"))
        else:
            put += [(body.start_byte, f"({_LOOK}, "), (body.end_byte, ")")]
    for at, piece in sorted(put, key=lambda item: item[0], reverse=True):
        source = source[:at] + piece.encode() + source[at:]
    return source.decode()


def _find_functions(path: str, source: bytes) -> Iterator[tuple[Node, Node]]:
    language = get_language(detect_language(path))
    assert language is not None
    tree = language.parse(source)
    assert tree is not None
    todo = [tree.root_node]
    while todo:
        node = todo.pop()
        body = node.child_by_field_name("body") if node.type in (*_FUNCTIONS, *_GENERATORS) else None
        if body is not None:
            yield node, body
        todo += node.children


def _read_stacks(root: Path, files: dict[str, str], marked: dict[str, str], printed: str) -> Iterator[tuple[str, str]]:
    spans = {path: _name_functions(path, files[path], marked[path]) for path in files}
    for line in printed.splitlines():
        if line.startswith("\u0001"):
            frames = [found for frame in line.split("\u0002") if (found := _FRAME.search(frame.strip()))]
            names = []
            for file, row, column in (found.groups() for found in frames):
                path = Path(file).relative_to(root).as_posix() if file.startswith(f"{root}/") else ""
                if path:
                    lines = marked[path].encode().splitlines(keepends=True)
                    offset = sum(map(len, lines[: int(row) - 1])) + int(column) - 1
                    inner = [name for start, end, name in spans[path] if start <= offset < end]
                    names.append(inner[-1] if inner else name_of(path, ""))
            if len(names) > 1:
                yield names[1], names[0]


def _name_functions(path: str, text: str, marked: str) -> list[tuple[int, int, str]]:
    """Where the functions of a marked program stand, outer before inner, with the names that pages give them."""
    facts = Linked({path: text}).facts[path]
    assert facts.code is not None
    names: dict[int, str] = {}
    unit = Unit(path, facts.code)
    for definition in facts.code.definitions:
        at = definition.anonymous[1] if definition.anonymous else facts.symbols[definition.symbol].body_start
        symbol = definition.anonymous[0] if definition.anonymous else definition.symbol
        names[at] = name_of(path, unit.qualified_names[symbol])
    before = sorted(_find_functions(path, text.encode()), key=lambda pair: pair[0].start_byte)
    after = sorted(_find_functions(path, marked.encode()), key=lambda pair: pair[0].start_byte)
    return [
        (node.start_byte, node.end_byte, names[body.start_byte])
        for (_, body), (node, _) in zip(before, after, strict=True)
    ]


def _strips_types(node: str) -> bool:
    return not subprocess.run(
        [node, "--experimental-strip-types", "-e", ""], capture_output=True, check=False
    ).returncode
