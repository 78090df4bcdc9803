"""`cq find`: candidates, scores, selection, and symbols by their path."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cq import Workspace
from cq.embed.weights import load_manifest
from cq.model.config import FindConfig
from cq.model.errors import StoreError, UsageError
from cq.model.find import FindAnswer
from cq.questions import find as find_module
from cq.questions.find import FindOptions
from cq.questions.find import semantic as semantic_module
from cq.questions.find.candidates import WEIGHTS, Lexical, is_identifier, split_terms
from cq.questions.find.layout import render_graph, render_snapshot
from cq.questions.find.lookup import parse_lookup
from cq.questions.find.scoring import LEAST, LEAST_CHANCE, Vectors, blend
from cq.questions.find.words import stem
from tests.support.find import find_fixture

pytestmark = pytest.mark.slow

AUTH = """
    #- src/auth/tokens.py
    import jwt
    from models import Payload, Session

    EXPIRY = 3600
    ISSUER = "cq"

    class TokenService:
        def __init__(self, secret: str):
            self.secret = secret
            self.other = 1

        def validate_token(self, token: str) -> Payload:
            '''Check the signature of a token.'''
            return jwt.decode(token, self.secret)

        def refresh(self, token: str) -> str:
            payload = self.validate_token(token)
            return jwt.encode(payload, self.secret, EXPIRY)
    #- src/web/middleware.py
    from auth.tokens import TokenService

    def verify(request):
        return TokenService("s").validate_token(request.token)
    #- src/web/pages.py
    def render_page(template):
        return template.render()
    #- tests/test_tokens.py
    def test_validate_token():
        assert True
    """


def names(answer: FindAnswer) -> list[str]:
    return [result.qualified_name for result in answer.results]


def test_words_of_an_idea_find_code_that_is_called_so(tmp_path: Path):
    answer = find_fixture(tmp_path, AUTH, "how is a token validated")
    assert names(answer)[0] == "TokenService.validate_token"
    assert answer.results[0].rank == 1
    assert all(0 <= result.score <= 1 for result in answer.results)
    assert [result.score for result in answer.results] == sorted((r.score for r in answer.results), reverse=True)
    assert "render_page" not in names(answer)


def test_sources_come_before_tests(tmp_path: Path):
    answer = find_fixture(tmp_path, AUTH, "validate_token", threshold=0.0)
    assert names(answer).index("TokenService.validate_token") < names(answer).index("test_validate_token")


def test_filters_hold_before_candidates_are_counted(tmp_path: Path):
    answer = find_fixture(tmp_path, AUTH, "validate token", paths=("tests/",), candidates=1, threshold=0.0)
    assert {result.file for result in answer.results} == {"tests/test_tokens.py"}
    answer = find_fixture(tmp_path, AUTH, "token", kinds=("class",), threshold=0.0, candidates=1)
    assert names(answer) == ["TokenService"]
    assert find_fixture(tmp_path, AUTH, "token", languages=("rust",)).found == 0


def test_what_is_not_relevant_enough_is_not_shown_and_said(tmp_path: Path):
    answer = find_fixture(tmp_path, AUTH, "validate token", threshold=1.0)
    assert answer.found == 0
    assert [event.category for event in answer.degraded if event.stage == "find"] == ["threshold"]


def test_the_budget_holds_for_graph_and_snapshots_together(tmp_path: Path):
    wide = find_fixture(tmp_path, AUTH, "token", threshold=0.0)
    narrow = find_fixture(tmp_path, AUTH, "token", threshold=0.0, budget=220)
    assert 0 < len(narrow.results) < len(wide.results)
    assert narrow.summary["tokens"] <= 220
    assert names(narrow)[0] == names(wide)[0]
    assert narrow.truncated[0].cap == "budget"
    assert narrow.truncated[0].omitted == len(wide.results) - len(narrow.results)


def test_the_number_of_tokens_is_that_of_what_is_printed(tmp_path: Path):
    answer = find_fixture(tmp_path, AUTH, "token", threshold=0.0)
    printed = [render_graph(answer, answer.summary["tokens"], 8000), *map(render_snapshot, answer.snapshots)]
    assert answer.summary["tokens"] == sum(-(-len(text.encode()) // 4) for text in printed)
    assert f"{answer.summary['tokens']:,}/8,000 tokens" in printed[0].splitlines()[0]


def test_one_snapshot_of_every_file_the_best_first(tmp_path: Path):
    answer = find_fixture(tmp_path, AUTH, "token", threshold=0.0)
    assert len({shot.file for shot in answer.snapshots}) == len(answer.snapshots)
    scores = [shot.score for shot in answer.snapshots]
    assert scores == sorted(scores, reverse=True)
    # The likeliest have their code; of the others it is said where they are and how to see it.
    shown = sorted(rank for shot in answer.snapshots for rank in shot.results)
    assert shown == [1, 2, 3, 4, 5]
    assert [event.message for event in answer.degraded] == [
        "2 of 7 results stand here without their code: --all shows it"
    ]
    everything = find_fixture(tmp_path, AUTH, "token", threshold=0.0, everything=True)
    shown = sorted(rank for shot in everything.snapshots for rank in shot.results)
    assert shown == [result.rank for result in everything.results]


def test_the_same_code_is_shown_once(tmp_path: Path):
    code = "export function token() { return renew() }"
    source = f"#- src/a.js\n{code}\n#- dist/a.js\n{code}\n"
    answer = find_fixture(tmp_path, source, "token", threshold=0.0)
    assert [len(shot.results) for shot in answer.snapshots] == [1]
    assert answer.graph is not None
    assert [node.same_as for node in answer.graph.nodes] == [0, 1]
    assert [result.file for result in answer.results] == ["dist/a.js", "src/a.js"]


def test_two_runs_are_the_same(tmp_path: Path):
    first, second = (find_fixture(tmp_path, AUTH, "token", threshold=0.0) for _ in range(2))
    assert (first.results, first.graph, first.snapshots) == (second.results, second.graph, second.snapshots)


def test_what_the_budget_has_no_room_for_is_listed_without_its_code(tmp_path: Path):
    steps = "\n".join(f"    step_{number} = renew({number})" for number in range(65))
    source = f"#- a.py\ndef token(): ...\n#- b.py\ndef renew_token():\n{steps}\n#- c.py\ndef old_token(): ...\n"
    wide = find_fixture(tmp_path, source, "token", threshold=0.0, budget=0)
    narrow = find_fixture(tmp_path, source, "token", threshold=0.0, budget=400)
    shown = {number for snapshot in narrow.snapshots for number in snapshot.results}
    assert 0 < len(shown) < len(narrow.results)
    assert [result.chunk_uid for result in narrow.results] == [
        result.chunk_uid for result in wide.results[: len(narrow.results)]
    ]
    bare = len(narrow.results) - len(shown)
    assert [(cut.scope, cut.omitted) for cut in narrow.truncated if cut.scope == "code.answer"] == [
        ("code.answer", bare)
    ]
    assert [event.category for event in narrow.degraded if event.stage == "find"] == ["budget"]
    assert narrow.summary["tokens"] <= 400


def test_words_alone(tmp_path: Path):
    answer = find_fixture(tmp_path, AUTH, "how is a token validated", mode="lexical")
    assert answer.summary["mode"] == "lexical"
    assert all(not result.parts.body and not result.parts.signature for result in answer.results)


def test_weights_without_a_reranker_are_not_passed_over_in_silence(tmp_path: Path):
    answer = find_fixture(tmp_path, AUTH, "validate_token", weights=(0.9, 0.1), mode="lexical")
    assert [event.category for event in answer.degraded if event.stage == "rerank"] == ["weights"]


def test_with_vectors_a_score_is_the_chance_that_was_fitted():
    priors = np.array([1.0, 0.8, 1.0, 1.0])
    catalog: Any = SimpleNamespace(weigh=lambda _: priors, files=np.arange(4), find_inline_tests=lambda *_: np.ones(4))
    reader: Any = None
    lexical = Lexical(np.array([0, 1, 2]), np.array([0.5, 0.5, 0.1]), np.zeros(4))
    vectors = Vectors(np.array([0, 1, 3]), np.array([0.6, 0.6, 0.2]), np.array([0.5, 0.5, 0.3]), np.zeros(4))
    fitted = load_manifest().first
    ranked = blend(reader, catalog, "", lexical, vectors, None, 10, fitted)
    table = np.array([[0.5, 0.6, 0.5], [0.5, 0.6, 0.5], [0.1, 0, 0], [0, 0.2, 0.3]])
    expected = fitted.score(table, priors)
    assert {row.chunk: row.score for row in ranked} == pytest.approx(dict(enumerate(expected)), abs=1e-6)
    assert {row.chunk: row.own for row in ranked} == dict(enumerate(map(tuple, table.tolist())))
    # All else equal, a test keeps four fifths of its joined score.
    assert [row.chunk for row in ranked[:2]] == [0, 1]
    assert expected[1] < expected[0] < 0.8


def test_the_threshold_is_that_of_the_kind_of_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    question = "how is a token validated"
    few = find_fixture(tmp_path, AUTH, question)
    assert few.results[0].score >= LEAST, "nothing was fitted for a handful"
    monkeypatch.setattr(find_module, "FEW", 0)
    chances = find_fixture(tmp_path, AUTH, question, threshold=0.0)
    shown = find_fixture(tmp_path, AUTH, question)
    assert names(shown) == [result.qualified_name for result in chances.results if result.score >= LEAST_CHANCE]
    assert 0 < len(shown.results) < len(chances.results)
    for options, least in (
        ({"weights": (0.6, 0.4)}, LEAST),
        ({"mode": "lexical"}, LEAST),
        ({"mode": "semantic"}, LEAST_CHANCE),
    ):
        answer = find_fixture(tmp_path, AUTH, question, **options)
        assert "TokenService.validate_token" in names(answer), options
        assert min(result.score for result in answer.results) >= least


def test_the_reranker_reads_the_best_word_by_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(find_module, "FEW", 0)
    monkeypatch.setattr(semantic_module, "RERANKED", 3)
    results = find_fixture(tmp_path, AUTH, "how is a token validated", threshold=0.0).results
    assert len(results) > 3
    assert all(result.parts.rerank == 0 for result in results[3:])
    assert {result.parts.rerank for result in results[:3]} >= {0, 1}, "stretched over those it reads"
    assert max(result.parts.late for result in results) == 1
    assert [result.score for result in results] == sorted((result.score for result in results), reverse=True)
    best = {result.qualified_name for result in results[:3]}
    monkeypatch.setattr(semantic_module, "READ", 1)  # then none of the others is compared
    only = find_fixture(tmp_path, AUTH, "how is a token validated", threshold=0.0).results
    assert sum(result.parts.late > 0 for result in only) == 1
    assert "TokenService.validate_token" in best


@pytest.mark.parametrize("weights", [(1.0, 0.0), (0.0, 1.0), (0.65, 0.35), (0.2, 0.3)])
def test_weights_of_the_user_are_all_of_the_score(tmp_path: Path, weights: tuple[float, float]):
    found = find_fixture(tmp_path, AUTH, "how is a token validated", weights=weights, threshold=0.0).results
    assert len(found) > 3
    for result in found:
        parts = result.parts
        assert result.score == pytest.approx(parts.rerank * weights[0] + parts.vector * weights[1], abs=1e-4)
    assert max(result.parts.rerank for result in found) > min(result.parts.rerank for result in found)
    assert [result.score for result in found] == sorted((result.score for result in found), reverse=True)
    # What a candidate has depends on no other: without the others it has the same.
    best = found[0]
    alone = find_fixture(
        tmp_path, AUTH, "how is a token validated", weights=weights, threshold=0.0, paths=(best.file,)
    ).results
    vectors = {result.qualified_name: result.parts.vector for result in alone}
    assert vectors[best.qualified_name] == best.parts.vector


def test_functions_documented_alike_are_shown_together(tmp_path: Path):
    body = '    """Load the record of a customer from the archive."""\n    return open(x + {})\n'
    source = "#- a.py\n" + "".join(f"def load_{n}(x):\n{body.format(n)}" for n in ("user", "other", "third", "fourth"))
    for options in ({}, {"mode": "semantic"}, {"mode": "lexical"}):
        found = find_fixture(tmp_path, source, "load the record of a customer from the archive", **options)
        assert len(found.results) == 4, options
        assert not any(event.category == "words" for event in found.degraded), options


def test_inline_tests_of_rust_rank_as_tests(tmp_path: Path):
    source = """
    //- lib.rs
    /// Parse the header of a request.
    pub fn parse_header(text: &str) -> u32 {
        text.len() as u32
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        /// Parse the header of a request.
        #[test]
        fn parse_header_of_request() {
            assert_eq!(parse_header("header"), 6);
        }
    }
    """
    found = find_fixture(tmp_path, source, "parse the header of a request", threshold=0.0)
    priors = {result.qualified_name: result.parts.prior for result in found.results}
    assert names(found)[0] == "parse_header"
    assert (priors["parse_header"], priors["tests.parse_header_of_request"]) == (1.0, 0.6)
    asked = find_fixture(tmp_path, source, "test that the header of a request is parsed", threshold=0.0)
    assert {result.parts.prior for result in asked.results if result.qualified_name.startswith("tests.")} == {1.0}


def test_headings_do_not_push_code_out(tmp_path: Path):
    source = (
        "#- README.md\n"
        + "# Session\n\nabout it\n\n" * 12
        + "#- src/session.py\nclass Client:\n    def Session(self): ...\n"
    )
    found = find_fixture(tmp_path, source, "symbol = Session", limit=3)
    assert found.results[0].file == "src/session.py"
    assert found.summary["passed"] == 13
    assert "3 of 13 matches" in render_graph(found, 1, 0).splitlines()[0]


def test_one_candidate_alone_is_found(tmp_path: Path):
    answer = find_fixture(tmp_path, AUTH, "render a template as a page", paths=("src/web/pages.py",))
    assert names(answer) == ["render_page"]


def test_where_nothing_has_vectors_words_score(tmp_path: Path):
    snippet = AUTH + "#- conf/app.toml\n    [retry]\n    max_attempts = 3\n"
    answer = find_fixture(tmp_path, snippet, "how many attempts to retry", paths=("conf/",), threshold=0.3)
    assert [result.file for result in answer.results] == ["conf/app.toml"] * len(answer.results) != []
    assert answer.summary["mode"] == "lexical"


def test_a_profile_without_words_finds_names(tmp_path: Path):
    (tmp_path / "cq.toml").write_text('[find]\nprofile = "vector_only"\n')
    answer = find_fixture(tmp_path, AUTH, "validate_token", threshold=0.0)
    assert "TokenService.validate_token" in names(answer)[:2]
    assert all(not result.parts.lexical for result in answer.results)


def test_without_words_and_vectors_there_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("cq.indexing.vectors.INLINE", 0)
    with pytest.raises(StoreError, match=r"no vectors to ask yet.*0 % of the vectors.*--embed"):
        find_fixture(tmp_path, AUTH, "how is a token validated", mode="semantic")


def test_a_profile_without_words_keeps_none(tmp_path: Path):
    def count_words(workspace: Workspace) -> int:
        with workspace.index.reading() as (reader, _):
            return sum(len(reader.find_words("token", column, 100)) for column in WEIGHTS)

    config = tmp_path / "cq.toml"
    config.write_text('[find]\nprofile = "vector_only"\n')
    answer = find_fixture(tmp_path, AUTH, "how is a token validated", threshold=0.0)
    assert names(answer)[0] == "TokenService.validate_token"
    with Workspace.open(tmp_path, index_dir=tmp_path / ".index") as workspace:
        assert count_words(workspace) == 0
        (tmp_path / "src/web/pages.py").write_text("def render_token(): ...\n")
        assert workspace.refresh().changed == 1  # what is forgotten was never there
        assert not workspace.validate().findings
    config.write_text("")
    with Workspace.open(tmp_path, index_dir=tmp_path / ".index", auto_refresh=False) as workspace:
        with pytest.raises(UsageError, match="vector_only"):
            workspace.find("how is a token validated")
        assert workspace.find(FindOptions("how is a token validated", mode="semantic", threshold=0.0)).found
    with Workspace.open(tmp_path, index_dir=tmp_path / ".index") as workspace:
        assert "another profile" in workspace.refresh().rebuilt
        assert count_words(workspace) > 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"kinds": ("functon",)}, "did you mean 'function'"),
        ({"threshold": 2.0}, "--threshold 2 is out of range"),
        ({"call_depth": -2}, "--call-depth -2 is out of range"),
        ({"candidates": 0}, "--candidates 0 is out of range"),
    ],
)
def test_options_that_cannot_be(options: dict[str, object], says: str):
    with pytest.raises(UsageError) as caught:
        FindOptions("x", **options).settle(FindConfig())  # pyright: ignore
    assert says in f"{caught.value}"


def test_a_profile_refuses_what_it_leaves_out():
    for profile, mode in (("lexical_only", "semantic"), ("vector_only", "lexical")):
        with pytest.raises(UsageError):
            FindOptions("x", mode=mode).settle(FindConfig(profile=profile))  # pyright: ignore


def test_names_are_told_from_words():
    assert all(map(is_identifier, ("get_or_create", "QuerySet.filter", "parseJSON()", "a::b", "token")))
    assert not any(map(is_identifier, ("validate token", "how?", "a + b")))


def test_terms_are_split_kept_whole_and_freed_of_common_words():
    assert split_terms("how is getUserName used") == ["user", "name", "getusername"]
    assert split_terms("what is this") == ["what", "is", "this"]
    assert stem("validators") == stem("validating") == stem("validate")


# -- symbols by their path --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        "symbol = validate_token",
        "symbol = TokenService > validate_token",
        "symbol = src/auth/tokens.py > TokenService > validate_token",
        "symbol=src/auth/tokens.py>validate_token",
    ],
)
def test_a_symbol_by_its_path(tmp_path: Path, query: str):
    answer = find_fixture(tmp_path, AUTH, query)
    assert names(answer) == ["TokenService.validate_token"]
    assert answer.results[0].score == 1.0
    assert answer.graph is not None
    assert [shot.file for shot in answer.snapshots] == ["src/auth/tokens.py"]


def test_every_symbol_of_a_name(tmp_path: Path):
    snippet = "#- a.py\ndef run(): ...\n#- b.py\ndef run(): ...\n"
    assert [result.file for result in find_fixture(tmp_path, snippet, "symbol = run").results] == ["a.py", "b.py"]


@pytest.mark.parametrize(
    ("query", "says", "near"),
    [
        ("symbol = Validate_Token", "did you mean 'validate_token' (src/auth/tokens.py:12)", "validate_token"),
        ("symbol = tokens.py > validate_token", "similar paths: src/auth/tokens.py", "src/auth/tokens.py"),
        ("symbol = TokenService > validate", "'TokenService' is there (src/auth/tokens.py:7) but holds no", ""),
        ("symbol = Nothing > validate_token", "'validate_token' is defined elsewhere: src/auth/tokens.py:12", ""),
        ("symbol = entirely_unknown_name", "no symbol 'entirely_unknown_name'", ""),
        ("Symbol = TokenService.validate_token", "symbol = TokenService > validate_token`", ""),
        ("symbol == 'TokenService' > validate_token()", "symbol = TokenService > validate_token`", ""),
        ("symbol = Nothing::validate_token", "'validate_token' is defined elsewhere: src/auth/tokens.py:12", ""),
        ("symbol = src/auth/tokens.py", "is a file: name what it holds", ""),
    ],
)
def test_a_symbol_that_is_not_there(tmp_path: Path, query: str, says: str, near: str):
    answer = find_fixture(tmp_path, AUTH, query)
    assert answer.found == 0
    assert says in answer.degraded[0].message
    assert near in (*answer.suggestions, "")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"paths": ("nowhere",)}, "nothing passes --path nowhere"),
        ({"languages": ("rust",), "kinds": ("class",)}, "nothing passes --lang rust"),
        (
            {"paths": ("src/web/pages.py",), "kinds": ("class",)},
            "nothing passes --path src/web/pages.py --kind class together",
        ),
    ],
)
def test_filters_that_leave_nothing_are_named(tmp_path: Path, options: dict[str, tuple[str, ...]], says: str):
    assert says in [event.message for event in find_fixture(tmp_path, AUTH, "validate token", **options).degraded]


def test_words_that_say_nothing_are_noted(tmp_path: Path):
    assert [
        event.category for event in find_fixture(tmp_path, AUTH, "the use of it").degraded if event.category == "words"
    ]


def test_words_that_the_code_does_not_have_are_noted(tmp_path: Path):
    found = find_fixture(tmp_path, AUTH, "xyzzy plugh", threshold=0.0)
    assert found.results
    assert [event.message for event in found.degraded if "none of these words" in event.message]
    found = find_fixture(tmp_path, AUTH, "validate xyzzy", threshold=0.0)
    assert not [event for event in found.degraded if "none of these words" in event.message]


def test_words_deep_inside_a_very_long_definition(tmp_path: Path):
    lines = "".join(f"        if step_{n} > {n}: return run_{n}\n" for n in range(4000))
    snippet = f"""
    #- steps.py
    def choose():
{lines}        return quagmire

    def other():
        return 1
    """
    found = find_fixture(tmp_path, snippet, "quagmire", mode="lexical")
    assert [result.name for result in found.results] == ["choose"]


def test_a_value_that_the_budget_does_not_hold_is_shown_by_its_first_lines(tmp_path: Path):
    lines = "".join(f"        'key {n}', compile('{n}'),\n" for n in range(2000))
    found = find_fixture(
        tmp_path,
        f"""
    #- table.py
    from re import compile
    TABLE = [
{lines}    ]
    """,
        "TABLE",
    )
    source = found.snapshots[0].source
    assert source.endswith("    'key 7', compile('key 7'),\n    # ... 1992 more lines\n]\n".replace("key 7')", "7')"))
    assert "'key 8'" not in source
    assert int(found.summary["tokens"]) < int(found.summary["budget"])


def test_a_class_that_the_budget_does_not_hold_is_shown_by_its_headers(tmp_path: Path):
    """Its fields stand in blocks, its methods too, and its long function has nothing inside."""
    steps = "\n".join(f"            step = self.renew({number}, self.key)" for number in range(400))
    source = f"""#- jar.py
class Jar:
    def __init__(self, key):
        if key is None:
            self.key = None
        else:
            self.key = str(key)
    if TYPE_CHECKING:
        def renew(self, number, key):
            return number
    if OLD:
        def old(self):
{steps}
    if DEBUG:
        def show(self):
            return 1
"""
    found = find_fixture(tmp_path, source, "symbol = Jar", budget=1000)
    assert (
        found.snapshots[0].source.replace("\n\n", "\n")
        == """class Jar:
    def __init__(self, key):
        if key is None:
            self.key = None
        else:
            self.key = str(key)
    if TYPE_CHECKING:
        def renew(self, number, key):
            ...
    if OLD:
        def old(self):
            ...
    if DEBUG:
        def show(self):
            ...
"""
    )
    found = find_fixture(tmp_path, source, "symbol = Jar > old", budget=300)
    assert found.summary["tokens"] <= 300
    assert found.snapshots[0].collapsed == (1,)
    found = find_fixture(tmp_path, source, "symbol = Jar > old", budget=60)
    assert not found.snapshots
    assert [(cut.scope, cut.omitted) for cut in found.truncated] == [("code.answer", 1)]


def test_a_long_question_is_said_by_its_beginning(tmp_path: Path):
    answer = find_fixture(tmp_path, AUTH, "validate token\n" * 1000)
    assert len(render_graph(answer, 1, 0).splitlines()[0]) < 300


def test_a_symbol_without_a_name():
    with pytest.raises(UsageError, match="empty part"):
        parse_lookup("symbol = A > ")


@pytest.mark.parametrize(
    "question",
    ["kubernetes pod autoscaling", "how are blockchain transactions mined", "sudoku puzzle solver with backtracking"],
)
def test_a_question_about_something_else_finds_nothing_and_says_why(tmp_path: Path, question: str):
    answer = find_fixture(tmp_path, AUTH, question)
    assert not answer.results
    (event,) = [event for event in answer.degraded if event.stage == "find"]
    assert event.category == "elsewhere"
    assert repr(question.split()[-1]) in event.message
    assert find_fixture(tmp_path, AUTH, question, threshold=0.0).results, "who asks for the nearest gets it"


def test_a_word_that_is_nowhere_hides_nothing_that_is_alike(tmp_path: Path):
    answer = find_fixture(tmp_path, AUTH, "validation of a JWT credential")
    assert any("validate" in name.lower() for name in names(answer))


DOCUMENTED = '''
    #- first.py
    def renew_token(token):
        """Renew a token. It is looked up in the store, checked against the clock, and written anew with a later date.

        Nothing is done for one that is revoked.
        """
        return token
    #- second.ts
    /**
     * Renew the token of a session, of which the store
     * has one. It is looked up in the store, checked against the clock, and written anew with a later date.
     *
     * @param token which is meant
     */
    export function renewSessionToken(token: string) {
      return token;
    }
    #- third.rs
    /// Renew the token of a guest
    ///
    /// It is looked up in the store, checked against the clock, and written anew with a later date.
    #[inline]
    pub fn renew_guest_token(token: &str) -> &str {
        token
    }
    '''


def test_documentation_is_cut_to_its_first_sentence_unless_it_is_the_answer(tmp_path: Path):
    found = find_fixture(tmp_path, DOCUMENTED, "renew a token, nothing for one that is revoked", threshold=0.0)
    sources = {shot.file: shot.source for shot in found.snapshots}
    assert found.results[0].file == "first.py"
    assert "Nothing is done for one that is revoked." in sources["first.py"]
    assert sources["second.ts"].startswith(
        "/**\n * Renew the token of a session, of which the store\n * has one. ... */\n"
        "export function renewSessionToken("
    )
    assert sources["third.rs"].startswith("/// Renew the token of a guest ...\n#[inline]\npub fn renew_guest_token(")
    found = find_fixture(tmp_path, DOCUMENTED, "renew the token of a session", threshold=0.0)
    sources = {shot.file: shot.source for shot in found.snapshots}
    assert "@param token which is meant" in sources["second.ts"]
    assert '    """Renew a token. ..."""\n    return token\n' in sources["first.py"]
