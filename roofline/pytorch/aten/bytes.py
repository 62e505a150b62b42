"""Compulsory traffic of an aten call, tensor by tensor (docs/counting.md).

Each distinct input element is read once (stride 0 and repeated arguments count once), each output element is written
once, destinations that are only written are not read, views cost nothing, gathers and scatters touch their rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from roofline.costs import strides
from roofline.pytorch.aten import bags
from roofline.pytorch.aten.contractions import by_name
from roofline.pytorch.aten.flops import accumulates, leaves, touched
from roofline.pytorch.aten.tables import (
    ADDED,
    ALLOCATIONS,
    BAGS,
    GATHERS,
    PARTS,
    SCATTERS,
    UNREAD,
    WORKLESS_CALLS,
    WRITE_ONLY,
    base,
)


@dataclass(frozen=True, slots=True)
class Access:
    """Bytes moved between main memory and one tensor of a call. `tensor` is the meta tensor that stands for it."""

    tensor: torch.Tensor
    bytes: float


@dataclass(frozen=True, slots=True)
class Traffic:
    """Holds what a call reads and writes. view: the results are the arguments, nothing moves."""

    reads: tuple[Access, ...] = ()
    writes: tuple[Access, ...] = ()
    view: bool = False


def span(tensor: torch.Tensor) -> float:
    """Bytes of the distinct elements of a tensor."""
    if tensor.layout != torch.strided:
        return float(tensor._nnz() * tensor.element_size()) if tensor.is_sparse else 0.0
    return float(strides.distinct(tensor.shape, tensor.stride()) * tensor.element_size())


def traffic(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Traffic:
    """The traffic of one call, from its schema's aliasing and its meta tensors."""
    schema, name, results = func._schema, base(func._schema.name), leaves(out)
    plain = schema.name.partition("::")[2]
    inputs = leaves((args, kwargs))
    storages = {tensor.untyped_storage()._cdata for tensor in inputs if tensor.layout == torch.strided}
    if not schema.is_mutable and results and all(_storage(tensor) in storages for tensor in results):
        return Traffic(view=True)
    if name in ALLOCATIONS or name in WORKLESS_CALLS:
        return Traffic(view=True)
    if name in GATHERS and results:
        return _gather(name, args, results[0])
    if name in PARTS and results:
        return Traffic((Access(args[0], span(results[0])),), _fresh(results, storages))
    if name == "trace":
        return Traffic((Access(args[0], _part(args[0], min(args[0].shape))),), _fresh(results, storages))
    if name == "embedding_renorm":
        rows = Access(args[0], _part(args[0], min(args[1].numel(), args[0].shape[0]) * args[0][0].numel()))
        return Traffic((rows, Access(args[1], span(args[1]))), (rows,))
    if name in SCATTERS and schema.is_mutable and plain.endswith("_"):
        return _scatter(name, by_name(func, args, kwargs))
    if name.startswith("nll_loss") and name.endswith("forward"):
        target = args[1]
        picked = float(target.numel() * args[0].element_size())
        return Traffic((Access(args[0], picked), Access(target, span(target))), _fresh(results, storages))
    if name in BAGS:
        reads, writes = (
            tuple(Access(tensor, _part(tensor, many)) for tensor, many in side)
            for side in bags.moved(func, args, kwargs, results)
        )
        return Traffic(reads, writes)
    if name == "_pack_padded_sequence":  # what only fills up the shorter ones is not read
        return Traffic((Access(args[0], span(results[0])), Access(args[1], span(args[1]))), _fresh(results, storages))
    return _by_schema(func, plain, name, args, kwargs, results, storages)


def _part(tensor: torch.Tensor, elements: int | None) -> float:
    """Bytes of so many elements of a tensor; None: of all that are distinct."""
    return span(tensor) if elements is None else float(elements * tensor.element_size())


def _storage(tensor: torch.Tensor) -> int | None:
    return tensor.untyped_storage()._cdata if tensor.layout == torch.strided else None


def _fresh(results: list[torch.Tensor], storages: set[int]) -> tuple[Access, ...]:
    return tuple(Access(tensor, span(tensor)) for tensor in results if _storage(tensor) not in storages)


def _gather(name: str, args: tuple[Any, ...], result: torch.Tensor) -> Traffic:
    table, *options = args
    indices = [tensor for tensor in leaves(options) if tensor is not table]
    # No more of a table can be touched than there is; which rows repeat is data.
    touched = result.numel() if name == "gather" else min(result.numel(), table.numel())
    reads = [Access(table, float(touched * table.element_size())), *(Access(i, span(i)) for i in indices)]
    return Traffic(tuple(reads), (Access(result, span(result)),))


def _scatter(name: str, arguments: dict[str, Any]) -> Traffic:
    """In place: the touched elements are written, and read where the values are combined with them."""
    target = arguments.pop("self")
    moved = float(touched(name, {**arguments, "self": target}) * target.element_size())
    reads = []
    for tensor in _distinct(leaves(arguments)):
        # Of a source larger than its index only the part under the index is used.
        is_part = tensor is arguments.get("src")
        used = arguments["index"].numel() * tensor.element_size() if is_part else span(tensor)
        reads.append(Access(tensor, float(min(used, span(tensor)))))
    if accumulates(name, {**arguments, "self": target}):
        reads.append(Access(target, moved))
    return Traffic(tuple(reads), (Access(target, moved),))


def _by_schema(
    func: Any,
    plain: str,
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    results: list[torch.Tensor],
    storages: set[int],
) -> Traffic:
    """Reads and writes by the schema's alias annotations."""
    reads: dict[int, torch.Tensor] = {}
    writes: dict[int, torch.Tensor] = {}
    unread = UNREAD.get(name, frozenset()) | _unused_gradients(name, args) | _unused_addend(name, kwargs)
    if name == "_segment_reduce_backward" and args[3] in ("sum", "mean"):
        unread |= frozenset(("output", "data"))
    for position, argument in enumerate(func._schema.arguments):
        value = args[position] if position < len(args) else kwargs.get(argument.name)
        written = argument.alias_info is not None and argument.alias_info.is_write
        if plain.startswith("_fused_") and argument.name == "grads":
            written = kwargs.get("grad_scale") is not None  # unscaled in place only then
        if name == "rrelu_with_noise" and argument.name == "noise":
            written = bool(by_name(func, args, kwargs).get("training"))  # drawn only then
        for tensor in leaves(value):
            if written:
                writes[id(tensor)] = tensor
            if argument.name not in unread and not (written and (argument.is_out or plain in WRITE_ONLY)):
                reads[id(tensor)] = tensor
    written_results = [t for t in results if _storage(t) not in storages]
    return Traffic(
        tuple(Access(tensor, span(tensor)) for tensor in reads.values()),
        tuple(Access(tensor, span(tensor)) for tensor in [*writes.values(), *_distinct(written_results)]),
    )


def _unused_gradients(name: str, args: tuple[Any, ...]) -> frozenset[str]:
    """The input gradient of a convolution needs the weight, the weight gradient the input: only what is asked for."""
    if name != "convolution_backward" or len(args) < 11:
        return frozenset()
    wanted = zip(("weight", "input"), args[10][:2], strict=True)
    return frozenset(argument for argument, is_wanted in wanted if not is_wanted)


def _unused_addend(name: str, kwargs: dict[str, Any]) -> frozenset[str]:
    """`beta * self + product` does not read `self` where beta is 0."""
    return frozenset(("self",)) if name in ADDED and kwargs.get("beta") == 0 else frozenset()


def _distinct(many: list[torch.Tensor]) -> list[torch.Tensor]:
    return list({id(tensor): tensor for tensor in many}.values())
