"""Ops of `torch.ao.quantization`: numbers of 8 bits with a scale and a zero point.

Their weights are in an object that no profiler records, so that only results, which a live run records, say how large
they are. What is left open by that, as the kernel of a convolution, is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from roofline.core.cost import Cost
from roofline.costs import formulas
from roofline.pytorch.aten.tables import base

NAMESPACE = "quantized"
#: FLOP per number: to 8 bits (over the scale, plus the zero point, two limits), and back again.
_TO, _BACK = 4.0, 2.0
#: And how the names go on of layers that have an activation.
_ACTIVATIONS = ("", "_relu")
_LINEAR = frozenset(f"linear{activation}{kind}" for activation in _ACTIVATIONS for kind in ("", "_dynamic"))
_LINEAR_FP16 = frozenset(f"linear{activation}_dynamic_fp16" for activation in _ACTIVATIONS)
_PAIRS = frozenset(f"{op}{activation}" for op in ("add", "mul") for activation in _ACTIVATIONS)


def is_linear(name: str) -> bool:
    """Whether an op, as in "quantized::linear_dynamic", is a product with a weight."""
    return name.startswith(f"{NAMESPACE}::") and base(name) in _LINEAR | _LINEAR_FP16


def multiplies(name: str) -> str | None:
    """The type that such an op multiplies in, where it is not that of its inputs."""
    return "int8" if is_linear(name) and base(name) in _LINEAR else None


def weight_bytes(name: str, x: Any, out: Any) -> float:
    """Bytes of the weight of a linear layer; 0 for other ops."""
    return x.shape[-1] * out.shape[-1] * (2.0 if name.endswith("fp16") else 1.0) if is_linear(name) else 0.0


def _linear(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    """A product and a bias. A dynamic layer looks for the range of its input first, and gives floating numbers."""
    name, x, results = base(func._schema.name), args[0], out.numel()
    cost = formulas.matmul(x.numel() // max(1, x.shape[-1]), out.shape[-1], x.shape[-1])
    activated = results if "_relu" in name else 0
    if name in _LINEAR_FP16:
        return cost + Cost(vector_flops=1.0 * results + activated)
    if "_dynamic" in name:
        return cost + Cost(vector_flops=(2.0 + _TO) * x.numel() + (_BACK + 1.0) * results + activated)
    return cost + Cost(vector_flops=(_TO + 1.0) * results + activated)


def _pair(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    """Both numbers back from 8 bits, the sum or product, and it to 8 bits."""
    activated = 1.0 if base(func._schema.name).endswith("_relu") else 0.0
    return Cost(vector_flops=(2.0 * _BACK + 1.0 + _TO + activated) * out.numel())


#: The rule of each op, as `flops` calls them.
RULES: dict[str, Callable[[Any, Any, Any, Any], Cost]] = {
    **dict.fromkeys(_LINEAR | _LINEAR_FP16, _linear),
    **dict.fromkeys(_PAIRS, _pair),
}
