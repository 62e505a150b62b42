"""The verb `counters`, and what the others say of a profile with counters."""

from __future__ import annotations

import csv
import io
import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import handmade
import msgspec
import pytest
import raw_counters

from roofline import units
from roofline.analysis import analysis
from roofline.core.cost import unknown
from roofline.core.schema import Imported, load, save
from roofline.counters.nsight_compute import METRICS, parse
from roofline.errors import InputError

Run = Callable[..., Any]
Golden = Callable[[str, str], None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The counted inference step: its profile and its table."""
    save(raw_counters.profile("infer"), tmp_path / "p.json")
    (tmp_path / "ncu.csv").write_text(raw_counters.raw("infer"))
    return tmp_path


def test_without_a_table_it_prints_how_to_count(folder: Path, roofline: Run) -> None:
    ended = roofline("counters", "p.json")
    assert ended.code == 0
    words = shlex.split(next(line for line in ended.out.splitlines() if line.startswith("  env LC_ALL=C ncu ")))
    assert words[words.index("--metrics") + 1].split(",") == list(METRICS)
    assert words[-3:] == ["-m", "roofline.measuring.one_step", "p.json"]


def test_from_standard_input_the_command_names_no_file(
    folder: Path, roofline: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command is that of the file, whose name is not known."""
    of_file = roofline("counters", "p.json").out
    with (folder / "p.json").open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        ended = roofline("counters", "-")
    assert ended.code == 0
    assert ended.out == of_file.replace("p.json", "PROFILE") + (
        "PROFILE is the file of this profile, which came from standard input.\n"
    )


def test_of_an_import_the_program_is_the_users(folder: Path, roofline: Run) -> None:
    save(msgspec.structs.replace(raw_counters.profile("infer"), imported=Imported()), folder / "i.json")
    ended = roofline("counters", "i.json")
    assert ended.code == 0
    assert "PROGRAM\n" in ended.out
    assert "one_step" not in ended.out


def test_a_table_is_joined(folder: Path, roofline: Run) -> None:
    """The step read 2.53 and wrote 2.99 GB, of 3.73 and 2.78 GB that it must."""
    ended = roofline("counters", "p.json", "ncu.csv", "-o", "counted.json")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("2.53 GB read from and 2.99 GB written to main memory")
    counters = load(folder / "counted.json").counters
    assert counters is not None
    assert (counters.file, counters.kernels, counters.unjoined) == ("ncu.csv", 158, 0)
    assert msgspec.structs.replace(load(folder / "counted.json"), counters=None) == raw_counters.profile("infer")


def test_formulas_are_those_of_the_counted_ops(folder: Path, roofline: Run) -> None:
    """Kernels of two ops were not counted: the formulas of the other 544 ask for less than those of the step."""
    save(raw_counters.profile("train"), folder / "train.json")
    (folder / "ncu.csv").write_text(raw_counters.raw("train"))
    ended = roofline("counters", "train.json", "ncu.csv", "-o", "counted.json")
    profile = load(folder / "counted.json")
    assert profile.counters is not None
    costs = [
        profile.signatures[op.signature].cost
        for op, read in zip(profile.ops, profile.counters.read, strict=True)
        if read is not None
    ]
    read, written = (units.byte(sum(getattr(cost, f"bytes_{way}") for cost in costs)) for way in ("read", "written"))
    assert (read, written) == ("19.2 GB", "10.7 GB")
    assert (
        f"written to main memory by 544 of the 546 ops that launch kernels; the formulas give {read} and {written}; "
    ) in ended.out
    assert "by 544 of the 546 ops" in " ".join(roofline("show", "counted.json", "--details").out.split())


def test_counted_ops_without_a_formula_are_said(folder: Path, roofline: Run) -> None:
    profile = raw_counters.counted("infer")
    signatures, place = list(profile.signatures), max(profile.ops, key=lambda op: op.launches).signature
    signatures[place] = msgspec.structs.replace(signatures[place], cost=unknown("not counted"))
    number = sum(op.signature == place for op in profile.ops)
    save(msgspec.structs.replace(profile, signatures=tuple(signatures)), folder / "c.json")
    assert f"(no formula for {number} of them)" in " ".join(roofline("show", "c.json", "--details").out.split())


@pytest.mark.parametrize("words", [(), ("ncu.csv", "-o", "c.json")], ids=["the command", "a table"])
def test_a_profile_without_times_is_refused(words: tuple[str, ...], folder: Path, roofline: Run) -> None:
    save(msgspec.structs.replace(raw_counters.profile("infer"), profiled=None), folder / "p.json")
    ended = roofline("counters", "p.json", *words)
    assert ended.code == 2
    assert "counted and not timed" in ended.err
    assert not (folder / "c.json").exists()


def test_nothing_is_written_that_cannot_be_analysed(
    folder: Path, roofline: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise InputError("Not this one.")

    monkeypatch.setattr(analysis, "analyze_timed", refused)
    ended = roofline("counters", "p.json", "ncu.csv", "-o", "c.json")
    assert (ended.code, ended.out) == (2, "")
    assert not (folder / "c.json").exists()


def test_kernels_without_an_op_are_named(folder: Path, roofline: Run) -> None:
    """Names in a table are hostile: this one would colour the terminal."""
    strange = next(line for line in raw_counters.table("infer") if line.startswith('"0",'))
    strange = strange.replace(
        parse(raw_counters.raw("infer", strange), "ncu.csv")[0].name, "\x1b[31mhostile<int>(float)"
    )
    (folder / "ncu.csv").write_text(raw_counters.raw("infer", strange, strange))
    ended = roofline("counters", "p.json", "ncu.csv", "-o", "counted.json")
    assert ended.code == 0
    assert "Kernels without an op: ?[31mhostile x 2." in ended.out
    assert "\x1b" not in ended.out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("p.json", "ncu.csv"), 2, "-o"),
        (("p.json", "-o", "c.json"), 2, "table"),
        (("p.json", "ncu.csv", "-o", "p.json", "--force"), 2, "also the input"),
        (("p.json", "ncu.csv", "-o", "ncu.csv", "--force"), 2, "also the input"),
        (("p.json", "ncu.csv", "-o", "c.csv"), 2, ".json"),
        (("p.json", "none.csv", "-o", "c.json"), 2, "No such file"),
        (("p.json", "p.json", "-o", "c.json"), 2, "no table"),
        (("cpu.json", "ncu.csv", "-o", "c.json"), 2, "GPU"),
        (("cpu.json",), 2, "NVIDIA"),
        (("train.json", "ncu.csv", "-o", "c.json"), 4, "not of this step"),
    ],
)
def test_what_is_refused(arguments: tuple[str, ...], code: int, words: str, folder: Path, roofline: Run) -> None:
    save(handmade.profile(), folder / "cpu.json")
    save(raw_counters.profile("train"), folder / "train.json")
    ended = roofline("counters", *arguments)
    assert ended.code == code
    assert words in ended.err
    assert len(ended.err.splitlines()) == 1
    assert not (folder / "c.json").exists()


def test_show_has_counted_bytes_beside_compulsory_ones(folder: Path, roofline: Run, golden: Golden) -> None:
    save(raw_counters.counted("infer"), folder / "counted.json")
    golden("counted-class.txt", roofline("show", "counted.json", "--by", "class").out)
    shown, plain = (
        json.loads(roofline("show", name, "--format", "json", "--by", "op").out) for name in ("counted.json", "p.json")
    )
    assert shown["counters"] == {"tool": "Nsight Compute", "file": "ncu.csv", "kernels": 158, "unjoined": 0} | {
        "joined": 1.0, "busy": 1.0,
    }  # fmt: skip
    # docs/measured/h100/ncu-infer-none.json, by class, has the sums of 39 pointwise ops.
    row = shown["classes"]["pointwise"]
    assert row["counted_bytes_read"] == pytest.approx(909_913_600, rel=1e-6)
    assert row["counted_bytes_written"] == pytest.approx(751_986_432, rel=1e-6)
    assert row["uncounted_ops"] == 0
    assert (plain["counters"], plain["classes"]["pointwise"]["counted_bytes_read"]) == (None, None)
    assert plain["classes"]["pointwise"]["uncounted_ops"] is None
    assert shown["classes"]["transfer"]["kernels"] == 0
    assert (shown["classes"]["transfer"]["counted_bytes_read"], shown["classes"]["transfer"]["uncounted_ops"]) == (
        None,
        0,
    )
    assert [op["counted_bytes_read"] for op in plain["ops"]] == [None] * len(plain["ops"])
    assert [op["counted_bytes_written"] for op in shown["ops"]] == list(load(folder / "counted.json").counters.written)


@pytest.mark.parametrize("format", ["markdown", "latex", "csv", "perfetto"])
def test_other_formats_too(format: str, folder: Path, roofline: Run) -> None:
    save(raw_counters.counted("infer"), folder / "counted.json")
    assert "counted" in roofline("show", "counted.json", "--format", format).out


def test_the_table_of_ops_as_a_file(folder: Path, roofline: Run) -> None:
    counted = raw_counters.counted("infer")
    save(counted, folder / "counted.json")
    assert roofline("export", "counted.json", "-o", "ops.csv").code == 0
    rows = list(csv.DictReader(io.StringIO((folder / "ops.csv").read_text())))
    assert counted.counters is not None
    read = ["" if amount is None else amount for amount in counted.counters.read]
    assert ["" if not row["counted_bytes_read"] else float(row["counted_bytes_read"]) for row in rows] == [
        pytest.approx(amount) for amount in read
    ]


def test_the_page_and_the_roofline_show_both(folder: Path, roofline: Run) -> None:
    save(raw_counters.counted("infer"), folder / "counted.json")
    assert roofline("report", "counted.json", "-o", "page.html").code == 0
    page = (folder / "page.html").read_text()
    assert "bytes that hardware counted" in page
    assert "bytes counted" in page
    drawn = roofline("plot", "counted.json", "--kind", "roofline", "-o", "r.svg")
    assert drawn.code == 0
    assert "hardware counted" in drawn.out
