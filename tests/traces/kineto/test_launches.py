"""Which launch a device event can be of: what ids claim, against what launches make."""

from __future__ import annotations

import json

import pytest

from roofline.traces.kineto import launches, reader
from roofline.traces.kineto import links as link


def joined(made, **names):
    """The launch of each device event, by its number in order of time (-1: none), and the number of damaged ones.

    names: other names for the runtime's calls, by "c" and their correlation.
    """
    document = json.loads(made.write().replace(b'"External id"', b'"Nothing"'))
    for event in document["traceEvents"]:
        if event["cat"] == "cuda_runtime":
            event["name"] = names.get(f"c{event['args']['correlation']}", event["name"])
    links = link.link(reader.read(json.dumps(document).encode()))
    return links.launch.tolist(), links.damaged


@pytest.fixture
def made(make_kineto):
    return make_kineto.Trace()


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("Cijk_Alik.kd", "Cijk_Alik"),
        ("void f<int>(int) [clone .kd]", "void f<int>"),
        ("void f<int>(int) (.kd)", "void f<int>"),
        ("void f<(int)4>(float*, int)", "void f<(int)4>"),
        ("void at::(anonymous namespace)::f<int>(a(*)(b))", "void at::(anonymous namespace)::f<int>"),
        ("void at::(anonymous namespace)::f<int>", "void at::(anonymous namespace)::f<int>"),
        ("odd)", "odd)"),
        ("", ""),
    ],
)
def test_a_kernels_name_without_its_arguments(name, plain):
    assert launches.plain_name(name) == plain


def test_one_launch_makes_one_kernel(made):
    # Three alike launches; the last kernel was given the correlation of the first. Which of the two it is of, nothing
    # tells.
    for at in (0, 100, 200):
        made.launch("k", at, at + 10, at + 20)
    made.events[-1]["args"]["correlation"] = 8001
    assert joined(made) == ([-1, 1, -1], 2)


def test_a_launch_for_several_devices_makes_one_kernel_on_each(made):
    made.launch("k", 0, 10, 20)
    made.kernel("k", 10, 20, 8001)
    made.events[-1] |= {"pid": 1}  # on another device
    assert joined(made) == ([-1, -1], 2)
    assert joined(made, c8001="cudaLaunchCooperativeKernelMultiDevice") == ([0, 0], 0)


def test_two_copies_of_one_call_are_its_parts_only_side_by_side(made):
    for at in (0, 100, 200):
        made.copy("Memcpy HtoD", at + 10, at + 20, made.call("cudaMemcpyAsync", at, at + 4), 8)
    assert joined(made) == ([0, 1, 2], 0)
    made.events[-1]["args"]["correlation"] = 8001
    assert joined(made) == ([-1, 1, -1], 2)  # another copy ran in between
    made.events[-1]["args"]["correlation"] = 8002
    assert joined(made) == ([0, -1, -1], 2)  # the third call has no copy: it may be its


def test_a_kernel_comes_from_no_copy_and_no_fill(made):
    made.kernel("k", 10, 20, made.call("cudaMemsetAsync", 0, 4))
    made.copy("Memcpy HtoD", 110, 120, made.call("cudaLaunchKernel", 100, 104), 8)
    made.kernel("k", 210, 220, made.call("cudaLaunchKernelExC", 200, 204))
    assert joined(made) == ([-1, -1, 2], 2)


def test_hip_copies_and_fills_with_kernels_of_its_own(made):
    made.kernel("__amd_rocclr_fillBufferAligned.kd", 10, 20, made.call("hipMemsetAsync", 0, 4))
    made.kernel("gemm", 110, 120, made.call("hipMemcpyWithStream", 100, 104))
    assert joined(made) == ([0, -1], 1)


def exchange(made, one, other):
    """Gives two kernels, by their number, the correlation of each other."""
    kernels = [event["args"] for event in made.events if event["cat"] == "kernel"]
    one, other = kernels[one], kernels[other]
    one["correlation"], other["correlation"] = other["correlation"], one["correlation"]


@pytest.mark.parametrize("together", [2, 2000])
def test_hip_names_the_kernel_beside_the_launch(made, monkeypatch, together):
    monkeypatch.setattr(launches, "_TOGETHER", together)
    calls = [made.call("hipLaunchKernel", at, at + 99) for at in range(0, 500, 100)]  # all at once, a thread each
    for number, name in enumerate(["a(int)", "b", "a(int)", "b", "a(int)"]):
        made.events[number]["args"]["kernel"] = name.removesuffix("(int)")
        made.events[number] |= {"start": 0, "tid": number}
        made.kernel(name, 1000 + 10 * number, 1005 + 10 * number, calls[number])
    assert joined(made) == ([0, 1, 2, 3, 4], 0)
    exchange(made, 2, 3)
    assert joined(made) == ([0, 1, -1, -1, 4], 2)
    for number in range(5):
        made.events[number]["args"]["kernel"] = "_Z1av"  # mangled: no name is equal, and none says anything
    assert joined(made) == ([0, 1, 3, 2, 4], 0)


def test_kernels_of_a_stream_run_in_the_order_of_their_launches(made):
    for at in (0, 100, 200, 300, 400):
        made.launch("k", at, 1000 + at, 1050 + at)
    made.launch("elsewhere", 500, 510, 520, stream=9)  # a stream of its own has an order of its own
    assert joined(made) == ([5, 0, 1, 2, 3, 4], 0)
    exchange(made, 1, 2)
    assert joined(made) == ([5, 0, -1, -1, 3, 4], 2)


def test_launches_that_overlap_have_no_order(made):
    for thread in (1, 2):
        made.call("cudaLaunchKernel", 10 * thread, 50, tid=thread)
    for call in (2, 1):
        made.kernel("k", 200 - 50 * call, 220 - 50 * call, 8000 + call)
    assert joined(made) == ([1, 0], 0)


def test_where_most_kernels_are_out_of_order_it_says_nothing(made):
    for at in (0, 100, 200, 300):
        made.launch("k", at, 2000 - at, 2050 - at)
    assert joined(made) == ([3, 2, 1, 0], 0)


# Several processes in one file


def two_processes(made, **second):
    """The same step of a second process, which counts its ids anew: an op of 10 µs that launches a kernel, twice."""
    for at in (0, 100):
        made.op("aten::relu", at, at + 10, ([8], "float", [1]))
        made.launch("k", at + 1, at + 20, at + 30)
    document = json.loads(made.write())
    events = document["traceEvents"]
    document["traceEvents"] = events + [
        event
        | ({"pid": 1} if event["cat"] == "kernel" else {"pid": 200})
        | {"ts": event["ts"] + 50, "args": event["args"] | second}
        for event in events
    ]
    return link.link(reader.read(json.dumps(document).encode()))


def test_ids_of_several_processes_join_nothing(made):
    # Correlations and ids of ops are all there twice: each kernel may be of either process.
    links = two_processes(made)
    assert (links.launch == -1).all()
    assert (links.op == -1).all()
    assert (links.damaged, links.clashing) == (4, 4)
    assert links.linked == 0


def test_ids_that_several_ops_have_name_none(made):
    for at in (0, 100):
        made.op("aten::relu", at, at + 10, ([8], "float", [1]))
        made.launch("k", at + 1, at + 20, at + 30)
    document = json.loads(made.write())
    for event in document["traceEvents"]:
        event["args"]["External id"] = 1
    trace = reader.read(json.dumps(document).encode())
    assert link.link(trace).op.tolist() == [0, 1]  # by correlation and by the op around the launch
    for event in document["traceEvents"]:
        event["args"].pop("correlation", None)
    links = link.link(reader.read(json.dumps(document).encode()))
    assert links.op.tolist() == [-1, -1]
    assert (links.damaged, int(((links.launch < 0) & ~links.unsure).sum())) == (2, 0)
