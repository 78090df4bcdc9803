"""What the text of a pattern says before any grammar has seen it: metavariables, literals, bounds."""

from __future__ import annotations

import re

# The matcher recurses over a pattern, and a crash cannot be caught: 2,000 characters nest 1,000 deep at most,
# which it takes; 20,000 deep it dies.
MAX_LENGTH = 2000
MAX_DEPTH = 60
METAVARIABLE = re.compile(r"\$\$\$[A-Z_][A-Z0-9_]*(?![A-Za-z0-9_])|\$\$\$(?!\w)|\$\$?[A-Z_][A-Z0-9_]*(?![A-Za-z0-9_])")
_KIND = re.compile(r"kind=(\w+)")
_WORD = re.compile(
    r"[^\W\d]\w{2,}|(?<![^\s\w)\]$'\"])(?:[=!]==?|[<>]=|&&|\|\||\?\?|=>|->|::|\*\*|//|<<|>>)(?![^\s\w(\[$'\"])"
)


def find_kind(text: str) -> str:
    """NAME of `kind=NAME`, which stands for every node of that kind; "" for a pattern."""
    match = _KIND.fullmatch(text)
    return match[1] if match else ""


def find_metavariables(text: str) -> dict[str, str]:
    """name -> single, multi or operator; those that begin with an underscore capture nothing and are left out."""
    found: dict[str, str] = {}
    for word in METAVARIABLE.findall(text):
        name = word.lstrip("$")
        if name and not name.startswith("_"):
            found[name] = "multi" if word.startswith("$$$") else "operator" if word.startswith("$$") else "single"
    return found


def find_literals(text: str) -> tuple[str, ...]:
    """Words that stand in every text the pattern matches: what a text index can look up first."""
    if find_kind(text):
        return ()
    return tuple(sorted(set(_WORD.findall(METAVARIABLE.sub(" ", text)))))


def find_fault(text: str) -> str:
    """Why a pattern can be taken in no language, "" when it may be."""
    if not text.strip():
        return "the pattern is empty"
    if len(text) > MAX_LENGTH:
        return f"the pattern has more than {MAX_LENGTH:,} characters"
    depth = deepest = 0
    for char in text:
        depth += (char in "([{") - (char in ")]}")
        deepest = max(deepest, depth)
    if deepest > MAX_DEPTH:
        return f"the pattern is nested more than {MAX_DEPTH} deep"
    if "\0" in text:
        return "the pattern holds a NUL"
    kinds: dict[str, str] = {}
    for word in METAVARIABLE.findall(text):
        name = word.lstrip("$")
        if name and not name.startswith("_") and kinds.setdefault(name, word) != word:
            return f"{kinds[name]} and {word} cannot both stand in one pattern"
    return ""


def split_list(text: str) -> list[str]:
    """At commas outside brackets and quotes: `a($X, $Y), print($$$)` are two patterns."""
    parts, start, depth, quote = [], 0, 0, ""
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote and text[at - 1] != "\\" else quote
        elif char in "'\"`":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == "," and depth <= 0:
            parts.append(text[start:at])
            start = at + 1
    parts.append(text[start:])
    return [part.strip() for part in parts]
