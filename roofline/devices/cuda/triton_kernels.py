"""Write kernels in Triton's language, as Inductor does: `generated` compiles them. Importing this needs Triton.

The names in capitals are known when a kernel is compiled; there is one kernel for each value.
"""

from __future__ import annotations

import triton.language as tl
from triton.language.extra import libdevice


def evaluate(out: tl.tensor, turns: tl.tensor, NAME: tl.constexpr, BLOCK: tl.constexpr, UNROLL: tl.constexpr) -> None:
    """Evaluate x = f(x), UNROLL x turns times, by the functions that torch._inductor's TritonOverrides generate.

    Of several forms (with `use_fast_math` or without, rounded as IEEE asks or not) it takes the one of fewest
    instructions: a ceiling holds for all.
    """
    lane = tl.arange(0, BLOCK)
    x = lane.to(tl.float32) / BLOCK
    for _turn in range(turns):
        for _copy in tl.static_range(UNROLL):
            if NAME == "exp":
                x = tl.math.exp(-x)
            elif NAME == "exp2":
                x = libdevice.exp2(-x)
            elif NAME == "expm1":
                x = libdevice.expm1(-x)
            elif NAME == "log":
                x = tl.math.log(x + 3.0)
            elif NAME == "log2":
                x = libdevice.log2(x + 3.0)
            elif NAME == "log1p":
                x = libdevice.log1p(x + 1.0)
            elif NAME == "tanh":
                x = libdevice.tanh(x + 1.0)
            elif NAME == "erf":
                x = libdevice.erf(x + 1.0)
            elif NAME == "sigmoid":
                x = tl.sigmoid(x)
            elif NAME == "sqrt":
                x = libdevice.sqrt(x + 1.0)
            elif NAME == "rsqrt":
                x = libdevice.rsqrt(x + 1.0)
            elif NAME == "sin":
                x = tl.math.sin(x + 1.0)
            elif NAME == "cos":
                x = tl.math.cos(x + 1.0)
            else:
                tl.static_assert(NAME == "pow", "no such function")
                x = libdevice.pow(x + 1.0, tl.full((BLOCK,), 0.7, tl.float32))
    tl.store(out + tl.program_id(0) * BLOCK + lane, x)


def draw(
    out: tl.tensor, seeds: tl.tensor, turns: tl.tensor, FOUR: tl.constexpr, BLOCK: tl.constexpr, UNROLL: tl.constexpr
) -> None:
    """Add up random numbers: one of each evaluation of Philox, or the FOUR that it makes; UNROLL x turns evaluations.

    Dropout in generated code takes one in torch 2.11 and, in loops of one dimension, four in 2.13.
    """
    seed = tl.load(seeds)
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for turn in range(turns):
        for copy in tl.static_range(UNROLL):
            at = lane + (turn * UNROLL + copy)
            if FOUR:
                a, b, c, d = tl.rand4x(seed, at)
                total += (a + b) + (c + d)
            else:
                total += tl.rand(seed, at)
    tl.store(out + lane, total)
