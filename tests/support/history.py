"""Repositories with a history, for tests of revisions and of what changes between them."""

from __future__ import annotations

import subprocess
from pathlib import Path


def git(root: Path, *words: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0"]
    done = subprocess.run(["git", *identity, *words], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(root: Path, files: dict[str, str | bytes | None], message: str = "x") -> str:
    """The commit that these texts make; None is a file that goes."""
    for name, text in files.items():
        path = root / name
        if text is None:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    git(root, "add", "-A", "-f")
    git(root, "commit", "-q", "--allow-empty", "-m", message)
    return git(root, "rev-parse", "HEAD")
