"""Place names in a picture, each where it touches no other one."""

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
        """Find the first free one of the places where the words may end (right end of the base line [px]), and take it.

        None where none is free: no name may lie on another one.
        """
        for right, base in ends:
            box = (right - width(words), base - _LINE + 3, right, base + 3)
            if box[0] >= 2 and not any(_touch(box, box_taken) for box_taken in self.boxes):
                self.boxes.append(box)
                return right, base
        return None


def width(words: str) -> float:
    """Return about how wide words are [px]."""
    return _LETTER * len(words)


def _touch(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
