"""Kernels of a GPU's plane and the instructions that they are of, on traces and programs made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")
import hlo_oracle

from roofline.costs import kernel_names
from roofline.errors import MeasurementError
from roofline.recording.recording import Plan
from roofline.recording.xspace import recorder
from roofline.recording.xspace.framework import Read
from roofline.timing import executor
from roofline.traces.xplane import command_buffers
from roofline.traces.xplane.command_buffers import replayed
from roofline.traces.xplane.reader import Line, XTrace
from roofline.xla import count

STEP = "step"
# 2 x 128 x 512 x 256 FLOPs, of the fusion that Triton makes a kernel of.
PRODUCT = 2 * 128 * 512 * 256
PROGRAM = hlo_oracle.proto(
    """HloModule jit_f
    body { p0 = bf16[128,512] parameter(0)
      p1 = bf16[512,256] parameter(1)
      ROOT dot.1 = bf16[128,256] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
    less { a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT c = pred[] compare(a, b), direction=LT }
    ENTRY e { x = bf16[128,512] parameter(0)
      w = bf16[512,256] parameter(1)
      v = f32[4096] parameter(2)
      gemm_fusion_dot.1 = bf16[128,256] fusion(x, w), kind=kCustom, calls=body,
        backend_config={"fusion_backend_config":{"kind":"__triton_gemm"}}
      sort.2 = f32[4096] sort(v), dimensions={0}, to_apply=less
      copy.3 = f32[4096] copy(v)
      ROOT r = (bf16[128,256], f32[4096], f32[4096]) tuple(gemm_fusion_dot.1, sort.2, copy.3) }"""
)
LINES = ("python", "Stream #7(Compute,MemcpyH2D)", "Stream #8(Compute)", "XLA Ops", "CUPTI overhead")


def trace(*events: tuple[str, str, int, int, str], graph: tuple[int, ...] = ()) -> XTrace:
    """Events (name, instruction, start, end, line) of program 3; graph: the numbers of those that a graph launched."""
    names = tuple(dict.fromkeys(name for event in events for name in event[:2] if name))
    code = {name: number for number, name in enumerate(names)} | {"": -1}
    size = len(events)
    absent = {name: np.full(size, -1, np.int64) for name in ("produces", "consumes", "bytes", "scope")}
    return XTrace(
        start=np.asarray([event[2] for event in events]),
        end=np.asarray([event[3] for event in events]),
        name=np.asarray([code[event[0]] for event in events], np.int32),
        line=np.asarray([LINES.index(event[4]) for event in events], np.int32),
        hlo_op=np.asarray([code[event[1]] for event in events], np.int32),
        program=np.asarray([3 if event[1] else 0 for event in events]),
        run=np.zeros(size, np.int64),
        graph=np.isin(np.arange(size), graph).astype(np.int64),
        names=names,
        lines=tuple(Line("/host:CPU" if name == "python" else "/device:GPU:0", name) for name in LINES),
        modules={3: ("jit_f", PROGRAM)},
        origin=0,
        warnings=(),
        **absent,
    )


_, MAIN, OTHER, DERIVED, OVERHEAD = LINES
#: Two executions in one step. A sort is six equal kernels. The host's call of the driver names its instruction too; a
#: viewer's line repeats an op, and the profiler's own has an event.
RAN = [
    ("step#0", "", 0, 1000, "python"),
    ("cuLaunchKernelEx", "gemm_fusion_dot.1", 5, 9, "python"),
    *(("gemm_fusion_dot_1", "gemm_fusion_dot.1", low, low + 100, MAIN) for low in (10, 500)),
    *(("sort_2", "sort.2", low + at, low + at + 10, OTHER) for low in (120, 610) for at in range(0, 60, 10)),
    *(("MemcpyD2D", "copy.3", at, at + 5, OTHER) for at in (190, 680)),
    ("gemm_fusion_dot.1", "gemm_fusion_dot.1", 10, 110, DERIVED),
    ("Activity Buffer Request", "", 200, 400, OVERHEAD),
    ("MemcpyH2D", "", 700, 720, MAIN),
]


def test_kernels_are_their_instructions_and_no_line_counts_twice() -> None:
    made = trace(*RAN)
    counted, (owned,) = count.count([made], STEP)
    assert dict(zip(counted.names, (op.times for op in counted.ops), strict=True)) == {
        "gemm_fusion_dot.1": 2,
        "sort.2": 2,  # as often as its program, whatever it launches
        "copy.3": 2,
    }
    product, sort, _ = (op.costed.cost for op in counted.ops)
    assert (product.flops, sort.bytes_read) == (2 * PRODUCT, 2 * 4 * 4096)
    (timed,) = executor.time_steps(made, owned, len(counted.ops), STEP, 0.0)
    # 200, 120 and 10 ps of kernels with an instruction, 20 of a copy without one; nothing else ran on the device.
    assert timed.own[:, 0] == pytest.approx([200e-12, 120e-12, 10e-12, 20e-12])
    assert timed.extra == ("MemcpyH2D",)
    assert timed.idle[0] == pytest.approx(650e-12)
    assert timed.launches is not None
    assert timed.launches.tolist() == [2, 12, 2, 1]


def test_copies_between_host_and_device_are_transfers_as_xla_spells_them() -> None:
    classes = {name: kernel_names.classify(name) for name in ("MemcpyH2D", "MemcpyD2H", "MemcpyD2D", "Memset")}
    assert classes == {"MemcpyH2D": "transfer", "MemcpyD2H": "transfer", "MemcpyD2D": "movement", "Memset": "movement"}


class Framework:
    """What reads, and does nothing else."""

    def read(self, traces: list[XTrace], prefix: str) -> Read:
        return Read(*count.count(traces, STEP))

    def unseen(self, traces: list[XTrace], prefix: str) -> str:
        return "nothing ran"


def read(made: XTrace) -> recorder.XSpaceStepRecorder:
    made_recorder = recorder.XSpaceStepRecorder(Plan(device="cuda"), Framework())  # type: ignore[arg-type]
    made_recorder._read([made])
    return made_recorder


def test_kernels_of_command_buffers_are_told() -> None:
    some = trace(*RAN[:4], ("sort_2", "", 120, 130, MAIN), ("add", "command_buffer_1", 140, 150, MAIN), graph=(4,))
    assert replayed(some).tolist() == [False] * 4 + [True, True]
    assert read(some)._replayed == (2, 4)
    every: Any = trace(RAN[0], ("gemm", "", 10, 110, MAIN), graph=(1,))
    with pytest.raises(MeasurementError, match="XLA_FLAGS=--xla_gpu_enable_command_buffer= "):
        read(every)
    with pytest.raises(MeasurementError, match="nothing ran"):
        read(trace(RAN[0]))


def test_launches_of_command_buffers_are_counted_where_calls_of_the_driver_are_shown() -> None:
    """Two launches of three kernels each; of the six one is before the step, so the step has 5 of them, and 5/3."""
    kernels = [("gemm", "", at, at + 10, MAIN) for at in (5, 20, 40, 60, 80, 100)]
    step = ("step#0", "", 10, 1000, "python")
    calls = [("cuGraphLaunch", "", at, at + 1, "python") for at in (1, 50)]
    some = trace(*kernels, step, *calls, graph=tuple(range(6)))
    windows = [executor.windows(some, STEP)]
    assert command_buffers.per_step([some], windows) == (pytest.approx(5 / 3), 5.0)
    for lacking in (trace(*kernels, step, graph=tuple(range(6))), trace(*kernels, step, *calls)):
        assert command_buffers.per_step([lacking], windows) is None
