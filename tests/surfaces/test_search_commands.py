"""`cq search`, `cq calls` and `cq artifact` as real processes: exit codes, formats, odd trees."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.agents import hear_ctrl_c

pytestmark = pytest.mark.slow


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    (root / "src").mkdir(parents=True)
    (root / "tests").mkdir()
    (root / "src" / "db.py").write_text(
        "class Store:\n    def save(self, row):\n        return row[save]\n\n\ndef save(row, *, deep=False):\n"
        "    return Store().save(row)\n"
    )
    (root / "src" / "app.py").write_text(
        "from db import save\n\n\ndef main(args):\n    save(1, deep=True)\n    save(*args)\n    getattr(main, 'save')\n"
    )
    (root / "tests" / "test_db.py").write_text("from db import save\n\n\ndef test_it():\n    assert save(2)\n")
    return root


def cq(root: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("CQ_")}
    return subprocess.run(
        [sys.executable, "-m", "cq", *arguments],
        cwd=root,
        env={**clean, "XDG_CACHE_HOME": str(root.parent / "cache"), **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="surrogateescape",
        check=False,
    )


def test_an_answer_for_people(root: Path):
    done = cq(root, "search", "save")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(
        "10 mentions in 3 files: 4 calls, 2 definitions, 2 imports, 1 other use, 1 in comments"
    )
    assert "Suggested Follow-ups" not in done.stdout
    card = cq(root, "search", "save", "--card").stdout
    assert {"## Suggested Follow-ups", "## Card"} < set(card.splitlines())
    assert "confidence  high: syntax, 0.85" in card
    assert "\nsrc/db.py\n  2:9 (Store): def save(self, row):\n  6:5: def save(row, *, deep=False):\n" in done.stdout
    assert "        return row[save]"[8:] in done.stdout  # no markup ate the brackets
    assert len(done.stdout.splitlines()) <= 100


def test_plain_is_like_grep(root: Path):
    done = cq(root, "search", "save", "--format", "plain")
    rows = sorted(done.stdout.splitlines())
    assert len(rows) == 10
    assert "src/db.py:3:20:         return row[save]" in rows
    grep = subprocess.run(["grep", "-rnow", "save", "."], cwd=root, capture_output=True, text=True, check=False)
    assert len(grep.stdout.splitlines()) == len(rows)


def test_json_is_one_answer_and_jsonl_one_row_each(root: Path):
    answer = json.loads(cq(root, "search", "save", "--format", "json", "--include-strings").stdout)
    assert (answer["command"], answer["found"], answer["schema_version"]) == ("search", 10, 1)
    rows = [json.loads(line) for line in cq(root, "search", "save", "--format", "jsonl").stdout.splitlines()]
    assert {row["details"]["kind"] for row in rows} == {"cq.search.match.v1"}
    assert answer["summary"]["languages"]["python"]["total_matches"] == 10


def test_the_elapsed_time_is_the_process_s(root: Path):
    cq(root, "search", "save")
    started = time.perf_counter()
    answer = json.loads(cq(root, "search", "save", "--format", "json").stdout)
    assert 0 < answer["run"]["elapsed_ms"] <= (time.perf_counter() - started) * 1000 + 20


def test_nothing_found_is_exit_1_with_near_names(root: Path):
    done = cq(root, "search", "svae")
    assert done.returncode == 1
    assert "near names: save" in done.stdout
    assert cq(root, "search", "svae", "--format", "plain").stdout == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("search", ""), "the query is empty"),
        (("search", "a(", "--mode", "regex"), "at character 3"),
        (("search", "save", "--mode", "regx"), "did you mean 'regex'"),
        (("search", "save", "--kind", "definitoin"), "did you mean 'definition'"),
        (("search", "save", "--lang", "pyhton"), "did you mean 'python'"),
        (("search", "save", "--in", "nowhere"), "does not exist"),
        (("search", "save", "--in", ".."), "outside the root"),
        (("search", "save", "--limit", "0"), "not a number above 0"),
        (("search", "save", "--all", "--limit", "3"), "--all leaves nothing"),
        (("search", "save", "-i", "-s"), "not allowed with"),
        (("search", "save", "--page", "7"), "no page 7"),
        (("search", "save", "--exclude", "../x"), "leaves the root"),
        (("search", "save", "--formt", "json"), "did you mean '--format'"),
        (("search",), "TEXT"),
        (("search", "a{99999999}", "--mode", "regex"), "repeats parts"),
        (("search", "save", "--kind", ""), "names no kind"),
        (("search", "save", "--in", ""), "--in names nothing"),
        (("search", "save", "--no-refresh", "--max-stale", "5"), "one or the other"),
        (("search", "save", "--format", "plain", "--context", "1"), "one or the other"),
        (("calls", "nowhere.py:3"), "not indexed"),
        (("calls", "src/db.py:999"), "no line 999"),
        (("calls", " "), "target is empty"),
        (("artifact", "get"), "which artifact"),
        (("artifact", "get", "x"), "no artifact 'x'"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(root: Path, arguments: tuple[str, ...], words: str):
    done = cq(root, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_filters_and_formats_from_the_environment(root: Path):
    done = cq(root, "search", "save", "--in", "src", "--kind", "call", CQ_FORMAT="plain")
    assert {row.partition(":")[0] for row in done.stdout.splitlines()} == {"src/app.py", "src/db.py"}
    assert cq(root, "search", "save", CQ_FORMAT="xml").returncode == 2
    inside = cq(root / "src", "search", "save", "--in", ".", "--root", "..", "--format", "plain")
    assert {row.partition(":")[0] for row in inside.stdout.splitlines()} == {"src/app.py", "src/db.py"}


def test_every_suggested_command_works_when_pasted(root: Path):
    answer = json.loads(cq(root, "search", "save", "--format", "json", "--limit", "3").stdout)
    calls = json.loads(cq(root, "calls", "save", "--format", "json", "--limit", "2").stdout)
    commands = [
        finding["message"]
        for section in (*answer["sections"], *calls["sections"])
        if section["kind"] == "followups"
        for finding in section["findings"]
    ]
    assert len(commands) >= 4
    for command in commands:
        name, *rest = shlex.split(command)
        assert name == "cq"
        assert cq(root, *rest).returncode == 0, command


def test_a_question_without_an_index_reads_the_files(root: Path):
    done = cq(root, "search", "save", "--no-refresh", "--format", "json", "--include-strings")
    answer = json.loads(done.stdout)
    assert answer["found"] == 10
    assert [event["category"] for event in answer["degraded"]] == ["no_index"]


def test_odd_trees(tmp_path: Path):
    empty = tmp_path / "empty"
    empty.mkdir()
    assert cq(empty, "search", "save").returncode == 1
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    (mixed / "latin.py").write_bytes(b"# -*- coding: latin-1 -*-\ncaf\xe9 = 'na\xefve'\n")
    (mixed / "wide.py").write_bytes("café = 1\r\n".encode("utf-16"))
    (mixed / "broken.py").write_bytes(b"caf\xc3\xa9 = (\n\xff\n")
    rows = cq(mixed, "search", "café", "--format", "plain").stdout.splitlines()
    assert sorted(row.partition(" ")[0] for row in rows) == ["broken.py:1:1:", "latin.py:2:1:", "wide.py:1:1:"]


def test_calls_are_grouped_by_what_they_may_mean(root: Path):
    answer = json.loads(cq(root, "calls", "src/db.py:6", "--format", "json").stdout)
    assert answer["summary"]["definitions"] == 2
    sites = next(section for section in answer["sections"] if section["kind"] == "call_sites")["findings"]
    where = {(site["location"]["path"], site["location"]["start_line"]): site["details"] for site in sites}
    assert where["src/app.py", 5]["status"] == "certain"
    assert ("src/db.py", 7) not in where  # `Store().save` is the other one
    assert where["src/app.py", 5]["keywords"] == ["deep"]
    assert where["src/app.py", 6]["forwards"] == ["*"]
    hazards = next(section for section in answer["sections"] if section["kind"] == "hazards")
    assert [finding["message"] for finding in hazards["findings"]] == ["getattr(main, 'save')"]


def test_artifacts_keep_what_an_answer_only_counts(root: Path):
    answer = json.loads(cq(root, "search", "save", "--format", "json").stdout)
    ids = {artifact["kind"]: artifact["id"] for artifact in answer["artifacts"]}
    telemetry = json.loads(cq(root, "artifact", "get", ids["enrichment_telemetry"]).stdout)
    assert telemetry["stages"]["lsp"] == {"skipped": sum(telemetry["languages"]["python"].values())}
    listed = json.loads(cq(root, "artifact", "list", "--format", "json").stdout)
    assert set(ids.values()) <= {item["id"] for item in listed}


def test_ctrl_c_prints_what_was_found_so_far(tmp_path: Path):
    root = tmp_path / "repo"
    root.mkdir()
    for number in range(400):
        (root / f"m{number}.py").write_text("".join(f"value_{at} = save({at})\n" for at in range(400)))
    assert cq(root, "index").returncode == 0
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    for delay in (0.35, 0.6, 1.0, 1.5):
        process = subprocess.Popen(
            [sys.executable, "-m", "cq", "search", "v.*e", "--mode", "regex", "--profile", "audit", "--all"],
            cwd=root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            preexec_fn=hear_ctrl_c,
        )  # fmt: skip
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
        assert "Traceback" not in errors
        if "stopped by the user" in out:
            assert process.returncode == 130
            return
    pytest.fail("no answer was cut short")


def test_names_of_several_words_and_operators_are_found(tmp_path: Path):
    root = tmp_path / "repo"
    root.mkdir()
    (root / "a.sh").write_text("my-func() { :; }\nmy-func a\n")
    done = cq(root, "calls", "my-func")
    assert (done.returncode, done.stderr) == (0, "")
    assert "a.sh:2:1" in done.stdout


def test_calls_through_other_names_and_not_of_shadows(tmp_path: Path):
    root = tmp_path / "repo"
    root.mkdir()
    (root / "base.py").write_text("def save(x):\n    return x\n")
    (root / "use.py").write_text(
        "from base import save as keep\nfrom base import save\n\n\ndef a():\n    keep(1)\n    (save)(2)\n\n\n"
        "def b(save):\n    save(3)\n\n\ndef c():\n    save = print\n    save(4)\n"
    )
    answer = json.loads(cq(root, "calls", "base.py:save", "--format", "json").stdout)
    sites = next(section for section in answer["sections"] if section["kind"] == "call_sites")["findings"]
    certain = [s["location"]["start_line"] for s in sites if s["details"]["status"] == "certain"]
    assert certain == [6, 7]
    assert 16 not in [s["location"]["start_line"] for s in sites]


def test_a_call_shows_the_line_of_its_name(tmp_path: Path):
    root = tmp_path / "repo"
    root.mkdir()
    (root / "a.py").write_text("class Q:\n    def fin(self): ...\nx = (\n    Q()\n    .fin()\n)\n")
    assert cq(root, "calls", "fin", "--format", "plain").stdout == "a.py:5:6:     .fin()\n"


def test_calls_of_what_is_not_defined_here(tmp_path: Path):
    root = tmp_path / "repo"
    root.mkdir()
    (root / "a.py").write_text("import json\nprint(json.dumps(1))\n")
    answer = json.loads(cq(root, "calls", "json.dumps", "--format", "json").stdout)
    assert (answer["found"], answer["degraded"][0]["category"]) == (1, "external")


def test_names_of_files_cannot_forge_lines(tmp_path: Path):
    root = tmp_path / "repo"
    root.mkdir()
    (root / "a\nb.py:1:1: x.py").write_text("def forged(): ...\n")
    done = cq(root, "search", "forged", "--format", "plain")
    assert done.stdout.splitlines() == ["a\\nb.py:1:1: x.py:1:5: def forged(): ..."]


def test_suggested_commands_are_about_the_same_tree(root: Path):
    answer = json.loads(cq(root.parent, "search", "save", "--root", "repo", "--limit", "2", "--format", "json").stdout)
    follow_ups = next(section for section in answer["sections"] if section["kind"] == "followups")["findings"]
    for finding in follow_ups:
        assert cq(root.parent, *shlex.split(finding["message"])[1:]).returncode == 0, finding["message"]


def test_a_path_counts_from_the_working_directory(root: Path):
    inside = cq(root / "src", "calls", "db.py:6", "--format", "plain", "--root", "..")
    assert (inside.returncode, inside.stderr) == (0, "")
    assert cq(root, "calls", f"{root}/src/db.py:6", "--format", "plain").stdout == inside.stdout


def test_several_targets_and_counts(root: Path):
    done = cq(root, "read", "Store.save", "main", "nothing_here")
    assert (done.returncode, done.stdout.count("```python")) == (0, 2)
    assert "nothing found: 'nothing_here'" in done.stdout
    assert cq(root, "read", "main", "Store.save", "--format", "plain").stdout.startswith("def main(args):\n    save(1")
    both = json.loads(cq(root, "calls", "Store.save", "main", "--format", "json").stdout)
    assert [part["summary"]["query"] for part in both["answers"]] == ["Store.save", "main"]
    assert "answers" not in json.loads(cq(root, "calls", "main", "--format", "json").stdout)
    counted = cq(root, "calls", "src/db.py:save", "--count").stdout
    assert counted.splitlines()[1:] == ["3 call sites in 2 files (1 in 1 test file)"]
    assert cq(root, "calls", "src/db.py:save", "--by", "file", "--format", "plain").stdout == (
        "2 src/app.py\n1 tests/test_db.py\n"
    )
    both = cq(root, "calls", "main", "--by", "file", "--count")
    assert (both.returncode, "--by counts already" in both.stderr) == (2, True)
