"""Products of einsum over indices of size one, which PyTorch computes as multiplications.

Such a product asks for as much as any other: 2 FLOP for each pair of numbers that it multiplies, and as much again for
each of its gradients.
"""

from __future__ import annotations

import re
from math import prod

import numpy as np

from roofline.costs.calls import Call, tensors
from roofline.pytorch.nodes import Nodes

_MULTIPLICATION, _GRADIENTS = "aten::mul", "MulBackward0"


def multiplications(nodes: Nodes) -> dict[int, float]:
    """Find the multiplications that stand for such a product or for a gradient of one, with the FLOPs of each."""
    calls = [node for node, name in enumerate(nodes.names) if name == "aten::einsum"]
    products = {node for node in calls if _contracts(nodes.call(node))}
    flops_of: dict[int, float] = {}
    # A backward node has the number of the last call before it that made it.
    numbered: dict[int, int] = {}
    for node, name in enumerate(nodes.names if products else ()):
        around, number = int(nodes.parent[node]), int(nodes.sequence[node])
        if name == _GRADIENTS and numbered.get(number) in flops_of:
            products.add(node)
        if name == _MULTIPLICATION and around in products:
            shapes = [tensor.shape for tensor in tensors(nodes.call(node).inputs)]
            flops_of[node] = 2.0 * prod(np.broadcast_shapes(*shapes))
        if number >= 0:
            numbered[number] = node
    return flops_of


def _contracts(call: Call) -> bool:
    """Tell whether an einsum of two factors sums over an index that both have."""
    equation, factors = (*call.inputs, None, None)[:2]
    if not isinstance(equation, str) or not isinstance(factors, tuple | list) or len(factors) != 2:
        return False
    operands, _, result = equation.partition("->")
    first, second = (set(re.findall("[a-zA-Z]", operand)) for operand in operands.split(","))
    return bool((first & second) - set(result)) if "->" in equation else bool(first & second)
