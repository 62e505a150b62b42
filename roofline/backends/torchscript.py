"""PyTorch with TorchScript: the step's model traced (for inference frozen too), or as the user scripted it."""

from __future__ import annotations

from roofline.core.step import Step
from roofline.core.switch import ATTENTION, DROPOUT, OPTIMIZER, OWN_OPTIMIZERS
from roofline.pytorch.recording.process import MODEL_OPTIONS, environment, of_models
from roofline.pytorch.recording.recorder import TorchRecorder, call_with_inputs, turn
from roofline.recording.backend import Backend
from roofline.recording.recording import Check, Plan, Recording, Say


class _Recorder(TorchRecorder):
    def record(self, step: Step, plan: Plan, say: Say) -> Recording:
        """T, P and C of the step with its model in TorchScript."""
        from roofline.pytorch.torchscript import record

        return record.record(step, plan, say)

    def verify(self, step: Step) -> list[Check]:
        """The FLOPs that the traced step executes."""
        from roofline.pytorch.torchscript import record

        return record.verify(step)


BACKEND = Backend(
    framework="torch",
    requires=("torch",),
    extras=("torch",),
    models="roofline.models.torch",
    options={"freeze": ("on", "off"), **MODEL_OPTIONS},
    switches=(ATTENTION, OPTIMIZER, DROPOUT),
    own_switches=OWN_OPTIMIZERS,
    turn=turn,
    model_options=of_models,
    environment=environment,
    refuses={
        "generate": (
            "TorchScript traces functions of tensors, and a model that generates hands on its cache: "
            "use --backend torch, or --mode infer."
        )
    },
    call_with_inputs=call_with_inputs,
    recorder=_Recorder(),
)
