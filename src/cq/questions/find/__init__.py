"""Code about an idea, or one symbol: ranked, connected, and shown as snapshots of its files within a budget.

`symbol = A > b` is looked up (`lookup`) and answered in the same shape. Everything else ranks chunks: `candidates` by
words (the table `words`, one field at a time, so that a word's worth is known and filters hold before any cut),
`semantic` by vectors, `evidence` by what speaks for a file as a whole (its name, what it defines, how much of the
question it covers), `scoring` makes one score of them. Of the best, `embed/late` compares words one by one,
`embed/traits` says what they are whatever they say, `embed/rerank` reads them with the question; `embed/blend` joins
all that. `indexing/embedding` makes vectors, keyed by what the embedder reads, which is why only changed chunks are
read again; they lie beside the files of a tree and are found only while file and embedder are those they were made of.
`structure` and `connect` say what the links know of the results; `snapshot` shows a file's share of them from the spans
of its facts (it parses only where something stands in a block), and checks by a parse of the outcome. `layout` turns
the graph into text, in the feature because the budget counts its tokens. What is loaded for one question (catalog,
matrices) is kept for the next of the same process, by the state of the tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, TypeVar

import msgspec
from msgspec import Meta

from cq.answers.options import Languages, Option, Options, split
from cq.answers.page import estimate
from cq.embed import find_blends
from cq.model.answer import SCHEMA_VERSION, Run, Truncation
from cq.model.config import FindConfig
from cq.model.errors import ProviderError, StoreError, UsageError, suggest
from cq.model.facts import CHUNK_KINDS, KIND_GROUPS
from cq.model.find import FindAnswer, Node, Result, ScoreParts
from cq.model.find import Snapshot as FileSnapshot
from cq.model.status import Degraded
from cq.questions.find.candidates import Catalog, find_lexical, is_identifier, load_catalog
from cq.questions.find.connect import connect
from cq.questions.find.disk import find_on_disk
from cq.questions.find.evidence import weigh_files
from cq.questions.find.layout import count_all, render_snapshot
from cq.questions.find.lookup import look_up, parse_lookup
from cq.questions.find.scoring import FEW, LEAST, LEAST_CHANCE, TWIN, Ranked, best_by_words, blend, is_elsewhere
from cq.questions.find.semantic import Semantic, find_backend, find_weights, rerank, search_vectors
from cq.questions.find.snapshot import take_snapshot
from cq.questions.find.structure import Structure
from cq.questions.find.words import is_common
from cq.snapshot.target import Definition

if TYPE_CHECKING:
    from cq.indexing.index import Index
    from cq.model.facts import Chunk
    from cq.snapshot.files import HeldFile
    from cq.snapshot.relations import Relations
    from cq.snapshot.snapshot import Snapshot
    from cq.store.read import Reader, Tree

_T = TypeVar("_T")
MODES = ("auto", "lexical", "semantic", "hybrid")
KINDS = tuple(dict.fromkeys((*KIND_GROUPS.values(), *CHUNK_KINDS)))
ELSEWHERE = "elsewhere"  # the event of a question that is about something else
SOON_BYTES = 3_000_000  # a tree up to this size is indexed before a first question is answered
# A definition longer than this share of the budget is shown by the headers of what it holds, or by its first lines:
# the best result, and any other.
COLLAPSE, COLLAPSE_OTHER = 0.5, 0.1
# How many results are shown with their code, and how near to the best the score of any more of them must be.
WITH_CODE, NEAR = 3, 0.75


def _read_weights(text: str) -> tuple[float, float]:
    try:
        first, second = (float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"--weights: {text!r} is not two numbers", hint="e.g. 0.65,0.35") from None
    if min(first, second) < 0 or first + second <= 0:
        raise UsageError(f"--weights: {text!r} weighs nothing", hint="e.g. 0.65,0.35")
    return first, second


class FindOptions(Options, frozen=True):
    """A question in full. What is None is as configured; a `limit` or `budget` of 0 is none."""

    examples: ClassVar[str] = """\
  cq find 'how are passwords hashed'                 code about an idea
  cq find 'retry a request' --path 'src/' --lang py  only there
  cq find 'symbol = QuerySet > get_or_create'        one symbol, as exactly named
  cq find 'parse the header' --explain --limit 5     with what scores are made of"""
    least_tokens: ClassVar[int] = 3000

    query: Annotated[
        str,
        Option(
            "a question in words, a name, or `symbol = [path >] [Parent >] name`", metavar="WORDS", argument=True,
            joined=True,
        ),
    ]  # fmt: skip
    paths: Annotated[
        tuple[str, ...], Option("only these files or folders, as in .gitignore", "path", "GLOB", group="files")
    ] = ()
    languages: Languages = ()
    kinds: Annotated[
        tuple[str, ...], Option("only these: function, class, method, type, …", "kind", "KIND,…", parse=split)
    ] = ()
    limit: Annotated[int, Meta(ge=1), Option("results at most (default: 10)", metavar="N", group="answer")] = 10
    budget: Annotated[
        int | None,
        Meta(ge=1),
        Option("how long the answer may be (default: 8000)", metavar="TOKENS", group="answer"),
    ] = None
    threshold: Annotated[
        float | None,
        Meta(ge=0, le=1),
        Option("least score, 0 to 1 (default: 0.005 with vectors, else 0.5)", metavar="SCORE"),
    ] = None
    candidates: Annotated[int | None, Meta(ge=1), Option("how many are ranked (default: 40)", metavar="N")] = None
    weights: Annotated[
        tuple[float, float] | None,
        Option("of the reranker and of the first stage", metavar="R,V", parse=_read_weights),
    ] = None
    call_depth: Annotated[int | None, Option("steps of the call trees; -1: all (default: 1)", metavar="N")] = None
    type_depth: Annotated[int | None, Option("steps from types to their types (default: 1)", metavar="N")] = None
    mode: Annotated[str, Option("auto (default): names by words, else both", choices=MODES)] = "auto"
    background: bool = False  # vectors that are missing, and a first index that takes long, are made by another process
    everything: Annotated[bool, Option("everything that is relevant, however long", "all", group="answer")] = False

    def settle(self, config: FindConfig) -> FindOptions:
        """With everything that was left to the configuration; UsageError for what cannot be."""
        settled = msgspec.structs.replace(
            self,
            limit=0 if self.everything else self.limit,
            budget=0 if self.everything else _or(self.budget, config.max_token_budget),
            threshold=self.threshold if self.threshold is not None else config.minimum_relevance_threshold,
            candidates=_or(self.candidates, config.max_vector_candidates),
            call_depth=_or(self.call_depth, config.call_depth),
            type_depth=_or(self.type_depth, config.type_depth),
        )
        settled._check(config)
        return settled

    def _check(self, config: FindConfig) -> None:
        if not self.query.strip():
            raise UsageError("there is nothing to find", hint="give words, or `symbol = Parent > name`")
        bounds = {
            "threshold": (self.threshold, 0, 1), "candidates": (self.candidates, 1, 1000),
            "limit": (self.limit, 0, 1000), "budget": (self.budget, 0, 1_000_000),
            "call-depth": (self.call_depth, -1, 25),
            "type-depth": (self.type_depth, 0, 10),
        }  # fmt: skip
        for name, (value, least, most) in bounds.items():
            if value is not None and not least <= value <= most:
                raise UsageError(f"--{name} {value:g} is out of range", hint=f"it is {least} to {most}")
        for kind in self.kinds:
            if kind not in KINDS:
                hint = suggest(kind, KINDS, f"kinds: {', '.join(KINDS)}")
                raise UsageError(f"there are no chunks of kind {kind!r}", hint=hint)
        wanted = {"lexical_only": ("semantic", "hybrid"), "vector_only": ("lexical", "hybrid")}.get(config.profile, ())
        if self.mode in wanted:
            hint = f"the profile of [find] in cq.toml is {config.profile!r}; set it to 'default' to have both"
            raise UsageError(f"--mode {self.mode} is not in this profile", hint=hint)


class Found(msgspec.Struct, frozen=True):
    """A chunk that was ranked or looked up; `row` is its definition where it is one."""

    file: HeldFile
    document: int
    chunk: Chunk
    number: int  # of the chunk in its document
    row: Definition | None
    score: float
    parts: ScoreParts

    @property
    def span(self) -> tuple[int, int]:
        symbol = self.row.symbol if self.row is not None else None
        return (symbol.start, symbol.end) if symbol and symbol.parent >= 0 else (self.chunk.start, self.chunk.end)


def begin(index: Index, options: FindOptions) -> FindAnswer | None:
    """Checks the options. Where a first index would take long it is begun by a process of its own, and the answer comes
    from the disk; None where it is soon done."""
    config = index.config().find
    options.settle(config)
    by_words = options.mode != "semantic" and config.profile != "vector_only" and parse_lookup(options.query) is None
    if not options.background or not index.policy.auto_refresh or not by_words or index.has_tree():
        return None
    from cq.indexing.embedding import start_index
    from cq.snapshot.files import open_disk

    files = open_disk(index.root, index.settings, index.policy.disk_seconds)
    if index.place.temporary or files.count_bytes() < SOON_BYTES:
        return None
    why = start_index(index.place.file, index.root, index.policy.index_dir)
    note = why or "the index is being made in the background; ask again for all of it"
    return find_without_index(files.candidates(None), options, config, note)


def ask(snapshot: Snapshot, options: FindOptions) -> FindAnswer:
    from cq.indexing.embedding import count_sent
    from cq.indexing.vectors import enqueue_missing, find_semantic

    config, index = snapshot.config.find, snapshot.index
    options.settle(config)
    reader, tree, background = snapshot.reader, snapshot.tree, options.background
    if wants_vectors(options):
        semantic = find_semantic(index, reader, tree, background=background)
    else:
        semantic = Semantic(key=snapshot.state, kept=index.kept)
    with count_sent(index.place.file, semantic.embedder, semantic.reranker) as sent:
        answer = find(snapshot.relations, reader, tree, options, config, semantic)
    if sent:
        answer = note_sent(answer, sent)
    if background and answer.summary.get("backend", semantic.backend) != semantic.backend:
        enqueue_missing(index, tree)  # which makes its graphs as well
    return answer


def wants_vectors(options: FindOptions) -> bool:
    """Unless words alone are asked, or a name is looked up."""
    return options.mode != "lexical" and parse_lookup(options.query) is None


def find(
    relations: Relations, reader: Reader, tree: Tree, options: FindOptions, config: FindConfig, semantic: Semantic
) -> FindAnswer:
    """Best first. What scores below the threshold is not shown; what the budget leaves out is counted."""
    options = options.settle(config)
    parts = parse_lookup(options.query)
    if parts is not None:
        return _find_symbol(relations, options, parts)
    catalog = load_catalog(reader, tree, semantic)
    ranked, events = rank(reader, catalog, options, config, semantic)
    threshold = _or(options.threshold, LEAST_CHANCE if any(row.is_chance for row in ranked) else LEAST)
    passed = [row for row in ranked if row.score >= threshold]
    is_gated = options.threshold is None and any(event.category == ELSEWHERE for event in events)
    if is_gated:
        passed = []
    else:
        events = [event for event in events if event.category != ELSEWHERE]
    if passed and len(ranked) < FEW and options.threshold is None and options.weights is None:
        # Stretched over a handful, small differences decide: what is as like the question as the best passes with it.
        passed = [row for row in ranked if row.score >= threshold or sum(row.own) >= TWIN * sum(passed[0].own)]
    rows: list[Found] = []
    files: dict[str, HeldFile | None] = {}
    wanted = options.limit or len(passed)
    for item in passed[:wanted]:
        path, number = catalog.locate(item.chunk)
        if path not in files:
            files[path] = relations.files.get(path)
        held = files[path]
        if held is not None:
            rows.append(_locate(held, number, item))
    summary = {
        "query": options.query,
        "mode": _mode(ranked),
        "candidates": len(ranked),
        "passed": len(passed),
    }
    if semantic.note:
        summary["semantic"] = semantic.note
    if any(row.parts.body or row.parts.signature for row in ranked):
        summary["backend"] = find_backend(reader, catalog, semantic)
        if summary["backend"] != semantic.backend:
            message = f"{semantic.backend} has no graph of these vectors yet (`cq index --embed` makes it): one by one"
            events.append(Degraded("semantic", "info", "backend", message))
    cut: list[Truncation] = []
    if len(passed) > wanted:
        cut.append(Truncation("answer", "limit", wanted, len(passed), len(passed) - wanted))
    if not ranked and (why := _find_closed(catalog, options)):
        events.append(Degraded("find", "info", "filters", why))
    if is_common(options.query):
        message = "all of these words stand everywhere in code: better are words of what it is about"
        events.append(Degraded("find", "info", "words", message))
    elif passed and options.mode != "semantic" and reader.has_words() and not any(row.own[0] for row in ranked):
        message = "none of these words is in the code that was looked at: what is shown is only alike"
        events.append(Degraded("find", "info", "words", message))
    if not passed and ranked and not is_gated:
        best = f"the best of {len(ranked)} candidates has {ranked[0].score:.2f}"
        message = f"nothing is relevant enough: {best}, the threshold is {threshold:g} (lower it with --threshold)"
        events.append(Degraded("find", "info", "threshold", message))
    structure = Structure(relations, options.call_depth or 0, options.type_depth or 0)
    least = threshold + NEAR * (rows[0].score - threshold) if rows and not options.everything else 0.0
    return _assemble(structure, options, rows, summary, events, cut, tree.generation, least)


def _find_closed(catalog: Catalog, options: FindOptions) -> str:
    """Which of the filters leaves nothing over, "" where it is none of them."""
    given = {"--path": options.paths, "--lang": options.languages, "--kind": options.kinds}
    for number, (name, values) in enumerate(given.items()):
        only = [found if at == number else () for at, found in enumerate(given.values())]
        if values and not catalog.allow(*only).any():
            return f"nothing passes {name} {','.join(values)}"
    every = " ".join(f"{name} {','.join(values)}" for name, values in given.items() if values)
    return f"nothing passes {every} together" if every and not catalog.allow(*given.values()).any() else ""


def note_sent(answer: FindAnswer, sent: dict[str, int]) -> FindAnswer:
    """With the tokens that services have counted for it, by model."""
    shown = ", ".join(f"{tokens:,} by {name}" for name, tokens in sent.items())
    event = Degraded("semantic", "info", "tokens", f"tokens counted for this question: {shown}")
    summary = answer.summary | {"sent_tokens": sum(sent.values())}
    return msgspec.structs.replace(answer, summary=summary, degraded=(*answer.degraded, event))


def find_without_index(files: Iterable[HeldFile], options: FindOptions, config: FindConfig, note: str) -> FindAnswer:
    """From the files that hold the words, read and parsed now; nothing is known of links. `note` says what goes on."""
    options = options.settle(config)
    found = find_on_disk(files, options)
    passed = [row for row in found if row[3] >= _or(options.threshold, LEAST)]
    rows = [
        Found(file, document, chunk, number, row, score, ScoreParts(round(score, 4)))
        for file, document, number, score in passed[: options.limit or len(passed)]
        for chunk in [file.chunks[document][number]]
        for row in [Definition(file, document, chunk.symbol) if chunk.symbol >= 0 else None]
    ]
    summary: dict[str, str | int] = {
        "query": options.query, "mode": "disk", "candidates": len(found), "passed": len(passed), "semantic": note,
    }  # fmt: skip
    message = f"a first answer from files that hold the words, without links: {note}"
    events = [Degraded("find", "warning", "partial", message)]
    return _assemble(Structure(None, 1, 0), options, rows, summary, events, [], 0)


def rank(
    reader: Reader, catalog: Catalog, options: FindOptions, config: FindConfig, semantic: Semantic
) -> tuple[list[Ranked], list[Degraded]]:
    """The candidates, best first, at most `options.candidates`, with their scores of 0 to 1."""
    import numpy as np

    allowed = catalog.allow(options.paths, options.languages, options.kinds)
    events: list[Degraded] = []
    wants_vectors = options.mode in ("semantic", "hybrid")
    if options.mode == "auto":
        wants_vectors = config.profile == "vector_only" or not is_identifier(options.query)
    wants_vectors = wants_vectors and config.profile != "lexical_only"
    lexical = evidence = None
    if options.mode != "semantic" and config.profile != "vector_only":
        if not reader.has_words():
            hint = "`cq index` makes one for the profile that is set now, or ask with --mode semantic"
            raise UsageError("the index was made in the profile 'vector_only': it has no words", hint=hint)
        lexical = find_lexical(reader, catalog, options.query, allowed)
        evidence = weigh_files(reader, catalog, options.query, lexical, allowed)
    count = options.candidates or 40
    vectors, note = None, semantic.note or "there are no vectors"
    severity = "warning" if options.mode in ("semantic", "hybrid") else "info"
    if wants_vectors:
        also = None
        if lexical is not None and evidence is not None:
            words = lexical.chunks[best_by_words(lexical, catalog.weigh(options.query), count)]
            also = np.union1d(words, evidence.best)
        try:
            vectors = search_vectors(reader, catalog, options, semantic, allowed, also)
        except ProviderError as error:  # a hosted model that does not answer leaves the words
            if lexical is None:
                raise
            note, severity = f"words alone: {error}", "warning"
        if vectors is None and lexical is None and semantic.note:
            hint = "ask again when they are; `cq index --embed` makes them now"
            raise StoreError(f"there are no vectors to ask yet, and words are not asked here: {note}", hint=hint)
        if vectors is None:
            events.append(Degraded("semantic", severity, "vectors", note))
    if options.weights and (vectors is None or semantic.reranker is None):
        message = "there is no reranker for this question: --weights changes nothing"
        events.append(Degraded("rerank", "warning", "weights", message))
    if vectors is None or semantic.embedder is None or not len(vectors.chunks):
        return blend(reader, catalog, options.query, lexical, None, evidence, count), events
    blends = None
    is_known = find_blends(semantic.embedder, semantic.reranker) is not None
    if lexical is not None and is_known and is_elsewhere(lexical, vectors):
        words = ", ".join(map(repr, lexical.absent[:6]))
        message = f"no code here mentions {words}, and none is like the question (--threshold 0 shows what is nearest)"
        events.append(Degraded("find", "info", ELSEWHERE, message))
    if len(vectors.chunks) >= FEW and is_fitted(options, config, semantic):
        blends = find_blends(semantic.embedder, semantic.reranker)
        if lexical is None and blends:
            blends = blends.without_words()
    ranked = blend(reader, catalog, options.query, lexical, vectors, evidence, count, blends and blends.first)
    try:
        ranked = rerank(reader, catalog, options, config, semantic, ranked, blends)
    except ProviderError as error:
        events.append(Degraded("rerank", "warning", "reranker", f"not reranked: {error}"))
    return ranked, events


def is_fitted(options: FindOptions, config: FindConfig, semantic: Semantic) -> bool:
    """Whether scores with vectors are chances: those were fitted for our own models, at their own weights."""
    if semantic.embedder is None or find_weights(options, config, semantic) is not None:
        return False
    return find_blends(semantic.embedder, semantic.reranker) is not None


def _mode(ranked: Sequence[Ranked]) -> str:
    if any(row.parts.rerank for row in ranked):
        return "reranked"
    return "hybrid" if any(row.parts.body or row.parts.signature for row in ranked) else "lexical"


def _locate(file: HeldFile, number: int, item: Ranked) -> Found:
    """Chunks are counted through all documents of a file."""
    document = 0
    while number >= len(file.chunks[document]):
        number -= len(file.chunks[document])
        document += 1
    chunk = file.chunks[document][number]
    row = Definition(file, document, chunk.symbol) if chunk.symbol >= 0 else None
    return Found(file, document, chunk, number, row, item.score, item.parts)


def _find_symbol(relations: Relations, options: FindOptions, parts: list[str]) -> FindAnswer:
    found = look_up(relations.files, parts)
    from cq.source.files import PathFilter

    is_wanted = PathFilter(include=options.paths)
    rows = [
        Found(row.file, row.document, chunk, number, row, 1.0, ScoreParts(1.0))
        for row in found.rows
        if is_wanted(row.file.path)
        and (not options.languages or row.file.documents[row.document].language in options.languages)
        and (not options.kinds or row.symbol.kind in options.kinds or row.symbol.kind_group in options.kinds)
        for number in [row.symbol.chunk]
        for chunk in [row.file.chunks[row.document][number]]
    ]
    summary = {"query": options.query, "mode": "symbol", "candidates": len(found.rows), "passed": len(rows)}
    if not rows:
        message = found.message or f"what is called so is left out by --path, --lang or --kind: {options.query!r}"
        event = Degraded("find", "info", "no_target", message, options.query)
        run = Run(generation=relations.files.generation)
        return FindAnswer(SCHEMA_VERSION, "find", run, summary, degraded=(event,), suggestions=found.near)
    limit = options.limit or len(rows)
    cut = [Truncation("answer", "limit", limit, len(rows), len(rows) - limit)] if len(rows) > limit else []
    structure = Structure(relations, options.call_depth or 0, options.type_depth or 0)
    return _assemble(structure, options, rows[:limit], summary, [], cut, relations.files.generation)


def _assemble(
    structure: Structure, options: FindOptions, rows: Sequence[Found], summary: dict[str, str | int],
    events: list[Degraded], cut: list[Truncation], generation: int, least: float = 0.0,
) -> FindAnswer:  # fmt: skip
    """The rows, best first, and the code of as many as the budget holds: graph and snapshots together. What is left of
    a budget that holds no more code still says where the others are; one is always named, however small it is. Behind
    the first few, only results that score `least` are shown with their code."""
    budget = options.budget or 0
    run = Run(generation=generation)
    kept: list[Found] = []
    shown: list[Found] = []  # those of them with their code
    nodes: list[Node] = []
    shots: dict[tuple[str, int], FileSnapshot] = {}
    alike: dict[tuple[str, bytes], int] = {}  # what a build copies is shown once
    spent, omitted, unlikely = 0, 0, 0
    for row in rows:
        if budget and kept and spent + _NODE_TOKENS > budget:
            omitted += 1
            continue
        kept.append(row)
        same = alike.setdefault((row.chunk.name, row.file.text[row.span[0] : row.span[1]]), len(kept))
        nodes.append(_describe(structure, len(kept), row, same))
        spent += _NODE_TOKENS
        if same != len(kept):
            continue
        if len(shown) >= WITH_CODE and row.score < least:
            unlikely += 1
            continue
        if budget and len(kept) > 1 and spent > budget * 0.95:
            continue
        key = (row.file.path, row.document)
        group = [*(other for other in shown if (other.file.path, other.document) == key), row]
        snapshot = _shoot(group, budget, {id(other): rank_ for rank_, other in enumerate(kept, 1)})
        cost = snapshot.tokens - (shots[key].tokens if key in shots else 0)
        if budget and shown and spent + cost > budget:
            continue
        shown.append(row)
        shots[key] = snapshot
        spent += cost
    answer = _build(options, run, summary, kept, nodes, shots, structure)
    # The estimate above leaves out patterns; the true number decides.
    while budget and len(kept) > 1 and count_all(answer, budget) > budget:
        if len(shown) > 1 and shown[-1] is not kept[-1]:
            last = shown.pop()  # its code costs more than a line of one that has none
        else:
            last = kept.pop()
            nodes.pop()
            omitted += 1
            shown = [row for row in shown if row is not last]
        key = (last.file.path, last.document)
        group = [other for other in shown if (other.file.path, other.document) == key]
        if group:
            shots[key] = _shoot(group, budget, {id(other): rank_ for rank_, other in enumerate(kept, 1)})
        else:
            shots.pop(key, None)
        answer = _build(options, run, summary, kept, nodes, shots, structure)
    tokens = count_all(answer, budget)
    if budget and shown and tokens > budget:  # the one that is left is too long: its headers, or where it is
        for lines in (40, 8, 1):
            if tokens > budget:
                shots = {key: _shoot(shown, 1, {id(shown[0]): 1}, lines) for key in shots}
                answer = _build(options, run, summary, kept, nodes, shots, structure)
                tokens = count_all(answer, budget)
        if tokens > budget:
            shown = []
            answer = _build(options, run, summary, kept, nodes, {}, structure)
            tokens = count_all(answer, budget)
    if omitted:
        cut.append(Truncation("answer", "budget", budget, len(rows), omitted))
    if bare := sum(node.same_as == 0 for node in nodes) - len(shown):
        cut.append(Truncation("code.answer", "relevance" if unlikely else "budget", budget, len(kept), bare))
        why = "--all shows it" if unlikely else "the budget has no room for it"
        message = f"{bare} of {len(kept)} results stand here without their code: {why}"
        events.append(Degraded("find", "info", "budget", message))
    summary |= {"results": len(kept), "files": len({row.file.path for row in kept}), "tokens": tokens, "budget": budget}
    return msgspec.structs.replace(
        answer, summary=summary, degraded=tuple(events), truncated=(*cut, *structure.truncated), found=len(kept)
    )


_NODE_TOKENS = 60


def _shoot(group: Sequence[Found], budget: int, ranks: dict[int, int], lines: int = 40) -> FileSnapshot:
    """Of one document. What alone would take too much of the budget is shown by its headers."""
    file, document = group[0].file, group[0].document
    long = [row for row in group if budget and _is_long(row, budget, is_best=ranks[id(row)] == 1)]
    short = [row for row in group if row not in long]
    best = [row.span for row in group if ranks[id(row)] == 1]
    source = take_snapshot(file, document, [row.span for row in short], [row.span for row in long], lines, best)
    snapshot = FileSnapshot(
        file.path,
        file.documents[document].language,
        source,
        max(row.score for row in group),
        tuple(sorted(ranks[id(row)] for row in group)),
        0,
        tuple(sorted(ranks[id(row)] for row in long)),
    )
    return msgspec.structs.replace(snapshot, tokens=estimate(render_snapshot(snapshot)))


def _is_long(row: Found, budget: int, *, is_best: bool) -> bool:
    """The best result is cut only where the budget would not hold it at all, but for a type, whose headers say more
    than half of its code: the code of the best function is the answer."""
    tokens = (row.span[1] - row.span[0]) / 4
    if row.row is None or not is_best:
        return row.row is not None and tokens > budget * COLLAPSE_OTHER
    is_answer = row.row.symbol.kind_group in ("function", "method") or not row.chunk.children
    return tokens > budget * (1 if is_answer else COLLAPSE)


def _describe(structure: Structure, rank_: int, row: Found, same: int) -> Node:
    if row.row is None:
        node = structure.describe_chunk(rank_, row.file, row.chunk)
    else:
        node = structure.describe(rank_, row.row)
    line = row.file.lines.line(row.span[0])
    return msgspec.structs.replace(node, line=line, same_as=same if same != rank_ else 0)


def _build(
    options: FindOptions, run: Run, summary: dict[str, str | int], kept: Sequence[Found], nodes: Sequence[Node],
    shots: dict[tuple[str, int], FileSnapshot], structure: Structure,
) -> FindAnswer:  # fmt: skip
    results: list[Result] = []
    for number, row in enumerate(kept, 1):
        symbol = row.row.symbol if row.row is not None else None
        first, last = row.span
        lines = row.file.lines
        results.append(
            Result(
                number,
                round(row.score, 4),
                row.parts,
                row.file.path,
                symbol.name if symbol else row.chunk.name,
                symbol.qualified_name if symbol else row.chunk.name,
                row.chunk.kind if symbol is None else symbol.kind,
                lines.line(first),
                lines.line(max(last - 1, first)),
                row.file.name_chunk(row.document, row.number),
                row.file.name_symbol(row.document, row.row.number)[0] if row.row is not None else "",
                lines.position(first)[1],
            )
        )
    graph = connect(options.query, options.call_depth if options.call_depth is not None else 1, nodes)
    snapshots = sorted(shots.values(), key=lambda shot: (-shot.score, min(shot.results)))
    return FindAnswer(
        SCHEMA_VERSION, "find", run, summary, results=tuple(results), graph=graph, snapshots=tuple(snapshots)
    )


def _or(value: _T | None, default: _T) -> _T:
    return default if value is None else value
