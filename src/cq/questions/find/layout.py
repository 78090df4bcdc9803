"""The connection graph as text, topology first. Here and not with the surfaces, because a budget counts its tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cq.answers.page import estimate
from cq.model.find import CallNode, ConnectionGraph, FindAnswer, Node, Pattern, Snapshot, TypeUse

MAX_LISTED = 12  # names on one line
MAX_QUERY = 200  # letters of a question that are said again


def count_all(answer: FindAnswer, budget: int) -> int:
    """Tokens of the graph and the snapshots as they are printed; the number is part of what it counts."""
    rest = sum(snapshot.tokens for snapshot in answer.snapshots)
    tokens = -1
    while (used := rest + estimate(render_graph(answer, tokens, budget))) != tokens:
        tokens = used
    return tokens


def render_snapshot(snapshot: Snapshot) -> str:
    return f"// {snapshot.file}\n\n{snapshot.source}"


def show_query(query: str) -> str:
    """On one line, the beginning of a long one."""
    line = " ".join(query.split())
    return line if len(line) <= MAX_QUERY else f"{line[:MAX_QUERY]}…"


def render_graph(answer: FindAnswer, tokens: int, budget: int) -> str:
    """Summary line, graph, patterns, details; one result stands for itself."""
    graph = answer.graph
    results, files = len(answer.results), len({result.file for result in answer.results})
    count = f"{results} result{'s' * (results != 1)}" + (
        f" across {files} file{'s' * (files != 1)}" if results > 1 else ""
    )
    matches = answer.summary.get("passed", 0) if answer.summary.get("mode") == "symbol" else 0
    if matches > results:
        count = f"{results} of {matches:,} matches" + (f" across {files} files" if files > 1 else "")
    of = f"/{budget:,}" if budget else ""
    lines = [f'Search: "{show_query(answer.summary.get("query", ""))}" | {count} | {tokens:,}{of} tokens']
    if graph is None or not graph.nodes:
        return "\n".join(lines)
    lone = len(graph.nodes) == 1
    topology = _render_trees(graph.nodes) if graph.call_depth != 1 else [] if lone else _render_chains(graph.nodes)
    lines += ["", "Graph:", *(f"  {row}" for row in topology)] if topology else []
    patterns = [f"  {_render_pattern(pattern, graph)}" for pattern in graph.patterns]
    lines += ["", "Patterns:", *patterns] if patterns else []
    for node in graph.nodes:
        lines += ["", *_render_node(node, lone)]
    return "\n".join(lines)


def _render_trees(nodes: Sequence[Node]) -> list[str]:
    """The tree of calls below every result that no other result's tree holds."""
    below = {call.result for node in nodes for call in _each(node.calls) if call.result != node.rank and not call.cycle}
    rows: list[str] = []
    for node in nodes:
        if node.rank in below and any(node.rank in _ranks(other.calls) for other in nodes if other.rank not in below):
            continue
        rows.append(f"[{node.rank}] {node.name} ({_base(node.file)})")
        todo = [(1, call) for call in reversed(node.calls)]
        while todo:
            depth, call = todo.pop()
            marks = [call.mark, "[cycle]" * call.cycle, "[depth limit]" * call.depth_limit]
            place = f" ({_base(call.file)})" if call.file else ""
            rows.append("  " * depth + " ".join([f"→ {call.name}{place}", *filter(None, marks)]))
            todo += [(depth + 1, inner) for inner in reversed(call.calls)]
    return rows


def _render_chains(nodes: Sequence[Node]) -> list[str]:
    """Every call between results once, in chains that begin where nothing leads to; then the results that no call
    connects. Empty where no call connects any."""
    edges: dict[int, list[CallNode]] = {node.rank: [] for node in nodes}
    for node in nodes:
        for call in node.calls:
            if call.result not in (0, node.rank) and not any(_same(call, other) for other in edges[node.rank]):
                edges[node.rank].append(call)
    called = {call.result for calls in edges.values() for call in calls if call.result}
    linked = {rank for rank, calls in edges.items() if calls} | called
    starts = [node.rank for node in nodes if edges[node.rank] and node.rank not in called]
    rows: list[str] = []
    for rank in [*starts, *(rank for rank in edges if rank not in starts)]:
        while edges[rank]:
            chain, at = [f"[{rank}] {nodes[rank - 1].name}"], rank
            while edges[at]:
                call = edges[at].pop(0)
                chain.append(f"[{call.result}] {call.name}")
                at = call.result
            rows.append(" → ".join(chain))
    alone = [node for node in nodes if node.rank not in linked] if rows else []
    if len(alone) > 1:  # their names and kinds stand below
        return [*rows, f"standalone: {', '.join(f'[{node.rank}]' for node in alone)}"]
    return rows + [f"[{node.rank}] {node.name} (standalone {_KINDS.get(node.kind, node.kind)})" for node in alone]


_KINDS = {"const": "constant"}


def _render_pattern(pattern: Pattern, graph: ConnectionGraph) -> str:
    name = f"[{pattern.result}] {pattern.name}" if pattern.result else pattern.name
    by = ", ".join(f"[{rank}]" for rank in pattern.by)
    if pattern.kind == "hub":
        return f"Hub: {name} — called by {by}"
    if pattern.kind == "shared_dep":
        place = "" if pattern.result else f" ({pattern.file}) ◆"
        return f"Shared dep: {name}{place} — used by {by}"
    if pattern.kind == "shared_type":
        return f"Shared type: {name} ({pattern.file}) — used by {len(pattern.by)}/{len(graph.nodes)} results"
    if pattern.kind == "diamond":
        return f"Diamond: {name} → {', '.join(pattern.path[:-1])} → {pattern.path[-1]}"
    return f"Cycle: {' → '.join(pattern.path)}"


def _render_node(node: Node, lone: bool) -> list[str]:
    place = f"{node.file}:{node.line}" if node.line else node.file
    title = f"{node.name} — {place}" if lone else f"[{node.rank}] {node.name} — {place}"
    if node.same_as:
        return [f"{title}: the same code as [{node.same_as}]"]
    if node.kind == "heading":  # its signature is its title, and code does not refer to it
        return [title, "    heading"]
    refs = [] if node.unlinked else [f"refs: {node.refs} file{'s' * (node.refs != 1)}{' by name' * node.by_name}"]
    words = [word for word in node.modifiers if word not in ("export", "exported", "default")]
    rows = [" | ".join([" ".join([*words, node.kind]), *(["exported"] if node.exported else []), *refs])]
    rows += [f"Signature: {node.signature}"] if node.signature and not node.value else []
    rows += [f"Type: {node.value}"] if node.value else []
    for label, uses in (("Extends", node.extends), ("Implements", node.implements), ("Subtypes", node.subtypes)):
        rows += [f"{label}: {_list(map(_render_type, uses))}"] if uses else []
    if lone:
        for label, calls in (("Calls", node.calls), ("Called by", node.callers)):
            more = f" and {node.uncertain_calls} uncertain" if label == "Calls" and node.uncertain_calls else ""
            rows += [f"{label}: {_list(map(_render_call, calls))}{more}"] if calls else []
    flows = [
        f"{label}: {_list(map(_render_type, uses))}"
        for label, uses in (("Types in", node.types_in), ("Types out", node.types_out))
        if uses
    ]
    rows += [" | ".join(flows)] if flows else []
    rows += [f"Members: {_list(node.members)}"] if node.members else []
    return [title, *(f"    {row}" for row in rows)]


def _render_call(call: CallNode) -> str:
    marks = "".join(f" {mark}" for mark in (call.mark, "[cycle]" * call.cycle) if mark)
    return (f"{call.name} ({call.file})" if call.file else call.name) + marks


def _render_type(use: TypeUse) -> str:
    shown = f"{use.type} ({use.origin})" if use.origin else f"{use.name} ({use.type})" if use.name else use.type
    return shown + (f" → {_list(map(_render_type, use.uses))}" if use.uses else "")


def _list(words: Iterable[str]) -> str:
    rows = list(dict.fromkeys(words))
    more = len(rows) - MAX_LISTED
    return ", ".join(rows[:MAX_LISTED]) + (f", … {more} more" if more > 0 else "")


def _same(call: CallNode, other: CallNode) -> bool:
    return (call.file, call.name) == (other.file, other.name)


def _each(calls: Sequence[CallNode]) -> list[CallNode]:
    found, todo = list[CallNode](), list(calls)
    while todo:
        call = todo.pop()
        found.append(call)
        todo += call.calls
    return found


def _ranks(calls: Sequence[CallNode]) -> set[int]:
    return {call.result for call in _each(calls) if not call.cycle}


def _base(path: str) -> str:
    return path.rpartition("/")[2]
