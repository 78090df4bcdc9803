"""What ten commands show on a terminal of 80 and of 120 columns. A screen that is changed on purpose is written anew by
deleting its file; it must be clearer than it was, or equal, and no longer."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.support.agents import on_terminal

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="terminals are pseudo-terminals of Unix")

COMMANDS = (
    "search save", "search save --card", "calls Store.save", "calls save --by file", "read Store.save main",
    "types Store", "nb Store.save --no-lsp", "impact save", "rank --limit 3", "search svae",
)  # fmt: skip
FILES = {
    "app/store.py": '''class Store:
    """Rows by key, kept until they are dropped."""

    def save(self, row, *, deep=False, on_conflict="replace", timeout_seconds=30, retries=3):
        """Keeps a row."""
        return check(row)


def check(row):
    return row
''',
    "app/use.py": """from app.store import Store


def save(row):
    return Store().save(row, deep=True, on_conflict="ignore", timeout_seconds=60, retries=1)


def main(rows):
    for row in rows:
        save(row)
""",
    "tests/test_use.py": """from app.use import save


def test_it():
    assert save(1) == 1
""",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "repo"
    for name, text in FILES.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    return place


@pytest.mark.parametrize("columns", [80, 120])
def test_screens_are_the_ones_looked_at(root: Path, columns: int):
    kept = Path(__file__).with_name(f"screens_{columns}.txt")
    here = {"NO_COLOR": "1", "CQ_ROOT": str(root), "COLUMNS": str(columns)}
    on_terminal(root, "index", **here)
    shown = ""
    for command in COMMANDS:
        screen = on_terminal(root, *command.split(), **here).replace("\r\n", "\n")
        screen = re.sub(r"[\d,.]+ ms", "… ms", re.sub(r"slice_(\w+)-[0-9a-f]+", r"slice_\1-…", screen))
        long = [line for line in screen.splitlines() if len(line) > columns and " " in line.strip()]
        assert "```" in screen or long == [], command
        shown += f"$ cq {command}\n{screen}\n"
    if not kept.exists():
        kept.write_text(shown)
    assert kept.read_text() == shown
