"""Running the items of a piece: what is left of them, while there is time."""

from __future__ import annotations

import fnmatch
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.machinery import PathFinder
from pathlib import Path

import results
from execute import execute
from item import Item, Setting
from state import BEGUN, FAILED, WELL, Entry, State

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
#: PyTorch; JAX and TensorFlow.
_OUT_OF_MEMORY = ("out of memory", "RESOURCE_EXHAUSTED", "ResourceExhaustedError")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of the driver on one machine.

    work: where pieces are worked on, and caches; out: where archives go; site: the installed wheels. end: when its time
    is over (of `time.monotonic`). again: None; "" to repeat what failed; a pattern to repeat what is named so.
    found: what belongs to the machine and is known already, by the item's name.
    """

    setting: Setting
    work: Path
    out: Path
    site: Path
    end: float
    again: str | None = None
    found: dict[str, Path] = field(default_factory=dict)


def run(name: str, items: Sequence[Item], here: Run) -> int:
    """One piece until it is done or the time is over; how many items are left that this machine can run."""
    piece = here.work / name
    (piece / "logs").mkdir(parents=True, exist_ok=True)
    state = State(piece / "state.json", here.setting)
    open_ = [item for item in items if not item.each and _open(item, state, here.again)]
    if not any(all(_has(one, here) for one in item.machine) for item in open_):
        for item in open_:
            lacks = next(one for one in item.machine if not _has(one, here))
            print(f"{name}/{item.name}: not run, needs {lacks}", flush=True)
        failed = sum(not item.each and not _has_ended_well(item, state) for item in items)
        print(f"{name}: nothing is left to run{f', {failed} failed (see --again)' if failed else ''}", flush=True)
        return 0
    left = 0
    for item in [*(item for item in items if item.each), *open_]:
        if item.each and item.name in here.found:
            shutil.copy(here.found[item.name], piece / item.stdout)
            continue
        missing = next((one for one in item.machine if not _has(one, here)), "")
        waits = next((one for one in item.needs if not state.ended_well(one)), "")
        if missing or waits or here.end - time.monotonic() < item.seconds:
            why = f"needs {missing or waits}" if missing or waits else "no time is left"
            print(f"{name}/{item.name}: not run, {why}", flush=True)
            left += not item.each and not missing
            continue
        how = _try(item, piece, state, here)
        left += how == BEGUN
        if item.each and how == WELL:
            here.found[item.name] = piece / item.stdout
        results.pack(piece, here.out)
    return left


def _try(item: Item, piece: Path, state: State, here: Run) -> str:
    """Run one item and keep what became of it; BEGUN where it was ended because the time of the run was over."""
    began = datetime.now(UTC).isoformat(timespec="seconds")
    entry = Entry(command=item.command, how=BEGUN, began=began, machine=_machine())
    state.keep(item, entry)
    log = piece / "logs" / f"{item.name}.log"
    _set_aside(log)
    for file in item.files:
        (piece / file).unlink(missing_ok=True)
    limit = min(item.limit, here.end - time.monotonic())
    scratch = here.work / "scratch"
    scratch.mkdir(exist_ok=True)
    stdout = piece / item.stdout if item.stdout else None
    variables = {**environment(here.work, here.site), **item.variables}
    try:
        ended = execute(words(item, piece), scratch, variables, limit, log, stdout)
    except BaseException:  # somebody ends us: what was written until now may still leave this machine
        results.pack(piece, here.out)
        raise
    if ended.code is None and limit < item.limit:
        print(f"{piece.name}/{item.name}: ended after {ended.seconds:.0f} s, no time is left", flush=True)
        return BEGUN
    why = _failure(item, piece, ended.code, log)
    how = FAILED if why else WELL
    seconds = round(ended.seconds, 1)
    state.keep(
        item,
        Entry(command=item.command, how=how, why=why, seconds=seconds, began=began, machine=entry.machine),
    )
    print(f"{piece.name}/{item.name}: {how}{', ' if why else ''}{why} ({seconds:.0f} s)", flush=True)
    if why:
        print(_last_lines(log), flush=True)
    return how


def _open(item: Item, state: State, again: str | None) -> bool:
    entry = state.of(item)
    if entry is None or entry.how == BEGUN:
        return True
    return again is not None and (entry.how == FAILED if again == "" else fnmatch.fnmatch(item.name, again))


def _has_ended_well(item: Item, state: State) -> bool:
    entry = state.of(item)
    return entry is not None and entry.how == WELL


def _failure(item: Item, piece: Path, code: int | None, log: Path) -> str:
    """What is wrong with how it ended; "" where nothing is."""
    if code is None:
        return f"took longer than {item.limit:.0f} s"
    if code:
        return f"exit {code}{_known(log)}"
    absent = [file for file in item.files if not (piece / file).is_file() or not (piece / file).stat().st_size]
    return f"left no {absent[0]}" if absent else ""


def _known(log: Path) -> str:
    """A failure that says something of the device and nothing of us, by what frameworks write then."""
    text = log.read_text(encoding="utf-8", errors="replace")
    return ", out of memory" if any(words in text for words in _OUT_OF_MEMORY) else ""


def _set_aside(log: Path) -> None:
    """The log of an earlier try keeps its text under another name."""
    number = 1
    while (kept := log.with_suffix(f".{number}.log")).exists():
        number += 1
    if log.exists():
        log.rename(kept)


def _last_lines(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(f"    {line[:300]}" for line in lines[-12:])


def words(item: Item, piece: Path) -> list[str]:
    """The words of a command as they are executed. -P: nothing of the folder that it runs in is imported."""
    first, *rest = [word.replace("{out}", str(piece)).replace("{root}", str(ROOT)) for word in item.command]
    if first == "script":
        return [sys.executable, "-P", str(HERE / rest[0]), *rest[1:]]
    if first in ("roofline", "pytest"):
        return [sys.executable, "-P", "-m", first, *rest]
    return [first, *rest]


def environment(work: Path, site: Path) -> dict[str, str]:
    """The environment of every command: the installed wheels, and caches of this machine."""
    path = [str(site)] if site.is_dir() else []
    path += [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []
    return {
        **os.environ,
        **({"PYTHONPATH": os.pathsep.join(path)} if path else {}),
        "PYTHONUNBUFFERED": "1",
        "ROOFLINE_CACHE": str(work / "cache"),
        "TORCHINDUCTOR_CACHE_DIR": str(work / "inductor"),
        "TRITON_CACHE_DIR": str(work / "triton"),
        "HF_HUB_OFFLINE": "1",
        "COLUMNS": "160",
    }


def _has(what: str, here: Run) -> bool:
    """A GPU, a module that the commands can import, or a program."""
    kind, _, module = what.rpartition(":")
    if kind == "module":
        return PathFinder.find_spec(module, [str(here.site), *sys.path]) is not None
    return not here.setting.rehearsal if what == "gpu" else shutil.which(what) is not None


def _machine() -> str:
    """The GPU's name, else the processor's kind; no name of a host."""
    try:
        query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
        return subprocess.run(query, capture_output=True, text=True, check=True, timeout=30).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return platform.machine()
