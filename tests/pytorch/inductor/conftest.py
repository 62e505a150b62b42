"""What torch.compile does beside compiling, which nothing here looks at, is left out: a fifth of the time."""

from __future__ import annotations

import gc
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _compiled_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time no guards, for which all caches are emptied.

    What tests before this one left is not searched again: by the collector, and by who looks for tensors.
    """
    guards: Any = pytest.importorskip("torch._dynamo.guards")
    monkeypatch.setattr(guards, "profile_guard_manager", lambda *_: 0.0)
    gc.freeze()
