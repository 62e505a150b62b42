"""A name for a row of an account whose ops, types, counts or settings are the definition of that name.

Each file of comparison/annotations is one, `ANNOTATION`. Its page in docs/annotations is made of it and of measured
pairs that show it (`benchmarks/annotations.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from roofline.comparison.account.row import NAMES, Amount, Kind, OpChange, Row


class Use(NamedTuple):
    """Executions of the ops of one name, by the run that spends more on a row and by the other one.

    seconds: by how much longer the former takes for them [s].
    """

    more: float
    less: float
    seconds: float


@dataclass(frozen=True)
class Seen:
    """A row as seen from the run that spends more on it.

    alike: whether both runs execute ops of the same names by and large. executed: the ops of both in all rows, by bare
    name.
    """

    row: Row
    alike: bool = True
    executed: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())

    @cached_property
    def uses(self) -> Mapping[str, Use]:
        """Sum the ops of the row by bare name."""
        sign = 1 if (self.row.seconds or 0.0) >= 0 else -1
        summed: dict[str, Use] = {}
        for change in self.row.ops:
            name = bare_name(change.name)
            before, (more, less) = summed.get(name, Use(0.0, 0.0, 0.0)), self.counts(change)
            summed[name] = Use(before.more + more, before.less + less, before.seconds + sign * (change.seconds or 0.0))
        return summed

    @cached_property
    def named(self) -> Sequence[OpChange]:
        """List the ops that the row's sentence names of the run that spends more."""
        return [change for change in self.row.ops if self.counts(change)[0] > self.counts(change)[1]][:NAMES]

    def counts(self, change: OpChange) -> tuple[float, float]:
        """Return how often the run that spends more executes some ops, and the other one."""
        a, b = (float(count) if isinstance(count, (int, float)) else 0.0 for count in (change.a, change.b))
        return (a, b) if (self.row.seconds or 0.0) >= 0 else (b, a)

    @property
    def amounts(self) -> tuple[Amount, Amount]:
        """The work of the run that spends more, and of the other one."""
        a, b = self.row.a, self.row.b
        return (a, b) if (self.row.seconds or 0.0) >= 0 else (b, a)

    @property
    def executed_by_other(self) -> frozenset[str]:
        """Ops of the run that spends less, in all rows."""
        return self.executed[1] if (self.row.seconds or 0.0) >= 0 else self.executed[0]

    def oftener(self, names: str) -> list[str]:
        """List the ops that fit and that the run which spends more executes more often."""
        return [name for name, use in self.uses.items() if use.more > use.less and re.fullmatch(names, name)]

    def less_often(self, names: str) -> bool:
        """Whether the run that spends more executes ops that fit less often, all together."""
        return sum(use.less - use.more for name, use in self.uses.items() if re.fullmatch(names, name)) > 0

    def have_most(self, names: Collection[str]) -> bool:
        """Whether some ops have more than half of what the run that spends more takes longer for any op."""
        return 2 * sum(self.uses[name].seconds for name in names) > sum(
            max(0.0, use.seconds) for use in self.uses.values()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """What a row shows; all that is given holds. Expressions fit a whole name, ops by `bare_name`.

    kind, phase, place: of the row; place is the part of a gap. loop: a loop executes its ops. more: for each an op that
    the run which spends more executes more often. less: for each the ops that it executes less often; where none is
    given, runs whose ops have other names do not fit, unless `unlike`: what one of them does not name may be in another
    op. absent: ops that the other run does not execute in this row; nowhere: in no row. share: ops of `more` are among
    those that the row's sentence names, or have most of its seconds, or neither is asked. setting, values: a setting
    that differs, and its values in either order.
    """

    kind: Kind = "only"
    phase: str | None = None
    place: str | None = None
    loop: bool = False
    more: tuple[str, ...] = ()
    less: tuple[str, ...] = ()
    absent: str | None = None
    nowhere: str | None = None
    unlike: bool = False
    share: Literal["named", "most", "any"] = "named"
    setting: str | None = None
    values: tuple[str, str] | None = None

    def fits(self, seen: Seen) -> bool:
        """Whether a row shows this."""
        row = seen.row
        if row.kind != self.kind or (self.phase is not None and row.phase != self.phase):
            return False
        if self.place is not None and not re.fullmatch(self.place, row.place or ""):
            return False
        if self.setting is not None:
            return any(self._fits_setting(self.setting, change) for change in row.ops)
        return (row.times > 1 or not self.loop) and self._fits_ops(seen)

    def _fits_ops(self, seen: Seen) -> bool:
        if self.more and not self.less and not (seen.alike or self.unlike):
            return False
        chosen = [seen.oftener(names) for names in self.more]
        if not all(chosen) or not all(map(seen.less_often, self.less)):
            return False
        if self.absent and any(use.less and re.fullmatch(self.absent, name) for name, use in seen.uses.items()):
            return False
        if self.nowhere and any(re.fullmatch(self.nowhere, name) for name in seen.executed_by_other):
            return False
        names = {name for some in chosen for name in some}
        if self.share == "most":
            return seen.have_most(names)
        return self.share == "any" or not names or any(bare_name(change.name) in names for change in seen.named)

    def _fits_setting(self, setting: str, change: OpChange) -> bool:
        if not re.fullmatch(setting, change.name):
            return False
        values = str(change.a or ""), str(change.b or "")
        return self.values is None or any(
            all(re.fullmatch(*pair) for pair in zip(self.values, order, strict=True))
            for order in (values, values[::-1])
        )


def _never(_: Seen) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """What a row is called, and what is said of it.

    rule: the rule of earlier versions that the finding in a comparison's JSON is called by. patterns: any of them; or
    `matches`, where no pattern says it. says: one sentence; "{more}" is the run that spends more, "{less}" the other
    one. pairs: by framework, a measured pair that shows it, "SET/NAME" of planted pairs or two shipped profiles.
    advice: by framework, said only where that has a pair. switch: the kind of `core.switch` that takes it away.
    """

    rule: str
    says: str
    patterns: tuple[Pattern, ...] = ()
    matches: Callable[[Seen], bool] = _never
    pairs: Mapping[str, str] = field(default_factory=dict)
    advice: Mapping[str, str] = field(default_factory=dict)
    switch: str | None = None

    def fits(self, seen: Seen) -> bool:
        """Whether a row is called so."""
        return any(pattern.fits(seen) for pattern in self.patterns) or self.matches(seen)

    def sentence(self, row: Row, names: tuple[str, str]) -> str:
        """Say it of a row; names: what the runs are called. Of a setting it is not known which run it costs more."""
        if row.kind == "setting":
            text = self.says.format(more="one run", less="the other one")
            return text[0].upper() + text[1:]
        more, less = names if (row.seconds or 0.0) >= 0 else names[::-1]
        return self.says.format(more=more, less=less)

    def advice_in(self, framework: str) -> str | None:
        """Return what to do about it in a framework, if a measured pair of that framework shows what that gains."""
        return self.advice.get(framework) if framework in self.pairs else None


def bare_name(name: str) -> str:
    """Return the name of an op without a namespace and the underscores around it, in lower case."""
    return name.removeprefix("aten::").strip("_").lower()
