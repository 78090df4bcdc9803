"""Definitions of Rust at every depth: items, parameters, fields and variables, with their documentation."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING

from cq.languages.rust.arguments import MAX_WRAPS, cut_excerpt, read_text
from cq.languages.rust.flows import FlowReader
from cq.languages.rust.patterns import IN_BLOCK, bind_pattern, find_names
from cq.languages.rust.signatures import find_impl_name, read_signature, read_type
from cq.languages.rust.values import read_value
from cq.model.code import Entry, Imported, Parameter, Typed
from cq.syntax.collect import DEFINED
from cq.syntax.excerpt import clip
from cq.syntax.language import ARG_TEXT, ROLE_NUMBER, Draft
from cq.syntax.tree import Captures, Node, children_of, end_of, field_of, kind_of, start_of

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

TYPE = ROLE_NUMBER["type"]
_VALUE_TEXT = 120
_WORDS = frozenset({"async", "const", "unsafe", "extern", "mut", "static", "default", "auto", "gen", "safe"})
_VISIBILITY = re.compile(r"(pub\b(?:\s*\([^)]*\))?|crate\b)\s*")
_INNER_DOC = re.compile(rb"\{\s*(?=//!|/\*!)")
_DOC_ATTRIBUTE = re.compile(r"#\[\s*doc\s*=\s*r?(#*)\"(.*)\"\1\s*\]", re.DOTALL)
MACRO_ITEM = re.compile(rb"\bmacro[ \t]+([A-Za-z_]\w*)\s*(\([^(){}]*\)\s*)?\{")
_MACRO_LEAD = re.compile(rb"[ \t]*(?:(pub\b(?:\s*\([^)]*\))?)\s+)?\Z")
# What is not closed goes to the end: it would be looked for again from everything in it that could open it.
_BRACE = re.compile(rb"[{}]|//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:[^\"\\]|\\.)*+(?:\"|\\?\Z)|'(?:[^'\\\n]|\\.)'", re.DOTALL)
_DEFINED = frozenset({"function", "impl", "struct", "union", "enum", "enum_member", "trait", "constant", "type"})
_DERIVED = re.compile(r"proc_macro_derive\s*\(\s*(\w+)")
HEADS = frozenset({"function", "method", "struct", "enum_member", "constant", "variable", "type", "module"})


class DefinitionReader(FlowReader):
    doc_prefixes = (b"///", b"/**")

    def on_symbol(self, collector: Collector, kind: str, node: Node, captures: Captures) -> Draft | None:
        name = field_of(node, "type" if kind == "impl" else "name")
        if name is None and kind == "namespace":
            name = next((child for child in children_of(node) if kind_of(child) == "extern_modifier"), None)
        if name is None:
            return None
        start, end, name_start, name_end = start_of(node), end_of(node), start_of(name), end_of(name)
        if name_start == name_end:
            return None  # the parser made up what is missing
        draft = Draft(kind, collector.slice(name_start, name_end), start, end, name_start, name_end, head=start)
        if kind == "type_parameter":
            draft.signature = cut_excerpt(collector.text, start, end, _VALUE_TEXT)
        elif kind == "field":
            annotation = field_of(node, "type")
            if annotation is None:
                return None
            self.add_annotation(collector, start, end, draft.name, annotation)
            collector.remarks.append((start, draft.name, collector.slice(start_of(annotation), end_of(annotation))))
            draft.signature = cut_excerpt(collector.text, start, end, _VALUE_TEXT)
        elif kind == "constant":
            self._add_constant(collector, node, draft)
        elif kind == "impl":
            self._add_impl(collector, node, name, draft)
        elif kind == "macro":
            draft.body_start, draft.body_end, draft.scope_start = name_end, end, start
            draft.signature = collector.fold(start, name_end)
        else:
            body = field_of(node, "body") if kind != "enum_member" else None
            if body is None and kind_of(node) == "function_item":
                return None
            if body is not None and collector.text[start_of(body) : start_of(body) + 1] == b"{":
                draft.body_start, draft.body_end, draft.scope_start = start_of(body), end_of(body), start
                draft.signature = collector.fold(start, start_of(body)).rstrip(" ,")
                if kind == "function":
                    self.add_tail(collector, body)
            else:
                draft.signature = collector.fold(start, end).rstrip(" ,;")
                if kind == "function":
                    draft.scope_start = start
            if kind == "trait":
                bounds = field_of(node, "bounds")
                if bounds is not None:
                    draft.bases = self._types(collector, bounds)
            elif kind == "module" and body is None:
                binding = (draft.name, "*", name_start, name_end, False)
                module = draft.name.removeprefix("r#")
                collector.add_import("mod", module, start, end, [binding])
                collector.code.binds.append((end, start - 1, module, Imported(0, f"mod {module}", "*"), -1))
        if kind != "type_parameter" and name_start > start:
            head = collector.text[start:name_start]
            draft.modifiers, draft.exported = _read_head(head if kind != "impl" else head.partition(b"impl")[0])
            if kind == "constant" and "mut" in draft.modifiers:
                draft.kind = "variable"
        elif kind == "namespace":
            draft.modifiers = ("extern",)
        if draft.body_start >= 0 and _INNER_DOC.match(collector.text, draft.body_start):
            draft.doc = self._inner_doc(collector, draft.body_start + 1)
        collector.symbols.append(draft)
        self._add_definition(collector, kind, draft)
        return draft

    def _add_definition(self, collector: Collector, kind: str, draft: Draft) -> None:
        code, start = collector.code, draft.start
        if kind == "macro" or kind == "module":
            if kind == "macro" or draft.body_start >= 0:
                code.definitions[start] = ("macro" if kind == "macro" else "mod", (), None, (), ())
            if kind == "macro":
                code.entries.append(Entry("macro", draft.name, start))
        elif kind in _DEFINED:
            known = read_signature(kind, draft.signature)
            code.definitions[start] = known
            if kind == "impl":
                code.entries.append(Entry("impl of type", find_impl_name(known[2], known[4]), start))
                if known[3]:
                    code.entries.append(Entry("impl of trait", find_impl_name(known[3][0], ()), start))

    def _add_constant(self, collector: Collector, node: Node, draft: Draft) -> None:
        """Consts and statics open a scope: their initializer is code of their own."""
        kind, value = field_of(node, "type"), field_of(node, "value")
        start, end = start_of(node), end_of(node)
        signature_end = end
        if kind is not None:
            self.add_annotation(collector, start, end, draft.name, kind)
        if value is not None:
            draft.scope_start = start
            if end_of(value) - start_of(value) > ARG_TEXT:
                signature_end = start_of(value)
            self.add_assignment(collector, node, draft.name, value)
        draft.signature = collector.fold(start, signature_end).rstrip(" ;=")

    def _add_impl(self, collector: Collector, node: Node, kind: Node, draft: Draft) -> None:
        """`impl<T> fmt::Display for &Foo<T>` is `Foo` with the base `fmt::Display`: its methods read `Foo.fmt`."""
        body, trait = field_of(node, "body"), field_of(node, "trait")
        for _ in range(MAX_WRAPS):
            inner = field_of(kind, "type") or field_of(kind, "trait")
            inner = field_of(kind, "name") if kind_of(kind) == "scoped_type_identifier" else inner
            if inner is None or kind_of(kind) in ("tuple_type", "array_type", "function_type"):
                break
            kind = inner
        draft.name_start, draft.name_end = start_of(kind), end_of(kind)
        draft.name = clip(collector.text, start_of(kind), end_of(kind), ARG_TEXT)
        end = draft.end
        if body is not None:
            end = start_of(body)
            draft.body_start, draft.body_end, draft.scope_start = end, end_of(body), draft.start
        draft.signature = collector.fold(draft.start, end).rstrip(" ,;")
        if trait is not None and collector.text[start_of(trait) - 1 : start_of(trait)] != b"!":
            draft.bases = (collector.fold(start_of(trait), end_of(trait)),)

    def _types(self, collector: Collector, bounds: Node) -> tuple[str, ...]:
        return tuple(
            collector.fold(start_of(child), end_of(child))
            for child in children_of(bounds)
            if kind_of(child) not in ("lifetime", "line_comment", "block_comment")
        )

    def on_parameter(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        start, end = start_of(node), end_of(node)
        if kind == "self":
            name_start = end - 4
            if not collector.text.startswith(b"self", max(start, name_start)):
                return
            modifiers = ("mut",) if b"mut" in collector.text[start:name_start] else ()
            collector.symbols.append(
                Draft("parameter", "self", start, end, name_start, end, head=start, modifiers=modifiers,
                      signature=cut_excerpt(collector.text, start, end, _VALUE_TEXT))
            )  # fmt: skip
            return
        pattern: Node | None = node
        if kind == "closure":
            if kind_of(node) == "parameter":
                return
        else:
            pattern = field_of(node, "pattern")
            if pattern is None:
                return
            annotation = field_of(node, "type")
            if annotation is not None:
                self.add_annotation(collector, start, end, read_text(collector, pattern).removeprefix("r#"), annotation)
        signature = cut_excerpt(collector.text, start, end, _VALUE_TEXT)
        modifiers = ("mut",) if collector.text.startswith(b"mut ", start) else ()
        # `|(a, b)|`, `Point { x, .. }: Point`: every name is a parameter.
        names = [pattern] if kind_of(pattern) in ("identifier", "self") else find_names(collector, pattern)
        for name in names:
            name_start, name_end = start_of(name), end_of(name)
            if name_start == name_end:
                continue
            collector.marks[name_start] = DEFINED
            span = (start, end) if len(names) == 1 else (name_start, name_end)
            collector.symbols.append(
                Draft("parameter", collector.slice(name_start, name_end), *span, name_start, name_end, head=span[0],
                      signature=signature, modifiers=modifiers)
            )  # fmt: skip

    def on_bind(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """A name in a pattern; one in capitals (`None`, `MAX`) is a constant or a variant, not a binding."""
        start, end = start_of(node), end_of(node)
        if start == end or 65 <= collector.text[start] <= 90 or collector.marks.get(start) == DEFINED:
            return
        name = collector.slice(start, end)
        collector.symbols.append(Draft("variable", name, start, end, start, end, head=start, signature=name))

    def on_let(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        target = field_of(node, "pattern")
        if target is None:
            return
        annotation, value = field_of(node, "type"), field_of(node, "value")
        text, start, end = collector.text, start_of(node), end_of(node)
        name_start, name_end = start_of(target), end_of(target)
        name = read_text(collector, target).removeprefix("r#")
        if annotation is not None:
            self.add_annotation(collector, start, end, name, annotation)
        if value is not None:
            self.add_assignment(collector, node, name, value)
        bound = None if value is None else read_value(collector, value)
        if annotation is not None:
            bound = Typed(read_type(text[start_of(annotation) : end_of(annotation)]), bound)
        bind_pattern(collector, target, bound, end, start, IN_BLOCK)
        if kind_of(target) != "identifier" or name_start == name_end:
            return
        signature = cut_excerpt(text, start, end, _VALUE_TEXT)
        draft = Draft("variable", name, start, end, name_start, name_end, head=start, signature=signature)
        if b"mut" in text[start:name_start]:
            draft.modifiers = ("mut",)
        if value is not None and kind_of(value) == "closure_expression":
            body = field_of(value, "body")
            if body is not None:
                draft.kind = "function"
                draft.body_start, draft.body_end, draft.scope_start = start_of(body), end_of(body), start_of(value)
                draft.signature = collector.fold(start, start_of(body))
                if kind_of(body) == "block":
                    self.add_tail(collector, body)
                else:
                    self.add_return(collector, body, body)
        collector.symbols.append(draft)

    def is_doc_comment(self, comment: bytes) -> bool:
        # `////` and `/***` are plain comments, `/**/` is empty; `//!` is about what holds it.
        return comment.startswith(self.doc_prefixes) and not comment.startswith((b"////", b"/***", b"/**/"))

    def clean_doc(self, comment: str) -> str:
        if comment.startswith("//"):
            return comment[3:].removeprefix(" ").rstrip()
        lines = comment[3:].removesuffix("*/").rstrip().splitlines()
        starred = all(line.lstrip().startswith("*") for line in lines[1:] if line.strip())
        clean = [lines[0].strip()] if lines else []
        for line in lines[1:]:
            line = line.strip()
            clean.append(line.removeprefix("*").removeprefix(" ") if starred else line)
        return "\n".join(clean).strip("\n").rstrip()

    def _inner_doc(self, collector: Collector, offset: int) -> str:
        """The `//!` lines a body begins with."""
        comments, text = collector.comments, collector.text
        at = bisect_left(comments, (offset, 0))
        parts = []
        while at < len(comments):
            start, end = comments[at]
            if text[offset:start].strip() or not text.startswith((b"//!", b"/*!"), start):
                break
            parts.append(self.clean_doc(collector.slice(start, end)))
            offset = end
            at += 1
        return "\n".join(parts)

    def add_fields(self, collector: Collector) -> None:
        """Named fields are parameters of their struct."""
        definitions = collector.code.definitions
        structs = sorted(
            (draft.head, draft.end) for draft in collector.symbols
            if draft.kind in ("struct", "union") and draft.body_start >= 0 and draft.head in definitions
        )  # fmt: skip
        fields: dict[int, list[Parameter]] = {}
        at = 0
        for offset, name, kind in sorted(collector.remarks):
            while at < len(structs) and structs[at][1] <= offset:
                at += 1
            if at < len(structs) and structs[at][0] <= offset:
                fields.setdefault(structs[at][0], []).append(
                    Parameter(name.removeprefix("r#"), "", read_type(kind.encode()))
                )
        for start, parameters in fields.items():
            known = definitions[start]
            definitions[start] = (known[0], tuple(parameters), *known[2:])

    def add_macro_item(self, collector: Collector, found: re.Match[bytes]) -> int:
        """`pub macro name(…) { … }`, which the grammar does not know; returns where it ends."""
        text, start = collector.text, found.start()
        line = text.rfind(b"\n", 0, start) + 1
        lead = _MACRO_LEAD.match(text[line:start])
        at = bisect_right(collector.comments, (start, start)) - 1
        if lead is None or (at >= 0 and collector.comments[at][1] > start):
            return start
        start = line + lead.start(1) if lead[1] else start
        body, depth, end = found.end() - 1, 0, collector.span[1]
        for brace in _BRACE.finditer(text, body, end):
            depth += (brace[0] == b"{") - (brace[0] == b"}")
            if not depth:
                end = brace.end()
                break
        modifiers, exported = _read_head(text[start : found.start()])
        collector.calls = [call for call in collector.calls if not start <= call[0] < body]
        collector.symbols.append(
            Draft(
                "macro", found[1].decode(), start, end, found.start(1), found.end(1), body, end, start, start,
                collector.fold(start, body), modifiers, exported=exported,
            )
        )  # fmt: skip
        return end

    def read_attributes(self, collector: Collector, draft: Draft) -> None:
        found, docs = [], False
        for attribute in draft.decorators:
            if _DOC_ATTRIBUTE.fullmatch(attribute):
                docs = True
            else:
                found.append(attribute.removeprefix("#[").removesuffix("]").strip())
        draft.decorators = tuple(found)
        for name in found:
            if name.startswith("proc_macro"):
                derived = _DERIVED.match(name)
                name = draft.name if derived is None else derived[1]
                collector.code.entries.append(Entry("macro", name, draft.head))
        if docs:
            draft.doc = self._doc_of_leads(collector, draft.start, draft.head)
        if draft.kind == "macro" and any(name.startswith("macro_export") for name in found):
            draft.exported = True

    def _doc_of_leads(self, collector: Collector, start: int, end: int) -> str:
        leads = []
        for spans in (collector.comments, collector.attributes):
            leads += spans[bisect_left(spans, (start, 0)) : bisect_left(spans, (end, 0))]
        parts = []
        for first, last in sorted(leads):
            source = collector.slice(first, last)
            if match := _DOC_ATTRIBUTE.fullmatch(source):
                parts.append(match[2].strip())
            elif self.is_doc_comment(collector.text[first : first + 8]):
                parts.append(self.clean_doc(source))
        return "\n".join(parts)


@lru_cache(maxsize=1024)
def _read_head(head: bytes) -> tuple[tuple[str, ...], bool]:
    """Modifiers of a definition from what stands before its name, and whether it is public without limits."""
    source = " ".join(head.decode("utf-8", "replace").split())
    modifiers, exported = [], False
    if match := _VISIBILITY.match(source):
        modifiers.append(match[1].replace("pub (", "pub("))
        exported = match[1] == "pub"
        source = source[match.end() :]
    words = source.split()
    if words and words[-1] == "const":
        words.pop()  # the keyword of a const item, not a modifier
    modifiers += [word for word in words if word in _WORDS]
    return tuple(modifiers), exported
