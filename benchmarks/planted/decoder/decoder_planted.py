"""Copies of the decoder with one cause planted, some with two; each function makes one.

All but the last four compute what the decoder computes, with the same contractions.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable
from dataclasses import replace

import torch
from decoder import Attention, Block, Decoder, EagerAttention, MaskedAttention, RMSNorm, SwiGLU, step
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import roofline

# ------------------------------------------------------------------------------------- the same work, more traffic


class StreamingNorm(RMSNorm):
    def forward(self, x: Tensor) -> Tensor:
        size = x.abs()
        squares = (size * size).sum(-1, keepdim=True).expand_as(x) / x.shape[-1]
        deviation = torch.sqrt(squares + self.eps)
        return x.sign() * (size / deviation) * self.weight.expand_as(x).contiguous()


class Streaming(Block):
    norm = StreamingNorm


def rms_norm_streams(mode: str = "infer", size: str = "base", batch: int | None = None) -> roofline.Step:
    """RMSNorm from ten ops, nearly all of the size of the input."""
    return step(mode, size, Streaming, batch=batch)


class WrittenOutSoftmax(EagerAttention):
    def softmax(self, scores: Tensor) -> Tensor:
        exponents = torch.exp(scores - scores.amax(-1, keepdim=True))
        return exponents / exponents.sum(-1, keepdim=True)


class SoftmaxBlock(Block):
    attention_class = WrittenOutSoftmax


def softmax_written_out(
    mode: str = "infer", size: str = "base", batch: int | None = None, seq: int | None = None
) -> roofline.Step:
    """Softmax from exp, sum and div, in attention that is written out anyway."""
    return step(mode, size, SoftmaxBlock, batch=batch, seq=seq)


class SlicedSwiGLU(SwiGLU):
    def gated(self, gate: Tensor, up: Tensor) -> Tensor:
        parts = zip(gate.chunk(8, -1), up.chunk(8, -1), strict=True)
        return torch.cat([a / (1.0 + torch.exp(-a)) * b for a, b in parts], -1)


class SlicedGates(Block):
    feed_forward = SlicedSwiGLU


def swiglu_slices(mode: str = "infer", size: str = "base", batch: int | None = None) -> roofline.Step:
    """SwiGLU by segments, in eight slices."""
    return step(mode, size, SlicedGates, batch=batch)


class ComplexRotary(Attention):
    def __init__(self, width: int, heads: int, seq: int) -> None:
        super().__init__(width, heads, seq)
        self.register_buffer("turns", torch.complex(self.cos.double(), self.sin.double()), persistent=False)

    def rotate(self, x: Tensor) -> Tensor:
        one, two = x.double().chunk(2, -1)
        turned = torch.complex(one, two) * self.turns
        return torch.cat([turned.real, turned.imag], -1).float()


class ComplexBlock(Block):
    attention_class = ComplexRotary


def rotary_complex128(
    mode: str = "infer", size: str = "base", batch: int | None = None, seq: int | None = None
) -> roofline.Step:
    """Rotary embedding as a product of complex numbers in double precision."""
    return step(mode, size, ComplexBlock, batch=batch, seq=seq)


class SlicedRotary(Attention):
    def rotate(self, x: Tensor) -> Tensor:
        half = x.shape[-1] // 2
        ones, twos = [], []
        for place in range(half):
            one, two = x[..., place], x[..., place + half]
            cos, sin = self.cos[:, place], self.sin[:, place]
            ones.append(one * cos - two * sin)
            twos.append(two * cos + one * sin)
        return torch.stack([*ones, *twos], -1)


class SlicedRotaryBlock(Block):
    attention_class = SlicedRotary


def rotary_slices(mode: str = "infer", size: str = "base", batch: int | None = None) -> roofline.Step:
    """Rotary embedding frequency by frequency."""
    return step(mode, size, SlicedRotaryBlock, batch=batch)


class FreshMask(MaskedAttention):
    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        seq = query.shape[-2]
        shape = (*query.shape[:2], seq, seq)
        mask = torch.full(shape, -math.inf, dtype=torch.float64).triu(1).float()
        return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)


class FreshMaskBlock(Block):
    attention_class = FreshMask


def mask_each_step(
    mode: str = "infer", size: str = "base", batch: int | None = None, seq: int | None = None
) -> roofline.Step:
    """Each layer makes the causal mask anew, in double precision, for each sample and head."""
    return step(mode, size, FreshMaskBlock, batch=batch, seq=seq)


class TurnedBlock(Block):
    def forward(self, x: Tensor) -> Tensor:
        x = turned(x)
        x = turned(x + self.attention(self.norm1(x)))
        return turned(x + self.ffn(turned(self.norm2(x))))


def turned(x: Tensor) -> Tensor:
    """Samples and tokens change places, and back."""
    return x.permute(2, 1, 0).contiguous().permute(2, 1, 0).contiguous()


def transposes(
    mode: str = "infer", size: str = "base", batch: int | None = None, seq: int | None = None
) -> roofline.Step:
    """Copies with the axes the other way round and back, four per layer."""
    return step(mode, size, TurnedBlock, batch=batch, seq=seq)


class ColumnSlices(SwiGLU):
    def forward(self, x: Tensor) -> Tensor:
        gate = torch.cat([functional.linear(x, part) for part in self.gate.weight.chunk(8)], -1)
        up = torch.cat([functional.linear(x, part) for part in self.up.weight.chunk(8)], -1)
        return self.down(self.gated(gate, up))


class ColumnBlock(Block):
    feed_forward = ColumnSlices


def matmul_slices(mode: str = "infer", size: str = "tiny", batch: int | None = None) -> roofline.Step:
    """Two products per layer in eight slices of columns each."""
    return step(mode, size, ColumnBlock, batch=batch)


# --------------------------------------------------------------------------------------------- the host is waited for


class LoggingDecoder(Decoder):
    def through(self, block: nn.Module, x: Tensor) -> Tensor:
        x = block(x)
        self.largest, self.smallest = x.max().item(), x.min().item()
        self.mean, self.deviation = x.mean().item(), x.std().item()
        return x


def item_per_layer(mode: str = "infer", size: str = "tiny") -> roofline.Step:
    """After each layer four statistics are read with `.item()`."""
    return step(mode, size, decoder=LoggingDecoder)


class SleepingDecoder(Decoder):
    def through(self, block: nn.Module, x: Tensor) -> Tensor:
        time.sleep(2e-4)
        return block(x)


def sleep_per_layer(
    mode: str = "infer", size: str = "base", batch: int | None = None, seq: int | None = None
) -> roofline.Step:
    """0.2 ms of sleep before each layer."""
    return step(mode, size, decoder=SleepingDecoder, batch=batch, seq=seq)


class ListingDecoder(Decoder):
    def through(self, block: nn.Module, x: Tensor) -> Tensor:
        self.history = [{"layer": str(number), "value": number * 0.5} for number in range(1000)]
        return block(x)


def python_list(mode: str = "infer", size: str = "base") -> roofline.Step:
    """A list of 1000 dictionaries is built before each layer."""
    return step(mode, size, decoder=ListingDecoder)


class PrintingDecoder(Decoder):
    def through(self, block: nn.Module, x: Tensor) -> Tensor:
        x = block(x)
        self.line = str(x[0, 0, :8])
        return x


def print_tensor(mode: str = "infer", size: str = "base") -> roofline.Step:
    """After each layer eight numbers are made into text, as for printing."""
    return step(mode, size, decoder=PrintingDecoder)


# --------------------------------------------------------------------------------------------------------- training


class Adam10(torch.optim.Optimizer):
    """AdamW as it stands in the paper, ten ops per parameter."""

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        super().__init__(parameters, {"lr": 1e-4})
        self.number = 0

    @torch.no_grad()
    def step(self, closure: object = None) -> None:
        self.number += 1
        for parameter in self.param_groups[0]["params"]:
            state = self.state[parameter]
            if not state:
                state["first"], state["second"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
            gradient = parameter.grad
            parameter.mul_(1 - 1e-4 * 1e-2)
            state["first"] = 0.9 * state["first"] + 0.1 * gradient
            state["second"] = 0.999 * state["second"] + 0.001 * gradient * gradient
            first = state["first"] / (1 - 0.9**self.number)
            second = state["second"] / (1 - 0.999**self.number)
            parameter.sub_(1e-4 * first / (torch.sqrt(second) + 1e-8))


def adam_by_hand(mode: str = "train", size: str = "base", batch: int | None = None) -> roofline.Step:
    """AdamW in ten ops and more per parameter, as a class of optimizer."""
    return step(mode, size, optimizer=Adam10, batch=batch)


class Checkpointed(Decoder):
    def through(self, block: nn.Module, x: Tensor) -> Tensor:
        return checkpoint(block, x, use_reentrant=True)


def checkpoints(mode: str = "train", size: str = "base", batch: int | None = None) -> roofline.Step:
    """Each layer is computed again in the backward pass (the reentrant form)."""
    return step(mode, size, decoder=Checkpointed, batch=batch)


# ------------------------------------------------------------------------------------------------------ torch.compile


class BreakingDecoder(Decoder):
    def through(self, block: nn.Module, x: Tensor) -> Tensor:
        x = block(x)
        print(f"layer of {tuple(x.shape)}", file=NOWHERE)
        return x


NOWHERE = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def print_per_layer(mode: str = "infer", size: str = "tiny") -> roofline.Step:
    """After each layer a line is printed, which breaks the graph."""
    return step(mode, size, decoder=BreakingDecoder)


class DisabledRotary(Attention):
    @torch.compiler.disable
    def rotate(self, x: Tensor) -> Tensor:
        return super().rotate(x)


class DisabledBlock(Block):
    attention_class = DisabledRotary


def disabled_rotary(mode: str = "infer", size: str = "tiny") -> roofline.Step:
    """The rotary embedding is kept out of the compiled graph."""
    return step(mode, size, DisabledBlock)


class DisabledNorm(RMSNorm):
    @torch.compiler.disable
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)


class DisabledNormBlock(Block):
    norm = DisabledNorm


def disabled_norm(mode: str = "infer", size: str = "narrow", batch: int | None = None) -> roofline.Step:
    """The norms are kept out of the compiled graph."""
    return step(mode, size, DisabledNormBlock, batch=batch)


class Forgotten(Decoder):
    """The last norm and the head only are compiled."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.compiled = torch.compile(lambda x: self.head(self.norm(x)))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = self.through(block, x)
        return self.compiled(x)


def compiled_head_only(mode: str = "infer", size: str = "narrow", batch: int | None = None) -> roofline.Step:
    """All but the last norm and the head runs eagerly: the blocks were compiled into objects that nobody calls."""
    made = step(mode, size, decoder=Forgotten, batch=batch)
    for block in made.model.blocks:
        torch.compile(block)  # returns another object
    return replace(made, model=None)


def compiled_not_called(mode: str = "infer", size: str = "narrow", batch: int | None = None) -> roofline.Step:
    """The model is compiled into an object that nobody calls."""
    made = step(mode, size, batch=batch)
    compiled = torch.compile(made.model)
    return replace(made, model=compiled)


# ------------------------------------------------------------------------------------------------------- two at once


def transposes_and_sleep(
    mode: str = "infer", size: str = "base", batch: int | None = None, seq: int | None = None
) -> roofline.Step:
    """Copies the other way round, and sleep."""
    return step(mode, size, TurnedBlock, SleepingDecoder, batch=batch, seq=seq)


def checkpoints_and_adam(mode: str = "train", size: str = "base", batch: int | None = None) -> roofline.Step:
    """Recomputation and AdamW by hand."""
    return step(mode, size, decoder=Checkpointed, optimizer=Adam10, batch=batch)


# ------------------------------------------------------------------------------------------------- not the same model


def wider(mode: str = "infer", size: str = "base") -> roofline.Step:
    """A hidden size of 128 and not 96."""
    return step(mode, size, width=128)


def bfloat16(mode: str = "infer", size: str = "base") -> roofline.Step:
    """The whole model in bfloat16."""
    return step(mode, size, dtype=torch.bfloat16)


def frozen(mode: str = "train", size: str = "base") -> roofline.Step:
    """The embedding and the first two blocks do not learn."""
    return step(mode, size, frozen=2)


class DroppingBlock(Block):
    def forward(self, x: Tensor) -> Tensor:
        return functional.dropout(super().forward(x), 1e-7, training=True)


def rare_dropout(mode: str = "train", size: str = "base") -> roofline.Step:
    """Dropout at a rate at which next to nothing is dropped."""
    return step(mode, size, DroppingBlock)
