"""Recurrent layers and cells of TensorFlow that are one op: 5 steps of 3 sequences, 6 wide, with 8 units.

A step multiplies 3 x (6 + 8) by the matrices of all gates, side by side: (6 + 8) x 32 of an LSTM, x 24 of a GRU.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parent))
from test_graph import check, data, record, tf, variable

from roofline.tensorflow.graph.cost import cost
from roofline.tensorflow.graph.graph import Node, Tensor

UNITS = 3 * 8
#: 2 FLOP for each of 3 x 32 results and number that it is summed over.
PRODUCT = 2 * 3 * 32
GRU_PRODUCT = 2 * 3 * 24


def lstm(x: Any, weights: Any, steps: int = 5, op: str = "BlockLSTMV2", **options: Any) -> Any:
    zeros, no_peepholes = tf.zeros((3, 8)), tf.zeros(8)
    peepholes = dict.fromkeys(("wci", "wcf", "wco"), options.pop("peepholes", no_peepholes))
    layer = getattr(tf.raw_ops, op)
    return layer(seq_len_max=steps, x=x, cs_prev=zeros, h_prev=zeros, w=weights, b=tf.zeros(32), **peepholes, **options)


@pytest.mark.parametrize(("wanted", "summed"), [("weights", 8 + 14), ("input", 14), ("both", 14 + 14)])
def test_a_layer_asks_for_the_gradients_that_are_read(tmp_path: Path, wanted: str, summed: int) -> None:
    """Of the states always, 8; of the input 6, of the weights 14. All 28 run."""
    x, weights = variable(5, 3, 6), variable(14, 32)
    read = {"weights": [weights], "input": [x], "both": [x, weights]}[wanted]

    @tf.function
    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(lstm(x, weights).h)
        return tape.gradient(loss, read)

    found = record(step, tmp_path)
    check(found)
    assert (found.flops("forward"), found.model_flops("forward")) == (5 * PRODUCT * 14, 5 * PRODUCT * 14)
    assert (found.flops("backward"), found.model_flops("backward")) == (5 * PRODUCT * 28, 5 * PRODUCT * summed)
    (forward,), (backward,) = found.named("BlockLSTMV2"), found.named("BlockLSTMGrad")
    # A bias of each gate, 3 for the cell, 1 for the result; no product with the bias in the gradient.
    assert forward.costed.cost.vector_flops == 8 * 5 * UNITS
    assert forward.costed.cost.functions == {"sigmoid": 3 * 5 * UNITS, "tanh": 2 * 5 * UNITS}
    # The input, the states (one tensor), weights, bias; 7 results.
    assert forward.costed.cost.bytes_read == 4 * (5 * 3 * 6 + UNITS + 14 * 32 + 32)
    assert forward.costed.cost.bytes_written == 4 * 7 * 5 * UNITS
    # Per unit 4 + 5 + 3 x 4 + 1, two sums, and 4 gradients of biases.
    assert backward.costed.cost.vector_flops == (22 + 2 + 4) * 5 * UNITS
    assert (forward.costed.op_class, backward.costed.op_class) == ("contraction", "contraction")


def test_a_layer_does_no_more_steps_than_it_is_told_to(tmp_path: Path) -> None:
    """4 of 5. The first version adds to the forget gate and clips, peepholes are a product and a sum of 3 gates."""
    x, weights, peepholes = data(5, 3, 6), variable(14, 32), variable(8)
    step = tf.function(lambda: lstm(x, weights, 4, "BlockLSTM", use_peephole=True, peepholes=peepholes))
    found = record(step, tmp_path)
    check(found)
    (layer,) = found.named("BlockLSTM")
    assert layer.costed.cost.quality == "exact"
    assert layer.costed.cost.model_flops == layer.costed.cost.flops == 4 * PRODUCT * 14
    assert layer.costed.cost.vector_flops == (8 + 1 + 2 + 6) * 4 * UNITS


def test_how_many_steps_there_are_may_be_data(tmp_path: Path) -> None:
    x, weights = data(5, 3, 6), variable(14, 32)
    steps = tf.Variable(4, dtype=tf.int64)
    (layer,) = record(tf.function(lambda: lstm(x, weights, steps)), tmp_path).named("BlockLSTMV2")
    assert (layer.costed.cost.flops, layer.costed.cost.quality) == (5 * PRODUCT * 14, "assumed")


def test_cells(tmp_path: Path) -> None:
    """An LSTM's cell, a GRU's on its result, and the gradient of that, whose own input nobody asks for."""
    x, weights, gates, candidate = data(3, 6), variable(14, 32), variable(16, 16), variable(16, 8)
    zeros, vector, ones = tf.zeros((3, 8)), tf.zeros(8), tf.ones((3, 8))

    @tf.function
    def step() -> Any:
        cell = tf.raw_ops.LSTMBlockCell(
            x=x, cs_prev=zeros, h_prev=zeros, w=weights, wci=vector, wcf=vector, wco=vector, b=tf.zeros(32)
        )
        given = {"x": cell.h, "h_prev": ones, "w_ru": gates, "w_c": candidate, "b_ru": tf.zeros(16), "b_c": vector}
        gru = tf.raw_ops.GRUBlockCell(**given)
        gradient = tf.raw_ops.GRUBlockCellGrad(**given, r=gru.r, u=gru.u, c=gru.c, d_h=gru.h)
        return gradient.d_h_prev, gradient.d_c_bar

    found = record(step, tmp_path)
    check(found)
    costs = {name: found.named(name)[0].costed.cost for name in ("LSTMBlockCell", "GRUBlockCell", "GRUBlockCellGrad")}
    assert [each.flops for each in costs.values()] == [PRODUCT * 14, GRU_PRODUCT * 16, GRU_PRODUCT * 16]
    assert [each.model_flops for each in costs.values()] == [PRODUCT * 14, GRU_PRODUCT * 16, GRU_PRODUCT * 8]
    # 11 as above. 3 biases, h r, u (h - c) + c; 5 + 5 + 4 + 4, and one sum per number of the input.
    assert [each.vector_flops for each in costs.values()] == [11 * UNITS, 7 * UNITS, (18 + 1) * UNITS]
    # State, gates, weights and three gradients; neither the input nor the biases.
    assert costs["GRUBlockCellGrad"].bytes_read == 4 * (UNITS + 4 * UNITS + 16 * 24)


@pytest.mark.parametrize(("peepholes", "flops", "vectors"), [(False, 22, 0), (True, 34, 3)])
def test_the_gradient_of_an_lstm_s_cell_multiplies_no_matrices(peepholes: bool, flops: int, vectors: int) -> None:
    """It reads what the forward pass kept (cs_prev, i, f, o, ci, co) and two gradients; with peepholes also cs."""
    state, vector = Tensor("fp32", (3, 8)), Tensor("fp32", (8,))
    inputs = (
        Tensor("fp32", (3, 6)),
        *(state, state, Tensor("fp32", (14, 32))),
        *(vector, vector, vector, Tensor("fp32", (32,))),
        *[state] * 8,
    )
    outputs = (state, Tensor("fp32", (3, 32)), vector, vector, vector)
    sources = tuple((f"in{place}", 0) for place in range(len(inputs)))
    node = Node("n", "LSTMBlockCellGrad", sources, inputs, outputs, {"use_peephole": peepholes})
    found = cost(node)
    assert (found.cost.flops, found.cost.vector_flops) == (0, flops * UNITS)
    assert found.cost.bytes_read == 4 * ((8 + peepholes) * UNITS + vectors * 8)
