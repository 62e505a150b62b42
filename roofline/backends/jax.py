"""JAX: a jitted step, compiled by XLA."""

from __future__ import annotations

from contextlib import AbstractContextManager

from roofline.core.switch import COMMAND_BUFFERS, DROPOUT, OWN_JIT
from roofline.recording.backend import Backend
from roofline.xla import jax_environment
from roofline.xla.recorder import JaxRecorder, call_with_inputs, turn


def _without_data() -> AbstractContextManager[None]:
    from roofline.xla.shapes import arrays

    return arrays.without_data()


BACKEND = Backend(
    framework="jax",
    requires=("jax",),
    extras=("jax",),
    models="roofline.models.jax",
    options={"dropout": ("off",), "command_buffers": ("on", "off")},
    switches=(COMMAND_BUFFERS, DROPOUT),
    own_switches=(OWN_JIT,),
    turn=turn,
    without_data=_without_data,
    environment=jax_environment.variables,
    call_with_inputs=call_with_inputs,
    recorder=JaxRecorder(),
)
