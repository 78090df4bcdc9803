"""What the machine offers and what is wrong with it, each with what to do. Changes nothing."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from importlib import metadata
from pathlib import Path

from cq.embed.backend import find_backends
from cq.indexing.location import INDEX_NAME, find_base, find_cache_dir, find_key, find_leftovers
from cq.language import parsed_languages
from cq.languages.facts import extract_facts
from cq.languages.registry import get_language
from cq.model.config import Configuration
from cq.model.errors import CqError, ProviderError, UsageError
from cq.model.status import Check
from cq.providers.registry import Registry
from cq.providers.sessions import find_sessions
from cq.source.program import OUTSIDE, choose_environment, find_in_path
from cq.store import database
from cq.store.kept import explain_lost, find_lost
from cq.store.read import Reader

_TIMEOUT = 5
_PACKAGES = ("msgspec", "tree-sitter", "watchfiles", "xxhash", "zstandard")
_OLD_DAYS = 90
# tool -> (what it is for, whether its absence is worth a warning)
_TOOLS = {
    "git": ("lists the files of a repository with its ignore rules", True),
    "rg": ("searches text where there is no index", False),
    "node": ("runs language servers written in JavaScript", False),
}
INSTALLABLE = ("typescript",)


def find_checks(
    root: Path,
    load_config: Callable[[], Configuration],
    load_providers: Callable[[], Registry],
    *,
    index_dir: str = "",
) -> tuple[Check, ...]:
    return (
        *_check_environment(),
        *_check_languages(),
        *_check_config(load_config),
        *_check_cache(root, load_config, index_dir),
        *_check_backends(load_config),
        *_check_tools(os.fspath(root.resolve())),
        *_check_providers(load_providers),
    )


def install_tool(name: str) -> str:
    """Fetches a tool by name into the cache directory, of the one version and hash that cq knows; says what and where.
    ProviderError with what to do if that fails."""
    from cq.providers import typescript

    if name not in INSTALLABLE:
        raise UsageError(f"cq cannot install {name!r}", hint=f"it can: {', '.join(INSTALLABLE)}")
    cache = find_cache_dir()
    if cache is None:
        raise ProviderError("there is no home directory to install into", hint="set XDG_CACHE_HOME")
    return f"TypeScript {typescript.VERSION} is at {typescript.install(cache / 'tools')}"


def _check_environment() -> Iterator[Check]:
    yield Check("environment", "python", "ok", f"{platform.python_version()} ({sys.implementation.name})")
    yield Check("environment", "system", "ok", f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores")
    yield _check_sqlite()
    for name in _PACKAGES:
        try:
            yield Check("environment", name, "ok", metadata.version(name))
        except metadata.PackageNotFoundError:
            yield Check("environment", name, "error", "not installed", f"install {name}, or cq again")


def _check_sqlite() -> Check:
    """The schema itself is the test: it needs WAL and FTS5."""
    with tempfile.TemporaryDirectory(prefix="cq-") as folder:
        try:
            with database.build(Path(folder) / "probe.db", "") as connection:
                version = connection.execute("SELECT sqlite_version()").fetchone()[0]
        except Exception as error:  # noqa: BLE001  whatever a probe raises is its finding
            advice = "use a Python whose SQLite is 3.34 or newer and has FTS5"
            return Check("environment", "sqlite", "error", f"the index cannot be made: {error}", advice)
    return Check("environment", "sqlite", "ok", f"{version}, with FTS5")


def _check_languages() -> Iterator[Check]:
    loaded = 0
    names = parsed_languages()
    for name in names:
        try:
            assert get_language(name) is not None
            extract_facts(b"x\n", name)
        except Exception as error:  # noqa: BLE001  whatever a probe raises is its finding
            advice = "install cq again: its grammars belong to it"
            yield Check("languages", name, "error", f"{type(error).__name__}: {error}", advice)
        else:
            loaded += 1
    yield Check("languages", "grammars", "ok", f"{loaded} of {len(names)} load; `cq languages` shows what each offers")


def _check_config(load_config: Callable[[], Configuration]) -> Iterator[Check]:
    try:
        config = load_config()
    except CqError as error:
        yield Check("configuration", "files", "error", error.message, error.hint)
        return
    given = [
        f"{setting.name} = {_show(setting.value)} ({setting.source})"
        for setting in config.settings
        if setting.source != "default"
    ]
    yield Check("configuration", "settings", "ok", ", ".join(given) or "all defaults")
    for note in config.notes:
        yield Check("configuration", "note", "warning", note, "keep one of the two" if "cq.toml holds" in note else "")


def _show(value: object) -> str:
    return (
        ", ".join(map(str, value)) if isinstance(value, tuple) else str(value).lower() if value is True else str(value)
    )


def _check_cache(root: Path, load_config: Callable[[], Configuration], index_dir: str) -> Iterator[Check]:
    try:
        config = load_config()
        base = find_base(root, config.index.dir, config.source("index.dir"))
    except CqError:
        base = find_base(root, index_dir, "flag")
    if base is None:
        advice = "set XDG_CACHE_HOME or CQ_INDEX_DIR to a directory of yours"
        yield Check("cache", "directory", "warning", "there is no home directory", advice)
        return
    # What is not there yet can be made where the nearest directory that is there may be written.
    there = next(folder for folder in (base, *base.parents) if os.path.lexists(folder))
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        advice = "make it writable, or set CQ_INDEX_DIR to a directory of yours; until then every run indexes anew"
        yield Check("cache", "directory", "warning", f"{base} cannot be written", advice)
        return
    free = shutil.disk_usage(there).free
    indexes = find_leftovers(base)
    total = sum(index.bytes for index in indexes)
    state, advice = ("ok", "") if free > 500_000_000 else ("warning", "make room, or set CQ_INDEX_DIR")
    yield Check(
        "cache", "directory", state, f"{base}, {len(indexes)} in it with {_mb(total)}, {_mb(free)} free", advice
    )
    own = next((index for index in indexes if index.folder.name == find_key(root)), None)
    yield Check("cache", "index", "ok", f"{own.folder.name}, {_mb(own.bytes)}" if own else "not made yet")
    if own and (why := database.damage(own.folder / INDEX_NAME, root, deep=True)):
        yield Check("cache", "index", "warning", why, "nothing: the next command makes it anew")
    elif own:
        yield from _check_links(own.folder / INDEX_NAME, root)
    for source in find_lost(own.folder / INDEX_NAME) if own else ():
        yield Check("cache", "evidence", "warning", *explain_lost(source))
    for index in indexes:
        days = int((time.time() - index.used) / 86400)
        if index is own or (index.exists and days < _OLD_DAYS):
            continue
        why = f"last written {days} days ago" if index.exists else "its repository is gone"
        yield Check("cache", "old index", "warning", f"{_mb(index.bytes)}, {why}", f"remove {index.folder}")


def _check_links(index: Path, root: Path) -> Iterator[Check]:
    """What could not be linked, by mistakes of cq."""
    with closing(database.connect(index)) as connection:
        reader = Reader(connection, os.fspath(root))
        tree = reader.tree()
        for path, problems in () if tree is None else tree.partial.items():
            detail = f"understood only in part: {problems[0].message}"
            if problems[0].code in ("internal", "crash"):
                advice = "report it as a bug of cq; until then answers lack what this file says"
            else:
                advice = "leave it out (index.exclude) where it is no code to ask about"
            yield Check("cache", path, "warning", detail, advice)
        for row in () if tree is None else reader.count_mistakes(tree.id):
            cost = f"{row.unlinked:,} files not linked, {row.incomplete:,} in part, {row.refreshes:,} refreshes of all"
            advice = "report it as a bug of cq; until then what these files refer to is known in part"
            yield Check("cache", "links", "warning", f"{row.error} at {row.place}: {cost}", advice)


def _check_backends(load_config: Callable[[], Configuration]) -> Iterator[Check]:
    try:
        wanted = load_config().find.backend
    except CqError:
        return  # the configuration says it
    for name, there in find_backends().items():
        advice = f"pip install 'cq-code[{name}]'"
        if there:
            found = "in the package" if name == "exact" else metadata.version(name)
            yield Check("vectors", name, "ok", found + (", as configured" if name == wanted else ""))
        elif name == wanted:
            yield Check("vectors", name, "error", "find.backend names it, and it is not installed", advice)
        else:
            yield Check(
                "vectors", name, "missing", f"not installed; an index of vectors for large repositories: {advice}"
            )


def _mb(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def _check_providers(load: Callable[[], Registry]) -> Iterator[Check]:
    """As the engine itself sees them; those that can run are started for what they offer, and ended again."""
    try:
        registry = load()
    except CqError:
        return  # the configuration says it
    root = registry.site.root
    warm = [session for session in find_sessions(root) if session.pid]
    registry.probe()
    rows = registry.status()
    for session in find_sessions(root):
        if session not in warm:
            session.close()
    for row in rows:
        state = "ok" if row.available and row.enabled else "missing"
        if row.available and row.enabled and row.errors and not row.planes:
            state = "warning"
        words = [row.version if row.available else "", *row.reasons, *row.notes]
        words += [f"last error: {error}" for error in row.errors[-1:]]
        yield Check("providers", row.id, state, "; ".join(filter(None, words)), row.advice, row)


def _check_tools(root: str) -> list[Check]:
    """Found by running them: a name in the path may be a stub that only says how to install it."""
    with ThreadPoolExecutor(len(_TOOLS)) as pool:
        return list(pool.map(lambda name: _check_tool(name, root), _TOOLS))


def _check_tool(name: str, root: str) -> Check:
    use, needed = _TOOLS[name]
    missing = "warning" if needed else "missing"
    program = find_in_path(name, root)
    if program is None:
        return Check("tools", name, missing, f"not found; {use}", f"install {name}" if needed else "")
    try:
        # Away from the repository: some tools look for settings, and for versions of themselves, where they stand.
        done = subprocess.run(
            [program, "--version"],
            cwd=OUTSIDE,
            env=choose_environment(os.environ, root=root),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Check("tools", name, missing, f"{program} gave no answer in {_TIMEOUT} s; {use}")
    except OSError as error:
        return Check("tools", name, missing, f"{program} cannot be started ({error.strerror}); {use}")
    if done.returncode:
        return Check("tools", name, missing, f"{program} does not run (exit code {done.returncode}); {use}")
    lines = done.stdout.decode("utf-8", "replace").strip().splitlines() or [""]
    return Check("tools", name, "ok", lines[0][:80])
