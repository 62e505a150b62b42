"""Types of the arrays of segments and of their times: one number of each kind for a row of a run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
#: Segments by their number.
Rows = NDArray[np.int64]
Bools = NDArray[np.bool_]
