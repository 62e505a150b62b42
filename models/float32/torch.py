"""PyTorch's float32 switches: one for each op of each library, and two older ones that write several of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from roofline.models._precision import Arithmetic
from roofline.models.float32 import missing

#: The ops that have a float32 precision of their own: our name -> where in `torch.backends`.
_OPS = {
    "matmul (cuBLAS)": ("cuda", "matmul"),
    "convolution (cuDNN)": ("cudnn", "conv"),
    "rnn (cuDNN)": ("cudnn", "rnn"),
    "matmul (oneDNN)": ("mkldnn", "matmul"),
    "convolution (oneDNN)": ("mkldnn", "conv"),
    "rnn (oneDNN)": ("mkldnn", "rnn"),
}


def switches() -> dict[str, str]:
    """What PyTorch makes of a float32 contraction now, by op: "ieee", "tf32", "bf16" or "none" (unset: IEEE)."""
    return {f"float32 {name}": str(op.fp32_precision) for name, op in _ops().items()}


def set_arithmetic(arithmetic: Arithmetic) -> None:
    """Has every float32 contraction computed so. Raises InputError where the GPU has no TF32."""
    if arithmetic == "tf32" and torch.version.hip is None and torch.cuda.get_device_capability() < (8, 0):
        raise missing()
    torch.set_float32_matmul_precision("highest" if arithmetic == "ieee" else "high")
    torch.backends.cudnn.allow_tf32 = arithmetic == "tf32"
    if arithmetic == "ieee":
        # The two lines above leave an op without a setting of its own to inherit a process-wide "tf32".
        for op in _ops().values():
            op.fp32_precision = "ieee"


@contextmanager
def kept() -> Iterator[None]:
    """Puts the switches back on leaving."""
    ops = {op: op.fp32_precision for op in _ops().values()}
    older = _older_switches()
    try:
        yield
    finally:
        # The older switches write the newer ones, so they go first.
        if older is not None:
            torch.set_float32_matmul_precision(older[0])
            torch.backends.cudnn.allow_tf32 = older[1]
        for op, precision in ops.items():
            op.fp32_precision = precision


def _ops() -> dict[str, Any]:
    """PyTorch's settable objects, by our name; those that this build of PyTorch has."""
    found = {name: getattr(getattr(torch.backends, library, None), op, None) for name, (library, op) in _OPS.items()}
    return {name: op for name, op in found.items() if hasattr(op, "fp32_precision")}


def _older_switches() -> tuple[str, bool] | None:
    """The two older switches, or None where the user set the newer ones, when reading them raises."""
    try:
        return torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    except RuntimeError:
        return None
