"""The process that records: what it does before there is a step."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from roofline.backends.torch import BACKEND
from roofline.errors import MissingError
from roofline.plugins import importing
from roofline.recording import child


@pytest.fixture
def collecting() -> Iterator[None]:
    """As a process begins, whatever became of this one."""
    before = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if before else gc.disable)()


@pytest.mark.usefixtures("collecting")
def test_importing_a_framework_is_not_held_up_by_the_collector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "a_framework.py").write_text("import gc\ncollecting = gc.isenabled()\n")
    (tmp_path / "a_broken_one.py").write_text("raise RuntimeError('no such symbol')\n")
    with importing():
        child._import("a_framework", "torch", BACKEND)
    import a_framework

    assert not a_framework.collecting
    assert gc.isenabled()
    with pytest.raises(MissingError, match="no such symbol"), importing():
        child._import("a_broken_one", "torch", BACKEND)
    assert gc.isenabled()
