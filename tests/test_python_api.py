"""The public names, and the examples of the page about them."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import cq
from tests.support.agents import make_repository

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "python.md").read_text("utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_names_are_public_where_they_are_and_to_type_checkers():
    stub = ast.parse((ROOT / "src" / "cq" / "__init__.pyi").read_text("utf-8"))
    listed = {alias.name: node.module for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert sorted([*listed, "__version__"]) == cq.__all__
    for name, module in listed.items():
        assert module is not None
        assert getattr(cq, name) is getattr(import_module(module), name, import_module(f"cq.{name.lower()}")
                                            if name == "query" else None), name  # fmt: skip
    with pytest.raises(AttributeError):
        _ = cq.nothing_of_that_name  # pyright: ignore[reportAttributeAccessIssue]


def test_importing_the_library_loads_nothing():
    code = "import sys; before = {*sys.modules}; import cq; print(sorted({*sys.modules} - before))"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() in ("['cq']", "['__future__', 'cq']")


def test_the_page_needs_no_path_into_the_program():
    assert set(re.findall(r"(?:from|import) (cq[\w.]*)", PAGE)) == {"cq"}


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_examples_run(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    root = make_repository(tmp_path / "repo")
    (root / "src" / "kept.py").write_text(
        "from src.db import save\nclass Store:\n    def keep(self):\n        save(1)\n"
    )
    monkeypatch.chdir(root)
    monkeypatch.setenv("CQ_INDEX_DIR", str(tmp_path / "index"))
    exec(compile(example, "docs/python.md", "exec"), {})
