"""Read the trace that a profiler writes into a folder."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path

from roofline.errors import MeasurementError
from roofline.recording.protocol import TWO_PROFILERS
from roofline.standard_error import quiet

#: Errors of a step that starts a profiler while ours is on: "Profile has already been started. Only one profile may be
#: run at a time." (JAX), "Another profiler is running." (TensorFlow).
_ANOTHER = re.compile(r"profile\w* (has already been started|is (already )?running)", re.IGNORECASE)


def written(run: Callable[[], None], start: Callable[[str], object], stop: Callable[[], object]) -> bytes | None:
    """Profile `run` with a profiler that writes into a folder; return its XSpace bytes, None where it wrote none.

    Raises MeasurementError where `run` starts another profiler.
    """
    with tempfile.TemporaryDirectory() as folder:
        with quiet():
            start(folder)
        try:
            run()
        except Exception as error:
            if _ANOTHER.search(str(error)):
                raise MeasurementError(TWO_PROFILERS) from error
            raise
        finally:
            stop()
        files = list(Path(folder).rglob("*.xplane.pb"))
        return files[0].read_bytes() if files else None
