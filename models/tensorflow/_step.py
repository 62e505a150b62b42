"""What the models in TensorFlow share: precision, placement, and the steps made of a network and its inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from roofline.core.step import Step, Workload
from roofline.errors import InputError, MissingError
from roofline.models import dimensions
from roofline.models._adam import ADAMW, Adam
from roofline.models._precision import precision
from roofline.models._step import described, transformer_switches
from roofline.models.float32 import tensorflow as float32
from roofline.models.tensorflow._layers import Dtypes, scoped, seed
from roofline.models.tensorflow._optimizers import Optimizer

Inputs = Mapping[str, tf.Tensor]
Loss = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]

_JIT = ("off", "compile", "autocluster")
_DEVICES = {"cpu": "/CPU:0", "cuda": "/GPU:0"}


def prepare(workload: Workload) -> dict[str, Any]:
    """The dimensions of `workload`, with TensorFlow's switches set as it asks.

    Raises InputError for what cannot be run, MissingError where there is no such device.
    """
    dims = dimensions(workload)
    if workload.mode == "generate":
        raise InputError("The models in native TensorFlow generate nothing yet: use keras-tensorflow, or --mode infer.")
    if workload.device == "cuda" and not tf.config.list_physical_devices("GPU"):
        raise MissingError("TensorFlow finds no GPU here: use --device cpu, or install tensorflow[and-cuda].")
    set_precision(workload)
    if _jit(workload) == "autocluster":
        tf.config.optimizer.set_jit("autoclustering")
    return dims


def _jit(workload: Workload) -> str:
    chosen = workload.options.get("jit", "off")
    if chosen not in _JIT:
        raise InputError(f"TensorFlow has no jit {chosen!r}: use one of {', '.join(_JIT)}.")
    return chosen


# Precision


def set_precision(workload: Workload) -> None:
    """Sets the TF32 switch of the process for `--precision fp32|tf32`; the others do not touch it.

    Raises InputError for a precision that is unknown or that cannot be had.
    """
    asked = precision(workload)
    if asked.scales_loss and workload.mode == "train":
        raise InputError(
            "Training in mixed fp16 needs loss scaling, which this model does not have: use --precision mixed-bf16."
        )
    if asked.float32 is not None:
        float32.set_arithmetic(asked.float32)


def precision_switches(workload: Workload) -> dict[str, str]:
    """What TensorFlow makes of a float32 contraction now: "ieee" or "tf32"."""
    tf32 = workload.device != "cpu" and float32.allows_tf32() and float32.has_tf32()
    return {"float32 matmul (TensorFlow)": "tf32" if tf32 else "ieee"}


def dtypes(workload: Workload) -> Dtypes:
    """What `workload`'s precision keeps parameters in and computes in."""
    asked = precision(workload)
    return Dtypes(tf.as_dtype(asked.parameters), tf.as_dtype(asked.compute))


@contextmanager
def user_state_kept() -> Iterator[None]:
    """Restores, on leaving, what building a step changes in the process: TF32 and autoclustering."""
    jit = tf.config.optimizer.get_jit()
    with float32.kept():
        try:
            yield
        finally:
            tf.config.optimizer.set_jit(jit or False)


# Steps


@dataclass(frozen=True, slots=True)
class Launch:
    """A tf.function and what it is called with in every step; returns its output tensors, perhaps still computing."""

    function: Any
    arguments: tuple[Any, ...]

    def __call__(self) -> Any:
        """One step."""
        return self.function(*self.arguments)


@contextmanager
def placed(workload: Workload) -> Iterator[None]:
    """While active, variables and tensors are made on the workload's device."""
    with tf.device(_DEVICES[workload.device]):
        yield


def step(
    workload: Workload,
    dims: Mapping[str, Any],
    network: Callable[[Mapping[str, Any], Dtypes], tf.Module],
    inputs: Inputs,
    *,
    targets: tf.Tensor,
    loss: Loss,
    optimizer: Adam = ADAMW,
    switches: Mapping[str, str],
) -> Step:
    """The step that `workload` asks for, of `network(...)` called as `model(**inputs, training=...)`.

    inputs, targets: float32 or integer; placed and cast here. Integers are int64: a tf.function keeps int32 arguments
    in host memory.
    loss: (output, targets) -> scalar.
    switches: what the model decided; for training, without optimizer, which is added here.
    """
    with placed(workload):
        model = network(dims, dtypes(workload))
        arguments: tuple[Any, ...] = ({name: _arriving(workload, value) for name, value in inputs.items()},)
        forward = Launch(_forward(workload, model), arguments)
        run, decided = forward, {}
        if workload.mode == "train":
            arguments = (*arguments, _arriving(workload, targets))
            updates = Optimizer(optimizer, model.trainable_variables) if workload.optimizer else None
            run = Launch(_training(workload, model, loss, updates), arguments)
            decided = _optimizer_switches(updates)
    sizes = [variable.shape.num_elements() for variable in model.trainable_variables]
    return described(
        workload,
        dims,
        "tensorflow",
        run=run,
        forward=forward,
        model=model,
        parameters=sum(sizes),
        trainable=sum(sizes),
        switches={
            **switches,
            "input": workload.input,
            "jit": _jit(workload),
            **precision_switches(workload),
            **decided,
        },
    )


def _forward(workload: Workload, model: tf.Module) -> Any:
    """The forward pass: (inputs) -> output."""

    def forward(inputs: Inputs) -> tf.Tensor:
        with placed(workload):
            return model(**inputs, training=workload.mode == "train")

    return _traced(workload, forward)


def _training(workload: Workload, model: tf.Module, loss: Loss, updates: Optimizer | None) -> Any:
    """One training step: (inputs, targets) -> the loss; without optimizer, (the loss, the gradients)."""
    variables = model.trainable_variables

    def train(inputs: Inputs, targets: tf.Tensor) -> Any:
        with placed(workload):
            with tf.GradientTape() as tape:
                output = model(**inputs, training=True)
                with scoped("loss"):
                    value = loss(tf.cast(output, tf.float32), targets)
            with scoped("gradient_tape"):
                gradients = tape.gradient(value, variables)
                gradients = [_dense(*pair) for pair in zip(gradients, variables, strict=True)]
            if updates is None:
                return value, gradients
            updates.apply(gradients)
            return value

    return _traced(workload, train)


def _traced(workload: Workload, function: Callable[..., Any]) -> Any:
    """`function` as a tf.function. Not compiled, jit_compile is unset: it is False that would forbid clustering."""
    return tf.function(function, jit_compile=True if _jit(workload) == "compile" else None, autograph=False)


def _dense(gradient: tf.Tensor | tf.IndexedSlices, variable: tf.Variable) -> tf.Tensor:
    """The gradient as a tensor: torch's of a table is dense, and its AdamW decays and moves all rows in every step."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    with scoped(f"gradient_tape/{variable.name.rpartition('/')[0]}"):
        return tf.math.unsorted_segment_sum(gradient.values, gradient.indices, variable.shape[0])


def _optimizer_switches(updates: Optimizer | None) -> dict[str, str]:
    """The optimizer, its arguments and how it runs."""
    if updates is None:
        return {"optimizer": "none", "gradient scaler": "off"}
    fused = all(variable.dtype == tf.float32 for variable in updates.learned)
    return {
        **updates.adam.switches(),
        "optimizer kernel": "ResourceApplyAdam" if fused else "written out",
        "gradient scaler": "off",
    }


def _arriving(workload: Workload, value: tf.Tensor) -> Any:
    """`value` as every step gets it: a tensor on the device, or with `--input host` a numpy array.

    Floating-point numbers are in the dtype that is computed in.
    """
    value = tf.convert_to_tensor(value)
    if value.dtype.is_floating:
        value = tf.cast(value, dtypes(workload).compute)
    return value.numpy() if workload.input == "host" else tf.identity(value)


# Inputs


def numbers(name: str, below: int, shape: Sequence[int]) -> tf.Tensor:
    """Random whole numbers from 0 to below - 1, int64, that follow from `name`."""
    return tf.random.stateless_uniform(shape, [1, seed(name)], 0, below, tf.int64)


def gaussian(name: str, shape: Sequence[int]) -> tf.Tensor:
    """Random numbers of mean 0 and standard deviation 1 that follow from `name`."""
    return tf.random.stateless_normal(shape, [1, seed(name)])


def classification_loss(output: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Mean cross entropy of logits (batch, classes) with class numbers (batch)."""
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, output))


def classifier(network: Callable[[Mapping[str, Any], Dtypes], tf.Module], workload: Workload) -> Step:
    """One forward pass or one training step (cross entropy, AdamW) of a transformer that classifies sequences."""
    dims = prepare(workload)
    shape = (dims["batch"], dims["seq"])
    return step(
        workload,
        dims,
        network,
        {
            "input_ids": numbers("tokens", dims["vocabulary"], shape),
            "attention_mask": tf.ones(shape, tf.int64),
        },
        targets=numbers("labels", dims["classes"], shape[:1]),
        loss=classification_loss,
        switches=transformer_switches(workload, dims, attention="written out"),
    )
