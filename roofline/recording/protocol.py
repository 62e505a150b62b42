"""How many steps are profiled, and how many a profiler needs before one of them shows what a step costs.

In its first steps it fills buffers, learns names, and finds its own code in no cache. Of a step of 290 us, 1 us per op,
the first one after an unmarked step measured 380 to 460 us, its own cost per event already taken off, and the seventh
of marked ones 325 to 340 us; of steps of 10 ms the difference is lost in what a machine varies.
"""

from __future__ import annotations

#: Annotation of the steps that go before.
SETTLING = "roofline:settling"
#: They may take so long together [s], and are never more than so many.
_TIME, _MOST = 0.03, 6


def settling(pace: float) -> int:
    """The number of steps before a profiled one; pace: what a step takes [s]. Of steps of a second or more, none."""
    if pace >= 1:
        return 0
    return max(1, min(_MOST, int(_TIME / pace))) if pace > 0 else _MOST


def profiled_steps(pace: float, plain: int) -> int:
    """How many steps are profiled; pace: what a step takes [s]; plain: how many are timed without a profiler.

    Short steps lie further apart, and cost little.
    """
    return _MANY if pace <= _SHORT and plain >= _MANY else _FEW


#: So many steps are profiled; of steps that are no longer than this [s], so many.
_FEW, _SHORT, _MANY = 5, 0.02, 10
