"""The tools, one struct each: its fields are what may be asked, its docstring is the description, and `command` is
the command that answers. To add a question, add a struct to TOOLS, or, if it is about one symbol, a word to
`CodebaseContext.what`. No SDK here: it costs most of a second to import.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal, Protocol

import msgspec
from msgspec import Meta

from cq.model.answer import Answer
from cq.model.find import FindAnswer
from cq.model.status import Status
from cq.surfaces.cli import find_controls

# What a client may rely on; a test keeps a copy of the schemas, which changes only together with this number.
SCHEMA_VERSION = 7

DEFAULT_BUDGET = 8000
Budget = Annotated[int, Meta(ge=200, le=100_000, description="tokens the answer may cost")]
PageNumber = Annotated[int, Meta(ge=1, le=100_000)]
LONGEST_WORD = 2000
Text = Annotated[str, Meta(min_length=1, max_length=LONGEST_WORD)]
# Of several targets one answer each, within one budget.
Targets = Text | Annotated[list[Text], Meta(min_length=1, max_length=20)]
CountedBy = Literal["", "count", "file", "directory", "kind", "caller"]
Names = Annotated[list[Annotated[str, Meta(min_length=1, max_length=500)]], Meta(max_length=20)]


class Tool(Protocol):
    __struct_fields__: ClassVar[tuple[str, ...]]

    def command(self) -> list[str]: ...


class CodebaseSearch(msgspec.Struct, forbid_unknown_fields=True):
    """Find code; use it instead of grep. A name or text: every mention, definitions first, then calls, imports, uses.
    A question in words, or `symbol = Class > method`: the code about it, how it is connected, its source.
    The answer says which of these it was. `path`: directories, files, globs. `by` counts mentions instead.
    Examples: {"query": "get_or_create", "path": ["src/"]}, {"query": "how are passwords hashed"}"""

    query: Text
    path: Names = []
    languages: Names = []
    budget: Budget = DEFAULT_BUDGET
    page: PageNumber = 1
    by: CountedBy = ""

    def command(self) -> list[str]:
        if re.match(r"symbol\s*=", self.query) or is_question(self.query):
            _refuse(self, "a question in words, or `symbol = …`,", "page", "by")
            paths = [f"--path={one}" for one in self.path]
            languages = [f"--lang={','.join(self.languages)}"] if self.languages else []
            return ["find", *paths, *languages, f"--budget={_share(self.budget)}", "--", self.query]
        paging = [*_page(self.budget, self.page), *_count(self)]
        return ["search", *_filter(self.path, self.languages), *paging, "--", self.query]


class CodebaseContext(msgspec.Struct, forbid_unknown_fields=True):
    """What is around one symbol. what=neighborhood: all of it in short, the place to begin; calls: every call site
    with its arguments and caller, if `to` is why also how the target got there; references: every use; impact: what
    depends on it and may break, tests apart; tests-for: which tests to run; sig-impact: which calls the signature `to`
    would break; graph: what it depends on and what depends on it; types: super- and subtypes, members, overriders of a
    method; path: how it reaches `to`; hover: signature and documentation; lsp: what a language server says, `to` being
    actions, declaration, definition, document-symbols, hints, implementation, macro, runnables, signature-help, tokens,
    type-definition, workspace-symbols or (of `.`) workspace-diagnostics.
    `target`: Name, Class.method, path:Name or path:line, or a list of them. `by` counts instead of listing. `path` and
    `languages` filter calls and references.
    Example: {"what": "calls", "target": "QuerySet.get_or_create"}"""

    target: Targets
    # Commands about one symbol; a new one is one more word here and in the description.
    what: Literal[
        "neighborhood",
        "calls",
        "references",
        "impact",
        "tests-for",
        "sig-impact",
        "graph",
        "types",
        "path",
        "hover",
        "lsp",
    ] = "neighborhood"
    to: Annotated[str, Meta(max_length=LONGEST_WORD)] = ""
    path: Names = []
    languages: Names = []
    budget: Budget = DEFAULT_BUDGET
    page: PageNumber = 1
    by: CountedBy = ""

    def command(self) -> list[str]:
        of = f"what={self.what}"
        if self.what == "calls" and self.to:
            if self.to != "why":
                raise ValueError(f"{of} takes `to`: why, or nothing")
        elif self.what not in _WITH_TO:
            _refuse(self, of, "to")
        elif not self.to:
            raise ValueError(f"{of} needs `to`: {_WITH_TO[self.what]}")
        if self.what not in ("calls", "references"):
            _refuse(self, of, "path", *(["languages"] if self.what != "lsp" else []))
        if self.what in ("neighborhood", "path", "hover"):
            _refuse(self, of, "by", *(["page"] if self.what != "hover" else []))
        if self.what == "path":
            _refuse(self, of, "budget")
            return ["path", "--", *_one(self.target, of), self.to]
        paging = _page(self.budget, self.page)[: 2 if self.what == "neighborhood" else 3]
        if self.what == "lsp":
            everything = self.to == "workspace-diagnostics" and self.target == "."
            about = [] if everything else _one(self.target, of)
            return ["lsp", *_filter([], self.languages), *paging, "--", self.to, *about]
        to = [f"--to={self.to}"] if self.to else []
        to = ["--why"] if self.what == "calls" and self.to else to
        return [self.what, *to, *_filter(self.path, self.languages), *paging, *_count(self), "--", *_list(self.target)]


class CodebaseQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Code by structure: entities (function class method callsite import decorator …) and patterns with metavariables,
    combined by inside= has= decorated_by= not= and stages. Use it where text is not enough.
    Examples: {"query": "entity=function has=\"await $X\" in=src/"}, {"query": "pattern=\"getattr($X, $Y)\""}"""

    query: Text
    budget: Budget = DEFAULT_BUDGET
    page: PageNumber = 1

    def command(self) -> list[str]:
        return ["q", *_page(self.budget, self.page)[1:], "--", self.query]  # which counts text as it is


class CodebaseRead(msgspec.Struct, forbid_unknown_fields=True):
    """Exact source of a symbol (Name, Class.method, path:Name), of lines (path:10-40), or the outline of a file
    (path), or of a list of these. Cheaper than reading whole files. Example: {"target": "src/app.py:main"}"""

    target: Targets
    budget: Budget = DEFAULT_BUDGET

    def command(self) -> list[str]:
        return ["read", f"--budget={_share(self.budget)}", "--", *_list(self.target)]


class CodebaseCheck(msgspec.Struct, forbid_unknown_fields=True):
    """What is wrong with code: syntax errors, and what type checkers say where they are installed. Ask after an edit.
    Example: {"path": ["src/app.py"]}"""

    path: Names = []
    severity: Literal["error", "warning", "info", "hint"] = "warning"
    budget: Budget = DEFAULT_BUDGET
    page: PageNumber = 1

    def command(self) -> list[str]:
        return ["diagnostics", f"--severity={self.severity}", *_page(self.budget, self.page), "--", *self.path]


class IndexStatus(msgspec.Struct, forbid_unknown_fields=True):
    """What is indexed: files, languages, freshness, what is degraded. Rarely needed: every answer is fresh."""

    def command(self) -> list[str]:
        return ["status"]


# What `to` is, where it is asked for.
_WITH_TO = {
    "path": "the symbol that is reached",
    "sig-impact": "the new signature, e.g. save(self, row)",
    "lsp": "what is asked, e.g. type-definition",
}

# Name -> (arguments, what the command prints as JSON).
TOOLS: dict[str, tuple[type[Tool], Any]] = {
    "codebase_search": (CodebaseSearch, Answer),
    "codebase_query": (CodebaseQuery, Answer),
    "codebase_context": (CodebaseContext, Answer),
    "codebase_read": (CodebaseRead, Answer),
    "codebase_check": (CodebaseCheck, Answer),
    "index_status": (IndexStatus, Status),
}

# Where a command answers with more than the tool's others do.
WIDER = {"find": FindAnswer}

INSTRUCTIONS = (
    "cq answers questions about the code of this repository from an index that is always fresh. Search before reading "
    "files; read symbols, not files, several in one call; codebase_context says what is around a symbol; "
    "codebase_check after edits."
)


def parse_arguments(name: str, arguments: dict[str, Any]) -> list[str]:
    """The command that answers; ValueError that says which argument is wrong and how."""
    kind, _ = TOOLS[name]
    try:
        given = msgspec.convert(arguments, kind)
        _check_text(given)
        return given.command()
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at ")
        field = place.strip("`$").strip(".")
        if unknown := re.search(r"unknown field `(.*)`", message):
            from difflib import get_close_matches

            known = kind.__struct_fields__
            close = get_close_matches(unknown[1], known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known) or 'none'}"
            raise ValueError(f"unknown argument {unknown[1]!r} ({hint})") from None
        raise ValueError(f"{field}: {message}" if field else message) from None


def _check_text(given: Tool) -> None:
    for name in given.__struct_fields__:
        value = getattr(given, name)
        words: list[str] = [value] if isinstance(value, str) else value if isinstance(value, list) else []
        for word in words:
            check_word(name, word, lines=isinstance(value, str))


def check_word(name: str, word: str, *, lines: bool = False) -> None:
    """ValueError for what can be in no text and no name of a file that is indexed; `lines` allows for several."""
    controls = find_controls(word) or [char for char in word if char < " " and not lines]
    if controls:
        raise ValueError(f"{name}: a control character (U+{ord(controls[0]):04X}) is no part of a name or a text")
    if any("\ud800" <= char <= "\udfff" for char in word):
        raise ValueError(f"{name}: half of a surrogate pair is no text")
    if len(word) > LONGEST_WORD:
        raise ValueError(f"{name}: it is longer than {LONGEST_WORD:,} characters")


def describe_tools() -> list[dict[str, Any]]:
    """As the protocol lists them."""
    return [
        {
            "name": name,
            "description": " ".join((kind.__doc__ or "").split()),
            "inputSchema": _shorten(kind),
            "annotations": {
                "readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False,
            },
        }
        for name, (kind, _) in TOOLS.items()
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


def _share(budget: int) -> int:
    """Of a budget for what is sent, what the text may cost: it is sent as JSON, in pieces. Always the same share, so
    that pages meet."""
    return budget * 4 // 5


def is_question(text: str) -> bool:
    """Whether it is asked in words rather than named: two or more plain words that do not begin like code."""
    words = text.rstrip("?!. ").split()
    plain = all(re.fullmatch(r"(?:[A-Z]?[a-z]+(?:['’-][a-z]+)*|[AI]|[A-Z]{2,5}s?),?", word) for word in words)
    return len(words) > 1 and plain and words[0] not in _CODE


_CODE = frozenset({
    "class", "def", "import", "from", "function", "fn", "const", "let", "var", "return", "async", "await", "struct",
    "impl", "enum", "interface", "type", "trait", "raise", "throw", "new", "export", "public", "private", "static",
})  # fmt: skip


def _list(targets: str | list[str]) -> list[str]:
    return [targets] if isinstance(targets, str) else targets


def _one(targets: str | list[str], what: str) -> list[str]:
    """ValueError for several where the question is about one."""
    if len(_list(targets)) > 1:
        raise ValueError(f"{what} takes one `target`")
    return _list(targets)


def _count(given: CodebaseSearch | CodebaseContext) -> list[str]:
    return [] if not given.by else ["--count"] if given.by == "count" else [f"--by={given.by}"]


def _refuse(given: Tool, what: str, *names: str) -> None:
    """ValueError for arguments that would do nothing: rather refused than ignored."""
    extra = [name for name in names if getattr(given, name) not in ([], "", 1, DEFAULT_BUDGET)]
    if extra:
        raise ValueError(f"{what} takes no {', '.join(extra)}")


def _filter(path: list[str], languages: list[str]) -> list[str]:
    given = [f"--include={one}" if re.search(r"[*?\[]", one) else f"--in={one}" for one in path]
    return given + ([f"--lang={','.join(languages)}"] if languages else [])


def _page(budget: int, page: int) -> list[str]:
    return ["--measure=text", f"--budget={_share(budget)}", f"--page={page}"]
