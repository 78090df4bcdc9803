"""What is handed out: one pure wheel that works by itself, its version, and the list of what it is made of."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

import cq

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode and "hatchling" in done.stderr:
        pytest.skip("the build backend cannot be fetched here")
    assert done.returncode == 0, done.stderr
    (found,) = out.glob("*.whl")
    return found


def test_one_pure_wheel_with_its_extras_named(wheel: Path):
    assert wheel.name == f"cq_code-{cq.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(next(name for name in names if name.endswith("METADATA"))).decode()
    sources = {
        f"cq/{path.relative_to(ROOT / 'src/cq').as_posix()}"
        for path in (ROOT / "src" / "cq").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert sources <= names
    assert any(name.endswith("/share/man/man1/cq.1") for name in names)
    assert {"mcp", "python"} <= set(re.findall(r"^Provides-Extra: (\w+)$", metadata, re.MULTILINE))


def test_the_wheel_works_by_itself(wheel: Path, tmp_path: Path):
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "db.py").write_text("def save(row): ...\n")
    unpacked = tmp_path / "site"
    environment = {**os.environ, "PYTHONPATH": str(unpacked), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(unpacked)
    script = (
        "import cq, sys; assert cq.__file__.startswith(sys.argv.pop(1));"
        "from cq.surfaces.client import main; sys.exit(main())"
    )
    for words in (["--version"], ["search", "save"], ["calls", "save"], ["q", "entity=function"]):
        done = subprocess.run(
            [sys.executable, "-c", script, str(unpacked), *words], cwd=tmp_path / "repo", env=environment,
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode in (0, 1), done.stderr
        assert done.stdout


def test_the_version_is_in_the_changelog():
    changelog = (ROOT / "CHANGELOG.md").read_text()
    heads = re.findall(r"^## (.+)$", changelog, re.MULTILINE)
    assert next(head for head in heads if head != "Unreleased") == cq.__version__
    # An entry of a released version is one line that a user understands.
    released = changelog[changelog.index(f"## {cq.__version__}") :].splitlines()
    assert [line for line in released if not re.match(r"##|- |$|The first version", line) or len(line) > 130] == []
    assert re.fullmatch(r"\d+\.\d+\.\d+", cq.__version__)


def test_what_it_is_made_of_is_listed():
    bom = _load_sbom().make_sbom()
    assert bom == _load_sbom().make_sbom()
    assert (bom["bomFormat"], bom["specVersion"]) == ("CycloneDX", "1.6")
    own = bom["metadata"]["component"]
    assert (own["name"], own["version"]) == ("cq-code", cq.__version__)
    scopes = {part["purl"].partition("@")[0].rpartition("/")[2]: part["scope"] for part in bom["components"]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for requirement in project["dependencies"]:
        assert scopes[_name(requirement)] == "required"
    for extra in ("mcp", "python"):
        for requirement in project["optional-dependencies"][extra]:
            assert _name(requirement) in scopes
    assert scopes["mcp"] == "optional"
    assert "pytest" not in scopes
    refs = {own["bom-ref"], *(part["bom-ref"] for part in bom["components"])}
    assert {row["ref"] for row in bom["dependencies"]} == refs
    assert all(set(row["dependsOn"]) <= refs for row in bom["dependencies"])
    assert json.dumps(bom)


def _name(requirement: str) -> str:
    found = re.match(r"[\w.-]+", requirement)
    assert found is not None
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def _load_sbom() -> Any:
    spec = importlib.util.spec_from_file_location("sbom", ROOT / "packaging" / "sbom.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
