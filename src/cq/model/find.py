"""What `cq find` answers: results by rank, how they are connected, and a snapshot of every file they stand in."""

from __future__ import annotations

import msgspec

from cq.model.answer import Answer


class ScoreParts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a score is made of, each 0 to 1 among the candidates of one question. Where the user weighs the reranker and
    the vectors, `rerank` and `vector` are what was weighed, and depend on no other candidate."""

    lexical: float = 0.0
    body: float = 0.0
    signature: float = 0.0
    rerank: float = 0.0
    late: float = 0.0  # word by word
    prior: float = 1.0  # below 1 for tests, documentation and data
    file: float = 0.0  # what its file's name and contents, and a name in the question, add
    vector: float = 0.0  # likeness to the question, of the whole or of its signature


class Result(msgspec.Struct, frozen=True, omit_defaults=True):
    """One definition or statement. `score` is 0 to 1; an exact lookup is 1."""

    rank: int
    score: float
    parts: ScoreParts
    file: str
    name: str
    qualified_name: str
    kind: str
    start_line: int
    end_line: int
    chunk_uid: str
    symbol_id: str = ""
    start_col: int = 1


class CallNode(msgspec.Struct, frozen=True, omit_defaults=True):
    """A definition that is called, or calls. `file` is empty for what comes from outside. `mark`: ★ is a result, ◆ is
    used by several results and is none. The tree ends at a `cycle`, or at the `depth_limit` where it would go on."""

    name: str
    file: str = ""
    calls: tuple[CallNode, ...] = ()
    result: int = 0  # its rank, 0 for none
    mark: str = ""
    cycle: bool = False
    depth_limit: bool = False


class TypeUse(msgspec.Struct, frozen=True, omit_defaults=True):
    """A type where a value comes in or goes out: of the parameter `name`, "" for what is returned. `origin` is the file
    or module that defines it, "" for one of the language's own."""

    type: str
    name: str = ""
    origin: str = ""
    uses: tuple[TypeUse, ...] = ()  # types in its own definition, as deep as was asked


class Node(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known about one result."""

    rank: int
    name: str
    file: str
    kind: str
    modifiers: tuple[str, ...] = ()
    exported: bool = False
    refs: int = 0  # files that refer to it
    references: dict[str, int] = {}  # the first of them, most calls first: file -> calls, 0 where it is only named
    unlinked: bool = False  # nothing is known of what refers to it
    by_name: bool = False  # counted by its name alone: no link leads to it
    signature: str = ""
    extends: tuple[TypeUse, ...] = ()
    implements: tuple[TypeUse, ...] = ()
    subtypes: tuple[TypeUse, ...] = ()
    calls: tuple[CallNode, ...] = ()
    callers: tuple[CallNode, ...] = ()
    uncertain_calls: int = 0  # of which nobody knows what they mean
    types_in: tuple[TypeUse, ...] = ()
    types_out: tuple[TypeUse, ...] = ()
    types: tuple[TypeUse, ...] = ()  # all that it names
    members: tuple[str, ...] = ()
    value: str = ""  # of a constant: its type and what it is set to, as written
    uses: tuple[str, ...] = ()  # keys `file:name` of what it refers to otherwise than by a call
    line: int = 0
    same_as: int = 0  # the rank of a better result that has the same name and code, letter by letter


class Pattern(msgspec.Struct, frozen=True, omit_defaults=True):
    """`kind`: hub, shared_dep, shared_type, diamond, cycle. `by` are the ranks of the results it is about."""

    kind: str
    name: str
    file: str = ""
    result: int = 0
    by: tuple[int, ...] = ()
    path: tuple[str, ...] = ()  # of a diamond or cycle: the names on the way
    of: int = 0


class ConnectionGraph(msgspec.Struct, frozen=True, omit_defaults=True):
    query: str
    call_depth: int
    nodes: tuple[Node, ...]
    patterns: tuple[Pattern, ...] = ()


class Snapshot(msgspec.Struct, frozen=True, omit_defaults=True):
    """The results of one file with what they use of it; source as it stands. `collapsed` are the ranks of results that
    were too long: only the headers of what they hold."""

    file: str
    language: str
    source: str
    score: float
    results: tuple[int, ...]
    tokens: int
    collapsed: tuple[int, ...] = ()


class FindAnswer(Answer, frozen=True):
    """`results` by rank, then how they are connected, then the snapshots, the best first."""

    results: tuple[Result, ...] = ()
    graph: ConnectionGraph | None = None
    snapshots: tuple[Snapshot, ...] = ()
