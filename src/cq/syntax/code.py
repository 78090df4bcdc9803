"""Collects what the code of a document does with values, then gives it scopes: see cq.model.code."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, TypeVar

import msgspec

from cq.language import Description, describe
from cq.model.code import (
    HOLDERS,
    BaseForm,
    Bind,
    Branch,
    BranchKind,
    Choice,
    Code,
    Defined,
    Definition,
    Dictionary,
    Each,
    Entry,
    Exit,
    ExitKind,
    Imported,
    Integer,
    Lambda,
    Listing,
    Parameter,
    ParameterOf,
    SeenIn,
    Site,
    Store,
    Text,
    Value,
    find_inner,
    find_outer,
    find_updates,
    label_type,
    replace_inner,
    replace_values,
    split_receiver,
)
from cq.syntax.language import Draft
from cq.syntax.tree import Ancestors, Node, end_of, kind_of, start_of

if TYPE_CHECKING:
    from cq.syntax.collect import Collector, DraftScopes
    from cq.syntax.language import Language

MAX_ELEMENTS = 200  # of one container; more are not looked at
MAX_NESTED = 12  # levels of one expression
MAX_LEVELS = 100  # lists inside one another in a value, whatever made it
ANONYMOUS = "lambda"  # the kind of a function without a name; one that is bound to a name is called that


class CodeDraft:
    """Filled by a language while it walks the matches; offsets stand for scopes until those are known."""

    def __init__(self) -> None:
        # start of a definition -> kind, parameters, type of what it returns, bases, keywords
        self.definitions: dict[int, tuple[str, tuple[Parameter, ...], Value, tuple[Value, ...], Keywords]] = {}
        self.lambdas: dict[
            int, tuple[int, int, tuple[Parameter, ...], Value]
        ] = {}  # start -> end, body start, …, value
        self.binds: list[tuple[int, int, str, Value, int]] = []  # from, statement, name, value, end of an inner one
        self.types: dict[int, Value] = {}  # statement -> annotation of what it binds
        # Statement, base, name, value, key, where it ends; -1: what was stored before is not hidden.
        self.stores: list[tuple[int, Value, str | None, Value, Value, int]] = []
        self.returns: list[tuple[int, Value]] = []
        self.yields: list[tuple[int, Value]] = []
        self.raises: list[tuple[int, Value]] = []
        self.runs: list[tuple[int, str, Value]] = []  # start, operation, receiver
        self.entries: list[Entry] = []
        self.decorators: list[tuple[int, Value]] = []
        self.foreign: list[tuple[int, str, str]] = []  # offset, name, "global" or "nonlocal"
        # Start, end, kind, value, start of the `try`, whether it is empty.
        self.branches: list[tuple[int, int, BranchKind, Value, int, bool]] = []
        self.exits: list[tuple[int, int, ExitKind, Value]] = []
        self.results: dict[int, Value] = {}  # start of a lambda -> type of what it returns
        self.renamed: dict[int, int] = {}  # start of a function in values -> of its definition, where that is another
        self.is_shared = False  # whether functions assign to variables of others around them
        self.unbound: set[int] = set()  # starts of definitions whose names are bound by `binds`
        self.looped: set[int] = set()  # starts of comprehensions of which a `for` was read
        self.sources: dict[int, Node] = {}  # start of an assignment that is assigned -> what is assigned in the end
        self.notes: object = None  # what a language keeps until the document is read

    def add_branch(
        self, kind: BranchKind, node: Node | None, value: Value = None, tried: int = -1, *, is_empty: bool = False
    ) -> None:
        """What broken code lacks is no branch."""
        if node is not None:
            self.branches.append((start_of(node), end_of(node), kind, value, tried, is_empty))

    def add_anonymous(self, collector: Collector) -> None:
        """A symbol for every function without a name. It is a part of the definition around it, not a scope."""
        named = {draft.body_start for draft in collector.symbols if draft.scope_start >= 0} if self.lambdas else ()
        collector.symbols += [
            Draft(ANONYMOUS, f"<{ANONYMOUS}>", start, end, start, start, head=start,
                  signature=collector.fold(start, min(body_start, start + _SIGNATURE_TEXT)))
            for start, (end, body_start, _, _) in self.lambdas.items()
            if body_start not in named
        ]  # fmt: skip

    def build(
        self,
        language: Language,
        text: bytes,
        root: Node,
        drafts: Sequence[Draft],
        scopes: DraftScopes,
        sites: tuple[Site, ...],
        public: tuple[str, ...] | None,
    ) -> Code:
        about = describe(language.id)
        definitions = self._definitions(drafts, scopes, about)
        # A block that is a symbol but no definition is no scope either: `declare global { … }`, `extern "C" { … }`.
        known = {definition.symbol for definition in definitions}
        lifted = scopes.find_unknown(known, [definition.scope for definition in definitions], drafts)
        if lifted:
            scopes = scopes.lift(lifted)
            definitions = [_lift(row, lifted) for row in self._definitions(drafts, scopes, about)]
            sites = tuple(_lift(site, lifted) for site in sites)
        foreign = self._foreign(scopes)
        blocks = Blocks(language, text, root)
        calling = self._find_calling(definitions, drafts, sites) if foreign or self.is_shared else {}
        binds = self._binds(language, blocks, definitions, scopes, foreign, calling)
        self.stores += [
            (site.start, split_receiver(site.callee), None, value, key, site.end)
            for site in sites
            if site.name == "update"
            for key, value in find_updates(site)
        ]
        stores = self._stores(blocks, scopes, drafts, language.is_detailed)
        self.raises.sort(key=_first)
        owners = scopes.find([start for start, _ in self.raises])
        raises = tuple((scope, *place) for scope, place in zip(owners, self.raises, strict=True))
        self.runs.sort(key=_first)
        owners = scopes.find([run[0] for run in self.runs])
        runs = tuple((scope, *run) for scope, run in zip(owners, self.runs, strict=True))
        self.branches.sort(key=_spans)
        owners = scopes.find([branch[0] for branch in self.branches])
        branches = tuple(
            Branch(scope, kind, start, end, value, tried, is_empty)
            for scope, (start, end, kind, value, tried, is_empty) in zip(owners, self.branches, strict=True)
        )
        entries = tuple(sorted(self.entries, key=lambda entry: entry.start))
        self.exits.sort(key=_spans)
        owners = scopes.find([leave[0] for leave in self.exits])
        exits = tuple(
            Exit(scope, kind, start, end, value)
            for scope, (start, end, kind, value) in zip(owners, self.exits, strict=True)
        )
        code = Code(
            language.id, tuple(definitions), binds, stores, sites, raises, runs, branches, public, entries, exits
        )
        return self._settle_values(code)

    def _settle_values(self, code: Code) -> Code:
        """Values name definitions by where those start. One that goes by another place is called that; of one that
        broken code keeps from being there nothing is known, nor of what stands too deep to be written down."""
        known = {definition.start for definition in code.definitions}
        level, is_settled = [form for form in find_outer(code) if type(form) in _LOOKED_AT], True
        for _ in range(MAX_LEVELS):
            if not level:
                break
            is_settled = is_settled and all(form.start in known for form in level if isinstance(form, _PLACED))
            inside = [inner for form in level for inner in find_inner(form)]
            level = [inner for inner in inside if isinstance(inner, BaseForm) and type(inner) in _LOOKED_AT]
        if is_settled and not level:
            return code

        def settle(value: Value, depth: int = 0) -> Value:
            if not isinstance(value, BaseForm):
                return value
            if depth == MAX_LEVELS:
                return _UNKNOWN
            if isinstance(value, _PLACED):
                renamed = self.renamed.get(value.start)
                return value if value.start in known else Defined(renamed) if renamed in known else _UNKNOWN
            return replace_inner(value, lambda inner: settle(inner, depth + 1))

        return replace_values(code, settle)

    def _definitions(self, drafts: Sequence[Draft], scopes: DraftScopes, about: Description) -> list[Definition]:
        by_start: dict[int, tuple[int, Draft]] = {}
        for number, draft in enumerate(drafts):
            if draft.head in self.definitions and (draft.body_start >= 0 or draft.head not in by_start):
                by_start[draft.head] = (number, draft)
        named = {
            draft.body_start: number
            for number, draft in enumerate(drafts)
            if (draft.kind == "function" if about.has_sealed_functions else draft.scope_start >= 0)
        }
        returns, yields = self._by_scope(self.returns, scopes), self._by_scope(self.yields, scopes)
        starts = sorted(by_start.keys() | self.lambdas.keys())
        anonymous = {draft.start: number for number, draft in enumerate(drafts) if draft.kind == ANONYMOUS}
        # Its own scope begins with its body, so this is the one around it; that of a lambda may begin with the lambda.
        opened = {
            start
            for start, (_, body_start, _, _) in self.lambdas.items()
            if body_start in named and drafts[named[body_start]].scope_start == start
        }
        owners = scopes.find([start - (start in opened) for start in starts])
        decorators = sorted(self.decorators, key=_first)
        guard = about.type_guard
        promised = [
            (branch[0], branch[1])
            for branch in self.branches
            if guard and isinstance(branch[3], str) and branch[3].rpartition(".")[2] == guard
        ]
        found: list[Definition] = []
        at = 0
        for start, scope in zip(starts, owners, strict=True):
            if start in by_start:
                number, draft = by_start[start]
                if scope == number:  # where heads are code of what they announce, its own scope begins with them
                    scope = draft.parent
                while at < len(decorators) and decorators[at][0] < draft.start:
                    at += 1
                first = at
                while at < len(decorators) and decorators[at][0] < start:
                    at += 1
                kind, parameters, kind_of_value, bases, keywords = self.definitions[start]
                modifiers = draft.modifiers
                if draft.kind == "accessor":
                    modifiers += ("accessor",)
                if number in yields:
                    modifiers += ("generator",)
                if any(guarded <= start < end for guarded, end in promised):
                    modifiers += ("promised",)
                found.append(
                    Definition(
                        kind, draft.name, number, scope, start, parameters, kind_of_value,
                        tuple(returns.get(number, ())), tuple(yields.get(number, ())), bases, keywords,
                        tuple(value for _, value in decorators[first:at]), modifiers,
                    )
                )  # fmt: skip
            else:
                end, body_start, parameters, value = self.lambdas[start]
                symbol = named.get(body_start, -1)
                place = (anonymous[start], body_start, end) if start in anonymous else ()
                if scope == symbol >= 0:
                    scope = drafts[symbol].parent
                name, results, modifiers, within = "", (value,), (), ""
                if symbol >= 0:
                    name, modifiers = drafts[symbol].name, drafts[symbol].modifiers
                    around = f"{drafts[scope].qualified_name}." if scope >= 0 else ""
                    within = drafts[symbol].qualified_name.removeprefix(around)
                    within = within.removesuffix(name).removesuffix(".")
                    results = (*(results if value is not None else ()), *returns.get(symbol, ()))
                    modifiers += ("generator",) if symbol in yields else ()
                    # In an object or assigned to an attribute: no name leads to it.
                    modifiers += ("member",) if drafts[symbol].kind == "method" else ()
                found.append(
                    Definition(
                        "function", name, symbol, scope, start, parameters, self.results.get(start), results,
                        tuple(yields.get(symbol, ())) if symbol >= 0 else (), modifiers=modifiers, within=within,
                        anonymous=place,
                    )
                )  # fmt: skip
        return found

    def _by_scope(self, places: list[tuple[int, Value]], scopes: DraftScopes) -> dict[int, list[Value]]:
        places.sort(key=_first)
        found: dict[int, list[Value]] = {}
        for scope, (_, value) in zip(scopes.find([start for start, _ in places]), places, strict=True):
            values = found.setdefault(scope, [])
            if len(values) < MAX_ELEMENTS and value not in values:
                values.append(value)
        return found

    def _stores(
        self, blocks: Blocks, scopes: DraftScopes, drafts: Sequence[Draft], is_detailed: bool
    ) -> tuple[Store, ...]:
        self.stores.sort(key=_first)
        owners = scopes.find([store[0] for store in self.stores])
        types = self.types
        places = [
            (scope, base, name, key) for scope, (_, base, name, _, key, _) in zip(owners, self.stores, strict=True)
        ]
        counts = Counter(place for place in places if _is_plain(place))
        found: list[Store] = []
        for place, (start, base, name, value, key, since) in zip(places, self.stores, strict=True):
            # `self.x = …` is mostly the only one of its method, and what stands in others counts too.
            is_lasting = since >= 0 and _is_plain(place) and counts[place] > (base in _SELF)
            end = blocks.find_end(start) if is_lasting else 0
            if end > 0 and base in _SELF and place[0] >= 0 and blocks.is_direct(start, drafts[place[0]].body_start):
                end = -1
            found.append(
                Store(
                    place[0], start, base, name, value, key, types.get(start), since if end or is_detailed else -1, end
                )
            )
        return tuple(found)

    def _foreign(self, scopes: DraftScopes) -> dict[tuple[int, str], str]:
        self.foreign.sort()
        owners = scopes.find([offset for offset, _, _ in self.foreign])
        return {(scope, name): word for scope, (_, name, word) in zip(owners, self.foreign, strict=True)}

    def _binds(
        self,
        language: Language,
        blocks: Blocks,
        definitions: list[Definition],
        scopes: DraftScopes,
        foreign: dict[tuple[int, str], str],
        calling: dict[int, tuple[int, int, list[Site]]],
    ) -> tuple[Bind, ...]:
        counts: dict[tuple[int, str], int] = {}
        for definition in definitions:
            if definition.symbol >= 0:
                for parameter in definition.parameters:
                    counts[definition.symbol, parameter.name] = 1
        found: list[tuple[int, str, Value, int, int, Value, int]] = []
        by_symbol = {definition.symbol: definition for definition in definitions if definition.symbol >= 0}
        holders: dict[str, set[int]] = {}
        late: set[tuple[int, str]] = set()  # bound by functions inside: who knows when
        self.binds.sort(key=_places)
        owners = scopes.find([bind[1] for bind in self.binds])
        types = self.types
        for (start, statement, name, value, inner), scope in zip(self.binds, owners, strict=True):
            word = foreign.get((scope, name)) if foreign else None
            kind = None if inner >= 0 else types.get(statement)
            at, around = statement, scope
            if word == "global":
                around = -1
            elif word == "nonlocal":
                around = self._holder(by_symbol, scope, name, holders.get(name, ()))
            if isinstance(value, SeenIn):
                at = value.offset
                scope = scopes.find([at])[0]
                kind, value = types.get(at), SeenIn(scope, at, value.value)
            elif around != scope and value is not None and not isinstance(value, (int, *_BY_ITSELF)):
                value = SeenIn(scope, at, value)
            found.append((start, name, value, around, statement, kind, inner))
            holders.setdefault(name, set()).add(around)
            if inner < 0:
                counts[around, name] = counts.get((around, name), 0) + 1
                if around != scope:
                    late.add((start, name))
                    found += [
                        (site.end, name, value, around, site.start, kind, inner)
                        for site in self._find_calls(blocks, calling.get(scope), around, at)
                    ]
        for definition in definitions:
            if definition.name and definition.start not in self.lambdas and definition.start not in self.unbound:
                name = label_type(definition.name) if definition.kind in language.type_kinds else definition.name
                found.append(
                    (definition.start, name, Defined(definition.start), definition.scope, definition.start, None, -1)
                )
                counts[definition.scope, name] = counts.get((definition.scope, name), 0) + 1
        found.sort(key=_first)
        return tuple(
            Bind(scope, name, value, start, inner, kind, True)
            if inner >= 0
            else Bind(
                scope, name, value, start,
                -1 if counts[scope, name] < 2 else 0 if (start, name) in late else blocks.find_end(statement), kind,
            )
            for start, name, value, scope, statement, kind, inner in found
        )  # fmt: skip

    def _find_calling(
        self, definitions: list[Definition], drafts: Sequence[Draft], sites: tuple[Site, ...]
    ) -> dict[int, tuple[int, int, list[Site]]]:
        """Function -> the scope it is defined in, where its body begins, and the calls of it that stand there."""
        by_name: dict[tuple[int, str], list[Definition]] = {}
        for definition in definitions:
            if definition.symbol >= 0 and definition.kind == "function":
                by_name.setdefault((definition.scope, definition.name), []).append(definition)
        called: dict[tuple[int, str], list[Site]] = {}
        for site in sites:
            if isinstance(site.callee, str) and (site.scope, site.callee) in by_name:
                called.setdefault((site.scope, site.callee), []).append(site)
        return {
            known[0].symbol: (place[0], drafts[known[0].symbol].body_start, called[place])
            for place, known in by_name.items()
            if len(known) == 1 and place in called
        }

    def _find_calls(
        self, blocks: Blocks, calling: tuple[int, int, list[Site]] | None, scope: int, statement: int
    ) -> list[Site]:
        """The calls of a function after which a variable of a scope is what the function assigns to it."""
        if calling is None or calling[0] != scope or not blocks.is_direct(statement, calling[1]):
            return []
        return calling[2]

    def _holder(
        self,
        by_symbol: Mapping[int, Definition],
        scope: int,
        name: str,
        holders: Collection[int],
    ) -> int:
        """The function around `scope` that binds a nonlocal name."""
        inner = scope
        while scope in by_symbol:
            definition = by_symbol[scope]
            if scope != inner and (scope in holders or any(p.name == name for p in definition.parameters)):
                return scope
            scope = definition.scope
        return inner


class Blocks:
    """Where the blocks of a document end, asked for a few of its statements; what these share is found once."""

    def __init__(self, language: Language, text: bytes, root: Node) -> None:
        self.text = text
        self._language = language
        self._ancestors = Ancestors(root)
        # Up to every node around the last place: the innermost that is no part of a straight line, the innermost block.
        self._turns: list[tuple[Node, Node | None]] = []
        self._ends: dict[int, int] = {}
        self._lines: list[int] = []  # where they begin
        self._found: dict[re.Pattern[bytes], tuple[int, int]] = {}  # what was searched for from where, and its place

    def find_end(self, statement: int) -> int:
        """See Language.block_end."""
        found = self._ends.get(statement)
        if found is None:
            found = self._ends[statement] = self._language.block_end(self, statement)
        return found

    def find_line(self, place: int) -> tuple[int, int]:
        """Where the line of a place begins, and how far it is indented."""
        if not self._lines:
            self._lines = [0, *(found.end() for found in _LINE_END.finditer(self.text))]
        line = self._lines[bisect_right(self._lines, place) - 1]
        indent = _INDENT.match(self.text, line)
        return line, 0 if indent is None else indent.end() - line

    def follows(self, place: int, word: bytes) -> bool:
        """Whether a place stands behind a word, with or without blanks between them."""
        while place and self.text[place - 1] in b" \t":
            place -= 1
        return self.text.endswith(word, 0, place)

    def find_next(self, pattern: re.Pattern[bytes], place: int) -> int:
        """Where a pattern is found next, -1 for nowhere. Statements of one block find the same end of it."""
        since, found = self._found.get(pattern, (0, 0))
        if not (since <= place and (place <= found or found < 0)) or not found:
            match = pattern.search(self.text, place)
            found = -1 if match is None else match.start()
            self._found[pattern] = place, found
        return found

    def is_direct(self, statement: int, body: int) -> bool:
        """Whether a statement always runs when a body does."""
        block = self._find_turn(statement)[1]
        return block is not None and start_of(block) == body and self.find_end(statement) != 0

    def find_turn(self, statement: int) -> Node | None:
        """The innermost node around a statement that is no part of a straight line; None for the document itself."""
        turn = self._find_turn(statement)[0]
        return None if turn == self._ancestors.root else turn

    def _find_turn(self, statement: int) -> tuple[Node, Node | None]:
        path = self._ancestors.around(statement)
        turns, straight = self._turns, self._language.straight_kinds
        del turns[self._ancestors.kept :]
        for node in path[len(turns) :]:
            kind = kind_of(node)
            turn, block = turns[-1] if turns else (node, None)
            turns.append((turn if kind in straight else node, node if kind in _BLOCKS else block))
        return turns[-1]


_BLOCKS = ("block", "statement_block")
_LINE_END = re.compile(rb"\n")
_INDENT = re.compile(rb"[ \t]*")


def _is_plain(place: tuple[int, Value, str | None, Value]) -> bool:
    """Whether a name has the attribute, or the element under a constant key, that is assigned."""
    _, base, name, key = place
    is_known = name is not None or isinstance(key, (Text, Integer))
    return is_known and isinstance(base, str) and "." not in base


_SELF = ("self", "this")
_UNKNOWN = Choice((None,))
_PLACED = (Defined, Lambda, ParameterOf)  # by where a definition starts
_LOOKED_AT = HOLDERS | {*_PLACED}
_BY_ITSELF = (Defined, Lambda, Imported, ParameterOf, Listing, Dictionary, Each)  # the same, whoever asks
Keywords = tuple[tuple[str, Value], ...]
_SIGNATURE_TEXT = 80


_first = itemgetter(0)
Row = TypeVar("Row", Definition, Site)


def _lift(row: Row, lifted: Mapping[int, int]) -> Row:
    return msgspec.structs.replace(row, scope=lifted[row.scope]) if row.scope in lifted else row


_places = itemgetter(0, 1, 2)
_spans = itemgetter(0, 1)
