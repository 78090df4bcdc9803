"""The index of one root: where it lies, how it is kept fresh, and how damage to it is mended."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from cq.model.errors import CqError, StoreError

if TYPE_CHECKING:
    from cq.indexing.config import Overrides
    from cq.indexing.location import Place
    from cq.indexing.refresh import Progress, Report, Settings
    from cq.indexing.resident import Resident
    from cq.model.config import Configuration
    from cq.model.history import Revision
    from cq.providers.registry import Registry
    from cq.store.overflow import ArtifactStore
    from cq.store.read import Reader, Tree

_T = TypeVar("_T")


class Policy(msgspec.Struct, frozen=True):
    """How an index is found and kept fresh; see Workspace.open."""

    root_source: str = "flag"
    index_dir: str = ""
    overrides: Overrides = {}
    auto_refresh: bool = True
    max_stale: float = 0.0
    disk_seconds: float = 0.0
    trusted: bool = False


class Index:
    """Nothing is read or written before it is needed. Snapshots of it are for questions; see cq.snapshot. With a
    `revision` it is of that instead of the work tree: it lies in the same place and shares what is equal."""

    def __init__(
        self,
        root: Path,
        policy: Policy,
        *,
        on_progress: Callable[[Progress], None] | None = None,
        resident: Resident | None = None,
        revision: Revision | None = None,
    ) -> None:
        self.root, self.policy, self.resident, self.revision = root, policy, resident, revision
        self.on_progress = on_progress
        self.last: Report | None = None  # of the last refresh
        self.rebuilt = ""  # why the index was made anew meanwhile
        # What one question loads for the next; its keys name the state that it is of.
        self.kept: dict[str, Any] = resident.kept if resident is not None else {}
        self._configuration: Configuration | None = None
        self._place: Place | None = None
        self._registry: Registry | None = None
        self._closed = False

    def renew(self) -> Index:
        """Another of the same root and policy, that knows nothing yet."""
        return Index(self.root, self.policy, resident=self.resident, revision=self.revision)

    def at(self, ref: str) -> Index:
        """That of a revision of the same repository, named as git names it, with or without `rev:` before it; `latest`
        is the work tree. UsageError where there is none."""
        from cq.indexing.revision import resolve_revision

        revision = None if ref == "latest" else resolve_revision(self.root, ref.removeprefix("rev:"))
        return Index(self.root, self.policy, on_progress=self.on_progress, resident=self.resident, revision=revision)

    def find_parting(self, one: str, other: str) -> str:
        """The commit from which two revisions went apart."""
        from cq.indexing.revision import resolve_parting

        return resolve_parting(self.root, one, other)

    @property
    def name(self) -> str:
        """What the tree is called in the index."""
        from cq.store.prefix import name_tree

        return name_tree(self.root, self.revision)

    def close(self) -> None:
        self._closed = True
        if self._registry is not None:
            from cq.providers.sessions import release_sessions

            self._registry = None
            release_sessions(self.root)
        if self._place is not None and self._place.temporary:
            _remove_folder(os.fspath(self._place.file.parent), os.getpid())
            self._place = None

    def check_open(self) -> None:
        if self._closed:
            raise StoreError("the workspace is closed", hint="ask within its `with` block")

    def config(self) -> Configuration:
        """Every setting with its source; ConfigError or UsageError for one that cannot be taken."""
        from cq.indexing.config import load_config

        if self._configuration is None:
            policy = self.policy
            self._configuration = load_config(
                self.root, policy.overrides, index_dir=policy.index_dir, root_source=policy.root_source
            )
        return self._configuration

    def reload_config(self) -> CqError | None:
        """Reads the settings again; where they cannot be taken, those from before hold, and why is returned."""
        before, self._configuration = self._configuration, None
        try:
            self.config()
        except CqError as error:
            self._configuration = before
            return error
        return None

    @property
    def place(self) -> Place:
        self.check_open()
        if self._place is None:
            import weakref

            from cq.indexing.location import find_base, open_place

            config = self.config()
            self._place = open_place(find_base(self.root, config.index.dir, config.source("index.dir")), self.root)
            if self._place.temporary:
                weakref.finalize(self, _remove_folder, os.fspath(self._place.file.parent), os.getpid())
        return self._place

    @property
    def settings(self) -> Settings:
        from cq.indexing.config import make_settings

        folder = self.place.file.parent
        inside = folder.relative_to(self.root).as_posix() if folder.is_relative_to(self.root) else ""
        words = self.config().find.profile != "vector_only"
        config = self.config()
        return make_settings(config.index, leave_out=inside, words=words, history_mb=config.history.max_mb)

    @property
    def artifacts(self) -> ArtifactStore:
        """What was too heavy for recent answers."""
        from cq.store.overflow import STORES

        return STORES[self.config().artifacts.store](self.place.file)

    @property
    def providers(self) -> Registry:
        """Language servers and what else can be asked beside the index. None is started before a question needs it;
        they end with the last index of this root, and in a process that lives on with the process."""
        self.check_open()
        if self._registry is None:
            from cq.indexing.location import find_cache_dir
            from cq.providers.registry import get_registry
            from cq.providers.sessions import hold_sessions

            cache = find_cache_dir()
            tools = cache / "tools" if cache else None
            self._registry = get_registry(self.root, self.config().providers, tools=tools, trusted=self.policy.trusted)
            hold_sessions(self.root)
        return self._registry

    def refresh(
        self,
        *,
        full: bool = False,
        wait: bool = False,
        verify: bool = False,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Report:
        """See Workspace.refresh."""
        from cq.indexing.refresh import refresh

        settings, started = self.settings, time.time_ns()
        report = refresh(
            self.place.file, self.root, settings, full=full, wait=wait, verify=verify, revision=self.revision,
            on_progress=on_progress or self.on_progress,
        )  # fmt: skip
        if not report.busy and self.revision is None:
            _touch(self._stamp_file(settings), started)
            if self.config().find.profile == "lexical_only":
                from cq.indexing.embedding import drop_vectors

                drop_vectors(self.place.file, self.root)
        self.last = report
        self.rebuilt = report.rebuilt or self.rebuilt
        return report

    def keep_fresh(self, *, wait: bool = False) -> str:
        """Does what the policy says before a question; returns how fresh the answer may call itself. With `wait` for
        what another process is writing: an export has no place to say that it is of the last generation."""
        self.check_open()
        if not self.policy.auto_refresh:
            return "compared"
        if self.revision is not None:
            self.refresh(wait=True)
            return "refreshed"
        if self.policy.max_stale > 0 and self._is_recent():
            return "recent"
        if self.resident is not None and self.resident.is_unchanged(self):
            return "refreshed"
        report = self.refresh()
        if report.busy and (wait or not report.generation):
            # Nothing to answer from yet: the one case where a question waits.
            report = self.refresh(wait=True)
        if self.resident is not None and not report.busy:
            self.resident.note_refresh(self)
        return "refreshed"

    def mending(self, ask: Callable[[], _T]) -> _T:
        """What a damaged index says may fail anywhere in a question: the index is looked at then, made anew if it is
        damaged, and asked again."""
        try:
            return ask()
        except MemoryError:
            raise
        except Exception as error:
            if (isinstance(error, CqError) and not isinstance(error, StoreError)) or self.mend() is None:
                raise
        # Also where no damage is left: another process may have mended it first.
        return ask()

    def mend(self) -> Report | None:
        """Makes anew what is damaged; None where nothing may be written."""
        return self.refresh(verify=True, wait=True) if self.policy.auto_refresh and not self._closed else None

    @contextmanager
    def reading(self) -> Iterator[tuple[Reader, Tree]]:
        """A connection of its own for every question, so that two iterations may run side by side."""
        from cq.store import database
        from cq.store.warm import open_reader

        index = self.place.file
        try:
            with open_reader(index, self.name, self.resident and self.resident.readers) as reader:
                tree = reader.tree()
                if tree is None or not tree.generation:
                    what = f"the revision {self.revision.ref}" if self.revision else f"{self.root}"
                    raise StoreError(f"{what} is not indexed yet", hint="`cq index` does it")
                yield reader, tree
        except database.DatabaseError as error:
            raise database.explain(error, index) from None

    def has_tree(self) -> bool:
        try:
            with self.reading():
                return True
        except StoreError:
            return False

    def name_state(self, tree: Tree) -> tuple[object, ...]:
        """Differs where anything in the tree, or the index itself, is another."""
        from cq.store import database

        index = self.place.file
        return os.fspath(index), *database.identify(index), tree.id, tree.generation

    def find_watched(self) -> set[str]:
        """Everything whose change could make a refresh find something: directories, and the rules beside the tree."""
        with self.reading() as (reader, tree):
            listed = msgspec.msgpack.decode(tree.listing, type=_Listed)
            names = {path for path, _, _ in reader.stats(tree.id).values()} | reader.skips(tree.id).keys()
        folders = {name.rpartition("/")[0] for name in names} | listed.directories.keys()
        return {f"{self.root}/{folder}".rstrip("/") or "/" for folder in folders} | listed.watched.keys()

    def find_outside(self) -> list[str]:
        """The files that decide what is listed and lie beside the tree, or may: what a link leads to."""
        if not self.has_tree():
            return []
        with self.reading() as (_, tree):
            watched = msgspec.msgpack.decode(tree.listing, type=_Listed).watched
        return [path for path in watched if not path.startswith(f"{self.root}/") or os.path.islink(path)]  # noqa: PTH114

    def _is_recent(self) -> bool:
        try:
            age = time.time_ns() - self._stamp_file(self.settings).stat().st_mtime_ns
        except OSError:
            return False
        return 0 <= age <= self.policy.max_stale * 1e9 and self.has_tree()

    def _stamp_file(self, settings: Settings) -> Path:
        """Its time is that of the last successful check of this root with these settings."""
        from cq.source.read import content_hash

        name = content_hash(os.fsencode(self.root) + settings.key().encode())
        return self.place.file.parent / f"{name}.checked"


class _Listed(msgspec.Struct, frozen=True):
    """What a stored listing depends on."""

    directories: dict[str, Any] = {}
    watched: dict[str, Any] = {}


def _touch(stamp: Path, time_ns: int) -> None:
    try:
        stamp.touch(mode=0o600)
        os.utime(stamp, ns=(time_ns, time_ns))
    except OSError:
        return  # without it the next question checks again


def _remove_folder(folder: str, process: int) -> None:
    import shutil

    if os.getpid() == process:  # a worker that was forked must not take it from its parent
        shutil.rmtree(folder, ignore_errors=True)


def find_root(root: str | Path | None = None) -> Path:
    """As given, else `CQ_ROOT`, else the repository around the working directory; UsageError where that is all that a
    user has."""
    given = root or os.environ.get("CQ_ROOT")
    if given:
        return Path(given).resolve()
    from cq.source import repository

    return Path(repository.check_root(repository.find_root(os.fspath(Path.cwd()))))
