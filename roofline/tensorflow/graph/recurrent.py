"""TensorFlow's recurrent layers and cells in one op, which no compiler takes apart.

Each step of each sequence multiplies [input, state] with one matrix of all gates. The work beside that is counted on
the definitions of the ops, per unit and step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from roofline.core.cost import Cost
from roofline.costs import formulas
from roofline.tensorflow.graph.contractions import UnknownWork, sizes
from roofline.tensorflow.graph.graph import Graph, Node
from roofline.tensorflow.graph.neighbours import STEPS

#: An LSTM's gates have 4 biases; c = f c + i g takes 3 FLOP, h = o tanh(c) 1. Peepholes add a product for 3 gates.
_LSTM, _LSTM_PEEPHOLES, _CLIPPED = 8.0, 6.0, 2.0
#: Their gradients: do 4, dc 5, di, df and dg 4 each, dc of the step before 1. Peepholes add do w to dc, di w and df w
#: to the dc before, and the sums of di c, df c and do c.
_LSTM_BACKWARD, _LSTM_PEEPHOLES_BACKWARD = 22.0, 12.0
#: A layer adds dc and dh from the step behind to those from above, and sums up the gradients of 4 biases.
_LAYER_BACKWARD = 2.0 + 4.0
#: 3 biases, h r, and u (h - c) + c. Backward: dc 5, du 5, dr 4, dh 4; the gradient of the input is a sum of two.
_GRU, _GRU_BACKWARD = 3.0 + 1 + 3, 18.0
_SOME_STEPS = "all steps are taken for part of a sequence"


def _factors(node: Node) -> tuple[int, int, int]:
    """(steps of all sequences, rows and columns of the matrix). Of a GRU the two matrices count as one."""
    place = int(node.op.startswith("Block"))  # a layer has the most steps first
    *steps, _ = sizes(node.in_types[place], "the input")
    if STEPS in node.attrs:
        steps[0] = min(steps[0], *node.attrs[STEPS])
    if node.op.startswith("GRU"):
        return prod(steps), sizes(node.in_types[2], "the weights")[0], 3 * sizes(node.in_types[1], "the state")[-1]
    rows, columns = sizes(node.in_types[place + 3], "the weights")
    return prod(steps), rows, columns


def _product(node: Node) -> Cost:
    steps, rows, columns = _factors(node)
    is_told = STEPS in node.attrs or not node.op.startswith("Block")
    return formulas.matmul(steps, columns, rows) + (Cost() if is_told else Cost(quality="assumed", note=_SOME_STEPS))


def _beside(node: Node, cells: float, flops: float, peepholes: float) -> Cost:
    return Cost(vector_flops=(flops + (peepholes if node.attrs.get("use_peephole") else 0.0)) * cells)


def _lstm(node: Node) -> Cost:
    second_version = node.op.endswith("V2")  # adds nothing to the forget gate, and clips only if it is told to
    flops = _LSTM if second_version or node.attrs.get("forget_bias") == 0 else _LSTM + 1
    flops += _CLIPPED if node.attrs.get("cell_clip", 0 if second_version else 3) > 0 else 0
    steps, _, columns = _factors(node)
    cells = steps * columns / 4
    functions = {"sigmoid": 3 * cells, "tanh": 2 * cells}
    return _product(node) + _beside(node, cells, flops, _LSTM_PEEPHOLES) + Cost(functions=functions)


def _lstm_backward(node: Node) -> Cost:
    """Count the gradients of a layer: of [input, state] and of the weights, whoever wants them."""
    steps, _, columns = _factors(node)
    flops = _LSTM_BACKWARD + _LAYER_BACKWARD
    return 2 * _product(node) + _beside(node, steps * columns / 4, flops, _LSTM_PEEPHOLES_BACKWARD)


def _lstm_cell_backward(node: Node) -> Cost:
    """Count the gradients of a cell's gates; products with them are ops of their own."""
    cells = float(prod(sizes(node.in_types[1], "the state")))
    return _beside(node, cells, _LSTM_BACKWARD, _LSTM_PEEPHOLES_BACKWARD)


def _gru(node: Node) -> Cost:
    cells = float(prod(sizes(node.in_types[1], "the state")))
    return _product(node) + Cost(vector_flops=_GRU * cells, functions={"sigmoid": 2 * cells, "tanh": cells})


def _gru_backward(node: Node) -> Cost:
    """Count the gradients of [input, state] and of the gates; those of the weights are ops of their own."""
    cells, inputs = (prod(sizes(node.in_types[place], "an input")) for place in (1, 0))
    return _product(node) + Cost(vector_flops=_GRU_BACKWARD * cells + inputs)


#: Where ops have the gradient of their input and that of the weights among their results, and the input among inputs.
_GRADIENTS: dict[str, tuple[int, int | None, int]] = {"BlockLSTMGrad": (0, 3, 1), "GRUBlockCellGrad": (0, None, 0)}


def flops(node: Node, _: Graph, consumers: Mapping[str, Sequence[Node]]) -> float | None:
    """Return the FLOPs of the gradients of a layer or cell without those of its input or weights that nobody reads.

    None for other nodes. consumers: of each node, by its name.
    """
    if node.op not in _GRADIENTS:
        return None
    of_input, of_weights, place = _GRADIENTS[node.op]
    read = {source for user in consumers.get(node.name, ()) for source in user.inputs}
    try:
        steps, rows, columns = _factors(node)
        inputs = sizes(node.in_types[place], "the input")[-1]
    except UnknownWork:
        return None
    multiplied = rows if (node.name, of_input) in read else rows - inputs
    if of_weights is not None and (node.name, of_weights) in read:
        multiplied += rows
    return 2.0 * steps * columns * multiplied


#: The rule of each op.
RULES: dict[str, Callable[[Node], Cost]] = {
    **dict.fromkeys(("BlockLSTM", "BlockLSTMV2", "LSTMBlockCell"), _lstm),
    "BlockLSTMGrad": _lstm_backward,
    "LSTMBlockCellGrad": _lstm_cell_backward,
    "GRUBlockCell": _gru,
    "GRUBlockCellGrad": _gru_backward,
}
