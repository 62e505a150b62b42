"""Prefill and decode of a step made by hand: times, the host's among them, and what a pass must read."""

from __future__ import annotations

from dataclasses import replace as change

import pytest
from msgspec.structs import replace

from roofline.analysis.analysis import analyze
from roofline.analysis.generation import generation
from roofline.content.facts.generation import describe_generation
from roofline.core.device import Cache, Ceiling
from roofline.core.schema import Memory, Profile
from tests.synthetic import LINEAR, SDPA, step

US = 1e-6
#: A prompt of one product and one attention, then two passes of the same; of the attention 0.2 MB are read each time.
PROMPT = (change(LINEAR, phase="prefill", own=500), change(SDPA, phase="prefill", block="attention core", own=100))
PASS = (change(LINEAR, phase="decode", own=200), change(SDPA, phase="decode", block="attention core", own=50))
WEIGHTS = 50e6


def generated(passes: str = "2", host: bool = True, **changes: object) -> Profile:
    rows = [change(row, host=(2.0, 18.0)) if host else row for row in (*PROMPT, *PASS, *PASS)]
    made = step(rows, mode="generate", memory=Memory(parameters=WEIGHTS), **changes)
    return replace(made, switches={**made.switches, "decode passes": passes})


def test_the_phases_with_the_host_before_their_ops() -> None:
    found = generation(analyze(generated()))
    assert found is not None
    assert found.prefill == pytest.approx((500 + 100 + 2 * 20) * US)
    assert found.decode == pytest.approx((2 * 250 + 4 * 20) * US)
    assert found.gap == pytest.approx(0, abs=1e-12)
    assert found.passes == 2
    assert found.attention == 2 * 0.2e6


def test_a_gap_that_nobody_told_apart_is_in_neither() -> None:
    found = generation(analyze(generated(host=False)))
    assert found is not None
    assert (found.prefill, found.decode) == (pytest.approx(600 * US), pytest.approx(500 * US))
    assert found.gap == pytest.approx(6 * 10 * US)  # 10 us for each launch


def test_weights_are_read_from_where_they_fit() -> None:
    profile = generated()
    memory = max(profile.device.ceilings[name].value for name in ("dram.read", "dram.triad", "dram.copy")
                 if name in profile.device.ceilings)  # fmt: skip
    found = generation(analyze(profile))
    assert found is not None
    assert found.weights == pytest.approx(WEIGHTS / memory)
    small, huge = (Cache(level=name, size=part * WEIGHTS, source="") for name, part in (("small", 0.25), ("huge", 2)))
    rates = {"cache.small": Ceiling(value=4e12, source=""), "cache.huge": Ceiling(value=1e12, source="")}
    ceilings = {**profile.device.ceilings, **rates}
    for caches, seconds in (
        ((huge,), WEIGHTS / 1e12),
        ((small, huge), 0.75 * WEIGHTS / 1e12),  # while all of them pass the small one
        ((small,), WEIGHTS / memory),
    ):
        cached = generation(analyze(replace(profile, device=replace(profile.device, caches=caches, ceilings=ceilings))))
        assert cached is not None
        assert cached.weights == pytest.approx(seconds)


@pytest.mark.parametrize("passes", ["", "none", "0", "-2", "²", "9" * 30])
def test_a_number_of_passes_that_is_none(passes: str) -> None:
    found = generation(analyze(generated(passes)))
    assert found is not None
    assert found.passes is None


def test_a_step_without_decode_has_none() -> None:
    assert generation(analyze(step())) is None
    assert describe_generation(analyze(step())) == ""


def test_in_words() -> None:
    words = describe_generation(analyze(generated()))
    assert words.startswith("prefill 640 µs; decode 580 µs, 290 µs for each of 2 passes; a pass: minimum ")
    assert "reading all parameters once (50.0 MB) takes " in words
    assert words.endswith("its attention core reads 200 kB")
