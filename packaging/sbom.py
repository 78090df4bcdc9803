"""Writes what cq is made of, as CycloneDX JSON: the distributions it needs, from the metadata of those installed.

The same installation gives the same bytes: no time, no random number.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

NAME = "cq-code"
EXTRAS = ("mcp", "python")  # what users may add; `dev` is ours


def make_sbom() -> dict[str, Any]:
    """Everything the wheel can need: scope `required` of itself, `optional` of an extra."""
    needs: defaultdict[str, list[str]] = defaultdict(list)
    found: dict[str, Distribution] = {}
    scopes: dict[str, str] = {}
    todo = [(NAME, extra, scope) for extra, scope in (("", "required"), *((name, "optional") for name in EXTRAS))]
    seen: set[tuple[str, str, str]] = set()
    while todo:
        name, extra, scope = todo.pop(0)
        if (name, extra, scope) in seen:
            continue
        seen.add((name, extra, scope))
        try:
            found.setdefault(name, distribution(name))
        except PackageNotFoundError:
            continue  # for another system
        scopes[name] = "required" if "required" in (scope, scopes.get(name)) else "optional"
        for requirement in found[name].requires or ():
            wanted, extras = _read_requirement(requirement, extra)
            if wanted:
                needs[name].append(wanted)
                todo += [(wanted, each, scope) for each in ("", *extras)]
    own, others = found[NAME], sorted(name for name in found if name != NAME)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "application", **_describe(own)}},
        "components": [{"type": "library", **_describe(found[name]), "scope": scopes[name]} for name in others],
        "dependencies": [
            {"ref": _purl(found[name]), "dependsOn": sorted({_purl(found[to]) for to in needs[name] if to in found})}
            for name in (NAME, *others)
        ],
    }  # fmt: skip


def _read_requirement(text: str, extra: str) -> tuple[str, tuple[str, ...]]:
    """(name, extras) of `name[extra]>=1; extra == "x"`; "" for what another extra or system needs."""
    head, _, marker = text.partition(";")
    wanted = re.search(r"extra\s*==\s*['\"]([^'\"]+)", marker)
    if (wanted[1] if wanted else "") != extra or re.search(
        r"(sys_platform|platform_system)\s*==\s*['\"](win|Win)", marker
    ):
        return "", ()
    named = re.match(r"\s*([\w.-]+)\s*(?:\[([^\]]*)\])?", head)
    assert named is not None
    extras = tuple(part.strip() for part in (named[2] or "").split(",") if part.strip())
    return re.sub(r"[-_.]+", "-", named[1]).lower(), extras


def _describe(found: Distribution) -> dict[str, Any]:
    licence = found.metadata.get("License-Expression") or found.metadata.get("License") or ""
    described: dict[str, Any] = {
        "bom-ref": _purl(found), "name": found.metadata["Name"], "version": found.version, "purl": _purl(found),
    }  # fmt: skip
    if licence and "\n" not in licence:
        described["licenses"] = [{"license": {"name": licence}}]
    return described


def _purl(found: Distribution) -> str:
    return f"pkg:pypi/{re.sub(r'[-_.]+', '-', found.metadata['Name']).lower()}@{found.version}"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(make_sbom(), indent=2, ensure_ascii=False) + "\n", "utf-8")
