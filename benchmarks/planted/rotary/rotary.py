"""A decoder as HuggingFace writes it: RMS norm, rotary positions, grouped-query attention, gated feed-forward."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

WIDTH, HEADS, GROUPS, HIDDEN, VOCABULARY, LAYERS, LONGEST = 192, 8, 2, 512, 1000, 3, 4096
SIZE = WIDTH // HEADS


def rotary_tables(positions: Tensor) -> tuple[Tensor, Tensor]:
    """(seq, size) each."""
    inverse = 1.0 / (10000.0 ** (torch.arange(0, SIZE, 2) / SIZE))
    angles = torch.outer(positions.float(), inverse)
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


def rotate_half(x: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


class Attention(nn.Module):
    """Two heads of keys serve eight of queries."""

    def __init__(self) -> None:
        super().__init__()
        self.q_proj = nn.Linear(WIDTH, WIDTH, bias=False)
        self.k_proj = nn.Linear(WIDTH, GROUPS * SIZE, bias=False)
        self.v_proj = nn.Linear(WIDTH, GROUPS * SIZE, bias=False)
        self.o_proj = nn.Linear(WIDTH, WIDTH, bias=False)

    def split(self, x: Tensor, heads: int) -> Tensor:
        return x.view(*x.shape[:2], heads, SIZE).transpose(1, 2)

    def tables(self, x: Tensor, tables: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return tables

    def rotate(self, x: Tensor, tables: tuple[Tensor, Tensor]) -> Tensor:
        return x * tables[0] + rotate_half(x) * tables[1]

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    def forward(self, x: Tensor, tables: tuple[Tensor, Tensor], mask: Tensor) -> Tensor:
        tables = self.tables(x, tables)
        q = self.rotate(self.split(self.q_proj(x), HEADS), tables)
        k = self.rotate(self.split(self.k_proj(x), GROUPS), tables)
        v = self.split(self.v_proj(x), GROUPS)
        k, v = (one.repeat_interleave(HEADS // GROUPS, dim=1) for one in (k, v))
        return self.o_proj(self.attend(q, k, v, mask).transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    """SwiGLU."""

    def __init__(self) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.up_proj = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.down_proj = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    """Norm first."""

    def __init__(self, attention: type[Attention], norm: Callable[[int], nn.Module]) -> None:
        super().__init__()
        self.input_layernorm = norm(WIDTH)
        self.self_attn = attention()
        self.post_attention_layernorm = norm(WIDTH)
        self.mlp = FeedForward()

    def forward(self, x: Tensor, tables: tuple[Tensor, Tensor], mask: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), tables, mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    """Tokens to the scores of the next."""

    def __init__(
        self,
        layers: int = LAYERS,
        attention: type[Attention] = Attention,
        norm: Callable[[int], nn.Module] = nn.RMSNorm,
    ) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Layer(attention, norm) for _ in range(layers))
        self.norm = norm(WIDTH)
        self.lm_head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.cached: Tensor | None = None

    def mask(self, length: int) -> Tensor:
        if self.cached is None:
            self.cached = torch.full((length, length), -math.inf).triu(1)
        return self.cached

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed_tokens(tokens)
        tables = rotary_tables(torch.arange(tokens.shape[1]))
        mask = self.mask(tokens.shape[1])
        for layer in self.layers:
            x = layer(x, tables, mask)
        return self.lm_head(self.norm(x))


def tokens(batch: int = 1, length: int = 128) -> Tensor:
    return torch.randint(VOCABULARY, (batch, length), generator=torch.Generator().manual_seed(0))


def prefill(model: nn.Module, ids: Tensor) -> Callable[[], Tensor]:
    model.eval()

    def step() -> Tensor:
        with torch.no_grad():
            return model(ids)

    return step


def make_step() -> Callable[[], Tensor]:
    return prefill(Decoder(), tokens())


def make_long() -> Callable[[], Tensor]:
    """More of it is attention."""
    return prefill(Decoder(layers=2), tokens(length=320))


def train(model: nn.Module, ids: Tensor, optimizer: torch.optim.Optimizer) -> Callable[[], Tensor]:
    def step() -> Tensor:
        optimizer.zero_grad()
        scores = model(ids)
        loss = F.cross_entropy(scores[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def make_train() -> Callable[[], Tensor]:
    model = Decoder()
    return train(model, tokens(length=64), torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))
