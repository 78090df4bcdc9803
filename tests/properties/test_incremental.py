"""After any sequence of edits the index equals one made from nothing, row for row."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.index import build, dump

_PATHS = st.sampled_from(
    ["a.py", "b.py", "pkg/__init__.py", "pkg/c.py", "doc.md", "web/app.vue", ".cqignore", "data.json"]
)
_TEXTS = st.sampled_from(
    [
        "",
        "def f(x):\n    return g(x)\n",
        "def f(x):\n    return g(x, 1)\n",
        "from a import f as h\n\nclass C:\n    y = h(1)\n",
        "# Title\n\n```python\nfrom a import f\nf(2)\n```\n",
        "<template/>\n<script lang='ts'>const a: number = f(1)</script>\n",
        "pkg/\n",
        '{"k": [1, 2]}\n',
        "def broken(:\n  x = (\n",
        "\0binary",
        "x = 'caf\u00e9'\r\n",
    ]
)
_STEP = st.one_of(
    st.tuples(st.just("write"), _PATHS, _TEXTS),
    st.tuples(st.just("delete"), _PATHS, st.just("")),
    st.tuples(st.just("rename"), _PATHS, _PATHS),
    st.tuples(st.just("touch"), _PATHS, st.just("")),
    st.tuples(st.just("refresh"), st.just(""), st.just("")),
)


def apply(root: Path, step: tuple[str, str, str]) -> None:
    what, path, other = step
    file = root / path
    if what == "write":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(other.encode())
    elif what == "delete":
        file.unlink(missing_ok=True)
    elif what == "touch" and file.exists():
        file.touch()
    elif what == "rename" and file.exists():
        (root / other).parent.mkdir(parents=True, exist_ok=True)
        file.replace(root / other)


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(_STEP, min_size=1, max_size=14))
def test_incremental_equals_fresh(steps: list[tuple[str, str, str]]) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        root, index, fresh = folder / "repo", folder / "i" / "index.db", folder / "f" / "index.db"
        root.mkdir()
        for step in steps:
            if step[0] == "refresh":
                build(index, root, jobs=1)
            else:
                apply(root, step)
        build(index, root, jobs=1)
        build(fresh, root, jobs=1)
        assert dump(index, root) == dump(fresh, root)
    finally:
        shutil.rmtree(folder)
