"""The facts of a text in a language that is given by its id."""

from __future__ import annotations

from collections.abc import Sequence

from cq.languages.registry import get_detailed_language, get_language
from cq.model.code import Code
from cq.model.facts import FileFacts
from cq.model.source import Segment
from cq.syntax import chunks, extract


def extract_facts(text: bytes, language: str, segments: Sequence[Segment] = ()) -> FileFacts:
    """What one document says about itself; `segments` are the documents embedded in it."""
    return extract.extract_facts(text, language, segments, find_language=get_language)


def extract_detailed_code(text: bytes, language: str, segment: Segment | None = None) -> Code | None:
    """What its code does with values, with what only those need who follow them along the statements; calls have the
    numbers that they have in its facts. None for a language that is not read so."""
    if get_detailed_language(language) is None:
        return None
    return extract.extract_facts(text, language, (), find_language=get_detailed_language, segment=segment).code


def embedding_text(text: bytes, facts: FileFacts, index: int) -> str:
    """The chunk's source with each child replaced by its signature; a leaf is its source unchanged."""
    language = get_language(facts.language)
    return chunks.embedding_text(text, facts, index, language.stub if language else ";")
