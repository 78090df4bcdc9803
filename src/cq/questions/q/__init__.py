"""`cq q`: which entities and which code match a query.

A query is parsed to tokens under `and`, `or`, `not`, planned into selections with one subject each, and run by
`questions/q`: entities come from facts, code from the pattern matcher, over files that hold the words of the pattern.
Everything that is structure in a group becomes one rule of the matcher, so that metavariables mean the same throughout;
the rest is asked of facts. `rules.py` settles what the matcher would pass over in silence, `documents.py` what it must
not get to see: it cannot be stopped, and a nest of 20,000 kills the process. All groups of a run go over a file
together, so that it is parsed once. `links.py` is all that is known of a call graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cq.model.errors import UsageError
from cq.questions.q.options import QueryOptions

if TYPE_CHECKING:
    from cq.indexing.index import Index
    from cq.model.answer import Answer
    from cq.model.config import Configuration
    from cq.query.plan import Plan
    from cq.snapshot.snapshot import Snapshot

__all__ = ["QueryOptions", "ask", "begin"]


def begin(index: Index, options: QueryOptions) -> None:
    """QueryError or UsageError for what cannot be asked."""
    _make_plan(index.config(), options)


def ask(snapshot: Snapshot, options: QueryOptions) -> Answer:
    plan = _make_plan(snapshot.config, options)
    if plan is None:
        return _search(snapshot, options.query.strip())
    from cq.questions.q.answer import answer_query

    return answer_query(snapshot.reader, snapshot.tree, plan, options)


def _make_plan(config: Configuration, options: QueryOptions) -> Plan | None:
    """None for words without any key."""
    from cq.query.parse import find_words, get_query
    from cq.query.plan import make_plan

    if options.page < 1 or options.limit < 0 or options.budget < 0:
        raise UsageError("a page is a number from 1, its limit and budget are numbers from 0")
    if find_words(options.query) is not None:
        return None
    plan = make_plan(options.query, config.queries)
    if options.include or options.exclude or options.languages:
        whole = get_query(options.query)
        plan = make_plan(whole.narrowed(options.include, options.exclude, options.languages), config.queries)
    return plan


def _search(snapshot: Snapshot, words: str) -> Answer:
    """A query without any token is a search for its words."""
    from cq.model.status import Degraded
    from cq.questions.table import QUESTIONS

    search = QUESTIONS["search"]
    answer = search.ask(snapshot, search.make_options(words))
    event = Degraded("query", "info", "plain_words", "no part of this is key=value: it was searched for", words)
    return msgspec.structs.replace(answer, degraded=(event, *answer.degraded))
