"""Copies of the encoder with one cause planted, some with two; each function makes one.

All but the last four compute what the encoder computes, with the same contractions. Those do not, and a
comparison must refuse them.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable

import torch
from encoder import VOCABULARY, Attention, Encoder, FeedForward, Layer, step
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import roofline

# ------------------------------------------------------------------------------------- the same work, more traffic


class WrittenOutNorm(nn.LayerNorm):
    def forward(self, x: Tensor) -> Tensor:
        mean, variance = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, unbiased=False)
        return (x - mean) / torch.sqrt(variance + self.eps) * self.weight + self.bias


class UnfusedNorm(Layer):
    norm = WrittenOutNorm


def unfused_norm(mode: str = "infer", size: str = "base", batch: int | None = None) -> roofline.Step:
    """Layer normalisation from eight ops."""
    return step(mode, size, UnfusedNorm, batch=batch)


class NormOfSquares(nn.LayerNorm):
    def forward(self, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        variance = (centred * centred).mean(-1, keepdim=True)
        return centred * torch.rsqrt(variance + self.eps) * self.weight + self.bias


class SquaresLayer(Layer):
    norm = NormOfSquares


def norm_of_squares(mode: str = "infer", size: str = "base") -> roofline.Step:
    """Layer normalisation from nine ops that each stream."""
    return step(mode, size, SquaresLayer)


class WrittenOutGelu(FeedForward):
    def activate(self, x: Tensor) -> Tensor:
        return x * 0.5 * (1.0 + torch.erf(x / 1.4142135623730951))


class UnfusedGelu(Layer):
    feed_forward = WrittenOutGelu


def unfused_gelu(
    mode: str = "infer", size: str = "base", batch: int | None = None, seq: int | None = None
) -> roofline.Step:
    """GELU from five ops."""
    return step(mode, size, UnfusedGelu, batch=batch, seq=seq)


class EagerAttention(Attention):
    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scores = torch.matmul(query, key.transpose(-1, -2)) * query.shape[-1] ** -0.5
        return torch.matmul(scores.softmax(-1), value)


class EagerLayer(Layer):
    attention_class = EagerAttention


def eager_attention(
    mode: str = "infer", size: str = "base", batch: int | None = None, seq: int | None = None
) -> roofline.Step:
    """Attention from matmul, softmax and matmul."""
    return step(mode, size, EagerLayer, batch=batch, seq=seq)


def turned(x: Tensor) -> Tensor:
    return x.transpose(1, 2).contiguous().transpose(1, 2).contiguous()


class TransposedAttention(Attention):
    def project(self, x: Tensor) -> Tensor:
        return turned(super().project(x))


class TransposedFeedForward(FeedForward):
    def activate(self, x: Tensor) -> Tensor:
        return super().activate(turned(x))


class Transposed(Layer):
    attention_class = TransposedAttention
    feed_forward = TransposedFeedForward


def transposes(mode: str = "infer", size: str = "base") -> roofline.Step:
    """What each layer makes of its input is laid out the other way and back, in attention and feed-forward part."""
    return step(mode, size, Transposed)


class DoubleGelu(FeedForward):
    def activate(self, x: Tensor) -> Tensor:
        return functional.gelu(x.double()).float()


class Float64(Layer):
    feed_forward = DoubleGelu


def float64(mode: str = "infer", size: str = "base") -> roofline.Step:
    """GELU in double precision."""
    return step(mode, size, Float64)


class NoisyFeedForward(FeedForward):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x + 0.0 * torch.randn_like(x))


class Noisy(Layer):
    feed_forward = NoisyFeedForward


def random_numbers(mode: str = "infer", size: str = "base") -> roofline.Step:
    """Noise whose strength is 0."""
    return step(mode, size, Noisy)


# --------------------------------------------------------------------------------------------- the host is waited for


class Sleeping(Encoder):
    def through(self, layer: nn.Module, x: Tensor) -> Tensor:
        time.sleep(3e-4)
        return layer(x)


def sleep(mode: str = "infer", size: str = "base", batch: int | None = None) -> roofline.Step:
    """0.3 ms of sleep before each layer."""
    return step(mode, size, encoder=Sleeping, batch=batch)


class Computing(Encoder):
    def through(self, layer: nn.Module, x: Tensor) -> Tensor:
        sum(number * number for number in range(10_000))
        return layer(x)


def python_work(mode: str = "infer", size: str = "base") -> roofline.Step:
    """A loop in Python before each layer."""
    return step(mode, size, encoder=Computing)


LISTS = [[random.randrange(VOCABULARY) for _ in range(128)] for _ in range(192)]


class FromLists(Encoder):
    def forward(self, tokens: Tensor) -> Tensor:
        # More than the batch: what is made is not used, only the time that it takes matters.
        torch.tensor(LISTS, dtype=torch.long)
        return super().forward(tokens)


def data_input(mode: str = "infer", size: str = "base") -> roofline.Step:
    """Each step first makes a tensor of lists of numbers."""
    return step(mode, size, encoder=FromLists)


class TemperedAttention(Attention):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__(width, heads)
        self.register_buffer("temperatures", torch.ones(heads), persistent=False)

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        for head in range(self.heads):
            if not 0.0 < self.temperatures[head].item() < 2.0 or self.temperatures[head].item() != 1.0:
                raise ValueError("a temperature moved")
        return super().attend(query, key, value)


class Reading(Layer):
    attention_class = TemperedAttention


def item(mode: str = "infer", size: str = "base") -> roofline.Step:
    """Each layer reads two numbers per head from a tensor, each with `.item()`."""
    return step(mode, size, Reading)


def checked(x: Tensor) -> Tensor:
    if not torch.isfinite(x).all().item():
        raise ValueError("a number is not finite")
    return x


class Checking(Layer):
    def forward(self, x: Tensor) -> Tensor:
        return checked(super().forward(checked(x)))


def checks(mode: str = "infer", size: str = "base") -> roofline.Step:
    """Each layer asks whether its input and output are finite, and waits for the answer."""
    return step(mode, size, Checking)


# --------------------------------------------------------------------------------------------------- many small ops


class SlicedFeedForward(FeedForward):
    def forward(self, x: Tensor) -> Tensor:
        up = functional.linear(x, self.up.weight)
        slices = zip(up.chunk(16, -1), self.up.bias.chunk(16), strict=True)
        up = torch.cat([functional.gelu(part + bias) for part, bias in slices], -1)
        return self.down(up)


class Sliced(Layer):
    feed_forward = SlicedFeedForward


def tiny_ops(mode: str = "infer", size: str = "tiny") -> roofline.Step:
    """Bias and GELU in sixteen slices."""
    return step(mode, size, Sliced)


class ScaledLayer(Layer):
    def forward(self, x: Tensor) -> Tensor:
        x = super().forward(x)
        for _ in range(10):
            x = x * 2.0 * 0.5
        return x


def scalings(mode: str = "infer", size: str = "tiny") -> roofline.Step:
    """Each layer multiplies by 2 and by 1/2, ten times."""
    return step(mode, size, ScaledLayer)


class OneByOne(Layer):
    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([super(OneByOne, self).forward(one) for one in x.split(1)])


def python_loop(
    mode: str = "infer", size: str = "base", batch: int | None = None, seq: int | None = None
) -> roofline.Step:
    """Each layer takes the samples one by one."""
    return step(mode, size, OneByOne, batch=batch, seq=seq)


# --------------------------------------------------------------------------------------------------------- training


class Checkpointed(Encoder):
    def through(self, layer: nn.Module, x: Tensor) -> Tensor:
        return checkpoint(layer, x, use_reentrant=False)


def recomputation(mode: str = "train", size: str = "base", batch: int | None = None) -> roofline.Step:
    """Each layer is computed again in the backward pass."""
    return step(mode, size, encoder=Checkpointed, batch=batch)


def looping_adamw(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, foreach=False)


def optimizer_loop(
    mode: str = "train", size: str = "base", batch: int | None = None, seq: int | None = None
) -> roofline.Step:
    """AdamW that takes the parameters one by one, in a dozen ops each."""
    return step(mode, size, optimizer=looping_adamw, batch=batch, seq=seq)


# ------------------------------------------------------------------------------------------------------- two at once


def norm_and_sleep(mode: str = "infer", size: str = "base", batch: int | None = None) -> roofline.Step:
    """Unfused normalisation and sleep."""
    return step(mode, size, UnfusedNorm, Sleeping, batch=batch)


class EagerTransposed(Layer):
    attention_class = EagerAttention
    feed_forward = TransposedFeedForward


def attention_and_transposes(
    mode: str = "infer", size: str = "base", batch: int | None = None, seq: int | None = None
) -> roofline.Step:
    """Eager attention and transposes."""
    return step(mode, size, EagerTransposed, batch=batch, seq=seq)


def recomputation_and_optimizer_loop(
    mode: str = "train", size: str = "base", batch: int | None = None, seq: int | None = None
) -> roofline.Step:
    """Recomputation and AdamW in a loop."""
    return step(mode, size, encoder=Checkpointed, optimizer=looping_adamw, batch=batch, seq=seq)


# ------------------------------------------------------------------------------------------------- not the same model


def doubled_width(mode: str = "infer", size: str = "base") -> roofline.Step:
    """Twice the hidden size."""
    return step(mode, size, width=256)


class DoubleFeedForward(FeedForward):
    def forward(self, x: Tensor) -> Tensor:
        up = functional.linear(x.double(), self.up.weight.double(), self.up.bias.double())
        return self.down(functional.gelu(up.float()))


class DoubleProducts(Layer):
    feed_forward = DoubleFeedForward


def float64_matmul(mode: str = "infer", size: str = "base") -> roofline.Step:
    """One product per layer in double precision."""
    return step(mode, size, DoubleProducts)


class Dropping(Layer):
    def forward(self, x: Tensor) -> Tensor:
        return functional.dropout(super().forward(x), 0.1, training=True)


def dropout(mode: str = "train", size: str = "base") -> roofline.Step:
    """Dropout after each layer."""
    return step(mode, size, Dropping)


class Padding(Encoder):
    def forward(self, tokens: Tensor) -> Tensor:
        return super().forward(functional.pad(tokens, (0, tokens.shape[1] // 2)))


def padding(mode: str = "infer", size: str = "base") -> roofline.Step:
    """Half as many tokens again, all of them padding."""
    return step(mode, size, encoder=Padding)
