"""Tables of Nsight Compute: their two shapes, units and numbers, and damaged ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from roofline.counters import nsight_compute
from roofline.counters.nsight_compute import Kernel, command, parse, read
from roofline.errors import InputError

#: What `ncu --csv --page raw --print-units base` writes: its own lines, names, units, one line per kernel. By hand,
#: after the documentation of Nsight Compute; the columns before the metrics are not all of those that it has.
RAW = """==PROF== Connected to process 4711 (/usr/bin/python3.12)
==PROF== Profiling "vectorized_elementwise_kernel" - 0: 0%....50%....100% - 1 pass
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",\
"dram__bytes_read.sum","dram__bytes_write.sum","lts__t_bytes.sum","gpu__time_duration.sum"
"","","","","","","","","","","","byte","byte","byte","ns"
"0","4711","python3.12","somewhere","void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>\
, std::array<char *, 1>>(int, T2, T3)","1","7","(128, 1, 1)","(1, 1, 1)","0","9.0","1,024","0","2,048","1,500"
"1","4711","python3.12","somewhere","sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n","1","7","(128, 1, 1)","(9, 1, 1)","0",\
"9.0","4096","512.5","9000","2e+4"
==PROF== Disconnected from process 4711
"""
#: The table alone, as `--log-file` may have it.
BARE = "".join(line for line in RAW.splitlines(keepends=True) if not line.startswith("=="))
#: The same kernels as `ncu --csv` writes them without `--page raw`: a line per metric, each with a unit of its own.
DETAILS = """==PROF== Connected to process 4711 (/usr/bin/python3.12)
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",\
"Section Name","Metric Name","Metric Unit","Metric Value"
""" + "".join(
    f'"{kernel}","4711","python3.12","somewhere","{name}","1","7","(128, 1, 1)","(1, 1, 1)","0","9.0",'
    f'"Command line profiler metrics","{metric}","{unit}","{amount}"\n'
    for kernel, name, metrics in (
        (
            "0",
            "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char *, 1>>"
            "(int, T2, T3)",
            (
                ("dram__bytes_read.sum", "Kbyte", "1.024"),
                ("dram__bytes_write.sum", "byte", "0"),
                ("lts__t_bytes.sum", "Kbyte", "2.048"),
                ("gpu__time_duration.sum", "us", "1.5"),
                ("sm__cycles_active.avg", "cycle", "n/a"),
            ),
        ),
        (
            "1",
            "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n",
            (
                ("dram__bytes_read.sum", "Kbyte", "4.096"),
                ("dram__bytes_write.sum", "byte", "512.5"),
                ("lts__t_bytes.sum", "byte", "9,000.00"),
                ("gpu__time_duration.sum", "usecond", "20"),
            ),
        ),
    )
    for metric, unit, amount in metrics
)


def parsed(text: str) -> list[Kernel]:
    return parse(text, "ncu.csv")


#: A byte-order mark in front, and two letters at the end of each line.
WINDOWS = f"\ufeff{BARE}".replace("\n", "\r\n")


@pytest.mark.parametrize("text", [RAW, DETAILS, WINDOWS], ids=["raw", "details", "from Windows"])
def test_the_tables_of_ncu(text: str) -> None:
    first, second = parsed(text)
    assert (first.read, first.written, first.through_cache) == (pytest.approx(1024), 0, pytest.approx(2048))
    assert first.name.startswith("void at::native::vectorized_elementwise_kernel<4,")
    assert first.seconds == pytest.approx(1.5e-6)
    assert second.name == "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n"
    assert (second.read, second.written, second.through_cache) == (pytest.approx(4096), 512.5, 9000)
    assert second.seconds == pytest.approx(20e-6)


def test_units_that_are_not_bytes() -> None:
    scaled = parsed(RAW.replace('"byte","byte","byte","ns"', '"Kbyte","Mbyte","byte","msecond"'))[1]
    assert scaled == Kernel("sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n", 4.096e6, 512.5e6, 9000, 20.0)


def test_a_point_in_other_units_is_a_decimal_point() -> None:
    """Kilobytes have decimals, and so has a number of bytes that no locale groups so."""
    kernels = parsed(DETAILS.replace('"byte","512.5"', '"byte","0.125"'))
    assert (kernels[0].read, kernels[1].written) == (pytest.approx(1024), 0.125)


def test_the_cache_and_times_may_be_missing() -> None:
    """Without its last two columns the table has bytes of main memory alone."""
    lines = RAW.replace(',"lts__t_bytes.sum","gpu__time_duration.sum"', "").replace(
        '"byte","byte","byte","ns"', '"byte","byte"'
    )
    shorter = lines.replace(',"2,048","1,500"', "").replace(',"9000","2e+4"', "")
    assert [(kernel.read, kernel.through_cache, kernel.seconds) for kernel in parsed(shorter)] == [
        (1024, None, None),
        (4096, None, None),
    ]


DAMAGED = {
    "empty": ("", "no table"),
    "of an error": ("==ERROR== ERR_NVGPUCTRPERM", "no table"),
    "no heading, whose names are in names": ('"a","""ID""","""Kernel Name"""', "no table"),
    "no kernels": (RAW.partition('"0","4711"')[0], "no kernel"),
    "no bytes read": (RAW.replace("dram__bytes_read", "dram__bytes"), "dram__bytes_read.sum"),
    "no bytes written": (DETAILS.replace("dram__bytes_write", "dram__bytes"), "dram__bytes_write.sum"),
    "not counted": (RAW.replace('"4096"', '"n/a"'), "n/a"),
    "not counted, without a unit": (
        DETAILS.replace('"dram__bytes_write.sum","byte","0"', '"dram__bytes_write.sum","","n/a"'),
        "does not count it on this device",
    ),
    "a point between thousands": (RAW.replace('"1,024"', '"1.024"'), "may be a thousands separator: set LC_ALL=C"),
    "points between thousands": (RAW.replace('"1,024"', '"1.024.512"'), "may be a thousands separator: set LC_ALL=C"),
    "a point between thousands of ns": (
        RAW.replace('"1,500"', '"1.500"'),
        "may be a thousands separator: set LC_ALL=C",
    ),
    "a space between thousands": (RAW.replace('"1,024"', '"1\u202f024"'), "is not a count: set LC_ALL=C"),
    "two tables": (RAW + RAW.replace("4711", "4712"), "second table, from row 4 on"),
    "two tables of one process": (DETAILS + DETAILS, "second table, from row 10 on"),
    "two tables of different kinds": (RAW + f"\ufeff{DETAILS.partition(chr(10))[2]}", "second table, from row 4 on"),
    "NaN": (RAW.replace('"4096"', '"nan"'), "is not a count"),
    "infinite": (RAW.replace('"4096"', '"inf"'), "is not a count"),
    "beyond floats": (RAW.replace('"4096"', f'"{"9" * 400}"'), "is not a count"),
    "negative": (RAW.replace('"4096"', '"-1"'), "is not a count"),
    "with a decimal comma": (RAW.replace('"4096"', '"4.096,5"'), "LC_ALL=C"),
    "thousands anywhere": (RAW.replace('"4096"', '"40,96"'), "is not a count"),
    "another unit": (RAW.replace('"byte","byte","byte","ns"', '"byte/second","byte","byte","ns"'), "no unit"),
    "cut off": (RAW[: RAW.index('"4096"') + 4], "damaged"),
    "a cell too many": (RAW.replace('"4096"', '"4096","1"'), "cells"),
    "a name without end": (RAW.replace("sm90_xmma", "x" * 200_000), "damaged"),
    "two processes": (RAW.replace('"1","4711"', '"1","4712"'), "more than one process"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_tables_are_refused_in_a_sentence(name: str) -> None:
    text, words = DAMAGED[name]
    with pytest.raises(InputError, match=words) as refused:
        parsed(text)
    assert re.fullmatch(r"[^\x00-\x1f]{1,400}", str(refused.value)), "one line, short, and nothing a terminal obeys"


def test_more_kernels_than_a_step_has(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in (RAW, DETAILS):
        monkeypatch.setattr(nsight_compute, "MAX_KERNELS", 2)
        assert len(parsed(text)) == 2
        monkeypatch.setattr(nsight_compute, "MAX_KERNELS", 1)
        with pytest.raises(InputError, match="more than 1 kernels"):
            parsed(text)


def test_a_file_that_is_too_large_or_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "ncu.csv"
    with pytest.raises(InputError, match="No such file"):
        read(file)
    file.write_text(RAW)
    assert read(file) == parsed(RAW)
    monkeypatch.setattr(nsight_compute, "MAX_BYTES", 500)
    with pytest.raises(InputError, match="larger"):
        read(file)


def test_the_command_leaves_caches_and_clocks_alone() -> None:
    words = command(["python", "step.py"], "out.csv")
    assert words[:3] == ["env", "LC_ALL=C", "ncu"], "a locale may part thousands by points"
    assert words[-2:] == ["python", "step.py"]
    for option, choice in {"--cache-control": "none", "--clock-control": "none", "--log-file": "out.csv"}.items():
        assert words[words.index(option) + 1] == choice
    assert words[words.index("--metrics") + 1].split(",") == list(nsight_compute.METRICS)
