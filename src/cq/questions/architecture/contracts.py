"""Contracts of import-linter, read as rules, from `.importlinter`, `setup.cfg` or pyproject.toml."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from configparser import Error as BrokenError
from configparser import RawConfigParser
from pathlib import Path
from typing import Any, cast

import msgspec

from cq.model.config import ArchitectureConfig, ArchitectureRule, RuleException
from cq.model.errors import ConfigError, UsageError
from cq.model.source import Skip
from cq.source.read import read_bytes

MAX_BYTES = 1024 * 1024
_FILES = (".importlinter", "setup.cfg", "pyproject.toml")


def read_contracts(root: Path, match: Callable[[str], set[str]]) -> tuple[ArchitectureConfig, list[str]]:
    """The rules, and the contracts that are not read, each with why. UsageError where there are none."""
    for name in _FILES:
        raw = read_bytes(os.fspath(root), name, MAX_BYTES)
        if isinstance(raw, Skip):
            continue
        text = raw.decode("utf-8", "replace")
        contracts = _read_toml(name, text) if name.endswith(".toml") else _read_ini(name, text)
        if contracts:
            rules: list[ArchitectureRule] = []
            notes: list[str] = []
            for number, contract in enumerate(contracts, 1):
                made = list(_convert(contract, number, notes, match))
                rules += made
            return ArchitectureConfig(rules=tuple(rules)), notes
    raise UsageError("there are no contracts of import-linter here", hint=f"they stand in {', '.join(_FILES)}")


def _read_toml(name: str, text: str) -> list[dict[str, Any]]:
    try:
        table = msgspec.toml.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ConfigError(f"{name}: {error}", hint="fix the file") from None
    found = table.get("tool", {}).get("importlinter", {}) if isinstance(table.get("tool"), dict) else {}
    contracts = found.get("contracts", []) if isinstance(found, dict) else []
    return [each for each in cast("list[Any]", contracts) if isinstance(each, dict)]


def _read_ini(name: str, text: str) -> list[dict[str, Any]]:
    parser = RawConfigParser()
    try:
        parser.read_string(text)
    except BrokenError as error:
        if "importlinter" not in text:
            return []
        raise ConfigError(f"{name}: {error.message}", hint="fix the file") from None
    sections = [each for each in parser.sections() if each.startswith("importlinter:contract")]
    return [{key: _split(key, value) for key, value in parser.items(each)} for each in sections]


_ONE = ("name", "type", "allow_indirect_imports", "exhaustive", "as_packages", "protected_as_packages")


def _split(key: str, value: str) -> str | list[str]:
    if key in _ONE or key.endswith("_alerting"):
        return value.strip()
    return [line.strip() for line in value.splitlines() if line.strip() and not line.strip().startswith("#")]


def _convert(
    contract: dict[str, Any], number: int, notes: list[str], match: Callable[[str], set[str]]
) -> Iterator[ArchitectureRule]:
    title = str(contract.get("name", f"contract {number}"))
    kind = str(contract.get("type", ""))
    base = f"contract-{number}"
    exceptions = tuple(_read_exceptions(contract))

    def names(key: str) -> tuple[str, ...]:
        value = contract.get(key, ())
        return tuple(value.split()) if isinstance(value, str) else tuple(map(str, value))

    def is_set(key: str) -> bool:
        return str(contract.get(key, "")).lower() in ("true", "1", "yes")

    match kind:
        case "forbidden":
            indirect = not is_set("allow_indirect_imports")
            # What nobody imports, and nothing here is, cannot be reached.
            targets = tuple(name for name in names("forbidden_modules") if match(name))
            if targets:
                yield ArchitectureRule(
                    base, kind, title, source=names("source_modules"), target=targets, indirect=indirect,
                    exceptions=exceptions,
                )  # fmt: skip
        case "layers":
            for at, container in enumerate(names("containers") or ("",)):
                layers = list(_read_layers(names("layers"), container, match))
                if ":" in "".join(names("layers")):
                    notes.append(f"{title}: layers that may know each other (`a : b`) are read as one")
                if len(layers) > 1 or "|" in "".join(layers):
                    yield ArchitectureRule(
                        f"{base}-{at + 1}", "layers", title, layers=tuple(layers), exceptions=exceptions
                    )
        case "independence":
            modules = tuple(each for name in names("modules") for each in _expand(name, match))
            yield ArchitectureRule(base, "independent", title, groups=modules, exceptions=exceptions)
        case "protected":
            allowed = names("allowed_importers")
            for at, module in enumerate(names("protected_modules")):
                yield ArchitectureRule(
                    f"{base}-{at + 1}", "forbidden", title, source=(f"!{' '.join((module, *allowed))}",),
                    target=(module,), exceptions=exceptions,
                )  # fmt: skip
        case "acyclic_siblings":
            notes.append(f'{title}: contracts of type {kind} are not read; `kind = "acyclic"` says nearly the same')
        case _:
            notes.append(f"{title}: contracts of type {kind or '?'} are not read")


def _read_layers(layers: tuple[str, ...], container: str, match: Callable[[str], set[str]]) -> Iterator[str]:
    """Layers that are optional, `(name)`, and not there are left out, as they are where a layer is."""
    for layer in layers:
        found: list[str] = []
        for part in re.split(r"[|:]", layer):
            name = part.strip().strip("()").strip()
            full = f"{container}.{name}" if container else name
            if match(full) or not part.strip().startswith("("):
                found.append(full)
        if found:
            yield " | ".join(found)


def _expand(name: str, match: Callable[[str], set[str]]) -> list[str]:
    """Every module that a pattern with `*` names."""
    if "*" not in name:
        return [name]
    from cq.snapshot.target import module_name

    depth = name.count(".") + 1
    return sorted({".".join(module_name(path).split(".")[:depth]) for path in match(name)})


def _read_exceptions(contract: dict[str, Any]) -> Iterator[RuleException]:
    ignored = contract.get("ignore_imports", [])
    for line in ignored if isinstance(ignored, list) else str(ignored).splitlines():
        source, arrow, target = str(line).partition("->")
        if arrow:
            yield RuleException(f"={source.strip()}", f"={target.strip()}", "ignored by import-linter")
