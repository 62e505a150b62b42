"""Matrix-matrix and matrix-vector products of n x n, n = 2, 4, ... 4096: from all launch to all arithmetic.

For each n four cases, one scope each: the product of two matrices and of a matrix and a vector, into newly
allocated memory and into a given output (`out=`). No parameters: the operands are the inputs. Training means
the allocating products (`out=` has no gradient) and their backward with given output gradients; there is
nothing to optimize.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from roofline.core.step import Step, Workload, scope
from roofline.models._step import loss_switch
from roofline.models.torch._step import autocast_dtype, prepare, step


class Products(nn.Module):
    """The products for each n; `given_output` adds those into buffers that the module holds."""

    def __init__(self, sizes: list[int], given_output: bool) -> None:
        super().__init__()
        self.sizes = sizes
        self.given_output = given_output
        if given_output:
            for n in sizes:
                self.register_buffer(f"matrix{n}", torch.empty(n, n))
                self.register_buffer(f"vector{n}", torch.empty(n))

    def forward(self, **operands: Tensor) -> list[Tensor]:
        """The allocating products: for each n, a @ b and c @ x, where a, b and c are (n, n) and x is (n)."""
        products = []
        for n in self.sizes:
            a, b, c, x = (operands[f"{name}{n}"] for name in "abcx")
            with scope(f"n={n}/matrix/allocating"):
                products.append(torch.mm(a, b))
            with scope(f"n={n}/vector/allocating"):
                products.append(torch.mv(c, x))
            if self.given_output:
                with scope(f"n={n}/matrix/given"):
                    torch.mm(a, b, out=self.get_buffer(f"matrix{n}"))
                with scope(f"n={n}/vector/given"):
                    torch.mv(c, x, out=self.get_buffer(f"vector{n}"))
        return products


def network(dims: Mapping[str, Any]) -> nn.Module:
    """All cases, as inference runs them."""
    return Products(dims["n"], given_output=True)


def build(workload: Workload) -> Step:
    """All products once; for training, the allocating ones and their backward."""
    dims = prepare(workload)
    operands, gradients = {}, []
    for n in dims["n"]:
        operands |= {f"{name}{n}": torch.randn(n, n) for name in "abc"}
        operands[f"x{n}"] = torch.randn(n)
        # Autocast makes the outputs, and so their gradients, low precision from the start.
        gradients += [torch.randn(shape, dtype=autocast_dtype(workload)) for shape in ((n, n), (n,))]
    return step(
        workload,
        dims,
        network(dims) if workload.mode != "train" else Products(dims["n"], given_output=False),
        operands,
        targets=gradients,
        optimizer=None,
        differentiable=tuple(operands),
        switches=loss_switch(workload, "none: given output gradients"),
    )
