"""Find the period of a sequence of calls: with several optimizers, a step is one round of their updates."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

#: Number of calls that are remembered while no period is found, and from which number on not every call is a reason to
#: look for one. By choice: looking takes microseconds for each call that is remembered.
_MOST, _FEW = 4096, 64


class Period:
    """Follow a sequence that repeats a block. keys: the block, from the beginning of a step. position: in it."""

    def __init__(self, keys: Sequence[Hashable], position: int) -> None:
        self.keys, self._position = tuple(keys), position

    @property
    def at_end(self) -> bool:
        """True behind the last key of a block."""
        return self._position == 0

    @property
    def at_begin(self) -> bool:
        """True behind the first key of a block."""
        return self._position == 1 % len(self.keys)

    def next_block(self) -> list[Hashable]:
        """List the next keys, as many as a block has."""
        return [*self.keys[self._position :], *self.keys[: self._position]]

    def follow(self, key: Hashable) -> bool:
        """Take the next key; return whether it is the one that the block has there."""
        if key != self.keys[self._position]:
            return False
        self._position = (self._position + 1) % len(self.keys)
        return True

    def resume(self, key: Hashable) -> bool:
        """Take the next key, also where the block has another one; return False for a key that is not in it."""
        if not self.follow(key):
            if key not in self.keys:
                return False
            self._position = (self.keys.index(key) + 1) % len(self.keys)
        return True


class Periods:
    """Look for the shortest block that a sequence repeats: it was there twice, one behind the other.

    What broke a period that was found before must be in the next one: ten updates of a critic before the first one of
    the generator look like a loop of the critic alone. Unless the next one lasts for longer than all before it: a
    program may have two loops, one after the other. period: the one that the sequence follows now, or None.
    """

    def __init__(self) -> None:
        self._keys: list[Hashable] = []
        self._number = 0  # of all keys
        self._required: set[Hashable] = set()
        self.period: Period | None = None

    def add(self, key: Hashable) -> Period | None:
        """Add the next key; return the period that the sequence follows, another one or None if the key broke it."""
        self._keys.append(key)
        self._number += 1
        if len(self._keys) > _MOST:
            del self._keys[: _MOST // 2]
        if self.period is not None:
            if self.period.follow(key):
                return self.period
            self._required |= {*self.period.keys, key}
        self.period = self._found()
        return self.period

    def repeat(self, times: int) -> None:
        """Add the keys of the period that the sequence follows so many times more."""
        assert self.period is not None
        block = self.period.next_block()
        self._number += times * len(block)
        self._keys = (self._keys + block * min(times, -(-_MOST // len(block))))[-_MOST:]

    def _found(self) -> Period | None:
        if len(self._keys) > _FEW and self._number % (len(self._keys) // _FEW):
            return None
        keys = self._keys
        for length in range(1, len(keys) // 2 + 1):
            if keys[-1] != keys[-1 - length] or keys[-length:] != keys[-2 * length : -length]:
                continue
            if self._required <= set(keys[-length:]) or self._lasts(length):
                return self._from_first(length)
        return None

    def _lasts(self, length: int) -> bool:
        """Tell whether the block at the end has been repeated for longer than all that was before it."""
        keys = self._keys
        begin = len(keys) - length
        while begin > 0 and keys[begin - 1] == keys[begin - 1 + length]:
            begin -= 1
        return len(keys) - begin > begin

    def _from_first(self, length: int) -> Period:
        """Turn the block so that it begins as the sequence did, with the first of its keys that was seen."""
        begin = len(self._keys) - length
        block = self._keys[begin:]
        first = next(key for key in self._keys if key in block)
        starts = [place for place, key in enumerate(block) if key == first and block[place - 1] != first] or [0]
        start = next((place for place in starts if (begin + place) % length == 0), starts[0])
        return Period(block[start:] + block[:start], (length - start) % length)
