"""Whether an index says what its texts say: every blob, span, link and name of one tree, and the rates they show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from xxhash import xxh3_128_hexdigest, xxh64_hexdigest

from cq.graph.links import find_targets, is_by_name
from cq.identity import Identity, identify
from cq.model.artifact import LanguageHealth, Validation
from cq.model.code import qualify
from cq.model.edge import CONFIDENCE, MAX_CANDIDATES, RELATIONS, STATUSES, Candidate, Links
from cq.model.facts import FileFacts, Symbol
from cq.semantics.tree import open_semantics
from cq.store.read import Reader, StoredFile, Tree
from cq.store.validate import DAMAGE, Findings, Rates, check_tables, load_links, load_symbol_table

# More than this share of definitions whose kind is not understood is a fault of ours.
MAX_OTHER_SHARE = 0.02


def validate_index(reader: Reader, tree: Tree, *, strict: bool = False) -> Validation:
    """Call it inside `with reader:`. Each text is checked once however many files have it. `strict` adds what is no
    damage but a promise: enough definitions of a known kind, and no name without an identity."""
    return _Index(reader, tree, strict).check()


class _Index:
    def __init__(self, reader: Reader, tree: Tree, strict: bool) -> None:
        self.reader, self.tree, self.strict = reader, tree, strict
        self.found = Findings()
        self.checked: Counter[str] = Counter()
        self.groups: Counter[str] = Counter()
        self.sound: dict[int, bool] = {}  # content -> whether its names can be asked for
        self.names: dict[str, set[int]] = {"chunk": set(), "symbol": set(), "document": set()}
        self.health: dict[str, Counter[str]] = {}
        self.semantics, self.rates = open_semantics(reader, tree.id), Rates()
        # Hashes of the definitions that links may name, and the place of those that they do.
        self.places: set[int] = set()
        self.meant: dict[int, str] = {}

    def check(self) -> Validation:
        if check_tables(self.reader, self.tree.id, self.found):
            try:
                for file in self.reader.files(self.tree.id):
                    self._check_file(file)
            except DAMAGE as error:
                self.found.add("sqlite", "index", f"the table of files cannot be read: {error}")
        for digest, where in self.meant.items():
            if digest not in self.places:
                self.found.add("link", where, "leads to a definition that is not there")
        if self.strict:
            self._check_shares()
            for row in self.reader.count_mistakes(self.tree.id):
                if row.paths:
                    self.found.add("mistake", row.paths[0], f"{row.error} at {row.place} cost links: see `cq status`")
        languages = [
            LanguageHealth(language, counts["files"], counts["problem files"], counts["problems"])
            for language, counts in sorted(self.health.items())
        ]
        conflicts = Findings()
        if self.found.counts.total() == 0 and self.reader.has_evidence(self.tree.id):
            self._find_conflicts(conflicts)
        return Validation(
            tuple(self.found.first), dict(self.found.counts), dict(self.checked), self.strict, tuple(languages),
            dict(sorted(self.groups.items())), self.rates.rows(), tuple(conflicts.first), conflicts.counts.total(),
        )  # fmt: skip

    def _find_conflicts(self, conflicts: Findings) -> None:
        """Calls of which a source outside says something else; ours stands."""
        for file in self.reader.files(self.tree.id):
            for document, found in enumerate(self.reader.evaluate(self.tree.id, file.path)):
                for each in found[1] if found else ():
                    call = self.reader.calls(file.content)[document][each.call]
                    line = self.reader.text(file.content).count(b"\n", 0, max(call.name_start, call.start)) + 1
                    what = f"{call.callee} is {each.ours}; {each.source} says {each.theirs}"
                    conflicts.add(each.source, f"{file.path}:{line}", what)

    def _check_file(self, file: StoredFile) -> None:
        self.checked["files"] += 1
        health = self.health.setdefault(file.language, Counter())
        problems = file.counts.get("problems", 0) + len(file.problems)
        health.update({"files": 1, "problems": problems, "problem files": bool(problems)})
        known = self.sound.get(file.content)
        if known is False:
            return
        try:
            text, facts = self.reader.text(file.content), self.reader.facts(file.content)
        except DAMAGE as error:
            self.found.add("blob", file.path, f"cannot be decoded: {error}")
            self.sound[file.content] = False
            return
        if known is None:
            before = self.found.counts.total()
            self._check_content(file, text, facts)
            self.sound[file.content] = self.found.counts.total() == before
            self.checked["contents"] += 1
        if self.sound[file.content]:
            self._check_names(file.path, facts, identify(file.path, text, facts))
            try:
                self._check_links(file.path, list(_flatten(facts)))
            except DAMAGE as error:
                self.found.add("link", file.path, f"the links cannot be read: {error}")
            self.semantics.documents.forget(file.path)

    def _check_content(self, file: StoredFile, text: bytes, facts: FileFacts) -> None:
        if xxh3_128_hexdigest(text) != file.hash:
            self.found.add("text_hash", file.path, "the stored text is not the text that was read")
            return
        if facts.language != file.language:
            self.found.add("counts", file.path, f"facts of {facts.language}, a file of {file.language}")
        documents = list(_flatten(facts))
        counts = {
            "documents": len(documents),
            "symbols": sum(len(document.symbols) for document in documents),
            "calls": sum(len(document.calls) for document in documents),
            "imports": sum(len(document.imports) for document in documents),
            "references": sum(len(document.references) for document in documents),
            "chunks": sum(len(document.chunks) for document in documents),
            "problems": sum(len(document.problems) for document in documents),
        }
        self.checked.update(counts)
        for name, count in counts.items():
            if file.counts.get(name) != count:
                self.found.add("counts", file.path, f"{file.counts.get(name)} {name} stored, {count} in the facts")
        lines = text.count(b"\n") + (bool(text) and not text.endswith(b"\n"))
        if file.lines != lines:
            self.found.add("counts", file.path, f"{file.lines} lines stored, {lines} in the text")
        for document in documents:
            self.groups.update(symbol.kind_group for symbol in document.symbols)
            for code, what in check_document(text, document):
                self.found.add(code, file.path, what)
        self._check_symbol_table(file, documents)
        self._check_search(file, documents)

    def _check_symbol_table(self, file: StoredFile, documents: Sequence[FileFacts]) -> None:
        rows = {(row[0], row[1]): row[2:] for row in load_symbol_table(self.reader, file.content)}
        for place, document in enumerate(documents):
            for number, symbol in enumerate(document.symbols):
                row = rows.pop((place, number), None)
                if row is None:
                    if symbol.kind_group != "value":
                        self.found.add("symbol_table", file.path, f"{symbol.qualified_name} is not in the table")
                elif row != (symbol.name, symbol.qualified_name, symbol.kind):
                    self.found.add(
                        "symbol_table", file.path, f"{row[1]!r} in the table, {symbol.qualified_name!r} here"
                    )
        for row in rows.values():
            self.found.add("symbol_table", file.path, f"{row[1]} is in the table and not in the facts")

    def _check_search(self, file: StoredFile, documents: Sequence[FileFacts]) -> None:
        """The text indexes find the file by the longest name it defines."""
        names = {
            s.name
            for document in documents
            for s in document.symbols
            # A pattern among parameters has a name that stands nowhere.
            if s.name.isascii() and s.name.isidentifier() and s.name_end - s.name_start == len(s.name)
        }
        name = max(sorted(names), key=len, default="")
        if not 3 <= len(name) <= 64:
            return
        if file.content not in self.reader.find_names(name, "defined"):
            self.found.add("search", file.path, f"the name index does not find {name}")
        hits = self.reader.find_trigram(name)
        if hits is not None and file.content not in hits:
            self.found.add("search", file.path, f"the text index does not find {name}")

    def _check_names(self, path: str, facts: FileFacts, identity: Identity) -> None:
        self._add_name("document", identity.virtual_path, path)
        for uid in identity.chunk_uids:
            self._add_name("chunk", uid, path)
        for symbol_id in identity.symbol_ids:
            self._add_name("symbol", symbol_id, path)
        if self.strict and not all(chunk.uid_suffix and chunk.span_hash for chunk in facts.chunks):
            self.found.add("identity", path, "a chunk has no identity")
        for document, inner in zip(facts.embedded, identity.embedded, strict=True):
            self._check_names(path, document, inner)

    def _add_name(self, kind: str, name: str, path: str) -> None:
        digest, names = hash(name), self.names[kind]
        if digest in names:
            self.found.add("identity", path, f"the {kind} {name} is there twice")
        names.add(digest)

    def _check_links(self, path: str, documents: Sequence[FileFacts]) -> None:
        stored = load_links(self.reader, self.tree.id, path)
        has_code = any(document.code is not None for document in documents)
        if stored is None:
            if has_code:
                self.found.add("link", path, "has code that was not linked")
            return
        every, targets = stored
        expected: set[int] = set()
        for number, (document, links) in enumerate(zip(documents, every, strict=False)):
            if document.code is not None:
                names = qualify(document.code).values()
                self.places.update(hash(Candidate(path, number, name)) for name in ("", *names))
            if links is not None:
                before = self.found.counts["link"]
                for what in check_links(document, links):
                    self.found.add("link", path, what)
                if self.found.counts["link"] == before:
                    expected.update(key for key, _ in find_targets(links))
                    self._count_links(path, number, document)
        if targets != expected and not self.found.counts["link"]:
            self.found.add("link", path, "what refers to what is not what its links say")

    def _count_links(self, path: str, number: int, document: FileFacts) -> None:
        for edge in self.semantics.referrers.find_all(path, number):
            ref = edge.ref
            for place in ref.candidates:
                self.meant.setdefault(hash(place), f"{path}: {ref.name or edge.kind}")
            narrowed = ref.evidence == "import" or bool(ref.module)
            narrowed = narrowed or (
                edge.call >= 0 and self.semantics.meanings.find_import(path, number, edge.call) is not None
            )
            is_call = edge.call >= 0 and ref == self.semantics.calls.find_call(path, number, edge.call)
            for what in ("all", *(["calls"] if is_call else ["imports"] if edge.kind == "imports" else [])):
                self.rates.add(document.language, what, ref.status, narrowed=narrowed, capped=ref.omitted > 0)

    def _check_shares(self) -> None:
        other, total = self.groups["other"], self.groups.total()
        if total and other / total >= MAX_OTHER_SHARE:
            limit = f"{MAX_OTHER_SHARE:.0%}"
            self.found.add(
                "kind_share", "index", f"{other:,} of {total:,} definitions are of kind group other, over {limit}"
            )


def check_document(text: bytes, facts: FileFacts) -> Iterator[tuple[str, str]]:
    """(code, what) for everything that does not hold in one document; `text` is that of the whole file."""
    first, last = (facts.segment.start, facts.segment.end) if facts.segment else (0, len(text))
    if not 0 <= first <= last <= len(text):
        yield "span", f"a document at {first}..{last} of {len(text)} bytes"
        return
    items: dict[str, Sequence[Any]] = {
        "symbol": facts.symbols, "call": facts.calls, "import": facts.imports, "export": facts.exports,
        "flow": facts.flows, "chunk": facts.chunks,
    }  # fmt: skip
    for kind, found in items.items():
        for item in found:
            if not first <= item.start <= item.end <= last:
                yield "span", f"a {kind} at {item.start}..{item.end} lies outside {first}..{last}"
    for kind in ("call", "import", "flow"):
        for item in items[kind]:
            if not -1 <= item.scope < len(facts.symbols):
                yield "reference", f"a {kind} at {item.start} in scope {item.scope} of {len(facts.symbols)}"
    for call in facts.calls:
        if call.name_start >= 0 and not text.startswith(call.name.encode(), call.name_start):
            yield "span", f"the call of {call.name} is not at {call.name_start}"
    yield from _check_symbols(facts)
    yield from _check_references(text, facts, first, last)
    yield from _check_chunks(text, facts, first, last)


def check_links(facts: FileFacts, links: Links) -> Iterator[str]:
    """What does not hold in the links of one document, whatever the others say."""
    if not len(links.calls) == len(links.scopes) == len(facts.calls):
        yield f"links of {len(links.calls)} calls, of which there are {len(facts.calls)}"
        return
    pairs = [pair for kind in RELATIONS for pair in getattr(links, kind)]
    calls = {*links.constructors, *links.callbacks}
    numbers = {*links.calls, *links.constructors.values(), *links.callbacks.values(), *(at for _, at in pairs)}
    if not all(0 <= number < len(links.refs) for number in numbers) or any(call >= len(facts.calls) for call in calls):
        yield "a reference or a call that is not there"
    for ref in links.refs:
        count = len(ref.candidates)
        few, many = {"resolved": (1, 1), "ambiguous": (0 if is_by_name(ref) else 1, MAX_CANDIDATES)}.get(
            ref.status, (0, 0)
        )
        if ref.status not in STATUSES or not few <= count <= many or len({*ref.candidates}) < count:
            yield f"{ref.name!r} is {ref.status}, with {count} candidates"
        if ref.evidence not in CONFIDENCE or not 0 <= ref.confidence <= 1:
            yield f"{ref.name!r} by {ref.evidence!r}, {ref.confidence:g} sure"


def _check_symbols(facts: FileFacts) -> Iterator[tuple[str, str]]:
    symbols = facts.symbols
    if any(_symbol_key(left) > _symbol_key(right) for left, right in pairwise(symbols)):
        yield "reference", "the symbols are not in order"
    for number, symbol in enumerate(symbols):
        name = symbol.qualified_name
        if not symbol.name:
            yield "identity", f"the definition at {symbol.start} has no name"
        if not symbol.start <= symbol.head <= symbol.name_start <= symbol.name_end <= symbol.end:
            yield "span", f"{name}: its name lies outside it"
        if symbol.body_start >= 0 and not symbol.start <= symbol.body_start <= symbol.body_end <= symbol.end:
            yield "span", f"{name}: its body lies outside it"
        if not 0 <= symbol.chunk < len(facts.chunks):
            yield "reference", f"{name}: chunk {symbol.chunk} of {len(facts.chunks)}"
        if not -1 <= symbol.parent < number:
            yield "reference", f"{name}: parent {symbol.parent} of symbol {number}"
            continue
        parent = symbols[symbol.parent] if symbol.parent >= 0 else None
        if symbol.depth != (parent.depth + 1 if parent else 0):
            yield "reference", f"{name}: depth {symbol.depth}"
        if parent and not (parent.start <= symbol.start and symbol.end <= parent.end):
            yield "span", f"{name} lies outside {parent.qualified_name}"


def _symbol_key(symbol: Symbol) -> tuple[int, int, int]:
    return symbol.start, -symbol.end, symbol.name_start


def _check_references(text: bytes, facts: FileFacts, first: int, last: int) -> Iterator[tuple[str, str]]:
    at = first
    try:
        for name, start, end, _ in facts.references:
            if not at <= start < end <= last or text[start:end] != name.encode():
                yield "span", f"the reference to {name!r} is not at {start}"
            at = end
    except (IndexError, ValueError) as error:
        yield "blob", f"references: {error}"


def _check_chunks(text: bytes, facts: FileFacts, first: int, last: int) -> Iterator[tuple[str, str]]:
    chunks = facts.chunks
    if not chunks or chunks[0].kind != "module" or (chunks[0].start, chunks[0].end) != (first, last):
        yield "chunk_rule", "the first chunk is not the module"
        return
    if len({chunk.uid_suffix for chunk in chunks}) < len(chunks):
        yield "identity", "two chunks of one document have one uid"
    crlf, children = b"\r\n" in text, Counter(chunk.parent for chunk in chunks)
    for number, chunk in enumerate(chunks):
        piece = text[chunk.start : chunk.end]
        if chunk.span_hash != xxh64_hexdigest(b"span\0" + (piece.replace(b"\r\n", b"\n") if crlf else piece)):
            yield "identity", f"the span hash of chunk {number} is not that of its text"
        if not -1 <= chunk.symbol < len(facts.symbols) or not -1 <= chunk.parent < number:
            yield "reference", f"chunk {number}: symbol {chunk.symbol}, parent {chunk.parent}"
            return
        if not all(number < child < len(chunks) and chunks[child].parent == number for child in chunk.children):
            yield "chunk_rule", f"the children of chunk {number} have another parent"
            return
        if len(chunk.children) != children[number]:
            yield "chunk_rule", f"chunk {number} does not name all chunks that name it as their parent"
        if not all(0 <= item < len(facts.imports) for item in chunk.imports):
            yield "reference", f"chunk {number} uses an import that is not there"
        yield from _check_siblings(text, facts, chunk.children, (chunk.start, chunk.end), whole=False)
    roots = [number for number, chunk in enumerate(chunks) if number and chunk.parent < 0]
    yield from _check_siblings(text, facts, roots, (first, last), whole=True)


def _check_siblings(
    text: bytes, facts: FileFacts, numbers: Sequence[int], span: tuple[int, int], *, whole: bool
) -> Iterator[tuple[str, str]]:
    """They lie in their parent and do not overlap; those at root level leave out nothing but blanks."""
    at, end = span
    for number in numbers:
        chunk = facts.chunks[number]
        if chunk.start < at or chunk.end > end:
            yield "chunk_rule", f"chunk {number} overlaps its neighbour or leaves its parent"
        elif whole and text[at : chunk.start].strip():
            yield "chunk_rule", f"no chunk covers {at}..{chunk.start}"
        at = max(at, chunk.end)
    if whole and text[at:end].strip():
        yield "chunk_rule", f"no chunk covers {at}..{end}"


def _flatten(facts: FileFacts) -> Iterator[FileFacts]:
    """Outer before inner, as documents are stored."""
    yield facts
    for inner in facts.embedded:
        yield from _flatten(inner)
