"""Measure matrix products on a GPU: the best rate of any shape, and the sustained one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial

import msgspec

from roofline.devices.cuda import timer
from roofline.devices.sampling import Candidate, Finding, ceiling, fastest_first

PRECISIONS = {
    "fp64": "float64",
    "fp32": "float32",
    "tf32": "float32",
    "bf16": "bfloat16",
    "fp16": "float16",
    "int8": "int8",
    "fp8": "float8_e4m3fn",
}
SHAPES = (
    (512, 512, 512),
    (2048, 2048, 2048),
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (4096, 1024, 4096),
    (4096, 4096, 1024),
)
MORE_SHAPES = ((128, 4096, 4096), (16384, 8192, 8192), (8192, 768, 3072))


def matrix(
    wanted: Collection[str],
    *,
    precision: str,
    seconds: float,
    lasting: float,
    full: bool,
    sustained: dict[str, tuple[float, float | None]],
    conditions: str,
    date: str,
) -> Finding:
    """Measure the best rate of a product in bursts of milliseconds, and the sustained rate of the fastest shape.

    lasting: how long that shape runs without a pause [s], once: `sustained` holds its rate [FLOP/s] and clock [Hz] for
    later turns.
    """
    import torch

    name = f"matrix.{precision}"
    capability = torch.cuda.get_device_capability()
    least = {"tf32": (8, 0), "bf16": (8, 0), "fp8": (8, 9), "int8": (7, 5)}.get(precision, (0, 0))
    if torch.version.hip is None and capability < least:
        return Finding(notes={name: f"needs compute capability {least[0]}.{least[1]}"})
    candidates = [
        Candidate(f"{precision} product {m}x{k}x{n}", 2.0 * m * k * n, product(precision, m, k, n), "product")
        for m, k, n in SHAPES + (MORE_SHAPES if full else ())
    ]
    with tf32(precision == "tf32"):
        best = fastest_first(candidates, seconds, timer.events)[0]
        if name not in sustained:
            fastest = next(candidate for candidate in candidates if candidate.label == best.label)
            typical, clock = timer.sustained(fastest.run, lasting)
            sustained[name] = fastest.work / typical, clock
    rate, clock = sustained[name]
    measured = msgspec.structs.replace(ceiling(best, conditions, date), sustained=rate, clock=clock)
    return Finding({name: measured})


@contextmanager
def tf32(allowed: bool) -> Iterator[None]:
    """Compute fp32 products in TF32, or in IEEE arithmetic; restore the setting afterwards."""
    import torch

    switches = torch.backends.cuda.matmul
    name, value = (
        ("fp32_precision", "tf32" if allowed else "ieee")
        if hasattr(switches, "fp32_precision")
        else ("allow_tf32", allowed)
    )
    before = getattr(switches, name)
    setattr(switches, name, value)
    try:
        yield
    finally:
        setattr(switches, name, before)


def product(precision: str, m: int, k: int, n: int) -> Callable[[], object]:
    """Make a call that computes a product into an allocated output. Its operands are made on the first call."""
    import torch

    calls: list[Callable[[], object]] = []
    dtype = getattr(torch, PRECISIONS[precision])

    def make() -> Callable[[], object]:
        if precision == "int8":
            a, b = (torch.randint(-8, 8, size, dtype=dtype, device="cuda") for size in ((m, k), (n, k)))
            return partial(torch._int_mm, a, b.t(), out=torch.empty(m, n, dtype=torch.int32, device="cuda"))
        # Small numbers of both signs: all zeros draw less power, and so clock higher, than real data.
        a, b = (torch.randn(*size, device="cuda").to(dtype) for size in ((m, k), (n, k)))
        if precision == "fp8":
            scale = torch.ones((), device="cuda")
            return partial(torch._scaled_mm, a, b.t(), scale, scale, out_dtype=torch.bfloat16, use_fast_accum=True)
        return partial(torch.mm, a, b.t(), out=torch.empty(m, n, dtype=dtype, device="cuda"))

    def run() -> object:
        if not calls:
            calls.append(make())
        return calls[0]()

    return run
