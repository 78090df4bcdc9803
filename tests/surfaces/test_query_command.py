"""`cq q` as people run it: formats, exit codes, and a hundred queries that are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from cq.model.answer import Answer
from cq.query.vocabulary import METAVARIABLE, TOKENS
from cq.surfaces import cli

SOURCE = """\
class Shop:
    @property
    def price(self):
        return getattr(self, "_price")

async def buy(shop, count=[1, "[bold]x[/]"]):
    await shop.pay(getattr(shop, "price"))
    return total(count)

def total(count):
    if not count:
        raise ValueError("no count")
    return len(count)
"""

MALFORMED = """\
entity=
entity=functon
entity=function,
entity=function,klass
entity=Function
entity='function
entity=function entity=class
name=foo
name=~^a
entity=function nmae=foo
entity=function name=~(
entity=function name=~[
entity=function name=~(a+)+$
entity=function name=~(a|b)*c
entity=function name=a name=b
entity=function name!=a
entity=function name!=~a
entity=function name=
pattern=
pattern=''
pattern='def ('
pattern='f($X'
pattern='f($X)' name=f
pattern='f($X)' $Y=~a
pattern='f($X)' $x=~a
pattern='f($X)' $X=~(
pattern='f($X)' $$X=~a
pattern='f($_X)' $_X=a
pattern='f($X, $$$X)'
pattern='('
pattern='a b c'
pattern='$$$'
pattern='f($X)' pattern.strictness=strict
pattern='f($X)' pattern.context='g($X)' pattern.selector=call
pattern='f($X)' pattern.context='f($X)'
pattern.selector=call
pattern='f($X)' pattern.foo=bar
pattern='kind=call' pattern.strictness=ast
pattern='kind=nothing'
entity=function has=
entity=function has.stopBy=end
entity=function has='x' has.stopBy=foo
entity=function name=Stream*
entity=function decorated_by=functools.*
entity=class in=src/*
entity=function has='x' has.stopBy=end has.stopBy=neighbor
entity=function has='x' has.field='a b'
entity=function precedes='x' precedes.field=body
entity=function stopBy=end
entity=function inside_stop_by=end
entity=function all=
entity=function all='a,,b'
entity=function not=
not='pass'
not entity=class
entity=function not
entity=function not not
entity=function or
or entity=function
entity=function and
and entity=function
entity=function or or entity=class
entity=function nthChild=0
entity=function nthChild=odd
entity=function nthChild=1 nthChild.reverse=yes
entity=module inside='class $C'
entity=import decorated_by=x
entity=callsite scope=closure
entity=function scope=global
entity=function scope=closure scope=toplevel
entity=function scope=toplevel captures=x
entity=function has_cells=maybe
entity=function decorator_count_min=two
entity=function decorator_count_min=3 decorator_count_max=2
entity=class exports=x
entity=function in=/etc
entity=function in=../x
entity=function in=src in=lib
entity=function exclude=
entity=function lang=klingon
entity=function lang=python lang=rust
entity=trait lang=python
entity=function scope=closure lang=go
entity=function expand=nothing
entity=function expand=callers(depth=0)
entity=function expand=callers(depth=99)
entity=function expand=callers(2)
entity=function expand=scope(depth=2)
entity=class expand=bytecode_surface
entity=module expand=callers
entity=function fields=deff
entity=function fields=decorated_functions
entity=function limit=0
entity=function limit=-1
entity=function limit=ten
entity=function limit=1 limit=2
entity=function explain=maybe
entity=function (limit=3 or name=x)
entity=function (name=x
entity=function name=x)
entity=function ()
entity=function | filter
entity=function | filter(
entity=function | filter()
entity=function | filter(calls)
entity=function | filter(calls > many)
entity=function | filter(nothing > 1)
entity=function | filter(name > 1)
entity=function | filter(name =~ [)
entity=function | filter(methods > 1)
entity=function | sort(nothing)
entity=function | sort
entity=function | limit 0
entity=function | limit
entity=function | shuffle
entity=function | limit 1 name=x
@nothing
@
@a(
entity=function &
& entity=function
entity=function &&  entity=class
@a name=x or
expand=callers
foo name=bar
entity=function foo
entity=function 'foo'
entity=function used_by=
entity=callsite used_by=main
entity=function "
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("shop")
    (root / "shop.py").write_text(SOURCE)
    return root


def run(capsys: pytest.CaptureFixture[str], root: Path, *args: str) -> tuple[int, str, str]:
    status = cli.main(["q", "--root", str(root), "--index-dir", str(root / ".index"), *args])
    out, err = capsys.readouterr()
    return status, out, err


def test_a_page_shows_text_captures_and_scope(capsys: pytest.CaptureFixture[str], shop: Path):
    status, out, err = run(capsys, shop, "pattern='getattr($X, $Y)'")
    assert (status, err) == (0, "")
    assert out == snapshot("""\
# 2 matches in 1 file

```text
shop.py:4:16 call in Shop.price
    getattr(self, "_price")
    $X = self
    $Y = "_price"
shop.py:7:20 call in buy
    getattr(shop, "price")
    $X = shop
    $Y = "price"
```
""")


def test_a_definition_is_shown_up_to_its_body(capsys: pytest.CaptureFixture[str], shop: Path):
    assert run(capsys, shop, "entity=function name=buy expand=callees")[1] == snapshot("""\
# 1 match in 1 file

```text
shop.py:6:1 function buy
    async def buy(shop, count=[1, "[bold]x[/]"]):
```

## callees: 1 (1 certain)

```text
shop.py:8:12 buy → total
```
""")


def test_help_shows_every_key(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["q", "--help"]) == 0
    shown = capsys.readouterr().out.partition("every key, with an example:\n")[2]
    assert [line.partition("  ")[0] for line in map(str.strip, shown.splitlines())] == [
        rule.example for rule in (*TOKENS.values(), METAVARIABLE)
    ]


def test_formats(capsys: pytest.CaptureFixture[str], shop: Path):
    query = "entity=function expand=callees"
    plain = run(capsys, shop, query, "--format", "plain")[1]
    assert plain.splitlines() == [
        'shop.py:6:1: async def buy(shop, count=[1, "[bold]x[/]"]):',
        "shop.py:10:1: def total(count):",
    ]
    answer = msgspec.json.decode(run(capsys, shop, query, "--format", "json")[1], type=Answer)
    assert (answer.command, answer.found) == ("q", 2)
    rows: list[Any] = [
        msgspec.json.decode(line) for line in run(capsys, shop, query, "--format", "jsonl")[1].splitlines()
    ]
    assert [row["section"] for row in rows] == ["matches", "matches", "expand.callees", "languages"]
    assert rows[0]["finding"]["details"]["kind"] == "cq.query.match.v1"
    assert run(capsys, shop, query, "--format", "mermaid")[1] == snapshot("""\
flowchart LR
  n0["buy"]
  n1["total"]
  n0 --> n1
""")
    assert run(capsys, shop, query, "--format", "dot")[1] == snapshot("""\
digraph cq {
  rankdir=LR;
  n0 [label="buy", shape=box];
  n1 [label="total", shape=box];
  n0 -> n1;
}
""")
    assert run(capsys, shop, "entity=function", "--format", "dot")[0] == 2


def test_exit_codes_and_pages(capsys: pytest.CaptureFixture[str], shop: Path):
    assert run(capsys, shop, "entity=function name=nothing")[0] == 1
    status, out, _ = run(capsys, shop, "entity=function,method", "--limit", "1", "--page", "2")
    assert status == 0
    assert "1 of 3 shown, page 2 of 3; `--page 3` has more" in out
    assert "3 of 3" not in run(capsys, shop, "entity=function,method", "--all")[1]
    for wrong in (("--limit", "0"), ("--page", "x"), ("--budget", "-1"), ("--format", "svg"), ("--lang", "klingon")):
        assert run(capsys, shop, "entity=function", *wrong)[0] == 2
    assert run(capsys, shop, "entity=function", "--lang", "rust")[0] == 1
    assert run(capsys, shop, "entity=function", "--exclude", "*.py")[0] == 1


@pytest.mark.parametrize("query", MALFORMED.splitlines())
def test_a_query_that_is_none(capsys: pytest.CaptureFixture[str], shop: Path, query: str):
    check_refusal(run(capsys, shop, query), query)


_KEYS = st.from_regex(r"[a-z_]{1,12}(\.[a-zA-Z]{1,8})?", fullmatch=True).filter(
    lambda key: key.partition(".")[0] not in TOKENS
)
_VALUES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=20)


@given(st.sampled_from(["entity=function", "pattern='f($X)'", "@a &", "(entity=class or entity=enum)"]), _KEYS, _VALUES)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_token_that_does_not_exist(capsys: pytest.CaptureFixture[str], shop: Path, query: str, key: str, value: str):
    check_refusal(run(capsys, shop, f"{query} {key}={value}"), query)


@given(st.lists(st.sampled_from(" ".join(MALFORMED.splitlines()).split(" ")), min_size=2, max_size=6).map(" ".join))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_scraps_never_end_in_a_traceback(capsys: pytest.CaptureFixture[str], shop: Path, query: str):
    status, out, err = run(capsys, shop, query)
    assert "internal" not in err
    assert (status == 2) == (out == "") == (err != "")


def test_there_are_a_hundred_of_them():
    assert len(set(MALFORMED.splitlines())) >= 100


def test_faults_are_shown_under_carets(capsys: pytest.CaptureFixture[str], shop: Path):
    assert run(capsys, shop, "entity=functon has='await $X' lmit=3")[2] == snapshot("""\
cq: query: 2 problems in the query
  entity=functon has='await $X' lmit=3
         ^^^^^^^ entity: 'functon' is not one of its values (did you mean 'function'?)
  entity=functon has='await $X' lmit=3
                                ^^^^ unknown token 'lmit' (did you mean 'limit'?)
  for example: cq q "entity=function"
""")


def check_refusal(outcome: tuple[int, str, str], query: str) -> None:
    status, out, err = outcome
    assert (status, out) == (2, ""), query
    assert err.startswith(("cq: query: ", "cq: usage: "))
    assert err.count("cq: ") == 1
    assert "Traceback" not in err
