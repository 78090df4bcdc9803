"""Haskell: functions with their signature and all equations, types, classes, instances, imports, applications."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cq.model.facts import Argument
from cq.syntax.collect import DEFINED, NO_SITE
from cq.syntax.excerpt import clip
from cq.syntax.language import ARG_TEXT, MAX_ARGS, ROLE_NUMBER, Draft, Language
from cq.syntax.tree import (
    Captures,
    Node,
    all_children_of,
    child_at,
    child_count_of,
    children_of,
    end_of,
    field_of,
    kind_id_of,
    kind_of,
    start_of,
)

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

# What holds definitions or stands alone: only there a binding is one of the module's, not local to a function.
_PLACES = frozenset({"declarations", "class_declarations", "instance_declarations", "foreign_import"})
_BODIES = ("type", "trait", "impl")


class Haskell(Language):
    def on_symbol(self, collector: Collector, kind: str, node: Node, captures: Captures) -> Draft | None:
        name, start, end = captures["name"][0], start_of(node), end_of(node)
        if kind in ("function", "signature"):
            around = collector.ancestors.holder(node)
            if around is None or kind_of(around) not in _PLACES:
                return None  # of a `where` or `let`
        draft = Draft(
            kind,
            collector.slice(start_of(name), end_of(name)).strip("()` "),
            start,
            end,
            start_of(name),
            end_of(name),
        )
        inner = field_of(node, "match") or field_of(node, "declarations")
        if kind in _BODIES or kind == "function":
            draft.body_start = start_of(inner) if inner is not None else draft.name_end
            draft.body_end, draft.scope_start = end, start
            head = draft.body_start if inner is not None else end
            draft.signature = collector.fold(start, head)[:200].rstrip(" =|").removesuffix("where").rstrip()
        else:
            draft.signature = clip(collector.text, start, end, 200)
        collector.symbols.append(draft)
        return draft

    def on_import(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        module, names, bindings = captures["module"][0], field_of(node, "names"), []
        for item in children_of(names) if names is not None else ():
            inner = child_at(item, 0) if kind_of(item) == "import_name" and child_count_of(item) else None
            if inner is not None:
                name = collector.slice(start_of(inner), end_of(inner))
                bindings.append((name, name, start_of(inner), end_of(inner), False))
        collector.add_import(
            "import", collector.slice(start_of(module), end_of(module)), start_of(node), end_of(node), bindings
        )

    def on_call(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """`f a b` applies f to a, and what that gives to b: one call with two arguments. `f $ a` is one too."""
        arguments, whole = [field_of(node, "argument") or field_of(node, "right_operand")], node
        for around in collector.ancestors.above(node) if kind_of(node) == "apply" else ():
            if kind_of(around) != "apply" or field_of(around, "function") != whole:
                break
            arguments.append(field_of(around, "argument"))
            whole = around
        raw, name, receiver, name_start = collector.split_callee(self, captures["callee"][0])
        if name_start >= 0:
            collector.marks[name_start] = ROLE_NUMBER["call"]
        kinds, given = self.argument_ids, [argument for argument in arguments if argument is not None]
        summary = tuple(
            Argument(self._argument_kind(item, kinds), clip(collector.text, start_of(item), end_of(item), ARG_TEXT))
            for item in given[:MAX_ARGS]
        )
        collector.calls.append(
            (
                start_of(whole),
                end_of(whole),
                name_start,
                "call",
                raw,
                name,
                receiver,
                summary,
                len(given),
                (),
                *NO_SITE,
            )
        )

    def _argument_kind(self, node: Node, kinds: dict[int, str]) -> str:
        inner = child_at(node, 0) if kind_of(node) == "literal" else None
        return kinds.get(kind_id_of(inner or node), "other")

    def finish(self, collector: Collector) -> None:
        """
        size :: [a] -> Int
        size [] = 0
        size (_ : xs) = 1 + size xs

        is one function: it has the signature of the first line, and its equations follow.
        """
        kept: list[Draft] = []
        last: Draft | None = None
        for draft in sorted(collector.symbols, key=lambda d: (d.start, -d.end, d.name_start)):
            if draft.kind not in ("signature", "function"):
                kept.append(draft)
                continue
            if last is not None and last.name == draft.name and self._follows(collector, last.end, draft.start):
                if last.kind == "signature" and draft.kind == "function":
                    last.kind, last.body_start, last.scope_start = "function", draft.body_start, last.start
                if draft.kind == "function":
                    last.end = last.body_end = draft.end
                    collector.marks[draft.name_start] = DEFINED
                    continue
            kept.append(draft)
            last = draft
        for draft in kept:
            if draft.kind == "signature":
                draft.kind = "function"  # of a class, or foreign
        collector.symbols = kept

    def _follows(self, collector: Collector, end: int, start: int) -> bool:
        """Whether nothing but comments and pragmas stands between."""
        between = collector.fold(end, start) if start > end else ""
        return not between.strip() or (between.startswith("{-#") and between.endswith("#-}"))

    def finish_nested(self, collector: Collector) -> None:
        exported = {name for _, name, *_ in collector.exports}
        for draft in collector.symbols:
            draft.exported = not exported or draft.name in exported

    def root_nodes(self, root: Node) -> Sequence[Node]:
        """Imports and declarations stand in a node each that holds all of them."""
        lists = ("imports", "declarations")
        return [
            node
            for part in all_children_of(root)
            for node in (all_children_of(part) if kind_of(part) in lists else (part,))
        ]

    def clean_doc(self, comment: str) -> str:
        if comment.startswith("{-"):
            comment = comment.removeprefix("{-").removesuffix("-}")
            return "\n".join(line.strip() for line in comment.splitlines()).strip().removeprefix("|").strip()
        lines = super().clean_doc(comment).splitlines()
        return "\n".join(line.strip().removeprefix("|").removeprefix("^").strip() for line in lines)

    def is_doc_comment(self, comment: bytes) -> bool:
        return comment.startswith((b"--", b"{-")) and not comment.startswith((b"{-#", b"-- ^", b"-----"))
