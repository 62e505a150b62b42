"""Products that XLA renamed or merged: each op is asked for what it executes, and the sum stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp
from hlo_oracle import hlo_library as _hlo
from test_count import ran, unoptimised

from roofline.core.step import Workload
from roofline.costs.counted import PHASES, Interner
from roofline.traces.xplane import reader
from roofline.xla import model_flops
from roofline.xla.executed import Executed
from roofline.xla.hlo import cost, schedule
from roofline.xla.hlo import module as hlo
from roofline.xla.scopes import place

TRACE = Path(__file__).parents[1] / "data" / "h100" / "jax-buffers-off-train.1.xplane.pb.gz"


def assigned(optimised: bytes, before: bytes) -> dict[str, tuple[float, float]]:
    """(executed, model) FLOPs of each instruction that has any, every one run once."""
    module, same = hlo.read(optimised), Interner()
    ops = []
    for name in dict.fromkeys(unit.instruction.name for unit in schedule.schedule(module) if not unit.control):
        instruction = module.instructions[name]
        ops.append(Executed((1, name), instruction, 1.0, same(cost.cost(module, instruction)[0]), (), ()))
    found, flags = model_flops.assign(ops, {1: module}, [(1, module.name, before)], same, place, {1: 1.0})
    assert not flags
    works = {op.key[1]: op.costed.cost for op in found}
    return {
        name: (one.flops or 0.0, one.model_flops or 0.0) for name, one in works.items() if one.flops or one.model_flops
    }


def text(source: str) -> bytes:
    data: bytes = _hlo.hlo_module_from_text(source).as_serialized_hlo_module_proto()
    return data


def test_both_gradients_of_a_dense_net_ask_for_what_they_execute() -> None:
    """Of each layer but the first; the gradient of a weight takes in a transpose, and is called like that."""

    def loss(weights: list[Any], x: Any) -> Any:
        for number, weight in enumerate(weights):
            with jax.named_scope(f"layer.{number}"):
                x = jnp.tanh(x @ weight)
        return (x**2).mean()

    @jax.jit
    def train(weights: list[Any], x: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(weights, x)
        return value, [weight - 0.1 * gradient for weight, gradient in zip(weights, gradients, strict=True)]

    counted = ran(train, [np.eye(64, dtype=np.float32) for _ in range(3)], np.ones((256, 64), np.float32))
    products = [op.costed.cost for op in counted.ops if op.costed.cost.flops or op.costed.cost.model_flops]
    # Three forward, three of the weights and two of what is between them, of 2 x 256 x 64 x 64 FLOPs.
    assert [one.flops for one in products] == [one.model_flops for one in products] == [2 * 256 * 64 * 64] * 8


BEFORE = """
HloModule m

ENTRY main {
  x = f32[8,8] parameter(0)
  w = f32[8,8] parameter(1)
  q = f32[8,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0},
    metadata={op_name="jit(f)/layer.LAYER/query/dot_general"}
  k = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0},
    metadata={op_name="jit(f)/layer.LAYER/key/dot_general"}
  v = f32[8,8] dot(w, x), lhs_contracting_dims={1}, rhs_contracting_dims={0},
    metadata={op_name="jit(f)/layer.LAYER/value/dot_general"}
  up = f32[8,8] dot(q, k), lhs_contracting_dims={1}, rhs_contracting_dims={0},
    metadata={op_name="jit(f)/layer.LAYER/up/dot_general"}
  ROOT sum = f32[8,8] add(up, v)
}
"""
AFTER = """
HloModule m, is_scheduled=true

ENTRY main {
  x = f32[8,8] parameter(0)
  w = f32[8,8] parameter(1)
  all = f32[8,24] concatenate(x, w, x), dimensions={1}
  merged = f32[8,24] dot(x, all), lhs_contracting_dims={1}, rhs_contracting_dims={0},
    metadata={op_name="jit(f)/layer.0/key/dot_general"}
  part = f32[8,8] slice(merged), slice={[0:8], [0:8]}
  up = f32[8,8] dot(part, x), lhs_contracting_dims={1}, rhs_contracting_dims={0},
    metadata={op_name="jit(f)/layer.0/up/dot_general"}
  ROOT sum = f32[8,8] add(up, part)
}
"""
ONE = 2.0 * 8 * 8 * 8


def test_a_merged_product_is_asked_for_all_that_it_does() -> None:
    """Query, key and value in one, which is called like the key."""
    assert assigned(text(AFTER), text(BEFORE.replace("LAYER", "0"))) == {
        "merged": (3 * ONE, 3 * ONE),
        "up": (ONE, ONE),
    }


PADDED = """
HloModule m, is_scheduled=true

ENTRY main {
  x = f32[8,8] parameter(0)
  w = f32[8,8] parameter(1)
  zero = f32[] constant(0)
  wide = f32[8,12] pad(w, zero), padding=0_0x0_4
  padded = f32[8,12] dot(x, wide), lhs_contracting_dims={1}, rhs_contracting_dims={0},
    metadata={op_name="jit(f)/layer.0/key/dot_general"}
  part = f32[8,8] slice(padded), slice={[0:8], [0:8]}
  up = f32[8,8] dot(part, x), lhs_contracting_dims={1}, rhs_contracting_dims={0},
    metadata={op_name="jit(f)/layer.0/up/dot_general"}
  ROOT sum = f32[8,8] add(up, part)
}
"""


def test_a_product_that_is_gone_takes_no_part_of_a_padded_one() -> None:
    """The padded one executes half as much again, which is not the whole of one that XLA left out.

    Two products ask for `up`, of which one runs; the query has none any more, and stands with the largest.
    """
    found = assigned(text(PADDED), text(BEFORE.replace("LAYER", "0").replace("layer.0/value", "layer.0/up")))
    assert found == {"padded": (1.5 * ONE, 2 * ONE), "up": (ONE, 2 * ONE)}


def test_each_product_of_an_h100_is_asked_for_what_it_executes() -> None:
    """The program that an H100 ran, and the one that JAX makes here of the same step.

    Two layers of BERT in training: XLA merged query, key and value there, and the gradients of their weights.
    """
    pytest.importorskip("flax")
    from roofline.models.jax.encoders import bert

    program = bert.build(Workload(model="bert", mode="train", batch=2, seq=32, size="tiny")).model
    ((_, name, before),) = unoptimised(program.function, *program.arguments())
    trace = reader.read(TRACE)
    optimised = next(data for found, data in trace.modules.values() if found == name)
    found = assigned(optimised, before)
    assert {name: flops for name, (flops, model) in found.items() if flops != model} == {}
    # 64 tokens of width 64: three products of 64 x 64 in one, of two layers, forward and backward.
    assert sum(flops == 3 * 2 * 64 * 64 * 64 for flops, _ in found.values()) == 4


def test_the_gradient_of_one_sample_is_asked_for_in_the_backward_pass() -> None:
    """A column times a row is no product any more, and stands in the op of the optimizer that takes it.

    Three layers of 64 x 64, 2 x 64 x 64 FLOPs each: one sample makes every gradient of weights such a column times a
    row; those of what is between the layers are products of a vector and a matrix.
    """
    one = 2 * 64 * 64

    def loss(weights: list[Any], x: Any) -> Any:
        for number, weight in enumerate(weights):
            with jax.named_scope(f"layer.{number}"):
                x = jnp.tanh(x @ weight)
        return (x**2).mean()

    @jax.jit
    def train(weights: list[Any], x: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(weights, x)
        with jax.named_scope("optimizer"):
            return value, [weight - 0.1 * gradient for weight, gradient in zip(weights, gradients, strict=True)]

    counted = ran(train, [np.eye(64, dtype=np.float32) for _ in range(3)], np.ones((1, 64), np.float32))
    asked = dict.fromkeys(PHASES, 0.0)
    executed = dict(asked)
    for op, phase in zip(counted.ops, counted.phase, strict=True):
        asked[PHASES[phase]] += op.costed.cost.model_flops or 0.0
        executed[PHASES[phase]] += op.costed.cost.flops or 0.0
    assert sum(executed.values()) < 8 * one, "some became multiplications"
    assert {phase: flops for phase, flops in asked.items() if flops} == {"forward": 3 * one, "backward": 5 * one}


def test_a_product_that_is_gone_stands_with_a_product() -> None:
    """One of 8 x 1 x 8 has no instruction, and its scope none but a sum: the product of 8 x 8 x 8 stands for it."""
    optimised = """
HloModule m

ENTRY main {
  x = f32[8,8] parameter(0)
  a = f32[8,1] parameter(1)
  b = f32[1,8] parameter(2)
  y = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/k/dot_general"}
  ROOT s = f32[8,8] add(y, x), metadata={op_name="jit(f)/g/add"}
}
"""
    gone = "z = f32[8,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    before = optimised.replace("ROOT s = f32[8,8] add(y, x)", "ROOT s = f32[8,8] add(y, z)")
    before = before.replace("  ROOT", f'  {gone}, metadata={{op_name="jit(f)/g/dot_general"}}\n  ROOT')
    found = assigned(text(optimised), text(before))
    assert found == {"y": (2 * 8**3, 2 * 8**3 + 2 * 8 * 8)}


def test_what_xla_computed_while_it_compiled_stands_with_what_is_left() -> None:
    """Of two products of constants of 8 x 8, only what is added to the second one runs."""
    before = """
HloModule m

ENTRY main {
  x = f32[8,8] parameter(0)
  one = f32[] constant(1)
  a = f32[8,8] broadcast(one), dimensions={}
  b = f32[8,8] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/k/dot_general"}
  c = f32[8,8] dot(b, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/l/dot_general"}
  ROOT s = f32[8,8] add(x, c), metadata={op_name="jit(f)/g/add"}
}
"""
    optimised = """
HloModule m

ENTRY main {
  x = f32[8,8] parameter(0)
  number = f32[] constant(64)
  c = f32[8,8] broadcast(number), dimensions={}, metadata={op_name="jit(f)/l/dot_general"}
  ROOT s = f32[8,8] add(x, c), metadata={op_name="jit(f)/g/add"}
}
"""
    found = assigned(text(optimised), text(before))
    assert sum(model for _, model in found.values()) == 2 * ONE
    assert not any(executed for executed, _ in found.values())


SOLVED = """
HloModule s
ENTRY main {
  a = f32[4,4] parameter(0)
  b = f32[4,8] parameter(1)
  product = f32[4,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT solved = f32[4,8] triangular-solve(a, product), left_side=true, lower=true, transpose_a=NO_TRANSPOSE
}
"""
SOLVED_PADDED = """
HloModule s
ENTRY main {
  a = f32[4,4] parameter(0)
  b = f32[4,8] parameter(1)
  zero = f32[] constant(0)
  around = f32[4,16] pad(b, zero), padding=0_0x0_8
  product = f32[4,16] dot(a, around), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  inside = f32[4,8] slice(product), slice={[0:4], [0:8]}
  ROOT solved = f32[4,8] triangular-solve(a, inside), left_side=true, lower=true, transpose_a=NO_TRANSPOSE
}
"""


def test_where_nothing_has_a_name_a_product_is_not_taken_for_a_part_of_linear_algebra() -> None:
    """The product of 4 x 4 and 4 x 8 is padded to 16 columns; solving for 8 columns takes 4 x 4 FLOPs for each."""
    found = assigned(text(SOLVED_PADDED), text(SOLVED))
    assert found == {"product": (2 * 4 * 4 * 16, 2 * 4 * 4 * 8), "solved": (4 * 4 * 8, 4 * 4 * 8)}


BRANCHES = """
HloModule m

then {
  x = f32[8,8] parameter(0)
  product = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="cond/matmul"}
  ROOT result = f32[8,8] tanh(product), metadata={op_name="cond/Tanh"}
}

else {
  x = f32[8,8] parameter(0)
  product = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="cond/matmul"}
  ROOT result = f32[8,8] dot(product, x), lhs_contracting_dims={1}, rhs_contracting_dims={0},
    metadata={op_name="cond/matmul_1"}
}

ENTRY main {
  x = f32[8,8] parameter(0)
  yes = pred[] parameter(1)
  ROOT chosen = f32[8,8] conditional(yes, x, x), true_computation=then, false_computation=else,
    metadata={op_name="cond"}
}
"""
CHOSEN = """
HloModule m, is_scheduled=true

ENTRY main {
  x = f32[8,8] parameter(0)
  product = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0},
    metadata={op_name="cond/cond/matmul"}
  ROOT result = f32[8,8] tanh(product), metadata={op_name="cond/cond/Tanh"}
}
"""


def test_of_a_conditional_that_xla_decided_its_branch_is_asked_for() -> None:
    """TensorFlow's constants are XLA's: what was in a branch has the name of the conditional in front of its own."""
    assert assigned(text(CHOSEN), text(BRANCHES)) == {"product": (ONE, ONE)}
