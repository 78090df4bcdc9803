"""The one table of questions: the name of each, the package that answers it and the options that ask it. Reading the
table imports no question."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from cq.model.errors import UsageError

if TYPE_CHECKING:
    import msgspec

    from cq.answers.options import Options
    from cq.indexing.index import Index
    from cq.model.answer import Answer
    from cq.snapshot.snapshot import Snapshot


class Question(NamedTuple):
    """A package that offers the class called `options`, which declares what may be asked, and
    `ask(snapshot, options) -> Answer`."""

    name: str
    options: str
    line: str  # what it answers, for lists of questions
    formats: tuple[str, ...] = ("md", "json", "jsonl", "plain")  # of the answer, the usual one first
    package: str = ""  # where it is not named like the question
    # What else the package may have:
    begins: bool = False  # `begin(index, options)`
    vectors: bool = False  # `wants_vectors(options)`

    def ask(self, snapshot: Snapshot, options: msgspec.Struct) -> Answer:
        answer: Answer = self._load("ask")(snapshot, options)
        page: Any = getattr(options, "page", None)
        if not getattr(page, "by", ""):
            return answer
        from cq.answers.tally import tally

        return tally(answer, page)

    def begin(self, index: Index, options: msgspec.Struct) -> Answer | None:
        """Before the index is looked at: raises what is wrong with the options already, and gives a first answer where
        a whole one would take long."""
        return self._load("begin")(index, options) if self.begins else None

    def wants_vectors(self, options: msgspec.Struct) -> bool:
        return self.vectors and self._load("wants_vectors")(options)

    def make_options(self, *given: Any) -> Options:
        """With the values of the first of them, and what is usual for the rest."""
        return self._load(self.options)(*given)

    def load_options(self) -> type[Options]:
        return self._load(self.options)

    @property
    def module(self) -> str:
        return self.package or f"cq.questions.{self.name.replace('-', '_')}"

    def _load(self, name: str) -> Any:
        return getattr(import_module(self.module), name)


RUNNERS = ("pytest", "jest", "vitest", "cargo")  # programs that run tests, each with arguments of its own
PICTURES = ("md", "json", "jsonl", "plain", "mermaid", "dot", "svg")

QUESTIONS = {
    question.name: question
    for question in (
        Question("search", "SearchOptions", "where a name or text is: defined, called, used, mentioned"),
        Question(
            "find",
            "FindOptions",
            "code about an idea, or one symbol: connected, and in full, within a budget",
            formats=("md", "json", "plain", "mcp"),
            begins=True,
            vectors=True,
        ),
        Question("calls", "CallsOptions", "every call site of a function: what is passed, and from where"),
        Question(
            "neighborhood",
            "NeighborhoodOptions",
            "everything around one symbol (nb)",
            formats=("md", "json", "mermaid", "dot", "svg"),
        ),
        Question("graph", "GraphOptions", "what a definition depends on, and what depends on it", formats=PICTURES),
        Question("path", "PathOptions", "how one definition reaches another", formats=PICTURES),
        Question("impact", "ImpactOptions", "what may break when something changes", formats=PICTURES),
        Question(
            "tests-for",
            "TestsForOptions",
            "which tests to run after a change, the likeliest to fail first",
            formats=("md", "json", "jsonl", "plain", *RUNNERS),
        ),
        Question(
            "routes", "RoutesOptions", "what comes in from outside: requests, commands, tasks, and what handles each"
        ),
        Question("sig-impact", "SignatureOptions", "which call sites a new signature would break"),
        Question("diff", "DiffOptions", "what a change means: what breaks, whose calls, what is gone, renamed, new"),
        Question("log", "LogOptions", "the commits that changed a definition, through other names and places"),
        Question(
            "imports",
            "ImportsOptions",
            "which file imports which, cycles, and what comes from outside",
            formats=PICTURES,
        ),
        Question("api", "ApiOptions", "what a package offers, how it is called here, and calls that cannot fit"),
        Question("dead", "DeadOptions", "definitions that nothing reaches, and how sure that is"),
        Question(
            "context",
            "ContextOptions",
            "what to read to change something safely: source, contracts, excerpts, within a budget",
            formats=("md", "json"),
        ),
        Question(
            "projects",
            "ProjectsOptions",
            "which projects there are (tsconfig.json), what each refers to and extends, its files",
            formats=("md", "json", "jsonl", "plain", "mermaid", "dot", "svg"),
        ),
        Question(
            "architecture",
            "ArchitectureOptions",
            "which rules of architecture hold: what may depend on what",
            formats=("md", "json", "jsonl", "plain", "sarif", "mermaid", "dot", "svg"),
        ),
        Question("types", "TypesOptions", "supertypes, subtypes and members of a type"),
        Question(
            "references", "ReferencesOptions", "every mention that means a definition, by links and language servers"
        ),
        Question("hover", "HoverOptions", "the signature, type and documentation of a name"),
        Question("lsp", "LspOptions", "what else a language server says: actions, macros, signatures, symbols, …"),
        Question(
            "diagnostics", "DiagnosticsOptions", "what is wrong with code: its syntax, and what type checkers say"
        ),
        Question("exceptions", "ExceptionsOptions", "what is raised, what catches it, and what nobody catches"),
        Question("side-effects", "EffectsOptions", "what happens when modules are loaded"),
        Question(
            "risk",
            "RiskOptions",
            "where data from outside goes: into commands, queries, pages, paths, …",
            formats=("md", "json", "jsonl", "plain", "sarif", "mermaid", "dot"),
        ),
        Question("scopes", "ScopesOptions", "which names a definition captures, shares and owns"),
        Question("bytecode", "BytecodeOptions", "what a Python definition does with names once compiled"),
        Question("rank", "RankOptions", "the definitions that most of the repository depends on"),
        Question(
            "map",
            "MapOptions",
            "how large the modules are, which depend on which, and the cycles",
            formats=("md", "json", "jsonl", "plain", "dot", "svg"),
        ),
        Question("run", "RunOptions", "several questions of a plan, answered together", vectors=True),
        Question(
            "report",
            "ReportOptions",
            "a plan by its name: refactor-impact, safety-reliability, …",
            begins=True,
            package="cq.questions.run",
        ),
        Question(
            "q",
            "QueryOptions",
            "entities and code that match a query",
            formats=("md", "json", "jsonl", "plain", "mermaid", "dot"),
            begins=True,
        ),
        Question(
            "read",
            "ReadOptions",
            "the exact source of a symbol or of lines, or the outline of a file",
            formats=("md", "json", "plain"),
        ),
    )
}


def find_question(options: msgspec.Struct) -> Question:
    """The question that these options ask, by their type; UsageError for a struct that asks none."""
    kind = type(options)
    for question in QUESTIONS.values():
        if question.options == kind.__name__ and kind.__module__.startswith(question.module):
            return question
    names = ", ".join(question.options for question in QUESTIONS.values())
    raise UsageError(f"{kind.__name__} asks no question", hint=f"there are {names}")
