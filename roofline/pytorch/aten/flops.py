"""FLOPs of an aten call: contractions by formula, everything else taken apart into primitives by torch itself.

The call runs on meta tensors under a dispatch mode. What is a primitive of our table is counted; what is not is
decomposed (torch's own decompositions, which are also what its compiler uses) until it is; what cannot be decomposed
is unknown and named. Decompositions checked on torch 2.11 to 2.13, see docs/counting.md for the resulting figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from itertools import zip_longest
from math import prod
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch.utils._python_dispatch import TorchDispatchMode

from roofline.core.cost import Cost, unknown
from roofline.costs import formulas
from roofline.pytorch.aten import bags, linear_algebra, meta_results, quantized, rare, windows
from roofline.pytorch.aten.contractions import CONTRACTION, attention, attention_backward, by_name
from roofline.pytorch.aten.schema import Unresolved
from roofline.pytorch.aten.tables import (
    ACCUMULATING,
    ATTENTION,
    ATTENTION_BACKWARD,
    BAGS,
    ITERATIVE,
    PER_ELEMENT,
    PRIMITIVE,
    RANDOM,
    REDUCTIONS,
    SCANS,
    SCATTERS,
    WORKLESS_CALLS,
    base,
)

#: Results of one call, and calls that one is taken apart into, at most: a trace may ask for any number, and each takes
#: time to make. No call that anybody made comes near.
MOST_RESULTS, MOST_CALLS = 10_000, 20_000


def leaves(value: Any) -> list[torch.Tensor]:
    """All tensors in nested arguments."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in leaves(item)]
    if isinstance(value, dict):
        return [tensor for item in value.values() for tensor in leaves(item)]
    return []


class Counter(TorchDispatchMode):
    """Runs calls on meta tensors and adds up their work. `unknown` names what could not be taken apart.

    Raises Unresolved for a call of more results, or of more calls inside it, than one can have.
    """

    def __init__(self) -> None:
        """Start with no work."""
        super().__init__()  # type: ignore[no-untyped-call]  # torch does not annotate it
        self.cost = Cost()
        self.unknown: list[str] = []
        self.calls = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count one call, or the calls it decomposes into."""
        kwargs = kwargs or {}
        self.calls += 1
        if self.calls > MOST_CALLS:
            raise Unresolved(f"it takes more than {MOST_CALLS} calls to count")
        if _makes_a_list(func):
            _check_results(func, args, kwargs)
        name = base(func._schema.name)
        rule = _rule(name, func)
        if rule is not None:
            # A call without results has none to find out, and some of these have no meta kernel (`_fused_sgd_`).
            out = meta_results.of(name, func, args, kwargs) if func._schema.returns else None
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


@cache
def _makes_a_list(func: Any) -> bool:
    """Tell whether an op makes a list of tensors out of one; one that takes lists makes no more than it was given."""
    arguments, returns = func._schema.arguments, func._schema.returns
    return any(str(result.type) == "List[Tensor]" for result in returns) and not any(
        "List[" in str(argument.type) and "Tensor" in str(argument.type) for argument in arguments
    )


def _check_results(func: Any, args: Any, kwargs: Any) -> None:
    named = by_name(func, args, kwargs)
    tensor, dim, piece = args[0], named.get("dim", 0), named.get("split_size")
    size = tensor.shape[dim] if isinstance(dim, int) and -tensor.dim() <= dim < tensor.dim() else 0
    lists = [len(value) for value in named.values() if isinstance(value, list | tuple)]
    number = next((named[name] for name in ("chunks", "sections") if isinstance(named.get(name), int)), None)
    if number is None:
        number = -(-size // max(1, piece)) if isinstance(piece, int) else max(lists, default=size)
    if number > MOST_RESULTS:
        raise Unresolved(f"it makes {number} tensors, and no more than {MOST_RESULTS} are looked at")


def _functional(func: Any) -> Any:
    """`gelu_` counts as `gelu`: the twin that is not in place, or None."""
    name = func._schema.name.partition("::")[2]
    if not name.endswith("_"):
        return None
    twin = getattr(getattr(torch.ops, func.namespace), name.rstrip("_"), None)
    return getattr(twin, func._overloadname, None)


Rule = Callable[[Any, Any, Any, Any], Cost]
_RULES: dict[str, Rule] = {**windows.RULES, **rare.RULES, **linear_algebra.RULES}


def _rule(name: str, func: Any) -> Rule | None:
    if quantized.is_quantised(func):
        return quantized.RULES.get(name)
    if name in CONTRACTION:
        return lambda f, a, k, out: CONTRACTION[name](*a, **{**k, "out": next(iter(leaves(out)), None)})
    if name in ATTENTION:
        return lambda f, a, k, out: attention(f, a, k)
    if name in ATTENTION_BACKWARD:
        return lambda f, a, k, out: attention_backward(f, a, k)
    if name in WORKLESS_CALLS:
        return lambda f, a, k, out: Cost()
    if name in _RULES:
        return _RULES[name]
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
    if name in BAGS:
        return bags.work
    if name == "histc":
        return _histogram
    if name in ("max", "min") and "other" in [argument.name for argument in func._schema.arguments]:
        return lambda f, a, k, out: _vector("maximum", out)
    if name in REDUCTIONS:
        return _reduction
    if name in ("var", "var_mean", "std", "std_mean"):
        return _variance
    if name in ("linalg_vector_norm", "norm"):
        return lambda f, a, k, out: formulas.norm(a[0].numel(), leaves(out)[0].numel())
    if name == "nll_loss_forward":
        return lambda f, a, k, out: Cost(vector_flops=2.0 * a[1].numel())  # negate and sum
    if name == "nll_loss_backward":
        return lambda f, a, k, out: Cost(vector_flops=1.0 * a[2].numel())
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
    name, named = base(func._schema.name), by_name(func, args, kwargs)
    kind = PRIMITIVE[name]
    if name == "clamp" and (named.get("min") is None or named.get("max") is None):  # a maximum or a minimum alone
        kind = "maximum"
    cost = _vector(kind, out, args)
    return cost + _vector("mul", out, args) if _multiplies(name, named) else cost


#: The argument by which an op multiplies one of its terms, as in x + alpha * y: 1 is no multiplication.
_FACTORS = {
    **dict.fromkeys(("add", "sub", "rsub", "index_add"), "alpha"),
    **dict.fromkeys(("addcmul", "addcdiv"), "value"),
}


def _multiplies(name: str, named: dict[str, Any]) -> bool:
    """Tell if an op multiplies one of its terms by a number of its own, of which lists have one each or for all."""
    factor = named.get(_FACTORS.get(name, ""), 1)
    many = named.get("scalars") if name in _FACTORS else None
    return many is not None or not (factor is None or (isinstance(factor, int | float) and factor == 1))


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
    if name in SCANS:
        outputs = inputs // max(1, args[0].shape[args[1]] if args[0].dim() else 1)
    cost = formulas.reduction(inputs, outputs, mean=name == "mean")
    if leaves(out)[0].is_floating_point() or args[0].is_floating_point():
        return cost
    return Cost(int_ops=cost.vector_flops)


def _variance(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    outputs = leaves(out)[0].numel()
    cost = formulas.variance(args[0].numel(), outputs)
    return cost + Cost(functions={"sqrt": float(outputs)}) if "std" in func._schema.name else cost


def touched(name: str, arguments: dict[str, Any]) -> int:
    """Count the elements that a scatter writes; where a mask says it, which is data, those of its values."""
    target = arguments["self"]
    if name in ("index_put", "_index_put_impl"):
        indices = list(arguments["indices"])
        if is_masked(indices):
            return int(arguments["values"].numel())
        indexed = torch.broadcast_shapes(*[index.shape for index in indices if index is not None])
        unindexed = [size for size, index in zip_longest(target.shape, indices) if index is None]
        return int(prod(indexed) * prod(unindexed))
    if name in ("index_copy", "index_add", "index_reduce"):
        return int(arguments["source"].numel())
    index = int(arguments["index"].numel())
    if name == "index_fill":
        return int(index * target.numel() // max(1, target.shape[arguments["dim"]] if target.dim() else 1))
    return index


def is_masked(indices: Any) -> bool:
    """Tell whether some of the indices are masks, so that what they pick depends on data."""
    return any(index.dtype in (torch.bool, torch.uint8) for index in leaves(indices))


def accumulates(name: str, arguments: dict[str, Any]) -> bool:
    """Tell whether a scatter combines its values with what is there, instead of replacing it."""
    return name in ACCUMULATING or bool(arguments.get("accumulate")) or arguments.get("reduce") is not None


def _scatter(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    name, arguments = base(func._schema.name), by_name(func, args, kwargs)
    if not accumulates(name, arguments):
        return Cost()
    number = float(touched(name, arguments))
    if _multiplies(name, arguments):
        number *= 2
    if arguments.get("reduce") == "mean":  # by how many were added up
        number += args[0].numel()
    return Cost(vector_flops=number) if args[0].is_floating_point() else Cost(int_ops=number)


def _histogram(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    named = by_name(func, args, kwargs)
    least, largest = named.get("min", 0), named.get("max", 0)
    return formulas.histogram(args[0].numel(), range_known=least != largest)


def of_results(overload: Any, args: Any, kwargs: Any, out: Any) -> Cost | None:
    """The work of an op that torch cannot run on meta tensors, by the results that were recorded; None: no rule."""
    rule = _rule(base(overload._schema.name), overload)
    return None if rule is None else rule(overload, args, kwargs, out[0] if len(out) == 1 else out)


def without_meta(name: str, args: Any, kwargs: Any) -> Cost:
    """Count the work of an op of which the sizes of results depend on data."""
    if name == "histogram":
        if isinstance(args[1], torch.Tensor):  # edges, between which each element is sought by comparing
            return Cost(vector_flops=float(args[0].numel()))
        return formulas.histogram(args[0].numel(), range_known=kwargs.get("range") is not None)
    if name == "bincount":
        number = float(args[0].numel())
        return Cost(int_ops=number) if len(args) < 2 or args[1] is None else Cost(vector_flops=number)
    return Cost()


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
    return Cost(vector_flops=flops * number, functions={name: times * number for name, times in functions.items()})


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

    def count_elements(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
        number = float(sum(tensor.numel() for tensor in leaves(args[0])))
        cost = formulas.elementwise(kind, number)
        factor = formulas.elementwise("mul", number) if _multiplies(name, by_name(func, args, kwargs)) else Cost()
        return cost + factor

    return count_elements


def count(overload: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Cost, Any]:
    """(work of one call, its results as meta tensors). What is not known is unknown, with the op named."""
    with Counter() as counter:
        out = overload(*args, **kwargs)
    return without_rule(counter.unknown) if counter.unknown else counter.cost, out


def without_rule(names: Iterable[str]) -> Cost:
    """The work of a call that is made of these and of what is known."""
    names = list(dict.fromkeys(names))
    if ITERATIVE.issuperset(names):
        return unknown(f"{', '.join(names)}: how much it computes depends on its numbers")
    return unknown(f"no rule for {', '.join(names)}")
