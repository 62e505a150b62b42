"""Write all ops of a step into one table: the rows are data, and the page's script sorts, filters and shows them.

Equal ops, with one signature in one phase, are one row with their number, until each is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from roofline import units
from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.analysis.caches.counted import counted_on, counters_on
from roofline.analysis.columns import numbered
from roofline.analysis.scope_names import name_scopes
from roofline.analysis.scope_tree import to_depth
from roofline.content import tables, wording
from roofline.content.sums import Sums, ceilings, limits, per_op, summed
from roofline.content.wording import plain
from roofline.core.arrays import Array
from roofline.core.rows import Ints
from roofline.core.vocabulary import CLASSES
from roofline.renderers.report.parts import columns
from roofline.renderers.report.parts.html import TITLE, Html, tag
from roofline.renderers.report.parts.run import Run, for_each_run, section

#: Rows of the table: of more ops those of most time are listed, and the tables above have the sums of all.
MOST = 10_000
#: Columns of words (key, heading); those of a name are cut on the screen and whole in the title.
WORDS = (("op", "op"), ("class", "class"), ("phase", "phase"), ("scope", "scope"), ("kernel", "kernel"))
#: Columns of numbers (key, heading).
NUMBERS = (
    ("time", "time"),
    ("share", "time %"),
    ("floor", "minimum %"),
    ("loss", "above %"),
    ("work", "FLOP"),
    ("traffic", "bytes"),
    ("rate", "FLOP/s"),
    ("attained", "of roof %"),
)
AFTER = (("roof", "limited by"), ("known", "work known"))


def ops(runs: Sequence[Run]) -> tuple[Html, list[dict[str, Any]]]:
    """Write the section and, for the script, the rows of each run: of each op, and of all equal ones."""
    data = [{"each": rows(run.analysis), "equal": rows(run.analysis, equal=True)} for run in runs]
    return section("ops", "Every op", for_each_run(runs, _run)), data


def _run(run: Run) -> Html:
    analysis = run.analysis
    number = len(analysis.profile.ops)
    if not number:
        return tag("p", "No op was recorded.", class_="note")
    # The op and its numbers first: where the page is narrow, what is left of the table has them.
    (name, called), *words_of = _words_of(analysis)
    timed = isinstance(analysis, Analysis)
    numbers = list(NUMBERS) if timed else [("work", "FLOP"), ("traffic", "bytes")]
    if timed and counters_on(analysis.profile, analysis.device):
        numbers.append(("counted", "bytes counted"))
    after = [(key, words) for key, words in _after(analysis) if timed or key != "roof"]
    heads = [
        (name, called, False),
        *((key, words, True) for key, words in numbers),
        *((key, words, False) for key, words in (*after, *words_of)),
    ]
    sorts = [
        tag(
            "th",
            tag("button", words, type="button", data_sort=key),
            scope="col",
            class_=f"of-{key} number" if is_number else f"of-{key}",
            aria_sort="descending" if key == ("time" if timed else "work") else None,
        )
        for key, words, is_number in heads
    ]
    table = tag("table", tag("caption", tag("span", f"All {wording.counted(number, 'op')} of one step")),
                tag("thead", tag("tr", sorts)), tag("tbody"), class_="ops")  # fmt: skip
    scroll = tag("div", table, class_="scroll", tabindex=0, role="region", aria_label="Table of ops")
    pages = tag(
        "div",
        tag("button", "‹ previous", type="button", data_turn="-1"),
        tag("span", class_="count", aria_live="polite"),
        tag("button", "next ›", type="button", data_turn="1"),
        tag("button", "clear filters", type="button", data_clear=True, hidden=True),
        class_="pages screen",
    )
    missing = tag("noscript", tag("p", "This table needs the page's script; the one by op above has the largest ops."))
    parts = [missing, _filters(run), pages, scroll]
    if number > MOST:
        quantity = "time" if timed else "FLOP"
        parts.append(
            tag("p", f"The {MOST:,} ops of most {quantity}; the tables above have the sums of all.", class_="note")
        )
    return tag("div", parts, data_ops=run.number)


def _words_of(analysis: WorkAnalysis) -> list[tuple[str, str]]:
    """Choose the columns of words that tell ops apart: no phase where all share it, no kernels where none are known."""
    profile = analysis.profile
    phases = {op.phase for op in profile.ops}
    is_useful = {"phase": len(phases) > 1, "scope": any(profile.scopes), "kernel": bool(profile.kernels)}
    return [(key, words) for key, words in WORDS if is_useful.get(key, True)]


def _after(analysis: WorkAnalysis) -> list[tuple[str, str]]:
    """Choose the columns behind the numbers: the quality of the work only where it differs."""
    sources = {analysis.profile.signatures[op.signature].cost.quality for op in analysis.profile.ops}
    return [(key, words) for key, words in AFTER if key != "known" or len(sources) > 1]


def _filters(run: Run) -> Html:
    """Write a field for each name and a choice of each word that differs among the ops."""
    profile = run.analysis.profile
    classes = {run.analysis.op_class(op) for op in profile.ops}
    phases = dict.fromkeys(profile.phases[op.phase] for op in profile.ops)
    sources = dict.fromkeys(profile.signatures[op.signature].cost.quality for op in profile.ops)
    chosen: list[tuple[str, str, list[str]]] = [
        ("class", "class", [op_class for op_class in CLASSES if op_class in classes]),
        ("phase", "phase", [plain(phase, 60) for phase in phases]),
        ("known", "work known", list(sources)),
    ]
    selects = [
        tag(
            "label",
            tag("span", words),
            tag(
                "select", tag("option", "all", value=""), [tag("option", choice) for choice in choices], data_filter=key
            ),
        )
        for key, words, choices in chosen
        if len(choices) > 1
    ]
    typed = [
        tag("label", tag("span", words), tag("input", type="search", data_search=key, autocomplete="off"))
        for key, words in _words_of(run.analysis)
        if key in ("op", "scope", "kernel")
    ]
    fold = tag("input", type="checkbox", checked=True, data_equal=True)
    folded = tag("label", tag("span", "equal ops"), tag("span", fold, " in one row"))
    return tag("div", folded, *typed, *selects, class_="controls screen")


def rows(analysis: WorkAnalysis, *, equal: bool = False) -> dict[str, Any]:
    """Write the rows for the script, those of most time first; of a step that was not timed those of most FLOP.

    equal: one row for all ops with one signature in one phase; else one for each op.
    """
    profile, of = analysis.profile, analysis.table.columns
    every = np.arange(len(profile.ops))
    code, first = numbered(of.signature, of.phase) if equal else (every, every)
    ops = per_op(analysis)
    sums = summed(ops, code, len(first))
    largest = sums.seconds if isinstance(analysis, Analysis) else sums.work
    order = np.argsort(-largest, kind="stable")[:MOST].tolist()
    heads = [profile.ops[first[row]] for row in order]
    signatures = [profile.signatures[op.signature] for op in heads]
    amounts: dict[str, list[float | None]] = {
        "work": [_known(sums.work[row], ops.work_known[first[row]]) for row in order],
        "traffic": [_known(sums.traffic[row], ops.traffic_known[first[row]]) for row in order],
    }
    if counters_on(profile, analysis.device):
        by_counters = counted_on(profile, analysis.device)
        moved = np.bincount(code, weights=by_counters.read + by_counters.written, minlength=len(first))
        amounts["counted"] = [None if math.isnan(count) else count for count in moved[order].tolist()]
    script_rows: dict[str, Any] = {
        "rows": len(order),
        "signature": [op.signature for op in heads],
        "phase_number": [op.phase for op in heads],
        "op": columns.names(signature.name for signature in signatures),
        "shapes": columns.names(signature.shapes for signature in signatures),
        "class": columns.texts(map(analysis.op_class, heads)),
        "phase": columns.names((profile.phases[op.phase] for op in heads), 60),
        "known": columns.texts(signature.cost.quality for signature in signatures),
        "note": columns.names((signature.cost.note for signature in signatures), 300),
        "by": {key: columns.numbers(column) for key, column in amounts.items()},
    }
    for key, column in amounts.items():
        script_rows[key] = columns.written(units.flop if key == "work" else units.byte, column)
    if equal:
        script_rows["times"] = columns.texts(map(units.count, sums.ops[order].tolist()))
        script_rows |= _places(analysis, code, order)
    else:
        script_rows["scope"] = columns.names(profile.scopes[op.scope] for op in heads)
        script_rows["kernel"] = columns.names(_kernel(analysis, op.kernels) for op in heads)
    if isinstance(analysis, Analysis):
        _add_times(script_rows, analysis, sums, order, amounts["work"])
        roofs, bound_by = limits(analysis, code, first), ceilings(analysis, code, first)
        script_rows["roof"] = columns.texts(roofs[row] for row in order)
        script_rows["ceiling"] = columns.names((bound_by[row] for row in order), 80)
    return script_rows


def _add_times(
    script_rows: dict[str, Any], analysis: Analysis, sums: Sums, order: Sequence[int], work: Sequence[float | None]
) -> None:
    """Add the columns of time to some rows. order: their places among the sums; work: their FLOP."""
    seconds = [float(sums.seconds[row]) for row in order]
    ends = [sums.attained(row) for row in order]

    def of_wall(values: Array) -> list[float | None]:
        return [float(values[row]) / analysis.wall if sums.costed[row] > 0 else None for row in order]

    floors, reaches, losses = of_wall(sums.floor), of_wall(sums.reach), of_wall(sums.loss)
    rates = [
        None if flop is None or sums.own[row] <= 0 else float(flop / sums.own[row])
        for row, flop in zip(order, work, strict=True)
    ]
    script_rows |= {
        "time": columns.written(units.seconds, seconds),
        "share": columns.written(lambda time: tables.percent(time / analysis.wall), seconds),
        "floor": columns.written(tables.between, floors, reaches),
        "loss": columns.written(tables.above, floors, reaches, losses),
        "rate": columns.written(units.flop_rate, rates),
        "attained": columns.written(tables.between, *zip(*ends, strict=True)),
    }
    script_rows["by"] |= {
        "time": columns.numbers(seconds),  # of shares, too
        "floor": columns.numbers(floors),
        "loss": columns.numbers(losses),
        "rate": columns.numbers(rates),
        "attained": columns.numbers(low for low, _ in ends),
    }


def _places(analysis: WorkAnalysis, code: Ints, order: Sequence[int]) -> dict[str, Any]:
    """Write the scopes and the kernels of the ops of each row. code: the row of each op."""
    profile = analysis.profile
    scopes, kernels = ([dict[Any, None]() for _ in order] for _ in range(2))
    folded, place = to_depth(profile, None).scopes, {row: place for place, row in enumerate(order)}
    for op, row in zip(profile.ops, code.tolist(), strict=True):
        if row in place:
            scopes[place[row]][folded[op.scope]] = None
            kernels[place[row]][op.kernels] = None
    return {
        "scope": columns.names(name_scopes(list(names)) for names in scopes),
        "kernel": columns.names(_kernel(analysis, [pair for op in ops for pair in op]) for ops in kernels),
    }


def _known(quantity: float, is_known: bool) -> float | None:
    return float(quantity) if is_known else None


def _kernel(analysis: WorkAnalysis, kernels: Sequence[tuple[int, int]]) -> str:
    """Name the kernel of most time, and count the others. kernels: name and time of each."""
    if not kernels:
        return ""
    longest = max(kernels, key=lambda pair: pair[1])[0]
    others = len({name for name, _ in kernels} - {longest})
    return analysis.profile.kernels[longest][: 2 * TITLE] + (f" (and {others} more)" if others else "")
