"""What Keras computes on: the device, the random state and the float32 switches of PyTorch, JAX or TensorFlow.

A backend is "torch", "jax" or "tensorflow", which Keras 2 always runs on.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from importlib import import_module

from roofline.core.step import Workload
from roofline.models._precision import Arithmetic


def finds_gpu(backend: str) -> bool:
    """Whether the backend would put a model on a GPU."""
    if backend == "torch":
        import torch

        return torch.cuda.is_available()
    if backend == "jax":
        import jax

        return bool(jax.default_backend() == "gpu")
    import tensorflow

    return bool(tensorflow.config.list_physical_devices("GPU"))


def set_arithmetic(backend: str, arithmetic: Arithmetic) -> None:
    """Has the backend compute float32 contractions so. Raises InputError where the GPU has no TF32."""
    import_module(f"roofline.models.float32.{backend}").set_arithmetic(arithmetic)


def switches_kept(backend: str) -> AbstractContextManager[None]:
    """Puts the backend's float32 switches back on leaving."""
    kept: AbstractContextManager[None] = import_module(f"roofline.models.float32.{backend}").kept()
    return kept


def float32_switches(backend: str, workload: Workload) -> dict[str, str]:
    """What the backend makes of a float32 contraction now, in the words of the native models."""
    if backend == "torch":
        from roofline.models.float32 import torch as torch_float32

        return torch_float32.switches()
    if backend == "jax":
        import jax

        from roofline.models.float32 import jax as jax_float32

        arithmetic = jax_float32.arithmetic(jax.devices("cpu" if workload.device == "cpu" else "gpu")[0])
        return {"float32 matmul (XLA)": arithmetic, "float32 convolution (XLA)": arithmetic}
    from roofline.models.float32 import tensorflow as tensorflow_float32

    tf32 = tensorflow_float32.allows_tf32() and workload.device != "cpu"
    return {"float32 matmul (TensorFlow)": "tf32" if tf32 else "ieee"}


def seed(backend: str) -> None:
    """Seeds PyTorch, from which dropout draws there; Keras draws its own on the others."""
    if backend == "torch":
        import torch

        torch.manual_seed(0)


def random_kept(backend: str) -> AbstractContextManager[None]:
    """Restores the random state of PyTorch, on the CPU and the current GPU; nothing on the other backends."""
    if backend != "torch":
        return nullcontext()
    import torch

    return torch.random.fork_rng([torch.cuda.current_device()] if torch.cuda.is_initialized() else [])
