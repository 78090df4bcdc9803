"""Whether an index that followed random edits says what one made anew says: links, what they depend on, who is referred
to, mistakes. CQ_BENCH_EDITS is how many edits a package gets (default 200), CQ_BENCH_CORPORA which packages."""

from __future__ import annotations

import os
import random
import re
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from bench.corpora import fetch
from cq.indexing.refresh import Settings, refresh
from cq.model.code import Code
from cq.store import database
from cq.store.codec import decode_homes
from cq.store.read import Reader

PACKAGES = ("click", "flask", "requests", "rich", "axios", "redux-toolkit", "hyper", "serde", "chi", "penlight")
EDITS = 200
BETWEEN = 50  # edits from one comparison to the next
_DEFINITION = re.compile(
    r"^(\s*(?:export |pub |async |local )*(?:def|class|fn|func|function|struct) )([A-Za-z_]\w*)(.*)$"
)
_NAME = re.compile(r"\b[A-Za-z_]\w+\b")
MAX_SHOWN = 4


def run(results: dict[str, Any]) -> None:
    named = os.environ.get("CQ_BENCH_CORPORA")
    count = int(os.environ.get("CQ_BENCH_EDITS") or EDITS)
    table: list[dict[str, Any]] = []
    for name in named.split(",") if named else PACKAGES:
        with tempfile.TemporaryDirectory(prefix="cq-edits-") as scratch:
            table.append(check_package(name, count, Path(scratch)))
            print(table[-1], flush=True)
    differing = sum(row["rows that differ"] for row in table)
    edits = sum(row["edits"] for row in table)
    results["tables"] = {"after random edits, compared with an index made anew": table}
    results["goals"] = [{"goal": f"nothing differs after {edits:,} edits", "measured": differing, "met": not differing}]


def check_package(name: str, count: int, folder: Path) -> dict[str, Any]:
    root, index, fresh = folder / "tree", folder / "i" / "index.db", folder / "f" / "index.db"
    shutil.copytree(fetch(name), root)
    settings = Settings(words=False)
    refresh(index, root, settings, wait=True)
    files = find_linked(index, root)
    texts = {path: (root / path).read_text("utf-8") for path in files}
    names = sorted({match for text in texts.values() for match in _NAME.findall(text)})
    chance = random.Random(f"{name} {count}")
    compared = differing = 0
    for number in range(1, count + 1):
        path = chance.choice(files)
        lines = (root / path).read_text("utf-8").splitlines(keepends=True)
        edit(lines, names, texts, path, chance)
        (root / path).write_text("".join(lines), "utf-8")
        refresh(index, root, settings, wait=True)
        if number % BETWEEN == 0 or number == count:
            refresh(fresh, root, settings, wait=True)
            differing += compare(read_rows(index, root), read_rows(fresh, root), f"{name} after {number} edits")
            compared += 1
            shutil.rmtree(fresh.parent)
    return {"package": name, "files": len(files), "edits": count, "compared": compared, "rows that differ": differing}


def edit(lines: list[str], names: Sequence[str], texts: dict[str, str], path: str, chance: random.Random) -> None:
    """One of the things that people do to code, or that a half of an edit does."""
    if not lines:
        lines.append("\n")
    at, name = chance.randrange(len(lines)), chance.choice(names)
    places = [place for place, line in enumerate(lines) if _DEFINITION.match(line)] or [at]
    start = chance.choice(places)
    end = min((place for place in places if place > start), default=len(lines))
    match chance.randrange(10):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, chance.choice(lines))
        case 2:
            lines[at] = _NAME.sub(name, lines[at], count=1)
        case 3:
            lines[start] = _DEFINITION.sub(r"\1\2_renamed\3", lines[start])
        case 4:  # a name of one definition, everywhere in it
            local = chance.choice(_NAME.findall("".join(lines[start:end])) or [name])
            lines[start:end] = [re.sub(rf"\b{re.escape(local)}\b", f"{local}_x", line) for line in lines[start:end]]
        case 5:
            lines[start:end], lines[at:at] = [], lines[start:end]
        case 6:
            added = (r"\((&?self)", r"(\1, added") if "self" in lines[start] else (r"\(", "(added, ")
            lines[start] = re.sub(*added, lines[start], count=1)
        case 7:
            lines[start:end] = [re.sub(r"(return \w[^;\n]*)", rf"\1 or {name}", line) for line in lines[start:end]]
        case 8:
            indent = lines[at][: len(lines[at]) - len(lines[at].lstrip(" \t"))]
            lines.insert(at, f"{indent}{name}({chance.choice(names)})\n")
        case _:
            lines[:] = texts[path].splitlines(keepends=True)


def find_linked(index: Path, root: Path) -> list[str]:
    """The files with code that are UTF-8."""
    with closing(database.connect(index)) as connection, Reader(connection, os.fspath(root)) as reader:
        tree = reader.tree()
        assert tree is not None
        found: list[str] = []
        for file in reader.files(tree.id):
            codes: list[Code | None] = reader.part(file.content, "code")
            if file.encoding == "utf-8" and any(codes) and file.lines > 3:
                found.append(file.path)
        return sorted(found)


def read_rows(index: Path, root: Path) -> dict[tuple[str, str], object]:
    """(kind, path) -> what the index says of the links of a file, decoded."""
    with closing(database.connect(index)) as connection, Reader(connection, os.fspath(root)) as reader:
        tree = reader.tree()
        assert tree is not None
        found: dict[tuple[str, str], object] = {}
        for path, keys, homes in connection.execute(
            "SELECT path, keys, homes FROM linked JOIN link ON id=link WHERE tree=?", (tree.id,)
        ):
            found["links", path] = reader.links(tree.id, path)
            found["depends", path] = decode_homes(keys, homes)
        for key, path, calls in connection.execute(
            "SELECT key, path, calls FROM linked l JOIN target t ON t.link=l.link WHERE tree=?", (tree.id,)
        ):
            found[f"target {key}", path] = calls
        found |= {("mistakes", path): made for path, made in reader.mistakes(tree.id).items()}
        return found


def compare(ours: dict[tuple[str, str], object], fresh: dict[tuple[str, str], object], when: str) -> int:
    differing = [key for key in sorted({*ours, *fresh}) if ours.get(key) != fresh.get(key)]
    for kind, path in differing[:MAX_SHOWN]:
        print(f"-- {when}: {kind} of {path}")
        one, other = ours.get((kind, path)), fresh.get((kind, path))
        if kind == "depends" and isinstance(one, dict) and isinstance(other, dict):
            for home in sorted({*one, *other}):
                if one.get(home) != other.get(home):
                    here, there = {*one.get(home, ())}, {*other.get(home, ())}
                    print(f"   home {home:x}: lacks {len(there - here)} keys, has {len(here - there)} more")
        else:
            print(f"   followed: {str(one)[:300]}\n   anew:     {str(other)[:300]}")
    return len(differing)
