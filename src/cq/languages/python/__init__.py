"""Python: its grammar queries, facts and rules of linking."""
