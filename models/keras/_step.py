"""What the models in Keras 3 share: the backend's switches, and the steps made of a model and its batch."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import ModuleType
from typing import Any, Literal

import keras
import numpy as np

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
_JIT: dict[str | None, bool | Literal["auto"]] = {None: "auto", "on": True, "off": False}


def prepare(workload: Workload) -> dict[str, Any]:
    """The dimensions of `workload`, with the precision and the seed set as it asks.

    Keras draws the seeds of initializers and dropouts from Python's generator, so that is what is seeded; on PyTorch
    also PyTorch's own, from which dropout draws there.
    Raises InputError for what cannot be run, MissingError where there is no such device.
    """
    dims = dimensions(workload)
    _check_device(workload)
    if workload.mode == "train" and not workload.optimizer:
        raise InputError("Keras trains with train_on_batch, which always ends with the optimizer: drop --no-optimizer.")
    set_precision(workload)
    random.seed(0)
    if keras.backend.backend() == "torch":
        import torch

        torch.manual_seed(0)
    return dims


def keras_hub() -> ModuleType:
    """The keras_hub library. Raises MissingError where it is not installed."""
    try:
        import keras_hub as library
    except ModuleNotFoundError as error:
        if error.name != "keras_hub":
            raise
        raise MissingError(
            "This model is built from the keras_hub library, which is not installed: "
            "run `pip install 'roofline[keras]'`."
        ) from error
    return library


def generator() -> np.random.Generator:
    """Where inputs and targets are drawn from: the same numbers in every run."""
    return np.random.default_rng(0)


def _check_device(workload: Workload) -> None:
    """Keras takes the accelerator that its backend sees, and the processor only where there is none."""
    found = _on_gpu()
    if workload.device == "cuda" and not found:
        raise MissingError(f"Keras on {keras.backend.backend()} finds no CUDA device here: use --device cpu.")
    if workload.device == "cpu" and found:
        raise InputError("Keras runs on the GPU that it finds: set CUDA_VISIBLE_DEVICES= to use --device cpu.")


def _on_gpu() -> bool:
    """Whether the backend would put a model on a GPU."""
    backend = keras.backend.backend()
    if backend == "torch":
        import torch

        return torch.cuda.is_available()
    if backend == "jax":
        import jax

        return jax.default_backend() == "gpu"
    import tensorflow

    return bool(tensorflow.config.list_physical_devices("GPU"))


# Precision


def set_precision(workload: Workload) -> None:
    """Sets the dtype policy, and for `--precision fp32|tf32` the backend's float32 switches; "default" touches none.

    Raises InputError for a precision that is unknown or that the device does not have.
    """
    if workload.precision in _POLICIES:
        keras.config.set_dtype_policy(_POLICIES[workload.precision])
    elif workload.precision in ("fp32", "tf32"):
        if workload.precision == "tf32" and workload.device == "cpu":
            raise InputError("There is no TF32 on a CPU: use --precision fp32 or bf16.")
        _set_float32(workload.precision)
    elif workload.precision != "default":
        known = ", ".join(("default", "fp32", "tf32", *_POLICIES))
        raise InputError(f"There is no precision {workload.precision!r}: use --precision with one of {known}.")


def _set_float32(precision: str) -> None:
    """Makes the backend compute float32 contractions in IEEE float32, or in TF32."""
    backend = keras.backend.backend()
    if backend == "torch":
        import torch

        torch.set_float32_matmul_precision("highest" if precision == "fp32" else "high")
        torch.backends.cudnn.allow_tf32 = precision == "tf32"
        if precision == "fp32":
            # The older switches leave an op without a setting of its own to inherit a process-wide "tf32".
            for op in _torch_float32_ops().values():
                op.fp32_precision = "ieee"
    elif backend == "jax":
        import jax

        jax.config.update("jax_default_matmul_precision", "highest" if precision == "fp32" else "tensorfloat32")
    else:
        import tensorflow

        tensorflow.config.experimental.enable_tensor_float_32_execution(precision == "tf32")


def precision_switches(workload: Workload) -> dict[str, str]:
    """What the backend makes of a float32 contraction now, in the words of the native models."""
    backend = keras.backend.backend()
    if backend == "torch":
        return {f"float32 {name}": op.fp32_precision for name, op in _torch_float32_ops().items()}
    if backend == "jax":
        import jax

        asked = jax.config.jax_default_matmul_precision
        return {"float32 matmul (XLA)": "ieee" if workload.device == "cpu" else str(asked or "default")}
    import tensorflow

    allowed = tensorflow.config.experimental.tensor_float_32_execution_enabled()
    return {"float32 matmul (TensorFlow)": "tf32" if allowed and workload.device != "cpu" else "ieee"}


def _torch_float32_ops() -> dict[str, Any]:
    """The ops of PyTorch that have a float32 precision of their own, as its settable objects."""
    from torch import backends

    return {
        "matmul (cuBLAS)": backends.cuda.matmul,
        "convolution (cuDNN)": backends.cudnn.conv,
        "rnn (cuDNN)": backends.cudnn.rnn,
        "matmul (oneDNN)": backends.mkldnn.matmul,
        "convolution (oneDNN)": backends.mkldnn.conv,
        "rnn (oneDNN)": backends.mkldnn.rnn,
    }


@contextmanager
def user_state_kept() -> Iterator[None]:
    """Restores, on leaving, what building a step changes in the process.

    That is Keras's dtype policy, the state of Python's random generator (and of PyTorch's, where that is the backend)
    and the backend's float32 switches.
    """
    policy, state, restore = keras.config.dtype_policy(), random.getstate(), _float32_restorer()
    with _torch_random_kept():
        try:
            yield
        finally:
            restore()
            random.setstate(state)
            keras.config.set_dtype_policy(policy)


def _torch_random_kept() -> AbstractContextManager[None]:
    """Restores the random state of PyTorch, on the CPU and the current GPU; nothing on the other backends."""
    if keras.backend.backend() != "torch":
        return nullcontext()
    import torch

    return torch.random.fork_rng([torch.cuda.current_device()] if torch.cuda.is_initialized() else [])


def _float32_restorer() -> Callable[[], None]:
    """What puts the backend's float32 switches back to what they are now."""
    backend = keras.backend.backend()
    if backend == "jax":
        import jax

        asked = jax.config.jax_default_matmul_precision
        return lambda: jax.config.update("jax_default_matmul_precision", asked)
    if backend == "tensorflow":
        from tensorflow.config import experimental

        allowed = experimental.tensor_float_32_execution_enabled()
        return lambda: experimental.enable_tensor_float_32_execution(allowed)

    import torch

    ops = {op: op.fp32_precision for op in _torch_float32_ops().values()}
    legacy: tuple[str, bool] | None
    try:
        legacy = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    except RuntimeError:  # where the user set the newer switches, reading the older ones raises
        legacy = None

    def restore() -> None:
        # The older switches write the newer ones, so they go first.
        if legacy is not None:
            torch.set_float32_matmul_precision(legacy[0])
            torch.backends.cudnn.allow_tf32 = legacy[1]
        for op, precision in ops.items():
            op.fp32_precision = precision

    return restore


# Parts of models


def gelu(form: str) -> Callable[[Any], Any]:
    """The GELU of a geometry: "erf" (exact) or "tanh" (the approximation)."""
    return {"erf": keras.activations.gelu, "tanh": _gelu_tanh}[form]


def _gelu_tanh(x: Any) -> Any:
    return keras.activations.gelu(x, approximate=True)


def set_gelu(backbone: keras.Model, form: str) -> None:
    """Gives the FFN of every transformer layer of a keras_hub backbone this GELU, whatever it was published with.

    A dense layer reads its activation whenever it is called, and a model that has not run yet has not been traced.
    """
    for layer in backbone.transformer_layers:
        layer.activation = gelu(form)
        layer._feedforward_intermediate_dense.activation = layer.activation


def attention(dropout: float) -> str:
    """How Keras's MultiHeadAttention computes, which the dropout rate that it was made with decides, in inference too.

    With a rate above 0 it writes attention out, softmax(QK^T/sqrt(d) + mask)V by two einsums; else it calls
    `keras.ops.dot_product_attention`, which PyTorch and JAX answer with a function of their own.
    """
    if dropout > 0:
        return "written out"
    return {"torch": "sdpa", "jax": "dot_product_attention"}.get(keras.backend.backend(), "written out")


# Steps


def cross_entropy() -> keras.losses.Loss:
    """Mean cross entropy of logits with class numbers."""
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True, name="loss")


class AdamW(keras.optimizers.AdamW):
    """Keras's AdamW, with embedding gradients added up by token before they are squared.

    For TensorFlow, where the gradient of an embedding is a list of rows, one for each token of the batch. Keras
    squares the rows of a token that occurs several times one by one, so that its second moment, and its update, is
    another than on the other backends, and makes the rows a table only after that, twice. Here they are one at once.
    """

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Updates one variable."""
        import tensorflow

        super().update_step(tensorflow.convert_to_tensor(gradient), variable, learning_rate)


def adamw() -> keras.optimizers.Optimizer:
    """AdamW with PyTorch's defaults, on all parameters; Keras's own are weight decay 0.004 and epsilon 1e-7.

    Keras adds epsilon before it corrects the bias of the second moment, so in step t it weighs 1/sqrt(1 - 0.999^t)
    of PyTorch's: 32 times as much in the first step, which is seen where a gradient is below 1e-6.
    """
    # On PyTorch, Keras puts another class, which updates all parameters at once, in the place of its own only.
    kind = AdamW if keras.backend.backend() == "tensorflow" else keras.optimizers.AdamW
    return kind(learning_rate=1e-3, weight_decay=1e-2, epsilon=1e-8, name="optimizer")


def adam(learning_rate: float = 1e-3) -> keras.optimizers.Optimizer:
    """Adam with PyTorch's defaults; for epsilon see `adamw`."""
    return keras.optimizers.Adam(learning_rate=learning_rate, epsilon=1e-8, name="optimizer")


def step(
    workload: Workload,
    dims: Mapping[str, Any],
    model: keras.Model,
    inputs: Arrays | np.ndarray,
    *,
    targets: np.ndarray,
    weights: np.ndarray | None = None,
    loss: Callable[[], keras.losses.Loss] = cross_entropy,
    optimizer: Callable[[], keras.optimizers.Optimizer] = adamw,
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
    x = {name: _arriving(workload, value) for name, value in inputs.items()} if isinstance(inputs, Mapping) else None
    x = _arriving(workload, inputs) if x is None else x

    def forward() -> object:
        return model.predict_on_batch(x)

    decided = {"jit": jit, "keras backend": keras.backend.backend()}
    run = forward
    if train:
        batch = [_arriving(workload, value) for value in (targets, weights) if value is not None]

        def run() -> object:
            return model.train_on_batch(x, *batch)

        decided |= _optimizer_switches(model.optimizer)
    size, seq = dims.get("batch"), dims.get("seq")
    return Step(
        run=run,
        mode=workload.mode,
        model=model,
        forward=forward,
        parameters=model.count_params(),
        trainable=sum(int(np.prod(variable.shape)) for variable in model.trainable_variables),
        samples=size,
        tokens=None if size is None or seq is None else size * seq,
        blocks=geometry(workload.model).blocks["keras"],
        batch=size,
        seq=seq,
        switches={**switches, "input": workload.input, **precision_switches(workload), **decided},
    )


def _compile(
    workload: Workload,
    model: keras.Model,
    loss: keras.losses.Loss | None,
    optimizer: keras.optimizers.Optimizer | None,
) -> str:
    """Compiles the model that runs, and returns whether that is with its compiler: "on" or "off".

    No metrics: the published tasks of keras_hub would add an accuracy, which native training loops do not compute.
    """
    asked = workload.options.get("jit")
    if asked not in _JIT:
        raise InputError(f"There is no jit={asked}: use jit=on or jit=off, or leave it out for Keras's default.")
    model.compile(optimizer=optimizer, loss=loss, metrics=None, weighted_metrics=None, jit_compile=_JIT[asked])
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
        "gradient scaler": "off" if inner is optimizer else "on",
        # On PyTorch, Keras updates all parameters with list ops; elsewhere one by one.
        "optimizer foreach": str(keras.backend.backend() == "torch"),
    }


def _arriving(workload: Workload, value: np.ndarray) -> Any:
    """What every step is given: a tensor on the device, its floating-point numbers in the dtype of the pure casts.

    With `--input host` the array itself, which Keras casts after it has copied it.
    """
    if workload.input == "host":
        return value
    dtype = keras.config.dtype_policy().variable_dtype if np.issubdtype(value.dtype, np.floating) else None
    return keras.ops.convert_to_tensor(value, dtype=dtype)
