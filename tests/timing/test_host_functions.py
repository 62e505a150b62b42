"""Which function of Python the host was in."""

from __future__ import annotations

import time

import numpy as np

from roofline.timing import host_functions
from roofline.traces.kineto import reader

DEPTH, GAPS = 3000, 50_000


def test_many_short_times_do_not_climb_with_one_in_a_deep_nest(make_kineto):
    # Calls nested around the middle of the first time, each shorter than half of it; no call in the other times.
    made = make_kineto.Trace()
    made.op("aten::relu", 0, 1)
    middle, end = 5 * DEPTH, 10 * DEPTH
    for number in range(DEPTH, 0, -1):
        made.frame("/home/me/train.py(10): load", middle - number, middle + number)
    trace = reader.read(made.write(base=None))
    first = trace.frames.start.min() - (middle - DEPTH) * 1000
    later = first + end * 1000 + np.arange(GAPS) * 1000
    low, high = np.append(first, later), np.append(first + end * 1000, later + 500)
    thread = np.full(GAPS + 1, trace.frames.thread[0])

    def took(rows):
        """Return the processor's time [s], and what was found."""
        begin = time.thread_time()
        found = host_functions.most_of(trace, thread[rows], low[rows], high[rows])
        return time.thread_time() - begin, found

    (nest, of_nest), (short, of_short) = took(slice(1)), took(slice(1, None))
    together, of_all = took(slice(None))
    assert set(of_nest.tolist()) == set(of_short.tolist()) == set(of_all.tolist()) == {-1}
    # Each of the 3,000 steps up took all of the 50,001 times along: over ten times as long as both by themselves.
    assert together < 4 * (nest + short)
