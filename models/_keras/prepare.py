"""What comes before a model in Keras is built: checks, precision and seeds; and what puts them back."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np

from roofline.core.step import Workload
from roofline.errors import InputError, MissingError
from roofline.models import dimensions
from roofline.models._keras import backend
from roofline.models._keras.version import Version
from roofline.models._precision import precision


def prepare(version: Version, workload: Workload) -> dict[str, Any]:
    """The dimensions of `workload`, with the precision and the seed set as it asks.

    Keras draws the seeds of initializers and dropouts from Python's generator, so that is what is seeded; on PyTorch
    also PyTorch's own. In Keras 2 the masks of dropout are others in every process all the same.
    Raises InputError for what cannot be run, MissingError where there is no such device.
    """
    dims = dimensions(workload)
    engine = version.KERAS.backend.backend()
    _check_device(engine, workload)
    if workload.mode == "train" and not workload.optimizer:
        raise InputError("Keras trains with train_on_batch, which always ends with the optimizer: drop --no-optimizer.")
    _set_precision(version, engine, workload)
    random.seed(0)
    backend.seed(engine)
    return dims


def generator() -> np.random.Generator:
    """Where inputs and targets are drawn from: the same numbers in every run."""
    return np.random.default_rng(0)


def _check_device(engine: str, workload: Workload) -> None:
    """Keras takes the accelerator that its backend sees, and the processor only where there is none."""
    found = backend.finds_gpu(engine)
    if workload.device == "cuda" and not found:
        raise MissingError(f"Keras on {engine} finds no CUDA device here: use --device cpu.")
    if workload.device == "cpu" and found:
        raise InputError("Keras runs on the GPU that it finds: set CUDA_VISIBLE_DEVICES= to use --device cpu.")


def _set_precision(version: Version, engine: str, workload: Workload) -> None:
    """Sets the dtype policy, and for `--precision fp32|tf32` the backend's float32 switches; "default" touches none."""
    asked = precision(workload)
    policy = f"mixed_{asked.mixed}" if asked.mixed else asked.cast
    if policy is not None:
        version.KERAS.mixed_precision.set_global_policy(policy)
    if asked.float32 is not None:
        backend.set_arithmetic(engine, asked.float32)


@contextmanager
def user_state_kept(keras: ModuleType) -> Iterator[None]:
    """Restores, on leaving, what building a step changes in the process.

    That is Keras's dtype policy, the state of Python's random generator (and of PyTorch's, where that is the backend)
    and the backend's float32 switches.
    """
    engine, policies = keras.backend.backend(), keras.mixed_precision
    policy, state = policies.global_policy(), random.getstate()
    with backend.random_kept(engine), backend.switches_kept(engine):
        try:
            yield
        finally:
            random.setstate(state)
            policies.set_global_policy(policy)
