"""Run a step and say when it ended, which is when its last result was there and not when that was noticed.

Looking up what there is to wait for, and waiting for what is there already, takes 10 us of a JAX step, and for hundreds
of arrays tenths of a millisecond: no program has to do either.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from roofline.recording.xspace.framework import Framework


@dataclass(frozen=True, slots=True)
class Ended:
    """A step that ended. Times in seconds.

    seconds: how long it took; waited: of it, after its call had returned; beyond: how much later its end was noticed.
    on_core: how long this thread was on a core until the call returned.
    """

    seconds: float
    waited: float
    beyond: float
    on_core: float


def run_to_end(
    run: Callable[[], object], framework: Framework, mark: Callable[[], AbstractContextManager[object]] = nullcontext
) -> Ended:
    """Run a step until its outputs are there. mark: around it, until its end was noticed."""
    with mark():
        core, begin = time.thread_time(), time.perf_counter()
        outputs = run()
        returned, core = time.perf_counter(), time.thread_time() - core
        wait = framework.waiter(outputs)
        asked = time.perf_counter()
        wait()
        noticed = time.perf_counter()
    # Waiting for what is there already; the shorter of two, as a thread may be pushed aside in one.
    least = min(_seconds(wait), _seconds(wait))
    # Where it took no longer than that, all was there before it was asked for.
    end = noticed - least if noticed - asked > 2 * least else returned
    return Ended(end - begin, end - returned, noticed - end, core)


def _seconds(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin
