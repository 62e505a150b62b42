"""A selective state space: a state per channel that forgets and takes in as the input says, in PyTorch."""

import torch
import torch.nn.functional as F
from torch import nn

BATCH, LENGTH, WIDTH, STATE = 4, 48, 64, 8


class Selective(nn.Module):
    def __init__(self):
        super().__init__()
        self.into, self.out = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.steps, self.bc = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 2 * STATE)
        self.log_a = nn.Parameter(torch.arange(1.0, STATE + 1).log().repeat(WIDTH, 1))
        self.d = nn.Parameter(torch.ones(WIDTH))
        self.norm = nn.LayerNorm(WIDTH)

    def scan(self, x, delta, b, c):
        decay = torch.exp(delta[..., None] * -self.log_a.exp())  # batch, time, width, state
        taken = (delta * x)[..., None] * b[:, :, None]
        h, out = torch.zeros_like(decay[:, 0]), []
        for t in range(x.shape[1]):
            h = torch.addcmul(taken[:, t], decay[:, t], h)
            out.append(h)
        return (torch.stack(out, dim=1) * c[:, :, None]).sum(-1)

    def forward(self, x):
        y, gate = self.into(self.norm(x)).chunk(2, dim=-1)
        y = F.silu(y)
        b, c = self.bc(y).chunk(2, dim=-1)
        y = self.scan(y, F.softplus(self.steps(y)), b, c) + self.d * y
        return x + self.out(y * F.silu(gate))


def make_step(layer=Selective):
    torch.manual_seed(0)
    model = nn.Sequential(layer(), layer()).eval()
    x = torch.randn(BATCH, LENGTH, WIDTH)

    @torch.inference_mode()
    def step():
        return model(x)

    return step
