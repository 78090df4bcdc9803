"""What changed in the same commits as a file: company that no link shows."""

from __future__ import annotations

from collections import Counter

from cq.model.edge import Candidate
from cq.model.history import History
from cq.model.status import Degraded
from cq.questions.neighborhood.members import Found, Member

LARGE = 30  # a commit that touches more files says nothing about any two of them
LEAST = 2  # commits that two files must share
_KEPT = 50


def find_changed_together(history: History, path: str) -> Found:
    """Most often first. The weight is the share of the file's own commits."""
    if history.note:
        message = f"the history was not read: {history.note}"
        return Found(events=(Degraded("related.history", "info", "unavailable", message),))
    own = [commit for commit in history.commits if path in commit and len(commit) <= LARGE]
    counts = Counter(other for commit in own for other in set(commit) if other != path)
    rows = sorted((-count, other) for other, count in counts.items() if count >= LEAST)
    members = [
        Member(
            Candidate(other, 0, ""), "co_changed", True, "certain", round(-count / len(own), 3), "git.history",
            more={"note": f"in {-count} of its {len(own)} commits", "together": -count, "commits": len(own)},
        )
        for count, other in rows[:_KEPT]
    ]  # fmt: skip
    return Found(tuple(members), {"commits": len(own), "of_last": len(history.commits)} if own else {})
