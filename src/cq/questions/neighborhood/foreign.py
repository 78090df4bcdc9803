"""Links over a language boundary: Python or JavaScript on one side, Rust or C on the other.

A Python stub (`.pyi`) stands for the Rust definition it declares: who calls the stub calls Rust. Without one, a call is
followed by what its name was imported from, or by the library object it is read off.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from cq.language import describe
from cq.languages.rust.foreign import MARKERS, ForeignName, find_foreign_names
from cq.model.edge import Candidate, Certainty
from cq.model.neighborhood import SliceKind
from cq.questions.neighborhood.links import is_test
from cq.questions.neighborhood.members import Found, Member, Subject, rank
from cq.snapshot.relations import CALLS, Relations
from cq.snapshot.target import Definition

if TYPE_CHECKING:
    from cq.model.facts import Call
    from cq.snapshot.files import HeldFile

_MAX_FILES = 100
_MAX_TOML = 1 << 18
_LIBRARY = re.compile(
    rb"(\w+)\s*(?::[^=\n]{0,80})?=\s*[\w.]*\b(?:CDLL|PyDLL|WinDLL|OleDLL|LoadLibrary|load_library|dlopen)\s*\("
)
_WEIGHT = 0.9


class _Export(msgspec.Struct, frozen=True):
    boundary: str
    name: str
    row: Definition


def find_foreign(relations: Relations, subject: Subject) -> dict[SliceKind, Found]:
    language = describe(subject.file.documents[subject.document].language)
    if subject.row is None or not (language.foreign_offers or language.foreign_calls):
        return {}
    table = _Table(relations)
    if language.foreign_offers:
        return table.find_users(subject.row)
    return table.find_used(subject)


class _Table:
    """What the Rust of a repository offers, by name; made when it is first needed."""

    def __init__(self, relations: Relations) -> None:
        self.relations = relations
        self.exports: dict[str, list[_Export]] = {}
        self.modules: set[str] = set()  # that a Python import may name
        self.crates: set[str] = set()
        self._bound: dict[tuple[str, int], dict[str, list[tuple[str, str, bool]]]] = {}
        self._libraries: dict[str, set[bytes]] = {}
        for held in relations.files.candidates(MARKERS):
            if "pyo3" in describe(held.language).foreign_offers:
                for document, symbols in enumerate(held.symbols):
                    for offered in find_foreign_names(symbols):
                        self._add(offered, Definition(held, document, offered.symbol))
        if self.exports or self.modules:
            self._read_manifests()

    def _add(self, offered: ForeignName, row: Definition) -> None:
        self.modules |= {part for part in offered.module.split(".")[-1:] if part and offered.boundary == "pyo3"}
        if offered.name:
            export = _Export(offered.boundary, offered.name, row)
            self.exports.setdefault(offered.name, []).append(export)

    def _read_manifests(self) -> None:
        """The names that packages give to what Rust builds: of Cargo and of maturin."""
        paths = {"Cargo.toml", "pyproject.toml"}
        for exports in self.exports.values():
            for export in exports:
                folder = export.row.file.path.rpartition("/")[0]
                while folder:
                    paths |= {f"{folder}/Cargo.toml", f"{folder}/pyproject.toml"}
                    folder = folder.rpartition("/")[0]
        for path in sorted(paths):
            held = self.relations.hold(path)
            if held is None or len(held.text) > _MAX_TOML:
                continue
            try:
                table: dict[str, Any] = tomllib.loads(held.text.decode("utf-8", "replace"))
            except (tomllib.TOMLDecodeError, RecursionError):
                continue
            names = [_get(table, "lib", "name"), _get(table, "package", "name")]
            self.crates |= {name.replace("-", "_") for name in names if name}
            built = _get(table, "tool", "maturin", "module-name") or names[0]
            self.modules |= {built.rpartition(".")[2]} if built else set()

    # -- from Rust or C -------------------------------------------------------------------------

    def find_users(self, row: Definition) -> dict[SliceKind, Found]:
        """Who calls an exported definition from the other side, and where it is declared there."""
        callers: dict[Candidate, Member] = {}
        stubs: list[Member] = []
        for export in self._offered(row):
            evidence = f"ffi.{export.boundary}"
            for stub in self._stubs(export):
                stubs.append(Member(stub, "ffi", False, "certain", _WEIGHT, evidence, more={"note": "declared here"}))
                node = self.relations.find_place(stub)
                for edge in self.relations.referrers.find_into(node, possible=False) if node is not None else ():
                    call = self.relations.call(edge) if edge.kind in CALLS else None
                    if call is not None:
                        self._call(callers, edge.source, export.boundary, call, edge.ref.certainty)
            for held, document, call in self._calls(export):
                source = self.relations.documents.find_around(held.path, document, call.scope)
                self._call(callers, source, export.boundary, call, "certain")
        found: dict[SliceKind, Found] = {}
        if callers:
            found["callers"] = Found(tuple(rank(callers.values())))
            tests = [member for place, member in callers.items() if is_test(self.relations, place)]
            found["tests"] = Found(tuple(rank(tests)))
        if stubs:
            found["related"] = Found(tuple(stubs))
        return found

    def _offered(self, row: Definition) -> Iterator[_Export]:
        if _is_c(row) and row.symbol.kind == "function" and "static" not in row.symbol.modifiers:
            yield _Export("c", row.symbol.name, row)
        for exports in self.exports.values():
            yield from (export for export in exports if export.row.key == row.key)

    def _stubs(self, export: _Export) -> list[Definition]:
        if export.boundary != "pyo3":
            return []
        name = export.name.removesuffix(".__new__")
        rows = [Definition(*row) for row in self.relations.files.definitions(name.rpartition(".")[2])]
        fitting = [row for row in rows if self._is_stub(row) and row.symbol.qualified_name == name]
        return _nearest(fitting, export.row)

    def _is_stub(self, row: Definition) -> bool:
        path = row.file.path
        return path.endswith(".pyi") and bool(self.modules.intersection(path.removesuffix(".pyi").split("/")))

    def _calls(self, export: _Export) -> Iterator[tuple[HeldFile, int, Call]]:
        """Calls of an exported name where no stub tells what it means."""
        last = export.name.rpartition(".")[2]
        last = export.name.rpartition(".")[0].rpartition(".")[2] if last in ("__new__", "constructor") else last
        seen = 0
        for held in self.relations.files.calls(last):
            if export.boundary not in describe(held.documents[0].language).foreign_calls or seen >= _MAX_FILES:
                continue
            seen += 1
            for document, calls in enumerate(held.calls):
                for call in calls:
                    if call.name == last and any(
                        other.row.key == export.row.key for other in self._meant(held, document, call)
                    ):
                        yield held, document, call

    def _call(
        self, callers: dict[Candidate, Member], source: Candidate, boundary: str, call: Call, certainty: Certainty
    ) -> None:
        site = (source.path, max(call.name_start, call.start))
        known = callers.get(source)
        if known is None:
            callers[source] = Member(source, "ffi", False, certainty, _WEIGHT, f"ffi.{boundary}", (site,))
        elif site not in known.sites:
            callers[source] = msgspec.structs.replace(known, sites=(*known.sites, site))

    # -- from Python or JavaScript --------------------------------------------------------------

    def find_used(self, subject: Subject) -> dict[SliceKind, Found]:
        """What a definition calls on the other side; of a stub, what it declares."""
        row = subject.row
        if row is None:
            return {}
        found: dict[SliceKind, Found] = {}
        if behind := list(self._behind(row)):
            certainty: Certainty = "certain" if len(behind) == 1 else "possible"
            members = tuple(Member(e.row, "ffi", True, certainty, _WEIGHT, f"ffi.{e.boundary}") for e in behind)
            found["implementations"] = Found(members)
        callees: dict[tuple[str, int, int], Member] = {}
        symbol, document = row.symbol, subject.document
        ways = describe(subject.file.documents[document].language).foreign_calls
        for call in subject.file.calls[document]:
            if not symbol.start <= call.start < symbol.end:
                continue
            meant = [e for e in self._meant(subject.file, document, call) if e.boundary in ways]
            for export in meant:
                site = (subject.file.path, max(call.name_start, call.start))
                known = callees.get(export.row.key)
                sites = (*known.sites, site) if known is not None else (site,)
                certainty = "certain" if len(meant) == 1 else "possible"
                callees[export.row.key] = Member(
                    export.row, "ffi", True, certainty, _WEIGHT, f"ffi.{export.boundary}", sites
                )  # fmt: skip
        for node in self._stub_calls(subject):
            for export in self._behind(node[0]):
                callees.setdefault(
                    export.row.key,
                    Member(export.row, "ffi", True, "certain", _WEIGHT, f"ffi.{export.boundary}", (node[1],)),
                )
        if callees:
            found["callees"] = Found(tuple(callees.values()))
        return found

    def _behind(self, row: Definition) -> list[_Export]:
        """The Rust that a stub declares."""
        if not self._is_stub(row):
            return []
        name = row.symbol.qualified_name
        exports = [e for e in self.exports.get(re.sub(r"\.__init__$", ".__new__", name), ()) if e.boundary == "pyo3"]
        best = _nearest([export.row for export in exports], row)
        return [export for export in exports if export.row in best]

    def _stub_calls(self, subject: Subject) -> Iterator[tuple[Definition, tuple[str, int]]]:
        if subject.place is None:
            return
        nodes = [subject.place]
        if subject.symbol is not None and subject.symbol.kind_group in ("class", "type"):
            nodes += self.relations.members(subject.place)
        for node in nodes:
            for edge in self.relations.referrers.find_out(node, possible=False):
                place, call = edge.ref.resolved, self.relations.call(edge)
                row = self.relations.definition(place) if place is not None and edge.kind in CALLS else None
                if row is not None and call is not None:
                    yield row, (node.path, max(call.name_start, call.start))

    def _meant(self, held: HeldFile, document: int, call: Call) -> list[_Export]:
        """What a call means by what its name was imported from, or by the library it is read off."""
        head, _, rest = call.receiver.partition(".")
        if held.path not in self._libraries:
            self._libraries[held.path] = _find_libraries(held)
        if head and head.encode() in self._libraries[held.path]:
            return self._in_c(call.name)
        for module, imported, beside_ffi in self._bindings(held, document).get(head or call.name, ()):
            if head == "lib" and beside_ffi:
                return self._in_c(call.name)
            inner = ".".join(filter(None, (rest, call.name if head else "")))
            for name in filter(None, (inner, f"{imported}.{inner}" if inner else imported)):
                found = [e for e in self.exports.get(name, ()) if self._may_offer(e, module, imported)]
                if found:
                    return found
        return []

    def _bindings(self, held: HeldFile, document: int) -> dict[str, list[tuple[str, str, bool]]]:
        """Local name -> (module, what is imported, whether `ffi` is imported beside it)."""
        key = held.path, document
        if key not in self._bound:
            found = self._bound[key] = {}
            for item in held.imports[document][0]:
                beside = any(bound.local == "ffi" for bound in item.bindings)
                for bound in item.bindings:
                    found.setdefault(bound.local, []).append((item.module, bound.imported, beside))
        return self._bound[key]

    def _in_c(self, name: str) -> list[_Export]:
        rows = [Definition(*row) for row in self.relations.files.definitions(name)]
        in_c = [_Export("c", name, row) for row in rows if _is_c(row) and row.symbol.kind == "function"]
        return [export for export in self.exports.get(name, ()) if export.boundary == "c"] + in_c

    def _may_offer(self, export: _Export, module: str, imported: str) -> bool:
        if export.boundary == "pyo3":
            return bool(self.modules.intersection((*module.split("."), imported)))
        if export.boundary == "c":
            return False
        parts = [part.removesuffix(".js").replace("-", "_") for part in module.split("/")]
        return module.endswith(".node") or "pkg" in parts or any(
            part == crate or part.startswith(f"{crate}_") for part in parts for crate in self.crates
        )  # fmt: skip


def _is_c(row: Definition) -> bool:
    """Whether its own name is what others call it by."""
    return describe(row.file.documents[row.document].language).foreign_offers == ("c",)


def _find_libraries(held: HeldFile) -> set[bytes]:
    """Names that a file binds to a shared library."""
    known = "c" in describe(held.language).foreign_calls and any(
        word in held.text for word in (b"DLL", b"dlopen", b"oad_library", b"LoadLib")
    )
    return set(_LIBRARY.findall(held.text)) if known else set()


def _nearest(rows: list[Definition], other: Definition) -> list[Definition]:
    """Of several of a name, those in a file called like the other's: `hashes.rs` for `hashes.pyi`."""

    def stem(row: Definition) -> str:
        return row.file.path.rpartition("/")[2].partition(".")[0]

    return [row for row in rows if stem(row) == stem(other)] or rows if len(rows) > 1 else rows


def _get(table: Any, *keys: str) -> str:
    for key in keys:
        table = table.get(key) if isinstance(table, dict) else None
    return table if isinstance(table, str) else ""
