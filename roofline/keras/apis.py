"""Time Keras's `fit` and `predict` over `tf.data`, as the Keras 3 benchmark timed them (`benchmark/keras_utils.py`).

The same code serves Keras 3, on each engine, and Keras 2.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from roofline.core.schema import Api
from roofline.core.step import Step
from roofline.errors import InputError, MissingError
from roofline.recording.backend import TimedApi
from roofline.timing.loop import Clock, Waits


def apis(library: str) -> Mapping[str, TimedApi]:
    """Return `Backend.apis` for models in `library`: "keras" or "tf_keras"."""
    return {name: partial(_time_api, library, name) for name in ("fit", "predict")}


def _time_api(library: str, name: str, step: Step, steps: int, cached: bool) -> Api:
    """Time `fit` or `predict` of `steps` + 1 batches, without the first [s each].

    cached: see `_dataset`. Raises MissingError without TensorFlow, whose `tf.data` feeds every engine.
    """
    keras, tensorflow = import_module(library), _tensorflow()
    with _on_the_host(keras, tensorflow):
        data = _dataset(tensorflow, step, steps + 1, cached)
    clock, waits = Clock(), Waits()
    with _time_batches(type(iter(data)), waits):
        getattr(step.model, name)(data, callbacks=[_callback(keras, tensorflow, clock)])
    waiting = waits.per_step(clock)
    return Api(
        name=name,
        steps=clock.steps,
        data="tf.data",
        waiting=waiting,
        alone=_reading_time(data, steps) if waiting is None else None,
    )


def _tensorflow() -> ModuleType:
    try:
        import tensorflow
    except ModuleNotFoundError as error:
        if error.name != "tensorflow":
            raise
        raise MissingError(
            "tf.data feeds it, and TensorFlow is not installed: run `pip install 'roofline[tensorflow]'`"
        ) from None
    module: ModuleType = tensorflow
    return module


def _dataset(tensorflow: ModuleType, step: Step, batches: int, cached: bool) -> Any:
    """Make a `tf.data` dataset of `batches` batches, as the benchmark did.

    cached: for texts, repeat one batch and cache the batches in memory. Else, for images, build a new batch in every
    step from one random sample in float64, as numpy draws it. For `predict` it has inputs only.
    """
    if step.batches is None or step.batch is None:
        raise InputError("the model does not say what it is fed")
    arrays = step.batches if step.mode == "train" else step.batches[0]
    slices = tensorflow.data.Dataset.from_tensor_slices
    if not cached:
        sample = tensorflow.nest.map_structure(_sample, arrays)
        return slices(sample).repeat(batches * step.batch).batch(step.batch)
    dataset = slices(arrays).repeat().batch(step.batch).take(batches).cache()
    for _ in dataset:  # the cache is complete when all of it was read once
        pass
    return dataset


def _sample(values: np.ndarray) -> np.ndarray:
    first = values[:1]
    return first.astype(np.float64) if np.issubdtype(first.dtype, np.floating) else first


@contextmanager
def _on_the_host(keras: ModuleType, tensorflow: ModuleType) -> Iterator[None]:
    """Keep data of `tf.data` in the host's memory; next to another engine TensorFlow takes none of the GPU's."""
    if keras.backend.backend() != "tensorflow":
        with suppress(RuntimeError):  # it was loaded and has found its devices
            tensorflow.config.set_visible_devices([], "GPU")
    with tensorflow.device("CPU"):
        yield


def _callback(keras: Any, tensorflow: Any, clock: Clock) -> Any:
    """Make the benchmark's clock, a callback: from the begin of batch 1 to the end of the last one.

    Keras makes the logs of `fit` numbers for such a callback, and so waits for the step. It passes the results of
    `predict` before the device has computed them, so the benchmark's clock stopped before the work did: this callback
    fetches them first, as the bare step does.
    """
    fetch = keras.ops.convert_to_numpy if hasattr(keras, "ops") else np.asarray

    class Callback(keras.callbacks.Callback):  # type: ignore[misc]
        def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
            clock.begin(batch)

        def on_train_batch_end(self, batch: int, logs: object = None) -> None:
            clock.end(batch)

        def on_predict_batch_begin(self, batch: int, logs: object = None) -> None:
            clock.begin(batch)

        def on_predict_batch_end(self, batch: int, logs: object = None) -> None:
            for result in tensorflow.nest.flatten(logs):
                fetch(result)
            clock.end(batch)

    return Callback()


@contextmanager
def _time_batches(iterator: type[Any], waits: Waits) -> Iterator[None]:
    """Time each batch that Python takes from a `tf.data` iterator while the context is active.

    Keras on PyTorch and on JAX takes batches so; on TensorFlow a compiled step does, and no batch is timed.
    """
    following = iterator.__next__

    def next_batch(self: Any) -> object:
        return waits.timed(partial(following, self))

    iterator.__next__ = next_batch
    try:
        yield
    finally:
        iterator.__next__ = following


def _reading_time(data: Any, steps: int) -> float:
    """Time the reading of a batch without a model [s], the mean without the first one."""
    batches = iter(data)
    next(batches)
    began = time.perf_counter()
    for _ in range(steps):
        next(batches)
    return (time.perf_counter() - began) / steps
