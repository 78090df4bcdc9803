"""`cq schema`: every name has a schema, the same one each time, and it says what the rows obey."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cq.model.artifact import ARTIFACTS, ROWS
from cq.model.errors import UsageError
from cq.surfaces.cli import schema
from tests.store.conftest import Index, read_rows


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    parser = ArgumentParser()
    schema.configure(parser)
    assert schema.run(parser.parse_args(argv)) == 0
    return capsys.readouterr().out


def load(capsys: pytest.CaptureFixture[str], name: str) -> dict[str, Any]:
    return msgspec.json.decode(run(capsys, name))


def test_the_names_are_listed(capsys: pytest.CaptureFixture[str]):
    listed = [line.split("|")[1].strip() for line in run(capsys).splitlines()[2:]]
    assert listed == list(schema.SCHEMAS)
    assert {*ARTIFACTS, "meta", "manifest", "export", "validate", "status"} <= set(listed)


@pytest.mark.parametrize("name", schema.SCHEMAS)
def test_every_schema_is_one(capsys: pytest.CaptureFixture[str], name: str):
    first = run(capsys, name)
    assert run(capsys, name) == first
    assert msgspec.json.decode(first)["$schema"].startswith("https://json-schema.org/")


def test_an_unknown_name_has_a_suggestion(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(UsageError, match="did you mean 'call_sites'"):
        run(capsys, "call_site")


@pytest.mark.parametrize("name", ROWS)
def test_rows_have_the_keys_of_their_schema(
    capsys: pytest.CaptureFixture[str], index: Index, tmp_path: Path, name: str
):
    described = load(capsys, name)
    definition = described["$defs"][described["$ref"].rpartition("/")[2]]
    assert definition["additionalProperties"] is False
    assert set(definition["properties"]) - set(definition["required"]) == {"truncated"}
    index.export(tmp_path / "out")
    for row in read_rows(tmp_path / "out", name):
        assert list(row) == [key for key in definition["properties"] if key in row]
        assert set(definition["required"]) <= set(row)


def test_caps_stand_in_the_schema(capsys: pytest.CaptureFixture[str]):
    described = load(capsys, "call_sites")["$defs"]
    call, argument = described["CallSiteRow"]["properties"], described["CallArgument"]["properties"]
    assert (call["args"]["maxItems"], call["argsSummary"]["maxItems"], call["evidence"]["maxItems"]) == (8, 5, 6)
    assert (argument["text"]["maxLength"], argument["depth"]["maximum"]) == (80, 2)
    assert call["evidence"]["items"]["maxLength"] == 32
    assert call["schemaVersion"]["enum"] == [1]
