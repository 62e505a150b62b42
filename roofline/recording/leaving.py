"""End a measuring process whose result is written: neither a thread of its step keeps it, nor a process outlives it."""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from typing import NoReturn

#: [s] for exit handlers, and for killed processes to end. By choice; the parent waits longer where it ends this one.
_PATIENCE = 2.0
#: PR_SET_CHILD_SUBREAPER of Linux's prctl.
_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Become the parent of processes that descendants leave behind, so that they can be ended; on Linux, which can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_descendants() -> None:
    """Kill the processes that the user's step started, also in other sessions, which no signal to a group reaches."""
    import psutil

    end = time.monotonic() + _PATIENCE
    while (processes := psutil.Process().children(recursive=True)) and time.monotonic() < end:
        for process in processes:
            with suppress(psutil.Error):
                process.kill()
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass  # those that have ended stay children until they are waited for
        time.sleep(1e-3)


def leave(status: int) -> NoReturn:
    """Run the exit handlers and end this process and all that its step started, whatever still runs.

    Python itself would wait for threads for ever, and leave processes alone.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=_leave_late, args=(status,), daemon=True).start()
    with suppress(BaseException):
        atexit._run_exitfuncs()
    _leave_now(status)


def _leave_late(status: int) -> None:
    time.sleep(_PATIENCE)  # a handler that waits for a process or a thread
    _leave_now(status)


def _leave_now(status: int) -> NoReturn:
    end_descendants()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    with suppress(Exception):
        ctypes.CDLL(None).fflush(None)  # what libraries of C printed
    os._exit(status)
