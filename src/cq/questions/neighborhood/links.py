"""What a definition is linked with over the whole repository: calls, types, imports, uses, tests."""

from __future__ import annotations

import posixpath
import re
from array import array
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from cq.model.answer import Truncation
from cq.model.edge import Candidate, Certainty, Edge
from cq.model.facts import ROLES, Binding, Import
from cq.questions.neighborhood.members import LOCAL, Found, Member, Mention, Subject, count_certain, find_path, rank
from cq.snapshot.relations import CALLS, Relations
from cq.snapshot.target import module_name
from cq.source.role import find_role

if TYPE_CHECKING:
    from cq.snapshot.files import HeldFile

MAX_EXPANDED = 60  # definitions whose own callers or callees are asked for, beyond the first step
MAX_SCANNED = 150  # files that are read for uses of a name
TEST_DEPTH = 3
TYPE_DEPTH = 20
_TYPES = ("class", "type")
_ABSTRACT = frozenset({"interface", "trait", "protocol"})
_STATEMENT = 100  # characters of an import that are shown as they are
_TEST = re.compile(r"(?:^|::)(?:test|rstest|proptest|wasm_bindgen_test)\b")
_WORD = re.compile(rb"[\w$]+")
_SELF = (b"self.", b"cls.", b"this.", b"Self::")


class _Group(msgspec.Struct):
    """All edges between two definitions."""

    kind: str
    certainty: Certainty
    weight: float
    evidence: str
    sites: list[tuple[str, int]]

    def make(self, place: Candidate, outward: bool, depth: int, via: Candidate | None, kind: str = "") -> Member:
        sites = tuple(self.sites)
        return Member(place, kind or self.kind, outward, self.certainty, self.weight, self.evidence, sites, depth, via)

    def add(self, edge: Edge, site: tuple[str, int]) -> None:
        certainty = edge.ref.certainty
        if (certainty == "certain", edge.ref.confidence) > (self.certainty == "certain", self.weight):
            self.kind, self.weight, self.evidence = edge.kind, edge.ref.confidence, f"graph.{edge.ref.evidence}"
            self.certainty = certainty
        if site not in self.sites:
            self.sites.append(site)


def find_callers(relations: Relations, subject: Subject, depth: int = 1) -> Found:
    """Who calls it; of a class, who makes an instance. Beyond the first step only certain calls are followed."""
    return _walk(relations, subject, depth, _callers, outward=False)


def find_callees(relations: Relations, subject: Subject, depth: int = 1) -> Found:
    """What it calls, in the order of the code; of a class, what its methods call. What comes from outside is named
    in the metadata."""
    found = _walk(relations, subject, depth, _callees, outward=True)
    outside: dict[str, None] = {}
    unknown = 0
    for node in _bodies(relations, subject):
        for edge in relations.referrers.find_out(node):
            if edge.kind in CALLS and edge.ref.status == "external":
                module, name = edge.ref.module, edge.ref.name
                outside[f"{module}.{name}" if module and not module.endswith(name) else module or name] = None
            elif edge.kind in CALLS and edge.ref.status == "unresolved":
                unknown += 1
    metadata = found.metadata | ({"external": list(outside)[:50], "external_count": len(outside)} if outside else {})
    return msgspec.structs.replace(found, metadata=metadata | ({"unresolved_calls": unknown} if unknown else {}))


_Ask = Callable[[Relations, Candidate, bool], dict[Candidate, _Group]]


def _walk(relations: Relations, subject: Subject, depth: int, ask: _Ask, *, outward: bool) -> Found:
    """Breadth first. A way that comes back to where it was is marked, not followed."""
    if subject.place is None:
        return Found()
    centers = _bodies(relations, subject) if outward else [subject.place]
    home = set(centers)
    members: dict[Candidate, Member] = {}
    parents: dict[Candidate, Candidate | None] = dict.fromkeys(centers)
    cycles: set[Candidate] = set()
    frontier, left_out = list(centers), 0
    for distance in range(1, depth + 1):
        ahead: list[Candidate] = []
        if distance > 1:
            left_out += max(len(frontier) - MAX_EXPANDED, 0)
            frontier = frontier[:MAX_EXPANDED]
        for here in frontier:
            for other, group in ask(relations, here, distance == 1).items():
                if distance > 1 and group.certainty != "certain":
                    continue
                if other in home or _is_above(other, here, parents):
                    if group.certainty == "certain" and (other not in centers or other == subject.place):
                        cycles.add(here)
                    continue
                if other in members:
                    continue
                parents[other] = here
                via = here if distance > 1 else None
                members[other] = group.make(other, outward, distance, via)
                if group.certainty == "certain":
                    ahead.append(other)
        frontier = sorted(ahead, key=relations.order)
    rows = [
        msgspec.structs.replace(member, more={**member.more, "cycle": True}) if place in cycles else member
        for place, member in members.items()
    ]
    metadata = count_certain(rows) | ({"depth": depth} if depth > 1 else {})
    metadata |= {"recursive": True} if cycles & home else {}
    scope = "callees" if outward else "callers"
    cut = (Truncation(scope, "expanded", MAX_EXPANDED, MAX_EXPANDED + left_out, left_out),) if left_out else ()
    # Calls stand in the order of the code; callers have none.
    ranked = sorted(rows, key=lambda row: (row.certainty != "certain", row.depth)) if outward else rank(rows)
    return Found(tuple(ranked), metadata, cut)


def _is_above(node: Candidate, here: Candidate, parents: dict[Candidate, Candidate | None]) -> bool:
    at: Candidate | None = here
    while at is not None:
        if at == node:
            return True
        at = parents.get(at)
    return False


def _bodies(relations: Relations, subject: Subject) -> list[Candidate]:
    """Whose code a definition's own calls stand in: a class is its methods, in Rust those of its `impl` blocks."""
    if subject.place is None:
        return []
    if subject.symbol is not None and subject.symbol.kind_group in _TYPES:
        blocks = [subject.place, *_find_blocks(relations, subject), *_find_far_blocks(relations, subject)]
        return list(dict.fromkeys((subject.place, *(inner for block in blocks for inner in relations.members(block)))))
    return [subject.place]


def _callers(relations: Relations, node: Candidate, possible: bool) -> dict[Candidate, _Group]:
    found: dict[Candidate, _Group] = {}
    for edge in relations.referrers.find_into(node, possible=possible):
        if edge.kind in CALLS and edge.call >= 0:
            _add(found, edge.source, edge, relations)
    return found


def _callees(relations: Relations, node: Candidate, possible: bool) -> dict[Candidate, _Group]:
    found: dict[Candidate, _Group] = {}
    for edge in relations.referrers.find_out(node, possible=possible):
        if edge.kind in CALLS:
            for target in edge.ref.candidates:
                _add(found, target, edge, relations)
    return found


def _add(found: dict[Candidate, _Group], other: Candidate, edge: Edge, relations: Relations) -> None:
    call = relations.call(edge)
    group = found.get(other)
    if group is None:
        group = found[other] = _Group(edge.kind, "possible", -1.0, "", [])
    group.add(edge, (edge.source.path, max(call.name_start, call.start) if call is not None else 0))


def find_supertypes(relations: Relations, subject: Subject) -> Found:
    """What a type inherits, near ones first; of a method, the methods it takes the place of."""
    found, outside = _climb(relations, subject, up=True)
    return Found(found, {"external": outside} if outside else {})


def find_subtypes(relations: Relations, subject: Subject) -> Found:
    """What inherits a type; of a method, the methods that take its place."""
    return Found(_climb(relations, subject, up=False)[0])


def find_implementations(relations: Relations, subject: Subject) -> Found:
    """What stands behind an interface, a trait or an abstract class; of a method, those that override it."""
    symbol = subject.symbol
    if symbol is None:
        return Found()
    members = _climb(relations, subject, up=False)[0]
    if symbol.kind_group in _TYPES:
        if symbol.kind not in _ABSTRACT and not _is_abstract(relations, subject):
            return Found()
        members = tuple(
            member
            for member in members
            if isinstance(member.place, Candidate)
            and (found := relations.symbol(member.place)) is not None
            and found.kind not in _ABSTRACT
        )
    return Found(tuple(msgspec.structs.replace(member, edge_kind="implements") for member in members))


def _is_abstract(relations: Relations, subject: Subject) -> bool:
    symbol, row = subject.symbol, subject.row
    if symbol is None or row is None:
        return False
    if "abstract" in symbol.modifiers or any(base.rpartition(".")[2] in ("ABC", "Protocol") for base in symbol.bases):
        return True
    inner = subject.file.symbols[subject.document]
    return any(
        other.parent == row.number and any("abstract" in word for word in (*other.decorators, *other.modifiers))
        for other in inner
    )


def _climb(relations: Relations, subject: Subject, *, up: bool) -> tuple[tuple[Member, ...], list[str]]:
    symbol = subject.symbol
    if subject.place is None or symbol is None:
        return (), []
    kinds = ("inherits",) if symbol.kind_group in _TYPES else ("overrides",)
    members: dict[Candidate, Member] = {}
    outside: dict[str, None] = {}
    frontier = [subject.place]
    for distance in range(1, TYPE_DEPTH + 1):
        ahead: list[Candidate] = []
        for here in frontier:
            edges = (
                relations.referrers.find_out(here, possible=False)
                if up
                else relations.referrers.find_into(here, possible=False)
            )
            for edge in edges:
                if edge.kind not in kinds:
                    continue
                if up and edge.ref.status == "external":
                    outside[edge.ref.module or edge.ref.name] = None
                for other in edge.ref.candidates if up else (edge.source,):
                    if other == subject.place or other in members:
                        continue
                    kind, via = "extends" if kinds == ("inherits",) else "overrides", here if distance > 1 else None
                    ref = edge.ref
                    members[other] = Member(
                        other, kind, up, ref.certainty, ref.confidence, f"graph.{ref.evidence}", depth=distance, via=via
                    )
                    ahead.append(other)
        frontier = sorted(ahead, key=relations.order)
        if not frontier or len(members) > 1000:
            break
    return tuple(rank(members.values())), list(outside)


def find_imports(relations: Relations, subject: Subject) -> Found:
    """The imports its code uses, as they are written; of a module all of them."""
    held, document = subject.file, subject.document
    imports = held.imports[document][0]
    wanted = range(len(imports))
    if subject.symbol is not None:
        wanted = sorted(set(held.chunks[document][subject.symbol.chunk].imports))
    links = relations.documents.links_of(held.path, document)
    meant = {name: links.refs[number] for name, number in links.imports} if links is not None else {}
    # A statement may bind more than the definition uses.
    code = held.text[subject.symbol.start : subject.symbol.end] if subject.symbol is not None else None
    used = None if code is None else set(_WORD.findall(code))
    members: list[Member] = []
    for number in wanted:
        item = imports[number]
        for bound in item.bindings or (None,):
            name = bound.local if bound is not None else item.module
            if used is not None and bound is not None and name.encode() not in used:
                continue
            start, end = (bound.start, bound.end) if bound is not None else (item.start, item.end)
            ref = meant.get(name)
            more: dict[str, object] = {"module": "." * item.level + item.module}
            if ref is not None and ref.candidates:
                more["means"] = relations.label(ref.candidates[0])
            elif ref is not None and ref.status == "external":
                more["external"] = ref.module
            mention = Mention(
                held.path, start, end, "import", name, str(more.get("means", "")), _tell_import(held, item, name)
            )
            evidence = f"graph.{ref.evidence}" if ref is not None and ref.evidence else "syntax"
            weight = ref.confidence if ref is not None else 0.85
            members.append(Member(mention, "imports", True, "certain", weight, evidence, more=more))
    return Found(tuple(members))


def _tell_import(held: HeldFile, item: Import, name: str) -> str:
    """The statement on one line, or of a long one this name's part."""
    text = " ".join(held.text[item.start : item.end].decode("utf-8", "replace").split())
    return text if len(text) <= _STATEMENT else f"{name} from {'.' * item.level}{item.module}"


def find_importers(relations: Relations, subject: Subject) -> Found:
    """The files that import it by name, where they do; of what stands inside a definition, the outermost around it."""
    top = _outermost(relations, subject)
    if top is None:
        return Found()
    members: list[Member] = []
    # One pass over the files that import its module, by whatever name.
    sources = {
        (edge.source.path, edge.source.document)
        for edge in relations.referrers.find_into(top)
        if edge.kind == "imports"
    }
    if not top.name:
        sources = set(_importing(relations, top.path))
    for path, document in sorted(sources):
        held, links = relations.hold(path), relations.documents.links_of(path, document)
        if held is None or links is None or path == top.path:
            continue
        names = [
            (name, links.refs[number])
            for name, number in links.imports
            if any(place == top or (not top.name and place.path == top.path) for place in links.refs[number].candidates)
        ]
        bound = {b.local: (b, item) for item in held.imports[document][0] for b in item.bindings}
        for name, ref in names:
            if name in bound:
                binding, item = bound[name]
                text = _tell_import(held, item, name)
                mention = Mention(path, binding.start, binding.end, "import", name, module_name(path), text)
                evidence = f"graph.{ref.evidence}"
                members.append(Member(mention, "imports", False, ref.certainty, ref.confidence, evidence))
    if subject.place is None and top == subject.candidate:
        for held, document, item, binding in _import_value(relations, subject):
            del document
            text = _tell_import(held, item, binding.local)
            mention = Mention(
                held.path, binding.start, binding.end, "import", binding.local, module_name(held.path), text
            )
            members.append(Member(mention, "imports", False, "certain", 0.99, "graph.import"))
    metadata: dict[str, object] = {"of": relations.label(top)} if top != subject.place else {}
    return Found(
        tuple(rank(members)), metadata | ({"files": len({find_path(m.place) for m in members})} if members else {})
    )


def _import_value(relations: Relations, subject: Subject) -> Iterator[tuple[HeldFile, int, Import, Binding]]:
    """Imports of a value at root level. Links follow a value to its type, so the statements themselves are read."""
    symbol = subject.symbol
    if symbol is None or symbol.parent >= 0 or subject.place is not None:
        return
    files = relations.files.candidates((symbol.name,))
    for held in islice((file for file in files if file.path != subject.file.path), MAX_SCANNED):
        for document, (imports, _) in enumerate(held.imports):
            for item in imports:
                for binding in item.bindings:
                    if binding.imported == symbol.name and _names_module(held.path, item, subject.file.path):
                        yield held, document, item, binding


def _names_module(importer: str, item: Import, path: str) -> bool:
    """Whether the module of an import is a file, by its name alone."""
    own, module = module_name(path), item.module.replace("::", ".")
    folder = posixpath.dirname(importer)
    if item.level:  # from ..a import b
        base = "/".join(folder.split("/")[: folder.count("/") + 2 - item.level]) if folder else ""
        return module_name(posixpath.join(base, module.replace(".", "/"))) == own
    if module.startswith(("./", "../")):
        return module_name(posixpath.normpath(posixpath.join(folder, module))) == own
    for prefix in ("crate.", "self.", "super."):
        module = module.removeprefix(prefix)
    return bool(module) and f".{own}".endswith(f".{module}")


def _outermost(relations: Relations, subject: Subject) -> Candidate | None:
    if subject.row is None:
        return subject.place
    symbols, number = subject.file.symbols[subject.document], subject.row.number
    while symbols[number].parent >= 0:
        number = symbols[number].parent
    place = relations.documents.find_place(subject.file.path, subject.document, number)
    return place or (Candidate(subject.file.path, subject.document, symbols[number].qualified_name))


def _importing(relations: Relations, path: str) -> Iterator[tuple[str, int]]:
    for source in relations.documents.find_importing(path):
        for document, links in enumerate(relations.documents.links(source)):
            if links is not None:
                yield source, document


def find_references(relations: Relations, subject: Subject) -> Found:
    """Every use of its name that means it: calls on known receivers, names by their scope, imports. What may mean it
    comes after what does."""
    symbol = subject.symbol
    found: dict[tuple[str, int], Member] = {}

    def add(path: str, start: int, role: str, certainty: Certainty, weight: float, evidence: str) -> None:
        known = found.get((path, start))
        if known is None or (known.certainty != "certain" and certainty == "certain"):
            name = symbol.name if symbol is not None else module_name(path)
            mention = Mention(path, start, start + len(name.encode()), "reference", name, role)
            found[path, start] = Member(mention, "references", False, certainty, weight, evidence, more={"role": role})

    if symbol is None:
        return Found()
    if subject.place is not None:
        for edge in relations.referrers.find_into(subject.place):
            call = relations.call(edge) if edge.kind in CALLS else None
            if call is not None:
                start = max(call.name_start, call.start)
                add(
                    edge.source.path,
                    start,
                    "call",
                    edge.ref.certainty,
                    edge.ref.confidence,
                    f"graph.{edge.ref.evidence}",
                )
    paths = [subject.file.path]
    if symbol.parent < 0:
        paths += sorted({path for path, _ in _importing(relations, subject.file.path)} - {subject.file.path})
    left_out = max(len(paths) - MAX_SCANNED, 0)
    targets = _own_names(relations, subject)
    for path in paths[:MAX_SCANNED]:
        for document, start, role in _uses(relations, path, symbol.name):
            if path == subject.file.path and start == symbol.name_start:
                continue
            if role == "attribute":
                sure = _is_own_attribute(relations, subject, path, document, start)
                if sure is not None and (path, start) not in found:
                    add(path, start, role, "certain" if sure else "possible", 0.95 if sure else 0.3, "graph.attribute")
                continue
            ref = relations.meanings.find_name(path, document, symbol.name, start, role)
            if not targets.isdisjoint(ref.candidates):
                add(path, start, role, ref.certainty, ref.confidence, f"graph.{ref.evidence}")
    for held, document, _, binding in _import_value(relations, subject):
        for inner, start, role in _uses(relations, held.path, binding.local):
            ref = relations.meanings.find_name(held.path, inner, binding.local, start, role)
            local = any(place.path == held.path and place.name for place in ref.candidates)
            if inner == document and role != "attribute" and not local:
                add(held.path, start, role, "certain", 0.99, "graph.import")
    cut = (Truncation("references", "files", MAX_SCANNED, MAX_SCANNED + left_out, left_out),) if left_out else ()
    metadata = count_certain(found.values()) | ({"files": len({path for path, _ in found})} if found else {})
    return Found(tuple(rank(found.values())), metadata, cut)


def _own_names(relations: Relations, subject: Subject) -> set[Candidate]:
    """What links call it: a type of Rust also by its `impl` blocks, which bind its name again."""
    return {subject.candidate, *_find_blocks(relations, subject)}


def _find_blocks(relations: Relations, subject: Subject) -> list[Candidate]:
    symbols, own = subject.file.symbols[subject.document], subject.symbol
    blocks = [
        relations.documents.find_place(subject.file.path, subject.document, number)
        for number, symbol in enumerate(symbols)
        if own is not None and symbol.kind == "impl" and symbol.name == own.name and symbol.parent == own.parent
    ]
    return [place for place in blocks if place is not None]


def _find_far_blocks(relations: Relations, subject: Subject) -> Iterator[Candidate]:
    """`impl` blocks of a type in files that import it."""
    own = subject.symbol
    if own is None or own.kind not in ("struct", "enum", "union"):
        return
    for held, document, number in relations.files.definitions(own.name):
        links = relations.documents.links_of(held.path, document)
        if links is None or held.path == subject.file.path or held.symbols[document][number].kind != "impl":
            continue
        if any(name == own.name and subject.place in links.refs[ref].candidates for name, ref in links.imports):
            place = relations.documents.find_place(held.path, document, number)
            if place is not None:
                yield place


def _uses(relations: Relations, path: str, name: str) -> Iterator[tuple[int, int, str]]:
    """(document, offset, role) of every reference of that name in a file; calls are edges, and not among them."""
    held = relations.hold(path)
    for document, references in enumerate(held.references if held is not None else ()):
        if name not in references.names:
            continue
        wanted = references.names.index(name)
        offsets, roles = array("I", references.offsets), references.roles
        called = {call.name_start for call in held.calls[document] if call.name == name} if held is not None else set()
        for at, number in enumerate(array("I", references.name_ids)):
            if number == wanted and offsets[at] not in called:
                yield document, offsets[at], ROLES[roles[at]]


_RECEIVER = re.compile(rb"([\w$]+)(?:\.|::)$")


def _is_own_attribute(relations: Relations, subject: Subject, path: str, document: int, start: int) -> bool | None:
    """Whether `x.name` means it: `self.name` in its own class, `module.name` where the module was imported. None: there
    is nothing that says so."""
    held, symbol = relations.hold(path), subject.symbol
    if held is None or symbol is None:
        return None
    before = held.text[max(start - 80, 0) : start]
    if symbol.parent >= 0 and path == subject.file.path:
        holder = held.symbols[subject.document][symbol.parent]
        if holder.kind_group not in _TYPES or symbol.kind in LOCAL:
            return None
        inside = holder.start <= start < holder.end
        return inside and before.endswith(_SELF)
    receiver = _RECEIVER.search(before)
    links = relations.documents.links_of(path, document)
    if receiver is None or links is None:
        return None
    name = receiver[1].decode()
    for local, number in links.imports:
        if local == name:
            places = links.refs[number].candidates
            return True if any(place.path == subject.file.path and not place.name for place in places) else None
    return None


def find_tests(relations: Relations, subject: Subject) -> Found:
    """Tests that reach it by calls, the nearest first; only the first call of a way may be a possible one."""
    if subject.place is None or is_test(relations, subject.place):
        return Found()
    # Whoever tests a method of a class tests the class.
    starts = _bodies(relations, subject)
    members: dict[Candidate, Member] = {}
    seen = set(starts)
    frontier: list[Candidate] = starts
    asked = left_out = 0
    for distance in range(1, TEST_DEPTH + 1):
        ahead: list[Candidate] = []
        for at, here in enumerate(frontier):
            if asked >= MAX_EXPANDED:
                left_out += len(frontier) - at
                break
            asked += 1
            for other, group in _callers(relations, here, distance == 1 and here == subject.place).items():
                if other in seen or (group.certainty != "certain" and distance > 1):
                    continue
                if is_test(relations, other):
                    seen.add(other)
                    via = here if distance > 1 and here not in starts else None
                    members[other] = group.make(other, False, distance, via, "tests")
                elif group.certainty == "certain":
                    seen.add(other)
                    ahead.append(other)
        frontier = sorted(ahead, key=relations.order)
    cut = (Truncation("tests", "expanded", MAX_EXPANDED, MAX_EXPANDED + left_out, left_out),) if left_out else ()
    return Found(tuple(rank(members.values())), count_certain(members.values()), cut)


def is_test(relations: Relations, node: Candidate) -> bool:
    """By its name in a file of tests, whose code outside of functions is one too (`it("…", () => …)`); in Rust by its
    attribute, wherever it stands."""
    if node.path.endswith(".rs"):
        symbol = relations.symbol(node)
        return symbol is not None and any(_TEST.search(word) for word in symbol.decorators)
    if find_role(node.path) != "test":
        return False
    names = node.name.split(".")
    return not node.name or names[-1].lower().startswith(("test", "it_", "should")) or names[0].startswith("describe")
