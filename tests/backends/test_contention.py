"""Whether the machine was ours, from figures made up and from this machine itself."""

from __future__ import annotations

import os
import time

from roofline.backends._contention import Usage, since, start

CORES = os.cpu_count() or 1


def usage(own: float, others: float, switches: int = 0) -> Usage:
    """Ten seconds, in which we took `own` and others took `others` of all cores (1 is all of them)."""
    return Usage(wall=10.0, cpu=own * CORES * 10, switches=switches, load=1.0, others=others * CORES * 10)


def test_a_full_machine_that_others_use_too_is_crowded() -> None:
    assert usage(own=0.6, others=0.4).crowded()
    assert not usage(own=0.9, others=0.03).crowded()  # others took next to nothing
    assert not usage(own=0.3, others=0.3).crowded()  # there was room for both


def test_switching_between_its_own_threads_is_no_crowd() -> None:
    """A framework with more threads than cores: 100,000 switches in 10 s, and nobody else there."""
    alone = usage(own=0.9, others=0.0, switches=100_000)
    assert not alone.crowded()
    assert alone.contended(CORES)  # what the count of switches alone would say


def test_what_this_process_takes_is_not_taken_by_others() -> None:
    begin = start()
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        pass
    used = since(begin)
    assert used.cpu > 0.1
    # Clocks tick in hundredths of a second per core; others cannot have had more than there is.
    assert 0 <= used.others <= used.wall * CORES + 0.1
