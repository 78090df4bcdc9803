"""Which file imports which: every import names the files of its module, not those where its names are defined."""

from __future__ import annotations

from pathlib import Path

import pytest

from cq import Workspace
from cq.questions.graph import GraphOptions
from cq.questions.imports import ImportsOptions
from cq.questions.references import ReferencesOptions
from cq.surfaces.render.answer import render_plain
from tests.support.fixture import Fixture, parse_fixture

PYTHON = """
#- pkg/__init__.py
from pkg.a import run
#< pkg/a.py
from . import sub
#< pkg/sub/__init__.py
#- pkg/a.py
def run(): ...
#- pkg/b.py
def run(): ...
#- pkg/c.py
class C: ...
#- pkg/sub/__init__.py
#- pkg/sub/mod.py
import pkg.top
#< pkg/top.py
#- pkg/top.py
def f():
    from pkg.a import run
    #< pkg/a.py
def g():
    from pkg.b import run
    #< pkg/b.py
import pkg.sub.mod
#< pkg/sub/mod.py
from pkg import sub, run
#< pkg/sub/__init__.py, pkg/__init__.py
from .sub import mod as m
#< pkg/sub/mod.py
from pkg.sub import *
#< pkg/sub/__init__.py
from typing import TYPE_CHECKING
#< typing
if TYPE_CHECKING:
    from pkg.c import C
    #< pkg/c.py (types only)
else:
    from pkg.d import C
    #< pkg/d.py
try:
    import simplejson
    #< simplejson
except ImportError:
    import json as simplejson
    #< json
import pkg.missing
import xml.etree.ElementTree as ET
#< xml.etree.ElementTree
#- pkg/d.py
from pkg import run
#< pkg/__init__.py
C = 1
"""

TYPESCRIPT = """
//- package.json
{"name": "@acme/app", "exports": {"./kit": "./src/kit.ts"}}
//- src/types.ts
export interface Shape { area(): number }
export type Id = string | number
export const LIMIT = 3
export class Round implements Shape { area() { return 3 } }
//- src/index.ts
export * from './types'
//< src/types.ts
export { run as go } from './kit'
//< src/kit.ts
export type { Shape as Form } from './types'
//< src/types.ts (types only)
//- src/kit.ts
export function run() {}
//- src/polyfill.js
module.exports = 1
//- src/built.js
export const a = 1
//- src/built.d.ts
export declare const a: number
//- src/more.d.ts
import { a } from './built.js'
//< src/built.d.ts (types only)
//- src/use.ts
import './polyfill'
//< src/polyfill.js
import type { Shape, Id } from './types'
//< src/types.ts (types only)
import { Form, Id as Ident } from './index'
//< src/index.ts (types only)
import { LIMIT, Round } from './index'
//< src/index.ts
import { Round as Circle, type Shape as S } from './types'
//< src/types.ts
import { run } from '@acme/app/kit'
//< src/kit.ts
import debounce from 'lodash.debounce'
//< lodash.debounce
import { css } from '@other/ui/styles/css.js'
//< @other/ui/styles/css.js
const fs = require('node:fs')
//< node:fs
const poly = require('./polyfill')
//< src/polyfill.js
const later = () => import('./kit')
//< src/kit.ts
import { gone } from './missing'
"""


def open_tree(snippet: str, folder: Path) -> tuple[Fixture, Workspace]:
    fixture = parse_fixture(snippet)
    for path, text in fixture.files.items():
        (folder / "repo" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "repo" / path).write_text(text)
    return fixture, Workspace.open(folder / "repo", index_dir=folder / "index")


@pytest.mark.parametrize("snippet", [PYTHON, TYPESCRIPT])
def test_an_import_names_the_files_of_its_module(snippet: str, tmp_path: Path):
    fixture, workspace = open_tree(snippet, tmp_path)
    found: list[tuple[str, str, str]] = []
    with workspace:
        for path in fixture.files:
            answer = workspace.imports(ImportsOptions(path))
            for finding in (f for s in answer.sections if s.kind == "imports" for f in s.findings):
                assert finding.location
                line = fixture.files[path].splitlines()[finding.location.start_line - 1].strip()
                found.append((path, line, finding.message.removeprefix("imports ")))
    assert found == [
        (mark.path, fixture.text(mark), target) for mark in fixture.marks for target in mark.label.split(", ")
    ]


def test_packages_from_outside_have_their_own_names(tmp_path: Path):
    with open_tree(TYPESCRIPT, tmp_path)[1] as workspace:
        outside = next(s for s in workspace.imports().sections if s.kind == "external")
        assert [f.message for f in outside.findings] == [
            "1 imports of @other/ui", "1 imports of lodash.debounce", "1 imports of node:fs (standard library)",
        ]  # fmt: skip
        assert workspace.imports(ImportsOptions("@other/ui")).found == 1


def test_a_cycle_runs_through_a_package_that_passes_names_on(tmp_path: Path):
    snippet = """
    #- pkg/__init__.py
    from pkg.b import helper
    from pkg.a import A
    #- pkg/a.py
    import typing
    if typing.TYPE_CHECKING:
        from pkg import A
    def late():
        from pkg import helper
    class A: ...
    #- pkg/b.py
    def helper(): ...
    """
    with open_tree(snippet, tmp_path)[1] as workspace:
        (section,) = workspace.imports(ImportsOptions(cycles=True)).sections
        rows = [(f.message, f.location.start_line) for f in section.findings if f.location]
        assert rows == [("pkg/__init__.py imports pkg/a.py", 2), ("pkg/a.py imports pkg/__init__.py", 5)]


def test_one_module_in_other_formats_and_none_at_all(tmp_path: Path):
    with open_tree(PYTHON, tmp_path)[1] as workspace:
        answer = workspace.imports(ImportsOptions("pkg.sub.mod"))
        assert render_plain(answer).splitlines()[0] == "pkg/sub/mod.py:1:1: imports pkg/top.py"
        assert {edge.target for edge in answer.edges} == {"pkg/top.py", "pkg/sub/mod.py"}
        missing = workspace.imports(ImportsOptions("pkg.sub.mdo"))
        assert (missing.found, missing.suggestions[0]) == (0, "pkg.sub.mod")


NAMED = {
    "Shape": """
    //- src/types.ts
    export interface Shape { area(): number }
    export const LIMIT = 3
    //- src/index.ts
    export * from './types'
    export type { Shape as Form } from './types'
    //            ^^^^^ ref
    //- src/use.ts
    import type { Shape } from './types'
    //            ^^^^^ ref
    import { Form } from './index'
    //       ^^^^ ref
    export function f(s: Shape): Form { return s }
    //                   ^^^^^ ref
    //                           ^^^^ ref
    //- src/other.ts
    import type { Shape } from 'geometry'
    export function f(s: Shape) {}
    """,
    "Id": """
    //- src/types.ts
    export type Id = string | number
    //- src/use.ts
    import { Id as Key } from './types'
    //       ^^ ref
    //             ^^^ ref
    export function f(s: Key) {}
    //                   ^^^ ref
    """,
    "LIMIT": """
    //- src/limits.ts
    export const LIMIT = 3
    //- src/index.ts
    export { LIMIT } from './limits'
    //       ^^^^^ ref
    //- src/use.ts
    import { LIMIT } from './index'
    //       ^^^^^ ref
    export function f() { return LIMIT > 2 }
    //                           ^^^^^ ref
    """,
    "run": """
    #- a.py
    def run(): ...
    #- b.py
    from a import run as go
    #             ^^^ ref
    #                    ^^ ref
    def f():
        from c import run
        run()
    handlers = [go]
    #           ^^ ref
    #- c.py
    def other(): ...
    run = other
    """,
}
HIDDEN = {
    "work": """
    //- a.ts
    export function work(work: string) { return work }
    export const pass = (work: number) => [work].map((work) => work);
    [1].forEach(work)
    //          ^^^^ ref
    """,
    "limit": """
    //- a.ts
    import { limit as other } from './b'
    export const limit = 1
    export const twice = [1].map(() => { const limit = 2; return limit + other })
    console.log(limit)
    //          ^^^^^ ref
    //- b.ts
    export const limit = 2
    """,
    "Key": """
    //- a.ts
    export type Key = string
    export type Pair<Key> = [Key, Key]
    export function pick<Key>(key: Key): Key { const k: Key = key; return k }
    export class Row<Key> extends Map<Key, Key> { key?: Key }
    export const f = <Key,>(key: Key): Key => key
    export const k: Key = ''
    //              ^^^ ref
    """,
    "bigint": """
    //- a.ts
    export function bigint(n: string): bigint { return BigInt(n) }
    use(bigint('1'))
    //  ^^^^^^ ref
    """,
    "codec": """
    //- a.ts
    test('a', () => { const codec = 1; const get = () => codec; codec.push(codec) })
    //                                                   ^^^^^ ref
    //                                                          ^^^^^ ref
    //                                                                     ^^^^^ ref
    test('b', () => { const codec = 2; use(codec) })
    """,
    "Mode": """
    //- a.ts
    test('a', () => { type Mode = 'r' | 'w'; const get = (mode: Mode): Mode => mode })
    //                                                          ^^^^ ref
    //                                                                 ^^^^ ref
    test('b', () => { const Mode = 1; return Mode })
    """,
    "Row": """
    //- a.ts
    export interface Row { id: number }
    export const Row: { new (): Row } = null!
    //                          ^^^ ref
    export const make = () => new Row()
    //                            ^^^ ref
    """,
    "rows": """
    #- a.py
    rows = [1]
    more = [rows for rows in [2]] + rows
    #                               ^^^^ ref
    """,
}


@pytest.mark.parametrize("target", NAMED)
def test_mentions_of_what_is_imported_under_any_name(target: str, tmp_path: Path):
    check_references(NAMED[target], target, tmp_path)


@pytest.mark.parametrize("target", HIDDEN)
def test_a_name_that_something_hides_is_no_mention(target: str, tmp_path: Path):
    check_references(HIDDEN[target], target, tmp_path)


def check_references(snippet: str, target: str, tmp_path: Path) -> None:
    """All marks of a snippet are the references of the target in its first file, and nothing else is."""
    fixture, workspace = open_tree(snippet, tmp_path)
    with workspace:
        path = next(iter(fixture.files))
        answer = workspace.references(ReferencesOptions(f"{path}:{target}", servers=False))
        found = [f.location for s in answer.sections if s.kind == "references" for f in s.findings if f.location]
        assert sorted((at.path, at.start, at.end) for at in found) == sorted(mark[:3] for mark in fixture.marks)
        assert answer.summary["possible"] == 0


def test_a_type_and_a_value_of_one_name_are_two(tmp_path: Path):
    _, workspace = open_tree(
        "//- a.ts\ntest('a', () => { const Row = 1; type Row = typeof Row; let row: Row = Row })", tmp_path
    )
    with workspace:
        for column, columns in ((25, [52, 72]), (39, [66])):
            answer = workspace.references(ReferencesOptions(f"a.ts:1:{column}", servers=False))
            assert [f.location.start_col for f in answer.sections[0].findings if f.location] == columns


def test_files_that_import_a_type_depend_on_it(tmp_path: Path):
    with open_tree(NAMED["Shape"], tmp_path)[1] as workspace:
        answer = workspace.graph(GraphOptions("Shape", direction="dependents", depth=1, edges=("imports",)))
        assert {edge.source for edge in answer.edges} == {"src/index.ts", "src/use.ts"}
