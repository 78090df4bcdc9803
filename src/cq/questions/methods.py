"""A method for every question, typed: what `Workspace` offers beside `ask`. A test compares it with the table of
questions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, cast

import msgspec

from cq.questions.table import QUESTIONS

if TYPE_CHECKING:
    from cq.model.answer import Answer
    from cq.model.find import FindAnswer
    from cq.model.plan import Plan
    from cq.query import Query
    from cq.questions.api import ApiOptions
    from cq.questions.architecture import ArchitectureOptions
    from cq.questions.bytecode import BytecodeOptions
    from cq.questions.calls import CallsOptions
    from cq.questions.context import ContextOptions
    from cq.questions.dead import DeadOptions
    from cq.questions.diagnostics import DiagnosticsOptions
    from cq.questions.diff import DiffOptions
    from cq.questions.exceptions import ExceptionsOptions
    from cq.questions.find import FindOptions
    from cq.questions.graph import GraphOptions
    from cq.questions.hover import HoverOptions
    from cq.questions.impact import ImpactOptions
    from cq.questions.imports import ImportsOptions
    from cq.questions.log import LogOptions
    from cq.questions.lsp import LspOptions
    from cq.questions.map import MapOptions
    from cq.questions.neighborhood import NeighborhoodOptions
    from cq.questions.path import PathOptions
    from cq.questions.projects import ProjectsOptions
    from cq.questions.q import QueryOptions
    from cq.questions.rank import RankOptions
    from cq.questions.read import ReadOptions
    from cq.questions.references import ReferencesOptions
    from cq.questions.risk import RiskOptions
    from cq.questions.routes import RoutesOptions
    from cq.questions.run import ReportOptions, RunOptions
    from cq.questions.scopes import ScopesOptions
    from cq.questions.search import SearchOptions
    from cq.questions.side_effects import EffectsOptions
    from cq.questions.sig_impact import SignatureOptions
    from cq.questions.table import QUESTIONS
    from cq.questions.tests_for import TestsForOptions
    from cq.questions.types import TypesOptions


class Questions(ABC):
    """Each method takes a text, which is the first option of its question, or all of its options; None leaves every
    option as it is by default."""

    @abstractmethod
    def ask(self, options: msgspec.Struct) -> Answer: ...

    def search(self, question: str | SearchOptions) -> Answer:
        """Every mention of a name or text, classed and ranked; a page of them, enriched. See SearchOptions."""
        return self._ask("search", question)

    def find(self, question: str | FindOptions) -> FindAnswer:
        """Code about an idea, or the symbols that `symbol = A > b` names: ranked, connected, shown. See FindOptions.

        Vectors that are missing are made first if they are few; if not, words alone answer (`embed` makes them)."""
        return cast("FindAnswer", self._ask("find", question))

    def calls(self, question: str | CallsOptions) -> Answer:
        """Every call site of a function or method, with what is passed and from where. See CallsOptions."""
        return self._ask("calls", question)

    def graph(self, question: str | GraphOptions) -> Answer:
        """What a definition depends on and what depends on it, within some steps. See GraphOptions."""
        return self._ask("graph", question)

    def path(self, question: PathOptions) -> Answer:
        """How one definition reaches another: the shortest chains of calls."""
        return self.ask(question)

    def impact(self, question: str | ImpactOptions) -> Answer:
        """What depends on a definition, and so may break with it. See ImpactOptions."""
        return self._ask("impact", (question,) if isinstance(question, str) else question)

    def sig_impact(self, question: SignatureOptions) -> Answer:
        """Which call sites a new signature would break."""
        return self.ask(question)

    def imports(self, question: ImportsOptions | None = None) -> Answer:
        """Which file imports which, in cycles or not, and what comes from outside."""
        return self._ask("imports", question)

    def architecture(self, question: ArchitectureOptions | None = None) -> Answer:
        """Which rules of architecture hold, and what breaks the others. See ArchitectureOptions."""
        return self._ask("architecture", question)

    def api(self, question: str | ApiOptions = "") -> Answer:
        """What a package offers, how it is called here, and calls that cannot fit. See ApiOptions."""
        return self._ask("api", question)

    def dead(self, question: str | DeadOptions = "") -> Answer:
        """Definitions that nothing reaches, the surest first. See DeadOptions."""
        return self._ask("dead", question)

    def context(self, question: str | ContextOptions) -> Answer:
        """What to read to change something safely, within a budget of tokens. See ContextOptions."""
        return self._ask("context", (question,) if isinstance(question, str) else question)

    def types(self, question: str | TypesOptions) -> Answer:
        """The supertypes, subtypes and members of a type."""
        return self._ask("types", question)

    def hover(self, question: str | HoverOptions) -> Answer:
        """The signature or type of a name, and its documentation; by a language server where there is one."""
        return self._ask("hover", question)

    def lsp(self, question: LspOptions) -> Answer:
        """What else a language server says: actions, macro expansion, signatures, symbols, … See LspOptions."""
        return self.ask(question)

    def references(self, question: str | ReferencesOptions) -> Answer:
        """Every mention that means a definition, by links, language servers and name. See ReferencesOptions."""
        return self._ask("references", question)

    def diagnostics(self, question: DiagnosticsOptions | None = None) -> Answer:
        """What is wrong: what the syntax says, and what language servers say. See DiagnosticsOptions."""
        return self._ask("diagnostics", question)

    def exceptions(self, question: str | ExceptionsOptions = "") -> Answer:
        """What is raised, what catches it, and what nobody does. See ExceptionsOptions."""
        return self._ask("exceptions", question)

    def side_effects(self, question: str | EffectsOptions = "") -> Answer:
        """What happens when modules are loaded. See EffectsOptions."""
        return self._ask("side-effects", question)

    def projects(self, question: str | ProjectsOptions = "") -> Answer:
        """Which projects there are, what each refers to and extends. See ProjectsOptions."""
        return self._ask("projects", question)

    def rank(self, question: RankOptions | None = None) -> Answer:
        """The definitions that most of the repository depends on."""
        return self._ask("rank", question)

    def map(self, question: MapOptions | None = None) -> Answer:
        """How large the modules are, which depend on which, in what cycles. See MapOptions."""
        return self._ask("map", question)

    def neighborhood(self, question: str | NeighborhoodOptions) -> Answer:
        """Everything around one symbol, in 17 sections; the whole of it in `Answer.bundle`. See NeighborhoodOptions."""
        return self._ask("neighborhood", question)

    def read(self, question: str | ReadOptions) -> Answer:
        """The exact source of a symbol or of lines, or the outline of a file. See ReadOptions."""
        return self._ask("read", question)

    def scopes(self, question: str | ScopesOptions) -> Answer:
        """Which names a definition captures, keeps in cells, takes from the module or owns."""
        return self._ask("scopes", question)

    def bytecode(self, question: str | BytecodeOptions) -> Answer:
        """What a Python definition does with names once compiled, and what its handlers protect."""
        return self._ask("bytecode", question)

    def q(self, question: str | Query | QueryOptions) -> Answer:
        """Entities and code that match a query, as text or as a value of `cq.query`; QueryError for one that is none.
        See QueryOptions."""
        from cq.questions.q import QueryOptions

        return self.ask(question if isinstance(question, QueryOptions) else QueryOptions(str(question)))

    def run(self, question: Plan | RunOptions) -> Answer:
        """Every step of a plan over one generation of the index, merged. `make_plan` and `parse_plan` read plans."""
        from cq.questions.run import RunOptions

        return self.ask(question if isinstance(question, RunOptions) else RunOptions(question))

    def report(self, question: ReportOptions) -> Answer:
        """A plan by its name, for `function:…`, `class:…`, `module:…` or `path:…`."""
        return self.ask(question)

    def tests_for(self, question: str | TestsForOptions) -> Answer:
        """Which tests to run after a change, the likeliest to fail first. See TestsForOptions."""
        return self._ask("tests-for", (question,) if isinstance(question, str) else question)

    def diff(self, question: str | DiffOptions = "HEAD") -> Answer:
        """What a change means between two states of the repository: what breaks, whose calls, what is renamed. See
        DiffOptions."""
        return self._ask("diff", (question,) if isinstance(question, str) else question)

    def log(self, question: str | LogOptions) -> Answer:
        """The commits that changed a definition, back to the one that made it. See LogOptions."""
        return self._ask("log", question)

    def routes(self, question: str | RoutesOptions = "") -> Answer:
        """What comes in from outside, and what handles it: requests, commands, tasks, signals. See RoutesOptions."""
        return self._ask("routes", question)

    def risk(self, question: str | RiskOptions = "") -> Answer:
        """Where data from outside goes, step by step, and what is weak without it. See RiskOptions."""
        if isinstance(question, str):
            from cq.questions.risk import RiskOptions

            question = RiskOptions((question,) if question else ())
        return self.ask(question)

    def _ask(self, name: str, question: str | tuple[str, ...] | msgspec.Struct | None) -> Answer:
        """A text is the first option of a question, and None leaves all of them as they are by default."""
        if isinstance(question, msgspec.Struct):
            return self.ask(question)
        given = () if question is None else (question,)
        return self.ask(QUESTIONS[name].make_options(*given))
