"""Bytes by hardware counters, joined to ops: the form of ncu's table, names of kernels, and what is not joined."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path

import counters
import handmade
import msgspec
import pytest
from counters import Kernel, function

from roofline.analysis.analysis import Analysis, analyze
from roofline.core.schema import Op

#: What `ncu --csv --page raw --print-units base` writes: its own lines, names, units, one line per kernel. By hand,
#: after the documentation of Nsight Compute; the columns before the metrics are not all of those that it has.
TABLE = """==PROF== Connected to process 4711 (/usr/bin/python3.12)
==PROF== Profiling "vectorized_elementwise_kernel" - 0: 0%....50%....100% - 1 pass
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",\
"dram__bytes_read.sum","dram__bytes_write.sum","lts__t_bytes.sum"
"","","","","","","","","","","","byte","byte","byte"
"0","4711","python3.12","somewhere","void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>\
, std::array<char *, 1>>(int, T2, T3)","1","7","(128, 1, 1)","(1, 1, 1)","0","9.0","1,024","0","2,048"
"1","4711","python3.12","somewhere","sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n","1","7","(128, 1, 1)","(9, 1, 1)","0",\
"9.0","4096","512.5","9000"
"""


def test_the_table_of_ncu() -> None:
    first, second = counters.kernels(TABLE)
    assert (first.dram_read, first.dram_written, first.l2) == (1024, 0, 2048)
    assert first.name.startswith("void at::native::vectorized_elementwise_kernel<4,")
    assert second == Kernel("sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n", 4096, 512.5, 9000)


def test_units_that_are_not_bytes() -> None:
    in_kilobytes = TABLE.replace('"byte","byte","byte"', '"Kbyte","Mbyte","byte"')
    assert counters.kernels(in_kilobytes)[1] == Kernel("sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n", 4.096e6, 512.5e6, 9000)


@pytest.mark.parametrize(("text", "words"), [("==ERROR== no", "no table"), (TABLE.replace("lts__", "x"), "no column")])
def test_a_log_without_the_counters_says_so(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        counters.kernels(text)


@pytest.mark.parametrize(
    ("name", "same"),
    [
        # Kineto's and ncu's spelling of one kernel.
        (
            "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl<at::native::CUDAFunctor_add<float>"
            " >(at::TensorIteratorBase&, at::native::CUDAFunctor_add<float> const&)::{lambda(int)#1}>(int, at::native::"
            "gpu_kernel_impl<at::native::CUDAFunctor_add<float> >)",
            "elementwise_kernel",
        ),
        ("void at::native::(anonymous namespace)::softmax<float>(float*)", "softmax"),
        ("void at::native::<unnamed>::softmax<float>(float *)", "softmax"),
        ("vectorized_elementwise_kernel", "vectorized_elementwise_kernel"),
        ("triton_per_fused_add_3", "triton_per_fused_add_3"),
        (
            "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm>(cutlass_80_tensorop_s1688gemm::Params)",
            "Kernel2",
        ),
        (
            "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::Params)",
            "fmha_cutlassF_f32_aligned_64x64_rf_sm80",
        ),
    ],
)
def test_the_function_of_a_kernel(name: str, same: str) -> None:
    assert function(name) == same


KERNELS = (
    "void embed<float>(int)",
    "gemm_tn",
    "void add<float>(int)",
    "softmax",
    "Memcpy DtoD (Device -> Device)",
    "adam",
)


@pytest.fixture
def analysis() -> Analysis:
    """The step made by hand, its ops with kernels: the third op has two and a copy, the fifth has none."""
    of_ops = [(0,), (1,), (2, 4), (1,), (3,), (), (2,), (5,)]
    launches = [1, 1, 2, 1, 1, 0, 1, 1]
    return analyze(handmade.profile(ops=ops(of_ops, launches), kernels=KERNELS))


def ops(kernels: Sequence[Sequence[int]], launches: Sequence[int]) -> tuple[Op, ...]:
    return tuple(
        msgspec.structs.replace(op, kernels=tuple((number, 1000) for number in numbers), launches=times)
        for op, numbers, times in zip(handmade.OPS, kernels, launches, strict=True)
    )


def test_an_op_that_launches_one_of_its_kernels_more_often() -> None:
    """The third op launches `add` and `softmax` five times in an order that the profile does not tell; the seventh adds
    once, behind a product that nobody can take for one of them."""
    of_ops = [(0,), (1,), (2, 3), (1,), (3,), (), (2,), (5,)]
    analysis = analyze(handmade.profile(ops=ops(of_ops, [1, 1, 5, 1, 1, 0, 1, 1]), kernels=KERNELS))
    step = seen("embed", "gemm_tn", *("add", "softmax", "add", "add", "softmax"), "gemm_tn", "softmax", "add", "adam")
    rows = counters.joined(analysis, step)
    assert [(row.kernels, row.joined) for row in rows] == [(1, 1), (1, 1), (5, 5), *[(1, 1)] * 2, (0, 0), *[(1, 1)] * 2]
    assert rows[2].dram_read == 30 + 40 + 50 + 60 + 70
    fewer = counters.joined(analysis, [*step[:4], *step[7:]])
    assert (fewer[2].joined, fewer[2].dram_read) == (2, None)


def seen(*names: str) -> list[Kernel]:
    """Kernels that read 10, 20, 30, ... bytes, write half of that, and move twice that through the cache."""
    return [Kernel(name, 10.0 * n, 5.0 * n, 20.0 * n) for n, name in enumerate(names, 1)]


def test_kernels_are_joined_by_their_order_and_names(analysis: Analysis) -> None:
    step = seen("embed", "gemm_tn", "add", "add", "gemm_tn", "softmax", "add", "adam")
    rows = counters.joined(analysis, step)
    assert [(row.kernels, row.joined) for row in rows] == [
        (1, 1),
        (1, 1),
        (2, 2),
        (1, 1),
        (1, 1),
        (0, 0),
        (1, 1),
        (1, 1),
    ]
    # The two kernels of the third op read 30 and 40 bytes; the copy between them is none that ncu profiles.
    assert (rows[2].dram_read, rows[2].dram_written, rows[2].l2) == (70, 35, 140)
    assert rows[5].dram_read is None
    assert rows[7].phase == "optimizer"


def test_what_one_side_has_alone_is_not_joined(analysis: Analysis) -> None:
    """The counters saw one kernel more in front, and not the second product."""
    step = seen("warm", "embed", "gemm_tn", "add", "add", "softmax", "add", "adam")
    rows = counters.joined(analysis, step)
    assert [row.joined for row in rows] == [1, 1, 2, 0, 1, 0, 1, 1]
    assert rows[3].dram_read is None
    found = counters.totals(rows, step, seen("nothing"))
    assert found["kernels"] == {"of the profile": 8, "of the counters": 8, "joined": 7}
    assert found["of a kernel on one element"] == {"dram_read": 10, "dram_written": 5, "l2": 20}
    assert found["all kernels"]["dram_read"] == 360  # 10 + 20 + ... + 80
    assert found["all ops"]["dram_read"] == sum(row.dram_read or 0 for row in rows if row.read is not None)


def test_rows_can_be_read_again(analysis: Analysis, tmp_path: Path) -> None:
    rows = counters.joined(analysis, seen("embed"))
    counters.write(counters.Row, rows, tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open(newline="", encoding="utf-8") as file:
        read = list(csv.DictReader(file))
    assert len(read) == len(rows)
    assert (float(read[0]["dram_read"]), read[1]["dram_read"]) == (10, "")


def test_both_files_mean_the_same_number_of_kernels_on_nothing() -> None:
    """counters.py cannot import one_step.py, which loads PyTorch and wants a GPU."""
    text = (Path(counters.__file__).with_name("one_step.py")).read_text(encoding="utf-8")
    assert re.search(rf"^NOTHING = {counters.NOTHING}$", text, re.MULTILINE)
