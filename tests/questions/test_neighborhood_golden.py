"""Neighborhoods of real symbols in parts of pinned packages, as they were checked by hand against the sources."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from bench.corpora import CorpusError, fetch
from cq import Workspace
from cq.answers.page import Page
from cq.model.neighborhood import Bundle
from cq.questions.neighborhood import NeighborhoodOptions

pytestmark = pytest.mark.slow


def find(tmp_path: Path, corpus: str, folder: str, target: str) -> dict[str, list[str]]:
    """Slice -> `path:line name` of its nodes, `?` behind those that are only possible."""
    try:
        tree = fetch(corpus)
    except CorpusError as error:
        pytest.skip(str(error))
    shutil.copytree(tree / folder, tmp_path / "repo" / folder)
    with Workspace.open(tmp_path / "repo", index_dir=tmp_path / "index") as workspace:
        answer = workspace.neighborhood(NeighborhoodOptions(target, top_k=12, lsp=False, page=Page(0, 0)))
    assert isinstance(answer.bundle, Bundle)
    assert not answer.bundle.diagnostics
    found: dict[str, list[str]] = {}
    for part in answer.bundle.slices:
        doubtful = {
            end
            for edge in part.edges
            if edge.metadata.get("status")
            for end in (edge.source_node_id, edge.target_node_id)
        }
        rows = [
            f"{node.file_path.removeprefix(folder + '/')}:{node.line} {node.name}" + "?" * (node.node_id in doubtful)
            for node in part.preview
        ]
        rows += [f"… {part.total - len(rows)} more"] if part.total > len(rows) else []
        if rows:
            found[part.kind] = rows
    return found


def test_a_method_of_django(tmp_path: Path):
    assert find(tmp_path, "django", "django/dispatch", "Signal.send_robust") == snapshot(
        {
            "enclosing_context": ["dispatcher.py:25 Signal"],
            "parents": ["dispatcher.py:25 Signal", "dispatcher.py:1 django.dispatch.dispatcher"],
            "children": ["dispatcher.py:314 asend_and_wrap_exception", "dispatcher.py:322 asend"],
            "siblings": [
                "dispatcher.py:35 __init__",
                "dispatcher.py:50 connect",
                "dispatcher.py:119 disconnect",
                "dispatcher.py:155 has_listeners",
                "dispatcher.py:159 send",
                "dispatcher.py:205 asend",
                "dispatcher.py:263 _log_robust_failure",
                "dispatcher.py:334 asend_robust",
                "dispatcher.py:406 _clear_dead_receivers",
                "dispatcher.py:416 _live_receivers",
                "dispatcher.py:462 _remove_receiver",
                "dispatcher.py:39 receivers",
                "… 4 more",
            ],
            "callees": ["dispatcher.py:416 _live_receivers", "dispatcher.py:263 _log_robust_failure"],
            "imports": ["dispatcher.py:1 asyncio", "dispatcher.py:6 async_to_sync"],
            "importers": ["__init__.py:9 Signal"],
        }
    )


def test_a_method_of_rxjs(tmp_path: Path):
    assert find(tmp_path, "rxjs", "internal/scheduler", "AsyncAction.recycleAsyncId") == snapshot(
        {
            "enclosing_context": ["AsyncAction.ts:9 AsyncAction"],
            "parents": ["AsyncAction.ts:9 AsyncAction", "AsyncAction.ts:1 internal.scheduler.AsyncAction"],
            "siblings": [
                "AsyncAction.ts:16 constructor",
                "AsyncAction.ts:20 schedule",
                "AsyncAction.ts:67 requestAsyncId",
                "AsyncAction.ts:88 execute",
                "AsyncAction.ts:115 _execute",
                "AsyncAction.ts:133 unsubscribe",
                "AsyncAction.ts:10 id",
                "AsyncAction.ts:11 state",
                "AsyncAction.ts:13 delay",
                "AsyncAction.ts:14 pending",
                "AsyncAction.ts:16 scheduler",
                "AsyncAction.ts:16 work",
            ],
            "callers": [
                "AnimationFrameAction.ts:25 recycleAsyncId",
                "AsapAction.ts:25 recycleAsyncId",
                "AsyncAction.ts:20 schedule?",
                "AsyncAction.ts:88 execute?",
                "AsyncAction.ts:133 unsubscribe?",
            ],
            "callees": ["intervalProvider.ts:26 clearInterval?"],
            "references": [
                "AnimationFrameAction.ts:30 recycleAsyncId",
                "AsapAction.ts:30 recycleAsyncId",
                "AsyncAction.ts:53 recycleAsyncId?",
                "AsyncAction.ts:111 recycleAsyncId?",
                "AsyncAction.ts:143 recycleAsyncId?",
            ],
            "implementations": [
                "AnimationFrameAction.ts:25 recycleAsyncId",
                "AsapAction.ts:25 recycleAsyncId",
                "VirtualTimeScheduler.ts:103 recycleAsyncId",
            ],
            "type_subtypes": [
                "AnimationFrameAction.ts:25 recycleAsyncId",
                "AsapAction.ts:25 recycleAsyncId",
                "VirtualTimeScheduler.ts:103 recycleAsyncId",
            ],
            "imports": [
                "AsyncAction.ts:4 AsyncScheduler",
                "AsyncAction.ts:5 intervalProvider",
                "AsyncAction.ts:7 TimerHandle",
            ],
            "importers": [
                "AnimationFrameAction.ts:1 AsyncAction",
                "AnimationFrameScheduler.ts:1 AsyncAction",
                "AsapAction.ts:1 AsyncAction",
                "AsapScheduler.ts:1 AsyncAction",
                "AsyncScheduler.ts:3 AsyncAction",
                "QueueAction.ts:1 AsyncAction",
                "VirtualTimeScheduler.ts:1 AsyncAction",
                "async.ts:1 AsyncAction",
            ],
        }
    )


def test_a_type_of_ruff(tmp_path: Path):
    assert find(tmp_path, "ruff", "ruff_text_size", "ruff_text_size/src/range.rs:TextRange") == snapshot(
        {
            "enclosing_context": ["src/range.rs:1 ruff_text_size.src.range"],
            "parents": ["src/range.rs:1 ruff_text_size.src.range"],
            "children": [
                "src/range.rs:23 fmt",
                "src/range.rs:49 new",
                "src/range.rs:70 at",
                "src/range.rs:87 empty",
                "src/range.rs:109 up_to",
                "src/range.rs:121 start",
                "src/range.rs:127 end",
                "src/range.rs:133 len",
                "src/range.rs:142 is_empty",
                "src/range.rs:165 contains",
                "src/range.rs:184 contains_inclusive",
                "src/range.rs:204 contains_range",
                "… 22 more",
            ],
            "siblings": [
                "src/range.rs:444 str",
                "src/range.rs:452 String",
                "src/range.rs:460 str",
                "src/range.rs:467 String",
                "src/range.rs:491 Range",
                "src/range.rs:501 ops",
            ],
            "callers": [
                "src/range.rs:281 checked_add",
                "src/range.rs:297 checked_sub",
                "src/range.rs:87 empty",
                "src/range.rs:49 new",
                "src/range.rs:109 up_to",
            ],
            "callees": ["src/size.rs:25 TextSize", "src/size.rs:100 checked_add", "src/size.rs:106 checked_sub"],
            "references": [
                "src/lib.rs:32 TextRange",
                "src/range.rs:22 TextRange",
                "src/range.rs:28 TextRange",
                "src/range.rs:49 TextRange",
                "src/range.rs:51 TextRange",
                "src/range.rs:70 TextRange",
                "src/range.rs:71 TextRange",
                "src/range.rs:87 TextRange",
                "src/range.rs:88 TextRange",
                "src/range.rs:109 TextRange",
                "src/range.rs:110 TextRange",
                "src/range.rs:118 TextRange",
                "… 76 more",
            ],
            "imports": ["src/range.rs:4 TextSize"],
            "importers": [
                "src/lib.rs:32 TextRange",
                "src/schemars_impls.rs:8 TextRange",
                "src/serde_impls.rs:2 TextRange",
                "src/traits.rs:2 TextRange",
                "tests/auto_traits.rs:2 TextRange",
                "tests/indexing.rs:1 TextRange",
                "tests/main.rs:2 TextRange",
                "tests/serde.rs:2 TextRange",
            ],
            "tests": [
                "tests/main.rs:37 contains",
                "tests/main.rs:67 contains_point",
                "tests/main.rs:50 cover",
                "tests/main.rs:57 cover_offset",
                "tests/main.rs:43 intersect",
                "tests/serde.rs:64 invalid_range_deserialization",
                "tests/serde.rs:24 range_serialization",
            ],
        }
    )
