"""A language is shared by threads: what one reads must not leak into another."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from cq.languages.facts import extract_facts
from cq.languages.registry import get_language
from cq.model.source import Segment
from cq.syntax import tree


def test_embedded_and_whole_documents_at_once():
    page = b"# T\n\n```python\ndef inner(): return call_me()\n```\n\ntext\n" * 20
    starts = [at for at in range(len(page)) if page.startswith(b"def inner", at)]
    segments = [Segment("fence", "python", ((at, at + 31),)) for at in starts]
    whole = b"class A:\n    def m(self): return other()\n" * 50
    expected = extract_facts(page, "markdown", segments), extract_facts(whole, "python")
    with ThreadPoolExecutor(8) as pool:
        pages = [pool.submit(extract_facts, page, "markdown", segments) for _ in range(40)]
        wholes = [pool.submit(extract_facts, whole, "python") for _ in range(40)]
    assert all(future.result() == expected[0] for future in pages)
    assert all(future.result() == expected[1] for future in wholes)
    assert expected[0].embedded[3].calls[0].name == "call_me"


def test_a_machine_that_is_busy_stops_no_parse(monkeypatch: pytest.MonkeyPatch):
    """The clock of the parser goes on while others have the processor; what counts is what the parse has used."""
    text = b"def f(a):\n    return [x for x in a if x > 1]\n" * 3000
    python = get_language("python")
    whole = python.parse(text)
    monkeypatch.setattr(tree, "SMALL_MICROS", 500)
    monkeypatch.delitem(vars(python), "grammar")
    monkeypatch.setattr(tree, "time", SimpleNamespace(thread_time=lambda: 0.0))
    stopped = python.parse(text)
    assert whole is not None
    assert stopped is not None
    assert str(stopped.root_node) == str(whole.root_node)
    monkeypatch.setattr(tree, "time", SimpleNamespace(thread_time=iter(range(9)).__next__))
    assert python.parse(text) is None
    monkeypatch.delitem(vars(python), "grammar")
