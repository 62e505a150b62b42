"""The least time of counted work: floors of the other device, which nothing measured enters."""

from __future__ import annotations

import handmade
import pytest
from msgspec.structs import replace

from roofline.core.device import Ceiling, Device
from roofline.core.schema import Memory, Profile
from roofline.errors import InputError
from roofline.projection.least import least
from roofline.renderers.whatif import text
from tests.synthetic import GELU, LINEAR, step

#: 1 TFLOP/s and 10 GB/s. LINEAR is 20 MFLOP and 0.5 MB: 20 us by its FLOPs, 50 by its bytes; GELU 0.2 MB: 20 us.
THERE = Device(
    name="Made Up",
    kind="cuda",
    ceilings={
        name: Ceiling(value=value, source="made up")
        for name, value in {"matrix.fp32": 1e12, "dram.read": 1e10, "dram.copy": 1e10}.items()
    },
)


def counted() -> Profile:
    made = step((LINEAR, GELU, LINEAR))
    ops = tuple(replace(op, own_ns=(), start_ns=0) for op in made.ops)
    return replace(made, ops=ops, profiled=None)


def test_floors_of_the_other_device_add_up() -> None:
    found = least(counted(), THERE)
    assert found.floor == pytest.approx((50 + 20 + 50) * 1e-6)
    assert found.bounds == {"memory": pytest.approx(120e-6)}
    assert found.floors == {"matmul": pytest.approx(100e-6), "pointwise": pytest.approx(20e-6)}
    assert found.unknown_ops == 0


def test_what_has_no_ceiling_is_said() -> None:
    alone = replace(THERE, ceilings={"matrix.fp32": THERE.ceilings["matrix.fp32"]})
    found = least(counted(), alone)
    assert found.floor == pytest.approx(2 * 20e-6)
    assert found.unknown_ops == 1
    with pytest.raises(InputError, match="Made Up has no ceiling for any op of the profile"):
        least(counted(), replace(THERE, ceilings={}))


def test_in_words() -> None:
    told = " ".join(text.render(least(counted(), THERE)).split())
    assert "counted and not run; on Made Up at least 120 µs per step by the ceilings alone (100.0 %" in told
    assert "least step serial 120 µs" in told
    assert told.endswith("missing launch.torch-eager: not known for Made Up, so not in the column minimum")


def test_products_without_a_ceiling_leave_no_least_time() -> None:
    alone = replace(THERE, ceilings={name: value for name, value in THERE.ceilings.items() if name != "matrix.fp32"})
    found = least(counted(), alone)
    assert (found.floor, found.unpriced) == (None, ("matrix.fp32",))
    said = " ".join(text.render(found).split())
    assert "no known ceiling for products in fp32" in said
    assert "at least" not in said.partition("group")[0]
    # Of other groups the least time is known: GELU's 0.2 MB at 10 GB/s.
    assert found.floors["pointwise"] == pytest.approx(20e-6)


def test_what_does_not_fit_is_said_as_a_sum() -> None:
    recorded = handmade.storages(
        ("parameters", 14_500_000_000, 0, 2), ("activations", 3_000_000_000, 1, 1), source="allocator"
    )
    small = replace(THERE, memory=16e9)
    found = least(replace(counted(), storages=recorded, batch=4, memory=Memory()), small)
    # 14.5 GB whatever the batch, and 0.75 GB for each of its samples: 2 of them are the most that 16 GB hold.
    assert (found.fit.fits, found.fit.largest_batch) == (False, 2)
    said = " ".join(text.render(found).split())
    assert "does not fit: 14.5 GB of parameters + 3.00 GB of activations = 17.5 GB of 16.0 GB" in said
