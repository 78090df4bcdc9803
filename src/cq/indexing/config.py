"""Configuration: flag over environment over file over default, each value with its source.

The file lies in the repository and is taken as hostile: bounded in size, no links followed, no includes, and it
cannot name a place outside the root.
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypedDict

import msgspec

from cq.indexing.refresh import Settings
from cq.model.config import (
    ArchitectureConfig,
    ArchitectureRule,
    ArtifactsConfig,
    ConfigFile,
    Configuration,
    FindConfig,
    HistoryConfig,
    IndexConfig,
    LanguageServer,
    ModelsConfig,
    NeighborhoodConfig,
    ProvidersConfig,
    RiskCapsConfig,
    RiskConfig,
    SectionOrder,
    Setting,
)
from cq.model.errors import ConfigError, CqError, UsageError
from cq.model.source import Skip
from cq.opening import read_file
from cq.source.files import parse_globs
from cq.source.read import read_bytes, show_path

MAX_CONFIG_BYTES = 256 * 1024
ROOT_VARIABLE, DIR_VARIABLE = "CQ_ROOT", "CQ_INDEX_DIR"
MODEL_VARIABLES = {"embedder": "CQ_EMBEDDER", "reranker": "CQ_RERANKER"}
_SEE = "`cq status --config` shows what holds"
_TABLES: dict[tuple[str, ...], type[msgspec.Struct]] = {
    (): ConfigFile, ("index",): IndexConfig, ("providers",): ProvidersConfig, ("artifacts",): ArtifactsConfig,
    ("neighborhood",): NeighborhoodConfig, ("neighborhood", "section_order"): SectionOrder,
    ("find",): FindConfig, ("risk",): RiskConfig, ("risk", "caps"): RiskCapsConfig, ("history",): HistoryConfig,
    ("architecture",): ArchitectureConfig, ("architecture", "rules"): ArchitectureRule,
}  # fmt: skip


class Overrides(TypedDict, total=False):
    """What flags and the library may set, over every file; None is the same as not given."""

    include: tuple[str, ...] | None
    exclude: tuple[str, ...] | None
    max_file_bytes: int | None
    max_files: int | None
    jobs: int | None
    memory_mb: int | None


def load_config(
    root: Path, overrides: Overrides | None = None, *, index_dir: str = "", root_source: str = "default"
) -> Configuration:
    """ConfigError for a file that cannot be taken, UsageError for a flag."""
    file, written, sources, notes, given_providers = _load_file(root)
    values: dict[str, Any] = dict(written)
    if value := os.environ.get(DIR_VARIABLE):
        values["dir"], sources["dir"] = value, f"environment {DIR_VARIABLE}"
    given: dict[str, Any] = {name: value for name, value in (overrides or {}).items() if value is not None}
    if index_dir:
        given["dir"] = index_dir
    for name, value in given.items():
        _convert_flag(name, value)
        values[name], sources[name] = value, "flag"
    config = msgspec.convert(values, IndexConfig)
    _check_patterns(config, sources)
    _check_dir(root, config.dir, sources.get("dir", "default"))
    settings = [Setting("root", show_path(os.fspath(root)), root_source)]
    settings += [
        Setting(f"index.{name}", getattr(config, name), sources.get(name, "default"))
        for name in IndexConfig.__struct_fields__
    ]
    settings += _list_providers(file.providers, given_providers)
    settings += [
        Setting(f"find.{key}", getattr(file.find, name), sources.get(f"find.{key}", "default"))
        for name, key in zip(FindConfig.__struct_fields__, FindConfig.__struct_encode_fields__, strict=True)
        if name not in MODEL_VARIABLES
    ]
    settings += _list_risk(file.risk, sources)
    settings.append(Setting("history.max_mb", file.history.max_mb, sources.get("history.max_mb", "default")))
    models, chosen, refused = _choose_models(file.find, sources)
    settings += [Setting(f"find.{name}", getattr(models, name), source) for name, source in chosen.items()]
    return Configuration(
        config, tuple(settings), (*notes, *refused), file.queries, file.providers, file.neighborhood, file.artifacts,
        file.find, models, file.history, file.architecture, file.risk,
    )  # fmt: skip


def find_models_file() -> Path | None:
    """The user's own, which no repository decides about; None where there is no home directory."""
    given = os.environ.get("XDG_CONFIG_HOME", "")
    if not given and sys.platform == "win32":
        given = os.environ.get("APPDATA", "")
    # A relative one is to be ignored, says the XDG standard: it would lie in whatever repository one stands in.
    folder = Path(given if Path(given).is_absolute() else os.path.expanduser("~/.config"))  # noqa: PTH111
    return folder / "cq" / "models.toml" if folder.is_absolute() else None


def _choose_models(wish: FindConfig, sources: Mapping[str, str]) -> tuple[ModelsConfig, dict[str, str], list[str]]:
    """Environment over a repository's `local` over the user's file, with the source of each and what is not heeded: a
    repository may keep its code at home, but that it is sent away is for the user to say."""
    path = find_models_file()
    models, notes = _read_models(path) if path else ModelsConfig(), list[str]()
    chosen: dict[str, Any] = {}
    origin: dict[str, str] = {}
    for name, variable in MODEL_VARIABLES.items():
        wished = getattr(wish, name)
        here = getattr(models, name)
        origin[name] = str(path) if here != "local" else "default"
        if value := os.environ.get(variable):
            chosen[name], origin[name] = value, f"environment {variable}"
        elif wished == "local":
            chosen[name], origin[name] = wished, sources.get(f"find.{name}", "default")
        elif wished not in (None, here):
            where = sources.get(f"find.{name}", "cq.toml")
            notes.append(
                f"{where}: find.{name} = {wished!r} is not used: which models read the text is for the user to say"
                f" ({variable}={wished} does" + (f", or {path})" if path else ")")
            )
    try:
        return msgspec.convert(msgspec.to_builtins(models) | chosen, ModelsConfig), origin, notes
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at ")
        variable = MODEL_VARIABLES[place.strip("`$.")]
        known = "local, minilm, voyage, openai" if variable == MODEL_VARIABLES["embedder"] else "local, voyage"
        raise UsageError(f"{variable}: {_lower(message)}", hint=f"it is one of {known}") from None


def _read_models(path: Path) -> ModelsConfig:
    try:
        return msgspec.toml.decode(read_file(path, MAX_CONFIG_BYTES), type=ModelsConfig)
    except (FileNotFoundError, NotADirectoryError):
        return ModelsConfig()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}", hint="make it readable or remove it") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path}: {_lower(str(error))}", hint="docs/find.md#hosted-models says what it holds"
        ) from None


def make_settings(
    config: IndexConfig, *, leave_out: str = "", words: bool = True, history_mb: int = HistoryConfig().max_mb
) -> Settings:
    """`leave_out` is a directory of ours below the root that is not part of the code."""
    exclude = config.exclude
    if leave_out:
        escaped = re.sub(r"([\\*?\[\]!#])", r"\\\1", leave_out)
        exclude = (*exclude, f"/{escaped}/")
    return Settings(
        config.include, exclude, config.max_file_bytes, config.max_files, config.jobs, config.memory_mb, words,
        history_mb,
    )  # fmt: skip


def config_schema() -> dict[str, Any]:
    """JSON Schema of `cq.toml`, and of the table `[tool.cq]`."""
    return msgspec.json.schema(ConfigFile)


def _list_providers(config: ProvidersConfig, sources: dict[str, str]) -> list[Setting]:
    """`allow` and `deny` always; of what a file adds for one provider only what is there."""
    rows = [Setting(f"providers.{name}", getattr(config, name), sources.get(name, "default")) for name in _LISTS]
    for name, table in sorted(config.settings.items()):
        rows.append(Setting(f"providers.settings.{name}", tuple(sorted(table)), sources.get("settings", "default")))
    for name, server in sorted(config.lsp.items()):
        where = sources.get(f"lsp.{name}", "default")
        rows.append(Setting(f"providers.lsp.{name}.cmd", server.cmd, where))
        rows.append(Setting(f"providers.lsp.{name}.languages", server.languages, where))
    return rows


def _list_risk(config: RiskConfig, sources: Mapping[str, str]) -> list[Setting]:
    rows: list[Setting] = []
    for above, table in (("risk", config), ("risk.caps", config.caps)):
        for name, key in zip(table.__struct_fields__, table.__struct_encode_fields__, strict=True):
            if name != "caps":
                where = sources.get(f"{above}.{key}", "default")
                rows.append(Setting(f"{above}.{key}", getattr(table, name), where))
    return rows


_LISTS = (
    "allow", "deny", "order", "timeout", "retries", "breaker", "max_files", "max_file_bytes", "doctor_on_build",
)  # fmt: skip


def _load_file(root: Path) -> tuple[ConfigFile, dict[str, Any], dict[str, str], tuple[str, ...], dict[str, str]]:
    """What a file says, the keys of `[index]` it sets, where each is set, what there is to say about it, and where
    keys of `[providers]` are set."""
    own = _read(root, "cq.toml")
    shared = _read(root, "pyproject.toml")
    notes: list[str] = []
    if isinstance(own, Skip):
        raise ConfigError(f"cq.toml is not read: {_explain(own)}", hint=f"at most {MAX_CONFIG_BYTES} bytes, no link")
    table: dict[str, Any] | None = None
    if isinstance(shared, Skip):
        notes.append(f"pyproject.toml is not read: {_explain(shared)}")
    # Most have no table of ours: those are not parsed, and may be as broken as they like.
    elif shared is not None and re.search(r"\bcq\b", shared):
        try:
            table = _parse(shared, "pyproject.toml").get("tool", {}).get("cq")
        except AttributeError:  # `tool` is no table
            table = None
        except ConfigError:
            if re.search(r"tool\s*\.\s*[\"']?cq\b", shared):
                raise
            notes.append("pyproject.toml is broken; cq takes nothing from it")
    if own is not None:
        if table is not None:
            notes.append("cq.toml holds; [tool.cq] in pyproject.toml is not used")
        found = _parse(own, "cq.toml")
        return *_convert_file(found, own, "cq.toml", ()), tuple(notes), _find_providers(found, own, "cq.toml", ())
    if table is not None and shared is not None and not isinstance(shared, Skip):
        above = ("tool", "cq")
        where = _find_providers(table, shared, "pyproject.toml", above)
        return *_convert_file(table, shared, "pyproject.toml", above), tuple(notes), where
    return ConfigFile(), {}, {}, tuple(notes), {}


def _find_providers(table: Any, text: str, name: str, above: tuple[str, ...]) -> dict[str, str]:
    """Where each key of `[providers]` is set. It may not be what it should: then the conversion says so."""
    match table:
        case {"providers": {**found}}:
            servers = found.get("lsp")
            keys = [(key,) for key in found]
            keys += [("lsp", each) for each in servers] if isinstance(servers, dict) else []
            return {".".join(key): name + _find_line(text, (*above, "providers", *key)) for key in keys}
        case _:
            return {}


def _read(root: Path, name: str) -> str | Skip | None:
    raw = read_bytes(os.fspath(root), name, MAX_CONFIG_BYTES)
    if isinstance(raw, Skip):
        return None if raw.reason == "missing" else raw
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return Skip(name, "encoding", "it is not UTF-8")


def _explain(skip: Skip) -> str:
    return skip.reason.replace("_", " ") + (f", {skip.detail}" if skip.detail else "")


def _parse(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name} is not TOML: {error}", hint="fix the line or remove the file") from None
    except RecursionError:
        raise ConfigError(f"{name} is not TOML that can be read: it is nested too deep") from None


def _convert_file(
    table: Any, text: str, name: str, above: tuple[str, ...]
) -> tuple[ConfigFile, dict[str, Any], dict[str, str]]:  # fmt: skip
    try:
        file = msgspec.convert(table, ConfigFile)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at ")
        path = tuple(re.sub(r"\[[^\]]*\]", "", place.strip("`$")).strip(".").split(".")) if place else ()
        path = tuple(part for part in path if part)
        unknown = re.search(r"unknown field `(.*)`", message)
        if unknown is None:
            where = _find_line(text, (*above, *path))
            key = ".".join((*above, *path))
            raise ConfigError(f"{name}{where}: {key}: {_lower(message)}", hint=_SEE) from None
        word = unknown[1]
        known = _TABLES.get(path[:2], LanguageServer).__struct_encode_fields__
        close = get_close_matches(word, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
        key = ".".join((*above, *path, word))
        raise ConfigError(f"{name}{_find_line(text, (*above, *path, word))}: unknown key {key!r}", hint=hint) from None
    values: dict[str, Any] = table.get("index", {})
    sources = {key: name + _find_line(text, (*above, "index", key)) for key in values}
    sources |= {f"find.{key}": name + _find_line(text, (*above, "find", key)) for key in table.get("find", {})}
    for key, value in table.get("risk", {}).items():
        for inner in value if key == "caps" else ("",):
            path = ("risk", key, inner) if inner else ("risk", key)
            sources[".".join(path)] = name + _find_line(text, (*above, *path))
    return file, values, sources


def _lower(message: str) -> str:
    return message[:1].lower() + message[1:].replace("`", "")


def _find_line(text: str, path: tuple[str, ...]) -> str:
    """`:LINE` of a key, as far as lines show it; TOML itself does not keep them."""
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[{1,2}([^\]]+)\]", line):
            table = _split(header[1])
            if table == path:
                return f":{number}"
        elif key := re.match(r"\s*([\w.\s\"'-]+?)\s*=", line):
            full = (*table, *_split(key[1]))
            if full == path[: len(full)] and len(full) > len(table):
                return f":{number}"
    return ""


def _split(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip(" \t\"'") for part in dotted.split("."))


def _convert_flag(name: str, value: Any) -> None:
    try:
        msgspec.convert({name: value}, IndexConfig)
    except msgspec.ValidationError as error:
        flag = "--index-dir" if name == "dir" else "--" + name.removesuffix("_mb").replace("_", "-")
        raise UsageError(f"{flag} {value}: {_lower(str(error).partition(' - at ')[0])}") from None


def _check_patterns(config: IndexConfig, sources: Mapping[str, str]) -> None:
    for name in ("include", "exclude"):
        try:
            parse_globs(name, getattr(config, name))
        except UsageError as error:
            raise _place(error, sources.get(name, "flag"), f"index.{name}") from None


def _place(error: CqError, source: str, name: str) -> CqError:
    if source == "flag":
        return error
    return ConfigError(f"{source}: {name}: {error.message.partition(' ')[2]}", hint=error.hint)


def _check_dir(root: Path, value: str, source: str) -> None:
    if "\0" in value:
        raise UsageError("the index directory holds a NUL byte")
    if not value or source == "flag" or source.startswith("environment"):
        return
    # A repository does not choose where in the user's files something is written.
    path = Path(value)
    if path.is_absolute() or ".." in path.parts or not (root / path).resolve().is_relative_to(root):
        raise ConfigError(
            f"{source}: index.dir: {value!r} leaves the root",
            hint=f"a file may name a directory below the root; elsewhere with --index-dir or {DIR_VARIABLE}",
        )
