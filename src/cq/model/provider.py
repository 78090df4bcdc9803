"""What language servers and other providers answer: plain data in byte offsets of the file, each with its coverage."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec


class Coverage(msgspec.Struct, frozen=True):
    """How far an answer can be trusted. Nothing found in a `partial` source is not "there is none"."""

    state: str  # complete partial unresolved
    reason: str = ""


class Place(msgspec.Struct, frozen=True, order=True):
    """A span of a file of the root; or of one outside, which is named in `external` by as much as may be shown."""

    path: str
    start: int = 0
    end: int = 0
    external: str = ""
    line: int = 0  # 1-based, for external ones only: their text is not ours


class Parameter(msgspec.Struct, frozen=True):
    name: str
    type: str = ""
    default: str = ""


class Hover(msgspec.Struct, frozen=True):
    """What a server shows for a name: its contract where the text has the shape of one, and the text itself."""

    text: str
    kind: str = ""  # as the server calls it: method, class, const, ...
    signature: str = ""
    parameters: tuple[Parameter, ...] = ()
    returns: str = ""
    type: str = ""  # of a value; for a function it is the signature
    doc: str = ""
    start: int = -1
    end: int = -1


class Outline(msgspec.Struct, frozen=True):
    """A symbol as a server lists it. `place` is its name; `start..end` all of it where that is known."""

    name: str
    kind: str
    place: Place
    start: int = 0
    end: int = 0
    detail: str = ""
    container: str = ""
    depth: int = 0


class HierarchyItem(msgspec.Struct, frozen=True):
    """A caller, a callee, a supertype or a subtype; `sites` are the calls that make it one, in the caller's file."""

    name: str
    kind: str
    place: Place
    detail: str = ""
    sites: tuple[Place, ...] = ()


class Token(msgspec.Struct, frozen=True):
    start: int
    end: int
    kind: str
    modifiers: tuple[str, ...] = ()


class Hint(msgspec.Struct, frozen=True):
    offset: int
    label: str
    kind: str = ""  # type parameter
    tooltip: str = ""


class Signature(msgspec.Struct, frozen=True):
    """What may be passed to the call around a place; `active` is the parameter the place stands in, -1 for none."""

    label: str
    parameters: tuple[str, ...] = ()
    active: int = -1
    doc: str = ""
    chosen: bool = False  # of several overloads the one the server takes


class Expansion(msgspec.Struct, frozen=True):
    """What a macro call becomes."""

    name: str
    text: str


class Runnable(msgspec.Struct, frozen=True):
    """Something that can be run, as a server says. cq lists it and runs nothing."""

    label: str
    kind: str
    place: Place | None = None
    args: tuple[str, ...] = ()


class Related(msgspec.Struct, frozen=True):
    place: Place
    message: str


class Diagnostic(msgspec.Struct, frozen=True):
    place: Place
    severity: str  # error warning info hint
    message: str
    code: str = ""
    source: str = ""
    tags: tuple[str, ...] = ()  # unnecessary deprecated
    related: tuple[Related, ...] = ()


class Action(msgspec.Struct, frozen=True):
    """A change a server offers. cq lists it and changes nothing."""

    title: str
    kind: str = ""
    preferred: bool = False
    disabled: str = ""
    edits: int = 0
    command: str = ""


class Name(msgspec.Struct, frozen=True):
    """A name of a scope, by Python's own symbol table."""

    name: str
    flags: tuple[str, ...]  # parameter local global nonlocal free cell imported annotated assigned referenced ...


class Scope(msgspec.Struct, frozen=True):
    kind: str  # module function class annotation type_parameters ...
    name: str
    qualified_name: str
    line: int
    names: tuple[Name, ...]


class Operation(msgspec.Struct, frozen=True):
    """What one instruction of a code object tells about names; `start..end` is the source it came from, -1 if none."""

    kind: str  # load_global load_name store_global attribute call import raise ...
    argument: str
    start: int
    end: int


class Protected(msgspec.Struct, frozen=True):
    """An entry of the exception table: what is raised in these lines goes on at the line of the handler."""

    first_line: int
    last_line: int
    handler_line: int
    depth: int  # of the stack that the handler begins with


class Code(msgspec.Struct, frozen=True):
    name: str
    qualified_name: str
    line: int
    operations: tuple[Operation, ...]
    local_names: tuple[str, ...] = ()  # parameters first
    cells: tuple[str, ...] = ()
    free: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()  # numbers and texts, shortened
    protected: tuple[Protected, ...] = ()


Item = TypeVar("Item")


class Reply(msgspec.Struct, Generic[Item], frozen=True):
    """One provider's answer to one question. `dropped` counts what it said about places that could not be mapped."""

    provider: str
    plane: str
    coverage: Coverage
    items: tuple[Item, ...] = ()
    dropped: int = 0
    timed_out: bool = False
    failed: bool = False  # it was not asked, or could not answer: another time it may

    @property
    def source(self) -> str:
        return name_source(self.provider)

    @property
    def answered(self) -> bool:
        return self.coverage.state != "unresolved"


def name_source(provider: str) -> str:
    """The name of evidence: `lsp.ty`. Servers that are only configured are called so already."""
    return f"lsp.{provider.removeprefix('lsp.')}"


class Capabilities(msgspec.Struct, frozen=True):
    """What a running server offers. `server` is its own table with camelCase keys, dynamic registrations merged."""

    name: str = ""
    version: str = ""
    encoding: str = "utf-16"
    server: dict[str, Any] = {}
    client: dict[str, Any] = {}
    experimental: dict[str, Any] = {}

    def has(self, key: str) -> bool:
        """Present and neither null nor false: `inlayHintProvider: {}` means yes."""
        return self.server.get(key) not in (None, False)


class Telemetry(msgspec.Struct, frozen=True):
    """How the questions to one provider went. Every question counts once, after all its attempts."""

    available: bool = False
    attempted: int = 0
    applied: int = 0
    failed: int = 0
    skipped: int = 0
    timed_out: int = 0

    @property
    def status(self) -> str:
        if not self.available:
            return "unavailable"
        if not self.attempted:
            return "skipped"
        if not self.applied:
            return "failed"
        return "partial" if self.failed or self.applied < self.attempted else "ok"


class ProviderStatus(msgspec.Struct, frozen=True):
    """One provider as the doctor shows it; the same detection and gating that the engine uses."""

    id: str
    label: str
    priority: int
    languages: tuple[str, ...]
    kinds: tuple[str, ...]
    available: bool
    enabled: bool
    version: str = ""
    reasons: tuple[str, ...] = ()  # why it is not available or not enabled
    advice: str = ""
    planes: tuple[str, ...] = ()  # of the running server; empty where none runs
    errors: tuple[str, ...] = ()  # the last ones
    notes: tuple[str, ...] = ()
