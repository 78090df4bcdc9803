"""`cq schema [NAME]`: the JSON Schema of what cq writes: rows of artifacts, and answers in JSON."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import Any, TypedDict

import msgspec

from cq.answers.options import make_form
from cq.indexing.embedding import EmbedReport
from cq.indexing.ingest import IngestReport
from cq.indexing.refresh import Report
from cq.language import LanguageRow
from cq.model.answer import Answer
from cq.model.artifact import FILES, ExportReport, Row, Validation
from cq.model.config import ConfigFile, Configuration
from cq.model.errors import UsageError, suggest
from cq.model.evidence import TraceReport
from cq.model.find import FindAnswer
from cq.model.neighborhood import Bundle
from cq.model.plan import Plan
from cq.model.status import Check, Status
from cq.questions.run.steps import find_plan, find_step_names
from cq.questions.table import QUESTIONS, Question
from cq.surfaces.daemon import DaemonStatus
from cq.surfaces.render import render_json, render_table
from cq.surfaces.render.status import Cost

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


class Indexed(TypedDict):
    """What `cq index --format json` prints."""

    report: Report
    cost: Cost
    status: Status
    embedded: EmbedReport | None  # with --embed


# Name -> what it describes and where that is met. Artifacts bear their own names, answers that of the command.
SCHEMAS: dict[str, tuple[Any, str]] = {
    **{
        name: (kind, "a row of the artifact" if issubclass(kind, Row) else "a file of an export")
        for name, kind in FILES.items()
    },
    "answer": (Answer, "the answer of every question: search, calls, graph, impact, …"),
    "cq.toml": (ConfigFile, "a configuration file"),
    "config": (Configuration, "the answer of cq status --config"),
    "daemon": (DaemonStatus, "the answer of cq daemon status"),
    "doctor": (tuple[Check, ...], "the answer of cq doctor"),
    "export": (ExportReport, "the answer of cq export"),
    "find": (FindAnswer, "the answer of cq find"),
    "index": (Indexed, "the answer of cq index"),
    "ingest": (IngestReport, "the answer of cq ingest scip"),
    "ingest.trace": (TraceReport, "the answer of cq ingest trace"),
    "languages": (tuple[LanguageRow, ...], "the answer of cq languages"),
    "plan": (Plan, "a plan of cq run"),
    "q": (Answer, "the answer of cq q"),
    "snb": (Bundle, "the bundle in the answer of cq neighborhood, schema cq.snb.v1"),
    "status": (Status, "the answer of cq status"),
    "validate": (Validation, "the answer of cq validate"),
    **{f"{name}.options": (question, f"what cq {name} may be told") for name, question in QUESTIONS.items()},
}


def configure(parser: ArgumentParser) -> None:
    parser.epilog = "examples:\n  cq schema              the names\n  cq schema call_sites   one schema"
    parser.add_argument("name", metavar="NAME", nargs="?", help="what to describe; without it the names are listed")


def run(args: Namespace) -> int:
    if args.name is None:
        rows = [[name, what] for name, (_, what) in SCHEMAS.items()]
        sys.stdout.write(render_table(["name", "describes"], rows) + "\n")
        return 0
    if args.name not in SCHEMAS:
        hint = suggest(args.name, SCHEMAS, "`cq schema` lists them")
        raise UsageError(f"there is no schema {args.name!r}", hint=hint)
    kind = SCHEMAS[args.name][0]
    if kind is Plan:
        kind = find_plan(find_step_names())
    elif isinstance(kind, Question):
        kind = make_form(kind.name, kind.load_options())
    sys.stdout.write(render_json({"$schema": _DIALECT, **msgspec.json.schema(kind)}))
    return 0
