"""One command in a process group of its own, ended when its time is over, its output in files."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

#: How long a process may take to leave after it was asked to [s].
_GRACE = 5.0
#: Of a longer log the beginning and the end are kept, half each [byte].
MOST_LOG = 400_000


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: its exit code, None where its time was over; and how long it ran [s]."""

    code: int | None
    seconds: float


def execute(
    words: Sequence[str], folder: Path, variables: Mapping[str, str], limit: float, log: Path, stdout: Path | None
) -> Ended:
    """Run `words` in `folder`; its standard output goes to `stdout`, if given, everything else to `log`.

    Whatever ends us ends it, too, with all that it started.
    """
    begin = time.monotonic()
    with log.open("wb") as messages, (stdout or log).open("wb" if stdout else "ab") as results:
        try:
            process = subprocess.Popen(
                words,
                cwd=folder,
                env=dict(variables),
                stdin=subprocess.DEVNULL,
                stdout=results,
                stderr=messages if stdout else subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            messages.write(f"{words[0]}: {error.strerror}\n".encode())
            return Ended(127, time.monotonic() - begin)
        try:
            code: int | None = process.wait(limit)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _end(process)
    shorten(log)
    return Ended(code, time.monotonic() - begin)


def _end(process: subprocess.Popen[bytes]) -> None:
    """The process and what is left of its group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
            if number == signal.SIGTERM and not _alive(process.pid):
                return


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except OSError:
        return False
    return True


def shorten(log: Path) -> None:
    """Leave the beginning and the end of a log that is longer than `MOST_LOG`."""
    size = log.stat().st_size
    if size <= MOST_LOG:
        return
    with log.open("rb") as file:
        head = file.read(MOST_LOG // 2)
        file.seek(size - MOST_LOG // 2)
        tail = file.read()
    log.write_bytes(head + f"\n[... {size - MOST_LOG} bytes left out ...]\n".encode() + tail)
