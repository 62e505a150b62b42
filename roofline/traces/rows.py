"""Columns of whole numbers, most of them rows of a table of events."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]
