"""The vision transformer of `vit.py` in PyTorch: the same weights and pictures."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

BATCH, SIDE, SHRINK, PATCH, WIDTH, HEADS, LAYERS, CLASSES = 6, 48, 3, 6, 64, 8, 3, 10
TOKENS = (SIDE // PATCH) ** 2


class Layer(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.qkv, self.out = weight(WIDTH, 3 * WIDTH), weight(WIDTH, WIDTH)
        self.up, self.down = weight(WIDTH, 3 * WIDTH), weight(3 * WIDTH, WIDTH)

    def attention(self, x):
        q, k, v = (x @ self.qkv).view(len(x), TOKENS, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape) @ self.out

    def forward(self, x):
        x = x + self.attention(F.layer_norm(x, (WIDTH,), eps=1e-6))
        return x + F.gelu(F.layer_norm(x, (WIDTH,), eps=1e-6) @ self.up, approximate="tanh") @ self.down


class ViT(nn.Module):
    def __init__(self, layer=Layer):
        super().__init__()
        generator = np.random.default_rng(0)

        def weight(*shape):
            return nn.Parameter(
                torch.from_numpy((generator.standard_normal(shape) / shape[0] ** 0.5).astype(np.float32))
            )

        self.patch, self.place = weight(PATCH * PATCH * 3, WIDTH), weight(TOKENS, WIDTH)
        self.place.data *= 0.02
        self.layers = nn.ModuleList(layer(weight) for _ in range(LAYERS))
        self.head = weight(WIDTH, CLASSES)

    def forward(self, x):
        across = SIDE // PATCH
        x = x.view(len(x), across, PATCH, across, PATCH, 3).transpose(2, 3).reshape(len(x), TOKENS, -1)
        x = x @ self.patch + self.place
        for layer in self.layers:
            x = layer(x)
        return F.layer_norm(x.mean(1), (WIDTH,), eps=1e-6) @ self.head


def pictures():
    shape = BATCH, SHRINK * SIDE, SHRINK * SIDE, 3
    return torch.from_numpy(np.random.default_rng(1).integers(0, 256, shape).astype(np.uint8))


def normal(raw):
    x = raw.view(BATCH, SIDE, SHRINK, SIDE, SHRINK, 3).float().mean((2, 4))
    return (x / 255 - 0.5) / 0.25


def make_step(layer=Layer):
    model, raw = ViT(layer).eval(), pictures()

    @torch.inference_mode()
    def step():
        return model(normal(raw))

    return step


class OneByOne(Layer):
    """Pictures, and heads in them, one after the other."""

    def attention(self, x):
        results = []
        for one in x @ self.qkv:
            heads = []
            for q, k, v in one.view(TOKENS, 3, HEADS, -1).permute(2, 1, 0, 3):
                heads.append(F.softmax(q @ k.t() / (WIDTH // HEADS) ** 0.5, dim=-1) @ v)
            results.append(torch.cat(heads, dim=-1))
        return torch.stack(results) @ self.out


def one_by_one():
    return make_step(OneByOne)
