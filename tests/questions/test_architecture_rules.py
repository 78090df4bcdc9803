"""Which rules of architecture hold: kinds of rules, exceptions, baselines, and rules that can never fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cq import ArchitectureOptions, Workspace
from cq.model.answer import Answer, ViolationDetails
from cq.model.errors import ConfigError, CqError, UsageError
from cq.questions.architecture.check import find_cut
from cq.surfaces.cli import main
from cq.surfaces.render.sarif import render_sarif
from tests.support.fixture import parse_fixture

FILES = """
#- app/__init__.py
#- app/web/__init__.py
#- app/web/pages.py
from app.core import store
from app.core.inner import hidden
import requests
#- app/core/__init__.py
#- app/core/store.py
from typing import TYPE_CHECKING
from app import tools
if TYPE_CHECKING:
    from app.web import pages
class Base: ...
#- app/core/inner.py
def hidden(): ...
#- app/tools.py
def load():
    from app.jobs import run
    return run()
#- app/jobs.py
from app.web.pages import store
from app.core.store import Base
class Job(Base): ...
def run(): ...
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    for path, text in parse_fixture(FILES).files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def ask(root: Path, written: str, **more: Any) -> Answer:
    (root / "cq.toml").write_text(f'[architecture.groups]\nweb = "app.web"\ncore = ["app/core/**"]\n{written}')
    with Workspace.open(root, index_dir=root.parent / "index") as workspace:
        return workspace.architecture(ArchitectureOptions(**more))


def rule(text: str) -> str:
    return f'[[architecture.rules]]\nid = "r"\n{text}\n'


def find_ways(answer: Answer) -> list[str]:
    found = [finding.details for section in answer.sections for finding in section.findings]
    return [
        " > ".join([each.witness[0].location.path, *(step.says.removeprefix("imports ") for step in each.witness)])
        for each in found
        if isinstance(each, ViolationDetails)
    ]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('kind = "forbidden"\nfrom = ["core"]\nto = ["web"]', ["app/core/store.py > app/web/pages.py"]),
        ('kind = "forbidden"\nfrom = ["core"]\nto = ["web"]\ntypes = false', []),
        (
            'kind = "forbidden"\nfrom = ["core"]\nto = ["web"]\ntypes = false\nindirect = true',
            ["app/core/store.py > app/tools.py > app/jobs.py > app/web/pages.py"],
        ),
        ('kind = "forbidden"\nfrom = ["web"]\nto = ["requests"]', ["app/web/pages.py > requests"]),
        (
            'kind = "forbidden"\nfrom = ["app.jobs"]\nto = ["core"]\nedges = ["inherits"]',
            ["app/jobs.py > app/jobs.py:Job inherits app/core/store.py:Base"],
        ),
        (
            'kind = "layers"\nlayers = ["web", "core"]',
            [
                "app/core/store.py > app/web/pages.py",
                "app/core/store.py > app/tools.py > app/jobs.py > app/web/pages.py",
            ],
        ),
        (
            'kind = "layers"\nlayers = ["app.jobs", "app.tools | core"]\nindirect = false',
            ["app/core/store.py > app/tools.py", "app/tools.py > app/jobs.py"],
        ),
        (
            'kind = "independent"\ngroups = ["app.tools", "app.core.inner"]',
            ["app/tools.py > app/jobs.py > app/web/pages.py > app/core/inner.py"],
        ),
        (
            'kind = "only_through"\nto = ["core"]\ndoor = ["app.core.store"]',
            ["app/web/pages.py > app/core/inner.py"],
        ),
        (
            'kind = "acyclic"\ntypes = false',
            ["app/core/store.py > app/tools.py > app/jobs.py > app/core/store.py"],
        ),
        (
            'kind = "acyclic"\ntypes = false\nlevel = "directory"\ngroups = ["web", "core"]',
            [],
        ),
    ],
)
def test_what_breaks_a_rule(root: Path, text: str, wanted: list[str]):
    assert sorted(find_ways(ask(root, rule(text)))) == sorted(wanted)


def test_a_cycle_says_the_fewest_arrows_to_cut(root: Path):
    answer = ask(root, rule('kind = "acyclic"\ntypes = false'))
    (finding,) = answer.sections[0].findings
    assert isinstance(finding.details, ViolationDetails)
    assert len(finding.details.cut) == 1
    assert finding.location is not None


def test_the_fewest_arrows_of_large_and_small_groups():
    ring = {str(at): [str((at + 1) % 12)] for at in range(12)}
    assert len(find_cut(ring)) == 1
    both = ring | {"0": ["1", "11"], "5": ["6", "4"]}
    assert len(find_cut(both)) == 2
    large = {str(at): [str((at + 1) % 40)] for at in range(40)}
    assert len(find_cut(large)) == 1
    assert find_cut({"a": ["b"], "b": []}) == []


EXCEPTED = 'kind = "forbidden"\nfrom = ["core"]\nto = ["web"]\nexceptions = [{{ from = "app.core.store", to = "web", reason = "old", until = "{}" }}]'  # noqa: E501


def test_exceptions_hold_until_their_day(root: Path):
    assert ask(root, rule(EXCEPTED.format("9999-01-01"))).found == 0
    ended = ask(root, rule(EXCEPTED.format("2020-01-01")))
    assert ended.found == 1
    assert [event.message for event in ended.degraded] == [
        "rule 'r': the exception app.core.store -> web ended on 2020-01-01"
    ]
    unused = ask(root, rule(EXCEPTED.format("").replace('to = "web", reason', 'to = "app.jobs", reason')))
    assert "nothing needs the exception" in unused.degraded[0].message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('kind = "forbidden"\nfrom = ["core"]\nto = ["nobody"]', "nothing here is 'nobody'"),
        ('kind = "forbidden"\nfrom = ["core"]\nto = ["app"]', "is in `from` and in `to`"),
        ('kind = "layers"\nlayers = ["web", "app"]', "is in 'web' and in 'app'"),
        ('kind = "layers"\nlayers = ["web"]', "one layer alone"),
        ('kind = "layers"\nlayers = ["web", "core"]\ndoor = ["app"]', "layers takes no `door`"),
        ('kind = "forbidden"\nfrom = ["core"]', "forbidden needs `to`"),
        ('kind = "only_through"\nto = ["core"]\ndoor = ["web"]', "no door is in core"),
        ('kind = "sideways"', "rules"),
        ('kind = "acyclic"\nlayer = ["a"]', "unknown key"),
        (
            'kind = "forbidden"\nfrom = ["core"]\nto = ["web"]\n'
            'exceptions = [{ from = "core", to = "web", reason = " " }]',
            "needs a `reason`",
        ),
        ('kind = "acyclic"\n[[architecture.rules]]\nid = "r"\nkind = "acyclic"', "two rules are called 'r'"),
    ],
)  # fmt: skip
def test_a_rule_that_can_never_fail_is_an_error(root: Path, text: str, message: str):
    with pytest.raises(CqError, match=message):
        ask(root, rule(text))


def test_no_rules_and_too_many(root: Path):
    with pytest.raises(ConfigError, match="there are no rules"):
        ask(root, "")
    many = "".join(f'[[rules]]\nid = "r{at}"\nkind = "acyclic"\n' for at in range(100_000))
    (root / "many.toml").write_text(many)
    with pytest.raises(ConfigError, match="100,000 rules are too many"):
        ask(root, "", rules="many.toml")
    with pytest.raises(UsageError, match="no rule is called 'q'"):
        ask(root, rule('kind = "acyclic"'), rule="q")


def test_a_baseline_lets_only_what_is_new_fail_and_shrinks(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    ask(root, rule('kind = "forbidden"\nfrom = ["core"]\nto = ["web"]'))
    monkeypatch.chdir(root)
    argv = ["architecture", "--fail-on-violation", f"--index-dir={root.parent / 'index'}"]
    assert main(argv) == 3
    known = [*argv, "--baseline", "known.json"]
    assert main(known) == 3  # nothing was known yet: now it is
    assert len(json.loads((root / "known.json").read_text())["fingerprints"]) == 1
    assert main(known) == 1
    (root / "app/core/inner.py").write_text("import app.web.pages\n")
    assert main(known) == 3
    (root / "app/core/inner.py").write_text("")
    store = (root / "app/core/store.py").read_text()
    (root / "app/core/store.py").write_text(store.replace("from app.web import pages", "pass"))
    assert main(known) == 1
    assert json.loads((root / "known.json").read_text()) == {"fingerprints": []}
    capsys.readouterr()


def test_contracts_of_import_linter(root: Path):
    (root / ".importlinter").write_text(
        "[importlinter]\nroot_package=app\n"
        "[importlinter:contract:1]\nname=Apart\ntype=independence\nmodules=\n  app.tools\n  app.core.inner\n"
        "[importlinter:contract:2]\nname=Up\ntype=layers\nlayers=\n  web\n  core\n  (nothing)\ncontainers=\n  app\n"
        "[importlinter:contract:3]\nname=No\ntype=forbidden\nsource_modules=\n  app.core\n"
        "forbidden_modules=\n  app.jobs\n"
        "ignore_imports=\n  app.tools -> app.jobs\n"
        "[importlinter:contract:4]\nname=Odd\ntype=made_up\n"
    )
    answer = ask(root, "", source="import-linter")
    assert answer.summary["rules"] == {"contract-1": 1, "contract-2-1": 2, "contract-3": 0}
    assert [event.message for event in answer.degraded] == ["Odd: contracts of type made_up are not read"]


def test_what_is_suggested_holds(root: Path):
    (root / "app/tools.py").write_text("def load(): ...\n")
    with Workspace.open(root, index_dir=root.parent / "index") as workspace:
        answer = workspace.architecture(ArchitectureOptions(suggest=True))
        (root / "suggested.toml").write_text(answer.sections[0].findings[0].details.source)  # pyright: ignore
        assert workspace.architecture(ArchitectureOptions(rules="suggested.toml")).found == 0


def test_sarif(root: Path):
    log = json.loads(render_sarif(ask(root, rule('kind = "forbidden"\nfrom = ["core"]\nto = ["web"]\nreason = "why"'))))
    (run,) = log["runs"]
    assert [each["id"] for each in run["tool"]["driver"]["rules"]] == ["r"]
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "app/core/store.py"
