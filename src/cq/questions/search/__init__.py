"""Where is this name or text: every mention, classed by what it is, best first, the shown ones enriched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cq.answers import ask_servers
from cq.questions.search.assemble import search
from cq.questions.search.scan import PROFILES, Limits, SearchOptions
from cq.store.overflow import Overflow

if TYPE_CHECKING:
    from cq.model.answer import Answer
    from cq.snapshot.snapshot import Snapshot

__all__ = ["PROFILES", "Limits", "SearchOptions", "ask", "search"]


def ask(snapshot: Snapshot, options: SearchOptions) -> Answer:
    enrich = ask_servers(snapshot, options.text, options.servers, options.page)
    answer, heavy = snapshot.remember(options, lambda: search(snapshot.files, options))
    answer = enrich(answer)
    saved = snapshot.save([Overflow.of("search", kind, value) for kind, value in heavy.items() if value])
    return msgspec.structs.replace(answer, artifacts=(*answer.artifacts, *saved))
