"""From text to FileFacts: parse, collect, nest, attribute, chunk. Total: broken code gives fewer facts, no error."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, compress, groupby, islice, repeat
from operator import add, itemgetter, le, lt, sub
from typing import ParamSpec, TypeVar

from cq.language import describe
from cq.model.code import Site
from cq.model.edge import find_mistake
from cq.model.facts import KIND_GROUPS, Binding, Call, Export, FileFacts, Flow, Import, Quiet, References, Symbol
from cq.model.source import Problem, Segment
from cq.syntax.chunks import MAX_NEST, build_chunks
from cq.syntax.code import ANONYMOUS
from cq.syntax.collect import DEFINED, Collector, DraftScopes
from cq.syntax.language import AT_ROOT, IN_CLASS, ROLE_NUMBER, Draft, Language
from cq.syntax.table_code import build_table_code
from cq.syntax.tree import (
    Captures,
    Node,
    Tree,
    all_child_count_of,
    all_children_of,
    child_count_of,
    end_of,
    find_errors,
    has_error,
    is_missing,
    kind_of,
    root_of,
    start_of,
)

MAX_PROBLEMS = 20
MAX_TOKENS = 20_000  # loose tokens in one node: the query's cost is their square
MAX_DEPTH = 200  # symbols nested deeper than this stay with their ancestor
INTERNAL = "internal"  # the code of a problem that is a mistake of ours

is_strict = False  # whether such a mistake ends everything, as in the tests


def extract_facts(
    text: bytes,
    language: str,
    segments: Sequence[Segment] = (),
    *,
    find_language: Callable[[str], Language | None],
    segment: Segment | None = None,
) -> FileFacts:
    """What one document says about itself; `segments` are the documents embedded in it."""
    embedded = tuple(
        extract_facts(text, inner.language, inner.segments, find_language=find_language, segment=inner)
        for inner in segments
        if inner.ranges
    )
    spoken = find_language(language)
    tree = None
    if spoken is not None:
        tree = spoken.parse(text, segment.ranges if segment else ())
    span = (segment.start, segment.end) if segment else (0, len(text))
    if spoken is None or tree is None or _is_rubble(tree):
        problems = () if spoken is None else (Problem("parse", "too much of it could not be parsed", *span),)
        chunks = build_chunks(text, span, [], [], None, References())
        return FileFacts(language, chunks=chunks, problems=problems, segment=segment, embedded=embedded)

    steps = Steps(span)
    root = root_of(tree)
    collector = collect(text, spoken, tree, span, steps)
    steps.run("definitions", None, spoken.on_root, collector, root)
    steps.run("definitions", None, spoken.finish, collector)
    steps.run("documentation", None, _attach_leads, spoken, collector)
    if steps.run("definitions", _FAILED, _nest, spoken, collector) is _FAILED:
        collector.symbols = []
    elif steps.run("definitions", _FAILED, spoken.finish_nested, collector) is _FAILED:
        _nest(spoken, collector)  # what it changed in part is as it was before
    drafts = collector.symbols
    _confine(drafts, span)
    scopes = DraftScopes(drafts)
    references = steps.run("references", References(), _pack_references, spoken, collector)
    imports = steps.run("imports", (), _build_imports, collector, scopes)
    chunks = steps.run("chunks", (), build_chunks, text, span, drafts, imports, (spoken, root, collector), references)
    if not chunks:
        for draft in drafts:
            draft.chunk = 0
        chunks = build_chunks(text, span, [], [], None, References())
    if any(chunk.depth >= MAX_NEST for chunk in chunks):
        message = f"it nests more than {MAX_NEST} deep: what is deeper has no chunk of its own"
        collector.problems.append(Problem("depth", message, *span))
    steps.run("definitions", None, _number_alike, drafts)
    calls, sites = steps.run("calls", ([], []), _build_calls, collector, scopes, spoken.has_code)
    exports = steps.run("exports", (), _build_exports, collector)
    flows = steps.run("flows", (), _build_flows, collector, scopes)
    code = None
    if spoken.wants_code(collector):
        public = tuple(export.exported for export in exports) if collector.public else None
        parts = (spoken, text, root, drafts, scopes, tuple(sites), public)
        code = steps.run("what names refer to", None, collector.code.build, *parts)
    elif "candidates" in describe(language).offers:
        code = steps.run("what names refer to", None, build_table_code, language, drafts, calls, imports)
    return FileFacts(
        language,
        tuple(
            Symbol(
                d.kind,
                d.name,
                d.qualified_name,
                d.parent,
                d.depth,
                d.start,
                d.end,
                d.head,
                d.name_start,
                d.name_end,
                d.body_start,
                d.body_end,
                d.chunk,
                d.signature,
                d.modifiers,
                d.decorators,
                d.bases,
                d.doc,
                d.exported,
                d.ordinal,
            )
            for d in drafts
        ),
        tuple(calls),
        imports,
        exports,
        flows,
        references,
        chunks,
        (*steps.problems.values(), *_find_problems(collector, root)),
        segment,
        embedded,
        code,
    )


def _is_rubble(tree: Tree) -> bool:
    """Whether the tree is one heap of loose tokens, as for a megabyte of brackets."""
    root = root_of(tree)
    if not has_error(root):
        return False
    heaps = [root, *(child for child in all_children_of(root)[:100] if has_error(child))]
    return any(all_child_count_of(node) - child_count_of(node) > MAX_TOKENS for node in heaps)


_FAILED = object()
_Result = TypeVar("_Result")
_Parts = ParamSpec("_Parts")


class Steps:
    """Runs the steps of an extraction. One that fails for a mistake of ours costs what it would have found, and that is
    told; the others go on."""

    def __init__(self, span: tuple[int, int]) -> None:
        self._span = span
        self.problems: dict[str, Problem] = {}  # by what they say: the first of each

    def run(
        self,
        what: str,
        otherwise: _Result,
        step: Callable[_Parts, _Result],
        *args: _Parts.args,
        **options: _Parts.kwargs,
    ) -> _Result:
        """What the step finds; where it fails `otherwise`, and `what` is lacking."""
        try:
            return step(*args, **options)
        except Exception as error:  # noqa: BLE001  a mistake about odd code must not cost the rest of the file
            self.note(error, what, *self._span)
            return otherwise

    def note(self, error: Exception, what: str, start: int, end: int) -> None:
        if is_strict or isinstance(error, MemoryError):
            raise error
        made = find_mistake(error)
        message = f"a mistake of cq ({made.error} at {made.place}) cost some of its {what}"
        self.problems.setdefault(message, Problem(INTERNAL, message, start, end))


def collect(text: bytes, language: Language, tree: Tree, span: tuple[int, int], steps: Steps) -> Collector:
    """Runs the language's query once; simple matches first, so that comments are known when signatures are cut."""
    root = root_of(tree)
    collector = Collector(text, span, root)
    plan: list[tuple[str, str, list[Node], list[Captures]]]
    if language.flat:
        by_name, left_out = language.query.find_captures(root)
        plan = [(what, kind, by_name[capture], []) for what, kind, capture in language.plan if capture in by_name]
    else:
        found, left_out = language.query.find_matches(root)
        by_pattern: list[list[Captures]] = [[] for _ in language.plan]
        for pattern, captures in found:
            by_pattern[pattern].append(captures)
        plan = [
            (what, kind, [captures[capture][0] for captures in matches], matches)
            for (what, kind, capture), matches in zip(language.plan, by_pattern, strict=True)
            if matches
        ]
    if left_out:
        collector.problems.append(Problem("depth", f"{left_out}: some facts are left out", *span))
    for what, kind, nodes, _ in plan:
        # One pattern at a time, and the frequent ones in comprehensions: there are millions of matches.
        if what not in _SIMPLE:
            continue
        if what == "ref":
            starts = [start_of(node) for node in nodes]
            collector.ref_starts += starts
            collector.ref_ends += [end_of(node) for node in nodes]
            if kind:
                collector.marks.update(dict.fromkeys(starts, ROLE_NUMBER[kind]))
        elif what == "role":
            collector.marks.update(dict.fromkeys([start_of(node) for node in nodes], ROLE_NUMBER[kind]))
        elif what == "comment":
            # None lies in another, so that starts and ends can be sorted apart: numbers sort faster than pairs.
            starts, ends = sorted([start_of(node) for node in nodes]), sorted([end_of(node) for node in nodes])
            collector.comments += zip(starts, ends, strict=True)
        elif what == "attribute":
            collector.attributes += [(start_of(node), end_of(node)) for node in nodes]
        elif what == "span":
            role = ROLE_NUMBER[kind]
            collector.spans += [(start_of(node), end_of(node), role) for node in nodes]
        elif what == "token":
            collector.marks.update(dict.fromkeys([start_of(node) for node in nodes], DEFINED))
        else:
            _sort_nodes(nodes)
            hole = what == "hole"
            collector.opaque += [(start_of(node), -end_of(node), hole) for node in nodes]
    collector.comments.sort()
    collector.attributes.sort()
    for what, kind, nodes, matches in plan:
        if what in _SIMPLE:
            continue
        if language.flat:
            _sort_nodes(nodes)
            matches = repeat(_NONE)
        each = getattr(language, f"each_{what}", None)
        if each is not None:
            try:
                each(collector, kind, nodes)
            except Exception as error:  # noqa: BLE001  as in Steps.run, with a span
                steps.note(error, _FACTS.get(what, "facts"), start_of(nodes[0]), end_of(nodes[-1]))
            continue
        handler = getattr(language, f"on_{what}")
        for node, captures in zip(nodes, matches, strict=False):
            try:
                handler(collector, kind, node, captures)
            except Exception as error:  # noqa: BLE001  as above; where nothing fails it costs nothing
                steps.note(error, _FACTS.get(what, "facts"), start_of(node), end_of(node))
    return collector


_FACTS = {"symbol": "definitions", "call": "calls", "import": "imports", "export": "exports", "flow": "flows"}


def _sort_nodes(nodes: list[Node]) -> None:
    """In the order of the text, outer before inner; two sorts of numbers cost half of one of pairs."""
    nodes.sort(key=end_of, reverse=True)
    nodes.sort(key=start_of)


_NONE: Captures = {}
_SIMPLE = frozenset({"ref", "role", "comment", "attribute", "span", "opaque", "hole", "token"})


def _attach_leads(language: Language, collector: Collector) -> None:
    """A definition begins with the decorators and doc comments that stand directly before it."""
    if not (collector.attributes or (language.doc_prefixes and collector.comments)):
        for draft in collector.symbols:
            if draft.head < 0:
                draft.head = draft.start
        return
    leads = collector.find_leads()
    for draft in collector.symbols:
        if draft.head < 0:
            draft.head = draft.start
        if draft.kind in ("parameter", "type_parameter", ANONYMOUS):
            continue
        start = collector.lead_before(language, leads, draft.start)
        if start < draft.start:
            if not draft.doc:
                draft.doc = collector.doc_text(language, start, draft.start)
            if not draft.decorators:
                at = bisect_left(collector.attributes, (start, 0))
                found = []
                while at < len(collector.attributes) and collector.attributes[at][0] < draft.start:
                    found.append(collector.fold(*collector.attributes[at]).removeprefix("@"))
                    at += 1
                draft.decorators = tuple(found)
            draft.start = start


def _nest(language: Language, collector: Collector) -> None:
    """Sorts the drafts and gives each its parent, depth and qualified name, by span."""
    drafts: list[Draft] = []
    marks, once = collector.marks, language.once_kinds
    seen: set[tuple[int, str]] = set()  # (parent, name) of what a scope defines once, however often it is bound
    stack: list[tuple[int, int]] = []  # (end, index) of the open definitions that can hold others
    collector.symbols.sort(key=_draft_order)
    for draft in collector.symbols:
        start, name, kind = draft.start, draft.name, draft.kind
        if draft.name_start >= draft.name_end and kind not in ("key", ANONYMOUS):
            continue  # a name that the parser made up
        while stack and stack[-1][0] <= start:
            stack.pop()
        parent = stack[-1][1] if stack else -1
        if draft.owner != -1:
            parent = -1 if draft.owner == AT_ROOT else _find_owner(language, drafts, stack, draft.owner)
            if parent < 0 and draft.owner == IN_CLASS:
                continue
        elif parent >= 0:
            # A sibling with the same span (`const {a, b} = …`) is no child.
            while parent >= 0 and drafts[parent].end < draft.end:
                parent = drafts[parent].parent
        if once:
            if kind in once and (parent, name) in seen:
                continue
            seen.add((parent, name))
        draft.parent = parent
        if parent >= 0:
            holder = drafts[parent]
            draft.depth = holder.depth + 1
            draft.qualified_name = f"{holder.qualified_name}.{name}"
            if kind == "function" and holder.kind in language.method_owners:
                draft.kind = "constructor" if name in language.constructor_names else "method"
        else:
            draft.qualified_name = name
        if draft.body_start >= 0 and draft.depth < MAX_DEPTH:
            stack.append((draft.end, len(drafts)))
        if kind != ANONYMOUS:
            marks[draft.name_start] = DEFINED
        drafts.append(draft)
    collector.symbols = drafts


def _confine(drafts: list[Draft], span: tuple[int, int]) -> None:
    """Whatever a language made of odd code: spans lie in the document, and definitions in their parents."""
    first, last = span
    for number, d in enumerate(drafts):
        if not (first <= d.start <= d.head <= d.name_start <= d.name_end <= d.end <= last):
            d.start = min(max(d.start, first), last)
            d.end = min(max(d.end, d.start), last)
            d.head = min(max(d.head, d.start), d.end)
            d.name_start = min(max(d.name_start, d.head), d.end)
            d.name_end = min(max(d.name_end, d.name_start), d.end)
        if d.body_start >= 0 and not (d.start <= d.body_start <= d.body_end <= d.end):
            d.body_start = min(max(d.body_start, d.start), d.end)
            d.body_end = min(max(d.body_end, d.body_start), d.end)
        parent = d.parent
        if parent < 0:
            continue
        while parent >= 0 and (parent >= number or d.start < drafts[parent].start or drafts[parent].end < d.end):
            parent = drafts[parent].parent
        depth = drafts[parent].depth + 1 if parent >= 0 else 0
        if (parent, depth) != (d.parent, d.depth):
            d.parent, d.depth = parent, depth
            d.qualified_name = f"{drafts[parent].qualified_name}.{d.name}" if parent >= 0 else d.name


def _draft_order(draft: Draft) -> tuple[int, int, int]:
    return draft.start, -draft.end, draft.name_start


def _find_owner(language: Language, drafts: list[Draft], stack: list[tuple[int, int]], owner: int) -> int:
    """The open definition that begins at `owner`; for IN_CLASS the class around the innermost function, else -1."""
    inside = False
    for _, index in reversed(stack):
        draft = drafts[index]
        if owner == IN_CLASS:
            if draft.kind in language.method_owners:
                return index if inside else -1
            inside = True
        elif owner in (draft.start, draft.head):
            return index
    return -1


def _build_calls(collector: Collector, scopes: DraftScopes, has_code: bool) -> tuple[list[Call], list[Site]]:
    """Calls in the order of the text, and their sites where the language gives them any."""
    first, last = collector.span
    loose = [call for call in collector.calls if first <= call[0] <= call[1] <= last]
    loose.sort(key=itemgetter(0, 1, 2))
    owners = scopes.find([call[0] for call in loose])
    calls: list[Call] = []
    sites: list[Site] = []
    for (
        (start, end, name_start, kind, callee, name, receiver, args, count, keywords, target, values, named), scope
    ) in zip(loose, owners, strict=True):  # fmt: skip
        if kind == "call" and start in collector.decorator_calls:
            kind = "decorator"
        calls.append(Call(kind, callee, name, receiver, start, end, name_start, scope, args, count, keywords))
        if has_code:
            # The parser makes up a callee that is not written yet: nothing is known of it.
            sites.append(Site(scope, start, end, target or None, values, named, kind, name))
    return calls, sites


def _build_imports(collector: Collector, scopes: DraftScopes) -> tuple[Import, ...]:
    first, last = collector.span
    imports = [item for item in collector.imports if first <= item[0] <= item[3] <= last]
    imports.sort(key=lambda item: (item[0], item[3], item[2]))
    owners = scopes.find([item[0] for item in imports])
    return tuple(
        Import(kind, module, start, end, scope, tuple(Binding(*b) for b in bindings), level, type_only)
        for (start, kind, module, end, bindings, level, type_only), scope in zip(imports, owners, strict=True)
    )


def _build_exports(collector: Collector) -> tuple[Export, ...]:
    return tuple(
        Export(name, exported, start, end, module, type_only)
        for start, name, exported, end, module, type_only in sorted(set(collector.exports))
        if collector.span[0] <= start <= end <= collector.span[1]
    )


def _build_flows(collector: Collector, scopes: DraftScopes) -> tuple[Flow, ...]:
    first, last = collector.span
    flows = sorted(flow for flow in collector.flows if first <= flow[0] <= flow[1] <= last)
    owners = scopes.find([flow[0] for flow in flows])
    return tuple(
        Flow(kind, target, value, value_kind, start, end, value_start, scope)
        for (start, end, kind, target, value, value_kind, value_start), scope in zip(flows, owners, strict=True)
    )


def _pack_references(language: Language, collector: Collector) -> References:
    """Whole columns at a time: this runs once for every identifier of a repository."""
    text, marks = collector.text, collector.marks
    if language.keywords:
        starts, numbers, names = _find_words(language, collector)
    else:
        starts, words = _find_names(language, collector)
        names = list(dict.fromkeys(words))
        numbers = list(map({name: number for number, name in enumerate(names)}.__getitem__, words))
    quiet = _pack_quiet(collector) if language.keywords else None
    if not starts:
        return References(quiet=quiet)
    for start, end, role in _find_outer(collector.spans):
        for offset in starts[bisect_left(starts, start) : bisect_left(starts, end)]:
            marks.setdefault(offset, role)
    if language.dot_attributes:
        plain = bytes(map((text[-1:] + text).__getitem__, starts)).translate(_AFTER_DOT)
    else:
        plain = bytes(len(starts))
    roles = bytes(map(marks.get, starts, plain))
    if DEFINED in roles:
        kept = roles.translate(_NOT_DEFINED)
        starts, numbers = list(compress(starts, kept)), list(compress(numbers, kept))
        roles = roles.replace(bytes((DEFINED,)), b"")
    if not language.keywords and not language.flat:
        # Of names inside names, as in PHP's `$ f()`, the inner one is meant.
        lengths = list(map(len, names))
        ends = map(add, starts, map(lengths.__getitem__, numbers))
        kept = list(map(le, ends, [*starts[1:], len(text)]))
        starts, numbers = list(compress(starts, kept)), list(compress(numbers, kept))
        roles = bytes(compress(roles, kept))
    order = {number: place for place, number in enumerate(dict.fromkeys(numbers))}
    return References(
        tuple(names[number].decode("utf-8", "replace") for number in order),
        array("I", starts).tobytes(),
        array("I", map(order.__getitem__, numbers)).tobytes(),
        roles,
        quiet,
    )


def _find_outer(spans: list[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    """In their order those that do not lie in one of the same role; only those that stand together are compared."""
    for _, alike in groupby(spans, key=itemgetter(2)):
        last = -1
        for span in sorted(alike, key=lambda span: (span[0], -span[1])):
            if span[1] > last:
                last = span[1]
                yield span


def _find_names(language: Language, collector: Collector) -> tuple[list[int], list[bytes]]:
    """The captured identifiers. Where the parser made up a name that is missing, there is nothing to refer to."""
    text = collector.text
    if language.flat:
        # Leaves of the tree, which do not overlap: their starts and their ends can be sorted apart.
        starts, ends = sorted(collector.ref_starts), sorted(collector.ref_ends)
    else:
        found = sorted(dict(zip(collector.ref_starts, collector.ref_ends, strict=True)).items())
        starts, ends = [start for start, _ in found], [end for _, end in found]
    words = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    if all(words):
        return starts, words
    return list(compress(starts, words)), list(filter(None, words))


def _pack_quiet(collector: Collector) -> Quiet:
    """Strings and comments without the code inside them; the spans are sorted, outer before inner."""
    comments, docs = {start for start, _ in collector.comments}, collector.docs
    starts, ends = [span[0] for span in collector.opaque], [-span[1] for span in collector.opaque]
    if all(map(lt, starts, ends)) and all(map(le, ends, starts[1:])):
        # None holds another, as in nearly every document: they are the stretches.
        kinds = bytearray(0 if start in comments else 2 for start in starts)
        for first, last in docs:
            for at in range(bisect_left(starts, first), bisect_right(ends, last)):
                kinds[at] = min(kinds[at], 1)
        return Quiet(array("I", starts).tobytes(), array("I", ends).tobytes(), bytes(kinds))
    pieces: list[tuple[int, int, int]] = []
    stack: list[tuple[int, int, int]] = []  # start of what is left of it, end, kind; -1 is code
    for start, minus_end, hole in collector.opaque:
        kind = -1 if hole else 0 if start in comments else 2
        while stack and stack[-1][1] <= start:
            pieces.append(stack.pop())
        if stack:
            left, end, outer = stack[-1]
            pieces.append((left, start, outer))
            stack[-1] = (max(-minus_end, left), end, outer)
        stack.append((start, -minus_end, kind))
    pieces += reversed(stack)
    if docs:
        docs.sort()
        firsts = [start for start, _ in docs]
        for number, (start, end, kind) in enumerate(pieces):
            at = bisect_right(firsts, start) - 1
            if kind == 2 and at >= 0 and end <= docs[at][1]:
                pieces[number] = (start, end, 1)
    kept = [piece for piece in pieces if piece[2] >= 0 and piece[1] > piece[0]]
    starts, ends, kinds = zip(*kept, strict=True) if kept else ((), (), ())
    return Quiet(array("I", starts).tobytes(), array("I", ends).tobytes(), bytes(kinds))


def _find_words(language: Language, collector: Collector) -> tuple[list[int], list[int], list[bytes]]:
    """Every word of the code by offset and number, strings and comments painted over, keywords and numerals left out;
    and the words by number."""
    text, base = collector.paint(), collector.span[0]
    # Words and the gaps between them as two splits: their lengths give the offsets without an object per match.
    table, inverse = language.word_tables
    words, gaps = text.translate(table).split(), text.translate(inverse).split()
    if not words:
        return [], [], []
    names = [b"", *dict.fromkeys(words)]
    known = {word: number for number, word in enumerate(names)}
    for word in known.keys() & language.keywords:
        known[word] = 0
    for word in [word for word in names if b"0" <= word < b":"]:
        known[word] = 0
    numbers = list(map(known.__getitem__, words))
    lengths = list(map(len, words))
    gap_lengths = list(map(len, gaps))
    if table[text[0]] != _SPACE:
        gap_lengths.insert(0, 0)
    ends = accumulate(map(add, gap_lengths, lengths), initial=base)
    next(ends)
    # What is left out has the number 0.
    starts = list(map(sub, compress(ends, numbers), compress(lengths, numbers)))
    return starts, list(filter(None, numbers)), names


_SPACE = ord(" ")
_AFTER_DOT = bytes(ROLE_NUMBER["attribute"] if byte == ord(".") else 0 for byte in range(256))
_NOT_DEFINED = bytes(byte != DEFINED for byte in range(256))


def _find_problems(collector: Collector, root: Node) -> tuple[Problem, ...]:
    """Syntax errors with their spans; the first few, since one slip can make a thousand."""
    problems = collector.problems
    for node in islice(find_errors(root), max(0, MAX_PROBLEMS - len(problems))):
        message = f"missing {kind_of(node)}" if is_missing(node) else "could not be parsed"
        problems.append(Problem("syntax", message, start_of(node), end_of(node)))
    return tuple(problems)


def _number_alike(drafts: list[Draft]) -> None:
    """Symbols without a chunk of their own that bear the same name are told apart by their order."""
    seen: dict[tuple[int, str, str], int] = {}
    for draft in drafts:
        key = (draft.chunk, draft.qualified_name, KIND_GROUPS.get(draft.kind, "other"))
        draft.ordinal = seen[key] = seen.get(key, 0) + 1
