"""Ruby: modules, classes, methods, constants, and the class-level calls that define things (`attr_*`, `private`, …)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cq.syntax.collect import DEFINED, NO_SITE
from cq.syntax.excerpt import clip
from cq.syntax.language import CALLEE_TEXT, ROLE_NUMBER, Draft, Language
from cq.syntax.tree import Captures, Node, children_of, end_of, field_of, is_missing, kind_of, start_of, text_of

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

_CALL = ROLE_NUMBER["call"]
_IMPORTS = {"require": "require", "require_relative": "require", "load": "include", "autoload": "dynamic"}
_MIXINS = ("include", "extend", "prepend")
_HIDERS = ("private", "protected", "public", "module_function", "private_class_method", "private_constant")
_ATTRIBUTES = ("attr_accessor", "attr_reader", "attr_writer", "attr")
_CLASS_LEVEL = frozenset((*_IMPORTS, *_MIXINS, *_HIDERS, *_ATTRIBUTES, "alias_method", "define_method"))
_HOLDERS = ("class", "module")
_MEMBERS = ("method", "function", "property", "constructor", "constant")
# Comments that speak to a tool; only their first eight bytes are looked at.
_MAGIC = (b"#!", b"# frozen", b"# encodi", b"# coding", b"# -*-", b"# typed:", b"# ruboco")


class Ruby(Language):
    def on_symbol(self, collector: Collector, kind: str, node: Node, captures: Captures) -> Draft | None:
        name, value, start, end = captures["name"][0], captures.get("value"), start_of(node), end_of(node)
        if start_of(name) == end_of(name):
            return None
        draft = Draft(kind, collector.slice(start_of(name), end_of(name)), start, end, start_of(name), end_of(name))
        if value:
            self._set_value(collector, draft, value[0])
        elif kind in ("module", "class") or kind_of(node) in ("method", "singleton_method"):
            body = field_of(node, "body")
            # An empty definition has no body node, but it has a body: nothing, before `end`.
            draft.body_start, draft.body_end = (start_of(body), end_of(body)) if body else (end - 3, end - 3)
            draft.scope_start = start
        if draft.body_start >= 0 and value:
            draft.signature = self.trim_signature(collector.fold(start, draft.body_start))
        else:
            draft.signature = clip(collector.text, start, end, 120)
        if kind_of(node) == "alias":
            draft.name_start += len(draft.name) - len(draft.name.lstrip(":"))
            draft.name = draft.name.lstrip(":")
        elif kind == "function":
            self._set_method(collector, draft, node)
        elif kind in ("module", "class"):
            self._set_class(collector, draft, node, name)
        collector.symbols.append(draft)
        return draft

    def _set_value(self, collector: Collector, draft: Draft, value: Node) -> None:
        if draft.start < draft.name_start:
            # `Foo::BAR = 1` has a name of two parts while it is nested; `finish_nested` keeps the last.
            draft.name = _dotted(collector.slice(draft.start, draft.name_end))
        head = collector.text[start_of(value) : start_of(value) + 16]
        if head.startswith((b"Struct.new", b"Class.new", b"Data.define", b"Module.new")):
            # `Point = Struct.new(:x) do … end`
            draft.kind = "module" if head.startswith(b"Module") else "class"
            block = field_of(value, "block")
            start = start_of(block) if block else end_of(value)
            draft.body_start, draft.body_end, draft.scope_start = start, end_of(value), draft.start

    def _set_class(self, collector: Collector, draft: Draft, node: Node, name: Node) -> None:
        last = field_of(name, "name") if kind_of(name) == "scope_resolution" else None
        if last is not None:
            draft.name = _dotted(draft.name)
            draft.name_start, draft.name_end = start_of(last), end_of(last)
        superclass = field_of(node, "superclass")
        draft.signature = collector.fold(draft.start, end_of(superclass or name))
        if superclass is not None:
            draft.bases = (collector.fold(start_of(superclass) + 1, end_of(superclass)),)

    def _set_method(self, collector: Collector, draft: Draft, node: Node) -> None:
        parameters = field_of(node, "parameters")
        if draft.body_start >= 0:
            draft.signature = collector.fold(draft.start, end_of(parameters) if parameters else draft.name_end)
        if parameters is not None:
            self.on_parameters(collector, parameters)
        if kind_of(node) == "singleton_method":
            draft.modifiers = ("static",)
        # `private def f`
        before = collector.text[max(0, draft.start - 24) : draft.start].rpartition(b"\n")[2].split()
        if before and before[-1] in (b"private", b"protected", b"private_class_method"):
            draft.modifiers += (before[-1].decode().removesuffix("_class_method"),)

    def on_parameters(self, collector: Collector, node: Node) -> None:
        for child in children_of(node):
            name = child if kind_of(child) == "identifier" else field_of(child, "name")
            if name is not None and start_of(name) < end_of(name):
                start, end = start_of(child), end_of(child)
                collector.symbols.append(
                    Draft("parameter", collector.slice(start_of(name), end_of(name)), start, end, start_of(name),
                          end_of(name), signature=clip(collector.text, start, end, 120))
                )  # fmt: skip

    def on_visibility(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        collector.remarks.append((start_of(node), collector.slice(start_of(node), end_of(node)), ""))

    # -- calls -------------------------------------------------------------------------------------

    def on_super(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """`super` alone passes all arguments on; where it is the callee of a call, `finish` keeps that call."""
        start, end = start_of(node), end_of(node)
        collector.calls.append((start, end, start, "super", "super", "super", "", (), 0, (), *NO_SITE))

    def on_call(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        text, callee, args = collector.text, captures.get("callee"), captures.get("args")
        start = start_of(node)
        # The block of `each { … }` is no part of the call's own text, but its end is.
        if callee is None or is_missing(callee[0]):
            name, name_start, last = "", -1, start_of(args[0]) if args else end_of(node)
        else:
            name_start, last = start_of(callee[0]), end_of(callee[0])
            name = collector.slice(name_start, last)
            collector.marks[name_start] = _CALL
        receiver = ""
        if name_start > start:
            receiver = clip(text, start, name_start, CALLEE_TEXT).rstrip().removesuffix("::").removesuffix(".")
            receiver = receiver.removesuffix("&").rstrip()
        summary, count, keywords = self.summarize_arguments(collector, args[0]) if args else ((), 0, ())
        kind = "super" if name == "super" else "call"
        if not receiver and name in _CLASS_LEVEL and args:
            kind = self._on_class_level(collector, name, node, args[0])
        collector.calls.append(
            (start, end_of(node), name_start, kind, clip(text, start, last, CALLEE_TEXT), name, receiver,
             summary, count, keywords, *NO_SITE)
        )  # fmt: skip

    def _on_class_level(self, collector: Collector, name: str, node: Node, args: Node) -> str:
        """The calls that mean something for the class or the file around them; returns the kind of the call."""
        start, end = start_of(node), end_of(node)
        if name in _IMPORTS:
            strings = [child for child in children_of(args) if kind_of(child) == "string"]
            if strings:
                module = collector.slice(start_of(strings[0]) + 1, end_of(strings[0]) - 1)
                level = 1 if name == "require_relative" else 0
                collector.add_import(_IMPORTS[name], module, start, end, [], level=level)
                return "import"
        elif name in _MIXINS:
            for child in children_of(args):
                if kind_of(child) in ("constant", "scope_resolution"):
                    module = collector.fold(start_of(child), end_of(child))
                    collector.add_import("include", module, start, end, [])
                    collector.remarks.append((start, "include", module))
        else:
            names = [child for child in children_of(args) if kind_of(child) in ("simple_symbol", "string")]
            if name in _HIDERS:
                for child in names:
                    collector.remarks.append((start, name, _literal(collector, child)))
            elif name in _ATTRIBUTES:
                for child in names:
                    span = (start, end) if len(names) == 1 else (start_of(child), end_of(child))
                    self._define(collector, "property", child, span, ("readonly",) if name == "attr_reader" else ())
            elif names:
                draft = self._define(collector, "function", names[0], (start, end), ())
                block = field_of(node, "block")
                if block is not None:
                    draft.body_start, draft.body_end, draft.scope_start = start_of(block), end_of(block), start
                    draft.signature = collector.fold(start, start_of(block))
        return "call"

    def _define(
        self, collector: Collector, kind: str, literal: Node, span: tuple[int, int], modifiers: tuple[str, ...]
    ) -> Draft:
        draft = Draft(
            kind, _literal(collector, literal), *span, start_of(literal) + 1, end_of(literal),
            signature=clip(collector.text, *span, 120), modifiers=modifiers,
        )  # fmt: skip
        collector.symbols.append(draft)
        return draft

    def split_keyword(self, collector: Collector, node: Node) -> tuple[str, Node | None]:
        name, value = super().split_keyword(collector, node)
        return name.strip(":\"'"), value

    # -- the whole document --------------------------------------------------------------------------

    def finish(self, collector: Collector) -> None:
        # A name the parser only supposes is no reference.
        supposed = (start for start, end in zip(collector.ref_starts, collector.ref_ends, strict=True) if start == end)
        collector.marks.update(dict.fromkeys(supposed, DEFINED))
        called = {call[2] for call in collector.calls if call[3] == "super" and call[1] > call[2] + len("super")}
        if called:
            collector.calls = [
                call for call in collector.calls if call[2] not in called or call[1] > call[2] + len("super")
            ]
        # The first assignment of a root-level variable defines it.
        seen: set[str] = set()
        kept = []
        for draft in sorted(collector.symbols, key=lambda d: d.name_start):
            if draft.kind == "variable":
                if draft.name in seen:
                    continue
                seen.add(draft.name)
            kept.append(draft)
        collector.symbols = kept

    def finish_nested(self, collector: Collector) -> None:
        drafts = collector.symbols
        statics = [(start, 0, end, "") for start, end, role in collector.spans if role == 0]
        words = [(offset, 1, name, word) for offset, word, name in collector.remarks]
        members = [(draft.head, 2, index, "") for index, draft in enumerate(drafts)]
        root = _Body(1 << 62, None)
        stack = [root]
        for offset, order, item, word in sorted(statics + words + members, key=lambda entry: entry[:2]):
            while stack[-1].end <= offset:
                stack.pop()
            body = stack[-1]
            if order == 0:
                stack.append(_Body(int(item), body.draft, static=True))
            elif order == 1:
                body.say(word, str(item))
            else:
                draft = drafts[int(item)]
                draft.name = draft.name.rpartition(".")[2] if draft.kind in (*_HOLDERS, "constant") else draft.name
                inside = draft.parent < 0 or drafts[draft.parent].kind in _HOLDERS
                if draft.kind == "variable" or draft.kind == "parameter":
                    continue
                if inside and draft.kind in _MEMBERS:
                    body.add(draft)
                draft.exported = inside and "private" not in draft.modifiers and "protected" not in draft.modifiers
                if draft.kind in _HOLDERS and draft.body_start >= 0:
                    stack.append(_Body(draft.end, draft))

    def chunk_kind(self, node: Node) -> str:
        method = field_of(node, "method") if kind_of(node) == "call" else None
        if method is not None and start_of(method) == start_of(node) and b"\n" not in (text_of(node) or b""):
            word = (text_of(method) or b"").decode("utf-8", "replace")
            return "import" if word in _IMPORTS else "expression"
        return super().chunk_kind(node)

    def is_doc_comment(self, comment: bytes) -> bool:
        return comment.startswith(self.doc_prefixes) and not comment.startswith(_MAGIC)

    def clean_doc(self, comment: str) -> str:
        if comment.startswith("=begin"):
            return "\n".join(comment.splitlines()[1:-1])
        return super().clean_doc(comment)


class _Body:
    """The body of a class while its members are read in order: what `private` and its like said so far."""

    def __init__(self, end: int, draft: Draft | None, *, static: bool = False) -> None:
        self.end = end
        self.draft = draft
        self._static = static
        self._word = ""
        self._members: dict[str, Draft] = {}

    def say(self, word: str, name: str) -> None:
        if word == "include":
            if self.draft is not None:
                self.draft.bases += (name,)
        elif not name:
            self._word = word
        elif name in self._members:
            self._mark(self._members[name], word)
            self._members[name].exported = word == "public" or word == "module_function"

    def add(self, draft: Draft) -> None:
        self._members[draft.name] = draft
        if self._static and "static" not in draft.modifiers:
            draft.modifiers += ("static",)
        if self._word and draft.kind != "constant" and ("static" not in draft.modifiers or self._static):
            self._mark(draft, self._word)

    def _mark(self, draft: Draft, word: str) -> None:
        word = {"module_function": "static", "public": ""}.get(word, word.partition("_")[0])
        if word and word not in draft.modifiers:
            draft.modifiers += (word,)


def _dotted(name: str) -> str:
    return ".".join(part.strip() for part in name.split("::") if part.strip())


def _literal(collector: Collector, node: Node) -> str:
    """`:name`, `"name"` and `:"name"` all say name."""
    return collector.slice(start_of(node), end_of(node)).strip(":\"'")
