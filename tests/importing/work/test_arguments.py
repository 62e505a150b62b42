"""Calls from the arguments that a Chrome trace records."""

from __future__ import annotations

import json

import pytest

from roofline.costs.calls import Call, Tensor
from roofline.costs.dtypes import Unsaid, said
from roofline.importing.work import arguments
from roofline.traces.kineto import reader


def nodes(made):
    trace = reader.read(made.write())
    return arguments.columns(trace, trace.ops)


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


def test_a_type_in_another_spelling_is_the_same_type(make_kineto):
    made = make_kineto.Trace()
    made.op("aten::x", 0, 5, ([2, 3], "c10::bfloat16", [3, 1]))
    assert nodes(made).call(0).inputs == (Tensor((2, 3), (3, 1), "c10::BFloat16", device=""),)


@pytest.mark.parametrize("value", ["[" * 3000 + "]" * 3000, "[[1, 2], [3]]", "[[", "[" * 4000])
def test_lists_of_lists_are_no_arguments(make_kineto, value):
    made = make_kineto.Trace()
    made.op("aten::x", 0, 5, ([2, 3], "float", [3, 1]), value)
    found = nodes(made).call(0).inputs[1]
    assert found is None or found == value


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


def test_strides_and_values_may_be_fewer_than_arguments():
    args = {"Input Dims": [[4], [4]], "Input type": ["float", "float"], "Input Strides": [[2]], "Concrete Inputs": [""]}
    first, second = Tensor((4,), (2,), "float", device=""), Tensor((4,), None, "float", device="")
    assert arguments.call("aten::x", args).inputs == (first, second)


def test_arguments_that_are_no_object_spoil_no_other_event():
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::x", "pid": 1, "tid": 1, "ts": start, "dur": 5, "args": args}
        for start, args in ((0, [1, 2]), (10, {"Input Dims": [[3]], "Input type": ["float"], "Sequence number": 4}))
    ]
    trace = reader.read(json.dumps({"traceEvents": events}).encode())
    found = arguments.columns(trace, trace.ops)
    assert [found.call(row).inputs for row in (0, 1)] == [(), (Tensor((3,), None, "float", device=""),)]
    assert found.sequence.tolist() == [-1, 4]


@pytest.mark.parametrize(
    ("kind", "without_values", "with_values"),
    [("Scalar", Unsaid.SCALAR, None), ("ScalarList", Unsaid.LIST, Unsaid.LIST), ("", Unsaid.ANY, None)],
)
def test_what_was_given_without_its_value_is_not_nothing(kind, without_values, with_values):
    """Profilers of 2022 and 2023 kept no values; those of today keep none of a list that is too long."""
    args = {"Input Dims": [[4], []], "Input type": ["float", kind]}
    first = Tensor((4,), None, "float", device="")
    assert arguments.call("aten::x", args).inputs == (first, without_values)
    assert arguments.call("aten::x", args | {"Concrete Inputs": ["", ""]}).inputs == (first, with_values)
    assert said((first, without_values, 1)) == (first, None, 1)


def lists(*many, kind="TensorList"):
    """The arguments of a call of lists of tensors with so many elements each; None: sizes not recorded."""
    dims = [[] if one is None else [[4]] * one for one in many]
    found = arguments.call("aten::x", {"Input Dims": dims, "Input type": [kind] * len(many)}).inputs
    return [None if one is None else len(one) for one in found]


def test_a_list_that_is_empty_beside_others_of_one_length():
    # A fused Adam without AMSGrad: parameters, gradients, two averages, no maxima, steps.
    assert lists(3, 3, 3, 3, None, 3) == [3, 3, 3, 3, 0, 3]
    assert lists(3, 3, None) == [3, 3, 0]
    # One may just be too long beside others that are not: an LSTM's parameters beside its two states.
    assert lists(2, None) == [2, None]
    assert lists(2, 3, None) == [2, 3, None]
    assert lists(3, None, None) == [3, None, None]
    assert lists(None, None, None) == [None, None, None]
