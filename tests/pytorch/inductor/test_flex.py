"""Flex attention in compiled graphs: which pairs its block mask leaves, and the work on them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
import pytest

torch = pytest.importorskip("torch")

from shared_cases import case
from torch._functorch.aot_autograd import aot_module_simplified, make_boxed_func
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from roofline.backends.torch_compile import BACKEND
from roofline.core.cost import unknown
from roofline.core.step import Step
from roofline.costs.counted import Costed
from roofline.pytorch import compiled
from roofline.pytorch.aten import flops
from roofline.pytorch.inductor import flex, parts
from roofline.pytorch.inductor.kernels import Graph, Region
from roofline.pytorch.inductor.sites import Site
from roofline.recording.recording import Plan

LENGTH, WIDTH, HEADS = 256, 32, 2
CAUSAL = LENGTH * (LENGTH + 1) // 2


def captured(run: Callable[..., Any], *given: Any) -> tuple[Any, dict[str, Any]]:
    """The call in the graph of a function, and the values of the graph's inputs."""
    found: list[tuple[Any, dict[str, Any]]] = []

    def keep(graph: Any, _fake: list[Any]) -> Any:
        nodes = graph.graph.nodes
        names = [node.target for node in nodes if node.op == "placeholder"]

        def call(*values: Any) -> Any:
            found.append((next(filter(flex.is_flex, nodes)), dict(zip(names, values, strict=True))))
            return graph(*values)

        return make_boxed_func(call)

    torch.compiler.reset()
    torch.compile(run, backend=lambda graph, values: aot_module_simplified(graph, values, fw_compiler=keep))(*given)
    torch.compiler.reset()
    return found[0]


def tensors(length: int = LENGTH, heads: int = HEADS) -> list[Any]:
    return [torch.randn(1, heads, length, WIDTH) for _ in range(3)]


def looked_at(mask: Any, length: int = LENGTH, score: Any = None) -> tuple[Any, flex.Pairs | None]:
    def run(*qkv: Any) -> Any:
        return flex_attention(*qkv, block_mask=mask, score_mod=score)

    node, values = captured(run, *tensors(length))
    return node, flex.pairs(node, {name: values[name] for name in flex.inputs(node)}, length, length)


def block_mask(function: Any, length: int = LENGTH) -> Any:
    return create_block_mask(function, None, None, length, length, device="cpu")


def causal(b: Any, h: Any, i: Any, j: Any) -> Any:
    return i >= j


@cache
def causal_attention() -> tuple[Any, flex.Pairs | None]:
    return looked_at(block_mask(causal))


@cache
def whole_attention() -> tuple[Any, flex.Pairs | None]:
    return looked_at(None)


DOCUMENT = torch.arange(LENGTH) // 100


@pytest.mark.parametrize(
    ("function", "run", "partly", "kept"),
    [
        (causal, 3, 2, CAUSAL),
        # 64 keys up to its own: 1, 2, ..., 64, and 64 each from there on
        (lambda b, h, i, j: (i >= j) & (i - j < 64), 3, 3, 64 * 65 // 2 + 192 * 64),
        (lambda b, h, i, j: DOCUMENT[i] == DOCUMENT[j], 4, 4, 100**2 + 100**2 + 56**2),
        (lambda b, h, i, j: j < 128, 2, 0, 256 * 128),
    ],
)
def test_blocks_of_128_that_a_mask_leaves(function: Any, run: int, partly: int, kept: int) -> None:
    _, found = causal_attention() if function is causal else looked_at(block_mask(function))
    assert found == flex.Pairs(1, run * 128**2, partly * 128**2, kept)


def test_blocks_at_the_edge_are_as_large_as_what_there_is() -> None:
    """200 is a block and 72 more; the upper right of the four is left out, and the mask keeps none of them whole."""
    _, found = looked_at(block_mask(causal, 200), 200)
    run = 128**2 + 72 * 128 + 72**2
    assert found == flex.Pairs(1, run, run, 200 * 201 // 2)


def test_without_a_mask_all_pairs_run_and_are_kept() -> None:
    node, found = whole_attention()
    assert found == flex.Pairs(1, LENGTH**2, LENGTH**2, LENGTH**2)
    assert flex.inputs(node) == ()


def test_a_mask_that_is_made_in_the_graph() -> None:
    def run(*qkv: Any) -> Any:
        return flex_attention(*qkv, block_mask=block_mask(causal))

    node, values = captured(run, *tensors())
    found = flex.pairs(node, {name: values[name] for name in flex.inputs(node)}, LENGTH, LENGTH)
    assert found == flex.Pairs(1, 3 * 128**2, 2 * 128**2, CAUSAL)


def test_the_work_is_of_the_blocks_and_of_what_the_score_takes() -> None:
    """A sum and a product per pair that runs beside the softmax's 5 and exp."""
    node, found = looked_at(block_mask(causal), score=lambda s, b, h, i, j: (s + 1.5) * 0.5)
    cost = flex.cost(node, found, *tensors())
    each, run = 4 * WIDTH * HEADS, 3 * 128**2
    assert (cost.model_flops, cost.flops, cost.useful_flops) == (LENGTH**2 * each, run * each, CAUSAL * each)
    assert (cost.vector_flops, cost.functions) == (HEADS * run * (5 + 2), {"exp": HEADS * run})


def test_where_the_blocks_are_not_known_the_model_flops_are() -> None:
    node, _ = causal_attention()
    assert flex.pairs(node, {}, LENGTH, LENGTH) is None
    cost = flex.cost(node, None, *tensors())
    assert (cost.model_flops, cost.flops, cost.quality) == (4 * LENGTH**2 * WIDTH * HEADS, None, "unknown")


def test_an_op_without_a_rule_in_a_score_leaves_the_model_flops_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The products are asked for whatever is done to a score."""
    rule = flops._rule
    monkeypatch.setattr(flops, "_rule", lambda name, op: None if name.endswith("zeta") else rule(name, op))
    node, found = looked_at(block_mask(causal), score=lambda s, b, h, i, j: torch.special.zeta(s, s))
    cost = flex.cost(node, found, *tensors())
    assert (cost.model_flops, cost.flops, cost.quality) == (4 * LENGTH**2 * WIDTH * HEADS, None, "unknown")
    assert cost.note == "no rule for zeta"


def test_a_kernel_of_unknown_blocks_is_asked_for_what_the_call_is() -> None:
    cost = msgspec.structs.replace(unknown("its blocks"), model_flops=64.0)
    part = compiled.Part(Costed(cost, "attention", "attention", "", None, None), "", 0.0)
    site = Site("kernel", "kernel", False, (), (), False, (), (object(),))
    work = parts._work(site, {}, [parts._CountedPart(part, 0.0, without_loops=True)])
    assert (work.model_flops, work.flops, work.note) == (64.0, None, "its blocks")


def test_a_graph_whose_attention_cannot_be_looked_at_is_opaque(monkeypatch: pytest.MonkeyPatch) -> None:
    node, _ = whole_attention()
    site = Site("kernel", "kernel", False, (), (), False, (node,), (node,))
    monkeypatch.delitem(node.args[0].meta, "val")
    for graph in (Graph([site]), Graph([site], broken="why")):
        (run,) = parts.runs([Region(graph, {}, {}, {})], [])
        assert (run.launches, run.unknown) == ((), graph.broken)
    assert run.unknown == "why"


def test_only_results_of_attention_stand_for_their_call() -> None:
    node, _ = whole_attention()
    first = node.args[0]
    with node.graph.inserting_after(node):
        inner = node.graph.call_function(torch.ops.aten.split.Tensor, (first, 128, 2))
        piece = node.graph.call_function(operator.getitem, (inner, 0))
        result = node.graph.call_function(operator.getitem, (node, 0))
    assert (flex.called(piece), flex.called(result)) == (piece, node)


def test_its_gradient_is_four_products_asked_for_and_seven_that_run() -> None:
    """Both passes, for dQ and for dK and dV, compute scores and what comes back to them."""
    node, found = causal_attention()
    score, block = node.args[3], node.args[4]
    graph = node.graph
    with graph.inserting_after(node):
        back = graph.call_function(
            torch.ops.higher_order.flex_attention_backward,
            (*node.args[:3], *node.args[:3], None, score, score, block, 1.0, {}, (), ()),
        )
        taken = graph.call_function(operator.getitem, (back, 0))
    assert flex.called(taken) is back
    assert flex.inputs(back) == flex.inputs(node)
    cost = flex.cost(back, found, *tensors())
    each = 2 * WIDTH * HEADS
    assert (cost.model_flops, cost.flops) == (4 * each * LENGTH**2, 7 * each * 3 * 128**2)
    assert cost.useful_flops == 7 * each * CAUSAL


def test_kernels_from_templates_go_by_their_graph() -> None:
    names = ("graph_0_kernel", "graph_2_gemm_m8n64k32_kernel", "kernel", "my_kernel", "aten::mm")
    assert [compiled._plain(name) for name in names] == [
        "graph_0_kernel",
        "graph_2_kernel",
        "kernel",
        "my_kernel",
        "aten::mm",
    ]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_a_compiled_program_counts_its_blocks() -> None:
    """Three of four blocks of 128 run; the eager twin asks for all pairs."""
    recording = BACKEND.recorder.record(
        Step(run=case("17b_flex_compiled.py", "make_step")), Plan(device="cpu", count_only=True), lambda text: None
    )
    (op,) = recording.ops
    found = recording.signatures[op.signature]
    assert (found.cost.model_flops, found.cost.flops, found.cost.useful_flops) == (16777216, 12582912, 8421376)
    assert (found.op_class, found.cost.quality, recording.flags) == ("attention", "exact", ())
