"""Stable Diffusion 1.4 (diffusers), random weights: the encoder of its autoencoder, and one denoising step.

Rombach et al. 2022. Training is of the encoder alone, images to latents before `quant_conv`, as in the Keras 3
benchmark: 34,163,592 parameters, mean squared error, Adam with lr 1e-3. Inference is one of the steps that make an
image: the UNet, 859,520,964 parameters, on every latent twice, with a text and without (classifier-free guidance, Ho
and Salimans 2022, arXiv 2207.12598), and what the PNDM scheduler then computes. The text encoder and the decoder run
once per image and are no part of a step, and neither is the safety checker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from roofline.core.step import Step, Workload, scope
from roofline.errors import InputError, MissingError
from roofline.models._diffusion import GUIDANCE, NEXT, NOW, kept
from roofline.models._step import loss_switch
from roofline.models.torch._step import prepare, step

#: Adams and Bashforth's weights of this noise and the three before it (Liu et al. 2022, arXiv 2202.09778, equation 9).
MULTISTEP = (55 / 24, -59 / 24, 37 / 24, -9 / 24)
LEVELS = 4
ATTENTION = {"sdpa": "AttnProcessor2_0", "eager": "AttnProcessor"}  # the library's classes


def diffusers() -> ModuleType:
    """The diffusers library. Raises MissingError where it is not installed."""
    try:
        import diffusers as library
    except ModuleNotFoundError as error:
        if error.name != "diffusers":
            raise
        raise MissingError(
            "This model is built from the diffusers library, which is not installed: "
            "run `pip install 'roofline[torch]'`."
        ) from error
    return library


@dataclass(frozen=True, slots=True)
class Multistep:
    """The PNDM scheduler's arithmetic between two noise levels, once three noises are behind (Liu et al., equation 11).

    The library computes the two factors, which depend on nothing but the levels, from numbers on the host in every
    step: some twenty ops of one element that are left out here.
    """

    of_sample: float
    of_noise: float

    @classmethod
    def between(cls, now: int, following: int) -> Multistep:
        """The factors of the step from noise level `now` to `following`."""
        a, b = kept(now), kept(following)
        return cls(sqrt(b / a), (a - b) / (a * sqrt(1 - b) + sqrt(a * (1 - a) * b)))

    def __call__(self, sample: Tensor, noise: Tensor, before: Tensor) -> Tensor:
        """The next sample. before: the noises of the last three steps (3, ...), the latest first."""
        weighted = MULTISTEP[0] * noise
        for weight, earlier in zip(MULTISTEP[1:], before.unbind(), strict=True):
            weighted = weighted + weight * earlier
        return self.of_sample * sample + self.of_noise * weighted


class Denoiser(nn.Module):
    """The UNet on both halves of a guided batch, and the scheduler."""

    def __init__(self, unet: nn.Module) -> None:
        super().__init__()
        self.unet = unet
        self.scheduler = Multistep.between(NOW, NEXT)

    def forward(self, latents: Tensor, timestep: Tensor, text: Tensor, before: Tensor) -> Tensor:
        """Latents (batch, latent, side, side), the number of the step (), texts (2 batch, words, context).

        text: first the empty one for each image, then its own. before: noises (3, batch, latent, side, side).
        Gives the latents of the next step.
        """
        with scope("guidance"):
            twice = torch.cat([latents, latents])
        noise = self.unet(twice, timestep, encoder_hidden_states=text, return_dict=False)[0]
        with scope("guidance"):
            without, with_text = noise.chunk(2)
            guided = without + GUIDANCE * (with_text - without)
        with scope("scheduler"):
            return self.scheduler(latents, guided, before)


def network(dims: Mapping[str, Any]) -> nn.Module:
    """The denoising step of these dimensions, which inference runs."""
    return Denoiser(
        diffusers().UNet2DConditionModel(
            sample_size=dims["image"] // 8,
            in_channels=dims["latent"],
            out_channels=dims["latent"],
            block_out_channels=tuple(dims["widths"]),
            layers_per_block=dims["layers"],
            attention_head_dim=dims["heads"],  # how many there are, in spite of the name
            norm_num_groups=dims["groups"],
            cross_attention_dim=dims["context"],
        )
    )


def encoder(dims: Mapping[str, Any]) -> nn.Module:
    """The encoder, which training runs; (batch, 3, image, image) to (batch, 2 latent, image / 8, image / 8)."""
    return (
        diffusers()
        .AutoencoderKL(
            down_block_types=("DownEncoderBlock2D",) * LEVELS,
            up_block_types=("UpDecoderBlock2D",) * LEVELS,
            block_out_channels=tuple(dims["encoder_widths"]),
            layers_per_block=dims["layers"],
            latent_channels=dims["latent"],
            norm_num_groups=dims["groups"],
        )
        .encoder
    )


def build(workload: Workload) -> Step:
    """One denoising step, or one training step (mean squared error, Adam) of the encoder."""
    dims = prepare(workload)
    batch, image, side = dims["batch"], dims["image"], dims["image"] // 8
    train = workload.mode == "train"
    model = (encoder if train else network)(dims)
    attention = workload.options.get("attention", "sdpa")
    _set_attention(model, attention)
    if train:
        inputs = {"sample": torch.randn(batch, 3, image, image)}
    else:
        inputs = {
            "latents": torch.randn(batch, dims["latent"], side, side),
            "timestep": torch.tensor(NOW),
            "text": torch.randn(2 * batch, dims["words"], dims["context"]),
            "before": torch.randn(len(MULTISTEP) - 1, batch, dims["latent"], side, side),
        }
    return step(
        workload,
        dims,
        model,
        inputs,
        targets=torch.randn(batch, 2 * dims["latent"], side, side),
        loss=functional.mse_loss,
        optimizer=torch.optim.Adam,
        switches={
            "attention": attention,
            **({} if train else {"gelu": "erf", "guidance": f"{GUIDANCE:g}, in one call", "scheduler": "PNDM"}),
            **loss_switch(workload, "mean squared error"),
        },
    )


def _set_attention(model: nn.Module, form: str) -> None:
    """Has every attention of `model` computed so. Raises InputError for an unknown form."""
    if form not in ATTENTION:
        raise InputError(
            f"There is no attention={form} in this model: use attention={' or attention='.join(ATTENTION)}."
        )
    from diffusers.models import attention_processor as library

    for module in model.modules():
        if isinstance(module, library.Attention):
            module.set_processor(getattr(library, ATTENTION[form])())
