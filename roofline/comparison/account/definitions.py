"""Define annotations that no pattern says, by the name that `definition` in the annotation's file gives.

The pages in docs/annotations have their docstrings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal

from roofline.comparison.account.oriented_row import OrientedRow, bare_name

Definition = Literal["in double precision", "in another type", "in pieces"]

_FLOATING = re.compile(r"tf32|bf16|fp\d+|complex\d+")
#: Types that no framework computes in unless it is told to.
_DOUBLE = frozenset(("fp64", "complex128"))


def _types_of_its_own(oriented: OrientedRow) -> frozenset[str]:
    """Return the types in which the run that spends more computes what the other one computes in others.

    Of rows of the same ops these are its types, if the other one has none of them: the same work, whatever it is
    called. Else those of ops that both execute, and double precision that the other one has nowhere in the row.
    """
    if oriented.row.kind not in ("only", "rate"):
        return frozenset()
    oftener_in_other = [change for change in oriented.row.ops if change.counts[0] < change.counts[1]]
    slower, faster = (
        {(bare_name(change.name), change.type or "") for change in changes if _FLOATING.fullmatch(change.type or "")}
        for changes in (oriented.named, oftener_in_other)
    )
    types, other_types = (frozenset(kind for _, kind in ops) for ops in (slower, faster))
    if oriented.row.kind == "rate" and types and other_types:
        return frozenset() if types & other_types else types
    of_same_ops = frozenset(
        kind for name, kind in slower for its_name, its_kind in faster if name == its_name and kind != its_kind
    )
    return of_same_ops | (types & (_DOUBLE - other_types))


def _in_double_precision(oriented: OrientedRow) -> bool:
    """Return whether the run that spends more computes in double precision what the other computes in another."""
    return bool(_types_of_its_own(oriented) & _DOUBLE)


def _in_another_type(oriented: OrientedRow) -> bool:
    """Return whether the run that spends more computes in a type of its own what the other one computes in another."""
    types = _types_of_its_own(oriented)
    return bool(types) and not types & _DOUBLE


def _in_pieces(oriented: OrientedRow) -> bool:
    """Return whether ops that both runs execute, each at least twice as often in one of them, have most of the seconds.

    One of its launches moves fewer bytes than one of the other run. How often a loop executes its ops is not in their
    counts. Ops of two frameworks are not the same.
    """
    slower, faster = oriented.row.a, oriented.row.b
    if oriented.row.kind != "only" or oriented.row.times > 1 or slower.bytes is None or faster.bytes is None:
        return False
    if slower.bytes * faster.launches >= faster.bytes * slower.launches:
        return False
    shared_names = {bare_name(change.name) for change in oriented.row.ops if change.a and change.b}
    uses = {name: oriented.uses[name] for name in shared_names}
    shared = {name: use for name, use in uses.items() if use.slower_count > use.faster_count}
    pieces = [name for name, use in shared.items() if use.slower_count >= 2 * use.faster_count]
    return len(pieces) == len(shared) > 0 and oriented.have_most(pieces)


DEFINITIONS: Mapping[Definition, Callable[[OrientedRow], bool]] = {
    "in double precision": _in_double_precision,
    "in another type": _in_another_type,
    "in pieces": _in_pieces,
}
