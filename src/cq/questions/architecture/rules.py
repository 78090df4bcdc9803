"""Rules of architecture: where they are written, what their groups are, and that each can fail."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from cq.model.config import ArchitectureConfig, ArchitectureRule
from cq.model.errors import ConfigError, UsageError, suggest
from cq.model.source import Skip
from cq.snapshot.target import module_name
from cq.source.files import PathFilter
from cq.source.read import read_bytes

if TYPE_CHECKING:
    from cq.snapshot.snapshot import Snapshot

MAX_RULES = 1000
MAX_BYTES = 4 * 1024 * 1024
# What the rules of a kind need, and what they take beside it.
_NEEDS = {
    "forbidden": ("source", "target"), "layers": ("layers",), "independent": ("groups",), "acyclic": (),
    "only_through": ("target", "door"),
}  # fmt: skip
_TAKES = {
    "forbidden": ("indirect",), "layers": ("indirect",), "independent": ("indirect",), "acyclic": ("groups", "level"),
    "only_through": ("source",),
}  # fmt: skip
_WRITTEN = {"source": "from", "target": "to"}


class Groups:
    """Named sets of files and of packages from outside. A name that is no group is a module, a path or a pattern."""

    def __init__(
        self, paths: Sequence[str], packages: Sequence[str], named: Mapping[str, str | tuple[str, ...]]
    ) -> None:
        self._paths, self._packages, self._named = paths, packages, named
        self._modules = {path: module_name(path) for path in paths}
        self._known: dict[str, frozenset[str]] = {}

    def find(self, name: str, rule: str) -> frozenset[str]:
        """The files of a group, and packages from outside; ConfigError for none: a rule about nothing never fails."""
        if name not in self._known:
            patterns = self._named.get(name, name)
            found: set[str] = set()
            for pattern in (patterns,) if isinstance(patterns, str) else patterns:
                matched = self.match(pattern)
                if not matched:
                    what = f"group {name!r}: " if name in self._named else ""
                    hint = suggest(
                        name, self._named, "a group, a module (`app.web`), a path or a pattern (`src/web/**`)"
                    )
                    raise ConfigError(f"{_name_rule(rule)}{what}nothing here is {pattern!r}", hint=hint)
                found |= matched
            self._known[name] = frozenset(found)
        return self._known[name]

    def match(self, pattern: str) -> set[str]:
        if "/" in pattern or pattern.endswith((".py", ".ts", ".rs", ".js")):
            below = pattern.rstrip("/")
            found = {path for path in self._paths if path == below or path.startswith(f"{below}/")}
            if not found and any(mark in pattern for mark in "*?["):
                is_meant = PathFilter((pattern,), ())
                found = {path for path in self._paths if is_meant(path)}
            return found
        module = re.compile(_write_module(pattern))
        found = {path for path, name in self._modules.items() if module.fullmatch(name)}
        if not found:  # below a directory that is no package
            inner = re.compile(rf"(?:.*\.)?{_write_module(pattern)}")
            found = {path for path, name in self._modules.items() if inner.fullmatch(name)}
        return found or {name for name in self._packages if name == f"<{pattern}>" or name.startswith(f"<{pattern}.")}


def _write_module(pattern: str) -> str:
    """`a.*` is any module right below a, `a.**` any below; every module is meant with what is below it."""
    parts = [
        r"\w+(?:\.\w+)*" if part == "**" else r"\w+" if part == "*" else re.escape(part) for part in pattern.split(".")
    ]
    return r"\.".join(parts) + r"(?:\..*)?"


def read_rules(snapshot: Snapshot, name: str) -> ArchitectureConfig:
    """Those of a file, else those of the configuration."""
    config = snapshot.config.architecture
    if name:
        text = read_bytes(os.fspath(snapshot.root), name, MAX_BYTES)
        if isinstance(text, Skip):
            hint = f"give a TOML file below the root, of at most {MAX_BYTES:,} bytes"
            raise UsageError(f"--rules {name} is not read: {text.reason.replace('_', ' ')}", hint=hint)
        try:
            table: Any = msgspec.toml.decode(text)
            table = table.get("architecture", table)
            config = msgspec.convert(table, ArchitectureConfig)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ConfigError(f"{name}: {error}", hint="docs/architecture.md says what it holds") from None
    for rule in config.rules[: MAX_RULES + 1]:
        _check(rule, name or "cq.toml")
    if len(config.rules) > MAX_RULES:
        raise ConfigError(f"{len(config.rules):,} rules are too many", hint=f"at most {MAX_RULES:,}")
    twice = next((rule.id for n, rule in enumerate(config.rules) if rule.id in {r.id for r in config.rules[:n]}), "")
    if twice:
        raise ConfigError(f"two rules are called {twice!r}", hint="an id names one rule")
    return config


def _check(rule: ArchitectureRule, where: str) -> None:
    """ConfigError for fields that a kind of rule lacks or does not take."""
    usual = {field.name: field.default for field in msgspec.structs.fields(ArchitectureRule)}
    for name in _NEEDS[rule.kind]:
        if not getattr(rule, name):
            raise ConfigError(f"{where}: {_name_rule(rule.id)}{rule.kind} needs `{_WRITTEN.get(name, name)}`")
    allowed = {
        "id",
        "kind",
        "reason",
        "severity",
        "edges",
        "types",
        "exceptions",
        *_NEEDS[rule.kind],
        *_TAKES[rule.kind],
    }
    for name in rule.__struct_fields__:
        if name not in allowed and getattr(rule, name) != usual[name]:
            raise ConfigError(f"{where}: {_name_rule(rule.id)}{rule.kind} takes no `{_WRITTEN.get(name, name)}`")
    for exception in rule.exceptions:
        if not exception.reason.strip():
            raise ConfigError(f"{where}: {_name_rule(rule.id)}an exception needs a `reason`")
        if exception.until and not re.fullmatch(r"\d{4}-\d\d-\d\d", exception.until):
            raise ConfigError(f"{where}: {_name_rule(rule.id)}until = {exception.until!r} is no day", hint="2027-01-31")


def _name_rule(rule: str) -> str:
    return f"rule {rule!r}: " if rule else ""
