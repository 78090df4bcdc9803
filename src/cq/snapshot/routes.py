"""What comes in from outside: the routes, commands, tasks, signals, … of a tree, with what handles each.

A framework is data (`cq.languages.routes`); what its calls mean is known by links. Routes are put on routers, and one
router below another: the path of a route is that of every router above it, joined.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from cq.graph.scopes import ROOT
from cq.languages.routes import At, CallRule, Framework, MarkRule, RouteKind, load_frameworks
from cq.model.code import (
    Attribute,
    CallEnd,
    Choice,
    Defined,
    Dictionary,
    Imported,
    Joined,
    Lambda,
    Listing,
    MethodOf,
    Name,
    OnReceiver,
    Operated,
    Site,
    Text,
    Value,
    split_receiver,
)
from cq.model.edge import Candidate
from cq.snapshot.target import Definition, module_name

if TYPE_CHECKING:
    from cq.graph.unit import Unit
    from cq.model.facts import Call, Symbol
    from cq.snapshot.files import HeldFile
    from cq.snapshot.relations import Relations

VERBS = ("get", "post", "put", "delete", "patch", "head", "options", "trace")
MAX_STEPS = 12  # from a name to the router it holds
MAX_MOUNTS = 8  # places where one router is put; routers above one another
_LITERAL = re.compile(r"""(?s)[rbuRBU]{0,2}(?P<quote>\"{3}|'{3}|["'`])(?P<text>.*)(?P=quote)""")
_TUPLE = re.compile(
    rb"""(?<![\w.])\(\s*[rRuU]?(?P<quote>["'])(?P<path>[^"'\n]*)(?P=quote)\s*,\s*(?P<handler>[A-Za-z_][\w.]*)"""
)
# What Django REST framework routes to the methods of a view set: below its path or below one item.
_ACTIONS = {
    "list": ("GET", ""), "create": ("POST", ""), "retrieve": ("GET", "{pk}/"), "update": ("PUT", "{pk}/"),
    "partial_update": ("PATCH", "{pk}/"), "destroy": ("DELETE", "{pk}/"),
}  # fmt: skip


class Route(NamedTuple):
    """`start..end` in the file of `path` is where it is said. `handler` is None where nobody knows what runs; `status`
    is `ambiguous` where what the route is put on is not known for certain."""

    kind: RouteKind
    method: str
    pattern: str  # the path of a request, the name of a command, task or signal
    handler: Candidate | None
    handled_by: str  # as written
    path: str
    document: int
    start: int
    end: int
    framework: str
    status: str = "resolved"
    middleware: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()  # types of what the handler is given
    gives: str = ""


# What routes are put on: the end of the call that made it, or the name of a list of Django's routes.
_Key = tuple[str, int, int | str]
_MODULE = "urlpatterns"


class _Router(msgspec.Struct):
    """What routes are put on, by the call that made it."""

    prefix: str = ""
    within: _Key | None = None  # the router whose prefix comes first
    mounts: list[tuple[_Key | None, str, bool, tuple[str, ...]]] = []


class _Draft(NamedTuple):
    """A route before the routers around it are known."""

    route: Route
    router: _Key | None


def find_routes(relations: Relations) -> tuple[Route, ...]:
    """All of them, by path and place."""
    memory = relations.memory.known.setdefault("", {})
    if "routes" not in memory:
        memory["routes"] = _Finder(relations).find()
    return memory["routes"]


def is_from(module: str, packages: Iterable[str]) -> bool:
    """Whether a dotted name from outside is, or is in, one of these."""
    return any(module == name or re.match(rf"{re.escape(name)}[.:/\\(]", module) for name in packages)


class _Finder:
    def __init__(self, relations: Relations) -> None:
        self._relations = relations
        self._documents = relations.documents
        self._routers: dict[_Key, _Router] = {}
        self._drafts: list[_Draft] = []
        self._loose: list[tuple[Framework, _Draft]] = []
        self._used: set[str] = set()
        self._listed: dict[tuple[str, int], dict[int, str]] = {}  # end of a call -> the list of routes that holds it

    def find(self) -> tuple[Route, ...]:
        sites: list[tuple[_Document, int]] = []
        for path in self._relations.paths():
            held = self._relations.hold(path)
            for number, stored in enumerate(held.documents if held is not None else ()):
                frameworks = load_frameworks(stored.language)
                unit = self._documents.unit(path, number)
                fenced = stored.segment is not None and stored.segment.kind == "fence"
                if held is None or unit is None or not frameworks or fenced:
                    continue
                document = _Document(self, held, number, unit, frameworks)
                self._note_used(document)
                document.find_marks()
                document.find_classes()
                document.find_files()
                sites += [(document, at) for at in document.find_sites()]
        for document, at in sites:
            document.find_routers(at)
        for document, at in sites:
            document.find_mounts(at)
        for document, at in sites:
            document.find_calls(at)
        self._drafts += [draft for framework, draft in self._loose if framework.name in self._used]
        routes = [route for draft in self._drafts for route in self._place(draft)]
        return tuple(sorted(dict.fromkeys(routes), key=lambda r: (r.path, r.document, r.start, r.pattern, r.method)))

    def _note_used(self, document: _Document) -> None:
        modules = {item.module for item in document.held.imports[document.number][0]}
        for framework in document.frameworks:
            if any(is_from(module, framework.packages) for module in modules):
                self._used.add(framework.name)

    def add(self, framework: Framework, draft: _Draft, *, is_loose: bool = False) -> None:
        if is_loose:
            self._loose.append((framework, draft))
        else:
            self._drafts.append(draft)

    def router(self, key: _Key) -> _Router:
        return self._routers.setdefault(key, _Router())

    def has_router(self, key: _Key) -> bool:
        return key in self._routers

    def _place(self, draft: _Draft) -> Iterator[Route]:
        """The route once for every place where its router is put."""
        for prefix, middleware in self._find_prefixes(draft.router, MAX_MOUNTS):
            pattern = join(prefix, draft.route.pattern) if draft.route.kind != "cli" else draft.route.pattern
            if draft.route.method.isupper() or draft.route.method == "*":
                pattern = pattern if pattern.startswith(("/", "^", "{")) else f"/{pattern}"
            if draft.route.kind == "cli" and prefix:
                pattern = f"{prefix.strip('/')} {pattern}"
            more = tuple(dict.fromkeys((*middleware, *draft.route.middleware)))
            yield draft.route._replace(pattern=pattern, middleware=more)

    def _find_prefixes(self, key: _Key | None, depth: int) -> list[tuple[str, tuple[str, ...]]]:
        router = None if key is None else self._routers.get(key)
        if router is None or not depth:
            return [("", ())]
        if router.within is not None:
            return [(join(above, router.prefix), more) for above, more in self._find_prefixes(router.within, depth - 1)]
        found: list[tuple[str, tuple[str, ...]]] = []
        for parent, prefix, replaces, middleware in router.mounts[:MAX_MOUNTS]:
            own = prefix if replaces and prefix else join(prefix, router.prefix)
            above = self._find_prefixes(parent, depth - 1)
            found += [(join(first, own), (*more, *middleware)) for first, more in above]
        return found or [(router.prefix, ())]


class _Document:
    """One document that is read for routes."""

    def __init__(
        self, finder: _Finder, held: HeldFile, number: int, unit: Unit, frameworks: Sequence[Framework]
    ) -> None:
        self.finder, self.held, self.number, self.unit, self.frameworks = finder, held, number, unit, frameworks
        self.path, self.relations = held.path, finder._relations
        self.symbols: Sequence[Symbol] = held.symbols[number]
        self.calls: Sequence[Call] = held.calls[number]
        self._by_name: dict[str, list[Framework]] = {}
        for framework in frameworks:
            rules = (*framework.calls, *framework.routers, *framework.mounts)
            for name in dict.fromkeys(name for rule in rules for name in rule.names):
                self._by_name.setdefault(name, []).append(framework)

    # -- calls -------------------------------------------------------------------------------------

    def find_sites(self) -> list[int]:
        return [number for number, call in enumerate(self.calls) if call.name in self._by_name]

    def find_routers(self, number: int) -> None:
        site, name = self.unit.code.sites[number], self.calls[number].name
        for framework in self._by_name[name]:
            for rule in framework.routers:
                if name in rule.names and self._fits(number, framework, (), is_loose=rule.within):
                    router = self.finder.router((self.path, self.number, site.end))
                    router.prefix = self._read_text(number, rule.prefix)
                    if rule.within:
                        router.within = self.follow(self._receiver(site), site.scope, site.start)

    def find_mounts(self, number: int) -> None:
        site, name = self.unit.code.sites[number], self.calls[number].name
        for framework in self._by_name[name]:
            for rule in framework.mounts:
                if name not in rule.names or not self._fits(number, framework, (), is_loose=False):
                    continue
                prefix = self._read_text(number, rule.prefix) if rule.prefix else ""
                child = self._argument(number, rule.child)
                parent = self.follow(self._receiver(site), site.scope, site.start)
                children = child.elements if isinstance(child, Listing) else (child,)
                names = [each for each in site.args if isinstance(each, str) and each != child]
                for each in children:
                    key = self.follow(each, site.scope, site.start)
                    if key is not None and key != parent:
                        self.finder.router(key).mounts.append((parent, prefix, rule.replaces, tuple(names)))

    def find_calls(self, number: int) -> None:
        call = self.calls[number]
        for framework in self._by_name[call.name]:
            for rule in framework.calls:
                if call.name not in rule.names:
                    continue
                certain = self._fits(number, framework, rule.of, is_loose=False)
                loose = not certain and rule.is_loose and self._fits(number, framework, rule.of, is_loose=True)
                if certain or loose:
                    for draft in self._read_call(number, framework, rule, loose):
                        self.finder.add(framework, draft, is_loose=loose)
                    if certain:
                        return

    def _fits(self, number: int, framework: Framework, of: Sequence[str], *, is_loose: bool) -> bool:
        """Whether a call is one of a framework: by what links know of its callee, else by what the file imports."""
        call = self.calls[number]
        if "/" not in "".join(of) and any(name.endswith(".rb") for name in of):
            return self.path.rpartition("/")[2] in of
        ref = self.relations.calls.find_call(self.path, self.number, number)
        if not framework.packages:  # of a language whose links do not lead outside
            return (not of or call.receiver in of) and (is_loose or bool(of))
        if ref.status == "external":
            return is_from(ref.module, of or framework.packages) and (not of or is_from(ref.module, framework.packages))
        for place in ref.candidates if ref.evidence != "name" else ():
            module = module_name(place.path)
            return is_from(f"{module}.{place.name}", framework.packages) and (not of or place.name.endswith(call.name))
        if self._is_decorated(number, framework):
            return True
        if not is_loose or not call.args:
            return False
        if ref.candidates and ref.evidence != "name":
            return False
        return self._is_path(call) or call.name[:1].isupper()

    def _is_decorated(self, number: int, framework: Framework) -> bool:
        """Whether a call is read off a function that a decorator of a framework has changed: `@cli.command()`, where
        `@click.group()` stands above `cli`."""
        site = self.unit.code.sites[number]
        receiver = self._receiver(site)
        place = self._find_named(receiver, site) if isinstance(receiver, str) else None
        other = self._open(place) if place is not None else None
        symbol = self.relations.documents.find_symbol(place) if place is not None else None
        made = other.unit.by_symbol.get(symbol) if other is not None and symbol is not None else None
        for value in made.decorators if made is not None else ():
            at = other.unit.site_at.get(value) if other is not None and isinstance(value, int) else None
            if other is not None and at is not None and at != number:
                ref = self.relations.calls.find_call(other.path, other.number, at)
                if ref.status == "external" and is_from(ref.module, framework.packages):
                    return True
                if ref.status != "external" and other._is_decorated(at, framework):
                    return True
        return False

    def _is_path(self, call: Call) -> bool:
        found = _LITERAL.fullmatch(call.args[0].text) if call.args else None
        return found is not None and found["text"].startswith("/") and call.arg_count > 1

    def _read_call(self, number: int, framework: Framework, rule: CallRule, is_loose: bool) -> Iterator[_Draft]:
        site, call = self.unit.code.sites[number], self.calls[number]
        if not rule.handler and call.kind != "decorator" and not rule.usual:
            return
        pattern = self._read_text(number, rule.path)
        methods = self._find_methods(number, rule)
        router = self.follow(self._receiver(site), site.scope, site.start) or self._find_list(site)
        for around in self.calls if framework.blocks else ():
            if around.name in framework.blocks and around.start < call.start and call.end <= around.end:
                prefix = around.args[0].text.strip(":'\"") if around.args else ""
                pattern = join(f"/{prefix}", pattern)
        middleware: tuple[str, ...] = ()
        targets: list[tuple[str, Value | Candidate]] = []
        if not rule.handler:
            decorated = self._find_decorated(site)
            if decorated < 0 and call.kind == "decorator":
                return
            targets = [(method, self._own(decorated)) for method in methods]
            own = self.symbols[decorated].decorators if decorated >= 0 else ()
            middleware = tuple(mark for mark in own if mark.partition("(")[0] != call.callee.partition("(")[0])[:5]
        elif rule.holds == ("tuples",):
            yield from self._read_tuples(number, framework)
            return
        elif rule.holds:
            targets = list(self._read_held(self._argument(number, rule.handler), rule))
        elif rule.chained:
            targets = list(self._read_chained(number, rule))
        else:
            if rule.handler == (-1,) and rule.path == (0,) and call.arg_count < 2:
                return  # `app.get("setting")`, `route("/x").get(handler)`
            value = self._argument(number, rule.handler)
            if isinstance(value, int) and self._mount_included(value, pattern, router, site):
                return
            targets = [(method, value) for method in methods]
            between = site.args[1:-1] if rule.handler == (-1,) else ()
            middleware = tuple(str(each) for each in between if isinstance(each, str))
        for method, value in targets:
            for route in self._make(number, framework, rule, method, pattern, value, is_loose, middleware):
                yield _Draft(route, router)

    def _make(
        self, number: int, framework: Framework, rule: CallRule, method: str, pattern: str, value: Value | Candidate,
        is_loose: bool, middleware: tuple[str, ...],
    ) -> Iterator[Route]:  # fmt: skip
        site, call = self.unit.code.sites[number], self.calls[number]
        handler, written, wrappers = self.find_handler(value, site)
        if is_loose and handler is None and not isinstance(value, Lambda) and not written:
            return
        if is_loose and isinstance(value, Text | Dictionary | Listing):
            return
        name = (handler.shown_name if handler is not None else written).rpartition(".")[2]
        if not pattern and rule.named_by:
            pattern = name.replace("_", "-") if rule.named_by == "dashes" else name
            pattern = self._name_by_key(site) or pattern
        status = "ambiguous" if is_loose else "resolved"
        takes, gives = self._read_types(handler, call)
        base = Route(
            rule.kind, method, pattern, handler, written or name, self.path, self.number, call.start, call.end,
            framework.name, status, (*middleware, *wrappers), takes, gives,
        )  # fmt: skip
        symbol = self.relations.symbol(handler) if handler is not None else None
        if handler is None or symbol is None or symbol.kind_group != "class" or not rule.verbs:
            yield base
            return
        members = {each.name.rpartition(".")[2]: each for each in self._find_members(handler)}
        if framework.name == "Django REST framework":
            yield from self._read_actions(base, members)
            return
        verbs = [verb for verb in VERBS if verb in members]
        is_named = bool(rule.methods) and self._argument(number, rule.methods) is not None
        wanted = [verb for verb in verbs if not is_named or verb.upper() == method]
        for verb in wanted:
            takes, gives = self._read_types(members[verb], call)
            yield base._replace(method=verb.upper(), handler=members[verb], takes=takes, gives=gives)
        if not wanted:
            yield base

    def _read_actions(self, base: Route, members: dict[str, Candidate]) -> Iterator[Route]:
        """A view set of Django REST framework: its usual actions, and those marked `@action`."""
        prefix = f"{base.pattern.strip('/')}/" if base.pattern else ""
        symbol = self.relations.symbol(base.handler) if base.handler is not None else None
        bases = " ".join(symbol.bases) if symbol is not None else ""
        inherited = {
            "ModelViewSet": tuple(_ACTIONS), "ReadOnlyModelViewSet": ("list", "retrieve"), "ListModelMixin": ("list",),
            "CreateModelMixin": ("create",), "RetrieveModelMixin": ("retrieve",),
            "UpdateModelMixin": ("update", "partial_update"), "DestroyModelMixin": ("destroy",),
        }  # fmt: skip
        offered = {name for kind, names in inherited.items() if re.search(rf"\b{kind}\b", bases) for name in names}
        for name, (method, rest) in _ACTIONS.items():
            if name in members or name in offered:
                yield base._replace(method=method, pattern=prefix + rest, handler=members.get(name, base.handler))
        for name, place in members.items():
            own = self.relations.symbol(place)
            for mark in own.decorators if own is not None else ():
                if re.match(r"(?:\w+\.)?action\b", mark):
                    detail = "{pk}/" if re.search(r"detail\s*=\s*True", mark) else ""
                    path = re.search(r"""url_path\s*=\s*["']([^"']+)""", mark)
                    methods = re.findall(r"""["'](get|post|put|patch|delete)["']""", mark.lower()) or ["get"]
                    for method in methods:
                        pattern = f"{prefix}{detail}{path[1] if path else name}/"
                        yield base._replace(method=method.upper(), pattern=pattern, handler=place)
        if not members and not offered:
            yield base

    def _find_decorated(self, site: Site) -> int:
        """The symbol that a decorator or an attribute stands above, -1 for none."""
        decorated = self.unit.decorated_at.get(site.end)
        if decorated is not None:
            return decorated[0].symbol
        above = [at for at, each in enumerate(self.symbols) if each.start <= site.start < each.head]
        return above[-1] if above else -1

    def _find_members(self, kind: Candidate) -> list[Candidate]:
        """The methods of a class, and of the classes of the repository that it inherits from, the nearest of a name."""
        found: dict[str, Candidate] = {}
        todo, seen = [kind], set[Candidate]()
        while todo and len(seen) < 20:
            here = todo.pop(0)
            if here in seen:
                continue
            seen.add(here)
            for member in self.relations.members(here):
                found.setdefault(member.name.rpartition(".")[2], member)
            edges = self.relations.referrers.find_out(here, possible=False)
            todo += [edge.ref.resolved for edge in edges if edge.kind == "inherits" and edge.ref.resolved is not None]
        return list(found.values())

    def _read_tuples(self, number: int, framework: Framework) -> Iterator[_Draft]:
        """Tornado's `Application([(r"/a", Handler)])`, be the list written there or bound to a name."""
        site, call = self.unit.code.sites[number], self.calls[number]
        start, end = call.start, call.end
        for each in site.args:
            binds = self.unit.find(site.scope, each, site.start) if isinstance(each, str) else ()
            if binds:
                start = max(self.held.text.rfind(b"\n", 0, max(binds[-1].start - 1, 0)), 0)
                line = self.held.text.find(b"]", start)
                start, end = self._find_statement(binds[-1].start), max(binds[-1].start, line)
        rule = CallRule(call_names(call))
        for found in _TUPLE.finditer(self.held.text, start, end):
            value = Name(found["handler"].decode())
            pattern = found["path"].decode("utf-8", "replace")
            for route in self._make(number, framework, rule, "*", pattern, value, False, ()):
                yield _Draft(route._replace(start=found.start(), end=found.end()), None)

    def _find_statement(self, end: int) -> int:
        """Where the statement that ends there begins: the last line in front of it that is not further in."""
        text, at = self.held.text, max(end - 1, 0)
        while at > 0:
            at = text.rfind(b"\n", 0, at) + 1
            if text[at : at + 1] not in (b" ", b"\t", b"]", b")", b"\n", b"\r", b"}") or not at:
                return at
            at -= 1
        return 0

    def _read_held(self, value: Value, rule: CallRule) -> Iterator[tuple[str, Value]]:
        """`get(list).post(create)`: each of the calls of a chain names a method and is given what handles it."""
        for _ in range(MAX_STEPS):
            site = self._site(value)
            if site is None:
                return
            if site.name in rule.holds and site.args:
                yield ("*" if site.name == "any" else site.name.upper()), site.args[0]
            value = self._receiver(site)

    def _read_chained(self, number: int, rule: CallRule) -> Iterator[tuple[str, Value]]:
        """`route("/x").get(a).post(b)`; `p = sub.add_parser("go")`, `p.set_defaults(func=run)`."""
        site = self.unit.code.sites[number]
        ends, names = {site.end}, {bind.name for bind in self.unit.code.binds if bind.value == site.end}
        is_any = False
        for other in self.unit.code.sites:
            receiver = self._receiver(other)
            on_it = (isinstance(receiver, int) and receiver in ends) or (
                isinstance(receiver, str)
                and receiver in names
                and other.scope == site.scope
                and other.start > site.start
            )
            if not on_it:
                continue
            ends.add(other.end)
            if other.name in rule.chained:
                given = dict(other.keywords)
                value = next((given[at] for at in rule.handler if isinstance(at, str) and at in given), None)
                at = next((at for at in rule.handler if isinstance(at, int)), None)
                if value is None and at is not None and other.args:
                    value = other.args[at] if at < len(other.args) else None
                if value is not None:
                    is_any = True
                    yield (other.name.upper() if rule.kind == "http" else ""), value
        if not is_any and rule.kind == "cli":
            yield "", None

    def _mount_included(self, end: int, pattern: str, router: _Key | None, site: Site) -> bool:
        """Django's `path("a/", include(…))`: the routes of a module, of a list or of a router are put below a path."""
        inner = self._site(end)
        if inner is None or inner.name != "include" or not inner.args:
            return False
        value = inner.args[0]
        if isinstance(value, Listing) and value.kind == "tuple" and value.elements:
            value = value.elements[0]
        mount = (router, pattern, False, ())
        if isinstance(value, Text):
            for path in self._find_modules(value.value):
                self.finder.router((path, 0, _MODULE)).mounts.append(mount)
        elif isinstance(value, Listing):
            for each in value.elements:
                if isinstance(each, int):
                    self.finder.router((self.path, self.number, each)).mounts.append(mount)
        elif isinstance(value, str):
            ref = self.relations.meanings.find_dotted(self.path, self.number, value, site.start)
            place = ref.resolved
            head = value.removesuffix(".urls")
            key = self.follow(Name(head), inner.scope, inner.start) if head != value else None
            if key is not None:
                self.finder.router(key).mounts.append(mount)
            elif place is not None and not place.name:
                self.finder.router((place.path, 0, _MODULE)).mounts.append(mount)
            else:
                self.finder.router((self.path, self.number, value)).mounts.append(mount)
        return True

    def _find_modules(self, dotted: str) -> list[str]:
        tail = dotted.replace(".", "/")
        return [
            path
            for path in self.relations.paths()
            if path.endswith((f"{tail}.py", f"{tail}/__init__.py"))
            and f"/{path}".endswith((f"/{tail}.py", f"/{tail}/__init__.py"))
        ][:3]

    def _find_list(self, site: Site) -> _Key:
        """The list of Django's routes that a call stands in: that of the module, of a name, or of an `include`."""
        key = (self.path, self.number)
        if key not in self.finder._listed:
            held: dict[int, str] = {}
            for bind in self.unit.code.binds:
                for end in _find_ends(bind.value):
                    held[end] = bind.name
            self.finder._listed[key] = held
        if self.finder.has_router((self.path, self.number, site.end)):
            return self.path, self.number, site.end
        return self.path, self.number, self.finder._listed[key].get(site.end, _MODULE)

    def _find_methods(self, number: int, rule: CallRule) -> list[str]:
        call = self.calls[number]
        if rule.method:
            name = re.sub(r"(?i)^(?:add_|map|api_)", "", call.name).upper() if rule.method == "name" else rule.method
            name = {"ALL": "*", "ANY": "*", "VIEW": "*", "DEL": "DELETE"}.get(name, name)
            return [name.lower() if rule.kind == "graphql" or name in ("QUERY", "MUTATION", "SUBSCRIPTION") else name]
        value = self._argument(number, rule.methods) if rule.methods else None
        if isinstance(value, Text):
            return [value.value.upper()]
        if isinstance(value, Listing):
            return [each.value.upper() for each in value.elements if isinstance(each, Text)] or list(rule.usual) or [""]
        return list(rule.usual) or [""]

    # -- annotations, classes, files -----------------------------------------------------------------

    def find_marks(self) -> None:
        rules = [(framework, rule) for framework in self.frameworks for rule in framework.marks]
        for number, symbol in enumerate(self.symbols) if rules else ():
            for mark in symbol.decorators:
                name = re.split(r"[(<]", mark)[0].strip().rpartition(".")[2].rpartition("::")[2]
                for framework, rule in rules:
                    self._read_mark(number, symbol, mark, name, framework, rule)

    def _read_mark(
        self, number: int, symbol: Symbol, mark: str, name: str, framework: Framework, rule: MarkRule
    ) -> None:
        parts = re.findall(r"\w+", mark) if name == "derive" else [name]
        known = next((part for part in parts if part in rule.marks), None)
        holder = self.symbols[symbol.parent] if symbol.parent >= 0 else None
        if known is None or (rule.kind == "http" and symbol.kind_group not in ("function", "method")):
            return
        marks = [each.partition("(")[0].strip().rpartition(".")[2] for each in (holder.decorators if holder else ())]
        if rule.classes and not set(marks) & set(rule.classes):
            return
        method, pattern = rule.marks[known], _find_text(mark)
        methods = [method]
        if method == "*":
            methods = re.findall(r"RequestMethod\.(\w+)", mark) or ["*"]
        if rule.kind == "http" and framework.name == "JAX-RS":
            pattern = next((_find_text(each) for each in symbol.decorators if each.startswith("Path(")), "")
        if rule.kind == "http" and holder is not None:
            prefix = next(
                (_find_text(each) for each in holder.decorators if each.partition("(")[0].strip() in rule.prefixes), ""
            )
            pattern = join(prefix.replace("[controller]", holder.name.removesuffix("Controller").lower()), pattern)
        elif rule.kind == "cli":
            pattern = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", symbol.name).lower()
        elif not pattern:
            pattern = symbol.name
        place = self._own(number)
        takes, gives = self._read_types(place, None)
        for each in methods:
            route = Route(
                rule.kind, each, pattern, place, symbol.qualified_name, self.path, self.number, symbol.name_start,
                symbol.name_end, framework.name, "resolved", (), takes, gives,
            )  # fmt: skip
            self.finder.add(framework, _Draft(route, None))

    def find_classes(self) -> None:
        rules = [(framework, rule) for framework in self.frameworks for rule in framework.classes]
        for definition in self.unit.code.definitions if rules else ():
            if definition.kind != "class" or definition.symbol < 0 or not definition.bases:
                continue
            outside = self._find_bases(self._own(definition.symbol))
            for framework, rule in rules:
                if outside.isdisjoint(rule.bases) and not any(is_from(base, rule.bases) for base in outside):
                    continue
                for symbol in self.symbols:
                    found = re.fullmatch(rule.methods, symbol.name) if symbol.parent == definition.symbol else None
                    if found and symbol.kind_group in ("method", "function"):
                        number = self.symbols.index(symbol)
                        pattern = found.groupdict().get("path") or (
                            self.path.rpartition("/")[2].partition(".")[0] if rule.kind == "cli" else definition.name
                        )
                        route = Route(
                            rule.kind, "", pattern, self._own(number), symbol.qualified_name, self.path, self.number,
                            symbol.name_start, symbol.name_end, framework.name,
                        )  # fmt: skip
                        self.finder.add(framework, _Draft(route, None))

    def _find_bases(self, kind: Candidate | None) -> set[str]:
        """What a class extends, through those of the repository: dotted names, those of the repository too."""
        found: set[str] = set()
        todo, seen = [kind], set[Candidate]()
        while todo and len(seen) < 30:
            here = todo.pop(0)
            links = self.finder._documents.links_of(here.path, here.document) if here is not None else None
            if here is None or here in seen or links is None:
                continue
            seen.add(here)
            for owner, at in links.inherits:
                ref = links.refs[at]
                if owner == here.name and ref.status == "external":
                    found.add(ref.module)
                elif owner == here.name and ref.resolved is not None:
                    found.add(f"{module_name(ref.resolved.path)}.{ref.resolved.shown_name}")
                    todo.append(ref.resolved)
        return found

    def find_files(self) -> None:
        for framework in self.frameworks:
            for rule in framework.files:
                found = re.fullmatch(rule.pattern, self.path)
                if found is None or self.held.role == "test" or not self._has_next():
                    continue
                pattern = _read_file_path(found["path"])
                for number, symbol in enumerate(self.symbols):
                    is_method = symbol.name in rule.methods
                    if symbol.parent >= 0 or not (is_method or (not rule.methods and self._is_default(symbol))):
                        continue
                    place = self._own(number)
                    route = Route(
                        rule.kind, symbol.name if is_method else "*" if "/api/" in f"{pattern}/" else "GET", pattern,
                        place, symbol.qualified_name, self.path, self.number, symbol.name_start, symbol.name_end,
                        framework.name,
                    )  # fmt: skip
                    self.finder.add(framework, _Draft(route, None))

    def _has_next(self) -> bool:
        """Whether the package that a file is of depends on Next."""
        parts = self.path.split("/")
        for depth in range(len(parts) - 1, -1, -1):
            held = self.relations.hold("/".join((*parts[:depth], "package.json")))
            if held is not None and b'"next"' in held.text:
                return True
        return False

    def _is_default(self, symbol: Symbol) -> bool:
        exports = self.held.imports[self.number][1]
        return any(each.exported == "default" and each.name in (symbol.name, "") for each in exports) or (
            "default" in symbol.modifiers
        )

    # -- values ------------------------------------------------------------------------------------

    def find_handler(self, value: Value | Candidate, site: Site) -> tuple[Candidate | None, str, tuple[str, ...]]:
        """What runs, how it is written, and what is wrapped around it."""
        wrappers: list[str] = []
        for _ in range(MAX_STEPS):
            match value:
                case Candidate():
                    return value, "", tuple(wrappers)
                case Lambda(start=start):
                    made = self.unit.definitions.get(start)
                    symbol = -1 if made is None else made.anonymous[0] if made.anonymous else made.symbol
                    return (self._own(symbol) if symbol >= 0 else None), "a function without a name", tuple(wrappers)
                case Defined(start=start):
                    made = self.unit.definitions.get(start)
                    return (self._own(made.symbol) if made is not None else None), "", tuple(wrappers)
                case str():
                    return self._find_named(value, site), value, tuple(wrappers)
                case int():
                    inner = self._site(value)
                    if inner is None:
                        return None, "", tuple(wrappers)
                    receiver = self._receiver(inner)
                    if inner.name in ("as_view", "as_asgi") and receiver is not None:
                        value = receiver
                        continue
                    if not inner.args:
                        value = inner.callee if isinstance(inner.callee, str) else None
                        continue
                    wrappers.append(inner.name)
                    value = inner.args[-1 if isinstance(inner.args[-1], Lambda) else 0]
                case Text(value=text):
                    return self._find_by_text(text), text, tuple(wrappers)
                case Listing(elements=elements) if elements:
                    value = elements[-1]
                case Choice(options=options) if options:
                    value = options[0]
                case Attribute(path=path):
                    return None, path, tuple(wrappers)
                case _:
                    return None, "", tuple(wrappers)
        return None, "", tuple(wrappers)

    def _find_by_text(self, text: str) -> Candidate | None:
        """`app.views.show`, `UserController@show`, `users#show`: the one definition that is called so."""
        *owners, name = re.split(r"[.#@]", text)
        rows = [Definition(*row) for row in self.relations.files.definitions(name)]
        owner = "".join(part.capitalize() for part in owners[-1].split("_")) + "Controller" if "#" in text else ""
        owner = owner or ("".join(owners[-1:]) if "@" in text else "")
        rows = [row for row in rows if row.symbol.kind_group in ("function", "method", "class")]
        rows = [row for row in rows if not owner or row.symbol.qualified_name.endswith(f"{owner}.{name}")]
        rows = [row for row in rows if owner or len(owners) < 1 or row.is_called(text)]
        return self.relations.find_place(rows[0]) if len(rows) == 1 else None

    def _find_named(self, dotted: str, site: Site) -> Candidate | None:
        find = self.relations.meanings
        ref = find.find_dotted(self.path, self.number, dotted, site.start)
        head, _, last = dotted.rpartition(".")
        if ref.resolved is None and head:
            ref = find.find_attribute(self.path, self.number, last, site.start, head) or ref
        place = ref.resolved
        if place is None and head and "." not in head:
            imported = [
                bind for bind in self.unit.find(site.scope, head, site.start) if isinstance(bind.value, Imported)
            ]
            other = (
                _find_import(self, imported[0].value) if imported and isinstance(imported[0].value, Imported) else None
            )
            place = Candidate(other.path, other.number, last) if other is not None else None
        if place is None and not head and not self.unit.find(site.scope, last, site.start):
            rows = [Definition(*row) for row in self.relations.files.definitions(last)]
            rows = [row for row in rows if row.symbol.kind_group == "function"]
            place = self.relations.find_place(rows[0]) if len(rows) == 1 else None
        if place is not None and self.relations.documents.find_symbol(place) is None:
            return self._find_bound(place, site)
        return place

    def _find_bound(self, place: Candidate, site: Site) -> Candidate | None:
        """The function that a name of a module is bound to: `exports.list = () => …`, `view = wrapped(show)`."""
        other = self._open(place)
        if other is None:
            return None
        binds = other.unit.scopes[ROOT].get(place.name) or other.unit.scopes[ROOT].get(f"export {place.name}") or ()
        for bind in binds[:1]:
            if bind.value is not None and bind.value != place.name and not isinstance(bind.value, Imported):
                return other.find_handler(bind.value, site)[0]
        return None

    def _open(self, place: Candidate) -> _Document | None:
        if (place.path, place.document) == (self.path, self.number):
            return self
        held, unit = self.relations.hold(place.path), self.relations.documents.unit(place.path, place.document)
        return None if held is None or unit is None else _Document(self.finder, held, place.document, unit, ())

    def follow(self, value: Value, scope: int, start: int, steps: int = MAX_STEPS) -> _Key | None:
        """The call that made the router that a value is."""
        if steps <= 0 or value is None:
            return None
        match value:
            case int():
                key = (self.path, self.number, value)
                if self.finder.has_router(key):
                    return key
                site = self._site(value)
                if site is None:
                    return None
                number = self.unit.site_at[site.end]
                found = self.follow(self._receiver(site), scope, start, steps - 1)
                return found or self._follow_call(number, steps)
            case str():
                return self._follow_name(value, scope, start, steps)
            case Imported():
                item = _find_import(self, value)
                return None if item is None else item._follow_export(value.name, steps - 1)
            case Choice(options=options):
                return next((key for each in options if (key := self.follow(each, scope, start, steps - 1))), None)
            case Attribute(base=base):
                return self.follow(base, scope, start, steps - 1)
            case _:
                return None

    def _follow_name(self, dotted: str, scope: int, start: int, steps: int) -> _Key | None:
        head, _, rest = dotted.partition(".")
        for bind in reversed(self.unit.find(scope, head, start)):
            if isinstance(bind.value, Imported):
                ref = self.relations.meanings.find_dotted(self.path, self.number, dotted, start)
                place = ref.resolved
                other = self._open(place) if place is not None else None
                if place is not None and other is not None:
                    if not place.name:
                        return other._follow_export(rest or bind.value.name, steps - 1)
                    return other._follow_export(place.name, steps - 1)
            elif not rest and bind.value is not None:
                found = self.follow(bind.value, bind.scope, bind.start, steps - 1)
                if found is not None:
                    return found
        if rest:  # `self.app`
            for store in self.unit.assigned.get(rest.rpartition(".")[2], ()):
                found = self.follow(store.value, store.scope, store.start, steps - 1)
                if found is not None:
                    return found
        if not rest:  # of a language whose code does not say what a name is bound to
            for bind in reversed(self.unit.find(scope, head, start)):
                after = next((call for call in self.calls if call.start > bind.start >= 0), None)
                between = self.held.text[bind.start : after.start] if after is not None else b""
                if after is not None and bind.value is None and re.search(rb"^[^\n]{0,80}=\s*$", between):
                    ends = [call.end for call in self.calls if call.start == after.start]
                    return self.follow(CallEnd(max(ends)), scope, start, steps - 1)
        return None

    def _follow_export(self, name: str, steps: int) -> _Key | None:
        scopes = self.unit.scopes[ROOT]
        names = ("export =", "export default") if name in ("=", "default", "*") else (name, f"export {name}")
        for each in names:
            for bind in reversed(scopes.get(each, ())):
                if isinstance(bind.value, Imported):
                    other = _find_import(self, bind.value)
                    found = None if other is None else other._follow_export(bind.value.name, steps - 1)
                else:
                    found = self.follow(bind.value, ROOT, bind.start, steps - 1)
                if found is not None:
                    return found
        return None

    def _follow_call(self, number: int, steps: int) -> _Key | None:
        """Of a call of a function of the repository: the router that it returns, or the only one it makes."""
        place = self.relations.calls.find_call(self.path, self.number, number).resolved
        other = self._open(place) if place is not None else None
        symbol = self.relations.documents.find_symbol(place) if place is not None else None
        if other is None or symbol is None or symbol < 0:
            return None
        made = other.unit.by_symbol.get(symbol)
        for value in made.returns if made is not None else ():
            found = other.follow(value, symbol, other.symbols[symbol].end, steps - 1)
            if found is not None:
                return found
        own = [site.end for site in other.unit.code.sites if site.scope == symbol]
        keys = [key for end in own if self.finder.has_router(key := (other.path, other.number, end))]
        return keys[0] if len(keys) == 1 else None

    def _site(self, value: Value | int) -> Site | None:
        number = self.unit.site_at.get(value) if isinstance(value, int) else None
        return None if number is None else self.unit.code.sites[number]

    def _receiver(self, site: Site) -> Value:
        match site.callee:
            case MethodOf(receiver=receiver):
                return receiver
            case OnReceiver(receiver=receiver):
                return Name(receiver) if re.fullmatch(r"[\w.$]+", receiver) else None
            case Attribute(base=base, path=path):
                return base if "." not in path else None
            case _:
                return split_receiver(site.callee)

    def _argument(self, number: int, wanted: Sequence[At]) -> Value:
        """The first of these arguments that a call has; of one object, the value of its key."""
        site, call = self.unit.code.sites[number], self.calls[number]
        keywords = {each.name: _read_argument(each.text) for each in call.args if each.name} | dict(site.keywords)
        last = site.args[-1] if site.args else None
        if isinstance(last, Dictionary):
            for key, value in zip(last.keys, last.values, strict=True):
                if isinstance(key, Text):
                    keywords.setdefault(key.value, value)
        for at in wanted:
            if isinstance(at, str):
                if at in keywords:
                    return keywords[at]
                continue
            if site.args and -len(site.args) <= at < len(site.args):
                return site.args[at]
            positional = [each for each in call.args if not each.name]
            if not site.args and positional and -len(positional) <= at < len(positional):
                given = positional[at]
                return Lambda(-1) if given.kind == "function" else _read_argument(given.text)
        return None

    def _read_text(self, number: int, wanted: Sequence[At]) -> str:
        """The text that an argument is; what of it is not known stands in braces."""
        call = self.calls[number]
        for at in wanted:
            positional = [each for each in call.args if not each.name]
            named = (
                [each for each in call.args if each.name == at]
                if isinstance(at, str)
                else positional[at : at + 1 or None][:1]
            )
            for each in named:
                found = _LITERAL.fullmatch(each.text)
                if found and not re.match(r"(?i)[rbu]?f", each.text) and "${" not in each.text:
                    return found["text"]
                if each.text.startswith(":") and each.text[1:].isidentifier():
                    return f"/{each.text[1:]}"  # a symbol of Ruby
        value = self._argument(number, wanted)
        site = self.unit.code.sites[number]
        return self._write_text(value, site.scope, site.start, MAX_STEPS)

    def _write_text(self, value: Value, scope: int, start: int, steps: int) -> str:
        match value:
            case Text(value=text):
                return text
            case Joined(parts=parts):
                return "".join(self._write_text(part, scope, start, steps - 1) for part in parts)
            case Operated(operator="+", left=left, right=right):
                return self._write_text(left, scope, start, steps - 1) + self._write_text(
                    right, scope, start, steps - 1
                )
            case str() if steps > 0:
                binds = self.unit.find(scope, value.partition(".")[0], start)
                if len(binds) == 1 and "." not in value and isinstance(binds[0].value, Text | Joined | Operated):
                    return self._write_text(binds[0].value, binds[0].scope, binds[0].start, steps - 1)
                place = self.relations.meanings.find_dotted(self.path, self.number, value, start).resolved
                other = self._open(place) if place is not None else None
                found = other.unit.scopes[ROOT].get(place.name, ()) if other is not None and place is not None else ()
                if other is not None and len(found) == 1 and isinstance(found[0].value, Text | Joined | Operated):
                    return other._write_text(found[0].value, ROOT, found[0].start, steps - 1)
                return f"{{{value}}}"
            case Listing(elements=elements) if elements:
                return self._write_text(elements[0], scope, start, steps - 1)
            case None | Lambda() | Dictionary():
                return ""
            case _:
                return "{…}"

    def _name_by_key(self, site: Site) -> str:
        """tRPC: the key of the object that holds a call is its name, below those of the objects around it."""
        names: list[str] = []
        wanted: int | None = site.end
        while wanted is not None and len(names) < MAX_STEPS:
            above: int | None = None
            for other in self.unit.code.sites:
                for given in other.args:
                    if isinstance(given, Dictionary) and wanted in given.values:
                        key = given.keys[given.values.index(wanted)]
                        names += [key.value] if isinstance(key, Text) else []
                        above = other.end
            wanted = above
        return ".".join(reversed(names))

    def _own(self, symbol: int) -> Candidate | None:
        return self.relations.documents.find_place(self.path, self.number, symbol) if symbol >= 0 else None

    def _read_types(self, handler: Candidate | None, call: Call | None) -> tuple[tuple[str, ...], str]:
        """The types of the repository or of outside that a handler takes, and what it gives, as written."""
        symbol = self.relations.symbol(handler) if handler is not None else None
        if symbol is None:
            return (), ""
        given = next((each.text for each in call.args if each.name == "response_model"), "") if call else ""
        head, _, result = symbol.signature.rpartition("->")
        inside = (head or symbol.signature).partition("(")[2]
        types = re.findall(r":\s*([A-Z][\w.\[\]|]*)", inside)
        return tuple(dict.fromkeys(types))[:5], given or (result.strip().rstrip(":;{ ") if head else "")


def _find_import(document: _Document, value: Imported) -> _Document | None:
    """The document of the repository that an import names."""
    for bind, imported, ref in document.relations.documents.find_bound(document.path, document.number):
        if imported is value or (imported.module, imported.name, imported.level) == (
            value.module,
            value.name,
            value.level,
        ):
            del bind
            return document._open(ref.candidates[0]) if ref.candidates else None
    item = [each for each in document.held.imports[document.number][0] if each.module == value.module]
    for sources in document.relations.documents.find_sources(document.path, document.unit.language, item):
        for source in sources or ():
            if source.path:
                return document._open(Candidate(source.path, 0, ""))
    return None


def join(prefix: str, path: str) -> str:
    """Two parts of a path, with one slash between them."""
    if not prefix or not path:
        return prefix or path
    path = path.removeprefix("^")
    if prefix.endswith("/") or path.startswith("/"):
        return prefix.rstrip("/") + "/" + path.lstrip("/")
    return f"{prefix}/{path}"


def call_names(call: Call) -> tuple[str, ...]:
    return (call.name,)


def _find_ends(value: Value) -> Iterator[int]:
    match value:
        case Listing(elements=elements):
            for each in elements:
                if isinstance(each, int):
                    yield each
        case Operated(left=left, right=right):
            yield from _find_ends(left)
            yield from _find_ends(right)
        case _:
            return


def _find_text(mark: str) -> str:
    """The first text in an annotation."""
    found = re.search(r"""["'`]([^"'`]*)["'`]""", mark)
    return found[1] if found else ""


def _read_argument(text: str) -> Value:
    found = _LITERAL.fullmatch(text)
    if found:
        return Text(found["text"])
    method = re.match(r"""\[\s*([\w\\]+)::class\s*,\s*["'](\w+)["']""", text)
    if method:  # `[UserController::class, 'show']`
        return Text(f"{method[1].rpartition(chr(92))[2]}@{method[2]}")
    return Name(text) if re.fullmatch(r"[A-Za-z_$][\w.$]*", text) else None


def _read_file_path(text: str) -> str:
    """The path of a file of routes: groups in parentheses leave nothing, `[id]` is a parameter."""
    parts = [part for part in text.strip("/").split("/") if part and not re.fullmatch(r"\(.*\)|@.*", part)]
    parts = parts[:-1] if parts and parts[-1] == "index" else parts
    return "/" + "/".join(parts)
