"""One file → its text and its facts. A failure here costs one file, never the run."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
from xxhash import xxh64_hexdigest

from cq.graph.corpus import MAX_EMBEDDED
from cq.languages.facts import extract_facts
from cq.model.edge import find_mistake
from cq.model.errors import SourceError
from cq.model.facts import Chunk, FileFacts
from cq.model.source import Problem, Skip, SourceFile, explain_skip
from cq.source.language import get_language_id
from cq.source.read import MAX_BYTES, Entry, decode, read_source
from cq.source.segments import find_segments
from cq.store.codec import flatten
from cq.syntax import extract


def read_facts(
    root: Path, path: Entry | str | Path, *, language: str | None = None, max_bytes: int = MAX_BYTES
) -> tuple[SourceFile, FileFacts] | Skip:
    """`language` overrules what the name says. SourceError for a path outside the root."""
    source = read_source(root, path, max_bytes=max_bytes)
    if isinstance(source, Skip):
        return source
    if language:
        source = msgspec.structs.replace(source, language=language)
    return source, extract_source(source)


def get_facts(
    root: Path, path: str, language: str | None = None, text: bytes | None = None
) -> tuple[SourceFile, FileFacts]:
    """The same of a path from the working directory, else from the root, or of `text` under this path. SourceError for
    what is not read as source."""
    if language is not None:
        language = get_language_id(language)
    if text is not None:
        read = decode_facts(text, path, language)
    else:
        read = read_facts(root, _locate(root, path), language=language)
    if isinstance(read, Skip):
        raise SourceError(f"{read.path} is not read: {explain_skip(read)}", hint=_HINTS.get(read.reason, ""))
    return read


_HINTS = {
    "link": "give the file that the link leads to",
    "link_out": "give --root with a directory that holds its target",
}


def _locate(root: Path, path: str) -> Path:
    """Made absolute, links as they are: what a link leads to is for the reader to judge."""
    here, there = Path(os.path.abspath(path)), root / path  # noqa: PTH100  resolve() would follow links
    chosen = here if os.path.lexists(here) or not os.path.lexists(there) else there
    if not os.path.lexists(chosen):
        raise SourceError(f"{path} does not exist", hint="a path counts from the working directory or the root")
    if chosen.is_dir():
        raise SourceError(f"{path} is a directory", hint="give one file")
    if not chosen.is_relative_to(root):
        chosen = chosen.parent.resolve() / chosen.name  # the way to the root may lead through a link
    if not chosen.is_relative_to(root):
        raise SourceError(f"{path} lies outside the root", hint="give --root with a directory that holds it")
    return chosen


def decode_facts(raw: bytes, path: str, language: str | None = None) -> tuple[SourceFile, FileFacts] | Skip:
    """The same for bytes that lie in no file."""
    source = decode(raw, path, language)
    return source if isinstance(source, Skip) else (source, extract_source(source))


def extract_source(source: SourceFile) -> FileFacts:
    """Total: what a mistake of ours costs is a problem of one file."""
    try:
        return _note_unlinked(extract_facts(source.text, source.language, find_segments(source.text, source.language)))
    except Exception as error:
        if extract.is_strict:
            raise
        size = len(source.text)
        digest = xxh64_hexdigest(b"span\0" + source.text.replace(b"\r\n", b"\n"))
        module = Chunk("module", "", -1, -1, (), 0, 0, size, digest, "", "", digest)
        made = find_mistake(error)
        message = f"a mistake of cq ({made.error} at {made.place}): it is searched as text only"
        return FileFacts(source.language, chunks=(module,), problems=(Problem(extract.INTERNAL, message, 0, size),))


def _note_unlinked(facts: FileFacts) -> FileFacts:
    """With a problem where a page has more code blocks than are linked."""
    if len(facts.embedded) < MAX_EMBEDDED:  # those inside others are few, and cut with them
        return facts
    spans = [d.segment.ranges for d, _ in flatten(facts)[MAX_EMBEDDED:] if d.code is not None and d.segment is not None]
    if not spans:
        return facts
    message = f"{len(spans)} code blocks behind the first {MAX_EMBEDDED - 1:,} of the page are not linked"
    problem = Problem("not_linked", message, spans[0][0][0], spans[-1][-1][1])
    return msgspec.structs.replace(facts, problems=(*facts.problems, problem))
