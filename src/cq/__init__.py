"""Code intelligence for a repository: open a `Workspace`, ask it questions, get answers as plain data.

Importing this package costs nothing: each public name is loaded when it is first used. `__init__.pyi` says the same to
type checkers.
"""

from __future__ import annotations

__version__ = "0.4.0"

# Module -> what of it is public: every options and answer type, and the errors.
_PUBLIC = {
    "cq.answers.options": "Options",
    "cq.answers.page": "Page",
    "cq.model.answer": (
        "Agreement Answer ApiDetails ArtifactRef AsOf BlameDetails Budget CallArgument CallDetails "
        "Candidate Capture ChangeDetails CommitDetails Confidence CountDetails DeadDetails Degradation "
        "DependencyDetails DiagnosticDetails EffectDetails ExceptionDetails FactDetails Finding GraphEdge "
        "HoverDetails ImportDetails Insight LinkDetails MatchDetails MeantName ModuleDetails NameBinding "
        "NamesDetails NodeDetails PackDetails PassedAt ProjectDetails QueryDetails ReferenceDetails Risk "
        "RouteDetails Run Section ServerDetails Slice SourceDetails Target Truncation TypeDetails "
        "ViolationDetails"
    ),
    "cq.model.artifact": "ExportReport Validation",
    "cq.model.config": "Configuration",
    "cq.model.errors": "ConfigError CqError DaemonError ProviderError QueryError SourceError StoreError UsageError",
    "cq.model.find": "ConnectionGraph FindAnswer Result ScoreParts",
    "cq.model.history": "Blamed Change Commit Revision",
    "cq.model.location": "Location",
    "cq.model.neighborhood": "Bundle BundleEdge NeighborhoodSlice",
    "cq.model.plan": "Plan Step",
    "cq.model.status": "Check Degraded Freshness LanguageStatus MistakeStatus Status",
    "cq.questions.api": "ApiOptions",
    "cq.questions.architecture": "ArchitectureOptions",
    "cq.questions.bytecode": "BytecodeOptions",
    "cq.questions.calls": "CallsOptions",
    "cq.questions.context": "ContextOptions",
    "cq.questions.dead": "DeadOptions",
    "cq.questions.diagnostics": "DiagnosticsOptions",
    "cq.questions.diff": "DiffOptions",
    "cq.questions.exceptions": "ExceptionsOptions",
    "cq.questions.find": "FindOptions",
    "cq.questions.graph": "GraphOptions",
    "cq.questions.hover": "HoverOptions",
    "cq.questions.impact": "ImpactOptions",
    "cq.questions.imports": "ImportsOptions",
    "cq.questions.log": "LogOptions",
    "cq.questions.lsp": "LspOptions",
    "cq.questions.map": "MapOptions",
    "cq.questions.neighborhood": "NeighborhoodOptions",
    "cq.questions.path": "PathOptions",
    "cq.questions.projects": "ProjectsOptions",
    "cq.questions.q": "QueryOptions",
    "cq.questions.rank": "RankOptions",
    "cq.questions.read": "ReadOptions",
    "cq.questions.references": "ReferencesOptions",
    "cq.questions.risk": "RiskOptions",
    "cq.questions.routes": "RoutesOptions",
    "cq.questions.run": "ReportOptions RunOptions",
    "cq.questions.run.plan": "make_plan parse_plan",
    "cq.questions.scopes": "ScopesOptions",
    "cq.questions.search": "SearchOptions",
    "cq.questions.side_effects": "EffectsOptions",
    "cq.questions.sig_impact": "SignatureOptions",
    "cq.questions.tests_for": "TestsForOptions",
    "cq.questions.types": "TypesOptions",
    "cq.snapshot.rows": "Completion IndexedCall IndexedChunk IndexedFile IndexedSymbol",
    "cq.workspace": "Workspace",
}
_HOMES = {name: module for module, names in _PUBLIC.items() for name in names.split()}
__all__ = sorted([*_HOMES, "__version__", "query"])  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    if name not in _HOMES and name != "query":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    if name == "query":
        return import_module("cq.query")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)  # the next use does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
