"""The weights that are part of the program, and what is known about them: manifest.toml, written by training/."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from cq.embed.blend import Blend
from cq.embed.late import LateInteraction
from cq.embed.rerank import CrossEncoder
from cq.embed.static import Fields, StaticEmbedder
from cq.embed.words import Vocabulary

FOLDER = Path(__file__).parent


class Trained(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """On what: with training/manifest.toml, enough to make the weights again."""

    seed: int
    passages: int
    pairs_sha256: str
    questions: dict[str, int]  # style -> how many
    steps: int = 0  # where that is not the recipe's


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    identity: str  # changes with every byte that vectors are made with, or the reranker
    trained: Trained
    late_trained: Trained  # the table of the late interaction, on a part of those packages (training/late.toml)
    fields: Fields
    first: Blend  # of words and vectors
    late: Blend  # and the late interaction
    final: Blend  # and the reranker
    files: dict[str, str]  # name -> sha256


@cache
def load_manifest() -> Manifest:
    return msgspec.toml.decode((FOLDER / "manifest.toml").read_bytes(), type=Manifest)


@cache
def load_static() -> StaticEmbedder:
    manifest = load_manifest()
    return StaticEmbedder(f"static-{manifest.identity}", manifest.fields, _load_vocabulary(), FOLDER)


@cache
def load_cross_encoder() -> CrossEncoder:
    return CrossEncoder(f"cross-encoder-{load_manifest().identity}", _load_vocabulary(), FOLDER)


@cache
def load_late() -> LateInteraction:
    return LateInteraction(_load_vocabulary(), FOLDER)


@cache
def load_verbs() -> frozenset[str]:
    """First words of sentences about what does something; hardly ever about a type."""
    return frozenset((FOLDER / "verbs.txt").read_text(encoding="utf-8").split())


@cache
def _load_vocabulary() -> Vocabulary:
    return Vocabulary((FOLDER / "vocabulary.txt").read_text(encoding="utf-8").splitlines())
