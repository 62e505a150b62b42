"""Triton kernels that torch's compiler wrote, in traces recorded elsewhere: arguments recorded, code not at hand.

The profiler records a generated kernel as an op of its own with the tensors that it gets. The name lists what was fused
into it, in alphabetical order and each once: `triton_red_fused__unsafe_view_add_mean_mul_pow_rsqrt_1`. So the class
follows from the names, and the traffic from the tensors, each once (one that is read and written, an `in_out_ptr`,
moves twice, which the recorded arguments do not show). How often an op of the list occurs, and over which of the
shapes, stands in the code only: the work is assumed, each op once per element of the largest tensor, and unknown where
one of them is no vector op of ours.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from roofline.core.cost import Cost, unknown
from roofline.core.vocabulary import FLOATING, PRODUCTS, OpClass
from roofline.costs import kernel_names
from roofline.costs.calls import Call, Tensor, describe, tensors
from roofline.costs.counted import Access, Costed
from roofline.costs.dtypes import DTYPES
from roofline.costs.formulas import ARITHMETIC, FUNCTIONS, WORKLESS
from roofline.pytorch.aten.tables import ATTENTION, CLASS_OF, CONTRACTIONS, PRIMITIVE, RANDOM

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


def op_class(name: str) -> OpClass:
    """The class of a generated kernel by its constituents.

    A mean or a variance with a reciprocal root is a norm taken apart, a maximum and a sum with an exponential a
    softmax.
    """
    parts = constituents(name)
    classes = {_CLASSES[part] for part in parts if part not in _FRAME}
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


def costed(call: Call) -> Costed:
    """A generated kernel by its recorded arguments: traffic assumed, work unknown, constituents as parts."""
    many = list(tensors(call.inputs))
    sizes = [DTYPES.get(tensor.dtype) for tensor in many]
    names = [part for part in constituents(call.name) if part not in _FRAME]
    types = [size[0] for size in sizes if size is not None]
    floating = [kind for kind in types if kind in FLOATING]
    cost = unknown("a generated kernel, whose code is not in the trace")
    reads: tuple[Access, ...] = ()
    writes: tuple[Access, ...] = ()
    if many and None not in sizes:
        reads, writes = _traffic(many, [size[1] for size in sizes if size])
        cost = msgspec.structs.replace(
            _work(call.name, names, many),
            bytes_read=sum(size for _, _, size in reads),
            bytes_written=sum(size for _, _, size in writes),
        )
    dtype = next(iter(floating or types), None)
    parts = tuple(_part(name, dtype) for name in names)
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


def _work(name: str, names: list[str], many: list[Tensor]) -> Cost:
    largest = max(many, key=lambda tensor: tensor.numel)
    reduces = name.startswith(("triton_red_", "triton_per_"))
    rows = largest.numel / max(1, largest.shape[-1]) if reduces and largest.shape else float(largest.numel)
    lost = [part for part in names if part not in _WORK]
    if lost or not names:
        matrix = None if any(_CLASSES[part] in PRODUCTS for part in names) else 0.0
        why = f"how much {', '.join(lost)} computes" if names else "what it computes"
        note = f"a generated kernel: each tensor moved once; {why} is not in the trace"
        return msgspec.structs.replace(
            unknown(note), model_flops=matrix, flops=matrix, useful_flops=matrix, quality="assumed"
        )
    cost = Cost(quality="assumed", note="a generated kernel: each tensor moved once, each op once per element")
    for part in names:
        flops, functions = _WORK[part]
        number = rows if part in _PER_ROW else float(largest.numel)
        cost = cost + Cost(vector_flops=flops * number, functions=dict.fromkeys(functions, number))
    return cost


def _traffic(many: list[Tensor], size: list[int]) -> tuple[tuple[Access, ...], tuple[Access, ...]]:
    """Inductor passes in_out pointers first, then inputs, then outputs.

    Which are which is not recorded: the last tensor is taken for the output, or, where there is only one, for read and
    written. The sum does not hang on it, but for in_out tensors.
    """
    moved = [
        (True, number, float(tensor.distinct * itemsize))
        for number, (tensor, itemsize) in enumerate(zip(many, size, strict=True))
    ]
    if len(moved) == 1:
        return tuple(moved), tuple(moved)
    return tuple(moved[:-1]), tuple(moved[-1:])


def _part(name: str, dtype: str | None) -> Costed:
    return Costed(
        cost=unknown("a part of a generated kernel"),
        kind=name,
        op_class=_CLASSES[name],
        shapes="",
        dtype=dtype,
        output=dtype,
    )
