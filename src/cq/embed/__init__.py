"""Text to vectors and back to an order: what a ranker reads, and the protocols of those that rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from numpy import float32, int64
    from numpy.typing import NDArray

    from cq.embed.blend import Blends
    from cq.model.config import ModelsConfig


class Passage(msgspec.Struct, frozen=True):
    """What a model reads of a chunk. `body` is the text with its children collapsed and its documentation kept."""

    path: str
    name: str  # qualified
    signature: str
    body: str


class Embedder(Protocol):
    """Rows come normalised. `identity` names the model, its weights and what it does to rows: vectors of another one
    mean nothing beside them."""

    identity: str
    dimensions: int
    batch: int  # passages that are read at once
    tokens: int  # that a service has counted so far

    def embed_query(self, text: str) -> NDArray[float32]: ...

    def embed(self, passages: Sequence[Passage]) -> tuple[NDArray[float32], NDArray[float32]]:
        """Of each passage: as a whole, and by path, name and signature alone."""
        ...


class Reranker(Protocol):
    identity: str
    tokens: int  # that a service has counted so far
    weights: tuple[float, float]  # of its score and of the first stage, unless the user says otherwise
    even: float | None  # the score of what is as likely right as not; None: scores are 0 to 1 already

    def score(self, query: str, passages: Sequence[Passage]) -> NDArray[float32]:
        """Higher is better; any scale."""
        ...


class VectorIndex(Protocol):
    """Rows by number. `allowed` are the only ones that may be found; fewer than `count` only if there are fewer."""

    def search(
        self, query: NDArray[float32], count: int, allowed: NDArray[int64] | None
    ) -> tuple[NDArray[int64], NDArray[float32]]: ...


def load_embedder(models: ModelsConfig | None = None) -> Embedder:
    """The one whose weights are part of the program, unless the user has chosen another; nothing is sent yet."""
    if models is not None and models.embedder == "minilm":
        from cq.embed.minilm import MiniLmEmbedder

        return MiniLmEmbedder()
    if models is not None and models.embedder != "local":
        from cq.embed.hosted import Client, HostedEmbedder

        return HostedEmbedder(Client(models.embedder, getattr(models, models.embedder)))
    from cq.embed.weights import load_static

    return load_static()


def load_reranker(models: ModelsConfig | None = None) -> Reranker | None:
    """The one whose weights are part of the program, about 4 ms a passage on one core, unless the user has chosen
    another; nothing is sent yet."""
    if models is not None and models.reranker != "local":
        from cq.embed.hosted import Client, HostedReranker

        return HostedReranker(Client(models.reranker, getattr(models, models.reranker)))
    from cq.embed.weights import load_cross_encoder

    return load_cross_encoder()


def name_models(models: ModelsConfig | None = None) -> tuple[str, int, str]:
    """(identity and dimensions of the embedder, identity of the reranker) as they are once loaded; those that are part
    of the program are named without that."""
    if models is None or models.embedder == models.reranker == "local":
        import re
        from pathlib import Path

        folder = Path(__file__).parent / "weights"
        identity = msgspec.toml.decode((folder / "manifest.toml").read_bytes(), type=_Named).identity
        with (folder / "static_rows.npy").open("rb") as file:
            shape = re.search(rb"'shape': \(\d+, (\d+)\)", file.read(256))
        if shape is not None:
            return f"static-{identity}", int(shape[1]), f"cross-encoder-{identity}"
    embedder, reranker = load_embedder(models), load_reranker(models)
    return embedder.identity, embedder.dimensions, reranker.identity if reranker else ""


class _Named(msgspec.Struct, frozen=True):
    """Of the manifest of the weights."""

    identity: str


def find_blends(embedder: Embedder, reranker: Reranker | None = None) -> Blends | None:
    """How scores of these models are joined to a chance; None for models that no blend was fitted for."""
    from cq.embed.blend import Blends
    from cq.embed.weights import load_cross_encoder, load_manifest, load_static

    own = (load_static().identity, load_cross_encoder().identity if reranker else None)
    if (embedder.identity, reranker and reranker.identity) != own:
        return None
    manifest = load_manifest()
    return Blends(manifest.first, manifest.late, manifest.final)
