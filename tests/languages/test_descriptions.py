"""Every data file of a language says what its schema knows, and only that; a mistake in one is told with its place."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from cq import language as languages
from cq.indexing.producer import list_sources
from cq.language import all_languages, describe, load_known, load_table
from cq.languages.ecmascript.library import Library
from cq.languages.effects import Effects
from cq.languages.python.library import KnownFunctions
from cq.languages.registry import get_language
from cq.languages.routes import Routes
from cq.languages.rust.std import Std
from cq.languages.tables.linking import Rules
from cq.questions.exceptions import handlers
from cq.questions.q.rules import Patterns
from cq.questions.tests_for import suites
from cq.snapshot import arrows
from cq.source import segments
from cq.syntax import tokens
from cq.syntax.language import Syntax

FOLDER = Path(languages.__file__).parent / "languages"
DESCRIPTIONS = sorted(FOLDER.glob("*/*.toml"))
KNOWN = sorted(FOLDER.glob("*/known/*.toml"))
TABLES: dict[str, type[Any]] = {
    "exceptions": handlers.Table, "highlights": tokens.Highlights, "linking": Rules, "packages": arrows.Packages,
    "patterns": Patterns, "segments": segments.Rules, "syntax": Syntax, "tests": suites.TestRules,
}  # fmt: skip
SCHEMAS: dict[str, type[Any]] = {
    "effects": Effects, "functions": KnownFunctions, "library": Library, "routes": Routes, "std": Std,
}  # fmt: skip


@pytest.mark.parametrize("file", DESCRIPTIONS, ids=lambda file: file.stem)
def test_a_description_has_known_fields_and_tables(file: Path):
    found = describe(file.stem)
    assert found.label
    assert found.suffix
    tables = {name for name, value in tomllib.loads(file.read_text()).items() if isinstance(value, dict)}
    assert tables <= TABLES.keys()
    for name in tables:
        load_table(file.stem, name, TABLES[name])


@pytest.mark.parametrize("file", KNOWN, ids=lambda file: f"{file.parents[1].name}-{file.stem}")
def test_a_file_of_known_functions_fits_its_schema(file: Path):
    own = next(file.parents[1].glob("*.toml")).stem
    load_known(own, file.stem, SCHEMAS[file.stem])


def test_an_index_is_of_the_data_files_that_made_it():
    known = {Path(entry.path).relative_to(FOLDER.parent).as_posix() for entry in list_sources()}
    assert known >= {path.relative_to(FOLDER.parent).as_posix() for path in (*KNOWN, *DESCRIPTIONS)}
    assert {"languages/python/python.scm", "graph/engine/cells.py", "model/code.py", "syntax/extract.py"} <= known


def test_nothing_belongs_to_two_languages():
    for field in ("suffixes", "files", "names", "runners", "script_types"):
        words = [word for each in all_languages().values() for word in getattr(each, field)]
        assert len(words) == len(set(words)), field


def test_what_a_description_names_is_there():
    for name, each in all_languages().items():
        assert not each.variant_of or each.variant_of in all_languages()
        reader = get_language(name)
        assert (reader is None) == (not each.grammar)
        assert reader is None or reader.grammar is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('label = "X"\nsufixes = ["x"]\n', "x.toml: Object contains unknown field `sufixes`"),
        ("label = 1\n", "x.toml: Expected `str`, got `int` - at `$.label`"),
        ('label = "X', "x.toml: Unterminated string"),
        ('offers = ["symbol"]\n', "x.toml: Invalid enum value 'symbol' - at `$.offers[0]`"),
    ],
)
def test_a_mistake_in_a_file_is_told_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x.toml").write_text(text)
    monkeypatch.setattr(languages, "_FOLDER", tmp_path)
    monkeypatch.setattr(languages, "_files", languages._files.__wrapped__)
    with pytest.raises(ValueError, match=r"folder/x\.toml") as error:
        all_languages.__wrapped__()
    assert message in str(error.value)


def test_a_variant_is_as_what_it_varies_but_for_what_it_says():
    variant, base = describe("tsx"), describe("typescript")
    assert (variant.offers, variant.family, variant.dialect) == (base.offers, base.family, base.dialect)
    assert (variant.suffixes, variant.matcher) == (("tsx",), "tsx")
    assert load_table("tsx", "patterns", Patterns) == load_table("typescript", "patterns", Patterns)


def test_of_an_unknown_language_nothing_is_known():
    assert describe("cobol").suffix == ""
    assert load_table("cobol", "patterns", Patterns) == Patterns()
