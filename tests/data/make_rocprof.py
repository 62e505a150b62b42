"""Writes traces of rocprofv3 by hand, in the form that AMD's documentation and rocprofiler-sdk's schema give.

None was recorded: what a real file looks like is in tests/data/rocprofv3. Times are in ns after `FIRST`, which is
beyond what a float holds exactly.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

FIRST = 2**53 + 1  # [ns] 104 days after the machine started
PROCESS = 4242
CPU, GPU, OTHER_GPU = 101, 202, 203  # handles of agents
MI300X = "AMD Instinct MI300X"

_COPIES = ("NONE", "HOST_TO_HOST", "HOST_TO_DEVICE", "DEVICE_TO_HOST", "DEVICE_TO_DEVICE")
_OPERATIONS = {
    "HIP_RUNTIME_API": [],  # a name is added where it is first called
    "HIP_RUNTIME_API_EXT": [],
    "HSA_CORE_API": [],
    "MEMORY_COPY": [f"MEMORY_COPY_{direction}" for direction in _COPIES],
    "KERNEL_DISPATCH": ["KERNEL_DISPATCH_NONE", "KERNEL_DISPATCH_ENQUEUE", "KERNEL_DISPATCH_COMPLETE"],
    "MARKER_CORE_API": ["roctxMarkA", "roctxRangePushA", "roctxRangePop"],
    "MARKER_CORE_RANGE_API": ["roctxMarkA", "roctxThreadRangeA"],
}
#: Two versions number kinds in other ways and call those of HIP and of ranges otherwise; the older has no streams.
_OLDER = ("NONE", "HSA_CORE_API", "HIP_RUNTIME_API", "MARKER_CORE_API", "MEMORY_COPY", "KERNEL_DISPATCH")
_NEWER = ("NONE", "HSA_CORE_API", "PAGES", "KERNEL_DISPATCH", "MEMORY_COPY", "MARKER_CORE_RANGE_API",
          "HIP_RUNTIME_API_EXT")  # fmt: skip


@dataclass
class Trace:
    """Records of one process, in the order in which they were added."""

    older: bool = False
    pid: int = PROCESS
    product: str = MI300X
    buffers: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    messages: list[dict[str, Any]] = field(default_factory=list)
    kernels: list[str] = field(default_factory=list)
    operations: dict[str, list[str]] = field(
        default_factory=lambda: {kind: [*_OPERATIONS[kind]] for kind in _OPERATIONS}
    )
    last: int = 0

    def call(self, name: str, start: int, end: int, thread: int = 7) -> int:
        """Add a call of HIP, or of HSA by its name; return its correlation."""
        hsa = name.startswith("hsa_")
        kind = "HSA_CORE_API" if hsa else "HIP_RUNTIME_API" if self.older else "HIP_RUNTIME_API_EXT"
        if name not in self.operations[kind]:
            self.operations[kind].append(name)
        return self._add("hsa_api" if hsa else "hip_api", kind, name, start, end, thread)

    def range(self, text: str, start: int, end: int, thread: int = 7) -> None:
        """Add a range of roctx."""
        kind, name = (
            ("MARKER_CORE_API", "roctxRangePushA") if self.older else ("MARKER_CORE_RANGE_API", "roctxThreadRangeA")
        )
        correlation = self._add("marker_api", kind, name, start, end, thread)
        self.messages.append({"key": correlation, "value": text})

    def kernel(
        self,
        name: str,
        start: int,
        end: int,
        correlation: int = 0,
        *,
        stream: int = 0,
        queue: int = 1,
        agent: int = GPU,
        grid: int = 4096,
        block: int = 256,
    ) -> None:
        """Add a kernel. grid: in work-items."""
        if name not in self.kernels:
            self.kernels.append(name)
        self._add("kernel_dispatch", "KERNEL_DISPATCH", "KERNEL_DISPATCH_COMPLETE", start, end, 7, correlation)
        record = self.buffers["kernel_dispatch"][-1]
        record["dispatch_info"] = {
            "size": 72,
            "agent_id": {"handle": agent},
            "queue_id": {"handle": queue},
            "kernel_id": self.kernels.index(name) + 1,
            "dispatch_id": len(self.buffers["kernel_dispatch"]),
            "private_segment_size": 0,
            "group_segment_size": 0,
            "workgroup_size": {"x": block, "y": 1, "z": 1},
            "grid_size": {"x": grid, "y": 1, "z": 1},
        }
        if not self.older:
            record["stream_id"] = {"handle": stream}

    def copy(self, direction: str, start: int, end: int, size: int, correlation: int = 0) -> None:
        """Add a copy, as "HOST_TO_DEVICE". size: in bytes."""
        name = f"MEMORY_COPY_{direction}"
        self._add("memory_copy", "MEMORY_COPY", name, start, end, 7, correlation)
        source, _, target = direction.partition("_TO_")
        handles = {"HOST": CPU, "DEVICE": GPU}
        self.buffers["memory_copy"][-1] |= {
            "dst_agent_id": {"handle": handles[target]},
            "src_agent_id": {"handle": handles[source]},
            "bytes": size,
        }

    def process(self) -> dict[str, Any]:
        """Return all records, and the tables before them."""
        symbols = [{"kernel_id": 0, "kernel_name": "", "formatted_kernel_name": "0", "demangled_kernel_name": "0"}]
        for number, name in enumerate(self.kernels):
            names = {"kernel_name": f"_Z{number}.kd", "formatted_kernel_name": name.partition("(")[0]}
            symbols.append({"kernel_id": number + 1, "demangled_kernel_name": f"{name} [clone .kd]", **names})
        agent = {
            "name": "gfx942",
            "product_name": self.product,
            "mem_banks": [{"heap_type": 1, "size_in_bytes": 206141652992}],
        }
        cpu = {"id": {"handle": CPU}, "type": 1, "gpu_index": -1, "logical_node_type_id": 0, "product_name": "AMD EPYC"}
        gpus = [
            {"id": {"handle": handle}, "type": 2, "gpu_index": number, "logical_node_type_id": number, **agent}
            for number, handle in enumerate((GPU, OTHER_GPU))
        ]
        kinds = [{"kind": kind, "operations": self.operations.get(kind, [])} for kind in self._kinds]
        return {
            "metadata": {"pid": self.pid, "init_time": FIRST, "fini_time": FIRST + 10**9},
            "agents": [cpu, *gpus],
            "strings": {"callback_records": [], "buffer_records": kinds, "marker_api": self.messages},
            "kernel_symbols": symbols,
            "buffer_records": self.buffers,
        }

    def write(self, *others: Trace) -> bytes:
        """Return the file, as rocprofv3 writes it: without white space."""
        processes = [trace.process() for trace in (self, *others)]
        return json.dumps({"rocprofiler-sdk-tool": processes}, separators=(",", ":")).encode()

    @property
    def _kinds(self) -> tuple[str, ...]:
        return _OLDER if self.older else _NEWER

    def _add(
        self, table: str, kind: str, name: str, start: int, end: int, thread: int, correlation: int | None = None
    ) -> int:
        if correlation is None:
            self.last += 1
            correlation = self.last
        record = {
            "size": 64,
            "kind": self._kinds.index(kind),
            "operation": self.operations[kind].index(name),
            "correlation_id": {"internal": correlation, "external": 0},
            "start_timestamp": FIRST + start,
            "end_timestamp": FIRST + end,
            "thread_id": thread,
        }
        self.buffers.setdefault(table, []).append(record)
        return correlation


def stepped(steps: int = 4, older: bool = False) -> Trace:
    """Make steps of 100 µs, each in a range "train_step". In a step, in µs after its start:

    HtoD 5-15 | gemm 15-22, 22-29, 29-36, 36-43 on stream 1, within each relu for 3 µs on stream 2 | a graph of norm
    50-55 and relu 55-60 | DtoH 65-70, for which the host waits from 63 to 71. Busy are 38 + 10 + 5 of 100 µs.
    """
    trace = Trace(older=older)
    for number in range(steps):
        zero = 100_000 * number
        trace.range("train_step", zero, zero + 99_000)
        copied = trace.call("hipMemcpyAsync", zero + 1_000, zero + 2_000)
        trace.copy("HOST_TO_DEVICE", zero + 5_000, zero + 15_000, 500_000, copied)
        for turn in range(4):
            asked, begin = zero + 2_000 + 2_000 * turn, zero + 15_000 + 7_000 * turn
            gemm = trace.call("hipLaunchKernel", asked, asked + 900)
            trace.kernel("gemm(float*)", begin, begin + 7_000, gemm, stream=1)
            relu = trace.call("hipLaunchKernel", asked + 1_000, asked + 1_900)
            trace.kernel("relu(float*, int)", begin + 2_000, begin + 5_000, relu, stream=2, queue=2)
        graph = trace.call("hipGraphLaunch", zero + 45_000, zero + 47_000)
        trace.kernel("norm(float*)", zero + 50_000, zero + 55_000, graph, stream=1)
        trace.kernel("relu(float*, int)", zero + 55_000, zero + 60_000, graph, stream=1)
        back = trace.call("hipMemcpyAsync", zero + 61_000, zero + 62_000)
        trace.copy("DEVICE_TO_HOST", zero + 65_000, zero + 70_000, 4096, back)
        trace.call("hipStreamSynchronize", zero + 63_000, zero + 71_000)
    return trace
