"""Which providers there are, whether each may and can run, and who is asked what, in an order that never varies.

    registry = Registry(root, config.providers, tools=cache_dir / "tools")
    (reply,) = registry.ask("hover", [Target(Document.of(source), offset)])
    replies = registry.ask("definition", targets, BUDGETS["precise"], bulk=True)  # very many places
    rows = registry.status()  # for the doctor
    close_sessions(root)  # or at exit, by itself

A reply that is `unresolved` has been asked of everyone who could know. `summarize` makes the state of the contract
(unavailable, skipped, failed, partial, ok) from replies.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec

from cq.language import describe
from cq.model.config import ProvidersConfig
from cq.model.provider import Coverage, ProviderStatus, Reply, Telemetry
from cq.model.status import Degraded
from cq.providers.answers import Target
from cq.providers.documents import Document
from cq.providers.planes import PLANES, ask, offered_planes
from cq.providers.programs import Detection, Tree, look_through
from cq.providers.session import BUDGETS, Budget, ServerSpec
from cq.providers.sessions import find_sessions, get_session

# What any server may offer; the rest is one server's own.
_SPECIAL = ("macros", "runnables")
SERVER_KINDS = tuple(dict.fromkeys(plane.kind for plane in PLANES.values() if plane.kind not in _SPECIAL))
# Answered without a server: the plane and its kind.
LOCAL_PLANES = {"scopes": "scopes", "bytecode": "bytecode"}
_UNUSED = "its settings in the configuration are not used: the repository is not trusted"


class Site(msgspec.Struct, frozen=True):
    """Where providers run: the root, the directory of fetched tools, and whether the user trusts the repository."""

    root: Path
    tools: Path | None = None
    trusted: bool = False
    settings: dict[str, dict[str, Any]] = {}  # by provider; they can name programs to run, so they need trust too
    breaker: int = 0  # restarts until a server is given up; 0: as it comes


class Provider(msgspec.Struct, frozen=True):
    """`detect` runs the tool; `run` gives one reply per target. Either may raise: then the provider is unavailable."""

    id: str
    label: str
    priority: int
    languages: tuple[str, ...]
    kinds: tuple[str, ...]  # of planes
    requires: str  # a program or a module
    detect: Callable[[Site], Detection]
    run: Callable[[Site, Detection, str, Sequence[Target], Budget], list[Reply[Any]]]
    best: frozenset[str] = frozenset()  # planes for which it goes before others of its language
    resolve: Callable[[Site, Detection, Sequence[Target], Budget], list[Reply[Any]]] | None = (
        None  # definitions in bulk
    )
    settings: tuple[str, ...] = ()  # files by which a repository tells it what to run; in lower case
    hazard: Callable[[Site, Tree], str] | None = None  # why these keep it from being asked where nobody trusts them

    def answers(self, plane: str) -> bool:
        return (PLANES[plane].kind if plane in PLANES else LOCAL_PLANES[plane]) in self.kinds


def serve(spec: Callable[[Site, Detection], ServerSpec]):
    """`run` for a language server."""

    def run(
        site: Site, detection: Detection, plane: str, targets: Sequence[Target], budget: Budget
    ) -> list[Reply[Any]]:
        how = spec(site, detection)
        if site.trusted and how.id in site.settings:
            how = msgspec.structs.replace(how, settings={**how.settings, **site.settings[how.id]})
        if site.breaker:
            how = msgspec.structs.replace(how, breaker=site.breaker)
        return ask(get_session(site.root, how), plane, targets, budget)

    return run


class Registry:
    """The providers of one root. Detection is done once, when a provider is first needed."""

    def __init__(
        self,
        root: Path,
        config: ProvidersConfig | None = None,
        *,
        tools: Path | None = None,
        trusted: bool = False,
        providers: Iterable[Provider] | None = None,
    ) -> None:
        self.config = config or ProvidersConfig()
        self.site = Site(root.resolve(), tools, trusted, self.config.settings, self.config.breaker)
        found = list(_load_providers(self.config) if providers is None else providers)
        self.providers = tuple(sorted(found, key=lambda provider: (provider.priority, provider.id)))
        self._detected: dict[str, Detection] = {}
        self._tree: Tree | None = None  # as it is during one question
        # Planes are asked in threads of their own: one looks, the others wait for what it finds.
        self._looking = {provider.id: Lock() for provider in self.providers}
        self._looking_through = Lock()

    def detect(self, provider: Provider) -> Detection:
        if block := self._find_block(provider):
            return block
        with self._looking[provider.id]:
            if provider.id not in self._detected:
                try:
                    detection = provider.detect(self.site)
                except Exception as error:  # noqa: BLE001  a provider that throws is unavailable, and nothing else
                    detection = Detection(False, reason=f"{type(error).__name__}: {error}")
                self._detected[provider.id] = detection
            return self._detected[provider.id]

    def _find_block(self, provider: Provider) -> Detection | None:
        """Why no server is given this tree: it would open what lies there and wait until its time is over, or do what
        it says there."""
        if not set(provider.kinds) - set(LOCAL_PLANES.values()):
            return None
        with self._looking_through:
            if self._tree is None:
                names = {name for each in self.providers for name in each.settings}
                self._tree = look_through(self.site.root, names)
            tree = self._tree
        if pipe := tree.pipe:
            return Detection(False, reason=f"{pipe} is not a regular file, and would block it", advice="remove it")
        reason = provider.hazard(self.site, tree) if provider.hazard and not self.site.trusted else ""
        return Detection(False, reason=reason, advice="`--trust` says that you trust it") if reason else None

    def forget_missing(self) -> None:
        """Before a question: what could be run still can, unless the repository has changed."""
        self._tree = None
        self._detected = {name: known for name, known in self._detected.items() if known.available}

    def why_disabled(self, provider: Provider) -> str:
        if provider.id in self.config.deny:
            return "denied by the configuration"
        if self.config.allow and provider.id not in self.config.allow:
            return "the configuration allows others only"
        return ""

    def select(self, language: str, plane: str) -> Iterator[Provider]:
        """Who can be asked, the best first: as configured, then those made for the plane, by priority and id.

        Whether a provider can run is found out only when it is its turn: some take a second to say their version.
        """
        found = [
            provider
            for provider in self.providers
            if language in provider.languages and provider.answers(plane) and not self.why_disabled(provider)
        ]
        first = {name: at for at, name in enumerate(self.config.order)}
        found.sort(key=lambda each: (first.get(each.id, len(first)), plane not in each.best, each.priority, each.id))
        for provider in found:
            if self.detect(provider).available:
                yield provider

    def ask(
        self, plane: str, targets: Sequence[Target], budget: Budget = BUDGETS["interactive"], *, bulk: bool = False
    ) -> list[Reply[Any]]:
        """One reply per target, in order; what one provider leaves unresolved the next is asked.

        In `bulk` only the best provider of each language that answers at all is asked, over its interface for many
        places if it has one.
        """
        budget = self._fit(budget)
        replies = self._leave_out(plane, targets)
        for language in sorted({target.document.language for target in targets}):
            todo = [at for at, target in enumerate(targets) if target.document.language == language]
            todo = [at for at in todo if at not in replies]
            for provider in self.select(language, plane):
                found = self._run(provider, plane, [targets[at] for at in todo], budget, bulk=bulk)
                for at, reply in zip(todo, found, strict=True):
                    # The first to be asked says why, if nobody knows.
                    if reply.answered or at not in replies:
                        replies[at] = reply
                todo = [at for at in todo if not replies[at].answered]
                if not todo or (bulk and any(not reply.failed for reply in found)):
                    break
            else:
                if missing := [at for at in todo if at not in replies]:
                    nobody = Reply[Any]("", plane, Coverage("unresolved", self.explain(language, plane)))
                    replies |= dict.fromkeys(missing, nobody)
        return [replies[at] for at in range(len(targets))]

    def _fit(self, budget: Budget) -> Budget:
        """With the times and retries that are configured."""
        config, default = self.config, ProvidersConfig()
        if config.timeout:
            long = max(budget.first, config.timeout)
            budget = msgspec.structs.replace(
                budget, point=config.timeout, project=config.timeout, first=long,
                project_first=max(budget.project_first, config.timeout), total=max(budget.total, config.timeout),
            )  # fmt: skip
        return (
            budget
            if config.retries == default.retries
            else msgspec.structs.replace(budget, attempts=config.retries + 1)
        )

    def _leave_out(self, plane: str, targets: Sequence[Target]) -> dict[int, Reply[Any]]:
        """Of targets in files that the configuration keeps from servers, why they are not asked about."""
        most, size = self.config.max_files, self.config.max_file_bytes
        left: dict[int, Reply[Any]] = {}
        paths: set[str] = set()
        for at, target in enumerate(targets):
            path, why = target.document.path, ""
            if size and len(target.document.text) > size:
                why = f"the file is larger than max_file_bytes = {size:,}"
            elif most and path not in paths and len(paths) >= most:
                why = f"files beyond max_files = {most:,} are not asked about"
            else:
                paths.add(path)
            if why:
                left[at] = Reply("", plane, Coverage("unresolved", why))
        return left

    def explain(self, language: str, plane: str) -> str:
        """Why nobody can be asked, in one line with what would help."""
        able = [each for each in self.providers if language in each.languages and each.answers(plane)]
        if not able:
            return f"no provider answers {plane.replace('_', ' ')} for {language}"
        first = able[0]
        why = self.why_disabled(first) or self.detect(first).reason
        advice = self.detect(first).advice
        return f"{first.label}: {why}" + (f"; {advice}" if advice else "")

    def status(self) -> tuple[ProviderStatus, ...]:
        """Every provider, also those that cannot run, as the engine itself sees them."""
        rows: list[ProviderStatus] = []
        running = {session.spec.id: session for session in find_sessions(self.site.root)}
        for provider in self.providers:
            detection, disabled = self.detect(provider), self.why_disabled(provider)
            session = running.get(provider.id)
            rows.append(
                ProviderStatus(
                    provider.id,
                    provider.label,
                    provider.priority,
                    provider.languages,
                    provider.kinds,
                    detection.available,
                    not disabled,
                    detection.version,
                    tuple(filter(None, (disabled, detection.reason))),
                    detection.advice,
                    offered_planes(session) if session and session.pid else (),
                    tuple(session.errors) if session else (),
                    (_UNUSED,) if provider.id in self.site.settings and not self.site.trusted else (),
                )
            )
        return tuple(rows)

    def probe(self) -> None:
        """Starts every server that may and can run, so that `status` tells what each offers."""

        def start(provider: Provider) -> None:
            if not self.why_disabled(provider) and self.detect(provider).available:
                language = provider.languages[0]
                name = f".cq-vfs/probe{describe(language).suffix}"
                self._run(provider, "document_symbols", [Target(Document(name, language, b"\n"))], BUDGETS["prefetch"])

        able = [provider for provider in self.providers if provider.answers("document_symbols")]
        with ThreadPoolExecutor(max(len(able), 1)) as pool:
            list(pool.map(start, able))

    def _run(
        self, provider: Provider, plane: str, targets: list[Target], budget: Budget, *, bulk: bool = False
    ) -> list[Reply[Any]]:
        detection = self.detect(provider)
        if not detection.available:  # since it was selected it threw
            return [Reply(provider.id, plane, Coverage("unresolved", detection.reason), failed=True)] * len(targets)
        try:
            if bulk and provider.resolve and plane == "definition":
                return provider.resolve(self.site, detection, targets, budget)
            return provider.run(self.site, detection, plane, targets, budget)
        except Exception as error:  # noqa: BLE001  a provider that throws is unavailable, and nothing else
            reason = f"{type(error).__name__}: {error}"
            self._detected[provider.id] = Detection(False, reason=reason)
            return [Reply(provider.id, plane, Coverage("unresolved", reason), failed=True)] * len(targets)


def get_registry(root: Path, config: ProvidersConfig, *, tools: Path | None = None, trusted: bool = False) -> Registry:
    """The one of this process: what was found out about a program stays known. What was missing is looked for again."""
    how: list[Any] = [str(root.resolve()), config, str(tools), trusted, os.environ.get("PATH", "")]
    key = msgspec.json.encode(how, order="deterministic")
    registry = _registries.get(key)
    if registry is None:
        if len(_registries) >= _MAX_REGISTRIES:
            _registries.clear()
        registry = _registries[key] = Registry(root, config, tools=tools, trusted=trusted)
    registry.forget_missing()
    return registry


_registries: dict[bytes, Registry] = {}
_MAX_REGISTRIES = 16


def summarize(replies: Sequence[Reply[Any]], *, available: bool = True, skipped: int = 0) -> Telemetry:
    applied = sum(reply.answered for reply in replies)
    timed_out = sum(reply.timed_out for reply in replies)
    failed = len(replies) - applied
    return Telemetry(available, len(replies), applied, failed, skipped, timed_out)


def find_degraded(replies: Sequence[Reply[Any]]) -> tuple[Degraded, ...]:
    """One event per provider and reason, for whatever is not complete: a server that does not run is said once, not
    once a plane. The event is filed under the first of the planes."""
    found: dict[tuple[str, str, str], str] = {}
    for reply in replies:
        if reply.coverage.state != "complete":
            key = reply.provider, reply.coverage.state, reply.coverage.reason
            found[key] = min(found.get(key, reply.plane), reply.plane)
    return tuple(
        Degraded(f"providers.{provider or 'none'}", "info" if state == "partial" else "warning", plane, reason)
        for (provider, state, reason), plane in sorted(found.items(), key=lambda item: (item[0][0], item[1], item[0]))
    )


def _load_providers(config: ProvidersConfig) -> list[Provider]:
    from cq.providers import basedpyright, bytecode, generic, pyrefly, rust_analyzer, symtables, ty, typescript

    known = [
        module.PROVIDER
        for module in (basedpyright, bytecode, pyrefly, rust_analyzer, symtables, ty, typescript)
    ]  # fmt: skip
    return [*known, *generic.find_providers(config)]
