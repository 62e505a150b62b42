"""What the parent asks of a measuring child, and what a user's file may return."""

from __future__ import annotations

from typing import Literal

import msgspec


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One profile to record.

    file, function: a user's own `path/to/file.py:function` instead of a model. python: the interpreter of the measuring
    process, None for this one.
    """

    backend: str
    model: str
    device: str
    file: str | None = None
    function: str | None = None
    mode: Literal["infer", "train", "generate"] = "infer"
    batch: int | None = None
    seq: int | None = None
    size: str = "base"
    layers: int | None = None
    precision: str = "default"
    threads: int | None = None
    steps: int | None = None
    budget: float = 60.0
    input: Literal["device", "host"] = "device"
    optimizer: bool = True
    count_only: bool = False
    plain_only: bool = False
    verify: bool = False
    options: dict[str, str] = {}
    python: str | None = None
