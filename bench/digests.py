"""Whether a change of the code left all facts, links and exports as they were: digests of corpora, by file and kind.

The first run records; later runs compare with the recording and show what differs, with the first rows that do. The
recording lies in `bench/results/digests`, or in the folder that CQ_BENCH_DIGESTS names; remove it to record anew.
`CQ_BENCH_CORPORA=rich,axios` looks at some of the corpora only; `django` is looked at only when it is named there.

What is digested is said in terms that do not depend on how facts are encoded: code by what it defines, binds, stores
and calls and where; links by what each row of them means; `homes` by how many keys the links of a part of a file depend
on, `keys` by which; exports row by row.
"""

from __future__ import annotations

import difflib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import zstandard
from xxhash import xxh3_64_hexdigest

from bench.corpora import CorpusError, fetch
from cq.indexing.refresh import Settings, refresh
from cq.model.artifact import ROWS
from cq.model.code import Code
from cq.model.edge import Links
from cq.questions.export import export_index
from cq.store import database
from cq.store.read import Reader, Tree

# Corpora, each the parts that it is put together from.
CORPORA: dict[str, tuple[str, ...]] = {
    "rich": ("rich",),
    "aiohttp": ("aiohttp", "click", "flask"),
    "rxjs": ("rxjs",),
    "zod": ("zod", "trpc"),
    "redux-toolkit": ("redux-toolkit",),
    "axios": ("axios", "express"),
    "tokio": ("tokio",),
    "clap": ("clap", "hyper", "serde"),
    "mixed": (
        "flask", "express", "chi", "sinatra", "capacitor-android", "capacitor-ios", "expo-modules-core", "twig",
        "penlight", "bats", "fmtlib",
    ),
    "django": ("django",),
}  # fmt: skip
LARGE = ("django",)
RESULTS = Path(__file__).with_name("results") / "digests"
MAX_SHOWN = 12  # rows of a difference

# kind -> file -> what is said of it, a line each.
Rows = dict[str, dict[str, list[str]]]


def run(results: dict[str, Any]) -> None:
    named = os.environ.get("CQ_BENCH_CORPORA")
    names = [name for name in (named or "").split(",") if name] or [name for name in CORPORA if name not in LARGE]
    if unknown := [name for name in names if name not in CORPORA]:
        raise CorpusError(f"no corpus {unknown[0]!r} of digests; there are: {', '.join(CORPORA)}")
    folder = Path(os.environ.get("CQ_BENCH_DIGESTS") or RESULTS)
    folder.mkdir(parents=True, exist_ok=True)
    table: list[dict[str, Any]] = []
    for name in names:
        rows = read_corpus(name)
        recording = folder / f"{name}.zst"
        if recording.is_file():
            compare(name, load(recording), rows, table)
        else:
            save(recording, rows)
            table += [_describe(name, kind, files, "recorded") for kind, files in rows.items()]
    results["tables"] = {f"digests, recorded in {folder}": table}
    differing = sum(row["differs in"] not in ("", "recorded") for row in table)
    results["goals"] = [{"goal": "nothing differs from the recording", "measured": differing, "met": not differing}]


def read_corpus(name: str) -> Rows:
    """Indexes a corpus from nothing and says all that the index knows of it."""
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch) / "tree"
        for part in CORPORA[name]:
            shutil.copytree(fetch(part), tree / part, symlinks=True)
        index = Path(scratch) / "index.db"
        refresh(index, tree, Settings(), wait=True)
        with closing(database.connect(index)) as connection, Reader(connection, os.fspath(tree)) as reader:
            known = reader.tree()
            assert known is not None
            rows = {kind: dict[str, list[str]]() for kind in (*_FACTS, "code", "links", "homes", "keys")}
            for file in reader.files(known.id):
                for part in _FACTS:
                    rows[part][file.path] = [_say(item) for item in reader.part(file.content, part)]
                codes: list[Code | None] = reader.part(file.content, "code")
                rows["code"][file.path] = [line for code in codes if code for line in say_code(code)]
                links = reader.links(known.id, file.path)
                rows["links"][file.path] = [line for each in links if each for line in say_links(each)]
                homes = reader.homes(known.id, file.path)
                rows["homes"][file.path] = [f"{home:x}: {len(keys)}" for home, keys in sorted(homes.items())]
                rows["keys"][file.path] = [f"{home:x}: {_digest(keys)}" for home, keys in sorted(homes.items())]
            rows |= read_exports(reader, known, Path(scratch) / "export")
    return rows


_FACTS = ("symbols", "calls", "imports", "flows", "refs", "chunks", "documents")


def _say(item: object) -> str:
    return msgspec.json.encode(item).decode()


def say_code(code: Code) -> Iterator[str]:
    """What code defines, binds, stores and calls, without the values."""
    for item in code.definitions:
        names = ", ".join(f"{parameter.kind}{parameter.name}" for parameter in item.parameters)
        counts = len(item.returns), len(item.yields), len(item.bases), len(item.keywords), len(item.decorators)
        yield f"define {item.kind} {item.within}.{item.name}({names}) in {item.scope} at {item.start}: {counts}"
    for item in code.binds:
        yield f"bind {item.name} in {item.scope}, {item.start} to {item.end}, inner {item.inner}"
    for item in code.sites:
        keywords = [name for name, _ in item.keywords]
        yield f"{item.kind} {item.name} in {item.scope}, {item.start} to {item.end}: {len(item.args)} {keywords}"


def say_links(links: Links) -> Iterator[str]:
    """Every row of a document's links, with the meaning itself for its number."""
    refs = [_say(ref) for ref in links.refs]
    for number, (scope, ref) in enumerate(zip(links.scopes, links.calls, strict=True)):
        yield f"call {number} in {scope} {links.shapes.get(number)}: {refs[ref]}"
    for kind in ("constructors", "callbacks", "runs"):
        found: dict[int, int] = getattr(links, kind)
        yield from (f"{kind} {number}: {refs[ref]}" for number, ref in sorted(found.items()))
    for kind in ("imports", "inherits", "overrides", "type_uses", "raises", "implied"):
        pairs: tuple[tuple[str, int], ...] = getattr(links, kind)
        yield from (f"{kind} {name}: {refs[ref]}" for name, ref in pairs)
    yield f"decorators {links.decorators}, replaced {links.replaced}"
    yield from (f"lambda {number} {name}" for number, name in sorted(links.lambdas.items()))


def read_exports(reader: Reader, tree: Tree, folder: Path) -> Rows:
    export_index(reader, tree, folder, version="0", generated_at="1970-01-01T00:00:00Z")
    found: Rows = {}
    for kind in ROWS:
        files: dict[str, list[str]] = {}
        for path in sorted([*folder.rglob(f"{kind}.jsonl"), *folder.rglob(f"{kind}.parts/*.jsonl")]):
            for line in path.read_text("utf-8").splitlines():
                row = msgspec.json.decode(line)
                files.setdefault(row.get("file") or row.get("fromFile") or "", []).append(line)
        if files:
            found[f"export {kind}"] = files
    return found


def compare(name: str, old: Rows, new: Rows, table: list[dict[str, Any]]) -> None:
    for kind in sorted({*old, *new}):
        before, after = old.get(kind, {}), new.get(kind, {})
        differing = [path for path in sorted({*before, *after}) if before.get(path) != after.get(path)]
        table.append(_describe(name, kind, after, f"{len(differing)} files" if differing else ""))
        for path in differing[:2]:
            lines = difflib.unified_diff(before.get(path, []), after.get(path, []), "recorded", "now", n=0, lineterm="")
            print(f"-- {name}: {kind}: {path}")
            for line, _ in zip(lines, range(MAX_SHOWN), strict=False):
                print(f"   {line[:600]}")


def _describe(name: str, kind: str, files: dict[str, list[str]], differs: str) -> dict[str, Any]:
    rows, digest = sum(len(lines) for lines in files.values()), _digest(sorted(files.items()))
    return {"corpus": name, "kind": kind, "files": len(files), "rows": rows, "digest": digest, "differs in": differs}


def _digest(said: object) -> str:
    return xxh3_64_hexdigest(msgspec.msgpack.encode(said))


def save(path: Path, rows: Rows) -> None:
    path.write_bytes(zstandard.ZstdCompressor(level=3).compress(msgspec.msgpack.encode(rows)))


def load(path: Path) -> Rows:
    return msgspec.msgpack.decode(zstandard.ZstdDecompressor().decompress(path.read_bytes()), type=Rows)
