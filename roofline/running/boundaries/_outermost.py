"""Share between boundaries whether a call is running that is part of none: only the outermost calls are reported."""

from __future__ import annotations

import threading
from collections.abc import Hashable


class _Outermost(threading.local):
    """Hold whether such a call runs in this thread. running: which compiled function it is, None: another call."""

    inside = False
    running: Hashable | None = None


OUTERMOST = _Outermost()
