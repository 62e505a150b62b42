"""Number the objects of a program that calls are told apart by: once one is gone, another one may have its address."""

from __future__ import annotations

import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import Any


def kind_of(numbers: Callable[[Any], Iterable[int]], thing: Any) -> tuple[str, int | None]:
    """Tell an object by its class and by how many numbers it has, which are asked for; None where it does not tell."""
    name = type(thing).__name__
    try:
        return name, sum(numbers(thing))
    except Exception:  # of a class of the program's, or of parameters without a shape yet
        return name, None


def nothing() -> None:
    """Refer to no object."""


def reference(thing: Any) -> Callable[[], Any]:
    """Return a weak reference to an object, and one to nothing where its class allows none."""
    try:
        return weakref.ref(thing)
    except TypeError:
        return nothing


class Identities:
    """Give each living object a number of its own. One like one that is gone has that one's: a loop made it anew."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Any], tuple[Hashable, int]]] = {}
        #: Kind -> numbers of those that are gone, and how many there were at once.
        self._free: defaultdict[Hashable, list[int]] = defaultdict(list)
        self._most: defaultdict[Hashable, int] = defaultdict(int)
        self._lock = threading.Lock()

    def of(self, thing: Any, kind_of: Callable[[Any], Hashable]) -> Hashable:
        """Return what tells an object from all others that live. kind_of: asks what those share that may stand for it.

        It is asked once for each object: only there may methods of the object be called, which must not raise. One
        without weak references has its address.
        """
        known = self._known.get(id(thing))
        if known is not None and known[0]() is thing:
            return known[1]
        kind = kind_of(thing)
        try:
            reference = weakref.ref(thing, partial(self._gone, id(thing)))
        except TypeError:
            return id(thing)
        with self._lock:
            free = self._free[kind]
            if not free:
                free.append(self._most[kind])
                self._most[kind] += 1
            free.sort(reverse=True)
            identity = kind, free.pop()
        self._known[id(thing)] = reference, identity
        return identity

    def _gone(self, address: int, reference: weakref.ref[Any]) -> None:
        known = self._known.get(address)
        if known is not None and known[0] is reference:
            kind, number = self._known.pop(address)[1]
            self._free[kind].append(number)
