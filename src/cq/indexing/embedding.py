"""Vectors for the chunks of a tree: only those whose text changed are made; now, or by a process of its own.

A job for that process names what it was made for: generation, configuration, embedder, format. One whose target is
gone or another writes nothing. Nothing here fails an index: vectors are a cache beside it.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from xxhash import xxh3_64_intdigest

from cq.embed import Passage
from cq.embed.backend import choose_backend, find_backends
from cq.indexing.config import load_config
from cq.indexing.refresh import Progress
from cq.languages.facts import embedding_text
from cq.model.config import ModelsConfig
from cq.model.embedding import QUIET_KINDS, Coverage, EmbeddingState, find_coverage, find_kind, is_data
from cq.model.errors import ConfigError, CqError
from cq.opening import read_file
from cq.store import database
from cq.store.lock import write_file
from cq.store.read import Reader, Tree
from cq.store.vectors import VectorRows, decode_rows, encode_rows
from cq.store.write import Writer

if TYPE_CHECKING:
    from cq.embed import Embedder, Reranker
    from cq.model.config import FindConfig
    from cq.model.facts import FileFacts

FORMAT_VERSION = 1
LOCAL = ModelsConfig()
JOB_NAME = "embed.job"
FAILED_NAME = "embed.failed"
SENT_NAME = "tokens.json"


class EmbeddingJob(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a background process is to do, and for which state of the index alone."""

    format_version: int
    index: str
    root: str
    generation: int
    config_hash: str
    identity: str


class EmbedReport(msgspec.Struct, frozen=True):
    """`refused` says why nothing was done."""

    embedded: int = 0  # chunks that were read by the embedder
    reused: int = 0  # chunks that read as before
    files: int = 0
    refused: str = ""
    tokens: int = 0  # that a service counted
    cost: float | None = None  # where the user has told the price
    graphs: str = ""  # the backend whose graphs were made


@cache
def get_embedder(models: ModelsConfig = LOCAL) -> Embedder:
    """The one of this process."""
    from cq.embed import load_embedder

    return load_embedder(models)


@cache
def get_reranker(models: ModelsConfig = LOCAL) -> Reranker | None:
    from cq.embed import load_reranker

    return load_reranker(models)


@cache
def _name_models(models: ModelsConfig) -> tuple[str, int, str]:
    from cq.embed import name_models

    return name_models(models)


def describe_embeddings(
    index: Path, reader: Reader, tree: int, config: FindConfig, models: ModelsConfig = LOCAL
) -> EmbeddingState:
    """For people and for `index_state`: whether questions in words have vectors, and why not."""
    enabled = config.profile != "lexical_only"
    identity, dimensions, reranker = _name_models(models)
    coverage = measure_coverage(reader, tree, identity)
    reason = ""
    if not enabled:
        reason = "the profile is lexical_only"
    elif not coverage.total:
        reason = "nothing here has vectors"
    elif coverage.others:
        reason = f"{coverage.others} of {coverage.total} chunks have vectors of another embedder"
    elif coverage.missing:
        reason = f"{coverage.missing} of {coverage.total} chunks have none yet (`cq index --embed` makes them)"
    return EmbeddingState(
        enabled, enabled and coverage.ready and coverage.total > 0, "background", reason, identity,
        dimensions, find_backends(), coverage.total, round(coverage.missing_rate, 4),
        reranker, config.profile, _describe_leaving(models, coverage) if enabled else "",
        *_describe_sent(index, models),
        *_describe_backend(config.backend, index, tree, identity, coverage.total),
    )  # fmt: skip


def _describe_sent(index: Path, models: ModelsConfig) -> tuple[dict[str, int], float | None]:
    sent = read_sent(index)
    prices = {"voyage": models.voyage.price_per_million, "openai": models.openai.price_per_million}
    cost = sum(tokens * prices.get(name.partition("/")[0], 0.0) / 1e6 for name, tokens in sent.items())
    return sent, round(cost, 6) or None


def _describe_backend(wanted: str, index: Path, tree: int, identity: str, rows: int) -> tuple[str, str]:
    """The one that is chosen, and why it is not the one that answers."""
    from cq.embed.backend import FOLDER, read_graphs

    try:
        backend = choose_backend(wanted, rows)
    except ConfigError as error:
        return wanted, f"{error.message}: {error.hint}"
    if backend == "exact" or read_graphs(index.parent / FOLDER, tree, backend, identity):
        return backend, ""
    return backend, "its graph is not made yet; until then one by one"


def _describe_leaving(models: ModelsConfig, coverage: Coverage) -> str:
    if models.embedder == models.reranker == "local":
        return ""
    from cq.embed.hosted import HostedEmbedder, HostedReranker

    embedder, reranker = get_embedder(models), get_reranker(models)
    parts: list[str] = []
    if isinstance(embedder, HostedEmbedder):
        text = f"the text of {coverage.missing:,} more chunks" if coverage.missing else "text that changes"
        parts.append(f"questions and {text} go to {embedder.client.host} ({embedder.client.name})")
    if isinstance(reranker, HostedReranker):
        host = f"{reranker.client.host} ({reranker.client.name})"
        parts.append(f"questions and the text of what they find go to {host} to be ranked")
    return "; ".join(parts)


def measure_coverage(reader: Reader, tree: int, identity: str) -> Coverage:
    return find_coverage(reader.vector_states(tree), identity)


def embed_tree(
    index: Path,
    root: Path,
    embedder: Embedder,
    *,
    job: EmbeddingJob | None = None,
    wait: bool = True,
    backend: str = "exact",
    on_progress: Callable[[Progress], None] | None = None,
) -> EmbedReport:
    """Makes what is missing, and the graphs of the backend. Batches are committed as they come, each under the writer's
    lock and only for files that still have the text that was read; killed at any point, the next run goes on."""
    tell = on_progress or (lambda _: None)
    read_from = database.identify(index)
    with (
        count_sent(index, embedder),
        contextlib.closing(Reader(database.connect(index), os.fspath(root))) as reader,
    ):
        tree = reader.tree()
        if tree is None:
            return EmbedReport(refused="the tree is not indexed")
        if job is not None and (why := _refuse(job, tree.generation, tree.config, embedder.identity)):
            return EmbedReport(refused=why)
        coverage = measure_coverage(reader, tree.id, embedder.identity)
        done = embedded = reused = files = 0
        tokens = embedder.tokens
        waiting: list[_Unread] = []
        tell(Progress("embed", 0, coverage.missing))
        for path, content in (*coverage.files, ("", 0)):
            if path:
                waiting.append(_read_file(reader, tree.id, path, content, embedder))
            count = sum(len(file.numbers) for file in waiting)
            if not waiting or (path and count < embedder.batch):
                continue
            rows = _embed_files(waiting, embedder)
            if not _write(index, root, tree.id, embedder.identity, rows, read_from, wait=wait):
                return EmbedReport(embedded, reused, files, "another process is writing", embedder.tokens - tokens)
            fresh = sum(len(file.fresh) for file in waiting)
            embedded, reused, files = embedded + fresh, reused + count - fresh, files + len(waiting)
            done, waiting = done + count, []
            tell(Progress("embed", min(done, coverage.missing), coverage.missing))
        tell(Progress("embed", coverage.missing, coverage.missing))
        graphs = _publish_graphs(index, reader, tree, embedder, choose_backend(backend, coverage.total), tell)
        with contextlib.suppress(OSError):
            (index.parent / FAILED_NAME).unlink()
        return EmbedReport(embedded, reused, files, "", embedder.tokens - tokens, graphs=graphs)


def _publish_graphs(
    index: Path, reader: Reader, tree: Tree, embedder: Embedder, backend: str, tell: Callable[[Progress], None]
) -> str:
    """Of all vectors, where an approximate backend is chosen and what it has does not serve any more; its name then."""
    import numpy as np

    from cq.embed.backend import FOLDER, is_stale, publish_graphs, read_graphs

    found = [
        rows
        for _, blob in (reader.vectors(tree.id, embedder.identity) if backend != "exact" else ())
        if (rows := decode_rows(blob, embedder.dimensions)) is not None
    ]
    if not found:
        return ""
    place, keys = index.parent / FOLDER, np.concatenate([rows.keys for rows in found])
    with database.writer_lock(place / backend, wait=False) as had:
        if not had or not is_stale(place, read_graphs(place, tree.id, backend, embedder.identity), keys):
            return ""
        tell(Progress("graph", 0, len(keys)))
        kinds = {
            "body": np.concatenate([rows.body for rows in found]),
            "signature": np.concatenate([rows.signature for rows in found]),
        }
        publish_graphs(place, tree.id, backend, embedder.identity, tree.generation, keys, kinds)
        tell(Progress("graph", len(keys), len(keys)))
    return backend


class _Unread(msgspec.Struct, frozen=True):
    """A file whose vectors are to be made: its chunks, and the rows that are there for those that read the same."""

    path: str
    content: int
    numbers: list[int]
    keys: list[int]
    known: dict[int, tuple[VectorRows, int]]
    fresh: dict[int, Passage]  # by place in `numbers`


def _read_file(reader: Reader, tree: int, path: str, content: int, embedder: Embedder) -> _Unread:
    numbers, passages = read_passages(path, reader.text(content), reader.facts(content))
    keys = [_key(passage) for passage in passages]
    known: dict[int, tuple[VectorRows, int]] = {}
    for blob in reader.vectors_of(tree, path, embedder.identity):
        rows = decode_rows(blob, embedder.dimensions)
        if rows is not None:
            known |= {key: (rows, at) for at, key in enumerate(rows.keys.tolist())}
    fresh = {at: passages[at] for at, key in enumerate(keys) if key not in known}
    return _Unread(path, content, numbers, keys, known, fresh)


def _embed_files(files: Sequence[_Unread], embedder: Embedder) -> list[tuple[str, int, bytes]]:
    """(path, content, rows) of each. What is new in them is read at once: services are asked in large pieces."""
    import numpy as np

    from cq.embed.exact import quantize

    passages = [passage for file in files for passage in file.fresh.values()]
    wholes, heads = embedder.embed(passages) if passages else (np.zeros((0, embedder.dimensions), np.float32),) * 2
    found: list[tuple[str, int, bytes]] = []
    start = 0
    for file in files:
        count, fresh = len(file.numbers), list(file.fresh)
        end = start + len(fresh)
        body, signature = (np.zeros((count, embedder.dimensions), np.int8) for _ in range(2))
        body_scales, signature_scales = (np.zeros(count, np.float32) for _ in range(2))
        if fresh:
            body[fresh], body_scales[fresh] = quantize(wholes[start:end])
            signature[fresh], signature_scales[fresh] = quantize(heads[start:end])
        for at, key in enumerate(file.keys):
            if key in file.known:
                rows, old = file.known[key]
                body[at], body_scales[at] = rows.body[old], rows.body_scales[old]
                signature[at], signature_scales[at] = rows.signature[old], rows.signature_scales[old]
        numbers, keys = np.array(file.numbers, np.int64), np.array(file.keys, np.uint64)
        made = VectorRows(numbers, keys, body, body_scales, signature, signature_scales)
        found.append((file.path, file.content, encode_rows(made)))
        start = end
    return found


def read_passages(path: str, text: bytes, facts: FileFacts) -> tuple[list[int], list[Passage]]:
    """(number, what an embedder reads) of every chunk that has a vector, documents counted through."""
    numbers: list[int] = []
    passages: list[Passage] = []
    base, todo = 0, [facts]
    while todo:
        document = todo.pop()
        if not is_data(path, document.language):
            for number in range(len(document.chunks)):
                if find_kind(text, document.chunks, document.symbols, number) not in QUIET_KINDS:
                    numbers.append(base + number)
                    passages.append(make_passage(path, text, document, number))
        base += len(document.chunks)
        todo += reversed(document.embedded)
    return numbers, passages


def make_passage(path: str, text: bytes, facts: FileFacts, number: int) -> Passage:
    chunk = facts.chunks[number]
    symbol = facts.symbols[chunk.symbol] if chunk.symbol >= 0 else None
    name, signature = (symbol.qualified_name, symbol.signature) if symbol else (chunk.name, "")
    return Passage(path, name, signature, embedding_text(text, facts, number))


def enqueue(index: Path, job: EmbeddingJob) -> str:
    """Starts a process that does the job, unless one is at work; returns why not, "" if it is on its way."""
    path = index.parent / JOB_NAME
    try:
        with database.writer_lock(path, wait=False) as had:
            if not had:
                return ""  # a worker holds it
        write_file(path, [msgspec.json.encode(job)])
        code = f"from cq.indexing.embedding import run_job; run_job({os.fspath(path)!r})"
        _start(["-c", code])
    except OSError as error:
        return f"no process could be started for it: {error.strerror or error}"
    return ""


def start_index(index: Path, root: Path, index_dir: str) -> str:
    """Begins a first index, vectors included, in a process of its own; returns why not, "" if it is on its way."""
    try:
        with database.writer_lock(index, wait=False) as had:
            if not had:
                return ""  # a writer is at work
        place = ["--index-dir", index_dir] if index_dir else []
        _start(["-m", "cq", "index", "--embed", "--progress", "none", "--root", os.fspath(root), *place])
    except OSError as error:
        return f"no index could be begun: {error.strerror or error}"
    return ""


def _start(arguments: Sequence[str]) -> None:
    # Without a window, and not ended with the one it was started in.
    flags = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP if sys.platform == "win32" else 0
    subprocess.Popen(
        [sys.executable, "-P", *arguments],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        creationflags=flags,
    )  # fmt: skip


def run_job(path: str, embedder: Embedder | None = None) -> EmbedReport:
    """What the background process does. A job that cannot be read, or whose index is gone, is refused."""
    file = Path(path)
    with database.writer_lock(file, wait=False) as had:
        if not had:
            return EmbedReport(refused="another process does it")
        try:
            job = msgspec.json.decode(read_file(file), type=EmbeddingJob)
        except (OSError, msgspec.DecodeError) as error:
            return EmbedReport(refused=f"the job cannot be read: {error}")
        index = Path(job.index)
        if database.damage(index, job.root):
            return EmbedReport(refused="the index is gone")
        if embedder is None and hasattr(os, "nice"):
            os.nice(5)
        try:
            config = load_config(Path(job.root))
            embedder = embedder or get_embedder(config.models)
            report = embed_tree(index, Path(job.root), embedder, job=job, backend=config.find.backend)
        except CqError as error:
            with contextlib.suppress(OSError):
                write_file(file.with_name(FAILED_NAME), [str(error).encode()])
            report = EmbedReport(refused=error.message)
        with contextlib.suppress(OSError):
            file.unlink()
        return report


def read_failure(index: Path) -> str:
    """Why the last background process came to no end."""
    try:
        return read_file(index.parent / FAILED_NAME, 300).decode("utf-8", "replace")
    except OSError:
        return ""


@contextlib.contextmanager
def count_sent(index: Path, *models: Embedder | Reranker | None) -> Iterator[dict[str, int]]:
    """Adds to the account beside the index what services count inside, whatever comes of it, by model."""
    before = [(model, model.tokens) for model in models if model is not None]
    sent: dict[str, int] = {}
    try:
        yield sent
    finally:
        sent |= {model.identity: model.tokens - tokens for model, tokens in before if model.tokens > tokens}
        if sent:
            path = index.parent / SENT_NAME
            # An account that cannot be written costs nobody an answer.
            with contextlib.suppress(OSError), database.writer_lock(path, wait=True):
                total = read_sent(index)
                total |= {name: total.get(name, 0) + tokens for name, tokens in sent.items()}
                write_file(path, [msgspec.json.encode(total)])


def read_sent(index: Path) -> dict[str, int]:
    try:
        return msgspec.json.decode(read_file(index.parent / SENT_NAME), type=dict[str, int])
    except (OSError, msgspec.DecodeError):
        return {}


def _refuse(job: EmbeddingJob, generation: int, config_hash: str, identity: str) -> str:
    if job.format_version != FORMAT_VERSION:
        return f"the job has format {job.format_version}, this is {FORMAT_VERSION}"
    if job.identity != identity:
        return "the job is for another embedder"
    if (job.generation, job.config_hash) != (generation, config_hash):
        return "the index has moved on"
    return ""


def drop_vectors(index: Path, root: Path) -> bool:
    """Forgets the vectors of a tree, where a profile without any follows one that made them; whether there were any.
    Left to the next time while another process writes."""
    with contextlib.closing(Reader(database.connect(index), os.fspath(root))) as reader:
        tree = reader.tree()
        if tree is None or not reader.last_vector(tree.id)[0]:
            return False
    with database.writer_lock(index, wait=False) as had:
        if not had:
            return False
        with database.writing(index) as connection:
            writer = Writer(connection)
            writer.begin()
            writer.drop_vectors(tree.id)
            writer.commit()
    return True


def _write(
    index: Path,
    root: Path,
    tree: int,
    identity: str,
    rows: Sequence[tuple[str, int, bytes]],
    read_from: tuple[int, int],
    *,
    wait: bool,
) -> bool:
    with database.writer_lock(index, wait=wait) as had:
        if not had:
            return False
        if database.identify(index) != read_from:
            return False  # another index by now, whose numbers mean other texts
        with database.writing(index) as connection:
            current = Reader(connection, os.fspath(root)).contents(tree, [path for path, _, _ in rows])
            writer = Writer(connection)
            writer.begin()
            try:
                writer.put_vectors(tree, identity, [row for row in rows if current.get(row[0]) == row[1]])
                writer.commit()
            except BaseException:
                writer.rollback()
                raise
    return True


def _key(passage: Passage) -> int:
    return xxh3_64_intdigest("\0".join((passage.path, passage.name, passage.signature, passage.body)).encode())
