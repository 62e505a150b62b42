"""A layer norm's backward pass on a GPU: what the one kernel of it moves and computes, and what adds up its sums.

The code is generated as for an H100 and does not run. ROWS and WIDTH are BERT-base's at batch 64: from 4096 rows, twice
the width and 5 * 2**20 elements on, Inductor reduces rows and columns in one kernel.
"""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from cuda_without_gpu import generate

from roofline.pytorch.inductor import kernels, parts

ROWS, WIDTH = 64 * 128, 768
#: Of 132 multiprocessors with 8 blocks each none gets more than 16 rows, the least that one takes.
BLOCKS = ROWS // 16
FP32, BF16 = torch.float32, torch.bfloat16


def norm_backward(dy: Any, x: Any, mean: Any, rstd: Any, weight: Any, residual: Any) -> Any:
    found = torch.ops.aten.native_layer_norm_backward(dy, x, [WIDTH], mean, rstd, weight, weight, [True] * 3)
    return found[0] + residual, found[1], found[2]


def inputs(dtype: Any = FP32, rows: int = ROWS) -> list[tuple[tuple[int, ...], Any]]:
    whole, row = ((rows, WIDTH), dtype), ((rows, 1), FP32)
    return [whole, whole, row, row, ((WIDTH,), dtype), whole]


def noted(function: Any, *inputs: Any) -> tuple[kernels.Graph, str]:
    recorder = kernels.Recorder()
    with recorder.compiling():
        lowered, code = generate(function, *inputs)
    return recorder._graph(lowered), code


def launches(graph: kernels.Graph) -> Any:
    (run,) = parts.runs([kernels.Region(graph, {}, {}, {})], [])
    assert not run.unknown
    return run.launches


def test_the_kernel_is_noted_with_what_it_moves() -> None:
    graph, code = noted(norm_backward, *inputs())
    assert graph.broken == ""
    kernel, *sums = launches(graph)
    assert f"{kernel.event}.run(" in code, "it is called by the name that was noted"
    assert "# Call mix order reduction kernel" in code
    assert [one.event for one in sums] == ["aten::sum", "aten::sum"]
    whole, row, width = 4 * ROWS * WIDTH, 4 * ROWS, 4 * WIDTH
    # dy, x and the residual; mean and deviation of each row; the weight. Rows and columns read the same.
    assert sum(size for _, size in kernel.reads) == 3 * whole + 2 * row + width
    # dx, and of both sums over columns one part per block of 16 rows. The two sums over rows stay inside.
    assert sum(size for _, size in kernel.writes) == whole + 2 * BLOCKS * width


def test_the_sums_over_columns_are_work_of_the_kernel() -> None:
    graph, _ = noted(norm_backward, *inputs())
    added = ROWS * WIDTH - BLOCKS * WIDTH  # of each column: n - 1 additions for each of its parts
    # The weight's gradient: (x - mean) * rstd * dy, and its sum; the bias's is the sum of dy alone.
    assert [int(loop.vector) for loop in graph.sites[0].loops[-2:]] == [3 * ROWS * WIDTH + added, added]
    work = launches(graph)[0].work
    assert work.vector_flops == sum(int(loop.vector) for loop in graph.sites[0].loops)
    assert work.flops == 0


def test_few_rows_are_reduced_by_plain_kernels() -> None:
    graph, code = noted(norm_backward, *inputs(rows=ROWS // 4))
    assert "# Call mix order reduction kernel" not in code
    assert not any(one.extern for one in graph.sites)


def test_what_adds_up_reads_what_the_kernel_left() -> None:
    graph, code = noted(norm_backward, *inputs())
    kernel, *sums = graph.sites
    left = kernel.writes[-1].buffer
    assert left.startswith("workspace")
    assert [[each.buffer for each in one.reads] for one in sums] == [[left], [left]]
    assert all(f"{one.writes[0].buffer} = {left}[" in code for one in sums)
    assert all(one.origins and one.finishes for one in sums)
    reduced = {node for one in sums for node in one.origins}
    assert reduced <= set(kernel.origins), "its parts are the ops of the program, and those sums among them"
    assert len(launches(graph)[0].parts) > 2


def test_sums_are_kept_in_float32_and_cast() -> None:
    def sums(x: Any, y: Any) -> Any:
        return (x.float() * y.float()).sum(1).to(BF16), (x * y).sum(0)

    graph, code = noted(sums, ((ROWS, WIDTH), BF16), ((ROWS, WIDTH), BF16))
    assert ".to(torch.bfloat16)" in code
    kernel, summed, cast = graph.sites
    assert (summed.event, cast.event) == ("aten::sum", "aten::_to_copy")
    assert summed.writes == cast.reads != cast.writes
    assert kernel.writes[-1].bytes == (BLOCKS * WIDTH * 4,)


def test_a_norm_in_bfloat16_casts_its_sums_in_a_kernel_that_follows() -> None:
    graph, _ = noted(norm_backward, *inputs(BF16))
    assert [one.event.partition("_fused")[0] for one in graph.sites] == [
        *("triton_per", "aten::sum", "aten::sum", "triton_poi", "triton_poi")
    ]
    assert [one.reads[0].buffer for one in graph.sites[3:]] == [one.writes[0].buffer for one in graph.sites[1:3]]


def test_a_pytorch_that_names_the_kernel_in_its_comment_too_notes_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import debug
    from torch._inductor.codegen.triton import TritonKernel

    call = TritonKernel.call_kernel

    def commented(kernel: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        debug.set_kernel_post_grad_provenance_tracing(kernel.features.node_schedule, name)
        return call(kernel, name, *args, **kwargs)

    monkeypatch.setattr(TritonKernel, "call_kernel", commented)
    graph, _ = noted(norm_backward, *inputs())
    assert [one.extern for one in graph.sites] == [False, True, True]
