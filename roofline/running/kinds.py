"""Tell steps that are like most of a loop's from those in which it evaluated, saved, or began a new pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

#: (name of a call, what differs between unlike ones of that name).
Call = tuple[str, Hashable]
#: Reason of a step whose calls have the usual names and numbers, and other shapes.
OTHER_SIZES = "other sizes than usual"
#: Kinds that are told apart at one level, at most. By choice: where all steps differ that tells nothing.
_MOST = 1024


@dataclass(slots=True)
class _Level:
    """Count the steps of each kind, by one way to tell them apart. usual: the kind of most steps, so far."""

    counts: Counter[Hashable] = field(default_factory=Counter)
    usual: Hashable = None
    total: int = 0

    def add(self, kind: Hashable, steps: int) -> None:
        """Count some steps of a kind."""
        self.total += steps
        if len(self.counts) < _MOST or kind in self.counts:
            self.counts[kind] += steps
            if self.counts[kind] > self.counts[self.usual]:
                self.usual = kind

    @property
    def decides(self) -> bool:
        """True if more than half of all steps are of one kind."""
        return 2 * self.counts[self.usual] > self.total


@dataclass(slots=True)
class Aside:
    """Hold the steps that are unlike the others for one reason. seconds: of the `timed` ones of them together."""

    steps: int = 0
    timed: int = 0
    seconds: float = 0.0


class StepKinds:
    """Tell regular steps by the calls in them.

    By the sizes of the calls' arguments, if most steps have the same; else by the numbers of calls; else by their
    names alone, as where an episode has as many calls as it has moves.
    """

    def __init__(self) -> None:
        self._levels = (_Level(), _Level(), _Level())
        self.asides: dict[str, Aside] = {}
        #: The calls of a regular step that is repeated, and how often it was since it was counted.
        self._repeated: list[Call] | None = None
        self._repeats = 0

    def add(self, calls: list[Call], seconds: float | None, of_loop: bool = True) -> bool:
        """Add a step, its calls and its time [s], if that is known; return whether it is regular.

        of_loop: False where another loop may run: the step then changes nothing of what is usual.
        """
        if calls == self._repeated:  # the usual kind, of which there are more now
            self.repeat(1)
            return True
        self._count_repeats()
        self._repeated = None
        kinds = _kinds(calls)
        if of_loop:
            self._count(kinds, 1)
        number = self._deciding
        if kinds[number] == self._levels[number].usual:
            self._repeated = calls
            return True
        names = [name for name, _ in calls]
        usual_names: Any = self._levels[-1].usual
        reason = ", ".join(sorted(set(names) - usual_names)) or self._other_number(Counter(names)) or OTHER_SIZES
        aside = self.asides.setdefault(reason, Aside())
        aside.steps += 1
        if seconds is not None:
            aside.timed += 1
            aside.seconds += seconds
        return False

    def repeat(self, steps: int) -> None:
        """Add so many steps that are like the last one, which was regular."""
        self._repeats += steps

    def may_hold(self, name: str) -> bool:
        """Tell whether a regular step may have any number of calls of this name: where names alone tell them."""
        self._count_repeats()
        names: Any = self._levels[-1].usual
        return self._deciding == len(self._levels) - 1 and name in names

    @property
    def _deciding(self) -> int:
        """Choose the level by which steps are told apart."""
        last = len(self._levels) - 1
        return next((number for number, level in enumerate(self._levels) if level.decides), last)

    def _other_number(self, counts: Counter[str]) -> str:
        """Name the calls of which a step has more or fewer than usual; "" if there are none, or no number is usual."""
        level = self._levels[1]
        if not level.decides:
            return ""
        usual: Counter[str] = Counter(dict(level.usual))  # type: ignore[call-overload]
        more, fewer = sorted(counts - usual), sorted(usual - counts)
        reasons = [
            f"{many} calls of {' and '.join(names)}" for many, names in (("more", more), ("fewer", fewer)) if names
        ]
        return f"{' and '.join(reasons)} than usual" if reasons else ""

    def _count_repeats(self) -> None:
        if self._repeated is not None and self._repeats:
            self._count(_kinds(self._repeated), self._repeats)
            self._repeats = 0

    def _count(self, kinds: tuple[Hashable, ...], steps: int) -> None:
        for level, kind in zip(self._levels, kinds, strict=True):
            level.add(kind, steps)


def _kinds(calls: Sequence[Call]) -> tuple[Hashable, ...]:
    """Describe a step by its calls with their sizes, by their numbers, and by their names."""
    names = [name for name, _ in calls]
    return frozenset(Counter(calls).items()), frozenset(Counter(names).items()), frozenset(names)
