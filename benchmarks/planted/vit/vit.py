"""A small vision transformer in plain JAX: no library of layers, weights are a tree of arrays."""

import jax
import jax.numpy as jnp
import numpy as np

BATCH, SIDE, SHRINK, PATCH, WIDTH, HEADS, LAYERS, CLASSES = 6, 48, 3, 6, 64, 8, 3, 10
TOKENS = (SIDE // PATCH) ** 2


def weights():
    generator = np.random.default_rng(0)

    def weight(*shape):
        return (generator.standard_normal(shape) / shape[0] ** 0.5).astype(np.float32)

    def layer():
        return {
            "qkv": weight(WIDTH, 3 * WIDTH), "out": weight(WIDTH, WIDTH),
            "up": weight(WIDTH, 3 * WIDTH), "down": weight(3 * WIDTH, WIDTH),
        }  # fmt: skip

    return {
        "patch": weight(PATCH * PATCH * 3, WIDTH), "place": 0.02 * weight(TOKENS, WIDTH),
        "layers": [layer() for _ in range(LAYERS)], "head": weight(WIDTH, CLASSES),
    }  # fmt: skip


def data():
    """Pictures as a camera gives them, and their classes."""
    generator = np.random.default_rng(1)
    pictures = generator.integers(0, 256, (BATCH, SHRINK * SIDE, SHRINK * SIDE, 3)).astype(np.uint8)
    return pictures, generator.integers(0, CLASSES, BATCH).astype(np.int32)


def norm(x):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-6)


def attention(w, x):
    q, k, v = jnp.moveaxis((x @ w["qkv"]).reshape(len(x), TOKENS, 3, HEADS, -1), 2, 0)
    scores = jnp.einsum("bqhc,bkhc->bhqk", q, k) / (WIDTH // HEADS) ** 0.5
    mixed = jnp.einsum("bhqk,bkhc->bqhc", jax.nn.softmax(scores), v)
    return mixed.reshape(x.shape) @ w["out"]


def layer(w, x):
    x = x + attention(w, norm(x))
    return x + jax.nn.gelu(norm(x) @ w["up"]) @ w["down"]


def normal(pictures):
    """Smaller, and around 0."""
    x = pictures.reshape(BATCH, SIDE, SHRINK, SIDE, SHRINK, 3).astype(jnp.float32).mean((2, 4))
    return (x / 255 - 0.5) / 0.25


def scores(w, x, layer):
    across = SIDE // PATCH
    x = x.reshape(len(x), across, PATCH, across, PATCH, 3).swapaxes(2, 3).reshape(len(x), TOKENS, -1)
    x = x @ w["patch"] + w["place"]
    for one in w["layers"]:
        x = layer(one, x)
    return norm(x.mean(1)) @ w["head"]


def make_step(layer=layer):
    known, pictures = jax.tree.map(jnp.asarray, weights()), jnp.asarray(data()[0])
    forward = jax.jit(lambda w, pictures: scores(w, normal(pictures), layer))
    return lambda: forward(known, pictures)


def clipped(slopes):
    """To a norm of 1."""
    norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(slopes)))
    return jax.tree.map(lambda g: g * jnp.minimum(1.0, 1.0 / (norm + 1e-6)), slopes)


def changed(w, slopes):
    return jax.tree.map(lambda w, g: w - 1e-3 * g, w, clipped(slopes))


compiled_normal, compiled_change = jax.jit(normal), jax.jit(changed)


def make_train(layer=layer, prepare=compiled_normal, change=compiled_change):
    w, (pictures, classes) = jax.tree.map(jnp.asarray, weights()), data()
    classes = jnp.asarray(classes)

    def loss_of(w, x):
        return -jnp.take_along_axis(jax.nn.log_softmax(scores(w, x, layer)), classes[:, None], 1).mean()

    gradient = jax.jit(jax.value_and_grad(loss_of))

    def step():
        nonlocal w
        loss, slopes = gradient(w, prepare(pictures))
        w = change(w, slopes)
        return loss, w

    return step


def make_fit(layer=layer):
    """Pictures were prepared before."""
    prepared = compiled_normal(data()[0])
    return make_train(layer, prepare=lambda pictures: prepared)
