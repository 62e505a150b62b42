"""XLA's flags for a measuring process: where it leaves programs as they were before it optimised them.

A trace holds only what XLA made of a program. What was asked for (docs/counting.md: model FLOPs) is the program before
optimisation, which XLA writes when told where; this is a public flag and works whoever builds the program. It costs no
time that could be measured, and nothing after the first step.
"""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from roofline.errors import InputError
from roofline.recording.launch import SCRATCH, SHARED

_TO = "--xla_dump_to="
_AUTOTUNED = "--xla_gpu_per_fusion_autotune_cache_dir="
_NAME = re.compile(r"module_(\d+)\.(.*)\.before_optimizations\.hlo\.pb$")
_PROGRAM = re.compile(r"module_\d+\.")


def dumping() -> dict[str, str]:
    """XLA_FLAGS that add dumping to the user's own."""
    user_flags = os.environ.get("XLA_FLAGS", "")
    return {"XLA_FLAGS": f"{user_flags} {_TO}{SCRATCH}/xla --xla_dump_hlo_as_proto".strip()}


def asked(device: str, command_buffers: str | None) -> dict[str, str]:
    """XLA_FLAGS of plain and profiled steps: dumping, and no command buffers where the user turned them off.

    Raises InputError on a CPU, where XLA has none.
    """
    if command_buffers is not None and device == "cpu":
        raise InputError("XLA has command buffers on GPUs only: leave command_buffers out.")
    return without_command_buffers(device) if command_buffers == "off" else dumping()


def without_command_buffers(device: str) -> dict[str, str]:
    """On a GPU, XLA_FLAGS of the profiled run: kernels inside a command buffer do not say which op they are of.

    The empty value is meant: it takes every command out of the buffers.
    """
    if device == "cpu":
        return {}
    return {"XLA_FLAGS": f"{dumping()['XLA_FLAGS']} --xla_gpu_enable_command_buffer="}


def with_autotuning(variables: Mapping[str, str], device: str) -> dict[str, str]:
    """`variables` with XLA_FLAGS that, on a GPU, keep which kernel was the fastest for the measurement's next process.

    Plain and profiled steps run in processes of their own, and two kernels that are nearly as fast may win in turns.
    `keep_known` goes before XLA reads the flag, in the process itself. The user's own folder stands.
    """
    flags = variables.get("XLA_FLAGS", "")
    if device == "cpu" or _AUTOTUNED in flags:
        return dict(variables)
    return {**variables, "XLA_FLAGS": f"{flags} {_AUTOTUNED}{SHARED}"}


def keep_known(libraries: Iterable[Path]) -> None:
    """Take our flag for autotuning from XLA_FLAGS where one of `libraries` does not know it: XLA would end the process.

    libraries: the files that hold XLA. A flag is known where its name is in them.
    """
    words = os.environ.get("XLA_FLAGS", "").split()
    remaining = [word for word in words if not word.startswith(_AUTOTUNED)]
    name = _AUTOTUNED.strip("-=").encode()
    if len(remaining) < len(words) and not all(_holds(library, name) for library in libraries):
        os.environ["XLA_FLAGS"] = " ".join(remaining)


def _holds(file: Path, text: bytes) -> bool:
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(text) >= 0


def recorded() -> dict[str, str]:
    """XLA_FLAGS as the user would know them, without our folders; nothing where none are left."""
    words = os.environ.get("XLA_FLAGS", "").split()
    user_flags = " ".join(w for w in words if not w.startswith((_TO, _AUTOTUNED)) and w != "--xla_dump_hlo_as_proto")
    return {"XLA_FLAGS": user_flags} if user_flags else {}


def before_optimizations() -> Iterator[tuple[int, str, bytes]]:
    """(number, name, HloProto bytes) of every program that was compiled in this process, in order."""
    dumped = [(match, path) for path in _dumped() if (match := _NAME.search(path.name))]
    for match, path in sorted(dumped, key=lambda match_and_path: int(match_and_path[0][1])):
        yield int(match[1]), match[2], path.read_bytes()


def compiling_seconds() -> float | None:
    """Measure how long XLA compiled programs in this process [s]: from each one's first file to its last.

    The first holds the program as it was given, the last ones its machine code. None where XLA was not told to write.
    """
    if not _folders():
        return None
    written: dict[str, list[int]] = {}
    for path in _dumped():
        if match := _PROGRAM.match(path.name):
            written.setdefault(match[0], []).append(path.stat().st_mtime_ns)
    return 1e-9 * sum(max(times) - min(times) for times in written.values())


def _dumped() -> list[Path]:
    return [file for folder in _folders()[-1:] for file in folder.glob("module_*")]


def _folders() -> list[Path]:
    """List the folders that XLA is told to write to, of which it takes the last one."""
    words = os.environ.get("XLA_FLAGS", "").split()
    return [Path(word.removeprefix(_TO)) for word in words if word.startswith(_TO)]
