"""Whether the machine was ours, from figures made up and from this machine itself."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import threading
import time
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import torch

from roofline.backends.torch import BACKEND
from roofline.core.step import Step
from roofline.devices.cpu import affinity
from roofline.recording import contention
from roofline.recording.contention import System, Usage, since, start, was_contended
from roofline.recording.recording import Plan

pytestmark = pytest.mark.xdist_group("timing")
CORES = len(affinity())


def usage(own: float, others: float, switches: int = 0) -> Usage:
    """Ten seconds, in which we took `own` and others took `others` of all cores (1 is all of them)."""
    return Usage(wall=10.0, cpu=own * CORES * 10, switches=switches, load=1.0, cores=CORES, others=others * CORES * 10)


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
    begin, cpu = start(), time.process_time()
    while time.process_time() < cpu + 0.2:
        pass
    used = since(begin)
    assert used.cpu >= 0.2
    # Clocks tick in hundredths of a second per core; others cannot have had more than there is.
    assert 0 <= used.others <= used.wall * CORES + 0.1


def test_others_are_those_on_the_cores_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two cores it has the second, where 3 s pass meanwhile; 40 s on the first are no concern of it."""
    core = namedtuple("core", ("user", "system", "idle"))
    clocks = iter([[core(5, 1, 0), core(7, 2, 9)], [core(40, 6, 0), core(9, 3, 9)]])
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1}, raising=False)
    monkeypatch.setattr(psutil, "cpu_times", lambda *, percpu: next(clocks))
    used = since(start())
    assert used.others == pytest.approx(3 - used.cpu)
    assert Usage(wall=4.0, cpu=1.0, switches=0, load=0.0, cores=1, others=2.9).crowded()  # 3.9 of 4 s of one core
    assert not Usage(wall=4.0, cpu=1.0, switches=0, load=0.0, cores=1, others=2.7).crowded()


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are listed on Linux only")
def test_cores_are_those_of_all_threads_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """This thread is bound to the first of three cores and another one to the second: 3 + 40 s, and none of the third.

    What they are bound to later is no concern of a measurement that has begun.
    """
    core = namedtuple("core", ("user", "system", "idle"))
    clocks = iter([[core(0, 0, 0)] * 3, [core(3, 0, 0), core(30, 10, 0), core(500, 0, 0)]])
    monkeypatch.setattr(psutil, "cpu_times", lambda *, percpu: next(clocks))
    own, end = (0, threading.get_native_id()), threading.Event()
    worker = threading.Thread(target=end.wait)
    worker.start()
    try:
        monkeypatch.setattr(os, "sched_getaffinity", lambda thread: {0} if thread in own else {1})
        begin = start()
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {2})
        used = since(begin)
    finally:
        end.set()
        worker.join()
    assert used.others == pytest.approx(43 - used.cpu)
    assert (used.cores, begin.cores) == (2, {0, 1})
    assert Usage(wall=4.0, cpu=4.0, switches=0, load=0.0, cores=2, others=3.9).crowded()  # 7.9 of 8 s of two cores
    assert not Usage(wall=4.0, cpu=4.0, switches=0, load=0.0, cores=3, others=3.9).crowded()


@pytest.mark.skipif(not hasattr(mmap, "MADV_NOHUGEPAGE"), reason="only Linux lets a program refuse huge pages")
def test_memory_that_is_touched_first_counts_a_page_fault_per_page() -> None:
    """Fresh anonymous memory of 512 pages, one byte written in each; huge pages would be one fault for all of them."""
    pages, system = 512, System()
    fresh = [mmap.mmap(-1, pages * mmap.PAGESIZE) for _ in range(3)]
    for memory in fresh:
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    for memory in fresh[:2]:
        with system.counting():
            for page in range(pages):
                memory[page * mmap.PAGESIZE] = 1
    for page in range(pages):  # outside: not counted
        fresh[2][page * mmap.PAGESIZE] = 1
    assert 2 * pages <= system.faults < 2.5 * pages
    assert system.per_step(2)["page_faults_per_step"] == system.faults / 2
    assert System().per_step(0) == {}


def test_a_thread_that_sleeps_is_away() -> None:
    system = System()
    with system.counting():
        time.sleep(0.05)
    assert system.away >= 0.05


def test_time_in_the_queue_for_a_core_is_not_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 10 s the thread ran for 4 and waited for a core for 5, so it was away for 1.

    First it is pushed aside for a second while its clocks are read: they are read again.
    """
    wall, cpu, queued = iter((90.0, 100.0, 110.0)), iter((2.0, 2.0, 6.0)), iter((0.0, 1.0, 1.0, 6.0, 6.0))
    clocks = SimpleNamespace(perf_counter=lambda: next(wall), thread_time=lambda: next(cpu))
    monkeypatch.setattr(contention, "time", clocks)
    monkeypatch.setattr(contention, "_queued", lambda: next(queued))
    system = System()
    with system.counting():
        pass
    assert (system.away, system.queued) == (1.0, 5.0)
    assert system.away_per_step(5) == {"away_seconds_per_step": 0.2}
    assert system.queued_per_step(5)["waiting_for_a_core_seconds_per_step"] == 1.0


def test_where_the_system_does_not_tell_who_waits_that_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contention, "_queued", lambda: None)
    system = System()
    with system.counting():
        time.sleep(0.01)
    assert system.queued is None
    assert set(system.away_per_step(1)) == {"away_seconds_per_step"}
    assert system.queued_per_step(1) == {}


def test_of_other_threads_the_one_that_waited_longest_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """One waits 2 s and then 1 s, the other 1 s and then 0.5 s; a third begins within, and a fourth ends."""
    read = iter(({7: 1.0, 8: 1.0, 10: 5.0}, {7: 3.0, 8: 2.0, 9: 0.5}, {7: 3.0, 8: 9.0}, {7: 4.0, 8: 9.5}))
    monkeypatch.setattr(contention, "_queued", lambda: 0.0)
    monkeypatch.setattr(contention, "_queued_workers", lambda: next(read))
    system = System()
    for _ in range(2):
        with system.counting():
            pass
    assert system.workers == {7: 3.0, 8: 1.5, 9: 0.5}
    assert system.queued_per_step(2) == {
        "waiting_for_a_core_seconds_per_step": 0.0, "worker_waiting_for_a_core_seconds_per_step": 1.5,
    }  # fmt: skip
    assert system.queued_per_step(0) == {}


@pytest.mark.skipif(not Path("/proc/thread-self/schedstat").exists(), reason="the system does not tell who waits")
def test_threads_of_this_process_are_read() -> None:
    ready, done = threading.Event(), threading.Event()

    def work() -> None:
        ready.set()
        done.wait()

    worker = threading.Thread(target=work)
    worker.start()
    ready.wait()
    try:
        assert worker.native_id in contention._queued_workers()
        assert threading.get_native_id() not in contention._queued_workers()
    finally:
        done.set()
        worker.join()


@pytest.mark.skipif(not Path("/proc/thread-self/schedstat").exists(), reason="the system does not tell who waits")
def test_a_thread_that_another_program_pushes_aside_waits_in_the_queue() -> None:
    """Both on one core, and both want all of it: what this thread waits for it is read from the system."""
    allowed = os.sched_getaffinity(0)
    core = min(allowed)
    script = f"import os; os.sched_setaffinity(0, [{core}]); print(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout is not None
            other.stdout.readline()
            os.sched_setaffinity(0, [core])
            queued = contention._queued() or 0.0
            begin, cpu = time.perf_counter(), time.thread_time()
            while time.perf_counter() - begin - (time.thread_time() - cpu) < 0.1:  # however long that takes
                pass
            assert (contention._queued() or 0.0) > queued
        finally:
            os.sched_setaffinity(0, allowed)
            other.kill()


@pytest.mark.thorough
def test_a_step_that_maps_its_memory_anew_shows_its_page_faults() -> None:
    """48 MB of results are above malloc's mmap threshold (32 MiB at most): 11,719 pages, or fewer huge ones."""
    x = torch.ones(12_000_000)
    faults = {}
    for name, run in (("anew", lambda: x + 1), ("nothing new", lambda: x.sum())):
        step, plan = Step(run=run), Plan(device="cpu", threads=1, steps=3, profiled_steps=1)
        recording = BACKEND.recorder.record(step, plan, lambda text: None)
        faults[name] = recording.conditions["page_faults_per_step"]
    assert faults["anew"] > faults["nothing new"] + 20
    counted = BACKEND.recorder.record(step, Plan(device="cpu", threads=1, count_only=True), lambda text: None)
    assert "page_faults_per_step" not in counted.conditions


def test_the_conditions_of_a_run_say_whether_it_was_contended() -> None:
    """Below 0.9 of wall x threads with more than 50 switches per second; where others are known, a full machine."""
    calm = {"cpu_share": 0.99, "involuntary_switches_per_second": 20.0}
    assert not was_contended(calm, 1)
    assert was_contended(calm | {"cpu_share": 0.5, "involuntary_switches_per_second": 60.0}, 1)
    assert not was_contended(calm | {"cpu_share": 0.5, "involuntary_switches_per_second": 40.0}, 1)
    assert was_contended(calm | {"involuntary_switches_per_second": 201.0}, 1)
    assert was_contended(calm | {"others_cpu": CORES - 0.9}, 1)  # 0.99 of one core; of it and all others the rest
    assert not was_contended(calm | {"others_cpu": 0.0, "involuntary_switches_per_second": 1e4}, 1)
