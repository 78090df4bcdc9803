"""The native TypeScript 7 itself, fetched as `cq doctor --install typescript` would: each plane on a marked snippet."""

from __future__ import annotations

import hashlib
import io
import tarfile
import threading
from base64 import b64encode
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from cq.identity import segment_uid, tool_path
from cq.indexing.doctor import install_tool
from cq.language import describe
from cq.model.errors import ProviderError, UsageError
from cq.model.provider import Parameter, Reply
from cq.providers import npm, typescript
from cq.providers.answers import Target
from cq.providers.documents import Document
from cq.providers.registry import Registry, Site
from cq.providers.session import BUDGETS
from cq.source.segments import find_segments
from tests.support.servers import Tree, write_tree

pytestmark = pytest.mark.slow

CONFIG = """
//- tsconfig.json
{"compilerOptions": {"strict": true, "module": "esnext", "moduleResolution": "bundler"}}
"""


def ask(tools: Path, plane: str, tree: Tree, target: Target | None = None) -> Reply[Any]:
    (reply,) = Registry(tree.root, tools=tools).ask(plane, [target or tree.target()], BUDGETS["precise"])
    assert reply.provider == "typescript"
    return reply


def test_definition_and_references_across_files(tmp_path: Path, tools: Path):
    tree = write_tree(
        tmp_path,
        f"""{CONFIG.strip()}
//- db.ts
export function run(sql: string) {{}}
//              ^^^ here
//- app.ts
import {{ run as go }} from "./db";
//       ^^^ ref
//              ^^ ref
const x = "\U0001f600é"; $0go(x);
//                ^^ ref
""",
    )
    reply = ask(tools, "definition", tree)
    assert set(reply.items) == tree.places("here")
    reply = ask(tools, "references", tree, tree.target("here"))
    assert reply.coverage.state == "complete"
    assert set(reply.items) == tree.places("ref")


def test_hover_is_a_contract(tmp_path: Path, tools: Path):
    tree = write_tree(
        tmp_path,
        CONFIG + "//- a.tsx\n/** Adds. */ function add(a: number, b?: string): number { return a }\n$0add(1)\n",
    )
    (hover,) = ask(tools, "hover", tree).items
    assert (hover.kind, hover.returns, hover.doc) == ("function", "number", "Adds.")
    assert hover.parameters == (Parameter("a", "number"), Parameter("b?", "string"))


def test_what_it_does_not_offer_is_said(tmp_path: Path, tools: Path):
    tree = write_tree(tmp_path, CONFIG + "//- a.ts\nclass $0A {}\n")
    assert ask(tools, "subtypes", tree).coverage.reason == "typescript does not offer subtypes"


def test_symbols_hints_tokens_calls_and_diagnostics(tmp_path: Path, tools: Path):
    tree = write_tree(
        tmp_path,
        CONFIG
        + """
//- a.ts
function leaf(n: number) { return n; }
//       ^^^^ leaf
function caller() { const x = leaf(1); return missing; }
//       ^^^^^^ caller
//                                            ^^^^^^^ error
""",
    )
    whole = Target(tree.document("a.ts"))
    assert [item.name for item in ask(tools, "document_symbols", tree, whole).items] == ["leaf", "caller", "x"]
    assert ": number" in [hint.label for hint in ask(tools, "hints", tree, whole).items]
    assert any(token.kind == "function" for token in ask(tools, "tokens", tree, whole).items)
    (caller,) = ask(tools, "incoming_calls", tree, tree.target("leaf")).items
    assert {caller.place} == tree.places("caller")
    errors = [each.place for each in ask(tools, "diagnostics", tree, whole).items if each.severity == "error"]
    assert set(errors) == tree.places("error")


def test_a_script_in_a_vue_file_has_the_offsets_of_the_file(tmp_path: Path, tools: Path):
    text = b"<template><p/></template>\n<script lang=\"ts\">\nconst a = 'x'\nconst b = a.length\n</script>\n"
    write_tree(tmp_path, CONFIG)
    (tmp_path / "App.vue").write_bytes(text)
    segment = next(each for each in find_segments(text, "vue") if each.kind == "script")
    uid = segment_uid("App.vue", segment.kind, segment.language, segment.text(text))
    path = tool_path("App.vue", uid, describe(segment.language).suffix)
    document = Document("App.vue", segment.language, text, segment, path)
    target = Target(document, text.index(b"a.length"))
    (reply,) = Registry(tmp_path, tools=tools).ask("definition", [target], BUDGETS["precise"])
    assert [(place.path, place.start) for place in reply.items] == [("App.vue", text.index(b"a = 'x'"))]
    assert not (tmp_path / ".cq-vfs").exists()


def test_without_a_project_or_packages_project_questions_are_partial(tmp_path: Path, tools: Path):
    tree = write_tree(tmp_path, "//- a.ts\nexport const $0x = 1;\n")
    assert "tsconfig" in ask(tools, "references", tree).coverage.reason
    (tmp_path / "tsconfig.json").write_text("{}")
    (tmp_path / "package.json").write_text("{}")
    assert "node_modules" in ask(tools, "references", tree).coverage.reason


def test_a_compiler_in_the_workspace_is_run_only_if_it_is_the_one_we_know(tmp_path: Path, tools: Path):
    package = typescript.find_build()
    assert package
    folder = tmp_path / "node_modules" / package.name / "lib"
    folder.mkdir(parents=True)
    (folder / "tsc").write_text("#!/bin/sh\necho Version 7.0.2\n")
    (folder / "tsc").chmod(0o755)
    assert not typescript.detect(Site(tmp_path)).available
    (folder / "tsc").unlink()
    for path in (tools / package.folder / "lib").iterdir():
        (folder / path.name).symlink_to(path)
    assert typescript.detect(Site(tmp_path)).command == (str(folder / "tsc"),)


class _Answers(BaseHTTPRequestHandler):
    def __init__(self, body: bytes, *rest: Any) -> None:
        self.body = body
        super().__init__(*rest)

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[npm.Package, bytes]]:
    """A registry of our own that serves one package, with everything in it that a package must not have."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, text in {"package/lib/tool": "x", "package/../../out": "x", "/abs": "x", "other/file": "x"}.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(text), 0o4755
            tar.addfile(member, io.BytesIO(text.encode()))
        link = tarfile.TarInfo("package/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    body = buffer.getvalue()
    server = HTTPServer(("127.0.0.1", 0), partial(_Answers, body))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("npm_config_registry", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    yield npm.Package("@x/tool", "1.0.0", "sha512-" + b64encode(hashlib.sha512(body).digest()).decode()), body
    server.shutdown()
    server.server_close()


def test_a_package_is_unpacked_whole_and_keeps_to_its_folder(tmp_path: Path, registry: tuple[npm.Package, bytes]):
    package, _ = registry
    folder = npm.install(package, tmp_path / "tools")
    assert folder == tmp_path / "tools" / "tool-1.0.0" == npm.find_package(tmp_path / "tools", package)
    found = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if not path.is_dir())
    assert found == ["tools/tool-1.0.0/lib/tool"]
    assert (folder / "lib" / "tool").stat().st_mode & 0o7777 == 0o755
    assert npm.install(package, tmp_path / "tools") == folder


def test_a_package_that_was_changed_is_not_installed(tmp_path: Path, registry: tuple[npm.Package, bytes]):
    package, _ = registry
    wrong = npm.Package(package.name, package.version, package.integrity[:-6] + "AAAA==")
    with pytest.raises(ProviderError, match="not what it should be"):
        npm.install(wrong, tmp_path / "tools")
    assert not (tmp_path / "tools").exists()


def test_no_registry_is_one_line_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("npm_config_registry", "nowhere")
    with pytest.raises(ProviderError, match="no npm registry is configured"):
        npm.install(npm.Package("x", "1", "sha512-"), tmp_path)
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9")
    with pytest.raises(ProviderError, match="cannot be fetched"):
        npm.install(npm.Package("x", "1", "sha512-"), tmp_path)


def test_the_doctor_installs_it_where_it_is_looked_for(tools: Path):
    assert install_tool("typescript") == f"TypeScript {typescript.VERSION} is at {typescript.install(tools)}"
    with pytest.raises(UsageError, match="cannot install 'gopls'"):
        install_tool("gopls")
