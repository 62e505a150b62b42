"""Keras 3 on PyTorch, run eagerly: jit is off, as Keras decides there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from roofline.core.step import Step
from roofline.core.switch import DROPOUT
from roofline.recording.recording import Check, Plan, Recording, Say

if TYPE_CHECKING:
    from roofline.costs.counted import Counted

REQUIRES = ("keras", "torch")
OPTIONS: Mapping[str, tuple[str, ...]] = {"jit": ("off",), "dropout": ("off",)}
MODELS = "roofline.models.keras"
SWITCHES = (DROPOUT,)


def environment(threads: int | None, device: str, options: Mapping[str, str]) -> dict[str, str]:
    """The backend of Keras, and thread counts, which OpenMP and MKL read when they are loaded."""
    pool = {} if threads is None else {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    # Keras takes a GPU wherever there is one.
    hidden = {"CUDA_VISIBLE_DEVICES": ""} if device == "cpu" else {}
    return {"KERAS_BACKEND": "torch", "TF_CPP_MIN_LOG_LEVEL": "2", **pool, **hidden}


def profiled_environment(device: str) -> dict[str, str]:
    """Nothing: plain and profiled steps run in one process."""
    return {}


def workload_options(options: Mapping[str, str]) -> dict[str, str]:
    """What the models are told."""
    return dict(options)


def devices() -> tuple[str, ...]:
    """What PyTorch can run on here."""
    import torch

    return ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)


def record(step: Step, plan: Plan, say: Say) -> Recording:
    """Time plain steps (T), profile a few (P) and count one (C), as for any PyTorch program."""
    import msgspec

    from roofline.keras import torch_names
    from roofline.pytorch.aten.engine import Engine
    from roofline.pytorch.count import count
    from roofline.pytorch.recording import counting as torch_counting
    from roofline.pytorch.recording import record as torch_record

    def counting(step: Step) -> Counted:
        names, training = torch_names.name, torch_names.marked_training
        return count(torch_counting.record(step, names, training), Engine())

    recording = torch_record.record(step, plan, say, counting)
    return msgspec.structs.replace(recording, versions={**_versions(), **recording.versions})


def verify(step: Step) -> list[Check]:
    """Our FLOPs beside FlopCounterMode's; fvcore traces a module's forward, and Keras calls its layers otherwise."""
    from dataclasses import replace

    from roofline.pytorch.recording import verify as torch_verify

    return torch_verify.verify(replace(step, model=None))


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in ("keras", "keras-hub"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
