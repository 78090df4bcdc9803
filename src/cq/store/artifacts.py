"""Exports on disk: rows in parts, a meta file per artifact, one manifest, and a directory that appears all at once."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import io
import os
import shutil
from collections.abc import Iterable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec
import zstandard

from cq.model.artifact import (
    MAX_ROW_BYTES,
    SCHEMA_VERSION,
    ArtifactMeta,
    IndexState,
    Manifest,
    PartFile,
    Piece,
    RiskStats,
    Row,
    Truncation,
    VectorFormat,
)
from cq.model.errors import UsageError
from cq.opening import open_file, read_file

MANIFEST = "pieces/manifest.json"
# An export inside a repository must not be indexed with it, by git's own rules.
IGNORE_FILE, IGNORE_ALL = ".gitignore", b"*\n"
ELLIPSIS = "…"
_TEXT_LIMITS = (1_000, 100)
_ENCODE = msgspec.json.Encoder().encode
_ZSTD_LEVEL = 3
_FLUSH_BYTES = 1 << 20

T = TypeVar("T", bound=msgspec.Struct)


class Caps(msgspec.Struct, frozen=True):
    """Of one part, before compression. An artifact that fits into one is a single file."""

    records: int = 200_000
    bytes: int = 32 * 1024 * 1024


class ArtifactWriter:
    """Writes the rows of one artifact in the order they come, which must be that of their keys."""

    def __init__(
        self, folder: Path, kind: type[Row], caps: Caps, compress: str | None, vectors: VectorFormat | None = None
    ) -> None:
        self._folder, self._kind, self._caps, self._compress = folder, kind, caps, compress
        self._vectors = vectors
        self._suffix = ".jsonl.zst" if compress else ".jsonl"
        self._parts: list[PartFile] = []
        self._sink: _Sink | None = None
        self._lines: list[bytes] = []
        self._records = self._bytes = self._pending = 0
        self._truncated = self._dropped = self._largest = 0

    @property
    def records(self) -> int:
        """All that were given, dropped ones included."""
        return sum(part.records for part in self._parts) + self._records + self._dropped

    def add(self, row: Row) -> None:
        line = _ENCODE(row)
        if len(line) > MAX_ROW_BYTES:
            self._largest = max(self._largest, len(line))
            fitted = _fit(row, len(line))
            if fitted is None:
                self._dropped += 1
                return
            self._truncated += 1
            line = fitted
        size = len(line) + 1
        if self._records and (self._records >= self._caps.records or self._bytes + size > self._caps.bytes):
            self._end_part()
        self._lines.append(line)
        self._records += 1
        self._bytes += size
        self._pending += size
        if self._pending > _FLUSH_BYTES:
            self._flush()

    def close(self, generated_at: str) -> tuple[ArtifactMeta, list[Piece]]:
        """Writes the meta file too; the pieces for the manifest."""
        if self._records or not self._parts:
            self._end_part()
        name, parts, limits = self._kind.ARTIFACT, self._parts, self._caps
        truncation = Truncation("row", "maxRowBytes", MAX_ROW_BYTES, self._largest, self._dropped)
        meta = ArtifactMeta(
            schema_version=SCHEMA_VERSION,
            artifact=name,
            format="jsonl-sharded" if len(parts) > 1 else "jsonl",
            generated_at=generated_at,
            compression="zstd" if self._compress else None,
            order=self._kind.ORDER,
            total_records=sum(part.records for part in parts),
            total_bytes=sum(part.bytes for part in parts),
            max_part_records=max(part.records for part in parts),
            max_part_bytes=max(part.bytes for part in parts),
            target_max_records=limits.records,
            target_max_bytes=limits.bytes,
            truncated_records=self._truncated,
            dropped_records=self._dropped,
            truncations=(truncation,) if self._largest else (),
            parts=tuple(parts),
            vectors=self._vectors or msgspec.UNSET,
        )
        pieces = [row_piece(name, part, compressed=bool(self._compress)) for part in parts]
        return meta, [*pieces, write_json(self._folder, f"{name}.meta.json", meta, name, "meta")]

    def abandon(self) -> None:
        if self._sink is not None:
            self._sink.file.close()
            self._sink = None

    def _end_part(self) -> None:
        self._flush()
        assert self._sink is not None
        size, checksum = self._sink.close()
        self._parts.append(PartFile(self._path(len(self._parts)), self._records, size, checksum))
        self._sink, self._records, self._bytes = None, 0, 0

    def _flush(self) -> None:
        if self._sink is None:
            number = len(self._parts)
            if number == 1:
                # It is more than one file after all: the first joins the others.
                single, first = self._folder / self._path(0), f"{self._kind.ARTIFACT}.parts/00000{self._suffix}"
                (self._folder / first).parent.mkdir()
                single.rename(self._folder / first)
                self._parts[0] = msgspec.structs.replace(self._parts[0], path=first)
            self._sink = _Sink(self._folder / self._path(number), self._compress)
        if self._lines:
            self._lines.append(b"")
            self._sink.write(b"\n".join(self._lines))
            self._lines, self._pending = [], 0

    def _path(self, number: int) -> str:
        name = self._kind.ARTIFACT
        return f"{name}.parts/{number:05}{self._suffix}" if number else f"{name}{self._suffix}"


class _Sink:
    """A file that knows its size and checksum as stored."""

    def __init__(self, path: Path, compress: str | None) -> None:
        self.file = path.open("xb")
        self._hash, self._size = hashlib.sha256(), 0
        self._packer = (
            zstandard.ZstdCompressor(level=_ZSTD_LEVEL, write_checksum=True).compressobj() if compress else None
        )

    def write(self, data: bytes) -> None:
        self._store(self._packer.compress(data) if self._packer else data)

    def close(self) -> tuple[int, str]:
        if self._packer:
            self._store(self._packer.flush())
        self.file.close()
        return self._size, f"sha256:{self._hash.hexdigest()}"

    def _store(self, data: bytes) -> None:
        self._hash.update(data)
        self._size += len(data)
        self.file.write(data)


def _fit(row: Row, size: int) -> bytes | None:
    """The row cut down to what a line may hold; None when even that is not enough."""
    cut: dict[str, None] = {}
    for limit in _TEXT_LIMITS:
        for field in type(row).TEXTS:
            text = getattr(row, field)
            if text and len(text) > limit:
                cut[field] = None
                row = _replace(row, cut, **{field: text[: limit - 1] + ELLIPSIS})
                size = len(line := _ENCODE(row))
                if size <= MAX_ROW_BYTES:
                    return line
    for field in type(row).LISTS:
        entries = attrgetter(field)(row)
        if not entries:
            continue
        cut[field] = None
        size = len(_ENCODE(_replace(row, cut)))
        keep = len(entries)
        while keep and size > MAX_ROW_BYTES:
            keep -= 1
            size -= len(_ENCODE(entries[keep])) + 1
        row = _replace(row, cut, **{field: entries[:keep]})
        if len(line := _ENCODE(row)) <= MAX_ROW_BYTES:
            return line
    return None


def _replace(row: Row, cut: Iterable[str], **changes: Any) -> Row:
    """`cut` and `changes` name fields, also of a part of the row: `ref.candidates`."""
    names = dict(zip(row.__struct_fields__, row.__struct_encode_fields__, strict=True))
    for field in [field for field in changes if "." in field]:
        part, _, inner = field.partition(".")
        changes[part] = msgspec.structs.replace(getattr(row, part), **{inner: changes.pop(field)})
    written = [".".join(names.get(word, word) for word in field.split(".")) for field in cut]
    return msgspec.structs.replace(row, truncated=tuple(written), **changes)


def row_piece(name: str, part: PartFile, *, compressed: bool) -> Piece:
    return Piece(
        name, "rows", "jsonl+zstd" if compressed else "jsonl", part.path, part.bytes, part.checksum, part.records
    )


def encode_json(value: msgspec.Struct) -> bytes:
    """Indented, one key a line: what a valid file holds to the byte."""
    return msgspec.json.format(_ENCODE(value), indent=2) + b"\n"


def json_checksum(data: bytes) -> str:
    """Without the line that says when it was made, so that two exports of one tree have the same manifest."""
    lines = [line for line in data.splitlines(keepends=True) if not line.startswith(b'  "generatedAt": ')]
    return f"sha256:{hashlib.sha256(b''.join(lines)).hexdigest()}"


def write_json(folder: Path, path: str, value: ArtifactMeta | IndexState | RiskStats, name: str, kind: Any) -> Piece:
    data = encode_json(value)
    (folder / path).write_bytes(data)
    return Piece(name, kind, "json", path, len(data), json_checksum(data), 1)


def write_manifest(folder: Path, pieces: Iterable[Piece], generated_at: str) -> None:
    ordered = tuple(sorted(pieces, key=lambda piece: piece.path))
    target = folder / MANIFEST
    target.parent.mkdir()
    target.write_bytes(encode_json(Manifest(SCHEMA_VERSION, "manifest", generated_at, ordered)))


def read_json(path: Path, kind: type[T]) -> T:
    """msgspec.ValidationError or DecodeError for what is not of that kind, OSError for what cannot be read."""
    return msgspec.json.decode(read_file(path), type=kind)


@contextlib.contextmanager
def open_lines(path: Path, *, compressed: bool) -> Iterator[IO[bytes]]:
    """The lines of a part; reading them may raise zstandard.ZstdError."""
    with open_file(path) as file:
        if not compressed:
            yield file
            return
        with zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=False) as unpacked:
            yield io.BufferedReader(unpacked, 1 << 18)  # pyright: ignore[reportArgumentType]


def find_strays(folder: Path, manifest: Manifest) -> list[str]:
    """Files that are no part of the export, by path."""
    listed = {MANIFEST, *(piece.path for piece in manifest.pieces)}
    strays: list[str] = []
    for at, _, files in os.walk(folder):
        paths = [(Path(at) / file).relative_to(folder).as_posix() for file in files]
        strays += [path for path in paths if path not in listed and not _is_ignore_file(folder, path)]
    return sorted(strays)


def _is_ignore_file(folder: Path, path: str) -> bool:
    return path == IGNORE_FILE and read_file(folder / path, len(IGNORE_ALL) + 1) == IGNORE_ALL


def _is_replaceable(folder: Path) -> bool:
    """Empty, or an export and nothing but that: what someone else put there is not ours to remove."""
    if not any(folder.iterdir()):
        return True
    try:
        return not find_strays(folder, read_json(folder / MANIFEST, Manifest))
    except (OSError, msgspec.MsgspecError):
        return False


@contextlib.contextmanager
def replace_export(out: Path, *, ignored: bool) -> Iterator[Path]:
    """A directory to fill that becomes `out` when all went well; else `out` stays as it was.

    UsageError when there is something at `out` that is no export. `ignored` keeps git and cq from listing it.
    """
    out = out.resolve()
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out: {out.name} is a file", hint="give a directory")
    if out.is_dir() and not _is_replaceable(out):
        raise UsageError(f"--out: {out.name} holds other things than an export", hint="give a new or empty directory")
    out.parent.mkdir(parents=True, exist_ok=True)
    work = out.parent / f".{out.name}.cq-export-{os.getpid()}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    try:
        if ignored:
            (work / IGNORE_FILE).write_bytes(IGNORE_ALL)
        yield work
        if not out.exists() or not any(out.iterdir()):
            work.rename(out)
        elif not _exchange(work, out):
            # Where the system cannot swap two names, the old one steps aside for a moment.
            aside = work.with_name(f"{work.name}.old")
            out.rename(aside)
            try:
                work.rename(out)
            except BaseException:
                aside.rename(out)
                raise
            aside.rename(work)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _exchange(left: Path, right: Path) -> bool:
    """Linux can swap two names in one step; Python has no word for it."""
    try:
        renameat2 = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError):
        return False
    here, exchange = -100, 2
    return renameat2(here, os.fsencode(left), here, os.fsencode(right), exchange) == 0
