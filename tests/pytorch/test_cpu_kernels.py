"""Which call inside of a product has most of its time, by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from roofline.pytorch.cpu_kernels import calls_inside, kernels

NAMES = ("convolution", "contiguous", "library", "addmm", "copy", "relu", "inner")


def counted(*ops: tuple[str, float]) -> Any:
    """Ops by name and FLOPs."""
    costed = [SimpleNamespace(costed=SimpleNamespace(cost=SimpleNamespace(flops=flops))) for _, flops in ops]
    return SimpleNamespace(ops=costed, names_of_ops=tuple(name for name, _ in ops))


def test_the_longest_call_inside_of_a_product_carries_it_out() -> None:
    # convolution 100 ns: contiguous 30 of it, library 60, in which a copy takes 20. addmm 50: a copy of 10.
    # relu 40, all in a call inside; it is no product.
    op = np.asarray([0, 0, 0, 0, 1, 1, 2, 2, -1])
    name = np.asarray([0, 1, 2, 4, 3, 4, 5, 6, 6])
    parent = np.asarray([-1, 0, 0, 2, -1, 4, -1, 6, -1])
    length = np.asarray([100, 30, 60, 20, 50, 10, 40, 40, 7])
    first = calls_inside(op, name, parent, length)
    assert first[2].tolist() == [10, 30, 40, 20, 40, 10, 0, 40]
    # in a second step the library takes twice as long: 40 and 100 - 40 - 20, in the mean 50
    again = calls_inside(op, name, parent, np.where(name == 2, 80, length))
    ops = counted(("convolution", 8.0), ("addmm", 8.0), ("relu", 0.0))
    assert kernels(ops, NAMES, [first, again]) == [((NAMES.index("library"), 50),), (), ()]


def test_one_step_in_which_the_machine_was_busy_names_no_wrapper() -> None:
    # convolution itself takes 10 ns and the library in it 90; once it is held up for 1000 ns. Median 90 against 10.
    op, name, parent = np.asarray([0, 0]), np.asarray([0, 2]), np.asarray([-1, 0])
    steps = [calls_inside(op, name, parent, np.asarray([length, 90])) for length in (100, 1090, 100)]
    assert kernels(counted(("convolution", 8.0)), NAMES, steps) == [((NAMES.index("library"), 90),)]


def test_no_steps_and_no_products() -> None:
    assert kernels(counted(("convolution", 8.0)), NAMES, []) == [()]
    calls = calls_inside(*(np.asarray(each) for each in ([0], [5], [-1], [40])))
    assert kernels(counted(("relu", 0.0)), NAMES, [calls]) == [()]
