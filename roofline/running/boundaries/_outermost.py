"""Share between boundaries whether a call is running that is part of none: only the outermost calls are reported."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import get_ident
from typing import Any, Generic, TypeVar

Held = TypeVar("Held")

_MAIN = threading.main_thread().ident


class _Own(threading.local):
    """Hold what `make` makes, for each thread anew."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.held = make()


class OfThread(Generic[Held]):
    """Hold one thing for each thread.

    main: the main thread's, which costs no look at what threads do not share. is_alone: True as long as no other thread
    has asked for its own.
    """

    __slots__ = ("_own", "is_alone", "main")

    def __init__(self, make: Callable[[], Held]) -> None:
        self.main, self._own, self.is_alone = make(), _Own(make), True

    @property
    def own(self) -> Held:
        """Return that of the thread that asks."""
        if get_ident() == _MAIN:
            return self.main
        self.is_alone = False
        return self.elsewhere

    @property
    def elsewhere(self) -> Held:
        """Return that of the thread that asks, if it is not the main one."""
        held: Held = self._own.held
        return held


@dataclass(slots=True)
class Outermost:
    """Hold whether such a call is running. function: which compiled function it is, None: another call."""

    inside: bool = False
    function: Hashable | None = None


OUTERMOST = OfThread(Outermost)
