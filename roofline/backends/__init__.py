"""Backends: one file per `--backend`. Each builds, runs and records a step of one framework.

A backend is a module with

    REQUIRES: tuple[str, ...]               distributions to install, named in the error
    OPTIONS: Mapping[str, tuple[str, ...]]  what `--backend name:option=value` takes
    SWITCHES: tuple[Switch, ...]                 switches that take a cause of slowness away, for `compare --prove`
    MODELS: str                             the package of its models
    environment(threads, device, options)   variables that must be set before the framework is imported
    profiled_environment(device)            those of the profiled run alone; plain steps then get another process
    workload_options(options)               what its models are told of the options the user gave
    devices()                               what it can run on here, "cpu" first
    record(step, plan, say) -> Recording    the T, P and C runs
    verify(step) -> list[Check]             counts beside independent references

and imports its framework inside these functions only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from roofline.core.step import Step
from roofline.core.switch import Switch
from roofline.recording.recording import Check, Plan, Recording, Say


class Backend(Protocol):
    """What a module in this folder offers."""

    @property
    def REQUIRES(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def OPTIONS(self) -> Mapping[str, tuple[str, ...]]: ...  # noqa: D102
    @property
    def SWITCHES(self) -> tuple[Switch, ...]: ...  # noqa: D102
    @property
    def MODELS(self) -> str: ...  # noqa: D102

    def environment(self, threads: int | None, device: str, options: Mapping[str, str]) -> dict[str, str]: ...  # noqa: D102
    def profiled_environment(self, device: str) -> dict[str, str]: ...  # noqa: D102
    def workload_options(self, options: Mapping[str, str]) -> dict[str, str]: ...  # noqa: D102
    def devices(self) -> tuple[str, ...]: ...  # noqa: D102
    def record(self, step: Step, plan: Plan, say: Say) -> Recording: ...  # noqa: D102
    def verify(self, step: Step) -> list[Check]: ...  # noqa: D102
