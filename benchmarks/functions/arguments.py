"""Arguments to call a function with: arrays by name, and calls to try where none is written down for it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray


def arrays() -> dict[str, NDArray[Any]]:
    """Small arrays by name, equal in each process.

    x, y, z [4, 6]; u, v [6]; m, n positive definite [6, 6]; t, s [2, 4, 6]; batch [2, 6, 6] of m; signal [2, 3, 16],
    image [2, 3, 8, 8] and volume [1, 2, 6, 6, 6] with channels first, filters of four channels for each: k1, k2, k3;
    i, j [4, 6] and p [6] integers below 4; b [4, 6] truths; c, d [4, 6] and e [6, 6] complex. All numbers lie between
    0 and 1. nhwc, ndhwc, hwio: image, volume and k2 with channels last.
    """
    draws = np.random.default_rng(0)

    def real(*shape: int) -> NDArray[Any]:
        return draws.uniform(0.1, 0.9, shape).astype(np.float32)

    def whole(*shape: int) -> NDArray[Any]:
        return draws.integers(0, 4, shape)

    named: dict[str, NDArray[Any]] = {name: real(4, 6) for name in "xyz"} | {name: real(6) for name in "uv"}
    named |= {name: real(6, 6) / 6 + np.eye(6, dtype=np.float32) for name in "mn"}
    named |= {name: value @ value.T for name, value in named.items() if name in "mn"}
    named |= {name: real(2, 4, 6) for name in "ts"} | {"batch": np.stack((named["m"], named["n"]))}
    named |= {"signal": real(2, 3, 16), "image": real(2, 3, 8, 8), "volume": real(1, 2, 6, 6, 6)}
    named |= {"k1": real(4, 3, 3), "k2": real(4, 3, 3, 3), "k3": real(4, 2, 3, 3, 3)}
    named |= {"i": whole(4, 6), "j": whole(4, 6), "p": whole(6), "b": real(4, 6) > 0.5}
    named |= {name: (real(4, 6) + 1j * real(4, 6)).astype(np.complex64) for name in "cd"}
    named |= {"nhwc": named["image"].transpose(0, 2, 3, 1), "ndhwc": named["volume"].transpose(0, 2, 3, 4, 1)}
    named |= {"hwio": named["k2"].transpose(2, 3, 1, 0), "e": (named["m"] + 0.1j * named["n"]).astype(np.complex64)}
    return {name: np.ascontiguousarray(value) for name, value in named.items()}


#: What is tried as the first argument, or the first two, and what may stand behind it.
_FIRST = ("x", "m", "t", "i", "b", "c", "v", "[x, y]", "image", "signal", "volume", "(4, 6)", "6")
_NEXT = ("y", "n", "s", "j", "0", "1", "2", "(1, 0)", "v", "p", "0.5", "k2", "k1", "k3", "[2, 2]", "(4, 6)", "b", "d")


def calls() -> Iterator[str]:
    """Calls of a function `f` to try in turn: what takes few arguments and floating numbers first."""
    yield from (f"f({first})" for first in _FIRST)
    yield from (f"f({first}, {second})" for second in _NEXT for first in _FIRST)
    equal = ("xyz", "mnm", "tst", "iji", "vuv", "cdc")
    yield from (f"f({', '.join(itertools.islice(itertools.cycle(names), many))})" for many in (3, 4) for names in equal)
    yield from (
        f"f(x, {second}, {third})" for second in ("0", "y", "1.0") for third in ("i", "1", "y", "2.0", "v", "x")
    )
    yield "f()"
