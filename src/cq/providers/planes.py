"""The questions a language server can be asked, each gated by what it offers, and its answers as our structs.

Everything a server sends is taken as any JSON: what has not the shape that is expected is left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from cq.model.provider import (
    Action,
    Coverage,
    Diagnostic,
    HierarchyItem,
    Hint,
    Hover,
    Outline,
    Place,
    Related,
    Reply,
    Token,
)
from cq.providers.documents import Document
from cq.providers.hover import parse_hover
from cq.providers.rpc import Connection, ServerError
from cq.providers.session import BUDGETS, MAX_OPEN, Budget, Session

MAX_ITEMS = 20_000
MAX_TEXT = 16 * 1024
_DOCUMENTS_AT_ONCE = 32
_SETTLING = 0.3
_LISTINGS = {"document_symbols", "workspace_symbols", "tokens", "hints", "diagnostics", "actions"}  # null is "none"


class Target(NamedTuple):
    """What is asked about: a place in a document, a span of it, or for symbols of the workspace a `query`."""

    document: Document
    offset: int = 0
    end: int = -1  # -1: the whole document, where a span is meant
    query: str = ""


class Plane(NamedTuple):
    method: str
    capability: str
    kind: str  # of model.provider.KINDS
    heavy: bool = False


PLANES = {
    "definition": Plane("textDocument/definition", "definitionProvider", "references"),
    "declaration": Plane("textDocument/declaration", "declarationProvider", "references"),
    "type_definition": Plane("textDocument/typeDefinition", "typeDefinitionProvider", "types"),
    "implementation": Plane("textDocument/implementation", "implementationProvider", "references", heavy=True),
    "references": Plane("textDocument/references", "referencesProvider", "references", heavy=True),
    "hover": Plane("textDocument/hover", "hoverProvider", "types"),
    "document_symbols": Plane("textDocument/documentSymbol", "documentSymbolProvider", "symbols"),
    "workspace_symbols": Plane("workspace/symbol", "workspaceSymbolProvider", "symbols", heavy=True),
    "incoming_calls": Plane("callHierarchy/incomingCalls", "callHierarchyProvider", "hierarchy", heavy=True),
    "outgoing_calls": Plane("callHierarchy/outgoingCalls", "callHierarchyProvider", "hierarchy"),
    "supertypes": Plane("typeHierarchy/supertypes", "typeHierarchyProvider", "hierarchy"),
    "subtypes": Plane("typeHierarchy/subtypes", "typeHierarchyProvider", "hierarchy", heavy=True),
    "tokens": Plane("textDocument/semanticTokens/full", "semanticTokensProvider", "tokens"),
    "hints": Plane("textDocument/inlayHint", "inlayHintProvider", "hints"),
    "diagnostics": Plane("textDocument/diagnostic", "diagnosticProvider", "diagnostics"),
    "workspace_diagnostics": Plane("workspace/diagnostic", "diagnosticProvider", "diagnostics", heavy=True),
    "actions": Plane("textDocument/codeAction", "codeActionProvider", "actions"),
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
    return Reply(session.spec.id, plane, Coverage("unresolved", str(error)), timed_out=error.timed_out)


class _Found(NamedTuple):
    items: list[Any]
    dropped: int = 0
    partial: str = ""


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
        self.session, self.plane, self.targets = session, plane, targets
        self.budget, self.deadline = budget, deadline
        self.uris = [session.open(connection, target.document) for target in targets]

    def replies(self) -> list[Reply[Any]]:
        read, results = self._ask()
        coverage = self.session.spec.coverage(self.session, self.plane)
        return [
            self._reply(read, target, uri, result, coverage)
            for target, uri, result in zip(self.targets, self.uris, results, strict=True)
        ]

    def _reply(
        self, read: _Reader, target: Target, uri: str, result: Any, coverage: Coverage
    ) -> Reply[Any]:  # fmt: skip
        if isinstance(result, ServerError):
            return _fail(self.session, self.plane, result)
        if result is None and self.plane not in _LISTINGS:
            reason = f"{self.session.spec.id} knows nothing here"
            return Reply(self.session.spec.id, self.plane, Coverage("unresolved", reason))
        items, dropped, partial = read(self, target, uri, result)
        if partial and coverage.state == "complete":
            coverage = Coverage("partial", partial)
        if len(items) > MAX_ITEMS:
            coverage = Coverage("partial", f"the first {MAX_ITEMS} of {len(items)}")
        return Reply(self.session.spec.id, self.plane, coverage, tuple(items[:MAX_ITEMS]), dropped)

    def _ask(self) -> tuple[_Reader, list[Any]]:
        plane = self.plane
        if plane in ("definition", "declaration", "type_definition", "implementation"):
            return _Asker.read_places, self._at_points(PLANES[plane].method)
        if plane == "references":
            return _Asker.read_references, self._ask_references()
        if plane == "hover":
            return _Asker.read_hover, self._at_points(PLANES[plane].method)
        if plane in ("document_symbols", "tokens"):
            return (
                (_Asker.read_outline, self._of_documents(PLANES[plane].method))
                if plane == "document_symbols"
                else (_Asker.read_tokens, self._ask_tokens())
            )
        if plane == "workspace_symbols":
            params = [{"query": target.query} for target in self.targets]
            return _Asker.read_workspace_symbols, self._resolve_symbols(self.call(PLANES[plane].method, params))
        if plane in ("incoming_calls", "outgoing_calls"):
            return _Asker.read_calls, self._ask_hierarchy("textDocument/prepareCallHierarchy")
        if plane in ("supertypes", "subtypes"):
            return _Asker.read_types, self._ask_hierarchy("textDocument/prepareTypeHierarchy")
        if plane == "hints":
            return _Asker.read_hints, self._over_spans(PLANES[plane].method)
        if plane == "diagnostics":
            return _Asker.read_diagnostics, self._ask_diagnostics()
        if plane == "workspace_diagnostics":
            return _Asker.read_diagnostics, self.call(
                PLANES[plane].method, [{"previousResultIds": []}] * len(self.targets)
            )
        return _Asker.read_actions, self._ask_actions()

    # Asking.

    def call(self, method: str, many: Sequence[Any]) -> list[Any]:
        """`many` may hold ServerErrors: those are not asked, and stay."""
        asked = [params for params in many if not isinstance(params, ServerError)]
        answers = iter(
            self.session.call(
                method, asked, heavy=PLANES[self.plane].heavy, budget=self.budget, deadline=self.deadline
            )
        )  # fmt: skip
        return [params if isinstance(params, ServerError) else next(answers) for params in many]

    def _at_points(self, method: str, **more: Any) -> list[Any]:
        many: list[Any] = []
        for target, uri in zip(self.targets, self.uris, strict=True):
            position = target.document.position(target.offset, self.session.encoding)
            if position is None:
                many.append(ServerError(f"offset {target.offset} is not in the document"))
            else:
                many.append({"textDocument": {"uri": uri}, "position": position, **more})
        return self.call(method, many)

    def _of_documents(self, method: str) -> list[Any]:
        return self.call(method, [{"textDocument": {"uri": uri}} for uri in self.uris])

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
        return self.call(method, many)

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
        results: list[Any] = []
        offers_delta = isinstance(server, dict) and server.get("full") == {"delta": True}
        kept = self.session.kept_tokens
        for uri in self.uris:
            before = kept.get(uri) if offers_delta else None
            if before:
                params = {"textDocument": {"uri": uri}, "previousResultId": before[0]}
                (result,) = self.call("textDocument/semanticTokens/full/delta", [params])
                edits = result.get("edits") if isinstance(result, dict) else None
                if edits is not None and (data := apply_token_edits(before[1], edits)) is not None:
                    result = {**result, "data": data}
            else:
                result = None
            if not isinstance(result, dict) or "data" not in result:
                (result,) = self.call(PLANES["tokens"].method, [{"textDocument": {"uri": uri}}])
            match result:
                case {"resultId": str(number), "data": list(data)} if offers_delta:
                    kept[uri] = number, data
                    while len(kept) > MAX_OPEN:
                        kept.pop(next(iter(kept)))
                case _:
                    kept.pop(uri, None)
            results.append(result)
        return results

    def _ask_hierarchy(self, prepare: str) -> list[Any]:
        """Every item that stands at the place, and for each what the server says of it."""
        prepared = self._at_points(prepare)
        items = [(at, item) for at, found in enumerate(prepared) if isinstance(found, list) for item in found[:8]]
        answers = self.call(PLANES[self.plane].method, [{"item": item} for _, item in items])
        results: list[Any] = [
            found if isinstance(found, ServerError) else [] if isinstance(found, list) and found else None
            for found in prepared
        ]
        for (at, item), answer in zip(items, answers, strict=True):
            if isinstance(answer, ServerError):
                results[at] = answer
            elif isinstance(results[at], list):
                results[at] += [(item, each) for each in _list(answer)]
        return results

    def _resolve_symbols(self, results: list[Any]) -> list[Any]:
        """Symbols without a range are asked for it, where the server offers that."""
        server = self.session.capabilities.server.get("workspaceSymbolProvider")
        if not (isinstance(server, dict) and server.get("resolveProvider")):
            return results
        for at, result in enumerate(results):
            bare = [index for index, item in enumerate(_list(result)) if not _has_range(item)][:500]
            resolved = self.call("workspaceSymbol/resolve", [result[index] for index in bare])
            for index, item in zip(bare, resolved, strict=True):
                if not isinstance(item, ServerError):
                    results[at][index] = item
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
                for where, raw in _diagnostic_rows(pulled, uri)
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
                actions = _list(result)
                bare = [at for at, item in enumerate(actions) if isinstance(item, dict) and "edit" not in item][:32]
                resolved = self.call("codeAction/resolve", [actions[at] for at in bare])
                for at, item in zip(bare, resolved, strict=True):
                    if isinstance(item, dict):
                        actions[at] = item
        return results

    # Reading.

    def place(self, uri: Any, span: Any) -> Place | None:
        return self.session.texts.place(uri, span, self.session.encoding)

    def read_places(self, target: Target, uri: str, result: Any) -> _Found:
        del target, uri
        places, dropped = self._places(result)
        return _Found(sorted(places), dropped)

    def read_references(self, target: Target, uri: str, result: Any) -> _Found:
        del target, uri
        references, definition = result
        places, dropped = self._places(references)
        if isinstance(definition, ServerError):
            return _Found(sorted(places), dropped, "the definition itself may be among them")
        return _Found(sorted(places - self._places(definition)[0]), dropped)

    def _places(self, result: Any) -> tuple[set[Place], int]:
        found: set[Place] = set()
        dropped = 0
        for item in result if isinstance(result, list) else [result]:
            match item:
                case {"uri": uri, "range": span} | {"targetUri": uri, "targetSelectionRange": span}:
                    place = self.place(uri, span)
                case _:
                    place = None
            if place:
                found.add(place)
            else:
                dropped += item is not None
        return found, dropped

    def read_hover(self, target: Target, uri: str, result: Any) -> _Found:
        del uri
        match result:
            case {"contents": contents}:
                text = _markup(contents)[:MAX_TEXT]
            case _:
                text = ""
        if not text.strip():
            return _Found([], 0, f"{self.session.spec.id} knows nothing here")
        start, end = target.document.span(result.get("range"), self.session.encoding) or (-1, -1)
        hover: Hover = parse_hover(text, start, end)
        return _Found([hover])

    def read_outline(self, target: Target, uri: str, result: Any) -> _Found:
        found: list[Outline] = []
        dropped = 0
        waiting = [(item, 0, "") for item in reversed(_list(result))]
        while waiting and len(found) < MAX_ITEMS:
            item, depth, container = waiting.pop()
            match item:
                case {"name": str(name), "range": full, "selectionRange": selection}:
                    place, whole = self.place(uri, selection), target.document.span(full, self.session.encoding)
                    children = _list(item.get("children")) if depth < 64 else []
                    waiting += [(child, depth + 1, name) for child in reversed(children)]
                case {"name": str(name), "location": {"uri": where, "range": full}}:
                    place = self.place(where, full)
                    whole = (place.start, place.end) if place else None
                    container = _text(item, "containerName")
                case _:
                    name, place, whole = "", None, None
            if place and whole:
                kind, detail = _kind(item), _text(item, "detail")
                found.append(Outline(name[:500], kind, place, *whole, detail, container[:500], depth))
            else:
                dropped += 1
        return _Found(found, dropped)

    def read_workspace_symbols(self, target: Target, uri: str, result: Any) -> _Found:
        found = self.read_outline(target, uri, result)
        found.items.sort(key=lambda item: (item.place, item.name, item.kind))
        return found

    def read_calls(self, target: Target, uri: str, result: Any) -> _Found:
        del target, uri
        key = "from" if self.plane == "incoming_calls" else "to"
        rows: list[tuple[Any, Any, Any]] = []
        for asked, answer in result:
            match answer:
                case {"fromRanges": list(spans)} if isinstance(answer.get(key), dict):
                    # The calls stand in the caller: the one that is told, or the one that was asked about.
                    rows.append((answer[key], (answer[key] if key == "from" else asked).get("uri"), spans))
                case _:
                    rows.append((None, None, []))
        return self._items(rows)

    def read_types(self, target: Target, uri: str, result: Any) -> _Found:
        del target, uri
        return self._items([(item, None, []) for _, item in result])

    def _items(self, rows: list[tuple[Any, Any, Any]]) -> _Found:
        found: dict[tuple[Place, str], HierarchyItem] = {}
        dropped = 0
        for item, site_uri, spans in rows:
            match item:
                case {"name": str(name), "uri": uri, "selectionRange": selection}:
                    place = self.place(uri, selection)
                case _:
                    name, place = "", None
            if place is None:
                dropped += 1
                continue
            sites = [self.place(site_uri, span) for span in spans[:MAX_ITEMS]]
            dropped += sites.count(None)
            known = found.get((place, name))
            merged = {*(site for site in sites if site), *(known.sites if known else ())}
            found[place, name] = HierarchyItem(
                name[:500], _kind(item), place, _text(item, "detail"), tuple(sorted(merged))
            )
        return _Found([found[key] for key in sorted(found)], dropped)

    def read_tokens(self, target: Target, uri: str, result: Any) -> _Found:
        del uri
        server = self.session.capabilities.server.get("semanticTokensProvider")
        legend = server.get("legend") if isinstance(server, dict) else None
        data = result.get("data") if isinstance(result, dict) else None
        return decode_tokens(data, legend, target.document, self.session.encoding)

    def read_hints(self, target: Target, uri: str, result: Any) -> _Found:
        del uri
        found: list[Hint] = []
        dropped = 0
        for item in _list(result):
            match item:
                case {"position": position, "label": str() | list() as label}:
                    offset = target.document.offset(position, self.session.encoding)
                    parts = label if isinstance(label, list) else [label]
                    text = "".join(part if isinstance(part, str) else _text(part, "value") for part in parts)
                case _:
                    offset, text = None, ""
            if offset is None:
                dropped += 1
            else:
                kind = {1: "type", 2: "parameter"}.get(_int(item, "kind"), "")
                found.append(Hint(offset, text[:MAX_TEXT], kind))
        found.sort(key=lambda hint: (hint.offset, hint.label))
        return _Found(found, dropped)

    def read_diagnostics(self, target: Target, uri: str, result: Any) -> _Found:
        del target
        found: list[Diagnostic] = []
        dropped = 0
        for where, raw in _diagnostic_rows(result, uri):
            place = self.place(where, raw.get("range"))
            if place is None:
                dropped += 1
                continue
            related = [
                Related(at, _text(each, "message"))
                for each in _list(raw.get("relatedInformation"))[:20]
                if isinstance(each, dict)
                and isinstance(each.get("location"), dict)
                and (at := self.place(each["location"].get("uri"), each["location"].get("range")))
            ]
            tags = tuple(_TAGS[tag] for tag in _list(raw.get("tags")) if isinstance(tag, int) and tag in _TAGS)
            code = raw.get("code")
            code = code.get("value", "") if isinstance(code, dict) else "" if code is None else code
            found.append(
                Diagnostic(
                    place,
                    _SEVERITIES.get(_int(raw, "severity"), "error"),
                    _markup(raw.get("message"))[:MAX_TEXT],
                    str(code)[:200],
                    _text(raw, "source")[:100],
                    tags,
                    tuple(related),
                )
            )
        found.sort(key=lambda each: (each.place, each.severity, each.code, each.message))
        match result:
            case {"kind": "unchanged"}:
                return _Found(found, dropped, "the server told only that nothing changed")
            case _:
                return _Found(found, dropped)

    def read_actions(self, target: Target, uri: str, result: Any) -> _Found:
        del target, uri
        found: list[Action] = []
        for item in _list(result):
            match item:
                case {"title": str(title)}:
                    command = item.get("command")
                    command = command if isinstance(command, str) else _text(command, "command")
                    kind, disabled = _text(item, "kind"), _text(item.get("disabled"), "reason")
                    preferred = item.get("isPreferred") is True
                    found.append(
                        Action(title[:500], kind, preferred, disabled, _count_edits(item.get("edit")), command)
                    )
                case _:
                    continue
        found.sort(key=lambda action: (not action.preferred, action.kind, action.title))
        return _Found(found, len(_list(result)) - len(found))


_Reader = Callable[[_Asker, Target, str, Any], _Found]


def decode_tokens(data: Any, legend: Any, document: Document, encoding: str) -> _Found:
    """Five numbers a token, each place told from the one before; names are those of the server's legend."""
    if data is None:
        return _Found([])
    if not isinstance(data, list) or not isinstance(legend, dict):
        return _Found([], 0, "no legend for the tokens")
    kinds, names = _list(legend.get("tokenTypes")), _list(legend.get("tokenModifiers"))
    found: list[Token] = []
    dropped = line = character = 0
    for at in range(0, len(data) - 4, 5):
        numbers = data[at : at + 5]
        if not all(isinstance(number, int) and 0 <= number < 1 << 31 for number in numbers):
            return _Found(found, dropped + (len(data) - at) // 5, "the tokens end in what is none")
        down, right, length, kind, bits = numbers
        line, character = line + down, right if down else character + right
        start = document.offset({"line": line, "character": character}, encoding)
        end = document.offset({"line": line, "character": character + length}, encoding, end=True)
        if start is None or end is None or kind >= len(kinds):
            dropped += 1
            continue
        modifiers = tuple(str(name) for bit, name in enumerate(names[:32]) if bits >> bit & 1)
        found.append(Token(start, end, str(kinds[kind]), modifiers))
    return _Found(found, dropped)


def apply_token_edits(data: Sequence[int], edits: Any) -> list[int] | None:
    """The answer to `semanticTokens/full/delta` on the data before it; None where the edits do not fit."""
    result = list(data)
    rows: list[tuple[int, int, list[int]]] = []
    for edit in _list(edits):
        match edit:
            case {"start": int(start), "deleteCount": int(count)} if 0 <= start <= start + count <= len(result):
                rows.append((start, count, _list(edit.get("data"))))
            case _:
                return None
    for start, count, new in sorted(rows, key=lambda row: -row[0]):
        result[start : start + count] = new
    return result


def _diagnostic_rows(report: Any, uri: str) -> list[tuple[Any, dict[str, Any]]]:
    """Every shape a report has: of one document, with related ones, of the workspace, or as it is pushed."""
    found: list[tuple[Any, dict[str, Any]]] = []
    waiting: list[tuple[Any, Any]] = [(uri, report)]
    while waiting and len(found) <= MAX_ITEMS:
        where, each = waiting.pop()
        match each:
            case {"range": _, "message": _}:
                found.append((where, each))
            case dict():
                where = each.get("uri", where)
                waiting += [(where, item) for key in ("items", "diagnostics") for item in _list(each.get(key))]
                related = each.get("relatedDocuments")
                waiting += list(related.items()) if isinstance(related, dict) else []
            case list():
                waiting += [(where, item) for item in each]
            case _:
                continue
    return found


def _markup(contents: Any) -> str:
    match contents:
        case str():
            return contents
        case {"language": str(language), "value": str(value)}:
            return f"```{language}\n{value}\n```"
        case {"value": str(value)}:
            return value
        case list():
            return "\n\n".join(_markup(part) for part in contents[:50] if not isinstance(part, list))
        case _:
            return ""


def _count_edits(edit: Any) -> int:
    if not isinstance(edit, dict):
        return 0
    changes = edit.get("changes")
    count = sum(len(_list(each)) for each in changes.values()) if isinstance(changes, dict) else 0
    for each in _list(edit.get("documentChanges")):
        count += len(_list(each.get("edits"))) if isinstance(each, dict) and "edits" in each else 1
    return count


def _has_range(item: Any) -> bool:
    match item:
        case {"location": {"range": _}}:
            return True
        case _:
            return False


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(item: Any, key: str) -> str:
    value = item.get(key) if isinstance(item, dict) else None
    return value[:MAX_TEXT] if isinstance(value, str) else ""


def _int(item: Any, key: str) -> int:
    value = item.get(key)
    return value if isinstance(value, int) else 0


def _kind(item: Any) -> str:
    number = _int(item, "kind")
    return _SYMBOL_KINDS[number - 1] if 0 < number <= len(_SYMBOL_KINDS) else ""


_SYMBOL_KINDS = (
    "file", "module", "namespace", "package", "class", "method", "property", "field", "constructor", "enum",
    "interface", "function", "variable", "constant", "string", "number", "boolean", "array", "object", "key", "null",
    "enum_member", "struct", "event", "operator", "type_parameter",
)  # fmt: skip
_SEVERITIES = {1: "error", 2: "warning", 3: "info", 4: "hint"}
_TAGS = {1: "unnecessary", 2: "deprecated"}
