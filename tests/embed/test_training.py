"""What goes into training, and what does not."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

from bench.corpora import CORPORA
from cq.embed import Passage
from cq.embed.late import LateInteraction
from cq.embed.words import Vocabulary
from training.archives import Archive, crate_of, is_permissive, read_licences
from training.fetch import HERE, is_excluded, is_excluded_package
from training.pairs import REPORTED, ask, build_set
from training.sets import Entry
from training.styles import definitions, sentence_of
from training.vary import vary
from training.verbs import find_verbs


@pytest.mark.parametrize(
    ("licence", "allowed"),
    [
        ("MIT OR Apache-2.0", True),
        ("MIT/Apache-2.0", True),
        ("MIT OR LGPL-3.0-or-later", True),
        ("MIT AND GPL-3.0", False),
        ("MPL-2.0", False),
        ("GPL-2.0-or-later", False),
        ("BSD License AND Other/Proprietary License", False),
        ("", False),
    ],
)
def test_licences(licence: str, allowed: bool):
    assert is_permissive(licence) is allowed


def test_the_sentence_of_a_documentation():
    assert sentence_of("Return the `key` of it. More.\n\nArgs:\n  x")[0] == "Return the key of it."
    assert sentence_of("Uses {@link Thing} to read :class:`~a.B` items.")[0] == "Uses Thing to read a.B items."
    assert sentence_of("@deprecated use b") == ("", "")
    assert sentence_of("Short one") == ("", "")


def test_verbs_begin_sentences_about_what_does_something():
    def say(package: str, signature: str, *texts: str) -> Entry:
        return Entry(package, "python", "a", "f", signature, "", [("doc", text) for text in texts])

    entries = [
        say("a", "def f x", "Reads a file.", "The file."),
        say("b", "def f", "Reads a line.", "Holds it."),
        say("b", "class f", "The line.", "A line."),
    ]
    assert find_verbs(entries, packages=2) == ["reads"]


def test_documentation_is_taken_out_of_code():
    python = (
        b'class A:\n    """Holds the secret."""\n    def f(self):\n        """Says the secret."""\n        return 1\n'
    )
    rust = b"/// Says the secret.\n#[inline]\npub fn f() -> u8 { 1 } // kept\n"
    script = b"/** Says the secret. */\nexport function f() { return 1; }\n"
    go = b"package a\n\n// F says the secret.\nfunc F() int { return 1 }\n"
    java = b"/** Holds the secret. */\nclass A {\n  /** Says the secret. */\n  int f() { return 1; }\n}\n"
    c = b"/* Says the secret. */\nint f(void) { return 1; }\n"
    cpp = b"// Holds the secret.\nclass A {\n  /// Says the secret.\n  int f() { return 1; }\n};\n"
    ruby = b"# Holds the secret.\nclass A\n  # Says the secret.\n  def f\n    1\n  end\nend\n"
    php = b"<?php\n/** Says the secret. */\nfunction f() { return 1; }\n"
    for path, text in (
        ("a.py", python), ("a.rs", rust), ("a.ts", script), ("a.go", go), ("a.java", java), ("a.c", c),
        ("a.cc", cpp), ("a.rb", ruby), ("a.php", php),
    ):  # fmt: skip
        found = list(definitions(path, text, beside=False))
        assert found
        assert any(definition.symbol.doc for definition in found)
        assert all("secret" not in definition.passage.body for definition in found)


def test_questions_of_every_style():
    source = b'''"""Reading of tokens that a client sends."""
def read_token(text):
    """Read the token of a client. It must have been signed by us before."""
    # The header comes before the first dot
    head = text.split(".")[0]
    if not head:
        raise ValueError("the token has no header at all")
    return head

def unrelated(): return [number * number for number in range(1000) if number % 7 == 3]
'''
    archive = Archive(
        "sdist", "x", "1", "MIT", {},
        {"tests/test_token.py": b"def test_rejects_expired_token():\n    assert read_token('x') is None\n"},
        {
            "docs/guide.md": b"# Checking who is calling\n\nUse `read_token` to check that the caller is known.\n",
            "CHANGES.md": b"# 2.0\n\n- `read_token()` no longer accepts tokens that are too old.\n",
        },
    )  # fmt: skip
    found = ask([("x/token.py", source)], archive)
    asked, silent = (definition.questions for definition in found)
    assert dict(asked) == {
        "doc": "Read the token of a client.",
        "comment": "The header comes before the first dot",
        "error": "the token has no header at all",
        "module": "Reading of tokens that a client sends.",
        "change": "no longer accepts tokens that are too old.",
        "page": "Checking who is calling",
        "test": "rejects expired token",
    }
    assert ("page", "Use to check that the caller is known.") in asked
    assert silent == []
    body = found[0].passage.body
    assert "split" in body
    assert "before the first dot" not in body
    assert "no header" not in body


def test_a_question_is_put_otherwise_in_the_same_way_each_time():
    text = "Returns the configuration of the running server."
    assert vary(text, "server config") == vary(text, "server config")
    assert len({vary(text, name) for name in ("a", "b", "c", "d")}) > 1


def test_a_description_becomes_a_topic():
    topics = {vary("Parses the cookies of a request.", str(number)) for number in range(40)}
    assert {"cookies parsing of a request", "how are cookies of a request parsed"} <= topics


def test_documentation_that_begins_with_the_name_does_not_tell_it():
    text = b"package a\n\n// ReadToken reads the token of a client.\nfunc ReadToken(text string) string {"
    text += b'    return strings.Split(text, ".")[0] }\n'
    (query,) = build_set("x", {"a.go": text}).queries
    assert query.text == "reads the token of a client."


def test_licences_of_a_source_package():
    text = """Files: *
Copyright: somebody
License: Expat

Files: debian/*
License: GPL-2+

Files: contrib/* src/old.c
License: GPL-3
 This program is free software
"""
    assert read_licences(text) == ("Expat", ["contrib/*", "src/old.c"])


@pytest.mark.parametrize(
    "name", ["golang-github-spf13-cobra-dev", "ruby-rack", "libgoogle-gson-java", "librust-tokio-dev"]
)
def test_what_is_measured_on_is_known_under_the_names_of_other_registries(name: str):
    assert is_excluded_package(name)
    assert not is_excluded_package("golang-github-spf13-viper-dev")


def test_an_overload_is_its_function():
    text = b"""/** Reads the number of a thing by its name. */
export function read(name: string, standing: boolean, turned: boolean): number;
export function read(name: string, standing: boolean, turned: boolean, other?: number): number { return 1; }
"""
    found = build_set("x", {"a.ts": text})
    (query,) = found.queries
    assert query.text == "Reads the number of a thing by its name."
    assert [found.passages[number].name for number in query.targets] == ["read"] * len(found.passages)


def test_nothing_that_is_measured_on_was_trained_on():
    rows = tomllib.loads((HERE / "manifest.toml").read_text())["package"]
    assert sum(sum(row["pairs"].values()) for row in rows) > 100_000
    assert [row["name"] for row in rows if is_excluded_package(row["name"])] == []
    assert all(is_excluded(crate_of(CORPORA[name].package)) for name in REPORTED)


def test_the_late_interaction_that_learns_is_the_one_that_runs(tmp_path: Path):
    torch = pytest.importorskip("torch", reason="only training needs it")
    from training.late import Late, Texts, fill_slots, save

    words = ["read", "write", "file", "token", "user", "path", "close", "open"]
    vocabulary = Vocabulary(words)
    passages = [
        Passage("file user", "read file", "read file path", "open path read close open"),
        Passage("user", "token", "", "user token"),
        Passage("", "write file", "write path", ""),
    ]
    fields = [
        vocabulary.encode(text, 99)
        for passage in passages
        for text in (passage.path, passage.name, passage.signature, passage.body)
    ]
    tokens = np.array([token for field in fields for token in field], np.uint16)
    slots, ends = fill_slots(Texts(tokens, np.array([len(field) for field in fields]).reshape(3, 4)))
    model = Late(np.random.default_rng(3).normal(size=(len(words), 160)).astype(np.float32), ends)
    with torch.no_grad():
        model.common.fill_(0.7)
        asked = torch.tensor([[token + 1 for token in vocabulary.encode("write user file", 31)]])
        learned = model(asked, torch.from_numpy(slots).long()[None])[0].numpy()
    save(model, tmp_path)
    assert LateInteraction(vocabulary, tmp_path).score("write user file", passages) == pytest.approx(learned, abs=0.1)
    assert np.ptp(learned) > 1
