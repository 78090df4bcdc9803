"""Real servers for tests: warm within one test, gone after it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cq.indexing.location import find_cache_dir
from cq.model.errors import ProviderError
from cq.providers import typescript
from cq.providers.sessions import close_sessions, find_sessions
from tests.support.servers import is_gone


@pytest.fixture(autouse=True)
def _no_server_is_left(tmp_path: Path) -> Iterator[None]:
    yield
    groups = [session.pid for session in find_sessions(tmp_path)]
    close_sessions()
    assert all(is_gone(group) for group in groups if group)


@pytest.fixture(scope="session")
def tools() -> Path:
    """The cache directory of the user, where `cq doctor --install typescript` puts the compiler too."""
    cache = find_cache_dir()
    if cache is None:
        pytest.skip("no home directory to keep the TypeScript compiler in")
    try:
        typescript.install(cache / "tools")
    except ProviderError as error:
        pytest.skip(f"the TypeScript compiler cannot be fetched here: {error}")
    return cache / "tools"
