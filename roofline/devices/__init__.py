"""Load devices from their datasheets: one TOML per device, every number with its source.

A datasheet has one memory bandwidth. It is stored as `dram.any` and expanded here to every access pattern:
the bus of a GPU carries either direction at that rate, so it bounds any mix of reading and writing.

A user's own file needs no more than a name, a kind and figures, which may be plain numbers (`matrix.bf16 = 181e12`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import msgspec

from roofline import plugins
from roofline.core import files, validate
from roofline.core.decoding import UndecodableError, from_json, read_toml
from roofline.core.device import DRAM, Cache, Ceiling, Device
from roofline.errors import InputError

#: A device file holds a few kilobytes.
_LARGEST = 4 << 20
_FORM = "docs/imports.md#a-device-of-your-own shows the form"
#: The figures that may stand in a family; an executor, which launches, may have any name.
_PRECISIONS = (*("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp4", "int8"), "complex64", "complex128")
_FIGURES = {
    "matrix": _PRECISIONS,
    "vector": _PRECISIONS,
    "dram": ("any", *DRAM),
    "link": ("h2d", "d2h", "peer", "network"),
    "cache": ("l1", "l2", "llc"),
    "latency": ("kernel",),
}


class _Figure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Hold a number of a datasheet; `source` is a key of `sources`, or the citation itself."""

    value: float
    source: str


class _Level(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Hold the `size` [byte] of a cache.

    usable: "writes" if reads and writes measured that size, "reads" if only reads did, "assumed" if nothing did.
    """

    level: str
    size: float
    source: str = ""
    usable: Literal["writes", "reads", "assumed"] = "assumed"


#: Remark in the source of a size: what measured it.
_USABLE = {
    "writes": "usable by reads and writes",
    "reads": "usable by reads alone; with writes it was not measured",
    "assumed": "all of it is assumed to be usable, which was not measured",
}


class _Sheet(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Hold the content of a TOML. Units: FLOP/s, byte/s, byte; s for a launch.

    match: patterns of the whole name that the driver gives, letter case ignored.
    memory_range: sizes that the driver may report; it tells variants of one name apart.
    matrix, ..., latency: figures, or numbers alone, whose source is the file.
    reached: by family, the rates that published benchmarks reached.
    date: the day on which the sources were read, ISO 8601.
    """

    name: str
    kind: Literal["cpu", "cuda", "rocm"]
    date: str | None = None
    match: tuple[str, ...] = ()
    memory_range: tuple[float, float] | None = None
    sources: dict[str, str] = {}
    memory: float | None = None
    aliases: tuple[str, ...] = ()
    matrix: dict[str, _Figure | float] = {}
    vector: dict[str, _Figure | float] = {}
    dram: dict[str, _Figure | float] = {}
    link: dict[str, _Figure | float] = {}
    cache: dict[str, _Figure | float] = {}
    launch: dict[str, _Figure | float] = {}
    latency: dict[str, _Figure | float] = {}
    reached: dict[str, dict[str, _Figure]] = {}
    caches: tuple[_Level, ...] = ()

    def cite(self, source: str) -> str:
        return self.sources.get(source, source) or f"the device file of {self.name}, which names no source"

    def fits(self, name: str, memory_bytes: float | None, kind: str) -> bool:
        """Tell whether a device that its driver calls so, with this memory [byte] (None: unknown), may be this one."""
        if self.kind != kind or not any(re.fullmatch(pattern, name.strip(), re.IGNORECASE) for pattern in self.match):
            return False
        if memory_bytes is None or self.memory_range is None:
            return True
        return self.memory_range[0] <= memory_bytes <= self.memory_range[1]

    def device(self) -> Device:
        families = ("matrix", "vector", "dram", "link", "cache", "launch", "latency")
        figures = {
            name: figure for family in families for name, figure in _expand_family(family, getattr(self, family))
        }
        reached = {name: figure for family, by in self.reached.items() for name, figure in _expand_family(family, by)}
        if strays := reached.keys() - figures.keys():
            raise InputError(f"{self.name}: {min(strays)} was reached of no figure in the file; correct [reached].")
        return Device(
            name=self.name,
            kind=self.kind,
            ceilings={
                name: Ceiling(
                    value=figure.value,
                    source=self.cite(figure.source),
                    date=self.date,
                    reached=reached[name].value if name in reached else None,
                    reached_by=self.cite(reached[name].source) if name in reached else "",
                )
                for name, figure in figures.items()
            },
            caches=tuple(
                Cache(level=c.level, size=c.size, source=f"{self.cite(c.source)} ({_USABLE[c.usable]})")
                for c in self.caches
            ),
            memory=self.memory,
            aliases=self.aliases,
        )


def _expand_family(family: str, figures: Mapping[str, _Figure | float]) -> Iterator[tuple[str, _Figure]]:
    """Yield the figures of a family by ceiling name; for main memory, `any` stands for each pattern not listed."""
    variants = DRAM if family == "dram" else tuple(figures)
    for variant in variants:
        figure = figures.get(variant, figures.get("any"))
        if figure is not None:
            yield f"{family}.{variant}", figure if isinstance(figure, _Figure) else _Figure(figure, "")


def _sheet(path: Path) -> _Sheet:
    """Read a device file. Raises InputError where it is none, or has a figure of a name that nothing looks up."""
    sheet = read_toml(path, _LARGEST, "a device file", _FORM, _Sheet)
    for family, known in _FIGURES.items():
        for variant in getattr(sheet, family):
            if variant not in known:
                raise InputError(
                    f"{path}: there is no figure {family}.{variant}; {family} has {', '.join(known)}; {_FORM}."
                )
    return sheet


@cache
def _sheets() -> Mapping[str, _Sheet]:
    folder = plugins.folder(__name__)
    return MappingProxyType({name: _sheet(folder / f"{name}.toml") for name in names()})


def names() -> tuple[str, ...]:
    """List the devices that have a datasheet, by the names that `load` takes."""
    return plugins.names(__name__, ".toml")


def load(name: str) -> Device:
    """Load the device called `name`: a datasheet's name or alias, or the path of a TOML, a calibration or a profile.

    Raises InputError, naming the alternatives, for any other name.
    """
    path = Path(name)
    if path.suffix in (".toml", ".json"):
        if not path.exists():
            raise InputError(f"There is no file {name}; `roofline devices` lists the devices known by name.")
        device = _sheet(path).device() if path.suffix == ".toml" else _load_saved(path)
        validate.check_device(device, name)
        return device
    wanted = name.strip().lower().replace("_", "-").replace(" ", "-")
    sheets = _sheets()
    for card, sheet in sheets.items():
        if wanted in (card, *sheet.aliases):
            return sheet.device()
    called = [card for card, sheet in sheets.items() if sheet.fits(name, None, sheet.kind)]
    cards = called or [card for card in sheets if card.startswith(f"{wanted}-")]
    if len(called) == 1:
        return sheets[called[0]].device()
    if cards:
        raise InputError(f"{name!r} is no single card: give {' or '.join(cards)}.")
    raise InputError(f"There is no device called {name!r}; there are: {', '.join(sheets)}.")


class _Holder(msgspec.Struct, frozen=True):
    """Decode only the device of a larger file: a calibration or a profile."""

    device: msgspec.Raw = msgspec.Raw()  # empty where there is none


def _load_saved(path: Path) -> Device:
    """Read the device of a calibration or of a profile, or a device written as JSON by itself."""
    from roofline.core.schema import MAX_BYTES

    content = files.read(path, MAX_BYTES, "a device file")
    try:
        device = bytes(from_json(content, _Holder).device)
        return from_json(device or content, Device)
    except UndecodableError as error:
        raise InputError(f"{path} holds no device ({error}); write one with `roofline calibrate`.") from error


def fitting(name: str, memory_bytes: float | None = None, kind: str = "cuda") -> tuple[str, ...]:
    """List the cards, by the names that `load` takes, which a device may be that its driver calls `name`.

    memory_bytes: the memory [byte] that the driver reports, None where it is not known.
    """
    return tuple(card for card, sheet in _sheets().items() if sheet.fits(name, memory_bytes, kind))


def datasheet(name: str, memory_bytes: float | None = None, kind: str = "cuda") -> Device | None:
    """Find the datasheet of the device that its driver calls `name`; None where none fits, or several do.

    memory_bytes: the memory [byte] that the driver reports; it tells variants apart (A100 with 40 and 80 GB)
    and keeps slices of a GPU (MIG) from passing for the whole. The returned device has this memory.
    """
    found = [sheet for sheet in _sheets().values() if sheet.fits(name, memory_bytes, kind)]
    if len(found) != 1:
        return None
    device = found[0].device()
    return device if memory_bytes is None else msgspec.structs.replace(device, memory=memory_bytes)
