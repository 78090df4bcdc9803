"""What questions about the code objects of a definition or a file begin with."""

from __future__ import annotations

from cq.providers.answers import Target
from cq.providers.documents import Document
from cq.snapshot.bodies import find_holder
from cq.snapshot.files import Files, HeldFile
from cq.snapshot.target import Definition, find_file, find_targets

MAX_NAMES = 8  # of a list on one line


def find_code(files: Files, text: str) -> tuple[HeldFile | None, list[Definition]]:
    """The file that is meant, and in it the definitions a TARGET names; none for the path of a file."""
    held = find_file(files, text)
    if held is not None:
        return held, []
    targets = [find_holder(row) for row in find_targets(files, text)]
    return (targets[0].file if targets else None), targets


def open_document(held: HeldFile, document: int) -> Target:
    """A document as providers take it."""
    stored = held.documents[document]
    return Target(Document(held.path, stored.language, held.text, stored.segment))


def list_names(names: tuple[str, ...]) -> str:
    """The first few, and how many more."""
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more
