"""How readers remember what they worked out, and the one place that forgets it.

A Memory is of one generation of a tree: the reader that it hangs on drops it as soon as anything is written to the
index. What a text says by itself, whatever tree it is in, is kept by its hash instead; see Reader.memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from cq.model.edge import Candidate

if TYPE_CHECKING:
    from cq.store.read import Reader

_MISSING = object()


class Memory:
    """Answers by what they are about: the path of a file, or a name."""

    def __init__(self) -> None:
        self.known: dict[str, dict[Any, Any]] = {}

    def forget(self, path: str) -> None:
        """Who goes over all files need not hold them all."""
        self.known.pop(path, None)


def open_memory(reader: Reader, tree: int) -> Memory:
    """The same for every question about a tree, as long as the reader keeps anything; else a new one."""
    kept: dict[Any, Any] = {} if reader.memory is None else reader.memory
    return kept.setdefault(("memory", tree), Memory())


class Remembering(Protocol):
    @property
    def memory(self) -> Memory: ...


_S = TypeVar("_S", bound=Remembering)
_A = TypeVar("_A", str, Candidate)
_P = ParamSpec("_P")
_T = TypeVar("_T")


def remembered(work: Callable[Concatenate[_S, _A, _P], _T]) -> Callable[Concatenate[_S, _A, _P], _T]:
    """A method that works once for the same arguments. The first says what the answer is about: the path of a file, a
    definition (which is about its file), or a name."""

    @wraps(work)
    def ask(self: _S, about: _A, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        # Asked hundreds of thousands of times: nothing is called here that need not be.
        subject = about if type(about) is str else about.path  # pyright: ignore[reportAttributeAccessIssue]
        key = (work, about, args, *kwargs.items()) if kwargs else (work, about, args)
        known = self.memory.known.get(subject)
        if known is None:
            known = self.memory.known[subject] = {}
        found = known.get(key, _MISSING)
        if found is _MISSING:
            found = known[key] = work(self, about, *args, **kwargs)
        return found

    return ask
