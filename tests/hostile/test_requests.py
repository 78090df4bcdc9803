"""What the daemon is told: frames that no client of ours sends, words that would be something else, variables that name
code for a program to load, and a working directory that is gone."""

from __future__ import annotations

import array
import ast
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cq.source.program import choose_environment
from cq.surfaces.client import MAX_REQUEST, list_environment, pack_request
from cq.surfaces.daemon import _work, parse_request
from tests.support.daemon import Place, make_place

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="the daemon needs Linux")]

# Each makes a program run code, or read another tree, where it is heeded.
EVIL = {
    "LD_PRELOAD": "/repo/evil.so", "LD_AUDIT": "/repo/evil.so", "LD_LIBRARY_PATH": "/repo",
    "DYLD_INSERT_LIBRARIES": "/x",
    "PYTHONPATH": "/repo", "PYTHONSTARTUP": "/repo/x.py", "PYTHONHOME": "/repo", "PYTHONINSPECT": "1",
    "GIT_DIR": "/elsewhere", "GIT_EXTERNAL_DIFF": "/repo/x", "GIT_SSH_COMMAND": "/repo/x", "GIT_CONFIG_COUNT": "1",
    "NODE_OPTIONS": "--require /repo/x.js", "RUSTC_WRAPPER": "/repo/x", "RUSTFLAGS": "-C linker=/repo/x",
    "GOFLAGS": "-toolexec=/repo/x", "BASH_ENV": "/repo/x", "GCONV_PATH": "/repo", "PERL5LIB": "/repo", "EDITOR": "/x",
}  # fmt: skip


@pytest.fixture
def place() -> Iterator[Place]:
    with make_place() as place:
        yield place


@pytest.fixture
def daemon(place: Place) -> Place:
    assert place.cq("daemon", "start") == (0, b"started\n", b"")
    return place


def _pack(*lists: list[bytes]) -> bytes:
    return b"".join(
        len(fields).to_bytes(4, "big") + b"".join(len(field).to_bytes(4, "big") + field for field in fields)
        for fields in lists
    )


HEAD = [b"id", b"run", b"1", b"18", b"/"]


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))))
def test_words_stay_the_words_they_are(words: list[str]):
    request = parse_request(pack_request("run", words, cwd="/")[4:])
    assert (request.argv, request.cwd) == (words, "/")
    assert request.environment == list_environment()


@given(st.binary(max_size=200))
def test_no_bytes_are_taken_for_a_request(body: bytes):
    with suppress(ValueError):
        parse_request(body)


@given(st.integers(0, 400))
def test_a_request_cut_short_or_with_more_behind_it_is_none(at: int):
    whole = pack_request("run", ["search", "save"], cwd="/")[4:]
    if at < len(whole):
        with pytest.raises(ValueError, match=r"cut short|not a request"):
            parse_request(whole[:at])
    with pytest.raises(ValueError, match="not a request"):
        parse_request(whole + b"x")


@pytest.mark.parametrize(
    "body",
    [
        _pack(HEAD, [b"search", b"a\0--root=/elsewhere"], []),
        _pack(HEAD, [b"search"], [b"PATH", b"/bin\0LD_PRELOAD=/x"]),
        _pack(HEAD, [b"search"], [b"LD_PRELOAD", b"/repo/evil.so"]),
        _pack(HEAD, [b"search"], [b"PATH"]),
        _pack(HEAD, [b"search"]),
        _pack([*HEAD, b"more"], [], []),
        _pack([b"id", b"run", b"-1", b"18", b"/"], [], []),
        _pack([b"id", b"run", b"1", b"-18", b"/"], [], []),
        _pack([b"id", b"run", b"1", b"99999999999999999999", b"/"], [], []),
        _pack([b"id", b"run", b"1", b"18", b"src"], [], []),
        b"\xff\xff\xff\xff" + b"\0" * 64,
        _pack(HEAD)[:-5] + b"\xff\xff\xff\xff/",
    ],
)
def test_what_no_client_sends_is_refused(body: bytes):
    with pytest.raises(ValueError):  # noqa: PT011  any: it is hung up on
        parse_request(body)


def test_variables_are_handed_over_by_name():
    kept = {"PATH": "/bin", "HOME": "/home/x", "CQ_ROOT": "/x", "LC_ALL": "C", "XDG_CACHE_HOME": "/x", "NO_COLOR": "1"}
    assert choose_environment(EVIL | kept | {"AWS_SECRET_ACCESS_KEY": "x"}) == kept
    # What is named from the working directory is no place for programs, nor is an empty PATH, which means it.
    assert choose_environment({"PATH": ":/a:.:b/c:../d"}) == {"PATH": "/a"}
    assert choose_environment({"PATH": ":.:b"}) == {}
    assert choose_environment(EVIL, EVIL).keys().isdisjoint(name for name in EVIL if name[:3] in ("LD_", "PYT", "GIT"))


def test_the_key_of_a_model_is_handed_over_where_the_user_names_its_variable(tmp_path: Path):
    (tmp_path / "cq").mkdir()
    (tmp_path / "cq" / "models.toml").write_text(
        '[service]\nkey_variable = "MY_KEY"  # mine\n[other]\nkey_variable = "LD_PRELOAD"\nkey_variable = "a b"\n'
    )
    given = {
        "XDG_CONFIG_HOME": str(tmp_path),
        "MY_KEY": "1",
        "LD_PRELOAD": "x",
        "OPENAI_API_KEY": "2",
        "A_KEY": "3",
    }
    assert list_environment(given).keys() == {"XDG_CONFIG_HOME", "MY_KEY", "OPENAI_API_KEY"}


def test_hostile_frames_leave_the_daemon_alive(daemon: Place):
    status = daemon.status()
    assert status is not None
    good = pack_request("run", ["search", "save"], cwd=str(daemon.root))
    frames = [
        b"\xff\xff\xff\xff" + good, (MAX_REQUEST + 1).to_bytes(4, "big") + b"x" * 100, (0).to_bytes(4, "big"),
        (0).to_bytes(4, "big") + good, good + good, good[:-3], (8).to_bytes(4, "big") + b"\xff" * 8,
        (1 << 20).to_bytes(4, "big") + b"\0" * (1 << 20), (4).to_bytes(4, "big") + b"\xff\xff\xff\xff",
    ]  # fmt: skip
    for frame in frames:
        _send(daemon, frame)
    for streams in (0, 1, 2, 4, 64):  # too few, too many
        _send(daemon, good, streams)
    after = daemon.status()
    assert after is not None
    assert after.pid == status.pid
    assert daemon.cq("search", "save")[0] == 0
    assert daemon.served() == 1
    open_files = list(Path(f"/proc/{status.pid}/fd").iterdir())
    assert len(open_files) < 30  # what was sent along was closed


def _send(place: Place, frame: bytes, streams: int = 0) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    with socket.socket(socket.AF_UNIX) as link, suppress(OSError):
        link.settimeout(20)
        link.connect(str(place.socket))
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [nothing] * streams))] if streams else []
        sent = link.sendmsg([frame], rights)
        link.sendall(frame[sent:])
        link.shutdown(socket.SHUT_WR)
        assert link.recv(10) in (b"", b"n")
    os.close(nothing)


def test_a_process_is_given_no_variable_that_names_code(place: Place):
    """The daemon, its workers, and the language servers that a worker starts."""
    evil = {name: value for name, value in EVIL.items() if not name.startswith("PYTHON")}  # the client runs as well
    assert place.cq("daemon", "start", **evil)[0] == 0
    place.cq("hover", "src/db.py:save", **evil)
    status = place.status()
    assert status is not None
    workers = [worker["pid"] for worker in status.workers]
    children = [int(word) for pid in workers for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    assert children
    for pid in (status.pid, *workers, *children):
        told = {word.partition(b"=")[0].decode() for word in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")}
        assert told.isdisjoint(EVIL), pid


@pytest.mark.parametrize("cwd", ["/tmp", "/nowhere"])
def test_the_variables_of_a_request_end_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cwd: str):
    """Also of one that fails: the work between requests has the variables that the daemon was started with."""
    seen = tmp_path / "seen"

    def stay_ready(_: object) -> Iterator[float]:
        seen.write_text(repr((sorted(os.environ), os.getcwd(), os.umask(0o22))))  # noqa: PTH109
        yield 60.0

    monkeypatch.setattr("cq.surfaces.idle.stay_ready", stay_ready)
    body = pack_request("run", ["--version"], cwd=cwd)[4:].replace(b"XDG_TESTS_OF_CQ", b"CQ_OF_A_REQUEST")
    own = os.umask(0o77)
    os.umask(own)
    ours, theirs = socket.socketpair()
    link, other_end = socket.socketpair()
    pid = os.fork()
    if not pid:
        _work(theirs.fileno())
    with ours, theirs, link, other_end, Path(os.devnull).open("r+b") as nothing:
        ours.settimeout(20)
        streams = [other_end.fileno(), *[nothing.fileno()] * 3]
        socket.send_fds(ours, [len(body).to_bytes(4, "big")], streams)
        ours.sendall(body)
        while b"x" not in ours.recv(1):
            pass
        while not seen.exists():
            assert os.waitpid(pid, os.WNOHANG) == (0, 0)
            time.sleep(0.01)
    os.waitpid(pid, 0)
    names, where, umask = ast.literal_eval(seen.read_text())
    assert where == "/"
    assert "CQ_OF_A_REQUEST" not in names
    assert "XDG_TESTS_OF_CQ" in names
    assert umask == own


@pytest.mark.parametrize("with_daemon", [False, True])
def test_a_working_directory_that_is_gone(place: Place, with_daemon: bool):
    if with_daemon:
        place.cq("daemon", "start")
    gone = place.root.parent / "gone"

    def ask(*words: str) -> subprocess.CompletedProcess[bytes]:
        gone.mkdir()
        program = f"import os, sys; os.rmdir({str(gone)!r}); from cq.surfaces.client import main; sys.exit(main())"
        return subprocess.run(
            [sys.executable, "-c", program, *words], cwd=gone, env=place.environment, stdin=subprocess.DEVNULL,
            capture_output=True, timeout=60, check=False,
        )  # fmt: skip

    for words in (("search", "save"), ("read", "x.py"), ("q", "entity=function"), (), ("find", "x", "--root", "sub")):
        done = ask(*words)
        assert (done.returncode, done.stdout) == (2, b"")
        assert done.stderr == b"cq: io: the working directory no longer exists (change to one that does)\n"
    assert ask("completion", "words", "--", "calls", "sa").returncode == 1
    for words in (("search", "save"), ("calls", "save", "--in", "src"), ("read", "src/db.py:save"), ("status",)):
        done = ask(*words, "--root", str(place.root))
        assert (done.returncode, done.stderr) == (0, b"")


def test_control_characters_are_refused(place: Place):
    for words in (("search", "a\x1b[31m"), ("q", "name=\x07"), ("read", "a\x01.py"), ("calls", "x", "--in", "a\x7f"),
                  ("sig-impact", "save", "--to", "save(\x02)"), ("artifact", "get", "x\x1b")):  # fmt: skip
        status, out, errors = place.cq(*words)
        assert (status, out) == (2, b""), words
        assert errors.startswith(b"cq: usage: "), words
        assert b"holds a control character (U+00" in errors
        assert errors.count(b"\n") == 1
    assert place.cq("q", "entity=function\n\tname=save")[0] == 0


def test_a_root_is_named_once(place: Place):
    for words in (("--root", "/", "search", "x", "--root=."), ("search", "x", "--root=.", "--root=/")):
        status, _, errors = place.cq(*words)
        assert status == 2, words
        assert errors.startswith(b"cq: usage: ")
