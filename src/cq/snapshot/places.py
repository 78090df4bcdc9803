"""Words that name a place in a repository, as they are written: from a working directory, from the root, or absolute.
They become what the index calls the place; what lies outside the root is refused before anybody looks whether it is
there."""

from __future__ import annotations

import os
from pathlib import Path

from cq.model.errors import UsageError


class Places:
    """Reads the words of one question. `base` is the directory that they may count from beside the root. A question
    about another state than that `on_disk` may name what is gone."""

    def __init__(self, root: Path, base: Path | None = None, *, on_disk: bool = True) -> None:
        self._root, self._base, self._on_disk = root, base, on_disk

    def read(self, word: str, place: str, option: str) -> str:
        """As the index tells it; `""` for the root itself where a folder is asked for: it is no limit."""
        match place:
            case "folder":
                return self._read_folder(word, option)
            case "part":
                return self._read_part(word)
            case "file":  # a directory may be called like a definition
                return self._read_target(word) if self._make_absolute(word).is_dir() else self._read_part(word)
            case "subject":
                kind, colon, name = word.partition(":")
                return f"{kind}{colon}{self._read_part(name)}" if name else word
            case _:
                return self._read_target(word)

    def _read_folder(self, name: str, option: str) -> str:
        if not name:
            raise UsageError(f"{option} names nothing", hint="give a directory or a file")
        root, here = self._root, self._make_absolute(name)
        chosen = here if here.is_relative_to(root) and here.exists() else root / name
        # Asked first: what lies outside is nobody's to know, not even whether it is there.
        if not Path(os.path.normpath(chosen)).is_relative_to(root) or not _leads_below(chosen, root):
            raise UsageError(
                f"{option} {name} lies outside the root", hint="give --root with a directory that holds it"
            )
        if self._on_disk and not chosen.exists():
            raise UsageError(f"{option} {name} does not exist", hint="it counts from the working directory or the root")
        below = Path(os.path.normpath(chosen)).relative_to(root).as_posix()
        return "" if below == "." else below

    def _read_target(self, text: str) -> str:
        """A path in front of a colon may count from the base, or be absolute."""
        drive, text_below = os.path.splitdrive(text)  # `C:` is no path in front of a colon
        path, colon, rest = text_below.partition(":")
        path = drive + path
        if not colon or rest.startswith(":"):
            return text
        here = self._make_absolute(path)
        if here.is_relative_to(self._root) and here.is_file():
            return f"{here.relative_to(self._root).as_posix()}:{rest}"
        self._refuse_outside(path)
        return f"{os.path.normpath(path)}:{rest}".replace(os.sep, "/") if "/" in path or os.sep in path else text

    def _read_part(self, text: str) -> str:
        """A TARGET, or a path: `.` for the root."""
        here = self._make_absolute(text)
        if text and here.is_relative_to(self._root) and here.exists():
            return here.relative_to(self._root).as_posix()
        self._refuse_outside(os.path.splitdrive(text)[1].partition(":")[0])
        return self._read_target(text)

    def _make_absolute(self, name: str) -> Path:
        """As it is written: a link stays the link that the index knows. A working directory that is gone holds nothing:
        then the name counts from the root alone."""
        try:
            return Path(os.path.abspath(name if self._base is None else self._base / name))  # noqa: PTH100
        except OSError:
            return Path(os.sep)

    def _refuse_outside(self, path: str) -> None:
        if Path(path).is_absolute() and not Path(path).is_relative_to(self._root):
            raise UsageError(f"{path} lies outside the root", hint="give --root with a directory that holds it")


def _leads_below(path: Path, root: Path) -> bool:
    """Whether no link on the way leads out of the root."""
    try:
        return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))
    except (OSError, ValueError):
        return False
