"""The tools, one struct each: its fields are what may be asked, its docstring is the description, and `ask` gives the
question and its options, as they are written. Every question that has no tool of its own is asked by
`codebase_context`, by the table of questions. No SDK here: it costs most of a second to import.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal, Protocol, cast

import msgspec
from msgspec import Meta

from cq.answers.options import Written, find_written
from cq.model.answer import Answer
from cq.model.errors import suggest
from cq.model.find import FindAnswer
from cq.model.status import Status
from cq.questions.table import QUESTIONS
from cq.surfaces.asked import Asked
from cq.surfaces.cli import find_controls

# What a client may rely on; a test keeps a copy of the schemas, which changes only together with this number.
SCHEMA_VERSION = 9

DEFAULT_BUDGET = 8000
Budget = Annotated[int, Meta(ge=200, le=100_000, description="tokens the answer may cost")]
PageNumber = Annotated[int, Meta(ge=1, le=100_000)]
LONGEST_WORD = 2000
Text = Annotated[str, Meta(min_length=1, max_length=LONGEST_WORD)]
# Of several targets one answer each, within one budget.
Targets = Text | Annotated[list[Text], Meta(min_length=1, max_length=20)]
CountedBy = Literal["", "count", "file", "directory", "kind", "caller"]
Names = Annotated[list[Annotated[str, Meta(min_length=1, max_length=500)]], Meta(max_length=20)]


Options = Annotated[dict[str, Any], Meta(description="as in the CLI")]


class Tool(Protocol):
    __struct_fields__: ClassVar[tuple[str, ...]]

    def ask(self) -> tuple[str, dict[str, Any]]: ...


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

    def ask(self) -> tuple[str, dict[str, Any]]:
        if re.match(r"symbol\s*=", self.query) or is_question(self.query):
            _refuse(self, "a question in words, or `symbol = …`,", "page", "by")
            return "find", {
                "query": self.query, "path": self.path, "lang": self.languages, "budget": _share(self.budget),
            }  # fmt: skip
        paging = {**_page(self.budget, self.page), **_count(self.by)}
        return "search", {"text": self.query, **_filter(self.path, self.languages), **paging}


class CodebaseContext(msgspec.Struct, forbid_unknown_fields=True):
    """What is around one symbol. what=neighborhood: all in short; context: a pack to change it safely;
    calls: every call site, its arguments and caller, if `to` is why also how the target got there; references: every
    use; impact: what may break, tests apart; tests-for: which tests to run; sig-impact: which calls the signature `to`
    would break; graph: dependencies, dependents; types: bases, subtypes, members; path:
    how it reaches `to`; hover: signature, doc; lsp: of a server, `to` being actions,
    declaration, definition, document-symbols, hints, implementation, macro, runnables, signature-help, tokens,
    type-definition, workspace-symbols or (of `.`) workspace-diagnostics; of paths or `.`: api, architecture, dead,
    exceptions, risk, routes, side-effects, imports, map, projects, rank.
    `target`: Name, Class.method, path:Name, path:line, or a list. `by` counts only. `path` and
    `languages` filter calls and references.
    Example: {"what": "calls", "target": "QuerySet.get_or_create"}"""

    target: Targets
    what: str = "neighborhood"
    to: Annotated[str, Meta(max_length=LONGEST_WORD)] = ""
    path: Names = []
    languages: Names = []
    options: Options = {}
    budget: Budget = DEFAULT_BUDGET
    page: PageNumber = 1
    by: CountedBy = ""

    def ask(self) -> tuple[str, dict[str, Any]]:
        if self.what == "pack":
            return msgspec.structs.replace(self, what="context").ask()
        of = f"what={self.what}"
        if self.what not in QUESTIONS:
            raise ValueError(f"what: there is no {self.what!r} ({suggest(self.what, find_around())})")
        written = {one.key: one for one in find_written(QUESTIONS[self.what].load_options())}
        subject, beside = _find_arguments(self.what, list(written))
        given: dict[str, Any] = {}
        if self.target != "." or (subject and written[subject].required):
            if not subject:
                raise ValueError(f"{of} is about everything: `target` is `.`")
            given[subject] = _find_targets(self.target, written[subject], of)
        if self.what == "calls" and self.to:
            if self.to != "why":
                raise ValueError(f"{of} takes `to`: why, or nothing")
            given["why"] = True
        elif not beside:
            _refuse(self, of, "to")
        elif not self.to:
            raise ValueError(f"{of} needs `to`: {_TO.get(self.what, written[beside].help)}")
        else:
            given[beside] = self.to
        # An option that is called `by` and does not count is none of these.
        filters = {
            name: key for name, key in _FILTERS.items() if key != "by" or "by" not in written or written["by"].part
        }
        _refuse(self, of, *(name for name, key in _FILTERS.items() if key not in written or name not in filters))
        given |= {key: value for key, value in _filter(self.path, self.languages).items() if value}
        paging = {**_page(self.budget, self.page), **_count(self.by)}
        given |= {key: value for key, value in paging.items() if key in written}
        twice = [key for key in self.options if key in given or key in filters.values()]
        if twice:
            raise ValueError(f"options: {twice[0]} is an argument of its own")
        return self.what, given | self.options


class CodebaseQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Code by structure: entities (function class method callsite import decorator …) and patterns with metavariables,
    combined by inside= has= decorated_by= not= and stages. Use it where text is not enough.
    Examples: {"query": "entity=function has=\"await $X\" in=src/"}, {"query": "pattern=\"getattr($X, $Y)\""}"""

    query: Text
    budget: Budget = DEFAULT_BUDGET
    page: PageNumber = 1

    def ask(self) -> tuple[str, dict[str, Any]]:
        return "q", {"query": self.query, **_page(self.budget, self.page)}


class CodebaseRead(msgspec.Struct, forbid_unknown_fields=True):
    """Exact source of a symbol (Name, Class.method, path:Name), of lines (path:10-40), or the outline of a file
    (path), or of a list of these. Cheaper than reading whole files. Example: {"target": "src/app.py:main"}"""

    target: Targets
    budget: Budget = DEFAULT_BUDGET

    def ask(self) -> tuple[str, dict[str, Any]]:
        return "read", {"target": self.target, "budget": _share(self.budget)}


class CodebaseCheck(msgspec.Struct, forbid_unknown_fields=True):
    """What is wrong with code: syntax errors, and what type checkers say where they are installed. Ask after an edit.
    Example: {"path": ["src/app.py"]}"""

    path: Names = []
    severity: Literal["error", "warning", "info", "hint"] = "warning"
    budget: Budget = DEFAULT_BUDGET
    page: PageNumber = 1

    def ask(self) -> tuple[str, dict[str, Any]]:
        return "diagnostics", {"paths": self.path, "severity": self.severity, **_page(self.budget, self.page)}


class IndexStatus(msgspec.Struct, forbid_unknown_fields=True):
    """What is indexed: files, languages, freshness, what is degraded. Rarely needed: every answer is fresh."""

    def ask(self) -> tuple[str, dict[str, Any]]:
        return "status", {}


# Where `target` is not the first argument of a question, or `to` is something: (the key of each).
_ARGUMENTS = {
    "architecture": ("", ""), "imports": ("module", ""), "path": ("source", "target"), "sig-impact": ("target", "to"),
    "lsp": ("target", "plane"), "report": ("target", "preset"), "routes": ("of", ""), "run": ("", ""),
}  # fmt: skip
# What `to` is, where the help of the option says it for people.
_TO = {
    "path": "the symbol that is reached",
    "sig-impact": "the new signature, e.g. save(self, row)",
    "lsp": "what is asked, e.g. type-definition",
}
# Arguments that many questions take, and the option that each is.
_FILTERS = {"path": "in", "languages": "lang", "page": "page", "budget": "budget", "by": "by"}


def find_around() -> list[str]:
    """The questions of `codebase_context`: those without a tool of their own."""
    own = {"search", "find", "q", "read", "diagnostics"}
    return sorted((name for name in QUESTIONS if name not in own), key=lambda name: name != "neighborhood")


def _find_arguments(question: str, keys: list[str]) -> tuple[str, str]:
    """The keys that `target` and `to` are given under: the first argument of a question, and none."""
    written = {one.key: one for one in find_written(QUESTIONS[question].load_options())}
    first = next((key for key in keys if written[key].option.argument), "")
    return _ARGUMENTS.get(question, (first, ""))


# Name -> (arguments, the answer as JSON).
TOOLS: dict[str, tuple[type[Tool], Any]] = {
    "codebase_search": (CodebaseSearch, Answer),
    "codebase_query": (CodebaseQuery, Answer),
    "codebase_context": (CodebaseContext, Answer),
    "codebase_read": (CodebaseRead, Answer),
    "codebase_check": (CodebaseCheck, Answer),
    "index_status": (IndexStatus, Status),
}

# Where a question answers with more than the tool's others do.
WIDER = {"find": FindAnswer}

INSTRUCTIONS = (
    "cq answers questions about the code of this repository from an index that is always fresh. Search before reading "
    "files; read symbols, not files, several in one call; codebase_context says what is around a symbol; "
    "codebase_check after edits."
)


def parse_arguments(name: str, arguments: dict[str, Any]) -> Asked:
    """The question that answers; ValueError that says which argument is wrong and how."""
    kind, _ = TOOLS[name]
    try:
        given = msgspec.convert(arguments, kind)
        _check_text(given)
        question, options = given.ask()
        return Asked(question, options=options)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at ")
        field = place.strip("`$").strip(".")
        if unknown := re.search(r"unknown field `(.*)`", message):
            raise ValueError(
                f"unknown argument {unknown[1]!r} ({suggest(unknown[1], kind.__struct_fields__)})"
            ) from None
        raise ValueError(f"{field}: {message}" if field else message) from None


def _check_text(given: Tool) -> None:
    for name in given.__struct_fields__:
        value = getattr(given, name)
        for word in _find_words(value):
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


def _find_words(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [word for pair in cast("dict[Any, Any]", value).items() for each in pair for word in _find_words(each)]
    if isinstance(value, list):
        return [word for each in cast("list[Any]", value) for word in _find_words(each)]
    return [value] if isinstance(value, str) else []


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
    if kind is CodebaseContext:
        body["properties"]["what"]["enum"] = find_around()
    return {
        "type": "object",
        "properties": _without_least(body.get("properties", {})),
        "required": body.get("required", []),
        "additionalProperties": False,
    }


def _without_least(schema: Any) -> Any:
    """That a text is not empty costs more tokens than it tells; it is checked all the same."""
    if isinstance(schema, dict):
        known = cast("dict[str, Any]", schema)
        return {key: _without_least(value) for key, value in known.items() if key not in ("minLength", "minItems")}
    return [_without_least(each) for each in cast("list[Any]", schema)] if isinstance(schema, list) else schema


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


def _refuse(given: Tool, what: str, *names: str) -> None:
    """ValueError for arguments that would do nothing: rather refused than ignored."""
    extra = [name for name in names if getattr(given, name) not in ([], "", 1, DEFAULT_BUDGET)]
    if extra:
        raise ValueError(f"{what} takes no {', '.join(extra)}")


def _find_targets(given: str | list[str], one: Written, what: str) -> str | list[str]:
    """ValueError for several where the question is about one."""
    targets = [given] if isinstance(given, str) else given
    if one.option.several or one.shape == "texts":
        return targets
    if len(targets) > 1:
        raise ValueError(f"{what} takes one `target`")
    return targets[0]


def _count(by: str) -> dict[str, Any]:
    return {} if not by else {"count": True} if by == "count" else {"by": by}


def _filter(path: list[str], languages: list[str]) -> dict[str, Any]:
    globs = [one for one in path if re.search(r"[*?\[]", one)]
    return {"in": [one for one in path if one not in globs], "include": globs, "lang": languages}


def _page(budget: int, page: int) -> dict[str, Any]:
    return {"budget": _share(budget), "page": page}
