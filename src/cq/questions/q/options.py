"""The options of `cq q`."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from cq.answers.options import Option, Options
from cq.query.vocabulary import METAVARIABLE, TOKENS, TokenRule

_NUMBER = Meta(ge=1, le=1_000_000)


def _explain(key: str, rule: TokenRule) -> str:
    more = " ".join(f".{name}=" for name in rule.modifiers)
    return rule.meaning + (f"; {key}{more}" if more else "")


_RULES = [*TOKENS.items(), ("$X", METAVARIABLE)]
_WIDTH = max(len(rule.example) for _, rule in _RULES)
_EXAMPLES = "\n".join(
    [
        """\
  cq q 'entity=function name=~^get_ in=src/ has="await $X"'
  cq q 'pattern="getattr($X, $Y)" inside="class $C" $Y=~^_'
  cq q 'entity=method decorated_by=property fields=def,callers'
  cq q 'entity=class | filter(methods > 20) | sort(methods desc) | limit 5'
  cq q 'entity=function name=main expand=callees(depth=2)' --format mermaid
  cq q '@deprecated - @tests'                            queries of cq.toml

every key, with an example:""",
        *(f"  {rule.example:<{_WIDTH}}  {_explain(key, rule)}" for key, rule in _RULES),
    ]
)


class QueryOptions(Options, frozen=True):
    """`query` is the text of a query, or words to search for. `include`, `exclude` and `languages` are globs=, exclude=
    and lang= beside it. A page holds at most `limit` matches (0: as fit 100 lines) and about `budget` tokens (0: any
    number); `everything` is one page."""

    examples: ClassVar[str] = _EXAMPLES

    query: Annotated[
        str,
        Option("tokens: entity= name= pattern= inside= has= …; see docs/query.md", metavar="QUERY", argument=True),
    ]
    include: Annotated[tuple[str, ...], Option("only these files: globs=", metavar="GLOB", group="files")] = ()
    exclude: Annotated[tuple[str, ...], Option("not these files: exclude=", metavar="GLOB", group="files")] = ()
    languages: Annotated[tuple[str, ...], Option("only this language: lang=", "lang", "NAME", group="files")] = ()
    limit: Annotated[int, _NUMBER, Option("N matches on a page (default: 100 lines)", metavar="N", group="answer")] = 0
    page: Annotated[int, _NUMBER, Option("the Nth page", metavar="N", group="answer")] = 1
    budget: Annotated[
        int, Meta(ge=0), Option("a page of about so many tokens; 0 is any", metavar="TOKENS", group="answer")
    ] = 8000
    everything: Annotated[bool, Option("everything on one page", "all", group="answer")] = False
    measure: str = "text"  # what the budget counts
