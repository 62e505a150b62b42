"""What torch.compile does beside compiling, which nothing here looks at, is left out: a fifth of the time."""

from __future__ import annotations

import gc
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _compiled_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time no guards, for which all caches are emptied, and write no traces of it, which pytest would keep.

    What tests before this one left is not searched again: by the collector, and by who looks for tensors.
    """
    guards: Any = pytest.importorskip("torch._dynamo.guards")
    traces: Any = pytest.importorskip("torch._logging._internal").trace_log
    monkeypatch.setattr(guards, "profile_guard_manager", lambda *_: 0.0)
    monkeypatch.setattr(traces, "handlers", [])
    gc.freeze()
