"""Shapes of the arguments of a program's calls, whatever these are."""

from __future__ import annotations

import numpy as np
import pytest

from roofline.running.boundaries._shapes import shapes_of


class OddShape:
    def shape(self) -> int:
        return 3


def test_only_arrays_have_shapes() -> None:
    assert shapes_of([np.zeros((2, 3)), 4, "text", np.float32(1.0)]) == ((2, 3), ())


def test_a_shape_that_is_no_sequence_ends_no_call() -> None:
    assert shapes_of([OddShape(), np.zeros(5)]) == ((), (5,))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_nested_tensor_ends_no_call() -> None:
    torch = pytest.importorskip("torch")
    assert shapes_of([torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])]) == ((),)
