"""Which projects a repository is made of: tsconfig.json and its like, what each extends and refers to, its files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec

from cq.answers.options import Option, Options, Paged
from cq.answers.page import Page, count_tokens, take
from cq.model.answer import (
    SCHEMA_VERSION,
    Answer,
    Finding,
    GraphEdge,
    Insight,
    ProjectDetails,
    Run,
    Section,
    Slice,
    Truncation,
)
from cq.model.project import Project
from cq.model.status import Degraded
from cq.snapshot.projects import KnownProjects

if TYPE_CHECKING:
    from cq.snapshot.files import IndexedFiles
    from cq.snapshot.snapshot import Snapshot

MAX_PROBLEMS = 20  # that are told


class ProjectsOptions(Options, frozen=True):
    """Of all projects, or of one by its file, its folder or the name of its package; then with its files."""

    examples: ClassVar[str] = """\
  cq projects                        every project with what it refers to
  cq projects packages/app           one of them, with its files
  cq projects --format mermaid       as a picture"""

    project: Annotated[
        str, Option("a tsconfig file, its folder or the name of its package (default: all)", "", "PROJECT",
                    argument=True, place="part")
    ] = ""  # fmt: skip
    page: Paged = Page(60)


def ask(snapshot: Snapshot, options: ProjectsOptions) -> Answer:
    options.page.check()
    files = snapshot.indexed
    every = KnownProjects(files).all()
    projects = [each for each in every if not options.project or each.is_called(options.project)]
    paths = [path for each in projects for path in each.files] if options.project else []
    rows: list[Project | str] = [*projects, *dict.fromkeys(paths)]
    shown, budget, cut = take(rows, options.page, lambda row: _describe_row(files, row, bool(options.project)))
    sections = [
        Section(title, title.lower(), total, listed)
        for title, total in (("Projects", len(projects)), ("Files", len(rows) - len(projects)))
        if (listed := tuple(finding for finding in shown if finding.category == title.lower()[:-1]))
    ]
    listed_paths = {each.location.path for each in shown if each.category == "project" and each.location is not None}
    problems = [
        Degraded("projects", "warning", "not_followed", f"{each.path} {problem}", each.path)
        for each in projects
        for problem in each.problems
    ]
    if len(problems) > MAX_PROBLEMS:
        cut.append(Truncation("projects", "problems", MAX_PROBLEMS, len(problems), len(problems) - MAX_PROBLEMS))
        del problems[MAX_PROBLEMS:]
    if options.project and not projects:
        problems.append(Degraded("projects", "info", "nothing", f"no project is called {options.project!r} here"))
    elif not every:
        problems.append(Degraded("projects", "info", "nothing", "there is no tsconfig.json or jsconfig.json here"))
    slices = {
        "projects": Slice(len(projects), "projects"),
        "references": Slice(sum(len(each.references) for each in projects), "references"),
        "files": Slice(len({path for each in projects for path in each.files}), "files"),
    }
    return Answer(
        SCHEMA_VERSION,
        "projects",
        Run(generation=files.generation),
        {"query": options.project or "projects", **{name: each.total for name, each in slices.items()}},
        found=len(projects),
        insight=Insight(
            None,
            slices,
            budget=msgspec.structs.replace(budget, used=count_tokens(sections, options.page.measure) + 100),
        )
        if projects
        else None,
        sections=tuple(sections),
        degraded=tuple(problems),
        truncated=tuple(cut),
        edges=tuple(_list_edges([each for each in projects if each.path in listed_paths])),
        suggestions=tuple(each.path for each in every[:5]) if options.project and not projects else (),
    )


def _describe_row(files: IndexedFiles, row: Project | str, is_one: bool) -> Finding:
    """A project, or one of its files."""
    if not isinstance(row, str):
        return _describe(files, row, is_one)
    held = files.get(row)
    return Finding("file", row, held.locate(0, 0) if held is not None else None)


def _describe(files: IndexedFiles, project: Project, is_one: bool) -> Finding:
    said = [project.name] if project.name not in (".", project.path.rpartition("/")[0]) else []
    said += [project.kind] if project.kind != "plain" else []
    said.append(f"{len(project.files):,} file{'s' * (len(project.files) != 1)}")
    for word, paths in (
        ("refers to", project.references), ("referred to by", project.referenced_by), ("extends", project.extends),
        ("workspaces", project.workspaces),
    ):  # fmt: skip
        said += [f"{word} {', '.join(paths if is_one else _shorten(paths))}"] if paths else []
    for word, place in (("out", project.out_dir), ("root", project.root_dir)):
        said += [f"{word} {place}"] if place else []
    if is_one:
        said += [f"{pattern} is {' or '.join(targets)}" for pattern, targets in project.aliases]
    details = ProjectDetails(
        project.name, project.kind, project.is_composite, project.references, project.referenced_by, project.extends,
        len(project.files), project.out_dir, project.root_dir, project.root_dirs,
        dict(project.aliases), project.workspaces, project.problems,
    )  # fmt: skip
    held = files.get(project.path)
    place = held.locate(0, 0) if held is not None else None
    return Finding("project", "; ".join(said), place, details=details, count=len(project.files))


def _shorten(paths: tuple[str, ...], most: int = 6) -> tuple[str, ...]:
    return (*paths[:most], f"{len(paths) - most} more") if len(paths) > most else paths


def _list_edges(projects: list[Project]) -> list[GraphEdge]:
    return [
        GraphEdge(project.path, target, kind, 1.0, "certain")
        for project in projects
        for kind, targets in (("refers_to", project.references), ("extends", project.extends[:1]))
        for target in targets
    ]
