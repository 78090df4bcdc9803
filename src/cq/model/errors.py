"""Every error a user can meet. One line, a stable code, what and where, a hint.

CqError
├── UsageError        an option, argument or value that cannot be taken
├── SourceError       a path that cannot be read as source
├── ConfigError       a configuration file that cannot be taken
├── StoreError        an index that cannot be opened, read or written
└── DaemonError       a daemon that cannot be started, stopped or had
"""

from __future__ import annotations


class CqError(Exception):
    """Shown to people as `cq: CODE: message (hint)`; surfaces turn it into exit code 2."""

    code = "error"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" + (f" ({self.hint})" if self.hint else "")


class UsageError(CqError):
    code = "usage"


class SourceError(CqError):
    code = "source"


class ConfigError(CqError):
    code = "config"


class StoreError(CqError):
    code = "index"


class DaemonError(CqError):
    code = "daemon"
