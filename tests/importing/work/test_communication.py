"""Communication: payloads, and what of it computation hides."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofline.costs.calls import Call, Tensor
from roofline.importing.work import communication
from roofline.traces.kineto import reader
from roofline.traces.kineto.links import link

SAID = {
    "Collective name": "_allgather_base",
    "In msg nelems": 100,
    "Out msg nelems": 800,
    "dtype": "BFloat16",
    "Group size": 8,
}


def tensor(*shape, dtype="float"):
    return Tensor(shape, None, dtype, device="")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("c10d::allreduce_", True),
        ("_c10d_functional::all_reduce", True),
        ("record_param_comms", True),
        ("symm_mem::multimem_all_reduce_", True),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", True),
        ("aten::add", False),
        ("Memcpy PtoP", False),
    ],
)
def test_names(name, expected):
    assert communication.is_communication(name) == expected


def test_a_message_says_its_size():
    for ops, kernel in (([SAID], {}), ([], SAID), ([{}], SAID)):
        found = communication.costed(Call("record_param_comms", None, ()), ops, kernel)
        # 100 numbers of 2 bytes go out, 800 come in.
        assert (found.cost.bytes_read, found.cost.bytes_written) == (200, 1600)
        assert (found.op_class, found.kind, found.cost.quality) == ("communication", "allgather_base", "exact")
        assert found.cost.note == "payload of _allgather_base, 8 ranks"


def test_a_rank_that_sends_nothing_says_so():
    """As in an all-to-all of unequal parts: 0 numbers are a size, not an unknown one."""
    found = communication.costed(Call("record_param_comms", None, ()), [{**SAID, "In msg nelems": 0}], {})
    assert (found.cost.bytes_read, found.cost.bytes_written, found.cost.quality) == (0, 1600, "exact")


def test_the_tensors_of_a_collective_are_its_payload_where_it_says_nothing():
    call = Call("symm_mem::multimem_all_reduce_", None, (tensor(10), "sum"))
    found = communication.costed(call, [{}], {})
    assert (found.cost.bytes_read, found.cost.bytes_written, found.cost.quality) == (40, 40, "assumed")
    around = Call("All2All_Pooled_Req", None, (tensor(4, 8),))
    found = communication.costed(Call("record_param_comms", None, ()), [], {}, around)
    assert (found.cost.bytes_read, found.cost.note) == (128, "payload from the tensors of All2All_Pooled_Req")


def test_a_list_without_sizes_is_no_payload_and_neither_is_what_follows_it():
    call = Call("c10d::allreduce_", None, (None, tensor(3), 0))
    found = communication.costed(call, [{}], {})
    assert (found.cost.quality, found.cost.bytes) == ("unknown", None)
    found = communication.costed(call, [{}], {}, exchanged=400.0)
    assert (found.cost.bytes_read, found.cost.bytes_written, found.cost.quality) == (400, 400, "assumed")


@pytest.mark.parametrize(
    "damage",
    [
        {"dtype": "Quaternion"},
        {"dtype": None},
        {"dtype": ["Float"]},
        {"In msg nelems": -1},
        {"In msg nelems": 2**60},
        {"Out msg nelems": "8"},
        {"Out msg nelems": True},
    ],
)
def test_damaged_messages_say_nothing(damage):
    found = communication.costed(Call("record_param_comms", None, ()), [{**SAID, **damage}], {})
    assert found.cost.quality == "unknown"


def test_arguments_of_damaged_events_are_empty():
    assert communication.arguments(b'{"a": 1}') == {"a": 1}
    for text in (b"", b"[1]", b"{", b"[" * 100_000, b"\xff"):
        assert communication.arguments(text) == {}


# Exposure


def test_the_synthetic_step(make_kineto):
    trace = reader.read(make_kineto.training(1).write())
    links = link(trace)
    # The all-reduce runs from 400 to 520, the compute stream until 480.
    found = whole(trace)
    assert (found.total, found.exposed) == (pytest.approx(120e-6), pytest.approx(40e-6))
    assert found.hidden == pytest.approx(80e-6)
    origin = int(trace.device.start.min()) - 110_000
    # From 470 to 500: 30 of it, 20 exposed. From 0 to 400 nothing, from 500 to 600 the last 20, exposed.
    windows = origin + 1000 * np.asarray([[470, 500], [0, 400], [500, 600]])
    found = communication.exposed(trace, links, *windows.T)
    assert [each.total for each in found] == pytest.approx([30e-6, 0, 20e-6])
    assert [each.exposed for each in found] == pytest.approx([20e-6, 0, 20e-6])
    assert communication.exposed(trace, links, *np.zeros((2, 0), np.int64)) == []


def whole(trace):
    """The exposure in all of a trace."""
    device = trace.device
    return communication.exposed(trace, link(trace), device.start.min(keepdims=True), device.end.max(keepdims=True))[0]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 60), st.integers(0, 30)), max_size=12))
def test_exposure_is_the_time_in_which_only_communication_runs(make_kineto, spans):
    made = make_kineto.Trace()
    made.launch("first", 0, 0, 1)
    seconds = {True: set(), False: {0}}
    for is_comm, start, length in spans:
        made.launch("ncclKernel" if is_comm else "gemm", 0, start, start + length, stream=7 + is_comm)
        seconds[is_comm] |= set(range(start, start + length))
    trace = reader.read(made.write())
    found = whole(trace)
    assert round(found.total * 1e6) == len(seconds[True])
    assert round(found.exposed * 1e6) == len(seconds[True] - seconds[False])


@pytest.mark.parametrize(
    ("name", "exposed", "total"),
    # [ms] Reference figures of the traces, by scripts that share no code with this.
    [
        ("a100_recsys_train.json.gz", 87.9, 163.5),
        pytest.param("v100_recsys_train.json.gz", 73.3, 251.3, marks=pytest.mark.thorough),
        ("b200_eager.json.gz", 2.14, 2.14),
    ],
)
def test_recorded_traces(recorded, name, exposed, total):
    trace = reader.read(recorded(name))
    found = whole(trace)
    assert (found.exposed * 1e3, found.total * 1e3) == (
        pytest.approx(exposed, abs=0.05),
        pytest.approx(total, abs=0.05),
    )
