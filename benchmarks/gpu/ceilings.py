"""The main ceilings of a GPU measured another way, beside those of `roofline calibrate`.

bf16 products and copies are torch's, reading is a kernel of Triton's, and `triton.testing.do_bench` times them all: it
empties the last-level cache before each run, takes one run at a time and so measures no burst of many. Only the device
is shared with the calibration, neither the kernels nor the timer.

`python benchmarks/gpu/ceilings.py [--calibration FILE] [--full] [--out FILE]` writes JSON. FILE: what
`roofline calibrate --device cuda --format json` wrote; without it that command is run. A ratio is the calibration's
value over the one here; one below 1 says that the calibration missed what the device can do.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch

try:
    import triton
    import triton.language as tl
    from triton.testing import do_bench
except ImportError:
    sys.exit("This needs Triton, which CUDA builds of torch bring on Linux.")

PRODUCTS = (4096, 8192)
#: Bytes. do_bench leaves the cache full of what is still to be written: of 4 GiB its 50 or 60 MiB are 1.5 %.
ARRAY = 2**32
#: Shares of the last-level cache that are read again and again, and how many bytes each launch reads at least.
SHARES = (0.2, 0.35, 0.5)
REREAD = 2**31
#: Numbers of 4 bytes that a program reads at once, and its warps.
BLOCK, WARPS = 4096, 8
MILLISECONDS = 300


# A slice of one block would be a constant to the compiler, which then loads it once.
@triton.jit(do_not_specialize=["blocks", "turns"])
def reading(data: tl.tensor, out: tl.tensor, blocks: tl.tensor, turns: tl.tensor, BLOCK: tl.constexpr):
    """Each program reads `blocks` blocks of its own, one after the other and from the start again, `turns` in all."""
    lane = tl.arange(0, BLOCK)
    mine = data + tl.program_id(0) * blocks * BLOCK
    total = tl.zeros((BLOCK,), tl.float32)
    for turn in range(turns):
        total += tl.load(mine + (turn % blocks) * BLOCK + lane, cache_modifier=".cg")
    tl.store(out + tl.program_id(0), tl.sum(total))


def timed(run: Callable[[], object], work: float, what: str) -> dict[str, Any]:
    """Best and median rate [work/s] of a call."""
    times = [1e-3 * time for time in do_bench(run, warmup=100, rep=MILLISECONDS, return_mode="all")]
    return {"best": work / min(times), "median": work / median(times), "runs": len(times), "what": what}


def fastest(found: list[dict[str, Any]]) -> dict[str, Any]:
    return max(found, key=lambda one: one["best"])


def products() -> dict[str, Any]:
    found = []
    for size in PRODUCTS:
        a, b = (torch.randn(size, size, device="cuda").to(torch.bfloat16) for _ in range(2))
        out = torch.empty_like(a)
        found.append(timed(lambda: torch.mm(a, b, out=out), 2.0 * size**3, f"torch.mm, bf16, {size} x {size} x {size}"))  # noqa: B023
    return fastest(found)


def copy() -> dict[str, Any]:
    source = torch.rand(ARRAY // 4, device="cuda")
    target = torch.empty_like(source)
    return timed(lambda: target.copy_(source), 2.0 * ARRAY, f"copy_ of {ARRAY // 2**20} MiB")


def read(size: float, least: float, what: str) -> dict[str, Any]:
    """Reading about `size` bytes, again and again until it was `least` bytes."""
    programs = 4 * torch.cuda.get_device_properties(0).multi_processor_count
    blocks = max(1, round(size / (programs * BLOCK * 4)))
    turns = max(blocks, round(least / (programs * BLOCK * 4)))
    data = torch.rand(programs * blocks * BLOCK, device="cuda")
    out = torch.empty(programs, device="cuda")
    run = lambda: reading[(programs,)](data, out, blocks, turns, BLOCK=BLOCK, num_warps=WARPS)  # noqa: E731
    found = timed(run, 4.0 * programs * turns * BLOCK, f"{what} of {data.numel() * 4 / 2**20:.1f} MiB")
    # The sums are of numbers between 0 and 1, `turns` x BLOCK of each program: half of that, if all was read.
    share = float(out.double().mean()) / (turns * BLOCK / 2)
    assert abs(share - 1) < 0.05, f"the kernel read {share:.2f} of what it should"
    return found


def cache() -> dict[str, Any]:
    size = torch.cuda.get_device_properties(0).L2_cache_size
    return fastest([read(share * size, REREAD, "reading again and again") for share in SHARES])


MEASURED: dict[str, Callable[[], dict[str, Any]]] = {
    "matrix.bf16": products,
    "dram.copy": copy,
    "dram.read": lambda: read(ARRAY, ARRAY, "reading once"),
    "cache.llc": cache,
}


def attempt(run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `run` returns, or why it failed: what else is measured must not be lost with it."""
    try:
        return run()
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def calibrated(file: Path | None, full: bool) -> dict[str, Any]:
    """The calibration as `roofline calibrate` writes it; measured now if there is no file."""
    if file is not None:
        return json.loads(file.read_text(encoding="utf-8"))
    command = [sys.executable, "-m", "roofline", "calibrate", "--device", "cuda", "--format", "json", "--again"]
    done = subprocess.run([*command, "--full"] if full else command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def beside(calibration: dict[str, Any], ours: dict[str, dict[str, Any]]) -> dict[str, dict[str, float | None]]:
    """The calibration's values over ours, best and sustained; null where one of the two was not measured."""
    found: dict[str, dict[str, float | None]] = {}
    for name, one in ours.items():
        if "error" in one:
            continue
        ceiling = calibration.get("ceilings", {}).get(name) or {}
        value, lasting = ceiling.get("value"), ceiling.get("sustained")
        found[name] = {
            "calibrated / best": value / one["best"] if value else None,
            "calibrated / median": value / one["median"] if value else None,
            "sustained / median": lasting / one["median"] if lasting else None,
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calibration", type=Path, help="what `roofline calibrate --format json` wrote")
    parser.add_argument("--full", action="store_true", help="without a file: the full calibration")
    parser.add_argument("--out", type=Path, help="where the JSON goes, by default the standard output")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("This needs a CUDA GPU: torch.cuda.is_available() is False.")
    # The calibration first, in a process of its own: it must not find the card warm from what is measured here.
    calibration = attempt(lambda: calibrated(options.calibration, options.full))
    ours = {name: attempt(run) for name, run in MEASURED.items()}
    content = {
        "device": torch.cuda.get_device_name(),
        "versions": {"torch": torch.__version__, "triton": triton.__version__, "cuda": torch.version.cuda},
        "independent": ours,
        "ratios": beside(calibration, ours),
        "calibration": calibration,
    }
    text = json.dumps(content, indent=1)
    if options.out is None:
        print(text)
    else:
        options.out.write_text(text + "\n", encoding="utf-8")
    if failed := [name for name, one in {"calibration": calibration, **ours}.items() if "error" in one]:
        sys.exit(f"Not measured: {', '.join(failed)}; the JSON says why.")


if __name__ == "__main__":
    main()
