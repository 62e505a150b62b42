"""Keras's `fit` and `predict` over `tf.data`, timed as the Keras 3 benchmark timed them (`benchmark/keras_utils.py`).

What is the same in Keras 3, on each engine, and in Keras 2.
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
    """What `Backend.apis` is of models in `library`: "keras" or "tf_keras"."""
    return {name: partial(_timed, library, name) for name in ("fit", "predict")}


def _timed(library: str, name: str, step: Step, steps: int, cached: bool) -> Api:
    """`fit` or `predict` of `steps` + 1 batches; the seconds of each but the first.

    cached: see `_dataset`. Raises MissingError without TensorFlow, whose `tf.data` feeds every engine.
    """
    keras, tensorflow = import_module(library), _tensorflow()
    with _on_the_host(keras, tensorflow):
        data = _dataset(tensorflow, step, steps + 1, cached)
    clock, waits = Clock(), Waits()
    with _seen(type(iter(data)), waits):
        getattr(step.model, name)(data, callbacks=[_callback(keras, tensorflow, clock)])
    waiting = waits.per_step(clock)
    return Api(
        name=name,
        steps=clock.steps,
        data="tf.data",
        waiting=waiting,
        alone=_alone(data, steps) if waiting is None else None,
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
    found: ModuleType = tensorflow
    return found


def _dataset(tensorflow: ModuleType, step: Step, batches: int, cached: bool) -> Any:
    """`tf.data` of so many batches as the benchmark made them.

    cached: of texts, whose one batch is repeated and kept in memory as batches. Otherwise of images: one random sample
    in float64, as numpy draws it, is put together to a new batch in every step. `predict` is given inputs alone.
    """
    if step.batches is None or step.batch is None:
        raise InputError("the model does not say what it is fed")
    given = step.batches if step.mode == "train" else step.batches[0]
    slices = tensorflow.data.Dataset.from_tensor_slices
    if not cached:
        sample = tensorflow.nest.map_structure(_sample, given)
        return slices(sample).repeat(batches * step.batch).batch(step.batch)
    made = slices(given).repeat().batch(step.batch).take(batches).cache()
    for _ in made:  # what is cached is there when all of it was read once
        pass
    return made


def _sample(values: np.ndarray) -> np.ndarray:
    first = values[:1]
    return first.astype(np.float64) if np.issubdtype(first.dtype, np.floating) else first


@contextmanager
def _on_the_host(keras: ModuleType, tensorflow: ModuleType) -> Iterator[None]:
    """Data of `tf.data` lies in the host's memory; beside another engine TensorFlow takes none of the GPU's."""
    if keras.backend.backend() != "tensorflow":
        with suppress(RuntimeError):  # it was loaded and has found its devices
            tensorflow.config.set_visible_devices([], "GPU")
    with tensorflow.device("CPU"):
        yield


def _callback(keras: Any, tensorflow: Any, clock: Clock) -> Any:
    """The benchmark's clock as a callback: from the begin of batch 1 to the end of the last one.

    Keras makes the logs of `fit` numbers for such a callback, and so waits for the step. The results of `predict` it
    hands on before the device is done with them, so that the clock would stop before the work does, as the benchmark's
    did: here they are fetched first, which the bare step does, too.
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
def _seen(iterator: type[Any], waits: Waits) -> Iterator[None]:
    """While active, each batch that Python takes from a `tf.data` iterator is timed.

    Keras on PyTorch and on JAX takes batches so; on TensorFlow a compiled step does, and nothing is seen.
    """
    following = iterator.__next__

    def next_batch(self: Any) -> object:
        return waits.timed(partial(following, self))

    iterator.__next__ = next_batch
    try:
        yield
    finally:
        iterator.__next__ = following


def _alone(data: Any, steps: int) -> float:
    """How long a batch takes that is taken from the data and given to no model [s]; the first one is left out."""
    batches = iter(data)
    next(batches)
    began = time.perf_counter()
    for _ in range(steps):
        next(batches)
    return (time.perf_counter() - began) / steps
