"""What git says about a work tree. The repository is taken as hostile: nothing its configuration names is run, nothing
is written, nothing is fetched."""

# Names here may be no UTF-8.
# ruff: noqa: PTH110, PTH204, PTH111, PTH118, PTH120, PTH123

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

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


def find_changed_lines(directory: str | os.PathLike[str], revision: str) -> dict[str, tuple[int, ...]]:
    """path below the directory -> lines that differ from a revision, as they are numbered now. A deletion counts as
    the line it left; new files that git does not know yet count as a whole."""
    base = os.fspath(directory)
    if revision.startswith("-"):
        raise GitError("a revision does not begin with a dash")
    # External diff programs and text conversions of the repository are not for us to run.
    done = _run(
        base, "diff", "--unified=0", "--no-color", "--no-ext-diff", "--no-textconv", "--relative", revision, "--"
    )
    found: dict[str, list[int]] = {}
    path = ""
    for line in done.stdout.split(b"\n"):
        if line.startswith(b"+++ "):
            name = line[4:].strip()
            path = "" if name == b"/dev/null" else name.removeprefix(b"b/").strip(b'"').decode("utf-8", "replace")
        elif line.startswith(b"@@ ") and path:
            start, _, count = line.split(b" ")[2].removeprefix(b"+").partition(b",")
            first, many = int(start), int(count or 1)
            found.setdefault(path, []).extend(range(first, first + many) if many else [max(first, 1)])
    for item in list_files(real_path(base)).files:
        if not item.tracked and not item.nested:
            found.setdefault(item.path, []).append(1)
            try:
                with open(os.path.join(base, item.path), "rb") as file:
                    found[item.path] = list(range(1, file.read(1 << 22).count(b"\n") + 1))
            except OSError:
                continue
    return {name: tuple(lines) for name, lines in found.items()}


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
