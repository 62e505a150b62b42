"""Tensors that a step makes of Python's numbers and lists (`torch.tensor`), and the time that Python takes for it.

PyTorch allocates such a tensor, Python fills it number by number, outside of every event, and it is handed out: three
events in a row, of which the last, `aten::lift_fresh`, is there for what comes from outside of PyTorch. An array of
numpy is copied by an op, or not at all, and has no such stretch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: What is recorded around it, in this order (torch/csrc/utils/tensor_new.cpp: internal_new_from_data; tried on 2.13).
_EVENTS = ("aten::empty", "aten::to", "aten::lift_fresh")


@dataclass(frozen=True, slots=True)
class Made:
    """When Python filled tensors, in one step [ns], and the event in which it did so, or -1; columns of one length."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    within: NDArray[np.int64]

    def only(self, chosen: NDArray[np.bool_]) -> Made:
        """Some of them."""
        return Made(self.start[chosen], self.end[chosen], self.within[chosen])


def made(
    names: Sequence[str],
    name: NDArray[np.int64],
    thread: NDArray[np.int64],
    parent: NDArray[np.int64],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
) -> Made:
    """Find those of one step's events. name: of each event, a number in `names`; parent: the event around it, or -1."""
    allocated, converted, lifted = (np.asarray([event == wanted for event in names], bool)[name] for wanted in _EVENTS)
    order = np.lexsort((start, parent, thread))
    first, second, third = order[:-2], order[1:-1], order[2:]
    in_a_row = allocated[first] & converted[second] & lifted[third]
    for column in (thread, parent):
        in_a_row &= (column[first] == column[second]) & (column[second] == column[third])
    first, second = first[in_a_row], second[in_a_row]
    return Made(end[first], np.maximum(start[second], end[first]), parent[first])
