"""Work against busy time of matmuls, normalisation and pointwise ops: who has the FLOPs, and who takes the time.

    share = of one group / of the three together

These are the classes of Ivanov et al., "Data Movement Is All You Need" (arXiv 2007.00072), table 1. Optimizer,
communication and other ops stand apart, so that the three shares of each kind add up to all of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from roofline.analysis.analysis import WorkAnalysis
from roofline.analysis.totals import Total, WorkTotal
from roofline.core.vocabulary import GROUPS, Group

#: The groups that shares are of.
CLASSES: tuple[Group, ...] = ("matmul", "normalisation", "pointwise")


@dataclass(frozen=True, slots=True)
class GroupShares:
    """A group of ops. None: unknown, or, of a group that stands apart, not of the three.

    flops, bytes, time: shares of what the three have together: matrix and vector FLOP, compulsory traffic, busy time.
    Of work the shares are of what is known, and None where nothing is known of one of the three.
    busy: share of the busy time of the whole step. slower: FLOP/s of the matmuls over FLOP/s of this group.
    total: its sums; None where the step has no such op.
    """

    group: Group
    flops: float | None = None
    bytes: float | None = None
    time: float | None = None
    busy: float | None = None
    slower: float | None = None
    total: WorkTotal | None = None


def group_shares(analysis: WorkAnalysis) -> tuple[GroupShares, ...]:
    """Compute the rows of the wall chart: the three classes, then the groups apart that have any op.

    A profile that was only counted has shares of work and none of time.
    """
    sums = analysis.by("group")
    three = [sums[group] for group in CLASSES if group in sums]
    flops = sum(_work(total) for total in three) if all(_known(total, "unknown_flops") for total in three) else 0.0
    traffic = sum(_traffic(total) for total in three) if all(_known(total, "unknown_bytes") for total in three) else 0.0
    time = sum(map(_seconds, three))
    busy = sum(map(_seconds, sums.values()))
    fastest = _rate(sums["matmul"]) if "matmul" in sums else None
    rows = []
    for group in GROUPS:
        total = sums.get(group)
        is_apart = group not in CLASSES
        if total is None:
            if not is_apart:
                rows.append(
                    GroupShares(
                        group,
                        flops=0.0 if flops else None,
                        bytes=0.0 if traffic else None,
                        time=0.0 if time else None,
                        busy=0.0 if busy else None,
                    )
                )
            continue
        rate = _rate(total)
        rows.append(
            GroupShares(
                group,
                flops=_work(total) / flops if flops and not is_apart else None,
                bytes=_traffic(total) / traffic if traffic and not is_apart else None,
                time=_seconds(total) / time if time and not is_apart else None,
                busy=_seconds(total) / busy if busy else None,
                slower=fastest / rate if fastest and rate else None,
                total=total,
            )
        )
    return tuple(rows)


def _work(total: WorkTotal) -> float:
    return total.flops + total.vector_flops


def _traffic(total: WorkTotal) -> float:
    return total.bytes_read + total.bytes_written


def _seconds(total: WorkTotal) -> float:
    """Return its busy time [s], 0 of a step whose ops have no times."""
    return total.seconds if isinstance(total, Total) else 0.0


def _known(total: WorkTotal, unknown_field: str) -> bool:
    """Return whether any of its work is known. unknown_field: with the own time of ops without known work [s]."""
    if isinstance(total, Total) and total.own_seconds > 0:
        return bool(total.own_seconds > getattr(total, unknown_field))
    return total.costed > 0


def _rate(total: WorkTotal) -> float | None:
    return total.flop_rate if isinstance(total, Total) and _known(total, "unknown_flops") else None
