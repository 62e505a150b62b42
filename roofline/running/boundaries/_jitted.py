"""See the calls of JAX's jitted functions, through an object around each that is otherwise like it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Mapping
from functools import cache, partial
from types import MethodType
from typing import Any

from roofline.running.boundaries._functions import CompiledFunctions, name_of, source_of
from roofline.running.boundary import Watcher

FUNCTIONS = CompiledFunctions()
#: A weak reference to an array of what the last call returned, if it returned one.
LAST: list[weakref.ref[Any]] = []


class Jitted:
    """Stand for a jitted function: calls of it are seen, and all else is asked of the function itself."""

    __slots__ = ("__weakref__", "_jitted", "_label", "_source_of", "_traced")

    def __init__(self, jitted: Any, label: str, source_of: Callable[[Watcher], Hashable]) -> None:
        """Remember the jitted function, its name, and what tells it apart, see `CompiledFunctions.call`."""
        set_own = object.__setattr__
        set_own(self, "_jitted", jitted)
        set_own(self, "_label", label)
        set_own(self, "_source_of", source_of)
        set_own(self, "_traced", _traced())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, and report it where it is the outermost one, and runs."""
        if self._traced():
            return self._jitted(*args, **kwargs)
        result = FUNCTIONS.call(self._source_of, self._label, self._jitted, args, kwargs)
        note_result(result)
        return result

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Bind it as a method, as a jitted function is; those of two objects are told apart."""
        if instance is None:
            return self

        def source_of(watcher: Watcher) -> Hashable:
            return self._source_of(watcher), watcher.source(instance, type)

        return MethodType(type(self)(self._jitted, self._label, source_of), instance)

    def __getattr__(self, name: str) -> Any:
        """Ask the function."""
        return getattr(self._jitted, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set it on the function."""
        setattr(self._jitted, name, value)

    def __delattr__(self, name: str) -> None:
        """Delete it from the function."""
        delattr(self._jitted, name)

    def __dir__(self) -> list[str]:
        """List what the function has."""
        return dir(self._jitted)

    def __eq__(self, other: object) -> bool:
        """Compare the functions."""
        return bool(self._jitted == (other._jitted if isinstance(other, Jitted) else other))

    def __hash__(self) -> int:
        """Hash the function."""
        return hash(self._jitted)

    def __repr__(self) -> str:
        """Show the function."""
        return repr(self._jitted)

    @property
    def __doc__(self) -> Any:  # type: ignore[override]
        """Have the function's."""
        return self._jitted.__doc__

    @property
    def __module__(self) -> Any:  # type: ignore[override]
        """Have the function's."""
        return self._jitted.__module__

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the function alone: where it is read, nothing of this is needed."""
        return _same, (self._jitted,)

    @property
    def __class__(self) -> Any:
        """Pass for the function's own type, as `isinstance` asks."""
        return type(self._jitted)

    @__class__.setter
    def __class__(self, new: Any) -> None:
        raise TypeError("the type of a jitted function does not change")


class Gradient(Jitted):
    """Stand for what `jax.grad` or `jax.value_and_grad` made: a call of it trains, compiled or not."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it, and report it where it is part of no compiled function."""
        if self._traced():
            return self._differentiate(*args, **kwargs)
        return FUNCTIONS.call(self._source_of, self._label, self._differentiate, args, kwargs)

    def _differentiate(self, *args: Any, **kwargs: Any) -> Any:
        FUNCTIONS.takes_gradients()
        return self._jitted(*args, **kwargs)


def _jitted(made: Any, function: Any) -> Jitted:
    """Wrap what `jax.jit` made of a function."""
    return Jitted(made, name_of(function), _source_once(function))


def _source_once(function: Any) -> Callable[[Watcher], Hashable]:
    once: Any = cache(partial(source_of, function))
    return once  # type: ignore[no-any-return]


def _same(jitted: Any) -> Any:
    return jitted


def note_result(result: Any) -> None:
    """Keep a weak reference to one array of a result: all arrays of one program are ready at its end."""
    value = result
    while isinstance(value, (tuple, list, dict)) and value:
        value = next(reversed(value.values())) if isinstance(value, dict) else value[-1]
    if hasattr(value, "block_until_ready"):
        LAST[:] = [weakref.ref(value)]


def last_results() -> tuple[object, ...]:
    """Return what is there to wait for of the last call."""
    return tuple(value for value in (reference() for reference in LAST) if value is not None)


@cache
def _traced() -> Callable[[], bool]:
    from jax._src.core import trace_ctx, unsafe_get_trace_stack
    from jax._src.interpreters.partial_eval import DynamicJaxprTrace

    def traced() -> bool:
        """Return whether a jaxpr is made, as of `make_jaxpr` or a scan; under `grad` and `vmap` alone calls do run."""
        return any(isinstance(trace, DynamicJaxprTrace) for trace in unsafe_get_trace_stack(trace_ctx.trace))

    return traced


#: What makes functions that are seen.
_MAKERS = ("jit", "pmap", "grad", "value_and_grad")


def watched_names(namespace: Mapping[str, object]) -> dict[str, object]:
    """Wrap what has a name already, before anybody watched: jitted functions, and what makes them."""
    import jax

    makers = {id(maker.__wrapped__): maker for maker in (getattr(jax, name) for name in _MAKERS)}
    kind = jax.jit(lambda: None).__class__  # also of one that is watched
    by_id: dict[int, object] = {}
    for thing in namespace.values():
        if id(thing) in makers:
            by_id[id(thing)] = makers[id(thing)]
        elif type(thing) is kind:
            by_id[id(thing)] = _jitted(thing, thing)
    return {name: by_id[id(thing)] for name, thing in namespace.items() if id(thing) in by_id}


def watch(watcher: Watcher) -> None:
    """Put such an object around what `jax.jit` and `jax.pmap` return from now on; see compiled ones and gradients."""
    import jax
    from jax._src import api

    def making(original: Callable[..., Any]) -> Callable[..., Any]:
        def jit(*args: Any, **kwargs: Any) -> Any:
            made = original(*args, **kwargs)
            if not args and "fun" not in kwargs and not hasattr(made, "lower"):  # a decorator, from its options alone
                return lambda function: _jitted(made(function), function)
            return _jitted(made, args[0] if args else kwargs["fun"])

        return jit

    def transforming(original: Callable[..., Any]) -> Callable[..., Any]:
        def transform(*args: Any, **kwargs: Any) -> Any:
            gradient = original(*args, **kwargs)
            label = f"jax.{original.__name__}({name_of(args[0] if args else kwargs['fun'])})"
            return Gradient(gradient, label, _source_once(gradient))

        return transform

    def differentiating(original: Callable[..., Any]) -> Callable[..., Any]:
        def vjp(*args: Any, **kwargs: Any) -> Any:
            FUNCTIONS.takes_gradients()
            return original(*args, **kwargs)

        return vjp

    def calling(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            return FUNCTIONS.call(partial(source_of, self), "compiled function", original, (self, *args), kwargs)

        return call

    watcher.wrap(jax, "jit", making)
    watcher.wrap(jax, "pmap", making)
    watcher.wrap(jax, "grad", transforming)
    watcher.wrap(jax, "value_and_grad", transforming)
    watcher.wrap(jax.stages.Compiled, "__call__", calling)
    watcher.wrap(api, "vjp", differentiating)
    watcher.wrap(jax, "vjp", differentiating)
