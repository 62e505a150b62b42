"""JAX: a jitted step, compiled by XLA."""

from __future__ import annotations

from roofline.core.switch import COMMAND_BUFFERS, DROPOUT, OWN_JIT
from roofline.recording.backend import Backend
from roofline.xla import jax_environment
from roofline.xla.recorder import JaxRecorder, turn

BACKEND = Backend(
    framework="jax",
    requires=("jax",),
    extras=("jax",),
    models="roofline.models.jax",
    options={"dropout": ("off",), "command_buffers": ("on", "off")},
    switches=(COMMAND_BUFFERS, DROPOUT),
    own_switches=(OWN_JIT,),
    turn=turn,
    environment=jax_environment.variables,
    recorder=JaxRecorder(),
)
