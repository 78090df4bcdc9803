"""Hosted models, asked of a server on this machine that behaves as they do, on good days and on bad ones."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cq import FindOptions, Workspace
from cq.embed import Passage, load_embedder, load_reranker
from cq.embed.hosted import HASTY, PATIENT, Client, HostedEmbedder, HostedReranker, Patience, cut, split_batches
from cq.indexing import embedding
from cq.indexing.config import load_config
from cq.model.config import HostedService, ModelsConfig
from cq.model.errors import ConfigError, CqError, ProviderError, UsageError

pytestmark = pytest.mark.slow

WIDTH = 8
PASSAGES = [
    Passage("a.py", "save", "def save(key)", "def save(key): write to disk"),
    Passage("b.py", "load", "def load(key)", "def load(key): read from disk"),
    Passage("c.py", "sing", "def sing()", "def sing(): la la"),
]


class Service(ThreadingHTTPServer):
    """Answers as Voyage and OpenAI do; `script` says what goes wrong first."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: list[str] = []
        self.asked: list[tuple[str, dict[str, Any], str]] = []
        self.release = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Service

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, question, self.headers.get("Authorization", "")))
        todo = self.server.script.pop(0) if self.server.script else "ok"
        if todo.isdigit():
            return self._send(int(todo), b'{"detail":\n "something is wrong"}')
        if todo.startswith("429 after "):
            return self._send(429, b'{"detail": "too many"}', {"Retry-After": todo.removeprefix("429 after ")})
        if todo == "redirect":
            return self._send(307, b"", {"Location": "http://127.0.0.1:9/elsewhere"})
        if todo == "slow":
            self.server.release.wait(5)
            return None
        answer = self._rank(question) if self.path.endswith("/rerank") else self._embed(question)
        if todo == "fewer":
            answer["data"].pop()
        if todo == "backwards":
            answer["data"].reverse()
        if todo == "narrow":
            answer["data"] = [row | {"embedding": row["embedding"][:-1]} for row in answer["data"]]
        if todo == "huge":
            answer["data"] = [row | {"embedding": [1e300] * WIDTH} for row in answer["data"]]
        body = json.dumps(answer).encode()
        if todo == "cut off":  # the connection ends before what was promised
            return self._send(200, body[: len(body) // 2], {"Content-Length": str(len(body))})
        return self._send(200, body[: len(body) // 2] if todo == "half" else body)

    def _embed(self, question: dict[str, Any]) -> dict[str, Any]:
        rows = [
            {"index": at, "embedding": [float(text.count(c)) + 0.5 for c in "adeklsvw"]}
            for at, text in enumerate(question["input"])
        ]
        return {"data": rows, "usage": {"total_tokens": 10 * len(rows)}}

    def _rank(self, question: dict[str, Any]) -> dict[str, Any]:
        asked = set(question["query"].split())
        scores = [len(asked & set(text.split())) / len(asked) for text in question["documents"]]
        rows = [{"index": at, "relevance_score": score} for at, score in enumerate(scores)]
        return {"data": rows[::-1], "usage": {"total_tokens": 7}}

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def service() -> Iterator[Service]:
    server = Service()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.release.set()
    server.shutdown()
    thread.join()
    server.server_close()


_OWN = pytest.mark.skipif(find_spec("voyageai") is None, reason="the extra voyage is not installed: 50 packages")


@pytest.fixture(params=["plain", pytest.param("voyage", marks=_OWN)])
def client(request: pytest.FixtureRequest, service: Service, monkeypatch: pytest.MonkeyPatch) -> Client:
    """Its waits are noted in `waits`, not waited for. A proxy is not asked about this machine."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("TEST_KEY", "secret")
    waits: list[float] = []
    transport = None
    if request.param == "voyage":
        from cq.embed.voyage import make_transport

        monkeypatch.setenv("no_proxy", "127.0.0.1")
        transport = make_transport(service.url)
    made = Client("voyage", configure(service), pause=waits.append, clock=lambda: 0.0, transport=transport)
    made.waits = waits  # pyright: ignore[reportAttributeAccessIssue]
    return made


def configure(service: Service, **more: Any) -> HostedService:
    return HostedService(url=service.url, key_variable="TEST_KEY", dimensions=WIDTH, **more)


def test_passages_become_vectors_in_their_order(service: Service, client: Client):
    embedder = HostedEmbedder(client)
    wholes, heads = embedder.embed(PASSAGES)
    assert wholes.shape == heads.shape == (3, WIDTH)
    assert np.allclose(np.linalg.norm(wholes, axis=1), 1)
    assert not np.array_equal(wholes, heads)
    path, question, key = service.asked[0]
    assert (path, key, question["model"], question["input_type"]) == (
        "/v1/embeddings", "Bearer secret", "voyage-code-3", "document",
    )  # fmt: skip
    assert question["input"][0] == "a.py\nsave\ndef save(key)\ndef save(key): write to disk"
    assert embedder.tokens == 60


def test_vectors_are_told_by_their_numbers(service: Service, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TEST_KEY", "secret")
    embedder = HostedEmbedder(Client("voyage", configure(service)))
    forth = embedder.embed(PASSAGES)[0]
    service.script = ["backwards"]
    assert np.array_equal(embedder.embed(PASSAGES)[0], forth)


def test_a_question_is_asked_once(service: Service, client: Client):
    embedder = HostedEmbedder(client)
    first = embedder.embed_query("save it")
    assert np.array_equal(first, embedder.embed_query("save it"))
    assert [row[1]["input_type"] for row in service.asked] == ["query"]


def test_openai_is_asked_as_it_wants(service: Service, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TEST_KEY", "secret")
    HostedEmbedder(Client("openai", configure(service, model="nomic-embed-text"))).embed(PASSAGES[:1])
    assert service.asked[0][1] == {
        "model": "nomic-embed-text", "encoding_format": "float", "dimensions": WIDTH,
        "input": ["a.py\nsave\ndef save(key)\ndef save(key): write to disk", "a.py\nsave\ndef save(key)"],
    }  # fmt: skip


def test_the_reranker_scores_in_the_order_of_its_passages(client: Client):
    reranker = HostedReranker(client)
    assert reranker.score("read from", PASSAGES).tolist() == [0, 1, 0]
    assert (reranker.tokens, reranker.weights) == (7, (0.65, 0.35))
    assert len(reranker.score("read", [])) == 0


@pytest.mark.parametrize(
    ("script", "waits"),
    [
        (["429", "500"], [1.0, 2.0]),
        (["429 after 7"], [7.0]),
        (["429 after soon"], [1.0]),
        (["503", "half", "cut off"], [1.0, 2.0, 4.0]),
    ],
)
def test_what_passes_is_tried_again(service: Service, client: Any, script: list[str], waits: list[float]):
    service.script = list(script)
    assert len(HostedEmbedder(client).embed(PASSAGES)[0]) == 3
    assert client.waits == waits


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (["500"] * 9, "answered 500, 2 times .try later"),
        (["401"], "answered 401 .is the key in TEST_KEY right"),
        (["400"], 'answered 400: {"detail": "something is wrong"}'),
        (["429 after 3600"], "asks to wait 3600 s"),
        (["redirect"] * 2, "answered 307|cannot be reached: ConnectionError, 2 times"),
        (["half"] * 9, "cannot be read, 2 times"),
        (["cut off"] * 9, "(broke off: IncompleteRead|cannot be read|cannot be reached: ConnectionError), 2 times"),
        (["fewer"], "gave 0 vectors for 1 texts"),
        (["narrow"], "vectors of 7 dimensions, not 8"),
        (["huge"], "vectors that hold no numbers"),
    ],
)
def test_what_does_not_pass_is_one_line(service: Service, client: Any, script: list[str], message: str):
    service.script = list(script)
    with pytest.raises(ProviderError, match=message) as error:
        HostedEmbedder(client).embed_query("save it")
    assert "\n" not in str(error.value)
    assert "secret" not in str(error.value)
    assert len(service.asked) <= 1 + len(HASTY.delays)


def test_a_service_that_does_not_answer_is_given_up(service: Service, client: Any):
    service.script = ["slow", "slow"]
    question = {"input": ["x"], "model": "m", "input_type": "query", "output_dimension": WIDTH}
    with pytest.raises(ProviderError, match="did not answer in time, 2 times"):
        client.ask("embeddings", question, dict, 1, Patience((0.0,), 0.05, 0.0))


def test_a_service_that_is_not_there(client: Any, service: Service):
    gone = Client("voyage", HostedService(url="http://127.0.0.1:9/v1"), pause=client.waits.append)
    with pytest.raises(ProviderError, match="cannot be reached: Connection refused, 7 times"):
        HostedEmbedder(gone).embed(PASSAGES)
    assert tuple(client.waits) == PATIENT.delays


def test_limits_space_requests_out(service: Service, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TEST_KEY", "secret")
    now, waits = [0.0], list[float]()

    def pause(seconds: float) -> None:
        waits.append(seconds)
        now[0] += seconds

    client = Client("voyage", configure(service, requests_per_minute=30), pause=pause, clock=lambda: now[0])
    embedder = HostedEmbedder(client)
    for text in ("a", "b", "c"):
        embedder.embed_query(text)
    assert waits == [2.0, 2.0]


def test_batches_hold_so_many_texts_and_tokens():
    texts = ["x" * 29] * 5  # ten tokens each
    assert [(len(batch), tokens) for batch, tokens in split_batches(texts, 2, 1000)] == [(2, 20), (2, 20), (1, 10)]
    assert [len(batch) for batch, _ in split_batches(texts, 100, 30)] == [3, 2]
    assert [len(batch) for batch, _ in split_batches(texts, 100, 1)] == [1] * 5
    assert cut("aä" * 10, 5) == "aäa"
    assert cut("", 5) == " "


def test_keys_go_where_they_belong(service: Service, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    HostedEmbedder(Client("openai", HostedService(url=service.url, dimensions=WIDTH))).embed_query("x")
    assert service.asked[0][2] == ""  # that key is for another service
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ProviderError, match="OPENAI_API_KEY is not set"):
        HostedEmbedder(Client("openai", HostedService())).embed_query("x")
    monkeypatch.setenv("TEST_KEY", "secret")
    plain = HostedService(url="http://far.example/v1", key_variable="TEST_KEY")
    with pytest.raises(ProviderError, match=r"not sent to far\.example over http"):
        HostedEmbedder(Client("openai", plain)).embed_query("x")
    monkeypatch.setenv("TEST_KEY", "two\nlines")
    with pytest.raises(ProviderError, match="odd characters"):
        HostedEmbedder(Client("openai", configure(service))).embed_query("x")


def test_what_cannot_be_configured():
    for url in ("file:///etc/passwd", "http://[::1", "https://", "http://a b/v1", "localhost:80"):
        with pytest.raises(ConfigError, match="is no http address"):
            Client("openai", HostedService(url=url))
    with pytest.raises(ConfigError, match="dimensions is not set"):
        HostedEmbedder(Client("openai", HostedService(model="unheard-of")))


def test_identities_differ_by_model_dimensions_and_place():
    services = [
        HostedService(), HostedService(dimensions=256), HostedService(model="voyage-3", dimensions=1024),
        HostedService(url="http://localhost/v1"),
    ]  # fmt: skip
    made = {load_embedder(ModelsConfig("voyage", voyage=service)).identity for service in services}
    assert len(made) == 4
    assert "voyage/voyage-code-3:1024:normalized:int8" in made
    reranker = load_reranker(ModelsConfig(reranker="voyage"))
    assert reranker is not None
    assert reranker.identity == "voyage/rerank-2.5"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own configuration and cache; returns models.toml, not there yet."""
    for name in ("CQ_EMBEDDER", "CQ_RERANKER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "config" / "cq").mkdir(parents=True)
    return tmp_path / "config" / "cq" / "models.toml"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    root.mkdir()
    for row in PASSAGES:
        (root / row.path).write_text(f"{row.signature}:\n    '''{row.body}'''\n    return 1\n")
    return root


def test_a_repository_cannot_have_text_sent(home: Path, root: Path, monkeypatch: pytest.MonkeyPatch):
    (root / "cq.toml").write_text('[find]\nembedder = "voyage"\nreranker = "voyage"\n')
    config = load_config(root)
    assert config.models == ModelsConfig()
    assert "cq.toml:2: find.embedder = 'voyage' is not used" in config.notes[0]
    with Workspace.open(root) as workspace:
        state = workspace.status(embeddings=True).embeddings
        assert state is not None
        assert (state.leaves, state.identity.partition("-")[0]) == ("", "static")
    (root / "cq.toml").write_text('[find.voyage]\nurl = "http://thief.example"\n')
    with pytest.raises(ConfigError, match=r"unknown key .find\.voyage"):
        load_config(root)


def test_who_chooses_the_models(home: Path, root: Path, monkeypatch: pytest.MonkeyPatch):
    home.write_text('embedder = "openai"\n[openai]\ndimensions = 256\n')
    config = load_config(root)
    assert (config.models.embedder, config.source("find.embedder")) == ("openai", str(home))
    assert (config.models.reranker, config.source("find.reranker")) == ("local", "default")
    (root / "cq.toml").write_text('[find]\nembedder = "local"\n')
    config = load_config(root)
    assert (config.models.embedder, config.source("find.embedder")) == ("local", "cq.toml:2")
    monkeypatch.setenv("CQ_EMBEDDER", "voyage")
    config = load_config(root)
    assert (config.models.embedder, config.source("find.embedder")) == ("voyage", "environment CQ_EMBEDDER")
    monkeypatch.setenv("CQ_EMBEDDER", "oracle")
    with pytest.raises(UsageError, match=r"CQ_EMBEDDER: invalid enum value 'oracle' .it is one of local, minilm"):
        load_config(root)


def test_no_folder_of_a_repository_is_the_users_own(home: Path, root: Path, monkeypatch: pytest.MonkeyPatch):
    for folder in ("config", "~/.config"):
        (root / folder / "cq").mkdir(parents=True)
        (root / folder / "cq" / "models.toml").write_text('embedder = "voyage"\n')
    monkeypatch.chdir(root)
    monkeypatch.setenv("HOME", "~")
    for value in ("config", ""):
        monkeypatch.setenv("XDG_CONFIG_HOME", value)
        assert load_config(root).models == ModelsConfig()


@pytest.mark.parametrize("text", ["embedder = 1", "[voyage]\nurrl = 'x'", "not toml", "[openai]\ndimensions = -1"])
def test_a_broken_models_file_is_one_line(home: Path, root: Path, text: str):
    home.write_text(text)
    with pytest.raises(ConfigError, match=r"models\.toml") as error:
        load_config(root)
    assert "\n" not in str(error.value)


def test_find_with_hosted_models(service: Service, home: Path, root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TEST_KEY", "secret")
    monkeypatch.setenv("CQ_EMBEDDER", "voyage")
    monkeypatch.setenv("CQ_RERANKER", "voyage")
    table = f'url = "{service.url}"\nkey_variable = "TEST_KEY"\ndimensions = {WIDTH}\nprice_per_million = 100\n'
    home.write_text(f"[voyage]\n{table}")
    question = FindOptions("read something from the disk", threshold=0.0)
    with Workspace.open(root) as workspace:
        state = workspace.status(embeddings=True).embeddings
        assert state is not None
        assert (state.ready, state.reranker) == (False, "voyage/rerank-2.5")
        assert "the text of 3 more chunks go to 127.0.0.1 (voyage)" in state.leaves
        answer = workspace.find(question)
        assert (answer.summary["mode"], answer.summary["semantic"][:20]) == ("lexical", "ranked by words: 0 %")
        assert service.asked == []  # a status or a question alone sends nothing of the repository

        report = workspace.embed()
        assert (report.embedded, report.tokens, report.cost) == (3, 60, 0.006)
        assert len(service.asked) == 1  # one request for all files
        assert workspace.embed().tokens == 0
        answer = workspace.find(question)
        assert answer.summary["mode"] == "reranked"
        assert answer.results[0].name == "load"
        assert answer.summary["sent_tokens"] == 17  # ten for the question, seven for the reranker
        state = workspace.status(embeddings=True).embeddings
        assert state is not None
        assert (list(state.sent.values()), state.cost) == ([60 + 10, 7], 0.0077)
        assert "sent_tokens" not in workspace.find("load").summary  # a name needs no service

        for script in (["500"] * 4, ["429 after 60"] * 2, ["fewer"], ["half"] * 2):
            embedding.get_embedder.cache_clear()
            service.script = list(script)
            answer = workspace.find(question)
            assert answer.summary["mode"] == "lexical"
            assert answer.results[0].name == "load"
            assert [
                event.severity for event in answer.degraded if "words alone: provider: voyage" in event.message
            ] == ["warning"]
            service.script = []
        embedding.get_embedder.cache_clear()
        service.script = ["ok", "500", "500"]  # the question is embedded, the reranker fails
        answer = workspace.find(question)
        assert answer.summary["mode"] == "hybrid"
        assert any("not reranked: provider: voyage" in event.message for event in answer.degraded)

    monkeypatch.setenv("CQ_EMBEDDER", "local")
    with Workspace.open(root) as workspace:
        state = workspace.status(embeddings=True).embeddings
        assert state is not None
        assert "3 of 3 chunks have vectors of another embedder" in state.reason


def test_a_background_process_says_why_it_failed(
    service: Service, home: Path, root: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TEST_KEY", "wrong")
    home.write_text(
        f'embedder = "voyage"\n[voyage]\nurl = "{service.url}"\nkey_variable = "TEST_KEY"\ndimensions = {WIDTH}\n'
    )
    started: list[str] = []

    def run_here(arguments: list[str]) -> None:
        started.append(arguments[1])

    monkeypatch.setattr(embedding, "_start", run_here)
    with Workspace.open(root) as workspace:
        workspace.find(FindOptions("read from disk", background=True))
        service.script = ["401"]
        report = embedding.run_job(started[0].split("'")[1])
        assert "answered 401" in report.refused
        answer = workspace.find(FindOptions("read from disk", background=True))
        assert "the last attempt failed: provider: voyage (127.0.0.1) answered 401" in str(answer.summary["semantic"])
        assert embedding.run_job(started[1].split("'")[1]).embedded == 3
        answer = workspace.find(FindOptions("read from disk", background=True))
        assert "failed" not in str(answer.summary.get("semantic"))
        service.script = ["401"]
        (root / "a.py").write_text("def another(): return 2\n")
        with pytest.raises(CqError, match="answered 401"):
            workspace.embed()
