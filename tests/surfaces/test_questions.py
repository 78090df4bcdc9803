"""The table of questions: what a row of it gives, and that every question and every option is really there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cq import Workspace
from cq.questions.run.steps import find_step_names
from cq.questions.table import QUESTIONS
from cq.surfaces.cli import COMMANDS
from cq.surfaces.mcp.tools import find_around

DOCS = Path(__file__).parents[2] / "docs"

# A question in two files, as somebody would write a third one tomorrow.
TOY = {
    "toyquestion/options.py": """
from typing import Annotated, ClassVar
from cq.answers.options import Languages, OneTarget, Option, Options, Paged
from cq.answers.page import Page

class ToyOptions(Options, frozen=True):
    examples: ClassVar[str] = "  cq toy save --loud   what it says"
    target: OneTarget
    loud: Annotated[bool, Option("in capitals")] = False
    tone: Annotated[str, Option("how it sounds", choices=("flat", "sharp"))] = "flat"
    times: Annotated[int, Option("how often", metavar="N")] = 1
    languages: Languages = ()
    page: Paged = Page(7)
""",
    "toyquestion/__init__.py": """
from cq.model.answer import SCHEMA_VERSION, Answer, Finding, Run, Section
from toyquestion.options import ToyOptions

def ask(snapshot, options):
    text = (options.target.upper() if options.loud else options.target) * options.times
    rows = (Finding("word", f"{text} {options.tone} {','.join(options.languages)} {options.page.limit}"),)
    sections = (Section("Words", "words", 1, rows),)
    return Answer(SCHEMA_VERSION, "toy", Run(generation=snapshot.files.generation), {}, 1, sections=sections)
""",
}
SCRIPT = """
import sys
from cq.questions.table import QUESTIONS, Question
QUESTIONS["toy"] = Question("toy", "ToyOptions", "says a word", package="toyquestion")
from cq.surfaces import cli
what, *words = sys.argv[1:]
sys.argv = ["cq", *words]
if what == "cli":
    raise SystemExit(cli.main(words))
if what == "mcp":
    import json, msgspec
    from cq.surfaces.mcp.tools import describe_tools, parse_arguments
    context = next(tool for tool in describe_tools() if tool["name"] == "codebase_context")
    assert "toy" in context["inputSchema"]["properties"]["what"]["enum"]
    asked = parse_arguments("codebase_context", json.loads(words[0]))
    raise SystemExit(cli.answer(msgspec.json.encode(msgspec.structs.replace(asked, root="."))))
if what == "http":
    import msgspec
    from cq.surfaces.asked import Asked
    from cq.surfaces.web.forms import make_fields, read_fields, write_line
    assert [field.key for field in make_fields("toy", {})][:2] == ["target", "loud"]
    given = read_fields("toy", {"target": [words[0]], "tone": ["sharp"], "times": ["2"], "loud": ["on"]})
    print(write_line("toy", given))
    raise SystemExit(cli.answer(msgspec.json.encode(Asked("toy", options=given, root="."))))
if what == "library":
    from cq import Workspace
    from toyquestion.options import ToyOptions
    with Workspace.open() as workspace:
        print(workspace.ask(ToyOptions(words[0], tone="sharp")).sections[0].findings[0].message)
if what == "docs":
    sys.path.insert(0, words[0])
    from generate import _read_options
    print(_read_options("toy"))
"""


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    for name, text in TOY.items():
        (tmp_path / "lib" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "lib" / name).write_text(text)
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "a.py").write_text("def save(): ...\n")
    return tmp_path


def test_a_question_is_one_package_and_one_row(toy: Path):
    def run(*words: str, status: int = 0) -> str:
        env = {**os.environ, "PYTHONPATH": str(toy / "lib"), "CQ_INDEX_DIR": str(toy / "index"), "CQ_ROOT": "."}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, *words],
            cwd=toy / "repo",
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stderr
        return done.stdout + done.stderr

    assert "  toy           says a word" in run("cli", "--help")
    page = run("cli", "toy", "--help")
    assert all(
        word in page for word in ("--loud", "in capitals", "{flat,sharp}", "--lang LANG", "--page N", "cq toy save")
    )
    assert "default: 7" in page
    assert "SAVESAVE sharp python 3" in run(
        "cli", "toy", "save", "--loud", "--times=2", "--tone=sharp", "--lang=py", "--limit=3"
    )
    assert "did you mean '--loud'?" in run("cli", "toy", "save", "--luod", status=2)
    assert "did you mean 'sharp'?" in run("cli", "toy", "save", "--tone", "shrap", status=2)
    assert "lies outside the root" in run("cli", "toy", "/etc/passwd:1", status=2)
    assert run("cli", "completion", "words", "--", "to").split() == ["toy"]
    assert run("cli", "completion", "words", "--", "toy", "--lo").split() == ["--loud"]
    assert run("cli", "completion", "words", "--", "toy", "--tone", "").split() == ["flat", "sharp"]
    step = {"type": "toy", "target": "save", "loud": True, "lang": "py"}
    assert "SAVE flat python" in run("cli", "run", "--step", json.dumps(step))
    assert "cq toy save --loud --lang py" in run("cli", "run", "--step", json.dumps(step), "--card")
    assert "there is no key 'luod'" in run("cli", "run", "--step", json.dumps({**step, "luod": 1}), status=2)
    asked = {"what": "toy", "target": "save", "options": {"tone": "sharp"}, "page": 2}
    assert "save sharp" in run("mcp", json.dumps(asked))
    assert "toy has no option 'tune' (did you mean 'tone'?" in run(
        "mcp", json.dumps({**asked, "options": {"tune": "sharp"}}), status=2
    )
    page = run("http", "save")
    assert page.startswith("cq toy save --tone sharp --times 2 --loud\n")
    assert "SAVESAVE sharp" in page
    assert "save sharp" in run("library", "save")
    schema = json.loads(run("cli", "schema", "toy.options"))
    (form,) = schema["$defs"].values()
    assert {"enum": ["flat", "sharp"]} in form["properties"]["tone"]["anyOf"]
    assert form["properties"]["loud"]["description"] == "in capitals"
    assert form["required"] == ["target"]
    assert "('--tone flat|sharp', 'how it sounds')" in run("docs", str(DOCS))


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_is_on_every_surface(name: str):
    assert name in COMMANDS
    assert name in find_step_names() or name == "run"  # a plan has no plans
    own = {"search": "search", "find": "search", "q": "query", "read": "read", "diagnostics": "check"}
    assert (name in find_around()) != (name in own)
    assert callable(getattr(Workspace, name.replace("-", "_")))
    page = DOCS / ("query.md" if name == "q" else f"{name}.md")
    assert f"<!-- generated: options {name} -->" in page.read_text("utf-8")
