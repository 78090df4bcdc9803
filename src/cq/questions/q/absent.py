"""Why a query finds nothing: names, directories and words that the repository does not have, and other kinds of
entities that would fit. Looked for only where nothing was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from cq.model.status import Degraded
from cq.query.faults import did_you_mean
from cq.query.plan import Literals, Refined, Selection, find_literals, find_selections
from cq.query.tree import And, Expression, Not, Or, Token, find_tokens
from cq.query.vocabulary import ENTITIES, FILE_TOKENS, LANGUAGE_NAMES, STRUCTURAL, TOKENS
from cq.questions.q.candidates import describe_words, file_test, has_words, look_up
from cq.questions.q.documents import OpenFile
from cq.questions.q.entities import raised_name
from cq.questions.q.links import Links
from cq.questions.q.matches import Match, Result
from cq.questions.q.run import Search
from cq.store.read import Reader, StoredFile, Tree

_NAMED = ("name", "decorated_by", "raises", "defines", "exports", "captures")
_SYMBOLS = tuple(entity for entity, kinds in ENTITIES.items() if kinds)


def explain_absence(result: Result, reader: Reader, tree: Tree, files: dict[str, StoredFile]) -> list[Degraded]:
    absence = _Absence(reader, tree, files)
    notes: dict[str, Degraded] = {}
    for selection, statistics in zip(find_selections(result.plan.root), result.statistics, strict=True):
        found = sum(part.matches for part in statistics.languages.values())
        for token, alternative in _find_positive(selection):
            if not found or alternative or token.key in FILE_TOKENS:
                said = absence.explain(token, selection)
                if said:
                    notes.setdefault(said, Degraded("query", "warning", "absent", said, token.key))
        if not found and not notes and (said := absence.find_other_entities(selection)):
            notes.setdefault(said, Degraded("query", "warning", "other_entity", said, "entity"))
    match result.plan.root:
        case Refined(source=Selection(), stages=stages) if not result.total:
            left = sum(part.matches for part in result.statistics[0].languages.values())
            said = " ".join(str(stage) for stage in stages if stage.condition is not None)
            if left and said:
                said = f"{said}: none of the {left:,} matches fits that"
                notes.setdefault(said, Degraded("query", "warning", "absent", said, "filter"))
        case _:
            pass
    return list(notes.values())


def _find_positive(selection: Selection) -> Iterator[tuple[Token, bool]]:
    """Tokens that must hold, or one of several; the latter are marked."""
    todo: list[tuple[Expression, bool]] = [(item, False) for item in selection.where]
    if selection.subject is not None:
        todo.insert(0, (selection.subject, False))
    while todo:
        item, alternative = todo.pop(0)
        match item:
            case And():
                todo = [*((part, alternative) for part in item.items), *todo]
            case Or():
                todo = [*((part, True) for part in item.items), *todo]
            case Token():
                yield item, alternative
            case Not(item=Token() as left_out) if left_out.key in (*FILE_TOKENS, *_NAMED, "used_by"):
                yield left_out, True
            case _:
                pass


class _Absence:
    def __init__(self, reader: Reader, tree: Tree, files: dict[str, StoredFile]) -> None:
        self._reader, self._tree, self._files = reader, tree, files
        self._links = Links(reader, tree, files)

    def explain(self, token: Token, selection: Selection) -> str:
        """Why nothing can fit a token, whatever else the query says; "" where something does."""
        said = f"{token.key}={token.text}" if token.op == "=" else f"{token.key}=~{token.text}"
        if token.key in ("in", "globs", "exclude"):
            return self._explain_files(token)
        if token.key == "lang":
            return self._explain_languages(token)
        if token.key == "used_by":
            if self._find(Selection(_SYMBOLS, None, (Token("name", token.value, op=token.op),), None), first=True):
                return ""
            return f"{said}: no definition here is called that{self._suggest(token)}"
        if token.key in _NAMED:
            entities = selection.entities if token.key == "name" else TOKENS[token.key].entities
            if token.key == "name" and set(entities) <= set(_SYMBOLS):
                entities = _SYMBOLS  # one of another kind is a hint of its own
            if self._find(Selection(entities, None, (token,), None), first=True):
                return ""
            return f"{said}: nothing here fits that{self._suggest(token, entities)}"
        if token.key.startswith(("$", "decorator_count")) and token in selection.where:
            others = tuple(item for item in selection.where if item != token)
            if count := len(self._find(msgspec.structs.replace(selection, where=others))):
                return f"{said}: none of the {count:,} matches fits that"
        if token.key in STRUCTURAL and token.key != "nthChild":
            literals = find_literals(Selection((), token, (), None))
            if (missing := self._find_missing(literals)) is not None:
                return f"no file here holds {describe_words(missing)}, which {token.key}= needs"
        return ""

    def _find_missing(self, literals: Literals) -> Literals:
        """What no file holds: one of the words, or all of them together; None where a file holds them."""
        contents = look_up(self._reader, literals)  # which may hold them
        if contents is None or any(has_words(literals, self._reader.text(content)) for content in sorted(contents)):
            return None
        parts = literals[1] if isinstance(literals, tuple) and literals[0] == "all" else ()
        return next((missing for part in parts if (missing := self._find_missing(part)) is not None), literals)

    def find_other_entities(self, selection: Selection) -> str:
        """`entity=function inside='class C'` has methods."""
        tokens = [leaf for item in selection.where for leaf in find_tokens(item) if isinstance(leaf, Token)]
        others = tuple(
            entity
            for entity in _SYMBOLS
            if entity not in selection.entities
            and all(entity in TOKENS[t.key].entities for t in tokens if t.key in TOKENS)
        )
        if not others or not set(selection.entities) <= set(_SYMBOLS) or not selection.entities or not selection.where:
            return ""
        kinds = {kind: entity for entity in others for kind in ENTITIES[entity]}
        counts = Counter(kinds[match.kind] for match in self._find(msgspec.structs.replace(selection, entities=others)))
        listed = ", ".join(f"{count:,} with entity={entity}" for entity, count in counts.most_common(3))
        return f"no {' or '.join(selection.entities)} fits, but {listed}" if listed else ""

    def _find(self, selection: Selection, *, first: bool = False) -> list[Match]:
        """Of the whole repository; the matches of the first file that has any are enough where only that matters."""
        search = Search(selection, self._reader, self._tree, self._files, self._links, frozenset())
        for stored in self._files.values():
            if search.wants(stored):
                search.look_at(OpenFile(self._reader, stored))
                if first and search.matches:
                    break
        return search.matches

    def _explain_files(self, token: Token) -> str:
        for value in token.values:
            test = file_test(
                Token("globs" if token.key == "exclude" else token.key, (value,) if token.key != "in" else value)
            )
            if not any(test(path, stored.language) for path, stored in self._files.items()):
                known = {part for path in self._files for part in _folders(path)} if token.key == "in" else ()
                near = did_you_mean(value.removeprefix("./").strip("/"), sorted(known))
                what = "no file is below it" if token.key == "in" else "no file fits it"
                return f"{token.key}={value}: {what}" + (f" ({near})" if near else "")
        return ""

    def _explain_languages(self, token: Token) -> str:
        known = {stored.language for stored in self._files.values()}
        for stored in self._files.values():
            if stored.counts.get("documents", 1) > 1:
                known |= {part.language for part in self._reader.documents(stored.content)}
        missing = [value for value in token.values if value != "auto" and not known & set(LANGUAGE_NAMES[value])]
        return f"lang={missing[0]}: no file here is of it" if missing else ""

    def _suggest(self, token: Token, entities: tuple[str, ...] = ()) -> str:
        if token.op != "=":
            return ""
        wanted = token.text.replace("::", ".")
        name = wanted.rpartition(".")[2]
        named = entities if token.key == "name" else ()
        listed = tuple(entity for entity in named if entity in ("decorator", "import", "module"))
        if token.key == "decorated_by":
            listed = ("decorator",)
        if listed:
            found = self._find(Selection(listed, None, (), None))
            known = {match.qualified_name if "." in wanted else match.name for match in found}
        elif "." in wanted and (names := self._find_relatives(wanted)):
            known = names
        else:
            wanted, known = name, set(self._reader.find_similar(len(name)))
            if token.key == "raises":  # most of what is raised is defined elsewhere
                documents = (
                    part for stored in self._files.values() for part in OpenFile(self._reader, stored).documents
                )
                known |= {raised_name(text)[0] for document in documents for _, text in document.raised}
        near = did_you_mean(wanted, sorted(known - {wanted}))
        return f" ({near})" if near else ""

    def _find_relatives(self, wanted: str) -> set[str]:
        """Qualified names that end in the same name, else those of the same holder."""
        holder, _, name = wanted.rpartition(".")
        if rows := self._reader.find_symbols(self._tree.id, name):
            return {row.qualified_name for row in rows}
        kinds = [kind for entity in _SYMBOLS for kind in ENTITIES[entity]]
        names = {qualified for _, _, qualified in self._reader.find_kinds(self._tree.id, kinds)}
        return {qualified for qualified in names if f".{qualified.rpartition('.')[0]}".endswith(f".{holder}")}


def _folders(path: str) -> Iterator[str]:
    """The path and every directory around it."""
    while path:
        yield path
        path = path.rpartition("/")[0]
