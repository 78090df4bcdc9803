"""The daemon as real processes: the same bytes with and without it, and what happens when something dies."""

from __future__ import annotations

import os
import re
import signal
import socket
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cq import __version__
from cq.surfaces.client import list_environment, pack_request
from cq.surfaces.daemon import DaemonStatus, is_own, parse_request
from tests.support.daemon import Place, make_place

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="the daemon needs Linux")]

Cq = Callable[..., subprocess.CompletedProcess[bytes]]
_ELAPSED = re.compile(rb'[\d,]+ ms$|"elapsed_ms":[\d.]+|"stages_ms":\{[^}]*\}|[\d.,]+ [kMG]B (are )?free', re.MULTILINE)


@pytest.fixture
def place() -> Iterator[Place]:
    with make_place() as place:
        yield place


@pytest.fixture
def daemon(place: Place) -> Place:
    assert place.cq("daemon", "start") == (0, b"started\n", b"")
    return place


_COMMANDS = [
    ("search", "save"),
    ("search", "save", "--format", "json"),
    ("search", "save", "--format", "plain"),
    ("search", "svae"),
    ("search", "save", "--kind", "definitoin"),
    ("calls", "save"),
    ("calls", "src/db.py:1", "--format", "jsonl"),
    ("read", "src/db.py:save"),
    ("completion", "words", "--", "calls", "sa"),
    ("--color", "always", "search", "save"),
    ("facts", "src/db.py"),
    ("facts", "-", "--lang", "python", "--format", "plain"),
    ("facts", "nowhere.py"),
    ("status",),
    ("status", "--config"),
    ("validate", "--strict"),
    ("artifact", "get", "x"),
    ("languages", "--format", "json"),
    ("schema", "answer"),
    ("doctor",),
    ("serach",),
    ("search", "--help"),
    ("--help",),
    (),
]


def test_the_same_bytes_with_and_without(place: Place):
    place.cq("search", "save")
    text = b"def f(): g()\n"
    alone = [place.cq(*command, text=text) for command in _COMMANDS]
    place.cq("daemon", "start")
    through = [place.cq(*command, text=text) for command in _COMMANDS]
    asked = [words for words in _COMMANDS if "completion" not in words]  # a name is completed by the client itself
    assert place.served() == len(asked)
    for command, one, other in zip(_COMMANDS, alone, through, strict=True):
        assert one[0] == other[0], command
        for before, after in zip(one[1:], other[1:], strict=True):
            assert _ELAPSED.sub(b"", before) == _ELAPSED.sub(b"", after), command


def test_environment_and_directory_are_the_caller_s_each_time(daemon: Place):
    assert daemon.cq("search", "save", CQ_FORMAT="plain")[1].startswith(b"src/")
    assert daemon.cq("search", "save")[1].startswith(b"4 mentions in 2 files")
    other = daemon.root.parent / "other"
    other.mkdir()
    (other / "x.py").write_text("def only_here(): ...\n")
    assert daemon.cq("search", "only_here", "--root", str(other), "--format", "plain")[0] == 0
    assert daemon.cq("search", "only_here", "--format", "plain")[0] == 1


def test_a_file_that_changed_is_seen(daemon: Place):
    for number in range(3):
        (daemon.root / "src" / "new.py").write_text(f"def fresh_{number}(): ...\n")
        assert daemon.cq("search", f"fresh_{number}", "--format", "plain")[1].startswith(b"src/new.py:1:5:")


def test_a_closed_stream_and_a_reader_that_leaves(daemon: Place):
    for close in ("<&-", ">&-", "2>&-"):
        done = subprocess.run(
            ["/bin/sh", "-c", f'"$0" -m cq search save {close}', sys.executable],
            cwd=daemon.root, env=daemon.environment, capture_output=True, timeout=60, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, b"")
    for name in range(20):
        (daemon.root / f"big{name}.py").write_text("".join(f"save({number})\n" for number in range(900)))
    pipe = f'"{sys.executable}" -m cq search save --format plain | head -n 1; "{sys.executable}" -m cq search main'
    done = subprocess.run(
        ["/bin/sh", "-c", pipe], cwd=daemon.root, env=daemon.environment, capture_output=True, timeout=60, check=False
    )
    assert b"big" not in done.stdout  # what was left of the first answer is not in the second
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_socket_is_the_user_s_alone(daemon: Place):
    assert stat.S_IMODE(daemon.socket.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(daemon.socket.stat().st_mode) == 0o600


def test_another_user_is_not_heard():
    class Link:
        def getsockopt(self, *_: object) -> bytes:
            return struct.pack("3i", 1, os.getuid() + 1, 1)

    assert not is_own(Link())  # pyright: ignore
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert is_own(ours)


def test_a_directory_that_others_may_enter_is_not_trusted(daemon: Place):
    daemon.socket.parent.chmod(0o755)
    before = daemon.cq("search", "save")
    daemon.socket.parent.chmod(0o700)
    assert before[0] == 0
    assert daemon.served() == 0


def test_another_version_is_replaced(daemon: Place):
    old = daemon.status()
    assert old is not None
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(daemon.socket))
        body = pack_request("run", ["search", "save"])[4:].replace(__version__.encode(), b"9" * len(__version__), 1)
        link.sendall(len(body).to_bytes(4, "big") + body)
        assert link.recv(10) == b"r"
    _wait(lambda: not Path(f"/proc/{old.pid}").exists())
    assert daemon.cq("search", "save")[0] == 0


@pytest.mark.parametrize("sent", [b"", b"\0", b"\xff\xff\xff\xff", b"\0\0\0\4abcd", b"\0\0\0\1abcdef"])
def test_garbage_is_hung_up_on(daemon: Place, sent: bytes):
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(daemon.socket))
        link.sendall(sent)
        link.shutdown(socket.SHUT_WR)
        assert link.recv(10) == b""
    assert daemon.cq("search", "save")[0] == 0


def test_requests_round_trip():
    request = parse_request(pack_request("run", ["search", "", "a b\udcff"])[4:])
    assert (request.verb, request.argv, request.cwd) == ("run", ["search", "", "a b\udcff"], os.getcwd())  # noqa: PTH109
    assert request.environment == list_environment()


def test_twenty_clients_at_once(daemon: Place):
    expected = daemon.cq("calls", "save", "--format", "plain")
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: daemon.cq("calls", "save", "--format", "plain"), range(200)))
    assert set(answers) == {expected}
    assert daemon.served() == 201


def test_kill_9_amid_requests(daemon: Place):
    expected = daemon.cq("calls", "save", "--format", "plain")
    status = daemon.status()
    assert status is not None
    with ThreadPoolExecutor(20) as pool:
        answers = [pool.submit(daemon.cq, "calls", "save", "--format", "plain") for _ in range(60)]
        time.sleep(0.5)
        os.kill(status.pid, signal.SIGKILL)
        for answer in answers:
            assert answer.result() == expected or b"the daemon ended" in answer.result()[2]
    assert daemon.cq("calls", "save", "--format", "plain") == expected
    assert daemon.cq("daemon", "start")[1] == b"started\n"  # what is left of the socket is no hindrance
    _wait(lambda: not any(Path(f"/proc/{worker['pid']}").exists() for worker in status.workers))


def test_a_worker_that_dies_costs_nothing(daemon: Place):
    status = daemon.status()
    assert status is not None
    os.kill(status.workers[0]["pid"], signal.SIGKILL)
    assert daemon.cq("search", "save")[0] == 0
    after = daemon.status()
    assert after is not None
    assert after.pid == status.pid


def test_language_servers_stay_warm_and_leave_with_the_daemon(daemon: Place):
    plain = daemon.cq("search", "save", "--no-lsp")[1]
    assert b"Language Servers" not in daemon.cq("search", "save")[1]
    assert b"by lsp.pyrefly" in daemon.cq("hover", "src/db.py:save")[1]
    status = daemon.status()
    assert status is not None
    children = [
        int(child)
        for worker in status.workers
        for child in Path(f"/proc/{worker['pid']}/task/{worker['pid']}/children").read_text().split()
    ]
    assert children
    assert b"## Language Servers" in daemon.cq("search", "save")[1]
    assert _ELAPSED.sub(b"", daemon.cq("search", "save", "--no-lsp")[1]) == _ELAPSED.sub(b"", plain)
    daemon.cq("daemon", "stop")
    _wait(lambda: not any(Path(f"/proc/{child}").exists() for child in children))


def test_ctrl_c_cuts_an_answer_short(daemon: Place):
    for number in range(100):
        (daemon.root / f"m{number}.py").write_text("".join(f"value_{at} = save({at})\n" for at in range(400)))
    daemon.cq("index")
    for number, delay in enumerate((0.3, 0.6, 1.0, 0.2, 1.6, 0.1, 2.5)):  # an answer that was given once is remembered
        process = daemon.start("search", f"v.*e|x{number}", "--mode", "regex", "--profile", "audit", "--all")
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
        assert b"Traceback" not in errors
        if b"stopped by the user" in out:
            assert process.returncode == 130
            return
    pytest.fail("no answer was cut short")


def test_a_client_that_is_killed_frees_its_worker(daemon: Place):
    process = daemon.start("facts", "-", "--lang", "python")
    reader = subprocess.Popen(
        [sys.executable, "-m", "cq", "facts", "-", "--lang", "python"], cwd=daemon.root, env=daemon.environment,
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    process.communicate(timeout=60)
    _wait(lambda: (daemon.status() or _fail()).running == 1)
    reader.kill()
    reader.wait()
    _wait(lambda: (daemon.status() or _fail()).running == 0)
    assert reader.stdin is not None
    reader.stdin.close()


def test_idle_and_memory_limits(place: Place):
    assert place.cq("daemon", "start", "--idle", "3", "--memory", "1")[0] == 0
    assert place.cq("search", "save")[0] == 0
    status = place.status()
    assert status is not None
    assert status.workers == ()  # over the ceiling as soon as it is idle
    assert place.cq("search", "save")[0] == 0
    _wait(lambda: not Path(f"/proc/{status.pid}").exists())
    assert not place.socket.exists()


def test_auto_starts_one_and_off_uses_none(place: Place):
    assert place.cq("config", "get", "daemon")[1] == b"manual\n"
    assert place.cq("search", "save")[0] == 0
    assert place.status() is None
    assert place.cq("config", "set", "daemon", "auto")[0] == 0
    assert place.cq("search", "save")[0] == 0
    _wait(lambda: place.status() is not None)
    place.cq("search", "save")
    assert place.served() == 1
    assert place.cq("config", "set", "daemon", "off")[0] == 0
    place.cq("search", "save")
    assert place.served() == 1
    assert b"did you mean 'auto'" in place.cq("config", "set", "daemon", "atuo")[2]
    assert not list(place.root.glob(".cq*"))


def test_where_there_can_be_no_daemon_every_command_runs_by_itself(daemon: Place):
    """As on a system without unix sockets, or one that does not say who is at the other end."""
    alone = (
        "import sys, _socket; sys.platform = 'darwin'; del _socket.AF_UNIX, _socket.SO_PEERCRED;"
        "from cq.surfaces.client import main; sys.exit(main())"
    )

    def cq(*arguments: str) -> tuple[int, bytes, bytes]:
        done = subprocess.run(
            [sys.executable, "-c", alone, *arguments], cwd=daemon.root, env=daemon.environment, capture_output=True,
            timeout=60, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    daemon.cq("config", "set", "daemon", "auto")
    assert cq("calls", "save", "--format", "plain") == daemon.cq("calls", "save", "--format", "plain")
    assert daemon.served() == 1
    status, out, errors = cq("daemon", "start")
    assert (status, out, errors.count(b"\n")) == (2, b"", 1)
    assert errors.startswith(b"cq: daemon: ")


def _wait(is_so: Callable[[], bool]) -> None:
    for _ in range(200):
        if is_so():
            return
        time.sleep(0.1)
    pytest.fail("it did not happen within 20 s")


def _fail() -> DaemonStatus:
    pytest.fail("no daemon")
