"""What one document says about itself. Path-free, so that equal text has equal facts wherever it lies."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from cq.model.code import Code
from cq.model.source import Problem, Segment

# kind -> kindGroup of contracts.md §2. A kind that is not here is `other`, which must stay rare.
KIND_GROUPS: dict[str, str] = {
    **dict.fromkeys(("function", "lambda", "macro", "component", "procedure"), "function"),
    **dict.fromkeys(("class", "struct", "object", "record", "union", "actor", "extension"), "class"),
    **dict.fromkeys(("method", "constructor", "destructor", "accessor", "operator"), "method"),
    **dict.fromkeys(
        ("interface", "type", "enum", "trait", "impl", "protocol", "annotation_type", "table", "view", "delegate"),
        "type",
    ),
    **dict.fromkeys(
        (
            "variable",
            "constant",
            "field",
            "property",
            "parameter",
            "enum_member",
            "type_parameter",
            "key",
            "event",
            "column",
            "index",
            "trigger",
        ),
        "value",
    ),
    **dict.fromkeys(("module", "namespace", "package", "heading", "schema"), "module"),
}

# Kinds of chunks, by the byte that an index keeps of each; what is not here is the last, a document as a whole `file`.
CHUNK_KINDS = (
    *KIND_GROUPS, "import", "export", "expression", "control", "comment", "statement", "part", "file", "other",
)  # fmt: skip


class Symbol(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One definition. `start..end` holds decorators and attached doc comments; `head` is where the
    definition itself begins, so that code in a decorator belongs to the scope around it."""

    kind: str
    name: str
    qualified_name: str  # dotted, inside the document: `Class.method.local`
    parent: int  # index into FileFacts.symbols; -1 at root
    depth: int
    start: int
    end: int
    head: int
    name_start: int
    name_end: int
    body_start: int  # -1 when it bears no body
    body_end: int
    chunk: int  # index into FileFacts.chunks: its own, or the innermost that holds it
    signature: str = ""
    modifiers: tuple[str, ...] = ()
    decorators: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    doc: str = ""
    exported: bool = False
    ordinal: int = 1  # among those of its chunk, name and group that no chunk of their own tells apart

    @property
    def kind_group(self) -> str:
        return KIND_GROUPS.get(self.kind, "other")

    @property
    def identity_name(self) -> str:
        """What ids are made of, which must differ where names do not; never shown."""
        return self.qualified_name if self.ordinal == 1 else f"{self.qualified_name}~{self.ordinal}"


_HOLDERS = frozenset({"class", "type", "module"})


def is_looked_up(symbol: Symbol, symbols: Sequence[Symbol]) -> bool:
    """Parameters and locals are found through their function, everything else by name."""
    if symbol.kind in ("parameter", "type_parameter"):
        return False
    if symbol.kind_group != "value" or symbol.parent < 0:
        return True
    parent = symbols[symbol.parent]
    return parent.kind_group in _HOLDERS or parent.kind_group == "value"


class Argument(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One argument of a call, bounded: text at most 80 characters, nesting counted to 2."""

    kind: str  # string number boolean null name attribute call array object function spread other
    text: str
    name: str = ""  # keyword name
    depth: int = 0
    spread: bool = False


class Call(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One call site. `scope` is the innermost definition that holds it, -1 for code at root level."""

    kind: str  # call new super macro decorator template optional import
    callee: str  # as written, white space folded, at most 200 characters
    name: str  # last name of the callee, "" when it has none
    receiver: str  # text before the last name, "" when there is none
    start: int
    end: int
    name_start: int  # -1 when the callee has no name
    scope: int
    args: tuple[Argument, ...] = ()  # the first 8, in source order
    arg_count: int = 0  # all positional ones
    keywords: tuple[str, ...] = ()  # all keyword names


class Binding(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """`local` names `imported` of the module: `*` is the module itself, `default` its default export."""

    local: str
    imported: str
    start: int
    end: int
    type_only: bool = False


class Import(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One import of one module. `level` counts Python's leading dots; `module` is the text behind them."""

    kind: str  # import from star namespace side_effect dynamic require reexport use mod include
    module: str
    start: int
    end: int
    scope: int
    bindings: tuple[Binding, ...] = ()
    level: int = 0
    type_only: bool = False


class Export(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """`name` leaves the document as `exported`; `module` is set when it only passes through (`export … from`)."""

    name: str
    exported: str
    start: int
    end: int
    module: str = ""
    type_only: bool = False


class Flow(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A value that goes somewhere: what later resolution needs, no more.

    kind: assign annotate return raise catch await yield. `target` and `value` are dotted names or
    callee texts; `value_kind` is one of Argument.kind; a `call` value starts where its Call starts.
    """

    kind: str
    target: str
    value: str
    value_kind: str
    start: int
    end: int
    value_start: int
    scope: int


class Reference(NamedTuple):
    name: str
    start: int
    end: int
    role: str


ROLES = ("reference", "call", "attribute", "type", "keyword", "decorator", "import", "assignment", "label")


QUIET = ("comment", "docstring", "string")


class Quiet(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Stretches that are not code, packed: disjoint, ascending, the code inside a string left out."""

    starts: bytes = b""  # uint32 each
    ends: bytes = b""
    kinds: bytes = b""  # one byte each, index into QUIET


class References(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Identifier uses that are not definitions, packed by offset: a million of them must not be a million objects."""

    names: tuple[str, ...] = ()
    offsets: bytes = b""  # uint32 each, ascending
    name_ids: bytes = b""  # uint32 each
    roles: bytes = b""  # one byte each, index into ROLES
    quiet: Quiet | None = None  # where no reference can be; None where the language does not say

    def __len__(self) -> int:
        return len(self.roles)

    def __iter__(self) -> Iterator[Reference]:
        offsets, ids, names = array("I", self.offsets), array("I", self.name_ids), self.names
        for offset, name_id, role in zip(offsets, ids, self.roles, strict=True):
            name = names[name_id]
            yield Reference(name, offset, offset + len(name.encode()), ROLES[role])

    def of_role(self, role: str) -> Iterator[tuple[str, int]]:
        """(name, start) of those that play a role."""
        names, number = self.names, ROLES.index(role)
        columns = zip(array("I", self.offsets), array("I", self.name_ids), self.roles, strict=True)
        return ((names[name_id], offset) for offset, name_id, found in columns if found == number)


class FileFacts(msgspec.Struct, frozen=True):
    """Everything one document says. Offsets are those of the file that holds it, also for embedded documents."""

    language: str
    symbols: tuple[Symbol, ...] = ()  # by (start, -end, name_start)
    calls: tuple[Call, ...] = ()  # by (start, end, name_start)
    imports: tuple[Import, ...] = ()
    exports: tuple[Export, ...] = ()
    flows: tuple[Flow, ...] = ()
    references: References = References()
    chunks: tuple[Chunk, ...] = ()
    problems: tuple[Problem, ...] = ()
    segment: Segment | None = None
    embedded: tuple[FileFacts, ...] = ()
    code: Code | None = None  # where the language says what its code does with values


class Chunk(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A piece that can be found and read alone: a definition, a root-level statement, or the module itself.

    chunks[0] is the module chunk; it is no one's parent (`parent` of a root chunk is -1).
    """

    kind: str  # the symbol's kind, or module import export expression control comment statement part
    name: str
    symbol: int  # index into FileFacts.symbols, -1 for what is no definition
    parent: int  # index into FileFacts.chunks
    children: tuple[int, ...]
    depth: int
    start: int
    end: int
    span_hash: str
    pre_hash: str
    post_hash: str
    uid_suffix: str  # spanHash, with context hashes and ordinal where twins need them
    collision_of: str = ""  # the uid_suffix this one would have had
    imports: tuple[int, ...] = ()  # indices into FileFacts.imports that its code uses
