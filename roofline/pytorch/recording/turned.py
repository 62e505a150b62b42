"""Switches that are turned in a step that is there, whoever wrote it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from roofline.core.step import Step
from roofline.errors import InputError

#: The forms of an update, by the name of the argument that asks for it.
FORMS = ("fused", "foreach")


def turn(build: Callable[[], Step], name: str) -> Step:
    """The step with a switch turned on: "compile", "optimizer fused" or "optimizer foreach"; see `Backend.turn`."""
    step = build()
    if name == "compile" and not isinstance(step.model, torch.nn.Module):  # whose forward the backend compiles
        return replace(step, run=torch.compile(step.run))
    if name.startswith("optimizer "):
        register_optimizer_step_pre_hook(_Form(name.removeprefix("optimizer ")))
    return step


class _Form:
    """Before an optimizer's first step: has it update all parameters so."""

    def __init__(self, form: str) -> None:
        self._form = form
        self._seen: list[Any] = []

    def __call__(self, optimizer: Any, *_: object) -> None:
        if any(optimizer is known_optimizer for known_optimizer in self._seen):
            return
        self._seen.append(optimizer)
        for group in optimizer.param_groups:
            if self._form not in group:
                raise InputError(f"{type(optimizer).__name__} has no {self._form} form.")
            group.update({form: form == self._form for form in FORMS if form in group})
            if self._form == "fused":  # which counts its steps where the parameters are
                for state in (optimizer.state[p] for p in group["params"] if p in optimizer.state):
                    if "step" in state:
                        device = next(p.device for p in group["params"])
                        state["step"] = torch.as_tensor(state["step"], dtype=torch.float32, device=device)


def forms(optimizers: Sequence[Any]) -> dict[str, str]:
    """Return which form the update of some optimizers has, as PyTorch resolves it; nothing where one has no choice."""
    groups = [group for optimizer in optimizers for group in getattr(optimizer, "param_groups", ())]
    if not groups or any("foreach" not in group for group in groups):
        return {}
    fused = all(bool(group.get("fused")) for group in groups)
    # Not given, PyTorch takes foreach where all parameters lie on a GPU, else a loop; fused only when asked.
    foreach = all(
        bool(group["foreach"])
        if group["foreach"] is not None
        else not group.get("fused") and all(p.is_cuda for p in group["params"])
        for group in groups
    )
    settings = {"optimizer foreach": str(foreach and not fused)}
    return settings | ({"optimizer fused": str(fused)} if all("fused" in group for group in groups) else {})
