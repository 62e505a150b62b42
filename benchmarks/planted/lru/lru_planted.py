"""The recurrences, with decays in float64, with products in an order that costs more, and over longer signals."""

import jax
from lru import LENGTH, decays, run


def wide():
    """With x64 on, decays of NumPy make states float64, until they are let out."""
    jax.config.update("jax_enable_x64", True)
    return run(decay=decays())


def merged(w, x):
    """One matrix is made of two, which then has the full rank."""
    return x @ (w["in"] @ w["spread"])


def merging():
    return run(taken_in=merged)


def wide_and_merging():
    jax.config.update("jax_enable_x64", True)
    return run(decay=decays(), taken_in=merged)


def longer():
    return run(length=LENGTH + 32)
