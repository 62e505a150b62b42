"""Measure the ceilings of a CPU with torch and numpy: products, functions, memory, caches, launches.

Rates are the best of several shapes, operators and libraries: a ceiling is the rate that the processor can reach,
and one library often stays well below another (MKL runs fp32 products at half the rate of oneDNN on CPUs
that are not Intel's). Bytes are compulsory traffic: elements read once and written once; the line that a store
fetches first (write-allocate) is not counted, just as it is not counted for ops.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from datetime import date as Date
from functools import partial
from statistics import median
from typing import Any

from roofline.core.device import DRAM, Cache, Ceiling
from roofline.devices.contention import Moment
from roofline.devices.cpu import Cpu, detect
from roofline.devices.sampling import Best, Candidate, Finding, Probe, ceiling, fastest_first, usable_size
from roofline.plugins import importing

PRECISIONS = {"fp64": "float64", "fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "int8": "int8"}
# (M, K, N): small and cubic, then transformer layers of few to many tokens.
SHAPES = ((64, 64, 64), (256, 256, 256), (512, 512, 512), (1024, 1024, 1024), (128, 768, 3072), (512, 768, 768))
MORE_SHAPES = ((2048, 2048, 2048), (128, 3072, 768), (4096, 768, 768), (1024, 1024, 4096), (128, 4096, 4096))

_MIB = 2**20


def probes(cpu: Cpu, threads: int, full: bool, date: str) -> list[Probe]:
    """List all probes of this CPU; one turn of them takes about four seconds, or twenty when `full`."""
    import torch

    conditions = f"{threads} threads, torch {torch.__version__}"
    factor = 2.5 if full else 0.5
    last = cpu.caches[-1].total if cpu.caches else None
    shared: dict[str, Any] = {"conditions": conditions, "date": date}
    plan: list[Probe] = []
    for precision in PRECISIONS:
        names = (f"matrix.{precision}", f"vector.{precision}")[: 2 if precision in ("fp32", "fp64") else 1]
        # The slowest first call is bounded by the race; without a kernel (fp16) little is to be learnt.
        seconds = factor * (0.4 if precision == "fp16" else 0.6)
        matrix = partial(_matrix, precision=precision, seconds=seconds, full=full, **shared)
        plan.append(Probe(names, matrix, busy=True))
    names = tuple(f"function.{name}" for name in _functions() if name != "random")
    function = partial(_function, threads=threads, **shared)
    plan.append(Probe(names, partial(function, seconds=factor * 1.4), busy=True))
    # Drawn by one thread, whose share of the processors is no sign of contention.
    plan.append(Probe(("function.random",), partial(function, seconds=factor * 0.2)))
    dram = partial(_dram, last=last, seconds=factor * 1.2, full=full, **shared)
    plan.append(Probe(tuple(f"dram.{pattern}" for pattern in DRAM), dram, busy=True))
    cache = partial(_cache, cpu=cpu, bests={}, seconds=factor * 1.0, **shared)
    plan.append(Probe(("cache.l2", "cache.llc"), cache, busy=True))
    plan.append(Probe(("launch.torch-eager",), partial(_launch, calls=3000 if full else 600, **shared)))
    return plan


def _matrix(
    wanted: Collection[str], *, precision: str, seconds: float, full: bool, conditions: str, date: str
) -> Finding:
    candidates = _products(precision, SHAPES + (MORE_SHAPES if full else ()))
    if precision != "int8":
        candidates += _convolutions(precision, full)
    results = fastest_first(candidates, seconds)
    if precision in ("fp32", "fp64"):
        results += fastest_first(_numpy_products(precision, (256, 512, 1024)), seconds / 3)
        # numpy's BLAS keeps threads of its own, which spin for some time when they have nothing to do; next to
        # torch's they would be the contention that is watched for.
        time.sleep(0.1)
    best = max(results, key=lambda result: result.rate)
    measured = ceiling(best, conditions, date)
    ceilings = {f"matrix.{precision}": measured}
    if f"vector.{precision}" in wanted:
        # No torch op keeps the multiply-add units busy except a product, and on every CPU known here fp32 and
        # fp64 products run on the same vector units as other arithmetic (AMX has neither).
        method = f"the {precision} product, which runs on the vector units; {measured.source}"
        ceilings[f"vector.{precision}"] = Ceiling(
            value=measured.value, source=method, spread=measured.spread, date=date
        )
    return Finding({name: value for name, value in ceilings.items() if name in wanted})


def _products(precision: str, shapes: tuple[tuple[int, int, int], ...]) -> list[Candidate]:
    import torch

    dtype = getattr(torch, PRECISIONS[precision])
    candidates = []
    for m, k, n in shapes:
        if precision == "int8":
            a, b = (torch.randint(-8, 8, size, dtype=dtype) for size in ((m, k), (k, n)))
            out = torch.empty(m, n, dtype=torch.int32)
            run: Callable[[], object] = partial(torch._int_mm, a, b, out=out)
            name = "torch._int_mm"
        else:
            a, b = (torch.randn(*size).to(dtype) for size in ((m, k), (k, n)))
            run, name = partial(torch.mm, a, b, out=torch.empty(m, n, dtype=dtype)), "torch.mm"
        candidates.append(Candidate(f"{name} {precision} {m}x{k}x{n}", 2.0 * m * k * n, run, name))
        if precision != "int8":  # a layer multiplies by its transposed weight, some types by other code
            layer = partial(torch.nn.functional.linear, a, torch.randn(n, k).to(dtype))
            candidates.append(Candidate(f"linear {precision} {m}x{k}x{n}", 2.0 * m * k * n, layer, "linear"))
    return candidates


def _convolutions(precision: str, full: bool) -> list[Candidate]:
    """Make 1x1 convolutions: the same product through oneDNN, where torch.mm calls the BLAS. No Winograd here."""
    import torch

    dtype = getattr(torch, PRECISIONS[precision])
    candidates = []
    images = 16  # on one thread torch sends fewer images to other code
    for channels, side in ((128, 4), (256, 8), (512, 8)) + (((1024, 8),) if full else ()):
        x, weight = (
            torch.randn(*size).to(dtype).contiguous(memory_format=torch.channels_last)
            for size in ((images, channels, side, side), (channels, channels, 1, 1))
        )
        run = partial(torch.nn.functional.conv2d, x, weight)
        label = f"conv2d 1x1 {precision}, {images} images, {channels} channels, {side}x{side}, channels last"
        candidates.append(Candidate(label, 2.0 * channels**2 * images * side**2, run, "conv2d"))
    return candidates


def _numpy_products(precision: str, sizes: tuple[int, ...]) -> list[Candidate]:
    import numpy as np

    candidates = []
    for size in sizes:
        a, b = (np.random.default_rng(0).random((size, size)).astype(PRECISIONS[precision]) for _ in range(2))
        run = partial(np.matmul, a, b, out=np.empty_like(a))
        candidates.append(Candidate(f"numpy.matmul {precision} {size}x{size}x{size}", 2.0 * size**3, run, "numpy"))
    return candidates


def _functions() -> dict[str, dict[str, Callable[[Any, Any], object]]]:
    """Map each function to operators with one evaluation per element: (input in (0, 1), output of the same size).

    Several operators, because the one of the function's name can be slower than the same function inside another
    (torch.erf calls a scalar library where gelu has a vector polynomial).
    """
    import torch
    from torch.nn import functional

    def unary(name: str) -> Callable[[Any, Any], object]:
        call = getattr(torch, name)
        return lambda x, out: call(x, out=out)

    return {
        "exp": {
            "torch.exp": unary("exp"),
            "softmax": lambda x, out: torch.softmax(x.view(-1, 256), -1),
            "torch.sigmoid": unary("sigmoid"),
            "silu": lambda x, out: functional.silu(x),
        },
        "exp2": {"torch.exp2": unary("exp2")},
        "expm1": {"torch.expm1": unary("expm1")},
        "log": {"torch.log": unary("log"), "torch.log1p": unary("log1p")},
        "log2": {"torch.log2": unary("log2")},
        "log1p": {"torch.log1p": unary("log1p")},
        "tanh": {
            "torch.tanh": unary("tanh"),
            "gelu (tanh)": lambda x, out: functional.gelu(x, approximate="tanh"),
        },
        "erfc": {"torch.erfc": unary("erfc"), "gelu": lambda x, out: functional.gelu(x)},
        "erf": {"torch.erf": unary("erf"), "gelu": lambda x, out: functional.gelu(x)},
        "sigmoid": {"torch.sigmoid": unary("sigmoid"), "silu": lambda x, out: functional.silu(x)},
        "sqrt": {"torch.sqrt": unary("sqrt")},
        "rsqrt": {"torch.rsqrt": unary("rsqrt")},
        "sin": {"torch.sin": unary("sin")},
        "cos": {"torch.cos": unary("cos")},
        # 1.7: whole and half powers are computed as products and roots
        "pow": {"torch.pow": lambda x, out: torch.pow(x, 1.7, out=out)},
        "random": {
            "uniform_": lambda x, out: out.uniform_(),
            "normal_": lambda x, out: out.normal_(),
            "bernoulli_": lambda x, out: out.bernoulli_(0.5),
            "dropout": lambda x, out: functional.dropout(x, 0.5, training=True),
        },
    }


def _function(wanted: Collection[str], *, threads: int, seconds: float, conditions: str, date: str) -> Finding:
    import torch

    chosen = {name: ops for name, ops in _functions().items() if f"function.{name}" in wanted}
    turns = 3
    candidates = [
        (name, label, elements, op)
        for name, ops in chosen.items()
        for label, op in ops.items()
        # A thread gets 32768 elements at least (torch's grain); 4 times that still fits second-level caches.
        for elements in (threads * 32768, threads * 131072)
    ]
    inputs = {elements: torch.rand(elements) for _, _, elements, _ in candidates}
    outputs = {elements: torch.empty(elements) for elements in inputs}
    # One turn of all functions after the other: a burst of load of tens of milliseconds hits only one turn.
    best: dict[str, list[Any]] = {name: [] for name in chosen}
    for _ in range(turns):
        for name, label, elements, op in candidates:
            run = partial(op, inputs[elements], outputs[elements])
            candidate = Candidate(f"{label}, {elements} fp32 numbers", float(elements), run)
            best[name] += fastest_first([candidate], seconds / (turns * len(candidates)), rounds=1)
    bests = {name: max(results, key=lambda result: result.rate) for name, results in best.items()}
    return Finding({f"function.{name}": ceiling(result, conditions, date) for name, result in bests.items()})


def _dram(
    wanted: Collection[str], *, last: int | None, seconds: float, full: bool, conditions: str, date: str
) -> Finding:
    import torch

    size = array_size(last, available_memory(), full)
    n = size // 4
    a, b, c = (torch.full((n,), 0.5) for _ in range(3))
    # One thread that adds up numbers in one place waits for memory or for its own additions; a product with a vector
    # reads several rows at a time, and does so to generate each token.
    rows, vector = a.view(-1, 1024), b[:1024]
    ops: dict[str, tuple[int, dict[str, Callable[[], object]]]] = {
        "read": (
            1,
            {
                "sum": lambda: torch.sum(a),
                "amax": lambda: torch.amax(a),
                "mv": lambda: torch.mv(rows, vector),
                "mv, transposed": lambda: torch.mv(rows.t(), b[: len(rows)]),
            },
        ),
        "write": (1, {"fill_": lambda: c.fill_(0.5), "zero_": lambda: c.zero_()}),
        "copy": (2, {"copy_": lambda: c.copy_(a)}),
        "triad": (3, {"add(out=)": lambda: torch.add(a, b, alpha=1.5, out=c)}),
        "inplace": (2, {"mul_": lambda: c.mul_(1.0)}),
        "update": (3, {"add_": lambda: c.add_(a, alpha=1e-9), "lerp_": lambda: c.lerp_(a, 1e-3)}),
    }
    chosen = {pattern: ops[pattern] for pattern in DRAM if f"dram.{pattern}" in wanted}
    where = f"arrays of {size // _MIB} MiB, {conditions}"
    flag = None
    if last is not None and size < 2 * last:
        flag = f"The arrays ({size // _MIB} MiB) are less than twice the last-level cache ({last // _MIB} MiB)."
    ceilings = {}
    for pattern, (moved, runs) in chosen.items():
        candidates = [Candidate(label, float(moved * size), run) for label, run in runs.items()]
        result = ceiling(fastest_first(candidates, seconds / len(DRAM))[0], where, date)
        ceilings[f"dram.{pattern}"] = Ceiling(
            value=result.value, source=result.source, spread=result.spread, date=date, flag=flag
        )
    return Finding(ceilings)


def quick_bandwidth(threads: int | None, seconds: float = 0.25) -> dict[str, Ceiling]:
    """Measure the memory bandwidth now, for a profile that is being measured: tenants of other machines share it.

    threads: None for torch's number in this process, which is restored afterwards. Empty without torch, or without room
    for the arrays.
    On virtual machines the bandwidth was seen to differ by a factor of 1.8 between one hour and the next, which would
    put ops above a ceiling from a slower hour. Takes about `seconds`, and 384 MiB while it runs.
    """
    try:
        with importing():
            import torch
    except ImportError:
        return {}
    cpu = detect()
    last = cpu.caches[-1].total if cpu.caches else None
    wanted = tuple(f"dram.{pattern}" for pattern in DRAM)
    before = torch.get_num_threads()
    conditions = f"{threads or before} threads, torch {torch.__version__}, beside the profile"
    today = Date.today().isoformat()
    if threads is not None:
        torch.set_num_threads(threads)
    start = Moment.now()
    try:
        finding = _dram(wanted, last=last, seconds=seconds, full=False, conditions=conditions, date=today)
        return finding.under_load(Moment.now().since(start).contention(threads or before)).ceilings
    except (RuntimeError, MemoryError):
        return {}
    finally:
        if threads is not None:
            torch.set_num_threads(before)


def array_size(last: int | None, available: float, full: bool) -> int:
    """Compute the size [byte] of each of three arrays that stream from memory.

    Four times the last-level cache (eight when `full`), 128 MiB at least; the three together at most 1 GB and
    a quarter of the free memory.
    """
    size = max(128 * _MIB, (8 if full else 4) * (last or 0))
    return int(min(size, 1e9 / 3, available / 4 / 3)) // 4096 * 4096


def available_memory() -> float:
    """Read the memory that is available without swapping [byte]; a container's limit counts."""
    from pathlib import Path

    import psutil

    available = float(psutil.virtual_memory().available)
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="utf-8").strip()
        used = Path("/sys/fs/cgroup/memory.current").read_text(encoding="utf-8").strip()
    except OSError:
        return available
    return min(available, float(limit) - float(used)) if limit.isdigit() else available


#: Of the candidates for caches: reads a working set, and reads and writes each of its lines.
_READ, _UPDATE = "sum", "mul_"


def _cache(
    wanted: Collection[str],
    *,
    cpu: Cpu,
    bests: dict[tuple[str, int], Best],
    seconds: float,
    conditions: str,
    date: str,
) -> Finding:
    """Measure bandwidth against working set: the best of reading, updating in place and adding in place.

    The usable size comes from updates alone, whose dirty lines must be written back to make room, like those of a
    step's results. bests: the best of each candidate and working set [byte], passed from turn to turn, so that the
    curves get better. Torch gives a thread 32768 elements at least, so smaller sets run on fewer threads and the call
    dominates: the first-level cache cannot be measured this way and has no ceiling.
    """
    import torch

    sizes = {level.level: level.total for level in cpu.caches}
    largest = max(sizes.values(), default=64 * _MIB)
    second = sizes.get(2, 0) if len(sizes) > 1 else 0
    sets = working_sets(16 * 1024, min(4 * largest, 512 * _MIB))
    data = torch.full((max(sets) // 4,), 0.5)
    for size in sets:
        n = size // 4
        array, first_half, second_half = data[:n], data[: n // 2], data[n // 2 : n // 2 * 2]
        candidates = [
            Candidate(_READ, float(size), partial(torch.sum, array)),
            Candidate(_UPDATE, 2.0 * size, partial(array.mul_, 1.0)),
            Candidate("add_", 1.5 * size, partial(first_half.add_, second_half, alpha=1e-9)),
        ]
        for best in fastest_first(candidates, seconds / len(sets), rounds=2):
            before = bests.get((best.label, size))
            if before is None or best.rate > before.rate:
                bests[best.label, size] = best
    # The cap is what the system reports; for the last level the measurement stands, as a virtual machine may
    # be told of more cache than it gets, or of less.
    levels: list[tuple[str, int, int, int | None]] = [("l2", 0, second, second)] if second else []
    ceilings: dict[str, Ceiling] = {}
    caches: list[Cache] = []
    for level, above, up_to, cap in [*levels, ("llc", second, largest, None)]:
        plateau, updates, reads = (
            usable_size(curve(bests, label), above, up_to, cap) for label in (None, _UPDATE, _READ)
        )
        if plateau is None or updates is None or reads is None:
            continue
        at = int(plateau[0])
        fastest = max((best for (_, size), best in bests.items() if size == at), key=lambda best: best.rate)
        where = f"working set of {at / _MIB:.3g} MiB, {conditions}"
        ceilings[f"cache.{level}"] = ceiling(fastest, where, date)
        source = (
            "measured with reads and writes: the largest working set that is updated in place at 75 % of the level's "
            f"best rate of doing so ({reads[1] / _MIB:.3g} MiB by reads alone), {conditions}"
        )
        caches.append(Cache(level=level, size=updates[1], source=source))
    if {"cache.l2", "cache.llc"} <= ceilings.keys() and ceilings["cache.l2"].value < ceilings["cache.llc"].value:
        # The call's cost dominates a small set; a level is never slower than the next one.
        ceilings["cache.l2"] = ceilings["cache.llc"]
    return Finding({name: value for name, value in ceilings.items() if name in wanted}, tuple(caches))


def curve(bests: Mapping[tuple[str, int], Best], label: str | None = None) -> list[tuple[float, float]]:
    """List (working set [byte], best bandwidth [byte/s]), ascending, of the candidate `label` or of all."""
    rates: dict[int, float] = {}
    for (candidate, size), best in bests.items():
        if label in (None, candidate):
            rates[size] = max(best.rate, rates.get(size, 0.0))
    return [(float(size), rate) for size, rate in sorted(rates.items())]


def working_sets(smallest: int, largest: int) -> list[int]:
    """List sizes [byte] that double, with 3/2 of each in between."""
    sizes, size = [], smallest
    while size <= largest:
        sizes += [size, size * 3 // 2]
        size *= 2
    return [size for size in sizes if size <= largest]


def _launch(wanted: Collection[str], *, calls: int, conditions: str, date: str) -> Finding:
    """Measure the least duration of a profiler event of an op on one element: the cost of a torch op without work."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    x, y = torch.ones(1), torch.ones(1)
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for _ in range(calls):
            x.neg_()
            x.mul_(y)
            torch.add(x, y, out=y)
    times: dict[str, list[float]] = {}
    for event in profiler.profiler.kineto_results.events():
        if event.name().startswith("aten::"):
            times.setdefault(event.name(), []).append(event.duration_ns() * 1e-9)
    name, durations = min(times.items(), key=lambda item: min(item[1]))
    least = min(durations)
    launch = Ceiling(
        value=least,
        source=f"measured: least profiler event of {name} on one element, {len(durations)} calls, {conditions}",
        spread=round(1 - least / median(durations), 4),
        date=date,
    )
    return Finding({"launch.torch-eager": launch})
