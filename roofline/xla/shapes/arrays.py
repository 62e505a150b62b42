"""JAX's arrays without data: a model of billions of parameters on a machine that could not hold it.

JAX hands each op that is called to the trace that is active. The one here makes arrays that have a shape and a type and
nothing else, whatever the op is, and runs nothing; the programs that a step starts it keeps, to be compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, NoReturn

import jax
from jax.core import Trace, Tracer
from jax.extend.core import jaxpr_as_fun, set_current_trace
from jax.extend.core.primitives import device_put_p, jit_p

from roofline.recording.backend import NeedsData


class ArrayWithoutData(Tracer):  # type: ignore[misc]
    """What an op made. Raises NeedsData where somebody asks for its numbers."""

    __slots__ = ()

    @property
    def device(self) -> jax.Device:
        """Where JAX would put it."""
        return jax.devices()[0]

    def _numbers(self, *_: object, **__: object) -> NoReturn:
        raise NeedsData(f"the numbers of an array {self.aval.str_short()}")

    __bool__ = __int__ = __float__ = __complex__ = __index__ = __array__ = tolist = _numbers


class Shapes(Trace):  # type: ignore[misc]
    """Makes arrays without data, and notes the programs that are started while somebody asks for them."""

    #: That in which arrays are made now.
    active: ClassVar[Shapes | None] = None

    def __init__(self) -> None:
        """Nobody asks for programs."""
        super().__init__()
        self._noted: list[jax.stages.Lowered] | None = None

    @contextmanager
    def noted(self) -> Iterator[list[jax.stages.Lowered]]:
        """The programs that are started inside, as XLA would be given them; each as often as it is started."""
        self._noted = []
        try:
            yield self._noted
        finally:
            self._noted = None

    def stage_value(self, val: Any) -> Any:
        """A value as an array."""
        return val if isinstance(val, ArrayWithoutData) else ArrayWithoutData(self, jax.typeof(val))

    def process_primitive(self, primitive: Any, tracers: Sequence[Any], params: dict[str, Any], /) -> Any:
        """What an op makes. One that stands alone is a program, as where there are data."""
        if self._noted is not None and primitive is jit_p:
            self._noted.append(_lowered(tracers, **params))
        elif self._noted is not None and primitive is not device_put_p:
            with set_current_trace(self):
                return jax.jit(_alone(primitive, params))(*tracers)
        made, _ = primitive.abstract_eval(*map(jax.typeof, tracers), **params)
        if primitive.multiple_results:
            return [ArrayWithoutData(self, one) for one in made]
        return ArrayWithoutData(self, made)

    def process_custom_jvp_call(self, primitive: Any, fun: Any, jvp: Any, tracers: Any, /, **_: object) -> Any:
        """A function with a derivative of its own: what it does."""
        return self._called(fun, tracers)

    def process_custom_vjp_call(self, primitive: Any, fun: Any, fwd: Any, bwd: Any, tracers: Any, /, **_: object) -> Any:
        """A function with a derivative of its own: what it does."""
        return self._called(fun, tracers)

    def _called(self, fun: Any, tracers: Any) -> Any:
        with set_current_trace(self):
            return fun.call_wrapped(*tracers)


def _alone(primitive: Any, params: Mapping[str, Any]) -> Callable[..., Any]:
    """A function that is one op, of its name."""

    def one(*given: Any) -> Any:
        return primitive.bind(*given, **params)

    one.__name__ = one.__qualname__ = primitive.name
    return one


def _lowered(given: Sequence[Any], /, **params: Any) -> jax.stages.Lowered:
    """A program as XLA is given it where there are data."""

    def program(*arrays: Any) -> Any:
        return jaxpr_as_fun(params["jaxpr"])(*arrays)

    program.__name__ = program.__qualname__ = params["name"]
    donated = tuple(number for number, gone in enumerate(params["donated_invars"]) if gone)
    with jax.core.eval_context():
        jitted = jax.jit(program, donate_argnums=donated, keep_unused=params["keep_unused"])
        return jitted.lower(*(_of_its_type(jax.typeof(one)) for one in given))


def _of_its_type(aval: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)


@contextmanager
def without_data() -> Iterator[None]:
    """While active, arrays that are made have no data. Raises NeedsData where somebody asks for it, and beside a GPU."""
    if jax.default_backend() != "cpu":
        raise NeedsData("which kernels a program launches on a GPU")
    before, Shapes.active = Shapes.active, Shapes()
    try:
        with set_current_trace(Shapes.active):
            yield
    finally:
        Shapes.active = before
