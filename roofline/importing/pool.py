"""Read the traces of many ranks in several processes, each with one trace in memory at a time.

The first trace is read here: it fills the cache of costs, so that the other processes need no torch, and shows how much
memory a trace takes. This process goes on reading next to the others, so that a second one never costs time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from roofline.core.schema import decode
from roofline.errors import MeasurementError, from_exit_code
from roofline.importing.traces import Importer, Outcome, Request
from roofline.importing.worker import Answer, Task

#: What a process runs. -P: a folder of the user's called roofline must not be taken for the real one.
_COMMAND = ("-P", "-c", "from roofline.importing import worker; worker.main()")


def read(files: Sequence[Path], request: Request, workers: int | None = None) -> Generator[Outcome, None, None]:
    """Yield what comes of each trace, in order, the same for any number of processes.

    workers: how many processes read, this one included; None: one per core that this process may use, as far as the
    memory allows. One where a file is no regular one (a pipe), which another process cannot open, or where an op has a
    formula of the user's, which another process does not know.
    """
    from roofline.costs import custom

    importer = Importer(request)
    try:
        if files:
            yield importer.read(files[0])
        rest, number = files[1:], 1
        if len(rest) > 1 and not custom.has_formulas() and _can_be_shared(files, request):
            number = min(_affordable(files) if workers is None else workers, len(rest))
        if number > 1:
            importer.close()  # the others find what the first trace cost in the cache
            yield from _read_with_others(rest, request, importer, number - 1)
        else:
            yield from map(importer.read, rest)
    finally:
        importer.close()


def _can_be_shared(files: Sequence[Path], request: Request) -> bool:
    """Tell whether every file can be opened again, which a pipe cannot; a device's name need not be a file."""
    named = [Path(name) for name in (request.device, *request.captures) if name is not None]
    return all(file.is_file() or (file in named and not file.exists()) for file in (*files, *named))


def _affordable(files: Sequence[Path]) -> int:
    """Count the usable cores, or as many processes as fit the free memory where these are fewer; at least 1.

    A process takes what this one took so far, the first trace included, and in proportion for a larger file.
    """
    from roofline.devices.cpu import affinity
    from roofline.devices.probes_cpu import available_memory
    from roofline.recording.contention import peak_memory

    cores = len(affinity())
    if cores == 1:
        return 1
    sizes = [file.stat().st_size for file in files]
    size = peak_memory() * max(1.0, max(sizes) / max(1, sizes[0]))
    return max(1, min(cores, 1 + int(available_memory() / size)))


class _Shared:
    """The traces that wait, and what came of the others. All access holds the lock."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.files = files
        self.taken = 0
        self.outcomes: dict[int, Outcome] = {}
        self.lost: MeasurementError | None = None
        self.changed = threading.Condition()

    def take(self) -> int | None:
        """Return the number of the next trace; None where none is left, or all are given up."""
        with self.changed:
            if self.taken == len(self.files) or self.lost is not None:
                return None
            self.taken += 1
            return self.taken - 1

    def put(self, number: int, outcome: Outcome) -> None:
        with self.changed:
            self.outcomes[number] = outcome
            self.changed.notify_all()

    def lacks(self, number: int) -> bool:
        """Tell whether a trace still waits, or is being read."""
        with self.changed:
            return number not in self.outcomes

    def get(self, number: int) -> Outcome:
        """Wait for what comes of a trace. Raises MeasurementError where all are given up."""
        with self.changed:
            while number not in self.outcomes:
                if self.lost is not None:
                    raise self.lost
                self.changed.wait()
            return self.outcomes.pop(number)

    def lose(self, file: Path | None) -> None:
        """Give up all traces, as the process that read `file` is gone; None: nobody wants them any more."""
        with self.changed:
            name = "traces" if file is None else file.name
            self.lost = self.lost or MeasurementError(
                f"The process that read {name} ended: import with fewer processes (--workers 1)."
            )
            self.changed.notify_all()


def _read_with_others(files: Sequence[Path], request: Request, importer: Importer, others: int) -> Iterator[Outcome]:
    """Yield what comes of each trace, in order; read here whenever the next one is not there yet."""
    shared = _Shared(files)
    children: list[subprocess.Popen[bytes]] = []
    threads: list[threading.Thread] = []
    try:
        for _ in range(others):
            children.append(_start())
            threads.append(threading.Thread(target=_serve, args=(children[-1], request, shared), daemon=True))
            threads[-1].start()
        for number in range(len(files)):
            while shared.lacks(number) and (following := shared.take()) is not None:
                shared.put(following, importer.read(files[following]))
            yield shared.get(number)
        for child, thread in zip(children, threads, strict=True):
            thread.join()
            child.communicate()  # one after another: each adds to the cache of costs what the one before wrote
    finally:
        shared.lose(None)
        for child in children:
            child.kill()
        for thread in threads:
            if thread.ident is not None:  # else Ctrl-C came while it was started, and it finds nothing to do
                thread.join()
        for child in children:
            with suppress(OSError), child:  # closes the pipes, of which one may be broken
                pass


def _start() -> subprocess.Popen[bytes]:
    """Start a process that imports traces, in a group of its own: Ctrl-C is this process's, which ends the others."""
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, *_COMMAND], stdin=pipe, stdout=pipe, process_group=0)


def _serve(child: subprocess.Popen[bytes], request: Request, shared: _Shared) -> None:
    """Give one trace after another to a process."""
    assert child.stdin is not None
    assert child.stdout is not None
    lines, file = [msgspec.json.encode(request)], None
    try:
        while (number := shared.take()) is not None:
            file = shared.files[number]
            lines.append(msgspec.json.encode(Task(os.fsencode(file))))
            child.stdin.write(b"".join(line + b"\n" for line in lines))
            child.stdin.flush()
            shared.put(number, _outcome(child.stdout.readline(), file))
            lines, file = [], None
    except (OSError, ValueError, msgspec.MsgspecError):  # it is gone, or was ended
        pass
    finally:
        if file is not None:
            shared.lose(file)


def _outcome(line: bytes, file: Path) -> Outcome:
    answer = msgspec.json.decode(line, type=Answer)
    if answer.error is not None:
        return Outcome(answer.rank, error=from_exit_code(answer.code, answer.error))
    return Outcome(answer.rank, decode(answer.profile, file.name))
