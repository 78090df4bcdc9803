"""Hostile programs: what is done is bounded, and what is not done is said."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cq.questions.risk.program import TextProgram
from cq.risk.engine import MAX_CONTEXTS, Engine
from cq.risk.expressions import MAX_EFFORT
from cq.risk.interpret import Interpreter
from tests.risk.test_cases import CASES

HEAD = "import os, sys\n"
DEEP = 90


def run(text: str) -> Engine:
    program = TextProgram({"main.py": ("python", text.encode())})
    engine = Engine(program)
    engine.run_all(program.documents)
    return engine


def test_a_function_of_ten_thousand_branches_ends_and_says_so():
    branches = "".join(f"    if a == {number}:\n        x = x + 'b'\n" for number in range(10_000))
    engine = run(f"{HEAD}def f(a):\n    x = sys.argv[1]\n{branches}    os.system(x)\n")
    assert [place.name for place, _ in engine.cut] == ["f"]


def test_work_in_one_function_is_counted(monkeypatch: pytest.MonkeyPatch):
    efforts: list[int] = []
    summarize = Interpreter._summarize

    def note(self: Interpreter, final: object) -> object:
        efforts.append(self.effort)
        return summarize(self, final)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(Interpreter, "_summarize", note)
    loops = "".join(f"{'    ' * (depth + 1)}for b{depth} in a:\n" for depth in range(15))
    run(f"{HEAD}def f(a):\n    x = sys.argv[1]\n{loops}{'    ' * 17}os.system(x)\n")
    assert max(efforts) <= MAX_EFFORT + 1


def test_functions_that_call_one_another_are_followed_a_few_times():
    functions = "".join(
        f"def f{n}(a):\n    f{(n + 1) % 50}(a)\n    f{(n * 7 + 3) % 50}(a)\n    os.system(a)\n" for n in range(50)
    )
    engine = run(f"{HEAD}{functions}f0(sys.argv[1])\n")
    assert len({flow.place for flow in engine.flows.values()}) >= 10
    assert engine.followed < 50 * 10


def test_a_function_is_followed_for_a_few_constants_only():
    calls = "".join(f"g('x{number}', sys.argv[1])\n" for number in range(200))
    engine = run(f"{HEAD}def g(a, b):\n    os.system(a + b)\n{calls}")
    assert len(engine.flows) == 200
    assert engine.followed <= 2 + 2 * MAX_CONTEXTS


@pytest.mark.parametrize(
    "text",
    [
        "def f(:\n  if x = (\n os.system(sys.argv[\n" * 50,
        f"x = {'lambda: ' * DEEP}1\n",
        f"def f(a):\n    return {'[x for x in ' * 20}a{']' * 20}\n",
        f"import os, sys\nx = sys.argv[1]{'.strip()' * 2000}\nos.system(x)\n",
        "class N:\n    def __init__(self, a):\n        self.a = a\n        self.b = self\n\n\ndef f(x):\n    n = N(x)\n"
        + "    n.b.b.b.b.a = N(n)\n" * 100
        + "    return n\n",
    ],
)
def test_odd_code_is_read_to_its_end(text: str):
    assert run(text).mistakes == {}


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_pieces_of_programs_in_any_order_raise_nothing(data: st.DataObject):
    texts = [next(iter(files.values())) for _, language, files in CASES if language == "python"]
    lines = [
        line
        for text in data.draw(st.lists(st.sampled_from(texts), min_size=1, max_size=3))
        for line in text.split("\n")
    ]
    kept = data.draw(st.lists(st.integers(0, len(lines) - 1), max_size=60))
    run("\n".join(lines[number] for number in kept))
