"""What linking needs is forgotten when it is done: a process that lives on links again with every change."""

from __future__ import annotations

import gc

import pytest

from cq.graph.link import Linker
from cq.graph.unit import Unit
from cq.language import all_languages, parsed_languages
from cq.languages.facts import extract_facts
from cq.languages.linking import link_units
from cq.store.codec import flatten
from tests.support.samples import find_snippets

LINKED = [language for language in parsed_languages() if all_languages()[language].has_links]


@pytest.mark.parametrize("language", LINKED)
def test_nothing_is_kept_of_what_was_linked(language: str) -> None:
    units: list[Unit] = []
    for number, text in enumerate(find_snippets(language)):
        documents = flatten(extract_facts(text, language))
        units += [Unit(f"m{number}.x", document.code, 0) for document, _ in documents[:1] if document.code is not None]
    before = count_linkers()
    for unit in units:
        link_units([unit])
    link_units(units)
    del units
    assert count_linkers() == before


def count_linkers() -> int:
    gc.collect()
    return sum(isinstance(each, Linker) for each in gc.get_objects())
