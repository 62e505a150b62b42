"""A step of Keras 3 on PyTorch: recorded as any PyTorch program, with the names of Keras's layers."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from roofline.core.step import Step
from roofline.costs.counted import Counted
from roofline.keras import libraries, torch_names
from roofline.pytorch.aten.engine import Engine
from roofline.pytorch.count import AGAIN, count
from roofline.pytorch.recording import counting, host_cost, shapes
from roofline.pytorch.recording.allocations import with_storages
from roofline.pytorch.recording.record import Variant
from roofline.pytorch.recording.record import record as torch_record
from roofline.recording.recording import Plan, Recording, Say


def record(step: Step, plan: Plan, say: Say) -> Recording:
    """Time plain steps (T), profile a few (P) and count one (C)."""
    return torch_record(step, plan, say, Variant(count=_count, libraries=libraries.KERAS_3, layers=_layers))


def _layers() -> host_cost.Layer:
    """A model with a layer of one op: what Keras does around its layers is part of what an op takes the host."""
    import keras

    class Layer(keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return x + x

    layers: host_cost.Layer = keras.Sequential([Layer()])
    return layers


def _count(step: Step) -> Counted:
    nodes = counting.record(step, torch_names.name, _marked)
    return with_storages(count(nodes, Engine(), addresses=nodes.addresses), nodes)


@contextmanager
def _marked() -> Iterator[None]:
    """Mark the parts of a training step, and what a recurrent layer runs twice."""
    with torch_names.marked_training(), _marked_probes(), _marked_masks():
        yield


@contextmanager
def _marked_probes() -> Iterator[None]:
    """While active, the first run of a recurrent layer's cell is marked as one that is run again.

    Keras 3 runs the cell once more on the first step of the sequence (`output_time_zero`), for the shape of what comes
    out, and drops the result; not where it unrolls the loop.
    """
    from keras.src import backend

    original = backend.rnn
    if "output_time_zero" not in original.__code__.co_varnames:
        yield
        return
    signature = inspect.signature(original)

    def rnn(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs)
        step_function, number = given.arguments["step_function"], itertools.count()

        def step(*arguments: Any, **options: Any) -> Any:
            with shapes.mark(AGAIN) if next(number) == 0 else nullcontext():
                return step_function(*arguments, **options)

        if not given.arguments.get("unroll"):
            given.arguments["step_function"] = step
        return original(*given.args, **given.kwargs)

    backend.rnn = rnn
    try:
        yield
    finally:
        backend.rnn = original


@contextmanager
def _marked_masks() -> Iterator[None]:
    """While active, what a recurrent layer runs to make masks of dropout is marked as run again.

    For those of stacked cells Keras 3 runs all of them on the first step, dropout or not, and drops the results.
    """
    from keras.layers import RNN

    name = "_maybe_config_dropout_masks"
    original = getattr(RNN, name, None)
    if original is None:
        yield
        return

    def config(*args: Any, **kwargs: Any) -> Any:
        with shapes.mark(AGAIN):
            return original(*args, **kwargs)

    setattr(RNN, name, config)
    try:
        yield
    finally:
        setattr(RNN, name, original)
