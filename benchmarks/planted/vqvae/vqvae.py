"""A VQ-VAE: pictures become codes of a codebook that is learned, and pictures again."""

import torch
import torch.nn.functional as F
from torch import nn

BATCH, SIDE, WIDTH, SIZE, CODES, FEW = 8, 32, 24, 48, 768, 96


class Quantizer(nn.Module):
    def __init__(self, codes):
        super().__init__()
        self.codes = nn.Embedding(codes, SIZE)
        self.codes.weight.data.normal_()

    def distances(self, z):
        e = self.codes.weight
        return z.square().sum(1, keepdim=True) - 2 * z @ e.t() + e.square().sum(1)

    def looked_up(self, ids):
        return self.codes(ids)

    def forward(self, z):
        """(batch, size, h, w) to the same, from the codebook; the ids; and what keeps both close."""
        b, c, h, w = z.shape
        flat = z.permute(0, 2, 3, 1).reshape(-1, c)
        ids = self.distances(flat.detach()).argmin(1)
        q = self.looked_up(ids)
        loss = F.mse_loss(q, flat.detach()) + 0.25 * F.mse_loss(flat, q.detach())
        q = flat + (q - flat).detach()
        return q.view(b, h, w, c).permute(0, 3, 1, 2).contiguous(), ids, loss


class VQVAE(nn.Module):
    def __init__(self, quantizer=Quantizer, codes=CODES):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, WIDTH, 4, 2, 1), nn.ReLU(), nn.Conv2d(WIDTH, WIDTH, 4, 2, 1), nn.ReLU(),
            nn.Conv2d(WIDTH, SIZE, 1),
        )  # fmt: skip
        self.quantizer = quantizer(codes)
        self.decoder = nn.Sequential(
            nn.Conv2d(SIZE, WIDTH, 1), nn.ReLU(), nn.ConvTranspose2d(WIDTH, WIDTH, 4, 2, 1), nn.ReLU(),
            nn.ConvTranspose2d(WIDTH, 3, 4, 2, 1),
        )  # fmt: skip

    def forward(self, x):
        q, ids, loss = self.quantizer(self.encoder(x))
        return self.decoder(q), ids, loss


def pictures():
    return torch.randn(BATCH, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(1))


def step_of(model=VQVAE, **kinds):
    torch.manual_seed(0)
    made, x = model(**kinds).eval(), pictures()

    @torch.inference_mode()
    def step():
        return made(x)[0]

    return step


def train(also=lambda ids: None, **kinds):
    torch.manual_seed(0)
    model, x = VQVAE(**kinds).train(), pictures()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)

    def step():
        optimizer.zero_grad()
        y, ids, loss = model(x)
        loss = loss + F.mse_loss(y, x)
        loss.backward()
        optimizer.step()
        also(ids)
        return loss.detach()

    return step


def make_step():
    return step_of()


def make_train():
    return train()


def make_few_train():
    return train(codes=FEW)
