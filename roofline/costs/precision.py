"""Tell what a contraction computes in, and how that is known: a kernel's name proves it, else a switch says it."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from roofline.core.device import Device
from roofline.core.schema import Precision, Signature

_TF32 = re.compile(r"tf32|s1688|s16816.*tf32", re.IGNORECASE)
# scudnn: cuDNN's own convolutions in fp32, from before there was TF32. gemv: products with a vector, which cuBLAS and
# rocBLAS compute outside of the matrix units, whatever the switch.
_IEEE = re.compile(r"sgemm|simt|ffma|f32f32_f32f32_f32|scudnn|gemv", re.IGNORECASE)

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


def certain(recorded: Precision | None, device: Device) -> Precision | None:
    """The precision of a product that ran on `device`, where nothing but its ceilings tells what it computed in.

    A device without a lower arithmetic for fp32 inputs computes them in fp32: TF32 on a GPU, and on a CPU bf16 that is
    faster than fp32. A device of which no fp32 ceiling is known says nothing.
    """
    if recorded is None or recorded.inputs != "fp32" or recorded.arithmetic is not None:
        return recorded
    full = device.rate("matrix.fp32")
    lower = [device.rate(f"matrix.{name}") for name in ("tf32", "bf16")[: 2 if device.kind == "cpu" else 1]]
    if full is None or any(rate is not None and rate > full for rate in lower):
        return recorded
    return msgspec.structs.replace(
        recorded, arithmetic="fp32", evidence=f"{device.name[:80]} has no faster arithmetic for fp32 inputs"
    )


def settled(signature: Signature, device: Device) -> Signature:
    """A row of a profile recorded on `device`, with its precision as far as the device makes it certain."""
    settled_precision = certain(signature.precision, device)
    return (
        signature
        if settled_precision is signature.precision
        else msgspec.structs.replace(signature, precision=settled_precision)
    )
