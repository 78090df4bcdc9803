"""What a document's code does with values: the input of resolution. Pure syntax, made by `syntax`, read by `graph`.

A `Value` is an expression, reduced to what can lead to a definition:

    None                     nothing that could be followed
    "a.b.c"                  a name, with the attributes read off it
    "'text"  "#3"  "=dict"   a string, an integer, a literal of the language's own type of that name
    17                       the result of the call that ends at byte 17: ends are unique among a document's calls
    [".", v, "b.c"]          attributes of what is no name
    ["[]", v, key, …]        an element; in a type, its parameters
    ["list", v, …] ["tuple", v, …] ["set", v, …]   containers as written
    ["dict", key, v, key, v, …]                    dictionaries and object literals; key None: `**v`
    ["each", "list", v]      a container of unknown size whose elements are v
    ["|", v, v, …]           one of these
    ["slice", v, "#1", "#-1"]  some elements; None for no bound, "?" for one that nobody knows
    ["seen", offset, v]      v, seen from that place
    ["at", scope, offset, v]  v, seen from a place of another scope
    ["gives", v]             what calling v gives
    ["iter", v] ["enter", v] ["await", v] ["made", v]   an element, what `with` binds, what is awaited, an instance of v
    ["caught", v]            an instance of v or of a class below it
    ["op", "+", v, w]        an operator
    ["*", v]                 spread arguments
    ["sent"]                 what `yield` gives in a generator
    ["lambda", start]        the anonymous function that starts there; its Definition has the same start
    ["import", level, module, name]   what an import binds; name "*" is the module itself
    ["param", start, n]      the n-th parameter of the Definition that starts there
    ["def", start]           the Definition that starts there
"""

from __future__ import annotations

from typing import Any

import msgspec

Value = Any
LAMBDA = "<lambda>"  # how a function without a name is called
_NOTHING = msgspec.Raw()


class Parameter(msgspec.Struct, frozen=True, gc=False, array_like=True):
    name: str
    kind: str = ""  # "" either way, "/" by position only, "k" by keyword only, "*" the rest, "**" the rest by keyword
    type: Value = None
    default: Value = None
    optional: bool = False


class Definition(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A function, a class, or a lambda (`symbol` -1, unless it is bound to a name)."""

    kind: str  # function class, or what the language adds: interface trait impl enum
    name: str
    symbol: int  # index into FileFacts.symbols
    scope: int  # the definition whose code holds it: a symbol, -1 at root level
    start: int  # where the definition itself begins, behind decorators: its name inside values
    parameters: tuple[Parameter, ...] = ()
    type: Value = None  # of what it returns
    returns: tuple[Value, ...] = ()
    yields: tuple[Value, ...] = ()
    bases: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()  # of the class statement: metaclass=…
    decorators: tuple[Value, ...] = ()
    modifiers: tuple[str, ...] = ()  # async generator static class abstract accessor …
    within: str = ""  # the object that holds it, where that is no definition: `api.nested`
    # Of a function without a name, which opens no scope (`symbol` -1): its symbol, where its code begins and ends.
    anonymous: tuple[int, ...] = ()


class Bind(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A name gets a value. `end` is where the block of the binding ends: inside, it hides what was bound before."""

    scope: int
    name: str
    value: Value
    start: int
    end: int = -1  # -1: the end of its scope; always so for the only binding of a name
    type: Value = None
    inner: bool = False  # known from start to end only: variables of comprehensions, parameters of lambdas


class Store(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """`base.name = value`; with `name` None `base[key] = value`. From `since` to `end`, where its block ends, it hides
    what was stored there before."""

    scope: int
    start: int
    base: Value
    name: str | None
    value: Value
    key: Value = None
    type: Value = None
    since: int = -1  # -1: that is not known
    end: int = 0  # as of a Bind


class Site(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A call: the entry of the same number in FileFacts.calls, with values for texts."""

    scope: int
    start: int
    end: int
    callee: Value
    args: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()
    kind: str = "call"
    name: str = ""  # the last name of the callee


def find_updates(site: Site) -> list[tuple[Value, Value]]:
    """Keys and values that `table.update({"a": f}, b=g)` stores, where all of them stand there."""
    base, _, name = site.callee.rpartition(".") if type(site.callee) is str else ("", "", "")
    given = site.args[0] if site.args else ["dict"]
    if name != "update" or not base or "." in base or type(given) is not list or given[0] != "dict":
        return []
    pairs = [*zip(given[1::2], given[2::2], strict=True), *((f"'{key}", value) for key, value in site.keywords)]
    return pairs if all(type(key) is str and key[0] in "'#" and key != "'**" for key, _ in pairs) else []


class Code(msgspec.Struct, frozen=True, gc=False, array_like=True):
    language: str
    definitions: tuple[Definition, ...] = ()  # by start
    binds: tuple[Bind, ...] = ()  # by start
    stores: tuple[Store, ...] = ()
    sites: tuple[Site, ...] = ()
    raises: tuple[tuple[int, int, Value], ...] = ()  # scope, start, what is raised
    # Scope, start, operation and receiver of what runs a method without a call: with iter + < [] …; of `a += v` both,
    # as ["augment", a, v].
    runs: tuple[tuple[int, int, str, Value], ...] = ()
    loops: tuple[tuple[int, int], ...] = ()  # spans in which what stands below may have run before
    public: tuple[str, ...] | None = None  # what `import *` takes, where the document says so


class NamedDefinition(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Of a Definition what names it; the rest is not decoded."""

    kind: str
    name: str
    symbol: int
    scope: int
    start: int
    parameters: msgspec.Raw = _NOTHING
    type: msgspec.Raw = _NOTHING
    returns: msgspec.Raw = _NOTHING
    yields: msgspec.Raw = _NOTHING
    bases: msgspec.Raw = _NOTHING
    keywords: msgspec.Raw = _NOTHING
    decorators: msgspec.Raw = _NOTHING
    modifiers: msgspec.Raw = _NOTHING
    within: str = ""
    anonymous: tuple[int, ...] = ()


class Outline(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Of a Code its definitions; decoding it costs a tenth."""

    language: str
    definitions: tuple[NamedDefinition, ...] = ()


def qualify(code: Code | Outline) -> dict[int, str]:
    """By symbol: dotted names that stay when lines move; the second of a name is `f#2`."""
    names: dict[int, str] = {}
    prefixes: dict[int, str] = {}  # members of an impl are named as those of the type itself
    seen: dict[str, int] = {}
    for definition in code.definitions:
        symbol = definition.anonymous[0] if definition.anonymous else definition.symbol
        if symbol >= 0:
            holder = prefixes.get(definition.scope) or names.get(definition.scope)
            name = ".".join(part for part in (holder, definition.within, definition.name or LAMBDA) if part)
            if definition.kind == "impl":
                prefixes[symbol] = name
            count = seen[name] = seen.get(name, 0) + 1
            names[symbol] = name if count == 1 else f"{name}#{count}"
    return names
