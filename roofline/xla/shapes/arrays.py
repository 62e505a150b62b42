"""JAX's arrays without data: a model of billions of parameters on a machine that could not hold it.

JAX hands each op that is called to the trace that is active. The one here makes arrays that have a shape and a type and
nothing else, whatever the op is, and runs nothing. Only a few numbers made of known ones, as a learning rate, are kept
while a model is built; in a step there are none, and what it starts is noted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NoReturn

import jax
import numpy as np
from jax.core import Trace, Tracer
from jax.extend.core import set_current_trace
from jax.extend.core.primitives import device_put_p, jit_p

from roofline.recording.backend import NeedsData
from roofline.xla.shapes import active
from roofline.xla.shapes.program import Program

#: Arrays of up to so many elements have their numbers while a model is built. By choice: 256 KB in fp32.
_FEW = 65_536


class ArrayWithoutData(Tracer[Any]):
    """Stand for what an op made. Raises NeedsData where somebody asks for its numbers."""

    __slots__ = ()

    @property
    def device(self) -> jax.Device:
        """Return where JAX would put it."""
        return jax.devices()[0]

    def __array__(self, dtype: Any = None, context: None = None, copy: bool | None = None) -> np.ndarray:
        """Zeros, which take no memory, where a step hands over its results."""
        aval: Any = self.aval
        self._trace.hand_over(aval)
        return np.broadcast_to(np.zeros((), dtype or aval.dtype), aval.shape)

    def _numbers(self, *_: object, **__: object) -> NoReturn:
        raise NeedsData(f"the numbers of {self.aval.str_short()}")

    __bool__ = __int__ = __float__ = __complex__ = __index__ = tolist = _numbers


class Shapes(Trace):
    """Makes arrays without data, and notes the programs that a step starts."""

    def __init__(self, hands_over: bool = False) -> None:
        """hands_over: whether a step ends by making numpy arrays of its results, whose numbers nobody looks at."""
        super().__init__()  # type: ignore[no-untyped-call]
        self._hands_over = hands_over
        self._started: list[Program] | None = None
        self._ended = False

    @contextmanager
    def step(self) -> Iterator[list[Program]]:
        """While active, a step runs; the programs that it starts, each as often as it does."""
        self._started, self._ended = [], False
        try:
            yield self._started
        finally:
            self._started = None

    def hand_over(self, aval: Any) -> None:
        """Ends the step. Raises NeedsData where it does not hand over its results, but asks for numbers."""
        if self._started is None or not self._hands_over:
            raise NeedsData(f"the numbers of {aval.str_short()}")
        self._ended = True

    def stage_value(self, val: Any) -> Any:
        """A value as an array."""
        if isinstance(val, jax.Array):
            return val
        aval = jax.typeof(val)
        if self._started is not None or aval.size > _FEW:
            return ArrayWithoutData(self, aval)
        with jax.core.eval_context():
            return jax.numpy.asarray(val)

    def process_primitive(self, primitive: Any, tracers: Sequence[Any], params: dict[str, Any], /) -> Any:
        """Return what an op makes. In a step an op by itself is a program, as where there are data."""
        if self._started is not None and primitive is not device_put_p:
            if primitive is not jit_p:
                with set_current_trace(self):
                    return _alone(primitive, **params)(*tracers)
            if self._ended:
                raise NeedsData("the numbers of a result before it ends")
            self._started.append(Program.of(tracers, params))
        results, _ = primitive.abstract_eval(*map(jax.typeof, tracers), **params)
        several = results if primitive.multiple_results else [results]
        has_data = not any(isinstance(tracer, ArrayWithoutData) for tracer in tracers)
        if self._started is None and has_data and all(result.size <= _FEW for result in several):
            with jax.core.eval_context():
                return primitive.bind(*tracers, **params)
        arrays = [ArrayWithoutData(self, result) for result in several]
        return arrays if primitive.multiple_results else arrays[0]

    def process_custom_jvp_call(self, primitive: Any, fun: Any, jvp: Any, tracers: Any, /, **_: object) -> Any:
        """A function with a derivative of its own: what it does."""
        return self._called(fun, tracers)

    def process_custom_vjp_call(
        self, primitive: Any, fun: Any, fwd: Any, bwd: Any, tracers: Any, /, **_: object
    ) -> Any:
        """A function with a derivative of its own: what it does."""
        return self._called(fun, tracers)

    def _called(self, fun: Any, tracers: Any) -> Any:
        with set_current_trace(self):
            return fun.call_wrapped(*tracers)


@cache
def _alone(primitive: Any, **params: Any) -> Callable[..., Any]:
    """A program that is one op, of its name."""

    def one(*arguments: Any) -> Any:
        return primitive.bind(*arguments, **params)

    one.__name__ = one.__qualname__ = primitive.name
    return jax.jit(one)


@contextmanager
def without_data(hands_over: bool = False) -> Iterator[None]:
    """While active, arrays that are made have no data. Raises NeedsData where somebody asks for it, and beside a GPU.

    hands_over: as in `Shapes`.
    """
    if jax.default_backend() != "cpu":
        raise NeedsData("a run to see which kernels a GPU launches")
    shapes = Shapes(hands_over)
    token = active.set(shapes)
    try:
        with set_current_trace(shapes):
            yield
    finally:
        active.reset(token)
