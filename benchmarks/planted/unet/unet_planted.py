"""Copies of the U-Net with one cause planted, some with two; all compute the same function."""

from __future__ import annotations

import time

import torch
from torch import Tensor, nn
from torch.nn import functional
from unet import UNet, Unit, variant


class Segments(nn.GroupNorm):
    def forward(self, x: Tensor) -> Tensor:
        grouped = x.unflatten(1, (self.num_groups, -1))
        centred = grouped - grouped.mean((2, 3, 4), keepdim=True)
        variance = (centred * centred).mean((2, 3, 4), keepdim=True)
        normal = (centred / torch.sqrt(variance + self.eps)).flatten(1, 2)
        return normal * self.weight[:, None, None] + self.bias[:, None, None]


class SigmoidUnit(Unit):
    def activate(self, x: Tensor) -> Tensor:
        return x / (1.0 + torch.exp(-x))


class PermutedUnit(Unit):
    def convolve(self, x: Tensor) -> Tensor:
        return turned(self.convolution(turned(x)))


def turned(x: Tensor) -> Tensor:
    return x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2).contiguous()


class DoubleNorm(nn.GroupNorm):
    def forward(self, x: Tensor) -> Tensor:
        return functional.group_norm(
            x.double(), self.num_groups, self.weight.double(), self.bias.double(), self.eps
        ).float()


class HalfUnit(Unit):
    def convolve(self, x: Tensor) -> Tensor:
        return super().convolve(x.bfloat16().float())

    def activate(self, x: Tensor) -> Tensor:
        return functional.silu(x.bfloat16()).float()


class CloningUnit(Unit):
    def forward(self, x: Tensor) -> Tensor:
        x = self.group_norm(self.convolve(x.clone()).clone()).clone()
        return self.activate(x).clone()


class CheckingUNet(UNet):
    def through(self, unit: nn.Module, x: Tensor) -> Tensor:
        x = unit(x)
        if bool(torch.isnan(x).any()) or bool(torch.isinf(x).any()):
            raise ValueError("a number is not finite")
        return x


def _sleep() -> None:
    time.sleep(3e-3)


class Again(torch.autograd.Function):
    """Convolution, norm and activation; all three once more in the backward pass."""

    @staticmethod
    def forward(ctx, x, weight, scale, shift, groups, eps):
        ctx.save_for_backward(x, weight, scale, shift)
        ctx.settings = groups, eps
        return functional.silu(
            functional.group_norm(functional.conv2d(x, weight, padding=1), groups, scale, shift, eps)
        )

    @staticmethod
    def backward(ctx, gradient):
        kept = [each.detach().requires_grad_(each.requires_grad) for each in ctx.saved_tensors]
        groups, eps = ctx.settings
        x, weight, scale, shift = kept
        with torch.enable_grad():
            out = functional.silu(
                functional.group_norm(functional.conv2d(x, weight, padding=1), groups, scale, shift, eps)
            )
        asked = [each for each in kept if each.requires_grad]
        found = iter(torch.autograd.grad(out, asked, gradient))
        return (*(next(found) if each.requires_grad else None for each in kept), None, None)


class AgainUnit(Unit):
    def forward(self, x: Tensor) -> Tensor:
        norm = self.group_norm
        return Again.apply(x, self.convolution.weight, norm.weight, norm.bias, norm.num_groups, norm.eps)


# --------------------------------------------------------------------------------------------------------- the copies

#: GroupNorm from nine ops.
norm_pieces = variant(norm=Segments)
#: SiLU from four ops.
silu_pieces = variant(unit=SigmoidUnit)
#: What goes into a convolution and what comes out is laid out the other way and back.
permutes = variant(unit=PermutedUnit)
#: GroupNorm in double precision.
norm_float64 = variant(norm=DoubleNorm)
#: SiLU in bfloat16, and casts there and back, before each convolution too.
silu_bfloat16 = variant(unit=HalfUnit)
#: What goes into a convolution, a norm and an activation is copied, and what a unit returns.
clones = variant(unit=CloningUnit)
#: After each unit it is asked whether any number is nan or infinite.
nan_checks = variant(net=CheckingUNet)
#: 3 ms of sleep before each step, as if for input.
sleep_before = variant(before=_sleep)
#: Each unit keeps its input only, and is computed again in a backward pass written by hand.
again = variant(mode="train", unit=AgainUnit)
#: GroupNorm by segments, and checks.
pieces_and_checks = variant(norm=Segments, net=CheckingUNet)
#: GroupNorm in double precision, and copies the other way round.
float64_and_permutes = variant(unit=PermutedUnit, norm=DoubleNorm)
