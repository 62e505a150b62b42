"""The cost engine for aten ops: a recorded call in, its work and traffic out. Live and imported calls alike.

Costs are remembered by canonical call: a training step of BERT has thousands of ops and some hundred distinct ones.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import msgspec
import torch
from torch.utils._python_dispatch import _disable_current_modes

from roofline.core.cost import Cost, unknown
from roofline.core.vocabulary import CALLBACK, FLOATING, PRODUCTS, OpClass
from roofline.costs import custom, formulas
from roofline.costs.calls import UNKNOWN, Call, Tensor, describe, memory_format, tensors
from roofline.costs.counted import Access, Costed
from roofline.costs.dtypes import COLLECTIVE, DTYPES, computed, of_most, said
from roofline.errors import reason
from roofline.pytorch.aten import bytes, contractions, flops, overlaps, quantized, schema
from roofline.pytorch.aten.python_ops import is_python_function
from roofline.pytorch.aten.references import without_dynamo
from roofline.pytorch.aten.tables import (
    ATTENTION,
    ATTENTION_BACKWARD,
    CLASS_OF,
    CONTRACTIONS,
    INT8_LINEAR,
    ITERATIVE,
    PRIMITIVE,
    SAMPLED_PRODUCT,
    SPARSE_PRODUCTS,
    base,
)
from roofline.units import cut


class Engine:
    """Costs calls and remembers them."""

    def __init__(self) -> None:
        """An engine that has seen no call."""
        self._known: dict[Call, Costed] = {}

    def cost(self, call: Call) -> Costed:
        """The work of a call; an op that cannot be costed has an unknown cost that says why. Never raises for data."""
        key = call.canonical()
        try:
            costed = self._known.get(key)
        except TypeError:  # arguments of a kind that no op takes, and that cannot be remembered
            return _unknown(key, "arguments that are no tensors, numbers, texts or lists of these")
        if costed is None:
            # Where tensors have no data, the mode that makes them so is no part of the op.
            with without_dynamo(flops.Counter.__torch_dispatch__), _disable_current_modes():
                costed = self._known[key] = _cost(key)
        return costed


def _cost(call: Call) -> Costed:
    user = custom.registered(call.name)
    if user is not None:
        return custom.cost(replace(call, inputs=said(call.inputs)), *user)
    if schema.moves_nothing(call.name):
        return _costed(call, Cost(), moved_view=True)
    if call.name == "aten::_local_scalar_dense":
        return _scalar(call)
    if any(tensor.stored is not None for tensor in tensors(call.inputs)):
        if base(call.name) in SPARSE_PRODUCTS:
            return _sparse_product(call)
        if base(call.name) == SAMPLED_PRODUCT:
            return _sampled_product(call)
        if base(call.name) in ("clone", "copy"):
            return _sparse_copy(call)
        if classify(call.name) == "pointwise":
            return _sparse_pointwise(call)
    if base(call.name) in _SPARSE_SOFTMAX:
        return _sparse_softmax(call)
    reasons: list[str] = []
    try:
        candidates = schema.overloads(call)
    except schema.Unresolved as unresolved:
        return _unknown(call, str(unresolved) if call.inputs else "its arguments were not recorded")
    for overload in candidates[:4]:
        try:
            return _by_schema(call, overload)
        except schema.Unresolved as unresolved:
            reasons.append(str(unresolved))
        except (
            RuntimeError,
            TypeError,
            ValueError,
            LookupError,
            AttributeError,
            ArithmeticError,
            AssertionError,
        ) as error:
            # torch's meta kernels raise all of these for arguments they do not support: the op stays unknown, named.
            reasons.append(cut(reason(error), 120))
    return _unknown(call, reasons[0] if reasons else "not recorded")


def _sparse_product(call: Call) -> Costed:
    """A sparse matrix times a dense one: each number that it holds meets the columns (or rows) of the other.

    Its numbers and both indices of each are read, and of the dense one no more than there is.
    """
    *added, first, second = enumerate(tensors(call.inputs))
    sparse, dense = (first, second) if first[1].stored is not None else (second, first)
    (at, matrix), (dense_place, dense_matrix) = sparse, dense
    if dense_matrix.stored is not None:
        return _unknown(call, "how often the numbers of two sparse factors meet depends on where they are")
    if matrix.stored is None or matrix.stored == UNKNOWN:
        return _unknown(call, "how many numbers a sparse factor holds was not recorded")
    before = sparse is first
    lines = dense_matrix.numel // max(1, prod(matrix.shape[:-2]) * matrix.shape[-1 if before else -2])
    results = float(lines * prod(matrix.shape) // max(1, matrix.shape[-1 if before else -2]))
    adds = bool(added) and _adds_former(call)
    work = formulas.matmul(matrix.stored, lines, 1) + Cost(vector_flops=results if adds else 0.0)
    size = DTYPES.get(dense_matrix.dtype, ("", 4))[1]
    reads: tuple[Access, ...] = (
        (True, at, _stored_bytes(matrix)),
        (True, dense_place, float(min(matrix.stored * lines, dense_matrix.numel) * size)),
    )
    reads = ((True, added[0][0], results * size), *reads) if adds else reads
    return _moving(call, work, reads, results * size)


def _adds_former(call: Call) -> bool:
    """Tell whether `beta * self + alpha * product` adds to former values: with beta 0 PyTorch does not read them."""
    return call.inputs[_BETA : _BETA + 1] != (0,)


def _sampled_product(call: Call) -> Costed:
    """Count a product of dense matrices at the places of a sparse one, to which it is added."""
    sparse, *dense = list(tensors(call.inputs))[:3]
    if sparse.stored is None or sparse.stored == UNKNOWN:
        return _unknown(call, "how many numbers a sparse factor holds was not recorded")
    adds, size = _adds_former(call), DTYPES.get(sparse.dtype, ("", 4))[1]
    work = formulas.matmul(sparse.stored, 1, dense[0].shape[-1])
    work += Cost(vector_flops=float(sparse.stored) if adds else 0.0)
    former = _stored_bytes(sparse) - (0.0 if adds else float(sparse.stored * size))
    reads = ((True, 0, former), *((True, 1 + n, float(t.numel * size)) for n, t in enumerate(dense)))
    return _moving(call, work, reads, float(sparse.stored * size))


def _stored_bytes(tensor: Tensor) -> float:
    """Bytes of what a sparse matrix holds, with two indices of each number, or block of numbers."""
    stored = tensor.stored or 0
    places = stored if tensor.places is None else tensor.places
    return float(stored * DTYPES.get(tensor.dtype, ("", 4))[1] + places * 2 * _INDEX)


def _moving(call: Call, work: Cost, reads: tuple[Access, ...], written: float) -> Costed:
    """A product of these accesses, with one result."""
    moved = {"bytes_read": sum(size for _, _, size in reads), "bytes_written": written}
    costed = _costed(call, msgspec.structs.replace(work, **moved))
    return replace(costed, kind="matmul", reads=reads, writes=((False, 0, written),))


#: Which argument of a sparse product that adds is beta; alpha is the next one.
_BETA = 3
#: Bytes of an index of a sparse tensor.
_INDEX = 8
#: FLOP and functions per number that is held, as of a dense softmax of long rows: the largest, the difference, the sum,
#: and over it, or less its logarithm. Gradients: y (g - the sum of y g), and g - e^y times the sum of g.
_SPARSE_SOFTMAX: dict[str, tuple[float, dict[str, float]]] = {
    "_sparse_softmax": (4.0, {"exp": 1.0}),
    "_sparse_log_softmax": (4.0, {"exp": 1.0}),
    "_sparse_softmax_backward_data": (4.0, {}),
    "_sparse_log_softmax_backward_data": (3.0, {"exp": 1.0}),
}


def _sparse_softmax(call: Call) -> Costed:
    arguments = list(tensors(call.inputs))[:2]  # gradients get the argument, too, of which only the places are used
    if not arguments or any(tensor.stored in (None, UNKNOWN) for tensor in arguments):
        return _unknown(call, "how many numbers a sparse tensor holds was not recorded")
    flops, functions = _SPARSE_SOFTMAX[base(call.name)]
    numbers = [float(tensor.stored or 0) for tensor in arguments]
    cost = Cost(
        vector_flops=flops * numbers[0], functions={name: times * numbers[0] for name, times in functions.items()}
    )
    if base(call.name) == "_sparse_log_softmax":
        rows = arguments[0].numel // max(1, arguments[0].shape[call.inputs[1]])
        cost += Cost(functions={"log": min(numbers[0], rows)})
    sizes = [
        number * (DTYPES.get(tensor.dtype, ("", 4))[1] + _INDEX * len(tensor.shape))
        for number, tensor in zip(numbers, arguments, strict=True)
    ]
    reads: tuple[Access, ...] = tuple((True, place, size) for place, size in enumerate(sizes))
    moved = {"bytes_read": sum(sizes), "bytes_written": sizes[0]}
    assumed = {"quality": "assumed", "note": "each row is taken to hold numbers"}
    costed = _costed(call, msgspec.structs.replace(cost, **moved, **assumed))
    return replace(costed, reads=reads, writes=((False, 0, sizes[0]),))


def _sparse_copy(call: Call) -> Costed:
    """Count what moves the numbers of a sparse tensor with their indices."""
    *_, sparse = tensors(call.inputs)
    if sparse.stored is None or sparse.stored == UNKNOWN:
        return _unknown(call, "how many numbers a sparse tensor holds was not recorded")
    size, place = _stored_bytes(sparse), len(list(tensors(call.inputs))) - 1
    note = "each number, or block of numbers, has two indices"
    costed = _costed(call, Cost(bytes_read=size, bytes_written=size, quality="assumed", note=note))
    return replace(costed, reads=((True, place, size),), writes=((place > 0, 0, size),))


def _sparse_pointwise(call: Call) -> Costed:
    """Count an element-wise op on one sparse tensor as one on the numbers that it holds.

    A dense one that it is multiplied by, or added to, gives as many; for a sum it is copied, unless that is in place.
    """
    sparse, *others = sorted(tensors(call.inputs), key=lambda tensor: tensor.stored is None)
    others = [tensor for tensor in others if tensor.shape]
    if any(tensor.stored is not None for tensor in others):
        return _unknown(call, "how often the numbers of two sparse tensors meet depends on where they are")
    if sparse.stored is None or sparse.stored == UNKNOWN:
        return _unknown(call, "how many numbers a sparse tensor holds was not recorded")
    if others and base(call.name) not in ("mul", "add", "sub"):
        return _unknown(call, "of an op of a sparse tensor and a dense one")
    numbers = {
        id(tensor): replace(tensor, shape=(sparse.stored,), stride=(1,), stored=None, places=None)
        for tensor in (sparse, *others)
    }
    inputs = tuple(numbers.get(id(argument), argument) for argument in call.inputs)
    costed = _cost(Call(call.name, call.overload, inputs, None))
    cost = costed.cost
    if cost.quality == "exact":
        cost = msgspec.structs.replace(cost, quality="assumed", note="the indices of its numbers are taken to stay")
    if others and base(call.name) != "mul" and not costed.inplace:  # the dense one is copied
        dense, place = others[0], list(tensors(call.inputs)).index(others[0])
        size = float(dense.numel * DTYPES.get(dense.dtype, ("", 4))[1])
        reads = tuple((is_input, at, size if at == place else read) for is_input, at, read in costed.reads)
        cost = msgspec.structs.replace(cost, bytes_read=sum(read for *_, read in reads), bytes_written=size)
        costed = replace(costed, reads=reads, writes=((False, 0, size),))
    return replace(costed, cost=cost, shapes=describe(call))


def _by_schema(call: Call, overload: Any) -> Costed:
    if schema.is_view(overload) and not schema.is_composite(call.name, overload._overloadname):
        return _costed(call, Cost(), moved_view=True)
    plain = base(call.name)
    args, kwargs, assumed = schema.build(overload, call)
    data_dependent = plain in ("index_put", "_index_put_impl") and flops.is_masked(args[1])
    try:
        if plain in _UNLIKE_META or quantized.is_quantised(overload):
            raise NotImplementedError("its results were not recorded")
        with torch.no_grad():
            cost, out = flops.count(overload, args, kwargs)
    except RuntimeError as error:
        out = _recorded_results(call)
        if out is None:
            raise
        if plain in _DATA_DEPENDENT:
            data_dependent = True
            cost = flops.without_meta(plain, args, kwargs)
        else:
            lacks_kernel = isinstance(error, NotImplementedError) or "not implemented for" in str(error)
            by_rule = flops.of_results(overload, args, kwargs, out) if lacks_kernel else None
            if by_rule is None and plain not in ITERATIVE:
                raise
            cost = flops.without_rule([plain]) if by_rule is None else by_rule
    moved = bytes.traffic(overload, args, kwargs, out)
    if moved.view and cost == Cost():
        return _costed(call, Cost(), moved_view=True)
    inputs = {id(tensor): number for number, tensor in enumerate(_flat(args, kwargs, overload))}
    results = {id(tensor): number for number, tensor in enumerate(flops.leaves(out))}
    reads = overlaps.read_once(
        [(True, inputs[id(a.tensor)], a.bytes) for a in moved.reads if id(a.tensor) in inputs],
        list(tensors(call.inputs)),
    )
    writes = tuple(
        (True, inputs[id(a.tensor)], a.bytes) if id(a.tensor) in inputs else (False, results[id(a.tensor)], a.bytes)
        for a in moved.writes
    )
    if weight := quantized.weight_bytes(overload, args, kwargs, next(iter(flops.leaves(out)), None)):
        reads += ((True, len(inputs), weight),)  # one buffer more, nobody knows which
    if cost.quality == "exact" and (cost.flops or cost.vector_flops) and _of_complex(args, kwargs, out):
        cost = msgspec.structs.replace(cost, quality="assumed", note=COMPLEX)
    if cost.quality != "unknown" or plain in ITERATIVE:
        cost = msgspec.structs.replace(
            cost,
            # The sum of nothing is 0.0 bytes too, as it is read back from the cache.
            bytes_read=sum((size for _, _, size in reads), 0.0),
            bytes_written=sum((size for _, _, size in writes), 0.0),
        )
    if cost.quality != "unknown":
        cost = msgspec.structs.replace(
            cost,
            quality="assumed" if assumed or data_dependent else cost.quality,
            note=assumed or ("the touched elements depend on data" if data_dependent else cost.note),
        )
    written = of_most((schema.NAMES.get(access.tensor.dtype), access.bytes) for access in moved.writes)
    costed = _costed(call, cost, written)
    if quantized.is_quantised(overload) and kwargs.get("dtype") == torch.float16:  # its weights, not its numbers
        types = [_typed(tensor)[0] for tensor in tensors(call.inputs)]
        costed = replace(costed, dtype=computed(types, costed.output, True))
    return replace(costed, reads=reads, writes=writes, inplace=_inplace(reads, writes))


#: A complex product is four real ones and more, a sum two; they count as one, as in every framework's own figure.
COMPLEX = "an operation on complex numbers counts as one on real numbers"


def _of_complex(args: Any, kwargs: Any, out: Any) -> bool:
    return any(tensor.is_complex() for values in (args, kwargs, out) for tensor in flops.leaves(values))


#: Ops whose result's size depends on data, or that torch runs on real tensors only: recorded results say it.
_DATA_DEPENDENT = frozenset(
    (
        "nonzero masked_select _unique2 unique_consecutive unique_dim index repeat_interleave equal "
        "is_nonzero allclose index_put _index_put_impl bincount histogram _pack_padded_sequence"
    ).split()
)


#: Ops whose results on meta tensors are of another type than on real ones, or that need data to run.
_UNLIKE_META = INT8_LINEAR.union(
    "quantize_per_tensor quantize_per_channel quantize_per_tensor_dynamic fbgemm_pack_quantized_matrix".split()
)


def _flat(args: tuple[Any, ...], kwargs: dict[str, Any], overload: Any) -> list[torch.Tensor]:
    """Tensor arguments in schema order, as `calls.tensors` numbers the recorded ones."""
    values = []
    for position, argument in enumerate(overload._schema.arguments):
        values.append(args[position] if position < len(args) else kwargs.get(argument.name))
    return flops.leaves(values)


def _recorded_results(call: Call) -> Any:
    if call.outputs is None:
        return None
    results = []
    for tensor in tensors(call.outputs):
        dtype = schema.DTYPE.get(tensor.dtype)
        if dtype is None or tensor.stride is None:
            return None
        results.append(torch.empty_strided(tensor.shape, tensor.stride, dtype=dtype, device="meta"))
    return tuple(results)


def _inplace(reads: tuple[Access, ...], writes: tuple[Access, ...]) -> bool:
    read = {number for is_input, number, _ in reads if is_input}
    return any(is_input and number in read for is_input, number, _ in writes)


def _costed(call: Call, cost: Cost, written: str | None = None, moved_view: bool = False) -> Costed:
    """written: the type of most bytes that it writes, where that is known; else the recorded results tell."""
    types = [_typed(tensor)[0] for tensor in tensors(call.inputs)]
    op_class = classify(call.name)
    output = written or of_most(map(_typed, tensors(call.outputs or ())))
    return Costed(
        cost=cost,
        kind=_kind(call, cost),
        op_class=op_class,
        shapes=describe(call),
        dtype=_multiplies(call.name) or computed(types, output, op_class in PRODUCTS or bool(cost.flops)),
        output=output or next((dtype for dtype in types if dtype in FLOATING), None),
        view=moved_view,
        layout=memory_format(call),
    )


def _multiplies(name: str) -> str | None:
    return "int8" if base(name) in INT8_LINEAR else quantized.multiplies(name)


def _typed(tensor: Tensor) -> tuple[str, float]:
    """Its type as we call it, and its bytes."""
    name, size = DTYPES.get(tensor.dtype, (tensor.dtype, 1))
    return name, float(size * tensor.distinct)


def _kind(call: Call, cost: Cost) -> str:
    """The kind of an op. A Python function is one on a CPU, where the step waits for it; a GPU runs its kernels."""
    if cost.quality == "unknown" and not call.name.startswith("aten::") and is_python_function(call.name):
        first = next(tensors(call.inputs), None)
        if first is None or first.device == "cpu":
            return CALLBACK
    return quantized.kind(call.name) or contractions.kind(call.name)


def _scalar(call: Call) -> Costed:
    """Reading one number on the host: meta tensors have none to read, so torch cannot be asked.

    From a GPU it is a copy that waits for the device; on a CPU nothing moves, and it is part of the host's time.
    """
    argument = next(tensors(call.inputs), None)
    if argument is not None and argument.device == "cpu":
        return _costed(call, Cost(), moved_view=True)
    size = float(DTYPES.get(argument.dtype, ("", 8))[1]) if argument else 0.0
    return replace(_costed(call, Cost(bytes_read=size)), reads=((True, 0, size),) if argument else ())


def _unknown(call: Call, why: str) -> Costed:
    return _costed(call, unknown(why))


def classify(name: str) -> OpClass:
    """The class of an op by its name; fused and list forms of optimizers are `optimizer`."""
    plain = base(name)
    if name.startswith(("c10d::", "_c10d_functional::")) or COLLECTIVE.search(name):
        return "communication"
    if plain in CONTRACTIONS:
        return "contraction"
    if (quantised := quantized.op_class(name)) is not None:
        return quantised
    if plain in ATTENTION or plain in ATTENTION_BACKWARD:
        return "attention"
    element = plain.removeprefix("_foreach_")
    if plain in CLASS_OF or element in CLASS_OF:
        return CLASS_OF[plain if plain in CLASS_OF else element]
    if plain.startswith(("_fused_adam", "_fused_sgd", "_fused_adagrad", "_amp_")):
        return "optimizer"
    overload_packet = schema.packet(f"aten::{element}") if name.startswith("aten::") else None
    if overload_packet is not None and any(
        _is_pointwise(getattr(overload_packet, overload)) for overload in overload_packet.overloads()
    ):
        return "pointwise"
    return "pointwise" if element in PRIMITIVE else "movement" if element.endswith("_copy") else "other"


def _is_pointwise(overload: Any) -> bool:
    return torch.Tag.pointwise in getattr(overload, "tags", ())
