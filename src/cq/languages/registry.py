"""Which languages there are, and the one instance of each, loaded when first asked for."""

from __future__ import annotations

import importlib
from functools import cache

from cq.syntax.language import Language

# id -> "module:Class" under cq.languages. `text` and css have no facts beyond the module chunk.
LANGUAGES: dict[str, str] = {
    "python": "python.facts:Python",
    "typescript": "ecmascript.facts:TypeScript",
    "tsx": "ecmascript.facts:Tsx",
    "javascript": "ecmascript.facts:JavaScript",
    "jsx": "ecmascript.facts:Jsx",
    "rust": "rust.facts:Rust",
    "go": "tables.go:Go",
    "java": "tables.java:Java",
    "c": "tables.c:C",
    "cpp": "tables.cpp:Cpp",
    "csharp": "tables.csharp:CSharp",
    "kotlin": "tables.kotlin:Kotlin",
    "php": "tables.php:Php",
    "ruby": "tables.ruby:Ruby",
    "shell": "tables.shell:Shell",
    "sql": "tables.sql:Sql",
    "scala": "tables.scala:Scala",
    "swift": "tables.swift:Swift",
    "lua": "tables.lua:Lua",
    "elixir": "tables.elixir:Elixir",
    "haskell": "tables.haskell:Haskell",
    "zig": "tables.zig:Zig",
    "json": "tables.json:Json",
    "yaml": "tables.yaml:Yaml",
    "toml": "tables.toml:Toml",
    "markdown": "tables.markdown:Markdown",
    "mdx": "tables.markdown:Markdown",
    "html": "tables.html:Html",
    "vue": "tables.html:Html",
    "svelte": "tables.html:Html",
    "astro": "tables.html:Html",
    "css": "tables.css:Css",
}


@cache
def get_language(language: str) -> Language | None:
    """The language, or None for one without a grammar (its files still have text and a module chunk)."""
    entry = LANGUAGES.get(language)
    if entry is None:
        return None
    module, _, name = entry.partition(":")
    return getattr(importlib.import_module(f"cq.languages.{module}"), name)()
