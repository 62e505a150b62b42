"""Build the sections of a sweep: the map, where the answer changes, what limits each backend, and all points."""

from __future__ import annotations

from collections.abc import Callable

from roofline import units
from roofline.content import palette, wording
from roofline.content.facts import energy, sweep
from roofline.renderers.report.parts.grids import cell, head, table
from roofline.renderers.report.parts.html import Html, name, tag
from roofline.renderers.report.parts.run import section
from roofline.sweeping.grid import GAP, Cell, Grid, Result

#: What a cell of a map says, how it looks, and what it says when it is pointed at.
_Said = tuple[object, str, str]
_NOTE = f"{sweep.DISTURBED} {sweep.PREDICTED}"


def verdict(grid: Grid) -> Html:
    """Build the beginning: who is fastest in how many cells."""
    line = f"{sweep.subject(grid)}: {sweep.headline(grid)}."
    return section("verdict", "Verdict", tag("p", line, class_="lead"))


def fastest(grid: Grid) -> Html | None:
    """Build the map of the fastest backends; None for one backend."""
    if len(grid.backends) < 2:
        return None
    about = (
        "A cell has the fastest backend, where its run and that of the next one tell that it is, with how many times "
        f"the next one takes, and the 95 % interval of that. {_NOTE}"
    )
    maps = [_map(part, sweep.place(part.part), lambda shown: _winner(grid, shown)) for part in sweep.tables(grid)]
    return section("map", "Fastest backend", tag("p", about, class_="note"), maps)


def borders(grid: Grid) -> Html | None:
    """Build the sentences: what is missing, and where the answer changes; None where there is nothing to say."""
    sentences = [tag("li", sentence) for _, sentence in sweep.sentences(grid)]
    return section("borders", "Where the answer changes", tag("ul", sentences)) if sentences else None


def limits(grid: Grid) -> Html:
    """Build a map for each backend: the time of a step, and the largest part of it."""
    about = (
        "A cell has the time of a step, and the largest part of it; pale where that is not over half of it, or the run "
        f"was disturbed. {_NOTE}"
    )
    maps = [
        _map(part, f"{sweep.place(part.part)}, {wording.plain(backend, 40)}", _limit_of(backend))
        for part in sweep.tables(grid)
        for backend in grid.backends
    ]
    return section("limits", "What limits each backend", tag("p", about, class_="note"), maps)


def points(grid: Grid) -> Html:
    """Build the table of all points, in the order of the plan."""
    heads = [head(words, number=False) for words in ("model", "mode", "precision")]
    heads += [head("batch"), head("tokens"), head("backend", number=False)]
    heads += [head(words) for words in ("a step", "95 % interval", "per second", "first step")]
    heads += [head(words, number=False) for words in ("largest part", "notes", "profile")]
    rows = [_point(result) for cell_ in grid.cells for result in cell_.results]
    return section("points", "All points", table(_NOTE, heads, rows, "All points of the sweep"))


# --------------------------------------------------------------------------------------------------------------- maps


def _map(part: sweep.Table, caption: str, say: Callable[[Cell], _Said]) -> Html:
    heads = [head("batch", number=False)]
    heads += [head(f"{seq} tokens" if seq else "a step", number=False) for seq in part.seqs]
    rows = []
    for batch in part.batches:
        cells = [_cell(part.by_place.get((batch, seq)), say) for seq in part.seqs]
        rows.append(tag("tr", tag("th", str(batch) if batch else "default", scope="row"), cells))
    return tag("div", table(caption, heads, rows, f"Map of {caption}"), class_="map")


def _cell(shown: Cell | None, say: Callable[[Cell], _Said]) -> Html:
    if shown is None:
        return tag("td")
    words, look, title = say(shown)
    return tag("td", words, class_=look or None, title=title or None)


def _winner(grid: Grid, shown: Cell) -> _Said:
    times = [f"{wording.plain(result.point.backend, 40)}: {_state(result)}" for result in shown.results]
    if shown.predicted is not None:
        look = f"series-{grid.backends.index(shown.predicted) % len(palette.SERIES)} pale"
        return f"≈{wording.plain(shown.predicted, 40)}", look, "; ".join(times)
    if len(shown.machines) > 1:
        return "different devices", "unsettled", "; ".join(times)
    if shown.fastest is None:
        return wording.conjunction(list(dict.fromkeys(map(_state, shown.results)))), "empty", "; ".join(times)
    fastest = wording.plain(shown.fastest, 40)
    look = f"series-{grid.backends.index(shown.fastest) % len(palette.SERIES)}"
    mark = "!" if sweep.is_disturbed(shown) else ""
    if shown.factor is None:
        return f"{fastest} alone{mark}", f"{look} pale", "; ".join(times)
    if not shown.is_settled:
        return f"not settled{mark}", "unsettled", "; ".join(times)
    words = [f"{fastest} {units.significant(shown.factor)}x{mark}", tag("small", sweep.interval(shown))]
    return words, look, "; ".join(times)


def _limit_of(backend: str) -> Callable[[Cell], _Said]:
    def say(shown: Cell) -> _Said:
        result = sweep.result_of(shown, backend)
        if result is None or result.limit is None:
            return _state(result) if result else "", "empty", ""
        look = "idle" if result.limit == GAP else f"limit-{result.limit}"
        mark = "!" if result.is_disturbed else ""
        words = [f"{units.seconds(result.wall)}{mark}", tag("small", sweep.limit(result.limit))]
        return words, look if result.mostly else f"{look} pale", _limit(result)

    return say


# ------------------------------------------------------------------------------------------------------------- points


def _state(result: Result) -> str:
    """Say how long a step takes, or why that is not known."""
    if result.wall is not None or result.predicted:
        return sweep.time(result) + (", disturbed" if result.is_disturbed else "")
    return "not measured" if result.failure is None else result.failure.kind


def _limit(result: Result) -> str:
    if result.limit is None or result.share is None:
        return units.UNKNOWN
    return f"{sweep.limit(result.limit)}, {units.percent(result.share, 0)}"


def _point(result: Result) -> Html:
    point = result.point
    notes = ["!"] if result.is_disturbed else []
    notes += energy.words(result.joules, result.joules_per_sample, result.joules_relative)
    if result.failure is not None:
        notes.append(f"{result.failure.kind}: {wording.plain(result.failure.text, 200)}")
    elif result.is_missing:
        notes.append("not measured yet")
    interval = units.seconds_between(*result.range) if result.range else units.UNKNOWN
    rate = units.UNKNOWN if result.samples is None else units.significant(result.samples)
    return tag(
        "tr",
        tag("th", name(point.model), scope="row"),
        [cell(words, number=False) for words in (point.mode, point.precision)],
        [cell(units.UNKNOWN if size is None else str(size)) for size in (point.batch, point.seq)],
        cell(name(point.backend, 40), number=False),
        [cell(words) for words in (sweep.time(result) or units.UNKNOWN, interval, rate, units.seconds(result.first))],
        cell(_limit(result), number=False),
        tag("td", "; ".join(notes), class_="words"),
        cell(tag("code", point.key) if result.wall is not None else "", number=False),
    )
