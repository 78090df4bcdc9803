"""Identities last: edits elsewhere keep them, twins are told apart, embedded documents have their own."""

from __future__ import annotations

import hashlib
from textwrap import dedent

import pytest
import xxhash

from cq.identity import (
    Identity,
    breadcrumb,
    call_site_id,
    chunk_uid,
    identify,
    scoped_id,
    segment_uid,
    signature_key,
    snippet_hash,
    symbol_id,
    symbol_key,
    tool_path,
    virtual_path,
)
from cq.languages.facts import extract_facts
from cq.model.facts import FileFacts
from cq.model.location import LineTable
from cq.model.source import Segment

SOURCE = dedent("""\
    import os

    class Store:
        path = "x"

        def load(self, name: str) -> bytes:
            return open(name).read()

    def main():
        return Store().load("a")
    """)


def read(text: str, *segments: Segment) -> tuple[FileFacts, Identity]:
    facts = extract_facts(text.encode(), "text" if segments else "python", segments)
    return facts, identify("doc.md" if segments else "src/app.py", text.encode(), facts)


def uid_of(text: str, name: str) -> str:
    facts, identity = read(text)
    (index,) = [index for index, chunk in enumerate(facts.chunks) if chunk.name == name]
    return identity.chunk_uids[index]


def id_of(text: str, qualified_name: str) -> str:
    facts, identity = read(text)
    (index,) = [index for index, symbol in enumerate(facts.symbols) if symbol.qualified_name == qualified_name]
    return identity.symbol_ids[index]


@pytest.mark.parametrize(
    "edited",
    [
        "# a new first line\n" + SOURCE,
        SOURCE + "\n\ndef more():\n    pass\n",
        SOURCE.replace("import os\n", "import os, sys\n\n\n"),
        SOURCE.replace('path = "x"', 'path = "y"'),
        SOURCE.replace("\n", "\r\n"),
    ],
)
def test_an_edit_elsewhere_keeps_uids(edited: str):
    assert uid_of(edited, "load") == uid_of(SOURCE, "load")
    assert uid_of(edited, "main") == uid_of(SOURCE, "main")
    assert id_of(edited, "Store.load") == id_of(SOURCE, "Store.load")
    assert id_of(edited, "Store.load.name") == id_of(SOURCE, "Store.load.name")


def test_an_edit_inside_changes_the_uid_of_what_holds_it_and_of_nothing_else():
    edited = SOURCE.replace(".read()", ".read(1)")
    assert uid_of(edited, "load") != uid_of(SOURCE, "load")
    assert uid_of(edited, "Store") != uid_of(SOURCE, "Store")
    assert uid_of(edited, "main") == uid_of(SOURCE, "main")
    assert uid_of(edited, "import:os") == uid_of(SOURCE, "import:os")


def test_the_path_is_part_of_every_name():
    facts = extract_facts(SOURCE.encode(), "python")
    here, there = identify("a.py", SOURCE.encode(), facts), identify("b.py", SOURCE.encode(), facts)
    assert not set(here.chunk_uids) & set(there.chunk_uids)
    assert not set(here.symbol_ids) & set(there.symbol_ids)


def test_exact_names_of_a_known_example():
    text = "def f(a,  b):\n    return a\n"
    facts, identity = read(text)
    span = xxhash.xxh64_hexdigest(b"span\0def f(a,  b):\n    return a")
    uid = f"ck64:v1:repo:src/app.py:{span}"
    assert identity.virtual_path == "src/app.py"
    assert identity.chunk_uids[1] == uid
    assert symbol_key("src/app.py", "f", "function") == "src/app.py::f::function"
    assert signature_key("f", facts.symbols[0].signature) == "f::def f(a, b)"
    scoped = f"function|src/app.py::f::function|f::def f(a, b)|{uid}"
    assert scoped_id("src/app.py", "f", "function", "def f(a,  b)", uid) == scoped
    assert identity.symbol_ids[0] == "sym1:heur:" + hashlib.sha1(scoped.encode()).hexdigest()
    assert symbol_id(scoped, "scip").startswith("sym1:scip:")
    assert signature_key("f", "") is None
    assert scoped_id("p", "f", "value", "", "u") == "value|p::f::value||u"


def test_exact_paths_and_segment_uids():
    text = b"let a = 1\r\nlet b\r\n"
    expected = xxhash.xxh64_hexdigest(b"a b/c#1.vue\0script\0typescript\0let a = 1\nlet b\n\0")
    uid = segment_uid("a b/c#1.vue", "script", "typescript", text)
    assert uid == f"seg1:{expected}"
    assert segment_uid("a b/c#1.vue", "script", "typescript", text, "seg1:0") != uid
    assert virtual_path("c.vue") == "c.vue"
    assert virtual_path("c.vue", uid) == f"c.vue#seg:{uid}"
    assert tool_path("a b/c#1%.vue") == ".cq-vfs/a b/c%231%25.vue"
    assert tool_path("c#.vue", uid, ".ts") == f".cq-vfs/c%23.vue#seg:{uid}.ts"
    assert chunk_uid("c.vue#seg:x", "12", language="tsx", namespace="n") == "ck64:v1:n:c.vue#seg:x:tsx:12"


def test_call_sites_and_snippets():
    text = b"x = 1\nrun(  a,\n  b)\n"
    location = LineTable(text).location("src/app.py", 6, 19)
    assert call_site_id(location, "run") == "sha1:" + hashlib.sha1(b"src/app.py:2:1:3:5:run").hexdigest()
    assert snippet_hash(" run(  a,\n  b) ") == "sha1:" + hashlib.sha1(b"run( a, b)").hexdigest()
    assert snippet_hash(" \n") is None


def test_breadcrumbs_follow_the_hierarchy():
    facts, _ = read(SOURCE)
    assert [breadcrumb("src/app.py", facts, index) for index in range(len(facts.chunks))] == [
        "src/app.py",
        "src/app.py > import:os",
        "src/app.py > Store",
        "src/app.py > Store > load",
        "src/app.py > main",
    ]


def test_twins_get_context_and_remember_what_they_would_have_been():
    twin = "def f():\n    return 1\n"
    facts, identity = read(f"class A:\n    x = 1\n{indent(twin)}\nclass B:\n    y = 2\n{indent(twin)}\n")
    first, second = (chunk for chunk in facts.chunks if chunk.name == "f")
    assert first.span_hash == second.span_hash
    for chunk in (first, second):
        assert chunk.uid_suffix == f"{chunk.span_hash}:{chunk.pre_hash}:{chunk.post_hash}"
        assert chunk.collision_of == chunk.span_hash
    assert first.uid_suffix != second.uid_suffix
    assert len(set(identity.chunk_uids)) == len(facts.chunks)


def test_a_lone_chunk_carries_no_context_in_its_uid():
    facts, _ = read(SOURCE)
    for chunk in facts.chunks:
        assert (chunk.uid_suffix, chunk.collision_of) == (chunk.span_hash, "")
    assert all(chunk.pre_hash and chunk.post_hash for chunk in facts.chunks[2:4])


def test_equal_neighbours_in_equal_context_get_ordinals():
    # More than 512 equal characters on both sides of the middle ones: no context tells these apart.
    facts, identity = read("tick()\n" * 200)
    twins = [chunk for chunk in facts.chunks if chunk.kind == "expression"]
    ordinals = [chunk.uid_suffix.partition(":ord")[2] for chunk in twins]
    numbered = [int(ordinal) for ordinal in ordinals if ordinal]
    assert len(twins) == 200
    assert len(numbered) >= 3
    assert numbered == list(range(1, len(numbered) + 1))
    assert ordinals[0] == ordinals[-1] == ""
    assert {chunk.collision_of for chunk in twins} == {twins[0].span_hash}
    assert len(set(identity.chunk_uids)) == len(facts.chunks)


def test_a_file_of_one_statement_and_its_module_differ():
    facts, identity = read("x = 1")
    module, statement = facts.chunks
    assert statement.uid_suffix == statement.span_hash == module.span_hash
    assert module.collision_of == module.span_hash
    assert len(set(identity.chunk_uids)) == 2
    assert uid_of("x = 1\n\ny = 2\n", "x") == identity.chunk_uids[1]


def fence(text: str, code: str, language: str = "python", after: int = 0, inner: tuple[Segment, ...] = ()) -> Segment:
    start = text.encode().index(code.encode(), after)
    return Segment("fence", language, ((start, start + len(code.encode())),), inner)


def test_a_segment_keeps_its_uid_when_lines_around_it_move():
    code = "def f():\n    pass\n"
    short, long = f"# A\n```py\n{code}```\n", f"# A\nmore\n\ntext\n```py\n{code}```\nend\n"
    (before,), (after,) = (read(text, fence(text, code))[1].embedded for text in (short, long))
    assert before == after
    assert before.segment_uid == segment_uid("doc.md", "fence", "python", code.encode())
    assert before.virtual_path == f"doc.md#seg:{before.segment_uid}"
    assert all(uid.startswith(f"ck64:v1:repo:{before.virtual_path}:python:") for uid in before.chunk_uids)
    changed = short.replace("pass", "return")
    assert read(changed, fence(changed, "def f():\n    return\n"))[1].embedded[0].segment_uid != before.segment_uid


def test_equal_fences_in_one_file_stay_apart():
    code = "def f():\n    pass\n"
    text = f"```py\n{code}```\n\n```py\n{code}```\n"
    second = text.index(code) + 1
    _, identity = read(text, fence(text, code), fence(text, code, after=second))
    one, two = identity.embedded
    assert two.segment_uid == f"{one.segment_uid}:ord2"
    assert not set(one.chunk_uids) & set(two.chunk_uids)
    assert not set(one.symbol_ids) & set(two.symbol_ids)


def test_a_nested_segment_knows_its_parent():
    code = "x = 1\n"
    outer = f"```py\n{code}```\n"
    text = f"````txt\n{outer}````\n{outer}"
    nested = fence(text, outer, "text", inner=(fence(text, code),))
    _, identity = read(text, nested, fence(text, code, after=text.index("````\n```py")))
    holder, plain = identity.embedded
    (inside,) = holder.embedded
    assert inside.segment_uid == segment_uid("doc.md", "fence", "python", code.encode(), holder.segment_uid)
    assert plain.segment_uid == segment_uid("doc.md", "fence", "python", code.encode())


def test_every_symbol_of_a_document_has_its_own_id():
    text = dedent("""\
        import sys
        x = 1
        if sys.platform == "win32":
            def f(a): return a
        else:
            def f(a): return a
        class C:
            x: int = 0
            @property
            def v(self): return self.x
            @v.setter
            def v(self, x): self.x = x
            def f(self, a): return a
        g = lambda a: a
        g = lambda a: a
        for x in range(3):
            y = [a for a in range(x)]
            z = [a for a in range(x)]
        def f(a): return a
        def f(a): return a
        """)
    facts, identity = read(text)
    names = [(symbol.qualified_name, symbol.kind_group) for symbol in facts.symbols]
    assert len(names) > 20
    assert len(set(identity.symbol_ids)) == len(names)


def indent(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())
