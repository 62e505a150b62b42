"""What `--precision` means, in every framework."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from roofline.core.step import PRECISIONS, PrecisionName, Workload
from roofline.errors import InputError

#: By the names that PyTorch, JAX, TensorFlow and Keras all have for them.
Dtype = Literal["float32", "bfloat16", "float16"]
#: How a product of float32 numbers is computed: IEEE 754, or on inputs rounded to 10 bits of mantissa.
Arithmetic = Literal["ieee", "tf32"]


@dataclass(frozen=True, slots=True)
class Precision:
    """One name of `--precision`.

    parameters: what weights and inputs are kept in.
    compute: what contractions are computed in; not the same only in mixed precision, which is autocast in PyTorch, a
        mixed policy in Keras and `dtype=` in flax.
    float32: how contractions in float32 are computed; None: as the framework decides.
    """

    parameters: Dtype = "float32"
    compute: Dtype = "float32"
    float32: Arithmetic | None = None

    @property
    def cast(self) -> Dtype | None:
        """What weights and inputs, which are made in float32, are cast to; None: they stay as they are."""
        return None if self.parameters == "float32" else self.parameters

    @property
    def mixed(self) -> Dtype | None:
        """What contractions are computed in where weights are kept in float32; None where that is float32 too."""
        return None if self.parameters == self.compute else self.compute

    @property
    def scales_loss(self) -> bool:
        """Whether training needs loss scaling: float16 has few exponents, and the gradients are in it."""
        return self.mixed == "float16"


#: The meaning of each of `PRECISIONS`.
_MEANING: dict[PrecisionName, Precision] = {
    "default": Precision(),
    "fp32": Precision(float32="ieee"),
    "tf32": Precision(float32="tf32"),
    "bf16": Precision("bfloat16", "bfloat16"),
    "fp16": Precision("float16", "float16"),
    "mixed-bf16": Precision("float32", "bfloat16"),
    "mixed-fp16": Precision("float32", "float16"),
}


def precision(workload: Workload) -> Precision:
    """What `workload` asks for. Raises InputError for an unknown name, and for TF32 on a CPU."""
    if workload.precision not in PRECISIONS:
        known = ", ".join(PRECISIONS)
        raise InputError(f"There is no precision {workload.precision!r}: use --precision with one of {known}.")
    if workload.precision == "tf32" and workload.device == "cpu":
        raise InputError("There is no TF32 on a CPU: use --precision fp32 or bf16.")
    return _MEANING[workload.precision]
