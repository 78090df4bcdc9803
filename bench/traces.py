"""Which calls of real programs are linked right: the test suites of packages are run, and what called what is compared
with the links.

A suite runs once for a package, in an environment of its own, without network, within limits; what it showed is kept in
the cache of the corpora. It says what can happen, not what cannot: code that no test runs is not judged.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bench.corpora import CORPORA, CorpusError, cache_folder, fetch
from cq.indexing.refresh import Settings, refresh
from cq.model.edge import Candidate
from cq.semantics.tree import Semantics, open_semantics
from cq.store import database
from cq.store.read import Reader

SECONDS = 900  # for one suite
MEMORY = 6_000_000_000
MOST_LISTED = 60  # wrong links and missing edges of a package
_RECORDER = Path(__file__).with_name("trace_suite.py")


class Suite(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    package: str
    requires: tuple[str, ...] = ()
    tests: tuple[str, ...] = ("tests",)
    seen: bool = False


SUITES = msgspec.toml.decode(Path(__file__).with_name("traces.toml").read_bytes(), type=dict[str, Suite])


Span = tuple[int, int, int, int]  # line, column, end line, end column


class Row(msgspec.Struct, frozen=True):
    """One line of what trace_suite.py writes."""

    path: str
    span: Span
    callee: tuple[str, int, str]
    through: int


def run(results: dict[str, Any]) -> None:
    chosen = os.environ.get("CQ_BENCH_TRACES", "").split(",")
    rows: list[dict[str, Any]] = []
    missing: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    totals: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    fanouts: dict[bool, list[int]] = {True: [], False: []}
    results["wrong certain links"], results["missing edges"] = {}, {}
    for name, suite in SUITES.items():
        if chosen != [""] and name not in chosen:
            continue
        ran = record(name, suite)
        with tempfile.TemporaryDirectory() as folder, open_tree(fetch(name), Path(folder)) as (tree, semantics):
            compared = Comparison(tree, suite.package, semantics)
            compared.compare(ran)
        rows.append({"package": name, "seen": suite.seen, **rates(compared.counts, compared.fanouts)})
        totals[suite.seen].update(compared.counts)
        fanouts[suite.seen] += compared.fanouts
        missing[suite.seen].update(compared.missing)
        results["wrong certain links"][name] = compared.wrong[:MOST_LISTED]
        results["missing edges"][name] = compared.lacking[:MOST_LISTED]
    for seen, name in ((True, "all that rules were chosen by"), (False, "all unseen")):
        rows.append({"package": name, "seen": seen, **rates(totals[seen], fanouts[seen])})
    results["tables"] = {
        "edges that ran": rows,
        "what is missing, by construct": [
            {"construct": what, "seen": missing[True][what], "unseen": missing[False][what]}
            for what in sorted(missing[True] | missing[False], key=lambda what: -(missing[True] + missing[False])[what])
        ],
    }
    unseen = rates(totals[False], fanouts[False])
    results["goals"] = [
        _goal("unseen: ran and is a certain link, at least .80", unseen["certain"], unseen["certain"] >= 0.80),
        _goal("unseen: ran and is certain or a candidate, at least .92", unseen["linked"], unseen["linked"] >= 0.92),
        _goal("unseen: with reads of accessors, at least .94", unseen["with reads"], unseen["with reads"] >= 0.94),
        _goal("unseen: something else ran at a certain link, ≤ .5 %", unseen["wrong %"], unseen["wrong %"] <= 0.5),
        _goal("unseen: others ran there too, at most 1 %", unseen["others too %"], unseen["others too %"] <= 1),
        _goal("unseen: ninth tenth of a call's candidates, at most 6", unseen["9th tenth"], unseen["9th tenth"] <= 6),
    ]  # fmt: skip


def rates(counts: Counter[str], fanouts: list[int]) -> dict[str, Any]:
    edges, sites = max(counts["edges"], 1), max(counts["certain sites"], 1)
    spread = sorted(fanouts) or [0]
    return {
        "edges": counts["edges"],
        "certain": round(counts["certain"] / edges, 3),
        "linked": round((counts["certain"] + counts["possible"]) / edges, 3),
        "with reads": round((counts["certain"] + counts["possible"] + counts["read"]) / edges, 3),
        "certain sites": counts["certain sites"],
        "wrong %": round(100 * counts["wrong"] / sites, 2),
        "others too %": round(100 * counts["others too"] / sites, 2),
        "median": spread[len(spread) // 2],
        "9th tenth": spread[len(spread) * 9 // 10],
    }


def _goal(goal: str, measured: float, met: bool) -> dict[str, Any]:
    return {"goal": goal, "measured": measured, "met": met}


# -- running ----------------------------------------------------------------------------------------


def record(name: str, suite: Suite) -> list[Row]:
    corpus = CORPORA[name]
    with_python = os.environ.get("CQ_BENCH_TRACES_PYTHON", sys.executable)  # 3.12 or newer sees more
    digest = hashlib.sha256(
        with_python.encode() + _RECORDER.read_bytes() + msgspec.json.encode(suite) + corpus.sha256.encode()
    ).hexdigest()
    kept = cache_folder() / f"trace-{name}-{corpus.version}-{digest[:12]}.jsonl"
    if not kept.exists():
        with tempfile.TemporaryDirectory() as folder:
            work = Path(folder).resolve()
            shutil.copytree(fetch(name), work / "tree")
            python = _install(work, suite, with_python)
            _run_suite(work, suite, python)
            lines = {line for part in sorted(work.glob("rows.*")) for line in part.read_text().splitlines()}
        if not lines:
            raise CorpusError(f"{name}: its suite showed no calls")
        beside = kept.with_suffix(f".{os.getpid()}")
        beside.write_text("\n".join(sorted(lines)))
        beside.rename(kept)
    return msgspec.json.decode(b"[" + kept.read_bytes().replace(b"\n", b",") + b"]", type=list[Row])


def _install(work: Path, suite: Suite, with_python: str) -> str:
    python = str(work / "venv" / "bin" / "python")
    commands = [
        [with_python, "-m", "venv", str(work / "venv")],
        [python, "-m", "pip", "install", "--quiet", "pytest==8.4.2", *suite.requires],
        [python, "-m", "pip", "install", "--quiet", "--no-deps", str(work / "tree")],
    ]
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CorpusError(f"{' '.join(command[-3:])}: {done.stderr.strip().splitlines()[-1:]}")
    return python


def _run_suite(work: Path, suite: Suite, python: str) -> None:
    tree = work / "tree"
    alone = ["unshare", "--map-root-user", "--net"]  # no network, where the system lets us
    if shutil.which("unshare") is None or subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        alone = []
    command = [
        *alone, python, str(_RECORDER), str(tree / suite.package), str(work / "rows"),
        "-q", "-p", "no:cacheprovider", *suite.tests,
    ]  # fmt: skip
    path = os.pathsep.join([str((tree / suite.package).parent), str(tree)])
    env = {"PATH": os.environ.get("PATH", ""), "HOME": str(work), "PYTHONPATH": path, "LANG": "C.UTF-8"}

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))

    try:
        done = subprocess.run(
            command, cwd=tree, env=env, capture_output=True, text=True, timeout=SECONDS, check=False, preexec_fn=limit
        )
        said = (done.stdout.strip() or done.stderr.strip()).splitlines()[-1:]
        print(f"{suite.package}: exit status {done.returncode}, {' '.join(said)}", file=sys.stderr)
    except subprocess.TimeoutExpired:
        print(f"{suite.package}: cut at {SECONDS} s", file=sys.stderr)


# -- comparing --------------------------------------------------------------------------------------


@contextlib.contextmanager
def open_tree(tree: Path, folder: Path) -> Iterator[tuple[Path, Semantics]]:
    index = folder / "index.db"
    refresh(index, tree, Settings(), wait=True)
    with contextlib.closing(database.connect(index)) as connection, Reader(connection, os.fspath(tree)) as reader:
        known = reader.tree()
        assert known is not None
        yield tree, open_semantics(reader, known.id)


class Source:
    """A file of the package: positions, and what Python calls what stands there."""

    def __init__(self, path: str, text: bytes, semantics: Semantics) -> None:
        self.path, self.text, self._semantics = path, text, semantics
        self._starts = [0, *(at + 1 for at, byte in enumerate(text) if byte == 10)]

    def offset(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column

    @cached_property
    def forms(self) -> dict[tuple[int, int, int, int], ast.AST]:
        """Every node by its span, the outermost of several."""
        found: dict[tuple[int, int, int, int], ast.AST] = {}
        for node in ast.walk(self._tree):
            if isinstance(node, (ast.expr, ast.stmt)) and not isinstance(node, ast.Expr):
                span = (node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)
                found.setdefault(span, node)
        return found

    @cached_property
    def calls(self) -> dict[tuple[int, int], int]:
        """Numbers of our calls, by span."""
        return {(call.start, call.end): number for number, call in enumerate(self._facts_calls)}

    @cached_property
    def functions(self) -> dict[tuple[int, str], Candidate | None]:
        """What Python calls a function, line and name, as links call it; None where two begin on one line."""
        documents = self._semantics.documents
        names = documents.names(self.path, 0)
        by_name_start = {symbol.name_start: number for number, symbol in enumerate(documents.symbols(self.path)[0])}
        by_start = {symbol.start: number for number, symbol in enumerate(documents.symbols(self.path)[0])}
        found: dict[tuple[int, str], Candidate | None] = {}
        for node in ast.walk(self._tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                head = self.offset(node.lineno, node.col_offset)
                number = by_name_start.get(self.text.index(node.name.encode(), self.text.index(b"def", head) + 3))
                line = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                key = line, node.name
            elif isinstance(node, ast.Lambda):
                number, key = by_start.get(self.offset(node.lineno, node.col_offset)), (node.lineno, "<lambda>")
            else:
                continue
            place = Candidate(self.path, 0, names[number]) if number in names else None
            found[key] = None if key in found else place
        return found

    @cached_property
    def _tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def _facts_calls(self) -> Any:
        return self._semantics.documents.index.calls(self.path)[0]


class Edge(NamedTuple):
    caller: Candidate
    callee: Candidate


class Comparison:
    def __init__(self, tree: Path, package: str, semantics: Semantics) -> None:
        self.counts: Counter[str] = Counter()
        self.missing: Counter[str] = Counter()
        self.fanouts: list[int] = []  # how many definitions a call that ran may mean
        self.wrong: list[dict[str, str]] = []
        self.lacking: list[dict[str, str]] = []
        self._package, self._semantics = package, semantics
        self._foreign: dict[tuple[str, Span], set[str]] = defaultdict(set)  # what else ran at a place, by name
        self._sources = {
            path: Source(path, text, semantics)
            for path in semantics.documents.index.paths()
            if path.startswith(f"{package}/") and path.endswith(".py")
            for text in [(tree / path).read_bytes()]
        }

    def compare(self, rows: list[Row]) -> None:
        ran: dict[Edge, Row] = {}
        sites: dict[tuple[str, Span], set[Candidate]] = defaultdict(set)
        for row in rows:
            if not row.callee[0]:
                self._foreign[f"{self._package}/{row.path}", row.span].add(row.callee[2])
                continue
            source = self._sources.get(f"{self._package}/{row.path}")
            home = self._sources.get(f"{self._package}/{row.callee[0]}")
            callee = None if home is None else home.functions.get((row.callee[1], row.callee[2]))
            if source is None or callee is None:
                self.counts["unplaced"] += 1
                continue
            offset = source.offset(row.span[0], row.span[1])
            documents = self._semantics.documents
            caller = documents.find_around(source.path, 0, documents.find_scope(source.path, 0, offset))
            edge = Edge(caller, callee)
            ran[edge] = min(ran.get(edge, row), row, key=lambda each: (each.through, each.path, each.span))
            if not row.through:
                sites[source.path, row.span].add(callee)
        certain, possible = self._find_ours()
        for edge, row in sorted(ran.items()):
            self.counts["edges"] += 1
            if edge in certain:
                self.counts["certain"] += 1
            elif edge in possible:
                self.counts["possible"] += 1
                self._note("possible: ", edge, row)
            elif self._is_read(edge):
                self.counts["read"] += 1
            else:
                self._note("", edge, row)
        for (path, span), callees in sorted(sites.items()):
            self._judge_site(self._sources[path], span, callees)

    def _find_ours(self) -> tuple[set[Edge], set[Edge]]:
        certain: set[Edge] = set()
        possible: set[Edge] = set()
        for path in self._sources:
            for edge in self._semantics.referrers.find_all(path, 0):
                if edge.kind in ("calls", "instantiates", "decorates"):
                    into = certain if edge.ref.certainty == "certain" else possible
                    into.update(Edge(edge.source, target) for target in edge.ref.candidates)
        return certain, possible

    def _is_read(self, edge: Edge) -> bool:
        found = self._reads.get(edge.callee)
        if found is None:
            found = {read.source for read in self._semantics.usages.find_reads(edge.callee)}
            self._reads[edge.callee] = found
        return edge.caller in found

    @cached_property
    def _reads(self) -> dict[Candidate, set[Candidate]]:
        return {}

    def _judge_site(self, source: Source, span: Span, callees: set[Candidate]) -> None:
        number = source.calls.get((source.offset(*span[:2]), source.offset(*span[2:])))
        if number is None:
            return
        calls, links = self._semantics.calls, self._semantics.documents.links_of(source.path, 0)
        assert links is not None
        ref = calls.find_call(source.path, 0, number)
        refs = [ref, calls.find_constructor(source.path, 0, number), calls.find_handed(source.path, 0, number)]
        refs += [links.refs[links.runs[number]]] if number in links.runs else []
        meant = {place for each in refs if each is not None for place in each.candidates}
        self.fanouts.append(max(ref.count, 1))
        if ref.certainty != "certain" or not any(self._is_function(place) for place in meant):
            return  # what makes an instance is judged by the constructor
        sure = all(each is None or each.certainty != "possible" for each in refs)
        self.counts["certain sites"] += sure
        if not sure:
            return
        # What Python itself runs beside the callee, `__hash__` of an argument, is not what is called.
        others = {each for each in callees - meant if not _is_implied(each) or _is_implied(ref.candidates[0])}
        if others and not callees & meant:
            self.counts["wrong"] += 1
        elif others:
            self.counts["others too"] += 1
        if others:
            self.wrong.append({
                "at": f"{source.path}:{span[0]}:{span[1] + 1}", "evidence": ref.evidence,
                "ours": ", ".join(_show(place) for place in sorted(meant)),
                "ran": ", ".join(_show(place) for place in sorted(callees)),
                "code": source.text[source.offset(*span[:2]) : source.offset(*span[2:])].decode()[:80],
            })  # fmt: skip

    def _is_function(self, place: Candidate) -> bool:
        symbol = self._semantics.documents.symbol(place)
        return symbol is not None and symbol.kind_group in ("function", "method")

    def _note(self, status: str, edge: Edge, row: Row) -> None:
        source = self._sources[edge.caller.path]
        node = source.forms.get(row.span)
        construct = describe_form(node, row, edge.callee.name.rpartition(".")[2].partition("#")[0])
        if not status:
            self.missing[construct] += 1
        text = source.text[source.offset(*row.span[:2]) : source.offset(*row.span[2:])].decode()
        self.lacking.append({
            "status": f"{status}{construct}", "at": f"{edge.caller.path}:{row.span[0]}",
            "caller": edge.caller.shown_name, "callee": _show(edge.callee), "code": text[:80],
        })  # fmt: skip


def _is_implied(place: Candidate) -> bool:
    name = place.name.rpartition(".")[2].partition("#")[0]
    return name.startswith("__") and name.endswith("__") and name not in ("__init__", "__new__", "__call__")


def _show(place: Candidate) -> str:
    return f"{place.path}:{place.shown_name or '<module>'}"


def describe_form(node: ast.AST | None, row: Row, name: str) -> str:
    """The construct that made something run, for the table of what is missing."""
    if row.through:
        return "called back by another package"
    if name.startswith("__") and name.endswith("__") and name not in ("__init__", "__new__", "__call__"):
        return f"run by the language: {name}"
    match node:
        case ast.Call(func=called):
            last = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name in ("__init__", "__new__"):
                return "a class in a value"
            if name == "__call__":
                return "__call__ of an object"
            if last == name:
                return "a method" if isinstance(called, ast.Attribute) else "a function by its name"
            if isinstance(called, ast.Name):
                return "a function in a variable, or handed on"
            return (
                "a function in an attribute, or handed on" if isinstance(called, ast.Attribute) else "a result called"
            )
        case ast.Attribute():
            return "an accessor"
        case None:
            return "other"
        case _:
            return type(node).__name__


if __name__ == "__main__":
    report: dict[str, Any] = {}
    run(report)
    print(msgspec.json.format(msgspec.json.encode(report)).decode())
