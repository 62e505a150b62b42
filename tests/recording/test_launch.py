"""The process that measures, as the one that waits for it sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

from roofline.core.step import Workload
from roofline.errors import MeasurementError
from roofline.recording import launch
from roofline.recording.request import Request


def test_a_result_that_was_cut_off_is_told(tmp_path: Path) -> None:
    # As on a full disk: the last argument is where the result goes.
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\nfor last; do :; done\nprintf \'{"profile": {"sch\' > "$last"\nexit 1\n')
    python.chmod(0o755)
    with pytest.raises(
        MeasurementError, match=r"^Cannot write in .*could not write all .*set TMPDIR to another folder"
    ):
        launch.run(Request(backend="torch", workload=Workload(model="mlp"), python=str(python)), {})
