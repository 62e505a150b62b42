"""The steps made of a Keras model and its batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from roofline.core.step import Step, Workload
from roofline.errors import InputError
from roofline.models._adam import ADAMW, Adam
from roofline.models._keras import backend
from roofline.models._keras.version import Version
from roofline.models._step import described

Arrays = Mapping[str, np.ndarray]

_JIT = {None: None, "on": True, "off": False}


def cross_entropy(keras: Any) -> Any:
    """Mean cross entropy of logits with class numbers."""
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True, name="loss")


def step(
    version: Version,
    workload: Workload,
    dims: Mapping[str, Any],
    model: Any,
    inputs: Arrays | np.ndarray,
    *,
    targets: np.ndarray,
    weights: np.ndarray | None = None,
    loss: Callable[[Any], Any] = cross_entropy,
    optimizer: Adam = ADAMW,
    switches: Mapping[str, str],
) -> Step:
    """The step that `workload` asks for, of `model` and one batch.

    inputs, targets: what the model's calls take; floating-point numbers in float32.
    weights: of the samples (or tokens) in the mean of the loss; None: all 1.
    loss: makes the loss from the Keras module.
    switches: what the model decided; for training, without optimizer, which is added here.
    Raises InputError where the model cannot be compiled as `jit=` asks.
    """
    train = workload.mode == "train"
    given = (version.optimizer(optimizer), loss(version.KERAS)) if train else (None, None)
    decided = {"jit": _compile(version, workload, model, *given)}
    x = _all_arriving(version, workload, inputs)

    def forward() -> object:
        return model.predict_on_batch(x)

    run = forward
    if train:
        batch = [arriving(version, workload, value) for value in (targets, weights) if value is not None]

        def run() -> object:
            return model.train_on_batch(x, *batch)

        decided |= version.optimizer_switches(model.optimizer)
    batches = tuple(value for value in (inputs, targets, weights) if value is not None)
    return _described(version, workload, dims, model, run, forward, {**switches, **decided}, batches)


def own_step(
    version: Version,
    workload: Workload,
    dims: Mapping[str, Any],
    model: Any,
    inputs: Arrays,
    called: Callable[[Any], object],
    *,
    switches: Mapping[str, str],
) -> Step:
    """A step that learns nothing and calls the model in its own way: `called(inputs)`; the rest is as in `step`."""
    decided = {"jit": _compile(version, workload, model, None, None)}
    x = _all_arriving(version, workload, inputs)

    def run() -> object:
        return called(x)

    return _described(version, workload, dims, model, run, run, {**switches, **decided})


def _described(
    version: Version,
    workload: Workload,
    dims: Mapping[str, Any],
    model: Any,
    run: Callable[[], object],
    forward: Callable[[], object],
    switches: Mapping[str, str],
    batches: tuple[Any, ...] | None = None,
) -> Step:
    return described(
        workload,
        dims,
        version.FOLDER,
        run=run,
        forward=forward,
        model=model,
        parameters=model.count_params(),
        trainable=sum(int(np.prod(variable.shape)) for variable in model.trainable_variables),
        switches={
            **switches,
            **version.switches(),
            "input": workload.input,
            **backend.float32_switches(version.KERAS.backend.backend(), workload),
        },
        batches=batches,
    )


def adam(kind: Callable[..., Any], asked: Adam) -> Any:
    """An optimizer of Keras's class for Adam or AdamW with these arguments.

    Given all, because Keras's defaults are others: weight decay 0.004, epsilon 1e-7. Keras adds epsilon before it
    corrects the bias of the second moment, so in step t it weighs 1/sqrt(1 - 0.999^t) of PyTorch's: 32 times as much
    in the first step, which is seen where a gradient is below 1e-6.
    """
    decay = {"weight_decay": asked.weight_decay} if asked.weight_decay else {}
    first, second = asked.betas
    return kind(learning_rate=asked.lr, beta_1=first, beta_2=second, epsilon=asked.eps, name="optimizer", **decay)


def inner(optimizer: Any) -> Any:
    """The optimizer itself, which loss scaling wraps."""
    return getattr(optimizer, "inner_optimizer", optimizer)


def argument_switches(optimizer: Any) -> dict[str, str]:
    """The optimizer and its arguments as Keras holds them, by the names that PyTorch has for them."""
    settings = inner(optimizer).get_config()
    return {
        "optimizer": type(inner(optimizer)).__name__,
        # Keras stores the rate in float32: 0.0010000000474974513.
        "optimizer lr": f"{settings['learning_rate']:.6g}",
        "optimizer betas": str((settings["beta_1"], settings["beta_2"])),
        "optimizer eps": str(settings["epsilon"]),
        "optimizer weight_decay": str(settings["weight_decay"] or 0),
        "optimizer amsgrad": str(settings["amsgrad"]),
    }


def scaler_switch(optimizer: Any) -> dict[str, str]:
    """Whether the loss is scaled."""
    return {"gradient scaler": "off" if inner(optimizer) is optimizer else "on"}


def _compile(version: Version, workload: Workload, model: Any, optimizer: Any, loss: Any) -> str:
    """Compiles the model that runs, and returns whether that is with its compiler: "on" or "off"."""
    asked = workload.options.get("jit")
    if asked not in _JIT:
        raise InputError(f"There is no jit={asked}: use jit=on or jit=off, or leave it out for Keras's default.")
    version.compiled(model, optimizer, loss, _JIT[asked])
    resolved = "on" if model.jit_compile else "off"
    if asked not in (None, resolved):
        raise InputError(f"Keras cannot run {workload.model} with jit={asked} here: leave the option out.")
    return resolved


def _all_arriving(version: Version, workload: Workload, inputs: Arrays | np.ndarray) -> Any:
    """The inputs as the model is given them, by name where it has several."""
    if isinstance(inputs, Mapping):
        return {name: arriving(version, workload, value) for name, value in inputs.items()}
    return arriving(version, workload, inputs)


def arriving(version: Version, workload: Workload, value: np.ndarray) -> Any:
    """What every step is given: a tensor on the device, its floating-point numbers in the dtype of the pure casts.

    With `--input host` the array itself, which Keras casts after it has copied it.
    """
    if workload.input == "host":
        return value
    policy = version.KERAS.mixed_precision.global_policy()
    return version.tensor(value, policy.variable_dtype if np.issubdtype(value.dtype, np.floating) else None)
