"""TensorFlow, graph mode: a tf.function as grappler optimises it, without XLA."""

from __future__ import annotations

from collections.abc import Mapping

from roofline.core.switch import COMPILED_AWAY, DROPOUT, Switch
from roofline.recording.backend import Backend
from roofline.tensorflow import environment
from roofline.tensorflow.recorder import TensorFlowRecorder, call_with_inputs


def _model_options(options: Mapping[str, str]) -> dict[str, str]:
    return {**options, "jit": "off"}


BACKEND = Backend(
    framework="tensorflow",
    requires=("tensorflow",),
    extras=("tensorflow",),
    models="roofline.models.tensorflow",
    options={"dropout": ("off",)},
    switches=(
        Switch(
            name="jit_compile",
            kind=COMPILED_AWAY,
            reads="jit",
            turns={"off": "on"},
            backend="tensorflow-xla",
            moves=("backend", "switch jit"),
        ),
        DROPOUT,
    ),
    model_options=_model_options,
    environment=environment.variables,
    call_with_inputs=call_with_inputs,
    recorder=TensorFlowRecorder(),
)
