"""The recurrences, with decays in float64, with products in an order that costs more, and over longer signals."""

import jax
from lru import LENGTH, decays, make_step


def wide():
    """With x64 on, decays of NumPy make states float64, until they are let out."""
    jax.config.update("jax_enable_x64", True)
    return make_step(decay=decays())


def merged(w, x):
    """One matrix is made of two, which then has the full rank."""
    return x @ (w["in"] @ w["spread"])


def merging():
    return make_step(taken_in=merged)


def wide_and_merging():
    jax.config.update("jax_enable_x64", True)
    return make_step(decay=decays(), taken_in=merged)


def longer():
    return make_step(length=LENGTH + 32)
