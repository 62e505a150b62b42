"""Share between boundaries whether a call is running that is part of none: only the outermost calls are reported."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from dataclasses import dataclass


@dataclass(slots=True)
class Outermost:
    """Hold whether such a call is running. function: which compiled function it is, None: another call."""

    inside: bool = False
    function: Hashable | None = None


class _OfThread(threading.local):
    """Hold the outermost call of each thread. A hook looks once at what threads do not share: a fraction of a µs."""

    def __init__(self) -> None:
        self.outermost = Outermost()


OF_THREAD = _OfThread()
