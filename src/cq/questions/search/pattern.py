"""What is looked for: a text, how it is read, and where it stands in a file's bytes. Equal to ripgrep, hit for hit."""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

from cq.model.errors import UsageError

MODES = ("auto", "identifier", "regex", "literal")
_DOTTED = re.compile(r"[^\W\d][\w$]*(?:(?:\.|::)[^\W\d][\w$]*)*\Z|\$[\w$]+\Z")
# Characters outside ASCII that a search without case takes for `k` and `s`.
_ODD_FOLDS = (("k", "\u212a".encode()), ("s", "\u017f".encode()))
_TURKISH = ("\u0130".encode(), "\u0131".encode())
_WORD = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
MAX_QUERY = 1000
MAX_REPEAT = 10_000


class TimedOut(Exception):
    """A regular expression ran past its time; what was found before stands."""


class Pattern:
    """`literals`: every match holds one of them, whatever its case; None where nothing is certain."""

    def __init__(self, text: str, mode: str, *, ignore_case: bool, timeout: float = 30.0) -> None:
        self.text = text
        self.mode = mode
        self.ignore_case = ignore_case
        self._deadline = time.monotonic() + timeout
        self.literals: tuple[str, ...] | None
        if mode == "regex":
            self._find, self.literals = self._compile_regex()
        else:
            self._find, self.literals = self._find_literal, (text,)

    @property
    def last(self) -> int:
        """Bytes of the last of several names, 0 where there are not several."""
        names = re.split(r"\.|::", self.text) if self.mode == "identifier" else [""]
        return len(names[-1].encode()) if len(names) > 1 else 0

    def find(self, text: bytes) -> list[tuple[int, int]]:
        """Byte spans of the matches, in order; none is empty, none crosses a line."""
        return list(self._find(text))

    def _find_literal(self, text: bytes) -> Iterator[tuple[int, int]]:
        needle = self.text.encode()
        if self.ignore_case:
            if not needle.isascii() or any(letter in self.text.lower() and odd in text for letter, odd in _ODD_FOLDS):
                yield from self._find_unicode(text)
                return
            haystack, needle = text.lower(), needle.lower()
        else:
            haystack = text
        length, whole = len(needle), self.mode == "identifier"
        at = haystack.find(needle)
        while at >= 0:
            end = at + length
            if not whole or not (_is_word_before(text, at) or _is_word_after(text, end)):
                yield at, end
                at = haystack.find(needle, end)
            else:
                at = haystack.find(needle, at + 1)

    def _find_unicode(self, text: bytes) -> Iterator[tuple[int, int]]:
        edges = (r"(?<![\w\u200c\u200d])", r"(?![\w\u200c\u200d])") if self.mode == "identifier" else ("", "")
        expression = re.compile(edges[0] + re.escape(self.text) + edges[1], re.IGNORECASE)
        for start, end in _in_bytes(expression.finditer(text.decode("utf-8", "replace")), text):
            # Python takes the two Turkish letters for an `i`; simple case folding, as ripgrep has it, does not.
            if not any(letter in text[start:end] and letter.decode() not in self.text for letter in _TURKISH):
                yield start, end

    def _compile_regex(self) -> tuple[Callable[[bytes], Iterator[tuple[int, int]]], tuple[str, ...] | None]:
        # Backtracking may take for ever, and Python's own engine cannot be told to stop.
        import regex

        _check_size(self.text)
        flags = regex.IGNORECASE if self.ignore_case else 0
        try:
            expression = regex.compile(self.text, flags)
        except regex.error as error:
            raise _bad_regex(self.text, error) from None
        literals = find_literals(self.text)
        if literals and self.ignore_case and not all(map(str.isascii, literals)):
            literals = None
        if min(map(len, literals or ("",))) < 3 and _keeps_to_lines(self.text):
            whole = regex.compile(self.text, flags | regex.MULTILINE)
            return lambda text: self._find_whole(whole, text), None
        return lambda text: self._find_regex(expression, literals, text), literals

    def _find_whole(self, expression: Any, text: bytes) -> Iterator[tuple[int, int]]:
        """Of one text in one go: an expression that can match no line end finds the same as line by line."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimedOut
        try:
            if text.isascii():
                yield from (
                    m.span() for m in expression.finditer(text.decode("ascii"), timeout=left) if m.end() > m.start()
                )
            else:
                yield from _in_bytes(expression.finditer(text.decode("utf-8", "replace"), timeout=left), text)
        except TimeoutError:
            raise TimedOut from None

    def _find_regex(self, expression: Any, literals: tuple[str, ...] | None, text: bytes) -> Iterator[tuple[int, int]]:
        lines = _lines_with(literals, text) if literals and not _has_odd_folds(literals, text) else _all_lines(text)
        try:
            for start, end in lines:
                line = text[start:end]
                left = self._deadline - time.monotonic()
                if left <= 0:
                    raise TimedOut
                if line.isascii():
                    for match in expression.finditer(line.decode("ascii"), timeout=left):
                        if match.end() > match.start():
                            yield start + match.start(), start + match.end()
                else:
                    found = expression.finditer(line.decode("utf-8", "replace"), timeout=left)
                    for first, last in _in_bytes(found, line):
                        yield start + first, start + last
        except TimeoutError:
            raise TimedOut from None


def make_pattern(text: str, mode: str, case: str, timeout: float) -> Pattern:
    """`case`: smart (ignored unless a capital letter is given), ignore or respect. UsageError for what cannot be."""
    if not (text.strip() if mode in ("auto", "identifier") else text):
        raise UsageError("the query is empty", hint="give a name or a text, e.g. `cq search get_or_create`")
    if "\n" in text or "\r" in text or "\0" in text:
        raise UsageError("a query is one line of text", hint="search for one line of it")
    if len(text) > MAX_QUERY:
        raise UsageError(f"the query has {len(text):,} characters", hint=f"{MAX_QUERY:,} are enough")
    if mode == "auto":
        mode = "identifier" if is_name(text) else "literal"
    letters = re.sub(r"\\.", "", text) if mode == "regex" else text
    ignore = case == "ignore" or (case == "smart" and not any(map(str.isupper, letters)))
    return Pattern(text, mode, ignore_case=ignore, timeout=timeout)


def is_name(text: str) -> bool:
    """An identifier, or several joined by `.` or `::`."""
    return _DOTTED.match(text) is not None


def find_literals(expression: str) -> tuple[str, ...] | None:
    """Texts of which every match must hold at least one; None where that cannot be told."""
    import warnings

    parser: Any = getattr(re, "_parser", None)
    if parser is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parsed = parser.parse(expression)
    except (re.error, RecursionError, OverflowError):
        return None  # what only the larger engine understands
    if parsed.state.flags & re.VERBOSE:
        return None
    found = _required(parsed, 0)
    return tuple(sorted(found)) if found else None


def _keeps_to_lines(expression: str) -> bool:
    """Whether no part of it can match or look at a line end; `$` and `^` may not, for a `\\r` stands before some."""
    parser: Any = getattr(re, "_parser", None)
    try:
        parsed = parser.parse(expression)
    except (re.error, RecursionError, OverflowError, AttributeError):
        return False
    if parsed.state.flags & ~re.UNICODE & ~re.IGNORECASE:
        return False
    todo: list[Any] = [parsed]
    argument: Any
    while todo:
        for operation, argument in todo.pop():
            name = str(operation)
            if _is_bound((operation, argument)) or (name == "IN" and all(map(_is_bound, argument))):
                continue
            if name == "SUBPATTERN" and not argument[1] and not argument[2]:
                todo.append(argument[3])
            elif name in ("MAX_REPEAT", "MIN_REPEAT"):
                todo.append(argument[2])
            elif name == "BRANCH":
                todo += argument[1]
            else:
                return False
    return True


def _is_bound(part: Any) -> bool:
    """A character or an entry of a character class, and whether it leaves line ends out."""
    operation, argument = part
    name = str(operation)
    if name == "LITERAL":
        return chr(argument) not in "\r\n"
    if name == "RANGE":
        return argument[0] > 13
    return name == "CATEGORY" and str(argument) in ("CATEGORY_DIGIT", "CATEGORY_WORD")


_MAX_ALTERNATIVES = 16


def _required(parsed: Any, depth: int) -> frozenset[str]:
    """The best set of alternatives in a sequence: the one whose shortest text is longest."""
    best: frozenset[str] = frozenset()
    run = ""

    def offer(texts: frozenset[str]) -> None:
        nonlocal best
        if texts and len(texts) <= _MAX_ALTERNATIVES and min(map(len, texts)) > min(map(len, best), default=0):
            best = texts

    argument: Any
    for operation, argument in parsed:
        name = str(operation)
        if name == "LITERAL" and chr(argument) != "\n":
            run += chr(argument)
            continue
        offer(frozenset({run} if run else ()))
        run = ""
        if depth > 20:
            continue
        if name == "SUBPATTERN":
            offer(_required(argument[3], depth + 1))
        elif name == "ATOMIC_GROUP":
            offer(_required(argument, depth + 1))
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT") and argument[0] >= 1:
            offer(_required(argument[2], depth + 1))
        elif name == "BRANCH":
            branches = [_required(branch, depth + 1) for branch in argument[1]]
            if all(branches):
                offer(frozenset().union(*branches))
    offer(frozenset({run} if run else ()))
    return best


def _lines_with(literals: tuple[str, ...], text: bytes) -> Iterator[tuple[int, int]]:
    """Spans of the lines that hold one of the texts, any case."""
    lower = text.lower()
    needles = [literal.encode().lower() for literal in literals]
    at = 0
    nexts = [lower.find(needle) for needle in needles]
    while True:
        for number, needle in enumerate(needles):
            if 0 <= nexts[number] < at:
                nexts[number] = lower.find(needle, at)
        first = min((place for place in nexts if place >= 0), default=-1)
        if first < 0:
            return
        start = text.rfind(b"\n", 0, first) + 1
        end = text.find(b"\n", first)
        at = len(text) + 1 if end < 0 else end + 1
        yield start, _without_return(text, start, len(text) if end < 0 else end)


def _all_lines(text: bytes) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(text):
        end = text.find(b"\n", start)
        if end < 0:
            end = len(text)
        yield start, _without_return(text, start, end)
        start = end + 1


def _without_return(text: bytes, start: int, end: int) -> int:
    return end - 1 if end > start and text[end - 1] == 13 else end


def _has_odd_folds(literals: tuple[str, ...], text: bytes) -> bool:
    return any(odd in text and any(letter in lit.lower() for lit in literals) for letter, odd in _ODD_FOLDS)


def _in_bytes(matches: Iterator[Any], text: bytes) -> Iterator[tuple[int, int]]:
    """Spans in characters as spans in bytes; only what lies between two matches is encoded."""
    decoded = text.decode("utf-8", "replace")
    chars = offset = 0
    for match in matches:
        first, last = match.span()
        if last == first:
            continue
        start = offset + len(decoded[chars:first].encode())
        offset = start + len(decoded[first:last].encode())
        chars = last
        yield start, offset


def _is_word_before(text: bytes, at: int) -> bool:
    if at == 0:
        return False
    byte = text[at - 1]
    return byte in _WORD if byte < 128 else _is_word(text[max(at - 4, 0) : at].decode("utf-8", "ignore")[-1:])


def _is_word_after(text: bytes, at: int) -> bool:
    if at >= len(text):
        return False
    byte = text[at]
    return byte in _WORD if byte < 128 else _is_word(text[at : at + 4].decode("utf-8", "ignore")[:1])


def _is_word(char: str) -> bool:
    return bool(char) and (char.isalnum() or char in "\u200c\u200d" or unicodedata.category(char) in _JOINING)


_JOINING = ("Mn", "Mc", "Me", "Pc")


def _check_size(text: str) -> None:
    """Counted repeats are written out by the engine: a few characters could ask for all the memory there is."""
    size = 1
    for least, most in re.findall(r"\{(\d*)(?:,(\d*))?\}", text):
        size *= max(int(least or 1), int(most or 1), 1) if len(least) + len(most) < 12 else MAX_REPEAT + 1
    if size > MAX_REPEAT:
        message = f"the expression repeats parts more than {MAX_REPEAT:,} times"
        raise UsageError(message, hint="use `*` or `+` where the number does not matter")


def _bad_regex(text: str, error: Any) -> UsageError:
    at = getattr(error, "pos", None)
    where = f" at character {at + 1}" if at is not None else ""
    shown = f": {text[:at]}⟨here⟩{text[at:]}" if at is not None and len(text) <= 200 else ""
    message = str(getattr(error, "msg", error))
    return UsageError(
        f"the regular expression is not valid{where}: {message}{shown}", hint="`--mode literal` takes it as text"
    )
