"""The memory of programs held against XLA's own sums of its buffer assignment."""

from __future__ import annotations

import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp
import numpy as np
from test_count import STEP, traced

from roofline.core.vocabulary import STORAGE_KINDS
from roofline.xla import count


def perceptron(weights, x):
    for weight in weights:
        x = jnp.tanh(x @ weight)
    return x


def convolutions(kernels, x):
    for kernel in kernels:
        x = jax.nn.relu(
            jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        )
    return x


def attention(weights, x):
    query, key, value, out = (x @ weight for weight in weights[:3]), *(None,) * 2, weights[3]
    query, key, value = query
    return jax.nn.softmax(query @ key.swapaxes(-1, -2)) @ value @ out


MODELS = {
    "perceptron": (perceptron, [(128, 128)] * 4, (512, 128)),
    "convolutions": (convolutions, [(3, 3, 4, 8), (3, 3, 8, 8)], (8, 24, 24, 4)),
    "attention": (attention, [(64, 64)] * 4, (4, 128, 64)),
}


def step(name, donate=False):
    """A training step of plain gradient descent, and its arguments."""
    model, weights, shape = MODELS[name]
    rng = np.random.default_rng(0)
    parameters = [jax.device_put(rng.normal(0.0, 0.1, weight).astype("f4")) for weight in weights]

    def train(parameters, x):
        gradients = jax.grad(lambda parameters: jnp.mean(model(parameters, x) ** 2))(parameters)
        return [parameter - 0.1 * gradient for parameter, gradient in zip(parameters, gradients, strict=True)]

    arguments = parameters, jax.device_put(rng.normal(size=shape).astype("f4"))
    return jax.jit(train, donate_argnums=0 if donate else ()).lower(*arguments).compile(), arguments


def storages(run):
    return count.count([traced(run, 1)], STEP)[0].storages


def live(storages):
    sums = np.zeros((len(STORAGE_KINDS), max(storages.last) + 1))
    for kind, size, first, last in zip(storages.kind, storages.bytes, storages.first, storages.last, strict=True):
        sums[kind, first : last + 1] += size
    return sums


@pytest.mark.parametrize("name", list(MODELS))
def test_the_peak_is_what_xla_assigned(name):
    train, arguments = step(name)
    said = train.memory_analysis()
    reference = (
        said.argument_size_in_bytes + said.output_size_in_bytes - said.alias_size_in_bytes + said.temp_size_in_bytes
    )
    held = storages(lambda: train(*arguments))
    assert held.assigned == pytest.approx(reference, rel=0.05)
    assert (held.source, held.at_least) == ("buffer assignment", False)
    # In use at once is no more than was assigned, and the most of it: XLA packs what it can.
    in_use = live(held).sum(axis=0).max()
    assert 0.95 * held.assigned <= in_use <= held.assigned


def test_arguments_that_are_given_away_are_the_results():
    weights = 4 * 128 * 128 * 4

    def held(donate):
        train, (parameters, x) = step("perceptron", donate)
        state = [parameters]

        def run():
            state[0] = train(state[0], x)
            return state[0]

        return live(storages(run))[:, 0]

    kept, given = held(False), held(True)
    results, inputs = STORAGE_KINDS.index("results"), STORAGE_KINDS.index("inputs")
    assert kept[results] == pytest.approx(weights, abs=256)  # and a table of their addresses
    assert given[results] == pytest.approx(0, abs=256)
    assert kept[inputs] == pytest.approx(given[inputs]) == weights + 4 * 512 * 128


def test_of_several_programs_the_largest_is_known_to_be_there():
    few, many = (jax.device_put(np.ones((size, size), np.float32)) for size in (32, 256))
    small = jax.jit(lambda x: jnp.tanh(x) @ x)
    large = jax.jit(lambda x: jnp.tanh(x).T @ jnp.sin(x)).lower(many).compile()
    held = storages(lambda: (small(few), large(many)))
    assert held.at_least
    said = large.memory_analysis()
    reference = said.argument_size_in_bytes + said.output_size_in_bytes + said.temp_size_in_bytes
    assert held.assigned == pytest.approx(reference, rel=0.05)
