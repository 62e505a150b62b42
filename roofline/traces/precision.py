"""What a contraction computes in, and how that is known: a kernel's name proves it, else a switch says it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from roofline.core.profile import Precision

_TF32 = re.compile(r"tf32|s1688|s16816.*tf32", re.IGNORECASE)
_IEEE = re.compile(r"sgemm|simt|ffma|f32f32_f32f32_f32", re.IGNORECASE)

#: Settings of torch's fp32_precision and what arithmetic they give; "none" is unset, which is IEEE.
SWITCH = {"ieee": "fp32", "none": "fp32", "tf32": "tf32", "bf16": "bf16"}


def contraction(inputs: str | None, output: str | None, kernels: Iterable[str], switch: str | None) -> Precision | None:
    """The precision of a contraction of inputs of type `inputs`; `switch`: the float32 setting that applies to it.

    None where the inputs' type is not known. 16-bit and fp8 products accumulate in fp32 on all devices of ours.
    """
    if inputs is None:
        return None
    if inputs != "fp32":
        accumulate = "fp32" if inputs in ("bf16", "fp16", "fp8") else "int32" if inputs == "int8" else inputs
        return Precision(
            inputs=inputs, arithmetic=inputs, accumulate=accumulate, output=output, evidence="type of the inputs"
        )
    for name in kernels:
        if _TF32.search(name):
            return Precision(
                inputs=inputs, arithmetic="tf32", accumulate="fp32", output=output, evidence=f"kernel {name[:80]}"
            )
        if _IEEE.search(name):
            return Precision(
                inputs=inputs, arithmetic="fp32", accumulate="fp32", output=output, evidence=f"kernel {name[:80]}"
            )
    arithmetic = SWITCH.get(switch or "")
    evidence = f"switch: float32 precision {switch!r}" if arithmetic else "unknown"
    return Precision(inputs=inputs, arithmetic=arithmetic, accumulate="fp32", output=output, evidence=evidence)
