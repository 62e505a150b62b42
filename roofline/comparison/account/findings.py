"""Make findings of the rows that have a name: the form in which `compare` told causes before there was an account."""

from __future__ import annotations

import msgspec

from roofline.analysis.bootstrap import Interval
from roofline.comparison.account.annotate import known_annotations
from roofline.comparison.account.labels import label
from roofline.comparison.account.row import Account, Row


class Portion(msgspec.Struct, frozen=True, kw_only=True):
    """A part of wall_A - wall_B at one place [s]; phase, block and class are None where it is not one alone."""

    phase: str | None
    block: str | None
    op_class: str | None
    seconds: float


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A row with a name. seconds: its part of wall_A - wall_B; text: what was seen; advice: what to try.

    rule: what its first name was called before there was an account. label: the row in a few words. terms: its places
    [s].
    """

    rule: str
    seconds: float
    ci95: Interval | None
    label: str
    text: str
    advice: str
    terms: tuple[Portion, ...]


def findings(account: Account) -> tuple[Finding, ...]:
    """Make a finding of each row with a name, in their order."""
    return tuple(finding for finding in map(finding_of, account.rows) if finding is not None)


def finding_of(row: Row) -> Finding | None:
    """Make a finding of a row; None where it has no name or, as settings, no seconds."""
    if row.seconds is None or not row.annotations:
        return None
    place = Portion(phase=row.phase, block=None, op_class=row.op_class, seconds=row.seconds)
    return Finding(
        rule=known_annotations()[row.annotations[0]].rule,
        seconds=row.seconds,
        ci95=row.ci95,
        label=label(row),
        text=row.text,
        advice=row.advice,
        terms=(place,),
    )
