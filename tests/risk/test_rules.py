"""Rules are data: each finds its own examples, and what cannot be read is told with its line."""

from __future__ import annotations

import pytest

from cq.model.errors import ConfigError
from cq.questions.risk import check_rule
from cq.risk.rules import SinkRule, load_files, load_rules, read_rules

LANGUAGES = sorted({file.language for file in load_files()})
RULES = [(rule, language) for language in LANGUAGES for rule in load_rules(language).by_id.values()]


@pytest.mark.parametrize(("rule", "language"), RULES, ids=[rule.id for rule, _ in RULES])
def test_a_rule_finds_its_own_examples(rule, language):
    assert check_rule(rule, language) == ""


def test_ids_are_told_apart_and_sinks_say_what_to_do():
    rules = [
        rule
        for file in load_files()
        for rule in (*file.source, *file.sink, *file.sanitizer, *file.propagator, *file.guard, *file.entry, *file.mark)
    ]
    ids = [rule.id for rule in rules]
    assert len(set(ids)) == len(ids)
    for rule in rules:
        if isinstance(rule, SinkRule):
            assert rule.fix
            assert rule.bad
            assert rule.cwe > 0


_SINK = """language = "python"

[[sink]]
id = "a"
kind = "sql"
cwe = 89
"""


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        (_SINK + "argz = [0]", ":7: there is no key 'argz'", "did you mean 'args'?"),
        (_SINK.replace('"sql"', '"sqll"'), ":5: kind cannot be 'sqll'", "did you mean 'sql'?"),
        (_SINK + 'severity = "hight"', ":7: severity cannot be 'hight'", "did you mean 'high'?"),
        (_SINK + _SINK.partition("\n\n")[2], ":8: there are two rules 'a'", "id of its own"),
        ("[[sinks]]", ":1: there is no key 'sinks'", "did you mean 'sink'?"),
        ("a = = 1", "is no TOML", ""),
        (_SINK + "when = [{ arg = 0, matches = '(' }]", ":7: '(' is no pattern", ""),
        (_SINK.replace("89", '"x"'), ":3: Expected `int`, got `str`", ""),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(text: str, said: str, hint: str):
    with pytest.raises(ConfigError) as caught:
        read_rules(text, "own.toml")
    assert f"own.toml{said}" in str(caught.value) or said in str(caught.value)
    assert hint in str(caught.value)
