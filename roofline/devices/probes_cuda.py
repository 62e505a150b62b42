"""Measures the ceilings of a GPU through torch: products, functions, memory, cache, launches, host link.

Times are taken by events on the stream while many calls are enqueued, so that the GPU never waits for the host.
Rates of arithmetic outside matrix units come from kernels that stay in registers: an element-wise op on a GPU
is ruled by its loads, and its rate would be no ceiling for a fused kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from statistics import median
from typing import Any

from roofline.core.device import Cache, Ceiling, Device
from roofline.devices import nvidia
from roofline.devices.sampling import Best, Candidate, Finding, Probe, ceiling, race, usable
from roofline.errors import MissingError

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
DRAM = ("read", "write", "copy", "triad", "inplace", "update")

_MIB = 2**20


def describe() -> Device:
    """The current GPU without ceilings; `conditions` hold its driver, power cap and highest clock.

    Raises MissingError where torch sees none.
    """
    import torch

    if not torch.cuda.is_available():
        reason = nvidia.unavailable() or "The installed torch is built without CUDA."
        raise MissingError(f"torch sees no GPU: {reason} Use `--device cpu`.")
    properties = torch.cuda.get_device_properties(0)
    conditions = {"cuda": str(torch.version.cuda or torch.version.hip)}
    state = nvidia.snapshot(nvidia.visible_index())
    if state is not None and state.name == properties.name:
        if state.driver:
            conditions["driver"] = state.driver
        if state.power_cap is not None:
            conditions["power cap"] = f"{state.power_cap:.0f} W"
        if state.sm_clock_max is not None:
            conditions["highest clock"] = f"{state.sm_clock_max / 1e6:.0f} MHz"
    return Device(
        name=properties.name,
        kind="cuda" if torch.version.hip is None else "rocm",
        ceilings={},
        memory=float(properties.total_memory),
        conditions=conditions,
    )


def events(run: Callable[[], object], seconds: float) -> list[float]:
    """The Timer of work on the current stream: times between events around each call [s]."""
    import torch

    def batch(calls: int) -> list[float]:
        marks: list[Any] = [torch.cuda.Event(enable_timing=True) for _ in range(calls + 1)]
        marks[0].record()
        for mark in marks[1:]:
            run()
            mark.record()
        torch.cuda.synchronize()
        return [1e-3 * start.elapsed_time(end) for start, end in pairwise(marks)]

    times = batch(1)
    each = max(times[0], 2e-6)
    if seconds > 2 * each:
        times += batch(min(1000, int(seconds / each)))
    return times


def probes(full: bool, date: str) -> list[Probe]:
    """All probes of the current GPU; one turn of them takes about four seconds, or twenty when `full`."""
    import torch

    factor = 2.5 if full else 0.5
    conditions = f"torch {torch.__version__}, CUDA {torch.version.cuda or torch.version.hip}"
    shared: dict[str, Any] = {"conditions": conditions, "date": date}
    found = []
    for precision in PRECISIONS:
        matrix = partial(_matrix, precision=precision, seconds=factor * 0.6, full=full, **shared)
        found.append(Probe((f"matrix.{precision}",), matrix))
    vector = partial(_vector, seconds=factor * 0.3, **shared)
    found.append(Probe(("vector.fp64", "vector.fp32"), vector))
    functions = tuple(f"function.{name}" for name in FUNCTIONS)
    found.append(Probe(functions, partial(_function, seconds=factor * 0.8, **shared)))
    found.append(Probe(("function.random",), partial(_random, seconds=factor * 0.2, **shared)))
    dram = partial(_dram, seconds=factor * 0.8, **shared)
    found.append(Probe(tuple(f"dram.{pattern}" for pattern in DRAM), dram))
    found.append(Probe(("cache.llc",), partial(_cache, seen={}, seconds=factor * 0.8, **shared)))
    found.append(Probe(("launch.torch-eager",), partial(_launch, **shared)))
    found.append(Probe(("link.h2d", "link.d2h"), partial(_link, seconds=factor * 0.4, **shared)))
    return found


@contextmanager
def _tf32(allowed: bool) -> Any:
    """fp32 products in TF32, or in IEEE arithmetic; the setting before is restored."""
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


def _matrix(
    wanted: Collection[str], *, precision: str, seconds: float, full: bool, conditions: str, date: str
) -> Finding:
    import torch

    name = f"matrix.{precision}"
    capability = torch.cuda.get_device_capability()
    least = {"tf32": (8, 0), "bf16": (8, 0), "fp8": (8, 9), "int8": (7, 5)}.get(precision, (0, 0))
    if torch.version.hip is None and capability < least:
        return Finding(notes={name: f"needs compute capability {least[0]}.{least[1]}"})
    candidates = [
        Candidate(f"{precision} product {m}x{k}x{n}", 2.0 * m * k * n, _product(precision, m, k, n), "product")
        for m, k, n in SHAPES + (MORE_SHAPES if full else ())
    ]
    with _tf32(precision == "tf32"):
        best = race(candidates, seconds, events)[0]
    return Finding({name: ceiling(best, conditions, date)})


def _product(precision: str, m: int, k: int, n: int) -> Callable[[], object]:
    """One product into an output that is there already. Operands are made on the first call."""
    import torch

    made: list[Callable[[], object]] = []
    dtype = getattr(torch, PRECISIONS[precision])

    def make() -> Callable[[], object]:
        if precision == "int8":
            a, b = (torch.randint(-8, 8, size, dtype=dtype, device="cuda") for size in ((m, k), (n, k)))
            return partial(torch._int_mm, a, b.t(), out=torch.empty(m, n, dtype=torch.int32, device="cuda"))
        # Small numbers of both signs: all zeros draw less power, and so clock higher, than real data.
        a, b = (torch.randn(*size, device="cuda").to(dtype) for size in ((m, k), (n, k)))
        if precision == "fp8":
            one = torch.ones((), device="cuda")
            return partial(torch._scaled_mm, a, b.t(), one, one, out_dtype=torch.bfloat16, use_fast_accum=True)
        return partial(torch.mm, a, b.t(), out=torch.empty(m, n, dtype=dtype, device="cuda"))

    def run() -> object:
        if not made:
            made.append(make())
        return made[0]()

    return run


def _repeated(expression: str, times: int) -> Callable[[Any], Any]:
    """An element-wise kernel that evaluates x = `expression` `times` times, compiled at run time."""
    import torch

    code = f"""template <typename T> T repeated(T x) {{
    #pragma unroll 16
    for (int i = 0; i < {times}; ++i) {{ x = {expression}; }}
    return x;
}}"""
    return torch.cuda.jiterator._create_jit_fn(code)


def _in_registers(expression: str, work: float, dtype: Any, seconds: float, label: str) -> Best:
    """The rate of `expression`, of which one evaluation is `work`, over numbers that stay in registers."""
    import torch

    times = 1024
    x = torch.rand(4 * _MIB, dtype=dtype, device="cuda")
    run = partial(_repeated(expression, times), x)
    return race([Candidate(label, work * times * x.numel(), run)], seconds, events)[0]


def _vector(wanted: Collection[str], *, seconds: float, conditions: str, date: str) -> Finding:
    import torch

    found = {}
    for precision, dtype in (("fp64", torch.float64), ("fp32", torch.float32)):
        name = f"vector.{precision}"
        if name in wanted:
            label = f"chains of {precision} fused multiply-adds in registers"
            best = _in_registers("x * T(0.999) + T(0.001)", 2.0, dtype, seconds / 2, label)
            found[name] = ceiling(best, conditions, date)
    return Finding(found)


def _function(wanted: Collection[str], *, seconds: float, conditions: str, date: str) -> Finding:
    import torch

    found = {}
    for function, expression in FUNCTIONS.items():
        name = f"function.{function}"
        if name in wanted:
            label = f"{expression.replace('T(', '(')} in registers, fp32"
            best = _in_registers(expression, 1.0, torch.float32, seconds / len(FUNCTIONS), label)
            found[name] = ceiling(best, conditions, date)
    return Finding(found)


def _random(wanted: Collection[str], *, seconds: float, conditions: str, date: str) -> Finding:
    import torch

    # One byte is written for each number drawn, so that drawing and not writing rules.
    out = torch.empty(16 * _MIB, dtype=torch.uint8, device="cuda")
    run = partial(out.bernoulli_, 0.5)
    best = race([Candidate("bernoulli_ into bytes", float(out.numel()), run)], seconds, events)[0]
    return Finding({"function.random": ceiling(best, conditions, date)})


def _l2_size() -> int:
    """The size of the cache [byte], 0 where this build of torch does not tell."""
    import torch

    return int(getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 0))


def _dram(wanted: Collection[str], *, seconds: float, conditions: str, date: str) -> Finding:
    import torch

    free = torch.cuda.mem_get_info()[0]
    cached = _l2_size()
    size = int(min(max(16 * cached, 256 * _MIB), 1e9, free / 4 / 3)) // 4096 * 4096
    a, b, c = (torch.full((size // 4,), 0.5, device="cuda") for _ in range(3))
    total = torch.empty((), device="cuda")
    ops: dict[str, tuple[int, str, Callable[[], object]]] = {
        "read": (1, "sum", lambda: torch.sum(a, dim=0, out=total)),
        "write": (1, "fill_", lambda: c.fill_(0.5)),
        "copy": (2, "copy_", lambda: c.copy_(a)),
        "triad": (3, "add(out=)", lambda: torch.add(a, b, alpha=1.5, out=c)),
        "inplace": (2, "mul_", lambda: c.mul_(1.0)),
        "update": (3, "add_", lambda: c.add_(a, alpha=1e-9)),
    }
    where = f"arrays of {size // _MIB} MiB, {conditions}"
    found = {}
    for pattern, (moved, label, run) in ops.items():
        if f"dram.{pattern}" in wanted:
            best = race([Candidate(label, float(moved * size), run)], seconds / len(ops), events)[0]
            found[f"dram.{pattern}"] = ceiling(best, where, date)
    return Finding(found)


def _cache(wanted: Collection[str], *, seen: dict[int, Best], seconds: float, conditions: str, date: str) -> Finding:
    """Bandwidth against working set. Twenty calls are timed as one: a single one is shorter than a launch."""
    import torch

    cached = _l2_size()
    if not cached:
        return Finding(notes={"cache.llc": "the driver does not tell the size of the cache"})
    sets = sorted({int(cached * share) // 4096 * 4096 for share in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)})
    sets += [int(cached * share) // 4096 * 4096 for share in (0.8, 0.9, 1.0, 1.25, 1.5, 2, 3, 4)]
    data = torch.full((max(sets) // 4,), 0.5, device="cuda")
    total = torch.empty((), device="cuda")
    calls = 20

    def repeated(op: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            for _ in range(calls):
                op()

        return run

    for size in sets:
        whole = data[: size // 4]
        candidates = [
            Candidate("mul_", 2.0 * size * calls, repeated(partial(whole.mul_, 1.0))),
            Candidate("sum", float(size * calls), repeated(partial(torch.sum, whole, dim=0, out=total))),
        ]
        best = race(candidates, seconds / len(sets), events, rounds=1)[0]
        if size not in seen or best.rate > seen[size].rate:
            seen[size] = best
    curve = [(float(size), seen[size].rate) for size in sets]
    edge = usable(curve, 0.0, float(cached), cap=float(cached))
    if edge is None:
        return Finding(notes={"cache.llc": "no working set fits the cache"})
    at, usable_size = edge
    where = f"working set of {at / _MIB:.3g} MiB, {conditions}"
    source = f"measured: the largest working set with 75 % of the best bandwidth, {conditions}"
    level = Cache(level="llc", size=usable_size, source=source)
    return Finding({"cache.llc": ceiling(seen[int(at)], where, date)}, (level,))


def _launch(wanted: Collection[str], *, conditions: str, date: str) -> Finding:
    """The least duration of a kernel on one element: no kernel ends sooner, however little it does."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    x = torch.ones(1, device="cuda")
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        for _ in range(500):
            x.neg_()
        torch.cuda.synchronize()
    durations = [
        1e-9 * event.duration_ns()
        for event in profiler.profiler.kineto_results.events()
        if event.device_type() == torch.autograd.DeviceType.CUDA  # type: ignore[attr-defined]  # not in its __all__
        and event.duration_ns() > 0
        and not any(word in event.name() for word in ("Memcpy", "Memset", "Sync"))
    ]
    if not durations:
        return Finding(notes={"launch.torch-eager": "the profiler recorded no kernel"})
    least = min(durations)
    launch = Ceiling(
        value=least,
        source=f"measured: least duration of a kernel on one element, {len(durations)} kernels, {conditions}",
        spread=round(1 - least / median(durations), 4),
        date=date,
    )
    return Finding({"launch.torch-eager": launch})


def _link(wanted: Collection[str], *, seconds: float, conditions: str, date: str) -> Finding:
    import torch

    size = 256 * _MIB
    host = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    card = torch.empty(size, dtype=torch.uint8, device="cuda")
    copies = {"h2d": (card, host), "d2h": (host, card)}
    found = {}
    for name, (target, source) in copies.items():
        if f"link.{name}" in wanted:
            run = partial(target.copy_, source, non_blocking=True)
            label = f"copy of {size // _MIB} MiB, pinned memory"
            best = race([Candidate(label, float(size), run)], seconds / 2, events)[0]
            found[f"link.{name}"] = ceiling(best, conditions, date)
    return Finding(found)
