"""Leave out steps that are not like the others: a loop that runs anyway evaluates and saves in some of its steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from roofline.core.step import Step
from roofline.errors import MeasurementError

Result = TypeVar("Result")

#: How often something is measured again because an irregular step lay in it. By choice.
_TRIES = 10


class RegularSteps:
    """Run a step and note which runs were irregular, as it says of itself (`Step.irregular`).

    step: the same, noted. runs: for each run since `measure` or the caller cleared it, whether it was regular.
    """

    def __init__(self, step: Step) -> None:
        self._run, self._irregular = step.run, step.irregular
        self.runs: list[bool] = []
        self.step = step if self._irregular is None else replace(step, run=self._noted)

    def _noted(self) -> object:
        result = self._run()
        assert self._irregular is not None
        self.runs.append(not self._irregular())
        return result

    def measure(self, measurement: Callable[[], Result], settling: int = 0) -> Result:
        """Measure some runs, and again where an irregular one was among them.

        settling: number of runs that go before the measured ones, whatever they are. Raises MeasurementError where an
        irregular one always is among the others.
        """
        for _ in range(_TRIES):
            self.runs.clear()
            result = measurement()
            if all(self.runs[settling:]):
                return result
        raise MeasurementError(
            f"The loop never runs {len(self.runs) - settling} steps in a row that are alike, as measuring needs: name "
            "a smaller step with --step."
        )

    def regular(self, times: list[float], queued: int) -> list[tuple[int, float]]:
        """Choose of timed runs the regular ones: (number of the run, its time [s]).

        queued: runs since the runs were cleared that went before the timed ones.
        """
        if self._irregular is None:
            return list(enumerate(times))
        return [(number, time) for number, time in enumerate(times) if self.runs[queued + number]]
