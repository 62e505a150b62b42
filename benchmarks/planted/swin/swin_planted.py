"""Swin with one thing done as one should not, and Swin under other names."""

import torch
import torch.nn.functional as F
from swin import ACROSS, HEADS, TOKENS, WIDTH, Attention, step_of, together, windows
from torch import nn


class BiasPerCall(Attention):
    """As in training, when weights change."""

    def bias(self):
        return self.compute_bias()


def bias_per_call():
    return step_of(attention=BiasPerCall)


class Written(Attention):
    """The softmax from its definition."""

    def share(self, scores):
        scores = scores - scores.max(dim=-1, keepdim=True).values
        powers = torch.exp(scores)
        return powers / powers.sum(dim=-1, keepdim=True)


def written_softmax():
    return step_of(attention=Written)


class Half(Attention):
    """Shares and values in half precision, which was for the GPU."""

    def forward(self, x):
        q, k, v = self.qkv(x).view(len(x), TOKENS, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        scores = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(2, 3) * self.scale.exp()
        scores = (scores.view(-1, ACROSS**2, HEADS, TOKENS, TOKENS) + self.bias()).view_as(scores)
        mixed = F.softmax(scores.half(), dim=-1) @ v.half()
        return self.out(mixed.float().transpose(1, 2).reshape(len(x), TOKENS, WIDTH))


def half_precision():
    return step_of(attention=Half)


# Nothing was changed


class WindowMixer(nn.Module):
    """The block and its attention as one module, whose layers have other names."""

    def __init__(self, shift, attention=Attention):
        super().__init__()
        inner = attention(shift)
        self.inner = [inner]
        self.project, self.unproject, self.bias_net, self.temperature = inner.qkv, inner.out, inner.places, inner.scale
        self.post_a, self.post_b = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.expand, self.contract = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.offset = shift

    def attend(self, tokens):
        projected = self.project(tokens).view(len(tokens), TOKENS, 3, HEADS, -1)
        query, key, value = (part.transpose(1, 2) for part in projected.unbind(2))
        cosines = torch.matmul(F.normalize(query, dim=3), F.normalize(key, dim=3).mT)
        logits = cosines.mul(self.temperature.exp()).view(-1, ACROSS**2, HEADS, TOKENS, TOKENS)
        weights = torch.softmax(logits.add(self.inner[0].bias()).view_as(cosines), -1)
        return self.unproject(torch.matmul(weights, value).transpose(1, 2).flatten(2))

    def forward(self, x):
        moved = x.roll((-self.offset, -self.offset), (1, 2)) if self.offset else x
        moved = together(self.attend(windows(moved)))
        moved = moved.roll((self.offset, self.offset), (1, 2)) if self.offset else moved
        x = self.post_a(moved).add(x)
        return self.post_b(self.contract(F.gelu(self.expand(x)))).add(x)


def renamed():
    return step_of(block=WindowMixer)
