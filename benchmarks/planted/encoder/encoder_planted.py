"""Copies of the encoder with one cause planted, some with two; they are listed at the end.

All but the last four compute what the encoder computes, with the same contractions. Those do not, and a comparison
must refuse them.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable

import torch
from encoder import VOCABULARY, Attention, Encoder, FeedForward, Layer, variant
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

# ------------------------------------------------------------------------------------- the same work, more traffic


class WrittenOutNorm(nn.LayerNorm):
    def forward(self, x: Tensor) -> Tensor:
        mean, variance = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, unbiased=False)
        return (x - mean) / torch.sqrt(variance + self.eps) * self.weight + self.bias


class NormOfSquares(nn.LayerNorm):
    def forward(self, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        variance = (centred * centred).mean(-1, keepdim=True)
        return centred * torch.rsqrt(variance + self.eps) * self.weight + self.bias


class WrittenOutGelu(FeedForward):
    def activate(self, x: Tensor) -> Tensor:
        return x * 0.5 * (1.0 + torch.erf(x / 1.4142135623730951))


class EagerAttention(Attention):
    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scores = torch.matmul(query, key.transpose(-1, -2)) * query.shape[-1] ** -0.5
        return torch.matmul(scores.softmax(-1), value)


def turned(x: Tensor) -> Tensor:
    return x.transpose(1, 2).contiguous().transpose(1, 2).contiguous()


class TransposedAttention(Attention):
    def project(self, x: Tensor) -> Tensor:
        return turned(super().project(x))


class TransposedFeedForward(FeedForward):
    def activate(self, x: Tensor) -> Tensor:
        return super().activate(turned(x))


class DoubleGelu(FeedForward):
    def activate(self, x: Tensor) -> Tensor:
        return functional.gelu(x.double()).float()


class NoisyFeedForward(FeedForward):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x + 0.0 * torch.randn_like(x))


# --------------------------------------------------------------------------------------------- the host is waited for


class Sleeping(Encoder):
    def through(self, layer: nn.Module, x: Tensor) -> Tensor:
        time.sleep(3e-4)
        return layer(x)


class Computing(Encoder):
    def through(self, layer: nn.Module, x: Tensor) -> Tensor:
        sum(number * number for number in range(10_000))
        return layer(x)


LISTS = [[random.randrange(VOCABULARY) for _ in range(128)] for _ in range(192)]


class FromLists(Encoder):
    def forward(self, tokens: Tensor) -> Tensor:
        # More than the batch: what is made is not used, only the time that it takes matters.
        torch.tensor(LISTS, dtype=torch.long)
        return super().forward(tokens)


class TemperedAttention(Attention):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__(width, heads)
        self.register_buffer("temperatures", torch.ones(heads), persistent=False)

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        for head in range(self.heads):
            if not 0.0 < self.temperatures[head].item() < 2.0 or self.temperatures[head].item() != 1.0:
                raise ValueError("a temperature moved")
        return super().attend(query, key, value)


def checked(x: Tensor) -> Tensor:
    if not torch.isfinite(x).all().item():
        raise ValueError("a number is not finite")
    return x


class Checking(Layer):
    def forward(self, x: Tensor) -> Tensor:
        return checked(super().forward(checked(x)))


# --------------------------------------------------------------------------------------------------- many small ops


class SlicedFeedForward(FeedForward):
    def forward(self, x: Tensor) -> Tensor:
        up = functional.linear(x, self.up.weight)
        slices = zip(up.chunk(16, -1), self.up.bias.chunk(16), strict=True)
        up = torch.cat([functional.gelu(part + bias) for part, bias in slices], -1)
        return self.down(up)


class ScaledLayer(Layer):
    def forward(self, x: Tensor) -> Tensor:
        x = super().forward(x)
        for _ in range(10):
            x = x * 2.0 * 0.5
        return x


class OneByOne(Layer):
    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([super(OneByOne, self).forward(one) for one in x.split(1)])


# --------------------------------------------------------------------------------------------------------- training


class Checkpointed(Encoder):
    def through(self, layer: nn.Module, x: Tensor) -> Tensor:
        return checkpoint(layer, x, use_reentrant=False)


def looping_adamw(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, foreach=False)


# ------------------------------------------------------------------------------------------------- not the same model


class DoubleFeedForward(FeedForward):
    def forward(self, x: Tensor) -> Tensor:
        up = functional.linear(x.double(), self.up.weight.double(), self.up.bias.double())
        return self.down(functional.gelu(up.float()))


class Dropping(Layer):
    def forward(self, x: Tensor) -> Tensor:
        return functional.dropout(super().forward(x), 0.1, training=True)


class Padding(Encoder):
    def forward(self, tokens: Tensor) -> Tensor:
        return super().forward(functional.pad(tokens, (0, tokens.shape[1] // 2)))


# --------------------------------------------------------------------------------------------------------- the copies

#: Layer normalisation from eight ops.
unfused_norm = variant(norm=WrittenOutNorm)
#: Layer normalisation from nine ops that each stream.
norm_of_squares = variant(norm=NormOfSquares)
#: GELU from five ops.
unfused_gelu = variant(feed_forward=WrittenOutGelu)
#: Attention from matmul, softmax and matmul.
eager_attention = variant(attention=EagerAttention)
#: What each layer makes of its input is laid out the other way and back, in attention and feed-forward part.
transposes = variant(attention=TransposedAttention, feed_forward=TransposedFeedForward)
#: GELU in double precision.
float64 = variant(feed_forward=DoubleGelu)
#: Noise whose strength is 0.
random_numbers = variant(feed_forward=NoisyFeedForward)
#: 0.3 ms of sleep before each layer.
sleep = variant(encoder=Sleeping)
#: A loop in Python before each layer.
python_work = variant(encoder=Computing)
#: Each step first makes a tensor of lists of numbers.
data_input = variant(encoder=FromLists)
#: Each layer reads two numbers per head from a tensor, each with `.item()`.
item = variant(attention=TemperedAttention)
#: Each layer asks whether its input and output are finite, and waits for the answer.
checks = variant(layer=Checking)
#: Bias and GELU in sixteen slices.
tiny_ops = variant(size="tiny", feed_forward=SlicedFeedForward)
#: Each layer multiplies by 2 and by 1/2, ten times.
scalings = variant(size="tiny", layer=ScaledLayer)
#: Each layer takes the samples one by one.
python_loop = variant(layer=OneByOne)
#: Each layer is computed again in the backward pass.
recomputation = variant(mode="train", encoder=Checkpointed)
#: AdamW that takes the parameters one by one, in a dozen ops each.
optimizer_loop = variant(mode="train", optimizer=looping_adamw)
#: Unfused normalisation and sleep.
norm_and_sleep = variant(norm=WrittenOutNorm, encoder=Sleeping)
#: Eager attention and transposes.
attention_and_transposes = variant(attention=EagerAttention, feed_forward=TransposedFeedForward)
#: Recomputation and AdamW in a loop.
recomputation_and_optimizer_loop = variant(mode="train", encoder=Checkpointed, optimizer=looping_adamw)
#: Not the same model, this one and all below: twice the hidden size.
doubled_width = variant(width=256)
#: One product per layer in double precision.
float64_matmul = variant(feed_forward=DoubleFeedForward)
#: Dropout after each layer.
dropout = variant(mode="train", layer=Dropping)
#: Half as many tokens again, all of them padding.
padding = variant(encoder=Padding)
