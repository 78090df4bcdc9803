"""Downloads the packages named in packages.toml by their registries' own clients; nothing of them runs.

With a manifest the versions are those it records. What is in the cache (`~/.cache/cq-training`, or `CQ_TRAINING_CACHE`)
is not asked for again.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("CQ_TRAINING_CACHE") or Path.home() / ".cache" / "cq-training").absolute()
PACKAGES: dict[str, Any] = tomllib.loads((HERE / "packages.toml").read_text())
BATCH = {"sdist": 1, "pypi": 6, "npm": 8, "debian": 40, "source": 12, "binary": 40}  # names asked for at once


def is_excluded(name: str) -> bool:
    return any(fnmatchcase(name.lower(), pattern) for pattern in PACKAGES["excluded"])


def main(registries: list[str]) -> None:
    for registry in registries or BATCH:
        batch = BATCH[registry]
        folder = CACHE / registry
        folder.mkdir(parents=True, exist_ok=True)
        if registry == "sdist":
            _write_shims(CACHE / "shims")
        if registry == "source":
            _read_source_lists()
        had = [_plain(path.name) for path in folder.iterdir()]
        names = [name for name in _names(registry) if not is_excluded_package(name)]
        names = [name for name in names if not any(file.startswith(_plain(name) + "-") for file in had)]
        tries = [names[at : at + batch] for at in range(0, len(names), batch)]
        with ThreadPoolExecutor(3) as pool:
            failed = sum(pool.map(lambda names, r=registry, f=folder: _download(r, names, f), tries))
        print(f"{registry}: {len(names)} wanted, {failed} not to be had", flush=True)


def is_excluded_package(name: str) -> bool:
    """By its own name, or by the end of one that begins with where it comes from: `golang-github-spf13-cobra`."""
    words = re.sub(r"^(librust|lib)-?|-(dev|java)$", "", name.partition("=")[0].lower()).split("-")
    return any(is_excluded(end) for at in range(len(words)) for end in ["-".join(words[at:])]) or is_excluded(name)


def _plain(name: str) -> str:
    """A pinned name and the file it comes as look alike so far."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower().replace("%3a", ":")).strip("-")


def _names(registry: str) -> list[str]:
    manifest = HERE / "manifest.toml"
    rows = tomllib.loads(manifest.read_text())["package"] if manifest.is_file() else []
    rows = [row for row in rows if row["registry"] == registry]
    if rows:
        pin = "{}@{}" if registry == "npm" else "{}=={}" if registry in ("pypi", "sdist") else "{}={}"
        return [pin.format(row["name"], row["version"]) for row in rows]
    pattern = "librust-{}-dev" if registry == "debian" else "{}"
    return [pattern.format(name) for name in PACKAGES[registry].split()]


def _download(registry: str, names: list[str], folder: Path) -> int:
    """How many of the names could not be had: one that fails does not take its batch with it."""
    match registry:
        case "npm":
            command = ["npm", "pack", "--silent", "--ignore-scripts", *names]
        case "debian" | "binary":
            command = ["apt-get", "download", "-qq", *names]
        case "source":
            command = ["apt-get", *_source_options(), "source", "--download-only", "-qq", *names]
        case "pypi":
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", *names]
        case _:
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:",
                       "--no-build-isolation", *names]  # fmt: skip
    env = dict(os.environ)
    if registry == "sdist":
        env["PYTHONPATH"] = str(CACHE / "shims")
    done = subprocess.run(["nice", *command], cwd=folder, capture_output=True, env=env, check=False)
    if done.returncode and len(names) > 1:
        return sum(_download(registry, [name], folder) for name in names)
    return int(done.returncode != 0)


def _source_options() -> list[str]:
    """apt with lists of its own, since most machines have none of source packages."""
    folder = CACHE / "apt"
    places = {"Etc::SourceList": "/dev/null", "Etc::SourceParts": folder / "parts", "State::Lists": folder / "lists"}
    return [f"-oDir::{name}={place}" for name, place in {**places, "Cache": folder / "cache"}.items()]


def _read_source_lists() -> None:
    for name in ("parts", "lists/partial", "cache/archives/partial"):
        (CACHE / "apt" / name).mkdir(parents=True, exist_ok=True)
    for path in Path("/etc/apt/sources.list.d").glob("*.sources"):
        text = re.sub(r"(?m)^Types:.*", "Types: deb-src", path.read_text())
        if "debian" in path.name:
            (CACHE / "apt" / "parts" / path.name).write_text(text)
    subprocess.run(["apt-get", *_source_options(), "update", "-qq"], capture_output=True, check=False)


def _write_shims(folder: Path) -> None:
    """Build backends that build nothing: pip asks for metadata before it leaves an sdist where it is."""
    from bench import sdist_backend

    folder.mkdir(exist_ok=True)
    sdist_backend.write_shims(folder)


if __name__ == "__main__":
    main(sys.argv[1:])
