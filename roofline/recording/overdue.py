"""Say where a step is that does not return: it would be waited for in silence."""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from types import FrameType

from roofline.recording.recording import Say
from roofline.recording.source_lines import SourceFiles

#: [s] By choice: longer than most first steps take.
PATIENCE = 30.0
#: Lines of the program that are named: the innermost.
_LINES = 4


class Overdue:
    """Watch in a thread of its own, while the context is active, whether what the main thread runs returns in time.

    say: gets a sentence for each that does not. patience: how much longer than expected it may take [s].
    """

    def __init__(self, say: Say, patience: float = PATIENCE) -> None:
        self._say, self._patience = say, patience
        self._late, self._end = "", math.inf
        self._left = threading.Event()

    def __enter__(self) -> Overdue:
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()

    def expect(self, subject: str, seconds: float) -> None:
        """Expect what is run next to return in so many seconds. subject: its name.

        0: where it is not known how long it takes; infinite: what has no such time. Only sets the time: the thread
        wakes up no more often than its patience ends, and disturbs no measurement.
        """
        late = "takes {} longer than expected" if seconds else "has not returned for {}"
        self._late = f"{subject} {late.format(f'{self._patience:.3g} s')}"
        self._end = time.monotonic() + seconds + self._patience

    def _watch(self) -> None:
        rest = self._patience
        while not self._left.wait(min(rest, self._patience)):
            end = self._end
            rest = end - time.monotonic()
            if rest <= 0:
                if self._end == end:  # else it has returned meanwhile
                    self._end = math.inf
                    place = where(sys._current_frames().get(threading.main_thread().ident or 0))
                    self._say(f"{self._late}: it is at {place}.")
                rest = self._patience


def where(frame: FrameType | None) -> str:
    """Name the lines of a stack: those of the user's program, then the innermost one where that is another's.

    frame: the innermost one.
    """
    files = SourceFiles()
    lines: list[str] = []
    innermost = "" if frame is None else _line(f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}", frame)
    is_own = frame is not None and files[frame.f_code.co_filename] is not None
    while frame is not None and len(lines) < _LINES:
        if (line := files.line(frame.f_code.co_filename, frame.f_lineno)) is not None:
            lines.append(_line(line, frame))
        frame = frame.f_back
    return " > ".join([*reversed(lines), *([] if is_own else [innermost])])


def _line(line: str, frame: FrameType) -> str:
    return f"{line} ({frame.f_code.co_name})"
