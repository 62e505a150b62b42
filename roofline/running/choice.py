"""Hold where the steps of a program end, and how the current one goes."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from time import perf_counter

from roofline.running.boundary import Boundary
from roofline.running.kinds import Call, StepKinds
from roofline.running.periods import Period

#: Calls that are kept of a step. By choice: more than one has.
MOST_CALLS = 1 << 16


@dataclass(slots=True)
class Choice:
    """Hold where the steps of a program end.

    rank: of the boundary in their order. label: of what ends a step. seen: number of steps, the first of which began
    with the program. began: when the current one did [s], None before an end was seen. calls: in it. is_regular: of the
    last one. longest: most calls from the end of a regular step to that of the next. room: how many calls the current
    step may have until there are more since the last regular one. rests: True from then on, up to the next regular one.
    is_disturbed: True if another loop is measured in the current step, whose time then tells nothing. watching: how
    long hooks took in it so far [s]. seconds: time of the last step without them [s].
    """

    rank: int
    boundary: Boundary
    period: Period
    label: str
    seen: int = 0
    began: float | None = None
    calls: list[Call] = field(default_factory=list)
    kinds: StepKinds = field(default_factory=StepKinds)
    is_regular: bool = True
    longest: int = 0
    room: int = 0
    rests: bool = False
    is_disturbed: bool = False
    watching: float = 0.0
    seconds: float = 0.0

    @property
    def ends_step(self) -> bool:
        """True if a step ends with the call that was reported last."""
        return self.period.at_begin if self.boundary.at_begin else self.period.at_end

    def note(self, label: str, detail: Hashable) -> None:
        """Note a call of the current step; where no step ends any more, only the first ones."""
        if len(self.calls) < MOST_CALLS:
            self.calls.append((label, detail))

    def end_step(self, now: float) -> None:
        """Count a step that ends now [s], and tell whether it is regular; one that began before the first end is not.

        While the loop rests its steps are seen, and none changes what is usual.
        """
        calls, self.calls = self.calls, []
        self.seen += 1
        if self.began is None:
            return
        self.time_step(now)
        self.is_regular = self.kinds.add(calls, None if self.is_disturbed else self.seconds, of_loop=not self.rests)
        self.room -= len(calls)
        if self.is_regular:
            self.longest = max(self.longest, self.longest - self.room)
            self.room, self.rests = self.longest, False

    def time_step(self, now: float) -> None:
        """Keep how long the step took that ends now [s], if its begin was seen."""
        if self.began is not None:
            self.seconds = now - self.began - self.watching

    def begin_step(self) -> None:
        """Begin a step now."""
        self.began, self.watching = perf_counter(), 0.0

    def may_rest(self, label: str) -> bool:
        """Tell whether the loop rests, as of this call of a step that has no more room."""
        self.rests = self.rests or not self.kinds.may_hold(label)
        return self.rests

    @property
    def phrase(self) -> str:
        """Say what a step is: "from one optimizer.step() to the next"."""
        name, length = self.boundary.name, len(self.period.keys)
        of_one = name.format(label=self.label).removeprefix("a ")
        what = of_one if length == 1 else f"round of {length} x {name.partition(' of ')[0]}"
        return f"from one {what} to the next"
