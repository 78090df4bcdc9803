"""`cq` alone: what is here, and what to ask next."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from cq.answers.page import Page
from cq.questions.rank import RankOptions
from cq.surfaces.cli.options import add_place_options, open_workspace
from cq.surfaces.render.progress import ProgressLine
from cq.surfaces.render.status import render_welcome

_MOST = 5  # definitions that others depend on


def configure(parser: ArgumentParser) -> None:
    add_place_options(parser)


def run(args: Namespace) -> int:
    progress = ProgressLine()
    with open_workspace(args, progress) as workspace:
        try:
            status, entry_points = workspace.status(), workspace.entry_points()
            ranks = workspace.rank(RankOptions(page=Page(_MOST)))
        finally:
            progress.clear()
    most = [row for section in ranks.sections for row in section.findings if row.location is not None][:_MOST]
    sys.stdout.write(render_welcome(status, entry_points, most))
    return 0
