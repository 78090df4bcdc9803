"""What a passage is, whatever it says: one with hardly any text, or a type where the question begins with a verb, is
seldom what was asked for."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cq.embed import Passage
from cq.embed.words import split_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WORD = re.compile(r"\w+")
TYPES = frozenset(
    _WORD.findall("class struct enum interface trait type union module protocol namespace impl object record")
)
_SHORT = 4.5  # the logarithm of 90 characters; a third of that is nothing at all


def find_traits(query: str, passages: Sequence[Passage], verbs: Collection[str]) -> NDArray[np.float64]:
    """Of each passage, 0 to 1: how slight it is, and whether it is a type although something is to be done."""
    does = split_words(query)[:1]
    asked = bool(does) and does[0] in verbs
    found = [
        (min(max(_SHORT - math.log(len(passage.body) + 1), 0.0), 1.0), float(asked and is_type(passage)))
        for passage in passages
    ]
    return np.array(found).reshape(-1, 2)


def is_type(passage: Passage) -> bool:
    """By the words before its name: `pub struct Order`, not `def type(self)`."""
    name = passage.name.rpartition(".")[2]
    head = passage.signature.partition(name)[0] if name else ""
    return "(" not in head and not TYPES.isdisjoint(_WORD.findall(head))
