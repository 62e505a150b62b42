"""Types of arrays: a number for each row of a table, rows by their number, and a yes or no for each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
#: Rows by their number.
Rows = NDArray[np.int64]
Bools = NDArray[np.bool_]
