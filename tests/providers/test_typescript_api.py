"""The compiler's own API: many positions at once, each to the declaration a marked snippet says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cq.identity import segment_uid, tool_path
from cq.model.provider import Reply
from cq.providers import typescript
from cq.providers.answers import Target
from cq.providers.documents import Document
from cq.providers.registry import Registry, Site
from cq.providers.session import BUDGETS, Budget
from cq.providers.typescript_api import resolve_definitions
from cq.source.segments import find_segments
from tests.support.servers import Tree, write_tree

TREE = """
//- tsconfig.json
{"compilerOptions": {"strict": true}, "include": ["src"]}
//- src/db.ts
const e = "😀é"; export function run(sql: string): number { return sql.length; }
//                              ^^^ def run
//                                  ^^^ def sql
//                                                                ^^^ sql
//                                                                    ^^^^^^ outside
export class Base { constructor(readonly size: number) {} grow() { return this.size; } }
//           ^^^^ def Base
//                                       ^^^^ def size
//                                                        ^^^^ def grow
//                                                                             ^^^^ size
//- src/index.ts
export { run as go, Base } from "./db";
//       ^^^ run
//              ^^ run
export * as all from "./db";
//- src/app.tsx
import { go, Base as B, all } from ".";
//       ^^ run
//                   ^ Base
import { missing } from "nowhere";

pytestmark = pytest.mark.slow
//       ^^^^^^^ nothing
const x = "😀é"; go(x);
//              ^^ run
new B(1).grow(); all.run("");
//  ^ Base
//       ^^^^ grow
//                   ^^^ run
missing();
//< nothing
//- script.js
function helper() {}
//       ^^^^^^ def helper
helper();
//< helper
"""


def resolve(root: Path, tools: Path, targets: list[Target]) -> list[Reply]:
    return resolve_definitions(root, typescript.detect(Site(root, tools)).command, targets)


def check(tree: Tree, tools: Path) -> None:
    """Every mark that is no definition resolves to the definition of its label."""
    documents = {path: tree.document(path) for path in tree.fixture.files if path.endswith(("ts", "tsx", "js"))}
    uses = [mark for mark in tree.fixture.marks if not mark.label.startswith("def ")]
    replies = resolve(tree.root, tools, [Target(documents[mark.path], mark.start) for mark in uses])
    for mark, reply in zip(uses, replies, strict=True):
        if mark.label == "nothing":
            assert reply.coverage.state == "unresolved", mark
        elif mark.label == "outside":
            assert reply.items[0].path == ""
            assert reply.items[0].external.startswith("lib.")
        else:
            assert set(reply.items) == tree.places(f"def {mark.label}"), (mark, reply)
            assert reply.coverage.state == "complete"


def test_positions_resolve_through_imports_and_re_exports(tmp_path: Path, tools: Path):
    tree = write_tree(tmp_path, TREE)
    before = sorted(tmp_path.rglob("*"))
    check(tree, tools)
    assert sorted(tmp_path.rglob("*")) == before


def test_the_fallback_is_recorded_and_left_out_where_packages_are(tmp_path: Path, tools: Path):
    tree = write_tree(tmp_path, TREE)
    target = Target(tree.document("src/app.tsx"), tree.document("src/app.tsx").text.index(b"go,"))
    assert "bundler" in resolve(tree.root, tools, [target])[0].coverage.reason
    (tmp_path / "node_modules").mkdir()
    (reply,) = resolve(tree.root, tools, [target])
    assert (reply.coverage.state, reply.coverage.reason) == ("complete", "")


def test_a_project_that_only_refers_to_others(tmp_path: Path, tools: Path):
    tree = write_tree(
        tmp_path,
        """
        //- tsconfig.json
        {"files": [], "references": [{"path": "./tsconfig.app.json"}]}
        //- tsconfig.app.json
        {"compilerOptions": {"composite": true, "paths": {"@/*": ["./src/*"]}}, "include": ["src"]}
        //- src/db.ts
        export const limit = 3;
        //           ^^^^^ def limit
        //- src/app.ts
        import { limit } from "@/db";
        $0limit;
        """,
    )
    (reply,) = resolve(tree.root, tools, [tree.target()])
    assert set(reply.items) == tree.places("def limit")


def test_a_package_is_external(tmp_path: Path, tools: Path):
    tree = write_tree(
        tmp_path,
        """
        //- tsconfig.json
        {"compilerOptions": {"module": "esnext", "moduleResolution": "bundler"}}
        //- node_modules/pack/package.json
        {"name": "pack", "types": "index.d.ts"}
        //- node_modules/pack/index.d.ts
        export declare function f(): void;
        //- a.ts
        import { f } from "pack"; $0f();
        """,
    )
    (reply,) = resolve(tree.root, tools, [tree.target()])
    assert [(place.path, place.external) for place in reply.items] == [("", "pack/index.d.ts")]


def test_texts_that_are_not_on_the_disk_and_scripts_in_markup(tmp_path: Path, tools: Path):
    write_tree(tmp_path, "//- tsconfig.json\n{}\n//- a.ts\nexport const old = 1;\n")
    changed = Document("a.ts", "typescript", b"const fresh = 1;\nfresh;\n")
    text = b'<p/>\n<script setup lang="ts">\nconst a = 1\nconst b = a\n</script>\n'
    segment = next(each for each in find_segments(text, "vue") if each.kind == "script")
    uid = segment_uid("App.vue", segment.kind, segment.language, segment.text(text))
    script = Document("App.vue", "typescript", text, segment, tool_path("App.vue", uid, ".ts"))
    one, two = resolve(
        tmp_path, tools, [Target(changed, changed.text.index(b"fresh;")), Target(script, text.index(b"a\n</"))]
    )
    assert [(place.path, place.start) for place in one.items] == [("a.ts", 6)]
    assert [(place.path, place.start) for place in two.items] == [("App.vue", text.index(b"a = 1"))]


def test_a_script_in_markup_imports_from_beside_its_file(tmp_path: Path, tools: Path):
    tree = write_tree(
        tmp_path,
        """
        //- web/db.ts
        import { deep } from "../lib/deep";
        export const limit = deep;
        //           ^^^^^ def limit
        export { deep };
        //- lib/deep.ts
        export const deep = "é";
        //           ^^^^ def deep
        //- node_modules/pack/index.d.ts
        export declare const packed: number;
        """,
    )
    text = (
        b'<p/>\n<script lang="ts">\nimport { limit, deep } from "./db"\nimport { packed } from "pack"\n'
        b"import { none } from './none'\nuse(limit, deep, packed, none)\n</script>\n"
    )
    segment = next(each for each in find_segments(text, "vue") if each.kind == "script")
    uid = segment_uid("web/App.vue", segment.kind, segment.language, segment.text(text))
    document = Document("web/App.vue", "typescript", text, segment, tool_path("web/App.vue", uid, ".ts"))
    words = (b"limit", b"deep", b"packed", b"none")
    limit, deep, packed, none = resolve(tree.root, tools, [Target(document, text.rindex(word)) for word in words])
    assert set(limit.items) == tree.places("def limit")
    assert set(deep.items) == tree.places("def deep")
    assert [place.external for place in packed.items] == ["pack/index.d.ts"]
    assert none.coverage.state == "unresolved"


def test_it_agrees_with_the_language_server(tmp_path: Path, tools: Path):
    tree = write_tree(tmp_path, TREE)
    (tmp_path / "node_modules").mkdir()
    document = tree.document("src/db.ts")
    targets = [
        Target(document, found.start()) for found in re.finditer(rb"\b(?:run|sql|Base|size|grow|e)\b", document.text)
    ]
    lsp = Registry(tree.root, tools=tools).ask("definition", targets, BUDGETS["precise"])
    api = resolve(tree.root, tools, targets)
    assert [set(reply.items) for reply in api] == [set(reply.items) for reply in lsp]
    assert all(reply.items for reply in api)


@pytest.mark.parametrize("command", [("/bin/false",), ("/bin/cat",), ("/nowhere",)])
def test_a_compiler_that_is_none_is_no_answer(tmp_path: Path, command: tuple[str, ...]):
    document = Document("a.ts", "typescript", b"x\n")
    (reply,) = resolve_definitions(tmp_path, command, [Target(document)], Budget(project_first=1, total=2))
    assert reply.coverage.state == "unresolved"
    assert reply.coverage.reason
