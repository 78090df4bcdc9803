"""A small repository of several languages, indexed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cq.indexing.embedding import describe_embeddings, embed_tree, get_embedder
from cq.indexing.refresh import Settings, refresh
from cq.model.artifact import ExportReport, Validation
from cq.model.config import FindConfig
from cq.model.embedding import EmbeddingState
from cq.questions.export import export_index
from cq.store import database
from cq.store.read import Reader, Tree
from cq.store.validate import validate_artifacts

FILES = {
    "app/store.py": '''\
"""Keeps things."""
import os.path as p
from .base import Base as B, other

class Store(B):
    """Größe ≤ 1 GiB."""

    limit: int = 3

    async def load(self, name: str = "é", *rest) -> bytes:
        return await self.open(name, *rest, mode="rb")

def main(): Store().load(p.join("a", "b"))

if __name__ == "__main__":
    main()
''',
    "web/app.ts": """\
import { ref, type Ref } from "vue";
export * from "./other";
export class App { run(x: number): void { ref(x); } }
export const app = new App();
""",
    "web/tsconfig.json": '{"include": ["*"], "compilerOptions": {"paths": {"@/*": ["./*"]}}}\n',
    "web/Page.vue": """\
<template><p>{{ x }}</p></template>
<script setup lang="ts">
import { ref } from "vue"
const x = ref(1)
</script>
""",
    "README.md": """\
# Title

```python
print("one")
```

```python
print("one")
```

> ```js
> f(1)
> g(2)
> ```
""",
    "win.py": "def f():\r\n    return g()\r\n",
    "empty.py": "",
    "data/conf.json": '{"a": {"b": 1}}\n',
}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    (root / ".git").mkdir(parents=True)
    return write_files(root, FILES)


def write_files(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode())
    return root


class Index:
    """An index of `root` and what is done with it here."""

    def __init__(self, root: Path, file: Path) -> None:
        self.root, self.file = root, file

    def refresh(self, **settings: Any) -> None:
        refresh(self.file, self.root, Settings(**settings))

    @contextmanager
    def reading(self) -> Iterator[tuple[Reader, Tree]]:
        with closing(Reader(database.connect(self.file), str(self.root))) as reader, reader:
            tree = reader.tree()
            assert tree is not None
            yield reader, tree

    def embed(self) -> EmbeddingState:
        embed_tree(self.file, self.root, get_embedder())
        with self.reading() as (reader, tree):
            return describe_embeddings(self.file, reader, tree.id, FindConfig())

    def export(self, out: Path, **options: Any) -> ExportReport:
        with self.reading() as (reader, tree):
            return export_index(reader, tree, out, version="0", **options)


@pytest.fixture
def make_index(tmp_path: Path) -> Callable[..., Index]:
    def make(root: Path, name: str = "index", **settings: Any) -> Index:
        index = Index(root, tmp_path / "indexes" / name / "index.db")
        index.refresh(**settings)
        return index

    return make


@pytest.fixture
def index(repo: Path, make_index: Callable[..., Index]) -> Index:
    return make_index(repo)


def read_rows(folder: Path, name: str) -> list[dict[str, Any]]:
    """By way of the manifest, as a reader should."""
    from zstandard import ZstdDecompressor

    rows: list[dict[str, Any]] = []
    manifest = msgspec.json.decode((folder / "pieces" / "manifest.json").read_bytes())
    for piece in manifest["pieces"]:
        if piece["name"] == name and piece["type"] == "rows":
            data = (folder / piece["path"]).read_bytes()
            if piece["format"] == "jsonl+zstd":
                data = ZstdDecompressor().decompressobj().decompress(data)
            lines = data.splitlines()
            assert len(lines) == piece["count"]
            rows += map(msgspec.json.decode, lines)
    return rows


def check(folder: Path) -> Validation:
    """Asserts that an export is whole."""
    validation = validate_artifacts(folder)
    assert validation.findings == ()
    assert validation.ok
    return validation
