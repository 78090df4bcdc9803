"""The nodes around a place. `node.parent` walks down from the root each time: a loop over it costs the square of the
depth, for every node the cube. Nothing in `syntax` asks a node for its parent or its siblings; a test sees to that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node


class Ancestors:
    """Goes on from the place it was asked for last: for places in the order of the text every node is entered once."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self._cursor = root.walk()  # stands on the last of the path; first_child_for_byte crashes where there is none
        self._path = [root]
        self.kept = 1  # how many nodes of the last answer were in the one before

    def around(self, place: int) -> list[Node]:
        """The named nodes that hold a byte, the root first. Good until the next question."""
        path, cursor = self._path, self._cursor
        while len(path) > 1 and not path[-1].start_byte <= place < path[-1].end_byte:
            path.pop()
            cursor.goto_parent()
        self.kept = len(path)
        while cursor.goto_first_child_for_byte(place) is not None:
            child = cursor.node
            if child is None or not child.is_named or not child.start_byte <= place < child.end_byte:
                cursor.goto_parent()
                break
            path.append(child)
        return path

    def above(self, node: Node) -> Iterator[Node]:
        """What holds a node, from the inside out."""
        path = self.around(node.start_byte)
        at = len(path) - 1
        while at > 0 and path[at] != node:
            at -= 1
        return map(path.__getitem__, range(at - 1, -1, -1))

    def holder(self, node: Node) -> Node | None:
        return next(self.above(node), None)
