"""Lua: functions wherever they are given a name, root-level variables, module tables, `require`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cq.syntax.collect import DEFINED
from cq.syntax.excerpt import clip
from cq.syntax.language import ROLE_NUMBER, Draft, Language
from cq.syntax.tree import (
    Captures,
    Node,
    child_at,
    child_count_of,
    children_of,
    end_of,
    field_of,
    is_missing,
    kind_of,
    start_of,
    text_of,
)

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

_IMPORT = ROLE_NUMBER["import"]
_DOTTED = re.compile(r"[\w.:]+")
_LOCAL = re.compile(rb"\blocal\s+$")
_REQUIRE = re.compile(rb"(?:local\s+\w+\s*(?:<\w+>\s*)?=\s*)?require\s*[(\"'][^)\n]*\)?\s*;?\Z")
_BOUND = re.compile(rb"(\w+)\s*(?:<\w+>\s*)?=\s*$")


class Lua(Language):
    def on_symbol(self, collector: Collector, kind: str, node: Node, captures: Captures) -> Draft | None:
        name, value = captures["name"][0], captures.get("value")
        full, name_start, name_end = _read_name(collector, name)
        if not full:
            return None
        text, start, end = collector.text, start_of(node), end_of(node)
        local = text.startswith(b"local", start)
        if not local and (before := _LOCAL.search(text, max(0, start - 32), start)):
            # The assignment of `local f = function …` is inside the declaration.
            start, local = before.start(), True
        if kind == "variable" and "." in full:
            kind = "field"
        draft = Draft(kind, full, start, end, name_start, name_end, modifiers=("local",) if local else ())
        if kind == "function":
            self._set_function(collector, draft, value[0] if value else node)
            if kind_of(name) == "method_index_expression":
                draft.kind = "method"
        else:
            table = value[0] if value else self._value_of(node)
            if table is not None and kind_of(table) == "table_constructor":
                draft.body_start, draft.body_end = start_of(table), end_of(table)
                draft.signature = self.trim_signature(collector.fold(start, draft.body_start))
            else:
                draft.signature = clip(text, start, end, 120)
        collector.symbols.append(draft)
        return draft

    def _set_function(self, collector: Collector, draft: Draft, function: Node) -> None:
        body, parameters = field_of(function, "body"), field_of(function, "parameters")
        end = end_of(function) - 3
        draft.body_start, draft.body_end = (start_of(body), end_of(body)) if body else (end, end)
        draft.scope_start = draft.start
        draft.signature = collector.fold(draft.start, end_of(parameters) if parameters else draft.body_start)
        for child in children_of(parameters) if parameters else ():
            if kind_of(child) == "identifier" and not is_missing(child):
                collector.symbols.append(
                    Draft("parameter", collector.slice(start_of(child), end_of(child)), start_of(child),
                          end_of(child), start_of(child), end_of(child),
                          signature=collector.slice(start_of(child), end_of(child)))
                )  # fmt: skip

    def _value_of(self, node: Node) -> Node | None:
        """The value of `local x = v` or `x = v`; None where there are several or none."""
        statement = child_at(node, 0) if kind_of(node) == "variable_declaration" else node
        if statement is None or kind_of(statement) != "assignment_statement" or child_count_of(statement) != 2:
            return None
        values = child_at(statement, 1)
        return child_at(values, 0) if values is not None and child_count_of(values) == 1 else None

    def on_returned(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        collector.remarks.append((start_of(node), collector.slice(start_of(node), end_of(node)), "returned"))

    def on_call(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        text, callee, args = collector.text, captures["callee"][0], captures["args"][0]
        start, end = start_of(node), end_of(node)
        required = end_of(callee) - start == 7 and text.startswith(b"require", start)
        collector.add_call(self, "import" if required else "call", start, end, callee, args)
        if required:
            self._require(collector, start, end, args)

    def _require(self, collector: Collector, start: int, end: int, args: Node) -> None:
        string = child_at(args, 0)
        content = field_of(string, "content") if string is not None and kind_of(string) == "string" else None
        if content is None:
            return
        bindings = []
        bound = _BOUND.search(collector.text, max(0, start - 128), start)
        # `require("x").y` binds a part of the module, not the module.
        if bound and collector.text[end : end + 1] not in (b".", b":", b"[", b"("):
            name = bound[1].decode("utf-8", "replace")
            bindings.append((name, "*", bound.start(1), bound.end(1), False))
            collector.marks[bound.start(1)] = _IMPORT
            before = _LOCAL.search(collector.text, max(0, bound.start() - 32), bound.start())
            start = before.start() if before else bound.start()
        module = collector.slice(start_of(content), end_of(content))
        collector.add_import("require", module, start, end, bindings)

    def finish(self, collector: Collector) -> None:
        """A name is defined once at root: by its function, else by its first assignment, and not by `require`."""
        # A name the parser only supposes is no reference.
        supposed = (start for start, end in zip(collector.ref_starts, collector.ref_ends, strict=True) if start == end)
        collector.marks.update(dict.fromkeys(supposed, DEFINED))
        functions = {draft.name_start for draft in collector.symbols if draft.kind in ("function", "method")}
        imported = {binding[2] for item in collector.imports for binding in item[4]}
        seen: set[str] = set()
        kept = []
        for draft in sorted(collector.symbols, key=lambda d: d.name_start):
            at = draft.name_start
            if draft.kind == "variable" or (draft.kind == "field" and "." in draft.name):
                if at in functions or at in imported or draft.name in seen:
                    continue
                seen.add(draft.name)
            kept.append(draft)
        collector.symbols = kept

    def finish_nested(self, collector: Collector) -> None:
        drafts = collector.symbols
        parents = {draft.parent for draft in drafts}
        returned = {name for _, name, _ in collector.remarks}
        hidden = {draft.name for draft in drafts if draft.parent < 0 and "local" in draft.modifiers} - returned
        for index, draft in enumerate(drafts):
            if draft.parent < 0:
                draft.exported = draft.qualified_name.partition(".")[0] not in hidden
            if draft.kind == "field" and index not in parents and "." not in draft.name:
                # A table of plain values is data of the table that holds it.
                draft.body_start = draft.body_end = -1
            draft.name = collector.slice(draft.name_start, draft.name_end)

    def chunk_kind(self, node: Node) -> str:
        kind = super().chunk_kind(node)
        return "import" if kind != "comment" and _REQUIRE.match(text_of(node) or b"") else kind

    def clean_doc(self, comment: str) -> str:
        if comment.startswith("--["):
            comment = re.sub(r"^--\[=*\[|\]=*\]$", "", comment.strip())
            return "\n".join(line.strip() for line in comment.splitlines()).strip()
        return super().clean_doc(comment)


def _read_name(collector: Collector, node: Node) -> tuple[str, int, int]:
    """The dotted name and where its last part stands: `M.f`, `M:f`, `M["f"]`, `["f"]`; "" for no fixed name."""
    last = node
    if kind_of(node) in ("dot_index_expression", "bracket_index_expression"):
        last = field_of(node, "field") or node
    elif kind_of(node) == "method_index_expression":
        last = field_of(node, "method") or node
    start, end = start_of(last), end_of(last)
    if kind_of(last) == "string":
        start, end = start + 1, end - 1
    elif kind_of(last) != "identifier":
        return "", start, end
    name = collector.slice(start, end)
    if not name:
        return "", start, end
    if last is node:
        return name, start, end
    table = field_of(node, "table")
    prefix = "" if table is None else collector.slice(start_of(table), end_of(table))
    return (f"{prefix}.{name}".replace(":", ".") if _DOTTED.fullmatch(prefix) else ""), start, end
