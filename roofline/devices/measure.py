"""Measure in a child process: JSON lines on its standard output, one per probe, the device in the last.

Run as `python -m roofline.devices.measure --device cpu --threads 2`, with OMP_NUM_THREADS and the like set
before: libraries read them when they are loaded. `roofline.devices.calibration` starts it.
"""

from __future__ import annotations

import argparse
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from datetime import date as Date
from fnmatch import fnmatch
from functools import partial
from importlib import metadata

import msgspec

from roofline.core.device import Device
from roofline.devices import cpu as cpus
from roofline.devices import nvidia
from roofline.devices.contention import Load, Moment
from roofline.devices.sampling import Finding, Probe
from roofline.errors import InputError, MissingError, RooflineError

Report = Callable[[str, int, int], None]
TURNS, MOST_TURNS = 2, 4
#: A turn is undisturbed if its threads waited for a processor for less than this share of their time. By choice.
QUIET = 0.02


def measure(
    device: str, threads: int, full: bool = False, only: tuple[str, ...] = (), report: Report | None = None
) -> Device:
    """Measure the ceilings of this machine's CPU ("cpu") or GPU ("cuda") in this process.

    only: names or patterns of ceilings ("matrix.fp32", "dram.*"); empty for all.
    report: called with the family that is measured next, the number of finished probes, and their total.
    Raises MissingError without torch or a usable GPU, InputError if no ceiling matches `only`.
    """
    try:
        import torch
    except ImportError as error:
        raise MissingError("Measuring needs torch: run `pip install 'roofline[torch]'`.") from error
    torch.set_num_threads(threads)
    today = Date.today().isoformat()
    start = time.perf_counter()
    if device == "cuda":
        from roofline.devices.cuda import card, probes

        base = card.describe()
        plan = probes.probes(full, today)
    else:
        from roofline.devices import probes_cpu

        cpu = cpus.detect()
        base = Device(name=cpu.name, kind="cpu", ceilings={}, memory=cpu.memory, shared_ports=not cpu.matrix_units)
        if cpu.clock is not None:
            base = msgspec.structs.replace(base, conditions={"highest clock": f"{cpu.clock / 1e6:.0f} MHz"})
        plan = probes_cpu.probes(cpu, threads, full, today)
    chosen = [(probe, names) for probe in plan if (names := _wanted_names(probe, only))]
    if not chosen:
        available = ", ".join(name for probe in plan for name in probe.names)
        raise InputError(f"Nothing to measure is called {', '.join(only)}; there are: {available}.")
    index = nvidia.visible_index()
    with torch.inference_mode(), nvidia.Sampler(index) as sampler:
        shares = partial(nvidia.is_shared, index) if device == "cuda" else _not_asked
        finding, load = _run(chosen, threads, report, shares)
    conditions = dict(base.conditions) | {
        "date": today,
        "threads": str(threads),
        "affinity": ranges(cpus.affinity()),
        "torch": str(torch.__version__),
        "numpy": metadata.version("numpy"),
        "calibration": "full" if full else "short",
        "seconds": f"{time.perf_counter() - start:.1f}",
    }
    if device == "cuda":
        conditions |= _gpu_conditions(sampler)
    else:
        conditions |= load
    if missing := {name: why for name, why in finding.notes.items() if name not in finding.ceilings}:
        conditions["not measured"] = "; ".join(f"{name}: {why}" for name, why in missing.items())
    return msgspec.structs.replace(base, ceilings=finding.ceilings, caches=finding.caches, conditions=conditions)


def _wanted_names(probe: Probe, only: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in probe.names if not only or any(fnmatch(name, pattern) for pattern in only))


def _not_asked() -> None:
    """Leave open which processes use a processor: how long threads wait for it says more."""


def _run(
    chosen: list[tuple[Probe, tuple[str, ...]]],
    threads: int,
    report: Report | None,
    shares: Callable[[], bool | None] = _not_asked,
) -> tuple[Finding, dict[str, str]]:
    """Run all probes for two turns, and those that were disturbed each time for up to two more.

    A ceiling is the best of all turns: the load of other programs comes in bursts, and the turns lie seconds apart.
    shares: tells whether other processes are on the GPU, called before and after each probe; None if unknown.
    """
    best = Finding()
    before, total, runs, turn = Moment.now(), Load(), 0, 0
    probes = chosen
    while probes:
        of = max(TURNS * len(chosen), runs + len(probes))
        for probe, names in probes:
            if report is not None:
                report(", ".join(names) if len(names) < 4 else f"{names[0].partition('.')[0]}.*", runs, of)
            looks = [shares()]
            start = Moment.now()
            try:
                finding = probe.run(names)
            # Missing features of a processor or a build, no memory, errors of compilers and of torch's private calls
            # have no common class, and the findings of the other probes must not be lost.
            except Exception as error:
                why = str(error).strip().partition("\n")[0]
                finding = Finding(notes=dict.fromkeys(names, why or type(error).__name__))
            if probe.busy:
                used = Moment.now().since(start)
                total += used
                finding = finding.under_load(used.contention(threads))
            looks.append(shares())
            if answers := [look for look in looks if look is not None]:
                finding = finding.under_load(sum(answers) / len(answers))
            best = best.joined(finding)
            runs += 1
        turn += 1
        if turn >= TURNS:
            probes = (
                [(probe, names) for probe, names in chosen if _was_disturbed(names, best)] if turn < MOST_TURNS else []
            )
    if report is not None:
        report("done", runs, runs)
    process_load = Moment.now().since(before)
    load = {"turns": str(turn), "involuntary switches": str(process_load.switches)}
    if total.wall:
        load["cpu share"] = f"{total.processor / (total.wall * threads):.2f}"
        load["waited for a processor"] = f"{total.contention(threads):.3f}"
    return best, load


def _was_disturbed(names: tuple[str, ...], finding: Finding) -> bool:
    """Tell whether other programs used the device in every turn so far that measured some of these ceilings."""
    ceilings = [finding.ceilings[name] for name in names if name in finding.ceilings]
    return any(ceiling.waited is not None and ceiling.waited > QUIET for ceiling in ceilings)


def _gpu_conditions(sampler: nvidia.Sampler) -> dict[str, str]:
    """Describe clocks and throttling during the measurement; the most frequent reason comes first."""
    conditions = {}
    if sampler.clocks:
        conditions["clock"] = f"{min(sampler.clocks) / 1e6:.0f} to {max(sampler.clocks) / 1e6:.0f} MHz"
    if sampler.reasons:
        conditions["throttling"] = ", ".join(
            f"{word} ({count} samples)" for word, count in sampler.reasons.most_common()
        )
    return conditions


def ranges(numbers: tuple[int, ...]) -> str:
    """Write numbers as ranges: (0, 1, 2, 5) as "0-2,5"."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def main(arguments: list[str] | None = None) -> int:
    """Measure and write JSON lines; the exit code is the error's."""
    parser = argparse.ArgumentParser(prog="python -m roofline.devices.measure", description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", default="", help="names or patterns of ceilings, with commas between")
    options = parser.parse_args(arguments)
    # Libraries print what they like to the standard output; the lines go to a copy of it that only we have.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as channel:
        os.dup2(2, 1)
        threading.Thread(target=_end_with_reader, args=(channel.fileno(),), daemon=True).start()

        def send(message: dict[str, object]) -> None:
            channel.write(msgspec.json.encode(message).decode() + "\n")
            channel.flush()

        try:
            device = measure(
                options.device,
                options.threads,
                options.full,
                tuple(name.strip() for name in options.only.split(",") if name.strip()),
                lambda text, count, of: send({"progress": text, "done": count, "of": of}),
            )
        except RooflineError as error:
            send({"error": str(error), "code": error.exit_code})
            return error.exit_code
        send({"device": msgspec.to_builtins(device)})
    return 0


def _end_with_reader(channel: int) -> None:
    """End this process when nobody reads its pipe any more: a command that was killed leaves nothing behind."""
    if hasattr(select, "poll"):
        waiting = select.poll()
        waiting.register(channel, 0)  # what is told of a pipe that is only written to: its reader is gone
        waiting.poll()
        signal.raise_signal(signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
