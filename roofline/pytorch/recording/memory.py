"""The memory of a step on PyTorch: its peak on a GPU, also where CUDA graphs run, and what the optimizers hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from roofline.recording.process import ALLOCATED

#: Where a peak is from that holds the memory of CUDA graphs.
WITH_GRAPHS = f"{ALLOCATED}, CUDA graphs with all that they reserve"
_DEFAULT = (0, 0)  # id of the pool that everything but graphs is allocated from


def peak_on_gpu() -> tuple[float, str]:
    """The peak since the last call [B], and where it is from."""
    unseen = of_graphs(torch.cuda.memory_snapshot())
    peak = float(torch.cuda.max_memory_allocated()) + unseen
    torch.cuda.reset_peak_memory_stats()
    return peak, WITH_GRAPHS if unseen else ALLOCATED


def of_graphs(segments: Iterable[Mapping[str, Any]]) -> float:
    """Sum what graphs use while they are replayed and the allocator takes for free [B].

    A graph keeps its pool. What it computes with is allocated there while it is captured and freed at the end of the
    capture; a replay asks nobody for it. segments: of `torch.cuda.memory_snapshot()`.
    """
    pools = [segment for segment in segments if tuple(segment.get("segment_pool_id", _DEFAULT)) != _DEFAULT]
    return float(sum(segment["total_size"] - segment["allocated_size"] for segment in pools))


def of_model(model: torch.nn.Module) -> tuple[float, float | None]:
    """Sum what the parameters take, and their gradients [B]; None where no parameter has one now."""
    parameters = list(model.parameters())
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    return _bytes(parameters), _bytes(gradients) if gradients else None


def _bytes(tensors: Iterable[torch.Tensor]) -> float:
    return float(sum(tensor.numel() * tensor.element_size() for tensor in tensors))


def of_optimizers(optimizers: Sequence[Any]) -> float:
    """Sum what the optimizers' state takes [B]."""
    states = (state for optimizer in optimizers for state in optimizer.state.values())
    return _bytes(value for state in states for value in state.values() if isinstance(value, torch.Tensor))
