"""How often a call is linked right: our answers beside those of type checkers at the same places.

The truth is what two type checkers agree on (definitions asked over their language servers), where that is a function
or class of the tree. `pyrefly`, `ty` and `basedpyright` are used as they are found beside Python or on the PATH; two of
them are needed. A sample of calls with a fixed seed, so that two runs ask about the same places.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bench.corpora import CorpusError, fetch
from cq.graph.unit import Unit
from cq.indexing.refresh import Settings, refresh
from cq.languages.facts import extract_facts
from cq.languages.linking import link_units
from cq.languages.registry import get_language
from cq.model.edge import CONFIDENCE, SymbolRef
from cq.model.facts import FileFacts
from cq.model.source import Skip
from cq.semantics.tree import Semantics, open_semantics
from cq.source.read import decode
from cq.store import database
from cq.store.read import Reader

# Calls asked about; about a third of them go to the tree and are agreed on.
CORPORA = {"django": 11_000, "sphinx": 5_000, "sqlalchemy": 7_000}
MORE = 1_200  # calls that are asked about besides, of each kind of evidence that type checkers seldom follow
SELDOM = ("annotation", "attribute", "inferred")
SERVERS = {
    "pyrefly": ["pyrefly", "lsp"],
    "ty": ["ty", "server"],
    "basedpyright": ["basedpyright-langserver", "--stdio"],
}
SEED = 6
WINDOW = 64  # questions in flight


class Document(NamedTuple):
    path: str
    text: bytes
    facts: FileFacts


class Question(NamedTuple):
    document: Document
    number: int  # of the call
    line: int
    column: int


Symbol = tuple[str, int]  # path, number


def _place(question: Question) -> tuple[str, int]:
    return question.document.path, question.number


def run(results: dict[str, Any]) -> None:
    tables: dict[str, Any] = {}
    goals: list[dict[str, Any]] = []
    judged: dict[str, Counter[str]] = defaultdict(Counter)  # evidence -> what became of its single links
    wrong_links: list[dict[str, str]] = []
    for corpus, size in CORPORA.items():
        tree = fetch(corpus)
        documents = read_documents(tree)
        seconds, parse = measure(documents)
        ratio = seconds / parse
        with open_tree(tree) as semantics:
            questions = sample(documents, size)
            more = sample_seldom(semantics, documents, set(map(_place, questions)))
            asked = sorted([*questions, *more], key=_place)
            answers = ask_all(tree, asked)
            truth = dict(zip(map(_place, asked), find_truth(documents, asked, answers), strict=True))
            rows, right, wrong = compare(semantics, questions, truth, judged, wrong_links)
            compare(semantics, more, truth, judged, wrong_links)
            tables[f"{corpus}: calls by what they were resolved with ({', '.join(answers)} agree)"] = rows
            tables[f"{corpus}: every call of the tree"] = count(semantics, documents)
        tables[f"{corpus}: linking, one process, files already parsed"] = [
            {"what": "bare parse", "cpu s": parse, "of the parse": 1.0},
            {"what": "all links", "cpu s": seconds, "of the parse": ratio},
        ]
        goals += [
            _goal(f"{corpus}: the right target is among the candidates in at least 90 %", f"{right:.1%}", right >= 0.9),
            _goal(f"{corpus}: at most 2 % of single links are wrong", f"{wrong:.2%}", wrong <= 0.02),
            _goal(
                f"{corpus}: linked in at most 1.7 times the bare parse's cpu",
                round(seconds / parse, 2),
                seconds <= 1.7 * parse,
            ),
        ]
    tables["all: how often a single link is right, by evidence; CONFIDENCE of the model holds these"] = calibrate(
        judged
    )
    results["tables"] = tables
    results["wrong links"] = wrong_links
    results["goals"] = goals


def _goal(goal: str, measured: str | float, met: bool) -> dict[str, Any]:
    return {"goal": goal, "measured": measured, "met": met}


def read_documents(tree: Path) -> list[Document]:
    found: list[Document] = []
    for path in sorted(tree.rglob("*.py")):
        name = path.relative_to(tree).as_posix()
        source = decode(path.read_bytes(), name)
        if not isinstance(source, Skip):
            found.append(Document(name, source.text, extract_facts(source.text, "python")))
    return found


def measure(documents: list[Document]) -> tuple[float, float]:
    """Processor time of linking everything, and of the bare parse of the same files."""
    language = get_language("python")
    assert language is not None
    gc.disable()
    try:
        started = time.process_time()
        for document in documents:
            language.parse(document.text)
        parsed = time.process_time()
        link_units([Unit(d.path, d.facts.code) for d in documents if d.facts.code is not None])
        return time.process_time() - parsed, parsed - started
    finally:
        gc.enable()


@contextlib.contextmanager
def open_tree(tree: Path) -> Iterator[Semantics]:
    """As the product answers: from an index of the tree."""
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder) / "index.db"
        refresh(index, tree, Settings(), wait=True)
        with contextlib.closing(database.connect(index)) as connection, Reader(connection, os.fspath(tree)) as reader:
            known = reader.tree()
            assert known is not None
            yield open_semantics(reader, known.id)


def sample(documents: list[Document], size: int) -> list[Question]:
    places = [
        (document, number)
        for document in documents
        for number, call in enumerate(document.facts.calls)
        if call.name_start >= 0
    ]
    chosen = random.Random(SEED).sample(places, min(size, len(places)))
    chosen.sort(key=lambda place: (place[0].path, place[1]))
    return [Question(d, n, *position(d.text, d.facts.calls[n].name_start)) for d, n in chosen]


def sample_seldom(semantics: Semantics, documents: list[Document], known: set[tuple[str, int]]) -> list[Question]:
    """Single links on evidence that few of the calls above have."""
    places: dict[str, list[tuple[Document, int]]] = {evidence: [] for evidence in SELDOM}
    for document in documents:
        for number, call in enumerate(document.facts.calls):
            if call.name_start >= 0 and (document.path, number) not in known:
                ref = semantics.calls.find_call(document.path, 0, number)
                if ref.status == "resolved" and ref.evidence in places:
                    places[ref.evidence].append((document, number))
    chance = random.Random(SEED)
    chosen = [place for found in places.values() for place in chance.sample(found, min(MORE, len(found)))]
    return [Question(d, n, *position(d.text, d.facts.calls[n].name_start)) for d, n in chosen]


def position(text: bytes, offset: int) -> tuple[int, int]:
    """Line and UTF-16 column, from 0."""
    line_start = text.rfind(b"\n", 0, offset) + 1
    return text.count(b"\n", 0, offset), len(text[line_start:offset].decode().encode("utf-16-le")) // 2


# -- the servers ------------------------------------------------------------------------------------


def ask_all(tree: Path, questions: list[Question]) -> dict[str, list[list[tuple[str, int, int]]]]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    answers: dict[str, list[list[tuple[str, int, int]]]] = {}
    for name, command in SERVERS.items():
        program = shutil.which(command[0], path=path)
        if program is not None and len(answers) < 2:
            with Server([program, *command[1:]], tree) as server:
                answers[name] = server.ask(questions)
    if len(answers) < 2:
        raise CorpusError("two type checkers are needed: pip install pyrefly ty")
    return answers


class Server:
    """As much of the protocol as asking for definitions takes."""

    def __init__(self, command: list[str], tree: Path) -> None:
        self.tree = tree.resolve()
        self.process = subprocess.Popen(
            command, cwd=tree, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.sent = 0

    def __enter__(self) -> Server:
        root = self.tree.as_uri()
        self.send(
            "initialize",
            {
                "processId": os.getpid(), "rootUri": root,
                "workspaceFolders": [{"uri": root, "name": "tree"}],
                "capabilities": {"general": {"positionEncodings": ["utf-16"]}, "textDocument": {"definition": {}}},
            },
        )  # fmt: skip
        next(self.answers())
        self.notify("initialized", {})
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def ask(self, questions: list[Question], language: str = "python") -> list[list[tuple[str, int, int]]]:
        found: dict[int, list[tuple[str, int, int]]] = {}
        numbers: dict[int, int] = {}
        opened = ""
        waiting = 0
        answers = self.answers()
        for number, question in enumerate(questions):
            path = question.document.path
            if path != opened:
                while waiting:
                    waiting -= self.take(answers, numbers, found)
                if opened:
                    self.notify("textDocument/didClose", {"textDocument": {"uri": (self.tree / opened).as_uri()}})
                item = {"uri": (self.tree / path).as_uri(), "languageId": language, "version": 1,
                        "text": question.document.text.decode()}  # fmt: skip
                self.notify("textDocument/didOpen", {"textDocument": item})
                opened = path
            place = {"line": question.line, "character": question.column}
            sent = self.send(
                "textDocument/definition",
                {"textDocument": {"uri": (self.tree / path).as_uri()}, "position": place},
            )
            numbers[sent] = number
            waiting += 1
            while waiting >= WINDOW:
                waiting -= self.take(answers, numbers, found)
        while waiting:
            waiting -= self.take(answers, numbers, found)
        return [found.get(number, []) for number in range(len(questions))]

    def take(
        self, answers: Iterator[dict[str, Any]], numbers: dict[int, int], found: dict[int, list[tuple[str, int, int]]]
    ) -> int:
        answer = next(answers)
        if answer.get("id") not in numbers:
            return 0
        result = answer.get("result") or []
        places: list[tuple[str, int, int]] = []
        for place in result if isinstance(result, list) else [result]:
            uri = place.get("targetUri") or place.get("uri", "")
            start = (place.get("targetSelectionRange") or place.get("range"))["start"]
            base = self.tree.as_uri() + "/"
            if uri.startswith(base):
                places.append((uri[len(base) :], start["line"], start["character"]))
        found[numbers[answer["id"]]] = places
        return 1

    def send(self, method: str, params: Any) -> int:
        self.sent += 1
        self.write({"jsonrpc": "2.0", "id": self.sent, "method": method, "params": params})
        return self.sent

    def notify(self, method: str, params: Any) -> None:
        self.write({"jsonrpc": "2.0", "method": method, "params": params})

    def write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        body = msgspec.json.encode(message)
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def answers(self) -> Iterator[dict[str, Any]]:
        """Only answers to our questions; what the server asks is answered with nothing."""
        assert self.process.stdout is not None
        while True:
            length = 0
            while (line := self.process.stdout.readline().strip()) or not length:
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
                elif not line and self.process.poll() is not None:
                    raise CorpusError("the language server ended")
            message = msgspec.json.decode(self.process.stdout.read(length))
            if "method" in message:
                if "id" in message:
                    asked = message.get("params", {}).get("items", []) if "configuration" in message["method"] else None
                    result = None if asked is None else [None for _ in asked]
                    self.write({"jsonrpc": "2.0", "id": message["id"], "result": result})
            else:
                yield message


# -- the comparison ---------------------------------------------------------------------------------


def find_truth(
    documents: list[Document], questions: list[Question], answers: dict[str, list[list[tuple[str, int, int]]]]
) -> list[set[Symbol]]:
    """Per question the definitions that all servers name; empty where they differ or name none of the tree."""
    by_path = {document.path: document for document in documents}
    symbols: dict[str, dict[tuple[int, int], int]] = {}

    def find(place: tuple[str, int, int], name: str) -> Symbol | None:
        path, line, column = place
        document = by_path.get(path)
        if document is None:
            return None
        if path not in symbols:
            symbols[path] = {
                position(document.text, symbol.name_start): number
                for number, symbol in enumerate(document.facts.symbols)
                if symbol.kind_group in ("function", "method", "class")
            }
        number = symbols[path].get((line, column))
        if number is None:
            return None
        symbol = document.facts.symbols[number]
        if any("property" in decorator for decorator in symbol.decorators):
            return None  # what is called is not the property but what it gives
        # For a call of a class, one checker names the class and another its constructor.
        return path, symbol.parent if symbol.kind == "constructor" and symbol.name != name else number

    truth: list[set[Symbol]] = []
    for number, question in enumerate(questions):
        name = question.document.facts.calls[question.number].name
        said = [{found for place in places[number] if (found := find(place, name))} for places in answers.values()]
        truth.append(said[0] if said[0] and all(one == said[0] for one in said) else set())
    return truth


def compare(
    semantics: Semantics,
    questions: list[Question],
    truth: dict[tuple[str, int], set[Symbol]],
    singles: dict[str, Counter[str]],
    wrong: list[dict[str, str]],
) -> tuple[list[dict[str, Any]], float, float]:
    """Rows by status and evidence, and the two rates; what became of single links is added to the last two."""
    rows: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    total: Counter[str] = Counter()
    for question in questions:
        known = truth[_place(question)]
        if known:
            ref = semantics.calls.find_call(question.document.path, 0, question.number)
            judged = judge(semantics, question, ref, known)
            for counter in (rows[ref.status, ref.evidence], total, singles[ref.evidence]):
                counter.update(judged)
            if judged["wrong single"]:
                ours, call = ref.candidates[0], question.document.facts.calls[question.number]
                wrong.append({
                    "at": f"{question.document.path}:{question.line + 1}", "callee": call.callee,
                    "evidence": ref.evidence, "ours": f"{ours.path}:{ours.name}",
                    "truth": ", ".join(f"{path}:{number}" for path, number in sorted(known)),
                })  # fmt: skip
    table = [
        {"status": status, "evidence": evidence, **_rates(counter)}
        for (status, evidence), counter in sorted(rows.items())
    ]
    table.append({"status": "all", "evidence": "", **_rates(total)})
    return table, total["right"] / max(total["asked"], 1), total["wrong single"] / max(total["single"], 1)


def judge(semantics: Semantics, question: Question, ref: SymbolRef, known: set[Symbol]) -> dict[str, int]:
    places = [(place.path, semantics.documents.find_symbol(place)) for place in ref.candidates]
    single = ref.status == "resolved"
    # A class is also known by the base whose constructor it has.
    constructor = semantics.calls.find_constructor(question.document.path, 0, question.number)
    if constructor is not None:
        bases = [msgspec.structs.replace(at, name=at.name.rpartition(".")[0]) for at in constructor.candidates]
        if any((base.path, semantics.documents.find_symbol(base)) in known for base in bases):
            known = {*known, *places}
    return {
        "asked": 1,
        "right": any(place in known for place in places),
        "first": bool(places) and places[0] in known,
        "single": single,
        "wrong single": single and places[0] not in known,
        "candidates": len(places),
    }


def calibrate(singles: dict[str, Counter[str]]) -> list[dict[str, Any]]:
    """`rate` is as measured; `confidence` what to believe after so few, with one right and one wrong link more, and
    never more than .99."""
    rows: list[dict[str, Any]] = []
    for evidence in CONFIDENCE:
        links, wrong = singles[evidence]["single"], singles[evidence]["wrong single"]
        if links:
            believed = min(round((links - wrong + 1) / (links + 2), 2), 0.99)
            rows.append({
                "evidence": evidence, "single links": links, "wrong": wrong, "rate": f"{1 - wrong / links:.2%}",
                "confidence": believed, "in the product": CONFIDENCE[evidence],
            })  # fmt: skip
    return rows


def _rates(counter: Counter[str]) -> dict[str, Any]:
    asked = max(counter["asked"], 1)
    return {
        "calls": asked,
        "right among candidates": f"{counter['right'] / asked:.1%}",
        "right first": f"{counter['first'] / asked:.1%}",
        "single": counter["single"],
        "wrong single": counter["wrong single"],
        "mean candidates": counter["candidates"] / asked,
    }


def count(semantics: Semantics, documents: list[Document]) -> list[dict[str, Any]]:
    found: Counter[tuple[str, str]] = Counter()
    for document in documents:
        for number in range(len(document.facts.calls)):
            ref = semantics.calls.find_call(document.path, 0, number)
            found[ref.status, ref.evidence] += 1
    total = sum(found.values())
    return [
        {"status": status, "evidence": evidence, "calls": number, "share": f"{number / total:.1%}"}
        for (status, evidence), number in sorted(found.items())
    ]
