"""FLOPs of the contractions among aten ops: products, convolutions and fused attention, by formula."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from roofline.core.cost import Cost, matrix
from roofline.costs import attention_pairs, formulas, linear_algebra
from roofline.costs.attention_pairs import Lengths, Mask, varlen
from roofline.costs.calls import Call
from roofline.pytorch.aten.tables import (
    ATTENTION,
    ATTENTION_BACKWARD,
    GROUPED,
    GROUPED_WEIGHTS,
    INT8_LINEAR,
    LINEAR_ALGEBRA,
    base,
)


def _bias(out: Any) -> Cost:
    """Count one addition per output element: kept out of the matrix FLOPs, as FlopCounterMode does."""
    return Cost(vector_flops=float(out.numel()))


def _mm(a: Any, b: Any, *_: Any, **__: Any) -> Cost:
    return formulas.matmul(a.shape[0], b.shape[1], a.shape[1])


def _mm_plus_mm(a: Any, b: Any, c: Any, d: Any, *_: Any, **__: Any) -> Cost:
    """Inductor's own, where a mode tries several kernels: the second product is added to the first as it is made."""
    return _mm(a, b) + _mm(c, d) + Cost(vector_flops=float(a.shape[0] * b.shape[1]))


def _added(kwargs: dict[str, Any], out: Any) -> Cost:
    """Count what `beta * self` adds to a product: nothing where beta is 0, and then `self` is not even read."""
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


def _grouped_mm(a: Any, b: Any, *_: Any, **__: Any) -> Cost:
    """Products of groups of rows (2-D by 3-D), of columns (3-D by 2-D), or of what is summed (2-D by 2-D).

    Each row meets one matrix, wherever a group ends. Behind the end of the last one, which is data, no row would.
    """
    if a.dim() == b.dim() == 3:
        return formulas.matmul(a.shape[-2], b.shape[-1], a.shape[-1], a.shape[0])
    cost = formulas.matmul(a.shape[-2], b.shape[-1], a.shape[-1])
    return cost + Cost(quality="assumed", note="the groups are taken to hold all that is dealt to them")


def _by_packed_weight(x: Any, *_: Any, out: Any, **__: Any) -> Cost:
    """A product with a weight of 4 or 8 bits, whatever it is packed in: each result is scaled by its channel."""
    rows = x.numel() // max(1, x.shape[-1])
    return formulas.matmul(rows, out.shape[-1], x.shape[-1]) + _bias(out)


def _by_grouped_weight(x: Any, *_: Any, out: Any, **__: Any) -> Cost:
    """Count a product by weights with a scale and a zero point per group: each weight is (q - zero) * scale."""
    rows, width, results = x.numel() // max(1, x.shape[-1]), x.shape[-1], out.shape[-1]
    return formulas.matmul(rows, results, width) + Cost(vector_flops=2.0 * width * results)


def _int8_linear(x: Any, weight: Any, *_: Any, out: Any, **__: Any) -> Cost:
    """The range of the input, and it to 8 bits (2 and 4); results from 8 bits, and a bias (2 and 1)."""
    around = Cost(vector_flops=6.0 * x.numel() + 3.0 * out.numel())
    return formulas.matmul(x.numel() // max(1, x.shape[-1]), *weight.shape) + around


def _conv_tbc(x: Any, weight: Any, bias: Any, pad: int = 0, *_: Any, out: Any, **__: Any) -> Cost:
    """A convolution over the first dimension: [time, batch, channels] with [taps, channels, channels out]."""
    taps, channels_in, channels_out = weight.shape
    time = ((x.shape[0],), (taps,), (1,), (pad,), (1,), (out.shape[0],))
    return formulas.convolution(x.shape[1], channels_in, channels_out, 1, *time) + _bias(out)


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


def _library_convolution(
    x: Any, weight: Any, bias: Any, padding: Any, stride: Any, dilation: Any, groups: int, *_: Any, out: Any, **__: Any
) -> Cost:
    """A library's convolution that is called by its own name."""
    return _convolution(x, weight, bias, stride, padding, dilation, False, None, groups, out=out)


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
    lengths: list[int] = list(values)
    return lengths * dimensions if len(lengths) == 1 else lengths


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
    gradient = _pairs(x, weight, stride, padding, dilation, transposed, groups, grad.shape)
    cost: Cost = sum(output_mask[:2]) * gradient
    if output_mask[2]:
        cost = cost + formulas.reduction(grad.numel(), grad.shape[1])
    return cost


#: Of the argument `mode` (ATen/native/RNN.h).
_CELLS = ("relu", "tanh", "lstm", "gru")


def _mkldnn_rnn_layer(x: Any, w0: Any, w1: Any, w2: Any, w3: Any, hx: Any, cx: Any, *options: Any, **_: Any) -> Cost:
    """Count one layer, one direction. options: reverse, batch_sizes, mode, hidden_size, num_layers, has_biases, ..."""
    mode, hidden, biased = options[2], options[3], options[5]
    steps = x.numel() // max(1, x.shape[-1])
    return formulas.recurrent(_CELLS[mode], steps, w0.numel() + w1.numel(), hidden, biased)


def _cudnn_rnn(x: Any, weights: Any, *options: Any, **_: Any) -> Cost:
    """Count all layers and directions; packed sequences are [steps of all, width].

    options: stride, buffer, hx, cx, mode, ...
    """
    hx, mode = options[2], options[4]
    matrices = [weight for weight in weights if weight.dim() > 1]
    units = hx.shape[0] * options[5]
    steps = x.numel() // max(1, x.shape[-1])
    elements = sum(weight.numel() for weight in matrices)
    return formulas.recurrent(_CELLS[mode], steps, elements, units, biased=len(matrices) < len(weights))


def _mkldnn_rnn_layer_backward(x: Any, w0: Any, w1: Any, w2: Any, w3: Any, *options: Any, **_: Any) -> Cost:
    """Count all gradients of one layer in one direction.

    options: states and gradients (8), reverse, mode, hidden_size, ...
    """
    mode, hidden, biased = options[9], options[10], options[12]
    steps = x.numel() // max(1, x.shape[-1])
    executed = 2.0 * (w0.numel() + w1.numel())
    return formulas.recurrent_backward(_CELLS[mode], steps, executed, executed, hidden, biased)


def _cudnn_rnn_backward(x: Any, weights: Any, *options: Any, **_: Any) -> Cost:
    """Count the gradients of all layers and directions.

    options: stride, buffer, hx, cx, output, gradients (3), mode, ..., output_mask.

    cuDNN computes the gradient of what comes from below whether it is asked for or not.
    """
    hx, mode, layers, mask = options[2], options[8], options[11], options[-1]
    stride, directions = options[0], hx.shape[0] // max(1, layers)
    steps = x.numel() // max(1, x.shape[-1])
    elements = sum(weight.numel() for weight in weights if weight.dim() > 1)
    below = sum(weights[place * stride].numel() for place in range(directions))
    executed = elements * (2.0 if mask[3] else 1.0)
    asked = executed if mask[0] else executed - below
    biased = bool(mask[3]) and any(weight.dim() == 1 for weight in weights)
    return formulas.recurrent_backward(_CELLS[mode], steps, asked, executed, hx.shape[0] * options[9], biased)


def unread_gradients(call: Call, is_read: Callable[[Any], bool]) -> float:
    """Count the FLOPs of the gradients of a layer, those of its input and matrices, that nobody reads; else 0.

    oneDNN's op has no mask: it makes all of them. is_read: tells of each result.
    """
    if base(call.name) != "mkldnn_rnn_layer_backward" or not call.outputs:
        return 0.0
    x, below, before = call.inputs[:3]
    made_with = zip((below, below, before), call.outputs, strict=False)
    elements = sum(prod(weight.shape) for weight, gradient in made_with if not is_read(gradient))
    return 2.0 * float(prod(x.shape[:-1]) * elements)


#: Kernels of flash-attention, whose causal mask ends at the lower right corner (torch/nn/attention/bias.py says so of
#: the op with the long name); torch's own `is_causal` begins at the upper left one.
_LOWER_RIGHT = frozenset(
    (
        "_scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_backward _flash_attention_forward "
        "_flash_attention_backward"
    ).split()
)
#: These take [batch, length, heads, width], or with sums of lengths [sum of lengths, heads, width].
_LENGTH_FIRST = ("_flash_attention_forward", "_flash_attention_backward", "_efficient_attention_")


def attention(overload: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Cost:
    """The work of a fused attention kernel, by the names of its arguments."""
    named = by_name(overload, args, kwargs)
    lengths, heads = _lengths(base(overload._schema.name), named)
    widths = named["query"].shape[-1], named["value"].shape[-1]
    return attention_pairs.forward(lengths, heads, *widths, _pattern(overload, named)) + _mask(named, lengths, heads)


def attention_backward(overload: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Cost:
    """The work of the gradients of one."""
    named = by_name(overload, args, kwargs)
    lengths, heads = _lengths(base(overload._schema.name), named)
    widths = named["query"].shape[-1], named["value"].shape[-1]
    return attention_pairs.backward(lengths, heads, *widths, _pattern(overload, named)) + _mask(named, lengths, heads)


def _lengths(name: str, named: dict[str, Any]) -> tuple[Lengths, int]:
    """Return the sequences with their lengths, and the number of query heads."""
    q, k = named["query"], named["key"]
    if not name.startswith(_LENGTH_FIRST):
        *batch, heads, queries, _ = q.shape
        return Lengths(prod(batch), queries, k.shape[-2]), heads
    sums = next(
        (named[argument] for argument in ("cum_seq_q", "cu_seqlens_q") if named.get(argument) is not None), None
    )
    if sums is None or not sums.numel():
        *batch, queries, heads, _ = q.shape
        return Lengths(prod(batch), queries, k.shape[-3]), heads
    longest = [
        next((named[argument] for argument in names if isinstance(named.get(argument), int)), None)
        for names in _LONGEST
    ]
    return varlen(q.shape[-3], k.shape[-3], sums.numel() - 1, *longest), q.shape[-2]


_LONGEST = (("max_q", "max_seqlen_q"), ("max_k", "max_seqlen_k"))


def _pattern(overload: Any, named: dict[str, Any]) -> Mask:
    """Return which pairs are attended to: causal in one of two ways, and within a window."""
    name = base(overload._schema.name)
    kind = named.get("custom_mask_type")  # of _efficient_attention: 1 from the upper left, 2 to the lower right
    causal = bool(named.get("is_causal")) or kind in (1, 2)
    keys_before, keys_after = named.get("window_size_left"), named.get("window_size_right")
    window = named.get("window_size")  # of _efficient_attention: so many keys up to the query's own
    if isinstance(window, int) and window > 0:
        keys_before = window - 1
    keys_before = keys_before if isinstance(keys_before, int) and keys_before >= 0 else None
    keys_after = 0 if causal else keys_after if isinstance(keys_after, int) and keys_after >= 0 else None
    return Mask(keys_before, keys_after, bottom_right=name in _LOWER_RIGHT or kind == 2)


def _mask(named: dict[str, Any], lengths: Lengths, heads: int) -> Cost:
    """Adding a mask or bias is one addition per score."""
    mask = next((named[name] for name in ("attn_mask", "attn_bias", "bias") if named.get(name) is not None), None)
    if mask is None:
        return Cost()
    return Cost(vector_flops=float(lengths.number * heads * lengths.queries * lengths.keys))


def by_name(overload: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call by their names in the schema."""
    names = [argument.name for argument in overload._schema.arguments]
    return {**dict(zip(names, args, strict=False)), **kwargs}


def _trilinear(
    a: Any, b: Any, c: Any, without_a: Any, without_b: Any, without_c: Any, summed: Any, *_: Any, **__: Any
) -> Cost:
    """Two products: A with B, summed over what C does not have, and the result with C.

    without_a, ...: dimensions of the whole that a factor does not have. `bilinear` calls it with (1, 3), (0), (1, 2).
    """
    lacking = (set(without_a), set(without_b), set(without_c))
    number = a.dim() + len(lacking[0])
    sizes: dict[int, int] = {}
    for factor, without in zip((a, b, c), lacking, strict=True):
        sizes |= zip([dim for dim in range(number) if dim not in without], factor.shape, strict=True)
    first = set(range(number)) - (lacking[0] & lacking[1])
    second = (first - (set(summed) & lacking[2])) | (set(range(number)) - lacking[2])
    return matrix(2.0 * prod(sizes[dim] for dim in first)) + matrix(2.0 * prod(sizes[dim] for dim in second))


_RECURRENT = ("mkldnn_rnn_layer", "_cudnn_rnn")  # and their gradients
#: The formula of each, called with the op's arguments and its result as `out`.
CONTRACTION: dict[str, Callable[..., Cost]] = {
    "mm": _mm,
    "_mm_plus_mm": _mm_plus_mm,
    "_int_mm": _mm,
    "_scaled_mm": _mm,
    **dict.fromkeys(GROUPED, _grouped_mm),
    "_weight_int8pack_mm": _by_packed_weight,
    **dict.fromkeys(GROUPED_WEIGHTS, _by_grouped_weight),
    **dict.fromkeys(INT8_LINEAR, _int8_linear),
    "_sparse_mm": _mm,
    "addmm": _addmm,
    "_addmm_activation": _addmm_activation,
    "bmm": _bmm,
    "baddbmm": _baddbmm,
    "addbmm": _baddbmm,  # the sum over the batch is part of its products
    "mv": _mv,
    "addmv": _addmv,
    "dot": _dot,
    "vdot": _dot,
    "ger": _outer,
    "addr": _addr,
    "linear": _linear,
    "mkldnn_rnn_layer": _mkldnn_rnn_layer,
    "mkldnn_rnn_layer_backward": _mkldnn_rnn_layer_backward,
    "_cudnn_rnn": _cudnn_rnn,
    "_cudnn_rnn_backward": _cudnn_rnn_backward,
    "mkldnn_linear": _linear,
    "convolution": _convolution,
    "_convolution": _convolution,
    "convolution_overrideable": _convolution,
    **dict.fromkeys(("mkldnn_convolution", "miopen_convolution"), _library_convolution),
    "convolution_backward": _convolution_backward,
    "conv_tbc": _conv_tbc,
    "_trilinear": _trilinear,
}


def kind(name: str) -> str:
    """Our op kind of an aten op, for the saved signature."""
    plain = base(name)
    if plain in ATTENTION:
        return "attention"
    if plain in ATTENTION_BACKWARD:
        return "attention_backward"
    if "convolution" in plain or plain == "conv_tbc":
        return "convolution_backward" if plain.endswith("backward") else "convolution"
    if plain in CONTRACTION and not plain.startswith(_RECURRENT):
        return "matmul"
    return linear_algebra.KIND if plain in LINEAR_ALGEBRA else plain.lstrip("_")
