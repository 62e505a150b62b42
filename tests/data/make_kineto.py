"""Writes Kineto traces of a GPU that exist nowhere else, so that tests can state what is in them.

`training()` is a small training step, repeated: one device with a compute stream and a communication stream, a
main thread and an autograd thread. All times are written in µs after the start of a step and are listed in
`EXPECTED`. `graphed()` replays kernels of a trace from graphs, `damaged()` lists ways to spoil it. Run as a script to
write synthetic_gpu_train.json anew.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

PROCESS, MAIN, AUTOGRAD = 100, 100, 101
COMPUTE, COMM = 7, 20
STEP, PERIOD = 900, 1000  # [µs] the annotated window, and the time from one to the next
BASE = 1_751_410_836_000_000_000  # [ns]
FIRST = 1_419_247_332_972_313  # [ns] after BASE; not whole microseconds, as in real traces

# What the step holds, in µs. Device events, one after another:
#   HtoD 110-130, gemm 130-200 | gelu 202-222, norm 222-232, loss 232-240, DtoH 240-242 |
#   backward 276-480 on the compute stream, all-reduce 400-520 beside it | adamw 606-646 | zero 696-700 |
#   scale 707-717 | copy 737-740 | clip 850-860
EXPECTED = {
    "busy": 90 + 40 + 244 + 40 + 4 + 10 + 3 + 10,
    # Every time between them in the window 0-900, and what the host did before the launch that ended it had reached the
    # device: 4 after its call returned, the median of the six that find it idle (2, 2, 4, 4, 5 and 5).
    "gaps": [
        (0, 109, "data input"),  # the loader's __next__ lasts from 5 to 85
        (109, 110, "other"),
        (200, 202, "other"),  # kernel after kernel, both queued
        (242, 275, "synchronisation"),  # .item() waits from 156 to 246
        (275, 276, "other"),
        (520, 606, "host dispatch"),  # Python before the optimizer, launch at 600
        (646, 696, "host dispatch"),  # inside an op from 650, launch at 690
        (700, 707, "host dispatch"),  # launched at 699, when the queue was all but empty
        (717, 737, "waiting, cause not recorded"),  # launched at 705: the device waits for something else
        (740, 850, "communication wait"),  # a barrier from 745 to 840, launch at 842
        (860, 900, "host dispatch"),  # nothing was launched before the window ended
    ],
    "causes": {
        "host dispatch": 86 + 50 + 7 + 40,
        "synchronisation": 33,
        "data input": 109,
        "communication wait": 110,
        "other": 1 + 2 + 1,
        "waiting, cause not recorded": 20,
    },
    # The all-reduce runs beside the weight gradient (400-470) and the bias gradient (470-480).
    "shares": {"all-reduce": 70 / 2 + 10 / 2 + 40, "weight gradient": 70 / 2, "bias gradient": 10 / 2},
}


@dataclass
class Trace:
    """Events in the order they were added. Times in whole µs after `FIRST`."""

    events: list[dict] = field(default_factory=list)
    correlation: int = 8000
    sequence: int = 0

    def op(self, name: str, start: int, end: int, *tensors: tuple, tid: int = MAIN, **args) -> None:
        """A cpu_op; `tensors` are (dims, type, strides) or a scalar as text."""
        if tensors:
            given = [t if isinstance(t, tuple) else ([], "Scalar", [], t) for t in tensors]
            args["Input Dims"] = [t[0] for t in given]
            args["Input type"] = [t[1] for t in given]
            args["Input Strides"] = [t[2] for t in given]
            args["Concrete Inputs"] = [t[3] if len(t) > 3 else "" for t in given]
        self._add("cpu_op", name, start, end, PROCESS, tid, args)

    def annotation(self, name: str, start: int, end: int, tid: int = MAIN) -> None:
        self._add("user_annotation", name, start, end, PROCESS, tid, {})

    def frame(self, name: str, start: int, end: int, tid: int = MAIN) -> None:
        """A call of Python: `file(line): function`, or `nn.Module: Name_0`."""
        self._add("python_function", name, start, end, PROCESS, tid, {})

    def wait(self, stream: int, on: int, start: int, correlation: int, recorded_by: int) -> None:
        """What CUPTI records of a stream that waits for another one, besides the call."""
        args = {"cuda_sync_kind": "Stream Wait Event", "wait_on_stream": on, "wait_on_cuda_event_id": 5}
        args |= {"wait_on_cuda_event_record_corr_id": recorded_by, "stream": stream, "correlation": correlation}
        self._add("cuda_sync", "Stream Wait Event", start, start + 1, 0, stream, args)

    def call(self, name: str, start: int, end: int, tid: int = MAIN) -> int:
        """A runtime call; returns its correlation."""
        self.correlation += 1
        args = {"cbid": 211, "correlation": self.correlation}
        self._add("cuda_runtime", name, start, end, PROCESS, tid, args)
        return self.correlation

    def kernel(
        self, name: str, start: int, end: int, correlation: int, stream: int = COMPUTE, grid=(64, 1, 1), **more
    ) -> None:
        args = {"device": 0, "context": 1, "stream": stream, "correlation": correlation}
        args |= {"grid": list(grid), "block": [128, 1, 1]} | more
        self._add("kernel", name, start, end, 0, stream, args)

    def copy(self, name: str, start: int, end: int, correlation: int, size: int) -> None:
        args = {"device": 0, "context": 1, "stream": COMPUTE, "correlation": correlation, "bytes": size}
        self._add("gpu_memcpy", name, start, end, 0, COMPUTE, args)

    def launch(self, kernel: str, at: int, start: int, end: int, tid: int = MAIN, stream: int = COMPUTE) -> None:
        """A launch of 4 µs at `at` and its kernel."""
        self.kernel(kernel, start, end, self.call("cudaLaunchKernel", at, at + 4, tid), stream)

    def _add(self, cat: str, name: str, start: int, end: int, pid: int, tid: int, args: dict) -> None:
        event = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "start": start, "end": end}
        self.events.append(event | {"args": args})

    def write(self, first: int = FIRST, base: int | None = BASE) -> bytes:
        """The JSON text, as Kineto writes it: ids in order of start, device events linked to the innermost op."""
        hosts = [e for e in self.events if e["cat"] in ("cpu_op", "user_annotation")]
        hosts.sort(key=lambda e: (e["start"], -e["end"]))
        for index, event in enumerate(hosts):
            event["args"] = {"External id": index + 1, "Record function id": 0} | event["args"] | {"Ev Idx": index}
        calls = {e["args"]["correlation"]: e for e in self.events if e["cat"] == "cuda_runtime"}
        ops = [e for e in hosts if e["cat"] == "cpu_op"]
        for event in self.events:
            call = calls.get(event["args"].get("correlation"))
            around = [
                op for op in ops if call and op["tid"] == call["tid"] and op["start"] <= call["start"] <= op["end"]
            ]
            if around:
                event["args"] = {"External id": around[-1]["args"]["External id"]} | event["args"]
        device = {"id": 0, "name": "Imaginary GPU", "totalGlobalMem": 80 * 2**30, "numSms": 100}
        header = {"schemaVersion": 1, "deviceProperties": [device], "record_shapes": 1}
        header |= {} if base is None else {"baseTimeNanoseconds": base}
        lines = ",\n".join(_line(event, first) for event in [*hosts, *(e for e in self.events if e not in hosts)])
        return f'{json.dumps(header)[:-1]}, "traceEvents": [\n{lines}\n]}}\n'.encode()


def _line(event: dict, first: int) -> str:
    fields = {key: event[key] for key in ("ph", "cat", "name", "pid", "tid")}
    time = first + 1000 * event["start"]
    # float64 would round an epoch in µs: the digits are written from the integer.
    numbers = f'"ts": {time // 1000}.{time % 1000:03d}, "dur": {event["end"] - event["start"]}.000'
    return f'{json.dumps(fields)[:-1]}, {numbers}, "args": {json.dumps(event["args"])}}}'


X = ([32, 256], "float", [256, 1])
H = ([32, 512], "float", [512, 1])
W = ([512, 256], "float", [256, 1])
WT = ([256, 512], "float", [1, 256])
B = ([512], "float", [1])
LOSS = ([], "float", [])


def training(steps: int = 3) -> Trace:
    """A training step of linear, gelu, layer norm and a squared error, with data-parallel gradients."""
    trace = Trace()
    for number in range(steps):
        _step(trace, number, number * PERIOD)
    return trace


def _step(trace: Trace, number: int, zero: int) -> None:
    def op(name, start, end, *tensors, **args):
        trace.op(name, zero + start, zero + end, *tensors, **args)

    def launch(kernel, at, start, end, **where):
        trace.launch(kernel, zero + at, zero + start, zero + end, **where)

    def call(name, start, end):
        return trace.call(name, zero + start, zero + end)

    forward = 4 * number  # sequence numbers are shared by a forward op and its backward node
    trace.annotation(f"roofline:step#{number}", zero, zero + STEP)
    trace.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", zero + 5, zero + 85)

    op("aten::to", 96, 108, X, "6", "0", "", "", "False", "False", "")
    op("aten::_to_copy", 97, 107, X, "6", "0", "", "", "False", "")
    op("aten::copy_", 99, 106, X, X, "False")
    copied = call("cudaMemcpyAsync", 100, 105)
    trace.copy("Memcpy HtoD (Pageable -> Device)", zero + 110, zero + 130, copied, 32 * 256 * 4)
    op("aten::linear", 114, 123, X, W, B)
    op("aten::addmm", 116, 122, B, X, WT, "1", "1", **{"Sequence number": forward, "Fwd thread id": 0})
    launch("sm80_gemm_f32f32_tn", 117, 130, 200)
    op("aten::gelu", 125, 131, H, "none", **{"Sequence number": forward + 1, "Fwd thread id": 0})
    launch("void at::native::vectorized_elementwise_kernel<4, GeluFunctor>", 126, 202, 222)
    op("aten::layer_norm", 132, 140, H, "[512]", B, B, "1e-05", "True")
    op(
        "aten::native_layer_norm",
        133,
        139,
        H,
        "[512]",
        B,
        B,
        "1e-05",
        **{"Sequence number": forward + 2, "Fwd thread id": 0},
    )
    launch("void at::native::vectorized_layer_norm_kernel<float>", 134, 222, 232)
    op("aten::mse_loss", 141, 147, H, H, "1", **{"Sequence number": forward + 3, "Fwd thread id": 0})
    launch("void at::native::reduce_kernel<512, 1, MeanOps>", 142, 232, 240)
    op("aten::item", 148, 248, LOSS)
    op("aten::_local_scalar_dense", 149, 247, LOSS)
    copied = call("cudaMemcpyAsync", 150, 155)
    trace.copy("Memcpy DtoH (Device -> Pageable)", zero + 240, zero + 242, copied, 4)
    call("cudaStreamSynchronize", 156, 246)

    def node(name, index, start, end, *tensors):
        op(f"autograd::engine::evaluate_function: {name}", start, end, tid=AUTOGRAD)
        numbers = {"Sequence number": forward + index, "Fwd thread id": 1}
        op(name, start + 1, end - 1, *tensors, tid=AUTOGRAD, **numbers)

    node("MseLossBackward0", 3, 264, 274, LOSS)
    op("aten::mse_loss_backward", 266, 272, LOSS, H, H, "1", tid=AUTOGRAD)
    launch("void at::native::vectorized_elementwise_kernel<4, MseBackward>", 267, 276, 286, tid=AUTOGRAD)
    node("NativeLayerNormBackward0", 2, 276, 291, H)
    op("aten::native_layer_norm_backward", 278, 289, H, H, "[512]", B, B, B, B, "[True, True, True]", tid=AUTOGRAD)
    launch("void at::native::layer_norm_grad_input_kernel<float>", 279, 286, 300, tid=AUTOGRAD)
    launch("void at::native::GammaBetaBackwardCUDAKernel<float>", 284, 300, 310, tid=AUTOGRAD)
    node("GeluBackward0", 1, 292, 301, H)
    op("aten::gelu_backward", 294, 299, H, H, "none", tid=AUTOGRAD)
    launch("void at::native::vectorized_elementwise_kernel<4, GeluBackward>", 295, 310, 330, tid=AUTOGRAD)
    node("AddmmBackward0", 0, 302, 326, H)
    op("aten::mm", 304, 310, H, W, tid=AUTOGRAD)
    launch("sm80_gemm_f32f32_nn", 305, 330, 400, tid=AUTOGRAD)
    op("aten::mm", 311, 317, ([512, 32], "float", [1, 512]), X, tid=AUTOGRAD)
    launch("sm80_gemm_f32f32_nt", 312, 400, 470, tid=AUTOGRAD)
    op("aten::sum", 318, 324, H, "[0]", "False", "", tid=AUTOGRAD)
    launch("void at::native::reduce_kernel<128, 4, SumOps>", 319, 470, 480, tid=AUTOGRAD)
    op("c10d::allreduce_", 328, 340, ([], "TensorList", []), "", "", "", "False", "-1", tid=AUTOGRAD)
    op("record_param_comms", 329, 339, W, tid=AUTOGRAD)
    launch(
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        331,
        400,
        520,
        tid=AUTOGRAD,
        stream=COMM,
    )

    trace.annotation("Optimizer.step#AdamW.step", zero + 560, zero + 640)
    op("aten::_fused_adamw_", 590, 606, ([], "TensorList", []), ([], "TensorList", []), "0.001")
    launch("void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor>", 600, 606, 646)
    op("aten::_foreach_zero_", 650, 696, ([], "TensorList", []))
    launch("void at::native::multi_tensor_apply_kernel<ZeroFunctor>", 690, 696, 700)
    op("aten::mul_", 697, 704, B, "0.5")
    launch("void at::native::vectorized_elementwise_kernel<4, MulFunctor>", 699, 707, 717)
    op("aten::copy_", 704, 710, B, B, "False")
    launch("void at::native::vectorized_elementwise_kernel<4, CopyFunctor>", 705, 737, 740)
    op("c10d::barrier", 745, 840, ([1], "float", [1]))
    op("aten::clamp_", 841, 847, B, "-1", "1")
    launch("void at::native::vectorized_elementwise_kernel<4, ClampFunctor>", 842, 850, 860)
    call("cudaDeviceSynchronize", 848, 862)


# Graphs


def graphed(text: bytes, graph_of: Callable[[dict], object], nodes: bool = False, geometry: bool = True) -> bytes:
    """The trace as if device events had been replayed from graphs, at the same times.

    graph_of: the graph of a device event, anything but None; each graph is launched once, where the first of its events
    was. What launched them is gone, and so are the ops around it that launched nothing else. nodes: with `graph node
    id`s, numbered within each graph by start; geometry: with grid and block.
    """
    trace = json.loads(text)
    events = trace["traceEvents"]
    called = [e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in e["args"]]
    calls = {call["args"]["correlation"]: call for call in called if re.search("Launch|Memcpy|Memset", call["name"])}
    device = [event for event in events if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    device.sort(key=lambda event: event["ts"])
    members: dict[object, list[dict]] = {}
    for event in device:
        graph = graph_of(event)
        if graph is not None and event["args"]["correlation"] in calls:
            members.setdefault(graph, []).append(event)
    gone: list[dict] = []
    for number, (graph, replayed) in enumerate(members.items()):
        launches = [calls[event["args"]["correlation"]] for event in replayed]
        gone += launches
        first = min(launches, key=lambda call: call["ts"])
        args = {"cbid": 311, "correlation": 10**8 + number}
        events.append(first | {"cat": "cuda_runtime", "name": "cudaGraphLaunch", "args": args})
        for index, event in enumerate(replayed):
            event["args"]["correlation"] = args["correlation"]
            event["args"].pop("External id", None)
            if nodes:  # a graph is the same one in every step
                event["args"] |= {"graph id": 1, "graph node id": (hash_of(graph) << 32) + index + 1}
            if not geometry:
                event["args"].pop("grid", None), event["args"].pop("block", None)
    dropped = {id(call) for call in gone}
    left = [call for call in calls.values() if id(call) not in dropped]

    def around(op: dict, launches: list[dict]) -> bool:
        return any(c["tid"] == op["tid"] and op["ts"] <= c["ts"] <= op["ts"] + op["dur"] for c in launches)

    dropped |= {id(e) for e in events if e.get("cat") == "cpu_op" and around(e, gone) and not around(e, left)}
    trace["traceEvents"] = [event for event in events if id(event) not in dropped]
    return json.dumps(trace).encode()


def hash_of(graph: object) -> int:
    """A number for the part of a graph's name that is the same in every step."""
    return sum(map(ord, str(graph[-1] if isinstance(graph, tuple) else graph)))


# Damage


def _edit(text: bytes, change: Callable[[list[dict], list[dict]], None]) -> bytes:
    """The trace with `change(all events, kernels)` applied."""
    trace = json.loads(text)
    events = trace["traceEvents"]
    change(events, [event for event in events if event.get("cat") == "kernel"])
    return json.dumps(trace).encode()


def _set(**values) -> Callable[[list[dict], list[dict]], None]:
    return lambda events, kernels: [kernel.update(values) for kernel in kernels[:10]] and None


def _args(**values) -> Callable[[list[dict], list[dict]], None]:
    return lambda events, kernels: [kernel["args"].update(values) for kernel in kernels[:10]] and None


def _drop(key: str) -> Callable[[list[dict], list[dict]], None]:
    return lambda events, kernels: [kernel.pop(key) for kernel in kernels[:10]] and None


def _without(text: bytes, key: str) -> bytes:
    trace = json.loads(text)
    del trace[key]
    return json.dumps(trace).encode()


def damaged(text: bytes) -> Iterator[tuple[str, bytes]]:
    """(name, bytes) of the trace spoiled in one way each."""
    packed = gzip.compress(text, mtime=0)
    middle = len(packed) // 2
    kernel_name = text.index(b"gemm_f32")
    edit = lambda change: _edit(text, change)  # noqa: E731
    yield "gzip cut", packed[: int(len(packed) * 0.7)]
    yield "gzip cut in its header", packed[:5]
    yield "gzip with a damaged block", packed[:middle] + bytes(200) + packed[middle + 200 :]
    yield "gzip with a wrong checksum", packed[:-8] + bytes(8)
    yield "gzip with bytes behind it", packed + bytes(100)
    yield "two gzip members", gzip.compress(text[:5000]) + gzip.compress(text[5000:])
    yield "empty gzip", gzip.compress(b"")
    yield "json cut", text[: int(len(text) * 0.6)]
    yield "json cut in a string", text[: kernel_name + 3]
    yield "empty", b""
    yield "not json", b"hello world"
    yield "html", b"<html><body>404 {}</body></html>"
    yield "a number", b"17"
    yield "null", b"null"
    yield "no traceEvents", _without(text, "traceEvents")
    yield "traceEvents is null", b'{"traceEvents": null}'
    yield "traceEvents is an object", b'{"traceEvents": {"ph": "X"}}'
    yield "no events", b'{"traceEvents": []}'
    yield "only the list", json.dumps(json.loads(text)["traceEvents"]).encode()
    yield "deep nesting", b'{"traceEvents": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    yield "deep nesting of heads", b'{"traceEvents": [' + b'{"ph":' * 20_000
    yield "deep args", text.replace(b'"cbid": 211', b'"cbid": ' + b"[" * 5000 + b"]" * 5000, 1)
    yield "bare NaN", re.sub(rb'"dur": [0-9.]+', b'"dur": NaN', text, count=30)
    yield "bare Infinity", re.sub(rb'"dur": [0-9.]+', b'"dur": -Infinity', text, count=30)
    yield "negative duration", edit(_set(dur=-5))
    yield "no duration", edit(_drop("dur"))
    yield "duration as text", edit(_set(dur="3.5"))
    yield "duration of words", edit(_set(dur="long"))
    yield "duration huge", edit(_set(dur=1e30))
    yield "duration is a list", edit(_set(dur=[1, 2]))
    yield "time null", edit(_set(ts=None))
    yield "time missing", edit(_drop("ts"))
    yield "time 1e30", edit(_set(ts=1e30))
    yield "time of 30 digits", edit(_set(ts=10**30))
    yield "time of 5000 digits", text.replace(b'"ts": ', b'"ts": ' + b"9" * 5000, 3)
    yield "time 0", edit(_set(ts=0))
    yield "no correlation", edit(lambda events, kernels: [kernel["args"].pop("correlation") for kernel in kernels[:10]])
    yield "one correlation for ten", edit(_args(correlation=8001))
    yield "correlation 2**70", edit(_args(correlation=2**70))
    yield "correlation 2**63", edit(_args(correlation=2**63))
    yield "correlation as text", edit(_args(correlation="0x1f41"))
    yield "correlation null", edit(_args(correlation=None))
    yield "correlation a fraction", edit(_args(correlation=1.5))
    yield "no args", edit(_drop("args"))
    yield "args a list", edit(_set(args=[1]))
    yield "args null", edit(_set(args=None))
    yield "args text", edit(_set(args="{}"))
    yield "name a number", edit(_set(name=5))
    yield "name a list", edit(_set(name=["a", {"b": 1}]))
    yield "name null", edit(_set(name=None))
    yield "name with a lone surrogate", text.replace(b"gemm_f32", b"gemm_\\ud800", 1)
    yield "name with markup", edit(_set(name="<script>alert(1)</script>\x1b[31m"))
    yield "thread a list", edit(_set(tid=[1]))
    yield "process true", edit(_set(pid=True))
    yield "phase a number", edit(_set(ph=1))
    yield "invalid UTF-8", text.replace(b"gemm_f32", b"ge\xff\xfem_f32")
    yield "control character", text.replace(b"aten::addmm", b"aten::add\x01mm", 1)
    yield "byte order mark", b"\xef\xbb\xbf" + text
    yield "UTF-16", text.decode().encode("utf-16")
    yield "bytes behind the end", text + b"\n}}garbage"
    yield "trailing comma", re.sub(rb"\}\s*\]\}\s*$", b"},]}", text)
    yield "a bracket missing in the middle", text.replace(b"}},\n", b"},\n", 1)
    yield "other things among the events", edit(lambda events, kernels: events.extend([None, 5, "x", []]))
    yield "only other events", b'{"traceEvents": [{"ph": "M", "name": "process_name"}]}'
    yield (
        "launches twice",
        edit(
            lambda events, kernels: events.extend(
                [dict(e, ts=e["ts"] + 5e6) for e in events if e.get("cat") == "cuda_runtime"]
            )
        ),
    )


FILE = Path(__file__).with_name("synthetic_gpu_train.json")

if __name__ == "__main__":
    FILE.write_bytes(training().write())
