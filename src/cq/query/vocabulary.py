"""The words of the query language: tokens, entities, fields, expansions, attributes, and where each applies."""

from __future__ import annotations

from typing import NamedTuple

from cq.language import all_languages, describe
from cq.model.shape import GUARDS, TYPE_KINDS

# entity -> the kinds of symbols it means. Those without kinds are not symbols of a file.
ENTITIES: dict[str, tuple[str, ...]] = {
    "function": ("function", "component", "procedure"),
    "method": ("method", "constructor", "destructor", "accessor", "operator"),
    "class": ("class", "struct", "object", "record", "union", "actor", "extension"),
    "interface": ("interface", "protocol", "annotation_type"),
    "type": ("type", "delegate"),
    "enum": ("enum",),
    "trait": ("trait",),
    "impl": ("impl",),
    "macro": ("macro",),
    "variable": ("variable", "constant", "field", "property", "enum_member", "event"),
    "module": (),
    "callsite": (),
    "import": (),
    "decorator": (),
}
CALLABLE = ("function", "method")
HOLDERS = ("function", "method", "class", "interface", "enum", "trait", "impl", "module")
DECORATED = ("function", "method", "class", "interface", "type", "enum", "trait", "impl", "variable")

# id -> the name ast-grep knows it by, "" where it has no grammar. Vue and the like hold documents of these.
LANGUAGES = {name: each.matcher for name, each in all_languages().items() if each.grammar and not each.is_holder}
# What people write, and what they mean by it: with a language its variants.
LANGUAGE_NAMES = {
    word: tuple(other for other in LANGUAGES if other == name or describe(other).variant_of == name)
    for name in LANGUAGES
    for word in (name, *describe(name).names)
}
DATA = frozenset(name for name, each in all_languages().items() if each.is_data)
LINKED = tuple(name for name, each in all_languages().items() if each.has_links)
SCOPED = tuple(name for name, each in all_languages().items() if "scopes" in each.offers)
# Entities that not every language with links has.
ENTITY_LANGUAGES = {
    entity: serving
    for entity in ENTITIES
    if (serving := tuple(name for name in LINKED if entity in describe(name).entities))
}

STRICTNESS = ("cst", "smart", "ast", "relaxed", "signature")
SCOPES = ("closure", "nested", "toplevel")
FIELDS = ("def", "loc", "callers", "callees", "imports", "decorators", "decorated_functions", "evidence")
EXPANSIONS = ("callers", "callees", "imports", "raises", "scope", "bytecode_surface")
GRAPH_EXPANSIONS = ("callers", "callees", "imports")  # those that a depth means something for

RELATIONS = ("inside", "has", "precedes", "follows")
COMPOSITES = ("all", "any", "not")
STRUCTURAL = frozenset({"pattern", *RELATIONS, *COMPOSITES, "nthChild"})
FILE_TOKENS = frozenset({"in", "exclude", "globs", "lang"})
OPTIONS = frozenset({"expand", "fields", "limit", "explain"})
SCOPE_TOKENS = frozenset({"scope", "captures", "has_cells"})
SHAPED = tuple(name for name, each in all_languages().items() if each.shapes)
_DECLARED = ("function", "method", "class", "interface", "type", "enum", "variable")


class TokenRule(NamedTuple):
    """What may stand behind a key.

    kind: name (exact or ~regex), pattern, patterns (a list), text, number, bool, choice, choices, metavariable.
    `entities` are those it can filter; `patterns` says whether it can filter the matches of a pattern.
    """

    kind: str
    example: str
    meaning: str
    choices: tuple[str, ...] = ()
    modifiers: tuple[str, ...] = ()
    entities: tuple[str, ...] = tuple(ENTITIES)
    patterns: bool = True


TOKENS: dict[str, TokenRule] = {
    "entity": TokenRule(
        "choices", "entity=function", "what to find, by kind; several by comma", choices=tuple(ENTITIES)
    ),
    "name": TokenRule(
        "name", "entity=method name=Session.get", "its name: exact, qualified from the right, or ~regex", patterns=False
    ),
    "pattern": TokenRule(
        "pattern", "pattern='getattr($X, $Y)'", "code with metavariables, or kind=NODE_KIND",
        modifiers=("context", "selector", "strictness"),
    ),
    "inside": TokenRule(
        "pattern", "entity=method inside='class Config'", "stands somewhere inside a match of this",
        modifiers=("stopBy", "field"),
    ),
    "has": TokenRule(
        "pattern", "entity=function has='await $X'", "holds a match of this, at any depth",
        modifiers=("stopBy", "field"),
    ),
    "precedes": TokenRule(
        "pattern", "pattern='$X = open($$$)' precedes='return $Y'", "a later sibling matches this",
        modifiers=("stopBy",),
    ),
    "follows": TokenRule(
        "pattern", "pattern='return $Y' follows='$X = open($$$)'", "an earlier sibling matches this",
        modifiers=("stopBy",),
    ),
    "all": TokenRule("patterns", "entity=function all='await $X','return $Y'", "every one of these patterns"),
    "any": TokenRule("patterns", "any='print($$$)','logger.$M($$$)'", "at least one of these patterns"),
    "not": TokenRule("pattern", "pattern='$F($$$)' not='print($$$)'", "not this pattern"),
    "nthChild": TokenRule(
        "position", "pattern='$X' nthChild=2 inside='f($$$)'", "its place among its named siblings: 2, 2n+1, -n+3",
        modifiers=("reverse", "ofRule"),
    ),
    "scope": TokenRule(
        "choice", "entity=function scope=closure", "how the function is bound to what is around it",
        choices=SCOPES, entities=CALLABLE,
    ),
    "captures": TokenRule(
        "name", "entity=function captures=request", "the function uses this name of a function around it",
        entities=CALLABLE,
    ),
    "has_cells": TokenRule(
        "bool", "entity=function has_cells=true", "functions inside it use its names", choices=("true", "false"),
        entities=CALLABLE,
    ),
    "decorated_by": TokenRule(
        "name", "entity=method decorated_by=property", "bears this decorator, annotation or attribute",
        entities=DECORATED,
    ),
    "decorator_count_min": TokenRule(
        "number", "entity=function decorator_count_min=2", "bears at least so many decorators",
        entities=DECORATED,
    ),
    "decorator_count_max": TokenRule(
        "number", "entity=function decorator_count_max=0", "bears at most so many decorators",
        entities=DECORATED,
    ),
    "used_by": TokenRule(
        "name", "entity=function used_by=main", "a definition of this name uses it, or may",
        entities=tuple(e for e in ENTITIES if e not in ("module", "callsite", "import", "decorator", "impl")),
        patterns=False,
    ),
    "defines": TokenRule(
        "name", "entity=class defines=save", "a definition of this name stands directly in it",
        entities=HOLDERS, patterns=False,
    ),
    "raises": TokenRule(
        "name", "entity=function raises=ValueError", "raises, throws or panics with this, itself",
        entities=("function", "method", "class", "module", "impl", "trait"), patterns=False,
    ),
    "exports": TokenRule(
        "name", "entity=module exports=main", "this name leaves the module", entities=("module",), patterns=False
    ),
    "param_type": TokenRule(
        "name", "entity=function param_type=User", "a parameter has this type, in part or behind an alias",
        entities=CALLABLE, patterns=False,
    ),
    "returns": TokenRule(
        "name", "entity=function returns=Observable", "what it returns has this type, in part or behind an alias",
        entities=CALLABLE, patterns=False,
    ),
    "guard": TokenRule(
        "choice", "entity=function guard=typeof", "narrows a type so in its own code", choices=GUARDS,
        entities=CALLABLE, patterns=False,
    ),
    "narrows": TokenRule(
        "name", "entity=function narrows=User", "narrows something to this type", entities=CALLABLE, patterns=False
    ),
    "passes": TokenRule(
        "name", "entity=function passes=isUser", "hands a function of this name to a call",
        entities=(*CALLABLE, "callsite"), patterns=False,
    ),
    "takes_callback": TokenRule(
        "bool", "entity=function takes_callback=true", "has a parameter that is a function", choices=("true", "false"),
        entities=CALLABLE, patterns=False,
    ),
    "type_kind": TokenRule(
        "choice", "entity=type type_kind=mapped", "what the body of the alias is", choices=TYPE_KINDS,
        entities=("type",), patterns=False,
    ),
    "value": TokenRule(
        "name", "entity=variable value=404", "members of enums with this value, and enums that have such a member",
        entities=("variable", "enum"), patterns=False,
    ),
    "ambient": TokenRule(
        "bool", "entity=function ambient=true", "is declared, not defined: `declare`, or in a .d.ts",
        choices=("true", "false"), entities=_DECLARED, patterns=False,
    ),
    "augments": TokenRule(
        "name", "entity=interface augments=global", "stands in a block that adds to this module, or to `global`",
        entities=_DECLARED, patterns=False,
    ),
    "project": TokenRule(
        "text", "entity=class project=packages/app", "only in files of this project: a tsconfig, its folder or package"
    ),
    "in": TokenRule("text", "entity=class in=src/", "only below this directory, or this file"),
    "exclude": TokenRule("text", "entity=class exclude='tests/**'", "not the files that match this glob"),
    "globs": TokenRule("texts", "entity=class globs='*.py','*.pyi'", "only files that match one of these globs"),
    "lang": TokenRule(
        "choices", "pattern='print($X)' lang=python", "only these languages; auto is all of them",
        choices=("auto", *LANGUAGE_NAMES),
    ),
    "expand": TokenRule(
        "expansions", "entity=function name=main expand=callees(depth=2)", "what is around each match",
        choices=EXPANSIONS,
    ),
    "fields": TokenRule("choices", "entity=function fields=def,callers", "the sections of the answer", choices=FIELDS),
    "limit": TokenRule("number", "entity=function limit=10", "at most so many matches"),
    "explain": TokenRule("bool", "entity=function explain", "how the answer was found", choices=("true", "false")),
}  # fmt: skip
SHAPE_TOKENS = frozenset(
    {
        "param_type",
        "returns",
        "guard",
        "narrows",
        "passes",
        "takes_callback",
        "type_kind",
        "value",
        "ambient",
        "augments",
    }
)
METAVARIABLE = TokenRule("metavariable", "pattern='getattr($X, $Y)' $Y=~'^_'", "the text of a capture: =~ !=~ = !=")

# Attributes for filter() and sort(): the entities that have them, and whether they are numbers.
ATTRIBUTES: dict[str, tuple[bool, tuple[str, ...] | None, str]] = {
    "name": (False, tuple(ENTITIES), "its name"),
    "path": (False, None, "the file"),
    "language": (False, None, "the language it is written in"),
    "line": (True, None, "its first line"),
    "lines": (True, None, "how many lines it has"),
    "bytes": (True, None, "how many bytes it has"),
    "calls": (True, (*HOLDERS,), "how many calls stand in it"),
    "callers": (True, (*CALLABLE, "class", "macro"), "how many calls mean it, or may mean it"),
    "methods": (True, ("class", "interface", "trait", "impl", "enum"), "how many methods stand directly in it"),
    "members": (True, HOLDERS, "how many definitions stand directly in it, parameters apart"),
    "parameters": (True, CALLABLE, "how many parameters it has"),
    "decorators": (True, DECORATED, "how many decorators it bears"),
    "arguments": (True, ("callsite",), "how many arguments it is called with"),
}
COMPARISONS = (">=", "<=", "!=~", "=~", "!=", "==", ">", "<", "=")
