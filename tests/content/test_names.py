"""Names of kernels are short, and no two kernels are alike in one table."""

from __future__ import annotations

import functools
import gzip
import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline.content.names import distinct as distinct_module
from roofline.content.names import mangled
from roofline.content.names.distinct import LEAST, distinct
from roofline.content.names.kernels import brief
from roofline.renderers._latex.escape import letters

GELU = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, "
    "at::native::GeluType)::{lambda()#2}::operator()() const::{lambda()#4}::operator()() const::{lambda(%s)#1}, "
    "std::array<char*, 2ul> >(int, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::"
    "{lambda()#2}::operator()() const::{lambda()#4}::operator()() const::{lambda(%s)#1}, std::array<char*, 2ul>)"
)
#: Where real traces lie, beside the checkout; where they do not, the names below are a part of theirs.
TRACES = Path(os.environ.get("ROOFLINE_TRACES", Path(__file__).resolve().parents[3] / "shared" / "traces"))
REAL = (
    *(GELU % (kind, kind) for kind in ("c10::BFloat16", "float")),
    (GELU % ("float", "float")).replace("kernel<4", "kernel<8"),
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align2>"
    "(cutlass_80_tensorop::Params)",
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align4>"
    "(cutlass_80_tensorop::Params)",
    "std::enable_if<(((8)>(0)))&&vllm::_typeConvert<c10::BFloat16>::exists, void>::type "
    "vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, long, c10::BFloat16*, float, int, int)",
    "void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16, long, unsigned int, 2, 2, -2, true>"
    "(int)",
    "Memcpy DtoH (Device -> Pinned)",
    "Memset (Device)",
    "triton_poi_fused__unsafe_view_add_3",
    "aten::addmm",
)


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (REAL[0], "vectorized_elementwise<Gelu(bf16)>"),
        (REAL[3], "cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align2"),
        (REAL[5], "fused_add_rms_norm<bf16>"),
        (REAL[6], "indexSelectLargeIndex<bf16, long, unsigned int>"),
        *((name, name) for name in REAL[7:]),
        ("void foo_kernel(float*, int) [clone .kd]", "foo"),
        ("void internal::gemvx::kernel<int, float>(float*)", "gemvx::kernel<int, float>"),
        ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "ncclDevKernel_AllGather_RING_LL"),
        ("", ""),
        ("<<<", "<<<"),
        ("void (", "void ("),
    ],
)
def test_a_kernel_is_called_by_what_it_does(name: str, short: str) -> None:
    assert brief(name) == short


def test_numbers_come_back_where_kernels_differ_in_nothing_else() -> None:
    assert distinct(REAL[:3], by="kernel") == [
        "vectorized_elementwise<Gelu(bf16)>",
        "vectorized_elementwise<4, Gelu(float)>",
        "vectorized_elementwise<8, Gelu(float)>",
    ]


def test_what_differs_stays_where_there_is_little_room() -> None:
    one, other = distinct(REAL[3:5], 30, "kernel")
    assert (len(one), len(other)) == (30, 30)
    assert one.endswith("…align2")
    assert other.endswith("…align4")
    # Of a scope the end says most, and what differs may stand at its beginning.
    assert distinct(["a/encoder/layer/attention"], 12, "scope") == ["…r/attention"]
    scopes = distinct(["a/encoder/layer/attention", "b/encoder/layer/attention"], 12, "scope")
    assert [scope[0] for scope in scopes] == ["a", "b"]


def test_names_that_are_alike_once_they_are_plain_get_a_mark_that_stays() -> None:
    names = ["same", "same\x00", "\x1b[31msame"]
    shown = distinct(names)
    assert len(set(shown)) == 3
    assert all(text.startswith("same ~") for text in shown)
    assert distinct(names[:2])[0] == shown[0], "a mark is of the name, and not of its place"


@functools.cache
def real_names() -> list[str]:
    names = set(REAL)
    for path in sorted(TRACES.glob("*.json.gz")):
        events = json.loads(gzip.decompress(path.read_bytes()))
        events = events["traceEvents"] if isinstance(events, dict) else events
        names |= {event["name"] for event in events if str(event.get("cat")) in ("kernel", "gpu_memcpy", "gpu_memset")}
    return sorted(names)


@pytest.mark.parametrize("room", [None, LEAST, 20, 46, 100])
@pytest.mark.parametrize("made", [letters, str])
def test_no_two_kernels_of_real_traces_are_alike(room: int | None, made: object) -> None:
    ordered = real_names()
    shown = distinct(ordered, room, "kernel", made)  # type: ignore[arg-type]
    assert len(set(shown)) == len(ordered)
    assert room is None or max(map(len, shown)) <= room


pieces = st.sampled_from(
    [*"ab<>(){},: &*#1", "::", "void ", "at::native::", "{lambda(float)#1}", "(anonymous namespace)", "4ul", "_kernel",
     "std::array<char*, 2>", "operator()() const", "\x1b[31m", "漢", "_Z4", "…", "~"]
)  # fmt: skip
names = st.lists(st.lists(pieces, max_size=14).map("".join), min_size=1, max_size=8, unique=True)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(names, st.sampled_from([None, 12, 13, 20, 60]), st.sampled_from(["kernel", "op", "scope", "class"]))
def test_no_two_names_are_ever_alike(some: list[str], room: int | None, by: str) -> None:
    shown = distinct(some, room, by)
    assert len(set(shown)) == len(some)
    assert room is None or all(len(text) <= room for text in shown)
    assert all(text.isprintable() for text in shown)


# -------------------------------------------------------------------------------------------------- mangled names


def test_a_mangled_name_is_read() -> None:
    name = (
        "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_18Rmsnorm2dFwdTraitsILb1EDF16bLNS_21Rmsnorm2dFusedAddEnumE%dEEEEE"
        "JNSM_5KargsEEEEvDpT1_"
    )
    assert brief(name % 1, numbers=True) == (
        "kentry<1, Rmsnorm2dFwd, Rmsnorm2dFwdTraits, true, bf16, Rmsnorm2dFusedAddEnum=1, Kargs>"
    )
    assert len(set(distinct([name % 0, name % 1], 40, "kernel"))) == 2


@pytest.mark.parametrize("name", ["_Z", "_Z999999999999a", "_ZN", "_Z3fooE", "_ZL", "_Z" + "1a" * 5000])
def test_a_damaged_mangled_name_is_no_error(name: str) -> None:
    assert isinstance(brief(name), str)


def test_reading_takes_no_longer_than_the_name_is_long() -> None:
    # Each level refers to the one before it twice: C++ of 2**2000 letters.
    levels = "".join(f"S_IS{level}_S{level}_E" for level in range(2000))
    told = mangled.readable(f"_Z1f1AIiiE{levels}")
    assert len(told) < 100
    deep = "void f<" * 3000 + ">" * 3000
    assert len(brief(deep)) <= len(deep)


@pytest.mark.parametrize("number", [20, 200])
def test_names_are_grouped_as_often_however_many_are_alike(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that differ in a number alone are alike without it: all of them are grouped at once, not each again."""
    grouped = []
    alike = distinct_module._alike

    def counting(shown: dict[str, str]) -> dict[str, list[str]]:
        grouped.append(len(shown))
        return alike(shown)

    monkeypatch.setattr(distinct_module, "_alike", counting)
    names = [f"void library::kernel<float, {size}>(float*)" for size in range(number)]
    assert distinct(names, None, "kernel") == [f"library::kernel<float, {size}>" for size in range(number)]
    assert grouped == [number] * 3  # without numbers, with them, and at the end, where none are alike
