"""What Python itself says about a name in Python code: `ast` and `symtable` over the piece that holds it.

Only the outermost function, or the statement, around a mention is parsed: names resolve the same there, and a
piece costs a thousandth of a large module. Nothing is run.
"""

from __future__ import annotations

import ast
import builtins
import symtable
import warnings
from functools import lru_cache
from itertools import pairwise

import msgspec

MAX_PIECE = 100_000
_KEPT = 128  # pieces
BUILTINS = frozenset(dir(builtins))
_Placed = ast.stmt | ast.expr | ast.arg | ast.keyword | ast.alias | ast.excepthandler | ast.pattern
_Named = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_Scope = _Named | ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class PythonName(msgspec.Struct, frozen=True):
    """`what` is a category of search; `binding` is "" where the name is no variable (an attribute, a keyword)."""

    what: str
    call_target: str = ""
    binding: str = ""


def read_name(piece: bytes, offset: int, name: str) -> PythonName | None:
    """The identifier at a byte offset of a piece of code that stands at the left margin; None where there is none."""
    tree = _parse(piece) if len(piece) <= MAX_PIECE else None
    if tree is None:
        return None
    line = piece.count(b"\n", 0, offset) + 1
    column = offset - (piece.rfind(b"\n", 0, offset) + 1)
    chain = _find_chain(tree, line, column)
    found = _class_of(chain, piece, line, column, name)
    if found is None:
        return None
    what, call, variable = found
    binding = _find_binding(piece, chain, name) if variable else ""
    return PythonName(what, call, binding)


@lru_cache(maxsize=_KEPT)
def _parse(piece: bytes) -> ast.AST | None:
    """Mentions come in groups: the next one often stands in the same function."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(piece)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@lru_cache(maxsize=_KEPT)
def _read_table(piece: bytes) -> symtable.SymbolTable | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return symtable.symtable(piece.decode("utf-8", "replace"), "piece", "exec")
    except (SyntaxError, ValueError, RecursionError):
        return None


def _find_chain(tree: ast.AST, line: int, column: int) -> list[ast.AST]:
    """The nodes around a place, outermost first; by position, without recursion."""
    chain: list[ast.AST] = [tree]
    while True:
        inner = None
        for child in ast.iter_child_nodes(chain[-1]):
            if isinstance(child, ast.arguments):
                inner = next((part for part in ast.walk(child) if _holds(part, line, column)), None)
                if inner is not None:
                    inner = next((part for part in ast.iter_child_nodes(child) if _holds(part, line, column)), inner)
                    break
            elif isinstance(child, (ast.comprehension, ast.withitem, ast.match_case)):
                if any(_holds(part, line, column) for part in ast.walk(child)):
                    inner = child
                    break
            elif _holds(child, line, column):
                inner = child
                break
        if inner is None:
            return chain
        chain.append(inner)


def _holds(node: ast.AST, line: int, column: int) -> bool:
    if not isinstance(node, _Placed):
        return False
    start = node.lineno
    end, end_column = node.end_lineno, node.end_col_offset
    decorators = getattr(node, "decorator_list", ())
    first = (min(d.lineno for d in decorators), 0) if decorators else (start, node.col_offset)
    return first <= (line, column) < (end or start, end_column or 0)


def _class_of(chain: list[ast.AST], piece: bytes, line: int, column: int, name: str) -> tuple[str, str, bool] | None:
    """(category, call target, whether the name is a variable)"""
    node = chain[-1]
    parents = chain[:-1]
    annotated = _is_annotation(chain)
    if isinstance(node, _Named) and node.name == name:
        return "definition", "", True
    if isinstance(node, ast.alias):
        return ("from_import" if isinstance(parents[-1], ast.ImportFrom) else "import"), "", False
    if isinstance(node, ast.Import):
        return "import", "", False
    if isinstance(node, ast.ImportFrom):
        return "from_import", "", False
    if isinstance(node, ast.arg):
        return "parameter", "", True
    if isinstance(node, ast.keyword):
        return "keyword_argument", "", False
    if isinstance(node, (ast.Global, ast.Nonlocal, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        return "assignment", "", True
    variable = isinstance(node, ast.Name)
    if not variable and not isinstance(node, ast.Attribute):
        return None
    if isinstance(node, ast.Name) and node.id != name:
        return None
    if isinstance(node, ast.Attribute) and node.attr != name:
        return None
    parent = parents[-1] if parents else None
    called = isinstance(parent, ast.Call) and parent.func is node
    applied, owner = (parent, parents[-2] if len(parents) > 1 else None) if called else (node, parent)
    if any(applied is decorator for decorator in getattr(owner, "decorator_list", ())):
        return "decorator", "", variable
    if called:
        return "callsite", ast.unparse(node), variable
    if annotated:
        return "annotation", "", variable
    if isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)):
        return "assignment", "", variable
    return "reference", "", variable


def _is_annotation(chain: list[ast.AST]) -> bool:
    for parent, child in pairwise(chain):
        if getattr(parent, "annotation", None) is child or getattr(parent, "returns", None) is child:
            return True
    return False


def _find_binding(piece: bytes, chain: list[ast.AST], name: str) -> str:
    """local, global, free, parameter, imported: as the compiler's own symbol table has it; "" where it does not."""
    table = _read_table(piece)
    if table is None:
        return ""
    scopes = [node for node in chain if isinstance(node, _Scope)]
    if isinstance(chain[-1], _Named) and chain[-1].name == name:
        scopes.pop()  # its name is bound around it
    for scope in scopes:
        inner = [
            t for t in table.get_children() if t.get_lineno() == scope.lineno and t.get_name() == _table_name(scope)
        ]
        if not inner:
            return ""
        table = inner[0]
    try:
        symbol = table.lookup(name)
    except KeyError:
        return ""
    if symbol.is_parameter():
        return "parameter"
    if symbol.is_imported():
        return "imported"
    if table.get_type() == "module":
        return "global" if symbol.is_assigned() or name not in BUILTINS else "builtin"
    if symbol.is_free():
        return "free"
    if symbol.is_global():
        return "global"
    return "local"


def _table_name(scope: ast.AST) -> str:
    if isinstance(scope, _Named):
        return scope.name
    return {"Lambda": "lambda", "ListComp": "listcomp", "SetComp": "setcomp", "DictComp": "dictcomp"}.get(
        type(scope).__name__, "genexpr"
    )
