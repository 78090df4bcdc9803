"""Language servers as they are used here: start, first answer, one question at a time and many at once, memory.

Times are wall time of single runs; the machine's load is in them. Positions are identifiers that the facts name, taken
evenly from the files of a corpus, so two runs ask the same.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.corpora import CORPORA, fetch
from cq import Workspace
from cq.indexing.location import find_cache_dir
from cq.languages.facts import extract_facts
from cq.model.config import ProvidersConfig
from cq.model.errors import ProviderError
from cq.model.provider import Place, Reply
from cq.model.source import SourceFile
from cq.providers import typescript
from cq.providers.answers import Target
from cq.providers.documents import Document
from cq.providers.registry import Registry
from cq.providers.session import BUDGETS, Session
from cq.providers.sessions import close_sessions, find_sessions
from cq.source.read import read_source

FILES, POSITIONS = 60, 3000
PRECISE = BUDGETS["precise"]
# provider -> corpus, folder, endings
SERVERS = {
    "ty": ("django", "django", ".py"),
    "pyrefly": ("django", "django", ".py"),
    "basedpyright": ("django", "django", ".py"),
    "typescript": ("rxjs", "src", ".ts"),
}


def run(results: dict[str, Any]) -> None:
    tools = _find_tools()
    rows: list[dict[str, Any]] = []
    found: dict[str, list[Reply[Place]]] = {}
    goals: list[dict[str, Any]] = []
    for provider, (corpus, folder, ending) in SERVERS.items():
        root = fetch(corpus).parent if CORPORA[corpus].tree else fetch(corpus)  # the whole package, with its settings
        targets = choose_targets(root, folder, ending)
        registry = Registry(root, ProvidersConfig(allow=(provider,)), tools=tools)
        chosen = next(each for each in registry.providers if each.id == provider)
        if not registry.detect(chosen).available:
            rows.append({"server": provider, "corpus": registry.detect(chosen).reason})
            continue
        row, found[provider] = _measure(registry, targets)
        rows.append({"server": provider, "corpus": corpus, **row})
        if provider == "typescript":
            rows.append(
                {"server": "typescript, API", "corpus": corpus, **_measure_bulk(registry, targets, found[provider])}
            )
        close_sessions()
    project = [_measure_project(provider) for provider in ("ty", "pyrefly")]
    ty, pyrefly = project
    goals.append(
        {
            "goal": "Django: references to QuerySet and its subtypes are what ty itself answers",
            "measured": f"{ty['references']} of {ty['asked directly']}, {ty['subtypes']} subtypes",
            "met": ty["references"] == ty["asked directly"] and ty["coverage"] == "complete",
        }
    )
    goals.append(
        {
            "goal": "Django: what pyrefly answers before it has indexed is not called complete",
            "measured": f"{pyrefly['references']} references, {pyrefly['coverage']}",
            "met": pyrefly["coverage"] == "partial",
        }
    )
    precise, agreement = measure_precise("django", ("pyrefly", "ty"), tools)
    goals.append(
        {
            "goal": "Django: under 3% of the calls that `cq index --precise` resolves are read differently by ty",
            "measured": f"{agreement['differ']} of {agreement['both resolve']}",
            "met": agreement["differ"] <= 0.03 * agreement["both resolve"],
        }
    )
    script, _ = measure_precise("rxjs", ("typescript",), tools)
    results["tables"] = {
        "`cq index --precise`: calls that our own resolution left open": [*precise, *script],
        "What two servers say of the same open calls of Django": [agreement],
        f"{POSITIONS:,} identifiers of {FILES} files: seconds, and milliseconds per question": rows,
        "QuerySet in Django, asked of a server that has just started": project,
        "The same 3,000 definitions": [_compare(found, "ty", "pyrefly"), _compare(found, "ty", "basedpyright")],
    }
    results["goals"] = goals


def choose_targets(root: Path, folder: str, ending: str) -> list[Target]:
    """Evenly over the files and over the identifiers in them."""
    paths = sorted(path for path in (root / folder).rglob(f"*{ending}") if path.is_file())
    targets: list[Target] = []
    for path in paths[:: max(len(paths) // FILES, 1)]:
        source = read_source(root, path)
        if isinstance(source, SourceFile):
            document = Document.of(source)
            targets += [Target(document, each.start) for each in extract_facts(source.text, source.language).references]
    return targets[:: max(len(targets) // POSITIONS, 1)][:POSITIONS]


def _measure(registry: Registry, targets: list[Target]) -> tuple[dict[str, Any], list[Reply[Place]]]:
    root = registry.site.root
    started = time.perf_counter()
    registry.ask("hover", targets[:1], PRECISE)
    first = time.perf_counter() - started
    (session,) = find_sessions(root)
    warm = [_time(registry, "hover", [target]) for target in targets[:200:2]]
    alone = sum(_time(registry, "definition", [target]) for target in targets[:100]) / 100
    together = _time(registry, "definition", targets[:100]) / 100
    started = time.perf_counter()
    replies = registry.ask("definition", targets, PRECISE)
    bulk = time.perf_counter() - started
    row = {
        "first answer, s": first,
        "hover, median ms": sorted(warm)[len(warm) // 2] * 1000,
        "definition alone, ms": alone * 1000,
        "in flight together, ms": together * 1000,
        "bulk, positions/s": round(len(targets) / bulk),
        "resolved": sum(bool(reply.items) for reply in replies),
        "memory, MB": _memory(session),
    }
    return row, replies


def _measure_bulk(registry: Registry, targets: list[Target], lsp: list[Reply[Place]]) -> dict[str, Any]:
    started = time.perf_counter()
    replies = registry.ask("definition", targets, PRECISE, bulk=True)
    seconds = time.perf_counter() - started
    same = sum(_starts(one) == _starts(two) for one, two in zip(replies, lsp, strict=True))
    return {
        "bulk, positions/s": round(len(targets) / seconds),
        "resolved": sum(bool(reply.items) for reply in replies),
        "same as its LSP": f"{same / len(targets):.1%}",
    }


def _measure_project(provider: str) -> dict[str, Any]:
    root = fetch("django")
    source = read_source(root, "django/db/models/query.py")
    assert isinstance(source, SourceFile)
    target = Target(Document.of(source), source.text.index(b"class QuerySet") + 6)
    registry = Registry(root, ProvidersConfig(allow=(provider,)))
    started = time.perf_counter()
    (references,) = registry.ask("references", [target], PRECISE)
    seconds = time.perf_counter() - started
    direct = _ask_directly(find_sessions(root)[0], target)
    (subtypes,) = registry.ask("subtypes", [target], PRECISE)
    close_sessions()
    return {
        "server": provider,
        "references": len(references.items),
        "asked directly": direct,
        "coverage": references.coverage.state,
        "seconds": seconds,
        "subtypes": len(subtypes.items),
    }


def measure_precise(
    corpus: str, providers: Sequence[str], tools: Path | None
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Each server asked about all open calls of a fresh index; and what the first two say of the same call."""
    root = fetch(corpus).parent if CORPORA[corpus].tree else fetch(corpus)
    rows: list[dict[str, Any]] = []
    with TemporaryDirectory() as folder, Workspace.open(root, index_dir=folder) as workspace:
        calls = workspace.status().counts["calls"]
        for provider in providers:
            workspace.index._registry = Registry(root, ProvidersConfig(allow=(provider,)), tools=tools)
            started = time.perf_counter()
            report = workspace.resolve()
            seconds = time.perf_counter() - started
            rows += [
                {
                    "server": provider,
                    "corpus": corpus,
                    "calls": calls,
                    "open": source.asked,
                    "resolved here": source.resolved,
                    "outside": source.external,
                    "no answer": source.failed,
                    "seconds": seconds,
                }
                for source in report.sources
            ]
            close_sessions()
        with workspace.index.reading() as (reader, tree):
            said = [
                dict(statements)
                for path in reader.linked_paths(tree.id)
                for calls_ in reader.evidence(tree.id, path).values()
                for statements in calls_.values()
            ]
    one, two = (f"lsp.{provider}" for provider in (*providers, "")[:2])
    both = [(each[one], each[two]) for each in said if one in each and two in each]
    same = sum(
        (a.target, bool(a.module)) == (b.target, bool(b.module)) or (a.target is b.target is None) for a, b in both
    )
    return rows, {
        "servers": f"{one}, {two}",
        "both resolve": len(both),
        "differ": len(both) - same,
        "only the first": sum(one in each and two not in each for each in said),
        "only the second": sum(two in each and one not in each for each in said),
    }


def _ask_directly(session: Session, target: Target) -> int:
    """What the server itself says, as it says it, less the definition."""
    deadline = time.monotonic() + 60
    connection = session.connect(PRECISE, deadline)
    position = target.document.position(target.offset, session.encoding)
    params = {
        "textDocument": {"uri": session.texts.uri(target.document)},
        "position": position,
        "context": {"includeDeclaration": True},
    }
    return len(connection.wait(connection.request("textDocument/references", params), 60) or ()) - 1


def _compare(found: dict[str, list[Reply[Place]]], one: str, two: str) -> dict[str, Any]:
    """Of the places that both resolve inside the repository: the share in which they name a common target."""
    pairs = [
        (_starts(a), _starts(b))
        for a, b in zip(found.get(one, []), found.get(two, []), strict=False)
        if any(place.path for place in a.items) and any(place.path for place in b.items)
    ]
    same = sum(bool(a & b) for a, b in pairs)
    return {"servers": f"{one}, {two}", "both resolve": len(pairs), "agree": f"{same / max(len(pairs), 1):.1%}"}


def _starts(reply: Reply[Place]) -> set[tuple[str, int, str]]:
    return {(place.path, place.start, place.external) for place in reply.items}


def _time(registry: Registry, plane: str, targets: list[Target]) -> float:
    started = time.perf_counter()
    registry.ask(plane, targets, PRECISE)
    return time.perf_counter() - started


def _memory(session: Session) -> int:
    """Of the server and what it started, as Linux counts it; 0 elsewhere."""
    total = 0
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
            if int(fields[2]) == session.pid:
                total += int((status.parent / "statm").read_text().split()[1]) * 4096
        except OSError:
            continue
    return round(total / 1e6)


def _find_tools() -> Path | None:
    cache = find_cache_dir()
    if cache is None:
        return None
    try:
        typescript.install(cache / "tools")
    except ProviderError:
        return cache / "tools"
    return cache / "tools"
