"""Servers that do everything wrong: no question outlives its budget, none gets another's answer, no process stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cq.model.provider import Reply
from cq.providers import rpc
from cq.providers import session as sessions_module
from cq.providers.answers import Target
from cq.providers.documents import Document
from cq.providers.planes import ask
from cq.providers.session import Budget, Session
from tests.support.servers import PATIENT, QUICK, STUB, is_gone, stub_session

pytestmark = pytest.mark.alone  # servers have tenths of a second to answer

TEXT = b"".join(b"line number %d\n" % number for number in range(200))
SLACK = 5.0  # for a loaded machine; a hang would be longer


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Session]]:
    started: list[Session] = []

    def make(*mode: str, **more: object) -> Session:
        started.append(stub_session(tmp_path, *mode, **more))
        return started[-1]

    yield make
    groups = [session.pid for session in started]
    for session in started:
        session.close()
    assert all(is_gone(group) for group in groups if group)


def hover(session: Session, count: int = 1, budget: Budget = PATIENT) -> list[Reply]:
    document = Document("a.py", "python", TEXT)
    starts = document.table.starts
    return ask(session, "hover", [Target(document, starts[line] + line % 5) for line in range(count)], budget)


def texts(replies: list[Reply]) -> list[str]:
    return [reply.items[0].text if reply.items else "" for reply in replies]


def what_it_saw(session: Session) -> list[Any]:
    deadline = time.monotonic() + 20
    connection = session.connect(PATIENT, deadline)
    (seen,) = session.call(connection, "stub/seen", [{}], heavy=False, budget=PATIENT, deadline=deadline)
    return seen


def right(count: int) -> list[str]:
    return [f"{line}:{line % 5}" for line in range(count)]


def test_a_good_server_answers_every_question_with_its_own_answer(serve: Callable[..., Session]):
    assert texts(hover(serve("good"), 150)) == right(150)


def test_answers_in_another_order_are_joined_by_their_ids(serve: Callable[..., Session]):
    assert texts(hover(serve("shuffled"), 100)) == right(100)


def test_many_threads_share_one_server(serve: Callable[..., Session]):
    session = serve("shuffled")
    found: list[list[str]] = []
    threads = [threading.Thread(target=lambda: found.append(texts(hover(session, 30)))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [right(30)] * 6
    assert session.generation == 1


def test_a_slow_start_ends_with_its_budget(serve: Callable[..., Session]):
    session = serve("slow_start")
    began = time.monotonic()
    (reply,) = hover(session, 1, Budget(initialize=0.3, total=0.5))
    assert time.monotonic() - began < 0.5 + SLACK
    assert (reply.coverage.state, reply.timed_out) == ("unresolved", True)
    assert session.pid is None


def test_a_silent_server_costs_three_waits_however_much_is_asked(serve: Callable[..., Session]):
    session = serve("silent")
    session.connect(QUICK, time.monotonic() + 20)
    began, group = time.monotonic(), session.pid
    replies = hover(session, 100, QUICK)
    assert time.monotonic() - began < 3 * 0.4 + SLACK
    assert all(reply.timed_out for reply in replies)
    # The breaker ended it: it would hang again.
    assert group
    assert is_gone(group)


def test_a_question_that_runs_out_of_its_own_time_is_not_held_against_the_server(serve: Callable[..., Session]):
    session = serve("silent")
    session.connect(QUICK, time.monotonic() + 20)
    replies = hover(session, 100, Budget(total=0.2))
    assert all(reply.timed_out for reply in replies)
    assert session.pid


def test_only_what_timed_out_is_asked_again_and_counts_once(serve: Callable[..., Session]):
    session = serve("late")
    (first,) = hover(session, 1, msgspec.structs.replace(QUICK, first=2, attempts=2))
    assert texts([first]) == ["0:0"]


def test_an_answer_after_the_cancellation_reaches_nobody(serve: Callable[..., Session]):
    session = serve("late")
    (first,) = hover(session, 1, QUICK)
    assert first.timed_out
    assert texts(hover(session, 20)) == right(20)
    assert session._connection is not None
    assert session._connection.unmatched == 1


def test_garbage_between_frames_is_left_behind(serve: Callable[..., Session]):
    session = serve("garbage")
    assert texts(hover(session, 5)) == right(5)
    assert session._connection is not None
    assert session._connection.garbage > 100_000


def test_a_server_that_only_speaks_garbage_is_ended(serve: Callable[..., Session], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rpc, "MAX_GARBAGE", 150_000)
    session = serve("garbage")
    replies = hover(session, 10)
    assert "does not speak JSON-RPC" in replies[-1].coverage.reason


def test_a_huge_frame_fails_its_own_question_at_once(serve: Callable[..., Session], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rpc, "MAX_FRAME", 1_000_000)
    session = serve("huge")
    began = time.monotonic()
    first, *rest = hover(session, 10, PATIENT)
    assert "too large" in first.coverage.reason
    assert time.monotonic() - began < 10
    assert texts(rest) == right(10)[1:]


def test_a_death_in_the_middle_of_an_answer_rejects_everything_at_once(serve: Callable[..., Session]):
    session = serve("dies")
    began = time.monotonic()
    replies = hover(session, 50)
    assert time.monotonic() - began < 5
    # Whichever is noticed first: that it ended, or that it no longer reads.
    ends = {"the server ended with exit code 7", "the server closed its input"}
    assert {reply.coverage.reason for reply in replies} <= ends
    assert not any(reply.answered for reply in replies)


def test_wrong_ids_join_nothing(serve: Callable[..., Session]):
    session = serve("wrong_ids")
    assert texts(hover(session, 20)) == right(20)
    assert session._connection is not None
    assert session._connection.unmatched > 20


def test_a_flood_of_notifications_stays_bounded_and_answers_come_through(serve: Callable[..., Session]):
    session = serve("flood")
    assert texts(hover(session, 20, PATIENT)) == right(20)
    time.sleep(0.3)
    assert len(session.signals) <= 200
    assert len(session.progress) <= 1000
    assert session._published == {}  # nothing was asked about these


def test_odd_answers_are_no_answers(serve: Callable[..., Session]):
    assert all(isinstance(reply, Reply) for reply in hover(serve("odd"), 50))


def test_a_server_that_does_not_read_is_given_up(serve: Callable[..., Session], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rpc, "MAX_QUEUED", 2_000_000)
    session = serve("deaf")
    began = time.monotonic()
    replies = [
        reply
        for number in range(8)
        for reply in ask(session, "hover", [Target(Document(f"{number}.py", "python", b"x" * 500_000))], QUICK)
    ]
    assert time.monotonic() - began < 8 * 0.4 + 2 * SLACK
    assert not any(reply.answered for reply in replies)


def test_children_of_the_server_go_with_it(serve: Callable[..., Session]):
    session = serve("family")
    assert texts(hover(session, 2)) == right(2)
    group = session.pid
    assert group
    os.kill(group, signal.SIGKILL)  # only the leader; the child still holds the streams
    (reply,) = hover(session, 1, QUICK)
    assert not reply.answered
    session.close()
    assert is_gone(group)


def test_a_crash_is_told_with_its_last_words_and_restarts_stop(
    serve: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sessions_module, "BACKOFF", (0.01, 0.02, 0.03, 0.04))
    session = serve("crash")
    reasons = [hover(session)[0].coverage.reason for _ in range(7)]
    assert reasons[0] == "the server ended with exit code 3: no licence for this machine"
    assert reasons[-1].startswith("given up after 5 failures")
    assert session.generation == 5


def test_a_restart_waits_and_gives_a_new_generation(serve: Callable[..., Session], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sessions_module, "BACKOFF", (0.2, 0.2, 0.2, 0.2))
    session = serve("good")
    hover(session)
    first = session.pid
    assert first
    os.killpg(first, signal.SIGKILL)
    assert is_gone(first)
    began = time.monotonic()
    assert texts(hover(session, 3)) == right(3)
    assert time.monotonic() - began >= 0.2
    assert session.generation == 2
    assert session.pid != first


def test_what_the_server_asks_is_answered(serve: Callable[..., Session]):
    session = serve("asks", settings={"python": {"analysis": {"level": 1}}})
    assert not session.offers("referencesProvider")
    hover(session, 5)
    assert session.wait_for(lambda: session.signals["stub/unknown"] == 1, time.monotonic() + 20)
    seen = what_it_saw(session)
    answers = {each["id"]: each.get("result", each.get("error")) for each in seen if "id" in each}
    assert answers["s1"] == [{"level": 1}, None, {"python": {"analysis": {"level": 1}}}]
    assert answers["s2"][0]["name"] == session.texts.root.name
    assert answers["s3"] is None
    assert answers["s4"]["applied"] is False
    assert answers["s6"]["code"] == -32601
    assert session.offers("referencesProvider")


def test_diagnostics_that_are_pushed_are_those_of_the_text_that_is_open(serve: Callable[..., Session]):
    session = serve("pushes")
    for version, text in enumerate((TEXT, TEXT[5:], TEXT[9:]), 1):
        (reply,) = ask(session, "diagnostics", [Target(Document("a.py", "python", text))], PATIENT)
        assert [each.message for each in reply.items] == [f"version {version}"]
    (reply,) = ask(serve("good"), "diagnostics", [Target(Document("a.py", "python", TEXT))], QUICK)
    assert (reply.coverage.state, reply.timed_out) == ("unresolved", True)


def test_documents_are_closed_when_many_are_open_and_opened_before_they_are_asked_about(
    serve: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sessions_module, "MAX_OPEN", 40)
    session = serve("good")
    documents = [Document(f"{number}.py", "python", TEXT) for number in range(100)]
    replies = ask(session, "hover", [Target(document) for document in documents], PATIENT)
    assert texts(replies) == ["0:0"] * 100
    methods = [message.get("method") for message in what_it_saw(session)]
    assert (methods.count("textDocument/didOpen"), methods.count("textDocument/didClose")) == (100, 60)


def test_changes_on_the_disk_are_told(serve: Callable[..., Session], tmp_path: Path):
    session = serve("good")
    session.tell_changed({"a.py": "changed"})  # nobody to tell, and no error
    hover(session)
    session.tell_changed({"a b.py": "changed", "c.py": "deleted"})
    (told,) = [each for each in what_it_saw(session) if each.get("method") == "workspace/didChangeWatchedFiles"]
    assert [(each["uri"].rpartition("/")[2], each["type"]) for each in told["params"]["changes"]] == [
        ("a%20b.py", 2),
        ("c.py", 3),
    ]


def test_a_text_that_changes_while_it_is_asked_about_gets_no_answer(serve: Callable[..., Session]):
    session = serve("late")  # the first question is answered only when it is asked again
    changed = threading.Timer(0.2, lambda: session.open(session.connect(QUICK, 1e9), Document("a.py", "python", b"x")))
    session.connect(QUICK, time.monotonic() + 20)
    changed.start()
    (reply,) = hover(session, 1, msgspec.structs.replace(QUICK, first=2, attempts=2))
    changed.join()
    assert "changed while" in reply.coverage.reason


def test_a_heavy_question_keeps_no_light_one_waiting(serve: Callable[..., Session]):
    session = serve("heavy")
    hover(session)
    target = Target(Document("a.py", "python", TEXT))
    states: list[Reply] = []
    heavy = [
        threading.Thread(target=lambda: states.extend(ask(session, "references", [target], PATIENT))) for _ in "ab"
    ]
    for thread in heavy:
        thread.start()
    began = time.monotonic()
    while not session._heavy.locked():
        time.sleep(0.001)
    (reply,) = ask(session, "references", [target], Budget(total=0.1))
    assert "another heavy question" in reply.coverage.reason
    assert texts(hover(session, 50)) == right(50)
    light = time.monotonic() - began
    for thread in heavy:
        thread.join()
    # One after the other: each takes a second.
    assert time.monotonic() - began > 1.9
    assert light < 1.9
    assert [state.coverage.reason for state in states] == ["stub knows nothing here"] * 2


def test_what_it_writes_beside_the_protocol_is_kept_in_part(serve: Callable[..., Session]):
    session = serve("chatty")
    hover(session)
    assert session.stderr.endswith("the end of it\n")
    assert len(session.stderr) <= rpc.MAX_STDERR


def test_capabilities_decide_what_is_asked(serve: Callable[..., Session]):
    session = serve("good")
    document = Document("a.py", "python", TEXT)
    assert ask(session, "hover", [Target(document)], PATIENT)[0].coverage.state == "complete"  # `{}` means yes
    assert ask(session, "definition", [Target(document)], PATIENT)[0].answered  # written in snake_case
    for plane in ("references", "document_symbols", "hints"):  # null, false and missing mean no
        (reply,) = ask(session, plane, [Target(document)], PATIENT)
        assert reply.coverage.reason.startswith("stub does not offer")


def test_the_chosen_encoding_is_the_one_that_is_spoken(serve: Callable[..., Session]):
    document = Document("a.py", "python", 'x = "\U0001f600é"; y\n'.encode())
    at = document.text.index(b"y")
    for mode, column in ((("good",), 11), (("good", "utf-32"), 10)):
        session = serve(*mode)
        assert texts(ask(session, "hover", [Target(document, at)], PATIENT)) == [f"0:{column}"]
        (place,) = ask(session, "definition", [Target(document, at)], PATIENT)[0].items
        assert (place.path, place.start) == ("a.py", at)


def test_the_end_of_the_process_is_the_end_of_its_servers(tmp_path: Path):
    program = f"""
import sys
from pathlib import Path
from typing import Any
from cq.providers.answers import Target
from cq.providers.planes import ask
from cq.providers.documents import Document
from cq.providers.session import ServerSpec
from cq.providers.sessions import get_session
command = (sys.executable, "-I", {os.fspath(STUB)!r}, "family")
session = get_session(Path({os.fspath(tmp_path)!r}), ServerSpec("stub", command, {{}}))
assert ask(session, "hover", [Target(Document("a.py", "python", b"x"))])[0].answered
print(session.pid)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert is_gone(int(done.stdout))
