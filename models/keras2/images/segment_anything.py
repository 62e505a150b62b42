"""Segment Anything, as KerasCV's SegmentAnythingModel and its ViTDetBackbone."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import tf_keras as keras

from roofline.models._keras import vision
from roofline.models._keras.images import segment_anything
from roofline.models.keras2 import _step


def encoder(dims: Mapping[str, Any]) -> keras.Model:
    """The image encoder, which training runs; (batch, image, image, 3) to (batch, patches, patches, out)."""
    return vision.library().models.ViTDetBackbone(
        include_rescaling=False,
        input_shape=(dims["image"], dims["image"], 3),
        patch_size=dims["patch"],
        depth=dims["layers"],
        embed_dim=dims["hidden"],
        num_heads=dims["heads"],
        mlp_dim=dims["ffn"],
        window_size=dims["window"],
        global_attention_indices=segment_anything.everywhere(dims),
        out_chans=dims["out"],
    )


def network(dims: Mapping[str, Any]) -> keras.Model:
    """The whole model, which inference runs; images and prompts to masks and their quality.

    It is the model in KerasCV's task, which cannot take arrays by `predict_on_batch` itself.
    """
    library = vision.library()
    patches = dims["image"] // dims["patch"]
    prompts = library.models.SAMPromptEncoder(
        embed_dim=dims["out"],
        image_embedding_size=(patches, patches),
        input_image_size=(dims["image"], dims["image"]),
    )
    masks = library.models.SAMMaskDecoder(
        transformer_dim=dims["out"],
        transformer=library.models.TwoWayTransformer(
            depth=dims["decoder_layers"],
            embed_dim=dims["out"],
            num_heads=dims["decoder_heads"],
            mlp_dim=dims["decoder_ffn"],
        ),
        iou_head_hidden_dim=dims["out"],
    )
    task = library.models.SegmentAnythingModel(backbone=encoder(dims), prompt_encoder=prompts, mask_decoder=masks)
    return keras.Model(task.input, task.output, name="segment_anything")


build = partial(segment_anything.build, _step, network, encoder)
