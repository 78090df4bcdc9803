"""One language server for one root: its start and restarts, its open documents, what it offers, bulk requests."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from cq.model.provider import Capabilities, Coverage
from cq.providers.documents import Document, Texts, make_uri, read_uri
from cq.providers.positions import ENCODINGS
from cq.providers.rpc import Connection, Request, ServerError

BACKOFF = (0.25, 1.0, 3.0, 10.0)  # before each restart; the last for those after, until the server is given up
STRIKES = 3  # questions in a row that got no answer in time
MAX_OPEN = 128
_WINDOW = 128  # requests in flight
_MAX_PUBLISHED = 2 * 1024 * 1024  # bytes, for one document
_MAX_ERRORS = 8
# The server asks to be asked again: the text changed under it, or it was busy.
_RETRY_CODES = {-32801, -32802}


class Budget(msgspec.Struct, frozen=True):
    """Seconds. `total` bounds everything one question or batch may take, start and retries included."""

    initialize: float = 5.0
    first: float = 10.0  # answer of a fresh server
    point: float = 2.0
    project: float = 3.0
    project_first: float = 15.0
    attempts: int = 2  # only what timed out is asked again
    total: float = 30.0


BUDGETS = {
    "interactive": Budget(),
    "prefetch": Budget(first=3.0, point=1.0, project=2.0, project_first=3.0, attempts=1, total=5.0),
    "precise": Budget(initialize=15.0, first=30.0, point=5.0, project=30.0, project_first=60.0, total=600.0),
}


class ServerSpec(msgspec.Struct, frozen=True):
    """How one kind of server is run and read. `languages` maps ours to the protocol's language ids."""

    id: str
    command: tuple[str, ...]
    languages: dict[str, str]
    settings: dict[str, Any] = {}  # by section, for workspace/configuration
    options: dict[str, Any] = {}  # initializationOptions
    env: dict[str, str] = {}
    unadvertised: frozenset[str] = frozenset()  # capabilities it has and does not name
    slow_start: bool = False  # written in JavaScript
    breaker: int = len(BACKOFF)  # restarts until it is given up
    coverage: Callable[[Session, str], Coverage] = lambda _session, _plane: Coverage("complete")
    # Whether it has read the project, for one that says so and knows nothing before. It is waited for as for an answer.
    ready: Callable[[Session], bool] = lambda _session: True


class Session:
    """Safe to share between threads: questions are pipelined, and one heavy one runs at a time."""

    def __init__(self, root: Path, spec: ServerSpec) -> None:
        self.spec = spec
        self.texts = Texts(root)
        self.capabilities = Capabilities()
        self.generation = 0
        self.errors: deque[str] = deque(maxlen=_MAX_ERRORS)
        self.signals: Counter[str] = Counter()  # notifications and requests of this generation, by method
        self.server_status: dict[str, Any] = {}  # experimental/serverStatus
        self.progress: set[str] = set()  # what it says it is busy with
        self.complaint = ""  # the last error it wanted people to see, such as a configuration it cannot read
        self.settled = False  # nothing more is expected to be registered
        self.kept_tokens: dict[str, tuple[str, list[int]]] = {}  # what the next answer is told as changes of
        self._connection: Connection | None = None
        self._failures = self._strikes = 0
        self._not_before = 0.0
        self._answered: set[str] = set()  # methods that this generation has answered
        self._next_id = 1
        self._start_lock, self._open_lock, self._heavy = threading.Lock(), threading.RLock(), threading.Lock()
        self._arrived = threading.Condition()
        self._offered: dict[str, Any] = {}  # by the answer to `initialize`, without what was registered since
        self._registered: dict[str, tuple[str, Any]] = {}
        self._versions: OrderedDict[str, tuple[int, Document]] = OrderedDict()
        self._published: dict[str, tuple[int | None, list[Any]]] = {}

    @property
    def encoding(self) -> str:
        return self.capabilities.encoding

    @property
    def pid(self) -> int | None:
        """Of the running server, whose process group bears the same number."""
        return self._connection.pid if self._connection and self._connection.alive else None

    @property
    def stderr(self) -> str:
        return self._connection.stderr if self._connection else ""

    def shorten(self, message: str) -> str:
        """One line of what a server says, without the place of the root on this machine."""
        line = message.strip().partition("\n")[0]
        return line.replace(make_uri(str(self.texts.root)), ".").replace(str(self.texts.root), ".")[:300]

    def offers(self, capability: str) -> bool:
        return self.capabilities.has(capability) or capability in self.spec.unadvertised

    def connect(self, budget: Budget, deadline: float) -> Connection:
        """The running server; started, or started again after a pause that grows with every failure."""
        if not self._start_lock.acquire(timeout=max(deadline - time.monotonic(), 0)):
            raise ServerError("the server is still starting", timed_out=True)
        try:
            if self._connection and self._connection.alive:
                return self._connection
            if self._connection:
                self._note_failure(self._connection.reason)
                self._connection = None
            if self._failures > self.spec.breaker:
                raise ServerError(f"given up after {self._failures} failures: {self.errors[-1] if self.errors else ''}")
            pause = self._not_before - time.monotonic()
            if pause > deadline - time.monotonic():
                raise ServerError("the server is being restarted", timed_out=True)
            if pause > 0:
                time.sleep(pause)
            self._connection = self._start(budget, deadline)
            return self._connection
        finally:
            self._start_lock.release()

    def open(self, connection: Connection, document: Document) -> str:
        """The document as the server is to see it, known to it under the URI that is returned."""
        path = self.texts.absolute(document)
        uri = make_uri(path)
        with self._open_lock:
            version, known = self._versions.get(path, (0, None))
            if known is None or known.text != document.text:
                version += 1
                self._published.pop(path, None)  # said of another text
                item: dict[str, Any] = {"uri": uri, "version": version}
                text = document.text.decode("utf-8")
                if known is None:
                    item |= {"languageId": self.spec.languages.get(document.language, document.language), "text": text}
                    connection.notify("textDocument/didOpen", {"textDocument": item})
                else:
                    change = {"textDocument": item, "contentChanges": [{"text": text}]}
                    connection.notify("textDocument/didChange", change)
            self.texts.open[path] = document
            self._versions[path] = version, document
            self._versions.move_to_end(path)
            while len(self._versions) > MAX_OPEN:
                oldest, _ = self._versions.popitem(last=False)
                self.texts.open.pop(oldest, None)
                self._published.pop(oldest, None)
                connection.notify("textDocument/didClose", {"textDocument": {"uri": make_uri(oldest)}})
        return uri

    def tell_changed(self, paths: Mapping[str, str]) -> None:
        """Files of the root that were `created`, `changed` or `deleted` on the disk. Silent where no server runs."""
        kinds = {"created": 1, "changed": 2, "deleted": 3}
        changes = [{"uri": make_uri(f"{self.texts.root}/{path}"), "type": kinds[kind]} for path, kind in paths.items()]
        connection = self._connection
        if connection and connection.alive:
            try:
                connection.notify("workspace/didChangeWatchedFiles", {"changes": changes})
            except ServerError as error:
                self.errors.append(str(error))

    def call(
        self,
        connection: Connection,
        method: str,
        many: Sequence[Any],
        *,
        heavy: bool,
        budget: Budget,
        deadline: float,
    ) -> list[Any | ServerError]:
        """The results of one method for many parameters, in their order; what failed is its ServerError.

        A question that timed out is asked again, up to `attempts` times, and then counts as one failure. Only the
        given server is asked: one started since has not seen the documents that are asked about.
        """
        results: list[Any] = [ServerError("not asked")] * len(many)
        hung: set[int] = set()
        with self._lane(heavy, deadline) as free:
            if not free:
                return [ServerError("another heavy question is being answered", timed_out=True)] * len(many)
            todo = list(range(len(many)))
            for _ in range(1 if heavy else budget.attempts):  # a heavy one would only be as heavy again
                if todo:
                    todo = self._round(connection, method, many, todo, results, hung, heavy, budget, deadline)
        for number, result in enumerate(results):
            if not isinstance(result, ServerError):
                self._strikes = self._failures = 0
            elif number in hung:
                self._strikes += 1
        failed = [result for result in results if isinstance(result, ServerError)]
        if failed:
            self.errors.append(f"{method}: {failed[-1]}")
        if self._strikes >= STRIKES:
            # It hangs. A new one is cheap, and the old one would go on holding memory.
            self._strikes = 0
            connection.close(f"no answer to {STRIKES} questions in a row")
        return results

    def wait_published(self, path: str, version: int, deadline: float) -> list[Any] | None:
        """Diagnostics the server sent by itself for this version of an open document."""
        with self._arrived:
            while True:
                known = self._published.get(path)
                if known and (known[0] is None or known[0] >= version):
                    return known[1]
                left = deadline - time.monotonic()
                if left <= 0 or not self.pid:
                    return None
                self._arrived.wait(min(left, 0.1))

    def version(self, document: Document) -> int:
        return self._versions.get(self.texts.absolute(document), (0, None))[0]

    def wait_for(self, ready: Callable[[], bool], deadline: float) -> bool:
        """Until something the server says makes `ready` true."""
        with self._arrived:
            while not ready():
                left = deadline - time.monotonic()
                if left <= 0 or not self.pid:
                    return False
                self._arrived.wait(min(left, 0.1))
        return True

    def close(self) -> None:
        """Ends the server and everything it started."""
        with self._start_lock:
            connection, self._connection = self._connection, None
        if connection and connection.alive:
            try:
                connection.wait(connection.request("shutdown", None), 0.5)
                connection.notify("exit", None)
            except ServerError:
                connection.close()
            connection.close(grace=0.5)

    @contextmanager
    def _lane(self, heavy: bool, deadline: float) -> Iterator[bool]:
        if not heavy:
            yield True
            return
        free = self._heavy.acquire(timeout=max(deadline - time.monotonic(), 0))
        try:
            yield free
        finally:
            if free:
                self._heavy.release()

    def _round(
        self,
        connection: Connection,
        method: str,
        many: Sequence[Any],
        todo: list[int],
        results: list[Any],
        hung: set[int],
        heavy: bool,
        budget: Budget,
        deadline: float,
    ) -> list[int]:
        """One attempt at each; returns those worth another. `hung` is which were waited for in full, and in vain."""
        again: list[int] = []
        flight: deque[tuple[int, Request]] = deque()
        silent, stopped = 0, False
        for at in (*todo, *([-1] * len(todo))):  # after the last is sent, each turn takes one answer
            if at >= 0 and not stopped:
                try:
                    flight.append((at, connection.request(method, many[at])))
                except ServerError as error:
                    results[at] = error
            elif at >= 0:
                results[at] = ServerError("the server does not answer", timed_out=True)
            if not flight or (at >= 0 and len(flight) < (4 if heavy else _WINDOW)):
                continue
            number, request = flight.popleft()
            limit, left = self._limit(method, heavy, budget), deadline - time.monotonic()
            hung.discard(number)
            try:
                results[number] = connection.wait(request, 0 if stopped else min(limit, left))
                self._answered.add(method)
                silent = 0
            except ServerError as error:
                results[number] = error
                if error.timed_out or error.code in _RETRY_CODES:
                    again.append(number)
                    silent += error.timed_out
                    if error.timed_out and limit <= left and not stopped:
                        hung.add(number)
                    # The rest would only wait as long, one after the other.
                    stopped = stopped or silent >= STRIKES or left <= 0
        return again if not stopped and deadline > time.monotonic() else []

    def _limit(self, method: str, heavy: bool, budget: Budget) -> float:
        if heavy:  # each of these reads the project in its own way
            return budget.project if method in self._answered else budget.project_first
        return budget.point if self._answered else budget.first

    def _start(self, budget: Budget, deadline: float) -> Connection:
        self.generation += 1
        self.signals.clear()
        self.progress.clear()
        self._registered.clear()
        self._answered.clear()
        self._published.clear()
        self.kept_tokens.clear()
        self.complaint, self.settled = "", False
        self.server_status = {}
        with self._open_lock:
            self._versions.clear()
            self.texts.open.clear()
        limit = max(budget.initialize, 15.0 if self.spec.slow_start else 0.0)
        connection = None
        try:
            generation = self.generation
            connection = Connection(
                self.spec.command,
                root=self.texts.root,
                answer=lambda method, params: self._answer(generation, method, params),
                notice=lambda method, params: self._notice(generation, method, params),
                env=self.spec.env,
                first_id=self._next_id,
            )
            request = connection.request("initialize", self._initialize_params())
            result = connection.wait(request, min(limit, deadline - time.monotonic()))
            # Before `initialized`: what the server registers after it is added to these.
            self.capabilities = parse_capabilities(result, CLIENT_CAPABILITIES)
            self._offered = self.capabilities.server
            connection.notify("initialized", {})
            if self.spec.settings:
                connection.notify("workspace/didChangeConfiguration", {"settings": self.spec.settings})
        except ServerError as error:
            self._note_failure(str(error))
            if connection:
                connection.close(str(error))
            raise
        self._next_id = 1_000_000 * self.generation  # no id is used by two generations
        return connection

    def _note_failure(self, reason: str) -> None:
        self.errors.append(reason)
        self._not_before = time.monotonic() + BACKOFF[min(self._failures, len(BACKOFF) - 1)]
        self._failures += 1

    def _initialize_params(self) -> dict[str, Any]:
        uri = make_uri(str(self.texts.root))
        return {
            "processId": os.getpid(),
            "clientInfo": {"name": "cq"},
            "rootPath": str(self.texts.root),
            "rootUri": uri,
            "workspaceFolders": [{"uri": uri, "name": self.texts.root.name}],
            "capabilities": CLIENT_CAPABILITIES,
            "initializationOptions": self.spec.options or None,
            "trace": "off",
        }

    def _answer(self, generation: int, method: str, params: Any) -> Any:
        if generation != self.generation:
            return None
        result = self._respond(method, params)
        self._signal(method)
        return result

    def _respond(self, method: str, params: Any) -> Any:
        match method, params:
            case "workspace/configuration", {"items": list(items)}:
                return [self._setting(item) for item in items[:100]]
            case "client/registerCapability", {"registrations": list(registrations)}:
                for each in registrations[:500]:
                    match each:
                        case {"id": str(key), "method": str(name)} if len(self._registered) < 500:
                            self._registered[key] = name, each.get("registerOptions")
                        case _:
                            continue
                self._merge_registered()
                return None
            case "client/unregisterCapability", dict():
                # The protocol spells it so.
                gone = params.get("unregisterations")
                for each in gone if isinstance(gone, list) else ():
                    if isinstance(each, dict):
                        self._registered.pop(str(each.get("id")), None)
                self._merge_registered()
                return None
            case "workspace/workspaceFolders", _:
                return [{"uri": make_uri(str(self.texts.root)), "name": self.texts.root.name}]
            case "workspace/applyEdit", _:
                return {"applied": False, "failureReason": "cq changes nothing"}
            case (("window/workDoneProgress/create" | "window/showMessageRequest"), _):
                return None
            case "window/showDocument", _:
                return {"success": False}
            case str(name), _ if name.endswith("/refresh"):
                return None
            case _:
                return NotImplemented

    def _notice(self, generation: int, method: str, params: Any) -> None:
        if generation != self.generation:
            return
        match method, params:
            case "textDocument/publishDiagnostics", {"uri": uri, "diagnostics": list(diagnostics)}:
                version, path = params.get("version"), read_uri(uri)
                with self._open_lock:
                    # Only open documents are asked about, so what is kept is bounded by them.
                    if path in self._versions and _measure(diagnostics) <= _MAX_PUBLISHED:
                        self._published[path] = version if isinstance(version, int) else None, diagnostics
            case "experimental/serverStatus", dict(status):
                self.server_status = status
            case "$/progress", {"token": token, "value": {"kind": str(kind)}}:
                if kind == "begin" and len(self.progress) < 1000:
                    self.progress.add(str(token)[:200])
                elif kind == "end":
                    self.progress.discard(str(token)[:200])
            case "window/logMessage" | "window/showMessage", {"type": 1, "message": str(message)}:
                self.errors.append(self.shorten(message))
                if method == "window/showMessage":
                    self.complaint = self.shorten(message)
            case _:
                pass
        self._signal(method)

    def _signal(self, method: str) -> None:
        with self._arrived:
            if method in self.signals or len(self.signals) < 200:
                self.signals[method] += 1
            self._arrived.notify_all()

    def _setting(self, item: Any) -> Any:
        """One section of the settings, by its dotted name; null where there is none."""
        value: Any = self.spec.settings
        section = item.get("section") if isinstance(item, dict) else None
        for part in section.split(".") if isinstance(section, str) and section else ():
            value = value.get(part) if isinstance(value, dict) else None
        return value

    def _merge_registered(self) -> None:
        server = dict(self._offered)
        for method, options in self._registered.values():
            if key := _REGISTRATION_KEYS.get(method):
                server[key] = options if options is not None else True
        self.capabilities = msgspec.structs.replace(self.capabilities, server=server)


def _measure(value: Any) -> float:
    try:
        return len(msgspec.json.encode(value))
    except RecursionError:
        return float("inf")


def parse_capabilities(result: Any, client: dict[str, Any]) -> Capabilities:
    """From the answer to `initialize`, or a table of capabilities alone; keys in camelCase or snake_case."""
    table: dict[str, Any] = result if isinstance(result, dict) else {}
    server = table.get("capabilities", table)
    server = {_camel(str(key)): value for key, value in server.items()} if isinstance(server, dict) else {}
    info = table.get("serverInfo")
    info = info if isinstance(info, dict) else {}
    encoding = server.get("positionEncoding")
    experimental = server.get("experimental")
    return Capabilities(
        str(info.get("name") or "")[:100],
        str(info.get("version") or "")[:100],
        encoding if encoding in ENCODINGS else "utf-16",
        server,
        client,
        experimental if isinstance(experimental, dict) else {},
    )


def _camel(key: str) -> str:
    head, *rest = key.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


_REGISTRATION_KEYS = {
    "textDocument/definition": "definitionProvider",
    "textDocument/declaration": "declarationProvider",
    "textDocument/typeDefinition": "typeDefinitionProvider",
    "textDocument/implementation": "implementationProvider",
    "textDocument/references": "referencesProvider",
    "textDocument/hover": "hoverProvider",
    "textDocument/documentSymbol": "documentSymbolProvider",
    "workspace/symbol": "workspaceSymbolProvider",
    "textDocument/prepareCallHierarchy": "callHierarchyProvider",
    "textDocument/prepareTypeHierarchy": "typeHierarchyProvider",
    "textDocument/semanticTokens": "semanticTokensProvider",
    "textDocument/inlayHint": "inlayHintProvider",
    "textDocument/diagnostic": "diagnosticProvider",
    "textDocument/codeAction": "codeActionProvider",
}

_DYNAMIC = {"dynamicRegistration": True}
_LINKS = {"dynamicRegistration": True, "linkSupport": True}
_SYMBOL_KINDS = {"valueSet": list(range(1, 27))}
_TOKEN_TYPES = (
    "namespace", "type", "class", "enum", "interface", "struct", "typeParameter", "parameter", "variable", "property",
    "enumMember", "event", "function", "method", "macro", "keyword", "modifier", "comment", "string", "number",
    "regexp", "operator", "decorator",
)  # fmt: skip
_TOKEN_MODIFIERS = (
    "declaration", "definition", "readonly", "static", "deprecated", "abstract", "async", "modification",
    "documentation", "defaultLibrary",
)  # fmt: skip

CLIENT_CAPABILITIES: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-8", "utf-32", "utf-16"]},
    "window": {"workDoneProgress": True},
    "workspace": {
        "configuration": True,
        "workspaceFolders": True,
        "didChangeConfiguration": _DYNAMIC,
        "didChangeWatchedFiles": {"dynamicRegistration": True, "relativePatternSupport": True},
        "symbol": {**_DYNAMIC, "symbolKind": _SYMBOL_KINDS, "resolveSupport": {"properties": ["location.range"]}},
        "semanticTokens": {"refreshSupport": True},
        "inlayHint": {"refreshSupport": True},
        "diagnostics": {"refreshSupport": True},
    },
    "textDocument": {
        "synchronization": {"dynamicRegistration": True, "didSave": False},
        "definition": _LINKS,
        "declaration": _LINKS,
        "typeDefinition": _LINKS,
        "implementation": _LINKS,
        "references": _DYNAMIC,
        "hover": {**_DYNAMIC, "contentFormat": ["markdown", "plaintext"]},
        "signatureHelp": {
            **_DYNAMIC,
            "signatureInformation": {
                "documentationFormat": ["markdown", "plaintext"],
                "parameterInformation": {"labelOffsetSupport": True},
                "activeParameterSupport": True,
            },
        },
        "documentSymbol": {**_DYNAMIC, "hierarchicalDocumentSymbolSupport": True, "symbolKind": _SYMBOL_KINDS},
        "callHierarchy": _DYNAMIC,
        "typeHierarchy": _DYNAMIC,
        "inlayHint": {**_DYNAMIC, "resolveSupport": {"properties": ["tooltip", "label.tooltip"]}},
        "semanticTokens": {
            **_DYNAMIC,
            "requests": {"range": True, "full": {"delta": True}},
            "tokenTypes": _TOKEN_TYPES,
            "tokenModifiers": _TOKEN_MODIFIERS,
            "formats": ["relative"],
            "overlappingTokenSupport": True,
            "multilineTokenSupport": True,
            "augmentsSyntaxTokens": True,  # without it pyrefly offers none
        },
        "publishDiagnostics": {"relatedInformation": True, "versionSupport": True, "codeDescriptionSupport": True},
        "diagnostic": {**_DYNAMIC, "relatedDocumentSupport": True},
        "codeAction": {
            **_DYNAMIC,
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["", "quickfix", "refactor", "source"]}},
            "isPreferredSupport": True,
            "disabledSupport": True,
            "dataSupport": True,
            "resolveSupport": {"properties": ["edit"]},
        },
    },
    "experimental": {"serverStatusNotification": True},
}
