"""A step without any module or optimizer, in a function."""

import torch

weight = torch.randn(16, 16)


class Work:
    @staticmethod
    def step(x: torch.Tensor) -> torch.Tensor:
        return x if x.shape[0] == 1 else Work.step(x[:1] @ weight)


for _ in range(70):
    Work.step(torch.randn(4, 16))
