"""Python: what its grammar's words mean, and what only a whole document tells."""

from __future__ import annotations

import ast
import keyword
import re
from bisect import bisect_left
from operator import itemgetter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cq.languages.python.statements import StatementReader
from cq.model.code import Imported
from cq.syntax.collect import DraftScopes
from cq.syntax.language import AT_ROOT, Draft

if TYPE_CHECKING:
    from cq.syntax.code import Blocks
    from cq.syntax.collect import Collector

_BINDINGS = frozenset({"variable", "constant", "field"})
_DEDENTS: dict[int, re.Pattern[bytes]] = {}
_WITH = re.compile(rb"[ \t]*(?:async )?with [^\n]*:[ \t]*\n")
_MAX_WITHS = 50  # inside one another; what stands deeper hides nothing
_WITH_TEXT = 1000  # that is searched for the head of a block
_METHOD_MODIFIERS = {"staticmethod": "static", "classmethod": "class", "abstractmethod": "abstract"}


class Python(StatementReader):
    argument_kinds = {
        "string": "string", "concatenated_string": "string", "integer": "number", "float": "number",
        "unary_operator": "number", "true": "boolean", "false": "boolean", "none": "null", "identifier": "name",
        "attribute": "attribute", "call": "call", "list": "array", "tuple": "array", "set": "array",
        "list_comprehension": "array", "set_comprehension": "array", "generator_expression": "array",
        "dictionary": "object", "dictionary_comprehension": "object", "lambda": "function",
        "list_splat": "spread", "dictionary_splat": "spread", "keyword_argument": "keyword",
    }  # fmt: skip
    root_kinds = {
        "import_statement": "import", "import_from_statement": "import", "future_import_statement": "import",
        "expression_statement": "expression", "if_statement": "control", "for_statement": "control",
        "while_statement": "control", "try_statement": "control", "with_statement": "control",
        "match_statement": "control",
    }  # fmt: skip
    stub = ": ..."
    method_owners = frozenset({"class"})
    constructor_names = frozenset({"__init__", "__new__"})
    once_kinds = _BINDINGS
    dot_attributes = True
    flat = True
    keywords = frozenset(word.encode() for word in keyword.kwlist)

    def block_end(self, blocks: Blocks, start: int) -> int:
        text = blocks.text
        for _ in range(_MAX_WITHS):
            line, indent = blocks.find_line(start)
            if line + indent < start and blocks.follows(start, b":"):  # if x: y = 1
                found = text.find(b"\n", start)
                break
            if not indent:
                return -1
            # What a `with` holds always runs: its block goes on behind it.
            above = text.rfind(b"with ", max(0, line - _WITH_TEXT), line)
            head = text.rfind(b"\n", 0, above) + 1 if above >= 0 else -1
            dedent = _DEDENTS.get(indent) or _DEDENTS.setdefault(
                indent, re.compile(rb"\n[ \t]{0,%d}(?=[^\s#])" % (indent - 1))
            )
            if head < 0 or not _WITH.match(text, head, line) or dedent.search(text, above, line):
                found = blocks.find_next(dedent, start)
                break
            start = above
        else:
            return 0
        return found if found >= 0 else len(text)

    def finish(self, collector: Collector) -> None:
        decorators = sorted(collector.decorators)
        for draft in collector.symbols if decorators else ():
            whole = collector.decorated.get(draft.start)
            if whole is not None and draft.kind in ("function", "class"):
                first, last = bisect_left(decorators, (whole, 0)), bisect_left(decorators, (draft.start, 0))
                draft.decorators = tuple(collector.fold(start + 1, end) for start, end in decorators[first:last])
                draft.start = whole
        if collector.code.entries:
            _enter_by_origin(collector)
        if collector.remarks:
            collector.symbols = _without_foreign(collector)
        collector.code.add_anonymous(collector)

    def finish_nested(self, collector: Collector) -> None:
        drafts = collector.symbols
        names = _public_names(collector)
        for draft in drafts:
            if draft.parent < 0:
                public = draft.name in names if names is not None else not draft.name.startswith("_")
                draft.exported = public and draft.kind != "parameter" and draft.modifiers != ("comprehension",)
            elif (
                draft.kind in ("variable", "constant")
                and drafts[draft.parent].kind == "class"
                and draft.modifiers != ("comprehension",)
            ):
                is_enum = any("Enum" in base or base.endswith("Flag") for base in drafts[draft.parent].bases)
                draft.kind = "enum_member" if is_enum else "field"
            if draft.decorators and draft.kind == "method":
                draft.kind = _decorated_kind(draft)
                draft.modifiers += tuple(word for name, word in _METHOD_MODIFIERS.items() if _has(draft, name))
            if draft.decorators and _has(draft, "overload"):
                draft.modifiers += ("overload",)
            if draft.kind != "parameter" and draft.name.startswith("_") and not draft.name.endswith("__"):
                draft.modifiers += ("private",)
        if names is not None:
            for name, (start, end) in sorted(names.items()):
                collector.exports.append((start, name, name, end, "", False))


def _enter_by_origin(collector: Collector) -> None:
    """Classes whose base has another name where it comes from: `from lib import Base as Old`."""
    origins = {
        name: value.name
        for _, _, name, value, _ in collector.code.binds
        if isinstance(value, Imported) and value.name not in ("*", name)
    }
    entries = collector.code.entries
    entries += [replace(entry, name=origins[entry.name]) for entry in entries if entry.name in origins]


def _has(draft: Draft, word: str) -> bool:
    return any(d.partition("(")[0].rpartition(".")[2] == word for d in draft.decorators)


def _decorated_kind(draft: Draft) -> str:
    for decorator in draft.decorators:
        name = decorator.partition("(")[0]
        last = name.rpartition(".")[2]
        if last in ("property", "cached_property") or name.endswith((".setter", ".getter", ".deleter")):
            return "accessor"
    return draft.kind


def _without_foreign(collector: Collector) -> list[Draft]:
    """A scope assigns what it declares global or nonlocal; a global that nothing else binds it defines, at root."""
    names = {name for _, name, _ in collector.remarks}
    places: list[tuple[int, str, str | Draft]] = list(collector.remarks)
    places += [(d.name_start, d.name, d) for d in collector.symbols if d.name in names and d.kind in _BINDINGS]
    places.sort(key=itemgetter(0))
    owners = DraftScopes(collector.symbols).find([offset for offset, _, _ in places])
    declared = {
        (scope, name): word for scope, (_, name, word) in zip(owners, places, strict=True) if isinstance(word, str)
    }
    bound = {
        name for scope, (_, name, draft) in zip(owners, places, strict=True) if scope < 0 and isinstance(draft, Draft)
    }
    dropped: set[int] = set()
    for scope, (_, name, draft) in zip(owners, places, strict=True):
        word = declared.get((scope, name)) if isinstance(draft, Draft) else None
        if word == "global" and name not in bound and isinstance(draft, Draft):
            bound.add(name)
            draft.owner = AT_ROOT
        elif word:
            dropped.add(id(draft))
    return [draft for draft in collector.symbols if id(draft) not in dropped]


def _public_names(collector: Collector) -> dict[str, tuple[int, int]] | None:
    """The strings of `__all__ = …`, `+= …`, `.extend(…)` with the place that names them; None when there is none."""
    names: dict[str, tuple[int, int]] = {}
    for start, end in sorted(collector.public):
        try:
            tree = ast.parse(collector.slice(start, end))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for constant in ast.walk(tree):
            if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
                names.setdefault(constant.value, (start, end))
    return names if collector.public else None
