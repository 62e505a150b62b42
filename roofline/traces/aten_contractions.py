"""FLOPs of the contractions among aten ops: products, convolutions and fused attention, by formula."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from roofline.core import formulas
from roofline.core.cost import Cost
from roofline.traces.aten_kinds import ATTENTION, ATTENTION_BACKWARD, base


def _bias(out: Any) -> Cost:
    """One addition per output element: kept out of the matrix FLOPs, as FlopCounterMode does."""
    return Cost(vector_flops=float(out.numel()))


def _mm(a: Any, b: Any, *_: Any, **__: Any) -> Cost:
    return formulas.matmul(a.shape[0], b.shape[1], a.shape[1])


def _added(kwargs: dict[str, Any], out: Any) -> Cost:
    """What `beta * self` adds to a product: nothing where beta is 0, and then `self` is not even read."""
    return Cost() if kwargs.get("beta") == 0 else _bias(out)


def _addmm(_: Any, a: Any, b: Any, *__: Any, out: Any, **kwargs: Any) -> Cost:
    return formulas.matmul(a.shape[0], b.shape[1], a.shape[1]) + _added(kwargs, out)


def _addmm_activation(_: Any, a: Any, b: Any, *__: Any, out: Any, **kwargs: Any) -> Cost:
    """The activation is counted as ReLU or, with `use_gelu`, as GELU by erf."""
    number = float(out.numel())
    gelu = Cost(vector_flops=4.0 * number, functions={"erf": number})
    activation = gelu if kwargs.get("use_gelu") else formulas.elementwise("maximum", number)
    return _addmm(_, a, b, out=out, **kwargs) + activation


def _bmm(a: Any, b: Any, *_: Any, **__: Any) -> Cost:
    return formulas.matmul(a.shape[1], b.shape[2], a.shape[2], a.shape[0])


def _baddbmm(_: Any, a: Any, b: Any, *__: Any, out: Any, **kwargs: Any) -> Cost:
    return formulas.matmul(a.shape[1], b.shape[2], a.shape[2], a.shape[0]) + _added(kwargs, out)


def _addbmm(_: Any, a: Any, b: Any, *__: Any, out: Any, **kwargs: Any) -> Cost:
    return formulas.matmul(a.shape[1], b.shape[2], a.shape[2], a.shape[0]) + _added(kwargs, out)


def _mv(a: Any, b: Any, *_: Any, **__: Any) -> Cost:
    return formulas.matmul(a.shape[0], 1, a.shape[1])


def _addmv(_: Any, a: Any, b: Any, *__: Any, out: Any, **kwargs: Any) -> Cost:
    return formulas.matmul(a.shape[0], 1, a.shape[1]) + _added(kwargs, out)


def _dot(a: Any, b: Any, *_: Any, **__: Any) -> Cost:
    return formulas.matmul(1, 1, a.shape[0])


def _outer(a: Any, b: Any, *_: Any, **__: Any) -> Cost:
    return formulas.matmul(a.shape[0], b.shape[0], 1)


def _addr(_: Any, a: Any, b: Any, *__: Any, out: Any, **kwargs: Any) -> Cost:
    return _outer(a, b) + _added(kwargs, out)


def _linear(x: Any, weight: Any, bias: Any = None, *_: Any, out: Any, **__: Any) -> Cost:
    rows = x.numel() // max(1, x.shape[-1])
    cost = formulas.matmul(rows, weight.shape[0], weight.shape[1])
    return cost if bias is None else cost + _bias(out)


def _convolution(
    x: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    _output_padding: Any,
    groups: int,
    *_: Any,
    out: Any,
    **__: Any,
) -> Cost:
    cost = _pairs(x, weight, stride, padding, dilation, transposed, groups, out.shape)
    return cost if bias is None else cost + _bias(out)


def _pairs(
    x: Any, weight: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, groups: int, output: Any
) -> Cost:
    dimensions = weight.dim() - 2
    stride, padding, dilation = (_spread(values, dimensions) for values in (stride, padding, dilation))
    if transposed:
        # The gradient of the convolution that maps the output back to the input: it pairs the same elements.
        channels_in, channels_out = weight.shape[1] * groups, weight.shape[0]
        inputs, outputs = output[2:], x.shape[2:]
    else:
        channels_in, channels_out = x.shape[1], weight.shape[0]
        inputs, outputs = x.shape[2:], output[2:]
    return formulas.convolution(
        x.shape[0], channels_in, channels_out, groups, inputs, weight.shape[2:], stride, padding, dilation, outputs
    )


def _spread(values: Any, dimensions: int) -> list[int]:
    values = list(values)
    return values * dimensions if len(values) == 1 else values


def _convolution_backward(
    grad: Any,
    x: Any,
    weight: Any,
    _bias_sizes: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    _output_padding: Any,
    groups: int,
    output_mask: Any,
    *_: Any,
    **__: Any,
) -> Cost:
    """Each of the two gradients pairs the same elements as the forward pass; the bias gradient is a sum."""
    one = _pairs(x, weight, stride, padding, dilation, transposed, groups, grad.shape)
    cost = sum(output_mask[:2]) * one
    if output_mask[2]:
        cost = cost + formulas.reduction(grad.numel(), grad.shape[1])
    return cost


def _attention_shape(q: Any, k: Any, v: Any) -> tuple[int, int, int, int, int, int]:
    *batch, heads, queries, width = q.shape
    number = 1
    for size in batch:
        number *= size
    return number, heads, queries, k.shape[-2], width, v.shape[-1]


def attention(overload: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Cost:
    """The work of a fused attention kernel, by the names of its arguments."""
    named = by_name(overload, args, kwargs)
    q, k, v = named["query"], named["key"], named["value"]
    if overload._schema.name.endswith(("_flash_attention_forward", "_efficient_attention_forward")):
        q, k, v = (t.transpose(-2, -3) for t in (q, k, v))  # these two are [batch, length, heads, width]
    cost = formulas.attention(*_attention_shape(q, k, v), causal=bool(named.get("is_causal")))
    return cost + _mask(named, q, k)


def attention_backward(overload: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Cost:
    """The work of the gradients of one."""
    named = by_name(overload, args, kwargs)
    q, k, v = named["query"], named["key"], named["value"]
    if overload._schema.name.endswith(("::_flash_attention_backward", "::_efficient_attention_backward")):
        q, k, v = (t.transpose(-2, -3) for t in (q, k, v))
    cost = formulas.attention_backward(*_attention_shape(q, k, v), causal=bool(named.get("is_causal")))
    return cost + _mask(named, q, k)


def _mask(named: dict[str, Any], q: Any, k: Any) -> Cost:
    """Adding a mask or bias is one addition per score."""
    mask = next((named[name] for name in ("attn_mask", "attn_bias") if named.get(name) is not None), None)
    if mask is None:
        return Cost()
    return Cost(vector_flops=float(q.numel() // max(1, q.shape[-1]) * k.shape[-2]))


def by_name(overload: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call by their names in the schema."""
    names = [argument.name for argument in overload._schema.arguments]
    return {**dict(zip(names, args, strict=False)), **kwargs}


#: The formula of each, called with the op's arguments and its result as `out`.
CONTRACTION: dict[str, Callable[..., Cost]] = {
    "mm": _mm,
    "_int_mm": _mm,
    "_scaled_mm": _mm,
    "_sparse_mm": _mm,
    "addmm": _addmm,
    "_addmm_activation": _addmm_activation,
    "bmm": _bmm,
    "baddbmm": _baddbmm,
    "addbmm": _addbmm,
    "mv": _mv,
    "addmv": _addmv,
    "dot": _dot,
    "vdot": _dot,
    "ger": _outer,
    "addr": _addr,
    "linear": _linear,
    "mkldnn_linear": _linear,
    "convolution": _convolution,
    "_convolution": _convolution,
    "convolution_overrideable": _convolution,
    "convolution_backward": _convolution_backward,
}


def kind(name: str) -> str:
    """Our op kind of an aten op, for the saved signature."""
    plain = base(name)
    if plain in ATTENTION:
        return "attention"
    if plain in ATTENTION_BACKWARD:
        return "attention_backward"
    if plain.startswith(("convolution", "_convolution")):
        return "convolution_backward" if plain.endswith("backward") else "convolution"
    if plain in CONTRACTION:
        return "matmul"
    return plain.lstrip("_")
