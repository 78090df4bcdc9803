"""What another indexer wrote is believed about calls; how long it takes to read is not for it to say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.scip import new_index

# Each is read once per occurrence: by a pattern that looks for the end of a name from every place, for minutes.
SYMBOLS = {
    "no end": "a" * 200_000,
    "no end in brackets": "a(" + "b" * 200_000,
    "one name": "s p . " + "a" * 200_000 + "`",
    "backticks": "s p . `" + "``" * 100_000,
}


@pytest.mark.parametrize("name", SYMBOLS)
def test_a_long_symbol_costs_what_it_is_long(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f(): ...\nf()\n")
    index = new_index()
    document = index.documents.add(relative_path="a.py")
    document.occurrences.add(range=[0, 4, 5], symbol="s p . f().", symbol_roles=1)
    document.occurrences.add(range=[0, 4, 5], symbol=SYMBOLS[name], symbol_roles=1)
    document.occurrences.add(range=[1, 0, 1], symbol="s p . f().")
    (tmp_path / "index.scip").write_bytes(index.SerializeToString())
    done = subprocess.run(
        [sys.executable, "-m", "cq", "ingest", "scip", "index.scip", "--root", ".", "--index-dir", "index"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 of 1 documents taken" in done.stdout
