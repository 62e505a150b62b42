"""Python functions that a step calls back: its ops wait for the host, with what the other run does instead."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from roofline import units
from roofline.analysis.callbacks import is_python
from roofline.comparison.arrays import Bools
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Rule
from roofline.comparison.causes.claim import Claim
from roofline.comparison.causes.select import alone_or_in_place
from roofline.comparison.segments import Segments


def claim(attribution: Attribution) -> Iterator[Claim]:
    """Those ops that the other run lacks, as `host-idle`: it is Python, on the host, while the step waits.

    An op of known work is what its work is, whatever it is called. Where Python takes less time than what the other run
    does instead, it is no cause of anything: these ops are, against `unknown-work`.
    """
    told = {"a": _told(attribution.a.segments), "b": _told(attribution.b.segments)}
    for a, b in alone_or_in_place(attribution, _called):
        more = attribution.a.seconds[a].sum() - attribution.b.seconds[b].sum()
        slower, rows = (attribution.a.segments, a) if more > 0 else (attribution.b.segments, b)
        if _called(slower)[rows].any():
            yield Claim("host-idle", a, b, host=True, about={"host": "called", **told})
        else:
            yield Claim("unknown-work", a, b, host=True)


def _told(some: Segments) -> str:
    """How often a step calls Python back, and by which ops: "2 calls of EagerPyFunc"; nothing where it does not."""
    rows = np.flatnonzero(_called(some))
    number = round(float(some.launches[rows].sum()))
    names = ", ".join(dict.fromkeys(some.signature[row].name for row in rows))
    return f"{units.count(number)} {'call' if number == 1 else 'calls'} of {names}" if number else ""


def _called(some: Segments) -> Bools:
    """Which segments call Python back."""
    called: Bools = np.asarray([is_python(one) for one in some.signature], bool)
    called &= np.isnan(some.flops) | np.isnan(some.bytes)
    return called


RULE = Rule(name="callbacks", claim=claim, after=("random",), before=("unknown-work",))
