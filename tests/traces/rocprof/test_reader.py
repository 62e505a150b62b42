"""The JSON of rocprofv3 as tables: a file recorded on an MI300X, others by hand (tests/data/make_rocprof.py)."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from roofline.errors import InputError, MeasurementError
from roofline.traces.kineto.links import link
from roofline.traces.kineto.reader import KERNEL, MEMCPY
from roofline.traces.rocprof import reader

RECORDED = Path(__file__).parents[2] / "data" / "rocprofv3" / "vcopy_results.json"
#: Start_Timestamp and End_Timestamp [ns] of the three dispatches in ps_file_kernel_trace.csv of the same run.
CSV = [
    (1986623975868304, 1986623975876596),
    (1986623975909003, 1986623975914531),
    (1986623975930955, 1986623975936443),
]


def names(trace, table):
    return [trace.names[code] for code in table.name.tolist()]


def test_the_recorded_dispatches_are_those_of_the_csv_of_the_same_run():
    trace = reader.read(RECORDED)
    device = trace.device
    assert [
        (trace.origin + start, trace.origin + end) for start, end in zip(device.start, device.end, strict=True)
    ] == CSV
    assert device.duration.tolist() == [8292, 5528, 5488]
    assert names(trace, device) == ["vecCopy(double*, double*, double*, int, int)"] * 3
    # Workgroup_Size 256 and Grid_Size 1048576, which is in work-items: 4096 blocks.
    assert [device.arguments(row) for row in range(3)] == [{"grid": [4096, 1, 1], "block": [256, 1, 1]}] * 3
    assert {trace.threads[code] for code in device.thread.tolist()} == {("0", "stream 0 queue 2")}
    memory = {"id": "0", "name": "AMD Instinct MI300X", "totalGlobalMem": 206141652992}
    assert trace.device_properties == (memory,)
    assert (len(trace.launches), len(trace.annotations), trace.warnings) == (0, 0, ())


@pytest.mark.parametrize("older", [False, True])
def test_kinds_are_read_by_their_names_and_not_by_their_numbers(make_rocprof, older):
    """In the older file HIP's calls are of kind 2 and kernels of 5, in the newer of 6 and 3."""
    trace = reader.read(make_rocprof.stepped(1, older=older).write())
    hip = ["hipLaunchKernel"] * 8
    assert names(trace, trace.launches) == [
        *("hipMemcpyAsync", *hip, "hipGraphLaunch", "hipMemcpyAsync", "hipStreamSynchronize")
    ]
    assert names(trace, trace.annotations) == ["train_step"]
    assert names(trace, trace.device.select(trace.device.kind == MEMCPY)) == ["Memcpy HtoD", "Memcpy DtoH"]
    assert trace.device.arguments(0) == {"bytes": 500_000}
    kernels = trace.device.select(trace.device.kind == KERNEL)
    assert names(trace, kernels) == [*["gemm(float*)", "relu(float*, int)"] * 4, "norm(float*)", "relu(float*, int)"]
    on = {trace.threads[code] for code in kernels.thread.tolist()}
    streams = {"queue 1", "queue 2"} if older else {"stream 1 queue 1", "stream 2 queue 2", "stream 0 queue 1"}
    assert on <= {("0", stream) for stream in streams}
    assert len(on) == 2
    assert trace.warnings == ()


def test_what_a_call_launched_has_its_number(make_rocprof):
    """All is launched by the call whose correlation it has, both kernels of the graph by one call."""
    trace = reader.read(make_rocprof.stepped(1).write())
    links = link(trace)
    launched = names(trace, trace.launches.select(links.launch))
    assert launched == [
        *("hipMemcpyAsync", *["hipLaunchKernel"] * 8, "hipGraphLaunch", "hipGraphLaunch", "hipMemcpyAsync")
    ]
    assert links.launch[-3] == links.launch[-2]
    assert links.graph.tolist() == [False] * 9 + [True] * 2 + [False]
    assert (links.launched, links.damaged) == (1.0, 0)


def test_a_copy_in_three_parts_is_of_one_call(make_rocprof):
    """HIP copies memory that is not pinned in parts, all with the number of the call."""
    trace = make_rocprof.Trace()
    call = trace.call("hipMemcpy", 0, 40_000)
    for begin in (10_000, 20_000, 30_000):
        trace.copy("HOST_TO_DEVICE", begin, begin + 5_000, 4 << 20, call)
    links = link(reader.read(trace.write()))
    assert (links.launch.tolist(), links.damaged) == ([0, 0, 0], 0)


def test_times_are_exact_beyond_what_a_float_holds(make_rocprof):
    """FIRST is 2**53 + 1: as floats both starts would be 2**53 + 2, or 2**53."""
    trace = make_rocprof.Trace()
    trace.kernel("a", 0, 3)
    trace.kernel("a", 1, 4)
    read = reader.read(trace.write())
    assert (read.origin, read.device.start.tolist(), read.device.end.tolist()) == (2**53 + 1, [0, 1], [3, 4])


def test_a_kernel_that_a_call_of_hsa_inside_of_one_of_hip_launched_is_of_that_of_hip(make_rocprof):
    trace = make_rocprof.Trace()
    outer = trace.call("hipLaunchKernel", 0, 1_000)
    inner = trace.call("hsa_signal_store_screlease", 300, 600)
    alone = trace.call("hsa_signal_store_screlease", 2_000, 2_100)
    trace.kernel("a", 5_000, 6_000, inner)
    trace.kernel("b", 7_000, 8_000, alone)
    read = reader.read(trace.write())
    assert names(read, read.launches) == ["hipLaunchKernel", "hsa_signal_store_screlease"]
    assert read.device.correlation.tolist() == [outer, alone]


def test_copies_by_their_agents(make_rocprof):
    """What a host copies to itself has no bytes in the memory of a device; a copy between GPUs is called so."""
    trace = make_rocprof.Trace()
    for turn, direction in enumerate(("HOST_TO_HOST", "DEVICE_TO_DEVICE", "DEVICE_TO_DEVICE")):
        trace.copy(direction, 10 * turn, 10 * turn + 5, 64)
    trace.buffers["memory_copy"][2]["src_agent_id"]["handle"] = make_rocprof.OTHER_GPU
    read = reader.read(trace.write())
    assert names(read, read.device) == ["Memcpy HtoH", "Memcpy DtoD", "Memcpy PtoP"]
    assert [read.device.arguments(row).get("bytes") for row in range(3)] == [None, 64, 64]


def test_a_file_is_known_by_its_first_bytes(make_rocprof, tmp_path):
    text = make_rocprof.stepped(1).write()
    packed, other = tmp_path / "a.json.gz", tmp_path / "other.json"
    packed.write_bytes(gzip.compress(text))
    other.write_bytes(b'{"traceEvents": [], "rocprofiler-sdk-tool": []}')
    assert reader.recognises(packed)
    assert reader.recognises(b'\n{\n "rocprofiler-sdk-tool" : [')
    assert not reader.recognises(other)
    assert not reader.recognises(tmp_path)
    assert len(reader.read(packed).device) == 12


def test_files_that_hold_nothing_to_read(make_rocprof):
    calls_alone, kernel, second = make_rocprof.Trace(), make_rocprof.Trace(pid=1), make_rocprof.Trace(pid=2)
    calls_alone.call("hipLaunchKernel", 0, 5)
    for trace in (kernel, second):
        trace.kernel("a", 0, 5)
    with pytest.raises(MeasurementError, match="holds calls of the host, and no kernel"):
        reader.read(calls_alone.write())
    with pytest.raises(InputError, match="holds no kernel and no copy: record with"):
        reader.read(make_rocprof.Trace().write())
    with pytest.raises(InputError, match=r"kernels of several processes \(1, 2\): import the file of each"):
        reader.read(kernel.write(second))
    with pytest.raises(InputError, match="damaged or cut off"):
        reader.read(kernel.write()[:-5])
    with pytest.raises(InputError, match="larger than 0 MiB"):
        reader.read(kernel.write(), max_bytes=100)
    assert len(reader.read(kernel.write(calls_alone)).device) == 1  # of two processes the one that used the GPU


#: What is changed in the second of three kernels, and what the warnings say of it.
SPOILED = {
    "end before start": ({"end_timestamp": 1}, "missing or impossible duration counted as 0 ns: 1"),
    "no time": ({"start_timestamp": 0}, "without a usable time dropped: 1"),
    "negative time": ({"start_timestamp": -5}, "without a usable time dropped: 1"),
    "huge time": ({"start_timestamp": 2**64 - 1}, "without a usable time dropped: 1"),
    "beyond 64 bits": ({"start_timestamp": 2**70}, "without a usable time dropped: 1"),
    "days later": ({"start_timestamp": 2**60}, "more than a day away from the others dropped: 1"),
    "text": ({"start_timestamp": "soon"}, "do not have the form of rocprofv3's left out: 1"),
    "no dispatch": ({"dispatch_info": None}, "do not have the form of rocprofv3's left out: 1"),
    "unknown kernel": ({"dispatch_info": {"kernel_id": 99}}, "kernels that the file does not name: 1"),
    "correlation": ({"correlation_id": {"internal": -7}}, None),
}


@pytest.mark.parametrize(("changed", "warning"), SPOILED.values(), ids=SPOILED)
def test_a_damaged_record_is_left_out_or_mended_alone(make_rocprof, changed, warning):
    trace = make_rocprof.Trace()
    for begin in (0, 10, 20):
        trace.kernel("a", begin, begin + 5)
    trace.buffers["kernel_dispatch"][1] |= changed
    read = reader.read(trace.write())
    dropped = warning is not None and ("dropped" in warning or "left out" in warning)
    assert (names(read, read.device)[0], len(read.device)) == ("a", 2 if dropped else 3)
    assert (read.device.duration >= 0).all()
    assert [str(repair) for repair in read.warnings if warning and warning in str(repair)] or (warning is None)


def test_tables_that_are_missing_or_no_lists_leave_the_kernels(make_rocprof):
    """Then kernels have no names and no device, calls no names, and copies no direction."""
    process = make_rocprof.stepped(1).process()
    for key, text in (("agents", {}), ("strings", {"buffer_records": 5}), ("kernel_symbols", "none")):
        process[key] = text
    del process["metadata"]
    read = reader.read(json.dumps({"rocprofiler-sdk-tool": [process]}).encode())
    assert {*names(read, read.device)} == {"Memcpy", "kernel 1", "kernel 2", "kernel 3"}
    assert {*names(read, read.launches)} == {"(unnamed call)"}
    assert read.device.arguments(0) == {}  # nobody knows whose memory the bytes are of
    assert (len(read.device), len(read.annotations), read.device_properties) == (12, 0, ())
