"""The pages and their addresses. Each reads what it is given, asks one or a few questions, and shows the answers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from html import escape
from pathlib import Path
from typing import Any

import msgspec
from jinja2 import Environment, FileSystemLoader  # pyright: ignore[reportMissingImports]
from starlette.applications import Starlette
from starlette.datastructures import URL
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from cq import __version__
from cq.model.answer import Answer, BlameDetails, DependencyDetails, ModuleDetails, NamesDetails, SourceDetails
from cq.model.errors import CqError, UsageError, suggest
from cq.model.find import FindAnswer
from cq.model.status import Status
from cq.questions.find.layout import render_graph
from cq.questions.table import QUESTIONS
from cq.surfaces import printer
from cq.surfaces.asked import Asked
from cq.surfaces.mcp.content import count_sent, render_pieces
from cq.surfaces.mcp.tools import DEFAULT_BUDGET, WIDER, check_word, is_question
from cq.surfaces.process import Done
from cq.surfaces.render.answer import render_head, render_notes
from cq.surfaces.render.picture import draw_graph
from cq.surfaces.render.treemap import draw_treemap
from cq.surfaces.web import show
from cq.surfaces.web.forms import make_fields, read_fields, write_line
from cq.surfaces.web.guard import OPEN, Keys, guard_pages
from cq.surfaces.web.warm import Warm
from cq.workspace import Workspace

_HERE = Path(__file__).parent
_SOON = 1.5  # seconds until an index that is being made is not waited for any more
_ENOUGH = 0.8  # seconds for files to be read where there is no index yet
_FEW = 100  # files that are worth waiting for
_AT_ONCE = 8  # questions
_LONGEST = 600.0  # seconds for one answer
_POLL_SECONDS = 1.5
_MOST_NAMES = 50
_FROM_DISK = ("search", "find", "read", "calls")
_STATUS = {"usage": 400, "query": 400, "source": 404, "internal": 500, "io": 500, "store": 503, "config": 500}
_PATTERN = re.compile(r"\s*(?:pattern|entity|name|inside|has|kind|all|any|not|lang)\s*=")

Page = Callable[[Request], Awaitable[Response]]


class _MakingError(Exception):
    """The index is being made; `shown` says how far it is."""

    def __init__(self, shown: str) -> None:
        super().__init__(shown)
        self.shown = shown


class Site:
    def __init__(self, root: str, keys: Keys, told: Callable[[str], None]) -> None:
        """`told` hears the next token whenever one was used."""
        self._root, self._keys, self._told = root, keys, told
        self.warm = Warm(root)
        self._limit = asyncio.Semaphore(_AT_ONCE)
        self._background: set[asyncio.Task[Done]] = set()
        self._listeners: set[asyncio.Queue[int]] = set()
        self._templates = Environment(
            loader=FileSystemLoader(_HERE / "templates"), autoescape=True, trim_blocks=True, lstrip_blocks=True,
            finalize=_spell_out,
        )  # fmt: skip
        names: dict[str, Any] = self._templates.globals
        names |= {
            "link": show.link, "link_place": show.link_place, "mark": show.mark, "group_rows": show.group_rows,
            "head": render_head, "notes": render_notes, "version": __version__, "root_name": Path(root).name,
            "has_script": (_HERE / "static" / "cq.js").is_file(),
        }  # fmt: skip
        self._templates.filters["written"] = lambda value: show.Html(escape(str(value)))

    def make_app(self) -> Starlette:
        pages: dict[str, Page] = {
            "/": self.search, "/search": self.search, "/symbol": self.symbol, "/source": self.source,
            "/find": self.find, "/graph": self.graph, "/map": self.map, "/ask": self.ask, "/ask/{name}": self.ask,
            "/complete": self.complete,
        }  # fmt: skip
        routes: list[Any] = [Route(OPEN, self.open), Route("/events", self._known(self.events))]
        for path, page in pages.items():
            routes += [Route(f"{path}.json", self._known(page))] if path != "/" else []
            routes.append(Route(path, self._known(page)))
        routes.append(Mount("/static", StaticFiles(directory=_HERE / "static")))
        return Starlette(
            routes=routes, lifespan=self._live, exception_handlers={404: self._lost, Exception: self._fail},
            middleware=[Middleware(GZipMiddleware, minimum_size=1000, compresslevel=4)],
        )  # fmt: skip

    @asynccontextmanager
    async def _live(self, _: Starlette) -> AsyncIterator[None]:
        self.warm.start()
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()
            for task in self._background:
                task.cancel()
            self.warm.close()

    # -- asking ----------------------------------------------------------------------------------

    def _known(self, page: Page) -> Page:
        async def answer(request: Request) -> Response:
            if not request.scope["cq_known"]:
                return self._show("closed.html", status=401)
            try:
                check = [*request.query_params.multi_items(), *request.path_params.items()]
                for name, word in check:
                    check_word(name, word, lines=True)
                return await page(request)
            except ValueError as error:
                return self._explain(request, f"usage: {error}")
            except CqError as error:
                return self._explain(request, str(error))
            except _MakingError as making:
                refresh = {"Refresh": "2"}
                if _is_json(request):
                    return _make_json({"making": making.shown}, 503, {"Retry-After": "2"})
                return self._show("making.html", status=503, headers=refresh, shown=making.shown)

        return answer

    async def _get(self, request: Request, question: str, options: dict[str, Any]) -> Done:
        """What the command prints; DoneError where it refuses. Whoever leaves stops it."""
        given = {key: value for key, value in options.items() if value not in ("", None, [])}
        asked = Asked(question, options=given, measure="json" if _is_json(request) else "text")
        shown = ""

        async def tell(stage: str, done: int, total: int) -> None:
            nonlocal shown
            if stage == "wait" or total > _FEW:
                shown = (
                    "another process makes the index" if stage == "wait" else f"{stage}: {done:,} of {total:,} files"
                )

        async with self._limit:
            task = asyncio.ensure_future(self.warm.ask(asked, tell))
            gone = asyncio.ensure_future(_wait_until_gone(request))
            began = asyncio.get_running_loop().time()
            try:
                while not task.done():
                    await asyncio.wait({task, gone}, timeout=0.2, return_when=asyncio.FIRST_COMPLETED)
                    waited = asyncio.get_running_loop().time() - began
                    if gone.done() or waited > _LONGEST:
                        raise UsageError("nobody waits for the answer any more")
                    if shown and waited > _SOON and not task.done():
                        self._background.add(task)
                        task.add_done_callback(self._background.discard)
                        if question not in _FROM_DISK:
                            raise _MakingError(shown)
                        return await self._read_disk(asked, shown)
                return _check(task.result())
            finally:
                gone.cancel()
                if task not in self._background:
                    task.cancel()

    async def _read_disk(self, asked: Asked, shown: str) -> Done:
        """What files say by themselves while the index is being made."""

        async def hush(stage: str, done: int, total: int) -> None: ...

        less = msgspec.structs.replace(asked, refresh=False, disk_seconds=_ENOUGH)
        try:
            return _check(await self.warm.ask(less, hush, alone=True))
        except CqError:
            raise _MakingError(shown) from None

    async def _answer(self, request: Request, question: str, options: dict[str, Any]) -> Answer:
        done = await self._get(request, question, options)
        return msgspec.json.decode(done.out, type=WIDER.get(question, Answer))

    # -- pages -----------------------------------------------------------------------------------

    async def open(self, request: Request) -> Response:
        if not self._keys.take(request.query_params.get("token", "")):
            return self._show("closed.html", status=403, used=True)
        self._told(self._keys.token)
        return RedirectResponse("/", 303, {"Set-Cookie": self._keys.cookie})

    async def search(self, request: Request) -> Response:
        given = _read(request, "q", "page", "budget", "in", "lang", "kind")
        text = given.pop("q", "").strip()
        if not text:
            ranks = await self._answer(request, "rank", {"limit": 12})  # which tells how far an index is that is made
            status = msgspec.json.decode((await self._get(request, "status", {})).out, type=Status)
            return self._show("home.html", state=status, ranks=ranks)
        question, key = choose_question(text)
        options = {key: text, **read_fields(question, {name: [value] for name, value in given.items()})}
        return await self._show_answer(request, question, options, "search.html", q=text)

    async def find(self, request: Request) -> Response:
        given = _read(request, "q", "budget")
        options = {"query": given.get("q", ""), **_count(given, "budget")}
        if not options["query"]:
            return self._show("search.html", q="", question="find", answer=None)
        return await self._show_answer(request, "find", options, "search.html", q=options["query"])

    async def symbol(self, request: Request) -> Response:
        given = _read(request, "target")
        target = given.get("target", "")
        if not target:
            raise UsageError("which symbol? `target` is missing", hint="/symbol?target=Class.method")
        if _is_json(request):
            return _pass_on(await self._get(request, "neighborhood", {"target": target, "no_lsp": True}))
        around, read, calls, uses, tests = await _gather(
            self._answer(request, "neighborhood", {"target": target, "no_lsp": True}),
            self._answer(request, "read", {"target": target, "links": True, "budget": 30_000}),
            self._answer(request, "calls", {"target": target, "limit": 40}),
            self._answer(request, "graph", {"target": target, "direction": "dependencies"}),
            self._answer(request, "tests-for", {"target": [target], "limit": 15}),
        )
        subject = around.insight.target if around.insight else None
        return self._show(
            "symbol.html", status=200 if around.found else 404, target=target, subject=subject, around=around,
            calls=calls, uses=uses, tests=tests, code=_show_code(read), source=show.find_details(read, SourceDetails),
        )  # fmt: skip

    async def source(self, request: Request) -> Response:
        given = _read(request, "path", "line", "blame", "hash", "target")
        path, line = given.get("path", ""), _number(given, "line", 1)
        if not path or path.endswith("/"):
            return RedirectResponse(show.link("map", in_=path.rstrip("/")), 302)
        blame = {"blame": True} if given.get("blame") else {}
        if _is_json(request):
            return _pass_on(await self._get(request, "read", {"target": path, "links": True, "all": True, **blame}))
        outline = await self._answer(request, "read", {"target": path, "all": True})
        if not outline.found:
            return self._show("nothing.html", status=404, answer=outline, q=path)
        lines = int(outline.summary.get("lines", 0))
        if "symbols" not in outline.summary:  # a definition of that name: its own page
            return RedirectResponse(show.link("symbol", target=path), 302)
        first, last = show.find_window(lines, line)
        options = {"target": f"{path}:{first}-{last}", "links": True, "all": True, **blame}
        asked = [self._answer(request, "read", options)]
        if first > 1:
            asked.append(self._answer(request, "read", {"target": f"{path}:1-{first - 1}", "all": True}))
        if last < lines:
            asked.append(self._answer(request, "read", {"target": f"{path}:{last + 1}-", "all": True}))
        answers = await _gather(*asked)
        names: NamesDetails | None = show.find_details(answers[0], NamesDetails)
        code = [each for answer in answers for each in _show_code(answer)]
        return self._show(
            "source.html", path=path, line=line, code=sorted(code, key=lambda each: each.number), answer=answers[0],
            outline=outline, names=names, lines=lines, first=first, last=last, blame=bool(blame),
            changed=names is not None and given.get("hash", names.hash) != names.hash, target=given.get("target", ""),
        )  # fmt: skip

    async def graph(self, request: Request) -> Response:
        given = _read(
            request, "target", "depth", "direction", "edges", "min_confidence", "expand", "fold", several=True
        )
        targets = [*given.pop("target", []), *given.pop("expand", [])]
        folded = given.pop("fold", [])
        if not targets:
            return self._show("graph.html", target="", fields=given)
        options = read_fields("graph", given)
        if _is_json(request):
            asked = targets if len(targets) > 1 else targets[0]
            return _pass_on(await self._get(request, "graph", {"target": asked, **options}))
        asked = [{**options, "target": targets[0]}, *({**options, "target": each, "depth": 1} for each in targets[1:])]
        answers = await _gather(*(self._answer(request, "graph", {"limit": 100, **each}) for each in asked))
        edges = list(dict.fromkeys(
            edge for answer in answers for edge in answer.edges if not {edge.source, edge.target} & set(folded)
        ))  # fmt: skip

        def link_node(name: str) -> str:
            return show.link("graph", target=targets[0], expand=[*targets[1:], name], fold=folded, **given)

        picture = draw_graph(edges, link_node) if edges else ""
        return self._show(
            "graph.html", status=200 if answers[0].found or edges else 404, target=targets[0], expand=targets[1:],
            fold=folded, fields=given, answer=answers[0], answers=answers, edges=edges, picture=show.Html(picture),
        )  # fmt: skip

    async def map(self, request: Request) -> Response:
        given = _read(request, "in", "by", "size", "heat", "all")
        options = read_fields("map", {key: [value] for key, value in given.items() if key != "all"})
        if _is_json(request):
            return _pass_on(await self._get(request, "map", {**options, **({"all": True} if given.get("all") else {})}))
        answer = await self._answer(request, "map", {**options, "limit": 400, "budget": 400_000})
        modules: list[ModuleDetails] = [
            row.details
            for section in answer.sections
            for row in section.findings
            if isinstance(row.details, ModuleDetails)
        ]
        size = str(given.get("size", "lines"))

        def link_module(module: ModuleDetails) -> str:
            if module.module_kind == "directory":
                return show.link("map", **{**given, "in_": module.name, "in": ""})
            if module.module_kind == "file":
                is_open = given.get("by") == "definition"
                return show.link_place(module.name) if is_open else show.link("map", in_=module.name, by="definition")
            return show.link("symbol", target=module.name)

        shown = [(row.name, row.symbols if size == "symbols" else row.lines, row.heat) for row in modules]
        links = {row.name: link_module(row) for row in modules}
        picture = draw_treemap(shown, links.__getitem__, base=given.get("in", ""))
        most = [row.name for row in modules[:25]]
        matrix: dict[tuple[str, str], DependencyDetails] = {
            (row.details.source, row.details.target): row.details
            for section in answer.sections
            if section.kind == "dependencies"
            for row in section.findings
            if isinstance(row.details, DependencyDetails)
        }
        return self._show(
            "map.html", status=200 if answer.found else 404, answer=answer, fields=given, modules=modules, most=most,
            matrix=matrix, links=links, picture=show.Html(picture),
        )  # fmt: skip

    async def ask(self, request: Request) -> Response:
        name = request.path_params.get("name", "")
        if not name:
            return self._show("questions.html", questions=QUESTIONS.values())
        if name not in QUESTIONS:
            raise UsageError(f"there is no question {name!r}", hint=suggest(name, QUESTIONS))
        given: dict[str, list[str]] = {}
        for key, value in request.query_params.multi_items():
            given.setdefault(key, []).append(value)
        fields = make_fields(name, given)
        is_asked = "ask" in given or _is_json(request) or any(any(values) for values in given.values())
        given.pop("ask", None)
        if not is_asked:
            return self._show("ask.html", question=QUESTIONS[name], fields=fields, answer=None)
        options = read_fields(name, given)
        return await self._show_answer(request, name, options, "ask.html", fields=fields)

    async def complete(self, request: Request) -> Response:
        """Names and paths that begin so, by the index as it lies."""
        prefix = _read(request, "q").get("q", "")
        found = await asyncio.to_thread(self._complete, prefix) if prefix else ((), ())
        return _make_json({"names": found[0], "paths": found[1]})

    def _complete(self, prefix: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        try:
            with Workspace.open(self._root, auto_refresh=False) as workspace:
                found = workspace.complete(prefix, limit=_MOST_NAMES)
                return found.names, found.paths
        except CqError:  # there is no index yet
            return (), ()

    # -- what changes ----------------------------------------------------------------------------

    async def events(self, request: Request) -> Response:
        """One line whenever the index has changed."""
        queue: asyncio.Queue[int] = asyncio.Queue()
        self._listeners.add(queue)

        async def stream() -> AsyncIterator[str]:
            try:
                yield ": open\n\n"
                while not await request.is_disconnected():
                    try:
                        yield f"data: {await asyncio.wait_for(queue.get(), 15)}\n\n"
                    except TimeoutError:
                        yield ": still here\n\n"
            finally:
                self._listeners.discard(queue)

        return StreamingResponse(stream(), media_type="text/event-stream")

    async def _watch(self) -> None:
        async def hush(stage: str, done: int, total: int) -> None: ...

        known = -1
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            if not self._listeners:
                continue
            done = await self.warm.ask(Asked("status"), hush)
            if done.status != 0:
                continue
            generation = msgspec.json.decode(done.out, type=Status).freshness.generation
            if generation != known and known >= 0:
                for queue in self._listeners:
                    queue.put_nowait(generation)
            known = generation

    # -- showing ---------------------------------------------------------------------------------

    async def _show_answer(
        self, request: Request, question: str, options: dict[str, Any], template: str, **values: Any
    ) -> Response:
        done = await self._get(request, question, options)
        if _is_json(request):
            return _pass_on(done)
        answer: Answer = msgspec.json.decode(done.out, type=WIDER.get(question, Answer))
        pieces = render_pieces(answer, int(options.get("budget", DEFAULT_BUDGET)))
        graph = ""
        if isinstance(answer, FindAnswer) and answer.results:
            graph = render_graph(answer, answer.summary["tokens"], answer.summary["budget"])
        budget = answer.insight.budget if answer.insight else None
        following = ""
        if budget is not None and budget.page < budget.pages:
            following = _strip(request.url.include_query_params(page=budget.page + 1))
        return self._show(
            template, status=200 if answer.found else 404, question=QUESTIONS[question], answer=answer, options=options,
            command=write_line(question, options), tokens=count_sent(pieces), following=following, graph=graph,
            told="\n".join(text for text, _ in pieces), json=_find_json(request), **values,
        )  # fmt: skip

    def _show(
        self, template: str, *, status: int = 200, headers: dict[str, str] | None = None, **values: Any
    ) -> Response:
        text = self._templates.get_template(template).render(**values)
        return HTMLResponse(text, status, headers)

    def _explain(self, request: Request, message: str) -> Response:
        """The command's own sentence and code."""
        code = message.partition(":")[0]
        status = 404 if "is not indexed" in message else _STATUS.get(code, 400)
        if _is_json(request):
            return _make_json({"error": message}, status)
        return self._show("error.html", status=status, message=message)

    async def _lost(self, request: Request, _: Exception) -> Response:
        if not request.scope.get("cq_known"):
            return self._show("closed.html", status=401)
        return self._explain(request, f"source: there is no page {request.url.path} (see /ask)")

    async def _fail(self, request: Request, error: Exception) -> Response:
        return self._explain(request, f"internal: {type(error).__name__}: {error}")


def choose_question(text: str) -> tuple[str, str]:
    """Which question a text asks, and the option that takes it: one box for names, text, ideas and queries."""
    if _PATTERN.match(text):
        return "q", "query"
    if re.match(r"symbol\s*=", text) or is_question(text):
        return "find", "query"
    return "search", "text"


def make_site(root: str, keys: Keys, port: int, told: Callable[[str], None]) -> Any:
    return guard_pages(Site(root, keys, told).make_app(), keys, port)


def _spell_out(value: Any) -> Any:
    return printer.escape(value) if type(value) is str else value


def _show_code(answer: Answer) -> list[show.Line]:
    source, where = next(
        ((row.details, row.location) for section in answer.sections for row in section.findings
         if isinstance(row.details, SourceDetails) and row.location is not None), (None, None)
    )  # fmt: skip
    if source is None or where is None:
        return []
    names, blame = show.find_details(answer, NamesDetails), show.find_details(answer, BlameDetails)
    return list(show.show_lines(source.source.removesuffix("\n"), where.start_line, names, blame))


def _check(done: Done) -> Done:
    """CqError in the words of the command, where it refused."""
    if done.status not in (0, 1, 2) or not done.out:
        said = done.errors.strip().partition("\n")[0].removeprefix("cq: ") or "internal: no answer came"
        raise _SaidError(said)
    return done


class _SaidError(CqError):
    """As the command said it."""

    def __str__(self) -> str:
        return str(self.args[0])


def _read(request: Request, *names: str, several: bool = False) -> dict[str, Any]:
    """The parameters of a page; UsageError for others, and for one that is given twice where one is meant."""
    found: dict[str, Any] = {}
    for key, value in request.query_params.multi_items():
        if key not in names:
            raise UsageError(f"there is no parameter {key!r}", hint=suggest(key, names))
        if several:
            found.setdefault(key, []).extend([value] if value else [])
        elif key in found:
            raise UsageError(f"{key} is given twice", hint="give it once")
        else:
            found[key] = value
    return found


def _number(given: dict[str, Any], key: str, usual: int) -> int:
    text = str(given.get(key, "")) or str(usual)
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise UsageError(f"{key} is no number: {text!r}")
    return int(text)


def _count(given: dict[str, Any], key: str) -> dict[str, int]:
    return {key: _number(given, key, 0)} if given.get(key) else {}


def _is_json(request: Request) -> bool:
    return request.url.path.endswith(".json")


def _find_json(request: Request) -> str:
    return _strip(request.url.replace(path=f"{request.url.path.rstrip('/') or '/search'}.json"))


def _strip(address: URL) -> str:
    """Without the host."""
    return f"{address.path}?{address.query}" if address.query else address.path


def _pass_on(done: Done) -> Response:
    return Response(done.out, 200 if done.status == 0 else 404, media_type="application/json")


def _make_json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(value), status, headers, media_type="application/json")


async def _gather(*asked: Awaitable[Any]) -> list[Any]:
    """All of them, or the first error; the others are ended then."""
    tasks = [asyncio.ensure_future(each) for each in asked]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


async def _wait_until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
