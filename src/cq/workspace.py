"""The façade: open a root, ask it questions. One method per question, plain data back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

import msgspec

from cq.model.config import Configuration
from cq.model.errors import SourceError, StoreError, UsageError
from cq.model.facts import Call, Chunk, FileFacts, Symbol
from cq.model.location import Location
from cq.model.source import Problem, Skip, SourceFile
from cq.model.status import Check, Degraded, Freshness, Status

if TYPE_CHECKING:
    from cq.features.calls import CallsOptions
    from cq.features.files import DiskFiles
    from cq.features.graph import GraphOptions, PathOptions
    from cq.features.hierarchy import TypesOptions
    from cq.features.impact import ImpactOptions, SignatureOptions
    from cq.features.imports import ImportsOptions
    from cq.features.rank import RankOptions
    from cq.features.read import ReadOptions
    from cq.features.relations import Relations
    from cq.features.search import SearchOptions
    from cq.indexing.config import Overrides
    from cq.indexing.location import Place
    from cq.indexing.refresh import Progress, Report, Settings
    from cq.model.answer import Answer, ArtifactRef, Target
    from cq.model.artifact import ExportReport, Validation
    from cq.query import PlainWords, Query
    from cq.store.overflow import StoredArtifact
    from cq.store.read import Reader, Tree

_MARKS = (".git", ".jj", ".hg")
_T = TypeVar("_T")


class LanguageRow(msgspec.Struct, frozen=True):
    """What one language offers; `capabilities` are the facts users can count on."""

    id: str
    label: str
    extensions: tuple[str, ...]
    grammar: str
    capabilities: tuple[str, ...]


class IndexedFile(msgspec.Struct, frozen=True):
    path: str
    language: str
    size: int
    lines: int
    encoding: str
    hash: str  # xxh3-128 of the text
    counts: dict[str, int]  # of symbols, calls, imports, references, chunks, documents, problems
    problems: tuple[Problem, ...] = ()  # of decoding


class IndexedSymbol(msgspec.Struct, frozen=True):
    """A definition with its names that last. `document` is the path, or that of a document embedded in the file."""

    path: str
    document: str
    symbol_id: str
    chunk_uid: str
    symbol: Symbol


class IndexedCall(msgspec.Struct, frozen=True):
    path: str
    document: str
    call_site_id: str
    caller_chunk_uid: str
    location: Location
    call: Call


class IndexedChunk(msgspec.Struct, frozen=True):
    path: str
    document: str
    chunk_uid: str
    parent_chunk_uid: str  # "" at root level
    chunk: Chunk


class Completion(msgspec.Struct, frozen=True):
    """What a word may become; each in the order of its letters."""

    names: tuple[str, ...]
    paths: tuple[str, ...]


class Workspace:
    """A root and what can be asked about it.

    Questions about the index bring it up to date first, which costs milliseconds when nothing changed:

        with Workspace.open("path/to/repository") as workspace:
            print(workspace.status().files)
            for row in workspace.symbols():
                print(row.path, row.symbol.qualified_name, row.symbol_id)

    Every iteration sees one generation of the index, whatever is written meanwhile. Use one workspace per thread;
    any number of workspaces and processes may share an index.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._root_source = "flag"
        self._index_dir = ""
        self._overrides: Overrides = {}
        self._auto_refresh = True
        self._max_stale = 0.0
        self._on_progress: Callable[[Progress], None] | None = None
        self._configuration: Configuration | None = None
        self._place: Place | None = None
        self._closed = False
        self._last: Report | None = None

    @classmethod
    def open(
        cls,
        root: str | Path | None = None,
        *,
        index_dir: str | Path | None = None,
        auto_refresh: bool = True,
        max_stale: float = 0.0,
        on_progress: Callable[[Progress], None] | None = None,
        **overrides: Unpack[Overrides],
    ) -> Self:
        """A root is taken as it is; without one it is `CQ_ROOT`, else the repository around the working directory.

        `auto_refresh=False` answers from the index as it lies; `max_stale` trusts a check that is at most so many
        seconds old. The rest overrules the configuration files. Nothing is read or written before it is needed.
        """
        given = root or os.environ.get("CQ_ROOT")
        path = Path(given).resolve() if given else find_root(Path.cwd())
        if not path.is_dir():
            what = "is not a directory" if path.exists() else "does not exist"
            raise SourceError(f"the root {given} {what}", hint="give the directory that holds the code")
        workspace = cls(path)
        workspace._root_source = "flag" if root else "environment CQ_ROOT" if given else "default"
        workspace._index_dir = os.fspath(index_dir) if index_dir else ""
        workspace._overrides = overrides
        workspace._auto_refresh = auto_refresh
        workspace._max_stale = max_stale
        workspace._on_progress = on_progress
        return workspace

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Nothing can be asked of the index afterwards, and an iteration that is not at its end says so."""
        self._closed = True
        if self._place is not None and self._place.temporary:
            _remove_folder(os.fspath(self._place.file.parent), os.getpid())
            self._place = None

    def facts(
        self, path: str | Path, *, language: str | None = None, text: bytes | None = None
    ) -> tuple[SourceFile, FileFacts]:
        """What one file says about itself; with `text`, what that text would say under this path.

        A path counts from the working directory, else from the root. SourceError for what is not read as source.
        """
        from cq.indexing.read import decode_facts, read_facts

        if language is not None:
            language = get_language_id(language)
        if text is not None:
            read = decode_facts(text, os.fspath(path), language)
        else:
            read = read_facts(self.root, self._locate(os.fspath(path)), language=language)
        if isinstance(read, Skip):
            raise SourceError(f"{read.path} is not read: {_explain(read)}", hint=_HINTS.get(read.reason, ""))
        return read

    def languages(self) -> tuple[LanguageRow, ...]:
        """The capability table, in the order of the registry; variants that share everything but a name included."""
        from cq.source.language import BY_EXTENSION, EXTENSIONS
        from cq.syntax import LANGUAGES, get_language

        rows: list[LanguageRow] = []
        for name in LANGUAGES:
            language = get_language(name)
            if language is not None:
                grammar = language.grammar_module.replace("_", "-")
                others = sorted(f".{ending}" for ending, owner in BY_EXTENSION.items() if owner == name)
                extensions = tuple(dict.fromkeys((EXTENSIONS[name], *others)))
                rows.append(LanguageRow(name, language.label, extensions, grammar, tuple(language.capabilities)))
        return tuple(rows)

    def config(self) -> Configuration:
        """Every setting with its source; ConfigError or UsageError for one that cannot be taken."""
        from cq.indexing.config import load_config

        if self._configuration is None:
            self._configuration = load_config(
                self.root, self._overrides, index_dir=self._index_dir, root_source=self._root_source
            )
        return self._configuration

    def refresh(
        self, *, full: bool = False, wait: bool = False, on_progress: Callable[[Progress], None] | None = None
    ) -> Report:
        """Brings the index up to date, whatever the policy. `full` reads and parses everything again.

        Where another process is writing, `wait` waits for it; else the report says `busy` and the last generation
        stands. Safe to interrupt or to kill: what was there before is there after.
        """
        import time

        from cq.indexing.refresh import refresh

        settings, started = self._settings(), time.time_ns()
        place = self._open_place()
        report = refresh(
            place.file, self.root, settings, full=full, wait=wait, on_progress=on_progress or self._on_progress
        )
        if not report.busy:
            _touch(self._stamp_file(settings), started)
        self._last = report
        return report

    def status(self) -> Status:
        """What is indexed, how fresh it is, where it lies, and what is degraded."""
        from cq.indexing.status import find_changes, read_status

        check = self._keep_fresh()
        with self._reading() as (reader, tree):
            if check == "compared" or (check == "refreshed" and self._last and self._last.busy):
                changes = find_changes(reader, tree, self.root, self._settings())
                freshness = Freshness(
                    tree.generation, "compared", changes.added, changes.changed, changes.removed, bool(changes)
                )
            elif check == "recent":
                freshness = Freshness(tree.generation, check)
            else:
                freshness = Freshness(tree.generation, check, 0, 0, 0, False)
            if self._last and self._last.busy:
                freshness = msgspec.structs.replace(freshness, busy=True)
            return read_status(reader, tree, self._open_place(), freshness, self._find_degraded(tree))

    def search(self, question: str | SearchOptions) -> Answer:
        """Every mention of a name or text, classed and ranked; a page of them, enriched. See SearchOptions."""
        from cq.features.files import IndexedFiles
        from cq.features.search import SearchOptions, search

        options = SearchOptions(question) if isinstance(question, str) else question
        with self._asking("search") as finish:
            if self._has_no_index():
                answer, heavy = search(self._disk_files(), options)
                return finish(answer, heavy)
            with self._reading() as (reader, tree):
                answer, heavy = search(IndexedFiles(reader, tree), options)
                return finish(answer, heavy, tree)

    def calls(self, question: str | CallsOptions) -> Answer:
        """Every call site of a function or method, with what is passed and from where. See CallsOptions."""
        from cq.features.calls import CallsOptions, find_calls
        from cq.features.files import IndexedFiles
        from cq.features.relations import Relations

        options = CallsOptions(question) if isinstance(question, str) else question
        with self._asking("calls") as finish:
            if self._has_no_index():
                return finish(find_calls(self._disk_files(), options))
            with self._reading() as (reader, tree):
                files = IndexedFiles(reader, tree)
                return finish(find_calls(files, options, Relations(reader, tree, files)), tree=tree)

    def graph(self, question: str | GraphOptions) -> Answer:
        """What a definition depends on and what depends on it, within some steps. See GraphOptions."""
        from cq.features.graph import GraphOptions, find_graph

        options = GraphOptions(question) if isinstance(question, str) else question
        return self._relate("graph", lambda relations: find_graph(relations, options))

    def path(self, question: PathOptions) -> Answer:
        """How one definition reaches another: the shortest chains of calls."""
        from cq.features.graph import find_path

        return self._relate("path", lambda relations: find_path(relations, question))

    def impact(self, question: str | ImpactOptions) -> Answer:
        """What depends on a definition, and so may break with it. See ImpactOptions."""
        from cq.features.impact import ImpactOptions, find_impact

        options = ImpactOptions((question,)) if isinstance(question, str) else question
        return self._relate("impact", lambda relations: find_impact(relations, options))

    def sig_impact(self, question: SignatureOptions) -> Answer:
        """Which call sites a new signature would break."""
        from cq.features.impact import find_signature_impact

        return self._relate("sig-impact", lambda relations: find_signature_impact(relations, question))

    def imports(self, question: ImportsOptions | None = None) -> Answer:
        """Which file imports which, in cycles or not, and what comes from outside."""
        from cq.features.imports import ImportsOptions, find_imports

        return self._relate("imports", lambda relations: find_imports(relations, question or ImportsOptions()))

    def types(self, question: str | TypesOptions) -> Answer:
        """The supertypes, subtypes and members of a type."""
        from cq.features.hierarchy import TypesOptions, find_types

        options = TypesOptions(question) if isinstance(question, str) else question
        return self._relate("types", lambda relations: find_types(relations, options))

    def rank(self, question: RankOptions | None = None) -> Answer:
        """The definitions that most of the repository depends on."""
        from cq.features.rank import RankOptions, find_ranks

        return self._relate("rank", lambda relations: find_ranks(relations, question or RankOptions()))

    def _relate(self, command: str, ask: Callable[[Relations], Answer]) -> Answer:
        """A question about links: they are in the index and nowhere else."""
        from cq.features.files import IndexedFiles
        from cq.features.relations import Relations

        with self._asking(command) as finish, self._reading() as (reader, tree):
            return finish(ask(Relations(reader, tree, IndexedFiles(reader, tree))), tree=tree)

    def read(self, question: str | ReadOptions) -> Answer:
        """The exact source of a symbol or of lines, or the outline of a file. See ReadOptions."""
        from cq.features.files import IndexedFiles
        from cq.features.read import ReadOptions, read

        options = ReadOptions(question) if isinstance(question, str) else question
        with self._asking("read") as finish:
            if self._has_no_index():
                return finish(read(self._disk_files(), options))
            with self._reading() as (reader, tree):
                return finish(read(IndexedFiles(reader, tree), options), tree=tree)

    def entry_points(self) -> tuple[Target, ...]:
        """Where programs begin, as far as names say it; the nearest to the root first."""
        from cq.features.entry_points import find_entry_points
        from cq.features.files import IndexedFiles

        self._keep_fresh()
        with self._reading() as (reader, tree):
            return find_entry_points(IndexedFiles(reader, tree))

    def complete(self, prefix: str, *, limit: int = 50) -> Completion:
        """Names and paths that begin so, by the index as it lies; a path up to its next directory. Milliseconds."""
        with self._reading() as (reader, tree):
            names = reader.find_prefix(tree.id, prefix, limit)
            deep = reader.find_paths(tree.id, prefix, limit * 20)
            ends = (path.find("/", len(prefix)) + 1 or len(path) for path in deep)
            paths = dict.fromkeys(path[:end] for path, end in zip(deep, ends, strict=True))
            return Completion(tuple(names), tuple(paths)[:limit])

    def artifacts(self) -> list[StoredArtifact]:
        """What recent answers were too short for, by name."""
        from cq.store import overflow

        return list(overflow.find(self._open_place().file))

    def artifact(self, name: str) -> Any:
        """The content of one of them; UsageError for a name that is none."""
        from difflib import get_close_matches

        from cq.store import overflow

        index = self._open_place().file
        value = overflow.load(index, name)
        if value is None:
            close = get_close_matches(name, [item.id for item in overflow.find(index)], n=1)
            hint = (f"did you mean {close[0]!r}? " if close else "") + "`cq artifact list` lists them"
            raise UsageError(f"there is no artifact {name!r}", hint=hint)
        return value

    def files(self) -> Iterator[IndexedFile]:
        """Every indexed file, by path."""
        return self._rows(_find_files)

    def symbols(self) -> Iterator[IndexedSymbol]:
        """Every definition, by path, document and place."""
        return self._rows(_find_symbols)

    def call_sites(self) -> Iterator[IndexedCall]:
        """Every call site, by path, document and place."""
        return self._rows(_find_calls)

    def chunks(self) -> Iterator[IndexedChunk]:
        """Every chunk, the module chunk of each document first; by path, document and place."""
        return self._rows(_find_chunks)

    def text(self, path: str) -> bytes:
        """The UTF-8 text of an indexed file, as of the index; SourceError for a path that is not in it."""
        self._keep_fresh()
        with self._reading() as (reader, tree):
            file = reader.file(tree.id, path)
            if file is None:
                skip = reader.skips(tree.id).get(path)
                why = f": {_explain(skip[0])}" if skip else ""
                raise SourceError(f"{path} is not indexed{why}", hint="paths are named from the root")
            return reader.text(file.content)

    def q(
        self,
        query: str | Query,
        *,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        lang: Sequence[str] = (),
        limit: int = 0,
        page: int = 1,
        budget: int = 8000,
        everything: bool = False,
    ) -> Answer:
        """Entities and code that match a query, as text or as a value of `cq.query`; QueryError for one that is none.

        `include`, `exclude` and `lang` are globs=, exclude= and lang= beside it. A page holds at most `limit` matches
        (0: as fit 100 lines) and about `budget` tokens (0: any number); `everything` is one page.
        """
        from cq import __version__
        from cq.features.structural.answer import View, answer_query
        from cq.query.parse import find_words, get_query
        from cq.query.plan import make_plan

        if page < 1 or limit < 0 or budget < 0:
            raise UsageError("a page is a number from 1, its limit and budget are numbers from 0")
        words = find_words(query) if isinstance(query, str) else None
        if words is not None:
            return self._search_words(words)
        named = self.config().queries
        plan = make_plan(query, named)
        if include or exclude or lang:
            whole = get_query(query) if isinstance(query, str) else query
            plan = make_plan(whole.narrowed(include, exclude, lang), named)
        self._keep_fresh()
        with self._reading() as (reader, tree):
            view = View(limit, page, budget, everything)
            return answer_query(reader, tree, plan, view, version=__version__)

    def _search_words(self, words: PlainWords) -> Answer:
        """A query without any token is a search for its words."""
        answer = self.search(words.text)
        event = Degraded(
            "query", "info", "plain_words", "no part of this is key=value: it was searched for", words.text
        )
        return msgspec.structs.replace(answer, degraded=(event, *answer.degraded))

    def export(self, out: str | Path, *, only: Sequence[str] = (), compress: str | None = None) -> ExportReport:
        """Writes the index as artifacts into the directory `out`, all of one generation."""
        from cq import __version__
        from cq.features.export import export_index

        self._keep_fresh()
        with self._reading() as (reader, tree):
            return export_index(reader, tree, out, version=__version__, only=only, compress=compress)

    def export_scip(self, out: str | Path) -> ExportReport:
        """Writes definitions, certain references and relationships as a SCIP index into the file `out`."""
        from cq import __version__
        from cq.features.export.scip import export_scip

        self._keep_fresh()
        with self._reading() as (reader, tree):
            return export_scip(reader, tree, out, version=__version__)

    def validate(self, *, strict: bool = False, artifacts: str | Path | None = None) -> Validation:
        """Whether the index is whole; with `artifacts`, whether that export is."""
        from cq.features.validate import validate_index
        from cq.store.validate import validate_artifacts

        if artifacts is not None:
            return validate_artifacts(artifacts)
        self._keep_fresh()
        with self._reading() as (reader, tree):
            return validate_index(reader, tree, strict=strict)

    def watch(
        self, *, stop: Event | None = None, debounce_ms: int = 200, on_note: Callable[[str], None] | None = None
    ) -> Iterator[Report]:
        """Keeps the index fresh until `stop` is set; a report for every refresh that changed something."""
        from cq.indexing.watch import watch_tree

        return watch_tree(
            self.root,
            self.refresh,
            stop or Event(),
            ignore=self._open_place().file.parent,
            debounce_ms=debounce_ms,
            on_note=on_note or (lambda _: None),
        )

    def doctor(self) -> tuple[Check, ...]:
        """The environment, the cache, the tools and the configuration, with what to do about each problem."""
        from cq.indexing.doctor import find_checks

        return find_checks(self.root, self.config, index_dir=self._index_dir)

    @contextmanager
    def _asking(self, command: str) -> Iterator[Callable[..., Answer]]:
        """Refreshes by the policy, then hands over what completes an answer: its run, its events, what overflows."""
        import time

        from cq import __version__
        from cq.store import overflow

        started = time.perf_counter()
        self._check_open()
        if self._auto_refresh:
            self._keep_fresh()

        def finish(answer: Answer, heavy: dict[str, Any] | None = None, tree: Tree | None = None) -> Answer:
            place = self._open_place()
            refs: list[ArtifactRef] = []
            for kind, value in (heavy or {}).items():
                ref = None if place.temporary or not value else overflow.save(place.file, command, kind, value)
                refs += [ref] if ref else []
            run = msgspec.structs.replace(
                answer.run, version=__version__, elapsed_ms=round((time.perf_counter() - started) * 1000, 1)
            )
            events = (*answer.degraded, *(self._find_degraded(tree) if tree else ()))
            return msgspec.structs.replace(answer, run=run, artifacts=tuple(refs), degraded=events)

        yield finish

    def _has_no_index(self) -> bool:
        """Nothing to answer from: never indexed and not to be now, or the first index is still being written."""
        return not self._auto_refresh and not self._has_tree()

    def _disk_files(self) -> DiskFiles:
        from cq.features.files import DiskFiles
        from cq.indexing.read import extract_source
        from cq.source.files import find_files

        settings = self._settings()
        listing = find_files(
            self.root,
            include=settings.include,
            exclude=settings.exclude,
            max_bytes=settings.max_file_bytes,
            max_files=settings.max_files,
        )
        return DiskFiles(self.root, listing.files, extract_source, settings.max_file_bytes)

    def _keep_fresh(self) -> str:
        """Does what the policy says before a question; returns how fresh the answer may call itself."""
        if not self._auto_refresh:
            return "compared"
        if self._max_stale > 0 and self._is_recent():
            return "recent"
        from cq.indexing import events

        key = (
            (os.fspath(self._open_place().file), os.fspath(self.root), self._settings().key())
            if events.enabled
            else None
        )
        if key and events.is_unchanged(key):
            return "refreshed"
        report = self.refresh()
        if report.busy and not report.generation:
            # Nothing to answer from yet: the one case where a question waits.
            report = self.refresh(wait=True)
        if key and not report.busy:
            events.note_refresh(key, self._find_ground())
        return "refreshed"

    def _find_ground(self) -> set[str]:
        """Everything whose change could make a refresh find something: directories, and the rules beside the tree."""
        with self._reading() as (reader, tree):
            listed = msgspec.msgpack.decode(tree.listing, type=_Listed)
            names = {path for path, _, _ in reader.stats(tree.id).values()} | reader.skips(tree.id).keys()
        folders = {name.rpartition("/")[0] for name in names} | listed.directories.keys()
        return {f"{self.root}/{folder}".rstrip("/") or "/" for folder in folders} | listed.watched.keys()

    def _is_recent(self) -> bool:
        import time

        stamp = self._stamp_file(self._settings())
        try:
            age = time.time_ns() - stamp.stat().st_mtime_ns
        except OSError:
            return False
        return 0 <= age <= self._max_stale * 1e9 and self._has_tree()

    def _has_tree(self) -> bool:
        try:
            with self._reading():
                return True
        except StoreError:
            return False

    def _stamp_file(self, settings: Settings) -> Path:
        """Its time is that of the last successful check of this root with these settings."""
        from cq.source.read import content_hash

        name = content_hash(os.fsencode(self.root) + settings.key().encode())
        return self._open_place().file.parent / f"{name}.checked"

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("the workspace is closed", hint="ask within its `with` block")

    def _open_place(self) -> Place:
        self._check_open()
        if self._place is None:
            import weakref

            from cq.indexing.location import find_base, open_place

            config = self.config()
            self._place = open_place(find_base(self.root, config.index.dir, config.source("index.dir")), self.root)
            if self._place.temporary:
                weakref.finalize(self, _remove_folder, os.fspath(self._place.file.parent), os.getpid())
        return self._place

    def _settings(self) -> Settings:
        from cq.indexing.config import make_settings

        folder = self._open_place().file.parent
        inside = folder.relative_to(self.root).as_posix() if folder.is_relative_to(self.root) else ""
        return make_settings(self.config().index, leave_out=inside)

    def _rows(self, find: Callable[[Reader, Tree], Iterator[_T]]) -> Iterator[_T]:
        self._keep_fresh()

        def rows() -> Iterator[_T]:
            with self._reading() as (reader, tree):
                for row in find(reader, tree):
                    yield row
                    self._check_open()  # rather an error than fewer rows than there are

        return rows()

    @contextmanager
    def _reading(self) -> Iterator[tuple[Reader, Tree]]:
        """A connection of its own for every question, so that two iterations may run side by side."""
        from cq.store import database
        from cq.store.read import Reader

        index = self._open_place().file
        why = database.damage(index) if index.exists() else "missing"
        if why:
            raise StoreError(f"there is no index of {self.root} ({why})", hint="`cq index` makes one")
        try:
            with closing(Reader(database.connect(index), os.fspath(self.root))) as reader, reader:
                tree = reader.tree()
                if tree is None or not tree.generation:
                    raise StoreError(f"{self.root} is not indexed yet", hint="`cq index` does it")
                yield reader, tree
        except database.DatabaseError as error:
            raise database.explain(error, index) from None

    def _find_degraded(self, tree: Tree) -> list[Degraded]:
        config, place = self.config(), self._open_place()
        events = [Degraded("config", "info", "configuration", note) for note in config.notes]
        if place.note:
            events.append(Degraded("location", "warning", "temporary_index", place.note))
        listed = msgspec.msgpack.decode(tree.listing, type=_Listed)
        category = "file_cap" if listed.truncated else "listing"
        events += [Degraded("listing", "warning", category, note) for note in listed.notes]
        if self._last and self._last.rebuilt:
            events.append(Degraded("refresh", "info", "rebuilt", f"the index was made anew: {self._last.rebuilt}"))
        if self._last and self._last.busy:
            message = "another process is writing the index; this is the last generation"
            events.append(Degraded("refresh", "info", "busy", message))
        return events

    def _locate(self, path: str) -> Path:
        """Made absolute, links as they are: what a link leads to is for the reader to judge."""
        here, there = Path(os.path.abspath(path)), self.root / path  # noqa: PTH100  resolve() would follow links
        chosen = here if os.path.lexists(here) or not os.path.lexists(there) else there
        if not os.path.lexists(chosen):
            raise SourceError(f"{path} does not exist", hint="a path counts from the working directory or the root")
        if chosen.is_dir():
            raise SourceError(f"{path} is a directory", hint="give one file")
        if not chosen.is_relative_to(self.root):
            chosen = chosen.parent.resolve() / chosen.name  # the way to the root may lead through a link
        if not chosen.is_relative_to(self.root):
            raise SourceError(f"{path} lies outside the root", hint="give --root with a directory that holds it")
        return chosen


def find_root(start: Path) -> Path:
    """The nearest directory at or above that holds a repository, else `start` itself."""
    start = start.resolve()
    for folder in (start, *start.parents):
        if is_repository(folder):
            return folder
    return start


def is_repository(root: Path) -> bool:
    return any((root / mark).exists() for mark in _MARKS)


def get_language_id(name: str) -> str:
    """The id people mean by a name (`py`, `c++`); UsageError with the nearest one for a name that is none."""
    from difflib import get_close_matches

    from cq.source.language import EXTENSIONS, find_language

    found = name if name in EXTENSIONS else find_language(name)
    if found is None:
        close = get_close_matches(name.lower(), EXTENSIONS, n=1)
        hint = (f"did you mean {close[0]!r}? " if close else "") + "`cq languages` lists them"
        raise UsageError(f"unknown language {name!r}", hint=hint)
    return found


class _Listed(msgspec.Struct, frozen=True):
    """What a stored listing has to say for itself; the rest of it is the pipeline's."""

    notes: tuple[str, ...] = ()
    truncated: bool = False
    directories: dict[str, Any] = {}
    watched: dict[str, Any] = {}


def _find_files(reader: Reader, tree: Tree) -> Iterator[IndexedFile]:
    for file in reader.files(tree.id):
        yield IndexedFile(
            file.path, file.language, file.size, file.lines, file.encoding, file.hash, file.counts, file.problems
        )


def _find_symbols(reader: Reader, tree: Tree) -> Iterator[IndexedSymbol]:
    for path, document, facts, uids, ids, _ in _find_documents(reader, tree):
        for symbol, symbol_id in zip(facts.symbols, ids, strict=True):
            yield IndexedSymbol(path, document, symbol_id, uids[symbol.chunk], symbol)


def _find_calls(reader: Reader, tree: Tree) -> Iterator[IndexedCall]:
    from cq.identity import call_site_id
    from cq.model.location import LineTable

    text, lines = b"", LineTable(b"")
    for path, document, facts, uids, _, source in _find_documents(reader, tree):
        if source is not text:
            text, lines = source, LineTable(source)
        for call in facts.calls:
            # Code at root level belongs to the module chunk.
            caller = facts.symbols[call.scope].chunk if call.scope >= 0 else 0
            location = lines.location(path, call.start, call.end)
            yield IndexedCall(path, document, call_site_id(location, call.callee), uids[caller], location, call)


def _find_chunks(reader: Reader, tree: Tree) -> Iterator[IndexedChunk]:
    for path, document, facts, uids, _, _ in _find_documents(reader, tree):
        for chunk, uid in zip(facts.chunks, uids, strict=True):
            yield IndexedChunk(path, document, uid, uids[chunk.parent] if chunk.parent >= 0 else "", chunk)


def _find_documents(
    reader: Reader, tree: Tree
) -> Iterator[tuple[str, str, FileFacts, tuple[str, ...], tuple[str, ...], bytes]]:
    """(path, virtual path, facts, chunk uids, symbol ids, the file's text), outer documents before inner ones."""
    from cq.identity import identify

    for file in reader.files(tree.id):
        text, facts = reader.text(file.content), reader.facts(file.content)
        todo = [(facts, identify(file.path, text, facts))]
        while todo:
            facts, identity = todo.pop()
            yield file.path, identity.virtual_path, facts, identity.chunk_uids, identity.symbol_ids, text
            todo += reversed(tuple(zip(facts.embedded, identity.embedded, strict=True)))


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


def _explain(skip: Skip) -> str:
    return skip.reason.replace("_", " ") + (f", {skip.detail}" if skip.detail else "")


_HINTS = {
    "link": "give the file that the link leads to",
    "link_out": "give --root with a directory that holds its target",
}
