"""The index on disk: one SQLite file per repository, and the only place that speaks SQL."""
