"""Which files a root holds."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import unicodedata
from pathlib import Path

import pytest

from cq.model.errors import SourceError, UsageError
from cq.model.source import SourceFile
from cq.source import git as git_module
from cq.source.checkout import GitError
from cq.source.files import Listing, find_files
from cq.source.git import find_commits
from cq.source.ignore import MAX_RULES
from cq.source.read import read_source


def write(root: Path, *paths: str, text: str = "x = 1\n") -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def git(where: Path, *arguments: str) -> str:
    settings = [
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@t",
        "-c",
        "protocol.file.allow=always",
        "-c",
        "init.defaultBranch=main",
    ]
    done = subprocess.run(["git", "-C", str(where), *settings, *arguments], check=True, capture_output=True, text=True)
    return done.stdout


def repository(root: Path, *paths: str) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q")
    write(root, *paths)
    git(root, "add", "-A", "-f")
    git(root, "commit", "-q", "--allow-empty", "-m", "first")
    return root


def paths(listing: Listing) -> list[str]:
    return [entry.path for entry in listing.files]


def skips(listing: Listing) -> dict[str, str]:
    return {skip.path: skip.reason for skip in listing.skips}


def test_walk_is_sorted_and_says_what_changes_are_seen_by(tmp_path: Path):
    write(tmp_path, "b.py", "a/z.py", "a-b.py", "a/b/c.py", ".hidden/x.py")
    listing = find_files(tmp_path)
    assert listing.via == "walk"
    assert (listing.notes, listing.skips, listing.truncated) == ((), (), False)
    assert paths(listing) == sorted([".hidden/x.py", "a-b.py", "a/b/c.py", "a/z.py", "b.py"])
    status = (tmp_path / "b.py").stat()
    entry = listing.files[-1]
    assert (entry.size, entry.mtime_ns, entry.ctime_ns) == (6, status.st_mtime_ns, status.st_ctime_ns)


def test_walk_honours_nested_ignore_files(tmp_path: Path):
    write(tmp_path, "a.py", "a.log", "sub/b.log", "sub/keep.log", "sub/deep/c.log", "out/x.py", "gen.py", "priv.py")
    (tmp_path / ".gitignore").write_text("*.log\nout/\n")
    (tmp_path / "sub" / ".gitignore").write_text("!keep.log\n")
    (tmp_path / ".ignore").write_text("gen.py\n")
    (tmp_path / ".cqignore").write_text("priv.py\n!a.log\n")
    rules = [".cqignore", ".gitignore", ".ignore", "sub/.gitignore"]
    assert paths(find_files(tmp_path)) == sorted([*rules, "a.log", "a.py", "sub/keep.log"])


def test_rules_of_a_directory_are_relative_to_it(tmp_path: Path):
    write(tmp_path, "sub/a.py", "sub/x/a.py", "a.py")
    (tmp_path / "sub" / ".ignore").write_text("/a.py\n")
    assert paths(find_files(tmp_path)) == ["a.py", "sub/.ignore", "sub/x/a.py"]


def test_walk_skips_what_is_never_source(tmp_path: Path):
    write(tmp_path, "a.py", "node_modules/p/i.js", "s/__pycache__/a.pyc", ".hg/x", ".svn/x", ".jj/x", "env/pyvenv.cfg",
          "env/lib/a.py", ".venv/x.py")  # fmt: skip
    listing = find_files(tmp_path)
    assert paths(listing) == ["a.py"]
    assert skips(listing) == dict.fromkeys(
        ["node_modules", "s/__pycache__", ".hg", ".svn", ".jj", "env", ".venv"], "skipped_dir"
    )


def test_include_and_exclude(tmp_path: Path):
    write(tmp_path, "src/a.py", "src/x/b.py", "src/x/b.ts", "tests/t.py", "tests/d/u.ts", "top.py")
    (tmp_path / "src" / "out").symlink_to("/etc")
    assert paths(find_files(tmp_path, include=["src/**/*.py"])) == ["src/a.py", "src/x/b.py"]
    assert paths(find_files(tmp_path, include=["*.ts"])) == ["src/x/b.ts", "tests/d/u.ts"]
    assert paths(find_files(tmp_path, include=["tests/"])) == ["tests/d/u.ts", "tests/t.py"]
    assert paths(find_files(tmp_path, include=["./src", "top.py"], exclude=["x/"])) == ["src/a.py", "top.py"]
    assert paths(find_files(tmp_path, exclude=["tests/", "*.ts"])) == ["src/a.py", "src/x/b.py", "top.py"]
    assert paths(find_files(tmp_path, include=["*.py", "!top.py"])) == ["src/a.py", "src/x/b.py", "tests/t.py"]
    assert skips(find_files(tmp_path, include=["*.py"])) == {}
    assert skips(find_files(tmp_path, exclude=["tests"])) == {"src/out": "link_out"}


@pytest.mark.parametrize("glob", ["[a", "", "/", "a\\", "../x", "*.{ts,tsx}", "[z-a]", "!"])
def test_invalid_glob_is_an_error_of_use(tmp_path: Path, glob: str):
    for option in ("include", "exclude"):
        with pytest.raises(UsageError) as caught:
            find_files(tmp_path, **{option: [glob]})  # pyright: ignore[reportArgumentType]
        assert caught.value.hint
        assert f"--{option}" in caught.value.message


def test_root_must_be_a_directory(tmp_path: Path):
    write(tmp_path, "a.py")
    for root in (tmp_path / "none", tmp_path / "a.py"):
        with pytest.raises(SourceError):
            find_files(root)


@pytest.mark.parametrize("via", ["walk", "git"])
def test_links_and_special_files(tmp_path: Path, via: str):
    root = tmp_path / "root"
    write(root, "pkg/a.py")
    write(tmp_path, "out/secret.py")
    if via == "git":
        git(root, "init", "-q")
    for name, target in {
        "same.py": "pkg/a.py", "same": "pkg", "out.py": "../out/secret.py", "out": "../out", "abs": "/etc",
        "loop": "loop", "pkg/up": "..", "pkg/self": ".", "gone": "nothing", "root2": "../root",
    }.items():  # fmt: skip
        (root / name).symlink_to(target)
    listing = find_files(root)
    assert listing.via == via
    assert paths(listing) == ["pkg/a.py"]
    assert skips(listing) == {
        "same.py": "link", "same": "link", "out.py": "link_out", "out": "link_out", "abs": "link_out",
        "loop": "link_loop", "pkg/up": "link_loop", "pkg/self": "link_loop", "gone": "link_broken",
        "root2": "link_loop",
    }  # fmt: skip
    assert next(skip.detail for skip in listing.skips if skip.path == "same.py") == "the same as pkg/a.py"


def test_special_files(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.py")
    server = socket.socket(socket.AF_UNIX)
    with server:
        server.bind(os.path.relpath(tmp_path / "sock"))
        assert skips(find_files(tmp_path)) == {"pipe.py": "special", "sock": "special"}


def test_size_limit(tmp_path: Path):
    write(tmp_path, "small.py", "git/.keep")
    with (tmp_path / "large.py").open("wb") as file:
        file.truncate(2 * 1024 * 1024 + 1)
    listing = find_files(tmp_path)
    assert skips(listing) == {"large.py": "too_large"}
    assert "large.py" in paths(find_files(tmp_path, max_bytes=3 * 1024 * 1024))
    git(tmp_path, "init", "-q")
    assert skips(find_files(tmp_path)) == {"large.py": "too_large"}


def test_unreadable_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write(tmp_path, "a.py", "shut/b.py")
    (tmp_path / "shut").chmod(0)
    if os.geteuid() == 0:  # root reads everything, so the refusal is played
        scan = os.scandir

        def refuse(path: str):
            if path.rstrip("/").endswith("shut"):
                raise PermissionError(13, "Permission denied")
            return scan(path)

        monkeypatch.setattr(os, "scandir", refuse)
    listing = find_files(tmp_path)
    (tmp_path / "shut").chmod(0o755)
    assert paths(listing) == ["a.py"]
    assert skips(listing) == {"shut": "unreadable"}


@pytest.mark.parametrize("via", ["walk", "git"])
def test_names_that_are_not_utf8_or_odd_are_shown_and_open(tmp_path: Path, via: str):
    names = [
        b"lat\xe9.py",
        b"new\nline.py",
        b"tab\t.py",
        b'quo"te.py',
        b" space .py",
        b"-dash.py",
        "дом.py".encode(),
        b"b\\s.py",
    ]
    for name in names:
        (tmp_path / os.fsdecode(name)).write_bytes(b"x = 1\n")
    if via == "git":
        git(tmp_path, "init", "-q")
        git(tmp_path, "add", "-A")
    listing = find_files(tmp_path)
    assert listing.via == via
    assert paths(listing) == sorted(name.decode("utf-8", "backslashreplace") for name in names)
    assert "lat\\xe9.py" in paths(listing)
    for entry in listing.files:
        assert read_source(tmp_path, entry) == SourceFile(entry.path, "python", b"x = 1\n")


def test_nfd_names_are_shown_as_nfc_and_twins_are_told_apart(tmp_path: Path):
    composed, decomposed = "caf\u00e9.py", unicodedata.normalize("NFD", "caf\u00e9.py")
    write(tmp_path, f"d/{decomposed}")
    (entry,) = find_files(tmp_path).files
    assert (entry.path, entry.os_path) == (f"d/{composed}", f"d/{decomposed}")
    assert isinstance(read_source(tmp_path, entry), SourceFile)
    assert paths(find_files(tmp_path, include=[decomposed])) == [f"d/{composed}"]
    write(tmp_path, f"d/{composed}", text="y = 2\n")
    listing = find_files(tmp_path)
    assert [(entry.path, entry.os_path) for entry in listing.files] == [(f"d/{composed}", f"d/{composed}")]
    assert skips(listing) == {f"d/{composed}": "name_collision"}


def test_many_files_in_one_folder(tmp_path: Path):
    for number in range(20_000):
        os.close(os.open(f"{tmp_path}/f{number}.py", os.O_CREAT | os.O_WRONLY))
    start = time.perf_counter()
    listing = find_files(tmp_path)
    assert time.perf_counter() - start < 20  # a second at most on an idle machine
    assert len(listing.files) == 20_000
    few = find_files(tmp_path, max_files=100)
    assert few.truncated
    assert paths(few) == paths(listing)[:100]
    assert few.notes == ("the first 100 files are taken, 19900 more are left out",)
    assert not find_files(tmp_path, max_files=20_000).truncated


def test_deep_tree_needs_no_recursion(tmp_path: Path):
    where = tmp_path / "top"
    where.mkdir()
    for _ in range(1100):
        where = Path(f"{where}/d")
        where.mkdir()
    write(where, "a.py")
    try:
        assert paths(find_files(tmp_path)) == ["top/" + "d/" * 1100 + "a.py"]
        git(tmp_path, "init", "-q")
        listing = find_files(tmp_path)
        assert (listing.via, paths(listing)) == ("git", ["top/" + "d/" * 1100 + "a.py"])
    finally:
        subprocess.run(["rm", "-rf", str(tmp_path / "top")], check=True)  # what the standard library offers recurses


def test_too_many_rules_are_noted(tmp_path: Path):
    (tmp_path / ".gitignore").write_text("x\n" * (MAX_RULES + 1))
    assert any(str(MAX_RULES) in note for note in find_files(tmp_path).notes)


def test_git_lists_tracked_and_untracked_but_not_ignored(tmp_path: Path):
    root = repository(tmp_path, "a.py", "gen/tracked.py")
    write(root, "new.py", "gen/untracked.py", "sub/also.py", "node_modules/p/i.js")
    (root / ".gitignore").write_text("gen/\n")
    (root / ".git" / "info" / "exclude").write_text("new.py\n")
    listing = find_files(root)
    assert (listing.via, listing.notes) == ("git", ())
    assert paths(listing) == [".gitignore", "a.py", "gen/tracked.py", "sub/also.py"]
    assert skips(listing) == {"node_modules": "skipped_dir"}
    (root / "a.py").unlink()
    assert "a.py" not in paths(find_files(root))
    assert find_files(root).skips == listing.skips


def test_git_tracked_file_of_a_skipped_directory_is_listed(tmp_path: Path):
    root = repository(tmp_path, "node_modules/kept.js")
    write(root, "node_modules/stray.js")
    assert paths(find_files(root)) == ["node_modules/kept.js"]


def test_own_ignore_files_hold_in_git_too(tmp_path: Path):
    root = repository(tmp_path, "a.py", "b.py", "sub/c.py", "sub/d/e.py", "sub/d/keep.py")
    (root / ".ignore").write_text("b.py\n")
    (root / "sub" / ".cqignore").write_text("d/*\n!keep.py\n")
    assert paths(find_files(root)) == [".ignore", "a.py", "sub/.cqignore", "sub/c.py", "sub/d/keep.py"]


def test_git_include_and_exclude(tmp_path: Path):
    root = repository(tmp_path, "src/a.py", "src/b.ts", "tests/t.py")
    assert paths(find_files(root, include=["*.py"], exclude=["tests/"])) == ["src/a.py"]
    assert paths(find_files(root, max_files=1)) == ["src/a.py"]


def test_root_below_the_top_of_the_repository(tmp_path: Path):
    root = repository(tmp_path, "a.py", "sub/b.py", "sub/deep/c.py")
    (root / ".gitignore").write_text("skip.py\nbuild/\n")
    write(root, "sub/skip.py", "build/out.py")
    listing = find_files(root / "sub")
    assert (listing.via, paths(listing)) == ("git", ["b.py", "deep/c.py"])
    # Who names an ignored directory as the root wants to see it.
    ignored = find_files(root / "build")
    assert (ignored.via, paths(ignored)) == ("walk", ["out.py"])
    assert ignored.notes


def test_unmerged_paths_are_listed_once(tmp_path: Path):
    root = repository(tmp_path, "a.py")
    git(root, "checkout", "-q", "-b", "other")
    write(root, "a.py", text="x = 2\n")
    git(root, "commit", "-qam", "two")
    git(root, "checkout", "-q", "-")
    write(root, "a.py", text="x = 3\n")
    git(root, "commit", "-qam", "three")
    with pytest.raises(subprocess.CalledProcessError):
        git(root, "merge", "-q", "other")
    assert paths(find_files(root)) == ["a.py"]


def test_worktree(tmp_path: Path):
    root = repository(tmp_path / "main", "a.py")
    git(root, "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "side")
    write(tmp_path / "tree", "b.py")
    listing = find_files(tmp_path / "tree")
    assert (listing.via, paths(listing), listing.skips) == ("git", ["a.py", "b.py"], ())


def test_submodule_and_nested_repository(tmp_path: Path):
    inner = repository(tmp_path / "inner", "lib.py", "deep/x.py")
    root = repository(tmp_path / "root", "a.py")
    git(root, "submodule", "add", "-q", str(inner), "vendor/inner")
    git(root, "commit", "-qm", "module")
    write(root, "vendor/inner/new.py", "vendor/inner/junk.log")
    (root / "vendor/inner/.gitignore").write_text("*.log\n")
    repository(root / "own", "o.py")
    (root / "own" / ".cqignore").write_text("hid.py\n")
    write(root, "own/hid.py")
    listing = find_files(root)
    inner_files = ["vendor/inner/.gitignore", "vendor/inner/deep/x.py", "vendor/inner/lib.py", "vendor/inner/new.py"]
    assert paths(listing) == [".gitmodules", "a.py", "own/.cqignore", "own/o.py", *inner_files]
    assert (listing.via, listing.notes) == ("git", ())
    assert paths(find_files(root / "vendor/inner")) == [".gitignore", "deep/x.py", "lib.py", "new.py"]
    assert paths(find_files(root, exclude=["vendor/"])) == [".gitmodules", "a.py", "own/.cqignore", "own/o.py"]


def test_submodule_that_is_not_checked_out_or_damaged(tmp_path: Path):
    inner = repository(tmp_path / "inner", "lib.py")
    root = repository(tmp_path / "root", "a.py")
    git(root, "submodule", "add", "-q", str(inner), "sub")
    git(root, "commit", "-qm", "module")
    git(root, "clone", "-q", str(root), str(tmp_path / "clone"))
    listing = find_files(tmp_path / "clone")
    assert (paths(listing), listing.skips) == ([".gitmodules", "a.py"], ())
    (root / "sub" / ".git").write_text("gitdir: /nowhere\n")
    listing = find_files(root)
    assert paths(listing) == [".gitmodules", "a.py", "sub/lib.py"]
    assert [note.partition(":")[0] for note in listing.notes] == ["sub"]


def test_sparse_checkout(tmp_path: Path):
    root = repository(tmp_path, "top.py", "in/a.py", "out/b.py")
    git(root, "sparse-checkout", "set", "--cone", "in")
    listing = find_files(root)
    assert (listing.via, paths(listing), listing.skips, listing.notes) == ("git", ["in/a.py", "top.py"], (), ())
    git(root, "sparse-checkout", "set", "--cone", "--sparse-index", "in")
    assert paths(find_files(root)) == ["in/a.py", "top.py"]


def test_bare_or_damaged_git_falls_back_to_walking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    git(tmp_path, "init", "-q", "--bare", str(tmp_path / "bare"))
    bare = find_files(tmp_path / "bare")
    assert (bare.via, len(bare.notes)) == ("walk", 1)
    root = repository(tmp_path / "root", "a.py")
    (root / ".gitignore").write_text("b.py\n")
    write(root, "b.py")
    with monkeypatch.context() as patch:
        patch.setenv("PATH", "")  # no program is asked
        listing = find_files(root)
        assert (listing.via, paths(listing), listing.notes) == ("git", [".gitignore", "a.py"], ())
    (root / ".git" / "index").write_bytes(b"garbage")
    listing = find_files(root)
    assert (listing.via, paths(listing), len(listing.notes)) == ("walk", [".gitignore", "a.py"], 1)
    assert skips(listing) == {".git": "skipped_dir"}
    assert str(tmp_path) not in listing.notes[0]


def test_git_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    root = repository(tmp_path / "root", "a.py")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text("#!/bin/sh\nexec sleep 30\n")
    (tmp_path / "bin" / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setattr(git_module, "TIMEOUT", 0.3)
    with pytest.raises(GitError, match="no answer"):
        find_commits(root, 10)


def test_hostile_configuration_runs_nothing_and_nothing_is_written(tmp_path: Path):
    root = repository(tmp_path / "root", "a.py")
    mark = tmp_path / "ran"
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\necho ran >> {mark}\nexit 1\n")
    script.chmod(0o755)
    # The script works when git is left to itself: otherwise the test would prove nothing.
    git(root, "config", "core.fsmonitor", str(script))
    git(root, "update-index", "--fsmonitor")
    git(root, "status")
    assert mark.exists()
    mark.unlink()
    hooks = root / ".git" / "evil-hooks"
    hooks.mkdir()
    for hook in ("post-index-change", "fsmonitor-watchman", "post-checkout", "reference-transaction"):
        shutil.copy(script, hooks / hook)
    for key in ("core.pager", "core.editor", "core.sshCommand", "core.askPass", "credential.helper",
                "alias.ls-files", "alias.rev-parse", "filter.x.clean", "filter.x.process", "diff.external",
                "pager.ls-files"):  # fmt: skip
        git(root, "config", key, str(script))
    git(root, "config", "core.hooksPath", str(hooks))
    (root / ".gitattributes").write_text("* filter=x\n")
    write(root, "a.py", text="x = 22\n")
    before = {path: path.stat().st_mtime_ns for path in (root / ".git").rglob("*")}
    mark.unlink(missing_ok=True)
    listing = find_files(root)
    assert (listing.via, paths(listing)) == ("git", [".gitattributes", "a.py"])
    assert not mark.exists()
    assert {path: path.stat().st_mtime_ns for path in (root / ".git").rglob("*")} == before


def test_environment_does_not_lead_to_another_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    other = repository(tmp_path / "other", "other.py")
    root = repository(tmp_path / "root", "a.py")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    listing = find_files(root)
    assert (listing.via, paths(listing)) == ("git", ["a.py"])


def test_work_tree_elsewhere_is_not_followed(tmp_path: Path):
    write(tmp_path, "elsewhere/secret.py")
    root = repository(tmp_path / "root", "a.py")
    git(root, "config", "core.worktree", str(tmp_path / "elsewhere"))
    listing = find_files(root)
    assert (listing.via, paths(listing), len(listing.notes)) == ("walk", ["a.py"], 1)


def test_index_that_names_files_behind_links_or_outside_is_not_believed(tmp_path: Path):
    write(tmp_path, "out/secret.py", "secret.py")
    root = repository(tmp_path / "root", "a.py", "dir/secret.py", "xx/secret.py")
    shutil.rmtree(root / "dir")
    (root / "dir").symlink_to("../out")
    # git checks neither the names nor the checksum of an index that it reads.
    index = (root / ".git" / "index").read_bytes()
    (root / ".git" / "index").write_bytes(index.replace(b"xx/secret.py", b"../secret.py"))
    shutil.rmtree(root / "xx")
    assert "../secret.py" in git(root, "ls-files", "-z").split("\0")
    listing = find_files(root)
    assert (listing.via, paths(listing)) == ("git", ["a.py"])
    assert skips(listing)["dir"] == "link_out"


def test_hostile_partial_clone_fetches_nothing(tmp_path: Path):
    root = repository(tmp_path / "root", "in/a.py", "out/b.py")
    mark = tmp_path / "ran"
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\necho ran >> {mark}\nexit 1\n")
    script.chmod(0o755)
    git(root, "sparse-checkout", "set", "--cone", "--sparse-index", "in")
    # Listing has to open the folded directory `out`, whose tree is missing: git asks the remote for it.
    tree = git(root, "rev-parse", "HEAD:out").strip()
    (root / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    for key, value in {
        "core.repositoryFormatVersion": "1", "extensions.partialClone": "origin", "remote.origin.promisor": "true",
        "remote.origin.url": str(tmp_path), "remote.origin.uploadpack": str(script), "protocol.file.allow": "always",
    }.items():  # fmt: skip
        git(root, "config", key, value)
    subprocess.run(["git", "-C", str(root), "ls-files"], check=False, capture_output=True)
    assert mark.exists()
    mark.unlink()
    listing = find_files(root)
    assert paths(listing) == ["in/a.py"]
    assert not mark.exists()
