"""How frameworks let the outside in: `known/routes.toml` of a language's folder, one framework after the other."""

from __future__ import annotations

from functools import cache
from typing import Literal

import msgspec

from cq.language import describe, load_known

# http: a request; websocket; cli: a command; task: a queue hands it over; schedule: the clock; signal: an event inside
# the program; graphql: a field of a query; ffi: another language calls it.
RouteKind = Literal["http", "websocket", "cli", "task", "schedule", "signal", "graphql", "ffi"]
ROUTE_KINDS: tuple[RouteKind, ...] = ("http", "websocket", "graphql", "cli", "task", "schedule", "signal", "ffi")
At = int | str  # an argument: by its position, -1 for the last one, or by its keyword


class CallRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call or a decorator that lets something in."""

    names: tuple[str, ...]  # the last name of the callee
    kind: RouteKind = "http"
    of: tuple[str, ...] = ()  # what the callee must come from, as far as given: a module, or a class in it
    path: tuple[At, ...] = (0,)
    method: str = ""  # of a request; "name": how the callee is called; "": see `methods`
    methods: tuple[At, ...] = ()  # the argument that names them
    usual: tuple[str, ...] = ()  # methods where nothing names any
    handler: tuple[At, ...] = ()  # none: what is decorated
    chained: tuple[str, ...] = ()  # the handler is what calls of these names on the result are given
    holds: tuple[str, ...] = ()  # the handlers are arguments of calls of these names, which name the methods
    named_by: Literal["", "name", "dashes"] = ""  # the path where none is given: how the handler is called
    is_loose: bool = False  # also on a receiver that nobody knows, where the path and the handler look like one
    verbs: bool = True  # a class that is the handler handles each method with the function called so


class RouterRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call that makes what routes are put on. `within`: it is called on another such, whose prefix comes first."""

    names: tuple[str, ...]
    prefix: tuple[At, ...] = ()
    within: bool = False


class MountRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call that puts one router below another. `replaces`: its prefix takes the place of the router's own."""

    names: tuple[str, ...]
    child: tuple[At, ...] = (0,)
    prefix: tuple[At, ...] = ()
    replaces: bool = False


class MarkRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Annotations, attributes and decorators: those of a class that say the prefix of its methods, and by the name of
    those of a method the methods of requests, "*" for those that the annotation itself lists."""

    marks: dict[str, str]
    kind: RouteKind = "http"
    classes: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()


class FileRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Files that are routes by where they lie. `pattern` fits the path and has a group `path`; exported functions of
    the names in `methods` handle them, else the default export does."""

    pattern: str
    methods: tuple[str, ...] = ()
    kind: RouteKind = "http"


class ClassRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Methods of classes below these bases: `methods` is a regular expression, the path what its group `path` says."""

    bases: tuple[str, ...]
    methods: str
    kind: RouteKind


class Framework(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    packages: tuple[str, ...] = ()  # what a file imports to use it
    languages: tuple[str, ...] = ()  # of those in one folder; none: all of them
    calls: tuple[CallRule, ...] = ()
    routers: tuple[RouterRule, ...] = ()
    mounts: tuple[MountRule, ...] = ()
    blocks: tuple[str, ...] = ()  # calls whose block holds routes below a prefix
    marks: tuple[MarkRule, ...] = ()
    files: tuple[FileRule, ...] = ()
    classes: tuple[ClassRule, ...] = ()


class Routes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    framework: tuple[Framework, ...] = ()


@cache
def load_frameworks(language: str) -> tuple[Framework, ...]:
    """Those that programs in a language may use."""
    names = (language, describe(language).variant_of)
    found = load_known(language, "routes", Routes).framework
    return tuple(each for each in found if not each.languages or not {*names}.isdisjoint(each.languages))
