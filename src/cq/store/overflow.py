"""What is too heavy for an answer, kept beside the index until newer answers push it out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from xxhash import xxh3_64_hexdigest

from cq.model.answer import ArtifactRef

FOLDER = "answers"
KEPT = 200


class StoredArtifact(msgspec.Struct, frozen=True):
    id: str
    kind: str
    command: str
    bytes: int


class _File(msgspec.Struct, frozen=True):
    kind: str
    command: str
    value: Any


def save(index: Path, command: str, kind: str, value: Any) -> ArtifactRef | None:
    """Under a name made from its content: the same answer leaves one file. None where nothing can be written."""
    folder = index.parent / FOLDER
    data = msgspec.json.encode(_File(kind, command, value))
    name = f"{kind}-{xxh3_64_hexdigest(data)}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        path = folder / f"{name}.json"
        if not path.exists():
            draft = folder / f".{name}.{os.getpid()}"
            draft.write_bytes(data)
            draft.replace(path)
            _prune(folder)
        else:
            path.touch()
    except OSError:
        return None
    return ArtifactRef(name, kind, len(data))


def find(index: Path) -> Iterator[StoredArtifact]:
    """By name."""
    for path in sorted((index.parent / FOLDER).glob("*.json")):
        with suppress(OSError, msgspec.MsgspecError):
            data = path.read_bytes()
            stored = msgspec.json.decode(data, type=_File)
            yield StoredArtifact(path.stem, stored.kind, stored.command, len(data))


def load(index: Path, name: str) -> Any:
    """Its value, None where there is none of that name."""
    known = {path.stem: path for path in (index.parent / FOLDER).glob("*.json")}
    if name not in known:
        return None
    with suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode(known[name].read_bytes(), type=_File).value
    return None


def _prune(folder: Path) -> None:
    def age(path: Path) -> float:
        try:
            return path.stat().st_mtime
        except OSError:
            return 0.0

    for path in sorted(folder.glob("*.json"), key=age, reverse=True)[KEPT:]:
        path.unlink(missing_ok=True)
