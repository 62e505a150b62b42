"""How a framework computes contractions in float32: its switches, which hold for the whole process.

One file for each framework that has them, read by the models in it, by those in Keras on it, and by the recorders.
Each offers

    set_arithmetic(arithmetic)    every contraction in float32 as "ieee" or "tf32"; InputError where the GPU has no TF32
    kept()                        a context manager that puts the switches back
"""

from __future__ import annotations

from roofline.errors import InputError


def missing() -> InputError:
    """What to raise for TF32 on a GPU that is too old for it."""
    return InputError("This GPU has no TF32 (it came with Ampere): use --precision fp32 or fp16.")
