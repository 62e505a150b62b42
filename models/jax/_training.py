"""A training step in JAX: forward, loss, backward and optimizer in one program, with loss scaling for float16."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax import Array

from roofline.core.step import Workload
from roofline.models._adam import Adam
from roofline.models._precision import precision
from roofline.models._sgd import Sgd
from roofline.models.jax._program import Inputs, Scaling, State, output_of

Loss = Callable[[Array, Array], Array]
Parameters = dict[str, Any]

# As in PyTorch's GradScaler and flax's DynamicScale.
_FIRST_SCALE, _GROWTH_INTERVAL = 65536.0, 2000


def transformation(asked: Adam | Sgd) -> optax.GradientTransformation:
    """The optax optimizer with these arguments."""
    if isinstance(asked, Sgd):
        return optax.sgd(asked.lr)
    rest = {"b1": asked.betas[0], "b2": asked.betas[1], "eps": asked.eps}
    if asked.weight_decay:
        return optax.adamw(asked.lr, weight_decay=asked.weight_decay, **rest)
    return optax.adam(asked.lr, **rest)


def first_state(workload: Workload, parameters: Parameters, optimizer: Adam | Sgd, key: Array | None) -> State:
    """What the first training step begins with."""
    scaling = Scaling(jnp.float32(_FIRST_SCALE), jnp.int32(0)) if precision(workload).scales_loss else None
    moments = jax.jit(transformation(optimizer).init)(parameters) if workload.optimizer else None
    # All of it committed to the device, as what a step gives back is: otherwise the second step compiles again.
    return jax.device_put(State(parameters, moments, scaling, key), jax.tree.leaves(parameters)[0].device)


def training(
    workload: Workload, graph: nnx.GraphDef, loss: Loss, optimizer: Adam | Sgd
) -> tuple[Callable[[State, Parameters, Inputs, Array], tuple[Any, State]], dict[str, str]]:
    """One training step and its switches; the step updates its state in place and leaves the frozen parameters alone.

    The result is the loss. Without an optimizer it is loss and gradients, which a compiler would leave out if nobody
    asked for them, and parameters stay.
    """
    change = transformation(optimizer) if workload.optimizer else None
    mixed = precision(workload).mixed is not None

    def differentiated(
        state: State, frozen: Parameters, inputs: Inputs, targets: Array
    ) -> tuple[Array, Any, Array, State]:
        """(loss, gradients, whether they are finite, `state` with what does not take an optimizer changed)."""
        now = following = None
        if state.key is not None:
            with jax.named_scope("input"):
                following, now = jax.random.split(state.key)

        def objective(parameters: Parameters) -> tuple[Array, Array]:
            output = output_of(graph, parameters, frozen, now, inputs)
            with jax.named_scope("loss"):
                value = loss(output.astype(jnp.float32) if mixed else output, targets)
                return (value if state.scaling is None else value * state.scaling.factor), value

        gradients, value = jax.grad(objective, has_aux=True)(state.parameters)
        finite, scaling = jnp.array(True), None
        if state.scaling is not None:
            with jax.named_scope("optimizer"):
                gradients, finite, scaling = _unscaled(gradients, state.scaling)
        return value, gradients, finite, state._replace(scaling=scaling, key=following)

    def train(state: State, frozen: Parameters, inputs: Inputs, targets: Array) -> tuple[Array, State]:
        value, gradients, finite, state = differentiated(state, frozen, inputs, targets)
        before = state.parameters, state.optimizer
        with jax.named_scope("optimizer"):
            updates, kept = change.update(gradients, state.optimizer, state.parameters)
            after = optax.apply_updates(state.parameters, updates), kept
            if state.scaling is not None:
                after = jax.tree.map(lambda new, old: jnp.where(finite, new, old), after, before)
        return value, state._replace(parameters=after[0], optimizer=after[1])

    def train_without_update(
        state: State, frozen: Parameters, inputs: Inputs, targets: Array
    ) -> tuple[tuple[Array, Any], State]:
        value, gradients, _, state = differentiated(state, frozen, inputs, targets)
        # Handed through, the parameters would be copied.
        return (value, gradients), state._replace(parameters=None)

    decided = {
        **(optimizer.switches() if change else {"optimizer": "none"}),
        "gradient scaler": "on" if precision(workload).scales_loss else "off",
        "donation": "on" if change else "off",
    }
    return jax.jit(train, donate_argnums=0) if change else jax.jit(train_without_update), decided


def _unscaled(gradients: Any, scaling: Scaling) -> tuple[Any, Array, Scaling]:
    """(gradients over the factor, whether all are finite, the next scaling), as PyTorch's GradScaler does it."""
    gradients = jax.tree.map(lambda gradient: gradient / scaling.factor, gradients)
    finite = jnp.stack([jnp.isfinite(gradient).all() for gradient in jax.tree.leaves(gradients)]).all()
    steps = jnp.where(finite, scaling.finite_steps + 1, 0)
    grown = steps == _GROWTH_INTERVAL
    factor = scaling.factor * jnp.where(finite, jnp.where(grown, 2.0, 1.0), 0.5)
    return gradients, finite, Scaling(factor, jnp.where(grown, 0, steps))
