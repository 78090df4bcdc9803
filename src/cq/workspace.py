"""The façade: open a root, ask it questions. One method per question, plain data back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Self, TypeVar, Unpack

import msgspec

from cq.indexing.index import Index, Policy, find_root
from cq.model.errors import SourceError
from cq.questions.methods import Questions

if TYPE_CHECKING:
    from threading import Event
    from types import TracebackType

    from cq.answers.options import Options
    from cq.indexing.config import Overrides
    from cq.indexing.embedding import EmbedReport
    from cq.indexing.ingest import IngestReport
    from cq.indexing.precise import PreciseReport
    from cq.indexing.refresh import Progress, Report
    from cq.indexing.resident import Resident
    from cq.language import LanguageRow
    from cq.model.answer import Answer, Target
    from cq.model.artifact import ExportReport, Validation
    from cq.model.config import Configuration
    from cq.model.evidence import TraceReport
    from cq.model.facts import FileFacts
    from cq.model.source import SourceFile
    from cq.model.status import Check, Status
    from cq.providers.registry import Registry
    from cq.snapshot.rows import Completion, IndexedCall, IndexedChunk, IndexedFile, IndexedSymbol
    from cq.store.overflow import StoredArtifact
    from cq.store.read import Reader, Tree

_T = TypeVar("_T")
_P = ParamSpec("_P")


def _mends(
    method: Callable[Concatenate[Workspace, _P], _T],
) -> Callable[Concatenate[Workspace, _P], _T]:
    """What asks the index may meet damage; see Index.mending."""

    @wraps(method)
    def asking(self: Workspace, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return self.index.mending(lambda: method(self, *args, **kwargs))

    return asking


class Workspace(Questions):
    """A root and what can be asked about it.

    Questions about the index bring it up to date first, which costs milliseconds when nothing changed:

        with Workspace.open("path/to/repository") as workspace:
            print(workspace.status().files)
            for row in workspace.symbols():
                print(row.path, row.symbol.qualified_name, row.symbol_id)

    Every iteration sees one generation of the index, whatever is written meanwhile. Use one workspace per thread;
    any number of workspaces and processes may share an index.
    """

    def __init__(self, index: Index) -> None:
        self.root, self.index = index.root, index

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
        resident: Resident | None = None,
        **overrides: Unpack[Overrides],
    ) -> Self:
        """A root is taken as it is; without one it is `CQ_ROOT`, else the repository around the working directory.

        `auto_refresh=False` answers from the index as it lies; `max_stale` trusts a check that is at most so many
        seconds old; without an index, files are read for at most `disk_seconds`, if any. `trusted` lets the repository
        say how language servers are run, which can run its code. `resident` keeps what the next question needs, in a
        process that asks many. The rest overrules the configuration files. Nothing is read or written before it is
        needed.
        """
        given = root or os.environ.get("CQ_ROOT")
        path = find_root(root)
        if not path.is_dir():
            what = "is not a directory" if path.exists() else "does not exist"
            raise SourceError(f"the root {given} {what}", hint="give the directory that holds the code")
        source = "flag" if root else "environment CQ_ROOT" if given else "default"
        place = os.fspath(index_dir) if index_dir else ""
        policy = Policy(source, place, overrides, auto_refresh, max_stale, disk_seconds, trusted)
        return cls(Index(path, policy, on_progress=on_progress, resident=resident))

    def at(self, ref: str) -> Self:
        """The same repository as it was at a revision (`HEAD~3`, `v1.2`), which is asked like any other workspace; what
        the two have in common they share. UsageError where git knows no such revision."""
        return type(self)(self.index.at(ref))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Nothing can be asked of the index afterwards, and an iteration that is not at its end says so."""
        self.index.close()

    @_mends
    def ask(self, options: msgspec.Struct | Sequence[Options]) -> Answer:
        """The answer to the question that these options ask; UsageError for a struct that asks none. Several, each
        about another target, are answered together within the budget of the first."""
        from cq.questions.asking import answer_question

        return answer_question(self.index, options)

    def facts(
        self, path: str | Path, *, language: str | None = None, text: bytes | None = None
    ) -> tuple[SourceFile, FileFacts]:
        """What one file says about itself; with `text`, what that text would say under this path.

        A path counts from the working directory, else from the root. SourceError for what is not read as source.
        """
        from cq.indexing.read import get_facts

        return get_facts(self.root, os.fspath(path), language, text)

    def languages(self) -> tuple[LanguageRow, ...]:
        """The capability table, in the order of the registry; variants that share everything but a name included."""
        from cq.language import list_languages

        return list_languages()

    def config(self) -> Configuration:
        """Every setting with its source; ConfigError or UsageError for one that cannot be taken."""
        return self.index.config()

    @property
    def providers(self) -> Registry:
        """See Index.providers."""
        return self.index.providers

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
        return self.index.refresh(full=full, wait=wait, verify=verify, on_progress=on_progress)

    @_mends
    def resolve(
        self, *, seconds: float = 0.0, most: int = 0, on_progress: Callable[[Progress], None] | None = None
    ) -> PreciseReport:
        """Asks language servers what the calls mean that the index left open, within so many seconds and calls (0: no
        limit), and keeps what they say. What was asked is not asked again while the text is the same."""
        from cq.indexing.precise import resolve_precisely

        index = self.index
        index.keep_fresh()
        tell = on_progress or index.on_progress or (lambda _: None)
        return resolve_precisely(index.place.file, self.root, self.providers, seconds=seconds, most=most, tell=tell)

    @_mends
    def embed(self, *, on_progress: Callable[[Progress], None] | None = None) -> EmbedReport:
        """Brings the index up to date, then the vectors: those of chunks whose text changed, nothing else."""
        from cq.indexing.vectors import embed

        self.index.keep_fresh()
        return embed(self.index, on_progress or self.index.on_progress)

    @_mends
    def status(self, *, embeddings: bool = False) -> Status:
        """What is indexed, how fresh it is, where it lies, what is degraded; with `embeddings`, what vectors there
        are."""
        from cq.snapshot.status import find_status

        return find_status(self.index, embeddings=embeddings)

    @_mends
    def entry_points(self) -> tuple[Target, ...]:
        """Where programs begin, as far as names say it; the nearest to the root first."""
        from cq.snapshot.entry_points import find_entry_points
        from cq.snapshot.files import IndexedFiles

        self.index.keep_fresh()
        with self.index.reading() as (reader, tree):
            return find_entry_points(IndexedFiles(reader, tree))

    @_mends
    def complete(self, prefix: str, *, limit: int = 50) -> Completion:
        """Names and paths that begin so, by the index as it lies; a path up to its next directory. Milliseconds."""
        from cq.snapshot.rows import Completion

        with self.index.reading() as (reader, tree):
            return Completion(*reader.complete(tree.id, prefix, limit))

    def artifacts(self) -> list[StoredArtifact]:
        """What recent answers were too short for, by name."""
        from cq.store import overflow

        return list(overflow.find(self.index.artifacts))

    def artifact(self, name: str, *, page: int = 0, limit: int = 50) -> Any:
        """The content of one of them, or of a list so many rows; UsageError for a name or a page that is none."""
        from cq.store import overflow

        value = overflow.get(self.index.artifacts, name)
        return overflow.take_page(value, page, limit) if page else value

    def files(self) -> Iterator[IndexedFile]:
        """Every indexed file, by path."""
        from cq.snapshot import rows

        return self._rows(rows.find_files)

    def symbols(self) -> Iterator[IndexedSymbol]:
        """Every definition, by path, document and place."""
        from cq.snapshot import rows

        return self._rows(rows.find_symbols)

    def call_sites(self) -> Iterator[IndexedCall]:
        """Every call site, by path, document and place."""
        from cq.snapshot import rows

        return self._rows(rows.find_calls)

    def chunks(self) -> Iterator[IndexedChunk]:
        """Every chunk, the module chunk of each document first; by path, document and place."""
        from cq.snapshot import rows

        return self._rows(rows.find_chunks)

    @_mends
    def _rows(self, find: Callable[[Reader, Tree], Iterator[_T]]) -> Iterator[_T]:
        self.index.keep_fresh()

        def rows() -> Iterator[_T]:
            with self.index.reading() as (reader, tree):
                for row in find(reader, tree):
                    yield row
                    self.index.check_open()  # rather an error than fewer rows than there are

        return rows()

    @_mends
    def text(self, path: str) -> bytes:
        """The UTF-8 text of an indexed file, as of the index; SourceError for a path that is not in it."""
        from cq.snapshot.rows import get_text

        self.index.keep_fresh()
        with self.index.reading() as (reader, tree):
            return get_text(reader, tree, path)

    @_mends
    def export(self, out: str | Path, *, only: Sequence[str] = (), compress: str | None = None) -> ExportReport:
        """Writes the index as artifacts into the directory `out`, all of one generation."""
        from cq import __version__
        from cq.indexing.vectors import describe
        from cq.questions.export import export_index
        from cq.questions.risk import open_risk

        self.index.keep_fresh(wait=True)
        revision = self.index.revision
        with self.index.reading() as (reader, tree):
            embeddings = describe(self.index, reader, tree)
            return export_index(
                reader, tree, out, version=__version__, only=only, compress=compress, embeddings=embeddings,
                risk=open_risk(reader, tree, self.root, self.index.config().risk, only),
                root=self.root, commit=revision and revision.commit,
            )  # fmt: skip

    @_mends
    def export_scip(self, out: str | Path) -> ExportReport:
        """Writes definitions, certain references and relationships as a SCIP index into the file `out`."""
        from cq import __version__
        from cq.questions.export.scip import export_scip

        self.index.keep_fresh(wait=True)
        with self.index.reading() as (reader, tree):
            return export_scip(reader, tree, out, version=__version__)

    @_mends
    def ingest(self, file: str | Path | None, kind: Literal["scip", "trace"] = "scip") -> IngestReport | TraceReport:
        """Takes a SCIP index as evidence of what calls mean, or a trace of what they ran, in place of one of that kind
        taken before; None: none of any kind any more."""
        from cq.indexing.ingest import ingest_scip
        from cq.indexing.trace import ingest_trace

        self.index.keep_fresh(wait=True)
        index, path = self.index.place.file, None if file is None else Path(file)
        if kind == "trace" or path is None:
            report = ingest_trace(index, self.root, path)
            if path is not None:
                return report
        return ingest_scip(index, self.root, path)

    @_mends
    def validate(
        self, *, strict: bool = False, artifacts: str | Path | None = None, trace: str | Path | None = None
    ) -> Validation:
        """Whether the index is whole; with `artifacts`, whether that export is; with `trace`, also which calls ran that
        links lack."""
        from cq.indexing.trace import compare_trace
        from cq.questions.validate import validate_index
        from cq.store.validate import validate_artifacts

        if artifacts is not None:
            return validate_artifacts(artifacts)
        self.index.keep_fresh()
        with self.index.reading() as (reader, tree):
            found = validate_index(reader, tree, strict=strict)
            compared = None if trace is None else compare_trace(reader, tree.id, Path(trace))
        return found if compared is None else msgspec.structs.replace(found, trace=compared)

    def watch(
        self, *, stop: Event | None = None, debounce_ms: int = 200, on_note: Callable[[str], None] | None = None
    ) -> Iterator[Report]:
        """Keeps the index fresh until `stop` is set; a report for every refresh that changed something."""
        from cq.indexing.watch import watch_index

        return watch_index(self.index, stop, debounce_ms, on_note or (lambda _: None))

    def doctor(self) -> tuple[Check, ...]:
        """The environment, the cache, the tools and the configuration, with what to do about each problem."""
        from cq.indexing.doctor import find_checks
        from cq.providers.programs import forget_failures

        forget_failures()
        return find_checks(self.root, self.config, lambda: self.providers, index_dir=self.index.policy.index_dir)
