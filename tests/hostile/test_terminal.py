"""What a terminal gets of a repository whose files, names and texts would steer it: nothing but cq's own escapes. What
a pipe gets is exact."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TextIO, cast
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cq.surfaces.cli import COMMANDS
from cq.surfaces.printer import ESCAPE, Printer, escape
from cq.surfaces.render.picture import draw_pairs
from tests.support.agents import environment, on_terminal

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="a terminal is a pty here")]

# Red text, a title, a link, what a terminal answers with input, C1's own forms of these, text turned round, unseen.
EVIL = "\x1b[31m\x1b]0;owned\x07\x1b]8;;http://evil\x1b\\\x1b[6n\x9b31m\x9d0;owned\x9c\x08\x7f\u202eabc\u2066\u200b\U000e0041"
# In names of files and in code. A line break in a name is shown on the same line.
NAMES = ["e\x1b[31mvil.py", "c1\x9b31m.py", "bidi\u202eyp.py", "zero\u200bwidth.py", "tag\U000e0041.py", "bell\x07.ts"]
PYTHON = f'''"""Doc {EVIL}."""
import os  # {EVIL}
NAME = "{EVIL}"
TABLE = {{"{EVIL}": 1}}


class Evil:
    """About {EVIL}."""

    def save(self, row="{EVIL}"):
        raise ValueError("{EVIL}")  # {EVIL}


def main():
    """Says {EVIL}."""
    print(NAME, os.environ["{EVIL}"])
    return Evil().save("{EVIL}")  # {EVIL}
'''
TYPESCRIPT = f'''// {EVIL}
export class Evil {{ "{EVIL}" = 1; save(row: "{EVIL}") {{ return `{EVIL}`; }} }}
export function main() {{ return new Evil().save("{EVIL}"); }}
'''
OWN = re.compile(r"\x1b\[(?:0|1|2|32|36|1;34|K)?m?|\x1b\]8;;(?:file://[!-~]*)?\x1b\\")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("base") / "repo"
    folder = root / "d\x1b[5mir"
    folder.mkdir(parents=True)
    for name in NAMES:
        (folder / name).write_text(TYPESCRIPT if name.endswith("ts") else PYTHON)
    Path(os.fsdecode(os.fsencode(folder) + b"/raw\x9b\xff.py")).write_text(PYTHON)
    (root / "app.py").write_text(PYTHON)
    (root / "utf7.py").write_bytes(b"# coding: utf-7\nx = '+2Rs-[31m+ABs-[31m'\ndef odd(): return x\n")
    (root / "broken.py").write_text(f"def broken(:\n    '{EVIL}\n")
    (root / "x.json").write_text(json.dumps({EVIL: {"a": EVIL}}, ensure_ascii=False))
    (root / "x.toml").write_text('"a\u202eb" = "c\u200bd"\n[t]\nv = 1\n')
    (root / "x.md").write_text(f"# Heading {EVIL}\n\nText save {EVIL}\n\n```python\ndef fenced(): '{EVIL}'\n```\n")
    (root / "x.rs").write_text(f'/// {EVIL}\npub fn save() {{ println!("{EVIL}"); }}\nfn main() {{ save(); }}\n')
    (root / "cq.toml").write_text('[queries]\nodd = "entity=function"\n')
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@x", "-C", os.fspath(root)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "one"], check=True)
    (root / "app.py").write_text(PYTHON + "\n\ndef more():\n    main()\n")
    return root


PLACE = "d\x1b[5mir"
# Command -> what it is asked, each once.
ASKED: dict[str, list[tuple[str, ...]]] = {
    "": [()],
    "search": [("save",), ("main", "--format=plain"), ("save", "--format=json"), ("owned",), ("\u202eabc",),
               ("nöthing\u202e",)],
    "find": [("saves", "a", "row"), ("symbol = Evil > save",), ("save", "--format=mcp"), ("save", "--explain")],
    "calls": [("Evil.save",), ("save", "--format=jsonl"), ("nothing\u202e",)],
    "neighborhood": [("Evil",), ("main", "--format=json")],
    "graph": [("main",), ("main", "--format=mermaid"), ("main", "--format=dot"), ("main", "--format=svg")],
    "path": [("main", "Evil.save"), ("main", "odd")],
    "impact": [("Evil.save",), ("--changed",)],
    "routes": [(), ("\u202e",), ("--of", "Evil")],
    "sig-impact": [("Evil.save", "--to", "save(self, \u202e)"), ("Evil.save", "--to", "save(self)")],
    "diff": [(), ("HEAD",), ("no\u202e",)],
    "log": [("Evil.save",), ("no\u202e",)],
    "tests-for": [("Evil.save",), ("Evil.save", "--format=pytest"), ("--changed",)],
    "risk": [(), ("rules",), ("coverage",), ("--format=mermaid",), ("no\u202e.py",)],
    "imports": [(), ("--format=plain",)],
    "api": [(), ("no\u202e",)],
    "dead": [(), ("no\u202e",)],
    "context": [("Evil.save",), ("Evil", "--format=json"), ("nothing\u202e",)],
    "architecture": [("--suggest",), (), ("--rules", "no\u202e.toml")],
    "types": [("Evil",)],
    "references": [("Evil", "--no-lsp")],
    "hover": [("Evil.save", "--no-lsp")],
    "diagnostics": [("--no-lsp",)],
    "lsp": [("hints", "app.py", "--no-lsp"), ("definition", "Evil.save", "--no-lsp"), ("nothing\u202e",)],
    "exceptions": [("main",), ()],
    "side-effects": [()],
    "scopes": [("main",)],
    "bytecode": [("main",)],
    "rank": [()],
    "projects": [(), ("\u202e",)],
    "map": [(), ("--by=definition", "--format=dot"), ("--by=file", "--format=json")],
    "web": [("--port=x",)],
    "run": [("x.toml",), ("no\u202e.toml",)],
    "report": [("refactor-impact", "Evil"), ("\u202e",)],
    "q": [("entity=function",), ("pattern='$X'",), ("entity=\u202e",), ("entity=class", "--format=plain"),
          ("name=save",)],
    "read": [("app.py",), ("app.py", "--links", "--blame"), ("Evil.save",), ("app.py:1-20",),
             ("utf7.py:1-9",), ("x.md:1-9", "--format=plain"),
             (f"{PLACE}/{NAMES[0]}",), ("broken.py",)],
    "index": [("--full",), ("--format=json",), ("no\u202e",)],
    "status": [(), ("--config",), ("--format=json",)],
    "watch": [("--root", "no\u202e")],
    "validate": [("--strict",)],
    "export": [("--out", "OUT\u202e")],
    "ingest": [("scip", "no\u202e.scip")],
    "artifact": [("list",), ("get", "x\u202e")],
    "facts": [("app.py",), (f"{PLACE}/{NAMES[1]}", "--format=plain"), ("x.json",), ("no\x1b[31m.py",)],
    "languages": [()],
    "schema": [("\u202e",)],
    "doctor": [()],
    "mcp": [("--root", "no\x1b[31m")],
    "daemon": [("status",)],
    "config": [("get", "daemon"), ("get", "\u202e")],
    "init": [("\u202e",)],
    "completion": [("words", "--", "calls", "E"), ("words", "--", "read", "d"), ("words", "--", "read", "z")],
}  # fmt: skip


def test_every_command_is_asked():
    assert {name for name in ASKED if name} == set(COMMANDS)


@pytest.mark.parametrize("command", ASKED)
def test_nothing_but_our_own_escapes_reaches_a_terminal(root: Path, command: str):
    all_said = ""
    for words in ASKED[command]:
        said = on_terminal(
            root, *([command] if command else []), *(word.replace("OUT", f"{root.parent}/out") for word in words),
            TERM="xterm-kitty", COLUMNS="100",
        )  # fmt: skip
        all_said += said
        rest = OWN.sub("", said.replace("\r\n", "\n").replace("\r\x1b[K", ""))
        left = {char for char in rest if category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")} - {"\n", "\t"}
        assert not left, (words, left)
        assert "internal" not in rest, (words, rest)
        assert "Traceback" not in rest, words
    assert all_said or command == "completion"  # which offers no name that a shell would not read as one word


def test_a_pipe_gets_source_and_names_as_they_are(root: Path):
    def ask(*words: str) -> bytes:
        return subprocess.run(
            [sys.executable, "-m", "cq", *words], cwd=root, env=environment(root), capture_output=True, check=False
        ).stdout

    assert ask("read", "Evil.save", "--format=plain").decode() in PYTHON
    rows = ask("q", "entity=class name=Evil", "--format=json", "--all")
    assert all(json.dumps(f"{PLACE}/{name}", ensure_ascii=False).encode() in rows for name in NAMES)
    (answer,) = ask("search", "Evil", "--format=json", "--all").splitlines()
    assert EVIL in json.dumps(json.loads(answer), ensure_ascii=False).replace("\\u001b", "\x1b").replace(
        "\\u0007", "\x07").replace("\\b", "\x08").replace("\\\\", "\\")  # fmt: skip


def test_json_on_a_terminal_means_the_same(root: Path):
    said = on_terminal(root, "read", "Evil.save", "--format=json", TERM="xterm", COLUMNS="100")
    (finding, *_) = json.loads(said)["sections"][0]["findings"]
    assert finding["details"]["source"].strip() in PYTHON


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@given(st.text(st.characters(exclude_characters=[ESCAPE, "\ud90d"])))
def test_any_text_is_harmless_on_a_terminal(text: str):
    terminal = _Terminal()
    printer = Printer(cast("TextIO", terminal))
    printer.write(text)
    printer.writelines([text])
    shown = terminal.getvalue()
    assert all(char in "\n\t" or category(char) not in ("Cc", "Cf", "Cs", "Cn", "Zl", "Zp") for char in shown)
    assert shown == escape(text) * 2
    if not set(text) & set('\\\n\r\t"'):
        assert json.loads(f'"{escape(text)}"').encode("utf-8", "surrogatepass") == text.encode("utf-8", "surrogatepass")
    plain = io.StringIO()
    Printer(cast("TextIO", plain)).write(text)
    assert plain.getvalue() == text.replace("\r\n", "\n").replace("\r", "\n") or plain.getvalue() == text


def test_labels_of_pictures_are_no_markup():
    evil = 'a"]; click n0 "javascript:x" <img src=x onerror=y> #lt;b#gt; `c` \\" \x1b[31m\u202e&'
    mermaid, dot, svg = (draw_pairs([(evil, "b", False)], form) for form in ("mermaid", "dot", "svg"))
    for text in (mermaid, dot, svg):
        assert text.replace("\n", "").isprintable()
    (label,) = re.findall(r'^  n0\["([^"]*)"\]$', mermaid, re.MULTILINE)
    assert not set(label) & set("<>`")
    assert "#lt;" not in label
    (label,) = re.findall(r'^  n0 \[label="((?:[^"\\]|\\.)*)", shape=box\];$', dot, re.MULTILINE)
    assert re.sub(r"\\(.)", r"\1", label) == evil.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e")
    assert "<img" not in svg
    if shutil.which("xmllint"):
        assert subprocess.run(["xmllint", "--noout", "-"], input=svg.encode(), check=False).returncode == 0
