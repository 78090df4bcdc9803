"""Files that an option or a setting names: only those below the root are read, and no link leads to another."""

from __future__ import annotations

from pathlib import Path

import pytest

from cq import ArchitectureOptions, CqError, RiskOptions, Workspace
from cq.model.source import Skip
from cq.source.read import read_bytes

SECRET = "the_secret_of_elsewhere"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "secret.toml").write_text(f'{SECRET} = 1\n[[rules]]\nid = "{SECRET}"\n')
    root = tmp_path / "repo"
    root.mkdir()
    (root / "a.py").write_text("def f(): ...\n")
    (root / "link.toml").symlink_to(tmp_path / "secret.toml")
    return root


@pytest.mark.parametrize("name", ["../secret.toml", "link.toml", "x/../../secret.toml", "/etc/passwd"])
def test_no_option_and_no_setting_reads_outside_of_the_root(root: Path, tmp_path: Path, name: str):
    assert isinstance(read_bytes(str(root), name, 1000), Skip)
    for options in (
        ArchitectureOptions(rules=name),
        ArchitectureOptions(suggest=False, rules="", baseline=name),
        RiskOptions(baseline=name),
    ):
        with Workspace.open(root, index_dir=tmp_path / "i") as workspace, pytest.raises(CqError) as raised:
            workspace.ask(options)
        assert SECRET not in str(raised.value)
    (root / "cq.toml").write_text(f'[risk]\nrules = ["{name}"]\n')
    with Workspace.open(root, index_dir=tmp_path / "j") as workspace, pytest.raises(CqError) as raised:
        workspace.risk()
    assert SECRET not in str(raised.value)
