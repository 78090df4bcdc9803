"""rust-analyzer: what it is told about the crates, and how far it is believed. The program itself is not needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from cq.providers.planes import ask
from cq.providers.programs import Detection
from cq.providers.registry import Site
from cq.providers.rust_analyzer import describe_crates, make_spec, measure_coverage
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
