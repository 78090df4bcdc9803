"""gitignore rules as regular expressions. Matching is linear in the path whatever the pattern: a repository may be
hostile, and `*a*a*a*b` must not stop us. Therefore every `*` but the last is atomic: what stands between two stars has
a fixed width, so its first match is as good as any other."""

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_RULES = 2000

_POSIX_CLASSES = {
    "alpha": "a-zA-Z", "digit": "0-9", "alnum": "a-zA-Z0-9", "upper": "A-Z", "lower": "a-z", "space": r"\s",
    "blank": r" \t", "punct": r"!-/:-@\[-`{-~", "xdigit": "0-9A-Fa-f", "cntrl": r"\x00-\x1f\x7f", "print": " -~",
    "graph": "!-~",
}  # fmt: skip
_WILD = re.compile(r"[*?\[\\]")


class Rules:
    """The rules of one ignore file, or of one list of globs. The last rule that matches decides, as in git."""

    def __init__(self, patterns: Iterable[str], *, strict: bool = False, ignore_case: bool = False) -> None:
        """`strict` raises ValueError for a pattern that git would silently never match."""
        self._ignore_case = ignore_case
        self._negated: list[bool] = []
        self._literals: dict[str, int] = {}  # a plain name, by the last rule that says it
        names: list[tuple[int, str]] = []
        paths: list[tuple[int, str]] = []
        self.dropped = 0
        for pattern in patterns:
            if len(self._negated) >= MAX_RULES:
                self.dropped += 1
                continue
            try:
                self._add(pattern, names, paths)
            except ValueError:
                if strict:
                    raise
        self._names, self._name_ids = _compile(names, ignore_case=ignore_case)
        self._paths, self._path_ids = _compile(paths, ignore_case=ignore_case)

    def __bool__(self) -> bool:
        return bool(self._negated)

    def match(self, path: str, name: str, is_dir: bool) -> bool | None:
        """True: ignored. False: expressly not. None: no rule says. `path` is relative to where the rules stand.

        Ancestors are not looked at; who walks prunes an ignored directory."""
        if self._ignore_case:
            name = name.lower()
        best = self._literals.get(name, -1)
        if is_dir:
            name += "/"
            best = max(best, self._literals.get(name, -1))
        if self._names and (found := self._names.fullmatch(name)):
            best = max(best, self._name_ids[found.lastindex or 0])
        if self._paths and (found := self._paths.fullmatch(path + "/" if is_dir else path)):
            best = max(best, self._path_ids[found.lastindex or 0])
        return None if best < 0 else not self._negated[best]

    def _add(self, pattern: str, names: list[tuple[int, str]], paths: list[tuple[int, str]]) -> None:
        negated = pattern.startswith("!")
        body = pattern[negated:]
        only_dirs = body.endswith("/")
        body = body[: len(body) - only_dirs]
        if not body.strip("/"):
            raise ValueError("it names nothing")
        rule = len(self._negated)
        if "/" in body:
            regex = _translate_path(body.removeprefix("/"))
            paths.append((rule, regex + ("/" if only_dirs else "/?")))
        elif _WILD.search(body):
            names.append((rule, _translate_segment(body) + ("/" if only_dirs else "/?")))
        else:
            body = body.lower() if self._ignore_case else body
            self._literals[body + "/" if only_dirs else body] = rule
        self._negated.append(negated)


def parse_rules(text: str, *, ignore_case: bool = False) -> Rules:
    """The content of a `.gitignore`: comments, blank lines and trailing spaces taken out."""
    patterns: list[str] = []
    for line in text.removeprefix("\ufeff").split("\n"):
        line = line.removesuffix("\r")
        bare = line.rstrip(" ")
        # `name\ ` keeps the one space that its backslash escapes.
        escaped = (len(bare) - len(bare.rstrip("\\"))) % 2 == 1 and len(bare) < len(line)
        line = bare + " " if escaped else bare
        if line and not line.startswith("#"):
            patterns.append(line)
    return Rules(patterns, ignore_case=ignore_case)


def _compile(rules: list[tuple[int, str]], *, ignore_case: bool) -> tuple[re.Pattern[str] | None, tuple[int, ...]]:
    # The last rule stands first in the alternation, and the number of the group that matched names it.
    if not rules:
        return None, ()
    rules = rules[::-1]
    flags = re.IGNORECASE if ignore_case else re.NOFLAG
    return re.compile("|".join(f"({regex})" for _, regex in rules), flags), (-1, *(rule for rule, _ in rules))


def _translate_path(body: str) -> str:
    groups: list[list[str]] = [[]]  # runs of segments between `**`
    for segment in body.split("/"):
        if len(segment) > 1 and not segment.strip("*"):
            groups.append([])
        else:
            # A star may stand for nothing, but a segment is never empty.
            groups[-1].append("(?=[^/])" + _translate_segment(segment))
    first, *rest = groups
    parts = ["".join(f"{segment}/" for segment in first) if rest else "/".join(first)]
    for at, group in enumerate(rest, 1):
        run = "/".join(group)
        if at < len(rest):
            if group:
                parts.append(f"(?>(?:[^/]+/)*?{run}/)")
        else:
            parts.append(f"(?:[^/]+/)*?{run}" if group else "(?:[^/]+/)*[^/]+")
    return "".join(parts)


def _translate_segment(glob: str) -> str:
    runs = [""]  # single-character matchers between the stars
    at = 0
    while at < len(glob):
        char = glob[at]
        at += 1
        if char == "*":
            runs.append("")
        elif char == "?":
            runs[-1] += "[^/]"
        elif char == "[":
            matcher, at = _translate_class(glob, at)
            runs[-1] += matcher
        elif char == "\\":
            if at == len(glob):
                raise ValueError("it ends in a lone backslash")
            runs[-1] += re.escape(glob[at])
            at += 1
        else:
            runs[-1] += re.escape(char)
    if len(runs) == 1:
        return runs[0]
    middle = "".join(f"(?>[^/]*?{run})" for run in runs[1:-1] if run)
    return f"{runs[0]}{middle}[^/]*{runs[-1]}"


def _translate_class(glob: str, at: int) -> tuple[str, int]:
    """`[a-z]` from just behind its bracket: the regex, and where the glob goes on."""
    negated = glob[at : at + 1] in ("!", "^")
    at += negated
    first = at
    items: list[str] = []
    previous = ""  # the character that a `-` could make a range of
    while True:
        char = glob[at : at + 1]
        if not char:
            raise ValueError("a `[` is never closed")
        at += 1
        if char == "]" and at - 1 > first:
            break
        if char == "[" and glob[at : at + 1] == ":" and (close := glob.find(":]", at)) > 0:
            if glob[at + 1 : close] not in _POSIX_CLASSES:
                raise ValueError(f"there is no class [:{glob[at + 1 : close]}:]")
            items.append(_POSIX_CLASSES[glob[at + 1 : close]])
            at, previous = close + 2, ""
        elif char == "-" and previous and glob[at : at + 1] not in ("", "]"):
            high = glob[at]
            at += 1
            if high == "\\":
                high, at = glob[at : at + 1] or "\\", at + 1
            if previous > high:
                raise ValueError(f"the range {previous}-{high} is empty")
            items[-1], previous = f"{re.escape(previous)}-{re.escape(high)}", ""
        else:
            if char == "\\":
                char, at = glob[at : at + 1], at + 1
            items.append(re.escape(char))
            previous = char
    return f"(?!/)[{'^' if negated else ''}{''.join(items)}]", at
