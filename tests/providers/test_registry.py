"""Who is asked, in which order, and what happens when a provider fails: decided by data, never by chance."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cq.model.config import LanguageServer, ProvidersConfig
from cq.model.provider import Coverage, Hover, Reply, Telemetry
from cq.providers import generic
from cq.providers.answers import Target
from cq.providers.documents import Document
from cq.providers.programs import Detection, find_program, forget_failures, read_version
from cq.providers.registry import Provider, Registry, Site, find_degraded, summarize
from cq.providers.session import BUDGETS, ServerSpec
from cq.providers.sessions import find_sessions, get_session

TARGET = Target(Document("a.py", "python", b"x\n"))


def make(name: str, priority: int = 10, *, knows: bool = True, throws: str = "", **more: Any) -> Provider:
    def detect(site: Any) -> Detection:
        if throws == "detect":
            raise RuntimeError("no")
        return Detection(throws != "missing", "1", reason="not found" if throws == "missing" else "")

    def run(site: Any, detection: Any, plane: str, targets: Any, budget: Any) -> list[Reply[Any]]:
        if throws == "run":
            raise RuntimeError("no")
        coverage = Coverage("complete") if knows else Coverage("unresolved", f"{name} does not know")
        return [Reply(name, plane, coverage, (Hover(name),) if knows else ()) for _ in targets]

    return Provider(name, name.title(), priority, ("python",), ("types",), name, detect, run, **more)


def asked(root: Path, *providers: Provider, config: ProvidersConfig | None = None, plane: str = "hover") -> list[str]:
    return [each.id for each in Registry(root, config, providers=providers).select("python", plane)]


def test_order_is_priority_then_name_whatever_the_order_of_registration(tmp_path: Path):
    some = [make("b"), make("a"), make("c", 5), make("best", 90, best=frozenset({"hover"}))]
    assert asked(tmp_path, *some) == asked(tmp_path, *reversed(some)) == ["best", "c", "a", "b"]


@pytest.mark.parametrize(
    ("config", "left"),
    [
        (ProvidersConfig(deny=("a",)), ["b", "c"]),
        (ProvidersConfig(allow=("a", "c")), ["a", "c"]),
        (ProvidersConfig(allow=("a", "c"), deny=("a",)), ["c"]),
    ],
)
def test_the_configuration_allows_and_denies(tmp_path: Path, config: ProvidersConfig, left: list[str]):
    assert asked(tmp_path, make("a"), make("b"), make("c"), config=config) == left


def test_the_configuration_says_who_is_first(tmp_path: Path):
    some = [make("a"), make("b"), make("best", 90, best=frozenset({"hover"}))]
    assert asked(tmp_path, *some, config=ProvidersConfig(order=("b", "gone", "a"))) == ["b", "a", "best"]


def test_the_configuration_bounds_what_a_question_costs(tmp_path: Path):
    seen: list[tuple[Any, int]] = []

    def run(site: Any, detection: Any, plane: str, targets: Any, budget: Any) -> list[Reply[Any]]:
        seen.append((budget, site.breaker))
        return [Reply("a", plane, Coverage("complete"), (Hover("x"),)) for _ in targets]

    provider = Provider("a", "A", 1, ("python",), ("types",), "a", lambda _: Detection(True, "1"), run)
    config = ProvidersConfig(timeout=40.0, retries=3, breaker=2, max_files=1, max_file_bytes=10)
    targets = [
        Target(Document(name, "python", text))
        for name, text in (("a.py", b"x" * 11), ("b.py", b"x\n"), ("c.py", b"x\n"))
    ]
    replies = Registry(tmp_path, config, providers=[provider]).ask("hover", [*targets, targets[1]])
    assert [reply.coverage.reason for reply in replies] == [
        "the file is larger than max_file_bytes = 10", "", "files beyond max_files = 1 are not asked about", "",
    ]  # fmt: skip
    ((budget, breaker),) = seen
    assert (budget.point, budget.project, budget.first, budget.attempts, budget.total, breaker) == (
        40,
        40,
        40,
        4,
        40,
        2,
    )
    seen.clear()
    Registry(tmp_path, providers=[provider]).ask("hover", targets)
    assert seen == [(BUDGETS["interactive"], 4)]


def test_only_those_who_know_the_language_and_the_plane_are_asked(tmp_path: Path):
    registry = Registry(tmp_path, providers=[make("a")])
    assert list(registry.select("rust", "hover")) == []
    assert list(registry.select("python", "references")) == []
    (reply,) = registry.ask("references", [TARGET])
    assert reply.coverage == Coverage("unresolved", "no provider answers references for python")


@pytest.mark.parametrize("throws", ["detect", "missing", "run"])
def test_one_that_throws_is_unavailable_and_the_next_is_asked(tmp_path: Path, throws: str):
    registry = Registry(tmp_path, providers=[make("a", throws=throws), make("b")])
    assert registry.ask("hover", [TARGET, TARGET])[1].provider == "b"
    row = next(row for row in registry.status() if row.id == "a")
    assert not row.available
    assert row.reasons == ("not found" if throws == "missing" else "RuntimeError: no",)


def test_what_one_does_not_know_the_next_is_asked_and_the_first_says_why_if_nobody_does(tmp_path: Path):
    ignorant, other = make("a", knows=False), make("b", knows=False)
    (reply,) = Registry(tmp_path, providers=[ignorant, make("b")]).ask("hover", [TARGET])
    assert reply.provider == "b"
    (reply,) = Registry(tmp_path, providers=[ignorant, other]).ask("hover", [TARGET])
    assert (reply.provider, reply.coverage.reason) == ("a", "a does not know")
    (reply,) = Registry(tmp_path, providers=[ignorant, make("b")]).ask("hover", [TARGET], bulk=True)
    assert reply.provider == "a"


def test_status_names_everyone_with_reasons(tmp_path: Path):
    rows = Registry(tmp_path, ProvidersConfig(deny=("ty",))).status()
    by_id = {row.id: row for row in rows}
    assert list(by_id) == [row.id for row in sorted(rows, key=lambda row: (row.priority, row.id))]
    assert set(by_id) == {
        "pyrefly", "ty", "basedpyright", "typescript", "rust-analyzer", "symtable", "bytecode"
    }  # fmt: skip
    assert by_id["pyrefly"].version == "pyrefly 1.4.0"
    assert (by_id["ty"].enabled, by_id["ty"].reasons) == (False, ("denied by the configuration",))


def test_without_any_server_the_answer_says_what_would_help(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("cq.providers.typescript.find_program", lambda name, root: None)
    document = Document("a.ts", "typescript", b"let x = 1\n")
    (reply,) = Registry(tmp_path).ask("hover", [Target(document)])
    assert "cq doctor --install typescript" in reply.coverage.reason


def test_states_of_the_contract():
    def status(*states: str, available: bool = True) -> str:
        return summarize([Reply("x", "hover", Coverage(state)) for state in states], available=available).status

    assert status(available=False) == "unavailable"
    assert status() == "skipped"
    assert status("unresolved") == "failed"
    assert status("complete", "unresolved") == "partial"
    assert status("complete", "partial") == "ok"
    assert Telemetry(True, 3, 2).status == "partial"


def test_what_is_not_complete_is_a_degrade_event_once():
    replies: list[Reply[Any]] = [Reply("x", "hover", Coverage("unresolved", "why"))] * 3
    (event,) = find_degraded([*replies, Reply("x", "hover", Coverage("complete"))])
    assert (event.stage, event.severity, event.category, event.message) == ("providers.x", "warning", "hover", "why")


def test_a_command_of_the_repository_needs_the_users_word(tmp_path: Path):
    config = ProvidersConfig(lsp={"mine": LanguageServer(("sh", "-c", "echo"), ("python",))})
    row = next(row for row in Registry(tmp_path, config).status() if row.id == "lsp.mine")
    assert not row.available
    assert "trust" in row.reasons[0]
    row = next(row for row in Registry(tmp_path, config, trusted=True).status() if row.id == "lsp.mine")
    assert row.available


def test_a_server_of_the_configuration_answers(tmp_path: Path):
    config = ProvidersConfig(lsp={"mine": LanguageServer(("ty", "server"), ("python",))}, allow=("lsp.mine",))
    (tmp_path / "a.py").write_text("x = 1\nx\n")
    target = Target(Document("a.py", "python", b"x = 1\nx\n"), 6)
    registry = Registry(tmp_path, config, trusted=True)
    (reply,) = registry.ask("definition", [target], BUDGETS["precise"])
    assert (reply.provider, reply.coverage.state, reply.items[0].start) == ("lsp.mine", "complete", 0)
    assert registry.ask("references", [target], BUDGETS["precise"])[0].coverage.state == "partial"


def test_settings_reach_a_server_only_in_a_repository_that_is_trusted(tmp_path: Path):
    config = ProvidersConfig(settings={"ty": {"ty": {"completions": {"autoImport": False}}}}, allow=("ty",))
    for trusted in (False, True):
        registry = Registry(tmp_path, config, trusted=trusted)
        assert registry.ask("document_symbols", [TARGET], BUDGETS["precise"])[0].answered
        row = next(row for row in registry.status() if row.id == "ty")
        assert bool(row.notes) is not trusted
    one, two = find_sessions(tmp_path)
    assert one.spec.settings == {}
    assert two.spec.settings == config.settings["ty"]


def test_clangd_answers_and_leaves_nothing_in_the_repository(tmp_path: Path):
    config = ProvidersConfig(lsp={"clangd": LanguageServer(("clangd",), ("cpp",))})
    text = "struct Bäse { int run() { return 1; } };\nint main() { return Bäse().run(); }\n".encode()
    (tmp_path / "a.cpp").write_bytes(text)
    (tmp_path / "compile_commands.json").write_text("[]")
    registry = Registry(tmp_path, config)
    target = Target(Document("a.cpp", "cpp", text), text.rindex(b"run"))
    (reply,) = registry.ask("definition", [target], BUDGETS["precise"])
    assert [(place.path, place.start) for place in reply.items] == [("a.cpp", text.index(b"run"))]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.cpp", "compile_commands.json"]
    assert "version" in next(row for row in registry.status() if row.id == "lsp.clangd").version


def test_sessions_are_shared_by_root_and_way_of_running(tmp_path: Path):
    spec = ServerSpec("x", ("x",), {})
    assert get_session(tmp_path, spec) is get_session(tmp_path / ".", ServerSpec("x", ("x",), {}))
    assert get_session(tmp_path, spec) is not get_session(tmp_path, ServerSpec("x", ("x",), {}, settings={"a": 1}))


def test_that_a_program_does_not_run_is_found_out_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    program, runs = tmp_path / "stub", tmp_path / "runs"
    (tmp_path / "cq").mkdir()

    def write(text: str) -> None:
        program.write_text(f"#!/bin/sh\necho x >> {runs}\n{text}\n")
        program.chmod(0o755)

    def ask() -> tuple[bool, int]:
        return read_version([str(program), "--version"], tmp_path / "root").available, len(runs.read_text().split())

    write("exit 1")
    assert [ask() for _ in range(3)] == [(False, 1)] * 3
    forget_failures()  # as `cq doctor` does
    assert ask() == (False, 2)
    write("echo 1.0; exit 0")  # another program
    assert [ask() for _ in range(2)] == [(True, 3), (True, 4)]
    write("exit 3")
    (tmp_path / "cq" / "programs.json").write_bytes(b"\xff not json")
    assert [ask() for _ in range(2)] == [(False, 5)] * 2
    clock = time.time
    monkeypatch.setattr(time, "time", lambda: clock() + 3600)
    assert ask() == (False, 6)


def test_planes_asked_at_once_look_for_a_program_once(tmp_path: Path):
    looked: list[Site] = []

    def detect(site: Site) -> Detection:
        looked.append(site)
        time.sleep(0.05)  # while the others come
        return Detection(False, reason="it does not run")

    registry = Registry(tmp_path, providers=[msgspec.structs.replace(make("a"), detect=detect)])
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(registry.detect, [registry.providers[0]] * 8))
    assert {one.reason for one in found} == {"it does not run"}
    assert len(looked) == 1


def test_what_a_server_lacks_is_said_once():
    planes = ("hover", "definition", "references")
    replies = [Reply[Any]("", plane, Coverage("unresolved", "x does not run")) for plane in planes]
    (event,) = find_degraded(replies)
    assert (event.category, event.message) == ("definition", "x does not run")


def test_detection_runs_the_program_and_takes_none_of_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def script(name: str, text: str) -> str:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return str(path)

    assert read_version([script("good", "echo good 1.2; echo more")], tmp_path / "root").version == "good 1.2"
    assert read_version([script("bad", "exit 3")], tmp_path / "root").reason.endswith("does not run (exit code 3)")
    assert read_version([script("slow", "sleep 60")], tmp_path / "root", timeout=0.2).reason.endswith(
        "gave no answer in 0.2 s"
    )
    assert not read_version([str(tmp_path / "none")], tmp_path / "root").available
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_program("good", tmp_path) is None
    assert find_program("good", tmp_path / "elsewhere") == str(tmp_path / "good")


def test_gopls_is_told_that_go_runs_nothing_of_a_repository(tmp_path: Path):
    """`go list` has git say the state of the work tree, and that runs what `core.fsmonitor` names."""
    assert "-buildvcs=false" in generic.ENV["GOFLAGS"].split()
    if shutil.which("go") is None:
        return
    mark, program = tmp_path / "mark", tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {mark}\n")
    program.chmod(0o755)
    root = tmp_path / "repo"
    root.mkdir()
    (root / "go.mod").write_text("module x\ngo 1.21\n")
    (root / "m.go").write_text("package main\nfunc main() {}\n")
    for words in (
        "init -q",
        "add .",
        "-c user.name=t -c user.email=t@t commit -qm x",
        f"config core.fsmonitor {program}",
    ):
        subprocess.run(["git", *words.split()], cwd=root, check=True)
    command = ["go", "list", "-e", "-json", "-compiled", "-deps", "./..."]
    subprocess.run(command, cwd=root, env={**os.environ, **generic.ENV}, capture_output=True, check=True)
    assert not mark.exists()
