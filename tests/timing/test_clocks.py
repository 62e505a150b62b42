"""Clocks: durations are taken by those that nobody sets, and a wall clock that jumps changes none of them."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import roofline
from roofline.core.schema import load

PACKAGE = Path(roofline.__file__).parent
#: Calls that read the wall clock.
WALL = {("time", "time"), ("time", "time_ns"), ("datetime", "now"), ("datetime", "utcnow"), ("Date", "today")}
#: Without one of these words there is none of them in a text; to parse all files takes two seconds.
WORDS = re.compile(r"\bfrom\s+time\s+import\b|\.\s*(time|time_ns|now|utcnow|today)\b")
#: Why a file may read it: the date of what was measured, or to compare it with other times of the wall clock.
DATES = {"measuring/session.py", "importing/from_kineto.py", "importing/from_xplane.py", "sweeping/nodes.py"}
DATES |= {"devices/measure.py", "devices/calibration.py", "devices/probes_cpu.py"}
COMPARED = {"cli/run.py", "pytorch/recording/allocations.py"}  # with times of files, and of the profiler's events


def readings(file: Path) -> set[tuple[str, str]]:
    """The calls of a file that read the wall clock, whatever they are imported as."""
    text = file.read_text(encoding="utf-8")
    if not WORDS.search(text):
        return set()
    tree = ast.parse(text)
    named = {
        (node.module, name.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for name in node.names
        if node.module == "time" and name.name in ("time", "time_ns")
    }
    read = {
        (node.func.value.id, node.func.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
    }
    return named | (read & WALL)


def test_durations_are_of_monotonic_clocks() -> None:
    """No other file reads the wall clock, so that no difference of two of its readings is a duration."""
    read = {file.relative_to(PACKAGE).as_posix(): readings(file) for file in PACKAGE.rglob("*.py")}
    assert {file for file, calls in read.items() if calls} == DATES | COMPARED


#: The wall clock of whoever loads this goes an hour back at every second reading, and forth again.
JUMPS = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static unsigned readings;
int clock_gettime(clockid_t clock, struct timespec *now) {
  long failed = syscall(SYS_clock_gettime, clock, now);
  if (!failed && clock == CLOCK_REALTIME && __atomic_add_fetch(&readings, 1, __ATOMIC_RELAXED) % 2) now->tv_sec -= 3600;
  return failed;
}
int gettimeofday(struct timeval *now, void *zone) {
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return 0;
}
time_t time(time_t *now) {
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  if (now) *now = precise.tv_sec;
  return precise.tv_sec;
}
"""
STEP = "import torch\n\nx = torch.ones(64, 64)\n\ndef make():\n    return lambda: x @ x\n"


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="a compiler for Linux's clock")
def test_a_clock_that_jumps_changes_no_time(tmp_path: Path, cache: Path) -> None:
    """A product of 64 x 64 takes less than a minute on any machine: no time is of an hour, and none is below 0."""
    pytest.importorskip("torch")
    (tmp_path / "jumps.c").write_text(JUMPS)
    (tmp_path / "mine.py").write_text(STEP)
    jumps = tmp_path / "jumps.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(jumps), str(tmp_path / "jumps.c")], check=True)
    environment = {**os.environ, "ROOFLINE_CACHE": str(cache), "LD_PRELOAD": str(jumps)}
    code = "import time; earlier = time.time(); print(round(abs(time.time() - earlier)))"
    told = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert told.stdout == "3600\n"
    words = ("profile", "mine.py:make", "--backend", "torch", "--device", "cpu", "--threads", "1", "--steps", "3")
    command = [sys.executable, "-m", "roofline", *words, "-o", "p.json"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    profile = load(tmp_path / "p.json")
    assert profile.profiled is not None
    ops = [nanoseconds * 1e-9 for op in profile.ops for nanoseconds in op.own_ns]
    times = [*profile.wall.steps, *profile.profiled.walls, *profile.profiled.corrected, *ops]
    assert all(0 < time < 60 for time in times), times
    assert profile.profiled.joined == 1
