"""Run a step and find its end: the moment of its last result, not the later one at which the host noticed it.

Looking up the arrays to wait for, and waiting for finished ones, takes 10 us of a JAX step, and for hundreds of arrays
tenths of a millisecond: no program has to do either.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from roofline.recording.xspace.framework import Framework


@dataclass(frozen=True, slots=True)
class Ended:
    """Hold the times of a step that ended [s].

    seconds: of the step; waited: the part of it after its call had returned; notice_delay: how much later its end was
    noticed. on_core: how long this thread was on a core until the call returned.
    """

    seconds: float
    waited: float
    notice_delay: float
    on_core: float


def run_to_end(
    run: Callable[[], object], framework: Framework, mark: Callable[[], AbstractContextManager[object]] = nullcontext
) -> Ended:
    """Run a step until its outputs are computed. mark: a context around it, until its end was noticed."""
    with mark():
        core, begin = time.thread_time(), time.perf_counter()
        outputs = run()
        returned, core = time.perf_counter(), time.thread_time() - core
        wait = framework.waiter(outputs)
        asked = time.perf_counter()
        wait()
        noticed = time.perf_counter()
    # The time to wait for finished outputs; the shorter of two, as a thread may be pushed aside in one.
    least = min(_seconds(wait), _seconds(wait))
    # If the wait took no longer than that, all outputs were there before.
    end = noticed - least if noticed - asked > 2 * least else returned
    return Ended(end - begin, end - returned, noticed - end, core)


def _seconds(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin
