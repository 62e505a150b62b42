"""Executor events made by hand: who ran, how often, and whose time each instant is."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import pytest

from roofline.tensorflow.count import count, count_nodes
from roofline.tensorflow.events import Ran, executed, holds_instructions
from roofline.tensorflow.graph.graph import Function, Graph, Graphs, Node, Tensor
from roofline.tensorflow.model_flops import Model, assign
from roofline.tensorflow.places import Places
from roofline.timing import executor
from roofline.traces.xplane.reader import Line, XTrace

PREFIX = "roofline:step"
A, B, C = Tensor("fp32", (3, 5)), Tensor("fp32", (5, 7)), Tensor("fp32", (3, 7))


def trace(*events: tuple[str, int, int, int], hlo: dict[str, str] | None = None, planes: dict[int, str] | None = None):
    """events: (name, line, start, end) [ns]. hlo: event name -> instruction. planes: line -> plane, else the host."""
    rows = sorted(events, key=lambda row: (row[1], row[2], -row[3]))
    names = tuple(dict.fromkeys([*(row[0] for row in rows), *(hlo or {}).values()]))
    code = {name: number for number, name in enumerate(names)}
    count_ = len(rows)
    lines = max((row[1] for row in rows), default=0) + 1
    planes = planes or {}
    on_device = [row[1] in planes for row in rows]

    def column(values, dtype=np.int64):
        return np.asarray(list(values), dtype)

    return XTrace(
        start=column(1000 * row[2] for row in rows),
        end=column(1000 * row[3] for row in rows),
        name=column((code[row[0]] for row in rows), np.int32),
        line=column((row[1] for row in rows), np.int32),
        hlo_op=column((code[hlo[row[0]]] if hlo and row[0] in hlo else -1 for row in rows), np.int32),
        program=np.zeros(count_, np.int64),
        run=np.zeros(count_, np.int64),
        produces=np.full(count_, -1),
        consumes=np.full(count_, -1),
        scope=column((code[row[0]] if device else -1 for row, device in zip(rows, on_device, strict=True)), np.int32),
        bytes=np.full(count_, -1),
        graph=np.zeros(count_, np.int64),
        names=names,
        lines=tuple(Line(planes.get(number, "/host:CPU"), f"t{number}") for number in range(lines)),
        modules=MappingProxyType({}),
        origin=None,
        warnings=(),
    )


def matmul(name: str = "a/MatMul", op: str = "MatMul") -> Node:
    return Node(name, op, (("x", 0), ("w", 0)), (A, B), (C,))


def relu(name: str = "a/Relu", of: str = "a/MatMul") -> Node:
    return Node(name, "Relu", ((of, 0),), (C,), (C,))


def graphs(*after: Node, before: tuple[Node, ...] | None = None) -> Graphs:
    return Graphs((Function(Graph(after if before is None else before), Graph(after)),))


SIMPLE = graphs(matmul(op="_MklMatMul"), relu(), Node("a/Read", "ReadVariableOp", (("v", 0),), (A,), (A,)))


def timed(one: XTrace, some: Graphs):
    counted, (owned,) = count([one], PREFIX, some)
    return counted, executor.time_steps(one, owned, len(counted.ops), PREFIX, 0.0)


def model_flops(ran: list[Ran], some: Graphs) -> Model:
    return assign(ran, some, [Places(one.after, one.before, ("optimizer",)) for one in some.functions])


def test_events_are_matched_by_node_name_and_type():
    one = trace(
        (f"{PREFIX}#0", 0, 0, 100),
        ("a/Read:ReadVariableOp", 1, 5, 8),
        ("a/MatMul:_MklMatMul", 1, 10, 40),
        ("a/Relu:Relu", 1, 50, 60),
    )
    counted, (step,) = timed(one, SIMPLE)
    assert counted.names == ("a/Read:ReadVariableOp", "a/MatMul:_MklMatMul", "a/Relu:Relu")
    assert counted.op_of.tolist() == [-1, 0, 1]
    assert counted.view_of.tolist() == [True, False, False]
    assert counted.names_of_ops == ("MatMul", "Relu")
    assert (step.own[:, 0] * 1e9).round().tolist() == [30, 10]
    assert step.joined == 1
    assert step.unmatched == {}
    assert round(step.idle[0] * 1e9) == 60


def test_an_event_of_another_type_is_not_the_node():
    one = trace((f"{PREFIX}#0", 0, 0, 100), ("a/Relu:Tanh", 1, 50, 60))
    counted, (step,) = timed(one, SIMPLE)
    assert counted.ops == ()
    assert step.unmatched == pytest.approx({"a/Relu:Tanh": 10e-9})


def test_an_asynchronous_node_runs_from_its_start_until_it_is_done():
    """Its kernel was only started at 20; another thread ends it at 70, while a node beside it runs."""
    node = "a/CropAndResize:CropAndResize"
    one = trace(
        (f"{PREFIX}#0", 0, 0, 100),
        (begin := "ExecutorState::ProcessAsync::Start", 1, 10, 20),
        ("a/Relu:Relu", 1, 30, 40),
        (done := "ExecutorState::ProcessAsync::Done", 2, 65, 70),
        (node, 3, 200, 201),  # nothing has this name but the annotation of the first event
    )
    code = {name: number for number, name in enumerate(one.names)}
    first, last = (int(np.flatnonzero(one.name == code[name])[0]) for name in (begin, done))
    one.scope[first], one.produces[first], one.consumes[last] = code[node], 7, 7
    image = Node("a/CropAndResize", "CropAndResize", (("x", 0),), (A,), (C,))
    counted, (step,) = timed(one, graphs(image, relu()))
    assert counted.names_of_ops == ("CropAndResize", "Relu")
    assert (step.own[:, 0] * 1e9).round().tolist() == [60, 10]
    assert round(step.idle[0] * 1e9) == 40


def test_ops_that_run_at_once_share_the_instants():
    one = trace((f"{PREFIX}#0", 0, 0, 100), ("a/MatMul:MatMul", 1, 10, 50), ("a/Relu:Relu", 2, 30, 70))
    _, (step,) = timed(one, SIMPLE)
    assert (step.own[:, 0] * 1e9).round().tolist() == [40, 40]
    assert (step.overlap * 1e9).round().tolist() == [10, 10]
    assert round(step.idle[0] * 1e9) == 40


def test_a_loop_runs_its_ops_several_times_and_costs_so_much():
    events = [("a/MatMul:MatMul", 1, 10 * trip, 10 * trip + 5) for trip in range(1, 4)]
    one = trace(
        (f"{PREFIX}#0", 0, 0, 100),
        *events,
        (f"{PREFIX}#1", 0, 200, 300),
        *[(n, p, s + 200, e + 200) for n, p, s, e in events],
    )
    counted, steps = timed(one, SIMPLE)
    assert counted.ops[0].times == 3
    assert counted.ops[0].costed.cost.flops == 3 * 2 * 3 * 5 * 7
    assert counted.ops[0].costed.cost.model_flops == 3 * 2 * 3 * 5 * 7
    assert [(step.own[0, 0] * 1e9).round() for step in steps] == [15, 15]


def test_a_step_without_the_events_of_a_cheap_op_does_not_say_that_it_did_not_run():
    """TensorFlow writes none of an op that it has found cheap; of one that takes 20 us it would."""
    us = 1000
    seen = [("a/MatMul:MatMul", 1, 10 * us, 11 * us), ("a/Relu:Relu", 1, 20 * us, 40 * us)]
    one = trace((f"{PREFIX}#0", 0, 0, 100 * us), *seen, (f"{PREFIX}#1", 0, 200 * us, 300 * us))
    assert [ran.times for ran in executed([one], PREFIX, SIMPLE)] == [1, 0.5]


def test_in_a_loop_cheap_ops_run_as_often_as_the_others():
    """Found cheap after two of four turns: every other op of the body says how often it ran."""
    body = "w/while/body/_1/w/while"
    some = graphs(matmul(f"{body}/MatMul"), relu(f"{body}/Relu", f"{body}/MatMul"), relu("a/Relu", f"{body}/MatMul"))
    turns = [(f"{body}/MatMul:MatMul", 1, 10 * turn, 10 * turn + 3) for turn in range(1, 3)]
    turns += [(f"{body}/Relu:Relu", 1, 10 * turn + 4, 10 * turn + 6) for turn in range(1, 5)]
    one = trace((f"{PREFIX}#0", 0, 0, 100), *turns, ("a/Relu:Relu", 1, 60, 61))
    counted, _ = timed(one, some)
    assert [op.times for op in counted.ops] == [4, 4, 1]


def test_an_op_of_a_loop_that_no_trace_shows_ran_in_each_turn():
    """Its siblings in the body ran three times; what XLA compiled has an event, and is not the executor's."""
    body = "w/while/body/_1/w/while"
    some = graphs(matmul(f"{body}/MatMul"), relu(f"{body}/Relu"), matmul(f"{body}/Xla", "XlaDot"), matmul("a/MatMul"))
    turns = [(f"{body}/Relu:Relu", 1, 10 * turn, 10 * turn + 3) for turn in range(1, 4)]
    inner = [(f"{body}/Xla:XlaDot", 1, 50, 60), ("dot.1", 1, 52, 58)]
    one = trace((f"{PREFIX}#0", 0, 0, 100), *turns, *inner, hlo={"dot.1": "dot.1"})
    counted, (step,) = timed(one, some)
    assert [(name, op.times) for name, op in zip(counted.names_of_ops, counted.ops, strict=True)] == [
        ("Relu", 3),
        ("MatMul", 3),
    ]
    assert counted.ops[1].costed.cost.flops == 3 * 2 * 3 * 5 * 7
    assert step.unseen == 1


def test_what_lies_in_the_event_of_an_op_is_part_of_it_and_a_call_gives_way_to_what_it_calls():
    call = Node("f", "PartitionedCall", (("x", 0),), (A,), (A,))
    some = graphs(matmul(), relu(), call)
    one = trace(
        (f"{PREFIX}#0", 0, 0, 100),
        ("f:PartitionedCall", 1, 5, 60),
        ("a/MatMul:MatMul", 1, 10, 40),
        ("a/Relu:Relu", 1, 20, 30),
    )
    _, (step,) = timed(one, some)
    assert (step.own[:, 0] * 1e9).round().tolist() == [30, 0]
    assert round(step.idle[0] * 1e9) == 70


def test_events_that_hold_instructions_are_left_to_the_reader_of_these():
    cluster = Node("cluster", "_XlaRun", (("x", 0),), (A,), (A,))
    one = trace(
        (f"{PREFIX}#0", 0, 0, 100),
        ("cluster:_XlaRun", 1, 5, 60),
        ("fusion.1", 1, 10, 40),
        ("a/MatMul:MatMul", 1, 70, 80),
        ("a/Relu:Relu", 2, 20, 30),
        hlo={"fusion.1": "fusion.1"},
    )
    assert holds_instructions(one, np.arange(len(one.start))).sum() == 2  # the cluster and the instruction
    some = graphs(cluster, *SIMPLE.functions[0].after)
    counted, (step,) = timed(one, some)
    assert step.unmatched == {}
    assert counted.names_of_ops == ("Relu", "MatMul")
    assert (step.own[:, 0] * 1e9).round().tolist() == [10, 10]
    # Without instructions in the trace, what the cluster did is unknown, and named.
    counted, (step,) = timed(trace((f"{PREFIX}#0", 0, 0, 100), ("cluster:_XlaRun", 1, 5, 60)), some)
    assert "_XlaRun" in counted.unknown["XlaRun"]


def test_ops_run_outside_of_a_function_are_lost_and_data_pipelines_are_the_hosts():
    one = trace(
        (f"{PREFIX}#0", 0, 0, 100),
        ("EagerLocalExecute: MatMul", 0, 10, 20),
        ("EagerLocalExecute: __inference_step_7", 0, 20, 90),
        ("EagerLocalExecute: MakeIterator", 0, 90, 95),
        ("Dataset/_2:TensorDataset", 0, 91, 92),
        ("a/Relu:Relu", 1, 30, 60),
    )
    _, (step,) = timed(one, SIMPLE)
    assert step.unmatched == pytest.approx({"EagerLocalExecute: MatMul": 10e-9})
    assert step.joined == pytest.approx(30 / 40)


def test_a_name_in_two_functions_is_taken_for_that_of_the_function_that_ran():
    other = Node("a/Relu", "Relu", (("y", 0),), (A,), (A,))
    some = Graphs((Function(Graph(()), Graph((other,))), *graphs(matmul(), relu()).functions))
    one = trace((f"{PREFIX}#0", 0, 0, 100), ("a/MatMul:MatMul", 1, 10, 50), ("a/Relu:Relu", 1, 50, 60))
    assert [ran.function for ran in executed([one], PREFIX, some)] == [1, 1]


def test_beside_a_gpu_the_kernels_carry_the_nodes_name():
    one = trace(
        (f"{PREFIX}#0", 0, 0, 100),
        ("a/MatMul:MatMul", 1, 10, 12),
        ("a/MatMul:MatMul", 2, 20, 50),
        ("other:Kernel", 2, 60, 70),
        planes={2: "/device:GPU:0"},
    )
    counted, (step,) = timed(one, SIMPLE)
    assert len(counted.ops) == 1
    assert round(step.own[0, 0] * 1e9) == 30
    assert step.unmatched == pytest.approx({"other:Kernel": 10e-9})
    assert step.launches.tolist() == [1, 1]


def test_no_step_and_no_function_count_nothing():
    assert timed(trace(("a/Relu:Relu", 1, 0, 5)), SIMPLE)[1] == []
    counted, (step,) = timed(trace((f"{PREFIX}#0", 0, 0, 100)), Graphs(()))
    assert (counted.ops, step.joined) == ((), 0)


# ---------------------------------------------------------------------------------------------- buffers, model FLOPs


def test_views_share_a_buffer_and_updates_write_the_variable():
    handle = Tensor("fp32", (3, 7), True)
    nodes = (
        Node("v", "_Arg", (), (), (handle,)),
        Node("read", "ReadVariableOp", (("v", 0),), (handle,), (C,)),
        Node("flat", "Reshape", (("read", 0),), (C,), (C,)),
        Node("relu", "Relu", (("flat", 0),), (C,), (C,)),
        Node("sub", "AssignSubVariableOp", (("v", 0), ("relu", 0)), (handle, C), ()),
    )
    some = graphs(*nodes)
    counted = count_nodes([Ran(f"{n.name}:{n.op}", 0, n, 1.0) for n in nodes], some)
    relu_op, sub = counted.ops
    assert relu_op.reads == sub.writes  # the variable
    assert sub.reads == (relu_op.reads[0], relu_op.writes[0])
    assert relu_op.writes != relu_op.reads
    assert sub.costed.inplace


def test_an_assigned_value_becomes_the_variables_buffer():
    handle = Tensor("fp32", (3, 7), True)
    nodes = (
        Node("v", "_Arg", (), (), (handle,)),
        Node("read", "ReadVariableOp", (("v", 0),), (handle,), (C,)),
        Node("add", "AddV2", (("read", 0), ("read", 0)), (C, C), (C,)),
        Node("set", "AssignVariableOp", (("v", 0), ("add", 0)), (handle, C), ()),
    )
    (add,) = count_nodes([Ran(f"{n.name}:{n.op}", 0, n, 1.0) for n in nodes], graphs(*nodes)).ops
    assert add.reads == add.writes


def test_a_variable_of_which_rows_are_read_is_copied_when_it_is_read_as_a_whole():
    handle, ids = Tensor("fp32", (5, 7), True), Tensor("int32", (2,))
    nodes = (
        Node("v", "_Arg", (), (), (handle,)),
        Node("gather", "ResourceGather", (("v", 0), ("ids", 0)), (handle, ids), (Tensor("fp32", (2, 7)),)),
        Node("read", "ReadVariableOp", (("v", 0),), (handle,), (B,)),
        Node("matmul", "MatMul", (("x", 0), ("read", 0)), (A, B), (C,)),
    )
    counted = count_nodes([Ran(f"{n.name}:{n.op}", 0, n, 1.0) for n in nodes[1:]], graphs(*nodes))
    gather, copy, product = counted.ops
    assert copy.costed.cost.bytes_read == copy.costed.cost.bytes_written == 4 * 35
    assert copy.reads == (gather.reads[0],)
    assert product.reads[1] == copy.writes[0] != copy.reads[0]


def test_model_flops_are_those_of_the_graph_before_grappler():
    bias = Node("a/BiasAdd", "BiasAdd", (("a/MatMul", 0), ("b", 0)), (C, Tensor("fp32", (7,))), (C,))
    fused = Node(
        "a/Relu",
        "_FusedMatMul",
        (("x", 0), ("w", 0), ("b", 0)),
        (A, B, Tensor("fp32", (7,))),
        (C,),
        {"fused_ops": ("BiasAdd", "Relu")},
    )
    twice = matmul("b/MatMul")
    dropped = matmul("a/MatMul_1")
    some = graphs(fused, twice, before=(matmul(), bias, relu(of="a/BiasAdd"), dropped, twice))
    ran = [Ran("a/Relu:_FusedMatMul", 0, fused, 1.0), Ran("b/MatMul:MatMul", 0, twice, 2.0)]
    one = 2 * 3 * 5 * 7
    model = model_flops(ran, some)
    assert [(asked.name, asked.twin, asked.times) for asked in model.contractions] == [
        ("a/MatMul", "a/Relu", 1),
        ("a/MatMul_1", None, 2),
        ("b/MatMul", "b/MatMul", 2),
    ]
    assert [asked.name for asked in model.missing] == ["a/MatMul_1"]
    # the one that grappler took out stands with the one beside it
    assert model.by_row == {0: one + 2 * one, 1: 2 * one}
    assert model.totals() == {("forward", "a", "matmul"): 3 * one, ("forward", "b", "matmul"): 2 * one}
    counted = count_nodes(ran, some)
    assert [op.costed.cost.flops for op in counted.ops] == [one, 2 * one]
    assert [op.costed.cost.model_flops for op in counted.ops] == [3 * one, 2 * one]


def test_a_fused_contraction_that_no_name_leads_to_gets_what_it_does():
    """The shape of `a/BiasAdd` is read beside its Relu, so that no single way leads from a/MatMul to the fused node."""

    def layer(scope: str) -> tuple[Node, ...]:
        product, bias = matmul(f"{scope}/MatMul"), f"{scope}/BiasAdd"
        return (
            product,
            Node(bias, "BiasAdd", ((f"{scope}/MatMul", 0), ("b", 0)), (C, Tensor("fp32", (7,))), (C,)),
            relu(f"{scope}/Relu", of=bias),
            Node(f"{scope}/Shape", "Shape", ((bias, 0),), (C,), (Tensor("int32", (2,)),)),
        )

    def fused(scope: str) -> Node:
        attrs = {"fused_ops": ("BiasAdd", "Relu")}
        inputs = (("x", 0), ("w", 0), ("b", 0))
        return Node(f"{scope}/Relu", "_FusedMatMul", inputs, (A, B, Tensor("fp32", (7,))), (C,), attrs)

    after = fused("net/a"), matmul("net/b/MatMul"), fused("net/c")
    some = graphs(*after, before=(*layer("net/a"), matmul("net/b/MatMul"), *layer("net/c")))
    model = model_flops([Ran(f"{one.name}:{one.op}", 0, one, 1.0) for one in after], some)
    assert [asked.name for asked in model.missing] == ["net/a/MatMul", "net/c/MatMul"]
    # Each does one product of 2 x 3 x 5 x 7 FLOPs, and none stands for two.
    assert model.by_row == {0: 210, 1: 210, 2: 210}


def test_what_xla_took_into_a_cluster_is_not_put_on_the_nodes_beside_it():
    rest, taken, cluster = matmul("a/MatMul"), matmul("b/MatMul"), Node("cluster", "_XlaRun", (), (), (C,))
    model = model_flops([Ran("a/MatMul:MatMul", 0, rest, 1.0)], graphs(rest, cluster, before=(rest, taken)))
    assert model.by_row == {0: 2 * 3 * 5 * 7}
    assert [(asked.name, asked.times) for asked in model.missing] == [("b/MatMul", None)]


def test_what_is_gone_outside_of_a_loop_was_asked_for_once_however_many_nodes_the_loop_has():
    body = "w/while/body/_1/w/while"
    inside = [relu(f"{body}/{name}") for name in ("Relu", "Relu_1", "Relu_2")]
    ran = [Ran(f"{node.name}:Relu", 0, node, 32.0) for node in inside]
    kept, gone = matmul("a/MatMul"), matmul("b/MatMul")
    model = model_flops([*ran, Ran("a/MatMul:MatMul", 0, kept, 1.0)], graphs(kept, *inside, before=(kept, gone)))
    assert [(asked.name, asked.times) for asked in model.missing] == [("b/MatMul", 1)]


def test_a_branch_that_was_not_taken_is_not_asked_for():
    taken, other = matmul("c/then/_3/c/MatMul"), matmul("c/else/_4/c/MatMul")
    some = graphs(taken, other, before=(matmul("c/then/_0/c/MatMul"), matmul("c/else/_0/c/MatMul")))
    model = model_flops([Ran("c/then/_3/c/MatMul:MatMul", 0, taken, 1.0)], some)
    assert [asked.times for asked in model.contractions] == [1, 0]
    assert sum(model.totals().values()) == 2 * 3 * 5 * 7
