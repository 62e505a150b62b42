"""Which backend is fastest, and where each one's step went: one bar per run, by bound, the fastest on top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from roofline import units
from roofline.analysis.analysis import Analysis, analyze
from roofline.comparison.labels import called
from roofline.comparison.parity.parity import Parity, parity
from roofline.comparison.ranking import check_timed, on_common_ceilings
from roofline.renderers import _words
from roofline.renderers.comparison import _comparing
from roofline.renderers.figures import _bars, _style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Runs in one figure: a page is no higher.
MOST = 30


def figure(items: Sequence[Analysis], width: float) -> tuple[Figure, str]:
    """Stacked horizontal bars in ms, the time of a step and its factor to the fastest behind each."""
    from matplotlib.patches import Patch

    from roofline.errors import InputError

    if len(items) > MOST:
        raise InputError(f"{len(items)} runs do not fit in one figure: give at most {MOST}.")
    for number, item in enumerate(items, 1):
        check_timed(item.profile, f"Profile {number}, {_words.plain(item.profile.backend, 60)},")
    # One set of ceilings for all runs of a device, or equal ops would have different floors.
    runs = [analyze(profile) for profile in on_common_ceilings([item.profile for item in items])]
    names = called(run.profile for run in runs)
    order = sorted(range(len(runs)), key=lambda number: runs[number].wall)
    best, longest = runs[order[0]], runs[order[-1]].wall
    judged = [parity(run, best, (name, names[order[0]])) for name, run in zip(names, runs, strict=True)]
    narrow = width < 5
    row = 0.2 if narrow else 0.24
    fig = _style.canvas(width, (1.05 if narrow else 0.9) + row * len(items))
    axes = fig.subplots()
    seen: dict[str, dict[str, Any]] = {}
    for place, number in enumerate(order):
        left = 0.0
        for label, seconds, look, ink in _bars.segments(runs[number]):
            axes.barh(place, seconds * 1e3, left=left * 1e3, height=0.72, **look)
            seen.setdefault(label, look)
            text = f"{100 * seconds / runs[number].wall:.0f} %"
            if not narrow and seconds / longest * 0.5 * width > 0.07 * len(text):
                ground = look["facecolor"] if label.endswith("floor") else "white"
                box = {"facecolor": ground, "pad": 0.6, "linewidth": 0} if look.get("hatch") else None
                middle = (left + seconds / 2) * 1e3
                axes.text(middle, place, text, ha="center", va="center", size=_style.SMALL, color=ink, bbox=box)
            left += seconds
        axes.annotate(
            _behind_bar(runs[number], best, judged[number]),
            (left * 1e3, place),
            (3, 0),
            textcoords="offset points",
            ha="left",
            va="center",
            size=_style.SMALL,
        )
    # The names take what is theirs; what is written behind the longest bar needs room inside the axes.
    told = [_style.fit(names[number], 1.4 if narrow else 2.0, _style.SMALL) for number in order]
    beside = _inches(max(len(_behind_bar(runs[number], best, judged[number])) for number in order))
    room = width - _inches(max(map(len, told))) - 0.15
    axes.set(
        xlim=(0, longest * 1e3 * room / max(0.3 * room, room - beside)),
        ylim=(len(items) - 0.45, -0.55),
        xlabel="time of one step [ms]",
    )
    axes.set_yticks(range(len(order)), told, size=_style.SMALL)
    axes.tick_params(axis="y", length=0)
    labels = [label for label in _bars.ORDER if label in seen]
    _style.keys(fig, [Patch(**seen[label]) for label in labels], labels, 2 if narrow else 4)
    return fig, _caption([(names[number], runs[number], judged[number]) for number in order])


def _inches(letters: int) -> float:
    """About how wide a short text is [in]."""
    return 0.58 * _style.SMALL / 72 * letters


def _behind_bar(run: Analysis, best: Analysis, judged: Parity) -> str:
    """What stands behind a bar: "122 ms  1.83x", and a dagger where the run is not comparable with the fastest."""
    factor = "" if run is best else f"  {run.wall / best.wall:.2f}x"
    return f"{units.seconds(run.wall)}{factor}{' †' if judged.verdict == 'not comparable' else ''}"


def _caption(runs: Sequence[tuple[str, Analysis, Parity]]) -> str:
    told = [
        f"Time of one step of {_comparing.subject([run for _, run, _ in runs])}, the fastest first, by what bounds it; "
        "behind each bar the time and how many times that of the fastest it is. Solid: floor, the least time the ops "
        "can take on the device; pale: loss, own time − floor; a bound says which roof is above an op, not that it got "
        "there. Percentages are of the step."
    ]
    fastest = _words.plain(runs[0][0], 60)
    for name, run, judged in runs:
        name = _words.plain(name, 60)
        told.append(f"{name}: {_words.verdict(run)} {_words.provenance(run)}")
        if judged.verdict == "not comparable":
            reasons = " ".join(_words.plain(one.text, 300) for one in judged.of("refused"))
            told.append(f"† {name} is not comparable with {fastest}: {reasons}")
        elif judged.verdict == "named differences":
            named = " ".join(_words.plain(one.text, 300) for one in judged.of("named"))
            told.append(f"Against {fastest}: {named}")
    return " ".join(told)
