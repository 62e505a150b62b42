"""Swin (version 2): attention in windows, by cosines, with a bias from a small network; every other block shifts."""

import torch
import torch.nn.functional as F
from torch import nn

BATCH, SIDE, WINDOW, WIDTH, HEADS, BLOCKS, CLASSES = 1, 32, 16, 48, 2, 2, 10
TOKENS, ACROSS = WINDOW * WINDOW, SIDE // WINDOW


def windows(x):
    """(batch, side, side, width) to (batch x windows, tokens, width)."""
    x = x.view(-1, ACROSS, WINDOW, ACROSS, WINDOW, WIDTH)
    return x.transpose(2, 3).reshape(-1, TOKENS, WIDTH)


def together(x):
    x = x.view(-1, ACROSS, ACROSS, WINDOW, WINDOW, WIDTH)
    return x.transpose(2, 3).reshape(-1, SIDE, SIDE, WIDTH)


def distances():
    """Of two places in a window, on a scale of logarithms; and which pair has which of them."""
    steps = torch.arange(1 - WINDOW, WINDOW, dtype=torch.float32)
    table = torch.stack(torch.meshgrid(steps, steps, indexing="ij"), dim=-1) * 8 / (WINDOW - 1)
    table = torch.sign(table) * torch.log2(table.abs() + 1) / 3
    places = torch.stack(torch.meshgrid(torch.arange(WINDOW), torch.arange(WINDOW), indexing="ij")).flatten(1)
    apart = places[:, :, None] - places[:, None, :] + WINDOW - 1
    return table.view(-1, 2), apart[0] * (2 * WINDOW - 1) + apart[1]


def regions(shift):
    """-100 between tokens that were not neighbours before the shift; (windows, 1, tokens, tokens)."""
    parts = (slice(0, -WINDOW), slice(-WINDOW, -shift), slice(-shift, None))
    region = torch.zeros(1, SIDE, SIDE, 1)
    for i, rows in enumerate(parts):
        for j, columns in enumerate(parts):
            region[:, rows, columns] = 3 * i + j
    region = windows(region.expand(-1, -1, -1, WIDTH))[..., 0]
    return torch.where(region[:, None, :] == region[:, :, None], 0.0, -100.0)[:, None]


class Attention(nn.Module):
    def __init__(self, shift):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.places = nn.Sequential(nn.Linear(2, 256), nn.ReLU(inplace=True), nn.Linear(256, HEADS, bias=False))
        self.scale = nn.Parameter(torch.full((HEADS, 1, 1), 2.3))
        self.shift, self.known = shift, None

    def compute_bias(self):
        table, index = distances()
        bias = 16 * torch.sigmoid(self.places(table)[index].permute(2, 0, 1))
        return bias + regions(self.shift) if self.shift else bias[None]

    def bias(self):
        """Stays the same while weights do."""
        if self.known is None:
            self.known = self.compute_bias()
        return self.known

    def share(self, scores):
        return F.softmax(scores, dim=-1)

    def forward(self, x):
        q, k, v = self.qkv(x).view(len(x), TOKENS, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        scores = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(2, 3) * self.scale.exp()
        scores = (scores.view(-1, ACROSS**2, HEADS, TOKENS, TOKENS) + self.bias()).view_as(scores)
        return self.out((self.share(scores) @ v).transpose(1, 2).reshape(len(x), TOKENS, WIDTH))


class Block(nn.Module):
    def __init__(self, shift, attention=Attention):
        super().__init__()
        self.attention, self.norm1, self.norm2 = attention(shift), nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.shift = shift

    def forward(self, x):
        y = torch.roll(x, (-self.shift, -self.shift), (1, 2)) if self.shift else x
        y = together(self.attention(windows(y)))
        y = torch.roll(y, (self.shift, self.shift), (1, 2)) if self.shift else y
        x = x + self.norm1(y)
        return x + self.norm2(self.mlp(x))


class Swin(nn.Module):
    def __init__(self, attention=Attention, block=Block):
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, 4, 4)
        self.blocks = nn.ModuleList(block(WINDOW // 2 * (i % 2), attention) for i in range(BLOCKS))
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, images):
        x = self.patches(images).permute(0, 2, 3, 1)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean((1, 2)))


def images():
    return torch.randn(BATCH, 3, 4 * SIDE, 4 * SIDE, generator=torch.Generator().manual_seed(1))


def step_of(model=Swin, **kinds):
    torch.manual_seed(0)
    made, x = model(**kinds).eval(), images()

    @torch.inference_mode()
    def step():
        return made(x)

    return step


def make_step():
    return step_of()
