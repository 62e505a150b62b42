"""A step of Keras 3 on PyTorch: recorded as any PyTorch program, with the names of Keras's layers."""

from __future__ import annotations

from typing import Any

from roofline.core.step import Step
from roofline.costs.counted import Counted
from roofline.keras import libraries, torch_names
from roofline.pytorch.aten.engine import Engine
from roofline.pytorch.count import count
from roofline.pytorch.recording import counting, host_cost
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
    nodes = counting.record(step, torch_names.name, torch_names.marked_training)
    return with_storages(count(nodes, Engine(), addresses=nodes.addresses), nodes)
