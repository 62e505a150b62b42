"""The protocol of a measurement in figures: how many steps warm up, are timed plain, and are profiled.

In its first steps a profiler fills buffers, learns names, and finds its own code in no cache. Of a step of 290 us, 1 us
per op, the first one after an unmarked step measured 380 to 460 us, its own cost per event already taken off, and the
seventh of marked ones 325 to 340 us; of steps of 10 ms the difference is lost in what a machine varies.
"""

from __future__ import annotations

#: Beside a GPU one step may wait in the queue while another runs.
IN_FLIGHT = 2
#: Plain steps on a CPU, at most and at least, and on a GPU.
CPU_STEPS, CPU_LEAST, GPU_STEPS = 20, 3, 100
#: Steps that are timed alone after the others, with a synchronisation before and after.
SINGLE_STEPS = 3
#: Settling steps may take so long together [s], and are never more than so many.
_TIME, _MOST = 0.03, 6
#: So many steps are profiled; of steps that are no longer than this [s], so many. By choice.
_FEW, _SHORT, _MANY = 5, 0.02, 10
#: Of steps of so long [s] or more no more are profiled than are timed plain, since each costs as much. By choice.
_LONG = 1.0
#: Of steps longer than this [s] one is watched for sleep, as it costs a step and the host is little of it. By choice.
_HOST_MATTERS = 0.2
#: What a step is told that starts a profiler itself.
TWO_PROFILERS = "The step starts a profiler of its own, and a process can have one at a time: leave it out of the step."


def warm_up(device: str, first: float) -> int:
    """How many steps run before any is timed; first: what the first one took [s].

    A fresh process runs its first steps slower: kernels are chosen, memory is mapped. Beside a GPU the first one says
    little of the others, and a graph is recorded in the second one and replayed from the third on.
    """
    if device == "cuda":
        return 3
    return 2 if first < 5 else 1


def plain_steps(device: str, typical: float, budget: float) -> int:
    """How many plain steps are timed unless the user says; typical: what a step takes [s], budget: all of them [s]."""
    if device == "cuda":
        return GPU_STEPS
    return max(CPU_LEAST, min(CPU_STEPS, int(budget / typical) if typical > 0 else CPU_STEPS))


def profiled_steps(typical: float, plain: int) -> int:
    """How many steps are profiled; typical: what a step takes [s]; plain: how many are timed without a profiler.

    Short steps lie further apart, and cost little.
    """
    if typical >= _LONG:
        return max(CPU_LEAST, min(_FEW, plain))
    return _MANY if typical <= _SHORT and plain >= _MANY else _FEW


def steps_after(plain: int) -> int:
    """How many plain steps are timed again behind a loop of a library's own; plain: how many were before it.

    A fifth, by choice: they are to show whether the machine became faster or slower meanwhile.
    """
    return min(plain, max(CPU_LEAST, plain // 5))


def watched_steps(typical: float) -> int:
    """How many steps are watched for whether their host sleeps; typical: what a step takes [s]."""
    return SINGLE_STEPS if typical <= _HOST_MATTERS else 1


def settling(typical: float) -> int:
    """The number of steps before a profiled one; typical: what a step takes [s]. Of steps of a second or more, none."""
    if typical >= 1:
        return 0
    return max(1, min(_MOST, int(_TIME / typical))) if typical > 0 else _MOST
