"""Add up the time of a step by place: one op by its name in one part of the model, layers folded."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from roofline.analysis.analysis import Analysis
from roofline.analysis.caches import loops
from roofline.analysis.columns import numbered
from roofline.core.rows import Ints, rows
from roofline.core.schema import Profile, Signature
from roofline.core.vocabulary import OpClass

_NUMBER = re.compile(r"[._]\d+$")


@dataclass(frozen=True, slots=True)
class Place:
    """The ops of one name in one phase and block.

    is_convolution: whether these products are convolutions. runs: how often the step runs them; of kernels without an
    op, how often it launches them. seconds: their share of the step [s]; above: of these, what is above the least time
    that the device allows [s], None where no op of the place has one. without_minimum: the time of ops that have none
    [s]. of_roof, of_roof_high: minimum / own time, from where to where; None where over half of the time has no
    minimum. line: of the user's program, where all of these ops are of one; else None.
    """

    phase: str
    block: str
    name: str
    op_class: OpClass
    is_convolution: bool
    runs: int
    seconds: float
    above: float | None
    without_minimum: float
    of_roof: float | None
    of_roof_high: float | None
    line: str | None = None

    @property
    def at_most(self) -> float:
        """Return what the step could save here at most [s]: all of a time that has no minimum."""
        return self.without_minimum + (self.above or 0.0)


def places(analysis: Analysis) -> list[Place]:
    """Return the places of a step, those first that could save most. Their seconds add up to its busy time."""
    profile, table = analysis.profile, analysis.table
    if not profile.ops:
        return []
    number, first = numbered(table.columns.signature, table.columns.phase, table.columns.block, table.columns.line)
    keys, lines = [], []
    for row in first.tolist():
        op = profile.ops[row]
        signature = profile.signatures[op.signature]
        op_class = analysis.op_class(op)
        is_convolution = op_class == "contraction" and "convolution" in signature.kind
        name = place_name(signature)
        lines.append(profile.source_line(op))
        keys.append((profile.phases[op.phase], profile.blocks[op.block], name, op_class, is_convolution))
    codes = {key: code for code, key in enumerate(dict.fromkeys(keys))}
    of = np.asarray([codes[key] for key in keys], np.int64)[number]

    def sums(values: np.ndarray) -> list[float]:
        added: list[float] = np.bincount(of, weights=values, minlength=len(codes)).tolist()
        return added

    lines_of: dict[int, set[str | None]] = {}
    for key, line in zip(keys, lines, strict=True):
        lines_of.setdefault(codes[key], set()).add(line)
    columns = (executions(profile), table.share, table.own, table.uncosted, table.floor, table.floor_reach)
    return sorted(
        (
            replace(_place(key, *amounts), line=_only(lines_of[code]))
            for code, (key, *amounts) in enumerate(zip(codes, *map(sums, columns), strict=True))
        ),
        key=lambda place: -place.at_most,
    )


def _only(lines: set[str | None]) -> str | None:
    return next(iter(lines)) if len(lines) == 1 else None


def executions(profile: Profile) -> Ints:
    """Return how often the step runs each op; kernels of one name without an op are one op, with a launch for each."""
    kernels, columns, times = set(profile.kernels), rows(profile), loops.times(profile)
    is_kernel = np.asarray([signature.name in kernels for signature in profile.signatures], bool)[columns.signature]
    return np.where(is_kernel, np.maximum(times, columns.launches), times)


def without_number(name: str) -> str:
    """Return a name without the number by which a compiler tells it from others: "fusion.12" is "fusion"."""
    return _NUMBER.sub("", name)


def place_name(signature: Signature) -> str:
    """Name an op without what numbers it: "aten::mm" is "mm", "loop_fusion.12" is "loop_fusion"."""
    return without_number(signature.name.removeprefix("aten::")) or signature.name


def _place(
    key: tuple[str, str, str, OpClass, bool],
    runs: float,
    seconds: float,
    own_seconds: float,
    uncosted: float,
    floor: float,
    reach: float,
) -> Place:
    costed = own_seconds - uncosted
    above = seconds * (costed - floor) / own_seconds if costed > 0 else None
    without_minimum = seconds * uncosted / own_seconds if costed > 0 else seconds
    mostly = costed > 0 and 2 * uncosted <= own_seconds
    ends = (floor / costed, reach / costed) if mostly else (None, None)
    return Place(*key, round(runs), seconds, above, without_minimum, *ends)
