"""Measuring processes that leave out what takes half of their time and is not tested."""

from __future__ import annotations

import os
from pathlib import Path

#: What every Python begins with that has the folder of `variables` in its path.
BEGINNING = """
import sys

if any(word.startswith("roofline") for word in sys.orig_argv):  # as in `python -m roofline.recording.child`
    from roofline.recording import record
    from roofline.recording.xspace import probes

    record.bandwidth = lambda plan, threads: {}
    probes.FUNCTION_ELEMENTS, probes.TRIVIAL_RUNS = (1024,), 3
"""


def variables(folder: Path) -> dict[str, str]:
    """Write what each Python begins with; return variables of its environment.

    It measures no memory, for which it would load torch whatever the framework, and its probes of the executor are
    small.
    """
    (folder / "sitecustomize.py").write_text(BEGINNING)
    return {"PYTHONPATH": os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))}
