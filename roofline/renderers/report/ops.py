"""Write all ops of a step into one table: the rows are data, and the page's script sorts, filters and shows them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from roofline import units
from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.analysis.caches.counted import counted_on, counters_on
from roofline.core.vocabulary import BOUNDS, CLASSES
from roofline.renderers import _tables, _words
from roofline.renderers._sums import per_op
from roofline.renderers._words import plain
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
AFTER = (("roof", "limited by"), ("source", "work known"))


def ops(runs: Sequence[Run]) -> tuple[Html, list[dict[str, Any]]]:
    """Write the section and, for the script, the rows of each run."""
    return section("ops", "Every op", for_each_run(runs, _run)), [rows(run.analysis) for run in runs]


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
    table = tag("table", tag("caption", tag("span", f"All {_words.counted(number, 'op')} of one step")),
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
    return [(key, words) for key, words in AFTER if key != "source" or len(sources) > 1]


def _filters(run: Run) -> Html:
    """Write a field for each name and a choice of each word that differs among the ops."""
    profile = run.analysis.profile
    classes = {run.analysis.op_class(op) for op in profile.ops}
    phases = dict.fromkeys(profile.phases[op.phase] for op in profile.ops)
    sources = dict.fromkeys(profile.signatures[op.signature].cost.quality for op in profile.ops)
    chosen: list[tuple[str, str, list[str]]] = [
        ("class", "class", [op_class for op_class in CLASSES if op_class in classes]),
        ("phase", "phase", [plain(phase, 60) for phase in phases]),
        ("source", "work known", list(sources)),
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
    return tag("div", *typed, *selects, class_="controls screen")


def rows(analysis: WorkAnalysis) -> dict[str, Any]:
    """Write the rows for the script, those of most time first; of a step that was not timed those of most FLOP."""
    profile, table, per_row = analysis.profile, analysis.table, per_op(analysis)
    largest = per_row.seconds if isinstance(analysis, Analysis) else per_row.work
    order = np.argsort(-largest, kind="stable")[:MOST].tolist()
    signatures = profile.signatures
    numbers = [profile.ops[row].signature for row in order]
    work = [units.flop(_known(per_row.work[row], per_row.work_known[row])) for row in order]
    traffic = [units.byte(_known(per_row.traffic[row], per_row.traffic_known[row])) for row in order]
    script_rows: dict[str, Any] = {
        "rows": len(order),
        "signature": numbers,
        "phase_number": [profile.ops[row].phase for row in order],
        "op": columns.names(signatures[number].name for number in numbers),
        "shapes": columns.names(signatures[number].shapes for number in numbers),
        "class": columns.texts(analysis.op_class(profile.ops[row]) for row in order),
        "phase": columns.names((profile.phases[profile.ops[row].phase] for row in order), 60),
        "scope": columns.names(profile.scopes[profile.ops[row].scope] for row in order),
        "kernel": columns.names(_kernel(analysis, row) for row in order),
        "source": columns.texts(signatures[number].cost.quality for number in numbers),
        "note": columns.names((signatures[number].cost.note for number in numbers), 300),
        "work": columns.texts(work),
        "traffic": columns.texts(traffic),
        "by": {
            "work": columns.numbers(_known(per_row.work[row], per_row.work_known[row]) for row in order),
            "traffic": columns.numbers(_known(per_row.traffic[row], per_row.traffic_known[row]) for row in order),
        },
    }
    if counters_on(profile, analysis.device):
        by_counters = counted_on(profile, analysis.device)
        moved = [
            None if math.isnan(moved) else moved for moved in (by_counters.read + by_counters.written)[order].tolist()
        ]
        script_rows["counted"] = columns.texts(map(units.byte, moved))
        script_rows["by"]["counted"] = columns.numbers(moved)
    if not isinstance(analysis, Analysis):
        return script_rows
    wall = analysis.wall
    costed = [per_row.own[row] > per_row.uncosted[row] for row in order]
    seconds = [float(per_row.seconds[row]) for row in order]
    rates = [_rate(per_row.work[row], per_row.own[row], per_row.work_known[row]) for row in order]

    def of_wall(values: Any) -> list[float | None]:
        return [float(values[row]) / wall if is_costed else None for row, is_costed in zip(order, costed, strict=True)]

    floors, reaches, losses = of_wall(per_row.floor), of_wall(per_row.reach), of_wall(per_row.loss)
    attained = [
        _attained(per_row.floor[row], per_row.own[row], is_costed) for row, is_costed in zip(order, costed, strict=True)
    ]
    highest = [
        _attained(per_row.reach[row], per_row.own[row], is_costed) for row, is_costed in zip(order, costed, strict=True)
    ]
    script_rows |= {
        "time": columns.texts(map(units.seconds, seconds)),
        "share": columns.texts(_tables.percent(time / wall) for time in seconds),
        "floor": columns.texts(map(_tables.between, floors, reaches)),
        "loss": columns.texts(map(_loss, floors, reaches, losses)),
        "rate": columns.texts(map(units.flop_rate, rates)),
        "attained": columns.texts(map(_tables.between, attained, highest)),
        "roof": columns.texts(_roof(analysis, row) for row in order),
        "ceiling": columns.names((table.ceiling[row] for row in order), 80),
    }
    script_rows["by"] |= {
        "time": columns.numbers(seconds),
        "share": columns.numbers(seconds),
        "floor": columns.numbers(floors),
        "loss": columns.numbers(losses),
        "rate": columns.numbers(rates),
        "attained": columns.numbers(attained),
    }
    return script_rows


def _known(quantity: float, is_known: bool) -> float | None:
    return float(quantity) if is_known else None


def _rate(work: float, own_seconds: float, is_known: bool) -> float | None:
    return float(work / own_seconds) if is_known and own_seconds > 0 else None


def _attained(floor: float, own_seconds: float, costed: bool) -> float | None:
    return float(floor / own_seconds) if costed and own_seconds > 0 else None


def _loss(floor: float | None, reach: float | None, loss: float | None) -> str:
    if floor is None or reach is None or loss is None:
        return units.UNKNOWN
    return _tables.between(loss - (reach - floor), loss)


def _roof(analysis: WorkAnalysis, row: int) -> str:
    return "near ridge" if analysis.table.near_ridge[row] else BOUNDS[int(analysis.table.bound[row])]


def _kernel(analysis: WorkAnalysis, row: int) -> str:
    """Name the kernel of most time, and count the others."""
    kernels = analysis.profile.ops[row].kernels
    if not kernels:
        return ""
    longest = max(kernels, key=lambda pair: pair[1])[0]
    others_counted = f" (and {len(kernels) - 1} more)" if len(kernels) > 1 else ""
    return analysis.profile.kernels[longest][: 2 * TITLE] + others_counted
