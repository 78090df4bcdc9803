"""Which sinks a call or a store is by rules, and what reaches them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from cq.model.code import (
    Site,
)
from cq.risk.guards import is_settled_container
from cq.risk.run import Flow, Run
from cq.risk.values import (
    NOTHING,
    UNKNOWN,
    Ref,
    Taint,
    Value,
)

if TYPE_CHECKING:
    from cq.risk.rules import Predicate, SinkRule

_OF_SHELLS = ("-c", "/c", "/C")
_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "cmd", "cmd.exe", "powershell", "pwsh"})


class Sinks(Run):
    def check_sinks(
        self,
        names: Sequence[str],
        site: Site | None,
        args: Sequence[Value],
        keywords: Mapping[str, Value],
        receiver: Value,
    ) -> None:
        told: set[str] = set()  # kinds that a surer rule has told already
        for name in names:
            for rule in self.rules.sinks.get(name, ()):
                if rule.kind in told:
                    continue
                if not all(self.meets(predicate, args, keywords, receiver) for predicate in rule.when):
                    continue
                self.engine.note_rule(self.engine.sinks_seen, rule.id, self.place)
                if not rule.args:
                    self._report_fact(rule, site)
                    told.add(rule.kind)
                for argument in rule.args:
                    selected = self.select(argument, args, keywords, receiver)
                    for value in self._open_options(selected, rule.options) if rule.options else selected:
                        taints = () if rule.needs_prefix and has_host(value.prefix) else self.deep(value)
                        if taints and self._report(rule, taints, site.name if site is not None else name):
                            told.add(rule.kind)

    def _open_options(self, values: Iterable[Value], options: Sequence[str]) -> Iterator[Value]:
        """Of an object that is made here only what these fields of it hold."""
        for value in values:
            shapes = [self.shape(ref) for ref in value.refs if ref[0] != "p"]
            if shapes and not value.taints:
                yield from (held for shape in shapes for key, held in shape.fields.items() if key in options)
            else:
                yield value

    def select(
        self, argument: int | str, args: Sequence[Value], keywords: Mapping[str, Value], receiver: Value
    ) -> Iterator[Value]:
        if argument == "receiver":
            yield receiver
        elif argument == "*":
            yield from args
            yield from keywords.values()
        elif isinstance(argument, int):
            if argument < len(args):
                yield args[argument]
            elif args and args[-1].paths == ("*",):
                yield args[-1]
        elif argument == "own-0":
            yield from [value._replace(refs=()) for value in args[:1]]
        elif argument == "own-rest":
            yield from [value._replace(refs=()) for value in args[1:]]
        elif argument == "query":
            for value in args[:1]:
                yield value._replace(refs=())
                yield from self._find_operands(value)
        elif argument.startswith("field:"):
            name = argument.removeprefix("field:")
            for value in args:
                yield from (fields[name] for ref in value.refs if name in (fields := self.shape(ref).fields))
        elif argument == "shell-text":
            for value in args[:3]:
                yield from self._find_shell_text(value)
            if len(args) > 1 and _is_shell(args[0].const):
                for ref in args[1].refs:
                    shape = self.shape(ref)
                    if shape.fields.get(0, NOTHING).const in _OF_SHELLS:
                        yield shape.fields.get(1, shape.rest)
        elif argument in keywords:
            yield keywords[argument]

    def _find_shell_text(self, value: Value) -> Iterator[Value]:
        """What a shell is told to run: `["sh", "-c", text]`."""
        for ref in value.refs:
            shape = self.shape(ref)
            words = [shape.fields.get(at, NOTHING).const for at in (0, 1)]
            if _is_shell(words[0]) and words[1] in _OF_SHELLS:
                yield shape.fields.get(2, shape.rest)

    def _find_operands(self, value: Value, level: int = 3) -> Iterator[Value]:
        """What a query of a document database compares with and may be an object itself: what is no text."""
        for ref in value.refs if level else ():
            shape = self.shape(ref)
            if shape.source is not None:
                continue
            for held in (*shape.fields.values(), shape.rest):
                if "text" not in held.paths:
                    yield held._replace(refs=())
                    yield from self._find_operands(held, level - 1)

    def meets(
        self, predicate: Predicate, args: Sequence[Value], keywords: Mapping[str, Value], receiver: Value
    ) -> bool:
        names = (predicate.arg, *((predicate.name,) if predicate.name else ()))
        value = next((found for name in names for found in self.select(name, args, keywords, receiver)), None)
        if value is None and "**" in keywords and isinstance(predicate.arg, str):
            value = NOTHING
        if predicate.has and not any(self._fits(value, wanted) for wanted in predicate.has):
            return False
        if any(self._fits(value, wanted) for wanted in predicate.lacks):
            return False
        if predicate.matches:
            return value is not None and self.engine.matches(predicate.matches, value.prefix)
        return True

    def _fits(self, value: Value | None, wanted: str | int | bool) -> bool:
        if value is None:
            return wanted == "absent"
        if isinstance(wanted, str):
            if wanted == "absent":
                return False
            if wanted == "list":
                return bool(value.refs)
            if wanted == "text":
                return not value.refs
            if wanted == "unknown":
                return not value.is_constant
            if wanted == "settled":
                return is_settled_container(self, value)
            if wanted == "unknown-object":
                return not value.is_constant and (
                    not value.refs or any(self.shape(ref).rest != NOTHING for ref in value.refs)
                )
            if wanted.startswith("key:"):
                held = [self.shape(ref).fields.get(wanted[4:]) for ref in value.refs]
                return any(one is not None and (one.const is UNKNOWN or bool(one.const)) for one in held)
            if wanted.startswith("off:"):
                return any(one.const is False for ref in value.refs for one in self._find_deep(ref, wanted[4:]))
            if wanted == "constant":
                return value.is_literal
            if wanted == "null":
                return value.is_constant and value.const is None
            if wanted.startswith("path:"):
                return wanted[5:] in value.paths
            if wanted.startswith("flag:"):
                return any(wanted[5:] in path for path in value.paths)
            return isinstance(value.const, str) and value.const.lower() == wanted.lower()
        return value.const == wanted and type(value.const) is type(wanted)

    def _find_deep(self, ref: Ref, key: str, level: int = 2) -> Iterator[Value]:
        """What an object holds under a key, itself or in what it holds."""
        for name, held in self.shape(ref).fields.items():
            if name == key:
                yield held
            for inner in held.refs if level else ():
                yield from self._find_deep(inner, key, level - 1)

    def _report_fact(self, rule: SinkRule, site: Site | None) -> None:
        place = self.place if site is None else self.place._replace(start=site.start, end=site.end)
        self.flows.setdefault((rule.id, place), Flow(rule.id, place, self.function.place, None, ""))

    def _report(self, rule: SinkRule, taints: Iterable[Taint], what: str) -> bool:
        harmful = [taint for taint in taints if rule.kind not in taint.removed]
        for taint in harmful:
            self.report(rule.id, self.place, self._step(taint, "sink", what), what)
        return bool(harmful)


def _is_shell(word: object) -> bool:
    return isinstance(word, str) and word.rpartition("/")[2] in _SHELLS


def has_host(prefix: str) -> bool:
    """Whether a text begins with a host, or with a path on the same one: `https://a.example/`, `/next`."""
    scheme, found, rest = prefix.partition("://")
    if found:
        return "/" in rest and bool(scheme)
    return prefix.startswith("/") and len(prefix) > 1 and prefix[1] not in "/\\"
