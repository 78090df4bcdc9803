"""`cq q`: which entities and which code match a query."""

from cq.questions.q.options import QueryOptions

__all__ = ["QueryOptions"]
