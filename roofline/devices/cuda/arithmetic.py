"""Measure a GPU's arithmetic outside its matrix units: multiply-adds, functions, random numbers.

Rates come from kernels that stay in registers: loads limit an element-wise op on a GPU, and its rate would be no
ceiling for a fused kernel.
"""

from __future__ import annotations

import ctypes
from collections.abc import Collection
from functools import partial

from roofline.devices.cuda import kernels, nvrtc, timer
from roofline.devices.cuda.card import grid
from roofline.devices.sampling import Best, Candidate, Finding, ceiling, fastest_first

# Written into a kernel that calls them again and again; each stays within its domain and away from overflow.
FUNCTIONS = {
    "exp": "exp(-x)",
    "exp2": "exp2(-x)",
    "expm1": "expm1(-x)",
    "log": "log(x + T(3))",
    "log2": "log2(x + T(3))",
    "log1p": "log1p(x + T(1))",
    "tanh": "tanh(x + T(1))",
    "erf": "erf(x + T(1))",
    "sigmoid": "T(1) / (T(1) + exp(-x))",
    "sqrt": "sqrt(x + T(1))",
    "rsqrt": "rsqrt(x + T(1))",
    "sin": "sin(x + T(1))",
    "cos": "cos(x + T(1))",
    "pow": "pow(x + T(1), T(0.7))",
}
MULTIPLY_ADD = "x * T(0.999) + T(0.001)"
#: Evaluations in a row. Of 128 multiply-adds the loop's three instructions are 2 %; a function takes several
#: instructions, and many copies of a long one would not fit the instruction cache.
UNROLL_MULTIPLY_ADD, UNROLL_FUNCTION = 128, 8
#: Turns of the loop: half a millisecond of multiply-adds on an H100, a hundred times what starting the blocks takes.
TURNS = 512

_TYPES = {"fp64": "double", "fp32": "float"}


def vector(wanted: Collection[str], *, seconds: float, conditions: str, date: str) -> Finding:
    """Measure the rate of multiply-adds, of 2 FLOP each."""
    ceilings = {}
    for precision in _TYPES:
        name = f"vector.{precision}"
        if name in wanted:
            label = f"chains of {precision} fused multiply-adds in registers"
            best = _in_registers(MULTIPLY_ADD, 2.0, precision, UNROLL_MULTIPLY_ADD, seconds / 2, label)
            ceilings[name] = ceiling(best, conditions, date)
    return Finding(ceilings)


def functions(wanted: Collection[str], *, seconds: float, conditions: str, date: str) -> Finding:
    """Measure the rates of CUDA's own functions in fp32, as the kernels of torch call them."""
    ceilings = {}
    for function, expression in FUNCTIONS.items():
        name = f"function.{function}"
        if name in wanted:
            label = f"{expression.replace('T(', '(')} in registers, fp32"
            best = _in_registers(expression, 1.0, "fp32", UNROLL_FUNCTION, seconds / len(FUNCTIONS), label)
            ceilings[name] = ceiling(best, conditions, date)
    return Finding(ceilings)


def random(wanted: Collection[str], *, seconds: float, conditions: str, date: str) -> Finding:
    """Measure the rate of torch's own generator."""
    import torch

    # One byte is written for each number drawn, so that drawing and not writing rules.
    out = torch.empty(2**24, dtype=torch.uint8, device="cuda")
    run = partial(out.bernoulli_, 0.5)
    best = fastest_first([Candidate("bernoulli_ into bytes", float(out.numel()), run)], seconds, timer.events)[0]
    return Finding({"function.random": ceiling(best, conditions, date)})


def _in_registers(expression: str, work: float, precision: str, unroll: int, seconds: float, label: str) -> Best:
    """Measure the rate of `expression`, `work` an evaluation, on numbers that stay in registers."""
    import torch

    launch_grid = grid()
    dtype = torch.float64 if precision == "fp64" else torch.float32
    out = torch.empty(launch_grid.total, dtype=dtype, device="cuda")
    kernel = nvrtc.kernel(kernels.repeated(expression, _TYPES[precision], unroll), "repeated")
    run = partial(kernel, launch_grid, out, ctypes.c_int(TURNS))
    return fastest_first([Candidate(label, work * unroll * TURNS * launch_grid.total, run)], seconds, timer.events)[0]
