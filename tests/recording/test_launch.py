"""The process that measures, as the one that waits for it sees it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

#: Measures with the interpreter that is its argument, and prints what that comes to.
MEASURED = """
import sys
from roofline.core.step import Workload
from roofline.errors import MeasurementError
from roofline.recording import launch
from roofline.recording.request import Request
try:
    launch.run(Request(backend="torch", workload=Workload(model="mlp"), python=sys.argv[1]), {})
except MeasurementError as error:
    print(error)
"""


def test_a_result_that_was_cut_off_is_told(tmp_path: Path) -> None:
    # As on a full disk: the last argument is where the result goes.
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\nfor last; do :; done\nprintf \'{"profile": {"sch\' > "$last"\nexit 1\n')
    python.chmod(0o755)
    # In a process of its own: JAX, which another test may have imported here, forbids to fork.
    told = subprocess.run([sys.executable, "-c", MEASURED, python], capture_output=True, text=True, check=True).stdout
    assert told.startswith("Cannot write in ")
    assert "could not write all of its result; make room there, or set TMPDIR to another folder." in told
