"""What a language server sends, as our structs. Taken as any JSON: what has not the expected shape is left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from cq.model.provider import (
    Action,
    Diagnostic,
    Expansion,
    HierarchyItem,
    Hint,
    Outline,
    Place,
    Related,
    Runnable,
    Signature,
    Token,
)
from cq.providers.documents import Document, Texts
from cq.providers.hover import parse_hover
from cq.providers.rpc import ServerError

MAX_ITEMS = 20_000
MAX_TEXT = 16 * 1024


class Target(NamedTuple):
    """What is asked about: a place in a document, a span of it, or for symbols of the workspace a `query`."""

    document: Document
    offset: int = 0
    end: int = -1  # -1: the whole document, where a span is meant
    query: str = ""


class Found(NamedTuple):
    """`partial` says why there may be more."""

    items: list[Any]
    dropped: int = 0
    partial: str = ""


class Reader:
    """The answers of one server. Every method takes what was asked about, under which URI, and what came back."""

    def __init__(self, texts: Texts, encoding: str, legend: Any = None) -> None:
        self.texts, self.encoding, self.legend = texts, encoding, legend

    def places(self, target: Target, uri: str, result: Any) -> Found:
        del target, uri
        places, dropped = self._places(result)
        return Found(sorted(places), dropped)

    def references(self, target: Target, uri: str, result: Any) -> Found:
        del target, uri
        references, definition = result
        places, dropped = self._places(references)
        if isinstance(definition, ServerError):
            return Found(sorted(places), dropped, "the definition itself may be among them")
        return Found(sorted(places - self._places(definition)[0]), dropped)

    def _place(self, uri: Any, span: Any, *, name: bool = False) -> Place | None:
        return self.texts.place(uri, span, self.encoding, name=name)

    def _places(self, result: Any) -> tuple[set[Place], int]:
        found: set[Place] = set()
        dropped = 0
        for item in result if isinstance(result, list) else [result]:
            match item:
                case {"uri": uri, "range": span} | {"targetUri": uri, "targetSelectionRange": span}:
                    place = self._place(uri, span, name=True)
                case _:
                    place = None
            if place:
                found.add(place)
            else:
                dropped += item is not None
        return found, dropped

    def hover(self, target: Target, uri: str, result: Any) -> Found:
        del uri
        match result:
            case {"contents": contents}:
                text = _markup(contents)[:MAX_TEXT]
            case _:
                text = ""
        if not text.strip():
            return Found([])
        start, end = target.document.span(result.get("range"), self.encoding) or (-1, -1)
        return Found([parse_hover(text, start, end)])

    def outline(self, target: Target, uri: str, result: Any) -> Found:
        found: list[Outline] = []
        dropped = 0
        waiting = [(item, 0, "") for item in reversed(as_list(result))]
        while waiting and len(found) < MAX_ITEMS:
            item, depth, container = waiting.pop()
            match item:
                case {"name": str(name), "range": full, "selectionRange": selection}:
                    place, whole = self._place(uri, selection), target.document.span(full, self.encoding)
                    children = as_list(item.get("children")) if depth < 64 else []
                    waiting += [(child, depth + 1, name) for child in reversed(children)]
                case {"name": str(name), "location": {"uri": where, "range": full}}:
                    place = self._place(where, full)
                    whole = (place.start, place.end) if place else None
                    container = _text(item, "containerName")
                case _:
                    name, place, whole = "", None, None
            if place and whole:
                kind, detail = _kind(item), _text(item, "detail")
                found.append(Outline(name[:500], kind, place, *whole, detail, container[:500], depth))
            else:
                dropped += 1
        return Found(found, dropped)

    def workspace_symbols(self, target: Target, uri: str, result: Any) -> Found:
        found = self.outline(target, uri, result)
        found.items.sort(key=lambda item: (item.place, item.name, item.kind))
        return found

    def incoming_calls(self, target: Target, uri: str, result: Any) -> Found:
        del target, uri
        return self._calls("from", result)

    def outgoing_calls(self, target: Target, uri: str, result: Any) -> Found:
        del target, uri
        return self._calls("to", result)

    def _calls(self, key: str, result: Any) -> Found:
        rows: list[tuple[Any, Any, Any]] = []
        for asked, answer in result:
            match answer:
                case {"fromRanges": list(spans)} if isinstance(answer.get(key), dict):
                    # The calls stand in the caller: the one that is told, or the one that was asked about.
                    rows.append((answer[key], (answer[key] if key == "from" else asked).get("uri"), spans))
                case _:
                    rows.append((None, None, []))
        return self._items(rows)

    def types(self, target: Target, uri: str, result: Any) -> Found:
        del target, uri
        return self._items([(item, None, []) for _, item in result])

    def _items(self, rows: list[tuple[Any, Any, Any]]) -> Found:
        found: dict[tuple[Place, str], HierarchyItem] = {}
        dropped = 0
        for item, site_uri, spans in rows:
            match item:
                case {"name": str(name), "uri": uri, "selectionRange": selection}:
                    place = self._place(uri, selection)
                case _:
                    name, place = "", None
            if place is None:
                dropped += 1
                continue
            sites = [self._place(site_uri, span) for span in spans[:MAX_ITEMS]]
            dropped += sites.count(None)
            known = found.get((place, name))
            merged = {*(site for site in sites if site), *(known.sites if known else ())}
            found[place, name] = HierarchyItem(
                name[:500], _kind(item), place, _text(item, "detail"), tuple(sorted(merged))
            )
        return Found([found[key] for key in sorted(found)], dropped)

    def tokens(self, target: Target, uri: str, result: Any) -> Found:
        del uri
        data = result.get("data") if isinstance(result, dict) else None
        return decode_tokens(data, self.legend, target.document, self.encoding)

    def hints(self, target: Target, uri: str, result: Any) -> Found:
        del uri
        found: list[Hint] = []
        dropped = 0
        for item in as_list(result):
            match item:
                case {"position": position, "label": str() | list() as label}:
                    offset = target.document.offset(position, self.encoding)
                    parts = label if isinstance(label, list) else [label]
                    text = "".join(part if isinstance(part, str) else _text(part, "value") for part in parts)
                case _:
                    offset, text = None, ""
            if offset is None:
                dropped += 1
            else:
                kind = {1: "type", 2: "parameter"}.get(_int(item, "kind"), "")
                found.append(Hint(offset, text[:MAX_TEXT], kind, _markup(item.get("tooltip"))[:MAX_TEXT]))
        found.sort(key=lambda hint: (hint.offset, hint.label))
        return Found(found, dropped)

    def signatures(self, target: Target, uri: str, result: Any) -> Found:
        del target, uri
        whole = result if isinstance(result, dict) else {}
        found: list[Signature] = []
        chosen = _int(whole, "activeSignature")
        for number, item in enumerate(as_list(whole.get("signatures"))[:MAX_ITEMS]):
            match item:
                case {"label": str(label)}:
                    active = item.get("activeParameter", whole.get("activeParameter"))
                    given = as_list(item.get("parameters"))
                    names = tuple(_cut_label(label, each) for each in given[:200] if isinstance(each, dict))
                    active = active if isinstance(active, int) and 0 <= active < len(names) else -1
                    doc = _markup(item.get("documentation"))[:MAX_TEXT]
                    found.append(Signature(label[:MAX_TEXT], names, active, doc, number == max(chosen, 0)))
                case _:
                    continue
        return Found(found, len(as_list(whole.get("signatures"))) - len(found))

    def expansion(self, target: Target, uri: str, result: Any) -> Found:
        del target, uri
        match result:
            case {"name": str(name), "expansion": str(text)}:
                return Found([Expansion(name[:500], text[:MAX_TEXT])])
            case _:
                return Found([], int(result is not None))

    def runnables(self, target: Target, uri: str, result: Any) -> Found:
        del target, uri
        found: list[Runnable] = []
        for item in as_list(result):
            match item:
                case {"label": str(label), "kind": str(kind)}:
                    match item.get("location"):
                        case {"targetUri": where, "targetSelectionRange": span}:
                            place = self._place(where, span)
                        case _:
                            place = None
                    args = item.get("args")
                    keys = ("cargoArgs", "executableArgs") if isinstance(args, dict) else ()
                    words = [str(word)[:500] for key in keys for word in as_list(args.get(key))[:100]]
                    found.append(Runnable(label[:500], kind, place, tuple(words)))
                case _:
                    continue
        return Found(found, len(as_list(result)) - len(found))

    def diagnostics(self, target: Target, uri: str, result: Any) -> Found:
        del target
        found: list[Diagnostic] = []
        dropped = 0
        for where, raw in diagnostic_rows(result, uri):
            place = self._place(where, raw.get("range"))
            if place is None:
                dropped += 1
                continue
            related = [
                Related(at, _text(each, "message"))
                for each in as_list(raw.get("relatedInformation"))[:20]
                if isinstance(each, dict)
                and isinstance(each.get("location"), dict)
                and (at := self._place(each["location"].get("uri"), each["location"].get("range")))
            ]
            tags = tuple(_TAGS[tag] for tag in as_list(raw.get("tags")) if isinstance(tag, int) and tag in _TAGS)
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
                return Found(found, dropped, "the server told only that nothing changed")
            case _:
                return Found(found, dropped)

    def actions(self, target: Target, uri: str, result: Any) -> Found:
        del target, uri
        found: list[Action] = []
        for item in as_list(result):
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
        return Found(found, len(as_list(result)) - len(found))


def _cut_label(label: str, parameter: dict[str, Any]) -> str:
    """A parameter is named by itself or by where it stands in the label."""
    match parameter.get("label"):
        case str(name):
            return name[:500]
        case [int(start), int(end)]:
            return label[max(start, 0) : max(end, 0)][:500]
        case _:
            return ""


def decode_tokens(data: Any, legend: Any, document: Document, encoding: str) -> Found:
    """Five numbers a token, each place told from the one before; names are those of the server's legend."""
    if data is None:
        return Found([])
    if not isinstance(data, list) or not isinstance(legend, dict):
        return Found([], 0, "no legend for the tokens")
    kinds, names = as_list(legend.get("tokenTypes")), as_list(legend.get("tokenModifiers"))
    found: list[Token] = []
    dropped = line = character = 0
    for at in range(0, len(data) - 4, 5):
        numbers = data[at : at + 5]
        if not all(isinstance(number, int) and 0 <= number < 1 << 31 for number in numbers):
            return Found(found, dropped + (len(data) - at) // 5, "the tokens end in what is none")
        down, right, length, kind, bits = numbers
        line, character = line + down, right if down else character + right
        start = document.offset({"line": line, "character": character}, encoding)
        end = document.offset({"line": line, "character": character + length}, encoding, end=True)
        if start is None or end is None or kind >= len(kinds):
            dropped += 1
            continue
        modifiers = tuple(str(name) for bit, name in enumerate(names[:32]) if bits >> bit & 1)
        found.append(Token(start, end, str(kinds[kind]), modifiers))
    return Found(found, dropped)


def apply_token_edits(data: Sequence[int], answer: Any) -> Any:
    """The answer to `semanticTokens/full/delta` as one with all the data; None where its edits do not fit."""
    if not isinstance(answer, dict) or "edits" not in answer:
        return answer if isinstance(answer, dict) and "data" in answer else None
    edits: list[tuple[int, int, list[int]]] = []
    for edit in as_list(answer["edits"]):
        match edit:
            case {"start": int(start), "deleteCount": int(count)} if 0 <= start <= start + count <= len(data):
                edits.append((start, count, as_list(edit.get("data"))))
            case _:
                return None
    result = list(data)
    for start, count, new in sorted(edits, key=lambda edit: -edit[0]):
        result[start : start + count] = new
    return {**answer, "data": result}


def diagnostic_rows(report: Any, uri: str) -> list[tuple[Any, dict[str, Any]]]:
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
                waiting += [(where, item) for key in ("items", "diagnostics") for item in as_list(each.get(key))]
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
    count = sum(len(as_list(each)) for each in changes.values()) if isinstance(changes, dict) else 0
    for each in as_list(edit.get("documentChanges")):
        count += len(as_list(each.get("edits"))) if isinstance(each, dict) and "edits" in each else 1
    return count


def has_range(item: Any) -> bool:
    match item:
        case {"location": {"range": _}}:
            return True
        case _:
            return False


def as_list(value: Any) -> list[Any]:
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
