"""What the models in JAX share: precision, placement, and the steps made of a network and its inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax import Array

from roofline.core.step import Step, Workload
from roofline.errors import MissingError
from roofline.models import dimensions
from roofline.models._adam import ADAMW, Adam
from roofline.models._precision import Dtype, precision
from roofline.models._sgd import Sgd
from roofline.models._step import described, transformer_switches
from roofline.models.float32 import jax as float32
from roofline.models.jax._layers import TRANSFORMER, Make, attention_form
from roofline.models.jax._program import Inputs, Placement, Program, State, output_of
from roofline.models.jax._training import Loss, Parameters, first_state, training


def prepare(workload: Workload, changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The dimensions of `workload`, with JAX's matmul precision set as it asks.

    changes: dimensions to replace, such as {"dropout": 0.0} in a comparison of frameworks.
    Raises InputError for what cannot be run, MissingError where there is no such device.
    """
    dims = {**dimensions(workload), **(changes or {})}
    device_of(workload)
    set_precision(workload)
    return dims


def device_of(workload: Workload) -> jax.Device:
    """The device that `workload` runs on. Raises MissingError where JAX has none of its kind."""
    kind = "cpu" if workload.device == "cpu" else "gpu"
    try:
        return jax.devices(kind)[0]
    except RuntimeError as error:
        raise MissingError("JAX finds no GPU here: use --device cpu.") from error


def make(workload: Workload, kernel: nnx.Initializer | None = None) -> Make:
    """What makes the layers of `workload`, seeded, in the dtypes that its precision asks for.

    Under `mixed-*` weights stay float32 and every layer computes in the low precision, residual sums included, which
    is flax's convention: `torch.autocast` keeps the sums and the norms in float32.
    """
    asked = precision(workload)
    mixed = None if asked.mixed is None else jnp.dtype(asked.mixed)
    return Make(rngs=nnx.Rngs(0), dtype=mixed, param_dtype=jnp.dtype(asked.parameters), kernel=kernel)


# Precision


def set_precision(workload: Workload) -> None:
    """Sets JAX's default matmul precision for `--precision fp32|tf32`; the others touch nothing.

    Raises InputError for a precision that is unknown or that the device does not have.
    """
    if (arithmetic := precision(workload).float32) is not None:
        float32.set_arithmetic(arithmetic)


def precision_switches(device: jax.Device) -> dict[str, str]:
    """What XLA makes of a float32 contraction now: "ieee", or "tf32", which is its default on a GPU that has it."""
    arithmetic = float32.arithmetic(device)
    return {
        "float32 matmul (XLA)": arithmetic,
        "float32 convolution (XLA)": arithmetic,
        "jax_default_matmul_precision": str(jax.config.jax_default_matmul_precision),
    }


@contextmanager
def user_state_kept() -> Iterator[None]:
    """Restores, on leaving, what building and running a step changes in the process: the matmul precision."""
    with float32.kept():
        yield


# Steps


def inference(graph: nnx.GraphDef) -> Callable[[State, Parameters, Inputs], Array]:
    """One forward pass; its result is the network's output."""

    @jax.jit
    def infer(state: State, frozen: Parameters, inputs: Inputs) -> Array:
        return output_of(graph, state.parameters, frozen, None, inputs)

    return infer


def step(
    workload: Workload,
    dims: Mapping[str, Any],
    network: Callable[[Mapping[str, Any], Make], nnx.Module],
    *,
    inputs: Callable[[Array], Inputs],
    targets: Callable[[Array, Inputs], Array] | None = None,
    loss: Loss | None = None,
    inferring: Callable[[nnx.GraphDef], Callable[[State, Parameters, Inputs], Array]] = inference,
    kernel: nnx.Initializer | None = None,
    optimizer: Adam | Sgd = ADAMW,
    dropout: bool = False,
    learned: type[nnx.Param] = nnx.Param,
    switches: Mapping[str, str],
) -> Step:
    """The step that `workload` asks for, of the network called as `model(**inputs)`.

    inputs, targets: make the arrays from a random key; float32 or int32, placed and cast here.
    loss: (output, targets) -> scalar. Neither is needed where nothing is learnt.
    inferring: makes the jitted function of a step that learns nothing, where that is no plain forward pass.
    kernel: initial weights of matrices and tables; None: flax's own.
    dropout: whether the network drops anything, and then takes `rngs`.
    learned: the kind of parameters that training changes; the others are frozen.
    switches: what the model decided; for training, without optimizer, which is added here.
    """
    device, learns = device_of(workload), workload.mode == "train"
    with jax.default_device(device):
        model = network(dims, make(workload, kernel))
        one, other = jax.random.split(jax.random.key(0))
        given = inputs(one)
        wanted = targets(other, given) if learns and targets is not None else None
    graph, *weights = nnx.split(model, learned if learns else nnx.Param, nnx.Param)
    parameters, frozen = (jax.device_put(nnx.to_pure_dict(some), device) for some in weights)
    trainable = sum(array.size for array in jax.tree.leaves(parameters))
    place = Placement(device, waits=workload.input == "host" and workload.device != "cpu")
    cast = precision(workload).cast
    if learns and loss is not None:
        key = jax.device_put(jax.random.key(1), device) if dropout else None
        state = first_state(workload, parameters, optimizer, key)
        function, decided = training(workload, graph, loss, optimizer)
    else:
        state, function, decided = State(parameters), inferring(graph), {"donation": "off"}
    program = Program(
        function=function,
        graph=graph,
        state=state,
        inputs=place.stored({name: _cast(value, cast) for name, value in given.items()}),
        targets=None if wanted is None else place.stored(_cast(wanted, cast)),
        place=place,
        frozen=frozen,
    )
    return described(
        workload,
        dims,
        "jax",
        run=program.run,
        forward=program.forward if learns else program.run,
        model=program,
        parameters=trainable + sum(array.size for array in jax.tree.leaves(frozen)),
        trainable=trainable,
        switches={
            **switches,
            "jit": "on",
            "input": workload.input,
            **precision_switches(device),
            **({"random bits": jax.config.jax_default_prng_impl} if learns and dropout else {}),
            **decided,
        },
    )


def _cast(value: Array, dtype: Dtype | None) -> Array:
    return value.astype(dtype) if dtype is not None and jnp.issubdtype(value.dtype, jnp.floating) else value


# Classifiers of sequences


def classifier(
    network: Callable[[Mapping[str, Any], Make], nnx.Module],
    workload: Workload,
    changes: Mapping[str, Any] | None = None,
) -> Step:
    """One forward pass or one training step (cross entropy, AdamW) of a transformer that classifies sequences.

    changes: dimensions to replace.
    """
    dims = prepare(workload, changes)
    shape = (dims["batch"], dims["seq"])
    return step(
        workload,
        dims,
        network,
        kernel=TRANSFORMER,
        inputs=lambda key: {
            "input_ids": jax.random.randint(key, shape, 0, dims["vocabulary"], jnp.int32),
            "attention_mask": jnp.ones(shape, jnp.int32),
        },
        targets=lambda key, _: jax.random.randint(key, shape[:1], 0, dims["classes"], jnp.int32),
        loss=classification_loss,
        dropout=max(dims["dropout"], dims.get("head_dropout", 0.0)) > 0,
        switches=transformer_switches(workload, dims, attention=attention_form(workload, dims["dropout"])),
    )


def classification_loss(logits: Array, labels: Array) -> Array:
    """Mean cross entropy of logits (batch, classes) with class numbers (batch)."""
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
