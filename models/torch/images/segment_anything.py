"""Segment Anything (Hugging Face), random weights, one image and two points on it per sample.

Kirillov et al. 2023. Training is of the image encoder alone, as in the Keras 3 benchmark (mean squared error of the
image's embedding, Adam with lr 1e-3); inference is the whole model: encoder, prompt encoder and mask decoder, which
gives three masks. Size base is sam-vit-huge: 637,026,048 parameters in the encoder, 641,090,864 in all. The image
encoder is ViTDet (Li et al. 2022, arXiv 2203.16527): most layers attend in windows, every `global_every`-th over the
whole image, all with relative positions of rows and of columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from roofline.core.step import Step, Workload
from roofline.models._step import loss_switch
from roofline.models.torch._step import prepare, step, transformers
from roofline.models.torch._transformers import GELU

#: The library's own for the vision encoder, 1e-10, makes activations of 1e-21: subnormal numbers, slow on CPUs.
INITIAL = 0.02
FOREGROUND, BACKGROUND = 1, 0  # what a point is said to lie on


class Segmenter(nn.Module):
    """The whole model."""

    def __init__(self, sam: nn.Module) -> None:
        super().__init__()
        self.sam = sam

    def forward(self, pixel_values: Tensor, input_points: Tensor, input_labels: Tensor) -> tuple[Tensor, Tensor]:
        """Images (batch, 3, image, image), points (batch, 1, points, 2) [pixels], their labels (batch, 1, points).

        Gives masks (batch, 1, 3, 4 patches, 4 patches) and the quality of each (batch, 1, 3).
        """
        output = self.sam(pixel_values=pixel_values, input_points=input_points, input_labels=input_labels)
        return output.pred_masks, output.iou_scores


def network(dims: Mapping[str, Any], attention: str | None = None) -> nn.Module:
    """The whole model of these dimensions, which inference runs.

    attention: the library's name of a form, None for the one that it chooses.
    """
    library = transformers()
    return Segmenter(
        library.SamModel(
            library.SamConfig(
                vision_config=_vision_config(dims, attention),
                prompt_encoder_config=library.SamPromptEncoderConfig(
                    hidden_size=dims["out"],
                    image_size=dims["image"],
                    patch_size=dims["patch"],
                ),
                mask_decoder_config=library.SamMaskDecoderConfig(
                    hidden_size=dims["out"],
                    num_hidden_layers=dims["decoder_layers"],
                    num_attention_heads=dims["decoder_heads"],
                    mlp_dim=dims["decoder_ffn"],
                    iou_head_hidden_dim=dims["out"],
                ),
                initializer_range=INITIAL,
                attn_implementation=attention,
            )
        )
    )


def encoder(dims: Mapping[str, Any], attention: str | None = None) -> nn.Module:
    """The image encoder, which training runs; (batch, 3, image, image) to (batch, out, patches, patches)."""
    return transformers().SamVisionModel(_vision_config(dims, attention))


def _vision_config(dims: Mapping[str, Any], attention: str | None) -> Any:
    every = dims["global_every"]
    return transformers().SamVisionConfig(
        image_size=dims["image"],
        patch_size=dims["patch"],
        hidden_size=dims["hidden"],
        num_hidden_layers=dims["layers"],
        num_attention_heads=dims["heads"],
        mlp_dim=dims["ffn"],
        hidden_act=GELU[dims["gelu"]],
        window_size=dims["window"],
        global_attn_indexes=list(range(every - 1, dims["layers"], every)),
        output_channels=dims["out"],
        num_pos_feats=dims["out"] // 2,
        initializer_range=INITIAL,
        attn_implementation=attention,
    )


def embedding_loss(output: Mapping[str, Tensor], targets: Tensor) -> Tensor:
    """Mean squared error of the image's embedding (batch, out, patches, patches)."""
    return functional.mse_loss(output["last_hidden_state"], targets)


def build(workload: Workload) -> Step:
    """One forward pass of the whole model, or one training step (mean squared error, Adam) of its image encoder."""
    dims = prepare(workload)
    batch, image, attention = dims["batch"], dims["image"], workload.options.get("attention")
    train = workload.mode == "train"
    model = (encoder if train else network)(dims, attention)
    inputs = {"pixel_values": torch.randn(batch, 3, image, image)}
    if not train:
        inputs["input_points"] = torch.rand(batch, 1, 2, 2) * image
        inputs["input_labels"] = torch.tensor([FOREGROUND, BACKGROUND]).expand(batch, 1, 2)
    patches = image // dims["patch"]
    vision = (model if train else model.sam).vision_encoder
    return step(
        workload,
        dims,
        model,
        inputs,
        targets=torch.randn(batch, dims["out"], patches, patches),
        loss=embedding_loss,
        optimizer=torch.optim.Adam,
        switches={
            "attention": vision.config._attn_implementation,
            "gelu": dims["gelu"],
            **loss_switch(workload, "mean squared error"),
        },
    )
