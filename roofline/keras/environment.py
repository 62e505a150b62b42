"""Build the environment of a process that will import Keras on some engine; nothing here imports either."""

from __future__ import annotations

from collections.abc import Mapping

from roofline.recording.backend import Environment


def with_keras(library_variables: Mapping[str, str], engine: Environment) -> Environment:
    """Join the variables that choose Keras's engine or version with those of the engine."""

    def variables(threads: int | None, device: str, options: Mapping[str, str]) -> dict[str, str]:
        return {**library_variables, **engine(threads, device, options)}

    return variables
