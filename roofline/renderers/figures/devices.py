"""Devices compared by their ceilings: one roofline each, with ridge points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.core.device import Device
from roofline.errors import InputError
from roofline.renderers._words import plain
from roofline.renderers.figures import _roofs, _style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The precisions shown of a device that no profile asks for any of: the widest and the fastest in common use.
COMMON = ("fp32", "bf16")


def figure(items: Sequence[Analysis | Device], width: float) -> tuple[Figure, str]:
    """The rooflines of all devices on one pair of axes."""
    from matplotlib.lines import Line2D

    shown: dict[str, tuple[Device, list[str]]] = {}
    for item in items:
        device = item.device if isinstance(item, Analysis) else item
        asked = _roofs.precisions(item) if isinstance(item, Analysis) else []
        name = plain(device.name)
        before = shown[name][1] if name in shown else []
        shown[name] = (device, list(dict.fromkeys([*before, *asked])))
    if len(shown) > len(_style.SERIES):
        raise InputError(f"A figure can tell {len(_style.SERIES)} devices apart, and {len(shown)} were given.")
    lines = [_roofs.ceilings(device, used or list(COMMON), vector=False) for device, used in shown.values()]
    fig = _style.canvas(width, 0.45 + 0.17 * len(lines) + (0.72 if width < 5 else 0.45) * width)
    axes = fig.subplots()
    _roofs.limits(axes, lines, [], width)
    handles = []
    for (colour, style), line in zip(_style.SERIES, lines, strict=False):
        # The slopes lie close together: the legend names them.
        _roofs.draw(axes, line, colour, style, slopes_named=False)
        handles.append(Line2D([], [], color=colour, linestyle=style))
    axes.set(xlabel="intensity [FLOP/byte of main-memory traffic]", ylabel="attainable FLOP/s")
    names = [f"{name}: {', '.join(_slopes(line))}" for name, line in zip(shown, lines, strict=True)]
    _style.keys(fig, handles, names, 1 if width < 5 else min(2, len(shown)))
    told = [_caption(device, line) for (device, _), line in zip(shown.values(), lines, strict=True)]
    return fig, " ".join(["Rooflines of devices; rings are the ridge points.", *told])


def _slopes(lines: _roofs.Ceilings) -> list[str]:
    return [f"{units.byte_rate(rate)}" for _, rate in lines.slopes] or ["bandwidth not known"]


def _caption(device: Device, lines: _roofs.Ceilings) -> str:
    peaks = [f"{name} {units.flop_rate(rate)}" for name, rate in lines.peaks]
    ridges = [f"{name} {units.intensity(peak / rate)}" for name, peak in lines.peaks for _, rate in lines.slopes]
    used = ("dram.", *(f"matrix.{name}" for names, _ in lines.peaks for name in names.split(", ")))
    sources = dict.fromkeys(plain(c.source) for name, c in device.ceilings.items() if name.startswith(used))
    ceilings = ", ".join([*peaks, *(f"main memory {rate}" for rate in _slopes(lines))])
    return (
        f"{plain(device.name)}: {ceilings}; ridge points {', '.join(ridges) or units.UNKNOWN} ({'; '.join(sources)})."
    )
