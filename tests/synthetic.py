"""Steps of a small encoder made by hand, with and without a cause: for the rules that must find it.

The device is handmade's: matrix 100 GFLOP/s, DRAM 10 GB/s, 40 GB/s in a cache of 1 MB, 5 µs per launch. A layer is

    linear 20 MFLOP 300 µs, sdpa 10 MFLOP 200 µs, linear 300 µs, add 0.3 MB 20 µs, layer_norm 0.2 MB 30 µs,
    linear 300 µs, gelu 0.2 MB 50 µs

in blocks "attention" and "FFN": 1200 µs and 7 launches. The host spends 10 µs per launch, in a steady step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as change

import handmade
from msgspec.structs import replace

from roofline.core.cost import Cost, unknown
from roofline.core.device import Cache
from roofline.core.schema import Op, Precision, Profile, Profiled, Signature, Wall

FP32 = Precision(inputs="fp32", arithmetic="fp32", accumulate="fp32", output="fp32", evidence="switch")
HOST = 10  # [us] that the host spends on a launch


@dataclass(frozen=True)
class Row:
    """One op: its name, class and place, work [FLOP, byte] and own time [µs].

    host: time before it [µs], of the framework and of Python; None: what the step has for each launch. host_reads:
    results that the host reads there; None: not recorded.
    """

    name: str
    op_class: str
    own: float
    flops: float = 0.0
    bytes: float = 0.0
    block: str = "attention"
    phase: str = "forward"
    model_flops: float | None = None
    launches: int = 1
    arithmetic: str = "fp32"
    known: bool = True
    dtype: str = "fp32"
    parts: tuple[Row, ...] = ()
    host: tuple[float, float] | None = None
    host_reads: int | None = None


LINEAR = Row("aten::addmm", "contraction", 300, flops=20e6, bytes=0.5e6)
SDPA = Row("aten::sdpa", "attention", 200, flops=10e6, bytes=0.4e6)
ADD = Row("aten::add", "pointwise", 20, bytes=0.3e6)
NORM = Row("aten::native_layer_norm", "normalisation", 30, bytes=0.2e6)
GELU = Row("aten::gelu", "pointwise", 50, bytes=0.2e6, block="FFN")
LAYER = (LINEAR, SDPA, LINEAR, ADD, NORM, change(LINEAR, block="FFN"), GELU)

UNFUSED_NORM = (
    Row("aten::mean", "reduction", 30, bytes=0.1e6),
    Row("aten::sub", "pointwise", 30, bytes=0.3e6),
    Row("aten::pow", "pointwise", 40, bytes=0.2e6),
    Row("aten::mean", "reduction", 30, bytes=0.1e6),
    Row("aten::rsqrt", "pointwise", 10, bytes=0.01e6),
    Row("aten::mul", "pointwise", 40, bytes=0.3e6),
)
EAGER_ATTENTION = (
    Row("aten::bmm", "contraction", 150, flops=5e6, bytes=0.4e6),
    Row("aten::softmax", "softmax", 100, bytes=0.4e6),
    Row("aten::bmm", "contraction", 150, flops=5e6, bytes=0.4e6),
)


def instead(rows: Iterable[Row], name: str, other: Sequence[Row]) -> tuple[Row, ...]:
    """The rows with `other` in the place of each op called `name`."""
    return tuple(one for row in rows for one in (other if row.name == name else (row,)))


def step(
    layers: Sequence[Row] = LAYER * 4,
    *,
    host: float = HOST,
    extra_gap: float = 0.0,
    backend: str = "torch",
    causes: dict[str, float] | None = None,
    **changes: object,
) -> Profile:
    """A step of these ops. host: [µs] per launch; extra_gap: [µs] besides; causes: shares of the gap.

    Where a row says what the host does before it, this is recorded of all: of the others, that it is Python.
    """
    signatures: list[Signature] = []
    numbers: dict[Row, int] = {}

    def number(row: Row) -> int:
        if row not in numbers:
            numbers[row] = len(signatures)
            signatures.append(_signature(row))
        return numbers[row]

    phases = ("forward", "backward", "optimizer", "prefill", "decode")
    blocks = ("attention", "FFN", "head", "attention core")
    ops, at = [], 0.0
    hosts = [row.host or (0.0, host * row.launches) for row in layers]
    recorded = any(row.host for row in layers)
    for buffer, (row, before) in enumerate(zip(layers, hosts, strict=True)):
        at += sum(before)
        ops.append(
            Op(
                signature=number(row),
                scope=0,
                phase=phases.index(row.phase),
                block=blocks.index(row.block),
                own_ns=tuple(round(1000 * row.own * factor) for factor in (0.99, 1.0, 1.01)),
                overlap_ns=0,
                start_ns=round(1000 * at),
                launches=row.launches,
                reads=(1000 + buffer,),
                writes=(2000 + buffer,),
                constituents=tuple(number(part) for part in row.parts),
                places=tuple((0, phases.index(part.phase), blocks.index(part.block)) for part in row.parts),
                host_ns=(round(1000 * before[0]), round(1000 * before[1])) if recorded else None,
                host_reads=row.host_reads,
            )
        )
        at += row.own
    busy = sum(row.own for row in layers) * 1e-6
    gap = (sum(map(sum, hosts)) + extra_gap) * 1e-6
    wall = busy + gap
    shares = causes or {"host dispatch": 1.0}
    return handmade.profile(
        **{
            "model": "encoder",
            "mode": "infer",
            "backend": backend,
            "signatures": tuple(signatures),
            "ops": tuple(ops),
            "scopes": ("",),
            "phases": phases,
            "blocks": blocks,
            "wall": Wall(steps=tuple(wall * (1 + jitter * 1e-3) for jitter in (-3, -2, -1, 0, 0, 0, 0, 1, 2, 3))),
            "profiled": Profiled(
                walls=(wall * 1.01,) * 3,
                corrected=(wall, wall, wall),
                dropped=0,
                events=len(ops),
                event_cost=1e-6,
                idle=(gap, gap, gap),
                idle_causes={name: gap * share for name, share in shares.items()},
                joined=1.0,
            ),
            **changes,
        }
    )


def calibrated(
    profile: Profile, *, views: Mapping[int, int] | None = None, asleep: float | None = 0.0, cache: float = 1e9
) -> Profile:
    """The step as a recorder writes it that knows its host: an op takes it 1 µs, inside layers 12, cold 60.

    views: how many are before which op; asleep: [s]; cache: of a core [byte].
    """
    known = {
        "host_seconds_per_op_alone": 1e-6,
        "host_seconds_per_op_in_layers": 12e-6,
        "host_seconds_per_op_cold": 60e-6,
    }
    known |= {} if asleep is None else {"asleep_seconds_per_step": asleep}
    ops = [
        replace(op, host_calls=(views or {}).get(number, 0), python_ns=op.host_ns[1] if op.host_ns else 0)
        for number, op in enumerate(profile.ops)
    ]
    device = replace(profile.device, caches=(Cache(level="l2", size=cache, source="made up"), *profile.device.caches))
    return replace(profile, ops=tuple(ops), device=device, conditions={**profile.conditions, **known})


def _signature(row: Row) -> Signature:
    read, written = row.bytes / 2, row.bytes / 2
    model = row.flops if row.model_flops is None else row.model_flops
    cost = Cost(model_flops=model, flops=row.flops, useful_flops=row.flops, bytes_read=read, bytes_written=written)
    return Signature(
        name=row.name,
        kind=row.name.removeprefix("aten::"),
        op_class=row.op_class,
        shapes=f"[{row.flops:.0f}] [{row.bytes:.0f}]",
        dtype=row.dtype,
        cost=cost if row.known else unknown("no formula"),
        precision=replace(FP32, arithmetic=row.arithmetic) if row.flops and row.known else None,
        reads=(read,),
        writes=(written,),
    )
