"""Random profiles for property tests: every field that the analysis reads varies, every reference is whole."""

from __future__ import annotations

from typing import get_args

import handmade
from hypothesis import strategies as st
from msgspec.structs import replace

from roofline.core.cost import Cost, unknown
from roofline.core.device import Cache, Device
from roofline.core.schema import Op, Precision, Profile, Profiled, Signature, Wall
from roofline.core.vocabulary import CLASSES, Quality

CEILINGS = (
    *("matrix.fp32", "matrix.bf16", "vector.fp32", "function.exp", "function.erf"),
    *("dram.read", "dram.write", "dram.copy", "dram.inplace", "cache.l2", "cache.llc"),
)

rates = st.floats(1e6, 1e15)
shares = st.just(0.0) | st.floats(1e-9, 1.0)
sizes = st.integers(0, 10**9).map(float)
names = st.text(max_size=12)


@st.composite
def devices(draw: st.DrawFn) -> Device:
    """Any subset of ceilings, with and without a spread, caches and shared ports."""
    chosen = draw(st.lists(st.sampled_from(CEILINGS), unique=True))
    spread = st.none() | st.just(0.0) | st.floats(1e-9, 0.3)
    ceilings = {name: replace(handmade.ceiling(draw(rates)), spread=draw(spread)) for name in chosen}
    if draw(st.booleans()):
        ceilings["launch.torch-eager"] = handmade.ceiling(draw(st.floats(1e-9, 1e-3)))
    small, large = sorted((draw(st.floats(1e3, 1e9)), draw(st.floats(1e3, 1e9))))
    caches = draw(
        st.sampled_from(
            [
                (),
                (Cache(level="llc", size=None, source="x"),),
                (Cache(level="l2", size=small, source="x"), Cache(level="llc", size=large, source="x")),
            ]
        )
    )
    return Device(
        name=draw(names), kind=draw(st.sampled_from(["cpu", "cuda"])), ceilings=ceilings, caches=caches,
        shared_ports=draw(st.booleans()),
    )  # fmt: skip


@st.composite
def signatures(draw: st.DrawFn) -> Signature:
    """Known, unknown or partly known work; a precision where there is matrix work."""
    reads, writes = draw(st.lists(sizes, max_size=3)), draw(st.lists(sizes, max_size=2))
    flops = draw(st.just(0.0) | sizes)
    cost = Cost(
        model_flops=flops,
        flops=flops,
        useful_flops=flops,
        vector_flops=draw(sizes),
        functions=draw(st.dictionaries(st.sampled_from(["exp", "erf", "lgamma"]), sizes, max_size=2)),
        bytes_read=float(sum(reads)),
        bytes_written=float(sum(writes)),
        quality=draw(st.sampled_from(get_args(Quality))),
    )
    missing = draw(st.sampled_from(["", "all", "vector_flops", "bytes_read"]))
    if missing == "all":
        cost = unknown("no formula")
    elif missing:
        cost = replace(cost, **{missing: None})
    arithmetic = draw(st.sampled_from(["fp32", "bf16", None]))
    precision = Precision(inputs="fp32", arithmetic=arithmetic, accumulate=None, output=None, evidence="switch")
    return Signature(
        name=draw(names), kind="any", op_class=draw(st.sampled_from(CLASSES)), shapes=draw(names),
        dtype=draw(st.sampled_from(["fp32", "bf16", None])), cost=cost, precision=precision if flops else None,
        reads=tuple(reads), writes=tuple(writes), inplace=draw(st.booleans()),
    )  # fmt: skip


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    """A step of random ops at random intervals, some of them overlapping."""
    table = tuple(draw(st.lists(signatures(), min_size=1, max_size=4)))
    labels = [tuple(draw(st.lists(names, min_size=1, max_size=3))) for _ in range(3)]
    phases = tuple(draw(st.lists(st.sampled_from(["forward", "backward", "optimizer"]), min_size=1, unique=True)))
    kept = draw(st.integers(1, 4))
    ops = []
    for _ in range(draw(st.integers(0, 8))):
        number = draw(st.integers(0, len(table) - 1))
        own = draw(st.lists(st.integers(0, 10**7), min_size=kept, max_size=kept))
        ops.append(
            Op(
                signature=number,
                scope=draw(st.integers(0, len(labels[0]) - 1)),
                phase=draw(st.integers(0, len(phases) - 1)),
                block=draw(st.integers(0, len(labels[1]) - 1)),
                own_ns=tuple(own),
                overlap_ns=draw(st.integers(0, sum(own) // len(own))),
                start_ns=draw(st.integers(0, 10**8)),
                launches=draw(st.integers(0, 3)),
                reads=tuple(draw(st.integers(0, 6)) for _ in table[number].reads),
                writes=tuple(draw(st.integers(0, 6)) for _ in table[number].writes),
                kernels=tuple(draw(st.lists(st.tuples(st.integers(0, len(labels[2]) - 1), st.integers(0, 999))))),
                constituents=tuple(draw(st.lists(st.integers(0, len(table) - 1), max_size=2))),
            )
        )
    steps = st.floats(1e-5, 1.0)
    profiled = Profiled(
        walls=tuple(draw(st.lists(steps, min_size=kept, max_size=kept))),
        corrected=tuple(draw(st.lists(steps, min_size=kept, max_size=kept))),
        dropped=0, events=1, event_cost=1e-6,
        idle=tuple(draw(st.just([]) | st.lists(shares, min_size=kept, max_size=kept))),
        idle_causes=draw(st.dictionaries(names, shares, max_size=2)),
        joined=draw(st.none() | shares),
    )  # fmt: skip
    return handmade.profile(
        model=draw(names), device=draw(devices()), signatures=table, ops=tuple(ops), scopes=labels[0],
        blocks=labels[1], kernels=labels[2], phases=phases, profiled=profiled,
        wall=Wall(steps=tuple(draw(st.lists(steps, min_size=1, max_size=5)))),
        flags=tuple(draw(st.lists(names, max_size=2))),
    )  # fmt: skip
