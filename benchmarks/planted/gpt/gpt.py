"""A small GPT as in many a notebook: micro-batches, gradients cut to a length, and AdamW; or it writes."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

VOCABULARY, WIDTH, HEADS, LAYERS, LENGTH, SAMPLES = 1024, 64, 4, 6, 24, 8
WRITTEN = 12


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor, past: list[Tensor] | None) -> Tensor:
        """past: keys and values of the tokens before x; those of x are put behind them."""
        q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        if past is not None:
            if past:
                k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
            past[:] = [k, v]
        a = F.scaled_dot_product_attention(q, k, v, is_causal=x.shape[1] > 1)
        x = x + self.out(a.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.words, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH + WRITTEN, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens: Tensor, past: list[list[Tensor]] | None = None) -> Tensor:
        before = past[0][0].shape[2] if past and past[0] else 0
        x = self.words(tokens) + self.places.weight[before : before + tokens.shape[1]]
        for number, block in enumerate(self.blocks):
            x = block(x, None if past is None else past[number])
        return self.head(self.norm(x))


def loss_of(logits: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), label_smoothing=0.1)


def text(samples: int, length: int) -> Tensor:
    return torch.randint(VOCABULARY, (samples, length), generator=torch.Generator().manual_seed(1))


class Plain:
    """How gradients come about and are made ready."""

    def __init__(self, parameters):
        self.parameters = parameters

    def zero(self):
        for p in self.parameters:
            p.grad = None

    def backward(self, loss: Tensor):
        loss.backward()

    def ready(self):
        nn.utils.clip_grad_norm_(self.parameters, 1.0, foreach=True)


def make_train(parts: int = 2, loss_of=loss_of, gradients=Plain):
    model = GPT()
    rule = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    tokens = text(SAMPLES, LENGTH + 1).chunk(parts)
    prepared = gradients(list(model.parameters()))

    def step():
        prepared.zero()
        total = torch.zeros(())
        for part in tokens:
            loss = loss_of(model(part[:, :-1]), part[:, 1:]) / parts
            prepared.backward(loss)
            total += loss.detach()
        prepared.ready()
        rule.step()
        return total

    return step


def make_write(cached: bool = True):
    model, prompt = GPT().eval(), text(2, LENGTH)

    @torch.no_grad()
    def step():
        tokens, past = prompt, [[] for _ in range(LAYERS)] if cached else None
        new = prompt
        for _ in range(WRITTEN):
            logits = model(new if cached else tokens, past)
            new = logits[:, -1].argmax(-1, keepdim=True)
            tokens = torch.cat([tokens, new], 1)
        return tokens

    return step
