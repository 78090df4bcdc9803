"""Text → Query → Plan: what is understood, and that nothing else is let through."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cq import query
from cq.model.errors import QueryError
from cq.query import PlainWords, Query, parse
from cq.query.plan import Refined, Selection, Union, find_literals, make_plan
from cq.query.tree import And, Combine, Named, Not, Or, Stage, Token, make_and, make_or
from cq.query.vocabulary import ATTRIBUTES, ENTITIES

pytestmark = pytest.mark.slow

NAMED = {
    "old": "entity=function decorated_by=deprecated",
    "calls": "entity=callsite name=%{name} in=%{dir=src}",
    "both": "@old | entity=class",
    "loop": "@pool",
    "pool": "@loop name=x",
    "top": "entity=function | sort(lines desc) | limit 5",
    "broken": "entity=functon",
    "options": "entity=function limit=3",
}


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("entity=function  and  name=x", "entity=function name=x"),
        ("entity='function,method'", "entity=function,method"),
        ("any='a($$$),print($X)'", "any='a($$$)','print($X)'"),
        ("any='a' any='b'", "any=a,b"),
        ("any='a, b',", "any='a, b',"),
        ("""pattern='f("'"'"'")'""", """pattern='f("'"'"'")'"""),
        ("(entity=function) ((name=x))", "entity=function name=x"),
        ("entity=class | limit(3)", "entity=class | limit 3"),
        ("entity=class |sort(lines)|filter(lines==3)", "entity=class | sort(lines) | filter(lines = 3)"),
        ("entity=function explain=true", "entity=function explain"),
        ("@old & @a | @b", "(@old & @a) | @b"),
        ("@old | @a & @b", "@old | (@a & @b)"),
        ("@a - @b - @c", "(@a - @b) - @c"),
        ("inside.field=body inside='x' pattern='y'", "inside=x inside.field=body pattern=y"),
        ("name=~^a(b|c)$ entity=class", "name=~'^a(b|c)$' entity=class"),
        ("@calls(open, dir='a b')", "@calls(open, dir='a b')"),
    ],
)
def test_the_one_form_of_a_query(text: str, form: str):
    parsed = parse(text)
    assert str(parsed) == form
    assert parse(form) == parsed


@pytest.mark.parametrize("text", ["foo", "get_user name", "a + b", "f(x)", "*", "explain"])
def test_words_without_a_token_are_for_search(text: str):
    assert parse(text) == PlainWords(text)


def test_the_builder_makes_the_value_that_the_text_makes():
    built = (
        query.functions(name="~^get_")
        .inside("class $C", stop_by="end")
        .has("await $X")
        .where("decorated_by=property or not in=tests")
        .exclude("vendor/**")
        .lang("python", "rust")
        .expand("callers", depth=2)
        .fields("def", "callers")
        .explain()
    )
    text = (
        "entity=function name=~^get_ inside='class $C' inside.stopBy=end has='await $X'"
        " (decorated_by=property or not in=tests) exclude=vendor/** lang=python,rust"
        " expand=callers(depth=2) fields=def,callers explain"
    )
    assert built == parse(text)
    assert str(built) == text
    assert query.pattern("f($X)", strictness="ast").limit(3) == parse(
        "pattern='f($X)' pattern.strictness=ast | limit 3"
    )
    assert query.classes().filter("methods > 20").sort("methods", descending=True) == parse(
        "entity=class | filter(methods > 20) | sort(methods desc)"
    )
    assert (query.named("a") & query.named("b", "x", y="z")) - query.modules() == parse(
        "@a & @b(x, y=z) - entity=module"
    )
    assert query.named("a") | query.callsites("open") == parse("@a | entity=callsite name=open")
    assert query.methods().precedes("x").follows("y").within("src") == parse(
        "entity=method precedes=x follows=y in=src"
    )
    assert [str(q) for q in (query.imports("os"), query.decorators())] == ["entity=import name=os", "entity=decorator"]


def test_an_or_of_subjects_is_a_union():
    plan = make_plan("(entity=function or pattern='f($X)') in=src")
    assert isinstance(plan.root, Union)
    assert [str(part) for part in (plan.root.left, plan.root.right)] == [
        "entity=function in=src",
        "pattern='f($X)' in=src",
    ]


def test_named_queries_and_their_arguments():
    assert str(make_plan("@old name=x", NAMED).root) == "entity=function decorated_by=deprecated name=x"
    assert str(make_plan("@calls(open)", NAMED).root) == "entity=callsite name=open in=src"
    assert str(make_plan("@calls(dir=lib, name=open)", NAMED).root) == "entity=callsite name=open in=lib"
    root = make_plan("@both in=src", NAMED).root
    assert isinstance(root, Refined)
    assert isinstance(root.source, Union)
    assert isinstance(make_plan("@top & @old", NAMED).root, Union)
    selection = make_plan("entity=method not @old", {"old": "decorated_by=deprecated"}).root
    assert str(selection) == "entity=method not decorated_by=deprecated"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@odl", r"no query @odl.*did you mean 'old'"),
        ("@loop", r"holds itself: loop > pool > loop"),
        ("@calls", r"needs the argument 'name'"),
        ("@calls(a, b, c)", r"no place for the argument 'c'.*name, dir"),
        ("@old(x)", r"it takes none"),
        ("@broken", r"in @broken: entity: 'functon'"),
        ("@options", r"belong to the query that is asked"),
        ("entity=class not @both", r"a set of results, not a condition"),
        ("@both name=x", r"a set of results takes only"),
    ],
)
def test_named_queries_that_cannot_be_taken(text: str, message: str):
    with pytest.raises(QueryError, match=message):
        make_plan(text, NAMED)


def test_named_queries_cannot_multiply_without_end():
    named = {f"q{n}": f"@q{n + 1} | @q{n + 1}" for n in range(20)} | {"q20": "entity=class"}
    with pytest.raises(QueryError, match="more than 64"):
        make_plan("@q0", named)


def test_every_fault_is_said_at_its_place():
    text = "entity=functon name=x limit=0 nam=3 has='"
    with pytest.raises(QueryError) as error:
        make_plan(text)
    lines = error.value.details
    assert error.value.message == "4 problems in the query"
    carets = [line for line in lines if "^" in line.partition("(")[0] and line.strip().startswith("^")]
    assert [line.index("^") - 2 for line in carets] == [7, 28, 30, 40]
    assert "did you mean 'function'?" in carets[0]
    assert "did you mean 'name'?" in carets[2]
    assert lines[-1].startswith("  for example: cq q ")


@pytest.mark.parametrize(
    ("text", "literals"),
    [
        ("pattern='getattr($X, $Y)'", "getattr"),
        ("pattern='$X.save()' inside='class Model'", ("all", ("save", ("all", ("Model", "class"))))),
        ("any='foo($X)','bar($X)'", ("any", ("foo", "bar"))),
        ("any='foo($X)','$X'", None),
        ("pattern='foo($X)' not='bar($X)'", "foo"),
        ("pattern='foo($X)' pattern.strictness=signature", None),
        ("entity=function (has='await $X' or name=main)", None),
        ("entity=function (has='await $X' or has='yield $X')", ("any", ("await", "yield"))),
        ("pattern='kind=call'", None),
        ("pattern='$A + $B'", None),
        ("pattern='$A == $B'", "=="),
        ("pattern='f(a=-1, *b)'", None),
        ("entity=method raises=errors.Missing decorated_by=cache", ("all", ("Missing", "cache"))),
    ],
)
def test_words_to_look_up_first(text: str, literals: Any):
    root = make_plan(text).root
    assert isinstance(root, Selection)
    assert find_literals(root) == literals


# -- whatever is built reads back ----------------------------------------------------------------

_texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12).filter(
    lambda text: text.strip() == text
)
_codes = st.sampled_from(
    ["f($X)", "await $X", "a, b", "'x'", '"y"', "'\"", "class $C", "$$$A", "kind=call", "x=1", "~x", "(", "|"]
)
_stops = st.sampled_from(["end", "neighbor", "def $F"])
_kinds = st.lists(st.sampled_from(list(ENTITIES)), min_size=1, max_size=2, unique=True)
_globs = st.lists(st.sampled_from(["*.py", "a/**", "x y"]), min_size=1, max_size=2, unique=True)
_arguments = st.lists(st.tuples(st.sampled_from(["", "k"]), _texts), max_size=2)
_leaves = st.one_of(
    st.builds(lambda v: Token("name", v), _texts.filter(lambda t: not set("\\*?[") & set(t))),
    st.builds(lambda v: Token("name", v, "=~"), st.sampled_from(["^get_", "a|b", "x y", "\\.", "[']", "\"'"])),
    st.builds(Token, st.sampled_from(["inside", "has", "not", "pattern"]), _codes),
    st.builds(lambda v, s: Token("has", v, modifiers=(("field", "body"), ("stopBy", s))), _codes, _stops),
    st.builds(lambda v: Token("any", tuple(v)), st.lists(_codes, min_size=1, max_size=3, unique=True)),
    st.builds(lambda v: Token("entity", tuple(v)), _kinds),
    st.builds(lambda v: Token("$X", v, "!=~"), st.sampled_from(["a", "b c"])),
    st.builds(lambda v: Token("globs", tuple(v)), _globs),
    st.builds(lambda n, a: Named(n, tuple(a)), st.sampled_from(["a", "b-c"]), _arguments),
)
_expressions = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(make_and),
        st.lists(inner, min_size=2, max_size=3).map(make_or),
        inner.map(Not),
    ),
    max_leaves=8,
)
_comparisons = st.builds(
    lambda name, op, value: Token(name, str(value), op),
    st.sampled_from([name for name, attribute in ATTRIBUTES.items() if attribute[0]]),
    st.sampled_from([">", "<", ">=", "<=", "=", "!="]),
    st.integers(0, 99),
)
_conditions = st.recursive(
    _comparisons,
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3, unique=True).map(make_and),
        st.lists(inner, min_size=2, max_size=2).map(make_or),
        inner.map(Not),
    ),
    max_leaves=4,
)
_stages = st.one_of(
    st.builds(lambda c: Stage("filter", condition=c), _conditions),
    st.builds(lambda a, d: Stage("sort", attribute=a, descending=d), st.sampled_from(list(ATTRIBUTES)), st.booleans()),
    st.builds(lambda n: Stage("limit", count=n), st.integers(1, 999)),
)
_queries = st.recursive(
    st.builds(lambda e, s: Query(e, tuple(s)), _expressions, st.lists(_stages, max_size=2)),
    lambda inner: st.builds(
        lambda op, one, other: Query(Combine(op, one, other)), st.sampled_from("&|-"), inner, inner
    ),
    max_leaves=3,
)
_SCRAPS = [
    "entity=",
    "function",
    "name=~",
    "(",
    ")",
    "|",
    "&",
    "-",
    "@a",
    "'",
    '"',
    "$X=~",
    "not",
    "or",
    "and",
    "has='await",
    "$X'",
    "filter(calls>1)",
    "sort(",
    ",",
    "limit",
    "3",
    "in=",
    "lang=py",
    "explain",
    "inside.stopBy=",
]


@given(_queries)
@settings(max_examples=300, deadline=None)
def test_the_text_of_a_query_parses_back_to_it(built: Query):
    assert parse(str(built)) == built


@given(st.text(max_size=60) | st.lists(st.sampled_from(_SCRAPS), max_size=8).map(" ".join))
@settings(max_examples=400, deadline=None)
def test_any_text_is_a_query_or_words_or_one_error(text: str):
    with suppress(QueryError):
        parsed = parse(text)
        if isinstance(parsed, Query):
            assert parse(str(parsed)) == parsed
            make_plan(text, NAMED)


def test_groups_inside_groups_are_flat():
    assert parse("entity=class (name=a (in=x in=y))") == Query(
        And((Token("entity", ("class",)), Token("name", "a"), Token("in", "x"), Token("in", "y")))
    )
    assert parse("entity=class (name=a or (name=b or name=c))") == Query(
        And((Token("entity", ("class",)), Or((Token("name", "a"), Token("name", "b"), Token("name", "c")))))
    )
