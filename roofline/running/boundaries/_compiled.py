"""Keep torch.compile from compiling a wrapper: it runs as Python, and what it calls is compiled as without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def leave_uncompiled(wrapper: Callable[..., Any]) -> None:
    """Tell Dynamo, which the program has just imported, that the frame of a wrapper is none to compile."""
    from torch._dynamo.eval_frame import skip_code

    skip_code(wrapper.__code__)
