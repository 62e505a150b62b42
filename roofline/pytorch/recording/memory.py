"""The memory of a step on PyTorch: its peak on a GPU, also where CUDA graphs run, and what the optimizers hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from roofline.keras import memory as keras_memory
from roofline.keras import torch_names
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


def parameters_of(model: Any) -> list[torch.Tensor] | None:
    """List the parameters of a model, of Keras all its weights; None where it is neither PyTorch's nor Keras's."""
    if torch_names.name(model) is not None:
        return [variable.value for variable in model.weights]
    return [*model.parameters()] if isinstance(model, torch.nn.Module) else None


def of_model(model: Any) -> tuple[float | None, float | None]:
    """Sum what the parameters take, and their gradients [B]; None: not known, or no parameter has one now."""
    parameters = parameters_of(model)
    if parameters is None:
        return None, None
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    return _bytes(parameters), _bytes(gradients) if gradients else None


def _bytes(tensors: Iterable[torch.Tensor]) -> float:
    return float(sum(tensor.numel() * tensor.element_size() for tensor in tensors))


def of_optimizers(optimizers: Sequence[Any], model: Any = None) -> float | None:
    """Sum what the state of optimizers takes [B]: of PyTorch's, else of that of a Keras model; None without any."""
    if not optimizers:
        held = keras_memory.state_bytes(model) if torch_names.name(model) is not None else None
        return None if held is None else held[1]
    states = (state for optimizer in optimizers for state in optimizer.state.values())
    return _bytes(value for state in states for value in state.values() if isinstance(value, torch.Tensor))
