"""Two traces of one small BERT, one step each, on two devices: what differs is what the traces themselves say."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from roofline import importing
from roofline.comparison.ranking import rank

TRACES = ("h100_bert_small_infer.json.gz", "mi300x_bert_small_infer.json.gz")
#: What the kernels of fused attention are called on either device.
ATTENTION = ("flash_fwd_kernel", "attn_fwd")


def spent(trace: Path, kernel: str) -> float:
    """The time of the kernels whose names hold `kernel` [s]; the trace counts in microseconds."""
    events = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    return sum(event["dur"] for event in events if event.get("cat") == "kernel" and kernel in event["name"]) * 1e-6


def test_a_small_bert_on_two_devices(recorded: Callable[[str], Path]) -> None:
    paths = [recorded(name) for name in TRACES]
    profiles = [importing.read([path])[0] for path in paths]
    # Calls of Python in both traces name the same modules, so that no other key is chosen.
    (pair,) = rank(profiles, as_given=True).pairs
    assert pair.breakdown is None
    for by, label in (("class", "attention"), ("op", "aten::_scaled_dot_product_flash_attent")):
        (pair,) = rank(profiles, as_given=True, by=by).pairs
        found = pair.breakdown
        assert found is not None
        assert found.by == by
        assert found.common == pytest.approx((1.0, 1.0))
        largest = found.rows[0]
        assert largest.label.startswith(label)
        for part, path, kernel in zip(largest.parts, paths, ATTENTION, strict=True):
            assert part is not None
            assert part.seconds == pytest.approx(spent(path, kernel), rel=1e-6)
        # Both were asked for the same, so nothing is other work; the floors hardly differ and the kernels do.
        assert largest.split is not None
        assert largest.split.unshared == pytest.approx(0, abs=1e-12)
        assert all(abs(kernels) > 10 * abs(of_device) for kernels, of_device in zip(
            largest.split.kernels, largest.split.ceilings, strict=True,
        ))  # fmt: skip
