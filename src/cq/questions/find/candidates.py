"""Stage one: which chunks may be meant, by their words. Filters hold before anything is ranked or cut."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from cq.language import TEXT, describe
from cq.model.embedding import QUIET_KINDS, is_data
from cq.model.facts import CHUNK_KINDS, KIND_GROUPS
from cq.questions.find.evidence import FileNames
from cq.questions.find.words import STOP, stem
from cq.source.files import PathFilter
from cq.source.role import find_role
from cq.store.terms import Terms

if TYPE_CHECKING:
    from numpy import bool_, float64, int64
    from numpy.typing import NDArray

    from cq.indexing.vectors import Semantic
    from cq.store.read import Reader, Tree

# What a word is worth by where it stands; measured (bench/find.md).
WEIGHTS = {"name": 5.0, "qualified_name": 2.0, "signature": 1.0, "docs": 1.0, "body": 1.0}
PATH_WEIGHT = 2.0
K1, LENGTH = 1.2, 0.75
MAX_TERMS = 32
COMMON = 0.25  # a word in more of the chunks than this says nothing beside rarer ones
# A file that is not the product itself, unless the question is about such files.
_PRIORS = {"test": 0.6, "doc": 0.6, "generated": 0.7, "lib": 0.8}
_ASIDE_PRIOR = 0.6
_ASIDE = re.compile(r"(?:^|/)(?:_?examples?|benchmarks?|bench|samples?|demos?)/|[_-]bench(?:mark)?\.", re.IGNORECASE)
_ASKED = re.compile(
    r"\b(?:tests?|testing|specs?|fixtures?|examples?|samples?|demos?|bench(?:marks?)?|docs?|documentation|generated)\b",
    re.IGNORECASE,
)
_CFG_TEST = re.compile(r"cfg\s*\(\s*(?:all\s*\(\s*)?test\b")
_DATA_PRIOR = 0.6
_PASSED_ON = [CHUNK_KINDS.index(kind) for kind in ("import", "export")]
_LOOSE_PRIOR = 0.7  # of a statement that defines nothing
_PART = CHUNK_KINDS.index("part")
_LONG = 4096  # terms that a part of a long definition has, and no comment
_IDENTIFIER = re.compile(r"[\w$#]+(?:(?:\.|::|->|/)[\w$#]+)*\(?\)?\Z")


class Catalog:
    """Every chunk of a tree by its row in the word index: where it stands and of what kind it is."""

    def __init__(self, reader: Reader, tree: Tree) -> None:
        import numpy as np

        rows = reader.chunk_rows(tree.id)
        self.tree = tree.id
        self.paths = [row[0] for row in rows]
        self.languages = [row[1] for row in rows]
        self.contents = [row[2] for row in rows]
        self.sizes = np.array([len(row[4]) for row in rows], np.int64)
        self.starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.sizes)])
        # Chunks are numbered file by file; equal files share rows of the index, so a row may stand for several chunks.
        self.kinds = np.frombuffer(b"".join(row[4] for row in rows), np.uint8)
        self.files = np.repeat(np.arange(len(rows), dtype=np.int64), self.sizes)
        bases = np.array([row[3] for row in rows], np.int64)
        self.rows = np.arange(len(self.kinds), dtype=np.int64) - self.starts[self.files] + bases[self.files]
        self._order = np.argsort(self.rows, kind="stable")
        self._sorted = self.rows[self._order]
        self._path_words: dict[str, list[int]] = {}
        sizes = np.frombuffer(b"".join(row[5] for row in rows), np.uint16).astype(float)
        self._owners = self._find_owners(reader, sizes)
        # What BM25 makes of the length of a text: a word among few is worth more. One among more than usual is worth no
        # less for it (bench/find.md): else a word deep in a long function would not be found.
        relative = np.minimum(sizes / max(float(sizes.mean()) if len(sizes) else 1.0, 1.0), 1.0)
        self.lengths = 1 - LENGTH + LENGTH * relative
        files = np.array([_prior(path, row[1]) for path, row in zip(self.paths, rows, strict=True)])
        defined = np.array([kind in KIND_GROUPS for kind in CHUNK_KINDS])[self.kinds]
        data = np.array([_DATA_PRIOR if is_data(row[0], row[1]) else 1.0 for row in rows])
        # Where no grammar says what is defined, a statement may well be a definition.
        unread = np.array([row[1] == TEXT for row in rows], bool) & (data == 1.0)
        own = np.where(defined | unread[self.files], 1.0, _LOOSE_PRIOR) if rows else files
        self._priors = files[self.files] * own if rows else files
        self._even = data[self.files] * own if rows else files
        self.places = {path: number for number, path in enumerate(self.paths)}
        self._names: FileNames | None = None
        self._inline_tests: dict[int, set[int]] = {}  # by file: its chunks among tests, as far as they were asked for

    def __len__(self) -> int:
        return len(self.kinds)

    def _find_owners(self, reader: Reader, sizes: NDArray[float64]) -> NDArray[int64]:
        """Of every chunk the one that is found by its words: itself, but for a part that a definition was cut into."""
        import numpy as np

        owners = np.arange(len(self.kinds), dtype=np.int64)
        long = (self.kinds == _PART) & (sizes >= _LONG)
        for file in np.unique(self.files[long]).tolist():
            start = int(self.starts[file])
            for chunks in reader.chunks(self.contents[file]):
                for number, chunk in enumerate(chunks):
                    parts = [start + child for child in chunk.children if self.kinds[start + child] == _PART]
                    owners[parts] = start + number if long[parts].any() else parts
                start += len(chunks)
        return owners

    def find(self, rows: NDArray[int64]) -> NDArray[int64]:
        """The chunks of this tree that have one of the rows, or a part that does."""
        import numpy as np

        first = np.searchsorted(self._sorted, rows, "left")
        counts = np.searchsorted(self._sorted, rows, "right") - first
        inner = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        return self._owners[self._order[np.repeat(first, counts) + inner]]

    def has_path_word(self, stemmed: str) -> NDArray[bool_]:
        """For every file whether its path has a word of this stem."""
        import numpy as np

        if not self._path_words:
            expand = Terms().expand
            for number, path in enumerate(self.paths):
                for word in set(expand(path.encode()).lower().split()):
                    self._path_words.setdefault(stem(word), []).append(number)
        found = np.zeros(len(self.paths), bool)
        found[self._path_words.get(stemmed, [])] = True
        return found

    def weigh(self, text: str) -> NDArray[float64]:
        """How much of its score each chunk keeps: less in tests and other asides, unless the question is about them."""
        return self._even if _ASKED.search(text) else self._priors

    def find_inline_tests(self, reader: Reader, chunks: NDArray[int64], text: str) -> NDArray[float64]:
        """How much of its score each of these chunks keeps for standing among the tests that a file of Rust has beside
        its code: as much as a chunk of a file of tests."""
        import numpy as np

        kept = np.ones(len(chunks))
        if _ASKED.search(text):
            return kept
        beside = np.array([describe(language).has_inline_tests for language in self.languages], bool)[
            self.files[chunks]
        ]
        for at in np.flatnonzero(beside).tolist():
            file = int(self.files[chunks[at]])
            if file not in self._inline_tests:
                self._inline_tests[file] = _find_inline_tests(reader, self.contents[file])
            if int(chunks[at] - self.starts[file]) in self._inline_tests[file]:
                # A file of tests is lower already.
                kept[at] = min(_PRIORS["test"] / max(float(self._priors[chunks[at]]), 1e-9), 1.0)
        return kept

    @property
    def names(self) -> FileNames:
        if self._names is None:
            self._names = FileNames(self.paths)
        return self._names

    def first_chunk(self, file: int, allowed: NDArray[bool_]) -> int:
        """Of those that are allowed, the first that defines something, else the first; -1 where there is none."""
        import numpy as np

        start, end = int(self.starts[file]), int(self.starts[file + 1])
        places = np.flatnonzero(allowed[start:end]) + start
        return int(max(places, key=lambda place: (self._priors[place], -place))) if len(places) else -1

    def allow(self, paths: Sequence[str], languages: Sequence[str], kinds: Sequence[str]) -> NDArray[bool_]:
        """Which chunks a question is about. Paths are globs, files or folders; kinds are kinds or groups of them."""
        import numpy as np

        wanted = {kind for kind in CHUNK_KINDS if kind in kinds or KIND_GROUPS.get(kind) in kinds}
        shown = [(kind in wanted) if kinds else kind not in QUIET_KINDS for kind in CHUNK_KINDS]
        allowed = np.array(shown + [False] * (256 - len(shown)))[self.kinds]
        if not kinds and len(allowed):
            # A file of imports alone says where a name can be had from.
            silent = np.bincount(self.files[allowed], minlength=len(self.paths)) == 0
            allowed = allowed | (silent[self.files] & np.isin(self.kinds, _PASSED_ON))
        if paths or languages:
            is_wanted = PathFilter(include=paths)
            files = [
                (not languages or language in languages) and is_wanted(path)
                for path, language in zip(self.paths, self.languages, strict=True)
            ]
            allowed &= np.array(files, bool)[self.files] if files else allowed
        return allowed

    def locate(self, chunk: int) -> tuple[str, int]:
        """(path, number of the chunk in its file, all documents counted through)."""
        file = int(self.files[chunk])
        return self.paths[file], chunk - int(self.starts[file])


def _find_inline_tests(reader: Reader, content: int) -> set[int]:
    """The chunks of a file that are compiled for tests only: `#[cfg(test)] mod tests`, `#[test] fn`."""
    found: set[int] = set()
    before = 0
    for symbols, chunks in zip(reader.symbols(content), reader.chunks(content), strict=True):
        spans = [
            (symbol.start, symbol.end)
            for symbol in symbols
            if any(word == "test" or _CFG_TEST.match(word) for word in symbol.decorators)
        ]
        for number, chunk in enumerate(chunks):
            if any(start <= chunk.start and chunk.end <= end for start, end in spans):
                found.add(before + number)
        before += len(chunks)
    return found


def load_catalog(reader: Reader, tree: Tree, semantic: Semantic) -> Catalog:
    """As it was made for the question before this one, if nothing changed since."""
    kept: dict[tuple[object, ...], Catalog] = semantic.kept.setdefault("catalog", {})
    if semantic.key not in kept:
        kept.clear()
        kept[semantic.key] = Catalog(reader, tree)
    return kept[semantic.key]


class Lexical(msgspec.Struct, frozen=True):
    """Chunks by their words: numbers of the catalog, and a score of 0 to 1 for each that does not depend on the
    others: the share of what the words of the question could be worth. And so for every file as a whole, where a word
    counts as often as there are chunks that have it."""

    chunks: NDArray[int64]
    scores: NDArray[float64]
    files: NDArray[float64]
    asked: int = 0  # words that say what the question is about
    absent: tuple[str, ...] = ()  # those of them that no chunk and no path has, in any form


def find_lexical(reader: Reader, catalog: Catalog, text: str, allowed: NDArray[bool_]) -> Lexical:
    """Every allowed chunk that has one of the words of the question, by BM25F."""
    import numpy as np

    terms = split_terms(text)
    total = len(catalog)
    most = max(int(total * COMMON), 50)
    weights = {term: _weigh(reader, catalog, term, most) for term in terms}
    rare = [term for term in terms if weights[term] is not None]
    if not rare:
        weights = {term: _weigh(reader, catalog, term, total + 1) for term in terms}
        rare = terms
    score, worth = np.zeros(total), 0.0
    whole, whole_worth = np.zeros(len(catalog.paths)), 0.0
    sizes = np.bincount(catalog.files[allowed], minlength=len(whole))
    lengths = 1 - LENGTH + LENGTH * sizes / max(float(sizes.sum()) / max(np.count_nonzero(sizes), 1), 1.0)
    for term in rare:
        found = weights[term]
        assert found is not None
        chunks, weight = found
        rarity = _rarity(total, len(chunks))
        worth += rarity
        counts = np.bincount(catalog.files[chunks[allowed[chunks]]], minlength=len(whole))
        file_rarity = _rarity(len(whole), int(np.count_nonzero(counts)))
        whole_worth += file_rarity
        whole += file_rarity * counts / (counts + K1 * lengths)
        # A word of the path counts where another of the question's words is in the text: below.
        weight = weight + PATH_WEIGHT * catalog.has_path_word(stem(term))[catalog.files[chunks]]
        score[chunks] += rarity * weight / (weight + K1)
    hit = np.flatnonzero((score > 0) & allowed)
    for term in rare:
        found = weights[term]
        assert found is not None
        missed = catalog.has_path_word(stem(term))[catalog.files[hit]]
        missed[np.isin(hit, found[0])] = False
        score[hit[missed]] += _rarity(total, len(found[0])) * PATH_WEIGHT / (PATH_WEIGHT + K1)
    absent = tuple(
        term
        for term, found in weights.items()
        if found is not None and not len(found[0]) and not catalog.has_path_word(stem(term)).any()
    )
    shares = np.minimum(score[hit] / max(worth, 1e-9), 1.0)
    return Lexical(hit, shares, whole / max(whole_worth, 1e-9), len(terms), absent)


def _rarity(total: int, having: int) -> float:
    return math.log(1 + (total - having + 0.5) / (having + 0.5))


def _weigh(reader: Reader, catalog: Catalog, term: str, most: int) -> tuple[NDArray[int64], NDArray[float64]] | None:
    """The chunks that have a word, and how much of it by field; None for a word in most of them."""
    import numpy as np

    weight = np.zeros(len(catalog))
    for column, worth in WEIGHTS.items():
        rows = reader.find_words(term, column, most)
        if len(rows) >= most:
            return None
        chunks = catalog.find(np.array(rows, np.int64))
        weight[chunks] += worth / catalog.lengths[chunks] if column == "body" else worth
    chunks = np.flatnonzero(weight)
    return chunks, weight[chunks]


def split_terms(text: str) -> list[str]:
    """The words that are looked for, each once: identifiers split and whole; common ones if there are no others."""
    words = Terms().expand(text.encode("utf-8", "replace")).lower().split()
    unique = list(dict.fromkeys(word for word in words if word.isalnum() or "_" in word))
    return ([word for word in unique if word not in STOP] or unique)[:MAX_TERMS]


def is_identifier(text: str) -> bool:
    """A name rather than words: no vector knows it better than its letters do."""
    return bool(_IDENTIFIER.match(text.strip()))


def _prior(path: str, language: str) -> float:
    aside = _ASIDE_PRIOR if _ASIDE.search(path) else 1.0
    return min(_PRIORS.get(find_role(path), 1.0), aside) * (_DATA_PRIOR if is_data(path, language) else 1.0)
