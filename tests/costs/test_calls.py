"""What a recorded call says of itself."""

from __future__ import annotations

import pytest

from roofline.costs.calls import Call, Tensor, memory_format


@pytest.mark.parametrize(
    ("shape", "stride", "told"),
    [
        ((2, 3, 4, 5), (60, 1, 15, 3), "channels_last"),  # 3 channels side by side, 5 places of 3, 4 rows of 15
        ((2, 3, 4, 5), (60, 20, 5, 1), ""),  # 5 places side by side, 4 rows of 5, 3 channels of 20
        ((2, 1, 4, 5), (20, 1, 5, 1), ""),  # one channel is laid out both ways
        ((2, 3, 1, 1), (3, 1, 3, 3), ""),  # and so is one place
        ((2, 3, 1, 2), (6, 1, 6, 3), "channels_last"),  # two places are the fewest that tell
        ((2, 3, 2, 4, 5), (120, 1, 60, 15, 3), "channels_last"),
        ((2, 3), (1, 2), ""),
        ((2, 3, 4, 5), None, ""),
    ],
)
def test_memory_format(shape: tuple[int, ...], stride: tuple[int, ...] | None, told: str) -> None:
    call = Call("aten::relu", "", (Tensor(shape, stride, "float"), 1))
    assert memory_format(call) == told
