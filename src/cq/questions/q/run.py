"""Plans → matches. Every file that can match is opened once for all of them, and parsed at most once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from ast_grep_py import SgNode

from cq.language import describe
from cq.model.edge import Candidate, Certainty
from cq.model.errors import QueryError, suggest
from cq.query.faults import Fault, show_place
from cq.query.plan import (
    Node,
    Plan,
    Selection,
    Union,
    find_attributes,
    find_literals,
    find_selections,
)
from cq.query.tree import And, Expression, Not, Or, Token, find_tokens
from cq.query.vocabulary import (
    DATA,
    ENTITIES,
    ENTITY_LANGUAGES,
    FILE_TOKENS,
    LANGUAGES,
    LINKED,
    SCOPE_TOKENS,
    SCOPED,
    SHAPE_TOKENS,
    SHAPED,
    STRUCTURAL,
)
from cq.questions.q.candidates import describe_words, file_test, has_words, look_up
from cq.questions.q.documents import Document, OpenFile
from cq.questions.q.entities import (
    MatchMaker,
    decorator_name,
    find_last_name,
    find_raised,
    match_entity_name,
    match_name,
    measure,
    raised_name,
)
from cq.questions.q.links import Definition, Links, Uses
from cq.questions.q.matches import Capture, Match, Partition, Result, Statistics
from cq.questions.q.rules import (
    Rule,
    Unservable,
    check_rule,
    find_fault,
    find_nodes,
    find_operator,
    find_tail,
    make_rule,
    reads_any_words,
)
from cq.questions.q.scopes import Scope, Scopes, UnknownScopes
from cq.questions.q.shapes import ShapeTests
from cq.snapshot.files import IndexedFiles
from cq.snapshot.projects import KnownProjects
from cq.source.role import find_role
from cq.store.read import Reader, StoredFile, Tree

MAX_MATCHES = 200_000  # of one selection


def run_plans(reader: Reader, tree: Tree, plans: Sequence[Plan], files: dict[str, StoredFile]) -> list[Result]:
    """One result per plan, in order; `files` are those of the tree. Two plans over one file parse it once."""
    links = Links(reader, tree, files)
    searches = [
        [Search(s, reader, tree, files, links, find_attributes(plan.root)) for s in find_selections(plan.root)]
        for plan in plans
    ]
    _refuse_what_means_nothing(searches)
    flat = [search for group in searches for search in group]
    for stored in files.values():
        interested = [search for search in flat if search.wants(stored)]
        if interested:
            opened = OpenFile(reader, stored)
            for search in interested:
                search.look_at(opened)
    for search in flat:
        search.finish()
    _refuse_what_means_nothing(searches)
    results: list[Result] = []
    order = Order(files.values())
    for plan, group in zip(plans, searches, strict=True):
        remaining = iter(group)
        found = _combine(plan.root, remaining, links, order)
        total = len(found)
        if plan.limit:
            found = found[: plan.limit]
        results.append(
            Result(
                plan, found, total, [search.statistics for search in group], sum(search.dropped for search in group)
            )
        )  # fmt: skip
    return results


def _refuse_what_means_nothing(searches: Sequence[Sequence[Search]]) -> None:
    """QueryError for a query of which no group means anything in the languages there are."""
    for group in searches:
        if group and all(search.unservable for search in group):
            raise _fail_unservable(group[0].unservable)


def _fail_unservable(faults: dict[str, Unservable]) -> QueryError:
    """The language with most files first; the place under a caret, once for all languages that fail there."""
    where, first = next(iter(faults.items()))
    languages: dict[tuple[str, str, int], list[str]] = {}
    for name, fault in faults.items():
        languages.setdefault((fault.reason, fault.text, fault.at), []).append(name)
    details: list[str] = []
    for (reason, text, at), names in list(languages.items())[:8]:
        shown = ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
        if at >= 0:
            line, caret = show_place(text, Fault(at, at + 1, reason))
            details += [f"  {line}", f"  {caret} {shown}: {reason}"]
        else:
            details.append(f"  {shown}: {reason}")
    return QueryError(
        f"this means nothing in {where}: {first}"
        if len(faults) == 1
        else f"this means nothing in the languages here, as in {where}: {first}",
        hint="code that can stand alone, or pattern.context= with pattern.selector=",
        details=tuple(details),
    )


def _combine(node: Node, searches: Iterator[Search], links: Links, order: Order) -> list[Match]:
    if isinstance(node, Selection):
        return sorted(next(searches).matches, key=order)
    if isinstance(node, Union):
        left, right = (_combine(part, searches, links, order) for part in (node.left, node.right))
        keys = {match.key for match in right}
        if node.op == "|":
            known = {match.key for match in left}
            return sorted([*left, *(match for match in right if match.key not in known)], key=order)
        return [match for match in left if (match.key in keys) is (node.op == "&")]
    found = _combine(node.source, searches, links, order)
    tests = [file_test(token) for token in node.where]
    found = [match for match in found if all(test(match.path, match.language) for test in tests)]
    for stage in node.stages:
        if stage.kind == "limit":
            found = found[: stage.count]
        elif stage.kind == "sort":
            found = sorted(found, key=order)
            found.sort(key=lambda match: _attribute(match, stage.attribute, links), reverse=stage.descending)
        elif stage.condition is not None:
            condition = stage.condition
            found = [match for match in found if _compare(condition, match, links)]
    return found


class Order:
    """Code before data and prose, source before its tests, languages by how many files they have, then by place."""

    def __init__(self, files: Iterable[StoredFile]) -> None:
        self._holders = {stored.path: stored.language for stored in files}
        counts = Counter(describe(holder).family for holder in self._holders.values())
        self._ranks = {name: rank for rank, name in enumerate(sorted(counts, key=lambda name: (-counts[name], name)))}

    def __call__(self, match: Match) -> tuple[bool, bool, int, str, int, int]:
        holder = self._holders[match.path]
        return (
            holder in DATA or match.language in DATA,
            find_role(match.path) == "test",
            self._ranks[describe(holder).family],
            match.path,
            match.start,
            -match.end,
        )


def _compare(item: Expression, match: Match, links: Links) -> bool:
    if isinstance(item, And):
        return all(_compare(part, match, links) for part in item.items)
    if isinstance(item, Or):
        return any(_compare(part, match, links) for part in item.items)
    if isinstance(item, Not):
        return not _compare(item.item, match, links)
    assert isinstance(item, Token)
    value = _attribute(match, item.key, links)
    if item.op.endswith("~"):
        return (re.search(item.text, str(value)) is not None) is (item.op == "=~")
    other: Any = int(item.text) if isinstance(value, int) else item.text
    return {
        "=": value == other, "!=": value != other, ">": value > other, "<": value < other,
        ">=": value >= other, "<=": value <= other,
    }[item.op]  # fmt: skip


def _attribute(match: Match, name: str, links: Links) -> Any:
    if name == "callers":
        if "callers" not in match.attributes:
            target = Definition(
                match.path, match.document, match.symbol, match.name, match.kind, match.start, match.end
            )
            match.attributes = {**match.attributes, "callers": links.count_callers(target)}
        return match.attributes["callers"]
    if name in ("name", "path", "language"):
        return getattr(match, name)
    return match.attributes[name]


class Search:
    """One selection on its way through the files."""

    def __init__(
        self, selection: Selection, reader: Reader, tree: Tree, files: dict[str, StoredFile], links: Links,
        attributes: frozenset[str],
    ) -> None:  # fmt: skip
        self.selection = selection
        self.matches: list[Match] = []
        self.dropped = 0  # matches over the bound
        self._attributes = attributes
        self._lost: set[tuple[str, int, int]] = set()
        self._reader, self._tree, self._files, self._links = reader, tree, files, links
        self.statistics = Statistics(str(selection))
        self._structure, self._rest = _split(selection)
        self._tests = [
            file_test(item)
            for item in selection.where
            if isinstance(item, Token) and item.key in FILE_TOKENS and item.key != "lang"
        ]
        self._shapes = ShapeTests(reader, tree)
        self._projects: dict[str, frozenset[str]] = {}
        for item in selection.where:
            if isinstance(item, Token) and item.key == "project":
                self._tests.append(lambda path, _, token=item: path in self._find_project(token))
        self._loose: dict[str, Unservable] = {}  # languages in which the pattern does not parse, but is taken
        self._strict: dict[str, Unservable] = {}
        self._wordy: list[str] = []  # the only languages in which it parses, where any words do
        self._nodes = 0
        self._faults = lru_cache(maxsize=256)(self._find_fault)
        self.unservable = self._find_unservable(files.values())
        self._wanted = self._find_candidates(files.values())
        self._rules = lru_cache(maxsize=256)(self._make_rule)
        self._used = lru_cache(maxsize=64)(self._find_used)

    def wants(self, stored: StoredFile) -> bool:
        return stored.path in self._wanted

    def look_at(self, file: OpenFile) -> None:
        for document in file.documents:
            partition = self.statistics.languages.get(document.language)
            if partition is None:
                if not self._is_in_reach(document.language):
                    continue
                partition = self._partition(document.language)
            if partition.reason:
                continue
            partition.opened += 1
            before, parses = len(self.matches), document.parses
            self._lost.clear()
            self._look_into(document, partition)
            partition.skip("entities without a node of their own, as in a macro,", len(self._lost))
            partition.parsed += document.parses > parses
            partition.matches += len(self.matches) - before

    def finish(self) -> None:
        """A pattern that does not parse and looks like nothing here means nothing."""
        if (self._loose or self._wordy) and not self._nodes:
            nowhere = Unservable("any words are code there, and no code is these")
            self.unservable = self._strict | dict.fromkeys(self._wordy, nowhere)

    # -- candidates ------------------------------------------------------------------------------

    def _find_candidates(self, files: Iterable[StoredFile]) -> set[str]:
        """Paths that can match at all: by path and language, by the words of the patterns, by the names wanted."""
        selection, statistics = self.selection, self.statistics
        literals = self._literals = find_literals(selection)
        statistics.prefilter = describe_words(literals)
        contents = look_up(self._reader, literals)
        named = self._find_named()
        wanted: set[str] = set()
        for stored in files:
            mixed = stored.counts.get("documents", 1) > 1
            if not mixed and not self._is_in_reach(stored.language):
                continue
            if not all(test(stored.path, stored.language) for test in self._tests):
                continue
            partition = self._partition(stored.language) if self._is_in_reach(stored.language) else None
            if partition:
                partition.files += 1
            if (partition is None or partition.reason) and not mixed:
                continue
            if (contents is None or stored.content in contents) and (named is None or stored.content in named):
                wanted.add(stored.path)
                if partition and not partition.reason:
                    partition.candidates += 1
        statistics.estimated = len(wanted)
        return wanted

    def _is_in_reach(self, language: str) -> bool:
        if self.selection.languages is not None:
            return language in self.selection.languages
        return language in LANGUAGES

    def _partition(self, language: str) -> Partition:
        partition = self.statistics.languages.get(language)
        if partition is None:
            fault = self._faults(language, bool(self._loose))
            partition = self.statistics.languages[language] = Partition(reason=str(fault or ""))
        return partition

    def _find_fault(self, language: str, loose: bool) -> Unservable | None:
        """Why a language cannot serve this selection, None when it can; `loose` as in make_rule."""
        selection = self.selection
        if selection.entities and all(
            language in LINKED and language not in ENTITY_LANGUAGES.get(entity, LINKED) for entity in selection.entities
        ):
            return Unservable(f"it has no {' or '.join(selection.entities)}")
        if (
            any(isinstance(t, Token) and t.key in SCOPE_TOKENS for i in selection.where for t in find_tokens(i))
            and language not in SCOPED
        ):
            return Unservable("its scopes are not known")
        if language not in SHAPED and any(
            isinstance(t, Token) and t.key in SHAPE_TOKENS for i in selection.where for t in find_tokens(i)
        ):
            return Unservable("its types are not read")
        try:
            for item in self._structural_items():
                own = loose and item is selection.subject
                rule = make_rule(item, language, entity=bool(selection.entities), loose=own)
                check_rule({"all": [{"pattern": "$CQ"}, rule]} if "not" in rule else rule, language)
        except Unservable as fault:
            return fault
        return None

    def _structural_items(self) -> list[Expression]:
        found: list[Expression] = [*([self.selection.subject] if self.selection.subject else []), *self._structure]
        return found + [
            leaf
            for item in self._rest
            for leaf in find_tokens(item)
            if isinstance(leaf, Token) and leaf.key in STRUCTURAL
        ]

    def _find_unservable(self, files: Iterable[StoredFile]) -> dict[str, Unservable]:
        """Why no language in reach can serve, that with most files first: what means nothing must not look like an
        empty tree. A pattern that parses in none of them is taken as the matcher takes it, if it does."""
        if not self._structural_items():
            return {}
        reach = [stored for stored in files if all(test(stored.path, stored.language) for test in self._tests)]
        if not any(
            self._faults(name, False) is None and not reads_any_words(name) for name in self._find_languages(reach)
        ):
            languages = list(self._find_languages(reach))
            self._strict = faults = {name: f for name in languages if (f := self._faults(name, False)) is not None}
            if faults and len(faults) < len(languages):
                if not self._structure and not self.selection.entities:
                    self._wordy = [name for name in languages if name not in faults]
                return {}
            self._loose = {name: fault for name, fault in faults.items() if self._faults(name, True) is None}
            self.statistics.read_in_part = {name: str(fault) for name, fault in self._loose.items()}
            return {} if self._loose else faults
        for text in dict.fromkeys(text for item in self._structural_items() for text in _find_alternatives(item)):
            faults = {}
            for name in self._find_languages(reach):
                if (fault := find_fault(text, name)) is None:
                    break
                faults[name] = fault
            else:
                return faults
        return {}

    def _find_languages(self, reach: Sequence[StoredFile]) -> Iterator[str]:
        """Languages of the files, those with most files first, then of the documents inside files."""
        counts = Counter(stored.language for stored in reach if self._is_in_reach(stored.language))
        found = dict.fromkeys(sorted(counts, key=lambda name: (name in DATA, -counts[name], name)))
        yield from list(found)
        for stored in reach:
            if stored.counts.get("documents", 1) > 1:
                for part in self._reader.documents(stored.content):
                    if part.language not in found and self._is_in_reach(part.language):
                        found[part.language] = None
                        yield part.language
        if not found:  # no file at all: then a pattern should mean something in some language
            yield from (name for name in self.selection.languages or LINKED if LANGUAGES.get(name))

    def _find_named(self) -> set[int] | None:
        """Contents that hold an entity of the wanted name, as far as the table of names can tell."""
        entities = self.selection.entities
        kinds = [kind for entity in entities for kind in ENTITIES[entity]]
        if entities == ("callsite",):
            called = [
                set(self._reader.find_names(find_last_name(item.text), "called"))
                for item in self.selection.where
                if isinstance(item, Token) and item.key == "name" and item.op == "="
            ]
            return set.intersection(*called) if called else None
        if not kinds or "variable" in entities or any(not ENTITIES[entity] for entity in entities):
            return None
        names = [item for item in self.selection.where if isinstance(item, Token) and item.key == "name"]
        exact = next((item.text for item in names if item.op == "="), "")
        if exact:
            rows = [
                (row.content, row.name, row.qualified_name)
                for row in self._reader.find_symbols(self._tree.id, find_last_name(exact))
                if row.kind in kinds
            ]
        else:
            rows = self._reader.find_kinds(self._tree.id, kinds)
        found = {
            content for content, name, qualified in rows if all(match_name(item, name, qualified) for item in names)
        }
        self.statistics.names = f"{len(rows):,} names in {len(found):,} contents"
        return found

    # -- one document ----------------------------------------------------------------------------

    def _look_into(self, document: Document, partition: Partition) -> None:
        found = self._find_entities(document) if self.selection.entities else None
        if found is not None:
            quick = [item for item in self._rest if not _needs_tree(item)]
            found = [match for match in found if all(self._holds(item, match, document, None) for item in quick)]
            if not found:
                return
        slow: list[Expression] = (
            [item for item in self._rest if _needs_tree(item)] if found is not None else list(self._rest)
        )
        nodes: dict[int, SgNode] = {}
        if found is None or self._structure or any(map(_has_structure, slow)):
            if not has_words(self._literals, document.text):
                return
            if document.gate:
                partition.skip(document.gate)
                return
            if found is None:
                found, nodes = self._find_pattern(document)
            elif self._structure:
                found = self._filter_structure(document, found)
        scopes = None
        if found and any(_has_scope(item) for item in slow):
            try:
                scopes = Scopes(document)
            except UnknownScopes as reason:
                partition.skip(str(reason))
                return
        context = _Context(document, scopes, self, found, nodes)
        kept = [match for match in found if all(self._holds(item, match, document, context) for item in slow)]
        for match in kept:
            if self._attributes:
                match.attributes = measure(match, document, self._attributes)
        room = MAX_MATCHES - len(self.matches)
        self.dropped += max(0, len(kept) - room)
        self.matches += kept[:room]

    def _find_pattern(self, document: Document) -> tuple[list[Match], dict[int, SgNode]]:
        assert self.selection.subject is not None
        rule = self._rules(document.language, None)
        found: list[Match] = []
        nodes: dict[int, SgNode] = {}
        seen: set[tuple[int, int]] = set()
        for node in find_nodes(document.root, rule):
            self._nodes += 1
            span = document.span_of(node)
            if span in seen and self.selection.subject.key != "pattern":
                continue
            seen.add(span)
            match = Match(document.file.path, *span, document.number, document.language, node.kind(), is_code=True)
            match.captures = self._capture(node, document)
            nodes[id(match)] = node
            found.append(match)
        return found, nodes

    def _filter_structure(self, document: Document, found: list[Match]) -> list[Match]:
        matched = self.match_nodes(document, found, self._structure)
        for match in found:
            if (node := matched.get(match.key)) is not None:
                match.captures = self._capture(node, document)
        return [match for match in found if match.key in matched]

    def match_nodes(
        self, document: Document, found: Iterable[Match], items: tuple[Expression, ...]
    ) -> dict[tuple[str, int, int], SgNode]:
        """The nodes of entities that have the structure wanted, by the key of the match."""
        if self.selection.entities == ("module",):
            rule = self._rules(document.language, items)
            kind = document.root.kind()
            hits = find_nodes(document.root, {"all": [{"kind": kind}, rule]})
            return {match.key: hits[0] for match in found} if hits else {}
        spans = {match.key: _span(match, document) for match in found}
        located = document.locate(spans.values())
        self._lost |= {key for key, span in spans.items() if span not in located}
        kinds = sorted({node.kind() for node in located.values()})
        if not kinds:
            return {}
        rule = self._rules(document.language, items)
        places: dict[tuple[int, int, str], SgNode] = {}
        for node in find_nodes(document.root, {"all": [{"any": [{"kind": kind} for kind in kinds]}, rule]}):
            places[*document.span_of(node), node.kind()] = node
        matched: dict[tuple[str, int, int], SgNode] = {}
        for key, span in spans.items():
            node = located.get(span)
            if node is not None and (hit := places.get((*document.span_of(node), node.kind()))) is not None:
                matched[key] = hit
        return matched

    def _make_rule(self, language: str, items: tuple[Expression, ...] | None) -> Rule:
        """The subject first: it binds the metavariables that the rest compares with."""
        entity = bool(self.selection.entities)
        parts: list[Expression] = list(items if items is not None else self._structure)
        if self.selection.subject is not None:
            parts.insert(0, self.selection.subject)
        rules = [
            make_rule(part, language, entity=entity, loose=bool(self._loose) and part is self.selection.subject)
            for part in parts
        ]
        return rules[0] if len(rules) == 1 else {"all": rules}

    def _capture(self, node: SgNode, document: Document) -> tuple[Capture, ...]:
        found: list[Capture] = []
        for name, kind in self.selection.metavariables.items():
            if kind == "operator":
                assert self.selection.subject is not None
                token = _find_operator_node(node, find_operator(self.selection.subject.text, document.language))
                nodes = [token] if token is not None else []
            elif kind == "multi":
                nodes = [part for part in node.get_multiple_matches(name) if part.is_named()]
                nodes = nodes[: len(nodes) - self._count_tail(name, document.language, node)]
            else:
                single = node.get_match(name)
                nodes = [single] if single is not None else []
            if nodes:
                start, end = document.span_of(nodes[0])[0], document.span_of(nodes[-1])[1]
                found.append(Capture(name, document.file.text[start:end].decode("utf-8", "replace"), start, end))
            elif kind == "multi":
                found.append(Capture(name, "", *(document.span_of(node)[1],) * 2))
        return tuple(found)

    def _count_tail(self, name: str, language: str, node: SgNode) -> int:
        subject = self.selection.subject
        tail = find_tail(subject.text, language) if subject and subject.key == "pattern" else None
        return tail[1] if tail is not None and tail[0] == name and node.matches(**tail[2]) else 0

    def _find_entities(self, document: Document) -> list[Match]:
        found: list[Match] = []
        kinds = {kind for entity in self.selection.entities for kind in ENTITIES[entity]}
        make = MatchMaker(document)
        if kinds:
            found += [make.symbol(at, symbol) for at, symbol in enumerate(document.symbols) if symbol.kind in kinds]
        if "module" in self.selection.entities:
            found.append(make.module())
        if "callsite" in self.selection.entities:
            found += [make.call(call) for call in document.calls if call.kind != "decorator"]
        if "import" in self.selection.entities:
            found += [make.imported(item) for item in document.imports]
        if "decorator" in self.selection.entities:
            found += [
                match
                for at, symbol in enumerate(document.symbols)
                if symbol.decorators
                for match in make.decorators(at, symbol)
            ]
        return found

    # -- conditions ------------------------------------------------------------------------------

    def _holds(self, item: Expression, match: Match, document: Document, context: _Context | None) -> bool:
        match item:
            case And():
                return all(self._holds(part, match, document, context) for part in item.items)
            case Or():
                return any(self._holds(part, match, document, context) for part in item.items)
            case Not():
                return not self._holds(item.item, match, document, context)
            case Token():
                return self._test(item, match, document, context)
            case _:
                raise ValueError(f"not a condition: {item}")

    def _test(self, token: Token, match: Match, document: Document, context: _Context | None) -> bool:
        key = token.key
        number = document.definition_of(match)
        symbol = document.symbols[number] if number >= 0 else None
        if key == "name":
            return match_entity_name(token, match, document)
        if key in FILE_TOKENS:
            return file_test(token)(match.path, match.language)
        if key == "decorated_by":
            return symbol is not None and any(match_name(token, *decorator_name(text)) for text in symbol.decorators)
        if key == "decorator_count_min":
            return symbol is not None and len(symbol.decorators) >= int(token.text)
        if key == "decorator_count_max":
            return symbol is not None and len(symbol.decorators) <= int(token.text)
        if key == "defines":
            return any(
                s.parent == match.symbol
                and s.kind not in ("parameter", "type_parameter")
                and match_name(token, s.name, s.qualified_name)
                for s in document.symbols
            )
        if key == "raises":
            return any(match_name(token, *raised_name(value)) for value in find_raised(document, match.symbol))
        if key == "exports":
            return any(match_name(token, e.exported, e.exported) for e in document.exports)
        if key == "used_by":
            return self._is_used(token, match)
        if key == "project":
            return match.path in self._find_project(token)
        if key in SHAPE_TOKENS:
            return self._shapes.holds(token, match)
        assert context is not None
        if key.startswith("$"):
            return _match_capture(token, match)
        if key in SCOPE_TOKENS:
            return _match_scope(token, context.scope(match))
        return context.has_structure(match, token)

    def _find_project(self, token: Token) -> frozenset[str]:
        """The files of a project; QueryError for one that nobody knows."""
        if token.text not in self._projects:
            projects = KnownProjects(IndexedFiles(self._reader, self._tree))
            found = projects.find_files(token.text)
            if found is None:
                names = [
                    name for each in projects.all() for name in (each.path, each.path.rpartition("/")[0], each.name)
                ]
                hint = suggest(token.text, [name for name in names if name], "`cq projects` lists them")
                raise QueryError(f"project={token.text}: no project is called that here", hint=hint)
            self._projects[token.text] = found
        return self._projects[token.text]

    def _is_used(self, token: Token, match: Match) -> bool:
        uses = self._used(token)
        place = self._links.find_place(match.path, match.document, match.symbol)
        used = uses.places.get(place, "possible" if match.name in uses.names else "")
        if used:
            match.attributes = {**match.attributes, "used": used}
        return bool(used)

    def _find_used(self, token: Token) -> Uses:
        """What definitions of the wanted name use."""
        if token.op == "=":
            rows = [
                (row.content, row.name, row.qualified_name)
                for row in self._reader.find_symbols(self._tree.id, find_last_name(token.text))
            ]
        else:
            rows = self._reader.find_kinds(self._tree.id, [kind for kinds in ENTITIES.values() for kind in kinds])
        contents = {content for content, name, qualified in rows if match_name(token, name, qualified)}
        places: dict[Candidate, Certainty] = {}
        names: set[str] = set()
        for path in sorted(path for paths in self._reader.paths(self._tree.id, contents).values() for path in paths):
            for document, symbols in enumerate(self._reader.symbols(self._files[path].content)):
                wanted = [
                    number
                    for number, s in enumerate(symbols)
                    if s.body_start >= 0 and match_name(token, s.name, s.qualified_name)
                ]
                if wanted:
                    uses = self._links.find_uses(path, document, wanted)
                    names |= uses.names
                    places |= {at: how for at, how in uses.places.items() if places.get(at) != "certain"}
        return Uses(places, names)


class _Context:
    """What the slow conditions of one document share."""

    def __init__(
        self, document: Document, scopes: Scopes | None, search: Search, matches: list[Match], nodes: dict[int, SgNode]
    ) -> None:
        self._document, self._scopes, self._search, self._matches, self._nodes = (
            document,
            scopes,
            search,
            matches,
            nodes,
        )
        self._structures: dict[Token, set[tuple[str, int, int]]] = {}

    def scope(self, match: Match) -> Scope | None:
        assert self._scopes is not None
        if match.symbol >= 0:
            return self._scopes.of_symbol(match.symbol)
        return self._scopes.of_span(match.start, match.end, match.kind)

    def has_structure(self, match: Match, token: Token) -> bool:
        """Below `or` and `not`, beside conditions of another kind: each structural token by itself."""
        if not self._search.selection.entities:
            rule = make_rule(token, self._document.language, entity=False)
            return bool(self._nodes[id(match)].matches(**rule))
        if token not in self._structures:
            self._structures[token] = set(self._search.match_nodes(self._document, self._matches, (token,)))
        return match.key in self._structures[token]


def _match_capture(token: Token, match: Match) -> bool:
    name = token.key.lstrip("$")
    capture = next((capture for capture in match.captures if capture.name == name), None)
    if capture is None:
        return False  # a branch that did not bind it
    holds = re.search(token.text, capture.text) is not None if token.op.endswith("~") else capture.text == token.text
    return holds is (not token.op.startswith("!"))


def _match_scope(token: Token, scope: Scope | None) -> bool:
    if scope is None:
        return False
    if token.key == "scope":
        return scope.is_kind(token.text)
    if token.key == "captures":
        return any(match_name(token, name, name) for name in scope.captures)
    return bool(scope.cells) is (token.text == "true")


def _split(selection: Selection) -> tuple[tuple[Expression, ...], tuple[Expression, ...]]:
    """Conditions that are structure alone become one rule; the rest is asked one by one."""
    structure = tuple(
        item for item in selection.where if all(isinstance(t, Token) and t.key in STRUCTURAL for t in find_tokens(item))
    )
    rest = tuple(
        item
        for item in selection.where
        if item not in structure and not (isinstance(item, Token) and item.key in FILE_TOKENS)
    )
    return structure, rest


def _find_alternatives(item: Expression) -> tuple[str, ...]:
    """Patterns of which the others can do without one, unless it means nothing anywhere."""
    return tuple(
        text for leaf in find_tokens(item) if isinstance(leaf, Token) and leaf.key == "any" for text in leaf.values
    )


def _needs_tree(item: Expression) -> bool:
    return any(
        isinstance(t, Token) and (t.key in STRUCTURAL or t.key in SCOPE_TOKENS | SHAPE_TOKENS or t.key.startswith("$"))
        for t in find_tokens(item)
    )


def _has_structure(item: Expression) -> bool:
    return any(isinstance(t, Token) and t.key in STRUCTURAL for t in find_tokens(item))


def _has_scope(item: Expression) -> bool:
    return any(isinstance(t, Token) and t.key in SCOPE_TOKENS for t in find_tokens(item))


def _span(match: Match, document: Document) -> tuple[int, int, int, int]:
    if match.symbol >= 0 and match.kind != "decorator":
        symbol = document.symbols[match.symbol]
        return symbol.start, symbol.head, symbol.name_start, symbol.end
    return match.start, match.start, match.start, match.end


def _find_operator_node(node: SgNode, operators: tuple[str, ...]) -> SgNode | None:
    """The operator that a `$$` stood for: of the match itself, else the first below it."""
    todo = [node]
    while todo:
        current = todo.pop(0)
        for field in ("operator", "operators"):
            token = current.field(field)
            if token is not None and token.text() in operators:
                return token
        todo += current.children()
    return None
