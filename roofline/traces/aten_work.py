"""FLOPs of an aten call: contractions by formula, everything else taken apart into primitives by torch itself.

The call runs on meta tensors under a dispatch mode. What is a primitive of our table is counted; what is not is
decomposed (torch's own decompositions, which are also what its compiler uses) until it is; what cannot be decomposed
is unknown and named. Decompositions checked on torch 2.11 to 2.13, see docs/counting.md for the resulting figures.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from math import prod
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch.utils._python_dispatch import TorchDispatchMode

from roofline.core import formulas
from roofline.core.cost import Cost, unknown
from roofline.traces.aten_kinds import (
    ACCUMULATING,
    ATTENTION,
    ATTENTION_BACKWARD,
    PER_ELEMENT,
    PRIMITIVE,
    RANDOM,
    REDUCTIONS,
    SCATTERS,
    WORKLESS_CALLS,
    base,
)


def leaves(value: Any) -> list[torch.Tensor]:
    """All tensors in nested arguments."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in leaves(item)]
    if isinstance(value, dict):
        return [tensor for item in value.values() for tensor in leaves(item)]
    return []


# ------------------------------------------------------------------------------------------------ contractions


def _bias(out: torch.Tensor) -> Cost:
    """One addition per output element: kept out of the matrix FLOPs, as FlopCounterMode does."""
    return Cost(vector_flops=float(out.numel()))


def _mm(a: Any, b: Any, *_: Any, **__: Any) -> Cost:
    return formulas.matmul(a.shape[0], b.shape[1], a.shape[1])


def _added(kwargs: dict[str, Any], out: torch.Tensor) -> Cost:
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


def _attention(overload: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Cost:
    named = by_name(overload, args, kwargs)
    q, k, v = named["query"], named["key"], named["value"]
    if overload._schema.name.endswith(("_flash_attention_forward", "_efficient_attention_forward")):
        q, k, v = (t.transpose(-2, -3) for t in (q, k, v))  # these two are [batch, length, heads, width]
    cost = formulas.attention(*_attention_shape(q, k, v), causal=bool(named.get("is_causal")))
    return cost + _mask(named, q, k)


def _attention_backward(overload: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Cost:
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


_CONTRACTION: dict[str, Callable[..., Cost]] = {
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
    if plain in _CONTRACTION:
        return "matmul"
    return plain.lstrip("_")


# ------------------------------------------------------------------------------------------------ vector work


class Counter(TorchDispatchMode):
    """Runs calls on meta tensors and adds up their work. `unknown` names what could not be taken apart."""

    def __init__(self) -> None:
        """Start with no work."""
        super().__init__()
        self.cost = Cost()
        self.unknown: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count one call, or the calls it decomposes into."""
        kwargs = kwargs or {}
        name = base(func._schema.name)
        rule = _rule(name, func)
        if rule is not None:
            # A call without results has none to find out, and some of these have no meta kernel (`_fused_sgd_`).
            out = func(*args, **kwargs) if func._schema.returns else None
            self.cost = self.cost + rule(func, args, kwargs, out)
            return out
        if func.is_view:
            return func(*args, **kwargs)
        decomposed = decomposition_table.get(func) or decomposition_table.get(_functional(func))
        if decomposed is not None:
            with self:
                result = decomposed(*args, **kwargs)
            if result is not NotImplemented:
                return result
        with self:
            result = func.decompose(*args, **kwargs)
        if result is not NotImplemented:
            return result
        self.unknown.append(name)
        return func(*args, **kwargs)


def _functional(func: Any) -> Any:
    """`gelu_` counts as `gelu`: the twin that is not in place, or None."""
    name = func._schema.name.partition("::")[2]
    if not name.endswith("_"):
        return None
    twin = getattr(getattr(torch.ops, func.namespace), name.rstrip("_"), None)
    return getattr(twin, func._overloadname, None)


Rule = Callable[[Any, Any, Any, Any], Cost]


def _rule(name: str, func: Any) -> Rule | None:
    if name in _CONTRACTION:
        return lambda f, a, k, out: _CONTRACTION[name](*a, **{**k, "out": (leaves(out) or [None])[0]})
    if name in ATTENTION:
        return lambda f, a, k, out: _attention(f, a, k)
    if name in ATTENTION_BACKWARD:
        return lambda f, a, k, out: _attention_backward(f, a, k)
    if name in WORKLESS_CALLS:
        return lambda f, a, k, out: Cost()
    if name.startswith("_fused_"):
        return _fused_optimizer(name)
    if name.startswith("_foreach_"):
        return _foreach(name.removeprefix("_foreach_"))
    if name in RANDOM:
        return _random
    if name in PER_ELEMENT:
        return _per_element
    if name in SCATTERS:
        return _scatter
    if name in ("max", "min") and "other" in [argument.name for argument in func._schema.arguments]:
        return lambda f, a, k, out: _vector("maximum", out)
    if name in REDUCTIONS:
        return _reduction
    if name in ("var", "var_mean", "std", "std_mean"):
        return _variance
    if name in ("linalg_vector_norm", "norm"):
        return lambda f, a, k, out: formulas.norm(a[0].numel(), leaves(out)[0].numel())
    if name in ("max_pool2d_with_indices", "avg_pool2d", "_adaptive_avg_pool2d"):
        return _pool
    if name == "nll_loss_forward":
        return lambda f, a, k, out: Cost(vector_flops=2.0 * a[1].numel())  # negate and sum
    if name == "nll_loss_backward":
        return lambda f, a, k, out: Cost(vector_flops=1.0 * a[2].numel())
    if name in ("avg_pool2d_backward", "_adaptive_avg_pool2d_backward"):
        return _average_backward
    if name == "pow":
        return _power
    if name in PRIMITIVE:
        return _primitive
    return None


def _vector(kind: str, out: Any, inputs: Any = ()) -> Cost:
    """A primitive per output element; integer arithmetic goes to int_ops."""
    results = leaves(out)
    number = max((tensor.numel() for tensor in results), default=0)
    floating = any(t.is_floating_point() or t.is_complex() for t in [*results, *leaves(inputs)])
    cost = formulas.elementwise(kind, number)
    if floating:
        return cost
    work = (cost.vector_flops or 0.0) + (number if kind in ("bit", "logical") else 0.0)
    return Cost(int_ops=work) if work else Cost()


def _primitive(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    name = base(func._schema.name)
    cost = _vector(PRIMITIVE[name], out, args)
    alpha = by_name(func, args, kwargs).get("alpha", 1)
    if name in ("add", "sub", "rsub") and alpha not in (1, 1.0, None):
        return 2 * cost  # x + alpha * y is a multiplication more
    return cost


def _power(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    """ATen turns small constant exponents into what they are: x*x, x*x*x, sqrt, 1/x."""
    exponent = args[1] if len(args) > 1 else None
    simple = {2: ("mul", 1), 3: ("mul", 2), 0.5: ("sqrt", 1), -0.5: ("rsqrt", 1), 1: ("copy", 1), -1: ("div", 1)}
    if isinstance(exponent, int | float) and exponent in simple:
        kind, times = simple[exponent]
        return times * _vector(kind, out, args)
    return _vector("pow", out, args)


def _reduction(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    name = base(func._schema.name)
    inputs, outputs = args[0].numel(), leaves(out)[0].numel()
    if name in ("cumsum", "cumprod"):
        outputs = inputs // max(1, args[0].shape[args[1]] if args[0].dim() else 1)
    cost = formulas.reduction(inputs, outputs, mean=name == "mean")
    if leaves(out)[0].is_floating_point() or args[0].is_floating_point():
        return cost
    return Cost(int_ops=cost.vector_flops)


def _variance(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    outputs = leaves(out)[0].numel()
    cost = formulas.variance(args[0].numel(), outputs)
    return cost + Cost(functions={"sqrt": float(outputs)}) if "std" in func._schema.name else cost


def _pool(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    """Each output is a reduction of its window; windows are taken whole."""
    result, name = leaves(out)[0], base(func._schema.name)
    if name == "_adaptive_avg_pool2d":
        window = args[0].numel() / max(1, result.numel())
    else:
        size = list(args[1])
        window = float(size[0] * size[-1])
    return formulas.reduction(window * result.numel(), result.numel(), mean=name != "max_pool2d_with_indices")


def _average_backward(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    """Each gradient is divided by the size of its window once, and added to every input of it."""
    gradients = args[0].numel()
    if "adaptive" in func._schema.name:
        return Cost(vector_flops=float(gradients + args[1].numel()))
    size = list(args[2])
    return Cost(vector_flops=(1.0 + size[0] * size[-1]) * gradients)


def touched(name: str, arguments: dict[str, Any]) -> int:
    """How many elements of its target a scatter writes; where a mask says it, which is data, those of its values."""
    target = arguments["self"]
    if name in ("index_put", "_index_put_impl"):
        indices = list(arguments["indices"])
        if is_masked(indices):
            return arguments["values"].numel()
        indexed = torch.broadcast_shapes(*[index.shape for index in indices if index is not None])
        whole = [size for size, index in zip_longest(target.shape, indices) if index is None]
        return prod(indexed) * prod(whole)
    if name in ("index_copy", "index_add"):
        return arguments["source"].numel()
    index = arguments["index"].numel()
    if name == "index_fill":
        return index * target.numel() // max(1, target.shape[arguments["dim"]] if target.dim() else 1)
    return index


def is_masked(indices: Any) -> bool:
    """Whether some of the indices are masks, so that what they pick depends on data."""
    return any(index.dtype in (torch.bool, torch.uint8) for index in leaves(indices))


def accumulates(name: str, arguments: dict[str, Any]) -> bool:
    """Whether a scatter combines its values with what is there, instead of replacing it."""
    return name in ACCUMULATING or bool(arguments.get("accumulate")) or arguments.get("reduce") is not None


def _scatter(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    name, arguments = base(func._schema.name), by_name(func, args, kwargs)
    if not accumulates(name, arguments):
        return Cost()
    number = float(touched(name, arguments))
    return Cost(vector_flops=number) if args[0].is_floating_point() else Cost(int_ops=number)


def _random(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    results = leaves(out)
    number = max((tensor.numel() for tensor in results), default=0)
    name = base(func._schema.name)
    if name == "native_dropout" and len(args) > 2 and args[2] is False:
        return Cost()
    return formulas.random(number) + Cost(vector_flops=RANDOM[name] * number)


def _per_element(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    flops, functions = PER_ELEMENT[base(func._schema.name)]
    number = sum(tensor.numel() for tensor in leaves(args[0]))
    return Cost(vector_flops=flops * number, functions={name: each * number for name, each in functions.items()})


def _fused_optimizer(name: str) -> Rule | None:
    rule = name.removeprefix("_fused_")
    if rule not in formulas.OPTIMIZER_UPDATE:
        return _per_element if name in PER_ELEMENT else _random if name in RANDOM else None

    def count(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
        named = by_name(func, args, kwargs)
        elements = float(sum(tensor.numel() for tensor in leaves(args[0])))
        kind = "sgd-momentum" if rule == "sgd" and named.get("momentum") else rule
        cost = formulas.optimizer_update(kind, elements)
        if rule != "adamw" and named.get("weight_decay"):
            cost = cost + Cost(vector_flops=2.0 * elements)
        return cost

    return count


def _foreach(name: str) -> Rule | None:
    """A list form is its element form over all elements; `_foreach_norm` is a norm per tensor."""
    if name == "norm":

        def norms(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
            return formulas.norm(sum(t.numel() for t in leaves(args[0])), len(leaves(args[0])))

        return norms
    kind = PRIMITIVE.get(name)
    if kind is None:
        return None

    def each(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
        number = float(sum(tensor.numel() for tensor in leaves(args[0])))
        cost = formulas.elementwise(kind, number)
        alpha = by_name(func, args, kwargs).get("alpha", 1)
        return 2 * cost if name in ("add", "sub") and alpha not in (1, 1.0, None) else cost

    return each


def count(overload: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Cost, Any]:
    """(work of one call, its results as meta tensors). What is not known is unknown, with the op named."""
    with Counter() as counter:
        out = overload(*args, **kwargs)
    if counter.unknown:
        names = ", ".join(dict.fromkeys(counter.unknown))
        return unknown(f"no rule for {names}"), out
    return counter.cost, out
