"""A language: its grammar, its query, and what a query cannot say.

Capture names are the vocabulary between a `.scm` file and the code; the outermost capture of a
pattern stands last and names what the pattern is about:

    @symbol.<kind>   a definition; beside it @name, and where there are any @body @params @type @base
    @call[.<kind>]   a call; beside it @callee and @args
    @import[.<kind>] an import statement; beside it @module, @local and @imported; @whole stands for the module
    @export          an export statement
    @run.<kind>      what runs a method of an object without a call
    @branch.<kind>   what runs on a condition, more than once, or when something is raised
    @flow.<kind>     assign annotate return raise catch await yield; beside it @target, @value
    @ref[.<role>]    an identifier; definitions are taken out later, so a pattern may be as wide as it likes
    @role.<role>     the role of an identifier, where words of the text are the references
    @opaque @hole    strings and the code inside them; @token a word that is a keyword only in this place
    @comment         any comment; @attribute: decorators and attributes that stand before a definition
    @span.<role>     every identifier inside has this role (`type`, `import`, `decorator`)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from cq.language import describe, load_table, read_query
from cq.model.facts import ROLES, Argument
from cq.syntax.excerpt import clip
from cq.syntax.tree import (
    Captures,
    Grammar,
    Node,
    Query,
    Tree,
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
    from cq.syntax.code import Blocks
    from cq.syntax.collect import Collector

MAX_ARGS = 8
ARG_TEXT = 80
CALLEE_TEXT = 200

_DOC_MARK = re.compile(r"[ \t]*(?:/\*\*?!?|///?!?|//|\*+/|\*|#+!?|--+|;+)?[ \t]?")


_Key = TypeVar("_Key")
_Kept = TypeVar("_Kept")
MAX_KEPT = 100_000


class KeptTexts(dict[_Key, _Kept]):
    """What equal texts say, read once, for as long as there are not too many of them."""

    def keep(self, key: _Key, value: _Kept) -> _Kept:
        if len(self) >= MAX_KEPT:
            self.clear()
        self[key] = value
        return value


# Draft.owner of a field that is defined inside a method: it belongs to the class around, and is nothing without one.
IN_CLASS = -2
AT_ROOT = -3  # of what is defined at root level from inside a function


class Draft(msgspec.Struct, gc=False):
    """A definition as collected; nesting, names and chunks are worked out when all of them are known."""

    kind: str
    name: str
    start: int
    end: int
    name_start: int
    name_end: int
    body_start: int = -1
    body_end: int = -1
    head: int = -1  # where the definition itself begins, after decorators and doc comments
    scope_start: int = -1  # code from here to the end runs in this definition; -1: it opens no scope
    signature: str = ""
    modifiers: tuple[str, ...] = ()
    decorators: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    doc: str = ""
    exported: bool = False
    owner: int = -1  # where the definition that owns it begins, when that is not the innermost one; or IN_CLASS
    parent: int = -1
    depth: int = 0
    qualified_name: str = ""
    chunk: int = 0
    ordinal: int = 1


class Syntax(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `syntax` of a language: what it gives takes the place of the attribute of that name."""

    queries: tuple[str, ...] | UnsetType = UNSET
    argument_kinds: dict[str, tuple[str, ...]] | UnsetType = UNSET  # kind -> node types
    root_kinds: dict[str, tuple[str, ...]] | UnsetType = UNSET
    comment_kinds: tuple[str, ...] | UnsetType = UNSET
    modifier_words: frozenset[str] | UnsetType = UNSET
    doc_prefixes: tuple[str, ...] | UnsetType = UNSET
    stub: str | UnsetType = UNSET
    method_owners: frozenset[str] | UnsetType = UNSET
    constructor_names: frozenset[str] | UnsetType = UNSET
    dot_attributes: bool | UnsetType = UNSET
    has_code: bool | UnsetType = UNSET
    base_clauses: frozenset[str] | UnsetType = UNSET
    wrapped_argument: bool | UnsetType = UNSET
    same_kinds: frozenset[str] | UnsetType = UNSET
    loose_calls: frozenset[str] | UnsetType = UNSET
    containers: frozenset[str] | UnsetType = UNSET

    def list_attributes(self) -> Iterator[tuple[str, object]]:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if name in ("argument_kinds", "root_kinds") and value is not UNSET:
                yield name, {node: kind for kind, nodes in value.items() for node in nodes}
            elif name == "doc_prefixes" and value is not UNSET:
                yield name, tuple(prefix.encode() for prefix in value)
            elif value is not UNSET:
                yield name, value


class Language:
    """Defaults serve a language that data describes; a subclass says what its query and its table cannot."""

    queries: tuple[str, ...] = ()  # files of its folder that make its query; defaults to the one of its id
    # Every pattern of the query captures one node, and handlers look up the rest; `each_<what>` gets all nodes of one
    # capture at once. Nodes then come as lists instead of a dict each: a third of the query's cost.
    flat: bool = False
    argument_kinds: Mapping[str, str] = MappingProxyType({})
    root_kinds: Mapping[str, str] = MappingProxyType({})  # node type at root -> chunk kind; else `statement`
    comment_kinds: tuple[str, ...] = ("comment", "line_comment", "block_comment")
    modifier_words: frozenset[str] = frozenset()
    doc_prefixes: tuple[bytes, ...] = ()  # comments that begin so belong to the definition below them
    stub: str = ";"  # what stands for the body of a collapsed child
    method_owners: frozenset[str] = frozenset(
        {"class", "struct", "interface", "trait", "impl", "enum", "object", "protocol", "record", "extension", "actor"}
    )
    once_kinds: frozenset[str] = frozenset()  # a scope defines such a name once; later ones are assignments
    constructor_names: frozenset[str] = frozenset()
    has_code: bool = False  # fills collector.code
    is_detailed = False  # whether it is read for those who follow values along the statements
    straight_kinds: frozenset[str] = frozenset()  # nodes that always run with what holds them
    type_kinds: frozenset[str] = frozenset()  # definitions that only types can name, bound under `<name>`
    dot_attributes: bool = False  # an identifier after a dot is an attribute, whatever its node is called
    # With keywords given, references are words of the text outside @opaque spans (strings, comments) and
    # inside @hole spans (interpolations), less the keywords and the @token nodes (words that are keywords
    # only here). A quarter of the cost of a match per identifier, and equal to it on every corpus (tests).
    keywords: frozenset[bytes] = frozenset()
    word_bytes: bytes = b"_"  # in words beside letters, digits and what is not ASCII
    base_clauses: frozenset[str] = frozenset()  # nodes of a definition that hold its bases
    wrapped_argument: bool = False  # the grammar has a node around each argument
    same_kinds: frozenset[str] = frozenset()  # nodes that are what their only child is
    loose_calls: frozenset[str] = frozenset()  # calls whose arguments stand behind the callee, with no node around them
    containers: frozenset[str] = frozenset()  # of data: nodes that hold keys and items

    def __init__(self, id: str) -> None:
        self.id = id
        self._respelled = b"", b""
        for name, value in load_table(id, "syntax", Syntax).list_attributes():
            setattr(self, name, value)

    # -- loading ---------------------------------------------------------------------------------

    @cached_property
    def grammar(self) -> Grammar:
        described = describe(self.id)
        return Grammar(described.grammar, described.grammar_function)

    @cached_property
    def query_source(self) -> str:
        return "".join(read_query(self.id, name) for name in self.queries or (self.id,))

    @cached_property
    def query(self) -> Query:
        return self.grammar.compile(self.query_source)

    @cached_property
    def plan(self) -> list[tuple[str, str, str]]:
        """For every pattern: (what, kind, capture), read off its last capture."""
        plan = []
        for pattern in self.query.list_patterns():
            pattern = re.sub(rb"(?m);.*$|\"(?:[^\"\\]|\\.)*\"|\(#[^()]*\)", b"", pattern)
            capture = re.findall(rb"@([\w.]+)", pattern)[-1].decode()
            what, _, kind = capture.partition(".")
            plan.append((what, kind, capture))
        return list(dict.fromkeys(plan)) if self.flat else plan

    @cached_property
    def word_tables(self) -> tuple[bytes, bytes]:
        """Two translations: what is no word becomes blank, and words become blank."""
        is_word = [byte >= 128 or chr(byte).isalnum() or byte in self.word_bytes for byte in range(256)]
        return (
            bytes(byte if is_word[byte] else 32 for byte in range(256)),
            bytes(32 if is_word[byte] else 46 for byte in range(256)),
        )

    @cached_property
    def known_arguments(self) -> KeptTexts[bytes, tuple[tuple[Argument, ...], int, tuple[str, ...]]]:
        """Summaries of argument lists by their text."""
        return KeptTexts()

    @cached_property
    def argument_ids(self) -> dict[int, str]:
        kinds = {}
        for name, kind in self.argument_kinds.items():
            number = self.grammar.find_kind(name)
            if number is None:
                raise ValueError(f"{self.id}: no node kind {name!r}")
            kinds[number] = kind
        for name in self.comment_kinds:
            number = self.grammar.find_kind(name)
            if number is not None:
                kinds[number] = "comment"
        return kinds

    def parse(self, text: bytes, ranges: tuple[tuple[int, int], ...] = ()) -> Tree | None:
        """As Grammar.parse."""
        return self.grammar.parse(text, ranges)

    def respell(self, text: bytes) -> bytes:
        """What no grammar sees through is written so that it does; offsets stay."""
        return text

    def respelled(self, text: bytes) -> bytes:
        """`respell`, once for all documents that stand in one text: a page may have a thousand fences."""
        known = self._respelled
        if known[0] is not text:
            known = self._respelled = text, self.respell(text)
        return known[1]

    # -- what each kind of match means -----------------------------------------------------------

    def on_symbol(self, collector: Collector, kind: str, node: Node, captures: Captures) -> Draft | None:
        name = captures["name"][0]
        body = captures.get("body")
        draft = Draft(
            kind,
            collector.write(name),
            start_of(node),
            end_of(node),
            start_of(name),
            end_of(name),
        )
        signature_end = end_of(node)
        if body:
            draft.body_start, draft.body_end = start_of(body[0]), end_of(body[0])
            draft.scope_start = start_of(node)
            signature_end = start_of(body[0])
        draft.signature = self.trim_signature(collector.fold(start_of(node), signature_end))
        draft.bases = tuple(collector.fold(start_of(base), end_of(base)) for base in captures.get("base", ()))
        draft.modifiers = self.find_modifiers(collector.text[start_of(node) : start_of(name)])
        draft.exported = self.is_exported(draft)
        collector.symbols.append(draft)
        for parameters in captures.get("params", ()):
            self.on_parameters(collector, parameters)
        return draft

    def trim_signature(self, signature: str) -> str:
        return signature.rstrip().rstrip("{:=").rstrip().removesuffix(";").removesuffix("=>").rstrip()

    def find_modifiers(self, prefix: bytes) -> tuple[str, ...]:
        if not self.modifier_words or not prefix:
            return ()
        words = re.findall(r"[\w#]+", prefix.decode("utf-8", "ignore"))
        return tuple(dict.fromkeys(word for word in words if word in self.modifier_words))

    def is_exported(self, draft: Draft) -> bool:
        return False

    def on_parameters(self, collector: Collector, node: Node) -> object:
        """Parameters as symbols; a table language that wants them captures @symbol.parameter instead."""

    def on_call(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        callee = captures["callee"][0]
        args = captures.get("args", (node,) if kind_of(node) in self.loose_calls else (None,))[0]
        collector.add_call(self, kind or "call", start_of(node), end_of(node), callee, args)

    def on_import(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """A statement may match once for each name that it binds."""
        names, start = captures.get("local", ()), start_of(node)
        bound = [*zip(names, map(collector.write, captures.get("imported", names)), strict=True)]
        bound += [(whole, "*") for whole in captures.get("whole", ())]
        bindings = [(collector.write(local), name, start_of(local), end_of(local), False) for local, name in bound]
        for node_of_module in captures.get("module", ()):
            module = collector.write(node_of_module).strip("\"'`<>")
            if collector.imports and collector.imports[-1][:3] == (start, kind or "import", module):
                collector.imports[-1][4].extend(bindings)
            else:
                collector.add_import(kind or "import", module, start, end_of(node), bindings)

    def on_export(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        for name in captures.get("name", ()):
            text = collector.write(name)
            collector.exports.append((start_of(name), text, text, end_of(node), "", False))

    def on_flow(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        value = captures.get("value")
        target = captures.get("target")
        collector.add_flow(self, kind, node, target[0] if target else None, value[0] if value else None)

    def on_root(self, collector: Collector, root: Node) -> None:
        """Called once, after the matches."""

    def finish(self, collector: Collector) -> None:
        """Called once after the last match, before nesting: what only the whole document can say."""

    def finish_nested(self, collector: Collector) -> None:
        """Called after nesting; drafts know their parents and may still change kind, doc or modifiers."""

    def wants_code(self, collector: Collector) -> bool:
        """Whether the document says anything that resolution could use."""
        return self.has_code

    def block_end(self, blocks: Blocks, start: int) -> int:
        """Where the innermost block around a statement ends, -1 at the end: what is bound there hides what was
        bound before. 0 for what may not run: it hides nothing."""
        return -1

    # -- shared by all ---------------------------------------------------------------------------

    def summarize_arguments(
        self, collector: Collector, node: Node
    ) -> tuple[tuple[Argument, ...], int, tuple[str, ...]]:
        """The first eight arguments, how many are positional, and every keyword name."""
        text, kinds = collector.text, self.argument_ids
        summaries: list[Argument] = []
        keywords: tuple[str, ...] = ()
        positional = 0
        children = children_of(node)
        if self.loose_calls and kind_of(node) in self.loose_calls:
            children = children[1:]
        for child in children:
            if self.same_kinds:
                child = self.unwrap(child)
            kind, name = kinds.get(kind_id_of(child), "other"), ""
            if kind == "comment":
                continue
            if kind == "keyword":
                name, value = self.split_keyword(collector, child)
                keywords += (name,)
                if value is not None:
                    child = value
                kind = kinds.get(kind_id_of(child), "other")
            else:
                positional += 1
            if len(summaries) < MAX_ARGS:
                start, end = start_of(child), end_of(child)
                piece = text[start:end] if end - start <= ARG_TEXT else b"\n"
                # Most arguments are short and on one line: no folding to do.
                excerpt = clip(text, start, end, ARG_TEXT) if b"\n" in piece else piece.decode("utf-8", "replace")
                depth = self.shape_depth(child) if kind in NESTED else 0
                summaries.append(Argument(kind, excerpt, name, depth, kind == "spread"))
        return tuple(summaries), positional, keywords

    def unwrap(self, node: Node) -> Node:
        """The value that nodes stand for which only hold it: see `same_kinds`."""
        while kind_of(node) in self.same_kinds and child_count_of(node) == 1:
            node = children_of(node)[0]
        return node

    def split_keyword(self, collector: Collector, node: Node) -> tuple[str, Node | None]:
        children = children_of(node)
        name = collector.slice(start_of(children[0]), end_of(children[0])) if children else ""
        return name.rstrip(":="), children[-1] if len(children) > 1 else None

    def shape_depth(self, node: Node) -> int:
        """1 for a flat call, list or object, 2 for one with another inside; deeper is not looked at."""
        for child in children_of(node):
            kind = self.argument_ids.get(kind_id_of(child))
            if kind in NESTED:
                return 2
            if child_count_of(child) and kind is None:
                for inner in children_of(child)[:64]:
                    if self.argument_ids.get(kind_id_of(inner)) in NESTED:
                        return 2
        return 1

    def callee_name(self, collector: Collector, callee: Node) -> Node | None:
        """The node of the callee's last name where the callee does not simply end with it (`f::<T>`)."""
        return None

    def call_target(self, collector: Collector, call: Node) -> str:
        """The callee of a call that is a value, as written."""
        callee = field_of(call, "function") or field_of(call, "constructor") or child_at(call, 0)
        return "" if callee is None else clip(collector.text, start_of(callee), end_of(callee), CALLEE_TEXT)

    def value_kind(self, node: Node) -> str:
        return self.argument_ids.get(kind_id_of(node), "other")

    def root_nodes(self, root: Node) -> Sequence[Node]:
        """What stands at root level, in the order of the text."""
        return all_children_of(root)

    def chunk_kind(self, node: Node) -> str:
        """What a node at root level is. `attribute` joins what stands behind it."""
        kind = kind_of(node)
        return "comment" if kind in self.comment_kinds else self.root_kinds.get(kind, "statement")

    def is_doc_comment(self, comment: bytes) -> bool:
        return comment.startswith(self.doc_prefixes) if self.doc_prefixes else False

    def clean_doc(self, comment: str) -> str:
        """Comment marks off, text kept; the layout of the lines stays."""
        lines = [_drop_marks(line.rstrip()) for line in comment.strip().splitlines()]
        return "\n".join(lines).strip("\n").rstrip()


def _drop_marks(line: str) -> str:
    """Of one line of a comment. What ends it is cut by hand: a pattern looks for an end from each of many blanks."""
    start = _DOC_MARK.match(line)
    line = line[start.end() :] if start else line
    return line[:-1].rstrip("*").rstrip(" \t") if line.endswith("*/") else line


NESTED = frozenset({"call", "array", "object"})
ROLE_NUMBER: dict[str, int] = {role: number for number, role in enumerate(ROLES)}
