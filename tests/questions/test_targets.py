"""TARGETs: of several that fit every question takes the same, and nobody sees how links tell them apart."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from cq import Answer, Workspace
from cq.model.answer import SCHEMA_VERSION, Degradation, Insight, Run
from cq.model.errors import UsageError
from cq.questions.calls import CallsOptions
from cq.questions.path import PathOptions
from cq.questions.read import ReadOptions
from cq.questions.sig_impact import SignatureOptions
from cq.surfaces.render.answer import render_answer
from tests.support.checks import open_fixture
from tests.support.fixture import parse_fixture

TREE = """
#- lib/stub.pyi
class Doc:
    def close(self) -> None: ...
#- lib/stub.py
class Doc:
    def close(self):
        return run(1)
def run(x):
    return x
#- lib/typed.py
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    class Row:
        def write(self, row: int) -> int:
            return 0
    def pick(x: int) -> int: ...
else:
    class Row:
        def write(self, row):
            return pick(row)
    def pick(x):
        return x
def main():
    Row().write(2)
    pick(1)
#- lib/busy.py
def send(x):
    return x
def first():
    send(1)
def second():
    send(2)
class Both:
    @property
    def got(self):
        return send(1)
    @got.setter
    def got(self, value):
        send(value)
def loop(items):
    for x in items:
        send(x)
    for x in items:
        send(lambda x: x, lambda x: send(x))
#- lib/alone.py
def send(
    x,
    y=1,
):
    z = x
    return z
#- lib/store.py
LIMIT = 2

# The line above is not of the class below.
class Store:
    size: int = 0

    def fill(self):
        self.size = LIMIT
        return self.size
#- crate/interest.rs
pub struct Interest(u8);

impl Interest {
    pub fn is_readable(&self) -> bool { self.0 > 1 }
}

impl Clone for Interest {
    fn clone(&self) -> Interest { Interest(self.0) }
}
#- tests/test_send.py
def send(x):
    return x
def test_send():
    send(1)
#- web/row.ts
export function pick(a: string): string;
export function pick(a: number): number;
export function pick(a: any) { return helper(a); }
namespace Widget { export function make() { return helper(1); } }
namespace Widget { export function make() { return helper(2); } }
function helper(x: any) { return x; }
pick(1); Widget.make();
#- web/view.tsx
const Row = React.memo(function InnerRow(props: any) { return <b onClick={() => helperOf(props)} />; });
Module.addOnPreMain = function (cb) { return helperOf(cb); };
export const Shape = core.make("Shape", (inst) => { inst._zod.check = (payload) => helperOf(payload); });
function helperOf(x: any) { return x; }
Module.addOnPreMain(helperOf);
export const Size = core.make("Size", (inst) => {
  const width = inst.width;
  inst.check(width);
});
Size.use(helperOf);
"""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    root = tmp_path_factory.mktemp("targets")
    for path, text in parse_fixture(TREE).files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    with Workspace.open(root, index_dir=root.with_name("index")) as workspace:
        yield workspace


ASK: dict[str, Callable[[Workspace, str], Answer]] = {
    "neighborhood": lambda workspace, target: workspace.neighborhood(target),
    "calls": lambda workspace, target: workspace.calls(target),
    "graph": lambda workspace, target: workspace.graph(target),
    "impact": lambda workspace, target: workspace.impact(target),
    "sig_impact": lambda workspace, target: workspace.sig_impact(SignatureOptions(target, "f(x, y, z)")),
    "path": lambda workspace, target: workspace.path(PathOptions(target, "helper")),
    "read": lambda workspace, target: workspace.read(ReadOptions(target)),
    "scopes": lambda workspace, target: workspace.scopes(target),
    "hover": lambda workspace, target: workspace.hover(target),
    "references": lambda workspace, target: workspace.references(target),
    "exceptions": lambda workspace, target: workspace.exceptions(target),
}
OF_ALL = ("neighborhood", "read", "graph", "impact", "references", "hover")  # what is asked of every kind of definition


def place_of(answer: Answer) -> tuple[str, int]:
    assert answer.insight is not None
    assert answer.insight.target is not None
    return answer.insight.target.location.path, answer.insight.target.location.start_line


@pytest.mark.parametrize("ask", [name for name in ASK if name not in ("path", "exceptions")])
@pytest.mark.parametrize(
    ("target", "place"),
    [
        ("Doc.close", ("lib/stub.py", 2)),  # real before stub
        ("Row.write", ("lib/typed.py", 9)),  # also below TYPE_CHECKING, where the stub has a body of its own
        ("lib/typed.py:pick", ("lib/typed.py", 11)),
        ("send", ("lib/busy.py", 1)),  # the one with most certain callers, not the first by path or the test's
        ("lib/alone.py:2", ("lib/alone.py", 1)),  # the line of a parameter
        ("lib/alone.py:5", ("lib/alone.py", 1)),  # of a local
        ("web/row.ts:pick", ("web/row.ts", 3)),
    ],
)
def test_every_question_takes_the_same_of_several(workspace: Workspace, ask: str, target: str, place: tuple[str, int]):
    assert place_of(ASK[ask](workspace, target)) == place


@pytest.mark.parametrize("ask", OF_ALL)
@pytest.mark.parametrize(
    ("target", "place"),
    [
        ("lib/store.py:8", ("lib/store.py", 7)),  # a method stores a field
        ("lib/store.py:5", ("lib/store.py", 5)),  # a class declares it
        ("lib/store.py:6", ("lib/store.py", 4)),  # a line without code is the class's that it stands in
        ("Interest", ("crate/interest.rs", 1)),  # the type, not one of its `impl` blocks
        ("crate/interest.rs:Interest", ("crate/interest.rs", 1)),
        ("crate/interest.rs:7", ("crate/interest.rs", 7)),
        ("web/view.tsx:7", ("web/view.tsx", 6)),  # in a function without a name: the constant that is made with it
        ("web/view.tsx:8", ("web/view.tsx", 6)),
    ],
)
def test_lines_and_types(workspace: Workspace, ask: str, target: str, place: tuple[str, int]):
    assert place_of(ASK[ask](workspace, target)) == place


def test_a_line_without_code_is_not_of_what_follows(workspace: Workspace):
    assert workspace.graph("lib/store.py:2").insight is None


@pytest.mark.parametrize("name", ["send", "close", "write", "pick", "run", "Interest"])
def test_search_and_find_begin_with_the_same(workspace: Workspace, name: str):
    path, line = place_of(workspace.read(ReadOptions(name)))
    assert place_of(workspace.search(name)) == (path, line)
    first = workspace.find(f"symbol = {name}").results[0]
    assert (first.file, first.start_line) == (path, line)


@pytest.mark.parametrize(
    ("target", "name", "line"),
    [
        ("InnerRow", "Row", 1), ("web/view.tsx:InnerRow", "Row", 1), ("Module.addOnPreMain", "Module.addOnPreMain", 2),
        ("inst._zod.check", "inst._zod.check", 3), ("_zod.check", "inst._zod.check", 3), ("web/view.tsx:3", "Shape", 3),
    ],
)  # fmt: skip
def test_functions_in_calls_and_on_members_can_be_named(workspace: Workspace, target: str, name: str, line: int):
    for ask in ("neighborhood", "calls", "impact", "read", "graph") if name != "Shape" else ("neighborhood", "read"):
        answer = ASK[ask](workspace, target)
        assert answer.insight is not None
        assert answer.insight.target is not None
        assert (answer.insight.target.name, place_of(answer)) == (name, ("web/view.tsx", line)), ask
    listed = [row.symbol.qualified_name for row in workspace.symbols() if row.path == "web/view.tsx"]
    assert {"Row", "Module.addOnPreMain", "inst._zod.check"} <= set(listed)


@pytest.mark.parametrize(
    "ask",
    [
        lambda workspace: workspace.exceptions("send"),
        lambda workspace: workspace.side_effects("send"),
        lambda workspace: workspace.bytecode("web/row.ts:pick"),
        lambda workspace: workspace.path(PathOptions("send", "helper")),
    ],
)
def test_an_answer_of_nothing_says_what_it_is_about(workspace: Workspace, ask: Callable[[Workspace], Answer]):
    answer = ask(workspace)
    assert answer.found == 0
    assert answer.insight is not None
    assert answer.insight.target is not None
    assert answer.insight.target.name in ("send", "pick")
    assert "; 0 " not in render_answer(answer)


def test_a_language_server_that_knows_nothing_is_said_to():
    nothing = Answer(
        SCHEMA_VERSION, "lsp", Run(), {"query": "actions a.py:1"}, insight=Insight(degradation=Degradation())
    )
    assert render_answer(nothing) == "nothing found: 'actions a.py:1'\n"


def test_others_are_listed(workspace: Workspace):
    target = workspace.impact("send").insight
    assert target is not None
    assert target.target is not None
    assert (target.target.index, target.target.of) == (1, 3)
    # Only the test's own `send` is called, but nobody who asks for `send` means it.
    assert [(other.path, other.line) for other in target.target.others] == [
        ("lib/alone.py", 1),
        ("tests/test_send.py", 1),
    ]


@pytest.mark.parametrize("ask", [name for name in ASK if name not in ("neighborhood", "path")])
def test_a_line_past_the_end_is_an_error(workspace: Workspace, ask: str):
    with pytest.raises(UsageError, match=r"lib/alone\.py has no line|has no lines"):
        ASK[ask](workspace, "lib/alone.py:99")


@pytest.mark.parametrize("ask", [name for name in ASK if name not in ("neighborhood", "path")])
def test_a_column_past_the_end_of_its_line_is_no_place_in_the_next(workspace: Workspace, ask: str):
    with pytest.raises(UsageError, match=r"lib/alone\.py:2 has no column 9"):
        ASK[ask](workspace, "lib/alone.py:2:9")
    ASK[ask](workspace, "lib/alone.py:2:7")  # behind the last character, where the cursor of an editor may stand


def test_names_that_tell_twins_apart_are_never_shown(workspace: Workspace):
    for name, ask in ASK.items():
        for target in ("Both.got", "loop", "helper", "Widget.make", "send", "pick", "web/row.ts:pick", "Row.write"):
            shown = msgspec.json.encode(msgspec.structs.replace(ask(workspace, target), artifacts=())).decode()
            assert not re.search(r"\w[~#]\d", shown), (name, target)
    for row in workspace.symbols():
        assert not re.search(r"[~#]\d", row.symbol.qualified_name)
    ids = [row.symbol_id for row in workspace.symbols()]
    assert len(ids) == len(set(ids))


def test_a_page_of_calls_is_about_the_target_it_was_asked_about(workspace: Workspace):
    answer = workspace.calls(CallsOptions("send", include=("tests/*",)))
    assert place_of(answer) == ("lib/busy.py", 1)  # filters are about who calls, not about what is meant


SIGNALS = """
#- app/dispatch.py
class Signal:
    def send(self, sender):
        return sender


class ModelSignal(Signal):
    def connect(self, receiver):
        return receiver
#- app/signals.py
from app.dispatch import ModelSignal, Signal

post_save = ModelSignal()
typed: Signal = make()
#- app/bus.ts
class Emitter { emit(name: string) { return name; } }
export const bus = new Emitter();
"""


def test_an_attribute_of_an_instance_is_the_method_of_its_class(tmp_path: Path):
    with open_fixture(tmp_path, SIGNALS) as workspace:
        for text, name in (
            ("post_save.send", "Signal.send"),
            ("post_save.connect", "ModelSignal.connect"),
            ("app.signals.post_save.send", "Signal.send"),
            ("typed.send", "Signal.send"),
            ("bus.emit", "Emitter.emit"),
        ):
            answer = workspace.read(text)
            assert answer.insight is not None
            assert answer.insight.target is not None
            assert answer.insight.target.name == name, text
        nothing = workspace.calls("pre_save.send")
        assert (nothing.found, nothing.suggestions[0]) == (0, "Signal.send")
        assert workspace.read("post_save.nothing").found == 0
