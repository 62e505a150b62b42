"""Define the request of the parent to a measuring child."""

from __future__ import annotations

import msgspec

from roofline.core.step import Workload
from roofline.recording.inputs import Input


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """Request a profile.

    shapes: of the inputs that its module or function is called with; None: it takes none. is_step: its function is the
    step itself, as its first call showed. framework_by_import: the backend was chosen by what the file imports.
    without_data: count with weights and inputs that have shapes only. workload: the model and its set-up, its options
    as the user gave them to the backend. file, function: a user's own `path/to/file.py:function` instead of a model.
    python: the interpreter of the measuring process, None for this one. turned: switches to turn in the step once it is
    built, by the names of `Backend.turn`. preset: the published benchmark with this set-up, if any. api: the function
    that the benchmark timed, one of `Backend.apis`; None for the bare step. cached: its data lay in memory as batches.
    quiet: report no progress. timeout: how long the measuring process may take [s]; None: as long as it does.
    """

    backend: str
    workload: Workload
    file: str | None = None
    function: str | None = None
    shapes: tuple[Input, ...] | None = None
    is_step: bool = False
    framework_by_import: bool = False
    threads: int | None = None
    steps: int | None = None
    budget: float = 60.0
    count_only: bool = False
    without_data: bool = False
    plain_only: bool = False
    verify: bool = False
    python: str | None = None
    turned: dict[str, str] = {}
    preset: str | None = None
    api: str | None = None
    cached: bool = False
    quiet: bool = False
    timeout: float | None = None
