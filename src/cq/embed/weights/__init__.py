"""The weights that are part of the program, and what is known about them: manifest.toml, written by training/."""

from __future__ import annotations

from pathlib import Path

import msgspec

from cq.embed.static import Fields, StaticEmbedder
from cq.embed.words import Vocabulary

FOLDER = Path(__file__).parent


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    identity: str  # changes with every byte of the weights
    files: dict[str, str]  # name -> sha256
    fields: Fields


def load_manifest() -> Manifest:
    return msgspec.toml.decode((FOLDER / "manifest.toml").read_bytes(), type=Manifest)


def load_static() -> StaticEmbedder:
    manifest = load_manifest()
    vocabulary = Vocabulary((FOLDER / "vocabulary.txt").read_text(encoding="utf-8").splitlines())
    return StaticEmbedder(manifest.identity, manifest.fields, vocabulary, FOLDER)
