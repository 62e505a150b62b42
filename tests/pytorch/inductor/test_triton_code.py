"""Inductor's code for a GPU, generated without one: every kernel that it calls is noted, and its work is known."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from cuda_without_gpu import generate

from roofline.pytorch.compiled import Launch
from roofline.pytorch.inductor import kernels, parts

FP32, BF16, INT64 = torch.float32, torch.bfloat16, torch.int64


def launches(function: Callable[..., Any], *inputs: Any) -> tuple[list[Launch], list[str]]:
    """What was noted, and the names of the generated kernels in the order in which the code calls them."""
    recorder = kernels.Recorder()
    with recorder.compiling():
        lowered, code = generate(function, *inputs)
    (run,) = parts.runs([kernels.Region(recorder._graph(lowered), {}, {}, {})], [])
    assert run.unknown == ""
    return list(run.launches), re.findall(r"^ +(triton_\w+)\.run\(", code, re.MULTILINE)


CASES: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "softmax in a loop": (lambda x: torch.softmax(x, -1), [((512, 8192), FP32)]),
    "sum in two kernels": (lambda x: x.sum(), [((2**24,), FP32)]),
    "variance of columns": (lambda x: torch.var_mean(x, (0,)), [((65536, 128), BF16)]),
    "cross entropy": (lambda x, t: torch.nn.functional.cross_entropy(x, t), [((512, 30522), FP32), ((512,), INT64)]),
    "cumulative sum": (lambda x: torch.cumsum(x, -1), [((512, 1024), FP32)]),
    "foreach": (lambda a, b: torch._foreach_add([a, b], [b, a]), [((512, 256), FP32), ((512, 256), FP32)]),
    "product and activation": (
        lambda b, x, w: (x @ w + b).relu(),
        [((64,), BF16), ((512, 32), BF16), ((32, 64), BF16)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_every_kernel_of_the_code_is_noted(name: str) -> None:
    function, inputs = CASES[name]
    noted, called = launches(function, *inputs)
    generated = [one for one in noted if not one.extern]
    assert [one.event for one in generated] == called != []
    assert {one.work.quality for one in generated} == {"exact"}
    assert all(size for one in generated for _, size in (*one.reads, *one.writes))


def test_a_softmax_moves_its_rows_once() -> None:
    function, inputs = CASES["softmax in a loop"]
    ((kernel,), _) = launches(function, *inputs)
    size = 4 * 512 * 8192
    assert ([bytes_ for _, bytes_ in kernel.reads], [bytes_ for _, bytes_ in kernel.writes]) == ([size], [size])
    # exp(x - max) is made twice: once for the sum, once for the result.
    assert kernel.work.functions == {"exp": 2 * 512 * 8192}
