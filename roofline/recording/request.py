"""What the parent asks of a measuring child."""

from __future__ import annotations

import msgspec

from roofline.core.step import Workload


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One profile to record.

    without_data: where only counted, weights and inputs have shapes alone. workload: what is run, its options as the
    user gave them to the backend. file, function: a user's own `path/to/file.py:function` instead of a model. python:
    the interpreter of the measuring process, None for this one. turned: switches that are turned in the step once it
    is built, by the names of `Backend.turn`. preset: the published benchmark whose set-up it is, None for none. api:
    what that timed, one of `Backend.apis`; None for the bare step. cached: whether its data lay in memory as batches.
    quiet: say nothing of the progress.
    """

    backend: str
    workload: Workload
    file: str | None = None
    function: str | None = None
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
