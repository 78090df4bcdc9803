"""What part a file plays, by its path alone: src, lib, test, doc or generated."""

from __future__ import annotations

import re
from functools import lru_cache

ROLES = ("src", "lib", "test", "doc", "generated")

_LIB = re.compile(
    r"(?:^|/)(?:site-packages|dist-packages|node_modules|vendor|vendored|third[_-]?party|_vendor|\.venv)/"
)
_GENERATED = re.compile(
    r"(?:^|/)(?:generated|__generated__|gen|autogen)/|(?:_pb2(?:_grpc)?\.pyi?|\.pb\.go|\.g\.(?:cs|dart)|\.generated\.\w+)$"
)
_TEST = re.compile(
    r"(?:^|/)(?:tests?|testing|__tests__|specs?|e2e|testdata|fixtures)/"
    r"|(?:^|/)(?:test_[^/]*|conftest|tests)\.pyi?$|_tests?\.(?:pyi?|go|rs|c|cc|cpp|rb|[cm]?[jt]sx?)$|\.(?:test|spec)\.[cm]?[jt]sx?$"
    r"|(?:^|/)tests\.rs$|_spec\.rb$|_test\.exs$|Spec\.hs$|Tests?\.(?:java|kt|cs|scala|swift|php)$"
)
_DOC = re.compile(
    r"(?:^|/)(?:docs?|documentation)/|\.(?:md|mdx|markdown|rst|txt|adoc|po|pot)$"
    r"|(?:^|/)(?:README|CHANGELOG|LICEN[CS]E|NOTICE|AUTHORS)[^/]*$",
    re.IGNORECASE,
)


@lru_cache(maxsize=20_000)
def find_role(path: str) -> str:
    """Where several fit, what says least about the product wins: a test inside a vendored package is `lib`."""
    if _LIB.search(path):
        return "lib"
    if _GENERATED.search(path):
        return "generated"
    if _TEST.search(path):
        return "test"
    return "doc" if _DOC.search(path) else "src"
