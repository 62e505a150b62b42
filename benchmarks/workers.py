"""Runs a script that answers a line of JSON for each name, in processes of its own: what fails costs one name."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from roofline.recording.backend import load
from roofline.recording.launch import SCRATCH, SHARED

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TORCHINDUCTOR_COMPILE_THREADS")

Result = dict[str, Any]


def ask(script: Path, backend: str, names: Sequence[str], *, what: str, patience: float, most: int) -> Iterator[Result]:
    """Yield the result of each name: of a process that ends early or is silent, `what` it failed at and its last word.

    A process is asked for at most `most` names, and is ended after `patience` seconds without a line. One that ends by
    itself behind an error that it told of leaves the other names to the next process.
    """
    waiting = list(names)
    while waiting:
        answered = 0
        for result in _ask_process(script, backend, waiting[:most], what, patience):
            yield result
            answered += 1
        waiting = waiting[answered:]


def _ask_process(script: Path, backend: str, names: Sequence[str], what: str, patience: float) -> Iterator[Result]:
    with tempfile.TemporaryDirectory(prefix="worker-") as folder, open(Path(folder) / "log", "w+") as log:
        variables = load(backend).environment(1, "cpu", {})
        for place in (SCRATCH, SHARED):
            variables = {name: value.replace(place, folder) for name, value in variables.items()}
        child = subprocess.Popen(
            [sys.executable, str(script), backend, *names],
            bufsize=0,  # no line waits in a buffer, where the selector does not see it
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, **dict.fromkeys(THREADS, "1"), **variables},
            cwd=folder,
            process_group=0,
        )
        answered, failed = 0, False
        try:
            for line in _lines(child, patience):
                result = json.loads(line)
                yield result
                answered, failed = answered + 1, "error" in result
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
            status = child.wait()
        if answered < len(names) and not (failed and status == 0):
            log.seek(0)
            yield {what: names[answered], "error": f"{_ending(status)}: {_last_line(log.read())}"}


def _lines(child: subprocess.Popen[bytes], patience: float) -> Iterator[bytes]:
    """Yield lines as they come, until the process ends or is silent for too long."""
    assert child.stdout is not None
    with child.stdout, selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while selector.select(patience):
            line = child.stdout.readline()
            if not line:
                child.wait()
                return
            yield line


def _ending(status: int) -> str:
    return signal.Signals(-status).name if status < 0 else f"status {status}"


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no word"
