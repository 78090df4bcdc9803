"""Configuration: which source wins, and that a file of a stranger can do no harm."""

from __future__ import annotations

from pathlib import Path

import pytest

from cq import Workspace
from cq.indexing.config import MAX_CONFIG_BYTES, config_schema, load_config, make_settings
from cq.indexing.refresh import Settings
from cq.model.config import IndexConfig
from cq.model.errors import ConfigError, CqError, UsageError


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CQ_INDEX_DIR", raising=False)
    monkeypatch.delenv("CQ_ROOT", raising=False)


def check_error(root: Path, text: str, *says: str, name: str = "cq.toml", kind: type[CqError] = ConfigError) -> None:
    (root / name).write_text(text)
    with pytest.raises(kind) as caught:
        load_config(root)
    assert all(part in str(caught.value) for part in says), str(caught.value)
    assert "\n" not in str(caught.value)


def test_without_a_file_everything_is_default(tmp_path: Path):
    config = load_config(tmp_path)
    assert config.index == IndexConfig()
    assert {setting.source for setting in config.settings} == {"default"}
    # The two structs that hold these numbers agree.
    assert make_settings(config.index) == Settings()


def test_each_source_overrules_the_one_behind_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "cq.toml").write_text('# mine\n[index]\njobs = 3\nmax_files = 9\nexclude = ["gen/"]\ndir = ".cq"\n')
    config = load_config(tmp_path, {"jobs": 1})
    assert (config.index.jobs, config.index.max_files, config.index.exclude) == (1, 9, ("gen/",))
    sources = {s.name: s.source for s in config.settings if not s.name.startswith(("find.", "risk."))}
    assert sources == {
        "root": "default",
        "index.include": "default",
        "index.exclude": "cq.toml:5",
        "index.max_file_bytes": "default",
        "index.max_files": "cq.toml:4",
        "index.jobs": "flag",
        "index.memory_mb": "default",
        "index.dir": "cq.toml:6",
        "providers.allow": "default",
        "providers.deny": "default",
        "providers.order": "default",
        "providers.timeout": "default",
        "providers.retries": "default",
        "providers.breaker": "default",
        "providers.max_files": "default",
        "providers.max_file_bytes": "default",
        "providers.doctor_on_build": "default",
        "history.max_mb": "default",
    }
    monkeypatch.setenv("CQ_INDEX_DIR", "/env")
    assert (load_config(tmp_path).index.dir, load_config(tmp_path).source("index.dir")) == (
        "/env",
        "environment CQ_INDEX_DIR",
    )
    config = load_config(tmp_path, index_dir="/flag")
    assert (config.index.dir, config.source("index.dir")) == ("/flag", "flag")


def test_the_table_in_pyproject(tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n\n[tool.cq.index]\nmax_file_bytes = 1000\n')
    config = load_config(tmp_path)
    assert config.index.max_file_bytes == 1000
    assert config.source("index.max_file_bytes") == "pyproject.toml:5"
    assert config.notes == ()


def test_language_servers_of_the_repository(tmp_path: Path):
    (tmp_path / "cq.toml").write_text(
        '[providers]\ndeny = ["ty"]\n[providers.lsp.gopls]\ncmd = ["gopls"]\nlanguages = ["go"]\n'
    )
    config = load_config(tmp_path)
    assert config.providers.deny == ("ty",)
    assert config.providers.lsp["gopls"].cmd == ("gopls",)


def test_of_two_files_ours_holds_and_that_is_said(tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text("[tool.cq.index]\njobs = 5\nmax_files = 5\n")
    (tmp_path / "cq.toml").write_text("[index]\njobs = 2\n")
    config = load_config(tmp_path)
    assert (config.index.jobs, config.index.max_files) == (2, 1_000_000)
    assert len(config.notes) == 1
    assert "not used" in config.notes[0]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[index]\njobs = 1\nexlude = []\n", ("cq.toml:3", "'index.exlude'", "did you mean 'exclude'?")),
        ("\n[indx]\njobs = 1\n", ("cq.toml:2", "'indx'", "did you mean 'index'?")),
        ("zzz = 1\n", ("cq.toml:1", "'zzz'", "there are index")),
        ('[index]\njobs = "two"\n', ("cq.toml:2", "index.jobs", "int")),
        ("index.jobs = true\n", ("cq.toml:1", "index.jobs", "bool")),
        ("index = { jobs = 100000 }\n", ("cq.toml:1", "index.jobs", "256")),
        ('[index]\n\nexclude = "gen/"\n', ("cq.toml:3", "index.exclude", "array")),
        ('[index]\ninclude = ["a", 3]\n', ("cq.toml:2", "index.include", "str")),
        ("[providers]\nalow = []\n", ("cq.toml:2", "'providers.alow'", "did you mean 'allow'?")),
        (
            '[providers.lsp.x]\ncmd = ["x"]\nlanguage = ["c"]\n',
            ("'providers.lsp.language'", "did you mean 'languages'?"),
        ),
        ("index = 3\n", ("cq.toml:1", "index", "object")),
        ("[index\n", ("cq.toml", "line 1")),
        ("a = " + "[" * 20_000, ("cq.toml",)),
        ('[index]\nexclude = ["../x"]\n', ("cq.toml:2", "index.exclude", "leaves the root")),
        ('[index]\ninclude = ["*.{py,ts}"]\n', ("cq.toml:2", "index.include", "braces")),
        ('[index]\ndir = "/etc"\n', ("cq.toml:2", "index.dir", "leaves the root", "--index-dir")),
        ('[index]\ndir = "a/../../b"\n', ("cq.toml:2", "leaves the root")),
    ],
)
def test_what_a_file_may_not_say(tmp_path: Path, text: str, says: tuple[str, ...]):
    check_error(tmp_path, text, *says)


def test_an_unknown_key_in_pyproject(tmp_path: Path):
    text = '[tool.other]\nexlude = 1\n\n[tool.cq.index]\nexlude = ["x"]\n'
    check_error(tmp_path, text, "pyproject.toml:5", "'tool.cq.index.exlude'", "'exclude'", name="pyproject.toml")
    check_error(tmp_path, "[tool]\ncq = 3\n", "pyproject.toml:2", "tool.cq", "object", name="pyproject.toml")


def test_someone_elses_broken_pyproject_is_not_our_error(tmp_path: Path):
    for text in ("[tool.poetry\n", "tool = 3 # cq\n", "name = 'cq'\n[broken"):
        (tmp_path / "pyproject.toml").write_text(text)
        assert load_config(tmp_path).index == IndexConfig()
    assert load_config(tmp_path).notes == ("pyproject.toml is broken; cq takes nothing from it",)
    check_error(tmp_path, "[tool.cq.index]\njobs = \n", "pyproject.toml", "line 2", name="pyproject.toml")


def test_a_file_that_is_too_large_a_link_or_no_text(tmp_path: Path):
    check_error(tmp_path, "#" * (MAX_CONFIG_BYTES + 1), "cq.toml is not read", "too large")
    (tmp_path / "cq.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="UTF-8"):
        load_config(tmp_path)
    (tmp_path / "cq.toml").unlink()
    (tmp_path / "cq.toml").symlink_to("/etc/hostname")
    with pytest.raises(ConfigError, match="link"):
        load_config(tmp_path)


def test_a_directory_that_leads_out_through_a_link(tmp_path: Path):
    root = tmp_path / "repo"
    root.mkdir()
    (root / "way").symlink_to(tmp_path)
    check_error(root, '[index]\ndir = "way/out"\n', "leaves the root")


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ({"jobs": -1}, "--jobs -1: expected int >= 0"),
        ({"memory_mb": -1}, "--memory -1"),
        ({"max_file_bytes": 0}, "--max-file-bytes 0"),
        ({"exclude": ("../x",)}, "--exclude '../x' leaves the root"),
    ],
)
def test_a_flag_is_checked_like_a_file(tmp_path: Path, overrides: dict[str, object], says: str):
    with pytest.raises(UsageError) as caught:
        Workspace.open(tmp_path, **overrides).config()  # pyright: ignore[reportArgumentType]
    assert says in str(caught.value)


def test_the_schema_knows_every_key():
    schema = config_schema()
    assert set(schema["$defs"]["IndexConfig"]["properties"]) == set(IndexConfig.__struct_fields__)
    assert schema["$defs"]["IndexConfig"]["additionalProperties"] is False


def test_settings_decide_what_is_indexed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "repo"
    (root / "gen").mkdir(parents=True)
    for name in ("a.py", "b.py", "gen/c.py"):
        (root / name).write_text(f"# {name}\n")
    with Workspace.open(root) as workspace:
        assert workspace.status().files == 3
    (root / "cq.toml").write_text('[index]\nexclude = ["gen/", "cq.toml"]\n')
    with Workspace.open(root) as workspace:
        assert [row.path for row in workspace.files()] == ["a.py", "b.py"]
    with Workspace.open(root, exclude=("/b.py", "cq.toml")) as workspace:
        assert [row.path for row in workspace.files()] == ["a.py", "gen/c.py"]
    with Workspace.open(root, max_files=1) as workspace:
        status = workspace.status()
    assert status.files == 1
    assert [event.category for event in status.degraded] == ["file_cap"]


def test_named_queries_are_taken_as_they_are_written(tmp_path: Path):
    (tmp_path / "cq.toml").write_text("[queries]\nold = 'entity=function decorated_by=%{by=old}'\n")
    assert load_config(tmp_path).queries == {"old": "entity=function decorated_by=%{by=old}"}
    (tmp_path / "cq.toml").unlink()
    (tmp_path / "pyproject.toml").write_text("[tool.cq.queries]\na-b = 'entity=class'\n")
    assert load_config(tmp_path).queries == {"a-b": "entity=class"}


def test_names_and_texts_of_queries_are_checked(tmp_path: Path):
    check_error(tmp_path, "[queries]\n'a b' = 'x'\n", "queries")
    check_error(tmp_path, "[queries]\na = 3\n", "queries", "str")
    check_error(tmp_path, "[queries]\na = '" + "x" * 10_001 + "'\n", "queries")


def test_providers_are_listed_with_their_lines(tmp_path: Path):
    (tmp_path / "cq.toml").write_text(
        "[providers]\ndeny = ['ty']\n[providers.lsp.gopls]\ncmd = ['gopls']\nlanguages = ['go']\n"
        "[providers.settings.pyrefly]\nx = 1\n"
    )
    rows = {s.name: (s.value, s.source) for s in load_config(tmp_path).settings if s.name.startswith("providers")}
    assert rows == {
        "providers.allow": ((), "default"),
        "providers.deny": (("ty",), "cq.toml:2"),
        "providers.order": ((), "default"),
        "providers.timeout": (0.0, "default"),
        "providers.retries": (1, "default"),
        "providers.breaker": (4, "default"),
        "providers.max_files": (0, "default"),
        "providers.max_file_bytes": (0, "default"),
        "providers.doctor_on_build": (False, "default"),
        "providers.lsp.gopls.cmd": (("gopls",), "cq.toml:3"),
        "providers.lsp.gopls.languages": (("go",), "cq.toml:3"),
        "providers.settings.pyrefly": (("x",), "cq.toml"),
    }


def test_the_table_find_has_its_own_keys_and_sources(tmp_path: Path):
    (tmp_path / "cq.toml").write_text('[find]\nminimumRelevanceThreshold = 0.3\nprofile = "lexical_only"\n')
    config = load_config(tmp_path)
    assert (config.find.minimum_relevance_threshold, config.find.max_token_budget) == (0.3, 8000)
    sources = {s.name: s.source for s in config.settings}
    assert sources["find.minimumRelevanceThreshold"] == "cq.toml:2"
    assert sources["find.callDepth"] == "default"
    check_error(tmp_path, "[find]\nrerank_weight = 1\n", "unknown key 'find.rerank_weight'", "rerankWeight")
    check_error(tmp_path, "[find]\ncallDepth = 99\n", "cq.toml:2", "find.callDepth")
