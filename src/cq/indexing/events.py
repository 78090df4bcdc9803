"""Knowing without looking that a tree is as it was: the kernel's own list of what moved (inotify), read at every
question. For processes that answer many questions; a new process looks at every file, which is as right and slower.

An event is in the list before the call that caused it returns, so nothing that was saved before a question is missed.
What the kernel does not tell (a file changed through another of its hard links or through a memory map, another machine
on a network disk) is seen by the look that is due twice a minute all the same.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path

from cq.store.database import identify

TRUST_SECONDS = 30.0
_MOST = 4  # trees
# MODIFY ATTRIB MOVED_FROM MOVED_TO CREATE DELETE DELETE_SELF MOVE_SELF
_MASK = 0x2 | 0x4 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800
_DONT_FOLLOW = 0x02000000
_LOCAL = frozenset({"btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"})

Key = tuple[str, str, str]  # index file, root, settings


class _Watch:
    """`sure_until` is 0 until a look at the files that began after the watches were set found nothing new.

    Once something moved its watches are set anew: a directory may have been replaced by one of the same name.
    """

    def __init__(self, handle: int, index: tuple[int, int], paths: set[str]) -> None:
        self.handle = handle
        self.index = index
        self.paths = paths
        self.moved = False
        self.sure_until = 0.0

    def hear(self) -> bool:
        """Whether anything moved since this was last asked."""
        heard = False
        with contextlib.suppress(BlockingIOError):
            while os.read(self.handle, 1 << 16):
                heard = self.moved = True
        return heard

    def is_still(self) -> bool:
        """Whether nothing moved since the last look."""
        self.hear()
        return not self.moved and self.sure_until > time.monotonic()


class Watches:
    """What a process that lives on has watched for it: the trees that were asked about last."""

    def __init__(self) -> None:
        self.kept: dict[Key, _Watch] = {}

    def is_unchanged(self, key: Key) -> bool:
        """True when it is known that a refresh would find nothing to do."""
        watch = self.kept.get(key)
        if watch is None or not watch.is_still():
            return False
        return identify(Path(key[0])) == watch.index

    def has_news(self, key: Key) -> bool:
        """Whether anything moved since this or `is_unchanged` was asked: who waits until nothing does interrupts no
        one."""
        watch = self.kept.get(key)
        return watch is not None and watch.hear()

    def note_refresh(self, key: Key, paths: set[str]) -> None:
        """After a refresh that began after `is_unchanged` was asked. `paths` is all that its listing rests on."""
        watch = self.kept.get(key)
        if watch is not None and not watch.moved and watch.paths == paths:
            watch.sure_until = time.monotonic() + TRUST_SECONDS
            return
        self.forget(key)
        watch = _set_watches(key, paths)
        if watch is not None:
            self.kept[key] = watch
        for old in list(self.kept)[:-_MOST]:
            self.forget(old)

    def forget(self, key: Key) -> None:
        watch = self.kept.pop(key, None)
        if watch is not None:
            os.close(watch.handle)


def _set_watches(key: Key, paths: set[str]) -> _Watch | None:
    """None where the kernel cannot tell everything: another system, a network disk, too many directories."""
    if sys.platform != "linux" or _find_system(key[1]) not in _LOCAL:
        return None
    import ctypes

    libc = ctypes.CDLL(None)
    handle: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if handle < 0:
        return None
    watch = _Watch(handle, identify(Path(key[0])), paths)
    for path in paths:
        while not os.path.lexists(path):  # what is missing appears in the nearest directory that is there
            path = os.path.dirname(path) or "/"  # noqa: PTH120
        # A link by itself, and what it leads to: people keep such files elsewhere.
        masks = (_MASK | _DONT_FOLLOW, _MASK) if os.path.islink(path) else (_MASK,)  # noqa: PTH114
        if any(libc.inotify_add_watch(handle, os.fsencode(path), mask) < 0 for mask in masks):
            os.close(handle)
            return None
    return watch


def _find_system(path: str) -> str:
    """The kind of the file system that holds it, as the mount nearest to it says."""
    best, kind = "", ""
    with contextlib.suppress(OSError, IndexError):
        for line in Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines():
            left, _, right = line.partition(" - ")
            mount = left.split()[4].encode().decode("unicode_escape", "replace")
            inside = path == mount or path.startswith(mount.rstrip("/") + "/")
            if inside and len(mount) >= len(best):
                best, kind = mount, right.split()[0]
    return kind
