"""What a document takes from others and gives to them: `import` and `export`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cq.languages.ecmascript.definitions import with_semicolon
from cq.languages.ecmascript.scopes import WrittenClass
from cq.languages.ecmascript.statements import StatementReader
from cq.languages.ecmascript.values import WORD, read_dotted
from cq.model.code import Imported
from cq.syntax.collect import DEFINED
from cq.syntax.language import ROLE_NUMBER, Draft
from cq.syntax.tree import (
    Captures,
    Node,
    all_children_of,
    child_at,
    children_of,
    end_of,
    field_of,
    is_error,
    kind_of,
    start_of,
)

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

_IMPORT = ROLE_NUMBER["import"]
_QUOTES = "\"'"
_EITHER = rb"(?:" + WORD + rb"|\"[^\"]*\"|'[^']*')"
# `type` is a mark in `{type A}` and a name in `{type as A}`.
_SPECIFIER = re.compile(
    rb"(?<![\w$\x80-\xff])(?:(?P<type>type)\s+(?!as\s+[^\s,}]+\s*(?:[,}]|$)))?(?P<name>" + _EITHER + rb")"
    rb"(?:\s+as\s+(?P<alias>" + _EITHER + rb"))?\s*(?:[,}]|$)"
)  # fmt: skip
_EXPORTED_TYPES = re.compile(rb"export\s+type\s*\*")
# And strings, which may hold what looks like one.
_COMMENT = re.compile(rb"/\*.*?(?:\*/|\Z)|//[^\n]*|\"[^\"\n]*\"|'[^'\n]*'", re.DOTALL)
Specifier = tuple[str, str, int, int, bool]  # outer name, inner name, span of the outer name, for types alone


class ImportReader(StatementReader):
    def on_import(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        start, end = start_of(node), end_of(node)
        collector.spans.append((start, end, _IMPORT))
        clause = next((child for child in children_of(node) if kind_of(child) in _CLAUSES), None)
        is_required = clause is not None and kind_of(clause) == "import_require_clause"
        source = field_of(clause if is_required and clause is not None else node, "source")
        if source is None:
            return
        module, is_type = _unquote(collector, source), _has_word(node, "type")
        bindings: list[Specifier] = []
        style = "side_effect" if clause is None else "from"
        for part in children_of(clause) if clause is not None else ():
            match kind_of(part):
                case "identifier":
                    bindings.append((*_read_name(collector, part, "*" if is_required else "default"), is_type))
                case "namespace_import" if (name := child_at(part, 0)) is not None:
                    style = "namespace"
                    bindings.append((*_read_name(collector, name, "*"), is_type))
                case "named_imports":
                    bindings += self._read_specifiers(collector, part, is_type)
                case _:
                    pass
        for local, imported, *_ in bindings:
            self.bind(collector, start, end, local, Imported(0, module, "=" if is_required else imported))
        style = "require" if is_required else style
        collector.add_import(style, module, start, end, bindings, type_only=is_type)

    def _read_specifiers(self, collector: Collector, clause: Node, is_type: bool) -> list[Specifier]:
        """`{a, b as c, type D}`, read off the text: the grammars do not know every word that may be a name here."""
        start = start_of(clause)
        text = _COMMENT.sub(_blank, collector.text[start : end_of(clause)])
        found: list[Specifier] = []
        for match in _SPECIFIER.finditer(text, 1):
            outer = "alias" if match["alias"] else "name"
            name, inner = (match[group].decode("utf-8", "replace").strip(_QUOTES) for group in (outer, "name"))
            first, last = start + match.start(outer), start + match.end(outer)
            found.append((name, inner, first, last, is_type or match["type"] is not None))
        return found

    def on_export(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        start, end = start_of(node), end_of(node)
        declaration, value, source = (field_of(node, name) for name in ("declaration", "value", "source"))
        if declaration is not None:
            collector.decorated[start_of(declaration)] = start
            return
        if value is not None:
            self._export_default(collector, start, end, value)
            return
        # The grammar does not know `export type *`.
        is_type = _has_word(node, "type") or _EXPORTED_TYPES.match(collector.text, start) is not None
        module = "" if source is None else _unquote(collector, source)
        if source is not None:
            collector.spans.append((start, end, _IMPORT))
            collector.add_import("reexport", module, start, end, [], type_only=is_type)
        inner = child_at(node, 0)
        if _has_word(node, "="):
            if inner is not None:
                self.bind(collector, start, end, "export =", self.value(collector, inner))
            name = "" if inner is None else read_dotted(collector, inner)
            collector.exports.append((start, name, "export=", end, "", False))
        elif inner is not None and kind_of(inner) == "export_clause":
            for exported, name, first, last, only in self._read_specifiers(collector, inner, is_type):
                if exported != name:
                    collector.marks[first] = DEFINED
                collector.exports.append((first, name, exported, last, module, only))
        elif source is not None:
            name = child_at(inner, 0) if inner is not None and kind_of(inner) == "namespace_export" else None
            exported = "*" if name is None else _unquote(collector, name)
            collector.exports.append((start, "*", exported, end, module, is_type))

    def _export_default(self, collector: Collector, start: int, end: int, value: Node) -> None:
        """`export default …` of an expression; a function, class or object without a name is called `default`."""
        at = collector.text.find(b"default", start, start_of(value))
        draft = Draft("variable", "default", start, end, at, at + 7, head=start, exported=True,
                      modifiers=("exported", "default"))  # fmt: skip
        if at >= 0 and self.bind_value(collector, draft, value, "function"):
            draft.owner = -1
            collector.symbols.append(draft)
            collector.exports.append((at, "default", "default", at + 7, "", False))
            if draft.scope_start < 0:
                self.bind(collector, start, end, "default", self.value(collector, value))
            self.notes(collector).bound.add(draft.body_start)
            return
        self.bind(collector, start, end, "export default", self.value(collector, value))
        while self.shape(value) == "wrapped" and (inner := child_at(value, 0)) is not None:
            value = inner
        collector.exports.append((start, read_dotted(collector, value) or "default", "default", end, "", False))

    def on_ambient(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """`declare …`; the body of `declare global` is a bare block."""
        start = start_of(node)
        for inner in children_of(node):
            first, last = start_of(inner), end_of(inner)
            at = collector.text.find(b"global", start, first) if kind_of(inner) == "statement_block" else -1
            if at >= 0:
                self.notes(collector).classes[first] = WrittenClass("namespace")
                end = with_semicolon(collector.text, end_of(node))
                collector.symbols.append(
                    Draft("namespace", "global", start, end, at, at + 6, first, last, start, first, "declare global",
                          ("declare",))
                )  # fmt: skip
            elif not is_error(inner) and kind_of(inner) != "statement_block":
                collector.decorated[first] = start


def _has_word(node: Node, word: str) -> bool:
    """Whether a word or sign stands before what the node is about: `export type {A}`."""
    return any(kind_of(child) == word for child in all_children_of(node)[:2])


def _unquote(collector: Collector, node: Node) -> str:
    return collector.write(node).strip(_QUOTES)


def _read_name(collector: Collector, node: Node, imported: str) -> tuple[str, str, int, int]:
    return _unquote(collector, node), imported, start_of(node), end_of(node)


_CLAUSES = ("import_clause", "import_require_clause")


def _blank(comment: re.Match[bytes]) -> bytes:
    return b" " * len(comment[0]) if comment[0][:1] == b"/" else comment[0]
