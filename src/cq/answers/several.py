"""One question asked of several targets: one answer that holds theirs, within one budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from cq.answers.options import Options
from cq.answers.page import Page, count_tokens
from cq.model.answer import SCHEMA_VERSION, Answer, Run
from cq.model.errors import UsageError

_LEAST = 200  # tokens for a target, however many there are


def ask_each(questions: Sequence[Options], ask: Callable[[Options], Answer]) -> Answer:
    """What a target leaves of its share of the budget goes to those behind it."""
    page = getattr(questions[0], "page", None)
    if isinstance(page, Page) and page.number > 1:
        raise UsageError("--page is about one target", hint="ask for the pages of one after the other")
    left = page.budget if isinstance(page, Page) else 0
    answers: list[Answer] = []
    for number, question in enumerate(questions):
        if isinstance(page, Page) and page.budget:
            share = max(left // (len(questions) - number), _LEAST)
            question = msgspec.structs.replace(question, page=msgspec.structs.replace(page, budget=share))
        answer = ask(question)
        answers.append(answer)
        left -= count_tokens(answer.sections, page.measure) if isinstance(page, Page) else 0
    # What holds for each of them, as the state of the index does, is said once.
    shared = tuple(event for event in answers[0].degraded if all(event in answer.degraded for answer in answers))
    edges = tuple(dict.fromkeys(edge for answer in answers for edge in answer.edges))
    answers = [
        msgspec.structs.replace(
            answer, degraded=tuple(event for event in answer.degraded if event not in shared), edges=()
        )
        for answer in answers
    ]
    first = answers[0]
    return Answer(
        SCHEMA_VERSION,
        first.command,
        Run(generation=first.run.generation),
        {"query": ", ".join(str(answer.summary.get("query", "")) for answer in answers)},
        found=sum(answer.found for answer in answers),
        degraded=shared,
        edges=edges,
        answers=tuple(answers),
    )
