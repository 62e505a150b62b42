"""What of the time of equal work is the ceilings' of two devices, on paper."""

from __future__ import annotations

import numpy as np
import pytest

from roofline.comparison.breakdown.rows import by_ceilings


def part(floor_a: float, own_a: float, floor_b: float, own_b: float, *, scaled: bool = False) -> float:
    given = (np.asarray([each], float) for each in (floor_a, own_a, floor_b, own_b))
    return float(by_ceilings(*given, scaled=scaled)[0])


def test_kernels_that_attain_the_same_are_slower_by_their_ceilings_alone() -> None:
    assert part(65, 100, 13, 20) == pytest.approx(80)  # both attain 65 %


def test_both_parts_add_up_and_swap_their_signs() -> None:
    """Floors of 60 and 40 in 100 and 50: missed by 5 / 3 and 5 / 4."""
    ceilings = part(60, 100, 40, 50)
    assert ceilings == pytest.approx((60 - 40) * (5 / 3 + 5 / 4) / 2)
    assert 100 - 50 - ceilings == pytest.approx((5 / 3 - 5 / 4) * (60 + 40) / 2)
    assert part(40, 50, 60, 100) == -ceilings


def test_what_attains_less_than_half_in_a_run_does_not_wait_for_its_roof() -> None:
    assert part(40, 100, 13, 20) == 40 - 13
    assert part(0, 100, 13, 20) == -13


def test_whose_kernels_are_worse_is_open_where_those_with_more_above_their_floor_attain_more() -> None:
    """130 µs at 46 % and 80 at 40 %: beyond the floors 70 against 48, but the first one is nearer to its roof."""
    assert part(60, 130, 32, 80) == 60 - 32
    assert part(60, 130, 32, 80, scaled=True) == pytest.approx(28 * (130 / 60 + 80 / 32) / 2)  # 65: of 50, -15 is left
    assert part(32, 80, 60, 130, scaled=True) == pytest.approx(-28 * (130 / 60 + 80 / 32) / 2)
    # 31 against 40 %: both readings say that the first one's are worse.
    assert part(40, 130, 32, 80, scaled=True) == part(40, 130, 32, 80) == 40 - 32
