"""What a text says of types and functions as values, in a language that is given by its id."""

from __future__ import annotations

from functools import cache
from typing import Any

from cq.language import describe
from cq.languages.registry import get_language, load_reader
from cq.model.shape import Shapes
from cq.model.source import Segment


@cache
def _get_reader(language: str) -> Any:
    reader, own = describe(language).shapes, get_language(language)
    return load_reader(reader)(own) if reader and own is not None else None


def read_shapes(text: bytes, language: str, segment: Segment | None = None) -> Shapes | None:
    """Of one document of a text; None in a language that is not read so."""
    reader = _get_reader(language)
    return None if reader is None else reader.read(text, segment.ranges if segment is not None else ())
