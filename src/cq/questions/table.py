"""The one table of questions: the name of each, the package that answers it and the options that ask it. Reading the
table imports no question."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

import msgspec


class Question(NamedTuple):
    """`package` offers the class called `options`, a frozen struct, and `ask(snapshot, options) -> Answer`."""

    name: str
    package: str
    options: str

    def load_options(self) -> type[msgspec.Struct]:
        return getattr(import_module(self.package), self.options)


QUESTIONS = {
    question.name: question
    for question in (
        Question("search", "cq.questions.search", "SearchOptions"),
        Question("find", "cq.questions.find", "FindOptions"),
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
        Question("scopes", "cq.questions.scopes", "ScopesOptions"),
        Question("bytecode", "cq.questions.bytecode", "BytecodeOptions"),
        Question("rank", "cq.questions.rank", "RankOptions"),
        Question("run", "cq.questions.run", "RunOptions"),
        Question("report", "cq.questions.run", "ReportOptions"),
        Question("q", "cq.questions.q", "QueryOptions"),
        Question("read", "cq.questions.read", "ReadOptions"),
    )
}


def find_question(options: msgspec.Struct) -> Question:
    """The question that these options ask, by their type; KeyError for a struct that asks none."""
    return _BY_OPTIONS[type(options).__name__]


_BY_OPTIONS = {question.options: question for question in QUESTIONS.values()}
