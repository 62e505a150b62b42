"""Beam search with a small decoder: keys and values are cached, and go with the beams that are continued."""

import torch
import torch.nn.functional as F
from torch import nn

TEXTS, BEAMS, WIDTH, HEADS, LAYERS, VOCABULARY, LENGTH = 2, 4, 64, 4, 2, 1200, 20
ROWS = TEXTS * BEAMS


class Places:
    """A cache of keys and values, made once, for the longest text."""

    def __init__(self):
        self.kept = torch.zeros(LAYERS, 2, ROWS, HEADS, LENGTH, WIDTH // HEADS)

    def add(self, layer, t, k, v):
        """What there is with one time more."""
        self.kept[layer, 0, :, :, t], self.kept[layer, 1, :, :, t] = k, v
        return self.kept[layer, :, :, :, : t + 1]

    def reorder(self, rows):
        self.kept = self.kept.index_select(2, rows)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, ids, t, cache):
        x = self.words(ids) + self.places.weight[t]
        for i, layer in enumerate(self.layers):
            q, k, v = layer.qkv(layer.norm1(x)).view(ROWS, 3, HEADS, -1).unbind(1)
            k, v = cache.add(i, t, k, v)
            x = x + layer.out(F.scaled_dot_product_attention(q[:, :, None], k, v).reshape(ROWS, WIDTH))
            x = x + layer.down(F.gelu(layer.up(layer.norm2(x))))
        return F.log_softmax(self.norm(x) @ self.words.weight.t(), dim=-1)


def best(scores):
    """The best continuations of a text, of all its beams and words: (texts, beams) each."""
    return scores.topk(BEAMS, dim=1)


def chosen(values, places):
    """Totals, beams that go on, and their next words."""
    beams = places // VOCABULARY + torch.arange(TEXTS)[:, None] * BEAMS
    return values.reshape(ROWS, 1), beams.flatten(), (places % VOCABULARY).flatten()


def make_step(cache=Places, best=best, chosen=chosen):
    torch.manual_seed(0)
    model = Decoder().eval()

    @torch.inference_mode()
    def step():
        kept, written = cache(), torch.zeros(ROWS, LENGTH, dtype=torch.long)
        ids, totals = torch.arange(ROWS), torch.zeros(ROWS, 1)
        for t in range(LENGTH):
            scores = totals + model(ids, t, kept)
            totals, rows, ids = chosen(*best(scores.view(TEXTS, -1)))
            kept.reorder(rows)
            written = written[rows]
            written[:, t] = ids
        return written, totals

    return step
