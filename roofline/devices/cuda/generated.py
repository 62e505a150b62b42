"""Measure functions and random numbers of a GPU in code that Triton generates, as torch.compile uses it.

Generated code computes functions in other ways than CUDA's library (a sigmoid with an approximate division, small
numbers flushed to zero), so that either may be the faster one; and it draws numbers by a generator of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache, partial
from typing import Any

from roofline.devices.cuda import timer
from roofline.devices.cuda.arithmetic import FUNCTIONS, TURNS, UNROLL_FUNCTION
from roofline.devices.cuda.card import grid
from roofline.devices.sampling import Candidate, Finding, ceiling, fastest_first
from roofline.errors import reason

#: The random generator of Inductor's code, as `roofline.pytorch.inductor.loops` calls it.
PHILOX = "random (Philox)"
NAMES = (*FUNCTIONS, PHILOX)
#: Numbers of a program, one for each thread, and its warps of 32 threads.
BLOCK, WARPS = 128, 4


def functions(wanted: Collection[str], *, seconds: float, conditions: str, date: str) -> Finding:
    """Measure the rates of functions in fp32, and of drawing numbers. A function that does not compile gets a note."""
    ceilings, notes = {}, {}
    for name in NAMES:
        if f"function.{name}" not in wanted:
            continue
        try:
            candidates = _random_candidates() if name == PHILOX else [_function_candidate(name)]
            best = fastest_first(candidates, seconds / len(NAMES), timer.events)[0]
            ceilings[f"function.{name}"] = ceiling(best, conditions, date)
        # Triton is missing, lacks a C compiler, or does not know this GPU: its errors have no common class.
        except Exception as error:
            why = reason(error)
            notes[f"function.{name}"] = notes["functions of generated code"] = why
    return Finding(ceilings, notes=notes)


def _function_candidate(name: str) -> Candidate:
    import torch

    blocks = grid(threads=32 * WARPS).blocks
    out = torch.empty(blocks * BLOCK, device="cuda")
    kernel = partial(_kernel("evaluate")[(blocks,)], num_warps=WARPS)
    run = partial(kernel, out, TURNS, NAME=name, BLOCK=BLOCK, UNROLL=UNROLL_FUNCTION)
    return Candidate(f"{name} of Triton in registers, fp32", float(TURNS * UNROLL_FUNCTION * out.numel()), run)


def _random_candidates() -> list[Candidate]:
    import torch

    blocks, unroll = grid(threads=32 * WARPS).blocks, 4
    out = torch.empty(blocks * BLOCK, device="cuda")
    seeds = torch.full((1,), 2**40 + 12345, device="cuda")  # of 64 bit, as Inductor's are
    kernel = partial(_kernel("draw")[(blocks,)], num_warps=WARPS)
    candidates = []
    for numbers in (1, 4):
        run: Callable[[], object] = partial(kernel, out, seeds, TURNS, FOUR=numbers == 4, BLOCK=BLOCK, UNROLL=unroll)
        label = f"Philox of Triton in registers, {numbers} of 4 numbers used"
        candidates.append(Candidate(label, float(numbers * unroll * TURNS * out.numel()), run))
    return candidates


@cache
def _kernel(name: str) -> Any:
    import triton

    from roofline.devices.cuda import triton_kernels

    return triton.jit(getattr(triton_kernels, name))
