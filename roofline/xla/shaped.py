"""Call a function of the user's with JAX's arrays, made by shape and type."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

from roofline.core.step import Step
from roofline.errors import InputError
from roofline.recording.inputs import Input, arrays, described


def step(called: Callable[..., object], inputs: Sequence[Input], device: str) -> Step:
    """Make the step that calls a function. Raises InputError for types that JAX has only where it is told to."""
    wide = [str(asked) for asked in inputs if jax.dtypes.canonicalize_dtype(asked.dtype) != jnp.dtype(asked.dtype)]
    if wide:
        raise InputError(
            f"JAX makes no array {wide[0]} unless jax_enable_x64 is set: set it in the file, or give half of the width."
        )
    given = [jnp.asarray(array, asked.dtype) for array, asked in zip(arrays(inputs, None), inputs, strict=True)]
    return Step(run=lambda: called(*given), switches={"inputs": described(inputs)})
