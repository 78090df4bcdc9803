"""The trees to measure on: fetched once by the registries' own clients, checked by hash, kept in a cache.

The cache is `~/.cache/cq-bench`, or `CQ_BENCH_CACHE`; it can be deleted at any time.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Literal

import msgspec

from bench import sdist_backend


class CorpusError(Exception):
    """A corpus that cannot be had, in one sentence."""


class Corpus(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    registry: Literal["pypi", "npm", "debian"]
    package: str
    version: str
    sha256: str
    language: str
    tree: str = ""


CORPORA = msgspec.toml.decode(Path(__file__).with_name("corpora.toml").read_bytes(), type=dict[str, Corpus])


def fetch(name: str) -> Path:
    """The tree of a corpus, from the cache or else from its registry. Two processes may fetch at once."""
    corpus, cache = CORPORA[name], cache_folder()
    folder = cache / f"{name}-{corpus.version}-{corpus.sha256[:12]}"
    if not folder.is_dir():
        with tempfile.TemporaryDirectory(dir=cache, prefix=".fetch-") as scratch:
            print(f"fetching {corpus.package} {corpus.version}", file=sys.stderr, flush=True)
            _unpack(_download(corpus, Path(scratch)), corpus, folder, Path(scratch))
    tree = folder / corpus.tree
    if not tree.is_dir():
        raise CorpusError(f"{name}: no folder {corpus.tree!r} in its archive")
    return tree


def cache_folder() -> Path:
    folder = Path(os.environ.get("CQ_BENCH_CACHE") or Path.home() / ".cache" / "cq-bench").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _download(corpus: Corpus, scratch: Path) -> Path:
    archives = scratch / "archives"
    archives.mkdir()
    if corpus.registry == "npm":
        # A package named by version is downloaded as it is: nothing of it runs.
        _run(["npm", "pack", "--silent", "--ignore-scripts", f"{corpus.package}@{corpus.version}"], archives)
    elif corpus.registry == "debian":
        _run(["apt-get", "download", "-qq", f"{corpus.package}={corpus.version}"], archives)
    else:
        shims = scratch / "shims"
        shims.mkdir()
        sdist_backend.write_shims(shims)
        requirement = scratch / "requirement.txt"
        requirement.write_text(f"{corpus.package}=={corpus.version} --hash=sha256:{corpus.sha256}\n")
        options = ["--quiet", "--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--require-hashes"]
        _run(
            [sys.executable, "-m", "pip", "download", *options, "-r", str(requirement)], archives, PYTHONPATH=str(shims)
        )
    found = sorted(archives.iterdir())
    if len(found) != 1:
        raise CorpusError(
            f"{corpus.package} {corpus.version}: expected one archive, got {[path.name for path in found]}"
        )
    return found[0]


def _run(command: list[str], cwd: Path, **env: str) -> None:
    if shutil.which(command[0]) is None:
        raise CorpusError(f"{command[0]} is not installed")
    done = subprocess.run(command, cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise CorpusError(f"{' '.join(command[:4])} …: {lines[-1] if lines else f'exit status {done.returncode}'}")


def _unpack(archive: Path, corpus: Corpus, folder: Path, scratch: Path) -> None:
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    if digest != corpus.sha256:
        raise CorpusError(f"{archive.name}: sha256 is {digest}, not {corpus.sha256}")
    unpacked = scratch / "unpacked"
    if corpus.registry == "debian":
        _run(["dpkg-deb", "-x", str(archive), str(unpacked)], scratch)
    else:
        with tarfile.open(archive) as tar:
            tar.extractall(unpacked, filter="data")  # refuses names, links and modes that reach outside
    (top,) = unpacked.iterdir()  # the registries put everything under one folder
    try:
        top.rename(folder)
    except OSError:
        if not folder.is_dir():  # else another process was first, with the same bytes
            raise
