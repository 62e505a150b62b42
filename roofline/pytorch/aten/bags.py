"""Bags of embeddings: rows of a table looked up and reduced in one op, and its gradients.

What an op hands from its forward to its backward pass beside the result (which bag a row is in, how large each is)
follows from the offsets: it is no compulsory traffic where these are given.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from roofline.core.cost import Cost
from roofline.costs import formulas
from roofline.pytorch.aten.contractions import by_name
from roofline.pytorch.aten.tables import base

#: Of the argument `mode`, by number (torch/nn/functional.py).
_MODES = ("sum", "mean", "max")


class Moved(NamedTuple):
    """List what is read and written: tensors, and how many elements of each; None for all that are distinct."""

    reads: tuple[tuple[torch.Tensor, int | None], ...]
    writes: tuple[tuple[torch.Tensor, int | None], ...]


def work(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    """The vector work of one call of `BAGS`."""
    named, name = by_name(func, args, kwargs), base(func._schema.name)
    rows = named["indices"].numel()
    if name in _FORWARD:
        result = out[0]
        weighted = named.get("per_sample_weights") is not None
        return formulas.embedding_bag(rows * result.shape[-1], result.numel(), _mode(named), weighted)
    gradients = named["grad"].numel()
    elements = rows * named["grad"].shape[-1]
    if name == _OF_WEIGHTS:  # for each row the products of its elements and the gradient's, summed
        return Cost(vector_flops=float(elements)) + formulas.reduction(elements, rows)
    weighted, dense = named.get("per_sample_weights") is not None, not named.get("sparse")
    return formulas.embedding_bag_backward(elements, gradients, _mode(named), weighted, dense)


def moved(func: Any, args: Any, kwargs: Any, results: list[torch.Tensor]) -> Moved:
    """The compulsory traffic of one call of `BAGS`."""
    named, name = by_name(func, args, kwargs), base(func._schema.name)
    largest = _mode(named) == "max"
    rows = named["indices"].numel()
    offsets = named.get("offsets", named.get("offset2bag"))
    if name in _FORWARD or name == _OF_WEIGHTS:
        table = named["weight"]
        # No more of a table can be touched than there is; which rows repeat is data.
        reads = [(table, min(rows * table.shape[-1], table.numel())), (named["indices"], None), (offsets, None)]
        if name == _OF_WEIGHTS:
            return Moved(((named["grad"], None), *reads), ((results[0], None),))
        reads += _weights(named)
        # The gradient of a maximum needs to know which row it came from.
        return Moved(tuple(reads), tuple((result, None) for result in (results[0], *(results[3:4] if largest else ()))))
    where = [named["maximum_indices"]] if largest else [named["indices"], offsets]
    # The dense gradient of a table is written once whole, a sparse one has the rows that were looked up.
    written = rows * named["grad"].shape[-1] if named.get("sparse") else None
    reads = [(tensor, None) for tensor in (named["grad"], *where)]
    return Moved((*reads, *_weights(named)), ((results[0], written),))


_FORWARD = frozenset(("_embedding_bag", "_embedding_bag_forward_only"))
_OF_WEIGHTS = "_embedding_bag_per_sample_weights_backward"


def _mode(named: dict[str, Any]) -> str:
    return _MODES[named.get("mode", 0)]  # dispatch leaves out defaults


def _weights(named: dict[str, Any]) -> list[tuple[torch.Tensor, int | None]]:
    weights = named.get("per_sample_weights")
    return [] if weights is None else [(weights, None)]
