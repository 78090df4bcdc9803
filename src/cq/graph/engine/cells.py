"""Places that hold values, computed to a fixpoint, and what each of them depends on.

A `Cell` is a place that holds values: a binding, the callee or the result of a call, what a function returns, a
parameter, a stored attribute. Cells are computed when first read, and again when what they read has grown; all
steps only ever add values, so the result is the same in whatever order they are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar, TypeVarTuple, cast

from cq.graph.values import EVERYTHING, NOTHING, Values, join
from cq.model.edge import Mistake, find_mistake

_Asked = TypeVar("_Asked")
_Answer = TypeVar("_Answer")
_Given = TypeVarTuple("_Given")

MAX_VALUES = 28  # of one cell; more are as good as anything
_FEW = 4
_MANY = 3  # homes that share a cell
MAX_PULL = 24  # cells computed inside one another; deeper ones wait in the list of work

is_strict = False  # whether a mistake ends everything, as in the tests


class Keys(set["int | Keys | Cell"]):
    """What an answer that is remembered depends on: rows of documents (see cq.graph.engine.view), cells, other
    answers."""

    __slots__ = ()
    __hash__ = object.__hash__  # pyright: ignore[reportAssignmentType]  as everything here, it is itself alone
    __eq__ = object.__eq__


class Remembered(Generic[_Answer]):
    """An answer with all that was read to find it: whoever recalls it depends on that."""

    __slots__ = ("answer", "keys")

    def __init__(self, answer: _Answer) -> None:
        self.answer = answer
        self.keys = Keys()


class Cell:
    __slots__ = ("args", "compute", "home", "is_queued", "keys", "readers", "reads", "state", "values")

    def __init__(self, home: int, compute: Callable[..., Values], *args: object) -> None:
        self.compute, self.args = compute, args
        self.home = home  # the code it stands in
        # What it depends on beside that and other cells. There are many cells, and most have one of these or a few:
        # those are in a list, a third of a set.
        self.keys: int | Keys | list[int | Keys] | set[int | Keys] | None = None
        self.values: Values = NOTHING
        self.readers: Cell | list[Cell] | dict[Cell, None] | None = None
        # When it was last computed, as `keys`: values that grow lead elsewhere. Most read one.
        self.reads: Cell | list[Cell] | None = None
        self.state = 0  # 0 never computed, 1 being computed, 2 computed
        self.is_queued = False


class Cells:
    """Computes cells, and notes which parts of the code they depend on."""

    def __init__(self) -> None:
        self._held: dict[tuple[object, ...], Cell] = {}
        self._answers: dict[tuple[object, ...], Remembered[object]] = {}
        self._current: Cell | None = None
        self._depth = 0
        self._work: list[Cell] = []
        self._recording: list[tuple[Keys, Cell | None]] = []  # with the cell that asked
        self.nesting = 0  # how many answers that are remembered are being found inside one another
        self._flat: dict[
            Keys, tuple[tuple[int, ...], tuple[Cell, ...]]
        ] = {}  # what Keys come to, once all has been asked
        self._askers: dict[int, Cell] = {}  # by home: see ask
        # By cell how many homes have asked for the keys that are reached from it; those keys, once many have.
        self._shared_keys: dict[Cell, int | tuple[int, ...]] = {}
        self._mistakes: dict[Cell, Mistake] = {}  # of cells that could not be computed
        self.lacking: dict[int, set[Mistake]] = {}  # by home, of those that were asked for their keys

    def read(self, cell: Cell) -> Values:
        if not cell.state:
            if self._depth < MAX_PULL:
                self._run(cell)
            elif not cell.is_queued:
                cell.is_queued = True
                self._work.append(cell)
        if self._recording:
            self._recording[-1][0].add(cell)
        # Told only of what comes later: what the cell has by now is read here.
        current = self._current
        if current is not None:
            reads = current.reads
            if reads is None:
                current.reads = cell
            elif isinstance(reads, list):
                reads.append(cell)
            elif reads is not cell:
                current.reads = [reads, cell]
            readers = cell.readers
            if not current.state:
                pass  # one that asks is not computed again
            elif readers is None:
                cell.readers = current
            elif isinstance(readers, dict):
                readers[current] = None
            elif isinstance(readers, Cell):
                if readers is not current:
                    cell.readers = [readers, current]
            elif current not in readers:
                readers.append(current)
                if len(readers) > _FEW:
                    cell.readers = dict.fromkeys(readers)
        return cell.values

    def hold(self, home: int, find: Callable[[*_Given], Values], *given: *_Given) -> Values:
        """Values that are found, in the code of a home, in one cell for the same arguments."""
        place = (find, *given)
        cell = self._held.get(place)
        if cell is None:
            cell = self._held[place] = Cell(home, find, *given)
        return self.read(cell)

    def know(self, find: Callable[[*_Given], _Answer], *given: *_Given) -> _Answer:
        """An answer that is final when it is given, found once for the same arguments."""
        place = (find, *given)
        known = self._answers.get(place)
        if known is None:
            known = self._answers[place] = cast("Remembered[object]", self.remember(find, *given))
        self.note(known.keys)
        return cast("_Answer", known.answer)

    def _run(self, cell: Cell) -> None:
        saved, self._current = self._current, cell
        # An answer that is being remembered depends on the cell, whenever that is computed.
        recording = self._recording
        if recording:
            self._recording = []
        self._depth += 1
        cell.state = 1
        cell.keys = cell.reads = None
        nesting = self.nesting
        try:
            values = cell.compute(*cell.args)
        except MemoryError:
            raise
        except Exception as error:
            # A mistake of ours about odd code costs this one value, not the index: nothing is known of it.
            if is_strict:
                raise
            values, self.nesting = EVERYTHING, nesting
            self._mistakes[cell] = find_mistake(error)
            if self._recording is recording:
                recording.clear()  # nobody was when this cell began
        cell.state = 2
        self._depth -= 1
        self._current, self._recording = saved, recording
        old = cell.values
        if values is old or old is EVERYTHING:
            return
        if old:
            grown = join(old, values)
            if grown is old:
                return
            values = grown
        elif not values:
            return
        if len(values) > MAX_VALUES:
            values = EVERYTHING
        cell.values = values
        for reader in _find_readers(cell):
            if reader.state and not reader.is_queued:
                reader.is_queued = True
                self._work.append(reader)

    def settle(self) -> None:
        """Computes until nothing grows. What was asked until then is forgotten: answers were not yet final."""
        work = self._work
        while work:
            batch, self._work = work, []
            for cell in batch:
                cell.is_queued = False
                self._run(cell)
            work = self._work
        self._askers.clear()
        self._shared_keys.clear()

    def note(self, key: int | Keys) -> None:
        """The cell being computed, or what is being remembered for many, depends on what the key stands for. For views
        of documents alone: what others read is noted by the way they read it."""
        current = self._current
        if self._recording:
            keys, asker = self._recording[-1]
            keys.add(key)
            if asker is current:
                return  # it gets them all in the end
        if current is not None and key != current.home:
            known = current.keys
            if known is None:
                current.keys = key
            elif isinstance(known, (int, Keys)):
                if known != key:
                    current.keys = [known, key]
            elif isinstance(known, set):
                known.add(key)
            elif key not in known:
                known.append(key)
                if len(known) > _FEW:
                    current.keys = set(known)

    def remember(self, find: Callable[[*_Given], _Answer], *given: *_Given) -> Remembered[_Answer]:
        """Finds an answer that many will ask for."""
        keys = Keys()
        self.nesting += 1
        self._recording.append((keys, self._current))
        try:
            found = Remembered(find(*given))
        finally:
            self.nesting -= 1
            self._recording.pop()
        found.keys = keys
        return found

    def fill(self, known: Remembered[_Answer], find: Callable[[*_Given], _Answer], *given: *_Given) -> None:
        """Finds an answer that is asked for while it is being found; until then it is what it was made with."""
        self.nesting += 1
        self._recording.append((known.keys, self._current))
        try:
            known.answer = find(*given)
        finally:
            self.nesting -= 1
            self._recording.pop()

    def recall(self, known: Remembered[_Answer]) -> _Answer:
        self.note(known.keys)
        return known.answer

    def find_keys(self, home: int) -> set[int] | None:
        """Everything that the meaning of the code of one home depends on; None where nothing was asked for it. Once
        settled, and all that is to be asked has been asked."""
        asker = self._askers.get(home)
        if asker is None:
            return None
        if not self._mistakes:
            return self._reach(asker, is_shared=True)
        seen = {asker}
        found = self._reach(asker, seen)
        if lacking := {self._mistakes[cell] for cell in seen if cell in self._mistakes}:
            self.lacking[home] = lacking
        return found

    def _reach(self, start: Cell, seen: set[Cell] | None = None, *, is_shared: bool = False) -> set[int]:
        """All keys that are reached from a cell. Those of a cell that many homes share are gathered once."""
        seen = {start} if seen is None else seen
        found: set[int] = set()
        shared = self._shared_keys
        todo = [start]
        for cell in todo:
            found.add(cell.home)
            keys, reads = cell.keys, cell.reads
            inner = () if reads is None else reads if isinstance(reads, list) else (reads,)
            if isinstance(keys, int):
                found.add(keys)
            elif keys is not None:
                for key in (keys,) if isinstance(keys, Keys) else keys:
                    if isinstance(key, int):
                        found.add(key)
                    else:
                        more, cells = self._flatten(key)
                        found.update(more)
                        inner = (*inner, *cells)
            for each in inner:
                if each not in seen:
                    seen.add(each)
                    known = shared.get(each, 0)
                    if not isinstance(known, int):
                        found.update(known)
                    elif not is_shared:
                        todo.append(each)
                    elif known < _MANY:
                        shared[each] = known + 1
                        todo.append(each)
                    else:
                        known = shared[each] = tuple(self._reach(each))
                        found.update(known)
        return found

    def give_up(self) -> None:
        """After a mistake outside of any cell: nothing is being asked any more."""
        self._current, self._recording, self._depth, self.nesting = None, [], 0, 0

    def _flatten(self, keys: Keys) -> tuple[tuple[int, ...], tuple[Cell, ...]]:
        found = self._flat.get(keys)
        if found is None:
            found = self._flat[keys] = _flatten(keys)
        return found

    def ask(self, home: int, question: Callable[[], _Answer]) -> _Answer:
        """Answers a question for the code of a home, whose meaning then depends on all that the answer does."""
        cell = self._askers.get(home)
        if cell is None:
            cell = self._askers[home] = Cell(home, _no_values)
        saved, self._current = self._current, cell
        try:
            return question()
        finally:
            self._current = saved


def _find_readers(cell: Cell) -> Iterable[Cell]:
    readers = cell.readers
    return () if readers is None else (readers,) if isinstance(readers, Cell) else readers


def _flatten(keys: Keys) -> tuple[tuple[int, ...], tuple[Cell, ...]]:
    found: set[int] = set()
    cells: dict[Cell, None] = {}
    seen = {keys}
    todo = list(keys)
    for key in todo:
        if isinstance(key, int):
            found.add(key)
        elif isinstance(key, Cell):
            cells[key] = None
        elif key not in seen:
            seen.add(key)
            todo += key
    return tuple(found), tuple(cells)


def _no_values() -> Values:
    return NOTHING


_Linker = TypeVar("_Linker", bound=Cells)


class Answers(Generic[_Linker, _Asked, _Answer]):
    """Answers that are found once for each thing that is asked about; whoever asks depends on what they depend on."""

    def __init__(self, find: Callable[[_Linker, _Asked], _Answer]) -> None:
        self._find = find
        self._known: dict[_Asked, Remembered[_Answer]] = {}

    def find(self, linker: _Linker, asked: _Asked) -> _Answer:
        known = self._known.get(asked)
        if known is None:
            known = self._known[asked] = linker.remember(self._find, linker, asked)
        return linker.recall(known)
