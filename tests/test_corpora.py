"""Corpora without a network: only the bytes that were named are unpacked, and nothing leaves the cache."""

from __future__ import annotations

import hashlib
import io
import math
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from bench import corpora, questions, sdist_backend
from bench.corpora import Corpus, CorpusError, fetch

pytestmark = pytest.mark.slow


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the registry will hand out for the corpus `toy`; the cache is empty."""
    monkeypatch.setenv("CQ_BENCH_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "toy.tgz"
    _pack(path, "package/src/a.py")
    _expect(monkeypatch, path)
    return path


def test_an_archive_is_fetched_once_and_unpacked(archive: Path):
    tree = fetch("toy")
    assert [path.relative_to(tree).as_posix() for path in tree.rglob("*")] == ["a.py"]
    archive.unlink()
    assert fetch("toy") == tree


def test_other_bytes_than_the_named_ones_are_refused(archive: Path, tmp_path: Path):
    _pack(archive, "package/src/b.py")
    with pytest.raises(CorpusError, match="sha256"):
        fetch("toy")
    assert list((tmp_path / "cache").iterdir()) == []


def test_an_archive_that_reaches_outside_is_refused(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    _pack(archive, "package/src/../../../../escaped.py")
    _expect(monkeypatch, archive)
    with pytest.raises(tarfile.OutsideDestinationError):
        fetch("toy")
    assert not list(tmp_path.rglob("escaped.py"))


@pytest.mark.parametrize("backend", sdist_backend.BACKENDS)
def test_a_backend_s_name_leads_to_ours(backend: str, tmp_path: Path):
    shims, sdist, out = (tmp_path / name for name in ("shims", "sdist", "out"))
    for folder in (shims, sdist, out):
        folder.mkdir()
    (sdist / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: a-b\nVersion: 1.0\n\nVersion: in the text\n")
    sdist_backend.write_shims(shims)
    code = f"import {backend} as backend; print(backend.prepare_metadata_for_build_wheel({str(out)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=sdist,
        env={"PYTHONPATH": str(shims)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "a_b-1.0.dist-info\n"
    assert (out / "a_b-1.0.dist-info" / "METADATA").read_text() == (sdist / "PKG-INFO").read_text()


def _pack(path: Path, name: str) -> None:
    with tarfile.open(path, "w:gz") as tar:
        member = tarfile.TarInfo(name)
        member.size = 2
        tar.addfile(member, io.BytesIO(b"x\n"))


def _expect(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setitem(corpora.CORPORA, "toy", Corpus("npm", "toy", "1.0", digest, "python", "src"))
    monkeypatch.setattr(corpora, "_download", lambda _corpus, _scratch: path)


def test_public_questions_are_about_corpora_and_split_as_their_page_says():
    page = (questions._LABELS / "public" / "README.md").read_text()
    sets = {corpus: (half, rows) for half, corpus, _, rows in questions._sets() if half != "own"}
    assert set(sets) <= set(corpora.CORPORA)
    for half in ("tuning", "reported"):
        named = re.search(rf"\*\*{half}\*\*[^(]*\(([^)]*)\)", page)
        assert named
        assert sorted(re.split(r",\s+", named[1])) == sorted(name for name, (mine, _) in sets.items() if mine == half)
    for _, rows in sets.values():
        assert all(row["files"] and row["category"] in ("symbol", "semantic", "architecture") for row in rows)


def test_ndcg_counts_each_right_file_where_it_first_stands():
    assert questions.ndcg(["a", "b"], ["a"]) == 1
    assert questions.ndcg(["b", "a", "a"], ["a"]) == pytest.approx(1 / math.log2(3))
    assert questions.ndcg(["b", "c", "a"], ["a", "b"]) == pytest.approx((1 + 0.5) / (1 + 1 / math.log2(3)))
    assert questions.ndcg([], ["a"]) == 0
