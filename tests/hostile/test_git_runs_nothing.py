"""A repository that names programs wherever git lets it: none is run, and nothing in the repository is written."""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from cq.indexing.history import read_history
from cq.model.history import Change
from cq.providers.npm import find_settings
from cq.source.checkout import GitError, open_checkout
from cq.source.files import find_files
from cq.source.git import _check_in, find_changes, find_commits
from cq.source.program import choose_environment
from cq.surfaces.cli import COMMANDS, main

if TYPE_CHECKING:
    from cq.indexing.location import Place

pytestmark = pytest.mark.slow

# Hooks that git documents, `git help githooks`.
HOOKS = """
    applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg post-commit
    pre-rebase post-checkout post-merge pre-push pre-receive update proc-receive post-receive post-update
    reference-transaction push-to-checkout pre-auto-gc post-rewrite sendemail-validate fsmonitor-watchman
    p4-changelist p4-prepare-changelist p4-post-changelist p4-pre-submit post-index-change
""".split()  # noqa: SIM905
# Settings by which a repository says that it is none, or lies elsewhere: then there is nothing to ask, and no program
# is reached. They are planted by themselves.
ELSEWHERE = ("core.repositoryformatversion", "core.worktree", "core.bare", "extensions.")


def git(root: Path, *words: str, check: bool = True) -> str:
    names = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "protocol.file.allow=always")
    done = subprocess.run(["git", *names, *words], cwd=root, check=False, capture_output=True, text=True)
    assert not check or not done.returncode, done.stderr
    return done.stdout


class Trap:
    """A program that leaves a mark, and a repository that it is planted in."""

    def __init__(self, folder: Path) -> None:
        self.mark = folder / "mark"
        self.program = folder / "program"
        self.program.write_text(f'#!/bin/sh\necho "$0 $*" >> {self.mark}\nexit 1\n')
        self.program.chmod(0o755)
        self.root = folder / "repo"
        self.root.mkdir()
        git(self.root, "init", "-q", "-b", "main")
        (self.root / "a.py").write_text("def f():\n    return 1\n\n\ndef g():\n    return f()\n")
        (self.root / "b.py").write_text("from a import f\nf()\n")
        (self.root / "sub").mkdir()
        (self.root / "sub" / "c.py").write_text("def h(): ...\n")
        git(self.root, "add", ".")
        git(self.root, "commit", "-qm", "one")
        (self.root / "sub" / "c.py").write_text("def h(): return 2\n")
        git(self.root, "commit", "-qam", "two")
        # Edited, and as new as the index: git would have to read it.
        (self.root / "a.py").write_text("def f():\n    return 2\n\n\ndef g():\n    return f()\n")
        self.config = self.root / ".git" / "config"
        self.plain = self.config.read_text()

    def write_attributes(self, root: Path) -> None:
        text = "* filter=e diff=e merge=e text=auto ident\n"
        (root / ".gitattributes").write_text(text)
        (root / ".git" / "info").mkdir(exist_ok=True)
        (root / ".git" / "info" / "attributes").write_text(text)

    def plant(self, root: Path, names: Sequence[str], *, included: bool = False) -> None:
        values = "".join(_write_setting(name, str(self.program)) for name in names)
        config = root / ".git" / "config"
        if included:
            (root / ".git" / "more").write_text(values)
            values = "[include]\npath = more\n"
        config.write_text(self.plain + values)

    def is_sprung(self) -> bool:
        sprung = self.mark.exists()
        self.mark.unlink(missing_ok=True)
        return sprung


def _write_setting(name: str, value: str) -> str:
    section, _, key = name.rpartition(".")
    kind, _, of = section.partition(".")
    return f'[{kind} "{of}"]\n{key} = {value}\n' if of else f"[{kind}]\n{key} = {value}\n"


def _list_settings() -> list[str]:
    """Every setting git documents, and those its help leaves out, with a name for what is in brackets."""
    names = subprocess.run(["git", "help", "--config"], capture_output=True, text=True, check=True).stdout.split("\n")
    found: list[str] = []
    for name in names:
        if re.fullmatch(r"[\w.<>*-]+", name):
            name = name.replace("remote.<name>", "remote.origin").replace("branch.<name>", "branch.main")
            found.append(re.sub(r"<[^>]*>", "e", name).replace("*", "e"))
    assert len(found) > 300
    return [*found, "filter.e.process", "filter.e.required", "trace2.eventtarget", "trace2.normaltarget",
            "trace2.perftarget", "core.gitproxy", "core.alternaterefscommand",
            "uploadpack.packobjectshook"]  # fmt: skip


SETTINGS = _list_settings()
SECTIONS = sorted({name.partition(".")[0].lower() for name in SETTINGS})


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    return Trap(tmp_path)


def digest(root: Path) -> dict[str, tuple[str, int]]:
    found: dict[str, tuple[str, int]] = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        text = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(status.st_mode) else ""
        found[path.relative_to(root).as_posix()] = text, status.st_mtime_ns
    return found


def ask_git(root: Path) -> None:
    """All of ours that asks about a repository."""
    find_files(root)
    for ask in (lambda: find_changes(root, "HEAD~1"), lambda: find_commits(root, 10)):
        try:
            ask()
        except GitError:
            continue


def test_a_clean_filter_is_not_run(trap: Trap):
    trap.plant(trap.root, ["filter.e.clean"])
    trap.write_attributes(trap.root)
    git(trap.root, "diff", "HEAD", check=False)
    assert trap.is_sprung()  # the trap works where git is left to itself
    before = digest(trap.root)
    changes = find_changes(trap.root, "HEAD")
    assert not trap.is_sprung()
    assert (changes["a.py"].lines, changes["a.py"].removed) == ((2,), (b"    return 1\n",))
    assert "'e'" in changes["a.py"].note  # what was not run is said
    assert digest(trap.root) == before


def test_a_filter_that_a_macro_names_is_said_not_to_run(trap: Trap):
    (trap.root / ".gitattributes").write_text("[attr]coded filter=e\n[attr]more coded\n*.py more\n")
    assert "'e'" in find_changes(trap.root, "HEAD")["a.py"].note
    (trap.root / ".git" / "info" / "attributes").write_text("a.py !filter\n")
    assert not find_changes(trap.root, "HEAD")["a.py"].note


@pytest.mark.parametrize("linked", [False, True])
def test_a_git_that_the_repository_brings_is_passed_over(
    trap: Trap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linked: bool
):
    """A virtual environment that lies in the repository may be the first directory of PATH."""
    folder = trap.root / "env" / "bin"
    folder.mkdir(parents=True)
    for name in ("git", "rg", "node", "npm", "ty", "rustc", "rust-analyzer"):
        shutil.copy(trap.program, folder / name)
    if linked:
        (tmp_path / "elsewhere").symlink_to(folder)
    path = [str(tmp_path / "elsewhere") if linked else f"{trap.root}/sub/../env/bin", "", "env/bin", os.environ["PATH"]]
    monkeypatch.setenv("PATH", os.pathsep.join(path))
    monkeypatch.chdir(trap.root)
    assert find_changes(trap.root, "HEAD")["a.py"].lines == (2,)
    assert main(["doctor"]) in (0, 1)
    find_settings()
    assert not trap.is_sprung()
    assert "env/bin" not in choose_environment(os.environ)["PATH"].split(os.pathsep)


@pytest.mark.slow
@pytest.mark.parametrize("included", [False, True])
def test_no_setting_that_git_documents_runs_or_writes_anything(trap: Trap, included: bool):
    """By sections: a value that one refuses hides no other."""
    trap.write_attributes(trap.root)
    before_program = trap.program.read_bytes()
    groups = [[name for name in SETTINGS if name.partition(".")[0].lower() == section] for section in SECTIONS]
    groups += [["extensions.partialclone", "remote.origin.promisor", "remote.origin.uploadpack"]]
    for group in groups:
        trap.plant(trap.root, group, included=included)
        before = digest(trap.root)
        ask_git(trap.root)
        assert (group[0], trap.is_sprung()) == (group[0], False)
        assert (group[0], digest(trap.root)) == (group[0], before)
    assert trap.program.read_bytes() == before_program


def test_a_submodule_that_names_a_program(trap: Trap):
    for name in (".gitmodules", ".git/config"):
        with (trap.root / name).open("a") as file:
            file.write(f'[submodule "sub"]\npath = sub\nurl = ext::{trap.program}\nupdate = !{trap.program}\n')
        before = digest(trap.root)
        assert find_changes(trap.root, "HEAD")["a.py"].lines == (2,)
        ask_git(trap.root)
        assert not trap.is_sprung()
        assert digest(trap.root) == before


def test_what_the_environment_names_is_not_handed_on(trap: Trap, monkeypatch: pytest.MonkeyPatch):
    """Every variable that the program itself knows by name."""
    program = shutil.which("git")
    assert program
    names = set(re.findall(rb"GIT_[A-Z][A-Z0-9_]+", Path(program).read_bytes()))
    assert len(names) > 60
    before, program = digest(trap.root), trap.program.read_bytes()
    for name in names:
        monkeypatch.setenv(name.decode(), str(trap.program))
    assert find_changes(trap.root, "HEAD")["a.py"].lines == (2,)
    assert len(find_commits(trap.root, 10)) == 2
    assert [entry.path for entry in find_files(trap.root).files] == ["a.py", "b.py", "sub/c.py"]
    assert not trap.is_sprung()
    assert (digest(trap.root), trap.program.read_bytes()) == (before, program)


def test_a_partial_clone_fetches_nothing(trap: Trap, tmp_path: Path):
    git(trap.root, "config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--filter=blob:none", f"file://{trap.root}", str(clone))
    git(clone, "config", "remote.origin.uploadpack", str(trap.program))
    git(clone, "diff", "HEAD~1", check=False)
    assert trap.is_sprung()
    before = digest(clone)
    assert find_changes(clone, "HEAD") == {}
    changes = find_changes(clone, "HEAD~1")
    assert not trap.is_sprung()
    assert digest(clone) == before
    assert changes["sub/c.py"].lines == (1,)
    assert "nothing is fetched" in changes["sub/c.py"].note


def test_replaced_objects_and_grafts_are_not_believed(trap: Trap):
    old, new = git(trap.root, "rev-parse", "HEAD:sub/c.py", "HEAD~1:sub/c.py").split()
    git(trap.root, "replace", old, new)
    assert find_changes(trap.root, "HEAD").keys() == {"a.py"}
    (trap.root / ".git" / "info" / "grafts").write_text(git(trap.root, "rev-parse", "HEAD"))
    assert len(find_commits(trap.root, 10)) == 2


def test_objects_that_are_pipes_are_not_waited_for(trap: Trap):
    name = git(trap.root, "rev-parse", "HEAD").strip()
    path = trap.root / ".git" / "objects" / name[:2] / name[2:]
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(GitError, match="no files"):
        find_changes(trap.root, "HEAD")


def test_pipes_behind_links_and_in_other_stores_are_not_waited_for(trap: Trap, tmp_path: Path):
    elsewhere = tmp_path / "else\x0cwhere"  # a form feed ends no line for git
    (elsewhere / "pack").mkdir(parents=True)
    os.mkfifo(elsewhere / "pack" / f"pack-{'0' * 40}.idx")
    objects = trap.root / ".git" / "objects"
    alternates = objects / "info" / "alternates"
    lines = [f"{elsewhere}\n", f'"{elsewhere}"\n', "# long\n" * 1_500_000 + f"{elsewhere}\n"]
    lines.append("".join(f"{tmp_path}/nothing-{number}\n" for number in range(200)) + f"{elsewhere}\n")
    for text in lines:
        alternates.write_text(text)
        with pytest.raises(GitError, match="objects"):
            find_changes(trap.root, "HEAD")
    alternates.unlink()
    assert find_changes(trap.root, "HEAD").keys() == {"a.py"}
    (objects / "pack").rmdir()
    (objects / "pack").symlink_to(elsewhere / "pack")
    with pytest.raises(GitError, match="no files"):
        find_changes(trap.root, "HEAD")


@pytest.mark.parametrize("name", ["-d", "--format=%(objectname)", "--help"])
def test_a_root_that_is_called_like_an_option(trap: Trap, name: str):
    folder = trap.root / name
    folder.mkdir()
    (folder / "d.py").write_text("x = 1\n")
    git(trap.root, "add", "--all", "--", ".")
    git(trap.root, "commit", "-qm", "three")
    (folder / "d.py").write_text("x = 2\n")
    assert find_changes(folder, "HEAD") == {"d.py": Change((1,), (), (b"x = 1\n",))}
    assert find_commits(folder, 10)[0] == ("d.py",)


def test_a_few_objects_that_stand_for_more_files_than_a_disk_holds(trap: Trap, monkeypatch: pytest.MonkeyPatch):
    """Each directory of a hundred holds the same one: what git would say of them is not taken in."""
    name, kind = git(trap.root, "rev-parse", "HEAD:b.py").strip(), "100644 blob"
    for _ in range(4):
        rows = "".join(f"{kind} {name}\t{number}\n" for number in range(100))
        done = subprocess.run(["git", "mktree"], cwd=trap.root, input=rows, capture_output=True, text=True, check=True)
        name, kind = done.stdout.strip(), "040000 tree"
    commit = git(trap.root, "commit-tree", name, "-m", "x").strip()
    git(trap.root, "update-ref", "refs/heads/main", commit)
    monkeypatch.setattr("cq.source.git._MAX_OUTPUT", 1 << 20)
    with pytest.raises(GitError, match="says more than 1 MB"):
        find_changes(trap.root, "HEAD")
    monkeypatch.setattr("cq.source.git.TIMEOUT", 0.5)
    with pytest.raises(GitError, match="no answer in"):
        find_commits(trap.root, 10)
    place = SimpleNamespace(file=trap.root.parent / "index.db")
    note = read_history(trap.root, cast("Place", place)).note
    assert "no answer" in note
    monkeypatch.setattr("cq.indexing.history.find_commits", lambda *_: [("asked again",)])
    assert read_history(trap.root, cast("Place", place)).note == note


def test_an_index_of_git_is_worth_no_more_memory_than_it_has_bytes(trap: Trap):
    """Each name of version 4 goes on from the one before; a bitmap says in one word that four milliards are set."""
    index = trap.root / ".git" / "index"
    row = struct.pack(">10I20xH", 0, 0, 0, 0, 0, 0, 0o100644, 0, 0, 0, 0xFFF)
    long = struct.pack(">4sII", b"DIRC", 4, 20_000) + (row + b"\0a\0") * 20_000 + bytes(20)
    bits = struct.pack(">IIQI", 0xFFFFFFFF, 1, 1 | 0x3FFFFFE << 1, 0)
    link = b"\1" * 20 + bits + bits
    wide = struct.pack(">4sII4sI", b"DIRC", 2, 0, b"link", len(link)) + link + bytes(20)
    deep = b"a/" * 2000 + b"b"
    deep_row = row + deep + bytes(8 - (len(row) + len(deep)) % 8)
    many = struct.pack(">4sII", b"DIRC", 2, 100)
    many += b"".join(deep_row.replace(b"a/a", b"%02d/" % number) for number in range(100)) + bytes(20)
    (trap.root / ".git" / f"sharedindex.{'01' * 20}").write_bytes(struct.pack(">4sII", b"DIRC", 2, 0) + bytes(20))
    for raw in (long, wide, many):
        index.write_bytes(raw)
        tracemalloc.start()
        listing = find_files(trap.root)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert {"a.py", "b.py", "sub/c.py"} <= {entry.path for entry in listing.files}
        assert ["git's index is damaged" in note for note in listing.notes] == ([] if raw is many else [True])
        assert peak < 10 * len(raw) + 4_000_000


def test_settings_that_include_one_file_again_and_again(trap: Trap):
    (trap.root / ".git" / "long").write_text("[a]\nb = c\n" + "# x\n" * 100_000)
    trap.config.write_text(trap.plain + "[include]\n" + "path = long\n" * 3)
    with pytest.raises(GitError, match="too long"):
        open_checkout(str(trap.root))
    (trap.root / ".git" / "more").write_text("[include]\n" + "path = more\n" * 20)
    trap.config.write_text(trap.plain + "[include]\npath = more\n")
    with pytest.raises(GitError, match="too long"):
        open_checkout(str(trap.root))
    assert "too long" in find_files(trap.root).notes[0]


# What every command is asked; a new one is added here.
QUESTIONS: dict[str, list[list[str]]] = {
    "search": [["search", "f"]],
    "find": [["find", "what returns two"]],
    "calls": [["calls", "f"]],
    "neighborhood": [["neighborhood", "f"]],
    "graph": [["graph", "f"]],
    "path": [["path", "g", "f"]],
    "impact": [["impact", "f"], ["impact", "--changed"], ["impact", "--changed", "HEAD~1"]],
    "routes": [["routes"]],
    "sig-impact": [["sig-impact", "f", "--to", "f(x)"]],
    "diff": [["diff"], ["diff", "HEAD~1", "HEAD"], ["diff", "HEAD~1...HEAD"], ["calls", "f", "--as-of", "HEAD~1"]],
    "log": [["log", "f"], ["log", "f", "--introduced"]],
    "tests-for": [["tests-for", "f"], ["tests-for", "--changed"]],
    "risk": [["risk"], ["risk", "--changed"], ["risk", "rules"]],
    "imports": [["imports"]],
    "api": [["api"]],
    "dead": [["dead"]],
    "context": [["context", "f"], ["context", "--changed"]],
    "architecture": [["architecture", "--suggest"]],
    "types": [["types", "f"]],
    "references": [["references", "f", "--no-lsp"]],
    "hover": [["hover", "f"]],
    "lsp": [["lsp", "hints", "a.py"]],
    "diagnostics": [["diagnostics", "a.py"]],
    "exceptions": [["exceptions", "f"]],
    "side-effects": [["side-effects"]],
    "scopes": [["scopes", "f"]],
    "bytecode": [["bytecode", "f"]],
    "rank": [["rank"]],
    "projects": [["projects"]],
    "map": [["map", "--heat", "churn"]],
    "run": [["run", "--step", '{"type": "imports"}']],
    "report": [["report", "refactor-impact", "f"]],
    "q": [["q", "entity=function"]],
    "read": [["read", "a.py"], ["read", "a.py", "--blame", "--links"]],
    "index": [["index"], ["index", "--full"]],
    "status": [["status"]],
    "watch": [],  # a process of its own, below
    "validate": [["validate"]],
    "ingest": [["ingest", "scip", "a.py"]],
    "export": [["export", "--out", "../exported"]],
    "artifact": [["artifact", "list"]],
    "facts": [["facts", "a.py"]],
    "languages": [["languages"]],
    "schema": [["schema"]],
    "doctor": [["doctor"]],
    "mcp": [],  # these two speak a protocol, and answer as the commands do
    "web": [],  # asks as they do: tests/surfaces/test_web.py
    "daemon": [["daemon", "status"]],
    "config": [["config", "get", "daemon"]],
    "init": [["init", "claude"]],
    "completion": [["completion", "bash"], ["completion", "words"]],
}


@pytest.fixture
def armed(trap: Trap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trap:
    """All of it at once: settings, hooks, attributes, a nested repository, one without a work tree, a submodule."""
    root = trap.root
    nested = root / "nested"
    nested.mkdir()
    git(nested, "init", "-q")
    (nested / "n.py").write_text("def n(): ...\n")
    git(nested, "add", ".")
    git(nested, "commit", "-qm", "n")
    git(root, "submodule", "add", "-q", str(tmp_path / "repo" / "nested"), "module")
    git(root, "init", "-q", "--bare", "bare")
    # One that git refuses would hide the others from it.
    planted = [
        name for name in SETTINGS if not name.lower().startswith(ELSEWHERE) and _is_taken(root, name, trap.program)
    ]
    for folder in (root / ".git", nested / ".git", root / "bare", root / ".git" / "modules" / "module"):
        (folder / "hooks").mkdir(exist_ok=True)
        for hook in HOOKS:
            shutil.copy(trap.program, folder / "hooks" / hook)
        with (folder / "config").open("a") as file:
            file.write("".join(_write_setting(name, str(trap.program)) for name in planted))
    for where in (root, nested):
        trap.write_attributes(where)
    git(
        root,
        "-c",
        "core.fsmonitor=false",
        "diff",
        "--no-ext-diff",
        "--no-textconv",
        "--ignore-submodules",
        "HEAD",
        check=False,
    )
    assert trap.is_sprung()
    monkeypatch.chdir(root)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
    return trap


def _is_taken(root: Path, name: str, program: Path) -> bool:
    done = subprocess.run(
        ["git", "-c", f"{name}={program}", "diff", "HEAD"], cwd=root, capture_output=True, check=False
    )
    return done.returncode == 0


@pytest.mark.slow
def test_no_command_runs_or_writes_anything(armed: Trap, monkeypatch: pytest.MonkeyPatch):
    assert QUESTIONS.keys() == COMMANDS.keys()
    before, program = digest(armed.root), armed.program.read_bytes()
    for asked in QUESTIONS.values():
        for argv in asked:
            monkeypatch.setattr(sys, "stdin", io.StringIO(""))
            main(argv)
            assert (argv, armed.is_sprung()) == (argv, False)
            assert (argv, digest(armed.root)) == (argv, before)
    assert armed.program.read_bytes() == program


def test_watching_runs_and_writes_nothing(armed: Trap):
    before = digest(armed.root)
    process = subprocess.Popen(
        [sys.executable, "-m", "cq", "watch"], cwd=armed.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout
    assert process.stdout.readline()  # it has indexed
    assert digest(armed.root) == before
    (armed.root / "later.py").write_text("def later(): ...\n")
    assert process.stdout.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert not armed.is_sprung()


def test_line_ends_and_pointers_that_a_checkout_makes_are_no_change(trap: Trap):
    """What needs no program to be told is told: CRLF, an encoding, `$Id$`, a file of Git LFS."""
    root = trap.root
    long = b"x = 1\n" * 100
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{hashlib.sha256(long).hexdigest()}\nsize 600\n"
    (root / "big.py").write_text(pointer)
    (root / "id.py").write_text("# $Id$\n")
    (root / "wide.py").write_text("x = 'é'\n")
    (root / ".gitattributes").write_text("*.py text=auto\nbig.py filter=lfs\nid.py ident\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "three")
    (root / ".gitattributes").write_text(
        "*.py text=auto\nbig.py filter=lfs\nid.py ident\nwide.py working-tree-encoding=UTF-16LE\n"
    )
    (root / "big.py").write_bytes(long)
    (root / "id.py").write_text("# $Id: 0123 $\n")
    (root / "wide.py").write_bytes("x = 'é'\n".encode("utf-16-le"))
    for name in ("b.py", "sub/c.py"):
        (root / name).write_bytes((root / name).read_bytes().replace(b"\n", b"\r\n"))
    (root / "a.py").write_bytes(b"def f():\r\n    return 3\r\n\r\n\r\ndef g():\r\n    return f()\r\n")
    changes = find_changes(root, "HEAD")
    assert changes == {
        "a.py": Change((2,), (), (b"    return 2\n",)),
        ".gitattributes": Change((4,)),
    }


@pytest.mark.parametrize(
    "name", ["punycode", "idna", "unicode_escape", "raw_unicode_escape", "undefined", "rot13", "zip", "x\0"]
)
def test_an_encoding_that_no_text_has_is_not_tried(trap: Trap, name: str):
    """Some of Python's own cost the square of the text: 400 kB kept `cq impact --changed` busy for seconds."""
    (trap.root / ".gitattributes").write_bytes(b"*.py working-tree-encoding=" + name.encode() + b"\n")
    (trap.root / "a.py").write_text("x-\\x41-9a\n")
    assert find_changes(trap.root, "HEAD")["a.py"].lines == (1,)
    for text in (b"x-\\x41-9a\n", b"maana-pta", b"xn--maana-pta"):
        assert _check_in(text, {"working-tree-encoding": name}) == text


def test_sparse_staged_and_nested_files_count_as_they_lie(trap: Trap, tmp_path: Path):
    root = trap.root
    git(root, "checkout", "-q", "a.py")
    (root / "staged.py").write_text("x\n")
    git(root, "add", "staged.py")
    (root / "meant.py").write_text("y\nz")
    git(root, "add", "-N", "meant.py")
    git(root, "update-index", "--skip-worktree", "b.py")
    (root / "b.py").unlink()
    git(root, "rm", "-q", "--cached", "a.py")
    (root / "link.py").symlink_to("a.py")
    inner = root / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "i.py").write_text("i\n")
    assert find_changes(root, "HEAD") == {"staged.py": Change((1,)), "meant.py": Change((1, 2))}
    assert find_changes(root / "sub", "HEAD~1") == {
        "c.py": Change((1,), (), (b"def h(): ...\n",)),
    }
    tree = tmp_path / "tree"
    git(root, "worktree", "add", "-q", str(tree), "-b", "side")
    (tree / "b.py").write_text("f()\n")
    assert find_changes(tree, "main") == {
        "b.py": Change((), (0,), (b"from a import f\n",)),
    }


def test_revisions_are_named_as_git_names_them(trap: Trap, tmp_path: Path):
    root = trap.root
    git(root, "tag", "-a", "v1", "HEAD~1", "-m", "x")
    git(root, "pack-refs", "--all")
    git(root, "gc", "-q")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(root), str(clone))
    (clone / "b.py").write_text("f()\n")
    for name in ("HEAD", "main", "@{upstream}", "origin", "origin/main", "HEAD^{/two}", "HEAD@{0}"):
        assert find_changes(clone, name).keys() == {"b.py"}, name
    for name in ("v1", "HEAD~1", "HEAD^", "v1^{commit}"):
        assert find_changes(clone, name).keys() == {"b.py", "sub/c.py"}, name
    for name in ("nowhere", "HEAD~9", "--all", "-p", "", "HEAD:a.py", "HEAD..v1"):
        with pytest.raises(GitError):
            find_changes(clone, name)


def test_sha256_and_alternates(tmp_path: Path):
    root = tmp_path / "new"
    root.mkdir()
    git(root, "init", "-q", "--object-format=sha256")
    (root / "a.py").write_text("x\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    shared = tmp_path / "shared"
    git(tmp_path, "clone", "-q", "--shared", str(root), str(shared))
    for where in (root, shared):
        (where / "a.py").write_text("y\n")
        assert find_changes(where, "HEAD") == {"a.py": Change((1,), (), (b"x\n",))}
