"""What a mention is, what is said about it, and which are shown."""

from __future__ import annotations

import re

import msgspec
import pytest

from cq.answers.page import Page
from cq.model.answer import ImportDetails
from cq.model.errors import UsageError
from cq.questions.search.pattern import TimedOut, find_literals, make_pattern
from cq.questions.search.python import PythonName
from cq.questions.search.scan import PROFILES, Limits
from tests.support.search import check_search, rows, scan_fixture, search_fixture


def test_python_mentions_are_classed_by_position():
    check_search(
        """
        #- a.py
        x  # save in a comment
        #    ^^^^ comment
        from db import save
        #              ^^^^ from_import
        import save
        #      ^^^^ import
        class A:
            '''save it'''
        #      ^^^^ docstring
            def save(self, save=1) -> "save":
        #       ^^^^ definition
        #                  ^^^^ parameter
        #                              ^^^^ annotation
                self.save(save=2)
        #            ^^^^ callsite
        #                 ^^^^ keyword_argument
                x: save = save
        #          ^^^^ annotation
        #                 ^^^^ reference
                return f"save {save}"
        #                ^^^^ string
        #                      ^^^^ reference
            @save
        #    ^^^^ decorator
            def other(self): self.x.save = 3
        #                           ^^^^ assignment
        """,
        "save",
    )


def test_typescript_mentions_are_classed_by_position():
    check_search(
        """
        //- a.ts
        import { save } from "./save";
        //       ^^^^ from_import
        //                      ^^^^ from_import
        /** save, documented */
        //  ^^^^ docstring
        export function save(x: save): void {
        //              ^^^^ definition
        //                      ^^^^ type_use
          this.save(`save ${save}`); // save
        //     ^^^^ callsite
        //           ^^^^ string
        //                  ^^^^ reference
        //                              ^^^^ comment
        }
        """,
        "save",
    )


def test_rust_mentions_are_classed_by_position():
    check_search(
        """
        //- a.rs
        use crate::db::save;
        //             ^^^^ from_import
        /// save, documented
        //  ^^^^ docstring
        fn save(s: &str) -> save {
        // ^^^^ definition
        //                  ^^^^ type_use
            save("save") // save
        //  ^^^^ callsite
        //        ^^^^ string
        //                  ^^^^ comment
        }
        """,
        "save",
    )


def test_a_file_without_a_grammar_is_read_by_its_lines():
    check_search(
        """
        #- a.pl
        use save;
        #   ^^^^ import
        sub save {
        #   ^^^^ definition
          save(1);
        # ^^^^ callsite
          # save
        #   ^^^^ comment
        }
        """,
        "save",
    )


def test_code_in_a_document_has_its_own_language():
    found = scan_fixture("#- a.md\nText save.\n\n```python\nsave()\n```\n", "save")
    assert [(hit.language, hit.category) for hit in sorted(found.hits, key=lambda hit: hit.start)] == [
        ("markdown", "text"),
        ("python", "callsite"),
    ]


def test_case_is_smart():
    snippet = "#- a.py\nsave = Save = SAVE = 1\n"
    assert scan_fixture(snippet, "save").total == 3
    assert scan_fixture(snippet, "Save").total == 1
    assert scan_fixture(snippet, "Save", case="ignore").total == 3
    assert scan_fixture(snippet, "save", case="respect").total == 1


def test_an_identifier_is_matched_whole_and_otherwise_as_text():
    found = scan_fixture("#- a.py\nresave = 1\n", "save")
    assert (found.total, found.mode_chain) == (1, ["identifier", "literal"])
    assert [event.category for event in found.events] == ["mode_fallback"]
    found = scan_fixture("#- a.py\nresave = 1\n", "save", mode="identifier")
    assert (found.total, found.mode_chain) == (0, ["identifier"])


@pytest.mark.parametrize(
    ("text", "mode", "line", "expected"),
    [
        ("can't", "auto", "'can\\'t' # can't", ["can't"]),
        (r"s\w+e\b", "regex", "save sane saves", ["save", "sane"]),
        ("a.b", "auto", "x.a.b = a.bc", ["a.b"]),
        ("é", "auto", "é éa É", ["é", "É"]),
        ("k", "auto", "k = \u212a", ["k", "\u212a"]),
        ("$", "auto", "a$b", ["$"]),
        ("x*", "regex", "yxx", ["xx"]),
    ],
)
def test_what_matches(text: str, mode: str, line: str, expected: list[str]):
    pattern = make_pattern(text, mode, "smart", 10.0)
    found = [line.encode()[start:end].decode() for start, end in pattern.find(line.encode())]
    assert found == expected


@pytest.mark.parametrize(
    ("expression", "literals"),
    [
        ("handle_(request|response)", ("handle_",)),
        ("(foo|barre)x", ("barre", "foo")),
        (r"\bself\.\w+", ("self.",)),
        ("a*b+", ("b",)),
        ("[ab]", None),
        (r"\p{L}abc", None),
        ("(?x) a b c", None),
    ],
)
def test_literals_that_every_match_holds(expression: str, literals: tuple[str, ...] | None):
    assert find_literals(expression) == literals


def test_a_match_never_crosses_a_line():
    assert make_pattern(r"a\s+b", "regex", "smart", 10.0).find(b"a\nb a  b\r\nb") == [(4, 8)]
    assert make_pattern("b$", "regex", "smart", 10.0).find(b"b\r\nb") == [(0, 1), (3, 4)]


@pytest.mark.parametrize("expression", [r"x\d", r"[a-c]|d", "(a|b){2}", r"[^a]x", r"a.", r"\d\s", "^a|b$", r"\bab?"])
def test_a_text_at_once_or_line_by_line_is_the_same(expression: str):
    text = "x1 ab\r\nba x\nd\n\nab\rx2 é x3\nab".encode()
    lines = text.split(b"\n")
    starts = [sum(len(line) + 1 for line in lines[:at]) for at in range(len(lines))]
    compiled = re.compile(expression)
    expected: list[tuple[int, int]] = []
    for start, line in zip(starts, lines, strict=True):
        shown = line.removesuffix(b"\r").decode()
        for found in compiled.finditer(shown):
            first = start + len(shown[: found.start()].encode())
            expected += [(first, first + len(found[0].encode()))] if found[0] else []
    assert make_pattern(expression, "regex", "respect", 10.0).find(text) == expected


def test_a_hostile_expression_is_stopped_and_said(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(TimedOut):
        make_pattern(r"(a+)+$", "regex", "smart", 0.2).find(b"a" * 3000 + b"!")
    monkeypatch.setitem(PROFILES, "literal", Limits(10, 10, 0.2))
    found = scan_fixture("#- a.py\n" + "a" * 3000 + "!\n", r"(a+)+$", mode="regex", profile="literal")
    assert found.timed_out
    assert [event.category for event in found.events] == ["timeout"]


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("", {}, "empty"),
        ("  ", {}, "empty"),
        ("a\nb", {}, "one line"),
        ("foo(", {"mode": "regex"}, "character 5"),
        ("x" * 2000, {}, "2,000 characters"),
        ("x", {"kinds": ("definitoin",)}, "definition"),
        ("x", {"profile": "fast"}, "interactive"),
        ("x", {"page": Page(number=0)}, "--page 0"),
        ("x", {"context": 99}, "--context 99"),
        ("x", {"include": ("a{b,c}",)}, "braces"),
    ],
)
def test_what_cannot_be_asked_is_said(text: str, options: dict[str, object], words: str):
    with pytest.raises(UsageError, match=words) as raised:
        search_fixture("#- a.py\nx = 1\n", text, **options)
    assert "\n" not in str(raised.value)


_TREE = """
    #- src/db.py
    import os
    class Store:
        '''Holds rows.'''
        @classmethod
        async def save(cls, row, *, deep: bool = False) -> int:
            yield row
            await row.save(1, deep=True)
            raise KeyError("save")
    def save(row):
        return Store.save(row)
    #- src/app.py
    from db import save as keep, Store
    def main():
        keep(1)
        save = 2
        return Store().save(save)
    #- tests/test_db.py
    from db import save
    def test_save():
        assert save(1)
    #- docs/guide.txt
    call save(row) often
    """


def test_definitions_come_first_and_tests_after_sources():
    found = scan_fixture(_TREE, "save")
    kinds = [(hit.category, hit.file.role) for hit in found.hits]
    assert kinds[0] == ("definition", "src")
    assert kinds.index(("callsite", "src")) < kinds.index(("callsite", "test"))
    assert [hit.score for hit in found.hits] == sorted((hit.score for hit in found.hits), reverse=True)


def test_every_mention_is_in_one_section_and_counts_are_true():
    answer = search_fixture(_TREE, "save", page=Page(0, 0), include_strings=True)
    shown = rows(answer)
    assert len(shown) == answer.found == answer.summary["total"]
    assert len({finding.stable_id for finding, _ in shown}) == len(shown)
    assert sum(answer.summary["categories"].values()) == answer.found
    for section in answer.sections:
        own = [finding for finding in section.findings if finding in [f for f, _ in shown]]
        assert not own or len(own) == section.total, section.title


def test_sections_stand_in_the_documented_order_and_empty_ones_are_left_out():
    answer = search_fixture(_TREE, "save", include_strings=True)
    assert [section.title for section in answer.sections] == [
        "Code Overview", "Target Candidates", "Neighborhood Preview", "Definitions", "Top Contexts", "Imports",
        "Callsites", "Uses by Kind", "Non-Code", "Hot Files", "Suggested Follow-ups",
    ]  # fmt: skip
    assert "Imports" not in [section.title for section in search_fixture("#- a.py\nx = 1\n", "x").sections]


def test_what_is_not_code_is_counted_and_listed_only_when_asked_for():
    answer = search_fixture(_TREE, "save")
    section = next(section for section in answer.sections if section.title == "Non-Code")
    assert (section.collapsed, section.total) == (True, 2)
    assert not [finding for finding, _ in rows(answer) if finding.category in ("string", "text")]
    only = search_fixture('#- a.py\nx = "save"\n', "save")
    assert [finding.category for finding, _ in rows(only)] == ["string"]


def test_a_definition_is_enriched():
    answer = search_fixture(_TREE, "save")
    finding, details = next(
        (f, d) for f, d in rows(answer) if d.class_context == "Store" and f.category == "definition"
    )
    assert finding.message == "    async def save(cls, row, *, deep: bool = False) -> int:"
    assert details.signature == "async def save(cls, row, *, deep: bool = False) -> int"
    assert details.decorators == ("classmethod",)
    assert details.behaviour == ("async", "awaits", "generator", "raises", "yields")
    assert (details.node_kind, details.symbol_kind, details.scope) == ("function_definition", "method", "Store")
    assert details.agreement is not None
    assert details.agreement.status == "full"


def test_a_call_and_an_import_are_enriched():
    shown = rows(search_fixture(_TREE, "save"))
    call = next(d for f, d in shown if f.location and f.location.path == "src/app.py" and f.category == "callsite")
    assert (call.call_target, call.call_receiver, call.scope) == ("Store().save", "Store()", "main")
    imported = next(
        d for f, d in shown if f.location and f.location.path == "src/app.py" and f.category == "from_import"
    )
    assert imported.import_details == ImportDetails("db", "save", "keep")


@pytest.mark.parametrize(
    ("source", "binding", "names"),
    [
        ("def f(x):\n    return x\n", "parameter", ()),
        ("def f():\n    x = 1\n    return x\n", "local", ()),
        ("def f(x):\n    def g():\n        return x\n", "free", ()),
        ("x = 1\ndef f():\n    return x\n", "global", ("a.x",)),
        ("from m import y as x\ndef f():\n    return x\n", "imported", ("m.y",)),
        ("import x\ndef f():\n    return x\n", "imported", ("x",)),
        ("def f():\n    from m import x\n    return x\n", "imported", ("m.x",)),
    ],
)
def test_what_a_python_name_is_bound_to(source: str, binding: str, names: tuple[str, ...]):
    shown = rows(search_fixture(f"#- a.py\n{source}", "x", kinds=("reference",)))
    bound = shown[-1][1].binding
    assert bound is not None
    assert (bound.kind, bound.qualified_names) == (binding, names)


def test_same_named_definitions_stay_apart():
    answer = search_fixture(_TREE, "save")
    assert answer.insight is not None
    assert answer.insight.target is not None
    assert answer.insight.target.of == 2
    section = next(section for section in answer.sections if section.title == "Target Candidates")
    assert [finding.message.partition(":")[0] for finding in section.findings] == ["1 of 2", "2 of 2"]


def test_a_dotted_name_finds_the_definition_that_no_line_spells():
    found = rows(search_fixture(_TREE, "Store.save"))
    places = [f.location for f, _ in found if f.location and f.category == "definition"]
    assert [(place.path, place.start_line) for place in places] == [("src/db.py", 5)]
    assert {f.category for f, _ in found} == {"definition", "callsite"}


def test_a_payload_stays_within_its_bound_and_names_what_it_lost():
    arguments = ", ".join(f"argument_{number}={'x' * 70!r}" for number in range(8))
    bases = ", ".join(f"Base{number}_{'y' * 50}" for number in range(6))
    deep = "".join(f"{'    ' * at}def {'f' * 400}{at}():\n" for at in range(8))
    snippet = f"#- a.py\nclass save({bases}): ...\n{deep}{'    ' * 8}save({arguments})\n"
    answer = search_fixture(snippet, "save")
    for _, details in rows(answer):
        assert len(msgspec.json.encode(details)) <= 4096


def test_filters_hold():
    def paths(**options: object) -> set[str]:
        return {hit.file.path for hit in scan_fixture(_TREE, "save", **options).hits}

    assert paths(inside=("src",)) == {"src/db.py", "src/app.py"}
    assert paths(inside=("src/db.py",)) == {"src/db.py"}
    assert paths(include=("*.txt",)) == {"docs/guide.txt"}
    assert paths(exclude=("tests/", "docs/")) == {"src/db.py", "src/app.py"}
    assert paths(languages=("python",)) == {"src/db.py", "src/app.py", "tests/test_db.py"}
    answer = search_fixture(_TREE, "save", kinds=("definition",))
    assert ({finding.category for finding, _ in rows(answer)}, answer.found) == ({"definition"}, 2)
    everything = search_fixture(_TREE, "save")
    assert answer.insight is not None
    assert everything.insight is not None
    assert answer.insight.risk == everything.insight.risk  # what is listed does not change what is true


def test_what_a_language_leaves_out_is_counted():
    found = scan_fixture(_TREE, "save", languages=("python",))
    assert sum(partition.dropped_by_scope for partition in found.partitions.values()) == 1


def test_caps_count_on_and_leave_a_record():
    snippet = "#- a.py\n" + "x = 1\n" * 1200
    found = scan_fixture(snippet, "x")
    assert (found.total, len(found.hits)) == (1200, 1000)
    assert [(cut.cap, cut.limit, cut.observed, cut.omitted) for cut in found.truncated] == [
        ("matches_per_file", 1000, 1200, 200)
    ]


def test_pages_part_the_mentions():
    pages = [search_fixture(_TREE, "save", page=Page(4, 0, number)) for number in (1, 2, 3)]
    ids = [finding.stable_id for page in pages for finding, _ in rows(page)]
    everything = rows(search_fixture(_TREE, "save", page=Page(0, 0)))
    assert sorted(ids[: len(everything)]) == sorted(finding.stable_id for finding, _ in everything)[: len(ids)]
    with pytest.raises(UsageError, match="no page 9"):
        search_fixture(_TREE, "save", page=Page(4, 0, 9))


def test_a_budget_shortens_the_answer_and_every_page_can_be_reached():
    everything = {finding.stable_id for finding, _ in rows(search_fixture(_TREE, "save", page=Page(0, 0)))}
    first = search_fixture(_TREE, "save", page=Page(30, 200))
    assert len(rows(first)) == 2
    assert first.truncated[-1].cap == "budget"
    assert first.insight is not None
    assert first.insight.budget is not None
    assert first.insight.budget.used <= 200
    pages = range(1, first.insight.budget.pages + 1)
    seen = [f.stable_id for n in pages for f, _ in rows(search_fixture(_TREE, "save", page=Page(30, 200, n)))]
    assert sorted(seen) == sorted(everything)


def test_context_lines_are_the_source():
    snippet = "#- a.py\none = 1\n\ttwo = '[x]'\nthree = 3\n"
    details = rows(search_fixture(snippet, "two", context=1))[0][1]
    assert (details.context_line, details.context) == (1, ("one = 1", "\ttwo = '[x]'", "three = 3"))


def test_nothing_found_is_an_answer():
    answer = search_fixture(_TREE, "nowhere")
    assert (answer.found, answer.insight, answer.sections) == (0, None, ())
    assert answer.summary["mode_chain"] == ["identifier", "literal"]


def test_conflicts_of_the_sources_degrade_only_when_asked_for(monkeypatch: pytest.MonkeyPatch):
    agreed = search_fixture(_TREE, "save", crosscheck=True)
    assert all(details.agreement is None or not details.agreement.conflicts for _, details in rows(agreed))
    assert not [event for event in agreed.degraded if event.category == "crosscheck"]
    monkeypatch.setattr("cq.questions.search.enrich.read_name", lambda *_: PythonName("keyword_argument"))
    quiet, told = (search_fixture(_TREE, "save", crosscheck=on) for on in (False, True))
    details = next(details for _, details in rows(quiet) if details.agreement is not None)
    assert details.agreement is not None
    assert (details.agreement.status, details.degraded) == ("conflict", ())
    assert "crosscheck" in [event.category for event in told.degraded]
    assert any(details.degraded for _, details in rows(told))


def test_the_same_question_has_the_same_answer():
    first, second = (msgspec.json.encode(search_fixture(_TREE, "save").sections) for _ in range(2))
    assert first == second
