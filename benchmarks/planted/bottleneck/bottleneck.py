"""An autoencoder with flax's nnx: noisy inputs are made clean through a narrow layer."""

import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

BATCH, SIZE, WIDTH, NARROW = 512, 128, 160, 16


class Autoencoder(nnx.Module):
    def __init__(self, rngs):
        self.a, self.b = nnx.Linear(SIZE, WIDTH, rngs=rngs), nnx.Linear(WIDTH, NARROW, rngs=rngs)
        self.norm = nnx.LayerNorm(NARROW, rngs=rngs)
        self.c, self.d = nnx.Linear(NARROW, WIDTH, rngs=rngs), nnx.Linear(WIDTH, SIZE, rngs=rngs)

    def __call__(self, x):
        z = self.norm(self.b(nnx.gelu(self.a(x))))
        return self.d(nnx.gelu(self.c(z)))


def loss_of(model, x):
    return jnp.square(model(x) - x).mean()


def make_train(loss_of=loss_of, before=lambda x: x, extra=None, batch=BATCH):
    model = Autoencoder(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.sgd(1e-3, momentum=0.9), wrt=nnx.Param)
    x = jnp.asarray(np.random.default_rng(0).standard_normal((batch, SIZE), dtype=np.float32))

    @nnx.jit
    def step(model, optimizer, x):
        loss, gradients = nnx.value_and_grad(loss_of)(model, x)
        optimizer.update(model, gradients)
        return loss

    def run():
        loss = step(model, optimizer, before(x))
        if extra is not None:
            extra(model)
        return loss

    return run


def make_large():
    return make_train(batch=8 * BATCH)
