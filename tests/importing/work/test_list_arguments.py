"""Lists of tensors whose types and sizes the trace tells elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from roofline.costs.calls import Tensor
from roofline.importing.work import arguments, list_arguments
from roofline.traces.kineto import reader

CAT = "void CatArrayBatchedCopy<OpaqueType<2u>, unsigned int, 4, 64, 64>"
LIST = ([], "TensorList", [], "")


def completed(made, launched=None, ops=("aten::cat",), optimizer=False):
    trace = reader.read(made.write())
    nodes = arguments.columns(trace, trace.ops)
    for row, name in enumerate(nodes.names):
        nodes.is_op[row] = name in ops
    launched = {row: launched or [] for row in range(len(nodes))}
    found = list_arguments.completed(trace, nodes, launched, np.full(len(nodes), optimizer))
    return {nodes.names[row]: one for row, one in found.items()}


def test_the_type_of_a_list_is_that_of_its_kernel(make_kineto):
    made = make_kineto.Trace()
    sized = ([[4, 8], [4, 2]], "TensorList", [[8, 1], [2, 1]], "")
    made.op("aten::cat", 0, 5, sized, "1")
    half = completed(made, ["Memcpy DtoD (Device -> Device)", CAT])["aten::cat"]
    assert half.call.inputs[0] == (
        Tensor((4, 8), (8, 1), "c10::BFloat16", device=""),
        Tensor((4, 2), (2, 1), "c10::BFloat16", device=""),
    )
    assert (half.call.inputs[1], half.assumed) == (1, "")
    # Two bytes are the 16-bit type that the rest of the trace uses.
    made.op("aten::relu", 6, 8, ([4], "c10::Half", [1]))
    assert completed(made, [CAT])["aten::cat"].call.inputs[0][0].dtype == "c10::Half"
    # A kernel whose name says nothing leaves the op as it was recorded.
    assert completed(made, ["Memcpy DtoD (Device -> Device)"]) == {}


def test_a_forward_concatenation_is_as_large_as_its_gradient(make_kineto):
    made = make_kineto.Trace()
    made.op("aten::cat", 0, 5, LIST, "1", **{"Sequence number": 7})
    made.op("CatBackward0", 10, 15, ([4, 10], "float", []), **{"Sequence number": 7})
    found = completed(made)["aten::cat"]
    assert found.call.inputs == ((Tensor((4, 10), None, "float", device=""),), 1)
    assert "gradient of its result" in found.assumed
    other = make_kineto.Trace()
    other.op("aten::cat", 0, 5, LIST, "1", **{"Sequence number": 8})
    other.op("CatBackward0", 10, 15, ([4, 10], "float", []), **{"Sequence number": 7})
    assert completed(other) == {}


def test_the_gradient_of_a_split_is_as_large_as_what_was_split(make_kineto):
    made = make_kineto.Trace()
    made.op("aten::split_with_sizes", 0, 5, ([6, 5], "double", []), "[2, 3]", "1", **{"Sequence number": 3})
    made.op("SplitWithSizesBackward0", 10, 19, ([6, 2], "double", []), **{"Sequence number": 3})
    made.op("aten::cat", 11, 15, LIST, "1")
    found = completed(made)["aten::cat"]
    assert found.call.inputs[0] == (Tensor((6, 5), None, "double", device=""),)
    assert "the tensor that was split" in found.assumed


def test_lists_of_an_optimizer_are_as_long_as_the_gradients(make_kineto):
    made = make_kineto.Trace()
    for start, shape in ((0, [3, 4]), (2, [5])):
        made.op("torch::autograd::AccumulateGrad", start, start + 1, (shape, "float", []))
    made.op("aten::_foreach_add_", 10, 12, LIST, LIST, "1")
    made.op("aten::_fused_adamw_", 14, 16, *[LIST] * 6, "0.1", "0.9", "0.999", "0.01", "1e-8", "False", "False")
    ops = ("aten::_foreach_add_", "aten::_fused_adamw_")
    assert completed(made, ops=ops) == {}  # not in an optimizer's step
    found = completed(made, ops=ops, optimizer=True)
    one = (Tensor((17,), (1,), "float", device=""),)
    assert found["aten::_foreach_add_"].call.inputs[:2] == (one, one)
    # No AMSGrad: no maxima; a step count for each of the two parameters.
    assert found["aten::_fused_adamw_"].call.inputs[:6] == (
        *(one, one, one, one, (), (Tensor((2,), (1,), "float", device=""),)),
    )
    assert "gradients accumulated" in found["aten::_fused_adamw_"].assumed


def test_without_gradients_an_optimizer_stays_unknown(make_kineto):
    made = make_kineto.Trace()
    made.op("aten::_foreach_add_", 10, 12, LIST, LIST, "1")
    assert completed(made, ops=("aten::_foreach_add_",), optimizer=True) == {}


def test_gradients_of_a_window(make_kineto):
    made = make_kineto.Trace()
    for start, shape, kind in ((0, [3], "float"), (20, [5], "c10::Half"), (22, [2], "c10::Half"), (24, [], "")):
        made.op("torch::autograd::AccumulateGrad", start, start + 1, (shape, kind, []))
    trace = reader.read(made.write())
    found = list_arguments.gradients(trace, trace.ops.select(np.array([1, 2, 3])))
    assert (found.numel.tolist(), found.dtype) == ([5, 2], "c10::Half")
    assert len(list_arguments.gradients(trace, trace.ops.select(np.zeros(0, np.int64))).numel) == 0


@pytest.mark.parametrize("number", ["7", 7.5, None, -1, 2**80])
def test_damaged_sequence_numbers_link_nothing(make_kineto, number):
    made = make_kineto.Trace()
    made.op("aten::cat", 0, 5, LIST, "1", **{"Sequence number": number})
    made.op("CatBackward0", 10, 15, ([4, 10], "float", []), **{"Sequence number": number})
    assert completed(made) == {}
