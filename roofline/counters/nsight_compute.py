"""Read the counts of kernels by Nsight Compute (`ncu`), and write the command that counts one step.

`ncu --csv` prints a table in one of two shapes, with its own lines (`==PROF== ...`) and the program's around it: with
`--page raw` a row per kernel, a column per metric and the units below the heading; else a row per kernel and metric,
with the columns "Metric Name", "Metric Unit" and "Metric Value". Source: the guide of the Nsight Compute CLI
(docs.nvidia.com/nsight-compute/NsightComputeCli), Console Output.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from roofline.core import files
from roofline.core.validate import LARGEST
from roofline.errors import InputError
from roofline.units import quote

TOOL = "Nsight Compute"
DRAM_READ, DRAM_WRITTEN = "dram__bytes_read.sum", "dram__bytes_write.sum"
CACHE, TIME = "lts__t_bytes.sum", "gpu__time_duration.sum"
METRICS = (DRAM_READ, DRAM_WRITTEN, CACHE, TIME)
#: Metrics that a table must have, those of main memory.
_NEEDED = (DRAM_READ, DRAM_WRITTEN)
#: By choice, far beyond a table of one step, in which a kernel takes about half a kilobyte.
MAX_BYTES = 64 * 1024 * 1024
MAX_KERNELS = 100_000
#: A line that begins a table has these columns.
_HEADING = ("ID", "Kernel Name")
_LONG = ("Metric Name", "Metric Unit", "Metric Value")
_SIZES = {"byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12}
_TIMES = {
    **{"nsecond": 1e-9, "usecond": 1e-6, "msecond": 1e-3, "second": 1.0},
    **{"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0},
}
_UNITS = dict.fromkeys((DRAM_READ, DRAM_WRITTEN, CACHE), _SIZES) | {TIME: _TIMES}
#: 1024, 1,024.5 or 1.5e+06: digits alone or in threes, a decimal point, an exponent.
_NUMBER = re.compile(r"([0-9]+|[0-9]{1,3}(,[0-9]{3})+)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")
#: 1.024 or 1.024.512: threes behind points, as some locales part thousands.
_POINTED = re.compile(r"[1-9][0-9]{0,2}(\.[0-9]{3})+")
#: Units whose counts are whole numbers.
_WHOLE = ("byte", "ns", "nsecond")
_CURE = "count again with the command that `roofline counters PROFILE` prints"


@dataclass(frozen=True, slots=True)
class Kernel:
    """Hold the counts of one launch of a kernel.

    read, written: bytes from and to main memory. through_cache: bytes through the last-level cache; seconds: its time
    while it was counted. Either is None where the table lacks it.
    """

    name: str
    read: float
    written: float
    through_cache: float | None = None
    seconds: float | None = None


def command(program: Sequence[str], table: str, cache_control: str = "none") -> list[str]:
    """Write the command, word by word, that counts the kernels of `program` between cudaProfilerStart and -Stop.

    table: the path of its CSV. cache_control: "none" leaves each kernel the cache as the previous kernel left it, as in
    a step; "all", ncu's default, empties it before each. Clocks are left alone: bytes do not depend on them. Numbers
    are those of the locale C, since others part thousands by points.
    """
    words = ["env", "LC_ALL=C", "ncu", "--profile-from-start", "off"]
    words += ["--cache-control", cache_control, "--clock-control", "none", "--target-processes", "application-only"]
    words += ["--metrics", ",".join(METRICS), "--csv", "--page", "raw", "--print-units", "base", "--log-file", table]
    return [*words, *program]


def read(table: Path) -> list[Kernel]:
    """Read the kernels from a table of ncu's, in the order of their launches.

    Raises InputError, with the cure, where it cannot be read, holds no kernel, lacks bytes of main memory, or has an
    impossible number.
    """
    return parse(files.read(table, MAX_BYTES, "a table of ncu").decode("utf-8", "replace"), str(table))


def parse(text: str, source: str) -> list[Kernel]:
    """Parse the text of a table, as `read` does; source: its name in errors."""
    # `splitlines` would end lines inside hostile names, too. A file of Windows may begin with a byte-order mark.
    lines = (line.rstrip("\r").removeprefix("\ufeff") for line in text.split("\n"))
    heading = next((line for line in lines if line.startswith('"') and _is_heading(line)), "")
    if not heading:
        raise InputError(f"{source} holds no table of ncu: {_CURE}.")
    # Lines of ncu and the program between the rows do not begin with a quote.
    rows = csv.reader(chain([heading], (line for line in lines if line.startswith('"'))), strict=True)
    try:
        names = next(rows)
        columns = {name: place for place, name in enumerate(names)}
        long = all(name in columns for name in _LONG)
        kernels = list((_per_metric if long else _per_kernel)(columns, _check_rows(rows, len(names), source), source))
    except csv.Error as error:
        raise InputError(f"{source} is damaged ({error}): {_CURE}.") from None
    if not kernels:
        raise InputError(
            f"{source} counted no kernel: does its program run a step between cudaProfilerStart and -Stop?"
        )
    return kernels


def _is_heading(line: str) -> bool:
    """Return whether a line has the columns of a heading; a name may hold their names in quotation marks."""
    return all(f'"{name}"' in line for name in _HEADING) and all(name in next(csv.reader([line])) for name in _HEADING)


def _check_rows(rows: Iterator[list[str]], cells: int, source: str) -> Iterator[list[str]]:
    """Yield the rows. Raises InputError for one with more or fewer cells, and for the heading of a second table."""
    for number, row in enumerate(rows, 1):
        if all(name in row for name in _HEADING):
            raise InputError(f"{source} holds a second table, from row {number} on: count again into a new file.")
        if len(row) != cells:
            raise InputError(f"{source} is damaged: row {number} has {len(row)} cells and not {cells}; {_CURE}.")
        yield row


def _per_kernel(columns: dict[str, int], rows: Iterator[list[str]], source: str) -> Iterator[Kernel]:
    """Yield the kernels of the raw page: a row of units, then one row per kernel."""
    units = next(rows, [])
    _check_metrics([name for name in METRICS if name in columns and units], source)
    places = [(name, columns[name], units[columns[name]]) for name in METRICS if name in columns]
    name_of = columns["Kernel Name"]
    processes: set[str] = set()
    for number, row in enumerate(rows):
        _check_process(columns, row, processes, number, source)
        yield _kernel(row[name_of], {name: _amount(name, row[place], unit, source) for name, place, unit in places})


def _per_metric(columns: dict[str, int], rows: Iterator[list[str]], source: str) -> Iterator[Kernel]:
    """Yield the kernels of the other pages: several rows per kernel, each with one metric."""
    metric, unit, amount = (columns[name] for name in _LONG)
    counted: dict[str, tuple[str, dict[str, float]]] = {}
    processes: set[str] = set()
    for row in rows:
        name, amounts = counted.setdefault(row[columns["ID"]], (row[columns["Kernel Name"]], {}))
        _check_process(columns, row, processes, len(counted) - 1, source)
        if row[metric] in METRICS:
            amounts[row[metric]] = _amount(row[metric], row[amount], row[unit], source)
    for name, amounts in counted.values():
        _check_metrics(list(amounts), source)
        yield _kernel(name, amounts)


def _kernel(name: str, amounts: dict[str, float]) -> Kernel:
    return Kernel(name, amounts[DRAM_READ], amounts[DRAM_WRITTEN], amounts.get(CACHE), amounts.get(TIME))


def _check_metrics(names: Sequence[str], source: str) -> None:
    missing = [name for name in _NEEDED if name not in names]
    if missing:
        raise InputError(f"{source} does not say {missing[0]}: {_CURE}.")


def _check_process(columns: dict[str, int], row: list[str], processes: set[str], number: int, source: str) -> None:
    """Refuse the kernel of that number: of a second process, or one too many."""
    processes.add(row[columns["Process ID"]] if "Process ID" in columns else "")
    if len(processes) > 1:
        raise InputError(f"{source} counted more than one process: count a single one.")
    if number >= MAX_KERNELS:
        raise InputError(f"{source} counted more than {MAX_KERNELS:,} kernels: count a single step.")


def _amount(metric: str, text: str, unit: str, source: str) -> float:
    """Parse a number of bytes or seconds. Raises InputError for a wrong unit, and for no number."""
    text = text.strip()
    if text == "n/a":  # of which ncu may give no unit
        raise InputError(f"{source} has no number for {metric} (n/a): this ncu does not count it on this device.")
    factor = _UNITS[metric].get(unit)
    if factor is None:
        raise InputError(f"{source} has {metric} in {quote(unit)}, which is no unit of it: add --print-units base.")
    if unit in _WHOLE and _POINTED.fullmatch(text):
        raise InputError(
            f"{source} says {quote(text)} {unit} for {metric}, whose point may be a thousands separator: set LC_ALL=C "
            "and count again."
        )
    if not _NUMBER.fullmatch(text) or (amount := float(text.replace(",", "")) * factor) > LARGEST:
        raise InputError(
            f"{source} says {quote(text)} for {metric}, which is not a count: set LC_ALL=C and count again."
        )
    return amount
