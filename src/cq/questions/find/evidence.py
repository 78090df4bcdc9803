"""What speaks for a file besides the text of each chunk: the words of all of it, its name, and that it defines what the
question names. Weights are measured (bench/find.md)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from cq.embed.words import split_words
from cq.model.facts import KIND_GROUPS
from cq.questions.find.words import ABBREVIATIONS, split_question, stem

if TYPE_CHECKING:
    from numpy import bool_, float64, int64
    from numpy.typing import NDArray

    from cq.questions.find.candidates import Catalog, Lexical
    from cq.store.read import Reader, SymbolRow

# Shares of what the words of a question, or all models together, can give a chunk.
NAME, RECALL, DEFINED, WORDS = 0.15, 0.15, 0.4, 0.4
_FILES = 20  # whose best chunk is a candidate, whatever its own score
_DEFINITIONS = 24  # that are looked at: a name with more says little
# Files called so are about what their folder is about.
_ENTRIES = frozenset({"mod", "index", "init", "lib", "main", "package"})
_PLAIN = frozenset(
    re.findall(
        r"\w+",
        """util utils helper helpers common shared misc model models base core type types api impl impls const constants
        interface interfaces internal""",
    )
)
_PARENT = 0.8  # what the name of the folder is worth then
_NAMED = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|::|#|->)[A-Za-z_$][\w$]*)*")
_IDENTIFIER = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]|_|::|\.|#|->")
_SEPARATOR = re.compile(r"\.|::|#|->")
# What kind of definition a name most likely means.
_STRENGTH = {"class": 1.0, "type": 1.0, "module": 1.0, "function": 0.6, "method": 0.6}


class Evidence(msgspec.Struct, frozen=True):
    """For every file of the catalog what speaks for it, the chunks that define a name of the question, and the best
    chunk of each file that much speaks for."""

    files: NDArray[float64]
    defined: dict[int, float]
    best: NDArray[int64]

    def of(self, catalog: Catalog, chunks: NDArray[int64]) -> NDArray[float64]:
        import numpy as np

        own = np.array([self.defined.get(chunk, 0.0) for chunk in chunks.tolist()])
        return self.files[catalog.files[chunks]] + DEFINED * own


def weigh_files(reader: Reader, catalog: Catalog, text: str, lexical: Lexical, allowed: NDArray[bool_]) -> Evidence:
    """Over all files at once; costs the words of the question, not the size of the tree."""
    import numpy as np

    precision, recall = catalog.names.match(split_question(text))
    files = NAME * precision + RECALL * recall + WORDS * lexical.files
    order = np.lexsort((lexical.chunks, -lexical.scores * catalog.weigh(text)[lexical.chunks]))
    owners, places = np.unique(catalog.files[lexical.chunks[order]], return_index=True)
    first = np.full(len(files), -1, np.int64)
    first[owners] = lexical.chunks[order[places]]
    defined = find_defined(reader, catalog, text, allowed)
    asked = np.bincount(catalog.files[allowed], minlength=len(files)) > 0
    promising = np.lexsort((np.arange(len(files)), -files * asked))[:_FILES]
    found = [int(first[file]) if first[file] >= 0 else catalog.first_chunk(int(file), allowed) for file in promising]
    best = np.array(sorted({*defined, *(chunk for chunk in found if chunk >= 0)}), np.int64)
    return Evidence(files, defined, best)


def find_defined(reader: Reader, catalog: Catalog, text: str, allowed: NDArray[bool_]) -> dict[int, float]:
    """Chunks that define a name of the question, as it is written there: types first, then functions. A name is a word
    that no sentence has, or all of the question."""
    words = _NAMED.findall(text)
    if len(words) > 1 or len(text.split()) > 1:
        words = [word for word in words if _IDENTIFIER.search(word)]
    rows: list[tuple[float, SymbolRow]] = []
    for word in dict.fromkeys(words[:8]):
        *parents, name = _SEPARATOR.split(word)
        found = reader.find_symbols(catalog.tree, name)
        inside = [row for row in found if parents and parents[-1] in row.qualified_name.split(".")[:-1]]
        rows += [(_strength(row.kind), row) for row in inside or found]
    rows.sort(key=lambda item: (-item[0], item[1].path, item[1].document, item[1].number))
    chunks: dict[int, float] = {}
    for strength, row in rows[:_DEFINITIONS]:
        file = catalog.places.get(row.path)
        if file is None:
            continue
        before = sum(map(len, reader.chunks(row.content)[: row.document])) if row.document else 0
        own = reader.symbols(row.content)[row.document][row.number].chunk
        chunk = int(catalog.starts[file]) + before + own
        if own >= 0 and allowed[chunk]:
            chunks[chunk] = max(strength, chunks.get(chunk, 0.0))
    return chunks


def _strength(kind: str) -> float:
    return 0.2 if kind == "impl" else _STRENGTH.get(KIND_GROUPS.get(kind, ""), 0.4)


def _relative(values: NDArray[float64]) -> NDArray[float64]:
    return values / max(float(values.max()), 1e-9) if len(values) else values


class FileNames:
    """The words of the names of all files, to be met by those of a question."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._count = len(paths)
        self._own: dict[str, list[int]] = {}
        self._folder: dict[str, list[int]] = {}
        self._own_size, self._folder_size = [1.0] * self._count, [1.0] * self._count
        for file, path in enumerate(paths):
            *folders, name = path.split("/")
            words = split_words(name.lstrip(".").split(".")[0])
            if folders and (words in ([], ["init"]) or "".join(words) in _ENTRIES):
                words = split_words(folders.pop())
            self._own_size[file] = max(float(len(words)), 1.0)
            for word in set(words):
                self._own.setdefault(word, []).append(file)
            if folders and "".join(words) in _PLAIN:
                parent = split_words(folders[-1])
                self._folder_size[file] = max(float(len(parent)), 1.0)
                for word in set(parent):
                    self._folder.setdefault(word, []).append(file)
        self._near: dict[str, list[str]] = {}
        for word in {**self._own, **self._folder}:
            self._near.setdefault(word[:2], []).append(word)

    def match(self, words: Sequence[str]) -> tuple[NDArray[float64], NDArray[float64]]:
        """For every file how much of its name is in the question, and how much of the question in its name (as a part
        of the most that any name has); a word that few names have says more."""
        import numpy as np

        best: dict[str, float] = {}
        recall = np.zeros(self._count)
        for word in words:
            hits = {near: same for near in self._candidates(word) if (same := alike(word, near)) > 0}
            for near in self._near.get(word[:2], ()):
                if near not in hits and (same := _compound(near, word, words)) > 0:
                    hits[near] = same
            met = np.zeros(self._count)
            for near, same in hits.items():
                best[near] = max(same, best.get(near, 0.0))
                owners = self._own.get(near, [])
                met[owners] = np.maximum(met[owners], same)
            recall += met * math.log(1 + self._count / (1 + np.count_nonzero(met)))
        precision, folder = np.zeros(self._count), np.zeros(self._count)
        for near, same in best.items():
            precision[self._own.get(near, [])] += same
            folder[self._folder.get(near, [])] += same
        folder *= _PARENT
        return np.minimum(np.maximum(precision / self._own_size, folder / self._folder_size), 1.0), _relative(recall)

    def _candidates(self, word: str) -> Iterable[str]:
        yield from self._near.get(word[:2], ())
        for other in ABBREVIATIONS.get(word, ()):
            if other[:2] != word[:2] and (other in self._own or other in self._folder):
                yield other


def alike(word: str, other: str) -> float:
    """Whether two words are forms of one: 1 for the same stem, less for a common beginning or an abbreviation."""
    if word == other or stem(word) == stem(other):
        return 1.0
    if other in ABBREVIATIONS.get(word, ()):
        return 0.8
    length = next(
        (at for at, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), min(len(word), len(other))
    )
    if length >= 4 and length >= 0.6 * max(len(word), len(other)):
        return 0.8
    return 0.6 if length >= 4 and length == min(len(word), len(other)) else 0.0


def _compound(name: str, word: str, words: Sequence[str]) -> float:
    """`urlmap` is two words of `URL mapping`, run together."""
    if len(word) < 2 or len(name) <= len(word) or not name.startswith(word):
        return 0.0
    rest = name[len(word) :]
    return max((alike(other, rest) for other in words), default=0.0)
