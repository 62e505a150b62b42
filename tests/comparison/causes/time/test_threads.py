"""Another number of threads. Steps made by hand."""

from __future__ import annotations

from dataclasses import replace as change

from explained import found, near, only, slower
from msgspec.structs import replace
from synthetic import (
    LAYER,
    step,
)


def test_one_thread() -> None:
    alone = step(tuple(change(row, own=2 * row.own) for row in LAYER * 4), environment={"threads": "1"})
    found = only(alone, step(environment={"threads": "2"}))
    assert found.rule == "threads"
    assert found.seconds == near(4 * 1200)
    assert "it runs 1 thread, torch (2 threads) 2" in found.text


def test_threads_of_the_host_do_not_slow_a_gpu_down() -> None:
    device = replace(step().device, kind="cuda")
    a = step(slower(2.0), device=device, environment={"threads": "8"})
    b = step(device=device, environment={"threads": "16"})
    assert "threads" not in found(a, b)
