"""A training of a weight without a module and an optimizer. Argument: number of its steps."""

import sys

import torch

weight = torch.randn(32, 8, requires_grad=True)
for _ in range(int(sys.argv[1])):
    (torch.randn(16, 32) @ weight).square().mean().backward()
    with torch.no_grad():
        weight -= 0.01 * weight.grad
    weight.grad = None
