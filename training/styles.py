"""Questions about the definitions of a package, in the styles that its authors left beside its code: documentation,
pages, changes, tests, comments, error messages."""

from __future__ import annotations

import hashlib
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from cq.embed import Passage
from cq.embed.words import split_words
from cq.languages.facts import embedding_text, extract_facts
from cq.model.facts import FileFacts, Symbol
from training.archives import LANGUAGES
from training.lexical import stem

_GROUPS = ("function", "method", "class", "type")
_MESSAGE = re.compile(
    rb"(?:\braise\s+[\w.:]+(?:\(|, )|\bthrow\s+(?:new\s+)?[\w.:\\]+\(|errors\.New\(|\bErrorf\(|"
    rb"\b(?:panic|bail|anyhow|ensure)!\(|\bErr\([\w:]*\(?|Error::\w+\(|\.expect\()"
    rb"\s*[frbu]{0,2}([\"'`])([^\"'`\n]{15,160})\1"
)
_NO_PROSE = re.compile(
    r"(?i)copyright|licen[cs]e|eslint|pylint|noqa|type: ?ignore|todo|fixme|http|pragma|tslint|prettier|"
    r"@ts-|=|;$|\bxxx\b|-\*-|rustfmt|safety:"
)
_ENGLISH = re.compile(r"(?i)\b(the|to|of|is|and|for|with|if|be|are|this|that|by)\b")
_NAMED = re.compile(r":[\w:]+:`[~!.]?([^`<]*?)(?:\s*<([^>`]*)>)?`|``?([^`\n]+?)``?(?!`)")


_DOC = re.compile(rb"/\*\*.*?\*/|//[/!][^\n]*|#\[doc[^\n]*", re.DOTALL)
# In the other languages every comment before a definition is its documentation.
_COMMENT = re.compile(rb"/\*.*?\*/|//[^\n]*", re.DOTALL)
_DOCS = {language: _COMMENT for language in ("go", "java", "c", "cpp", "php")} | {"ruby": re.compile(rb"#[^\n]*")}
# Comments that have their lines to themselves, so that nothing in a string passes for one.
_LINES = {
    language: re.compile(rb"(?m)^[ \t]*(?:%s)" % start)
    for language, start in dict.fromkeys(_DOCS, rb"//[^\n]*|/\*[^*](?:[^*]|\*(?!/))*\*/").items()
} | {"ruby": re.compile(rb"(?m)^[ \t]*#[^\n]*")}


class Definition(msgspec.Struct):
    """What can be found, as a model reads it, and what is asked about it."""

    symbol: Symbol
    passage: Passage
    questions: list[tuple[str, str]]


def definitions(path: str, text: bytes, beside: bool) -> Iterator[Definition]:
    """Every function, class and type of a file. Documentation is taken out of what is read; with `beside` the comments
    and messages in the code become questions, and then they are taken out too."""
    facts = extract_facts(text, LANGUAGES[Path(path).suffix])
    bare = without_docs(text, facts)
    asked: dict[int, list[tuple[str, str]]] = defaultdict(list)
    found = [*_comments(text, facts), *_messages(text, facts)] if beside else []
    for number, style, question, (start, end) in found:
        bare[start:end] = b" " * (end - start)
        asked[number].append((style, question))
    tests: set[int] = set()
    if beside:
        owner = _main_symbol(path, text, facts)
        if owner is not None:
            asked[owner[0]].append(("module", owner[1]))
        for number, symbol in enumerate(facts.symbols):
            if symbol.parent in tests or "cfg(test)" in symbol.decorators:
                tests.add(number)
    plain = bytes(bare)
    for index, chunk in enumerate(facts.chunks):
        if chunk.symbol < 0 or chunk.symbol in tests:
            continue
        symbol = facts.symbols[chunk.symbol]
        if symbol.kind_group in _GROUPS and symbol.kind != "impl":
            body = re.sub(r"\s+", " ", embedding_text(plain, facts, index))
            yield Definition(symbol, Passage(path, symbol.qualified_name, symbol.signature, body), asked[chunk.symbol])


def without_docs(text: bytes, facts: FileFacts) -> bytearray:
    """The text with documentation blanked, byte for byte, so that offsets stay."""
    blank = bytearray(text)
    for start, end, kind in _quiet(facts):
        if kind == 1:
            blank[start:end] = b" " * (end - start)
    for symbol in facts.symbols:
        for match in _DOCS.get(facts.language, _DOC).finditer(text, symbol.start, symbol.head):
            start, end = match.span()
            blank[start:end] = b" " * (end - start)
    return blank


def _quiet(facts: FileFacts) -> Iterator[tuple[int, int, int]]:
    quiet = facts.references.quiet
    if quiet is not None:
        yield from zip(array("I", quiet.starts), array("I", quiet.ends), quiet.kinds, strict=True)


def _comment_blocks(text: bytes, facts: FileFacts) -> list[tuple[int, int]]:
    """Comments, those on lines one below the other as one."""
    blocks: list[tuple[int, int]] = []
    quiet = _quiet(facts)
    if facts.references.quiet is None and facts.language in _LINES:
        quiet = ((*match.span(), 0) for match in _LINES[facts.language].finditer(text))
    for start, end, kind in quiet:
        if kind == 0:
            if blocks and text[blocks[-1][1] : start].strip() == b"" and text.count(b"\n", blocks[-1][0], start) < 8:
                blocks[-1] = (blocks[-1][0], end)
            else:
                blocks.append((start, end))
    return blocks


def _prose(text: bytes) -> str:
    found = re.sub(r"(?m)^\s*(?:#+|//[/!]*|/\*+!?|\*+/?)|\*/", "", text.decode("utf-8", "replace")).strip()
    sentence = "" if _NO_PROSE.search(found[:300]) else sentence_of(found)[0]
    return sentence if len(sentence.split()) >= 4 else ""


def _comments(text: bytes, facts: FileFacts) -> Iterator[tuple[int, str, str, tuple[int, int]]]:
    """Of a function with comments, every second time one of them: in the others they stay to be read."""
    inside: dict[int, list[tuple[int, int]]] = defaultdict(list)
    functions = [
        (s.body_start, s.end, n) for n, s in enumerate(facts.symbols) if s.kind_group in ("function", "method")
    ]
    for start, end in _comment_blocks(text, facts):
        holders = [(low, number) for low, high, number in functions if low <= start < high]
        if holders:
            inside[max(holders)[1]].append((start, end))
    for number, blocks in inside.items():
        said = [(_prose(text[start:end]), (start, end)) for start, end in blocks]
        said = [(sentence, span) for sentence, span in said if sentence]
        if said and _pick(facts.symbols[number].qualified_name, 2) == 0:
            sentence, span = said[_pick(said[0][0], len(said))]
            yield number, "comment", sentence, span


def _messages(text: bytes, facts: FileFacts) -> Iterator[tuple[int, str, str, tuple[int, int]]]:
    found: dict[int, tuple[str, tuple[int, int]]] = {}
    for match in _MESSAGE.finditer(text):
        holders = [
            (s.start, n) for n, s in enumerate(facts.symbols)
            if s.kind_group in ("function", "method") and s.body_start <= match.start() < s.end and s.body_start >= 0
        ]  # fmt: skip
        said = re.sub(r"\$?\{[^}]*\}|%\(?\w*\)?[sdrf]", "", match[2].decode("utf-8", "replace")).replace("\\", " ")
        sentence, _ = sentence_of(said.strip())
        if holders and sentence:
            found.setdefault(max(holders)[1], (sentence, match.span(2)))
    for number, (sentence, span) in found.items():
        if _pick(facts.symbols[number].qualified_name, 3):
            yield number, "error", sentence, span


def _main_symbol(path: str, text: bytes, facts: FileFacts) -> tuple[int, str] | None:
    """What a file is for, and the one definition at its root that its name or that sentence speaks of most."""
    outer = {-1, *(n for n, s in enumerate(facts.symbols) if s.kind_group == "module")}
    roots = [
        (n, s) for n, s in enumerate(facts.symbols)
        if s.kind_group in _GROUPS and s.kind != "impl" and s.parent in outer
    ]  # fmt: skip
    if not roots:
        return None
    first = roots[0][1].start
    docs = [(a, b) for a, b, kind in _quiet(facts) if kind == 1 and b < first] or [
        (a, b) for a, b in _comment_blocks(text, facts) if b < first
    ]
    for start, end in docs[:3]:
        sentence = _prose(text[start:end].strip(b"rb\"'"))
        if sentence:
            said = {stem(word) for word in split_words(f"{sentence} {Path(path).stem}")}
            names = [(split_words(s.name), -n) for n, s in roots]
            score, number = max((len(said & set(map(stem, name))) / max(1, len(name)), n) for name, n in names)
            return (-number, sentence) if score >= 0.5 else None
    return None


def ask_by_tests(found: list[Definition], tests: Mapping[str, bytes], sources: Iterable[tuple[str, bytes]]) -> None:
    """The name of a test in words, about the definition that it calls and speaks of, or that few others call."""
    names = _by_name(found)
    calls: dict[str, set[str]] = {}
    for path, text in [*tests.items(), *((path, text) for path, text in sources if b"#[test]" in text)]:
        facts = extract_facts(text, LANGUAGES[Path(path).suffix])
        spans: list[tuple[int, int, str]] = []
        for symbol in facts.symbols:
            marked = symbol.name.startswith("test_") or not {"test", "tokio::test"}.isdisjoint(symbol.decorators)
            if marked and symbol.kind_group in ("function", "method"):
                words = [word for word in split_words(symbol.name) if word not in ("test", "tests")]
                spans.append((symbol.head, symbol.end, " ".join(words)))
        spans += [
            (call.start, call.end, call.args[0].text.strip("\"'`"))
            for call in facts.calls
            if call.name in ("it", "test") and call.args and call.args[0].kind == "string"
        ]
        for start, end, title in spans:
            if 3 <= len(title.split()) <= 20:
                calls[title] = {
                    c.name for c in facts.calls if start <= c.start < end and len(names.get(c.name, ())) == 1
                }
    often = Counter(name for called in calls.values() for name in called)
    for title in sorted(calls):
        if calls[title]:
            said = {stem(word) for word in split_words(title)}
            met = {name: len(said & {stem(word) for word in split_words(name)}) for name in calls[title]}
            name = min(calls[title], key=lambda name: (-met[name], often[name], name))
            if often[name] <= (12 if met[name] else 3):
                names[name][0].questions.append(("test", title))


def ask_by_pages(found: list[Definition], pages: Iterable[tuple[str, bytes]]) -> None:
    """Sentences of pages that name one definition of the package, without that name; and headings above them."""
    names = _by_name(found)
    for path, data in pages:
        style = "change" if re.search(r"(?i)change|history|news|release", path) else "page"
        text = re.sub(r"(?ms)^```.*?^```|^\s*\.\. [\w-]+::.*?$|<[^>]*>", "", data.decode("utf-8", "replace"))
        heading, fresh = "", False
        for block in re.split(r"\n\s*\n|\n(?=\s*[-*+] )", text):
            lines = block.strip().splitlines()
            if not lines:
                continue
            if lines[0].startswith("#") or (
                len(lines) == 2 and re.fullmatch(r"([=\-~^\"'*+#])\1{2,}", lines[1].strip())
            ):
                heading, fresh = lines[0].strip("# "), True
                continue
            for sentence in re.split(r"(?<=[.!?:])\s+(?=[A-Z`:])", re.sub(r"\s+", " ", block).lstrip("-*+ ")):
                named = {name for match in _NAMED.finditer(sentence) for name in [_last_name(match)] if name in names}
                if len(named) != 1:
                    continue
                (name,) = named
                if len(names[name]) != 1 or len(names[name][0].questions) > 6:
                    continue
                said = _NAMED.sub(
                    lambda match, own=name: re.sub(f"^{re.escape(own)}$", "", _last_name(match)), sentence
                )
                said, _ = sentence_of(re.sub(r"\(?(?:GH-?|#|bpo-)\d+\)?|\(\)|:\w+:", "", said).strip(" :-,"))
                if len(said.split()) >= 5 and _ENGLISH.search(said) and not _NO_PROSE.search(said):
                    names[name][0].questions.append((style, said))
                if fresh and style == "page" and len(heading.split()) >= 3 and sentence_of(heading)[0]:
                    names[name][0].questions.append((style, sentence_of(heading)[0]))
                fresh = False


def _last_name(match: re.Match[str]) -> str:
    text = (match[2] or match[1] or match[3] or "").strip().removesuffix("()")
    return re.split(r"[.:#/ ]+", text.partition("(")[0])[-1]


def _by_name(found: list[Definition]) -> dict[str, list[Definition]]:
    """Those that a name alone can mean: overloads are one, names of fewer than four letters mean anything."""
    names: dict[str, dict[tuple[str, str], Definition]] = defaultdict(dict)
    for definition in found:
        if len(definition.symbol.name) >= 4 and not definition.symbol.name.startswith("__"):
            names[definition.symbol.name].setdefault((definition.passage.path, definition.passage.name), definition)
    return {name: list(entries.values()) for name, entries in names.items()}


def _pick(key: str, count: int) -> int:
    return hashlib.sha1(key.encode()).digest()[0] % count


def sentence_of(doc: str) -> tuple[str, str]:
    """The first sentence, if it says something in words, and what follows it."""
    doc = re.split(r"\n\s*(?:@\w+|:param|Args:|Parameters\n|# Examples|```|>>>)", doc, maxsplit=1)[0].strip()
    if not doc or doc.startswith(("@", "#", "!", ".. ")):
        return "", ""
    first, *others = re.split(r"\n\s*\n", doc, maxsplit=1)
    first = re.sub(r"\s+", " ", first)
    first = re.sub(r"\{@\w+ ([^}|]*)[^}]*\}", r"\1", first)  # {@link Name}
    first = re.sub(r":\w+(?::\w+)*:`~?([^`<]*)[^`]*`", r"\1", first)  # :class:`~Name`
    first = re.sub(r"\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])?", r"\1", first)
    first = first.replace("`", "").replace("*", "").replace("<", " ").replace(">", " ")
    match = re.match(r"(.+?[.!?])(?=\s+[A-Z(]|$)", first)
    sentence = (match.group(1) if match else first).strip()
    rest = first[match.end() :] if match else ""
    words = sentence.split()
    letters = sum(char.isascii() and (char.isalpha() or char == " ") for char in sentence)
    if (
        not 3 <= len(words) <= 40
        or letters < 0.75 * len(sentence)
        or re.search(r"copyright|eslint|TODO|http", sentence)
    ):
        return "", ""
    return sentence, " ".join([rest, *others])
