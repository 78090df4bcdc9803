"""First words of documentation that is about what does something, not about types: reads the pairs, writes verbs.txt
beside the weights."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from cq.embed.traits import TYPES
from cq.embed.words import split_words
from training.sets import Entry, load_entries

PACKAGES = 15  # that use a word so: fewer have a language of their own
MOST = 0.1  # of its sentences may be about types
_DOES = frozenset({"def", "fn", "func", "function"})


def find_verbs(entries: Iterable[Entry], packages: int = PACKAGES) -> list[str]:
    all_of, types, where = Counter[str](), Counter[str](), defaultdict[str, set[str]](set)
    for entry in entries:
        head = entry.signature.split()[:3]
        is_type = not TYPES.isdisjoint(head) and _DOES.isdisjoint(head)
        for style, text in entry.questions:
            for word in split_words(text)[:1] if style == "doc" else ():
                all_of[word] += 1
                types[word] += is_type
                where[word].add(entry.package)
    return sorted(w for w, count in all_of.items() if len(where[w]) >= packages and types[w] < MOST * count)


if __name__ == "__main__":
    verbs = find_verbs(load_entries(Path(sys.argv[1])))
    (Path(sys.argv[2]) / "verbs.txt").write_text("\n".join(verbs) + "\n", encoding="utf-8")
    print(len(verbs), "verbs")
