"""Which languages there are, and the one instance of each, loaded when first asked for."""

from __future__ import annotations

import importlib
from functools import cache

from cq.syntax.language import Language

# id -> "module:Class" under cq.syntax.languages. `text` and css have no facts beyond the module chunk.
LANGUAGES: dict[str, str] = {
    "python": "python:Python",
    "typescript": "typescript:TypeScript",
    "tsx": "typescript:Tsx",
    "javascript": "typescript:JavaScript",
    "jsx": "typescript:Jsx",
    "rust": "rust:Rust",
    "go": "go:Go",
    "java": "java:Java",
    "c": "c:C",
    "cpp": "cpp:Cpp",
    "csharp": "csharp:CSharp",
    "kotlin": "kotlin:Kotlin",
    "php": "php:Php",
    "ruby": "ruby:Ruby",
    "shell": "shell:Shell",
    "sql": "sql:Sql",
    "scala": "scala:Scala",
    "swift": "swift:Swift",
    "lua": "lua:Lua",
    "elixir": "elixir:Elixir",
    "haskell": "haskell:Haskell",
    "zig": "zig:Zig",
    "json": "json:Json",
    "yaml": "yaml:Yaml",
    "toml": "toml:Toml",
    "markdown": "markdown:Markdown",
    "mdx": "markdown:Markdown",
    "html": "html:Html",
    "vue": "html:Html",
    "svelte": "html:Html",
    "astro": "html:Html",
    "css": "css:Css",
}


@cache
def get_language(language: str) -> Language | None:
    """The language, or None for one without a grammar (its files still have text and a module chunk)."""
    entry = LANGUAGES.get(language)
    if entry is None:
        return None
    module, _, name = entry.partition(":")
    return getattr(importlib.import_module(f"cq.syntax.languages.{module}"), name)()
