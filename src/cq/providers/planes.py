"""The questions a language server can be asked, each gated by what it offers; answered by one reply per target."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from cq.model.provider import Coverage, Reply
from cq.providers.answers import (
    MAX_ITEMS,
    Found,
    Reader,
    Target,
    apply_token_edits,
    as_list,
    diagnostic_rows,
    has_range,
)
from cq.providers.rpc import Connection, ServerError
from cq.providers.session import BUDGETS, MAX_OPEN, Budget, Session

_DOCUMENTS_AT_ONCE = 32
_SETTLING = 0.3  # seconds
_MAX_RESOLVED = 500  # hints of one document
_MAX_KEPT = 200_000  # numbers of tokens, for one document
_LISTINGS = {"symbols", "tokens", "hints", "diagnostics", "actions", "runnables"}  # kinds of which null is "none"


class Plane(NamedTuple):
    method: str
    offer: str  # as a server names it, without the word Provider
    kind: str  # what a provider says it answers
    read: Callable[[Reader, Target, str, Any], Found]
    heavy: bool = False  # asks the server about the whole project
    names: bool = False  # asks what one name means: no answer is not "none"

    @property
    def capability(self) -> str:
        return f"{self.offer}Provider"


PLANES = {
    "definition": Plane("textDocument/definition", "definition", "references", Reader.places, names=True),
    "declaration": Plane("textDocument/declaration", "declaration", "references", Reader.places, names=True),
    "type_definition": Plane("textDocument/typeDefinition", "typeDefinition", "types", Reader.places, names=True),
    "implementation": Plane("textDocument/implementation", "implementation", "references", Reader.places, heavy=True),
    "references": Plane("textDocument/references", "references", "references", Reader.references, heavy=True),
    "hover": Plane("textDocument/hover", "hover", "types", Reader.hover, names=True),
    "signature_help": Plane("textDocument/signatureHelp", "signatureHelp", "types", Reader.signatures, names=True),
    "document_symbols": Plane("textDocument/documentSymbol", "documentSymbol", "symbols", Reader.outline),
    "workspace_symbols": Plane("workspace/symbol", "workspaceSymbol", "symbols", Reader.workspace_symbols, heavy=True),
    "incoming_calls": Plane(
        "callHierarchy/incomingCalls", "callHierarchy", "hierarchy", Reader.incoming_calls, heavy=True
    ),
    "outgoing_calls": Plane("callHierarchy/outgoingCalls", "callHierarchy", "hierarchy", Reader.outgoing_calls),
    "supertypes": Plane("typeHierarchy/supertypes", "typeHierarchy", "hierarchy", Reader.types),
    "subtypes": Plane("typeHierarchy/subtypes", "typeHierarchy", "hierarchy", Reader.types, heavy=True),
    "tokens": Plane("textDocument/semanticTokens/full", "semanticTokens", "tokens", Reader.tokens),
    "hints": Plane("textDocument/inlayHint", "inlayHint", "hints", Reader.hints),
    "diagnostics": Plane("textDocument/diagnostic", "diagnostic", "diagnostics", Reader.diagnostics),
    "workspace_diagnostics": Plane("workspace/diagnostic", "diagnostic", "diagnostics", Reader.diagnostics, heavy=True),
    "actions": Plane("textDocument/codeAction", "codeAction", "actions", Reader.actions),
    "macro": Plane("rust-analyzer/expandMacro", "expandMacro", "macros", Reader.expansion, names=True),
    "runnables": Plane("experimental/runnables", "runnables", "runnables", Reader.runnables),
}


def ask(
    session: Session, plane: str, targets: Sequence[Target], budget: Budget = BUDGETS["interactive"]
) -> list[Reply[Any]]:
    """One reply per target, in their order. Starts the server where none runs; never raises for what it does."""
    deadline = time.monotonic() + budget.total
    try:
        connection = session.connect(budget, deadline)
    except ServerError as error:
        return [_fail(session, plane, error)] * len(targets)
    missing = missing_capability(session, plane)
    if missing and not session.settled:
        # Some servers name a part of what they offer only once they have started.
        until = min(deadline, time.monotonic() + _SETTLING)
        session.settled = not session.wait_for(lambda: not missing_capability(session, plane), until)
        missing = missing_capability(session, plane)
    if missing:
        return [Reply(session.spec.id, plane, Coverage("unresolved", missing))] * len(targets)
    if not session.spec.ready(session):
        session.wait_for(lambda: session.spec.ready(session), min(deadline, time.monotonic() + budget.first))
    replies: list[Reply[Any]] = []
    for group in _split(targets):
        try:
            asker = _Asker(session, connection, plane, group, budget, deadline)
            replies += asker.replies()
        except ServerError as error:  # the connection ended while documents were opened
            replies += [_fail(session, plane, error)] * len(group)
    return replies


def missing_capability(session: Session, plane: str) -> str:
    """Why a running server cannot be asked; empty when it can."""
    capability = PLANES[plane].capability
    if plane == "diagnostics":
        return ""  # where they cannot be pulled, the server pushes them
    if not session.offers(capability):
        return f"{session.spec.id} does not offer {plane.replace('_', ' ')}"
    if plane == "workspace_diagnostics":
        match session.capabilities.server.get(capability):
            case {"workspaceDiagnostics": True}:
                return ""
            case _:
                return f"{session.spec.id} does not offer workspace diagnostics"
    return ""


def offered_planes(session: Session) -> tuple[str, ...]:
    return tuple(plane for plane in PLANES if not missing_capability(session, plane))


def _split(targets: Sequence[Target]) -> Iterable[list[Target]]:
    """Runs of targets whose documents may all be open at once."""
    group: list[Target] = []
    documents: set[int] = set()
    for target in targets:
        if len(documents | {id(target.document)}) > _DOCUMENTS_AT_ONCE:
            yield group
            group, documents = [], set()
        group.append(target)
        documents.add(id(target.document))
    if group:
        yield group


def _fail(session: Session, plane: str, error: ServerError) -> Reply[Any]:
    reason = Coverage("unresolved", session.shorten(str(error)))
    return Reply(session.spec.id, plane, reason, timed_out=error.timed_out, failed=True)


class _Asker:
    """One plane for targets whose documents are open."""

    def __init__(
        self,
        session: Session,
        connection: Connection,
        plane: str,
        targets: list[Target],
        budget: Budget,
        deadline: float,
    ) -> None:
        self.session, self.connection, self.plane, self.targets = session, connection, plane, targets
        self.budget, self.deadline = budget, deadline
        self.uris = [session.open(connection, target.document) for target in targets]
        self.versions = [session.version(target.document) for target in targets]

    def replies(self) -> list[Reply[Any]]:
        # As it was before: a server that became ready meanwhile may have answered when it was not.
        coverage = self.session.spec.coverage(self.session, self.plane)
        results = self._ask()
        if PLANES[self.plane].heavy and self.session.complaint and coverage.state == "complete":
            coverage = Coverage("partial", f"{self.session.spec.id}: {self.session.complaint}")
        tokens = self.session.capabilities.server.get("semanticTokensProvider")
        legend = tokens.get("legend") if isinstance(tokens, dict) else None
        reader = Reader(self.session.texts, self.session.encoding, legend)
        return [
            self._reply(reader, target, uri, result, coverage)
            if self.session.version(target.document) == version
            else _fail(self.session, self.plane, ServerError("the text changed while it was asked about"))
            for target, uri, version, result in zip(self.targets, self.uris, self.versions, results, strict=True)
        ]

    def _reply(self, reader: Reader, target: Target, uri: str, result: Any, coverage: Coverage) -> Reply[Any]:
        if isinstance(result, ServerError):
            return _fail(self.session, self.plane, result)
        plane, dropped = PLANES[self.plane], 0
        if result is not None or plane.kind in _LISTINGS:
            items, dropped, partial = plane.read(reader, target, uri, result)
            if partial and coverage.state == "complete":
                coverage = Coverage("partial", partial)
            if len(items) > MAX_ITEMS:
                coverage = Coverage("partial", f"the first {MAX_ITEMS} of {len(items)}")
            if items or not plane.names:
                return Reply(self.session.spec.id, self.plane, coverage, tuple(items[:MAX_ITEMS]), dropped)
        reason = f"{self.session.spec.id} knows nothing here"
        return Reply(self.session.spec.id, self.plane, Coverage("unresolved", reason), dropped=dropped)

    def _ask(self) -> list[Any]:
        method = PLANES[self.plane].method
        match self.plane:
            case "references":
                return self._ask_references()
            case "document_symbols" | "runnables":
                return self._of_documents(method)
            case "workspace_symbols":
                return self._resolve_symbols(self._call(method, [{"query": target.query} for target in self.targets]))
            case "incoming_calls" | "outgoing_calls":
                return self._ask_hierarchy("textDocument/prepareCallHierarchy")
            case "supertypes" | "subtypes":
                return self._ask_hierarchy("textDocument/prepareTypeHierarchy")
            case "tokens":
                return self._ask_tokens()
            case "hints":
                return self._resolve_hints(self._over_spans(method))
            case "diagnostics":
                return self._ask_diagnostics()
            case "workspace_diagnostics":
                return self._call(method, [{"previousResultIds": []}] * len(self.targets))
            case "actions":
                return self._ask_actions()
            case _:
                return self._at_points(method)

    def _call(self, method: str, many: Sequence[Any]) -> list[Any]:
        """`many` may hold ServerErrors: those are not asked, and stay."""
        asked = [params for params in many if not isinstance(params, ServerError)]
        heavy = PLANES[self.plane].heavy
        found = self.session.call(
            self.connection, method, asked, heavy=heavy, budget=self.budget, deadline=self.deadline
        )  # fmt: skip
        answers = iter(found)
        return [params if isinstance(params, ServerError) else next(answers) for params in many]

    def _at_points(self, method: str, **more: Any) -> list[Any]:
        many: list[Any] = []
        for target, uri in zip(self.targets, self.uris, strict=True):
            position = target.document.position(target.offset, self.session.encoding)
            if position is None:
                many.append(ServerError(f"offset {target.offset} is not in the document"))
            else:
                many.append({"textDocument": {"uri": uri}, "position": position, **more})
        return self._call(method, many)

    def _of_documents(self, method: str) -> list[Any]:
        return self._call(method, [{"textDocument": {"uri": uri}} for uri in self.uris])

    def _span(self, target: Target) -> Any:
        document, encoding = target.document, self.session.encoding
        if target.end < 0:
            last = document.outer(len(document.text), end=True)
            start, end = document.position(document.outer(0), encoding), document.position(last, encoding)
        else:
            start, end = document.position(target.offset, encoding), document.position(target.end, encoding)
        return {"start": start, "end": end} if start and end else ServerError("the span is not in the document")

    def _over_spans(self, method: str, more: Sequence[dict[str, Any]] | None = None) -> list[Any]:
        many: list[Any] = []
        for at, (target, uri) in enumerate(zip(self.targets, self.uris, strict=True)):
            span = self._span(target)
            extra = more[at] if more else {}
            failed = isinstance(span, ServerError)
            many.append(span if failed else {"textDocument": {"uri": uri}, "range": span, **extra})
        return self._call(method, many)

    def _ask_references(self) -> list[Any]:
        """With the declaration, which is then taken out again: without it some servers leave the imports out too."""
        found = self._at_points(PLANES["references"].method, context={"includeDeclaration": True})
        definitions = self._at_points(PLANES["definition"].method)
        return [
            # Not even its declaration: it is not known, and not a name without references.
            result if isinstance(result, ServerError) else (result, definition) if result else None
            for result, definition in zip(found, definitions, strict=True)
        ]

    def _ask_tokens(self) -> list[Any]:
        server = self.session.capabilities.server.get("semanticTokensProvider")
        offers_range = isinstance(server, dict) and server.get("range") not in (None, False)
        if offers_range and all(target.end >= 0 for target in self.targets):
            return self._over_spans("textDocument/semanticTokens/range")
        full = server.get("full") if isinstance(server, dict) else None
        kept = self.session.kept_tokens if isinstance(full, dict) and full.get("delta") is True else {}
        results: dict[str, Any] = {}
        for uri in self.uris:
            if before := kept.pop(uri, None):
                params = {"textDocument": {"uri": uri}, "previousResultId": before[0]}
                (result,) = self._call("textDocument/semanticTokens/full/delta", [params])
                results[uri] = apply_token_edits(before[1], result)
        rest = [uri for uri in dict.fromkeys(self.uris) if results.get(uri) is None]
        results |= zip(
            rest, self._call(PLANES["tokens"].method, [{"textDocument": {"uri": uri}} for uri in rest]), strict=True
        )
        for uri, result in results.items():
            match result:
                case {"resultId": str(number), "data": list(data)} if len(data) < _MAX_KEPT and len(kept) < MAX_OPEN:
                    kept[uri] = number, data
                case _:
                    continue
        return [results[uri] for uri in self.uris]

    def _ask_hierarchy(self, prepare: str) -> list[Any]:
        """Every item that stands at the place, and for each what the server says of it."""
        prepared = self._at_points(prepare)
        items = [(at, item) for at, found in enumerate(prepared) if isinstance(found, list) for item in found[:8]]
        answers = self._call(PLANES[self.plane].method, [{"item": item} for _, item in items])
        results: list[Any] = [
            found if isinstance(found, ServerError) else [] if isinstance(found, list) and found else None
            for found in prepared
        ]
        for (at, item), answer in zip(items, answers, strict=True):
            if isinstance(answer, ServerError):
                results[at] = answer
            elif isinstance(results[at], list):
                results[at] += [(item, each) for each in as_list(answer)]
        return results

    def _resolve_symbols(self, results: list[Any]) -> list[Any]:
        """Symbols without a range are asked for it, where the server offers that."""
        server = self.session.capabilities.server.get("workspaceSymbolProvider")
        if not (isinstance(server, dict) and server.get("resolveProvider")):
            return results
        for at, result in enumerate(results):
            bare = [index for index, item in enumerate(as_list(result)) if not has_range(item)][:500]
            resolved = self._call("workspaceSymbol/resolve", [result[index] for index in bare])
            for index, item in zip(bare, resolved, strict=True):
                if not isinstance(item, ServerError):
                    results[at][index] = item
        return results

    def _resolve_hints(self, results: list[Any]) -> list[Any]:
        """What a hint leaves for later, where the server says that it does."""
        server = self.session.capabilities.server.get("inlayHintProvider")
        if not (isinstance(server, dict) and server.get("resolveProvider")):
            return results
        for result in results:
            bare = [at for at, item in enumerate(as_list(result)) if isinstance(item, dict) and "tooltip" not in item]
            resolved = self._call("inlayHint/resolve", [result[at] for at in bare[:_MAX_RESOLVED]])
            for at, item in zip(bare, resolved, strict=False):
                if isinstance(item, dict):
                    result[at] = item
        return results

    def _ask_diagnostics(self) -> list[Any]:
        if self.session.offers("diagnosticProvider"):
            return self._of_documents(PLANES["diagnostics"].method)
        found: list[Any] = []
        until = min(self.deadline, time.monotonic() + self.budget.first)
        for target, uri in zip(self.targets, self.uris, strict=True):
            path = self.session.texts.absolute(target.document)
            pushed = self.session.wait_published(path, self.session.version(target.document), until)
            late = ServerError("the server sent no diagnostics", timed_out=True)
            found.append(late if pushed is None else {"uri": uri, "diagnostics": pushed})
        return found

    def _ask_actions(self) -> list[Any]:
        """With the diagnostics of the span, as the protocol wants them: word for word."""
        contexts: list[dict[str, Any]] = []
        for target, uri, pulled in zip(self.targets, self.uris, self._ask_diagnostics(), strict=True):
            low, high = target.offset, target.end if target.end >= 0 else target.offset
            near = [
                raw
                for where, raw in diagnostic_rows(pulled, uri)
                if where == uri
                and (span := target.document.span(raw.get("range"), self.session.encoding))
                and span[0] <= high
                and span[1] >= low
            ]
            contexts.append({"context": {"diagnostics": near, "triggerKind": 2}})
        self.targets = [
            target._replace(end=target.offset) if target.end < 0 else target for target in self.targets
        ]  # fmt: skip
        results = self._over_spans(PLANES["actions"].method, contexts)
        server = self.session.capabilities.server.get("codeActionProvider")
        if isinstance(server, dict) and server.get("resolveProvider"):
            for result in results:
                actions = as_list(result)
                bare = [at for at, item in enumerate(actions) if isinstance(item, dict) and "edit" not in item][:32]
                resolved = self._call("codeAction/resolve", [actions[at] for at in bare])
                for at, item in zip(bare, resolved, strict=True):
                    if isinstance(item, dict):
                        actions[at] = item
        return results
