"""Which functions lose their `jax.jit`: those of the user's files, and of nobody else's."""

from __future__ import annotations

import functools

import jax.numpy as jnp

from roofline.xla import turned
from roofline.xla.jax import roofline_token


def own(x: jnp.ndarray, power: int = 2) -> jnp.ndarray:
    return x**power


def test_functions_of_the_user_s_are_left_as_they_are() -> None:
    before = turned._Left.out
    assert turned._own_left_out(own) is own
    assert turned._own_left_out(static_argnames="power")(own) is own  # as a decorator with options
    bound = functools.partial(own, power=3)
    assert turned._own_left_out(bound) is bound
    assert turned._own_left_out(fun=own) is own
    assert turned._Left.out == before + 4
    turned._Left.out = before


def test_functions_of_libraries_and_ours_are_compiled() -> None:
    before = turned._Left.out
    for function in (jnp.linalg.norm, roofline_token, functools.partial(jnp.linalg.norm, ord=2)):
        assert hasattr(turned._own_left_out(function), "lower")
    assert turned._Left.out == before
