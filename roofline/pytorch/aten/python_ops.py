"""Ops of PyTorch that are Python functions: `torch.library.custom_op` and what `torch.library.Library.impl` is given.

The dispatcher calls them like any op. What they do with NumPy or another library nobody sees.
"""

from __future__ import annotations

from collections.abc import Collection

import torch

#: What such a function is registered for, where it runs on a CPU: for that, or for every device.
_KEYS = ("CPU", "CompositeExplicitAutograd", "CompositeImplicitAutograd")


def is_python_function(name: str) -> bool:
    """Tell if the op of that name, as in "mine::op", is a Python function in this process; False where torch hides it.

    `torch.library` keeps all that it registers as "namespace/op/dispatch key" (torch/library.py, `_impls`).
    """
    namespace, parted, op = name.partition("::")
    registered: Collection[str] = getattr(torch.library, "_impls", frozenset())
    return bool(parted) and any(f"{namespace}/{op}/{key}" in registered for key in _KEYS)
