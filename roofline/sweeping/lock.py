"""Let one process at a time go on: of those that measure on a device, and of those that fill a folder."""

from __future__ import annotations

import errno
import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from roofline.devices import calibration, nvidia


@contextmanager
def alone(device: str, say: Callable[[str], None]) -> Iterator[None]:
    """Wait until no other sweep of this user measures on a device of this machine, and keep others waiting.

    device: "cpu", "cuda" or "auto". GPUs are told apart by the first one that this process may use. The lock ends with
    the process that holds it.
    """
    kind = calibration.resolve(device) if device == "auto" else device
    number = "" if kind == "cpu" else f"-{nvidia.visible_index()}"
    # Machines may share the folder.
    file = _folder() / f"measuring-{socket.gethostname()}-{kind}{number}.lock"
    with locked(file, lambda: say("Another sweep is measuring on this machine: waiting for it.")):
        yield


@contextmanager
def locked(file: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold an exclusive lock on a file, which is made; wait while another process holds it, and report that.

    Without a lock where the system or the file system has none.
    """
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        yield
        return
    with file.open("a") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(stream, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP):
                raise
        try:
            yield
        finally:
            with suppress(OSError):
                fcntl.flock(stream, fcntl.LOCK_UN)


def _folder() -> Path:
    """Return the folder of the calibrations, which all processes of a user share; without it one for temporary files.

    A home may be read-only. Files of other users in the folder for temporary files cannot be opened.
    """
    folder = calibration.folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        folder = Path(tempfile.gettempdir()) / f"roofline-{getattr(os, 'getuid', int)()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder
