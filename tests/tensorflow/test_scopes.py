"""Phase and scope of nodes, from names as TensorFlow wrote them in recorded graphs, and from neighbours."""

from __future__ import annotations

from dataclasses import replace

import pytest

from roofline.tensorflow.graph.graph import Graph, Node, Tensor
from roofline.tensorflow.places import Places
from roofline.tensorflow.scopes import canonical, path, place, semantic
from roofline.xla.scopes import BACKWARD, FORWARD, OPTIMIZER

X = Tensor("fp32", (4, 6))


def node(name: str, op: str, *inputs: str) -> Node:
    return Node(name, op, tuple((source, 0) for source in inputs), (X,) * len(inputs), (X,))


OPS = frozenset(
    path(name)[1]
    for name in (
        "bert/encoder/layer.0/query/MatMul",
        "bert/encoder/layer.0/query/MatMul/ReadVariableOp",
        "head/BiasAdd",
        "blk/while",
        "blk/while/body/_1/blk/while/MatMul",
        "cnd/cond",
        "x/Gelu/Exp",
    )
)


@pytest.mark.parametrize(
    ("name", "phase", "scope"),
    [
        ("bert/encoder/layer.0/query/MatMul", FORWARD, "bert/encoder/layer.0/query"),
        ("bert/encoder/layer.0/query/MatMul/ReadVariableOp", FORWARD, "bert/encoder/layer.0/query"),
        ("gradient_tape/bert/encoder/layer.0/query/MatMul/MatMul_1", BACKWARD, "bert/encoder/layer.0/query"),
        ("gradient_tape/head/BiasAdd/BiasAddGrad", BACKWARD, "head"),
        ("MatMul", FORWARD, ""),
        ("adamw/Sqrt_3", OPTIMIZER, "adamw"),
        ("AdamW_1/Sqrt_3", OPTIMIZER, "AdamW_1"),
        ("optimizer/step/Mul", OPTIMIZER, "optimizer/step"),
        ("model/adamw/Mul", FORWARD, "model/adamw"),
        # inlined functions, loops and branches, as recorded
        ("call/StatefulPartitionedCall/deep/while/body/_161/deep/while/MatMul", FORWARD, "call/deep/while"),
        ("StatefulPartitionedCall_2/model/dense/Mul", FORWARD, "model/dense"),
        ("blk/while/body/_1/blk/while/MatMul", FORWARD, "blk"),
        ("blk/while/cond/_0/blk/while/Less", FORWARD, "blk"),
        ("cnd/cond/else/_52/cnd/cond/MatMul_1", FORWARD, "cnd"),
        (
            "gradient_tape/blk/while/blk/while_grad/body/_87/gradient_tape/blk/while/gradients/blk/while/MatMul_grad/MatMul",
            BACKWARD,
            "blk",
        ),
        (
            "StatefulPartitionedCall/gradients/deep/while_grad/deep/while_grad/body/_236/gradients/deep/while_grad/"
            "gradients/deep/while/Tanh_grad/TanhGrad",
            BACKWARD,
            "deep/while",
        ),
        ("blk/while/exit/_21", FORWARD, "blk"),
        # grappler's own
        ("head/ArithmeticOptimizer/AddOpsRewrite_add_2", FORWARD, "head"),
        ("ConstantFolding/gradient_tape/head/truediv_recip", BACKWARD, "head"),
        ("gradient_tape/x/Gelu/Exp/unary_ops_composition", BACKWARD, "x/Gelu"),
    ],
)
def test_names_tell_phase_and_scope(name: str, phase: int, scope: str):
    assert place(name, ("optimizer", "adamw"), OPS) == (phase, scope)


def test_a_second_layer_keeps_its_number():
    assert place("model/dense_1/MatMul").scope == "model/dense_1"


def test_lowering_numbers_are_no_part_of_a_canonical_name():
    assert canonical("blk/while/body/_12/blk/while/MatMul_1") == canonical("blk/while/body/_0/blk/while/MatMul_1")
    assert canonical("a/_b/MatMul_1") == "a/_b/MatMul_1"


@pytest.mark.parametrize(
    ("scope", "meaning"),
    [
        ("model/LayerNormalization/moments", "normalisation"),
        ("bert/attention/output/LayerNorm", "normalisation"),
        ("model/batch_normalization_1/batchnorm", "normalisation"),
        ("x/moments_1", "normalisation"),
        ("attention/softmax_1", "softmax"),
        ("loss/SparseSoftmaxCrossEntropyWithLogits", "softmax"),
        ("model/dense/Gelu", None),
        ("normal_layer", None),
        ("", None),
    ],
)
def test_scopes_of_norms_and_softmax(scope: str, meaning: str | None):
    assert semantic(scope) == meaning


def test_gradients_are_summed_in_the_backward_pass_where_their_last_term_lies():
    graph = Graph(
        (
            node("a/MatMul", "MatMul"),
            node("gradient_tape/a/MatMul/MatMul_1", "MatMul", "a/MatMul"),
            node("gradient_tape/b/Mul/Mul", "Mul", "a/MatMul"),
            node("AddN", "AddN", "gradient_tape/b/Mul/Mul", "gradient_tape/a/MatMul/MatMul_1"),
            node("AddN_1", "AddN", "gradient_tape/b/Mul/Mul", "AddN"),
        )
    )
    places = Places(graph, graph)
    assert places.of(graph.by_name["AddN"]) == (BACKWARD, "a")
    assert places.of(graph.by_name["AddN_1"]) == (BACKWARD, "a")


def test_clipping_is_the_optimizers_and_without_one_it_is_backward():
    gradient = node("gradient_tape/a/MatMul/MatMul_1", "MatMul")
    clip = node("clip/mul", "Mul", "gradient_tape/a/MatMul/MatMul_1")
    update = node("update", "ResourceApplyAdam", "clip/mul")
    assert Places(Graph((gradient, clip, update)), Graph(())).of(clip).phase == OPTIMIZER
    assert Places(Graph((gradient, clip, update)), Graph(())).of(update).phase == OPTIMIZER
    assert Places(Graph((gradient, clip)), Graph(())).of(clip).phase == BACKWARD


def test_what_grappler_merges_with_a_gradients_is_no_optimizer():
    """Constants, shapes and indices that only have a gradient's name are read by the forward pass, too."""
    whole = Tensor("int32", (4,))
    part = node("a/Slice", "Slice", "gradient_tape/a/Slice/begin", "gradient_tape/a/Shape")
    graph = Graph(
        (
            node("gradient_tape/a/Slice/begin", "Const"),
            node("gradient_tape/a/Shape", "Shape", "x"),
            replace(part, in_types=(whole, whole)),
            node("gradient_tape/a/Mul", "Mul", "a/Slice"),
            node("rank/TopKV2", "TopKV2", "a/Slice"),
            node("scale", "Mul", "gradient_tape/a/Mul"),
            node("update", "ResourceApplyGradientDescent", "scale"),
        )
    )
    places = Places(graph, Graph(()))
    assert places.of(graph.by_name["rank/TopKV2"]).phase == places.of(graph.by_name["a/Slice"]).phase == FORWARD
    assert places.of(graph.by_name["scale"]).phase == OPTIMIZER


def test_an_update_that_skips_gradients_that_are_not_finite_is_the_optimizers():
    truth = Tensor("bool", (4, 6))
    graph = Graph(
        (
            node("gradient_tape/a/MatMul/MatMul_1", "MatMul", "x"),
            node("IsFinite", "IsFinite", "gradient_tape/a/MatMul/MatMul_1"),
            replace(node("All", "All", "IsFinite"), in_types=(truth,)),
            replace(node("SelectV2", "SelectV2", "All", "w"), in_types=(truth, X)),
            node("AssignVariableOp", "AssignVariableOp", "SelectV2"),
        )
    )
    places = Places(graph, Graph(()))
    assert {places.of(graph.by_name[name]).phase for name in ("All", "SelectV2", "AssignVariableOp")} == {OPTIMIZER}


def test_a_moment_that_is_kept_in_a_variable_is_the_optimizers_with_the_update_that_reads_it():
    """m <- 0.9 m + g and w <- w - 0.001 m: nothing but the variable leads from the gradient to the weight."""
    handle, value = Tensor("fp32", (4, 6), handle=True), (X,)

    def read(name: str, variable: str) -> Node:
        return replace(node(name, "ReadVariableOp", variable), in_types=(handle,))

    def assign(name: str, op: str, variable: str, made: str) -> Node:
        return replace(node(name, op, variable, made), in_types=(handle, *value))

    graph = Graph(
        (
            read("Read_w", "w"),
            node("MatMul", "MatMul", "x", "Read_w"),
            node("gradient_tape/MatMul/MatMul_1", "MatMul", "x", "MatMul"),
            read("Read_m", "m"),
            node("mul", "Mul", "Read_m", "rate"),
            node("add", "AddV2", "mul", "gradient_tape/MatMul/MatMul_1"),
            assign("Assign_m", "AssignVariableOp", "m", "add"),
            read("Read_m_1", "m"),
            node("mul_1", "Mul", "Read_m_1", "rate"),
            assign("Assign_w", "AssignSubVariableOp", "w", "mul_1"),
        )
    )
    places = Places(graph, Graph(()))
    phases = {name: places.of(graph.by_name[name]).phase for name in graph.by_name}
    assert {name for name, phase in phases.items() if phase == OPTIMIZER} >= {"mul", "add", "mul_1", "Assign_w"}
    assert phases["MatMul"] == phases["Read_w"] == FORWARD


def test_a_loss_of_gradients_stays_forward():
    """A gradient penalty: what is computed from a gradient and has a gradient itself."""
    first = node("gradient_tape/a/MatMul/MatMul", "MatMul")
    norm = node("penalty/Square", "Square", "gradient_tape/a/MatMul/MatMul")
    second = node("gradient_tape/penalty/Square/Mul", "Mul", "penalty/Square")
    assert Places(Graph((first, norm, second)), Graph(())).of(norm) == (FORWARD, "penalty")
    bare = node("Square", "Square", "gradient_tape/a/MatMul/MatMul")
    second = node("gradient_tape/Square/Mul", "Mul", "Square")
    assert Places(Graph((first, bare, second)), Graph(())).of(bare).phase == FORWARD, "outside of every scope, too"


def test_a_custom_gradient_is_backward_with_what_it_computes_again():
    """As of tf.nn.silu, by the names that TensorFlow gives: no scope, no "gradient_tape", no gradient of its own."""
    graph = Graph(
        (
            node("a/BiasAdd", "BiasAdd"),
            node("a/Sigmoid", "Sigmoid", "a/BiasAdd"),
            node("b/MatMul", "MatMul", "a/Sigmoid"),
            node("plain", "Mul", "a/BiasAdd"),
            node("gradient_tape/b/MatMul/MatMul", "MatMul", "a/Sigmoid"),
            node("Sigmoid_1", "Sigmoid", "a/BiasAdd"),
            node("mul", "Mul", "a/BiasAdd", "Sigmoid_1"),
            node("mul_1", "Mul", "mul", "gradient_tape/b/MatMul/MatMul"),
            node("gradient_tape/a/MatMul/MatMul_1", "MatMul", "mul_1", "plain"),
        )
    )
    places = Places(graph, graph)
    assert places.of(graph.by_name["Sigmoid_1"]) == places.of(graph.by_name["mul"]) == (BACKWARD, "a")
    assert places.of(graph.by_name["mul_1"]) == (BACKWARD, "b")
    # Of the forward pass: what a gradient of another op reads too, and what is in a scope.
    assert places.of(graph.by_name["plain"]).phase == places.of(graph.by_name["a/Sigmoid"]).phase == FORWARD


def test_rows_of_an_embeddings_gradient_lie_where_they_were_gathered():
    index = node("flat", "Reshape", "ids")
    graph = Graph(
        (
            node("ids", "_Arg"),
            index,
            node("words/Gather", "ResourceGather", "table", "ids"),
            node("gradient_tape/head/MatMul/MatMul", "MatMul"),
            node("AddN/inputs_1", "UnsortedSegmentSum", "gradient_tape/head/MatMul/MatMul", "flat"),
            node("AddN", "AddN", "gradient_tape/head/MatMul/MatMul", "AddN/inputs_1"),
        )
    )
    assert Places(graph, graph).of(graph.by_name["AddN/inputs_1"]) == (BACKWARD, "words")


def test_a_scope_that_divides_by_a_deviation_is_a_normalisation_whatever_its_name():
    graph = Graph(
        (
            node("x/ln/mean", "Mean"),
            node("x/ln/Rsqrt", "Rsqrt"),
            node("x/ln/mul", "Mul"),
            node("x/MatMul", "MatMul"),
            node("x/Rsqrt", "Rsqrt"),
            node("x/mul", "Mul"),
        )
    )
    places = Places(graph, graph)
    assert places.semantic(graph.by_name["x/ln/mul"]) == "normalisation"
    # The outer scope holds a contraction as well: no norm.
    assert places.semantic(graph.by_name["x/mul"]) is None


def test_an_argument_called_like_a_scope_takes_nothing_from_it():
    graph = Graph((node("bert", "_Arg"), node("bert/Mul", "Mul", "bert")))
    assert Places(graph, graph).of(graph.by_name["bert/Mul"]).scope == "bert"
