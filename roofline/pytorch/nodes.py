"""Defines what counting asks of recorded calls, and of what knows their work."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from roofline.costs.calls import Call
from roofline.costs.counted import Costed


class Nodes(Protocol):
    """Holds recorded calls in the order they began, in columns of one length."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the calls, annotations among them."""

    @property
    def is_op(self) -> NDArray[np.bool_]:
        """Whether a call computes and is no wrapper."""

    @property
    def parent(self) -> NDArray[np.int64]:
        """Index of the enclosing call, or -1."""

    @property
    def sequence(self) -> NDArray[np.int64]:
        """Autograd's number, or -1."""

    @property
    def thread(self) -> NDArray[np.int64]:
        """Any number per thread."""

    def __len__(self) -> int: ...

    def call(self, index: int, /) -> Call:
        """Return a call with its arguments."""


class Costing(Protocol):
    """Knows the work of a call: `aten.engine.Engine` itself, or an import's `Costs` through a cache."""

    def cost(self, call: Call, /) -> Costed:
        """Return the work of a call."""
