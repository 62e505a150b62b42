"""Calls from the arguments that a Chrome trace records."""

from __future__ import annotations

import json

import pytest

from roofline.traces import kineto, kineto_calls
from roofline.traces.calls import Call, Tensor


def nodes(made):
    trace = kineto.read(made.write())
    return kineto_calls.columns(trace, trace.ops)


def test_arguments_of_all_kinds(make_kineto):
    made = make_kineto.Trace()
    lists = ([[2, 3], [4]], "TensorList", [[3, 1], [1]], "")
    made.op("aten::x", 0, 5, ([2, 3], "float", [1, 2]), "1e-05", "True", ([], "ScalarList", [], "[1, 2]"), lists)
    found = nodes(made).call(0)
    assert found == Call(
        "aten::x",
        None,
        (
            Tensor((2, 3), (1, 2), "float", device=""),
            1e-05,
            True,
            (1, 2),
            (Tensor((2, 3), (3, 1), "", device=""), Tensor((4,), (1,), "", device="")),
        ),
    )


def test_equal_calls_are_one_object(make_kineto):
    made = make_kineto.Trace()
    for start in (0, 10):
        made.op("aten::x", start, start + 5, make_kineto.X, "1")
    made.op("aten::y", 20, 25, make_kineto.X, "1")
    made.op("aten::x", 30, 35, make_kineto.X, "1.0")
    found = nodes(made)
    assert found.call(0) is found.call(1)
    assert len({id(found.call(row)) for row in range(4)}) == 3


def test_sequence_numbers(make_kineto):
    made = make_kineto.Trace()
    for start, number in enumerate((5, -1, "6", 7.0, None, True, 2**70, 2**61)):
        made.op("aten::x", 10 * start, 10 * start + 5, **{"Sequence number": number})
    made.op("aten::x", 100, 105)
    assert nodes(made).sequence.tolist() == [5, -1, -1, -1, -1, -1, -1, 2**61, -1]


@pytest.mark.parametrize(
    "args",
    [
        {"Input Dims": "x", "Input type": ["float"]},
        {"Input Dims": [[1]], "Input type": ["float", "float"]},
        {"Input Dims": {"a": 1}, "Input type": ["float"]},
        {"Input Dims": None},
    ],
)
def test_damaged_arguments_are_none(make_kineto, args):
    made = make_kineto.Trace()
    made.op("aten::x", 0, 5, **args)
    made.op("aten::x", 10, 15, make_kineto.X)
    found = nodes(made)
    assert found.call(0).inputs == ()
    assert found.call(1).inputs == (Tensor((32, 256), (256, 1), "float", device=""),)


def test_arguments_that_are_no_object_spoil_no_other_event():
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::x", "pid": 1, "tid": 1, "ts": start, "dur": 5, "args": args}
        for start, args in ((0, [1, 2]), (10, {"Input Dims": [[3]], "Input type": ["float"], "Sequence number": 4}))
    ]
    trace = kineto.read(json.dumps({"traceEvents": events}).encode())
    found = kineto_calls.columns(trace, trace.ops)
    assert [found.call(row).inputs for row in (0, 1)] == [(), (Tensor((3,), None, "float", device=""),)]
    assert found.sequence.tolist() == [-1, 4]
