"""Projects of TypeScript: tsconfig files, what they extend and refer to, workspaces."""

from __future__ import annotations

from pathlib import Path

import pytest

from cq import Answer, ProjectsOptions, QueryError, Workspace
from cq.languages.projects import find_projects
from cq.model.project import Project
from tests.support.checks import open_fixture

SOLUTION = """
//- tsconfig.json
{ "files": [], "references": [{ "path": "./shared" }, { "path": "./app/tsconfig.json" }] } // a list of others
//- tsconfig.base.json
{ "compilerOptions": { "composite": true, "outDir": "${configDir}/dist", /* for all */ "strict": true, }, }
//- shared/package.json
{ "name": "@acme/shared" }
//- shared/tsconfig.json
{ "extends": "../tsconfig.base.json", "compilerOptions": { "rootDir": "src" }, "include": ["src"] }
//- shared/src/types.ts
export interface User { id: string }
//- shared/src/util.ts
import { User } from "./types";
export function name(u: User) { return u.id; }
//- shared/src/types.d.ts
export type Declared = string;
//- shared/other.ts
export const other = 1;
//- app/tsconfig.json
{ "extends": ["../tsconfig.base"], "references": [{ "path": "../shared" }], "exclude": ["**/*.spec.ts", "dist"],
  "compilerOptions": { "paths": { "@acme/*": ["../*/src"] } } }
//- app/main.ts
export function main() {}
//- app/main.spec.ts
export function test() {}
//- app/dist/main.ts
export function built() {}
//- app/deep/.hidden/a.ts
export const hidden = 1;
"""


def find(files: dict[str, str]) -> dict[str, Project]:
    def read(path: str) -> bytes | None:
        return files[path].encode() if path in files else None

    return {project.path: project for project in find_projects(list(files), read)}


def test_a_solution_with_its_projects(tmp_path: Path):
    with open_fixture(tmp_path, SOLUTION) as workspace:
        answer = workspace.projects()
        app = workspace.projects("app")
    said = {
        finding.location.path: finding.message
        for section in answer.sections
        for finding in section.findings
        if finding.location
    }
    assert said == {
        "tsconfig.json": "solution; 0 files; refers to shared/tsconfig.json, app/tsconfig.json",
        "tsconfig.base.json": "base; 0 files; out dist",
        "shared/tsconfig.json": (
            "@acme/shared; composite; 2 files; referred to by app/tsconfig.json, tsconfig.json;"
            " extends tsconfig.base.json; out shared/dist; root shared/src"
        ),
        "app/tsconfig.json": (
            "composite; 1 file; refers to shared/tsconfig.json; referred to by tsconfig.json;"
            " extends tsconfig.base.json; out app/dist"
        ),
    }
    assert [finding.message for section in app.sections if section.kind == "files" for finding in section.findings] == [
        "app/main.ts"
    ]
    assert {(edge.source, edge.kind, edge.target) for edge in app.edges} == {
        ("app/tsconfig.json", "refers_to", "shared/tsconfig.json"),
        ("app/tsconfig.json", "extends", "tsconfig.base.json"),
    }


@pytest.mark.parametrize("name", ["shared", "shared/tsconfig.json", "@acme/shared"])
def test_a_query_about_one_project(name: str, tmp_path: Path):
    with open_fixture(tmp_path, SOLUTION) as workspace:
        assert _names(workspace.q(f"entity=function project={name}")) == ["name"]
        assert _names(workspace.q(f"entity=function not project={name}")) == ["built", "main", "test"]
        assert _names(workspace.q("entity=function project=.")) == ["main", "name"]


def test_a_project_that_is_not_there(tmp_path: Path):
    with open_fixture(tmp_path, SOLUTION) as workspace:
        with pytest.raises(QueryError, match="no project is called that") as caught:
            workspace.q("entity=function project=sharde")
        assert "shared" in (caught.value.hint or "")
        answer = workspace.projects(ProjectsOptions("nowhere"))
    assert answer.found == 0
    assert "no project is called 'nowhere'" in answer.degraded[0].message


def test_a_repository_without_projects(tmp_path: Path):
    with open_fixture(tmp_path, "//- a.ts\nexport const a = 1;\n") as workspace:
        assert workspace.projects().found == 0


def _names(answer: Answer) -> list[str]:
    details = [finding.details for section in answer.sections for finding in section.findings]
    return sorted(name for each in details if (name := getattr(each, "name", "")))


def test_what_is_extended_from_packages_and_from_many():
    projects = find({
        "a/tsconfig.json": '{"extends": ["@acme/config/lib.json", "./base.json", "@tsconfig/node18"]}',
        "a/base.json": '{"compilerOptions": {"outDir": "one", "rootDirs": ["x", "../y"]}}',
        "config/package.json": '{"name": "@acme/config"}',
        "config/lib.json": '{"extends": "./deeper.json", "compilerOptions": {"outDir": "two", "allowJs": true}}',
        "config/deeper.json": '{"compilerOptions": {"customConditions": ["source"]}}',
        "a/x.js": "", "a/node_modules/p/y.ts": "",
    })  # fmt: skip
    project = projects["a/tsconfig.json"]
    assert project.extends == ("a/base.json", "config/lib.json", "config/deeper.json")
    assert (project.out_dir, project.root_dirs, project.conditions) == ("a/one", ("a/x", "y"), ("source",))
    assert project.files == ("a/x.js",)
    assert project.problems == ("extends '@tsconfig/node18', which is not in the repository",)
    assert projects["a/base.json"].kind == "base"


def test_bad_input_is_told_and_bounded():
    deep = "[" * 100_000
    projects = find({
        "tsconfig.json": '{"extends": "./tsconfig.b.json", "references": [{"path": "../out"}, {"path": "."},'
        ' {"path": 1}]}',
        "tsconfig.b.json": '{"extends": "./tsconfig.json", "include": ["../../**"], "files": ["gone.ts"]}',
        "tsconfig.c.json": "{ nonsense", "tsconfig.d.json": deep, "tsconfig.e.json": "[1]",
        "tsconfig.f.json": '{"compilerOptions": {"paths": {"*": ["../../../etc/*"]}, "outDir": "../../x"}}',
        "a.ts": "",
    })  # fmt: skip
    assert any("which leads back" in problem for problem in projects["tsconfig.json"].problems)
    assert any("'../out'" in problem for problem in projects["tsconfig.json"].problems)
    assert projects["tsconfig.c.json"].problems[0].startswith("is no JSON")
    assert projects["tsconfig.d.json"].problems[0].startswith("is no JSON")
    assert projects["tsconfig.f.json"].aliases == (("*", ()),)
    assert projects["tsconfig.f.json"].out_dir == ""


def test_workspaces_of_npm_and_pnpm():
    projects = find({
        "tsconfig.json": "{}", "package.json": '{"name": "root", "workspaces": {"packages": ["packages/*", "../out"]}}',
        "pnpm-workspace.yaml": "packages:\n  - 'apps/**'\n  - \"!apps/old\"\ncatalog:\n  - no/*\n",
        "packages/a/package.json": "{}", "packages/a/tsconfig.json": "{}", "packages/b/package.json": "{}",
        "apps/x/y/package.json": "{}", "apps/old/package.json": "{}", "no/z/package.json": "{}",
    })  # fmt: skip
    root = projects["tsconfig.json"]
    assert root.workspaces == ("packages/a/tsconfig.json", "packages/b/package.json", "apps/x/y/package.json")
    assert root.name == "root"
    assert root.problems == ("the workspace '../out' leads out of the repository",)


@pytest.mark.parametrize(
    ("include", "files"),
    [
        (["src"], ["src/a.ts", "src/b/c.tsx"]),
        (["src/*"], ["src/a.ts"]),
        (["src/**/*.tsx"], ["src/b/c.tsx"]),
        (["./**/*"], ["src/a.ts", "src/b/c.tsx", "top.ts"]),
        (["sr?/a.ts"], ["src/a.ts"]),
        (["src/b/c.tsx", "top.*"], ["src/b/c.tsx", "top.ts"]),
        ([], []),
    ],
)
def test_what_include_means(include: list[str], files: list[str]):
    texts = dict.fromkeys(("src/a.ts", "src/b/c.tsx", "top.ts", "src/.x/d.ts", "srcs/e.txt"), "")
    config = f'{{"include": {include}}}'.replace("'", '"')
    assert list(find({**texts, "tsconfig.json": config})["tsconfig.json"].files) == files


def test_the_same_bytes_every_time(tmp_path: Path):
    with open_fixture(tmp_path, SOLUTION) as workspace:
        first = workspace.projects()
    with Workspace.open(tmp_path / "repo", index_dir=tmp_path / ".again") as workspace:
        assert workspace.projects().sections == first.sections
