"""JAX's steps counted without data: arrays that have shapes alone, and the programs that a step of them starts."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roofline.xla.shapes.arrays import Shapes

#: What makes arrays without data now; None where they have some. Here, as whoever asks needs none of JAX's insides.
active: ContextVar[Shapes | None] = ContextVar("active", default=None)
