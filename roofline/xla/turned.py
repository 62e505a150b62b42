"""Switches that are turned in a step of the user's: its own `jax.jit` left out, or float64."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import jax

from roofline.core.step import Step

#: Folders of what is installed: what a library compiles stays as it is.
_INSTALLED = frozenset(("site-packages", "dist-packages"))
_jit = jax.jit
_config: Any = jax.config
_update: Callable[[str, Any], None] = _config.update
_X64 = "jax_enable_x64"


class _Left:
    """Count the functions that were left as they are."""

    out = 0


def turn(build: Callable[[], Step], name: str) -> Step:
    """The step with a switch turned off, for good in this process: "jit" or "jax_enable_x64"; see `Backend.turn`."""
    if name == "jit":
        # `jax.disable_jit` would take the functions of JAX apart as well, which no step does that calls them.
        jax.jit = _own_left_out
    elif name == _X64:
        _update(_X64, False)
        _config.update = _without_x64
    return build()


def left_out() -> bool:
    """Tell whether a function was not compiled because of `turn`."""
    return _Left.out > 0


def _without_x64(name: str, value: Any) -> None:
    if name != _X64:
        _update(name, value)


@functools.wraps(_jit)
def _own_left_out(*arguments: Any, **options: Any) -> Any:
    function = arguments[0] if arguments else options.get("fun")
    if function is None:
        return functools.partial(_own_left_out, **options)
    if not _users(function):
        return _jit(*arguments, **options)
    _Left.out += 1
    return function


def _users(function: Any) -> bool:
    """Tell whether a function is neither ours nor from what is installed."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None or str(getattr(function, "__module__", "")).partition(".")[0] == "roofline":
        return False
    return not _INSTALLED.intersection(code.co_filename.split("/"))
