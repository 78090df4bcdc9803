from cq import query
from cq.answers.options import Options
from cq.answers.page import Page
from cq.model.answer import (
    Agreement,
    Answer,
    ApiDetails,
    ArtifactRef,
    AsOf,
    BlameDetails,
    Budget,
    CallArgument,
    CallDetails,
    Candidate,
    Capture,
    ChangeDetails,
    CommitDetails,
    Confidence,
    CountDetails,
    DeadDetails,
    Degradation,
    DependencyDetails,
    DiagnosticDetails,
    EffectDetails,
    ExceptionDetails,
    FactDetails,
    Finding,
    GraphEdge,
    HoverDetails,
    ImportDetails,
    Insight,
    LinkDetails,
    MatchDetails,
    MeantName,
    ModuleDetails,
    NameBinding,
    NamesDetails,
    NodeDetails,
    PackDetails,
    PassedAt,
    ProjectDetails,
    QueryDetails,
    ReferenceDetails,
    Risk,
    RouteDetails,
    Run,
    Section,
    ServerDetails,
    Slice,
    SourceDetails,
    Target,
    Truncation,
    TypeDetails,
    ViolationDetails,
)
from cq.model.artifact import ExportReport, Validation
from cq.model.config import Configuration
from cq.model.errors import (
    ConfigError,
    CqError,
    DaemonError,
    ProviderError,
    QueryError,
    SourceError,
    StoreError,
    UsageError,
)
from cq.model.find import ConnectionGraph, FindAnswer, Result, ScoreParts
from cq.model.history import Blamed, Change, Commit, Revision
from cq.model.location import Location
from cq.model.neighborhood import Bundle, BundleEdge, NeighborhoodSlice
from cq.model.plan import Plan, Step
from cq.model.status import Check, Degraded, Freshness, LanguageStatus, MistakeStatus, Status
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
from cq.questions.run.plan import make_plan, parse_plan
from cq.questions.scopes import ScopesOptions
from cq.questions.search import SearchOptions
from cq.questions.side_effects import EffectsOptions
from cq.questions.sig_impact import SignatureOptions
from cq.questions.tests_for import TestsForOptions
from cq.questions.types import TypesOptions
from cq.snapshot.rows import Completion, IndexedCall, IndexedChunk, IndexedFile, IndexedSymbol
from cq.workspace import Workspace

__version__: str
__all__ = [
    "Agreement", "Answer", "ApiDetails", "ApiOptions", "ArchitectureOptions", "ArtifactRef", "AsOf", "BlameDetails",
    "Blamed", "Budget", "Bundle", "BundleEdge", "BytecodeOptions", "CallArgument", "CallDetails", "CallsOptions",
    "Candidate", "Capture", "Change", "ChangeDetails", "Check", "Commit", "CommitDetails", "Completion", "Confidence",
    "ConfigError", "Configuration", "ConnectionGraph", "ContextOptions", "CountDetails", "CqError", "DaemonError",
    "DeadDetails", "DeadOptions", "Degradation", "Degraded", "DependencyDetails", "DiagnosticDetails",
    "DiagnosticsOptions", "DiffOptions", "EffectDetails", "EffectsOptions", "ExceptionDetails", "ExceptionsOptions",
    "ExportReport", "FactDetails", "FindAnswer", "FindOptions", "Finding", "Freshness", "GraphEdge", "GraphOptions",
    "HoverDetails", "HoverOptions", "ImpactOptions", "ImportDetails", "ImportsOptions", "IndexedCall", "IndexedChunk",
    "IndexedFile", "IndexedSymbol", "Insight", "LanguageStatus", "LinkDetails", "Location", "LogOptions", "LspOptions",
    "MapOptions", "MatchDetails", "MeantName", "MistakeStatus", "ModuleDetails", "NameBinding", "NamesDetails",
    "NeighborhoodOptions", "NeighborhoodSlice", "NodeDetails", "Options", "PackDetails", "Page", "PassedAt",
    "PathOptions", "Plan", "ProjectDetails", "ProjectsOptions", "ProviderError", "QueryDetails", "QueryError",
    "QueryOptions", "RankOptions", "ReadOptions", "ReferenceDetails", "ReferencesOptions", "ReportOptions", "Result",
    "Revision", "Risk", "RiskOptions", "RouteDetails", "RoutesOptions", "Run", "RunOptions", "ScopesOptions",
    "ScoreParts", "SearchOptions", "Section", "ServerDetails", "SignatureOptions", "Slice", "SourceDetails",
    "SourceError", "Status", "Step", "StoreError", "Target", "TestsForOptions", "Truncation", "TypeDetails",
    "TypesOptions", "UsageError", "Validation", "ViolationDetails", "Workspace", "__version__", "make_plan",
    "parse_plan", "query",
]  # fmt: skip
