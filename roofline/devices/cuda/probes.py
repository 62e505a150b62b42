"""List all probes of a GPU, with the time that each gets."""

from __future__ import annotations

from functools import partial
from typing import Any

from roofline.core.device import DRAM
from roofline.devices.cuda import arithmetic, generated, l2, launches, link, memory, products
from roofline.devices.sampling import Probe


def probes(full: bool, date: str) -> list[Probe]:
    """List all probes of the current GPU; one turn of them takes about three seconds, or seventeen when `full`.

    The first turn also compiles kernels, and runs the products of each precision without a pause for a while.
    """
    import torch

    factor = 2.5 if full else 0.4
    conditions = f"torch {torch.__version__}, CUDA {torch.version.cuda or torch.version.hip}"
    shared: dict[str, Any] = {"conditions": conditions, "date": date}
    lasting = 2.0 if full else 0.25
    plan = []
    for precision in products.PRECISIONS:
        matrix = partial(products.matrix, precision=precision, seconds=factor * 0.6, lasting=lasting, full=full)
        plan.append(Probe((f"matrix.{precision}",), partial(matrix, sustained={}, **shared)))
    vector = partial(arithmetic.vector, seconds=factor * 0.3, **shared)
    plan.append(Probe(("vector.fp64", "vector.fp32"), vector))
    functions = tuple(f"function.{name}" for name in arithmetic.FUNCTIONS)
    plan.append(Probe(functions, partial(arithmetic.functions, seconds=factor * 0.5, **shared)))
    compiled = partial(generated.functions, seconds=factor * 0.5, **shared)
    plan.append(Probe(tuple(f"function.{name}" for name in generated.NAMES), compiled))
    plan.append(Probe(("function.random",), partial(arithmetic.random, seconds=factor * 0.2, **shared)))
    dram = partial(memory.dram, seconds=factor * 0.8, **shared)
    plan.append(Probe(tuple(f"dram.{pattern}" for pattern in DRAM), dram))
    plan.append(Probe(("cache.llc",), partial(l2.cache, read_bests={}, write_bests={}, seconds=factor * 0.6, **shared)))
    for name in launches.PROBES:
        plan.append(Probe((name,), partial(launches.launch, **shared)))
    plan.append(Probe(("link.h2d", "link.d2h"), partial(link.link, seconds=factor * 0.4, **shared)))
    return plan
