"""Read what lies in caches: costs of calls, steps that were measured here, and sources of torch's compiler."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import handmade
import msgspec
import mutation
import typed
from target import Target, scratch, written

from roofline.core import validate
from roofline.core.cost import Cost
from roofline.core.step import Workload
from roofline.costs.calls import Call, Tensor
from roofline.importing.work import cache as costs
from roofline.measuring import own_steps
from roofline.pytorch.inductor import triton_names, triton_source
from roofline.recording.request import Request
from roofline.recording.user_step import digest

_KERNEL = b"""
import triton
import triton.language as tl
@triton_heuristics.pointwise(size_hints={'x': 1024})
@triton.jit
def triton_poi_fused_add_0(in_ptr0, in_ptr1, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xnumel = 1000
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x0 = xindex % 64
    x1 = (xindex // 64) % 3
    x2 = xindex
    tmp0 = tl.load(in_ptr0 + (x0 + 64*x1), xmask)
    tmp1 = tl.load(in_ptr1 + (tl.where(x0 < 32, x2, x1)), xmask, eviction_policy='evict_last')
    tmp2 = tmp0 + tmp1
    for rindex in range(0, 7):
        tmp3 = tl.load(in_ptr0 + (tmp2 + 7 * rindex), xmask)
    tl.store(out_ptr0 + (x2), tmp2, xmask)
"""

_TENSOR = Tensor((1000,), (1,), "float")


@cache
def _rules() -> str:
    return costs.rules()


def cost_cache(data: bytes) -> None:
    """Read the costs of calls of former imports, and save with one more."""
    costs.rules = _rules  # type: ignore[assignment]  # reads all source files: once is enough
    file = written("costs.msgpack", data)
    read = costs.Cache(file)
    for key in (*read._calls, "none"):
        read.get(key)
    read.names["one more"] = "pointwise"
    read.save()


def own_step(data: bytes) -> None:
    """Recall a step that was measured here by the request that the cache remembers."""
    os.environ["ROOFLINE_CACHE"] = str(scratch("steps-cache"))
    profile = handmade.profile(sources={"mine.py": _digest()}, command="roofline profile mine.py:f")
    place = own_steps._request_path(_digest(), profile.command)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)
    own_steps.recall(profile)


@cache
def _digest() -> str:
    return digest(written("mine.py", b"def f(): ...\n")) or ""


def triton_kernel(data: bytes) -> None:
    """Count a call of a kernel by its source in a folder of Inductor's; what is counted can be saved."""
    folder = scratch("inductor")
    (folder / "ab").mkdir(parents=True, exist_ok=True)
    (folder / "ab" / "cabcdef.py").write_bytes(data)
    kernel = triton_source.Sources(folder).kernel("cabcdef")
    for number in (1000, 1 << 70):
        call = Call("triton_poi_fused_add_0", None, (_TENSOR, _TENSOR, _TENSOR, number))
        if not validate._finite(msgspec.to_builtins(triton_names.costed(call, source=kernel).cost)):
            raise AssertionError("no number of bytes")


def _cached() -> Iterator[bytes]:
    entry = costs.Entry(
        torch="", cost=Cost(flops=1.0, functions={"exp": 2.0}), kind="any", op_class="pointwise", shapes="[1]",
        dtype="fp32", output=None, reads=((True, 0, 4.0),), writes=((False, 0, 4.0),), inplace=False, view=False,
        layout="",
    )  # fmt: skip
    for rules in (_rules(), "other"):
        content = costs._File(
            costs.SCHEMA, rules, costs.torch_version(), {"aten::mm": "gemm"}, {"k": True}, {"d": entry}
        )
        yield msgspec.msgpack.encode(content)


def _requests() -> Iterator[bytes]:
    file = str(Path(scratch("mine.py")))
    yield msgspec.json.encode(Request(backend="torch", workload=Workload(model="mine.py:f", device="cpu"), file=file))


TARGETS = {
    "cost-cache": Target(cost_cache, _cached, mutation.of_msgpack),
    "own-step": Target(own_step, _requests, typed.json_of(Request)),
    "triton-source": Target(triton_kernel, lambda: [_KERNEL], mutation.of_source),
}
