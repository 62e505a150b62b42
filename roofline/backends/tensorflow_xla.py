"""TensorFlow with XLA: a tf.function compiled whole, or clusters of its graph."""

from __future__ import annotations

from collections.abc import Mapping

from roofline.core.switch import DROPOUT
from roofline.recording.backend import Backend
from roofline.tensorflow import environment
from roofline.tensorflow.recorder import TensorFlowRecorder, call_with_inputs


def _model_options(options: Mapping[str, str]) -> dict[str, str]:
    told = {name: value for name, value in options.items() if name != "mode"}
    return {**told, "jit": options.get("mode", "compile")}


BACKEND = Backend(
    framework="tensorflow",
    requires=("tensorflow",),
    extras=("tensorflow",),
    models="roofline.models.tensorflow",
    options={"mode": ("compile", "autocluster"), "dropout": ("off",)},
    switches=(DROPOUT,),
    model_options=_model_options,
    environment=environment.variables,
    call_with_inputs=call_with_inputs,
    recorder=TensorFlowRecorder(compiled=("compile", None)),
)
