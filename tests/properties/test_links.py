"""After any edits, what calls mean is what linking everything anew says, row for row."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.index import build, dump

PATHS = ["a.py", "b.py", "c.py", "pkg/__init__.py", "pkg/d.py", "setup.py", "doc.md"]
PIECES = [
    "from a import *\n",
    "from b import f, C\n",
    "from c import f as g, D\n",
    "import a, b\n",
    "from pkg import x, D\n",
    "from .d import x\n",
    "from . import d\n",
    "from pkg.d import *\n",
    "def f():\n    return C()\n",
    "def f(p=None):\n    p.run()\n    return p\n",
    "def g(h):\n    h()\n    return D()\n",
    "g(f)\n",
    "f(C())\n",
    "f(g)\n",
    "x = f()\nx.run()\n",
    "x = g(f)\nx.run()\n",
    "x = a.f().run()\n",
    "x = b.x\nx.go()\n",
    "x = a.x\n",
    "class C:\n    def run(self):\n        return self.go()\n    def go(self):\n        return f()\n",
    "class C:\n    def __init__(self, q):\n        self.q = q\n    def run(self):\n        self.q.run()\n",
    "class D(C):\n    def go(self):\n        super().run()\n        return self\n",
    "class D:\n    k = C\n    def run(self):\n        self.k().go()\n",
    "D().run().go()\n",
    "C(D()).run()\n",
    "C.extra = f\n",
    "C.extra()\n",
    "T = {'k': f}\nT['k']()\nT['n'] = g\n",
    "@g\ndef k(): ...\n",
    "def deep(a: 'C', b: D):\n    a.run()\n    b.run()\n    for y in b:\n        y.go()\n",
    "__all__ = ['f', 'x']\n",
    "def gen():\n    yield C()\n",
    "for y in gen():\n    y.run()\n",
    "```python\nfrom a import f\nf().run()\n```\n",
    "z = 1\n",
]
EDIT = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(PATHS), st.lists(st.sampled_from(PIECES), max_size=5)),
    st.tuples(st.just("add"), st.sampled_from(PATHS), st.lists(st.sampled_from(PIECES), min_size=1, max_size=1)),
    st.tuples(st.just("above"), st.sampled_from(PATHS), st.lists(st.sampled_from(PIECES), min_size=1, max_size=1)),
    st.tuples(st.just("delete"), st.sampled_from(PATHS), st.just([])),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.lists(st.sampled_from(PIECES), max_size=6), min_size=len(PATHS), max_size=len(PATHS)),
    st.lists(EDIT, min_size=1, max_size=6),
)
def test_links_after_edits_equal_fresh_links(texts: list[list[str]], edits: list[tuple[str, str, list[str]]]) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        root, index = folder / "repo", folder / "i" / "index.db"
        for path, pieces in zip(PATHS, texts, strict=True):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text("".join(pieces))
        build(index, root, jobs=1)
        for what, path, pieces in edits:
            file = root / path
            old = file.read_text() if file.exists() else ""
            if what == "delete":
                file.unlink(missing_ok=True)
            else:
                kept = {"write": ("", ""), "add": (old, ""), "above": ("", old)}[what]
                file.write_text("".join(pieces).join(kept))
            build(index, root, jobs=1)
        build(folder / "f" / "index.db", root, jobs=1)
        assert dump(index, root) == dump(folder / "f" / "index.db", root)
    finally:
        shutil.rmtree(folder)
