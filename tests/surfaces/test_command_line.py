"""How `cq` starts and how it fails: one line, the right exit code, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import cq
from cq.model.errors import SourceError
from cq.surfaces import cli

# A real process with one extra command, `fake`, whose body is given as text.
_PROCESS = """
import sys, types
from cq.surfaces import cli
module = types.ModuleType("fake")
exec(sys.argv.pop(1), module.__dict__)
module.configure = lambda parser: None
sys.modules["fake"] = module
cli.COMMANDS["fake"] = ("fake", "a command for tests")
sys.exit(cli.main())
"""


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Namespace], int]], None]:
    """Registers `cq fake [PATH] [MORE] [--format md|json] [--limit N]` with the given body."""

    def configure(parser: ArgumentParser) -> None:
        parser.add_argument("path", nargs="?")
        parser.add_argument("more", nargs="?")
        parser.add_argument("--format", choices=["md", "json"])
        parser.add_argument("--limit", type=int)
        parser.epilog = "examples:\n  cq fake x"

    def register(run: Callable[[Namespace], int]) -> None:
        module = ModuleType("fake")
        module.__dict__.update(configure=configure, run=run)
        monkeypatch.setitem(sys.modules, "fake", module)
        monkeypatch.setitem(cli.COMMANDS, "fake", ("fake", "a command for tests"))

    return register


def run_process(body: str, *, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", _PROCESS, body, "fake"],
        cwd=cwd,
        env={**os.environ, "CQ_VERBOSE": "", **env},
        capture_output=True,
        timeout=60,
        check=False,
    )


def test_version_imports_nothing_heavy():
    heavy = {"argparse", "msgspec", "tree_sitter", "xxhash", "pathspec", "numpy", "sqlite3", "subprocess", "asyncio"}
    code = f"import sys, cq.surfaces.cli as c; c.main(['--version']); print(sorted({heavy!r} & set(sys.modules)))"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert process.stdout.splitlines() == [f"cq {cq.__version__}", "[]"]


def test_python_m_cq_is_cq():
    process = subprocess.run([sys.executable, "-m", "cq", "-V"], capture_output=True, text=True, check=True, timeout=60)
    assert process.stdout == f"cq {cq.__version__}\n"


def test_help_lists_every_command_with_examples(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(out.count(f"  {name} ") == 1 and line in out for name, (_, line) in cli.COMMANDS.items())
    assert "examples:" in out


def test_help_of_a_command(fake: Callable[..., None], capsys: pytest.CaptureFixture[str]):
    fake(lambda _: pytest.fail("--help must not run the command"))
    assert cli.main(["fake", "--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("usage: cq fake")
    assert "a command for tests" in out
    assert "  cq fake x" in out


def test_arguments_and_exit_code_pass_through(fake: Callable[..., None]):
    seen: list[Namespace] = []
    fake(lambda args: seen.append(args) or 1)
    assert cli.main(["fake", "a.py", "--format=json", "--limit", "3"]) == 1
    assert (seen[0].path, seen[0].format, seen[0].limit) == ("a.py", "json", 3)


def test_options_may_stand_between_arguments(fake: Callable[..., None]):
    seen: list[Namespace] = []
    fake(lambda args: seen.append(args) or 0)
    assert cli.main(["fake", "a.py", "--limit", "3", "b.py"]) == 0
    assert (seen[0].path, seen[0].limit, seen[0].more) == ("a.py", 3, "b.py")


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--color", "maybe"], "--color is auto, always or never"),
        (["help", "a", "b"], "unexpected argument 'b'"),
        (["help", "fakt"], "unknown command 'fakt' (did you mean 'fake'?"),
        (["fakt"], "unknown command 'fakt' (did you mean 'fake'?"),
        (["zzz"], "unknown command 'zzz' (see `cq --help`)"),
        (["--verison"], "unknown option '--verison' (did you mean '--version'?"),
        (["fake", "--fromat=json"], "unknown option '--fromat' (did you mean '--format'?"),
        (["fake", "--form", "json"], "unknown option '--form' (did you mean '--format'?"),
        (["fake", "--format", "jsn"], "'jsn' is not one of md, json (did you mean 'json'?"),
        (["fake", "--limit", "many"], "--limit"),
        (["fake", "--limit"], "--limit"),
        (["fake", "a", "b", "c"], "unexpected argument 'c'"),
        (["fake", "a", "--limit", "3", "b", "c"], "unexpected argument 'c'"),
    ],
)
def test_a_misuse_is_one_line_with_a_hint(
    argv: list[str], says: str, fake: Callable[..., None], capsys: pytest.CaptureFixture[str]
):
    fake(lambda _: pytest.fail("a misused command must not run"))
    assert cli.main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("cq: usage: ")
    assert err.count("\n") == 1
    assert says in err
    assert "--help`" in err


def test_an_error_of_ours_is_one_line(fake: Callable[..., None], capsys: pytest.CaptureFixture[str]):
    def run(_: Namespace) -> int:
        raise SourceError("cannot read a\nb\x1b[31m\udcff.py", hint="é")

    fake(run)
    assert cli.main(["fake"]) == 2
    assert capsys.readouterr().err == "cq: source: cannot read a\\nb\\x1b[31m\\udcff.py (é)\n"


def test_an_interrupt_is_130(fake: Callable[..., None], capsys: pytest.CaptureFixture[str]):
    def run(_: Namespace) -> int:
        raise KeyboardInterrupt

    fake(run)
    assert cli.main(["fake"]) == 130
    assert capsys.readouterr().err == "cq: interrupted\n"


def test_a_bug_of_ours_is_one_line_and_a_traceback_on_request():
    body = "def run(args): print('before'); return {}['key']"
    quiet = run_process(body)
    assert (quiet.returncode, quiet.stdout) == (2, b"before\n")
    assert quiet.stderr.startswith(b"cq: internal: KeyError: 'key' (set CQ_VERBOSE=1")
    assert quiet.stderr.count(b"\n") == 1
    assert b"Traceback" in run_process(body, CQ_VERBOSE="1").stderr


def test_a_reader_that_leaves_is_no_error():
    body = "def run(args):\n  for i in range(100_000): print(i)\n  return 0"
    with subprocess.Popen(
        [sys.executable, "-c", _PROCESS, body, "fake"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"0\n"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_full_disk_is_one_line():
    with Path("/dev/full").open("wb") as full:
        process = subprocess.run(
            [sys.executable, "-m", "cq", "--help"], stdout=full, stderr=subprocess.PIPE, check=False, timeout=60
        )
    assert (process.returncode, process.stderr) == (2, b"cq: io: No space left on device\n")


def test_closed_output_streams_are_no_error():
    for close in (">&-", "2>&-", ">&- 2>&-"):
        done = subprocess.run(
            ["/bin/sh", "-c", f'"$0" -m cq --version {close}', sys.executable],
            capture_output=True,
            check=False,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, b""), close


def test_a_deleted_working_directory_is_one_line(tmp_path: Path):
    gone = tmp_path / "gone"
    gone.mkdir()
    body = "def run(args):\n  import os\n  os.rmdir(os.getcwd())\n  return len(os.getcwd())"
    done = run_process(body, cwd=gone)
    assert done.returncode == 2
    assert done.stderr.startswith(b"cq: io: the working directory no longer exists")
    assert done.stderr.count(b"\n") == 1


def test_text_leaves_as_it_came_in_any_locale():
    body = "def run(args): print('\\xe9\\u2192 \\udcff'); return 0"
    done = run_process(body, PYTHONIOENCODING="ascii", LC_ALL="C", PYTHONUTF8="0")
    assert (done.returncode, done.stdout) == (0, "é→ ".encode() + b"\xff\n")
