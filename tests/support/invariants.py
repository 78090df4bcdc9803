"""What holds for the facts of every document in every language: `check_facts(text, facts)`.

Rules are numbered as in the list of global rules for chunks; rule 8 (the same text gives the same ids) is
checked by `check_document`, which extracts twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

from cq.identity import breadcrumb, identify
from cq.languages.facts import embedding_text, extract_facts
from cq.languages.registry import get_language
from cq.model.code import BaseForm, Defined, Lambda, ParameterOf, find_inner, find_outer
from cq.model.facts import FileFacts
from cq.model.source import Segment
from cq.syntax.chunks import full_source

MAX_EMBEDDING = 128_000


def check_document(text: bytes, language: str, segments: Sequence[Segment] = ()) -> FileFacts:
    """Extracts, checks everything, extracts again: total, true and the same twice."""
    facts = extract_facts(text, language, segments)
    check_facts(text, facts)
    assert extract_facts(text, language, segments) == facts, "a second extraction gives other facts"
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(facts), type=FileFacts) == facts
    assert msgspec.json.decode(msgspec.json.encode(facts), type=FileFacts) == facts
    return facts


def check_facts(text: bytes, facts: FileFacts) -> None:
    """`text` is UTF-8 and that of the whole file, also for an embedded document."""
    span = (facts.segment.start, facts.segment.end) if facts.segment else (0, len(text))
    _check_symbols(text, facts, span)
    _check_uses(text, facts, span)
    _check_code(facts)
    _check_references(text, facts, span)
    _check_chunks(text, facts, span)
    _check_collapse(text, facts)
    _check_imports_of_chunks(text, facts)
    if facts.segment is None:
        _check_names(text, facts)
    for inner in facts.embedded:
        check_facts(text, inner)


def _check_symbols(text: bytes, facts: FileFacts, span: tuple[int, int]) -> None:
    symbols = facts.symbols
    _check_spans(symbols, span)
    assert _is_sorted([(symbol.start, -symbol.end, symbol.name_start) for symbol in symbols])
    for index, symbol in enumerate(symbols):
        where = f"symbol {index} {symbol.qualified_name!r} {symbol.start}..{symbol.end}"
        assert symbol.kind_group != "other", f"{where}: kind {symbol.kind}"
        assert symbol.start <= symbol.head <= symbol.name_start <= symbol.name_end <= symbol.end, where
        # An element of a list goes by a name that does not stand in the text: its number. So does a lambda.
        assert symbol.name_start < symbol.name_end or symbol.kind in ("key", "lambda"), where
        if symbol.body_start >= 0:
            assert symbol.start <= symbol.body_start <= symbol.body_end <= symbol.end, where
        assert symbol.name, where
        assert "\n" not in symbol.signature, where
        assert re.fullmatch(r"(.*\.)?" + re.escape(symbol.name) + r"(~\d+)?", symbol.qualified_name, re.DOTALL), where
        assert -1 <= symbol.parent < index, where
        if symbol.parent >= 0:
            parent = symbols[symbol.parent]
            assert parent.start <= symbol.start, where
            assert symbol.end <= parent.end, where
            assert symbol.depth == parent.depth + 1, where
        else:
            assert symbol.depth == 0, where
        chunk = facts.chunks[symbol.chunk]
        assert chunk.start <= symbol.name_start, where
        assert symbol.name_end <= chunk.end or chunk.kind == "part", where


def _check_code(facts: FileFacts) -> None:
    """What code does, it does in a definition or at root level. Where the parser made up a name there is no value."""
    if facts.code is None:
        return
    code, known = facts.code, {-1} | {definition.symbol for definition in facts.code.definitions}
    assert {row.scope for row in (*code.definitions, *code.binds, *code.stores, *code.sites)} <= known
    assert {row[0] for row in (*code.raises, *code.runs)} <= known
    starts = {definition.start for definition in code.definitions}
    forms = find_outer(code)
    for value in forms:
        forms += [inner for inner in find_inner(value) if isinstance(inner, BaseForm)]
        assert "" not in find_inner(value)
        if isinstance(value, (Defined, Lambda, ParameterOf)):
            assert value.start in starts, f"a value of a definition that is not there: {value}"
    assert "" not in (*(bind.value for bind in code.binds), *(site.callee for site in code.sites))


def _check_uses(text: bytes, facts: FileFacts, span: tuple[int, int]) -> None:
    """Calls, imports, exports and flows."""
    for uses in (facts.calls, facts.imports, facts.exports, facts.flows):
        _check_spans(uses, span)
        assert _is_sorted([use.start for use in uses])
    assert _is_sorted([(call.start, call.end, call.name_start) for call in facts.calls])
    for use in (*facts.calls, *facts.imports, *facts.flows):
        assert -1 <= use.scope < len(facts.symbols), use
        if use.scope >= 0:
            scope = facts.symbols[use.scope]
            assert scope.start <= use.start < scope.end, use
    for call in facts.calls:
        if call.name_start >= 0:
            assert call.name, call
            assert text.startswith(call.name.encode(), call.name_start), call
            assert call.start <= call.name_start < call.end, call
        else:
            assert not call.name, call
        assert len(call.callee) <= 200, call
        assert len(call.args) <= 8, call
        uncounted = sum(argument.kind in ("block", "spread") for argument in call.args)
        assert len(call.args) <= call.arg_count + len(call.keywords) + uncounted, call
        for argument in call.args:
            assert len(argument.text) <= 80, argument
            assert 0 <= argument.depth <= 2, argument
    for item in facts.imports:
        for binding in item.bindings:
            assert item.start <= binding.start <= binding.end <= item.end, (item, binding)


def _check_references(text: bytes, facts: FileFacts, span: tuple[int, int]) -> None:
    at = span[0]
    starts: set[int] = set()
    for reference in facts.references:
        assert at <= reference.start < reference.end <= span[1], reference
        assert text[reference.start : reference.end] == reference.name.encode(), reference
        starts.add(reference.start)
        at = reference.end
    # An `impl T` is named by a use of T.
    defined = [symbol for symbol in facts.symbols if symbol.name_start in starts and symbol.kind != "impl"]
    assert not defined, f"the name of a definition is no reference: {defined[0]}"


def _check_chunks(text: bytes, facts: FileFacts, span: tuple[int, int]) -> None:
    chunks = facts.chunks
    module = chunks[0]
    assert (module.kind, module.symbol, module.parent, module.children, module.depth) == ("module", -1, -1, (), 0)
    assert (module.start, module.end) == span
    _check_spans(chunks, span)
    assert _is_sorted([(chunk.start, -chunk.end) for chunk in chunks[1:]])

    # 1: what lies in no root chunk is blank; 2: siblings do not overlap.
    roots = [chunk for chunk in chunks[1:] if chunk.parent < 0]
    at = span[0]
    for chunk in roots:
        assert at <= chunk.start, f"overlaps the one before: {chunk}"
        assert not text[at : chunk.start].strip(), f"not covered: {text[at : chunk.start]!r}"
        at = chunk.end
    assert not text[at : span[1]].strip(), f"not covered: {text[at : span[1]]!r}"

    for index, chunk in enumerate(chunks[1:], 1):
        # 3: exact source, never half a character.
        assert full_source(text, chunk).encode() == text[chunk.start : chunk.end], chunk
        # 4: the hierarchy, from both sides.
        if chunk.parent >= 0:
            parent = chunks[chunk.parent]
            assert index in parent.children, chunk
            assert parent.start <= chunk.start, chunk
            assert chunk.end <= parent.end, chunk
            assert chunk.depth == parent.depth + 1, chunk
        else:
            assert chunk.depth == 0, chunk
        for child in chunk.children:
            assert chunks[child].parent == index, chunk
        for left, right in pairwise(chunk.children):
            assert chunks[left].end <= chunks[right].start, f"children overlap: {chunks[left]} {chunks[right]}"
        assert chunk.name or not full_source(text, chunk).strip(), chunk
        assert chunk.start < chunk.end, chunk
        if chunk.symbol >= 0:
            assert facts.symbols[chunk.symbol].chunk == index, chunk
        # 7: the breadcrumb is the way down.
        above = breadcrumb("f", facts, chunk.parent) if chunk.parent >= 0 else "f"
        assert breadcrumb("f", facts, index) == f"{above} > {chunk.name}", chunk
        # 9: one statement, one chunk.
        assert chunk.kind != "import" or not chunk.children, chunk
    if not facts.problems:
        # Around a syntax error the parser may well make one statement of two.
        _check_isolation(facts)
    suffixes = [chunk.uid_suffix for chunk in chunks]
    assert len(set(suffixes)) == len(suffixes)
    assert all((chunk.collision_of == "") == (chunk.uid_suffix == chunk.span_hash) for chunk in chunks)


def _check_isolation(facts: FileFacts) -> None:
    """9: no two import statements share a root chunk of kind `import`."""
    boxes = [chunk for chunk in facts.chunks[1:] if chunk.kind == "import" and chunk.parent < 0]
    statements = sorted({(item.start, item.end) for item in facts.imports})
    at = 0
    for box in boxes:
        while at < len(statements) and statements[at][0] < box.start:
            at += 1
        inside = 0
        while at < len(statements) and statements[at][0] < box.end:
            inside += 1
            at += 1
        assert inside <= 1, f"{inside} import statements in one chunk: {box}"


def _check_collapse(text: bytes, facts: FileFacts) -> None:
    """5 and 6: small enough, children as signatures, their bodies gone."""
    language = get_language(facts.language)
    stub = language.stub if language else ""
    for index, chunk in enumerate(facts.chunks[1:], 1):
        collapsed = embedding_text(text, facts, index)
        assert len(collapsed) <= MAX_EMBEDDING, f"{len(collapsed)} characters: {chunk}"
        if not chunk.children:
            assert collapsed == full_source(text, chunk), chunk
            continue
        at, own, rest = chunk.start, [], collapsed
        for number in chunk.children:
            child = facts.chunks[number]
            before = text[at : child.start].decode()
            own.append(before)
            assert rest.startswith(before), chunk
            rest = rest[len(before) :]
            if child.symbol >= 0:
                symbol = facts.symbols[child.symbol]
                assert symbol.signature, f"a stub without a signature: {symbol}"
                assert rest.startswith(symbol.signature + stub), (symbol, rest[:200])
                own.append(symbol.signature)
                rest = rest[len(symbol.signature + stub) :]
            else:
                rest = rest[1:]
            at = child.end
        assert rest == text[at : chunk.end].decode(), chunk
        own.append(rest)
        for number in chunk.children:
            child = facts.chunks[number]
            if child.symbol < 0:
                continue
            symbol = facts.symbols[child.symbol]
            body = text[symbol.body_start : symbol.body_end].decode().strip("{} \t\r\n")
            # A short body (`pass`, `1`) may stand elsewhere too.
            if symbol.body_start >= 0 and len(body) > 40 and not any(body in piece for piece in own):
                assert body not in collapsed, symbol


_WORD = re.compile(r"[^\W\d]\w*")


def _check_imports_of_chunks(text: bytes, facts: FileFacts) -> None:
    """10: an import is relevant where one of its names stands."""
    for chunk in facts.chunks[1:]:
        if chunk.imports:
            assert chunk.kind not in ("import", "comment"), chunk
            assert _is_sorted(chunk.imports), chunk
            source = text[chunk.start : chunk.end].decode()
            words = set(_WORD.findall(source))
            for number in chunk.imports:
                names = [binding.local for binding in facts.imports[number].bindings]
                assert any(name in words or name in source for name in names), (chunk, facts.imports[number])


def _check_names(text: bytes, facts: FileFacts) -> None:
    """Every identity in the file is its own."""
    chunk_uids: list[str] = []
    symbol_ids: list[str] = []
    todo = [identify("some/file", text, facts)]
    while todo:
        identity = todo.pop()
        chunk_uids += identity.chunk_uids
        symbol_ids += identity.symbol_ids
        todo += identity.embedded
    assert len(set(chunk_uids)) == len(chunk_uids)
    assert len(set(symbol_ids)) == len(symbol_ids)


def _check_spans(items: Iterable[object], span: tuple[int, int]) -> None:
    for item in items:
        assert span[0] <= item.start <= item.end <= span[1], item  # pyright: ignore[reportAttributeAccessIssue]


def _is_sorted(values: Sequence[object]) -> bool:
    return all(left <= right for left, right in pairwise(values))  # pyright: ignore[reportOperatorIssue]
