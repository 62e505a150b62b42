"""Run the programs of this folder in the process of a test."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Any

import pytest

from roofline.recording import record
from roofline.running.boundaries.named import boundary
from roofline.running.measurement import Wanted
from roofline.running.program import Program
from roofline.running.run import Ended, boundaries, run

PROGRAMS = Path(__file__).parent / "programs"
#: Begins behind all steps of a program: they are found, and none is measured.
NONE = Wanted(first=10_000)


def ran(name: str, *arguments: object, wanted: Wanted = NONE, step: str | None = None) -> Ended:
    """Run a program to its end, which must be a good one. step: as of --step."""
    script = str(PROGRAMS / f"{name}.py")
    program, kinds = Program(script=script, arguments=tuple(map(str, arguments))), boundaries()
    if step is not None:
        named, compiling = boundary(step, script)
        kinds = (named, *kinds)
        if compiling is not None:
            program = Program(script=script, arguments=program.arguments, compile=compiling)
    gc.freeze()  # what a collection or a search of a recording would go through, of all frameworks that are loaded
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", sys.argv)
        patch.setattr(sys, "path", list(sys.path))
        patch.setitem(sys.modules, "__main__", sys.modules["__main__"])
        # A second of each recording, and not what is tested here.
        patch.setattr(record, "bandwidth", lambda plan, threads: {})
        ended = run(program, wanted, lambda text: None, kinds)
    if ended.error is not None and not isinstance(ended.error, SystemExit):
        raise ended.error
    assert not ended.failed
    return ended


def asides(ended: Ended) -> dict[str, int]:
    """Return the number of the steps that were left out, by reason."""
    assert ended.steps.choice is not None
    return {reason: aside.steps for reason, aside in ended.steps.choice.kinds.asides.items()}


def found(ended: Ended) -> tuple[str, int, int]:
    """Return (module of the boundary, calls in a step, number of steps)."""
    choice: Any = ended.steps.choice
    return choice.boundary.watch.__module__.rpartition(".")[2], len(choice.period.keys), choice.seen
