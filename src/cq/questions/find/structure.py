"""What is known about a result beside its source: signature, hierarchy, calls in and out, references, types, members.

Only what resolution is sure of is shown as a call; the rest is counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from cq.graph.links import is_by_name
from cq.model.answer import Truncation
from cq.model.edge import Candidate, Edge, SymbolRef
from cq.model.find import CallNode, Node, TypeUse
from cq.questions.find.connect import key_of
from cq.snapshot.relations import Relations
from cq.source.role import find_role

if TYPE_CHECKING:
    from cq.model.facts import Chunk, Symbol
    from cq.snapshot.files import HeldFile
    from cq.snapshot.target import Definition

MAX_DEPTH = 25  # of a call tree that was asked for without a limit
MAX_NODES = 300  # in the trees of one result
MAX_CALLER_FILES = 20
MAX_MEMBERS = 60
MAX_REFERENCES = 20
MAX_ASKED = 400  # files with the name of an alias or value that are asked what they mean by it
CALLS = ("calls", "instantiates")
_DOTTED = re.compile(r"[\w$]+(?:(?:\.|::)[\w$]+)*\Z")
_TYPE_NAME = re.compile(r"[A-Za-z_$][\w$]*")
_LITERAL = re.compile(r"""\bLiteral\[[^\]]*\]""")  # the words in it are no types
_ORDINAL = re.compile(r"#\d+")
_NOTHING = frozenset({"", "void", "None", "()", "never", "Promise<void>", "undefined"})
_OWN = frozenset({"self", "cls", "this"})


class Structure:
    """Describes results; keeps count of what a cap left out."""

    def __init__(self, relations: Relations | None, call_depth: int, type_depth: int) -> None:
        self._relations = relations
        self.call_depth = MAX_DEPTH if call_depth < 0 else call_depth
        self.type_depth = type_depth
        self.truncated: list[Truncation] = []
        self._left = 0
        self._out: dict[tuple[str, int], dict[str, list[Edge]]] = {}

    @property
    def relations(self) -> Relations:
        assert self._relations is not None
        return self._relations

    def describe_chunk(self, rank: int, file: HeldFile, chunk: Chunk) -> Node:
        return Node(rank, chunk.name, file.path, chunk.kind)

    def describe(self, rank: int, row: Definition) -> Node:
        symbol, symbols = row.symbol, row.file.symbols[row.document]
        if self._relations is None:
            return Node(
                rank, symbol.qualified_name, row.file.path, symbol.kind, symbol.modifiers, symbol.exported,
                signature=" ".join(symbol.signature.split()), extends=tuple(map(TypeUse, symbol.bases)), unlinked=True,
                members=self._find_members(row, symbols) if symbol.kind_group in ("class", "type") else (),
            )  # fmt: skip
        relations = self._relations
        place = relations.find_place(row)
        node = place or Candidate(row.file.path, row.document, symbol.qualified_name)
        is_type = symbol.kind_group in ("class", "type")
        sources = [node, *(relations.members(node)[:MAX_MEMBERS] if place and is_type else ())] if place else []
        edges = [edge for source in sources for edge in self._find_out(source)]
        holder = self._find_class(row, symbols)
        above = holder if not is_type else place
        referrers = relations.referrers.find_files(node)
        counts, by_name = self._count_files(row, place, referrers)
        members = self._find_members(row, symbols) if is_type else ()
        value = _describe_value(symbol) if symbol.kind_group == "value" else ""
        inherits = [edge.ref for edge in self._find_out(above) if edge.kind == "inherits"] if above else []
        extends, implements = self._split_bases(inherits, symbol)
        types_in, types_out = self._find_types(row, edges) if symbol.kind_group in ("function", "method") else ((), ())
        calls = [edge for edge in edges if edge.kind in CALLS]
        return Node(
            rank,
            symbol.qualified_name,
            row.file.path,
            symbol.kind,
            symbol.modifiers,
            symbol.exported,
            len(counts),
            dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MAX_REFERENCES]),
            False,
            by_name,
            " ".join(symbol.signature.split()),
            extends,
            implements,
            tuple(self._find_subtypes(node, referrers)) if is_type else (),
            self._grow(symbol.qualified_name, sources, self._find_called),
            self._grow(symbol.qualified_name, [node] if place else [], self._find_callers),
            sum(1 for edge in calls if edge.ref.status in ("ambiguous", "unresolved")),
            types_in,
            types_out,
            tuple(
                dict.fromkeys(_as_use(edge.ref) for edge in edges if edge.kind == "type_uses" and _type_name(edge.ref))
            ),
            members,
            value,
            tuple(dict.fromkeys(self._find_uses(edges))),
        )

    def _find_out(self, node: Candidate) -> list[Edge]:
        """Edges out of a definition as they were linked: a call on an unknown receiver stays unknown."""
        key = (node.path, node.document)
        if key not in self._out:
            by_scope: dict[str, list[Edge]] = {}
            documents = self.relations.documents.links(node.path)
            links = documents[node.document] if node.document < len(documents) else None
            if links is not None:
                for number, (scope, meaning) in enumerate(zip(links.scopes, links.calls, strict=True)):
                    source = Candidate(node.path, node.document, scope)
                    made = links.constructors.get(number)
                    found = by_scope.setdefault(scope, [])
                    found += [Edge("calls", source, links.refs[made], number)] if made is not None else []
                    found.append(Edge("calls" if made is None else "instantiates", source, links.refs[meaning], number))
                pairs = [("inherits", links.inherits), ("type_uses", links.type_uses), ("raises", links.raises)]
                for kind, rows in pairs:
                    for name, meaning in rows:
                        source = Candidate(node.path, node.document, name)
                        by_scope.setdefault(name, []).append(Edge(kind, source, links.refs[meaning]))
            self._out[key] = by_scope
        return self._out[key].get(node.name, [])

    # -- calls -------------------------------------------------------------------------------------

    def _grow(
        self, name: str, roots: Sequence[Candidate], ask: Callable[[Candidate], list[tuple[str, Candidate | None]]]
    ) -> tuple[CallNode, ...]:
        self._left = MAX_NODES
        found: dict[tuple[str, str], CallNode] = {}
        own = set(roots)
        for root in roots:
            for call in self._grow_below(root, self.call_depth, (root,), ask):
                # What a class's methods call of one another is its own business.
                inside = any((call.file, call.name) == (place.path, _plain(place.name)) for place in own - {root})
                if not inside or len(roots) == 1:
                    found.setdefault((call.file, call.name), call)
        if self._left < 0:
            self.truncated.append(
                Truncation(f"calls of {name}", "nodes", MAX_NODES, MAX_NODES - self._left, -self._left)
            )
        return tuple(found.values())

    def _grow_below(
        self,
        node: Candidate,
        depth: int,
        way: tuple[Candidate, ...],
        ask: Callable[[Candidate], list[tuple[str, Candidate | None]]],
    ) -> list[CallNode]:
        rows: dict[tuple[str, str], CallNode] = {}
        if depth <= 0:
            return []
        for label, target in ask(node):
            key = (target.path, _plain(target.name)) if target else ("", label)
            if key in rows:
                continue
            self._left -= 1
            if self._left < 0:
                continue
            if target is None:
                rows[key] = CallNode(label)
            elif target in way:
                rows[key] = CallNode(_plain(target.name), target.path, cycle=True)
            elif depth == 1:
                limited = self.call_depth != 1 and bool(ask(target))
                rows[key] = CallNode(_plain(target.name), target.path, depth_limit=limited)
            else:
                below = self._grow_below(target, depth - 1, (*way, target), ask)
                rows[key] = CallNode(_plain(target.name), target.path, tuple(below))
        return list(rows.values())

    def _find_called(self, node: Candidate) -> list[tuple[str, Candidate | None]]:
        """(label, definition) of every call that surely means something, in source order; None for what is outside."""
        found: list[tuple[str, Candidate | None]] = []
        made: set[int] = set()
        for edge in self._find_out(node):
            if edge.kind not in CALLS or (edge.kind == "instantiates" and edge.call in made):
                continue  # the constructor was named already
            target = edge.ref.resolved
            if target is not None:
                made.add(edge.call)
                found.append((target.name, target))
            elif edge.ref.status == "external" and (label := self._name_outside(edge)):
                found.append((label, None))
        return found

    def _name_outside(self, edge: Edge) -> str:
        call = self.relations.call(edge)
        if call is not None and len(call.callee) <= 60 and _DOTTED.match(call.callee):
            return call.callee
        return f"{edge.ref.module}.{edge.ref.name}".strip(".") if edge.ref.name else ""

    def _find_callers(self, node: Candidate) -> list[tuple[str, Candidate | None]]:
        referrers = sorted(
            self.relations.referrers.find_files(node), key=lambda row: (find_role(row[0]) != "src", row[0])
        )
        if len(referrers) > MAX_CALLER_FILES:
            omitted = len(referrers) - MAX_CALLER_FILES
            cut = Truncation(f"callers of {node.name}", "files", MAX_CALLER_FILES, len(referrers), omitted)
            self.truncated += [cut] if cut not in self.truncated else []
        found: dict[Candidate, None] = {}
        for path, calls in referrers[:MAX_CALLER_FILES]:
            for document, links in enumerate(self.relations.documents.links(path)):
                for call in calls:
                    number = call & 0xFFFFFF
                    if links is None or call >> 24 != document or number >= len(links.calls):
                        continue
                    refs = [links.refs[links.calls[number]]]
                    refs += [links.refs[links.constructors[number]]] if number in links.constructors else []
                    if any(ref.resolved == node and not is_by_name(ref) for ref in refs):
                        found[Candidate(path, document, links.scopes[number])] = None
        return [(place.name or "module", place) for place in found]

    # -- types -------------------------------------------------------------------------------------

    def _find_class(self, row: Definition, symbols: Sequence[Symbol]) -> Candidate | None:
        number = row.symbol.parent
        while number >= 0 and symbols[number].kind_group not in ("class", "type"):
            number = symbols[number].parent
        return self.relations.documents.find_place(row.file.path, row.document, number) if number >= 0 else None

    def _split_bases(
        self, refs: Sequence[SymbolRef], symbol: Symbol
    ) -> tuple[tuple[TypeUse, ...], tuple[TypeUse, ...]]:
        extends: list[TypeUse] = []
        implements: list[TypeUse] = []
        for ref in refs:
            target = ref.resolved
            found = self.relations.symbol(target) if target else None
            name = _plain(target.name) if target else ref.name
            if not name:
                continue
            use = TypeUse(name, origin=target.path if target else ref.module)
            abstract = found is not None and found.kind in ("interface", "trait", "protocol")
            (implements if abstract and symbol.kind != "interface" else extends).append(use)
        return tuple(extends), tuple(implements)

    def _find_subtypes(self, node: Candidate, referrers: Sequence[tuple[str, Sequence[int]]]) -> list[TypeUse]:
        found: list[TypeUse] = []
        for path, _ in referrers[: MAX_CALLER_FILES * 5]:
            for links in self.relations.documents.links(path):
                if links is not None:
                    names = [name for name, number in links.inherits if links.refs[number].resolved == node]
                    found += [TypeUse(_plain(name), origin=path) for name in names]
        return found

    def _find_types(self, row: Definition, edges: Sequence[Edge]) -> tuple[tuple[TypeUse, ...], tuple[TypeUse, ...]]:
        """Where the types of parameters and of the result come from."""
        symbol = row.symbol
        if self.type_depth <= 0:
            return (), ()
        known = {_type_name(edge.ref): edge.ref for edge in edges if edge.kind == "type_uses"}
        parameters, returned = split_signature(symbol.signature, symbol.name)
        words = dict.fromkeys(word for _, text in (*parameters, ("", returned)) for word in _find_words(text))
        for word in words.keys() - known.keys():  # an alias: links lead to classes alone
            ref = self.relations.meanings.find_name(row.file.path, row.document, word, symbol.name_end, "type")
            if ref.resolved is not None and ref.resolved.name:
                known[word] = ref
        types_in = [use for name, text in parameters for use in self._find_uses_of_type(name, text, known)]
        types_out = [] if returned in _NOTHING else self._find_uses_of_type("", returned, known)
        return tuple(types_in), tuple(types_out)

    def _find_uses_of_type(self, name: str, text: str, known: dict[str, SymbolRef]) -> list[TypeUse]:
        found: list[TypeUse] = []
        for word in dict.fromkeys(_find_words(text)):
            ref = known.get(word)
            if ref is not None and (ref.resolved or ref.module):
                origin = ref.resolved.path if ref.resolved else ref.module
                uses = self._follow_type(ref.resolved, self.type_depth - 1, {ref.resolved}) if ref.resolved else ()
                found.append(TypeUse(word, name, origin, uses))
        return found or ([TypeUse(text, name)] if text else [])

    def _follow_type(self, node: Candidate, depth: int, seen: set[Candidate]) -> tuple[TypeUse, ...]:
        """The types in the definition of a type."""
        if depth <= 0:
            return ()
        found: list[TypeUse] = []
        for edge in self._find_out(node):
            target = edge.ref.resolved
            if edge.kind in ("type_uses", "inherits") and target is not None and target not in seen:
                seen.add(target)
                below = self._follow_type(target, depth - 1, seen)
                found.append(TypeUse(_plain(target.name), origin=target.path, uses=below))
        return tuple(found)

    def _find_uses(self, edges: Sequence[Edge]) -> list[str]:
        targets = [edge.ref.resolved for edge in edges if edge.kind in ("inherits", "raises")]
        return [key_of(target.path, _plain(target.name)) for target in targets if target is not None]

    # -- the rest ----------------------------------------------------------------------------------

    def _find_members(self, row: Definition, symbols: Sequence[Symbol]) -> tuple[str, ...]:
        holders = {row.number}
        if row.symbol.kind in ("struct", "enum", "union"):
            holders |= {n for n, s in enumerate(symbols) if s.kind == "impl" and s.name == row.symbol.name}
        members = [s for s in symbols if s.parent in holders and s.kind not in ("parameter", "type_parameter")]
        names = [f"{s.name}()" if s.kind_group in ("method", "function") else s.name for s in members]
        return tuple(dict.fromkeys(names))

    def _count_files(
        self, row: Definition, place: Candidate | None, referrers: Sequence[tuple[str, Sequence[int]]]
    ) -> tuple[dict[str, int], bool]:
        """The files that refer to a definition, with how many of their calls do, and whether only its name says so.
        Links count what has a node of its own, but for what names it in its own file; aliases of types and values are
        asked for where they are mentioned."""
        relations, symbol = self.relations, row.symbol
        if place is not None:
            counts = {path: len(calls) for path, calls in referrers}
            # What follows `import * as m` leads to the module, for links; a type may come through several of these.
            importing = relations.documents.find_importing(place.path) if symbol.parent < 0 else []
            beside, is_type = {row.file.path, *importing}, symbol.parent < 0 and symbol.kind_group == "type"
            users = [file.path for file in relations.files.users(symbol.name)]
            asked = [path for path in users if path not in counts and (path in beside or is_type)][:MAX_ASKED]
            return counts | {path: 0 for path in asked if relations.is_named_in(path, row)}, False
        users = [file.path for file in relations.files.users(symbol.name)]
        if (
            symbol.parent >= 0
            or len(users) > MAX_ASKED
            or not relations.documents.is_linked(row.file.path, row.document)
        ):
            return dict.fromkeys(users, 0), True
        return {path: 0 for path in users if relations.is_named_in(path, row)}, False


def split_signature(signature: str, name: str) -> tuple[list[tuple[str, str]], str]:
    """`f(a: A, b=1) -> R` is ([("a", "A")], "R"); parameters without a type are left out."""
    start = signature.find("(", max(signature.find(name), 0))
    if start < 0:
        return [], ""
    parts, depth, at = list[str](), 0, start + 1
    begin = at
    while at < len(signature):
        char = signature[at]
        if char in "([{" or (char == "<" and signature[at - 1 : at] != " "):
            depth += 1
        elif char in ")]}" or (char == ">" and signature[at - 1] not in "-="):
            if depth == 0 and char == ")":
                break
            depth -= depth > 0
        elif char == "," and depth == 0:
            parts.append(signature[begin:at])
            begin = at + 1
        at += 1
    parts.append(signature[begin:at])
    found: list[tuple[str, str]] = []
    for part in parts:
        left, colon, right = part.partition(":")
        words = re.findall(r"[\w$]+", left)
        if colon and words and words[-1] not in _OWN:
            found.append((words[-1], re.split(r"(?<![=<>!])=(?![=>])", right)[0].strip()))
    rest = signature[at + 1 :].strip()
    return found, rest.removeprefix("->").removeprefix(":").partition(" where ")[0].strip(" :{")


def _find_words(type_text: str) -> list[str]:
    return _TYPE_NAME.findall(_LITERAL.sub("", type_text))


def _describe_value(symbol: Symbol) -> str:
    """`X: int = 1` is `int (value: 1)`."""
    text = " ".join(symbol.signature.split())
    left, equals, value = text.partition("=")
    kind = left.partition(":")[2].strip()
    value = value.strip().rstrip(";,")
    if not equals or len(value) > 60:
        return kind
    if not kind:
        kind = (
            "number" if re.match(r"-?[\d.][\w.]*\Z", value)
            else "string" if value[:1] in "'\"`"
            else "boolean" if value in ("true", "false", "True", "False")
            else ""
        )  # fmt: skip
    return f"{kind} (value: {value})" if kind else ""


def _type_name(ref: SymbolRef) -> str:
    return (ref.resolved.name if ref.resolved else ref.name or ref.module).rpartition(".")[2]


def _as_use(ref: SymbolRef) -> TypeUse:
    return TypeUse(_type_name(ref), origin=ref.resolved.path if ref.resolved else ref.module)


def _plain(name: str) -> str:
    """Without the number that tells twins apart; a module's own code is called so."""
    return _ORDINAL.sub("", name) or "module"
