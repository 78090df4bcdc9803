"""Code intelligence for a repository: open a `Workspace`, ask it questions, get answers as plain data.

Importing this package costs nothing: each public name is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cq import query
    from cq.workspace import Workspace

__version__ = "0.1.0"
__all__ = ["Workspace", "__version__", "query"]


def __getattr__(name: str) -> object:
    if name == "Workspace":
        from cq.workspace import Workspace

        globals()[name] = Workspace  # the next use does not come here
        return Workspace
    if name == "query":
        from importlib import import_module

        return import_module("cq.query")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
