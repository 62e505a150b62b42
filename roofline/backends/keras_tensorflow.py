"""Keras 3 on TensorFlow; jit as Keras decides unless given."""

from __future__ import annotations

from roofline.core.switch import DROPOUT, JIT
from roofline.keras import apis, libraries, optimizers, shaped
from roofline.keras.environment import with_keras
from roofline.recording.backend import Backend
from roofline.tensorflow import environment
from roofline.tensorflow.recorder import TensorFlowRecorder

BACKEND = Backend(
    framework="tensorflow",
    written_in="keras",
    requires=("keras", "tensorflow"),
    extras=("keras", "tensorflow"),
    models="roofline.models.keras",
    options={"jit": ("on", "off"), "dropout": ("off",)},
    switches=(JIT, DROPOUT),
    environment=with_keras({"KERAS_BACKEND": "tensorflow"}, environment.variables),
    apis=apis.apis("keras"),
    call_with_inputs=shaped.caller("keras"),
    recorder=TensorFlowRecorder(("on",), optimizers.SCOPES, libraries.KERAS_3),
)
