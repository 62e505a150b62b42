"""The work of an op without a rule: that of the calls inside it.

PyTorch's fast path of a transformer layer, and an op of the user's that is written in PyTorch, are one event each, and
what they do stands in the calls inside. These say the work; the time stays the op's own, with whatever passes between
the calls. They are no proof that nothing else is done, so the sum is assumed. It is the whole only where the calls also
made the op's results: a kernel of a library's own may well call PyTorch for a copy of its input first.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

import msgspec

from roofline.core.cost import PARTLY_KNOWN, Cost, partly_known
from roofline.core.vocabulary import PRODUCTS, OpClass
from roofline.costs.calls import Call, tensors
from roofline.costs.counted import Access, Costed, CountedOp
from roofline.costs.weight import weight
from roofline.pytorch.aten.contractions import kind

#: Accesses, and the storage of each.
_Accesses = tuple[tuple[Access, ...], tuple[int, ...]]

NOTE = "the calls inside it are counted, and nothing that it may do besides"


def opened(
    call: Call, costed: Costed, inside: Sequence[CountedOp], allocated: Set[int] = frozenset()
) -> CountedOp | None:
    """Return an op of unknown work with the work of the calls inside it, or None where these say nothing of it.

    costed: the op without a rule. inside: the calls right inside it that do work, in their order. allocated: storages
    that calls inside it asked for. Where one of the calls is unknown, or the op itself made what one of them reads or
    its results, only the products are known, as far as they are.
    """
    lacking = _unknown(inside) or ("" if stand_for(call, costed, inside, allocated) else "what it does itself")
    total = sum((op.costed.cost for op in inside), Cost())
    reads: _Accesses = ((), ())
    writes: _Accesses = ((), ())
    if not lacking:
        cost = msgspec.structs.replace(total, quality="assumed", note="; ".join(filter(None, (NOTE, total.note))))
        reads, writes = _traffic(inside)
    elif any(op.costed.cost.flops for op in inside):
        cost = partly_known([op.costed.cost for op in inside], lacking)
    else:
        return None
    parts = tuple(part for op in inside for part in op.costed.parts or (op.costed,))
    main = max(parts, key=lambda part: (bool(part.cost.flops), weight(part.cost)))
    summed = replace(
        costed,
        cost=cost,
        kind=costed.kind if lacking else kind(call.name),
        op_class=_dominant(parts) if costed.op_class == "other" else costed.op_class,
        dtype=main.dtype,
        output=main.output,
        reads=reads[0],
        writes=writes[0],
        parts=parts,
    )
    return CountedOp(-1, summed, reads[1], writes[1])


def _unknown(inside: Sequence[CountedOp]) -> str:
    """Name the calls of unknown work, each with its reason; of one that is known in part, what is not."""
    notes = (op.costed.cost.note for op in inside if op.costed.cost.quality == "unknown")
    return ", ".join(dict.fromkeys(note.removeprefix(PARTLY_KNOWN) for note in notes))


def stand_for(call: Call, costed: Costed, inside: Sequence[CountedOp], allocated: Set[int]) -> bool:
    """Tell whether the calls inside an op made its results, or changed its arguments where it has none.

    What is only filled with a number, or copied from where no call wrote, was made by something else; so was what a
    call reads in memory that was asked for and that none has written. An import does not know results: there the calls
    must compute, or do what the op itself is known to do.
    """
    if costed.op_class in PRODUCTS and not any(op.costed.op_class in PRODUCTS for op in inside):
        return False
    if call.outputs is None:
        return any(_computes(op.costed.cost) or op.costed.op_class == costed.op_class for op in inside)
    arguments = {tensor.storage for tensor in tensors(call.inputs)}
    produced: set[int] = set()
    written: set[int] = set()
    for op in inside:
        if not written.issuperset(allocated & set(op.reads)):
            return False
        written.update(op.writes)
        if op.costed.op_class != "movement" or (op.reads and (arguments | produced).issuperset(op.reads)):
            produced.update(op.writes)
    results = {tensor.storage for tensor in tensors(call.outputs)} - arguments
    return results <= produced if results else not arguments.isdisjoint(produced)


def _computes(cost: Cost) -> bool:
    return bool(cost.flops or cost.vector_flops or cost.functions)


def _dominant(parts: Sequence[Costed]) -> OpClass:
    """The class of a product where there is one, else of most of the work."""
    sums: dict[OpClass, float] = {}
    for part in parts:
        sums[part.op_class] = sums.get(part.op_class, 0.0) + weight(part.cost)
    products = {name: size for name, size in sums.items() if name in PRODUCTS}
    return max(products or sums, key=sums.__getitem__)


def _traffic(inside: Sequence[CountedOp]) -> tuple[_Accesses, _Accesses]:
    """List the accesses of the calls with their storages: what they read from before the op, and what they write.

    What one call writes and another reads comes from a cache, or has been charged to the writing that put it out.
    """
    reads: dict[int, float] = {}
    writes: dict[int, float] = {}
    for op in inside:
        for bytes_of, accesses, storages in ((reads, op.costed.reads, op.reads), (writes, op.costed.writes, op.writes)):
            for (_, _, size), storage in zip(accesses, storages, strict=True):
                if storage >= 0 and bytes_of is reads and storage in writes:
                    continue
                key = storage if storage >= 0 else -1 - len(bytes_of)
                bytes_of[key] = max(bytes_of.get(key, 0.0), size)
    return _numbered(reads, True), _numbered(writes, False)


def _numbered(sizes: dict[int, float], read: bool) -> _Accesses:
    accesses = tuple((read, number, size) for number, size in enumerate(sizes.values()))
    return accesses, tuple(storage if storage >= 0 else -1 for storage in sizes)
