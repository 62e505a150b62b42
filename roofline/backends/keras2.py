"""Keras 2 (tf_keras and KerasNLP 0.8.2); jit off unless given, as Keras 2 decides."""

from __future__ import annotations

from roofline.core.switch import DROPOUT, JIT
from roofline.keras import apis, libraries, optimizers, shaped
from roofline.keras.environment import with_keras
from roofline.recording.backend import Backend
from roofline.tensorflow import environment
from roofline.tensorflow.recorder import TensorFlowRecorder

BACKEND = Backend(
    framework="tensorflow",
    written_in="tf_keras",
    requires=("tensorflow", "tf_keras"),
    extras=("keras2",),
    models="roofline.models.keras2",
    options={"jit": ("on", "off"), "dropout": ("off",)},
    switches=(JIT, DROPOUT),
    environment=with_keras({"TF_USE_LEGACY_KERAS": "1"}, environment.variables),
    apis=apis.apis("tf_keras"),
    call_with_inputs=shaped.caller("tf_keras"),
    recorder=TensorFlowRecorder(("on",), optimizers.SCOPES, libraries.KERAS_2),
)
