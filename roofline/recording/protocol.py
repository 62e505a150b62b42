"""Set the numbers of a measurement's protocol: how many steps warm up, are timed plain, and are profiled.

In its first steps a profiler fills buffers, learns names, and has its own code in no cache. A step of 290 us, 1 us per
op, measured 380 to 460 us right after an unmarked step, the profiler's cost per event already subtracted, and 325 to
340 us as the seventh marked one; for steps of 10 ms the difference is lost in the machine's variation.
"""

from __future__ import annotations

#: Steps in flight on a GPU: one may wait in the queue while another runs.
IN_FLIGHT = 2
#: Plain steps on a CPU, at most and at least, and on a GPU.
CPU_STEPS, CPU_LEAST, GPU_STEPS = 20, 3, 100
#: Steps that are timed alone after the others, with a synchronisation before and after.
SINGLE_STEPS = 3
#: Longest time of all settling steps together [s], and their largest number.
_TIME, _MOST = 0.03, 6
#: Longest time of the settling steps before short plain ones [s], and their largest number.
_SETTLED, _MOST_PLAIN = 0.01, 12
#: Number of profiled steps; and for steps no longer than this [s], their number. By choice.
_FEW, _SHORT, _MANY = 5, 0.02, 10
#: From this length of a step [s] on, no more are profiled than are timed plain: each costs as much. By choice.
_LONG = 1.0
#: Above this length of a step [s], one is watched for sleep: it costs a step and the host is little of it. By choice.
_HOST_MATTERS = 0.2
#: Error of a step that starts a profiler itself.
TWO_PROFILERS = "The step starts a profiler of its own, and a process can have one at a time: leave it out of the step."


def warm_up(device: str, first: float) -> int:
    """Choose how many steps run before any is timed; first: the time of the first one [s].

    A fresh process runs its first steps slower: kernels are chosen, memory is mapped. On a GPU the first one predicts
    the others badly, and a graph is recorded in the second one and replayed from the third on.
    """
    if device == "cuda":
        return 3
    return 2 if first < 5 else 1


def plain_steps(device: str, typical: float, budget: float) -> int:
    """Choose how many plain steps are timed by default; typical: time of a step [s], budget: of all of them [s]."""
    if device == "cuda":
        return GPU_STEPS
    return max(CPU_LEAST, min(CPU_STEPS, int(budget / typical) if typical > 0 else CPU_STEPS))


def profiled_steps(typical: float, plain: int) -> int:
    """Choose how many steps are profiled; typical: time of a step [s]; plain: number timed without a profiler.

    Short steps vary more, and cost little.
    """
    if typical >= _LONG:
        return max(CPU_LEAST, min(_FEW, plain))
    return _MANY if typical <= _SHORT and plain >= _MANY else _FEW


def steps_after(plain: int) -> int:
    """Choose how many plain steps are timed again after a loop of a library's own; plain: their number before it.

    A fifth, by choice: they show whether the machine became faster or slower meanwhile.
    """
    return min(plain, max(CPU_LEAST, plain // 5))


def watched_steps(typical: float) -> int:
    """Choose how many steps are watched for a sleeping host; typical: time of a step [s]."""
    return SINGLE_STEPS if typical <= _HOST_MATTERS else 1


def settling(typical: float) -> int:
    """Choose the number of steps before a profiled one; typical: time of a step [s]. None before a second or more."""
    if typical >= 1:
        return 0
    return max(1, min(_MOST, int(_TIME / typical))) if typical > 0 else _MOST


def settling_plain(typical: float) -> int:
    """Choose the number of steps before a stretch of plain ones; typical: time of a step [s].

    The second one behind a profiled step took 8 % longer than later ones, and 22 % behind the probe of the memory.
    Plain steps of 0.85 ms took 1.034 times as long as in the program by itself where six went before each stretch, and
    1.025 times where ten did (medians of 24 processes of each kind in turns).
    """
    return max(settling(typical), min(_MOST_PLAIN, int(_SETTLED / typical)) if typical > 0 else _MOST_PLAIN)
