"""A Conformer encoder for speech: two half feed-forwards around relative attention and a convolution."""

import math

import torch
import torch.nn.functional as F
from torch import nn

BATCH, FRAMES, WIDTH, HEADS, KERNEL, LAYERS, LETTERS = 1, 160, 64, 4, 15, 2, 32


class FeedForward(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.dropout = nn.Dropout(rate)

    def forward(self, x):
        return self.dropout(self.down(self.dropout(F.silu(self.up(self.norm(x))))))


class RelativeAttention(nn.Module):
    """As in Transformer-XL."""

    def __init__(self, rate):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.pos = nn.Linear(WIDTH, WIDTH, bias=False)
        self.u, self.v = (nn.Parameter(torch.zeros(HEADS, 1, WIDTH // HEADS)) for _ in range(2))
        self.dropout = nn.Dropout(rate)

    def by_distance(self, q, p):
        """Scores of all distances, shifted such that each query's keys stand below each other."""
        scores = q @ p.transpose(1, 2)
        b, h, t, n = scores.shape
        return F.pad(scores, (1, 0)).view(b, h, n + 1, t)[:, :, 1:].view(b, h, t, n)[..., :t]

    def forward(self, x, pos):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        p = self.pos(pos).view(2 * t - 1, HEADS, -1).transpose(0, 1)
        scores = (q + self.u) @ k.transpose(2, 3) + self.by_distance(q + self.v, p)
        share = self.dropout(F.softmax(scores / math.sqrt(WIDTH // HEADS), dim=-1))
        return self.dropout(self.out((share @ v).transpose(1, 2).reshape(b, t, WIDTH)))


class Convolution(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Conv1d(WIDTH, 2 * WIDTH, 1), nn.Conv1d(WIDTH, WIDTH, 1)
        self.depthwise = nn.Conv1d(WIDTH, WIDTH, KERNEL, padding=KERNEL // 2, groups=WIDTH)
        self.batch_norm = nn.BatchNorm1d(WIDTH)
        self.dropout = nn.Dropout(rate)

    def forward(self, x):
        y = F.glu(self.up(self.norm(x).transpose(1, 2)), dim=1)
        y = F.silu(self.batch_norm(self.depthwise(y)))
        return self.dropout(self.down(y).transpose(1, 2))


class Block(nn.Module):
    def __init__(self, attention, convolution, rate):
        super().__init__()
        self.first, self.second = FeedForward(rate), FeedForward(rate)
        self.attention, self.convolution = attention(rate), convolution(rate)
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x, pos):
        x = x + 0.5 * self.first(x)
        x = x + self.attention(x, pos)
        x = x + self.convolution(x)
        return self.norm(x + 0.5 * self.second(x))


def positions():
    """Sines of all distances, from the farthest key behind to the farthest ahead."""
    distances = torch.arange(FRAMES - 1, -FRAMES, -1.0)
    angles = distances[:, None] * torch.exp(torch.arange(0, WIDTH, 2.0) * (-math.log(10000.0) / WIDTH))
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)


class Conformer(nn.Module):
    def __init__(self, attention=RelativeAttention, convolution=Convolution, rate=0.0):
        super().__init__()
        self.blocks = nn.ModuleList(Block(attention, convolution, rate) for _ in range(LAYERS))
        self.letters = nn.Linear(WIDTH, LETTERS)
        self.register_buffer("positions", positions())

    def forward(self, x):
        for block in self.blocks:
            x = block(x, self.positions)
        return self.letters(x)


def frames():
    return torch.randn(BATCH, FRAMES, WIDTH, generator=torch.Generator().manual_seed(1))


def step_of(**kinds):
    torch.manual_seed(0)
    model, x = Conformer(**kinds).eval(), frames()

    @torch.inference_mode()
    def step():
        return model(x)

    return step


def train(**kinds):
    torch.manual_seed(0)
    model, x = Conformer(**kinds).train(), frames()
    labels = torch.randint(LETTERS, (BATCH, FRAMES), generator=torch.Generator().manual_seed(2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x).flatten(0, 1), labels.flatten())
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def make_step():
    return step_of()


def make_train():
    return train()
