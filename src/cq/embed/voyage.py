"""The extra `voyage`: one request through Voyage's own client. When one is made, and how often, is for hosted.py."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import msgspec

from cq.embed.hosted import Refusal, Transport


def make_transport(url: str) -> Transport:
    """Redirects are not followed: text would go along. A connection is kept for the next request."""

    def send(path: str, question: dict[str, Any], key: str, timeout: float) -> Any:
        # By name: it is not there where types are checked.
        voyageai: Any = import_module("voyageai")
        voyageai.requestssession = _make_session
        client = voyageai.Client(api_key=key, max_retries=1, timeout=timeout, base_url=url)
        try:
            if path == "rerank":
                found = client.rerank(question["query"], question["documents"], question["model"])
                rows = [{"index": row.index, "relevance_score": row.relevance_score} for row in found.results]
            else:
                more = {name: question[name] for name in ("model", "input_type", "output_dimension")}
                found = client.embed(question["input"], **more)
                rows = [{"index": at, "embedding": list(row)} for at, row in enumerate(found.embeddings)]
        except voyageai.error.VoyageError as error:
            if (error.http_status or 0) >= 300:
                raise Refusal(error.http_status, error.headers.get("Retry-After"), error.http_body or "") from None
            if isinstance(error, voyageai.error.Timeout):
                raise TimeoutError from None
            if isinstance(error, voyageai.error.APIConnectionError):
                raise ConnectionError from None
            raise msgspec.DecodeError(str(error)) from None
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:  # an answer of another shape
            raise msgspec.DecodeError(str(error)) from None
        return {"data": rows, "usage": {"total_tokens": found.total_tokens}}

    return send


def _make_session() -> Any:
    session = import_module("requests").Session()
    session.max_redirects = 0
    return session
