"""rust-analyzer: what it is told about the crates, and how far it is believed. The program itself is not needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from cq.providers.planes import ask
from cq.providers.programs import Detection, look_through
from cq.providers.registry import Site
from cq.providers.rust_analyzer import describe_crates, find_hazard, make_spec, measure_coverage
from cq.providers.session import Session
from tests.support.servers import PATIENT, stub_session, write_tree

TREE = """
//- Cargo.toml
[workspace]
members = ["core", "app-cli"]
//- core/Cargo.toml
[package]
name = "my-core"
edition = "2018"
//- core/src/lib.rs
pub fn run() {}
//- app-cli/Cargo.toml
[package]
name = "app-cli"
[dependencies]
my-core = { path = "../core" }
serde = "1"
//- app-cli/src/lib.rs
//- app-cli/src/main.rs
fn main() {}
//- app-cli/src/bin/other.rs
fn main() {}
//- broken/Cargo.toml
[package
//- out/Cargo.toml
[package]
name = "out"
[lib]
path = "../../../etc/passwd"
"""


def test_crates_and_what_they_need_of_each_other(tmp_path: Path):
    tree = write_tree(tmp_path, TREE)
    project = describe_crates(tree.root, "/sysroot")
    found = {crate["root_module"].removeprefix(f"{tree.root}/"): crate for crate in project["crates"]}
    needs = {
        path: [project["crates"][each["crate"]]["display_name"] for each in crate["deps"]]
        for path, crate in found.items()
    }
    assert needs == {
        "app-cli/src/lib.rs": ["my_core"],
        "app-cli/src/main.rs": ["app_cli", "my_core"],
        "app-cli/src/bin/other.rs": ["app_cli", "my_core"],
        "core/src/lib.rs": [],
    }
    assert found["core/src/lib.rs"]["edition"] == "2018"
    assert project["sysroot_src"] == "/sysroot/lib/rustlib/src/rust/library"


def test_cargo_is_run_only_in_a_repository_that_is_trusted(tmp_path: Path):
    detection = Detection(True, "1", ("rust-analyzer",))
    options = make_spec(Site(tmp_path), detection).options
    assert "linkedProjects" in options
    assert not options["procMacro"]["enable"]
    assert not options["cargo"]["buildScripts"]["enable"]
    assert "linkedProjects" not in make_spec(Site(tmp_path, trusted=True), detection).options


@pytest.mark.parametrize("name", ["rust-analyzer.toml", "sub/.rust-analyzer.toml"])
def test_rust_analyzer_is_not_asked_where_a_repository_configures_it(tmp_path: Path, name: str):
    """Such a file goes before what we say and may name a command to check with; a file may name a toolchain as well."""
    (tmp_path / "sub").mkdir()
    tree = look_through(tmp_path, ("pyproject.toml", name.rpartition("/")[2]))
    assert find_hazard(Site(tmp_path), tree) == ""
    (tmp_path / name).write_text("")
    (tmp_path / "pyproject.toml").write_text("")
    tree = look_through(tmp_path, ("pyproject.toml", name.rpartition("/")[2]))
    assert find_hazard(Site(tmp_path), tree).startswith(f"{name} may make rust-analyzer run programs")


def test_rustup_takes_no_toolchain_from_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    detection = Detection(True, "1", ("rust-analyzer",))
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "rustc").write_text("#!/bin/sh\necho /my/toolchain\n")
    (folder / "rustc").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    assert make_spec(Site(tmp_path / "repo"), detection).env == {"RUSTUP_TOOLCHAIN": "/my/toolchain"}
    monkeypatch.setenv("PATH", "/nothing")
    assert make_spec(Site(tmp_path / "repo"), detection).env.keys() == {"CARGO", "RUSTC"}
    assert make_spec(Site(tmp_path / "repo", trusted=True), detection).env == {}


@pytest.mark.parametrize(
    ("status", "plane", "state"),
    [
        ({}, "hover", "partial"),
        ({"quiescent": False, "health": "ok"}, "hover", "partial"),
        ({"quiescent": True, "health": "ok"}, "references", "complete"),
        ({"quiescent": True, "health": "warning"}, "document_symbols", "complete"),
        ({"quiescent": True, "health": "warning", "message": "no std\nmore"}, "references", "partial"),
        ({"quiescent": True, "health": "error"}, "document_symbols", "partial"),
        ({"quiescent": "yes", "health": 3, "message": []}, "hover", "partial"),
    ],
)
def test_its_own_state_decides_how_far_it_is_believed(
    tmp_path: Path, status: dict[str, object], plane: str, state: str
):
    session = stub_session(tmp_path, "good")
    session.server_status = status
    assert measure_coverage(session, plane).state == state


def test_it_is_asked_once_it_has_read_the_project(tmp_path: Path):
    tree = write_tree(tmp_path, "#- a.py\n$0x = 1\n")
    seen: list[bool] = []

    def is_ready(session: Session) -> bool:
        """By the second look."""
        seen.append(bool(session.pid))
        return len(seen) > 2

    session = stub_session(tmp_path, "good", ready=is_ready)
    try:
        (reply,) = ask(session, "hover", [tree.target()], PATIENT)
    finally:
        session.close()
    assert reply.answered
    assert seen == [True, True, True]
