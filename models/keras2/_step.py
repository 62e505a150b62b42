"""What the models in Keras 2 share: TensorFlow's switches, and the steps made of a model and its batch."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from roofline.core.step import Step, Workload
from roofline.errors import InputError, MissingError
from roofline.models import dimensions, geometry

Arrays = Mapping[str, np.ndarray]

#: What `--precision` makes of Keras's dtype policy.
_POLICIES = {
    "bf16": "bfloat16",
    "fp16": "float16",
    "mixed-bf16": "mixed_bfloat16",
    "mixed-fp16": "mixed_float16",
}
_JIT = {None: None, "on": True, "off": False}
_TF32 = tf.config.experimental


def prepare(workload: Workload) -> dict[str, Any]:
    """The dimensions of `workload`, with the precision and the seed set as it asks.

    Keras draws the seeds of initializers from Python's generator, so that is what is seeded; the masks of dropout
    are others in every process.
    Raises InputError for what cannot be run, MissingError where there is no such device.
    """
    dims = dimensions(workload)
    found = bool(tf.config.list_physical_devices("GPU"))
    if workload.device == "cuda" and not found:
        raise MissingError("TensorFlow finds no CUDA device here: use --device cpu.")
    if workload.device == "cpu" and found:
        raise InputError("Keras runs on the GPU that it finds: set CUDA_VISIBLE_DEVICES= to use --device cpu.")
    if workload.mode == "train" and not workload.optimizer:
        raise InputError("Keras trains with train_on_batch, which always ends with the optimizer: drop --no-optimizer.")
    set_precision(workload)
    random.seed(0)
    return dims


def keras_nlp() -> ModuleType:
    """The KerasNLP library on Keras 2.

    Raises MissingError where it is not installed, InputError where it was set up for Keras 3.
    """
    try:
        import keras_nlp as library
    except ModuleNotFoundError as error:
        if error.name not in ("keras_nlp", "keras_core", "tree"):
            raise
        raise MissingError(
            f"This model is built from KerasNLP 0.8.2, of which {error.name} is not installed: "
            "run `pip install --no-deps keras-nlp==0.8.2 keras-core==0.1.7 dm-tree==0.1.10`."
        ) from error
    if not issubclass(library.models.BertBackbone, tf_keras.Model):
        raise InputError("KerasNLP runs on another Keras here: set TF_USE_LEGACY_KERAS=1 and install keras-nlp==0.8.2.")
    return library


def plain(task: tf_keras.Model, name: str) -> tf_keras.Model:
    """The model in a KerasNLP task.

    A task turns every batch over to a preprocessor by way of `tf.data` and cannot take a dict of arrays without one.
    """
    return tf_keras.Model(task.input, task.output, name=name)


def generator() -> np.random.Generator:
    """Where inputs and targets are drawn from: the same numbers in every run."""
    return np.random.default_rng(0)


# Precision


def set_precision(workload: Workload) -> None:
    """Sets the dtype policy, and for `--precision fp32|tf32` TensorFlow's TF32 switch; "default" touches neither.

    Raises InputError for a precision that is unknown or that the device does not have.
    """
    if workload.precision in _POLICIES:
        tf_keras.mixed_precision.set_global_policy(_POLICIES[workload.precision])
    elif workload.precision in ("fp32", "tf32"):
        if workload.precision == "tf32" and workload.device == "cpu":
            raise InputError("There is no TF32 on a CPU: use --precision fp32 or bf16.")
        _TF32.enable_tensor_float_32_execution(workload.precision == "tf32")
    elif workload.precision != "default":
        known = ", ".join(("default", "fp32", "tf32", *_POLICIES))
        raise InputError(f"There is no precision {workload.precision!r}: use --precision with one of {known}.")


@contextmanager
def user_state_kept() -> Iterator[None]:
    """Restores, on leaving, what building a step changes in the process.

    That is Keras's dtype policy, the state of Python's random generator and TensorFlow's TF32 switch.
    """
    policy = tf_keras.mixed_precision.global_policy()
    state, allowed = random.getstate(), _TF32.tensor_float_32_execution_enabled()
    try:
        yield
    finally:
        _TF32.enable_tensor_float_32_execution(allowed)
        random.setstate(state)
        tf_keras.mixed_precision.set_global_policy(policy)


# Parts of models


def gelu(form: str) -> Callable[[Any], Any]:
    """The GELU of a geometry: "erf" (exact) or "tanh" (the approximation)."""
    return {"erf": tf_keras.activations.gelu, "tanh": _gelu_tanh}[form]


def _gelu_tanh(x: Any) -> Any:
    return tf_keras.activations.gelu(x, approximate=True)


def set_gelu(backbone: tf_keras.Model, form: str) -> None:
    """Gives the FFN of every transformer layer of a KerasNLP backbone this GELU, whatever it was published with.

    A dense layer reads its activation whenever it is called, and a model that has not run yet has not been traced.
    """
    for layer in backbone.layers:
        if layer.name.startswith("transformer_layer_"):
            layer.activation = gelu(form)
            layer._feedforward_intermediate_dense.activation = layer.activation


# Steps


def cross_entropy() -> tf_keras.losses.Loss:
    """Mean cross entropy of logits with class numbers."""
    return tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True, name="loss")


def adamw() -> tf_keras.optimizers.Optimizer:
    """AdamW with PyTorch's defaults, on all parameters; Keras's own are weight decay 0.004 and epsilon 1e-7.

    Keras adds epsilon before it corrects the bias of the second moment, so in step t it weighs 1/sqrt(1 - 0.999^t)
    of PyTorch's: 32 times as much in the first step, which is seen where a gradient is below 1e-6.
    """
    return tf_keras.optimizers.AdamW(learning_rate=1e-3, weight_decay=1e-2, epsilon=1e-8, name="optimizer")


def adam(learning_rate: float = 1e-3) -> tf_keras.optimizers.Optimizer:
    """Adam with PyTorch's defaults; for epsilon see `adamw`."""
    return tf_keras.optimizers.Adam(learning_rate=learning_rate, epsilon=1e-8, name="optimizer")


def step(
    workload: Workload,
    dims: Mapping[str, Any],
    model: tf_keras.Model,
    inputs: Arrays | np.ndarray,
    *,
    targets: np.ndarray,
    weights: np.ndarray | None = None,
    loss: Callable[[], tf_keras.losses.Loss] = cross_entropy,
    optimizer: Callable[[], tf_keras.optimizers.Optimizer] = adamw,
    switches: Mapping[str, str],
) -> Step:
    """The step that `workload` asks for, of `model` and one batch.

    inputs, targets: what the model's calls take; floating-point numbers in float32.
    weights: of the samples (or tokens) in the mean of the loss; None: all 1.
    switches: what the model decided; for training, without loss and optimizer, which are added here.
    Raises InputError where the model cannot be compiled as `jit=` asks.
    """
    train = workload.mode == "train"
    jit = _compile(workload, model, loss() if train else None, optimizer() if train else None)
    x = tf.nest.map_structure(lambda value: _arriving(workload, value), inputs)

    def forward() -> object:
        return model.predict_on_batch(x)

    decided = {"jit": jit}
    run = forward
    if train:
        batch = [_arriving(workload, value) for value in (targets, weights) if value is not None]

        def run() -> object:
            return model.train_on_batch(x, *batch)

        decided |= _optimizer_switches(model.optimizer)
    size, seq = dims.get("batch"), dims.get("seq")
    allowed = _TF32.tensor_float_32_execution_enabled() and workload.device != "cpu"
    return Step(
        run=run,
        mode=workload.mode,
        model=model,
        forward=forward,
        parameters=model.count_params(),
        trainable=sum(int(np.prod(variable.shape)) for variable in model.trainable_variables),
        samples=size,
        tokens=None if size is None or seq is None else size * seq,
        blocks=geometry(workload.model).blocks["keras2"],
        batch=size,
        seq=seq,
        switches={
            **switches,
            "input": workload.input,
            "float32 matmul (TensorFlow)": "tf32" if allowed else "ieee",
            **decided,
        },
    )


def _compile(
    workload: Workload,
    model: tf_keras.Model,
    loss: tf_keras.losses.Loss | None,
    optimizer: tf_keras.optimizers.Optimizer | None,
) -> str:
    """Compiles the model that runs, and returns whether that is with XLA: "on" or "off" (a graph, the default)."""
    asked = workload.options.get("jit")
    if asked not in _JIT:
        raise InputError(f"There is no jit={asked}: use jit=on or jit=off, or leave it out for Keras's default.")
    model.compile(**({} if optimizer is None else {"optimizer": optimizer}), loss=loss, jit_compile=_JIT[asked])
    resolved = "on" if model.jit_compile else "off"
    if asked not in (None, resolved):
        raise InputError(f"Keras cannot run {workload.model} with jit={asked} here: leave the option out.")
    return resolved


def _optimizer_switches(optimizer: Any) -> dict[str, str]:
    """The optimizer and its arguments, by the names that PyTorch has for them."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    settings = inner.get_config()
    return {
        "optimizer": type(inner).__name__,
        # Keras stores the rate in float32: 0.0010000000474974513.
        "optimizer lr": f"{settings['learning_rate']:.6g}",
        "optimizer betas": str((settings["beta_1"], settings["beta_2"])),
        "optimizer eps": str(settings["epsilon"]),
        "optimizer weight_decay": str(settings["weight_decay"] or 0),
        "optimizer amsgrad": str(settings["amsgrad"]),
        # The updates of Keras 2 are compiled by XLA, each for itself, where there is a GPU.
        "optimizer jit": str(settings["jit_compile"]),
        "gradient scaler": "off" if inner is optimizer else "on",
    }


def _arriving(workload: Workload, value: np.ndarray) -> Any:
    """What every step is given: a tensor, its floating-point numbers in the dtype of the pure casts.

    With `--input host` the array itself, which Keras casts after it has copied it.
    """
    if workload.input == "host":
        return value
    dtype = tf_keras.mixed_precision.global_policy().variable_dtype if value.dtype == np.float32 else None
    return tf.convert_to_tensor(value, dtype=dtype)
