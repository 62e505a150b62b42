"""Derive what a published time implies on its device: a rate, the roof above it, and arithmetic that it excludes.

A rate above the ceiling of an arithmetic proves that another one was used, or that count or time are wrong. A rate
below it proves nothing: that arithmetic was possible. The rate is contractions over the whole time, so it is a lower
bound of what the products reached.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from math import prod

from roofline import devices
from roofline.core.device import Device
from roofline.published.publication import Cell, Note, Publication, Row, Work

#: What products may run in, slowest first, where a publication says that it computes in the first of them.
ALLOWED = {"fp32": ("fp32", "tf32"), "bf16": ("bf16",), "fp16": ("fp16",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Implied:
    """A cell under the ceilings of its device. Whatever is not known is None or empty.

    rate: [FLOP/s] over the whole time; speed: [byte/s] of what must be read.
    floors: arithmetic -> least time of the products in it [s]; floor_memory: least time of reading [s].
    shares: of the roofs: of the slowest arithmetic whose ceiling is above the rate, and of "memory", as far as FLOPs
    and bytes are known. roof: the one with the larger share, "" where none is known; share: of it. longer: how many
    times as long a step took as its figure says, by the notes. faster: than the stated arithmetic can be.
    """

    cell: Cell
    row: Row
    work: Work | None = None
    device: Device | None = None
    rate: float | None = None
    speed: float | None = None
    floors: dict[str, float]
    floor_memory: float | None = None
    shares: dict[str, float] = field(default_factory=dict)
    longer: float = 1.0
    faster: bool = False
    notes: tuple[Note, ...] = ()

    @property
    def roof(self) -> str:
        """Return the nearest roof."""
        return max(self.shares, key=lambda name: self.shares[name], default="")

    @property
    def share(self) -> float | None:
        """Return how much of the nearest roof was attained."""
        return self.shares.get(self.roof)

    def of(self, roof: str) -> float | None:
        """Return the least time under a roof over the published time: an arithmetic, whatever was used, or "memory"."""
        least = self.floor_memory if roof == "memory" else self.floors.get(roof)
        return None if least is None or not self.cell.seconds else least / self.cell.seconds

    @property
    def corrected(self) -> float | None:
        """Return the rate over the time of a step, where that is known to be another one than the figure [FLOP/s]."""
        return None if self.rate is None or self.longer == 1 else self.rate / self.longer


def cells_implied(publication: Publication, everything: bool = False) -> tuple[Implied, ...]:
    """Return what the cells imply of the version of a table that is shown first, or of all versions."""
    shown = publication.versions if everything else publication.versions[:1]
    return tuple(implied(publication, cell) for cell in publication.cells if cell.version in shown)


def implied(publication: Publication, cell: Cell) -> Implied:
    """Return what one cell implies."""
    row = publication.row(cell)
    notes = publication.notes_on(cell)
    counted = row.work and not any(note.uncounted for note in notes)
    figure_work = publication.work(row.work, cell.batch) if counted else None
    name = publication.devices.get(cell.hardware)
    device = _device(name) if name else None
    flops, read = (figure_work.flops, figure_work.bytes) if figure_work else (None, None)
    time = cell.seconds
    rate = flops / time if flops is not None and time else None
    speed = read / time if read is not None and time else None
    ceilings = _ceilings(device, row.stated)
    bandwidth = device.bandwidth if device else None
    floors = {name: flops / ceiling for name, ceiling in ceilings.items()} if flops is not None else {}
    shares = {}
    if rate is not None:
        above = next((name for name, ceiling in ceilings.items() if rate <= ceiling), "")
        shares = {above: rate / ceilings[above]} if above else {}
    if speed is not None and bandwidth is not None:
        shares["memory"] = speed / bandwidth
    return Implied(
        cell=cell,
        row=row,
        work=figure_work,
        device=device,
        rate=rate,
        speed=speed,
        floors=floors,
        floor_memory=read / bandwidth if read is not None and bandwidth is not None else None,
        shares=shares,
        longer=prod(note.longer for note in notes),
        faster=_faster(rate, ceilings.get(row.stated), speed, bandwidth),
        notes=notes,
    )


@cache  # a table has a hundred cells of one device
def _device(name: str) -> Device:
    return devices.load(name)


def _ceilings(device: Device | None, stated: str) -> dict[str, float]:
    """Return the matrix ceilings [FLOP/s] of what products may have run in, lowest first."""
    if device is None:
        return {}
    rates = {name: device.rate(f"matrix.{name}") for name in ALLOWED.get(stated, ())}
    return {name: rate for name, rate in rates.items() if rate is not None}


def _faster(rate: float | None, ceiling: float | None, speed: float | None, bandwidth: float | None) -> bool:
    compute = rate is not None and ceiling is not None and rate > ceiling
    return compute or (speed is not None and bandwidth is not None and speed > bandwidth)
