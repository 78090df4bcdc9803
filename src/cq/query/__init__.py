"""Questions about code as values: text → Query → Plan, and the functions that build one. Pure; errors have a place.

    from cq import query

    query.functions(name="~^get_").inside("class $C").where("decorated_by=property or has='await $X'")
    query.pattern("getattr($X, $Y)").where("$Y=~'^_'").limit(10)

`str()` of any of them is the text that `cq q` takes, and parses back to the same value.
"""

from __future__ import annotations

from cq.query.parse import PlainWords, parse
from cq.query.tree import Named, Query, Token

__all__ = [
    "PlainWords",
    "Query",
    "callsites",
    "classes",
    "decorators",
    "entities",
    "functions",
    "imports",
    "methods",
    "modules",
    "named",
    "parse",
    "pattern",
]


def functions(name: str = "") -> Query:
    return entities("function", name=name)


def methods(name: str = "") -> Query:
    return entities("method", name=name)


def classes(name: str = "") -> Query:
    return entities("class", name=name)


def modules(name: str = "") -> Query:
    return entities("module", name=name)


def callsites(name: str = "") -> Query:
    return entities("callsite", name=name)


def imports(name: str = "") -> Query:
    return entities("import", name=name)


def decorators(name: str = "") -> Query:
    return entities("decorator", name=name)


def entities(*kinds: str, name: str = "") -> Query:
    """Definitions of these kinds; `name` as in the language: exact, qualified, or `~regex`."""
    query = Query(Token("entity", kinds))
    if not name:
        return query
    op = "=~" if name.startswith("~") else "="
    return query.with_tokens(Token("name", name.removeprefix("~"), op))


def pattern(code: str, *, context: str = "", selector: str = "", strictness: str = "") -> Query:
    given = (("context", context), ("selector", selector), ("strictness", strictness))
    return Query(Token("pattern", code, modifiers=tuple((name, value) for name, value in given if value)))


def named(name: str, *args: str, **more: str) -> Query:
    """A query of `[queries]` in cq.toml."""
    return Query(Named(name, (*(("", value) for value in args), *more.items())))
