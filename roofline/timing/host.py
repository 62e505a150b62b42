"""Compute idle time op by op: how long no op ran before each one, and whether the host was in the framework meanwhile.

Time inside the framework's own events (views, autograd, a call of the library that runs the op) is dispatch of the op.
Time outside of all of them is Python, or anything else that the user's program does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofline.traces import intervals


@dataclass(frozen=True, slots=True)
class Gaps:
    """Hold the gaps of a window in which no op ran, except the one after the last op.

    opens, closes: start and end of each, in the unit of the window. owner: the op that ran next, of `owners` ops.
    """

    opens: np.ndarray
    closes: np.ndarray
    owner: np.ndarray
    owners: int

    def time(self, start: np.ndarray, end: np.ndarray) -> NDArray[np.float64]:
        """Sum idle time before each op, in the framework's events (start, end) and outside; shape (owners, 2)."""
        inside = intervals.covered(start, end, self.opens, self.closes)
        return self._sums(inside, self.closes - self.opens - inside)

    def events(self, start: np.ndarray, nested: np.ndarray) -> NDArray[np.float64]:
        """Count the events that began before each op, inside another one (`nested`) and not; shape (owners, 2).

        The op's own event counts: the gap ends with it.
        """
        inside, outside = (
            np.searchsorted(times, self.closes, "right") - np.searchsorted(times, self.opens)
            for times in (np.sort(start[nested]), np.sort(start[~nested]))
        )
        return self._sums(inside, outside)

    def _sums(self, inside: np.ndarray, outside: np.ndarray) -> NDArray[np.float64]:
        return by_op(self.owner, inside, outside, self.owners)


def gaps(start: np.ndarray, end: np.ndarray, owner: np.ndarray, owners: int, low: int, high: int) -> Gaps:
    """Find the gaps of some ops between `low` and `high`. start, end, owner: of ops, as in `intervals.shares`."""
    opens, closes = intervals.complement(start, end, low, high)
    lasting = np.flatnonzero(end > start)
    lasting = lasting[np.argsort(start[lasting], kind="stable")]
    following = np.append(lasting, -1)[np.searchsorted(start[lasting], closes)]
    followed = following >= 0
    return Gaps(opens[followed], closes[followed], owner[following[followed]], owners)


def by_op(owner: np.ndarray, inside: np.ndarray, outside: np.ndarray, owners: int) -> NDArray[np.float64]:
    """Sum both columns by op; shape (owners, 2)."""
    return np.stack([np.bincount(owner, weights=part, minlength=owners) for part in (inside, outside)], axis=1)
