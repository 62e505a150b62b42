"""Copies of the decoder with one cause planted, some with two; they are listed at the end.

All but the last four compute what the decoder computes, with the same contractions.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable
from dataclasses import replace

import torch
from decoder import Attention, Block, Decoder, EagerAttention, MaskedAttention, RMSNorm, SwiGLU, step, variant
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


class WrittenOutSoftmax(EagerAttention):
    def softmax(self, scores: Tensor) -> Tensor:
        exponents = torch.exp(scores - scores.amax(-1, keepdim=True))
        return exponents / exponents.sum(-1, keepdim=True)


class SlicedSwiGLU(SwiGLU):
    def gated(self, gate: Tensor, up: Tensor) -> Tensor:
        parts = zip(gate.chunk(8, -1), up.chunk(8, -1), strict=True)
        return torch.cat([a / (1.0 + torch.exp(-a)) * b for a, b in parts], -1)


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


class FreshMask(MaskedAttention):
    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        seq = query.shape[-2]
        shape = (*query.shape[:2], seq, seq)
        mask = torch.full(shape, -math.inf, dtype=torch.float64).triu(1).float()
        return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)


class TurnedBlock(Block):
    def forward(self, x: Tensor) -> Tensor:
        x = turned(x)
        x = turned(x + self.attention(self.norm1(x)))
        return turned(x + self.ffn(turned(self.norm2(x))))


def turned(x: Tensor) -> Tensor:
    """Samples and tokens change places, and back."""
    return x.permute(2, 1, 0).contiguous().permute(2, 1, 0).contiguous()


class ColumnSlices(SwiGLU):
    def forward(self, x: Tensor) -> Tensor:
        gate = torch.cat([functional.linear(x, part) for part in self.gate.weight.chunk(8)], -1)
        up = torch.cat([functional.linear(x, part) for part in self.up.weight.chunk(8)], -1)
        return self.down(self.gated(gate, up))


# --------------------------------------------------------------------------------------------- the host is waited for


class LoggingDecoder(Decoder):
    def through(self, block: nn.Module, x: Tensor) -> Tensor:
        x = block(x)
        self.largest, self.smallest = x.max().item(), x.min().item()
        self.mean, self.deviation = x.mean().item(), x.std().item()
        return x


class SleepingDecoder(Decoder):
    def through(self, block: nn.Module, x: Tensor) -> Tensor:
        time.sleep(2e-4)
        return block(x)


class ListingDecoder(Decoder):
    def through(self, block: nn.Module, x: Tensor) -> Tensor:
        self.history = [{"layer": str(number), "value": number * 0.5} for number in range(1000)]
        return block(x)


class PrintingDecoder(Decoder):
    def through(self, block: nn.Module, x: Tensor) -> Tensor:
        x = block(x)
        self.line = str(x[0, 0, :8])
        return x


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


class Checkpointed(Decoder):
    def through(self, block: nn.Module, x: Tensor) -> Tensor:
        return checkpoint(block, x, use_reentrant=True)


# ------------------------------------------------------------------------------------------------------ torch.compile


class BreakingDecoder(Decoder):
    def through(self, block: nn.Module, x: Tensor) -> Tensor:
        x = block(x)
        print(f"layer of {tuple(x.shape)}", file=NOWHERE)
        return x


NOWHERE = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


class DisabledNorm(RMSNorm):
    @torch.compiler.disable
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)


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


# ------------------------------------------------------------------------------------------------- not the same model


class DroppingBlock(Block):
    def forward(self, x: Tensor) -> Tensor:
        return functional.dropout(super().forward(x), 1e-7, training=True)


# --------------------------------------------------------------------------------------------------------- the copies

#: RMSNorm from ten ops, nearly all of the size of the input.
rms_norm_streams = variant(norm=StreamingNorm)
#: Softmax from exp, sum and div, in attention that is written out anyway.
softmax_written_out = variant(attention=WrittenOutSoftmax)
#: SwiGLU by segments, in eight slices.
swiglu_slices = variant(feed_forward=SlicedSwiGLU)
#: Rotary embedding frequency by frequency.
rotary_slices = variant(attention=SlicedRotary)
#: Each layer makes the causal mask anew, in double precision, for each sample and head.
mask_each_step = variant(attention=FreshMask)
#: Copies with the axes the other way round and back, four per layer.
transposes = variant(block=TurnedBlock)
#: Two products per layer in eight slices of columns each.
matmul_slices = variant(size="tiny", feed_forward=ColumnSlices)
#: After each layer four statistics are read with `.item()`.
item_per_layer = variant(size="tiny", decoder=LoggingDecoder)
#: 0.2 ms of sleep before each layer.
sleep_per_layer = variant(decoder=SleepingDecoder)
#: A list of 1000 dictionaries is built before each layer.
python_list = variant(decoder=ListingDecoder)
#: After each layer eight numbers are made into text, as for printing.
print_tensor = variant(decoder=PrintingDecoder)
#: AdamW in ten ops and more per parameter, as a class of optimizer.
adam_by_hand = variant(mode="train", optimizer=Adam10)
#: Each layer is computed again in the backward pass (the reentrant form).
checkpoints = variant(mode="train", decoder=Checkpointed)
#: After each layer a line is printed, which breaks the graph.
print_per_layer = variant(size="tiny", decoder=BreakingDecoder)
#: The norms are kept out of the compiled graph.
disabled_norm = variant(size="narrow", norm=DisabledNorm)
#: Copies the other way round, and sleep.
transposes_and_sleep = variant(block=TurnedBlock, decoder=SleepingDecoder)
#: Recomputation and AdamW by hand.
checkpoints_and_adam = variant(mode="train", decoder=Checkpointed, optimizer=Adam10)
#: Not the same model, this one and all below: a hidden size of 128 and not 96.
wider = variant(width=128)
#: The whole model in bfloat16.
bfloat16 = variant(dtype=torch.bfloat16)
#: The embedding and the first two blocks do not learn.
frozen = variant(mode="train", frozen=2)
#: Dropout at a rate at which next to nothing is dropped.
rare_dropout = variant(mode="train", block=DroppingBlock)
