"""One step made by hand on a device with round ceilings, so that every expected number can be derived on paper.

The device: matrix 100 GFLOP/s, vector 50 GFLOP/s, exp, erf, sqrt 10 G/s each, DRAM 10 GB/s, last-level cache 40 GB/s up
to 1 MB, 5 µs per launch.

    op          work that binds                                            floor     own       share
    embedding   2 MB read + 2 MB written, 1 MB of it beyond the cache:
                3 MB / 10 GB/s                                             300 µs    400 µs    400 µs   memory
    addmm       2 * 100 * 1000 * 1000 = 200 MFLOP / 100 GFLOP/s            2000 µs   2500 µs   2500 µs  compute
    gelu        0.4 MB read, still in the cache, and 0.4 MB written:
                0.8 MB / 40 GB/s                                           20 µs     25 µs     25 µs    memory
    addmm       as above                                                   2000 µs   2500 µs   2500 µs  compute
    softmax     4 MB read + 4 MB written, 3 MB of it beyond the cache:
                7 MB / 10 GB/s                                             700 µs    2000 µs   1950 µs  memory
    mystery     unknown; runs 100 µs beside softmax, half of it each       -         367 µs    317 µs   unknown
    layer_norm  8 kB: one launch                                           5 µs      8 µs      8 µs     overhead
    adamw       16 MB read + 12 MB written, 11 MB of it beyond the cache:
                27 MB / 10 GB/s                                            2700 µs   3000 µs   3000 µs  memory
    sum                                                                    7725 µs   10800 µs  10700 µs

    wall 12 500 µs = 7725 floor + 2708 loss + 367 uncosted - 100 overlap + 1800 gap
"""

from __future__ import annotations

from msgspec.structs import replace

from roofline.core.cost import Cost, unknown
from roofline.core.device import Cache, Ceiling, Device
from roofline.core.schema import Memory, Op, Precision, Profile, Profiled, Signature, Storages, Wall
from roofline.core.vocabulary import STORAGE_KINDS

MB = 1e6

FP32 = Precision(inputs="fp32", arithmetic="fp32", accumulate="fp32", output="fp32", evidence="switch")


def ceiling(value: float) -> Ceiling:
    return Ceiling(value=value, source="made up", date="2026-01-01")


def device(**changes: float) -> Device:
    """The round device; `changes` replaces ceilings, by names with "_" for "."."""
    ceilings = {
        "matrix.fp32": 100e9,
        "vector.fp32": 50e9,
        "function.exp": 10e9,
        "function.erf": 10e9,
        "function.sqrt": 10e9,
        "dram.copy": 10e9,
        "cache.llc": 40e9,
        "launch.torch-eager": 5e-6,
    }
    ceilings |= {name.replace("_", "."): value for name, value in changes.items()}
    return Device(
        name="Round Device",
        kind="cpu",
        ceilings={name: ceiling(value) for name, value in ceilings.items()},
        caches=(Cache(level="llc", size=1 * MB, source="made up"),),
        conditions={"threads": "2"},
    )


def without_launch(some: Device, **changes: object) -> Device:
    """The device without a launch floor, so that only work has a roof; `changes` replaces fields."""
    ceilings = {name: one for name, one in some.ceilings.items() if not name.startswith("launch")}
    return replace(some, ceilings=ceilings, **changes)


SIGNATURES = (
    Signature(
        name="aten::embedding",
        kind="gather",
        op_class="embedding",
        shapes="[5000, 1000] [500]",
        dtype="fp32",
        cost=Cost(bytes_read=2 * MB, bytes_written=2 * MB),
        reads=(2 * MB,),
        writes=(2 * MB,),
    ),
    Signature(
        name="aten::addmm",
        kind="addmm",
        op_class="contraction",
        shapes="[1000] [100, 1000] [1000, 1000]",
        dtype="fp32",
        # 2 * M * N * K = 2 * 100 * 1000 * 1000; the bias is added to 100 * 1000 results
        cost=Cost(
            model_flops=200e6,
            flops=200e6,
            useful_flops=200e6,
            vector_flops=100e3,
            bytes_read=4.404 * MB,
            bytes_written=0.4 * MB,
        ),
        precision=FP32,
        reads=(0.4 * MB, 4 * MB, 0.004 * MB),
        writes=(0.4 * MB,),
    ),
    Signature(
        name="aten::gelu",
        kind="gelu",
        op_class="pointwise",
        shapes="[100, 1000]",
        dtype="fp32",
        cost=Cost(vector_flops=400e3, functions={"erf": 100e3}, bytes_read=0.4 * MB, bytes_written=0.4 * MB),
        reads=(0.4 * MB,),
        writes=(0.4 * MB,),
    ),
    Signature(
        name="aten::_softmax",
        kind="softmax",
        op_class="softmax",
        shapes="[1000, 1000]",
        dtype="fp32",
        cost=Cost(vector_flops=4e6, functions={"exp": 1e6}, bytes_read=4 * MB, bytes_written=4 * MB),
        reads=(4 * MB,),
        writes=(4 * MB,),
    ),
    Signature(
        name="mylib::mystery",
        kind="unknown",
        op_class="other",
        shapes="[1000, 1000]",
        dtype="fp32",
        cost=unknown("no formula is registered for mylib::mystery"),
        reads=(4 * MB,),
        writes=(4 * MB,),
    ),
    Signature(
        name="aten::native_layer_norm",
        kind="layer-norm",
        op_class="normalisation",
        shapes="[1, 1000]",
        dtype="fp32",
        cost=Cost(vector_flops=8e3, bytes_read=4e3, bytes_written=4e3, quality="assumed", note="two passes"),
        reads=(4e3,),
        writes=(4e3,),
    ),
    Signature(
        name="aten::_fused_adamw_",
        kind="adamw",
        op_class="pointwise",
        shapes="[1000, 1000]",
        dtype="fp32",
        cost=Cost(vector_flops=13e6, functions={"sqrt": 1e6}, bytes_read=16 * MB, bytes_written=12 * MB),
        reads=(4 * MB, 4 * MB, 4 * MB, 4 * MB),
        writes=(4 * MB, 4 * MB, 4 * MB),
        inplace=True,
    ),
)

SCOPES = ("toy/embedding", "toy/layer.0/ffn", "toy/layer.1/ffn", "toy/attention", "toy/norm", "AdamW")
PHASES = ("forward", "optimizer")
BLOCKS = ("embedding", "FFN", "attention core", "norm + residual + dropout", "optimizer")


def op(signature: int, scope: int, block: int, own: int, start: int, reads: tuple[int, ...], writes: tuple[int, ...],
       overlap: int = 0, phase: int = 0) -> Op:  # fmt: skip
    """One op; own [µs] is the mean of three profiled steps, 1 % apart; overlap and start [µs]."""
    return Op(
        signature=signature,
        scope=scope,
        phase=phase,
        block=block,
        own_ns=(own * 990, own * 1000, own * 1010),
        overlap_ns=overlap * 1000,
        start_ns=start * 1000,
        launches=1,
        reads=reads,
        writes=writes,
    )


#                 scope block  own   start  buffers read and written
OPS = (
    op(0, 0, 0, 400, 200, (0,), (1,)),
    op(1, 1, 1, 2500, 700, (2, 3, 4), (5,)),
    op(2, 1, 1, 25, 3400, (5,), (6,)),
    op(1, 2, 1, 2500, 3500, (6, 7, 8), (9,)),
    op(3, 3, 2, 2000, 6100, (10,), (11,), overlap=50),
    op(4, 3, 2, 367, 8000, (11,), (12,), overlap=50),
    op(5, 4, 3, 8, 8500, (13,), (14,)),
    op(6, 5, 4, 3000, 9000, (15, 16, 17, 18), (15, 16, 17), phase=1),
)


def profile(**changes: object) -> Profile:
    """The step of the module docstring; `changes` replaces fields."""
    fields: dict[str, object] = {
        "schema": 1,
        "model": "toy",
        "backend": "torch",
        "mode": "train",
        "size": "tiny",
        "precision": "fp32",
        "command": "roofline profile toy --backend torch --mode train",
        "date": "2026-01-02T03:04:05Z",
        "device": device(),
        # Ten steps around 12.5 ms: median 12.5, p10 12.38, p90 12.62
        "wall": Wall(
            steps=(12.2e-3, 12.4e-3, 12.4e-3, 12.5e-3, 12.5e-3, 12.5e-3, 12.5e-3, 12.6e-3, 12.6e-3, 12.8e-3),
            first=250e-3,
            single=(12.9e-3, 13.0e-3, 13.1e-3),
        ),
        "scopes": SCOPES,
        "phases": PHASES,
        "blocks": BLOCKS,
        "signatures": SIGNATURES,
        "ops": OPS,
        "profiled": Profiled(
            walls=(13.7e-3, 13.75e-3, 13.8e-3),  # 1.1 x the wall before correction
            corrected=(12.4e-3, 12.5e-3, 12.6e-3),
            dropped=0,
            events=24,
            event_cost=1e-6,
            idle=(1.8e-3, 1.9e-3, 2.0e-3),  # 1.9 ms is within 20 % of the gap, 1.8 ms
            idle_causes={"host dispatch": 1.2e-3, "data input": 0.6e-3},
            joined=1.0,
        ),
        "batch": 4,
        "seq": 25,
        "versions": {"torch": "2.13.0", "python": "3.11.9"},
        "switches": {"tf32": "off"},
        "parameters": 1_000_000,
        "trainable": 1_000_000,
        "samples": 4,
        "tokens": 100,
        "memory": Memory(peak=40 * MB, parameters=4 * MB, optimizer=8 * MB, source="peak resident set"),
    }
    return Profile(**(fields | changes))  # type: ignore[arg-type]


def lined() -> Profile:
    """The step with lines of source: both layers' products of one, what follows of another, of the first op of none."""
    lines = (None, 0, 1, 0, 1, 1, 1, 2)
    ops = tuple(replace(op, line=line) for op, line in zip(OPS, lines, strict=True))
    return profile(ops=ops, lines=("model/layers.py:12", "model/layers.py:15", "train.py:30"))


def storages(*rows: tuple[str, int, int, int], **fields: object) -> Storages:
    """Recorded storages; rows: (kind, bytes, first op, last op)."""
    kinds, sizes, firsts, lasts = zip(*rows, strict=True)
    numbers = tuple(map(STORAGE_KINDS.index, kinds))
    return Storages(kind=numbers, bytes=sizes, first=firsts, last=lasts, **fields)  # type: ignore[arg-type]


def filled() -> Profile:
    """The same on a GPU that is never idle: 10.7 ms of ops fill 10.5 ms, and rounding leaves less than nothing.

    The profiled steps took 10.7 ms - 10 ns beside their idle time; to fill 10.5 ms their ops are scaled down by
    10.5 / 10.69999, so that 10.7 ms of ops come to 10.5 ms + 9.8 ns.
    """
    steps = (10.4e-3, *(10.5e-3,) * 8, 10.6e-3)
    profiled = replace(profile().profiled, corrected=(10.8e-3 - 10e-9,) * 3, idle=(0.1e-3,) * 3)
    return profile(device=replace(device(), kind="cuda"), wall=Wall(steps=steps), profiled=profiled)


def without_steps() -> Profile:
    """The same without a profiled step: plain steps were timed, and no op was."""
    ops = tuple(replace(op, own_ns=()) for op in OPS)
    return profile(ops=ops, profiled=replace(profile().profiled, walls=(), corrected=(), idle=()))


HOSTILE = (
    "<script>alert(1)</script>",
    "\x1b[31mred\x1b[0m\x1b]0;title\x07",
    "a|b",
    "two\nlines\r\n",
    r"\input{secret} $x_1$ 50% & #1 {~^}",
    "=cmd()",
    "@SUM(A1)",
    '"quoted", comma',
    "\u202egnp.exe\u2028",
    "漢字 🙂",
    "`code` *bold* [link](http://example.com)",
)


def hostile(text: str) -> Profile:
    """The same step with `text` wherever a trace or a user's file can put a name."""
    plain = profile()
    dubious = Ceiling(value=1.0, source=text, date=text, flag=text, waited=0.9, sustained=0.5)
    return replace(
        plain,
        model=text,
        backend=text,
        device=replace(plain.device, name=text, ceilings={**plain.device.ceilings, text: dubious}),
        versions={text: text},
        scopes=(text, *plain.scopes[1:]),
        phases=(text, *plain.phases[1:]),
        blocks=(text, *plain.blocks[1:]),
        signatures=tuple(replace(s, name=text + s.name, shapes=text) for s in plain.signatures),
        kernels=(text,),
        ops=tuple(replace(o, kernels=((0, 1000),)) for o in plain.ops),
        memory=replace(plain.memory, source=text),
        flags=(text, f"contended: {text}"),
        profiled=replace(plain.profiled, idle_causes={text: 1e-3}),
    )


def wide(number: int, kinds: int) -> Profile:
    """A step of so many products, one every 3 ms: of so many signatures, each with a scope of its own."""
    signatures = tuple(
        replace(SIGNATURES[1], name=f"aten::op{kind}", shapes=f"[{kind}, 1000]") for kind in range(kinds)
    )
    scopes = tuple(f"model/layer.{kind % 50}/part.{kind}" for kind in range(kinds))
    ops = tuple(
        op(place % kinds, place % kinds, 1, 2000 + place % 900, 3000 * place, (place,), (number + place,))
        for place in range(number)
    )
    wall, plain = number * 3e-3 + 1e-3, profile()
    profiled = replace(plain.profiled, walls=(1.2 * wall,) * 3, corrected=(wall,) * 3)
    steps = Wall(steps=(wall,) * 10)
    return replace(plain, signatures=signatures, scopes=scopes, ops=ops, wall=steps, profiled=profiled)
