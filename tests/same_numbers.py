"""What every format must say of one measured step, and how a number that was printed is read back.

The truth is the JSON of `roofline show --by op`: every op with its time, work, traffic and floor. Sums and shares are
made of these here, anew; what a format has rounded must be what those round to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from roofline import plugins
from roofline.analysis.analysis import Analysis, analyze
from roofline.core.schema import Profile, load
from roofline.core.vocabulary import GROUP_OF

PLANTS = Path(__file__).parent / "data" / "plants"
#: Times, work and traffic of an op, as JSON, CSV and Parquet call them.
FIELDS = ("seconds", "own_seconds", "floor", "loss", "flops", "vector_flops", "bytes_read", "bytes_written")
COLUMNS = (
    *("FLOP %", "bytes %", "time", "time %", "% of busy", "minimum %", "above %", "FLOP/s vs matmul", "limited by"),
    "of roof %",
)
#: Columns of a text with long names, which come last.
OF_LONG = ("ops", "FLOP %", "bytes %", "time", "time %", "limited by", "of roof %")


@cache
def profile(letter: str = "a") -> Profile:
    """A step of 60 ops, measured; all of its work is known, and a cache evicts none of it: its floors are points."""
    measured = load(PLANTS / f"attention-against-gelu-{letter}.json")
    *smaller, last = measured.device.caches
    return replace(measured, device=replace(measured.device, caches=(*smaller, replace(last, size=1e12))))


@cache
def run(letter: str = "a") -> Analysis:
    return analyze(profile(letter))


@cache
def document(letter: str = "a") -> dict[str, Any]:
    return json.loads(plugins.load("roofline.renderers", "json", "format").render(run(letter), "op"))


def render(name: str, by: str, **more: Any) -> str:
    return plugins.load("roofline.renderers", name, "format").render(run(), by, **more)


def ops(letter: str = "a") -> list[dict[str, float | str]]:
    """The ops of the document with their work beside their times."""
    found = [{**op, **op["cost"]} for op in document(letter)["ops"]]
    assert all(op[field] is not None for op in found for field in FIELDS)
    return found


def named(op: Mapping[str, Any], by: str) -> str:
    return {
        "group": lambda: GROUP_OF[op["class"]],
        "class": lambda: op["class"],
        "block": lambda: op["block"],
        "op": lambda: f"{op['name']} {op['shapes']}".strip(),
    }[by]()


def sums(by: str, letter: str = "a") -> dict[str, dict[str, float]]:
    """What ops of one name add up to, in each of FIELDS; `ops` is how many there are."""
    found: dict[str, dict[str, float]] = {}
    for op in ops(letter):
        row = found.setdefault(named(op, by), dict.fromkeys(("ops", *FIELDS), 0.0))
        row["ops"] += 1
        for field in FIELDS:
            row[field] += float(op[field])
    return found


def cells(by: str) -> dict[str, dict[str, float]]:
    """What the columns of the tables must say of each row, the gap and the total: shares of the whole in percent."""
    rows, wall = sums(by), document()["wall"]["median"]
    whole = {field: sum(row[field] for row in rows.values()) for field in ("ops", *FIELDS)}
    matmul = sums("group")["matmul"]

    def work(row: Mapping[str, float]) -> float:
        return row["flops"] + row["vector_flops"]

    def moved(row: Mapping[str, float]) -> float:
        return row["bytes_read"] + row["bytes_written"]

    found = {
        name: {
            "ops": row["ops"],
            "FLOP %": 100 * work(row) / work(whole),
            "bytes %": 100 * moved(row) / moved(whole),
            "time": row["seconds"],
            "time %": 100 * row["seconds"] / wall,
            "% of busy": 100 * row["seconds"] / whole["seconds"],
            "minimum %": 100 * row["floor"] / wall,
            "above %": 100 * row["loss"] / wall,
            "FLOP/s vs matmul": work(row) / row["own_seconds"] / (work(matmul) / matmul["own_seconds"]),
            "of roof %": 100 * row["floor"] / row["own_seconds"],
        }
        for name, row in (*rows.items(), ("total", whole))
    }
    found["total"] |= {"time": wall, "time %": 100.0}
    return found | {"host time": {"time": document()["gap"], "time %": 100 * document()["gap"] / wall}}


PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "m": 1e-3, "µ": 1e-6, "n": 1e-9}


class Written(NamedTuple):
    """A number as it was printed: its unit without a prefix, and the ends of what rounds to it."""

    unit: str
    low: float
    high: float


def written(text: str) -> Written:
    """Of "5.17 ms", "94.4", "<0.1", "+0.47", "−467 µs": what may have been rounded to that."""
    found = re.fullmatch(r"([<>]?)([+−-]?)([\d,]+(?:\.(\d+))?)(?: ?([kMGTmµn]?)(s|FLOP/s|FLOP|B/s|B|%|x))?", text)
    assert found, f"no number: {text!r}"
    bound, sign, digits, decimals, prefix, unit = found.groups()
    factor = PREFIXES[prefix or ""] * (-1.0 if sign in ("−", "-") else 1.0)
    value, half = float(digits.replace(",", "")), 0.5 * 10.0 ** -len(decimals or "")
    ends = {"<": (0.0, value), ">": (value, 100.0)}.get(bound, (value - half, value + half))
    low, high = sorted(end * factor for end in ends)
    return Written(unit or "", low, high)


def holds(text: str, exact: float) -> bool:
    """Whether `exact` rounds to what was printed."""
    _, low, high = written(text)
    room = 1e-9 * max(abs(low), abs(high))
    return low - room <= exact <= high + room


Rows = dict[str, dict[str, str]]


def check_table(shown: Rows, by: str, columns: Sequence[str] = COLUMNS) -> None:
    """Every number of every row of a table."""
    expected = cells(by)
    assert shown.keys() == expected.keys()
    for name, row in shown.items():
        assert tuple(row) == tuple(columns)
        for column, text in row.items():
            if text in ("–", "") or column == "limited by":  # the gap has a time only
                assert column == "limited by" or name == "host time"
            else:
                assert holds(text, expected[name][column]), (name, column, text, expected[name][column])


def table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> Rows:
    """Rows by what is in their first column."""
    assert len({line[0] for line in lines}) == len(lines)
    return {line[0]: dict(zip(heads, line[1:], strict=True)) for line in lines}


def check_verdict(sentence: str) -> None:
    """The step's time, the shares of its bounds, and how close their ops come to their roofs."""
    found = document()
    wall = found["wall"]["median"]
    assert holds(re.search(r": ([\d.]+ \w+) per step", sentence)[1], wall)
    for bound in ("compute", "memory"):
        share, word, attained = re.search(
            rf"(\d+ %) {bound}-(bound|limited), at (\d+ %) of [^;]*[;.]", sentence
        ).groups()
        assert holds(share, 100 * found["bounds"][bound] / wall)
        low, high = found["bounds_attained"][bound]
        assert low == high
        assert holds(attained, 100 * low)
        assert word == ("bound" if low >= 0.5 else "limited")


def check_trace(text: str) -> None:
    """A slice per op, in microseconds with three decimals."""
    slices = [event for event in json.loads(text)["traceEvents"] if event["ph"] == "X"]
    for event, op in zip(slices, ops(), strict=True):
        told = event["args"]
        assert event["name"] == op["name"]
        assert event["dur"] == pytest.approx(1e6 * op["own_seconds"], abs=6e-4)
        assert told["floor [µs]"] == pytest.approx(1e6 * op["floor"], abs=6e-4)
        work = (told["matrix FLOP"], told["vector FLOP"], told["bytes read"], told["bytes written"])
        assert work == (op["flops"], op["vector_flops"], op["bytes_read"], op["bytes_written"])
