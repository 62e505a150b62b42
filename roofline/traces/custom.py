"""A user's own op, given its formula: one function, for live runs and imported traces alike.

    @roofline.formula("mylib::rotary")
    def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Cost:
        return Cost(vector_flops=6.0 * x.numel, bytes_read=..., bytes_written=...)

The function gets the recorded arguments: tensors as `roofline.traces.calls.Tensor` (shape, stride, dtype), the rest as
values. It must return a Cost; what it leaves out is no work, what it sets to None is unknown.
"""

from __future__ import annotations

from collections.abc import Callable

from roofline.core.cost import Cost
from roofline.core.vocabulary import CLASSES, OpClass
from roofline.errors import InputError

_FORMULAS: dict[str, tuple[Callable[..., Cost], OpClass]] = {}


def formula(name: str, op_class: OpClass = "other") -> Callable[[Callable[..., Cost]], Callable[..., Cost]]:
    """Register the formula of op `name` ("namespace::op"), of class `op_class`. InputError where it has one already."""
    if "::" not in name:
        raise InputError(f"A formula needs the op's full name, as in 'mylib::{name}'.")
    if op_class not in CLASSES:
        raise InputError(f"There is no op class {op_class!r}; there are: {', '.join(CLASSES)}.")

    def register(function: Callable[..., Cost]) -> Callable[..., Cost]:
        known = _FORMULAS.get(name)
        # A module that is imported again registers the same function anew.
        if known is not None and known[0].__qualname__ != function.__qualname__:
            raise InputError(f"{name} has a formula already ({known[0].__qualname__}); remove one of the two.")
        _FORMULAS[name] = (function, op_class)
        return function

    return register


def registered(name: str) -> tuple[Callable[..., Cost], OpClass] | None:
    """The formula and class of an op, or None."""
    return _FORMULAS.get(name)


def forget(name: str) -> None:
    """Take a formula back."""
    _FORMULAS.pop(name, None)
