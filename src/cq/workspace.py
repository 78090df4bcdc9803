"""The façade: open a root, ask it questions. One method per question, plain data back."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from threading import Event
from types import FunctionType, TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, cast

import msgspec

from cq.model.config import Configuration
from cq.model.errors import CqError, SourceError, StoreError, UsageError
from cq.model.facts import Call, Chunk, FileFacts, Symbol
from cq.model.location import Location
from cq.model.source import Problem, Skip, SourceFile
from cq.model.status import Check, Degraded, Freshness, Status
from cq.source import repository

if TYPE_CHECKING:
    from cq.answers.page import Page
    from cq.indexing.config import Overrides
    from cq.indexing.embedding import EmbedReport
    from cq.indexing.ingest import IngestReport
    from cq.indexing.location import Place
    from cq.indexing.precise import PreciseReport
    from cq.indexing.refresh import Progress, Report, Settings
    from cq.model.answer import Answer, ArtifactRef, Target
    from cq.model.artifact import ExportReport, Validation
    from cq.model.embedding import EmbeddingState
    from cq.model.find import FindAnswer
    from cq.model.history import History
    from cq.model.plan import AnyStep, Plan
    from cq.providers.registry import Registry
    from cq.query import PlainWords, Query
    from cq.questions.bytecode import BytecodeOptions
    from cq.questions.calls import CallsOptions
    from cq.questions.diagnostics import DiagnosticsOptions
    from cq.questions.exceptions import ExceptionsOptions
    from cq.questions.find import FindOptions
    from cq.questions.find.semantic import Semantic
    from cq.questions.graph import GraphOptions
    from cq.questions.hover import HoverOptions
    from cq.questions.impact import ImpactOptions
    from cq.questions.imports import ImportsOptions
    from cq.questions.lsp import LspOptions
    from cq.questions.neighborhood import Found, NeighborhoodOptions
    from cq.questions.path import PathOptions
    from cq.questions.q import QueryOptions
    from cq.questions.rank import RankOptions
    from cq.questions.read import ReadOptions
    from cq.questions.references import ReferencesOptions
    from cq.questions.run import ReportOptions, RunOptions
    from cq.questions.scopes import ScopesOptions
    from cq.questions.search import SearchOptions
    from cq.questions.side_effects import EffectsOptions
    from cq.questions.sig_impact import SignatureOptions
    from cq.questions.types import TypesOptions
    from cq.snapshot.files import DiskFiles, Files, IndexedFiles
    from cq.snapshot.relations import Relations
    from cq.snapshot.servers import Servers
    from cq.snapshot.target import Definition
    from cq.store.overflow import ArtifactStore, Overflow, StoredArtifact
    from cq.store.read import Reader, Tree

_T = TypeVar("_T")
_W = TypeVar("_W", bound="Workspace")
_SOON_BYTES = 3_000_000  # a tree up to this size is indexed before a first question is answered
_MOST_ANSWERS = 50  # kept from one question to the next
_READY_SECONDS = 600.0  # after a question, for the next one
_QUIET_SECONDS = 1.0  # without a change, until what changed is taken up unasked


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


def _mends(cls: type[_W]) -> type[_W]:
    """What a damaged index says may fail anywhere in a question: the index is looked at then, made anew if it is
    damaged, and asked again."""

    def wrap(ask: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(ask)
        def asking(self: Workspace, *args: Any, **options: Any) -> Any:
            try:
                return ask(self, *args, **options)
            except MemoryError:
                raise
            except Exception as error:
                if (isinstance(error, CqError) and not isinstance(error, StoreError)) or self._mend() is None:
                    raise
            # Also where no damage is left: another process may have mended it first.
            return ask(self, *args, **options)

        return asking

    for name, ask in list(vars(cls).items()):
        if isinstance(ask, FunctionType) and not name.startswith("_") and name not in _UNASKED:
            setattr(cls, name, wrap(ask))
    return cls


# Methods that ask nothing of the index, or mend it themselves.
_UNASKED = frozenset({"close", "facts", "languages", "config", "refresh", "watch", "doctor", "artifacts", "artifact"})


@_mends
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
        self._disk_seconds = 0.0
        self._disk: DiskFiles | None = None  # what an answer without an index came from
        self._on_progress: Callable[[Progress], None] | None = None
        self._configuration: Configuration | None = None
        self._place: Place | None = None
        self._closed = False
        self._last: Report | None = None
        self._rebuilt = ""  # why the index was made anew meanwhile
        self._shared: tuple[Reader, Tree, Relations] | None = None  # while a plan runs
        self._trusted = False
        self._registry: Registry | None = None

    @classmethod
    def open(
        cls,
        root: str | Path | None = None,
        *,
        index_dir: str | Path | None = None,
        auto_refresh: bool = True,
        max_stale: float = 0.0,
        disk_seconds: float = 0.0,
        trusted: bool = False,
        on_progress: Callable[[Progress], None] | None = None,
        **overrides: Unpack[Overrides],
    ) -> Self:
        """A root is taken as it is; without one it is `CQ_ROOT`, else the repository around the working directory.

        `auto_refresh=False` answers from the index as it lies; `max_stale` trusts a check that is at most so many
        seconds old; without an index, files are read for at most `disk_seconds`, if any. `trusted` lets the repository
        say how language servers are run, which can run its code. The rest overrules the configuration files. Nothing is
        read or written before it is needed.
        """
        given = root or os.environ.get("CQ_ROOT")
        path = Path(given).resolve() if given else check_root(find_root(Path.cwd()))
        if not path.is_dir():
            what = "is not a directory" if path.exists() else "does not exist"
            raise SourceError(f"the root {given} {what}", hint="give the directory that holds the code")
        workspace = cls(path)
        workspace._root_source = "flag" if root else "environment CQ_ROOT" if given else "default"
        workspace._index_dir = os.fspath(index_dir) if index_dir else ""
        workspace._overrides = overrides
        workspace._auto_refresh = auto_refresh
        workspace._max_stale = max_stale
        workspace._disk_seconds = disk_seconds
        workspace._trusted = trusted
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
        if self._registry is not None:
            from cq.providers.sessions import release_sessions

            self._registry = None
            release_sessions(self.root)
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
        from cq.language import all_languages

        rows: list[LanguageRow] = []
        for name, each in all_languages().items():
            if each.grammar:
                extensions = tuple(f".{suffix}" for suffix in (each.suffixes[0], *sorted(each.suffixes[1:])))
                rows.append(LanguageRow(name, each.label, extensions, each.grammar.replace("_", "-"), each.offers))
        return tuple(rows)

    def config(self) -> Configuration:
        """Every setting with its source; ConfigError or UsageError for one that cannot be taken."""
        from cq.indexing.config import load_config

        if self._configuration is None:
            self._configuration = load_config(
                self.root, self._overrides, index_dir=self._index_dir, root_source=self._root_source
            )
        return self._configuration

    @property
    def providers(self) -> Registry:
        """Language servers and what else can be asked beside the index. None is started before a question needs it;
        they end with the last workspace of this root, and in a process that lives on with the process."""
        self._check_open()
        if self._registry is None:
            from cq.indexing.location import find_cache_dir
            from cq.providers.registry import get_registry
            from cq.providers.sessions import hold_sessions

            cache = find_cache_dir()
            tools = cache / "tools" if cache else None
            self._registry = get_registry(self.root, self.config().providers, tools=tools, trusted=self._trusted)
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
        """Brings the index up to date, whatever the policy. `full` reads and parses everything again; `verify` looks
        for damage even where nothing points to it.

        Where another process is writing, `wait` waits for it; else the report says `busy` and the last generation
        stands. Safe to interrupt or to kill: what was there before is there after.
        """
        import time

        from cq.indexing.refresh import refresh

        settings, started = self._settings(), time.time_ns()
        place = self._open_place()
        report = refresh(
            place.file, self.root, settings, full=full, wait=wait, verify=verify,
            on_progress=on_progress or self._on_progress,
        )  # fmt: skip
        if not report.busy:
            _touch(self._stamp_file(settings), started)
            if self.config().find.profile == "lexical_only":
                from cq.indexing.embedding import drop_vectors

                drop_vectors(place.file, self.root)
        self._last = report
        self._rebuilt = report.rebuilt or self._rebuilt
        return report

    def _mend(self) -> Report | None:
        """After a question that failed: what was damaged is made anew."""
        if self._shared is not None or not self._auto_refresh or self._closed:
            return None  # the plan that this is a step of begins again, or nothing may be written
        return self.refresh(verify=True, wait=True)

    def resolve(
        self, *, seconds: float = 0.0, most: int = 0, on_progress: Callable[[Progress], None] | None = None
    ) -> PreciseReport:
        """Asks language servers what the calls mean that the index left open, within so many seconds and calls (0: no
        limit), and keeps what they say. What was asked is not asked again while the text is the same."""
        from cq.indexing.precise import resolve_precisely

        self._keep_fresh()
        tell = on_progress or self._on_progress or (lambda _: None)
        place = self._open_place()
        return resolve_precisely(place.file, self.root, self.providers, seconds=seconds, most=most, tell=tell)

    def status(self, *, embeddings: bool = False) -> Status:
        """What is indexed, how fresh it is, where it lies, what is degraded; with `embeddings`, what vectors there
        are."""
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
            status = read_status(reader, tree, self._open_place(), freshness, self._find_degraded(tree))
            if not embeddings:
                return status
            return msgspec.structs.replace(status, embeddings=self._describe_embeddings(reader, tree))

    def _describe_embeddings(self, reader: Reader, tree: Tree) -> EmbeddingState:
        from cq.indexing.embedding import describe_embeddings

        return describe_embeddings(self._open_place().file, reader, tree.id, self.config().find, self.config().models)

    def search(self, question: str | SearchOptions) -> Answer:
        """Every mention of a name or text, classed and ranked; a page of them, enriched. See SearchOptions."""
        from cq.questions.search import SearchOptions, search
        from cq.snapshot.files import IndexedFiles

        options = SearchOptions(question) if isinstance(question, str) else question
        with self._asking("search") as finish:
            if self._has_no_index():
                answer, heavy = search(self._disk_files(), options)
                return finish(answer, heavy)
            with self._reading() as (reader, tree):
                files = IndexedFiles(reader, tree)
                enrich = self._enrich(files, options.text, options.servers, options.page)
                answer, heavy = _remember(reader, options, lambda: search(files, options))
                return finish(enrich(answer), heavy, tree)

    def find(self, question: str | FindOptions, *, background: bool = False) -> FindAnswer:
        """Code about an idea, or the symbols that `symbol = A > b` names: ranked, connected, shown. See FindOptions.

        Vectors that are missing are made first if they are few; if not, words alone answer, and with `background` a
        process of its own makes them meanwhile (`embed` makes them now).
        """
        from cq.indexing.embedding import count_sent
        from cq.questions.find import FindOptions, find, note_sent
        from cq.questions.find.lookup import parse_lookup
        from cq.questions.find.semantic import Semantic

        options = FindOptions(question) if isinstance(question, str) else question
        options.settle(self.config().find)
        exact = parse_lookup(options.query) is not None
        plain = exact or options.mode == "lexical"
        by_words = not exact and options.mode != "semantic" and self.config().find.profile != "vector_only"
        if background and self._auto_refresh and by_words and not self._has_tree():
            first = self._find_before_index(options)
            if first is not None:
                return first
        with self._asking("find") as finish:
            if not plain:
                self._embed_few()
            with self._reading() as (reader, tree):
                key = self._name_state(tree)
                semantic = Semantic(key=key) if plain else self._prepare_vectors(reader, tree, background)
                relations = self._find_relations(reader, tree)
                index = self._open_place().file
                with count_sent(index, semantic.embedder, semantic.reranker) as sent:
                    answer = find(relations, reader, tree, options, self.config().find, semantic)
                if sent:
                    answer = note_sent(answer, sent)
                if background and answer.summary.get("backend", semantic.backend) != semantic.backend:
                    self._enqueue_vectors(tree)  # which makes its graphs as well
                return cast("FindAnswer", finish(answer, tree=tree))

    def _name_state(self, tree: Tree) -> tuple[object, ...]:
        """Differs where anything in the tree, or the index itself, is another."""
        from cq.store import database

        index = self._open_place().file
        return os.fspath(index), *database.identify(index), tree.id, tree.generation

    def _find_before_index(self, options: FindOptions) -> FindAnswer | None:
        """An answer from the disk where a first index would take long; it is begun by a process of its own. None where
        it is soon done."""
        import time

        from cq import __version__
        from cq.indexing.embedding import start_index
        from cq.questions.find import find_without_index

        started = time.perf_counter()
        files = self._disk_files()
        place = self._open_place()
        if place.temporary or files.count_bytes() < _SOON_BYTES:
            return None
        why = start_index(place.file, self.root, self._index_dir)
        note = why or "the index is being made in the background; ask again for all of it"
        answer = find_without_index(files.candidates(None), options, self.config().find, note)
        elapsed = round((time.perf_counter() - started) * 1000, 1)
        return msgspec.structs.replace(
            answer, run=msgspec.structs.replace(answer.run, version=__version__, elapsed_ms=elapsed)
        )

    def embed(self, *, on_progress: Callable[[Progress], None] | None = None) -> EmbedReport:
        """Brings the index up to date, then the vectors: those of chunks whose text changed, nothing else."""
        from cq.indexing.embedding import embed_tree, get_embedder

        self._keep_fresh()
        self._check_profile()
        tell = on_progress or self._on_progress
        models = self.config().models
        report = embed_tree(
            self._open_place().file, self.root, get_embedder(models), backend=self.config().find.backend,
            on_progress=tell,
        )  # fmt: skip
        price = models.voyage.price_per_million if models.embedder == "voyage" else models.openai.price_per_million
        return msgspec.structs.replace(report, cost=report.tokens * price / 1e6) if report.tokens and price else report

    def _check_profile(self) -> None:
        if self.config().find.profile == "lexical_only":
            hint = "set profile in [find] of cq.toml to 'default'"
            raise UsageError("the profile 'lexical_only' has no vectors", hint=hint)

    def _embed_few(self) -> None:
        """Makes the vectors that are missing where a question hardly notices; never fails one."""
        from cq.indexing.embedding import INLINE, embed_tree, get_embedder, measure_coverage

        models = self.config().models
        # No question waits for a service.
        if self.config().find.profile == "lexical_only" or models.embedder != "local":
            return
        embedder = get_embedder(models)
        with self._reading() as (reader, tree):
            coverage = measure_coverage(reader, tree.id, embedder.identity, self._name_state(tree))
        if 0 < coverage.missing <= INLINE:
            with suppress(OSError, StoreError):
                embed_tree(self._open_place().file, self.root, embedder, wait=False)

    def _prepare_vectors(self, reader: Reader, tree: Tree, background: bool) -> Semantic:
        """What a question in words can be ranked with, and what is missing for it."""
        from cq.embed.backend import FOLDER, choose_backend
        from cq.indexing.embedding import get_embedder, get_reranker, measure_coverage, read_failure
        from cq.questions.find.semantic import Semantic

        key = self._name_state(tree)
        if self.config().find.profile == "lexical_only":
            return Semantic("semantic: off, the profile is lexical_only", key=key)
        models, place = self.config().models, self._open_place()
        embedder = get_embedder(models)
        coverage = measure_coverage(reader, tree.id, embedder.identity, key)
        note = ""
        if coverage.missing and background and not place.temporary:
            why = self._enqueue_vectors(tree)
            note = f"semantic: building {coverage.percent} %" + (f" ({why})" if why else "")
        elif coverage.missing:
            note = f"semantic: {coverage.percent} % of the vectors are there (`cq index --embed` makes the rest)"
        if coverage.missing and (failure := read_failure(place.file)):
            note += f"; the last attempt failed: {failure}"
        if coverage.others:
            note += "; those there are of another embedder"
        if not coverage.ready:
            return Semantic(note, key=key)
        backend = choose_backend(self.config().find.backend, coverage.total)
        return Semantic(note, embedder, get_reranker(models), key, backend, place.file.parent / FOLDER)

    def _enqueue_vectors(self, tree: Tree) -> str:
        """Has a process of its own make what is missing; says why not, "" if it is on its way."""
        from cq.indexing.embedding import FORMAT_VERSION, EmbeddingJob, enqueue, get_embedder

        place, root = self._open_place(), os.fspath(self.root)
        if place.temporary:
            return "the index is temporary"
        identity = get_embedder(self.config().models).identity
        job = EmbeddingJob(FORMAT_VERSION, os.fspath(place.file), root, tree.generation, tree.config, identity)
        return enqueue(place.file, job)

    def calls(self, question: str | CallsOptions) -> Answer:
        """Every call site of a function or method, with what is passed and from where. See CallsOptions."""
        from cq.questions.calls import CallsOptions, find_calls
        from cq.snapshot.relations import note_unlinked

        options = CallsOptions(question) if isinstance(question, str) else question
        with self._asking("calls") as finish:
            if self._has_no_index():
                return finish(find_calls(self._disk_files(), options))
            with self._reading() as (reader, tree):
                relations = self._find_relations(reader, tree)
                enrich = self._enrich(relations.files, options.target, options.servers, options.page)
                answer, _ = _remember(reader, options, lambda: (find_calls(relations.files, options, relations), {}))
                return finish(note_unlinked(relations.files, enrich(answer)), tree=tree)

    def graph(self, question: str | GraphOptions) -> Answer:
        """What a definition depends on and what depends on it, within some steps. See GraphOptions."""
        from cq.questions.graph import GraphOptions, find_graph

        options = GraphOptions(question) if isinstance(question, str) else question
        return self._relate("graph", lambda relations: find_graph(relations, options))

    def path(self, question: PathOptions) -> Answer:
        """How one definition reaches another: the shortest chains of calls."""
        from cq.questions.path import find_path

        return self._relate("path", lambda relations: find_path(relations, question))

    def impact(self, question: str | ImpactOptions) -> Answer:
        """What depends on a definition, and so may break with it. See ImpactOptions."""
        from cq.questions.impact import ImpactOptions, find_impact

        options = ImpactOptions((question,)) if isinstance(question, str) else question
        return self._relate("impact", lambda relations: find_impact(relations, options))

    def sig_impact(self, question: SignatureOptions) -> Answer:
        """Which call sites a new signature would break."""
        from cq.questions.sig_impact import find_signature_impact

        return self._relate("sig-impact", lambda relations: find_signature_impact(relations, question))

    def imports(self, question: ImportsOptions | None = None) -> Answer:
        """Which file imports which, in cycles or not, and what comes from outside."""
        from cq.questions.imports import ImportsOptions, find_imports

        return self._relate("imports", lambda relations: find_imports(relations, question or ImportsOptions()))

    def types(self, question: str | TypesOptions) -> Answer:
        """The supertypes, subtypes and members of a type."""
        from cq.questions.types import TypesOptions, find_types

        options = TypesOptions(question) if isinstance(question, str) else question
        return self._relate("types", lambda relations: find_types(relations, options))

    def hover(self, question: str | HoverOptions) -> Answer:
        """The signature or type of a name, and its documentation; by a language server where there is one."""
        from cq.questions.hover import HoverOptions, find_hover

        options = HoverOptions(question) if isinstance(question, str) else question
        return self._consult(
            "hover", options.servers, lambda relations, servers: find_hover(relations, servers, options)
        )

    def lsp(self, question: LspOptions) -> Answer:
        """What else a language server says: actions, macro expansion, signatures, symbols, … See LspOptions."""
        from cq.questions.lsp import find_said

        return self._consult("lsp", question.servers, lambda _, servers: find_said(servers, question))

    def references(self, question: str | ReferencesOptions) -> Answer:
        """Every mention that means a definition, by links, language servers and name. See ReferencesOptions."""
        from cq.questions.references import ReferencesOptions, find_references

        options = ReferencesOptions(question) if isinstance(question, str) else question
        return self._consult(
            "references", options.servers, lambda relations, servers: find_references(relations, servers, options)
        )

    def diagnostics(self, question: DiagnosticsOptions | None = None) -> Answer:
        """What is wrong: what the syntax says, and what language servers say. See DiagnosticsOptions."""
        from cq.questions.diagnostics import DiagnosticsOptions, find_diagnostics

        options = question or DiagnosticsOptions()
        return self._consult("diagnostics", options.servers, lambda _, servers: find_diagnostics(servers, options))

    def exceptions(self, question: str | ExceptionsOptions = "") -> Answer:
        """What is raised, what catches it, and what nobody does. See ExceptionsOptions."""
        from cq.questions.exceptions import ExceptionsOptions, find_exceptions

        options = ExceptionsOptions(question) if isinstance(question, str) else question
        return self._relate("exceptions", lambda relations: find_exceptions(relations, options))

    def side_effects(self, question: str | EffectsOptions = "") -> Answer:
        """What happens when modules are loaded. See EffectsOptions."""
        from cq.questions.side_effects import EffectsOptions, find_effects

        options = EffectsOptions(question) if isinstance(question, str) else question
        return self._relate("side-effects", lambda relations: find_effects(relations, options))

    def rank(self, question: RankOptions | None = None) -> Answer:
        """The definitions that most of the repository depends on."""
        from cq.questions.rank import RankOptions, find_ranks

        return self._relate("rank", lambda relations: find_ranks(relations, question or RankOptions()))

    def neighborhood(self, question: str | NeighborhoodOptions) -> Answer:
        """Everything around one symbol, in 17 sections; the whole of it in `Answer.bundle`. See NeighborhoodOptions."""
        from cq import __version__
        from cq.questions.neighborhood import NeighborhoodOptions, Sources
        from cq.questions.neighborhood.bundle import keep_stored
        from cq.questions.neighborhood.layout import lay_out
        from cq.questions.neighborhood.reuse import find_again
        from cq.snapshot.files import IndexedFiles
        from cq.snapshot.relations import note_unlinked
        from cq.source.git import find_head
        from cq.store import database

        options = NeighborhoodOptions(question) if isinstance(question, str) else question
        options = msgspec.structs.replace(
            options, order=options.order or self.config().neighborhood.section_order.order
        )
        with self._asking("neighborhood") as finish, self._reading() as (reader, tree):
            files = IndexedFiles(reader, tree)
            on = self._has_warm_servers() if options.lsp is None else options.lsp
            near = self._find_near(reader, tree, files)
            sources = Sources(self._read_history, near, self._ask_servers(files) if on else None)
            index = self._open_place().file
            place = (os.fspath(index), database.identify(index), os.fspath(self.root))
            head = f"{find_head(os.fspath(self.root))} {near and reader.last_vector(tree.id)}"
            found, _ = find_again(reader, tree, place, options, sources, head=head, version=__version__)
            refs = self._save(found.overflow)
            answer = lay_out(files, options, keep_stored(found, {ref.id for ref in refs}))
            answer = msgspec.structs.replace(answer, artifacts=tuple(refs))
            return finish(note_unlinked(files, answer), tree=tree)

    def _find_near(self, reader: Reader, tree: Tree, files: IndexedFiles) -> Callable[[Definition], Found] | None:
        """Asks the vectors that are there for definitions about the same; None where there are none."""
        if self.config().find.profile == "lexical_only" or not reader.last_vector(tree.id)[0]:
            return None

        def ask(subject: Definition) -> Found:
            from cq.indexing.embedding import get_embedder
            from cq.questions.neighborhood.near import find_near

            return find_near(reader, tree.id, files, get_embedder(), self._name_state(tree), subject)

        return ask

    def _consult(self, command: str, on: bool, ask: Callable[[Relations, Servers], Answer]) -> Answer:
        """A question about links and to language servers."""
        from cq.snapshot.relations import note_unlinked

        with self._asking(command) as finish, self._reading() as (reader, tree):
            relations = self._find_relations(reader, tree)
            answer = ask(relations, self._ask_servers(relations.files, on=on))
            return finish(note_unlinked(relations.files, answer), tree=tree)

    def _enrich(self, files: IndexedFiles, text: str, on: bool | None, page: Page) -> Callable[[Answer], Answer]:
        """Language servers are asked about the likely target from now on; what is returned adds what they say. Unless
        told to (`on`), only those that run already: to start one takes longer than the question."""
        if on is False or (on is None and (page.is_small or not self._has_warm_servers())):
            return lambda answer: answer
        from cq.answers.enrichment import Enrichment

        return Enrichment(self._ask_servers(files), text, "interactive" if on else "prefetch", page.measure).apply

    def _ask_servers(self, files: IndexedFiles, *, on: bool = True) -> Servers:
        """For one question; not `on`: the answers say that nobody was asked."""
        from cq.snapshot.servers import Servers, tell_changes

        if on:
            tell_changes(self.root, files)
        return Servers(files, self.providers if on else None)

    def _has_warm_servers(self) -> bool:
        """Whether one runs already, so that asking it costs milliseconds."""
        sessions = sys.modules.get("cq.providers.sessions")  # not loaded: none was started
        return sessions is not None and any(session.pid for session in sessions.find_sessions(self.root))

    def _relate(self, command: str, ask: Callable[[Relations], Answer]) -> Answer:
        """A question about links: they are in the index and nowhere else."""
        from cq.snapshot.relations import note_unlinked

        with self._asking(command) as finish, self._reading() as (reader, tree):
            relations = self._find_relations(reader, tree)
            return finish(note_unlinked(relations.files, ask(relations)), tree=tree)

    def read(self, question: str | ReadOptions) -> Answer:
        """The exact source of a symbol or of lines, or the outline of a file. See ReadOptions."""
        from cq.questions.read import ReadOptions, read

        options = ReadOptions(question) if isinstance(question, str) else question
        return self._look("read", lambda files: read(files, options))

    def scopes(self, question: str | ScopesOptions) -> Answer:
        """Which names a definition captures, keeps in cells, takes from the module or owns."""
        from cq.questions.scopes import ScopesOptions, find_scopes_of

        options = ScopesOptions(question) if isinstance(question, str) else question
        return self._look("scopes", lambda files: find_scopes_of(files, options))

    def bytecode(self, question: str | BytecodeOptions) -> Answer:
        """What a Python definition does with names once compiled, and what its handlers protect."""
        from cq.questions.bytecode import BytecodeOptions, find_bytecode

        options = BytecodeOptions(question) if isinstance(question, str) else question
        return self._look("bytecode", lambda files: find_bytecode(files, options))

    def _look(self, command: str, ask: Callable[[Files], Answer]) -> Answer:
        """A question that the files alone can answer."""
        from cq.snapshot.files import IndexedFiles

        with self._asking(command) as finish:
            if self._has_no_index():
                return finish(ask(self._disk_files()))
            with self._reading() as (reader, tree):
                return finish(ask(IndexedFiles(reader, tree)), tree=tree)

    def ask(self, options: msgspec.Struct) -> Answer:
        """The answer to the question that these options ask; UsageError for a struct that asks none."""
        from cq.questions.table import find_question

        name = find_question(options).name
        return getattr(self, name.replace("-", "_"))(options)

    def run(self, question: Plan | RunOptions) -> Answer:
        """Every step of a plan over one generation of the index, merged. `cq.questions.run.plan` reads plans."""
        from cq.model.plan import FindStep
        from cq.questions.run import RunOptions
        from cq.questions.run.plan import run_plan

        options = question if isinstance(question, RunOptions) else RunOptions(question)
        plan, place = options.plan, options.place
        with self._asking("run") as finish:
            if any(step.mode != "lexical" for step in plan.steps if isinstance(step, FindStep)):
                self._embed_few()  # what is written now is seen by the generation that is read next
            with self._sharing() as (tree, _):
                ask = self._ask_step(place)
                answer = run_plan(plan, ask, measure=options.measure, place=place)
            return finish(answer, tree=tree)

    def report(self, question: ReportOptions) -> Answer:
        """A plan by its name, for `function:…`, `class:…`, `module:…` or `path:…`."""
        from cq.questions.run.plan import run_plan
        from cq.questions.run.presets import find_subject, make_report, parse_subject
        from cq.snapshot.target import describe_target, say_nothing

        kind, name = parse_subject(question.target)
        place, measure = question.place, question.measure
        with self._asking("report") as finish:
            with self._sharing() as (tree, relations):
                about = find_subject(relations, kind, name)
                if about is None:
                    message = f"no {kind} is named {name!r} here"
                    return finish(say_nothing(relations.files, "report", name, message), tree=tree)
                plan, ask = make_report(question.preset, about, question.budget), self._ask_step(place)
                subject = describe_target(about.rows) if about.rows else None
                answer = run_plan(plan, ask, command="report", measure=measure, place=place, target=subject)
            return finish(answer, tree=tree)

    def _ask_step(self, place: tuple[str, ...]) -> Callable[[AnyStep, Page], Answer | str]:
        """What answers the steps of a plan, by the methods above; for one that is not there, why."""
        from cq.questions.run.steps import list_results, make_question

        def ask(step: AnyStep, page: Page) -> Answer | str:
            for folder in getattr(step, "inside", ()):
                if not Path(os.path.normpath(self.root / folder)).is_relative_to(self.root):
                    raise UsageError(f"in {folder} lies outside the root", hint="paths are named from the root")
                if not (self.root / folder).exists():
                    raise UsageError(f"in {folder} does not exist", hint="paths are named from the root")
            options = make_question(step, page, place, get_language_id)
            if options is None:
                return "this version of cq cannot do it yet"
            answer = self.ask(options)
            return list_results(answer, self._shared[2]) if self._shared else answer

        return ask

    def entry_points(self) -> tuple[Target, ...]:
        """Where programs begin, as far as names say it; the nearest to the root first."""
        from cq.snapshot.entry_points import find_entry_points
        from cq.snapshot.files import IndexedFiles

        self._keep_fresh()
        with self._reading() as (reader, tree):
            return find_entry_points(IndexedFiles(reader, tree))

    def complete(self, prefix: str, *, limit: int = 50) -> Completion:
        """Names and paths that begin so, by the index as it lies; a path up to its next directory. Milliseconds."""
        with self._reading() as (reader, tree):
            return Completion(*reader.complete(tree.id, prefix, limit))

    def artifacts(self) -> list[StoredArtifact]:
        """What recent answers were too short for, by name."""
        from cq.store import overflow

        return list(overflow.find(self._artifact_store()))

    def artifact(self, name: str, *, page: int = 0, limit: int = 50) -> Any:
        """The content of one of them, or of a list so many rows; UsageError for a name or a page that is none."""
        from difflib import get_close_matches

        from cq.store import overflow

        store = self._artifact_store()
        value = overflow.load(store, name)
        if value is None:
            close = get_close_matches(name, store.names(), n=1)
            hint = (f"did you mean {close[0]!r}? " if close else "") + "`cq artifact list` lists them"
            raise UsageError(f"there is no artifact {name!r}", hint=hint)
        return overflow.take_page(value, page, limit) if page else value

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

    def q(self, question: str | Query | QueryOptions) -> Answer:
        """Entities and code that match a query, as text or as a value of `cq.query`; QueryError for one that is none.
        See QueryOptions."""
        from cq.query.parse import find_words, get_query
        from cq.query.plan import make_plan
        from cq.questions.q import QueryOptions
        from cq.questions.q.answer import answer_query

        options = question if isinstance(question, QueryOptions) else QueryOptions(str(question))
        if options.page < 1 or options.limit < 0 or options.budget < 0:
            raise UsageError("a page is a number from 1, its limit and budget are numbers from 0")
        words = find_words(options.query)
        if words is not None:
            return self._search_words(words)
        named = self.config().queries
        plan = make_plan(options.query, named)
        if options.include or options.exclude or options.languages:
            whole = get_query(options.query)
            plan = make_plan(whole.narrowed(options.include, options.exclude, options.languages), named)
        with self._asking("q") as finish, self._reading() as (reader, tree):
            return finish(answer_query(reader, tree, plan, options), tree=tree)

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
        from cq.questions.export import export_index

        self._keep_fresh(wait=True)
        with self._reading() as (reader, tree):
            embeddings = self._describe_embeddings(reader, tree)
            return export_index(
                reader, tree, out, version=__version__, only=only, compress=compress, embeddings=embeddings
            )

    def export_scip(self, out: str | Path) -> ExportReport:
        """Writes definitions, certain references and relationships as a SCIP index into the file `out`."""
        from cq import __version__
        from cq.questions.export.scip import export_scip

        self._keep_fresh(wait=True)
        with self._reading() as (reader, tree):
            return export_scip(reader, tree, out, version=__version__)

    def ingest(self, file: str | Path | None) -> IngestReport:
        """Takes a SCIP index as evidence of what calls mean, in place of one taken before; None: none any more."""
        from cq.indexing.ingest import ingest_scip

        self._keep_fresh(wait=True)
        return ingest_scip(self._open_place().file, self.root, None if file is None else Path(file))

    def validate(self, *, strict: bool = False, artifacts: str | Path | None = None) -> Validation:
        """Whether the index is whole; with `artifacts`, whether that export is."""
        from cq.questions.validate import validate_index
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

        tell = on_note or (lambda _: None)

        def refresh() -> Report:
            known, self._configuration = self._configuration, None
            try:
                self.config()
            except CqError as error:
                tell(f"{error}; what was set before holds")
                self._configuration = known
            return self.refresh()

        self.config()  # what is wrong from the beginning is an error
        return watch_tree(
            self.root,
            refresh,
            stop or Event(),
            ignore=self._open_place().file.parent,
            find_outside=self._find_outside,
            debounce_ms=debounce_ms,
            on_note=tell,
        )

    def doctor(self) -> tuple[Check, ...]:
        """The environment, the cache, the tools and the configuration, with what to do about each problem."""
        from cq.indexing.doctor import find_checks
        from cq.providers.programs import forget_failures

        forget_failures()
        return find_checks(self.root, self.config, lambda: self.providers, index_dir=self._index_dir)

    @contextmanager
    def _asking(self, command: str) -> Iterator[Callable[..., Answer]]:
        """Refreshes by the policy, then hands over what completes an answer: its run, its events, what overflows."""
        import time

        from cq import __version__
        from cq.indexing.pool import collect_later
        from cq.store.overflow import Overflow

        started = time.perf_counter()
        self._check_open()
        if self._auto_refresh:
            self._keep_fresh()

        def finish(
            answer: Answer,
            heavy: dict[str, Any] | None = None,
            tree: Tree | None = None,
        ) -> Answer:
            refs = self._save([Overflow.of(command, kind, value) for kind, value in (heavy or {}).items() if value])
            run = msgspec.structs.replace(
                answer.run, version=__version__, elapsed_ms=round((time.perf_counter() - started) * 1000, 1)
            )
            # What holds for the whole tree is said once, by the plan.
            events = (*answer.degraded, *(self._find_degraded(tree) if self._shared is None else ()))
            return msgspec.structs.replace(answer, run=run, artifacts=(*answer.artifacts, *refs), degraded=events)

        with collect_later():
            yield finish

    def _save(self, items: Sequence[Overflow]) -> list[ArtifactRef]:
        """Those that could be stored."""
        if not items or self._open_place().temporary:
            return []
        from cq.store.overflow import save

        store = self._artifact_store()
        return [ref for item in items if (ref := save(store, item))]

    def _read_history(self) -> History:
        from cq.indexing.history import read_history

        return read_history(self.root, self._open_place())

    def _artifact_store(self) -> ArtifactStore:
        from cq.store.overflow import STORES

        return STORES[self.config().artifacts.store](self._open_place().file)

    def _has_no_index(self) -> bool:
        """Nothing to answer from: never indexed and not to be now, or the first index is still being written."""
        return not self._auto_refresh and not self._has_tree()

    def _disk_files(self) -> DiskFiles:
        from cq.indexing.read import extract_source
        from cq.snapshot.files import DiskFiles
        from cq.source.files import find_files

        settings = self._settings()
        listing = find_files(
            self.root,
            include=settings.include,
            exclude=settings.exclude,
            max_bytes=settings.max_file_bytes,
            max_files=settings.max_files,
        )
        self._disk = DiskFiles(
            self.root, listing.files, extract_source, settings.max_file_bytes, seconds=self._disk_seconds
        )
        return self._disk

    def _keep_fresh(self, *, wait: bool = False) -> str:
        """Does what the policy says before a question; returns how fresh the answer may call itself. With `wait` for
        what another process is writing: an export has no place to say that it is of the last generation."""
        if self._shared is not None:
            return "refreshed"
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
        if report.busy and (wait or not report.generation):
            # Nothing to answer from yet: the one case where a question waits.
            report = self.refresh(wait=True)
        if key and not report.busy:
            events.note_refresh(key, self._find_ground())
            _asked[:] = [] if self._open_place().temporary else [(key, self)]
        return "refreshed"

    def _stay_ready(self, key: tuple[str, str, str]) -> Iterator[float]:
        """See stay_ready."""
        import time

        from cq.indexing import events
        from cq.store import warm

        until, due = time.monotonic() + _READY_SECONDS, 0.0
        while time.monotonic() < until:
            if events.has_news(key):
                yield _QUIET_SECONDS
                continue
            started = time.monotonic()
            if not events.is_unchanged(key) or started > due:
                if not self.refresh().busy:
                    events.note_refresh(key, self._find_ground())
                took = time.monotonic() - started
                due = started + max(events.TRUST_SECONDS * 2 / 3, 100 * took)
                yield 0.0
            with self._reading() as (reader, tree):
                if reader.memory is not None and "ready" not in reader.memory:
                    relations = self._find_relations(reader, tree)
                    for path in relations.files.hold_all():
                        relations.documents.load(path)
                        if warm.measure() > warm.READY_BYTES:
                            break
                        yield 0.0
                    reader.memory["ready"] = True
            if not events.is_watched(key):
                return
            yield _QUIET_SECONDS

    def _find_ground(self) -> set[str]:
        """Everything whose change could make a refresh find something: directories, and the rules beside the tree."""
        with self._reading() as (reader, tree):
            listed = msgspec.msgpack.decode(tree.listing, type=_Listed)
            names = {path for path, _, _ in reader.stats(tree.id).values()} | reader.skips(tree.id).keys()
        folders = {name.rpartition("/")[0] for name in names} | listed.directories.keys()
        return {f"{self.root}/{folder}".rstrip("/") or "/" for folder in folders} | listed.watched.keys()

    def _find_outside(self) -> list[str]:
        """The files that decide what is listed and lie beside the tree, or may: what a link leads to."""
        if not self._has_tree():
            return []
        with self._reading() as (_, tree):
            watched = msgspec.msgpack.decode(tree.listing, type=_Listed).watched
        return [path for path in watched if not path.startswith(f"{self.root}/") or os.path.islink(path)]  # noqa: PTH114

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
        words = self.config().find.profile != "vector_only"
        return make_settings(self.config().index, leave_out=inside, words=words)

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
        from cq.store.warm import open_reader

        if self._shared is not None:
            yield self._shared[:2]
            return
        index = self._open_place().file
        try:
            with open_reader(index, os.fspath(self.root)) as reader:
                tree = reader.tree()
                if tree is None or not tree.generation:
                    raise StoreError(f"{self.root} is not indexed yet", hint="`cq index` does it")
                yield reader, tree
        except database.DatabaseError as error:
            raise database.explain(error, index) from None

    @contextmanager
    def _sharing(self) -> Iterator[tuple[Tree, Relations]]:
        """One refresh, one generation and one set of what was read, for all questions inside."""
        with self._reading() as (reader, tree):
            relations = self._find_relations(reader, tree)
            self._shared = (reader, tree, relations)
            try:
                yield tree, relations
            finally:
                self._shared = None

    def _find_relations(self, reader: Reader, tree: Tree) -> Relations:
        from cq.snapshot.files import IndexedFiles
        from cq.snapshot.relations import Relations

        return self._shared[2] if self._shared else Relations(IndexedFiles(reader, tree))

    def _find_degraded(self, tree: Tree | None) -> list[Degraded]:
        """What holds for every answer; without a tree it came from the disk."""
        if tree is None:
            message = "there is no index yet: files were read from disk"
            events = [Degraded("index", "warning", "no_index", message, "index")]
            if self._disk is not None and self._disk.unread:
                message = f"{self._disk.unread:,} files were not read in time"
                events.append(Degraded("index", "warning", "unread", message, "index"))
            return events + _note_partial({} if self._disk is None else self._disk.partial)
        from cq.store.kept import explain_lost, find_lost

        config, place = self.config(), self._open_place()
        events = [Degraded("config", "info", "configuration", note) for note in config.notes]
        if place.note:
            events.append(Degraded("location", "warning", "temporary_index", place.note))
        listed = msgspec.msgpack.decode(tree.listing, type=_Notes)
        category = "file_cap" if listed.truncated else "listing"
        events += [Degraded("listing", "warning", category, note) for note in listed.notes]
        events += _note_partial(tree.partial)
        if self._rebuilt:
            events.append(Degraded("refresh", "info", "rebuilt", f"the index was made anew: {self._rebuilt}"))
        lost = [": ".join(explain_lost(source)) for source in find_lost(place.file)]
        events += [Degraded("evidence", "warning", "lost", message) for message in lost]
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


def stay_ready() -> Generator[float, None, None]:
    """What a process that lives on does between questions, about the repository it was asked about last: takes up what
    changed once nothing moves, looks again before the kernel's word is not enough, and decodes what questions will ask
    for. Piece by piece; yields how many seconds nothing has to be done."""
    from copy import copy

    for key, asked in _asked:
        again = copy(asked)
        again._closed, again._configuration, again._registry = False, None, None
        again._on_progress = again._last = again._place = None
        with suppress(CqError, OSError), again:
            try:
                yield from again._stay_ready(key)
            except Exception:
                report = again._mend()
                if report is None or not report.rebuilt.startswith("damaged"):
                    raise


_asked: list[tuple[tuple[str, str, str], Workspace]] = []


def _remember(
    reader: Reader, question: Any, ask: Callable[[], tuple[Answer, dict[str, Any]]]
) -> tuple[Answer, dict[str, Any]]:
    """What was answered to the same question, where the reader is kept and nothing was written since."""
    if reader.memory is None:
        return ask()
    answers: dict[Any, tuple[Answer, dict[str, Any]]] = reader.memory.setdefault("answers", {})
    found = answers.pop(question, None) or ask()
    if not any(event.category in ("interrupted", "timeout") for event in found[0].degraded):
        answers[question] = found
    for old in list(answers)[:-_MOST_ANSWERS]:
        del answers[old]
    return found


def find_root(start: Path) -> Path:
    """The nearest directory at or above that holds a repository, else `start` itself."""
    return Path(repository.find_root(os.fspath(start)))


def check_root(root: Path) -> Path:
    """UsageError for what nobody means: all that a user has, or the whole disk, because that is where they happen to
    be."""
    home = Path(os.path.expanduser("~")).resolve()  # noqa: PTH111  home() raises where there is none
    if (home.is_relative_to(root) or root == Path(root.anchor)) and not is_repository(root):
        raise UsageError(f"{root} is no repository", hint="go into one, or name a directory with --root")
    return root


def is_repository(root: Path) -> bool:
    return repository.is_repository(os.fspath(root))


def get_language_id(name: str) -> str:
    """The id people mean by a name (`py`, `c++`); UsageError with the nearest one for a name that is none."""
    from difflib import get_close_matches

    from cq.language import all_languages
    from cq.source.language import find_language

    found = name if name in all_languages() else find_language(name)
    if found is None:
        close = get_close_matches(name.lower(), all_languages(), n=1)
        hint = (f"did you mean {close[0]!r}? " if close else "") + "`cq languages` lists them"
        raise UsageError(f"unknown language {name!r}", hint=hint)
    return found


class _Notes(msgspec.Struct, frozen=True):
    """What a stored listing has to say for itself; the rest of it is the pipeline's."""

    notes: tuple[str, ...] = ()
    truncated: bool = False


class _Listed(msgspec.Struct, frozen=True):
    """What a stored listing depends on."""

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


def _note_partial(partial: Mapping[str, Sequence[Problem]]) -> list[Degraded]:
    """Any answer may lack what such a file says."""
    if not partial:
        return []
    path, problems = next(iter(partial.items()))
    others = f", and {len(partial) - 1:,} more, which `cq doctor` lists" if len(partial) > 1 else ""
    message = f"{len(partial):,} files were understood only in part: {path} ({problems[0].message}){others}"
    message = message if len(partial) > 1 else message.replace("1 files were", "1 file was")
    return [Degraded("syntax", "warning", "partial", message, path)]


def _explain(skip: Skip) -> str:
    return skip.reason.replace("_", " ") + (f", {skip.detail}" if skip.detail else "")


_HINTS = {
    "link": "give the file that the link leads to",
    "link_out": "give --root with a directory that holds its target",
}
