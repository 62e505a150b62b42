"""Run on a node of a cluster: describe it, and measure a point by `roofline sweep` in a process of its own.

The driver sends these functions as they are, so they need nothing but Python: what roofline the node has is one of the
things to find out.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

#: Prints what the interpreter of a node can measure with; the rest only if its roofline is the driver's.
_DESCRIBE = """
import json, sys
try:
    import roofline
    version = roofline.__version__
except ImportError:
    version = None
described = {"roofline": version}
if version == sys.argv[1]:
    from roofline.sweeping.machine import describe
    described |= describe(sys.argv[2], sys.argv[3:])
print(json.dumps(described))
"""
#: `roofline` without defaults from a pyproject.toml that lies there: the driver took its own.
_ROOFLINE = "import sys; from roofline.cli import main; main(sys.argv[1:], take_defaults=False)"


def describe(version: str, kind: str, backends: Sequence[str]) -> dict[str, object]:
    """Describe this node: its `roofline` (None: not installed), niceness, and if they agree what `machine` says.

    version: of the driver's roofline; kind: "cpu" or "cuda".
    """
    command = [sys.executable, "-P", "-c", _DESCRIBE, version, kind, *backends]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    lines = ended.stdout.decode("utf-8", "replace").splitlines()
    described: dict[str, object] = {"roofline": None, "error": ended.stderr.decode("utf-8", "replace")[-1000:]}
    if ended.returncode == 0 and lines:
        described = json.loads(lines[-1])
    return {**described, "niceness": os.nice(0)}


def measure(options: Sequence[str], folder: str) -> tuple[str, bytes]:
    """Measure a point, and return what is in its folder: ("profile" or "failure", JSON), or ("error", text).

    options: of `roofline sweep`, of one point. folder: of the driver, in which files of the user's are looked for.
    """

    def end_with_this_process() -> None:
        # What measures must not go on beside the next attempt when Ray ends or loses this process (Linux).
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
        if os.getppid() != this:
            os.kill(os.getpid(), signal.SIGTERM)

    this = os.getpid()
    with tempfile.TemporaryDirectory(prefix="roofline-") as scratch:
        command = [sys.executable, "-P", "-c", _ROOFLINE, "sweep", *options, "-o", str(Path(scratch, "sweep"))]
        with Path(scratch, "output").open("wb+") as output:
            status = subprocess.run(
                command,
                cwd=folder if Path(folder).is_dir() else scratch,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                preexec_fn=end_with_this_process,
                check=False,
            ).returncode
            output.seek(max(0, output.tell() - 1000))
            printed = output.read()
        for file in Path(scratch, "sweep", "points").glob("*.json"):
            return ("failure" if file.name.endswith(".failed.json") else "profile"), file.read_bytes()
    return "error", f"roofline sweep ended with status {status}: ".encode() + printed
