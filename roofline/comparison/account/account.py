"""Account for the difference of two runs: match -> split -> group -> annotate -> order."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from roofline import units
from roofline.analysis.gap_parts import DISPATCHING, NOT_KNOWN, OUTSIDE, PAGE_FAULTS
from roofline.analysis.page_faults import FAULTS, fault_seconds
from roofline.comparison.account.annotate import annotate
from roofline.comparison.account.changes import Change, group_changes
from roofline.comparison.account.row import MOVED_BY, SAME_OPS, Account, Amount, Note, OpChange, Row, Style
from roofline.comparison.account.runs import Runs, match_runs
from roofline.comparison.account.words import op_name, sentence
from roofline.comparison.parity.parity import Parity
from roofline.comparison.terms import Comparison
from roofline.core.framework import framework
from roofline.core.vocabulary import CLASSES

#: Last of the ops of a change, so that their seconds add up to the row's.
_NEXT_OP = f"{DISPATCHING} the op after"
_MOVED = f"in the row of {PAGE_FAULTS}"
_NONE = np.zeros(0, np.int64)


def account(comparison: Comparison, names: tuple[str, str] = ("A", "B")) -> Account:
    """Account for wall_A - wall_B in rows; names: what sentences call the runs.

    sum of row.seconds = wall_A - wall_B, to rounding.
    """
    runs = match_runs(comparison)
    changes = group_changes(runs)
    if runs.a.is_seen and runs.b.is_seen:
        rows = [*change_rows(runs, changes), *rate_rows(runs), *gap_rows(runs, changes)]
        rows = move_page_faults(comparison, rows)
    else:
        rows = [row for row in gap_rows(runs, changes) if not row.upper and row.place not in (SAME_OPS, NOT_KNOWN)]
        rows.append(not_seen_row(runs, comparison.difference - sum(row.seconds or 0.0 for row in rows)))
    rows += setting_rows(comparison.parity)
    frameworks = framework(comparison.a.profile), framework(comparison.b.profile)
    rows = annotate(rows, frameworks, alike=runs.matching.alike)
    rows.sort(key=lambda row: (row.kind != "setting", -abs(row.seconds or 0.0)))
    style = Style(names, not runs.matching.alike, comparison.a.has_queue and comparison.b.has_queue)
    return Account(rows=tuple(replace(row, text=sentence(row, style)) for row in rows), style=style)


def setting_rows(parity: Parity) -> Iterator[Row]:
    """Yield the settings that differ, as one row."""
    if parity.settings:
        yield Row(
            kind="setting",
            ops=tuple(OpChange(name=difference.what, a=difference.a, b=difference.b) for difference in parity.settings),
        )


def change_rows(runs: Runs, changes: Sequence[Change]) -> Iterator[Row]:
    """Yield a row for each change: its ops, and what dispatching them and the ops right after them takes."""
    for change in changes:
        a, b = change.a, change.b
        after = [float(run.dispatch[rows].sum()) for run, rows in ((runs.a, change.after_a), (runs.b, change.after_b))]
        dispatch = float(runs.a.dispatch[a].sum()) + after[0], float(runs.b.dispatch[b].sum()) + after[1]
        row = runs.row("only", a, b, dispatch)
        yield replace(
            row,
            scopes=runs.ranked_scopes(a, b),
            run_scopes=(runs.ranked_scopes(a, _NONE), runs.ranked_scopes(_NONE, b)),
            differing=runs.differing_arguments(a, b),
            phase=change.phase,
            times=int(max(runs.a.side.segments.times[a].max(initial=1), runs.b.side.segments.times[b].max(initial=1))),
            ops=(*row.ops, OpChange(name=_NEXT_OP, seconds=after[0] - after[1])) if any(after) else row.ops,
            notes=change.notes,
        )


def rate_rows(runs: Runs) -> Iterator[Row]:
    """Yield a row per class of the ops that both runs have."""
    pairs = runs.matching
    # An update is of another class outside of the optimizer: of two classes the same one for (B, A).
    classes = np.minimum(runs.a.side.segments.op_class[pairs.pairs_a], runs.b.side.segments.op_class[pairs.pairs_b])
    for number in np.unique(classes).tolist():
        a, b = pairs.pairs_a[classes == number], pairs.pairs_b[classes == number]
        # Of two frameworks all kernels are others.
        kernels = runs.kernel_changes(a, b) if runs.matching.alike else ()
        yield replace(runs.row("rate", a, b), op_class=CLASSES[number], kernels=kernels)


def gap_rows(runs: Runs, changes: Sequence[Change]) -> Iterator[Row]:
    """Yield a row per measured part of the gaps, less the dispatching that the rows of changes hold."""
    parts = []
    for run, pairs, side in ((runs.a, runs.matching.pairs_a, "after_a"), (runs.b, runs.matching.pairs_b, "after_b")):
        after = np.concatenate([_NONE, *(getattr(change, side) for change in changes)])
        parts.append({SAME_OPS: float(run.dispatch[pairs].sum() - run.dispatch[after].sum()), **run.host.parts})
    for name in dict.fromkeys((*parts[0], *parts[1])):
        a, b = (part.get(name, 0.0) for part in parts)
        if a or b:
            yield Row(
                kind="gap",
                place=name,
                seconds=a - b,
                ci95=runs.interval(_NONE, _NONE, a, b),
                a=Amount(seconds=a, dispatch=a if name == SAME_OPS else 0.0),
                b=Amount(seconds=b, dispatch=b if name == SAME_OPS else 0.0),
                ops=outside_changes(runs) if name == OUTSIDE else (),
                upper=name in runs.a.host.upper or name in runs.b.host.upper,
            )


def not_seen_row(runs: Runs, seconds: float) -> Row:
    """Close the sum where the ops of a run were not seen, by what rows of plain steps leave of wall_A - wall_B [s]."""
    a, b = (Amount(seconds=float(run.seconds.sum()) if run.is_seen else None) for run in (runs.a, runs.b))
    return Row(kind="gap", place=NOT_KNOWN, seconds=seconds, a=a, b=b)


def outside_changes(runs: Runs) -> tuple[OpChange, ...]:
    """List before which ops, and how many, the hosts are outside of the framework for longer in one run."""
    sums: dict[str, float] = defaultdict(float)
    counts = Counter[str](), Counter[str]()
    for run, sign, count in ((runs.a, 1, counts[0]), (runs.b, -1, counts[1])):
        profile = run.side.analysis.profile
        for op, seconds in zip(profile.ops, run.host.outside.tolist(), strict=True):
            if seconds:
                name = f"before {op_name(profile.signatures[op.signature].name)}"
                sums[name] += sign * seconds
                count[name] += 1
    ranked = sorted(filter(sums.get, sums), key=lambda name: -abs(sums[name]))
    return tuple(OpChange(name=name, a=counts[0][name], b=counts[1][name], seconds=sums[name]) for name in ranked)


def move_page_faults(comparison: Comparison, rows: Sequence[Row]) -> list[Row]:
    """Give page faults a row of their own: what one run spends more in the operating system, as far as faults cost it.

    Plain steps measure it, and not in which ops. So it is taken off the same ops, ops with other arguments and what is
    not known of the gap, as far as these take longer in that run, in proportion.
    """
    runs = comparison.a, comparison.b
    faults = [run.profile.conditions.get(FAULTS, 0.0) for run in runs]
    system = [fault_seconds(run.profile, run.device) for run in runs]
    extra = system[0] - system[1]
    longer = {id(row): row for row in rows if _same_work(row) and (row.seconds or 0.0) * extra > 0}
    total = sum(row.seconds or 0.0 for row in longer.values())
    # Of a queue a device works on meanwhile.
    if any(run.has_queue for run in runs) or extra * (round(faults[0]) - round(faults[1])) <= 0 or not total:
        return list(rows)
    fault_share = min(1.0, abs(extra / total))
    ends = [row.ci95 for row in longer.values() if row.ci95 is not None]
    # As wide as it can be, however these hang together.
    ci95 = fault_share * sum(low for low, _ in ends), fault_share * sum(high for _, high in ends)
    moved = Row(
        kind="gap",
        place=PAGE_FAULTS,
        seconds=total * fault_share,
        ci95=ci95 if len(ends) == len(longer) else None,
        ops=(OpChange(name=PAGE_FAULTS, a=faults[0], b=faults[1]),),
        a=Amount(seconds=system[0]),
        b=Amount(seconds=system[1]),
    )
    return [*(_without(row, fault_share) if id(row) in longer else row for row in rows), moved]


def _same_work(row: Row) -> bool:
    """Return whether a row holds the same ops, ops that both run equally often, or what nobody knows of."""
    if row.kind == "only":
        return all(change.counts[0] == change.counts[1] for change in row.ops)
    return row.kind == "rate" or row.place == NOT_KNOWN


def _without(row: Row, fault_share: float) -> Row:
    """Take a share of a row off for page faults; its ops, as they were timed, have it as the last entry."""
    seconds, remaining = (row.seconds or 0.0) * fault_share, 1 - fault_share
    return replace(
        row,
        seconds=(row.seconds or 0.0) * remaining,
        ci95=None if row.ci95 is None else (row.ci95[0] * remaining, row.ci95[1] * remaining),
        ops=(*row.ops, OpChange(name=_MOVED, seconds=-seconds)) if row.ops else (),
        notes=(*row.notes, Note(MOVED_BY, f"{units.seconds(abs(seconds))} is {_MOVED}")),
    )
