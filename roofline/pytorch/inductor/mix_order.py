"""Mix-order reductions: one generated kernel that reduces both rows and columns, as of a layer norm's backward pass.

The sums over columns are left in parts in a workspace, one per block of rows, and the code that follows the call has
aten put them together. No comment names such a kernel, which is where `kernels` takes the others from: these are noted
as they are defined. It is so in torch 2.11 and 2.13, for GPUs alone, from 5 * 2**20 elements and 4096 rows on.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch

#: How aten calls the reductions that Inductor names otherwise.
_ATEN = {"min": "amin", "max": "amax"}


@dataclass(frozen=True, slots=True)
class Result:
    """Holds what is put together after the kernel: into which buffer, by which op, and whether a cast follows it.

    origins: the nodes of the graph that the reduction does.
    """

    buffer: str
    op: str
    cast: bool
    origins: tuple[torch.fx.Node, ...]


@dataclass(frozen=True, slots=True)
class Partial:
    """Holds what a kernel leaves in parts: the workspace, its bytes, the elements that it has of each result."""

    workspace: str
    bytes: Any
    elements: Any
    results: tuple[Result, ...]


Note = Callable[[Any, str, Callable[[], Partial]], None]


@contextmanager
def noted(note: Note) -> Iterator[None]:
    """While active, `note` gets each mix-order reduction: its schedule, its name, and what tells what it leaves."""
    try:
        owner: Any = import_module("torch._inductor.codegen.triton").TritonScheduling
    except (ImportError, AttributeError):
        yield
        return
    original = owner.define_kernel

    @functools.wraps(original)
    def define(scheduling: Any, code: str, schedule: Any, kernel: Any, *args: Any, **kwargs: Any) -> Any:
        name = original(scheduling, code, schedule, kernel, *args, **kwargs)
        if getattr(kernel, "mix_order_reduction", False):
            note(schedule, name, functools.partial(_partial, schedule, kernel))
        return name

    owner.define_kernel = define
    try:
        yield
    finally:
        owner.define_kernel = original


def _partial(schedule: Any, kernel: Any) -> Partial:
    from torch._inductor.virtualized import V

    (workspace,) = kernel.args.workspace_args
    reducing = [node for node in schedule if getattr(getattr(node, "_body", None), "has_partial_accumulate", False)]
    results = [
        Result(
            buffer=accumulation.buffer_name,
            op=f"aten::{_ATEN.get(accumulation.reduction_type, accumulation.reduction_type)}",
            cast=V.graph.get_dtype(accumulation.buffer_name) != workspace.dtype,
            origins=tuple(node.node.origins),
        )
        for accumulation, node in zip(kernel.saved_partial_accumulate, reducing, strict=True)
    ]
    return Partial(
        workspace=str(workspace.outer_name),
        bytes=workspace.count * workspace.dtype.itemsize,
        elements=workspace.count // len(results),
        results=tuple(results),
    )
