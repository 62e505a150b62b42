"""Train two layers in JAX for some steps, with an evaluation every 20 of them; print the weights."""

import functools
import sys

import jax
import jax.numpy as jnp
import numpy


def loss(weights, x, y):
    return ((jnp.tanh(x @ weights[0]) @ weights[1] - y) ** 2).mean()


@functools.partial(jax.jit, donate_argnums=0)
def train(weights, x, y):
    return jax.tree.map(lambda weight, gradient: weight - 0.1 * gradient, weights, jax.grad(loss)(weights, x, y))


evaluate = jax.jit(loss)
random = numpy.random.default_rng(0)
weights = [jnp.asarray(random.normal(size=shape, scale=1 / 8), "float32") for shape in ((64, 128), (128, 8))]
x = jnp.asarray(random.normal(size=(16, 64)), "float32")
y = x[:, :8]
for step in range(int(sys.argv[1])):
    weights = train(weights, x, y)
    if step % 20 == 19:
        print(evaluate(weights, x, y))
print(weights[0].tolist())
