"""Rust: grammar queries, facts, crates and rules of linking."""
