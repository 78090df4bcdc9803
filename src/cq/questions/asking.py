"""How a question is answered: what is checked first, what is brought up to date, and what every answer is told."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from cq import __version__
from cq.indexing.pool import collect_later
from cq.model.answer import AsOf
from cq.model.status import Degraded
from cq.questions.table import find_question
from cq.snapshot.snapshot import open_snapshot
from cq.source.files import PathFilter

if TYPE_CHECKING:
    from cq.answers.options import Options
    from cq.indexing.index import Index
    from cq.model.answer import Answer
    from cq.snapshot.snapshot import Snapshot


def answer_question(index: Index, options: msgspec.Struct | Sequence[Options]) -> Answer:
    """Of several each is about another target, and all share the budget of the first."""
    started = time.perf_counter()
    if isinstance(options, msgspec.Struct):
        answer = _answer(index, options)
    elif len(options) == 1:
        answer = _answer(index, options[0])
    else:
        from cq.answers.several import ask_each

        answer = ask_each(options, lambda each: answer_question(index, each))
    elapsed = round((time.perf_counter() - started) * 1000, 1)
    run = msgspec.structs.replace(answer.run, version=__version__, elapsed_ms=elapsed, as_of=_find_as_of(index))
    return msgspec.structs.replace(answer, run=run)


def _find_as_of(index: Index) -> AsOf | None:
    revision = index.revision
    return None if revision is None else AsOf(revision.ref, revision.commit, revision.tree)


def _answer(index: Index, options: msgspec.Struct) -> Answer:
    question = find_question(options)
    first = question.begin(index, options)
    if first is not None:
        return first
    index.keep_fresh()
    if index.revision is None and question.wants_vectors(options):
        from cq.indexing.vectors import embed_few

        embed_few(index)
    with collect_later(), open_snapshot(index, __version__) as snapshot:
        answer = question.ask(snapshot, options)
        unfit = _find_unfit(snapshot, options, answer) if snapshot.is_indexed and question.name != "q" else []
        return msgspec.structs.replace(answer, degraded=(*answer.degraded, *unfit, *snapshot.find_degraded()))


def _find_unfit(snapshot: Snapshot, options: msgspec.Struct, answer: Answer) -> list[Degraded]:
    """Filters that no file here fits: what they leave is not what was meant. Queries say it themselves."""
    globs = [(name, glob) for name in ("include", "exclude") for glob in getattr(options, name, ())]
    languages: Sequence[str] = () if answer.found else getattr(options, "languages", ())
    if not globs and not languages:
        return []
    files = list(snapshot.indexed.candidates(None))
    unfit = [
        f"--{name} {glob}: no file fits it"
        for name, glob in globs
        if not any(map(PathFilter((glob,)), (file.path for file in files)))
    ]
    if languages and not any(file.language in languages for file in files):
        inside = (each.language for file in files if file.counts.get("documents", 1) > 1 for each in file.documents)
        if not any(language in languages for language in inside):
            unfit.append(f"--lang {','.join(languages)}: no file here is of it")
    return [Degraded(answer.command, "warning", "filter", message) for message in unfit]
