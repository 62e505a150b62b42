"""End a measuring process whose result is written: neither a thread of its step keeps it, nor a process outlives it."""

from __future__ import annotations

import atexit
import ctypes
import gc
import io
import os
import signal
import sys
import tempfile
import threading
import time
from contextlib import suppress
from typing import NoReturn

#: [s] for exit handlers, and for killed processes to end. By choice; the parent waits longer where it ends this one.
_HANDLERS = _KILLED = 2.0
#: PR_SET_CHILD_SUBREAPER of Linux's prctl.
_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Become the parent of processes that descendants leave behind, so that they can be ended; on Linux, which can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_descendants(spared: int | None = None) -> None:
    """Kill the processes that the user's step started, also in other sessions, which no signal to a group reaches.

    spared: the id of one that stays.
    """
    import psutil

    end = time.monotonic() + _KILLED
    while time.monotonic() < end:
        processes = [child for child in psutil.Process().children(recursive=True) if child.pid != spared]
        if not processes:
            return
        for process in processes:
            with suppress(psutil.Error):
                process.kill()
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass  # those that have ended stay children until they are waited for
        time.sleep(1e-3)


def leave(status: int) -> NoReturn:
    """Run the exit handlers and end this process and all that its step started, whatever still runs.

    Python itself would wait for threads for ever, and leave processes alone. What else it does at its end is done here:
    files are written out, temporary ones and shared memory removed.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=_leave_late, args=(status,), daemon=True).start()
    with suppress(BaseException):
        atexit._run_exitfuncs()
    for release in (_close_files, _release_shared_memory):
        with suppress(BaseException):
            release()
    _leave_now(status)


def _close_files() -> None:
    """Write out the files that the step has open, and remove its temporary ones."""
    gc.unfreeze()  # what is frozen is not listed
    kinds = (tempfile._TemporaryFileWrapper, io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)
    # `isinstance` asks objects that stand for others, whose code then runs.
    for file in [thing for thing in gc.get_objects() if issubclass(type(thing), kinds)]:
        with suppress(Exception):
            if isinstance(file, tempfile._TemporaryFileWrapper):
                file.close()
            else:
                file.flush()


def _release_shared_memory() -> None:
    """Let multiprocessing's tracker remove the shared memory and semaphores that nobody else does.

    It does so when no process is left that may use them, so that the others end first.
    """
    tracking = sys.modules.get("multiprocessing.resource_tracker")
    if tracking is not None and tracking._resource_tracker._fd is not None:
        end_descendants(spared=tracking._resource_tracker._pid)
        tracking._resource_tracker._stop()


def _leave_late(status: int) -> None:
    time.sleep(_HANDLERS)  # a handler that waits for a process or a thread
    _leave_now(status)


def _leave_now(status: int) -> NoReturn:
    end_descendants()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    with suppress(Exception):
        ctypes.CDLL(None).fflush(None)  # what libraries of C printed
    os._exit(status)
