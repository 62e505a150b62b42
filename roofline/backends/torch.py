"""PyTorch, eager: the step as the user runs it."""

from __future__ import annotations

from contextlib import AbstractContextManager

from roofline.core.switch import ATTENTION, COMPILED_AWAY, DROPOUT, OPTIMIZER, OWN_OPTIMIZERS, Switch
from roofline.pytorch.recording import trainer
from roofline.pytorch.recording.process import MODEL_OPTIONS, environment
from roofline.pytorch.recording.recorder import TorchRecorder, call_with_inputs, turn
from roofline.recording.backend import Backend


def _without_data() -> AbstractContextManager[None]:
    from roofline.pytorch.recording import shapes

    return shapes.without_data()


BACKEND = Backend(
    framework="torch",
    requires=("torch",),
    prepares=("roofline.pytorch.recording.record", "sympy"),  # by which torch finds the shapes of counted ops
    extras=("torch",),
    models="roofline.models.torch",
    options=MODEL_OPTIONS,
    switches=(
        ATTENTION,
        Switch(
            name="torch.compile",
            kind=COMPILED_AWAY,
            assumed="off",
            turns={"off": "on"},
            backend="torch-compile",
            moves=("backend", "switch torch.compile"),
        ),
        OPTIMIZER,
        DROPOUT,
    ),
    own_switches=(
        Switch(
            name="torch.compile",
            kind=COMPILED_AWAY,
            assumed="off",
            turns={"off": "on"},
            backend="torch-compile",
            in_step="compile",
            moves=("backend", "switch torch.compile"),
        ),
        *OWN_OPTIMIZERS,
    ),
    turn=turn,
    without_data=_without_data,
    environment=environment,
    apis=trainer.APIS,
    call_with_inputs=call_with_inputs,
    recorder=TorchRecorder(),
)
