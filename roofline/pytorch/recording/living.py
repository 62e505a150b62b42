"""Objects that the program holds, found by their type: recorders look into some of them before a step."""

from __future__ import annotations

import gc
import sys
from dataclasses import dataclass
from itertools import compress
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class Living:
    """Lists objects by what they are. It keeps them: let go of it before the step runs."""

    tensors: list[torch.Tensor]
    layers: list[torch.nn.Module]
    optimizers: list[torch.optim.Optimizer]
    keras_optimizers: list[Any]


def living() -> Living:
    """Find the tensors, layers and optimizers, also of derived types, that Python's collector tracks."""
    keras = sys.modules.get("keras")
    kinds = (
        torch.Tensor,
        torch.nn.Module,
        torch.optim.Optimizer,
        *(() if keras is None else (keras.optimizers.Optimizer,)),
    )
    # In one pass, as there may be a million objects. By type: asking an object for its class may run somebody's code,
    # as may comparing types.
    objects = gc.get_objects()
    types = list(map(type, objects))
    wanted = {
        number for number, kind in dict(zip(map(id, types), types, strict=True)).items() if issubclass(kind, kinds)
    }
    kept = list(compress(objects, map(wanted.__contains__, map(id, types))))
    of_kind = [[instance for instance in kept if issubclass(type(instance), kind)] for kind in kinds]
    return Living(of_kind[0], of_kind[1], of_kind[2], of_kind[3] if keras is not None else [])
