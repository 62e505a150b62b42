"""Compare devices by their ceilings: one roofline each, with ridge points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from roofline import units
from roofline.analysis.analysis import WorkAnalysis
from roofline.comparison.common_ceilings import best_ceilings
from roofline.content import wording
from roofline.content.points import points
from roofline.content.roofs import MAIN, Roofs, extent, roofs
from roofline.content.wording import plain
from roofline.core.device import Device
from roofline.errors import InputError
from roofline.renderers.figures import _ceilings, _frame, _labels, _measure, _style
from roofline.renderers.figures._written import Caption

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What it draws of a profile without times: nothing of its ops.
WITHOUT_TIMES = ""
#: The precisions shown of a device that no profile asks for any of: the widest and the fastest in common use.
COMMON = ("fp32", "bf16")


def figure(items: Sequence[WorkAnalysis | Device], width: float) -> tuple[Figure, Caption]:
    """Draw the rooflines of all devices on one pair of axes; the key repeats each ceiling."""
    seen: dict[str, list[Device]] = {}
    asked: dict[str, list[str]] = {}
    for item in items:
        name, device = _name(item), item.device if isinstance(item, WorkAnalysis) else item
        used = points(item).used if isinstance(item, WorkAnalysis) else []
        seen.setdefault(name, []).append(device)
        asked.setdefault(name, []).extend(precision for family, precision in used if family == "matrix")
    shown = {name: (best_ceilings(devices), list(dict.fromkeys(asked[name]))) for name, devices in seen.items()}
    if len(shown) > len(_style.SERIES):
        raise InputError(
            f"A figure shows at most {len(_style.SERIES)} devices, and {len(shown)} are given: leave some out."
        )
    lines = [_lines(device, used or COMMON) for device, used in shown.values()]
    within = _ceilings.limits(extent(lines, [], None), lines, drawn=False)
    if within is None:
        # A step that was only counted has a device without ceilings, whose name says nothing.
        named = [name for name, (device, _) in shown.items() if device.ceilings]
        of = f" of {wording.conjunction(named)}" if named else ""
        raise InputError(f"No peak is known{of}, so there is no roof: `roofline calibrate` measures this machine.")
    heading = _frame.Heading(
        tuple(_measure.wrap(_title(list(shown), lines), width - 2 * _frame.EDGE, _frame.TITLE)), ()
    )
    fig = _drawn(list(shown), lines, within, heading, width)
    short = [_short(name, line) for name, line in zip(shown, lines, strict=True)]
    long = [_long(name, device, line) for (name, (device, _)), line in zip(shown.items(), lines, strict=True)]
    explanation = "The highest FLOP/s that an op can reach, by its intensity; marks are the ridge points."
    return fig, Caption(" ".join(heading.title), " ".join([explanation, *short]), " ".join([explanation, *long]))


def _name(item: WorkAnalysis | Device) -> str:
    """Name a device; of a CPU that a step ran on with its threads, which have ceilings of their own."""
    if isinstance(item, WorkAnalysis) and not item.device.ceilings_of:
        return wording.device(item) or plain(item.device.name)
    device = item.device if isinstance(item, WorkAnalysis) else item
    return plain(device.ceilings_of or device.name)


def _lines(device: Device, precisions: Sequence[str]) -> Roofs:
    """Collect the peaks of some precisions, and main memory."""
    lines = roofs(device, [("matrix", precision) for precision in precisions])
    return Roofs(lines.peaks, tuple(slope for slope in lines.slopes if slope.name == MAIN))


def _title(names: Sequence[str], lines: Sequence[Roofs]) -> str:
    """Say which device has the highest peak, and how high it is; of one device its peak and bandwidth."""
    rates = [line.peaks[0].rate if line.peaks else 0.0 for line in lines]
    first = max(range(len(rates)), key=rates.__getitem__)
    peak = f"{units.flop_rate(rates[first])} ({lines[first].peaks[0].name})"
    if len(names) > 1:
        return f"{names[first]} has the highest peak, {peak}"
    return f"{names[0]}: at most {peak}, {', '.join(_slopes(lines[0]))}"


def _drawn(
    names: Sequence[str], lines: Sequence[Roofs], within: _ceilings.Limits, heading: _frame.Heading, width: float
) -> Figure:
    entries = []
    for (colour, style, marker), name, line in zip(_style.SERIES, names, lines, strict=False):
        look = {"color": colour, "linestyle": style, "marker": marker, "markersize": 3.4, "markerfacecolor": "white"}
        label = f"{name}: {', '.join(_rates(line))}"
        entries.append(_frame.Key(label, {**look, "linewidth": 1.1, "markeredgewidth": 0.8}, "line"))
    keys = _frame.keys(entries, width)
    left_edge = _frame.EDGE + 0.13 + _measure.widest(_frame.log_labels(within.low, within.high)) + 0.06
    room, top = width - left_edge - 0.1, _frame.EDGE + heading.height + 0.04
    high = (0.62 if width < _frame.WIDE else 0.42) * width
    fig = _frame.blank(width, top + high + _frame.TICKS + _frame.LABEL + 0.03 + keys.height)
    heading.draw(fig)
    within = within.with_room_above([peak.rate for line in lines for peak in line.peaks], high)
    axes = _frame.panel(fig, left_edge, top, room, high)
    axes.set(xscale="log", yscale="log", xlim=within[:2], ylim=within[2:])
    _frame.logarithmic(axes.xaxis, room)
    _frame.logarithmic(axes.yaxis, high, upright=True)
    axes.tick_params(which="minor", length=1.5, width=0.4)
    board = _labels.Board(_labels.window(axes))
    for (colour, style, marker), line in zip(_style.SERIES, lines, strict=False):
        _ceilings.draw(axes, line, within, colour, style, marker)
        _ceilings.take(board, axes, line, within)
    for (colour, _, _), line in zip(_style.SERIES, lines, strict=False):
        # What finds no place stands in the key, as all do; the slopes lie close together and stand only there.
        _ceilings.label(board, axes, line, within, colour, slopes=False)
    _frame.upright(fig, _frame.EDGE, top, high, ["attainable FLOP/s", "FLOP/s"])
    below = top + high + _frame.TICKS
    _frame.name_below(fig, left_edge + room / 2, "intensity [FLOP/byte of main-memory traffic]", below)
    _frame.draw_keys(fig, keys, below + _frame.LABEL + 0.03)
    return fig


def _slopes(lines: Roofs) -> list[str]:
    return [units.byte_rate(slope.rate) for slope in lines.slopes] or ["bandwidth not known"]


def _rates(lines: Roofs) -> list[str]:
    return [*(f"{peak.name} {units.flop_rate(peak.rate)}" for peak in lines.peaks), *_slopes(lines)]


def _short(name: str, lines: Roofs) -> str:
    ridges = [
        f"{peak.name} {units.intensity(peak.rate / slope.rate)}" for peak in lines.peaks for slope in lines.slopes
    ]
    return f"{name}: {', '.join(_rates(lines))}; ridge points {', '.join(ridges) or units.UNKNOWN}."


def _long(name: str, device: Device, lines: Roofs) -> str:
    """Describe the ceilings of a device with their sources."""
    used = ("dram.", *(f"matrix.{name}" for peak in lines.peaks for name in peak.precisions))
    sources = dict.fromkeys(plain(c.source) for kind, c in device.ceilings.items() if kind.startswith(used))
    return f"{_short(name, lines).removesuffix('.')} ({'; '.join(sources)})."
