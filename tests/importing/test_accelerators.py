"""Accelerators of kinds that we cannot read are refused by name, never read as a CPU."""

from __future__ import annotations

import json

import pytest

from roofline import importing
from roofline.errors import InputError


@pytest.mark.parametrize(
    ("category", "name"),
    [("mtia_ccp_events", "MTIA"), ("hpu_op", "Gaudi"), ("xpu_runtime", "XPU"), ("privateuse1_runtime", "privateuse1")],
)
def test_a_category_of_theirs_is_enough(tmp_path, category, name):
    """Written by hand: an op of the host, and one event of the accelerator's."""
    event = {"ph": "X", "pid": 1, "tid": 1, "dur": 5, "args": {}}
    events = [event | {"cat": "cpu_op", "name": "aten::mm", "ts": 1}, event | {"cat": category, "name": "k", "ts": 2}]
    trace = {"deviceProperties": [{"id": 0, "name": "Some Chip"}], "traceEvents": events}
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(trace))
    with pytest.raises(InputError, match=rf"{name}.*Some Chip"):
        importing.read([path])


def test_a_recorded_one(recorded):
    with pytest.raises(InputError, match="an MTIA accelerator, ARTEMIS"):
        importing.read([recorded("mtia_inference.json.gz")])
