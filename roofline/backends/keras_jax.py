"""Keras 3 on JAX; jit as Keras decides unless given."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from roofline.core.switch import COMMAND_BUFFERS, DROPOUT, JIT
from roofline.keras import apis, libraries, optimizers, shaped
from roofline.keras.environment import with_keras
from roofline.recording.backend import Backend
from roofline.xla import jax_environment
from roofline.xla.recorder import JaxRecorder


@contextmanager
def _without_data() -> Iterator[None]:
    """Keras ends its steps by making numpy arrays of what they return."""
    from roofline.keras import names
    from roofline.xla.shapes import arrays

    with names.restarted(), arrays.without_data(hands_over=True):
        yield


BACKEND = Backend(
    framework="jax",
    written_in="keras",
    requires=("keras", "jax"),
    extras=("keras", "jax"),
    models="roofline.models.keras",
    options={"jit": ("on", "off"), "dropout": ("off",), "command_buffers": ("on", "off")},
    switches=(JIT, COMMAND_BUFFERS, DROPOUT),
    without_data=_without_data,
    environment=with_keras({"KERAS_BACKEND": "jax"}, jax_environment.variables),
    apis=apis.apis("keras"),
    call_with_inputs=shaped.caller("keras"),
    recorder=JaxRecorder(optimizers.SCOPES, libraries.KERAS_3),
)
