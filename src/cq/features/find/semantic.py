"""What vectors and the reranker say about a question, where there are any."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from numpy import bool_
    from numpy.typing import NDArray

    from cq.features.find import FindOptions
    from cq.features.find.candidates import Catalog
    from cq.features.find.rank import Ranked, Vectors
    from cq.model.config import FindConfig
    from cq.store.read import Reader


class Semantic(msgspec.Struct, frozen=True):
    """What there is to rank with; `note` says what is missing, in a few words."""

    note: str = ""


def search_vectors(
    reader: Reader, catalog: Catalog, options: FindOptions, semantic: Semantic, allowed: NDArray[bool_]
) -> Vectors | None:
    return None


def rerank(
    reader: Reader, catalog: Catalog, options: FindOptions, config: FindConfig, semantic: Semantic, ranked: list[Ranked]
) -> list[Ranked]:
    return ranked
