"""Rules as data: sources, sinks, sanitizers, propagators, guards, entry points and facts that need no flow. Read from
TOML strictly: what is not known is an error with its line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from pkgutil import get_data
from typing import Annotated, Literal, TypeVar, get_args

import msgspec
from msgspec import Meta

from cq.language import describe
from cq.model.code import Imported
from cq.model.errors import ConfigError, suggest

Severity = Literal["low", "medium", "high", "critical"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
SinkKind = Literal[
    "command", "sql", "nosql", "xss", "path", "zip-slip", "deserialization", "xxe", "ldap", "xpath", "ssrf",
    "redirect", "code", "template", "header", "log", "redos", "trust", "prototype",
    "hash", "cipher", "random", "cookie", "tls", "debug", "temp", "permission",
]  # fmt: skip
KINDS: tuple[SinkKind, ...] = get_args(SinkKind)
OriginKind = Literal["remote", "local", "stored"]
ORIGINS: tuple[OriginKind, ...] = get_args(OriginKind)
Score = Annotated[float, Meta(ge=0, le=1)]
OwnRules = tuple[tuple[str, str], ...]  # files of the user: names and texts
Argument = int | str  # by position, by name; "receiver", "*" for all


class Predicate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """About one argument: it `is` or `is_not` one of these (a constant, the path of a name as `path:yaml.SafeLoader`,
    `absent`, `text` for something that is put together, `list`), or it matches a regular expression."""

    arg: Argument
    name: str = ""  # where it can be passed by name as well
    has: tuple[str | int | bool, ...] = ()
    lacks: tuple[str | int | bool, ...] = ()
    matches: str = ""


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`names` are paths of what is called or read; `?.name` is a method of a receiver that nobody knows."""

    id: str
    names: tuple[str, ...] = ()
    message: str = ""
    bad: str = ""  # lines that the rule is about; the last of them is where it says so
    ok: str = ""


class SourceRule(Rule, frozen=True, forbid_unknown_fields=True, kw_only=True):
    origin: OriginKind = "remote"
    confidence: Score = 0.9
    fills: tuple[Argument, ...] = ()  # arguments that are filled with data, beside what it gives
    calls: Argument | None = None  # a function that gets the data


class SinkRule(Rule, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Without `args` it is a fact: what is called is the weakness, whatever it is given."""

    kind: SinkKind
    cwe: int
    severity: Severity = "high"
    confidence: Score = 0.9
    fix: str = ""
    args: tuple[Argument, ...] = ()
    when: tuple[Predicate, ...] = ()
    options: tuple[str, ...] = ()  # where the argument is an object, the fields of it that matter
    needs_prefix: bool = False  # harmless where the text begins with a constant, as a host does


class SanitizerRule(Rule, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What it gives is harmless to these kinds of sinks; `*` to all."""

    kinds: tuple[SinkKind | Literal["*"], ...]
    when: tuple[Predicate, ...] = ()


class PropagatorRule(Rule, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What it gives comes from these arguments and from nothing else. `whole`: it is the same text, written otherwise;
    `restores`: it was decoded, so that it may do again what it was escaped against. `copies`: it is another container
    with the same elements, and with what is passed by name. `into`: it is stored there. `calls`: a function among the
    arguments that gets the others, and what that gives comes back; `keeps`: the others come back. `reads`: the argument
    that names what is read off the first of these. `binds`: a function with its first arguments. `record`: a class with
    the fields that an argument lists. `loads`: the module that an argument names."""

    takes: tuple[Argument, ...] = ()
    whole: bool = False
    restores: bool = False
    copies: bool = False
    into: Argument | None = None
    key: tuple[Argument, ...] = ()  # arguments that together are the key that is stored or read under
    calls: Argument | None = None
    keeps: bool = False
    reads: Argument | None = None
    binds: bool = False
    record: Argument | None = None
    loads: Argument | None = None


class GuardRule(Rule, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A question whose answer (`holds`) shows an argument harmless to these kinds. `views`: the argument must be seen
    through one of these; `view`: reading it that way and comparing shows the whole harmless."""

    kinds: tuple[SinkKind | Literal["*"], ...]
    arg: Argument = "receiver"
    holds: bool = True
    views: tuple[str, ...] = ()
    when: tuple[Predicate, ...] = ()
    is_view: bool = False
    through: tuple[str, ...] = ()  # views that change nothing about it


class MarkRule(Rule, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What it gives, or what it is called on (`into`), has a property that predicates can ask for: `flag:name`."""

    flag: str
    into: Argument | None = None
    when: tuple[Predicate, ...] = ()


class EntryRule(Rule, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Functions that are called from outside: by what decorates them, by the call that they are passed to (`names`),
    by a base of their class."""

    decorators: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()  # how the first of them must be called
    count: int = 0  # how many they must be; 0: any
    methods: tuple[str, ...] = ()  # of a class with such a base; none: all
    taints: Literal["all", "none", "rest", "plain"] = "all"  # which parameters come from outside
    types: dict[str, str] = {}  # by number of a parameter: what it is
    origin: OriginKind = "remote"
    confidence: Score = 0.9
    returns: str = ""  # the sink rule that what it returns goes to


class RuleFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    language: str
    types: dict[str, tuple[str, ...]] = {}  # a path by which rules call it -> what else leads there
    injected: tuple[str, ...] = ()  # types of parameters that a framework makes itself
    scheme: str = ""  # what may stand before the name of a module that comes with the language
    wholes: tuple[str, ...] = ()  # names by which an import means a module as a whole
    records: tuple[str, ...] = ()  # bases and decorators of classes that are made of the fields which they annotate
    source: tuple[SourceRule, ...] = ()
    sink: tuple[SinkRule, ...] = ()
    sanitizer: tuple[SanitizerRule, ...] = ()
    propagator: tuple[PropagatorRule, ...] = ()
    guard: tuple[GuardRule, ...] = ()
    mark: tuple[MarkRule, ...] = ()
    entry: tuple[EntryRule, ...] = ()


class Rules:
    """All rules of a language, found by the names that they are about."""

    def __init__(self, files: Sequence[RuleFile], language: str) -> None:
        self.language = language
        self.types: dict[str, str] = {}
        self.sources: dict[str, SourceRule] = {}
        self.sinks: dict[str, list[SinkRule]] = {}
        self.sanitizers: dict[str, list[SanitizerRule]] = {}
        self.propagators: dict[str, PropagatorRule] = {}
        self.guards: dict[str, list[GuardRule]] = {}
        self.marks: dict[str, list[MarkRule]] = {}
        self.entries: list[EntryRule] = []
        self.handed: dict[str, set[str]] = {}  # calls that get entry points, by their last name
        self.views: list[GuardRule] = []
        self.by_id: dict[str, Rule] = {}
        for file in files:
            for path, others in file.types.items():
                self.types.update(dict.fromkeys(others, path))
            rules = (*file.source, *file.sink, *file.sanitizer, *file.propagator, *file.guard, *file.entry, *file.mark)
            self.by_id.update((rule.id, rule) for rule in rules)
            for source in file.source:
                self.sources.update(dict.fromkeys(source.names, source))
            for propagator in file.propagator:
                self.propagators.update(dict.fromkeys(propagator.names, propagator))
            _list_by_name(self.sinks, file.sink)
            _list_by_name(self.sanitizers, file.sanitizer)
            _list_by_name(self.guards, file.guard)
            _list_by_name(self.marks, file.mark)
            self.entries += file.entry
            self.views += [guard for guard in file.guard if guard.is_view]
        for entry in self.entries:
            for name in entry.names:
                self.handed.setdefault(name.rpartition(".")[2], set()).add(name)
        # Of what is called so a rule may say something, or of what is read off it.
        self.beginnings: set[str] = set()
        for table in (self.sources, self.sinks, self.sanitizers, self.propagators, self.guards, self.types):
            for name in table:
                self.beginnings.update(name[: match.start()] for match in re.finditer(r"\.|\(\)|\[\]", name))
        self._wholes = frozenset(("*", "=", *(name for file in files for name in file.wholes)))
        self._scheme = "".join(file.scheme for file in files)
        self.records = frozenset(name for file in files for name in file.records)
        self.injected = frozenset(name for file in files for name in file.injected)

    def is_about(self, name: str) -> bool:
        """Whether any rule says what a call of this name does."""
        known = (self.sources, self.sinks, self.sanitizers, self.propagators, self.guards, self.marks)
        return any(name in table for table in known)

    def write_import(self, imported: Imported) -> str:
        """What is imported from outside, as rules call it."""
        module = imported.module.removeprefix(self._scheme)
        return self.settle(module if imported.name in self._wholes else f"{module}.{imported.name}".lstrip("."))

    def settle(self, path: str) -> str:
        """A path as rules call it."""
        for _ in range(4):
            known = self.types.get(path)
            if known is None:
                return path
            path = known
        return path


@cache
def load_rules(language: str, own: OwnRules = ()) -> Rules:
    """The rules that cq comes with, and those of the user."""
    family = describe(language).family
    files = [*load_files(), *(read_rules(text, name) for name, text in own)]
    return Rules([file for file in files if describe(file.language).family == family], language)


@cache
def load_files() -> tuple[RuleFile, ...]:
    names = sorted(entry.name for entry in (resources.files("cq.risk") / "rules").iterdir())
    texts = [(name, get_data("cq.risk", f"rules/{name}")) for name in names if name.endswith(".toml")]
    return tuple(read_rules(text.decode(), name) for name, text in texts if text is not None)


def read_rules(text: str, name: str) -> RuleFile:
    """ConfigError with the line of what is wrong."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name} is no TOML: {error}", hint="see docs/risk.md for how rules are written") from None
    try:
        found = msgspec.convert(data, RuleFile)
    except msgspec.ValidationError as error:
        raise _explain(text, name, error) from None
    seen: dict[str, int] = {}
    for rule in (
        *found.source,
        *found.sink,
        *found.sanitizer,
        *found.propagator,
        *found.guard,
        *found.entry,
        *found.mark,
    ):
        if rule.id in seen:
            line = _find_line(text, f'"{rule.id}"', 2)
            message = f"{name}:{line}: there are two rules {rule.id!r}"
            raise ConfigError(message, hint="every rule has an id of its own")
        seen[rule.id] = 1
        for predicate in getattr(rule, "when", ()):
            try:
                re.compile(predicate.matches)
            except re.error as error:
                message = f"{name}:{_find_line(text, predicate.matches)}: {predicate.matches!r} is no pattern: {error}"
                raise ConfigError(message, hint="it is a regular expression of Python") from None
    return found


def check_own(name: str, text: str) -> None:
    """ConfigError where rules of the user cannot be read, are about a language that has none, or take the id of another
    rule."""
    file = read_rules(text, name)
    known = {found.language: None for found in load_files()}
    if file.language not in known:
        line = _find_line(text, f'"{file.language}"')
        raise ConfigError(f"{name}:{line}: language cannot be {file.language!r}", hint=suggest(file.language, known))
    for rule in list_rules(file):
        if rule.id in load_rules(file.language).by_id:
            line = _find_line(text, f'"{rule.id}"')
            raise ConfigError(f"{name}:{line}: there are two rules {rule.id!r}", hint="cq has one of that id")


def list_rules(file: RuleFile) -> tuple[Rule, ...]:
    return (*file.source, *file.sink, *file.sanitizer, *file.propagator, *file.guard, *file.entry, *file.mark)


def _explain(text: str, name: str, error: msgspec.ValidationError) -> ConfigError:
    message, _, place = str(error).partition(" - at ")
    table = re.match(r"`\$\.(\w+)\[(\d+)\]", place)
    line, kinds = 1, RuleFile.__struct_fields__
    if table is not None:
        line = _find_table(text, table[1], int(table[2]))
    hint = "see docs/risk.md for how rules are written"
    if (unknown := re.search(r"unknown field `(.*)`", message)) is not None:
        word = unknown[1]
        line = _find_line(text, word, after=line)
        if table is not None:
            kinds = _TABLES[table[1]].__struct_fields__
        message = f"there is no key {word!r}"
        hint = _suggest(word, kinds)
    elif (wrong := re.search(r"Invalid enum value '(.*)'", message)) is not None:
        line = _find_line(text, wrong[1], after=line)
        field = place.rpartition(".")[2].strip("`[].0123456789")
        hint = _suggest(wrong[1], {"severity": SEVERITIES, "origin": ORIGINS}.get(field, KINDS))
        message = f"{field} cannot be {wrong[1]!r}"
    elif place:
        message = f"{message} at {place.strip('`$.')}"
    return ConfigError(f"{name}:{line}: {message}", hint=hint)


_TABLES: dict[str, type[Rule]] = {
    "source": SourceRule, "sink": SinkRule, "sanitizer": SanitizerRule, "propagator": PropagatorRule,
    "guard": GuardRule, "entry": EntryRule, "mark": MarkRule,
}  # fmt: skip


_Named = TypeVar("_Named", bound=Rule)


def _list_by_name(table: dict[str, list[_Named]], rules: Iterable[_Named]) -> None:
    for rule in rules:
        for name in rule.names:
            table.setdefault(name, []).append(rule)


def _suggest(word: str, known: Iterable[str]) -> str:
    return suggest(word, known)


def _find_table(text: str, table: str, number: int) -> int:
    starts = [match.start() for match in re.finditer(rf"(?m)^\[\[\s*{re.escape(table)}\s*\]\]", text)]
    return text.count("\n", 0, starts[number]) + 1 if number < len(starts) else 1


def _find_line(text: str, word: str, count: int = 1, after: int = 1) -> int:
    """The line of the n-th time that a word stands there, from a line on."""
    lines = text.split("\n")
    for number in range(after - 1, len(lines)):
        if word in lines[number]:
            count -= 1
            if not count:
                return number + 1
    return after
