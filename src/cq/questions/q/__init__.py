"""`cq q`: which entities and which code match a query."""
