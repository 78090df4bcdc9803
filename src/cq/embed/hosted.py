"""Models of a service: Voyage, and whatever answers as OpenAI does. Text leaves the machine here, and nowhere else.

When a request is made, how large it is, when it is repeated and what it cost is decided here. The request itself goes
over the standard library, or, where the extra `voyage` is installed, through Voyage's own client (voyage.py). Redirects
are not followed, since the key would go along.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from http.client import HTTPException, HTTPMessage
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING, Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

import msgspec
import numpy as np

from cq.embed import Passage
from cq.model.config import HostedService
from cq.model.errors import ConfigError, ProviderError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_T = TypeVar("_T")
_MAX_ANSWER = 64 * 1024 * 1024
_TOKEN_BYTES = 3  # of code, at least; what a request may hold is counted with it


class Patience(msgspec.Struct, frozen=True):
    """Seconds: between attempts, for each of them, and the longest that a service may ask to wait."""

    delays: tuple[float, ...]
    timeout: float
    wait: float


PATIENT = Patience((1.0, 2.0, 4.0, 8.0, 16.0, 32.0), 60.0, 120.0)
HASTY = Patience((0.5,), 8.0, 2.0)  # a question has words to answer with


class Refusal(Exception):
    """A service says no. `wait` is its Retry-After, as it wrote it."""

    def __init__(self, status: int, wait: str | None, detail: str):
        super().__init__(detail)
        self.status, self.wait, self.detail = status, wait, detail


# One request: what comes after the address, the question, the key and seconds; its answer, decoded. Refusal for a
# status that is no success, OSError or HTTPException for a connection that fails, DecodeError for what is no answer.
Transport = Callable[[str, dict[str, Any], str, float], Any]


class _Kind(msgspec.Struct, frozen=True):
    """What is known of a service, and how much it takes at once."""

    url: str
    key_variable: str
    model: str
    texts: int  # of one request
    tokens: int
    text_bytes: int  # of one text; the rest is cut off
    dimensions: dict[str, int]


KINDS = {
    "voyage": _Kind("https://api.voyageai.com/v1", "VOYAGE_API_KEY", "voyage-code-3", 128, 100_000, 48_000, {
        "voyage-code-3": 1024,
    }),
    "openai": _Kind("https://api.openai.com/v1", "OPENAI_API_KEY", "text-embedding-3-small", 128, 100_000, 12_000, {
        "text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536,
    }),
}  # fmt: skip
_RERANK_MODEL = "rerank-2.5"


class _Usage(msgspec.Struct, frozen=True):
    total_tokens: int = 0


class _Row(msgspec.Struct, frozen=True):
    index: int
    embedding: list[float]


class _Rows(msgspec.Struct, frozen=True):
    data: list[_Row]
    usage: _Usage = _Usage()


class _Score(msgspec.Struct, frozen=True):
    index: int
    relevance_score: float


class _Scores(msgspec.Struct, frozen=True):
    data: list[_Score]
    usage: _Usage = _Usage()


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        return None


class Client:
    """One service: its address and key, and when it may be asked again."""

    def __init__(
        self, name: str, service: HostedService,
        *, pause: Callable[[float], None] = time.sleep, clock: Callable[[], float] = time.monotonic,
        transport: Transport | None = None,
    ):  # fmt: skip
        kind = KINDS[name]
        self.name, self.service, self.kind = name, service, kind
        self.url = (service.url or kind.url).rstrip("/")
        self.host = _find_host(self.url)
        if not self.host:
            raise ConfigError(f"{name}.url: {self.url!r} is no http address", hint="e.g. http://localhost:11434/v1")
        # The key of one service is not for another that the user names by its address.
        self._key_variable = service.key_variable or ("" if service.url else kind.key_variable)
        self._pause, self._clock, self._free_at = pause, clock, 0.0
        self._loopback = self.host in ("localhost", "127.0.0.1", "::1")
        self._transport = transport or self._find_transport()
        # What is for this machine goes through no proxy.
        self._opener = build_opener(_NoRedirect, *([ProxyHandler({})] if self._loopback else []))

    def ask(self, path: str, question: dict[str, Any], kind: type[_T], tokens: int, patience: Patience) -> _T:
        """ProviderError, in one line, if the last attempt fails as well. `tokens` is a guess that paces requests."""
        key = self._find_key()
        for delay in (*patience.delays, None):
            self._wait_turn(tokens)
            try:
                return msgspec.convert(self._transport(path, question, key, patience.timeout), kind)
            except Refusal as error:
                why, hint = f"answered {error.status}", _advise(error.status, self._key_variable)
                asked, detail = _read_wait(error.wait), "" if hint else _show(error.detail)
                if error.status not in (408, 409, 429) and error.status < 500:
                    raise self._fail(why + (f": {detail}" if detail else ""), hint) from None
                if asked is not None and asked > patience.wait:
                    raise self._fail(f"{why} and asks to wait {asked:.0f} s", hint) from None
            except (TimeoutError, URLError, OSError, HTTPException) as error:
                why, hint, asked = _explain(error), "is the address right, and the network there?", None
            except msgspec.DecodeError:  # cut short, or not what was asked for
                why, hint, asked = "gave an answer that cannot be read", f"does {self.url} answer as {self.name}?", None
            if delay is None:
                raise self._fail(f"{why}, {len(patience.delays) + 1} times", hint)
            self._pause(delay if asked is None else asked)
        raise AssertionError

    def _find_transport(self) -> Transport:
        """Voyage's own client where it is installed, except within this machine: it would ask a proxy."""
        if self.name == "voyage" and self._key_variable and not self._loopback and find_spec("voyageai"):
            from cq.embed.voyage import make_transport

            return make_transport(self.url)
        return self._post

    def _find_key(self) -> str:
        key = os.environ.get(self._key_variable, "").strip()
        if not (key.isascii() and key.isprintable()):
            raise ProviderError(f"{self._key_variable} holds no key: it has odd characters", hint="set it again")
        if key and not self._loopback and not self.url.startswith("https:"):
            raise ProviderError(f"the key is not sent to {self.host} over http", hint="use https")
        if not key and self._key_variable:
            hint = f"export {self._key_variable}=…, or leave the models to cq: CQ_EMBEDDER=local"
            raise ProviderError(f"{self.name} needs a key and {self._key_variable} is not set", hint=hint)
        return key

    def _wait_turn(self, tokens: int) -> None:
        service, now = self.service, self._clock()
        if self._free_at > now:
            self._pause(self._free_at - now)
        gap = 60 / service.requests_per_minute if service.requests_per_minute else 0.0
        if service.tokens_per_minute:
            gap = max(gap, 60 * tokens / service.tokens_per_minute)
        self._free_at = max(now, self._free_at) + gap

    def _post(self, path: str, question: dict[str, Any], key: str, timeout: float) -> Any:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "cq"}
        headers |= {"Authorization": f"Bearer {key}"} if key else {}
        request = Request(f"{self.url}/{path}", msgspec.json.encode(question), headers, method="POST")
        try:
            return msgspec.json.decode(self._fetch(request, timeout))
        except HTTPError as error:
            with error:
                raise Refusal(error.code, error.headers.get("Retry-After"), _read_detail(error)) from None

    def _fetch(self, request: Request, timeout: float) -> bytes:
        """A service that sends a byte a second is as late as one that sends none."""
        end = self._clock() + timeout
        with self._opener.open(request, timeout=timeout) as response:
            parts, size = [], 0
            while part := response.read1(1 << 16):
                size += len(part)
                if size > _MAX_ANSWER:
                    raise HTTPException("its answer is too long")
                if self._clock() > end:
                    raise TimeoutError
                parts.append(part)
            return b"".join(parts)

    def _fail(self, why: str, hint: str) -> ProviderError:
        return ProviderError(f"{self.name} ({self.host}) {why}", hint=hint)


class HostedEmbedder:
    """Texts go in requests of at most so many texts and tokens, in their order."""

    batch = 256  # whose vectors a failure may cost

    def __init__(self, client: Client):
        self.client, self.tokens = client, 0
        service, kind = client.service, client.kind
        self._model = service.model or kind.model
        known = kind.dimensions.get(self._model, 0)
        self.dimensions = service.dimensions or known
        if not self.dimensions:
            raise ConfigError(
                f"{client.name}.dimensions is not set, and those of {self._model!r} are not known",
                hint="say in models.toml how long its vectors are",
            )
        where = f"@{client.url}" if service.url else ""
        self.identity = f"{client.name}/{self._model}{where}:{self.dimensions}:normalized:int8"
        self._asked: tuple[str, NDArray[np.float32]] = ("", np.zeros(0, np.float32))

    def embed_query(self, text: str) -> NDArray[np.float32]:
        if self._asked[0] != text or not len(self._asked[1]):
            self._asked = (text, self._embed([text], "query", HASTY)[0])
        return self._asked[1]

    def embed(self, passages: Sequence[Passage]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        heads = [read_head(passage) for passage in passages]
        texts = [f"{head}\n{passage.body}" for head, passage in zip(heads, passages, strict=True)]
        rows = self._embed([*texts, *heads], "document", PATIENT)
        return rows[: len(texts)], rows[len(texts) :]

    def _embed(self, texts: Sequence[str], purpose: str, patience: Patience) -> NDArray[np.float32]:
        client, kind = self.client, self.client.kind
        found: list[NDArray[np.float32]] = []
        for batch, tokens in split_batches([cut(text, kind.text_bytes) for text in texts], kind.texts, kind.tokens):
            question: dict[str, Any] = {"model": self._model, "input": batch}
            if client.name == "voyage":
                question |= {"input_type": purpose, "output_dimension": self.dimensions}
            else:
                question |= {"encoding_format": "float"}
                question |= {"dimensions": self.dimensions} if client.service.dimensions else {}
            answer = client.ask("embeddings", question, _Rows, tokens, patience)
            self.tokens += max(answer.usage.total_tokens, 0)
            found.append(self._take(answer, len(batch)))
        return np.concatenate(found) if found else np.zeros((0, self.dimensions), np.float32)

    def _take(self, answer: _Rows, count: int) -> NDArray[np.float32]:
        """In the order of the texts, each of length one."""
        rows = sorted(answer.data, key=lambda row: row.index)
        if [row.index for row in rows] != list(range(count)):
            raise _mismatch(self.client, f"{len(rows)} vectors for {count} texts")
        if any(len(row.embedding) != self.dimensions for row in rows):
            lengths = sorted({len(row.embedding) for row in rows})
            raise _mismatch(self.client, f"vectors of {lengths[0]} dimensions, not {self.dimensions}")
        table = np.array([row.embedding for row in rows], np.float64).reshape(count, self.dimensions)
        with np.errstate(over="ignore"):
            norms = np.sqrt(np.square(table).sum(axis=1, keepdims=True))
        if not np.isfinite(norms).all():
            raise _mismatch(self.client, "vectors that hold no numbers")
        return (table / np.where(norms > 0, norms, 1)).astype(np.float32)


class HostedReranker:
    weights = (0.65, 0.35)
    even: float | None = None

    def __init__(self, client: Client):
        self.client, self.tokens = client, 0
        self._model = client.service.rerank_model or _RERANK_MODEL
        self.identity = f"{client.name}/{self._model}"

    def score(self, query: str, passages: Sequence[Passage]) -> NDArray[np.float32]:
        if not passages:
            return np.zeros(0, np.float32)
        kind = self.client.kind
        texts = [cut(f"{read_head(passage)}\n{passage.body}", kind.text_bytes // 4) for passage in passages]
        question = {"model": self._model, "query": cut(query, kind.text_bytes // 4), "documents": texts}
        tokens = sum(map(_guess, texts)) + _guess(query) * len(texts)
        answer = self.client.ask("rerank", question, _Scores, tokens, HASTY)
        self.tokens += max(answer.usage.total_tokens, 0)
        rows = sorted(answer.data, key=lambda row: row.index)
        scores = np.array([row.relevance_score for row in rows], np.float32)
        if [row.index for row in rows] != list(range(len(texts))) or not np.isfinite(scores).all():
            raise _mismatch(self.client, f"{len(rows)} scores for {len(texts)} texts")
        return scores


def read_head(passage: Passage) -> str:
    return "\n".join(part for part in (passage.path, passage.name, passage.signature) if part)


def split_batches(texts: Sequence[str], most: int, tokens: int) -> Iterator[tuple[list[str], int]]:
    """Runs of texts that one request may hold, each with about how many tokens it has."""
    batch: list[str] = []
    held = 0
    for text in texts:
        size = _guess(text)
        if batch and (len(batch) >= most or held + size > tokens):
            yield batch, held
            batch, held = [], 0
        batch.append(text)
        held += size
    if batch:
        yield batch, held


def cut(text: str, size: int) -> str:
    """At most so many bytes, whole characters; never nothing, which services refuse."""
    return text.encode("utf-8", "replace")[:size].decode("utf-8", "ignore") or " "


def _find_host(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    fit = parts.scheme in ("http", "https") and url.isascii() and url.isprintable() and " " not in url
    return parts.hostname or "" if fit else ""


def _guess(text: str) -> int:
    return len(text.encode("utf-8", "replace")) // _TOKEN_BYTES + 1


def _mismatch(client: Client, what: str) -> ProviderError:
    hint = f"does {client.url} answer as {client.name}, with the model and dimensions of models.toml?"
    return ProviderError(f"{client.name} ({client.host}) gave {what}", hint=hint)


def _advise(code: int, variable: str) -> str:
    if code in (401, 403):
        return f"is the key in {variable} right?" if variable else "set key_variable in models.toml"
    if code == 404:
        return "are url and model in models.toml right?"
    if code == 429:
        return "set requests_per_minute or tokens_per_minute in models.toml, or try later"
    return "try later" if code >= 500 else ""


def _read_wait(value: str | None) -> float | None:
    """Seconds, or a date as HTTP writes them."""
    if not value:
        return None
    try:
        return max(float(value), 0.0) if float(value) < float("inf") else None
    except ValueError:
        pass
    from email.utils import parsedate_to_datetime

    try:
        return max(parsedate_to_datetime(value).timestamp() - time.time(), 0.0)
    except (ValueError, OverflowError):
        return None


def _read_detail(error: HTTPError) -> str:
    try:
        return error.read(2000).decode("utf-8", "replace")
    except (OSError, HTTPException):
        return ""


def _show(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:200]


def _explain(error: Exception) -> str:
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, TimeoutError):
        return "did not answer in time"
    if isinstance(reason, OSError):
        return f"cannot be reached: {reason.strerror or type(reason).__name__}"
    return f"broke off: {type(reason).__name__}"
