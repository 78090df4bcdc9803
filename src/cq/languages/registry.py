"""What reads each language, loaded when first asked for; `cq.language` says which languages there are."""

from __future__ import annotations

import importlib
from functools import cache

from cq.language import describe
from cq.syntax.language import Language


@cache
def get_language(language: str) -> Language | None:
    """The language, or None for one without a grammar (its files still have text and a module chunk)."""
    module, _, name = describe(language).reader.partition(":")
    if module:
        return getattr(importlib.import_module(f"cq.languages.{module}"), name)(language)
    return Language(language) if describe(language).grammar else None
