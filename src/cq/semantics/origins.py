"""How what a call means got there: the places that the value passed, from its definition to the call. Linked anew for
the calls that are asked about; nothing of it is kept in the index."""

from __future__ import annotations

import re
from typing import NamedTuple

from cq.graph.corpus import StoredCorpus
from cq.graph.witness import Step, Tracer, Witnesses
from cq.languages.linking import find_dialect
from cq.model.edge import Candidate
from cq.semantics.documents import Documents

_NEAR = 2000  # bytes behind the start of a statement in which its name stands


class Passed(NamedTuple):
    """A place that a value passed, with the span of the name that stands there; empty where the text has none."""

    path: str
    start: int
    end: int
    says: str


class Origins:
    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        index = documents.index
        corpus = StoredCorpus(index.paths(), documents.codes, index.find_named)
        self._corpus = corpus
        self._tracer = Tracer(corpus, find_dialect)
        self._witnesses = Witnesses(self._tracer)

    def find(self, path: str, document: int, number: int, target: Candidate) -> list[Passed]:
        """Of one call and what it may mean, in order; none where no value leads there."""
        unit = next((unit for unit in self._corpus.units(path) if unit.document == document), None)
        if unit is None:
            return []
        view = self._tracer.documents.view(unit)
        self._witnesses.link(view, number)
        return [self._place(step) for step in self._witnesses.find(view, number, target)]

    def _place(self, step: Step) -> Passed:
        """Where the name stands in the text: a statement may begin before it."""
        path, text = step.unit.path, self._documents.index.text(step.unit.path)
        first = max(step.start, 0)
        span = (first, first)
        if step.name:
            name = re.escape(step.name.encode("utf-8", "replace"))
            word = re.compile(rb"(?<![\w\x80-\xff])%s(?![\w\x80-\xff])" % name)
            found = word.search(text, first, first + _NEAR)
            if step.side != "behind" and not (found is not None and found.start() == first):
                before = [*word.finditer(text, _find_begin(text, first, step.side), first)]
                found = before[-1] if before else found
            span = span if found is None else found.span()
        return Passed(path, *span, _say(step))


def _find_begin(text: bytes, end: int, side: str) -> int:
    """Where to begin to look for a name that stands before a place: for one that may stand behind it as well, in the
    statement or line that ends there."""
    if side == "before":
        return max(end - _NEAR, 0)
    statement = text[:end].rstrip()
    if statement.endswith(b";"):
        return max(statement.rfind(mark, 0, -1) for mark in (b";", b"{", b"}")) + 1
    return text.rfind(b"\n", 0, end) + 1


def _say(step: Step) -> str:
    name = f"`{step.name}`" if step.name else "a function without a name"
    match step.kind:
        case "imported":
            return f"imported as {name}"
        case "exported":
            return f"exported as {name}"
        case "assigned":
            return f"assigned to {name}"
        case "stored":
            return f"stored as the attribute {name}" if step.name else "put into a container"
        case "passed":
            return f"passed by the call of {name}"
        case "parameter":
            return f"the parameter {name}" + (f" of `{step.about}`" if step.about else "")
        case "called":
            return f"given by the call of {name}"
        case "returned":
            return f"returned by {name}"
        case _:
            return f"{step.about or 'definition'} {name}"
