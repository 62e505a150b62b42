"""PyTorch with torch.compile: the model's forward and backward as Inductor generates them."""

from __future__ import annotations

from roofline.core.step import Step
from roofline.core.switch import ATTENTION, DROPOUT, LAUNCHED_AWAY, OPTIMIZER, OWN_OPTIMIZERS, Switch
from roofline.pytorch.recording.process import MODEL_OPTIONS, environment, of_models
from roofline.pytorch.recording.recorder import TorchRecorder, call_with_inputs, turn
from roofline.recording.backend import Backend
from roofline.recording.recording import Plan, Recording, Say


class _Recorder(TorchRecorder):
    """Its `verify` runs the step eagerly: what compilation starts from."""

    def record(self, step: Step, plan: Plan, say: Say) -> Recording:
        """Compile the model's forward, unless the user did; then T, P and C as for eager PyTorch."""
        from roofline.pytorch.inductor import record

        return record.record(step, plan, say)


BACKEND = Backend(
    framework="torch",
    requires=("torch",),
    extras=("torch",),
    models="roofline.models.torch",
    options={"mode": ("default", "reduce-overhead", "max-autotune"), **MODEL_OPTIONS},
    switches=(
        ATTENTION,
        Switch(
            name="torch.compile",
            kind=LAUNCHED_AWAY,
            reads="torch.compile",
            turns={"mode=default": "reduce-overhead"},
            option="mode",
            words={"reduce-overhead": "mode=reduce-overhead (CUDA graphs)"},
            moves=("option mode", "switch torch.compile"),
            devices=("cuda",),
        ),
        OPTIMIZER,
        DROPOUT,
    ),
    own_switches=OWN_OPTIMIZERS,
    turn=turn,
    model_options=of_models,
    environment=environment,
    call_with_inputs=call_with_inputs,
    recorder=_Recorder(),
)
