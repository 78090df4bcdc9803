"""`use` and `extern crate`: what they bind, and how paths in inline modules are seen from the file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cq.model.code import Imported
from cq.syntax.language import ROLE_NUMBER, Draft, Language
from cq.syntax.tree import Captures, Node, child_at, children_of, end_of, field_of, kind_of, start_of

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

_IMPORT = ROLE_NUMBER["import"]
_PATH_TEXT = 1000  # a path of nested use lists longer than this is not expanded further
_IMPORTED = {"use": "argument", "crate": "name"}  # the field that says what is imported


class ImportReader(Language):
    def on_import(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        start, end, tree = start_of(node), end_of(node), field_of(node, _IMPORTED[kind])
        if tree is None:
            return
        collector.spans.append((start, end, _IMPORT))
        if kind == "crate":
            alias = field_of(node, "alias") or tree
            module = _name(collector, tree)
            binding = (_name(collector, alias), "*", start_of(alias), end_of(alias), False)
            collector.add_import("import", module, start, end, [binding])
            collector.code.binds.append((end, start, binding[0], Imported(0, f"::{module}", "*"), -1))
            return
        passes_on = collector.text.startswith((b"pub", b"crate"), start)
        kind = "reexport" if passes_on else "use"
        modules, stars = self._expand(collector, tree)
        binds = collector.code.binds
        for module, bindings in modules.items():
            collector.add_import(kind, module, start, end, bindings)
            binds += [(end, start, local, Imported(0, module, name), -1) for local, name, *_ in bindings]
            if passes_on:
                for local, imported, first, last, _ in bindings:
                    collector.exports.append((first, imported, local, last, module, False))
        for module, first, last in stars:
            collector.add_import("reexport" if passes_on else "star", module, start, end, [])
            binds.append((end, start, "*", Imported(0, module, "*"), -1))
            if passes_on:
                collector.exports.append((first, "*", "*", last, module, False))

    def _expand(
        self, collector: Collector, tree: Node
    ) -> tuple[dict[str, list[tuple[str, str, int, int, bool]]], list[tuple[str, int, int]]]:
        """The bindings of a use tree by module, and its globs.

        `use a::{self, b::{c as d}, e::*}` binds a to a itself, d to c of a::b, and has a glob of a::e.
        """
        modules: dict[str, list[tuple[str, str, int, int, bool]]] = {}
        stars: list[tuple[str, int, int]] = []
        todo = [(tree, "")]
        while todo:
            node, prefix = todo.pop()
            kind = kind_of(node)
            alias = None
            if kind == "use_as_clause":
                alias, path = field_of(node, "alias"), field_of(node, "path")
                if alias is None or path is None:
                    continue
                node, kind = path, kind_of(path)
            if kind == "use_list" or kind == "scoped_use_list":
                path, members = field_of(node, "path"), field_of(node, "list")
                if path is not None:
                    prefix = _join(prefix, _path_text(collector, path))
                members = node if kind == "use_list" else members
                if members is not None and len(prefix) < _PATH_TEXT:
                    todo += [(member, prefix) for member in reversed(children_of(members))]
            elif kind == "use_wildcard":
                path = child_at(node, 0)
                module = prefix if path is None else _join(prefix, _path_text(collector, path))
                stars.append((module, start_of(node), end_of(node)))
            elif kind in ("identifier", "self", "super", "crate", "scoped_identifier"):
                name = field_of(node, "name") or node
                path = field_of(node, "path") if kind == "scoped_identifier" else None
                imported = _name(collector, name)
                module = prefix if path is None else _join(prefix, _path_text(collector, path))
                if imported == "self" and module:
                    imported = ""
                elif not module:
                    module = _path_text(collector, node)
                    imported = ""
                bound = alias or name
                local = _name(collector, alias) if alias is not None else imported or module.rpartition("::")[2]
                modules.setdefault(module, []).append((local, imported or "*", start_of(bound), end_of(bound), False))
        return modules, stars

    def place_imports(self, collector: Collector) -> None:
        """Paths of imports inside inline modules, as seen from the file (`%`); files that `#[path]` names."""
        modules = [draft for draft in collector.symbols if draft.kind == "module"]
        if not modules:
            return
        named = {draft.head: _path_attribute(draft) for draft in modules if draft.body_start < 0 and draft.decorators}
        inline = [draft for draft in modules if draft.body_start >= 0]
        binds = collector.code.binds
        for number, bind in enumerate(binds):
            value = bind[3]
            if not isinstance(value, Imported):
                continue
            start = bind[1]
            around = [d.name.removeprefix("r#") for d in inline if d.body_start <= start < d.body_end]
            module = value.module
            if module.startswith("mod "):
                if path := named.get(start + 1):
                    module = f"path {path}"
                elif around:
                    module = f"mod {'/'.join((*around, module[4:]))}"
            elif around:
                head, *rest = module.split("::")
                while head == "super" and around:
                    around.pop()
                    head, *rest = ["self", *rest] if not rest or rest[0] != "super" else rest
                if head == "self":
                    module = "::".join(("%", *around, *rest))
                elif head == "super":
                    module = "::".join((head, *rest))
            if module != value.module:
                binds[number] = (*bind[:3], Imported(value.level, module, value.name), bind[4])


def _path_attribute(draft: Draft) -> str:
    for attribute in draft.decorators:
        if found := re.fullmatch(r'path\s*=\s*"([^"\\]*)"', attribute):
            return found[1]
    return ""


def _name(collector: Collector, node: Node) -> str:
    return collector.slice(start_of(node), end_of(node)).removeprefix("r#")


def _path_text(collector: Collector, node: Node) -> str:
    return "".join(collector.fold(start_of(node), end_of(node)).split()).replace("r#", "")


def _join(prefix: str, path: str) -> str:
    return f"{prefix}::{path}" if prefix else path
