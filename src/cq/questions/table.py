"""The one table of questions: the name of each, the package that answers it and the options that ask it. Reading the
table imports no question."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from cq.model.errors import UsageError

if TYPE_CHECKING:
    from cq.indexing.index import Index
    from cq.model.answer import Answer
    from cq.snapshot.snapshot import Snapshot


class Question(NamedTuple):
    """`package` offers the class called `options`, a frozen struct, and `ask(snapshot, options) -> Answer`."""

    name: str
    package: str
    options: str
    # What else the package may have:
    begins: bool = False  # `begin(index, options)`
    vectors: bool = False  # `wants_vectors(options)`

    def ask(self, snapshot: Snapshot, options: msgspec.Struct) -> Answer:
        return self._load("ask")(snapshot, options)

    def begin(self, index: Index, options: msgspec.Struct) -> Answer | None:
        """Before the index is looked at: raises what is wrong with the options already, and gives a first answer where
        a whole one would take long."""
        return self._load("begin")(index, options) if self.begins else None

    def wants_vectors(self, options: msgspec.Struct) -> bool:
        return self.vectors and self._load("wants_vectors")(options)

    def load_options(self) -> type[msgspec.Struct]:
        return self._load(self.options)

    def _load(self, name: str) -> Any:
        return getattr(import_module(self.package), name)


QUESTIONS = {
    question.name: question
    for question in (
        Question("search", "cq.questions.search", "SearchOptions"),
        Question("find", "cq.questions.find", "FindOptions", begins=True, vectors=True),
        Question("calls", "cq.questions.calls", "CallsOptions"),
        Question("neighborhood", "cq.questions.neighborhood", "NeighborhoodOptions"),
        Question("graph", "cq.questions.graph", "GraphOptions"),
        Question("path", "cq.questions.path", "PathOptions"),
        Question("impact", "cq.questions.impact", "ImpactOptions"),
        Question("sig-impact", "cq.questions.sig_impact", "SignatureOptions"),
        Question("imports", "cq.questions.imports", "ImportsOptions"),
        Question("types", "cq.questions.types", "TypesOptions"),
        Question("references", "cq.questions.references", "ReferencesOptions"),
        Question("hover", "cq.questions.hover", "HoverOptions"),
        Question("lsp", "cq.questions.lsp", "LspOptions"),
        Question("diagnostics", "cq.questions.diagnostics", "DiagnosticsOptions"),
        Question("exceptions", "cq.questions.exceptions", "ExceptionsOptions"),
        Question("side-effects", "cq.questions.side_effects", "EffectsOptions"),
        Question("risk", "cq.questions.risk", "RiskOptions"),
        Question("scopes", "cq.questions.scopes", "ScopesOptions"),
        Question("bytecode", "cq.questions.bytecode", "BytecodeOptions"),
        Question("rank", "cq.questions.rank", "RankOptions"),
        Question("run", "cq.questions.run", "RunOptions", vectors=True),
        Question("report", "cq.questions.run", "ReportOptions", begins=True),
        Question("q", "cq.questions.q", "QueryOptions", begins=True),
        Question("read", "cq.questions.read", "ReadOptions"),
    )
}


def find_question(options: msgspec.Struct) -> Question:
    """The question that these options ask, by their type; UsageError for a struct that asks none."""
    question = _BY_OPTIONS.get(type(options).__name__)
    if question is None:
        raise UsageError(f"{type(options).__name__} asks no question", hint=f"there are {', '.join(_BY_OPTIONS)}")
    return question


_BY_OPTIONS = {question.options: question for question in QUESTIONS.values()}
