"""The server itself, on the official SDK: passes tools, resources and prompts on to commands."""

from __future__ import annotations

import asyncio
import re
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import anyio
import mcp_types as types
import msgspec
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from cq import __version__
from cq.answers.options import find_written
from cq.indexing.index import find_root
from cq.model.answer import Answer, SourceDetails
from cq.model.errors import REGISTRY, CqError
from cq.model.status import Degraded
from cq.questions.table import QUESTIONS
from cq.store.overflow import StoredArtifact
from cq.surfaces.asked import Asked
from cq.surfaces.mcp.content import make_content, render_pieces
from cq.surfaces.mcp.tools import (
    DEFAULT_BUDGET,
    INSTRUCTIONS,
    TOOLS,
    WIDER,
    check_word,
    describe_tools,
    parse_arguments,
)
from cq.surfaces.process import Done, ask
from cq.surfaces.render import render_json
from cq.workspace import Workspace

Context = ServerRequestContext[Any, Any]
INVALID, INTERNAL = -32602, -32603
_LONGEST = 600.0  # seconds for one answer
_SOON = 1.6  # seconds until an index that is being made is not waited for any more
_AT_ONCE = 0.3  # seconds that a small change takes; what takes longer has an answer prepared beside it
_FEW = 100  # files that are worth waiting for
_ENOUGH = 0.8  # seconds for that answer to read files
_MOST_CALLS = 100  # at once, of all clients
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

TEMPLATES = {
    "cq://file/{+path}": ("file", "The text of a file, as indexed."),
    "cq://symbol/{+name}": ("symbol", "The source of a definition: Name or Class.method."),
    "cq://artifact/{id}": ("artifact", "What an answer was too short for, as JSON."),
    "cq://artifact/{id}/{page}": ("page", "Fifty members of it, as JSON: page 1, 2, …"),
}

# Command -> what is asked while an index is being made, where it is another one; "" where nothing can be.
_MEANWHILE = {
    **dict.fromkeys(("neighborhood", "impact", "references", "graph"), "calls"),
    **dict.fromkeys(("q", "types", "path", "diagnostics", "status"), ""),
}
_NOTES = {name: f"these are calls by name, not yet {name}" for name, instead in _MEANWHILE.items() if instead}

# Name -> (description, arguments, text).
PROMPTS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "explain_symbol": (
        "Explain a symbol", ("symbol",),
        "Explain `{symbol}`: read it with codebase_read, then see what is around it with codebase_context. Say "
        "what it does, what it expects of its callers, and what is surprising; cite path:line.",
    ),
    "what_breaks_if": (
        "What breaks if a symbol changes", ("symbol", "change"),
        "I want to change `{symbol}`: {change}. See what depends on it with codebase_context (what=impact), list every "
        "call site (what=calls), page by page, and say for each whether it breaks and why; then the tests that cover "
        "it. Cite path:line.",
    ),
    "where_to_start": (
        "Where to start in this repository", (),
        "Get an overview: index_status, then the outline (codebase_read) of the likely entry points. Say what the "
        "program does, its main parts, and the five files to read first.",
    ),
}  # fmt: skip


def make_server(root: str) -> Server[Any]:
    """`root` pins the repository; "" takes the client's first root, else the working directory."""
    return _Surface(root).server


class _BusyError(Exception):
    """An index is being made, and nothing can be said without it."""


class _Surface:
    def __init__(self, root: str) -> None:
        self._root = root
        self._calls = 0
        self._background: set[asyncio.Task[Done]] = set()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the SDK deprecates logging and roots; clients of today have them
            self.server: Server[Any] = Server(
                "cq", version=__version__, instructions=INSTRUCTIONS,
                on_list_tools=self._list_tools, on_call_tool=self._call_tool,
                on_list_resources=self._list_resources, on_list_resource_templates=self._list_templates,
                on_read_resource=self._read_resource, on_list_prompts=self._list_prompts,
                on_get_prompt=self._get_prompt, on_completion=self._complete,
                on_set_logging_level=self._set_level, on_roots_list_changed=self._forget_root,
            )  # fmt: skip

    async def _list_tools(self, _: Context, __: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool.model_validate(tool) for tool in describe_tools()])

    async def _call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in TOOLS:
            message = f"there is no tool {params.name!r}; there are {', '.join(TOOLS)}"
            raise MCPError(INVALID, message, {"code": "CAPABILITY_MISSING"})
        try:
            asked = parse_arguments(params.name, params.arguments or {})
        except ValueError as error:
            return _refuse("INVALID_REQUEST", str(error))
        if self._calls >= _MOST_CALLS:
            return _refuse("BUSY", f"{self._calls} questions are being answered (ask again in a moment)")
        self._calls += 1
        try:
            done, note = await self._answer(context, asked)
        except _BusyError as error:
            return _refuse("BUSY", str(error))
        except TimeoutError:
            return _refuse("TIMEOUT", f"no answer within {_LONGEST:.0f} s")
        finally:
            self._calls -= 1
        # A clock that stopped the search gives exit status 2 as well, and what was found until then.
        if done.status not in (0, 1, 2) or not done.out:
            code, message = _explain(done.errors)
            if code == "INTERNAL":
                await _log(context, "error", message)
            return _refuse(code, message)
        answer = msgspec.json.decode(done.out, type=WIDER.get(asked.question, TOOLS[params.name][1]))
        if note:
            kept = (event for event in answer.degraded if event.category != "no_index")
            mark = Degraded("index", "warning", "partial", note, "index")
            answer = msgspec.structs.replace(answer, degraded=(mark, *kept))
        events: tuple[Degraded, ...] = answer.degraded
        for event in events:
            await _log(context, event.severity, event.message)
        budget = (params.arguments or {}).get("budget", DEFAULT_BUDGET)
        content = make_content(render_pieces(answer, budget))
        return types.CallToolResult.model_validate({"content": content})

    async def _answer(self, context: Context, asked: Asked) -> tuple[Done, str]:
        """The answer. While an index is being made, soon: what is known without, and a note that says so."""
        root, started = await self._find_root(context), anyio.current_time()
        name = asked.question
        instead = _find_meanwhile(asked)
        second: asyncio.Task[Done] | None = None
        making, logged = "", False

        async def tell(stage: str, done: int, total: int) -> None:
            nonlocal making, logged
            waits = stage == "wait"
            if (waits or total) and not logged:
                logged = True
                await _log(context, "info", "the index is being made")
            message = "another process makes the index" if waits else f"{stage}: {done:,} of {total:,} files"
            making = message if waits or total > _FEW else making
            await context.session.report_progress(done, total or None, message)

        with anyio.fail_after(_LONGEST):
            first = asyncio.ensure_future(ask(asked, root, tell))
            try:
                while not first.done() and not (making and anyio.current_time() - started > _SOON):
                    await asyncio.wait({first}, timeout=_AT_ONCE)
                    if making and second is None and instead is not None and not first.done():
                        second = asyncio.ensure_future(ask(instead, root, _hush, alone=True))
                if not first.done() and second is not None:
                    await asyncio.wait({first, second}, return_when=asyncio.FIRST_COMPLETED)
                if first.done():
                    return first.result(), ""
                self._background.add(first)  # the index is finished for the next question
                first.add_done_callback(self._background.discard)
                note = f"the index is being made, {making}"
                found = second.result() if second else Done(2, b"", "")
                if not found.out and _explain(found.errors)[0] not in ("INVALID_REQUEST", "NOT_FOUND"):
                    hint = "ask again in a moment; codebase_search and codebase_read answer meanwhile"
                    raise _BusyError(f"{note} ({hint})")
                return found, f"{note}; {_NOTES.get(name, 'this is from the files, or the index, as they lie')}"
            finally:
                for task in (first, second):
                    if task is not None and task not in self._background:
                        task.cancel()

    async def _find_root(self, context: Context) -> str:
        if self._root:
            return self._root
        state = _state(context)
        if "root" not in state:
            state["root"] = await _ask_root(context)
        return state["root"]

    async def _forget_root(self, context: Context, _: Any) -> None:
        _state(context).pop("root", None)

    async def _set_level(self, context: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
        _state(context)["level"] = params.level
        return types.EmptyResult()

    async def _complete(self, context: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        """Names and paths of the index as it lies, for the arguments that are one; nothing for any other."""
        kind = {"symbol": "names", "name": "names", "path": "paths"}.get(params.argument.name)
        root, values = await self._find_root(context), list[str]()
        if kind and params.argument.value:
            with suppress(CqError, OSError), Workspace.open(root, auto_refresh=False) as workspace:
                found = await anyio.to_thread.run_sync(workspace.complete, params.argument.value)
                values = list(getattr(found, kind))
        return types.CompleteResult(completion=types.Completion(values=values))

    async def _list_resources(self, context: Context, _: Any) -> types.ListResourcesResult:
        rows: list[StoredArtifact] = []
        with suppress(CqError, OSError), Workspace.open(await self._find_root(context)) as workspace:
            rows = await anyio.to_thread.run_sync(workspace.artifacts)
        return types.ListResourcesResult(
            resources=[
                types.Resource(uri=f"cq://artifact/{row.id}", name=row.id, mime_type="application/json")
                for row in rows[:50]
            ]
        )

    async def _list_templates(self, _: Context, __: Any) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(uri_template=uri, name=name, description=line)
                for uri, (name, line) in TEMPLATES.items()
            ]
        )

    async def _read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:  # fmt: skip
        uri = params.uri
        found = re.fullmatch(r"cq://(file|symbol|artifact)/(.+)", uri, re.DOTALL)
        if not found:
            raise MCPError(INVALID, f"there is no resource {uri!r}", {"uri": uri, "code": "NOT_FOUND"})
        kind, name = found[1], unquote(found[2])
        try:
            check_word("uri", name)
        except ValueError as error:
            raise MCPError(INVALID, str(error), {"code": "INVALID_REQUEST"}) from None
        root = await self._find_root(context)
        if kind == "artifact":
            mime, text = "application/json", await _read_artifact(root, uri, *name.partition("/")[::2])
        else:
            target, form = (f"{name}:1-", "plain") if kind == "file" else (name, "json")
            done = await ask(Asked("read", options={"target": target, "all": True}, format=form), root, _hush)
            if done.status:
                code, message = _explain(done.errors) if done.status > 1 else ("NOT_FOUND", f"nothing is named {name}")
                raise _miss(uri, code, message)
            mime = "text/plain"
            text = _take_one(done.out, uri) if kind == "symbol" else done.out.decode("utf-8", "replace")
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=mime, text=text)])

    async def _list_prompts(self, _: Context, __: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(
            prompts=[
                types.Prompt(
                    name=name, description=line,
                    arguments=[types.PromptArgument(name=argument, required=True) for argument in arguments],
                )
                for name, (line, arguments, _) in PROMPTS.items()
            ]
        )  # fmt: skip

    async def _get_prompt(self, _: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if params.name not in PROMPTS:
            raise MCPError(INVALID, f"there is no prompt {params.name!r}; there are {', '.join(PROMPTS)}")
        line, names, text = PROMPTS[params.name]
        given = params.arguments or {}
        if set(given) != set(names):
            raise MCPError(INVALID, f"{params.name} takes {', '.join(names) or 'no arguments'}")
        for name in names:  # not str.format: what is given is text, whatever it holds
            text = text.replace(f"{{{name}}}", given[name])
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
        return types.GetPromptResult(description=line, messages=[message])


async def _ask_root(context: Context) -> str:
    """The client's first root that is a directory here, else where the server was started."""
    capabilities = context.session.client_capabilities
    if capabilities is not None and capabilities.roots is not None and context.session.can_send_request:
        with suppress(MCPError, TimeoutError), warnings.catch_warnings(), anyio.fail_after(2):
            warnings.simplefilter("ignore")  # the SDK deprecates roots; clients of today have them
            for root in (await context.session.list_roots()).roots:
                place = urlparse(str(root.uri))
                path = Path(unquote(place.path))
                if place.scheme == "file" and path.is_dir():
                    return str(path)
    try:
        return str(find_root())
    except (CqError, OSError) as error:
        hint = "let the client name its roots, or start `cq mcp` with --root"
        what, code = (error.message, error.code) if isinstance(error, CqError) else (error.strerror or "", "io")
        raise MCPError(INVALID, f"{what} ({hint})", {"code": REGISTRY[code]}) from None


def _state(context: Context) -> dict[str, Any]:
    """What is known of the client, as long as it is connected. A session lives for one request: SDK 2.3."""
    return context.session._connection.state


async def _log(context: Context, level: Any, message: str) -> None:
    """To the client, from the level on that it asked for; clients of the stateless era ask in every request."""
    if LEVELS.index(level) >= LEVELS.index(_state(context).get("level", "warning")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # see make_server
            await context.session.send_log_message(level, message, "cq", context.request_id)


def _find_meanwhile(asked: Asked) -> Asked | None:
    """What is asked of the files as they lie while an index is being made; None where nothing can be."""
    name = _MEANWHILE.get(asked.question, asked.question)
    if not name:
        return None
    options = asked.options
    if name != asked.question:  # only what both take
        keys = {one.key for one in find_written(QUESTIONS[name].load_options())}
        options = {key: value for key, value in options.items() if key in keys and key != "target"}
        target: Any = asked.options["target"]
        options["target"] = target if isinstance(target, str) else target[0]
    return Asked(name, options=options, refresh=False, disk_seconds=_ENOUGH)


async def _read_artifact(root: str, uri: str, name: str, page: str) -> str:
    def read() -> str:
        with Workspace.open(root) as workspace:
            return render_json(workspace.artifact(name, page=int(page or 0)))

    try:
        return await anyio.to_thread.run_sync(read)
    except CqError as error:
        raise _miss(uri, REGISTRY[error.code], str(error).partition(": ")[2]) from None
    except (OSError, ValueError) as error:
        raise _miss(uri, "INVALID_REQUEST", str(error)) from None


def _miss(uri: str, code: str, message: str) -> MCPError:
    return MCPError(INVALID, message, {"uri": uri, "code": "NOT_FOUND" if code == "INVALID_REQUEST" else code})


def _take_one(out: bytes, uri: str) -> str:
    """The source of the one definition that is named; which of several is meant is not guessed."""
    answer = msgspec.json.decode(out, type=Answer)
    (finding,) = answer.sections[0].findings[:1] or (None,)
    if finding is None or finding.location is None or not isinstance(finding.details, SourceDetails):
        raise MCPError(INVALID, f"{uri} is no symbol (cq://file/… has files)", {"uri": uri, "code": "NOT_FOUND"})
    if answer.summary.get("definitions", 1) > 1:
        first, others = finding.location, finding.details.others
        names = [f"{first.path}:{first.start_line}", *(f"{other.path}:{other.line}" for other in others)]
        message = f"{answer.summary['definitions']} definitions bear this name: {', '.join(names)}"
        raise MCPError(INVALID, message, {"uri": uri, "code": "AMBIGUOUS", "candidates": names})
    return finding.details.source


async def _hush(_: str, __: int, ___: int) -> None:
    return


def _explain(errors: str) -> tuple[str, str]:
    """(code, message) of the error the command ended with, with the lines that show the place below it."""
    lines = errors.strip().split("\n")
    for at in range(len(lines) - 1, -1, -1):
        mark, code, message = (*lines[at].split(": ", 2), "", "")[:3]
        if mark == "cq" and code in REGISTRY:
            return REGISTRY[code], "\n".join([message, *lines[at + 1 :]])
    return "INTERNAL", lines[-1].removeprefix("cq: ") or "the command ended without a word"


def _refuse(code: str, message: str) -> types.CallToolResult:
    return types.CallToolResult.model_validate({
        "content": [{"type": "text", "text": f"{code}: {message}"}],
        "isError": True,
        "_meta": {"cq/error": {"code": code, "message": message}},
    })  # fmt: skip
