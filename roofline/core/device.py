"""A device and its ceilings: the best rates it can be driven at, each with where the number comes from.

Names of ceilings are `family.variant`:

    matrix.<precision>        [FLOP/s]  dense matrix products; fp64, fp32, tf32, bf16, fp16, fp8, fp4, int8
    vector.<precision>        [FLOP/s]  fused multiply-adds outside matrix units
    function.<name>           [1/s]     evaluations of exp, tanh, erf, ..., and of `random` and `random (Philox)`, the
                                        numbers that a library and that generated code draw
    dram.<pattern>            [byte/s]  main memory; read, write, copy, triad, inplace, update (see roofline.py)
    cache.<level>             [byte/s]  cache bandwidth of level l1, l2, llc; valid up to the level's usable size
    launch.<executor>         [s]       least time of one launch, by executor (torch-eager, cuda-graph, ...); `copy`:
                                        of a copy or a fill, which is no kernel
    latency.kernel            [s]       least time of a kernel that reads, computes and writes; no roof: it
                                        says how soon the device is at its rate (projection/startup.py)
    link.<name>               [byte/s]  each way: h2d and d2h of the host link, peer of the links to other GPUs, which
                                        is the roof of no op, and network

A ceiling that is not known is absent: it drops its term from the floor and the verdict names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

#: How main memory is used, each with a ceiling of its own.
DRAM = ("read", "write", "copy", "triad", "inplace", "update")
#: Measured ceilings that are believed, as shares of the datasheet's: lower, something held it back, and higher,
#: something else was measured. By choice; boost clocks explain 3 %.
SHEET_LOW, SHEET_HIGH = 0.5, 1.03
#: Threads that waited for a processor longer than this share of their time: others used it. By choice.
CONTENDED = 0.05


class Ceiling(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A limit of a device.

    value: the best rate seen or specified [FLOP/s, 1/s, byte/s; s for a launch].
    source: the citation of a datasheet, or how it was measured (method, clock, driver).
    spread: (best - median) / best within the measurement; None for a datasheet figure.
    drift: how much lower it was another time: 1 - low / high of two measurements; what hangs on it is near the ridge.
    date: the day it was measured or read, ISO 8601.
    waited: the share of their time in which the measuring threads waited for a processor that others had; of a GPU the
    share of two looks, before and after, that saw another process on it. The least of several measurements; None where
    nobody looked (a datasheet's, what one thread measures) or nobody tells (a GPU without NVML, most containers).
    sustained: the median rate of the same work without a pause, where that was measured: `value` is what a burst of
    milliseconds reaches, before power and heat lower the clock. clock: the median clock of that time [Hz].
    high: of a launch floor that a trace shows, the most that it may be [s]. shortest: beside one the shortest launch of
    the trace [s], which no launch floor of it exceeds; it is the floor itself where nothing lower is known.
    reached: beside a datasheet's figure the best that a published benchmark got of it, with its source (`reached_by`):
    devices are compared by what they reach, and no floor rests on it.
    """

    value: float
    source: str
    spread: float | None = None
    drift: float | None = None
    date: str | None = None
    waited: float | None = None
    flag: str | None = None
    sustained: float | None = None
    clock: float | None = None
    high: float | None = None
    shortest: float | None = None
    reached: float | None = None
    reached_by: str = ""

    @property
    def from_trace(self) -> bool:
        """Return whether it is a launch floor that a trace shows, and not what is known of the device."""
        return self.shortest is not None and (self.high is not None or self.value == self.shortest)

    @property
    def contended(self) -> bool:
        """Return whether others used the device each time it was measured, so that it may be far too low."""
        return self.waited is not None and self.waited > CONTENDED


class Cache(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A level of cache: its name, usable size [byte] (None: unknown) and where the size comes from."""

    level: str
    size: float | None
    source: str


class Device(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that runs ops, and its ceilings by name.

    caches: smallest level first; the last one is the last-level cache.
    shared_ports: matrix and vector work use the same ports, so their times add (CPUs without matrix units).
    memory: size of the main memory [byte].
    ceilings_of: the device that the ceilings are those of, where the user gave them (`--ceilings`): it may be another
    one than `name`, which the step ran on. "": they are the device's own.
    number: of equal devices that work together; all else is of all of them, and their name is "4 x NVIDIA H100".
    """

    name: str
    kind: str  # "cpu", "cuda" or "rocm"
    ceilings: Mapping[str, Ceiling]
    caches: tuple[Cache, ...] = ()
    shared_ports: bool = False
    memory: float | None = None
    aliases: tuple[str, ...] = ()
    conditions: Mapping[str, str] = {}
    ceilings_of: str = ""
    number: Annotated[int, msgspec.Meta(ge=1)] = 1

    def rate(self, name: str) -> float | None:
        """Return the value of a ceiling, or None where it is not known."""
        ceiling = self.ceilings.get(name)
        return None if ceiling is None else ceiling.value

    def spread(self, name: str) -> float:
        """Return the spread of a ceiling, 0 where it has none (a datasheet's)."""
        ceiling = self.ceilings.get(name)
        return 0.0 if ceiling is None or ceiling.spread is None else ceiling.spread

    def uncertainty(self, name: str) -> float:
        """Return how much lower a ceiling may be than its value: within a measurement or from one to another."""
        ceiling = self.ceilings.get(name)
        return 0.0 if ceiling is None else max(ceiling.spread or 0.0, ceiling.drift or 0.0)

    @property
    def contended(self) -> tuple[str, ...]:
        """Return the names of the ceilings that were measured only while others used the device."""
        return tuple(name for name, ceiling in self.ceilings.items() if ceiling.contended)

    @property
    def without_caches(self) -> Device:
        """Return the device with main memory alone."""
        ceilings = {name: ceiling for name, ceiling in self.ceilings.items() if not name.startswith("cache.")}
        return msgspec.structs.replace(self, ceilings=ceilings, caches=())

    def family(self, family: str) -> dict[str, float]:
        """Return the values of all ceilings of one family, by variant."""
        prefix = f"{family}."
        return {
            name.removeprefix(prefix): ceiling.value
            for name, ceiling in self.ceilings.items()
            if name.startswith(prefix)
        }

    def merge_measurements(self, ceilings: Mapping[str, Ceiling]) -> Device:
        """Merge in `ceilings` measured another time: the best rate of both, and how far they are apart.

        What others' load made low says nothing of the device: it may raise a ceiling and adds no drift to another.
        """
        merged = dict(self.ceilings)
        for name, measured in ceilings.items():
            previous = merged.get(name)
            if previous is None:
                merged[name] = measured
                continue
            high, low = (measured, previous) if measured.value > previous.value else (previous, measured)
            # Of a time the least is best.
            best, worse = (low, high) if name.startswith("launch.") else (high, low)
            # Functions are not measured twice in one way: each framework has code of its own for them.
            incomparable = name.startswith("function.") or worse.contended
            difference = 0.0 if incomparable else 1 - low.value / high.value
            drift = max(difference, previous.drift or 0.0, measured.drift or 0.0)
            # What two traces say of a launch at most holds for both.
            highest = (
                None if best.high is None else min(ceiling.high or ceiling.value for ceiling in (previous, measured))
            )
            waited = min(
                (ceiling.waited for ceiling in (previous, measured) if ceiling.waited is not None), default=None
            )
            merged[name] = msgspec.structs.replace(best, drift=drift, high=highest, waited=waited)
        return msgspec.structs.replace(self, ceilings=merged)

    @property
    def single_name(self) -> str:
        """Return the name of one of the devices, as its driver reports it."""
        return self.name.removeprefix(f"{self.number} x ")

    @property
    def single_memory(self) -> float | None:
        """Return the memory of one of the devices [byte]."""
        return None if self.memory is None else self.memory / self.number

    def together(self, number: int) -> Device:
        """Return as many of this device: the sums of their rates, caches and memories, and one launch after another
        on each at the same time. Processors that a program divides into several devices stay what they are.
        """
        if self.kind == "cpu" or number == self.number:
            return self
        many = number / self.number
        ceilings = {
            name: msgspec.structs.replace(
                ceiling,
                **{
                    key: value / many if name.startswith(("launch.", "latency.")) else value * many
                    for key in ("value", "sustained", "high", "shortest", "reached")
                    if (value := getattr(ceiling, key)) is not None
                },
            )
            for name, ceiling in self.ceilings.items()
        }
        return msgspec.structs.replace(
            self,
            name=f"{number} x {self.single_name}" if number > 1 else self.single_name,
            ceilings=ceilings,
            caches=tuple(
                msgspec.structs.replace(cache, size=None if cache.size is None else cache.size * many)
                for cache in self.caches
            ),
            memory=None if self.memory is None else self.memory * many,
            number=number,
        )

    @property
    def llc(self) -> float | None:
        """Return the usable size of the last-level cache [byte]."""
        return self.caches[-1].size if self.caches else None

    @property
    def serves(self) -> float | None:
        """Up to which size the last-level cache is known to serve what it holds [byte]: None without its bandwidth."""
        return self.llc if self.llc and f"cache.{self.caches[-1].level}" in self.ceilings else None

    @property
    def bandwidth(self) -> float | None:
        """Return the best main-memory bandwidth of a reading or copying pattern [byte/s]: the roof of a plot."""
        rates = self.family("dram")
        return max((rates[p] for p in ("read", "triad", "copy") if p in rates), default=None)

    def ridge_point(self, precision: str) -> float | None:
        """Return the intensity [FLOP/byte] at which the matrix and the memory ceiling meet."""
        peak, bandwidth = self.rate(f"matrix.{precision}"), self.bandwidth
        return None if peak is None or bandwidth is None else peak / bandwidth
