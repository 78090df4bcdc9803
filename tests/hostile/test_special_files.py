"""Pipes, sockets, devices and directories where files are expected: nothing waits for them, and answers say so."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cq.opening import NotRegularError, open_regular, read_file
from cq.source.files import find_files
from cq.source.read import read_bytes

pytestmark = pytest.mark.slow

CODE = "def f():\n    return 1\n\n\ndef g():\n    return f()\n"
# What any command could take for a file of settings, of rules, or of git.
NAMES = (
    "pyproject.toml", "package.json", "tsconfig.json", "Cargo.toml", "setup.cfg", "pyrefly.toml", "ty.toml",
    ".gitignore", ".ignore", ".cqignore", ".gitattributes", ".gitmodules", "sub/.gitignore", "sub/tsconfig.json",
    "requirements.txt", "mypy.ini", "compile_commands.json", ".clangd", ".mcp.json", "CLAUDE.md", "x.py",
    "pkg/__init__.py",
)  # fmt: skip
GIT_NAMES = ("config", "index", "HEAD", "packed-refs", "info/exclude", "info/attributes", "commondir", "shallow",
             "objects/info/alternates", "refs/heads/main", "FETCH_HEAD", "objects/pack/pack-x.idx")  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    for folder in ("sub", "pkg"):
        (root / folder).mkdir(parents=True)
    (root / "a.py").write_text(CODE)
    (root / "a.ts").write_text("export const f = () => 1;\n")
    return root


def make_repository(root: Path) -> None:
    names = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "x")):
        subprocess.run(["git", *names, *words], cwd=root, check=True, capture_output=True)


def put_pipe(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)


FOLDERS = {"CACHE_HOME": "cache", "RUNTIME_DIR": "run", "CONFIG_HOME": "config"}


def cq(root: Path, *words: str, code: int | None = None) -> str:
    """A command that waits for a pipe would wait for good: it is ended, and that is a failure."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("CQ_")}
    where = {f"XDG_{name}": str(root.parent / folder) for name, folder in FOLDERS.items()}
    done = subprocess.run(
        [sys.executable, "-m", "cq", *words], cwd=root, env=environment | where, capture_output=True, text=True,
        timeout=120, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert "internal" not in done.stderr
    assert "Traceback" not in done.stderr
    assert code is None or done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_only_regular_files_are_opened(tmp_path: Path):
    pipe, sock, folder = tmp_path / "pipe", tmp_path / "sock", tmp_path / "folder"
    os.mkfifo(pipe)
    folder.mkdir()
    link = tmp_path / "link"
    link.symlink_to(pipe)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(sock))
        for path in (pipe, sock, folder, link, "/dev/zero", "/dev/tty"):
            with pytest.raises((NotRegularError, FileNotFoundError)):
                read_file(path, 10)
    (tmp_path / "plain").write_bytes(b"12345")
    assert (read_file(tmp_path / "plain"), read_file(tmp_path / "plain", 2)) == (b"12345", b"12")
    link.unlink()
    link.symlink_to("plain")
    assert read_file(link) == b"12345"
    with pytest.raises(OSError, match="symbolic links"):
        open_regular(link, follow=False)
    for name in ("pipe", "folder", "sock"):
        found = read_bytes(str(tmp_path), name, 10)
        assert not isinstance(found, bytes)
        assert found.reason == "special"


def test_a_file_that_becomes_a_pipe_while_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "a"
    path.write_text("x")
    look = os.stat

    def swap(*words: object, **more: object):
        status = look(*words, **more)  # pyright: ignore[reportArgumentType, reportCallIssue]
        path.unlink()
        os.mkfifo(path)
        return status

    monkeypatch.setattr(os, "stat", swap)
    with pytest.raises(NotRegularError):
        read_file(path)


@pytest.mark.parametrize("by_git", [False, True])
def test_settings_and_rules_that_are_pipes(root: Path, by_git: bool):
    if by_git:
        make_repository(root)
    for name in NAMES:
        put_pipe(root / name)
    assert cq(root, "index", code=0)
    assert "f" in cq(root, "search", "f", code=0)
    assert "not read: special" in cq(root, "status", code=0)
    for words in (["imports"], ["find", "what returns one"], ["init", "claude"], ["impact", "f"], ["read", "a.py"]):
        cq(root, *words)
    assert "not a regular file" in cq(root, "init", "claude", code=2)
    if by_git:
        cq(root, "impact", "--changed")


@pytest.mark.parametrize("name", GIT_NAMES)
def test_a_repository_whose_files_are_pipes(root: Path, name: str):
    make_repository(root)
    put_pipe(root / ".git" / name)
    assert {"a.py", "a.ts"} <= {entry.path for entry in find_files(root).files}
    if name in ("config", "index", "HEAD", "refs/heads/main", "objects/pack/pack-x.idx"):
        cq(root, "impact", "--changed")
        cq(root, "neighborhood", "f", code=0)


def test_our_settings_as_a_pipe_are_an_error(root: Path):
    put_pipe(root / "cq.toml")
    assert "cq.toml is not read: special" in cq(root, "search", "f", code=2)


@pytest.mark.parametrize("name", ["settings.toml", "models.toml"])
def test_settings_of_the_user_that_are_pipes_keep_nobody_waiting(root: Path, name: str):
    put_pipe(root.parent / "config" / "cq" / name)
    cq(root, "daemon", "status")
    cq(root, "config", "get", "daemon")
    cq(root, "search", "f")


@pytest.mark.parametrize("path", ["pipe", "/dev/zero", "/dev/stdin", "sub", "nothing"])
def test_arguments_that_are_no_files(root: Path, path: str):
    put_pipe(root / "pipe")
    cq(root, "index")
    for words in (
        ["ingest", "scip", path], ["run", path], ["facts", path],
        ["mcp", "--http", "127.0.0.1:0", "--token-file", path], ["validate", "--artifacts", path],
    ):  # fmt: skip
        cq(root, *words, code=2)
    cq(root, "read", path)


def test_an_export_with_pipes_is_not_whole(root: Path):
    cq(root, "export", "--out", "../out", code=0)
    out = root.parent / "out"
    pieces = sorted(path for path in out.rglob("*") if path.is_file())
    for path in pieces[::4]:
        kept = path.read_bytes()
        put_pipe(path)
        cq(root, "validate", "--artifacts", str(out), code=2)
        path.unlink()
        path.write_bytes(kept)
    cq(root, "validate", "--artifacts", str(out), code=0)


def test_an_index_that_is_a_pipe(root: Path):
    cq(root, "index", code=0)
    for path in sorted((root.parent / "cache" / "cq").rglob("*")):
        if path.is_file():
            put_pipe(path)
    cq(root, "search", "f")  # it may be an error, and it ends


@pytest.mark.skipif(shutil.which("pyrefly", path=str(Path(sys.executable).parent)) is None, reason="no pyrefly")
def test_language_servers_are_not_given_pipes(root: Path):
    """Each would wait for its own time limit, and an answer for each of them."""
    put_pipe(root / "pyproject.toml")
    answer = cq(root, "references", "f")
    assert "pyproject.toml" in answer
    assert "regular file" in answer
