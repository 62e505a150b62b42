"""Optimizers that no scope names, in programs that JAX compiled: found by where data go, and what is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import compiling
import jax.numpy as jnp

from roofline.xla.hlo import module as hlo
from roofline.xla.places import place_of
from roofline.xla.scopes import BACKWARD, FORWARD, OPTIMIZER, place
from roofline.xla.updates import in_other_programs, updates

#: Two layers of 32 x 32 with a bias, and 16 rows.
PARAMETERS = tuple((np.ones((32, 32), np.float32), np.zeros(32, np.float32)) for _ in range(2))
ZEROS = jax.tree.map(np.zeros_like, PARAMETERS)
X = np.ones((16, 32), np.float32)


def loss(parameters: Any, x: Any) -> Any:
    for weight, bias in parameters:
        x = jnp.tanh(x @ weight + bias)
    return (x**2).mean()


def module_of(function: Any, *arguments: Any) -> hlo.Module:
    (compiled,) = jax.jit(function).lower(*arguments).compile(compiling.OPTIONS).runtime_executable().hlo_modules()
    return hlo.read(compiled.as_serialized_hlo_module_proto())


def updated(function: Any, *arguments: Any) -> tuple[hlo.Module, frozenset[hlo.Instruction]]:
    module = module_of(function, *arguments)
    return module, updates(module, place)


def returned(module: hlo.Module, found: frozenset[hlo.Instruction]) -> list[bool]:
    """Of each result whether an update makes it."""
    made = []
    for one in module.entry.root.operands:
        while one.opcode in ("get-tuple-element", "bitcast", "copy"):
            (one,) = one.operands
        made.append(one in found)
    return made


def adam(parameters: Any, m: Any, v: Any, times: Any, x: Any) -> Any:
    """Clipped, with a decay and corrections, and with two numbers that are only reported."""
    value, gradients = jax.value_and_grad(loss)(parameters, x)
    norm = jnp.sqrt(sum(jnp.sum(each**2) for each in jax.tree.leaves(gradients)))
    gradients = jax.tree.map(lambda each: each * jnp.minimum(1.0, 1.0 / norm), gradients)
    times = times + 1
    m = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, m, gradients)
    v = jax.tree.map(lambda a, b: 0.999 * a + 0.001 * b * b, v, gradients)

    def step(w: Any, a: Any, b: Any) -> Any:
        return w - 1e-3 * (a / (1 - 0.9**times) / (jnp.sqrt(b / (1 - 0.999**times)) + 1e-8) + 0.1 * w)

    return jax.tree.map(step, parameters, m, v), m, v, times, value, norm


def test_an_optimizer_written_by_hand() -> None:
    """4 weights and 8 moments are updated; the count of steps and the loss are not, and the norm serves clipping."""
    module, found = updated(adam, PARAMETERS, ZEROS, ZEROS, jnp.float32(0), X)
    assert returned(module, found) == [True] * 12 + [False, False, True]
    products = [one for one in module.entry.instructions if one.opcode in ("dot", "custom-call")]
    assert found.isdisjoint(products)
    # Nothing of the backward pass, nor of the forward pass that it needs.
    assert all(place_of(module, one, place).phase == FORWARD for one in found if one in module.entry.instructions)


def test_plain_descent_is_one() -> None:
    def descent(parameters: Any, x: Any) -> Any:
        return jax.tree.map(lambda w, g: w - 0.1 * g, parameters, jax.grad(loss)(parameters, x))

    assert returned(*updated(descent, PARAMETERS, X)) == [True] * 4


def test_optax_is_one() -> None:
    optax = pytest.importorskip("optax")
    rule = optax.adamw(1e-3)

    def train(parameters: Any, state: Any, x: Any) -> Any:
        changes, state = rule.update(jax.grad(loss)(parameters, x), state, parameters)
        return optax.apply_updates(parameters, changes), state

    module, found = updated(train, PARAMETERS, rule.init(PARAMETERS), X)
    assert sum(returned(module, found)) >= 12


def gradients(parameters: Any, x: Any) -> Any:
    """Scaled, and of the shapes of the weights, which have no part in that."""
    return jax.tree.map(lambda g: g * 0.5 + 1e-3, jax.grad(loss)(parameters, x))


def saliency(parameters: Any, x: Any) -> Any:
    """Of the shape of the input, and nothing is added to it."""
    return x * jax.grad(loss, argnums=1)(parameters, x)


def accumulated(sums: Any, parameters: Any, x: Any) -> Any:
    """Gradients of several batches are added up, and no weight changes."""
    return jax.tree.map(lambda s, g: s + g, sums, jax.grad(loss)(parameters, x))


def adversarial(parameters: Any, x: Any) -> Any:
    """An input that is moved along its gradient."""
    return x + 0.1 * jnp.sign(jax.grad(loss, argnums=1)(parameters, x))


def adapted(parameters: Any, x: Any) -> Any:
    """Descent inside of a loss, which is differentiated once more."""

    def outer(parameters: Any) -> Any:
        inner = jax.tree.map(lambda w, g: w - 0.1 * g, parameters, jax.grad(loss)(parameters, x))
        return loss(inner, x)

    return jax.grad(outer)(parameters)


def evaluated(parameters: Any, x: Any) -> Any:
    """Inference: nothing depends on a gradient."""
    return jax.tree.map(lambda w: w + 1.0, parameters), loss(parameters, x)


@pytest.mark.parametrize("function", [gradients, saliency, adversarial, adapted, evaluated])
def test_what_is_no_optimizer(function: Any) -> None:
    _, found = updated(function, PARAMETERS, X)
    assert not found


def test_a_sum_of_gradients_is_no_optimizer_and_an_average_of_weights_belongs_to_one() -> None:
    _, found = updated(accumulated, ZEROS, PARAMETERS, X)
    assert not found

    def averaged(average: Any, parameters: Any, x: Any) -> Any:
        new = jax.tree.map(lambda w, g: w - 0.1 * g, parameters, jax.grad(loss)(parameters, x))
        return new, jax.tree.map(lambda a, w: 0.99 * a + 0.01 * w, average, new)

    assert returned(*updated(averaged, PARAMETERS, PARAMETERS, X)) == [True] * 8


def test_a_scope_that_names_one_is_left_alone() -> None:
    def train(parameters: Any, x: Any) -> Any:
        found = jax.grad(loss)(parameters, x)
        with jax.named_scope("optimizer"):
            first = parameters[0][0] - 0.1 * found[0][0]
        return first, parameters[1][0] - 0.1 * found[1][0]

    module, found = updated(train, PARAMETERS, X)
    assert not found
    assert {place_of(module, one, place).phase for one in module.entry.instructions} >= {BACKWARD, OPTIMIZER}


# In loops


def descent(parameters: Any, x: Any) -> Any:
    return jax.tree.map(lambda w, g: w - 0.1 * g, parameters, jax.grad(loss)(parameters, x))


def scanned(parameters: Any, batches: Any) -> Any:
    """Several steps of a training in one."""
    return jax.lax.scan(lambda carried, x: (descent(carried, x), None), parameters, batches)[0]


def test_steps_of_a_training_in_a_loop_update() -> None:
    module, found = updated(scanned, PARAMETERS, np.stack([X] * 3))
    (loop,) = (one for one in module.entry.instructions if one.opcode == "while")
    body = next(each for each in loop.called if each.root.shape.dtype == "tuple")
    assert any(one in found for one in body.instructions)
    products = [one for one in body.instructions if place_of(module, one, place).phase == BACKWARD]
    assert products
    assert found.isdisjoint(products)
    assert found.isdisjoint(module.entry.instructions)


def layers(parameters: Any, x: Any) -> Any:
    """A loop over layers of one shape, whose gradients are summed backwards."""
    stacked = jax.tree.map(lambda *each: jnp.stack(each), *parameters)

    def deep(stacked: Any) -> Any:
        return (jax.lax.scan(lambda x, of: (jnp.tanh(x @ of[0] + of[1]), None), x, stacked)[0] ** 2).mean()

    return jax.grad(deep)(stacked)


def batch_by_batch(parameters: Any, x: Any) -> Any:
    """Gradients of several batches are added up in a loop."""
    zeros = jax.tree.map(jnp.zeros_like, parameters)

    def add(sums: Any, x: Any) -> Any:
        return jax.tree.map(lambda s, g: s + 0.25 * g, sums, jax.grad(loss)(parameters, x)), None

    return jax.lax.scan(add, zeros, jnp.stack([x] * 4))[0]


def adapted_in_a_loop(parameters: Any, x: Any) -> Any:
    """Descent inside of a loss, which is differentiated once more."""
    return jax.grad(lambda parameters: loss(scanned(parameters, jnp.stack([x] * 3)), x))(parameters)


@pytest.mark.parametrize("function", [layers, batch_by_batch, adapted_in_a_loop])
def test_loops_that_update_nothing(function: Any) -> None:
    assert not updated(function, PARAMETERS, X)[1]


# In programs of their own


def separate(parameters: Any, changes: Any) -> Any:
    return jax.tree.map(lambda w, g: w - 0.1 * g, parameters, changes)


def summed(sums: Any, changes: Any) -> Any:
    return jax.tree.map(lambda s, g: s + g, sums, changes)


def in_turn(*functions: tuple[Any, tuple[Any, ...], float]) -> tuple[list[hlo.Module], frozenset[hlo.Instruction]]:
    """Programs of a step, each with how often it runs, and what of them is an optimizer."""
    modules = {module_of(function, *arguments): runs for function, arguments, runs in functions}
    return list(modules), in_other_programs(modules, place)


GRADIENTS = (jax.value_and_grad(loss), (PARAMETERS, X), 1.0)


def test_a_program_that_updates_by_gradients_of_another_one_is_an_optimizer() -> None:
    norm = (lambda changes: sum(jnp.sum(each**2) for each in jax.tree.leaves(changes)), (ZEROS,), 1.0)
    (made, reported, update), found = in_turn(GRADIENTS, norm, (separate, (PARAMETERS, ZEROS), 1.0))
    assert found.issuperset(update.entry.instructions)
    assert found.isdisjoint((*made.entry.instructions, *reported.entry.instructions))


def test_operations_one_by_one_are_one_if_they_update_every_gradient() -> None:
    # Two weights and two biases, each scaled and subtracted.
    arrays = ((np.ones((32, 32), np.float32),) * 2, (np.ones(32, np.float32),) * 2)
    scale, subtract = lambda a, b: 0.1 * a, lambda a, b: a - b
    eager = [(operation, pair, 2.0) for operation in (scale, subtract) for pair in arrays]
    modules, found = in_turn(GRADIENTS, *eager)
    assert all(found.issuperset(module.entry.instructions) for module in modules[1:])
    # Of one of the two weights alone it would be none.
    assert not in_turn(GRADIENTS, *[(operation, pair, 1.0) for operation, pair, _ in eager])[1]
    # In whatever order: updates of one step may run in the next.
    assert len(in_turn(*eager, GRADIENTS)[1]) == len(found)


def test_what_no_rule_of_an_optimizer_computes_is_none_beside_one() -> None:
    activation = (jnp.tanh, (np.ones((32, 32), np.float32),), 1.0)
    (_, other, update), found = in_turn(GRADIENTS, activation, (separate, (PARAMETERS, ZEROS), 1.0))
    assert found.issuperset(update.entry.instructions)
    assert found.isdisjoint(other.entry.instructions)
    # And what it adds makes up for no update that is missing: each gradient is scaled, and none is taken off.
    scaled = (lambda changes: jax.tree.map(lambda g: 0.1 * g, changes), (ZEROS,), 1.0)
    model = (lambda x: jax.tree.map(lambda each: jnp.tanh(each) + each, x), (PARAMETERS,), 1.0)
    assert not in_turn(GRADIENTS, scaled, model)[1]


@pytest.mark.parametrize("function", [summed, lambda sums, changes: jax.tree.map(lambda s, g: s * g, sums, changes)])
def test_sums_and_products_of_gradients_are_none(function: Any) -> None:
    assert not in_turn(GRADIENTS, (function, (ZEROS, ZEROS), 1.0))[1]
