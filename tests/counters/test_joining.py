"""Counted kernels joined to ops: by order and name, what is not joined, and what is refused."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import handmade
import msgspec
import pytest
import raw_counters

from roofline.core.schema import Op, Profile
from roofline.counters import joining
from roofline.counters.joining import count, function, join
from roofline.counters.nsight_compute import Kernel
from roofline.errors import InputError, MeasurementError

KERNELS = (
    "void embed<float>(int)",
    "gemm_tn",
    "void add<float>(int)",
    "softmax",
    "Memcpy DtoD (Device -> Device)",
    "adam",
)


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


def test_a_name_is_cut_before_anything_else() -> None:
    """Of one of megabytes only the first letters are looked at, and nothing is removed from them before."""
    assert function("<unnamed>::" * 100_000 + "hostile") == ""
    assert function("x" * 5_000_000) == "x" * joining._LONGEST_NAME


def test_names_are_looked_at_once(step: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kernel of the profile and each name in the table, not each launch; copies by the driver not at all."""
    names: list[str] = []

    def looked_at(name: str) -> str:
        names.append(name)
        return function(name)

    monkeypatch.setattr(joining, "function", looked_at)
    join(step, seen(*WHOLE))
    assert sorted(names) == sorted([*(name for name in KERNELS if "Memcpy" not in name), *set(WHOLE)])


def ops(kernels: Sequence[Sequence[int]], launches: Sequence[int]) -> tuple[Op, ...]:
    return tuple(
        msgspec.structs.replace(op, kernels=tuple((number, 1000) for number in numbers), launches=times)
        for op, numbers, times in zip(handmade.OPS, kernels, launches, strict=True)
    )


def profile(kernels: Sequence[Sequence[int]], launches: Sequence[int]) -> Profile:
    """The step made by hand as if on a GPU, its ops with kernels."""
    device = msgspec.structs.replace(handmade.device(), kind="cuda")
    return handmade.profile(ops=ops(kernels, launches), kernels=KERNELS, device=device)


@pytest.fixture
def step() -> Profile:
    """The third op has two kernels and a copy, the sixth none."""
    return profile([(0,), (1,), (2, 4), (1,), (3,), (), (2,), (5,)], [1, 1, 2, 1, 1, 0, 1, 1])


def seen(*names: str) -> list[Kernel]:
    """Kernels that read 10, 20, 30, ... bytes, write half of that, and move twice that through the cache."""
    return [Kernel(name, 10.0 * n, 5.0 * n, 20.0 * n) for n, name in enumerate(names, 1)]


WHOLE = ("embed", "gemm_tn", "add", "add", "gemm_tn", "softmax", "add", "adam")


def numbers(profile: Profile, kernels: Sequence[Kernel]) -> list[tuple[int, int]]:
    """Of each op: its kernels, and those of them that were counted."""
    joined = join(profile, kernels)
    return list(zip(joined.launches, map(len, joined.kernels), strict=True))


def test_kernels_are_joined_by_their_order_and_names(step: Profile) -> None:
    assert numbers(step, seen(*WHOLE)) == [(1, 1), (1, 1), (2, 2), (1, 1), (1, 1), (0, 0), (1, 1), (1, 1)]
    counters = count(step, join(step, seen(*WHOLE)), "ncu.csv").counters
    assert counters is not None
    # The two kernels of the third op read 30 and 40 bytes; the copy between them is none that ncu counts.
    assert (counters.read[2], counters.written[2], counters.through_cache[2]) == (70, 35, 140)
    assert (counters.read[5], counters.seconds) == (None, ())
    assert (counters.kernels, counters.unjoined, counters.joined, counters.busy) == (8, 0, 1.0, 1.0)


def test_an_op_that_launches_one_of_its_kernels_more_often() -> None:
    """The third op launches `add` and `softmax` five times in an order that the profile does not tell; the seventh adds
    once, behind a product that nobody can take for one of them."""
    several = profile([(0,), (1,), (2, 3), (1,), (3,), (), (2,), (5,)], [1, 1, 5, 1, 1, 0, 1, 1])
    kernels = seen(
        "embed", "gemm_tn", *("add", "softmax", "add", "add", "softmax"), "gemm_tn", "softmax", "add", "adam"
    )
    assert numbers(several, kernels) == [(1, 1), (1, 1), (5, 5), *[(1, 1)] * 2, (0, 0), *[(1, 1)] * 2]
    assert sum(kernel.read for kernel in join(several, kernels).kernels[2]) == 30 + 40 + 50 + 60 + 70
    fewer = join(several, [*kernels[:4], *kernels[7:]])
    assert (len(fewer.kernels[2]), fewer.complete(2), fewer.complete(3)) == (2, False, True)


def test_kernels_of_one_side_alone_are_not_joined(step: Profile) -> None:
    """The counters saw one kernel more in front, and not the second product."""
    kernels = seen("warm", "embed", "gemm_tn", "add", "add", "softmax", "add", "adam")
    joined = join(step, kernels)
    assert list(map(len, joined.kernels)) == [1, 1, 2, 0, 1, 0, 1, 1]
    assert [kernel.name for kernel in joined.without] == ["warm"]
    # 7 of 8 are 87.5 %. The second product takes 2500 of the 400 + 2500 + 25 + 2500 + 2000 + 8 + 3000 µs of the ops
    # that launch kernels: 76 % are in ops with all kernels.
    with pytest.raises(MeasurementError, match=r"7 of 8 .*87\.5%.* 76\.0%"):
        count(step, joined, "ncu.csv")


def test_a_twentieth_of_the_time_may_be_left_over(step: Profile) -> None:
    """A kernel more that takes 5 of 100 us passes, one of 6 of 101 us does not; by number it is one of nine."""
    timed = [replace(kernel, seconds=95e-6 / 8) for kernel in seen(*WHOLE)]
    counters = count(step, join(step, [replace(timed[0], name="warm", seconds=5e-6), *timed]), "ncu.csv").counters
    assert counters is not None
    assert (counters.unjoined, counters.joined) == (1, pytest.approx(0.95))
    assert counters.seconds[2] == pytest.approx(2 * 95e-6 / 8)
    for extra in (replace(timed[0], name="warm", seconds=6e-6), replace(timed[0], name="warm", seconds=None)):
        with pytest.raises(MeasurementError):
            count(step, join(step, [extra, *timed]), "ncu.csv")


def test_a_profile_of_a_cpu_has_no_kernels() -> None:
    with pytest.raises(InputError, match="no GPU kernels"):
        join(handmade.profile(), seen("add"))


def test_steps_far_apart_end_soon(monkeypatch: pytest.MonkeyPatch, step: Profile) -> None:
    monkeypatch.setattr(joining, "_MOST_APART", 50)
    with pytest.raises(MeasurementError, match="not of one step"):
        join(step, seen(*(f"other{number}" for number in range(100))))
    many = profile([(0,), (1,), (2, 4), (1,), (3,), (), (2,), (5,)], [1, 1, 2**40, 1, 1, 0, 1, 1])
    with pytest.raises(MeasurementError, match="not of one step"):
        join(many, seen(*WHOLE))
    monkeypatch.setattr(joining, "_MOST_COMPARED", 100)
    with pytest.raises(MeasurementError, match="not of one step"):
        join(step, seen(*(["add"] * 30)))


def test_most_names_are_aligned_in_both_orders() -> None:
    """The common subsequence is as long as the one that a table of all pairs finds."""
    drawn = random.Random(1)
    for _ in range(500):
        first, second = ([drawn.choice("abc") for _ in range(drawn.randint(0, 12))] for _ in range(2))
        pairs = list(joining._align(first, second))
        assert all(first[here] == second[there] for here, there in pairs)
        assert all(a > c and b > d for (a, b), (c, d) in pairwise(pairs))
        assert len(pairs) == longest_common(first, second)


def longest_common(first: Sequence[str], second: Sequence[str]) -> int:
    row = [0] * (len(second) + 1)
    for name in first:
        before, row = row, [0]
        for place, other in enumerate(second):
            row.append(before[place] + 1 if name == other else max(before[place + 1], row[place]))
    return row[-1]


@pytest.mark.parametrize(
    ("mode", "kernels", "unjoined", "lacking"),
    [("infer", 158, 0, []), ("train", 742, 2, ["aten::embedding_dense_backward"] * 2)],
)
def test_the_counted_steps_of_an_h100(mode: str, kernels: int, unjoined: int, lacking: list[str]) -> None:
    """A kernel belongs to an op that launches its function, and was counted in another process than the profile's.

    Two ops of the training step launch the same functions right behind each other, in an order and number that the
    profile does not tell. They get no bytes, and two of their kernels no op.
    """
    step, seen = raw_counters.profile(mode), raw_counters.kernels(mode)
    joined = join(step, seen)
    for op, kernels_of_op in zip(step.ops, joined.kernels, strict=True):
        assert {function(kernel.name) for kernel in kernels_of_op} <= {function(step.kernels[n]) for n, _ in op.kernels}
    assert (sum(joined.launches), sum(map(len, joined.kernels))) == (kernels, kernels - unjoined)
    incomplete = [op for op, launches in enumerate(joined.launches) if launches and not joined.complete(op)]
    assert [step.signatures[step.ops[op].signature].name for op in incomplete] == lacking
    counters = count(step, joined, "ncu.csv").counters
    assert counters is not None
    assert (counters.unjoined, counters.kernels) == (unjoined, kernels)
    assert min(counters.joined, counters.busy) > 0.98
    lost = [*joined.without, *(kernel for op in incomplete for kernel in joined.kernels[op])]
    known = sum(read or 0.0 for read in counters.read)
    assert known + sum(kernel.read for kernel in lost) == pytest.approx(raw_counters.sums(mode)["dram_read"])


def test_the_table_of_another_step_is_refused() -> None:
    """The training step launches 143 elementwise kernels and 88 reductions, the inference step 38 and 1 of them."""
    joined = join(raw_counters.profile("infer"), raw_counters.kernels("train"))
    with pytest.raises(MeasurementError, match="158 of 742") as refused:
        count(raw_counters.profile("infer"), joined, "ncu.csv")
    assert "Without an op: vectorized_elementwise_kernel x 105, reduce_kernel x 87, " in str(refused.value)


def test_kernels_are_listed_by_their_launches() -> None:
    """No name acts on a terminal, and no more than five stand there."""
    listed = joining.most_frequent(seen("void a<float>(int)", *["\x1b[31mb"] * 3, "a<int>", "c" * 100, "", "d", "e"))
    assert listed == f"?[31mb x 3, a x 2, {'c' * 60} x 1, (no name) x 1, d x 1, 1 more name"
