"""What a user may configure, and where each value came from."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from cq.model.neighborhood import Section

_Patterns = Annotated[tuple[str, ...], msgspec.Meta(description="patterns as in .gitignore, from the root")]


class IndexConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[index]`. The bounds hold for flags too; the file may come with a stranger's repository."""

    include: _Patterns = ()
    exclude: _Patterns = ()
    max_file_bytes: Annotated[int, msgspec.Meta(ge=1, le=256 * 1024 * 1024)] = 2 * 1024 * 1024
    max_files: Annotated[int, msgspec.Meta(ge=1, le=10_000_000)] = 1_000_000
    jobs: Annotated[int, msgspec.Meta(ge=0, le=256, description="0: one per core")] = 0
    memory_mb: Annotated[int, msgspec.Meta(ge=0, le=1_048_576, description="0: no limit")] = 0
    dir: Annotated[str, msgspec.Meta(description="a directory below the root that holds the index")] = ""


_Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$")]
_Text = Annotated[str, msgspec.Meta(max_length=10_000)]
_Names = Annotated[tuple[str, ...], msgspec.Meta(description="names of providers, as `cq doctor` shows them")]


class LanguageServer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table `[providers.lsp.NAME]`: a language server that cq does not know by itself."""

    cmd: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=32)]
    languages: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=64)]


class ProvidersConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[providers]`."""

    allow: _Names = ()  # if any is named, only these
    deny: _Names = ()
    settings: dict[
        str, dict[str, Any]
    ] = {}  # by provider, for servers that ask; used where the user trusts the repository
    lsp: Annotated[dict[str, LanguageServer], msgspec.Meta(max_length=64)] = {}
    order: _Names = ()  # who is asked before the others
    timeout: Annotated[float, msgspec.Meta(ge=0, le=600, description="seconds for an answer; 0: by question")] = 0.0
    retries: Annotated[int, msgspec.Meta(ge=0, le=5, description="of a question that timed out")] = 1
    breaker: Annotated[int, msgspec.Meta(ge=1, le=20, description="restarts until a server is given up")] = 4
    max_files: Annotated[int, msgspec.Meta(ge=0, le=1_000_000, description="of one question; 0: no limit")] = 0
    max_file_bytes: Annotated[int, msgspec.Meta(ge=0, le=256 * 1024 * 1024, description="0: no limit")] = 0
    doctor_on_build: bool = False  # `cq index` says which providers can be asked


class SectionOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[neighborhood.section_order]`: sections that are not named follow in their usual order."""

    order: tuple[Section, ...] = ()


class NeighborhoodConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[neighborhood]`."""

    section_order: SectionOrder = SectionOrder()


class ArtifactsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[artifacts]`: where is kept what answers are too short for."""

    store: Literal["files", "sqlite"] = "files"


class HistoryConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[history]`: revisions that were asked stay in the index while there is room."""

    max_mb: Annotated[int, msgspec.Meta(ge=0, le=1_048_576)] = 512


EXTRA_BACKENDS = ("usearch", "lancedb")  # vector indexes that are packages of their own
_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
_Address = Annotated[str, msgspec.Meta(max_length=500)]


class FindConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The table `[find]`. Weights and the threshold that are not set are those measured for the models at hand."""

    rerank_weight: _Share | None = None
    vector_weight: _Share | None = None
    minimum_relevance_threshold: _Share | None = None
    max_token_budget: Annotated[int, msgspec.Meta(ge=0, le=1_000_000, description="0: no limit")] = 8000
    max_vector_candidates: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 40
    call_depth: Annotated[int, msgspec.Meta(ge=-1, le=25, description="-1: as far as it goes")] = 1
    type_depth: Annotated[int, msgspec.Meta(ge=0, le=10)] = 1
    profile: Literal["default", "lexical_only", "vector_only"] = "default"
    backend: Literal["auto", "exact", "usearch", "lancedb"] = "auto"
    # A repository may keep its code here (`local`), never send it away: that is for ModelsConfig.
    embedder: Literal["local", "minilm", "voyage", "openai"] | None = None
    reranker: Literal["local", "voyage"] | None = None


class HostedService(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table `[voyage]` or `[openai]` of the user's models.toml; what is not set is what the service is known for."""

    url: _Address = ""
    key_variable: Annotated[str, msgspec.Meta(pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?$")] = ""
    model: _Address = ""
    rerank_model: _Address = ""
    dimensions: Annotated[int, msgspec.Meta(ge=0, le=8192)] = 0
    requests_per_minute: Annotated[int, msgspec.Meta(ge=0, description="0: no limit")] = 0
    tokens_per_minute: Annotated[int, msgspec.Meta(ge=0, description="0: no limit")] = 0
    price_per_million: Annotated[float, msgspec.Meta(ge=0, description="tokens; 0: not known")] = 0.0


class ModelsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The user's own models.toml, in no repository: which models rank, and so what leaves the machine."""

    embedder: Literal["local", "minilm", "voyage", "openai"] = "local"
    reranker: Literal["local", "voyage"] = "local"
    voyage: HostedService = HostedService()
    openai: HostedService = HostedService()


class RiskCapsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The table `[risk.caps]`."""

    max_depth: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 4
    max_paths_per_pair: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 200
    max_total_flows: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 500
    max_call_sites_per_edge: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 3
    max_ms: Annotated[int, msgspec.Meta(ge=1, le=86_400_000, description="no limit where it is not set")] | None = None


class RiskConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The table `[risk]`: files with rules of one's own, for every answer; the rest is for exports."""

    rules: Annotated[
        tuple[str, ...], msgspec.Meta(max_length=100, description="files below the root with rules of one's own")
    ] = ()
    enabled: bool = True
    summary_only: bool = False
    strictness: Literal["argAware", "conservative"] = "argAware"
    emit_artifacts: Literal["jsonl", "none"] = "jsonl"
    sanitizer_policy: Literal["terminate", "weaken"] = "terminate"
    caps: RiskCapsConfig = RiskCapsConfig()


_Places = Annotated[
    tuple[str, ...], msgspec.Meta(description="modules (`app.web`, `app.*.models`), paths or patterns as in .gitignore")
]
RuleKind = Literal["forbidden", "layers", "independent", "acyclic", "only_through"]
EdgeKind = Literal["imports", "calls", "inherits", "type_uses", "instantiates", "decorates", "usages", "raises"]


class RuleException(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"source": "from", "target": "to"}):
    """A table `[[architecture.rules.exceptions]]`: edges that a rule does not see, and until when."""

    source: str
    target: str
    reason: str
    until: str = ""  # the last day, as 2027-01-31


class ArchitectureRule(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"source": "from", "target": "to"}
):
    """A table `[[architecture.rules]]`. Which fields a kind takes is checked when the rules are."""

    id: _Name
    kind: RuleKind
    reason: str = ""
    severity: Literal["error", "warning", "info"] = "error"
    source: tuple[str, ...] = ()  # groups whose edges are looked at
    target: tuple[str, ...] = ()  # groups that they must not lead to
    groups: tuple[str, ...] = ()  # of independent and acyclic
    layers: tuple[str, ...] = ()  # the highest first; `a | b` are side by side and know nothing of each other
    door: _Places = ()  # of only_through: by what the group may be entered
    edges: tuple[EdgeKind, ...] = ("imports",)
    indirect: bool | None = None  # whether a way through other files counts; None: as is usual for the kind
    types: bool = True  # whether what only a type checker follows counts
    level: Literal["file", "directory"] = "file"  # of acyclic
    exceptions: tuple[RuleException, ...] = ()


class ArchitectureConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[architecture]`: which part of the code may depend on which."""

    groups: dict[_Name, str | _Places] = {}
    rules: tuple[ArchitectureRule, ...] = ()


class ConfigFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole `cq.toml`, or `[tool.cq]` of a pyproject.toml."""

    index: IndexConfig = IndexConfig()
    queries: Annotated[
        dict[_Name, _Text], msgspec.Meta(max_length=500, description="named queries: `@name` in `cq q`")
    ] = {}
    providers: ProvidersConfig = ProvidersConfig()
    neighborhood: NeighborhoodConfig = NeighborhoodConfig()
    artifacts: ArtifactsConfig = ArtifactsConfig()
    find: FindConfig = FindConfig()
    history: HistoryConfig = HistoryConfig()
    architecture: ArchitectureConfig = ArchitectureConfig()
    risk: RiskConfig = RiskConfig()


class Setting(msgspec.Struct, frozen=True):
    """One value with its source: `flag`, `environment NAME`, a file with its line, or `default`."""

    name: str
    value: str | float | tuple[str, ...] | None
    source: str


class Configuration(msgspec.Struct, frozen=True):
    """Everything that holds for one root. `index.dir` is as the user wrote it; empty for the cache directory."""

    index: IndexConfig
    settings: tuple[Setting, ...]
    notes: tuple[str, ...] = ()
    queries: dict[str, str] = {}
    providers: ProvidersConfig = ProvidersConfig()
    neighborhood: NeighborhoodConfig = NeighborhoodConfig()
    artifacts: ArtifactsConfig = ArtifactsConfig()
    find: FindConfig = FindConfig()
    models: ModelsConfig = ModelsConfig()
    history: HistoryConfig = HistoryConfig()
    architecture: ArchitectureConfig = ArchitectureConfig()
    risk: RiskConfig = RiskConfig()

    def source(self, name: str) -> str:
        return next(setting.source for setting in self.settings if setting.name == name)
