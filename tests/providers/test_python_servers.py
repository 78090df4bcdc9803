"""pyrefly and ty themselves, from the wheels of `cq[python]`: each plane on a marked snippet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cq.identity import segment_uid, tool_path
from cq.model.config import ProvidersConfig
from cq.model.provider import Parameter, Reply
from cq.providers.answers import Target
from cq.providers.documents import Document
from cq.providers.registry import Registry, find_degraded, get_registry, summarize
from cq.providers.session import BUDGETS
from cq.providers.sessions import close_sessions, find_sessions
from cq.source.segments import find_segments
from tests.support.servers import Tree, write_tree

pytestmark = pytest.mark.slow

BOTH = pytest.mark.parametrize("provider", ["pyrefly", "ty"])


def ask(provider: str, plane: str, tree: Tree, target: Target | None = None, **more: Any) -> Reply[Any]:
    registry = Registry(tree.root, ProvidersConfig(allow=(provider,)), **more)
    (reply,) = registry.ask(plane, [target or tree.target()], BUDGETS["precise"])
    assert reply.provider == provider
    return reply


@BOTH
def test_definition_behind_an_import_alias_and_an_emoji(tmp_path: Path, provider: str):
    tree = write_tree(
        tmp_path,
        """
        #- db.py
        "é"; class Base: ...
        #          ^^^^ here
        #- app.py
        from db import Base as B
        x = "\U0001f600é"; y = $0B()
        """,
    )
    reply = ask(provider, "definition", tree)
    assert reply.coverage.state == "complete"
    assert set(reply.items) == tree.places("here")


@BOTH
def test_an_attribute_is_defined_where_it_is_assigned(tmp_path: Path, provider: str):
    tree = write_tree(
        tmp_path,
        """
        #- a.py
        class Box:
            def __init__(self, size):
                self.size = size
        #            ^^^^ here
            def grow(self):
                return self.$0size
        """,
    )
    assert set(ask(provider, "definition", tree).items) == tree.places("here")


@BOTH
def test_a_definition_outside_is_external(tmp_path: Path, provider: str):
    reply = ask(provider, "definition", write_tree(tmp_path, "#- a.py\n$0len('x')\n"))
    assert [(place.path, place.external) for place in reply.items] == [("", "builtins.pyi")]


@BOTH
def test_hover_is_a_contract(tmp_path: Path, provider: str):
    tree = write_tree(
        tmp_path,
        """
        #- db.py
        class Base:
            def run(self, sql: str, n: int = 3) -> list[int]:
                '''Runs it.'''
                return [n]
        Base().$0run("x")
        """,
    )
    (hover,) = ask(provider, "hover", tree).items
    assert hover.kind == "method"
    assert hover.returns == "list[int]"
    assert [each for each in hover.parameters if each.name != "self"] == [
        Parameter("sql", "str"),
        Parameter("n", "int", "3"),
    ]
    assert hover.doc == "Runs it."
    assert "file:" not in hover.text
    assert str(tmp_path) not in hover.text


@BOTH
def test_the_type_of_a_value(tmp_path: Path, provider: str):
    (hover,) = ask(provider, "hover", write_tree(tmp_path, "#- a.py\nname = sorted({1: 'x'})\n$0name\n")).items
    assert hover.type == "list[int]"


def test_references_come_without_the_definition_and_with_imports(tmp_path: Path):
    tree = write_tree(
        tmp_path,
        """
        #- db.py
        def $0run(sql): ...
        run("here")
        #^^ ref
        #- app.py
        from db import run
        #              ^^^ ref
        def main():
            return run("x")
        #          ^^^ ref
        #- other.py
        def run(): ...
        """,
    )
    reply = ask("ty", "references", tree)
    assert reply.coverage.state == "complete"
    # The mark under `run` begins at the comment sign's right.
    marks = {(place.path, place.end) for place in tree.places("ref")}
    assert {(place.path, place.end) for place in reply.items} == marks
    assert ask("pyrefly", "references", tree).coverage.state == "partial"


def test_a_configuration_that_cannot_be_read_makes_project_answers_partial(tmp_path: Path):
    tree = write_tree(tmp_path, "#- ty.toml\n[environment]\npython = './nowhere'\n#- a.py\n$0x = 1\n")
    reply = ask("ty", "references", tree)
    assert reply.coverage.state == "partial"
    assert "Failed to load project" in reply.coverage.reason
    assert str(tmp_path) not in reply.coverage.reason


def test_whole_project_questions_go_to_ty_and_points_to_pyrefly(tmp_path: Path):
    tree = write_tree(tmp_path, "#- a.py\nclass A: ...\nclass B(A): ...\n$0A()\n")
    registry = Registry(tree.root)
    for plane, provider in {"references": "ty", "subtypes": "ty", "hover": "pyrefly", "definition": "pyrefly"}.items():
        assert next(registry.select("python", plane)).id == provider
        assert registry.ask(plane, [tree.target()], BUDGETS["precise"])[0].provider == provider


@BOTH
def test_calls_in_and_out(tmp_path: Path, provider: str):
    tree = write_tree(
        tmp_path,
        """
        #- a.py
        def leaf(): ...
        #   ^^^^ leaf
        def middle():
        #   ^^^^^^ middle
            leaf()
            leaf()
        def top():
            middle()
        """,
    )
    (into,) = ask(provider, "incoming_calls", tree, tree.target("leaf")).items
    assert (into.name, into.place) == ("middle", *tree.places("middle"))
    assert len(into.sites) == 2
    (out,) = ask(provider, "outgoing_calls", tree, tree.target("middle")).items
    assert (out.name, out.place) == ("leaf", *tree.places("leaf"))


def test_types_above_and_below(tmp_path: Path):
    tree = write_tree(
        tmp_path,
        """
        #- a.py
        class Base: ...
        #     ^^^^ base
        class Sub(Base): ...
        #     ^^^ sub
        class Low(Sub): ...
        """,
    )
    assert {item.place for item in ask("ty", "subtypes", tree, tree.target("base")).items} >= tree.places("sub")
    assert {item.place for item in ask("pyrefly", "supertypes", tree, tree.target("sub")).items} >= tree.places("base")
    assert {item.place for item in ask("ty", "supertypes", tree, tree.target("sub")).items} >= tree.places("base")


@BOTH
def test_symbols_tokens_and_hints(tmp_path: Path, provider: str):
    tree = write_tree(
        tmp_path,
        """
        #- a.py
        def greet(name: str):
        #   ^^^^^ function
            x = len(name)
            return x$0
        """,
    )
    whole = Target(tree.document("a.py"))
    names = [item.name for item in ask(provider, "document_symbols", tree, whole).items]
    assert names[0] == "greet"
    (found,) = tree.places("function")
    tokens = ask(provider, "tokens", tree, whole)
    assert any((t.start, t.end, t.kind) == (found.start, found.end, "function") for t in tokens.items)
    assert tokens.dropped == 0
    assert ": int" in [hint.label for hint in ask(provider, "hints", tree, whole).items]
    query = Target(tree.document("a.py"), query="greet")
    assert "greet" in [item.name for item in ask(provider, "workspace_symbols", tree, query).items]


@BOTH
def test_diagnostics_and_what_could_be_done_about_them(tmp_path: Path, provider: str):
    tree = write_tree(
        tmp_path,
        """
        #- a.py
        print(missing_name)
        #     ^^^^^^^^^^^^ error
        """,
    )
    reply = ask(provider, "diagnostics", tree, tree.target("error"))
    (found,) = [each for each in reply.items if each.severity == "error"]
    assert {found.place} == tree.places("error")
    assert ask(provider, "actions", tree, tree.target("error")).items


def test_a_changed_text_is_asked_about_and_not_the_file(tmp_path: Path):
    tree = write_tree(tmp_path, "#- a.py\nx = 1\n$0x\n")
    assert ask("ty", "hover", tree).items[0].type == "Literal[1]"
    changed = Document("a.py", "python", b"x = 'now a text'\nx\n")
    (hover,) = ask("ty", "hover", tree, Target(changed, changed.text.index(b"\nx\n") + 1)).items
    assert hover.type == 'Literal["now a text"]'


@BOTH
def test_code_in_a_document_of_another_kind(tmp_path: Path, provider: str):
    text = b"# Title\n\n> ```python\n> def run(): ...\n>\n> run()\n> ```\n"
    (tmp_path / "a.md").write_bytes(text)
    (segment,) = find_segments(text, "markdown")
    uid = segment_uid("a.md", segment.kind, segment.language, segment.text(text))
    document = Document("a.md", segment.language, text, segment, tool_path("a.md", uid, ".py"))
    tree = Tree(tmp_path, write_tree(tmp_path, "#- b.py\nx$0\n").fixture)
    (place,) = ask(provider, "definition", tree, Target(document, text.index(b"run()\n"))).items
    assert (place.path, text[place.start : place.end]) == ("a.md", b"run")
    assert place.start == text.index(b"run():")
    assert not (tmp_path / ".cq-vfs").exists()


@BOTH
def test_questions_in_bulk_keep_their_order(tmp_path: Path, provider: str):
    lines = "".join(f"def f{number}(): ...\n" for number in range(150))
    calls = "".join(f"f{number}()\n" for number in range(150))
    tree = write_tree(tmp_path, f"#- a.py\n{lines}{calls}x$0\n")
    document = tree.document("a.py")
    registry = Registry(tree.root, ProvidersConfig(allow=(provider,)))
    targets = [Target(document, document.text.index(b"\nf%d()" % number) + 1) for number in range(150)]
    replies = registry.ask("definition", targets, BUDGETS["precise"])
    assert [reply.items[0].start for reply in replies] == [
        document.text.index(b"def f%d()" % number) + 4 for number in range(150)
    ]
    assert summarize(replies).status == "ok"
    assert find_degraded(replies) == ()


HOSTILE = """
#- .venv/pyvenv.cfg
home = /usr/bin
version = 3.11.7
#- mypy.ini
[mypy]
python_executable = ./evil
#- pyrightconfig.json
{"venvPath": ".", "venv": ".venv"}
#- json.py
import pathlib; pathlib.Path("ROOT/ran").write_text("json")
#- sub/a.py
$0x: int = 1
"""


@pytest.mark.parametrize("provider", ["pyrefly", "ty", "basedpyright"])
def test_no_program_of_the_repository_is_run(tmp_path: Path, provider: str):
    tree = write_tree(tmp_path, HOSTILE.replace("ROOT", str(tmp_path)))
    for path in (".venv/bin/python", ".venv/bin/python3", "evil"):
        script = tmp_path / path
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\nexec python3 \"$@\"\n")
        script.chmod(0o755)
    assert ask(provider, "hover", tree).answered
    assert ask(provider, "references", tree).answered
    assert not (tmp_path / "ran").exists()


# Where pyrefly would find a configuration: of the file it is asked about, of one that it imports, by a link, above the
# root; in TOML a key may be written in escapes.
CONFIGURED = {
    "repo/root/pyrefly.toml": "",
    "repo/root/sub/pyrefly.toml": "",
    "repo/root/pyproject.toml": "[tool.pyrefly]\n",
    "repo/root/sub/pyproject.toml": '["t\\u006fol"."pyr\\U00000065fly"]\n',
    "repo/root/other/deep/pyrefly.toml": "",
    "repo/beside/pyrefly.toml": "",
    "repo/pyrefly.toml": "",
}


@pytest.mark.parametrize("config", CONFIGURED)
def test_pyrefly_is_not_asked_where_a_repository_configures_it(tmp_path_factory: pytest.TempPathFactory, config: str):
    tmp_path = tmp_path_factory.mktemp("base")  # whose name does not say who is not asked
    text = "import other.deep.b, linked.c\n$0x = other.deep.b.y + linked.c.z\n"
    tree = write_tree(tmp_path / "repo" / "root", f"#- sub/a.py\n{text}#- other/deep/b.py\ny = 1\n")
    (tmp_path / "repo" / ".git").mkdir()
    (tmp_path / "repo" / "beside").mkdir()
    (tmp_path / "repo" / "beside" / "c.py").write_text("z = 1\n")
    (tree.root / "linked").symlink_to("../beside")
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\nexec python3 \"$@\"\n")
    program.chmod(0o755)
    assert ask("pyrefly", "hover", tree).answered
    close_sessions(tree.root)
    (tmp_path / config).write_text(f"{CONFIGURED[config]}python-interpreter-path = '{program}'\n")
    (reply,) = Registry(tree.root, ProvidersConfig(allow=("pyrefly",))).ask("hover", [tree.target()])
    assert not reply.answered
    assert config.rpartition("/")[2] in reply.coverage.reason
    assert find_sessions(tree.root) == []
    # Another one answers.
    assert Registry(tree.root).ask("hover", [tree.target()], BUDGETS["precise"])[0].provider == "ty"
    assert not (tmp_path / "ran").exists()
    assert ask("pyrefly", "hover", tree, trusted=True).answered
    assert (tmp_path / "ran").exists()  # the trap works


def test_pyrefly_is_not_asked_once_a_repository_configures_it(tmp_path: Path):
    """Also where it runs already, as in the daemon."""
    tree = write_tree(tmp_path, "#- sub/a.py\n$0x = 1\n")

    def answered() -> bool:
        registry = get_registry(tree.root, ProvidersConfig(allow=("pyrefly",)))
        return registry.ask("hover", [tree.target()], BUDGETS["precise"])[0].answered

    assert answered()
    (tmp_path / "pyrefly.toml").write_text("")
    assert not answered()
    (tmp_path / "pyrefly.toml").unlink()
    assert answered()
