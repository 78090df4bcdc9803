"""The projects that the files of a repository configure, in every language that has some."""

from __future__ import annotations

from collections.abc import Callable, Collection

from cq.language import all_languages
from cq.languages.registry import load_reader
from cq.model.project import Project


def find_projects(paths: Collection[str], read: Callable[[str], bytes | None]) -> list[Project]:
    """By path. Only what `read` gives is looked at."""
    finders = dict.fromkeys(each.projects for each in all_languages().values() if each.projects)
    return [project for finder in finders for project in load_reader(finder)(paths, read)]
