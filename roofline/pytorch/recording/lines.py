"""Mark the lines of the user's program in a recorded step: every op belongs to the last line before it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch
from torch._C._dynamo import eval_frame

from roofline.pytorch.count import LINE
from roofline.recording.source_lines import SourceFiles

#: Most marks of one line, each of 10 µs and a kilobyte: what a line asks for that runs more often is of no line that is
#: known. By choice.
_MOST = 10_000
#: Tells Dynamo to compile neither a function nor what that calls.
_SKIPPED = eval_frame._FrameExecStrategy(eval_frame._FrameAction.SKIP, eval_frame._FrameAction.SKIP)


@contextmanager
def marked_lines() -> Iterator[None]:
    """While active, each line of the user's that runs in this thread is an annotation; "" where none is running.

    Under a debugger or a measurement of coverage, which trace lines themselves, none is.
    """
    if sys.gettrace() is not None:
        yield
        return
    lines = _Lines()
    for function in (_Lines.trace, _Lines._trace_lines):  # else Dynamo compiles them where they run in compiled code
        eval_frame.set_code_exec_strategy(function.__code__, _SKIPPED)
    sys.settrace(lines.trace)
    try:
        yield
    finally:
        sys.settrace(None)
        lines.release()


class _Lines:
    """Trace frames of the user's: as functions are entered, as lines begin and as functions return."""

    def __init__(self) -> None:
        self._files = SourceFiles()
        self._marks: Counter[str] = Counter()
        self._last = ""
        #: Frames that ran before they were traced.
        self._entered: list[FrameType] = []

    def trace(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        """Trace the lines of a function of the user's that is entered, and those of no other."""
        return None if self._files[frame.f_code.co_filename] is None else self._trace_lines

    def release(self) -> None:
        """Trace no frame any more."""
        for frame in self._entered:
            frame.f_trace = None

    def _trace_lines(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        if event == "line":
            self._mark(frame)
        elif event == "return":
            self._mark(self._caller(frame))
        return self._trace_lines

    def _caller(self, frame: FrameType) -> FrameType | None:
        """Find the nearest frame of the user's that called a frame; it is traced from now on."""
        caller = frame.f_back
        while caller is not None and self._files[caller.f_code.co_filename] is None:
            caller = caller.f_back
        if caller is not None and caller.f_trace is None:
            caller.f_trace = self._trace_lines
            self._entered.append(caller)
        return caller

    def _mark(self, frame: FrameType | None) -> None:
        line = "" if frame is None else self._files.line(frame.f_code.co_filename, frame.f_lineno) or ""
        if line and self._marks[line] >= _MOST:
            line = ""
        if line == self._last:
            return
        self._marks[line] += 1
        self._last = line
        # Unlike `record_function` it is no op, which tensors without data would see.
        with torch._C._profiler._RecordFunctionFast(LINE + line):
            pass
