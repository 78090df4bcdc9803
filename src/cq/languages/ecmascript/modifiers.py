"""What stands before the name of a definition: modifiers and decorators."""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cq.syntax.collect import Collector
    from cq.syntax.language import Draft

_WORDS = re.compile(rb"[\w*]+")
_MODIFIERS = {
    b"export": "exported", b"*": "generator", b"function*": "generator",
    **{word.encode(): word for word in (
        "default", "declare", "abstract", "async", "static", "public", "private", "protected", "readonly", "override",
        "accessor", "get", "set",
    )},
}  # fmt: skip


@lru_cache(maxsize=1024)
def find_modifiers(prefix: bytes) -> tuple[str, ...]:
    found = (_MODIFIERS.get(word) for word in _WORDS.findall(prefix))
    return tuple(dict.fromkeys(word for word in found if word))


def take_decorators(collector: Collector, draft: Draft, stop: int) -> bytes:
    """Gives the draft the decorators inside its head and returns the head without them."""
    found, pieces, cursor = [], [], draft.start
    at = bisect_left(collector.attributes, (draft.start, 0))
    while at < len(collector.attributes) and collector.attributes[at][0] < stop:
        start, end = collector.attributes[at]
        at += 1
        if start < cursor:
            continue
        pieces.append(collector.text[cursor:start])
        found.append(collector.fold(start + 1, end))
        cursor = end
    gap = collector.text[cursor:stop]
    draft.decorators = tuple(found)
    draft.head = cursor + len(gap) - len(gap.lstrip())
    return b" ".join((*pieces, gap))
