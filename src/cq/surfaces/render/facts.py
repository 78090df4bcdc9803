"""The facts of one file: as rows for programs (ids instead of indices, lines and columns added), as text for people."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

from msgspec.structs import asdict

from cq.identity import Identity, breadcrumb, call_site_id, identify, snippet_hash
from cq.languages.facts import embedding_text
from cq.model.facts import FileFacts
from cq.model.location import LineTable
from cq.model.source import SourceFile
from cq.surfaces.render import one_line, render_block, render_heading, render_json, render_jsonl
from cq.syntax.chunks import full_source

Row = dict[str, Any]

SECTIONS = ("symbols", "calls", "imports", "exports", "references", "flows", "chunks", "segments", "problems")
FORMATS = ("md", "json", "jsonl", "plain")
SCHEMA_VERSION = 1
# What a page shows without being asked: every identifier and every assignment would bury the rest.
_PAGE = ("symbols", "calls", "imports", "exports", "chunks", "segments", "problems")
_PREVIEW = 40


def render_facts(source: SourceFile, facts: FileFacts, form: str, only: Collection[str] = ()) -> str:
    if form == "json":
        return render_json(describe_facts(source, facts, only or SECTIONS))
    if form == "jsonl":
        described = describe_facts(source, facts, only or SECTIONS)
        head = {key: value for key, value in described.items() if key not in SECTIONS}
        rows = [
            {"fact": section.removesuffix("s"), **row} for section in SECTIONS for row in described.get(section, ())
        ]
        return render_jsonl([{"fact": "file", **head}, *rows])
    described = describe_facts(source, facts, only or _PAGE, texts=False)
    if form == "plain":
        return "".join(f"{line}\n" for line in _plain_lines(described))
    return _render_page(described, facts, preview=not only)


def describe_facts(source: SourceFile, facts: FileFacts, sections: Collection[str], *, texts: bool = True) -> Row:
    """Everything as plain data: one list per section, documents embedded in the file after the file's own.

    A row names other rows by id; `segment_uid` tells which document it belongs to, null for the file itself.
    """
    lines = LineTable(source.text)
    documents = list(_documents(facts, identify(source.path, source.text, facts)))
    described: Row = {
        "schema_version": SCHEMA_VERSION,
        "path": source.path,
        "language": source.language,
        "encoding": source.encoding,
        "bytes": len(source.text),
        "lines": len(lines) - source.text.endswith(b"\n") if source.text else 0,
    }
    for section in SECTIONS:
        if section in sections:
            described[section] = [
                row for document, identity in documents
                for row in _ROWS[section](_Document(source, document, identity, lines, texts))
            ]  # fmt: skip
    if "problems" in described:
        decoding = [{"segment_uid": None, "code": p.code, "message": p.message, **_where(lines, p.start, p.end)}
                    for p in source.problems]  # fmt: skip
        described["problems"] = decoding + described["problems"]
    return described


def count_facts(facts: FileFacts) -> dict[str, int]:
    """How many there are of each, embedded documents included; the module chunk of a document is not counted."""
    counts = {
        "symbols": len(facts.symbols), "calls": len(facts.calls), "imports": len(facts.imports),
        "exports": len(facts.exports), "references": len(facts.references), "flows": len(facts.flows),
        "chunks": len(facts.chunks) - 1, "segments": len(facts.embedded), "problems": len(facts.problems),
    }  # fmt: skip
    for inner in facts.embedded:
        for section, count in count_facts(inner).items():
            counts[section] += count
    return counts


class _Document:
    """One document of the file with its names, and what the row makers share."""

    def __init__(self, source: SourceFile, facts: FileFacts, identity: Identity, lines: LineTable, texts: bool) -> None:
        self.source, self.facts, self.identity, self.lines, self.texts = source, facts, identity, lines, texts
        self.segment_uid = identity.segment_uid or None

    def place(self, start: int, end: int) -> Row:
        return {"segment_uid": self.segment_uid, **_where(self.lines, start, end)}

    def scope(self, index: int) -> Row:
        """Whose code it is: a definition, or the module chunk."""
        chunk = self.facts.symbols[index].chunk if index >= 0 else 0
        return {
            "scope": self.facts.symbols[index].qualified_name if index >= 0 else "",
            "scope_id": self.identity.symbol_ids[index] if index >= 0 else None,
            "chunk_uid": self.identity.chunk_uids[chunk],
        }

    def slice(self, start: int, end: int) -> str:
        return self.source.text[start:end].decode("utf-8", "replace")


def _documents(facts: FileFacts, identity: Identity) -> Iterator[tuple[FileFacts, Identity]]:
    yield facts, identity
    for inner, inner_identity in zip(facts.embedded, identity.embedded, strict=True):
        yield from _documents(inner, inner_identity)


def _where(lines: LineTable, start: int, end: int) -> Row:
    (start_line, start_col), (end_line, end_col) = lines.position(start), lines.position(end)
    return {
        "start": start, "end": end, "start_line": start_line, "start_col": start_col, "end_line": end_line,
        "end_col": end_col,
    }  # fmt: skip


def _symbol_rows(document: _Document) -> Iterator[Row]:
    identity = document.identity
    for symbol, symbol_id in zip(document.facts.symbols, identity.symbol_ids, strict=True):
        name_line, name_col = document.lines.position(symbol.name_start)
        yield {
            "symbol_id": symbol_id,
            "kind": symbol.kind,
            "kind_group": symbol.kind_group,
            "name": symbol.name,
            "qualified_name": symbol.qualified_name,
            "parent_id": identity.symbol_ids[symbol.parent] if symbol.parent >= 0 else None,
            "chunk_uid": identity.chunk_uids[symbol.chunk],
            "depth": symbol.depth,
            "signature": symbol.signature,
            "modifiers": symbol.modifiers,
            "decorators": symbol.decorators,
            "bases": symbol.bases,
            "doc": symbol.doc,
            "exported": symbol.exported,
            "name_start": symbol.name_start,
            "name_end": symbol.name_end,
            "name_line": name_line,
            "name_col": name_col,
            "body_start": symbol.body_start if symbol.body_start >= 0 else None,
            "body_end": symbol.body_end if symbol.body_start >= 0 else None,
            **document.place(symbol.start, symbol.end),
        }


def _call_rows(document: _Document) -> Iterator[Row]:
    for call in document.facts.calls:
        location = document.lines.location(document.source.path, call.start, call.end)
        yield {
            "call_site_id": call_site_id(location, call.callee),
            "kind": call.kind,
            "callee": call.callee,
            "name": call.name,
            "receiver": call.receiver,
            "args": [asdict(argument) for argument in call.args],
            "arg_count": call.arg_count,
            "keywords": call.keywords,
            "snippet_hash": snippet_hash(document.slice(call.start, call.end)),
            "name_start": call.name_start if call.name_start >= 0 else None,
            **document.scope(call.scope),
            **document.place(call.start, call.end),
        }


def _import_rows(document: _Document) -> Iterator[Row]:
    for item in document.facts.imports:
        yield {
            "kind": item.kind, "module": item.module, "level": item.level, "type_only": item.type_only,
            "bindings": [asdict(binding) for binding in item.bindings],
            **document.scope(item.scope), **document.place(item.start, item.end),
        }  # fmt: skip


def _export_rows(document: _Document) -> Iterator[Row]:
    for item in document.facts.exports:
        yield {
            "name": item.name, "exported": item.exported, "module": item.module, "type_only": item.type_only,
            **document.place(item.start, item.end),
        }  # fmt: skip


def _reference_rows(document: _Document) -> Iterator[Row]:
    for reference in document.facts.references:
        yield {
            "name": reference.name, "role": reference.role, **document.place(reference.start, reference.end),
        }  # fmt: skip


def _flow_rows(document: _Document) -> Iterator[Row]:
    for flow in document.facts.flows:
        yield {
            "kind": flow.kind, "target": flow.target, "value": flow.value, "value_kind": flow.value_kind,
            "value_start": flow.value_start if flow.value_start >= 0 else None,
            **document.scope(flow.scope), **document.place(flow.start, flow.end),
        }  # fmt: skip


def _chunk_rows(document: _Document) -> Iterator[Row]:
    facts, identity, text = document.facts, document.identity, document.source.text
    for index, chunk in enumerate(facts.chunks):
        symbol = facts.symbols[chunk.symbol] if chunk.symbol >= 0 else None
        # The module chunk stands beside the others and is not embedded.
        collapsed = embedding_text(text, facts, index) if index else ""
        statements = dict.fromkeys((facts.imports[number].start, facts.imports[number].end) for number in chunk.imports)
        row: Row = {
            "chunk_uid": identity.chunk_uids[index],
            "kind": chunk.kind,
            "kind_group": symbol.kind_group if symbol else None,
            "name": chunk.name,
            "qualified_name": symbol.qualified_name if symbol else "",
            "symbol_id": identity.symbol_ids[chunk.symbol] if symbol else None,
            "breadcrumb": breadcrumb(document.source.path, facts, index),
            "parent_chunk_uid": identity.chunk_uids[chunk.parent] if chunk.parent >= 0 else None,
            "child_chunk_uids": [identity.chunk_uids[child] for child in chunk.children],
            "depth": chunk.depth,
            "relevant_imports": [document.slice(*statement) for statement in statements],
            "identity": {
                "span_hash": chunk.span_hash, "pre_hash": chunk.pre_hash, "post_hash": chunk.post_hash,
                "collision_of": chunk.collision_of or None,
            },
            "embedding_chars": len(collapsed),
            **document.place(chunk.start, chunk.end),
        }  # fmt: skip
        if document.texts:
            row |= {"embedding_text": collapsed, "full_source": full_source(text, chunk)}
        yield row


def _segment_rows(document: _Document) -> Iterator[Row]:
    segment = document.facts.segment
    if segment is not None:
        yield {
            "virtual_path": document.identity.virtual_path, "kind": segment.kind, "language": segment.language,
            "ranges": segment.ranges, **document.place(segment.start, segment.end),
        }  # fmt: skip


def _problem_rows(document: _Document) -> Iterator[Row]:
    for problem in document.facts.problems:
        yield {
            "code": problem.code, "message": problem.message, **document.place(problem.start, problem.end),
        }  # fmt: skip


_ROWS: dict[str, Callable[[_Document], Iterator[Row]]] = {
    "symbols": _symbol_rows, "calls": _call_rows, "imports": _import_rows, "exports": _export_rows,
    "references": _reference_rows, "flows": _flow_rows, "chunks": _chunk_rows, "segments": _segment_rows,
    "problems": _problem_rows,
}  # fmt: skip


def _plain_lines(described: Row) -> Iterator[str]:
    for section in SECTIONS:
        for row in described.get(section, ()):
            if section == "chunks" and row["kind"] == "module":
                continue
            kind, text = _kind(row) or section.removesuffix("s"), _TEXTS[section](row)
            line, col = row["start_line"], row["start_col"]
            if section == "symbols":
                line, col, text = row["name_line"], row["name_col"], f"{row['qualified_name']} {text}"
            elif section in ("chunks", "segments", "problems"):
                kind = f"{section.removesuffix('s')} {kind}"
            yield one_line(f"{described['path']}:{line}:{col}: {kind} {text}").rstrip()


def _kind(row: Row) -> str:
    return row.get("kind") or row.get("code") or row.get("role") or ""


def _render_page(described: Row, facts: FileFacts, *, preview: bool) -> str:
    counts = count_facts(facts)
    counts["problems"] = max(counts["problems"], len(described.get("problems", ())))
    told = " · ".join(f"{count:,} {_noun(section, count)}" for section, count in counts.items() if count)
    parts = [
        render_heading(described["path"], 1),
        f"{described['language']} · {described['lines']:,} lines · {described['bytes']:,} bytes\n{told or 'no facts'}",
    ]
    for section in SECTIONS:
        rows = [row for row in described.get(section, ()) if not (section == "chunks" and row["kind"] == "module")]
        parameters = 0
        if section == "symbols" and preview:
            # They stand in the signatures already.
            shown = [row for row in rows if row["kind"] not in ("parameter", "type_parameter")]
            parameters = len(rows) - len(shown)
            rows = shown
        if not rows:
            continue
        shown = rows[:_PREVIEW] if preview and len(rows) > _PREVIEW + 5 else rows
        notes: list[str] = []
        if len(shown) < len(rows):
            notes.append(f"{len(shown)} of {len(rows)}; `--only {section}` shows all")
        if parameters:
            notes.append(f"{parameters} {'parameters' if parameters > 1 else 'parameter'} not listed")
        parts += [render_heading(f"{section.capitalize()} ({len(rows):,})"), render_block(_columns(section, shown))]
        if notes:
            parts.append("; ".join(notes))
    return "\n\n".join(parts) + "\n"


def _noun(section: str, count: int) -> str:
    return section.removesuffix("s") if count == 1 else section


def _columns(section: str, rows: list[Row]) -> list[str]:
    places, kinds = [_place(section, row) for row in rows], [_kind(row) for row in rows]
    wide, broad = max(map(len, places)), max(map(len, kinds))
    lines: list[str] = []
    for place, kind, row in zip(places, kinds, rows, strict=True):
        margin = f"{place:>{wide}}  " + (f"{kind:<{broad}}  " if broad else "") + "  " * row.get("depth", 0)
        lines.append((margin + one_line(_TEXTS[section](row))).rstrip())
    return lines


def _place(section: str, row: Row) -> str:
    if section in ("chunks", "segments"):
        return f"{row['start_line']}-{row['end_line'] - (row['end_col'] == 1 and row['end'] > row['start'])}"
    if section == "problems":
        return f"{row['start_line']}:{row['start_col']}"
    return str(row["name_line"] if section == "symbols" else row["start_line"])


def _symbol_text(row: Row) -> str:
    words = " ".join(word for word in row["modifiers"] if word not in row["signature"].split())
    return (row["signature"] or row["name"]) + (f"  [{words}]" if words else "")


def _call_text(row: Row) -> str:
    args = [(f"{arg['name']}=" if arg["name"] else "") + arg["text"] for arg in row["args"]]
    if row["arg_count"] + len(row["keywords"]) > len(args):
        args.append("…")
    return f"{row['callee']}({', '.join(args)})" + (f"  in {row['scope']}" if row["scope"] else "")


def _import_text(row: Row) -> str:
    module, names = "." * row["level"] + row["module"], list[str]()
    for binding in row["bindings"]:
        if binding["imported"] != "*":
            same = binding["imported"] == binding["local"]
            names.append(binding["local"] if same else f"{binding['imported']} as {binding['local']}")
        elif binding["local"] != module.partition(".")[0]:
            names.append(f"* as {binding['local']}")
    return module + (f": {', '.join(names)}" if names else "")


def _export_text(row: Row) -> str:
    text = row["name"] if row["name"] == row["exported"] else f"{row['name']} as {row['exported']}"
    return text + (f" from {row['module']}" if row["module"] else "")


def _chunk_text(row: Row) -> str:
    size = row["end"] - row["start"]
    return f"{row['name']}  {size:,} bytes" + (
        f", {row['embedding_chars']:,} collapsed" if row["child_chunk_uids"] else ""
    )


_TEXTS: dict[str, Callable[[Row], str]] = {
    "symbols": _symbol_text,
    "calls": _call_text,
    "imports": _import_text,
    "exports": _export_text,
    "references": lambda row: row["name"],
    "flows": lambda row: f"{row['target']} ← {row['value'] or row['value_kind']}" if row["target"] else row["value"],
    "chunks": _chunk_text,
    "segments": lambda row: f"{row['language']}  {row['virtual_path']}",
    "problems": lambda row: row["message"],
}
