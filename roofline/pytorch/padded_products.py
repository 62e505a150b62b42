"""Counts what is asked for of products whose factors an op filled up with zeros, and whose results are cut again.

A nested tensor holds sequences of unlike lengths. Its products fill each sequence up to the longest (`constant_pad_nd`
of each, `stack`), multiply the dense factors, and take the results of the true lengths out again (`masked_select`).
Nobody asked for the rest, nor where a program fills rows up to a round number by itself and cuts the result off again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from roofline.costs.calls import Call, Tensor, tensors
from roofline.costs.margins import Margins, added, common
from roofline.pytorch.aten.tables import COPIES, base
from roofline.pytorch.nodes import Nodes
from roofline.pytorch.uses import Uses
from roofline.pytorch.zero_padding import (
    HOPS,
    adds_bias,
    around_slice,
    cut_by_padding,
    margins_of,
    padding_of,
    starts_storage,
)
from roofline.traces import nesting

#: Which arguments of a product are its factors.
_FACTORS = {"mm": (0, 1), "bmm": (0, 1), "addmm": (1, 2), "baddbmm": (1, 2), "_addmm_activation": (1, 2)}
_JOINS = frozenset(("stack", "cat"))
#: What puts zeros around an array; the second one is the gradient of a slice.
_PADS = frozenset(("constant_pad_nd", "slice_backward"))

#: Elements before and behind what is meant, of a dimension that has this stride and this size. A view keeps both.
_Edges = dict[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Holds a storage of equal pieces one after another, each of `size` elements and with edges of its own."""

    size: int
    edges: tuple[_Edges, ...]

    def at(self, offset: int, shape: Sequence[int], strides: Sequence[int]) -> list[tuple[int, int]] | None:
        """Return the edges of each dimension of a view; None where it does not lie within one piece."""
        last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
        piece = offset // self.size
        if piece != last // self.size or piece >= len(self.edges):
            return None
        return [self.edges[piece].get(key, (0, 0)) for key in zip(strides, shape, strict=True)]


class PaddedProducts:
    """Knows of each product of a step which of its factors were padded; looked up when first asked."""

    def __init__(self, nodes: Nodes, names: Sequence[str], uses: Uses) -> None:
        """names: of the calls."""
        self._nodes, self._names, self._uses = nodes, names, uses
        self._pads = any(base(name) == "constant_pad_nd" for name in names)
        self._known: dict[int, tuple[_Pieces | None, ...]] | None = None

    def flops(self, node: int, call: Call) -> float | None:
        """Return the FLOPs of a product without what pairs with zeros or is cut off; None where nothing is padded."""
        if not self._pads or base(call.name) not in _FACTORS or not call.outputs:
            return None
        if self._known is None:
            self._known = self._followed()
        a, b = (call.inputs[place] for place in _FACTORS[base(call.name)])
        result = call.outputs[0]
        factors = self._known.get(node)
        if factors is None or not all(_laid_out(tensor) for tensor in (a, b, result)):
            return None
        cut = self._cut(node, call, result)
        pieces = (*factors, cut)
        total = 0.0
        for batch in range(prod(a.shape[:-2])):
            rows, inner, columns = _asked(pieces, (a, b, result), batch)
            total += 2.0 * rows * inner * columns
        return total

    def _cut(self, node: int, call: Call, result: Tensor, hops: int = HOPS) -> _Pieces | None:
        """Return what nobody takes of a result, or behind a bias: its readers select by a mask, or take a slice."""
        pieces_read: list[_Pieces | None] = []
        for reader, call_of_reader, view in self._uses.readers(node, call):
            if base(call_of_reader.name) == "masked_select" and view.numel == result.numel:
                pieces_read.append((self._known or {}).get(reader, (None,))[0])
            else:
                margins = margins_of(view, result)
                is_whole = margins is not None and _is_whole(margins)
                if hops and is_whole and call_of_reader.outputs and adds_bias(call_of_reader, view):
                    pieces_read.append(self._cut(reader, call_of_reader, call_of_reader.outputs[0], hops - 1))
                    continue
                if margins is not None and base(call_of_reader.name) == "constant_pad_nd" and _is_whole(margins):
                    margins = cut_by_padding(call_of_reader)
                edges = zip(zip(result.stride or (), result.shape, strict=True), margins or (), strict=False)
                pieces_read.append(None if margins is None else _Pieces(result.offset + result.numel, (dict(edges),)))
        return pieces_read[0] if pieces_read and all(pieces == pieces_read[0] for pieces in pieces_read) else None

    def _followed(self) -> dict[int, tuple[_Pieces | None, ...]]:
        """Follow padded storages through the step: what the factors of products, and masks, are made of."""
        followed = [base(name) in _JOINS | COPIES | _PADS for name in self._names]
        inside = np.append(nesting.nearest(self._nodes.parent, np.asarray(followed, bool)), -1)[self._nodes.parent] >= 0
        storages: dict[int, _Pieces] = {}
        factors: dict[int, tuple[_Pieces | None, ...]] = {}
        for node in np.flatnonzero(~inside).tolist():
            call = self._nodes.call(node)
            name = base(call.name)
            places = (1,) if name == "masked_select" else _FACTORS.get(name, ())
            arguments = [call.inputs[place] for place in places if place < len(call.inputs)]
            pieces = tuple(storages.get(array.storage) if isinstance(array, Tensor) else None for array in arguments)
            if any(pieces):
                factors[node] = pieces
            result_pieces = _made(call, name, storages)
            for storage in self._uses.written(node, call):
                storages.pop(storage, None)
            if result_pieces is not None and call.outputs:
                storages[call.outputs[0].storage] = result_pieces
        return factors


def _made(call: Call, name: str, storages: dict[int, _Pieces]) -> _Pieces | None:
    """Return the pieces of what a call makes, where it pads, puts padded tensors one behind another, or copies one."""
    result = call.outputs[0] if call.outputs else None
    if not starts_storage(result):
        return None
    if name in _PADS:
        margins = padding_of(call) if name == "constant_pad_nd" else around_slice(call)
        if margins is None:
            return None
        image = call.inputs[0]
        image_pieces = storages.get(image.storage)
        inner = None
        if image_pieces is not None and image.stride is not None:
            inner = image_pieces.at(image.offset, image.shape, image.stride)
        margins = added(margins, tuple(inner)) if inner else margins
        keys = zip(result.stride or (), result.shape, strict=True)
        return _Pieces(result.numel, (dict(zip(keys, margins, strict=True)),))
    if name in COPIES:
        (argument, *_) = call.inputs
        if isinstance(argument, Tensor) and (argument.shape, argument.stride) == (result.shape, result.stride):
            return storages.get(argument.storage)
        return None
    if name in _JOINS and not (call.inputs[1] if len(call.inputs) > 1 else 0):
        parts = list(tensors(call.inputs[:1]))
        pieces = [storages.get(part.storage) for part in parts]
        padded = [
            (part, piece) for part, piece in zip(parts, pieces, strict=True) if piece and piece.size == part.numel
        ]
        if parts and len(padded) == len(parts) and len({part.numel for part in parts}) == 1:
            return _Pieces(parts[0].numel, tuple(edges for _, piece in padded for edges in piece.edges))
    return None


def _is_whole(margins: Margins) -> bool:
    return all(edges == (0, 0) for edges in margins)


def _asked(pieces: Sequence[_Pieces | None], arrays: tuple[Tensor, Tensor, Tensor], batch: int) -> tuple[int, int, int]:
    """Return rows, summed elements and columns that are asked for of one matrix product.

    A row (or column) is not where it was filled up in the factor and is cut off of the result; what is summed is not
    where both factors were filled up.
    """
    edges = (_edges(padded, array, batch) for padded, array in zip(pieces, arrays, strict=True))
    a_edges, b_edges, result_edges = edges
    a, b, _ = arrays
    return (
        a.shape[-2] - common(a_edges[0], result_edges[0]),
        a.shape[-1] - common(a_edges[1], b_edges[0]),
        b.shape[-1] - common(b_edges[1], result_edges[1]),
    )


def _edges(pieces: _Pieces | None, array: Tensor, batch: int) -> list[tuple[int, int]]:
    strides = array.stride or ()
    offset = array.offset + (batch * strides[0] if len(strides) > 2 else 0)
    none = [(0, 0), (0, 0)]
    return none if pieces is None else pieces.at(offset, array.shape[-2:], strides[-2:]) or none


def _laid_out(value: object) -> bool:
    return isinstance(value, Tensor) and value.storage >= 0 and value.stride is not None
