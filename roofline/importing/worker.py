"""Import traces in a process of its own: requests come on standard input, a line each, and answers leave as lines.

The first line is the `Request` of the import, each further one the `Task` of a file, answered by an `Answer`. The end
of standard input, as where the parent is gone, ends it. What libraries print goes to standard error.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

from roofline.core.schema import encode
from roofline.errors import OUT_OF_MEMORY, MeasurementError, RooflineError
from roofline.importing.ranks import Rank
from roofline.importing.traces import Importer, Request


class Task(msgspec.Struct):
    """Name a file to import. path: as the system has it, which need not be text."""

    path: bytes


class Answer(msgspec.Struct):
    """Hold an `Outcome`. profile: as it is saved, empty for none. error: its sentence, code: its exit code."""

    rank: Rank | None = None
    profile: bytes = b""
    error: str | None = None
    code: int = 0


def main() -> None:
    """Answer until standard input ends."""
    with suppress(BrokenPipeError), os.fdopen(os.dup(1), "wb") as out:  # where the parent is gone
        os.dup2(2, 1)
        importer = None
        for line in sys.stdin.buffer:
            try:
                if importer is None:
                    importer = Importer(msgspec.json.decode(line, type=Request))
                    continue
                answer = _answer(importer, Path(os.fsdecode(msgspec.json.decode(line, type=Task).path)))
            except RooflineError as error:
                answer = Answer(error=str(error), code=error.exit_code)
            except MemoryError:
                answer = Answer(error=OUT_OF_MEMORY, code=MeasurementError.exit_code)
            out.write(msgspec.json.encode(answer) + b"\n")
            out.flush()
        if importer is not None:
            importer.close()


def _answer(importer: Importer, file: Path) -> Answer:
    rank, profile, error = importer.read(file)
    if profile is None:
        return Answer(rank=rank, error=str(error), code=error.exit_code if error else 4)
    return Answer(rank=rank, profile=encode(profile))
