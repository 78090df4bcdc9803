"""Shell: functions, root-level and declared variables, aliases, sourced files, and commands as calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cq.model.facts import Argument
from cq.syntax.collect import DEFINED, NO_SITE
from cq.syntax.excerpt import clip
from cq.syntax.language import ARG_TEXT, CALLEE_TEXT, MAX_ARGS, Draft, Language
from cq.syntax.tree import (
    Captures,
    Node,
    child_at,
    children_of,
    end_of,
    field_of,
    fields_of,
    is_missing,
    kind_id_of,
    kind_of,
    start_of,
    text_of,
)

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

# Words that only steer the shell; everything else a script runs is a call.
_CONTROL = frozenset({"return", "break", "continue", "exit", "shift", ":"})
_FLAGS = {b"r": "readonly", b"x": "export", b"g": "global"}


class Shell(Language):
    def on_symbol(self, collector: Collector, kind: str, node: Node, captures: Captures) -> Draft | None:
        if is_missing(captures["name"][0]):
            return None
        draft = super().on_symbol(collector, kind, node, captures)
        if draft is not None and kind == "variable":
            draft.signature = clip(collector.text, draft.start, draft.end, 120)
            draft.kind = "constant" if draft.name.isupper() else "variable"
        return draft

    def on_declaration(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """`export A=1 B`, `readonly A=1`, `declare -rx A`, `local a`; `export -f f` says so of a function."""
        text, start, end = collector.text, start_of(node), end_of(node)
        word = text[start : start + 9].split()[0].decode("utf-8", "replace")
        modifiers = [word] if word in ("export", "readonly", "local") else []
        names = []
        for child in children_of(node):
            if kind_of(child) == "word":
                flag = text[start_of(child) : end_of(child)]
                modifiers += [_FLAGS[bytes((byte,))] for byte in flag if bytes((byte,)) in _FLAGS]
            elif kind_of(child) == "variable_assignment":
                name = field_of(child, "name")
                if name is not None and kind_of(name) == "variable_name" and start_of(name) < end_of(name):
                    names.append((child, name))
            elif kind_of(child) == "variable_name" and not is_missing(child):
                names.append((child, child))
        for child, name in names:
            span = (start, end) if len(names) == 1 else (start_of(child), end_of(child))
            draft = Draft(
                "variable", collector.slice(start_of(name), end_of(name)), *span, start_of(name), end_of(name),
                signature=clip(text, *span, 120), modifiers=tuple(dict.fromkeys(modifiers)),
            )  # fmt: skip
            if "readonly" in modifiers or draft.name.isupper():
                draft.kind = "constant"
            collector.symbols.append(draft)

    def on_call(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        text, callee = collector.text, captures["callee"][0]
        # `A=1 cmd x`: the assignments before the command are no part of it.
        start, end = start_of(callee), end_of(node)
        if start == end_of(callee):
            return
        word = child_at(callee, 0)
        name = collector.slice(start, end_of(callee)) if word is not None and kind_of(word) == "word" else ""
        if name in _CONTROL and name:
            return
        kind = "call"
        arguments = fields_of(node, "argument")
        if (name == "source" or name == ".") and arguments:
            kind = "import"
            module = clip(text, start_of(arguments[0]), end_of(arguments[0]), CALLEE_TEXT)
            collector.add_import("include", module.strip("\"'"), start, end, [])
        elif name == "alias":
            self._add_aliases(collector, node, arguments)
        kinds = self.argument_ids
        summaries = tuple(
            Argument(kinds.get(kind_id_of(arg), "other"), clip(text, start_of(arg), end_of(arg), ARG_TEXT))
            for arg in arguments[:MAX_ARGS]
        )
        collector.calls.append(
            (start, end, start if name else -1, kind, clip(text, start, end_of(callee), CALLEE_TEXT), name, "",
             summaries, len(arguments), (), *NO_SITE)
        )  # fmt: skip

    def _add_aliases(self, collector: Collector, node: Node, arguments: list[Node]) -> None:
        """`alias ll='ls -l'`"""
        for argument in arguments:
            start, end = start_of(argument), end_of(argument)
            name, equals, _ = collector.text[start : min(end, start + 128)].partition(b"=")
            if equals and name:
                span = (start_of(node), end_of(node)) if len(arguments) == 1 else (start, end)
                collector.symbols.append(
                    Draft("macro", name.decode("utf-8", "replace"), *span, start, start + len(name),
                          signature=clip(collector.text, *span, 120))
                )  # fmt: skip

    def finish(self, collector: Collector) -> None:
        """One variable per name and scope: the first; `export` and `readonly` of a later line are said of it."""
        # A name the parser only supposes is no reference.
        supposed = (start for start, end in zip(collector.ref_starts, collector.ref_ends, strict=True) if start == end)
        collector.marks.update(dict.fromkeys(supposed, DEFINED))
        functions = sorted((d.start, d.end) for d in collector.symbols if d.kind == "function")
        first: dict[tuple[int, str], Draft] = {}
        kept, stack, at = [], [(1 << 62, -1)], 0
        for draft in sorted(collector.symbols, key=lambda d: (d.name_start, d.start)):
            while at < len(functions) and functions[at][0] <= draft.name_start:
                stack.append((functions[at][1], functions[at][0]))
                at += 1
            while stack[-1][0] <= draft.name_start:
                stack.pop()
            if draft.kind in ("variable", "constant"):
                known = first.setdefault((stack[-1][1], draft.name), draft)
                if known is not draft:
                    known.modifiers = tuple(dict.fromkeys(known.modifiers + draft.modifiers))
                    continue
            kept.append(draft)
        collector.symbols = kept

    def finish_nested(self, collector: Collector) -> None:
        """A sourced file gives its root-level functions to its reader; variables leave only by `export`."""
        for draft in collector.symbols:
            draft.exported = "export" in draft.modifiers or (draft.kind in ("function", "macro") and draft.parent < 0)

    def chunk_kind(self, node: Node) -> str:
        name = field_of(node, "name") if kind_of(node) == "command" else None
        if name is not None and text_of(name) in (b"source", b".") and b"\n" not in (text_of(node) or b""):
            return "import"
        return super().chunk_kind(node)

    def is_doc_comment(self, comment: bytes) -> bool:
        return comment.startswith(b"#") and not comment.startswith((b"#!", b"# shellc"))

    def trim_signature(self, signature: str) -> str:
        return signature.rstrip().removesuffix("{").rstrip()
