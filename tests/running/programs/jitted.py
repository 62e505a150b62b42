"""Train two layers in JAX for some steps, with an evaluation every 20 of them; print the weights."""

import functools
import sys

import jax
import jax.numpy as jnp


def loss(weights, x, y):
    return ((jnp.tanh(x @ weights[0]) @ weights[1] - y) ** 2).mean()


@functools.partial(jax.jit, donate_argnums=0)
def train(weights, x, y):
    return jax.tree.map(lambda weight, gradient: weight - 0.1 * gradient, weights, jax.grad(loss)(weights, x, y))


evaluate = jax.jit(loss)
keys = jax.random.split(jax.random.key(0), 3)
weights = [jax.random.normal(keys[0], (64, 128)) / 8, jax.random.normal(keys[1], (128, 8)) / 8]
x = jax.random.normal(keys[2], (16, 64))
for step in range(int(sys.argv[1])):
    weights = train(weights, x, x[:, :8])
    if step % 20 == 19:
        print(evaluate(weights, x, x[:, :8]))
print(weights[0].tolist())
