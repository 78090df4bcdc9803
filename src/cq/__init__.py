"""Code intelligence for a repository: open a `Workspace`, ask it questions, get answers as plain data.

Importing this package costs nothing: each public name is loaded when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False  # of `typing`, which would cost more than all the rest of a start
if TYPE_CHECKING:
    from cq import query
    from cq.answers.page import Page
    from cq.model.answer import Answer
    from cq.questions.calls import CallsOptions
    from cq.questions.find import FindOptions
    from cq.questions.read import ReadOptions
    from cq.questions.search import SearchOptions
    from cq.workspace import Workspace

__version__ = "0.1.0"
__all__ = [
    "Answer", "CallsOptions", "FindOptions", "Page", "ReadOptions", "SearchOptions", "Workspace", "__version__",
    "query",
]  # fmt: skip

_HOMES = {
    "Answer": "cq.model.answer",
    "CallsOptions": "cq.questions.calls",
    "FindOptions": "cq.questions.find",
    "Page": "cq.answers.page",
    "ReadOptions": "cq.questions.read",
    "SearchOptions": "cq.questions.search",
    "Workspace": "cq.workspace",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        from importlib import import_module

        value = globals()[name] = getattr(import_module(_HOMES[name]), name)  # the next use does not come here
        return value
    if name == "query":
        from importlib import import_module

        return import_module("cq.query")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
