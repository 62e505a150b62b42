"""Fuzz targets one after the other, each in a fork of this process: `campaign.py SECONDS FOLDER TARGET...`.

`run.py` starts it. SECONDS are of processor time, for each target. FOLDER/TARGET gets `corpus/` (inputs that reached
new code), `finds/` (inputs that the target must not answer so, with the traceback) and `ended.json`. atheris watches
which edges of the bytecode an input reaches, and each input is one call in the process. A find is an exception that is
no public error of roofline/errors.py, an output that lets through what it must escape, or a bound exceeded.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import resource
import signal
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import atheris

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT)]
sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "data")]

import targets  # noqa: E402 - the table alone
from target import Target  # noqa: E402

#: By choice. Bytes of an input; processor seconds of an execution, which atheris slows down; bytes that it may take.
LONGEST_INPUT, SECONDS, MEMORY = 1 << 13, 5.0, 512 << 20
#: Bytes of address space of a process beyond what it has at the beginning: a MemoryError and no exhausted machine.
_ROOM = 2 << 30
#: Share of the inputs that are changed without regard to their format.
_BYTES = 0.2


class BoundError(BaseException):
    """Report an execution that takes longer than SECONDS, or more than MEMORY."""


class Campaign:
    """Run a target, and keep what it must not do. accepted: executions that it did not refuse."""

    def __init__(self, name: str, target: Target, seconds: float, folder: Path) -> None:
        from roofline.errors import DefectError, RooflineError

        self.name, self.target, self.seconds, self.folder = name, target, seconds, folder
        self._public, self._defect = RooflineError, DefectError
        #: What processes before this one did: it goes on.
        self.before = ended(folder)
        self.executions = self.accepted = 0
        self.finds: dict[str, str] = {}
        self._begin = self._peak = 0.0
        self._held = 0

    def fuzz(self) -> None:
        """Fuzz until the time is over, and end the process."""
        seeds = list(self.target.seeds())
        with atheris.instrument_imports(include=targets.modules([self.name]), enable_loader_override=False):
            for data in seeds:
                with suppress(Exception):
                    self.target.run(data)  # what it imports when it first runs
        for part in ("corpus", "finds", "seeds"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        for number, data in enumerate(seeds):
            (self.folder / "seeds" / str(number)).write_bytes(data)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + _ROOM, resource.RLIM_INFINITY))
        signal.signal(signal.SIGPROF, _too_long)
        gc.collect()
        gc.freeze()
        options = [
            f"-max_len={LONGEST_INPUT}",
            "-timeout=120",
            "-rss_limit_mb=0",
            "-report_slow_units=3600",
            "-verbosity=0",
            "-detect_leaks=0",
        ]
        options += [
            f"-artifact_prefix={self.folder}/finds/",
            *(str(self.folder / part) for part in ("corpus", "seeds")),
        ]
        atheris.Setup([sys.argv[0], *options], self._execute, custom_mutator=self._mutate)
        self._begin, self._held = time.process_time(), _resident()
        atheris.Fuzz()

    def _execute(self, data: bytes) -> None:
        is_over = self.before["seconds"] + time.process_time() - self._begin > self.seconds
        if self.executions and (is_over or self._grown > _ROOM / 2):
            self.end()
        self.executions += 1
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            self._run(data)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            self._keep(data, error)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    @atheris.instrument_func  # an input that is accepted is new code, whoever decodes it
    def _run(self, data: bytes) -> None:
        try:
            self.target.run(data)
            self.accepted += 1
        except self._public as error:
            if isinstance(error, self._defect):
                raise
        peak = float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10)
        grown, self._peak = peak - (self._peak or peak), peak
        if grown > MEMORY:
            raise BoundError(f"{grown / 2**20:.0f} MiB for an input of {len(data)} bytes")

    def _keep(self, data: bytes, error: BaseException) -> None:
        """Keep the shortest input of each place that raises."""
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "roofline/" in frame.filename]
        last = frames[-1] if frames else traceback.extract_tb(error.__traceback__)[-1]
        place = f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno} ({last.name})"
        digest = hashlib.sha256(place.encode()).hexdigest()[:12]
        kept = self.folder / "finds" / digest
        if place not in self.finds:
            self.finds[place] = str(error)[:200]
            print(f"{self.name}: {place}: {str(error)[:200]!r}, {kept}", file=sys.stderr, flush=True)
        if not kept.exists() or kept.stat().st_size > len(data):
            kept.write_bytes(data)
            text = "".join(traceback.format_exception(error, limit=-25))[-20_000:]
            kept.with_suffix(".txt").write_text(f"{place}\n{text}", encoding="utf-8", errors="replace")

    def _mutate(self, data: bytes, most: int, seed: int) -> bytes:
        """Change an input, mostly within its format."""
        draw = Random(seed)
        changed = None
        if self.target.mutate is not None and draw.random() > _BYTES:
            with suppress(ValueError, RecursionError, OverflowError):
                changed = self.target.mutate(data, draw)
        return atheris.Mutate(data, most) if changed is None or len(changed) > most else changed

    @property
    def _grown(self) -> float:
        """Return what the process holds beyond what it held when it began [byte]."""
        return _resident() - self._held

    def end(self) -> None:
        """Write what there was, and end the process."""
        together = {
            "executions": self.before["executions"] + self.executions,
            "accepted": self.before["accepted"] + self.accepted,
            "seconds": self.before["seconds"] + time.process_time() - self._begin,
            "finds": self.before["finds"] | self.finds,
        }
        (self.folder / "ended.json").write_text(json.dumps(together))
        os._exit(0)


def ended(folder: Path) -> dict[str, Any]:
    """Read what the processes of a target did so far."""
    if not (folder / "ended.json").exists():
        return {"executions": 0, "accepted": 0, "seconds": 0.0, "finds": {}}
    before: dict[str, Any] = json.loads((folder / "ended.json").read_text())
    return before


def _resident() -> int:
    """Return the memory of this process [byte]."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _too_long(*_: Any) -> None:
    raise BoundError(f"more than {SECONDS:.0f} s of processor time")


def main(seconds: str, folder: str, *names: str) -> None:
    """Import the targets once, and fuzz each in a fork: what one leaves behind must not reach the next."""
    targets.hide_frameworks()
    with atheris.instrument_imports(include=targets.modules(names), enable_loader_override=False):
        loaded = {name: targets.load(name) for name in names}
    for name, target in loaded.items():
        place = Path(folder, name)
        place.mkdir(parents=True, exist_ok=True)
        (place / "ended.json").unlink(missing_ok=True)
        # A process ends when atheris has filled its memory, as it does in time; the next one goes on.
        while (before := ended(place))["seconds"] < float(seconds):
            child = os.fork()
            if child == 0:
                _fuzz(name, target, float(seconds), place)
            os.waitpid(child, 0)
            if ended(place)["executions"] == before["executions"]:
                print(f"{name}: ended early, see {place}/log")
                break
        print(f"{name}: {ended(place)}", flush=True)


def _fuzz(name: str, target: Target, seconds: float, place: Path) -> None:
    """Fuzz a target in this process, and end it."""
    log = os.open(place / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(log, stream)
    scratch = Path(os.environ["ROOFLINE_FUZZ_SCRATCH"], name)
    scratch.mkdir(exist_ok=True)
    os.environ |= {"ROOFLINE_FUZZ_SCRATCH": str(scratch), "ROOFLINE_CACHE": str(scratch)}
    Campaign(name, target, seconds, place).fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
