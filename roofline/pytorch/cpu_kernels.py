"""Finds the call of a library that carries out a product on a CPU, as a kernel's name says it on a GPU.

PyTorch dispatches a product by its shape, layout, type and switches: inside of `aten::convolution` it may be
`aten::mkldnn_convolution` or `aten::_slow_conv2d_forward` that runs, which take another time on any machine.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from roofline.costs.counted import Counted

Ints = NDArray[np.int64]
#: Times of calls inside of ops: number of the op, of the call's name, and the time that is its own [ns].
Calls = tuple[Ints, Ints, Ints]


def calls_inside(op: Ints, name: Ints, parent: Ints, length: Ints) -> Calls:
    """The calls of one step that belong to ops. op: that of each call, -1 for none; length: from begin to end [ns]."""
    inner = parent >= 0
    own_length = length - np.bincount(parent[inner], weights=length[inner], minlength=len(length)).astype(np.int64)
    mine = op >= 0
    return op[mine], name[mine], own_length[mine]


def kernels(counted: Counted, names: Sequence[str], steps: Sequence[Calls]) -> list[tuple[tuple[int, int], ...]]:
    """Return of each product the call inside it with most of its time: (number of its name, mean time in a step [ns]).

    Most by the median over the steps: one step in which the machine was busy elsewhere must not name a wrapper.
    Empty for other ops, and where the op itself has most of it.
    """
    kernels: list[tuple[tuple[int, int], ...]] = [()] * len(counted.ops)
    products = np.asarray([bool(op.costed.cost.flops) for op in counted.ops], bool)
    if not steps or not products.any():
        return kernels
    op, name, own_length = (np.concatenate(column) for column in zip(*steps, strict=True))
    step = np.repeat(np.arange(len(steps)), [len(calls[0]) for calls in steps])
    wanted = products[op]
    key, place = np.unique(op[wanted] * len(names) + name[wanted], return_inverse=True)
    cell = place * len(steps) + step[wanted]
    times = np.bincount(cell, weights=own_length[wanted], minlength=len(key) * len(steps)).reshape(len(key), len(steps))
    order = np.lexsort((np.median(times, axis=1), key // len(names)))  # of each op the longest last
    owner = key[order] // len(names)
    for number in order[np.searchsorted(owner, np.unique(owner), side="right") - 1].tolist():
        row, code = divmod(int(key[number]), len(names))
        if names[code] != counted.names_of_ops[row]:
            kernels[row] = ((code, round(float(times[number].mean()))),)
    return kernels
