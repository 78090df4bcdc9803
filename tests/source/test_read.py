"""Bytes → UTF-8 text, or a reason."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cq.model.errors import SourceError
from cq.model.source import Skip, SourceFile
from cq.source.files import find_files
from cq.source.read import content_hash, decode, read_source


def text_of(raw: bytes, path: str = "a.py") -> SourceFile:
    source = decode(raw, path)
    assert isinstance(source, SourceFile), source
    return source


def reason_of(result: SourceFile | Skip) -> str:
    return result.reason if isinstance(result, Skip) else ""


def test_utf8_is_the_same_object_and_keeps_crlf():
    for raw in (b"x = 1\r\ny = 2\r\n", "é = '\U0001f600'\n".encode(), b""):
        source = text_of(raw)
        assert source.text is raw
        assert (source.encoding, source.problems, source.language) == ("utf-8", (), "python")


def test_byte_order_mark_is_taken_off():
    source = text_of(b"\xef\xbb\xbfx = 1\n")
    assert (source.text, source.encoding, source.problems) == (b"x = 1\n", "utf-8-sig", ())


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_wide_encodings_with_a_mark(encoding: str):
    source = text_of(("\ufeff" + "s = 'ü😀'\r\n").encode(encoding))
    assert (source.text, source.encoding, source.problems) == ("s = 'ü😀'\r\n".encode(), encoding, ())


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_without_a_mark_is_seen_and_said(encoding: str):
    source = text_of("def f(): return 'ü'\n".encode(encoding))
    assert (source.text, source.encoding) == ("def f(): return 'ü'\n".encode(), encoding)
    assert [problem.code for problem in source.problems] == ["encoding"]


def test_broken_utf16_is_replaced_and_said():
    source = text_of(b"\xff\xfea\0\x00\xd8b\0")  # a lone surrogate
    assert source.text == "a\ufffdb".encode()
    assert source.problems[0].code == "encoding"
    assert source.text[source.problems[0].start : source.problems[0].end] == "\ufffd".encode()


@pytest.mark.parametrize(
    ("head", "codec"),
    [
        ("# -*- coding: latin-1 -*-\n", "iso8859-1"),
        ("#!/usr/bin/python\n# vim: set fileencoding=iso-8859-15 :\n", "iso8859-15"),
        ("\n# coding=cp1251\n", "cp1251"),
        ("# coding: shift_jis\n", "shift_jis"),
    ],
)
def test_declared_encoding_of_python(head: str, codec: str):
    letter = {"cp1251": "ж", "shift_jis": "日本"}.get(codec, "é")
    source = text_of((head + f"x = '{letter}'\n").encode(codec))
    assert (source.text.decode(), source.encoding, source.problems) == (head + f"x = '{letter}'\n", codec, ())


def test_declaration_counts_only_in_the_first_two_lines_and_only_in_python():
    assert text_of("x = 1\n# coding: cp1251\ny = 'é'\n".encode()).encoding == "utf-8"
    assert text_of("\n\n# coding: cp1251\ny = 'é'\n".encode()).encoding == "utf-8"
    assert text_of("# coding: cp1251\ny = 'é'\n".encode(), "a.rb").encoding == "utf-8"


@pytest.mark.parametrize(
    "name", ["nonsense-9", "rot13", "zlib", "idna", "unicode_escape", "utf-16", "undefined", "aliases"]
)
def test_declared_encoding_that_cannot_be_is_a_problem(name: str):
    raw = f"# coding: {name}\nx = 'é'\n".encode()
    source = text_of(raw)
    assert source.text == raw
    (problem,) = source.problems
    assert problem.code == "encoding"
    assert raw[problem.start : problem.end] == name.encode()


def test_declared_encoding_that_does_not_hold_is_a_problem():
    source = text_of(b"# coding: ascii\nx = '\xe9'\n")
    assert source.text == "# coding: ascii\nx = 'é'\n".encode()
    assert [problem.start for problem in source.problems] == [10, 21]


def test_fall_back_says_where():
    source = text_of(b"x = '\x80'  # \xe9\n", "a.js")
    assert (source.text, source.encoding) == ("x = '€'  # é\n".encode(), "cp1252")
    (problem,) = source.problems
    assert source.text[problem.start : problem.end] == "€".encode()
    assert text_of(b"x = '\x81'\n").encoding == "latin-1"


def test_a_few_bad_bytes_do_not_spoil_the_rest():
    source = text_of("café = 1 # naïve ".encode() + b"\xe9\n")
    assert (source.text, source.encoding) == ("café = 1 # naïve é\n".encode(), "utf-8")
    (problem,) = source.problems
    assert source.text[problem.start : problem.end].decode() == "é"


@pytest.mark.parametrize(
    "raw", [b"a\0b", b"\x89PNG\r\n\x1a\n\0\0", b"\x01\x02\x03\x04", bytes(range(1, 256)), b"\xef\xbb\xbfa\0b"]
)
def test_binary(raw: bytes):
    assert reason_of(decode(raw, "a.py")) == "binary"


@given(
    st.binary(max_size=200) | st.binary(max_size=60).map(lambda raw: b"# coding: utf-7\n" + raw),
    st.sampled_from(["py", "js", "md"]),
)
def test_decoding_is_total(raw: bytes, extension: str):
    result = decode(raw, "a." + extension)
    if isinstance(result, SourceFile):
        result.text.decode()
        assert b"\0" not in result.text
        assert all(0 <= problem.start <= problem.end <= len(result.text) for problem in result.problems)


@pytest.mark.parametrize(
    ("path", "head"),
    [
        ("a.go", "// Code generated by protoc-gen-go. DO NOT EDIT.\n\npackage a\n"),
        ("a_pb2.py", "# -*- coding: utf-8 -*-\n# Generated by the protocol buffer compiler.  DO NOT EDIT!\nimport x\n"),
        ("a.js", "/**\n * @generated SignedSource<<0>>\n */\nx()\n"),
        ("a.rs", "// This file is @generated by prost-build.\npub struct A;\n"),
        ("A.cs", "// <auto-generated/>\nclass A {}\n"),
        ("a.ts", "/* eslint-disable */\n// AUTO-GENERATED FILE. Do not edit.\nexport {}\n"),
        ("a.h", "#pragma once\n/* Automatically generated from x.idl; do not modify. */\n"),
        ("a.md", "<!-- This page is generated by tool. DO NOT EDIT. -->\n# A\n"),
        ("a.php", "<?php\n# @generated\n"),
        ("package-lock.json", "{}\n"), ("x/yarn.lock", "a:\n"), ("Cargo.lock", ""), ("poetry.lock", ""),
        ("pnpm-lock.yaml", ""), ("app.js.map", "{}"),
    ],
)  # fmt: skip
def test_generated(path: str, head: str):
    assert reason_of(decode(head.encode(), path)) == "generated"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", 'MARK = "@generated"\nHEAD = "Code generated by x. DO NOT EDIT."\n'),
        ("a.py", '"""Writes `# Generated by x. DO NOT EDIT` on top of files."""\n'),
        ("a.py", "# Looks for the marker @generated in a header\nimport re\n"),
        ("a.py", '# Writes "generated by cq, DO NOT EDIT" on top of each file\nimport re\n'),
        ("a.py", "# Generated by Django 5.2 on 2025-01-01\nfrom django.db import migrations\n"),
        ("a.py", "import a\n# Code generated by x. DO NOT EDIT.\n"),
        ("a.go", "package a\n\nfunc f() {}\n// Code generated by x. DO NOT EDIT.\n"),
        ("a.md", "# Code generated by x. DO NOT EDIT.\n"),
        ("a.css", "#generated-by { color: red } /* do not edit */\n"),
    ],
)
def test_a_mention_is_not_a_header(path: str, text: str):
    assert reason_of(decode(text.encode(), path)) == ""


def test_minified():
    code = b"function a(b){return b.c(function(d){d.e()})};" * 400
    assert reason_of(decode(code, "lib.js")) == "minified"
    assert reason_of(decode(b"/*! license */\n" * 20 + code, "lib.ts")) == "minified"
    assert reason_of(decode((code[:450] + b"\n") * 40, "wrapped.js")) == "minified"
    assert reason_of(decode(b".a{color:red}" * 1000, "a.css")) == "minified"
    assert reason_of(decode(b"x()\n", "jquery.min.js")) == "minified"
    assert reason_of(decode(b"x = [" + b"1," * 100_000 + b"]\n", "table.py")) == "minified"
    assert reason_of(decode(b"[" + b"1," * 200_000 + b"1]\n", "data.json")) == "minified"


def test_not_minified():
    lines = b"export function add(a: number, b: number) { return a + b }\n" * 200
    assert reason_of(decode(lines, "a.ts")) == ""
    assert reason_of(decode(lines + b"const s = '" + b"x(){};" * 1000 + b"'\n", "a.ts")) == ""
    picture = b"export const icon = 'data:image/png;base64," + b"iVBORw0KGgo" * 1000 + b"'\n"
    assert reason_of(decode(picture, "icon.ts")) == ""
    assert reason_of(decode(b'{"a": [' + b"1," * 20_000 + b"1]}", "data.json")) == ""
    assert reason_of(decode(b"x()\n", "admin.js")) == ""


def test_content_hash_is_of_the_text_alone():
    assert content_hash(b"") == "99aa06d3014798d86001c324468d497f"
    assert content_hash(b"a") != content_hash(b"b")


def test_reads_below_the_root_only(tmp_path: Path):
    root = tmp_path / "root"
    (root / "pkg").mkdir(parents=True)
    (root / "pkg" / "a.py").write_bytes(b"x = 1\n")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "secret.py").write_bytes(b"s = 1\n")
    (root / "link.py").symlink_to("../out/secret.py")
    (root / "dir").symlink_to("../out")
    (root / "same.py").symlink_to("pkg/a.py")
    (root / "inside").symlink_to("pkg")
    (root / "loop").symlink_to("loop")
    (root / "gone").symlink_to("nowhere")
    assert read_source(root, "pkg/a.py") == SourceFile("pkg/a.py", "python", b"x = 1\n")
    assert read_source(root, root / "pkg" / "a.py") == SourceFile("pkg/a.py", "python", b"x = 1\n")
    reasons = {
        "link.py": "link_out", "dir/secret.py": "link_out", "same.py": "link", "inside/a.py": "link",
        "loop": "link_loop",
        "gone": "link_broken", "missing.py": "unreadable", "pkg": "special", "pkg/a.py/x": "unreadable",
    }  # fmt: skip
    assert {path: reason_of(read_source(root, path)) for path in reasons} == reasons
    for path in ("../out/secret.py", str(tmp_path / "out" / "secret.py"), "pkg/../../out/secret.py"):
        with pytest.raises(SourceError, match="outside the root"):
            read_source(root, path)


def test_root_may_itself_be_a_link(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.py").write_bytes(b"x = 1\n")
    (tmp_path / "root").symlink_to("real")
    (entry,) = find_files(tmp_path / "root").files
    for path in (entry, "a.py", tmp_path / "root" / "a.py", tmp_path / "real" / "a.py"):
        assert read_source(tmp_path / "root", path) == SourceFile("a.py", "python", b"x = 1\n")


def test_special_files_do_not_block(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.py")
    assert reason_of(read_source(tmp_path, "pipe.py")) == "special"


def test_size_limit_holds_while_the_file_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "a.py").write_bytes(b"x" * 10)
    assert reason_of(read_source(tmp_path, "a.py", max_bytes=9)) == "too_large"
    assert isinstance(read_source(tmp_path, "a.py", max_bytes=10), SourceFile)
    read, asked = os.read, []

    def grow(file: int, count: int) -> bytes:
        with (tmp_path / "a.py").open("ab") as handle:
            handle.write(b"y" * 1000)
        asked.append(count)
        return read(file, count)

    monkeypatch.setattr(os, "read", grow)
    assert reason_of(read_source(tmp_path, "a.py", max_bytes=50)) == "too_large"
    assert sum(asked) < 100


def test_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "a.py").write_bytes(b"x = 1\n")
    (tmp_path / "a.py").chmod(0)
    if os.geteuid() == 0:  # root reads everything, so the refusal is played
        real_open = os.open

        def refuse(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
            if path == "a.py":
                raise PermissionError(13, "Permission denied")
            return real_open(path, flags, mode, dir_fd=dir_fd)

        monkeypatch.setattr(os, "open", refuse)
    assert read_source(tmp_path, "a.py") == Skip("a.py", "unreadable", "permission denied")
