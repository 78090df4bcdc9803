"""How often a call in Rust is linked right: our answers beside labels that were made by reading the code.

`bench/labels/rust.jsonl` holds a random sample of the calls of the corpus (attributes left out), one a line: `path`,
`line` and `column` of the called name, `callee`, and `targets`: the definitions that it can mean, as path and line of
their names. No targets: it is `external`, or the definition is `generated` by a macro and stands in no text.
The first 270 are calls of any kind, judged by reading our answers beside the code; the others are method calls on other
values than `self`, judged before the answers were seen. A second check needs no labels: in Rust a single link whose
definition takes another number of arguments is wrong.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from bench.corpora import fetch
from cq.graph.unit import Unit
from cq.languages.facts import extract_facts
from cq.languages.linking import link_calls
from cq.model.edge import SymbolRef
from cq.model.facts import Call, FileFacts
from cq.model.source import Skip
from cq.source.read import decode

LABELS = Path(__file__).with_name("labels") / "rust.jsonl"
CORPUS = "ruff"


class Label(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str
    line: int
    column: int
    callee: str
    targets: tuple[tuple[str, int], ...] = ()
    why: str = ""  # without targets: external or generated


class Document(msgspec.Struct, frozen=True):
    text: bytes
    facts: FileFacts
    unit: Unit

    def place(self, offset: int) -> tuple[int, int]:
        start = self.text.rfind(b"\n", 0, offset) + 1
        return self.text.count(b"\n", 0, offset) + 1, offset - start + 1


def run(results: dict[str, Any]) -> None:
    documents = dict(read_documents(fetch(CORPUS)))
    started = time.process_time()
    refs = link_calls([document.unit for document in documents.values()])
    seconds = time.process_time() - started
    labels = [msgspec.json.decode(line, type=Label) for line in LABELS.read_bytes().splitlines()]
    judged = Counter[str]()
    for label in labels:
        judged.update(judge(documents, refs, label))
    statuses = Counter(ref.status for known in refs.values() for ref in known)
    total = sum(statuses.values())
    ambiguous = [len(ref.candidates) for known in refs.values() for ref in known if ref.status == "ambiguous"]
    fitting, unfit = check_arity(documents, refs)
    right, wrong = judged["right"] / judged["ours"], judged["wrong single"] / max(judged["single"], 1)
    results["tables"] = {
        f"{CORPUS}: {len(labels)} labelled calls": [dict(judged)],
        f"{CORPUS}: every call of the tree": [
            *({"status": status, "calls": n, "share": f"{n / total:.1%}"} for status, n in sorted(statuses.items())),
            {"status": "mean candidates, where ambiguous", "calls": round(sum(ambiguous) / len(ambiguous), 2)},
            {"status": "cpu seconds to link", "calls": round(seconds, 1)},
        ],
        f"{CORPUS}: single links by the number of arguments": [{"fitting": fitting, "unfit": unfit}],
    }
    results["goals"] = [
        _goal("the right target is among the candidates in at least 90 %", f"{right:.1%}", right >= 0.9),
        _goal("at most 2 % of single links are wrong", f"{wrong:.2%}", wrong <= 0.02),
        _goal("no single link takes another number of arguments", unfit, unfit == 0),
    ]


def _goal(goal: str, measured: str | float, met: bool) -> dict[str, Any]:
    return {"goal": f"{CORPUS}: {goal}", "measured": measured, "met": met}


def read_documents(tree: Path) -> Iterator[tuple[str, Document]]:
    for path in sorted(tree.rglob("*.rs")):
        name = path.relative_to(tree).as_posix()
        source = decode(path.read_bytes(), name)
        if not isinstance(source, Skip):
            facts = extract_facts(source.text, "rust")
            assert facts.code is not None
            yield name, Document(source.text, facts, Unit(name, facts.code))


def judge(documents: dict[str, Document], refs: dict[str, list[SymbolRef]], label: Label) -> dict[str, int]:
    document = documents[label.path]
    wanted = (label.line, label.column)
    (number,) = (
        number
        for number, call in enumerate(document.facts.calls)
        if call.name == label.callee and document.place(call.name_start) == wanted
    )
    ref = refs[label.path][number]
    single = ref.status == "resolved"
    places = [find_place(documents, candidate.path, candidate.name) for candidate in ref.candidates]
    is_right = any(place in label.targets for place in places)
    return {
        "labelled": 1,
        "ours": bool(label.targets),
        "right": bool(label.targets) and is_right,
        "single": single,
        "wrong single": single and not is_right,
        "called external though ours": bool(label.targets) and ref.status == "external",
        "candidates though not ours": not label.targets and bool(places),
    }


def find_place(documents: dict[str, Document], path: str, name: str) -> tuple[str, int]:
    document = documents[path]
    symbols = {known: symbol for symbol, known in document.unit.qualified_names.items()}
    symbol = symbols.get(name)
    return path, 0 if symbol is None else document.place(document.facts.symbols[symbol].name_start)[0]


def check_arity(documents: dict[str, Document], refs: dict[str, list[SymbolRef]]) -> tuple[int, int]:
    found = Counter[bool]()
    for path, document in documents.items():
        for call, ref in zip(document.facts.calls, refs[path], strict=True):
            if ref.status == "resolved" and call.kind == "call":
                expected = count_parameters(documents[ref.candidates[0].path].unit, ref.candidates[0].name, call)
                if expected >= 0:
                    found[expected == call.arg_count] += 1
    return found[True], found[False]


def count_parameters(unit: Unit, name: str, call: Call) -> int:
    """That are written in the call; -1 where that cannot be said."""
    for definition in unit.code.definitions:
        if unit.qualified_names.get(definition.symbol) == name and definition.kind in ("function", "struct", "variant"):
            parameters = definition.parameters
            takes_self = definition.kind == "function" and [p.name for p in parameters[:1]] == ["self"]
            return len(parameters) - (takes_self and not call.callee.endswith(f"::{call.name}"))
    return -1
