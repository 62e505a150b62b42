"""Molecules in JAX: atoms look at those that they are bound to (graph attention), and Adam (optax) fits an energy."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

MOLECULES, ATOMS, BONDS, WIDTH, LAYERS = 24, 16, 24, 64, 3
ALL = MOLECULES * ATOMS

tx = optax.adam(1e-4)


def weights():
    generator = np.random.default_rng(0)

    def weight(*shape):
        return jnp.asarray(generator.standard_normal(shape) / shape[0] ** 0.5, jnp.float32)

    def layer():
        ends = {"from": weight(WIDTH), "to": weight(WIDTH)}
        return ends | {"value": weight(WIDTH, WIDTH), "up": weight(WIDTH, 4 * WIDTH), "down": weight(4 * WIDTH, WIDTH)}

    return {"layers": [layer() for _ in range(LAYERS)], "energy": weight(WIDTH)}


def molecules():
    """Atoms, the ends of bonds, and energies."""
    generator = np.random.default_rng(1)
    ends = generator.integers(0, ATOMS, (2, MOLECULES, BONDS)) + ATOMS * np.arange(MOLECULES)[:, None]
    atoms, energies = generator.standard_normal((ALL, WIDTH)), generator.standard_normal(MOLECULES)
    start, end = ends.reshape(2, -1).astype(np.int32)
    return jnp.asarray(atoms, jnp.float32), jnp.asarray(start), jnp.asarray(end), jnp.asarray(energies, jnp.float32)


def added(rows, end):
    """Rows of bonds, added up in the atoms where they end."""
    return jax.ops.segment_sum(rows, end, ALL)


def layer(w, x, start, end, added):
    value = x @ w["value"]
    score = jax.nn.leaky_relu((value @ w["from"])[start] + (value @ w["to"])[end], 0.2)
    score = jnp.exp(score - jax.lax.stop_gradient(score.max()))
    share = score / (added(score[:, None], end)[end, 0] + 1e-9)
    x = x + added(share[:, None] * value[start], end)
    return x + jax.nn.elu(x @ w["up"]) @ w["down"]


def loss_of(w, atoms, start, end, energies, layer=layer, added=added):
    x = atoms
    for one in w["layers"]:
        x = layer(one, x, start, end, added)
    energy = (x @ w["energy"]).reshape(MOLECULES, ATOMS).sum(1)
    return ((energy - energies) ** 2).mean()


def train(**how):
    data, w = molecules(), weights()
    moments = tx.init(w)

    @jax.jit
    def update(w, moments, *data):
        loss, gradients = jax.value_and_grad(lambda w: loss_of(w, *data, **how))(w)
        updates, moments = tx.update(gradients, moments)
        return optax.apply_updates(w, updates), moments, loss

    def step():
        nonlocal w, moments
        w, moments, loss = update(w, moments, *data)
        return loss, w

    return step


def make_train():
    return train()
