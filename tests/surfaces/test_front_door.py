"""What a newcomer meets: `cq` alone, help, exact source, completion in a real shell, configuration for agents."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cq.query import Query, parse
from cq.query.vocabulary import TOKENS
from cq.surfaces.cli import COMMANDS, main
from cq.surfaces.cli.completion import SCRIPTS
from tests.support.agents import on_terminal

pytestmark = pytest.mark.slow


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    (root / ".git").mkdir(parents=True)
    (root / "src").mkdir()
    (root / "src" / "db.py").write_text(
        "class Store:\n    def save(self, row):\n        return row[0]\n\n\ndef save(): ...\n"
    )
    (root / "src" / "app.py").write_text("from db import save\n\n\ndef main():\n    save()\n\n\nmain()\n")
    return root


def environment(root: Path) -> dict[str, str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("CQ_", "NO_COLOR"))}
    return clean | {"XDG_CACHE_HOME": str(root.parent / "cache")}


def cq(root: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cq", *arguments], cwd=root, env=environment(root) | more,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_alone_it_says_what_is_here_and_what_to_ask(root: Path):
    done = cq(root)
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 files, 14 lines: python 2" in done.stdout
    assert "src/app.py:4: def main()" in done.stdout
    commands = [line.split("  ")[2].strip() for line in done.stdout.splitlines() if line.startswith("    cq ")]
    assert len(commands) == 6
    assert "1 definition depends on it" in done.stdout
    for command in commands:
        found = cq(root, *shlex.split(command)[1:])
        assert found.returncode == (1 if "'" in command else 0), command  # that one says what to fill in
    assert cq(root.parent, "--root", str(root)).stdout == done.stdout


def test_alone_outside_of_a_repository_it_answers_as_a_search_does(tmp_path: Path):
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "a.py").write_text("def save(): ...\n")
    done = cq(bare)
    assert (done.returncode, done.stderr) == (0, "")
    assert "bare" in done.stdout
    assert cq(bare, "search", "save").returncode == 0


@pytest.mark.parametrize("words", [("-h",), *((name, "-h") for name in COMMANDS)])
def test_short_help_is_one_screen(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]):
    assert main(list(words)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40
    assert all(len(line) <= 110 for line in lines)
    assert "--help`" in lines[-1]


def test_help_has_the_options_that_others_share_at_its_end(root: Path):
    page = cq(root, "calls", "--help").stdout
    assert (
        page.index("--family") < page.index("which files:") < page.index("the answer:") < page.index("every command:")
    )
    short = cq(root, "calls", "-h").stdout
    assert "with the methods that override it" in short
    assert "only these files" not in short
    assert "--include" in short


def test_what_a_question_does_anyway_is_no_unknown_option(root: Path):
    done = cq(root, "hover", "save", "--lsp")
    assert done.returncode == 2
    assert "asks language servers anyway" in done.stderr


def test_a_path_counts_from_where_one_is(root: Path):
    expected = cq(root, "read", "src/db.py", "--format", "plain").stdout
    assert expected
    assert cq(root / "src", "read", "db.py", "--format", "plain").stdout == expected
    assert cq(root, "read", str(root / "src" / "db.py"), "--format", "plain").stdout == expected
    assert cq(root / "src", "read", "db.py:1-1", "--format", "plain").stdout == "class Store:\n"


def test_nobody_means_all_that_they_have(tmp_path: Path):
    home = tmp_path / "home" / "me"
    home.mkdir(parents=True)
    for folder in (home, home.parent, Path("/")):
        done = cq(folder, "search", "x", HOME=str(home), XDG_CACHE_HOME=str(tmp_path / "cache"))
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"cq: usage: {folder} is no repository (go into one, or name a directory with --root)\n"
    assert cq(home, "search", "x", "--root", ".", HOME=str(home)).returncode == 1  # who says so is believed


def test_the_query_language_is_explained_by_examples_that_work(root: Path):
    shown = cq(root, "help", "query").stdout
    examples = [shlex.split(line)[2] for line in shown.splitlines() if line.strip().startswith("cq q ")]
    assert len(examples) == len(TOKENS)
    for key, example in zip(TOKENS, examples, strict=True):
        assert f"  {key}=" in shown
        assert isinstance(parse(example), Query)


def test_help_of_one_command_both_ways(root: Path):
    assert cq(root, "help", "calls").stdout == cq(root, "calls", "--help").stdout != ""
    assert cq(root, "help").stdout == cq(root, "--help").stdout != ""


@pytest.mark.parametrize(
    ("target", "source"),
    [
        ("Store.save", "    def save(self, row):\n        return row[0]\n"),
        ("symbol = Store > save", "    def save(self, row):\n        return row[0]\n"),
        ("src/db.py:2", "    def save(self, row):\n        return row[0]\n"),
        ("src/db.py:3-3", "        return row[0]\n"),
        ("src/db.py:5-", "\ndef save(): ...\n"),
        ("src/db.py", "class Store\n  def save(self, row)\ndef save()\n"),
    ],
)
def test_source_is_read_as_it_stands(root: Path, target: str, source: str):
    done = cq(root, "read", target, "--format", "plain")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.rstrip("\n") == source.rstrip("\n")


def test_reading_says_what_else_bears_the_name_and_how_to_read_on(root: Path):
    answer = json.loads(cq(root, "read", "save", "--format", "json").stdout)
    assert (answer["insight"]["target"]["of"], answer["summary"]["definitions"]) == (2, 2)
    (finding,) = answer["sections"][0]["findings"]
    assert finding["details"]["others"][0]["path"] == "src/db.py"
    (root / "long.py").write_text("def long():\n" + "    call()\n" * 200)
    short = json.loads(cq(root, "read", "long", "--budget", "100", "--format", "json").stdout)
    (finding,) = short["sections"][0]["findings"]
    rest = cq(root, "read", finding["details"]["more"], "--format", "plain").stdout
    assert finding["details"]["source"] + rest == (root / "long.py").read_text()


@pytest.mark.parametrize(
    ("target", "status", "words"),
    [
        ("svae", 1, "near names: save"),
        ("src/db.py:9-12", 2, "has no lines 9"),
        ("src/nowhere.py:1-2", 2, "not indexed"),
        ("../../etc/passwd:1-2", 2, "not indexed"),
        ("/etc/passwd", 2, "cq: usage: /etc/passwd lies outside the root (give --root"),
        ("/etc/passwd:1", 2, "cq: usage: /etc/passwd lies outside the root (give --root"),
        (" ", 2, "target is empty"),
    ],
)
def test_what_cannot_be_read_is_said(root: Path, target: str, status: int, words: str):
    done = cq(root, "read", target)
    assert done.returncode == status
    assert words in done.stdout + done.stderr


def test_colours_are_asked_for_or_left(root: Path):
    assert "\x1b[1m" in cq(root, "--color", "always", "search", "save").stdout
    assert "\x1b" not in cq(root, "--color=never", "search", "save", FORCE_COLOR="1").stdout
    assert "\x1b" not in cq(root, "search", "save").stdout


def test_colours_change_nothing_but_the_colour(root: Path):
    (root / "src" / "odd.py").write_text(
        'def odd(x):  # why\n    """Two\n    lines."""\n    return f"{x} ü" if x else None\n'
    )
    for words in (("read", "odd"), ("search", "odd"), ("calls", "save")):
        plain, painted = cq(root, *words).stdout, cq(root, "--color", "always", *words).stdout
        assert "\x1b[" in painted
        assert "\x1b]8" not in painted  # no terminal, no links
        drop = re.compile(r"\x1b\[[\d;]*m|[\d,.]+ ms")
        assert drop.sub("", painted) == drop.sub("", plain)
    assert "\x1b[1;34mdef\x1b[0m odd" in cq(root, "--color", "always", "read", "odd").stdout


def test_a_terminal_that_follows_links_gets_them(root: Path):
    linked = on_terminal(root, "read", "save", TERM="xterm-kitty")
    assert f"\x1b]8;;file://{socket.gethostname()}{root}/src/db.py#6\x1b\\" in linked
    linked = on_terminal(root, "search", "save", "--hyperlink-format", "vscode", TERM="xterm")
    assert f"\x1b]8;;vscode://file{root}/src/db.py:6:5\x1b\\" in linked
    assert "\x1b]8" not in on_terminal(root, "read", "save", "--hyperlink-format=none", TERM="xterm-kitty")
    wrong = cq(root, "read", "save", "--hyperlink-format", "emacs")
    assert (wrong.returncode, "'emacs' is no format" in wrong.stderr) == (2, True)
    assert "\x1b]8" not in on_terminal(root, "read", "save", TERM="xterm")
    assert "\x1b" not in on_terminal(root, "read", "save", TERM="xterm-kitty", NO_COLOR="1")


@pytest.mark.parametrize("columns", [40, 70, 300])
def test_tables_are_as_wide_as_the_terminal(root: Path, columns: int):
    def words(table: str) -> list[str]:
        return sorted(re.sub(r"[|\s-]+", "", line) for line in table.splitlines() if line.startswith("|"))

    wide = cq(root, "languages").stdout
    shown = on_terminal(root, "languages", COLUMNS=str(columns), NO_COLOR="1").replace("\r", "")
    lines = [line for line in shown.splitlines() if line.startswith("|")]
    assert len({len(line) for line in lines}) == 1
    assert len(lines[0]) <= max(columns, 60)  # a column has its least width
    assert sorted("".join(words(shown))) == sorted("".join(words(wide)))
    (root / "long.py").write_text(f"def long():\n    return {'x' * 300!r}\n")
    assert "x" * 300 in on_terminal(root, "read", "long", COLUMNS=str(columns), NO_COLOR="1")


def test_any_locale_and_any_bytes(root: Path):
    (root / "src" / "more.py").write_text("def größe(): ...\n")
    plain = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    assert cq(root, "search", "größe", "--format", "plain").stdout.startswith("src/more.py:1:5:")
    done = subprocess.run(
        [sys.executable, "-m", "cq", "search", "größe".encode(), "--format", "plain"], cwd=root,
        env=environment(root) | plain, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert "größe".encode() in done.stdout
    for command in ("search", "read", "calls", "q", "find"):
        odd = cq(root, command, os.fsdecode(b"\xff"))
        assert (odd.returncode, odd.stdout, odd.stderr.count("\n")) == (2, "", 1)
        assert "is no UTF-8" in odd.stderr


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["sea"], ["search"]),
        (["help", "comp"], ["completion"]),
        (["calls", "sa"], ["save"]),
        (["calls", "St"], ["Store"]),
        (["read", "src/"], ["src/app.py", "src/db.py"]),
        (["facts", "s"], ["src/"]),
        (["search", "x", "--forma"], ["--format"]),
        (["search", "x", "--format", "js"], ["json", "jsonl"]),
        (["nothing", "x"], []),
    ],
)
def test_words_that_complete(root: Path, words: list[str], found: list[str]):
    cq(root, "index")
    assert cq(root, "completion", "words", "--", *words).stdout.split() == found


@pytest.mark.parametrize("shell", SCRIPTS)
def test_completion_scripts_are_read_by_their_shells(root: Path, shell: str):
    script = cq(root, "completion", shell).stdout
    assert "completion words" in script
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} on this system")
    subprocess.run([shell, "-n"], input=script, text=True, check=True, timeout=20)


def test_completion_in_bash(root: Path, tmp_path: Path):
    cq(root, "index")
    command = tmp_path / "bin" / "cq"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m cq "$@"\n')
    command.chmod(0o755)
    script = cq(root, "completion", "bash").stdout
    script += 'COMP_WORDS=(cq calls Sto); COMP_CWORD=2; _cq 2>/dev/null; printf "%s\\n" "${COMPREPLY[@]}"\n'
    path = f"{command.parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash"], input=script, cwd=root, env=environment(root) | {"PATH": path}, capture_output=True, text=True,
        timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout == "Store\n"


@pytest.mark.parametrize(
    ("client", "config", "key", "guidance"),
    [
        ("claude", ".mcp.json", "mcpServers", "CLAUDE.md"),
        ("cursor", ".cursor/mcp.json", "mcpServers", ".cursor/rules/cq.mdc"),
        ("vscode", ".vscode/mcp.json", "servers", ".github/copilot-instructions.md"),
    ],
)
def test_an_agent_is_set_up(root: Path, client: str, config: str, key: str, guidance: str):
    shown = cq(root, "init", client).stdout
    assert config in shown
    assert not (root / config).exists()
    (root / config).parent.mkdir(exist_ok=True)
    (root / config).write_text(json.dumps({key: {"other": {"command": "é"}}, "more": 1}))
    (root / guidance).parent.mkdir(parents=True, exist_ok=True)
    (root / guidance).write_text("# Mine\n")
    assert cq(root, "init", client, "--write").stderr.count("written") == 2
    settings = json.loads((root / config).read_text())
    assert (settings["more"], settings[key]["other"], settings[key]["cq"]["args"]) == (1, {"command": "é"}, ["mcp"])
    text = (root / guidance).read_text()
    assert text.startswith("# Mine\n")
    assert "codebase_search" in text
    assert cq(root, "init", client, "--write").stderr.count("up to date") == 2
    assert (root / guidance).read_text() == text


def test_files_that_are_not_ours_to_change_are_left(root: Path, tmp_path: Path):
    (root / ".mcp.json").write_text("{ // a comment\n}")
    done = cq(root, "init", "claude", "--write")
    assert (done.returncode, "is not JSON that can be changed" in done.stderr) == (2, True)
    (root / ".mcp.json").unlink()
    (root / ".mcp.json").symlink_to(tmp_path / "elsewhere.json")
    done = cq(root, "init", "claude", "--write")
    assert (done.returncode, "leads out of the repository" in done.stderr) == (2, True)
    assert not (tmp_path / "elsewhere.json").exists()


def test_names_are_completed_alike_wherever_the_index_is_said_to_be(root: Path):
    """By the client alone, and by a file of the repository, which the command itself asks."""
    words = ("completion", "words", "--", "calls", "sa")
    assert cq(root, *words).stdout == ""  # no index is made for it
    cq(root, "index")
    code = "import sys; from cq.surfaces.client import main; main(); print({'msgspec', 'argparse'} & {*sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=root,
        env=environment(root),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "save\nset()\n"
    (root / "cq.toml").write_text('[index]\ndir = ".cq"\n')
    assert cq(root, *words).stdout == ""
    cq(root, "index")
    assert cq(root, *words).stdout == "save\n"
