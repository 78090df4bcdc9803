"""What is known about a mention beyond its class. Only for what is shown: each costs a parse of the code around it.

Every stage may fail or not apply without harm to the others; what it could not say is in `degraded`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from cq.language import describe
from cq.model.answer import Agreement, Candidate, ImportDetails, MatchDetails, NameBinding
from cq.model.facts import Call, Flow, Symbol
from cq.questions.search.classify import Hit, parse, parse_piece
from cq.questions.search.python import BUILTINS, PythonName, read_name
from cq.snapshot.target import module_name
from cq.syntax.tree import Node, Tree, end_of, field_of, find_path, is_named, kind_of, root_of, start_of

if TYPE_CHECKING:
    from cq.snapshot.files import HeldFile

STAGES = ("facts", "tree", "python_resolution", "lsp")
MAX_PAYLOAD = 4096
_MAX_SIGNATURE, _MAX_TARGET, _MAX_RECEIVER, _MAX_WORD = 200, 120, 80, 60
_MAX_DECORATORS, _MAX_BASES, _MAX_CHAIN = 8, 6, 8
# What goes first when a payload is too large.
_DROPPED = (
    "context",
    "candidates",
    "bases",
    "decorators",
    "scope_chain",
    "behaviour",
    "agreement",
    "binding",
    "import_details",
    "call_receiver",
    "call_target",
    "signature",
    "chunk_uid",
)
_BEHAVIOUR = {"await": "awaits", "yield": "yields", "raise": "raises"}


class Enricher:
    """Enriches the hits of one answer; remembers what hits of one file share, and counts how each stage went."""

    def __init__(self, candidates: Callable[[str], list[Candidate]], *, crosscheck: bool = False) -> None:
        self._candidates = candidates
        self._crosscheck = crosscheck
        self.telemetry: dict[str, Counter[str]] = {}  # language -> applied, degraded, skipped
        self.stages: dict[str, Counter[str]] = {stage: Counter() for stage in STAGES}
        self.conflicts: list[str] = []

    def enrich(self, hit: Hit) -> MatchDetails:
        file = hit.file
        match = file.text[hit.start : hit.end].decode("utf-8", "replace")
        base = MatchDetails(match=clip(match, _MAX_TARGET), language=hit.language, role=file.role, tier=hit.tier)
        telemetry = self.telemetry.setdefault(hit.language, Counter())
        fields: dict[str, object] = {}
        degraded: list[str] = []
        if hit.tier == "text":
            self.stages["facts"]["skipped"] += 1
        else:
            for stage, run in (("facts", self._add_facts), ("tree", self._add_tree)):
                try:
                    fields.update(run(hit))
                    self.stages[stage]["applied"] += 1
                except Exception as error:  # noqa: BLE001  enrichment fails open, and says so
                    degraded.append(f"{stage}: {type(error).__name__}: {error}")
                    self.stages[stage]["degraded"] += 1
            name = file.text[hit.anchor : hit.end].decode("utf-8", "replace")
            fields.update(self._compare(hit, name, fields, degraded))
        self.stages["lsp"]["skipped"] += 1
        telemetry["degraded" if degraded else "applied" if fields else "skipped"] += 1
        details = msgspec.structs.replace(base, **fields, degraded=tuple(degraded))
        return _fit(details)

    # -- stages ----------------------------------------------------------------------------------

    def _add_facts(self, hit: Hit) -> dict[str, object]:
        file, number = hit.file, hit.document
        symbols = file.symbols[number]
        found: dict[str, object] = {}
        chain = _chain(symbols, hit.scope)
        if chain:
            found["scope"] = chain[0].qualified_name
            found["scope_chain"] = tuple(s.kind for s in reversed(chain[:_MAX_CHAIN]))
            owner = next((s for s in chain if s.kind_group in ("class", "type")), None)
            if owner is not None:
                found["class_context"] = owner.name
        if hit.symbol >= 0:
            symbol = symbols[hit.symbol]
            symbol_id, chunk_uid = file.name_symbol(number, hit.symbol)
            found |= {
                "symbol_kind": symbol.kind,
                "symbol_id": symbol_id,
                "chunk_uid": chunk_uid,
                "signature": clip(symbol.signature, _MAX_SIGNATURE),
                "modifiers": symbol.modifiers,
                "decorators": tuple(clip(d, _MAX_WORD) for d in symbol.decorators[:_MAX_DECORATORS]),
                "bases": tuple(clip(b, _MAX_WORD) for b in symbol.bases[:_MAX_BASES]),
            }
            if symbol.kind_group in ("function", "method"):
                found["behaviour"] = find_behaviour(symbol, hit.symbol, file.flows[number])
        call = _find_call(file.calls[number], hit) if hit.category in ("callsite", "decorator") else None
        if call is not None:
            found |= {
                "call_target": clip(call.callee, _MAX_TARGET),
                "call_receiver": clip(call.receiver, _MAX_RECEIVER),
                "candidates": tuple(self._candidates(call.name)),
            }
        if hit.category in ("import", "from_import"):
            found["import_details"] = _find_import(file, hit)
        problems = file.documents[number].problems
        if problems:
            near = any(p.start <= hit.end and hit.start <= p.end for p in problems)
            found["parse_quality"] = "errors" if near else "errors in file"
        return found

    def _add_tree(self, hit: Hit) -> dict[str, object]:
        view = _look(hit)
        return {} if view is None else {"node_kind": _node_kind(view)}

    def _compare(self, hit: Hit, match: str, fields: dict[str, object], degraded: list[str]) -> dict[str, object]:
        """What Python itself says, and whether the three sources agree."""
        said = {"facts": _what_facts_say(hit, fields)}
        if not describe(hit.language).is_host or not match.isidentifier() or hit.category in _NOT_NAMES:
            self.stages["python_resolution"]["skipped"] += 1
            return {}
        view = _look(hit)
        seen = _what_tree_says(view) if view is not None else None
        if seen is not None:
            said["tree"] = seen
        name = _ask_python(view, match) if view is not None else None
        found: dict[str, object] = {}
        if name is None:
            self.stages["python_resolution"]["skipped"] += 1
        else:
            self.stages["python_resolution"]["applied"] += 1
            said["python_resolution"] = {"what": name.what}
            if name.call_target:
                said["python_resolution"]["call_target"] = _bare(name.call_target)
            if name.binding:
                found["binding"] = _bind(hit, match, name.binding)
        conflicts = tuple(
            f"{one} vs {other}: {field}"
            for at, one in enumerate(said)
            for other in list(said)[at + 1 :]
            for field in said[one]
            if field in said[other] and said[one][field] != said[other][field]
        )
        status = "conflict" if conflicts else "full" if len(said) >= 3 else "partial"
        found["agreement"] = Agreement(status, () if status == "full" else tuple(said), conflicts)
        if conflicts:
            self.conflicts.append(f"{hit.file.path}: {', '.join(conflicts)}")
            if self._crosscheck:
                degraded.append("crosscheck mismatch: " + "; ".join(conflicts))
        return found


_NOT_NAMES = frozenset({"docstring", "comment", "string", "text"})


def clip(text: str, limit: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def find_behaviour(symbol: Symbol, place: int, flows: tuple[Flow, ...]) -> tuple[str, ...]:
    """What a function does with control, by its own statements: those of functions inside it are theirs."""
    own = [flow for flow in flows if flow.scope == place]
    found = {_BEHAVIOUR[flow.kind] for flow in own if flow.kind in _BEHAVIOUR}
    if "async" in symbol.modifiers:
        found.add("async")
    if "yields" in found:
        found.add("generator")
    if any(flow.kind == "return" and flow.value_kind not in ("", "null") for flow in own):
        found.add("returns_value")
    return tuple(sorted(found))


def _chain(symbols: tuple[Symbol, ...], place: int) -> list[Symbol]:
    """The scopes around, innermost first."""
    found: list[Symbol] = []
    while place >= 0:
        found.append(symbols[place])
        place = symbols[place].parent
    return found


def _find_call(calls: tuple[Call, ...], hit: Hit) -> Call | None:
    inside = [
        c
        for c in calls
        if hit.anchor <= c.name_start < hit.end or c.name_start <= hit.anchor < c.name_start + len(c.name.encode())
    ]
    return inside[-1] if inside else None  # of several at one name the innermost


def _find_import(file: HeldFile, hit: Hit) -> ImportDetails | None:
    for item in file.imports[hit.document][0]:
        if item.start <= hit.anchor < item.end:
            name = file.text[hit.anchor : hit.end].decode("utf-8", "replace")
            near = [b for b in item.bindings if b.start <= hit.anchor < b.end]
            bound = next(iter(near or [b for b in item.bindings if b.imported == name]), None)
            imported = bound.imported if bound is not None else ""
            alias = bound.local if bound is not None and bound.local != bound.imported else ""
            if imported == "*":
                imported, alias = "", "" if alias == item.module.partition(".")[0] else alias
            only = item.type_only or (bound is not None and bound.type_only)
            return ImportDetails(clip(item.module, _MAX_TARGET), imported, alias, item.level, only)
    return None


def _fit(details: MatchDetails) -> MatchDetails:
    """Within the payload's bound; what had to go is named."""
    dropped: list[str] = []
    for field in _DROPPED:
        if len(msgspec.json.encode(details)) <= MAX_PAYLOAD:
            break
        empty = getattr(MatchDetails("", "", "", ""), field)
        if getattr(details, field) != empty:
            dropped.append("import" if field == "import_details" else field)
            details = msgspec.structs.replace(details, **{field: empty}, truncated_fields=tuple(dropped))
    return details


# -- the three views that are compared ------------------------------------------------------------


def _what_facts_say(hit: Hit, fields: dict[str, object]) -> dict[str, str]:
    said = {"what": hit.category}
    symbol = hit.file.symbols[hit.document][hit.symbol] if hit.symbol >= 0 else None
    if hit.category == "definition" and symbol is not None and symbol.kind_group == "value":
        said["what"] = "assignment"  # the others cannot know that it is the first of its name
    target = fields.get("call_target")
    if hit.category == "callsite" and isinstance(target, str) and not target.endswith("…"):
        said["call_target"] = _bare(target)
    return said


def _bare(target: str) -> str:
    """Of a callee only its last two names: how chains and literals before them are written may differ."""
    names = re.split(r"[.\s]+", target)
    return ".".join(name for name in names[-2:] if name.isidentifier())


class _View(NamedTuple):
    """The tree around a hit: of the file, or in Python of the outermost function alone. `at..end` is the hit in it."""

    tree: Tree
    text: bytes
    at: int
    end: int
    whole: bool


def _look(hit: Hit) -> _View | None:
    text, symbols = hit.file.text, hit.file.symbols[hit.document]
    if describe(hit.language).is_host and hit.file.documents[hit.document].segment is None:
        named = hit.symbol >= 0 and symbols[hit.symbol].kind_group in _FUNCTIONS
        place, outer = hit.symbol if named else hit.scope, -1
        while place >= 0:
            outer = place if symbols[place].kind_group in _FUNCTIONS and symbols[place].kind != "lambda" else outer
            place = symbols[place].parent
        if outer >= 0:
            start, end = symbols[outer].head, symbols[outer].end
            tree = parse_piece(hit.language, text[start:end])
            return None if tree is None else _View(tree, text[start:end], hit.anchor - start, hit.end - start, False)
    tree = parse(hit.file, hit.document)
    return None if tree is None else _View(tree, text, hit.anchor, hit.end, True)


_FUNCTIONS = ("function", "method")


def _what_tree_says(view: _View) -> dict[str, str] | None:
    *around, leaf = find_path(root_of(view.tree), view.at, view.at + 1)
    if kind_of(leaf) != "identifier" or not around:
        return None
    parent = around[-1]
    kind = kind_of(parent)
    if kind in ("function_definition", "class_definition") and field_of(parent, "name") == leaf:
        return {"what": "definition"}
    if kind == "keyword_argument" and field_of(parent, "name") == leaf:
        return {"what": "keyword_argument"}
    named = around.pop() if kind == "attribute" and field_of(parent, "attribute") == leaf else leaf
    above = around[-1] if around else None
    if above is not None and kind_of(above) == "call" and len(around) > 1 and kind_of(around[-2]) == "decorator":
        above = around[-2]
    if above is not None and kind_of(above) == "call" and field_of(above, "function") == named:
        source = view.text[start_of(named) : end_of(named)].decode("utf-8", "replace")
        return {"what": "callsite", "call_target": _bare(" ".join(source.split()))}
    if above is not None and kind_of(above) == "decorator":
        return {"what": "decorator"}
    return {"what": _class_by_ancestors(named, around)}


_PARAMETERS = ("parameters", "lambda_parameters")
_PARAMETER_KINDS = (
    "default_parameter",
    "typed_default_parameter",
    "typed_parameter",
    "list_splat_pattern",
    "dictionary_splat_pattern",
)


def _class_by_ancestors(child: Node, around: list[Node]) -> str:
    for at in range(len(around) - 1, -1, -1):
        above = around[at]
        kind = kind_of(above)
        if kind in ("import_statement", "future_import_statement"):
            return "import"
        if kind == "import_from_statement":
            return "from_import"
        if kind == "type":
            return "annotation"
        if kind in _PARAMETERS:
            return "parameter"
        if kind in _PARAMETER_KINDS and field_of(above, "value") != child:
            if kind.endswith("_pattern") and at and kind_of(around[at - 1]) not in (*_PARAMETERS, "typed_parameter"):
                child = above
                continue
            return "parameter"
        if kind in ("assignment", "augmented_assignment", "for_statement", "for_in_clause"):
            return "assignment" if field_of(above, "left") == child else "reference"
        if kind == "named_expression":
            return "assignment" if field_of(above, "name") == child else "reference"
        if kind in ("as_pattern_target", "global_statement", "nonlocal_statement", "delete_statement"):
            return "assignment"
        if kind not in _PATTERNS:
            return "reference"
        child = above
    return "reference"


_PATTERNS = frozenset(
    {
        "pattern_list",
        "tuple_pattern",
        "list_pattern",
        "list_splat_pattern",
        "dotted_name",
        "aliased_import",
        "tuple",
        "list",
        "relative_import",
        "expression_list",
        "generic_type",
        "member_type",
        "union_type",
    }
)


def _node_kind(view: _View) -> str:
    """The kind of the smallest node that is more than the name itself."""
    path = find_path(root_of(view.tree), view.at, max(view.end - 1, view.at))
    while len(path) > 1 and (not is_named(path[-1]) or "identifier" in kind_of(path[-1])):
        path.pop()
    if len(path) > 1 and kind_of(path[-1]) in (
        "attribute",
        "member_expression",
        "field_expression",
        "scoped_identifier",
    ):
        node, above = path[-1], path[-2]
        if "call" in kind_of(above) and start_of(above) == start_of(node):
            path.pop()
    return kind_of(path[-1])


def _ask_python(view: _View, match: str) -> PythonName | None:
    start, end = _find_statement(view) if view.whole else (0, len(view.text))
    piece = view.text[start:end]
    if not piece or b"\r" in piece:
        return None  # offsets would move
    return read_name(piece, view.at - start, match)


def _find_statement(view: _View) -> tuple[int, int]:
    """The statement at module or class level; nothing for a class, which is too much for one name."""
    path = find_path(root_of(view.tree), view.at, view.at + 1)
    while len(path) > 1 and kind_of(path[-2]) not in ("module", "block"):
        path.pop()
    node = path[-1]
    if len(path) < 2 or kind_of(node) in ("class_definition", "decorated_definition"):
        return 0, 0
    return start_of(node), end_of(node)


def _bind(hit: Hit, name: str, kind: str) -> NameBinding:
    """The compiler's word, sharpened by what the module imports and defines."""
    chain: list[str] = []
    names: list[str] = []
    for item in hit.file.imports[hit.document][0]:
        for bound in item.bindings:
            if bound.local == name and (item.scope < 0 or kind == "imported"):
                parts = [item.module, "" if bound.imported == "*" else bound.imported]
                full = "." * item.level + ".".join(filter(None, parts))
                names.append(full)
                chain += [name, full] if name != bound.imported else [full]
    if names and kind in ("global", "imported", "free"):
        return NameBinding("imported", tuple(dict.fromkeys(names))[:3], tuple(dict.fromkeys(chain))[:4])
    symbols = hit.file.symbols[hit.document]
    defined = [s for s in symbols if s.name == name and s.parent < 0]
    if kind == "global" and defined:
        return NameBinding("global", (f"{module_name(hit.file.path)}.{name}",))
    if kind == "global" and name in BUILTINS:
        return NameBinding("builtin", (f"builtins.{name}",))
    return NameBinding(kind)
