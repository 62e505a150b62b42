"""The sources of generated kernels, as Inductor writes them: what is read and written, and nothing executed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from cuda_without_gpu import generate

from roofline.costs.calls import Call, Tensor
from roofline.errors import InputError
from roofline.pytorch.inductor import kernels, parts, triton_names, triton_source

FP32, BF16, INT64 = torch.float32, torch.bfloat16, torch.int64
ROWS, COLUMNS = 512, 64


def sources(function: Callable[..., Any], *inputs: Any) -> dict[str, str]:
    """The sources of the kernels that a function becomes, by name."""
    _, code = generate(function, *inputs)
    return dict(re.findall(r"async_compile\.triton\('(\w+)', '''(.*?)'''", code, re.DOTALL))


def bf16(*shape: int) -> Tensor:
    return Tensor(shape, None, "c10::BFloat16", device="")


def fp32(*shape: int) -> Tensor:
    return Tensor(shape, None, "float", device="")


def int64(*shape: int) -> Tensor:
    return Tensor(shape, None, "long int", device="")


def gated(x: Any) -> Any:
    first, second = x.chunk(2, 1)
    return torch.sigmoid(first) * second


def turned(x: Any) -> Any:
    """The halves of a part, one negated, as rotary embeddings put them together."""
    first, second = x.narrow(1, COLUMNS, COLUMNS).chunk(2, 1)
    return torch.cat([-second, first], 1)


#: function, its inputs, what the kernel gets, bytes read, bytes written; N of ROWS x COLUMNS elements.
N = ROWS * COLUMNS
CASES: dict[str, tuple[Callable[..., Any], list[Any], tuple[Any, ...], int, int]] = {
    # In place: what the product made is read and written over, and the bias, which comes last, is read.
    "bias and activation": (
        lambda b, x, w: (x @ w + b).relu(),
        [((COLUMNS,), BF16), ((ROWS, 32), BF16), ((32, COLUMNS), BF16)],
        (bf16(ROWS, COLUMNS), bf16(COLUMNS), N),
        2 * N + 2 * COLUMNS,
        2 * N,
    ),
    # The second of three parts: a third is read.
    "a slice": (
        lambda x: x.narrow(1, COLUMNS, COLUMNS) + 1,
        [((ROWS, 3 * COLUMNS), BF16)],
        (bf16(ROWS, 3 * COLUMNS), bf16(ROWS, COLUMNS), N),
        2 * N,
        2 * N,
    ),
    "both halves": (
        gated,
        [((ROWS, 2 * COLUMNS), BF16)],
        (bf16(ROWS, 2 * COLUMNS), bf16(ROWS, COLUMNS), N),
        2 * 2 * N,
        2 * N,
    ),
    "a concatenation": (
        lambda a, b: torch.cat([a, b], 1) + 1,
        [((ROWS, COLUMNS), BF16), ((ROWS, COLUMNS // 2), BF16)],
        (bf16(ROWS, COLUMNS), bf16(ROWS, COLUMNS // 2), bf16(ROWS, 3 * COLUMNS // 2), 3 * N // 2),
        2 * N + N,
        3 * N,
    ),
    # Each half of a third is read under a mask, by another expression.
    "halves put together": (
        turned,
        [((ROWS, 3 * COLUMNS), BF16)],
        (bf16(ROWS, 3 * COLUMNS), bf16(ROWS, COLUMNS), N),
        2 * N,
        2 * N,
    ),
    # Three passes over the rows read them once.
    "softmax": (
        lambda x: torch.softmax(x, -1),
        [((ROWS, 8192), FP32)],
        (fp32(ROWS, 8192), fp32(ROWS, 8192), ROWS, 8192),
        4 * ROWS * 8192,
        4 * ROWS * 8192,
    ),
    "layer norm": (
        lambda x, w, b: torch.nn.functional.layer_norm(x, (768,), w, b),
        [((ROWS, 768), FP32), ((768,), FP32), ((768,), FP32)],
        (fp32(ROWS, 768), fp32(768), fp32(768), fp32(ROWS, 768), ROWS, 768),
        4 * (ROWS * 768 + 2 * 768),
        4 * ROWS * 768,
    ),
    # Rows of a table: as many as there are indices, and these.
    "embedding": (
        lambda w, i: torch.nn.functional.embedding(i, w) * 2,
        [((30522, COLUMNS), FP32), ((ROWS,), INT64)],
        (int64(ROWS), fp32(30522, COLUMNS), fp32(ROWS, COLUMNS), N),
        8 * ROWS + 4 * N,
        4 * N,
    ),
    # Windows of 3 x 3 overlap: all that there is.
    "pooling": (
        lambda x: torch.nn.functional.max_pool2d(x, 3, 2, 1),
        [((2, 8, 32, 32), FP32)],
        (fp32(2, 8, 32, 32), fp32(2, 8, 16, 16), 2 * 8 * 16 * 16),
        4 * 2 * 8 * 32 * 32,
        4 * 2 * 8 * 16 * 16,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_kernel_moves_is_read_from_its_source(name: str) -> None:
    function, inputs, arguments, read, written = CASES[name]
    ((kernel, source),) = sources(function, *inputs).items()
    parsed = triton_source.parsed(source)
    assert parsed is not None
    found = triton_names.costed(Call(kernel, None, arguments), source=parsed)
    assert (found.cost.bytes_read, found.cost.bytes_written) == (read, written)
    assert found.cost.flops == 0


def test_sources_are_found_by_their_hash_and_told_where_they_are_missing(tmp_path) -> None:
    function, inputs, *_ = CASES["a slice"]
    ((_, source),) = sources(function, *inputs).items()
    for folder, name in (("ab", "cabcd"), ("elsewhere", "cwxyz")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{name}.py").write_text(source, encoding="utf-8")
    (tmp_path / "ab" / "cabbb.py").write_text("raise SystemExit(", encoding="utf-8")
    found = triton_source.Sources(tmp_path)
    assert found.kernel("cabcd").parameters == ("in_ptr0", "out_ptr0", "xnumel")
    assert found.kernel("cwxyz") is not None
    assert [found.kernel(name) for name in ("cabbb", "cnone", "../ab/cabcd")] == [None] * 3
    assert found.missing == {"cabbb", "cnone", "../ab/cabcd"}
    with pytest.raises(InputError, match="no folder"):
        triton_source.Sources(tmp_path / "none")


def test_a_source_is_not_executed(tmp_path) -> None:
    trap = tmp_path / "executed"
    text = f"open({str(trap)!r}, 'w')\n@triton.jit\ndef k(in_ptr0, xnumel):\n    open({str(trap)!r}, 'w')\n"
    kernel = triton_source.parsed(text)
    assert kernel is not None
    assert kernel.touched([None, 4]) == {"in_ptr0": (0.0, 0.0)}
    assert not trap.exists()


@pytest.mark.parametrize(
    ("index", "elements", "error"),
    [
        ("x0", 10**400, OverflowError),  # an argument that no float holds
        (" + ".join(["x0"] * 2500), N, RecursionError),
        ("x0 // ((1e308 * 1e308) // 2)", N, ArithmeticError),  # by no number
    ],
)
def test_a_source_that_cannot_be_followed_says_nothing(index: str, elements: int, error: type[Exception]) -> None:
    source = triton_source.parsed(
        f"""
@triton.jit
def k(in_ptr0, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    x0 = xindex
    tmp0 = tl.load(in_ptr0 + ({index}), None)
    tl.store(out_ptr0 + (x0), tmp0, None)
"""
    )
    assert source is not None
    with pytest.raises(error):
        source.touched([None, None, elements])
    call = Call("triton_poi_fused_add_0", None, (fp32(ROWS, COLUMNS), fp32(ROWS, COLUMNS), elements))
    cost = triton_names.costed(call, source=source).cost
    # As without a source: each tensor is moved once.
    assert (cost.bytes_read, cost.bytes_written) == (4 * N, 4 * N)
    assert cost == triton_names.costed(call).cost


def test_what_is_not_understood_is_all_that_there_is() -> None:
    """A template counts its elements by its own numbers, and walks through its operands."""
    text = """
@triton.jit
def triton_tem_fused_mm_0(arg_A, arg_B, out_ptr0, xnumel):
    A = arg_A
    B = arg_B
    pid = tl.program_id(0)
    rm = pid * BLOCK_M + tl.arange(0, BLOCK_M)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    acc += tl.dot(tl.load(A + rm), tl.load(B + rm))
    idx_m = rm[:, None]
    tl.store(out_ptr0 + (tl.broadcast_to(idx_m, [BLOCK_M, BLOCK_N])), acc, idx_m < 4)
"""
    kernel = triton_source.parsed(text)
    assert kernel is not None
    call = Call("triton_tem_fused_mm_0", None, (bf16(4, 8), bf16(8, 16), bf16(4, 16), 64))
    found = triton_names.costed(call, source=kernel)
    assert (found.cost.bytes_read, found.cost.bytes_written) == (2 * (4 * 8 + 8 * 16), 2 * 4 * 16)
    assert (found.cost.flops, found.op_class) == (None, "contraction")


ATEN = torch.ops.aten
#: Kernels of several outputs, in several passes, in place, two in one, by indices; the inputs of each.
COMPILED: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "gradients of a layer norm": (
        lambda g, x, m, r, w, b: ATEN.native_layer_norm_backward(g, x, (768,), m, r, w, b, [True] * 3),
        [((512, 768), FP32), ((512, 768), FP32), ((512, 1), FP32), ((512, 1), FP32), ((768,), FP32), ((768,), FP32)],
    ),
    "batch norm": (
        lambda x, w, b: ATEN.native_batch_norm(x, w, b, None, None, True, 0.1, 1e-5)[0].relu(),
        [((8, 64, 56, 56), FP32), ((64,), FP32), ((64,), FP32)],
    ),
    "variance of columns": (lambda x: torch.var_mean(x, (0,)), [((65536, 128), BF16)]),
    "cross entropy": (lambda x, t: torch.nn.functional.cross_entropy(x, t), [((512, 30522), FP32), ((512,), INT64)]),
    "rows written by indices": (
        lambda cache, i, v: ATEN.index_put(cache, [i], v),
        [((1000, 64), BF16), ((32,), INT64), ((32, 64), BF16)],
    ),
    "a turned matrix": (
        lambda x: ATEN.clone(ATEN.permute(x, [0, 2, 1]), memory_format=torch.contiguous_format),
        [((8, 128, 256), FP32)],
    ),
    "two tensors in one kernel": (lambda a, b: torch._foreach_add([a, b], [b, a]), [((512, 256), FP32)] * 2),
    "two results and their sum": (lambda x, y: (x + y, x - y, (x * y).sum(-1)), [((512, 256), FP32)] * 2),
}
_PROFILERS = {FP32: "float", BF16: "c10::BFloat16", INT64: "long int"}


@pytest.mark.parametrize("name", COMPILED)
def test_the_source_says_what_the_compiler_says_of_its_loops(name: str) -> None:
    function, inputs = COMPILED[name]
    recorder = kernels.Recorder()
    with recorder.compiling():
        lowered, code = generate(function, *inputs)
    (run,) = parts.runs([kernels.Region(recorder._graph(lowered), {}, {}, {})], [])
    noted = [(sum(size for _, size in launch.reads), sum(size for _, size in launch.writes)) for launch in run.launches]
    texts = dict(re.findall(r"async_compile\.triton\('(\w+)', '''(.*?)'''", code, re.DOTALL))
    found = []
    for kernel, given in re.findall(r"^ +(triton_\w+)\.run\((.*), stream", code, re.MULTILINE):
        arguments = tuple(
            int(argument)
            if argument.isdigit()
            else Tensor((int(lowered.get_numel(argument)),), None, _PROFILERS[lowered.get_dtype(argument)], device="")
            for argument in given.split(", ")
        )
        cost = triton_names.costed(Call(kernel, None, arguments), source=triton_source.parsed(texts[kernel])).cost
        found.append((cost.bytes_read, cost.bytes_written))
    assert found == noted != []
