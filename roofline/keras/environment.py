"""The environment of a process that is to import Keras on some engine; nothing here imports either."""

from __future__ import annotations

from collections.abc import Mapping

from roofline.recording.backend import Environment


def with_keras(own: Mapping[str, str], engine: Environment) -> Environment:
    """The variables that choose Keras's engine or version, and those of the engine."""

    def variables(threads: int | None, device: str, options: Mapping[str, str]) -> dict[str, str]:
        return {**own, **engine(threads, device, options)}

    return variables
