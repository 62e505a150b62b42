"""Call a module or a function of the user's with inputs made by shape and type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from roofline.core.step import Step
from roofline.recording.inputs import Input, arrays, described


def step(called: Callable[..., object], inputs: Sequence[Input], device: str) -> Step:
    """Make the step that calls a function, or a module as inference does: on the device, in eval mode, `no_grad`."""
    model = called if isinstance(called, torch.nn.Module) else None
    rows = None
    if model is not None:
        model.eval().to(device)
        rows = min(filter(None, map(_rows, model.modules())), default=None)
    given = [
        torch.from_numpy(array).to(device, getattr(torch, asked.dtype))
        for array, asked in zip(arrays(inputs, rows), inputs, strict=True)
    ]

    def forward() -> object:
        with torch.no_grad():
            return called(*given)

    parameters: list[Any] = [] if model is None else list(model.parameters())
    return Step(
        run=forward if model is not None else lambda: called(*given),
        model=model,
        forward=forward,
        parameters=None if model is None else sum(parameter.numel() for parameter in parameters),
        trainable=None if model is None else sum(p.numel() for p in parameters if p.requires_grad),
        switches={"inputs": described(inputs)},
    )


def _rows(module: torch.nn.Module) -> int | None:
    """Return the rows of an embedding's table, None of another module; a scripted one keeps the name of its class."""
    kinds = (torch.nn.Embedding, torch.nn.EmbeddingBag)
    if isinstance(module, kinds):
        return module.num_embeddings
    if not isinstance(module, torch.jit.ScriptModule) or module.original_name not in {kind.__name__ for kind in kinds}:
        return None
    table = dict(module.named_parameters(recurse=False)).get("weight")
    return None if table is None else len(table)
