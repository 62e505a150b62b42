"""Keras 3 on PyTorch, run eagerly: jit is off, as Keras decides there."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager

from roofline.core.step import Step
from roofline.core.switch import DROPOUT
from roofline.keras import apis, shaped
from roofline.keras.environment import with_keras
from roofline.pytorch.recording import process
from roofline.pytorch.recording.recorder import TorchRecorder
from roofline.recording.backend import Backend
from roofline.recording.recording import Check, Plan, Recording, Say


class _Recorder(TorchRecorder):
    def record(self, step: Step, plan: Plan, say: Say) -> Recording:
        """T, P and C as of any PyTorch program, with the names of Keras's layers."""
        from roofline.pytorch.recording import keras

        return keras.record(step, plan, say)

    def verify(self, step: Step) -> list[Check]:
        """FlopCounterMode alone: fvcore traces a module's forward, and Keras calls its layers otherwise."""
        from dataclasses import replace

        return super().verify(replace(step, model=None))


def _without_data() -> AbstractContextManager[None]:
    from roofline.pytorch.recording import keras_shapes

    return keras_shapes.without_data()


def _environment(threads: int | None, device: str, options: Mapping[str, str]) -> dict[str, str]:
    """Keras takes a GPU wherever there is one."""
    hidden = {"CUDA_VISIBLE_DEVICES": ""} if device == "cpu" else {}
    return {"TF_CPP_MIN_LOG_LEVEL": "2", **process.environment(threads, device, options), **hidden}


BACKEND = Backend(
    framework="torch",
    written_in="keras",
    requires=("keras", "torch"),
    extras=("keras", "torch"),
    models="roofline.models.keras",
    options={"jit": ("off",), "dropout": ("off",)},
    switches=(DROPOUT,),
    without_data=_without_data,
    environment=with_keras({"KERAS_BACKEND": "torch"}, _environment),
    apis=apis.apis("keras"),
    call_with_inputs=shaped.caller("keras"),
    recorder=_Recorder(),
)
