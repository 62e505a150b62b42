"""The rules: from two runs to the causes of their difference. Each is a mechanism and claims what it explains.

A rule looks at what was recorded (which ops, how many, how many bytes, which precision, which switches) to say *that* a
cause is there; the time of what it claims says how much it matters, and which run it slows down. Rules run in
the order of `RULES`, special ones first, and what the first one claims no later one sees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.claim import Claim
from roofline.comparison.causes.rules_of_time import (
    after_idle,
    after_others,
    allocation,
    communication,
    efficiency,
    hardware,
    host_bound,
    synchronisation,
    threads,
    waiting,
)
from roofline.comparison.causes.rules_of_work import (
    attention,
    fusion,
    layout,
    more_products,
    optimizer,
    padding,
    precision,
    random,
    recomputation,
    unknown_work,
)

#: All rules, special ones first. The order decides which of two causes gets what both could claim.
RULES: tuple[Callable[[Attribution], Iterator[Claim]], ...] = (
    *(communication, synchronisation, waiting, optimizer, recomputation, attention, random, unknown_work, padding),
    *(more_products, precision, layout, fusion, threads, hardware, allocation, after_idle, after_others),
    *(efficiency, host_bound),
)
