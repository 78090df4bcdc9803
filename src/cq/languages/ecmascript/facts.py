"""TypeScript and JavaScript, with and without JSX: one reading, two grammars."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING

from cq.languages.ecmascript.calls import CallReader
from cq.languages.ecmascript.holders import PLAIN_OBJECT
from cq.languages.ecmascript.imports import ImportReader
from cq.languages.ecmascript.modifiers import find_modifiers, take_decorators
from cq.languages.ecmascript.parameters import IN_CLASS
from cq.languages.ecmascript.scopes import FUNCTIONS, NestedSpans, Placement
from cq.syntax.language import Draft
from cq.syntax.tree import Tree, all_children_of, end_of, has_error, is_error, is_missing, kind_of, root_of, start_of

if TYPE_CHECKING:
    from cq.syntax.code import Blocks
    from cq.syntax.collect import Collector

_DOC_MARK = re.compile(r"^[ \t]*\*[ \t]?")


class EcmaScript(ImportReader, CallReader):
    """Everything both grammars say the same way."""

    argument_kinds = {
        "string": "string", "template_string": "string", "number": "number", "true": "boolean", "false": "boolean",
        "null": "null", "undefined": "null", "identifier": "name", "this": "name", "super": "name",
        "member_expression": "attribute", "subscript_expression": "attribute", "call_expression": "call",
        "new_expression": "call", "array": "array", "object": "object", "function_expression": "function",
        "generator_function": "function", "arrow_function": "function", "spread_element": "spread",
    }  # fmt: skip
    root_kinds = {
        "import_statement": "import", "export_statement": "export", "expression_statement": "expression",
        **dict.fromkeys(
            ("if_statement", "for_statement", "for_in_statement", "while_statement", "do_statement", "try_statement",
             "switch_statement", "labeled_statement", "statement_block", "with_statement", "throw_statement"),
            "control",
        ),
    }  # fmt: skip
    doc_prefixes = (b"/**",)
    dot_attributes = True
    flat = True
    type_kinds = frozenset({"interface"})
    # From what is assigned to the block that always runs it; functions are there before that.
    straight_kinds = frozenset({
        "identifier", "this", "property_identifier", "member_expression", "subscript_expression",
        "assignment_expression", "call_expression", "await_expression", "expression_statement", "variable_declarator",
        "lexical_declaration", "variable_declaration", "export_statement", "array_pattern", "object_pattern",
    })  # fmt: skip

    def block_end(self, blocks: Blocks, start: int) -> int:
        node = blocks.find_turn(start)
        if node is None:
            return -1
        return end_of(node) if kind_of(node) == "statement_block" else 0

    def clean_doc(self, comment: str) -> str:
        lines = comment.strip().removeprefix("/**").removesuffix("*/").split("\n")
        # Not by the pattern: it would look for the end of the line from each of many blanks.
        return "\n".join(_DOC_MARK.sub("", line.rstrip(" \t\r")) for line in lines).strip("\n \t")

    def finish(self, collector: Collector) -> None:
        collector.symbols = [draft for draft in collector.symbols if _widen(collector, draft)]
        if any(draft.owner != -1 for draft in collector.symbols):
            collector.symbols = _settle_owners(collector.symbols)
        if collector.remarks:
            _find_components(collector)
        Placement(collector, self.notes(collector), self.type_kinds).place()

    def finish_nested(self, collector: Collector) -> None:
        drafts = collector.symbols
        listed = {name for _, name, _, _, module, _ in collector.exports if not module}
        inner: set[int] = set()
        for draft in drafts:
            if "." in draft.name:
                own = collector.slice(draft.name_start, draft.name_end)
                draft.name = own if draft.name.endswith(f".{own}") else draft.name
            if draft.parent >= 0:
                if draft.exported:
                    inner.add(draft.name_start)
            elif draft.name in listed and not draft.exported and draft.kind not in ("parameter", "type_parameter"):
                draft.exported = True
                draft.modifiers = ("exported", *draft.modifiers)
            if draft.body_start < 0 and draft.kind in _OVERLOADED and not _is_ambient(drafts, draft):
                draft.modifiers += ("overload",)
        if inner:
            # What a namespace exports does not leave the document by itself.
            collector.exports = [export for export in collector.exports if export[0] not in inner]


class TypeScript(EcmaScript):
    def parse(self, text: bytes, ranges: tuple[tuple[int, int], ...] = ()) -> Tree | None:
        """What the grammar does not know is written so that it does, in a text that could not be parsed: offsets stay,
        and facts read the true text."""
        tree = super().parse(text, ranges)
        if tree is None or not has_error(root_of(tree)):
            return tree
        plain = self.respelled(text)
        other = super().parse(plain, ranges) if _differ(plain, text, ranges) else None
        return other if other is not None and _measure_errors(other) < _measure_errors(tree) else tree

    def respell(self, text: bytes) -> bytes:
        return _NEXT_SIGNATURE.sub(b";", _UNKNOWN.sub(_blank, _USING.sub(_declare, text)))


class JavaScript(EcmaScript):
    all_optional = True


# class Box<in out T>, the type of sql<{ id: number }>`SELECT id`, and type Help = `use \`this\``
_UNKNOWN = re.compile(
    rb"(?<=[<,])\s*(?:in\s+out|in|out)(?=\s+[\w$]+\s*(?:[,>=]|extends\b))"
    rb"|(?<=[\w$])<\{[^<>`{}]*\}>(?=`)|\\`|(?<=\bexport )type(?=\s*\*)"
)
# using file: File = open(), and for (await using file of files)
_USING = re.compile(rb"(?:\bawait\s+)?\busing(?=\s+[\w$]+\s*(?:[:=]|of\b))")
# A line that ends what stands above it:
#   (a: A): B
#   <C>(c: C): B
_NEXT_SIGNATURE = re.compile(
    rb"(?<=[\w$>\])}\"'])(?<!=>)\n"
    rb"(?=(?:\s|/\*(?:[^*]|\*(?!/))*\*/|//[^\n]*\n)*(?:<[\s\w$]|new\s*[(<]|in\??:))"
)
_MAX_BROKEN = 10_000  # nodes with an error inside that are looked at


def _blank(match: re.Match[bytes]) -> bytes:
    return b" " * len(match[0])


def _declare(match: re.Match[bytes]) -> bytes:
    return b"const".rjust(len(match[0]))


def _differ(plain: bytes, text: bytes, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(plain[start:end] != text[start:end] for start, end in ranges or ((0, len(text)),))


def _measure_errors(tree: Tree) -> int:
    """How many bytes could not be parsed."""
    todo, size = [root_of(tree)], 0
    for _ in range(_MAX_BROKEN):
        if not todo:
            break
        node = todo.pop()
        if is_error(node) or is_missing(node):
            size += end_of(node) - start_of(node) + 1
        elif has_error(node):
            todo += all_children_of(node)
    return size


# -- the whole document ----------------------------------------------------------------------------


def _widen(collector: Collector, draft: Draft) -> bool:
    """Takes `export`, `default`, `declare` and decorators before them into the definition they belong to. False for a
    function or class that is defined under the name of what it is assigned to."""
    outer = collector.decorated.get(draft.start)
    if outer is None and draft.head != draft.start:
        outer = collector.decorated.get(draft.head)
    if outer is None:
        draft.head = max(draft.head, draft.start)
        return True
    if outer < 0:
        return False
    inner = draft.start if draft.start in collector.decorated else draft.head
    while (further := collector.decorated.get(outer, -1)) >= 0:
        outer = further
    prefix = collector.text[outer:inner]
    alone = draft.start == inner
    decorators = draft.decorators
    lead = Draft("", "", outer, inner, inner, inner, head=outer)
    if b"@" in prefix:
        prefix = take_decorators(collector, lead, inner)
        draft.decorators = lead.decorators + decorators
    words = find_modifiers(prefix)
    if "exported" in words:
        draft.exported = True
        exported = "default" if "default" in words else draft.name
        type_only = draft.kind in ("interface", "type")
        collector.exports.append((draft.name_start, draft.name, exported, draft.name_end, "", type_only))
    draft.modifiers = words + draft.modifiers
    if alone:
        draft.start = outer
        if not decorators:
            draft.head = lead.head
        draft.signature = f"{collector.fold(lead.head, inner)} {draft.signature}"
    else:
        draft.head = draft.start
    return True


def _settle_owners(drafts: list[Draft]) -> list[Draft]:
    """Gives members set in a constructor to its class, once each, and keeps data objects inside functions whole."""
    holders = {draft.start: draft for draft in drafts if draft.body_start >= 0 and draft.scope_start >= 0}
    spans = NestedSpans((start, draft.end) for start, draft in holders.items())
    ordered = sorted(drafts, key=lambda draft: (draft.name_start, draft.start, draft.owner))
    members: set[tuple[int, str]] = set()
    waiting: list[tuple[tuple[int, str], Draft]] = []
    dropped: set[int] = set()
    for draft, around in zip(ordered, spans.find(draft.name_start for draft in ordered), strict=True):
        if holders.get(around) is draft:  # its own name lies inside its span
            around = spans.parents[around]
        holder, outer = holders.get(around), holders.get(spans.parents.get(around, -1))
        if draft.owner == PLAIN_OBJECT:
            draft.owner = -1
            if holder is not None and holder.kind != "namespace":
                if draft.kind == "property":
                    dropped.add(id(draft))
                draft.body_start = draft.body_end = -1
        elif draft.owner == IN_CLASS:
            if holder is not None and holder.kind == "constructor" and outer is not None and outer.kind == "class":
                waiting.append(((outer.head, draft.name), draft))
            elif draft.body_start < 0:
                dropped.add(id(draft))
            else:
                draft.owner = -1
        elif holder is not None and holder.kind == "class" and draft.kind in ("field", "method", "accessor"):
            members.add((holder.head, draft.name))
    for member, draft in waiting:
        if member in members and draft.body_start < 0:
            dropped.add(id(draft))
        else:
            members.add(member)
            draft.owner = member[0]
    return [draft for draft in drafts if id(draft) not in dropped] if dropped else drafts


def _find_components(collector: Collector) -> None:
    """A function with a capital that draws JSX is a component; a class that does is a class that is one."""
    starts = sorted(entry[0] for entry in collector.remarks)
    for draft in collector.symbols:
        if draft.kind in ("function", "class") and draft.body_start >= 0 and draft.name[:1].isupper():
            at = bisect_left(starts, draft.body_start)
            if at < len(starts) and starts[at] < draft.body_end:
                if draft.kind == "class":
                    draft.modifiers += ("component",)
                else:
                    draft.kind = "component"
    collector.remarks.clear()


def _is_ambient(drafts: list[Draft], draft: Draft) -> bool:
    """Declared rather than defined: `declare`, `abstract`, or a member of an interface or a type."""
    if "abstract" in draft.modifiers:
        return True
    while True:
        if "declare" in draft.modifiers or draft.kind in ("interface", "type"):
            return True
        if draft.parent < 0:
            return False
        draft = drafts[draft.parent]
        if draft.kind in FUNCTIONS:
            return False


_OVERLOADED = frozenset({"function", "method", "constructor"})
