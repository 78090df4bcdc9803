"""The tools, one struct each: its fields are what may be asked, its docstring is the description, and `command` is
the command that answers. To add a question, add a struct to TOOLS, or, if it is about one symbol, a word to
`CodebaseContext.what`. No SDK here: it costs most of a second to import.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Protocol

import msgspec
from msgspec import Meta

from cq.model.answer import Answer
from cq.model.status import Status

# What a client may rely on; a test keeps a copy of the schemas, which changes only together with this number.
SCHEMA_VERSION = 2

Budget = Annotated[int, Meta(ge=200, le=100_000, description="tokens the answer may cost")]
PageNumber = Annotated[int, Meta(ge=1, le=100_000)]
Text = Annotated[str, Meta(min_length=1, max_length=2000)]
Names = Annotated[list[Annotated[str, Meta(min_length=1, max_length=500)]], Meta(max_length=20)]


class Tool(Protocol):
    def command(self) -> list[str]: ...


class CodebaseSearch(msgspec.Struct, forbid_unknown_fields=True):
    """Find a name or text: definitions first, then calls, imports, uses; comments and strings counted apart. Use it
    instead of grep. `symbol = Class > method` gives the source of one definition. `path`: directories, files, globs.
    Example: {"query": "get_or_create", "path": ["src/"]}"""

    query: Text
    path: Names = []
    languages: Names = []
    budget: Budget = 8000
    page: PageNumber = 1

    def command(self) -> list[str]:
        if re.match(r"symbol\s*=", self.query):
            extra = [name for name in ("path", "languages") if getattr(self, name)] + ["page"] * (self.page > 1)
            if extra:
                # Rather refused than ignored.
                raise ValueError(f"`symbol = …` takes no {', '.join(extra)}: name the file in the query")
            return ["read", f"--budget={self.budget}", "--", self.query]
        return ["search", *_filter(self.path, self.languages), *_page(self.budget, self.page), "--", self.query]


class CodebaseContext(msgspec.Struct, forbid_unknown_fields=True):
    """What is around one symbol. what=calls: every call site with its arguments and caller; impact: what depends on it
    and may break, tests apart; graph: what it depends on and what depends on it; types: super- and subtypes, members.
    `target`: Name, Class.method, path:Name or path:line. `path` and `languages` filter callers.
    Example: {"what": "calls", "target": "QuerySet.get_or_create"}"""

    # Commands about one symbol; a new one is one more word here and in the description.
    what: Literal["calls", "impact", "graph", "types"]
    target: Text
    path: Names = []
    languages: Names = []
    budget: Budget = 8000
    page: PageNumber = 1

    def command(self) -> list[str]:
        extra = [name for name in ("path", "languages") if getattr(self, name)]
        if extra and self.what != "calls":
            raise ValueError(f"what={self.what} takes no {', '.join(extra)}")
        options = [*_filter(self.path, self.languages), *_page(self.budget, self.page)]
        return [self.what, *options, "--", self.target]


class CodebaseQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Code by structure: entities (function class method callsite import decorator …) and patterns with metavariables,
    combined by inside= has= decorated_by= not= and stages. Use it where text is not enough.
    Examples: {"query": "entity=function has=\"await $X\" in=src/"}, {"query": "pattern=\"getattr($X, $Y)\""}"""

    query: Text
    budget: Budget = 8000
    page: PageNumber = 1

    def command(self) -> list[str]:
        return ["q", *_page(self.budget, self.page), "--", self.query]


class CodebaseRead(msgspec.Struct, forbid_unknown_fields=True):
    """Exact source of a symbol (Name, Class.method, path:Name), of lines (path:10-40), or the outline of a file
    (path). Cheaper than reading whole files. Example: {"target": "src/app.py:main"}"""

    target: Text
    budget: Budget = 8000

    def command(self) -> list[str]:
        return ["read", f"--budget={self.budget}", "--", self.target]


class IndexStatus(msgspec.Struct, forbid_unknown_fields=True):
    """What is indexed: files, languages, freshness, what is degraded. Rarely needed: every answer is fresh."""

    def command(self) -> list[str]:
        return ["status"]


# Name -> (arguments, what the command prints as JSON).
TOOLS: dict[str, tuple[type[Tool], Any]] = {
    "codebase_search": (CodebaseSearch, Answer),
    "codebase_query": (CodebaseQuery, Answer),
    "codebase_context": (CodebaseContext, Answer),
    "codebase_read": (CodebaseRead, Answer),
    "index_status": (IndexStatus, Status),
}

INSTRUCTIONS = (
    "cq answers questions about the code of this repository from an index that is always fresh. Search before reading "
    "files; read symbols, not files; follow calls with codebase_context."
)

# What every answer holds. Its full schema is long and the same for all: `cq schema answer`.
_OUTPUT = {
    Answer: {
        "type": "object",
        "properties": {
            "command": {"type": "string"},
            "found": {"type": "integer"},
            "sections": {"type": "array"},
            "degraded": {"type": "array"},
        },
        "required": ["schema_version", "command", "run", "summary"],
    },
    Status: {"type": "object", "required": ["freshness", "files", "counts"]},
}


def parse_arguments(name: str, arguments: dict[str, Any]) -> list[str]:
    """The command that answers; ValueError that says which argument is wrong and how."""
    kind, _ = TOOLS[name]
    try:
        return msgspec.convert(arguments, kind).command()
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at ")
        field = place.strip("`$").strip(".")
        if unknown := re.search(r"unknown field `(.*)`", message):
            from difflib import get_close_matches

            known = getattr(kind, "__struct_fields__", ())
            close = get_close_matches(unknown[1], known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known) or 'none'}"
            raise ValueError(f"unknown argument {unknown[1]!r} ({hint})") from None
        raise ValueError(f"{field}: {message}" if field else message) from None


def describe_tools() -> list[dict[str, Any]]:
    """As the protocol lists them."""
    return [
        {
            "name": name,
            "description": " ".join((kind.__doc__ or "").split()),
            "inputSchema": _shorten(kind),
            "outputSchema": _OUTPUT[answer],
            "annotations": {
                "readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False,
            },
        }
        for name, (kind, answer) in TOOLS.items()
    ]  # fmt: skip


def _shorten(kind: type[Tool]) -> dict[str, Any]:
    """msgspec's own schema in one piece, without the words that say nothing."""
    schema = msgspec.json.schema(kind)
    (body,) = schema["$defs"].values()
    return {
        "type": "object",
        "properties": body.get("properties", {}),
        "required": body.get("required", []),
        "additionalProperties": False,
    }


def _filter(path: list[str], languages: list[str]) -> list[str]:
    given = [f"--include={one}" if re.search(r"[*?\[]", one) else f"--in={one}" for one in path]
    return given + ([f"--lang={','.join(languages)}"] if languages else [])


def _page(budget: int, page: int) -> list[str]:
    return [f"--budget={budget}", f"--page={page}"]
