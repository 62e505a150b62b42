"""A name for a row of an account whose ops, types, counts or settings are the definition of that name.

Each file of comparison/annotations is one. Its page in docs/annotations is made of it and of measured pairs that show
it (`benchmarks/annotations.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from roofline.comparison.account.definitions import DEFINITIONS, Definition
from roofline.comparison.account.oriented_row import OrientedRow, bare_names
from roofline.comparison.account.row import OpChange, Row


class Pattern(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The signs of an annotation in a row: settings that differ, a part of the gap, or else ops; all given ones hold.

    Expressions fit a whole name, ops by `bare_name`. setting, values: a setting that differs, and its values in either
    order. gap: the part. phase, place: of the row. loop: a loop executes its ops. more: for each an op that the run
    which spends more executes more often. less: ops that it executes less often; where none is given, runs whose ops
    have other names do not fit, unless `unlike`: what one of them does not name may be in another op. more_classes,
    less_class: the same of what ops do, whatever they are called. other_run: what the other run executes in the row,
    where that matters. share: ops of `more` are among those that the row's sentence names, or have most of its seconds,
    or neither is asked.
    """

    setting: str | None = None
    values: tuple[str, str] | None = None
    gap: str | None = None
    phase: str | None = None
    place: str | None = None
    loop: bool = False
    more: tuple[str, ...] = ()
    less: str | None = None
    unlike: bool = False
    more_classes: tuple[str, ...] = ()
    less_class: str | None = None
    other_run: Literal["none of these", "none of these in any row", "nothing"] | None = None
    share: Literal["named", "most", "any"] = "named"

    def fits(self, oriented: OrientedRow) -> bool:
        """Return whether a row fits the pattern."""
        row = oriented.row
        if self.setting is not None:
            changes = [change for change in row.ops if re.fullmatch(self.setting, change.name)]
            return row.kind == "setting" and any(map(self._fits_values, changes))
        if self.gap is not None:
            return row.kind == "gap" and row.place == self.gap
        return (
            row.kind == "only"
            and self.phase in (None, row.phase)
            and (self.place is None or row.scopes == (self.place,))
            and (row.times > 1 or not self.loop)
            and self._fits_ops(oriented)
        )

    def _fits_values(self, change: OpChange) -> bool:
        """Return whether the values of a setting fit, in either order."""
        if self.values is None:
            return True
        values = [str(change.a or ""), str(change.b or "")]
        return any(all(map(re.fullmatch, self.values, order)) for order in (values, values[::-1]))

    def _fits_ops(self, oriented: OrientedRow) -> bool:
        if self.more and not self.less and not (oriented.alike or self.unlike):
            return False
        oftener = [name for name, use in oriented.uses.items() if use.slower_count > use.faster_count]
        chosen = [{name for name in oftener if re.fullmatch(names, name)} for names in self.more]
        if not all(chosen) or not self._fits_classes(oriented):
            return False
        if self.less is not None:
            uses = [use for name, use in oriented.uses.items() if re.fullmatch(self.less, name)]
            if sum(use.faster_count - use.slower_count for use in uses) <= 0:
                return False
        if self.other_run is not None and self._other_run_executes(oriented):
            return False
        names = set().union(*chosen)
        if self.share == "most":
            return oriented.have_most(names)
        return self.share == "any" or not names or any(names & bare_names(change) for change in oriented.named)

    def _fits_classes(self, oriented: OrientedRow) -> bool:
        excess = oriented.more_of_classes
        is_more = all(excess.get(name, 0) > 0 for name in self.more_classes)
        return is_more and (self.less_class is None or excess.get(self.less_class, 0) < 0)

    def _other_run_executes(self, oriented: OrientedRow) -> bool:
        """Return whether the other run executes an op that it must not."""
        expression = ".*" if self.other_run == "nothing" else "|".join(self.more)
        anywhere = self.other_run == "none of these in any row"
        ops = oriented.other_ops if anywhere else [name for name, use in oriented.uses.items() if use.faster_count]
        return any(re.fullmatch(expression, name) for name in ops)


class Annotation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A name for a row, and the sentences that go with it.

    title: what it is, in a line. rule: the rule of earlier versions that the finding in a comparison's JSON is called
    by. says: one sentence; "{more}" is the run that spends more, "{less}" the other one. patterns: any of them, or the
    definition. pairs: by framework, a measured pair that shows it, "SET/NAME" of planted pairs or two shipped profiles.
    advice: by framework, said only where that has a pair. switch: the kind of `core.switch` that takes it away.
    """

    title: str
    rule: str
    says: str
    patterns: tuple[Pattern, ...] = ()
    definition: Definition | None = None
    pairs: Mapping[str, str] = {}
    advice: Mapping[str, str] = {}
    switch: str | None = None

    def fits(self, oriented: OrientedRow) -> bool:
        """Return whether a row has this name."""
        if any(pattern.fits(oriented) for pattern in self.patterns):
            return True
        return self.definition is not None and DEFINITIONS[self.definition](oriented)

    def sentence(self, row: Row, names: tuple[str, str]) -> str:
        """Say the annotation of a row; names: of the runs. Of a setting it is not known which run it costs more."""
        if row.kind == "setting":
            text = self.says.format(more="one run", less="the other one")
            return text[0].upper() + text[1:]
        slower, faster = names[:: row.sign]
        return self.says.format(more=slower, less=faster)

    def advice_in(self, framework: str) -> str | None:
        """Return what to do about it in a framework, if a measured pair of that framework shows what that gains."""
        return self.advice.get(framework) if framework in self.pairs else None
