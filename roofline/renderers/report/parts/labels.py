"""Names in a picture, each where it touches no other one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

#: Width of a letter and height of a line of the text in pictures [px].
_LETTER, _LINE = 6.6, 14.0


@dataclass(slots=True)
class Taken:
    """The boxes (left, top, right, bottom) of the names that have a place [px]."""

    boxes: list[tuple[float, float, float, float]] = field(default_factory=list)

    def first(self, words: str, ends: Iterable[tuple[float, float]]) -> tuple[float, float] | None:
        """Of the places where the words may end (right end of the base line [px]), the first that is free.

        None where none is: a name that would lie on another one is better left out.
        """
        for right, base in ends:
            box = (right - _LETTER * len(words), base - _LINE + 3, right, base + 3)
            if box[0] >= 2 and not any(_touch(box, other) for other in self.boxes):
                self.boxes.append(box)
                return right, base
        return None


def _touch(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
