"""Share between boundaries whether a call is running that is part of none: only the outermost calls are reported."""

from __future__ import annotations


class _Outermost:
    """Hold whether such a call runs."""

    inside = False


OUTERMOST = _Outermost()
