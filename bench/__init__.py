"""Measurements: speed beside a floor of the same run, and quality on named corpora. Nothing here is a test."""
