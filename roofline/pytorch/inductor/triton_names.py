"""Triton kernels that torch's compiler wrote, in traces recorded elsewhere: arguments recorded, code seldom at hand.

The profiler records a generated kernel as an op of its own with the tensors that it gets. The name lists what was fused
into it, in alphabetical order and each once: `triton_red_fused__unsafe_view_add_mean_mul_pow_rsqrt_1`. So the class
follows from the names, and the traffic from the tensors: what a kernel writes last in its list, or first, where it
writes over what it reads (`_written`). How often an op of the list occurs, and over which of the shapes, stands in the
code only: the work is assumed, each op once per element of the largest tensor, and unknown where one of them is no
vector op of ours. Where the kernel's source is at hand (`triton_source`), it says what is read and written.

Only templates (`triton_tem_`) multiply matrices: in other kernels the name of a product stands for what follows it, as
the bias of an `addmm`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from roofline.core.cost import Cost, unknown
from roofline.core.decoding import UndecodableError, from_json
from roofline.core.vocabulary import FLOATING, PRODUCTS, OpClass
from roofline.costs import kernel_names
from roofline.costs.calls import Call, Tensor, describe, tensors
from roofline.costs.counted import Access, Costed
from roofline.costs.dtypes import DTYPES
from roofline.costs.formulas import ARITHMETIC, FUNCTIONS, WORKLESS
from roofline.pytorch.aten.tables import ATTENTION, CLASS_OF, CONTRACTIONS, PRIMITIVE, RANDOM
from roofline.pytorch.inductor.triton_source import Kernel

#: triton_<kind>_fused_<names>_<number>; kinds: pointwise, reduction, persistent reduction, template, ...
_NAME = re.compile(r"^triton_([a-z]+)_fused_(.*?)_?(\d*)$")
#: What the compiler's own lowering leaves in names: no op of the program computes in them.
_FRAME = frozenset(("view unsafe_view expand unsqueeze squeeze permute transpose t slice select alias detach").split())
_MORE: dict[str, OpClass] = {
    **dict.fromkeys(("convert_element_type", "to_copy", "clone", "split", "split_with_sizes", "unbind"), "movement"),
    **dict.fromkeys(
        ("native_layer_norm", "layer_norm", "native_group_norm", "rms_norm", "native_batch_norm"), "normalisation"
    ),
    **dict.fromkeys(("var_mean", "mean", "sum", "amax", "amin"), "reduction"),
    **dict.fromkeys(("scaled_dot_product_attention", "flex_attention"), "attention"),
    **dict.fromkeys(
        ("gelu", "silu", "gelu_backward", "silu_backward", "tanh_backward", "native_dropout_backward"), "pointwise"
    ),
    **dict.fromkeys(("embedding", "index", "index_put", "gather", "scatter"), "embedding"),
}
#: Which constituent names the whole, the first that is there: the rest is done on the way.
_RANK: tuple[OpClass, ...] = (
    *("contraction", "attention", "optimizer", "softmax", "normalisation", "reduction", "random", "embedding"),
    *("pointwise", "movement"),
)


def _table() -> dict[str, OpClass]:
    classes: dict[str, OpClass] = {}
    for name, op_class in CLASS_OF.items():
        classes.setdefault(name.lstrip("_"), op_class)
    for name, kind in PRIMITIVE.items():
        classes.setdefault(name.lstrip("_"), "movement" if kind == "copy" else "pointwise")
    classes |= {name.lstrip("_"): "random" for name in RANDOM}
    classes |= dict.fromkeys((name.lstrip("_") for name in CONTRACTIONS), "contraction")
    classes |= dict.fromkeys((name.lstrip("_") for name in ATTENTION), "attention")
    return classes | _MORE


#: Vector work per element of the ops that such kernels are made of; (FLOP, functions). `pow` is a square nearly always.
_WORK: dict[str, tuple[float, tuple[str, ...]]] = {
    **{name: (ARITHMETIC[kind], ()) for name, kind in PRIMITIVE.items() if kind in ARITHMETIC},
    **{name: (0.0, (kind,)) for name, kind in PRIMITIVE.items() if kind in FUNCTIONS},
    **{name.lstrip("_"): (0.0, ()) for name, kind in PRIMITIVE.items() if kind in WORKLESS},
    **dict.fromkeys(("sum", "mean", "amax", "amin", "max", "min", "prod", "cumsum", "pow"), (1.0, ())),
    **dict.fromkeys(("convert_element_type", "to_copy", "clone", "split", "split_with_sizes", "unbind"), (0.0, ())),
    "silu": (1.0, ("sigmoid",)),
    "gelu": (4.0, ("erf",)),
    "softmax": (4.0, ("exp",)),
    "var_mean": (4.0, ()),
    "native_layer_norm": (8.0, ()),
    "native_dropout": (2.0, ("random",)),
}
#: Once per row of a reduction.
_PER_ROW = frozenset(["rsqrt", "sqrt"])
#: Products that add something to what they multiply, which a kernel behind them does.
_BIASED = frozenset(("addmm", "baddbmm", "addbmm", "addmv", "convolution", "linear"))
#: Ops that read several numbers for one result, in a kernel that has no loop over them: short sums, windows.
_GATHERING: frozenset[OpClass] = frozenset(("reduction", "softmax", "normalisation"))
_WINDOW = re.compile(r"pool|upsample|interpol|grid_sample|im2col|unfold|conv_depthwise")
#: Ops of two operands.
_BINARY = frozenset(("add", "sub", "mul", "div", "maximum", "minimum"))

_CLASSES = _table()
_LONGEST = max(name.count("_") + 1 for name in _CLASSES)


def is_triton(name: str, args: bytes = b"") -> bool:
    """Tell whether an op event is a generated kernel: by its name, or because it says so."""
    return _NAME.match(name) is not None or (b'"kernel_backend"' in args and b"triton" in args)


@lru_cache(maxsize=4096)
def constituents(name: str) -> tuple[str, ...]:
    """The ops in the name of a generated kernel, in its order; words that are no op of ours are left out.

    Names of ops hold underscores themselves, so the longest name that fits is taken.
    """
    match = _NAME.match(name[:2000])
    if match is None:
        return ()
    words = [word for word in match[2].split("_") if word]
    names, at = [], 0
    while at < len(words):
        for length in range(min(_LONGEST, len(words) - at), 0, -1):
            candidate = "_".join(words[at : at + length])
            if candidate in _CLASSES or candidate in _FRAME:
                names.append(candidate)
                break
        else:
            length = 1
        at += length
    return tuple(names)


def _multiplies(name: str) -> bool:
    """Tell whether a kernel multiplies matrices: a template, or one whose name does not say what it is."""
    match = _NAME.match(name[:2000])
    return match is None or match[1] == "tem"


def op_class(name: str) -> OpClass:
    """The class of a generated kernel by its constituents.

    A mean or a variance with a reciprocal root is a norm taken apart, a maximum and a sum with an exponential a
    softmax.
    """
    parts = constituents(name)
    classes = {_CLASSES[part] for part in parts if part not in _FRAME}
    if not _multiplies(name) and classes & PRODUCTS:
        classes = classes - PRODUCTS | {"pointwise"}
    if "rsqrt" in parts and classes & {"reduction"}:
        return "normalisation"
    if "exp" in parts and "sum" in parts and {"amax", "max", "sub"} & set(parts):
        return "softmax"
    fallback = kernel_names.classify(name)
    op_class = next((op_class for op_class in _RANK if op_class in classes), fallback)
    kind = _NAME.match(name[:2000])
    if kind and kind[1] in ("red", "per") and op_class in ("pointwise", "movement", "embedding", "random"):
        return "reduction"  # the kernel reduces, whatever its name could not hold
    return op_class


class Event(msgspec.Struct, gc=False):
    """Hold what the profiler records of a generated kernel's launch. file: the hash of its source, in its name."""

    file: str = msgspec.field(default="", name="kernel_hash")
    blocks: str = msgspec.field(default="", name="kernel_kwargs")


def event(args: bytes) -> Event:
    """Return what the `args` of a kernel's call say of it; nothing where they are damaged."""
    try:
        return from_json(args, Event)
    except UndecodableError:
        return Event()


def costed(call: Call, blocks: str = "", before: Tensor | None = None, source: Kernel | None = None) -> Costed:
    """A generated kernel by its recorded arguments: traffic assumed, work unknown, constituents as parts.

    blocks: `kernel_kwargs` of its event. before: what the product right before it wrote. source: its code, which says
    what it reads and writes.
    """
    many = list(tensors(call.inputs))
    sizes = [DTYPES.get(tensor.dtype) for tensor in many]
    multiplies = _multiplies(call.name) if source is None else source.multiplies
    names = [part for part in constituents(call.name) if part not in _FRAME]
    types = [size[0] for size in sizes if size is not None]
    floating = [kind for kind in types if kind in FLOATING]
    cost = unknown("a generated kernel, whose code is not in the trace")
    reads: tuple[Access, ...] = ()
    writes: tuple[Access, ...] = ()
    if many and None not in sizes:
        item_sizes = [size[1] for size in sizes if size]
        extents = _extents(call, blocks)
        traffic = None if source is None else _read_from(source, call.inputs, item_sizes)
        if traffic or extents or not _may_gather(call.name, many):
            moved = "what its source says is moved" if traffic else "each tensor moved once"
            reads, writes = traffic or _traffic(call, many, item_sizes, extents, before)
            cost = msgspec.structs.replace(
                _work(call.name, names, many, multiplies, moved),
                bytes_read=sum(size for _, _, size in reads),
                bytes_written=sum(size for _, _, size in writes),
            )
        else:
            cost = msgspec.structs.replace(
                unknown("a generated kernel: how much of its larger tensors it reads is not in the trace"),
                **dict.fromkeys(("model_flops", "flops", "useful_flops"), 0.0),
            )
    dtype = next(iter(floating or types), None)
    parts = tuple(_part(name, dtype) for name in names if multiplies or _CLASSES[name] not in PRODUCTS)
    return Costed(
        cost=cost,
        kind="triton",
        op_class=op_class(call.name),
        shapes=describe(call),
        dtype=dtype,
        output=types[-1] if types else None,
        reads=reads,
        writes=writes,
        parts=parts if len(parts) > 1 else (),
    )


def _work(name: str, names: list[str], many: list[Tensor], multiplies: bool, moved: str) -> Cost:
    largest = max(many, key=lambda tensor: tensor.numel)
    rows = largest.numel / max(1, largest.shape[-1]) if _loops(name) and largest.shape else float(largest.numel)
    follows = [part for part in names if _CLASSES[part] in PRODUCTS and not multiplies]
    lost = [part for part in names if part not in _WORK and part not in follows]
    if lost or not names or multiplies:
        matrix = None if multiplies else 0.0
        why = f"how much {', '.join(lost)} computes" if lost else "what it computes"
        note = f"a generated kernel: {moved}; {why} is not in the trace"
        return msgspec.structs.replace(
            unknown(note), model_flops=matrix, flops=matrix, useful_flops=matrix, quality="assumed"
        )
    cost = Cost(quality="assumed", note=f"a generated kernel: {moved}, each op once per element")
    for part in names:
        flops, functions = (float(part in _BIASED), ()) if part in follows else _WORK[part]
        number = rows if part in _PER_ROW else float(largest.numel)
        cost = cost + Cost(vector_flops=flops * number, functions=dict.fromkeys(functions, number))
    return cost


def _extents(call: Call, blocks: str) -> tuple[int, ...]:
    """Return the numbers that a kernel counts its elements with, outermost first; none where they were not recorded.

    They are its last arguments, one for each dimension of its blocks, and one more for what it reduces over.
    """
    scalars: list[int] = []
    for value in reversed(call.inputs):
        if type(value) is not int or value <= 0:
            break
        scalars.insert(0, value)
    match = _NAME.match(call.name[:2000])
    if match is None or match[1] not in ("poi", "red", "per"):
        return ()
    dimensions = len({name for name in ("XBLOCK", "YBLOCK", "ZBLOCK") if f"{name}=" in blocks}) or 1
    number = dimensions + (match[1] != "poi")
    return tuple(scalars[-number:]) if len(scalars) >= number else ()


def _traffic(
    call: Call, many: list[Tensor], sizes: list[int], extents: Sequence[int], before: Tensor | None
) -> tuple[tuple[Access, ...], tuple[Access, ...]]:
    """Assume that a kernel reads what it does not write, as far as it goes over it, and writes one tensor."""
    written, is_read = _written(call.name, many, extents, before)
    moved = [
        (True, number, float(min(tensor.distinct, _reach(call.name, many, number, written, extents)) * size))
        for number, (tensor, size) in enumerate(zip(many, sizes, strict=True))
    ]
    reads = tuple(access for access in moved if access[1] != written or is_read)
    # It stores one number for each of its elements: into a larger tensor these are a part (a concatenation, a cache).
    stored = min(many[written].distinct, math.prod(extents)) if extents else many[written].distinct
    return reads, ((True, written, float(stored * sizes[written])),)


def _written(name: str, many: list[Tensor], extents: Sequence[int], before: Tensor | None) -> tuple[int, bool]:
    """Return the place of the tensor that a kernel writes, and whether it reads it too.

    Inductor passes what is written over first (`in_out_ptr`), then inputs, then outputs. Which are which is not
    recorded: the last tensor is taken for the output. It is none where it is too small to hold a number for each of
    the kernel's elements and, of a reduction, does not hold one for each row (a bias), nor where it is what the product
    before has just written (its rows and columns, which a result of the kernel's own would not have, unlike the first).
    """
    if len(many) == 1:
        return 0, True
    elements = math.prod(extents)
    rows = math.prod(extents[:-1]) if _loops(name) else elements
    first, last = many[0], many[-1]
    last_holds, first_holds = (tensor.numel == rows or tensor.numel >= elements for tensor in (last, first))
    was_written = before is not None and _layout(last) == _layout(before) != _layout(first)
    if first_holds and (not last_holds or (was_written and first.numel == last.numel)):
        return 0, True
    return len(many) - 1, False


def _loops(name: str) -> bool:
    """Tell whether a kernel reduces, by its name."""
    return name.startswith(("triton_red_", "triton_per_"))


def _gathers(name: str) -> bool:
    """Tell whether a kernel without a loop reads several numbers for one result, by its name."""
    several = not _loops(name) and any(_CLASSES.get(part) in _GATHERING for part in constituents(name))
    return several or _WINDOW.search(name) is not None


def _may_gather(name: str, many: list[Tensor]) -> bool:
    """Tell whether a pointwise kernel gets a tensor larger than its output: a table, of which it reads some rows."""
    is_pointwise = name.startswith("triton_poi_") and not _gathers(name)
    return is_pointwise and any(tensor.distinct > many[-1].distinct for tensor in many)


def _layout(tensor: Tensor) -> tuple[object, ...]:
    return tensor.shape, tensor.dtype


def _reach(name: str, many: list[Tensor], number: int, written: int, extents: Sequence[int]) -> float:
    """Return the elements that a kernel reads of a tensor: one for each of its own, if it does not gather several.

    What is larger is read in part: slices, rows of a table. Both operands of an op come from one tensor where the
    kernel gets no other.
    """
    if not extents or _gathers(name):
        return math.inf
    alone = not any(place not in (number, written) for place in range(len(many)))
    return math.prod(extents) * (2 if alone and _BINARY.intersection(constituents(name)) else 1)


def _read_from(
    source: Kernel, inputs: Sequence[object], sizes: list[int]
) -> tuple[tuple[Access, ...], tuple[Access, ...]] | None:
    """Return what the source says is read and written; None where the call has other arguments, or absurd numbers."""
    places = [place for place, value in enumerate(inputs) if isinstance(value, Tensor)]
    if len(inputs) > len(source.parameters):
        return None
    try:
        touched = source.touched([value if type(value) is int else None for value in inputs])
    except (ArithmeticError, ValueError, RecursionError):  # numbers beyond floats, terms without end: no kernel's
        return None
    reads: list[Access] = []
    writes: list[Access] = []
    for number, (place, size) in enumerate(zip(places, sizes, strict=True)):
        tensor = inputs[place]
        assert isinstance(tensor, Tensor)
        elements = touched.get(source.parameters[place], (0.0, 0.0))
        for accesses, count in zip((reads, writes), elements, strict=True):
            if count:
                accesses.append((True, number, float(min(count, tensor.distinct) * size)))
    return (tuple(reads), tuple(writes)) if writes else None


def _part(name: str, dtype: str | None) -> Costed:
    return Costed(
        cost=unknown("a part of a generated kernel"),
        kind=name,
        op_class=_CLASSES[name],
        shapes="",
        dtype=dtype,
        output=dtype,
    )
