"""Tells whether a step runs in autograd's anomaly mode, which looks for nan after each op of the backward pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch._guards import TracingContext


@contextmanager
def noted() -> Iterator[dict[str, str]]:
    """Collect the switch `detect_anomaly` while active, where the mode is on or the program turns it on meanwhile.

    Where it stays off nothing is recorded, as hardly any step has it on: older profiles lack the switch, too. Nor is
    what torch.compile turns on for itself while it traces a backward pass.
    """
    setting: dict[str, str] = {}
    turn = torch.set_anomaly_enabled

    def note(enabled: bool, check_nan: bool) -> None:
        if enabled:
            setting["detect_anomaly"] = "True" if check_nan else "True, check_nan False"

    def turn_and_note(enabled: bool, check_nan: bool = True) -> None:
        if TracingContext.try_get() is None:
            note(enabled, check_nan)
        turn(enabled, check_nan)

    note(torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())
    torch.set_anomaly_enabled = turn_and_note
    try:
        yield setting
    finally:
        torch.set_anomaly_enabled = turn
