"""A vocoder (HiFi-GAN's generator, small): a mel spectrogram is upsampled to sound between residual convolutions."""

import torch
import torch.nn.functional as F
from torch import nn

MELS, FRAMES, WIDTH, UP, KERNEL, DILATIONS = 40, 128, 48, (8, 4), 3, (1, 3)


class Leaky(nn.Module):
    def forward(self, x):
        return F.leaky_relu(x, 0.1)


class Residual(nn.Module):
    def __init__(self, width, activation):
        super().__init__()
        self.activation = activation()
        self.convolutions = nn.ModuleList(
            nn.Conv1d(width, width, KERNEL, padding=d * (KERNEL // 2), dilation=d) for d in DILATIONS
        )

    def forward(self, x):
        for convolution in self.convolutions:
            x = x + convolution(self.activation(x))
        return x


class Vocoder(nn.Module):
    def __init__(self, activation=Leaky, residual=Residual):
        super().__init__()
        self.activation = activation()
        self.first = nn.Conv1d(MELS, WIDTH, 7, padding=3)
        widths = [WIDTH >> i for i in range(len(UP) + 1)]
        self.ups = nn.ModuleList(
            nn.ConvTranspose1d(a, b, 2 * r, r, r // 2) for a, b, r in zip(widths, widths[1:], UP, strict=False)
        )
        self.residuals = nn.ModuleList(residual(b, activation) for b in widths[1:])
        self.last = nn.Conv1d(widths[-1], 1, 7, padding=3)

    def forward(self, mel):
        x = self.first(mel)
        for up, residual in zip(self.ups, self.residuals, strict=True):
            x = residual(up(self.activation(x)))
        return torch.tanh(self.last(self.activation(x)))


def mel(frames=FRAMES):
    return torch.randn(1, MELS, frames, generator=torch.Generator().manual_seed(1)).exp()


def normal(raw):
    return torch.log(raw.clamp(min=1e-5))


def step_of(prepared=normal, **kinds):
    torch.manual_seed(0)
    model, raw = Vocoder(**kinds).eval(), mel()

    @torch.inference_mode()
    def step():
        return model(prepared(raw))

    return step


def make_step():
    return step_of()
