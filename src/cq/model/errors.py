"""Every error a user can meet. One line, a stable code, what and where, a hint.

CqError
├── UsageError        an option, argument or value that cannot be taken
├── SourceError       a path that cannot be read as source
├── ConfigError       a configuration file that cannot be taken
├── QueryError        a query that cannot be taken, with every place where it fails
├── StoreError        an index that cannot be opened, read or written
├── ProviderError     a tool or a hosted model that cannot be had
└── DaemonError       a daemon that cannot be started, stopped or had
"""

from __future__ import annotations

TYPE_CHECKING = False  # of `typing`, which a command that needs nothing else does not load
if TYPE_CHECKING:
    from collections.abc import Iterable


class CqError(Exception):
    """Shown to people as `cq: CODE: message (hint)`; surfaces turn it into exit code 2."""

    code = "error"
    details: tuple[str, ...] = ()  # lines below the first, where one is not enough: a place under a caret

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" + (f" ({self.hint})" if self.hint else "")


def suggest(word: str, names: Iterable[str], then: str | None = None) -> str:
    """A hint for a word that is none of these names: the nearest, if one is near, and then all, or what `then` says."""
    from difflib import get_close_matches

    known = list(names)
    close = get_close_matches(word, known, n=1)
    return (f"did you mean {close[0]!r}? " if close else "") + (then or f"there are {', '.join(known) or 'none'}")


class UsageError(CqError):
    code = "usage"


class SourceError(CqError):
    code = "source"


class ConfigError(CqError):
    code = "config"


class StoreError(CqError):
    code = "index"


class QueryError(CqError):
    code = "query"

    def __init__(self, message: str, *, hint: str = "", details: tuple[str, ...] = ()) -> None:
        super().__init__(message, hint=hint)
        self.details = details


class ProviderError(CqError):
    code = "provider"


class DaemonError(CqError):
    code = "daemon"


# What programs are told, by what people are: every code above, and what a surface says where no error of ours was
# raised. Over MCP there are four more: AMBIGUOUS, TIMEOUT, BUSY, and CAPABILITY_MISSING for a tool that is none.
REGISTRY = {
    "usage": "INVALID_REQUEST", "query": "INVALID_REQUEST", "config": "INVALID_REQUEST", "source": "NOT_FOUND",
    "index": "NO_INDEX", "provider": "CAPABILITY_MISSING", "daemon": "INTERNAL", "io": "INTERNAL",
    "internal": "INTERNAL", "interrupted": "CANCELLED",
}  # fmt: skip
