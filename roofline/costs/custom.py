"""An op of one's own, given its formula: one function, for live runs and imported traces alike.

    @roofline.formula("mylib::rotary")
    def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Cost:
        return Cost(vector_flops=6.0 * x.numel, bytes_read=..., bytes_written=...)

The function gets the recorded arguments: tensors as `roofline.costs.calls.Tensor` (shape, stride, dtype), the rest as
values. It must return a Cost; what it leaves out is no work, what it sets to None is unknown.

Formulas of libraries that many use come with this package, in roofline/costs/libraries/, one file per library; they are
loaded when the first op is looked up, and a formula of the user's for the same op goes before them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

from roofline.core.cost import Cost, unknown
from roofline.core.vocabulary import CLASSES, FLOATING, PRODUCTS, OpClass
from roofline.costs.calls import Call, Tensor, describe, tensors
from roofline.costs.context import Context
from roofline.costs.counted import Access, Costed
from roofline.costs.dtypes import DTYPES, computed, of_most
from roofline.errors import InputError, reason

#: What a formula returns: the work, and, where the arguments do not show it, the type that it computes in ("fp8").
Work = Cost | tuple[Cost, str]

_NUMBER = re.compile(r"_\d+$")
_PACKAGE = "roofline.costs.libraries"


@dataclass(frozen=True, slots=True)
class Formula:
    """Hold the formula registered for an op. forward, context: see `formula`."""

    function: Callable[..., Work]
    op_class: OpClass
    forward: str = ""
    context: bool = False


_FORMULAS: dict[str, Formula] = {}
_SUPPLIED: dict[str, Formula] = {}  # by this package
_loading: list[bool] = []  # empty: not begun; [True]: at it; [False]: done


def formula(
    name: str, op_class: OpClass = "other", forward: str = "", context: bool = False
) -> Callable[[Callable[..., Work]], Callable[..., Work]]:
    """Register the formula of op `name` ("namespace::op"), of class `op_class`. InputError where it has one already.

    forward: for a node of the backward pass that is recorded with its gradients only ("torch::autograd::CppNode<...>"),
    the op of the forward pass that made it: its recorded arguments follow the node's own.
    context: in imported traces the function's first argument is then the call's `roofline.costs.context.Context`: the
    kernels that it launched, the calls inside it, and the batch of its step; elsewhere an empty one.

    The function gets the op's recorded arguments and returns its Cost [FLOP, byte].

    >>> @roofline.formula("mine::scale", op_class="pointwise")
    ... def scale(x, factor):
    ...     size = 4.0 * x.numel  # of float32
    ...     return roofline.Cost(vector_flops=x.numel, bytes_read=size, bytes_written=size)
    """
    if "::" not in name:
        raise InputError(f"A formula needs the op's full name, as in 'mylib::{name}'.")
    if op_class not in CLASSES:
        raise InputError(f"There is no op class {op_class!r}; there are: {', '.join(CLASSES)}.")

    def register(function: Callable[..., Work]) -> Callable[..., Work]:
        table = _SUPPLIED if _loading == [True] else _FORMULAS
        registered = table.get(name)
        # A module that is imported again registers the same function anew.
        if registered is not None and registered.function.__qualname__ != function.__qualname__:
            raise InputError(
                f"{name} has a formula already ({registered.function.__qualname__}); remove one of the two."
            )
        table[name] = Formula(function, op_class, forward, context)
        return function

    return register


def has_formulas() -> bool:
    """Tell whether the user registered a formula, which only this process knows."""
    return bool(_FORMULAS)


def registered(name: str) -> tuple[Callable[..., Work], OpClass] | None:
    """The formula and class of an op, or None."""
    formula = entry(name)
    if formula is None:
        return None
    return partial(formula.function, Context()) if formula.context else formula.function, formula.op_class


def entry(name: str) -> Formula | None:
    """Return the formula registered for an op, by the user or by this package.

    The number that a tool gives to each function that it wraps is no part of the package's names.
    """
    if name.startswith("aten::"):
        return _FORMULAS.get(name)  # none of the package's is for these
    _load()
    return _FORMULAS.get(name) or _SUPPLIED.get(name) or _SUPPLIED.get(_NUMBER.sub("", name))


def _load() -> None:
    if _loading:
        return
    _loading.append(True)
    try:
        for path in sorted((Path(__file__).parent / "libraries").glob("[a-z]*.py")):
            import_module(f"{_PACKAGE}.{path.stem}")
    finally:
        _loading[0] = False


def cost(call: Call, function: Callable[..., Work], op_class: OpClass) -> Costed:
    """A call by its formula; its bytes are put on the arguments and results in proportion to their size.

    Arguments that the formula cannot take (a trace of another version of the library, a damaged one) leave the call
    unknown, with the formula's own reason.
    """
    arithmetic: str | None = None
    try:
        work = function(*call.inputs)
        if isinstance(work, tuple):
            work, arithmetic = work
    except Exception as error:  # a user's code, on whatever a trace holds
        work = unknown(f"its formula does not fit the recorded arguments ({reason(error)[:150]})")
    arguments, results = list(tensors(call.inputs)), list(tensors(call.outputs or ()))
    types = [DTYPES.get(tensor.dtype, (tensor.dtype, 0))[0] for tensor in arguments]
    output = of_most((DTYPES.get(result.dtype, (result.dtype, 0))[0], _bytes(result)) for result in results)
    floating = next((dtype for dtype in types if dtype in FLOATING), None)
    return Costed(
        cost=work,
        kind=call.name.partition("::")[2].rstrip("_").lstrip("_") or call.name,
        op_class=op_class,
        shapes=describe(call),
        dtype=arithmetic or computed(types, output, op_class in PRODUCTS or bool(work.flops)),
        output=output or floating,
        reads=_divide(work.bytes_read, arguments, True) or _elsewhere(work.bytes_read, arguments, True),
        writes=_divide(work.bytes_written, results, False)
        or _divide(work.bytes_written, arguments[:1], True)
        or _elsewhere(work.bytes_written, results, False),
    )


def _bytes(tensor: Tensor) -> float:
    return float(tensor.distinct * DTYPES.get(tensor.dtype, ("", 1))[1])


def _divide(total: float | None, many: list[Tensor], is_input: bool) -> tuple[Access, ...]:
    sizes = list(map(_bytes, many))
    summed = sum(sizes)
    if not total or not summed:
        return ()
    return tuple((is_input, number, total * size / summed) for number, size in enumerate(sizes))


def _elsewhere(total: float | None, many: list[Tensor], is_input: bool) -> tuple[Access, ...]:
    """Bytes that no recorded tensor can hold, such as those of results of a trace: one buffer more, nobody knows which.

    Left out they would be moved by nothing, and have no main memory above them.
    """
    return ((is_input, len(many), total),) if total else ()
