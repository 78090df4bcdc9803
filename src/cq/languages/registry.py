"""What reads each language, loaded when first asked for; `cq.language` says which languages there are."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from cq.language import describe
from cq.syntax.language import Language


@cache
def get_language(language: str) -> Language | None:
    """The language, or None for one without a grammar (its files still have text and a module chunk)."""
    found = _load(language, describe(language).reader)
    return Language(language) if found is None and describe(language).grammar else found


@cache
def get_detailed_language(language: str) -> Language | None:
    """As it is read for those who follow values along the statements; None where nobody can."""
    return _load(language, describe(language).detail)


def _load(language: str, reader: str) -> Language | None:
    return load_reader(reader)(language) if reader else None


def load_reader(reader: str) -> Any:
    """What a description names, a class or a function."""
    module, _, name = reader.partition(":")
    return getattr(importlib.import_module(f"cq.languages.{module}"), name)
