"""What goes into training, and what does not."""

from __future__ import annotations

import tomllib

import pytest

from bench.corpora import CORPORA
from training.fetch import HERE, is_excluded
from training.pairs import REPORTED, build_set, crate_of, is_permissive, passages, sentence_of


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


def test_documentation_is_taken_out_of_code():
    python = (
        b'class A:\n    """Holds the secret."""\n    def f(self):\n        """Says the secret."""\n        return 1\n'
    )
    rust = b"/// Says the secret.\n#[inline]\npub fn f() -> u8 { 1 } // kept\n"
    script = b"/** Says the secret. */\nexport function f() { return 1; }\n"
    for path, text in (("a.py", python), ("a.rs", rust), ("a.ts", script)):
        found = list(passages(path, text))
        assert found
        assert any(symbol.doc for symbol, _ in found)
        assert all("secret" not in passage.body for _, passage in found)


def test_an_overload_is_its_function():
    text = b"""/** Reads the number of a thing by its name. */
export function read(name: string, standing: boolean, turned: boolean): number;
export function read(name: string, standing: boolean, turned: boolean, other?: number): number { return 1; }
"""
    found = build_set("x", "typescript", {"a.ts": text})
    (query,) = found.queries
    assert query.text == "Reads the number of a thing by its name."
    assert [found.passages[number].name for number in query.targets] == ["read"] * len(found.passages)


def test_nothing_that_is_measured_on_was_trained_on():
    rows = tomllib.loads((HERE / "manifest.toml").read_text())["package"]
    assert sum(row["pairs"] for row in rows) > 100_000
    assert [row["name"] for row in rows if is_excluded(crate_of(row["name"]))] == []
    assert all(is_excluded(crate_of(CORPORA[name].package)) for name in REPORTED)
