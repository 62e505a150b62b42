"""From device events to the ops that launched them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline.errors import InputError
from roofline.traces.kineto import links as link
from roofline.traces.kineto import reader


@pytest.fixture(scope="module")
def trace(make_kineto):
    return reader.read(make_kineto.training().write())


def op_of(trace, links, kernel):
    """The names of the ops of all kernels whose name holds `kernel`."""
    return [
        trace.names[trace.ops.name[links.op[row]]] if links.op[row] >= 0 else None
        for row in range(len(trace.device))
        if kernel in trace.names[trace.device.name[row]]
    ]


def orphans(links):
    """How many device events have sound ids and a launch that is not in the trace."""
    return int(((links.launch < 0) & ~links.unsure).sum())


def test_parents_lead_to_the_autograd_node(trace):
    links = link.link(trace)
    row = links.op[[trace.names[code] for code in trace.device.name].index("sm80_gemm_f32f32_nn")]
    chain = []
    while row >= 0:
        chain.append(trace.names[trace.ops.name[row]])
        row = links.parent[row]
    assert chain == ["aten::mm", "AddmmBackward0", "autograd::engine::evaluate_function: AddmmBackward0"]


def test_without_ids_containment_links_alone(make_kineto):
    made = make_kineto.training(1)
    trace = reader.read(made.write().replace(b'"External id"', b'"Nothing"'))
    links = link.link(trace)
    assert links.linked == 1.0
    assert links.agreement is None
    assert links.compared == 0


def test_ids_that_copy_the_correlation_are_not_believed(make_kineto):
    # As written in 2022: External id equals correlation, and ops happen to have such ids as well.
    document = json.loads(make_kineto.training(1).write())
    for event in document["traceEvents"]:
        if event["cat"] in ("kernel", "gpu_memcpy"):
            event["args"]["External id"] = event["args"]["correlation"]
    links = link.link(reader.read(json.dumps(document).encode()))
    assert links.linked == 1.0
    assert links.compared == 0


def test_damaged_correlations_are_noticed_and_ids_stand_in(make_kineto):
    text = make_kineto.training(1).write()
    whole = link.link(reader.read(text))
    links = link.link(reader.read(dict(make_kineto.damaged(text))["one correlation for ten"]))
    # Ten kernels were given the correlation of the first copy, and no copy makes a kernel.
    assert links.damaged == 10
    assert links.op.tolist() == whole.op.tolist()
    assert links.by_id.sum() == 10
    assert links.linked == 1.0
    assert orphans(links) == 0


def uncorrelated(made, *categories, flows=False, ids=True):
    """The trace without the correlations of events of some categories, and without External ids or with flows."""
    document = json.loads(made)
    events = document["traceEvents"]
    begins = {event["args"]["correlation"]: event for event in events if event["cat"] == "cuda_runtime"}
    for event in [event for event in events if event["cat"] in categories]:
        number = event["args"].pop("correlation")
        if not ids:
            event["args"].pop("External id", None)
        for ph, end in (("s", begins.get(number)), ("f", event)):
            if flows and end is not None and event["cat"] != "cuda_runtime":
                events.append({key: end[key] for key in ("pid", "tid", "ts")} | {"ph": ph, "id": number, "cat": "ac2g"})
    return json.dumps(document).encode()


def test_without_correlations_launches_have_the_id_of_what_they_launched(make_kineto):
    text = make_kineto.training().write()
    whole = link.link(reader.read(text))
    # One op launches two kernels: they have its id, and are matched in order.
    links = link.link(reader.read(uncorrelated(text, "kernel", "gpu_memcpy", "cuda_runtime")))
    assert links.launch.tolist() == whole.launch.tolist()
    assert links.op.tolist() == whole.op.tolist()
    assert links.by_id.sum() == 0
    assert links.launched == 1.0


def test_a_kernel_too_many_of_an_op_is_joined_to_no_launch(make_kineto):
    document = json.loads(uncorrelated(make_kineto.training(1).write(), "kernel", "gpu_memcpy", "cuda_runtime"))
    events = document["traceEvents"]
    twice = next(event for event in events if "GammaBeta" in event["name"])
    events.append(twice | {"ts": twice["ts"] + 5})
    links = link.link(reader.read(json.dumps(document).encode()))
    assert (links.launch < 0).sum() == 3  # two launches, three kernels
    assert links.linked == 1.0  # they have the id of their op


def test_flows_stand_in_where_no_id_is_left(make_kineto):
    text = make_kineto.training().write()
    whole = link.link(reader.read(text))
    links = link.link(reader.read(uncorrelated(text, "kernel", "gpu_memcpy", flows=True, ids=False)))
    assert links.launch.tolist() == whole.launch.tolist()
    assert (link.link(reader.read(uncorrelated(text, "kernel", "gpu_memcpy", ids=False))).launch == -1).all()


def test_a_flow_from_several_launches_names_none(make_kineto):
    document = json.loads(uncorrelated(make_kineto.training(1).write(), "kernel", flows=True, ids=False))
    begins = [event for event in document["traceEvents"] if event.get("ph") == "s"]
    begins[0]["id"] = begins[1]["id"]
    links = link.link(reader.read(json.dumps(document).encode()))
    assert (links.launch < 0).sum() == 2


def test_launches_of_a_recorded_trace_without_correlations(recorded):
    trace = reader.read(recorded("mi300x_gemm_external_ids.json.gz"))
    links = link.link(trace)
    assert (trace.device.correlation == -1).all()
    # Ten products of two kernels each: every one is launched in its op.
    assert sorted(links.op.tolist()) == sorted([*range(10)] * 2)
    assert links.launched == links.linked == 1.0
    assert {trace.names[trace.launches.name[row]] for row in links.launch.tolist()} == {"hipExtModuleLaunchKernel"}


def test_missing_correlations_leave_the_ids(make_kineto):
    text = uncorrelated(make_kineto.training(1).write(), "cuda_runtime", ids=False)
    links = link.link(reader.read(text))
    assert links.linked == 1.0
    assert orphans(links) == 19
    assert links.by_id.sum() == 19


def test_without_correlations_launches_share_the_ids_of_kernels(make_kineto):
    made = make_kineto.Trace()
    for number, name in enumerate(("a", "b")):
        made.op("aten::relu", 100 * number, 100 * number + 50)
        made.launch(name, 100 * number + 10, 100 * number + 20, 100 * number + 40)
    events = json.loads(made.write())
    for event in events["traceEvents"]:
        args = event.get("args", {})
        if (correlation := args.pop("correlation", None)) is not None:
            args["External id"] = 1000 + correlation
    trace = reader.read(json.dumps(events).encode())
    links = link.link(trace)
    assert links.launch.tolist() == links.op.tolist() == [0, 1]
    # Where launches share an id, it is no id of a launch.
    for event in events["traceEvents"]:
        if "External id" in event.get("args", {}) and event["cat"] != "cpu_op":
            event["args"]["External id"] = 1000
    assert (link.link(reader.read(json.dumps(events).encode())).launch < 0).all()


def test_a_repeated_correlation_means_the_last_launch_before(make_kineto):
    text = make_kineto.training(1).write()
    whole = link.link(reader.read(text))
    links = link.link(reader.read(dict(make_kineto.damaged(text))["launches twice"]))
    assert links.launch.tolist() == whole.launch.tolist()


def test_a_graph_launches_many(make_kineto):
    made = make_kineto.Trace()
    made.op("replay", 0, 10)
    replay = made.call("cudaGraphLaunch", 2, 8)
    for at in range(20, 50, 10):
        made.kernel("node", at, at + 5, replay)
    outside = made.call("cudaGraphLaunch", 12, 18)
    made.kernel("node", 60, 65, outside)
    links = link.link(reader.read(made.write()))
    assert links.graph.tolist() == [True] * 4
    assert links.damaged == 0
    assert links.op.tolist() == [0, 0, 0, -1]
    assert ((links.launch >= 0) & (links.op < 0)).sum() == 1  # launched outside any op
    assert links.linked == 15 / 20


def test_a_launch_prefers_the_call_that_launches(make_kineto):
    made = make_kineto.Trace()
    made.op("a", 0, 10)
    call = made.call("cudaLaunchKernel", 2, 4)
    made.call("cudaEventRecord", 5, 6)
    made.events[-1]["args"]["correlation"] = call
    made.kernel("k", 20, 30, call)
    links = link.link(reader.read(made.write()))
    assert links.launch.tolist() == [0]


# What cannot be right is not joined


def changed(text, change):
    document = json.loads(text)
    events = document["traceEvents"]
    change([e for e in events if e["cat"] == "kernel"], events)
    return reader.read(json.dumps(document).encode())


def test_damaged_ids_join_nothing_wrong(make_kineto):
    text = make_kineto.training(1).write()
    whole = link.link(reader.read(text))

    def swap(kernels, events):
        kernels[4]["args"]["correlation"] = 8002  # of the gemm: the launch of another op

    trace = changed(text, swap)
    links = link.link(trace)
    shared = trace.device.correlation == 8002
    # The gemm shares its launch now, and loses it as well; their ids still name the ops of both.
    assert shared.sum() == links.damaged == 2
    assert (links.launch[shared] == -1).all()
    assert links.launch[~shared].tolist() == whole.launch[~shared].tolist()
    assert links.op.tolist() == whole.op.tolist()

    def rename(kernels, events):
        kernels[4]["args"]["External id"] = kernels[5]["args"]["External id"]

    links = link.link(changed(text, rename))
    wrong = links.launch == -1
    assert wrong.sum() == links.damaged == 1
    assert links.op[wrong].tolist() == [-1]
    assert links.op[~wrong].tolist() == whole.op[~wrong].tolist()


def test_without_ids_a_launch_of_two_kernels_is_of_neither(make_kineto):
    def swap(kernels, events):
        kernels[4]["args"]["correlation"] = 8002
        for event in events:
            event["args"].pop("External id", None)

    links = link.link(changed(make_kineto.training(1).write(), swap))
    assert links.damaged == 2
    assert (links.op == -1).sum() == 2


def test_parts_of_one_copy_share_their_launch(make_kineto):
    made = make_kineto.Trace()
    made.op("aten::copy_", 0, 10)
    call = made.call("cudaMemcpyAsync", 2, 5)
    made.copy("Memcpy PtoP", 20, 30, call, 8)
    made.copy("Memcpy PtoP", 30, 40, call, 8)
    links = link.link(reader.read(made.write()))
    assert links.launch.tolist() == [0, 0]
    assert links.damaged == 0


def test_a_kernel_before_its_launch_is_not_joined(make_kineto):
    made = make_kineto.Trace()
    for at in (0, 1000, 2000):
        made.op("a", at, at + 10)
        made.launch("k", at + 2, at + 20, at + 30)
    made.kernel("early", 500, 510, made.correlation)
    early = reader.read(made.write().replace(b'"External id"', b'"Nothing"'))
    links = link.link(early)
    # Of the two kernels behind the last launch only one can be of it.
    assert [early.names[code] for code in early.device.name[links.launch < 0]] == ["early"]
    assert links.damaged == 1

    made = make_kineto.Trace()  # clocks 100 us apart: every kernel seems to begin too early, and all are joined
    for at in (0, 1000, 2000):
        made.op("a", at + 100, at + 110)
        made.launch("k", at + 102, at + 20, at + 30)
    assert link.link(reader.read(made.write())).linked == 1.0


def test_no_kernel_comes_from_a_synchronisation(make_kineto):
    made = make_kineto.Trace()
    made.op("a", 0, 10)
    made.kernel("k", 20, 30, made.call("cudaStreamSynchronize", 2, 9))
    links = link.link(reader.read(made.write()))
    assert links.launch.tolist() == [-1]
    assert orphans(links) == 1


def test_ids_of_something_else_are_not_believed(make_kineto):
    def shift(kernels, events):
        for event in events:
            if event["cat"] in ("kernel", "gpu_memcpy"):
                event["args"]["External id"] = event["args"]["External id"] % 30 + 2

    links = link.link(changed(make_kineto.training(1).write(), shift))
    assert links.agreement < 0.5
    assert links.linked == 1.0
    assert links.damaged == 0


def test_among_ids_that_copy_the_correlation_one_that_does_not_is_damage(make_kineto):
    def old(kernels, events):
        for event in events:
            if event["cat"] in ("kernel", "gpu_memcpy"):
                event["args"]["External id"] = event["args"]["correlation"]
        kernels[0]["args"]["correlation"] = 8021  # a synchronisation's
        kernels[1]["args"]["correlation"] = 8004

    links = link.link(changed(make_kineto.training(1).write(), old))
    assert (links.launch == -1).sum() == 3  # those two, and the kernel that 8004 belongs to
    assert links.damaged == 2
    assert orphans(links) == 1


def joins(trace):
    """Which launch each kernel was joined to and which op, by their times, and the kernels and calls there are."""
    links = link.link(trace)
    device, launches, ops = trace.device, trace.launches, trace.ops
    at = trace.origin
    found = set()
    for row in range(len(device)):
        kernel = (int(device.start[row]) + at, trace.names[device.name[row]])
        if links.launch[row] >= 0:
            found.add((kernel, "launch", int(launches.start[links.launch[row]]) + at))
        if links.op[row] >= 0:
            op = links.op[row]
            found.add((kernel, "op", (int(ops.start[op]) + at, trace.names[ops.name[op]])))
    return found


@settings(max_examples=400)
@given(data=st.data())
def test_a_changed_byte_never_joins_a_kernel_to_another_launch(make_kineto, data):
    text = bytearray(make_kineto.training(1).write())
    sound = joins(reader.read(bytes(text)))
    kernels = {kernel for kernel, _, _ in sound}
    ends = {end for _, _, end in sound}
    digits = [at for at, byte in enumerate(text) if chr(byte).isdigit()]
    place = data.draw(st.sampled_from(digits) | st.integers(0, len(text) - 1))
    text[place] = data.draw(st.sampled_from(b"0123456789") | st.integers(0, 255))
    try:
        found = joins(reader.read(bytes(text)))
    except InputError:
        return
    # The changed event itself may have another time or name, and then is none of these.
    wrong = {join for join in found - sound if join[0] in kernels and join[2] in ends}
    assert not wrong


def test_a_trace_of_a_cpu_has_nothing_to_link(make_kineto):
    made = make_kineto.Trace()
    made.op("aten::add", 0, 10)
    links = link.link(reader.read(made.write()))
    assert links.linked is None
    assert links.parent.tolist() == [-1]


def test_device_events_without_any_op(make_kineto):
    made = make_kineto.Trace()
    made.kernel("k", 0, 10, 5)
    links = link.link(reader.read(made.write()))
    assert links.linked == 0.0
    assert orphans(links) == 1


@pytest.mark.parametrize(
    ("name", "launched", "linked"),
    [
        ("h100_bert_small_infer.json.gz", 1.000, 1.000),
        ("mi300x_bert_small_infer.json.gz", 1.000, 1.000),
        ("mi300x_torch_compile_triton.json.gz", 1.000, 1.000),
        ("h100_qwen_0.5b_infer.json.gz", 0.699, 0.699),  # 509 kernels were launched before the window
        ("b200_eager.json.gz", 1.000, 0.9996),  # Triton launched from Python outside any op
        ("mi300x_vllm_decode_graph.json.gz", 1.000, 0.031),  # a graph launched outside any op
        ("a100_recsys_train.json.gz", 1.000, 0.985),  # an optimizer of apex outside any op
        ("v100_recsys_train.json.gz", 0.941, 0.929),
        ("mi300x_gemm_external_ids.json.gz", 1.000, 1.000),  # without any correlation
    ],
)
def test_linked_share_of_recorded_traces(recorded, name, launched, linked):
    links = link.link(reader.read(recorded(name)))
    assert links.launched == pytest.approx(launched, abs=6e-4)
    assert links.linked == pytest.approx(linked, abs=6e-4)
    assert links.agreement in (None, 1.0)
    assert links.damaged == 0


def test_kernels_launched_before_a_cut_window(recorded):
    assert orphans(link.link(reader.read(recorded("h100_qwen_0.5b_infer.json.gz")))) == 509
