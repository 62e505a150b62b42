"""Make the timeline of the bytes that a step holds: during each op, by what they are for.

    timeline(profile).peak            # bytes at the op that most is held at
    timeline(profile).parts(op)       # what for

Where storages were recorded they are taken as they are. A profile without them, of a step without data or of an older
version, still knows its buffers: each is there from the op that makes it to the last one that uses it, at least.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofline.analysis.caches.accesses import accesses
from roofline.core.arrays import Array
from roofline.core.lifetimes import Lifetimes, lifetimes
from roofline.core.rows import Ints, buffers_known, per_profile, rows, settled
from roofline.core.schema import Memory, Profile, Storages
from roofline.core.vocabulary import STORAGE_KINDS, Phase, StorageKind

#: The source of a timeline without recorded storages.
LAST_USE = "last use"
#: Frameworks whose executors let an op write its result over an argument that nobody needs any more: of the two buffers
#: only one takes memory.
_HANDS_OVER = frozenset(("tensorflow",))
_KIND: Mapping[str, int] = {kind: number for number, kind in enumerate(STORAGE_KINDS)}


@dataclass(frozen=True, slots=True)
class Timeline:
    """Hold the bytes that a step holds during each of its ops.

    live: shape (kinds, ops), rows in the order of `STORAGE_KINDS` [byte]. known: kinds of which it is known how much
    there is. source: "allocator", "buffer assignment" or "last use". at_least: whether more may be there. assigned: see
    `schema.Storages`.
    """

    live: Array
    known: frozenset[StorageKind]
    source: str
    at_least: bool
    assigned: float | None

    @property
    def total(self) -> Array:
        """Return what is in use during each op [byte]."""
        total: Array = self.live.sum(axis=0)
        return total

    @property
    def highest(self) -> int:
        """Return the number of the op during which most is in use, the first of several."""
        return int(np.argmax(self.total))

    @property
    def peak(self) -> float:
        """Return the most that the step holds [byte]: what a compiler assigned to it, else what is in use at most."""
        return float(self.total.max()) if self.assigned is None else self.assigned

    def outline(self, most: int) -> Ints:
        """Return at most so many ops, in order: of each of as many stretches of the step the one with most in use."""
        total = self.total
        begins = np.unique(np.linspace(0, len(total), min(most, len(total)), endpoint=False).astype(np.int64))
        ends = np.append(begins[1:], len(total))
        return np.asarray(
            [first + int(np.argmax(total[first:last])) for first, last in zip(begins, ends, strict=True)], np.int64
        )

    def parts(self, op: int) -> dict[StorageKind, float | None]:
        """Return what is in use during an op [byte], by what it is for; None where that is not told apart."""
        return {kind: float(self.live[_KIND[kind], op]) if kind in self.known else None for kind in STORAGE_KINDS}


@per_profile
def timeline(profile: Profile) -> Timeline | None:
    """Make the timeline of a step; None where neither its storages nor its buffers are known."""
    storages = profile.storages
    if not profile.ops or (storages is None and not _has_lifetimes(profile)):
        return None
    storages = storages or _by_last_use(profile)
    live = _live(storages, len(profile.ops))
    known = {kind for kind in STORAGE_KINDS if live[_KIND[kind]].any()}
    if storages.source != "allocator":
        known |= _tell_apart(live, profile.memory)
    else:
        known |= set(STORAGE_KINDS) - {"optimizer"}
        # Else the state of an optimizer that nobody knows is among the inputs.
        if profile.memory.optimizer is not None or not in_phase(profile, "optimizer").any():
            known.add("optimizer")
    return Timeline(settled(live), frozenset(known), storages.source, storages.at_least, storages.assigned)


def in_phase(profile: Profile, phase: Phase) -> NDArray[np.bool_]:
    """Return for each op whether it is in a phase."""
    return np.isin(rows(profile).phase, [number for number, name in enumerate(profile.phases) if name == phase])


def _has_lifetimes(profile: Profile) -> bool:
    """Return whether the buffers of a step tell how long each is there, at least."""
    known = buffers_known(profile) and len(rows(profile).buffers) > 0
    return known and (profile.framework or profile.backend) not in _HANDS_OVER


def _live(storages: Storages, ops: int) -> Array:
    """Add up the bytes of storages by kind and op, shape (kinds, ops)."""
    change = np.zeros((len(STORAGE_KINDS), ops + 1))
    kind = np.asarray(storages.kind, np.int64)
    size = np.asarray(storages.bytes, np.float64)
    np.add.at(change, (kind, np.asarray(storages.first, np.int64)), size)
    np.add.at(change, (kind, np.asarray(storages.last, np.int64) + 1), -size)
    return np.cumsum(change, axis=1)[:, :ops]


def _tell_apart(live: Array, memory: Memory) -> set[StorageKind]:
    """Take parameters and the optimizer's state, whose sums are known, out of the inputs; return what was known."""
    known: set[StorageKind] = set()
    inputs = live[_KIND["inputs"]]
    sums: tuple[tuple[StorageKind, float | None], ...] = (
        ("parameters", memory.parameters),
        ("optimizer", memory.optimizer),
    )
    for kind, size in sums:
        if size is not None:
            live[_KIND[kind]] = size
            inputs -= size
            known.add(kind)
    np.maximum(inputs, 0.0, out=inputs)
    return known


def _by_last_use(profile: Profile) -> Storages:
    """Follow the buffers of a step: each is there from the op that makes it to the last one that uses it."""
    touched, last_op = accesses(profile), len(profile.ops) - 1
    lives = lifetimes(touched.op, touched.buffer, touched.size, touched.written)
    kind = _kinds(lives, profile)
    stays = ~lives.made | (kind == _KIND["gradients"])
    return Storages(
        source=LAST_USE,
        kind=tuple(kind.tolist()),
        bytes=tuple(np.rint(lives.bytes).astype(np.int64).tolist()),
        first=tuple(np.where(lives.made, lives.first, 0).tolist()),
        last=tuple(np.where(stays, last_op, lives.last).tolist()),
        at_least=True,
    )


def _kinds(lives: Lifetimes, profile: Profile) -> Ints:
    """Say what buffers are for: a gradient is what a backward pass leaves to the optimizer, or, without one, to nobody.

    Nobody is known to use again what no op is seen to read.
    """
    backward, optimizer = (in_phase(profile, phase) for phase in ("backward", "optimizer"))
    forward = in_phase(profile, "forward") | in_phase(profile, "prefill") | in_phase(profile, "decode")
    left = optimizer[lives.last] if optimizer.any() else ~lives.read
    cases: tuple[tuple[NDArray[np.bool_], StorageKind], ...] = (
        (~lives.made, "inputs"),
        (backward[lives.first] & left, "gradients"),
        (forward[lives.first] & (lives.last > lives.first), "activations"),
    )
    return np.select([case for case, _ in cases], [_KIND[kind] for _, kind in cases], _KIND["workspace"])
