"""Training of a detector whose queries are matched with the true boxes (by SciPy), as in DETR."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn

IMAGES, QUERIES, TRUE, WIDTH, PATCHES = 2, 24, 6, 64, 64


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.queries = nn.Parameter(torch.randn(QUERIES, WIDTH))
        layer = nn.TransformerDecoderLayer(WIDTH, 4, 128, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerDecoder(layer, 2)
        self.box, self.kind = nn.Linear(WIDTH, 4), nn.Linear(WIDTH, 11)

    def forward(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        x = self.layers(self.queries.expand(len(memory), -1, -1), memory)
        return self.box(x).sigmoid(), self.kind(x)


def corners(b: Tensor) -> Tensor:
    return torch.cat((b[..., :2] - b[..., 2:] / 2, b[..., :2] + b[..., 2:] / 2), -1)


def overlap(a: Tensor, b: Tensor) -> Tensor:
    """Of all pairs (a, b): intersection over union."""
    a, b = corners(a), corners(b)
    low, high = torch.maximum(a[:, None, :2], b[None, :, :2]), torch.minimum(a[:, None, 2:], b[None, :, 2:])
    inside = (high - low).clamp_min(0).prod(-1)
    area_a, area_b = (a[:, 2:] - a[:, :2]).prod(-1), (b[:, 2:] - b[:, :2]).prod(-1)
    return inside / (area_a[:, None] + area_b[None] - inside + 1e-6)


@torch.no_grad()
def match(boxes: Tensor, kinds: Tensor, true: Tensor, label: Tensor, overlap=overlap):
    cost = torch.cdist(boxes, true, p=1) - kinds.softmax(-1)[:, label] - 2 * overlap(boxes, true)
    rows, columns = linear_sum_assignment(cost.numpy())
    return torch.as_tensor(rows), torch.as_tensor(columns)


def loss_of(out, true, labels, overlap=overlap):
    loss = out[0].new_zeros(())
    for boxes, kinds, t, label in zip(*out, true, labels, strict=True):
        i, j = match(boxes, kinds, t, label, overlap)
        wanted = torch.full((QUERIES,), 10)
        wanted[i] = label[j]
        loss = loss + F.cross_entropy(kinds, wanted) + 5 * F.l1_loss(boxes[i], t[j])
    return loss / IMAGES


def make_train(overlap=overlap):
    model = Decoder()
    g = torch.Generator().manual_seed(1)
    memory = torch.randn(IMAGES, PATCHES, WIDTH, generator=g)
    true, labels = torch.rand(IMAGES, TRUE, 4, generator=g) * 0.5 + 0.2, torch.randint(10, (IMAGES, TRUE), generator=g)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)

    def step():
        optimizer.zero_grad()
        loss = loss_of(model(memory), true, labels, overlap)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
