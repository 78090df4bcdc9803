"""`cq find` by words: what speaks for a file, and the order of its answer."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cq.questions.find import scoring
from cq.questions.find.evidence import FileNames, alike
from cq.questions.find.scoring import LEAST, SPREAD, calibrate_alone, gather, spread
from cq.questions.find.semantic import join_files
from cq.questions.find.words import split_question
from tests.support.find import find_fixture

pytestmark = pytest.mark.slow

SHOP = """
    #- shop/routing.py
    def register(app, path, middleware):
        '''Adds a handler; middleware sees its response first.'''
        return app.add(path, middleware)
    #- shop/middleware/compress.py
    LEVELS = (1, 6, 9)

    def wrap(handler):
        def inner(request):
            response = handler(request)
            return shrink(response)
        return inner

    def shrink(body):
        return body
    #- shop/middleware/cors.py
    from framework.cors import CORSMiddleware
    #- shop/orders/models.py
    class Total:
        def add(self, order):
            return order
    #- shop/orders/mapping.py
    class OrderBook(Base):
        def total(self, order):
            return Total().add(order)

        def __getitem__(self, order):
            return OrderBook, order

    def fill(book: OrderBook, order):
        return OrderBook
    #- tests/test_orders.py
    def test_order_book_keeps_order():
        assert OrderBook().total("order book order book")
    """


def files(root: Path, question: str) -> list[str]:
    found = find_fixture(root, SHOP, question, mode="lexical", threshold=0.0).results
    return list(dict.fromkeys(result.file for result in found))


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("compression of a response", "shop/middleware/compress.py"),  # by its name, in another form
        ("where is CORS allowed", "shop/middleware/cors.py"),  # of imports alone
        ("OrderBook", "shop/orders/mapping.py"),
        ("who fills an OrderBook", "shop/orders/mapping.py"),
        ("test of the order book", "tests/test_orders.py"),  # asked for
        ("order book order", "shop/orders/mapping.py"),  # not asked for
    ],
)
def test_the_file_that_is_about_it_comes_first(tmp_path: Path, question: str, first: str):
    assert files(tmp_path, question)[0] == first


def test_a_definition_comes_before_what_mentions_it(tmp_path: Path):
    found = find_fixture(tmp_path, SHOP, "how an OrderBook is filled", mode="lexical", threshold=0.0)
    assert found.results[0].qualified_name == "OrderBook"
    assert found.results[0].parts.file > max(row.parts.file for row in found.results[1:])


def test_words_alone_are_no_names(tmp_path: Path):
    """`total` in a sentence is a word; as all of the question it is a name."""
    named, said = (
        {row.qualified_name: row.parts.file for row in find_fixture(tmp_path, SHOP, text, threshold=0.0).results}
        for text in ("Total", "Total of the order")
    )
    assert named["Total"] > named["Total.add"] + 0.3
    assert said["Total"] == said["Total.add"]


@pytest.mark.parametrize(
    ("word", "other", "same"),
    [
        ("serialization", "serializer", True),
        ("validate", "validators", True),
        ("authentication", "auth", True),
        ("database", "db", True),
        ("dependency", "dependencies", True),
        ("format", "forward", False),
        ("context", "contract", False),
        ("map", "mapping", True),
        ("is", "island", False),
    ],
)
def test_forms_of_a_word(word: str, other: str, same: bool):
    assert (alike(word, other) > 0) is same


def test_names_of_files():
    paths = ["web/urlmap.py", "web/url.py", "db/__init__.py", "db/utils.py", "web/request_parser.py", ".hidden"]
    precision, recall = FileNames(paths).match(split_question("how URL mapping and parsing work in the database"))
    by_path = dict(zip(paths, precision.tolist(), strict=True))
    assert by_path["web/urlmap.py"] == by_path["web/url.py"] == 1  # run together; alone
    assert by_path["db/__init__.py"] == 0.8  # named by its folder, by an abbreviation
    assert 0 < by_path["db/utils.py"] < 0.8  # a plain name: its folder says a little less
    assert by_path["web/request_parser.py"] == 0.5
    assert by_path[".hidden"] == 0
    assert recall.max() == 1


def test_names_of_no_files_at_all():
    precision, recall = FileNames([]).match(["url"])
    assert len(precision) == len(recall) == 0


def test_each_further_chunk_of_a_file_is_lower():
    found = spread(np.array([0.9, 0.8, 0.7, 0.6]), np.array([1, 1, 2, 1]))
    assert found.tolist() == pytest.approx([0.9, 0.8 - SPREAD, 0.7, 0.6 - 2 * SPREAD])


def test_several_good_chunks_speak_for_their_file():
    found = gather(np.array([0.8, 0.75, 0.75, 0.1]), np.array([3, 1, 1, 2]))
    assert found[1] == found[2] == 1
    assert 0.5 < found[0] < 1
    assert found[3] < 0.01


def test_words_in_other_chunks_speak_for_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`refund` is the same twice; only one of them stands among payments by card."""
    monkeypatch.setattr(scoring, "TOGETHER", 0.0)  # several good chunks say so too
    found = find_fixture(
        tmp_path,
        """
        #- a.py
        def refund(order):
            return order

        def greet(name):
            return name
        #- b.py
        def refund(order):
            return order

        def payment(card):
            return card
        #- c.py
        def weather(day):
            return day
        """,
        "refund of a card payment",
        mode="lexical",
        threshold=0.0,
    )
    order = [(row.file, row.name) for row in found.results]
    assert order.index(("b.py", "refund")) < order.index(("a.py", "refund"))


def test_a_chunk_with_few_of_the_words_is_not_shown_for_its_file():
    """From the disk, nothing is known of the file as a whole."""
    assert calibrate_alone(0.0) < calibrate_alone(0.1) < LEAST < calibrate_alone(0.2) < 1


def test_a_file_is_like_all_of_its_chunks_together():
    catalog: Any = SimpleNamespace(paths=["a", "b", "c"], files=np.array([0, 0, 1, 2, 2]))
    codes = np.array([[100, 0], [0, 100], [-7, 0]], np.int8)
    found = join_files(catalog, np.array([0, 1, 3]), codes)
    assert found == pytest.approx(np.array([[0.5**0.5, 0.5**0.5], [0, 0], [-1, 0]]))


_SAID = """
#- strict.lua
--- Checks uses of undeclared global variables in every chunk.

local M = {}
function M.go() end
return M
#- money.rb
# Turns raw pennies into printable amounts.
module Money
end
#- lib.rs
//! About the walrus and its migrations in winter.
mod walrus;
// eslint-disable-line walrus
#- api.proto
syntax = "proto3";

message PangolinRequest { string id = 1; }
"""


@pytest.mark.parametrize(
    ("question", "kind", "path"),
    [
        ("undeclared global variables", "comment", "strict.lua"),
        ("printable amounts of pennies", "module", "money.rb"),
        ("walrus", "comment", "lib.rs"),  # neither the line that brings a file in nor a comment of one word
        ("PangolinRequest", "statement", "api.proto"),
    ],
)
def test_what_is_said_outside_of_functions_is_found(tmp_path: Path, question: str, kind: str, path: str):
    found = find_fixture(tmp_path, _SAID, question, mode="lexical")
    assert (found.results[0].kind, found.results[0].file) == (kind, path)


def test_kinds_of_what_is_no_definition(tmp_path: Path):
    quiet = {
        kind: [(row.file, row.start_line) for row in find_fixture(tmp_path, _SAID, "walrus", kinds=(kind,)).results]
        for kind in ("import", "comment", "part")
    }
    assert quiet == {"import": [("lib.rs", 2)], "comment": [("lib.rs", 1)], "part": [("lib.rs", 3)]}


def test_text_without_a_grammar_is_found_by_the_screen(tmp_path: Path):
    lines = "\n\n".join(f"message Number{number} {{ string id = 1; }}" for number in range(400))
    found = find_fixture(tmp_path, f"#- all.proto\n{lines}", "Number300")
    assert found.results[0].file == "all.proto"
    assert 0 < found.results[0].end_line - found.results[0].start_line < 200
    assert found.results[0].start_line < 601 < found.results[0].end_line
