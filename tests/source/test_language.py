"""Which language a file is written in."""

from __future__ import annotations

import pytest

from cq.language import all_languages
from cq.source.language import detect_language, find_language


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("a/b.py", "python"), ("a.pyi", "python"), ("a.ts", "typescript"), ("a.mts", "typescript"),
        ("a.cts", "typescript"), ("a.d.ts", "typescript"), ("a.d.mts", "typescript"), ("a.tsx", "tsx"),
        ("a.js", "javascript"), ("a.mjs", "javascript"), ("a.cjs", "javascript"), ("a.jsx", "jsx"), ("a.rs", "rust"),
        ("a.go", "go"), ("A.java", "java"), ("a.c", "c"), ("a.h", "c"), ("a.C", "cpp"), ("a.H", "cpp"),
        ("a.hpp", "cpp"),
        ("a.cs", "csharp"), ("build.gradle.kts", "kotlin"), ("a.php", "php"), ("a.rb", "ruby"), ("a.sh", "shell"),
        ("a.sql", "sql"), ("a.sbt", "scala"), ("a.swift", "swift"), ("a.lua", "lua"), ("a.json", "json"),
        ("a.jsonc", "json"), ("a.yml", "yaml"), ("a.toml", "toml"), ("a.md", "markdown"), ("a.mdx", "mdx"),
        ("a.htm", "html"), ("a.vue", "vue"), ("a.svelte", "svelte"), ("a.astro", "astro"), ("a.css", "css"),
        ("a.scss", "scss"), ("a.rst", "text"), ("a.txt", "text"), ("a.PY", "python"), ("A.JSON", "json"),
        ("Gemfile", "ruby"), ("lib/Rakefile", "ruby"), ("BUILD", "python"), ("SConstruct", "python"),
        ("Cargo.lock", "toml"), (".bashrc", "shell"), ("composer.lock", "json"), (".babelrc", "json"),
        ("Makefile", "text"), ("LICENSE", "text"), ("no_idea.xyz", "text"), ("", "text"), (".py", "text"),
        ("dir.py/file", "text"),
    ],
)  # fmt: skip
def test_name_decides(path: str, language: str):
    assert detect_language(path) == language


@pytest.mark.parametrize(
    ("head", "language"),
    [
        (b"#!/usr/bin/python3.11 -u\n", "python"),
        (b"#!/usr/bin/env python\r\n", "python"),
        (b"#!/usr/bin/env -S A=1 python3 -u\n", "python"),
        (b"#!/usr/bin/env -S uv run --script\n", "python"),
        (b"#! /bin/sh\n", "shell"),
        (b"#!/usr/bin/env node\n", "javascript"),
        (b"#!/usr/bin/env ts-node\n", "typescript"),
        (b"#!/usr/bin/ruby2.7\n", "ruby"),
        (b"#!/usr/bin/lua5.4\n", "lua"),
        (b"#!/usr/bin/perl\n", "text"),
        (b"#!/usr/bin/env\n", "text"),
        (b"#!", "text"),
        (b"# -*- mode: python; coding: utf-8 -*-\n", "python"),
        (b"#!/opt/odd\n# -*- Ruby -*-\n", "ruby"),
        (b"\n\n# vim: set ts=4 ft=lua :\n", "lua"),
        (b"// vi: filetype=cpp\n", "cpp"),
        (b"1\n2\n3\n4\n5\n# vim: ft=python\n", "text"),
        (b"\xff\xfe\x00", "text"),
    ],
)
def test_shebang_then_modeline_decide_without_an_extension(head: bytes, language: str):
    assert detect_language("tool", head) == language


def test_extension_outranks_shebang():
    assert detect_language("a.rb", b"#!/bin/sh\n") == "ruby"


def test_header_is_cpp_only_when_it_says_what_c_cannot():
    assert detect_language("a.h", b"#pragma once\nnamespace x {\n") == "cpp"
    assert detect_language("a.h", b"// -*- C++ -*-\nint f();\n") == "cpp"
    assert detect_language("a.h", b"/* a class of its own */\nstruct s { int class_; };\n") == "c"


def test_qt_translation_is_not_typescript():
    assert detect_language("app_de.ts", b'<?xml version="1.0"?>\n<!DOCTYPE TS>\n') == "text"


def test_every_detected_language_has_an_extension_that_detects_it():
    for language, described in all_languages().items():
        assert detect_language("x" + described.suffix) == language


@pytest.mark.parametrize(
    ("name", "language"),
    [("py", "python"), ("C++", "cpp"), ("language-js", "javascript"), ("tsx", "tsx"), ("jsx", "jsx"), ("console", None),
     ("pycon", None), ("text", None), ("", None), ("zsh", "shell"), ("yml", "yaml")],
)  # fmt: skip
def test_names_people_use(name: str, language: str | None):
    assert find_language(name) == language
