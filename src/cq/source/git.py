"""What git says about a work tree. The repository is taken as hostile: nothing its configuration names is run, nothing
is written, nothing is fetched."""

# Names here may be no UTF-8.
# ruff: noqa: PTH110, PTH204, PTH111, PTH118, PTH120, PTH123

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from cq.model.history import Change
from cq.source.program import find_in_path
from cq.source.read import real_path
from cq.source.repository import find_common_dir

if TYPE_CHECKING:
    from subprocess import CompletedProcess

TIMEOUT = 60  # seconds for one command; git lists a million files in less

# Everything that could make `rev-parse` or `ls-files` start a program or leave the work tree as it lies.
_SETTINGS = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.untrackedCache=false",
    "core.pager=cat",
    "core.sshCommand=false",
    "submodule.recurse=false",
    # Ownership guards against the settings above; with those taken away a foreign owner is no reason to refuse.
    "safe.directory=*",
)
_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    # A partial clone would fetch what it lacks, by a command of its own configuration.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}


class GitError(Exception):
    """Why git cannot list a directory, as half a sentence."""


class Tracked(NamedTuple):
    path: str  # relative to the directory asked about, as the system spells it
    tracked: bool
    nested: bool  # a submodule or a repository of its own


class WorkTree(NamedTuple):
    top: str
    files: list[Tracked]  # sorted by path
    warned: bool  # there is a directory that git could not open


def has_repository(directory: str) -> bool:
    """Whether git would look for a repository here, without asking it: no process where there is none."""
    if all(os.path.exists(os.path.join(directory, name)) for name in ("HEAD", "objects", "refs")):
        return True
    while not os.path.lexists(os.path.join(directory, ".git")):
        parent = os.path.dirname(directory)
        if parent == directory:
            return False
        directory = parent
    return True


def find_rule_files(directory: str) -> list[str]:
    """What decides, beside the tree itself, which of its files git lists: the index and the exclude files."""
    while not os.path.lexists(os.path.join(directory, ".git")):
        parent = os.path.dirname(directory)
        if parent == directory:
            return []
        directory = parent
    found = find_common_dir(directory)
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    excludes = os.path.join(home, "git", "ignore")
    if found is None:
        return [excludes]
    git_dir, common = found
    return [os.path.join(git_dir, "index"), os.path.join(common, "info", "exclude"), excludes]


def list_files(directory: str) -> WorkTree:
    """Tracked and untracked-not-ignored paths below `directory`, a real_path; GitError says why there are none to be
    had."""
    state = _run(directory, "rev-parse", "--is-bare-repository", "--is-inside-git-dir").stdout.split()
    if state != [b"false", b"false"]:
        raise GitError("the repository is bare")
    top = real_path(os.fsdecode(_run(directory, "rev-parse", "--show-toplevel").stdout.removesuffix(b"\n")))
    if directory != top and not directory.startswith(top.rstrip("/") + "/"):
        raise GitError("the repository's work tree lies elsewhere")
    output = _run(directory, "ls-files", "-z", "-t", "--stage", "--cached", "--others", "--exclude-standard")
    found: dict[str, Tracked] = {}
    for record in os.fsdecode(output.stdout).split("\0"):
        if record.startswith("? "):
            path = record[2:]
            found[path] = Tracked(path.rstrip("/"), False, path.endswith("/"))
        elif record:
            head, _, path = record.partition("\t")
            found[path] = Tracked(path, True, " 160000 " in head)
    return WorkTree(top, [found[path] for path in sorted(found)], b"could not open directory" in output.stderr)


def find_changes(directory: str | os.PathLike[str], revision: str) -> dict[str, Change]:
    """path below the directory -> what differs from a revision. Files that git does not know yet, or by another name,
    count as a whole."""
    base = os.fspath(directory)
    if revision.startswith("-") or not revision:
        raise GitError("that is no revision")
    try:
        _run(base, "rev-parse", "--git-dir")
    except GitError:
        raise GitError("there is no git repository") from None
    try:
        _run(base, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    except GitError:
        raise GitError("there is no such commit" if revision != "HEAD" else "nothing is committed yet") from None
    # External diff programs and text conversions of the repository are not for us to run.
    done = _run(
        base, "diff", "--unified=0", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--relative",
        "--src-prefix=a/", "--dst-prefix=b/", revision, "--", settings=("core.quotePath=false",),
    )  # fmt: skip
    found = _read_diff(done.stdout)
    for item in list_files(real_path(base)).files:
        if not item.tracked and not item.nested:
            try:
                with open(os.path.join(base, item.path), "rb") as file:
                    lines = file.read(1 << 22).count(b"\n")
            except OSError:
                continue
            found[item.path] = Change(tuple(range(1, max(lines, 1) + 1)))
    return found


def _read_diff(text: bytes) -> dict[str, Change]:
    found: dict[str, Change] = {}
    names = ["", ""]  # before and after
    rows = iter(text.split(b"\n"))
    for row in rows:
        if row.startswith((b"--- ", b"+++ ")):
            name = row[4:].removesuffix(b"\t")
            if name[:1] == b'"':
                name = name[1:-1].replace(b'\\"', b'"').replace(b"\\\\", b"\\")
            names[row[:1] == b"+"] = "" if name == b"/dev/null" else name[2:].decode("utf-8", "surrogateescape")
        elif row.startswith(b"@@ "):
            (_, gone), (first, many) = (_read_range(word) for word in row.split(b" ")[1:3])
            # A line of a file may look like a line of the diff: as many are taken as are announced.
            removed = b"\n".join(line[1:] for line in islice(rows, gone)) + b"\n" if gone else b""
            for _ in islice(rows, many):
                pass
            path = names[1] or names[0]
            known = found.get(path, Change())
            found[path] = Change(
                known.lines + (tuple(range(first, first + many)) if names[1] else ()),
                known.gaps + ((first,) if names[1] and not many else ()),
                known.removed + ((removed,) if gone else ()),
            )
    return found


def _read_range(word: bytes) -> tuple[int, int]:
    """`-12,3`: the first line and how many; of none, the line before."""
    first, _, many = word[1:].partition(b",")
    return int(first), int(many or 1)


def find_head(directory: str) -> str:
    """What the current commit is known by, without asking git; "" where there is none. Another commit, another text."""
    while not os.path.lexists(os.path.join(directory, ".git")):
        parent = os.path.dirname(directory)
        if parent == directory:
            return ""
        directory = parent
    found = find_common_dir(directory)
    if found is None:
        return ""
    head = _read_line(os.path.join(found[0], "HEAD"))
    name = head.removeprefix("ref: ")
    if name == head or name.startswith("/") or ".." in name:
        return head
    packed = os.path.join(found[1], "packed-refs")
    commit = _read_line(os.path.join(found[1], name))
    return f"{head} {commit or (os.path.getmtime(packed) if os.path.exists(packed) else '')}"


def _read_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(4096).strip()
    except OSError:
        return ""


def find_commits(directory: str | os.PathLike[str], limit: int) -> list[tuple[str, ...]]:
    """The paths below the directory that each of the newest commits touched, merges left out, the newest first."""
    arguments = ("log", f"--max-count={limit}", "--no-merges", "--name-only", "--no-renames", "--format=%x01")
    more = ("--relative", "--no-ext-diff", "--no-textconv", "--no-color", "--no-show-signature")
    output = _run(os.fspath(directory), *arguments, *more, settings=("core.quotePath=false", "log.showSignature=false"))
    texts = output.stdout.decode("utf-8", "replace").split("\1")[1:]
    # A name in quotes is one with control characters; what is indexed has none.
    return [tuple(line for line in text.splitlines() if line and line[0] != '"') for text in texts]


def _run(directory: str, *arguments: str, settings: tuple[str, ...] = ()) -> CompletedProcess[bytes]:
    import subprocess  # costs more than most questions, which do not ask git

    program = find_in_path("git")
    if program is None:
        raise GitError("git is not installed")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    given = [word for setting in (*_SETTINGS, *settings) for word in ("-c", setting)]
    try:
        done = subprocess.run(
            [program, "--no-pager", *given, *arguments],
            cwd=directory,
            env=environment | _ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise GitError(f"git gave no answer in {TIMEOUT} s") from None
    except OSError:
        raise GitError("git cannot be started") from None
    if done.returncode:
        raise GitError(f"git cannot read the repository (exit code {done.returncode})")
    return done
