"""gitignore rules: the same verdicts as git's, in linear time."""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path

import pytest

from cq.source.ignore import MAX_RULES, Rules, parse_rules


def ignored(rules: Rules, path: str, *, is_dir: bool = False) -> bool:
    """As a walker sees it: an ignored directory hides everything below."""
    above, _, name = path.rpartition("/")
    return bool(above and ignored(rules, above, is_dir=True)) or rules.match(path, name, is_dir) is True


@pytest.mark.parametrize(
    ("pattern", "hit", "miss"),
    [
        ("*.log", "a/b.log", "b.logs"),
        ("build/", "build/x", "x/builder"),
        ("/top", "top", "a/top"),
        ("a/b", "a/b/c", "x/a/b"),
        ("**/deep", "x/y/deep", "deeper"),
        ("a/**/z", "a/z", "a/zz"),
        ("a/**", "a/b/c", "b/a"),
        ("[!a-c].py", "d.py", "a.py"),
        ("[[:digit:]]x", "1x", "ax"),
        ("\\#note", "#note", "note"),
        ("\\!bang", "!bang", "bang"),
        ("sp\\ ", "sp ", "sp"),
        ("x?z", "xyz", "x/z"),
        ("a*b*c", "aXbYc", "aXc"),
    ],
)
def test_pattern(pattern: str, hit: str, miss: str):
    rules = parse_rules(pattern + "\n")
    assert ignored(rules, hit)
    assert not ignored(rules, miss)


def test_last_rule_decides_and_negation_cannot_leave_an_ignored_directory():
    rules = parse_rules("\ufeff# comment\r\n*.py\r\n!keep.py\r\nout\r\n!out/keep.py\r\n\r\n")
    assert ignored(rules, "a.py")
    assert not ignored(rules, "keep.py")
    assert rules.match("keep.py", "keep.py", False) is False
    assert rules.match("x.rs", "x.rs", False) is None
    assert ignored(rules, "out/keep.py")


def test_broken_patterns_match_nothing_unless_strict():
    for pattern in ("[a", "x\\", "[z-a]", "/", "[[:nope:]]"):
        assert not parse_rules(pattern).match("a", "a", False)
        with pytest.raises(ValueError, match=r"."):
            Rules([pattern], strict=True)


def test_too_many_rules_are_counted():
    assert parse_rules("a\n" * (MAX_RULES + 3)).dropped == 3


@pytest.mark.parametrize(
    "pattern", ["*a" * 40 + "*b", "**/*a*a/" * 20 + "b", "**/a/" * 60 + "b", "a" + "?" * 200 + "*b"]
)
def test_hostile_pattern_is_linear(pattern: str):
    rules = parse_rules(pattern)
    start = time.perf_counter()
    for path in ("a" * 255, "a/" * 1000 + "a", "/".join(["a" * 8] * 400)):
        rules.match(path, path.rpartition("/")[2], False)
    assert time.perf_counter() - start < 1


def test_same_verdicts_as_git(tmp_path: Path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    pick = random.Random(7)
    files: list[str] = []

    def fill(above: str, depth: int) -> None:
        for name in ("a", "b", "ab", "a.b", "[a]", "abc"):
            if depth < 2 and pick.random() < 0.4:
                (tmp_path / above / name).mkdir(parents=True)
                fill(f"{above}{name}/", depth + 1)
            else:
                (tmp_path / above).mkdir(exist_ok=True)
                (tmp_path / above / name).touch()
                files.append(above + name)

    fill("", 0)
    atoms = ["a", "b", "c", "*", "?", ".", "[ab]", "[!a]", "[]a]", "\\a", "[[:alpha:]]"]
    for _ in range(60):
        lines: list[str] = []
        for _ in range(pick.randint(1, 4)):
            segments = ["".join(pick.choices(atoms, k=pick.randint(1, 3))) for _ in range(pick.randint(1, 3))]
            if pick.random() < 0.3:
                segments[pick.randrange(len(segments))] = "**"
            lines.append(pick.choice(["", "", "!", "/"]) + "/".join(segments) + pick.choice(["", "", "/"]))
        (tmp_path / ".gitignore").write_text("\n".join(lines))
        command = ["git", "-C", str(tmp_path), "ls-files", "-z", "--others", "--exclude-standard"]
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")
        rules = parse_rules("\n".join(lines))
        assert {path for path in files if not ignored(rules, path)} == set(listed) - {"", ".gitignore"}, lines
