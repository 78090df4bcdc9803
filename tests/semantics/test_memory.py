"""One way to remember, one to forget."""

from __future__ import annotations

from cq.model.edge import Candidate
from cq.semantics.memory import Memory, remembered


class Counted:
    def __init__(self) -> None:
        self.memory, self.asked = Memory(), list[object]()

    @remembered
    def of_file(self, path: str, number: int = 0) -> str:
        self.asked.append((path, number))
        return f"{path}:{number}"

    @remembered
    def of_definition(self, place: Candidate, *, possible: bool = True) -> None:
        self.asked.append((place, possible))


def test_the_same_question_is_worked_out_once():
    counted = Counted()
    assert [counted.of_file("a.py", 1), counted.of_file("a.py", 1), counted.of_file("a.py", 2)] == [
        "a.py:1", "a.py:1", "a.py:2",
    ]  # fmt: skip
    place = Candidate("a.py", 0, "f")
    for possible in (True, False, True, False):
        counted.of_definition(place, possible=possible)  # nothing is an answer as well
    assert counted.asked == [("a.py", 1), ("a.py", 2), (place, True), (place, False)]


def test_what_is_about_a_file_is_forgotten_with_it():
    counted = Counted()
    for _ in range(2):
        counted.of_file("a.py")
        counted.of_file("b.py")
        counted.of_definition(Candidate("a.py", 0, "f"))
        counted.memory.forget("a.py")
    assert [each for each in counted.asked if each == ("b.py", 0)] == [("b.py", 0)]
    assert len(counted.asked) == 5
