"""What packages offer, how it is called, and calls that cannot fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cq import ApiDetails, ApiOptions, Workspace
from cq.model.errors import UsageError
from cq.surfaces.cli import main
from tests.support.fixture import parse_fixture

PYTHON = """
#- shop/__init__.py
from .orders import Order, total as total
from os import path
#- shop/orders.py
import json
import warnings
__all__ = ["Order", "total", "LIMIT"]
LIMIT = 3
class Order:
    def __init__(self, number, *, note=""): ...
def total(rows, key=None): ...
def helper(): ...
#- shop/tools.py
def pack(a): ...
def _hidden(): ...
__version__ = "1"
for each in range(3): pass
if __name__ == "__main__":
    made = 1
def old():
    warnings.warn("x", DeprecationWarning)
#- shop/_inner.py
def secret(): ...
#- app.py
from shop import Order, total
from shop.tools import pack
def run(rest):
    Order(1, note="a")
    Order(1, 2)
    total([1], key=3)
    total(*rest)
    pack(1, 2)
    pack(b=1)
#- tests/test_tools.py
from shop.tools import old
def test_old(): old()
"""
SCRIPT = """
#- package.json
{"name": "lib", "exports": {
  ".": {"types": "./dist/index.d.ts", "import": "./dist/index.js"},
  "./util": "./dist/util.js"
}}
#- src/index.ts
export * from "./a";
export { b as c } from "./b";
export default function main() {}
import { x } from "./b";
export { x };
export * as ns from "./b";
#- src/a.ts
/** @deprecated use b */
export function a() {}
function hidden() {}
#- src/b.ts
export function b() {}
export const x = 1;
#- src/util.ts
export function util() {}
#- src/private.ts
export function nobody() {}
"""
RUST = """
#- Cargo.toml
[package]
name = "my-crate"
#- src/lib.rs
mod hidden;
pub mod open;
pub use hidden::Thing;
pub use open::inner::*;
pub fn top(a: u8) -> u8 { a }
pub(crate) fn inside() {}
fn private() {}
#- src/hidden.rs
pub struct Thing { pub a: u8 }
pub fn unreachable() {}
#- src/open.rs
pub mod inner { pub fn deep() {} fn shut() {} }
#[deprecated(note = "x")]
pub fn old() {}
"""


def ask(tmp_path: Path, files: str, **asked: Any) -> dict[str, ApiDetails]:
    root = tmp_path / "repo"
    for path, text in parse_fixture(files).files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    with Workspace.open(root, index_dir=tmp_path / "index") as workspace:
        answer = workspace.api(ApiOptions(**asked))
    found: dict[str, ApiDetails] = {}
    for section in answer.sections:
        for finding in section.findings:
            assert isinstance(finding.details, ApiDetails)
            key = f"{section.kind}:{finding.details.public}:{len(found)}" if section.kind == "warnings" else ""
            found[key or finding.details.public] = finding.details
    return found


def test_what_python_offers(tmp_path: Path):
    found = {name: each for name, each in ask(tmp_path, PYTHON, part="shop").items() if not each.warning}
    assert {name: each.how for name, each in found.items()} == {
        "shop.Order": "reexported", "shop.total": "reexported", "shop.orders.LIMIT": "__all__",
        "shop.tools.__version__": "defined",
        "shop.tools.old": "defined", "shop.tools.pack": "defined",
    }  # fmt: skip
    assert found["shop.Order"].also == ("shop.orders.Order",)
    assert found["shop.total"].shapes == {"(1, key)": 1, "(*)": 1}
    assert found["shop.tools.old"].deprecated
    assert (found["shop.tools.old"].users, found["shop.tools.old"].tests) == (0, 1)
    assert found["shop.tools.pack"].users == 1


def test_calls_that_cannot_fit(tmp_path: Path):
    found = [(each.public, each.warning) for each in ask(tmp_path, PYTHON).values() if each.warning]
    assert found == [
        ("shop.Order", "2 arguments by place, 1 taken"),
        ("shop.tools.pack", "2 arguments by place, 1 taken"),
        ("shop.tools.pack", "no parameter 'b'"),
    ]
    argv = ["api", "--fail-on-warn", f"--root={tmp_path / 'repo'}", f"--index-dir={tmp_path / 'index'}"]
    assert main(argv) == 3
    assert main([*argv, "app.py"]) == 0


def test_what_is_unused(tmp_path: Path):
    found = [name for name, each in ask(tmp_path, PYTHON, part="shop", unused=True).items() if not each.warning]
    assert found == ["shop.orders.LIMIT", "shop.tools.__version__", "shop.tools.old"]
    with pytest.raises(UsageError, match="--only-exports does not look at uses"):
        ask(tmp_path, PYTHON, unused=True, only_exports=True)


def test_what_typescript_offers(tmp_path: Path):
    found = ask(tmp_path, SCRIPT, only_exports=True)
    assert sorted(found) == ["lib/util:util", "lib:a", "lib:c", "lib:default", "lib:x"]
    assert found["lib:a"].deprecated == "@deprecated use b"
    assert found["lib:c"].also == ("lib:ns:b",)


def test_what_rust_offers(tmp_path: Path):
    found = ask(tmp_path, RUST, only_exports=True)
    assert sorted(found) == ["my_crate::Thing", "my_crate::deep", "my_crate::open::old", "my_crate::top"]
    assert found["my_crate::open::old"].deprecated
